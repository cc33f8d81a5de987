//! How this process treats a signal.
#![expect(unsafe_code, reason = "the C library is called")]

use std::{mem, ptr};

/// Returns true if a signal is ignored: `nohup` and shells start programs so.
pub(crate) fn is_ignored(signal: i32) -> bool {
    // SAFETY: all fields are numbers, sets of bits and optional functions, for which zeros are valid.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: without a new action, the call only writes the current one, and `action` lives during the call.
    let result = unsafe { libc::sigaction(signal, ptr::null(), &mut action) };
    result == 0 && action.sa_sigaction == libc::SIG_IGN
}
