//! What a clock refuses, and why.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use super::Ticket;
use super::ticket::MAX_LANES;

/// A clock has [`Clock::MAX_LANES`](super::Clock::MAX_LANES) lanes, and another was asked for.
///
/// ```
/// let clock = sublet::retire::Clock::new();
/// while clock.add_lane().is_ok() {}
/// assert_eq!(clock.add_lane().unwrap_err().to_string(), "a clock has at most 64 lanes");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyLanes;

impl fmt::Display for TooManyLanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a clock has at most {MAX_LANES} lanes")
    }
}

impl Error for TooManyLanes {}

/// Why a submission was not entered. Nothing was changed.
///
/// ```
/// # use sublet::retire::{Clock, SubmitError};
/// let clock = Clock::new();
/// let ticket = clock.open(clock.add_lane()?);
/// clock.submit(ticket, 1)?;
/// assert_eq!(clock.submit(ticket, 2), Err(SubmitError::NotOpen { ticket }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
///
/// ```
/// # use sublet::retire::{Clock, DiscardError};
/// let clock = Clock::new();
/// let ticket = clock.open(clock.add_lane()?);
/// clock.discard(ticket)?;
/// assert_eq!(clock.discard(ticket), Err(DiscardError::NotOpen { ticket }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
