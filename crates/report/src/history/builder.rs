//! Collects what begins and ends.

use std::collections::BTreeMap;

use sublet::ResourceKind;

use super::parts::{HeapBytes, HeldMemory, HistoryMoment, HistoryPlacement, NEVER};
use super::{History, MOST_MARKS};
use crate::cast::index;
use crate::snapshot::{Snapshot, Vector};

/// The properties of an allocation that do not depend on its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Described<'a> {
    pub(super) number: u64,
    pub(super) size: u64,
    pub(super) kind: ResourceKind,
    pub(super) usage: u64,
    pub(super) name: Option<&'a str>,
    pub(super) note: Option<&'a str>,
}

/// A history in progress.
#[derive(Debug)]
pub(super) struct HistoryBuilder {
    history: History,
    now: HistoryMoment,
    /// Frames are presented images. Without them, they are submissions.
    is_presented: bool,
    /// Only frames with a multiple of this number are kept.
    every: u64,
    /// The last budget of each heap.
    budgets: BTreeMap<u32, u64>,
}

impl HistoryBuilder {
    /// Begins on the device of a snapshot, without memory.
    pub(super) fn new(empty: Snapshot) -> Self {
        let Snapshot { title, device, heaps, types, .. } = empty;
        let moments = vec![HistoryMoment::default()];
        let history = History { title, device, heaps, types, moments, ..History::default() };
        Self {
            history,
            now: HistoryMoment::default(),
            is_presented: false,
            every: 1,
            budgets: BTreeMap::new(),
        }
    }

    /// Begins the next call. Threads write their records concurrently, so its time may be slightly before the last one.
    pub(super) fn next_call(&mut self, time: u64) {
        self.now.call = self.now.call.saturating_add(1);
        self.now.time = self.now.time.max(time);
        self.history.calls = self.now.call;
        self.history.duration = self.now.time;
    }

    /// Returns the number of the current moment.
    pub(super) fn moment(&mut self) -> u32 {
        let moments = &mut self.history.moments;
        if moments.last() != Some(&self.now) {
            moments.push(self.now);
        }
        u32::try_from(moments.len() - 1).unwrap_or(NEVER - 1)
    }

    /// Returns the number of a vector. Its name and its block size are updated.
    pub(super) fn vector(&mut self, vector: Vector) -> u32 {
        let vectors = &mut self.history.vectors;
        let is_same = |it: &Vector| (it.memory_type, it.pool) == (vector.memory_type, vector.pool);
        let at = vectors.iter().position(is_same).unwrap_or(vectors.len());
        match vectors.get_mut(at) {
            Some(known) => *known = vector,
            None => vectors.push(vector),
        }
        u32::try_from(at).unwrap_or(NEVER)
    }

    /// Returns the number of the default vector of a memory type, if it is known.
    pub(super) fn default_vector(&self, memory_type: u32) -> Option<u32> {
        let is_it = |it: &Vector| (it.memory_type, it.pool) == (memory_type, None);
        self.history.vectors.iter().position(is_it).and_then(|at| u32::try_from(at).ok())
    }

    /// Returns the number of new device memory.
    pub(super) fn begin_memory(&mut self, vector: u32, number: u32, size: u64, dedicated: bool) -> u32 {
        let from = self.moment();
        let memories = &mut self.history.memories;
        memories.push(HeldMemory { vector, number, name: 0, size, dedicated, from, to: NEVER });
        u32::try_from(memories.len() - 1).unwrap_or(NEVER)
    }

    pub(super) fn end_memory(&mut self, memory: u32) {
        let to = self.moment();
        if let Some(memory) = self.history.memories.get_mut(index(memory)) {
            memory.to = to;
        }
    }

    /// Returns the number of a new placement.
    pub(super) fn place(&mut self, memory: u32, offset: u64, it: Described<'_>, is_first: bool) -> u32 {
        let Described { number, size, kind, usage, .. } = it;
        let (from, to) = (self.moment(), NEVER);
        let name = self.history.texts.number(it.name);
        let note = self.history.texts.number(it.note);
        let new =
            HistoryPlacement { number, memory, offset, size, kind, usage, name, note, is_first, from, to };
        let placed = &mut self.history.placed;
        placed.push(new);
        u32::try_from(placed.len() - 1).unwrap_or(NEVER)
    }

    /// Ends a placement, and returns it.
    pub(super) fn end(&mut self, placed: u32) -> Option<HistoryPlacement> {
        let to = self.moment();
        let placed = self.history.placed.get_mut(index(placed))?;
        placed.to = to;
        Some(*placed)
    }

    /// Moves a placement. Returns the one at the new place.
    pub(super) fn move_to(&mut self, placed: u32, memory: u32, offset: u64) -> u32 {
        // A replay does not make a move that it has not planned.
        match self.history.placed.get(index(placed)) {
            Some(known) if (known.memory, known.offset) == (memory, offset) => placed,
            _ => self.replace(placed, |known| HistoryPlacement { memory, offset, ..known }),
        }
    }

    /// Ends a placement, and begins a changed one of the same allocation.
    fn replace(&mut self, placed: u32, change: impl FnOnce(HistoryPlacement) -> HistoryPlacement) -> u32 {
        let Some(known) = self.end(placed) else { return placed };
        let new = HistoryPlacement { is_first: false, from: known.to, to: NEVER, ..change(known) };
        let placed = &mut self.history.placed;
        placed.push(new);
        u32::try_from(placed.len() - 1).unwrap_or(NEVER)
    }

    /// Names a placement. Returns the placement that has the name: the first name of an allocation holds from its
    /// start, and a later one from now.
    pub(super) fn rename(&mut self, placed: u32, name: Option<&str>) -> u32 {
        let name = self.history.texts.number(name);
        match self.history.placed.get_mut(index(placed)) {
            Some(known) if known.name == name => placed,
            Some(known) if known.name == 0 => {
                known.name = name;
                placed
            }
            Some(_) => self.replace(placed, |known| HistoryPlacement { name, ..known }),
            None => placed,
        }
    }

    /// Names a memory. Its last name counts for all of its life.
    pub(super) fn rename_memory(&mut self, memory: u32, name: &str) {
        let name = self.history.texts.number(Some(name));
        if let Some(memory) = self.history.memories.get_mut(index(memory)) {
            memory.name = name;
        }
    }

    /// Begins a frame. The first presented image replaces all submissions. Of very many frames, only every second,
    /// every fourth and so on is kept.
    pub(super) fn frame(&mut self, number: u64, is_presented: bool) {
        if is_presented && !self.is_presented {
            self.history.frames.clear();
            (self.is_presented, self.every) = (true, 1);
        }
        if is_presented != self.is_presented || number % self.every != 0 {
            return;
        }
        let moment = self.moment();
        self.history.frames.push((moment, number));
        if self.history.frames.len() > 4 * MOST_MARKS {
            self.every = self.every.saturating_mul(2);
            self.history.frames.retain(|(_, number)| number % self.every == 0);
        }
    }

    /// Marks the recording as one of a program that allocates its memory without Sublet.
    pub(super) fn set_foreign(&mut self) {
        self.history.is_foreign = true;
    }

    pub(super) fn budget(&mut self, heap: u32, bytes: u64) {
        let is_new = self.budgets.insert(heap, bytes) != Some(bytes);
        if is_new && self.history.budgets.len() < MOST_MARKS {
            let moment = self.moment();
            self.history.budgets.push(HeapBytes { moment, heap, bytes });
        }
    }

    pub(super) fn driver_memory(&mut self, heap: u32, bytes: u64) {
        if self.history.driver.len() < MOST_MARKS {
            let moment = self.moment();
            self.history.driver.push(HeapBytes { moment, heap, bytes });
        }
    }

    pub(super) fn failure(&mut self) {
        let moment = self.moment();
        self.history.failures.push(moment);
    }

    pub(super) fn finish(mut self) -> History {
        self.moment();
        self.history.has_submissions = !self.is_presented && !self.history.frames.is_empty();
        self.history
    }
}
