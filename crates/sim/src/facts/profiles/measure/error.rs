//! Why a device could not be measured.

use std::error::Error;
use std::fmt;

use ash::vk;

use super::super::InvalidProfile;

/// [`Profile::measure`](super::super::Profile::measure) failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MeasureError {
    /// The driver refused a call.
    Driver {
        /// The function that was called.
        call: &'static str,
        /// The driver's result.
        result: vk::Result,
    },
    /// The physical device has no queue, so that no device can be made of it.
    NoQueue,
    /// The driver reports something impossible, which is a fault of the driver.
    Invalid(InvalidProfile),
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Driver { call, result } => write!(f, "{call} failed with {result:?}"),
            Self::NoQueue => f.write_str("the device has no queue"),
            Self::Invalid(why) => write!(f, "what the driver says of itself is not possible: {why}"),
        }
    }
}

impl Error for MeasureError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Driver { result, .. } => Some(result),
            Self::NoQueue | Self::Invalid(_) => None,
        }
    }
}

impl From<InvalidProfile> for MeasureError {
    fn from(why: InvalidProfile) -> Self {
        Self::Invalid(why)
    }
}
