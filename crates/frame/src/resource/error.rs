//! Why a resource or a view was not made.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use ash::vk;
use sublet::CreateError;
use sublet::device::DriverError;

use crate::device::LostDevice;

/// Why a resource was not made. Nothing is left behind.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum CreateResourceError {
    /// The device is lost.
    Lost,
    /// The allocator or the driver refused.
    Create(CreateError),
    /// The shared memory was made by other frames.
    OtherFrames,
}

impl fmt::Display for CreateResourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("the device is lost"),
            Self::Create(error) => error.fmt(f),
            Self::OtherFrames => f.write_str("the shared memory is of other frames"),
        }
    }
}

impl Error for CreateResourceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Lost => Some(&vk::Result::ERROR_DEVICE_LOST),
            Self::Create(error) => error.source(),
            Self::OtherFrames => None,
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

/// Why there is no view of an image. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ViewError {
    /// The device is lost.
    Lost,
    /// No usage of the image is one for which there are views: it is only copied (VUID-VkImageViewCreateInfo-image-04441).
    Usage {
        /// What the image was made for.
        usage: vk::ImageUsageFlags,
    },
    /// Samplers convert the texels of this format, and the view says how (`VkSamplerYcbcrConversionInfo`). Make views of
    /// its planes with [`Image::view_with`](crate::Image::view_with), or make the view yourself.
    Conversion {
        /// The format.
        format: vk::Format,
    },
    /// No mip or layer of the part is the image's.
    OutOfRange {
        /// Mips or layers.
        what: &'static str,
        /// Where the part starts.
        start: u32,
        /// Where it ends.
        end: u32,
        /// What there is.
        size: u32,
    },
    /// No aspect of the part is the image's.
    Aspects {
        /// Those of the part.
        asked: vk::ImageAspectFlags,
        /// Those of the image.
        has: vk::ImageAspectFlags,
    },
    /// The driver refused.
    Driver(DriverError),
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("the device is lost"),
            Self::Usage { usage } => write!(f, "an image that was made for {usage:?} has no views"),
            Self::Conversion { format } => {
                write!(f, "a view of {format:?} needs a sampler conversion, which the image does not know")
            }
            Self::OutOfRange { what, start, end, size } => {
                write!(f, "{what} {start} to {end} are none of the {size} that there are")
            }
            Self::Aspects { asked, has } => {
                write!(f, "none of {asked:?} is among {has:?}, which the image has")
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
