//! A set of small integers with fast access to its minimum.

use sublet_engines::cast::{index, narrow};

/// A set of pool indices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PoolMask {
    words: Vec<u64>,
}

impl PoolMask {
    pub(super) fn insert(&mut self, at: u32) {
        let word = index(at / u64::BITS);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (at % u64::BITS);
    }

    pub(super) fn remove(&mut self, at: u32) {
        if let Some(word) = self.words.get_mut(index(at / u64::BITS)) {
            *word &= !(1 << (at % u64::BITS));
        }
    }

    pub(super) fn set(&mut self, at: u32, is_in: bool) {
        if is_in {
            self.insert(at);
        } else {
            self.remove(at);
        }
    }

    pub(super) fn contains(&self, at: u32) -> bool {
        self.words.get(index(at / u64::BITS)).is_some_and(|word| word & 1 << (at % u64::BITS) != 0)
    }

    /// Returns the minimum. O(n / 64) for numbers below n.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        let word = self.words.iter().position(|&word| word != 0)?;
        Some(narrow(word) * u64::BITS + self.words[word].trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_is_found_whatever_was_there_before() {
        let mut mask = PoolMask::default();
        assert_eq!(mask.first(), None);
        for at in [200, 64, 63, 5] {
            mask.insert(at);
            assert_eq!(mask.first(), Some(at));
        }
        for (gone, first) in [(5, Some(63)), (64, Some(63)), (63, Some(200)), (200, None)] {
            mask.remove(gone);
            assert!(!mask.contains(gone));
            assert_eq!(mask.first(), first);
        }
        mask.remove(100_000);
        assert!(!mask.contains(100_000));
    }
}
