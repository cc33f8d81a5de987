//! Why a profile could not be read.

use std::error::Error;
use std::fmt;

/// [`Profile::from_json`](super::super::Profile::from_json) failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadProfileError {
    /// The text is not JSON, or a member is missing, unknown or of another type than it should be.
    Json {
        /// The line, from 1 on.
        line: usize,
        /// The column, from 1 on.
        column: usize,
        /// The text of the JSON reader, which also names the place.
        reason: Box<dyn Error + Send + Sync>,
    },
    /// The member `"format"` is not `"sublet-device-profile"`: the text is some other JSON.
    OtherFormat,
    /// The profile was written for another version of the schema. Remedy: a newer Sublet.
    Version {
        /// The version, if there was a number.
        version: Option<u64>,
    },
    /// The values describe an impossible device.
    Invalid(InvalidProfile),
}

impl ReadProfileError {
    pub(crate) fn json(error: serde_json::Error) -> Self {
        Self::Json { line: error.line(), column: error.column(), reason: Box::new(error) }
    }
}

impl fmt::Display for ReadProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The reader of JSON names the place.
            Self::Json { reason, .. } => write!(f, "the profile cannot be read: {reason}"),
            Self::OtherFormat => {
                f.write_str("no device profile: its \"format\" is not \"sublet-device-profile\"")
            }
            Self::Version { version: Some(version) } => {
                write!(
                    f,
                    "the profile's version is {version}, and this Sublet reads version {}",
                    super::VERSION
                )
            }
            Self::Version { version: None } => f.write_str("the profile has no version"),
            Self::Invalid(why) => write!(f, "the profile describes no possible device: {why}"),
        }
    }
}

impl Error for ReadProfileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Json { reason, .. } => reason.source(),
            _ => None,
        }
    }
}

impl From<InvalidProfile> for ReadProfileError {
    fn from(why: InvalidProfile) -> Self {
        Self::Invalid(why)
    }
}

/// The fault in the values of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidProfile {
    /// The profile's name is empty, or has other characters than lower-case letters, digits and hyphens.
    Name,
    /// The device's name is empty, longer than Vulkan's 255 bytes, or has a NUL in it.
    DeviceName,
    /// The version of Vulkan is none of 1.0 to 1.4.
    ApiVersion {
        /// As Vulkan packs it.
        version: u32,
    },
    /// There are no heaps, or more than Vulkan's 16.
    HeapCount {
        /// Their count.
        count: usize,
    },
    /// There are no memory types, or more than Vulkan's 32.
    TypeCount {
        /// Their count.
        count: usize,
    },
    /// A heap of no bytes.
    EmptyHeap {
        /// Its index.
        heap: usize,
    },
    /// A memory type is in a heap that is not there.
    HeapOutOfRange {
        /// The type.
        memory_type: usize,
        /// The heap that it names.
        heap: u32,
        /// Their count.
        heaps: usize,
    },
    /// A memory type is device-local and its heap is not, or the other way round.
    DeviceLocal {
        /// The type.
        memory_type: usize,
        /// Its heap.
        heap: u32,
    },
    /// An alignment, a granularity or a side of a tile is no power of two.
    NotPowerOfTwo {
        /// Which member.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// A number is smaller or larger than it can be.
    OutOfRange {
        /// Which member.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The least that it may be.
        least: u64,
        /// The most that it may be.
        most: u64,
    },
    /// Bits name memory types that are not there.
    UnknownTypes {
        /// Which member.
        what: &'static str,
        /// The bits.
        bits: u32,
    },
    /// No memory type is left for such resources.
    NoTypes {
        /// Which member.
        what: &'static str,
    },
    /// The tiles of optimal images do not begin with one from 0 bytes on, or do not ascend.
    TileOrder,
    /// A tile's least height is above its greatest.
    TileHeight,
    /// The feature `descriptor_buffer` without the limits of that name, or the other way round.
    DescriptorBuffer,
}

impl fmt::Display for InvalidProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Name => f.write_str("its name has to be of lower-case letters, digits and hyphens"),
            Self::DeviceName => f.write_str("the device's name has to have 1 to 255 bytes, none of them NUL"),
            Self::ApiVersion { version } => {
                write!(f, "Vulkan's version {version:#x} is none of 1.0 to 1.4")
            }
            Self::HeapCount { count } => write!(f, "{count} heaps, and there may be 1 to 16"),
            Self::TypeCount { count } => write!(f, "{count} memory types, and there may be 1 to 32"),
            Self::EmptyHeap { heap } => write!(f, "heap {heap} has no bytes"),
            Self::HeapOutOfRange { memory_type, heap, heaps } => {
                let are = if heaps == 1 {
                    "there is 1 heap".to_owned()
                } else {
                    format!("there are {heaps} heaps")
                };
                write!(f, "memory type {memory_type} is in heap {heap}, and {are}")
            }
            Self::DeviceLocal { memory_type, heap } => {
                write!(
                    f,
                    "of memory type {memory_type} and its heap {heap}, one is DEVICE_LOCAL and the other is not"
                )
            }
            Self::NotPowerOfTwo { what, value } => write!(f, "{what} is {value}, which is no power of two"),
            Self::OutOfRange { what, value, least, most } => {
                write!(f, "{what} is {value}, and may be {least} to {most}")
            }
            Self::UnknownTypes { what, bits } => {
                write!(f, "{what} are {bits:#x}, which names memory types that are not there")
            }
            Self::NoTypes { what } => write!(f, "{what} leave no memory type"),
            Self::TileOrder => f.write_str("the tiles have to begin with one from 0 bytes on, and to ascend"),
            Self::TileHeight => f.write_str("the least height of a tile is above its greatest"),
            Self::DescriptorBuffer => {
                f.write_str("the feature descriptor_buffer and the limits of that name come together")
            }
        }
    }
}

impl Error for InvalidProfile {}
