//! What a recording is told of, but for allocations that are made and freed. `recording` writes it.
#![forbid(unsafe_code)]

use super::map::Visibility;
use crate::allocation::{Allocation, AllocationId};
use crate::create_info::PoolCreateInfo;
use crate::defragment::DefragmentationInfo;
use crate::pool::{Pool, Scope};

/// A call that succeeded, or that cannot fail any more.
#[cfg_attr(not(feature = "trace"), allow(dead_code, reason = "only a recording looks at it"))]
#[derive(Clone, Copy)]
pub(crate) enum Note<'a> {
    Map(&'a Allocation),
    Unmap(&'a Allocation),
    Flush(&'a Allocation, u64, u64),
    Invalidate(&'a Allocation, u64, u64),
    CopyTo(&'a Allocation, u64, u64),
    CopyFrom(&'a Allocation, u64, u64),
    SetName(&'a Allocation, Option<&'a str>),
    SetUserData(&'a Allocation, u64),
    SetPriority(&'a Allocation, f32),
    CreatePool(&'a Pool, &'a PoolCreateInfo<'a>),
    DestroyPool(&'a Pool),
    SetPoolName(&'a Pool, Option<&'a str>),
    SetPoolPriority(&'a Pool, f32),
    SetPoolEmptyBlocksKept(&'a Pool, u32),
    SettleInPool(&'a Pool),
    CreateScope(&'a Scope),
    FreeScope(&'a Scope),
    Frame(u32),
    Trim,
    SetEmptyBlocksKept(u32),
    SettleInMemoryType(u32),
    BeginDefragmentation(u32, &'a DefragmentationInfo<'a>),
    BeginPass(u32, usize),
    Move { defragmentation: u32, source: AllocationId, outcome: Outcome },
    EndPass(u32),
    EndDefragmentation(u32),
}

impl<'a> Note<'a> {
    pub(crate) fn made_visible(
        visibility: Visibility,
        (allocation, offset, size): (&'a Allocation, u64, u64),
    ) -> Self {
        match visibility {
            Visibility::Flush => Self::Flush(allocation, offset, size),
            Visibility::Invalidate => Self::Invalidate(allocation, offset, size),
        }
    }
}

/// What becomes of a move.
#[cfg_attr(not(feature = "trace"), allow(dead_code, reason = "only a recording looks at it"))]
#[derive(Clone, Copy)]
pub(crate) enum Outcome {
    /// It is about to be completed: the allocation goes there.
    Completing(AllocationId),
    /// It was not completed after all.
    Failed(AllocationId),
    Ignored,
    Freeing,
    RolledBack,
}
