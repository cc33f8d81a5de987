//! Errors of checking margins.

use std::error::Error;
use std::fmt;
use std::panic::Location;

use ash::vk;

use super::access::{ForeignHandle, MapError};

/// An allocation whose margin was written to.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DamagedAllocation {
    /// Its name.
    pub name: Option<Box<str>>,
    /// Its user data, if tracked: see [`Tracking`](crate::Tracking).
    pub user_data: Option<u64>,
    /// The code location of the allocation, if tracked.
    pub caller: Option<&'static Location<'static>>,
    /// Index of the memory type.
    pub memory_type_index: u32,
    /// The device memory that contains, or contained, it.
    pub memory: vk::DeviceMemory,
    /// Bytes from the start of that memory.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
    /// The position of the first wrong byte, in bytes from the end of the allocation.
    pub bytes_past_end: u64,
    /// True if it was freed meanwhile, or moved by a defragmentation.
    pub freed: bool,
}

impl fmt::Display for DamagedAllocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name:?}: ")?,
            None => f.write_str("(unnamed): ")?,
        }
        write!(f, "{} bytes at {}, memory type {}", self.size, self.offset, self.memory_type_index)
    }
}

/// The result of a failed check of margins.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CorruptionError {
    /// [`DebugSettings::detect_corruption`](crate::DebugSettings::detect_corruption) is off, or none of the memory
    /// types is host-visible and host-coherent.
    NotDetected,
    /// The pool belongs to another allocator, or was destroyed.
    Foreign(ForeignHandle),
    /// Something has written beyond the end of these allocations.
    Damaged(Box<[DamagedAllocation]>),
    /// The memory could not be mapped.
    Map(MapError),
}

impl CorruptionError {
    /// The Vulkan result that VMA would return for this error.
    pub fn vk_result(&self) -> vk::Result {
        match self {
            Self::NotDetected => vk::Result::ERROR_FEATURE_NOT_PRESENT,
            Self::Foreign(_) => vk::Result::ERROR_VALIDATION_FAILED_EXT,
            Self::Damaged(_) => vk::Result::ERROR_UNKNOWN,
            Self::Map(error) => error.vk_result(),
        }
    }
}

impl fmt::Display for CorruptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotDetected => f.write_str("corruption is not detected in this memory"),
            Self::Foreign(error) => error.fmt(f),
            Self::Damaged(damaged) => {
                let ends = if damaged.len() == 1 { "allocation" } else { "allocations" };
                write!(f, "something wrote beyond the end of {} {ends}", damaged.len())?;
                damaged.first().map_or(Ok(()), |first| write!(f, ", the first of them {first}"))
            }
            Self::Map(error) => write!(f, "the memory could not be mapped: {error}"),
        }
    }
}

impl Error for CorruptionError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Map(error) => error.source(),
            _ => None,
        }
    }
}
