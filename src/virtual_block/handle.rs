//! Numeric handles of ranges for the C interface, which cannot hold a [`VirtualAllocation`].

use std::num::NonZeroU64;

use super::{VirtualAllocation, VirtualBlock};
use sublet_engines::{Key, Metadata};

/// Returns the number that identifies a range in its block; never 0.
#[must_use]
pub const fn virtual_handle(allocation: &VirtualAllocation) -> u64 {
    allocation.key.0.get()
}

/// Returns the range with this number. `None` if it was freed, or the block was cleared.
#[must_use]
pub fn virtual_allocation(block: &VirtualBlock, handle: u64) -> Option<VirtualAllocation> {
    let key = Key(NonZeroU64::new(handle)?);
    let span = block.engine.span(key).ok()?;
    Some(VirtualAllocation { block: block.id, key, offset: span.offset, size: span.size })
}
