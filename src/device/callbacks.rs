//! Callbacks for the device memory that an allocator allocates and frees.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use ash::vk;

/// The allocator has allocated a `VkDeviceMemory`, or is about to free one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DeviceMemoryEvent {
    /// `vkAllocateMemory` has succeeded.
    Allocated {
        /// Index of the memory type.
        memory_type: u32,
        /// The new memory.
        memory: vk::DeviceMemory,
        /// The size in bytes.
        size: u64,
    },
    /// `vkFreeMemory` comes next.
    Freeing {
        /// Index of the memory type.
        memory_type: u32,
        /// The memory to free.
        memory: vk::DeviceMemory,
        /// The size in bytes.
        size: u64,
    },
}

/// The C form of a callback. Its arguments: [`RawDeviceMemoryCallbacks::allocator`], the memory type, the memory, its
/// size in bytes, and [`RawDeviceMemoryCallbacks::user_data`].
pub type DeviceMemoryFunction = unsafe extern "system" fn(
    allocator: *mut c_void,
    memory_type: u32,
    memory: vk::DeviceMemory,
    size: u64,
    user_data: *mut c_void,
);

/// Callbacks in C form. Each is optional.
#[derive(Clone, Copy, Debug)]
pub struct RawDeviceMemoryCallbacks {
    /// Called after `vkAllocateMemory` has succeeded.
    pub allocated: Option<DeviceMemoryFunction>,
    /// Called before `vkFreeMemory`.
    pub freeing: Option<DeviceMemoryFunction>,
    /// The first argument: the program's own handle of the allocator.
    pub allocator: *mut c_void,
    /// The last argument.
    pub user_data: *mut c_void,
}

impl Default for RawDeviceMemoryCallbacks {
    fn default() -> Self {
        let nothing = std::ptr::null_mut();
        Self { allocated: None, freeing: None, allocator: nothing, user_data: nothing }
    }
}

// SAFETY: the pointers are plain addresses here. The caller of `DeviceMemoryCallbacks::from_raw` promises that the
// functions may be called with them on any thread.
unsafe impl Send for RawDeviceMemoryCallbacks {}
// SAFETY: as above.
unsafe impl Sync for RawDeviceMemoryCallbacks {}

impl RawDeviceMemoryCallbacks {
    /// # Safety
    /// Same as [`DeviceMemoryCallbacks::from_raw`].
    unsafe fn call(&self, event: DeviceMemoryEvent) {
        let (function, memory_type, memory, size) = match event {
            DeviceMemoryEvent::Allocated { memory_type, memory, size } => {
                (self.allocated, memory_type, memory, size)
            }
            DeviceMemoryEvent::Freeing { memory_type, memory, size } => {
                (self.freeing, memory_type, memory, size)
            }
        };
        if let Some(function) = function {
            // SAFETY: the caller of `from_raw` has promised that any thread may call the function with these pointers.
            unsafe { function(self.allocator, memory_type, memory, size, self.user_data) };
        }
    }
}

/// A callback for every `VkDeviceMemory` that an allocator allocates or frees, for blocks and for dedicated memory.
///
/// The allocator calls it on the thread that allocates or frees, between the driver call and its own bookkeeping. The
/// callback may query the allocator's statistics. It must not allocate or free, because that may deadlock with the call
/// that it reports. If it panics, the reported memory is leaked.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use sublet::*;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// let seen = Arc::new(Mutex::new(Vec::new()));
/// let list = Arc::clone(&seen);
/// let info = AllocatorCreateInfo {
///     device_memory_callbacks: Some(device::DeviceMemoryCallbacks::new(move |event| {
///         list.lock().unwrap().push(event);
///     })),
///     ..AllocatorCreateInfo::for_gpu(&gpu)
/// };
/// // SAFETY: the handles are live and outlive the allocator.
/// let allocator = unsafe { Allocator::new(&info) }?;
/// # let requirements = ash::vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
/// let dedicated = AllocationCreateInfo { flags: AllocationCreateFlags::DEDICATED_MEMORY, ..Default::default() };
/// let allocation = allocator.allocate_memory(&requirements, &dedicated)?;
/// # let memory = allocation.memory();
/// # unsafe { allocator.free_memory(allocation) }?;
/// use device::DeviceMemoryEvent::{Allocated, Freeing};
/// assert_eq!(
///     *seen.lock().unwrap(),
///     [Allocated { memory_type: 0, memory, size: 4096 }, Freeing { memory_type: 0, memory, size: 4096 }]
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct DeviceMemoryCallbacks(Arc<dyn Fn(DeviceMemoryEvent) + Send + Sync>);

impl DeviceMemoryCallbacks {
    /// Wraps a closure.
    #[must_use]
    pub fn new(callback: impl Fn(DeviceMemoryEvent) + Send + Sync + 'static) -> Self {
        Self(Arc::new(callback))
    }

    /// Wraps C functions.
    ///
    /// # Safety
    /// The functions may be called from any thread, with their pointers, while an allocator with these callbacks lives.
    /// They do not unwind.
    #[must_use]
    pub unsafe fn from_raw(raw: RawDeviceMemoryCallbacks) -> Self {
        // SAFETY: the caller promises that any thread may call the functions while an allocator uses them, and that
        // they do not unwind.
        Self(Arc::new(move |event| unsafe { raw.call(event) }))
    }

    pub(crate) fn call(&self, event: DeviceMemoryEvent) {
        (self.0)(event);
    }
}

impl fmt::Debug for DeviceMemoryCallbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceMemoryCallbacks").finish_non_exhaustive()
    }
}
