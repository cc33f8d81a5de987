//! Decides whether two results differ, and whether they may.

use ash::vk;
use sublet::{AllocationCreateFlags as Flags, AllocationError, MemoryUsage, PoolCreateFlags};

use super::differences::Difference;
use super::play::{ResourceNeeds, gives_back, refusals};
use super::program::{PoolSpec, ProgramResource, ProgramSetup, Spec};
use super::side::{FailedOperation, HeapFigures, Placement, Why};
use super::tap::{Fault, FaultyCall, TapLog};

/// One allocation request to both sides.
pub(super) struct ExplainedRequest<'a> {
    pub(super) setup: &'a ProgramSetup,
    pub(super) resource: &'a ProgramResource,
    pub(super) spec: &'a Spec,
    pub(super) pool: Option<&'a PoolSpec>,
    pub(super) needs: Option<ResourceNeeds>,
    pub(super) fault: Option<Fault>,
    /// True if both held the same memory before.
    pub(super) aligned: bool,
    /// The heaps before, of VMA and of Sublet.
    pub(super) before: &'a [HeapFigures],
    pub(super) sublet_before: &'a [HeapFigures],
    pub(super) vma: &'a Result<Placement, FailedOperation>,
    pub(super) sublet: &'a Result<Placement, FailedOperation>,
    pub(super) vma_log: &'a TapLog,
    pub(super) sublet_log: &'a TapLog,
}

impl ExplainedRequest<'_> {
    pub(super) fn text(&self) -> String {
        format!(
            "aligned {}, {:?} {:?} {:?} needs {:?} fault {:?}\n  before: VMA {:?}\n          Sublet {:?}\n  VMA    {:?}\n    {:?}\n  Sublet {:?}\n    {:?}",
            self.aligned,
            self.resource,
            self.spec,
            self.pool,
            self.needs,
            self.fault,
            self.before,
            self.sublet_before,
            self.vma,
            self.vma_log,
            self.sublet,
            self.sublet_log
        )
    }

    /// Returns an error in Sublet's result that does not depend on VMA's.
    pub(super) fn wrong_alone(&self) -> Option<&'static str> {
        let place = self.sublet.as_ref().ok()?;
        let needs = self.needs?;
        if place.size != needs.size {
            return Some("another size than was asked for");
        }
        let types = &self.setup.profile.types;
        let bits = if self.spec.bits == 0 || self.pool.is_some() { u32::MAX } else { self.spec.bits };
        let flags = types[place.memory_type as usize].flags;
        if needs.bits & bits & 1 << place.memory_type == 0 {
            return Some("a memory type that is not allowed");
        }
        if self.pool.is_none() && !flags.contains(self.spec.required) {
            return Some("a memory type without a required property");
        }
        None
    }

    /// Returns the difference between the two, if there is one.
    pub(super) fn differs(&self) -> Option<&'static str> {
        match (self.vma, self.sublet) {
            (Ok(vma), Ok(sublet)) => {
                // A side that failed once, or held other memory before, may have tried another place.
                let went_on = !self.aligned
                    && (refusals(self.vma_log) != 0 || refusals(self.sublet_log) != 0 || self.is_tight());
                if went_on {
                    return None;
                }
                if vma.memory_type != sublet.memory_type {
                    return Some("another memory type");
                }
                if vma.dedicated != sublet.dedicated {
                    return Some("dedicated or not");
                }
                if vma.mapped != sublet.mapped {
                    return Some("mapped or not");
                }
                if vma.size < sublet.size {
                    return Some("more than VMA has");
                }
            }
            (Err(vma), Err(sublet)) if vma.result == sublet.result => {}
            (Err(_), Err(_)) if self.aligned => return Some("another error"),
            (Err(_), Err(_)) => {}
            // An empty block gives a side space if the limits forbid new memory, but leaves fewer new blocks.
            _ if !self.aligned && self.is_tight() => return None,
            _ => return Some("another result"),
        }
        (self.aligned && self.vma_log.asked != self.sublet_log.asked).then_some("other calls of the driver")
    }

    /// Returns true if the budget or the number of allocations is almost exhausted.
    pub(super) fn is_tight(&self) -> bool {
        let types = 0..self.setup.profile.types.len() as u32;
        let few = self.setup.max_count.is_some();
        let mut tight = types.filter(|kind| {
            let heap = self.setup.profile.types[*kind as usize].heap;
            self.free(heap) < self.setup.block_size(*kind).max(self.size())
                || self.setup.heap_size(heap)
                    < self.before[heap as usize].block_bytes + self.setup.block_size(*kind)
        });
        few || tight.next().is_some() || self.pool.is_some()
    }

    fn size(&self) -> u64 {
        self.needs.map_or(0, |needs| needs.size)
    }

    /// Returns the free part of a heap's budget, on the side with less.
    fn free(&self, heap: u32) -> u64 {
        let free = |heaps: &[HeapFigures]| {
            let heap = heaps[heap as usize];
            heap.budget.saturating_sub(heap.usage)
        };
        free(self.before).min(free(self.sublet_before))
    }

    /// Returns the heaps from which either side allocated or tried to.
    fn heaps(&self) -> impl Iterator<Item = u32> {
        let asked = self.vma_log.asked.iter().chain(&self.sublet_log.asked).map(|asked| asked.memory_type);
        let placed = [self.vma, self.sublet].into_iter().flatten().map(|place| place.memory_type);
        let pool = self.pool.map(|pool| pool.memory_type);
        let types: Vec<_> = asked.chain(placed).chain(pool).collect();
        types.into_iter().map(|kind| self.setup.profile.types[kind as usize].heap)
    }

    /// Returns true if Sublet rounds the size up to granularity pages.
    fn takes_whole_pages(&self) -> bool {
        let granularity = self.setup.profile.limits.buffer_image_granularity;
        let ignored = self
            .pool
            .is_some_and(|pool| pool.flags.contains(PoolCreateFlags::IGNORE_BUFFER_IMAGE_GRANULARITY));
        let kind = match self.resource {
            ProgramResource::Raw { .. } | ProgramResource::ForImage(_) => true,
            ProgramResource::Image(image) => image.tiling == vk::ImageTiling::OPTIMAL,
            ProgramResource::Buffer { .. } | ProgramResource::ForBuffer(_) => false,
        };
        granularity > 1 && !ignored && kind
    }

    /// Returns true if a heap's budget has no space for a whole block, or for the request.
    fn is_over_budget(&self) -> bool {
        let wanted =
            self.setup.profile.types.iter().enumerate().map(|(kind, _)| self.setup.block_size(kind as u32));
        let pool = self.pool.map_or(0, |pool| pool.block_size);
        let block = wanted.max().unwrap_or(0).max(self.size()).max(pool);
        self.heaps().any(|heap| self.free(heap) < block)
    }
}

/// Returns true if VMA 3.4 and 3.3 may choose different memory types.
pub(super) fn follows_newer_rule(spec: &Spec) -> bool {
    spec.usage.is_auto() && spec.flags.contains(Flags::HOST_ACCESS_ALLOW_TRANSFER_INSTEAD)
}

/// Returns the intended difference, if it is one.
pub(super) fn explain(case: &ExplainedRequest<'_>) -> Option<Difference> {
    let why = case.sublet.as_ref().err().map(|failed| failed.why);
    let error = match why {
        Some(Why::Allocation(error)) => Some(error),
        _ => None,
    };
    if error.is_some_and(|error| matches!(error, AllocationError::Contradiction(_))) {
        return Some(Difference::Contradiction);
    }
    if gives_back(case.sublet_log) {
        return Some(Difference::GivesBack);
    }
    if case.spec.flags.contains(Flags::UPPER_ADDRESS)
        && (error.is_some_and(|error| matches!(error, AllocationError::UpperAddress { .. }))
            || case.pool.is_some_and(|pool| pool.block_size == 0))
    {
        return Some(Difference::UpperAddress);
    }
    if case.pool.is_some() && case.spec.usage == MemoryUsage::GpuLazilyAllocated {
        return Some(Difference::LazyInPool);
    }
    if follows_newer_rule(case.spec) && case.pool.is_none() {
        return Some(Difference::NewerRule);
    }
    if let Some(fault) = case.fault {
        let refused = case.vma_log.maps_refused + case.sublet_log.maps_refused != 0;
        if fault.call == FaultyCall::Map && refused {
            return Some(Difference::FailedMapping);
        }
        let lost = fault.call == FaultyCall::Allocate && fault.result == vk::Result::ERROR_DEVICE_LOST;
        if lost && case.sublet.as_ref().is_err_and(|failed| failed.result == fault.result) {
            return Some(Difference::LostDevice);
        }
    }
    if let (Err(vma), Err(sublet)) = (case.vma, case.sublet) {
        let flattened = vma.result == vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
        if flattened
            && error.is_some_and(|error| matches!(error, AllocationError::Memory(_)))
            && sublet.result != vma.result
        {
            return Some(Difference::DriverError);
        }
    }
    if case.spec.flags.contains(Flags::WITHIN_BUDGET) && case.is_over_budget() {
        return Some(Difference::WithinBudget);
    }
    if case.heaps().any(|heap| {
        let types = case.setup.profile.types.iter().enumerate();
        let mut own = types.filter(|(_, kind)| kind.heap == heap);
        own.any(|(kind, _)| case.setup.has_large_blocks(kind as u32))
    }) || case.size() > case.setup.profile.limits.max_memory_allocation_size
    {
        return Some(Difference::LargeBlocks);
    }
    let managed = case.pool.filter(|pool| pool.block_size == 0);
    if managed.is_some_and(|pool| pool.max_blocks != 0) {
        return Some(Difference::PoolLimit);
    }
    if managed.is_some_and(|pool| pool.linear) {
        return Some(Difference::FullSized);
    }
    let fixed = case.pool.is_some_and(|pool| pool.block_size != 0);
    if !fixed && case.is_over_budget() {
        return Some(Difference::OverBudget);
    }
    if case.pool.is_some_and(|pool| pool.linear && pool.max_blocks != 1) {
        return Some(Difference::RingOfOneBlock);
    }
    let page = case.setup.profile.limits.buffer_image_granularity;
    if case.takes_whole_pages() && (case.sublet_log.asked != case.vma_log.asked || case.size() % page != 0) {
        return Some(Difference::WholePages);
    }
    if !case.aligned && case.setup.empty_blocks_kept == 0 && case.vma.is_ok() && case.vma_log.asked.is_empty()
    {
        return Some(Difference::EmptyBlock);
    }
    // Both had the same failures, and then one of them had space.
    let shared =
        |place: &Result<Placement, FailedOperation>| place.as_ref().is_ok_and(|place| !place.dedicated);
    if shared(case.sublet)
        && case.vma_log.asked.starts_with(&case.sublet_log.asked)
        && refusals(case.sublet_log) == case.sublet_log.asked.len()
    {
        return Some(Difference::Packed);
    }
    if shared(case.vma)
        && case.sublet_log.asked.starts_with(&case.vma_log.asked)
        && refusals(case.vma_log) == case.vma_log.asked.len()
    {
        return Some(Difference::OtherPlaces);
    }
    None
}
