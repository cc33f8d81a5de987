//! Formats, and the model that sizes, aligns and places buffers and images.

use ash::vk;

use crate::facts::arithmetic::align_up;
use crate::facts::profiles::{Profile, Rounding, Tile};

mod channels;
mod layout;
#[cfg(test)]
mod tests;
mod texel;

pub(crate) use channels::Channels;
pub(crate) use layout::tile_of;
pub(crate) use layout::{ImageLayout, LevelLayout, level_size};
pub(crate) use texel::{Aspect, FormatInfo};

/// The memory requirements of a resource, as the driver reports them. Sizes and alignments are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requirements {
    /// `VkMemoryRequirements::size`.
    pub size: u64,
    /// `VkMemoryRequirements::alignment`.
    pub alignment: u64,
    /// `VkMemoryRequirements::memoryTypeBits`.
    pub type_bits: u32,
    /// `VkMemoryDedicatedRequirements::prefersDedicatedAllocation`.
    pub prefers_dedicated: bool,
    /// `VkMemoryDedicatedRequirements::requiresDedicatedAllocation`.
    pub requires_dedicated: bool,
}

/// The input for the requirements of a buffer: its create-info without pointers. Made with `from(&info)`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BufferDescription {
    /// Size in bytes.
    pub size: u64,
    /// Usage flags.
    pub usage: vk::BufferUsageFlags,
    /// Creation flags.
    pub flags: vk::BufferCreateFlags,
    /// True if the create-info has a `VkExternalMemoryBufferCreateInfo` with a handle type.
    pub external: bool,
}

/// The input for the requirements of an image: its create-info without pointers. Made with `from(&info)`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ImageDescription {
    /// Creation flags.
    pub flags: vk::ImageCreateFlags,
    /// 1D, 2D or 3D.
    pub image_type: vk::ImageType,
    /// The format of a texel.
    pub format: vk::Format,
    /// Size of the first level, in texels.
    pub extent: vk::Extent3D,
    /// Number of levels.
    pub mip_levels: u32,
    /// Number of layers.
    pub array_layers: u32,
    /// Samples of a texel.
    pub samples: vk::SampleCountFlags,
    /// Optimal or linear.
    pub tiling: vk::ImageTiling,
    /// Usage flags.
    pub usage: vk::ImageUsageFlags,
    /// True if the create-info has a `VkExternalMemoryImageCreateInfo` with a handle type.
    pub external: bool,
}

impl From<&vk::ImageCreateInfo<'_>> for ImageDescription {
    /// Takes the fields of the create-info; `external` is false, because this function follows no pointer.
    fn from(info: &vk::ImageCreateInfo<'_>) -> Self {
        Self {
            flags: info.flags,
            image_type: info.image_type,
            format: info.format,
            extent: info.extent,
            mip_levels: info.mip_levels,
            array_layers: info.array_layers,
            samples: info.samples,
            tiling: info.tiling,
            usage: info.usage,
            external: false,
        }
    }
}

impl From<&vk::BufferCreateInfo<'_>> for BufferDescription {
    /// Takes the fields of the create-info; `external` is false, because this function follows no pointer.
    fn from(info: &vk::BufferCreateInfo<'_>) -> Self {
        Self { size: info.size, usage: info.usage, flags: info.flags, external: false }
    }
}

/// Bytes of a page of a sparse buffer: pages begin at its multiples in the buffer and in the memory.
pub(crate) const SPARSE_PAGE: u64 = 64 << 10;

/// The usages of descriptor buffers.
const DESCRIPTOR_BUFFER: vk::BufferUsageFlags = vk::BufferUsageFlags::from_raw(
    vk::BufferUsageFlags::RESOURCE_DESCRIPTOR_BUFFER_EXT.as_raw()
        | vk::BufferUsageFlags::SAMPLER_DESCRIPTOR_BUFFER_EXT.as_raw()
        | vk::BufferUsageFlags::PUSH_DESCRIPTORS_DESCRIPTOR_BUFFER_EXT.as_raw(),
);

/// The memory requirements of a buffer, as `profile`'s driver reports them.
///
/// A pure function: buffers of the same size, usage and flags have the same requirements, as Vulkan promises
/// (section "Resource Memory Association"). A further usage can only raise the alignment.
///
/// ```
/// use ash::vk;
/// use sublet_sim::{format, profiles::Profile};
/// let profile = Profile::by_name("nvidia-h200").unwrap();
/// let info = vk::BufferCreateInfo::default().size(100).usage(vk::BufferUsageFlags::UNIFORM_BUFFER);
/// let requirements = format::buffer_requirements(profile, &(&info).into());
/// assert_eq!((requirements.size, requirements.alignment), (128, 64));
/// ```
pub fn buffer_requirements(profile: &Profile, buffer: &BufferDescription) -> Requirements {
    let rules = &profile.buffers;
    let alignment = rules
        .raised
        .iter()
        .filter(|raised| buffer.usage.intersects(raised.usage))
        .fold(rules.alignment, |alignment, raised| alignment.max(raised.alignment));
    let is_sparse = buffer.flags.contains(vk::BufferCreateFlags::SPARSE_BINDING);
    let alignment = if is_sparse { alignment.max(SPARSE_PAGE) } else { alignment };
    let multiple = match rules.rounding {
        _ if is_sparse => alignment,
        Rounding::Exact => 1,
        Rounding::ToAlignment => alignment,
        Rounding::To(multiple) => multiple,
    };
    let size = align_up(buffer.size, multiple).unwrap_or(buffer.size);
    let requires_dedicated = buffer.external && profile.images.external_requires_dedicated;
    let descriptors = buffer.usage.intersects(DESCRIPTOR_BUFFER) && rules.descriptor_types != 0;
    let types = if descriptors { rules.descriptor_types } else { rules.types };
    Requirements {
        size,
        alignment,
        type_bits: unprotected(profile, types, buffer.flags.contains(vk::BufferCreateFlags::PROTECTED)),
        prefers_dedicated: requires_dedicated || !is_sparse && reaches(size, rules.prefers_dedicated_from),
        requires_dedicated,
    }
}

/// The memory requirements of an image, as `profile`'s driver reports them. All zero if the driver does not know the
/// format.
///
/// A pure function. The memory types depend, as Vulkan demands, on no more than format, tiling, the usage
/// TRANSIENT_ATTACHMENT and the creation flag PROTECTED.
///
/// ```
/// use ash::vk;
/// use sublet_sim::{format, profiles::Profile};
/// let profile = Profile::by_name("nvidia-h200").unwrap();
/// let info = vk::ImageCreateInfo::default()
///     .image_type(vk::ImageType::TYPE_2D)
///     .format(vk::Format::R8G8B8A8_UNORM)
///     .extent(vk::Extent3D { width: 300, height: 200, depth: 1 })
///     .mip_levels(1)
///     .array_layers(1)
///     .samples(vk::SampleCountFlags::TYPE_1)
///     .usage(vk::ImageUsageFlags::SAMPLED);
/// let requirements = format::image_requirements(profile, &(&info).into());
/// assert_eq!((requirements.size, requirements.alignment), (311_296, 1024)); // 240,000 bytes in tiles
/// ```
pub fn image_requirements(profile: &Profile, image: &ImageDescription) -> Requirements {
    let rules = &profile.images;
    let Some(layout) = ImageLayout::new(profile, image) else {
        return Requirements {
            size: 0,
            alignment: 1,
            type_bits: 0,
            prefers_dedicated: false,
            requires_dedicated: false,
        };
    };
    let types = if image.tiling != vk::ImageTiling::OPTIMAL {
        rules.linear_types
    } else {
        let kind = if layout.info().is_depth_stencil() { rules.depth_types } else { rules.color_types };
        let of_format = rules
            .format_types
            .iter()
            .filter(|more| more.format == image.format)
            .fold(0, |bits, more| bits | more.types);
        let transient = if image.usage.contains(vk::ImageUsageFlags::TRANSIENT_ATTACHMENT) {
            rules.transient_types
        } else {
            0
        };
        kind | of_format | transient
    };
    let size = layout.size();
    let attachment = vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT;
    let requires_dedicated = image.external && rules.external_requires_dedicated;
    let prefers_dedicated = requires_dedicated
        || reaches(size, rules.prefers_dedicated_from)
        || image.usage.intersects(attachment) && reaches(size, rules.prefers_dedicated_target_from);
    Requirements {
        size,
        alignment: layout.alignment(),
        type_bits: unprotected(profile, types, image.flags.contains(vk::ImageCreateFlags::PROTECTED)),
        prefers_dedicated,
        requires_dedicated,
    }
}

/// How large an image is with a tile. `None` if the driver does not know the format.
pub(crate) fn tiled_size(tile: Tile, image: &ImageDescription) -> Option<u64> {
    Some(ImageLayout::with_tile(tile, image)?.size())
}

/// The bytes of an image's first level without any rounding, which its tile is chosen by.
pub(crate) fn bare_size(image: &ImageDescription) -> Option<u64> {
    Some(layout::bare_size(&FormatInfo::of(image.format)?, image))
}

/// The position of a subresource in its image. Optimal images have an answer too, which Vulkan does not give, because
/// the simulated device stores their texels in rows as well. `None` if the image has no such aspect, level or layer.
///
/// ```
/// use ash::vk;
/// use sublet_sim::{format, profiles::Profile};
/// let profile = Profile::by_name("nvidia-h200").unwrap();
/// let info = vk::ImageCreateInfo::default()
///     .image_type(vk::ImageType::TYPE_2D)
///     .format(vk::Format::R8_UNORM)
///     .extent(vk::Extent3D { width: 300, height: 200, depth: 1 })
///     .mip_levels(1)
///     .array_layers(1)
///     .samples(vk::SampleCountFlags::TYPE_1)
///     .tiling(vk::ImageTiling::LINEAR);
/// let subresource = vk::ImageSubresource { aspect_mask: vk::ImageAspectFlags::COLOR, mip_level: 0, array_layer: 0 };
/// let layout = format::subresource_layout(profile, &(&info).into(), subresource).unwrap();
/// assert_eq!(layout.row_pitch, 384);
/// ```
pub fn subresource_layout(
    profile: &Profile,
    image: &ImageDescription,
    subresource: vk::ImageSubresource,
) -> Option<vk::SubresourceLayout> {
    let layout = ImageLayout::new(profile, image)?;
    // COLOR of an image with several planes means its first plane.
    let mut aspect = subresource.aspect_mask;
    if aspect == vk::ImageAspectFlags::COLOR && layout.info().planes().len() > 1 {
        aspect = vk::ImageAspectFlags::PLANE_0;
    }
    let (level, _) = layout.level(aspect, subresource.mip_level, subresource.array_layer)?;
    Some(vk::SubresourceLayout {
        offset: level.offset,
        size: level.size,
        row_pitch: level.row_pitch,
        array_pitch: level.array_pitch,
        depth_pitch: level.depth_pitch,
    })
}

/// Of `types`, those that are protected if the resource is, else those that are not.
fn unprotected(profile: &Profile, types: u32, protected: bool) -> u32 {
    profile
        .types
        .iter()
        .zip(0..u32::BITS)
        .filter(|(kind, _)| kind.flags.contains(vk::MemoryPropertyFlags::PROTECTED) == protected)
        .fold(0, |bits, (_, index)| bits | types & 1 << index)
}

fn reaches(size: u64, threshold: Option<u64>) -> bool {
    threshold.is_some_and(|threshold| size >= threshold)
}
