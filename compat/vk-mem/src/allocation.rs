//! What a program holds of its memory.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

use ash::prelude::VkResult;
use ash::vk;

use crate::info::narrow;
use crate::refused::misused;

/// A piece of memory, or nothing once it is freed.
#[derive(Debug)]
#[must_use = "an allocation that is dropped stays allocated"]
pub struct Allocation {
    inner: Option<sublet::Allocation>,
    /// How often the program has it mapped.
    pub(crate) map_count: u32,
    /// Where it is mapped, while the count is not zero. Only methods with `&mut self` write it.
    mapped: AtomicPtr<u8>,
}

impl Allocation {
    pub(crate) fn new(inner: sublet::Allocation) -> Self {
        Self { inner: Some(inner), map_count: 0, mapped: AtomicPtr::default() }
    }

    /// Sublet's allocation; `None` if it was freed.
    pub fn as_sublet(&self) -> Option<&sublet::Allocation> {
        self.inner.as_ref()
    }

    /// The same, to be changed: what Sublet's functions for moves take.
    pub fn as_sublet_mut(&mut self) -> Option<&mut sublet::Allocation> {
        self.inner.as_mut()
    }

    /// Its id, unique among all allocations, for tables; `None` if it was freed. A move gives it another one.
    pub fn id(&self) -> Option<sublet::AllocationId> {
        self.inner.as_ref().map(sublet::Allocation::id)
    }

    pub(crate) fn live(&self) -> VkResult<&sublet::Allocation> {
        self.as_sublet().ok_or_else(|| misused("the allocation was freed"))
    }

    pub(crate) fn live_mut(&mut self) -> VkResult<&mut sublet::Allocation> {
        self.as_sublet_mut().ok_or_else(|| misused("the allocation was freed"))
    }

    /// Takes out what it is, and leaves nothing.
    pub(crate) fn take(&mut self) -> VkResult<sublet::Allocation> {
        self.inner.take().ok_or_else(|| misused("the allocation was freed"))
    }

    /// What was taken out and not freed.
    pub(crate) fn put_back(&mut self, inner: sublet::Allocation) {
        self.inner = Some(inner);
    }

    /// Where the program has mapped it; null if it has not.
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

/// What there is to know of an [`Allocation`]. All is zero for one that was freed.
#[derive(Debug, Clone)]
pub struct AllocationInfo {
    /// The type of its memory.
    pub memory_type: u32,
    /// The memory that it is in.
    pub device_memory: vk::DeviceMemory,
    /// Bytes from the start of the memory.
    pub offset: vk::DeviceSize,
    /// Bytes.
    pub size: vk::DeviceSize,
    /// Where it is mapped; null if it is not.
    pub mapped_data: *mut c_void,
    /// What the program keeps with it.
    pub user_data: usize,
}

/// What there is to know of an [`Allocation`] and of the memory that it is in.
#[derive(Debug, Clone)]
pub struct AllocationInfo2 {
    /// Of the allocation.
    pub allocation_info: AllocationInfo,
    /// Bytes of the `VkDeviceMemory`.
    pub block_size: u64,
    /// The memory is its own.
    pub dedicated_memory: bool,
}
