//! Descriptor sets that live for one recording: allocated one by one, freed with their pool.
//!
//! [`TransientSets`] combines many `VkDescriptorPool`s. Sets come from the current pool until it is full; then the next
//! one is opened. [`flush`](TransientSets::flush) assigns the allocated sets to a recording, and
//! [`collect`](TransientSets::collect) resets the pools of completed recordings, with one call for each.
//!
//! - `typical_counts.rs`: the size of the next pool.
//! - `list.rs`: the state of each pool. Safe code, no driver calls.
//! - `allocate.rs`, `recycle.rs`: the driver calls.

mod allocate;
mod create_info;
mod error;
mod list;
mod recycle;
mod statistics;
#[cfg(test)]
mod tests;
mod typical_counts;

use std::cell::Cell;
use std::marker::PhantomData;

use ash::vk;

use super::counts::DescriptorCounts;
use super::device::DescriptorDevice;
use super::features::DescriptorFeatures;
use super::pool::{CreateDescriptorPoolError, DescriptorPool, DescriptorPoolInfo};
use sublet_engines::RegionId;

pub use create_info::{LargeSets, PoolSizing, PoolTemplateError, TransientSetsCreateInfo};
pub use error::{CollectPoolsError, CreateTransientSetsError, TransientError};
pub use statistics::TransientSetsStatistics;

use list::List;
use typical_counts::{Bounds, Size, TypicalCounts};

/// The maximum number of pools, independent of the create-info. It is far above the limits of drivers, so that an
/// absurd number is an error and does not exhaust the memory.
const MOST_POOLS: usize = 1 << 20;

/// Pools for sets of layouts without update-after-bind.
const PLAIN: usize = 0;
const AFTER_BIND: usize = 1;

/// Allocates descriptor sets that live for one recording. Each recording thread has its own value: it is [`Send`], not
/// [`Sync`], and has no lock.
///
/// A set is not freed: it ends when its pool is reset, after the recording is done. Use another allocator for sets that
/// live longer.
///
/// The library counts the remaining sets and descriptors of a pool itself. It does not rely on the driver to report a
/// full pool: many do not, and grow the pool instead. If a driver reports a full pool although the counts leave room,
/// the library takes another pool.
///
/// Pools are created until there are enough for the recordings in flight; after that, the number stays constant.
///
/// # Complexity
/// [`allocate`](Self::allocate) is O(1) while the pool has room: one comparison of counts, and the driver call. It
/// allocates no host memory. When the pool is full, it is O(free pools).
///
/// ```
/// use ash::vk;
/// use sublet::{retire::Clock, sim};
/// use sublet_descriptors::*;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-h200").unwrap());
/// // SAFETY: instance and device are live, and outlive everything that is created from the value.
/// let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// let binding = vk::DescriptorSetLayoutBinding::default()
///     .descriptor_type(vk::DescriptorType::UNIFORM_BUFFER).descriptor_count(1).stage_flags(vk::ShaderStageFlags::COMPUTE);
/// let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(std::slice::from_ref(&binding));
/// // SAFETY: the create-info is valid.
/// let handle = unsafe { gpu.device().create_descriptor_set_layout(&info, None) }?;
/// // SAFETY: the layout was made from it.
/// let layout = unsafe { SetLayout::new(handle, &info) }?;
///
/// let clock = Clock::new();
/// let timeline = clock.add_timeline()?;
/// let mut sets = TransientSets::new(&device, &TransientSetsCreateInfo::default())?;
/// for frame in 0..4 {
///     // vkWaitForFences for the slot's fence goes here.
///     let ticket = clock.begin_frame(timeline, frame % 2);
///     sets.collect(&clock)?;
///     for _draw in 0..100 {
///         // SAFETY: the layout is live; the set is used in this frame only.
///         let _set = unsafe { sets.allocate(&layout) }?;
///     }
///     sets.flush(ticket)?;
///     clock.end_frame(ticket)?; // and vkQueueSubmit
/// }
/// assert_eq!(sets.statistics().sets_allocated, 400);
///
/// // SAFETY: the device is idle.
/// unsafe { sets.destroy() };
/// # unsafe { gpu.device().destroy_descriptor_set_layout(handle, None) };
/// # gpu.assert_silent();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Threads cannot share a value:
///
/// ```compile_fail
/// fn shared<T: Sync>() {}
/// shared::<sublet_descriptors::TransientSets>();
/// ```
#[derive(Debug)]
#[doc(alias = "DynamicDescriptorSetAllocator")]
#[doc(alias = "DescriptorPoolManager")]
#[doc(alias = "DescriptorSetAllocator")]
pub struct TransientSets {
    device: DescriptorDevice,
    info: TransientSetsCreateInfo,
    bounds: Bounds,
    /// Indexed by [`PLAIN`] and [`AFTER_BIND`].
    lists: [List; 2],
    /// The list for layouts without update-after-bind: [`PLAIN`], or [`AFTER_BIND`] if all pools have
    /// update-after-bind.
    plain: usize,
    pools_created: u64,
    peak_pools: usize,
    refusals: u64,
    /// Makes the value `!Sync`, since it has no lock.
    not_sync: PhantomData<Cell<()>>,
}

impl TransientSets {
    /// Creates the initial pools, if the create-info has counts; otherwise the first set creates the first pool.
    ///
    /// # Errors
    /// [`CreateTransientSetsError`] if the device has neither Vulkan 1.1 nor `VK_KHR_maintenance1`, the create-info is
    /// inconsistent, or the driver fails to create the pools. Nothing is left behind.
    pub fn new(
        device: &DescriptorDevice,
        info: &TransientSetsCreateInfo,
    ) -> Result<Self, CreateTransientSetsError> {
        let missing = DescriptorFeatures::MAINTENANCE1 - device.features();
        if !missing.is_empty() {
            return Err(CreateTransientSetsError::Unsupported { missing });
        }
        if info.sets_per_pool == 0 || info.max_sets_per_pool == 0 {
            return Err(CreateTransientSetsError::NoSets);
        }
        let (min_pools, max_pools) = (info.min_pools, info.max_pools.min(MOST_POOLS));
        if min_pools > max_pools || max_pools == 0 {
            return Err(CreateTransientSetsError::MinPools { min_pools, max_pools });
        }
        let bounds = Bounds {
            sets: info.sets_per_pool,
            max_sets: info.max_sets_per_pool.max(info.sets_per_pool),
            template: Some(info.counts).filter(|counts| !counts.is_zero()),
            shared: info.share_pools,
        };
        let after_bind = info.flags.contains(vk::DescriptorPoolCreateFlags::UPDATE_AFTER_BIND);
        let mut sets = Self {
            device: device.clone(),
            info: TransientSetsCreateInfo { max_pools, ..info.clone() },
            bounds,
            lists: [List::new(TypicalCounts::default()), List::new(TypicalCounts::default())],
            plain: if after_bind { AFTER_BIND } else { PLAIN },
            pools_created: 0,
            peak_pools: 0,
            refusals: 0,
            not_sync: PhantomData,
        };
        // An error drops the value, which destroys its unused pools.
        sets.make_free(min_pools).map_err(|source| CreateTransientSetsError::Pool { source })?;
        Ok(sets)
    }

    /// Ensures that this many pools are free, if their size is known from the create-info or from earlier recordings.
    ///
    /// # Errors
    /// [`TransientError::TooManyPools`] if that exceeds [`max_pools`](TransientSetsCreateInfo::max_pools): nothing is
    /// created. [`TransientError::Pool`] if the driver fails: pools that were created before stay. If pools are in use,
    /// the limit may leave fewer free pools.
    pub fn reserve(&mut self, free_pools: usize) -> Result<(), TransientError> {
        let max_pools = self.info.max_pools;
        if free_pools > max_pools {
            return Err(TransientError::TooManyPools { asked: free_pools, max_pools });
        }
        self.make_free(free_pools).map_err(|source| TransientError::Pool { source })
    }

    fn make_free(&mut self, free_pools: usize) -> Result<(), CreateDescriptorPoolError> {
        let which = self.plain;
        while self.lists[which].free.len() < free_pools && self.pools() < self.info.max_pools {
            let size = self.next_size(which, &DescriptorCounts::new());
            if size.counts.is_zero() {
                break;
            }
            let region = self.create_pool(which, &size)?;
            self.lists[which].free.push(region);
        }
        Ok(())
    }

    /// Returns the size of the next pool of a list.
    fn next_size(&mut self, which: usize, need: &DescriptorCounts) -> Size {
        let list = &mut self.lists[which];
        match self.bounds.template {
            Some(counts) if self.info.sizing == PoolSizing::Fixed => {
                Size { grants: self.info.sets_per_pool, counts: counts.max(need) }
            }
            _ => {
                let used = list.used();
                list.typical.pool_size(&self.bounds, &used, need)
            }
        }
    }

    /// Creates a pool, which is in no place of its list yet.
    fn create_pool(&mut self, which: usize, size: &Size) -> Result<RegionId, CreateDescriptorPoolError> {
        let info = DescriptorPoolInfo {
            max_sets: size.grants,
            counts: size.counts,
            flags: self.flags_of(which),
            mutable_types: &self.info.mutable_types,
            name: &self.info.name,
            ordinal: self.pools_created + 1,
        };
        let pool = DescriptorPool::create(&self.device, &info)?;
        self.pools_created += 1;
        let region = self.lists[which].insert(pool);
        self.peak_pools = self.peak_pools.max(self.pools());
        Ok(region)
    }

    /// Returns the flags of a list's pools.
    fn flags_of(&self, which: usize) -> vk::DescriptorPoolCreateFlags {
        let more = match which {
            AFTER_BIND => vk::DescriptorPoolCreateFlags::UPDATE_AFTER_BIND,
            _ => vk::DescriptorPoolCreateFlags::empty(),
        };
        self.info.flags | more
    }

    fn pools(&self) -> usize {
        self.lists.iter().map(|list| list.len).sum()
    }

    #[cfg(test)]
    fn validate(&self) {
        self.lists.iter().for_each(List::validate);
    }
}
