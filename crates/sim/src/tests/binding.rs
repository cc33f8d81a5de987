//! Binds that break a rule.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use super::*;

/// A GPU with a granularity larger than one, and a memory type for buffers and optimal images.
fn grainy() -> (Gpu, u32, u64) {
    for &profile in ALL {
        let granularity = profile.limits.buffer_image_granularity;
        let gpu = Gpu::new(profile);
        let (buffer, image) = (storage(&gpu, 64), image(&gpu, 4));
        let needs = (needs(&gpu, buffer), image_needs(&gpu, image));
        unsafe { gpu.device().destroy_buffer(buffer, None) };
        unsafe { gpu.device().destroy_image(image, None) };
        let both = needs.0.memory_type_bits & needs.1.memory_type_bits;
        let fits = needs.0.size.next_multiple_of(needs.1.alignment) < granularity;
        if fits && both != 0 {
            return (gpu, both.trailing_zeros(), granularity);
        }
    }
    panic!("no profile lets a buffer and an image share a page");
}

#[test]
fn dedicated_memory_belongs_to_its_resource() {
    let gpu = simple();
    let device = gpu.device();
    let (owner, other) = (storage(&gpu, 4096), storage(&gpu, 1000));
    let size = needs(&gpu, owner).size;
    let mut dedicated = vk::MemoryDedicatedAllocateInfo::default().buffer(owner);
    let info = vk::MemoryAllocateInfo::default().allocation_size(size).push_next(&mut dedicated);
    let memory = unsafe { device.allocate_memory(&info, None) }.unwrap();
    assert_eq!(unsafe { device.bind_buffer_memory(other, memory, 0) }, Err(WRONG));
    assert_eq!(reports(&gpu), ["VUID-vkBindBufferMemory-memory-01508"]);
    let bind = [vk::BindBufferMemoryInfo::default().buffer(other).memory(memory)];
    refuses(&gpu, "VUID-VkBindBufferMemoryInfo-memory-01508", unsafe { device.bind_buffer_memory2(&bind) });
    assert_eq!(unsafe { device.bind_buffer_memory(owner, memory, 1024) }, Err(WRONG));
    assert_eq!(reports(&gpu), ["VUID-vkBindBufferMemory-memory-01508"]);
    unsafe { device.bind_buffer_memory(owner, memory, 0) }.unwrap();
    assert_eq!(gpu.memory_info(memory).unwrap().dedicated_buffer, owner);
    gpu.assert_silent();

    let (owner, other) = (image(&gpu, 64), image(&gpu, 16));
    let size = image_needs(&gpu, owner).size;
    let mut dedicated = vk::MemoryDedicatedAllocateInfo::default().image(owner);
    let info = vk::MemoryAllocateInfo::default().allocation_size(size).push_next(&mut dedicated);
    let memory = unsafe { device.allocate_memory(&info, None) }.unwrap();
    assert_eq!(unsafe { device.bind_image_memory(other, memory, 0) }, Err(WRONG));
    assert_eq!(reports(&gpu), ["VUID-vkBindImageMemory-memory-02628"]);
    unsafe { device.bind_image_memory(owner, memory, 0) }.unwrap();
    gpu.assert_silent();
}

/// A GPU whose exported resources require a dedicated allocation, and the handle type that they are exported by.
fn exporter() -> (Gpu, vk::ExternalMemoryHandleTypeFlags) {
    let profile = ALL
        .iter()
        .copied()
        .find(|profile| profile.images.external_requires_dedicated && profile.features.external_memory);
    let gpu = Gpu::builder(profile.unwrap()).api_version(vk::API_VERSION_1_1).build();
    (gpu, vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD)
}

#[test]
fn what_requires_a_dedicated_allocation_gets_one() {
    let (gpu, kind) = exporter();
    let device = gpu.device();
    let mut external = vk::ExternalMemoryImageCreateInfo::default().handle_types(kind);
    let info = image_info(64, vk::ImageTiling::OPTIMAL).push_next(&mut external);
    let shared = unsafe { device.create_image(&info, None) }.unwrap();
    let mut dedicated = vk::MemoryDedicatedRequirements::default();
    let mut needs = vk::MemoryRequirements2::default().push_next(&mut dedicated);
    let info = vk::ImageMemoryRequirementsInfo2::default().image(shared);
    unsafe { device.get_image_memory_requirements2(&info, &mut needs) };
    let needs = needs.memory_requirements;
    assert_eq!(dedicated.requires_dedicated_allocation, vk::TRUE);
    let mut export = vk::ExportMemoryAllocateInfo::default().handle_types(kind);
    let type_index = needs.memory_type_bits.trailing_zeros();
    let info = vk::MemoryAllocateInfo::default()
        .allocation_size(needs.size)
        .memory_type_index(type_index)
        .push_next(&mut export);
    let memory = unsafe { device.allocate_memory(&info, None) }.unwrap();
    assert_eq!(unsafe { device.bind_image_memory(shared, memory, 0) }, Err(WRONG));
    assert_eq!(reports(&gpu), ["VUID-vkBindImageMemory-image-01445"]);
    let bind = [vk::BindImageMemoryInfo::default().image(shared).memory(memory)];
    refuses(&gpu, "VUID-VkBindImageMemoryInfo-image-01445", unsafe { device.bind_image_memory2(&bind) });
    let mut dedicated = vk::MemoryDedicatedAllocateInfo::default().image(shared);
    let memory = unsafe { device.allocate_memory(&info.push_next(&mut dedicated), None) }.unwrap();
    unsafe { device.bind_image_memory(shared, memory, 0) }.unwrap();
    gpu.assert_silent();

    let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(kind);
    let info = vk::BufferCreateInfo::default()
        .size(64)
        .usage(vk::BufferUsageFlags::STORAGE_BUFFER)
        .push_next(&mut external);
    let shared = unsafe { device.create_buffer(&info, None) }.unwrap();
    let needs = super::needs(&gpu, shared);
    let memory = allocate(&gpu, needs.size, needs.memory_type_bits.trailing_zeros());
    assert_eq!(unsafe { device.bind_buffer_memory(shared, memory, 0) }, Err(WRONG));
    assert_eq!(reports(&gpu), ["VUID-vkBindBufferMemory-buffer-01444"]);
}

/// File descriptors are of unix: elsewhere the simulated device exports nothing.
#[cfg(unix)]
#[test]
fn shared_memory_is_for_what_is_shared_in_the_same_way() {
    let (gpu, kind) = exporter();
    let device = gpu.device();
    let (buffer, image) = (storage(&gpu, 64), image(&gpu, 64));
    let both = needs(&gpu, buffer).memory_type_bits & image_needs(&gpu, image).memory_type_bits;
    let info =
        vk::MemoryAllocateInfo::default().allocation_size(1 << 20).memory_type_index(both.trailing_zeros());
    let mut export = vk::ExportMemoryAllocateInfo::default().handle_types(kind);
    let exported = unsafe { device.allocate_memory(&info.push_next(&mut export), None) }.unwrap();
    let loaded = ash::khr::external_memory_fd::Device::new(gpu.instance(), device);
    let asked = vk::MemoryGetFdInfoKHR::default().memory(exported).handle_type(kind);
    let fd = unsafe { loaded.get_memory_fd(&asked) }.unwrap();
    let mut import = vk::ImportMemoryFdInfoKHR::default().handle_type(kind).fd(fd);
    let imported = unsafe { device.allocate_memory(&info.push_next(&mut import), None) }.unwrap();
    let cases = [(exported, "02726", "02728"), (imported, "02985", "02989")];
    for (memory, of_buffer, of_image) in cases {
        assert_eq!(unsafe { device.bind_buffer_memory(buffer, memory, 0) }, Err(WRONG));
        let bind = [vk::BindBufferMemoryInfo::default().buffer(buffer).memory(memory)];
        assert_eq!(unsafe { device.bind_buffer_memory2(&bind) }, Err(WRONG));
        assert_eq!(unsafe { device.bind_image_memory(image, memory, 0) }, Err(WRONG));
        let bind = [vk::BindImageMemoryInfo::default().image(image).memory(memory)];
        assert_eq!(unsafe { device.bind_image_memory2(&bind) }, Err(WRONG));
        let expected = [
            format!("VUID-vkBindBufferMemory-memory-{of_buffer}"),
            format!("VUID-VkBindBufferMemoryInfo-memory-{of_buffer}"),
            format!("VUID-vkBindImageMemory-memory-{of_image}"),
            format!("VUID-VkBindImageMemoryInfo-memory-{of_image}"),
        ];
        assert_eq!(reports(&gpu), expected);
    }
    // One way in common is enough for what is exported.
    let two = kind | vk::ExternalMemoryHandleTypeFlags::DMA_BUF_EXT;
    let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(kind);
    let shared = vk::BufferCreateInfo::default().size(64).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
    let shared = unsafe { device.create_buffer(&shared.push_next(&mut external), None) }.unwrap();
    let mut export = vk::ExportMemoryAllocateInfo::default().handle_types(two);
    let mut dedicated = vk::MemoryDedicatedAllocateInfo::default().buffer(shared);
    let info =
        info.allocation_size(needs(&gpu, shared).size).push_next(&mut export).push_next(&mut dedicated);
    let memory = unsafe { device.allocate_memory(&info, None) }.unwrap();
    unsafe { device.bind_buffer_memory(shared, memory, 0) }.unwrap();
    gpu.assert_silent();
}

#[test]
fn binds_out_of_place() {
    let gpu = simple();
    let device = gpu.device();
    let (buffer, image) = (storage(&gpu, 1000), image(&gpu, 64));
    let (buffer_needs, image_needs) = (needs(&gpu, buffer), image_needs(&gpu, image));
    let large = allocate(&gpu, 1 << 20, 0);
    let small = allocate(&gpu, 64, 0);
    assert!(buffer_needs.alignment > 1);
    for (memory, offset, rules) in [
        (large, 1 << 20, ["memoryOffset-01031"; 2]),
        (large, buffer_needs.alignment / 2, ["memoryOffset-01036"; 2]),
        (large, (1 << 20) - buffer_needs.alignment, ["size-01037"; 2]),
        (small, 0, ["size-01037"; 2]),
    ] {
        assert_eq!(unsafe { device.bind_buffer_memory(buffer, memory, offset) }, Err(WRONG));
        let info = [vk::BindBufferMemoryInfo::default().buffer(buffer).memory(memory).memory_offset(offset)];
        assert_eq!(unsafe { device.bind_buffer_memory2(&info) }, Err(WRONG));
        let calls = ["vkBindBufferMemory", "VkBindBufferMemoryInfo"];
        let expected: Vec<_> =
            calls.iter().zip(rules).map(|(call, rule)| format!("VUID-{call}-{rule}")).collect();
        assert_eq!(reports(&gpu), expected);
    }
    for (memory, offset, rules) in [
        (large, 1 << 20, ["memoryOffset-01046"; 2]),
        (large, image_needs.alignment / 2, ["memoryOffset-01048", "pNext-01616"]),
        (small, 0, ["size-01049", "pNext-01617"]),
    ] {
        assert_eq!(unsafe { device.bind_image_memory(image, memory, offset) }, Err(WRONG));
        let info = [vk::BindImageMemoryInfo::default().image(image).memory(memory).memory_offset(offset)];
        assert_eq!(unsafe { device.bind_image_memory2(&info) }, Err(WRONG));
        let calls = ["vkBindImageMemory", "VkBindImageMemoryInfo"];
        let expected: Vec<_> =
            calls.iter().zip(rules).map(|(call, rule)| format!("VUID-{call}-{rule}")).collect();
        assert_eq!(reports(&gpu), expected);
    }
    assert_eq!(unsafe { device.bind_buffer_memory2(&[]) }, Err(WRONG));
    assert_eq!(unsafe { device.bind_image_memory2(&[]) }, Err(WRONG));
    assert_eq!(
        reports(&gpu),
        [
            "VUID-vkBindBufferMemory2-bindInfoCount-arraylength",
            "VUID-vkBindImageMemory2-bindInfoCount-arraylength"
        ]
    );

    // A failed bind binds nothing; a bind holds for ever.
    unsafe { device.bind_buffer_memory(buffer, large, 0) }.unwrap();
    unsafe { device.bind_image_memory(image, large, 1 << 16) }.unwrap();
    gpu.assert_silent();
    assert_eq!(unsafe { device.bind_buffer_memory(buffer, large, 0) }, Err(WRONG));
    assert_eq!(reports(&gpu), ["VUID-vkBindBufferMemory-buffer-07459"]);
    assert_eq!(unsafe { device.bind_image_memory(image, large, 1 << 16) }, Err(WRONG));
    assert_eq!(reports(&gpu), ["VUID-vkBindImageMemory-image-07460"]);
}

#[test]
fn binds_to_a_type_that_the_resource_cannot_use() {
    let found = ALL.iter().find_map(|profile| {
        let gpu = Gpu::builder(profile).api_version(vk::API_VERSION_1_1).build();
        let image = image(&gpu, 64);
        let needs = image_needs(&gpu, image);
        let other = (0..profile.types.len()).map(crate::facts::arithmetic::narrow);
        let special = vk::MemoryPropertyFlags::PROTECTED;
        let plain =
            |kind: &u32| !profile.types[crate::facts::arithmetic::index(*kind)].flags.intersects(special);
        let other = other.filter(plain).find(|kind| needs.memory_type_bits & (1 << kind) == 0);
        if other.is_none() {
            gpu.finish();
            return None;
        }
        Some((gpu, image, needs, other?))
    });
    let (gpu, image, needs, other) = found.unwrap();
    let memory = allocate(&gpu, needs.size, other);
    assert_eq!(unsafe { gpu.device().bind_image_memory(image, memory, 0) }, Err(WRONG));
    assert_eq!(reports(&gpu), ["VUID-vkBindImageMemory-memory-01047"]);
    let info = [vk::BindImageMemoryInfo::default().image(image).memory(memory)];
    assert_eq!(unsafe { gpu.device().bind_image_memory2(&info) }, Err(WRONG));
    assert_eq!(reports(&gpu), ["VUID-VkBindImageMemoryInfo-pNext-01615"]);
}

#[test]
fn buffers_with_an_address_in_memory_without() {
    let gpu = simple();
    let device = gpu.device();
    let buffer = buffer(&gpu, 64, vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS);
    let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
    assert_eq!(unsafe { device.get_buffer_device_address(&info) }, 0);
    assert_eq!(reports(&gpu), ["VUID-VkBufferDeviceAddressInfo-buffer-02600"]);
    let plain = allocate(&gpu, 4096, 0);
    assert_eq!(unsafe { device.bind_buffer_memory(buffer, plain, 0) }, Err(WRONG));
    assert_eq!(reports(&gpu), ["VUID-vkBindBufferMemory-bufferDeviceAddress-03339"]);
    let bind = [vk::BindBufferMemoryInfo::default().buffer(buffer).memory(plain)];
    assert_eq!(unsafe { device.bind_buffer_memory2(&bind) }, Err(WRONG));
    assert_eq!(reports(&gpu), ["VUID-VkBindBufferMemoryInfo-bufferDeviceAddress-03339"]);
    let other = storage(&gpu, 64);
    unsafe { device.bind_buffer_memory(other, plain, 0) }.unwrap();
    let info = vk::BufferDeviceAddressInfo::default().buffer(other);
    assert_eq!(unsafe { device.get_buffer_device_address(&info) }, 0);
    assert_eq!(reports(&gpu), ["VUID-VkBufferDeviceAddressInfo-buffer-02601"]);
}

#[test]
fn overlap() {
    let gpu = simple();
    let device = gpu.device();
    let memory = allocate(&gpu, 1 << 16, 0);
    let place = |offset: u64, size: u64| {
        let buffer = storage(&gpu, size);
        unsafe { device.bind_buffer_memory(buffer, memory, offset) }.unwrap();
        buffer
    };
    let first = place(1024, 1024);
    place(0, 1024);
    place(2048, 1024);
    gpu.assert_silent();
    for (offset, size) in [(1024, 1024), (1536, 64), (512, 1024), (1984, 1024), (0, 4096)] {
        place(offset, size);
        let reports = reports(&gpu);
        assert!(!reports.is_empty(), "{offset} {size}");
        assert!(reports.iter().all(|vuid| *vuid == "SUBLET-overlap"), "{offset} {size}: {reports:?}");
    }
    // The search finds the long one that begins far before, despite the others.
    place(3584, 64);
    assert_eq!(reports(&gpu), ["SUBLET-overlap"]);
    unsafe { device.destroy_buffer(first, None) };
    // A range that was declared, and only that one.
    gpu.declare_aliasing(memory, 8192, 1024);
    place(8192, 1024);
    place(8192, 1024);
    gpu.assert_silent();
    place(8192 + 512, 1024);
    place(9216, 512);
    assert_eq!(reports(&gpu), ["SUBLET-overlap"]);
    gpu.allow_aliasing(true);
    place(1024, 1024);
    gpu.assert_silent();
    gpu.allow_aliasing(false);
    place(1024, 1024);
    assert!(reports(&gpu).contains(&"SUBLET-overlap"));
}

#[test]
fn a_place_is_free_again_when_its_resource_is_destroyed() {
    let gpu = simple();
    let memory = allocate(&gpu, 4096, 0);
    for _ in 0..3 {
        let buffer = storage(&gpu, 4096);
        unsafe { gpu.device().bind_buffer_memory(buffer, memory, 0) }.unwrap();
        unsafe { gpu.device().destroy_buffer(buffer, None) };
    }
    let image = image(&gpu, 16);
    unsafe { gpu.device().bind_image_memory(image, memory, 0) }.unwrap();
    unsafe { gpu.device().destroy_image(image, None) };
    let buffer = storage(&gpu, 4096);
    unsafe { gpu.device().bind_buffer_memory(buffer, memory, 0) }.unwrap();
    gpu.assert_silent();
}

#[test]
fn images_with_the_alias_flag_may_overlap() {
    let gpu = simple();
    let memory = allocate(&gpu, 1 << 16, 0);
    let info = image_info(16, vk::ImageTiling::OPTIMAL);
    for flags in [vk::ImageCreateFlags::ALIAS; 2] {
        let image = unsafe { gpu.device().create_image(&info.flags(flags), None) }.unwrap();
        unsafe { gpu.device().bind_image_memory(image, memory, 0) }.unwrap();
    }
    gpu.assert_silent();
    let image = image(&gpu, 16);
    unsafe { gpu.device().bind_image_memory(image, memory, 0) }.unwrap();
    assert_eq!(reports(&gpu), ["SUBLET-overlap", "SUBLET-overlap"]);
}

#[test]
fn a_granularity_page_for_linear_and_optimal() {
    let (gpu, kind, granularity) = grainy();
    let device = gpu.device();
    let memory = allocate(&gpu, 1 << 22, kind);
    let (first, optimal) = (storage(&gpu, 64), image(&gpu, 4));
    let (buffer_needs, image_needs) = (needs(&gpu, first), image_needs(&gpu, optimal));
    unsafe { device.bind_buffer_memory(first, memory, 0) }.unwrap();
    let beside = buffer_needs.size.next_multiple_of(image_needs.alignment);
    assert!(beside < granularity);
    unsafe { device.bind_image_memory(optimal, memory, beside) }.unwrap();
    assert_eq!(reports(&gpu), ["SUBLET-granularity"]);
    // The order of the two does not matter.
    unsafe { device.destroy_buffer(first, None) };
    let first = storage(&gpu, 64);
    unsafe { device.bind_buffer_memory(first, memory, 0) }.unwrap();
    assert_eq!(reports(&gpu), ["SUBLET-granularity"]);
    unsafe { device.destroy_image(optimal, None) };
    // Two buffers may share a page, and an image on the next page is fine.
    let second = storage(&gpu, 64);
    unsafe {
        device.bind_buffer_memory(second, memory, buffer_needs.size.next_multiple_of(buffer_needs.alignment))
    }
    .unwrap();
    let optimal = image(&gpu, 4);
    let next_page = granularity.next_multiple_of(image_needs.alignment);
    unsafe { device.bind_image_memory(optimal, memory, next_page) }.unwrap();
    gpu.assert_silent();
    // The other way round: a buffer that comes after the image, on its last page.
    let after = (next_page + image_needs.size).next_multiple_of(buffer_needs.alignment);
    let third = storage(&gpu, 64);
    unsafe { device.bind_buffer_memory(third, memory, after) }.unwrap();
    let shared = after / granularity == (next_page + image_needs.size - 1) / granularity;
    assert_eq!(reports(&gpu), if shared { vec!["SUBLET-granularity"] } else { vec![] });
    // A linear image counts as a buffer does.
    let info = image_info(4, vk::ImageTiling::LINEAR);
    let linear = unsafe { device.create_image(&info, None) }.unwrap();
    let linear_needs = super::image_needs(&gpu, linear);
    if linear_needs.memory_type_bits & (1 << kind) != 0 {
        let place = (after + granularity * 4).next_multiple_of(linear_needs.alignment.max(granularity));
        unsafe { device.bind_image_memory(linear, memory, place) }.unwrap();
        let fourth = storage(&gpu, 64);
        let place = (place + linear_needs.size).next_multiple_of(buffer_needs.alignment);
        unsafe { device.bind_buffer_memory(fourth, memory, place) }.unwrap();
        gpu.assert_silent();
    }
}

#[test]
fn overlap_by_one_byte() {
    let found = ALL.iter().find_map(|profile| {
        let gpu = Gpu::new(profile);
        let first = storage(&gpu, 65);
        let needs = needs(&gpu, first);
        if needs.size % needs.alignment == 1 {
            return Some((gpu, first, needs));
        }
        gpu.finish();
        None
    });
    let (gpu, first, needs) = found.expect("a driver that does not round sizes up");
    let memory = allocate(&gpu, 4096, needs.memory_type_bits.trailing_zeros());
    unsafe { gpu.device().bind_buffer_memory(first, memory, 0) }.unwrap();
    let second = storage(&gpu, 64);
    unsafe { gpu.device().bind_buffer_memory(second, memory, needs.size - 1) }.unwrap();
    assert_eq!(reports(&gpu), ["SUBLET-overlap"]);
}
