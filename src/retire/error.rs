//! What a clock refuses, and why.
#![forbid(unsafe_code)]

use std::collections::TryReserveError;
use std::error::Error;
use std::fmt;

use super::Ticket;
use super::ticket::MAX_LANES;

/// A clock has [`Clock::MAX_LANES`](super::Clock::MAX_LANES) lanes, and another was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyLanes;

impl fmt::Display for TooManyLanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a clock has at most {MAX_LANES} lanes")
    }
}

impl Error for TooManyLanes {}

/// Things wait for tickets of another clock than the one at hand, which never says that those are done.
///
/// What the clock at hand does say is done was collected nonetheless. The rest waits for its own clock; a ticket that
/// was given by mistake is never done, and what waits for it is best taken out or destroyed when the device is idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OtherClock {
    /// The lowest of those of another clock.
    pub ticket: Ticket,
    /// How many tickets of another clock something waits for.
    pub tickets: usize,
    /// What was collected all the same, as the call counts it.
    pub collected: usize,
}

impl fmt::Display for OtherClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ticket, tickets, collected } = self;
        write!(
            f,
            "{ticket:?} is of another clock, which alone says that it is done: {tickets} such tickets wait, and {collected} \
             of what is done was collected"
        )
    }
}

impl Error for OtherClock {}

/// A ticket is of another clock than those that are waited for already: one clock would never say that both are done.
/// Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MixedClocks {
    /// What was asked.
    pub ticket: Ticket,
    /// One that is waited for.
    pub waiting: Ticket,
}

impl fmt::Display for MixedClocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ticket, waiting } = self;
        write!(f, "{ticket:?} is of another clock than {waiting:?}, which is waited for already")
    }
}

impl Error for MixedClocks {}

/// Why there was no room for as many items. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReserveError {
    /// At most 2^32 - 1 items wait in one queue.
    TooMany {
        /// What was asked.
        additional: usize,
        /// Items that wait.
        waiting: usize,
    },
    /// The host has no memory for them.
    HostMemory {
        /// What was asked.
        additional: usize,
        /// What the host's allocator answered.
        source: TryReserveError,
    },
}

impl fmt::Display for ReserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany { additional, waiting } => write!(
                f,
                "there is no room for {additional} items beside the {waiting} that wait: at most 2^32 - 1 wait in one queue"
            ),
            Self::HostMemory { additional, source } => {
                write!(f, "there is no host memory for {additional} items: {source}")
            }
        }
    }
}

impl Error for ReserveError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::TooMany { .. } => None,
            Self::HostMemory { source, .. } => source.source(),
        }
    }
}

/// Why a submission was not entered. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SubmitError {
    /// The ticket was submitted or discarded before.
    NotOpen {
        /// What was asked.
        ticket: Ticket,
    },
    /// The ticket is of another clock.
    OtherClock {
        /// What was asked.
        ticket: Ticket,
    },
    /// After [`Clock::shutdown`](super::Clock::shutdown) nothing is submitted.
    ShutDown {
        /// What was asked.
        ticket: Ticket,
    },
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOpen { ticket } => write!(f, "{ticket:?} was submitted or discarded before"),
            Self::OtherClock { ticket } => write!(f, "{ticket:?} is of another clock"),
            Self::ShutDown { ticket } => write!(f, "{ticket:?} was submitted after the clock was shut down"),
        }
    }
}

impl Error for SubmitError {}

/// Why a recording was not discarded. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DiscardError {
    /// The ticket was submitted or discarded before.
    NotOpen {
        /// What was asked.
        ticket: Ticket,
    },
    /// The ticket is of another clock.
    OtherClock {
        /// What was asked.
        ticket: Ticket,
    },
}

impl fmt::Display for DiscardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOpen { ticket } => write!(f, "{ticket:?} was submitted or discarded before"),
            Self::OtherClock { ticket } => write!(f, "{ticket:?} is of another clock"),
        }
    }
}

impl Error for DiscardError {}
