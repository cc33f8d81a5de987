//! The clock tracks which recordings are done.

mod frames;
mod view;

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU16, Ordering};

use self::view::ClockState;
pub use self::view::ClockView;
use super::ticket::{CLOCKS, MAX_TIMELINES};
use super::timeline::{Reading, Timeline};
use super::{ClockSubmitError, DiscardError, Ticket, TimelineId, TooManyTimelines};

/// The id of the next clock.
static NEXT_ID: AtomicU16 = AtomicU16::new(0);

/// Tracks which recordings the GPU has completed. A device needs one; all threads share it (every method takes
/// `&self`).
///
/// The [module](crate::retire) documentation lists the calls that a program makes.
///
/// # Complexity
///
/// O(1) amortised for each ticket, plus a binary search among the unfinished tickets of the timeline. Each call takes
/// one short lock. [`is_done`](ClockView::is_done) takes none for the oldest unfinished ticket of a timeline and for
/// all tickets before it.
///
/// ```
/// use sublet::retire::Clock;
///
/// let clock = Clock::new();
/// let timeline = clock.add_timeline()?;
/// let ticket = clock.open(timeline);
/// clock.submit(ticket, 1)?;
/// assert!(!clock.is_done(ticket));
/// clock.completed(timeline, 1);
/// assert!(clock.is_done(ticket));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The owner of a clock decides what is freed. Code that only reads completion gets the [`ClockView`] that a clock
/// dereferences to; all `collect` functions take a view.
pub struct Clock(ClockView);

impl Clock {
    /// The maximum number of timelines. A [`Ticket`] has six bits for it, which keeps it at eight bytes, and
    /// [`poll`](Self::poll) uses one bit of a word for each. Devices have far fewer queues.
    pub const MAX_TIMELINES: usize = MAX_TIMELINES;

    /// Creates a clock without timelines.
    #[must_use]
    pub fn new() -> Self {
        Self::with_id(NEXT_ID.fetch_add(1, Ordering::Relaxed) % CLOCKS)
    }

    pub(in crate::retire) fn with_id(id: u16) -> Self {
        Self(ClockView::new(id))
    }

    /// Adds a timeline for a queue, or for anything else with its own counter of submissions. The counter starts at 0.
    ///
    /// # Errors
    ///
    /// [`TooManyTimelines`] if the clock has [`MAX_TIMELINES`](Self::MAX_TIMELINES) timelines.
    pub fn add_timeline(&self) -> Result<TimelineId, TooManyTimelines> {
        let mut state = self.state.lock();
        let index = u8::try_from(state.timelines.len()).map_err(|_| TooManyTimelines)?;
        if usize::from(index) >= MAX_TIMELINES {
            return Err(TooManyTimelines);
        }
        state.timelines.push(Timeline::default());
        Ok(TimelineId::new(self.id, index))
    }

    /// Starts a recording. Resources that the recording uses may be freed once the ticket is done.
    ///
    /// End it with [`submit`](Self::submit) or [`discard`](Self::discard). A ticket that is never ended is never done;
    /// it blocks no other ticket and costs a few bytes.
    ///
    /// # Panics
    ///
    /// If the timeline belongs to another clock, or the clock has issued 2^48 tickets. Nothing was changed.
    pub fn open(&self, timeline: TimelineId) -> Ticket {
        let (ticket, _) = self.enter(timeline, |timeline, serial| timeline.open(serial));
        ticket
    }

    /// Records that the recording was submitted. It is done when the counter of the timeline reaches `value`; for a
    /// timeline semaphore, this is the value that the submission signals.
    ///
    /// Calls may come late and in any order, even after the counter has reached `value`.
    ///
    /// # Errors
    ///
    /// [`ClockSubmitError`] if the ticket was submitted or discarded before, belongs to another clock, or the clock was
    /// shut down.
    ///
    /// ```
    /// # let clock = sublet::retire::Clock::new();
    /// # let timeline = clock.add_timeline()?;
    /// let (slow, fast) = (clock.open(timeline), clock.open(timeline));
    /// clock.submit(fast, 1)?; // recorded later, submitted first
    /// clock.submit(slow, 2)?;
    /// clock.completed(timeline, 1);
    /// assert!(clock.is_done(fast) && !clock.is_done(slow));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn submit(&self, ticket: Ticket, value: u64) -> Result<(), ClockSubmitError> {
        self.enter_submission(ticket, Some(value)).map(|_| ())
    }

    /// Records a submission with `value`, or with the next value of the timeline. Returns that value.
    fn enter_submission(&self, ticket: Ticket, value: Option<u64>) -> Result<u64, ClockSubmitError> {
        let mut state = self.lock_for(ticket).ok_or(ClockSubmitError::OtherClock { ticket })?;
        if state.shut_down {
            return Err(ClockSubmitError::ShutDown { ticket });
        }
        let index = ticket.timeline().index();
        let timeline = &mut state.timelines[index];
        let value = value.unwrap_or_else(|| timeline.next_value());
        if !timeline.submit(ticket.serial(), value) {
            return Err(ClockSubmitError::NotOpen { ticket });
        }
        self.raise_floor(index, &state);
        Ok(value)
    }

    /// Discards a recording: it will never execute, so it is done at once.
    ///
    /// # Errors
    ///
    /// [`DiscardError`] if the ticket was submitted or discarded before, or belongs to another clock.
    pub fn discard(&self, ticket: Ticket) -> Result<(), DiscardError> {
        let mut state = self.lock_for(ticket).ok_or(DiscardError::OtherClock { ticket })?;
        if state.shut_down {
            return Ok(());
        }
        let timeline = ticket.timeline().index();
        if !state.timelines[timeline].discard(ticket.serial()) {
            return Err(DiscardError::NotOpen { ticket });
        }
        self.raise_floor(timeline, &state);
        Ok(())
    }

    /// Reports a counter value: everything submitted with this value or a lower one is done.
    ///
    /// A counter never decreases. Threads may report their readings out of order, so a lower value than before is
    /// ignored, with a `tracing` event. The event is a warning if [`begin_frame`](Self::begin_frame) or
    /// [`idle`](Self::idle) has already implied a higher value.
    ///
    /// # Panics
    ///
    /// If the timeline belongs to another clock.
    pub fn completed(&self, timeline: TimelineId, value: u64) {
        let index = self.index(timeline);
        let reading = {
            let mut state = self.state.lock();
            let reading = state.timelines[index].completed(value);
            self.raise_floor(index, &state);
            reading
        };
        match reading {
            Reading::Ordinary => {}
            Reading::Regressed { before } => {
                tracing::debug!(name: "counter_regressed", target: "sublet::retire", timeline = index, value, before, "a counter was read out of order");
            }
            Reading::BehindPromise { promised } => tracing::warn!(
                name: "counter_behind", target: "sublet::retire", timeline = index, value, promised,
                "the counter is behind what a fence or an idle device was said to stand for: was it waited for?"
            ),
        }
    }

    /// Reads the counters of all timelines that have work in flight, and of no others.
    ///
    /// No lock is held while `read` runs; it may block, and may call this clock.
    ///
    /// # Errors
    ///
    /// The first error that `read` returns. Earlier readings remain in effect.
    ///
    /// ```
    /// # let clock = sublet::retire::Clock::new();
    /// # let timeline = clock.add_timeline()?;
    /// # let ticket = clock.open(timeline);
    /// clock.submit(ticket, 1)?;
    /// let semaphores = [1_u64]; // stands for vkGetSemaphoreCounterValue
    /// clock.poll(|timeline| semaphores.get(timeline.index()).copied().ok_or("no such timeline"))?;
    /// assert!(clock.is_done(ticket));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn poll<E>(&self, mut read: impl FnMut(TimelineId) -> Result<u64, E>) -> Result<(), E> {
        let mut waiting = self.waiting();
        while waiting != 0 {
            let [index, ..] = waiting.trailing_zeros().to_le_bytes();
            waiting &= waiting - 1;
            let timeline = TimelineId::new(self.id, index);
            self.completed(timeline, read(timeline)?);
        }
        Ok(())
    }

    /// Reports that `vkDeviceWaitIdle` has returned: everything submitted so far is done, on all timelines. Open
    /// recordings stay open.
    #[doc(alias = "wait_idle")]
    pub fn idle(&self) {
        let mut state = self.state.lock();
        for timeline in &mut state.timelines {
            timeline.idle();
        }
        for timeline in 0..state.timelines.len() {
            self.raise_floor(timeline, &state);
        }
    }

    /// Ends the clock when nothing more will be submitted and the device is idle or lost. Every ticket is then done,
    /// including tickets that are opened later.
    pub fn shutdown(&self) {
        let mut state = self.state.lock();
        state.shut_down = true;
        for timeline in &mut state.timelines {
            timeline.shutdown();
        }
        for timeline in 0..state.timelines.len() {
            self.raise_floor(timeline, &state);
        }
    }

    /// Issues a ticket, and calls `enter` to add it to its timeline. After the shutdown, does not call `enter`.
    fn enter<R>(
        &self,
        timeline: TimelineId,
        enter: impl FnOnce(&mut Timeline, u64) -> R,
    ) -> (Ticket, Option<R>) {
        let index = self.index(timeline);
        let mut state = self.state.lock();
        let serial = state.next;
        let Some(ticket) = Ticket::new(serial, timeline) else {
            drop(state);
            panic!("a clock gives out at most 2^48 tickets");
        };
        state.next = serial + 1;
        if state.shut_down {
            self.raise_floor(index, &state);
            return (ticket, None);
        }
        let result = enter(&mut state.timelines[index], serial);
        self.raise_floor(index, &state);
        (ticket, Some(result))
    }

    fn raise_floor(&self, timeline: usize, state: &ClockState) {
        // Release: pairs with the load in `is_done`.
        self.floors[timeline].store(state.timelines[timeline].floor(state.next), Ordering::Release);
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for Clock {
    type Target = ClockView;

    #[inline]
    fn deref(&self) -> &ClockView {
        &self.0
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.debug(f, "Clock")
    }
}
