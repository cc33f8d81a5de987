//! Integer conversions that are lossless on all targets that Vulkan supports.
#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "the one place where conversions are argued"
)]

const _: () = assert!(usize::BITS >= 32 && usize::BITS <= 64);

/// A `u32` as an index: `usize` has at least 32 bits, see the assertion above.
#[inline]
pub const fn index(value: u32) -> usize {
    value as usize
}

/// A `usize` as `u64`: `usize` has at most 64 bits, see the assertion above.
#[inline]
pub const fn widen(value: usize) -> u64 {
    value as u64
}

/// A `usize` as `u32`: the index of an array that never has more than `u32::MAX` elements.
#[inline]
pub const fn narrow(value: usize) -> u32 {
    debug_assert!(value <= u32::MAX as usize);
    value as u32
}

/// A number below 256: a memory type, or a shard.
#[inline]
pub const fn byte(value: u32) -> u8 {
    debug_assert!(value <= u8::MAX as u32);
    value as u8
}

/// A time in nanoseconds. `u64` holds 584 years.
#[inline]
pub fn nanoseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A size in host memory. Sizes that come from a mapping fit `usize`, because they are mapped.
#[inline]
pub fn host_size(value: u64) -> Option<usize> {
    usize::try_from(value).ok()
}
