//! What an allocator and a pool have in common.
#![expect(unsafe_code, reason = "calls Vulkan")]

use ash::prelude::VkResult;
use ash::vk;

use crate::allocation::Allocation;
use crate::allocator::Allocator;
use crate::info::AllocationCreateInfo;
use crate::refused::{misused, not_allocated, not_created, not_found};

/// Which pool an [`Alloc`] allocates in, or none.
#[derive(Clone, Copy, Debug, Default)]
pub struct PoolHandle<'a>(pub(crate) Option<&'a sublet::Pool>);

/// Allocates: an [`Allocator`] where it sees fit, an [`AllocatorPool`](crate::AllocatorPool) in its own blocks.
///
/// The user data of every create-info is the address of a string, or null, if the flag `USER_DATA_COPY_STRING` is set:
/// that is part of what each function demands.
pub trait Alloc {
    /// Whose memory it is.
    fn allocator(&self) -> &Allocator;

    /// The pool, if it is one.
    fn pool(&self) -> PoolHandle<'_>;

    /// The best memory type of those whose bits are set.
    ///
    /// # Errors
    /// `ERROR_FEATURE_NOT_PRESENT` if none will do.
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

    /// The best memory type for a buffer.
    ///
    /// # Errors
    /// As for [`find_memory_type_index`](Self::find_memory_type_index), or what the driver says.
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

    /// The best memory type for an image.
    ///
    /// # Errors
    /// As for [`find_memory_type_index`](Self::find_memory_type_index), or what the driver says.
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

    /// Allocates memory for anything.
    ///
    /// # Errors
    /// `ERROR_OUT_OF_DEVICE_MEMORY`, `ERROR_FEATURE_NOT_PRESENT` if no memory type will do, or what the driver says.
    ///
    /// # Safety
    /// See [`Alloc`].
    unsafe fn allocate_memory(
        &self,
        memory_requirements: &vk::MemoryRequirements,
        create_info: &AllocationCreateInfo,
    ) -> VkResult<Allocation> {
        let info = sublet_info(self, create_info);
        // The original does not look whether a pool's memory type is among them.
        let bits = if info.pool.is_some() { u32::MAX } else { memory_requirements.memory_type_bits };
        let needed = vk::MemoryRequirements { memory_type_bits: bits, ..*memory_requirements };
        let made = self.allocator().as_sublet().allocate_memory(&needed, &info);
        let made = made.map_err(|error| not_allocated(&error))?;
        // SAFETY: the caller's promise: the user data is what the flags say: see `Alloc`.
        Ok(unsafe { named(self, made, create_info) })
    }

    /// Allocates several pieces that are alike: all, or none.
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
            // SAFETY: the caller's promise: the user data is what the flags say: see `Alloc`.
            match unsafe { self.allocate_memory(memory_requirements, create_info) } {
                Ok(page) => pages.push(page),
                Err(result) => {
                    // SAFETY: nobody else has seen them.
                    unsafe { self.allocator().free_memory_pages(&mut pages) };
                    return Err(result);
                }
            }
        }
        Ok(pages)
    }

    /// Allocates memory for a buffer, and does not bind it.
    ///
    /// # Errors
    /// As for [`allocate_memory`](Self::allocate_memory).
    ///
    /// # Safety
    /// 1. The buffer is of this device, and nothing is bound to it.
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
        // SAFETY: 1: the buffer is of this device, and nothing is bound to it.
        let made = unsafe { self.allocator().as_sublet().allocate_memory_for_buffer(buffer, &info) };
        let made = made.map_err(|error| not_allocated(&error))?;
        // SAFETY: 2: the user data is what the flags say: see `Alloc`.
        Ok(unsafe { named(self, made, create_info) })
    }

    /// Allocates memory for an image, and does not bind it.
    ///
    /// # Errors
    /// As for [`allocate_memory`](Self::allocate_memory).
    ///
    /// # Safety
    /// 1. The image is of this device, and nothing is bound to it.
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
        // SAFETY: 1: the image is of this device, and nothing is bound to it.
        let made = unsafe { self.allocator().as_sublet().allocate_memory_for_image(image, &info) };
        let made = made.map_err(|error| not_allocated(&error))?;
        // SAFETY: 2: the user data is what the flags say: see `Alloc`.
        Ok(unsafe { named(self, made, create_info) })
    }

    /// Creates a buffer with its memory, and binds the two.
    ///
    /// # Errors
    /// What the step that failed says; nothing is left behind.
    ///
    /// # Safety
    /// 1. The create-info is valid.
    /// 2. See [`Alloc`].
    unsafe fn create_buffer(
        &self,
        buffer_info: &vk::BufferCreateInfo<'_>,
        create_info: &AllocationCreateInfo,
    ) -> VkResult<(vk::Buffer, Allocation)> {
        // SAFETY: 1: the create-info is valid; 2: the user data is what the flags say: see `Alloc`.
        unsafe { self.create_buffer_with_alignment(buffer_info, create_info, 0) }
    }

    /// Creates a buffer with its memory, which begins at a multiple of `min_alignment`, and binds the two.
    ///
    /// # Errors
    /// What the step that failed says; nothing is left behind.
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
        // SAFETY: 2: the user data is what the flags say: see `Alloc`.
        Ok((buffer, unsafe { named(self, made, create_info) }))
    }

    /// Creates an image with its memory, and binds the two.
    ///
    /// # Errors
    /// What the step that failed says; nothing is left behind. A disjoint image is refused.
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
        // SAFETY: 2: the user data is what the flags say: see `Alloc`.
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

/// What the program gets, with the name that its create-info may say.
///
/// # Safety
/// The user data is what the flags say.
unsafe fn named<A: Alloc + ?Sized>(
    alloc: &A,
    made: sublet::Allocation,
    info: &AllocationCreateInfo,
) -> Allocation {
    let allocation = Allocation::new(made);
    // SAFETY: the caller's promise: the user data is what the flags say.
    if let Some(name) = unsafe { info.name() } {
        alloc.allocator().set_allocation_name(&allocation, Some(&name));
    }
    allocation
}
