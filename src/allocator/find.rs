//! Finding the memory type for an allocation without allocating.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use ash::vk;

use super::{Allocator, Resource};
use crate::create_info::AllocationCreateInfo;
use crate::device::ResourceRequirements;
use crate::error::FindMemoryTypeError;

impl Allocator {
    /// The best memory type for an allocation. Allocates nothing.
    ///
    /// # Errors
    /// [`FindMemoryTypeError`] if no type is suitable. The `Auto` usages need a resource: see
    /// [`Self::find_memory_type_index_for_buffer_info`].
    ///
    /// ```
    /// # use sublet::*;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// let index = allocator.find_memory_type_index(!0, &AllocationCreateInfo::new(MemoryUsage::CpuOnly))?;
    /// assert_eq!(index, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn find_memory_type_index(
        &self,
        memory_type_bits: u32,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<u32, FindMemoryTypeError> {
        let requirements = ResourceRequirements { memory_type_bits, ..ResourceRequirements::default() };
        self.find_for(&Resource::unknown(requirements), info)
    }

    /// The best memory type for a buffer of `buffer_info`. With maintenance4 this queries the driver directly, else it
    /// creates and destroys a buffer.
    ///
    /// # Errors
    /// [`FindMemoryTypeError`] if no type is suitable, or the driver cannot create the buffer.
    ///
    /// # Safety
    /// `buffer_info` is valid for the device (VUID-vkCreateBuffer-pCreateInfo-parameter).
    pub unsafe fn find_memory_type_index_for_buffer_info(
        &self,
        buffer_info: &vk::BufferCreateInfo<'_>,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<u32, FindMemoryTypeError> {
        let (size, max) = (buffer_info.size, self.inner.context.device.max_buffer_size);
        if size > max {
            return Err(FindMemoryTypeError::BufferTooLarge { size, max });
        }
        // SAFETY: the caller's promise: `buffer_info` is valid for the device.
        let requirements = unsafe { self.inner.context.device.requirements_for_buffer(buffer_info) }
            .map_err(FindMemoryTypeError::Resource)?;
        // SAFETY: the caller's promise: `buffer_info` is valid for the device, so that its chain is valid.
        let usage = unsafe { self.buffer_usage(buffer_info) };
        self.find_for(&Resource::buffer(requirements, vk::Buffer::null(), Some(usage)), info)
    }

    /// The best memory type for an image of `image_info`. With maintenance4 this queries the driver directly, else it
    /// creates and destroys an image.
    ///
    /// # Errors
    /// [`FindMemoryTypeError`] if no type is suitable, or the driver cannot create the image.
    ///
    /// # Safety
    /// `image_info` is valid for the device (VUID-vkCreateImage-pCreateInfo-parameter), and its tiling is not that of a
    /// DRM modifier (VUID-VkDeviceImageMemoryRequirements-pCreateInfo-06776).
    pub unsafe fn find_memory_type_index_for_image_info(
        &self,
        image_info: &vk::ImageCreateInfo<'_>,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<u32, FindMemoryTypeError> {
        if image_info.flags.contains(vk::ImageCreateFlags::DISJOINT) {
            return Err(FindMemoryTypeError::Disjoint);
        }
        // SAFETY: the caller's promise: `image_info` is valid for the device, and its tiling is not that of a DRM
        // modifier.
        let requirements = unsafe { self.inner.context.device.requirements_for_image(image_info) }
            .map_err(FindMemoryTypeError::Resource)?;
        let tiled = Some((image_info.usage, image_info.tiling));
        self.find_for(&Resource::image(requirements, vk::Image::null(), tiled), info)
    }
}
