//! Buffers and images in existing memory.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use crate::error_in_c::not_created;
use crate::guard::{answer, exported, given, is_missing};
use crate::types::{VmaAllocation, VmaAllocator};

use super::bind::both;

/// Defines a function that creates a `$handle` in an allocation's memory by `$create`.
macro_rules! aliasing {
    ($name:ident, $handle:ty, $info:ty, $create:ident) => {
        /// # Safety
        /// C1 to C3.
        unsafe fn $name(
            function: &'static str,
            allocator: VmaAllocator,
            allocation: VmaAllocation,
            offset: u64,
            info: *const $info,
            handle: *mut $handle,
        ) -> vk::Result {
            // SAFETY: C3.
            unsafe { answer(handle, <$handle>::null()) };
            // SAFETY: C1, C2.
            let Some((object, _, allocation)) = (unsafe { both(function, allocator, allocation) }) else {
                return vk::Result::ERROR_INITIALIZATION_FAILED;
            };
            // SAFETY: C3.
            let (Some(info), false) = (unsafe { given(function, info) }, is_missing(function, handle)) else {
                return vk::Result::ERROR_INITIALIZATION_FAILED;
            };
            // SAFETY: C3.
            match unsafe { object.front.allocator.$create(allocation, offset, info) } {
                Ok(made) => {
                    // SAFETY: C3; the pointer is not null.
                    unsafe { handle.write(made) };
                    vk::Result::SUCCESS
                }
                Err(error) => not_created(function, &error),
            }
        }
    };
}
aliasing!(alias_buffer, vk::Buffer, vk::BufferCreateInfo<'_>, create_aliasing_buffer);
aliasing!(alias_image, vk::Image, vk::ImageCreateInfo<'_>, create_aliasing_image);

exported! {
    /// Creates a buffer in the memory of an allocation.
    fn vmaCreateAliasingBuffer(
        allocator: VmaAllocator,
        allocation: VmaAllocation,
        buffer_info: *const vk::BufferCreateInfo<'_>,
        buffer: *mut vk::Buffer,
    ) -> vk::Result {
        // SAFETY: C1 to C3.
        unsafe { alias_buffer("vmaCreateAliasingBuffer", allocator, allocation, 0, buffer_info, buffer) }
    }

    /// Creates a buffer in the memory of an allocation, at an offset.
    fn vmaCreateAliasingBuffer2(
        allocator: VmaAllocator,
        allocation: VmaAllocation,
        offset: u64,
        buffer_info: *const vk::BufferCreateInfo<'_>,
        buffer: *mut vk::Buffer,
    ) -> vk::Result {
        // SAFETY: C1 to C3.
        unsafe { alias_buffer("vmaCreateAliasingBuffer2", allocator, allocation, offset, buffer_info, buffer) }
    }

    /// Creates an image in the memory of an allocation.
    fn vmaCreateAliasingImage(
        allocator: VmaAllocator,
        allocation: VmaAllocation,
        image_info: *const vk::ImageCreateInfo<'_>,
        image: *mut vk::Image,
    ) -> vk::Result {
        // SAFETY: C1 to C3.
        unsafe { alias_image("vmaCreateAliasingImage", allocator, allocation, 0, image_info, image) }
    }

    /// Creates an image in the memory of an allocation, at an offset.
    fn vmaCreateAliasingImage2(
        allocator: VmaAllocator,
        allocation: VmaAllocation,
        offset: u64,
        image_info: *const vk::ImageCreateInfo<'_>,
        image: *mut vk::Image,
    ) -> vk::Result {
        // SAFETY: C1 to C3.
        unsafe { alias_image("vmaCreateAliasingImage2", allocator, allocation, offset, image_info, image) }
    }
}
