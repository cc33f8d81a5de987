//! Detects setuid programs.
#![expect(unsafe_code, reason = "the C library is called")]

/// Returns true if the kernel started the program with rights that its user does not have: setuid, setgid,
/// capabilities. The C library ignores `LD_PRELOAD` in these cases.
pub(super) fn is_secure() -> bool {
    // SAFETY: `getauxval` reads a constant table of the process, and accepts any number.
    (unsafe { libc::getauxval(libc::AT_SECURE) }) != 0
}
