//! Resources on their way.

use std::sync::Arc;

use super::{CompactError, Moved, MovedResource, MovedView};
use crate::device::Core;
use crate::list::{CommandList, MovedImage};
use crate::resource::{Body, Buffer, Buffers, Image, Images, Kind};
use crate::track::ResourceId;
use crate::track::Subresources;
use ash::vk;
use sublet::Move;
use sublet::retire::Ticket;

/// A body that no list may take, until its successor may be taken instead.
pub(super) struct Succession<K: Kind> {
    old: Arc<Body<K>>,
    /// Sealed too: lists take it once subscribers know of it.
    new: Arc<Body<K>>,
    done: bool,
}

impl<K: Kind> Succession<K> {
    /// What `make` makes takes over. `None` if a list has the old one, or nothing was made.
    fn new<E>(
        old: Arc<Body<K>>,
        make: impl FnOnce() -> Result<Option<Body<K>>, E>,
    ) -> Result<Option<Self>, E> {
        if !old.seal() {
            return Ok(None);
        }
        match make() {
            Ok(Some(new)) => {
                let new = Arc::new(new);
                // Nobody has it yet.
                new.seal();
                Ok(Some(Self { old, new, done: false }))
            }
            other => {
                old.unseal();
                other.map(|_| None)
            }
        }
    }
}

impl<K: Kind> Drop for Succession<K> {
    fn drop(&mut self) {
        if self.done {
            self.new.unseal();
        } else {
            self.old.views.lock().handed_over = false;
            self.old.unseal();
        }
    }
}

/// A resource on its way. If it is dropped before it has [arrived](Self::arrive), nothing has happened.
pub(super) enum Transfer {
    Buffer { buffer: Buffer, bodies: Succession<Buffers> },
    Image { image: Image, bodies: Succession<Images>, parts: Vec<Subresources>, views: Vec<MovedView> },
}

/// Whether a queue may copy all of an image: only graphics queues copy depth, stencil and several samples on every
/// device (VUID-vkCmdCopyImage-commandBuffer-10217, -10218, VUID-vkCmdCopyImage-commandBuffer-11778).
pub(super) fn can_copy(image: &Image, queue: vk::QueueFlags) -> bool {
    let facts = image.facts();
    let plain = facts.aspects == vk::ImageAspectFlags::COLOR && facts.samples == vk::SampleCountFlags::TYPE_1;
    plain || queue.contains(vk::QueueFlags::GRAPHICS)
}

impl Transfer {
    /// Makes what takes over a buffer. `None` if it cannot be moved right now.
    pub(super) fn of_buffer(buffer: Buffer, moved: Move<'static>) -> Result<Option<Self>, CompactError> {
        let old = buffer.current().with(Arc::clone);
        let bodies = Succession::new(old, || buffer.begin_move(moved)).map_err(CompactError::Create)?;
        Ok(bodies.map(|bodies| Self::Buffer { buffer, bodies }))
    }

    /// The same of an image, with its views.
    pub(super) fn of_image(
        core: &Core,
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
            // SAFETY: the old one has such a view, and this one is like it.
            let new = unsafe { image.view_of(&bodies.new, info) }.map_err(CompactError::View)?;
            // The new one has handed over nothing.
            views.extend(new.map(|new| MovedView { info: info.clone(), old: *old, new }));
        }
        // Who wants another one waits until there is a successor.
        known.handed_over = true;
        drop(known);
        Ok(Some(Self::Image { image, bodies, parts, views }))
    }

    /// Declares the copy.
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

    /// Copies.
    ///
    /// # Safety
    /// It was declared in this list, and the barriers were recorded. The queue [can](can_copy) copy it.
    pub(super) unsafe fn copy(&self, list: &CommandList) {
        match self {
            Self::Buffer { buffer, bodies: Succession { old, new, .. } } => {
                // SAFETY: both are of the buffer, which has so many bytes, and would not move without both usages.
                unsafe { list.copy_moved_buffer(old.handle, new.handle, buffer.size()) };
            }
            Self::Image { image, bodies: Succession { old, new, .. }, parts, .. } => {
                // SAFETY: both are of the image, which would not move without both usages; the queue is the caller's
                // promise.
                unsafe { list.copy_moved_image(&MovedImage { from: old, to: new, parts }, image.facts()) };
            }
        }
    }

    /// The copies are with the driver: what took over is current.
    pub(super) fn arrive(&mut self, core: &Core) {
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

    /// What subscribers are told once it has arrived.
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

/// What was read before it was written has been told of already.
fn mark(core: &Core, id: ResourceId) {
    if let Some(unwritten) = &core.info.unwritten {
        unwritten.mark(id);
    }
}
