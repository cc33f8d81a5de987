//! Serial numbers, and the keys made of them.
#![forbid(unsafe_code)]

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::base::cast::index;
use crate::metadata::{Key, RegionId};

/// A key from its highest bit: one more than the region (so that a key is not zero), the side, the serial number.
const REGION_SHIFT: u32 = 48;
const UPPER: u64 = 1 << 47;
const SERIAL_MASK: u64 = UPPER - 1;

/// Ids of regions are below this.
pub(super) const MAX_REGIONS: u32 = (1 << (64 - REGION_SHIFT)) - 1;

/// The number of an allocation: counts all allocations of an engine, in the lowest 47 bits. At a million allocations a
/// second a number comes again after four years.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Serial(u64);

impl Serial {
    /// The one that 0 comes after.
    #[cfg(test)]
    pub(super) const LAST: Self = Self(SERIAL_MASK);

    /// Where an engine starts to count: each engine elsewhere, so that a key of one is hardly ever good in another.
    pub(super) fn first() -> Self {
        static ENGINES: AtomicU32 = AtomicU32::new(0);
        let engine = u64::from(ENGINES.fetch_add(1, Ordering::Relaxed));
        // Multiples of 2^64 divided by the golden ratio lie as far apart as they can, however many there are.
        Self(engine.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SERIAL_MASK.count_ones()))
    }

    #[inline]
    pub(super) const fn next(self) -> Self {
        Self((self.0 + 1) & SERIAL_MASK)
    }

    /// How many allocations later than `earlier` this was.
    #[inline]
    pub(super) const fn since(self, earlier: Self) -> u64 {
        self.0.wrapping_sub(earlier.0) & SERIAL_MASK
    }

    /// The key of the allocation with this number. `region` is below [`MAX_REGIONS`].
    #[inline]
    pub(super) fn key(self, region: RegionId, upper: bool) -> Key {
        debug_assert!(region.0 < MAX_REGIONS);
        let side = if upper { UPPER } else { 0 };
        let bits = ((u64::from(region.0) + 1) << REGION_SHIFT) | side | self.0;
        Key(NonZeroU64::new(bits).unwrap_or(NonZeroU64::MIN))
    }

    /// What [`Serial::key`] was made of. A foreign key may give a region that there is not.
    #[inline]
    pub(super) fn of(key: Key) -> (RegionId, bool, Self) {
        let bits = key.0.get();
        #[allow(clippy::as_conversions, clippy::cast_possible_truncation, reason = "16 bits")]
        let region = ((bits >> REGION_SHIFT) as u32).wrapping_sub(1);
        (RegionId(region), bits & UPPER != 0, Self(bits & SERIAL_MASK))
    }
}

// An index of a region, and `usize::MAX` of 32 bits, are beyond every table of regions.
const _: () = assert!(index(u32::MAX) > index(MAX_REGIONS));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_what_it_was_made_of() {
        for region in [0, 1, 77, MAX_REGIONS - 1] {
            for upper in [false, true] {
                for serial in [Serial(0), Serial(1), Serial(SERIAL_MASK)] {
                    let key = serial.key(RegionId(region), upper);
                    assert_eq!(Serial::of(key), (RegionId(region), upper, serial));
                }
            }
        }
    }

    #[test]
    fn serial_numbers_go_on_after_the_last() {
        let last = Serial(SERIAL_MASK);
        assert_eq!(last.next(), Serial(0));
        assert_eq!(last.next().next().since(last), 2);
    }

    #[test]
    fn engines_start_far_apart() {
        let starts: Vec<Serial> = (0..100).map(|_| Serial::first()).collect();
        for (n, &a) in starts.iter().enumerate() {
            for &b in starts.iter().skip(n + 1) {
                // 100 engines made one after the other are 2^47 / 200 numbers apart at least.
                assert!(a.since(b).min(b.since(a)) > (1 << 47) / 400);
            }
        }
    }
}
