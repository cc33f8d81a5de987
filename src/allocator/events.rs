//! Events of unusual allocations: dedicated memory, fallbacks and failures. No lock is held here.

use std::error::Error;
use std::panic::Location;

use super::request::{AllocationRequest, Resource};
use super::route::PlacementCandidate;
use crate::create_info::{AllocationCreateFlags as Flags, AllocationCreateInfo};
use crate::error::AllocationError;

/// The reason why the allocation must be dedicated.
pub(super) fn why_it_must(candidate: &PlacementCandidate<'_>) -> &'static str {
    let AllocationRequest { resource, info, .. } = *candidate.asked;
    if candidate.asked.next.is_some() {
        "chain"
    } else if info.flags.contains(Flags::DEDICATED_MEMORY) {
        "flag"
    } else if resource.requirements.requires_dedicated {
        "driver_requires"
    } else {
        "lazily_allocated"
    }
}

/// The reason why dedicated memory is preferable.
pub(super) fn why_it_should(candidate: &PlacementCandidate<'_>) -> &'static str {
    if candidate.asked.resource.requirements.prefers_dedicated { "driver_prefers" } else { "large" }
}

/// Emits that an allocation will be dedicated.
#[cold]
pub(super) fn dedicated(candidate: &PlacementCandidate<'_>, reason: &str) {
    tracing::debug!(
        name: "dedicated_chosen", target: "sublet::dedicated",
        size = candidate.dedicated_size(), memory_type = candidate.facts.config.memory_type,
        resource = %candidate.asked.resource.kind(), allocation = candidate.asked.info.name, reason,
        block_size = candidate.facts.config.block_size,
        "memory of its own"
    );
}

/// Emits that dedicated memory was preferable but not used.
#[cold]
pub(super) fn dedicated_declined(
    candidate: &PlacementCandidate<'_>,
    reason: &str,
    error: Option<&AllocationError>,
) {
    tracing::debug!(
        name: "dedicated_declined", target: "sublet::dedicated",
        size = candidate.dedicated_size(), memory_type = candidate.facts.config.memory_type,
        resource = %candidate.asked.resource.kind(), allocation = candidate.asked.info.name, reason,
        error = error.map(tracing::field::display),
        "a part of a block instead of memory of its own"
    );
}

/// Emits that a memory type refused, and the next one is tried.
#[cold]
pub(super) fn fallback(asked: &AllocationRequest<'_>, (from, error): (u32, &AllocationError), to: u32) {
    tracing::debug!(
        name: "memory_type_fallback", target: "sublet::memory_type",
        from, to, size = asked.resource.requirements.size,
        resource = %asked.resource.kind(), allocation = asked.info.name, %error,
        "the next memory type is tried"
    );
}

/// Emits that an allocation failed.
#[cold]
pub(super) fn failed(
    resource: &Resource,
    info: &AllocationCreateInfo<'_>,
    caller: &Location<'_>,
    error: &AllocationError,
) {
    let requirements = &resource.requirements;
    let alignment = requirements.alignment.max(info.min_alignment).max(1);
    tracing::debug!(
        name: "allocation_failed", target: "sublet::allocation",
        size = requirements.size, alignment, memory_type_bits = requirements.memory_type_bits,
        resource = %resource.kind(), allocation = info.name,
        caller = %caller,
        %error,
        cause = error.source().map(tracing::field::display),
        "no memory was allocated"
    );
}
