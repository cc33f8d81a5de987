//! The queries that say what memory a resource needs.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;

use ash::vk;

use crate::facts::broken::Broken;
use crate::facts::format::Requirements;
use crate::facts::{chain, format};
use crate::memory::describe::{describe_buffer, describe_image};
use crate::objects::entry::{checked, entries, on_device, report_broken};
use crate::objects::state::DeviceObject;

entries! {
    Device void vk::PFN_vkGetBufferMemoryRequirements = buffer: core 0 "vkGetBufferMemoryRequirements";
    Device void vk::PFN_vkGetImageMemoryRequirements = image: core 0 "vkGetImageMemoryRequirements";
    Device void vk::PFN_vkGetBufferMemoryRequirements2 = buffer2:
        core 1 "vkGetBufferMemoryRequirements2",
        ext "VK_KHR_get_memory_requirements2" "vkGetBufferMemoryRequirements2KHR";
    Device void vk::PFN_vkGetImageMemoryRequirements2 = image2:
        core 1 "vkGetImageMemoryRequirements2",
        ext "VK_KHR_get_memory_requirements2" "vkGetImageMemoryRequirements2KHR";
    Device void vk::PFN_vkGetDeviceBufferMemoryRequirements = device_buffer:
        core 3 "vkGetDeviceBufferMemoryRequirements",
        ext "VK_KHR_maintenance4" "vkGetDeviceBufferMemoryRequirementsKHR";
    Device void vk::PFN_vkGetDeviceImageMemoryRequirements = device_image:
        core 3 "vkGetDeviceImageMemoryRequirements",
        ext "VK_KHR_maintenance4" "vkGetDeviceImageMemoryRequirementsKHR";
    Device void vk::PFN_vkGetImageSparseMemoryRequirements = sparse: core 0 "vkGetImageSparseMemoryRequirements";
    Device void vk::PFN_vkGetImageSparseMemoryRequirements2 = sparse2:
        core 1 "vkGetImageSparseMemoryRequirements2",
        ext "VK_KHR_get_memory_requirements2" "vkGetImageSparseMemoryRequirements2KHR";
}

fn plain(requirements: &Requirements) -> vk::MemoryRequirements {
    vk::MemoryRequirements {
        size: requirements.size,
        alignment: requirements.alignment,
        memory_type_bits: requirements.type_bits,
    }
}

/// Writes requirements and, if it is chained, whether the driver prefers a dedicated allocation.
///
/// # Safety
///
/// 1. `out` is NULL, or valid for writes.
/// 2. Its chain is valid for writes.
unsafe fn answer(requirements: &Requirements, out: *mut vk::MemoryRequirements2<'_>) {
    // SAFETY: 1 of `answer`.
    let Some(out) = (unsafe { out.as_mut() }) else {
        return;
    };
    out.memory_requirements = plain(requirements);
    let next: *mut c_void = out.p_next;
    // SAFETY: 2 of `answer`.
    if let Some(dedicated) = unsafe { chain::find_mut::<vk::MemoryDedicatedRequirements<'_>>(next) } {
        dedicated.prefers_dedicated_allocation = vk::Bool32::from(requirements.prefers_dedicated);
        dedicated.requires_dedicated_allocation = vk::Bool32::from(requirements.requires_dedicated);
    }
}

fn of_buffer(device: &DeviceObject, handle: vk::Buffer, rule: &'static str) -> Result<Requirements, Broken> {
    let state = device.state.lock();
    let found = state.buffers.get(&handle).map(|buffer| buffer.requirements);
    state.known(device, handle, found, rule)
}

fn of_image(device: &DeviceObject, handle: vk::Image, rule: &'static str) -> Result<Requirements, Broken> {
    let state = device.state.lock();
    let found = state.images.get(&handle).map(|image| image.requirements);
    state.known(device, handle, found, rule)
}

unsafe extern "system" fn buffer(device: vk::Device, buffer: vk::Buffer, out: *mut vk::MemoryRequirements) {
    checked(device, "vkGetBufferMemoryRequirements", |device| {
        let found = of_buffer(device, buffer, "VUID-vkGetBufferMemoryRequirements-buffer-parameter")?;
        // SAFETY: VUID-vkGetBufferMemoryRequirements-pMemoryRequirements-parameter.
        unsafe { chain::output(out, plain(&found)) };
        Ok(())
    });
}

unsafe extern "system" fn image(device: vk::Device, image: vk::Image, out: *mut vk::MemoryRequirements) {
    checked(device, "vkGetImageMemoryRequirements", |device| {
        let found = of_image(device, image, "VUID-vkGetImageMemoryRequirements-image-parameter")?;
        // SAFETY: VUID-vkGetImageMemoryRequirements-pMemoryRequirements-parameter.
        unsafe { chain::output(out, plain(&found)) };
        Ok(())
    });
}

unsafe extern "system" fn buffer2(
    device: vk::Device,
    p_info: *const vk::BufferMemoryRequirementsInfo2<'_>,
    out: *mut vk::MemoryRequirements2<'_>,
) {
    checked(device, "vkGetBufferMemoryRequirements2", |device| {
        // SAFETY: VUID-vkGetBufferMemoryRequirements2-pInfo-parameter.
        let handle = unsafe { chain::input(p_info) }.map_or(vk::Buffer::null(), |info| info.buffer);
        let found = of_buffer(device, handle, "VUID-VkBufferMemoryRequirementsInfo2-buffer-parameter")?;
        // SAFETY: VUID-vkGetBufferMemoryRequirements2-pMemoryRequirements-parameter.
        unsafe { answer(&found, out) };
        Ok(())
    });
}

unsafe extern "system" fn image2(
    device: vk::Device,
    p_info: *const vk::ImageMemoryRequirementsInfo2<'_>,
    out: *mut vk::MemoryRequirements2<'_>,
) {
    checked(device, "vkGetImageMemoryRequirements2", |device| {
        // SAFETY: VUID-vkGetImageMemoryRequirements2-pInfo-parameter.
        let handle = unsafe { chain::input(p_info) }.map_or(vk::Image::null(), |info| info.image);
        let found = of_image(device, handle, "VUID-VkImageMemoryRequirementsInfo2-image-parameter")?;
        // SAFETY: VUID-vkGetImageMemoryRequirements2-pMemoryRequirements-parameter.
        unsafe { answer(&found, out) };
        Ok(())
    });
}

unsafe extern "system" fn device_buffer(
    device: vk::Device,
    p_info: *const vk::DeviceBufferMemoryRequirements<'_>,
    out: *mut vk::MemoryRequirements2<'_>,
) {
    checked(device, "vkGetDeviceBufferMemoryRequirements", |device| {
        // SAFETY: VUID-vkGetDeviceBufferMemoryRequirements-pInfo-parameter.
        let info = unsafe { chain::input(p_info) }.map_or(std::ptr::null(), |info| info.p_create_info);
        // SAFETY: VUID-VkDeviceBufferMemoryRequirements-pCreateInfo-parameter.
        let (description, ..) = unsafe { describe_buffer(device, info) }?;
        let found = format::buffer_requirements(device.profile(), &description);
        // SAFETY: VUID-vkGetDeviceBufferMemoryRequirements-pMemoryRequirements-parameter.
        unsafe { answer(&found, out) };
        Ok(())
    });
}

unsafe extern "system" fn device_image(
    device: vk::Device,
    p_info: *const vk::DeviceImageMemoryRequirements<'_>,
    out: *mut vk::MemoryRequirements2<'_>,
) {
    checked(device, "vkGetDeviceImageMemoryRequirements", |device| {
        // SAFETY: VUID-vkGetDeviceImageMemoryRequirements-pInfo-parameter.
        let info = unsafe { chain::input(p_info) }.map_or(std::ptr::null(), |info| info.p_create_info);
        // SAFETY: VUID-VkDeviceImageMemoryRequirements-pCreateInfo-parameter.
        let (description, ..) = unsafe { describe_image(device, info) }?;
        let found = format::image_requirements(device.profile(), &description);
        // SAFETY: VUID-vkGetDeviceImageMemoryRequirements-pMemoryRequirements-parameter.
        unsafe { answer(&found, out) };
        Ok(())
    });
}

unsafe extern "system" fn sparse(
    device: vk::Device,
    image: vk::Image,
    count: *mut u32,
    _: *mut vk::SparseImageMemoryRequirements,
) {
    on_device(device, "vkGetImageSparseMemoryRequirements", |device| {
        let found = of_image(device, image, "VUID-vkGetImageSparseMemoryRequirements-image-parameter");
        report_broken(&device.gpu_state, found.map(drop));
        // SAFETY: VUID-vkGetImageSparseMemoryRequirements-pSparseMemoryRequirementCount-parameter.
        unsafe { chain::output(count, 0) };
    });
}

unsafe extern "system" fn sparse2(
    device: vk::Device,
    p_info: *const vk::ImageSparseMemoryRequirementsInfo2<'_>,
    count: *mut u32,
    _: *mut vk::SparseImageMemoryRequirements2<'_>,
) {
    on_device(device, "vkGetImageSparseMemoryRequirements2", |device| {
        // SAFETY: VUID-vkGetImageSparseMemoryRequirements2-pInfo-parameter.
        let image = unsafe { chain::input(p_info) }.map_or(vk::Image::null(), |info| info.image);
        let found = of_image(device, image, "VUID-VkImageSparseMemoryRequirementsInfo2-image-parameter");
        report_broken(&device.gpu_state, found.map(drop));
        // SAFETY: VUID-vkGetImageSparseMemoryRequirements2-pSparseMemoryRequirementCount-parameter.
        unsafe { chain::output(count, 0) };
    });
}
