//! Reads create-infos, and checks their rules.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::facts::format::{BufferDescription, FormatInfo, ImageDescription};
use crate::objects::state::DeviceObject;

/// The description in a buffer's create-info, chain included, the handle types that share the buffer, and whether one
/// family of queues owns it at a time; or the rule that it breaks.
///
/// # Safety
///
/// 1. `info` is NULL or a valid create-info.
/// 2. Its chain is valid.
pub(crate) unsafe fn describe_buffer(
    device: &DeviceObject,
    info: *const vk::BufferCreateInfo<'_>,
) -> Result<(BufferDescription, u32, bool), Broken> {
    // SAFETY: 1 of `describe_buffer`.
    let info = unsafe { chain::given(info, "VUID-vkCreateBuffer-pCreateInfo-parameter") }?;
    // SAFETY: 2 of `describe_buffer`.
    let external = unsafe { chain::find::<vk::ExternalMemoryBufferCreateInfo<'_>>(info.p_next) };
    let mut description = BufferDescription::from(info);
    let external = external.map_or(0, |info| info.handle_types.as_raw());
    description.external = may_be_dedicated(external);
    let limit = device.profile().limits.max_buffer_size;
    refuse_if!(info.size == 0 => "VUID-VkBufferCreateInfo-size-00912", "size is 0");
    refuse_if!(info.usage.is_empty() => "VUID-VkBufferCreateInfo-usage-requiredbitmask", "usage is 0");
    refuse_if!(info.size > limit && device.has_buffer_size_rule() => "VUID-VkBufferCreateInfo-size-06409",
        "size is {}, and maxBufferSize is {limit}", info.size);
    refuse_if!(info.flags.contains(vk::BufferCreateFlags::SPARSE_BINDING) && !device.features.sparse_binding
        => "VUID-VkBufferCreateInfo-flags-00915",
        "SPARSE_BINDING is set, and the feature sparseBinding is not enabled");
    refuse_if!(info.flags.contains(vk::BufferCreateFlags::SPARSE_RESIDENCY)
        => "VUID-VkBufferCreateInfo-flags-00916",
        "SPARSE_RESIDENCY is set, and the device has no sparse residency");
    refuse_if!(info.flags.contains(vk::BufferCreateFlags::PROTECTED) && !device.features.protected_memory
        => "VUID-VkBufferCreateInfo-flags-01887",
        "PROTECTED is set, and the feature protectedMemory is not enabled");
    refuse_if!(info.sharing_mode == vk::SharingMode::CONCURRENT && info.queue_family_index_count < 2
        => "VUID-VkBufferCreateInfo-sharingMode-00914",
        "sharingMode is CONCURRENT with {} queue families", info.queue_family_index_count);
    Ok((description, external, info.sharing_mode == vk::SharingMode::EXCLUSIVE))
}

/// The description in an image's create-info, chain included, the handle types that share the image, and whether one
/// family of queues owns it at a time; or the rule that it breaks.
///
/// # Safety
///
/// 1. `info` is NULL or a valid create-info.
/// 2. Its chain is valid.
pub(crate) unsafe fn describe_image(
    device: &DeviceObject,
    info: *const vk::ImageCreateInfo<'_>,
) -> Result<(ImageDescription, u32, bool), Broken> {
    // SAFETY: 1 of `describe_image`.
    let info = unsafe { chain::given(info, "VUID-vkCreateImage-pCreateInfo-parameter") }?;
    // SAFETY: 2 of `describe_image`.
    let external = unsafe { chain::find::<vk::ExternalMemoryImageCreateInfo<'_>>(info.p_next) };
    let mut description = ImageDescription::from(info);
    let external = external.map_or(0, |info| info.handle_types.as_raw());
    description.external = may_be_dedicated(external);
    check_image(device, &description, info.initial_layout)?;
    refuse_if!(info.sharing_mode == vk::SharingMode::CONCURRENT && info.queue_family_index_count < 2
        => "VUID-VkImageCreateInfo-sharingMode-00942",
        "sharingMode is CONCURRENT with {} queue families", info.queue_family_index_count);
    Ok((description, external, info.sharing_mode == vk::SharingMode::EXCLUSIVE))
}

/// Returns whether a handle type is among these that dedicated memory can have. Memory of a host pointer is never
/// dedicated: VUID-VkMemoryAllocateInfo-pNext-02806.
fn may_be_dedicated(handle_types: u32) -> bool {
    handle_types & !vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT.as_raw() != 0
}

fn check_image(
    device: &DeviceObject,
    image: &ImageDescription,
    layout: vk::ImageLayout,
) -> Result<(), Broken> {
    let extent = image.extent;
    let zeros = [
        (extent.width, "extent.width", "VUID-VkImageCreateInfo-extent-00944"),
        (extent.height, "extent.height", "VUID-VkImageCreateInfo-extent-00945"),
        (extent.depth, "extent.depth", "VUID-VkImageCreateInfo-extent-00946"),
        (image.mip_levels, "mipLevels", "VUID-VkImageCreateInfo-mipLevels-00947"),
        (image.array_layers, "arrayLayers", "VUID-VkImageCreateInfo-arrayLayers-00948"),
    ];
    if let Some((_, field, vuid)) = zeros.iter().find(|(value, ..)| *value == 0) {
        return Err((vuid, format!("{field} is 0")));
    }
    refuse_if!(image.format == vk::Format::UNDEFINED => "VUID-VkImageCreateInfo-pNext-01975",
        "format is UNDEFINED");
    refuse_if!(FormatInfo::of(image.format).is_none()
        => "VUID-VkImageCreateInfo-imageCreateMaxMipLevels-02251",
        "the device has no format {}", image.format.as_raw());
    refuse_if!(image.usage.is_empty() => "VUID-VkImageCreateInfo-usage-requiredbitmask", "usage is 0");
    let limits = &device.profile().limits;
    let flat = (extent.height != 1 || extent.depth != 1, extent.depth != 1);
    refuse_if!(image.image_type == vk::ImageType::TYPE_1D && flat.0
        => "VUID-VkImageCreateInfo-imageType-00956",
        "a 1D image has height {} and depth {}", extent.height, extent.depth);
    refuse_if!(image.image_type == vk::ImageType::TYPE_2D && flat.1
        => "VUID-VkImageCreateInfo-imageType-00957",
        "a 2D image has depth {}", extent.depth);
    let limit = match image.image_type {
        vk::ImageType::TYPE_1D => limits.max_image_dimension_1d,
        vk::ImageType::TYPE_2D => limits.max_image_dimension_2d,
        _ => limits.max_image_dimension_3d,
    };
    let sides = [
        (extent.width, "width", "VUID-VkImageCreateInfo-extent-02252"),
        (extent.height, "height", "VUID-VkImageCreateInfo-extent-02253"),
        (extent.depth, "depth", "VUID-VkImageCreateInfo-extent-02254"),
    ];
    if let Some((side, field, vuid)) = sides.iter().find(|(side, ..)| *side > limit) {
        return Err((vuid, format!("extent.{field} is {side}, and the largest is {limit}")));
    }
    let largest = extent.width.max(extent.height).max(extent.depth);
    // A chain ends at one texel: as many levels as the largest side has bits.
    let levels = u32::BITS - largest.leading_zeros();
    refuse_if!(image.mip_levels > levels => "VUID-VkImageCreateInfo-mipLevels-00958",
        "mipLevels is {}, and an image of {largest} texels has {levels}", image.mip_levels);
    refuse_if!(image.image_type == vk::ImageType::TYPE_3D && image.array_layers != 1
        => "VUID-VkImageCreateInfo-imageType-00961",
        "a 3D image has {} layers", image.array_layers);
    let layers = limits.max_image_array_layers;
    refuse_if!(image.array_layers > layers => "VUID-VkImageCreateInfo-arrayLayers-02256",
        "arrayLayers is {}, and the most is {layers}", image.array_layers);
    let attachments = vk::ImageUsageFlags::COLOR_ATTACHMENT
        | vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT
        | vk::ImageUsageFlags::INPUT_ATTACHMENT
        | vk::ImageUsageFlags::TRANSIENT_ATTACHMENT;
    refuse_if!(image.usage.contains(vk::ImageUsageFlags::TRANSIENT_ATTACHMENT) && !attachments.contains(image.usage)
        => "VUID-VkImageCreateInfo-usage-00963",
        "TRANSIENT_ATTACHMENT goes with attachment usages only");
    refuse_if!(image.flags.contains(vk::ImageCreateFlags::SPARSE_BINDING)
        => "VUID-VkImageCreateInfo-flags-00969",
        "SPARSE_BINDING is set, and the device has no sparse binding");
    refuse_if!(layout != vk::ImageLayout::UNDEFINED && layout != vk::ImageLayout::PREINITIALIZED
        => "VUID-VkImageCreateInfo-initialLayout-00993",
        "initialLayout is {}", layout.as_raw());
    Ok(())
}
