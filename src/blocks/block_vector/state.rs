//! The state under a vector's core lock: the engine and the blocks that it divides. Nothing here calls the driver.

use std::ops::RangeInclusive;

use super::super::device_block::{DeviceBlock, DeviceContext, MappableMemory};
use super::super::growth::BlockGrowth;
use super::super::mapped_pointer::MappedPointer;
use super::annotations::Annotations;
use super::maintain::Upkeep;
use super::shard::{LeasedRange, Leasing};
use super::{FOREIGN, Grant, VectorRequest, VectorTotals};
use crate::engine::{Algorithm, Engine};
use crate::error::{AllocationError, ForeignHandle, MemoryError};
use crate::pool::VectorConfig;
use crate::vector::hysteresis::Hysteresis;
use sublet_engines::cast::index;
use sublet_engines::{AllocateError, Key, Metadata, RegionId, Request, Strategy, Tag, Usage};

/// The tag of a leased range in the core. No resource has it.
const LEASE: Tag = Tag(Tag::MASK);

/// A thread gets a shard if the core's lock is contended this often within [`CONTENTIONS_WITHIN`] allocations.
const CONTENTIONS: u32 = 8;
/// See [`CONTENTIONS`].
const CONTENTIONS_WITHIN: u32 = 1024;

/// Numbers of blocks that are few: see [`Active::fills_last_block`].
const FEW_BLOCKS: RangeInclusive<u32> = 2..=3;

#[derive(Debug)]
pub(super) struct VectorBlock {
    /// Unique within this use of the vector.
    pub(super) id: u32,
    pub(super) memory: DeviceBlock,
    /// Users of the mapping: guards, and persistently mapped allocations. 64 bits cannot overflow, even if guards are
    /// leaked. If it wrapped to zero, `trim` would unmap memory in use.
    pub(super) map_count: u64,
    /// The block is empty and may be freed.
    pub(super) empty: bool,
    /// `reserve` created the block, and nothing was freed in it yet. It is not `empty` then, so that it stays.
    pub(super) reserved: bool,
    /// The number of calls of `maintain` when the block became empty.
    pub(super) empty_since: u32,
    /// The allocation that caused this block. [Undoing](super::MemoryBlockVector::undo) it frees the block.
    pub(super) created_for: Option<Key>,
    /// The active defragmentation context moves nothing out of this block.
    pub(super) stays: bool,
}

/// A request that the engine could not place. It stays impossible until something is granted or freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Refused {
    pub(super) wanted: Request,
    /// The count of allocations at the refusal.
    pub(super) uses: u32,
    pub(super) usage: Usage,
}

/// The invariant reported if an inactive vector is used.
const IN_USE: &str = "B3: a vector that is allocated from is in use";

#[derive(Debug)]
pub(super) struct Active {
    pub(super) config: VectorConfig,
    pub(super) leasing: Option<Leasing>,
    pub(super) engine: Engine,
    /// By region.
    pub(super) blocks: Vec<Option<VectorBlock>>,
    pub(super) block_count: u32,
    next_block_id: u32,
    pub(super) block_bytes: u64,
    pub(super) empty_blocks: u32,
    /// A block ends, or a former block ended, within a granularity page.
    pub(super) has_partial_pages: bool,
    /// A free that leaves fewer used bytes than this may need more than the engine: it drops an annotation, frees an
    /// empty block, or returns unused leased ranges. A single bound keeps the common free to one check.
    pub(super) heeds_below: u64,
    /// Frees that left no block empty, since the last one that did.
    pub(super) frees_elsewhere: u32,
    pub(super) hysteresis: Hysteresis,
    pub(super) annotations: Annotations,
    /// Leased ranges and their bytes: used chunks to the engine, but not allocations.
    pub(super) lease_count: u64,
    pub(super) lease_bytes: u64,
    /// The last request that the engine refused. Cleared when a block is added, and when something is granted that
    /// `uses` does not count.
    pub(super) refused: Option<Refused>,
    /// A defragmentation context is active on this vector.
    pub(super) is_compacted: bool,
    /// `None` before the first call of `maintain`.
    pub(super) upkeep: Option<Box<Upkeep>>,
    /// The pool's own name.
    pub(super) name: Option<Box<str>>,
}

/// The state of a vector in use. A custom [`Option`] with an explicit tag, as in [`Engine`], because every call checks
/// it.
#[derive(Debug, Default)]
#[repr(u8)]
#[allow(clippy::large_enum_variant, reason = "see `Engine`")]
pub(super) enum VectorUse {
    #[default]
    No,
    Of(Active),
}

impl VectorUse {
    #[inline]
    pub(super) const fn as_ref(&self) -> Option<&Active> {
        match self {
            Self::No => None,
            Self::Of(active) => Some(active),
        }
    }

    #[inline]
    pub(super) const fn as_mut(&mut self) -> Option<&mut Active> {
        match self {
            Self::No => None,
            Self::Of(active) => Some(active),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct VectorCore {
    /// Distinguishes one use of this vector from the next.
    pub(super) generation: u32,
    pub(super) active: VectorUse,
    /// Counts allocations; wraps.
    pub(super) uses: u32,
    /// The value of `uses` at the first counted contention.
    contended_since: u32,
    /// How often a thread found the core's lock contended.
    contentions: u32,
}

impl VectorCore {
    /// Counts one contention of the core's lock. Returns true if the thread should get a shard.
    pub(super) fn count_contention(&mut self) -> bool {
        if self.uses.wrapping_sub(self.contended_since) > CONTENTIONS_WITHIN {
            self.contended_since = self.uses;
            self.contentions = 0;
        }
        self.contentions = self.contentions.saturating_add(1);
        self.contentions >= CONTENTIONS
    }

    /// Activates the vector with fresh contention counts, and returns its generation. Builds the state in place,
    /// because it is large. On failure, `blocks` contains all blocks again.
    pub(super) fn begin(
        &mut self,
        config: &VectorConfig,
        name: Option<&str>,
        blocks: &mut Vec<DeviceBlock>,
    ) -> Result<u32, MemoryError> {
        self.active = VectorUse::Of(Active::new(config, name));
        let active = self.in_use_mut();
        let mut to_add = std::mem::take(blocks).into_iter();
        while let Some(block) = to_add.next() {
            if let Err(block) = active.add_block(block) {
                let limit = active.block_count;
                blocks.extend(active.take_all_blocks().into_iter().chain([block]).chain(to_add));
                self.active = VectorUse::No;
                return Err(MemoryError::TooManyAllocations { limit });
            }
        }
        self.contentions = 0;
        self.contended_since = self.uses;
        self.generation = self.generation.wrapping_add(1);
        Ok(self.generation)
    }

    /// Deactivates the vector. Returns the pool's name and the blocks.
    pub(super) fn end(&mut self) -> (Option<Box<str>>, Vec<DeviceBlock>) {
        self.generation = self.generation.wrapping_add(1);
        let ended = self.active.as_mut().map(|active| (active.name.take(), active.take_all_blocks()));
        self.active = VectorUse::No;
        ended.unwrap_or_default()
    }

    /// The lease parameters for shards, if this vector leases ranges.
    pub(super) fn leasing(&self) -> Option<Leasing> {
        self.active.as_ref()?.leasing
    }

    /// Leases `size` bytes to a shard, if a block has them.
    pub(super) fn lease_range(&mut self, size: u64) -> Option<LeasedRange> {
        let generation = self.generation;
        let active = self.active.as_mut()?;
        let wanted = Request { tag: LEASE, ..Request::new(size, Leasing::alignment()) };
        let (key, span) = active.engine.allocate(&wanted).ok()?;
        active.refused = None;
        active.lease_count += 1;
        active.lease_bytes += size;
        active.heeds_below = u64::MAX;
        let Grant { memory, offset: base, mapped, .. } =
            active.granted(key, span.region, span.offset, false, generation);
        Some(LeasedRange { key, generation, block: span.region, memory, base, size, mapped })
    }

    /// Takes back an empty leased range. Returns the block if it is empty now and surplus.
    pub(super) fn take_back(&mut self, context: &DeviceContext, lease: &LeasedRange) -> Option<DeviceBlock> {
        let (active, is_empty) = self.end_lease(lease)?;
        active.after_free(context, lease.key, lease.block, is_empty)?.block()
    }

    /// [`Self::take_back`], but keeps all blocks; the caller decides about them later.
    pub(super) fn take_back_leased(&mut self, lease: &LeasedRange) {
        if let Some((active, true)) = self.end_lease(lease) {
            active.mark_empty(lease.block);
        }
    }

    /// Returns true if this emptied the range's block. Returns `None` for a range of an earlier use, whose memory is
    /// gone.
    fn end_lease(&mut self, lease: &LeasedRange) -> Option<(&mut Active, bool)> {
        let active = self.use_of(lease.generation).ok()?;
        let freed = active.engine.free(lease.key).ok()?;
        active.lease_count -= 1;
        active.lease_bytes -= lease.size;
        if lease.mapped.is_mapped() {
            let block = active.block_mut(lease.block);
            block.map_count = block.map_count.saturating_sub(1);
        }
        Some((active, freed.region_empty))
    }

    /// The state in the use `generation`. Each activation begins a use: a new pool takes the vector of a destroyed one.
    #[inline]
    pub(super) fn use_of(&mut self, generation: u32) -> Result<&mut Active, ForeignHandle> {
        if self.generation != generation {
            return Err(FOREIGN);
        }
        self.active.as_mut().ok_or(FOREIGN)
    }

    /// The active state. The type system ensures that it exists: allocation borrows a pool or scope, and destruction
    /// consumes it.
    pub(super) fn in_use(&self) -> &Active {
        self.active.as_ref().expect(IN_USE)
    }

    fn in_use_mut(&mut self) -> &mut Active {
        self.active.as_mut().expect(IN_USE)
    }

    /// Returns `Ok(None)` if no block has room. Skips the engine if it just refused the same request.
    pub(super) fn allocate(&mut self, request: &VectorRequest) -> Result<Option<Grant>, AllocationError> {
        let Self { generation, uses, .. } = *self;
        let active = self.in_use_mut();
        let wanted = active.wanted(request);
        let granted = if active.is_known_to_refuse(&wanted, uses) {
            None
        } else {
            match active.engine.allocate(&wanted) {
                Ok((key, span)) => Some((key, span.region, span.offset)),
                Err(AllocateError::NoSpace) => {
                    active.refuse(wanted, uses);
                    None
                }
                Err(error) => return Err(active.error_of(error)),
            }
        };
        let Some((key, region, offset)) = granted.or_else(|| active.allocate_at_end(request)) else {
            return Ok(None);
        };
        let grant = active.granted(key, region, offset, request.mapped, generation);
        self.uses = uses.wrapping_add(1);
        Ok(Some(grant))
    }

    /// Checks that the limits allow another block, where `dedicated` allocations count as blocks.
    pub(super) fn check_growth(
        &self,
        request: &VectorRequest,
        dedicated: u32,
    ) -> Result<(), AllocationError> {
        self.in_use().check_growth(request, dedicated).map(|_| ())
    }

    /// Checks that the limits allow another allocation that counts as a block.
    pub(super) fn check_count(&self, request: &VectorRequest, dedicated: u32) -> Result<(), AllocationError> {
        let active = self.in_use();
        if active.is_at_limit(dedicated) { Err(active.full(request, dedicated)) } else { Ok(()) }
    }

    /// Plans a new block that makes room, if the limits allow one.
    #[cold]
    pub(super) fn plan_growth(
        &self,
        request: &VectorRequest,
        dedicated: u32,
    ) -> Result<BlockGrowth, AllocationError> {
        self.in_use().plan_growth(request, dedicated)
    }

    /// Adds a new block and allocates. Returns the block if it does not help, or if the request fits elsewhere by now
    /// and the block is surplus; or an empty block for which the vector has too few bytes in use.
    pub(super) fn allocate_in_new_block(
        &mut self,
        block: DeviceBlock,
        request: &VectorRequest,
    ) -> (Result<Grant, AllocationError>, Option<DeviceBlock>) {
        let active = self.in_use_mut();
        active.hysteresis.count_grown(active.engine.usage().used);
        let region = match active.add_block(block) {
            Ok(region) => region,
            Err(block) => {
                let limit = active.block_count;
                return (Err(MemoryError::TooManyAllocations { limit }.into()), Some(block));
            }
        };
        let granted = self.allocate(request);
        let active = self.in_use_mut();
        let helped = matches!(granted, Ok(Some(_)));
        active.block_mut(region).created_for =
            granted.as_ref().ok().and_then(|grant| Some(grant.as_ref()?.key));
        let kept = if helped { active.config.empty_blocks_kept } else { 0 };
        // If the block was used it is not empty, and stays.
        let surplus = active.block_mut(region).empty && active.empty_blocks > kept;
        let unwanted = match () {
            () if surplus => active.take_empty_block(region),
            // The empty blocks were too small for the request.
            () if active.follows_live() && active.has_spare() => active.take_first_to_go(),
            () => None,
        };
        (granted.and_then(|grant| grant.ok_or_else(|| active.full(request, 0))), unwanted)
    }
}

impl Active {
    /// The state without blocks.
    #[inline(always)]
    fn new(config: &VectorConfig, name: Option<&str>) -> Self {
        Self {
            config: *config,
            leasing: Leasing::of(config),
            engine: match config.algorithm {
                Algorithm::Tlsf => Engine::unmade(config.block_size),
                other => Engine::new(other, config.block_size, config.max_blocks > 1),
            },
            blocks: Vec::new(),
            block_count: 0,
            next_block_id: 0,
            block_bytes: 0,
            empty_blocks: 0,
            has_partial_pages: false,
            heeds_below: 0,
            frees_elsewhere: 0,
            hysteresis: Hysteresis::default(),
            annotations: Annotations::default(),
            lease_count: 0,
            lease_bytes: 0,
            refused: None,
            is_compacted: false,
            upkeep: None,
            name: name.map(Box::from),
        }
    }

    /// Sums over the core's own allocations, without leased ranges.
    #[inline]
    pub(super) fn totals(&self) -> VectorTotals {
        let usage = self.engine.usage();
        VectorTotals {
            block_count: u64::from(self.block_count),
            block_bytes: self.block_bytes,
            allocation_count: usage.used_chunks - self.lease_count,
            allocation_bytes: usage.used - self.lease_bytes,
        }
    }

    #[inline]
    pub(super) fn wanted(&self, request: &VectorRequest) -> Request {
        let mut wanted = request.of_engine(self.config.granularity, self.config.min_alignment);
        if self.fills_last_block() && wanted.strategy == Strategy::Balanced {
            wanted.strategy = Strategy::LastRegion;
        }
        wanted
    }

    /// Returns true if requests fill the last of a few blocks first. Where no empty block stays beside others, one that
    /// takes only what fits it best is often emptied, freed and created again. Of many blocks, one costs little, and the
    /// best fit needs fewer.
    fn fills_last_block(&self) -> bool {
        self.config.keeps_only_last && FEW_BLOCKS.contains(&self.block_count)
    }

    /// Records that the engine refused the request, so that it is not asked again until that may have changed.
    fn refuse(&mut self, wanted: Request, uses: u32) {
        let refused = Refused { wanted, uses, usage: self.engine.usage() };
        self.refused = self.engine.has_looked_at_all().then_some(refused);
    }

    /// Returns true if the engine has too few free bytes, or refused this request and nothing was granted or freed
    /// since.
    fn is_known_to_refuse(&self, wanted: &Request, uses: u32) -> bool {
        let usage = self.engine.usage();
        let has_too_little = !wanted.upper && usage.capacity - usage.used < wanted.size;
        has_too_little || self.refused == Some(Refused { wanted: *wanted, uses, usage })
    }

    /// Returns true if a block has room for the request.
    pub(super) fn fits(&self, request: &VectorRequest) -> Result<bool, AllocationError> {
        let fits = self.engine.fits(&self.wanted(request)).map_err(|error| self.error_of(error))?;
        Ok(fits || self.fits_at_end(request))
    }

    #[cold]
    fn error_of(&self, error: AllocateError) -> AllocationError {
        match error {
            AllocateError::UpperInRing => AllocationError::UpperAddressInRing,
            _ => AllocationError::UpperAddress {
                algorithm: self.config.algorithm,
                max_block_count: self.config.max_block_count(),
            },
        }
    }

    /// Returns true if the number of blocks, plus `dedicated` allocations that count as blocks, reached the limit.
    fn is_at_limit(&self, dedicated: u32) -> bool {
        self.block_count.saturating_add(dedicated) >= self.config.max_blocks
    }

    fn full(&self, request: &VectorRequest, dedicated: u32) -> AllocationError {
        let wanted = self.wanted(request);
        let usage = self.engine.usage();
        AllocationError::Full {
            size: request.size,
            alignment: wanted.alignment.get(),
            free: usage.capacity - usage.used,
            largest_free: self.engine.largest_free(),
            block_count: self.block_count.saturating_add(dedicated),
            max_block_count: if request.never_allocate { 0 } else { self.config.max_blocks },
        }
    }

    /// The minimum capacity of a new block; an error if it exceeds the block size.
    fn check_size(&self, request: &VectorRequest) -> Result<u64, AllocationError> {
        let block_size = self.config.block_size;
        // The last allocation in a block need not round up to a page. A buddy engine reaches the end of a block only if
        // the block's size is a power of two.
        let has_ends = !self.engine.rounds_up() || block_size.is_power_of_two();
        let wanted = self.wanted(request);
        let size = if has_ends { request.size } else { wanted.size };
        let needed = self.engine.least_capacity(&Request { size, ..wanted });
        if needed > block_size {
            return Err(AllocationError::BlockTooSmall { size: request.size, block_size });
        }
        Ok(needed)
    }

    /// See [`VectorCore::check_growth`]. Returns the minimum capacity of a new block.
    fn check_growth(&self, request: &VectorRequest, dedicated: u32) -> Result<u64, AllocationError> {
        // Without this check the driver might allocate a block that does not help.
        let needed = self.check_size(request)?;
        if request.never_allocate || self.is_at_limit(dedicated) {
            return Err(self.full(request, dedicated));
        }
        Ok(needed)
    }

    /// See [`VectorCore::plan_growth`].
    pub(super) fn plan_growth(
        &self,
        request: &VectorRequest,
        dedicated: u32,
    ) -> Result<BlockGrowth, AllocationError> {
        let needed = self.check_growth(request, dedicated)?;
        let is_last = self.block_count.saturating_add(dedicated).saturating_add(1) >= self.config.max_blocks;
        Ok(BlockGrowth {
            config: self.config,
            needed,
            block_count: self.block_count,
            largest_block: self.largest_block(),
            live: self.engine.usage().used,
            full_sized: is_last || self.config.algorithm == Algorithm::Linear,
            within_budget: request.within_budget,
        })
    }

    /// Bytes of the largest block, or 0. The search usually ends early, because one of the first blocks has the full
    /// size.
    fn largest_block(&self) -> u64 {
        let mut largest = 0;
        for block in self.blocks.iter().flatten() {
            largest = block.memory.size.max(largest);
            if largest >= self.config.block_size {
                break;
            }
        }
        largest
    }

    /// Converts an engine's result to a `Grant`.
    #[inline(always)]
    pub(super) fn granted(
        &mut self,
        key: Key,
        region: RegionId,
        offset: u64,
        mapped: bool,
        generation: u32,
    ) -> Grant {
        let block = self.blocks[index(region.0)].as_mut().expect("B1: a region has a block");
        if block.empty {
            block.empty = false;
            self.empty_blocks -= 1;
        }
        let memory = block.memory.memory;
        let mut pointer = MappedPointer::UNMAPPED;
        if mapped {
            block.map_count += 1;
            pointer = block.memory.mapped().at(offset);
        }
        Grant { memory, offset, mapped: pointer, key, generation, shard: 0 }
    }

    /// The block of a region, if the region exists.
    pub(super) fn block_of(&mut self, region: RegionId) -> Option<&mut VectorBlock> {
        self.blocks.get_mut(index(region.0))?.as_mut()
    }

    pub(super) fn block_mut(&mut self, region: RegionId) -> &mut VectorBlock {
        self.blocks[index(region.0)].as_mut().expect("B1: a region has a block")
    }

    /// Returns the block if the engine accepts no further region.
    pub(super) fn add_block(&mut self, memory: DeviceBlock) -> Result<RegionId, DeviceBlock> {
        let Ok(region) = self.engine.add_region(&memory.size) else {
            return Err(memory);
        };
        let at = index(region.0);
        if at >= self.blocks.len() {
            self.blocks.resize_with(at + 1, || None);
        }
        self.block_count += 1;
        self.block_bytes += memory.size;
        self.empty_blocks += 1;
        self.has_partial_pages |= memory.size & self.config.granularity.mask() != 0;
        self.heeds_below = u64::MAX;
        // Blocks with as many bytes may have been freed since.
        self.refused = None;
        let id = self.next_block_id;
        self.next_block_id = id.wrapping_add(1);
        self.blocks[at] = Some(VectorBlock {
            id,
            memory,
            map_count: 0,
            empty: true,
            reserved: false,
            empty_since: self.maintained_calls(),
            created_for: None,
            stays: false,
        });
        Ok(region)
    }

    pub(super) fn take_all_blocks(&mut self) -> Vec<DeviceBlock> {
        self.block_count = 0;
        self.block_bytes = 0;
        self.empty_blocks = 0;
        self.blocks.drain(..).flatten().map(|block| block.memory).collect()
    }

    /// Clears the mappings without users and returns their memory, which the caller then unmaps.
    pub(super) fn take_idle_mappings(&mut self) -> Vec<MappableMemory> {
        let idle = self.blocks.iter_mut().flatten().filter(|block| block.map_count == 0);
        idle.filter_map(|block| block.memory.forget_mapped()).collect()
    }
}

/// Returns true if a chunk of the core is a leased range.
pub(super) fn is_lease(tag: Tag) -> bool {
    tag == LEASE
}
