//! The map of taken tokens.

use crate::base::sync::atomic::{AtomicU32, Ordering};
use sublet_engines::cast::index;

/// Tokens in one word of the map.
pub(super) const IN_A_WORD: u32 = u32::BITS;

/// A map of the tokens. The bit of a token is set while a living thread has it.
pub(super) struct TakenTokens<const WORDS: usize> {
    words: [AtomicU32; WORDS],
}

impl<const WORDS: usize> TakenTokens<WORDS> {
    #[cfg(not(all(loom, test)))]
    pub(super) const fn new() -> Self {
        Self { words: [const { AtomicU32::new(0) }; WORDS] }
    }

    #[cfg(all(loom, test))]
    pub(super) fn new() -> Self {
        Self { words: std::array::from_fn(|_| AtomicU32::new(0)) }
    }

    /// Takes the lowest free token. It publishes nothing, so relaxed order is enough.
    pub(super) fn take(&self) -> Option<u32> {
        for (at, word) in (0_u32..).zip(&self.words) {
            let taken = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |bits| {
                // Sets the lowest clear bit. `bits + 1` cannot overflow.
                (bits != u32::MAX).then(|| bits | (bits + 1))
            });
            if let Ok(bits) = taken {
                return Some(at * IN_A_WORD + bits.trailing_ones());
            }
        }
        None
    }

    pub(super) fn give_back(&self, token: u32) {
        let bit = 1_u32 << (token % IN_A_WORD);
        if let Some(word) = self.words.get(index(token / IN_A_WORD)) {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_token_comes_first() {
        let taken = TakenTokens::<4>::new();
        for token in 0..100 {
            assert_eq!(taken.take(), Some(token));
        }
        for token in [70, 3, 31, 32] {
            taken.give_back(token);
        }
        for token in [3, 31, 32, 70, 100] {
            assert_eq!(taken.take(), Some(token));
        }
    }

    #[test]
    fn all_can_be_taken_and_no_more() {
        let taken = TakenTokens::<2>::new();
        for token in 0..64 {
            assert_eq!(taken.take(), Some(token));
        }
        assert_eq!(taken.take(), None);
        taken.give_back(63);
        assert_eq!(taken.take(), Some(63));
        taken.give_back(64);
        assert_eq!(taken.take(), None, "there is no such token");
    }
}

#[cfg(all(loom, test))]
mod modelled {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::base::sync::model::check;

    #[test]
    fn loom_no_token_is_given_twice() {
        check(|| {
            let taken = Arc::new(TakenTokens::<1>::new());
            let others = [0; 2].map(|_| {
                let taken = Arc::clone(&taken);
                thread::spawn(move || taken.take().unwrap())
            });
            let mut tokens = others.map(|other| other.join().unwrap());
            tokens.sort_unstable();
            assert_eq!(tokens, [0, 1]);
        });
    }

    #[test]
    fn loom_a_token_that_comes_back_is_not_lost() {
        check(|| {
            let taken = Arc::new(TakenTokens::<1>::new());
            assert_eq!(taken.take(), Some(0));
            let other = {
                let taken = Arc::clone(&taken);
                thread::spawn(move || taken.take().unwrap())
            };
            taken.give_back(0);
            let token = other.join().unwrap();
            assert!(token <= 1, "{token}");
            assert_eq!(taken.take(), Some(1 - token));
        });
    }
}
