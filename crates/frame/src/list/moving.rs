//! Copies of resources to where they move.

use std::sync::Arc;

use ash::vk;

use super::CommandList;
use crate::device::Kept;
use crate::resource::{Body, Buffers, Facts, Images};
use crate::track::{Subresources, Use, UseError};

/// What is copied of an image that moves.
pub(crate) struct MovedImage<'a> {
    pub(crate) from: &'a Arc<Body<Images>>,
    pub(crate) to: &'a Arc<Body<Images>>,
    /// Aspects, mips and layers whose contents are defined.
    pub(crate) parts: &'a [Subresources],
}

impl CommandList {
    /// Declares that all of a buffer is copied. The barriers of all that moves are one call.
    pub(crate) fn declare_moved_buffer(
        &mut self,
        from: &Arc<Body<Buffers>>,
        to: &Arc<Body<Buffers>>,
        size: u64,
    ) -> Result<(), UseError> {
        self.pool.kept.push(Kept::Any(Box::new((Arc::clone(from), Arc::clone(to)))));
        let recorder = &mut self.tools.recorder;
        recorder.use_buffer(from.id, 0..size, Use::COPY_SOURCE)?;
        recorder.use_buffer(to.id, 0..size, Use::COPY_TARGET.discard())
    }

    /// Declares that what is defined of an image is copied.
    pub(crate) fn declare_moved_image(&mut self, moved: &MovedImage<'_>) -> Result<(), UseError> {
        let MovedImage { from, to, parts } = *moved;
        self.pool.kept.push(Kept::Any(Box::new((Arc::clone(from), Arc::clone(to)))));
        let recorder = &mut self.tools.recorder;
        parts.iter().try_for_each(|part| {
            recorder.use_image(from.id, part, Use::COPY_SOURCE)?;
            recorder.use_image(to.id, part, Use::COPY_TARGET.discard())
        })
    }

    /// Copies all of a buffer that was declared so.
    ///
    /// # Safety
    /// The uses were declared and flushed; both were made for copies and have so many bytes.
    pub(crate) unsafe fn copy_moved_buffer(&self, from: vk::Buffer, to: vk::Buffer, size: u64) {
        let (device, regions) = (self.core.api.device(), [vk::BufferCopy::default().size(size)]);
        // SAFETY: the list is being recorded, outside of rendering, and keeps both; the rest is the caller's promise.
        unsafe { device.cmd_copy_buffer(self.pool.main, from, to, &regions) };
    }

    /// Copies the parts of an image that were declared so.
    ///
    /// # Safety
    /// The uses were declared and flushed; both images were made as `facts` say, and for copies on this queue.
    pub(crate) unsafe fn copy_moved_image(&self, moved: &MovedImage<'_>, facts: &Facts) {
        let regions: Vec<_> = moved.parts.iter().flat_map(|part| regions(part, facts)).collect();
        if regions.is_empty() {
            return;
        }
        let (source, target) = (vk::ImageLayout::TRANSFER_SRC_OPTIMAL, vk::ImageLayout::TRANSFER_DST_OPTIMAL);
        let (device, from, to) = (self.core.api.device(), moved.from.handle, moved.to.handle);
        // SAFETY: the list is being recorded, outside of rendering, and keeps both, in these layouts; the regions are
        // whole subresources of both.
        unsafe { device.cmd_copy_image(self.pool.main, from, source, to, target, &regions) };
    }
}

/// Whole subresources, mip by mip.
fn regions<'a>(part: &'a Subresources, facts: &'a Facts) -> impl Iterator<Item = vk::ImageCopy> + 'a {
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
