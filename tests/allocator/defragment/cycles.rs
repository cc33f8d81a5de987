//! Fragments and compacts memory repeatedly, and compares the contents.

use super::*;
use crate::content::{COPIED, barrier, bytes, submit, texels};

enum Kind {
    Buffer(vk::Buffer),
    Image(vk::Image, u32),
}

/// A resource whose bytes derive from `seed`.
struct Item {
    kind: Kind,
    allocation: Allocation,
    seed: u64,
    size: u64,
}

/// The largest size of a resource.
const MOST: u64 = 1 << 15;
const SOURCE: vk::ImageLayout = vk::ImageLayout::TRANSFER_SRC_OPTIMAL;
const TARGET: vk::ImageLayout = vk::ImageLayout::TRANSFER_DST_OPTIMAL;

struct Stage {
    fixture: Held<Fixture>,
    staging: (vk::Buffer, Allocation),
    readback: (vk::Buffer, Allocation),
    items: Vec<Item>,
    pool: Pool,
    random: Random,
    next_seed: u64,
    moved: u64,
}

fn buffer_info(size: u64) -> vk::BufferCreateInfo<'static> {
    vk::BufferCreateInfo::default().size(size).usage(COPIED | vk::BufferUsageFlags::STORAGE_BUFFER)
}

fn image_info(side: u32) -> vk::ImageCreateInfo<'static> {
    let usage = vk::ImageUsageFlags::TRANSFER_SRC | vk::ImageUsageFlags::TRANSFER_DST;
    square(side, usage | vk::ImageUsageFlags::SAMPLED)
}

impl Stage {
    fn new(profile: &'static sublet::sim::profiles::Profile, seed: u64) -> Self {
        let options = Options { large_block: 512 * KIB, ..Options::default() };
        let fixture = Fixture::with(sublet::sim::Gpu::new(profile), &options);
        // Dedicated, so that it is in none of the defragmented blocks.
        let window = |flags| {
            let flags = flags | Flags::DEDICATED_MEMORY | Flags::MAPPED;
            fixture.buffer(MOST, COPIED, &with_flags(MemoryUsage::Auto, flags)).unwrap()
        };
        let staging = window(Flags::HOST_ACCESS_SEQUENTIAL_WRITE);
        let readback = window(Flags::HOST_ACCESS_RANDOM);
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        // SAFETY: the create-info is valid.
        let memory_type =
            unsafe { fixture.allocator.find_memory_type_index_for_buffer_info(&buffer_info(64), &auto) }
                .unwrap();
        let info = PoolCreateInfo { block_size: 256 * KIB, ..PoolCreateInfo::new(memory_type) };
        let pool = fixture.pool(&info).unwrap();
        Self {
            fixture,
            staging,
            readback,
            items: Vec::new(),
            pool,
            random: Random::new(seed),
            next_seed: seed << 32,
            moved: 0,
        }
    }

    /// Creates a resource and writes the bytes of its seed.
    fn create(&mut self) {
        self.next_seed += 1;
        let (seed, random) = (self.next_seed, &mut self.random);
        let usage = random.pick(&[MemoryUsage::Auto, MemoryUsage::Auto, MemoryUsage::AutoPreferHost]);
        let mapped = Flags::HOST_ACCESS_RANDOM | Flags::MAPPED;
        let flags = random.pick(&[Flags::empty(), Flags::empty(), Flags::STRATEGY_MIN_TIME, mapped]);
        let pool = (random.below(3) == 0).then_some(&self.pool);
        let info =
            AllocationCreateInfo { pool, min_alignment: 1 << random.below(9), ..with_flags(usage, flags) };
        let fixture = &self.fixture;
        if random.below(4) == 0 && pool.is_none() {
            let side = random.pick(&[8, 16, 40, 64]);
            let Ok((image, allocation)) =
                fixture.image(&image_info(side), &with_flags(usage, Flags::empty()))
            else {
                return;
            };
            let size = u64::from(side * side * 4);
            fixture.allocator.copy_to_allocation(&bytes(seed, size), &mut self.staging.1, 0).unwrap();
            submit(fixture, |device, commands| {
                barrier(device, commands, image, vk::ImageLayout::UNDEFINED, TARGET);
                // SAFETY: the buffer has as many bytes as the image, and the named layout is the current one.
                unsafe {
                    device.cmd_copy_buffer_to_image(commands, self.staging.0, image, TARGET, &[texels(side)])
                };
                barrier(device, commands, image, TARGET, SOURCE);
            });
            self.items.push(Item { kind: Kind::Image(image, side), allocation, seed, size });
            return;
        }
        let size = random.size(15);
        // SAFETY: the create-info is valid.
        let made = unsafe { fixture.allocator.create_buffer(&buffer_info(size), &info) };
        let Ok((buffer, allocation)) = made else { return };
        fixture.allocator.copy_to_allocation(&bytes(seed, size), &mut self.staging.1, 0).unwrap();
        submit(fixture, |device, commands| {
            let region = vk::BufferCopy { src_offset: 0, dst_offset: 0, size };
            // SAFETY: both buffers are bound and have at least `size` bytes.
            unsafe { device.cmd_copy_buffer(commands, self.staging.0, buffer, &[region]) };
        });
        self.items.push(Item { kind: Kind::Buffer(buffer), allocation, seed, size });
    }

    fn destroy(&mut self, at: usize) {
        let Item { kind, allocation, .. } = self.items.swap_remove(at);
        match kind {
            Kind::Buffer(buffer) => self.fixture.destroy_buffer((buffer, allocation)),
            Kind::Image(image, _) => self.fixture.destroy_image((image, allocation)),
        }
    }

    fn compare(&mut self, at: usize) {
        let Item { kind, seed, size, allocation } = &self.items[at];
        submit(&self.fixture, |device, commands| match *kind {
            Kind::Buffer(buffer) => {
                let region = vk::BufferCopy { src_offset: 0, dst_offset: 0, size: *size };
                // SAFETY: both buffers are bound and have at least `size` bytes.
                unsafe { device.cmd_copy_buffer(commands, buffer, self.readback.0, &[region]) };
            }
            Kind::Image(image, side) => {
                // SAFETY: the buffer has as many bytes as the image, and the named layout is the current one.
                unsafe {
                    device.cmd_copy_image_to_buffer(commands, image, SOURCE, self.readback.0, &[texels(side)])
                };
            }
        });
        let mut seen = vec![0; *size as usize];
        self.fixture.allocator.copy_from_allocation(&self.readback.1, 0, &mut seen).unwrap();
        assert!(seen == bytes(*seed, *size), "{allocation:?} has lost its bytes");
        if let (Kind::Buffer(_), Some(pointer)) = (kind, allocation.mapped_pointer()) {
            let info = self.fixture.allocator.allocation_info(allocation).unwrap();
            assert_eq!(info.mapped_pointer, Some(pointer));
        }
    }

    fn fragment(&mut self) {
        while self.items.len() < 60 {
            let before = self.items.len();
            self.create();
            assert!(self.items.len() > before, "there is memory enough");
        }
        let left = 10 + self.random.below(20) as usize;
        while self.items.len() > left {
            let at = self.random.below(self.items.len() as u64) as usize;
            self.destroy(at);
        }
    }

    fn defragment(&mut self) {
        let pools = [&self.pool];
        let info = DefragmentationInfo {
            algorithm: self.random.pick(&ALGORITHMS),
            pools: if self.random.below(2) == 0 { &pools } else { &[] },
            memory_type_bits: if self.random.below(2) == 0 { !0 } else { 0 },
            max_bytes_per_pass: self.random.pick(&[0, 0, 3 * MOST]),
            max_allocations_per_pass: self.random.pick(&[0, 0, 5]),
            ..Default::default()
        };
        let allocator = &self.fixture.allocator;
        let mut defragmentation = allocator.begin_defragmentation(&info).unwrap();
        let mut passes = 0;
        while let Some(pass) = defragmentation.begin_pass() {
            passes += 1;
            assert!(passes < 1000, "it never ends");
            let mut copied = Vec::new();
            for moved in pass {
                let at = self.items.iter().position(|item| item.allocation.id() == moved.source()).unwrap();
                match self.random.below(16) {
                    0 => drop(moved),
                    1 => moved.ignore(),
                    _ => {
                        let new = match self.items[at].kind {
                            Kind::Buffer(_) => {
                                // SAFETY: the create-info is that of the buffer bound to the allocation.
                                Kind::Buffer(
                                    unsafe { moved.create_buffer(&buffer_info(self.items[at].size)) }
                                        .unwrap(),
                                )
                            }
                            Kind::Image(_, side) => {
                                // SAFETY: the create-info is that of the image bound to the allocation.
                                Kind::Image(unsafe { moved.create_image(&image_info(side)) }.unwrap(), side)
                            }
                        };
                        copied.push((at, moved, new));
                    }
                }
            }
            submit(&self.fixture, |device, commands| {
                copied.iter().for_each(|(at, _, new)| copy(device, commands, &self.items[*at], new));
            });
            for (at, moved, new) in copied {
                let item = &mut self.items[at];
                match std::mem::replace(&mut item.kind, new) {
                    // SAFETY: the device is idle.
                    Kind::Buffer(buffer) => unsafe { self.fixture.gpu.device().destroy_buffer(buffer, None) },
                    // SAFETY: as above.
                    Kind::Image(image, _) => unsafe { self.fixture.gpu.device().destroy_image(image, None) },
                }
                complete(moved, &mut item.allocation);
                self.moved += 1;
            }
        }
        drop(defragmentation);
        self.fixture.validate();
    }
}

fn copy(device: &ash::Device, commands: vk::CommandBuffer, from: &Item, to: &Kind) {
    match (&from.kind, to) {
        (&Kind::Buffer(from_buffer), &Kind::Buffer(to)) => {
            let region = vk::BufferCopy { src_offset: 0, dst_offset: 0, size: from.size };
            // SAFETY: both buffers are bound and have at least `size` bytes.
            unsafe { device.cmd_copy_buffer(commands, from_buffer, to, &[region]) };
        }
        (&Kind::Image(from, side), &Kind::Image(to, _)) => {
            barrier(device, commands, to, vk::ImageLayout::UNDEFINED, TARGET);
            let layers = texels(side).image_subresource;
            let region = vk::ImageCopy {
                src_subresource: layers,
                dst_subresource: layers,
                extent: texels(side).image_extent,
                ..Default::default()
            };
            // SAFETY: both images are bound, have the same create-info, and are in these layouts.
            unsafe { device.cmd_copy_image(commands, from, SOURCE, to, TARGET, &[region]) };
            barrier(device, commands, to, TARGET, SOURCE);
        }
        _ => panic!("a buffer became an image"),
    }
}

/// `SUBLET_CASES` sets the total number of cycles.
#[test]
fn nothing_loses_its_bytes() {
    let cycles = from_environment("SUBLET_CASES", 120);
    let profiles = sublet::sim::profiles::ALL;
    let each = cycles.div_ceil(profiles.len() as u64);
    on_every_profile(|profile| {
        let mut stage = Stage::new(profile, profile.name.len() as u64);
        for _ in 0..each {
            stage.fragment();
            stage.defragment();
            (0..stage.items.len()).for_each(|at| stage.compare(at));
        }
        while !stage.items.is_empty() {
            stage.destroy(0);
        }
        assert!(stage.moved > 4 * each, "{} moves in {each} cycles", stage.moved);
        let Stage { fixture, staging, readback, pool, .. } = stage;
        fixture.destroy_buffer(staging);
        fixture.destroy_buffer(readback);
        fixture.destroy_pool(pool);
    });
}

/// The end of a pass reclaims the empty leased ranges of idle threads, and frees the block that only they kept.
#[test]
fn a_pass_ends_with_what_idle_threads_hold() {
    let fixture = Fixture::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let info = PoolCreateInfo { block_size: 32 * MIB, empty_blocks_kept: 0, ..PoolCreateInfo::new(0) };
    let pool = fixture.pool(&info).unwrap();
    let in_pool = AllocationCreateInfo::in_pool(&pool);
    let large = fixture.memory(20 * MIB, 256, &in_pool).unwrap();
    let rest = fixture.memory(12 * MIB, 256, &in_pool).unwrap();
    let blocks = || fixture.allocator.pool_statistics(&pool).unwrap().block_count;
    let small = std::thread::scope(|scope| {
        let (allocated, receiver) = std::sync::mpsc::channel();
        // The thread idles until this end is dropped. If it ended earlier, it would hold no leased range.
        let (_idle, end) = std::sync::mpsc::channel::<()>();
        let (fixture, pool, in_pool) = (&fixture, &pool, &in_pool);
        scope.spawn(move || {
            assert!(fixture.allocator.attach_to_pool(pool).unwrap());
            // The first allocation creates the block. The second is in a range of it that the thread leases.
            let first = fixture.memory(64 * KIB, 256, in_pool).unwrap();
            let second = fixture.memory(64 * KIB, 256, in_pool).unwrap();
            fixture.free(first);
            allocated.send(second).unwrap();
            assert!(end.recv().is_err());
        });
        let mut small = receiver.recv().unwrap();
        assert_eq!(blocks(), 2);
        fixture.free(rest);
        let info = DefragmentationInfo { pools: &[pool], ..DefragmentationInfo::default() };
        let mut defragmentation = fixture.allocator.begin_defragmentation(&info).unwrap();
        let pass = defragmentation.begin_pass().unwrap();
        assert_eq!(pass.moves().len(), 1);
        for moved in pass {
            complete(moved, &mut small);
        }
        assert_eq!(small.memory(), large.memory());
        assert_eq!(blocks(), 2, "the thread keeps its empty leased range until the pass ends");
        let statistics = defragmentation.end();
        assert_eq!((blocks(), statistics.blocks_freed, statistics.bytes_freed), (1, 1, 32 * MIB));
        small
    });
    fixture.free_all([large, small]);
    fixture.destroy_pool(pool);
}
