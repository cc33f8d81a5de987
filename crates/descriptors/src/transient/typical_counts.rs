//! Chooses the size of the next pool from the use of recent recordings.
//!
//! A new pool is sized for the remainder of the recording, assuming that it resembles earlier ones. The mix of types
//! follows past use, so that no type runs out long before the others.

use crate::{DescriptorCounts, DescriptorKind};
use sublet_engines::CountedCapacity;

/// Sets and descriptors.
pub(super) type Size = CountedCapacity<DescriptorCounts>;

/// The number of recordings in the history.
const REMEMBERED: usize = 8;
/// The number of descriptors in a pool without history; one set, if a set has more.
const FIRST_DESCRIPTORS: u64 = 4096;
/// The number of inline uniform block bytes that count as one descriptor.
const BYTES_OF_ONE: u64 = 32;
/// The reciprocal of the margin above the typical size, so that slightly larger recordings still fit.
const MARGIN: u32 = 8;

/// The limits of typical sizes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The number of sets in a pool without history.
    pub(super) sets: u32,
    pub(super) max_sets: u32,
    /// The counts without history; `None` means derived from the layouts.
    pub(super) template: Option<DescriptorCounts>,
    /// True if pools outlive recordings, so that their size must not follow the use of one recording.
    pub(super) shared: bool,
}

/// The use of recent recordings.
#[derive(Clone, Debug, Default)]
pub(super) struct TypicalCounts {
    /// The use of past recordings; once the history is full, the oldest is at `next`.
    history: [Size; REMEMBERED],
    known: usize,
    next: usize,
    /// The counts derived from the layouts so far.
    guess: DescriptorCounts,
    /// The largest request of each kind that found no room in this recording.
    largest: DescriptorCounts,
}

impl TypicalCounts {
    /// Records that a recording ended after using `used`.
    pub(super) fn remember(&mut self, used: &Size) {
        self.largest = DescriptorCounts::new();
        if used.grants == 0 {
            return;
        }
        self.history[self.next] = *used;
        self.next = (self.next + 1) % REMEMBERED;
        self.known = (self.known + 1).min(REMEMBERED);
    }

    /// Returns the expected use of a recording: the second largest of each kind in the history, so that one large
    /// recording has no effect.
    fn expected(&self) -> Option<Size> {
        let mut most = self.history[..self.known].first().copied()?;
        let mut second = most;
        for (at, size) in self.history[..self.known].iter().enumerate().skip(1) {
            // The second largest of two is the smaller one.
            let lower = most.counts.zip(&size.counts, u32::min);
            second.counts = if at == 1 { lower } else { second.counts.max(&lower) };
            most.counts = most.counts.max(&size.counts);
            let lower = most.grants.min(size.grants);
            second.grants = if at == 1 { lower } else { second.grants.max(lower) };
            most.grants = most.grants.max(size.grants);
        }
        Some(second)
    }

    /// Returns the size of a pool that is created for `need`, in a recording that has used `used` so far.
    pub(super) fn pool_size(&mut self, bounds: &Bounds, used: &Size, need: &DescriptorCounts) -> Size {
        // Excludes the largest request, which may not occur again.
        let again = Size {
            grants: used.grants.saturating_sub(1),
            counts: used.counts.minus(&self.largest.zip(&used.counts, u32::min)),
        };
        self.largest = self.largest.max(need);
        let expected = self.expected();
        let (wanted, round_up) = match expected {
            Some(expected) if bounds.shared => (stretched(&expected, bounds.sets), true),
            Some(expected) => {
                let grants = expected.grants.saturating_sub(used.grants);
                (Size { grants, counts: expected.counts.minus(&used.counts) }, true)
            }
            None => (Size { grants: bounds.sets, counts: self.first(bounds, need) }, false),
        };
        let mut size =
            Size { grants: wanted.grants.max(again.grants), counts: wanted.counts.max(&again.counts) };
        if round_up {
            size.grants = size.grants.saturating_add(1);
            size.counts.put(need);
            let more = |count: u32| count.saturating_add(count.div_ceil(MARGIN));
            size.grants = more(size.grants);
            size.counts = size.counts.zip(&size.counts, |count, _| more(count));
        }
        let most = bounds.max_sets.max(1);
        if size.grants > most {
            size.counts = scaled(&size.counts, most, size.grants);
            size.grants = most;
        }
        size.grants = size.grants.max(1);
        size.counts = size.counts.max(need);
        size
    }

    /// Returns the counts without history.
    fn first(&mut self, bounds: &Bounds, need: &DescriptorCounts) -> DescriptorCounts {
        if let Some(template) = bounds.template {
            return template;
        }
        let sets = times_that_fit(need).clamp(1, bounds.sets.max(1));
        self.guess = self.guess.max(&need.times(sets));
        self.guess
    }
}

/// Returns how often the counts fit into the size of a pool without history.
fn times_that_fit(counts: &DescriptorCounts) -> u32 {
    let bytes = u64::from(counts.get(DescriptorKind::InlineUniformBlock));
    let descriptors = counts.total() + bytes / BYTES_OF_ONE;
    u32::try_from(FIRST_DESCRIPTORS / descriptors.max(1)).unwrap_or(u32::MAX)
}

/// Scales the size to at least this many sets, while it stays small.
fn stretched(size: &Size, sets: u32) -> Size {
    let by_sets = sets.div_ceil(size.grants.max(1));
    let factor = by_sets.min(times_that_fit(&size.counts)).max(1);
    Size { grants: size.grants.saturating_mul(factor), counts: size.counts.times(factor) }
}

/// Multiplies each count by `part / whole`, rounded up.
fn scaled(counts: &DescriptorCounts, part: u32, whole: u32) -> DescriptorCounts {
    let of = |count: u32, _| {
        let exact = (u64::from(count) * u64::from(part)).div_ceil(u64::from(whole.max(1)));
        u32::try_from(exact).unwrap_or(u32::MAX)
    };
    counts.zip(counts, of)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { sets: 64, max_sets: 1024, template: None, shared: false };
    const NOTHING: Size = Size { grants: 0, counts: DescriptorCounts::new() };

    fn images(count: u32) -> DescriptorCounts {
        DescriptorCounts::new().with(DescriptorKind::SampledImage, count)
    }

    fn of(sets: u32, count: u32) -> Size {
        Size { grants: sets, counts: images(count) }
    }

    fn images_of(size: &Size) -> u32 {
        size.counts.get(DescriptorKind::SampledImage)
    }

    #[test]
    fn a_pool_is_for_what_a_recording_takes() {
        let mut typical = TypicalCounts::default();
        (0..4).for_each(|_| typical.remember(&of(300, 600)));
        let size = typical.pool_size(&BOUNDS, &NOTHING, &images(2));
        assert!((300..=340).contains(&size.grants), "{size:?}");
        assert!((600..=680).contains(&images_of(&size)), "{size:?}");
        // The recording has already used half of the expected amount.
        let size = typical.pool_size(&BOUNDS, &of(280, 560), &images(2));
        assert!((279..=320).contains(&size.grants), "what was used may be used again: {size:?}");
    }

    #[test]
    fn one_large_recording_says_nothing() {
        let mut typical = TypicalCounts::default();
        typical.remember(&of(10, 20));
        typical.remember(&of(10, 50_000));
        typical.remember(&of(10, 20));
        assert!(images_of(&typical.pool_size(&BOUNDS, &NOTHING, &images(2))) < 40);
        typical.remember(&of(10, 50_000));
        assert!(images_of(&typical.pool_size(&BOUNDS, &NOTHING, &images(2))) >= 50_000, "twice is a habit");
        (0..REMEMBERED).for_each(|_| typical.remember(&of(10, 20)));
        assert!(images_of(&typical.pool_size(&BOUNDS, &NOTHING, &images(2))) < 40, "habits are forgotten");
    }

    #[test]
    fn one_large_request_does_not_make_the_next_pool_large() {
        let mut typical = TypicalCounts::default();
        (0..4).for_each(|_| typical.remember(&of(10, 20)));
        let large = typical.pool_size(&BOUNDS, &NOTHING, &images(10_000));
        assert!(images_of(&large) >= 10_000);
        let next = typical.pool_size(&BOUNDS, &of(1, 10_000), &images(2));
        assert!(images_of(&next) < 40, "{next:?}");
    }

    #[test]
    fn large_requests_that_go_on_double_the_pools() {
        let mut typical = TypicalCounts::default();
        (0..4).for_each(|_| typical.remember(&of(10, 20)));
        let (mut used, mut pools, mut room) = (NOTHING, 0, 0);
        for _ in 0..1000 {
            if room == 0 {
                let size = typical.pool_size(&BOUNDS, &used, &images(100));
                room = (images_of(&size) / 100).min(size.grants);
                pools += 1;
            }
            room -= 1;
            used = of(used.grants + 1, images_of(&used) + 100);
        }
        assert!(pools <= 14, "{pools} pools");
    }

    #[test]
    fn a_large_first_layout_is_for_one_set() {
        let mut typical = TypicalCounts::default();
        assert_eq!(images_of(&typical.pool_size(&BOUNDS, &NOTHING, &images(10_000))), 10_000);
        assert_eq!(images_of(&TypicalCounts::default().pool_size(&BOUNDS, &NOTHING, &images(4))), 4 * 64);
    }

    #[test]
    fn large_inline_uniform_blocks_are_not_multiplied() {
        let block = DescriptorCounts::new()
            .with(DescriptorKind::InlineUniformBlock, 1 << 20)
            .with_inline_uniform_bindings(1);
        let size = TypicalCounts::default().pool_size(&BOUNDS, &NOTHING, &block);
        assert_eq!(size.counts, block);
    }

    #[test]
    fn a_pool_never_holds_more_sets_than_it_may() {
        let mut typical = TypicalCounts::default();
        (0..4).for_each(|_| typical.remember(&of(10_000, 20_000)));
        let size = typical.pool_size(&BOUNDS, &NOTHING, &images(2));
        assert_eq!(size.grants, 1024);
        assert!((2048..2060).contains(&images_of(&size)), "the mix stays: {size:?}");
    }
}
