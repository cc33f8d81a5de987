//! Statistics, with the field names of VMA's C structures.
#![allow(non_snake_case, reason = "the names that programs read")]

use ash::vk;

/// Counts and bytes.
#[derive(Debug, Copy, Clone, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Number of `VkDeviceMemory` objects.
    pub blockCount: u32,
    /// Number of allocations.
    pub allocationCount: u32,
    /// Bytes of the blocks.
    pub blockBytes: vk::DeviceSize,
    /// Bytes of the allocations.
    pub allocationBytes: vk::DeviceSize,
}

/// Counts, bytes, and extreme sizes.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct DetailedStatistics {
    /// Counts and bytes.
    pub statistics: Statistics,
    /// Number of free ranges.
    pub unusedRangeCount: u32,
    /// Bytes of the smallest allocation; `VK_WHOLE_SIZE` if there is none.
    pub allocationSizeMin: vk::DeviceSize,
    /// Bytes of the largest allocation; zero if there is none.
    pub allocationSizeMax: vk::DeviceSize,
    /// Bytes of the smallest free range; `VK_WHOLE_SIZE` if there is none.
    pub unusedRangeSizeMin: vk::DeviceSize,
    /// Bytes of the largest free range; zero if there is none.
    pub unusedRangeSizeMax: vk::DeviceSize,
}

/// Statistics by memory type, by heap and in total.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct TotalStatistics {
    /// By memory type.
    pub memoryType: [DetailedStatistics; vk::MAX_MEMORY_TYPES],
    /// By heap.
    pub memoryHeap: [DetailedStatistics; vk::MAX_MEMORY_HEAPS],
    /// The total.
    pub total: DetailedStatistics,
}

/// Usage and budget of a heap.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct Budget {
    /// The allocator's own share.
    pub statistics: Statistics,
    /// Bytes that the program uses.
    pub usage: vk::DeviceSize,
    /// Bytes that the program may use.
    pub budget: vk::DeviceSize,
}

/// Converts a count to the interface's width.
fn count(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl From<&sublet::Statistics> for Statistics {
    fn from(known: &sublet::Statistics) -> Self {
        Self {
            blockCount: count(known.block_count),
            allocationCount: count(known.allocation_count),
            blockBytes: known.block_bytes,
            allocationBytes: known.allocation_bytes,
        }
    }
}

impl From<&sublet::DetailedStatistics> for DetailedStatistics {
    fn from(known: &sublet::DetailedStatistics) -> Self {
        Self {
            statistics: Statistics::from(&known.statistics),
            unusedRangeCount: count(known.unused_range_count),
            allocationSizeMin: known.allocation_size_min,
            allocationSizeMax: known.allocation_size_max,
            unusedRangeSizeMin: known.unused_range_size_min,
            unusedRangeSizeMax: known.unused_range_size_max,
        }
    }
}

impl From<&sublet::TotalStatistics> for TotalStatistics {
    fn from(known: &sublet::TotalStatistics) -> Self {
        let none = DetailedStatistics::from(&sublet::DetailedStatistics::default());
        let mut all = Self {
            memoryType: [none; vk::MAX_MEMORY_TYPES],
            memoryHeap: [none; vk::MAX_MEMORY_HEAPS],
            total: DetailedStatistics::from(&known.total),
        };
        for (to, known) in all.memoryType.iter_mut().zip(&known.memory_types) {
            *to = known.into();
        }
        for (to, known) in all.memoryHeap.iter_mut().zip(&known.memory_heaps) {
            *to = known.into();
        }
        all
    }
}

impl From<&sublet::HeapBudget> for Budget {
    fn from(known: &sublet::HeapBudget) -> Self {
        Self { statistics: Statistics::from(&known.statistics), usage: known.usage, budget: known.budget }
    }
}
