//! What is told of an allocation that is out of the ordinary: why it is dedicated, where it was put instead, that there
//! is none. No lock is held here.
#![forbid(unsafe_code)]

use std::error::Error;
use std::panic::Location;

use super::request::{AllocationRequest, Resource};
use super::route::Spot;
use crate::create_info::{AllocationCreateFlags as Flags, AllocationCreateInfo};
use crate::error::AllocationError;

/// Why there is no other way than dedicated memory.
pub(super) fn why_it_must(spot: &Spot<'_>) -> &'static str {
    let AllocationRequest { resource, info, .. } = *spot.asked;
    if spot.asked.next.is_some() {
        "chain"
    } else if info.flags.contains(Flags::DEDICATED_MEMORY) {
        "flag"
    } else if resource.requirements.requires_dedicated {
        "driver_requires"
    } else {
        "lazily_allocated"
    }
}

/// Why dedicated memory is better.
pub(super) fn why_it_should(spot: &Spot<'_>) -> &'static str {
    if spot.asked.resource.requirements.prefers_dedicated { "driver_prefers" } else { "large" }
}

/// An allocation is to be dedicated.
#[cold]
pub(super) fn dedicated(spot: &Spot<'_>, reason: &str) {
    tracing::debug!(
        name: "dedicated_chosen", target: "sublet::dedicated",
        size = spot.dedicated_size(), memory_type = spot.facts.config.memory_type,
        resource = %spot.asked.resource.kind(), allocation = spot.asked.info.name, reason,
        block_size = spot.facts.config.block_size,
        "memory of its own"
    );
}

/// Dedicated memory would be better, and is not had.
#[cold]
pub(super) fn dedicated_declined(spot: &Spot<'_>, reason: &str, error: Option<&AllocationError>) {
    tracing::debug!(
        name: "dedicated_declined", target: "sublet::dedicated",
        size = spot.dedicated_size(), memory_type = spot.facts.config.memory_type,
        resource = %spot.asked.resource.kind(), allocation = spot.asked.info.name, reason,
        error = error.map(tracing::field::display),
        "a part of a block instead of memory of its own"
    );
}

/// The next memory type is tried, as one has refused.
#[cold]
pub(super) fn fallback(asked: &AllocationRequest<'_>, (from, error): (u32, &AllocationError), to: u32) {
    tracing::debug!(
        name: "memory_type_fallback", target: "sublet::memory_type",
        from, to, size = asked.resource.requirements.size,
        resource = %asked.resource.kind(), allocation = asked.info.name, %error,
        "the next memory type is tried"
    );
}

/// There is no memory for it, or it was asked for in a wrong way.
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
