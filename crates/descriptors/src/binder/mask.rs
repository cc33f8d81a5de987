//! Sets of small integers, as bits.

use sublet_engines::cast::{index, narrow};

const WORD: u32 = u64::BITS;

/// A set of element indices. Only [`Self::reset`] changes its capacity.
#[derive(Clone, Debug, Default)]
pub(super) struct Mask {
    words: Vec<u64>,
}

impl Mask {
    /// Clears the set, and resizes it for `elements`.
    pub(super) fn reset(&mut self, elements: u32) {
        self.words.clear();
        self.words.resize(index(elements.div_ceil(WORD)), 0);
    }

    /// Adds an element. Returns true if it is new.
    #[inline]
    pub(super) fn insert(&mut self, element: u32) -> bool {
        let bit = 1 << (element % WORD);
        let word = &mut self.words[index(element / WORD)];
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    #[inline]
    pub(super) fn contains(&self, element: u32) -> bool {
        self.words[index(element / WORD)] & (1 << (element % WORD)) != 0
    }

    /// Copies the elements of `other`, which has the same capacity.
    pub(super) fn copy_from(&mut self, other: &Self) {
        self.words.copy_from_slice(&other.words);
    }

    /// Removes all elements, and passes each to `visit`.
    pub(super) fn drain(&mut self, mut visit: impl FnMut(u32)) {
        for (at, word) in self.words.iter_mut().enumerate() {
            while *word != 0 {
                visit(narrow(at) * WORD + word.trailing_zeros());
                *word &= *word - 1;
            }
        }
    }
}

/// Returns the indices of the set bits of `mask`, lowest first.
#[inline]
pub(super) fn bits(mut mask: u32) -> impl Iterator<Item = usize> + Clone {
    std::iter::from_fn(move || {
        let lowest = (mask != 0).then(|| index(mask.trailing_zeros()))?;
        mask &= mask - 1;
        Some(lowest)
    })
}

/// Returns the runs of consecutive set bits: the index of the first bit, and the length.
#[inline]
pub(super) fn runs(mut mask: u32) -> impl Iterator<Item = (usize, usize)> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let first = mask.trailing_zeros();
        let count = (mask >> first).trailing_ones();
        // A shift by 32 would overflow.
        mask &= u32::MAX.checked_shl(first + count).unwrap_or(0);
        Some((index(first), index(count)))
    })
}

/// Returns a mask of the `count` lowest bits.
#[inline]
pub(super) fn lowest(count: usize) -> u32 {
    1_u32.checked_shl(narrow(count)).map_or(u32::MAX, |bit| bit - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_there_once_they_are_put_in_and_until_they_are_drained() {
        let mut mask = Mask::default();
        mask.reset(130);
        for element in [0, 63, 64, 129] {
            assert!(!mask.contains(element));
            assert!(mask.insert(element));
            assert!(mask.contains(element) && !mask.insert(element));
        }
        let mut copy = Mask::default();
        copy.reset(130);
        copy.copy_from(&mask);
        let mut found = Vec::new();
        copy.drain(|element| found.push(element));
        assert_eq!(found, [0, 63, 64, 129]);
        copy.drain(|_| panic!("it is empty"));
        mask.reset(130);
        assert!(!mask.contains(63));
    }

    #[test]
    fn bits_and_runs_come_from_the_lowest_up() {
        assert_eq!(bits(0).count(), 0);
        assert_eq!(bits(0x8000_0005).collect::<Vec<_>>(), [0, 2, 31]);
        assert_eq!(runs(0).count(), 0);
        assert_eq!(runs(0b1011_0111).collect::<Vec<_>>(), [(0, 3), (4, 2), (7, 1)]);
        assert_eq!(runs(u32::MAX).collect::<Vec<_>>(), [(0, 32)]);
        assert_eq!(runs(0xF000_0000).collect::<Vec<_>>(), [(28, 4)]);
        assert_eq!([lowest(0), lowest(3), lowest(31), lowest(32)], [0, 7, u32::MAX >> 1, u32::MAX]);
    }
}
