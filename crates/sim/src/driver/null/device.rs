//! A device whose calls do nothing, to measure what an allocator itself costs.
//!
//! Instance and physical device are those of the simulated driver; the functions below replace the simulated device's.
//! They take constant time, no lock and no memory: what they have to know later is in the handles that they return.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;
use ash::vk::Handle as _;
use parking_lot::Mutex;

use super::{descriptor_buffer, descriptors};
use crate::facts::arithmetic::{host_size, widen};
use crate::facts::chain;
use crate::facts::profiles::{DescriptorBufferLimits, Profile};
use crate::objects::entry::{EntryPoint, Function};

/// The target of a null device's handle.
#[repr(C, align(16))]
struct NullDeviceHeader {
    /// The word that Vulkan's loader wants first.
    loader: usize,
    type_bits: u32,
    /// Alignments as powers of two.
    buffer_alignment: u32,
    image_alignment: u32,
    descriptors: DescriptorBufferLimits,
}

/// The targets of all handles of null devices. It is never freed, so that a stale handle stays harmless; this list
/// keeps it within reach of leak checkers.
static HEADERS: Mutex<Vec<&NullDeviceHeader>> = Mutex::new(Vec::new());

/// The handle of a null device for a profile, another one for each device.
pub(crate) fn handle(profile: &Profile) -> vk::Device {
    let image = profile.images.tiles.first().map_or(256, |tile| tile.alignment);
    let header = NullDeviceHeader {
        loader: crate::objects::registry::LOADER_MAGIC,
        type_bits: profile.all_types(),
        buffer_alignment: profile.buffers.alignment.max(1).trailing_zeros(),
        image_alignment: image.max(1).trailing_zeros(),
        descriptors: profile.limits.descriptor_buffer.unwrap_or_default(),
    };
    let header: &NullDeviceHeader = Box::leak(Box::new(header));
    HEADERS.lock().push(header);
    vk::Device::from_raw(widen(std::ptr::from_ref(header).expose_provenance()))
}

/// # Safety
///
/// `device` came from [`handle`].
unsafe fn header(device: vk::Device) -> &'static NullDeviceHeader {
    let address = host_size(device.as_raw()).unwrap_or(0);
    let header = std::ptr::with_exposed_provenance::<NullDeviceHeader>(address);
    // SAFETY: `handle` made it, shared it for ever, and nothing writes it: no loader stands between a program and the
    // null driver, whose entry is this library's own.
    unsafe { &*header }
}

/// The sizes of a null device's descriptors: all 0, if its profile has no descriptor buffers.
///
/// # Safety
///
/// `device` is a null device.
pub(crate) unsafe fn descriptor_limits(device: vk::Device) -> DescriptorBufferLimits {
    // SAFETY: the promise of this function: the handle of every null device came from `handle`.
    unsafe { header(device) }.descriptors
}

/// A function of the null device, and the name of Vulkan's type of it: `PFN_` and the function's first name.
pub(crate) type Replacement = (&'static str, Function);

/// Makes the list of a module's functions for the null device. The compiler checks each against Vulkan's type of it.
macro_rules! replacements {
    ($($pfn:ident = $function:path;)*) => {
        #[expect(unsafe_code, reason = "functions lose their types")]
        pub(crate) const REPLACEMENTS: &[$crate::driver::null::Replacement] = &[$((stringify!($pfn), {
            let typed: vk::$pfn = $function;
            // SAFETY: both are pointers to functions. The program that gets this one by its name calls it with the type
            // that Vulkan gives that name, and `typed` above has that type.
            unsafe { std::mem::transmute::<vk::$pfn, $crate::objects::entry::Function>(typed) }
        }),)*];
    };
}
pub(crate) use replacements;

/// Makes C functions that do nothing; those with a `VkResult` return `VK_SUCCESS`.
macro_rules! do_nothing {
    ($($visibility:vis $name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {$(
        #[expect(unsafe_code, reason = "the functions have the C ABI")]
        $visibility unsafe extern "system" fn $name($(_: $argument),*) $(-> $result)? {
            $(<$result>::SUCCESS)?
        }
    )*};
}
pub(crate) use do_nothing;

/// The null device's functions, by their types.
pub(crate) fn functions() -> impl Iterator<Item = &'static Replacement> {
    REPLACEMENTS.iter().chain(descriptors::REPLACEMENTS).chain(descriptor_buffer::REPLACEMENTS)
}

/// The null device's function for an entry point, where it has one of its own.
pub(crate) fn function(entry: &EntryPoint) -> vk::PFN_vkVoidFunction {
    let name = entry.offers[0].name;
    functions().find(|(pfn, _)| pfn.strip_prefix("PFN_") == Some(name)).map(|&(_, function)| function)
}

replacements! {
    PFN_vkAllocateMemory = allocate;
    PFN_vkFreeMemory = free;
    PFN_vkMapMemory = map;
    PFN_vkUnmapMemory = unmap;
    PFN_vkFlushMappedMemoryRanges = ranges;
    PFN_vkInvalidateMappedMemoryRanges = ranges;
    PFN_vkGetDeviceMemoryCommitment = commitment;
    PFN_vkSetDeviceMemoryPriorityEXT = set_priority;
    PFN_vkCreateBuffer = create_buffer;
    PFN_vkDestroyBuffer = destroy_buffer;
    PFN_vkCreateImage = create_image;
    PFN_vkDestroyImage = destroy_image;
    PFN_vkGetBufferMemoryRequirements = buffer;
    PFN_vkGetImageMemoryRequirements = image;
    PFN_vkGetBufferMemoryRequirements2 = buffer2;
    PFN_vkGetImageMemoryRequirements2 = image2;
    PFN_vkGetDeviceBufferMemoryRequirements = device_buffer;
    PFN_vkGetDeviceImageMemoryRequirements = device_image;
    PFN_vkBindBufferMemory = bind_buffer;
    PFN_vkBindImageMemory = bind_image;
    PFN_vkBindBufferMemory2 = bind_buffers;
    PFN_vkBindImageMemory2 = bind_images;
    PFN_vkGetBufferDeviceAddress = address;
}

do_nothing! {
    free(vk::Device, vk::DeviceMemory, *const vk::AllocationCallbacks<'_>);
    unmap(vk::Device, vk::DeviceMemory);
    ranges(vk::Device, u32, *const vk::MappedMemoryRange<'_>) -> vk::Result;
    set_priority(vk::Device, vk::DeviceMemory, f32);
    destroy_buffer(vk::Device, vk::Buffer, *const vk::AllocationCallbacks<'_>);
    destroy_image(vk::Device, vk::Image, *const vk::AllocationCallbacks<'_>);
    bind_buffer(vk::Device, vk::Buffer, vk::DeviceMemory, vk::DeviceSize) -> vk::Result;
    bind_image(vk::Device, vk::Image, vk::DeviceMemory, vk::DeviceSize) -> vk::Result;
    bind_buffers(vk::Device, u32, *const vk::BindBufferMemoryInfo<'_>) -> vk::Result;
    bind_images(vk::Device, u32, *const vk::BindImageMemoryInfo<'_>) -> vk::Result;
}

/// A resource's handle is its size with this bit set, so that no handle is NULL.
const RESOURCE: u64 = 1 << 62;

/// The address of all mappings: an unused page, low enough for every offset.
const MAPPED_AT: usize = 1 << (usize::BITS - 8);

unsafe extern "system" fn allocate(
    _: vk::Device,
    _: *const vk::MemoryAllocateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    p_memory: *mut vk::DeviceMemory,
) -> vk::Result {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // SAFETY: VUID-vkAllocateMemory-pMemory-parameter.
    unsafe { chain::output(p_memory, vk::DeviceMemory::from_raw(NEXT.fetch_add(1, Ordering::Relaxed))) };
    vk::Result::SUCCESS
}

unsafe extern "system" fn map(
    _: vk::Device,
    _: vk::DeviceMemory,
    offset: vk::DeviceSize,
    _: vk::DeviceSize,
    _: vk::MemoryMapFlags,
    pp_data: *mut *mut c_void,
) -> vk::Result {
    let address = MAPPED_AT.wrapping_add(host_size(offset).unwrap_or(0));
    // SAFETY: VUID-vkMapMemory-ppData-parameter.
    unsafe { chain::output(pp_data, std::ptr::without_provenance_mut(address)) };
    vk::Result::SUCCESS
}

unsafe extern "system" fn commitment(_: vk::Device, _: vk::DeviceMemory, p_bytes: *mut vk::DeviceSize) {
    // SAFETY: VUID-vkGetDeviceMemoryCommitment-pCommittedMemoryInBytes-parameter.
    unsafe { chain::output(p_bytes, 0) };
}

unsafe extern "system" fn create_buffer(
    _: vk::Device,
    p_info: *const vk::BufferCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    p_buffer: *mut vk::Buffer,
) -> vk::Result {
    // SAFETY: VUID-vkCreateBuffer-pCreateInfo-parameter.
    let size = unsafe { buffer_size(p_info) };
    // SAFETY: VUID-vkCreateBuffer-pBuffer-parameter.
    unsafe { chain::output(p_buffer, vk::Buffer::from_raw(RESOURCE | size)) };
    vk::Result::SUCCESS
}

/// # Safety
///
/// `info` is NULL or valid.
unsafe fn buffer_size(info: *const vk::BufferCreateInfo<'_>) -> u64 {
    // SAFETY: the promise of `buffer_size`: NULL or valid.
    unsafe { chain::input(info) }.map_or(0, |info| info.size)
}

/// # Safety
///
/// `info` is NULL or valid.
unsafe fn image_size(info: *const vk::ImageCreateInfo<'_>) -> u64 {
    // SAFETY: the promise of `image_size`: NULL or valid.
    let Some(info) = (unsafe { chain::input(info) }) else {
        return 0;
    };
    let factors =
        [info.extent.width, info.extent.height, info.extent.depth, info.array_layers, info.samples.as_raw()];
    // Four bytes a texel; a third more for the smaller levels.
    let texels = factors.iter().fold(1_u64, |size, &factor| size.saturating_mul(u64::from(factor)));
    let bytes = texels.saturating_mul(4).min(RESOURCE >> 2);
    if info.mip_levels > 1 { bytes + bytes / 3 } else { bytes }
}

unsafe extern "system" fn create_image(
    _: vk::Device,
    p_info: *const vk::ImageCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    p_image: *mut vk::Image,
) -> vk::Result {
    // SAFETY: VUID-vkCreateImage-pCreateInfo-parameter.
    let size = unsafe { image_size(p_info) };
    // SAFETY: VUID-vkCreateImage-pImage-parameter.
    unsafe { chain::output(p_image, vk::Image::from_raw(RESOURCE | size)) };
    vk::Result::SUCCESS
}

/// The requirements of something of this size: a multiple of its alignment.
fn requirements(size: u64, alignment: u32, type_bits: u32) -> vk::MemoryRequirements {
    let alignment = 1_u64 << (alignment & 31);
    // No overflow: the size is below `RESOURCE`.
    let size = ((size & (RESOURCE - 1)) + alignment - 1) & !(alignment - 1);
    vk::MemoryRequirements { size, alignment, memory_type_bits: type_bits }
}

unsafe extern "system" fn buffer(device: vk::Device, buffer: vk::Buffer, out: *mut vk::MemoryRequirements) {
    // SAFETY: only null devices have this function.
    let header = unsafe { header(device) };
    // SAFETY: VUID-vkGetBufferMemoryRequirements-pMemoryRequirements-parameter.
    unsafe { chain::output(out, requirements(buffer.as_raw(), header.buffer_alignment, header.type_bits)) };
}

unsafe extern "system" fn image(device: vk::Device, image: vk::Image, out: *mut vk::MemoryRequirements) {
    // SAFETY: only null devices have this function.
    let header = unsafe { header(device) };
    // SAFETY: VUID-vkGetImageMemoryRequirements-pMemoryRequirements-parameter.
    unsafe { chain::output(out, requirements(image.as_raw(), header.image_alignment, header.type_bits)) };
}

/// # Safety
///
/// 1. `out` is NULL, or valid for writes.
/// 2. Its chain is valid for writes.
unsafe fn answer(requirements: vk::MemoryRequirements, out: *mut vk::MemoryRequirements2<'_>) {
    // SAFETY: 1 of `answer`.
    let Some(out) = (unsafe { out.as_mut() }) else {
        return;
    };
    out.memory_requirements = requirements;
    // SAFETY: 2 of `answer`.
    if let Some(dedicated) = unsafe { chain::find_mut::<vk::MemoryDedicatedRequirements<'_>>(out.p_next) } {
        dedicated.prefers_dedicated_allocation = vk::FALSE;
        dedicated.requires_dedicated_allocation = vk::FALSE;
    }
}

unsafe extern "system" fn buffer2(
    device: vk::Device,
    p_info: *const vk::BufferMemoryRequirementsInfo2<'_>,
    out: *mut vk::MemoryRequirements2<'_>,
) {
    // SAFETY: only null devices have this function.
    let header = unsafe { header(device) };
    // SAFETY: VUID-vkGetBufferMemoryRequirements2-pInfo-parameter.
    let size = unsafe { chain::input(p_info) }.map_or(0, |info| info.buffer.as_raw());
    // SAFETY: VUID-vkGetBufferMemoryRequirements2-pMemoryRequirements-parameter.
    unsafe { answer(requirements(size, header.buffer_alignment, header.type_bits), out) };
}

unsafe extern "system" fn image2(
    device: vk::Device,
    p_info: *const vk::ImageMemoryRequirementsInfo2<'_>,
    out: *mut vk::MemoryRequirements2<'_>,
) {
    // SAFETY: only null devices have this function.
    let header = unsafe { header(device) };
    // SAFETY: VUID-vkGetImageMemoryRequirements2-pInfo-parameter.
    let size = unsafe { chain::input(p_info) }.map_or(0, |info| info.image.as_raw());
    // SAFETY: VUID-vkGetImageMemoryRequirements2-pMemoryRequirements-parameter.
    unsafe { answer(requirements(size, header.image_alignment, header.type_bits), out) };
}

unsafe extern "system" fn device_buffer(
    device: vk::Device,
    p_info: *const vk::DeviceBufferMemoryRequirements<'_>,
    out: *mut vk::MemoryRequirements2<'_>,
) {
    // SAFETY: only null devices have this function.
    let header = unsafe { header(device) };
    // SAFETY: VUID-vkGetDeviceBufferMemoryRequirements-pInfo-parameter.
    let info = unsafe { chain::input(p_info) }.map_or(std::ptr::null(), |info| info.p_create_info);
    // SAFETY: VUID-VkDeviceBufferMemoryRequirements-pCreateInfo-parameter.
    let size = unsafe { buffer_size(info) };
    // SAFETY: VUID-vkGetDeviceBufferMemoryRequirements-pMemoryRequirements-parameter.
    unsafe { answer(requirements(size, header.buffer_alignment, header.type_bits), out) };
}

unsafe extern "system" fn device_image(
    device: vk::Device,
    p_info: *const vk::DeviceImageMemoryRequirements<'_>,
    out: *mut vk::MemoryRequirements2<'_>,
) {
    // SAFETY: only null devices have this function.
    let header = unsafe { header(device) };
    // SAFETY: VUID-vkGetDeviceImageMemoryRequirements-pInfo-parameter.
    let info = unsafe { chain::input(p_info) }.map_or(std::ptr::null(), |info| info.p_create_info);
    // SAFETY: VUID-VkDeviceImageMemoryRequirements-pCreateInfo-parameter.
    let size = unsafe { image_size(info) };
    // SAFETY: VUID-vkGetDeviceImageMemoryRequirements-pMemoryRequirements-parameter.
    unsafe { answer(requirements(size, header.image_alignment, header.type_bits), out) };
}

unsafe extern "system" fn address(
    _: vk::Device,
    _: *const vk::BufferDeviceAddressInfo<'_>,
) -> vk::DeviceAddress {
    RESOURCE
}
