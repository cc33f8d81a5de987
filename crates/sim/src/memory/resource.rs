//! Buffers, images and their views: creation and destruction.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;
use ash::vk::Handle as _;

use crate::facts::broken::{Broken, refuse_if};
use crate::facts::format::ImageDescription;
use crate::facts::{chain, format};
use crate::memory::describe::{describe_buffer, describe_image};
use crate::memory::usage;
use crate::objects::entry::{checked, entries, on_device, report_broken};
use crate::objects::host;
use crate::objects::host::destroys;
use crate::objects::resources::{
    BufferObject, BufferView, ImageObject, ImageView, MemoryBinding, SparsePages,
};
use crate::objects::state::{DeviceObject, DeviceState, Label};

entries! {
    Device result vk::PFN_vkCreateBuffer = create_buffer: core 0 "vkCreateBuffer";
    Device void vk::PFN_vkDestroyBuffer = destroy_buffer: core 0 "vkDestroyBuffer";
    Device result vk::PFN_vkCreateImage = create_image: core 0 "vkCreateImage";
    Device void vk::PFN_vkDestroyImage = destroy_image: core 0 "vkDestroyImage";
    Device result vk::PFN_vkCreateBufferView = create_buffer_view: core 0 "vkCreateBufferView";
    Device void vk::PFN_vkDestroyBufferView = destroy_buffer_view: core 0 "vkDestroyBufferView";
    Device result vk::PFN_vkCreateImageView = create_image_view: core 0 "vkCreateImageView";
    Device void vk::PFN_vkDestroyImageView = destroy_image_view: core 0 "vkDestroyImageView";
    Device void vk::PFN_vkGetBufferDeviceAddress = buffer_address:
        core 2 "vkGetBufferDeviceAddress", ext "VK_KHR_buffer_device_address" "vkGetBufferDeviceAddressKHR";
    Device void vk::PFN_vkGetBufferOpaqueCaptureAddress = buffer_capture_address:
        core 2 "vkGetBufferOpaqueCaptureAddress",
        ext "VK_KHR_buffer_device_address" "vkGetBufferOpaqueCaptureAddressKHR";
    Device void vk::PFN_vkGetImageSubresourceLayout = subresource_layout: core 0 "vkGetImageSubresourceLayout";
}

unsafe extern "system" fn create_buffer(
    device: vk::Device,
    p_info: *const vk::BufferCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    p_buffer: *mut vk::Buffer,
) -> vk::Result {
    checked(device, "vkCreateBuffer", |device| {
        // SAFETY: VUID-vkCreateBuffer-pCreateInfo-parameter and VUID-VkBufferCreateInfo-pNext-pNext.
        let (description, external, exclusive) = unsafe { describe_buffer(device, p_info) }?;
        usage::check_buffer_usage(device, &description)?;
        usage::check_heap_usage(device, &description)?;
        // A program that cannot query the limit breaks no rule.
        if description.size > device.profile().limits.max_buffer_size {
            return Ok(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        }
        let requirements = format::buffer_requirements(device.profile(), &description);
        let is_sparse = description.flags.contains(vk::BufferCreateFlags::SPARSE_BINDING);
        let pages = is_sparse.then(SparsePages::new);
        let insert = |state: &mut DeviceState, handle, host| {
            let buffer = BufferObject {
                description,
                requirements,
                bound: None,
                pages,
                host,
                external,
                exclusive,
                in_use: 0,
            };
            state.buffers.insert(handle, buffer);
        };
        // SAFETY: 1: VUID-vkCreateBuffer-pAllocator-parameter. 2: no lock is held. 3:
        // VUID-vkCreateBuffer-pBuffer-parameter.
        Ok(unsafe { host::create(device, callbacks, p_buffer, insert) })
    })
}

unsafe extern "system" fn create_image(
    device: vk::Device,
    p_info: *const vk::ImageCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    p_image: *mut vk::Image,
) -> vk::Result {
    checked(device, "vkCreateImage", |device| {
        // SAFETY: VUID-vkCreateImage-pCreateInfo-parameter and VUID-VkImageCreateInfo-pNext-pNext.
        let (description, external, exclusive) = unsafe { describe_image(device, p_info) }?;
        let requirements = format::image_requirements(device.profile(), &description);
        let insert = |state: &mut DeviceState, handle, host| {
            let image =
                ImageObject { description, requirements, bound: None, host, external, exclusive, in_use: 0 };
            state.images.insert(handle, image);
        };
        // SAFETY: 1: VUID-vkCreateImage-pAllocator-parameter. 2: no lock is held. 3:
        // VUID-vkCreateImage-pImage-parameter.
        Ok(unsafe { host::create(device, callbacks, p_image, insert) })
    })
}

impl DeviceState {
    fn unbind(&mut self, bound: Option<&MemoryBinding>, handle: u64) {
        if let Some(bound) = bound {
            if let Some(memory) = self.memories.get_mut(&bound.memory) {
                memory.bindings.remove(&(bound.offset, handle));
            }
        }
    }
}

fn report_use(device: &DeviceObject, name: &Label, in_use: u32, rule: &'static str) {
    if in_use > 0 {
        device.report(rule, format!("{name} is destroyed, and a submission still uses it"));
    }
}

destroys! {
    fn destroy_buffer(buffer: vk::Buffer) = "vkDestroyBuffer",
    ["buffer-parameter", "buffer-00923", "buffer-00924"],
    |device, state, name| {
        state.unbind_pages(buffer, 0, u64::MAX);
        let found = state.buffers.remove(&buffer)?;
        report_use(device, name, found.in_use, "VUID-vkDestroyBuffer-buffer-00922");
        state.unbind(found.bound.as_ref(), buffer.as_raw());
        Some(found.host)
    }
}

destroys! {
    fn destroy_image(image: vk::Image) = "vkDestroyImage",
    ["image-parameter", "image-01001", "image-01002"],
    |device, state, name| {
        let found = state.images.remove(&image)?;
        report_use(device, name, found.in_use, "VUID-vkDestroyImage-image-01000");
        state.unbind(found.bound.as_ref(), image.as_raw());
        Some(found.host)
    }
}

unsafe extern "system" fn create_buffer_view(
    device: vk::Device,
    p_info: *const vk::BufferViewCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    p_view: *mut vk::BufferView,
) -> vk::Result {
    checked(device, "vkCreateBufferView", |device| {
        // SAFETY: VUID-vkCreateBufferView-pCreateInfo-parameter.
        let info = unsafe { chain::given(p_info, "VUID-vkCreateBufferView-pCreateInfo-parameter") }?;
        let mut state = device.state.lock();
        let name = state.label(info.buffer);
        let buffer = state.buffers.get(&info.buffer);
        let rule = "VUID-VkBufferViewCreateInfo-buffer-parameter";
        let buffer = state.known(device, info.buffer, buffer, rule)?;
        let texels = vk::BufferUsageFlags::UNIFORM_TEXEL_BUFFER | vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER;
        let size = buffer.description.size;
        refuse_if!(!buffer.description.usage.intersects(texels) => "VUID-VkBufferViewCreateInfo-buffer-00932",
            "{name} has no texel buffer usage");
        refuse_if!(!buffer.is_backed() => "VUID-VkBufferViewCreateInfo-buffer-00935",
            "{name} is not bound to memory");
        refuse_if!(info.offset >= size => "VUID-VkBufferViewCreateInfo-offset-00925",
            "offset is {}, and {name} has {size} bytes", info.offset);
        refuse_if!(info.range != vk::WHOLE_SIZE && info.range > size - info.offset
            => "VUID-VkBufferViewCreateInfo-offset-00931",
            "offset is {} and range {}, and {name} has {size} bytes", info.offset, info.range);
        let handle = device.gpu_state.handle::<vk::BufferView>();
        state
            .buffer_views
            .insert(handle, BufferView { buffer: info.buffer, start: info.offset, size: info.range });
        // SAFETY: VUID-vkCreateBufferView-pView-parameter.
        unsafe { chain::output(p_view, handle) };
        Ok(vk::Result::SUCCESS)
    })
}

unsafe extern "system" fn destroy_buffer_view(
    device: vk::Device,
    view: vk::BufferView,
    _: *const vk::AllocationCallbacks<'_>,
) {
    on_device(device, "vkDestroyBufferView", |device| {
        let rule = "VUID-vkDestroyBufferView-bufferView-parameter";
        host::forget(device, view, rule, |state, _| state.buffer_views.remove(&view));
    });
}

unsafe extern "system" fn create_image_view(
    device: vk::Device,
    p_info: *const vk::ImageViewCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    p_view: *mut vk::ImageView,
) -> vk::Result {
    checked(device, "vkCreateImageView", |device| {
        // SAFETY: VUID-vkCreateImageView-pCreateInfo-parameter.
        let info = unsafe { chain::given(p_info, "VUID-vkCreateImageView-pCreateInfo-parameter") }?;
        let mut state = device.state.lock();
        let name = state.label(info.image);
        let image = state.images.get(&info.image);
        let rule = "VUID-VkImageViewCreateInfo-image-parameter";
        let image = state.known(device, info.image, image, rule)?;
        refuse_if!(image.bound.is_none() => "VUID-VkImageViewCreateInfo-image-01020",
            "{name} is not bound to memory");
        check_view(&name, &image.description, info)?;
        let handle = device.gpu_state.handle::<vk::ImageView>();
        let view = ImageView { image: info.image, range: info.subresource_range, format: info.format };
        state.image_views.insert(handle, view);
        // SAFETY: VUID-vkCreateImageView-pView-parameter.
        unsafe { chain::output(p_view, handle) };
        Ok(vk::Result::SUCCESS)
    })
}

/// Checks whether a view shows something, and nothing that the image has not.
fn check_view(
    name: &Label,
    image: &ImageDescription,
    info: &vk::ImageViewCreateInfo<'_>,
) -> Result<(), Broken> {
    let range = info.subresource_range;
    refuse_if!(range.aspect_mask.is_empty() => "VUID-VkImageSubresourceRange-aspectMask-requiredbitmask",
        "a view of {name} has no aspect");
    refuse_if!(range.level_count == 0 => "VUID-VkImageSubresourceRange-levelCount-01720",
        "a view of {name} has no level");
    refuse_if!(range.layer_count == 0 => "VUID-VkImageSubresourceRange-layerCount-01721",
        "a view of {name} has no layer");
    let beyond = |first: u32, count: u32, there: u32| {
        let given = if count == vk::REMAINING_ARRAY_LAYERS { 0 } else { count };
        (first >= there, first.saturating_add(given) > there)
    };
    let (starts, ends) = beyond(range.base_mip_level, range.level_count, image.mip_levels);
    refuse_if!(starts => "VUID-VkImageViewCreateInfo-subresourceRange-01478",
        "a view of {name} starts at level {}", range.base_mip_level);
    refuse_if!(ends => "VUID-VkImageViewCreateInfo-subresourceRange-01718",
        "a view of {name} has {} levels from {} on", range.level_count, range.base_mip_level);
    let flat = [vk::ImageViewType::TYPE_2D, vk::ImageViewType::TYPE_2D_ARRAY].contains(&info.view_type);
    let slices = flat && image.image_type == vk::ImageType::TYPE_3D;
    let (there, rules) = match slices {
        true => (
            format::level_size(image.extent.depth, range.base_mip_level),
            ["VUID-VkImageViewCreateInfo-image-02724", "VUID-VkImageViewCreateInfo-subresourceRange-02725"],
        ),
        false => (
            image.array_layers,
            ["VUID-VkImageViewCreateInfo-image-01482", "VUID-VkImageViewCreateInfo-subresourceRange-01483"],
        ),
    };
    let (starts, ends) = beyond(range.base_array_layer, range.layer_count, there);
    refuse_if!(starts => rules[0], "a view of {name} starts at layer {}", range.base_array_layer);
    refuse_if!(ends => rules[1],
        "a view of {name} has {} layers from {} on", range.layer_count, range.base_array_layer);
    Ok(())
}

unsafe extern "system" fn destroy_image_view(
    device: vk::Device,
    view: vk::ImageView,
    _: *const vk::AllocationCallbacks<'_>,
) {
    on_device(device, "vkDestroyImageView", |device| {
        let rule = "VUID-vkDestroyImageView-imageView-parameter";
        host::forget(device, view, rule, |state, _| state.image_views.remove(&view));
    });
}

unsafe extern "system" fn buffer_address(
    device: vk::Device,
    p_info: *const vk::BufferDeviceAddressInfo<'_>,
) -> vk::DeviceAddress {
    checked(device, "vkGetBufferDeviceAddress", |device| {
        // SAFETY: VUID-vkGetBufferDeviceAddress-pInfo-parameter.
        let buffer = unsafe { chain::input(p_info) }.map_or(vk::Buffer::null(), |info| info.buffer);
        address(device, buffer, "VUID-vkGetBufferDeviceAddress-bufferDeviceAddress-03324")
    })
}

unsafe extern "system" fn buffer_capture_address(
    device: vk::Device,
    p_info: *const vk::BufferDeviceAddressInfo<'_>,
) -> u64 {
    checked(device, "vkGetBufferOpaqueCaptureAddress", |device| {
        // SAFETY: VUID-vkGetBufferOpaqueCaptureAddress-pInfo-parameter.
        let buffer = unsafe { chain::input(p_info) }.map_or(vk::Buffer::null(), |info| info.buffer);
        address(device, buffer, "VUID-vkGetBufferOpaqueCaptureAddress-None-03326")
    })
}

fn address(device: &DeviceObject, handle: vk::Buffer, not_enabled: &'static str) -> Result<u64, Broken> {
    let state = device.state.lock();
    let name = state.label(handle);
    refuse_if!(!device.features.buffer_device_address => not_enabled,
        "the feature bufferDeviceAddress is not enabled");
    let rule = "VUID-VkBufferDeviceAddressInfo-buffer-parameter";
    let buffer = state.known(device, handle, state.buffers.get(&handle), rule)?;
    let usage = buffer.description.usage;
    refuse_if!(!usage.contains(vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS)
        => "VUID-VkBufferDeviceAddressInfo-buffer-02601",
        "{name} was created without SHADER_DEVICE_ADDRESS");
    let bound = buffer.bound.as_ref();
    let address = bound.and_then(|bound| Some(state.memories.get(&bound.memory)?.address + bound.offset));
    address.ok_or_else(|| {
        let text = format!("{name} is not bound to memory, or its memory is freed");
        ("VUID-VkBufferDeviceAddressInfo-buffer-02600", text)
    })
}

unsafe extern "system" fn subresource_layout(
    device: vk::Device,
    image: vk::Image,
    p_subresource: *const vk::ImageSubresource,
    p_layout: *mut vk::SubresourceLayout,
) {
    on_device(device, "vkGetImageSubresourceLayout", |device| {
        // SAFETY: VUID-vkGetImageSubresourceLayout-pSubresource-parameter.
        let Some(&subresource) = (unsafe { chain::input(p_subresource) }) else {
            return;
        };
        let layout = report_broken(&device.gpu_state, layout_of(device, image, subresource).map(Some));
        // SAFETY: VUID-vkGetImageSubresourceLayout-pLayout-parameter.
        unsafe { chain::output(p_layout, layout.unwrap_or_default()) };
    });
}

fn layout_of(
    device: &DeviceObject,
    handle: vk::Image,
    subresource: vk::ImageSubresource,
) -> Result<vk::SubresourceLayout, Broken> {
    let state = device.state.lock();
    let name = state.label(handle);
    let rule = "VUID-vkGetImageSubresourceLayout-image-parameter";
    let image = &state.known(device, handle, state.images.get(&handle), rule)?.description;
    refuse_if!(image.tiling == vk::ImageTiling::OPTIMAL => "VUID-vkGetImageSubresourceLayout-image-07789",
        "{name} has optimal tiling, and so no layout that a program may know");
    let vk::ImageSubresource { aspect_mask, mip_level, array_layer } = subresource;
    let layout = format::subresource_layout(device.profile(), image, subresource);
    layout.ok_or_else(|| {
        if mip_level >= image.mip_levels {
            let text = format!("{name} has no level {mip_level}");
            ("VUID-vkGetImageSubresourceLayout-mipLevel-01716", text)
        } else if array_layer >= image.array_layers {
            let text = format!("{name} has no layer {array_layer}");
            ("VUID-vkGetImageSubresourceLayout-arrayLayer-01717", text)
        } else {
            let text = format!("{name} has no aspect {:#x}", aspect_mask.as_raw());
            ("VUID-vkGetImageSubresourceLayout-format-08886", text)
        }
    })
}
