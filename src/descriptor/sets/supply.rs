//! Where sets come from and go to: ready ones, pools with room, new pools.

use std::sync::atomic::Ordering;

use ash::vk;

use super::books::{Books, NextSet, Ways};
use super::bucket::{Ask, Bucket, Shape};
use super::error::AllocateDescriptorSetError;
use super::persistent::PersistentSets;
use super::set::{DescriptorSet, DescriptorSetId};
use crate::base::cast::{index, narrow};
use crate::descriptor::events::{self, PoolEvent, What};
use crate::descriptor::pool::{DescriptorPool, DescriptorPoolInfo, is_exhausted, keeps_limit};
use crate::descriptor::{CreateDescriptorPoolError, DescriptorQuirks};
use crate::device::DriverError;
use crate::vector::policy::surplus;

/// The most sets that the driver is asked for at once: the lists of layouts and sets that it wants are host memory.
const MOST_AT_ONCE: u32 = 1 << 16;

type PoolBooks = Books<Shape, DescriptorPool>;

/// The outcome of one look at a bucket.
#[derive(Debug)]
struct Visit {
    /// Sets that were taken.
    taken: u32,
    /// Sets that live in the bucket now.
    live: u32,
    /// The driver's last refusal by a pool that had room.
    refusal: Option<DriverError>,
    /// Sets and descriptors of the pool that refused.
    refused_by: (u32, u64),
}

/// The bucket now belongs to another shape.
#[derive(Debug)]
struct Moved;

impl PersistentSets {
    /// One set.
    ///
    /// # Safety
    /// The layout is live, and of this allocator's device.
    #[inline]
    pub(super) unsafe fn allocate_one(
        &self,
        ask: &Ask<'_>,
    ) -> Result<DescriptorSet, AllocateDescriptorSetError> {
        if let Some(set) = self.take_ready(ask) {
            return Ok(set);
        }
        let mut one = None;
        // SAFETY: the caller's promise: the layout is live, and of this allocator's device.
        unsafe { self.obtain(ask, 1, &mut |set| one = Some(set)) }?;
        // `obtain` gives as many as are asked for, or an error.
        one.ok_or(AllocateDescriptorSetError::TooManySets)
    }

    /// A set that was freed and is of the same layout, if the next one is such a set: all that [`Self::obtain`] has to
    /// do then.
    #[inline]
    fn take_ready(&self, ask: &Ask<'_>) -> Option<DescriptorSet> {
        let bucket = self.hinted_bucket(ask)?;
        let mut books = self.buckets.get(bucket)?.books.lock();
        let wanted = ask.wanted();
        if books.shape != Some(ask.shape) {
            return None;
        }
        let NextSet::Ready(at) = books.source(wanted, self.ways()) else { return None };
        let slot = books.take_ready(wanted, at)?;
        let (handle, generation) = books.set_of(slot);
        Some(DescriptorSet { handle, id: DescriptorSetId { allocator: self.id, bucket, slot, generation } })
    }

    /// Gives `want` sets to `sink`; fewer if it fails.
    ///
    /// # Safety
    /// As for [`Self::allocate_one`].
    pub(super) unsafe fn obtain(
        &self,
        ask: &Ask<'_>,
        want: u32,
        sink: &mut impl FnMut(DescriptorSet),
    ) -> Result<(), AllocateDescriptorSetError> {
        let mut left = want;
        let mut trust_hint = true;
        while left != 0 {
            let at = self.bucket_of(ask, trust_hint)?;
            let bucket = self.buckets.get(at).ok_or(AllocateDescriptorSetError::TooManySets)?;
            // SAFETY: the promises of `Self::allocate_one`, which this function's caller makes.
            match unsafe { self.visit(bucket, at, ask, left, None, sink) }? {
                Ok(visit) => left -= visit.taken,
                Err(Moved) => {
                    trust_hint = false;
                    continue;
                }
            }
            if left != 0 {
                // SAFETY: the promises of `Self::allocate_one`, which this function's caller makes.
                left = unsafe { self.grow(bucket, at, ask, left, sink) }?;
            }
        }
        Ok(())
    }

    /// Makes pools until there are enough sets. Returns how many are still missing, which is none unless the bucket now
    /// belongs to another shape.
    ///
    /// # Safety
    /// As for [`Self::allocate_one`].
    #[cold]
    unsafe fn grow(
        &self,
        bucket: &Bucket,
        at: u32,
        ask: &Ask<'_>,
        left: u32,
        sink: &mut impl FnMut(DescriptorSet),
    ) -> Result<u32, AllocateDescriptorSetError> {
        // SAFETY: the promises of `Self::allocate_one`, which this function's caller makes.
        events::after(|| unsafe { self.grow_in_turn(bucket, at, ask, left, sink) })
    }

    /// [`Self::grow`] under the bucket's lock.
    ///
    /// # Safety
    /// As for [`Self::allocate_one`].
    unsafe fn grow_in_turn(
        &self,
        bucket: &Bucket,
        at: u32,
        ask: &Ask<'_>,
        mut left: u32,
        sink: &mut impl FnMut(DescriptorSet),
    ) -> Result<u32, AllocateDescriptorSetError> {
        // While it is held the bucket keeps its shape: see `vacate`.
        let _growing = bucket.growing.lock();
        // Another thread may have made a pool meanwhile, or given sets back.
        // SAFETY: the promises of `Self::allocate_one`, which this function's caller makes.
        let mut visit = match unsafe { self.visit(bucket, at, ask, left, None, sink) }? {
            Ok(visit) => visit,
            Err(Moved) => return Ok(left),
        };
        loop {
            left -= visit.taken;
            if left == 0 {
                return Ok(0);
            }
            let pool = self.make_pool(ask, visit.live, left)?;
            // SAFETY: the promises of `Self::allocate_one`, which this function's caller makes.
            visit = match unsafe { self.visit(bucket, at, ask, left, Some(pool), sink) }? {
                Ok(visit) => visit,
                Err(Moved) => return Ok(left),
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

    /// The bucket for a request: by the layout's hint, which may be wrong, or by the registry.
    #[inline]
    fn bucket_of(&self, ask: &Ask<'_>, trust_hint: bool) -> Result<u32, AllocateDescriptorSetError> {
        match self.hinted_bucket(ask) {
            Some(bucket) if trust_hint => Ok(bucket),
            _ => self.find_bucket(ask),
        }
    }

    /// The bucket that the layout was in last, if that was one of this allocator.
    #[inline]
    fn hinted_bucket(&self, ask: &Ask<'_>) -> Option<u32> {
        let hint = ask.layout.hint();
        (hint >> 32 == u64::from(self.id))
            .then(|| u32::try_from(hint & u64::from(u32::MAX)).unwrap_or_default())
    }

    #[cold]
    fn find_bucket(&self, ask: &Ask<'_>) -> Result<u32, AllocateDescriptorSetError> {
        let mut registry = self.registry.lock();
        let at = match registry.find(&ask.shape) {
            Some(at) => at,
            None => {
                let at = registry.next();
                let bucket = self.buckets.get_or_make(at, |_| Bucket::new());
                let bucket = bucket.ok_or(AllocateDescriptorSetError::TooManySets)?;
                bucket.books.lock().shape = Some(ask.shape);
                registry.enter(ask.shape, at);
                at
            }
        };
        ask.layout.set_hint(u64::from(self.id) << 32 | u64::from(at));
        Ok(at)
    }

    /// Takes up to `want` sets out of the bucket's pools. Enters `fresh` first, where there is one.
    ///
    /// # Safety
    /// As for [`Self::allocate_one`].
    unsafe fn visit(
        &self,
        bucket: &Bucket,
        at: u32,
        ask: &Ask<'_>,
        want: u32,
        fresh: Option<DescriptorPool>,
        sink: &mut impl FnMut(DescriptorSet),
    ) -> Result<Result<Visit, Moved>, AllocateDescriptorSetError> {
        let mut graves = Vec::new();
        let result = {
            let mut books = bucket.books.lock();
            if books.shape != Some(ask.shape) {
                graves.extend(fresh);
                Ok(Err(Moved))
            } else {
                let fresh = fresh.map(|pool| {
                    let capacity = pool.max_sets();
                    books.add_pool(pool, capacity)
                });
                let mut visit = Visit { taken: 0, live: 0, refusal: None, refused_by: (0, 0) };
                let mut give = |slot: u32, set: vk::DescriptorSet, generation: u32| {
                    let id = DescriptorSetId { allocator: self.id, bucket: at, slot, generation };
                    sink(DescriptorSet { handle: set, id });
                };
                // SAFETY: the caller makes the promises of `Self::allocate_one`, and the books' lock is held.
                let filled = unsafe { self.fill(&mut books, ask, want, &mut visit, &mut graves, &mut give) };
                visit.live = books.live();
                // A pool that was made for nothing is not kept.
                if filled.is_err() {
                    let idle = fresh.filter(|&at| books.pool(at).is_some_and(|pool| pool.live == 0));
                    graves.extend(idle.and_then(|at| books.remove_pool(at)));
                }
                filled.map(|()| Ok(visit))
            }
        };
        graves.into_iter().for_each(|pool| self.bury(pool));
        if let Ok(Ok(Visit { refusal: Some(error), refused_by: (sets, descriptors), .. })) = result {
            PoolEvent { sets, descriptors, what: What::Exhausted(error) }.happened();
        }
        result
    }

    /// Takes up to `want` sets out of the pools that are there.
    ///
    /// Ends: each turn takes a set, or takes a pool out of use, or makes room that the next turn uses or takes out of
    /// use.
    ///
    /// # Safety
    /// As for [`Self::allocate_one`]; and the books' lock is held.
    unsafe fn fill(
        &self,
        books: &mut PoolBooks,
        ask: &Ask<'_>,
        want: u32,
        visit: &mut Visit,
        graves: &mut Vec<DescriptorPool>,
        give: &mut impl FnMut(u32, vk::DescriptorSet, u32),
    ) -> Result<(), AllocateDescriptorSetError> {
        let (wanted, ways) = (ask.wanted(), self.ways());
        while visit.taken < want {
            match books.source(wanted, ways) {
                NextSet::Ready(at) => {
                    let Some(slot) = books.take_ready(wanted, at) else { return Ok(()) };
                    let (set, generation) = books.set_of(slot);
                    give(slot, set, generation);
                    visit.taken += 1;
                }
                NextSet::Room(at) => {
                    // SAFETY: the caller makes the promises of `Self::fill`.
                    match unsafe { self.ask_driver(books, at, ask, want - visit.taken, give) }? {
                        Ok(taken) => visit.taken += taken,
                        Err(refusal) => {
                            visit.refusal = Some(refusal);
                            let pool = books.pool(at).map(|entry| &entry.pool);
                            visit.refused_by =
                                pool.map_or((0, 0), |pool| (pool.max_sets(), pool.counts().total()));
                            self.take_out(books, at, graves);
                        }
                    }
                }
                NextSet::Reset(at) => {
                    if self.reset(books, at).is_err() {
                        graves.extend(books.remove_pool(at));
                    }
                }
                NextSet::Replace(at) => graves.extend(books.remove_pool(at)),
                NextSet::Evict(at) => {
                    let freed = books.evictable(at).is_some_and(|(slot, set)| {
                        let Some(entry) = books.pool(at) else { return false };
                        // SAFETY: the set came out of this pool, which was made with
                        // VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT: `Ways::free` says so. It is ready: freed
                        // by the program, whose promise it was that the device is done with it, and not freed before.
                        // The lock is held.
                        let freed = unsafe { self.device.driver().free_sets(entry.pool.handle(), &[set]) };
                        if freed.is_ok() {
                            books.evict(slot);
                        }
                        freed.is_ok()
                    });
                    if !freed {
                        self.take_out(books, at, graves);
                    }
                }
                NextSet::Nowhere => return Ok(()),
            }
        }
        Ok(())
    }

    /// Asks the driver for up to `want` sets out of a pool with room. Returns how many it gave, or its refusal.
    ///
    /// # Safety
    /// As for [`Self::fill`].
    unsafe fn ask_driver(
        &self,
        books: &mut PoolBooks,
        at: u32,
        ask: &Ask<'_>,
        want: u32,
        give: &mut impl FnMut(u32, vk::DescriptorSet, u32),
    ) -> Result<Result<u32, DriverError>, AllocateDescriptorSetError> {
        let Some(entry) = books.pool(at) else { return Ok(Ok(0)) };
        let (pool, layout, wanted) = (entry.pool.handle(), ask.layout.handle(), ask.wanted());
        let count = if ask.variable.is_some() { 1 } else { want.min(entry.room).min(MOST_AT_ONCE) };
        if !books.has_numbers_for(count) {
            return Err(AllocateDescriptorSetError::TooManySets);
        }
        let driver = self.device.driver();
        let mut enter = |books: &mut PoolBooks, set| {
            let slot = books.add_live(wanted, at, set);
            let (_, generation) = books.set_of(slot);
            give(slot, set, generation);
        };
        // Pool and layout agree on update after bind and on host only, and the layout is none of push descriptors or
        // descriptor buffers: `Ask::new`.
        let result = if count == 1 {
            // SAFETY: the lock of the pool is held. The caller promises that the layout is live; it goes with the pool:
            // see above. The variable count is not above the layout's: `Ask::new`.
            let set = unsafe { entry.pool.allocate(&self.device, layout, ask.variable) };
            set.map(|set| enter(books, set))
        } else {
            let layouts = vec![layout; index(count)];
            let mut sets = Vec::new();
            // SAFETY: as for one set.
            let all = unsafe { driver.allocate_sets(pool, &layouts, &mut sets) };
            all.map(|()| sets.into_iter().for_each(|set| enter(books, set)))
        };
        match result {
            Ok(()) => Ok(Ok(count)),
            Err(refusal) if is_exhausted(refusal) => Ok(Err(refusal)),
            Err(source) => Err(AllocateDescriptorSetError::Driver { counts: ask.shape.counts, source }),
        }
    }

    /// Takes a faulty pool out of use: removes it if it is empty, or else seals it until it is.
    fn take_out(&self, books: &mut PoolBooks, at: u32, graves: &mut Vec<DescriptorPool>) {
        match books.remove_pool(at) {
            Some(pool) => graves.push(pool),
            None => books.seal(at),
        }
    }

    /// Resets a pool without live sets.
    fn reset(&self, books: &mut PoolBooks, at: u32) -> Result<(), DriverError> {
        let Some(entry) = books.pool_mut(at).filter(|entry| entry.live == 0) else { return Ok(()) };
        // SAFETY: no set of it lives: the program has freed them, or retired and collected, and promised that the
        // device is done with them. The lock is held.
        unsafe { entry.pool.reset(&self.device) }?;
        books.reset(at);
        Ok(())
    }

    /// Takes a set back. Destroys its pool if that is empty now and the others have enough.
    pub(super) fn put_back(&self, bucket: u32, slot: u32) {
        let Some(bucket) = self.buckets.get(bucket) else { return };
        let grave = {
            let mut books = bucket.books.lock();
            let at = books.release(slot);
            match books.pool(at) {
                Some(entry) if entry.live == 0 => self.emptied(&mut books, at),
                _ => None,
            }
        };
        if let Some(pool) = grave {
            self.bury(pool);
        }
    }

    /// A pool has become empty: the pool, if it is to be destroyed.
    fn emptied(&self, books: &mut PoolBooks, at: u32) -> Option<DescriptorPool> {
        if books.has_enough_without(at) {
            return books.remove_pool(at);
        }
        let sealed = books.pool(at).is_some_and(|entry| entry.sealed);
        if sealed && (!self.ways().reset || self.reset(books, at).is_err()) {
            return books.remove_pool(at);
        }
        None
    }

    /// What pools of this device support.
    #[inline]
    fn ways(&self) -> Ways {
        let quirks = self.device.quirks();
        Ways {
            // Where pools fragment, no set is freed by itself, so that there is nothing that could.
            free: !quirks.contains(DescriptorQuirks::FRAGMENTS),
            reset: !quirks.contains(DescriptorQuirks::RESET_LEAKS),
        }
    }

    /// Makes a pool of the ideal size. If there is no room for it, makes the smallest that will do, and destroys idle
    /// pools first if that fails too. The limit for update after bind counts as room as long as it can be kept.
    #[cold]
    fn make_pool(
        &self,
        ask: &Ask<'_>,
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

    fn create_pool(&self, ask: &Ask<'_>, sets: u32) -> Result<DescriptorPool, CreateDescriptorPoolError> {
        let mut flags = ask.shape.flags;
        if self.ways().free {
            flags |= vk::DescriptorPoolCreateFlags::FREE_DESCRIPTOR_SET;
        }
        let info = DescriptorPoolInfo {
            max_sets: sets,
            counts: ask.shape.counts.times(sets),
            flags,
            // All types: layouts with other lists may share the pool.
            mutable_types: &[],
            name: "sublet persistent sets",
            ordinal: self.made.fetch_add(1, Ordering::Relaxed),
        };
        let pool = DescriptorPool::create(&self.device, &info)?;
        self.pools.fetch_add(1, Ordering::Relaxed);
        Ok(pool)
    }

    /// Destroys idle pools until no more than `keep` are left, and returns how many it destroyed. Starts where the last
    /// search ended, so that every bucket has its turn.
    pub(super) fn release_idle(&self, keep: u32) -> u32 {
        let buckets = self.registry.lock().used();
        let idle_of = |at: u32| {
            let bucket = self.buckets.get(at)?;
            let books = bucket.books.lock();
            Some(narrow(books.pools().filter(|pool| pool.live == 0).count()))
        };
        let idle: u32 = (0..buckets).filter_map(idle_of).sum();
        let mut surplus = surplus(idle, self.pools.load(Ordering::Relaxed), keep, 0);
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
                    let mut books = bucket.books.lock();
                    books.idle_pool().and_then(|idle| books.remove_pool(idle))
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

    /// A bucket without pools is free for another shape.
    fn vacate(&self, bucket: &Bucket) {
        let mut registry = self.registry.lock();
        // A thread that makes a pool for it relies on its shape.
        let Some(_growing) = bucket.growing.try_lock() else { return };
        let mut books = bucket.books.lock();
        if !books.is_empty() {
            return;
        }
        if let Some(shape) = books.shape.take() {
            registry.leave(&shape);
        }
    }
}

/// Whether a smaller pool may succeed.
fn may_be_smaller(error: &CreateDescriptorPoolError) -> bool {
    match error {
        CreateDescriptorPoolError::UpdateAfterBindLimit { .. } => true,
        CreateDescriptorPoolError::Driver { source, .. } => {
            source.is_out_of_memory() || source.result == vk::Result::ERROR_FRAGMENTATION
        }
        CreateDescriptorPoolError::Unsupported { .. } => false,
    }
}
