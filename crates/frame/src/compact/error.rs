//! Why nothing was moved.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use sublet::{BeginDefragmentationError, CreateError};

use crate::device::LostDevice;
use crate::frame::{OpenError, SubmitError};
use crate::resource::ViewError;
use crate::track::UseError;

/// Why a [step](super::Compactor::step) moved nothing. Every resource is where it was, with its contents; the step may be
/// made again, unless the frames take no submissions any more.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum CompactError {
    /// The frames submit nothing any more.
    Lost,
    /// Somebody else defragments the memory.
    Begin(BeginDefragmentationError),
    /// What was to take over was not made.
    Create(CreateError),
    /// A view of it was not made.
    View(ViewError),
    /// There was no list for the copies.
    Open(OpenError),
    /// The states of a resource did not allow the copy.
    Use(UseError),
    /// The copies were not submitted.
    Submit(SubmitError),
}

impl fmt::Display for CompactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("the device is lost, or a submission was half done before"),
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
