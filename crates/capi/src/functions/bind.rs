//! Binding of memory to buffers and images.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;

use ash::vk;

use crate::allocator::AllocatorObject;
use crate::error_in_c::success_or_logged;
use crate::guard::{exported, given};
use crate::slab::HandleSlot;
use crate::types::{VmaAllocation, VmaAllocator};
use sublet::Allocation;

/// Returns the objects behind both handles if they are live and the allocation belongs to the allocator.
///
/// # Safety
/// C1 and C2.
#[inline]
pub(super) unsafe fn both<'a>(
    function: &'static str,
    allocator: VmaAllocator,
    allocation: VmaAllocation,
) -> Option<(&'a AllocatorObject, &'a HandleSlot, &'a Allocation)> {
    // SAFETY: C1.
    let object = unsafe { given(function, allocator.cast_const()) }?;
    // SAFETY: C1, C2.
    let slot = unsafe { object.front.own(function, allocation) }?;
    Some((object, slot, slot.allocation()))
}

/// Defines a function that binds a resource to an allocation by `$bind`.
macro_rules! bind {
    ($name:literal, $allocator:ident, $allocation:ident, $bind:ident, $($argument:expr),*) => {{
        // SAFETY: C1, C2.
        let Some((object, _, allocation)) = (unsafe { both($name, $allocator, $allocation) }) else {
            return vk::Result::ERROR_UNKNOWN;
        };
        // SAFETY: C3.
        success_or_logged($name, unsafe { object.front.allocator.$bind(allocation, $($argument),*) })
    }};
}

exported! {
    /// Binds a buffer to an allocation.
    fn vmaBindBufferMemory(allocator: VmaAllocator, allocation: VmaAllocation, buffer: vk::Buffer) -> vk::Result {
        bind!("vmaBindBufferMemory", allocator, allocation, bind_buffer_memory, 0, buffer)
    }

    /// Binds a buffer to a part of an allocation.
    fn vmaBindBufferMemory2(
        allocator: VmaAllocator,
        allocation: VmaAllocation,
        offset: u64,
        buffer: vk::Buffer,
        next: *const c_void,
    ) -> vk::Result {
        bind!("vmaBindBufferMemory2", allocator, allocation, bind_buffer_memory2, offset, buffer, next)
    }

    /// Binds an image to an allocation.
    fn vmaBindImageMemory(allocator: VmaAllocator, allocation: VmaAllocation, image: vk::Image) -> vk::Result {
        bind!("vmaBindImageMemory", allocator, allocation, bind_image_memory, 0, image)
    }

    /// Binds an image to a part of an allocation.
    fn vmaBindImageMemory2(
        allocator: VmaAllocator,
        allocation: VmaAllocation,
        offset: u64,
        image: vk::Image,
        next: *const c_void,
    ) -> vk::Result {
        bind!("vmaBindImageMemory2", allocator, allocation, bind_image_memory2, offset, image, next)
    }
}
