//! Frees and unmaps memory that only the replay knows.
#![expect(unsafe_code, reason = "calls the functions that a recording names")]

use crate::allocation::{Allocation, FreeError};
use crate::allocator::Allocator;
use crate::error::MapError;
use crate::pool::{DestroyPoolError, FreeScopeError, Pool, Scope};

/// Frees an allocation that a replay made: no resource was ever bound to it, and no device ever saw it.
pub(super) fn free(allocator: &Allocator, allocation: Allocation) -> Result<(), FreeError> {
    // SAFETY: a replay makes no resources and submits nothing, and gives its allocations to nobody
    // (VUID-vkFreeMemory-memory-00677).
    unsafe { allocator.free_memory(allocation) }
}

/// Destroys a pool that a replay made, with everything in it, and returns how many allocations that were.
pub(super) fn destroy_pool(allocator: &Allocator, pool: Pool) -> Result<usize, DestroyPoolError> {
    // SAFETY: only the replay knows the pool, so everything in it is the replay's: see `free`.
    unsafe { allocator.destroy_pool(pool) }.map(|leaks| leaks.len())
}

/// Frees a scope that a replay made, with everything in it.
pub(super) fn free_scope(allocator: &Allocator, scope: Scope) -> Result<(), FreeScopeError> {
    // SAFETY: only the replay knows the scope, so everything in it is the replay's: see `free`.
    unsafe { allocator.free_scope(scope) }.map(drop)
}

/// Ends a mapping. `mappings` is how many mappings of this allocation the replay has open, at least 1.
pub(super) fn unmap(allocator: &Allocator, allocation: &Allocation, mappings: u32) -> Result<(), MapError> {
    debug_assert!(mappings > 0);
    // SAFETY: the replay counts what it maps, so that the call pairs with one mapping; it kept no pointer of it.
    unsafe { allocator.unmap_memory(allocation) }
}
