//! Buffers and images in memory that is there already.

use ash::vk;

use crate::capi::guard::{answer, exported};
use crate::capi::types::{VmaAllocation, VmaAllocator};

/// # Safety
/// C1 to C3.
unsafe fn alias_buffer(
    function: &'static str,
    allocator: VmaAllocator,
    allocation: VmaAllocation,
    offset: u64,
    buffer_info: *const vk::BufferCreateInfo<'_>,
    buffer: *mut vk::Buffer,
) -> vk::Result {
    // SAFETY: C3.
    unsafe { answer(buffer, vk::Buffer::null()) };
    let _ = (function, allocator, allocation, offset, buffer_info);
    vk::Result::ERROR_FEATURE_NOT_PRESENT
}

/// # Safety
/// C1 to C3.
unsafe fn alias_image(
    function: &'static str,
    allocator: VmaAllocator,
    allocation: VmaAllocation,
    offset: u64,
    image_info: *const vk::ImageCreateInfo<'_>,
    image: *mut vk::Image,
) -> vk::Result {
    // SAFETY: C3.
    unsafe { answer(image, vk::Image::null()) };
    let _ = (function, allocator, allocation, offset, image_info);
    vk::Result::ERROR_FEATURE_NOT_PRESENT
}

exported! {
    /// Creates a buffer in memory that is there.
    fn vmaCreateAliasingBuffer(
        allocator: VmaAllocator,
        allocation: VmaAllocation,
        buffer_info: *const vk::BufferCreateInfo<'_>,
        buffer: *mut vk::Buffer,
    ) -> vk::Result {
        // SAFETY: C1 to C3.
        unsafe { alias_buffer("vmaCreateAliasingBuffer", allocator, allocation, 0, buffer_info, buffer) }
    }

    /// Creates a buffer in memory that is there.
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

    /// Creates an image in memory that is there.
    fn vmaCreateAliasingImage(
        allocator: VmaAllocator,
        allocation: VmaAllocation,
        image_info: *const vk::ImageCreateInfo<'_>,
        image: *mut vk::Image,
    ) -> vk::Result {
        // SAFETY: C1 to C3.
        unsafe { alias_image("vmaCreateAliasingImage", allocator, allocation, 0, image_info, image) }
    }

    /// Creates an image in memory that is there.
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
