//! Errors of virtual blocks.

use super::VirtualAllocation;
use crate::engine::Algorithm;

/// The [`VirtualBlock`](super::VirtualBlock) could not be created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum VirtualBlockError {
    /// The size is zero or too large.
    Size {
        /// The requested number of units.
        size: u64,
        /// The maximum size of a block in units.
        max: u64,
    },
}

sublet_engines::errors! { VirtualBlockError:
    Size { size, max } => "a virtual block has 1 to {max} units, not {size}";
}

/// The [`VirtualBlock`](super::VirtualBlock) could not allocate. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum VirtualAllocationError {
    /// Zero units were requested.
    ZeroSize,
    /// The alignment is not a power of two.
    Alignment {
        /// The requested alignment.
        alignment: u64,
    },
    /// No free range is large enough at this alignment. If `free` is at least `size` but `largest_free` is smaller, the
    /// block is fragmented.
    NoSpace {
        /// The requested number of units.
        size: u64,
        /// The requested alignment.
        alignment: u64,
        /// The number of free units in the block.
        free: u64,
        /// The size of the largest possible allocation with an alignment of 1. If several ranges have about this size,
        /// the value may be too small by less than 1/64.
        largest_free: u64,
    },
    /// An upper address was requested, but the block does not support it.
    UpperUnsupported {
        /// The algorithm of the block.
        algorithm: Algorithm,
    },
    /// An upper address was requested while the block is used as a ring buffer. The two exclude each other.
    UpperInRing,
}

sublet_engines::errors! { VirtualAllocationError:
    ZeroSize => "an allocation has at least one unit";
    Alignment { alignment } => "an alignment is a power of two, not {alignment}";
    NoSpace { size, alignment, free, largest_free } =>
        "no space for {size} units at a multiple of {alignment}: {free} are free, {largest_free} in one piece";
    UpperUnsupported { algorithm } => "a block that is divided by {algorithm:?} has no upper side, only Linear does";
    UpperInRing => "the block is used as a ring buffer, which has no upper side";
}

/// The reason why a [`VirtualAllocation`] is not valid in a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum VirtualHandleError {
    /// It belongs to another block.
    ForeignBlock,
    /// It was allocated before the block was cleared.
    Cleared,
}

sublet_engines::errors! { VirtualHandleError:
    ForeignBlock => "the allocation is of another virtual block";
    Cleared => "the virtual block was cleared after the allocation was made";
}

/// The allocation was not freed; the error returns it. Nothing was changed.
#[derive(PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct VirtualFreeError {
    /// The reason why it is not valid.
    pub reason: VirtualHandleError,
    /// The unchanged allocation.
    pub allocation: VirtualAllocation,
}

sublet_engines::errors! { struct VirtualFreeError { allocation: VirtualAllocation { offset, size, .. }, reason } =>
    "the allocation of {size} units at {offset} was not freed: {reason}"
}
