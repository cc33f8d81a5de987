//! Totals of blocks and allocations, in VMA's terms.

mod fit;
mod memory_map;
mod total;

pub use fit::{Fit, FitPlace};
pub use memory_map::{AllocationEntry, BlockMap, ChunkMap, DedicatedMap, MemoryMap, VectorMap};
pub use total::TotalStatistics;

use sublet_engines::Sizes;

/// The number and size of blocks and allocations. Cheap to read, because the figures are kept up to date.
///
/// # Examples
/// ```
/// use sublet::Statistics;
///
/// let mut all = Statistics { block_count: 1, block_bytes: 1000, allocation_count: 3, allocation_bytes: 600 };
/// all.add(&Statistics { block_count: 1, block_bytes: 500, ..Statistics::default() });
/// assert_eq!((all.block_count, all.block_bytes, all.unused_bytes()), (2, 1500, 900));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Statistics {
    /// The number of blocks: `VkDeviceMemory` objects, or virtual blocks.
    pub block_count: u64,
    /// The size of all blocks in bytes. For virtual blocks: units.
    pub block_bytes: u64,
    /// The number of allocations. A dedicated allocation counts as a block and as an allocation.
    pub allocation_count: u64,
    /// The size of all allocations in bytes, including rounding.
    pub allocation_bytes: u64,
}

impl Statistics {
    /// Adds the figures of `other`.
    pub const fn add(&mut self, other: &Self) {
        self.block_count += other.block_count;
        self.block_bytes += other.block_bytes;
        self.allocation_count += other.allocation_count;
        self.allocation_bytes += other.allocation_bytes;
    }

    /// Returns the bytes in blocks that are not allocated.
    #[must_use]
    pub const fn unused_bytes(&self) -> u64 {
        self.block_bytes - self.allocation_bytes
    }
}

/// [`Statistics`], and the extreme sizes of allocations and unused ranges. Visits every chunk.
///
/// # Examples
/// ```
/// use sublet::DetailedStatistics;
///
/// let mut block = DetailedStatistics::default();
/// block.add_block(100);
/// block.add_allocation(60);
/// block.add_allocation(10);
/// block.add_unused_range(30);
/// assert_eq!((block.allocation_size_min, block.allocation_size_max), (10, 60));
/// assert_eq!((block.unused_range_count, block.unused_range_size_max), (1, 30));
/// assert_eq!(block.statistics.unused_bytes(), 30);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DetailedStatistics {
    /// The totals.
    pub statistics: Statistics,
    /// The number of maximal unused ranges.
    pub unused_range_count: u64,
    /// The size of the smallest allocation; `u64::MAX` if there is none.
    pub allocation_size_min: u64,
    /// The size of the largest allocation; 0 if there is none.
    pub allocation_size_max: u64,
    /// The size of the smallest unused range; `u64::MAX` if there is none.
    pub unused_range_size_min: u64,
    /// The size of the largest unused range; 0 if there is none.
    pub unused_range_size_max: u64,
}

impl Default for DetailedStatistics {
    /// Returns the statistics of zero blocks.
    fn default() -> Self {
        Self {
            statistics: Statistics::default(),
            unused_range_count: 0,
            allocation_size_min: u64::MAX,
            allocation_size_max: 0,
            unused_range_size_min: u64::MAX,
            unused_range_size_max: 0,
        }
    }
}

impl DetailedStatistics {
    pub(crate) fn from_sizes(statistics: Statistics, sizes: Sizes) -> Self {
        Self {
            statistics,
            unused_range_count: sizes.free_count,
            allocation_size_min: sizes.used_min,
            allocation_size_max: sizes.used_max,
            unused_range_size_min: sizes.free_min,
            unused_range_size_max: sizes.free_max,
        }
    }

    /// Adds a block. Its content must be added separately.
    pub const fn add_block(&mut self, bytes: u64) {
        self.statistics.block_count += 1;
        self.statistics.block_bytes += bytes;
    }

    /// Adds an allocation.
    pub fn add_allocation(&mut self, bytes: u64) {
        self.statistics.allocation_count += 1;
        self.statistics.allocation_bytes += bytes;
        self.allocation_size_min = self.allocation_size_min.min(bytes);
        self.allocation_size_max = self.allocation_size_max.max(bytes);
    }

    /// Adds an unused range.
    pub fn add_unused_range(&mut self, bytes: u64) {
        self.unused_range_count += 1;
        self.unused_range_size_min = self.unused_range_size_min.min(bytes);
        self.unused_range_size_max = self.unused_range_size_max.max(bytes);
    }

    /// Adds the figures of `other`.
    pub fn add(&mut self, other: &Self) {
        self.statistics.add(&other.statistics);
        self.unused_range_count += other.unused_range_count;
        self.allocation_size_min = self.allocation_size_min.min(other.allocation_size_min);
        self.allocation_size_max = self.allocation_size_max.max(other.allocation_size_max);
        self.unused_range_size_min = self.unused_range_size_min.min(other.unused_range_size_min);
        self.unused_range_size_max = self.unused_range_size_max.max(other.unused_range_size_max);
    }

    /// Adds a dedicated allocation, which is also a block.
    pub fn add_dedicated(&mut self, bytes: u64) {
        self.add_block(bytes);
        self.add_allocation(bytes);
    }

    /// Returns the statistics of one block. `chunks` has the size of each chunk, and true if the chunk is allocated.
    pub fn of_block(bytes: u64, chunks: impl IntoIterator<Item = (u64, bool)>) -> Self {
        let mut all = Self::default();
        all.add_block(bytes);
        for (bytes, is_used) in chunks {
            if is_used {
                all.add_allocation(bytes);
            } else {
                all.add_unused_range(bytes);
            }
        }
        all
    }

    /// Returns the statistics of the blocks and the dedicated allocations of a memory type or pool.
    pub fn of_vector(
        blocks: impl IntoIterator<Item = Self>,
        dedicated: impl IntoIterator<Item = u64>,
    ) -> Self {
        let mut all = Self::default();
        blocks.into_iter().for_each(|block| all.add(&block));
        dedicated.into_iter().for_each(|bytes| all.add_dedicated(bytes));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::DetailedStatistics;

    fn of(allocations: &[u64], unused: &[u64]) -> DetailedStatistics {
        let mut all = DetailedStatistics::default();
        all.add_block(allocations.iter().chain(unused).sum());
        allocations.iter().for_each(|&bytes| all.add_allocation(bytes));
        unused.iter().for_each(|&bytes| all.add_unused_range(bytes));
        all
    }

    #[test]
    fn merged_is_counted_together() {
        let mut merged = of(&[5, 9], &[3]);
        merged.add(&of(&[2], &[8, 1]));
        let mut together = of(&[5, 9, 2], &[3, 8, 1]);
        assert_eq!(merged.statistics.unused_bytes(), 12);
        together.statistics.block_count = 2;
        assert_eq!(merged, together);
    }

    #[test]
    fn nothing_changes_nothing() {
        let mut some = of(&[5, 9], &[3]);
        some.add(&DetailedStatistics::default());
        assert_eq!(some, of(&[5, 9], &[3]));
        let mut none = DetailedStatistics::default();
        none.add(&some);
        assert_eq!(none, some);
    }
}
