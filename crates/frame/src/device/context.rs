//! The state that a list records with, and the objects that it keeps.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use sublet::Allocator;
use sublet::retire::{Clock, Ticket};
use sublet::upload::FlushError;
use sublet_descriptors::{Binder, BindingModel, DescriptorDevice};

use super::{Shared, UploadChunks, UploadGuard};
use crate::frame::{BarrierObserver, Unwritten};
use crate::list::{BoundPoint, ReadState};
use crate::resource::{Body, Buffer, BufferClass, ImageClass};
use crate::track::{Queue, Recorder};

/// An object that a list uses, kept until the device is done with the list.
#[expect(dead_code, reason = "the values are only dropped")]
pub(crate) enum KeptObject {
    Buffer(Arc<Body<BufferClass>>),
    Image(Arc<Body<ImageClass>>),
    Pass(Arc<Shared<vk::RenderPass>>, Arc<Shared<vk::Framebuffer>>),
    /// Pages of uploads.
    Uploads(UploadGuard),
    /// Completes a read-back.
    Read(ReadGuard),
    Any(Box<dyn Any + Send>),
}

/// Completes a read-back when the list that keeps it is done.
pub(crate) struct ReadGuard {
    pub(crate) state: Arc<ReadState>,
    pub(crate) buffer: Buffer,
}

impl Drop for ReadGuard {
    fn drop(&mut self) {
        self.state.complete(self.buffer.core().is_lost());
    }
}

/// A command pool. One list uses it at a time, so each list can be recorded by another thread.
#[derive(Default)]
pub(crate) struct CommandPool {
    pub(crate) handle: vk::CommandPool,
    /// The command buffers for the preamble of the list, and for the list.
    pub(crate) preamble: vk::CommandBuffer,
    pub(crate) main: vk::CommandBuffer,
    /// Index in `DeviceCore::families`.
    pub(crate) family: usize,
    pub(crate) kept: Vec<KeptObject>,
}

/// The state that a list needs while it is recorded. Submission returns it, and the next list for a queue of the same
/// family reuses it: one family owns the memory that the binder writes to.
#[derive(Default)]
pub(crate) struct ListContext {
    /// Index in `DeviceCore::families`.
    pub(crate) family: usize,
    pub(crate) recorder: Recorder,
    pub(crate) uploads: UploadChunks,
    pub(crate) binder: Option<Binder<Arc<Allocator>>>,
    /// The ticket of the last list on each timeline. The pools of the binder wait for these tickets.
    pub(crate) tickets: Vec<Ticket>,
    /// By slot of a resource: the epoch of the list that keeps it.
    pub(crate) seen: Vec<u64>,
    pub(crate) epoch: u64,
    pub(crate) points: [BoundPoint; 3],
    /// Ranges written by the regions of a copy, with their indices. Kept to avoid allocations.
    pub(crate) written: Vec<(Range<u64>, usize)>,
}

impl ListContext {
    pub(crate) fn begin(&mut self, queue: Queue) {
        self.recorder.reset_for(queue);
        self.uploads.forget();
        self.epoch += 1;
        self.points.iter_mut().for_each(BoundPoint::forget);
        if let Some(binder) = &mut self.binder {
            binder.forget();
        }
    }

    /// Keeps the bindings until the ticket is done. The lists of one timeline finish in order.
    pub(crate) fn flush(&mut self, ticket: Ticket) -> Result<(), FlushError> {
        let Some(binder) = &mut self.binder else { return Ok(()) };
        binder.flush(ticket)?;
        match self.tickets.iter_mut().find(|known| known.timeline() == ticket.timeline()) {
            Some(known) => *known = ticket,
            None => self.tickets.push(ticket),
        }
        Ok(())
    }

    /// Returns true if the device no longer needs the bindings.
    pub(crate) fn is_done(&self, clock: &Clock) -> bool {
        self.tickets.iter().all(|ticket| clock.is_done(*ticket))
    }

    /// Returns true if this list keeps the resource in the slot.
    pub(crate) fn has_seen(&self, slot: u32) -> bool {
        let at = usize::try_from(slot).unwrap_or(usize::MAX);
        self.seen.get(at) == Some(&self.epoch)
    }

    pub(crate) fn see(&mut self, slot: u32) {
        let at = usize::try_from(slot).unwrap_or(usize::MAX);
        if self.seen.len() <= at {
            self.seen.resize(at + 1, 0);
        }
        self.seen[at] = self.epoch;
    }
}

/// Settings shared by all lists.
pub(crate) struct ContextInfo {
    pub(crate) binder: sublet_descriptors::BinderCreateInfo<'static>,
    pub(crate) descriptors: Option<DescriptorDevice>,
    pub(crate) on_barriers: Option<BarrierObserver>,
    pub(crate) unwritten: Option<Unwritten>,
}

/// Returns true if descriptors are bytes in buffers, which need the addresses of resources.
pub(crate) fn binds_buffers(descriptors: Option<&DescriptorDevice>) -> bool {
    descriptors.is_some_and(|device| device.model() == BindingModel::Buffer)
}
