//! Settings of an allocator and of allocations.

/// The users of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryLocation {
    /// Anywhere: the first memory type that is allowed.
    Unknown,
    /// The device only.
    GpuOnly,
    /// Written by the host and read by the device.
    CpuToGpu,
    /// Written by the device and read by the host.
    GpuToCpu,
}

/// Debug settings.
#[non_exhaustive]
#[derive(Copy, Clone, Debug)]
pub struct AllocatorDebugSettings {
    /// Logs heaps and memory types when the allocator is created.
    pub log_memory_information: bool,
    /// Logs live allocations as warnings when the allocator is dropped.
    pub log_leaks_on_shutdown: bool,
    /// Stores a backtrace with every allocation.
    #[cfg(feature = "std")]
    pub store_stack_traces: bool,
    /// Logs every allocation.
    pub log_allocations: bool,
    /// Logs every free.
    pub log_frees: bool,
    /// Adds a backtrace to each logged allocation and free.
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

/// Block sizes in bytes: between 4 and 256 MiB, in steps of 4 MiB. The first block of a memory type has the smallest
/// size. Each further block doubles it, up to the largest. The host sizes apply to host-visible memory types.
#[derive(Clone, Copy, Debug)]
pub struct AllocationSizes {
    min_device_memblock_size: u64,
    max_device_memblock_size: u64,
    min_host_memblock_size: u64,
    max_host_memblock_size: u64,
}

impl AllocationSizes {
    /// Creates settings with equal smallest and largest sizes for the device and for the host.
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

    /// Sets the largest size of device blocks.
    #[must_use]
    pub fn with_max_device_memblock_size(mut self, size: u64) -> Self {
        self.max_device_memblock_size = adjusted(size, "Device").max(self.min_device_memblock_size);
        self
    }

    /// Sets the largest size of host blocks.
    #[must_use]
    pub fn with_max_host_memblock_size(mut self, size: u64) -> Self {
        self.max_host_memblock_size = adjusted(size, "Host").max(self.min_host_memblock_size);
        self
    }

    /// Returns the smallest and the largest size for memory that is host-visible or not.
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

/// Returns the size rounded up to a multiple of the step, in the allowed range.
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
