//! Flags that have no test file of their own: MAPPED, DONT_BIND, strategies, minimum alignment.

use ash::vk;
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError, MemoryUsage, PoolCreateInfo,
};

use crate::common::*;

const STORAGE: vk::BufferUsageFlags = vk::BufferUsageFlags::STORAGE_BUFFER;

#[test]
fn dont_bind_leaves_binding_to_the_program() {
    on_every_gpu(|fixture| {
        let unbound = with_flags(MemoryUsage::Auto, Flags::DONT_BIND);
        let (buffer, allocation) = fixture.buffer(KIB, STORAGE, &unbound).unwrap();
        let (image, image_allocation) =
            fixture.image(&square(16, vk::ImageUsageFlags::SAMPLED), &unbound).unwrap();
        assert_eq!(fixture.gpu.calls("vkBindBufferMemory"), 0);
        assert_eq!(fixture.gpu.calls("vkBindImageMemory"), 0);
        // The driver would report a second bind.
        // SAFETY: the memory was allocated for the buffer, which is not bound.
        unsafe { fixture.allocator.bind_buffer_memory(&allocation, 0, buffer) }.unwrap();
        // SAFETY: the memory was allocated for the image, which is not bound.
        unsafe { fixture.allocator.bind_image_memory(&image_allocation, 0, image) }.unwrap();
        fixture.gpu.assert_silent();
        fixture.destroy_buffer((buffer, allocation));
        fixture.destroy_image((image, image_allocation));
    });
}

#[test]
fn binding_at_an_offset() {
    on_every_gpu(|fixture| {
        let info = vk::BufferCreateInfo::default().size(KIB).usage(STORAGE);
        // SAFETY: the create-info is valid.
        let buffer = unsafe { fixture.gpu.device().create_buffer(&info, None) }.unwrap();
        // SAFETY: the buffer is live.
        let requirements = unsafe { fixture.gpu.device().get_buffer_memory_requirements(buffer) };
        let twice = vk::MemoryRequirements { size: 2 * requirements.size, ..requirements };
        let allocation = fixture
            .allocator
            .allocate_memory(&twice, &AllocationCreateInfo::new(MemoryUsage::GpuOnly))
            .unwrap();
        // SAFETY: the memory is large enough for two such buffers, and this one is not bound.
        unsafe { fixture.allocator.bind_buffer_memory(&allocation, requirements.size, buffer) }.unwrap();
        // A second buffer in front of it: the driver would report an overlap.
        // SAFETY: the create-info is valid.
        let front = unsafe { fixture.gpu.device().create_buffer(&info, None) }.unwrap();
        // SAFETY: the buffer is not bound, and the range in front of the other one is large enough.
        unsafe { fixture.allocator.bind_buffer_memory(&allocation, 0, front) }.unwrap();
        fixture.gpu.assert_silent();
        // SAFETY: the device does not use it.
        unsafe { fixture.gpu.device().destroy_buffer(front, None) };
        fixture.destroy_buffer((buffer, allocation));

        if vk::api_version_minor(fixture.gpu.api_version()) > 0 {
            // SAFETY: the create-info is valid.
            let buffer = unsafe { fixture.gpu.device().create_buffer(&info, None) }.unwrap();
            let own = with_flags(MemoryUsage::GpuOnly, Flags::DEDICATED_MEMORY);
            // SAFETY: the buffer is live.
            let allocation = unsafe { fixture.allocator.allocate_memory_for_buffer(buffer, &own) }.unwrap();
            let group = vk::BindBufferMemoryDeviceGroupInfo::default();
            // SAFETY: the memory was allocated for the buffer, which is not bound, and the chain is valid.
            unsafe {
                fixture.allocator.bind_buffer_memory2(
                    &allocation,
                    0,
                    buffer,
                    std::ptr::from_ref(&group).cast(),
                )
            }
            .unwrap();
            assert_eq!(fixture.gpu.calls("vkBindBufferMemory2"), 1);
            fixture.destroy_buffer((buffer, allocation));
        }
    });
}

#[test]
fn mapped_allocations_are_mapped_where_the_host_sees_them() {
    on_every_gpu(|fixture| {
        for memory_type in fixture.types() {
            let visible = fixture.properties(memory_type).contains(HOST_VISIBLE);
            for extra in [Flags::empty(), Flags::DEDICATED_MEMORY] {
                let info = in_type_with(memory_type, Flags::MAPPED | extra);
                let first = fixture.memory(1000, 16, &info).unwrap();
                let second = fixture.memory(1000, 16, &info).unwrap();
                assert_eq!(first.mapped_pointer().is_some(), visible, "type {memory_type}");
                assert_eq!(second.mapped_pointer().is_some(), visible);
                if let (Some(one), Some(other)) = (first.mapped_pointer(), second.mapped_pointer()) {
                    if extra.is_empty() {
                        let distance = (other.as_ptr() as u64).wrapping_sub(one.as_ptr() as u64);
                        assert_eq!(distance, second.offset().wrapping_sub(first.offset()));
                        assert_eq!(fixture.gpu.live().mapped, 1, "one mapping for the block");
                    }
                    assert_eq!(fixture.allocator.allocation_info(&first).unwrap().mapped_pointer, Some(one));
                }
                let plain = fixture.memory(1000, 16, &in_type(memory_type)).unwrap();
                assert!(plain.mapped_pointer().is_none(), "not asked for");
                fixture.free_all([first, second, plain]);
                fixture.allocator.trim();
            }
        }
    });
}

#[test]
fn min_offset_gives_the_lowest_place() {
    on_every_gpu(|fixture| {
        let info = PoolCreateInfo {
            block_size: 64 * MIB,
            max_block_count: 1,
            flags: sublet::PoolCreateFlags::IGNORE_BUFFER_IMAGE_GRANULARITY,
            ..PoolCreateInfo::new(0)
        };
        let pool = fixture.pool(&info).unwrap();
        let in_pool = AllocationCreateInfo::in_pool(&pool);
        let lowest = AllocationCreateInfo { flags: Flags::STRATEGY_MIN_OFFSET, ..in_pool };
        let mut random = Random::new(3);
        let atom = fixture.profile().limits.non_coherent_atom_size;
        // All sizes are whole atoms, so that no gap is too small to be used.
        let mut held: Vec<_> =
            (0..400).map(|_| fixture.memory((1 + random.below(9)) * atom, 1, &lowest).unwrap()).collect();
        for _ in 0..200 {
            let at = random.below(held.len() as u64) as usize;
            fixture.free(held.swap_remove(at));
        }
        for _ in 0..200 {
            let size = (1 + random.below(9)) * atom;
            // The expected offset: the first sufficient gap between the live ranges.
            let mut ranges: Vec<_> = held.iter().map(|it| (it.offset(), it.offset() + it.size())).collect();
            ranges.sort_unstable();
            let mut expected = 0;
            for (begin, end) in ranges {
                if begin - expected >= size {
                    break;
                }
                expected = end;
            }
            let piece = fixture.memory(size, 1, &lowest).unwrap();
            assert_eq!(piece.offset(), expected);
            held.push(piece);
        }
        fixture.free_all(held);
        fixture.destroy_pool(pool);
    });
}

/// The holes have one and two units and the request has one, so each strategy chooses a different hole.
#[test]
fn min_memory_takes_the_smallest_hole() {
    on_every_gpu(|fixture| {
        let info = PoolCreateInfo { block_size: 64 * MIB, max_block_count: 1, ..PoolCreateInfo::new(0) };
        let pool = fixture.pool(&info).unwrap();
        let in_pool = AllocationCreateInfo::in_pool(&pool);
        let unit = 256 * KIB;
        let pieces: Vec<_> = [2, 1, 1, 1, 4, 1]
            .into_iter()
            .map(|units| {
                let lowest = AllocationCreateInfo { flags: Flags::STRATEGY_MIN_OFFSET, ..in_pool };
                fixture.memory(units * unit, 1, &lowest).unwrap()
            })
            .collect();
        // Holes: 2 units at 0, 1 unit at 3, 4 units at 5, and the rest of the block.
        let mut held = Vec::new();
        for (at, piece) in pieces.into_iter().enumerate() {
            if [0, 2, 4].contains(&at) {
                fixture.free(piece);
            } else {
                held.push(piece);
            }
        }
        let place = |flags| {
            let piece = fixture.memory(unit, 1, &AllocationCreateInfo { flags, ..in_pool }).unwrap();
            let offset = piece.offset() / unit;
            fixture.free(piece);
            offset
        };
        assert_eq!(place(Flags::STRATEGY_MIN_MEMORY), 3);
        assert_eq!(place(Flags::STRATEGY_MIN_OFFSET), 0);
        fixture.free_all(held);
        fixture.destroy_pool(pool);
    });
}

#[test]
fn minimum_alignments_are_kept() {
    on_every_gpu(|fixture| {
        for memory_type in fixture.types() {
            let mut held = Vec::new();
            for exponent in 0..16 {
                let aligned = AllocationCreateInfo { min_alignment: 1 << exponent, ..in_type(memory_type) };
                let piece = fixture.memory(100, 1, &aligned).unwrap();
                assert_eq!(piece.offset() % (1 << exponent), 0);
                held.push(piece);
                let piece = fixture.memory(100, 1 << exponent, &in_type(memory_type)).unwrap();
                assert_eq!(piece.offset() % (1 << exponent), 0);
                held.push(piece);
            }
            // An alignment of 0 means none.
            held.push(fixture.memory(100, 0, &in_type(memory_type)).unwrap());
            fixture.free_all(held);
            let info = PoolCreateInfo { min_allocation_alignment: 4096, ..PoolCreateInfo::new(memory_type) };
            let pool = fixture.pool(&info).unwrap();
            for _ in 0..3 {
                held = (0..4)
                    .map(|_| fixture.memory(9, 1, &AllocationCreateInfo::in_pool(&pool)).unwrap())
                    .collect();
                assert!(held.iter().all(|it| it.offset() % 4096 == 0));
                fixture.free_all(held);
            }
            fixture.destroy_pool(pool);
            fixture.allocator.trim();
        }
    });
}

#[test]
fn upper_addresses_are_for_linear_pools() {
    on_every_gpu(|fixture| {
        let before = fixture.snapshot();
        for size in [KIB, GIB / 2] {
            let error = fixture.memory(size, 1, &in_type_with(0, Flags::UPPER_ADDRESS)).unwrap_err();
            assert!(matches!(error, AllocationError::UpperAddress { .. }), "{error:?}");
            assert_eq!(error.vk_result(), vk::Result::ERROR_FEATURE_NOT_PRESENT);
        }
        assert_eq!(fixture.snapshot(), before);
    });
}

#[test]
fn user_data_and_names_stay_with_the_allocation() {
    on_every_gpu(|fixture| {
        for flags in [Flags::empty(), Flags::DEDICATED_MEMORY] {
            let info = AllocationCreateInfo { user_data: 42, name: Some("first"), ..in_type_with(0, flags) };
            let mut allocation = fixture.memory(KIB, 1, &info).unwrap();
            let name = |allocation: &_| fixture.allocator.allocation_info(allocation).unwrap().name;
            assert_eq!(allocation.user_data(), 42);
            assert_eq!(name(&allocation).as_deref(), Some("first"));
            allocation.set_user_data(u64::MAX);
            fixture.allocator.set_allocation_name(&allocation, Some("second")).unwrap();
            let info = fixture.allocator.allocation_info(&allocation).unwrap();
            assert_eq!((info.user_data, info.name.as_deref()), (u64::MAX, Some("second")));
            assert_eq!((info.size, info.offset), (allocation.size(), allocation.offset()));
            assert_eq!(info.memory_size, fixture.memory_size(&allocation));
            assert_eq!(info.memory_type_index, 0);
            fixture.allocator.set_allocation_name(&allocation, None).unwrap();
            assert_eq!(name(&allocation), None);
            fixture.allocator.set_allocation_name(&allocation, Some("third")).unwrap();
            let place = (allocation.memory(), allocation.offset());
            fixture.free(allocation);
            // The next allocation at that place does not inherit the name.
            let next = fixture.memory(KIB, 1, &in_type_with(0, flags)).unwrap();
            if flags.is_empty() {
                assert_eq!((next.memory(), next.offset()), place);
            }
            assert_eq!(name(&next), None);
            fixture.free(next);
        }
    });
}
