//! Read access to a clock.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

use crate::retire::ticket::MAX_TIMELINES;
use crate::retire::timeline::Timeline;
use crate::retire::{Ticket, TimelineId};

/// Reports which recordings the GPU has completed, and changes nothing: the part of a [`Clock`](super::Clock) that is
/// safe to hand out. A clock dereferences to its view; all `collect` functions take a view.
///
/// ```
/// use sublet::retire::{Clock, ClockView, Retire, Ticket};
///
/// /// A component of the program: it frees completed items, but cannot report completion.
/// fn tidy(clock: &ClockView, garbage: &mut Retire<Vec<u8>>, last: Ticket) -> bool {
///     garbage.collect(clock, drop).is_ok() && clock.is_done(last)
/// }
///
/// let clock = Clock::new();
/// let ticket = clock.open(clock.add_timeline()?);
/// let mut garbage = Retire::new();
/// garbage.push(ticket, vec![0; 64]);
/// assert!(!tidy(&clock, &mut garbage, ticket));
/// clock.discard(ticket)?;
/// assert!(tidy(&clock, &mut garbage, ticket));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```compile_fail,E0599
/// # fn tidy(clock: &sublet::retire::ClockView) {
/// clock.shutdown(); // no such method
/// # }
/// ```
pub struct ClockView {
    pub(super) id: u16,
    /// All tickets of a timeline with a serial below its floor are done. A floor only rises; it is written under the
    /// lock and read without it.
    pub(super) floors: [AtomicU64; MAX_TIMELINES],
    pub(super) state: Mutex<ClockState>,
}

pub(super) struct ClockState {
    /// The serial of the next ticket.
    pub(super) next: u64,
    pub(super) shut_down: bool,
    pub(super) timelines: Vec<Timeline>,
}

impl ClockState {
    fn is_done(&self, ticket: Ticket) -> bool {
        let timeline = self.timelines.get(ticket.timeline().index()).filter(|_| ticket.serial() < self.next);
        timeline.is_some_and(|timeline| self.shut_down || timeline.is_done(ticket.serial()))
    }

    /// Returns true if this clock may have issued the ticket. The caller has compared the clock ids. Ids repeat after
    /// 1,024 clocks, and nothing else distinguishes clocks with the same id.
    fn gave(&self, ticket: Ticket) -> bool {
        ticket.serial() < self.next && ticket.timeline().index() < self.timelines.len()
    }
}

/// A consistent snapshot of a clock: holds its lock.
pub(in crate::retire) struct LockedClock<'a> {
    id: u16,
    state: MutexGuard<'a, ClockState>,
}

impl LockedClock<'_> {
    pub(in crate::retire) fn is_done(&self, ticket: Ticket) -> bool {
        ticket.timeline().clock() == self.id && self.state.is_done(ticket)
    }

    /// Returns true if the ticket belongs to another clock.
    pub(in crate::retire) fn is_foreign(&self, ticket: Ticket) -> bool {
        ticket.timeline().clock() != self.id || !self.state.gave(ticket)
    }
}

impl ClockView {
    pub(super) const fn new(id: u16) -> Self {
        Self {
            id,
            floors: [const { AtomicU64::new(0) }; MAX_TIMELINES],
            state: parking_lot::const_mutex(ClockState { next: 1, shut_down: false, timelines: Vec::new() }),
        }
    }

    /// Returns true if the GPU has completed the recording: its value is completed, it was discarded, or the clock was
    /// shut down. Returns false for a ticket of another clock.
    #[must_use]
    #[inline]
    pub fn is_done(&self, ticket: Ticket) -> bool {
        let timeline = ticket.timeline();
        if timeline.clock() != self.id {
            return false;
        }
        // Acquire: pairs with the store of the floor. The thread that raised the floor saw the ticket complete, and the
        // caller may free the resources after that.
        let floor = self.floors[timeline.index()].load(Ordering::Acquire);
        if ticket.serial() < floor {
            return true;
        }
        // The floor is the first unfinished ticket, if there is one.
        ticket.serial() != floor && self.state.lock().is_done(ticket)
    }

    /// Returns true if the timeline has work in flight: submitted, and not known to be done.
    ///
    /// # Panics
    ///
    /// If the timeline belongs to another clock.
    #[must_use]
    pub fn is_pending(&self, timeline: TimelineId) -> bool {
        let index = self.index(timeline);
        self.state.lock().timelines[index].is_pending()
    }

    /// Returns the submission in flight on this timeline that completes first, with its value. Wait for it when memory
    /// is short. `None` if nothing is in flight.
    ///
    /// # Panics
    ///
    /// If the timeline belongs to another clock.
    ///
    /// # Complexity
    ///
    /// O(unfinished tickets of the timeline).
    #[must_use]
    pub fn oldest_pending(&self, timeline: TimelineId) -> Option<(Ticket, u64)> {
        let index = self.index(timeline);
        let (serial, value) = self.state.lock().timelines[index].oldest_pending()?;
        Some((Ticket::new(serial, timeline)?, value))
    }

    /// Takes the lock once for many queries.
    pub(in crate::retire) fn look(&self) -> LockedClock<'_> {
        LockedClock { id: self.id, state: self.state.lock() }
    }

    /// Returns one bit for each timeline that has work in flight.
    pub(super) fn waiting(&self) -> u64 {
        let state = self.state.lock();
        let timelines = state.timelines.iter().enumerate();
        timelines.fold(0, |bits, (at, timeline)| bits | u64::from(timeline.is_pending()) << at)
    }

    /// Returns the index of a timeline of this clock. Panics if the timeline belongs to another clock.
    #[inline]
    pub(super) fn index(&self, timeline: TimelineId) -> usize {
        assert!(timeline.clock() == self.id, "{timeline:?} is of another clock");
        timeline.index()
    }

    /// Locks the state if the ticket belongs to this clock.
    pub(super) fn lock_for(&self, ticket: Ticket) -> Option<MutexGuard<'_, ClockState>> {
        if ticket.timeline().clock() != self.id {
            return None;
        }
        let state = self.state.lock();
        state.gave(ticket).then_some(state)
    }

    /// Returns true if the ticket belongs to another clock. Only that clock can report it as done.
    #[must_use]
    pub fn is_foreign(&self, ticket: Ticket) -> bool {
        self.lock_for(ticket).is_none()
    }

    #[cfg(test)]
    pub(in crate::retire) fn validate(&self) {
        let state = self.state.lock();
        for (at, timeline) in state.timelines.iter().enumerate() {
            timeline.validate();
            let floor = self.floors[at].load(Ordering::Acquire);
            assert!(floor <= timeline.floor(state.next), "timeline {at} has a floor of {floor}");
        }
    }

    /// The capacity of the list of timeline `timeline`, and the number of its slots.
    #[cfg(test)]
    pub(in crate::retire) fn footprint(&self, timeline: TimelineId) -> (usize, usize) {
        self.state.lock().timelines[self.index(timeline)].footprint()
    }

    pub(super) fn debug(&self, f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct(name)
            .field("id", &self.id)
            .field("shut_down", &state.shut_down)
            .field("timelines", &state.timelines)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ClockView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.debug(f, "ClockView")
    }
}
