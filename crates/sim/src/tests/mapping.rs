//! Mappings and ranges that break a rule.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use super::*;

/// A GPU whose memory type of the second value is visible to the host and not coherent.
fn lazy_writer() -> (Gpu, u32, u64) {
    let (profile, kind) = non_coherent();
    (Gpu::new(profile), kind, profile.limits.non_coherent_atom_size)
}

#[test]
fn mappings_out_of_line() {
    let (gpu, kind, _) = lazy_writer();
    let device = gpu.device();
    let memory = allocate(&gpu, 4096, kind);
    unsafe { device.unmap_memory(memory) };
    assert_eq!(reports(&gpu), ["VUID-vkUnmapMemory-memory-00689"]);
    for (offset, size, vuid) in [
        (4096, vk::WHOLE_SIZE, "VUID-vkMapMemory-offset-00679"),
        (u64::MAX, 1, "VUID-vkMapMemory-offset-00679"),
        (0, 0, "VUID-vkMapMemory-size-00680"),
        (0, 4097, "VUID-vkMapMemory-size-00681"),
        (4095, 2, "VUID-vkMapMemory-size-00681"),
        (1, u64::MAX - 1, "VUID-vkMapMemory-size-00681"),
    ] {
        refuses(&gpu, vuid, map(&gpu, memory, offset, size));
    }
    map(&gpu, memory, 4095, 1).unwrap();
    gpu.assert_silent();
    refuses(&gpu, "VUID-vkMapMemory-memory-00678", map(&gpu, memory, 0, 1));
    unsafe { device.unmap_memory(memory) };
    map(&gpu, memory, 0, vk::WHOLE_SIZE).unwrap();
    // Memory that is freed is unmapped.
    unsafe { device.free_memory(memory, None) };
    if let Some(kind) = type_with(gpu.profile(), NONE, VISIBLE) {
        let memory = allocate(&gpu, 4096, kind);
        refuses(&gpu, "VUID-vkMapMemory-memory-00682", map(&gpu, memory, 0, 4096));
        unsafe { device.free_memory(memory, None) };
    }
    assert_eq!(gpu.finish(), []);
}

#[test]
fn memory_that_the_host_cannot_see_is_not_mapped() {
    let found = ALL.iter().find_map(|profile| Some((*profile, type_with(profile, NONE, VISIBLE)?)));
    let (profile, kind) = found.unwrap();
    let gpu = Gpu::new(profile);
    let memory = allocate(&gpu, 4096, kind);
    refuses(&gpu, "VUID-vkMapMemory-memory-00682", map(&gpu, memory, 0, 4096));
}

#[test]
fn ranges_out_of_line() {
    let (gpu, kind, atom) = lazy_writer();
    let device = gpu.device();
    assert!(atom > 1);
    let size = atom * 16 + atom / 2;
    let memory = allocate(&gpu, size, kind);
    let both = |offset, size| {
        let ranges = [range(memory, offset, size)];
        let flush = unsafe { device.flush_mapped_memory_ranges(&ranges) };
        let flushed = reports(&gpu);
        assert_eq!(unsafe { device.invalidate_mapped_memory_ranges(&ranges) }, flush);
        assert_eq!(reports(&gpu), flushed);
        assert_eq!(flush.is_ok(), flushed.is_empty());
        flushed
    };
    assert_eq!(both(0, atom), ["VUID-VkMappedMemoryRange-memory-00684"]);
    map(&gpu, memory, atom, atom * 4).unwrap();
    assert_eq!(both(0, atom), ["VUID-VkMappedMemoryRange-size-00685"]);
    assert_eq!(both(atom, atom * 5), ["VUID-VkMappedMemoryRange-size-00685"]);
    assert_eq!(both(atom * 2, u64::MAX - atom), ["VUID-VkMappedMemoryRange-size-00685"]);
    assert_eq!(both(0, vk::WHOLE_SIZE), ["VUID-VkMappedMemoryRange-size-00686"]);
    assert_eq!(both(atom * 6, vk::WHOLE_SIZE), ["VUID-VkMappedMemoryRange-size-00686"]);
    assert_eq!(both(atom + 1, atom), ["VUID-VkMappedMemoryRange-offset-00687"]);
    assert_eq!(both(atom + atom / 2, vk::WHOLE_SIZE), ["VUID-VkMappedMemoryRange-offset-00687"]);
    assert_eq!(both(atom, atom + 1), ["VUID-VkMappedMemoryRange-size-01390"]);
    assert_eq!(both(atom, atom * 4), [""; 0]);
    assert_eq!(both(atom, vk::WHOLE_SIZE), [""; 0]);
    unsafe { device.unmap_memory(memory) };
    // A mapping that ends within an atom, and one that ends with the memory.
    map(&gpu, memory, 0, atom + 1).unwrap();
    assert_eq!(both(0, vk::WHOLE_SIZE), ["VUID-VkMappedMemoryRange-size-01389"]);
    unsafe { device.unmap_memory(memory) };
    map(&gpu, memory, 0, vk::WHOLE_SIZE).unwrap();
    assert_eq!(both(0, vk::WHOLE_SIZE), [""; 0]);
    assert_eq!(both(atom * 16, atom / 2), [""; 0]);
    assert_eq!(unsafe { device.flush_mapped_memory_ranges(&[]) }, Err(WRONG));
    assert_eq!(unsafe { device.invalidate_mapped_memory_ranges(&[]) }, Err(WRONG));
    assert_eq!(
        reports(&gpu),
        [
            "VUID-vkFlushMappedMemoryRanges-memoryRangeCount-arraylength",
            "VUID-vkInvalidateMappedMemoryRanges-memoryRangeCount-arraylength"
        ]
    );
}

#[test]
fn neighbours_that_share_an_atom() {
    let found = ALL.iter().find_map(|profile| {
        let kind = type_with(profile, VISIBLE, COHERENT)?;
        let gpu = Gpu::new(profile);
        let buffer = storage(&gpu, 4);
        let needs = needs(&gpu, buffer);
        unsafe { gpu.device().destroy_buffer(buffer, None) };
        let fits = needs.memory_type_bits & (1 << kind) != 0
            && needs.size.next_multiple_of(needs.alignment) < profile.limits.non_coherent_atom_size;
        fits.then(|| (gpu, kind, needs.size.next_multiple_of(needs.alignment)))
    });
    let (gpu, kind, step) = found.expect("a profile where two buffers fit an atom");
    let device = gpu.device();
    let atom = gpu.profile().limits.non_coherent_atom_size;
    let memory = allocate(&gpu, atom * 8, kind);
    map(&gpu, memory, 0, vk::WHOLE_SIZE).unwrap();
    for offset in [0, step, atom * 2, atom * 3] {
        let buffer = storage(&gpu, 4);
        unsafe { device.bind_buffer_memory(buffer, memory, offset) }.unwrap();
    }
    // One that fills an atom to its end has it for itself.
    for (offset, size) in [(atom * 4, atom), (atom * 5, 4)] {
        let buffer = storage(&gpu, size);
        unsafe { device.bind_buffer_memory(buffer, memory, offset) }.unwrap();
    }
    gpu.assert_silent();
    unsafe { device.flush_mapped_memory_ranges(&[range(memory, atom * 2, atom * 6)]) }.unwrap();
    unsafe { device.invalidate_mapped_memory_ranges(&[range(memory, 0, atom)]) }.unwrap();
    gpu.assert_silent();
    unsafe { device.flush_mapped_memory_ranges(&[range(memory, 0, atom)]) }.unwrap();
    assert_eq!(reports(&gpu), ["SUBLET-shared-atom"]);
}
