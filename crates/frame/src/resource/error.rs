//! Errors of creating resources and views.

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

sublet_engines::errors! { CreateResourceError:
    Lost => "the device is lost" from &vk::Result::ERROR_DEVICE_LOST;
    Create(error: CreateError) => "{error}";
    OtherFrames => "the shared memory belongs to other frames";
    HostImport(error: HostImportError) => "{error}";
}

impl LostDevice for CreateResourceError {
    const LOST: Self = Self::Lost;
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

sublet_engines::errors! { ViewError:
    Lost => "the device is lost" from &vk::Result::ERROR_DEVICE_LOST;
    Usage { usage } => "images with the usage {usage:?} cannot have views";
    Conversion { format } =>
        "a view of {format:?} needs a sampler conversion: create views of its planes, or your own view";
    OutOfRange { what, start, end, size } => "{what} {start} to {end} were requested, but the image has {size}";
    Aspects { asked, has } => "{asked:?} were requested, but the image has {has:?}";
    Driver(error) => "{error}";
}

impl LostDevice for ViewError {
    const LOST: Self = Self::Lost;
}
