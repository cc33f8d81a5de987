//! What a program chooses.

/// The users of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryLocation {
    /// Anywhere: the first memory type that is allowed.
    Unknown,
    /// The device alone.
    GpuOnly,
    /// Written by the host and read by the device.
    CpuToGpu,
    /// Written by the device and read by the host.
    GpuToCpu,
}

/// Help in finding faults.
#[non_exhaustive]
#[derive(Copy, Clone, Debug)]
pub struct AllocatorDebugSettings {
    /// Heaps and memory types are logged when the allocator is made.
    pub log_memory_information: bool,
    /// What is still allocated when the allocator goes is logged as a warning.
    pub log_leaks_on_shutdown: bool,
    /// A backtrace is kept with every allocation.
    #[cfg(feature = "std")]
    pub store_stack_traces: bool,
    /// Every allocation is logged.
    pub log_allocations: bool,
    /// Every free is logged.
    pub log_frees: bool,
    /// Allocations and frees are logged with a backtrace.
    #[cfg(feature = "std")]
    pub log_stack_traces: bool,
}

impl Default for AllocatorDebugSettings {
    fn default() -> Self {
        Self {
            log_memory_information: false,
            log_leaks_on_shutdown: true,
            #[cfg(feature = "std")]
            store_stack_traces: false,
            log_allocations: false,
            log_frees: false,
            #[cfg(feature = "std")]
            log_stack_traces: false,
        }
    }
}

const MIB: u64 = 1024 * 1024;
const STEP: u64 = 4 * MIB;
const LARGEST: u64 = 256 * MIB;

/// How large blocks are, in bytes: between 4 and 256 MiB, in steps of 4 MiB. The first block of a memory type has the
/// smallest size, and each further one twice as much, up to the largest. Those for the host are of memory types that
/// the host sees.
#[derive(Clone, Copy, Debug)]
pub struct AllocationSizes {
    min_device_memblock_size: u64,
    max_device_memblock_size: u64,
    min_host_memblock_size: u64,
    max_host_memblock_size: u64,
}

impl AllocationSizes {
    /// Sizes of blocks for the device and for the host.
    #[must_use]
    pub fn new(device_memblock_size: u64, host_memblock_size: u64) -> Self {
        let device = adjusted(device_memblock_size, "Device");
        let host = adjusted(host_memblock_size, "Host");
        Self {
            min_device_memblock_size: device,
            max_device_memblock_size: device,
            min_host_memblock_size: host,
            max_host_memblock_size: host,
        }
    }

    /// Blocks for the device may grow to this size.
    #[must_use]
    pub fn with_max_device_memblock_size(mut self, size: u64) -> Self {
        self.max_device_memblock_size = adjusted(size, "Device").max(self.min_device_memblock_size);
        self
    }

    /// Blocks for the host may grow to this size.
    #[must_use]
    pub fn with_max_host_memblock_size(mut self, size: u64) -> Self {
        self.max_host_memblock_size = adjusted(size, "Host").max(self.min_host_memblock_size);
        self
    }

    /// The smallest and the largest size of blocks that the host sees, or does not see.
    #[cfg(feature = "vulkan")]
    pub(crate) fn range(&self, is_host: bool) -> (u64, u64) {
        if is_host {
            (self.min_host_memblock_size, self.max_host_memblock_size)
        } else {
            (self.min_device_memblock_size, self.max_device_memblock_size)
        }
    }
}

impl Default for AllocationSizes {
    fn default() -> Self {
        Self::new(LARGEST, 64 * MIB)
    }
}

/// The size in the allowed range, rounded up to whole steps.
fn adjusted(size: u64, kind: &str) -> u64 {
    let clamped = size.clamp(STEP, LARGEST);
    let rounded = clamped.next_multiple_of(STEP);
    if rounded != clamped {
        log::warn!(
            target: "gpu_allocator",
            "{kind} memory block size must be a multiple of 4MB, clamping to {}MB",
            rounded / MIB
        );
    }
    rounded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_stay_in_their_range() {
        assert_eq!(adjusted(0, ""), STEP);
        assert_eq!(adjusted(5 * MIB, ""), 8 * MIB);
        assert_eq!(adjusted(u64::MAX, ""), LARGEST);
        let sizes = AllocationSizes::new(8 * MIB, 8 * MIB).with_max_device_memblock_size(4 * MIB);
        assert_eq!(sizes.range(false), (8 * MIB, 8 * MIB));
        assert_eq!(sizes.with_max_host_memblock_size(64 * MIB).range(true), (8 * MIB, 64 * MIB));
    }
}
