//! Statistics and budgets of the allocator.

use super::Allocator;
use super::recorded_call::RecordedCall;
use crate::blocks::{MemoryBlockVector, VectorTotals, Visited, emit_all_levels};
use crate::device::LiveDevice;
use crate::error::ForeignHandle;
use crate::pool::Pool;
use crate::statistics::{DetailedStatistics, Statistics, TotalStatistics};
use sublet_engines::cast::{index, narrow};

/// Usage and budget of one heap.
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
    /// The memory of this allocator in the heap.
    pub statistics: Statistics,
    /// Bytes in use: by the whole program if VK_EXT_memory_budget is enabled, else by this allocator.
    pub usage: u64,
    /// Bytes that may be in use: the driver's figure, else 80 % of the heap.
    pub budget: u64,
}

impl From<VectorTotals> for Statistics {
    fn from(totals: VectorTotals) -> Self {
        Self {
            block_count: totals.block_count,
            block_bytes: totals.block_bytes,
            allocation_count: totals.allocation_count,
            allocation_bytes: totals.allocation_bytes,
        }
    }
}

impl Allocator {
    pub(crate) fn device(&self) -> &LiveDevice {
        &self.inner.context.device
    }

    /// The allocator's number, unique within this process.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.inner.id
    }

    /// Returns true if the memory type exists and this allocator may use it.
    #[must_use]
    pub fn is_type_allowed(&self, memory_type: u32) -> bool {
        1_u32.checked_shl(memory_type).is_some_and(|bit| self.inner.allowed_types & bit != 0)
    }

    pub(crate) fn has_maintenance5(&self) -> bool {
        self.inner.maintenance5
    }

    /// The memory types and heaps of the device. Heap sizes are reduced to the program's limits.
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

    /// The device that the allocator was created for.
    pub fn device_handle(&self) -> ash::vk::Device {
        self.inner.context.device.device
    }

    /// The properties of the device, limits included.
    pub fn physical_device_properties(&self) -> &ash::vk::PhysicalDeviceProperties {
        &self.inner.context.device.properties
    }

    /// The largest size of a buffer: `maxBufferSize` of Vulkan 1.3 or VK_KHR_maintenance4, `u64::MAX` if unknown.
    pub fn max_buffer_size(&self) -> u64 {
        self.inner.context.device.max_buffer_size
    }

    /// The largest recommended size of one `VkDeviceMemory`: `maxMemoryAllocationSize` of Vulkan 1.1, `u64::MAX` if
    /// unknown. Blocks never exceed it. A single larger request goes to the driver, which [may grant
    /// it](crate::guide::limits#more-than-one-allocation-may-have).
    pub fn max_memory_allocation_size(&self) -> u64 {
        self.inner.context.device.max_memory_size
    }

    /// Usage and budget of every heap. Cheap enough for every frame: takes two short locks for each memory type and
    /// pool that has or had memory, and one for each shard.
    ///
    /// Queries the driver only if this allocator allocated or freed enough memory since the last query; see
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

    /// Marks the start of a new frame, and fetches budgets from the driver. A program that calls it once per frame has
    /// fresh figures, and allocations seldom need to fetch them. The call is slow on some drivers. Without
    /// VK_EXT_memory_budget nothing is fetched.
    pub fn set_current_frame_index(&self, frame_index: u32) {
        let context = &self.inner.context;
        context.budgets.refresh(&context.device);
        tracing::trace!(name: "frame_begun", target: "sublet::budget", frame_index, "budgets fetched");
        emit_all_levels(context);
        self.record(RecordedCall::Frame(frame_index));
    }

    /// Sums for each memory type, pools included. Does not visit blocks.
    #[must_use]
    pub fn memory_type_statistics(&self) -> Vec<Statistics> {
        let mut types = vec![Statistics::default(); self.inner.defaults.len()];
        self.for_each_total(|memory_type, totals| types[index(memory_type)].add(&totals));
        types
    }

    /// Sums for each heap. Does not visit blocks. [`Self::heap_budgets`] also has usage and budget.
    #[must_use]
    pub fn heap_statistics(&self) -> Vec<Statistics> {
        let context = &self.inner.context;
        let mut heaps = vec![Statistics::default(); context.device.memory_heaps().len()];
        self.for_each_total(|memory_type, totals| heaps[index(context.heap_of(memory_type))].add(&totals));
        heaps
    }

    /// Sums over everything. Does not visit blocks.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let mut all = Statistics::default();
        self.for_each_total(|_, totals| all.add(&totals));
        all
    }

    /// Sums over the default vector of a memory type, without its pools; `None` if there is no such type. Does not
    /// visit blocks.
    #[must_use]
    pub fn default_statistics(&self, memory_type_index: u32) -> Option<Statistics> {
        let default = self.inner.defaults.get(index(memory_type_index))?;
        Some(default.vector.totals().into())
    }

    /// Sums by memory type, by heap and in total, with the extremes of sizes. Visits every block.
    ///
    /// # Complexity
    /// O(chunks). Holds the locks of a memory type or pool and all its shards while its blocks are visited, so other
    /// threads wait. Meant for tools, not for every frame.
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

    /// [`Self::default_statistics`] with the extremes of sizes. Visits every block of the default vector.
    #[must_use]
    pub fn calculate_default_statistics(&self, memory_type_index: u32) -> Option<DetailedStatistics> {
        let default = self.inner.defaults.get(index(memory_type_index))?;
        measure(&default.vector).map(|(_, statistics)| statistics)
    }

    /// Sums over a pool. Does not visit blocks.
    ///
    /// # Errors
    /// [`ForeignHandle`] if the pool belongs to another allocator.
    pub fn pool_statistics(&self, pool: &Pool) -> Result<Statistics, ForeignHandle> {
        Ok(self.pool_vector(pool)?.totals().into())
    }

    /// Sums over a pool, with the extremes of sizes. Visits every block of it.
    ///
    /// # Errors
    /// [`ForeignHandle`] if the pool belongs to another allocator.
    pub fn calculate_pool_statistics(&self, pool: &Pool) -> Result<DetailedStatistics, ForeignHandle> {
        measure(self.pool_vector(pool)?).map(|(_, statistics)| statistics).ok_or(ForeignHandle::Pool)
    }

    /// Calls `visit` with the sums over each vector, and its memory type.
    #[inline(always)]
    fn for_each_total(&self, mut visit: impl FnMut(u32, Statistics)) {
        // `for_each` avoids a check for the end of the first part in each iteration of a loop.
        self.inner.vectors().for_each(|vector| {
            if let Some((memory_type, totals)) = vector.totals_and_type() {
                visit(memory_type, totals.into());
            }
        });
    }
}

/// Sums over a vector, and its memory type; `None` if it is not in use.
fn measure(vector: &MemoryBlockVector) -> Option<(u32, DetailedStatistics)> {
    let Some((memory_type, totals, sizes)) = vector.measure() else { return walk(vector) };
    Some((memory_type, DetailedStatistics::from_sizes(totals.into(), sizes)))
}

/// [`measure`] for a vector with shards, chunk by chunk.
fn walk(vector: &MemoryBlockVector) -> Option<(u32, DetailedStatistics)> {
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
