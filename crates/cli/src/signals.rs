//! Passes signals to a running program, so that ending `sublet watch` ends the program, and `sublet` still reports.

use std::io;
use std::process::{Child, ExitStatus};
#[cfg(unix)]
use std::sync::Arc;
#[cfg(unix)]
use std::sync::atomic::{AtomicBool, Ordering};

/// Signals to this process. From its creation on they do not end the process, until the program has ended.
pub(crate) struct CaughtSignals {
    #[cfg(unix)]
    signals: signal_hook::iterator::Signals,
    #[cfg(unix)]
    has_ended: Arc<AtomicBool>,
}

/// Passes signals until it is stopped.
pub(crate) struct SignalPassing {
    #[cfg(unix)]
    handle: signal_hook::iterator::Handle,
    #[cfg(unix)]
    has_ended: Arc<AtomicBool>,
}

#[cfg(unix)]
mod unix {
    use std::io::IsTerminal as _;
    use std::os::unix::process::ExitStatusExt as _;
    use std::thread;

    use rustix::process::{Pid, Signal, kill_process};
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    use signal_hook::flag;
    use signal_hook::iterator::Signals;

    use super::{Arc, AtomicBool, CaughtSignals, Child, ExitStatus, SignalPassing, io};
    use crate::disposition::is_ignored;

    pub(super) fn catch() -> io::Result<CaughtSignals> {
        let all = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];
        // The program inherits that a signal is ignored.
        let caught = all.into_iter().filter(|&signal| !is_ignored(signal)).collect::<Vec<_>>();
        let has_ended = Arc::new(AtomicBool::new(false));
        let signals = Signals::new(&caught)?;
        for signal in caught {
            flag::register_conditional_default(signal, Arc::clone(&has_ended))?;
        }
        Ok(CaughtSignals { signals, has_ended })
    }

    pub(super) fn pass_to(
        CaughtSignals { mut signals, has_ended }: CaughtSignals,
        child: &Child,
    ) -> SignalPassing {
        let handle = signals.handle();
        let child = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        // A terminal sends these two to the program as well.
        let from_terminal = |signal| [SIGINT, SIGQUIT].contains(&signal) && io::stdin().is_terminal();
        thread::spawn(move || {
            for signal in signals.forever().filter(|&signal| !from_terminal(signal)) {
                if let (Some(child), Some(signal)) = (child, Signal::from_named_raw(signal)) {
                    // The program may have ended.
                    let _ = kill_process(child, signal);
                }
            }
        });
        SignalPassing { handle, has_ended }
    }

    pub(super) fn signal(status: ExitStatus) -> Option<i32> {
        status.signal()
    }
}

/// Catches signals, for a program that is about to start.
#[cfg(unix)]
pub(crate) fn catch() -> io::Result<CaughtSignals> {
    unix::catch()
}

/// Does nothing: a console sends its events to all its programs.
#[cfg(not(unix))]
pub(crate) fn catch() -> io::Result<CaughtSignals> {
    Ok(CaughtSignals {})
}

/// Returns the signal that ended a program.
#[cfg(unix)]
pub(crate) fn signal(status: ExitStatus) -> Option<i32> {
    unix::signal(status)
}

/// Returns nothing: programs end only with codes.
#[cfg(not(unix))]
pub(crate) fn signal(_: ExitStatus) -> Option<i32> {
    None
}

impl SignalPassing {
    /// Signals have their default effect from now on.
    pub(crate) fn stop(self) {
        #[cfg(unix)]
        {
            self.handle.close();
            self.has_ended.store(true, Ordering::SeqCst);
        }
    }
}

impl CaughtSignals {
    /// Begins to pass the signals to a program.
    #[cfg(unix)]
    pub(crate) fn pass_to(self, child: &Child) -> SignalPassing {
        unix::pass_to(self, child)
    }

    /// Does nothing.
    #[cfg(not(unix))]
    pub(crate) fn pass_to(self, _: &Child) -> SignalPassing {
        SignalPassing {}
    }
}
