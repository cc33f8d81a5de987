//! Memory and resources, bound to one another.

use std::ffi::c_void;

use ash::vk;

use crate::allocator::{AllocatorObject, each};
use crate::guard::{exported, given};
use crate::refusal::success_or_logged;
use crate::slab::Slot;
use crate::types::{VmaAllocation, VmaAllocator};
use sublet::Allocation;

/// What is behind both handles, if they are live and the second is of the first.
///
/// # Safety
/// C1 and C2.
#[inline]
pub(super) unsafe fn both<'a>(
    function: &'static str,
    allocator: VmaAllocator,
    allocation: VmaAllocation,
) -> Option<(&'a AllocatorObject, &'a Slot, &'a Allocation)> {
    // SAFETY: C1.
    let object = unsafe { given(function, allocator.cast_const()) }?;
    // SAFETY: C1, C2.
    let slot = each!(object, front => unsafe { front.own(function, allocation) })?;
    Some((object, slot, slot.allocation()))
}

exported! {
    /// Binds a buffer to an allocation.
    fn vmaBindBufferMemory(allocator: VmaAllocator, allocation: VmaAllocation, buffer: vk::Buffer) -> vk::Result {
        const NAME: &str = "vmaBindBufferMemory";
        // SAFETY: C1, C2.
        let Some((object, _, allocation)) = (unsafe { both(NAME, allocator, allocation) }) else {
            return vk::Result::ERROR_UNKNOWN;
        };
        success_or_logged(NAME, each!(object, front => {
            // SAFETY: C3.
            unsafe { front.allocator.bind_buffer_memory(allocation, 0, buffer) }
        }))
    }

    /// Binds a buffer to a part of an allocation.
    fn vmaBindBufferMemory2(
        allocator: VmaAllocator,
        allocation: VmaAllocation,
        offset: u64,
        buffer: vk::Buffer,
        next: *const c_void,
    ) -> vk::Result {
        const NAME: &str = "vmaBindBufferMemory2";
        // SAFETY: C1, C2.
        let Some((object, _, allocation)) = (unsafe { both(NAME, allocator, allocation) }) else {
            return vk::Result::ERROR_UNKNOWN;
        };
        success_or_logged(NAME, each!(object, front => {
            // SAFETY: C3.
            unsafe { front.allocator.bind_buffer_memory2(allocation, offset, buffer, next) }
        }))
    }

    /// Binds an image to an allocation.
    fn vmaBindImageMemory(allocator: VmaAllocator, allocation: VmaAllocation, image: vk::Image) -> vk::Result {
        const NAME: &str = "vmaBindImageMemory";
        // SAFETY: C1, C2.
        let Some((object, _, allocation)) = (unsafe { both(NAME, allocator, allocation) }) else {
            return vk::Result::ERROR_UNKNOWN;
        };
        success_or_logged(NAME, each!(object, front => {
            // SAFETY: C3.
            unsafe { front.allocator.bind_image_memory(allocation, 0, image) }
        }))
    }

    /// Binds an image to a part of an allocation.
    fn vmaBindImageMemory2(
        allocator: VmaAllocator,
        allocation: VmaAllocation,
        offset: u64,
        image: vk::Image,
        next: *const c_void,
    ) -> vk::Result {
        const NAME: &str = "vmaBindImageMemory2";
        // SAFETY: C1, C2.
        let Some((object, _, allocation)) = (unsafe { both(NAME, allocator, allocation) }) else {
            return vk::Result::ERROR_UNKNOWN;
        };
        success_or_logged(NAME, each!(object, front => {
            // SAFETY: C3.
            unsafe { front.allocator.bind_image_memory2(allocation, offset, image, next) }
        }))
    }
}
