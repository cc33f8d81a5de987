//! Detailed statistics of everything at once, by memory type and by heap.

use super::DetailedStatistics;
use crate::base::cast::index;

/// [`DetailedStatistics`] for each memory type, for each heap, and in all: VMA's `VmaTotalStatistics`, as long as the
/// device has types and heaps. Made by [`calculate_statistics`](crate::Allocator::calculate_statistics) and by
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
    /// By memory type, pools included.
    pub memory_types: Vec<DetailedStatistics>,
    /// By heap.
    pub memory_heaps: Vec<DetailedStatistics>,
    /// In all.
    pub total: DetailedStatistics,
}

impl TotalStatistics {
    /// Of nothing, on a device with that many memory types and heaps.
    #[must_use]
    pub fn new(memory_types: usize, memory_heaps: usize) -> Self {
        Self {
            memory_types: vec![DetailedStatistics::default(); memory_types],
            memory_heaps: vec![DetailedStatistics::default(); memory_heaps],
            total: DetailedStatistics::default(),
        }
    }

    /// Adds what the blocks of a memory type, or of a pool, have.
    ///
    /// # Panics
    /// If there is no such memory type, or no such heap.
    pub fn add(&mut self, memory_type: u32, heap: u32, statistics: &DetailedStatistics) {
        self.memory_types[index(memory_type)].add(statistics);
        self.memory_heaps[index(heap)].add(statistics);
        self.total.add(statistics);
    }
}
