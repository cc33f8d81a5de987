//! The regions that hold nothing: each is one free chunk, and the last to be cut.
//!
//! They are kept out of the bins, so that what the bins offer is always in a region that is used already, and a region
//! that could be given back is not broken into while another has room. Where there is only one region there is no other,
//! and what is free in it is in the bins whether it is empty or not: so the only chunk that is made and freed again and
//! again stays on the fast path. There are 64 lists, by power of two; each is ordered, the largest region first, so that
//! its head tells whether it has one that is large enough.
#![forbid(unsafe_code)]

use crate::base::cast::index;
use crate::metadata::chunks::{Chunks, NONE};

/// How many regions of one power of two are looked at for a smaller one that fits.
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

    /// Puts in the one free chunk of an empty region. O(1) if its power of two has no larger region.
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

    /// Takes out the one free chunk of an empty region.
    pub(super) fn remove(&mut self, chunks: &mut Chunks, chunk: u32) {
        let row = chunks.size(chunk).ilog2();
        let head = &mut self.heads[index(row & 63)];
        chunks.list_remove(head, chunk);
        if *head == NONE {
            self.rows &= !(1 << row);
        }
    }

    /// An empty region of at least `size` units, if there is one, and a small one if a few looks find it.
    pub(super) fn find(&self, chunks: &Chunks, size: u64) -> Option<u32> {
        let mut rows = self.rows & (u64::MAX << size.ilog2());
        while rows != 0 {
            let mut chunk = self.heads[index(rows.trailing_zeros() & 63)];
            // Only the first row can have no region that is large enough.
            if chunks.size(chunk) >= size {
                let mut next = chunk;
                for _ in 0..LOOKS {
                    next = chunks.list_next(next);
                    if next == NONE || chunks.size(next) < size {
                        break;
                    }
                    // The first of equals stays: the one that became empty last.
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

    /// Whether there is none.
    #[inline]
    pub(super) const fn is_none(&self) -> bool {
        self.rows == 0
    }

    /// One of them, if there is one.
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

    /// Damage for a test of I5.
    #[cfg(test)]
    pub(super) fn flip(&mut self, row: u32) {
        self.rows ^= 1 << row;
    }
}
