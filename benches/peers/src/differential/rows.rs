//! Compares one behaviour at a time on both sides, including some that VMA's own tests do not cover.

use std::fmt::Debug;

use ash::vk;
use sublet::{AllocationCreateFlags as Flags, AllocatorCreateFlags, MemoryUsage, PoolCreateFlags, sim};

use super::program::{BufferSpec, ImageSpec, PoolSpec, ProgramResource, ProgramSetup, Spec};
use super::side::{Placement, Side};
use super::sublet_side::SubletSide;
use super::tap::{ChainLink, TapLog};
use super::vma_side::VmaSide;

const MIB: u64 = 1 << 20;

fn setup(name: &str) -> ProgramSetup {
    let profile = sim::Profile::by_name(name).unwrap();
    ProgramSetup {
        profile,
        minor: vk::api_version_minor(profile.api_version),
        flags: AllocatorCreateFlags::empty(),
        large_block: 0,
        heap_limits: Vec::new(),
        max_count: None,
        empty_blocks_kept: 1,
    }
}

fn spec(usage: MemoryUsage, flags: Flags) -> Spec {
    let none = vk::MemoryPropertyFlags::empty();
    Spec { flags, usage, required: none, preferred: none, bits: 0, pool: None, priority: 0.5 }
}

fn pool(memory_type: u32, block_size: u64) -> PoolSpec {
    PoolSpec {
        memory_type,
        flags: PoolCreateFlags::empty(),
        linear: false,
        block_size,
        min_blocks: 0,
        max_blocks: 0,
        priority: 0.5,
        min_alignment: 0,
    }
}

fn raw(size: u64) -> ProgramResource {
    ProgramResource::Raw { size, alignment: 256, bits: u32::MAX }
}

fn buffer(size: u64, usage: vk::BufferUsageFlags) -> ProgramResource {
    ProgramResource::Buffer { buffer: BufferSpec { size, usage }, min_alignment: 0 }
}

fn image(side: u32, tiling: vk::ImageTiling) -> ProgramResource {
    ProgramResource::Image(ImageSpec {
        format: vk::Format::R8G8B8A8_UNORM,
        extent: (side, side),
        mips: 1,
        layers: 1,
        tiling,
        usage: vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST,
    })
}

/// One side, as a row uses it.
struct RowSide<'a> {
    side: &'a mut dyn Side,
    slots: usize,
    pool: Option<usize>,
}

impl RowSide<'_> {
    fn allocate(&mut self, resource: &ProgramResource, spec: &Spec) -> Result<Placement, vk::Result> {
        let slot = self.slots;
        self.slots += 1;
        self.side.allocate(slot, resource, spec, self.pool).map_err(|failed| failed.result)
    }

    /// Allocates device memory without a resource.
    fn plain(&mut self, size: u64) -> Result<Placement, vk::Result> {
        self.allocate(&raw(size), &spec(MemoryUsage::GpuOnly, Flags::empty()))
    }

    fn pool(&mut self, spec: &PoolSpec) {
        self.side.create_pool(0, spec).unwrap();
        self.pool = Some(0);
    }

    /// Returns the sizes of driver allocations since the last call, and the number of frees.
    fn asked(&self) -> (Vec<u64>, usize) {
        let TapLog { asked, freed, .. } = self.side.tap().take();
        (asked.iter().map(|asked| asked.size).collect(), freed.len())
    }
}

/// Runs the same on both sides, and returns their common result.
fn both<T: PartialEq + Debug>(setup: &ProgramSetup, what: impl Fn(&mut RowSide<'_>) -> T) -> T {
    fn one<T>(side: &mut dyn Side, what: impl Fn(&mut RowSide<'_>) -> T) -> T {
        let mut row = RowSide { side, slots: 0, pool: None };
        let answer = what(&mut row);
        let (slots, pool) = (row.slots, row.pool);
        (0..slots).for_each(|slot| side.free(slot));
        pool.into_iter().for_each(|slot| side.destroy_pool(slot));
        answer
    }
    let (mut vma, mut sublet) = (VmaSide::new(setup), SubletSide::new(setup));
    let answers = (one(&mut vma, &what), one(&mut sublet, &what));
    vma.finish();
    assert_eq!(sublet.finish(), [""; 0]);
    assert_eq!(answers.0, answers.1, "VMA, and Sublet");
    answers.1
}

const HOST: Flags = Flags::HOST_ACCESS_SEQUENTIAL_WRITE;

#[test]
fn an_empty_block_is_kept() {
    let freed = both(&setup("lavapipe"), |row| {
        let _ = row.plain(1000);
        row.side.free(0);
        row.asked().1
    });
    assert_eq!(freed, 0);
}

#[test]
fn a_second_empty_block_is_not() {
    let freed = both(&setup("lavapipe"), |row| {
        row.pool(&pool(0, MIB));
        for _ in 0..2 {
            let _ = row.plain(MIB - 256);
        }
        row.side.free(0);
        row.side.free(1);
        row.asked()
    });
    assert_eq!(freed, (vec![MIB, MIB], 1));
}

#[test]
fn alignment_of_the_requirements() {
    let offset = both(&setup("lavapipe"), |row| {
        let _ = row.plain(100);
        let aligned = ProgramResource::Raw { size: 100, alignment: 65_536, bits: u32::MAX };
        let place = row.allocate(&aligned, &spec(MemoryUsage::GpuOnly, Flags::empty()));
        place.map(|place| place.offset % 65_536)
    });
    assert_eq!(offset, Ok(0));
}

#[test]
fn least_alignment_of_an_allocation() {
    let offset = both(&setup("lavapipe"), |row| {
        let _ = row.plain(100);
        let made = BufferSpec { size: 100, usage: vk::BufferUsageFlags::UNIFORM_BUFFER };
        let aligned = ProgramResource::Buffer { buffer: made, min_alignment: 16_384 };
        row.allocate(&aligned, &spec(MemoryUsage::Auto, Flags::empty())).map(|place| place.offset % 16_384)
    });
    assert_eq!(offset, Ok(0));
}

#[test]
fn least_alignment_of_a_pool() {
    let offset = both(&setup("lavapipe"), |row| {
        row.pool(&PoolSpec { min_alignment: 8192, ..pool(0, MIB) });
        let _ = row.plain(100);
        row.plain(100).map(|place| place.offset % 8192)
    });
    assert_eq!(offset, Ok(0));
}

#[test]
fn limits_of_heaps() {
    let limited = ProgramSetup { heap_limits: vec![100 * MIB], ..setup("lavapipe") };
    let answers = both(&limited, |row| {
        let dedicated = spec(MemoryUsage::GpuOnly, Flags::DEDICATED_MEMORY);
        let mut answer = |size| row.allocate(&raw(size), &dedicated).map(|_| ());
        [answer(60 * MIB), answer(60 * MIB), answer(40 * MIB), answer(256)]
    });
    let full = Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    assert_eq!(answers, [Ok(()), full, Ok(()), full]);
}

#[test]
fn a_ring_goes_around() {
    let offsets = both(&setup("lavapipe"), |row| {
        row.pool(&PoolSpec { linear: true, max_blocks: 1, ..pool(0, MIB) });
        let third = MIB / 4 * 3 / 2;
        let first = [row.plain(third), row.plain(third)];
        row.side.free(0);
        let mut offsets: Vec<_> =
            first.iter().chain([&row.plain(third)]).map(|place| place.map(|it| it.offset)).collect();
        offsets.push(row.plain(third).map(|place| place.offset));
        offsets
    });
    let third = MIB / 4 * 3 / 2;
    assert_eq!(offsets, [Ok(0), Ok(third), Ok(0), Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY)]);
}

#[test]
fn neighbours_join_when_they_are_free() {
    let offset = both(&setup("lavapipe"), |row| {
        row.pool(&PoolSpec { max_blocks: 1, ..pool(0, MIB) });
        for _ in 0..4 {
            let _ = row.plain(MIB / 4);
        }
        for slot in [1, 3, 2] {
            row.side.free(slot);
        }
        row.plain(MIB / 4 * 3).map(|place| place.offset)
    });
    assert_eq!(offset, Ok(MIB / 4));
}

#[test]
fn the_budget_is_four_fifths() {
    let budgets =
        both(&setup("amd-rx-570"), |row| row.side.heaps().iter().map(|heap| heap.budget).collect::<Vec<_>>());
    assert_eq!(budgets[0], 3840 * MIB * 8 / 10);
}

#[test]
fn the_most_blocks_of_a_pool() {
    let answers = both(&setup("lavapipe"), |row| {
        row.pool(&PoolSpec { max_blocks: 2, ..pool(0, MIB) });
        [(); 3].map(|()| row.plain(MIB - 256).map(|_| ()))
    });
    assert_eq!(answers, [Ok(()), Ok(()), Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY)]);
}

#[test]
fn allocated_bytes_are_counted() {
    let bytes = both(&setup("intel-arc-a770"), |row| {
        let mut seen = Vec::new();
        for size in [1000, 70 * MIB, 2000] {
            let _ = row.plain(size);
            seen.push((row.side.heaps()[0].allocation_bytes, row.side.heaps()[0].allocations));
        }
        row.side.free(1);
        seen.push((row.side.heaps()[0].allocation_bytes, row.side.heaps()[0].allocations));
        seen.iter().map(|(bytes, count)| (bytes / MIB, *count)).collect::<Vec<_>>()
    });
    assert_eq!(bytes, [(0, 1), (70, 2), (70, 3), (0, 2)]);
}

/// The simulated driver reports violations.
#[test]
fn linear_and_optimal_share_no_page() {
    for name in ["swiftshader", "arm-mali-g52", "apple-m1", "nvidia-h200", "lavapipe"] {
        let apart = both(&setup(name), |row| {
            let auto = spec(MemoryUsage::Auto, Flags::empty());
            let usage = vk::BufferUsageFlags::VERTEX_BUFFER;
            let first = row.allocate(&buffer(100, usage), &auto).unwrap();
            let optimal = row.allocate(&image(8, vk::ImageTiling::OPTIMAL), &auto).unwrap();
            let page = row.side.tap().granularity();
            first.memory != optimal.memory
                || (first.offset + first.size - 1) / page < optimal.offset / page
                || (optimal.offset + optimal.size - 1) / page < first.offset / page
        });
        assert!(apart, "{name}");
    }
}

#[test]
fn what_is_flushed_begins_at_an_atom() {
    let offsets = both(&setup("qualcomm-adreno-620"), |row| {
        let cached = Spec {
            required: vk::MemoryPropertyFlags::HOST_CACHED,
            bits: 0b10,
            ..spec(MemoryUsage::CpuToGpu, Flags::empty())
        };
        let small = ProgramResource::Raw { size: 10, alignment: 1, bits: u32::MAX };
        [(); 3].map(|()| row.allocate(&small, &cached).map(|place| place.offset % 64))
    });
    assert_eq!(offsets, [Ok(0); 3]);
}

#[test]
fn flushed_ranges_are_rounded() {
    let ranges = both(&setup("qualcomm-adreno-620"), |row| {
        let cached = Spec { bits: 0b10, ..spec(MemoryUsage::CpuToGpu, Flags::MAPPED) };
        let place = row.allocate(&raw(1000), &cached).unwrap();
        let mut found = Vec::new();
        for (offset, size) in [(0, 1), (63, 2), (100, vk::WHOLE_SIZE), (0, 0), (128, 64)] {
            row.side.make_visible(0, offset, size, false).unwrap();
            let ranges = row.side.tap().take().ranges;
            found.push(ranges.first().map(|range| (range.offset - place.offset, range.size)));
        }
        found
    });
    assert_eq!(ranges, [Some((0, 64)), Some((0, 128)), Some((64, 960)), None, Some((128, 64))]);
}

#[test]
fn blocks_grow_step_by_step() {
    let sizes = both(&setup("nvidia-h200"), |row| {
        let auto = spec(MemoryUsage::Auto, Flags::empty());
        for _ in 0..60 {
            let _ = row.allocate(&buffer(15 * MIB, vk::BufferUsageFlags::VERTEX_BUFFER), &auto);
        }
        row.asked().0.iter().map(|size| size / MIB).collect::<Vec<_>>()
    });
    assert_eq!(sizes, [32, 64, 128, 256, 256, 256]);
}

#[test]
fn small_heaps_have_small_blocks() {
    let sizes = both(&setup("broadcom-raspberry-pi-4"), |row| {
        let _ = row.plain(1000);
        row.asked().0
    });
    assert_eq!(sizes, [(969_521_152_u64 / 8).next_multiple_of(32) / 8]);
}

#[test]
fn more_than_half_a_block_is_dedicated() {
    let dedicated = both(&setup("nvidia-h200"), |row| {
        [128 * MIB, 128 * MIB + 1].map(|size| row.plain(size).map(|place| place.dedicated))
    });
    assert_eq!(dedicated, [Ok(false), Ok(true)]);
}

#[test]
fn not_more_dedicated_than_the_device_allows() {
    let few = ProgramSetup { max_count: Some(10), ..setup("nvidia-h200") };
    let dedicated = both(&few, |row| {
        let mut large = || row.plain(129 * MIB).map(|place| place.dedicated);
        (0..10).map(|_| large()).collect::<Vec<_>>()
    });
    assert_eq!(dedicated[..8], [Ok(true); 8]);
    assert_eq!(dedicated[8..], [Ok(false); 2]);
}

#[test]
fn a_mapping_lasts_as_long_as_somebody_needs_it() {
    let mapped = both(&setup("lavapipe"), |row| {
        let host = spec(MemoryUsage::CpuOnly, Flags::empty());
        let _ = row.allocate(&raw(1000), &host);
        let mut seen = vec![row.side.place(0).mapped];
        for _ in 0..2 {
            row.side.map(0).unwrap();
            seen.push(row.side.place(0).mapped);
        }
        for _ in 0..2 {
            row.side.unmap(0);
            seen.push(row.side.place(0).mapped);
        }
        seen
    });
    assert_eq!(mapped, [false, true, true, true, false]);
}

/// Both apply it to dedicated memory; Sublet applies it to all.
#[test]
fn dedicated_within_the_budget() {
    let answers = both(&setup("lavapipe"), |row| {
        let within = spec(MemoryUsage::GpuOnly, Flags::WITHIN_BUDGET | Flags::DEDICATED_MEMORY);
        let without = spec(MemoryUsage::GpuOnly, Flags::DEDICATED_MEMORY);
        let budget = row.side.heaps()[0].budget;
        let mut answer = |size, spec: &Spec| row.allocate(&raw(size), spec).map(|_| ());
        [answer(budget - 1000, &within), answer(1001, &within), answer(1001, &without)]
    });
    assert_eq!(answers, [Ok(()), Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY), Ok(())]);
}

#[test]
fn the_lowest_offset() {
    let offset = both(&setup("lavapipe"), |row| {
        row.pool(&PoolSpec { max_blocks: 1, ..pool(0, MIB) });
        for size in [4096, 4096, 1024, 4096] {
            let _ = row.plain(size);
        }
        row.side.free(0);
        row.side.free(2);
        let lowest = spec(MemoryUsage::GpuOnly, Flags::STRATEGY_MIN_OFFSET);
        row.allocate(&raw(1024), &lowest).map(|place| place.offset)
    });
    assert_eq!(offset, Ok(0));
}

#[test]
fn more_than_the_heap() {
    let answers = both(&setup("lavapipe"), |row| {
        let answer = row.plain(2048 * MIB + 256).map(|_| ());
        (answer, row.asked().0, row.side.calls("vkAllocateMemory"))
    });
    assert_eq!(answers, (Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY), vec![], 0));
}

/// The memory type for each usage and access, on each profile.
#[test]
fn memory_types() {
    let usages = [MemoryUsage::Auto, MemoryUsage::AutoPreferDevice, MemoryUsage::AutoPreferHost];
    let accesses = [Flags::empty(), HOST, Flags::HOST_ACCESS_RANDOM];
    let works = [vk::BufferUsageFlags::TRANSFER_SRC, vk::BufferUsageFlags::UNIFORM_BUFFER];
    let mut kinds = 0;
    for profile in sim::profiles::ALL {
        let found = both(&setup(profile.name), |row| {
            let mut found = Vec::new();
            for usage in usages {
                for access in accesses {
                    for work in works {
                        let answer = row.side.find(&buffer(1000, work), &spec(usage, access));
                        found.push(answer.map_err(|failed| failed.result));
                    }
                }
            }
            found
        });
        let mut different = found;
        different.sort_unstable_by_key(|answer| answer.unwrap_or(u32::MAX));
        different.dedup();
        kinds = kinds.max(different.len());
    }
    assert!(kinds >= 3, "no profile has a choice");
}

#[test]
fn preferred_and_not_preferred() {
    use vk::MemoryPropertyFlags as Properties;
    let found = both(&setup("nvidia-rtx-5070-ti"), |row| {
        let mut find = |usage, preferred| {
            let spec = Spec { preferred, ..spec(usage, Flags::empty()) };
            row.side.find(&raw(1000), &spec).map_err(|failed| failed.result)
        };
        [
            find(MemoryUsage::Unknown, Properties::empty()),
            find(MemoryUsage::Unknown, Properties::DEVICE_LOCAL),
            find(MemoryUsage::CpuOnly, Properties::HOST_CACHED),
            find(MemoryUsage::CpuOnly, Properties::empty()),
            find(MemoryUsage::CpuCopy, Properties::HOST_VISIBLE),
            find(MemoryUsage::CpuToGpu, Properties::empty()),
            find(MemoryUsage::GpuToCpu, Properties::empty()),
        ]
    });
    assert_eq!(found, [Ok(0), Ok(1), Ok(3), Ok(2), Ok(2), Ok(4), Ok(3)]);
}

#[test]
fn host_or_device() {
    let found = both(&setup("nvidia-rtx-5070-ti"), |row| {
        [MemoryUsage::Auto, MemoryUsage::AutoPreferHost, MemoryUsage::AutoPreferDevice].map(|usage| {
            [vk::BufferUsageFlags::UNIFORM_BUFFER, vk::BufferUsageFlags::TRANSFER_SRC].map(|work| {
                row.side.find(&buffer(1000, work), &spec(usage, HOST)).map_err(|failed| failed.result)
            })
        })
    });
    assert_eq!(found, [[Ok(4), Ok(2)], [Ok(2), Ok(2)], [Ok(4), Ok(4)]]);
}

#[test]
fn only_what_is_there() {
    let answers = both(&setup("lavapipe"), |row| {
        let never = spec(MemoryUsage::GpuOnly, Flags::NEVER_ALLOCATE);
        let first = row.allocate(&raw(1000), &never).map(|_| ());
        let _ = row.plain(1000);
        (first, row.allocate(&raw(1000), &never).map(|_| ()), row.asked().0)
    });
    assert_eq!(answers, (Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY), Ok(()), vec![32 * MIB]));
}

#[test]
fn bound_unless_it_is_not_to_be() {
    let binds = both(&setup("lavapipe"), |row| {
        let usage = vk::BufferUsageFlags::UNIFORM_BUFFER;
        [Flags::empty(), Flags::DONT_BIND].map(|flags| {
            let _ = row.allocate(&buffer(1000, usage), &spec(MemoryUsage::Auto, flags));
            row.side.calls("vkBindBufferMemory")
        })
    });
    assert_eq!(binds, [1, 1]);
}

/// The `pNext` chains for a block, a buffer, an image, memory without a resource, and aliased memory.
#[test]
fn chains() {
    let flags = AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS | AllocatorCreateFlags::EXT_MEMORY_PRIORITY;
    let all = ProgramSetup { flags, ..setup("nvidia-h200") };
    let found = both(&all, |row| {
        let auto = |flags| Spec { priority: 0.25, ..spec(MemoryUsage::Auto, flags) };
        let own = Flags::DEDICATED_MEMORY;
        let plain = vk::BufferUsageFlags::VERTEX_BUFFER;
        let address = plain | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        let gpu = Spec { priority: 0.25, ..spec(MemoryUsage::GpuOnly, own) };
        let asked = [
            (buffer(1000, plain), auto(Flags::empty())),
            (buffer(1000, plain), auto(own)),
            (buffer(1000, address), auto(own)),
            (image(64, vk::ImageTiling::OPTIMAL), auto(own)),
            (raw(1000), gpu),
            (buffer(1000, address), auto(own | Flags::CAN_ALIAS)),
        ];
        asked.map(|(resource, spec)| {
            let made = row.allocate(&resource, &spec).map(|_| ());
            (
                made,
                row.side.tap().take().asked.iter().flat_map(|asked| asked.chain.clone()).collect::<Vec<_>>(),
            )
        })
    });
    let (half, quarter) = (ChainLink::Priority(0.5_f32.to_bits()), ChainLink::Priority(0.25_f32.to_bits()));
    let address = ChainLink::Flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS.as_raw());
    let chains = found.map(|(made, chain)| made.map(|()| chain));
    assert_eq!(
        chains,
        [
            Ok(vec![half, address]),
            Ok(vec![quarter, ChainLink::DedicatedBuffer]),
            Ok(vec![quarter, address, ChainLink::DedicatedBuffer]),
            Ok(vec![quarter, ChainLink::DedicatedImage]),
            Ok(vec![quarter, address]),
            Ok(vec![quarter, address]),
        ]
    );
}

#[test]
fn nothing_is_not_allocated() {
    let answers = both(&setup("lavapipe"), |row| {
        let auto = spec(MemoryUsage::Auto, Flags::empty());
        let empty = row.allocate(&buffer(0, vk::BufferUsageFlags::UNIFORM_BUFFER), &auto).map(|_| ());
        let flat = row.allocate(&image(0, vk::ImageTiling::OPTIMAL), &auto).map(|_| ());
        (empty, flat, row.plain(0).map(|_| ()), row.side.calls("vkCreateBuffer"))
    });
    let wrong = Err(vk::Result::ERROR_INITIALIZATION_FAILED);
    assert_eq!(answers, (wrong, wrong, wrong, 0));
}

/// Space that is freed in the middle of a linear block is not reused before the block's end is free.
#[test]
fn a_linear_block_forgets_its_middle() {
    let offsets = both(&setup("lavapipe"), |row| {
        row.pool(&PoolSpec { linear: true, max_blocks: 1, ..pool(0, MIB) });
        let mut offsets = Vec::new();
        for _ in 0..100 {
            offsets.push(row.plain(1024).map(|place| place.offset));
        }
        (10..90).for_each(|slot| row.side.free(slot));
        offsets.push(row.plain(1024).map(|place| place.offset));
        // Frees the end, together with the space that was freed before it.
        (90..101).for_each(|slot| row.side.free(slot));
        offsets.push(row.plain(1024).map(|place| place.offset));
        offsets
    });
    assert_eq!(offsets[99..], [Ok(99 * 1024), Ok(100 * 1024), Ok(10 * 1024)]);
}

#[test]
fn a_double_stack() {
    let offsets = both(&setup("lavapipe"), |row| {
        row.pool(&PoolSpec { linear: true, max_blocks: 1, ..pool(0, MIB) });
        let upper = spec(MemoryUsage::GpuOnly, Flags::UPPER_ADDRESS);
        [row.plain(1024), row.allocate(&raw(1024), &upper), row.allocate(&raw(1024), &upper), row.plain(MIB)]
            .map(|place| place.map(|place| place.offset))
    });
    assert_eq!(offsets, [Ok(0), Ok(MIB - 1024), Ok(MIB - 2048), Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY)]);
}
