//! Where an allocation comes from: a pool, the default vector of the best memory type, or memory of its own.
#![forbid(unsafe_code)]

use std::panic::Location;

use super::relief::Need;
use super::tell;
use super::wanted::{
    ORDINARY, Resource, Wanted, check_flags, is_zero_or_power_of_two, needs_host_access_flag,
};
use super::{Allocator, DefaultVector, VectorFacts};
use crate::allocation::{Allocation, allocation_flags};
use crate::base::cast::index;
use crate::base::sync::Threading;
use crate::blocks::{BlockVector, Grant, VectorRequest};
use crate::create_info::{AllocationCreateFlags as Flags, AllocationCreateInfo, MemoryUsage};
use crate::device::{DriverAllocation, MemoryAllocateNext, Requirements};
use crate::error::{AllocationError, Contradiction, FindMemoryTypeError};
use crate::memory_type::{self, Wish};
use crate::metadata::Algorithm;

/// A place where an allocation may be.
pub(super) struct Spot<'a, T: Threading> {
    pub(super) allocator: &'a Allocator<T>,
    pub(super) wanted: &'a Wanted<'a>,
    pub(super) facts: &'a VectorFacts,
    pub(super) vector: &'a BlockVector<T>,
    /// What is asked of the vector, debug margins included.
    pub(super) request: VectorRequest,
}

impl<T: Threading> Spot<'_, T> {
    /// Bytes of memory of its own.
    pub(super) fn own_size(&self) -> u64 {
        self.wanted.resource.requirements.size
    }
}

/// What is done with the places that there may be: the first that will do is taken, or only told.
pub(super) trait Way<T: Threading> {
    type Answer;
    /// Whether anything may be changed.
    const TAKES: bool;

    /// A part of a block.
    fn shared(&self, spot: &Spot<'_, T>) -> Result<Self::Answer, AllocationError>;

    /// Memory of its own. What was not asked for `by_name` counts as a block of a pool that has a limit.
    fn own(&self, spot: &Spot<'_, T>, by_name: bool) -> Result<Self::Answer, AllocationError>;
}

/// Allocates.
struct Take;

impl<T: Threading> Way<T> for Take {
    type Answer = Allocation;
    const TAKES: bool = true;

    fn shared(&self, spot: &Spot<'_, T>) -> Result<Allocation, AllocationError> {
        let Spot { allocator, wanted, facts, vector, ref request } = *spot;
        let grant = vector.allocate(&allocator.inner.context, request)?;
        Ok(allocator.finish(wanted, facts, vector, grant, request, 0))
    }

    fn own(&self, spot: &Spot<'_, T>, by_name: bool) -> Result<Allocation, AllocationError> {
        let Spot { allocator, wanted, facts, vector, ref request } = *spot;
        allocator.allocate_dedicated(wanted, facts, vector, request, by_name)
    }
}

impl<T: Threading> Allocator<T> {
    /// Every allocation goes through here.
    ///
    /// Nearly all of them end here, too: nothing is out of the ordinary, and a block of the best memory type has room. That
    /// way is in one piece, without a call but the engine's, and its result is written once: what is moved through memory
    /// between functions costs as much as the search for a place. The resource is described by a function, and not by
    /// a value, for the same reason: what is needed of it stays in registers.
    #[inline]
    #[track_caller]
    pub(crate) fn allocate(
        &self,
        resource: impl Fn() -> Resource,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<Allocation, AllocationError> {
        self.allocate_for(resource, info, Location::caller())
    }

    /// [`Self::allocate`] for a place in the program that is not the caller.
    #[inline(always)]
    pub(crate) fn allocate_for(
        &self,
        resource: impl Fn() -> Resource,
        info: &AllocationCreateInfo<'_>,
        caller: &'static Location<'static>,
    ) -> Result<Allocation, AllocationError> {
        let described = resource();
        let Some((facts, vector)) = self.usual_place(&described, info, self.inner.care.any()) else {
            return self.allocate_unusually(&resource(), info, caller);
        };
        self.allocate_there(resource, &described, info, facts, vector)
    }

    /// [`Self::allocate`] whether there is a recording or not.
    #[cfg(feature = "trace")]
    #[inline(never)]
    pub(super) fn allocate_unrecorded(
        &self,
        resource: &Resource,
        info: &AllocationCreateInfo<'_>,
        caller: &'static Location<'static>,
    ) -> Result<Allocation, AllocationError> {
        let Some((facts, vector)) = self.usual_place(resource, info, self.inner.care.tracks()) else {
            return self.allocate_with_care(resource, info, Some(caller));
        };
        self.allocate_there(|| *resource, resource, info, facts, vector)
    }

    /// The way on from the usual place.
    #[inline(always)]
    fn allocate_there(
        &self,
        resource: impl Fn() -> Resource,
        described: &Resource,
        info: &AllocationCreateInfo<'_>,
        facts: &VectorFacts,
        vector: &BlockVector<T>,
    ) -> Result<Allocation, AllocationError> {
        let wanted = Wanted::new(described, info);
        let mapped = wanted.is_mapped(facts);
        if info.flags.intersects(Flags::STRATEGY_MASK) {
            return self.allocate_elsewhere(&resource(), info);
        }
        let home = vector.home();
        if home != 0 {
            return self.allocate_at_home(resource, info, facts, vector, home);
        }
        match vector.allocate_in_core(wanted.plain(mapped)) {
            Some(grant) if !mapped || grant.mapped.is_mapped() => {
                Ok(self.allocation(&wanted, facts, grant, mapped, 0))
            }
            Some(grant) => self.map_granted(&resource(), info, grant),
            None => self.allocate_elsewhere(&resource(), info),
        }
    }

    /// The default vector of the best memory type, or the pool, if nothing is out of the ordinary.
    #[inline(always)]
    fn usual_place<'a>(
        &'a self,
        resource: &Resource,
        info: &'a AllocationCreateInfo<'_>,
        care: bool,
    ) -> Option<(&'a VectorFacts, &'a BlockVector<T>)> {
        let Requirements { size, alignment, memory_type_bits, prefers_dedicated, requires_dedicated } =
            resource.requirements;
        let is_ordinary = !prefers_dedicated
            && !requires_dedicated
            // One branch, not three.
            && !(info.name.is_some() | info.scope.is_some() | care)
            && is_zero_or_power_of_two(alignment)
            && is_zero_or_power_of_two(info.min_alignment)
            // So compared, what is negative or not a number is too large.
            && info.priority.to_bits() <= 1.0_f32.to_bits()
            && (info.flags.is_empty() || ORDINARY.contains(info.flags) && check_flags(info).is_ok());
        if !is_ordinary {
            return None;
        }
        let (facts, vector) = match info.pool {
            Some(pool) => {
                let facts = self.pool_facts(pool).ok()?;
                if memory_type_bits & (1 << facts.memory_type) == 0 {
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

    /// [`Self::allocate`] for a thread that has a shard, with the same care for what is moved.
    #[inline(never)]
    fn allocate_at_home(
        &self,
        resource: impl Fn() -> Resource,
        info: &AllocationCreateInfo<'_>,
        facts: &VectorFacts,
        vector: &BlockVector<T>,
        home: u8,
    ) -> Result<Allocation, AllocationError> {
        let described = resource();
        let wanted = Wanted::new(&described, info);
        let mapped = wanted.is_mapped(facts);
        match vector.allocate_in_shard(home, wanted.plain(mapped)) {
            Some(grant) if !mapped || grant.mapped.is_mapped() => {
                Ok(self.allocation(&wanted, facts, grant, mapped, 0))
            }
            Some(grant) => self.map_granted(&resource(), info, grant),
            None => self.allocate_elsewhere(&resource(), info),
        }
    }

    /// What is usual, but not granted at once: there is no room, another thread is in the way, or a strategy is asked for.
    #[inline(never)]
    fn allocate_elsewhere(
        &self,
        resource: &Resource,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<Allocation, AllocationError> {
        if let Some((facts, vector)) = self.usual_place(resource, info, self.inner.care.tracks()) {
            let wanted = Wanted::new(resource, info);
            let request = wanted.request(facts);
            if let Some(grant) = vector.allocate_at_once(&self.inner.context, &request) {
                return Ok(self.allocation(&wanted, facts, grant, request.mapped, 0));
            }
        }
        self.allocate_with_care(resource, info, None)
    }

    /// Maps the block of a grant that is to be mapped, and is not.
    #[cold]
    #[inline(never)]
    fn map_granted(
        &self,
        resource: &Resource,
        info: &AllocationCreateInfo<'_>,
        grant: Grant,
    ) -> Result<Allocation, AllocationError> {
        let (facts, vector) =
            self.usual_place(resource, info, self.inner.care.tracks()).ok_or(AllocationError::ForeignPool)?;
        let wanted = Wanted::new(resource, info);
        let request = wanted.request(facts);
        let grant = vector.finish(&self.inner.context, grant, &request)?;
        Ok(self.allocation(&wanted, facts, grant, true, 0))
    }

    /// Allocates whatever can be allocated, or says why not.
    #[cold]
    #[inline(never)]
    pub(super) fn allocate_with_care(
        &self,
        resource: &Resource,
        info: &AllocationCreateInfo<'_>,
        caller: Option<&'static Location<'static>>,
    ) -> Result<Allocation, AllocationError> {
        let wanted = &Wanted { caller, ..Wanted::new(resource, info) };
        self.find_place(&Take, wanted).inspect_err(|error| tell::failed(wanted, error))
    }

    /// Memory of its own, with a chain for the `VkMemoryAllocateInfo`.
    #[cold]
    pub(crate) fn allocate_alone(
        &self,
        resource: &Resource,
        info: &AllocationCreateInfo<'_>,
        next: MemoryAllocateNext,
        caller: &'static Location<'static>,
    ) -> Result<Allocation, AllocationError> {
        let info = &AllocationCreateInfo { flags: info.flags | Flags::DEDICATED_MEMORY, ..*info };
        let has_chain = !next.get().is_null();
        let wanted = &Wanted { caller: Some(caller), next, ..Wanted::new(resource, info) };
        let answer = self.find_place(&Take, wanted).inspect_err(|error| tell::failed(wanted, error));
        self.note_allocation(resource, info, has_chain, &answer);
        answer
    }

    /// Goes through all places that there may be, in the order in which they are tried.
    #[cold]
    pub(super) fn find_place<W: Way<T>>(
        &self,
        way: &W,
        wanted: &Wanted<'_>,
    ) -> Result<W::Answer, AllocationError> {
        let Wanted { resource, info, .. } = *wanted;
        if resource.requirements.size == 0 {
            return Err(AllocationError::ZeroSize);
        }
        // Zero stands for one.
        for alignment in [resource.requirements.alignment, info.min_alignment] {
            if !is_zero_or_power_of_two(alignment) {
                return Err(AllocationError::Alignment { alignment });
            }
        }
        if !(0.0..=1.0).contains(&info.priority) {
            return Err(AllocationError::Priority { priority: info.priority });
        }
        check_flags(info)?;
        if info.pool.is_some() && info.scope.is_some() {
            return Err(Contradiction::PoolAndScope.into());
        }
        if let Some(pool) = info.pool {
            let facts = self.pool_facts(pool).map_err(|_| AllocationError::ForeignPool)?;
            let memory_type_bits = resource.requirements.memory_type_bits;
            if memory_type_bits & (1 << facts.memory_type) == 0 {
                return Err(AllocationError::PoolMemoryType {
                    memory_type: facts.memory_type,
                    memory_type_bits,
                });
            }
            return self.place_in(way, wanted, facts, self.vector_at(facts)?);
        }
        if let Some(scope) = info.scope {
            return self.place_in_scope(way, wanted, scope);
        }
        self.in_best_type::<W>(wanted, |memory_type| {
            let DefaultVector { facts, vector } = &self.inner.defaults[index(memory_type)];
            self.place_in(way, wanted, facts, vector)
        })
    }

    /// Looks for a place in one memory type after the other, from the best on, until there is one.
    pub(super) fn in_best_type<W: Way<T>>(
        &self,
        wanted: &Wanted<'_>,
        place_in: impl Fn(u32) -> Result<W::Answer, AllocationError>,
    ) -> Result<W::Answer, AllocationError> {
        let mut first_error = None;
        let mut refused = None;
        for memory_type in self.inner.types.choose(&self.wish(wanted.resource, wanted.info))? {
            if W::TAKES {
                tell::fallback(wanted, refused, memory_type);
            }
            match place_in(memory_type) {
                Err(error) if error.is_shortage() => {
                    refused = Some((memory_type, error));
                    first_error = first_error.or(Some(error));
                }
                answer => return answer,
            }
        }
        // `choose` answers with at least one type, or with an error.
        Err(first_error.unwrap_or(AllocationError::ZeroSize))
    }

    /// The best memory type for what `allocate` would be asked.
    pub(crate) fn find_for(
        &self,
        resource: &Resource,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<u32, FindMemoryTypeError> {
        let wish = self.wish(resource, info);
        let mut candidates = self.find_all_for(resource, info)?;
        candidates.next().ok_or(FindMemoryTypeError::NoMemoryType(memory_type::NoMemoryType::NoneFits {
            usage: wish.usage,
            required: wish.required,
            memory_type_bits: wish.memory_type_bits,
        }))
    }

    /// The memory types for what `allocate` would be asked, in the order in which it would try them: one at least.
    pub(crate) fn find_all_for(
        &self,
        resource: &Resource,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<impl Iterator<Item = u32>, FindMemoryTypeError> {
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

    pub(super) fn vector_at(&self, facts: &VectorFacts) -> Result<&BlockVector<T>, AllocationError> {
        self.inner.vector(facts.vector).ok_or(AllocationError::ForeignPool)
    }

    /// Block or memory of its own, in one memory type or pool; out of memory that lay empty elsewhere if there is no other.
    #[inline]
    pub(super) fn place_in<W: Way<T>>(
        &self,
        way: &W,
        wanted: &Wanted<'_>,
        facts: &VectorFacts,
        vector: &BlockVector<T>,
    ) -> Result<W::Answer, AllocationError> {
        let attempt = || self.place_in_what_is_free(way, wanted, facts, vector);
        if !W::TAKES {
            return attempt();
        }
        let need = Need {
            memory_type: facts.memory_type,
            bytes: if facts.fixed_block_size { facts.block_size } else { wanted.resource.requirements.size },
            count: 1,
            within_budget: wanted.info.flags.contains(Flags::WITHIN_BUDGET),
        };
        self.inner.with_relief(need, attempt, |error| match error {
            AllocationError::Memory(error) => Some(*error),
            _ => None,
        })
    }

    /// [`Self::place_in`] for what the driver gives as it is.
    #[inline]
    fn place_in_what_is_free<W: Way<T>>(
        &self,
        way: &W,
        wanted: &Wanted<'_>,
        facts: &VectorFacts,
        vector: &BlockVector<T>,
    ) -> Result<W::Answer, AllocationError> {
        let Wanted { resource, info, .. } = *wanted;
        let requirements = &resource.requirements;
        let never_allocate = info.flags.contains(Flags::NEVER_ALLOCATE);
        let upper = info.flags.contains(Flags::UPPER_ADDRESS);
        if upper && (facts.algorithm != Algorithm::Linear || facts.max_block_count != 1) {
            return Err(AllocationError::UpperAddress {
                algorithm: facts.algorithm,
                max_block_count: facts.max_block_count,
            });
        }
        let mut request = wanted.request(facts);
        request.size = request.size.saturating_add(self.margin());
        let spot = &Spot { allocator: self, wanted, facts, vector, request };
        let is_lazy = info.pool.is_none() && info.usage == MemoryUsage::GpuLazilyAllocated;
        if info.flags.contains(Flags::DEDICATED_MEMORY) || requirements.requires_dedicated || is_lazy {
            if never_allocate {
                return Err(Contradiction::DedicatedNeverAllocate.into());
            }
            if facts.fixed_block_size {
                return Err(Contradiction::DedicatedInFixedPool.into());
            }
            if W::TAKES {
                tell::dedicated(spot, tell::why_it_must(spot));
            }
            return way.own(spot, true);
        }
        let may_be_dedicated = !never_allocate && !facts.fixed_block_size && !upper;
        let mut refused = None;
        if may_be_dedicated && self.is_always_dedicated() {
            if W::TAKES {
                tell::dedicated(spot, "always_dedicated");
            }
            // The debug settings ask for it.
            return way.own(spot, true);
        }
        // Memory of its own is better than a part of a block, but where blocks are counted: it would be one that nothing else is
        // in.
        let is_better_alone = facts.max_block_count == 0
            && (requirements.prefers_dedicated || requirements.size > facts.block_size / 2);
        if may_be_dedicated && is_better_alone {
            if self.inner.context.budgets.is_near_max_live_memory() {
                if W::TAKES {
                    tell::dedicated_declined(spot, "allocation_count", None);
                }
            } else {
                if W::TAKES {
                    tell::dedicated(spot, tell::why_it_should(spot));
                }
                match way.own(spot, false) {
                    Err(error) if error.is_shortage() => {
                        if W::TAKES {
                            tell::dedicated_declined(spot, "refused", Some(&error));
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
                    vector.check_alone(&spot.request)?;
                    if W::TAKES {
                        tell::dedicated(spot, "no_block");
                    }
                    way.own(spot, false)
                }
                None => Err(error),
            },
            answer => answer,
        }
    }

    #[cold]
    fn allocate_dedicated(
        &self,
        wanted: &Wanted<'_>,
        facts: &VectorFacts,
        vector: &BlockVector<T>,
        request: &VectorRequest,
        by_name: bool,
    ) -> Result<Allocation, AllocationError> {
        let Wanted { resource, info, .. } = *wanted;
        let can_alias = info.flags.contains(Flags::CAN_ALIAS);
        let what = DriverAllocation {
            size: resource.requirements.size,
            memory_type: facts.memory_type,
            // A pool has a priority of its own.
            priority: info.pool.is_none().then_some(info.priority),
            device_address: resource.device_address,
            // Where the driver requires dedicated memory, binding without saying so would be wrong
            // (VUID-vkBindImageMemory-image-01445).
            dedicated_to: resource.handle.filter(|_| !can_alias || resource.requirements.requires_dedicated),
            next: wanted.next.get(),
        };
        let grant = vector.allocate_dedicated(&self.inner.context, &what, request, by_name)?;
        Ok(self.finish(wanted, facts, vector, grant, request, allocation_flags::DEDICATED))
    }

    #[inline]
    fn finish(
        &self,
        wanted: &Wanted<'_>,
        facts: &VectorFacts,
        vector: &BlockVector<T>,
        grant: Grant,
        request: &VectorRequest,
        flags: u8,
    ) -> Allocation {
        let mut allocation = self.allocation(wanted, facts, grant, request.mapped, flags);
        if self.inner.debug.settings.is_special() {
            self.watch(&mut allocation, wanted.next.get().is_null());
        }
        let record = self.inner.tracking.record(wanted.info, wanted.caller);
        if !record.is_empty() {
            let kept = vector.change_record(allocation.live(), |empty| *empty = record);
            debug_assert!(kept.is_ok());
        }
        allocation
    }

    /// What the caller gets for a grant.
    #[inline(always)]
    fn allocation(
        &self,
        wanted: &Wanted<'_>,
        facts: &VectorFacts,
        grant: Grant,
        mapped: bool,
        flags: u8,
    ) -> Allocation {
        let Wanted { resource, info, .. } = *wanted;
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
            memory_type: u8::try_from(facts.memory_type).unwrap_or(u8::MAX),
            flags,
            shard: grant.shard,
        }
    }
}
