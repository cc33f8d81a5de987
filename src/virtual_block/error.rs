//! What a virtual block refuses, and why.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use super::VirtualAllocation;
use crate::metadata::Algorithm;

/// Why a [`VirtualBlock`](super::VirtualBlock) was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum VirtualBlockError {
    /// No units, or too many.
    Size {
        /// What was asked.
        size: u64,
        /// The most that there can be.
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

/// Why a [`VirtualBlock`](super::VirtualBlock) did not allocate. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum VirtualAllocationError {
    /// Nothing was asked for.
    ZeroSize,
    /// The alignment is not a power of two.
    Alignment {
        /// What was asked.
        alignment: u64,
    },
    /// No unused range is large enough once it is aligned. Where `largest_free` is below `size` but `free` is not, the
    /// block is fragmented.
    NoSpace {
        /// Units asked.
        size: u64,
        /// The alignment asked.
        alignment: u64,
        /// Units that nobody has.
        free: u64,
        /// The most that an allocation with an alignment of 1 could have; where hundreds of ranges are about as large,
        /// too little by less than 1/64 at most.
        largest_free: u64,
    },
    /// An upper address was asked of a block that has none.
    UpperUnsupported {
        /// How the block is divided.
        algorithm: Algorithm,
    },
    /// An upper address was asked while the block is used as a ring buffer: the two exclude each other.
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

/// Why a [`VirtualAllocation`] is not one of this block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum VirtualHandleError {
    /// It is of another block.
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

/// Why an allocation was not freed; gives it back. Nothing was changed.
#[derive(PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct VirtualFreeError {
    /// What is wrong with it.
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
