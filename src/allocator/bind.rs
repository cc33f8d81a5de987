//! Binding buffers and images to allocations.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use ash::vk;

use super::Allocator;
use crate::allocation::Allocation;
use crate::device::BufferOrImage;
use crate::error::BindError;

impl Allocator {
    /// Binds a buffer to an allocation, `offset` bytes from the allocation's start.
    ///
    /// # Errors
    /// [`BindError`] if the offset is outside the allocation, the allocation belongs to another allocator, or the
    /// driver refuses.
    ///
    /// # Safety
    /// The buffer belongs to the allocator's device and is not bound. The place meets its requirements
    /// (VUID-vkBindBufferMemory-memory-01035, -memoryOffset-01036, -size-01037).
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # let info = vk::BufferCreateInfo::default().size(256).usage(vk::BufferUsageFlags::TRANSFER_DST);
    /// # let buffer = unsafe { gpu.device().create_buffer(&info, None) }?;
    /// # let allocation = unsafe { allocator.allocate_memory_for_buffer(buffer, &AllocationCreateInfo::new(MemoryUsage::GpuOnly)) }?;
    /// // SAFETY: the buffer is not bound yet, and the allocation was made for it.
    /// unsafe { allocator.bind_buffer_memory(&allocation, 0, buffer) }?;
    /// # unsafe { allocator.destroy_buffer(buffer, allocation) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn bind_buffer_memory(
        &self,
        allocation: &Allocation,
        offset: u64,
        buffer: vk::Buffer,
    ) -> Result<(), BindError> {
        // SAFETY: the caller's promise: the buffer is of this device and not bound, and its requirements are met there.
        // There is no chain.
        unsafe { self.bind(allocation, offset, BufferOrImage::Buffer(buffer), std::ptr::null()) }
    }

    /// Binds an image to an allocation, `offset` bytes from the allocation's start.
    ///
    /// # Errors
    /// [`BindError`] if the offset is outside the allocation, the allocation belongs to another allocator, or the
    /// driver refuses.
    ///
    /// # Safety
    /// The image belongs to the allocator's device and is not bound. The place meets its requirements
    /// (VUID-vkBindImageMemory-memory-01047, -memoryOffset-01048, -size-01049).
    #[doc(alias = "bindTextureMemory")]
    pub unsafe fn bind_image_memory(
        &self,
        allocation: &Allocation,
        offset: u64,
        image: vk::Image,
    ) -> Result<(), BindError> {
        // SAFETY: the caller's promise: the image is of this device and not bound, and its requirements are met there.
        // There is no chain.
        unsafe { self.bind(allocation, offset, BufferOrImage::Image(image), std::ptr::null()) }
    }

    /// Like [`Self::bind_buffer_memory`], with a `pNext` chain for `VkBindBufferMemoryInfo`.
    ///
    /// # Errors
    /// See [`Self::bind_buffer_memory`]. A chain needs Vulkan 1.1 or VK_KHR_bind_memory2.
    ///
    /// # Safety
    /// See [`Self::bind_buffer_memory`]. The chain is valid (VUID-VkBindBufferMemoryInfo-pNext-pNext).
    pub unsafe fn bind_buffer_memory2(
        &self,
        allocation: &Allocation,
        offset: u64,
        buffer: vk::Buffer,
        next: *const std::ffi::c_void,
    ) -> Result<(), BindError> {
        // SAFETY: the caller's promise: the buffer is of this device and not bound, its requirements are met there, and
        // the chain is valid.
        unsafe { self.bind(allocation, offset, BufferOrImage::Buffer(buffer), next) }
    }

    /// Like [`Self::bind_image_memory`], with a `pNext` chain for `VkBindImageMemoryInfo`.
    ///
    /// # Errors
    /// See [`Self::bind_image_memory`]. A chain needs Vulkan 1.1 or VK_KHR_bind_memory2.
    ///
    /// # Safety
    /// See [`Self::bind_image_memory`]. The chain is valid (VUID-VkBindImageMemoryInfo-pNext-pNext).
    pub unsafe fn bind_image_memory2(
        &self,
        allocation: &Allocation,
        offset: u64,
        image: vk::Image,
        next: *const std::ffi::c_void,
    ) -> Result<(), BindError> {
        // SAFETY: the caller's promise: the image is of this device and not bound, its requirements are met there, and
        // the chain is valid.
        unsafe { self.bind(allocation, offset, BufferOrImage::Image(image), next) }
    }

    /// # Safety
    /// See [`Self::bind_buffer_memory2`].
    unsafe fn bind(
        &self,
        allocation: &Allocation,
        offset: u64,
        resource: BufferOrImage,
        next: *const std::ffi::c_void,
    ) -> Result<(), BindError> {
        self.live_vector_of(allocation).map_err(BindError::Foreign)?;
        if offset >= allocation.size {
            return Err(BindError::OutOfRange { offset, allocation_size: allocation.size });
        }
        if !next.is_null() && !self.inner.context.device.binds_chains() {
            return Err(BindError::ExtensionNotPresent);
        }
        // SAFETY: the caller's promise: the resource is not bound, its requirements are met there, and the chain is
        // valid. The memory is live because the allocation is.
        unsafe {
            self.inner.context.device.bind(resource, allocation.memory, allocation.offset + offset, next)
        }?;
        Ok(())
    }
}
