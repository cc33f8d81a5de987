//! Alignments and their arithmetic on `u64`. Overflow gives `None`.

use std::num::NonZeroU64;

/// The alignment of an offset, always a power of two.
///
/// Source: Vulkan guarantees that `VkMemoryRequirements::alignment` is a power of two.
///
/// ```
/// use sublet_engines::Alignment;
/// let alignment = Alignment::new(256).unwrap();
/// assert_eq!(alignment.align_up(1000), Some(1024));
/// assert_eq!(alignment.max(Alignment::ONE).get(), 256);
/// assert_eq!((Alignment::new(0), Alignment::new(48)), (None, None));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct Alignment(NonZeroU64);

impl Alignment {
    /// One: every offset is aligned to it.
    pub const ONE: Self = Self(NonZeroU64::MIN);

    /// `None` if `alignment` is not a power of two.
    #[inline]
    #[must_use]
    pub const fn new(alignment: u64) -> Option<Self> {
        if alignment == 0 { None } else { Self::of_both(alignment, 0) }
    }

    /// The larger of two alignments from a program, where zero means one. Returns `None` if one is not a power of two.
    #[inline(always)]
    pub const fn of_both(one: u64, other: u64) -> Option<Self> {
        if one & one.wrapping_sub(1) != 0 || other & other.wrapping_sub(1) != 0 {
            return None;
        }
        match NonZeroU64::new(if one > other { one } else { other }) {
            Some(alignment) => Some(Self(alignment)),
            None => Some(Self::ONE),
        }
    }

    /// The least alignment that is at least `limit`, a driver's value that need not be a power of two. Returns the
    /// largest alignment if that would be 2^64.
    pub fn at_least(limit: u64) -> Self {
        Self::from_log2(limit.max(1).checked_next_power_of_two().map_or(63, u64::trailing_zeros))
    }

    /// 2 to the power of `log2`, which is below 64.
    #[inline]
    pub const fn from_log2(log2: u32) -> Self {
        match NonZeroU64::new(1 << log2) {
            Some(power) => Self(power),
            None => Self::ONE,
        }
    }

    /// The power of two.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The larger of two. [`Ord::max`] of a derived order takes more instructions, and every allocation calls this.
    #[inline]
    #[must_use]
    pub const fn max(self, other: Self) -> Self {
        if self.get() > other.get() { self } else { other }
    }

    /// The bits that are zero in every multiple. Also the most units that aligning can skip.
    #[inline]
    pub const fn mask(self) -> u64 {
        self.0.get() - 1
    }

    /// The least multiple that is at least `value`; `None` if it exceeds `u64::MAX`.
    #[inline]
    #[must_use]
    pub const fn align_up(self, value: u64) -> Option<u64> {
        match value.checked_add(self.mask()) {
            Some(sum) => Some(sum & !self.mask()),
            None => None,
        }
    }

    /// The greatest multiple that is at most `value`.
    #[inline]
    #[must_use]
    pub const fn align_down(self, value: u64) -> u64 {
        value & !self.mask()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_powers_of_two() {
        for log2 in 0..64 {
            let alignment = Alignment::new(1 << log2).unwrap();
            assert_eq!(
                (alignment.get(), alignment.get().trailing_zeros(), alignment.mask()),
                (1 << log2, log2, (1 << log2) - 1)
            );
            assert_eq!(alignment, Alignment::from_log2(log2));
        }
        for wrong in [0, 3, 48, (1 << 63) + 1, u64::MAX] {
            assert_eq!(Alignment::new(wrong), None);
        }
    }

    #[test]
    fn zero_of_a_program_stands_for_one() {
        let both = |one, other| Alignment::of_both(one, other).map(Alignment::get);
        assert_eq!(
            (both(0, 0), both(0, 64), both(256, 0), both(4, 8)),
            (Some(1), Some(64), Some(256), Some(8))
        );
        assert_eq!((both(3, 8), both(8, 3), both(u64::MAX, 0)), (None, None, None));
    }

    #[test]
    fn the_order_of_two_does_not_matter() {
        let (small, large) = (Alignment::from_log2(3), Alignment::from_log2(5));
        assert_eq!((small.max(large), large.max(small), large.max(large)), (large, large, large));
    }

    #[test]
    fn a_limit_is_rounded_up() {
        let least = |limit| Alignment::at_least(limit).get();
        assert_eq!((least(0), least(1), least(48), least(64)), (1, 1, 64, 64));
        assert_eq!(least(u64::MAX), 1 << 63);
    }

    #[test]
    fn rounds_both_ways() {
        let alignment = Alignment::new(256).unwrap();
        assert_eq!(
            (alignment.align_up(0), alignment.align_up(1), alignment.align_up(256)),
            (Some(0), Some(256), Some(256))
        );
        assert_eq!(alignment.align_down(511), 256);
    }

    #[test]
    fn overflow_is_none() {
        assert_eq!(Alignment::new(2).unwrap().align_up(u64::MAX), None);
        assert_eq!(Alignment::ONE.align_up(u64::MAX), Some(u64::MAX));
    }
}
