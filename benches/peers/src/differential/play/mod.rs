//! Runs a program on both sides, and compares them after each step.

mod access;
mod check;

use std::collections::BTreeMap;

use ash::vk;
use sublet::{AllocationCreateFlags as Flags, AllocatorCreateFlags, MemoryUsage, PoolCreateFlags};

use super::compact::Gains;
use super::differences::Difference;
use super::explain::{ExplainedRequest, explain};
use super::memory::{MemoryOwner, SideMemory};
use super::program::{PoolSpec, ProgramResource, ProgramSetup, ProgramStep, RandomProgram, Spec};
use super::side::{FailedOperation, Placement, Side, Why};
use super::sublet_side::SubletSide;
use super::tap::{Fault, TapLog};
use super::vma_side::VmaSide;

/// Counts of the comparison.
#[derive(Clone, Default, Debug)]
pub(super) struct ComparisonTally {
    pub(super) programs: u64,
    pub(super) steps: BTreeMap<&'static str, u64>,
    pub(super) counts: BTreeMap<&'static str, u64>,
    pub(super) differences: BTreeMap<Difference, u64>,
    /// Heaps and steps at which Sublet's used blocks exceed everything that VMA holds, by the preceding difference.
    pub(super) more: BTreeMap<Difference, u64>,
    /// The result of defragmentation.
    pub(super) gains: Gains,
    /// Reserved bytes of VMA and of Sublet, summed over all steps.
    pub(super) reserved: (u128, u128),
}

impl ComparisonTally {
    pub(super) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub(super) fn differ(&mut self, what: Difference) {
        *self.differences.entry(what).or_default() += 1;
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.programs += other.programs;
        for (name, count) in &other.steps {
            *self.steps.entry(name).or_default() += count;
        }
        for (name, count) in &other.counts {
            *self.counts.entry(name).or_default() += count;
        }
        for (what, count) in &other.differences {
            *self.differences.entry(*what).or_default() += count;
        }
        for (what, count) in &other.more {
            *self.more.entry(*what).or_default() += count;
        }
        self.gains.add(&other.gains);
        self.reserved.0 += other.reserved.0;
        self.reserved.1 += other.reserved.1;
    }
}

/// An unintended difference.
#[derive(Clone, Debug)]
pub(super) struct Mismatch {
    pub(super) step: usize,
    pub(super) text: String,
}

/// An allocation that is live on both sides.
#[derive(Clone, Copy, Debug)]
struct LivePair {
    slot: usize,
    pool: Option<usize>,
    vma: Placement,
    sublet: Placement,
    maps: u32,
    /// True if its use requires a `HOST_ACCESS` flag.
    host_access: bool,
}

struct ProgramPlayer<'a> {
    setup: &'a ProgramSetup,
    vma: VmaSide,
    sublet: SubletSide,
    vma_memory: SideMemory,
    sublet_memory: SideMemory,
    live: Vec<LivePair>,
    pools: Vec<Option<PoolSpec>>,
    slots: usize,
    tally: ComparisonTally,
    /// The last intended difference that left the two with different blocks.
    cause: Option<Difference>,
}

/// Runs a program to its end.
pub(super) fn play(program: &RandomProgram) -> Result<ComparisonTally, Mismatch> {
    let setup = &program.setup;
    let mut player = ProgramPlayer {
        setup,
        vma: VmaSide::new(setup),
        sublet: SubletSide::new(setup),
        vma_memory: SideMemory::default(),
        sublet_memory: SideMemory::default(),
        live: Vec::new(),
        pools: Vec::new(),
        slots: 0,
        tally: ComparisonTally { programs: 1, ..ComparisonTally::default() },
        cause: None,
    };
    let mut found = Ok(());
    for (at, step) in program.steps.iter().enumerate() {
        let done = player.step(step).and_then(|()| player.check());
        if let Err(text) = done {
            found = Err(Mismatch { step: at, text });
            break;
        }
        *player.tally.steps.entry(step.kind()).or_default() += 1;
    }
    let ended = player.end();
    let tally = ended.map_err(|text| Mismatch { step: program.steps.len(), text });
    found.and(tally)
}

/// Every large heap supports preferred block sizes up to this.
const LARGEST_BLOCK: u64 = 1 << 30;
/// Maximum bytes of a flushed range.
const MOST_FLUSHED: u64 = 200_000;

/// Selects an element by `pick`, modulo the length.
fn pick<T>(of: &[T], pick: u64) -> Option<usize> {
    (!of.is_empty()).then(|| (pick % of.len() as u64) as usize)
}

fn share(of: u64, part: u64) -> u64 {
    (u128::from(of) * u128::from(part) / 256) as u64
}

/// VMA's assertion on a request, if it has one. The debug build then aborts, and the release build continues.
enum Assert {
    /// The release build continues with a different request.
    GoesOn,
    /// The release build returns an error.
    Refuses,
    No,
}

impl ProgramPlayer<'_> {
    fn heap_of(&self, memory_type: u32) -> u32 {
        self.setup.profile.types[memory_type as usize].heap
    }

    fn step(&mut self, step: &ProgramStep) -> Result<(), String> {
        match *step {
            ProgramStep::CreatePool(spec) => self.create_pool(&spec),
            ProgramStep::DestroyPool(at) => self.destroy_pool(at),
            ProgramStep::Allocate { resource, spec, fault } => self.allocate(&resource, &spec, fault),
            ProgramStep::Free(at) => match pick(&self.live, at) {
                Some(at) => self.free(at),
                None => Ok(()),
            },
            ProgramStep::Map(at) => self.map(at),
            ProgramStep::Unmap(at) => self.unmap(at),
            ProgramStep::Flush { pick, from, size, invalidate } => self.flush(pick, from, size, invalidate),
            ProgramStep::Find { resource, spec } => self.find(&resource, &spec),
            ProgramStep::Budget { heap, budget, others } => {
                let heap = (heap % self.setup.profile.heaps.len() as u64) as usize;
                let size = self.setup.profile.heaps[heap].size;
                for tap in [self.vma.tap(), self.sublet.tap()] {
                    let (budget, others) = (share(size, budget), share(size, others));
                    tap.gpu().faults().set_budget_beside(heap as u32, budget, others);
                }
                self.frame();
                Ok(())
            }
            ProgramStep::Frame => {
                self.frame();
                Ok(())
            }
        }
    }

    fn frame(&mut self) {
        self.vma.set_frame();
        self.sublet.set_frame();
    }

    fn pool_spec(&self, slot: Option<usize>) -> Option<PoolSpec> {
        slot.and_then(|slot| self.pools[slot])
    }

    /// Returns true if both hold the same memory.
    fn aligned(&self) -> bool {
        self.vma_memory.shape() == self.sublet_memory.shape()
    }

    fn create_pool(&mut self, spec: &PoolSpec) -> Result<(), String> {
        let aligned = self.aligned();
        let slot = self.pools.len();
        let vma = self.vma.create_pool(slot, spec);
        let sublet = self.sublet.create_pool(slot, spec);
        let (vma_log, sublet_log) = (self.vma.tap().take(), self.sublet.tap().take());
        let what = || format!("{spec:?}: VMA {vma:?} {vma_log:?}; Sublet {sublet:?} {sublet_log:?}");
        self.vma_memory.enter(&vma_log, Some(slot));
        self.sublet_memory.enter(&sublet_log, Some(slot));
        let gives_back = gives_back(&sublet_log);
        if gives_back {
            self.tally.differ(Difference::GivesBack);
            self.cause = Some(Difference::GivesBack);
        }
        match (vma, sublet) {
            (Ok(()), Ok(())) => {
                if !gives_back && vma_log.asked != sublet_log.asked {
                    return Err(format!("other blocks for a new pool: {}", what()));
                }
                self.pools.push(Some(*spec));
                self.tally.count("pools compared");
            }
            (Err(vma), Err(sublet)) if vma.result == sublet.result => {
                self.tally.count("pools refused by both");
            }
            (vma, Err(FailedOperation { why: Why::Other("block size"), .. })) => {
                if let Ok(()) = vma {
                    self.vma.destroy_pool(slot);
                    let log = self.vma.tap().take();
                    self.vma_memory.enter(&log, Some(slot));
                }
                self.tally.differ(Difference::PoolBlockSize);
            }
            (vma, sublet) if aligned && !self.has_large_blocks(spec) && !gives_back => {
                return Err(format!("another result for a pool, {vma:?} and {sublet:?}: {}", what()));
            }
            (vma, sublet) => {
                if self.has_large_blocks(spec) {
                    self.tally.differ(Difference::LargeBlocks);
                }
                if vma.is_ok() {
                    self.vma.destroy_pool(slot);
                    let log = self.vma.tap().take();
                    self.vma_memory.enter(&log, Some(slot));
                }
                if sublet.is_ok() {
                    self.sublet.destroy_pool(slot);
                    let log = self.sublet.tap().take();
                    self.sublet_memory.enter(&log, Some(slot));
                }
            }
        }
        if self.pools.len() == slot {
            self.pools.push(None);
        }
        Ok(())
    }

    /// Returns true if the preferred block size exceeds the pool's heap.
    fn has_large_blocks(&self, spec: &PoolSpec) -> bool {
        let is_there = (spec.memory_type as usize) < self.setup.profile.types.len();
        is_there && self.setup.has_large_blocks(spec.memory_type)
    }

    fn destroy_pool(&mut self, at: u64) -> Result<(), String> {
        let live: Vec<_> = (0..self.pools.len()).filter(|slot| self.pools[*slot].is_some()).collect();
        let Some(slot) = pick(&live, at).map(|at| live[at]) else { return Ok(()) };
        while let Some(at) = self.live.iter().position(|live| live.pool == Some(slot)) {
            self.free(at)?;
        }
        self.vma.destroy_pool(slot);
        self.sublet.destroy_pool(slot);
        let (vma_log, sublet_log) = (self.vma.tap().take(), self.sublet.tap().take());
        self.vma_memory.enter(&vma_log, Some(slot));
        self.sublet_memory.enter(&sublet_log, Some(slot));
        self.pools[slot] = None;
        let left = self.sublet_memory.blocks.values().any(|block| block.owner == MemoryOwner::Pool(slot));
        if left { Err("a destroyed pool left blocks".to_owned()) } else { Ok(()) }
    }

    fn asserts(
        &self,
        resource: &ProgramResource,
        spec: &Spec,
        pool: Option<&PoolSpec>,
        creates: bool,
    ) -> Assert {
        let flags = spec.flags;
        let has = |flag| flags.contains(flag);
        let host = flags.intersection(Flags::HOST_ACCESS_MASK);
        let strategies = flags.intersection(Flags::STRATEGY_MASK).bits().count_ones();
        let is_lazy = spec.usage == MemoryUsage::GpuLazilyAllocated && pool.is_none();
        let knows = matches!(resource, ProgramResource::Buffer { .. } | ProgramResource::Image(_))
            || !creates && !matches!(resource, ProgramResource::Raw { .. });
        if host == Flags::HOST_ACCESS_MASK
            || host.is_empty() && has(Flags::HOST_ACCESS_ALLOW_TRANSFER_INSTEAD)
            || host.is_empty() && has(Flags::MAPPED) && spec.usage.is_auto() && pool.is_none()
            || strategies > 1
            || has(Flags::DEDICATED_MEMORY | Flags::UPPER_ADDRESS)
        {
            return Assert::GoesOn;
        }
        let dedicated = has(Flags::DEDICATED_MEMORY) || is_lazy;
        let address = matches!(resource, ProgramResource::Buffer { buffer, .. }
            if buffer.usage.contains(vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS)
                && !self.setup.flags.contains(AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS));
        if dedicated && (has(Flags::NEVER_ALLOCATE) || pool.is_some_and(|pool| pool.block_size != 0))
            || spec.usage.is_auto() && !knows && pool.is_none()
            || creates && address
        {
            return Assert::Refuses;
        }
        let lazy_in_pool =
            spec.usage == MemoryUsage::GpuLazilyAllocated && pool.is_some_and(|pool| pool.block_size != 0);
        if lazy_in_pool || host.is_empty() && has(Flags::MAPPED) && spec.usage.is_auto() {
            // The release build behaves like Sublet.
            return Assert::Refuses;
        }
        Assert::No
    }

    fn allocate(
        &mut self,
        resource: &ProgramResource,
        spec: &Spec,
        fault: Option<Fault>,
    ) -> Result<(), String> {
        let pools: Vec<_> = (0..self.pools.len()).filter(|slot| self.pools[*slot].is_some()).collect();
        let pool = spec.pool.and_then(|at| pick(&pools, at).map(|at| pools[at]));
        let pool_spec = self.pool_spec(pool);
        let needs = self.vma.needs(resource);
        let slot = self.slots;
        match self.asserts(resource, spec, pool_spec.as_ref(), true) {
            Assert::GoesOn => return self.refused(slot, resource, spec, pool, Difference::Contradiction),
            Assert::Refuses if cfg!(debug_assertions) => return Ok(()),
            _ => {}
        }
        if let (Some(pool_spec), Some(needs)) = (pool_spec, needs) {
            if needs.bits & 1 << pool_spec.memory_type == 0 {
                return self.refused(slot, resource, spec, pool, Difference::PoolMemoryType);
            }
        }
        let ignores = pool_spec
            .is_some_and(|pool| pool.flags.contains(PoolCreateFlags::IGNORE_BUFFER_IMAGE_GRANULARITY));
        if ignores
            && matches!(resource, ProgramResource::Image(image) if image.tiling == vk::ImageTiling::OPTIMAL)
        {
            // The creator of such a pool promises that it holds only one kind of resource. This would be the other
            // kind.
            return Ok(());
        }
        let aligned = self.aligned();
        let before = self.vma.heaps();
        let sublet_before = self.sublet.heaps();
        self.slots += 1;
        self.vma.tap().order(fault);
        let vma = self.vma.allocate(slot, resource, spec, pool);
        self.vma.tap().order(None);
        self.sublet.tap().order(fault);
        let sublet = self.sublet.allocate(slot, resource, spec, pool);
        self.sublet.tap().order(None);
        let (vma_log, sublet_log) = (self.vma.tap().take(), self.sublet.tap().take());
        self.vma_memory.enter(&vma_log, pool);
        self.sublet_memory.enter(&sublet_log, pool);
        for (place, memory) in [(&vma, &mut self.vma_memory), (&sublet, &mut self.sublet_memory)] {
            if let Ok(place) = place {
                memory.place(place)?;
                let kind = self.setup.profile.types[place.memory_type as usize].flags;
                let flushed = kind.contains(vk::MemoryPropertyFlags::HOST_VISIBLE)
                    && !kind.contains(vk::MemoryPropertyFlags::HOST_COHERENT);
                let atom = if flushed { self.setup.profile.limits.non_coherent_atom_size } else { 1 };
                let least = pool_spec.map_or(1, |pool| pool.min_alignment).max(atom);
                let alignment = needs.map_or(1, |needs| needs.alignment).max(least);
                if place.offset % alignment != 0 {
                    return Err(format!("not aligned to {alignment}: {place:?}"));
                }
            }
        }
        let case = ExplainedRequest {
            setup: self.setup,
            resource,
            spec,
            pool: pool_spec.as_ref(),
            needs,
            fault,
            aligned,
            before: &before,
            sublet_before: &sublet_before,
            vma: &vma,
            sublet: &sublet,
            vma_log: &vma_log,
            sublet_log: &sublet_log,
        };
        if std::env::var_os("SUBLET_TRACE").is_some() {
            eprintln!("{}", case.text());
        }
        if let Some(text) = case.wrong_alone() {
            return Err(format!("{text}: {}", case.text()));
        }
        let mut cause = None;
        match case.differs() {
            None if aligned => {
                self.tally.count("allocations compared in full");
                if !vma_log.asked.is_empty() {
                    self.tally.count("allocations that grew, compared in full");
                }
            }
            None => self.tally.count("allocations compared by place"),
            Some(text) => match explain(&case) {
                Some(difference) => {
                    self.tally.differ(difference);
                    cause = Some(difference);
                }
                None => return Err(format!("{text}: {}", case.text())),
            },
        }
        match (vma, sublet) {
            (Ok(vma), Ok(sublet))
                if vma.memory_type != sublet.memory_type || vma.dedicated != sublet.dedicated =>
            {
                // In different memory they cannot be compared any more.
                self.vma_memory.take(&vma);
                self.sublet_memory.take(&sublet);
                self.vma.free(slot);
                self.sublet.free(slot);
                let (vma_log, sublet_log) = (self.vma.tap().take(), self.sublet.tap().take());
                self.vma_memory.enter(&vma_log, pool);
                self.sublet_memory.enter(&sublet_log, pool);
            }
            (Ok(vma), Ok(sublet)) => {
                let host_access = !spec.usage.is_auto() || spec.flags.intersects(Flags::HOST_ACCESS_MASK);
                self.live.push(LivePair { slot, pool, vma, sublet, maps: 0, host_access });
            }
            // Frees an allocation that only one side has.
            (Ok(place), Err(_)) => {
                self.vma_memory.take(&place);
                self.vma.free(slot);
                let log = self.vma.tap().take();
                self.vma_memory.enter(&log, pool);
            }
            (Err(_), Ok(place)) => {
                self.sublet_memory.take(&place);
                self.sublet.free(slot);
                let log = self.sublet.tap().take();
                self.sublet_memory.enter(&log, pool);
            }
            (Err(_), Err(_)) => self.tally.count("allocations refused by both"),
        }
        // Both fail, or both find another place. VMA may keep the block that it had created, and Sublet frees it.
        let refused = vma_log.maps_refused + sublet_log.maps_refused != 0;
        if cause.is_none() && refused && !self.aligned() {
            cause = Some(Difference::FailedMapping);
        }
        self.cause = cause.or(self.cause);
        Ok(())
    }

    /// Handles requests that Sublet rejects without a driver call. VMA does not get them.
    fn refused(
        &mut self,
        slot: usize,
        resource: &ProgramResource,
        spec: &Spec,
        pool: Option<usize>,
        difference: Difference,
    ) -> Result<(), String> {
        self.slots += 1;
        let before = self.sublet.heaps();
        let answer = self.sublet.allocate(slot, resource, spec, pool);
        let log = self.sublet.tap().take();
        if answer.is_ok() || !log.asked.is_empty() || self.sublet.heaps() != before {
            return Err(format!(
                "{} should have been refused: {resource:?} {spec:?}: {answer:?}",
                difference.id()
            ));
        }
        self.tally.differ(difference);
        Ok(())
    }

    fn free(&mut self, at: usize) -> Result<(), String> {
        let aligned = self.aligned();
        let LivePair { slot, pool, vma, sublet, maps, .. } = self.live.swap_remove(at);
        for _ in 0..maps {
            self.vma.unmap(slot);
            self.sublet.unmap(slot);
        }
        let kept = self.setup.empty_blocks_kept as usize;
        let owner = pool.map_or(MemoryOwner::Default(sublet.memory_type), MemoryOwner::Pool);
        let heap = self.heap_of(sublet.memory_type) as usize;
        let budgets = self.sublet.heaps()[heap];
        let before = self.sublet_memory.empties(owner);
        self.vma_memory.take(&vma);
        self.sublet_memory.take(&sublet);
        self.vma.free(slot);
        self.sublet.free(slot);
        let (vma_log, sublet_log) = (self.vma.tap().take(), self.sublet.tap().take());
        let emptied = self.sublet_memory.empties(owner);
        self.vma_memory.enter(&vma_log, pool);
        self.sublet_memory.enter(&sublet_log, pool);
        if sublet.dedicated != sublet_log.freed.contains(&sublet.memory) && sublet.dedicated {
            return Err(format!("dedicated memory was not given back: {sublet:?}"));
        }
        if !sublet.dedicated {
            // Sublet's documented rule: up to `kept` empty blocks stay, and none over the budget. The limit is one less
            // from the next free that empties no block, or soon afterwards in a vector of many blocks.
            let min = self.pool_spec(pool).map_or(0, |spec| spec.min_blocks as usize);
            let newly = emptied.0 > before.0;
            let keep = match newly {
                true if budgets.usage >= budgets.budget => 0,
                true => kept,
                false => kept.saturating_sub(1),
            };
            let goes = emptied.0 > keep && emptied.1 > min;
            let may_wait = !newly && emptied.1 >= 4;
            if goes == sublet_log.freed.is_empty() && !(goes && may_wait) {
                return Err(format!(
                    "{} of {} blocks are empty, at least {min} stay, and {} went back: {sublet:?}",
                    emptied.0,
                    emptied.1,
                    sublet_log.freed.len()
                ));
            }
        }
        if aligned {
            self.tally.count("frees compared in full");
            if !self.aligned() {
                self.tally.differ(Difference::EmptyBlock);
                self.cause = Some(Difference::EmptyBlock);
            }
        } else if !self.aligned() {
            self.cause = self.cause.or(Some(Difference::EmptyBlock));
        }
        Ok(())
    }

    fn find(&mut self, resource: &ProgramResource, spec: &Spec) -> Result<(), String> {
        match self.asserts(resource, spec, None, false) {
            Assert::GoesOn => return Ok(()),
            Assert::Refuses if cfg!(debug_assertions) => return Ok(()),
            _ => {}
        }
        if let ProgramResource::Buffer { buffer, .. } | ProgramResource::ForBuffer(buffer) = resource {
            if buffer.size == 0 {
                return Ok(());
            }
        }
        let (vma, sublet) = (self.vma.find(resource, spec), self.sublet.find(resource, spec));
        let same = match (&vma, &sublet) {
            (Ok(vma), Ok(sublet)) => vma == sublet,
            (Err(vma), Err(sublet)) => vma.result == sublet.result,
            _ => false,
        };
        if same {
            self.tally.count("memory types compared");
            return Ok(());
        }
        if super::explain::follows_newer_rule(spec) {
            self.tally.differ(Difference::NewerRule);
            return Ok(());
        }
        if let Err(FailedOperation { why, .. }) = sublet {
            if why.contradiction().is_some() {
                self.tally.differ(Difference::Contradiction);
                return Ok(());
            }
        }
        Err(format!("another memory type: VMA {vma:?}, Sublet {sublet:?}, {resource:?}, {spec:?}"))
    }
}

/// The memory requirements of a resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResourceNeeds {
    pub(super) size: u64,
    pub(super) alignment: u64,
    pub(super) bits: u32,
}

/// Returns true if memory was freed that existed before.
pub(super) fn gives_back(log: &TapLog) -> bool {
    !log.freed.is_empty()
}

/// Returns the number of rejected calls in a log.
pub(super) fn refusals(log: &TapLog) -> usize {
    log.asked.iter().filter(|asked| asked.result != vk::Result::SUCCESS).count()
}
