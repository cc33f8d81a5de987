//! The numbers that errors have in a trace.

use crate::error::{AllocationError, MemoryError};

/// The number of an error; 0 for one that has none. A number never gets another meaning: 18 was that of a request
/// above `maxMemoryAllocationSize`, which is the driver's to answer now.
pub(crate) fn failure_number(error: &AllocationError) -> u8 {
    match error {
        AllocationError::ZeroSize => 1,
        AllocationError::Alignment { .. } => 2,
        AllocationError::Priority { .. } => 3,
        AllocationError::Contradiction(_) => 4,
        AllocationError::NoMemoryType(_) => 5,
        AllocationError::PoolMemoryType { .. } => 6,
        // A foreign request is not recorded.
        AllocationError::ForeignPool => 7,
        AllocationError::UpperAddress { .. } => 8,
        AllocationError::UpperAddressInRing => 9,
        AllocationError::BlockTooSmall { .. } => 10,
        AllocationError::Full { .. } => 11,
        AllocationError::Map(_) => 12,
        AllocationError::Memory(MemoryError::HeapTooSmall { .. }) => 13,
        AllocationError::Memory(MemoryError::HeapLimit { .. }) => 14,
        AllocationError::Memory(MemoryError::OverBudget { .. }) => 15,
        AllocationError::Memory(MemoryError::TooManyAllocations { .. }) => 16,
        AllocationError::Memory(MemoryError::Driver { .. }) => 17,
    }
}
