//! Routing of an allocation: to a pool, the default vector of the best memory type, or dedicated memory.

use std::borrow::Borrow;
use std::panic::Location;
use std::sync::atomic::{AtomicU8, Ordering};

use super::events;
use super::relief::ReliefNeed;
use super::request::{AllocationRequest, FOUND_SLOWLY, ORDINARY, Resource, check_flags, flags_of};
use super::{Allocator, DefaultVector, Tracking};
use crate::allocation::{Allocation, allocation_flags};
use crate::blocks::{Grant, MemoryBlockVector, VectorRequest};
use crate::create_info::{AllocationCreateFlags as Flags, AllocationCreateInfo, MemoryUsage};
use crate::device::{DriverAllocation, MemoryAllocateNext, ResourceRequirements};
use crate::engine::Algorithm;
use crate::error::{AllocationError, Contradiction, FindMemoryTypeError};
use crate::memory_type::Wish;
use crate::pool::{BlockSizing, Pool, VectorFacts};
use sublet_engines::Alignment;
use sublet_engines::cast::{byte, index};

/// The vector that serves most requests.
type Usual<'a> = (&'a VectorFacts, &'a MemoryBlockVector);

/// A candidate placement of an allocation.
pub(super) struct PlacementCandidate<'a> {
    pub(super) allocator: &'a Allocator,
    pub(super) asked: &'a AllocationRequest<'a>,
    pub(super) facts: &'a VectorFacts,
    pub(super) vector: &'a MemoryBlockVector,
    /// The request to the vector, debug margins included.
    pub(super) request: VectorRequest,
}

impl PlacementCandidate<'_> {
    /// Bytes of dedicated memory.
    pub(super) fn dedicated_size(&self) -> u64 {
        self.asked.resource.requirements.size
    }
}

/// Visits candidate placements. Allocates at the first that works, or only reports it (`would_fit`).
pub(super) trait CandidateVisitor {
    type Answer;
    /// True if the visitor allocates.
    const ALLOCATES: bool;

    /// Visits the blocks that exist. `None` if none has room.
    fn existing(&self, candidate: &PlacementCandidate<'_>) -> Option<Self::Answer>;

    /// Visits a placement in a block.
    fn shared(&self, candidate: &PlacementCandidate<'_>) -> Result<Self::Answer, AllocationError>;

    /// Visits dedicated memory. `by_name` means that the caller asked for it. Otherwise it counts as a block of a
    /// limited pool.
    fn dedicated(
        &self,
        candidate: &PlacementCandidate<'_>,
        by_name: bool,
    ) -> Result<Self::Answer, AllocationError>;
}

/// The visitor that allocates.
struct AllocateVisitor;

impl CandidateVisitor for AllocateVisitor {
    type Answer = Allocation;
    const ALLOCATES: bool = true;

    fn existing(&self, candidate: &PlacementCandidate<'_>) -> Option<Allocation> {
        let PlacementCandidate { allocator, asked, facts, vector, ref request } = *candidate;
        let grant = vector.place_at_once(&allocator.inner.context, request)?;
        Some(allocator.finish(asked, facts, vector, grant, request, 0))
    }

    fn shared(&self, candidate: &PlacementCandidate<'_>) -> Result<Allocation, AllocationError> {
        let PlacementCandidate { allocator, asked, facts, vector, ref request } = *candidate;
        let tried = asked.tried == Some(facts.vector);
        let grant = vector.allocate(&allocator.inner.context, request, tried)?;
        Ok(allocator.finish(asked, facts, vector, grant, request, 0))
    }

    #[cold]
    fn dedicated(
        &self,
        candidate: &PlacementCandidate<'_>,
        by_name: bool,
    ) -> Result<Allocation, AllocationError> {
        let PlacementCandidate { allocator, asked, facts, vector, ref request } = *candidate;
        let AllocationRequest { resource, info, .. } = *asked;
        let can_alias = info.flags.contains(Flags::CAN_ALIAS);
        let what = DriverAllocation {
            size: resource.requirements.size,
            memory_type: facts.config.memory_type,
            // A pool has its own priority.
            priority: info.pool.is_none().then_some(info.priority),
            device_address: resource.device_address,
            // If the driver requires dedicated memory, a bind without `VkMemoryDedicatedAllocateInfo` is invalid
            // (VUID-vkBindImageMemory-image-01445).
            dedicated_to: resource.handle.filter(|_| !can_alias || resource.requirements.requires_dedicated),
            next: asked.next.get(),
        };
        let grant = vector.dedicate(&allocator.inner.context, &what, request, by_name)?;
        Ok(allocator.finish(asked, facts, vector, grant, request, allocation_flags::DEDICATED))
    }
}

/// The invariant of a slow path that stores its result in the caller's variable.
pub(super) const MADE: &str = "P5: what did not fail was made";

/// The reason why the fast path did not allocate.
pub(super) enum Miss<'a> {
    /// The request needs the slow path: unusual flags, or tracking is on. Nothing was validated yet.
    Unusual,
    /// The request is valid, but this vector does not serve it at once. It has no room, another thread holds its lock,
    /// or the request needs a strategy or an upper address.
    NotAtOnce(Usual<'a>),
    /// The range was granted, but its block is not mapped yet. The order of fields matches the layout of `Allocation`,
    /// because the compiler writes both variants to the same places.
    Unmapped(Grant, Usual<'a>),
    /// The request needs dedicated memory with this chain. No other placement was tried.
    Dedicated(MemoryAllocateNext),
}

/// Annotations are kept for every allocation.
const TRACKS: u8 = 1;
/// Calls are recorded.
#[cfg(feature = "trace")]
const RECORDS: u8 = 2;

/// Reasons for which every allocation takes the slow path. Both are in one byte, so that the fast path needs one check.
#[derive(Debug)]
pub(super) struct Bookkeeping(AtomicU8);

impl Bookkeeping {
    pub(super) fn new(tracking: Tracking) -> Self {
        Self(AtomicU8::new(if tracking.is_empty() { 0 } else { TRACKS }))
    }

    #[inline(always)]
    pub(super) fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Returns true if annotations are kept for every allocation.
    fn tracks(&self) -> bool {
        self.0.load(Ordering::Relaxed) & TRACKS != 0
    }

    #[cfg(feature = "trace")]
    #[inline(always)]
    pub(super) fn records(&self) -> bool {
        self.0.load(Ordering::Relaxed) & RECORDS != 0
    }

    #[cfg(feature = "trace")]
    pub(super) fn set_records(&self, records: bool) {
        if records {
            self.0.fetch_or(RECORDS, Ordering::Relaxed);
        } else {
            self.0.fetch_and(!RECORDS, Ordering::Relaxed);
        }
    }
}

impl Allocator {
    /// Allocates, on the fast path or the slow one.
    ///
    /// [`Self::allocate_usual`] serves nearly all allocations. Callers that handle both outcomes themselves avoid one
    /// copy of the result (row `create`).
    #[inline(always)]
    pub(crate) fn allocate(
        &self,
        resource: Resource,
        info: &AllocationCreateInfo<'_>,
        caller: &'static Location<'static>,
    ) -> Result<Allocation, AllocationError> {
        self.allocate_as(resource, || info, caller)
    }

    /// [`Self::allocate`] for a program with its own create-info. `info` converts it, and converts it again on the slow
    /// path. So the first conversion need not be stored in memory.
    #[inline(always)]
    pub(crate) fn allocate_as<'i, I: Borrow<AllocationCreateInfo<'i>>>(
        &self,
        resource: Resource,
        info: impl Fn() -> I,
        caller: &'static Location<'static>,
    ) -> Result<Allocation, AllocationError> {
        match self.allocate_usual::<false>(&resource, info().borrow(), self.inner.bookkeeping.any()) {
            Ok(allocation) => Ok(allocation),
            Err(miss) => self.make_up_for(resource, info().borrow(), miss, caller),
        }
    }

    /// [`Self::allocate_slow`], returning the allocation.
    #[inline(always)]
    pub(super) fn make_up_for(
        &self,
        resource: Resource,
        info: &AllocationCreateInfo<'_>,
        miss: Miss<'_>,
        caller: &'static Location<'static>,
    ) -> Result<Allocation, AllocationError> {
        let mut made = None;
        self.allocate_slow(resource, info, miss, caller, &mut made)?;
        Ok(made.expect(MADE))
    }

    /// The fast path: the request is ordinary, and a block of the best memory type has room. It is inlined as a whole,
    /// except for the engine. `resource` is passed by value to the slow path, so that it can stay in registers here.
    /// Without `EXACT`, explicit property flags need the slow path.
    #[inline(always)]
    pub(super) fn allocate_usual<'a, const EXACT: bool>(
        &'a self,
        resource: &Resource,
        info: &AllocationCreateInfo<'a>,
        has_bookkeeping: bool,
    ) -> Result<Allocation, Miss<'a>> {
        let usual = self.usual_vector::<EXACT>(resource, info, has_bookkeeping).ok_or(Miss::Unusual)?;
        // Validation of alignments happened above, so the optimiser removes the check in `new`.
        let asked = AllocationRequest::new(resource, info);
        let (facts, vector) = usual;
        if info.flags.intersects(FOUND_SLOWLY) {
            return Err(Miss::NotAtOnce(usual));
        }
        let home = vector.home();
        // Each branch builds its own request; a shared one would be stored in memory.
        if home != 0 {
            let request = asked.of_vector(facts);
            let granted = vector.grant_in_shard(home, &request);
            return self.hand_out(usual, &asked, &request, granted);
        }
        let request = asked.of_vector(facts);
        self.hand_out(usual, &asked, &request, vector.grant(request))
    }

    /// Builds the result of the fast path's single attempt.
    #[inline(always)]
    fn hand_out<'a>(
        &self,
        usual: Usual<'a>,
        asked: &AllocationRequest<'_>,
        request: &VectorRequest,
        granted: Option<Grant>,
    ) -> Result<Allocation, Miss<'a>> {
        match granted {
            None => Err(Miss::NotAtOnce(usual)),
            Some(grant) if request.mapped && !grant.mapped.is_mapped() => Err(Miss::Unmapped(grant, usual)),
            Some(grant) => Ok(self.allocation(asked, usual.0, grant, request.mapped, 0)),
        }
    }

    /// Allocates on the slow path, or explains the failure. Emits events and records the result. Stores the allocation
    /// in `made`: as a return value it would force the fast path's result into memory.
    #[cold]
    #[inline(never)]
    pub(super) fn allocate_slow(
        &self,
        resource: Resource,
        info: &AllocationCreateInfo<'_>,
        miss: Miss<'_>,
        caller: &'static Location<'static>,
        made: &mut Option<Allocation>,
    ) -> Result<(), AllocationError> {
        let resource = &resource;
        let dedicated;
        let (info, has_chain) = match miss {
            Miss::Dedicated(next) => {
                dedicated = AllocationCreateInfo { flags: info.flags | Flags::DEDICATED_MEMORY, ..*info };
                (&dedicated, next.is_some())
            }
            _ => (info, false),
        };
        let answer = self.allocate_missed(resource, info, miss, caller);
        let answer = answer.inspect_err(|error| events::failed(resource, info, caller, error));
        self.record_allocation(resource, info, has_chain, &answer);
        *made = Some(answer?);
        Ok(())
    }

    /// [`Self::allocate_slow`] without events and records.
    fn allocate_missed(
        &self,
        resource: &Resource,
        info: &AllocationCreateInfo<'_>,
        miss: Miss<'_>,
        caller: &'static Location<'static>,
    ) -> Result<Allocation, AllocationError> {
        let context = &self.inner.context;
        let miss = match miss {
            Miss::Unusual if self.is_nearly_usual(info) => {
                let plain = AllocationCreateInfo { name: None, ..*info };
                match self.allocate_usual::<true>(resource, &plain, false) {
                    Ok(allocation) => {
                        if info.name.is_some() {
                            let vector = self.vector_of(&allocation);
                            let named = vector.and_then(|it| it.set_name(allocation.live(), info.name));
                            debug_assert!(named.is_ok());
                        }
                        return Ok(allocation);
                    }
                    Err(miss) => miss,
                }
            }
            miss => miss,
        };
        let mut asked = match miss {
            Miss::Unusual | Miss::Dedicated(_) => AllocationRequest::checked(resource, info)?,
            Miss::NotAtOnce(_) | Miss::Unmapped(..) => AllocationRequest::new(resource, info),
        };
        asked.caller = Some(caller);
        match miss {
            Miss::Unusual => {}
            Miss::NotAtOnce((facts, vector)) => {
                let request = asked.of_vector(facts);
                if request.never_allocate && self.is_only_place(&asked) {
                    if let Some(placed) = vector.place_or_refuse(context, &request, facts.config.is_limited())
                    {
                        return Ok(self.finish(&asked, facts, vector, placed?, &request, 0));
                    }
                }
                match vector.place_at_once(context, &request) {
                    Some(grant) => return Ok(self.finish(&asked, facts, vector, grant, &request, 0)),
                    None => asked.tried = Some(facts.vector),
                }
            }
            Miss::Unmapped(grant, (facts, vector)) => {
                let request = asked.of_vector(facts);
                match vector.finish(context, grant, &request) {
                    Ok(grant) => return Ok(self.finish(&asked, facts, vector, grant, &request, 0)),
                    // Searches elsewhere, as if this block had no room.
                    Err(error) if error.is_shortage() => {}
                    Err(error) => return Err(error),
                }
            }
            Miss::Dedicated(next) => asked.next = next,
        }
        self.find_place(&AllocateVisitor, &asked)
    }

    /// Returns true if no other vector may serve the request.
    fn is_only_place(&self, asked: &AllocationRequest<'_>) -> bool {
        let AllocationRequest { resource, info, .. } = *asked;
        let choose = || self.inner.types.choose(&self.wish(resource, info));
        info.pool.is_some() || choose().is_ok_and(|(_, others)| others.len() == 0)
    }

    /// Returns true if only recording, explicit property flags or a name may have made a request unusual.
    fn is_nearly_usual(&self, info: &AllocationCreateInfo<'_>) -> bool {
        let has_properties = !(info.required_flags | info.preferred_flags).is_empty();
        let bookkeeping = &self.inner.bookkeeping;
        !bookkeeping.tracks() && (has_properties || info.name.is_some() || bookkeeping.any())
    }

    /// The default vector of the best memory type, or the pool, if the request is ordinary.
    #[inline(always)]
    fn usual_vector<'a, const EXACT: bool>(
        &'a self,
        resource: &Resource,
        info: &AllocationCreateInfo<'a>,
        has_bookkeeping: bool,
    ) -> Option<Usual<'a>> {
        let ResourceRequirements { size, alignment, memory_type_bits, prefers_dedicated, requires_dedicated } =
            resource.requirements;
        let is_ordinary = !prefers_dedicated
            && !requires_dedicated
            // One branch instead of three.
            && !(info.name.is_some() | info.scope.is_some() | has_bookkeeping)
            && Alignment::of_both(alignment, info.min_alignment).is_some()
            // As integers, negative values and NaN compare as too large.
            && info.priority.to_bits() <= 1.0_f32.to_bits()
            && ORDINARY.contains(info.flags);
        if !is_ordinary {
            return None;
        }
        let (facts, vector) = match info.pool {
            Some(pool) => {
                let facts = self.pool_facts(pool).ok()?;
                if memory_type_bits & (1 << facts.config.memory_type) == 0 {
                    return None;
                }
                (facts, self.inner.vector(facts.vector)?)
            }
            None if info.usage == MemoryUsage::GpuLazilyAllocated => return None,
            None => {
                let (types, wish) = (&self.inner.types, self.wish(resource, info));
                let best = if EXACT { types.choose(&wish).ok()?.0 } else { types.best(&wish)? };
                let default = self.inner.defaults.get(index(best))?;
                (&default.facts, &default.vector)
            }
        };
        // Rejects zero, sizes above `largest_shared`, and sizes that would overflow. Flags are checked last, because
        // the slow path validates them anyway.
        let is_right = size.wrapping_sub(1) < facts.largest_shared
            && (info.flags.is_empty() || check_flags(info).is_ok());
        is_right.then_some((facts, vector))
    }

    /// Visits the candidate placements in order of preference.
    #[cold]
    pub(super) fn find_place<W: CandidateVisitor>(
        &self,
        visitor: &W,
        asked: &AllocationRequest<'_>,
    ) -> Result<W::Answer, AllocationError> {
        let AllocationRequest { resource, info, .. } = *asked;
        if let Some(pool) = info.pool {
            let facts = self.facts_for(pool, resource.requirements.memory_type_bits)?;
            return self.place_in(visitor, asked, facts, self.vector_at(facts));
        }
        if let Some(scope) = info.scope {
            return self.place_in_scope(visitor, asked, scope);
        }
        self.in_best_type::<W>(asked, |memory_type| {
            let DefaultVector { facts, vector } = &self.inner.defaults[index(memory_type)];
            self.place_in(visitor, asked, facts, vector)
        })
    }

    /// The constant properties of a pool, if its memory type suits the resource.
    pub(super) fn facts_for<'a>(
        &self,
        pool: &'a Pool,
        memory_type_bits: u32,
    ) -> Result<&'a VectorFacts, AllocationError> {
        let facts = self.pool_facts(pool).map_err(|_| AllocationError::ForeignPool)?;
        let memory_type = facts.config.memory_type;
        if memory_type_bits & (1 << memory_type) == 0 {
            return Err(AllocationError::PoolMemoryType { memory_type, memory_type_bits });
        }
        Ok(facts)
    }

    /// Tries the memory types from the best on. If all fail, returns the error of the type that came closest; among
    /// equals, of the best type.
    pub(super) fn in_best_type<W: CandidateVisitor>(
        &self,
        asked: &AllocationRequest<'_>,
        place_in: impl Fn(u32) -> Result<W::Answer, AllocationError>,
    ) -> Result<W::Answer, AllocationError> {
        let (mut memory_type, mut others) =
            self.inner.types.choose(&self.wish(asked.resource, asked.info))?;
        let mut closest: Option<AllocationError> = None;
        loop {
            let error = match place_in(memory_type) {
                Err(error) if error.is_shortage() => error,
                answer => return answer,
            };
            closest = Some(closest.map_or(error, |closest| closest.or_closer(error)));
            let Some(next) = others.next() else { return Err(closest.unwrap_or(error)) };
            if W::ALLOCATES {
                events::fallback(asked, (memory_type, &error), next);
            }
            memory_type = next;
        }
    }

    /// The best memory type for such an allocation.
    #[inline]
    pub(crate) fn find_for(
        &self,
        resource: &Resource,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<u32, FindMemoryTypeError> {
        check_flags(info).map_err(FindMemoryTypeError::Contradiction)?;
        let (types, wish) = (&self.inner.types, self.wish(resource, info));
        // Nearly always succeeds, and returns in a register; `choose` returns through memory.
        match types.best(&wish) {
            Some(best) => Ok(best),
            None => types.choose(&wish).map(|(best, _)| best).map_err(FindMemoryTypeError::NoMemoryType),
        }
    }

    /// The memory types for such an allocation, in the order in which `allocate` tries them. At least one.
    pub(crate) fn find_all_for(
        &self,
        resource: &Resource,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<impl Iterator<Item = u32>, FindMemoryTypeError> {
        check_flags(info).map_err(FindMemoryTypeError::Contradiction)?;
        let chosen = self.inner.types.choose(&self.wish(resource, info));
        let (best, others) = chosen.map_err(FindMemoryTypeError::NoMemoryType)?;
        Ok(std::iter::once(best).chain(others))
    }

    #[inline]
    pub(super) fn wish(&self, resource: &Resource, info: &AllocationCreateInfo<'_>) -> Wish {
        let allowed = if info.memory_type_bits == 0 { u32::MAX } else { info.memory_type_bits };
        Wish {
            usage: info.usage,
            flags: info.flags,
            required: info.required_flags,
            preferred: info.preferred_flags,
            memory_type_bits: resource.requirements.memory_type_bits & allowed,
            device_access: resource.device_access,
        }
    }

    /// The vector of a pool of this allocator.
    pub(super) fn vector_at(&self, facts: &VectorFacts) -> &MemoryBlockVector {
        self.inner.vector(facts.vector).expect("P1: a pool has a vector for as long as it lives")
    }

    /// Visits blocks and dedicated memory in one memory type or pool. If there is no memory, frees empty blocks
    /// elsewhere and tries again.
    #[inline]
    pub(super) fn place_in<W: CandidateVisitor>(
        &self,
        visitor: &W,
        asked: &AllocationRequest<'_>,
        facts: &VectorFacts,
        vector: &MemoryBlockVector,
    ) -> Result<W::Answer, AllocationError> {
        let size = asked.resource.requirements.size;
        let attempt =
            || self.attempt_in(visitor, asked, facts, vector).map_err(|error| error.asked_for(size));
        if !W::ALLOCATES {
            return attempt();
        }
        let need = ReliefNeed {
            memory_type: facts.config.memory_type,
            bytes: if facts.config.fixed_block_size {
                facts.config.block_size
            } else {
                asked.resource.requirements.size
            },
            count: 1,
            within_budget: asked.info.flags.contains(Flags::WITHIN_BUDGET),
        };
        self.inner.with_relief(need, attempt, |error| match error {
            AllocationError::Memory(error) => Some(*error),
            _ => None,
        })
    }

    /// One attempt of [`Self::place_in`].
    #[inline]
    fn attempt_in<W: CandidateVisitor>(
        &self,
        visitor: &W,
        asked: &AllocationRequest<'_>,
        facts: &VectorFacts,
        vector: &MemoryBlockVector,
    ) -> Result<W::Answer, AllocationError> {
        let AllocationRequest { resource, info, .. } = *asked;
        let requirements = &resource.requirements;
        let never_allocate = info.flags.contains(Flags::NEVER_ALLOCATE);
        let upper = info.flags.contains(Flags::UPPER_ADDRESS);
        if upper && (facts.config.algorithm != Algorithm::Linear || facts.config.max_blocks != 1) {
            return Err(AllocationError::UpperAddress {
                algorithm: facts.config.algorithm,
                max_block_count: facts.config.max_block_count(),
            });
        }
        let mut request = asked.of_vector(facts);
        request.size = request.size.saturating_add(self.margin());
        let candidate = &PlacementCandidate { allocator: self, asked, facts, vector, request };
        let is_lazy = info.pool.is_none() && info.usage == MemoryUsage::GpuLazilyAllocated;
        if info.flags.contains(Flags::DEDICATED_MEMORY) || requirements.requires_dedicated || is_lazy {
            if never_allocate {
                return Err(Contradiction::DedicatedNeverAllocate.into());
            }
            if facts.config.fixed_block_size {
                return Err(Contradiction::DedicatedInFixedPool.into());
            }
            if W::ALLOCATES {
                events::dedicated(candidate, events::why_it_must(candidate));
            }
            return visitor.dedicated(candidate, true);
        }
        let may_be_dedicated = !never_allocate && !facts.config.fixed_block_size && !upper;
        let mut refused = None;
        if may_be_dedicated && self.is_always_dedicated() {
            if W::ALLOCATES {
                events::dedicated(candidate, "always_dedicated");
            }
            // The debug settings require it.
            return visitor.dedicated(candidate, true);
        }
        // Dedicated memory is preferable, except where the number of blocks is limited: it would count as a block for
        // one allocation.
        let is_better_dedicated = !facts.config.is_limited()
            && (requirements.prefers_dedicated || requirements.size > facts.config.block_size / 2);
        if may_be_dedicated && is_better_dedicated {
            // Room that is already paid for is better than a large request's memory of its own. The driver's preference
            // for dedicated memory is about speed, so it comes first.
            if !requirements.prefers_dedicated && facts.config.sizing != BlockSizing::Vma {
                if let Some(answer) = visitor.existing(candidate) {
                    return Ok(answer);
                }
            }
            if self.inner.context.budgets.is_near_max_live_memory() {
                if W::ALLOCATES {
                    events::dedicated_declined(candidate, "allocation_count", None);
                }
            } else {
                if W::ALLOCATES {
                    events::dedicated(candidate, events::why_it_should(candidate));
                }
                match visitor.dedicated(candidate, false) {
                    Err(error) if error.is_shortage() => {
                        if W::ALLOCATES {
                            events::dedicated_declined(candidate, "refused", Some(&error));
                        }
                        refused = Some(error);
                    }
                    answer => return answer,
                }
            }
        }
        match visitor.shared(candidate) {
            Err(error) if error.is_shortage() => match refused {
                // If both came equally close, the error of the preferred placement is more useful.
                Some(refused) => Err(refused.or_closer(error)),
                None if may_be_dedicated => {
                    vector.check_dedicated(&candidate.request).map_err(|full| full.or_closer(error))?;
                    if W::ALLOCATES {
                        events::dedicated(candidate, "no_block");
                    }
                    visitor.dedicated(candidate, false).map_err(|later| later.or_closer(error))
                }
                None => Err(error),
            },
            answer => answer,
        }
    }

    #[inline]
    fn finish(
        &self,
        asked: &AllocationRequest<'_>,
        facts: &VectorFacts,
        vector: &MemoryBlockVector,
        grant: Grant,
        request: &VectorRequest,
        flags: u8,
    ) -> Allocation {
        let mut allocation = self.allocation(asked, facts, grant, request.mapped, flags);
        if self.inner.debug.settings.is_special() {
            self.watch(&mut allocation, asked.next.get().is_null());
        }
        if asked.info.name.is_some() || !self.inner.tracking.is_empty() {
            let annotation = self.inner.tracking.annotation(asked.info, asked.caller);
            let kept = vector.annotate(allocation.live(), |empty| *empty = annotation);
            debug_assert!(kept.is_ok());
        }
        allocation
    }

    /// Builds the `Allocation` for a grant.
    #[inline(always)]
    fn allocation(
        &self,
        asked: &AllocationRequest<'_>,
        facts: &VectorFacts,
        grant: Grant,
        mapped: bool,
        flags: u8,
    ) -> Allocation {
        let AllocationRequest { resource, info, .. } = *asked;
        Allocation {
            memory: grant.memory,
            offset: grant.offset,
            size: resource.requirements.size,
            mapped: grant.mapped,
            user_data: info.user_data,
            key: grant.key,
            vector: facts.vector,
            generation: grant.generation,
            allocator: self.inner.id,
            // There are at most 32 memory types.
            memory_type: byte(facts.config.memory_type),
            flags: flags | flags_of(info, facts, mapped),
            shard: grant.shard,
        }
    }
}
