//! The moves of a step.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::sync::Arc;

use super::{CompactError, Moved, MovedResource, MovedView};
use crate::device::DeviceCore;
use crate::list::{CommandList, MovedImage};
use crate::resource::{Body, Buffer, BufferClass, Image, ImageClass, ResourceClass};
use crate::track::ResourceId;
use crate::track::Subresources;
use ash::vk;
use sublet::Move;
use sublet::retire::Ticket;

/// An old body and its replacement. Both are closed to lists until one of them is current.
pub(super) struct Succession<K: ResourceClass> {
    old: Arc<Body<K>>,
    /// Closed too, until the subscribers were called.
    new: Arc<Body<K>>,
    done: bool,
}

impl<K: ResourceClass> Succession<K> {
    /// Closes `old` and creates its replacement with `make`. Returns `None` if a list uses `old`, or `make` returned
    /// none.
    fn new<E>(
        old: Arc<Body<K>>,
        make: impl FnOnce() -> Result<Option<Body<K>>, E>,
    ) -> Result<Option<Self>, E> {
        if !old.close() {
            return Ok(None);
        }
        match make() {
            Ok(Some(new)) => {
                let new = Arc::new(new);
                // Not shared yet, so this succeeds.
                new.close();
                Ok(Some(Self { old, new, done: false }))
            }
            other => {
                old.reopen();
                other.map(|_| None)
            }
        }
    }
}

impl<K: ResourceClass> Drop for Succession<K> {
    fn drop(&mut self) {
        if self.done {
            self.new.reopen();
        } else {
            self.old.views.lock().handed_over = false;
            self.old.reopen();
        }
    }
}

/// The move of a resource. Dropping it before [`arrive`](Self::arrive) rolls back the move.
pub(super) enum ResourceTransfer {
    Buffer { buffer: Buffer, bodies: Succession<BufferClass> },
    Image { image: Image, bodies: Succession<ImageClass>, parts: Vec<Subresources>, views: Vec<MovedView> },
}

/// Returns true if a queue can copy all of an image. Only graphics queues copy depth, stencil and multisampled images
/// on every device (VUID-vkCmdCopyImage-commandBuffer-10217, -10218, VUID-vkCmdCopyImage-commandBuffer-11778).
pub(super) fn can_copy(image: &Image, queue: vk::QueueFlags) -> bool {
    let facts = image.facts();
    let plain = facts.aspects == vk::ImageAspectFlags::COLOR && facts.samples == vk::SampleCountFlags::TYPE_1;
    plain || queue.contains(vk::QueueFlags::GRAPHICS)
}

impl ResourceTransfer {
    /// Creates the replacement of a buffer. Returns `None` if it cannot be moved now.
    pub(super) fn of_buffer(buffer: Buffer, moved: Move<'static>) -> Result<Option<Self>, CompactError> {
        let old = buffer.current().with(Arc::clone);
        let bodies = Succession::new(old, || buffer.begin_move(moved)).map_err(CompactError::Create)?;
        Ok(bodies.map(|bodies| Self::Buffer { buffer, bodies }))
    }

    /// Creates the replacement of an image and its views. Returns `None` if it cannot be moved now.
    pub(super) fn of_image(
        core: &DeviceCore,
        image: Image,
        moved: Move<'static>,
    ) -> Result<Option<Self>, CompactError> {
        let old = image.current().with(Arc::clone);
        let bodies = Succession::new(old, || image.begin_move(moved)).map_err(CompactError::Create)?;
        let Some(bodies) = bodies else { return Ok(None) };
        let mut parts = Vec::new();
        core.global.lock().defined(bodies.old.id, |part| parts.push(part));
        let mut known = bodies.old.views.lock();
        let mut views = Vec::with_capacity(known.made.len());
        for (info, old) in &known.made {
            // SAFETY: the old body has this view, and the new body was created from the same info.
            let new = unsafe { image.view_of(&bodies.new, info) }.map_err(CompactError::View)?;
            // Always `Some`: the new body has not handed over its views.
            views.extend(new.map(|new| MovedView { info: info.clone(), old: *old, new }));
        }
        // Further views are created after the replacement is current.
        known.handed_over = true;
        drop(known);
        Ok(Some(Self::Image { image, bodies, parts, views }))
    }

    pub(super) fn declare(&self, list: &mut CommandList) -> Result<(), CompactError> {
        let declared = match self {
            Self::Buffer { buffer, bodies: Succession { old, new, .. } } => {
                list.declare_moved_buffer(old, new, buffer.size())
            }
            Self::Image { bodies: Succession { old, new, .. }, parts, .. } => {
                list.declare_moved_image(&MovedImage { from: old, to: new, parts })
            }
        };
        declared.map_err(CompactError::Use)
    }

    /// Records the copy.
    ///
    /// # Safety
    /// It was declared in this list, and the barriers were recorded. The queue [can](can_copy) copy it.
    pub(super) unsafe fn copy(&self, list: &CommandList) {
        match self {
            Self::Buffer { buffer, bodies: Succession { old, new, .. } } => {
                // SAFETY: both handles have this size, and buffers without both transfer usages do not move.
                unsafe { list.copy_moved_buffer(old.handle, new.handle, buffer.size()) };
            }
            Self::Image { image, bodies: Succession { old, new, .. }, parts, .. } => {
                // SAFETY: both handles belong to this image, and images without both transfer usages do not move. The
                // caller guarantees that the queue can copy it.
                unsafe { list.copy_moved_image(&MovedImage { from: old, to: new, parts }, image.facts()) };
            }
        }
    }

    /// Makes the replacement current, after the submission of the copies.
    pub(super) fn arrive(&mut self, core: &DeviceCore) {
        match self {
            Self::Buffer { buffer, bodies } => {
                core.global.lock().supersede(bodies.old.id);
                mark(core, bodies.new.id.into());
                buffer.current().replace(Arc::clone(&bodies.new));
                bodies.done = true;
            }
            Self::Image { image, bodies, .. } => {
                core.global.lock().supersede(bodies.old.id);
                mark(core, bodies.new.id.into());
                image.current().replace(Arc::clone(&bodies.new));
                bodies.done = true;
            }
        }
    }

    pub(super) fn moved(&self, ticket: Ticket) -> Moved<'_> {
        let resource = match self {
            Self::Buffer { buffer, bodies } => MovedResource::Buffer { buffer, old: bodies.old.handle },
            Self::Image { image, bodies, views, .. } => {
                MovedResource::Image { image, old: bodies.old.handle, views }
            }
        };
        Moved { resource, ticket }
    }
}

/// Marks a replacement as written. A read before the first write was reported for the old body, if there was one.
fn mark(core: &DeviceCore, id: ResourceId) {
    if let Some(unwritten) = &core.info.unwritten {
        unwritten.mark(id);
    }
}
