//! Statistics of an allocator.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use crate::guard::{answer, exported, given, misused};
use crate::types::{VmaAllocator, VmaBudget, VmaDetailedStatistics, VmaStatistics, VmaTotalStatistics};
use sublet::HeapBudget;
use sublet::{DetailedStatistics, Statistics};

/// Converts a count to the width that C has for it.
fn count(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl From<&Statistics> for VmaStatistics {
    fn from(known: &Statistics) -> Self {
        Self {
            block_count: count(known.block_count),
            allocation_count: count(known.allocation_count),
            block_bytes: known.block_bytes,
            allocation_bytes: known.allocation_bytes,
        }
    }
}

impl From<&DetailedStatistics> for VmaDetailedStatistics {
    fn from(known: &DetailedStatistics) -> Self {
        Self {
            statistics: VmaStatistics::from(&known.statistics),
            unused_range_count: count(known.unused_range_count),
            allocation_size_min: known.allocation_size_min,
            allocation_size_max: known.allocation_size_max,
            unused_range_size_min: known.unused_range_size_min,
            unused_range_size_max: known.unused_range_size_max,
        }
    }
}

impl From<&HeapBudget> for VmaBudget {
    fn from(known: &HeapBudget) -> Self {
        Self { statistics: VmaStatistics::from(&known.statistics), usage: known.usage, budget: known.budget }
    }
}

exported! {
    /// Walks the allocator and returns detailed statistics.
    fn vmaCalculateStatistics(allocator: VmaAllocator, statistics: *mut VmaTotalStatistics) {
        const NAME: &str = "vmaCalculateStatistics";
        // SAFETY: C1.
        let Some(object) = (unsafe { given(NAME, allocator) }) else { return };
        let none = VmaDetailedStatistics::from(&DetailedStatistics::default());
        let mut total = VmaTotalStatistics {
            memory_type: [none; vk::MAX_MEMORY_TYPES],
            memory_heap: [none; vk::MAX_MEMORY_HEAPS],
            total: none,
        };
        let known = object.front.allocator.calculate_statistics();
        total.total = VmaDetailedStatistics::from(&known.total);
        for (to, known) in total.memory_type.iter_mut().zip(&known.memory_types) {
            *to = VmaDetailedStatistics::from(known);
        }
        for (to, known) in total.memory_heap.iter_mut().zip(&known.memory_heaps) {
            *to = VmaDetailedStatistics::from(known);
        }
        // SAFETY: C3.
        unsafe { answer(statistics, total) };
    }

    /// Returns usage and budget of each heap.
    fn vmaGetHeapBudgets(allocator: VmaAllocator, budgets: *mut VmaBudget) {
        const NAME: &str = "vmaGetHeapBudgets";
        // SAFETY: C1.
        let Some(object) = (unsafe { given(NAME, allocator) }) else { return };
        if budgets.is_null() {
            return misused(NAME, "pBudgets must not be null");
        }
        for (at, known) in object.front.allocator.heap_budgets().iter().enumerate() {
            // SAFETY: C3: the list has an element for each heap.
            unsafe { budgets.wrapping_add(at).write(VmaBudget::from(known)) };
        }
    }
}
