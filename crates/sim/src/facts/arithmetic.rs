//! The integer conversions that cannot lose anything on the targets that Vulkan runs on, and alignment with overflow as
//! `None`.
#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "the one place where conversions are argued"
)]

const _: () = assert!(usize::BITS >= 32 && usize::BITS <= 64);

/// A `u32` as an index: `usize` has at least 32 bits, see the assertion above.
#[inline]
pub(crate) const fn index(value: u32) -> usize {
    value as usize
}

/// A `usize` as `u64`: `usize` has at most 64 bits, see the assertion above.
#[inline]
pub(crate) const fn widen(value: usize) -> u64 {
    value as u64
}

/// An index of an array that is never longer than `u32::MAX` elements.
#[inline]
pub(crate) const fn narrow(value: usize) -> u32 {
    debug_assert!(value <= u32::MAX as usize);
    value as u32
}

/// A size in host memory; `None` if the host has no address for its last byte.
#[inline]
pub(crate) fn host_size(value: u64) -> Option<usize> {
    usize::try_from(value).ok()
}

/// The least multiple of `alignment`, a power of two, that is not below `value`; `None` if it is above `u64::MAX`.
#[inline]
pub(crate) const fn align_up(value: u64, alignment: u64) -> Option<u64> {
    debug_assert!(alignment.is_power_of_two());
    match value.checked_add(alignment - 1) {
        Some(sum) => Some(sum & !(alignment - 1)),
        None => None,
    }
}

/// Returns whether `value` is a multiple of `alignment`, a power of two.
#[inline]
pub(crate) const fn is_aligned(value: u64, alignment: u64) -> bool {
    debug_assert!(alignment.is_power_of_two());
    value & (alignment - 1) == 0
}

/// The bytes of a view begin at a multiple of this: no profile's `minMemoryMapAlignment` is larger.
pub(crate) const ALIGNMENT: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignment_and_its_overflow() {
        assert_eq!(align_up(0, 256), Some(0));
        assert_eq!(align_up(1, 256), Some(256));
        assert_eq!(align_up(256, 256), Some(256));
        assert_eq!(align_up(u64::MAX, 2), None);
        assert_eq!(align_up(u64::MAX, 1), Some(u64::MAX));
        assert!(is_aligned(512, 256) && !is_aligned(513, 2));
    }
}
