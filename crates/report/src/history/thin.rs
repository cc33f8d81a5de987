//! Leaves out the shortest-lived placements of a large recording.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::History;
use super::bursts::Burst;
use super::parts::{HeldMemory, HistoryPlacement, NEVER};
use crate::cast::index;

/// The placements and the memories that a page lacks. Memories with a placement of their own are not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub(super) struct LeftOut {
    pub(super) placed: usize,
    pub(super) memories: usize,
    /// The longest time that one of them was live, in nanoseconds.
    pub(super) lived: u64,
}

/// The bytes of a heap that are left out, from a moment on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HiddenBytes {
    pub(super) moment: u32,
    pub(super) heap: u32,
    pub(super) used: u64,
    pub(super) reserved: u64,
}

/// The part of a history that fits a page.
#[derive(Debug)]
pub(super) struct Thinned {
    pub(super) memories: Vec<HeldMemory>,
    pub(super) placed: Vec<HistoryPlacement>,
    pub(super) left_out: Option<LeftOut>,
    pub(super) hidden: Vec<HiddenBytes>,
    /// All bursts of the recording, with its own moments.
    pub(super) bursts: Vec<Burst>,
    /// The kept moments, in order.
    pub(super) moments: Vec<u32>,
}

impl History {
    /// Keeps at most this many placements, and of the memories that have ended without one of them, at most as many.
    /// Dedicated memory is left out with its allocation.
    pub(super) fn thinned(&self, most: usize) -> Thinned {
        let mut lacks = LeftOut::default();
        let kept = self.kept_placements(most, &mut lacks);
        let shown = self.shown_memories(most, &kept, &mut lacks);
        let hidden = {
            let placed = self.placed.iter().zip(&kept).filter(|(_, kept)| !**kept).map(|(it, _)| it);
            let memories = self.memories.iter().zip(&shown).filter(|(_, shown)| !**shown).map(|(it, _)| it);
            self.hidden(placed, memories)
        };
        // Indices change where memory is left out.
        let mut numbers = Vec::with_capacity(self.memories.len());
        let mut memories = Vec::new();
        for (memory, shown) in self.memories.iter().zip(&shown) {
            numbers.push(u32::try_from(memories.len()).unwrap_or(NEVER));
            memories.extend(shown.then_some(*memory));
        }
        let is_kept = |(_, kept): &(&HistoryPlacement, &bool)| **kept;
        let renumber = |(it, _): (&HistoryPlacement, &bool)| {
            let memory = numbers.get(index(it.memory)).copied().unwrap_or(NEVER);
            HistoryPlacement { memory, ..*it }
        };
        let placed: Vec<_> = self.placed.iter().zip(&kept).filter(is_kept).map(renumber).collect();
        let left_out = (lacks != LeftOut::default()).then_some(lacks);
        let (bursts, moments) = (self.bursts(), Vec::new());
        let mut thinned = Thinned { memories, placed, left_out, hidden: Vec::new(), bursts, moments };
        thinned.moments = self.kept_moments(&thinned, &hidden);
        thinned.hidden = at_moments(&hidden, &thinned.moments);
        thinned
    }

    /// Returns true for each placement that is kept: those that are live longest.
    fn kept_placements(&self, most: usize, lacks: &mut LeftOut) -> Vec<bool> {
        let mut kept = vec![true; self.placed.len()];
        let lived = |&at: &usize| self.lived(self.placed[at].from, self.placed[at].to);
        (lacks.placed, lacks.lived) = leave_out(most, (0..kept.len()).collect(), lived, &mut kept);
        kept
    }

    /// Returns true for each memory that is shown.
    fn shown_memories(&self, most: usize, kept: &[bool], lacks: &mut LeftOut) -> Vec<bool> {
        let (mut used, mut shown) = (vec![false; self.memories.len()], vec![true; self.memories.len()]);
        for (placed, _) in self.placed.iter().zip(kept).filter(|(_, kept)| **kept) {
            if let Some(used) = used.get_mut(index(placed.memory)) {
                *used = true;
            }
        }
        let mut spare = Vec::new();
        for (at, memory) in self.memories.iter().enumerate().filter(|&(at, it)| !used[at] && it.to != NEVER) {
            if lacks.placed > 0 && memory.dedicated {
                shown[at] = false;
            } else {
                spare.push(at);
            }
        }
        let lived = |&at: &usize| self.lived(self.memories[at].from, self.memories[at].to);
        let longest;
        (lacks.memories, longest) = leave_out(most, spare, lived, &mut shown);
        lacks.lived = lacks.lived.max(longest);
        shown
    }

    /// Returns the time between two moments in nanoseconds. That of parts that are live at the end is the longest.
    fn lived(&self, from: u32, to: u32) -> u64 {
        let time = |moment: u32| self.moments.get(index(moment)).map(|it| it.time);
        match (time(from), time(to)) {
            (Some(from), Some(to)) => to.saturating_sub(from),
            _ => u64::MAX,
        }
    }

    fn heap_of(&self, memory: &HeldMemory) -> u32 {
        self.vectors.get(index(memory.vector)).map_or(0, |vector| vector.heap)
    }

    /// Returns the sums of what is left out at each moment at which they change.
    fn hidden<'a>(
        &'a self,
        placed: impl Iterator<Item = &'a HistoryPlacement>,
        memories: impl Iterator<Item = &'a HeldMemory>,
    ) -> Vec<HiddenBytes> {
        // By moment and heap: bytes that begin and that end, used and reserved.
        let mut changes = BTreeMap::<(u32, u32), [u64; 4]>::new();
        let mut change = |moment, heap, at: usize, size: u64| {
            let sums = changes.entry((moment, heap)).or_default();
            sums[at] = sums[at].saturating_add(size);
        };
        for it in placed {
            let heap = self.memories.get(index(it.memory)).map_or(0, |memory| self.heap_of(memory));
            change(it.from, heap, 0, it.size);
            change(it.to, heap, 1, it.size);
        }
        for it in memories {
            change(it.from, self.heap_of(it), 2, it.size);
            change(it.to, self.heap_of(it), 3, it.size);
        }
        let mut sums = BTreeMap::<u32, (u64, u64)>::new();
        let sum = |((moment, heap), [used, unused, reserved, freed]): ((u32, u32), [u64; 4])| {
            let now = sums.entry(heap).or_default();
            now.0 = now.0.saturating_add(used).saturating_sub(unused);
            now.1 = now.1.saturating_add(reserved).saturating_sub(freed);
            HiddenBytes { moment, heap, used: now.0, reserved: now.1 }
        };
        changes.into_iter().filter(|((moment, _), _)| *moment != NEVER).map(sum).collect()
    }

    /// Returns the moments that the page needs: those of kept parts and marks, the first and the last.
    fn kept_moments(&self, thinned: &Thinned, hidden: &[HiddenBytes]) -> Vec<u32> {
        let last = u32::try_from(self.moments.len().saturating_sub(1)).unwrap_or(0);
        let of_memories = thinned.memories.iter().flat_map(|it| [it.from, it.to]);
        let of_placed = thinned.placed.iter().flat_map(|it| [it.from, it.to]);
        let of_marks = sparse(&self.frames).map(|&(moment, _)| moment).chain(sparse(&self.failures).copied());
        let of_heaps = self.budgets.iter().chain(&self.driver).map(|it| it.moment);
        let of_bursts = thinned.bursts.iter().flat_map(|it| [it.from, it.to]);
        let of_peak = hidden.iter().max_by_key(|it| it.used).map(|it| it.moment);
        let all =
            of_memories.chain(of_placed).chain(of_marks).chain(of_heaps).chain(of_bursts).chain(of_peak);
        let mut moments: Vec<u32> = all.chain([0, last]).filter(|&moment| moment != NEVER).collect();
        moments.sort_unstable();
        moments.dedup();
        moments
    }
}

/// Leaves out all parts but those that are live longest. Returns the number of the others, and the longest time of one.
fn leave_out(
    most: usize,
    mut parts: Vec<usize>,
    lived: impl Fn(&usize) -> u64,
    kept: &mut [bool],
) -> (usize, u64) {
    if parts.len() <= most {
        return (0, 0);
    }
    parts.sort_by_key(|at| Reverse(lived(at)));
    let others = &parts[most..];
    others.iter().for_each(|&at| kept[at] = false);
    (others.len(), lived(&others[0]))
}

/// Returns the sums at the given moments: for each heap the last one up to the moment.
fn at_moments(hidden: &[HiddenBytes], moments: &[u32]) -> Vec<HiddenBytes> {
    let mut rest = hidden.iter().peekable();
    let mut found = Vec::new();
    for &moment in moments {
        let mut now = BTreeMap::new();
        while let Some(it) = rest.next_if(|it| it.moment <= moment) {
            now.insert(it.heap, HiddenBytes { moment, ..*it });
        }
        found.extend(now.into_values());
    }
    found
}

/// Returns at most `MOST_MARKS` elements, at equal distances.
pub(super) fn sparse<T>(all: &[T]) -> impl Iterator<Item = &T> {
    all.iter().step_by(all.len() / super::MOST_MARKS + 1)
}
