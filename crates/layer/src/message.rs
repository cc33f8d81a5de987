//! Messages to the user.
#![cfg_attr(unix, expect(unsafe_code, reason = "the C library is called"))]

use std::io::{self, Write as _};

/// Writes a line to standard error, which the program may have closed.
pub(crate) fn complain(line: &str) {
    let line = format!("sublet: {line}\n");
    without_signals(|| {
        let _ = io::stderr().write_all(line.as_bytes());
    });
}

/// The signals that a write may cause: nobody reads the pipe, the file is too long, the terminal belongs to another
/// program. By default, each of them ends or stops the program.
#[cfg(unix)]
const CAUSED: [libc::c_int; 3] = [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGTTOU];

/// Calls a function, and takes away the signals that it causes in this thread.
#[cfg(unix)]
fn without_signals(write: impl FnOnce()) {
    let (caused, mut before) = (set_of(&CAUSED), set_of(&[]));
    // SAFETY: both sets live during the call.
    if unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &caused, &mut before) } != 0 {
        return;
    }
    let others = CAUSED.map(is_pending);
    write();
    for (signal, is_other) in CAUSED.into_iter().zip(others) {
        let mut taken = 0;
        if !is_other && is_pending(signal) {
            // SAFETY: set and number live during the call. It returns at once, because the signal is pending.
            unsafe { libc::sigwait(&set_of(&[signal]), &mut taken) };
        }
    }
    // SAFETY: the set lives during the call, which takes no pointer to the previous one.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
}

/// Calls a function: a write causes no signals.
#[cfg(not(unix))]
fn without_signals(write: impl FnOnce()) {
    write();
}

#[cfg(unix)]
fn set_of(signals: &[libc::c_int]) -> libc::sigset_t {
    // SAFETY: a set of signals consists of integers.
    let mut set = unsafe { std::mem::zeroed() };
    // SAFETY: the set lives during the call.
    unsafe { libc::sigemptyset(&mut set) };
    for &signal in signals {
        // SAFETY: the set lives during the call.
        unsafe { libc::sigaddset(&mut set, signal) };
    }
    set
}

/// Returns true if a blocked signal waits for this thread.
#[cfg(unix)]
fn is_pending(signal: libc::c_int) -> bool {
    let mut set = set_of(&[]);
    // SAFETY: the set lives during the call.
    unsafe { libc::sigpending(&mut set) };
    // SAFETY: the set lives during the call.
    unsafe { libc::sigismember(&set, signal) == 1 }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Command, Stdio};
    use std::{env, io};

    use super::*;

    /// The second process runs the same test. The signal of a write would end it before the one that it raises.
    #[test]
    fn a_message_that_nobody_reads_does_not_end_the_program() {
        const CHILD: &str = "SUBLET_TEST_CHILD";
        if env::var_os(CHILD).is_some() {
            // SAFETY: restores what Rust's start changes, as in a program in C.
            unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
            io::read_to_string(io::stdin()).unwrap();
            complain("nobody reads this");
            println!("it is alive");
            // SAFETY: ends this process, if the signal is no longer blocked.
            unsafe { libc::raise(libc::SIGPIPE) };
            return;
        }
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["a_message_that_nobody_reads", "--nocapture"]).env(CHILD, "1");
        child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        drop(child.stderr.take());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("it is alive"), "{said}");
        assert_eq!(output.status.signal(), Some(libc::SIGPIPE), "{said}");
    }
}
