//! Copies out of the staging ring, and the barriers that make them seen.

use ash::vk;
use sublet::upload::Upload;

use crate::support::{COPIED_TO, OVERWRITTEN, change_use};

/// What was written to the ring, and where it goes.
pub(crate) enum Copy {
    Mesh(Upload, vk::Buffer),
    /// All levels of a square image with this side.
    Image(Upload, vk::Image, u32),
}

impl Copy {
    /// Bytes of the ring.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Mesh(upload, _) | Self::Image(upload, ..) => upload.size,
        }
    }

    /// Records the copy, and that what draws later sees it.
    pub(crate) fn record(&self, device: &ash::Device, commands: vk::CommandBuffer) {
        match *self {
            Self::Mesh(upload, buffer) => {
                // SAFETY: the buffer has as many bytes.
                unsafe { device.cmd_copy_buffer(commands, upload.buffer, buffer, &[upload.copy_to(0)]) };
                let barrier = vk::MemoryBarrier::default()
                    .src_access_mask(vk::AccessFlags::TRANSFER_WRITE)
                    .dst_access_mask(vk::AccessFlags::INDEX_READ | vk::AccessFlags::VERTEX_ATTRIBUTE_READ);
                let (from, to) = (vk::PipelineStageFlags::TRANSFER, vk::PipelineStageFlags::VERTEX_INPUT);
                let none = vk::DependencyFlags::empty();
                // SAFETY: the command buffer is being recorded, outside of a render pass.
                unsafe { device.cmd_pipeline_barrier(commands, from, to, none, &[barrier], &[], &[]) };
            }
            Self::Image(upload, image, side) => copy_levels(device, commands, &upload, image, side),
        }
    }
}

/// All levels of a square image, which lie one after the other.
fn copy_levels(
    device: &ash::Device,
    commands: vk::CommandBuffer,
    upload: &Upload,
    image: vk::Image,
    side: u32,
) {
    change_use(device, commands, image, OVERWRITTEN, COPIED_TO);
    let color = vk::ImageAspectFlags::COLOR;
    let mut regions = Vec::new();
    let mut buffer_offset = upload.offset;
    for level in 0..=side.ilog2() {
        let side = side >> level;
        let subresource =
            vk::ImageSubresourceLayers::default().aspect_mask(color).mip_level(level).layer_count(1);
        let extent = vk::Extent3D { width: side, height: side, depth: 1 };
        let region = vk::BufferImageCopy::default().image_subresource(subresource).image_extent(extent);
        regions.push(region.buffer_offset(buffer_offset));
        buffer_offset += 4 * u64::from(side) * u64::from(side);
    }
    // SAFETY: the image is in this layout, and the ring has all its texels.
    unsafe { device.cmd_copy_buffer_to_image(commands, upload.buffer, image, COPIED_TO.0, &regions) };
    let sampled = (
        vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL,
        vk::PipelineStageFlags::FRAGMENT_SHADER,
        vk::AccessFlags::SHADER_READ,
    );
    change_use(device, commands, image, COPIED_TO, sampled);
}
