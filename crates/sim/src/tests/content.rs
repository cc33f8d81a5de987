//! Bytes: what the host writes, what the device sees of it, and the other way round.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use super::*;

fn bytes<'a>(data: *mut c_void, len: usize) -> &'a mut [u8] {
    unsafe { std::slice::from_raw_parts_mut(data.cast(), len) }
}

#[test]
fn coherent_memory_is_one() {
    let gpu = simple();
    let memory = allocate(&gpu, 4096, 0);
    let data = map(&gpu, memory, 256, vk::WHOLE_SIZE).unwrap();
    bytes(data, 4).copy_from_slice(b"host");
    assert_eq!(unsafe { gpu.read_memory(memory, 256, 4) }.unwrap(), b"host");
    assert!(unsafe { gpu.write_memory(memory, 258, b"device") });
    assert_eq!(&bytes(data, 8)[..], b"hodevice");
    // Bytes stay when they are not mapped, and are where they were when they are again.
    unsafe { gpu.device().unmap_memory(memory) };
    let data = map(&gpu, memory, 0, vk::WHOLE_SIZE).unwrap();
    assert_eq!(&bytes(data, 264)[256..], b"hodevice");
    unsafe { gpu.device().free_memory(memory, None) };
    assert_eq!(gpu.finish(), []);
}

/// Host memory counts from its first use until it is freed, and twice where memory has two sides.
#[test]
fn a_limit_on_host_memory() {
    let (profile, kind) = non_coherent();
    let gpu = Gpu::builder(profile).memory_limit(3 << 20).build();
    let [first, second, third] = [(); 3].map(|()| allocate(&gpu, 1 << 20, kind));
    let flush =
        |memory| unsafe { gpu.device().flush_mapped_memory_ranges(&[range(memory, 0, vk::WHOLE_SIZE)]) };
    let none = vk::Result::ERROR_OUT_OF_HOST_MEMORY;
    map(&gpu, first, 0, vk::WHOLE_SIZE).unwrap();
    flush(first).unwrap();
    map(&gpu, second, 0, vk::WHOLE_SIZE).unwrap();
    assert_eq!(reports(&gpu), [""; 0]);
    assert_eq!(flush(second), Err(none));
    assert_eq!(map(&gpu, third, 0, vk::WHOLE_SIZE), Err(none));
    assert_eq!(reports(&gpu), ["SUBLET-memory-limit"], "the first time");
    // Freed memory serves the request that failed.
    unsafe { gpu.device().free_memory(first, None) };
    flush(second).unwrap();
    map(&gpu, third, 0, vk::WHOLE_SIZE).unwrap();
    assert_eq!(flush(third), Err(none));
    for memory in [second, third] {
        unsafe { gpu.device().free_memory(memory, None) };
    }
    // Nothing is left of them.
    let whole = allocate(&gpu, 3 << 20, kind);
    map(&gpu, whole, 0, vk::WHOLE_SIZE).unwrap();
    unsafe { gpu.device().free_memory(whole, None) };
    assert_eq!(gpu.finish(), []);
}

#[test]
fn memory_that_is_not_coherent_has_two_sides() {
    let (profile, kind) = non_coherent();
    let gpu = Gpu::new(profile);
    let device = gpu.device();
    let atom = profile.limits.non_coherent_atom_size;
    let step = usize::try_from(atom).unwrap();
    let memory = allocate(&gpu, atom * 8, kind);
    let data = map(&gpu, memory, 0, vk::WHOLE_SIZE).unwrap();
    let host = bytes(data, step * 8);
    let seen = || unsafe { gpu.read_memory(memory, 0, step * 8) }.unwrap();
    host.fill(1);
    assert!(seen().iter().all(|byte| *byte == 0), "nothing is flushed yet");
    unsafe { device.flush_mapped_memory_ranges(&[range(memory, atom, atom * 2)]) }.unwrap();
    let expected = |at: usize| u8::from((step..step * 3).contains(&at));
    assert!(
        seen().iter().enumerate().all(|(at, byte)| *byte == expected(at)),
        "what is flushed, and only that"
    );
    assert!(unsafe { gpu.write_memory(memory, 0, &vec![2; step * 8]) });
    assert!(host.iter().all(|byte| *byte == 1), "nothing is invalidated yet");
    let ranges = [range(memory, 0, atom), range(memory, atom * 7, vk::WHOLE_SIZE)];
    unsafe { device.invalidate_mapped_memory_ranges(&ranges) }.unwrap();
    let expected = |at: usize| if at < step || at >= step * 7 { 2 } else { 1 };
    assert!(
        host.iter().enumerate().all(|(at, byte)| *byte == expected(at)),
        "what is invalidated, and only that"
    );
    // Unmapping is neither a flush nor an invalidate.
    host.fill(3);
    unsafe { device.unmap_memory(memory) };
    assert!(seen().iter().all(|byte| *byte == 2));
    unsafe { device.free_memory(memory, None) };
    assert_eq!(gpu.finish(), []);
}

#[test]
fn a_refused_flush_copies_nothing() {
    let (profile, kind) = non_coherent();
    let gpu = Gpu::new(profile);
    let atom = profile.limits.non_coherent_atom_size;
    let memory = allocate(&gpu, atom * 4, kind);
    let data = map(&gpu, memory, 0, vk::WHOLE_SIZE).unwrap();
    bytes(data, 1).fill(9);
    let ranges = [range(memory, 0, atom), range(memory, 0, atom * 5)];
    gpu.log_allocations(true);
    assert_eq!(unsafe { gpu.device().flush_mapped_memory_ranges(&ranges) }, Err(WRONG));
    unsafe { gpu.device().invalidate_mapped_memory_ranges(&ranges[..1]) }.unwrap();
    let synced = gpu.take_synced().into_iter().map(|it| (it.memory, it.offset, it.size, it.is_flush));
    assert!(synced.eq([(memory, 0, atom, true), (memory, 0, atom * 5, true), (memory, 0, atom, false)]));
    assert_eq!(unsafe { gpu.read_memory(memory, 0, 1) }, Some(vec![0]));
    assert_eq!(reports(&gpu), ["VUID-VkMappedMemoryRange-size-00685"]);
    unsafe { gpu.device().free_memory(memory, None) };
}

#[test]
fn mappings_are_aligned_as_the_limits_say() {
    for &profile in ALL {
        let gpu = Gpu::new(profile);
        let alignment = usize::try_from(profile.limits.min_memory_map_alignment).unwrap();
        for kind in (0..profile.types.len()).map(crate::facts::arithmetic::narrow) {
            let flags = profile.types[crate::facts::arithmetic::index(kind)].flags;
            let special = vk::MemoryPropertyFlags::PROTECTED;
            if !flags.contains(VISIBLE) || flags.intersects(special) {
                continue;
            }
            let memory = allocate(&gpu, 1000, kind);
            let data = map(&gpu, memory, 24, vk::WHOLE_SIZE).unwrap();
            assert_eq!(data.addr() % alignment, 24 % alignment, "{}", profile.name);
            bytes(data, 976).fill(0xff);
            unsafe { gpu.device().free_memory(memory, None) };
        }
        assert_eq!(gpu.finish(), []);
    }
}

#[test]
fn nothing_outside_of_a_memory() {
    let gpu = simple();
    let memory = allocate(&gpu, 100, 0);
    assert_eq!(unsafe { gpu.read_memory(memory, 96, 4) }, Some(vec![0; 4]));
    assert_eq!(unsafe { gpu.read_memory(memory, 97, 4) }, None);
    assert_eq!(unsafe { gpu.read_memory(memory, u64::MAX, 2) }, None);
    assert!(!unsafe { gpu.write_memory(memory, 100, &[1]) });
    assert!(unsafe { gpu.write_memory(memory, 100, &[]) });
    unsafe { gpu.device().free_memory(memory, None) };
    assert_eq!(unsafe { gpu.read_memory(memory, 0, 1) }, None);
    assert!(!unsafe { gpu.write_memory(memory, 0, &[1]) });
}

/// Addresses are what a 32-bit process has too few of for this.
#[cfg(target_pointer_width = "64")]
#[test]
fn large_blocks_cost_nothing_until_they_are_touched() {
    let biggest = ALL.iter().copied().max_by_key(|profile| profile.heaps.iter().map(|heap| heap.size).max());
    let gpu = Gpu::new(biggest.unwrap());
    let kind = type_with(gpu.profile(), vk::MemoryPropertyFlags::DEVICE_LOCAL, NONE).unwrap();
    let size = 256 << 20;
    let blocks: Vec<_> = (0..64).map(|_| allocate(&gpu, size, kind)).collect();
    for &block in &blocks {
        assert!(unsafe { gpu.write_memory(block, size - 1, &[1]) });
        assert_eq!(unsafe { gpu.read_memory(block, size - 2, 2) }, Some(vec![0, 1]));
    }
    for block in blocks {
        unsafe { gpu.device().free_memory(block, None) };
    }
    assert_eq!(gpu.finish(), []);
}
