//! What can go wrong. Programs match on it without a wildcard, so that it has exactly these variants.

use thiserror::Error;

/// Why an allocator did not do what it was asked.
#[derive(Error, Debug)]
pub enum AllocationError {
    /// No memory is left where it was asked for.
    #[error("Out of memory")]
    OutOfMemory,
    /// The driver did not map memory.
    #[error("Failed to map memory: {0}")]
    FailedToMap(String),
    /// No memory type is allowed and has what the location needs.
    #[error("No compatible memory type available")]
    NoCompatibleMemoryTypeFound,
    /// A size of zero, or an alignment that is no power of two.
    #[error("Invalid AllocationCreateDesc")]
    InvalidAllocationCreateDesc,
    /// What is wrong with it.
    #[error("Invalid AllocatorCreateDesc {0}")]
    InvalidAllocatorCreateDesc(String),
    /// Everything else, in words.
    #[error("Internal error: {0}")]
    Internal(String),
    /// Never given: it belongs to Direct3D 12.
    #[error("Initial `BARRIER_LAYOUT` needs at least `Device10`")]
    BarrierLayoutNeedsDevice10,
    /// Never given: it belongs to Direct3D 12.
    #[error("Castable formats require enhanced barriers")]
    CastableFormatsRequiresEnhancedBarriers,
    /// Never given: it belongs to Direct3D 12.
    #[error("Castable formats require at least `Device12`")]
    CastableFormatsRequiresAtLeastDevice12,
}

/// A result with [`AllocationError`].
pub type Result<V, E = AllocationError> = core::result::Result<V, E>;
