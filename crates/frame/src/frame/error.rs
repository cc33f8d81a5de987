//! What frames refuse, and why.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use ash::vk;
use sublet::descriptor::CollectError as TransientCollectError;
use sublet::device::DriverError;
use sublet::retire::{Ticket, TooManyLanes};
use sublet::upload::FlushError;

use crate::device::LostDevice;
use crate::list::ListError;
use crate::track::ResolveError;

/// Why frames were not made. Nothing is left behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CreateFramesError {
    /// There are no queues, or more than 16.
    Queues {
        /// How many were given.
        queues: usize,
    },
    /// No frame may be in flight.
    NoFrames,
    /// More frames may be in flight than [`Frames::MOST_IN_FLIGHT`](crate::Frames::MOST_IN_FLIGHT).
    TooManyFrames {
        /// What was asked.
        frames: usize,
        /// How many there may be.
        most: usize,
    },
    /// The device is lost.
    Lost,
    /// A queue is of a family that the device has not.
    NoSuchFamily {
        /// What was given.
        family: u32,
    },
    /// A clock has too few lanes.
    Lanes(TooManyLanes),
    /// The driver refused.
    Driver(DriverError),
}

impl fmt::Display for CreateFramesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queues { queues } => write!(f, "{queues} queues were given: there have to be 1 to 16"),
            Self::NoFrames => f.write_str("no frame may be in flight: there has to be one at least"),
            Self::TooManyFrames { frames, most } => {
                write!(f, "{frames} frames may be in flight: there can be {most} at most")
            }
            Self::Lost => f.write_str(LOST),
            Self::NoSuchFamily { family } => write!(f, "the device has no queue family {family}"),
            Self::Lanes(error) => error.fmt(f),
            Self::Driver(error) => error.fmt(f),
        }
    }
}

impl CreateFramesError {
    /// What the driver says.
    pub(crate) fn of(error: DriverError) -> Self {
        if error.result == vk::Result::ERROR_DEVICE_LOST { Self::Lost } else { Self::Driver(error) }
    }
}

impl Error for CreateFramesError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Driver(error) => error.source(),
            Self::Lost => Some(&vk::Result::ERROR_DEVICE_LOST),
            _ => None,
        }
    }
}

/// Why a frame was not begun, or nothing was waited for. What was collected stays collected; the call may be made again, unless the device is lost.
#[derive(Debug)]
#[non_exhaustive]
pub enum BeginError {
    /// The device is lost. All that was in flight counts as done, and nothing can be submitted any more.
    Lost,
    /// What was to be waited for was submitted to other frames, or is a read-back of theirs.
    OtherFrames {
        /// What was asked.
        ticket: Ticket,
    },
    /// The driver did not wait, or did not say how far it is.
    Driver(DriverError),
    /// Descriptor pools were not reset; that is tried again.
    Descriptors(TransientCollectError),
    /// What was retired by the program could not be freed.
    Retired(sublet::CollectError),
}

impl fmt::Display for BeginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str(LOST),
            Self::OtherFrames { ticket } => write!(f, "{ticket:?} is of other frames"),
            Self::Driver(error) => error.fmt(f),
            Self::Descriptors(error) => error.fmt(f),
            Self::Retired(error) => error.fmt(f),
        }
    }
}

impl Error for BeginError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Lost => Some(&vk::Result::ERROR_DEVICE_LOST),
            Self::OtherFrames { .. } => None,
            Self::Driver(error) => error.source(),
            Self::Descriptors(error) => error.source(),
            Self::Retired(error) => error.source(),
        }
    }
}

impl LostDevice for BeginError {
    const LOST: Self = Self::Lost;
}

const LOST: &str = "the device is lost";
const CLOSED: &str = "the device is lost, or a submission was half done before";

/// Why there is no list. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The device is lost, or a submission was [half done](SubmitError::HalfDone) before.
    Lost,
    /// The queue is of other frames.
    NoSuchQueue,
    /// The driver refused.
    Driver(DriverError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str(CLOSED),
            Self::NoSuchQueue => f.write_str("the queue is of other frames"),
            Self::Driver(error) => error.fmt(f),
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Driver(error) => error.source(),
            Self::Lost | Self::NoSuchQueue => None,
        }
    }
}

impl LostDevice for OpenError {
    const LOST: Self = Self::Lost;
}

/// Why lists were not submitted. The lists are gone, with all that they used, and nothing of them runs; the states are
/// what they were, so that the same may be recorded again, except after [`HalfDone`](Self::HalfDone). Read-backs of the
/// lists say that they will not be ready.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum SubmitError {
    /// The device is lost, or a submission was [half done](Self::HalfDone) before.
    Lost,
    /// A list was made by other frames, or for another queue.
    WrongQueue {
        /// The index of the list.
        list: usize,
    },
    /// A list begins rendering and does not end it.
    Rendering {
        /// The index of the list.
        list: usize,
    },
    /// A command of the list failed half-way, so that what the list declares is not what it does.
    Broken {
        /// The index of the list.
        list: usize,
        /// Why the first such command failed.
        error: Box<ListError>,
    },
    /// What the host wrote could not be made visible.
    Flush(FlushError),
    /// The lists do not go with what was submitted before.
    Resolve(ResolveError),
    /// The driver refused.
    Driver(DriverError),
    /// The driver refused a submission, after a queue of another family had given away resources for these lists.
    /// Nothing but submissions is done between the two. Nobody knows who owns those resources, so the frames make no lists and take no submissions any more: both are `Lost`.
    ///
    /// What was submitted runs, can be waited for and read back, and is taken back. What the lists kept lives until the
    /// other queue is done with giving it away. Then make new frames and, with
    /// them, the resources. It needs queues of several families and resources that are exclusive to one; those made with
    /// `VK_SHARING_MODE_CONCURRENT` are never given away.
    HalfDone(DriverError),
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str(CLOSED),
            Self::WrongQueue { list } => write!(f, "list {list} is of other frames or another queue"),
            Self::Rendering { list } => write!(f, "list {list} begins rendering and does not end it"),
            Self::Broken { list, error } => {
                write!(f, "list {list} is not whole, as a command failed: {error}")
            }
            Self::Flush(error) => error.fmt(f),
            Self::Resolve(error) => error.fmt(f),
            Self::Driver(error) => error.fmt(f),
            Self::HalfDone(error) => {
                write!(
                    f,
                    "{error}, after another queue had released resources: the frames submit nothing any more"
                )
            }
        }
    }
}

impl Error for SubmitError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Broken { error, .. } => error.source(),
            Self::Flush(error) => error.source(),
            Self::Driver(error) | Self::HalfDone(error) => error.source(),
            _ => None,
        }
    }
}

impl LostDevice for SubmitError {
    const LOST: Self = Self::Lost;
}
