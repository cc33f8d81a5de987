//! Defragmentation: begun, done in passes, ended.

use ash::vk;

use crate::capi::guard::{answer, exported};
use crate::capi::types::{
    VmaAllocator, VmaDefragmentationContext, VmaDefragmentationInfo, VmaDefragmentationPassMoveInfo,
    VmaDefragmentationStats,
};

exported! {
    /// Begins.
    fn vmaBeginDefragmentation(
        _allocator: VmaAllocator,
        _info: *const VmaDefragmentationInfo,
        context: *mut VmaDefragmentationContext,
    ) -> vk::Result {
        // SAFETY: C3.
        unsafe { answer(context, std::ptr::null_mut()) };
        vk::Result::ERROR_FEATURE_NOT_PRESENT
    }

    /// Ends.
    fn vmaEndDefragmentation(
        _allocator: VmaAllocator,
        _context: VmaDefragmentationContext,
        statistics: *mut VmaDefragmentationStats,
    ) {
        // SAFETY: C3.
        unsafe { answer(statistics, VmaDefragmentationStats::default()) };
    }

    /// Says what is to be moved.
    fn vmaBeginDefragmentationPass(
        _allocator: VmaAllocator,
        _context: VmaDefragmentationContext,
        _pass: *mut VmaDefragmentationPassMoveInfo,
    ) -> vk::Result {
        vk::Result::ERROR_FEATURE_NOT_PRESENT
    }

    /// Hears what was moved.
    fn vmaEndDefragmentationPass(
        _allocator: VmaAllocator,
        _context: VmaDefragmentationContext,
        _pass: *mut VmaDefragmentationPassMoveInfo,
    ) -> vk::Result {
        vk::Result::ERROR_FEATURE_NOT_PRESENT
    }
}
