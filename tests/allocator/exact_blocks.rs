//! Blocks that end within a granularity page: a resource at the end of the block has that page to itself.

use ash::vk;
use sublet::sim::Gpu;
use sublet::{
    Algorithm, Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError,
    CreateError, DefragmentationInfo, FitPlace, Pool, PoolCreateInfo,
};

use crate::common::*;

const SAMPLED: vk::ImageUsageFlags = vk::ImageUsageFlags::SAMPLED;
const ALGORITHMS: [Algorithm; 3] = [Algorithm::Tlsf, Algorithm::Linear, Algorithm::Buddy];

/// Returns the requirements of an image and the first memory type that supports it, or `None` if the image needs
/// dedicated memory.
fn needs(fixture: &Fixture, info: &vk::ImageCreateInfo<'_>) -> Option<(vk::MemoryRequirements, u32)> {
    let device = fixture.gpu.device();
    // SAFETY: the create-info is valid.
    let image = unsafe { device.create_image(info, None) }.unwrap();
    // SAFETY: the image is live.
    let needed = unsafe { device.get_image_memory_requirements(image) };
    // SAFETY: the device does not use it.
    unsafe { device.destroy_image(image, None) };
    let memory_type =
        fixture.types().into_iter().find(|at| needed.memory_type_bits & (1 << at) != 0).unwrap();
    // SAFETY: the create-info is valid.
    let fit = unsafe { fixture.allocator.would_image_fit(info, &in_type(memory_type)) }.unwrap();
    let is_shared = matches!(fit.place, FitPlace::NewBlock { .. });
    (is_shared && !fixture.properties(memory_type).contains(LAZY)).then_some((needed, memory_type))
}

fn pool(fixture: &Fixture, memory_type: u32, algorithm: Algorithm, block_size: u64) -> Pool {
    let info =
        PoolCreateInfo { block_size, algorithm, max_block_count: 1, ..PoolCreateInfo::new(memory_type) };
    fixture.pool(&info).unwrap()
}

/// VMA 324 and 499. A buddy engine divides by powers of two, so its block size must be one.
#[test]
fn a_block_as_large_as_its_only_image_holds_it() {
    on_every_gpu(|fixture| {
        for side in [4, 16, 31, 64, 70, 128, 300] {
            let info = square(side, SAMPLED);
            let Some((needed, memory_type)) = needs(&fixture, &info) else { continue };
            for algorithm in ALGORITHMS {
                exact_pool(&fixture, &info, needed.size, memory_type, algorithm);
            }
        }
    });
}

fn exact_pool(
    fixture: &Fixture,
    info: &vk::ImageCreateInfo<'_>,
    needed: u64,
    memory_type: u32,
    algorithm: Algorithm,
) {
    let exact = pool(fixture, memory_type, algorithm, needed);
    let in_pool = AllocationCreateInfo::in_pool(&exact);
    // SAFETY: the create-info is valid.
    let fit = unsafe { fixture.allocator.would_image_fit(info, &in_pool) };
    if algorithm == Algorithm::Buddy && !needed.is_power_of_two() {
        let too_small = AllocationError::BlockTooSmall { size: needed, block_size: needed };
        assert_eq!(fixture.image(info, &in_pool).unwrap_err(), CreateError::Allocation(too_small));
        assert_eq!(fit.unwrap_err(), CreateError::Allocation(too_small));
    } else {
        assert_eq!(fit.unwrap().place, FitPlace::NewBlock { size: needed });
        for _ in 0..3 {
            let image = fixture.image(info, &in_pool).unwrap();
            assert_eq!((image.1.offset(), fixture.memory_size(&image.1)), (0, needed));
            let error = fixture.image(info, &in_pool).unwrap_err();
            let is_full = matches!(
                error,
                CreateError::Allocation(AllocationError::Full { size, block_count: 1, .. }) if size == needed
            );
            assert!(is_full, "{algorithm:?}: {error:?}");
            // The last page has no space left for a buffer of any size.
            let error = fixture.memory(1, 1, &in_pool).unwrap_err();
            assert!(matches!(error, AllocationError::Full { size: 1, .. }), "{algorithm:?}: {error:?}");
            fixture.validate();
            fixture.destroy_image(image);
        }
    }
    // A block that is one byte shorter is too small, and the error has the requested size.
    if needed > 1 {
        let short = pool(fixture, memory_type, algorithm, needed - 1);
        let error = fixture.image(info, &AllocationCreateInfo::in_pool(&short)).unwrap_err();
        let block_size = needed - 1;
        let too_small = AllocationError::BlockTooSmall { size: needed, block_size };
        assert_eq!(error, CreateError::Allocation(too_small));
        fixture.destroy_pool(short);
    }
    fixture.destroy_pool(exact);
}

/// Several images repeatedly fill a block to its last byte, from below and from above.
#[test]
fn the_last_image_ends_with_the_block() {
    on_every_gpu(|fixture| {
        let page = fixture.profile().limits.buffer_image_granularity;
        for side in [16, 31, 70] {
            let info = square(side, SAMPLED);
            let Some((needed, memory_type)) = needs(&fixture, &info) else { continue };
            let whole = needed.size.next_multiple_of(page.max(needed.alignment));
            for (algorithm, flags) in [
                (Algorithm::Tlsf, Flags::empty()),
                (Algorithm::Tlsf, Flags::STRATEGY_MIN_OFFSET),
                (Algorithm::Linear, Flags::empty()),
            ] {
                let pool = pool(&fixture, memory_type, algorithm, 3 * whole + needed.size);
                let in_pool = AllocationCreateInfo { flags, ..AllocationCreateInfo::in_pool(&pool) };
                let mut images: Vec<_> = (0..4).map(|_| fixture.image(&info, &in_pool).unwrap()).collect();
                for _ in 0..8 {
                    assert!(fixture.image(&info, &in_pool).is_err());
                    let ends = images.iter().map(|(_, memory)| memory.offset() + memory.size());
                    assert_eq!(ends.max(), Some(3 * whole + needed.size));
                    let last = (0..4).max_by_key(|&at| images[at].1.offset()).unwrap();
                    fixture.destroy_image(images.swap_remove(last));
                    images.push(fixture.image(&info, &in_pool).unwrap());
                    fixture.validate();
                }
                images.into_iter().for_each(|image| fixture.destroy_image(image));
                fixture.destroy_pool(pool);
            }
            let pool = pool(&fixture, memory_type, Algorithm::Linear, needed.size);
            let upper =
                AllocationCreateInfo { flags: Flags::UPPER_ADDRESS, ..AllocationCreateInfo::in_pool(&pool) };
            let image = fixture.image(&info, &upper).unwrap();
            assert_eq!(image.1.offset(), 0);
            fixture.destroy_image(image);
            fixture.destroy_pool(pool);
        }
    });
}

/// The reported size includes neither the debug margin nor the rounding to pages and powers of two.
#[test]
fn an_error_has_the_size_that_was_asked_for() {
    on_every_profile(|profile| {
        for margin in [0, 64] {
            let gpu = Gpu::new(profile);
            let debug = sublet::DebugSettings { margin, ..Default::default() };
            let info = sublet::AllocatorCreateInfo { debug, flags: enabled(&gpu), ..create_info(&gpu) };
            // SAFETY: the GPU outlives the allocator.
            let allocator = unsafe { sublet::Allocator::new(&info) }.unwrap();
            let fixture = hold(Fixture { allocator, gpu });
            for algorithm in ALGORITHMS {
                let pool = pool(&fixture, fixture.types()[0], algorithm, 900 * KIB);
                let in_pool = AllocationCreateInfo::in_pool(&pool);
                let held = fixture.memory(450 * KIB + 1, 1, &in_pool).unwrap();
                for flags in [Flags::empty(), Flags::NEVER_ALLOCATE] {
                    let info = AllocationCreateInfo { flags, ..in_pool };
                    for size in [450 * KIB + 1, 900 * KIB + 1] {
                        let requirements =
                            vk::MemoryRequirements { size, alignment: 1, memory_type_bits: !0 };
                        let looked = fixture.allocator.would_fit(&requirements, &info).unwrap_err();
                        for error in [fixture.memory(size, 1, &info).unwrap_err(), looked] {
                            let reported = match error {
                                AllocationError::Full { size, .. } if size < 900 * KIB => size,
                                AllocationError::BlockTooSmall { size, block_size } => {
                                    assert_eq!(block_size, 900 * KIB);
                                    size
                                }
                                other => panic!("{other:?}"),
                            };
                            assert_eq!(reported, size, "{algorithm:?}, {margin}");
                        }
                    }
                }
                fixture.free(held);
                fixture.destroy_pool(pool);
            }
        }
    });
}

enum Kind {
    Buffer(vk::Buffer),
    Image(vk::Image, u32),
}

/// Buffers and images are created, freed and moved in blocks that end within a page. The simulated driver reports a
/// buffer and an image in the same page.
#[test]
fn nothing_shares_a_page_with_what_ends_a_block() {
    let coarse = having(|profile| profile.limits.buffer_image_granularity >= 1024);
    on_profiles(coarse, |profile| {
        let page = profile.limits.buffer_image_granularity;
        for (algorithm, seed) in [(Algorithm::Tlsf, 1), (Algorithm::Tlsf, 2), (Algorithm::Linear, 3)] {
            let fixture = Fixture::new(profile);
            let Some((_, memory_type)) = needs(&fixture, &square(16, SAMPLED)) else { continue };
            let info = PoolCreateInfo {
                block_size: 6 * page + page / 2 + 512,
                algorithm,
                max_block_count: 3,
                ..PoolCreateInfo::new(memory_type)
            };
            let pool = fixture.pool(&info).unwrap();
            let in_pool = AllocationCreateInfo::in_pool(&pool);
            let usage = vk::BufferUsageFlags::STORAGE_BUFFER;
            let mut random = Random::new(seed);
            let mut held: Vec<(Kind, Allocation)> = Vec::new();
            let mut at_the_end = 0;
            for turn in 0..from_environment("SUBLET_CASES", 300) {
                if random.below(5) < 2 && !held.is_empty() {
                    let (kind, allocation) = held.swap_remove(random.below(held.len() as u64) as usize);
                    match kind {
                        Kind::Buffer(buffer) => fixture.destroy_buffer((buffer, allocation)),
                        Kind::Image(image, _) => fixture.destroy_image((image, allocation)),
                    }
                } else if random.below(2) == 0 {
                    if let Ok((buffer, allocation)) = fixture.buffer(random.size(12), usage, &in_pool) {
                        held.push((Kind::Buffer(buffer), allocation));
                    }
                } else {
                    let side = random.pick(&[4, 8, 12, 16, 20, 32, 40]);
                    if let Ok((image, allocation)) = fixture.image(&square(side, SAMPLED), &in_pool) {
                        let end = allocation.offset() + allocation.size();
                        at_the_end += u64::from(end > 6 * page);
                        held.push((Kind::Image(image, side), allocation));
                    }
                }
                if turn % 20 == 0 && algorithm == Algorithm::Tlsf {
                    compact(&fixture, &pool, &mut held);
                }
                fixture.allocator.validate();
            }
            assert!(at_the_end > 0, "no image ended within the last page");
            for (kind, allocation) in held {
                match kind {
                    Kind::Buffer(buffer) => fixture.destroy_buffer((buffer, allocation)),
                    Kind::Image(image, _) => fixture.destroy_image((image, allocation)),
                }
            }
            fixture.destroy_pool(pool);
        }
    });
}

/// Moves every movable resource and binds a new one at its destination.
fn compact(fixture: &Fixture, pool: &Pool, held: &mut [(Kind, Allocation)]) {
    let device = fixture.gpu.device();
    let info = DefragmentationInfo { pools: &[pool], ..DefragmentationInfo::default() };
    let mut defragmentation = fixture.allocator.begin_defragmentation(&info).unwrap();
    while let Some(pass) = defragmentation.begin_pass() {
        for moved in pass {
            let (kind, allocation) = held.iter_mut().find(|(_, it)| it.id() == moved.source()).unwrap();
            let (memory, offset) = (moved.memory(), moved.offset());
            let (old_buffer, old_image) = match *kind {
                Kind::Buffer(old) => {
                    let size = allocation.size();
                    let info = vk::BufferCreateInfo::default()
                        .size(size)
                        .usage(vk::BufferUsageFlags::STORAGE_BUFFER);
                    // SAFETY: the create-info is valid.
                    let new = unsafe { device.create_buffer(&info, None) }.unwrap();
                    // SAFETY: the destination has the size and alignment of the source.
                    unsafe { device.bind_buffer_memory(new, memory, offset) }.unwrap();
                    *kind = Kind::Buffer(new);
                    (old, vk::Image::null())
                }
                Kind::Image(old, side) => {
                    // SAFETY: the create-info is valid.
                    let new = unsafe { device.create_image(&square(side, SAMPLED), None) }.unwrap();
                    // SAFETY: the destination has the size and alignment of the source.
                    unsafe { device.bind_image_memory(new, memory, offset) }.unwrap();
                    *kind = Kind::Image(new, side);
                    (vk::Buffer::null(), old)
                }
            };
            // SAFETY: the device does not use the moved resources.
            unsafe { device.destroy_buffer(old_buffer, None) };
            // SAFETY: as above.
            unsafe { device.destroy_image(old_image, None) };
            // SAFETY: the device has never used it.
            unsafe { moved.complete(allocation) }.unwrap();
        }
    }
    defragmentation.end();
}
