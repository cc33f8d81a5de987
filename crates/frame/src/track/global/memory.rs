//! Memory that several resources share.

use std::collections::BTreeMap;

use ash::vk;

use super::{Global, IntervalState, TrackedResource, TrackingMode, index};
use crate::track::id::IdContents;
use crate::track::intervals::Intervals;
use crate::track::sync::Sync;
use crate::track::usage::AccessScope;
use vk::PipelineStageFlags2 as Stages;

/// The resource that used a byte last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) slot: Option<u32>,
    /// The list that is being resolved, if it has waited for all previous users of the byte.
    pub(super) list: u64,
}

/// Device memory that tracked resources are bound to.
#[derive(Debug)]
pub(super) struct TrackedMemory {
    resources: u32,
    pub(super) holders: Intervals<Holder>,
    /// Number of frozen resources at each byte.
    frozen: Intervals<u32>,
}

pub(super) type Memories = BTreeMap<vk::DeviceMemory, TrackedMemory>;

impl Global {
    /// Registers the memory range of a new resource.
    pub(super) fn add_memory_range(&mut self, resource: &IdContents) {
        if let Some(memory_range) = resource.memory_range {
            let memory = self.memories.entry(memory_range.memory).or_insert_with(|| TrackedMemory {
                resources: 0,
                holders: Intervals::new(u64::MAX, Holder::default()),
                frozen: Intervals::new(u64::MAX, 0),
            });
            memory.resources += 1;
        }
    }

    /// Unregisters the memory range of a resource that is no longer in use.
    pub(super) fn remove_memory_range(&mut self, resource: &IdContents) {
        let Some(memory_range) = resource.memory_range else { return };
        let Some(memory) = self.memories.get_mut(&memory_range.memory) else { return };
        memory.resources -= 1;
        if memory.resources == 0 {
            self.memories.remove(&memory_range.memory);
        } else if let Some((start, end)) = resource.bytes() {
            memory.holders.update(start, end, |_, _, holder| {
                if holder.slot == Some(resource.slot) {
                    *holder = Holder::default();
                }
            });
        }
    }

    /// Sets how uses of a resource are handled.
    pub(super) fn set_mode(&mut self, slot: u32, mode: TrackingMode) {
        let TrackedResource { resource, mode: known, .. } = &mut self.entries[index(slot)];
        let (before, after) = (known.frozen().is_some(), mode.frozen().is_some());
        *known = mode;
        let memory =
            resource.memory_range.and_then(|memory_range| self.memories.get_mut(&memory_range.memory));
        if let (true, Some(memory), Some((start, end))) = (before != after, memory, resource.bytes()) {
            memory
                .frozen
                .update(start, end, |_, _, count| *count = *count + u32::from(after) - u32::from(before));
        }
    }

    /// Returns a frozen resource that shares memory with `entry`, which may be frozen itself.
    pub(super) fn frozen_alias(&self, entry: &TrackedResource) -> Option<&TrackedResource> {
        let resource = &entry.resource;
        let (start, end) = resource.bytes()?;
        let memory = self.memories.get(&resource.memory_range?.memory)?;
        let own = u32::from(entry.mode.frozen().is_some());
        let mut others = false;
        memory.frozen.visit(start, end, |&count| others |= count > own);
        let mut all = others.then_some(&self.entries)?.iter();
        all.find(|other| {
            let overlap =
                matches!((other.resource.memory_range, resource.memory_range), (Some(a), Some(b)) if a.overlaps(&b));
            other.resource.slot != resource.slot && other.mode.frozen().is_some() && overlap
        })
    }
}

/// Above this number of intervals, neighbours that differ only in the time of use are joined.
const MANY: usize = 32;

/// Above this number of intervals, neighbours that differ in more are joined.
const TOO_MANY: usize = 1_024;

#[cfg(feature = "sim")]
thread_local! {
    static LIMITS: std::cell::Cell<(usize, usize)> = const { std::cell::Cell::new((MANY, TOO_MANY)) };
}

/// Sets both limits for this thread, because random programs have few intervals.
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

impl TrackedResource {
    /// Joins intervals of a resource that is used piece by piece, because their number would grow without bound.
    ///
    /// # Complexity
    ///
    /// Linear in the number of intervals, each time that it has doubled.
    pub(super) fn join_states(&mut self) {
        let (count, (many, too_many)) = (self.cells.count(), limits());
        self.joined = self.joined.min(count);
        if count <= many.max(2 * self.joined) {
            return;
        }
        self.cells.join(IntervalState::at_any_time);
        if self.cells.count() > too_many {
            self.cells.join(IntervalState::union);
        }
        self.joined = self.cells.count();
    }
}

impl IntervalState {
    /// Returns the later of two states that differ only in the time of use.
    fn at_any_time(&self, other: &Self) -> Option<Self> {
        let (serial, written) = (self.serial.max(other.serial), self.written.max(other.written));
        let widened = |state: &Self| Self { serial, written, ..*state };
        (widened(self) == widened(other)).then(|| widened(self))
    }

    /// Returns a state that is conservative for both: it waits for all that either waits for. None if the queues,
    /// layouts or owners differ.
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
        let (mut readers, mut visible) = (a.readers | b.readers, [AccessScope::NONE; 2]);
        let alike = a.readers.is_empty() == b.readers.is_empty();
        let unordered =
            if alike && a.unordered == b.unordered { a.unordered } else { vk::AccessFlags2::NONE };
        if alike {
            // S3: keep a scope only if both writes are visible to it. A state without a write does not restrict it.
            let shown = |sync: &Sync, scope| sync.write.is_empty() || sync.visible.contains(&scope);
            let from = if a.write.is_empty() { b } else { a };
            visible = from
                .visible
                .map(|scope| if shown(a, scope) && shown(b, scope) { scope } else { AccessScope::NONE });
        } else {
            // S1: the readers of one state have not waited for the write of the other. Their stages join those of the
            // write, and an unordered write must wait for readers.
            write.stages |= readers;
            readers = Stages::NONE;
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
