//! Host access, and binding of resources.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ffi::c_void;

use ash::prelude::VkResult;
use ash::vk;

use crate::allocation::Allocation;
use crate::allocator::Allocator;
use crate::refused::{misused, not_bound, not_mapped};

/// An allocation, and a byte range of it to flush or invalidate.
type AllocationRange<'a> = (&'a sublet::Allocation, vk::DeviceSize, vk::DeviceSize);

impl Allocator {
    /// Maps an allocation. Mappings are counted: each call needs an [`unmap_memory`](Self::unmap_memory).
    ///
    /// # Errors
    /// `ERROR_MEMORY_MAP_FAILED` if the memory is not host-visible, or the driver's error.
    ///
    /// # Safety
    /// The pointer is not used after the allocation is unmapped or freed.
    pub unsafe fn map_memory(&self, allocation: &mut Allocation) -> VkResult<*mut u8> {
        let mapped = self.as_sublet().map(allocation.live_mut()?).map_err(|error| not_mapped(&error))?;
        let pointer = mapped.into_raw().as_ptr().cast();
        allocation.map_count += 1;
        allocation.set_mapped(pointer);
        Ok(pointer)
    }

    /// Removes one mapping.
    ///
    /// # Safety
    /// The pointer of this mapping is not used any more.
    pub unsafe fn unmap_memory(&self, allocation: &mut Allocation) {
        let Some(left) = allocation.map_count.checked_sub(1) else {
            let _ = misused("the allocation is not mapped");
            return;
        };
        let Ok(inner) = allocation.live() else { return };
        // SAFETY: `map_memory` counted the mapping; the caller's promise: its pointer is not used any more.
        if let Err(error) = unsafe { self.as_sublet().unmap_memory(inner) } {
            let _ = not_mapped(&error);
            return;
        }
        allocation.map_count = left;
        if left == 0 {
            allocation.set_mapped(std::ptr::null_mut());
        }
    }

    /// Makes host writes visible to the device. Does nothing for memory that does not need it.
    ///
    /// # Errors
    /// The driver's error; `ERROR_UNKNOWN` for a range that is not inside the allocation.
    pub fn flush_allocation(
        &self,
        allocation: &Allocation,
        offset: vk::DeviceSize,
        size: vk::DeviceSize,
    ) -> VkResult<()> {
        self.flush_ranges(self.range(allocation, offset, size)?.as_slice())
    }

    /// Makes device writes visible to the host. Does nothing for memory that does not need it.
    ///
    /// # Errors
    /// As for [`flush_allocation`](Self::flush_allocation).
    pub fn invalidate_allocation(
        &self,
        allocation: &Allocation,
        offset: vk::DeviceSize,
        size: vk::DeviceSize,
    ) -> VkResult<()> {
        self.invalidate_ranges(self.range(allocation, offset, size)?.as_slice())
    }

    /// Flushes several allocations or parts of them with one driver call.
    ///
    /// # Errors
    /// As for [`flush_allocation`](Self::flush_allocation); `ERROR_UNKNOWN` too if a list is shorter than the
    /// allocations.
    ///
    /// # Safety
    /// Always safe.
    pub unsafe fn flush_allocations<'a>(
        &self,
        allocations: impl IntoIterator<Item = &'a Allocation>,
        offsets: Option<&[vk::DeviceSize]>,
        sizes: Option<&[vk::DeviceSize]>,
    ) -> VkResult<()> {
        self.flush_ranges(&self.ranges(allocations, offsets, sizes)?)
    }

    /// Invalidates several allocations or parts of them with one driver call.
    ///
    /// # Errors
    /// As for [`flush_allocations`](Self::flush_allocations).
    ///
    /// # Safety
    /// Always safe.
    pub unsafe fn invalidate_allocations<'a>(
        &self,
        allocations: impl IntoIterator<Item = &'a Allocation>,
        offsets: Option<&[vk::DeviceSize]>,
        sizes: Option<&[vk::DeviceSize]>,
    ) -> VkResult<()> {
        self.invalidate_ranges(&self.ranges(allocations, offsets, sizes)?)
    }

    /// Copies into an allocation and flushes. Maps it temporarily if needed.
    ///
    /// # Errors
    /// As for [`map_memory`](Self::map_memory) and [`flush_allocation`](Self::flush_allocation).
    pub fn copy_memory_to_allocation(
        &self,
        source: &[u8],
        allocation: &mut Allocation,
        offset: vk::DeviceSize,
    ) -> VkResult<()> {
        let copied = self.as_sublet().copy_to_allocation(source, allocation.live_mut()?, offset);
        copied.map_err(|error| not_mapped(&error))
    }

    /// Invalidates an allocation and copies out of it. Maps it temporarily if needed.
    ///
    /// # Errors
    /// As for [`map_memory`](Self::map_memory) and [`invalidate_allocation`](Self::invalidate_allocation).
    pub fn copy_allocation_to_memory(
        &self,
        allocation: &Allocation,
        offset: vk::DeviceSize,
        target: &mut [u8],
    ) -> VkResult<()> {
        let copied = self.as_sublet().copy_from_allocation(allocation.live()?, offset, target);
        copied.map_err(|error| not_mapped(&error))
    }

    /// Binds a buffer.
    ///
    /// # Errors
    /// The driver's error.
    ///
    /// # Safety
    /// 1. The buffer belongs to this device, and nothing is bound to it.
    /// 2. The allocation meets the buffer's requirements.
    pub unsafe fn bind_buffer_memory(&self, allocation: &Allocation, buffer: vk::Buffer) -> VkResult<()> {
        let inner = allocation.live()?;
        // SAFETY: 1: the buffer belongs to this device and is unbound; 2: the allocation meets its requirements.
        unsafe { self.as_sublet().bind_buffer_memory(inner, 0, buffer) }.map_err(|error| not_bound(&error))
    }

    /// Binds a buffer to a part of an allocation, with a `pNext` chain.
    ///
    /// # Errors
    /// The driver's error; `ERROR_EXTENSION_NOT_PRESENT` for a chain without Vulkan 1.1 or VK_KHR_bind_memory2.
    ///
    /// # Safety
    /// 1 and 2 of [`bind_buffer_memory`](Self::bind_buffer_memory), and
    /// 3. `next` is null or a valid chain.
    pub unsafe fn bind_buffer_memory2(
        &self,
        allocation: &Allocation,
        allocation_local_offset: vk::DeviceSize,
        buffer: vk::Buffer,
        next: *const c_void,
    ) -> VkResult<()> {
        let inner = allocation.live()?;
        // SAFETY: 1: the buffer belongs to this device and is unbound; 2: the allocation meets its requirements; 3: the
        // chain is valid.
        unsafe { self.as_sublet().bind_buffer_memory2(inner, allocation_local_offset, buffer, next) }
            .map_err(|error| not_bound(&error))
    }

    /// Binds an image.
    ///
    /// # Errors
    /// The driver's error.
    ///
    /// # Safety
    /// 1. The image belongs to this device, and nothing is bound to it.
    /// 2. The allocation meets the image's requirements.
    pub unsafe fn bind_image_memory(&self, allocation: &Allocation, image: vk::Image) -> VkResult<()> {
        let inner = allocation.live()?;
        // SAFETY: 1: the image belongs to this device and is unbound; 2: the allocation meets its requirements.
        unsafe { self.as_sublet().bind_image_memory(inner, 0, image) }.map_err(|error| not_bound(&error))
    }

    /// Binds an image to a part of an allocation, with a `pNext` chain.
    ///
    /// # Errors
    /// As for [`bind_buffer_memory2`](Self::bind_buffer_memory2).
    ///
    /// # Safety
    /// 1 and 2 of [`bind_image_memory`](Self::bind_image_memory), and
    /// 3. `next` is null or a valid chain.
    pub unsafe fn bind_image_memory2(
        &self,
        allocation: &Allocation,
        allocation_local_offset: vk::DeviceSize,
        image: vk::Image,
        next: *const c_void,
    ) -> VkResult<()> {
        let inner = allocation.live()?;
        // SAFETY: 1: the image belongs to this device and is unbound; 2: the allocation meets its requirements; 3: the
        // chain is valid.
        unsafe { self.as_sublet().bind_image_memory2(inner, allocation_local_offset, image, next) }
            .map_err(|error| not_bound(&error))
    }

    /// Returns a range to flush or invalidate. `None` if the memory does not need it, for any range: the original
    /// checks the range only if the memory needs it.
    fn range<'a>(
        &self,
        allocation: &'a Allocation,
        offset: vk::DeviceSize,
        size: vk::DeviceSize,
    ) -> VkResult<Option<AllocationRange<'a>>> {
        let inner = allocation.live()?;
        let properties = self.get_memory_type_properties(inner.memory_type_index());
        let needed = properties.contains(vk::MemoryPropertyFlags::HOST_VISIBLE)
            && !properties.contains(vk::MemoryPropertyFlags::HOST_COHERENT);
        Ok((needed && size != 0).then_some((inner, offset, size)))
    }

    fn ranges<'a>(
        &self,
        allocations: impl IntoIterator<Item = &'a Allocation>,
        offsets: Option<&[vk::DeviceSize]>,
        sizes: Option<&[vk::DeviceSize]>,
    ) -> VkResult<Vec<AllocationRange<'a>>> {
        let element = |list: Option<&[vk::DeviceSize]>, at: usize, otherwise| match list {
            None => Ok(otherwise),
            Some(list) => list.get(at).copied().ok_or_else(|| misused("a list is too short")),
        };
        let mut ranges = Vec::new();
        for (at, allocation) in allocations.into_iter().enumerate() {
            let (offset, size) = (element(offsets, at, 0)?, element(sizes, at, vk::WHOLE_SIZE)?);
            ranges.extend(self.range(allocation, offset, size)?);
        }
        Ok(ranges)
    }

    fn flush_ranges(&self, ranges: &[AllocationRange<'_>]) -> VkResult<()> {
        self.as_sublet().flush_many(ranges).map_err(|error| not_mapped(&error))
    }

    fn invalidate_ranges(&self, ranges: &[AllocationRange<'_>]) -> VkResult<()> {
        self.as_sublet().invalidate_many(ranges).map_err(|error| not_mapped(&error))
    }
}
