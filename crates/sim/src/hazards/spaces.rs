//! The history of the bytes of a memory, or of the subresources of an image: intervals that are split where something
//! differs, and merged where it does not.

use std::collections::BTreeMap;
use std::ops::Range;

use super::past::Past;

/// The most accesses that an interval remembers. Areas of an image that do not overlap are kept one by one; of more
/// than these the oldest is forgotten.
const MOST: usize = 64;

/// Intervals by their first unit, each with its end. Gaps have no history.
#[derive(Debug)]
pub(crate) struct Space<T>(BTreeMap<u64, (u64, T)>);

impl<T> Default for Space<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

/// The accesses to all units of an interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct AccessHistory {
    pub(crate) past: Vec<Past>,
}

impl AccessHistory {
    /// A write that was read is reported only if the reads have nothing to report.
    pub(crate) fn reads_first(&self) -> impl Iterator<Item = &Past> {
        let reads = self.past.iter().filter(|past| !past.access.write);
        reads.chain(self.past.iter().filter(|past| past.access.write))
    }

    pub(crate) fn push(&mut self, past: Past) {
        if self.past.len() == MOST {
            self.past.remove(0);
        }
        self.past.push(past);
    }
}

impl<T: Clone + Default + PartialEq> Space<T> {
    /// Makes an interval begin at `at`, if one holds it.
    pub(crate) fn split(&mut self, at: u64) {
        let Some((_, (end, value))) = self.0.range_mut(..at).next_back() else { return };
        if *end > at {
            let rest = (*end, value.clone());
            *end = at;
            self.0.insert(at, rest);
        }
    }

    /// The intervals that overlap a range, each with its part that is in the range.
    pub(crate) fn overlapping(&self, range: &Range<u64>) -> impl Iterator<Item = (Range<u64>, &T)> {
        let Range { start, end } = *range;
        let first = self.0.range(..=start).next_back().map_or(start, |(first, _)| *first);
        let cells = self.0.range(first..end.max(first)).filter(move |(_, (own, _))| *own > start);
        cells.map(move |(own, (last, value))| (start.max(*own)..end.min(*last), value))
    }

    /// Changes all that is in a range, also where nothing was.
    pub(crate) fn change(&mut self, range: &Range<u64>, change: impl Fn(&mut T)) {
        self.split(range.start);
        self.split(range.end);
        self.fill(range);
        for (_, (_, value)) in self.0.range_mut(range.clone()) {
            change(value);
        }
        self.merge(range);
    }

    /// Makes intervals where there are none.
    fn fill(&mut self, range: &Range<u64>) {
        let mut at = range.start;
        let known: Vec<_> = self.overlapping(range).map(|(own, _)| (own.start, own.end)).collect();
        for (start, end) in known.into_iter().chain([(range.end, range.end)]) {
            if at < start {
                self.0.insert(at, (start, T::default()));
            }
            at = end;
        }
    }

    /// Joins intervals in and beside a range that are alike.
    fn merge(&mut self, range: &Range<u64>) {
        let first = self.0.range(..range.start).next_back().map_or(range.start, |(start, _)| *start);
        let starts: Vec<_> = self.0.range(first..=range.end).map(|(start, _)| *start).collect();
        let Some((&(mut left), rest)) = starts.split_first() else { return };
        for &right in rest {
            let alike = match (self.0.get(&left), self.0.get(&right)) {
                (Some(before), Some(after)) => before.0 == right && before.1 == after.1,
                _ => false,
            };
            if !alike {
                left = right;
            } else if let (Some(after), Some(before)) = (self.0.remove(&right), self.0.get_mut(&left)) {
                before.0 = after.0;
            }
        }
    }

    /// Every interval, with where it begins.
    pub(crate) fn cells(&mut self) -> impl Iterator<Item = (u64, &mut T)> {
        self.0.iter_mut().map(|(start, (_, value))| (*start, value))
    }
}

impl Space<AccessHistory> {
    /// Forgets what is over. Returns whether anything is left.
    pub(crate) fn retain(&mut self, keep: impl Fn(&Past) -> bool) -> bool {
        self.0.retain(|_, (_, history)| {
            history.past.retain(&keep);
            !history.past.is_empty()
        });
        !self.0.is_empty()
    }
}
