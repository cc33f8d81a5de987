//! Buffers, images and their views: creation and destruction.

use std::sync::Arc;

use ash::vk;
use ash::vk::Handle as _;

use super::chain;
use super::describe::{describe_buffer, describe_image};
use super::descriptor_buffer;
use super::entry::{call, entries, on_device};
use super::format::{self, BufferDescription, ImageDescription, Requirements};
use super::host::{self, HostBytes};
use super::sparse::Pages;
use super::state::{Device, DeviceState, Label};
use super::store::Store;

/// Where a resource lies.
#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub(super) memory: vk::DeviceMemory,
    pub(super) offset: u64,
    /// The bytes of `memory`: they stay as long as something may still touch them, whatever the program frees.
    pub(super) store: Arc<Store>,
}

/// A `VkBuffer`.
pub(super) struct Buffer {
    pub(super) description: BufferDescription,
    pub(super) requirements: Requirements,
    pub(super) bound: Option<Bound>,
    /// Where its pages are, if it is sparse.
    pub(super) pages: Option<Pages>,
    /// Through the program's allocation callbacks, if it gave any: then it has to give some at destruction too.
    pub(super) host: HostBytes,
    /// `VkExternalMemoryBufferCreateInfo::handleTypes`, as bits.
    pub(super) external: u32,
    /// Submissions that are not done and name this buffer.
    pub(super) in_use: u32,
}

impl Buffer {
    /// Whether it has memory, or is one that may have pages anywhere.
    pub(super) fn is_backed(&self) -> bool {
        self.bound.is_some() || self.pages.is_some()
    }
}

/// A `VkImage`.
pub(super) struct Image {
    pub(super) description: ImageDescription,
    pub(super) requirements: Requirements,
    pub(super) bound: Option<Bound>,
    /// Through the program's allocation callbacks, if it gave any: then it has to give some at destruction too.
    pub(super) host: HostBytes,
    /// `VkExternalMemoryImageCreateInfo::handleTypes`, as bits.
    pub(super) external: u32,
    /// Submissions that are not done and name this image.
    pub(super) in_use: u32,
}

/// A `VkBufferView` or `VkImageView`: the handle of what it shows.
pub(super) struct View {
    pub(super) of: u64,
    /// Where the view of a buffer starts in it, and how many bytes it has, or `VK_WHOLE_SIZE`. Of an image both are 0.
    pub(super) start: u64,
    pub(super) size: u64,
}

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
    on_device(device, call!("vkCreateBuffer"), |device| {
        // SAFETY: VUID-vkCreateBuffer-pCreateInfo-parameter and VUID-VkBufferCreateInfo-pNext-pNext.
        let (description, external) = match unsafe { describe_buffer(device, p_info) } {
            Ok(described) => described,
            Err((rule, text)) => return device.refuse(rule, text),
        };
        if let Err((rule, text)) = descriptor_buffer::check_usage(device, &description) {
            return device.refuse(rule, text);
        }
        // A program that cannot know the limit breaks no rule.
        if description.size > device.profile().limits.max_buffer_size {
            return vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
        }
        let requirements = format::buffer_requirements(device.profile(), &description);
        let is_sparse = description.flags.contains(vk::BufferCreateFlags::SPARSE_BINDING);
        let pages = is_sparse.then(Pages::new);
        let insert = |state: &mut DeviceState, handle, host| {
            let buffer = Buffer { description, requirements, bound: None, pages, host, external, in_use: 0 };
            state.buffers.insert(handle, buffer);
        };
        // SAFETY: 1: VUID-vkCreateBuffer-pAllocator-parameter. 2: no lock is held. 3:
        // VUID-vkCreateBuffer-pBuffer-parameter.
        unsafe { host::create(device, callbacks, p_buffer, insert) }
    })
}

unsafe extern "system" fn create_image(
    device: vk::Device,
    p_info: *const vk::ImageCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    p_image: *mut vk::Image,
) -> vk::Result {
    on_device(device, call!("vkCreateImage"), |device| {
        // SAFETY: VUID-vkCreateImage-pCreateInfo-parameter and VUID-VkImageCreateInfo-pNext-pNext.
        let (description, external) = match unsafe { describe_image(device, p_info) } {
            Ok(described) => described,
            Err((rule, text)) => return device.refuse(rule, text),
        };
        let requirements = format::image_requirements(device.profile(), &description);
        let insert = |state: &mut DeviceState, handle, host| {
            let image = Image { description, requirements, bound: None, host, external, in_use: 0 };
            state.images.insert(handle, image);
        };
        // SAFETY: 1: VUID-vkCreateImage-pAllocator-parameter. 2: no lock is held. 3:
        // VUID-vkCreateImage-pImage-parameter.
        unsafe { host::create(device, callbacks, p_image, insert) }
    })
}

impl DeviceState {
    fn unbind(&mut self, bound: Option<&Bound>, handle: u64) {
        if let Some(bound) = bound {
            if let Some(memory) = self.memories.get_mut(&bound.memory) {
                memory.bindings.remove(&(bound.offset, handle));
            }
        }
    }
}

unsafe extern "system" fn destroy_buffer(
    device: vk::Device,
    buffer: vk::Buffer,
    callbacks: *const vk::AllocationCallbacks<'_>,
) {
    on_device(device, call!("vkDestroyBuffer"), |device| {
        let rules = [
            "VUID-vkDestroyBuffer-buffer-parameter",
            "VUID-vkDestroyBuffer-buffer-00923",
            "VUID-vkDestroyBuffer-buffer-00924",
        ];
        let remove = |state: &mut DeviceState, name: &Label| {
            state.unbind_pages(buffer, 0, u64::MAX);
            let found = state.buffers.remove(&buffer)?;
            if found.in_use > 0 {
                let text = format!("{name} is destroyed, and a submission still uses it");
                device.report("VUID-vkDestroyBuffer-buffer-00922", text);
            }
            state.unbind(found.bound.as_ref(), buffer.as_raw());
            Some(found.host)
        };
        // SAFETY: 1: VUID-vkDestroyBuffer-pAllocator-parameter. 2: no lock is held. 3:
        // VUID-vkDestroyBuffer-buffer-00923.
        unsafe { host::destroy(device, buffer, callbacks, rules, remove) };
    });
}

unsafe extern "system" fn destroy_image(
    device: vk::Device,
    image: vk::Image,
    callbacks: *const vk::AllocationCallbacks<'_>,
) {
    on_device(device, call!("vkDestroyImage"), |device| {
        let rules = [
            "VUID-vkDestroyImage-image-parameter",
            "VUID-vkDestroyImage-image-01001",
            "VUID-vkDestroyImage-image-01002",
        ];
        let remove = |state: &mut DeviceState, name: &Label| {
            let found = state.images.remove(&image)?;
            if found.in_use > 0 {
                let text = format!("{name} is destroyed, and a submission still uses it");
                device.report("VUID-vkDestroyImage-image-01000", text);
            }
            state.unbind(found.bound.as_ref(), image.as_raw());
            Some(found.host)
        };
        // SAFETY: 1: VUID-vkDestroyImage-pAllocator-parameter. 2: no lock is held. 3: VUID-vkDestroyImage-image-01001.
        unsafe { host::destroy(device, image, callbacks, rules, remove) };
    });
}

unsafe extern "system" fn create_buffer_view(
    device: vk::Device,
    p_info: *const vk::BufferViewCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    p_view: *mut vk::BufferView,
) -> vk::Result {
    on_device(device, call!("vkCreateBufferView"), |device| {
        // SAFETY: VUID-vkCreateBufferView-pCreateInfo-parameter.
        let Some(info) = (unsafe { chain::input(p_info) }) else {
            let text = "pCreateInfo is NULL";
            return device.refuse("VUID-vkCreateBufferView-pCreateInfo-parameter", text);
        };
        let mut state = device.state.lock();
        let name = state.label(info.buffer);
        let Some(buffer) = state.buffers.get(&info.buffer) else {
            let text = state.missing(device, info.buffer);
            return device.refuse("VUID-VkBufferViewCreateInfo-buffer-parameter", text);
        };
        let texels = vk::BufferUsageFlags::UNIFORM_TEXEL_BUFFER | vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER;
        let size = buffer.description.size;
        if !buffer.description.usage.intersects(texels) {
            return device.refuse(
                "VUID-VkBufferViewCreateInfo-buffer-00932",
                format!("{name} has no texel buffer usage"),
            );
        }
        if !buffer.is_backed() {
            return device.refuse(
                "VUID-VkBufferViewCreateInfo-buffer-00935",
                format!("{name} is not bound to memory"),
            );
        }
        if info.offset >= size {
            let text = format!("offset is {}, and {name} has {size} bytes", info.offset);
            return device.refuse("VUID-VkBufferViewCreateInfo-offset-00925", text);
        }
        if info.range != vk::WHOLE_SIZE && info.range > size - info.offset {
            let text =
                format!("offset is {} and range {}, and {name} has {size} bytes", info.offset, info.range);
            return device.refuse("VUID-VkBufferViewCreateInfo-offset-00931", text);
        }
        let handle = device.hub.handle::<vk::BufferView>();
        state
            .buffer_views
            .insert(handle, View { of: info.buffer.as_raw(), start: info.offset, size: info.range });
        // SAFETY: VUID-vkCreateBufferView-pView-parameter.
        unsafe { chain::output(p_view, handle) };
        vk::Result::SUCCESS
    })
}

unsafe extern "system" fn destroy_buffer_view(
    device: vk::Device,
    view: vk::BufferView,
    _: *const vk::AllocationCallbacks<'_>,
) {
    on_device(device, call!("vkDestroyBufferView"), |device| {
        let mut state = device.state.lock();
        if !view.is_null() && state.buffer_views.remove(&view).is_none() {
            device.report("VUID-vkDestroyBufferView-bufferView-parameter", state.missing(device, view));
        }
        state.names.remove(&view.as_raw());
    });
}

unsafe extern "system" fn create_image_view(
    device: vk::Device,
    p_info: *const vk::ImageViewCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    p_view: *mut vk::ImageView,
) -> vk::Result {
    on_device(device, call!("vkCreateImageView"), |device| {
        // SAFETY: VUID-vkCreateImageView-pCreateInfo-parameter.
        let Some(info) = (unsafe { chain::input(p_info) }) else {
            let text = "pCreateInfo is NULL";
            return device.refuse("VUID-vkCreateImageView-pCreateInfo-parameter", text);
        };
        let mut state = device.state.lock();
        let name = state.label(info.image);
        let Some(image) = state.images.get(&info.image) else {
            let text = state.missing(device, info.image);
            return device.refuse("VUID-VkImageViewCreateInfo-image-parameter", text);
        };
        if image.bound.is_none() {
            return device
                .refuse("VUID-VkImageViewCreateInfo-image-01020", format!("{name} is not bound to memory"));
        }
        let handle = device.hub.handle::<vk::ImageView>();
        state.image_views.insert(handle, View { of: info.image.as_raw(), start: 0, size: 0 });
        // SAFETY: VUID-vkCreateImageView-pView-parameter.
        unsafe { chain::output(p_view, handle) };
        vk::Result::SUCCESS
    })
}

unsafe extern "system" fn destroy_image_view(
    device: vk::Device,
    view: vk::ImageView,
    _: *const vk::AllocationCallbacks<'_>,
) {
    on_device(device, call!("vkDestroyImageView"), |device| {
        let mut state = device.state.lock();
        if !view.is_null() && state.image_views.remove(&view).is_none() {
            device.report("VUID-vkDestroyImageView-imageView-parameter", state.missing(device, view));
        }
        state.names.remove(&view.as_raw());
    });
}

unsafe extern "system" fn buffer_address(
    device: vk::Device,
    p_info: *const vk::BufferDeviceAddressInfo<'_>,
) -> vk::DeviceAddress {
    on_device(device, call!("vkGetBufferDeviceAddress"), |device| {
        // SAFETY: VUID-vkGetBufferDeviceAddress-pInfo-parameter.
        let buffer = unsafe { chain::input(p_info) }.map_or(vk::Buffer::null(), |info| info.buffer);
        address(device, buffer, "VUID-vkGetBufferDeviceAddress-bufferDeviceAddress-03324")
    })
}

unsafe extern "system" fn buffer_capture_address(
    device: vk::Device,
    p_info: *const vk::BufferDeviceAddressInfo<'_>,
) -> u64 {
    on_device(device, call!("vkGetBufferOpaqueCaptureAddress"), |device| {
        // SAFETY: VUID-vkGetBufferOpaqueCaptureAddress-pInfo-parameter.
        let buffer = unsafe { chain::input(p_info) }.map_or(vk::Buffer::null(), |info| info.buffer);
        address(device, buffer, "VUID-vkGetBufferOpaqueCaptureAddress-None-03326")
    })
}

fn address(device: &Device, handle: vk::Buffer, not_enabled: &'static str) -> u64 {
    let state = device.state.lock();
    let name = state.label(handle);
    let refused = |vuid, text| {
        device.report(vuid, text);
        0
    };
    if !device.features.buffer_device_address {
        return refused(not_enabled, "the feature bufferDeviceAddress is not enabled".to_owned());
    }
    let Some(buffer) = state.buffers.get(&handle) else {
        return refused("VUID-VkBufferDeviceAddressInfo-buffer-parameter", state.missing(device, handle));
    };
    if !buffer.description.usage.contains(vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS) {
        let text = format!("{name} was created without SHADER_DEVICE_ADDRESS");
        return refused("VUID-VkBufferDeviceAddressInfo-buffer-02601", text);
    }
    let memory =
        buffer.bound.as_ref().and_then(|bound| Some((state.memories.get(&bound.memory)?, bound.offset)));
    match memory {
        Some((memory, offset)) => memory.address + offset,
        None => {
            let text = format!("{name} is not bound to memory, or its memory is freed");
            refused("VUID-VkBufferDeviceAddressInfo-buffer-02600", text)
        }
    }
}

unsafe extern "system" fn subresource_layout(
    device: vk::Device,
    image: vk::Image,
    p_subresource: *const vk::ImageSubresource,
    p_layout: *mut vk::SubresourceLayout,
) {
    on_device(device, call!("vkGetImageSubresourceLayout"), |device| {
        // SAFETY: VUID-vkGetImageSubresourceLayout-pSubresource-parameter.
        let Some(&subresource) = (unsafe { chain::input(p_subresource) }) else {
            return;
        };
        let state = device.state.lock();
        let name = state.label(image);
        let mut layout = vk::SubresourceLayout::default();
        match state.images.get(&image) {
            None => {
                let text = state.missing(device, image);
                device.report("VUID-vkGetImageSubresourceLayout-image-parameter", text);
            }
            Some(found) if found.description.tiling == vk::ImageTiling::OPTIMAL => {
                let text = format!("{name} has optimal tiling, and so no layout that a program may know");
                device.report("VUID-vkGetImageSubresourceLayout-image-07789", text);
            }
            Some(found) => {
                match format::subresource_layout(device.profile(), &found.description, subresource) {
                    Some(known) => layout = known,
                    None if subresource.mip_level >= found.description.mip_levels => {
                        let text = format!("{name} has no level {}", subresource.mip_level);
                        device.report("VUID-vkGetImageSubresourceLayout-mipLevel-01716", text);
                    }
                    None if subresource.array_layer >= found.description.array_layers => {
                        let text = format!("{name} has no layer {}", subresource.array_layer);
                        device.report("VUID-vkGetImageSubresourceLayout-arrayLayer-01717", text);
                    }
                    None => {
                        let text = format!("{name} has no aspect {:#x}", subresource.aspect_mask.as_raw());
                        device.report("VUID-vkGetImageSubresourceLayout-format-08886", text);
                    }
                }
            }
        }
        // SAFETY: VUID-vkGetImageSubresourceLayout-pLayout-parameter.
        unsafe { chain::output(p_layout, layout) };
    });
}
