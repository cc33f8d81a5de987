//! Functions of both allocators and pools.
#![expect(unsafe_code, reason = "calls Vulkan")]

use ash::prelude::VkResult;
use ash::vk;

use crate::allocation::Allocation;
use crate::allocator::Allocator;
use crate::info::AllocationCreateInfo;
use crate::refused::{misused, not_allocated, not_created, not_found};

/// The pool in which an [`Alloc`] allocates, or none.
#[derive(Clone, Copy, Debug, Default)]
pub struct PoolHandle<'a>(pub(crate) Option<&'a sublet::Pool>);

/// Allocates memory. An [`Allocator`] chooses its placement. An [`AllocatorPool`](crate::AllocatorPool) allocates in
/// its own blocks.
///
/// Each function requires: if a create-info has the flag `USER_DATA_COPY_STRING`, its user data is null or the address
/// of a string.
pub trait Alloc {
    /// Returns the allocator that owns the memory.
    fn allocator(&self) -> &Allocator;

    /// Returns the pool, if this is one.
    fn pool(&self) -> PoolHandle<'_>;

    /// Returns the best memory type of those whose bits are set.
    ///
    /// # Errors
    /// `ERROR_FEATURE_NOT_PRESENT` if no type is suitable.
    ///
    /// # Safety
    /// Always safe.
    unsafe fn find_memory_type_index(
        &self,
        memory_type_bits: u32,
        allocation_info: &AllocationCreateInfo,
    ) -> VkResult<u32> {
        let info = sublet_info(self, allocation_info);
        let found = self.allocator().as_sublet().find_memory_type_index(memory_type_bits, &info);
        found.map_err(|error| not_found(&error))
    }

    /// Returns the best memory type for a buffer.
    ///
    /// # Errors
    /// As for [`find_memory_type_index`](Self::find_memory_type_index), or the driver's error.
    ///
    /// # Safety
    /// The create-info is valid.
    unsafe fn find_memory_type_index_for_buffer_info(
        &self,
        buffer_info: &vk::BufferCreateInfo<'_>,
        allocation_info: &AllocationCreateInfo,
    ) -> VkResult<u32> {
        let info = sublet_info(self, allocation_info);
        // SAFETY: the caller's promise: the create-info is valid.
        unsafe { self.allocator().as_sublet().find_memory_type_index_for_buffer_info(buffer_info, &info) }
            .map_err(|error| not_found(&error))
    }

    /// Returns the best memory type for an image.
    ///
    /// # Errors
    /// As for [`find_memory_type_index`](Self::find_memory_type_index), or the driver's error.
    ///
    /// # Safety
    /// The create-info is valid.
    unsafe fn find_memory_type_index_for_image_info(
        &self,
        image_info: vk::ImageCreateInfo<'_>,
        allocation_info: &AllocationCreateInfo,
    ) -> VkResult<u32> {
        let info = sublet_info(self, allocation_info);
        // SAFETY: the caller's promise: the create-info is valid.
        unsafe { self.allocator().as_sublet().find_memory_type_index_for_image_info(&image_info, &info) }
            .map_err(|error| not_found(&error))
    }

    /// Allocates memory for given requirements.
    ///
    /// # Errors
    /// `ERROR_OUT_OF_DEVICE_MEMORY`, `ERROR_FEATURE_NOT_PRESENT` if no memory type is suitable, or the driver's error.
    ///
    /// # Safety
    /// See [`Alloc`].
    unsafe fn allocate_memory(
        &self,
        memory_requirements: &vk::MemoryRequirements,
        create_info: &AllocationCreateInfo,
    ) -> VkResult<Allocation> {
        let info = sublet_info(self, create_info);
        // The original does not check that the pool's memory type is in the mask.
        let bits = if info.pool.is_some() { u32::MAX } else { memory_requirements.memory_type_bits };
        let needed = vk::MemoryRequirements { memory_type_bits: bits, ..*memory_requirements };
        let made = self.allocator().as_sublet().allocate_memory(&needed, &info);
        let made = made.map_err(|error| not_allocated(&error))?;
        // SAFETY: the caller ensures that the user data matches the flags: see `Alloc`.
        Ok(unsafe { named(self, made, create_info) })
    }

    /// Allocates several equal pieces: all, or none.
    ///
    /// # Errors
    /// As for [`allocate_memory`](Self::allocate_memory).
    ///
    /// # Safety
    /// See [`Alloc`].
    unsafe fn allocate_memory_pages(
        &self,
        memory_requirements: &vk::MemoryRequirements,
        create_info: &AllocationCreateInfo,
        allocation_count: usize,
    ) -> VkResult<Vec<Allocation>> {
        let mut pages = Vec::new();
        while pages.len() < allocation_count {
            // SAFETY: the caller ensures that the user data matches the flags: see `Alloc`.
            match unsafe { self.allocate_memory(memory_requirements, create_info) } {
                Ok(page) => pages.push(page),
                Err(result) => {
                    // SAFETY: no other code has seen the allocations.
                    unsafe { self.allocator().free_memory_pages(&mut pages) };
                    return Err(result);
                }
            }
        }
        Ok(pages)
    }

    /// Allocates memory for a buffer without binding it.
    ///
    /// # Errors
    /// As for [`allocate_memory`](Self::allocate_memory).
    ///
    /// # Safety
    /// 1. The buffer belongs to this device, and nothing is bound to it.
    /// 2. See [`Alloc`].
    unsafe fn allocate_memory_for_buffer(
        &self,
        buffer: vk::Buffer,
        create_info: &AllocationCreateInfo,
    ) -> VkResult<Allocation> {
        if buffer == vk::Buffer::null() {
            return Err(misused("the buffer is null"));
        }
        let info = sublet_info(self, create_info);
        // SAFETY: 1: the buffer belongs to this device, and nothing is bound to it.
        let made = unsafe { self.allocator().as_sublet().allocate_memory_for_buffer(buffer, &info) };
        let made = made.map_err(|error| not_allocated(&error))?;
        // SAFETY: 2: the user data matches the flags: see `Alloc`.
        Ok(unsafe { named(self, made, create_info) })
    }

    /// Allocates memory for an image without binding it.
    ///
    /// # Errors
    /// As for [`allocate_memory`](Self::allocate_memory).
    ///
    /// # Safety
    /// 1. The image belongs to this device, and nothing is bound to it.
    /// 2. See [`Alloc`].
    unsafe fn allocate_memory_for_image(
        &self,
        image: vk::Image,
        create_info: &AllocationCreateInfo,
    ) -> VkResult<Allocation> {
        if image == vk::Image::null() {
            return Err(misused("the image is null"));
        }
        let info = sublet_info(self, create_info);
        // SAFETY: 1: the image belongs to this device, and nothing is bound to it.
        let made = unsafe { self.allocator().as_sublet().allocate_memory_for_image(image, &info) };
        let made = made.map_err(|error| not_allocated(&error))?;
        // SAFETY: 2: the user data matches the flags: see `Alloc`.
        Ok(unsafe { named(self, made, create_info) })
    }

    /// Creates a buffer, allocates its memory and binds both.
    ///
    /// # Errors
    /// The error of the failed step. Everything created before it is freed.
    ///
    /// # Safety
    /// 1. The create-info is valid.
    /// 2. See [`Alloc`].
    unsafe fn create_buffer(
        &self,
        buffer_info: &vk::BufferCreateInfo<'_>,
        create_info: &AllocationCreateInfo,
    ) -> VkResult<(vk::Buffer, Allocation)> {
        // SAFETY: 1: the create-info is valid; 2: the user data matches the flags: see `Alloc`.
        unsafe { self.create_buffer_with_alignment(buffer_info, create_info, 0) }
    }

    /// Creates a buffer, allocates memory aligned to `min_alignment`, and binds both.
    ///
    /// # Errors
    /// The error of the failed step. Everything created before it is freed.
    ///
    /// # Safety
    /// As for [`create_buffer`](Self::create_buffer).
    unsafe fn create_buffer_with_alignment(
        &self,
        buffer_info: &vk::BufferCreateInfo<'_>,
        create_info: &AllocationCreateInfo,
        min_alignment: vk::DeviceSize,
    ) -> VkResult<(vk::Buffer, Allocation)> {
        let info = sublet::AllocationCreateInfo { min_alignment, ..sublet_info(self, create_info) };
        // SAFETY: 1: the create-info is valid.
        let made = unsafe { self.allocator().as_sublet().create_buffer(buffer_info, &info) };
        let (buffer, made) = made.map_err(|error| not_created(&error))?;
        // SAFETY: 2: the user data matches the flags: see `Alloc`.
        Ok((buffer, unsafe { named(self, made, create_info) }))
    }

    /// Creates an image, allocates its memory and binds both.
    ///
    /// # Errors
    /// The error of the failed step. Everything created before it is freed. A disjoint image is rejected.
    ///
    /// # Safety
    /// 1. The create-info is valid.
    /// 2. See [`Alloc`].
    unsafe fn create_image(
        &self,
        image_info: &vk::ImageCreateInfo<'_>,
        create_info: &AllocationCreateInfo,
    ) -> VkResult<(vk::Image, Allocation)> {
        let info = sublet_info(self, create_info);
        // SAFETY: 1: the create-info is valid.
        let made = unsafe { self.allocator().as_sublet().create_image(image_info, &info) };
        let (image, made) = made.map_err(|error| not_created(&error))?;
        // SAFETY: 2: the user data matches the flags: see `Alloc`.
        Ok((image, unsafe { named(self, made, create_info) }))
    }
}

impl Alloc for Allocator {
    fn allocator(&self) -> &Allocator {
        self
    }

    fn pool(&self) -> PoolHandle<'_> {
        PoolHandle(None)
    }
}

fn sublet_info<'a, A: Alloc + ?Sized>(
    alloc: &'a A,
    info: &AllocationCreateInfo,
) -> sublet::AllocationCreateInfo<'a> {
    info.to_sublet(alloc.pool().0, alloc.allocator().has_priorities)
}

/// Wraps an allocation, and names it if its create-info has a name.
///
/// # Safety
/// The user data matches the flags.
unsafe fn named<A: Alloc + ?Sized>(
    alloc: &A,
    made: sublet::Allocation,
    info: &AllocationCreateInfo,
) -> Allocation {
    let allocation = Allocation::new(made);
    // SAFETY: the caller ensures that the user data matches the flags.
    if let Some(name) = unsafe { info.name() } {
        alloc.allocator().set_allocation_name(&allocation, Some(&name));
    }
    allocation
}
