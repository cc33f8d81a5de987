//! Records as bytes: the body of each, after the operation and the time.
//!
//! What an allocation is written with is inlined throughout: a function that is called with the place to write to would keep
//! that place in memory, and cost more than it does.
#![forbid(unsafe_code)]

use super::bytes::Put;
use super::raw::{
    Place, PoolPlace, RawBegin, RawExisting, RawNeeds, RawOutcome, RawPool, RawScope, RawWanted,
};
use crate::base::cast::widen;

/// The first byte of each record.
pub(crate) mod op {
    /// No record: the thread of those that follow.
    pub(crate) const THREAD: u8 = 0x01;
    pub(crate) const EXISTING: u8 = 0x10;
    pub(crate) const ALLOCATE: u8 = 0x11;
    pub(crate) const ALLOCATE_FAILED: u8 = 0x12;
    pub(crate) const FREE: u8 = 0x13;
    pub(crate) const MAP: u8 = 0x20;
    pub(crate) const UNMAP: u8 = 0x21;
    pub(crate) const FLUSH: u8 = 0x22;
    pub(crate) const INVALIDATE: u8 = 0x23;
    pub(crate) const COPY_TO: u8 = 0x24;
    pub(crate) const COPY_FROM: u8 = 0x25;
    pub(crate) const SET_NAME: u8 = 0x30;
    pub(crate) const SET_USER_DATA: u8 = 0x31;
    pub(crate) const SET_PRIORITY: u8 = 0x32;
    pub(crate) const CREATE_POOL: u8 = 0x40;
    pub(crate) const DESTROY_POOL: u8 = 0x41;
    pub(crate) const SET_POOL_NAME: u8 = 0x42;
    pub(crate) const SET_POOL_PRIORITY: u8 = 0x43;
    pub(crate) const SET_POOL_EMPTY_BLOCKS_KEPT: u8 = 0x44;
    pub(crate) const SETTLE_IN_POOL: u8 = 0x45;
    pub(crate) const CREATE_SCOPE: u8 = 0x50;
    pub(crate) const FREE_SCOPE: u8 = 0x51;
    pub(crate) const FRAME: u8 = 0x60;
    pub(crate) const TRIM: u8 = 0x61;
    pub(crate) const SET_EMPTY_BLOCKS_KEPT: u8 = 0x62;
    pub(crate) const SETTLE: u8 = 0x63;
    pub(crate) const BEGIN_DEFRAGMENTATION: u8 = 0x70;
    pub(crate) const BEGIN_PASS: u8 = 0x71;
    pub(crate) const MOVE: u8 = 0x72;
    pub(crate) const END_PASS: u8 = 0x73;
    pub(crate) const END_DEFRAGMENTATION: u8 = 0x74;
}

/// Bits of the word that an allocation's body begins with.
pub(crate) mod bit {
    /// The kind of the resource, in three bits.
    pub(crate) const KIND_SHIFT: u32 = 0;
    /// The memory usage, in four bits.
    pub(crate) const USAGE_SHIFT: u32 = 3;
    /// It is known whether the device does more than copy.
    pub(crate) const ACCESS_KNOWN: u32 = 1 << 7;
    /// The device does more than copy.
    pub(crate) const ACCESS: u32 = 1 << 8;
    pub(crate) const DEVICE_ADDRESS: u32 = 1 << 9;
    pub(crate) const PREFERS_DEDICATED: u32 = 1 << 10;
    pub(crate) const REQUIRES_DEDICATED: u32 = 1 << 11;
    pub(crate) const CHAIN: u32 = 1 << 12;
    /// From here on: the field is there.
    pub(crate) const RESOURCE_USAGE: u32 = 1 << 16;
    pub(crate) const FLAGS: u32 = 1 << 17;
    pub(crate) const REQUIRED: u32 = 1 << 18;
    pub(crate) const PREFERRED: u32 = 1 << 19;
    pub(crate) const TYPE_BITS: u32 = 1 << 20;
    pub(crate) const POOL: u32 = 1 << 21;
    pub(crate) const SCOPE: u32 = 1 << 22;
    pub(crate) const PRIORITY: u32 = 1 << 23;
    pub(crate) const MIN_ALIGNMENT: u32 = 1 << 24;
    pub(crate) const USER_DATA: u32 = 1 << 25;
    pub(crate) const NAME: u32 = 1 << 26;
    /// All that have a meaning.
    pub(crate) const KNOWN: u32 = ((1 << 13) - 1) | (((1 << 27) - 1) & !((1 << 16) - 1));
}

/// The priority that is not written.
pub(crate) const USUAL_PRIORITY: f32 = 0.5;
/// The generation that is not written: that of a vector that was put to use once.
pub(crate) const USUAL_GENERATION: u32 = 1;
/// The byte for the alignment 0.
pub(crate) const ALIGNMENT_ZERO: u8 = 64;
/// The byte for an alignment that is no power of two: the number follows.
pub(crate) const ALIGNMENT_OTHER: u8 = 65;

#[inline(always)]
fn alignment(put: &mut impl Put, alignment: u64) {
    if alignment.is_power_of_two() {
        put.byte(alignment.trailing_zeros().to_le_bytes()[0]);
    } else {
        odd_alignment(put, alignment);
    }
}

#[inline(always)]
fn odd_alignment(put: &mut impl Put, alignment: u64) {
    if alignment == 0 {
        put.byte(ALIGNMENT_ZERO);
    } else {
        put.byte(ALIGNMENT_OTHER);
        put.number(alignment);
    }
}

/// An allocation's name.
#[inline(always)]
pub(crate) fn place(put: &mut impl Put, place: &Place) {
    let more = place.generation != USUAL_GENERATION || place.shard != 0;
    put.number(u64::from(place.vector) << 2 | u64::from(place.dedicated) << 1 | u64::from(more));
    if more {
        put.number(place.generation.into());
        put.byte(place.shard);
    }
    put.number(place.key & u64::from(u32::MAX));
    put.number(place.key >> 32);
}

/// A pool's name.
pub(crate) fn pool_place(put: &mut impl Put, pool: PoolPlace) {
    put.number(pool.vector.into());
    put.number(pool.generation.into());
}

/// What was needed and wanted, of an allocation that was made or was not.
#[inline(always)]
pub(crate) fn asked(put: &mut impl Put, needs: &RawNeeds, wanted: &RawWanted<'_>) {
    let set = |is_set: bool, bit: u32| if is_set { bit } else { 0 };
    let word = (needs.kind & 7) << bit::KIND_SHIFT
        | (wanted.usage & 15) << bit::USAGE_SHIFT
        | set(needs.device_access.is_some(), bit::ACCESS_KNOWN)
        | set(needs.device_access == Some(true), bit::ACCESS)
        | set(needs.device_address, bit::DEVICE_ADDRESS)
        | set(needs.prefers_dedicated, bit::PREFERS_DEDICATED)
        | set(needs.requires_dedicated, bit::REQUIRES_DEDICATED)
        | set(wanted.has_chain, bit::CHAIN)
        | set(needs.usage != 0, bit::RESOURCE_USAGE)
        | set(wanted.flags != 0, bit::FLAGS)
        | set(wanted.required != 0, bit::REQUIRED)
        | set(wanted.preferred != 0, bit::PREFERRED)
        | set(wanted.memory_type_bits != 0, bit::TYPE_BITS)
        | set(wanted.pool.is_some(), bit::POOL)
        | set(wanted.scope.is_some(), bit::SCOPE)
        | set(wanted.priority.to_bits() != USUAL_PRIORITY.to_bits(), bit::PRIORITY)
        | set(wanted.min_alignment != 0, bit::MIN_ALIGNMENT)
        | set(wanted.user_data != 0, bit::USER_DATA)
        | set(wanted.name.is_some(), bit::NAME);
    put.bytes(&word.to_le_bytes());
    put.number(needs.size);
    alignment(put, needs.alignment);
    put.number(needs.memory_type_bits.into());
    // One test where nothing is out of the ordinary.
    if word >> 16 == 0 {
        return;
    }
    for (value, bit) in [
        (needs.usage, bit::RESOURCE_USAGE),
        (wanted.flags, bit::FLAGS),
        (wanted.required, bit::REQUIRED),
        (wanted.preferred, bit::PREFERRED),
        (wanted.memory_type_bits, bit::TYPE_BITS),
    ] {
        if word & bit != 0 {
            put.number(value.into());
        }
    }
    if word >> 21 != 0 {
        rarely_asked(put, wanted);
    }
}

/// The fields that are there in few allocations.
#[inline(always)]
fn rarely_asked(put: &mut impl Put, wanted: &RawWanted<'_>) {
    if let Some(pool) = wanted.pool {
        pool_place(put, pool);
    }
    if let Some(scope) = wanted.scope {
        put.number(scope.into());
    }
    if wanted.priority.to_bits() != USUAL_PRIORITY.to_bits() {
        put.float(wanted.priority);
    }
    if wanted.min_alignment != 0 {
        alignment(put, wanted.min_alignment);
    }
    if wanted.user_data != 0 {
        put.number(wanted.user_data);
    }
    if let Some(name) = wanted.name {
        put.text(name);
    }
}

/// What was granted.
#[inline(always)]
pub(crate) fn granted(put: &mut impl Put, memory_type: u32, granted: &Place) {
    put.number(memory_type.into());
    place(put, granted);
}

/// An allocation that was there before.
pub(crate) fn existing(put: &mut impl Put, existing: &RawExisting<'_>) {
    place(put, &existing.place);
    put.number(existing.memory_type.into());
    put.number(existing.size);
    alignment(put, existing.alignment);
    put.number(existing.kind.into());
    put.number(existing.usage.into());
    put.optional(existing.scope.map(u64::from));
    put.optional(existing.user_data);
    put.optional_text(existing.name);
}

/// A range of an allocation. All of the rest is one more than fits, and is written as 0.
#[inline]
pub(crate) fn range(put: &mut impl Put, of: &Place, offset: u64, size: u64) {
    place(put, of);
    put.number(offset);
    put.number(size.wrapping_add(1));
}

pub(crate) fn pool(put: &mut impl Put, pool: &RawPool<'_>) {
    pool_place(put, pool.place);
    put.number(pool.memory_type.into());
    put.number(pool.flags.into());
    put.number(pool.algorithm.into());
    put.number(pool.block_size);
    put.number(pool.min_block_count.into());
    put.number(pool.max_block_count.into());
    put.number(pool.empty_blocks_kept.into());
    put.float(pool.priority);
    alignment(put, pool.min_allocation_alignment);
    put.byte(pool.has_chain.into());
    put.optional_text(pool.name);
}

pub(crate) fn scope(put: &mut impl Put, scope: &RawScope<'_>) {
    put.number(scope.number.into());
    put.number(scope.block_size);
    put.float(scope.priority);
    put.optional_text(scope.name);
}

pub(crate) fn begin(put: &mut impl Put, begin: &RawBegin<'_>) {
    put.number(begin.number.into());
    put.number(begin.algorithm.into());
    put.number(begin.memory_type_bits.into());
    put.number(begin.max_bytes);
    put.number(begin.max_allocations.into());
    put.optional(begin.max_time_nanoseconds);
    put.number(widen(begin.pools.len()));
    for &pool in begin.pools {
        pool_place(put, pool);
    }
}

pub(crate) fn outcome(put: &mut impl Put, defragmentation: u32, source: &Place, outcome: RawOutcome) {
    put.number(defragmentation.into());
    place(put, source);
    let (number, destination) = match outcome {
        RawOutcome::Completed(destination) => (0, Some(destination)),
        RawOutcome::Ignored => (1, None),
        RawOutcome::Freed => (2, None),
        RawOutcome::RolledBack => (3, None),
        RawOutcome::Failed(destination) => (4, Some(destination)),
    };
    put.byte(number);
    if let Some(destination) = destination {
        place(put, &destination);
    }
}
