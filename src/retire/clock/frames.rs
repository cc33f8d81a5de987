//! Frames: one fence for each slot reports completion.

use super::Clock;
use crate::retire::{ClockSubmitError, Ticket, TimelineId};

impl Clock {
    /// Starts a frame, for programs with one fence for each frame in flight. The caller has waited for the fence of the
    /// slot. A slot is, for example, the frame index modulo the number of frames in flight. The first frame of a slot
    /// needs no wait.
    ///
    /// The last submission of the slot is now done, and so are all earlier submissions on the timeline, because a fence
    /// covers all earlier commands in submission order (`vkQueueSubmit`). A slot that is never used again therefore
    /// blocks nothing.
    ///
    /// End the frame with [`end_frame`](Self::end_frame), with [`submit`](Self::submit) if the caller chooses the
    /// value, or with [`discard`](Self::discard) to drop the frame. If the last frame of the slot was not ended, its
    /// ticket remains open until one of these calls, so its resources are not freed. The clock assumes that the fence
    /// belongs to the later frame, and emits a `tracing` warning.
    ///
    /// A clock cannot check that the caller waited for a fence. If the timeline also has a timeline semaphore,
    /// [`completed`](Self::completed) warns about a missing wait.
    ///
    /// # Panics
    ///
    /// If the timeline belongs to another clock, or the clock has issued 2^48 tickets. Nothing was changed.
    ///
    /// ```
    /// # let clock = sublet::retire::Clock::new();
    /// # let timeline = clock.add_timeline()?;
    /// // Three frames in flight ...
    /// let frames = [0, 1, 2].map(|slot| clock.begin_frame(timeline, slot));
    /// for frame in frames {
    ///     clock.end_frame(frame)?;
    /// }
    /// // ... and two from now on: slot 2 is not used again.
    /// let fourth = clock.begin_frame(timeline, 0);
    /// clock.end_frame(fourth)?;
    /// assert!(clock.is_done(frames[0]) && !clock.is_done(frames[1]));
    /// clock.end_frame(clock.begin_frame(timeline, 1))?;
    /// clock.end_frame(clock.begin_frame(timeline, 0))?;
    /// assert!(frames.iter().all(|&frame| clock.is_done(frame)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "next_frame_context")]
    pub fn begin_frame(&self, timeline: TimelineId, slot: u32) -> Ticket {
        let (ticket, unended) = self.enter(timeline, |timeline, serial| timeline.begin_frame(slot, serial));
        if let Some(Some(serial)) = unended {
            tracing::warn!(
                name: "slot_begun_twice", target: "sublet::retire", timeline = timeline.index(), slot, serial,
                "the slot's last frame was neither ended nor discarded: what it uses is kept until it is"
            );
        }
        ticket
    }

    /// Ends a frame by its submission. Returns the next value of the timeline: one more than the highest value that was
    /// submitted or completed. A timeline semaphore may signal it.
    ///
    /// The clock assumes that calls on one timeline happen in submission order. Threads that submit to one queue must
    /// hold the queue's lock (Vulkan requires one) across both the submission and this call. Otherwise a fence would
    /// appear to cover work that is submitted after it.
    ///
    /// A program that needs the value for `vkQueueSubmit` calls this function just before. No thread may call
    /// [`idle`](Self::idle) in between. If the submission then fails, the frame is done when a later frame of the
    /// timeline is, or at [`shutdown`](Self::shutdown).
    ///
    /// This function also ends a ticket of [`open`](Self::open), for work that is submitted between two frames without
    /// a fence.
    ///
    /// # Errors
    ///
    /// Same as [`submit`](Self::submit): [`ClockSubmitError`] if the ticket was submitted or discarded before, belongs
    /// to another clock, or the clock was shut down. Nothing was changed, and no value was taken.
    pub fn end_frame(&self, ticket: Ticket) -> Result<u64, ClockSubmitError> {
        self.enter_submission(ticket, None)
    }
}
