//! The host memory of this process.
#![expect(unsafe_code, reason = "calls the C library")]

/// Returns the bytes that the C library has handed out, to Rust and to C++. `None` if the system does not report them.
pub(crate) fn bytes() -> Option<i64> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: glibc has the function since version 2.33, and it has no preconditions.
        let found = unsafe { libc::mallinfo2() };
        Some((found.uordblks + found.hblkhd) as i64)
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}
