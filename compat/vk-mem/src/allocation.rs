//! Allocations, and their descriptions.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

use ash::prelude::VkResult;
use ash::vk;

use crate::info::narrow;
use crate::refused::misused;

/// A range of memory, or nothing after it is freed.
#[derive(Debug)]
#[must_use = "an allocation that is dropped stays allocated"]
pub struct Allocation {
    inner: Option<sublet::Allocation>,
    /// Number of the program's mappings.
    pub(crate) map_count: u32,
    /// The mapped address while the count is not zero. Only methods with `&mut self` write it.
    mapped: AtomicPtr<u8>,
}

impl Allocation {
    pub(crate) fn new(inner: sublet::Allocation) -> Self {
        Self { inner: Some(inner), map_count: 0, mapped: AtomicPtr::default() }
    }

    /// Returns Sublet's allocation. `None` if it was freed.
    pub fn as_sublet(&self) -> Option<&sublet::Allocation> {
        self.inner.as_ref()
    }

    /// Returns Sublet's allocation for modification, as its functions for moves require.
    pub fn as_sublet_mut(&mut self) -> Option<&mut sublet::Allocation> {
        self.inner.as_mut()
    }

    /// Returns its id, which is unique among all allocations. `None` if it was freed. A move changes the id.
    pub fn id(&self) -> Option<sublet::AllocationId> {
        self.inner.as_ref().map(sublet::Allocation::id)
    }

    pub(crate) fn live(&self) -> VkResult<&sublet::Allocation> {
        self.as_sublet().ok_or_else(|| misused("the allocation was freed"))
    }

    pub(crate) fn live_mut(&mut self) -> VkResult<&mut sublet::Allocation> {
        self.as_sublet_mut().ok_or_else(|| misused("the allocation was freed"))
    }

    /// Takes Sublet's allocation out and leaves this one empty.
    pub(crate) fn take(&mut self) -> VkResult<sublet::Allocation> {
        self.inner.take().ok_or_else(|| misused("the allocation was freed"))
    }

    /// Puts back an allocation that was not freed.
    pub(crate) fn put_back(&mut self, inner: sublet::Allocation) {
        self.inner = Some(inner);
    }

    /// Sets the address of the program's mapping; null if it has none.
    pub(crate) fn set_mapped(&mut self, pointer: *mut u8) {
        *self.mapped.get_mut() = pointer;
    }

    pub(crate) fn info(&self) -> AllocationInfo {
        let mapped = self.mapped.load(Ordering::Relaxed).cast();
        let Ok(inner) = self.live() else {
            return AllocationInfo {
                memory_type: 0,
                device_memory: vk::DeviceMemory::null(),
                offset: 0,
                size: 0,
                mapped_data: std::ptr::null_mut(),
                user_data: 0,
            };
        };
        AllocationInfo {
            memory_type: inner.memory_type_index(),
            device_memory: inner.memory(),
            offset: inner.offset(),
            size: inner.size(),
            mapped_data: inner.mapped_pointer().map_or(mapped, |pointer| pointer.as_ptr()),
            user_data: narrow(inner.user_data()),
        }
    }
}

/// The description of an [`Allocation`]. All fields are zero if it was freed.
#[derive(Debug, Clone)]
pub struct AllocationInfo {
    /// Its memory type.
    pub memory_type: u32,
    /// Its memory.
    pub device_memory: vk::DeviceMemory,
    /// Bytes from the start of the memory.
    pub offset: vk::DeviceSize,
    /// Size in bytes.
    pub size: vk::DeviceSize,
    /// The mapped address; null if it is not mapped.
    pub mapped_data: *mut c_void,
    /// The program's user data.
    pub user_data: usize,
}

/// The description of an [`Allocation`] and of its block.
#[derive(Debug, Clone)]
pub struct AllocationInfo2 {
    /// The description of the allocation.
    pub allocation_info: AllocationInfo,
    /// Bytes of the `VkDeviceMemory`.
    pub block_size: u64,
    /// True if the memory is dedicated.
    pub dedicated_memory: bool,
}
