//! Errors of a compaction step.

use sublet::{BeginDefragmentationError, CreateError};

use crate::device::LostDevice;
use crate::frame::{OpenError, SubmitError};
use crate::resource::ViewError;
use crate::track::UseError;

/// An error of [`Compactor::step`](super::Compactor::step). Every resource keeps its place and contents. The step can
/// be repeated, unless the frames accept no more submissions.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum CompactError {
    /// The frames accept no more submissions.
    Lost,
    /// Another defragmentation of the allocator is active.
    Begin(BeginDefragmentationError),
    /// A replacement could not be created.
    Create(CreateError),
    /// A view of a replacement could not be created.
    View(ViewError),
    /// The list for the copies could not be opened.
    Open(OpenError),
    /// The tracker rejected the copy of a resource.
    Use(UseError),
    /// The submission of the copies failed.
    Submit(SubmitError),
}

sublet_engines::errors! { CompactError:
    Lost => "the device is lost, or an earlier submission returned `HalfDone`";
    Begin(error) => "{error}";
    Create(error) => "{error}";
    View(error) => "{error}";
    Open(error) => "{error}";
    Use(error) => "{error}";
    Submit(error) => "{error}";
}

impl LostDevice for CompactError {
    const LOST: Self = Self::Lost;
}
