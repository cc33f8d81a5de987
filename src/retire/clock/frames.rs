//! Frames: a fence for each slot says what is done.
#![forbid(unsafe_code)]

use super::Clock;
use crate::retire::{LaneId, SubmitError, Ticket};

impl Clock {
    /// A frame starts, for programs with a fence for each frame in flight. The caller has waited for the fence of the
    /// slot (its frame index modulo the number of frames in flight, say); the first frame of a slot has nothing to wait
    /// for.
    ///
    /// What was submitted as the slot's last frame is done, and so is all that was submitted on the lane before that: a
    /// fence covers everything earlier in submission order (`vkQueueSubmit`). So a slot that is never used again blocks
    /// nothing.
    ///
    /// End the frame with [`end_frame`](Self::end_frame); with [`submit`](Self::submit) if the value is the caller's;
    /// or with [`discard`](Self::discard) if the frame is dropped. If the slot's last frame was not ended, nothing of
    /// it is freed: its ticket stays open until one of the three is called for it, and the slot's fence is taken for
    /// the later frame's. A `tracing` event warns of that.
    ///
    /// A clock cannot see whether a fence was waited for. Where the lane has a timeline semaphore as well,
    /// [`completed`](Self::completed) warns if it was not.
    ///
    /// # Panics
    ///
    /// If the lane is of another clock, or the clock has given out 2^48 tickets. Nothing was changed.
    ///
    /// ```
    /// # let clock = sublet::retire::Clock::new();
    /// # let lane = clock.add_lane()?;
    /// // Three frames in flight ...
    /// let frames = [0, 1, 2].map(|slot| clock.begin_frame(lane, slot));
    /// for frame in frames {
    ///     clock.end_frame(frame)?;
    /// }
    /// // ... and two from now on: slot 2 never comes again.
    /// let fourth = clock.begin_frame(lane, 0);
    /// clock.end_frame(fourth)?;
    /// assert!(clock.is_done(frames[0]) && !clock.is_done(frames[1]));
    /// clock.end_frame(clock.begin_frame(lane, 1))?;
    /// clock.end_frame(clock.begin_frame(lane, 0))?;
    /// assert!(frames.iter().all(|&frame| clock.is_done(frame)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "next_frame_context")]
    pub fn begin_frame(&self, lane: LaneId, slot: u32) -> Ticket {
        let (ticket, unended) = self.enter(lane, |lane, serial| lane.begin_frame(slot, serial));
        if let Some(Some(serial)) = unended {
            tracing::warn!(
                name: "slot_begun_twice", target: "sublet::retire", lane = lane.index(), slot, serial,
                "the slot's last frame was neither ended nor discarded: what it uses is kept until it is"
            );
        }
        ticket
    }

    /// The frame is submitted. Takes the lane's next value and returns it: one more than the highest that was submitted
    /// or completed. A timeline semaphore may signal it.
    ///
    /// The order of these calls on a lane is taken for the order of the submissions: threads that submit to one queue
    /// hold the lock that Vulkan wants for the queue across both. Else a fence would be taken to cover what is
    /// submitted only after it.
    ///
    /// A program that needs the value for `vkQueueSubmit` itself calls this just before. Nobody may call
    /// [`idle`](Self::idle) in between. If the submission then fails, the frame is done when a later frame of the lane
    /// is, or with [`shutdown`](Self::shutdown).
    ///
    /// A ticket of [`open`](Self::open) may be ended so as well: work that is submitted between two frames, with no
    /// fence of its own.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Self::submit): [`SubmitError`] if the ticket was submitted or discarded before, or is of
    /// another clock, or the clock was shut down. Nothing was changed, and no value taken.
    pub fn end_frame(&self, ticket: Ticket) -> Result<u64, SubmitError> {
        self.enter_submission(ticket, None)
    }
}
