//! The tokens of real threads. A thread has a token from its first call of [`current`] to its end.

use std::cell::Cell;

use super::TOKENS;
use super::taken::{IN_A_WORD, TakenTokens};
use crate::base::sync::atomic::{AtomicU32, Ordering};
use sublet_engines::cast::index;

/// The thread has not requested a token yet.
const UNKNOWN: u32 = u32::MAX;
/// The token of a thread whose lease is destroyed.
const LAST: u32 = 0;

thread_local! {
    // Has no destructor, so that it can be read at any time, without a check of its state.
    static TOKEN: Cell<u32> = const { Cell::new(UNKNOWN) };
    // Accessed once in a thread's life, which registers its destructor.
    static LEASE: Lease = const { Lease { token: Cell::new(UNKNOWN) } };
}

static TAKEN: TakenTokens<{ index(TOKENS / IN_A_WORD) }> = TakenTokens::new();
/// The number of threads that found all tokens taken.
static SHARED: AtomicU32 = AtomicU32::new(0);

/// The calling thread's token, less than [`TOKENS`].
///
/// Never panics, even while the thread's locals are destroyed. It may then return another thread's token.
#[inline]
pub(crate) fn current() -> u32 {
    let token = TOKEN.try_with(Cell::get).unwrap_or(LAST);
    if token == UNKNOWN { first() } else { token }
}

#[cold]
#[inline(never)]
fn first() -> u32 {
    let token = LEASE.try_with(|lease| {
        let token = TAKEN.take();
        lease.token.set(token.unwrap_or(UNKNOWN));
        // All are taken. Sharing threads are spread over all tokens.
        token.unwrap_or_else(shared)
    });
    let token = token.unwrap_or(LAST);
    // Fails only on platforms where every thread-local has a destructor, after this one's has run.
    let _ = TOKEN.try_with(|known| known.set(token));
    token
}

/// Returns a token that other threads may have as well. Successive calls rotate through all tokens.
fn shared() -> u32 {
    SHARED.fetch_add(1, Ordering::Relaxed) % TOKENS
}

/// Sets the token of the calling thread.
#[cfg(test)]
pub(crate) fn pose_as(token: u32) {
    let _ = TOKEN.try_with(|known| known.set(token));
}

/// Releases the token when the thread ends.
struct Lease {
    token: Cell<u32>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Destructors that run after this one still read this token, which is good enough for a hint.
        let token = self.token.replace(UNKNOWN);
        if token != UNKNOWN {
            TAKEN.give_back(token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_finds_none_shares_with_each_in_turn() {
        // No other test has as many threads as there are tokens.
        SHARED.store(u32::MAX, Ordering::Relaxed);
        assert_eq!([shared(), shared(), shared()], [TOKENS - 1, 0, 1]);
    }
}
