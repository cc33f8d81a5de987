//! Where an allocation comes from: a pool, the default vector of the best memory type, or dedicated memory.
#![forbid(unsafe_code)]

use std::panic::Location;

use super::events;
use super::relief::Need;
use super::request::{AllocationRequest, ORDINARY, Resource, check_flags, needs_host_access_flag};
use super::{Allocator, DefaultVector};
use crate::allocation::{Allocation, allocation_flags};
use crate::base::align::Alignment;
use crate::base::cast::{byte, index};
use crate::base::sync::Threading;
use crate::blocks::{BlockVector, Grant, VectorRequest};
use crate::create_info::{AllocationCreateFlags as Flags, AllocationCreateInfo, MemoryUsage};
use crate::device::{DriverAllocation, MemoryAllocateNext, Requirements};
use crate::error::{AllocationError, Contradiction, FindMemoryTypeError};
use crate::memory_type::{Candidates, Wish};
use crate::metadata::Algorithm;
use crate::pool::VectorFacts;

/// The vector that most requests are granted from.
type Usual<'a, T> = (&'a VectorFacts, &'a BlockVector<T>);

/// A place where an allocation may be.
pub(super) struct Spot<'a, T: Threading> {
    pub(super) allocator: &'a Allocator<T>,
    pub(super) asked: &'a AllocationRequest<'a>,
    pub(super) facts: &'a VectorFacts,
    pub(super) vector: &'a BlockVector<T>,
    /// What is asked of the vector, debug margins included.
    pub(super) request: VectorRequest,
}

impl<T: Threading> Spot<'_, T> {
    /// Bytes of dedicated memory.
    pub(super) fn dedicated_size(&self) -> u64 {
        self.asked.resource.requirements.size
    }
}

/// What is done with the places that there may be: the first that will do is taken, or only told.
pub(super) trait Way<T: Threading> {
    type Answer;
    /// Whether anything may be changed.
    const TAKES: bool;

    /// A part of a block.
    fn shared(&self, spot: &Spot<'_, T>) -> Result<Self::Answer, AllocationError>;

    /// Dedicated memory. What was not asked for `by_name` counts as a block of a pool that has a limit.
    fn dedicated(&self, spot: &Spot<'_, T>, by_name: bool) -> Result<Self::Answer, AllocationError>;
}

/// Allocates.
struct Take;

impl<T: Threading> Way<T> for Take {
    type Answer = Allocation;
    const TAKES: bool = true;

    fn shared(&self, spot: &Spot<'_, T>) -> Result<Allocation, AllocationError> {
        let Spot { allocator, asked, facts, vector, ref request } = *spot;
        let grant = vector.allocate(&allocator.inner.context, request)?;
        Ok(allocator.finish(asked, facts, vector, grant, request, 0))
    }

    #[cold]
    fn dedicated(&self, spot: &Spot<'_, T>, by_name: bool) -> Result<Allocation, AllocationError> {
        let Spot { allocator, asked, facts, vector, ref request } = *spot;
        let AllocationRequest { resource, info, .. } = *asked;
        let can_alias = info.flags.contains(Flags::CAN_ALIAS);
        let what = DriverAllocation {
            size: resource.requirements.size,
            memory_type: facts.config.memory_type,
            // A pool has a priority of its own.
            priority: info.pool.is_none().then_some(info.priority),
            device_address: resource.device_address,
            // Where the driver requires dedicated memory, binding without saying so would be wrong
            // (VUID-vkBindImageMemory-image-01445).
            dedicated_to: resource.handle.filter(|_| !can_alias || resource.requirements.requires_dedicated),
            next: asked.next.get(),
        };
        let grant = vector.dedicate(&allocator.inner.context, &what, request, by_name)?;
        Ok(allocator.finish(asked, facts, vector, grant, request, allocation_flags::DEDICATED))
    }
}

impl<T: Threading> Allocator<T> {
    /// Every allocation goes through here.
    ///
    /// Nearly all of them end here, too: nothing is out of the ordinary, and a block of the best memory type has room.
    /// That way is in one piece, without a call but the engine's, and its result is written once: what is moved through
    /// memory between functions costs as much as the search for a place. The resource is described by a function, and
    /// not by a value, for the same reason: what is needed of it stays in registers.
    #[inline(always)]
    #[doc(hidden)]
    pub fn allocate(
        &self,
        resource: impl Fn() -> Resource,
        info: &AllocationCreateInfo<'_>,
        caller: &'static Location<'static>,
    ) -> Result<Allocation, AllocationError> {
        let keeps_books = self.inner.bookkeeping.any();
        self.allocate_usual(resource, info, keeps_books, |resource| {
            self.allocate_recorded(resource, info, caller)
        })
    }

    /// [`Self::allocate`] where nothing is recorded, or the caller sees to it. `otherwise` does what is not usual.
    #[inline(always)]
    pub(super) fn allocate_usual(
        &self,
        resource: impl Fn() -> Resource,
        info: &AllocationCreateInfo<'_>,
        keeps_books: bool,
        otherwise: impl FnOnce(&Resource) -> Result<Allocation, AllocationError>,
    ) -> Result<Allocation, AllocationError> {
        let described = resource();
        let Some(usual) = self.usual_vector(&described, info, keeps_books) else {
            return otherwise(&resource());
        };
        let (facts, vector) = usual;
        let asked = AllocationRequest::new(&described, info);
        if info.flags.intersects(Flags::STRATEGY_MASK) {
            return self.allocate_slow(&resource(), info, Some(usual), None);
        }
        let home = vector.home();
        if home != 0 {
            return self.allocate_in_shard(resource, info, usual, home);
        }
        let request = asked.of_vector(facts);
        match vector.grant(0, &request) {
            Some(grant) if !request.mapped || grant.mapped.is_mapped() => {
                Ok(self.allocation(&asked, facts, grant, request.mapped, 0))
            }
            Some(grant) => self.map_granted(&resource(), info, usual, grant),
            None => self.allocate_slow(&resource(), info, Some(usual), None),
        }
    }

    /// [`Self::allocate_usual`] for a thread that has a shard, with the same care for what is moved.
    #[inline(never)]
    fn allocate_in_shard(
        &self,
        resource: impl Fn() -> Resource,
        info: &AllocationCreateInfo<'_>,
        usual: Usual<'_, T>,
        home: u8,
    ) -> Result<Allocation, AllocationError> {
        let (facts, vector) = usual;
        let described = resource();
        let asked = AllocationRequest::new(&described, info);
        let request = asked.of_vector(facts);
        match vector.grant(home, &request) {
            Some(grant) if !request.mapped || grant.mapped.is_mapped() => {
                Ok(self.allocation(&asked, facts, grant, request.mapped, 0))
            }
            Some(grant) => self.map_granted(&resource(), info, usual, grant),
            None => self.allocate_slow(&resource(), info, Some(usual), None),
        }
    }

    /// Maps the block of a grant that is to be mapped, and is not.
    #[cold]
    #[inline(never)]
    fn map_granted(
        &self,
        resource: &Resource,
        info: &AllocationCreateInfo<'_>,
        (facts, vector): Usual<'_, T>,
        grant: Grant,
    ) -> Result<Allocation, AllocationError> {
        let asked = AllocationRequest::new(resource, info);
        let grant = vector.finish(&self.inner.context, grant, &asked.of_vector(facts))?;
        Ok(self.allocation(&asked, facts, grant, true, 0))
    }

    /// Allocates whatever can be allocated, or says why not. `usual`, if the request was checked: the vector that did
    /// not grant it at once. It has no room, another thread is in the way, or a strategy is asked for.
    #[inline(never)]
    pub(super) fn allocate_slow(
        &self,
        resource: &Resource,
        info: &AllocationCreateInfo<'_>,
        usual: Option<Usual<'_, T>>,
        caller: Option<&'static Location<'static>>,
    ) -> Result<Allocation, AllocationError> {
        let checked = match usual {
            None => AllocationRequest::checked(resource, info),
            Some((facts, vector)) => {
                let asked = AllocationRequest::new(resource, info);
                let request = asked.of_vector(facts);
                if let Some(grant) = vector.place_at_once(&self.inner.context, &request) {
                    return Ok(self.allocation(&asked, facts, grant, request.mapped, 0));
                }
                Ok(asked)
            }
        };
        let answer = checked.and_then(|asked| self.find_place(&Take, &AllocationRequest { caller, ..asked }));
        answer.inspect_err(|error| events::failed(resource, info, caller, error))
    }

    /// Dedicated memory, with a chain for the `VkMemoryAllocateInfo`.
    #[cold]
    pub(super) fn allocate_dedicated(
        &self,
        resource: &Resource,
        info: &AllocationCreateInfo<'_>,
        next: MemoryAllocateNext,
        caller: &'static Location<'static>,
    ) -> Result<Allocation, AllocationError> {
        let info = &AllocationCreateInfo { flags: info.flags | Flags::DEDICATED_MEMORY, ..*info };
        let has_chain = !next.get().is_null();
        let answer = AllocationRequest::checked(resource, info).and_then(|asked| {
            self.find_place(&Take, &AllocationRequest { caller: Some(caller), next, ..asked })
        });
        let answer = answer.inspect_err(|error| events::failed(resource, info, Some(caller), error));
        self.record_allocation(resource, info, has_chain, &answer);
        answer
    }

    /// The default vector of the best memory type, or the pool, if nothing is out of the ordinary.
    #[inline(always)]
    fn usual_vector<'a>(
        &'a self,
        resource: &Resource,
        info: &'a AllocationCreateInfo<'_>,
        keeps_books: bool,
    ) -> Option<Usual<'a, T>> {
        let Requirements { size, alignment, memory_type_bits, prefers_dedicated, requires_dedicated } =
            resource.requirements;
        let is_ordinary = !prefers_dedicated
            && !requires_dedicated
            // One branch, not three.
            && !(info.name.is_some() | info.scope.is_some() | keeps_books)
            && Alignment::of_both(alignment, info.min_alignment).is_some()
            // So compared, what is negative or not a number is too large.
            && info.priority.to_bits() <= 1.0_f32.to_bits()
            && (info.flags.is_empty() || ORDINARY.contains(info.flags) && check_flags(info).is_ok());
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
                let best = self.inner.types.best(&self.wish(resource, info))?;
                let default = self.inner.defaults.get(index(best))?;
                (&default.facts, &default.vector)
            }
        };
        // Sizes from half a block on, zero and sizes that would overflow are not ordinary either.
        (size.wrapping_sub(1) < facts.largest_shared).then_some((facts, vector))
    }

    /// Goes through all places that there may be, in the order in which they are tried.
    #[cold]
    pub(super) fn find_place<W: Way<T>>(
        &self,
        way: &W,
        asked: &AllocationRequest<'_>,
    ) -> Result<W::Answer, AllocationError> {
        let AllocationRequest { resource, info, .. } = *asked;
        if let Some(pool) = info.pool {
            let facts = self.pool_facts(pool).map_err(|_| AllocationError::ForeignPool)?;
            let memory_type_bits = resource.requirements.memory_type_bits;
            if memory_type_bits & (1 << facts.config.memory_type) == 0 {
                return Err(AllocationError::PoolMemoryType {
                    memory_type: facts.config.memory_type,
                    memory_type_bits,
                });
            }
            return self.place_in(way, asked, facts, self.vector_at(facts));
        }
        if let Some(scope) = info.scope {
            return self.place_in_scope(way, asked, scope);
        }
        self.in_best_type::<W>(asked, |memory_type| {
            let DefaultVector { facts, vector } = &self.inner.defaults[index(memory_type)];
            self.place_in(way, asked, facts, vector)
        })
    }

    /// Looks for a place in one memory type after the other, from the best on, until there is one.
    pub(super) fn in_best_type<W: Way<T>>(
        &self,
        asked: &AllocationRequest<'_>,
        place_in: impl Fn(u32) -> Result<W::Answer, AllocationError>,
    ) -> Result<W::Answer, AllocationError> {
        let (mut memory_type, mut others) =
            self.inner.types.choose(&self.wish(asked.resource, asked.info))?;
        let mut first_error = None;
        loop {
            let error = match place_in(memory_type) {
                Err(error) if error.is_shortage() => error,
                answer => return answer,
            };
            let Some(next) = others.next() else { return Err(first_error.unwrap_or(error)) };
            if W::TAKES {
                events::fallback(asked, (memory_type, &error), next);
            }
            first_error = first_error.or(Some(error));
            memory_type = next;
        }
    }

    /// The best memory type for what `allocate` would be asked.
    pub(crate) fn find_for(
        &self,
        resource: &Resource,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<u32, FindMemoryTypeError> {
        self.choose_for(resource, info).map(|(best, _)| best)
    }

    /// The memory types for what `allocate` would be asked, in the order in which it would try them: one at least.
    pub(crate) fn find_all_for(
        &self,
        resource: &Resource,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<impl Iterator<Item = u32>, FindMemoryTypeError> {
        self.choose_for(resource, info).map(|(best, others)| std::iter::once(best).chain(others))
    }

    fn choose_for(
        &self,
        resource: &Resource,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<(u32, Candidates<'_>), FindMemoryTypeError> {
        check_flags(info).map_err(FindMemoryTypeError::Contradiction)?;
        self.inner.types.choose(&self.wish(resource, info)).map_err(FindMemoryTypeError::NoMemoryType)
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
    pub(super) fn vector_at(&self, facts: &VectorFacts) -> &BlockVector<T> {
        self.inner.vector(facts.vector).expect("P1: a pool has a vector for as long as it lives")
    }

    /// A part of a block or dedicated memory, in one memory type or pool; out of memory that lay empty elsewhere if
    /// there is no other.
    #[inline]
    pub(super) fn place_in<W: Way<T>>(
        &self,
        way: &W,
        asked: &AllocationRequest<'_>,
        facts: &VectorFacts,
        vector: &BlockVector<T>,
    ) -> Result<W::Answer, AllocationError> {
        let attempt = || self.attempt_in(way, asked, facts, vector);
        if !W::TAKES {
            return attempt();
        }
        let need = Need {
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

    /// [`Self::place_in`] for what the driver gives as it is.
    #[inline]
    fn attempt_in<W: Way<T>>(
        &self,
        way: &W,
        asked: &AllocationRequest<'_>,
        facts: &VectorFacts,
        vector: &BlockVector<T>,
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
        let spot = &Spot { allocator: self, asked, facts, vector, request };
        let is_lazy = info.pool.is_none() && info.usage == MemoryUsage::GpuLazilyAllocated;
        if info.flags.contains(Flags::DEDICATED_MEMORY) || requirements.requires_dedicated || is_lazy {
            if never_allocate {
                return Err(Contradiction::DedicatedNeverAllocate.into());
            }
            if facts.config.fixed_block_size {
                return Err(Contradiction::DedicatedInFixedPool.into());
            }
            if W::TAKES {
                events::dedicated(spot, events::why_it_must(spot));
            }
            return way.dedicated(spot, true);
        }
        let may_be_dedicated = !never_allocate && !facts.config.fixed_block_size && !upper;
        let mut refused = None;
        if may_be_dedicated && self.is_always_dedicated() {
            if W::TAKES {
                events::dedicated(spot, "always_dedicated");
            }
            // The debug settings ask for it.
            return way.dedicated(spot, true);
        }
        // Dedicated memory is better than a part of a block, but where blocks are counted: it would be one that nothing
        // else is in.
        let is_better_dedicated = !facts.config.is_limited()
            && (requirements.prefers_dedicated || requirements.size > facts.config.block_size / 2);
        if may_be_dedicated && is_better_dedicated {
            if self.inner.context.budgets.is_near_max_live_memory() {
                if W::TAKES {
                    events::dedicated_declined(spot, "allocation_count", None);
                }
            } else {
                if W::TAKES {
                    events::dedicated(spot, events::why_it_should(spot));
                }
                match way.dedicated(spot, false) {
                    Err(error) if error.is_shortage() => {
                        if W::TAKES {
                            events::dedicated_declined(spot, "refused", Some(&error));
                        }
                        refused = Some(error);
                    }
                    answer => return answer,
                }
            }
        }
        match way.shared(spot) {
            Err(error) if error.is_shortage() => match refused {
                // What stood in the way of the better place says more.
                Some(error) => Err(error),
                None if may_be_dedicated => {
                    vector.check_dedicated(&spot.request)?;
                    if W::TAKES {
                        events::dedicated(spot, "no_block");
                    }
                    way.dedicated(spot, false)
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
        vector: &BlockVector<T>,
        grant: Grant,
        request: &VectorRequest,
        flags: u8,
    ) -> Allocation {
        let mut allocation = self.allocation(asked, facts, grant, request.mapped, flags);
        if self.inner.debug.settings.is_special() {
            self.watch(&mut allocation, asked.next.get().is_null());
        }
        let annotation = self.inner.tracking.annotation(asked.info, asked.caller);
        if !annotation.is_empty() {
            let kept = vector.annotate(allocation.live(), |empty| *empty = annotation);
            debug_assert!(kept.is_ok());
        }
        allocation
    }

    /// What the caller gets for a grant.
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
        let mut flags = flags | facts.host;
        if mapped {
            flags |= allocation_flags::MAPPED;
        }
        if !needs_host_access_flag(info) || info.flags.intersects(Flags::HOST_ACCESS_MASK) {
            flags |= allocation_flags::HOST_ACCESS;
        }
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
            flags,
            shard: grant.shard,
        }
    }
}
