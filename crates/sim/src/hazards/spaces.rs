//! What is known of the bytes of a memory, or of the subresources of an image: intervals that are split where
//! something differs, and merged where it does not.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::ops::Range;

use super::past::Past;

/// The most accesses that an interval remembers. Areas of an image that do not overlap are kept one by one; of more
/// than these the oldest is forgotten.
const MOST: usize = 64;

/// Intervals by their first unit. Where there is none, nothing happened.
#[derive(Debug, Default)]
pub(super) struct Space(BTreeMap<u64, Cell>);

#[derive(Debug)]
pub(super) struct Cell {
    end: u64,
    pub(super) past: Vec<Past>,
}

impl Cell {
    /// A write that was read is reported only if the reads have nothing to report.
    pub(super) fn reads_first(&self) -> impl Iterator<Item = &Past> {
        let reads = self.past.iter().filter(|past| !past.access.write);
        reads.chain(self.past.iter().filter(|past| past.access.write))
    }

    pub(super) fn push(&mut self, past: Past) {
        if self.past.len() == MOST {
            self.past.remove(0);
        }
        self.past.push(past);
    }
}

impl Space {
    /// Makes an interval begin at `at`, if one holds it.
    pub(super) fn split(&mut self, at: u64) {
        let Some((_, cell)) = self.0.range_mut(..at).next_back() else { return };
        if cell.end > at {
            let rest = Cell { end: cell.end, past: cell.past.clone() };
            cell.end = at;
            self.0.insert(at, rest);
        }
    }

    /// The intervals that overlap a range, each with where it begins and ends.
    pub(super) fn overlapping(&self, range: &Range<u64>) -> impl Iterator<Item = (Range<u64>, &Cell)> {
        let first = self.0.range(..=range.start).next_back().map_or(range.start, |(start, _)| *start);
        let cells = self.0.range(first..range.end.max(first));
        let start = range.start;
        cells.filter(move |(_, cell)| cell.end > start).map(|(start, cell)| (*start..cell.end, cell))
    }

    /// Changes all that is in a range, also where nothing was.
    pub(super) fn change(&mut self, range: &Range<u64>, change: impl Fn(&mut Cell)) {
        self.split(range.start);
        self.split(range.end);
        let mut at = range.start;
        let known: Vec<_> = self.0.range(range.clone()).map(|(start, cell)| (*start, cell.end)).collect();
        for (start, end) in known.into_iter().chain([(range.end, range.end)]) {
            if at < start {
                self.0.insert(at, Cell { end: start, past: Vec::new() });
            }
            at = end;
        }
        for (_, cell) in self.0.range_mut(range.clone()) {
            change(cell);
        }
        self.merge(range);
    }

    /// Joins intervals in and beside a range that are alike.
    fn merge(&mut self, range: &Range<u64>) {
        let first = self.0.range(..range.start).next_back().map_or(range.start, |(start, _)| *start);
        let starts: Vec<_> = self.0.range(first..=range.end).map(|(start, _)| *start).collect();
        let Some((&(mut left), rest)) = starts.split_first() else { return };
        for &right in rest {
            let alike = match (self.0.get(&left), self.0.get(&right)) {
                (Some(before), Some(after)) => before.end == right && before.past == after.past,
                _ => false,
            };
            if !alike {
                left = right;
            } else if let (Some(after), Some(before)) = (self.0.remove(&right), self.0.get_mut(&left)) {
                before.end = after.end;
            }
        }
    }

    /// Every interval, with where it begins.
    pub(super) fn cells(&mut self) -> impl Iterator<Item = (u64, &mut Cell)> {
        self.0.iter_mut().map(|(start, cell)| (*start, cell))
    }

    /// Forgets what is over. Whether anything is left.
    pub(super) fn retain(&mut self, keep: impl Fn(&Past) -> bool) -> bool {
        self.0.retain(|_, cell| {
            cell.past.retain(&keep);
            !cell.past.is_empty()
        });
        !self.0.is_empty()
    }
}
