//! Memory: memory types, allocation, queries, names, freeing.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::{c_char, c_void};
use std::panic::Location;

use ash::vk;

use crate::allocator::{Front, address, create_info, describe, given_info};
use crate::error_in_c::failed;
use crate::guard::{answer, exported, foreign, given, is_missing, misused};
use crate::types::{
    VmaAllocation, VmaAllocationCreateInfo, VmaAllocationInfo, VmaAllocationInfo2, VmaAllocator,
};
use sublet::FindMemoryTypeError;
use sublet::MemoryAllocateNext;
use sublet::private::{AllocatorInside, Resource, ResourceRequirements};

use super::bind::both;

/// Writes the memory type that was found, or logs the error and returns its result.
///
/// # Safety
/// `found` is null or valid for writes.
unsafe fn answer_found(
    function: &'static str,
    answered: Result<u32, FindMemoryTypeError>,
    found: *mut u32,
) -> vk::Result {
    // VMA writes the same value if it finds nothing.
    let (index, result) = match answered {
        Ok(index) => (index, vk::Result::SUCCESS),
        Err(error) => (u32::MAX, failed(function, &error)),
    };
    // SAFETY: the caller's promise: `found` is null or valid for writes.
    unsafe { answer(found, index) };
    result
}

impl Front {
    /// Implements `vmaAllocateMemory`.
    ///
    /// # Safety
    /// C1 to C3; `handle` is not null.
    #[inline(always)]
    unsafe fn allocate(
        &self,
        requirements: &vk::MemoryRequirements,
        info: &VmaAllocationCreateInfo,
        handle: *mut VmaAllocation,
        description: *mut VmaAllocationInfo,
    ) -> vk::Result {
        // SAFETY: C1.
        let asked = || unsafe { create_info(info, self.has_priorities) };
        // VMA does not check that the pool's memory type is in the mask.
        let bits = if info.pool.is_null() { requirements.memory_type_bits } else { u32::MAX };
        let needed =
            ResourceRequirements::from(&vk::MemoryRequirements { memory_type_bits: bits, ..*requirements });
        // Same as `allocate_memory`, inlined: the extra call and its moves are measurable.
        let allocated = self.allocator.allocate(Resource::unknown(needed), asked, None, Location::caller());
        match &allocated {
            Ok(allocation) => {
                // SAFETY: C3.
                unsafe { self.publish(allocation, info, handle, description) };
                vk::Result::SUCCESS
            }
            Err(error) => {
                // SAFETY: C3.
                unsafe { handle.write(std::ptr::null_mut()) };
                failed("vmaAllocateMemory", error)
            }
        }
    }
}

/// Defines a function that finds a memory type for a create-info by `$find`.
macro_rules! find_for {
    ($name:literal, $allocator:ident, $resource:ident, $info:ident, $found:ident, $find:ident) => {{
        // SAFETY: C1.
        let object = unsafe { given($name, $allocator) };
        // SAFETY: C3.
        let info = unsafe { given_info($name, $info) };
        let (Some(object), Some(info)) = (object, info) else {
            return vk::Result::ERROR_FEATURE_NOT_PRESENT;
        };
        // SAFETY: C3.
        let Some(resource) = (unsafe { given($name, $resource) }) else {
            return vk::Result::ERROR_FEATURE_NOT_PRESENT;
        };
        // SAFETY: C1.
        let asked = unsafe { create_info(info, object.front.has_priorities) };
        // SAFETY: C3.
        let answered = unsafe { object.front.allocator.$find(resource, &asked) };
        // SAFETY: C3.
        unsafe { answer_found($name, answered, $found) }
    }};
}

/// Defines a function that allocates memory for a resource by `$allocate`.
macro_rules! allocate_for {
    (
        $name:literal, $allocator:ident, $resource:ident, $null:expr, $info:ident, $allocation:ident, $description:ident,
        $allocate:ident
    ) => {{
        // SAFETY: C3.
        unsafe { answer($allocation, std::ptr::null_mut()) };
        // SAFETY: C1.
        let object = unsafe { given($name, $allocator) };
        // SAFETY: C3.
        let info = unsafe { given_info($name, $info) };
        let (Some(object), Some(info)) = (object, info) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        if $resource == $null || $allocation.is_null() {
            misused($name, concat!(stringify!($resource), " and pAllocation must not be null"));
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        }
        // SAFETY: C1.
        let asked = unsafe { create_info(info, object.front.has_priorities) };
        // SAFETY: C3.
        match unsafe { object.front.allocator.$allocate($resource, &asked) } {
            Ok(allocated) => {
                // SAFETY: C3.
                unsafe { object.front.publish(&allocated, info, $allocation, $description) };
                vk::Result::SUCCESS
            }
            Err(error) => failed($name, &error),
        }
    }};
}

exported! {
    /// Finds the best memory type.
    fn vmaFindMemoryTypeIndex(
        allocator: VmaAllocator,
        memory_type_bits: u32,
        info: *const VmaAllocationCreateInfo,
        found: *mut u32,
    ) -> vk::Result {
        const NAME: &str = "vmaFindMemoryTypeIndex";
        // SAFETY: C1, C3.
        let (Some(object), Some(info)) = (unsafe { given(NAME, allocator) }, unsafe { given_info(NAME, info) }) else {
            return vk::Result::ERROR_FEATURE_NOT_PRESENT;
        };
        // SAFETY: C1.
        let asked = unsafe { create_info(info, object.front.has_priorities) };
        let answered = object.front.allocator.find_memory_type_index(memory_type_bits, &asked);
        // SAFETY: C3.
        unsafe { answer_found(NAME, answered, found) }
    }

    /// Finds the best memory type for a buffer.
    fn vmaFindMemoryTypeIndexForBufferInfo(
        allocator: VmaAllocator,
        buffer_info: *const vk::BufferCreateInfo<'_>,
        info: *const VmaAllocationCreateInfo,
        found: *mut u32,
    ) -> vk::Result {
        find_for!("vmaFindMemoryTypeIndexForBufferInfo", allocator, buffer_info, info, found,
            find_memory_type_index_for_buffer_info)
    }

    /// Finds the best memory type for an image.
    fn vmaFindMemoryTypeIndexForImageInfo(
        allocator: VmaAllocator,
        image_info: *const vk::ImageCreateInfo<'_>,
        info: *const VmaAllocationCreateInfo,
        found: *mut u32,
    ) -> vk::Result {
        find_for!("vmaFindMemoryTypeIndexForImageInfo", allocator, image_info, info, found,
            find_memory_type_index_for_image_info)
    }

    /// Allocates memory.
    fn vmaAllocateMemory(
        allocator: VmaAllocator,
        requirements: *const vk::MemoryRequirements,
        info: *const VmaAllocationCreateInfo,
        allocation: *mut VmaAllocation,
        description: *mut VmaAllocationInfo,
    ) -> vk::Result {
        const NAME: &str = "vmaAllocateMemory";
        // SAFETY: C3.
        unsafe { answer(allocation, std::ptr::null_mut()) };
        // SAFETY: C1, C3.
        let (Some(object), Some(info)) = (unsafe { given(NAME, allocator) }, unsafe { given_info(NAME, info) }) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        // SAFETY: C3.
        let (Some(requirements), false) = (unsafe { given(NAME, requirements) }, is_missing(NAME, allocation)) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        // SAFETY: C1 to C3; the handle was checked.
        unsafe { object.front.allocate(requirements, info, allocation, description) }
    }

    /// Allocates dedicated memory.
    fn vmaAllocateDedicatedMemory(
        allocator: VmaAllocator,
        requirements: *const vk::MemoryRequirements,
        info: *const VmaAllocationCreateInfo,
        next: *mut c_void,
        allocation: *mut VmaAllocation,
        description: *mut VmaAllocationInfo,
    ) -> vk::Result {
        const NAME: &str = "vmaAllocateDedicatedMemory";
        // SAFETY: C3.
        unsafe { answer(allocation, std::ptr::null_mut()) };
        // SAFETY: C1, C3.
        let (Some(object), Some(info)) = (unsafe { given(NAME, allocator) }, unsafe { given_info(NAME, info) }) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        // SAFETY: C3.
        let (Some(requirements), false) = (unsafe { given(NAME, requirements) }, is_missing(NAME, allocation)) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        // SAFETY: C1.
        let asked = unsafe { create_info(info, object.front.has_priorities) };
        // SAFETY: C3.
        let next = unsafe { MemoryAllocateNext::new(next) };
        // As for `vmaAllocateMemory`.
        let bits = if info.pool.is_null() { requirements.memory_type_bits } else { u32::MAX };
        let needed = vk::MemoryRequirements { memory_type_bits: bits, ..*requirements };
        match object.front.allocator.allocate_dedicated_memory(&needed, &asked, next) {
            Ok(allocated) => {
                // SAFETY: C3.
                unsafe { object.front.publish(&allocated, info, allocation, description) };
                vk::Result::SUCCESS
            }
            Err(error) => failed(NAME, &error),
        }
    }

    /// Allocates several equal pieces of memory: all, or none.
    fn vmaAllocateMemoryPages(
        allocator: VmaAllocator,
        requirements: *const vk::MemoryRequirements,
        info: *const VmaAllocationCreateInfo,
        count: usize,
        allocations: *mut VmaAllocation,
        descriptions: *mut VmaAllocationInfo,
    ) -> vk::Result {
        const NAME: &str = "vmaAllocateMemoryPages";
        if count == 0 {
            return vk::Result::SUCCESS;
        }
        if !allocations.is_null() {
            // SAFETY: C3: the list has space for this many handles.
            unsafe { allocations.write_bytes(0, count) };
        }
        // SAFETY: C1, C3.
        let (Some(object), Some(info)) = (unsafe { given(NAME, allocator) }, unsafe { given_info(NAME, info) }) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        // SAFETY: C3.
        let (Some(requirements), false) = (unsafe { given(NAME, requirements) }, is_missing(NAME, allocations)) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        for at in 0..count {
            let description =
                if descriptions.is_null() { descriptions } else { descriptions.wrapping_add(at) };
            let handle = allocations.wrapping_add(at);
            // SAFETY: C1 to C3; the handle belongs to the program.
            let result = unsafe { object.front.allocate(requirements, info, handle, description) };
            if result != vk::Result::SUCCESS {
                for handle in (0..at).rev().map(|at| allocations.wrapping_add(at)) {
                    // SAFETY: it was written above.
                    let allocation = unsafe { handle.replace(std::ptr::null_mut()) };
                    // SAFETY: no other call has seen the allocation.
                    unsafe { object.front.free(NAME, allocation) };
                }
                return result;
            }
        }
        vk::Result::SUCCESS
    }

    /// Allocates memory for a buffer.
    fn vmaAllocateMemoryForBuffer(
        allocator: VmaAllocator,
        buffer: vk::Buffer,
        info: *const VmaAllocationCreateInfo,
        allocation: *mut VmaAllocation,
        description: *mut VmaAllocationInfo,
    ) -> vk::Result {
        allocate_for!("vmaAllocateMemoryForBuffer", allocator, buffer, vk::Buffer::null(), info, allocation, description,
            allocate_memory_for_buffer)
    }

    /// Allocates memory for an image.
    fn vmaAllocateMemoryForImage(
        allocator: VmaAllocator,
        image: vk::Image,
        info: *const VmaAllocationCreateInfo,
        allocation: *mut VmaAllocation,
        description: *mut VmaAllocationInfo,
    ) -> vk::Result {
        allocate_for!("vmaAllocateMemoryForImage", allocator, image, vk::Image::null(), info, allocation, description,
            allocate_memory_for_image)
    }

    /// Frees memory.
    fn vmaFreeMemory(allocator: VmaAllocator, allocation: VmaAllocation) {
        const NAME: &str = "vmaFreeMemory";
        // SAFETY: C1.
        if let Some(object) = unsafe { given(NAME, allocator) } {
            // SAFETY: C1 to C3.
            unsafe { object.front.free(NAME, allocation) };
        }
    }

    /// Frees several allocations.
    fn vmaFreeMemoryPages(allocator: VmaAllocator, count: usize, allocations: *const VmaAllocation) {
        const NAME: &str = "vmaFreeMemoryPages";
        // SAFETY: C1.
        let Some(object) = (unsafe { given(NAME, allocator) }) else { return };
        if count != 0 && allocations.is_null() {
            return misused(NAME, "pAllocations must not be null");
        }
        // In reverse order: the top of a linear pool is freed before the allocations below it.
        for at in (0..count).rev() {
            // SAFETY: C3.
            let allocation = unsafe { allocations.wrapping_add(at).read() };
            // SAFETY: C1 to C3.
            unsafe { object.front.free(NAME, allocation) };
        }
    }

    /// Describes an allocation.
    fn vmaGetAllocationInfo(allocator: VmaAllocator, allocation: VmaAllocation, info: *mut VmaAllocationInfo) {
        // SAFETY: C1, C2.
        if let Some((_, slot, _)) = unsafe { both("vmaGetAllocationInfo", allocator, allocation) } {
            // SAFETY: C3.
            unsafe { answer(info, describe(slot)) };
        }
    }

    /// Describes an allocation and its block.
    fn vmaGetAllocationInfo2(allocator: VmaAllocator, allocation: VmaAllocation, info: *mut VmaAllocationInfo2) {
        const NAME: &str = "vmaGetAllocationInfo2";
        // SAFETY: C1, C2.
        let Some((object, slot, _)) = (unsafe { both(NAME, allocator, allocation) }) else { return };
        match object.front.allocator.allocation_info(slot.allocation()) {
            Ok(known) => {
                let dedicated_memory = vk::Bool32::from(known.dedicated);
                let block_size = known.memory_size;
                let allocation_info = describe(slot);
                // SAFETY: C3.
                unsafe { answer(info, VmaAllocationInfo2 { allocation_info, block_size, dedicated_memory }) };
            }
            Err(error) => foreign(NAME, &error),
        }
    }

    /// Replaces the user data of an allocation.
    fn vmaSetAllocationUserData(allocator: VmaAllocator, allocation: VmaAllocation, user_data: *mut c_void) {
        const NAME: &str = "vmaSetAllocationUserData";
        // SAFETY: C1.
        let Some(object) = (unsafe { given(NAME, allocator) }) else { return };
        // SAFETY: C1, C2.
        unsafe { object.front.set_user_data(NAME, allocation, address(user_data)) };
    }

    /// Names an allocation.
    fn vmaSetAllocationName(allocator: VmaAllocator, allocation: VmaAllocation, name: *const c_char) {
        // SAFETY: C1.
        if let Some(object) = unsafe { given("vmaSetAllocationName", allocator) } {
            // SAFETY: C1 to C3.
            unsafe { object.front.name(allocation, name) };
        }
    }

    /// Returns the properties of an allocation's memory type.
    fn vmaGetAllocationMemoryProperties(
        allocator: VmaAllocator,
        allocation: VmaAllocation,
        flags: *mut vk::MemoryPropertyFlags,
    ) {
        const NAME: &str = "vmaGetAllocationMemoryProperties";
        // SAFETY: C1, C2.
        let Some((object, slot, _)) = (unsafe { both(NAME, allocator, allocation) }) else { return };
        let memory_type = sublet::private::index(slot.allocation().memory_type_index());
        if let Some(known) = object.memory_types().get(memory_type) {
            // SAFETY: C3.
            unsafe { answer(flags, known.property_flags) };
        }
    }
}
