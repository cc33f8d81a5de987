//! Free ranges, and the search for the first that fits.

use std::ops::Range;

use sublet_engines::Alignment;
use sublet_engines::Key;
use sublet_engines::cast::index;

/// The search tries this many ranges that are large enough but may be misaligned. After that it only considers ranges
/// that fit at any alignment.
const LOOKS: u32 = 32;

/// A free range of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct FreeRange {
    /// Bytes from the start of the block. Each placement moves it up.
    pub(super) start: u64,
    pub(super) end: u64,
    /// The used chunk before the range; `None` at the start of a block.
    pub(super) before: Option<Key>,
}

/// A taken place, with the state of its range before.
#[derive(Clone, Copy, Debug)]
pub(super) struct TakenRange {
    /// The index of the range.
    pub(super) range: usize,
    /// Bytes from the start of the block.
    pub(super) offset: u64,
    start: u64,
}

/// Ranges in the order in which they are filled, under a tree of maximum sizes.
///
/// ```text
///   tree[1]                 the largest of all
///   tree[2]     tree[3]     of the first half, of the second
///   ...
///   tree[leaves + i]        bytes of range i; 0 if it is closed
/// ```
#[derive(Debug)]
pub(super) struct FillRanges {
    pub(super) ranges: Vec<FreeRange>,
    leaves: usize,
    tree: Vec<u64>,
    /// Bytes of all leaves.
    free: u64,
}

impl FillRanges {
    pub(super) fn new(ranges: Vec<FreeRange>) -> Self {
        let leaves = ranges.len().next_power_of_two();
        let mut tree = vec![0; 2 * leaves];
        let mut free = 0;
        for (leaf, range) in tree[leaves..].iter_mut().zip(&ranges) {
            *leaf = range.end - range.start;
            free += *leaf;
        }
        for at in (1..leaves).rev() {
            tree[at] = tree[2 * at].max(tree[2 * at + 1]);
        }
        Self { ranges, leaves, tree, free }
    }

    /// Free bytes in all open ranges.
    pub(super) fn free(&self) -> u64 {
        self.free
    }

    fn set(&mut self, range: usize, size: u64) {
        let mut at = self.leaves + range;
        self.free = self.free - self.tree[at] + size;
        self.tree[at] = size;
        while at > 1 {
            at /= 2;
            let largest = self.tree[2 * at].max(self.tree[2 * at + 1]);
            if self.tree[at] == largest {
                break;
            }
            self.tree[at] = largest;
        }
    }

    /// Excludes these ranges from placement.
    pub(super) fn close(&mut self, ranges: Range<usize>) {
        ranges.for_each(|range| self.set(range, 0));
    }

    /// Undoes [`Self::close`].
    pub(super) fn open(&mut self, ranges: Range<usize>) {
        for range in ranges {
            let FreeRange { start, end, .. } = self.ranges[range];
            self.set(range, end - start);
        }
    }

    /// The first range of at least `size` bytes, where `size` is not 0. O(log n).
    fn first(&self, within: &Range<usize>, size: u64) -> Option<usize> {
        if within.is_empty() {
            return None;
        }
        let mut at = self.leaves + within.start;
        loop {
            if self.tree[at] >= size {
                while at < self.leaves {
                    at *= 2;
                    at += usize::from(self.tree[at] < size);
                }
                let found = at - self.leaves;
                return (found < within.end).then_some(found);
            }
            // Climbs to a left child, then continues with its right sibling.
            while at & 1 == 1 {
                at /= 2;
            }
            if at == 0 {
                return None;
            }
            at += 1;
        }
    }

    /// Takes the first place for `size` bytes at a multiple of `alignment`. O(log n).
    pub(super) fn take(
        &mut self,
        within: Range<usize>,
        size: u64,
        alignment: Alignment,
    ) -> Option<TakenRange> {
        let mut rest = within;
        for _ in 0..LOOKS {
            let range = self.first(&rest, size)?;
            if let Some(taken) = self.take_of(range, size, alignment) {
                return Some(taken);
            }
            rest.start = range + 1;
        }
        let range = self.first(&rest, size.checked_add(alignment.mask())?)?;
        self.take_of(range, size, alignment)
    }

    fn take_of(&mut self, range: usize, size: u64, alignment: Alignment) -> Option<TakenRange> {
        let FreeRange { start, end, .. } = self.ranges[range];
        let offset = alignment.align_up(start)?;
        let behind = offset.checked_add(size).filter(|&behind| behind <= end)?;
        self.ranges[range].start = behind;
        self.set(range, end - behind);
        Some(TakenRange { range, offset, start })
    }

    /// Undoes the latest placement that is not undone yet.
    pub(super) fn undo(&mut self, taken: TakenRange) {
        let range = &mut self.ranges[taken.range];
        range.start = taken.start;
        let size = range.end - range.start;
        self.set(taken.range, size);
    }
}

/// The first `before` ranges of a block.
pub(super) fn below(ranges: &Range<usize>, before: u32) -> Range<usize> {
    ranges.start..ranges.end.min(ranges.start + index(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aligned(alignment: u64) -> Alignment {
        Alignment::new(alignment).expect("a power of two")
    }

    fn range((start, end): (u64, u64)) -> FreeRange {
        FreeRange { start, end, before: None }
    }

    /// The first range that fits, by linear search, and the offset in it.
    fn naive(
        ranges: &[(u64, u64)],
        open: &[bool],
        within: &Range<usize>,
        size: u64,
        alignment: u64,
    ) -> Option<(usize, u64)> {
        within.clone().filter(|&at| open[at]).find_map(|at| {
            let offset = ranges[at].0.next_multiple_of(alignment);
            (offset + size <= ranges[at].1).then_some((at, offset))
        })
    }

    /// Checks places and free bytes against a linear search, also after undoing.
    #[test]
    fn places_and_sums_are_those_of_the_ranges() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut model: Vec<(u64, u64)> = (0..random.u64(..24))
                .map(|at| {
                    let start = 4096 * at + random.u64(..2000);
                    (start, start + random.u64(1..=2000))
                })
                .collect();
            let mut open = vec![true; model.len()];
            let mut ranges = FillRanges::new(model.iter().copied().map(range).collect());
            let mut taken = Vec::new();
            for _ in 0..200 {
                let end = random.usize(..=model.len());
                let within = random.usize(..=end)..end;
                match random.u32(..8) {
                    0 if taken.is_empty() => {
                        ranges.close(within.clone());
                        open[within].fill(false);
                    }
                    1 if taken.is_empty() => {
                        ranges.open(within.clone());
                        open[within].fill(true);
                    }
                    2 | 3 => {
                        if let Some((undone, before)) = taken.pop() {
                            let TakenRange { range, .. } = undone;
                            ranges.undo(undone);
                            model[range].0 = before;
                        }
                    }
                    4 => taken.clear(),
                    _ => {
                        let (size, alignment) = (random.u64(1..=1500), 1 << random.u32(..11));
                        let expected = naive(&model, &open, &within, size, alignment);
                        let found = ranges.take(within, size, aligned(alignment));
                        assert_eq!(found.map(|found| (found.range, found.offset)), expected, "{seed}");
                        if let Some(found) = found {
                            taken.push((found, model[found.range].0));
                            model[found.range].0 = found.offset + size;
                        }
                    }
                }
                let free: u64 = model.iter().zip(&open).filter(|it| *it.1).map(|(it, _)| it.1 - it.0).sum();
                assert_eq!(ranges.free(), free, "{seed}");
            }
        }
    }

    /// After a number of misaligned ranges, the search takes one that fits at any alignment.
    #[test]
    fn ranges_that_lie_badly_are_looked_at_so_often() {
        let badly = |at: u64| (1024 * at + 1, 1024 * at + 201);
        for (many, last, found) in [(31, 200, true), (32, 200, false), (32, 327, true)] {
            let mut all: Vec<_> = (0..many).map(badly).collect();
            all.push((1024 * many, 1024 * many + last));
            let mut ranges = FillRanges::new(all.into_iter().map(range).collect());
            let taken = ranges.take(0..ranges.ranges.len(), 200, aligned(128));
            assert_eq!(taken.map(|taken| taken.offset), found.then_some(1024 * many), "{many}, {last}");
        }
    }
}
