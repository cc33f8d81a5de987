//! Buffers and images, each created with its memory.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;

use ash::vk;

use crate::allocator::{Front, create_info, given_info};
use crate::error_in_c::not_created;
use crate::guard::{answer, exported, given, misused};
use crate::types::{VmaAllocation, VmaAllocationCreateInfo, VmaAllocationInfo, VmaAllocator};
use sublet::AllocationCreateInfo;
use sublet::MemoryAllocateNext;
use sublet::private::{AllocatorInside, CreateInside};

/// Adjustments of a request. Each use explains its own.
#[derive(Clone, Copy)]
struct Also {
    min_alignment: u64,
    /// A `pNext` chain for dedicated memory.
    dedicated: Option<*const c_void>,
}

impl Also {
    const NOTHING: Self = Self { min_alignment: 0, dedicated: None };

    #[inline(always)]
    fn applied(self, asked: AllocationCreateInfo<'_>) -> AllocationCreateInfo<'_> {
        AllocationCreateInfo { min_alignment: asked.min_alignment.max(self.min_alignment), ..asked }
    }

    /// # Safety
    /// C3 for the chain.
    unsafe fn next(self) -> Option<MemoryAllocateNext> {
        // SAFETY: C3.
        self.dedicated.map(|next| unsafe { MemoryAllocateNext::new(next) })
    }
}

/// Defines the functions that create a `$handle` with memory: by `$create`, or with dedicated memory by `$dedicated`.
/// `$refuse` is a condition on the create-info that fails the call, and its message.
macro_rules! creating {
    ($name:ident, $handle:ty, $info:ty, $create:ident, $dedicated:ident, $null:literal $(, $refuse:expr, $why:literal)?) => {
        impl Front {
            /// # Safety
            /// C1 to C3; neither `made` nor `handle` is null.
            #[inline(always)]
            unsafe fn $name(
                &self,
                function: &'static str,
                resource_info: &$info,
                info: &VmaAllocationCreateInfo,
                also: Also,
                (made, handle, description): (*mut $handle, *mut VmaAllocation, *mut VmaAllocationInfo),
            ) -> vk::Result {
                let asked = || {
                    // SAFETY: C1.
                    let asked = unsafe { create_info(info, self.has_priorities) };
                    also.applied(asked)
                };
                // SAFETY: C3.
                let created = match unsafe { also.next() } {
                    // SAFETY: C3.
                    None => unsafe { self.allocator.$create(resource_info, asked) },
                    // SAFETY: C3.
                    Some(next) => unsafe { self.allocator.$dedicated(resource_info, &asked(), next) },
                };
                match created {
                    Ok((resource, allocation)) => {
                        // SAFETY: C3.
                        unsafe { made.write(resource) };
                        // SAFETY: C3.
                        unsafe { self.publish(&allocation, info, handle, description) };
                        vk::Result::SUCCESS
                    }
                    Err(error) => not_created(function, &error),
                }
            }
        }

        /// # Safety
        /// C1 to C3.
        #[inline(always)]
        unsafe fn $name(
            function: &'static str,
            allocator: VmaAllocator,
            resource_info: *const $info,
            info: *const VmaAllocationCreateInfo,
            also: Also,
            answers: (*mut $handle, *mut VmaAllocation, *mut VmaAllocationInfo),
        ) -> vk::Result {
            // SAFETY: C3.
            unsafe { answer(answers.0, <$handle>::null()) };
            // SAFETY: C3.
            unsafe { answer(answers.1, std::ptr::null_mut()) };
            // SAFETY: C1.
            let object = unsafe { given(function, allocator) };
            // SAFETY: C3.
            let info = unsafe { given_info(function, info) };
            let (Some(object), Some(info)) = (object, info) else {
                return vk::Result::ERROR_INITIALIZATION_FAILED;
            };
            // SAFETY: C3.
            let Some(resource_info) = (unsafe { given(function, resource_info) }) else {
                return vk::Result::ERROR_INITIALIZATION_FAILED;
            };
            if answers.0.is_null() || answers.1.is_null() {
                misused(function, $null);
                return vk::Result::ERROR_INITIALIZATION_FAILED;
            }
            $(if $refuse(resource_info) {
                misused(function, $why);
                return vk::Result::ERROR_FEATURE_NOT_PRESENT;
            })?
            // SAFETY: C1 to C3; the answers were checked.
            unsafe { object.front.$name(function, resource_info, info, also, answers) }
        }
    };
}
creating!(
    create_buffer,
    vk::Buffer,
    vk::BufferCreateInfo<'_>,
    create_buffer_as,
    create_dedicated_buffer,
    "pBuffer and pAllocation must not be null"
);
creating!(
    create_image,
    vk::Image,
    vk::ImageCreateInfo<'_>,
    create_image_as,
    create_dedicated_image,
    "pImage and pAllocation must not be null",
    |info: &vk::ImageCreateInfo<'_>| info.flags.contains(vk::ImageCreateFlags::DISJOINT),
    "an image whose planes are bound one by one cannot be created with its memory"
);

/// Defines a function that destroys a resource by `$destroy` and frees its memory.
macro_rules! destroy {
    ($name:literal, $allocator:ident, $resource:ident, $null:expr, $allocation:ident, $destroy:ident) => {{
        // SAFETY: C1.
        if let Some(object) = unsafe { given($name, $allocator) } {
            // If the allocation is not a live one of this allocator, the resource may be destroyed already or belong to
            // another device. SAFETY: C1, C2.
            if !$allocation.is_null() && unsafe { object.front.own($name, $allocation) }.is_none() {
                return;
            }
            if $resource != $null {
                // SAFETY: C3.
                unsafe { object.front.allocator.device().$destroy($resource) };
            }
            // SAFETY: C1 to C3.
            unsafe { object.front.free($name, $allocation) };
        }
    }};
}

exported! {
    /// Creates a buffer with its memory.
    fn vmaCreateBuffer(
        allocator: VmaAllocator,
        buffer_info: *const vk::BufferCreateInfo<'_>,
        info: *const VmaAllocationCreateInfo,
        buffer: *mut vk::Buffer,
        allocation: *mut VmaAllocation,
        description: *mut VmaAllocationInfo,
    ) -> vk::Result {
        let answers = (buffer, allocation, description);
        // SAFETY: C1 to C3.
        unsafe { create_buffer("vmaCreateBuffer", allocator, buffer_info, info, Also::NOTHING, answers) }
    }

    /// Creates a buffer with memory that is aligned to at least `min_alignment`.
    fn vmaCreateBufferWithAlignment(
        allocator: VmaAllocator,
        buffer_info: *const vk::BufferCreateInfo<'_>,
        info: *const VmaAllocationCreateInfo,
        min_alignment: u64,
        buffer: *mut vk::Buffer,
        allocation: *mut VmaAllocation,
        description: *mut VmaAllocationInfo,
    ) -> vk::Result {
        let also = Also { min_alignment, ..Also::NOTHING };
        let answers = (buffer, allocation, description);
        // SAFETY: C1 to C3.
        unsafe { create_buffer("vmaCreateBufferWithAlignment", allocator, buffer_info, info, also, answers) }
    }

    /// Creates a buffer with dedicated memory.
    fn vmaCreateDedicatedBuffer(
        allocator: VmaAllocator,
        buffer_info: *const vk::BufferCreateInfo<'_>,
        info: *const VmaAllocationCreateInfo,
        next: *mut c_void,
        buffer: *mut vk::Buffer,
        allocation: *mut VmaAllocation,
        description: *mut VmaAllocationInfo,
    ) -> vk::Result {
        let also = Also { dedicated: Some(next.cast_const()), ..Also::NOTHING };
        let answers = (buffer, allocation, description);
        // SAFETY: C1 to C3.
        unsafe { create_buffer("vmaCreateDedicatedBuffer", allocator, buffer_info, info, also, answers) }
    }

    /// Destroys a buffer and frees its memory.
    fn vmaDestroyBuffer(allocator: VmaAllocator, buffer: vk::Buffer, allocation: VmaAllocation) {
        destroy!("vmaDestroyBuffer", allocator, buffer, vk::Buffer::null(), allocation, destroy_buffer);
    }

    /// Creates an image with its memory.
    fn vmaCreateImage(
        allocator: VmaAllocator,
        image_info: *const vk::ImageCreateInfo<'_>,
        info: *const VmaAllocationCreateInfo,
        image: *mut vk::Image,
        allocation: *mut VmaAllocation,
        description: *mut VmaAllocationInfo,
    ) -> vk::Result {
        let answers = (image, allocation, description);
        // SAFETY: C1 to C3.
        unsafe { create_image("vmaCreateImage", allocator, image_info, info, Also::NOTHING, answers) }
    }

    /// Creates an image with dedicated memory.
    fn vmaCreateDedicatedImage(
        allocator: VmaAllocator,
        image_info: *const vk::ImageCreateInfo<'_>,
        info: *const VmaAllocationCreateInfo,
        next: *mut c_void,
        image: *mut vk::Image,
        allocation: *mut VmaAllocation,
        description: *mut VmaAllocationInfo,
    ) -> vk::Result {
        let also = Also { dedicated: Some(next.cast_const()), ..Also::NOTHING };
        let answers = (image, allocation, description);
        // SAFETY: C1 to C3.
        unsafe { create_image("vmaCreateDedicatedImage", allocator, image_info, info, also, answers) }
    }

    /// Destroys an image and frees its memory.
    fn vmaDestroyImage(allocator: VmaAllocator, image: vk::Image, allocation: VmaAllocation) {
        destroy!("vmaDestroyImage", allocator, image, vk::Image::null(), allocation, destroy_image);
    }
}
