//! Virtual blocks.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;

use ash::vk;

use crate::allocator::{address, pointer};
use crate::guard::{answer, exported, given, is_missing, leaked, misused, refused};
use crate::log;
use crate::types::{
    VIRTUAL_BLOCK_LINEAR_ALGORITHM, VmaDetailedStatistics, VmaStatistics, VmaVirtualAllocation,
    VmaVirtualAllocationCreateInfo, VmaVirtualAllocationInfo, VmaVirtualBlock, VmaVirtualBlockCreateInfo,
};
use crate::virtual_block::BlockObject;
use sublet::AllocationCreateFlags as Flags;
use sublet::private::{virtual_allocation, virtual_handle};
use sublet::{Algorithm, metadata::Strategy};
use sublet::{VirtualAllocationCreateInfo, VirtualAllocationError, VirtualBlock, VirtualBlockCreateInfo};

/// Returns a block for modification.
///
/// # Safety
/// C1 and C2.
#[inline(always)]
unsafe fn changed<'a>(function: &'static str, block: VmaVirtualBlock) -> Option<&'a mut VirtualBlock> {
    // SAFETY: C1; C2: one thread at a time uses a block.
    let object = unsafe { block.as_mut() };
    if object.is_none() {
        misused(function, "the block must not be null");
    }
    object.map(|object| &mut object.block)
}

fn strategy(flags: Flags) -> Strategy {
    // As in VMA, the first of these counts if several are set.
    if flags.contains(Flags::STRATEGY_MIN_TIME) {
        Strategy::MinTime
    } else if flags.contains(Flags::STRATEGY_MIN_MEMORY) {
        Strategy::MinMemory
    } else if flags.contains(Flags::STRATEGY_MIN_OFFSET) {
        Strategy::MinOffset
    } else {
        Strategy::Balanced
    }
}

exported! {
    /// Creates a virtual block.
    fn vmaCreateVirtualBlock(info: *const VmaVirtualBlockCreateInfo, block: *mut VmaVirtualBlock) -> vk::Result {
        const NAME: &str = "vmaCreateVirtualBlock";
        log::start();
        // SAFETY: C3.
        unsafe { answer(block, std::ptr::null_mut()) };
        // SAFETY: C3.
        let (Some(info), false) = (unsafe { given(NAME, info) }, is_missing(NAME, block)) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let linear = info.flags & VIRTUAL_BLOCK_LINEAR_ALGORITHM != 0;
        let algorithm = if linear { Algorithm::Linear } else { Algorithm::Tlsf };
        match VirtualBlock::new(&VirtualBlockCreateInfo { size: info.size, algorithm }) {
            Ok(made) => {
                // SAFETY: C3; the pointer is not null.
                unsafe { block.write(Box::into_raw(Box::new(BlockObject { block: made }))) };
                vk::Result::SUCCESS
            }
            Err(error) => refused(NAME, &error, true, vk::Result::ERROR_INITIALIZATION_FAILED),
        }
    }

    /// Destroys a virtual block.
    fn vmaDestroyVirtualBlock(block: VmaVirtualBlock) {
        if !block.is_null() {
            // SAFETY: C1 and C2: `vmaCreateVirtualBlock` made the box, and no other call uses it.
            let object = unsafe { Box::from_raw(block) };
            let allocations = object.block.statistics().allocation_count;
            if allocations != 0 {
                leaked("vmaDestroyVirtualBlock", "virtual block", "allocations", allocations);
            }
        }
    }

    /// Returns true if nothing is allocated.
    fn vmaIsVirtualBlockEmpty(block: VmaVirtualBlock) -> vk::Bool32 {
        // SAFETY: C1, C2.
        unsafe { changed("vmaIsVirtualBlockEmpty", block) }.map_or(vk::TRUE, |block| block.is_empty().into())
    }

    /// Describes a virtual allocation.
    fn vmaGetVirtualAllocationInfo(
        block: VmaVirtualBlock,
        allocation: VmaVirtualAllocation,
        info: *mut VmaVirtualAllocationInfo,
    ) {
        const NAME: &str = "vmaGetVirtualAllocationInfo";
        // SAFETY: C1, C2.
        let Some(block) = (unsafe { changed(NAME, block) }) else { return };
        match virtual_allocation(block, allocation).map(|known| block.info(&known)) {
            Some(Ok(known)) => {
                let described = VmaVirtualAllocationInfo {
                    offset: known.offset,
                    size: known.size,
                    user_data: pointer(known.user_data),
                };
                // SAFETY: C3.
                unsafe { answer(info, described) };
            }
            _ => misused(NAME, "the virtual allocation is not one of the block"),
        }
    }

    /// Allocates a range.
    fn vmaVirtualAllocate(
        block: VmaVirtualBlock,
        info: *const VmaVirtualAllocationCreateInfo,
        allocation: *mut VmaVirtualAllocation,
        offset: *mut u64,
    ) -> vk::Result {
        const NAME: &str = "vmaVirtualAllocate";
        // SAFETY: C3.
        unsafe { answer(allocation, 0) };
        // SAFETY: C3.
        unsafe { answer(offset, u64::MAX) };
        // SAFETY: C1 to C3.
        let (Some(block), Some(info)) = (unsafe { changed(NAME, block) }, unsafe { given(NAME, info) }) else {
            return vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
        };
        let flags = Flags::from_bits_truncate(info.flags);
        let upper_address = flags.contains(Flags::UPPER_ADDRESS);
        if upper_address && block.algorithm() != Algorithm::Linear {
            misused(NAME, "only a linear block has upper addresses");
        }
        let asked = VirtualAllocationCreateInfo {
            size: info.size,
            alignment: info.alignment,
            strategy: strategy(flags),
            // VMA's release build ignores the flag if the algorithm has no upper side.
            upper_address: upper_address && block.algorithm() == Algorithm::Linear,
            user_data: address(info.user_data),
        };
        let made = if allocation.is_null() {
            misused(NAME, "pAllocation must not be null");
            None
        } else {
            match block.allocate(&asked) {
                Ok(made) => Some(made),
                Err(error) => {
                    let misuse = !matches!(error, VirtualAllocationError::NoSpace { .. });
                    let _ = refused(NAME, &error, misuse, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
                    None
                }
            }
        };
        let Some(made) = made else { return vk::Result::ERROR_OUT_OF_DEVICE_MEMORY };
        // SAFETY: C3.
        unsafe { answer(allocation, virtual_handle(&made)) };
        // SAFETY: C3.
        unsafe { answer(offset, made.offset()) };
        vk::Result::SUCCESS
    }

    /// Frees a range.
    fn vmaVirtualFree(block: VmaVirtualBlock, allocation: VmaVirtualAllocation) {
        const NAME: &str = "vmaVirtualFree";
        if allocation == 0 {
            return;
        }
        // SAFETY: C1, C2.
        let Some(block) = (unsafe { changed(NAME, block) }) else { return };
        match virtual_allocation(block, allocation).map(|known| block.free(known)) {
            Some(Ok(())) => {}
            _ => misused(NAME, "the virtual allocation is not one of the block"),
        }
    }

    /// Frees all ranges.
    fn vmaClearVirtualBlock(block: VmaVirtualBlock) {
        // SAFETY: C1, C2.
        if let Some(block) = unsafe { changed("vmaClearVirtualBlock", block) } {
            block.clear();
        }
    }

    /// Replaces the user data of a range.
    fn vmaSetVirtualAllocationUserData(
        block: VmaVirtualBlock,
        allocation: VmaVirtualAllocation,
        user_data: *mut c_void,
    ) {
        const NAME: &str = "vmaSetVirtualAllocationUserData";
        // SAFETY: C1, C2.
        let Some(block) = (unsafe { changed(NAME, block) }) else { return };
        let changed = virtual_allocation(block, allocation).map(|known| block.set_user_data(&known, address(user_data)));
        if !matches!(changed, Some(Ok(()))) {
            misused(NAME, "the virtual allocation is not one of the block");
        }
    }

    /// Returns the statistics that are always current.
    fn vmaGetVirtualBlockStatistics(block: VmaVirtualBlock, statistics: *mut VmaStatistics) {
        // SAFETY: C1, C2.
        if let Some(block) = unsafe { changed("vmaGetVirtualBlockStatistics", block) } {
            // SAFETY: C3.
            unsafe { answer(statistics, VmaStatistics::from(&block.statistics())) };
        }
    }

    /// Walks the block and returns detailed statistics.
    fn vmaCalculateVirtualBlockStatistics(block: VmaVirtualBlock, statistics: *mut VmaDetailedStatistics) {
        // SAFETY: C1, C2.
        if let Some(block) = unsafe { changed("vmaCalculateVirtualBlockStatistics", block) } {
            // SAFETY: C3.
            unsafe { answer(statistics, VmaDetailedStatistics::from(&block.detailed_statistics())) };
        }
    }
}
