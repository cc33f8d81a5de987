//! What a list refuses, and why.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use ash::vk;
use sublet::CreateError;
use sublet::descriptor::{CommitError, CreateBinderError, StageError, UseLayoutError};
use sublet::device::DriverError;
use sublet::upload::{CreateUploadError, UploadError};

use crate::device::LostDevice;
use crate::resource::ViewError;
use crate::track::UseError;

/// Why a command was not recorded.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum ListError {
    /// The device is lost.
    Lost,
    /// [`on_barriers`](crate::FramesCreateInfo::on_barriers) panicked before the command was recorded.
    Observer,
    /// A resource was made by other frames.
    OtherFrames,
    /// The use does not go with the others of the list, which cannot be submitted any more.
    Use(UseError),
    /// The command is not for the inside of rendering: end it first.
    InsideRendering,
    /// The command is for the inside of rendering only.
    OutsideRendering,
    /// No label was begun that could end.
    NoLabel,
    /// The driver has no render passes, and dynamic rendering is not enabled.
    NoRendering,
    /// A draw needs a barrier, and rendering cannot be interrupted, because an attachment is not stored or is resolved.
    /// Declare the use before rendering begins. The list cannot be submitted any more.
    RenderingNeedsBarrier,
    /// The buffer was not made for it.
    BufferUsage {
        /// What the command needs.
        needs: vk::BufferUsageFlags,
        /// What it was made for.
        has: vk::BufferUsageFlags,
    },
    /// The image was not made for it.
    ImageUsage {
        /// What the command needs.
        needs: vk::ImageUsageFlags,
        /// What it was made for.
        has: vk::ImageUsageFlags,
    },
    /// The queue cannot do it.
    Queue {
        /// What the command needs one of.
        needs: vk::QueueFlags,
        /// What the queue's family has.
        has: vk::QueueFlags,
    },
    /// A range is empty or ends beyond the resource.
    OutOfRange {
        /// Of what: bytes, mips, layers, texels.
        what: &'static str,
        /// Where it starts.
        start: u64,
        /// Where it ends.
        end: u64,
        /// What there is.
        size: u64,
    },
    /// A number is not a multiple of what it has to be.
    Misaligned {
        /// Which.
        what: &'static str,
        /// What was given.
        given: u64,
        /// What it has to be a multiple of.
        alignment: u64,
    },
    /// Regions of one command overlap.
    Overlap {
        /// The first of the two.
        region: usize,
        /// The second of the two.
        with: usize,
    },
    /// There are fewer bytes than the texels take.
    TooFewBytes {
        /// What the texels take, with the pitches that were given.
        needed: u64,
        /// What was given.
        given: u64,
    },
    /// How texels lie in memory is not known for the format, or it has not this aspect alone.
    Format {
        /// The format.
        format: vk::Format,
        /// The aspect.
        aspect: vk::ImageAspectFlags,
    },
    /// The device does not do this with the format.
    FormatFeatures {
        /// The format.
        format: vk::Format,
        /// What is needed.
        needs: vk::FormatFeatureFlags,
        /// What the device can do with images of this format and tiling.
        has: vk::FormatFeatureFlags,
    },
    /// Images of several samples are not for this.
    Samples {
        /// How many it has.
        samples: vk::SampleCountFlags,
    },
    /// An attachment cannot be resolved so: colors have one mode, and render passes of Vulkan 1.0 resolve colors alone.
    ResolveMode {
        /// The mode.
        mode: vk::ResolveModeFlags,
        /// What was to be resolved.
        aspect: vk::ImageAspectFlags,
    },
    /// Depths are from 0 to 1.
    DepthRange {
        /// What was to become of the depth 0.
        min: f32,
        /// What was to become of the depth 1.
        max: f32,
    },
    /// The device is not said to have it: see [`Features`](crate::Features).
    NotEnabled {
        /// What is missing, as Vulkan calls it.
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
    /// No arena could be made.
    CreateUploads(CreateUploadError),
    /// There is no room for uploads.
    Upload(UploadError),
    /// No binder could be made.
    CreateBinder(CreateBinderError),
    /// A descriptor does not fit its binding.
    Stage(StageError),
    /// The pipeline layout is not one for these frames.
    Layout(UseLayoutError),
    /// Descriptors could not be bound.
    Commit(CommitError),
    /// No buffer could be made for what is read back.
    Create(CreateError),
    /// There is no view of an image.
    View(ViewError),
    /// The driver refused a pipeline, descriptors or a render pass of the list's own.
    Driver(DriverError),
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("the device is lost"),
            Self::Observer => f.write_str("what was shown the barriers of the command panicked"),
            Self::OtherFrames => f.write_str("the resource is of other frames"),
            Self::Use(error) => error.fmt(f),
            Self::InsideRendering => f.write_str("the command is not for the inside of rendering"),
            Self::OutsideRendering => f.write_str("the command is for the inside of rendering"),
            Self::NoLabel => f.write_str("no label was begun"),
            Self::NoRendering => {
                f.write_str("the driver has no render passes, and dynamic rendering is not enabled")
            },
            Self::RenderingNeedsBarrier => f.write_str(
                "a draw needs a barrier, and rendering cannot be interrupted: declare the use before it begins",
            ),
            Self::BufferUsage { needs, has } => write!(f, "a buffer for {needs:?} is needed; it is one for {has:?}"),
            Self::ImageUsage { needs, has } => write!(f, "an image for {needs:?} is needed; it is one for {has:?}"),
            Self::Queue { needs, has } => write!(f, "a queue for one of {needs:?} is needed; it is one for {has:?}"),
            Self::OutOfRange { what, start, end, size } => {
                write!(f, "{what} {start} to {end} are none of the {size} that there are")
            }
            Self::Misaligned { what, given, alignment } => {
                write!(f, "{what} is {given}, and has to be a multiple of {alignment}")
            }
            Self::Overlap { region, with } => write!(f, "regions {region} and {with} overlap"),
            Self::TooFewBytes { needed, given } => write!(f, "the texels take {needed} bytes, and there are {given}"),
            Self::Format { format, aspect } => write!(f, "how {aspect:?} of {format:?} lies in memory is not known"),
            Self::FormatFeatures { format, needs, has } => {
                write!(f, "{format:?} needs {needs:?}; the device has {has:?}")
            }
            Self::Samples { samples } => write!(f, "the image has {samples:?}, and one sample is needed"),
            Self::ResolveMode { mode, aspect } => write!(f, "{aspect:?} of this format is not resolved by {mode:?} here"),
            Self::DepthRange { min, max } => write!(f, "depths are from 0 to 1, and were to be from {min} to {max}"),
            Self::NotEnabled { feature } => write!(f, "{feature} is needed, and is not enabled"),
            Self::NoDescriptors => f.write_str("the frames were made without a descriptor device"),
            Self::NoBinding { set, binding } => {
                write!(f, "there is no pipeline with set {set}, binding {binding} at the bind point")
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

/// Whether `start..end` is within `size` and not empty.
pub(super) fn check_range(what: &'static str, start: u64, end: u64, size: u64) -> Result<(), ListError> {
    if start < end && end <= size { Ok(()) } else { Err(ListError::OutOfRange { what, start, end, size }) }
}

/// Whether `given` is a multiple.
pub(super) fn check_multiple(what: &'static str, given: u64, alignment: u64) -> Result<(), ListError> {
    if given % alignment == 0 { Ok(()) } else { Err(ListError::Misaligned { what, given, alignment }) }
}
