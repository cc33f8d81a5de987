//! Unknown objects, wrong create-infos, and leaks.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use ash::vk::Handle as _;

use super::*;
use crate::objects::registry;

#[test]
fn unknown_freed_and_null_handles() {
    let gpu = simple();
    let device = gpu.device();
    unsafe { device.free_memory(vk::DeviceMemory::null(), None) };
    unsafe { device.destroy_buffer(vk::Buffer::null(), None) };
    unsafe { device.destroy_image(vk::Image::null(), None) };
    gpu.assert_silent();
    let (memory, buffer, image) = (allocate(&gpu, 64, 0), storage(&gpu, 64), image(&gpu, 4));
    for expected in [None, Some(())] {
        let expected = |vuid| if expected.is_some() { vec![vuid] } else { vec![] };
        unsafe { device.free_memory(memory, None) };
        assert_eq!(reports(&gpu), expected("VUID-vkFreeMemory-memory-parameter"));
        unsafe { device.destroy_buffer(buffer, None) };
        assert_eq!(reports(&gpu), expected("VUID-vkDestroyBuffer-buffer-parameter"));
        unsafe { device.destroy_image(image, None) };
        assert_eq!(reports(&gpu), expected("VUID-vkDestroyImage-image-parameter"));
    }
    // Handles of another GPU, and one that nobody made.
    let other = simple();
    let foreign = allocate(&other, 64, 0);
    let fates = [
        (foreign, "is not a handle of this device"),
        (vk::DeviceMemory::from_raw(0x1234), "is not a handle of this device"),
        (memory, "is destroyed"),
    ];
    for (memory, fate) in fates {
        unsafe { device.free_memory(memory, None) };
        let messages = gpu.take_messages();
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0].vuid, "VUID-vkFreeMemory-memory-parameter");
        assert!(messages[0].text.contains(fate), "{}", messages[0].text);
    }
    unsafe { other.device().free_memory(foreign, None) };
    assert_eq!(other.finish(), []);
}

#[test]
fn every_query_of_a_destroyed_object() {
    let gpu = simple();
    let device = gpu.device();
    let (memory, buffer, image) = (allocate(&gpu, 64, 0), storage(&gpu, 64), image(&gpu, 4));
    unsafe { device.free_memory(memory, None) };
    unsafe { device.destroy_buffer(buffer, None) };
    unsafe { device.destroy_image(image, None) };
    let _ = needs(&gpu, buffer);
    assert_eq!(reports(&gpu), ["VUID-vkGetBufferMemoryRequirements-buffer-parameter"]);
    let _ = image_needs(&gpu, image);
    assert_eq!(reports(&gpu), ["VUID-vkGetImageMemoryRequirements-image-parameter"]);
    let mut out = vk::MemoryRequirements2::default();
    let info = vk::BufferMemoryRequirementsInfo2::default().buffer(buffer);
    unsafe { device.get_buffer_memory_requirements2(&info, &mut out) };
    assert_eq!(reports(&gpu), ["VUID-VkBufferMemoryRequirementsInfo2-buffer-parameter"]);
    let info = vk::ImageMemoryRequirementsInfo2::default().image(image);
    unsafe { device.get_image_memory_requirements2(&info, &mut out) };
    assert_eq!(reports(&gpu), ["VUID-VkImageMemoryRequirementsInfo2-image-parameter"]);
    assert_eq!(unsafe { device.bind_buffer_memory(buffer, memory, 0) }, Err(WRONG));
    assert_eq!(reports(&gpu), ["VUID-vkBindBufferMemory-buffer-parameter"]);
    assert_eq!(unsafe { device.bind_image_memory(image, memory, 0) }, Err(WRONG));
    assert_eq!(reports(&gpu), ["VUID-vkBindImageMemory-image-parameter"]);
    refuses(&gpu, "VUID-vkMapMemory-memory-parameter", map(&gpu, memory, 0, 64));
    unsafe { device.unmap_memory(memory) };
    assert_eq!(reports(&gpu), ["VUID-vkUnmapMemory-memory-parameter"]);
    assert_eq!(unsafe { device.flush_mapped_memory_ranges(&[range(memory, 0, 64)]) }, Err(WRONG));
    assert_eq!(reports(&gpu), ["VUID-VkMappedMemoryRange-memory-parameter"]);
    let live = storage(&gpu, 64);
    assert_eq!(unsafe { device.bind_buffer_memory(live, memory, 0) }, Err(WRONG));
    assert_eq!(reports(&gpu), ["VUID-vkBindBufferMemory-memory-parameter"]);
    unsafe { device.destroy_buffer(live, None) };
}

#[test]
fn create_infos_that_ask_for_nothing_or_too_much() {
    let gpu = simple();
    let device = gpu.device();
    let fine = vk::BufferCreateInfo::default().size(64).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
    let limit = gpu.profile().limits.max_buffer_size;
    let cases = [
        (fine.size(0), "VUID-VkBufferCreateInfo-size-00912"),
        (fine.usage(vk::BufferUsageFlags::empty()), "VUID-VkBufferCreateInfo-usage-requiredbitmask"),
        (fine.size(limit.saturating_add(1)), "VUID-VkBufferCreateInfo-size-06409"),
        (fine.flags(vk::BufferCreateFlags::SPARSE_BINDING), "VUID-VkBufferCreateInfo-flags-00915"),
        (fine.flags(vk::BufferCreateFlags::PROTECTED), "VUID-VkBufferCreateInfo-flags-01887"),
        (fine.sharing_mode(vk::SharingMode::CONCURRENT), "VUID-VkBufferCreateInfo-sharingMode-00914"),
    ];
    for (info, vuid) in cases {
        refuses(&gpu, vuid, unsafe { device.create_buffer(&info, None) });
    }

    let fine = image_info(64, vk::ImageTiling::OPTIMAL);
    let extent = |width, height, depth| fine.extent(vk::Extent3D { width, height, depth });
    let limits = &gpu.profile().limits;
    let side = limits.max_image_dimension_2d;
    let cases = [
        (extent(0, 64, 1), "VUID-VkImageCreateInfo-extent-00944"),
        (extent(64, 0, 1), "VUID-VkImageCreateInfo-extent-00945"),
        (extent(64, 64, 0), "VUID-VkImageCreateInfo-extent-00946"),
        (fine.mip_levels(0), "VUID-VkImageCreateInfo-mipLevels-00947"),
        (fine.array_layers(0), "VUID-VkImageCreateInfo-arrayLayers-00948"),
        (fine.usage(vk::ImageUsageFlags::empty()), "VUID-VkImageCreateInfo-usage-requiredbitmask"),
        (fine.format(vk::Format::UNDEFINED), "VUID-VkImageCreateInfo-pNext-01975"),
        (
            fine.format(vk::Format::from_raw(0x7000_0000)),
            "VUID-VkImageCreateInfo-imageCreateMaxMipLevels-02251",
        ),
        (fine.image_type(vk::ImageType::TYPE_1D), "VUID-VkImageCreateInfo-imageType-00956"),
        (extent(64, 64, 2), "VUID-VkImageCreateInfo-imageType-00957"),
        (extent(side + 1, 64, 1), "VUID-VkImageCreateInfo-extent-02252"),
        (extent(64, side + 1, 1), "VUID-VkImageCreateInfo-extent-02253"),
        (
            extent(64, 64, limits.max_image_dimension_3d + 1).image_type(vk::ImageType::TYPE_3D),
            "VUID-VkImageCreateInfo-extent-02254",
        ),
        (fine.image_type(vk::ImageType::TYPE_3D).array_layers(2), "VUID-VkImageCreateInfo-imageType-00961"),
        (fine.mip_levels(8), "VUID-VkImageCreateInfo-mipLevels-00958"),
        (fine.array_layers(limits.max_image_array_layers + 1), "VUID-VkImageCreateInfo-arrayLayers-02256"),
        (
            fine.usage(vk::ImageUsageFlags::TRANSIENT_ATTACHMENT | vk::ImageUsageFlags::SAMPLED),
            "VUID-VkImageCreateInfo-usage-00963",
        ),
        (fine.flags(vk::ImageCreateFlags::SPARSE_BINDING), "VUID-VkImageCreateInfo-flags-00969"),
        (fine.initial_layout(vk::ImageLayout::GENERAL), "VUID-VkImageCreateInfo-initialLayout-00993"),
    ];
    for (info, vuid) in cases {
        refuses(&gpu, vuid, unsafe { device.create_image(&info, None) });
    }
    let seven = unsafe { device.create_image(&fine.mip_levels(7), None) }.unwrap();
    unsafe { device.destroy_image(seven, None) };
    assert_eq!(gpu.finish(), []);
}

#[test]
fn leaks_name_each_object() {
    let gpu = simple();
    let names = ash::ext::debug_utils::Device::new(gpu.instance(), gpu.device());
    let memory = allocate(&gpu, 4096, 0);
    let buffer = storage(&gpu, 64);
    image(&gpu, 4);
    let info = vk::DebugUtilsObjectNameInfoEXT::default().object_handle(buffer).object_name(c"the lost one");
    unsafe { names.set_debug_utils_object_name(&info) }.unwrap();
    unsafe { gpu.device().bind_buffer_memory(buffer, memory, 0) }.unwrap();
    let messages = gpu.finish();
    assert_eq!(messages.len(), 3);
    assert!(messages.iter().all(|message| message.vuid == "VUID-vkDestroyDevice-device-05137"));
    assert!(messages[0].text.contains("\"the lost one\" of 64 bytes"), "{}", messages[0].text);
    assert!(messages[2].text.contains("4096 bytes of memory type 0"), "{}", messages[2].text);
}

#[test]
fn views_of_what_is_not_there() {
    let gpu = simple();
    let device = gpu.device();
    let texels = buffer(&gpu, 64, vk::BufferUsageFlags::UNIFORM_TEXEL_BUFFER);
    let plain = storage(&gpu, 64);
    let view = |buffer, offset, range| {
        let format = vk::Format::R8G8B8A8_UNORM;
        let info =
            vk::BufferViewCreateInfo::default().buffer(buffer).format(format).offset(offset).range(range);
        let view = unsafe { device.create_buffer_view(&info, None) };
        (view, reports(&gpu))
    };
    let wrong = |vuid| (Err(WRONG), vec![vuid]);
    assert_eq!(view(plain, 0, 64), wrong("VUID-VkBufferViewCreateInfo-buffer-00932"));
    assert_eq!(view(texels, 0, 64), wrong("VUID-VkBufferViewCreateInfo-buffer-00935"));
    let memory = allocate(&gpu, 4096, 0);
    unsafe { device.bind_buffer_memory(texels, memory, 0) }.unwrap();
    assert_eq!(view(texels, 64, 4), wrong("VUID-VkBufferViewCreateInfo-offset-00925"));
    assert_eq!(view(texels, 32, 36), wrong("VUID-VkBufferViewCreateInfo-offset-00931"));
    let (made, silent) = view(texels, 32, 32);
    assert_eq!(silent, [""; 0]);
    unsafe { device.destroy_buffer_view(made.unwrap(), None) };
    unsafe { device.destroy_buffer_view(made.unwrap(), None) };
    assert_eq!(reports(&gpu), ["VUID-vkDestroyBufferView-bufferView-parameter"]);

    let image = image(&gpu, 4);
    let info = vk::ImageViewCreateInfo::default()
        .image(image)
        .view_type(vk::ImageViewType::TYPE_2D)
        .subresource_range(whole(vk::ImageAspectFlags::COLOR));
    refuses(&gpu, "VUID-VkImageViewCreateInfo-image-01020", unsafe { device.create_image_view(&info, None) });
    unsafe { device.bind_image_memory(image, memory, 1024) }.unwrap();
    let made = unsafe { device.create_image_view(&info, None) }.unwrap();
    assert_eq!(gpu.live().views, 1);
    unsafe { device.destroy_image_view(made, None) };
    gpu.assert_silent();
    unsafe { device.destroy_image_view(made, None) };
    assert_eq!(reports(&gpu), ["VUID-vkDestroyImageView-imageView-parameter"]);
}

/// At the edge of each rule a view is made, and beyond it none is.
#[test]
fn views_of_parts_that_an_image_has_not() {
    let gpu = simple();
    let device = gpu.device();
    let make = |kind, depth, layers| {
        let info = vk::ImageCreateInfo::default()
            .image_type(kind)
            .format(vk::Format::R8G8B8A8_UNORM)
            .extent(vk::Extent3D { width: 16, height: 16, depth })
            .mip_levels(3)
            .array_layers(layers)
            .samples(vk::SampleCountFlags::TYPE_1)
            .flags(vk::ImageCreateFlags::TYPE_2D_ARRAY_COMPATIBLE)
            .usage(vk::ImageUsageFlags::SAMPLED);
        let image = unsafe { device.create_image(&info, None) }.unwrap();
        let memory = allocate(&gpu, 1 << 20, 0);
        unsafe { device.bind_image_memory(image, memory, 0) }.unwrap();
        image
    };
    let (flat, deep) = (make(vk::ImageType::TYPE_2D, 1, 4), make(vk::ImageType::TYPE_3D, 8, 1));
    let view = |image, view_type, [level, levels, layer, count]: [u32; 4], aspect_mask| {
        let range = vk::ImageSubresourceRange {
            aspect_mask,
            base_mip_level: level,
            level_count: levels,
            base_array_layer: layer,
            layer_count: count,
        };
        let info =
            vk::ImageViewCreateInfo::default().image(image).view_type(view_type).subresource_range(range);
        let made = unsafe { device.create_image_view(&info, None) };
        if let Ok(view) = made {
            unsafe { device.destroy_image_view(view, None) };
        }
        reports(&gpu)
    };
    let (array, volume, color) =
        (vk::ImageViewType::TYPE_2D_ARRAY, vk::ImageViewType::TYPE_3D, vk::ImageAspectFlags::COLOR);
    for (parts, rule) in [
        ([2, 1, 3, 1], None),
        ([0, 3, 0, 4], None),
        ([0, vk::REMAINING_MIP_LEVELS, 0, vk::REMAINING_ARRAY_LAYERS], None),
        ([0, 0, 0, 1], Some("VUID-VkImageSubresourceRange-levelCount-01720")),
        ([0, 1, 0, 0], Some("VUID-VkImageSubresourceRange-layerCount-01721")),
        ([3, 1, 0, 1], Some("VUID-VkImageViewCreateInfo-subresourceRange-01478")),
        ([2, 2, 0, 1], Some("VUID-VkImageViewCreateInfo-subresourceRange-01718")),
        ([0, 1, 4, 1], Some("VUID-VkImageViewCreateInfo-image-01482")),
        ([0, 1, 3, 2], Some("VUID-VkImageViewCreateInfo-subresourceRange-01483")),
    ] {
        assert_eq!(view(flat, array, parts, color), rule.into_iter().collect::<Vec<_>>(), "{parts:?}");
    }
    for (view_type, parts, rule) in [
        (volume, [0, 3, 0, 1], None),
        (array, [0, 1, 7, 1], None),
        (array, [1, 1, 0, 4], None),
        (volume, [0, 1, 1, 1], Some("VUID-VkImageViewCreateInfo-image-01482")),
        (array, [1, 1, 4, 1], Some("VUID-VkImageViewCreateInfo-image-02724")),
        (array, [1, 1, 3, 2], Some("VUID-VkImageViewCreateInfo-subresourceRange-02725")),
    ] {
        assert_eq!(view(deep, view_type, parts, color), rule.into_iter().collect::<Vec<_>>(), "{parts:?}");
    }
    let none = vk::ImageAspectFlags::empty();
    assert_eq!(
        view(flat, array, [0, 1, 0, 1], none),
        ["VUID-VkImageSubresourceRange-aspectMask-requiredbitmask"]
    );
}

#[test]
fn a_layout_of_an_optimal_image() {
    let gpu = simple();
    let device = gpu.device();
    let subresource = vk::ImageSubresource::default().aspect_mask(vk::ImageAspectFlags::COLOR);
    let optimal = image(&gpu, 4);
    let _ = unsafe { device.get_image_subresource_layout(optimal, subresource) };
    assert_eq!(reports(&gpu), ["VUID-vkGetImageSubresourceLayout-image-07789"]);
    let linear = unsafe { device.create_image(&image_info(4, vk::ImageTiling::LINEAR), None) }.unwrap();
    let layout = unsafe { device.get_image_subresource_layout(linear, subresource) };
    assert!(layout.row_pitch >= 16 && layout.size >= 64);
    gpu.assert_silent();
    let _ = unsafe { device.get_image_subresource_layout(linear, subresource.mip_level(1)) };
    assert_eq!(reports(&gpu), ["VUID-vkGetImageSubresourceLayout-mipLevel-01716"]);
    let _ = unsafe { device.get_image_subresource_layout(linear, subresource.array_layer(1)) };
    assert_eq!(reports(&gpu), ["VUID-vkGetImageSubresourceLayout-arrayLayer-01717"]);
}

#[test]
fn callbacks_at_one_end_only() {
    let gpu = simple();
    let device = gpu.device();
    let callbacks = vk::AllocationCallbacks::default();
    let (with, without) = (Some(&callbacks), None);
    let info = vk::BufferCreateInfo::default().size(64).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
    let image_info = image_info(4, vk::ImageTiling::OPTIMAL);
    for (first, second, expected) in [
        (with, with, [None, None]),
        (without, without, [None, None]),
        (with, without, [Some("VUID-vkDestroyBuffer-buffer-00923"), Some("VUID-vkDestroyImage-image-01001")]),
        (without, with, [Some("VUID-vkDestroyBuffer-buffer-00924"), Some("VUID-vkDestroyImage-image-01002")]),
    ] {
        let buffer = unsafe { device.create_buffer(&info, first) }.unwrap();
        unsafe { device.destroy_buffer(buffer, second) };
        let image = unsafe { device.create_image(&image_info, first) }.unwrap();
        unsafe { device.destroy_image(image, second) };
        let expected: Vec<_> = expected.into_iter().flatten().collect();
        assert_eq!(reports(&gpu), expected);
    }
}

/// A command buffer that fills a buffer, submitted and held back.
fn fill_later(gpu: &Gpu, buffer: vk::Buffer) -> vk::CommandPool {
    let (pool, commands) = filling(gpu, buffer);
    gpu.hold_submissions(true);
    let submit = vk::SubmitInfo::default().command_buffers(&commands);
    unsafe { gpu.device().queue_submit(gpu.queue(), &[submit], vk::Fence::null()) }.unwrap();
    pool
}

#[test]
fn destruction_of_what_a_submission_uses() {
    let gpu = simple();
    let device = gpu.device();
    let buffer = buffer(&gpu, 256, vk::BufferUsageFlags::TRANSFER_DST);
    let memory = allocate(&gpu, 4096, 0);
    unsafe { device.bind_buffer_memory(buffer, memory, 0) }.unwrap();
    let pool = fill_later(&gpu, buffer);
    gpu.assert_silent();
    unsafe { device.free_memory(memory, None) };
    assert_eq!(reports(&gpu), ["VUID-vkFreeMemory-memory-00677"]);
    unsafe { device.destroy_buffer(buffer, None) };
    assert_eq!(reports(&gpu), ["VUID-vkDestroyBuffer-buffer-00922"]);
    gpu.run_pending();
    gpu.take_messages();
    unsafe { device.destroy_command_pool(pool, None) };
    assert!(gpu.live().is_empty());
    assert_eq!(gpu.finish(), []);
}

#[test]
fn what_a_submission_used_may_go_when_it_is_done() {
    let gpu = simple();
    let device = gpu.device();
    let buffer = buffer(&gpu, 256, vk::BufferUsageFlags::TRANSFER_DST);
    let memory = allocate(&gpu, 4096, 0);
    unsafe { device.bind_buffer_memory(buffer, memory, 0) }.unwrap();
    fill_later(&gpu, buffer);
    let live = gpu.live();
    assert_eq!((live.command_pools, live.command_buffers), (1, 1));
    unsafe { device.queue_wait_idle(gpu.queue()) }.unwrap();
    assert_eq!(unsafe { gpu.read_memory(memory, 252, 8) }.unwrap(), [7, 0, 0, 0, 0, 0, 0, 0]);
    destroy_all(&gpu);
    assert_eq!(gpu.finish(), []);
}

#[test]
fn command_pools_fences_and_semaphores_leak_too() {
    let gpu = simple();
    let device = gpu.device();
    let info = vk::CommandPoolCreateInfo::default();
    let pool = unsafe { device.create_command_pool(&info, None) }.unwrap();
    let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
    let commands = unsafe { device.allocate_command_buffers(&info) }.unwrap();
    unsafe { device.create_fence(&vk::FenceCreateInfo::default(), None) }.unwrap();
    unsafe { device.create_semaphore(&vk::SemaphoreCreateInfo::default(), None) }.unwrap();
    let handles = device.clone();
    let messages = gpu.finish();
    assert_eq!(messages.len(), 3);
    assert!(messages.iter().all(|message| message.vuid == "VUID-vkDestroyDevice-device-05137"));
    // The command buffer went with its device: its handle is nobody's.
    assert_eq!(unsafe { handles.end_command_buffer(commands[0]) }, Err(WRONG));
    assert!(crate::objects::registry::command_buffer(commands[0]).is_none());
}

/// Notes whether the device's lock is free.
unsafe extern "system" fn look(
    _: vk::DebugUtilsMessageSeverityFlagsEXT,
    _: vk::DebugUtilsMessageTypeFlagsEXT,
    _: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    user_data: *mut c_void,
) -> vk::Bool32 {
    let (device, free) = unsafe { &mut *user_data.cast::<(vk::Device, Vec<bool>)>() };
    free.push(registry::device(*device).unwrap().state.try_lock().is_some());
    vk::FALSE
}

#[test]
fn a_program_that_is_told_of_a_report_may_use_the_gpu() {
    let gpu = simple();
    let device = gpu.device();
    let utils = ash::ext::debug_utils::Instance::new(gpu.entry(), gpu.instance());
    let mut seen = (device.handle(), Vec::<bool>::new());
    let info = vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR)
        .message_type(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION)
        .pfn_user_callback(Some(look))
        .user_data((&raw mut seen).cast());
    let messenger = unsafe { utils.create_debug_utils_messenger(&info, None) }.unwrap();
    // A call that is refused, one that goes on, one that destroys what is in use, and one beside the entry points.
    unsafe { device.unmap_memory(vk::DeviceMemory::null()) };
    let (one, other) = (storage(&gpu, 1000), storage(&gpu, 1000));
    let needs = needs(&gpu, one);
    let memory = allocate(&gpu, needs.size, needs.memory_type_bits.trailing_zeros());
    for buffer in [one, other] {
        unsafe { device.bind_buffer_memory(buffer, memory, 0) }.unwrap();
    }
    gpu.hold_submissions(true);
    let fence = unsafe { device.create_fence(&vk::FenceCreateInfo::default(), None) }.unwrap();
    let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
    let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
    let semaphore = unsafe { device.create_semaphore(&info, None) }.unwrap();
    let (values, semaphores) = ([3], [semaphore]);
    let mut values = vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values);
    let work = vk::SubmitInfo::default().signal_semaphores(&semaphores).push_next(&mut values);
    unsafe { device.queue_submit(gpu.queue(), &[work], fence) }.unwrap();
    unsafe { device.destroy_fence(fence, None) };
    if let Some(found) =
        registry::device(device.handle()).unwrap().state.lock().sync.semaphores.get_mut(&semaphore)
    {
        found.kind = crate::objects::sync::SemaphoreKind::Timeline { value: 3, scheduled: 3 };
    }
    assert_eq!(gpu.run_pending(), 1);
    unsafe { utils.destroy_debug_utils_messenger(messenger, None) };
    let expected = [
        "VUID-vkUnmapMemory-memory-parameter",
        "SUBLET-overlap",
        "VUID-vkDestroyFence-fence-01120",
        "VUID-VkSubmitInfo-pSignalSemaphores-03242",
    ];
    assert_eq!(reports(&gpu), expected);
    assert_eq!(seen.1, [true; 4]);
}
