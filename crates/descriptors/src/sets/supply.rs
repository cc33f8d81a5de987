//! Allocates and frees sets: ready sets, pools with room, new pools.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::sync::atomic::Ordering;

use ash::vk;

use super::bucket::{Bucket, SetRequest, SetShape};
use super::error::AllocateDescriptorSetError;
use super::persistent::PersistentSets;
use super::set::{DescriptorSet, DescriptorSetId};
use super::state::{BucketState, NextSet, Ways};
use crate::events::{self, PoolEvent, PoolEventKind};
use crate::pool::{DescriptorPool, DescriptorPoolInfo, is_exhausted, keeps_limit};
use crate::{CreateDescriptorPoolError, DescriptorQuirks};
use sublet::device::DriverError;
use sublet_engines::cast::{index, narrow};

/// The maximum number of sets in one driver call. It bounds the host memory of the lists of layouts and sets.
const MOST_AT_ONCE: u32 = 1 << 16;

type DeviceBucketState = BucketState<SetShape, DescriptorPool>;

/// The result of one visit to a bucket.
#[derive(Debug)]
struct BucketVisit {
    /// The number of sets that were taken.
    taken: u32,
    /// The number of live sets in the bucket now.
    live: u32,
    /// The driver's last failure for a pool that had room.
    refusal: Option<DriverError>,
    /// The capacity of that pool in sets and descriptors.
    refused_by: (u32, u64),
}

/// Meanwhile, another thread has reused the bucket for another shape.
#[derive(Debug)]
struct BucketReused;

impl PersistentSets {
    /// Allocates one set.
    ///
    /// # Safety
    /// The layout is live and belongs to this allocator's device.
    #[inline]
    pub(super) unsafe fn allocate_one(
        &self,
        ask: &SetRequest<'_>,
    ) -> Result<DescriptorSet, AllocateDescriptorSetError> {
        if let Some(set) = self.take_ready(ask) {
            return Ok(set);
        }
        let mut one = None;
        // SAFETY: the caller's promise: the layout is live and belongs to this allocator's device.
        unsafe { self.obtain(ask, 1, &mut |set| one = Some(set)) }?;
        // `obtain` returns the requested number of sets or an error.
        one.ok_or(AllocateDescriptorSetError::TooManySets)
    }

    /// Takes a ready set of the same layout, if the next set is one. This is the fast path of [`Self::obtain`].
    #[inline]
    fn take_ready(&self, ask: &SetRequest<'_>) -> Option<DescriptorSet> {
        let bucket = self.hinted_bucket(ask)?;
        let mut state = self.buckets.get(bucket)?.state.lock();
        let wanted = ask.wanted();
        if state.shape != Some(ask.shape) {
            return None;
        }
        let NextSet::Ready(at) = state.source(wanted, self.ways()) else { return None };
        let slot = state.take_ready(wanted, at)?;
        let (handle, generation) = state.set_of(slot);
        Some(DescriptorSet { handle, id: DescriptorSetId { allocator: self.id, bucket, slot, generation } })
    }

    /// Passes `want` sets to `sink`. On failure, it may already have passed some of them.
    ///
    /// # Safety
    /// Same as [`Self::allocate_one`].
    pub(super) unsafe fn obtain(
        &self,
        ask: &SetRequest<'_>,
        want: u32,
        sink: &mut impl FnMut(DescriptorSet),
    ) -> Result<(), AllocateDescriptorSetError> {
        let mut left = want;
        let mut trust_hint = true;
        while left != 0 {
            let at = self.bucket_of(ask, trust_hint)?;
            let bucket = self.buckets.get(at).ok_or(AllocateDescriptorSetError::TooManySets)?;
            // SAFETY: the caller keeps the promises of `Self::allocate_one`.
            match unsafe { self.visit(bucket, at, ask, left, None, sink) }? {
                Ok(visit) => left -= visit.taken,
                Err(BucketReused) => {
                    trust_hint = false;
                    continue;
                }
            }
            if left != 0 {
                // SAFETY: the caller keeps the promises of `Self::allocate_one`.
                left = unsafe { self.grow(bucket, at, ask, left, sink) }?;
            }
        }
        Ok(())
    }

    /// Creates pools until there are enough sets. Returns the number of missing sets, which is zero unless the bucket
    /// now belongs to another shape.
    ///
    /// # Safety
    /// Same as [`Self::allocate_one`].
    #[cold]
    unsafe fn grow(
        &self,
        bucket: &Bucket,
        at: u32,
        ask: &SetRequest<'_>,
        left: u32,
        sink: &mut impl FnMut(DescriptorSet),
    ) -> Result<u32, AllocateDescriptorSetError> {
        // SAFETY: the caller keeps the promises of `Self::allocate_one`.
        events::after(|| unsafe { self.grow_in_turn(bucket, at, ask, left, sink) })
    }

    /// Implements [`Self::grow`] under the bucket's `growing` lock.
    ///
    /// # Safety
    /// Same as [`Self::allocate_one`].
    unsafe fn grow_in_turn(
        &self,
        bucket: &Bucket,
        at: u32,
        ask: &SetRequest<'_>,
        mut left: u32,
        sink: &mut impl FnMut(DescriptorSet),
    ) -> Result<u32, AllocateDescriptorSetError> {
        // The bucket keeps its shape while this is held: see `vacate`.
        let _growing = bucket.growing.lock();
        // Another thread may have created a pool or freed sets meanwhile.
        // SAFETY: the caller keeps the promises of `Self::allocate_one`.
        let mut visit = match unsafe { self.visit(bucket, at, ask, left, None, sink) }? {
            Ok(visit) => visit,
            Err(BucketReused) => return Ok(left),
        };
        loop {
            left -= visit.taken;
            if left == 0 {
                return Ok(0);
            }
            let pool = self.make_pool(ask, visit.live, left)?;
            // SAFETY: the caller keeps the promises of `Self::allocate_one`.
            visit = match unsafe { self.visit(bucket, at, ask, left, Some(pool), sink) }? {
                Ok(visit) => visit,
                Err(BucketReused) => return Ok(left),
            };
            if visit.taken == 0 {
                let none = DriverError {
                    call: "vkAllocateDescriptorSets",
                    result: vk::Result::ERROR_OUT_OF_POOL_MEMORY,
                };
                return Err(AllocateDescriptorSetError::FreshPoolRefused {
                    counts: ask.shape.counts,
                    source: visit.refusal.unwrap_or(none),
                });
            }
        }
    }

    /// Finds the bucket of a request: by the layout's hint, which may be wrong, or in the registry.
    #[inline]
    fn bucket_of(&self, ask: &SetRequest<'_>, trust_hint: bool) -> Result<u32, AllocateDescriptorSetError> {
        match self.hinted_bucket(ask) {
            Some(bucket) if trust_hint => Ok(bucket),
            _ => self.find_bucket(ask),
        }
    }

    /// Returns the layout's last bucket if that belongs to this allocator.
    #[inline]
    fn hinted_bucket(&self, ask: &SetRequest<'_>) -> Option<u32> {
        let hint = ask.layout.hint();
        (hint >> 32 == u64::from(self.id))
            .then(|| u32::try_from(hint & u64::from(u32::MAX)).unwrap_or_default())
    }

    #[cold]
    fn find_bucket(&self, ask: &SetRequest<'_>) -> Result<u32, AllocateDescriptorSetError> {
        let mut registry = self.registry.lock();
        let at = match registry.find(&ask.shape) {
            Some(at) => at,
            None => {
                let at = registry.next();
                let bucket = self.buckets.get_or_make(at);
                let bucket = bucket.ok_or(AllocateDescriptorSetError::TooManySets)?;
                bucket.state.lock().shape = Some(ask.shape);
                registry.enter(ask.shape, at);
                at
            }
        };
        ask.layout.set_hint(u64::from(self.id) << 32 | u64::from(at));
        Ok(at)
    }

    /// Takes up to `want` sets from the bucket's pools. Adds the pool `fresh` first, if there is one.
    ///
    /// # Safety
    /// Same as [`Self::allocate_one`].
    unsafe fn visit(
        &self,
        bucket: &Bucket,
        at: u32,
        ask: &SetRequest<'_>,
        want: u32,
        fresh: Option<DescriptorPool>,
        sink: &mut impl FnMut(DescriptorSet),
    ) -> Result<Result<BucketVisit, BucketReused>, AllocateDescriptorSetError> {
        let mut graves = Vec::new();
        let result = {
            let mut state = bucket.state.lock();
            if state.shape != Some(ask.shape) {
                graves.extend(fresh);
                Ok(Err(BucketReused))
            } else {
                let fresh = fresh.map(|pool| {
                    let capacity = pool.max_sets();
                    state.add_pool(pool, capacity)
                });
                let mut visit = BucketVisit { taken: 0, live: 0, refusal: None, refused_by: (0, 0) };
                let mut give = |slot: u32, set: vk::DescriptorSet, generation: u32| {
                    let id = DescriptorSetId { allocator: self.id, bucket: at, slot, generation };
                    sink(DescriptorSet { handle: set, id });
                };
                // SAFETY: the caller keeps the promises of `Self::allocate_one`, and the lock of `state` is held.
                let filled = unsafe { self.fill(&mut state, ask, want, &mut visit, &mut graves, &mut give) };
                visit.live = state.live();
                // An unused new pool is destroyed on failure.
                if filled.is_err() {
                    let idle = fresh.filter(|&at| state.pool(at).is_some_and(|pool| pool.live == 0));
                    graves.extend(idle.and_then(|at| state.remove_pool(at)));
                }
                filled.map(|()| Ok(visit))
            }
        };
        graves.into_iter().for_each(|pool| self.bury(pool));
        if let Ok(Ok(BucketVisit { refusal: Some(error), refused_by: (sets, descriptors), .. })) = result {
            PoolEvent { sets, descriptors, what: PoolEventKind::Exhausted(error) }.happened();
        }
        result
    }

    /// Takes up to `want` sets from the existing pools.
    ///
    /// Terminates: each iteration takes a set, closes a pool, or makes room that the next iteration uses or closes.
    ///
    /// # Safety
    /// Same as [`Self::allocate_one`]; and the lock of `state` is held.
    unsafe fn fill(
        &self,
        state: &mut DeviceBucketState,
        ask: &SetRequest<'_>,
        want: u32,
        visit: &mut BucketVisit,
        graves: &mut Vec<DescriptorPool>,
        give: &mut impl FnMut(u32, vk::DescriptorSet, u32),
    ) -> Result<(), AllocateDescriptorSetError> {
        let (wanted, ways) = (ask.wanted(), self.ways());
        while visit.taken < want {
            match state.source(wanted, ways) {
                NextSet::Ready(at) => {
                    let Some(slot) = state.take_ready(wanted, at) else { return Ok(()) };
                    let (set, generation) = state.set_of(slot);
                    give(slot, set, generation);
                    visit.taken += 1;
                }
                NextSet::Room(at) => {
                    // SAFETY: the caller keeps the promises of `Self::fill`.
                    match unsafe { self.ask_driver(state, at, ask, want - visit.taken, give) }? {
                        Ok(taken) => visit.taken += taken,
                        Err(refusal) => {
                            visit.refusal = Some(refusal);
                            let pool = state.pool(at).map(|entry| &entry.pool);
                            visit.refused_by =
                                pool.map_or((0, 0), |pool| (pool.max_sets(), pool.counts().total()));
                            self.take_out(state, at, graves);
                        }
                    }
                }
                NextSet::Reset(at) => {
                    if self.reset(state, at).is_err() {
                        graves.extend(state.remove_pool(at));
                    }
                }
                NextSet::Replace(at) => graves.extend(state.remove_pool(at)),
                NextSet::Evict(at) => {
                    let freed = state.evictable(at).is_some_and(|(slot, set)| {
                        let Some(entry) = state.pool(at) else { return false };
                        // SAFETY: the set belongs to this pool, which was created with
                        // VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT according to `Ways::free`. The set is
                        // ready: the program freed it and promised that the device is done with it, and the driver has
                        // not freed it. The lock is held.
                        let freed = unsafe { self.device.driver().free_sets(entry.pool.handle(), &[set]) };
                        if freed.is_ok() {
                            state.evict(slot);
                        }
                        freed.is_ok()
                    });
                    if !freed {
                        self.take_out(state, at, graves);
                    }
                }
                NextSet::Nowhere => return Ok(()),
            }
        }
        Ok(())
    }

    /// Allocates up to `want` sets from a pool with room. Returns the number of sets, or the driver's error.
    ///
    /// # Safety
    /// Same as [`Self::fill`].
    unsafe fn ask_driver(
        &self,
        state: &mut DeviceBucketState,
        at: u32,
        ask: &SetRequest<'_>,
        want: u32,
        give: &mut impl FnMut(u32, vk::DescriptorSet, u32),
    ) -> Result<Result<u32, DriverError>, AllocateDescriptorSetError> {
        let Some(entry) = state.pool(at) else { return Ok(Ok(0)) };
        let (pool, layout, wanted) = (entry.pool.handle(), ask.layout.handle(), ask.wanted());
        let count = if ask.variable.is_some() { 1 } else { want.min(entry.room).min(MOST_AT_ONCE) };
        if !state.has_numbers_for(count) {
            return Err(AllocateDescriptorSetError::TooManySets);
        }
        let driver = self.device.driver();
        let mut enter = |state: &mut DeviceBucketState, set| {
            let slot = state.add_live(wanted, at, set);
            let (_, generation) = state.set_of(slot);
            give(slot, set, generation);
        };
        // `SetRequest::new` ensures that pool and layout agree on update-after-bind and host-only, and that the layout
        // is not for push descriptors or descriptor buffers.
        let result = if count == 1 {
            // SAFETY: the lock of the pool is held. The caller promises that the layout is live; it is compatible with
            // the pool (see above). `SetRequest::new` limits the variable count.
            let set = unsafe { entry.pool.allocate(&self.device, layout, ask.variable) };
            set.map(|set| enter(state, set))
        } else {
            let layouts = vec![layout; index(count)];
            let mut sets = Vec::new();
            // SAFETY: same as for one set.
            let all = unsafe { driver.allocate_sets(pool, &layouts, &mut sets) };
            all.map(|()| sets.into_iter().for_each(|set| enter(state, set)))
        };
        match result {
            Ok(()) => Ok(Ok(count)),
            Err(refusal) if is_exhausted(refusal) => Ok(Err(refusal)),
            Err(source) => Err(AllocateDescriptorSetError::Driver { counts: ask.shape.counts, source }),
        }
    }

    /// Takes a faulty pool out of use: removes it if it is empty, and otherwise closes it until it is.
    fn take_out(&self, state: &mut DeviceBucketState, at: u32, graves: &mut Vec<DescriptorPool>) {
        match state.remove_pool(at) {
            Some(pool) => graves.push(pool),
            None => state.seal(at),
        }
    }

    /// Resets a pool without live sets.
    fn reset(&self, state: &mut DeviceBucketState, at: u32) -> Result<(), DriverError> {
        let Some(entry) = state.pool_mut(at).filter(|entry| entry.live == 0) else { return Ok(()) };
        // SAFETY: the pool has no live set: the program freed all, or retired and collected them, and promised that the
        // device is done with them. The lock is held.
        unsafe { entry.pool.reset(&self.device) }?;
        state.reset(at);
        Ok(())
    }

    /// Frees a set. Destroys its pool if that is empty now and the others have enough free sets.
    pub(super) fn put_back(&self, bucket: u32, slot: u32) {
        let Some(bucket) = self.buckets.get(bucket) else { return };
        let grave = {
            let mut state = bucket.state.lock();
            let at = state.release(slot);
            match state.pool(at) {
                Some(entry) if entry.live == 0 => self.emptied(&mut state, at),
                _ => None,
            }
        };
        if let Some(pool) = grave {
            self.bury(pool);
        }
    }

    /// Handles a pool that has become empty. Returns it if it must be destroyed.
    fn emptied(&self, state: &mut DeviceBucketState, at: u32) -> Option<DescriptorPool> {
        if state.has_enough_without(at) {
            return state.remove_pool(at);
        }
        let sealed = state.pool(at).is_some_and(|entry| entry.sealed);
        if sealed && (!self.ways().reset || self.reset(state, at).is_err()) {
            return state.remove_pool(at);
        }
        None
    }

    /// Returns the capabilities of pools on this device.
    #[inline]
    fn ways(&self) -> Ways {
        let quirks = self.device.quirks();
        Ways {
            // On drivers whose pools fragment, sets are never freed individually.
            free: !quirks.contains(DescriptorQuirks::FRAGMENTS),
            reset: !quirks.contains(DescriptorQuirks::RESET_LEAKS),
        }
    }

    /// Creates a pool of the ideal size. On a shortage, creates the smallest sufficient pool. If that fails too,
    /// destroys idle pools first. Exceeding the update-after-bind limit counts as a shortage.
    #[cold]
    fn make_pool(
        &self,
        ask: &SetRequest<'_>,
        live: u32,
        wanted: u32,
    ) -> Result<DescriptorPool, AllocateDescriptorSetError> {
        let size = self.sizing.pool_size(&ask.shape.counts, live, wanted);
        let fits = |sets| keeps_limit(&self.device, &ask.shape.counts.times(sets), ask.shape.flags);
        let smallest_fits = || fits(size.least) || (self.release_idle(0) != 0 && fits(size.least));
        let first = if fits(size.ideal) || !smallest_fits() { size.ideal } else { size.least };
        let mut result = self.create_pool(ask, first);
        let is_short = |result: &Result<_, _>| result.as_ref().is_err_and(may_be_smaller);
        if is_short(&result) && size.least < first {
            result = self.create_pool(ask, size.least);
        }
        if is_short(&result) && self.release_idle(0) != 0 {
            result = self.create_pool(ask, size.least);
        }
        let pool = result.map_err(|source| match source {
            CreateDescriptorPoolError::UpdateAfterBindLimit { needed, left, source } => {
                AllocateDescriptorSetError::UpdateAfterBindLimit { needed, left, source }
            }
            source => {
                AllocateDescriptorSetError::NoPool { sets: size.least, counts: ask.shape.counts, source }
            }
        })?;
        if self.pools.load(Ordering::Relaxed) > self.keep_idle {
            self.release_idle(self.keep_idle);
        }
        Ok(pool)
    }

    fn create_pool(
        &self,
        ask: &SetRequest<'_>,
        sets: u32,
    ) -> Result<DescriptorPool, CreateDescriptorPoolError> {
        let mut flags = ask.shape.flags;
        if self.ways().free {
            flags |= vk::DescriptorPoolCreateFlags::FREE_DESCRIPTOR_SET;
        }
        let info = DescriptorPoolInfo {
            max_sets: sets,
            counts: ask.shape.counts.times(sets),
            flags,
            // All types are allowed, because layouts with other type lists may share the pool.
            mutable_types: &[],
            name: "sublet persistent sets",
            ordinal: self.made.fetch_add(1, Ordering::Relaxed),
        };
        let pool = DescriptorPool::create(&self.device, &info)?;
        self.pools.fetch_add(1, Ordering::Relaxed);
        Ok(pool)
    }

    /// Destroys idle pools until at most `keep` are left. Returns the number of destroyed pools. Starts at the end of
    /// the last search, so that all buckets are treated equally.
    pub(super) fn release_idle(&self, keep: u32) -> u32 {
        let buckets = self.registry.lock().used();
        let idle_of = |at: u32| {
            let bucket = self.buckets.get(at)?;
            let state = bucket.state.lock();
            Some(narrow(state.pools().filter(|pool| pool.live == 0).count()))
        };
        let idle: u32 = (0..buckets).filter_map(idle_of).sum();
        let mut surplus = idle.saturating_sub(keep).min(self.pools.load(Ordering::Relaxed));
        let mut released = 0;
        let start = self.hand.load(Ordering::Relaxed);
        for step in 0..buckets {
            if surplus == 0 && keep != 0 {
                break;
            }
            let at = (start.wrapping_add(step)) % buckets;
            let Some(bucket) = self.buckets.get(at) else { continue };
            while surplus != 0 {
                let pool = {
                    let mut state = bucket.state.lock();
                    state.idle_pool().and_then(|idle| state.remove_pool(idle))
                };
                let Some(pool) = pool else { break };
                self.bury(pool);
                surplus -= 1;
                released += 1;
            }
            self.vacate(bucket);
            self.hand.store(at.wrapping_add(1), Ordering::Relaxed);
        }
        released
    }

    /// Makes a bucket without pools available for another shape.
    fn vacate(&self, bucket: &Bucket) {
        let mut registry = self.registry.lock();
        // A thread that creates a pool for the bucket relies on its shape.
        let Some(_growing) = bucket.growing.try_lock() else { return };
        let mut state = bucket.state.lock();
        if !state.is_empty() {
            return;
        }
        if let Some(shape) = state.shape.take() {
            registry.leave(&shape);
        }
    }
}

/// Returns true if a smaller pool may succeed.
fn may_be_smaller(error: &CreateDescriptorPoolError) -> bool {
    match error {
        CreateDescriptorPoolError::UpdateAfterBindLimit { .. } => true,
        CreateDescriptorPoolError::Driver { source, .. } => matches!(
            source.result,
            vk::Result::ERROR_OUT_OF_DEVICE_MEMORY
                | vk::Result::ERROR_OUT_OF_HOST_MEMORY
                | vk::Result::ERROR_TOO_MANY_OBJECTS
                | vk::Result::ERROR_FRAGMENTATION
        ),
        CreateDescriptorPoolError::Unsupported { .. } => false,
    }
}
