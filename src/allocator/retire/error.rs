//! Errors of collecting and of reading timelines.

use std::error::Error;
use std::fmt;

use crate::allocation::FreeError;
use crate::device::DriverError;
use crate::retire::{OtherClock, TimelineId};

/// Some completed resources could not be freed. All others were.
#[derive(Debug)]
#[non_exhaustive]
pub struct CollectError {
    /// Resources, pools and scopes that were destroyed and freed.
    pub collected: usize,
    /// Resources, pools and scopes of another allocator. They stay in the queue.
    pub kept: usize,
    /// Allocations whose pool or scope, and with it their memory, is gone. Buffers and images that were retired with
    /// them were destroyed.
    pub refused: Vec<FreeError>,
    /// The pending tickets belong to another clock. Their resources stay in the queue.
    pub other_clock: Option<OtherClock>,
}

impl fmt::Display for CollectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { collected, kept, refused, other_clock } = self;
        write!(f, "{collected} resources were freed")?;
        if *kept > 0 {
            write!(f, "; {kept} are of another allocator")?;
        }
        if let Some(first) = refused.first() {
            write!(
                f,
                "; {} were in a pool or scope that is gone, the first of them: {first}",
                refused.len()
            )?;
        }
        if let Some(OtherClock { ticket, tickets, .. }) = other_clock {
            write!(f, "; {tickets} tickets are of another clock, the first of them {ticket:?}")?;
        }
        Ok(())
    }
}

impl Error for CollectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.refused.first()?.source()
    }
}

/// The counter of a timeline semaphore could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TimelineError {
    /// The device has neither Vulkan 1.2 nor VK_KHR_timeline_semaphore enabled.
    MissingFunction(crate::device::MissingFunction),
    /// The driver refused: the device is lost, or out of memory.
    Driver {
        /// The timeline whose counter was read.
        timeline: TimelineId,
        /// The driver's error.
        source: DriverError,
    },
}

sublet_engines::errors! { TimelineError:
    MissingFunction(error) => "timeline semaphores cannot be read: {error}";
    Driver { timeline, source } => "the counter of timeline {} was not read: {source}" (timeline.index()), source;
}
