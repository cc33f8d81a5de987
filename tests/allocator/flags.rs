//! Flags that have no test file of their own: MAPPED, DONT_BIND, strategies, minimum alignment.

use ash::vk;
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError, MemoryUsage, PoolCreateInfo,
};

use crate::common::*;

const STORAGE: vk::BufferUsageFlags = vk::BufferUsageFlags::STORAGE_BUFFER;

#[test]
fn dont_bind_leaves_binding_to_the_program() {
    on_every_gpu(|rig| {
        let unbound = with_flags(MemoryUsage::Auto, Flags::DONT_BIND);
        let (buffer, allocation) = rig.buffer(KIB, STORAGE, &unbound).unwrap();
        let (image, image_allocation) =
            rig.image(&square(16, vk::ImageUsageFlags::SAMPLED), &unbound).unwrap();
        assert_eq!(rig.gpu.calls("vkBindBufferMemory"), 0);
        assert_eq!(rig.gpu.calls("vkBindImageMemory"), 0);
        // The driver would report a second bind.
        // SAFETY: the memory was allocated for the buffer, which is not bound.
        unsafe { rig.allocator.bind_buffer_memory(&allocation, 0, buffer) }.unwrap();
        // SAFETY: the memory was allocated for the image, which is not bound.
        unsafe { rig.allocator.bind_image_memory(&image_allocation, 0, image) }.unwrap();
        rig.gpu.assert_silent();
        rig.destroy_buffer((buffer, allocation));
        rig.destroy_image((image, image_allocation));
    });
}

#[test]
fn binding_at_an_offset() {
    on_every_gpu(|rig| {
        let info = vk::BufferCreateInfo::default().size(KIB).usage(STORAGE);
        // SAFETY: the create-info is valid.
        let buffer = unsafe { rig.gpu.device().create_buffer(&info, None) }.unwrap();
        // SAFETY: the buffer is live.
        let requirements = unsafe { rig.gpu.device().get_buffer_memory_requirements(buffer) };
        let twice = vk::MemoryRequirements { size: 2 * requirements.size, ..requirements };
        let allocation =
            rig.allocator.allocate_memory(&twice, &AllocationCreateInfo::new(MemoryUsage::GpuOnly)).unwrap();
        // SAFETY: the memory is large enough for two such buffers, and this one is not bound.
        unsafe { rig.allocator.bind_buffer_memory(&allocation, requirements.size, buffer) }.unwrap();
        // A second buffer in front of it: the driver would report an overlap.
        // SAFETY: the create-info is valid.
        let front = unsafe { rig.gpu.device().create_buffer(&info, None) }.unwrap();
        // SAFETY: the buffer is not bound, and the range in front of the other one is large enough.
        unsafe { rig.allocator.bind_buffer_memory(&allocation, 0, front) }.unwrap();
        rig.gpu.assert_silent();
        // SAFETY: the device does not use it.
        unsafe { rig.gpu.device().destroy_buffer(front, None) };
        rig.destroy_buffer((buffer, allocation));

        if vk::api_version_minor(rig.gpu.api_version()) > 0 {
            // SAFETY: the create-info is valid.
            let buffer = unsafe { rig.gpu.device().create_buffer(&info, None) }.unwrap();
            let own = with_flags(MemoryUsage::GpuOnly, Flags::DEDICATED_MEMORY);
            // SAFETY: the buffer is live.
            let allocation = unsafe { rig.allocator.allocate_memory_for_buffer(buffer, &own) }.unwrap();
            let group = vk::BindBufferMemoryDeviceGroupInfo::default();
            // SAFETY: the memory was allocated for the buffer, which is not bound, and the chain is valid.
            unsafe {
                rig.allocator.bind_buffer_memory2(&allocation, 0, buffer, std::ptr::from_ref(&group).cast())
            }
            .unwrap();
            assert_eq!(rig.gpu.calls("vkBindBufferMemory2"), 1);
            rig.destroy_buffer((buffer, allocation));
        }
    });
}

#[test]
fn mapped_allocations_are_mapped_where_the_host_sees_them() {
    on_every_gpu(|rig| {
        for memory_type in rig.types() {
            let visible = rig.properties(memory_type).contains(HOST_VISIBLE);
            for extra in [Flags::empty(), Flags::DEDICATED_MEMORY] {
                let info = in_type_with(memory_type, Flags::MAPPED | extra);
                let first = rig.memory(1000, 16, &info).unwrap();
                let second = rig.memory(1000, 16, &info).unwrap();
                assert_eq!(first.mapped_pointer().is_some(), visible, "type {memory_type}");
                assert_eq!(second.mapped_pointer().is_some(), visible);
                if let (Some(one), Some(other)) = (first.mapped_pointer(), second.mapped_pointer()) {
                    if extra.is_empty() {
                        let distance = (other.as_ptr() as u64).wrapping_sub(one.as_ptr() as u64);
                        assert_eq!(distance, second.offset().wrapping_sub(first.offset()));
                        assert_eq!(rig.gpu.live().mapped, 1, "one mapping for the block");
                    }
                    assert_eq!(rig.allocator.allocation_info(&first).unwrap().mapped_pointer, Some(one));
                }
                let plain = rig.memory(1000, 16, &in_type(memory_type)).unwrap();
                assert!(plain.mapped_pointer().is_none(), "not asked for");
                rig.free_all([first, second, plain]);
                rig.allocator.trim();
            }
        }
    });
}

#[test]
fn min_offset_gives_the_lowest_place() {
    on_every_gpu(|rig| {
        let info = PoolCreateInfo {
            block_size: 64 * MIB,
            max_block_count: 1,
            flags: sublet::PoolCreateFlags::IGNORE_BUFFER_IMAGE_GRANULARITY,
            ..PoolCreateInfo::new(0)
        };
        let pool = rig.pool(&info).unwrap();
        let in_pool = AllocationCreateInfo::in_pool(&pool);
        let lowest = AllocationCreateInfo { flags: Flags::STRATEGY_MIN_OFFSET, ..in_pool };
        let mut random = Random::new(3);
        let atom = rig.profile().limits.non_coherent_atom_size;
        // All sizes are whole atoms, so that no gap is too small to be used.
        let mut held: Vec<_> =
            (0..400).map(|_| rig.memory((1 + random.below(9)) * atom, 1, &lowest).unwrap()).collect();
        for _ in 0..200 {
            let at = random.below(held.len() as u64) as usize;
            rig.free(held.swap_remove(at));
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
            let piece = rig.memory(size, 1, &lowest).unwrap();
            assert_eq!(piece.offset(), expected);
            held.push(piece);
        }
        rig.free_all(held);
        rig.destroy_pool(pool);
    });
}

/// The holes have one and two units and the request has one, so each strategy chooses a different hole.
#[test]
fn min_memory_takes_the_smallest_hole() {
    on_every_gpu(|rig| {
        let info = PoolCreateInfo { block_size: 64 * MIB, max_block_count: 1, ..PoolCreateInfo::new(0) };
        let pool = rig.pool(&info).unwrap();
        let in_pool = AllocationCreateInfo::in_pool(&pool);
        let unit = 256 * KIB;
        let pieces: Vec<_> = [2, 1, 1, 1, 4, 1]
            .into_iter()
            .map(|units| {
                let lowest = AllocationCreateInfo { flags: Flags::STRATEGY_MIN_OFFSET, ..in_pool };
                rig.memory(units * unit, 1, &lowest).unwrap()
            })
            .collect();
        // Holes: 2 units at 0, 1 unit at 3, 4 units at 5, and the rest of the block.
        let mut held = Vec::new();
        for (at, piece) in pieces.into_iter().enumerate() {
            if [0, 2, 4].contains(&at) {
                rig.free(piece);
            } else {
                held.push(piece);
            }
        }
        let place = |flags| {
            let piece = rig.memory(unit, 1, &AllocationCreateInfo { flags, ..in_pool }).unwrap();
            let offset = piece.offset() / unit;
            rig.free(piece);
            offset
        };
        assert_eq!(place(Flags::STRATEGY_MIN_MEMORY), 3);
        assert_eq!(place(Flags::STRATEGY_MIN_OFFSET), 0);
        rig.free_all(held);
        rig.destroy_pool(pool);
    });
}

#[test]
fn minimum_alignments_are_kept() {
    on_every_gpu(|rig| {
        for memory_type in rig.types() {
            let mut held = Vec::new();
            for exponent in 0..16 {
                let aligned = AllocationCreateInfo { min_alignment: 1 << exponent, ..in_type(memory_type) };
                let piece = rig.memory(100, 1, &aligned).unwrap();
                assert_eq!(piece.offset() % (1 << exponent), 0);
                held.push(piece);
                let piece = rig.memory(100, 1 << exponent, &in_type(memory_type)).unwrap();
                assert_eq!(piece.offset() % (1 << exponent), 0);
                held.push(piece);
            }
            // An alignment of 0 means none.
            held.push(rig.memory(100, 0, &in_type(memory_type)).unwrap());
            rig.free_all(held);
            let info = PoolCreateInfo { min_allocation_alignment: 4096, ..PoolCreateInfo::new(memory_type) };
            let pool = rig.pool(&info).unwrap();
            for _ in 0..3 {
                held = (0..4)
                    .map(|_| rig.memory(9, 1, &AllocationCreateInfo::in_pool(&pool)).unwrap())
                    .collect();
                assert!(held.iter().all(|it| it.offset() % 4096 == 0));
                rig.free_all(held);
            }
            rig.destroy_pool(pool);
            rig.allocator.trim();
        }
    });
}

#[test]
fn upper_addresses_are_for_linear_pools() {
    on_every_gpu(|rig| {
        let before = rig.snapshot();
        for size in [KIB, GIB / 2] {
            let error = rig.memory(size, 1, &in_type_with(0, Flags::UPPER_ADDRESS)).unwrap_err();
            assert!(matches!(error, AllocationError::UpperAddress { .. }), "{error:?}");
            assert_eq!(error.vk_result(), vk::Result::ERROR_FEATURE_NOT_PRESENT);
        }
        assert_eq!(rig.snapshot(), before);
    });
}

#[test]
fn user_data_and_names_stay_with_the_allocation() {
    on_every_gpu(|rig| {
        for flags in [Flags::empty(), Flags::DEDICATED_MEMORY] {
            let info = AllocationCreateInfo { user_data: 42, name: Some("first"), ..in_type_with(0, flags) };
            let mut allocation = rig.memory(KIB, 1, &info).unwrap();
            let name = |allocation: &_| rig.allocator.allocation_info(allocation).unwrap().name;
            assert_eq!(allocation.user_data(), 42);
            assert_eq!(name(&allocation).as_deref(), Some("first"));
            allocation.set_user_data(u64::MAX);
            rig.allocator.set_allocation_name(&allocation, Some("second")).unwrap();
            let info = rig.allocator.allocation_info(&allocation).unwrap();
            assert_eq!((info.user_data, info.name.as_deref()), (u64::MAX, Some("second")));
            assert_eq!((info.size, info.offset), (allocation.size(), allocation.offset()));
            assert_eq!(info.memory_size, rig.memory_size(&allocation));
            assert_eq!(info.memory_type_index, 0);
            rig.allocator.set_allocation_name(&allocation, None).unwrap();
            assert_eq!(name(&allocation), None);
            rig.allocator.set_allocation_name(&allocation, Some("third")).unwrap();
            let place = (allocation.memory(), allocation.offset());
            rig.free(allocation);
            // The next allocation at that place does not inherit the name.
            let next = rig.memory(KIB, 1, &in_type_with(0, flags)).unwrap();
            if flags.is_empty() {
                assert_eq!((next.memory(), next.offset()), place);
            }
            assert_eq!(name(&next), None);
            rig.free(next);
        }
    });
}
