//! The clock: which recordings are done.
#![forbid(unsafe_code)]

mod frames;

use std::fmt;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::lane::{Lane, Reading};
use super::ticket::{CLOCKS, MAX_LANES};
use super::{DiscardError, LaneId, SubmitError, Ticket, TooManyLanes};

/// Distinguishes clocks.
static NEXT_ID: AtomicU16 = AtomicU16::new(0);

/// Knows which recordings the GPU is done with. One for a device, shared by all threads: every method takes `&self`.
///
/// See the [module](crate::retire) for what it is told and when.
///
/// # Complexity
///
/// O(1) amortised for each ticket, plus a binary search among the tickets of the lane that are not done. One short
/// lock; [`is_done`](Self::is_done) needs none for the oldest ticket of a lane that is not done, and for all before
/// that.
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
pub struct Clock {
    id: u16,
    /// All tickets of a lane with a serial below its floor are done. Rises only; written under the lock, read without.
    floors: [AtomicU64; MAX_LANES],
    state: Mutex<State>,
}

struct State {
    /// Of the next ticket.
    next: u64,
    shut_down: bool,
    lanes: Vec<Lane>,
}

impl State {
    fn is_done(&self, ticket: Ticket) -> bool {
        let lane = self.lanes.get(ticket.lane().index()).filter(|_| ticket.serial() < self.next);
        lane.is_some_and(|lane| self.shut_down || lane.is_done(ticket.serial()))
    }

    /// Whether it gave this ticket out, if its number is right. Clocks of the same number, 1,024 apart, are told apart
    /// no better than this.
    fn gave(&self, ticket: Ticket) -> bool {
        ticket.serial() < self.next && ticket.lane().index() < self.lanes.len()
    }
}

/// A look at a clock that does not change meanwhile.
pub(in crate::retire) struct Look<'a> {
    id: u16,
    state: MutexGuard<'a, State>,
}

impl Look<'_> {
    pub(in crate::retire) fn is_done(&self, ticket: Ticket) -> bool {
        ticket.lane().clock() == self.id && self.state.is_done(ticket)
    }

    /// Whether the ticket is of another clock.
    pub(in crate::retire) fn is_foreign(&self, ticket: Ticket) -> bool {
        ticket.lane().clock() != self.id || !self.state.gave(ticket)
    }
}

impl Clock {
    /// Lanes that a clock can have: six bits of a [`Ticket`], so that it is eight bytes, and one bit each of the word
    /// in which [`poll`](Self::poll) notes whom to ask. Devices have far fewer queues.
    pub const MAX_LANES: usize = MAX_LANES;

    /// A clock with no lanes.
    #[must_use]
    pub fn new() -> Self {
        Self::with_id(NEXT_ID.fetch_add(1, Ordering::Relaxed) % CLOCKS)
    }

    pub(in crate::retire) fn with_id(id: u16) -> Self {
        Self {
            id,
            floors: [const { AtomicU64::new(0) }; MAX_LANES],
            state: Mutex::new(State { next: 1, shut_down: false, lanes: Vec::new() }),
        }
    }

    /// Adds a lane: for each queue, or whatever else counts its submissions up on its own. Its counter is at 0.
    ///
    /// # Errors
    ///
    /// [`TooManyLanes`] if there are [`MAX_LANES`](Self::MAX_LANES).
    pub fn add_lane(&self) -> Result<LaneId, TooManyLanes> {
        let mut state = self.state.lock();
        let index = u8::try_from(state.lanes.len()).map_err(|_| TooManyLanes)?;
        if usize::from(index) >= MAX_LANES {
            return Err(TooManyLanes);
        }
        state.lanes.push(Lane::default());
        Ok(LaneId::new(self.id, index))
    }

    /// Recording starts. What the recording uses may be freed once the ticket is done.
    ///
    /// End it with [`submit`](Self::submit) or [`discard`](Self::discard). A ticket that is never ended is never done;
    /// it holds up nothing else, and costs a few bytes.
    ///
    /// # Panics
    ///
    /// If the lane is of another clock, or the clock has given out 2^48 tickets. Nothing was changed.
    pub fn open(&self, lane: LaneId) -> Ticket {
        let (ticket, _) = self.enter(lane, |lane, serial| lane.open(serial));
        ticket
    }

    /// The recording was submitted: it is done when the lane's counter has reached `value`, which for a timeline
    /// semaphore is the value that the submission signals.
    ///
    /// May be told late, and in any order: also when the counter is already there.
    ///
    /// # Errors
    ///
    /// [`SubmitError`] if the ticket was submitted or discarded before, or is of another clock, or the clock was shut
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

    /// Enters a submission with its value, or with the lane's next one, and returns that.
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

    /// The recording was thrown away: nothing of it will be executed, so it is done at once.
    ///
    /// # Errors
    ///
    /// [`DiscardError`] if the ticket was submitted or discarded before, or is of another clock.
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

    /// The lane's counter was read: everything submitted with this value or a lower one is done.
    ///
    /// A counter never goes backwards. A lower value than before is ignored, as threads that read at once may tell what
    /// they read in the wrong order: a `tracing` event says so, and warns if the value is lower than that of a frame
    /// whose fence was waited for according to [`begin_frame`](Self::begin_frame), or than what [`idle`](Self::idle)
    /// concluded.
    ///
    /// # Panics
    ///
    /// If the lane is of another clock.
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

    /// Reads the counters of all lanes that have something in flight, and of no others.
    ///
    /// `read` is called without a lock held; it may take its time, and may call this clock.
    ///
    /// # Errors
    ///
    /// The first that `read` returns. What was read before stays.
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

    /// A bit for each lane that has something in flight.
    fn waiting(&self) -> u64 {
        let state = self.state.lock();
        let lanes = state.lanes.iter().enumerate();
        lanes.fold(0, |bits, (at, lane)| bits | u64::from(lane.is_pending()) << at)
    }

    /// Whether the GPU is done with the recording: it was submitted and its value is completed, or it was discarded, or
    /// the clock was shut down. A ticket of another clock is not done.
    #[must_use]
    #[inline]
    pub fn is_done(&self, ticket: Ticket) -> bool {
        let lane = ticket.lane();
        if lane.clock() != self.id {
            return false;
        }
        // Acquire: whatever this ticket held is freed after what the other thread saw.
        let floor = self.floors[lane.index()].load(Ordering::Acquire);
        if ticket.serial() < floor {
            return true;
        }
        // The floor is the first ticket that is not done, where there is one.
        ticket.serial() != floor && self.state.lock().is_done(ticket)
    }

    /// After `vkDeviceWaitIdle`: everything that was submitted so far is done, on all lanes. Open recordings stay open.
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

    /// Nothing will be submitted any more, and the device is idle or lost: every ticket is done, also those that are
    /// opened later.
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

    /// Whether anything is in flight on the lane: submitted, and not known to be done.
    ///
    /// # Panics
    ///
    /// If the lane is of another clock.
    #[must_use]
    pub fn is_pending(&self, lane: LaneId) -> bool {
        let index = self.index(lane);
        self.state.lock().lanes[index].is_pending()
    }

    /// What is in flight on the lane and will be done first, with its value: what to wait for when memory is short.
    /// `None` if nothing is in flight.
    ///
    /// # Panics
    ///
    /// If the lane is of another clock.
    ///
    /// # Complexity
    ///
    /// O(tickets of the lane that are not done).
    #[must_use]
    pub fn oldest_pending(&self, lane: LaneId) -> Option<(Ticket, u64)> {
        let index = self.index(lane);
        let (serial, value) = self.state.lock().lanes[index].oldest_pending()?;
        Some((Ticket::new(serial, lane)?, value))
    }

    /// Many questions under one lock.
    pub(in crate::retire) fn look(&self) -> Look<'_> {
        Look { id: self.id, state: self.state.lock() }
    }

    /// Gives out a ticket and enters it with `enter`, which is left out after the shutdown.
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

    /// The index of a lane of this clock.
    #[inline]
    fn index(&self, lane: LaneId) -> usize {
        assert!(lane.clock() == self.id, "{lane:?} is of another clock");
        lane.index()
    }

    /// The state, if the ticket is of this clock.
    fn lock_for(&self, ticket: Ticket) -> Option<MutexGuard<'_, State>> {
        if ticket.lane().clock() != self.id {
            return None;
        }
        let state = self.state.lock();
        state.gave(ticket).then_some(state)
    }

    /// Whether the ticket is of another clock.
    pub(crate) fn is_foreign(&self, ticket: Ticket) -> bool {
        self.lock_for(ticket).is_none()
    }

    fn raise_floor(&self, lane: usize, state: &State) {
        // Release: see `is_done`.
        self.floors[lane].store(state.lanes[lane].floor(state.next), Ordering::Release);
    }

    #[cfg(test)]
    pub(in crate::retire) fn validate(&self) {
        let state = self.state.lock();
        for (at, lane) in state.lanes.iter().enumerate() {
            lane.validate();
            let floor = self.floors[at].load(Ordering::Acquire);
            assert!(floor <= lane.floor(state.next), "lane {at} has a floor of {floor}");
        }
    }

    /// Entries that lane `at` has room for, and slots that it knows.
    #[cfg(test)]
    pub(in crate::retire) fn footprint(&self, lane: LaneId) -> (usize, usize) {
        self.state.lock().lanes[self.index(lane)].footprint()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("Clock")
            .field("id", &self.id)
            .field("shut_down", &state.shut_down)
            .field("lanes", &state.lanes)
            .finish_non_exhaustive()
    }
}
