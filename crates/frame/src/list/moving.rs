//! Copies for moves of resources.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::sync::Arc;

use ash::vk;

use super::CommandList;
use crate::device::KeptObject;
use crate::resource::{Body, BufferClass, ImageClass, ImageFacts};
use crate::track::{Subresources, Use, UseError};

/// The copy of an image that moves.
pub(crate) struct MovedImage<'a> {
    pub(crate) from: &'a Arc<Body<ImageClass>>,
    pub(crate) to: &'a Arc<Body<ImageClass>>,
    /// The parts with defined contents.
    pub(crate) parts: &'a [Subresources],
}

impl CommandList {
    /// Declares the copy of a whole buffer. The barriers of all moves are recorded together.
    pub(crate) fn declare_moved_buffer(
        &mut self,
        from: &Arc<Body<BufferClass>>,
        to: &Arc<Body<BufferClass>>,
        size: u64,
    ) -> Result<(), UseError> {
        self.pool.kept.push(KeptObject::Any(Box::new((Arc::clone(from), Arc::clone(to)))));
        let recorder = &mut self.context.recorder;
        recorder.use_buffer(from.id, 0..size, Use::COPY_SOURCE)?;
        recorder.use_buffer(to.id, 0..size, Use::COPY_TARGET.discard())
    }

    /// Declares the copy of the defined parts of an image.
    pub(crate) fn declare_moved_image(&mut self, moved: &MovedImage<'_>) -> Result<(), UseError> {
        let MovedImage { from, to, parts } = *moved;
        self.pool.kept.push(KeptObject::Any(Box::new((Arc::clone(from), Arc::clone(to)))));
        let recorder = &mut self.context.recorder;
        parts.iter().try_for_each(|part| {
            recorder.use_image(from.id, part, Use::COPY_SOURCE)?;
            recorder.use_image(to.id, part, Use::COPY_TARGET.discard())
        })
    }

    /// Copies a whole buffer after [`declare_moved_buffer`](Self::declare_moved_buffer).
    ///
    /// # Safety
    /// The uses were declared and flushed. Both buffers have the transfer usages and this size.
    pub(crate) unsafe fn copy_moved_buffer(&self, from: vk::Buffer, to: vk::Buffer, size: u64) {
        let (device, regions) = (self.core.api.device(), [vk::BufferCopy::default().size(size)]);
        // SAFETY: the list is being recorded, outside of rendering, and keeps both; the caller guarantees the rest.
        unsafe { device.cmd_copy_buffer(self.pool.main, from, to, &regions) };
    }

    /// Copies parts of an image after [`declare_moved_image`](Self::declare_moved_image).
    ///
    /// # Safety
    /// The uses were declared and flushed. Both images were created from `facts`, and this queue can copy them.
    pub(crate) unsafe fn copy_moved_image(&self, moved: &MovedImage<'_>, facts: &ImageFacts) {
        let regions: Vec<_> = moved.parts.iter().flat_map(|part| regions(part, facts)).collect();
        if regions.is_empty() {
            return;
        }
        let (source, target) = (vk::ImageLayout::TRANSFER_SRC_OPTIMAL, vk::ImageLayout::TRANSFER_DST_OPTIMAL);
        let (device, from, to) = (self.core.api.device(), moved.from.handle, moved.to.handle);
        // SAFETY: the list is being recorded, outside of rendering, and keeps both images, in these layouts. The
        // regions are whole subresources of both.
        unsafe { device.cmd_copy_image(self.pool.main, from, source, to, target, &regions) };
    }
}

/// Returns one region of whole subresources for each mip.
fn regions<'a>(part: &'a Subresources, facts: &'a ImageFacts) -> impl Iterator<Item = vk::ImageCopy> + 'a {
    part.mips.clone().map(|mip| {
        let layers = vk::ImageSubresourceLayers {
            aspect_mask: part.aspects,
            mip_level: mip,
            base_array_layer: part.layers.start,
            layer_count: part.layers.end - part.layers.start,
        };
        let extent = facts.mip_extent(mip);
        vk::ImageCopy { src_subresource: layers, dst_subresource: layers, extent, ..Default::default() }
    })
}
