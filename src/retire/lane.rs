//! What a clock knows of one lane: how far its counter got, and which tickets are not done.
//!
//! Invariants:
//! - L1: `unfinished` is sorted by serial; a ticket that is not in it is done.
//! - L2: the first of `unfinished` is not done. Done ones further back go when the list is full.
//! - L3: some ticket is submitted and not done if and only if `submitted > completed`.
//! - L4: `frames` is sorted by slot, one entry for each.
//! - L5: `promised <= completed`.
#![forbid(unsafe_code)]

use std::collections::VecDeque;

/// Below so many entries the list is not tidied.
const FEW: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Open,
    /// Open, and begun as the frame of a slot.
    OpenFrame(u32),
    /// Done when the counter has reached the value. A discarded ticket waits for 0, which every counter has reached.
    Submitted(u64),
}

impl State {
    fn is_open(self) -> bool {
        !matches!(self, Self::Submitted(_))
    }
}

#[derive(Debug)]
struct Entry {
    serial: u64,
    state: State,
}

/// A frame slot: known while its last frame is open or in flight.
#[derive(Debug)]
struct Frame {
    slot: u32,
    /// Of the frame that was begun last.
    serial: u64,
    /// The highest value that a frame of this slot was submitted with; 0 if none was.
    value: u64,
}

/// What a reading of the counter was worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reading {
    /// Nothing odd.
    Ordinary,
    /// Lower than what was read before.
    Regressed { before: u64 },
    /// Lower than what a frame's fence or an idle device stands for.
    BehindPromise { promised: u64 },
}

#[derive(Debug, Default)]
pub(super) struct Lane {
    completed: u64,
    /// The part of `completed` that was not read but concluded from a fence or an idle device.
    promised: u64,
    /// The highest value that was submitted.
    submitted: u64,
    unfinished: VecDeque<Entry>,
    frames: Vec<Frame>,
}

impl Lane {
    fn finished(&self, state: State) -> bool {
        matches!(state, State::Submitted(value) if value <= self.completed)
    }

    fn position(&self, serial: u64) -> Option<usize> {
        self.unfinished.binary_search_by_key(&serial, |entry| entry.serial).ok()
    }

    fn is_open(&self, serial: u64) -> bool {
        self.position(serial).is_some_and(|at| self.unfinished[at].state.is_open())
    }

    /// Keeps L2. Each entry goes once: amortised O(1) for each ticket.
    fn trim(&mut self) {
        while self.unfinished.front().is_some_and(|entry| self.finished(entry.state)) {
            self.unfinished.pop_front();
        }
    }

    /// Makes room for one entry more. Done ones go first, and the list grows only if that freed less than half of it:
    /// so it is never longer than four times what was unfinished at once, and tidying it costs amortised O(1) for each
    /// ticket.
    fn make_room(&mut self) {
        if self.unfinished.len() < self.unfinished.capacity() {
            return;
        }
        let completed = self.completed;
        self.unfinished.retain(|entry| !matches!(entry.state, State::Submitted(value) if value <= completed));
        if self.unfinished.len() * 2 > self.unfinished.capacity() || self.unfinished.capacity() < FEW {
            self.unfinished.reserve(self.unfinished.len().max(FEW));
        }
    }

    /// A recording started. Serials ascend.
    pub(super) fn open(&mut self, serial: u64) {
        self.enter(serial, State::Open);
    }

    fn enter(&mut self, serial: u64, state: State) {
        debug_assert!(self.unfinished.back().is_none_or(|last| last.serial < serial), "L1");
        self.make_room();
        self.unfinished.push_back(Entry { serial, state });
    }

    /// The value of a submission that has none of its own. Above everything that is completed, or the submission would
    /// be done before it began.
    pub(super) fn next_value(&self) -> u64 {
        self.submitted.max(self.completed).saturating_add(1)
    }

    /// Whether `serial` was open.
    pub(super) fn submit(&mut self, serial: u64, value: u64) -> bool {
        let Some(at) = self.position(serial).filter(|&at| self.unfinished[at].state.is_open()) else {
            return false;
        };
        let state = std::mem::replace(&mut self.unfinished[at].state, State::Submitted(value));
        self.submitted = self.submitted.max(value);
        if let State::OpenFrame(slot) = state {
            // Where the slot has begun again, its fence is the later frame's: waiting for it says nothing of this one.
            // The entry of a slot is kept while its last frame is open.
            let frame = self.frames.iter_mut().find(|frame| frame.slot == slot && frame.serial == serial);
            if let Some(frame) = frame {
                frame.value = frame.value.max(value);
            }
        }
        self.trim();
        true
    }

    /// Whether `serial` was open.
    pub(super) fn discard(&mut self, serial: u64) -> bool {
        let Some(at) = self.position(serial).filter(|&at| self.unfinished[at].state.is_open()) else {
            return false;
        };
        self.unfinished[at].state = State::Submitted(0);
        self.trim();
        true
    }

    /// The entry of `slot`; made, with `serial` as its last frame, if there is none.
    fn frame(&mut self, slot: u32, serial: u64) -> usize {
        if let Ok(at) = self.frames.binary_search_by_key(&slot, |frame| frame.slot) {
            return at;
        }
        // A slot whose frames are all done says nothing that `completed` does not. Slots that are not used any more,
        // and programs that number their frames instead of their slots, so leave nothing behind.
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

    /// The caller waited for the slot's fence. Returns the serial of the slot's last frame if that was not ended.
    pub(super) fn begin_frame(&mut self, slot: u32, serial: u64) -> Option<u64> {
        let at = self.frame(slot, serial);
        let Frame { serial: last, value, .. } = self.frames[at];
        let unended = (last != serial && self.is_open(last)).then_some(last);
        self.frames[at].serial = serial;
        self.promise(value);
        self.enter(serial, State::OpenFrame(slot));
        unended
    }

    /// Known without reading the counter.
    fn promise(&mut self, value: u64) {
        self.promised = self.promised.max(value);
        self.completed = self.completed.max(value);
        self.trim();
    }

    /// The device was idle.
    pub(super) fn idle(&mut self) {
        self.promise(self.submitted);
    }

    /// The counter was read.
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

    /// For a serial that was given out on this lane.
    pub(super) fn is_done(&self, serial: u64) -> bool {
        self.position(serial).is_none_or(|at| self.finished(self.unfinished[at].state))
    }

    /// Whether anything is in flight: L3.
    pub(super) fn is_pending(&self) -> bool {
        self.submitted > self.completed
    }

    /// Serial and value of what is in flight and will be done first.
    pub(super) fn oldest_pending(&self) -> Option<(u64, u64)> {
        let in_flight = self.unfinished.iter().filter_map(|entry| match entry.state {
            State::Submitted(value) if value > self.completed => Some((value, entry.serial)),
            _ => None,
        });
        in_flight.min().map(|(value, serial)| (serial, value))
    }

    /// All serials of this lane below are done; `next` is the serial that the clock gives out next.
    pub(super) fn floor(&self, next: u64) -> u64 {
        self.unfinished.front().map_or(next, |entry| entry.serial)
    }

    /// No ticket is asked for any more: nothing is remembered but how far the values got.
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

    /// Entries that there is room for, and slots.
    #[cfg(test)]
    pub(super) fn footprint(&self) -> (usize, usize) {
        (self.unfinished.capacity(), self.frames.len())
    }
}
