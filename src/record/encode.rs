//! Encodes the body of records, which follows the operation and the time.
//!
//! All functions on the path of an allocation are inlined: a call would force the cursor into memory, and cost more
//! than its work.

use super::bytes::Put;
use super::raw::{
    Place, PoolPlace, RawBegin, RawExisting, RawNeeds, RawOutcome, RawPool, RawScope, RawWanted,
};
use crate::operations::operations;
use sublet_engines::cast::widen;

/// The first byte of an entry that is not a record: it sets the thread of the records after it.
pub(crate) const THREAD: u8 = 0x01;

macro_rules! codes {
    (
        { $($(#[$other_doc:meta])* $other:ident $other_code:literal $other_word:literal $shape:tt;)* }
        { $($(#[$doc:meta])* $name:ident $code:literal $word:literal $({ $($fields:tt)* })?;)* }
        { $($(#[$foreign_doc:meta])* $foreign:ident $foreign_code:literal $foreign_word:literal $({ $($foreign_fields:tt)* })?;)* }
    ) => {
        /// The operation of a record.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(missing_docs, reason = "the table describes them")]
        pub enum Operation { $($other,)* $($name,)* $($foreign,)* }

        impl Operation {
            #[cfg(all(test, not(loom)))]
            pub(crate) const ALL: &[Self] = &[$(Self::$other,)* $(Self::$name,)* $(Self::$foreign,)*];

            /// Returns the first byte of the record.
            #[must_use]
            #[inline(always)]
            pub const fn code(self) -> u8 {
                match self {
                    $(Self::$other => $other_code,)*
                    $(Self::$name => $code,)*
                    $(Self::$foreign => $foreign_code,)*
                }
            }

            pub(crate) const fn of_code(code: u8) -> Option<Self> {
                match code {
                    $($other_code => Some(Self::$other),)*
                    $($code => Some(Self::$name),)*
                    $($foreign_code => Some(Self::$foreign),)*
                    _ => None,
                }
            }

            pub(crate) const fn word(self) -> &'static str {
                match self {
                    $(Self::$other => $other_word,)*
                    $(Self::$name => $word,)*
                    $(Self::$foreign => $foreign_word,)*
                }
            }
        }
    };
}
operations!(codes);

/// A field of a record.
pub(crate) trait RecordField: Copy {
    /// Returns the number of text bytes.
    #[inline(always)]
    fn text_bytes(self) -> usize {
        0
    }

    fn put(self, put: &mut impl Put);
}

impl RecordField for Place {
    #[inline(always)]
    fn put(self, put: &mut impl Put) {
        place(put, &self);
    }
}

impl RecordField for PoolPlace {
    #[inline(always)]
    fn put(self, put: &mut impl Put) {
        pool_place(put, self);
    }
}

impl RecordField for u32 {
    #[inline(always)]
    fn put(self, put: &mut impl Put) {
        put.number(self.into());
    }
}

impl RecordField for u64 {
    #[inline(always)]
    fn put(self, put: &mut impl Put) {
        put.number(self);
    }
}

impl RecordField for f32 {
    #[inline(always)]
    fn put(self, put: &mut impl Put) {
        put.float(self);
    }
}

impl RecordField for Option<&str> {
    #[inline(always)]
    fn text_bytes(self) -> usize {
        self.map_or(0, str::len)
    }

    #[inline(always)]
    fn put(self, put: &mut impl Put) {
        put.optional_text(self);
    }
}

/// The bits of the first word of an allocation's body.
pub(crate) mod bit {
    /// The kind of the resource, in three bits.
    pub(crate) const KIND_SHIFT: u32 = 0;
    /// The memory usage, in four bits.
    pub(crate) const USAGE_SHIFT: u32 = 3;
    /// The device access is known.
    pub(crate) const ACCESS_KNOWN: u32 = 1 << 7;
    /// The device does more than copy.
    pub(crate) const ACCESS: u32 = 1 << 8;
    pub(crate) const DEVICE_ADDRESS: u32 = 1 << 9;
    pub(crate) const PREFERS_DEDICATED: u32 = 1 << 10;
    pub(crate) const REQUIRES_DEDICATED: u32 = 1 << 11;
    pub(crate) const CHAIN: u32 = 1 << 12;
    /// From here on, a set bit means that the record has the field.
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
    /// All assigned bits.
    pub(crate) const KNOWN: u32 = ((1 << 13) - 1) | (((1 << 27) - 1) & !((1 << 16) - 1));
}

/// The default priority, which is omitted.
pub(crate) const USUAL_PRIORITY: f32 = 0.5;
/// The default generation, which is omitted: that of the first use of a vector.
pub(crate) const USUAL_GENERATION: u32 = 1;
/// The byte for alignment 0.
pub(crate) const ALIGNMENT_ZERO: u8 = 64;
/// The byte for an alignment that is not a power of two: the number follows.
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

/// Writes the place of an allocation.
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

/// Writes the place of a pool.
pub(crate) fn pool_place(put: &mut impl Put, pool: PoolPlace) {
    put.number(pool.vector.into());
    put.number(pool.generation.into());
}

/// Writes the requirements of the resource and the request of the program, for an allocation that succeeded or failed.
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
    // Fast path: an ordinary allocation needs only this test.
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

/// Writes the rare fields of a request.
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

/// Writes the result of an allocation.
#[inline(always)]
pub(crate) fn granted(put: &mut impl Put, memory_type: u32, granted: &Place) {
    put.number(memory_type.into());
    place(put, granted);
}

/// Writes an allocation that existed when the recording began.
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

/// Returns the size of a range plus 1. `vk::WHOLE_SIZE` wraps to 0.
pub(crate) const fn size(bytes: u64) -> u64 {
    bytes.wrapping_add(1)
}

pub(crate) fn pool(put: &mut impl Put, place: PoolPlace, pool: &RawPool<'_>) {
    pool_place(put, place);
    put.number(pool.memory_type_index.into());
    put.number(pool.flags.bits().into());
    put.number(pool.algorithm.number().into());
    put.number(pool.block_size);
    put.number(pool.min_block_count.into());
    put.number(pool.max_block_count.into());
    put.number(pool.empty_blocks_kept.into());
    put.float(pool.priority);
    alignment(put, pool.min_allocation_alignment);
    put.byte(pool.memory_allocate_next.into());
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
