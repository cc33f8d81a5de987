//! Custom pools.

use ash::vk;
use sublet::{
    Algorithm, AllocationCreateInfo, AllocationError, CreateError, MemoryUsage, Pool, PoolCreateFlags,
    PoolCreateInfo,
};

use crate::{Buffer, Fixture, on_each_device};

const BLOCK: u64 = 1 << 20;

/// Creates a pool for storage buffers.
fn pool(fixture: &Fixture<'_>, change: impl FnOnce(&mut PoolCreateInfo<'_>)) -> Pool {
    let sample = vk::BufferCreateInfo::default().size(1).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
    let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
    // SAFETY: the create-info is valid.
    let memory_type =
        unsafe { fixture.allocator.find_memory_type_index_for_buffer_info(&sample, &auto) }.unwrap();
    let mut info = PoolCreateInfo { block_size: BLOCK, ..PoolCreateInfo::new(memory_type) };
    change(&mut info);
    fixture.allocator.create_pool(&info).unwrap()
}

fn take(fixture: &Fixture<'_>, pool: &Pool, size: u64) -> Result<Buffer, CreateError> {
    let buffer_info = vk::BufferCreateInfo::default().size(size).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
    // SAFETY: the create-info is valid.
    unsafe { fixture.allocator.create_buffer(&buffer_info, &AllocationCreateInfo::in_pool(pool)) }
}

fn close(fixture: &Fixture<'_>, pool: Pool) {
    // SAFETY: the device does not use its memory.
    let leaks = unsafe { fixture.allocator.destroy_pool(pool) }.unwrap();
    assert!(leaks.is_empty(), "{leaks:?}");
}

fn is_full(outcome: &Result<Buffer, CreateError>) -> bool {
    matches!(outcome, Err(CreateError::Allocation(AllocationError::Full { .. })))
}

#[test]
fn a_fixed_pool_fills_up_says_so_and_empties() {
    on_each_device(|fixture| {
        for algorithm in [Algorithm::Tlsf, Algorithm::Buddy, Algorithm::Linear] {
            let pool = pool(fixture, |info| {
                (info.algorithm, info.min_block_count, info.max_block_count) = (algorithm, 1, 2);
            });
            assert_eq!(fixture.allocator.pool_statistics(&pool).unwrap().block_count, 1);
            let mut buffers = Vec::new();
            let refused = loop {
                match take(fixture, &pool, 200_000) {
                    Ok(buffer) => buffers.push(buffer),
                    refused => break refused,
                }
            };
            assert!(is_full(&refused), "{refused:?}");
            // Buddy rounds 200,000 up to 256 KiB.
            assert_eq!(buffers.len(), if algorithm == Algorithm::Buddy { 8 } else { 10 }, "{algorithm:?}");
            let held = fixture.allocator.pool_statistics(&pool).unwrap();
            assert_eq!((held.block_count, held.block_bytes), (2, 2 * BLOCK));
            fixture.allocator.validate();
            buffers.into_iter().for_each(|buffer| fixture.destroy(buffer));
            assert_eq!(fixture.allocator.pool_statistics(&pool).unwrap().allocation_count, 0);
            fixture.allocator.trim();
            assert_eq!(
                fixture.allocator.pool_statistics(&pool).unwrap().block_count,
                1,
                "the least that it has"
            );
            close(fixture, pool);
        }
    });
}

#[test]
fn images_in_a_pool_with_and_without_granularity() {
    on_each_device(|fixture| {
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        let texture = crate::resources::plain(64);
        // SAFETY: the create-info is valid.
        let memory_type =
            unsafe { fixture.allocator.find_memory_type_index_for_image_info(&texture, &auto) }.unwrap();
        for flags in [PoolCreateFlags::empty(), PoolCreateFlags::IGNORE_BUFFER_IMAGE_GRANULARITY] {
            let info = PoolCreateInfo {
                flags,
                min_allocation_alignment: 1024,
                priority: 0.75,
                ..PoolCreateInfo::new(memory_type)
            };
            let pool = fixture.allocator.create_pool(&info).unwrap();
            let images: Vec<_> =
                (0..10).map(|_| fixture.image(&texture, &AllocationCreateInfo::in_pool(&pool))).collect();
            assert!(images.iter().all(|(_, allocation)| allocation.offset() % 1024 == 0));
            images.into_iter().for_each(|image| fixture.destroy_image(image));
            close(fixture, pool);
        }
    });
}
