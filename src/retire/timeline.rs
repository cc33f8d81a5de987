//! The state of one timeline: its counter, and its unfinished tickets.
//!
//! Invariants:
//! - L1: `unfinished` is sorted by serial; a ticket that is not in it is done.
//! - L2: the first of `unfinished` is not done. Done tickets after it are removed when the list is full.
//! - L3: some ticket is submitted and not done if and only if `submitted > completed`.
//! - L4: `frames` is sorted by slot, with one entry for each slot.
//! - L5: `promised <= completed`.

use std::collections::VecDeque;

/// The minimum growth of a list. A full list below this capacity always grows.
const FEW: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TicketState {
    Open,
    /// Open, and started as the frame of a slot.
    OpenFrame(u32),
    /// Done when the counter has reached the value. A discarded ticket has value 0, which every counter has reached.
    Submitted(u64),
}

impl TicketState {
    fn is_open(self) -> bool {
        !matches!(self, Self::Submitted(_))
    }
}

#[derive(Debug)]
struct TimelineEntry {
    serial: u64,
    state: TicketState,
}

/// A frame slot. The entry stays while the last frame of the slot is open or in flight.
#[derive(Debug)]
struct Frame {
    slot: u32,
    /// The serial of the last frame that began.
    serial: u64,
    /// The highest submitted value of all frames of this slot; 0 if none was submitted.
    value: u64,
}

/// The result of reporting a counter value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reading {
    /// The value is plausible.
    Ordinary,
    /// Lower than an earlier reading.
    Regressed { before: u64 },
    /// Lower than a value that a fence or an idle device implied.
    BehindPromise { promised: u64 },
}

#[derive(Debug, Default)]
pub(super) struct Timeline {
    completed: u64,
    /// The part of `completed` that a fence or an idle device implied.
    promised: u64,
    /// The highest submitted value.
    submitted: u64,
    unfinished: VecDeque<TimelineEntry>,
    frames: Vec<Frame>,
}

impl Timeline {
    fn finished(&self, state: TicketState) -> bool {
        matches!(state, TicketState::Submitted(value) if value <= self.completed)
    }

    fn position(&self, serial: u64) -> Option<usize> {
        self.unfinished.binary_search_by_key(&serial, |entry| entry.serial).ok()
    }

    fn is_open(&self, serial: u64) -> bool {
        self.position(serial).is_some_and(|at| self.unfinished[at].state.is_open())
    }

    /// Maintains L2. Each entry is removed once: amortised O(1) for each ticket.
    fn trim(&mut self) {
        while self.unfinished.front().is_some_and(|entry| self.finished(entry.state)) {
            self.unfinished.pop_front();
        }
    }

    /// Makes space for one more entry. Removes done entries first, and grows the list only if that freed less than half
    /// of it. The list is therefore never longer than four times the peak number of unfinished tickets, and the cost is
    /// amortised O(1) for each ticket.
    fn make_room(&mut self) {
        if self.unfinished.len() < self.unfinished.capacity() {
            return;
        }
        let completed = self.completed;
        self.unfinished
            .retain(|entry| !matches!(entry.state, TicketState::Submitted(value) if value <= completed));
        if self.unfinished.len() * 2 > self.unfinished.capacity() || self.unfinished.capacity() < FEW {
            self.unfinished.reserve(self.unfinished.len().max(FEW));
        }
    }

    /// Adds an open recording. Serials ascend.
    pub(super) fn open(&mut self, serial: u64) {
        self.enter(serial, TicketState::Open);
    }

    fn enter(&mut self, serial: u64, state: TicketState) {
        debug_assert!(self.unfinished.back().is_none_or(|last| last.serial < serial), "L1");
        self.make_room();
        self.unfinished.push_back(TimelineEntry { serial, state });
    }

    /// Returns the value for a submission without one. It must be above all completed values; otherwise the submission
    /// would count as done at once.
    pub(super) fn next_value(&self) -> u64 {
        self.submitted.max(self.completed).saturating_add(1)
    }

    /// Sets the value of a recording. Returns false if `serial` is not open.
    pub(super) fn submit(&mut self, serial: u64, value: u64) -> bool {
        let Some(at) = self.position(serial).filter(|&at| self.unfinished[at].state.is_open()) else {
            return false;
        };
        let state = std::mem::replace(&mut self.unfinished[at].state, TicketState::Submitted(value));
        self.submitted = self.submitted.max(value);
        if let TicketState::OpenFrame(slot) = state {
            // If a later frame uses the slot now, the fence belongs to that frame and does not cover this one. The
            // entry of a slot stays while its last frame is open.
            let frame = self.frames.iter_mut().find(|frame| frame.slot == slot && frame.serial == serial);
            if let Some(frame) = frame {
                frame.value = frame.value.max(value);
            }
        }
        self.trim();
        true
    }

    /// Marks a recording as done. Returns false if `serial` is not open.
    pub(super) fn discard(&mut self, serial: u64) -> bool {
        let Some(at) = self.position(serial).filter(|&at| self.unfinished[at].state.is_open()) else {
            return false;
        };
        self.unfinished[at].state = TicketState::Submitted(0);
        self.trim();
        true
    }

    /// The index of the entry for `slot`. Inserts one with `serial` as its last frame if there is none.
    fn frame(&mut self, slot: u32, serial: u64) -> usize {
        if let Ok(at) = self.frames.binary_search_by_key(&slot, |frame| frame.slot) {
            return at;
        }
        // A slot whose frames are all done adds nothing to `completed`. Removing it bounds the list, even if a program
        // passes frame numbers instead of slots.
        let (completed, unfinished) = (self.completed, &self.unfinished);
        self.frames.retain(|frame| {
            frame.value > completed
                || unfinished
                    .binary_search_by_key(&frame.serial, |entry| entry.serial)
                    .is_ok_and(|at| unfinished[at].state.is_open())
        });
        let at = self.frames.partition_point(|frame| frame.slot < slot);
        self.frames.insert(at, Frame { slot, serial, value: 0 });
        at
    }

    /// Starts a frame after the caller waited for the fence of its slot. Returns the serial of the previous frame of
    /// the slot if that was not ended.
    pub(super) fn begin_frame(&mut self, slot: u32, serial: u64) -> Option<u64> {
        let at = self.frame(slot, serial);
        let Frame { serial: last, value, .. } = self.frames[at];
        let unended = (last != serial && self.is_open(last)).then_some(last);
        self.frames[at].serial = serial;
        self.promise(value);
        self.enter(serial, TicketState::OpenFrame(slot));
        unended
    }

    /// Raises the counter to a value that is known without reading it.
    fn promise(&mut self, value: u64) {
        self.promised = self.promised.max(value);
        self.completed = self.completed.max(value);
        self.trim();
    }

    /// The device was idle: everything submitted is completed.
    pub(super) fn idle(&mut self) {
        self.promise(self.submitted);
    }

    /// Applies a reading of the counter.
    pub(super) fn completed(&mut self, value: u64) -> Reading {
        if value < self.promised {
            return Reading::BehindPromise { promised: self.promised };
        }
        if value < self.completed {
            return Reading::Regressed { before: self.completed };
        }
        if value > self.completed {
            self.completed = value;
            self.trim();
        }
        Reading::Ordinary
    }

    /// `serial` must be one that was issued on this timeline.
    pub(super) fn is_done(&self, serial: u64) -> bool {
        self.position(serial).is_none_or(|at| self.finished(self.unfinished[at].state))
    }

    /// Returns true if anything is in flight (L3).
    pub(super) fn is_pending(&self) -> bool {
        self.submitted > self.completed
    }

    /// Returns serial and value of the submission in flight that completes first.
    pub(super) fn oldest_pending(&self) -> Option<(u64, u64)> {
        let in_flight = self.unfinished.iter().filter_map(|entry| match entry.state {
            TicketState::Submitted(value) if value > self.completed => Some((value, entry.serial)),
            _ => None,
        });
        in_flight.min().map(|(value, serial)| (serial, value))
    }

    /// All serials of this timeline below the result are done. `next` is the serial that the clock issues next.
    pub(super) fn floor(&self, next: u64) -> u64 {
        self.unfinished.front().map_or(next, |entry| entry.serial)
    }

    /// Drops all state except the counter values.
    pub(super) fn shutdown(&mut self) {
        self.idle();
        self.unfinished = VecDeque::new();
        self.frames = Vec::new();
    }

    #[cfg(test)]
    pub(super) fn validate(&self) {
        let serials: Vec<u64> = self.unfinished.iter().map(|entry| entry.serial).collect();
        assert!(serials.is_sorted_by(|a, b| a < b), "L1: {serials:?}");
        assert!(self.unfinished.front().is_none_or(|entry| !self.finished(entry.state)), "L2");
        assert_eq!(self.is_pending(), self.oldest_pending().is_some(), "L3");
        assert!(self.frames.is_sorted_by(|a, b| a.slot < b.slot), "L4");
        assert!(self.promised <= self.completed, "L5");
    }

    /// The capacity of the list, and the number of slots.
    #[cfg(test)]
    pub(super) fn footprint(&self) -> (usize, usize) {
        (self.unfinished.capacity(), self.frames.len())
    }
}
