//! What the allocator holds, in figures.
#![forbid(unsafe_code)]

use super::Allocator;
use super::recorded_call::RecordedCall;
use crate::base::cast::{index, narrow};
use crate::blocks::{BlockVector, Totals, Visited, emit_all_levels};
use crate::device::Device;
use crate::error::ForeignHandle;
use crate::pool::Pool;
use crate::statistics::{DetailedStatistics, Statistics, TotalStatistics};

/// What one heap holds and may hold.
///
/// ```
/// # use sublet::*;
/// # let (gpu, allocator) = sublet::doc_example();
/// let budget = allocator.heap_budgets()[0];
/// assert!(budget.usage <= budget.budget);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct HeapBudget {
    /// What this allocator has in the heap.
    pub statistics: Statistics,
    /// Bytes in use: by the whole program if VK_EXT_memory_budget is enabled, else by this allocator.
    pub usage: u64,
    /// Bytes that may be in use: what the driver says, else 80 % of the heap.
    pub budget: u64,
}

impl From<Totals> for Statistics {
    fn from(totals: Totals) -> Self {
        Self {
            block_count: totals.block_count,
            block_bytes: totals.block_bytes,
            allocation_count: totals.allocation_count,
            allocation_bytes: totals.allocation_bytes,
        }
    }
}

impl Allocator {
    pub(crate) fn device(&self) -> &Device {
        &self.inner.context.device
    }

    /// The allocator's number, which no other allocator of this process has or had.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.inner.id
    }

    /// Whether allocations may be in a memory type at all: it is there, and the allocator uses types with its flags.
    #[must_use]
    pub fn is_type_allowed(&self, memory_type: u32) -> bool {
        1_u32.checked_shl(memory_type).is_some_and(|bit| self.inner.allowed_types & bit != 0)
    }

    pub(crate) fn has_maintenance5(&self) -> bool {
        self.inner.maintenance5
    }

    /// The memory types and heaps of the device; a heap's size is the program's limit on it where that is lower.
    pub fn memory_properties(&self) -> ash::vk::PhysicalDeviceMemoryProperties {
        let context = &self.inner.context;
        let mut properties = context.device.memory;
        for (at, heap) in
            properties.memory_heaps.iter_mut().take(context.device.memory_heaps().len()).enumerate()
        {
            heap.size = context.budgets.heap_size(narrow(at));
        }
        properties
    }

    /// The properties of the device, limits included.
    pub fn physical_device_properties(&self) -> &ash::vk::PhysicalDeviceProperties {
        &self.inner.context.device.properties
    }

    /// The most bytes that a buffer may have: `maxBufferSize` of Vulkan 1.3 or VK_KHR_maintenance4, `u64::MAX` where
    /// the device does not say.
    pub fn max_buffer_size(&self) -> u64 {
        self.inner.context.device.max_buffer_size
    }

    /// The most bytes that one `VkDeviceMemory` should have: `maxMemoryAllocationSize` of Vulkan 1.1, `u64::MAX` where the
    /// device does not say. Blocks are no larger. A single request above it goes to the driver, which
    /// [may grant it](crate::guide::limits#more-than-one-allocation-may-have).
    pub fn max_memory_allocation_size(&self) -> u64 {
        self.inner.context.device.max_memory_size
    }

    /// Usage and budget of every heap, cheap enough for every frame: two short locks for each memory type and pool that
    /// has or had memory, and one for each shard.
    ///
    /// The driver is asked again only if this allocator took or gave back enough memory since; see
    /// [`Self::set_current_frame_index`].
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// for (heap, budget) in allocator.heap_budgets().iter().enumerate() {
    ///     println!("heap {heap}: {} of {} bytes in use", budget.usage, budget.budget);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    #[doc(alias = "GetBudget")]
    pub fn heap_budgets(&self) -> Vec<HeapBudget> {
        let context = &self.inner.context;
        context.budgets.refresh_if_stale(&context.device);
        emit_all_levels(context);
        let mut heaps = vec![HeapBudget::default(); context.device.memory_heaps().len()];
        self.for_each_total(|memory_type, totals| {
            heaps[index(context.heap_of(memory_type))].statistics.add(&totals);
        });
        for (at, heap) in heaps.iter_mut().enumerate() {
            let level = context.budgets.level(narrow(at));
            heap.usage = level.usage;
            heap.budget = level.budget;
        }
        heaps
    }

    /// Tells the allocator that a new frame begins: budgets are fetched from the driver. Frames are a program's way to
    /// have fresh figures once in a while, and never in the middle of an allocation. That is a call of the driver,
    /// which takes its time with some of them; without VK_EXT_memory_budget nothing is asked.
    pub fn set_current_frame_index(&self, frame_index: u32) {
        let context = &self.inner.context;
        context.budgets.refresh(&context.device);
        tracing::trace!(name: "frame_begun", target: "sublet::budget", frame_index, "budgets fetched");
        emit_all_levels(context);
        self.record(RecordedCall::Frame(frame_index));
    }

    /// Sums for each memory type, pools included. Quick: nothing is walked.
    #[must_use]
    pub fn memory_type_statistics(&self) -> Vec<Statistics> {
        let mut types = vec![Statistics::default(); self.inner.defaults.len()];
        self.for_each_total(|memory_type, totals| types[index(memory_type)].add(&totals));
        types
    }

    /// Sums for each heap. Quick: nothing is walked. [`Self::heap_budgets`] has them as well, with usage and budget.
    #[must_use]
    pub fn heap_statistics(&self) -> Vec<Statistics> {
        let context = &self.inner.context;
        let mut heaps = vec![Statistics::default(); context.device.memory_heaps().len()];
        self.for_each_total(|memory_type, totals| heaps[index(context.heap_of(memory_type))].add(&totals));
        heaps
    }

    /// Sums over everything. Quick: nothing is walked.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let mut all = Statistics::default();
        self.for_each_total(|_, totals| all.add(&totals));
        all
    }

    /// Sums over the default vector of a memory type, that is, without its pools; `None` if there is no such type.
    /// Quick: nothing is walked.
    #[must_use]
    pub fn default_statistics(&self, memory_type_index: u32) -> Option<Statistics> {
        let default = self.inner.defaults.get(index(memory_type_index))?;
        Some(default.vector.totals().into())
    }

    /// Sums over everything, by memory type, by heap and in all, and the extremes of sizes: walks every block.
    ///
    /// # Complexity
    /// O(chunks). The locks of a memory type or pool, and of all its shards, are held while its blocks are walked:
    /// other threads wait. For tools, and not for every frame.
    #[must_use]
    pub fn calculate_statistics(&self) -> TotalStatistics {
        let context = &self.inner.context;
        let mut all = TotalStatistics::new(self.inner.defaults.len(), context.device.memory_heaps().len());
        for vector in self.inner.vectors() {
            if let Some((memory_type, statistics)) = measure(vector) {
                all.add(memory_type, context.heap_of(memory_type), &statistics);
            }
        }
        all
    }

    /// As [`Self::default_statistics`], with the extremes of sizes: walks every block of the default vector.
    #[must_use]
    pub fn calculate_default_statistics(&self, memory_type_index: u32) -> Option<DetailedStatistics> {
        let default = self.inner.defaults.get(index(memory_type_index))?;
        measure(&default.vector).map(|(_, statistics)| statistics)
    }

    /// Sums over a pool. Quick: nothing is walked.
    ///
    /// # Errors
    /// [`ForeignHandle`] if the pool is another allocator's.
    pub fn pool_statistics(&self, pool: &Pool) -> Result<Statistics, ForeignHandle> {
        Ok(self.pool_vector(pool)?.totals().into())
    }

    /// Sums over a pool, and the extremes of sizes: walks every block of it.
    ///
    /// # Errors
    /// [`ForeignHandle`] if the pool is another allocator's.
    pub fn calculate_pool_statistics(&self, pool: &Pool) -> Result<DetailedStatistics, ForeignHandle> {
        measure(self.pool_vector(pool)?).map(|(_, statistics)| statistics).ok_or(ForeignHandle::Pool)
    }

    /// Calls `visit` with the sums over each vector, and its memory type.
    #[inline(always)]
    fn for_each_total(&self, mut visit: impl FnMut(u32, Statistics)) {
        // Not as a loop here, which would ask each time whether it is at a memory type or at a pool.
        self.inner.vectors().for_each(|vector| {
            if let Some((memory_type, totals)) = vector.totals_and_type() {
                visit(memory_type, totals.into());
            }
        });
    }
}

/// Sums over a vector, and its memory type; `None` if it is not in use.
fn measure(vector: &BlockVector) -> Option<(u32, DetailedStatistics)> {
    let Some((memory_type, totals, sizes)) = vector.measure() else { return walk(vector) };
    Some((memory_type, DetailedStatistics::from_sizes(totals.into(), sizes)))
}

/// [`measure`] of a vector that has shards, chunk by chunk.
fn walk(vector: &BlockVector) -> Option<(u32, DetailedStatistics)> {
    let mut memory_type = None;
    let mut all = DetailedStatistics::default();
    vector.visit(&mut |visited| match visited {
        Visited::Vector { config, .. } => memory_type = Some(config.memory_type),
        Visited::Block { size, .. } => all.add_block(size),
        Visited::Chunk { chunk, .. } if chunk.used.is_some() => all.add_allocation(chunk.size),
        Visited::Chunk { chunk, .. } => all.add_unused_range(chunk.size),
        Visited::Dedicated { size, .. } => all.add_dedicated(size),
    });
    memory_type.map(|memory_type| (memory_type, all))
}
