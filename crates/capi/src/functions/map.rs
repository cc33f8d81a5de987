//! Host access: mapping, flushing, copying.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;

use ash::vk;

use crate::allocator::Front;
use crate::error_in_c::{failed, success_or_logged};
use crate::guard::{answer, exported, given, is_missing, misused};
use crate::types::{VmaAllocation, VmaAllocator};
use sublet::Allocation;
use sublet::MapError;
use sublet::private::{AllocatorInside, RecordedCall, Visibility};
use sublet::private::{host_size, index};

use super::bind::both;

/// Returns true if a flush has no effect, so that its range needs no check. VMA checks the range only for memory that
/// needs a flush.
#[inline]
fn is_nothing(allocation: &Allocation, size: u64) -> bool {
    size == 0 || !allocation.needs_flush()
}

/// Unmaps when dropped.
struct Mapped<'a> {
    front: &'a Front,
    allocation: &'a Allocation,
}

impl Drop for Mapped<'_> {
    fn drop(&mut self) {
        let unmapped = self.front.allocator.uncount_mapping(self.allocation);
        debug_assert!(unmapped.is_ok());
    }
}

impl Front {
    /// Maps an allocation while the result lives. Returns the address of `size` bytes from `offset` on.
    fn mapped<'a>(
        &'a self,
        allocation: &'a Allocation,
        offset: u64,
        size: u64,
    ) -> Result<(Mapped<'a>, *mut u8, usize), MapError> {
        let outside = MapError::OutOfRange { offset, size, allocation_size: allocation.size() };
        if allocation.size().checked_sub(offset).is_none_or(|rest| size > rest) {
            return Err(outside);
        }
        let (Some(at), Some(length)) = (host_size(offset), host_size(size)) else { return Err(outside) };
        let pointer = self.allocator.count_mapping(allocation)?;
        Ok((Mapped { front: self, allocation }, pointer.as_ptr().wrapping_add(at), length))
    }

    /// Copies from the host and flushes while the memory is mapped.
    ///
    /// # Safety
    /// 1. `source` is valid for reads of `size` bytes.
    /// 2. Nothing else uses those bytes of the allocation.
    unsafe fn copy_in(
        &self,
        source: *const u8,
        allocation: &Allocation,
        offset: u64,
        size: u64,
    ) -> Result<(), MapError> {
        let (mapped, target, length) = self.mapped(allocation, offset, size)?;
        // SAFETY: 1: the source is valid; 2: nothing else uses the target. `mapped` checked that the target is inside
        // the mapped allocation. Source and target may overlap if a program copies within an allocation.
        unsafe { std::ptr::copy(source, target, length) };
        self.allocator.make_visible_quietly(Visibility::Flush, &[(allocation, offset, size)])?;
        drop(mapped);
        self.allocator.record(RecordedCall::CopyTo(allocation, offset, size));
        Ok(())
    }

    /// Invalidates and copies to the host.
    ///
    /// # Safety
    /// 1. `target` is valid for writes of `size` bytes.
    /// 2. Nothing writes those bytes of the allocation.
    unsafe fn copy_out(
        &self,
        allocation: &Allocation,
        offset: u64,
        target: *mut u8,
        size: u64,
    ) -> Result<(), MapError> {
        let (mapped, source, length) = self.mapped(allocation, offset, size)?;
        self.allocator.make_visible_quietly(Visibility::Invalidate, &[(allocation, offset, size)])?;
        // SAFETY: 1: the target is valid; 2: nothing writes the source. `mapped` checked that the source is inside the
        // mapped allocation.
        unsafe { std::ptr::copy(source.cast_const(), target, length) };
        drop(mapped);
        self.allocator.record(RecordedCall::CopyFrom(allocation, offset, size));
        Ok(())
    }
}

/// Converts three parallel lists of C into ranges. Returns `None` if a handle is not a live one of the allocator.
///
/// # Safety
/// C1 to C3.
unsafe fn ranges<'a>(
    front: &Front,
    function: &'static str,
    count: u32,
    allocations: *const VmaAllocation,
    offsets: *const u64,
    sizes: *const u64,
) -> Option<Vec<(&'a Allocation, u64, u64)>> {
    if count != 0 && allocations.is_null() {
        misused(function, "allocations must not be null");
        return None;
    }
    let element = |list: *const u64, at: usize, otherwise: u64| {
        if list.is_null() {
            otherwise
        } else {
            // SAFETY: C3: the list has as many elements as there are allocations.
            unsafe { list.wrapping_add(at).read() }
        }
    };
    (0..index(count))
        .filter_map(|at| {
            // SAFETY: C3.
            let handle = unsafe { allocations.wrapping_add(at).read() };
            // SAFETY: C1, C2.
            let Some(slot) = (unsafe { front.own(function, handle) }) else { return Some(None) };
            let size = element(sizes, at, vk::WHOLE_SIZE);
            if is_nothing(slot.allocation(), size) {
                return None;
            }
            Some(Some((slot.allocation(), element(offsets, at, 0), size)))
        })
        .collect()
}

/// Flushes or invalidates a part of an allocation.
///
/// # Safety
/// C1 and C2.
unsafe fn make_visible(
    function: &'static str,
    visibility: Visibility,
    allocator: VmaAllocator,
    allocation: VmaAllocation,
    offset: u64,
    size: u64,
) -> vk::Result {
    // SAFETY: C1, C2.
    let Some((object, _, allocation)) = (unsafe { both(function, allocator, allocation) }) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    let range = (allocation, offset, size);
    if is_nothing(allocation, size) {
        // Recorded anyway: a replay on another device may need the flush.
        if size != 0 && offset < allocation.size() {
            object.front.allocator.record(RecordedCall::made_visible(visibility, range));
        }
        return vk::Result::SUCCESS;
    }
    success_or_logged(function, object.front.allocator.make_visible(visibility, &[range]))
}

/// Flushes or invalidates the ranges that three lists of C describe.
///
/// # Safety
/// C1 to C3.
unsafe fn make_all_visible(
    function: &'static str,
    visibility: Visibility,
    allocator: VmaAllocator,
    count: u32,
    (allocations, offsets, sizes): (*const VmaAllocation, *const u64, *const u64),
) -> vk::Result {
    // SAFETY: C1.
    let Some(object) = (unsafe { given(function, allocator) }) else { return vk::Result::ERROR_UNKNOWN };
    // SAFETY: C1 to C3.
    let Some(ranges) = (unsafe { ranges(&object.front, function, count, allocations, offsets, sizes) })
    else {
        return vk::Result::ERROR_UNKNOWN;
    };
    success_or_logged(function, object.front.allocator.make_visible(visibility, &ranges))
}

exported! {
    /// Maps an allocation. Mappings are counted.
    fn vmaMapMemory(allocator: VmaAllocator, allocation: VmaAllocation, data: *mut *mut c_void) -> vk::Result {
        const NAME: &str = "vmaMapMemory";
        // SAFETY: C1, C2.
        let Some((object, slot, allocation)) = (unsafe { both(NAME, allocator, allocation) }) else {
            return vk::Result::ERROR_MEMORY_MAP_FAILED;
        };
        match object.front.allocator.map_memory(allocation) {
            Ok(pointer) => {
                let pointer = pointer.as_ptr();
                slot.count_map(pointer);
                // SAFETY: C3.
                unsafe { answer(data, pointer) };
                vk::Result::SUCCESS
            }
            Err(error) => failed(NAME, &error),
        }
    }

    /// Removes one mapping of an allocation.
    fn vmaUnmapMemory(allocator: VmaAllocator, allocation: VmaAllocation) {
        const NAME: &str = "vmaUnmapMemory";
        // SAFETY: C1, C2.
        let Some((object, slot, allocation)) = (unsafe { both(NAME, allocator, allocation) }) else { return };
        if !slot.count_unmap() {
            return misused(NAME, "the allocation is not mapped");
        }
        // SAFETY: the slot has counted a mapping that is still open.
        if let Err(error) = unsafe { object.front.allocator.unmap_memory(allocation) } {
            let _ = failed(NAME, &error);
        }
    }

    /// Makes what the host wrote visible to the device.
    fn vmaFlushAllocation(allocator: VmaAllocator, allocation: VmaAllocation, offset: u64, size: u64) -> vk::Result {
        // SAFETY: C1, C2.
        unsafe { make_visible("vmaFlushAllocation", Visibility::Flush, allocator, allocation, offset, size) }
    }

    /// Makes what the device wrote visible to the host.
    fn vmaInvalidateAllocation(allocator: VmaAllocator, allocation: VmaAllocation, offset: u64, size: u64) -> vk::Result {
        // SAFETY: C1, C2.
        unsafe { make_visible("vmaInvalidateAllocation", Visibility::Invalidate, allocator, allocation, offset, size) }
    }

    /// Flushes several allocations with one call.
    fn vmaFlushAllocations(
        allocator: VmaAllocator,
        count: u32,
        allocations: *const VmaAllocation,
        offsets: *const u64,
        sizes: *const u64,
    ) -> vk::Result {
        let lists = (allocations, offsets, sizes);
        // SAFETY: C1 to C3.
        unsafe { make_all_visible("vmaFlushAllocations", Visibility::Flush, allocator, count, lists) }
    }

    /// Invalidates several allocations with one call.
    fn vmaInvalidateAllocations(
        allocator: VmaAllocator,
        count: u32,
        allocations: *const VmaAllocation,
        offsets: *const u64,
        sizes: *const u64,
    ) -> vk::Result {
        let lists = (allocations, offsets, sizes);
        // SAFETY: C1 to C3.
        unsafe { make_all_visible("vmaInvalidateAllocations", Visibility::Invalidate, allocator, count, lists) }
    }

    /// Copies bytes of the host into an allocation.
    fn vmaCopyMemoryToAllocation(
        allocator: VmaAllocator,
        source: *const c_void,
        allocation: VmaAllocation,
        offset: u64,
        size: u64,
    ) -> vk::Result {
        const NAME: &str = "vmaCopyMemoryToAllocation";
        if size == 0 {
            return vk::Result::SUCCESS;
        }
        // SAFETY: C1, C2.
        let (Some((object, _, allocation)), false) = (unsafe { both(NAME, allocator, allocation) }, is_missing(NAME, source)) else {
            return vk::Result::ERROR_MEMORY_MAP_FAILED;
        };
        // SAFETY: C3.
        success_or_logged(NAME, unsafe { object.front.copy_in(source.cast(), allocation, offset, size) })
    }

    /// Copies bytes of an allocation to the host.
    fn vmaCopyAllocationToMemory(
        allocator: VmaAllocator,
        allocation: VmaAllocation,
        offset: u64,
        target: *mut c_void,
        size: u64,
    ) -> vk::Result {
        const NAME: &str = "vmaCopyAllocationToMemory";
        if size == 0 {
            return vk::Result::SUCCESS;
        }
        // SAFETY: C1, C2.
        let (Some((object, _, allocation)), false) = (unsafe { both(NAME, allocator, allocation) }, is_missing(NAME, target)) else {
            return vk::Result::ERROR_MEMORY_MAP_FAILED;
        };
        // SAFETY: C3.
        success_or_logged(NAME, unsafe { object.front.copy_out(allocation, offset, target.cast(), size) })
    }
}
