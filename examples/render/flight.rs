//! Submissions in flight, and what belongs to each: its command buffer, its part of the staging ring, what it was the
//! last to use.

use ash::vk;
use sublet::retire::{Clock, LaneId, Ticket};
use sublet::upload::{UploadRing, UploadRingCreateInfo};
use sublet::{Allocator, RetiredResources};

use crate::support::{Context, Frames, Result};

pub(crate) const IN_FLIGHT: u32 = 3;
/// The largest texture for each in flight, and one more that may be lost at the end because nothing is ever split.
const RING: u64 = 4 * 1_400_000;

pub(crate) struct Flight<'a> {
    allocator: &'a Allocator,
    pub(crate) clock: Clock,
    lane: LaneId,
    frames: Frames<'a>,
    pub(crate) ring: UploadRing<&'a Allocator>,
    pub(crate) retired: RetiredResources,
}

impl<'a> Flight<'a> {
    pub(crate) fn new(context: &'a Context, allocator: &'a Allocator) -> Result<Self> {
        let info = UploadRingCreateInfo {
            usage: vk::BufferUsageFlags::TRANSFER_SRC,
            name: Some("staging ring"),
            ..UploadRingCreateInfo::new(RING)
        };
        // SAFETY: the usage needs nothing enabled. A ticket is done when its fence was waited for, see below.
        let ring = unsafe { UploadRing::new(allocator, &info) }?;
        let clock = Clock::new();
        let lane = clock.add_lane()?;
        let frames = Frames::new(context, IN_FLIGHT)?;
        Ok(Self { allocator, clock, lane, frames, ring, retired: RetiredResources::new() })
    }

    /// Waits for a slot, and takes back what the device is done with by then.
    pub(crate) fn begin(&mut self) -> Result<(usize, Ticket)> {
        // What the slot did before is done when its fence was waited for, and so is its ticket.
        let slot = self.frames.wait()?;
        let ticket = self.clock.begin_frame(self.lane, u32::try_from(slot)?);
        self.ring.collect(&self.clock)?;
        self.retired.collect(self.allocator, &self.clock)?;
        Ok((slot, ticket))
    }

    /// Submits what [`Self::begin`] has begun.
    pub(crate) fn submit(
        &mut self,
        ticket: Ticket,
        record: impl FnOnce(&ash::Device, vk::CommandBuffer),
    ) -> Result<()> {
        self.ring.flush(ticket)?;
        self.frames.submit(record)?;
        self.clock.end_frame(ticket)?;
        Ok(())
    }

    /// Waits for everything.
    pub(crate) fn wait_for_all(&mut self) -> Result<()> {
        self.frames.wait_for_all()?;
        self.clock.idle();
        self.retired.collect(self.allocator, &self.clock)?;
        Ok(())
    }

    /// # Safety
    /// The device is idle.
    pub(crate) unsafe fn destroy(self) {
        // SAFETY: the caller's own promise.
        unsafe { self.ring.destroy() };
    }
}
