//! Resources that share memory.
#![expect(unsafe_code, reason = "calls Vulkan")]

use ash::prelude::VkResult;
use ash::vk;

use crate::allocation::Allocation;
use crate::allocator::Allocator;
use crate::refused::not_created;

impl Allocator {
    /// Creates a buffer and binds it to an allocation, `offset` bytes into it. The program destroys the buffer
    /// directly, without [`destroy_buffer`](Self::destroy_buffer).
    ///
    /// # Errors
    /// `ERROR_FEATURE_NOT_PRESENT` if the memory does not meet the buffer's requirements, or the driver's error. The
    /// buffer is destroyed on failure.
    ///
    /// # Safety
    /// 1. The create-info is valid.
    /// 2. The buffer is destroyed before the memory is freed.
    /// 3. Uses of resources that share the memory are synchronised.
    pub unsafe fn create_aliasing_buffer(
        &self,
        allocation: &Allocation,
        offset: vk::DeviceSize,
        buffer_info: &vk::BufferCreateInfo<'_>,
    ) -> VkResult<vk::Buffer> {
        let inner = allocation.live()?;
        // SAFETY: 1: the create-info is valid; 2: it is destroyed before the memory is freed; 3: uses are synchronised.
        unsafe { self.as_sublet().create_aliasing_buffer(inner, offset, buffer_info) }
            .map_err(|error| not_created(&error))
    }

    /// Same for an image.
    ///
    /// # Errors
    /// As for [`create_aliasing_buffer`](Self::create_aliasing_buffer).
    ///
    /// # Safety
    /// As for [`create_aliasing_buffer`](Self::create_aliasing_buffer).
    pub unsafe fn create_aliasing_image(
        &self,
        allocation: &Allocation,
        offset: vk::DeviceSize,
        image_info: &vk::ImageCreateInfo<'_>,
    ) -> VkResult<vk::Image> {
        let inner = allocation.live()?;
        // SAFETY: 1: the create-info is valid; 2: it is destroyed before the memory is freed; 3: uses are synchronised.
        unsafe { self.as_sublet().create_aliasing_image(inner, offset, image_info) }
            .map_err(|error| not_created(&error))
    }
}
