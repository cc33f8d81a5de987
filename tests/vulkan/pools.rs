//! Custom pools, with all modes of the linear algorithm.

use ash::vk;
use sublet::{
    Algorithm, AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError, CreateError,
    MemoryUsage, Pool, PoolCreateFlags, PoolCreateInfo,
};
use sublet_examples::Random;

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

fn take(fixture: &Fixture<'_>, pool: &Pool, size: u64, flags: Flags) -> Result<Buffer, CreateError> {
    let buffer_info = vk::BufferCreateInfo::default().size(size).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
    let info = AllocationCreateInfo { flags, ..AllocationCreateInfo::in_pool(pool) };
    // SAFETY: the create-info is valid.
    unsafe { fixture.allocator.create_buffer(&buffer_info, &info) }
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
                match take(fixture, &pool, 200_000, Flags::empty()) {
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

fn one_block(info: &mut PoolCreateInfo<'_>) {
    (info.algorithm, info.max_block_count) = (Algorithm::Linear, 1);
}

#[test]
fn linear_freed_at_once() {
    on_each_device(|fixture| {
        let pool = pool(fixture, |info| info.algorithm = Algorithm::Linear);
        let mut random = Random::new(5);
        for _ in 0..3 {
            let mut loaded: Vec<_> = (0..50)
                .map(|_| take(fixture, &pool, random.within(1..100_000), Flags::empty()).unwrap())
                .collect();
            assert_eq!(loaded[0].1.offset(), 0, "an emptied pool starts anew");
            assert!(fixture.allocator.pool_statistics(&pool).unwrap().block_count > 1);
            while !loaded.is_empty() {
                fixture.destroy(loaded.swap_remove(random.index(loaded.len())));
            }
        }
        close(fixture, pool);
    });
}

#[test]
fn linear_as_a_stack() {
    on_each_device(|fixture| {
        let pool = pool(fixture, one_block);
        let bottom = take(fixture, &pool, 1_000, Flags::empty()).unwrap();
        let mut places = Vec::new();
        for _ in 0..3 {
            let mut scope: Vec<_> =
                (1..10).map(|i| take(fixture, &pool, i * 1_000, Flags::empty()).unwrap()).collect();
            places.push(scope.iter().map(|(_, allocation)| allocation.offset()).collect::<Vec<_>>());
            while let Some(top) = scope.pop() {
                fixture.destroy(top);
            }
        }
        assert!(places.windows(2).all(|pair| pair[0] == pair[1]), "{places:?}");
        fixture.destroy(bottom);
        close(fixture, pool);
    });
}

#[test]
fn linear_as_a_double_stack() {
    on_each_device(|fixture| {
        let pool = pool(fixture, one_block);
        let mut lower = vec![take(fixture, &pool, 300_000, Flags::empty()).unwrap()];
        let mut upper = vec![take(fixture, &pool, 300_000, Flags::UPPER_ADDRESS).unwrap()];
        lower.push(take(fixture, &pool, 100_000, Flags::empty()).unwrap());
        upper.push(take(fixture, &pool, 100_000, Flags::UPPER_ADDRESS).unwrap());
        assert!(lower[0].1.offset() < lower[1].1.offset() && lower[1].1.offset() < upper[1].1.offset());
        assert!(upper[1].1.offset() < upper[0].1.offset());
        assert!(is_full(&take(fixture, &pool, 300_000, Flags::empty())), "they would meet");
        assert!(is_full(&take(fixture, &pool, 300_000, Flags::UPPER_ADDRESS)), "they would meet");
        fixture.destroy(upper.pop().unwrap());
        fixture.destroy(upper.pop().unwrap());
        lower.push(take(fixture, &pool, 500_000, Flags::empty()).unwrap());
        while let Some(top) = lower.pop() {
            fixture.destroy(top);
        }
        close(fixture, pool);
    });
}

#[test]
fn linear_as_a_ring() {
    on_each_device(|fixture| {
        let pool = pool(fixture, one_block);
        let mut in_flight = std::collections::VecDeque::new();
        let (mut wraps, mut last) = (0, 0);
        for _ in 0..100 {
            if in_flight.len() == 3 {
                fixture.destroy(in_flight.pop_front().unwrap());
            }
            let next = take(fixture, &pool, 250_000, Flags::empty()).unwrap();
            wraps += u32::from(next.1.offset() < last);
            last = next.1.offset();
            in_flight.push_back(next);
        }
        assert!(wraps > 20, "{wraps}");
        assert_eq!(fixture.allocator.pool_statistics(&pool).unwrap().block_count, 1);
        in_flight.into_iter().for_each(|buffer| fixture.destroy(buffer));
        close(fixture, pool);
    });
}

#[test]
fn an_upper_address_needs_a_linear_pool_of_one_block() {
    on_each_device(|fixture| {
        for (algorithm, max_block_count) in
            [(Algorithm::Linear, 2), (Algorithm::Linear, 0), (Algorithm::Tlsf, 1)]
        {
            let pool =
                pool(fixture, |info| (info.algorithm, info.max_block_count) = (algorithm, max_block_count));
            let refused = take(fixture, &pool, 1_000, Flags::UPPER_ADDRESS);
            assert!(
                matches!(refused, Err(CreateError::Allocation(AllocationError::UpperAddress { .. }))),
                "{refused:?}"
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
