//! Allocation of ranges without memory.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ffi::c_void;

use ash::prelude::VkResult;
use ash::vk;
use sublet::metadata::Strategy;
use sublet::{Algorithm, VirtualAllocationError};

use crate::flags::{VirtualAllocationCreateFlags as Flags, VirtualBlockCreateFlags};
use crate::refused::{misused, refused};
use crate::statistics::{DetailedStatistics, Statistics};

/// The settings of a range.
#[derive(Debug, Clone, Copy)]
pub struct VirtualAllocationCreateInfo {
    /// Size in units.
    pub size: u64,
    /// Alignment of the offset; zero for none.
    pub alignment: u64,
    /// The program's user data.
    pub user_data: usize,
    /// Its flags.
    pub flags: Flags,
}

/// The settings of a new [`VirtualBlock`].
#[derive(Default)]
pub struct VirtualBlockCreateInfo<'a> {
    /// Size in units.
    pub size: vk::DeviceSize,
    /// Its flags.
    pub flags: VirtualBlockCreateFlags,
    /// Has no effect here.
    pub allocation_callbacks: Option<&'a vk::AllocationCallbacks<'a>>,
}

/// The description of a range.
#[derive(Debug, Clone, Copy)]
pub struct VirtualAllocationInfo {
    /// Offset in units.
    pub offset: vk::DeviceSize,
    /// Size in units.
    pub size: vk::DeviceSize,
    /// The program's user data.
    pub user_data: usize,
}

/// A range of a [`VirtualBlock`], or nothing after it is freed.
#[derive(Debug)]
#[must_use = "the range stays allocated until it is given back to its block"]
pub struct VirtualAllocation {
    inner: Option<sublet::VirtualAllocation>,
    user_data: usize,
}

/// A number of units, divided into ranges.
#[derive(Debug)]
pub struct VirtualBlock {
    inner: sublet::VirtualBlock,
}

impl VirtualBlock {
    /// Creates a block.
    ///
    /// # Errors
    /// `ERROR_INITIALIZATION_FAILED` for a size of zero.
    pub fn new(create_info: VirtualBlockCreateInfo<'_>) -> VkResult<Self> {
        let linear = create_info
            .flags
            .contains(VirtualBlockCreateFlags::VMA_VIRTUAL_BLOCK_CREATE_LINEAR_ALGORITHM_BIT);
        let info = sublet::VirtualBlockCreateInfo {
            size: create_info.size,
            algorithm: if linear { Algorithm::Linear } else { Algorithm::Tlsf },
        };
        sublet::VirtualBlock::new(&info)
            .map(|inner| Self { inner })
            .map_err(|error| refused(&error, vk::Result::ERROR_INITIALIZATION_FAILED))
    }

    /// Allocates a range, and returns it with its offset.
    ///
    /// # Errors
    /// `ERROR_OUT_OF_DEVICE_MEMORY` if it does not fit.
    ///
    /// # Safety
    /// Always safe.
    pub unsafe fn allocate(
        &mut self,
        allocation_info: VirtualAllocationCreateInfo,
    ) -> VkResult<(VirtualAllocation, u64)> {
        let VirtualAllocationCreateInfo { size, alignment, user_data, flags } = allocation_info;
        let upper = flags.contains(Flags::VMA_VIRTUAL_ALLOCATION_CREATE_UPPER_ADDRESS_BIT);
        let info = sublet::VirtualAllocationCreateInfo {
            size,
            alignment,
            strategy: strategy(flags),
            // The original ignores the flag if the algorithm has no upper side.
            upper_address: upper && self.inner.algorithm() == Algorithm::Linear,
            user_data: crate::info::wide(user_data),
        };
        let range = self.inner.allocate(&info).map_err(|error| {
            if !matches!(error, VirtualAllocationError::NoSpace { .. }) {
                let _ = misused(&error.to_string());
            }
            refused(&error, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY)
        })?;
        let offset = range.offset();
        Ok((VirtualAllocation { inner: Some(range), user_data }, offset))
    }

    /// Frees a range and leaves `allocation` empty. Ignores an empty allocation and one of another block.
    ///
    /// # Safety
    /// Always safe.
    pub unsafe fn free(&mut self, allocation: &mut VirtualAllocation) {
        let Some(range) = allocation.inner.take() else {
            let _ = misused("the range was freed");
            return;
        };
        if let Err(error) = self.inner.free(range) {
            let _ = misused(&error.to_string());
            allocation.inner = Some(error.allocation);
        }
    }

    /// Frees all ranges.
    ///
    /// # Safety
    /// Always safe.
    pub unsafe fn clear(&mut self) {
        self.inner.clear();
    }

    /// Describes a range.
    ///
    /// # Errors
    /// `ERROR_UNKNOWN` if it does not belong to this block.
    ///
    /// # Safety
    /// Always safe.
    pub unsafe fn get_allocation_info(
        &self,
        allocation: &VirtualAllocation,
    ) -> VkResult<VirtualAllocationInfo> {
        let range = allocation.inner.as_ref().ok_or_else(|| misused("the range was freed"))?;
        let known = self.inner.info(range).map_err(|error| misused(&error.to_string()))?;
        let user_data = allocation.user_data;
        Ok(VirtualAllocationInfo { offset: known.offset, size: known.size, user_data })
    }

    /// Replaces the user data of a range.
    ///
    /// # Safety
    /// Always safe.
    pub unsafe fn set_allocation_user_data(
        &self,
        allocation: &mut VirtualAllocation,
        user_data: *mut c_void,
    ) {
        allocation.user_data = user_data.expose_provenance();
    }

    /// Returns true if nothing is allocated.
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// Returns the statistics that are always current.
    pub fn get_statistics(&self) -> Statistics {
        Statistics::from(&self.inner.statistics())
    }

    /// Returns a report as JSON in VMA's schema, with a map if `detailed`. User data is that of the allocation call;
    /// later changes are missing.
    pub fn build_stats_string(&self, detailed: bool) -> String {
        sublet_report::virtual_block_stats_string(&self.inner, detailed)
    }

    /// Walks the block and returns detailed statistics.
    pub fn calculate_statistics(&self) -> DetailedStatistics {
        DetailedStatistics::from(&self.inner.detailed_statistics())
    }
}

/// Returns the one strategy that VMA follows if several are set.
fn strategy(flags: Flags) -> Strategy {
    if flags.contains(Flags::VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT) {
        Strategy::MinTime
    } else if flags.contains(Flags::VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_MEMORY_BIT) {
        Strategy::MinMemory
    } else if flags.contains(Flags::VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT) {
        Strategy::MinOffset
    } else {
        Strategy::Balanced
    }
}
