//! Host access: mapping and its counts, flushes, invalidations, copies.

use ash::vk;
use sublet::sim::Gpu;
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError, MapError, MemoryUsage,
    PoolCreateInfo,
};

use crate::common::*;

/// Returns the host-visible types.
fn host_types(fixture: &Fixture) -> Vec<u32> {
    fixture.types_with(HOST_VISIBLE, PROTECTED)
}

#[test]
fn a_block_is_mapped_once_for_all() {
    on_every_gpu(|fixture| {
        for memory_type in host_types(&fixture) {
            fixture.gpu.reset_calls();
            let mut first = fixture.memory(1000, 64, &in_type(memory_type)).unwrap();
            let mut second = fixture.memory(1000, 64, &in_type(memory_type)).unwrap();
            assert_eq!(fixture.gpu.live().mapped, 0, "nobody wants it yet");
            {
                let one = fixture.allocator.map(&mut first).unwrap();
                let other = fixture.allocator.map(&mut second).unwrap();
                assert_eq!(one.size(), 1000);
                assert_ne!(one.pointer(), other.pointer());
                assert_eq!(fixture.gpu.live().mapped, 1);
            }
            assert_eq!(fixture.gpu.live().mapped, 1, "kept, for the next one");
            drop(fixture.allocator.map(&mut first).unwrap());
            assert_eq!(fixture.gpu.calls("vkMapMemory"), 1);
            // `trim` keeps the block mapped while a guard exists, and unmaps it afterwards.
            let guard = fixture.allocator.map(&mut first).unwrap();
            fixture.allocator.trim();
            assert_eq!(fixture.gpu.live().mapped, 1);
            drop(guard);
            fixture.allocator.trim();
            assert_eq!(fixture.gpu.live().mapped, 0);
            assert_eq!(fixture.gpu.calls("vkUnmapMemory"), 1);
            let guard = fixture.allocator.map(&mut second).unwrap();
            assert_eq!(fixture.gpu.live().mapped, 1, "mapped anew");
            drop(guard);
            fixture.free_all([first, second]);
            fixture.allocator.trim();
        }
    });
}

#[test]
fn dedicated_memory_is_mapped_and_trimmed_too() {
    on_every_gpu(|fixture| {
        for memory_type in host_types(&fixture) {
            let mut own =
                fixture.memory(1000, 64, &in_type_with(memory_type, Flags::DEDICATED_MEMORY)).unwrap();
            let mut guard = fixture.allocator.map(&mut own).unwrap();
            guard.write(990, b"0123456789").unwrap();
            guard.flush(990, 10).unwrap();
            fixture.allocator.trim();
            assert_eq!(fixture.gpu.live().mapped, 1, "in use");
            drop(guard);
            fixture.allocator.trim();
            assert_eq!(fixture.gpu.live().mapped, 0, "not in use");
            let mut back = [0; 10];
            fixture.allocator.copy_from_allocation(&own, 990, &mut back).unwrap();
            assert_eq!(&back, b"0123456789");
            let flags = Flags::DEDICATED_MEMORY | Flags::MAPPED;
            let persistent = fixture.memory(1000, 64, &in_type_with(memory_type, flags)).unwrap();
            fixture.allocator.trim();
            assert_eq!(fixture.gpu.live().mapped, 1, "only the persistent one");
            fixture.free_all([own, persistent]);
        }
    });
}

#[test]
fn persistent_pointers_stay() {
    on_every_gpu(|fixture| {
        for memory_type in host_types(&fixture) {
            let mut kept = fixture.memory(64, 64, &in_type_with(memory_type, Flags::MAPPED)).unwrap();
            let pointer = kept.mapped_pointer().unwrap();
            fixture.gpu.reset_calls();
            for _ in 0..20 {
                let mut other = fixture.memory(64, 64, &in_type(memory_type)).unwrap();
                drop(fixture.allocator.map(&mut other).unwrap());
                fixture.free(other);
                fixture.free(fixture.memory(64, 64, &in_type_with(memory_type, Flags::MAPPED)).unwrap());
                fixture.allocator.trim();
            }
            assert_eq!(fixture.gpu.calls("vkMapMemory") + fixture.gpu.calls("vkUnmapMemory"), 0);
            assert_eq!(fixture.allocator.map(&mut kept).unwrap().pointer(), pointer);
            fixture.free(kept);
            fixture.allocator.trim();
        }
    });
}

#[test]
fn into_raw_keeps_the_mapping_until_it_is_ended() {
    on_every_gpu(|fixture| {
        for memory_type in host_types(&fixture) {
            for flags in [Flags::empty(), Flags::DEDICATED_MEMORY] {
                let mut allocation = fixture.memory(64, 64, &in_type_with(memory_type, flags)).unwrap();
                let pointer = fixture.allocator.map(&mut allocation).unwrap().into_raw();
                let again = fixture.allocator.map(&mut allocation).unwrap().into_raw();
                assert_eq!(pointer, again);
                fixture.allocator.trim();
                assert_eq!(fixture.gpu.live().mapped, 1);
                for left in [1, 0] {
                    // SAFETY: it pairs with one of the two calls of `into_raw`, and the pointers are not used any more.
                    unsafe { fixture.allocator.unmap_memory(&allocation) }.unwrap();
                    fixture.allocator.trim();
                    assert_eq!(fixture.gpu.live().mapped, left);
                }
                // SAFETY: the pointers are not used.
                let error = unsafe { fixture.allocator.unmap_memory(&allocation) }.unwrap_err();
                assert_eq!(error, MapError::NotMapped);
                fixture.free(allocation);
                fixture.allocator.trim();
            }
            // Freeing a mapped allocation releases its mapping.
            let mut forgotten = fixture.memory(64, 64, &in_type(memory_type)).unwrap();
            let _ = fixture.allocator.map(&mut forgotten).unwrap().into_raw();
            fixture.free(forgotten);
            let kept = fixture.memory(64, 64, &in_type(memory_type)).unwrap();
            fixture.allocator.trim();
            assert_eq!(fixture.gpu.live().mapped, 0, "type {memory_type}");
            fixture.free(kept);
            fixture.allocator.trim();
        }
    });
}

/// A program that unmaps too often affects only itself.
#[test]
fn one_unmap_too_many_is_no_panic() {
    on_every_gpu(|fixture| {
        let memory_type = host_types(&fixture)[0];
        for flags in [Flags::MAPPED, Flags::MAPPED | Flags::DEDICATED_MEMORY] {
            let allocation = fixture.memory(64, 64, &in_type_with(memory_type, flags)).unwrap();
            // SAFETY: it does not pair, but the pointer is not used any more.
            unsafe { fixture.allocator.unmap_memory(&allocation) }.unwrap();
            // SAFETY: as above.
            let error = unsafe { fixture.allocator.unmap_memory(&allocation) }.unwrap_err();
            assert_eq!(error, MapError::NotMapped);
            fixture.free(allocation);
        }
    });
}

#[test]
fn what_cannot_be_mapped_is_not() {
    on_every_gpu(|fixture| {
        for memory_type in fixture.types_with(vk::MemoryPropertyFlags::empty(), HOST_VISIBLE) {
            let mut hidden = fixture.memory(64, 64, &in_type_with(memory_type, Flags::MAPPED)).unwrap();
            assert!(hidden.mapped_pointer().is_none());
            let error = fixture.allocator.map(&mut hidden).unwrap_err();
            assert_eq!(error, MapError::NotHostVisible { memory_type });
            assert_eq!(error.vk_result(), vk::Result::ERROR_MEMORY_MAP_FAILED);
            let error = fixture.allocator.copy_to_allocation(&[1], &mut hidden, 0).unwrap_err();
            assert_eq!(error, MapError::NotHostVisible { memory_type });
            fixture.free(hidden);
            fixture.allocator.trim();
        }
        // An automatic usage without host access is not mapped, even in host-visible memory.
        let usage = vk::BufferUsageFlags::UNIFORM_BUFFER;
        let mut buffer = fixture.buffer(64, usage, &AllocationCreateInfo::new(MemoryUsage::Auto)).unwrap();
        let error = fixture.allocator.map(&mut buffer.1).unwrap_err();
        if fixture.properties(buffer.1.memory_type_index()).contains(HOST_VISIBLE) {
            assert_eq!(error, MapError::NoHostAccess);
        }
        fixture.destroy_buffer(buffer);
        let access = with_flags(MemoryUsage::Auto, Flags::HOST_ACCESS_RANDOM);
        let mut buffer = fixture.buffer(64, usage, &access).unwrap();
        drop(fixture.allocator.map(&mut buffer.1).unwrap());
        fixture.destroy_buffer(buffer);
        assert_eq!(fixture.gpu.calls("vkMapMemory"), 1);
    });
}

#[test]
fn unflushed_bytes_are_not_seen() {
    on_every_gpu(|fixture| {
        for memory_type in host_types(&fixture) {
            let coherent = fixture.properties(memory_type).contains(HOST_COHERENT);
            let mut allocation = fixture.memory(3000, 1, &in_type_with(memory_type, Flags::MAPPED)).unwrap();
            let device = |offset, size| {
                fixture.read_memory(allocation.memory(), allocation.offset() + offset, size).unwrap()
            };
            fixture.gpu.reset_calls();
            let pointer = allocation.mapped_pointer().unwrap().as_ptr().cast::<u8>();
            // SAFETY: the allocation is mapped and has 3,000 bytes, and the device is idle.
            unsafe { std::ptr::write_bytes(pointer, 7, 3000) };
            assert_eq!(device(0, 3000) == [7; 3000], coherent);
            // The flush covers only its range, rounded to atoms.
            fixture.allocator.flush(&allocation, 1001, 1).unwrap();
            assert_eq!(device(1001, 1), [7]);
            let atom = fixture.profile().limits.non_coherent_atom_size;
            assert!(coherent || device(1001 / atom * atom + atom, 1) == [0], "the next atom was not flushed");
            assert!(coherent || device(1001 / atom * atom - 1, 1) == [0], "nor the one before");
            fixture.allocator.flush(&allocation, 2000, vk::WHOLE_SIZE).unwrap();
            assert_eq!(device(2000, 1000), [7; 1000]);
            fixture.allocator.flush(&allocation, 0, 3000).unwrap();
            assert_eq!(device(0, 3000), [7; 3000]);
            fixture.allocator.flush(&allocation, 3000, 0).unwrap();
            fixture.allocator.flush(&allocation, 3000, vk::WHOLE_SIZE).unwrap();
            fixture.allocator.flush(&allocation, 0, 0).unwrap();
            assert_eq!(fixture.gpu.calls("vkFlushMappedMemoryRanges"), if coherent { 0 } else { 3 });

            // Invalidation works in the same way.
            assert!(fixture.write_memory(allocation.memory(), allocation.offset() + 500, &[9; 10]));
            let mut back = [0; 10];
            {
                let guard = fixture.allocator.map(&mut allocation).unwrap();
                guard.read(500, &mut back).unwrap();
                assert_eq!(back == [9; 10], coherent);
                guard.invalidate(500, 10).unwrap();
                guard.read(500, &mut back).unwrap();
            }
            assert_eq!(back, [9; 10]);
            fixture.free(allocation);
            fixture.allocator.trim();
        }
    });
}

#[test]
fn copies_flush_and_invalidate_by_themselves() {
    on_every_gpu(|fixture| {
        for memory_type in host_types(&fixture) {
            let coherent = fixture.properties(memory_type).contains(HOST_COHERENT);
            for flags in [Flags::empty(), Flags::DEDICATED_MEMORY, Flags::MAPPED] {
                let mut allocation = fixture.memory(1000, 1, &in_type_with(memory_type, flags)).unwrap();
                fixture.gpu.reset_calls();
                fixture.allocator.copy_to_allocation(b"to the device", &mut allocation, 987).unwrap();
                let seen = fixture.read_memory(allocation.memory(), allocation.offset() + 987, 13).unwrap();
                assert_eq!(seen, b"to the device");
                assert!(fixture.write_memory(allocation.memory(), allocation.offset() + 3, b"from it"));
                let mut back = [0; 7];
                fixture.allocator.copy_from_allocation(&allocation, 3, &mut back).unwrap();
                assert_eq!(&back, b"from it");
                let calls = u64::from(!coherent);
                assert_eq!(fixture.gpu.calls("vkFlushMappedMemoryRanges"), calls);
                assert_eq!(fixture.gpu.calls("vkInvalidateMappedMemoryRanges"), calls);
                fixture.allocator.copy_to_allocation(&[], &mut allocation, 1000).unwrap();
                fixture.allocator.copy_from_allocation(&allocation, 1000, &mut []).unwrap();
                fixture.allocator.trim();
                assert_eq!(
                    fixture.gpu.live().mapped,
                    u64::from(flags.contains(Flags::MAPPED)),
                    "no use is left"
                );
                fixture.free(allocation);
                fixture.allocator.trim();
            }
        }
    });
}

#[test]
fn ranges_are_clamped_to_the_end_of_the_memory() {
    on_every_gpu(|fixture| {
        let atom = fixture.profile().limits.non_coherent_atom_size;
        for memory_type in fixture.types_with(HOST_VISIBLE, HOST_COHERENT | PROTECTED) {
            // A dedicated memory and a block that each end within an atom.
            let size = 10 * atom + 3;
            let own = in_type_with(memory_type, Flags::DEDICATED_MEMORY | Flags::MAPPED);
            let own = fixture.memory(size, 1, &own).unwrap();
            let info = PoolCreateInfo {
                block_size: size,
                flags: sublet::PoolCreateFlags::IGNORE_BUFFER_IMAGE_GRANULARITY,
                ..PoolCreateInfo::new(memory_type)
            };
            let pool = fixture.pool(&info).unwrap();
            let in_pool =
                AllocationCreateInfo { flags: Flags::MAPPED, ..AllocationCreateInfo::in_pool(&pool) };
            let shared = fixture.memory(size, 1, &in_pool).unwrap();
            for allocation in [&own, &shared] {
                for offset in [0, 1, atom, size - 1, size - 3, size - 4] {
                    fixture.allocator.flush(allocation, offset, vk::WHOLE_SIZE).unwrap();
                    fixture.allocator.invalidate(allocation, offset, size - offset).unwrap();
                }
                fixture.gpu.assert_silent();
            }
            fixture.allocator.flush_many(&[(&own, 1, 2), (&shared, size - 1, 1), (&own, 0, 0)]).unwrap();
            fixture.allocator.invalidate_many(&[(&own, 1, 2), (&shared, 0, vk::WHOLE_SIZE)]).unwrap();
            fixture.free_all([own, shared]);
            fixture.destroy_pool(pool);
        }
    });
}

#[test]
fn many_ranges_are_one_call() {
    on_every_gpu(|fixture| {
        for memory_type in host_types(&fixture) {
            let coherent = fixture.properties(memory_type).contains(HOST_COHERENT);
            let info = in_type_with(memory_type, Flags::MAPPED);
            let held: Vec<_> = (0..40).map(|_| fixture.memory(100, 1, &info).unwrap()).collect();
            let ranges: Vec<_> = held.iter().map(|it| (it, 10, 20)).collect();
            fixture.gpu.reset_calls();
            fixture.allocator.flush_many(&ranges).unwrap();
            fixture.allocator.invalidate_many(&ranges).unwrap();
            fixture.allocator.flush_many(&[]).unwrap();
            let calls = u64::from(!coherent);
            assert_eq!(fixture.gpu.calls("vkFlushMappedMemoryRanges"), calls);
            assert_eq!(fixture.gpu.calls("vkInvalidateMappedMemoryRanges"), calls);
            // One invalid range fails the whole call.
            let mut wrong = ranges.clone();
            wrong.push((&held[0], 99, 2));
            fixture.gpu.reset_calls();
            assert!(matches!(fixture.allocator.flush_many(&wrong), Err(MapError::OutOfRange { .. })));
            assert_eq!(fixture.gpu.calls("vkFlushMappedMemoryRanges"), 0);
            fixture.free_all(held);
            fixture.allocator.trim();
        }
    });
}

/// A flush keeps memory mapped that only guards map, and leaves the user count unchanged.
#[test]
fn flushes_leave_the_users_of_a_mapping_as_many() {
    on_every_gpu(|fixture| {
        for memory_type in fixture.types_with(HOST_VISIBLE, HOST_COHERENT | PROTECTED) {
            let plain = in_type(memory_type);
            let always = in_type_with(memory_type, Flags::MAPPED | Flags::DEDICATED_MEMORY);
            for count in [1, 3, 40] {
                let mut held: Vec<_> = (0..count).map(|_| fixture.memory(100, 1, &plain).unwrap()).collect();
                let own = fixture.memory(100, 1, &always).unwrap();
                let pointer = fixture.allocator.map(&mut held[0]).unwrap().into_raw();
                let mut ranges: Vec<_> = held.iter().map(|it| (it, 10, 20)).collect();
                ranges.extend([(&own, 0, 10), (&own, 99, 1), (&held[0], 5, 0)]);
                fixture.allocator.flush_many(&ranges).unwrap();
                fixture.allocator.invalidate_many(&ranges).unwrap();
                fixture.allocator.flush(&held[0], 0, 1).unwrap();
                ranges.push((&own, 101, 0));
                assert!(matches!(fixture.allocator.flush_many(&ranges), Err(MapError::OutOfRange { .. })));
                fixture.allocator.trim();
                assert_eq!(fixture.allocator.map_memory(&held[0]).unwrap(), pointer, "still mapped");
                for _ in 0..2 {
                    // SAFETY: the pointer is not used.
                    unsafe { fixture.allocator.unmap_memory(&held[0]) }.unwrap();
                }
                fixture.allocator.trim();
                assert_eq!(fixture.allocator.flush(&held[0], 0, 1), Err(MapError::NotMapped), "{count}");
                fixture.gpu.assert_silent();
                held.push(own);
                fixture.free_all(held);
            }
        }
    });
}

/// A persistently mapped allocation is read and written without another mapping user. If its pool is destroyed, both
/// fail.
#[test]
fn what_is_always_mapped_ends_with_its_pool() {
    on_every_gpu(|fixture| {
        for memory_type in host_types(&fixture) {
            for flags in [Flags::MAPPED, Flags::MAPPED | Flags::DEDICATED_MEMORY] {
                let pool = fixture.pool(&PoolCreateInfo::new(memory_type)).unwrap();
                let info = AllocationCreateInfo { flags, ..AllocationCreateInfo::in_pool(&pool) };
                let mut allocation = fixture.memory(1000, 1, &info).unwrap();
                fixture.allocator.copy_to_allocation(b"sublet", &mut allocation, 3).unwrap();
                let mut back = [0; 6];
                fixture.allocator.copy_from_allocation(&allocation, 3, &mut back).unwrap();
                assert_eq!(&back, b"sublet");
                fixture.allocator.trim();
                fixture.allocator.copy_from_allocation(&allocation, 3, &mut back).unwrap();
                fixture.gpu.assert_silent();
                // SAFETY: the device does not use its memory.
                assert_eq!(unsafe { fixture.allocator.destroy_pool(pool) }.unwrap().len(), 1);
                let gone = |answer| matches!(answer, Err(MapError::Foreign(_)));
                assert!(gone(fixture.allocator.copy_to_allocation(b"sublet", &mut allocation, 3)));
                assert!(gone(fixture.allocator.copy_from_allocation(&allocation, 3, &mut back)));
                if allocation.needs_flush() {
                    assert!(gone(fixture.allocator.flush(&allocation, 0, 1)));
                    assert!(gone(fixture.allocator.flush_many(&[(&allocation, 0, 1); 2])));
                }
                fixture.gpu.assert_silent();
            }
        }
    });
}

#[test]
fn a_flush_needs_mapped_memory() {
    on_every_gpu(|fixture| {
        for memory_type in fixture.types_with(HOST_VISIBLE, HOST_COHERENT | PROTECTED) {
            let allocation = fixture.memory(64, 1, &in_type(memory_type)).unwrap();
            assert_eq!(fixture.allocator.flush(&allocation, 0, 64), Err(MapError::NotMapped));
            assert_eq!(fixture.allocator.invalidate(&allocation, 0, 64), Err(MapError::NotMapped));
            fixture.free(allocation);
        }
    });
}

#[test]
fn a_failed_map_leaves_nothing() {
    on_every_gpu(|fixture| {
        for memory_type in host_types(&fixture) {
            let mut allocation = fixture.memory(64, 64, &in_type(memory_type)).unwrap();
            let before = fixture.snapshot();
            for result in [vk::Result::ERROR_MEMORY_MAP_FAILED, vk::Result::ERROR_OUT_OF_HOST_MEMORY] {
                fixture.gpu.faults().fail_nth("vkMapMemory", 0, result);
                let error = fixture.allocator.map(&mut allocation).unwrap_err();
                assert_eq!(driver_result(&error), Some(result));
                assert_eq!(error.vk_result(), result);
                assert_eq!(fixture.snapshot(), before);
            }
            drop(fixture.allocator.map(&mut allocation).unwrap());
            fixture.allocator.trim();
            assert_eq!(fixture.gpu.live().mapped, 0, "no failed user is counted");
            fixture.free(allocation);
            fixture.allocator.trim();

            // If a persistent mapping fails for a block, dedicated memory may still work. If both fail, the request
            // returns an error.
            fixture.gpu.faults().fail_always("vkMapMemory", vk::Result::ERROR_MEMORY_MAP_FAILED);
            let error = fixture.memory(64, 64, &in_type_with(memory_type, Flags::MAPPED)).unwrap_err();
            assert!(matches!(error, AllocationError::Map(_)), "{error:?}");
            assert_eq!(driver_result(&error), Some(vk::Result::ERROR_MEMORY_MAP_FAILED));
            fixture.gpu.faults().clear();
            fixture.allocator.trim();
            assert!(fixture.gpu.live().is_empty());

            // In a shared block, the failed allocation is not counted as a user of the mapping.
            let mut other = fixture.memory(64, 64, &in_type(memory_type)).unwrap();
            fixture.gpu.faults().fail_always("vkMapMemory", vk::Result::ERROR_MEMORY_MAP_FAILED);
            assert!(fixture.memory(64, 64, &in_type_with(memory_type, Flags::MAPPED)).is_err());
            fixture.gpu.faults().clear();
            drop(fixture.allocator.map(&mut other).unwrap());
            fixture.allocator.trim();
            assert_eq!(fixture.gpu.live().mapped, 0, "type {memory_type}");
            fixture.free(other);
            fixture.allocator.trim();
        }
    });
}

#[test]
fn guards_check_their_ranges() {
    on_every_gpu(|fixture| {
        let memory_type = host_types(&fixture)[0];
        let mut allocation = fixture.memory(100, 1, &in_type(memory_type)).unwrap();
        let mut guard = fixture.allocator.map(&mut allocation).unwrap();
        assert!(guard.write(0, &[0; 101]).is_err());
        assert!(guard.write(100, &[0]).is_err());
        assert!(guard.write(u64::MAX, &[0]).is_err());
        assert!(guard.read(99, &mut [0; 2]).is_err());
        assert!(guard.flush(100, 1).is_err());
        assert!(guard.invalidate(u64::MAX, 1).is_err());
        guard.write(100, &[]).unwrap();
        guard.write(99, &[1]).unwrap();
        let mut byte = [0];
        guard.read(99, &mut byte).unwrap();
        assert_eq!(byte, [1]);
        drop(guard);
        fixture.free(allocation);
    });
}

/// A guard may be dropped after its pool was destroyed.
#[test]
fn a_guard_may_outlive_its_pool() {
    on_every_profile(|profile| {
        let gpu = Gpu::new(profile);
        let fixture = Fixture::with(gpu, &Options::default());
        let memory_type = host_types(&fixture)[0];
        let pool = fixture.pool(&PoolCreateInfo::new(memory_type)).unwrap();
        let mut allocation = fixture.memory(100, 1, &AllocationCreateInfo::in_pool(&pool)).unwrap();
        let guard = fixture.allocator.map(&mut allocation).unwrap();
        // SAFETY: the device is idle, and the guard's pointer is not used any more.
        let leaks = unsafe { fixture.allocator.destroy_pool(pool) }.unwrap();
        assert_eq!(leaks.len(), 1);
        drop(guard);
        // SAFETY: as above.
        assert!(unsafe { fixture.allocator.free_memory(allocation) }.is_err());
    });
}

#[test]
fn values_and_slices_reach_the_device_as_bytes() {
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Light {
        position: [f32; 3],
        kind: u32,
    }
    on_every_gpu(|fixture| {
        for memory_type in host_types(&fixture) {
            let mut allocation = fixture.memory(1000, 64, &in_type(memory_type)).unwrap();
            let lights = [Light { position: [1.0, 2.0, 3.0], kind: 4 }; 3];
            let expected = [1.0_f32.to_bits(), 2.0_f32.to_bits(), 3.0_f32.to_bits(), 4];
            let expected: Vec<u8> = expected.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let seen = |allocation: &sublet::Allocation, at: u64, size: usize| {
                // SAFETY: no other thread writes to it.
                unsafe { fixture.gpu.read_memory(allocation.memory(), allocation.offset() + at, size) }
                    .unwrap()
            };
            // Byte copies need no alignment, so the offset is odd.
            fixture.allocator.write_slice(&lights, &mut allocation, 7).unwrap();
            assert_eq!(seen(&allocation, 7, 48), expected.repeat(3));
            fixture.allocator.write_value(&lights[0], &mut allocation, 984).unwrap();
            assert_eq!(seen(&allocation, 984, 16), expected);
            let mut guard = fixture.allocator.map(&mut allocation).unwrap();
            guard.write_value(100, &lights[0]).unwrap();
            guard.write_slice(116, &lights[..2]).unwrap();
            guard.flush(100, 48).unwrap();
            drop(guard);
            assert_eq!(seen(&allocation, 100, 48), expected.repeat(3));
            // Sizes are in bytes, not in elements.
            let outside =
                |offset, size| MapError::OutOfRange { offset, size, allocation_size: allocation.size() };
            let (value, slice) = (outside(985, 16), outside(953, 48));
            assert_eq!(fixture.allocator.write_value(&lights[0], &mut allocation, 985), Err(value));
            assert_eq!(fixture.allocator.write_slice(&lights, &mut allocation, 953), Err(slice));
            assert_eq!(seen(&allocation, 984, 16), expected, "nothing was written");
            fixture.allocator.write_slice::<u64>(&[], &mut allocation, 1000).unwrap();
            fixture.allocator.write_value(&(), &mut allocation, 1000).unwrap();
            fixture.free_all([allocation]);
        }
    });
}
