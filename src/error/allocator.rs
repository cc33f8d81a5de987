//! Errors of making an allocator.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use ash::vk;

use crate::device::MissingFunction;

/// Why an allocator could not be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CreateAllocatorError {
    /// A Vulkan function is missing.
    MissingFunction(MissingFunction),
    /// The version is not 1.0 to 1.4.
    ApiVersion {
        /// The version that was given.
        api_version: u32,
    },
    /// A flag needs a Vulkan function that was neither given nor found.
    ExtensionNotPresent {
        /// The function.
        function: &'static str,
    },
    /// The list of heap limits is longer than the list of heaps.
    HeapLimits {
        /// How many limits were given.
        limits: usize,
        /// How many heaps there are.
        heaps: usize,
    },
    /// [`detect_corruption`](crate::DebugSettings::detect_corruption) was asked for, and the margin is 0.
    NoMargin,
    /// The list of external memory handle types is longer than the list of memory types.
    ExternalMemoryHandleTypes {
        /// How many handle types were given.
        handle_types: usize,
        /// How many memory types there are.
        types: usize,
    },
    /// The list of block sizes is longer than the list of memory types.
    BlockSizes {
        /// How many block sizes were given.
        sizes: usize,
        /// How many memory types there are.
        types: usize,
    },
}

impl fmt::Display for CreateAllocatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingFunction(error) => error.fmt(f),
            Self::ApiVersion { api_version } => write!(
                f,
                "Vulkan {}.{} is not one of 1.0 to 1.4",
                vk::api_version_major(*api_version),
                vk::api_version_minor(*api_version)
            ),
            Self::ExtensionNotPresent { function } => {
                write!(f, "a flag needs the Vulkan function {function}, which was neither given nor found")
            }
            Self::HeapLimits { limits, heaps } => {
                write!(f, "{limits} heap limits were given for {heaps} heaps")
            }
            Self::NoMargin => f.write_str("corruption is detected in margins, and the margin has no bytes"),
            Self::ExternalMemoryHandleTypes { handle_types, types } => {
                write!(f, "{handle_types} external handle types were given for {types} memory types")
            }
            Self::BlockSizes { sizes, types } => {
                write!(f, "{sizes} block sizes were given for {types} memory types")
            }
        }
    }
}

impl Error for CreateAllocatorError {}

impl From<MissingFunction> for CreateAllocatorError {
    fn from(error: MissingFunction) -> Self {
        Self::MissingFunction(error)
    }
}
