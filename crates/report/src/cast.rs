//! Integer conversions that are lossless on all targets of Vulkan.
#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "the one place where conversions are argued"
)]

const _: () = assert!(usize::BITS >= 32 && usize::BITS <= 64);

/// Converts a `u32` to an index: `usize` has at least 32 bits, see the assertion above.
pub(crate) const fn index(value: u32) -> usize {
    value as usize
}

/// Converts a `usize` to `u64`: `usize` has at most 64 bits, see the assertion above.
#[cfg(feature = "snapshots")]
pub(crate) const fn widen(value: usize) -> u64 {
    value as u64
}

/// Converts an index into an array that never has more than `u32::MAX` elements.
#[cfg(feature = "snapshots")]
pub(crate) const fn narrow(value: usize) -> u32 {
    debug_assert!(value <= u32::MAX as usize);
    value as u32
}
