//! Errors of command lists.

use std::error::Error;
use std::fmt;

use ash::vk;
use sublet::CreateError;
use sublet::device::DriverError;
use sublet::upload::{CreateUploadError, UploadError};
use sublet_descriptors::{CommitError, CreateBinderError, StageError, UseLayoutError};

use crate::device::LostDevice;
use crate::resource::ViewError;
use crate::track::UseError;

/// An error of recording a command.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum ListError {
    /// The device is lost.
    Lost,
    /// [`on_barriers`](crate::FramesCreateInfo::on_barriers) panicked before the command was recorded.
    Observer,
    /// The resource belongs to other frames.
    OtherFrames,
    /// The use conflicts with another one. The list can no longer be submitted.
    Use(UseError),
    /// The command is not allowed within rendering.
    InsideRendering,
    /// The command is only allowed within rendering.
    OutsideRendering,
    /// No label is open.
    NoLabel,
    /// The driver has no render passes, and dynamic rendering is not enabled.
    NoRendering,
    /// A draw needs a barrier, but rendering cannot be interrupted because an attachment is not stored or is resolved.
    /// Declare the use before rendering begins. The list can no longer be submitted.
    RenderingNeedsBarrier,
    /// The buffer lacks a usage.
    BufferUsage {
        /// The required usage.
        needs: vk::BufferUsageFlags,
        /// The usage of the buffer.
        has: vk::BufferUsageFlags,
    },
    /// The image lacks a usage.
    ImageUsage {
        /// The required usage.
        needs: vk::ImageUsageFlags,
        /// The usage of the image.
        has: vk::ImageUsageFlags,
    },
    /// The queue does not support the command.
    Queue {
        /// The command needs one of these.
        needs: vk::QueueFlags,
        /// The flags of the queue family.
        has: vk::QueueFlags,
    },
    /// A range is empty or exceeds the resource.
    OutOfRange {
        /// The unit: bytes, mips, layers, texels.
        what: &'static str,
        /// Start of the range.
        start: u64,
        /// End of the range.
        end: u64,
        /// The available size.
        size: u64,
    },
    /// A number is not a multiple of the required alignment.
    Misaligned {
        /// The parameter.
        what: &'static str,
        /// The given value.
        given: u64,
        /// The required alignment.
        alignment: u64,
    },
    /// Regions of one command overlap.
    Overlap {
        /// The first of the two.
        region: usize,
        /// The second of the two.
        with: usize,
    },
    /// The data is shorter than the texels.
    TooFewBytes {
        /// The required bytes, including the given pitches.
        needed: u64,
        /// The given bytes.
        given: u64,
    },
    /// The memory layout of the format is unknown, or the format does not have this single aspect.
    Format {
        /// The format.
        format: vk::Format,
        /// The aspect.
        aspect: vk::ImageAspectFlags,
    },
    /// The device does not support this operation for the format.
    FormatFeatures {
        /// The format.
        format: vk::Format,
        /// The required features.
        needs: vk::FormatFeatureFlags,
        /// The features of this format and tiling.
        has: vk::FormatFeatureFlags,
    },
    /// The command does not support multisampled images.
    Samples {
        /// The samples of the image.
        samples: vk::SampleCountFlags,
    },
    /// The resolve mode is not supported: colors have one mode, and render passes of Vulkan 1.0 resolve only colors.
    ResolveMode {
        /// The mode.
        mode: vk::ResolveModeFlags,
        /// The aspect to resolve.
        aspect: vk::ImageAspectFlags,
    },
    /// The depth range is not within 0 to 1.
    DepthRange {
        /// The given minimum.
        min: f32,
        /// The given maximum.
        max: f32,
    },
    /// A required feature is not enabled in [`Features`](crate::Features).
    NotEnabled {
        /// The feature or extension, as named by Vulkan.
        feature: &'static str,
    },
    /// The frames were made without a descriptor device.
    NoDescriptors,
    /// No pipeline is bound at the bind point, or the binding does not exist.
    NoBinding {
        /// The set.
        set: u32,
        /// The binding.
        binding: u32,
    },
    /// Creating an upload arena failed.
    CreateUploads(CreateUploadError),
    /// Allocating upload memory failed.
    Upload(UploadError),
    /// Creating a binder failed.
    CreateBinder(CreateBinderError),
    /// A descriptor does not match its binding.
    Stage(StageError),
    /// The pipeline layout does not belong to the descriptor device of these frames.
    Layout(UseLayoutError),
    /// Binding descriptors failed.
    Commit(CommitError),
    /// Creating the buffer of a read-back failed.
    Create(CreateError),
    /// Creating a view of an image failed.
    View(ViewError),
    /// Creating an internal pipeline, descriptor pool or render pass failed.
    Driver(DriverError),
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("the device is lost"),
            Self::Observer => f.write_str("the barrier observer panicked before the command was recorded"),
            Self::OtherFrames => f.write_str("the resource belongs to other frames"),
            Self::Use(error) => error.fmt(f),
            Self::InsideRendering => f.write_str("the command is not allowed within rendering"),
            Self::OutsideRendering => f.write_str("the command is only allowed within rendering"),
            Self::NoLabel => f.write_str("no label is open"),
            Self::NoRendering => {
                f.write_str("the driver has no render passes, and dynamic rendering is not enabled")
            },
            Self::RenderingNeedsBarrier => f.write_str(
                "a draw needs a barrier, but rendering cannot be interrupted: declare the use before rendering begins",
            ),
            Self::BufferUsage { needs, has } => write!(f, "the buffer needs the usage {needs:?}, but has {has:?}"),
            Self::ImageUsage { needs, has } => write!(f, "the image needs the usage {needs:?}, but has {has:?}"),
            Self::Queue { needs, has } => write!(f, "the queue needs one of {needs:?}, but has {has:?}"),
            Self::OutOfRange { what, start, end, size } => {
                write!(f, "{what} {start} to {end} were requested, but {size} are available")
            }
            Self::Misaligned { what, given, alignment } => {
                write!(f, "{what} is {given}, but must be a multiple of {alignment}")
            }
            Self::Overlap { region, with } => write!(f, "regions {region} and {with} overlap"),
            Self::TooFewBytes { needed, given } => write!(f, "the texels need {needed} bytes, but {given} were given"),
            Self::Format { format, aspect } => write!(f, "the memory layout of {aspect:?} of {format:?} is not known"),
            Self::FormatFeatures { format, needs, has } => {
                write!(f, "{format:?} needs {needs:?}, but the device supports {has:?}")
            }
            Self::Samples { samples } => write!(f, "the image has {samples:?}, but one sample is required"),
            Self::ResolveMode { mode, aspect } => write!(f, "{aspect:?} of this format cannot be resolved with {mode:?}"),
            Self::DepthRange { min, max } => write!(f, "the depth range is {min} to {max}, but must be within 0 to 1"),
            Self::NotEnabled { feature } => write!(f, "{feature} is required, but not enabled"),
            Self::NoDescriptors => f.write_str("the frames have no descriptor device"),
            Self::NoBinding { set, binding } => {
                write!(f, "no pipeline with set {set}, binding {binding} is bound at this bind point")
            }
            Self::CreateUploads(error) => error.fmt(f),
            Self::Upload(error) => error.fmt(f),
            Self::CreateBinder(error) => error.fmt(f),
            Self::Stage(error) => error.fmt(f),
            Self::Layout(error) => error.fmt(f),
            Self::Commit(error) => error.fmt(f),
            Self::Create(error) => error.fmt(f),
            Self::View(error) => error.fmt(f),
            Self::Driver(error) => error.fmt(f),
        }
    }
}

impl Error for ListError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Lost => Some(&vk::Result::ERROR_DEVICE_LOST),
            Self::CreateUploads(error) => error.source(),
            Self::Upload(error) => error.source(),
            Self::CreateBinder(error) => error.source(),
            Self::Stage(error) => error.source(),
            Self::Commit(error) => error.source(),
            Self::Create(error) => error.source(),
            Self::View(error) => error.source(),
            Self::Driver(error) => error.source(),
            _ => None,
        }
    }
}

impl LostDevice for ListError {
    const LOST: Self = Self::Lost;
}

/// Checks that `start..end` is not empty and within `size`.
pub(super) fn check_range(what: &'static str, start: u64, end: u64, size: u64) -> Result<(), ListError> {
    if start < end && end <= size { Ok(()) } else { Err(ListError::OutOfRange { what, start, end, size }) }
}

/// Checks that `given` is a multiple of `alignment`.
pub(super) fn check_multiple(what: &'static str, given: u64, alignment: u64) -> Result<(), ListError> {
    if given % alignment == 0 { Ok(()) } else { Err(ListError::Misaligned { what, given, alignment }) }
}
