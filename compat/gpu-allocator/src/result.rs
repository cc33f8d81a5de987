//! Errors. Programs match on them without a wildcard, so the enum has exactly these variants.

use thiserror::Error;

/// An error of an allocator.
#[derive(Error, Debug)]
pub enum AllocationError {
    /// The heap has no memory left.
    #[error("Out of memory")]
    OutOfMemory,
    /// The driver failed to map memory.
    #[error("Failed to map memory: {0}")]
    FailedToMap(String),
    /// No allowed memory type has the properties that the location requires.
    #[error("No compatible memory type available")]
    NoCompatibleMemoryTypeFound,
    /// The size is zero, or the alignment is not a power of two.
    #[error("Invalid AllocationCreateDesc")]
    InvalidAllocationCreateDesc,
    /// The create-info is invalid. Holds the reason.
    #[error("Invalid AllocatorCreateDesc {0}")]
    InvalidAllocatorCreateDesc(String),
    /// Any other error. Holds the reason.
    #[error("Internal error: {0}")]
    Internal(String),
    /// Never returned: it belongs to Direct3D 12.
    #[error("Initial `BARRIER_LAYOUT` needs at least `Device10`")]
    BarrierLayoutNeedsDevice10,
    /// Never returned: it belongs to Direct3D 12.
    #[error("Castable formats require enhanced barriers")]
    CastableFormatsRequiresEnhancedBarriers,
    /// Never returned: it belongs to Direct3D 12.
    #[error("Castable formats require at least `Device12`")]
    CastableFormatsRequiresAtLeastDevice12,
}

/// A result with [`AllocationError`].
pub type Result<V, E = AllocationError> = core::result::Result<V, E>;
