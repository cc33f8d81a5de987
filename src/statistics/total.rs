//! Detailed statistics by memory type, by heap, and in total.

use super::DetailedStatistics;
use sublet_engines::cast::index;

/// [`DetailedStatistics`] for each memory type, for each heap, and in total. Like VMA's `VmaTotalStatistics`, but each
/// list has only the types or heaps of the device. Returned by
/// [`calculate_statistics`](crate::Allocator::calculate_statistics) and by
/// [`MemoryMap::statistics`](crate::MemoryMap::statistics).
///
/// ```
/// # use sublet::*;
/// # let (gpu, allocator) = sublet::doc_example();
/// let all: TotalStatistics = allocator.calculate_statistics();
/// assert_eq!((all.memory_types.len(), all.memory_heaps.len()), (1, 1));
/// assert_eq!(all.total, all.memory_heaps[0]);
/// # Ok::<(), CreateAllocatorError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TotalStatistics {
    /// Indexed by memory type, including pools.
    pub memory_types: Vec<DetailedStatistics>,
    /// Indexed by heap.
    pub memory_heaps: Vec<DetailedStatistics>,
    /// The total.
    pub total: DetailedStatistics,
}

impl TotalStatistics {
    /// Returns empty statistics for a device with this many memory types and heaps.
    #[must_use]
    pub fn new(memory_types: usize, memory_heaps: usize) -> Self {
        Self {
            memory_types: vec![DetailedStatistics::default(); memory_types],
            memory_heaps: vec![DetailedStatistics::default(); memory_heaps],
            total: DetailedStatistics::default(),
        }
    }

    /// Adds the statistics of the blocks of a memory type or pool.
    ///
    /// # Panics
    /// If the memory type or the heap is out of range.
    pub fn add(&mut self, memory_type: u32, heap: u32, statistics: &DetailedStatistics) {
        self.memory_types[index(memory_type)].add(statistics);
        self.memory_heaps[index(heap)].add(statistics);
        self.total.add(statistics);
    }
}
