//! Errors of command lists.

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

sublet_engines::errors! { ListError:
    Lost => "the device is lost" from &vk::Result::ERROR_DEVICE_LOST;
    Observer => "the barrier observer panicked before the command was recorded";
    OtherFrames => "the resource belongs to other frames";
    Use(error) => "{error}";
    InsideRendering => "the command is not allowed within rendering";
    OutsideRendering => "the command is only allowed within rendering";
    NoLabel => "no label is open";
    NoRendering => "the driver has no render passes, and dynamic rendering is not enabled";
    RenderingNeedsBarrier =>
        "a draw needs a barrier, but rendering cannot be interrupted: declare the use before rendering begins";
    BufferUsage { needs, has } => "the buffer needs the usage {needs:?}, but has {has:?}";
    ImageUsage { needs, has } => "the image needs the usage {needs:?}, but has {has:?}";
    Queue { needs, has } => "the queue needs one of {needs:?}, but has {has:?}";
    OutOfRange { what, start, end, size } => "{what} {start} to {end} were requested, but {size} are available";
    Misaligned { what, given, alignment } => "{what} is {given}, but must be a multiple of {alignment}";
    Overlap { region, with } => "regions {region} and {with} overlap";
    TooFewBytes { needed, given } => "the texels need {needed} bytes, but {given} were given";
    Format { format, aspect } => "the memory layout of {aspect:?} of {format:?} is not known";
    FormatFeatures { format, needs, has } => "{format:?} needs {needs:?}, but the device supports {has:?}";
    Samples { samples } => "the image has {samples:?}, but one sample is required";
    ResolveMode { mode, aspect } => "{aspect:?} of this format cannot be resolved with {mode:?}";
    DepthRange { min, max } => "the depth range is {min} to {max}, but must be within 0 to 1";
    NotEnabled { feature } => "{feature} is required, but not enabled";
    NoDescriptors => "the frames have no descriptor device";
    NoBinding { set, binding } => "no pipeline with set {set}, binding {binding} is bound at this bind point";
    CreateUploads(error) => "{error}";
    Upload(error) => "{error}";
    CreateBinder(error) => "{error}";
    Stage(error) => "{error}";
    Layout(error) => "{error}";
    Commit(error) => "{error}";
    Create(error) => "{error}";
    View(error) => "{error}";
    Driver(error) => "{error}";
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
