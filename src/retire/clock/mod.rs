//! The clock: knows which recordings are done.

mod frames;
mod view;

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU16, Ordering};

pub use self::view::ClockView;
use self::view::State;
use super::lane::{Lane, Reading};
use super::ticket::{CLOCKS, MAX_LANES};
use super::{DiscardError, LaneId, SubmitError, Ticket, TooManyLanes};

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
/// let lane = clock.add_lane()?;
/// let ticket = clock.open(lane);
/// clock.submit(ticket, 1)?;
/// assert!(!clock.is_done(ticket));
/// clock.completed(lane, 1);
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
    pub const MAX_LANES: usize = MAX_LANES;

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
    /// [`TooManyLanes`] if the clock has [`MAX_LANES`](Self::MAX_LANES) timelines.
    pub fn add_lane(&self) -> Result<LaneId, TooManyLanes> {
        let mut state = self.state.lock();
        let index = u8::try_from(state.lanes.len()).map_err(|_| TooManyLanes)?;
        if usize::from(index) >= MAX_LANES {
            return Err(TooManyLanes);
        }
        state.lanes.push(Lane::default());
        Ok(LaneId::new(self.id, index))
    }

    /// Starts a recording. Resources that the recording uses may be freed once the ticket is done.
    ///
    /// End it with [`submit`](Self::submit) or [`discard`](Self::discard). A ticket that is never ended is never done;
    /// it blocks no other ticket and costs a few bytes.
    ///
    /// # Panics
    ///
    /// If the timeline belongs to another clock, or the clock has issued 2^48 tickets. Nothing was changed.
    pub fn open(&self, lane: LaneId) -> Ticket {
        let (ticket, _) = self.enter(lane, |lane, serial| lane.open(serial));
        ticket
    }

    /// Records that the recording was submitted. It is done when the counter of the timeline reaches `value`; for a
    /// timeline semaphore, this is the value that the submission signals.
    ///
    /// Calls may come late and in any order, even after the counter has reached `value`.
    ///
    /// # Errors
    ///
    /// [`SubmitError`] if the ticket was submitted or discarded before, belongs to another clock, or the clock was shut
    /// down.
    ///
    /// ```
    /// # let clock = sublet::retire::Clock::new();
    /// # let lane = clock.add_lane()?;
    /// let (slow, fast) = (clock.open(lane), clock.open(lane));
    /// clock.submit(fast, 1)?; // recorded later, submitted first
    /// clock.submit(slow, 2)?;
    /// clock.completed(lane, 1);
    /// assert!(clock.is_done(fast) && !clock.is_done(slow));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn submit(&self, ticket: Ticket, value: u64) -> Result<(), SubmitError> {
        self.enter_submission(ticket, Some(value)).map(|_| ())
    }

    /// Records a submission with `value`, or with the next value of the timeline. Returns that value.
    fn enter_submission(&self, ticket: Ticket, value: Option<u64>) -> Result<u64, SubmitError> {
        let mut state = self.lock_for(ticket).ok_or(SubmitError::OtherClock { ticket })?;
        if state.shut_down {
            return Err(SubmitError::ShutDown { ticket });
        }
        let index = ticket.lane().index();
        let lane = &mut state.lanes[index];
        let value = value.unwrap_or_else(|| lane.next_value());
        if !lane.submit(ticket.serial(), value) {
            return Err(SubmitError::NotOpen { ticket });
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
        let lane = ticket.lane().index();
        if !state.lanes[lane].discard(ticket.serial()) {
            return Err(DiscardError::NotOpen { ticket });
        }
        self.raise_floor(lane, &state);
        Ok(())
    }

    /// Reports a counter value: everything submitted with this value or a lower one is done.
    ///
    /// A counter never decreases. Threads may report their readings out of order, so a lower value than before is
    /// ignored, with a `tracing` event. The event is a warning if the value is lower than that of a frame whose fence
    /// was waited for according to [`begin_frame`](Self::begin_frame), or than the value that [`idle`](Self::idle)
    /// implied.
    ///
    /// # Panics
    ///
    /// If the timeline belongs to another clock.
    pub fn completed(&self, lane: LaneId, value: u64) {
        let index = self.index(lane);
        let reading = {
            let mut state = self.state.lock();
            let reading = state.lanes[index].completed(value);
            self.raise_floor(index, &state);
            reading
        };
        match reading {
            Reading::Ordinary => {}
            Reading::Regressed { before } => {
                tracing::debug!(name: "counter_regressed", target: "sublet::retire", lane = index, value, before, "a counter was read out of order");
            }
            Reading::BehindPromise { promised } => tracing::warn!(
                name: "counter_behind", target: "sublet::retire", lane = index, value, promised,
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
    /// # let lane = clock.add_lane()?;
    /// # let ticket = clock.open(lane);
    /// clock.submit(ticket, 1)?;
    /// let semaphores = [1_u64]; // stands for vkGetSemaphoreCounterValue
    /// clock.poll(|lane| semaphores.get(lane.index()).copied().ok_or("no such lane"))?;
    /// assert!(clock.is_done(ticket));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn poll<E>(&self, mut read: impl FnMut(LaneId) -> Result<u64, E>) -> Result<(), E> {
        let mut waiting = self.waiting();
        while waiting != 0 {
            let [index, ..] = waiting.trailing_zeros().to_le_bytes();
            waiting &= waiting - 1;
            let lane = LaneId::new(self.id, index);
            self.completed(lane, read(lane)?);
        }
        Ok(())
    }

    /// Reports `vkDeviceWaitIdle`: everything submitted so far is done, on all timelines. Open recordings stay open.
    #[doc(alias = "wait_idle")]
    pub fn idle(&self) {
        let mut state = self.state.lock();
        for lane in &mut state.lanes {
            lane.idle();
        }
        for lane in 0..state.lanes.len() {
            self.raise_floor(lane, &state);
        }
    }

    /// Ends the clock when nothing more will be submitted and the device is idle or lost. Every ticket is then done,
    /// including tickets that are opened later.
    pub fn shutdown(&self) {
        let mut state = self.state.lock();
        state.shut_down = true;
        for lane in &mut state.lanes {
            lane.shutdown();
        }
        for lane in 0..state.lanes.len() {
            self.raise_floor(lane, &state);
        }
    }

    /// Issues a ticket. Calls `enter` to record it, except after the shutdown.
    fn enter<R>(&self, lane: LaneId, enter: impl FnOnce(&mut Lane, u64) -> R) -> (Ticket, Option<R>) {
        let index = self.index(lane);
        let mut state = self.state.lock();
        let serial = state.next;
        let Some(ticket) = Ticket::new(serial, lane) else {
            drop(state);
            panic!("a clock gives out at most 2^48 tickets");
        };
        state.next = serial + 1;
        if state.shut_down {
            self.raise_floor(index, &state);
            return (ticket, None);
        }
        let result = enter(&mut state.lanes[index], serial);
        self.raise_floor(index, &state);
        (ticket, Some(result))
    }

    fn raise_floor(&self, lane: usize, state: &State) {
        // Release: pairs with the load in `is_done`.
        self.floors[lane].store(state.lanes[lane].floor(state.next), Ordering::Release);
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
