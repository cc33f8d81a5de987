//! Memory that resources share.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use ash::vk;

use super::{Entry, Global, Standing, State, index};
use crate::track::id::Resource;
use crate::track::intervals::Intervals;
use crate::track::sync::Sync;
use crate::track::usage::Scope;
use vk::PipelineStageFlags2 as Stages;

/// Which resource used a byte last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) slot: Option<u32>,
    /// The list that is being resolved, if it has waited for all that used the byte before.
    pub(super) list: u64,
}

/// A memory that resources have a place in.
#[derive(Debug)]
pub(super) struct Memory {
    resources: u32,
    pub(super) holders: Intervals<Holder>,
    /// How many frozen resources have a byte.
    frozen: Intervals<u32>,
}

pub(super) type Memories = BTreeMap<vk::DeviceMemory, Memory>;

impl Global {
    /// A resource has its place from now on.
    pub(super) fn add_place(&mut self, resource: &Resource) {
        if let Some(place) = resource.place {
            let memory = self.memories.entry(place.memory).or_insert_with(|| Memory {
                resources: 0,
                holders: Intervals::new(u64::MAX, Holder::default()),
                frozen: Intervals::new(u64::MAX, 0),
            });
            memory.resources += 1;
        }
    }

    /// A resource is gone, and nothing that used it runs any more.
    pub(super) fn remove_place(&mut self, resource: &Resource) {
        let Some(place) = resource.place else { return };
        let Some(memory) = self.memories.get_mut(&place.memory) else { return };
        memory.resources -= 1;
        if memory.resources == 0 {
            self.memories.remove(&place.memory);
        } else if let Some((start, end)) = resource.bytes() {
            memory.holders.update(start, end, |_, _, holder| {
                if holder.slot == Some(resource.slot) {
                    *holder = Holder::default();
                }
            });
        }
    }

    /// Changes what uses of a resource mean.
    pub(super) fn set_standing(&mut self, slot: u32, standing: Standing) {
        let Entry { resource, standing: known, .. } = &mut self.entries[index(slot)];
        let (before, after) = (known.frozen().is_some(), standing.frozen().is_some());
        *known = standing;
        let memory = resource.place.and_then(|place| self.memories.get_mut(&place.memory));
        if let (true, Some(memory), Some((start, end))) = (before != after, memory, resource.bytes()) {
            memory
                .frozen
                .update(start, end, |_, _, count| *count = *count + u32::from(after) - u32::from(before));
        }
    }

    /// A frozen resource that shares memory with this one, which may be frozen itself.
    pub(super) fn frozen_beside(&self, entry: &Entry) -> Option<&Entry> {
        let resource = &entry.resource;
        let (start, end) = resource.bytes()?;
        let memory = self.memories.get(&resource.place?.memory)?;
        let own = u32::from(entry.standing.frozen().is_some());
        let mut others = false;
        memory.frozen.visit(start, end, |&count| others |= count > own);
        let mut all = others.then_some(&self.entries)?.iter();
        all.find(|other| {
            let overlap =
                matches!((other.resource.place, resource.place), (Some(a), Some(b)) if a.overlaps(&b));
            other.resource.slot != resource.slot && other.standing.frozen().is_some() && overlap
        })
    }
}

/// A resource has so many intervals before those are joined that differ only in the time of their uses.
const MANY: usize = 32;

/// And so many before those are joined that differ in more.
const TOO_MANY: usize = 1_024;

#[cfg(feature = "sim")]
thread_local! {
    static LIMITS: std::cell::Cell<(usize, usize)> = const { std::cell::Cell::new((MANY, TOO_MANY)) };
}

/// Sets both limits for this thread: random programs have few intervals.
#[cfg(feature = "sim")]
pub fn join_states_above(many: usize, too_many: usize) {
    LIMITS.set((many, too_many));
}

fn limits() -> (usize, usize) {
    #[cfg(feature = "sim")]
    return LIMITS.get();
    #[cfg(not(feature = "sim"))]
    (MANY, TOO_MANY)
}

impl Entry {
    /// Joins intervals of a resource that is used piece by piece: they would become more for ever.
    ///
    /// # Complexity
    ///
    /// That of all intervals, each time that they are twice as many as after the last time.
    pub(super) fn join_states(&mut self) {
        let (count, (many, too_many)) = (self.cells.count(), limits());
        self.joined = self.joined.min(count);
        if count <= many.max(2 * self.joined) {
            return;
        }
        self.cells.join(State::at_any_time);
        if self.cells.count() > too_many {
            self.cells.join(State::union);
        }
        self.joined = self.cells.count();
    }
}

impl State {
    /// Used when one of two states was, which are alike otherwise.
    fn at_any_time(&self, other: &Self) -> Option<Self> {
        let (serial, written) = (self.serial.max(other.serial), self.written.max(other.written));
        let widened = |state: &Self| Self { serial, written, ..*state };
        (widened(self) == widened(other)).then(|| widened(self))
    }

    /// A state in which nothing is known that is not right for both, and everything is waited for that either has to
    /// wait for. None if they are on two queues, or differ in layout or owner: those are facts.
    fn union(&self, other: &Self) -> Option<Self> {
        let (a, b) = (&self.sync, &other.sync);
        if a.layout != b.layout {
            return None;
        }
        for (unused, used) in [(self, other), (other, self)] {
            if *unused == Self::fresh(a.layout) {
                return Some(*used);
            }
        }
        if self.queue != other.queue || a.owner != b.owner {
            return None;
        }
        let mut write = a.write | b.write;
        let (mut readers, mut visible) = (a.readers | b.readers, [Scope::NONE; 2]);
        let mut unordered = if a.unordered == b.unordered { a.unordered } else { vk::AccessFlags2::NONE };
        if a.readers.is_empty() == b.readers.is_empty() {
            // S3: it is visible to those to whom both are. Nothing was written where there is no write.
            let shown = |sync: &Sync, scope| sync.write.is_empty() || sync.visible.contains(&scope);
            let from = if a.write.is_empty() { b } else { a };
            visible = from
                .visible
                .map(|scope| if shown(a, scope) && shown(b, scope) { scope } else { Scope::NONE });
        } else {
            // S1: the readers of one have not waited for the write of the other. The stages of the readers are now
            // among those of the write, and an unordered write must wait for readers.
            write.stages |= readers;
            readers = Stages::NONE;
            unordered = vk::AccessFlags2::NONE;
        }
        Some(Self {
            sync: Sync { write, readers, visible, layout: a.layout, owner: a.owner, unordered },
            queue: self.queue,
            others: self.others | other.others,
            other_readers: self.other_readers | other.other_readers,
            serial: self.serial.max(other.serial),
            written: self.written.max(other.written),
        })
    }
}
