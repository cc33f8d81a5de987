//! Frees and unmaps the memory of a replay.

#![expect(unsafe_code, reason = "calls the functions that a recording names")]
use crate::allocation::{Allocation, FreeError};
use crate::allocator::Allocator;
use crate::error::MapError;
use crate::pool::{DestroyPoolError, FreeScopeError, Pool, Scope};

/// Frees an allocation of a replay: no resource was bound to it, and no device used it.
pub(super) fn free(allocator: &Allocator, allocation: Allocation) -> Result<(), FreeError> {
    // SAFETY: a replay creates no resources, submits nothing, and gives its allocations to no other code
    // (VUID-vkFreeMemory-memory-00677).
    unsafe { allocator.free_memory(allocation) }
}

/// Destroys a pool of a replay with everything in it. Returns the number of its allocations.
pub(super) fn destroy_pool(allocator: &Allocator, pool: Pool) -> Result<usize, DestroyPoolError> {
    // SAFETY: only the replay has the pool, so everything in it belongs to the replay: see `free`.
    unsafe { allocator.destroy_pool(pool) }.map(|leaks| leaks.len())
}

/// Frees a scope of a replay with everything in it.
pub(super) fn free_scope(allocator: &Allocator, scope: Scope) -> Result<(), FreeScopeError> {
    // SAFETY: only the replay has the scope, so everything in it belongs to the replay: see `free`.
    unsafe { allocator.free_scope(scope) }.map(drop)
}

/// Ends a mapping. `mappings` is the number of mappings of this allocation that the replay has open, at least 1.
pub(super) fn unmap(allocator: &Allocator, allocation: &Allocation, mappings: u32) -> Result<(), MapError> {
    debug_assert!(mappings > 0);
    // SAFETY: the replay counts its mappings, so the call pairs with one of them; it stored no pointer.
    unsafe { allocator.unmap_memory(allocation) }
}
