//! Sets that live for as long as the program wants: what it calls.

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use ash::vk;

use super::bucket::{Ask, Bucket, Registry};
use super::error::AllocateDescriptorSetError;
use super::set::{
    DescriptorSet, DescriptorSetId, DescriptorSetLeak, ForeignDescriptorSet, StaleDescriptorSet,
};
use super::settings::{PersistentSetsCreateInfo, Sizing};
use super::statistics::PersistentSetsStatistics;
use crate::base::append_table::AppendTable;
use crate::base::cast::index;
use crate::base::sync::Mutex;
use crate::descriptor::pool::DescriptorPool;
use crate::descriptor::{DescriptorDevice, DescriptorPoolView, SetLayout};
use crate::retire::{ClockView, OtherClock, Retire, Ticket};

/// Sets that live for as long as the program wants: those of materials, of meshes, of bindless tables.
///
/// All methods take `&self`. For sets that live for a frame there are cheaper ways.
///
/// # How sets are kept
///
/// Sets with the same counts of descriptors are in one bucket, and the pools of a bucket hold nothing else: whatever is
/// freed fits whatever comes. A set that is freed stays allocated as far as the driver knows, and serves the next
/// request for its layout without a call of the driver. If another layout of the bucket needs the place, the set is
/// freed or its pool reset before another pool is made. Sets come from the lowest pool that can give one, so that the highest ones
/// become empty. An empty pool is destroyed if the other pools of the bucket have a quarter of its sets free.
///
/// # What is never relied on
///
/// A driver's refusal: some drivers never refuse, and some count sets but not descriptors. So the allocator counts what
/// each pool has left. Some drivers refuse although there is room. That costs one pool: nothing is taken from it until
/// it is empty.
///
/// ```
#[doc = example_setup!()]
/// // SAFETY: the layout is live.
/// let set = unsafe { sets.allocate(&layout) }?;
///
/// // A frame draws with it, and it is the last one that does:
/// let clock = sublet::retire::Clock::new();
/// let lane = clock.add_lane()?;
/// let frame = clock.begin_frame(lane, 0);
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
    pub(super) buckets: AppendTable<Bucket>,
    pub(super) registry: Mutex<Registry>,
    waiting: Mutex<Waiting>,
    /// Pools that live.
    pub(super) pools: AtomicU32,
    /// Pools that were ever made: their names.
    pub(super) made: AtomicU64,
    /// The bucket at which the next search for idle pools starts.
    pub(super) hand: AtomicU32,
}

/// Sets that wait for their tickets: bucket and slot.
#[derive(Debug, Default)]
struct Waiting {
    queue: Retire<(u32, u32)>,
    /// Kept for its memory.
    done: Vec<(u32, u32)>,
}

impl PersistentSets {
    /// Makes an allocator that any number of threads use at once. No pool is made yet.
    #[must_use]
    pub fn new(info: &PersistentSetsCreateInfo) -> Self {
        static NEXT_ID: AtomicU32 = AtomicU32::new(1);
        Self {
            device: info.device.clone(),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            sizing: Sizing::new(info),
            keep_idle: info.keep_idle_pools,
            buckets: AppendTable::new(),
            registry: Mutex::new(Registry::default()),
            waiting: Mutex::new(Waiting::default()),
            pools: AtomicU32::new(0),
            made: AtomicU64::new(0),
            hand: AtomicU32::new(0),
        }
    }

    /// A set of the layout. What is in it is undefined: write all that shaders read. If a count of the layout is
    /// variable, the set has as many descriptors as the layout allows.
    ///
    /// # Errors
    /// [`AllocateDescriptorSetError`].
    ///
    /// # Safety
    /// The layout is live, and of this allocator's device (VUID-VkDescriptorSetAllocateInfo-pSetLayouts-parameter, -commonparent).
    ///
    /// # Complexity
    /// A set that was freed with the same layout: one short lock, no call of the driver. Else one call; and one more
    /// for each pool that refuses.
    #[doc(alias = "createBindingSet")]
    pub unsafe fn allocate(&self, layout: &SetLayout) -> Result<DescriptorSet, AllocateDescriptorSetError> {
        // SAFETY: the caller's promise: the layout is live, and of this allocator's device.
        unsafe { self.allocate_one(&Ask::new(layout, None)?) }
    }

    /// A set with `count` descriptors in the binding whose count is variable. It takes no more than that out of its
    /// pool.
    ///
    /// # Errors
    /// [`AllocateDescriptorSetError`].
    ///
    /// # Safety
    /// As for [`Self::allocate`].
    pub unsafe fn allocate_variable(
        &self,
        layout: &SetLayout,
        count: u32,
    ) -> Result<DescriptorSet, AllocateDescriptorSetError> {
        // SAFETY: the promises of `Self::allocate`, which this function's caller makes.
        unsafe { self.allocate_one(&Ask::new(layout, Some(count))?) }
    }

    /// `count` sets of the layout, or none: with one call of the driver for each pool that gives some, and one for each
    /// 65,536 sets of a pool with more.
    ///
    /// # Errors
    /// [`AllocateDescriptorSetError`], and no set is taken.
    ///
    /// # Safety
    /// As for [`Self::allocate`].
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
        let ask = Ask::new(layout, None)?;
        // Before any pool is made: a number out of nowhere is not to end the program.
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

    /// Gives a set back at once.
    ///
    /// # Errors
    /// [`ForeignDescriptorSet`] if it is another allocator's.
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

    /// Gives a set back for when `ticket` is done; [`Self::collect`] sees to it. Its name means nothing from now on.
    ///
    /// # Errors
    /// [`ForeignDescriptorSet`] if it is another allocator's.
    ///
    /// # Safety
    /// Once `ticket` is done, as the clock says that [`Self::collect`] is given, the device is done with the set
    /// (VUID-vkFreeDescriptorSets-pDescriptorSets-00309).
    ///
    /// ```
    #[doc = example_setup!()]
    /// # let clock = sublet::retire::Clock::new();
    /// # let lane = clock.add_lane()?;
    /// let set = unsafe { sets.allocate(&layout) }?;
    /// let (id, ticket) = (set.id(), clock.open(lane));
    /// // SAFETY: what is recorded for the ticket is the last that uses the set.
    /// unsafe { sets.retire(ticket, set) }?;
    /// assert!(sets.set(id).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn retire(&self, ticket: Ticket, set: DescriptorSet) -> Result<(), ForeignDescriptorSet> {
        let Some(bucket) = self.buckets.get(set.id.bucket).filter(|_| set.id.allocator == self.id) else {
            return Err(ForeignDescriptorSet { set });
        };
        let slot = bucket.books.lock().retire(set.id.slot);
        self.waiting.lock().queue.push(ticket, (set.id.bucket, slot));
        Ok(())
    }

    /// Takes back the retired sets whose tickets are done, and returns how many those are.
    ///
    /// # Errors
    /// [`OtherClock`] if sets wait for tickets of another clock. All that this clock says is done is taken back
    /// nonetheless.
    pub fn collect(&self, clock: &ClockView) -> Result<usize, OtherClock> {
        // Other threads may retire further sets while these are put back.
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

    /// The set that has this name.
    ///
    /// # Errors
    /// [`StaleDescriptorSet`] if it was freed or retired, or is another allocator's.
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
        let set = bucket.and_then(|bucket| bucket.books.lock().live_set(id.slot, id.generation));
        set.ok_or(StaleDescriptorSet { id })
    }

    /// Destroys all pools without live sets, and returns how many those were.
    pub fn trim(&self) -> u32 {
        self.release_idle(0)
    }

    /// How many sets there are, and what they are doing. O(sets).
    #[must_use]
    pub fn statistics(&self) -> PersistentSetsStatistics {
        let mut statistics = PersistentSetsStatistics::default();
        for bucket in self.buckets.iter() {
            statistics.add(&bucket.books.lock());
        }
        statistics
    }

    /// Shows all pools: for debugging. Those of one kind are locked meanwhile.
    ///
    /// # Complexity
    /// O(pools).
    pub fn walk_pools(&self, mut visit: impl FnMut(DescriptorPoolView)) {
        for bucket in self.buckets.iter() {
            bucket.books.lock().walk_pools(&mut visit);
        }
    }

    /// The device that it was made with.
    #[must_use]
    pub fn device(&self) -> &DescriptorDevice {
        &self.device
    }

    /// Destroys all pools, with all their sets, and returns the sets that were neither freed nor retired. Nothing needs
    /// to be collected before.
    ///
    /// An allocator that is dropped instead destroys the pools without sets. Those with sets that are not freed, or
    /// that are retired and not collected, may still be in use by the device: they are left alone, and a `tracing`
    /// warning says so.
    ///
    /// # Safety
    /// The device is done with all sets (VUID-vkDestroyDescriptorPool-descriptorPool-00303), as it is after
    /// `vkDeviceWaitIdle`.
    pub unsafe fn destroy(self) -> Vec<DescriptorSetLeak> {
        self.waiting.lock().queue.drain().for_each(drop);
        let leaks = self.leaks();
        for bucket in self.buckets.iter() {
            let pools = bucket.books.lock().remove_all();
            pools.into_iter().for_each(|pool| self.bury(pool));
        }
        leaks
    }

    /// Checks all books against one another. For tests and debugging: O(sets).
    ///
    /// # Panics
    /// Names what does not agree.
    pub fn validate(&self) {
        for bucket in self.buckets.iter() {
            let books = bucket.books.lock();
            books.validate();
            let Some(shape) = books.shape else {
                assert!(books.is_empty(), "a bucket without a shape has pools");
                continue;
            };
            for entry in books.pools() {
                assert!(
                    entry.capacity <= entry.pool.max_sets(),
                    "a pool gives more sets than it was made for"
                );
                let all = shape.counts.times(entry.capacity);
                assert!(all.fits(entry.pool.counts()), "a pool gives more descriptors than it was made for");
            }
        }
    }

    /// The sets that were neither freed nor retired. Warns of each layout that has some.
    fn leaks(&self) -> Vec<DescriptorSetLeak> {
        let mut leaks = Vec::new();
        for bucket in self.buckets.iter() {
            let books = bucket.books.lock();
            if let Some(shape) = books.shape {
                let held = books.held().into_iter().filter(|&(_, live, _)| live != 0);
                leaks.extend(held.map(|(layout, sets, _)| DescriptorSetLeak {
                    layout,
                    counts: shape.counts,
                    sets,
                }));
            }
        }
        // No lock is held here: a subscriber may call the allocator.
        for leak in &leaks {
            tracing::warn!(
                name: "descriptor_sets_leaked", target: "sublet::leak",
                layout = ?leak.layout, sets = leak.sets, counts = %leak.counts,
                "descriptor sets were never freed"
            );
        }
        leaks
    }

    /// Destroys a pool that is out of the books. The caller holds no lock but that for growth.
    pub(super) fn bury(&self, pool: DescriptorPool) {
        // SAFETY: the pool is out of the books and of this device. No set of it lives: it had none, or the allocator is
        // destroyed, and then the device is done with all of them: the promise of `destroy`. Those that were freed or
        // retired the device is done with: the promises of `free` and `retire`.
        unsafe { pool.destroy(&self.device) };
        self.pools.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for PersistentSets {
    fn drop(&mut self) {
        self.trim();
        let (mut pools, mut retired) = (0_usize, 0);
        for bucket in self.buckets.iter() {
            let books = bucket.books.lock();
            pools += books.pools().count();
            retired += books.retired();
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
