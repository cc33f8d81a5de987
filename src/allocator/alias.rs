//! Buffers and images that share allocated memory.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use ash::vk;

use super::Allocator;
use crate::allocation::Allocation;
use crate::device::{BufferOrImage, ResourceRequirements};
use crate::error::{AliasError, CreateError};

impl Allocator {
    /// Creates a buffer in allocated memory, `offset` bytes from the allocation's start. `vkDestroyBuffer` destroys the
    /// buffer and leaves the memory allocated.
    ///
    /// To use the same bytes for buffers and images at different times, allocate with
    /// [`allocate_memory`](Self::allocate_memory). It allocates whole pages of `bufferImageGranularity`, which suit any
    /// resource. Dedicated memory needs [`CAN_ALIAS`](crate::AllocationCreateFlags::CAN_ALIAS).
    ///
    /// # Errors
    /// [`CreateError`]; [`CreateError::Alias`] if the place does not meet the buffer's requirements. No buffer is left
    /// behind.
    ///
    /// # Safety
    /// `buffer_info` is valid for the device (VUID-vkCreateBuffer-pCreateInfo-parameter). The memory is not dedicated
    /// to another resource (VUID-vkBindBufferMemory-memory-01508). Resources that overlap are used according to
    /// Vulkan's rules for memory aliasing.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # gpu.allow_aliasing(true);
    /// let requirements = vk::MemoryRequirements { size: 65_536, alignment: 4096, memory_type_bits: !0 };
    /// let memory = allocator.allocate_memory(&requirements, &AllocationCreateInfo::new(MemoryUsage::GpuOnly))?;
    /// let info = vk::BufferCreateInfo::default().size(40_000).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
    /// // SAFETY: the create-info is valid, and the two are used in turns.
    /// let (first, second) = unsafe {
    ///     (allocator.create_aliasing_buffer(&memory, 0, &info)?, allocator.create_aliasing_buffer(&memory, 16_384, &info)?)
    /// };
    /// // SAFETY: as above.
    /// let beyond = unsafe { allocator.create_aliasing_buffer(&memory, 32_768, &info) };
    /// assert!(matches!(beyond, Err(CreateError::Alias(AliasError::OutOfRange { offset: 32_768, .. }))));
    /// // SAFETY: the device never used them.
    /// unsafe {
    ///     gpu.device().destroy_buffer(first, None);
    ///     gpu.device().destroy_buffer(second, None);
    ///     allocator.free_memory(memory)?;
    /// }
    /// # gpu.assert_silent();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "CreateAliasingResource")]
    pub unsafe fn create_aliasing_buffer(
        &self,
        allocation: &Allocation,
        offset: u64,
        buffer_info: &vk::BufferCreateInfo<'_>,
    ) -> Result<vk::Buffer, CreateError> {
        self.check_alias_start(allocation, offset)?;
        // SAFETY: the caller's promise: `buffer_info` is valid for the device.
        let (buffer, resource) = unsafe { self.unbound_buffer(buffer_info) }?;
        let handle = BufferOrImage::Buffer(buffer);
        // SAFETY: the buffer was created just now, and these are its requirements.
        unsafe { self.bind_alias(allocation, offset, handle, &resource.requirements()) }?;
        Ok(buffer)
    }

    /// Creates an image in allocated memory. See [`Self::create_aliasing_buffer`].
    ///
    /// # Errors
    /// [`CreateError`]; [`CreateError::Alias`] if the place does not meet the image's requirements. No image is left
    /// behind.
    ///
    /// # Safety
    /// `image_info` is valid for the device (VUID-vkCreateImage-pCreateInfo-parameter). The memory is not dedicated to
    /// another resource (VUID-vkBindImageMemory-memory-02628). Resources that overlap are used according to Vulkan's
    /// rules for memory aliasing.
    pub unsafe fn create_aliasing_image(
        &self,
        allocation: &Allocation,
        offset: u64,
        image_info: &vk::ImageCreateInfo<'_>,
    ) -> Result<vk::Image, CreateError> {
        self.check_alias_start(allocation, offset)?;
        // SAFETY: the caller's promise: `image_info` is valid for the device.
        let (image, resource) = unsafe { self.unbound_image(image_info) }?;
        let handle = BufferOrImage::Image(image);
        // SAFETY: the image was created just now, and these are its requirements.
        unsafe { self.bind_alias(allocation, offset, handle, &resource.requirements()) }?;
        Ok(image)
    }

    /// Checks what is known before the resource exists.
    fn check_alias_start(&self, allocation: &Allocation, offset: u64) -> Result<(), AliasError> {
        self.live_vector_of(allocation).map_err(AliasError::Foreign)?;
        if offset >= allocation.size {
            return Err(AliasError::OutOfRange { offset, size: 0, allocation_size: allocation.size });
        }
        Ok(())
    }

    /// Binds a new resource, or destroys it.
    ///
    /// # Safety
    /// `handle` is new and not bound, and `requirements` are its own. `offset` is inside the allocation.
    unsafe fn bind_alias(
        &self,
        allocation: &Allocation,
        offset: u64,
        handle: BufferOrImage,
        requirements: &ResourceRequirements,
    ) -> Result<(), CreateError> {
        let device = &self.inner.context.device;
        let bound = match check_alias(allocation, offset, requirements) {
            // SAFETY: the caller's promise: `handle` is not bound. The memory is live because the allocation is, and the
            // requirements are met there.
            Ok(at) => unsafe { device.bind(handle, allocation.memory, at, std::ptr::null()) }
                .map_err(CreateError::Bind),
            Err(error) => Err(CreateError::Alias(error)),
        };
        if bound.is_err() {
            // SAFETY: the handle is new, so nobody else uses it.
            unsafe { device.destroy(handle) };
        }
        bound
    }
}

/// Returns the resource's offset in the device memory, if the place meets its requirements.
fn check_alias(
    allocation: &Allocation,
    offset: u64,
    requirements: &ResourceRequirements,
) -> Result<u64, AliasError> {
    let &ResourceRequirements { size, alignment, memory_type_bits, requires_dedicated, .. } = requirements;
    if requires_dedicated {
        return Err(AliasError::RequiresDedicated);
    }
    let memory_type = allocation.memory_type_index();
    if memory_type_bits & (1 << memory_type) == 0 {
        return Err(AliasError::MemoryType { memory_type, memory_type_bits });
    }
    // `offset` is inside the allocation, and the allocation inside its memory.
    if size > allocation.size - offset {
        return Err(AliasError::OutOfRange { offset, size, allocation_size: allocation.size });
    }
    let at = allocation.offset + offset;
    if at % alignment.max(1) != 0 {
        return Err(AliasError::Alignment { offset: at, alignment });
    }
    Ok(at)
}
