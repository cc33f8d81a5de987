//! Errors of creating resources and views.

use std::error::Error;
use std::fmt;

use ash::vk;
use sublet::device::DriverError;
use sublet::{CreateError, HostImportError};

use crate::device::LostDevice;

/// An error of creating a resource.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum CreateResourceError {
    /// The device is lost.
    Lost,
    /// The allocator or the driver returned an error.
    Create(CreateError),
    /// The shared memory belongs to other frames.
    OtherFrames,
    /// The memory of the host was not imported.
    HostImport(HostImportError),
}

impl fmt::Display for CreateResourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("the device is lost"),
            Self::Create(error) => error.fmt(f),
            Self::OtherFrames => f.write_str("the shared memory belongs to other frames"),
            Self::HostImport(error) => error.fmt(f),
        }
    }
}

impl Error for CreateResourceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Lost => Some(&vk::Result::ERROR_DEVICE_LOST),
            Self::Create(error) => error.source(),
            Self::OtherFrames => None,
            Self::HostImport(error) => error.source(),
        }
    }
}

impl LostDevice for CreateResourceError {
    const LOST: Self = Self::Lost;
}

impl From<CreateError> for CreateResourceError {
    fn from(error: CreateError) -> Self {
        Self::Create(error)
    }
}

impl From<HostImportError> for CreateResourceError {
    fn from(error: HostImportError) -> Self {
        Self::HostImport(error)
    }
}

/// An error of creating a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ViewError {
    /// The device is lost.
    Lost,
    /// The usage of the image permits no views (VUID-VkImageViewCreateInfo-image-04441).
    Usage {
        /// The usage of the image.
        usage: vk::ImageUsageFlags,
    },
    /// Views of this format need a sampler conversion (`VkSamplerYcbcrConversionInfo`). Create views of its planes with
    /// [`Image::view_with`](crate::Image::view_with), or create the view yourself.
    Conversion {
        /// The format.
        format: vk::Format,
    },
    /// The requested range of mips or layers is empty or outside of the image.
    OutOfRange {
        /// `"mips"` or `"layers"`.
        what: &'static str,
        /// Start of the requested range.
        start: u32,
        /// End of the requested range.
        end: u32,
        /// Number of mips or layers of the image.
        size: u32,
    },
    /// The image has none of the requested aspects.
    Aspects {
        /// The requested aspects.
        asked: vk::ImageAspectFlags,
        /// The aspects of the image.
        has: vk::ImageAspectFlags,
    },
    /// The driver call failed.
    Driver(DriverError),
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("the device is lost"),
            Self::Usage { usage } => write!(f, "images with the usage {usage:?} cannot have views"),
            Self::Conversion { format } => {
                write!(
                    f,
                    "a view of {format:?} needs a sampler conversion: create views of its planes, or your own view"
                )
            }
            Self::OutOfRange { what, start, end, size } => {
                write!(f, "{what} {start} to {end} were requested, but the image has {size}")
            }
            Self::Aspects { asked, has } => {
                write!(f, "{asked:?} were requested, but the image has {has:?}")
            }
            Self::Driver(error) => error.fmt(f),
        }
    }
}

impl Error for ViewError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Lost => Some(&vk::Result::ERROR_DEVICE_LOST),
            Self::Usage { .. } | Self::Conversion { .. } | Self::OutOfRange { .. } | Self::Aspects { .. } => {
                None
            }
            Self::Driver(error) => error.source(),
        }
    }
}

impl LostDevice for ViewError {
    const LOST: Self = Self::Lost;
}
