//! Bursts of allocations.

use serde::Serialize;

use super::History;

/// Maximum number of bursts.
const MOST: usize = 12;
/// Windows of a recording without frames.
const WINDOWS: usize = 200;
/// A burst has this many times the allocations of the median window that has any, and at least `FEWEST`.
const FACTOR: u64 = 6;
const FEWEST: u64 = 8;

/// A window with many more allocations than others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Burst {
    /// The moment before it.
    pub(super) from: u32,
    /// Its last moment.
    pub(super) to: u32,
    pub(super) allocations: u64,
    pub(super) bytes: u64,
}

impl History {
    /// Returns the largest bursts in the order of time. A window is a frame, or a part of the recording if it has few
    /// frames.
    pub(super) fn bursts(&self) -> Vec<Burst> {
        let mut windows = self.windows();
        let mut at = 0;
        for placed in self.placed.iter().filter(|placed| placed.is_first) {
            while windows.get(at).is_some_and(|window| window.to < placed.from) {
                at += 1;
            }
            let Some(window) = windows.get_mut(at) else { break };
            window.allocations += 1;
            window.bytes = window.bytes.saturating_add(placed.size);
        }
        let mut counts: Vec<u64> = windows.iter().map(|it| it.allocations).filter(|&it| it > 0).collect();
        counts.sort_unstable();
        let median = counts.get(counts.len() / 2).copied().unwrap_or(0);
        // A recording with one busy window has no other to compare with.
        let usual = if counts.len() < 4 { 1 } else { median };
        let least = FEWEST.max(usual.saturating_mul(FACTOR));
        let mut bursts: Vec<Burst> = Vec::new();
        for window in windows.into_iter().filter(|window| window.allocations >= least) {
            match bursts.last_mut() {
                Some(last) if last.to == window.from => {
                    last.to = window.to;
                    last.allocations += window.allocations;
                    last.bytes = last.bytes.saturating_add(window.bytes);
                }
                _ => bursts.push(window),
            }
        }
        bursts.sort_by_key(|burst| std::cmp::Reverse(burst.allocations));
        bursts.truncate(MOST);
        bursts.sort_by_key(|burst| burst.from);
        bursts
    }

    /// Divides all moments into windows. Each begins where the one before ends.
    fn windows(&self) -> Vec<Burst> {
        let last = u32::try_from(self.moments.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let mut ends: Vec<u32> = if self.frames.len() >= 8 {
            // A frame begins with its own moment.
            self.frames.iter().map(|&(moment, _)| moment.saturating_sub(1)).collect()
        } else {
            let step = usize::max(1, self.moments.len() / WINDOWS);
            (0..=last).step_by(step).collect()
        };
        ends.push(last);
        ends.dedup();
        let window = |from, to| Burst { from, to, allocations: 0, bytes: 0 };
        let starts = std::iter::once(0).chain(ends.iter().copied());
        starts.zip(ends.iter().copied()).filter(|(from, to)| to > from).map(|(a, b)| window(a, b)).collect()
    }
}
