//! Detects that this process is the child of the one that created a recording.
//!
//! A child of `fork` shares the mapped files, and would overwrite the records of its parent.
#![cfg_attr(unix, expect(unsafe_code, reason = "the C library is called"))]

use std::sync::atomic::{AtomicU32, Ordering};

/// The number of forks from the first process to this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Returns a number that differs in each child of `fork` that has no program of its own.
#[inline]
pub(super) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Counts forks from now on. Later calls do nothing.
#[cfg(unix)]
pub(super) fn count() {
    static REGISTERED: std::sync::Once = std::sync::Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the function only adds to an atomic number, which is allowed in the child of a process with threads.
        // If the layer is unloaded, the C library forgets the function.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(next_generation)) };
    });
}

/// Does nothing: there is no `fork`.
#[cfg(not(unix))]
pub(super) fn count() {}

#[cfg(unix)]
extern "C" fn next_generation() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_child_has_another_generation() {
        count();
        count();
        let before = generation();
        // SAFETY: the child reads an atomic number and ends, both of which are allowed after `fork`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let differs = generation() == before + 1;
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(if differs { 7 } else { 1 }) };
        }
        assert!(child > 0, "there is a child");
        let mut status = 0;
        // SAFETY: the number lives during the call.
        let ended = unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!((ended, libc::WEXITSTATUS(status)), (child, 7));
        assert_eq!(generation(), before, "the parent stays as it is");
    }
}
