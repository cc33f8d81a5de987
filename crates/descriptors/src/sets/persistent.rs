//! The public functions of the allocator for persistent sets.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use ash::vk;

use super::bucket::{BucketRegistry, BucketTable, SetRequest};
use super::error::AllocateDescriptorSetError;
use super::set::{
    DescriptorSet, DescriptorSetId, DescriptorSetLeak, ForeignDescriptorSet, StaleDescriptorSet,
};
use super::settings::{PersistentSetsCreateInfo, Sizing};
use super::statistics::PersistentSetsStatistics;
use crate::pool::DescriptorPool;
use crate::{DescriptorDevice, DescriptorPoolView, SetLayout};
use parking_lot::Mutex;
use sublet::retire::{ClockView, OtherClock, Retire, Ticket};
use sublet_engines::cast::index;

/// Allocates descriptor sets with arbitrary lifetimes, for example of materials, meshes or bindless tables.
///
/// All methods take `&self`. Use a cheaper allocator for sets that live for one frame.
///
/// # How sets are kept
///
/// Sets with the same counts of descriptors form a bucket, and the pools of a bucket contain no other sets. So the room
/// of any freed set suffices for any request. A freed set stays allocated in the driver and serves the next request for
/// its layout without a driver call. If another layout of the bucket needs the room, the allocator frees the set or
/// resets its pool before it creates another pool. Sets come from the lowest pool that has one, so that the highest
/// pools become empty. The allocator destroys an empty pool if the free sets of the other pools in the bucket are at
/// least a quarter of its capacity.
///
/// # Drivers that miscount
///
/// The allocator does not rely on the driver to report an exhausted pool: some drivers never do, and some count sets
/// but not descriptors. It counts the remaining capacity of each pool itself. Some drivers fail although a pool has
/// room. The allocator then takes no more sets from that pool until it is empty.
///
/// ```
#[doc = example_setup!()]
/// // SAFETY: the layout is live.
/// let set = unsafe { sets.allocate(&layout) }?;
///
/// // The last frame that uses the set:
/// let clock = sublet::retire::Clock::new();
/// let timeline = clock.add_timeline()?;
/// let frame = clock.begin_frame(timeline, 0);
/// // SAFETY: no other recording uses the set.
/// unsafe { sets.retire(frame, set) }?;
/// clock.end_frame(frame)?;
/// assert_eq!(sets.collect(&clock), Ok(0), "the frame is not done");
/// clock.idle();
/// assert_eq!(sets.collect(&clock), Ok(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "DescriptorSetAllocator")]
pub struct PersistentSets {
    pub(super) device: DescriptorDevice,
    pub(super) id: u32,
    pub(super) sizing: Sizing,
    pub(super) keep_idle: u32,
    pub(super) buckets: BucketTable,
    /// Protects the map from shapes to buckets; taken before the state of a bucket. Never held over a driver call.
    pub(super) registry: Mutex<BucketRegistry>,
    /// Protects the retired sets; no lock is taken under it. Never held over a driver call.
    waiting: Mutex<WaitingSets>,
    /// The number of existing pools.
    pub(super) pools: AtomicU32,
    /// The number of pools ever created, used for their names.
    pub(super) made: AtomicU64,
    /// The bucket at which the next search for idle pools starts.
    pub(super) hand: AtomicU32,
}

/// Sets that wait for their tickets: bucket and slot.
#[derive(Debug, Default)]
struct WaitingSets {
    queue: Retire<(u32, u32)>,
    /// Kept for its capacity.
    done: Vec<(u32, u32)>,
}

impl PersistentSets {
    /// Creates an allocator that any number of threads may share. Creates no pool yet.
    #[must_use]
    pub fn new(info: &PersistentSetsCreateInfo) -> Self {
        static NEXT_ID: AtomicU32 = AtomicU32::new(1);
        Self {
            device: info.device.clone(),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            sizing: Sizing::new(info),
            keep_idle: info.keep_idle_pools,
            buckets: BucketTable::default(),
            registry: Mutex::new(BucketRegistry::default()),
            waiting: Mutex::new(WaitingSets::default()),
            pools: AtomicU32::new(0),
            made: AtomicU64::new(0),
            hand: AtomicU32::new(0),
        }
    }

    /// Allocates a set of the layout. Its content is undefined: write all descriptors that shaders read. If a count of
    /// the layout is variable, the set has the maximum number of descriptors.
    ///
    /// # Errors
    /// [`AllocateDescriptorSetError`].
    ///
    /// # Safety
    /// The layout is live and belongs to this allocator's device
    /// (VUID-VkDescriptorSetAllocateInfo-pSetLayouts-parameter, -commonparent).
    ///
    /// # Complexity
    /// If a freed set of the same layout is ready: one short lock, no driver call. Otherwise one driver call, and one
    /// more for each pool that fails.
    #[doc(alias = "createBindingSet")]
    pub unsafe fn allocate(&self, layout: &SetLayout) -> Result<DescriptorSet, AllocateDescriptorSetError> {
        // SAFETY: the caller's promise: the layout is live and belongs to this allocator's device.
        unsafe { self.allocate_one(&SetRequest::new(layout, None)?) }
    }

    /// Allocates a set with `count` descriptors in its variable binding. It uses no more than that from its pool.
    ///
    /// # Errors
    /// [`AllocateDescriptorSetError`].
    ///
    /// # Safety
    /// Same as [`Self::allocate`].
    pub unsafe fn allocate_variable(
        &self,
        layout: &SetLayout,
        count: u32,
    ) -> Result<DescriptorSet, AllocateDescriptorSetError> {
        // SAFETY: the promises of `Self::allocate`, which this function's caller makes.
        unsafe { self.allocate_one(&SetRequest::new(layout, Some(count))?) }
    }

    /// Allocates `count` sets of the layout, or none. Needs one driver call for each pool that provides sets, and for
    /// each 65,536 sets of a larger pool.
    ///
    /// # Errors
    /// [`AllocateDescriptorSetError`]. No set is allocated.
    ///
    /// # Safety
    /// Same as [`Self::allocate`].
    ///
    /// ```
    #[doc = example_setup!()]
    /// // SAFETY: the layout is live.
    /// let many = unsafe { sets.allocate_many(&layout, 100) }?;
    /// assert_eq!(many.len(), 100);
    /// # for set in many { unsafe { sets.free(set) }?; }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn allocate_many(
        &self,
        layout: &SetLayout,
        count: u32,
    ) -> Result<Vec<DescriptorSet>, AllocateDescriptorSetError> {
        let ask = SetRequest::new(layout, None)?;
        // Reserves before any pool is created, so that an absurd count returns an error instead of aborting.
        let mut sets = Vec::new();
        if sets.try_reserve_exact(index(count)).is_err() {
            return Err(AllocateDescriptorSetError::HostMemory { sets: count });
        }
        // SAFETY: the promises of `Self::allocate`, which this function's caller makes.
        let result = unsafe { self.obtain(&ask, count, &mut |set| sets.push(set)) };
        match result {
            Ok(()) => Ok(sets),
            Err(error) => {
                for set in sets {
                    self.put_back(set.id.bucket, set.id.slot);
                }
                Err(error)
            }
        }
    }

    /// Frees a set immediately.
    ///
    /// # Errors
    /// [`ForeignDescriptorSet`] if it belongs to another allocator.
    ///
    /// # Safety
    /// The device is done with the set (VUID-vkFreeDescriptorSets-pDescriptorSets-00309), and no recording that is
    /// still to be submitted uses it.
    pub unsafe fn free(&self, set: DescriptorSet) -> Result<(), ForeignDescriptorSet> {
        if set.id.allocator != self.id {
            return Err(ForeignDescriptorSet { set });
        }
        self.put_back(set.id.bucket, set.id.slot);
        Ok(())
    }

    /// Retires a set: [`Self::collect`] frees it once `ticket` is done. Its id becomes stale at once.
    ///
    /// # Errors
    /// [`ForeignDescriptorSet`] if it belongs to another allocator.
    ///
    /// # Safety
    /// Once the clock passed to [`Self::collect`] reports `ticket` as done, the device is done with the set
    /// (VUID-vkFreeDescriptorSets-pDescriptorSets-00309).
    ///
    /// ```
    #[doc = example_setup!()]
    /// # let clock = sublet::retire::Clock::new();
    /// # let timeline = clock.add_timeline()?;
    /// let set = unsafe { sets.allocate(&layout) }?;
    /// let (id, ticket) = (set.id(), clock.open(timeline));
    /// // SAFETY: the recording of the ticket is the last that uses the set.
    /// unsafe { sets.retire(ticket, set) }?;
    /// assert!(sets.set(id).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn retire(&self, ticket: Ticket, set: DescriptorSet) -> Result<(), ForeignDescriptorSet> {
        let Some(bucket) = self.buckets.get(set.id.bucket).filter(|_| set.id.allocator == self.id) else {
            return Err(ForeignDescriptorSet { set });
        };
        let slot = bucket.state.lock().retire(set.id.slot);
        self.waiting.lock().queue.push(ticket, (set.id.bucket, slot));
        Ok(())
    }

    /// Frees the retired sets whose tickets are done. Returns their number.
    ///
    /// # Errors
    /// [`OtherClock`] if sets wait for tickets of another clock. All sets whose tickets are done were freed.
    pub fn collect(&self, clock: &ClockView) -> Result<usize, OtherClock> {
        // The lock is released before the sets are freed, so other threads can retire sets meanwhile.
        let (mut done, count) = {
            let mut waiting = self.waiting.lock();
            let mut done = std::mem::take(&mut waiting.done);
            let count = waiting.queue.collect(clock, |place| done.push(place));
            (done, count)
        };
        for (bucket, slot) in done.drain(..) {
            self.put_back(bucket, slot);
        }
        self.waiting.lock().done = done;
        count
    }

    /// Returns the set with this id.
    ///
    /// # Errors
    /// [`StaleDescriptorSet`] if it was freed or retired, or belongs to another allocator.
    ///
    /// ```
    #[doc = example_setup!()]
    /// let set = unsafe { sets.allocate(&layout) }?;
    /// assert_eq!(sets.set(set.id())?, set.handle());
    /// # unsafe { sets.free(set) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set(&self, id: DescriptorSetId) -> Result<vk::DescriptorSet, StaleDescriptorSet> {
        let bucket = self.buckets.get(id.bucket).filter(|_| id.allocator == self.id);
        let set = bucket.and_then(|bucket| bucket.state.lock().live_set(id.slot, id.generation));
        set.ok_or(StaleDescriptorSet { id })
    }

    /// Destroys all pools without live sets. Returns their number.
    pub fn trim(&self) -> u32 {
        self.release_idle(0)
    }

    /// Returns the number of sets in each state. O(sets).
    #[must_use]
    pub fn statistics(&self) -> PersistentSetsStatistics {
        let mut statistics = PersistentSetsStatistics::default();
        for bucket in self.buckets.iter() {
            statistics.add(&bucket.state.lock());
        }
        statistics
    }

    /// Calls `visit` for every pool, for debugging. Holds the lock of one bucket at a time.
    ///
    /// # Complexity
    /// O(pools).
    pub fn walk_pools(&self, mut visit: impl FnMut(DescriptorPoolView)) {
        for bucket in self.buckets.iter() {
            bucket.state.lock().walk_pools(&mut visit);
        }
    }

    /// Returns the device of this allocator.
    #[must_use]
    pub fn device(&self) -> &DescriptorDevice {
        &self.device
    }

    /// Destroys all pools with all their sets. Returns the sets that were neither freed nor retired. No `collect` is
    /// required before.
    ///
    /// Dropping the allocator destroys only empty pools. The device may still use pools with live sets, or with retired
    /// sets that were not collected. The drop leaks these pools with a `tracing` warning.
    ///
    /// # Safety
    /// The device is done with all sets (VUID-vkDestroyDescriptorPool-descriptorPool-00303), for example after
    /// `vkDeviceWaitIdle`.
    pub unsafe fn destroy(self) -> Vec<DescriptorSetLeak> {
        self.waiting.lock().queue.drain().for_each(drop);
        let leaks = self.leaks();
        for bucket in self.buckets.iter() {
            let pools = bucket.state.lock().remove_all();
            pools.into_iter().for_each(|pool| self.bury(pool));
        }
        leaks
    }

    /// Checks the internal state for consistency, for tests and debugging. O(sets).
    ///
    /// # Panics
    /// If an invariant does not hold; the message names it.
    pub fn validate(&self) {
        for bucket in self.buckets.iter() {
            let state = bucket.state.lock();
            state.validate();
            let Some(shape) = state.shape else {
                assert!(state.is_empty(), "a bucket without a shape has pools");
                continue;
            };
            for entry in state.pools() {
                assert!(
                    entry.capacity <= entry.pool.max_sets(),
                    "a pool gives more sets than it was made for"
                );
                let all = shape.counts.times(entry.capacity);
                assert!(all.fits(entry.pool.counts()), "a pool gives more descriptors than it was made for");
            }
        }
    }

    /// Returns the sets that were neither freed nor retired. Warns about each layout that has some.
    fn leaks(&self) -> Vec<DescriptorSetLeak> {
        let mut leaks = Vec::new();
        for bucket in self.buckets.iter() {
            let state = bucket.state.lock();
            if let Some(shape) = state.shape {
                let held = state.held().into_iter().filter(|&(_, live, _)| live != 0);
                leaks.extend(held.map(|(layout, sets, _)| DescriptorSetLeak {
                    layout,
                    counts: shape.counts,
                    sets,
                }));
            }
        }
        // No lock is held here, because a subscriber may call the allocator.
        for leak in &leaks {
            tracing::warn!(
                name: "descriptor_sets_leaked", target: "sublet::leak",
                layout = ?leak.layout, sets = leak.sets, counts = %leak.counts,
                "descriptor sets were never freed"
            );
        }
        leaks
    }

    /// Destroys a pool that was removed from `state`. The caller holds no lock except `growing`.
    pub(super) fn bury(&self, pool: DescriptorPool) {
        // SAFETY: the pool belongs to this device and was removed from `state`. It has no live set, or the allocator is
        // being destroyed, and then the device is done with all sets (the promise of `destroy`). The device is done
        // with freed and retired sets by the promises of `free` and `retire`.
        unsafe { pool.destroy(&self.device) };
        self.pools.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for PersistentSets {
    fn drop(&mut self) {
        self.trim();
        let (mut pools, mut retired) = (0_usize, 0);
        for bucket in self.buckets.iter() {
            let state = bucket.state.lock();
            pools += state.pools().count();
            retired += state.retired();
        }
        if pools != 0 {
            self.leaks();
            tracing::warn!(
                name: "descriptor_pools_leaked", target: "sublet::leak", pools, retired,
                "persistent sets were dropped while the device may use sets: their pools are not destroyed"
            );
        }
    }
}

impl fmt::Debug for PersistentSets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PersistentSets")
            .field("id", &self.id)
            .field("pools", &self.pools.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}
