//! The values of records, as numbers.

use crate::create_info::PoolParameters;

/// The place of an allocation. It identifies the allocation for its lifetime.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Place {
    pub(crate) vector: u32,
    pub(crate) generation: u32,
    pub(crate) shard: u8,
    pub(crate) dedicated: bool,
    pub(crate) key: u64,
}

/// The vector of a pool, and its generation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct PoolPlace {
    pub(crate) vector: u32,
    pub(crate) generation: u32,
}

/// The requirements of a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RawNeeds {
    pub(crate) size: u64,
    pub(crate) alignment: u64,
    pub(crate) memory_type_bits: u32,
    /// The kind of the resource as in a tag, 0 to 4.
    pub(crate) kind: u32,
    /// The usage of the resource as in a tag.
    pub(crate) usage: u32,
    pub(crate) device_access: Option<bool>,
    pub(crate) device_address: bool,
    pub(crate) prefers_dedicated: bool,
    pub(crate) requires_dedicated: bool,
}

/// The request of the program.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct RawWanted<'a> {
    pub(crate) flags: u32,
    /// In the range 0 to 9.
    pub(crate) usage: u32,
    pub(crate) required: u32,
    pub(crate) preferred: u32,
    pub(crate) memory_type_bits: u32,
    pub(crate) pool: Option<PoolPlace>,
    pub(crate) scope: Option<u32>,
    pub(crate) priority: f32,
    pub(crate) min_alignment: u64,
    pub(crate) user_data: u64,
    pub(crate) name: Option<&'a str>,
    pub(crate) has_chain: bool,
}

/// An allocation that existed when the recording began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RawExisting<'a> {
    pub(crate) place: Place,
    pub(crate) memory_type: u32,
    pub(crate) size: u64,
    pub(crate) alignment: u64,
    pub(crate) kind: u32,
    pub(crate) usage: u32,
    pub(crate) scope: Option<u32>,
    pub(crate) user_data: Option<u64>,
    pub(crate) name: Option<&'a str>,
}

/// A pool; the flag is true if it has a `pNext` chain.
pub(crate) type RawPool<'a> = PoolParameters<&'a str, bool>;

/// A scope.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct RawScope<'a> {
    pub(crate) number: u32,
    pub(crate) block_size: u64,
    pub(crate) priority: f32,
    pub(crate) name: Option<&'a str>,
}

/// The start of a defragmentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RawBegin<'a> {
    pub(crate) number: u32,
    /// In the range 0 to 3.
    pub(crate) algorithm: u32,
    pub(crate) memory_type_bits: u32,
    pub(crate) max_bytes: u64,
    pub(crate) max_allocations: u32,
    pub(crate) max_time_nanoseconds: Option<u64>,
    pub(crate) pools: &'a [PoolPlace],
}

/// The outcome of a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RawOutcome {
    /// The allocation is now at this place.
    Completed(Place),
    Ignored,
    Freed,
    RolledBack,
    /// An earlier record reported the move as completed, but it failed.
    Failed(Place),
}
