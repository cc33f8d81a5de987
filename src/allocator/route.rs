//! Routing of an allocation: to a pool, the default vector of the best memory type, or dedicated memory.
//!
//! In each layer, `try_allocate` is the fast path, which may decline, and `allocate` is complete.
//! `tests/path/` checks that each step of these lists calls the next.
//!
//! # One allocation
//!
//! `Allocator::create_buffer` on the fast path: the memory type has a block with space.
//!
//! 1. `src/allocator/create.rs`, `create_buffer`: adds the caller's code location.
//! 2. `src/allocator/create.rs`, `create_buffer_for`: rejects flags that the allocator cannot support, creates the
//!    buffer, and queries its requirements (`unbound_buffer`).
//! 3. `src/allocator/create.rs`, `allocate_and_bind`: destroys the buffer if no memory is allocated, or else binds it.
//! 4. `src/allocator/route.rs`, `allocate`: the entry of all calls that allocate. Tries the fast path first.
//! 5. `src/allocator/route.rs`, `try_allocate`: the fast path, in one function. `usual_vector` looks up the best memory
//!    type in a table of `src/memory_type`, masked by `memory_type_bits`. At the end, `allocation` writes the
//!    `Allocation` once, at its final place.
//! 6. `src/blocks/block_vector/allocate.rs`, `try_allocate`: tries the lock of the vector's core. A thread with a shard
//!    uses the shard's engine and lock instead (`shard.rs`).
//! 7. `src/engine.rs`, `try_allocate`: passes the request to the engine.
//! 8. `crates/engines/src/tlsf/mod.rs`, `try_allocate`: finds a slot of a slab or a free chunk (`bins.rs`).
//! 9. `crates/engines/src/tlsf/mod.rs`, `try_allocate_chunk`: makes the chunk used, and splits it (`place.rs`).
//!
//! Then `bind_new` in `src/allocator/create.rs` binds the memory. A failure frees the range and destroys the
//! buffer.
//!
//! # One growth
//!
//! If the fast path declines, `allocate` continues here. The slow path also creates the error.
//!
//! 1. `src/allocator/route.rs`, `allocate_slow`: emits events and records the result.
//! 2. `src/allocator/route.rs`, `allocate_missed`: validates the create-info (`AllocationRequest::checked`), and waits
//!    for the lock of the usual vector.
//! 3. `src/allocator/route.rs`, `visit_placements`: the memory types in order.
//! 4. `src/allocator/route.rs`, `visit_vector`: if there is no memory, frees all empty memory of the heap, and tries
//!    once more (`relief.rs`).
//! 5. `src/allocator/route.rs`, `visit_vector_once`: an existing block, a new block, dedicated memory, in an order that
//!    depends on the flags and the driver (`dedicated_use`).
//! 6. `src/allocator/route.rs`, `shared`: a place in a block.
//! 7. `src/blocks/block_vector/allocate.rs`, `allocate`: the shard, the core, empty ranges that shards return
//!    (`reclaim` in `free.rs`), then growth, and if all else fails a place in any shard.
//! 8. `src/blocks/block_vector/allocate.rs`, `grow`: takes the growth lock, tries the core again, and plans the block
//!    (`plan_growth` in `state.rs`). No other lock is held during the driver call, and none while events are emitted.
//! 9. `src/blocks/growth.rs`, `allocate`: chooses the block's size.
//! 10. `src/blocks/device_block.rs`, `allocate`: checks budgets and limits (`budget.rs`), and calls `vkAllocateMemory`.
//!
//! # One free
//!
//! 1. `src/allocator/allocate.rs`, `free_memory`: a handle of another allocator is an error.
//! 2. `src/allocator/allocate.rs`, `take_back`: finds the vector by the number in the handle.
//! 3. `src/blocks/block_vector/free.rs`, `free`: locks the core. A key of another thread's shard is pushed into the
//!    ring of that shard (`returns.rs`), without its lock. If the block is empty, `after_free` in `empties.rs` decides
//!    which empty block stays, and `destroy_block` calls `vkFreeMemory` after the lock is released.
//! 4. `src/engine.rs`, `take_back`: passes the key to the engine.
//! 5. `crates/engines/src/tlsf/mod.rs`, `take_back`: returns a slot to its slab, or a chunk.
//! 6. `crates/engines/src/tlsf/mod.rs`, `take_chunk_back`: joins the chunk with free neighbours (`place.rs`).

use std::borrow::Borrow;
use std::panic::Location;
use std::sync::atomic::{AtomicU8, Ordering};

use super::events;
use super::relief::ReliefNeed;
use super::request::{AllocationRequest, FOUND_SLOWLY, ORDINARY, Resource, check_flags, flags_of};
use super::{Allocator, DefaultVector, Tracking};
use crate::allocation::{Allocation, allocation_flags};
use crate::blocks::{BlockSearch, Grant, MemoryBlockVector, VectorRequest};
use crate::create_info::{AllocationCreateFlags as Flags, AllocationCreateInfo, MemoryUsage};
use crate::device::{DriverAllocation, MemoryAllocateNext, ResourceRequirements};
use crate::engine::Algorithm;
use crate::error::{AllocationError, Contradiction, FindMemoryTypeError, MapError};
use crate::memory_type::Wish;
use crate::pool::{BlockSizing, Pool, VectorFacts};
use crate::vector::policy::doubled;
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
    /// The places in blocks.
    pub(super) search: BlockSearch,
}

impl PlacementCandidate<'_> {
    /// Bytes of dedicated memory.
    pub(super) fn dedicated_size(&self) -> u64 {
        self.asked.resource.requirements.size
    }

    /// Returns true if existing blocks come before dedicated memory, which comes before a new block: their room is
    /// already reserved. Returns false if the driver prefers dedicated memory, which may then be faster to use, and by
    /// VMA's rule.
    fn prefers_existing_blocks(&self) -> bool {
        !self.asked.resource.requirements.prefers_dedicated && self.facts.config.sizing != BlockSizing::Vma
    }
}

/// Visits candidate placements. Allocates at the first that works, or only reports it (`would_fit`).
pub(super) trait CandidateVisitor {
    type Answer;
    /// True if the visitor allocates.
    const ALLOCATES: bool;

    /// Visits a placement in a block.
    fn shared(&self, candidate: &PlacementCandidate<'_>) -> Result<Self::Answer, AllocationError>;

    /// Visits dedicated memory. `by_name` means that the caller asked for it. Otherwise it counts as a block of a
    /// limited pool.
    fn dedicated(
        &self,
        candidate: &PlacementCandidate<'_>,
        by_name: bool,
    ) -> Result<Self::Answer, AllocationError>;

    /// Emits an event of a visitor that allocates.
    fn emit(event: impl FnOnce()) {
        if Self::ALLOCATES {
            event();
        }
    }
}

/// The visitor that allocates.
struct AllocateVisitor;

impl CandidateVisitor for AllocateVisitor {
    type Answer = Allocation;
    const ALLOCATES: bool = true;

    fn shared(&self, candidate: &PlacementCandidate<'_>) -> Result<Allocation, AllocationError> {
        let PlacementCandidate { allocator, asked, facts, vector, ref request, search } = *candidate;
        let attempt = || vector.allocate(&allocator.inner.context, request, search);
        let grant = allocator.inner.with_addresses(attempt, map_error)?;
        Ok(allocator.finish(asked, facts, vector, grant, request, 0))
    }

    #[cold]
    fn dedicated(
        &self,
        candidate: &PlacementCandidate<'_>,
        by_name: bool,
    ) -> Result<Allocation, AllocationError> {
        let PlacementCandidate { allocator, asked, facts, vector, ref request, .. } = *candidate;
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
        let attempt = || vector.allocate_dedicated(&allocator.inner.context, &what, request, by_name);
        let grant = allocator.inner.with_addresses(attempt, map_error)?;
        Ok(allocator.finish(asked, facts, vector, grant, request, allocation_flags::DEDICATED))
    }
}

/// The mapping error of a failed attempt, if that was the cause.
fn map_error(error: &AllocationError) -> Option<&MapError> {
    match error {
        AllocationError::Map(error) => Some(error),
        _ => None,
    }
}

/// The reason why the fast path did not allocate.
enum Miss<'a> {
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

/// The use of dedicated memory by a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DedicatedUse {
    /// No other memory is allowed, for this reason.
    Required(&'static str),
    /// Dedicated memory is tried first.
    Preferred,
    /// Dedicated memory is tried last.
    Possible,
    Forbidden,
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
    /// Allocates, on the fast path or the slow one; dedicated memory with a chain if there is a `next`. All public calls
    /// that allocate end here.
    ///
    /// [`Self::try_allocate`] serves nearly all allocations. `info` returns the create-info, and returns it again for
    /// the slow path, so that a converted create-info of the C interface need not be stored in memory.
    #[inline(always)]
    pub(crate) fn allocate<'i, I: Borrow<AllocationCreateInfo<'i>>>(
        &self,
        resource: Resource,
        info: impl Fn() -> I,
        next: Option<MemoryAllocateNext>,
        caller: &'static Location<'static>,
    ) -> Result<Allocation, AllocationError> {
        let has_bookkeeping = self.inner.bookkeeping.any();
        let miss = match next {
            Some(next) => Miss::Dedicated(next),
            None => match self.try_allocate::<false>(&resource, info().borrow(), has_bookkeeping) {
                Ok(allocation) => return Ok(allocation),
                Err(miss) => miss,
            },
        };
        let mut made = None;
        self.allocate_slow(resource, info().borrow(), miss, caller, &mut made)?;
        Ok(made.expect("P5: what did not fail was made"))
    }

    /// The fast path: the request is ordinary, and a block of the best memory type has room. It is inlined as a whole,
    /// except for the engine. `resource` is passed by value to the slow path, so that it can stay in registers here.
    /// Without `EXACT`, explicit property flags need the slow path.
    #[inline(always)]
    fn try_allocate<'a, const EXACT: bool>(
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
        let granted = vector.try_allocate(asked.of_vector(facts));
        let mapped = asked.of_vector(facts).mapped;
        match granted {
            None => Err(Miss::NotAtOnce(usual)),
            Some(grant) if mapped && !grant.mapped.is_mapped() => Err(Miss::Unmapped(grant, usual)),
            Some(grant) => Ok(self.allocation(&asked, facts, grant, mapped, 0)),
        }
    }

    /// Allocates on the slow path, or explains the failure. Emits events and records the result. Stores the allocation
    /// in `made`: as a return value it would force the fast path's result into memory.
    #[cold]
    #[inline(never)]
    fn allocate_slow(
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
                match self.try_allocate::<true>(resource, &plain, false) {
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
                match vector.allocate_without_growth(context, &request) {
                    Some(grant) => return Ok(self.finish(&asked, facts, vector, grant, &request, 0)),
                    None => asked.tried = Some(facts.vector),
                }
            }
            Miss::Unmapped(grant, (facts, vector)) => {
                let request = asked.of_vector(facts);
                match vector.map_granted(context, grant, &request) {
                    Ok(grant) => return Ok(self.finish(&asked, facts, vector, grant, &request, 0)),
                    // Searches elsewhere, as if this block had no room.
                    Err(error) if error.is_shortage() => {}
                    Err(error) => return Err(error),
                }
            }
            Miss::Dedicated(next) => asked.next = next,
        }
        self.visit_placements(&AllocateVisitor, &asked)
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

    /// Visits the candidate placements in order of preference: the pool, or the memory types from the best on, each
    /// with the scope's pool or the default vector. If all fail, returns the error of the type that came closest; among
    /// equals, of the best type.
    #[cold]
    pub(super) fn visit_placements<W: CandidateVisitor>(
        &self,
        visitor: &W,
        asked: &AllocationRequest<'_>,
    ) -> Result<W::Answer, AllocationError> {
        let AllocationRequest { resource, info, .. } = *asked;
        if let Some(pool) = info.pool {
            let facts = self.facts_for(pool, resource.requirements.memory_type_bits)?;
            return self.visit_vector(visitor, asked, facts, self.vector_at(facts));
        }
        if info.scope.is_some_and(|scope| scope.allocator != self.inner.id) {
            return Err(AllocationError::ForeignPool);
        }
        let (mut memory_type, mut others) = self.inner.types.choose(&self.wish(resource, info))?;
        let mut closest: Option<AllocationError> = None;
        loop {
            let answer = match info.scope {
                Some(scope) => self.visit_scope(visitor, asked, scope, memory_type),
                None => {
                    let DefaultVector { facts, vector } = &self.inner.defaults[index(memory_type)];
                    self.visit_vector(visitor, asked, facts, vector)
                }
            };
            let error = match answer {
                Err(error) if error.is_shortage() => error,
                answer => return answer,
            };
            closest = Some(closest.map_or(error, |closest| closest.or_closer(error)));
            let Some(next) = others.next() else { return Err(closest.unwrap_or(error)) };
            W::emit(|| events::fallback(asked, (memory_type, &error), next));
            memory_type = next;
        }
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
    pub(super) fn visit_vector<W: CandidateVisitor>(
        &self,
        visitor: &W,
        asked: &AllocationRequest<'_>,
        facts: &VectorFacts,
        vector: &MemoryBlockVector,
    ) -> Result<W::Answer, AllocationError> {
        let size = asked.resource.requirements.size;
        let attempt =
            || self.visit_vector_once(visitor, asked, facts, vector).map_err(|error| error.asked_for(size));
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
            spares_reserved: false,
        };
        self.inner.with_relief(need, attempt, |error| match error {
            AllocationError::Memory(error) => Some(*error),
            _ => None,
        })
    }

    /// One attempt of [`Self::visit_vector`].
    #[inline]
    fn visit_vector_once<W: CandidateVisitor>(
        &self,
        visitor: &W,
        asked: &AllocationRequest<'_>,
        facts: &VectorFacts,
        vector: &MemoryBlockVector,
    ) -> Result<W::Answer, AllocationError> {
        let mut request = asked.of_vector(facts);
        request.size = request.size.saturating_add(self.margin());
        let search = if asked.tried == Some(facts.vector) { BlockSearch::Rest } else { BlockSearch::All };
        let mut candidate = PlacementCandidate { allocator: self, asked, facts, vector, request, search };
        let dedicated = self.dedicated_use(&candidate)?;
        if dedicated == DedicatedUse::Preferred && candidate.prefers_existing_blocks() {
            let request = VectorRequest { never_allocate: true, ..request };
            let search = BlockSearch::Existing;
            if let Ok(answer) = visitor.shared(&PlacementCandidate { request, search, ..candidate }) {
                return Ok(answer);
            }
            candidate.search = BlockSearch::Rest;
        }
        let candidate = &candidate;
        let mut refused = None;
        match dedicated {
            DedicatedUse::Required(reason) => {
                W::emit(|| events::dedicated(candidate, reason));
                return visitor.dedicated(candidate, true);
            }
            DedicatedUse::Preferred if self.inner.context.budgets.is_near_max_live_memory() => {
                W::emit(|| events::dedicated_declined(candidate, "allocation_count", None));
            }
            DedicatedUse::Preferred => {
                W::emit(|| events::dedicated(candidate, events::why_it_should(candidate)));
                match visitor.dedicated(candidate, false) {
                    Err(error) if error.is_shortage() => {
                        W::emit(|| events::dedicated_declined(candidate, "refused", Some(&error)));
                        refused = Some(error);
                    }
                    answer => return answer,
                }
            }
            DedicatedUse::Possible | DedicatedUse::Forbidden => {}
        }
        match visitor.shared(candidate) {
            Err(error) if error.is_shortage() => match refused {
                // If both came equally close, the error of the preferred placement is more useful.
                Some(refused) => Err(refused.or_closer(error)),
                None if dedicated != DedicatedUse::Forbidden => {
                    vector.check_dedicated(&candidate.request).map_err(|full| full.or_closer(error))?;
                    W::emit(|| events::dedicated(candidate, "no_block"));
                    visitor.dedicated(candidate, false).map_err(|later| later.or_closer(error))
                }
                None => Err(error),
            },
            answer => answer,
        }
    }

    /// Decides whether a request uses dedicated memory. Returns an error if its flags contradict the pool.
    fn dedicated_use(&self, candidate: &PlacementCandidate<'_>) -> Result<DedicatedUse, AllocationError> {
        let AllocationRequest { resource, info, .. } = *candidate.asked;
        let (requirements, config) = (&resource.requirements, &candidate.facts.config);
        let never_allocate = info.flags.contains(Flags::NEVER_ALLOCATE);
        let upper = info.flags.contains(Flags::UPPER_ADDRESS);
        if upper && (config.algorithm != Algorithm::Linear || config.max_blocks != 1) {
            return Err(AllocationError::UpperAddress {
                algorithm: config.algorithm,
                max_block_count: config.max_block_count(),
            });
        }
        let is_lazy = info.pool.is_none() && info.usage == MemoryUsage::GpuLazilyAllocated;
        if info.flags.contains(Flags::DEDICATED_MEMORY) || requirements.requires_dedicated || is_lazy {
            if never_allocate {
                return Err(Contradiction::DedicatedNeverAllocate.into());
            }
            if config.fixed_block_size {
                return Err(Contradiction::DedicatedInFixedPool.into());
            }
            return Ok(DedicatedUse::Required(events::why_it_must(candidate)));
        }
        if never_allocate || config.fixed_block_size || upper {
            return Ok(DedicatedUse::Forbidden);
        }
        if self.is_always_dedicated() {
            return Ok(DedicatedUse::Required("always_dedicated"));
        }
        // The number of blocks is behind a lock, so it is read only if it decides.
        let is_large = || {
            let largest = match config.sizing {
                BlockSizing::Doubling { first } => {
                    doubled(first, config.block_size, candidate.vector.block_count())
                }
                BlockSizing::Live(_) | BlockSizing::Vma => config.block_size / 2,
            };
            requirements.size > largest
        };
        // If the number of blocks is limited, dedicated memory would count as a block for one allocation.
        let is_better = !config.is_limited() && (requirements.prefers_dedicated || is_large());
        Ok(if is_better { DedicatedUse::Preferred } else { DedicatedUse::Possible })
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
