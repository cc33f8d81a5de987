//! The error numbers in a trace.

use crate::error::{AllocationError, MemoryError};

/// Returns the number of an error; 0 if it has none. Numbers are never reassigned: 18 was a request above
/// `maxMemoryAllocationSize`, which now goes to the driver.
pub(crate) fn failure_number(error: &AllocationError) -> u8 {
    match error {
        AllocationError::ZeroSize => 1,
        AllocationError::Alignment { .. } => 2,
        AllocationError::Priority { .. } => 3,
        AllocationError::Contradiction(_) => 4,
        AllocationError::NoMemoryType(_) => 5,
        AllocationError::PoolMemoryType { .. } => 6,
        // A request with a foreign pool is not recorded.
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
