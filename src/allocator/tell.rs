//! What is told of an allocation that is out of the ordinary: why it has memory of its own, where it was put instead, that there is
//! none. No lock is held here.
#![forbid(unsafe_code)]

use std::error::Error;

use super::route::Spot;
use super::wanted::Wanted;
use crate::base::sync::Threading;
use crate::create_info::AllocationCreateFlags as Flags;
use crate::error::AllocationError;

/// Why there is no other way than memory of its own.
pub(super) fn why_it_must<T: Threading>(spot: &Spot<'_, T>) -> &'static str {
    let Wanted { resource, info, .. } = *spot.wanted;
    if !spot.wanted.next.get().is_null() {
        "chain"
    } else if info.flags.contains(Flags::DEDICATED_MEMORY) {
        "flag"
    } else if resource.requirements.requires_dedicated {
        "driver_requires"
    } else {
        "lazily_allocated"
    }
}

/// Why memory of its own is better.
pub(super) fn why_it_should<T: Threading>(spot: &Spot<'_, T>) -> &'static str {
    if spot.wanted.resource.requirements.prefers_dedicated { "driver_prefers" } else { "large" }
}

/// An allocation is to have memory of its own.
#[cold]
pub(super) fn dedicated<T: Threading>(spot: &Spot<'_, T>, reason: &str) {
    tracing::debug!(
        name: "dedicated_chosen", target: "sublet::dedicated",
        size = spot.own_size(), memory_type = spot.facts.memory_type,
        resource = %spot.wanted.resource.kind, allocation = spot.wanted.info.name, reason,
        block_size = spot.facts.block_size,
        "memory of its own"
    );
}

/// Memory of its own would be better, and is not had.
#[cold]
pub(super) fn dedicated_declined<T: Threading>(
    spot: &Spot<'_, T>,
    reason: &str,
    error: Option<&AllocationError>,
) {
    tracing::debug!(
        name: "dedicated_declined", target: "sublet::dedicated",
        size = spot.own_size(), memory_type = spot.facts.memory_type,
        resource = %spot.wanted.resource.kind, allocation = spot.wanted.info.name, reason,
        error = error.map(tracing::field::display),
        "a part of a block instead of memory of its own"
    );
}

/// The next memory type is tried, if one has refused.
pub(super) fn fallback(wanted: &Wanted<'_>, refused: Option<(u32, AllocationError)>, to: u32) {
    let Some((from, error)) = refused else { return };
    tracing::debug!(
        name: "memory_type_fallback", target: "sublet::memory_type",
        from, to, size = wanted.resource.requirements.size,
        resource = %wanted.resource.kind, allocation = wanted.info.name, %error,
        "the next memory type is tried"
    );
}

/// There is no memory for it, or it was asked for in a wrong way.
#[cold]
pub(super) fn failed(wanted: &Wanted<'_>, error: &AllocationError) {
    let requirements = &wanted.resource.requirements;
    tracing::debug!(
        name: "allocation_failed", target: "sublet::allocation",
        size = requirements.size, alignment = wanted.alignment, memory_type_bits = requirements.memory_type_bits,
        resource = %wanted.resource.kind, allocation = wanted.info.name,
        caller = wanted.caller.map(tracing::field::display),
        %error,
        cause = error.source().map(tracing::field::display),
        "no memory was allocated"
    );
}
