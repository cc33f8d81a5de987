//! What `sublet-capi` needs of the library beyond its public face. Nothing here is for anybody else, and all of it may
//! change.
//!
//! | item | why it is here |
//! |---|---|
//! | [`RecordedCall`], [`Outcome`], `Allocator::record` | C keeps names and user data, counts mappings and copies by itself: and recordings need them |
//! | [`Requirements`], [`Resource`], `Allocator::allocate` | C's requests come with a `VkMemoryRequirements` that is read late, after the request is checked |
//! | `Allocator::free_in_place` | a handle is freed where it lies, with no move of the allocation behind it |
//! | [`Visibility`], `Allocator::make_visible` and its kin, `count_mapping`, `uncount_mapping` | mappings of C last longer than a borrow |
//! | [`OpenDefragmentation`], [`PlannedMove`], and what takes them | a defragmentation of C lives in a handle, and borrows nothing |
//! | [`Device`], `Allocator::device` | resources are destroyed with the functions that the allocator has |
//! | [`CoreMutex`], [`CoreGuard`], [`thread_token`] | the table of handles is locked as an allocator is, a part for each thread |
//! | [`index`], [`narrow`], [`widen`], [`host_size`] | conversions are argued in one place, for C's numbers too |
//! | `VirtualAllocation::handle`, `VirtualBlock::known` | C has numbers for ranges |
#![forbid(unsafe_code)]

pub use crate::allocator::defragment::{OpenDefragmentation, PlannedMove};
pub use crate::allocator::{Outcome, RecordedCall, Resource, Visibility};
pub use crate::base::cast::{host_size, index, narrow, widen};
pub use crate::base::sync::{CoreGuard, CoreMutex, Threading};
pub use crate::device::{Device, Requirements};

/// A small number that the calling thread has, and few others.
#[must_use]
#[inline]
pub fn thread_token() -> u32 {
    crate::base::sync::thread_token::current()
}
