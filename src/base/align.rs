//! Alignment arithmetic on `u64`, with overflow as `None`.
#![forbid(unsafe_code)]

/// The least multiple of `alignment` that is not below `value`; `None` if it is above `u64::MAX`.
///
/// `alignment` is a power of two.
#[inline]
pub(crate) const fn align_up(value: u64, alignment: u64) -> Option<u64> {
    debug_assert!(alignment.is_power_of_two());
    match value.checked_add(alignment - 1) {
        Some(sum) => Some(sum & !(alignment - 1)),
        None => None,
    }
}

/// The greatest multiple of `alignment` that is not above `value`. `alignment` is a power of two.
#[inline]
pub(crate) const fn align_down(value: u64, alignment: u64) -> u64 {
    debug_assert!(alignment.is_power_of_two());
    value & !(alignment - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_both_ways() {
        assert_eq!(align_up(0, 256), Some(0));
        assert_eq!(align_up(1, 256), Some(256));
        assert_eq!(align_up(256, 256), Some(256));
        assert_eq!(align_down(511, 256), 256);
    }

    #[test]
    fn overflow_is_none() {
        assert_eq!(align_up(u64::MAX, 2), None);
        assert_eq!(align_up(u64::MAX, 1), Some(u64::MAX));
    }
}
