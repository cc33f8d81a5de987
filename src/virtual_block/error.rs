//! Errors of virtual blocks.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use super::VirtualAllocation;
use crate::metadata::Algorithm;

/// Why a [`VirtualBlock`](super::VirtualBlock) could not be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum VirtualBlockError {
    /// No units, or too many.
    Size {
        /// Units that were asked for.
        size: u64,
        /// The most units that a block can have.
        max: u64,
    },
}

impl fmt::Display for VirtualBlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { size, max } => write!(f, "a virtual block has 1 to {max} units, not {size}"),
        }
    }
}

impl Error for VirtualBlockError {}

/// Why a [`VirtualBlock`](super::VirtualBlock) could not allocate. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum VirtualAllocationError {
    /// Zero units were asked for.
    ZeroSize,
    /// The alignment is not a power of two.
    Alignment {
        /// The alignment that was asked for.
        alignment: u64,
    },
    /// No free range is large enough once it is aligned. If `free` is not below `size` but `largest_free` is, the block
    /// is fragmented.
    NoSpace {
        /// Units that were asked for.
        size: u64,
        /// The alignment that was asked for.
        alignment: u64,
        /// Free units of the block.
        free: u64,
        /// The most units that an allocation with an alignment of 1 could have. Where several ranges are about as large,
        /// it may be too small by less than 1/64.
        largest_free: u64,
    },
    /// An upper address was asked for, and the block has none.
    UpperUnsupported {
        /// How the block is divided.
        algorithm: Algorithm,
    },
    /// An upper address was asked for while the block is used as a ring buffer: the two exclude each other.
    UpperInRing,
}

impl fmt::Display for VirtualAllocationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroSize => f.write_str("an allocation has at least one unit"),
            Self::Alignment { alignment } => write!(f, "an alignment is a power of two, not {alignment}"),
            Self::NoSpace { size, alignment, free, largest_free } => write!(
                f,
                "no space for {size} units at a multiple of {alignment}: {free} are free, {largest_free} in one piece"
            ),
            Self::UpperUnsupported { algorithm } => {
                write!(f, "a block that is divided by {algorithm:?} has no upper side, only Linear does")
            }
            Self::UpperInRing => f.write_str("the block is used as a ring buffer, which has no upper side"),
        }
    }
}

impl Error for VirtualAllocationError {}

/// Why a [`VirtualAllocation`] is not valid in a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum VirtualHandleError {
    /// It belongs to another block.
    ForeignBlock,
    /// It is from before the block was cleared.
    Cleared,
}

impl fmt::Display for VirtualHandleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ForeignBlock => "the allocation is of another virtual block",
            Self::Cleared => "the virtual block was cleared after the allocation was made",
        })
    }
}

impl Error for VirtualHandleError {}

/// Why an allocation was not freed. The error gives it back. Nothing was changed.
#[derive(PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct VirtualFreeError {
    /// Why it is not valid.
    pub reason: VirtualHandleError,
    /// The allocation, as it was.
    pub allocation: VirtualAllocation,
}

impl fmt::Display for VirtualFreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let VirtualAllocation { offset, size, .. } = self.allocation;
        write!(f, "the allocation of {size} units at {offset} was not freed: {}", self.reason)
    }
}

impl Error for VirtualFreeError {}
