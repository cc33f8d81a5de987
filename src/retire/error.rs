//! Errors of clocks and queues.

use std::collections::TryReserveError;

use super::Ticket;
use super::ticket::MAX_TIMELINES;

/// The clock already has [`Clock::MAX_TIMELINES`](super::Clock::MAX_TIMELINES) timelines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyTimelines;

sublet_engines::errors! { struct TooManyTimelines {} => "a clock has at most {MAX_TIMELINES} timelines" }

/// Items wait for tickets of another clock. This clock never reports those as done.
///
/// Items whose tickets are done were collected. The others stay in the queue for their own clock. If a ticket is of a
/// wrong clock by mistake, drain or destroy the queue when the device is idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OtherClock {
    /// The lowest ticket of another clock.
    pub ticket: Ticket,
    /// The number of tickets of another clock that items wait for.
    pub tickets: usize,
    /// The number of collected items, as the call counts them.
    pub collected: usize,
}

sublet_engines::errors! { struct OtherClock { ticket, tickets, collected } =>
    "{ticket:?} is of another clock, which alone says that it is done: {tickets} such tickets wait, and {collected} \
     of what is done was collected"
}

/// The ticket belongs to another clock than the pending tickets, so no clock would report both as done. Nothing was
/// changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MixedClocks {
    /// The rejected ticket.
    pub ticket: Ticket,
    /// A pending ticket.
    pub waiting: Ticket,
}

sublet_engines::errors! { struct MixedClocks { ticket, waiting } =>
    "{ticket:?} is of another clock than {waiting:?}, which is waited for already"
}

/// The queue could not reserve space. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReserveError {
    /// At most 2^32 - 1 items can wait in one queue.
    TooMany {
        /// The requested number of items.
        additional: usize,
        /// Items that wait.
        waiting: usize,
    },
    /// The host has no memory for the items.
    HostMemory {
        /// The requested number of items.
        additional: usize,
        /// The error of the host allocator.
        source: TryReserveError,
    },
}

sublet_engines::errors! { ReserveError:
    TooMany { additional, waiting } =>
        "there is no room for {additional} items beside the {waiting} that wait: at most 2^32 - 1 wait in one queue";
    HostMemory { additional, source } => "there is no host memory for {additional} items: {source}", source;
}

/// The submission was not recorded. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ClockSubmitError {
    /// The ticket was submitted or discarded before.
    NotOpen {
        /// The rejected ticket.
        ticket: Ticket,
    },
    /// The ticket belongs to another clock.
    OtherClock {
        /// The rejected ticket.
        ticket: Ticket,
    },
    /// The clock was [shut down](super::Clock::shutdown); it accepts no submissions.
    ShutDown {
        /// The rejected ticket.
        ticket: Ticket,
    },
}

sublet_engines::errors! { ClockSubmitError:
    NotOpen { ticket } => "{ticket:?} was submitted or discarded before";
    OtherClock { ticket } => "{ticket:?} is of another clock";
    ShutDown { ticket } => "{ticket:?} was submitted after the clock was shut down";
}

/// The recording was not discarded. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DiscardError {
    /// The ticket was submitted or discarded before.
    NotOpen {
        /// The rejected ticket.
        ticket: Ticket,
    },
    /// The ticket belongs to another clock.
    OtherClock {
        /// The rejected ticket.
        ticket: Ticket,
    },
}

sublet_engines::errors! { DiscardError:
    NotOpen { ticket } => "{ticket:?} was submitted or discarded before";
    OtherClock { ticket } => "{ticket:?} is of another clock";
}
