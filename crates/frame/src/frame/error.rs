//! Errors of frames.

use ash::vk;
use sublet::device::DriverError;
use sublet::retire::{Ticket, TooManyTimelines};
use sublet::upload::FlushError;
use sublet_descriptors::CollectPoolsError as TransientCollectError;

use crate::device::LostDevice;
use crate::list::ListError;
use crate::track::ResolveError;

/// An error of [`Frames::new`](crate::Frames::new).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CreateFramesError {
    /// The number of queues is not 1 to 16.
    Queues {
        /// The given number.
        queues: usize,
    },
    /// `frames_in_flight` is 0.
    NoFrames,
    /// `frames_in_flight` exceeds [`Frames::MOST_IN_FLIGHT`](crate::Frames::MOST_IN_FLIGHT).
    TooManyFrames {
        /// The given number.
        frames: usize,
        /// The maximum.
        most: usize,
    },
    /// The device is lost.
    Lost,
    /// The device has no such queue family.
    NoSuchFamily {
        /// The given index.
        family: u32,
    },
    /// The clock has no timelines left.
    Timelines(TooManyTimelines),
    /// The driver call failed.
    Driver(DriverError),
}

sublet_engines::errors! { CreateFramesError:
    Queues { queues } => "{queues} queues were given, but 1 to 16 are required";
    NoFrames => "`frames_in_flight` is 0, but at least 1 is required";
    TooManyFrames { frames, most } => "`frames_in_flight` is {frames}, but at most {most} is supported";
    Lost => "{LOST}" from &vk::Result::ERROR_DEVICE_LOST;
    NoSuchFamily { family } => "the device has no queue family {family}";
    Timelines(error) => "{error}";
    Driver(error) => "{error}";
}

impl CreateFramesError {
    pub(crate) fn of(error: DriverError) -> Self {
        if error.result == vk::Result::ERROR_DEVICE_LOST { Self::Lost } else { Self::Driver(error) }
    }
}

/// An error of waiting or collecting. The call can be repeated, unless the device is lost.
#[derive(Debug)]
#[non_exhaustive]
pub enum BeginError {
    /// The device is lost. Everything in flight counts as done, and nothing more can be submitted.
    Lost,
    /// The ticket or read-back belongs to other frames.
    OtherFrames {
        /// The given ticket.
        ticket: Ticket,
    },
    /// A driver call to wait or to query progress failed.
    Driver(DriverError),
    /// Resetting descriptor pools failed. The next call tries again.
    Descriptors(TransientCollectError),
    /// Freeing a retired resource of the program failed.
    Retired(sublet::CollectError),
}

sublet_engines::errors! { BeginError:
    Lost => "{LOST}" from &vk::Result::ERROR_DEVICE_LOST;
    OtherFrames { ticket } => "{ticket:?} belongs to other frames";
    Driver(error) => "{error}";
    Descriptors(error) => "{error}";
    Retired(error) => "{error}";
}

impl LostDevice for BeginError {
    const LOST: Self = Self::Lost;
}

const LOST: &str = "the device is lost";
const CLOSED: &str = "the device is lost, or an earlier submission returned `HalfDone`";

/// An error of [`Frames::list`](crate::Frames::list).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The device is lost, or an earlier submission returned [`HalfDone`](SubmitError::HalfDone).
    Lost,
    /// The queue belongs to other frames.
    NoSuchQueue,
    /// The driver call failed.
    Driver(DriverError),
}

sublet_engines::errors! { OpenError:
    Lost => "{CLOSED}";
    NoSuchQueue => "the queue belongs to other frames";
    Driver(error) => "{error}";
}

impl LostDevice for OpenError {
    const LOST: Self = Self::Lost;
}

/// An error of [`Frames::submit`](crate::Frames::submit). The lists are dropped and nothing of them runs. The tracked
/// states are unchanged, so the same commands can be recorded again, except after [`HalfDone`](Self::HalfDone).
/// Read-backs of the lists return [`ReadError::Never`](crate::ReadError::Never).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum SubmitError {
    /// The device is lost, or an earlier submission returned [`HalfDone`](Self::HalfDone).
    Lost,
    /// A list belongs to other frames or another queue.
    WrongQueue {
        /// The index of the list.
        list: usize,
    },
    /// A list has begun rendering and not ended it.
    Rendering {
        /// The index of the list.
        list: usize,
    },
    /// A command failed after it had changed the list, so the declared uses no longer match the commands.
    Broken {
        /// The index of the list.
        list: usize,
        /// The error of the first such command.
        error: Box<ListError>,
    },
    /// Flushing host writes failed.
    Flush(FlushError),
    /// The lists conflict with the tracked states.
    Resolve(ResolveError),
    /// The driver call failed.
    Driver(DriverError),
    /// The driver rejected a submission after a queue of another family had released resources for it. The ownership of
    /// these resources is unknown, so all later calls to open or submit a list return `Lost`.
    ///
    /// Earlier submissions continue, and can be waited for, read back and collected. The resources of the rejected
    /// lists live until the release is done. Create new frames and resources afterwards. This requires queues of
    /// several families and resources with exclusive sharing mode: those with `VK_SHARING_MODE_CONCURRENT` are never
    /// released.
    HalfDone(DriverError),
}

sublet_engines::errors! { SubmitError:
    Lost => "{CLOSED}";
    WrongQueue { list } => "list {list} belongs to other frames or another queue";
    Rendering { list } => "list {list} begins rendering without ending it";
    Broken { list, error } => "list {list} is incomplete because a command failed: {error}", error;
    Flush(error) => "{error}";
    Resolve(error) => "{error}";
    Driver(error) => "{error}";
    HalfDone(error) => "{error}, after another queue had released resources: create new frames";
}

impl LostDevice for SubmitError {
    const LOST: Self = Self::Lost;
}
