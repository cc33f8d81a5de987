//! What the allocator holds, in figures.
#![forbid(unsafe_code)]

use super::Allocator;
use crate::base::cast::narrow;
use crate::base::sync::Threading;
use crate::blocks::{BlockVector, Totals, Visited};
use crate::device::Device;
use crate::error::ForeignHandle;
use crate::pool::Pool;
use crate::statistics::{DetailedStatistics, Statistics};

/// What one heap holds and may hold.
///
/// ```
/// # use sublet::*;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
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

impl<T: Threading> Allocator<T> {
    pub(crate) fn device(&self) -> &Device {
        &self.inner.context.device
    }

    pub(crate) fn has_maintenance5(&self) -> bool {
        self.inner.maintenance5
    }

    /// The memory types and heaps of the device; a heap's size is the program's limit on it where that is lower.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// let info = AllocatorCreateInfo { heap_size_limits: &[1 << 20], ..AllocatorCreateInfo::for_gpu(&gpu) };
    /// # let allocator = unsafe { Allocator::new(&info) }?;
    /// assert_eq!(allocator.memory_properties().memory_heaps[0].size, 1 << 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// let properties = allocator.physical_device_properties();
    /// assert_eq!(properties.device_type, vk::PhysicalDeviceType::CPU);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn physical_device_properties(&self) -> &ash::vk::PhysicalDeviceProperties {
        &self.inner.context.device.properties
    }

    /// Usage and budget of every heap, cheap enough for every frame: a short lock for each memory type, pool and shard.
    ///
    /// The driver is asked again only if this allocator took or gave back enough memory since; see
    /// [`Self::set_current_frame_index`].
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// for (heap, budget) in allocator.heap_budgets().iter().enumerate() {
    ///     println!("heap {heap}: {} of {} bytes in use", budget.usage, budget.budget);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn heap_budgets(&self) -> Vec<HeapBudget> {
        let context = &self.inner.context;
        context.budgets.refresh_if_stale(&context.device);
        let mut heaps = vec![HeapBudget::default(); context.device.memory_heaps().len()];
        self.for_each_vector(|memory_type, vector| {
            let heap = crate::base::cast::index(context.heap_of(memory_type));
            heaps[heap].statistics.add(&vector.totals().into());
        });
        for (at, heap) in heaps.iter_mut().enumerate() {
            let level = context.budgets.level(narrow(at));
            heap.usage = level.usage;
            heap.budget = level.budget;
        }
        heaps
    }

    /// Tells the allocator that a new frame begins: budgets are fetched from the driver. Frames are a program's way to
    /// have fresh figures once in a while, and never in the middle of an allocation. That is a call of the driver, which takes
    /// its time with some of them; without VK_EXT_memory_budget nothing is asked.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// for frame in 0..3 {
    ///     allocator.set_current_frame_index(frame);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_current_frame_index(&self, frame_index: u32) {
        tracing::trace!(target: "sublet::budget", frame_index, "budgets fetched");
        self.inner.context.budgets.refresh(&self.inner.context.device);
    }

    /// Sums for each memory type, pools included. Quick: nothing is walked.
    ///
    /// ```
    /// # use sublet::*;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// assert_eq!(allocator.memory_type_statistics()[0], Statistics::default());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn memory_type_statistics(&self) -> Vec<Statistics> {
        let mut types = vec![Statistics::default(); self.inner.defaults.len()];
        self.for_each_vector(|memory_type, vector| {
            types[crate::base::cast::index(memory_type)].add(&vector.totals().into());
        });
        types
    }

    /// Sums over everything, and the extremes of sizes: walks every block.
    ///
    /// # Complexity
    /// O(allocations). The locks of a memory type or pool, and of all its shards, are held while its blocks are walked: other
    /// threads wait. For tools, and not for every frame.
    ///
    /// ```
    /// # use sublet::*;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// assert_eq!(allocator.calculate_statistics().statistics.allocation_count, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn calculate_statistics(&self) -> DetailedStatistics {
        let mut all = DetailedStatistics::default();
        self.for_each_vector(|_, vector| walk(vector, &mut all));
        all
    }

    /// Sums over a pool. Quick: nothing is walked.
    ///
    /// # Errors
    /// [`ForeignHandle`] if the pool is another allocator's.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// # let pool = allocator.create_pool(&PoolCreateInfo { block_size: 1 << 20, ..PoolCreateInfo::new(0) })?;
    /// assert_eq!(allocator.pool_statistics(&pool)?.allocation_count, 0);
    /// # unsafe { allocator.destroy_pool(pool) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pool_statistics(&self, pool: &Pool) -> Result<Statistics, ForeignHandle> {
        Ok(self.pool_vector(pool)?.totals().into())
    }

    /// Sums over a pool, and the extremes of sizes: walks every block of it.
    ///
    /// # Errors
    /// [`ForeignHandle`] if the pool is another allocator's.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// # let pool = allocator.create_pool(&PoolCreateInfo { block_size: 1 << 20, ..PoolCreateInfo::new(0) })?;
    /// assert_eq!(allocator.calculate_pool_statistics(&pool)?.statistics.allocation_count, 0);
    /// # unsafe { allocator.destroy_pool(pool) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn calculate_pool_statistics(&self, pool: &Pool) -> Result<DetailedStatistics, ForeignHandle> {
        let mut all = DetailedStatistics::default();
        walk(self.pool_vector(pool)?, &mut all);
        Ok(all)
    }

    fn for_each_vector(&self, mut visit: impl FnMut(u32, &BlockVector<T>)) {
        for vector in self.inner.vectors() {
            if let Some(config) = vector.config(None) {
                visit(config.memory_type, vector);
            }
        }
    }
}

fn walk<T: Threading>(vector: &BlockVector<T>, all: &mut DetailedStatistics) {
    vector.visit(&mut |visited| match visited {
        Visited::Block { size } => all.add_block(size),
        Visited::Chunk { chunk, .. } if chunk.used.is_some() => all.add_allocation(chunk.size),
        Visited::Chunk { chunk, .. } => all.add_unused_range(chunk.size),
        Visited::Dedicated { size, .. } => {
            all.add_block(size);
            all.add_allocation(size);
        }
    });
}
