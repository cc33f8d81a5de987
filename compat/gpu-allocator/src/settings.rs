//! What a program chooses.

/// Who uses the memory.
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

/// How large blocks are, in bytes: between 4 and 256 MiB, in steps of 4 MiB.
///
/// Here only the largest size counts: see the list of differences at the [top](crate).
#[derive(Clone, Copy, Debug)]
pub struct AllocationSizes {
    device: u64,
    host: u64,
}

impl AllocationSizes {
    /// Sizes of blocks for the device and for the host.
    #[must_use]
    pub fn new(device_memblock_size: u64, host_memblock_size: u64) -> Self {
        Self { device: adjusted(device_memblock_size, "Device"), host: adjusted(host_memblock_size, "Host") }
    }

    /// Blocks for the device may grow to this size.
    #[must_use]
    pub fn with_max_device_memblock_size(mut self, size: u64) -> Self {
        self.device = self.device.max(adjusted(size, "Device"));
        self
    }

    /// Blocks for the host may grow to this size.
    #[must_use]
    pub fn with_max_host_memblock_size(mut self, size: u64) -> Self {
        self.host = self.host.max(adjusted(size, "Host"));
        self
    }

    /// The largest block that may be made.
    #[cfg(feature = "vulkan")]
    pub(crate) fn largest(&self) -> u64 {
        self.device.max(self.host)
    }
}

impl Default for AllocationSizes {
    fn default() -> Self {
        Self { device: LARGEST, host: 64 * MIB }
    }
}

/// The size in the allowed range, rounded up to whole steps.
fn adjusted(size: u64, kind: &str) -> u64 {
    let clamped = size.clamp(STEP, LARGEST);
    let rounded = clamped.next_multiple_of(STEP);
    if rounded != clamped {
        log::warn!("{kind} memory block size must be a multiple of 4MB, taking {}MB", rounded / MIB);
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
        assert_eq!(sizes.device, 8 * MIB);
        assert_eq!(sizes.with_max_host_memblock_size(64 * MIB).host, 64 * MIB);
    }
}
