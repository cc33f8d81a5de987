//! The calls of `vkAllocateMemory` and the flushed ranges in their order, for tests that compare two programs.

use std::sync::atomic::{AtomicBool, Ordering};

use ash::vk;
use parking_lot::Mutex;

use crate::objects::memory::MemoryInfo;

/// One call of `vkAllocateMemory`, and its result: an element of [`Gpu::take_log`](crate::Gpu::take_log).
///
/// ```
/// use ash::vk;
/// use sublet_sim::{Gpu, profiles::Profile};
/// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
/// gpu.log_allocations(true);
/// let mut export = vk::ExportMemoryAllocateInfo::default().handle_types(vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD);
/// let info = vk::MemoryAllocateInfo::default().allocation_size(4096).push_next(&mut export);
/// let memory = unsafe { gpu.device().allocate_memory(&info, None) }.unwrap();
/// unsafe { gpu.device().free_memory(memory, None) };
/// let calls = gpu.take_log();
/// assert_eq!(calls[0].asked.chain, [vk::StructureType::EXPORT_MEMORY_ALLOCATE_INFO]);
/// assert_eq!((calls[0].asked.size, calls[0].result), (4096, vk::Result::SUCCESS));
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct AllocateCall {
    /// Size, memory type, and everything in the `pNext` chain.
    pub asked: MemoryInfo,
    /// The new memory, or NULL if the call failed.
    pub memory: vk::DeviceMemory,
    /// The driver's result. The log has those of ordered faults too.
    pub result: vk::Result,
}

/// A range that the host flushed or invalidated: an element of [`Gpu::take_synced`](crate::Gpu::take_synced).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SyncedRange {
    /// The memory.
    pub memory: vk::DeviceMemory,
    /// The offset in bytes.
    pub offset: u64,
    /// The size in bytes, or `VK_WHOLE_SIZE`.
    pub size: u64,
    /// True for `vkFlushMappedMemoryRanges`, false for `vkInvalidateMappedMemoryRanges`.
    pub is_flush: bool,
}

/// The list of calls, while the log is on.
#[derive(Debug, Default)]
pub(crate) struct CallLog {
    on: AtomicBool,
    calls: Mutex<Vec<AllocateCall>>,
    synced: Mutex<Vec<SyncedRange>>,
}

impl CallLog {
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    pub(crate) fn switch(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    pub(crate) fn push(&self, call: AllocateCall) {
        self.calls.lock().push(call);
    }

    pub(crate) fn sync(&self, ranges: &[vk::MappedMemoryRange<'_>], is_flush: bool) {
        let range = |range: &vk::MappedMemoryRange<'_>| {
            let vk::MappedMemoryRange { memory, offset, size, .. } = *range;
            SyncedRange { memory, offset, size, is_flush }
        };
        self.synced.lock().extend(ranges.iter().map(range));
    }

    pub(crate) fn take(&self) -> Vec<AllocateCall> {
        std::mem::take(&mut *self.calls.lock())
    }

    pub(crate) fn take_synced(&self) -> Vec<SyncedRange> {
        std::mem::take(&mut *self.synced.lock())
    }
}
