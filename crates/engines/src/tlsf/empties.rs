//! Empty regions. Each is one free chunk, which is cut only if no other chunk fits.
//!
//! They are not in the bins, which only contain chunks of regions in use. So the engine does not cut a region that
//! could be removed while another one has space. A single region is in the bins even if it is empty: a lone chunk that
//! is repeatedly allocated and freed then stays on the fast path.
//!
//! There are 64 lists, by power of two. Each is sorted, the largest region first, so the head shows if a region of the
//! list is large enough.

use crate::cast::index;
use crate::chunks::{Chunks, NONE};

/// The number of regions of one power of two that are checked for a smaller fit.
const LOOKS: u32 = 8;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct Empties {
    /// Bit `i`: `heads[i]` is a list.
    rows: u64,
    /// Free regions of `2^i` units and more, but less than `2^(i + 1)`.
    heads: [u32; 64],
}

impl Empties {
    pub(super) const fn new() -> Self {
        Self { rows: 0, heads: [NONE; 64] }
    }

    /// Adds the free chunk of an empty region. O(1) if its power of two has no larger region.
    pub(super) fn insert(&mut self, chunks: &mut Chunks, chunk: u32) {
        let size = chunks.size(chunk);
        let row = size.ilog2();
        let head = &mut self.heads[index(row & 63)];
        if *head == NONE || chunks.size(*head) <= size {
            chunks.list_push(head, chunk);
        } else {
            let mut before = *head;
            while chunks.list_next(before) != NONE && chunks.size(chunks.list_next(before)) > size {
                before = chunks.list_next(before);
            }
            chunks.list_insert_behind(before, chunk);
        }
        self.rows |= 1 << row;
    }

    /// Removes the free chunk of an empty region.
    pub(super) fn remove(&mut self, chunks: &mut Chunks, chunk: u32) {
        let row = chunks.size(chunk).ilog2();
        let head = &mut self.heads[index(row & 63)];
        chunks.list_remove(head, chunk);
        if *head == NONE {
            self.rows &= !(1 << row);
        }
    }

    /// An empty region of at least `size` units, if any: the smallest among a few of the first list that has one.
    pub(super) fn find(&self, chunks: &Chunks, size: u64) -> Option<u32> {
        let mut rows = self.rows & (u64::MAX << size.ilog2());
        while rows != 0 {
            let mut chunk = self.heads[index(rows.trailing_zeros() & 63)];
            // In each row after the first, all regions are large enough.
            if chunks.size(chunk) >= size {
                let mut next = chunk;
                for _ in 0..LOOKS {
                    next = chunks.list_next(next);
                    if next == NONE || chunks.size(next) < size {
                        break;
                    }
                    // Among equals, keeps the first: the one that became empty last.
                    if chunks.size(next) < chunks.size(chunk) {
                        chunk = next;
                    }
                }
                return Some(chunk);
            }
            rows &= rows - 1;
        }
        None
    }

    /// Returns true if there is none.
    #[inline]
    pub(super) const fn is_none(&self) -> bool {
        self.rows == 0
    }

    /// The largest empty region, if there is one.
    pub(super) fn any(&self) -> Option<u32> {
        self.rows.checked_ilog2().map(|row| self.heads[index(row & 63)])
    }

    /// The size of the largest empty region, or 0.
    pub(super) fn largest(&self, chunks: &Chunks) -> u64 {
        self.any().map_or(0, |chunk| chunks.size(chunk))
    }

    /// Asserts I5, and calls `visit` for each chunk in a list.
    pub(super) fn validate(&self, chunks: &Chunks, visit: &mut dyn FnMut(u32)) {
        for (row, &head) in (0_u32..).zip(&self.heads) {
            assert_eq!(head != NONE, self.rows >> row & 1 == 1, "I5: bit {row} of the empty regions");
            let mut above = u64::MAX;
            chunks.validate_list(head, &mut |chunk| {
                let size = chunks.size(chunk);
                assert_eq!(size.ilog2(), row, "I5: an empty region of {size} units is in list {row}");
                assert!(size <= above, "I5: the empty regions of list {row} are not in order");
                above = size;
                visit(chunk);
            });
        }
    }

    /// Damages I5 for a test.
    #[cfg(test)]
    pub(super) fn flip(&mut self, row: u32) {
        self.rows ^= 1 << row;
    }
}
