//! The numbers in a file and their values.

use super::asked::Failure;
use crate::error::AllocationError;
use crate::record::failure::failure_number;

impl Failure {
    /// In the order of the file. New ones are appended.
    const ALL: [Self; 19] = [
        Self::Other,
        Self::ZeroSize,
        Self::Alignment,
        Self::Priority,
        Self::Contradiction,
        Self::NoMemoryType,
        Self::PoolMemoryType,
        Self::ForeignPool,
        Self::UpperAddress,
        Self::UpperAddressInRing,
        Self::BlockTooSmall,
        Self::Full,
        Self::Map,
        Self::HeapTooSmall,
        Self::HeapLimit,
        Self::OverBudget,
        Self::TooManyAllocations,
        Self::Driver,
        Self::AllocationTooLarge,
    ];

    pub(super) fn of_number(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).copied().unwrap_or(Self::Other)
    }
}

impl From<&AllocationError> for Failure {
    fn from(error: &AllocationError) -> Self {
        Self::of_number(failure_number(error))
    }
}
