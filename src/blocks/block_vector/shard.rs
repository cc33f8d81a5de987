//! A part of a vector that, as long as threads keep to their own, only one of them works on.
//!
//! A shard divides **loans**: ranges of the vector's blocks that the core has set aside for it. To the core a loan is
//! one used chunk; to the shard it is a region of an engine of its own. Loans start small and grow with what the shard
//! holds, so that many shards do not reserve much more than one would.
#![forbid(unsafe_code)]

use ash::vk;

use super::super::mapped_pointer::MappedPointer;
use super::annotations::{Annotation, Annotations, annotate};
use super::returns::{BATCH, Left, Returns, limit};
use super::state::Refused;
use super::{FOREIGN, Grant, Live, VectorRequest};
use crate::base::align::Alignment;
use crate::base::cast::{index, narrow};
use crate::base::sync::{CoreGuard, CoreMutex};
use crate::error::ForeignHandle;
use crate::metadata::{
    Algorithm, Chunk, Key, LEAST_FOR_SLABS, Metadata, RegionId, Request, Strategy, Tlsf, Usage,
};
use crate::pool::VectorConfig;

/// Bytes of a shard's first loan.
const FIRST_LOAN: u64 = 1 << 20;
/// The most bytes of a loan, as far as blocks are large enough.
const LARGEST_LOAN: u64 = 16 << 20;
/// A loan is at most this part of a block.
const LOANS_IN_A_BLOCK: u64 = 16;
/// A new loan is this part of what the shard has already.
const GROWTH: u64 = 4;
/// The most that a shard divides is this part of the largest loan.
const LARGEST_PART: u64 = 8;
/// The least part of a new loan that the request it is for may be.
const NEEDED_PART: u64 = 4;
/// Loans start at a multiple of this, and so every smaller alignment within a loan is one within its block.
const LOAN_ALIGNMENT: Alignment = Alignment::from_log2(16);

/// What is lent to the shards of one vector, if anything.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lending {
    largest_loan: u64,
    granularity: Alignment,
    min_alignment: Alignment,
    /// Whether the core has slabs, and so the shards.
    has_slabs: bool,
}

impl Lending {
    /// `None` for vectors whose order of placement matters, or whose blocks are too small to be worth it.
    pub(super) fn of(config: &VectorConfig) -> Option<Self> {
        let largest_loan = LARGEST_LOAN.min(config.block_size / LOANS_IN_A_BLOCK);
        let is_possible = config.algorithm == Algorithm::Tlsf
            && largest_loan >= FIRST_LOAN
            && config.granularity <= LOAN_ALIGNMENT
            && config.min_alignment <= LOAN_ALIGNMENT;
        let VectorConfig { granularity, min_alignment, .. } = *config;
        let has_slabs = config.block_size >= LEAST_FOR_SLABS;
        is_possible.then_some(Self { largest_loan, granularity, min_alignment, has_slabs })
    }

    /// Whether shards divide requests like this one. Large ones are rare for what they cost anyway, and those that ask
    /// for the best place mean the best of all.
    #[inline]
    pub(super) fn serves(&self, request: &VectorRequest) -> bool {
        self.serves_size(request.size, request.alignment)
            && matches!(request.strategy, Strategy::Balanced | Strategy::MinTime)
    }

    /// As [`Self::serves`], of a request without a strategy.
    #[inline]
    fn serves_size(&self, size: u64, alignment: Alignment) -> bool {
        size <= self.largest_loan / LARGEST_PART && alignment <= LOAN_ALIGNMENT
    }

    pub(super) const fn alignment() -> Alignment {
        LOAN_ALIGNMENT
    }
}

/// A range of a block that a shard divides.
#[derive(Debug)]
#[must_use]
pub(super) struct Loan {
    /// Of the chunk in the core's engine.
    pub(super) key: Key,
    /// The use of the vector in which it was lent.
    pub(super) generation: u32,
    pub(super) block: RegionId,
    pub(super) memory: vk::DeviceMemory,
    /// Bytes from the start of the block.
    pub(super) base: u64,
    pub(super) size: u64,
    /// Where the block is mapped; [`MappedPointer::UNMAPPED`] until something in the loan wants to stay mapped. From
    /// then on the loan counts as one user of the block's mapping, for as long as it lasts.
    pub(super) mapped: MappedPointer,
}

/// What is in use: an engine, and the loans that it divides.
#[derive(Debug)]
struct Open {
    lending: Lending,
    engine: Tlsf,
    /// By region.
    loans: Vec<Option<Loan>>,
    /// Bytes of all loans.
    bytes: u64,
    /// Loans in which nothing is allocated.
    empty: u32,
    annotations: Annotations,
    /// What the engine has refused last, and how it was then.
    refused: Option<Refused>,
}

/// What the lock of a shard guards. With the lock it fits into a cache line.
#[derive(Debug, Default)]
pub(super) struct ShardState {
    /// The use of the vector that `open` is of.
    generation: u32,
    /// Allocations that were granted and not taken back yet.
    live: u32,
    /// The limit that other threads were told last.
    told: u32,
    /// Counts what the shard's own thread does here, and wraps.
    uses: u32,
    /// `uses` when somebody looked whether this shard is quiet.
    seen: u32,
    /// `uses` when another thread looked whether it is alone.
    seen_from_outside: u32,
    /// `uses` when the shard's own thread looked whether it is alone.
    looked_around: u32,
    /// Boxed: most vectors never have a shard.
    open: Option<Box<Open>>,
}

/// The books of a shard, and the generation of its first loan.
#[cfg(all(test, not(loom)))]
pub(super) struct Books<'a> {
    pub(super) bytes: &'a mut u64,
    pub(super) empty: &'a mut u32,
    pub(super) annotations: &'a mut Annotations,
    pub(super) generation: &'a mut u32,
}

impl ShardState {
    fn open_of(&mut self, live: Live) -> Result<&mut Open, ForeignHandle> {
        if self.generation != live.generation {
            return Err(FOREIGN);
        }
        self.open.as_deref_mut().ok_or(FOREIGN)
    }

    /// Whether a loan has room for the request; `any`: also for one that is usually none for a shard.
    pub(super) fn fits(&self, request: &VectorRequest, any: bool) -> bool {
        let Some(open) = self.open.as_deref() else { return false };
        let is_served = if any { request.alignment <= LOAN_ALIGNMENT } else { open.lending.serves(request) };
        let wanted = request.of_engine(open.lending.granularity, open.lending.min_alignment);
        is_served && open.engine.fits(&Request { strategy: Strategy::Balanced, ..wanted }) == Ok(true)
    }

    /// `None`: no loan has room, or the request is none for a shard. `any`: also one that is usually none, for a vector
    /// that has no other place left.
    #[inline]
    pub(super) fn place(&mut self, request: &VectorRequest, shard: u8, any: bool) -> Option<Grant> {
        let open = self.open.as_deref_mut()?;
        // Beyond that alignment, a multiple within the loan is none within the block.
        let is_served = if any { request.alignment <= LOAN_ALIGNMENT } else { open.lending.serves(request) };
        if !is_served {
            return None;
        }
        let mut wanted = request.of_engine(open.lending.granularity, open.lending.min_alignment);
        if any {
            // One look for the lowest offset would make every other call keep the order of offsets.
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

    /// No loan has room for the request, and the engine is not asked again until that may have changed.
    #[cold]
    #[inline(never)]
    fn refuse(&mut self, request: &VectorRequest) {
        let uses = self.uses;
        if let Some(open) = self.open.as_deref_mut() {
            let wanted = request.of_engine(open.lending.granularity, open.lending.min_alignment);
            let refused = Refused { wanted, uses, usage: open.engine.usage() };
            open.refused = open.engine.has_looked_at_all().then_some(refused);
        }
    }

    /// Takes an allocation back. Whether that emptied a loan.
    #[inline(always)]
    fn free(&mut self, live: Live) -> Result<bool, ForeignHandle> {
        self.open_of(live)?;
        self.take_back(live.key)
    }

    /// Takes back an allocation of this use of the vector. Whether that emptied a loan.
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

    /// Whether there are more empty loans than are kept.
    #[inline]
    pub(super) fn has_surplus(&self) -> bool {
        self.open.as_deref().is_some_and(|open| open.empty > open.kept(self.live))
    }

    /// Takes the empty loans that are not kept.
    #[cold]
    pub(super) fn take_surplus(&mut self, taken: &mut Vec<Loan>) {
        if let Some(open) = self.open.as_deref_mut() {
            open.take_empty(open.kept(self.live), taken);
        }
    }

    /// Bytes of the loans, the best size first, that would help with a request that found no room.
    pub(super) fn next_loans(
        &self,
        lending: &Lending,
        request: &VectorRequest,
    ) -> impl Iterator<Item = u64> + use<> {
        let bytes = self.open.as_deref().map_or(0, |open| open.bytes);
        let wanted = request.of_engine(lending.granularity, lending.min_alignment);
        let grown = (bytes / GROWTH).max(wanted.size.saturating_mul(NEEDED_PART)).max(FIRST_LOAN);
        let best = grown.checked_next_power_of_two().unwrap_or(u64::MAX).min(lending.largest_loan);
        let least = wanted.size.max(FIRST_LOAN);
        std::iter::successors(Some(best), |size| Some(size / 2)).take_while(move |&size| size >= least)
    }

    /// Takes a loan in. It comes back if there can be no more.
    fn add_loan(&mut self, lending: &Lending, loan: Loan) -> Result<(), Loan> {
        if self.generation != loan.generation {
            self.close();
            self.generation = loan.generation;
        }
        let open = self.open.get_or_insert_with(|| {
            let new = if lending.has_slabs { Tlsf::with_slabs } else { Tlsf::new };
            Box::new(Open {
                lending: *lending,
                engine: new(lending.largest_loan),
                loans: Vec::new(),
                bytes: 0,
                empty: 0,
                annotations: Annotations::default(),
                refused: None,
            })
        });
        let Ok(region) = open.engine.add_region(&loan.size) else {
            return Err(loan);
        };
        let at = index(region.0);
        if at >= open.loans.len() {
            open.loans.resize_with(at + 1, || None);
        }
        open.bytes += loan.size;
        open.empty += 1;
        open.loans[at] = Some(loan);
        Ok(())
    }

    /// Takes all loans in which nothing is allocated.
    pub(super) fn take_empty(&mut self, taken: &mut Vec<Loan>) {
        if let Some(open) = self.open.as_deref_mut() {
            open.take_empty(0, taken);
        }
    }

    /// Whether nothing happened since the last look.
    pub(super) fn is_quiet(&mut self) -> bool {
        let is_quiet = self.uses == self.seen;
        self.seen = self.uses;
        is_quiet
    }

    /// Whether it is time to look whether the shard's own thread is alone.
    const fn is_time_to_look_around(&self) -> bool {
        self.uses.wrapping_sub(self.looked_around) >= LOOK_AROUND_EVERY
    }

    /// Forgets everything; the core takes its blocks back anyway.
    fn close(&mut self) {
        self.open = None;
        self.live = 0;
    }

    /// The block that an allocation is in.
    pub(super) fn block_of(&mut self, live: Live) -> Result<RegionId, ForeignHandle> {
        self.open_of(live)?.loan_of(live.key).map(|loan| loan.block)
    }

    /// Tells the loan of an allocation where its block is mapped. `false` if it knew.
    pub(super) fn set_mapped(&mut self, live: Live, mapped: MappedPointer) -> Result<bool, ForeignHandle> {
        let loan = self.open_of(live)?.loan_of(live.key)?;
        let is_news = !loan.mapped.is_mapped();
        loan.mapped = mapped;
        Ok(is_news)
    }

    pub(super) fn annotate(
        &mut self,
        live: Live,
        change: impl FnOnce(&mut Annotation),
    ) -> Result<(), ForeignHandle> {
        let open = self.open_of(live)?;
        open.loan_of(live.key)?;
        annotate(&mut open.annotations, live.key, change);
        Ok(())
    }

    pub(super) fn annotation(&mut self, live: Live) -> Result<Annotation, ForeignHandle> {
        let open = self.open_of(live)?;
        open.loan_of(live.key)?;
        Ok(open.annotations.get(&live.key).cloned().unwrap_or_default())
    }

    /// Sums over the loans.
    pub(super) fn usage(&self) -> Usage {
        self.open.as_deref().map_or(Usage::default(), |open| open.engine.usage())
    }

    pub(super) fn largest_free(&self) -> u64 {
        self.open.as_deref().map_or(0, |open| open.engine.largest_free())
    }

    /// Every loan, by the key that the core knows it under.
    pub(super) fn loans(&self) -> impl Iterator<Item = (Key, RegionId)> {
        let loans = self.open.as_deref().map_or(&[][..], |open| &open.loans);
        (0..).zip(loans).filter_map(|(id, loan)| loan.as_ref().map(|loan| (loan.key, RegionId(id))))
    }

    /// Shows the chunks of one loan, with offsets in its block, and their annotations.
    pub(super) fn walk(&self, region: RegionId, visit: &mut dyn FnMut(Chunk, Option<&Annotation>)) {
        let Some(open) = self.open.as_deref() else { return };
        let Some(loan) = open.loans.get(index(region.0)).and_then(Option::as_ref) else { return };
        open.engine.walk(region, &mut |chunk| {
            let annotation = chunk.used.and_then(|(key, _)| open.annotations.get(&key));
            visit(Chunk { offset: loan.base + chunk.offset, ..chunk }, annotation);
        });
    }

    /// The memory of each loan that counts as a user of its mapping.
    #[cfg(all(test, not(loom)))]
    pub(super) fn mapped_loans(&self) -> Vec<vk::DeviceMemory> {
        let loans = self.open.iter().flat_map(|open| open.loans.iter().flatten());
        loans.filter(|loan| loan.mapped.is_mapped()).map(|loan| loan.memory).collect()
    }

    /// What `validate` looks at, for damage.
    #[cfg(all(test, not(loom)))]
    pub(super) fn books(&mut self) -> Books<'_> {
        let open = self.open.as_deref_mut().expect("a shard in use");
        let loan = open.loans.iter_mut().flatten().next().expect("a shard with a loan");
        Books {
            bytes: &mut open.bytes,
            empty: &mut open.empty,
            annotations: &mut open.annotations,
            generation: &mut loan.generation,
        }
    }

    /// No further loan is taken in.
    #[cfg(all(test, not(loom)))]
    pub(super) fn refuse_loans(&mut self) {
        self.open.as_deref_mut().expect("a shard in use").engine.set_max_slots(0);
    }

    /// Checks the books of this shard.
    ///
    /// # Panics
    /// Names what does not agree.
    pub(super) fn validate(&self) {
        let Some(open) = self.open.as_deref() else { return };
        open.engine.validate();
        let loans = || open.loans.iter().flatten();
        assert_eq!(loans().map(|loan| loan.size).sum::<u64>(), open.bytes, "S1: bytes of the loans");
        let mut empty = 0;
        for (id, loan) in (0..).zip(&open.loans) {
            if let Some(loan) = loan {
                let usage = open.engine.region_usage(RegionId(id));
                assert_eq!(usage.capacity, loan.size, "S2: a region is as large as its loan");
                assert_eq!(loan.generation, self.generation, "S3: a loan is of this use of the vector");
                empty += u32::from(usage.used_chunks == 0);
            }
        }
        assert_eq!(empty, open.empty, "S4: empty loans");
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

impl Open {
    /// What the caller gets to know of what the engine granted.
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
        let loan = self.loans[index(region.0)].as_ref().expect("B2: a region of a shard has a loan");
        let offset = loan.base + offset;
        let mapped = if mapped { loan.mapped.at(offset) } else { MappedPointer::UNMAPPED };
        let memory = loan.memory;
        if self.engine.used_chunks(region) == 1 {
            self.empty -= 1;
        }
        Grant { memory, offset, mapped, key, generation, shard }
    }

    fn loan_of(&mut self, key: Key) -> Result<&mut Loan, ForeignHandle> {
        let span = self.engine.span(key).map_err(|_| FOREIGN)?;
        self.loans.get_mut(index(span.region.0)).and_then(Option::as_mut).ok_or(FOREIGN)
    }

    #[cold]
    #[inline(never)]
    fn drop_annotation(&mut self, key: Key) {
        self.annotations.remove(&key);
    }

    fn take_loan(&mut self, region: RegionId) -> Option<Loan> {
        let slot = self.loans.get_mut(index(region.0))?;
        slot.as_ref()?;
        self.engine.remove_region(region).ok()?;
        let loan = slot.take()?;
        self.bytes -= loan.size;
        self.empty -= 1;
        Some(loan)
    }

    /// How many empty loans stay while `live` allocations do. One does as long as it may be needed in a moment, that
    /// is: while others are in use, or if it is the first, which is small. A shard that has nothing to do holds nothing
    /// else.
    #[inline]
    fn kept(&self, live: u32) -> u32 {
        u32::from(live > 0 || self.bytes <= FIRST_LOAN)
    }

    /// Takes empty loans, the youngest first, until `kept` of them are left.
    fn take_empty(&mut self, kept: u32, taken: &mut Vec<Loan>) {
        for region in (0..narrow(self.loans.len())).rev() {
            if self.empty <= kept {
                break;
            }
            taken.extend(self.take_loan(RegionId(region)));
        }
    }
}

/// A shard: what its lock guards, and the door for what other threads give back.
pub(super) struct Shard {
    state: CoreMutex<ShardState>,
    returns: Returns,
}

/// How often a shard's own thread looks for what was left at its door: once in so many allocations.
const LOOK_EVERY: u32 = 16;
/// How often it looks whether it is the only one that has settled and works: once in so many allocations and frees.
pub(super) const LOOK_AROUND_EVERY: u32 = 1 << 16;

impl Shard {
    pub(super) fn new() -> Self {
        Self { state: CoreMutex::new(ShardState::default()), returns: Returns::new() }
    }

    /// What was left before this call is taken back when it returns, unless another thread that came before is about to
    /// leave something still: then that thread, or the next who comes, sees to it.
    pub(super) fn lock(&self) -> CoreGuard<'_, ShardState> {
        let mut state = self.state.lock();
        self.take_returns(&mut state);
        state
    }

    /// As [`Self::lock`], or `None` if it would have to wait.
    pub(super) fn try_lock(&self) -> Option<CoreGuard<'_, ShardState>> {
        let mut state = self.state.try_lock()?;
        self.take_returns(&mut state);
        Some(state)
    }

    /// Allocates for the shard's own thread what is usual. `None` says nothing.
    #[inline(always)]
    pub(super) fn grant(&self, request: &VectorRequest, number: u8) -> Option<Grant> {
        let mut state = self.state.lock();
        if state.uses % LOOK_EVERY == 0 && (self.returns.is_waiting() || state.has_surplus()) {
            return None;
        }
        if state.is_time_to_look_around() {
            return None;
        }
        let generation = state.generation;
        let open = state.open.as_deref_mut()?;
        let Lending { granularity, min_alignment, .. } = open.lending;
        if !open.lending.serves_size(request.size, request.alignment) {
            return None;
        }
        let (size, alignment) = request.placed(granularity, min_alignment);
        let Some((key, region, offset)) = open.engine.grant_somewhere(size, alignment, request.tag) else {
            state.refuse(request);
            return None;
        };
        let granted = open.granted(key, region, offset, request.mapped, generation, number);
        state.uses = state.uses.wrapping_add(1);
        state.live += 1;
        self.publish_live(&mut state);
        Some(granted)
    }

    /// Whether nothing is allocated in it: a guess, without the lock.
    pub(super) fn is_idle(&self) -> bool {
        self.returns.is_idle()
    }

    /// As [`Self::lock`], but what was left stays where it is.
    #[cfg(all(loom, test))]
    pub(super) fn lock_as_it_is(&self) -> CoreGuard<'_, ShardState> {
        self.state.lock()
    }

    /// Allocates for the shard's own thread. Loans that are not needed any more are added to `surplus`.
    #[inline]
    pub(super) fn place(
        &self,
        request: &VectorRequest,
        number: u8,
        surplus: &mut Vec<Loan>,
    ) -> Option<Grant> {
        let mut state = self.state.lock();
        let mut granted = None;
        if state.uses % LOOK_EVERY != 0 {
            granted = state.place(request, number, false);
        }
        if granted.is_none() {
            self.take_returns(&mut state);
            granted = state.place(request, number, false);
            if state.has_surplus() {
                state.take_surplus(surplus);
            }
        }
        self.publish_live(&mut state);
        granted
    }

    /// Whether it is time to look whether the shard's own thread is alone. Then it is not for a while.
    pub(super) fn begins_to_look_around(&self) -> bool {
        let mut state = self.state.lock();
        let is_time = state.is_time_to_look_around();
        if is_time {
            state.looked_around = state.uses;
        }
        is_time
    }

    /// Whether its thread has done nothing here since this was asked last. A thread that is here now has.
    pub(super) fn was_left_alone(&self) -> bool {
        let Some(mut state) = self.state.try_lock() else { return false };
        let uses = state.uses;
        std::mem::replace(&mut state.seen_from_outside, uses) == uses
    }

    /// Takes an allocation of the shard's own thread back. Whether loans may be empty now, for
    /// [`Self::take_surplus`].
    #[inline(always)]
    pub(super) fn free_at_home(&self, live: Live) -> Result<bool, ForeignHandle> {
        let mut state = self.state.lock();
        state.uses = state.uses.wrapping_add(1);
        let has_emptied = state.free(live)?;
        // Who tells may find keys, and take them.
        let has_told = self.publish_live(&mut state);
        Ok(has_emptied || (has_told && state.has_surplus()))
    }

    /// Leaves an allocation for the shard's own thread, which the caller is not, or takes it back. Whether loans may be
    /// empty now, for [`Self::take_surplus`].
    #[inline(never)]
    pub(super) fn free_elsewhere(&self, live: Live) -> Result<bool, ForeignHandle> {
        let left = self.returns.leave(live.key, live.generation);
        if left == Left::There {
            return Ok(false);
        }
        let mut state = self.state.lock();
        self.take_returns(&mut state);
        let freed = if left == Left::No { state.free(live) } else { Ok(false) };
        self.publish_live(&mut state);
        freed.map(|has_emptied| has_emptied || state.has_surplus())
    }

    /// Takes the loans that are not needed any more: if the shard's thread has gone back to the core, all empty ones.
    #[cold]
    pub(super) fn take_surplus(&self, is_settled: bool) -> Vec<Loan> {
        let mut surplus = Vec::new();
        let mut state = self.state.lock();
        if !is_settled {
            state.take_empty(&mut surplus);
        } else if state.has_surplus() {
            state.take_surplus(&mut surplus);
        }
        surplus
    }

    /// Takes a loan in. It comes back if there can be no more.
    pub(super) fn add_loan(&self, lending: &Lending, loan: Loan) -> Result<(), Loan> {
        let mut state = self.lock();
        let generation = loan.generation;
        state.add_loan(lending, loan)?;
        self.returns.open_for(generation);
        Ok(())
    }

    /// Forgets everything; the core takes its blocks back anyway.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        self.returns.open_for(0);
        state.close();
        self.publish_live(&mut state);
    }

    /// Takes back what was left at the door.
    #[cold]
    #[inline(never)]
    fn take_returns(&self, state: &mut ShardState) {
        let mut keys = [None; BATCH];
        loop {
            let taken = self.returns.take(&mut keys);
            // The door is open for keys of this use of the vector only, and an allocation is given back once: its type
            // sees to that. Should one come twice nevertheless, the second is ignored.
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

    /// Tells other threads how many keys may wait, if that has changed. Whether it has.
    #[inline(always)]
    fn publish_live(&self, state: &mut ShardState) -> bool {
        let is_news = limit(state.live) != state.told;
        if is_news {
            self.publish_changed(state);
        }
        is_news
    }

    #[inline(never)]
    fn publish_changed(&self, state: &mut ShardState) {
        state.told = limit(state.live);
        if self.returns.publish_live(state.live) {
            self.take_returns(state);
        }
    }
}
