//! What `sublet-capi` needs of the library beyond its public face. No other package may use it, and all of it may
//! change.
//!
//! | item | why it is here |
//! |---|---|
//! | [`RecordedCall`], [`Outcome`], `Allocator::record` | the C interface keeps names and user data, counts mappings and copies by itself, and recordings need them |
//! | [`Requirements`], [`Resource`], `Allocator::allocate` | C passes a `VkMemoryRequirements`, which is read late, after the request is checked |
//! | `Allocator::free_in_place` | an allocation is freed where it lies, without moving the value behind the handle |
//! | [`Visibility`], `Allocator::make_visible` and related methods, `count_mapping`, `uncount_mapping` | mappings of C last longer than a borrow |
//! | [`OpenDefragmentation`], [`PlannedMove`], and the methods that take them | a defragmentation of C lives in a handle, and borrows nothing |
//! | [`Device`], `Allocator::device` | the C interface destroys resources with the allocator's functions |
//! | [`CoreMutex`], [`CoreGuard`], [`thread_token`] | the table of handles has the same locks as an allocator, and a part for each thread |
//! | [`index`], [`narrow`], [`widen`], [`host_size`] | one file argues all integer conversions, those of C's numbers too |
//! | `VirtualAllocation::handle`, `VirtualBlock::known` | C names ranges by numbers |
#![forbid(unsafe_code)]

pub use crate::allocator::defragment::{OpenDefragmentation, PlannedMove};
pub use crate::allocator::{Outcome, RecordedCall, Resource, Visibility};
pub use crate::base::cast::{host_size, index, narrow, widen};
pub use crate::base::sync::{CoreGuard, CoreMutex, Threading};
pub use crate::device::{Device, Requirements};

/// A small number of the calling thread, which few other threads share.
#[must_use]
#[inline]
pub fn thread_token() -> u32 {
    crate::base::sync::thread_token::current()
}
