//! A part of a vector that one thread uses without contention.
//!
//! A shard divides **leased ranges** of the vector's blocks. To the core such a range is one used chunk; to the shard
//! it is a region of its own engine. Ranges start small and grow with the shard's total, so that many shards do not
//! reserve much more than one would.

use ash::vk;

use super::super::mapped_pointer::MappedPointer;
use super::annotations::{Annotation, Annotations, annotate};
use super::returns::{BATCH, Left, Returns, limit, look_every};
use super::state::Refused;
use super::{AllocationKey, FOREIGN, Grant, VectorRequest};
use crate::base::sync::{CoreGuard, CoreMutex};
use crate::engine::{Algorithm, LEAST_FOR_SLABS};
use crate::error::ForeignHandle;
use crate::pool::VectorConfig;
use sublet_engines::Alignment;
use sublet_engines::cast::{index, narrow};
use sublet_engines::{ChunkInfo, Key, Metadata, RegionId, Request, Strategy, Tlsf, Usage};

/// Bytes of a shard's first range.
const FIRST_LEASE: u64 = 1 << 20;
/// A range has at least this many bytes. Ranges below the first one's are leased if no block has room for that.
const LEAST_LEASE: u64 = 64 << 10;
/// A range has at most this many bytes.
const LARGEST_LEASE: u64 = 16 << 20;
/// A range has at most the bytes of a block of the largest size, divided by this.
const LEASES_IN_A_BLOCK: u64 = 16;
/// A new range has the bytes that the shard has already, divided by this.
const GROWTH: u64 = 4;
/// Shards serve requests up to the size of the largest range, divided by this.
const LARGEST_PART: u64 = 8;
/// A new range has at least this many times the size of the request that needs it.
const NEEDED_PART: u64 = 4;
/// Ranges start at a multiple of this. So an offset that is aligned within a range is also aligned within its block, up
/// to this alignment.
const LEASE_ALIGNMENT: Alignment = Alignment::from_log2(16);

/// Parameters for leasing ranges to the shards of one vector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leasing {
    largest_lease: u64,
    granularity: Alignment,
    min_alignment: Alignment,
    /// True if the core and the shards use slabs.
    has_slabs: bool,
}

impl Leasing {
    /// `None` for vectors whose order of placement matters, whose blocks are too small for leasing, or whose alignments
    /// exceed that of ranges.
    pub(super) fn of(config: &VectorConfig) -> Option<Self> {
        let largest_lease = LARGEST_LEASE.min(config.block_size / LEASES_IN_A_BLOCK);
        let is_possible = config.algorithm == Algorithm::Tlsf
            && largest_lease >= FIRST_LEASE
            && config.granularity <= LEASE_ALIGNMENT
            && config.min_alignment <= LEASE_ALIGNMENT;
        let VectorConfig { granularity, min_alignment, .. } = *config;
        let has_slabs = config.block_size >= LEAST_FOR_SLABS;
        is_possible.then_some(Self { largest_lease, granularity, min_alignment, has_slabs })
    }

    /// Returns true if shards serve requests like this one. Large requests are rare, and requests for the best place
    /// must see the whole vector.
    #[inline]
    pub(super) fn serves(&self, request: &VectorRequest) -> bool {
        self.serves_size(request.size, request.alignment)
            && matches!(request.strategy, Strategy::Balanced | Strategy::MinTime)
    }

    /// [`Self::serves`], without the strategy.
    #[inline]
    fn serves_size(&self, size: u64, alignment: Alignment) -> bool {
        size <= self.largest_lease / LARGEST_PART && alignment <= LEASE_ALIGNMENT
    }

    pub(super) const fn alignment() -> Alignment {
        LEASE_ALIGNMENT
    }
}

/// A range of a block that a shard divides.
#[derive(Debug)]
#[must_use]
pub(super) struct LeasedRange {
    /// The key of its chunk in the core's engine.
    pub(super) key: Key,
    /// The use of the vector in which it was leased.
    pub(super) generation: u32,
    pub(super) block: RegionId,
    pub(super) memory: vk::DeviceMemory,
    /// Bytes from the start of the block.
    pub(super) base: u64,
    pub(super) size: u64,
    /// The address at which the block is mapped; [`MappedPointer::UNMAPPED`] until an allocation in the range needs a
    /// persistent mapping. From then on the range counts as one user of the block's mapping until it is returned.
    pub(super) mapped: MappedPointer,
}

/// The state of a shard in use: an engine, and the ranges that it divides.
#[derive(Debug)]
struct OpenShard {
    leasing: Leasing,
    engine: Tlsf,
    /// By region.
    leases: Vec<Option<LeasedRange>>,
    /// Bytes of all ranges.
    bytes: u64,
    /// The number of empty ranges.
    empty: u32,
    annotations: Annotations,
    /// The last request that the engine refused, and the counters at that time.
    refused: Option<Refused>,
}

/// The state under a shard's lock. Together with the lock it fits into a cache line.
#[derive(Debug, Default)]
pub(super) struct ShardState {
    /// The use of the vector to which `open` belongs.
    generation: u32,
    /// Live allocations, including those in the ring.
    live: u32,
    /// The queue limit that was published last.
    published_limit: u32,
    /// Counts operations of the shard's own thread; wraps.
    uses: u32,
    /// The value of `uses` at the last check for a quiet shard.
    seen: u32,
    /// The value of `uses` when the thread of another shard last checked for activity here.
    seen_from_outside: u32,
    /// The value of `uses` when the shard's own thread last checked for activity in other shards.
    looked_around: u32,
    /// Boxed: most vectors never have a shard.
    open: Option<Box<OpenShard>>,
}

/// The counters of a shard, and the generation of its first range.
#[cfg(all(test, not(loom)))]
pub(super) struct ShardCounters<'a> {
    pub(super) bytes: &'a mut u64,
    pub(super) empty: &'a mut u32,
    pub(super) annotations: &'a mut Annotations,
    pub(super) generation: &'a mut u32,
}

impl ShardState {
    fn open_of(&mut self, live: AllocationKey) -> Result<&mut OpenShard, ForeignHandle> {
        if self.generation != live.generation {
            return Err(FOREIGN);
        }
        self.open.as_deref_mut().ok_or(FOREIGN)
    }

    /// Returns true if a range has room for the request. `any` also admits requests that shards usually do not serve.
    pub(super) fn fits(&self, request: &VectorRequest, any: bool) -> bool {
        let Some(open) = self.open.as_deref() else { return false };
        let is_served = if any { request.alignment <= LEASE_ALIGNMENT } else { open.leasing.serves(request) };
        let wanted = request.of_engine(open.leasing.granularity, open.leasing.min_alignment);
        is_served && open.engine.fits(&Request { strategy: Strategy::Balanced, ..wanted }) == Ok(true)
    }

    /// Returns `None` if no range has room, or if shards do not serve the request. `any` also admits requests that
    /// shards usually do not serve, for a vector without any other free place.
    #[inline]
    pub(super) fn allocate(&mut self, request: &VectorRequest, shard: u8, any: bool) -> Option<Grant> {
        let open = self.open.as_deref_mut()?;
        // Larger alignments do not carry over from the range to the block.
        let is_served = if any { request.alignment <= LEASE_ALIGNMENT } else { open.leasing.serves(request) };
        if !is_served {
            return None;
        }
        let mut wanted = request.of_engine(open.leasing.granularity, open.leasing.min_alignment);
        if any {
            // A search for the lowest offset would make the engine maintain the order of offsets in every later call.
            wanted.strategy = Strategy::Balanced;
        }
        let asked = Refused { wanted, uses: self.uses, usage: open.engine.usage() };
        if open.refused == Some(asked) {
            return None;
        }
        let Ok((key, span)) = open.engine.allocate(&wanted) else {
            open.refused = open.engine.has_looked_at_all().then_some(asked);
            return None;
        };
        self.uses = self.uses.wrapping_add(1);
        self.live += 1;
        Some(open.granted(key, span.region, span.offset, request.mapped, self.generation, shard))
    }

    /// Frees an allocation. Returns true if that emptied a range.
    #[inline(always)]
    fn free(&mut self, live: AllocationKey) -> Result<bool, ForeignHandle> {
        self.open_of(live)?;
        self.take_back(live.key)
    }

    /// Frees an allocation of the current use of the vector. Returns true if that emptied a range.
    #[inline(always)]
    fn take_back(&mut self, key: Key) -> Result<bool, ForeignHandle> {
        let open = self.open.as_deref_mut().ok_or(FOREIGN)?;
        let (_, is_empty) = open.engine.take_back(key).ok_or(FOREIGN)?;
        if !open.annotations.is_empty() {
            open.drop_annotation(key);
        }
        open.empty += u32::from(is_empty);
        self.live -= 1;
        Ok(is_empty)
    }

    /// Returns true if there are more empty ranges than are kept.
    #[inline]
    pub(super) fn has_surplus(&self) -> bool {
        self.open.as_deref().is_some_and(|open| open.empty > open.kept(self.live))
    }

    /// Takes the empty ranges that are not kept.
    #[cold]
    pub(super) fn take_surplus(&mut self, taken: &mut Vec<LeasedRange>) {
        if let Some(open) = self.open.as_deref_mut() {
            open.take_empty(open.kept(self.live), taken);
        }
    }

    /// Sizes of ranges that would make room for a request, largest first.
    pub(super) fn next_leases(
        &self,
        leasing: &Leasing,
        request: &VectorRequest,
    ) -> impl Iterator<Item = u64> + use<> {
        let bytes = self.open.as_deref().map_or(0, |open| open.bytes);
        let wanted = request.of_engine(leasing.granularity, leasing.min_alignment);
        let grown = (bytes / GROWTH).max(wanted.size.saturating_mul(NEEDED_PART)).max(FIRST_LEASE);
        let best = grown.checked_next_power_of_two().unwrap_or(u64::MAX).min(leasing.largest_lease);
        let least = wanted.size.saturating_mul(NEEDED_PART).clamp(LEAST_LEASE, FIRST_LEASE).max(wanted.size);
        std::iter::successors(Some(best), |size| Some(size / 2)).take_while(move |&size| size >= least)
    }

    /// Adds a range. Returns it if the engine accepts no more.
    fn add_lease(&mut self, leasing: &Leasing, lease: LeasedRange) -> Result<(), LeasedRange> {
        if self.generation != lease.generation {
            self.close();
            self.generation = lease.generation;
        }
        let open = self.open.get_or_insert_with(|| {
            let new = if leasing.has_slabs { Tlsf::with_slabs } else { Tlsf::new };
            Box::new(OpenShard {
                leasing: *leasing,
                engine: new(leasing.largest_lease),
                leases: Vec::new(),
                bytes: 0,
                empty: 0,
                annotations: Annotations::default(),
                refused: None,
            })
        });
        let Ok(region) = open.engine.add_region(&lease.size) else {
            return Err(lease);
        };
        let at = index(region.0);
        if at >= open.leases.len() {
            open.leases.resize_with(at + 1, || None);
        }
        open.bytes += lease.size;
        open.empty += 1;
        open.leases[at] = Some(lease);
        Ok(())
    }

    /// Takes all empty ranges.
    pub(super) fn take_empty(&mut self, taken: &mut Vec<LeasedRange>) {
        if let Some(open) = self.open.as_deref_mut() {
            open.take_empty(0, taken);
        }
    }

    /// Returns true if the shard was not used since the last call.
    pub(super) fn is_quiet(&mut self) -> bool {
        let is_quiet = self.uses == self.seen;
        self.seen = self.uses;
        is_quiet
    }

    /// Returns true if the shard's own thread should check whether it is alone.
    const fn is_time_to_look_around(&self) -> bool {
        self.uses.wrapping_sub(self.looked_around) >= LOOK_AROUND_EVERY
    }

    /// Drops all state. The ranges need not return, because their use of the vector ends.
    fn close(&mut self) {
        self.open = None;
        self.live = 0;
    }

    /// The block that holds an allocation.
    pub(super) fn block_of(&mut self, live: AllocationKey) -> Result<RegionId, ForeignHandle> {
        self.open_of(live)?.lease_of(live.key).map(|lease| lease.block)
    }

    /// Sets where the block of an allocation's range is mapped. Returns false if the range was mapped already.
    pub(super) fn set_mapped(
        &mut self,
        live: AllocationKey,
        mapped: MappedPointer,
    ) -> Result<bool, ForeignHandle> {
        let lease = self.open_of(live)?.lease_of(live.key)?;
        let is_news = !lease.mapped.is_mapped();
        lease.mapped = mapped;
        Ok(is_news)
    }

    pub(super) fn annotate(
        &mut self,
        live: AllocationKey,
        change: impl FnOnce(&mut Annotation),
    ) -> Result<(), ForeignHandle> {
        let open = self.open_of(live)?;
        open.lease_of(live.key)?;
        annotate(&mut open.annotations, live.key, change);
        Ok(())
    }

    pub(super) fn annotation(&mut self, live: AllocationKey) -> Result<Annotation, ForeignHandle> {
        let open = self.open_of(live)?;
        open.lease_of(live.key)?;
        Ok(open.annotations.get(&live.key).cloned().unwrap_or_default())
    }

    /// Sums over the ranges.
    pub(super) fn usage(&self) -> Usage {
        self.open.as_deref().map_or(Usage::default(), |open| open.engine.usage())
    }

    pub(super) fn largest_free(&self) -> u64 {
        self.open.as_deref().map_or(0, |open| open.engine.largest_free())
    }

    /// Every range, with its key in the core.
    pub(super) fn leases(&self) -> impl Iterator<Item = (Key, RegionId)> {
        let leases = self.open.as_deref().map_or(&[][..], |open| &open.leases);
        (0..).zip(leases).filter_map(|(id, lease)| lease.as_ref().map(|lease| (lease.key, RegionId(id))))
    }

    /// Visits the chunks of one range, with offsets in the block, and their annotations.
    pub(super) fn walk(&self, region: RegionId, visit: &mut dyn FnMut(ChunkInfo, Option<&Annotation>)) {
        let Some(open) = self.open.as_deref() else { return };
        let Some(lease) = open.leases.get(index(region.0)).and_then(Option::as_ref) else { return };
        open.engine.walk(region, &mut |chunk| {
            let annotation = chunk.used.and_then(|(key, _)| open.annotations.get(&key));
            visit(ChunkInfo { offset: lease.base + chunk.offset, ..chunk }, annotation);
        });
    }

    /// The memory of each range that counts as a user of its mapping.
    #[cfg(all(test, not(loom)))]
    pub(super) fn mapped_leases(&self) -> Vec<vk::DeviceMemory> {
        let leases = self.open.iter().flat_map(|open| open.leases.iter().flatten());
        leases.filter(|lease| lease.mapped.is_mapped()).map(|lease| lease.memory).collect()
    }

    /// The fields that `validate` checks, for tests that damage them.
    #[cfg(all(test, not(loom)))]
    pub(super) fn counters(&mut self) -> ShardCounters<'_> {
        let open = self.open.as_deref_mut().expect("a shard in use");
        let lease = open.leases.iter_mut().flatten().next().expect("a shard with a lease");
        ShardCounters {
            bytes: &mut open.bytes,
            empty: &mut open.empty,
            annotations: &mut open.annotations,
            generation: &mut lease.generation,
        }
    }

    /// Makes the engine reject further ranges.
    #[cfg(all(test, not(loom)))]
    pub(super) fn refuse_leases(&mut self) {
        self.open.as_deref_mut().expect("a shard in use").engine.limit_chunks(0);
    }

    /// Checks the state of this shard.
    ///
    /// # Panics
    /// Panics with the violated invariant.
    pub(super) fn validate(&self) {
        let Some(open) = self.open.as_deref() else { return };
        open.engine.validate();
        let leases = || open.leases.iter().flatten();
        assert_eq!(leases().map(|lease| lease.size).sum::<u64>(), open.bytes, "S1: bytes of the leases");
        let mut empty = 0;
        for (id, lease) in (0..).zip(&open.leases) {
            if let Some(lease) = lease {
                let usage = open.engine.region_usage(RegionId(id));
                assert_eq!(usage.capacity, lease.size, "S2: a region is as large as its lease");
                assert_eq!(lease.generation, self.generation, "S3: a lease is of this use of the vector");
                empty += u32::from(usage.used_chunks == 0);
            }
        }
        assert_eq!(empty, open.empty, "S4: empty leases");
        let live = open.engine.usage().used_chunks;
        assert_eq!(live, u64::from(self.live), "S6: live allocations");
        let kept =
            |(&key, annotation): (&Key, &Annotation)| !annotation.is_empty() && open.engine.span(key).is_ok();
        assert!(
            open.annotations.iter().all(kept),
            "S5: only live allocations have annotations, and not empty ones"
        );
    }
}

impl OpenShard {
    /// Converts an engine's result to a `Grant`.
    #[inline(always)]
    fn granted(
        &mut self,
        key: Key,
        region: RegionId,
        offset: u64,
        mapped: bool,
        generation: u32,
        shard: u8,
    ) -> Grant {
        let lease = self.leases[index(region.0)].as_ref().expect("B2: a region of a shard has a lease");
        let offset = lease.base + offset;
        let mapped = if mapped { lease.mapped.at(offset) } else { MappedPointer::UNMAPPED };
        let memory = lease.memory;
        if self.engine.used_chunks(region) == 1 {
            self.empty -= 1;
        }
        Grant { memory, offset, mapped, key, generation, shard }
    }

    fn lease_of(&mut self, key: Key) -> Result<&mut LeasedRange, ForeignHandle> {
        let span = self.engine.span(key).map_err(|_| FOREIGN)?;
        self.leases.get_mut(index(span.region.0)).and_then(Option::as_mut).ok_or(FOREIGN)
    }

    #[cold]
    #[inline(never)]
    fn drop_annotation(&mut self, key: Key) {
        self.annotations.remove(&key);
    }

    fn take_lease(&mut self, region: RegionId) -> Option<LeasedRange> {
        let slot = self.leases.get_mut(index(region.0))?;
        slot.as_ref()?;
        self.engine.remove_region(region).ok()?;
        let lease = slot.take()?;
        self.bytes -= lease.size;
        self.empty -= 1;
        Some(lease)
    }

    /// The number of empty ranges to keep while `live` allocations exist. One is kept if the shard has allocations, or
    /// only its first range, which is small. Otherwise none is kept.
    #[inline]
    fn kept(&self, live: u32) -> u32 {
        u32::from(live > 0 || self.bytes <= FIRST_LEASE)
    }

    /// Takes empty ranges, the newest first, until `kept` of them are left.
    fn take_empty(&mut self, kept: u32, taken: &mut Vec<LeasedRange>) {
        for region in (0..narrow(self.leases.len())).rev() {
            if self.empty <= kept {
                break;
            }
            taken.extend(self.take_lease(RegionId(region)));
        }
    }
}

/// A shard: the state under its lock, and the ring for other threads' frees.
pub(super) struct Shard {
    state: CoreMutex<ShardState>,
    returns: Returns,
}

/// The own thread checks whether it is the only active thread with a shard once in this many operations.
pub(super) const LOOK_AROUND_EVERY: u32 = 1 << 16;

impl Shard {
    pub(super) fn new() -> Self {
        Self { state: CoreMutex::new(ShardState::default()), returns: Returns::new() }
    }

    /// Locks the shard and drains its ring. On return, all keys left before this call are freed, except those behind a
    /// slot that another thread has reserved but not written. That thread or a later one frees them.
    pub(super) fn lock(&self) -> CoreGuard<'_, ShardState> {
        let mut state = self.state.lock();
        self.take_returns(&mut state);
        state
    }

    /// [`Self::lock`], or `None` if it would have to wait.
    pub(super) fn try_lock(&self) -> Option<CoreGuard<'_, ShardState>> {
        let mut state = self.state.try_lock()?;
        self.take_returns(&mut state);
        Some(state)
    }

    /// The fast path for the shard's own thread. On `None`, the caller tries the slow path. Not inlined, to keep
    /// registers free for threads without a shard.
    #[inline(never)]
    pub(super) fn try_allocate(&self, request: &VectorRequest, number: u8) -> Option<Grant> {
        let mut state = self.state.lock();
        if state.uses % look_every(state.live) == 0 && (self.returns.is_waiting() || state.has_surplus()) {
            return None;
        }
        if state.is_time_to_look_around() {
            return None;
        }
        let generation = state.generation;
        let open = state.open.as_deref_mut()?;
        let Leasing { granularity, min_alignment, .. } = open.leasing;
        if !open.leasing.serves_size(request.size, request.alignment) {
            return None;
        }
        let (size, alignment) = request.placed(granularity, min_alignment);
        let (key, region, offset) = open.engine.try_allocate(size, alignment, request.tag)?;
        let granted = open.granted(key, region, offset, request.mapped, generation, number);
        state.uses = state.uses.wrapping_add(1);
        state.live += 1;
        self.publish_live(&mut state);
        Some(granted)
    }

    /// Returns true if nothing seems to be allocated. An estimate without the lock.
    pub(super) fn is_idle(&self) -> bool {
        self.returns.is_idle()
    }

    /// [`Self::lock`], without draining the ring.
    #[cfg(all(loom, test))]
    pub(super) fn lock_as_it_is(&self) -> CoreGuard<'_, ShardState> {
        self.state.lock()
    }

    /// Returns true if the own thread should check whether it is alone, and starts the next period.
    pub(super) fn begins_to_look_around(&self) -> bool {
        let mut state = self.state.lock();
        let is_time = state.is_time_to_look_around();
        if is_time {
            state.looked_around = state.uses;
        }
        is_time
    }

    /// Returns true if the shard was not used since the last call. A shard whose lock is held counts as used.
    pub(super) fn was_left_alone(&self) -> bool {
        let Some(mut state) = self.state.try_lock() else { return false };
        let uses = state.uses;
        std::mem::replace(&mut state.seen_from_outside, uses) == uses
    }

    /// Frees an allocation for the shard's own thread. Returns true if there may be empty ranges for
    /// [`Self::take_surplus`].
    #[inline(always)]
    pub(super) fn free_in_own_shard(&self, live: AllocationKey) -> Result<bool, ForeignHandle> {
        let mut state = self.state.lock();
        state.uses = state.uses.wrapping_add(1);
        let has_emptied = state.free(live)?;
        // Publishing may drain the ring.
        let has_told = self.publish_live(&mut state);
        Ok(has_emptied || (has_told && state.has_surplus()))
    }

    /// Frees an allocation for another thread: leaves it in the ring, or takes the lock. Returns true if there may be
    /// empty ranges for [`Self::take_surplus`].
    #[inline(never)]
    pub(super) fn free_in_other_shard(&self, live: AllocationKey) -> Result<bool, ForeignHandle> {
        let left = self.returns.leave(live.key, live.generation);
        if left == Left::There {
            return Ok(false);
        }
        let mut state = match left {
            Left::Soon => match self.state.try_lock() {
                Some(state) => state,
                None => return Ok(false),
            },
            _ => self.state.lock(),
        };
        self.take_returns(&mut state);
        let freed = if left == Left::No { state.free(live) } else { Ok(false) };
        self.publish_live(&mut state);
        freed.map(|has_emptied| has_emptied || state.has_surplus())
    }

    /// Takes the ranges that are no longer needed. Takes all empty ones if the shard's thread has returned to the core.
    #[cold]
    pub(super) fn take_surplus(&self, is_attached: bool) -> Vec<LeasedRange> {
        let mut surplus = Vec::new();
        let mut state = self.state.lock();
        if !is_attached {
            state.take_empty(&mut surplus);
        } else if state.has_surplus() {
            state.take_surplus(&mut surplus);
        }
        surplus
    }

    /// Adds a range. Returns it if the engine accepts no more.
    pub(super) fn add_lease(&self, leasing: &Leasing, lease: LeasedRange) -> Result<(), LeasedRange> {
        let mut state = self.lock();
        let generation = lease.generation;
        state.add_lease(leasing, lease)?;
        self.returns.open_for(generation);
        Ok(())
    }

    /// Drops all state. The ranges need not return, because their use of the vector ends.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        self.returns.open_for(0);
        state.close();
        self.publish_live(&mut state);
    }

    /// Frees the keys in the ring.
    #[cold]
    #[inline(never)]
    fn take_returns(&self, state: &mut ShardState) {
        let mut keys = [None; BATCH];
        loop {
            let taken = self.returns.take(&mut keys);
            // The ring only accepts keys of this use of the vector, and the types ensure that each allocation is freed
            // once. A duplicate is ignored.
            for key in keys.iter_mut().map_while(Option::take) {
                let _ = state.take_back(key);
            }
            if taken == 0 {
                break;
            }
            self.returns.pass(taken, state.live);
        }
        self.publish_live(state);
    }

    /// Publishes the queue limit if it changed. Returns true if it did.
    #[inline(always)]
    fn publish_live(&self, state: &mut ShardState) -> bool {
        let is_news = limit(state.live) != state.published_limit;
        if is_news {
            self.publish_changed(state);
        }
        is_news
    }

    #[inline(never)]
    fn publish_changed(&self, state: &mut ShardState) {
        state.published_limit = limit(state.live);
        if self.returns.publish_live(state.live) {
            self.take_returns(state);
        }
    }
}
