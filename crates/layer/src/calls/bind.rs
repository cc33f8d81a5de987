//! Memory of buffers and images.
#![expect(unsafe_code, reason = "the functions have the C ABI, and call the next layer")]

use std::ffi::c_void;

use ash::vk;
use sublet::private::Operation;
use sublet::trace::ForeignMemoryFlags;

use super::resources::{AnsweredRequirements, WHOLE, answer, plane_number, record_requirements};
use super::{FAILED, next, slice};
use crate::chain;
use crate::device::WatchedDevice;
use crate::recording::{ObjectKey, RecordFields};

/// Returns true if the requirements must be queried, because the program binds memory without having asked.
fn are_unknown(known: &WatchedDevice, key: ObjectKey, plane: u32, memory: vk::DeviceMemory) -> bool {
    memory != vk::DeviceMemory::null()
        && known.recording.as_ref().is_some_and(|recording| {
            recording.look_up(key, |object| object.needs_requirements(plane)).unwrap_or(false)
        })
}

/// Queries the requirements of a buffer, unless they are known or no memory is bound.
///
/// # Safety
/// V1 to V3 hold for the parameters.
unsafe fn learn_buffer(
    known: &WatchedDevice,
    device: vk::Device,
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
) {
    if !are_unknown(known, buffer.into(), WHOLE, memory) {
        return;
    }
    let answer = if let Some(get) = known.functions.buffer_requirements2 {
        let info = vk::BufferMemoryRequirementsInfo2::default().buffer(buffer);
        let mut dedicated = vk::MemoryDedicatedRequirements::default();
        let mut requirements = vk::MemoryRequirements2::default().push_next(&mut dedicated);
        // SAFETY: V3, and the structures live during the call.
        unsafe { get(device, &info, &mut requirements) };
        // SAFETY: the call wrote the chain of two structures.
        unsafe { answer(&requirements) }
    } else if let Some(get) = known.functions.buffer_requirements {
        let mut requirements = vk::MemoryRequirements::default();
        // SAFETY: V3, and the structure lives during the call.
        unsafe { get(device, buffer, &mut requirements) };
        AnsweredRequirements { requirements, dedicated: None }
    } else {
        return;
    };
    record_requirements(known, buffer.into(), WHOLE, answer);
}

/// Queries the requirements of an image or a plane, unless they are known or no memory is bound.
///
/// # Safety
/// V1 to V3 hold for the parameters.
unsafe fn learn_image(
    known: &WatchedDevice,
    device: vk::Device,
    image: vk::Image,
    aspect: Option<vk::ImageAspectFlags>,
    memory: vk::DeviceMemory,
) {
    let plane = aspect.map_or(WHOLE, plane_number);
    if !are_unknown(known, image.into(), plane, memory) {
        return;
    }
    let answer = if let Some(get) = known.functions.image_requirements2 {
        let mut info = vk::ImageMemoryRequirementsInfo2::default().image(image);
        let mut of_plane = vk::ImagePlaneMemoryRequirementsInfo::default();
        if let Some(aspect) = aspect {
            of_plane.plane_aspect = aspect;
            info = info.push_next(&mut of_plane);
        }
        let mut dedicated = vk::MemoryDedicatedRequirements::default();
        let mut requirements = vk::MemoryRequirements2::default().push_next(&mut dedicated);
        // SAFETY: V3, and the structures live during the call.
        unsafe { get(device, &info, &mut requirements) };
        // SAFETY: the call wrote the chain of two structures.
        unsafe { answer(&requirements) }
    } else if let (Some(get), None) = (known.functions.image_requirements, aspect) {
        let mut requirements = vk::MemoryRequirements::default();
        // SAFETY: V3, and the structure lives during the call.
        unsafe { get(device, image, &mut requirements) };
        AnsweredRequirements { requirements, dedicated: None }
    } else {
        return;
    };
    record_requirements(known, image.into(), plane, answer);
}

/// Records what was bound. Memory that the recording does not know is that of a swapchain.
fn record_bind(known: &WatchedDevice, key: ObjectKey, plane: u32, memory: vk::DeviceMemory, offset: u64) {
    known.record(|access| {
        let Some(memory) = access.objects().note(memory, ForeignMemoryFlags::WAS_BOUND) else { return };
        access.update(key, |object| {
            let fields = RecordFields::new(Operation::Bound, &[object.id, plane.into(), memory, offset]);
            object.add(&fields);
            Some(fields)
        });
    });
}

/// Returns true if a bind succeeded. If one of several binds fails, each may have its own result in a
/// `VkBindMemoryStatus`.
///
/// # Safety
/// V1 holds for `next`, and the call with this result has returned.
unsafe fn is_bound(next: *const c_void, result: vk::Result) -> bool {
    // SAFETY: the caller's.
    let status = || unsafe { chain::find::<vk::BindMemoryStatusKHR<'_>>(next) };
    // SAFETY: V1: the driver has written the result of the bind.
    let of_bind = || status().and_then(|status| unsafe { status.p_result.as_ref() });
    result == vk::Result::SUCCESS || of_bind() == Some(&vk::Result::SUCCESS)
}

pub(crate) unsafe extern "system" fn bind_buffer(
    device: vk::Device,
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    offset: vk::DeviceSize,
) -> vk::Result {
    let (known, next) = next!(device, bind_buffer, FAILED);
    // SAFETY: V1 to V3.
    unsafe { learn_buffer(known, device, buffer, memory) };
    // SAFETY: V3, and the parameters are those of the program.
    let result = known.checked(unsafe { next(device, buffer, memory, offset) });
    if result == vk::Result::SUCCESS {
        record_bind(known, buffer.into(), WHOLE, memory, offset);
    }
    result
}

pub(crate) unsafe extern "system" fn bind_buffers(
    device: vk::Device,
    count: u32,
    infos: *const vk::BindBufferMemoryInfo<'_>,
) -> vk::Result {
    let (known, next) = next!(device, bind_buffers, FAILED);
    // SAFETY: V1.
    let binds = unsafe { slice(infos, count) };
    for bind in binds {
        // SAFETY: V1 to V3.
        unsafe { learn_buffer(known, device, bind.buffer, bind.memory) };
    }
    // SAFETY: V3, and the parameters are those of the program.
    let result = known.checked(unsafe { next(device, count, infos) });
    // SAFETY: V1.
    for bind in binds.iter().filter(|bind| unsafe { is_bound(bind.p_next, result) }) {
        record_bind(known, bind.buffer.into(), WHOLE, bind.memory, bind.memory_offset);
    }
    result
}

pub(crate) unsafe extern "system" fn bind_image(
    device: vk::Device,
    image: vk::Image,
    memory: vk::DeviceMemory,
    offset: vk::DeviceSize,
) -> vk::Result {
    let (known, next) = next!(device, bind_image, FAILED);
    // SAFETY: V1 to V3.
    unsafe { learn_image(known, device, image, None, memory) };
    // SAFETY: V3, and the parameters are those of the program.
    let result = known.checked(unsafe { next(device, image, memory, offset) });
    if result == vk::Result::SUCCESS {
        record_bind(known, image.into(), WHOLE, memory, offset);
    }
    result
}

/// Returns the plane of a bind.
///
/// # Safety
/// V1 holds for `bind`.
unsafe fn plane_of(bind: &vk::BindImageMemoryInfo<'_>) -> Option<vk::ImageAspectFlags> {
    // SAFETY: the caller's.
    unsafe { chain::find::<vk::BindImagePlaneMemoryInfo<'_>>(bind.p_next) }.map(|plane| plane.plane_aspect)
}

pub(crate) unsafe extern "system" fn bind_images(
    device: vk::Device,
    count: u32,
    infos: *const vk::BindImageMemoryInfo<'_>,
) -> vk::Result {
    let (known, next) = next!(device, bind_images, FAILED);
    // SAFETY: V1.
    let binds = unsafe { slice(infos, count) };
    for bind in binds {
        // SAFETY: V1.
        let aspect = unsafe { plane_of(bind) };
        // SAFETY: V1 to V3.
        unsafe { learn_image(known, device, bind.image, aspect, bind.memory) };
    }
    // SAFETY: V3, and the parameters are those of the program.
    let result = known.checked(unsafe { next(device, count, infos) });
    // SAFETY: V1.
    for bind in binds.iter().filter(|bind| unsafe { is_bound(bind.p_next, result) }) {
        // SAFETY: V1.
        let plane = unsafe { plane_of(bind) }.map_or(WHOLE, plane_number);
        record_bind(known, bind.image.into(), plane, bind.memory, bind.memory_offset);
    }
    result
}
