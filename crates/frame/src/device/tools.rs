//! What a list records with, and what waits for it.
#![forbid(unsafe_code)]

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use sublet::Allocator;
use sublet::descriptor::{Binder, BindingModel, DescriptorDevice};
use sublet::retire::{Clock, Ticket};
use sublet::upload::FlushError;

use super::{Chunks, Shared, UploadGuard};
use crate::frame::{BarrierObserver, Unwritten};
use crate::list::{BoundPoint, ReadState};
use crate::resource::{Body, Buffer, Buffers, Images};
use crate::track::{Queue, Recorder};

/// Something that a list uses, until the device is done with it.
#[expect(dead_code, reason = "what is kept is only dropped")]
pub(crate) enum Kept {
    Buffer(Arc<Body<Buffers>>),
    Image(Arc<Body<Images>>),
    Pass(Arc<Shared<vk::RenderPass>>, Arc<Shared<vk::Framebuffer>>),
    /// Pages of uploads.
    Uploads(UploadGuard),
    /// Ready once the list is done.
    Read(ReadGuard),
    Any(Box<dyn Any + Send>),
}

/// Says that bytes can be read, when it is dropped as done.
pub(crate) struct ReadGuard {
    pub(crate) state: Arc<ReadState>,
    pub(crate) buffer: Buffer,
}

impl Drop for ReadGuard {
    fn drop(&mut self) {
        self.state.settle(self.buffer.core().is_lost());
    }
}

/// A command pool, which one list uses at a time: as many threads record as there are lists.
#[derive(Default)]
pub(crate) struct Pool {
    pub(crate) handle: vk::CommandPool,
    /// What comes in front of the list, and the list.
    pub(crate) front: vk::CommandBuffer,
    pub(crate) main: vk::CommandBuffer,
    /// The family, as an index of the core's.
    pub(crate) family: usize,
    pub(crate) kept: Vec<Kept>,
}

/// What a list needs for as long as it is recorded. Given back when it is submitted, and taken by the next list for a
/// queue of the family: one family owns what the binder writes to.
#[derive(Default)]
pub(crate) struct Tools {
    /// As an index of the core's.
    pub(crate) family: usize,
    pub(crate) recorder: Recorder,
    pub(crate) uploads: Chunks,
    pub(crate) binder: Option<Binder<Arc<Allocator>>>,
    /// Of the last list in each lane that had them: the binder's pools wait for these.
    pub(crate) tickets: Vec<Ticket>,
    /// By slot of a resource: the list that has kept it.
    pub(crate) seen: Vec<u64>,
    pub(crate) epoch: u64,
    pub(crate) points: [BoundPoint; 3],
    /// What the regions of a copy write, and which of them; kept for its room.
    pub(crate) written: Vec<(Range<u64>, usize)>,
}

impl Tools {
    pub(crate) fn begin(&mut self, queue: Queue) {
        self.recorder.reset_for(queue);
        self.uploads.forget();
        self.epoch += 1;
        self.points.iter_mut().for_each(BoundPoint::forget);
        if let Some(binder) = &mut self.binder {
            binder.forget();
        }
    }

    /// What was bound stays until the ticket is done. The lists of one lane are done one after another.
    pub(crate) fn flush(&mut self, ticket: Ticket) -> Result<(), FlushError> {
        let Some(binder) = &mut self.binder else { return Ok(()) };
        binder.flush(ticket)?;
        match self.tickets.iter_mut().find(|known| known.lane() == ticket.lane()) {
            Some(known) => *known = ticket,
            None => self.tickets.push(ticket),
        }
        Ok(())
    }

    /// Whether the device needs nothing of the binder.
    pub(crate) fn is_done(&self, clock: &Clock) -> bool {
        self.tickets.iter().all(|ticket| clock.is_done(*ticket))
    }

    /// Whether this list has kept what is in the slot.
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

/// What is fixed of the tools of all lists.
pub(crate) struct ToolInfo {
    pub(crate) binder: sublet::descriptor::BinderCreateInfo<'static>,
    pub(crate) descriptors: Option<DescriptorDevice>,
    pub(crate) on_barriers: Option<BarrierObserver>,
    pub(crate) unwritten: Option<Unwritten>,
}

/// Whether descriptors are bytes in buffers, which want the addresses of what they describe.
pub(crate) fn binds_buffers(descriptors: Option<&DescriptorDevice>) -> bool {
    descriptors.is_some_and(|device| device.model() == BindingModel::Buffer)
}
