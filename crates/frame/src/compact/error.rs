//! Errors of a compaction step.

use std::error::Error;
use std::fmt;

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

impl fmt::Display for CompactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("the device is lost, or an earlier submission returned `HalfDone`"),
            Self::Begin(error) => error.fmt(f),
            Self::Create(error) => error.fmt(f),
            Self::View(error) => error.fmt(f),
            Self::Open(error) => error.fmt(f),
            Self::Use(error) => error.fmt(f),
            Self::Submit(error) => error.fmt(f),
        }
    }
}

impl Error for CompactError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Lost => None,
            Self::Begin(error) => error.source(),
            Self::Create(error) => error.source(),
            Self::View(error) => error.source(),
            Self::Open(error) => error.source(),
            Self::Use(error) => error.source(),
            Self::Submit(error) => error.source(),
        }
    }
}

impl LostDevice for CompactError {
    const LOST: Self = Self::Lost;
}
