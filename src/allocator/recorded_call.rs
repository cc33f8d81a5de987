//! Calls that a recording contains, besides allocating and freeing. `recording` writes them.

use super::map::Visibility;
use crate::allocation::{Allocation, AllocationId};
use crate::create_info::PoolCreateInfo;
use crate::defragment::DefragmentationInfo;
use crate::operations::operations;
use crate::pool::{Pool, Scope};

/// The type of a field.
macro_rules! argument {
    (allocation) => { &'a Allocation };
    (freed) => { &'a Allocation };
    (pool) => { &'a Pool };
    (destroyed_pool) => { &'a Pool };
    (freed_scope) => { &'a Scope };
    (defragmentation) => { u32 };
    (ended_defragmentation) => { u32 };
    (small) => { u32 };
    (long) => { u64 };
    (size) => { u64 };
    (float) => { f32 };
    (text) => { Option<&'a str> };
}

macro_rules! recorded_calls {
    (
        { $($other:tt)* }
        { $(
            $(#[$doc:meta])* $name:ident $code:literal $word:literal
            $({ $($(#[$field_doc:meta])* $field:ident: $kind:ident,)* })?;
        )* }
        { $($foreign:tt)* }
    ) => {
        /// A call that succeeded, or that cannot fail any more.
        #[cfg_attr(not(feature = "trace"), allow(dead_code, reason = "only a recording looks at it"))]
        #[derive(Clone, Copy)]
        #[doc(hidden)]
        pub enum RecordedCall<'a> {
            CreatePool(&'a Pool, &'a PoolCreateInfo<'a>),
            CreateScope(&'a Scope),
            BeginDefragmentation(u32, &'a DefragmentationInfo<'a>),
            Move { defragmentation: u32, source: AllocationId, outcome: Outcome },
            $($name $(($(argument!($kind)),*))?,)*
        }
    };
}
operations!(recorded_calls);

impl<'a> RecordedCall<'a> {
    /// Flushing or invalidating a part of an allocation.
    pub fn made_visible(
        visibility: Visibility,
        (allocation, offset, size): (&'a Allocation, u64, u64),
    ) -> Self {
        match visibility {
            Visibility::Flush => Self::Flush(allocation, offset, size),
            Visibility::Invalidate => Self::Invalidate(allocation, offset, size),
        }
    }
}

/// The outcome of a move.
#[cfg_attr(not(feature = "trace"), allow(dead_code, reason = "only a recording looks at it"))]
#[derive(Clone, Copy)]
pub enum Outcome {
    /// It is about to be completed: the allocation moves there.
    Completing(AllocationId),
    /// Its completion failed.
    Failed(AllocationId),
    /// The allocation stays in place, and so does everything else in its block.
    Ignored,
    /// The allocation is about to be freed.
    Freeing,
    /// The allocation stays in place.
    RolledBack,
}
