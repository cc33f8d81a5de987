//! Buffers and images: create, destroy, requirements.
#![expect(unsafe_code, reason = "the functions have the C ABI, and call the next layer")]

use ash::vk;
use sublet::private::Operation;

use super::{FAILED, next, raw};
use crate::chain;
use crate::device::WatchedDevice;
use crate::recording::{ObjectKey, RecordFields};

/// The whole resource, in contrast to a plane of an image.
pub(super) const WHOLE: u32 = 0;

/// Requirements, with those of dedicated memory if the program asked for them.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnsweredRequirements {
    pub(super) requirements: vk::MemoryRequirements,
    pub(super) dedicated: Option<(bool, bool)>,
}

/// Records requirements, unless they are known already. Answers with those of dedicated memory replace others.
pub(super) fn record_requirements(
    known: &WatchedDevice,
    key: ObjectKey,
    plane: u32,
    answer: AnsweredRequirements,
) {
    known.record(|access| {
        access.update(key, |object| {
            if !object.learn_requirements(plane, answer.dedicated.is_some()) {
                return None;
            }
            let (prefers, requires) = answer.dedicated.unwrap_or_default();
            let flags = u64::from(prefers) | u64::from(requires) << 1;
            let vk::MemoryRequirements { size, alignment, memory_type_bits } = answer.requirements;
            let numbers = [object.id, plane.into(), size, alignment, memory_type_bits.into(), flags];
            let fields = RecordFields::new(Operation::Requirements, &numbers);
            object.add(&fields);
            Some(fields)
        });
    });
}

fn record_destroy(known: &WatchedDevice, key: ObjectKey) {
    known.record(|access| access.end(key, Operation::ResourceDestroyed));
}

/// Returns true if requirements can be queried before memory is bound. Memory of Android's hardware buffers is bound
/// first (VUID-VkImageMemoryRequirementsInfo2-image-01897).
fn is_queryable(handle_types: Option<vk::ExternalMemoryHandleTypeFlags>) -> bool {
    !handle_types.is_some_and(|types| {
        types.intersects(vk::ExternalMemoryHandleTypeFlags::ANDROID_HARDWARE_BUFFER_ANDROID)
    })
}

pub(crate) unsafe extern "system" fn create_buffer(
    device: vk::Device,
    info: *const vk::BufferCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    buffer: *mut vk::Buffer,
) -> vk::Result {
    let (known, next) = next!(device, create_buffer, FAILED);
    // SAFETY: V3, and the parameters are those of the program.
    let result = known.checked(unsafe { next(device, info, callbacks, buffer) });
    let Some(recording) = known.recording.as_ref().filter(|_| result == vk::Result::SUCCESS) else {
        return result;
    };
    // SAFETY: V1.
    let Some(info) = (unsafe { info.as_ref() }) else { return result };
    // SAFETY: V1: the next layer wrote the handle.
    let handle = unsafe { *buffer };
    // SAFETY: V1.
    let usage = unsafe { chain::find::<vk::BufferUsageFlags2CreateInfoKHR<'_>>(info.p_next) };
    let usage = usage.map_or(u64::from(info.usage.as_raw()), |info| info.usage.as_raw());
    // SAFETY: V1.
    let external = unsafe { chain::find::<vk::ExternalMemoryBufferCreateInfo<'_>>(info.p_next) };
    let queryable = is_queryable(external.map(|info| info.handle_types));
    recording.record(|access| {
        let id = access.next_resource();
        let fields = [id, info.size, usage, info.flags.as_raw().into()];
        access.create(handle.into(), id, queryable, &RecordFields::new(Operation::BufferCreated, &fields));
    });
    result
}

pub(crate) unsafe extern "system" fn destroy_buffer(
    device: vk::Device,
    buffer: vk::Buffer,
    callbacks: *const vk::AllocationCallbacks<'_>,
) {
    let (known, next) = next!(device, destroy_buffer);
    // Before the call: afterwards, another thread may get the same handle.
    if buffer != vk::Buffer::null() {
        record_destroy(known, buffer.into());
    }
    // SAFETY: V3, and the parameters are those of the program.
    unsafe { next(device, buffer, callbacks) };
}

/// The fields of a created image after its number.
fn image_fields(id: u64, info: &vk::ImageCreateInfo<'_>) -> RecordFields {
    let tiling = match info.tiling {
        vk::ImageTiling::DRM_FORMAT_MODIFIER_EXT => 2,
        other => raw(other.as_raw()),
    };
    let numbers = [
        id,
        raw(info.format.as_raw()),
        info.extent.width.into(),
        info.extent.height.into(),
        info.extent.depth.into(),
        info.mip_levels.into(),
        info.array_layers.into(),
        info.samples.as_raw().into(),
        tiling,
        info.usage.as_raw().into(),
        info.flags.as_raw().into(),
        raw(info.image_type.as_raw()),
    ];
    RecordFields::new(Operation::ImageCreated, &numbers)
}

pub(crate) unsafe extern "system" fn create_image(
    device: vk::Device,
    info: *const vk::ImageCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    image: *mut vk::Image,
) -> vk::Result {
    let (known, next) = next!(device, create_image, FAILED);
    // SAFETY: V3, and the parameters are those of the program.
    let result = known.checked(unsafe { next(device, info, callbacks, image) });
    let Some(recording) = known.recording.as_ref().filter(|_| result == vk::Result::SUCCESS) else {
        return result;
    };
    // SAFETY: V1.
    let Some(info) = (unsafe { info.as_ref() }) else { return result };
    // SAFETY: V1: the next layer wrote the handle.
    let handle = unsafe { *image };
    // SAFETY: V1.
    let external = unsafe { chain::find::<vk::ExternalMemoryImageCreateInfo<'_>>(info.p_next) };
    let queryable = is_queryable(external.map(|info| info.handle_types));
    recording.record(|access| {
        let id = access.next_resource();
        access.create(handle.into(), id, queryable, &image_fields(id, info));
    });
    if info.flags.contains(vk::ImageCreateFlags::SPARSE_RESIDENCY) {
        // SAFETY: V1 to V3: the image was just created.
        unsafe { learn_sparse_block(known, device, handle) };
    }
    result
}

/// Queries the size of the blocks of an image, for the records of what is bound to them.
///
/// # Safety
/// V1 to V3 hold for the parameters.
unsafe fn learn_sparse_block(known: &WatchedDevice, device: vk::Device, image: vk::Image) {
    let functions = (known.functions.sparse_requirements, known.functions.image_requirements);
    let ((Some(blocks), Some(requirements)), Some(recording)) = (functions, &known.recording) else { return };
    let mut whole = vk::MemoryRequirements::default();
    // SAFETY: V3, and the structure lives during the call.
    unsafe { requirements(device, image, &mut whole) };
    let (mut count, mut first) = (1, vk::SparseImageMemoryRequirements::default());
    // SAFETY: V3, and the structure is the one that `count` announces.
    unsafe { blocks(device, image, &mut count, &mut first) };
    let extent = first.format_properties.image_granularity;
    let _ = recording.look_up(image.into(), |object| {
        let sparse = object.sparse();
        sparse.extent = [extent.width, extent.height, extent.depth];
        // The size of a block is the alignment of sparse resources.
        sparse.bytes = whole.alignment;
    });
}

pub(crate) unsafe extern "system" fn destroy_image(
    device: vk::Device,
    image: vk::Image,
    callbacks: *const vk::AllocationCallbacks<'_>,
) {
    let (known, next) = next!(device, destroy_image);
    // Before the call: afterwards, another thread may get the same handle.
    if image != vk::Image::null() {
        record_destroy(known, image.into());
    }
    // SAFETY: V3, and the parameters are those of the program.
    unsafe { next(device, image, callbacks) };
}

pub(crate) unsafe extern "system" fn buffer_requirements(
    device: vk::Device,
    buffer: vk::Buffer,
    requirements: *mut vk::MemoryRequirements,
) {
    let (known, next) = next!(device, buffer_requirements);
    // SAFETY: V3, and the parameters are those of the program.
    unsafe { next(device, buffer, requirements) };
    // SAFETY: V1: the next layer wrote the structure.
    let requirements = unsafe { *requirements };
    record_requirements(known, buffer.into(), WHOLE, AnsweredRequirements { requirements, dedicated: None });
}

pub(crate) unsafe extern "system" fn image_requirements(
    device: vk::Device,
    image: vk::Image,
    requirements: *mut vk::MemoryRequirements,
) {
    let (known, next) = next!(device, image_requirements);
    // SAFETY: V3, and the parameters are those of the program.
    unsafe { next(device, image, requirements) };
    // SAFETY: V1: the next layer wrote the structure.
    let requirements = unsafe { *requirements };
    record_requirements(known, image.into(), WHOLE, AnsweredRequirements { requirements, dedicated: None });
}

/// Reads an answer of the functions whose name ends with 2.
///
/// # Safety
/// V1: the next layer wrote the structure and its chain.
pub(super) unsafe fn answer(requirements: *const vk::MemoryRequirements2<'_>) -> AnsweredRequirements {
    // SAFETY: the caller's.
    let vk::MemoryRequirements2 { p_next: chain, memory_requirements: requirements, .. } =
        unsafe { *requirements };
    // SAFETY: the caller's.
    let dedicated = unsafe { chain::find::<vk::MemoryDedicatedRequirements<'_>>(chain) };
    let is_true = |flag| flag == vk::TRUE;
    let dedicated = dedicated.map(|dedicated| {
        (is_true(dedicated.prefers_dedicated_allocation), is_true(dedicated.requires_dedicated_allocation))
    });
    AnsweredRequirements { requirements, dedicated }
}

pub(crate) unsafe extern "system" fn buffer_requirements2(
    device: vk::Device,
    info: *const vk::BufferMemoryRequirementsInfo2<'_>,
    requirements: *mut vk::MemoryRequirements2<'_>,
) {
    let (known, next) = next!(device, buffer_requirements2);
    // SAFETY: V3, and the parameters are those of the program.
    unsafe { next(device, info, requirements) };
    // SAFETY: V1.
    let Some(info) = (unsafe { info.as_ref() }) else { return };
    // SAFETY: V1.
    let answer = unsafe { answer(requirements) };
    record_requirements(known, info.buffer.into(), WHOLE, answer);
}

/// Returns the number of a plane in records: one more than its index.
pub(super) fn plane_number(aspect: vk::ImageAspectFlags) -> u32 {
    match aspect {
        vk::ImageAspectFlags::PLANE_0 | vk::ImageAspectFlags::MEMORY_PLANE_0_EXT => 1,
        vk::ImageAspectFlags::PLANE_1 | vk::ImageAspectFlags::MEMORY_PLANE_1_EXT => 2,
        vk::ImageAspectFlags::PLANE_2 | vk::ImageAspectFlags::MEMORY_PLANE_2_EXT => 3,
        vk::ImageAspectFlags::MEMORY_PLANE_3_EXT => 4,
        _ => WHOLE,
    }
}

pub(crate) unsafe extern "system" fn image_requirements2(
    device: vk::Device,
    info: *const vk::ImageMemoryRequirementsInfo2<'_>,
    requirements: *mut vk::MemoryRequirements2<'_>,
) {
    let (known, next) = next!(device, image_requirements2);
    // SAFETY: V3, and the parameters are those of the program.
    unsafe { next(device, info, requirements) };
    // SAFETY: V1.
    let Some(info) = (unsafe { info.as_ref() }) else { return };
    // SAFETY: V1.
    let plane = unsafe { chain::find::<vk::ImagePlaneMemoryRequirementsInfo<'_>>(info.p_next) };
    let plane = plane.map_or(WHOLE, |plane| plane_number(plane.plane_aspect));
    // SAFETY: V1.
    let answer = unsafe { answer(requirements) };
    record_requirements(known, info.image.into(), plane, answer);
}
