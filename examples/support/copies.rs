//! A common interface to buffers and square images: creation, copies and destruction.

use ash::vk;

use super::Context;

const READ: vk::ImageLayout = vk::ImageLayout::TRANSFER_SRC_OPTIMAL;
const WRITTEN: vk::ImageLayout = vk::ImageLayout::TRANSFER_DST_OPTIMAL;

/// A buffer or an image. Between copies, an image is in the layout for copy sources.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    Buffer { buffer: vk::Buffer, size: u64 },
    Image { image: vk::Image, side: u32 },
}

pub fn buffer_info(size: u64) -> vk::BufferCreateInfo<'static> {
    let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    vk::BufferCreateInfo::default().size(size).usage(usage)
}

/// Returns the create-info of an image with 32 bits per texel.
pub fn image_info(side: u32) -> vk::ImageCreateInfo<'static> {
    vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(vk::Format::R8G8B8A8_UNORM)
        .extent(vk::Extent3D { width: side, height: side, depth: 1 })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .usage(vk::ImageUsageFlags::TRANSFER_SRC | vk::ImageUsageFlags::TRANSFER_DST)
}

impl Resource {
    /// Returns the bytes of its contents.
    pub fn size(self) -> u64 {
        match self {
            Self::Buffer { size, .. } => size,
            Self::Image { side, .. } => 4 * u64::from(side) * u64::from(side),
        }
    }

    /// Destroys the resource, but not its memory. The device must not use it any more.
    pub fn destroy(self, context: &Context) {
        match self {
            // SAFETY: the examples wait for all that they submit.
            Self::Buffer { buffer, .. } => unsafe { context.device().destroy_buffer(buffer, None) },
            // SAFETY: as above.
            Self::Image { image, .. } => unsafe { context.device().destroy_image(image, None) },
        }
    }

    /// Records a copy of all its contents to `to`, which has the same size. An image as the target is overwritten
    /// completely.
    pub fn copy_to(self, to: Self, device: &ash::Device, commands: vk::CommandBuffer) {
        let layers =
            vk::ImageSubresourceLayers::default().aspect_mask(vk::ImageAspectFlags::COLOR).layer_count(1);
        let extent = |side| vk::Extent3D { width: side, height: side, depth: 1 };
        let texels =
            |side| [vk::BufferImageCopy::default().image_subresource(layers).image_extent(extent(side))];
        if let Self::Image { image, .. } = to {
            change_use(device, commands, image, OVERWRITTEN, COPIED_TO);
        }
        match (self, to) {
            (Self::Buffer { buffer: from, size }, Self::Buffer { buffer: to, .. }) => {
                let all = [vk::BufferCopy::default().size(size)];
                // SAFETY: both have this many bytes, and the required usage.
                unsafe { device.cmd_copy_buffer(commands, from, to, &all) };
            }
            (Self::Buffer { buffer, .. }, Self::Image { image, side }) => {
                // SAFETY: the image is in the given layout, and the buffer is large enough for all its texels.
                unsafe { device.cmd_copy_buffer_to_image(commands, buffer, image, WRITTEN, &texels(side)) };
            }
            (Self::Image { image, side }, Self::Buffer { buffer, .. }) => {
                // SAFETY: as above.
                unsafe { device.cmd_copy_image_to_buffer(commands, image, READ, buffer, &texels(side)) };
            }
            (Self::Image { image: from, side }, Self::Image { image: to, .. }) => {
                let copy = vk::ImageCopy::default().src_subresource(layers).dst_subresource(layers);
                let all = [copy.extent(extent(side))];
                // SAFETY: both have the same size, and are in the given layouts.
                unsafe { device.cmd_copy_image(commands, from, READ, to, WRITTEN, &all) };
            }
        }
        if let Self::Image { image, .. } = to {
            change_use(device, commands, image, COPIED_TO, COPIED_FROM);
        }
    }
}

/// The use of an image on one side of a barrier: layout, stages and accesses.
pub type ImageUse = (vk::ImageLayout, vk::PipelineStageFlags, vk::AccessFlags);

pub const COPIED_TO: ImageUse = (WRITTEN, vk::PipelineStageFlags::TRANSFER, vk::AccessFlags::TRANSFER_WRITE);
pub const COPIED_FROM: ImageUse = (READ, vk::PipelineStageFlags::TRANSFER, vk::AccessFlags::TRANSFER_READ);
/// Discards the contents. Earlier copies must have completed.
pub const OVERWRITTEN: ImageUse = (vk::ImageLayout::UNDEFINED, COPIED_TO.1, COPIED_TO.2);

/// Records a barrier for all levels of a colour image of one layer.
pub fn change_use(
    device: &ash::Device,
    commands: vk::CommandBuffer,
    image: vk::Image,
    before: ImageUse,
    after: ImageUse,
) {
    let all = vk::ImageSubresourceRange::default()
        .aspect_mask(vk::ImageAspectFlags::COLOR)
        .level_count(vk::REMAINING_MIP_LEVELS)
        .layer_count(1);
    let barrier = vk::ImageMemoryBarrier::default()
        .src_access_mask(before.2)
        .dst_access_mask(after.2)
        .old_layout(before.0)
        .new_layout(after.0)
        .src_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
        .dst_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
        .image(image)
        .subresource_range(all);
    let none = vk::DependencyFlags::empty();
    // SAFETY: the command buffer is being recorded, outside of a render pass, and the image is in the old layout.
    unsafe { device.cmd_pipeline_barrier(commands, before.1, after.1, none, &[], &[], &[barrier]) };
}
