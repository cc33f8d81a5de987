//! Tests of the classes, and of the bits against a sorted set.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::{prop, prop_assert_eq, proptest};

use super::{Random, cases};
use crate::chunks::Chunks;
use crate::tlsf::bins::{Bins, SECOND_LOG2, class_above, class_of};

#[test]
fn classes_are_in_the_order_of_sizes() {
    let mut sizes: Vec<u64> = (0..5000).collect();
    for log2 in 1..64 {
        for near in -3_i64..=3 {
            sizes.push((1_u64 << log2).wrapping_add_signed(near));
            sizes.push(((1_u64 << log2) | (1 << (log2 - 1))).wrapping_add_signed(near));
        }
    }
    sizes.sort_unstable();
    for pair in sizes.windows(2) {
        let [low, high] = pair else { unreachable!() };
        assert!(class_of(*low) <= class_of(*high), "{low} {high}");
        assert!(
            class_of(*high) <= class_of(*low) + 1 || high / 2 >= low - 1 || high - low > 1,
            "{low} {high}"
        );
    }
}

#[test]
fn the_drawing_of_the_classes_is_right() {
    assert_eq!([0, 1, 63, 64, 127].map(class_of), [0, 1, 63, 64, 127]);
    assert_eq!([128, 129, 130, 131, 254, 255].map(class_of), [128, 128, 129, 129, 191, 191]);
    assert_eq!([256, 259, 260, 1 << 63].map(class_of), [192, 192, 193, 58 * 64 - 64 + 64]);
}

#[test]
fn a_class_differs_by_less_than_its_share() {
    let mut random = Random(1);
    for _ in 0..10_000 {
        let size = random.size(0, 62);
        let class = class_of(size);
        // The smallest size of the next class, by bisection.
        let (mut low, mut high) = (size, size * 2 + 2);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if class_of(middle) == class { low = middle } else { high = middle }
        }
        let next = high;
        assert_eq!(class_of(next), class + 1);
        assert!(next - size <= (size >> SECOND_LOG2).max(1), "{size} {next}");
        // The class above is the next one, unless the size is the smallest of its class.
        let is_first = size == 0 || class_of(size - 1) != class;
        assert_eq!(class_above(size), if is_first { class } else { class + 1 }, "{size}");
        assert_eq!(class_above(next), class + 1);
    }
    // The row of any sum of a size and an alignment is valid.
    assert!(class_above(u64::MAX) >> SECOND_LOG2 < 64);
}

proptest! {
    #![proptest_config(cases())]

    /// The bits find what a sorted set of classes finds.
    #[test]
    fn bits_find_what_a_set_finds(sizes in prop::collection::vec(1_u64..1 << 40, 1..40), log2 in 0_u32..40) {
        let mut chunks = Chunks::new(1 << 40);
        let (_, whole) = chunks.add_region(1 << 40).unwrap();
        let mut bins = Bins::new(1 << 40);
        let mut lists: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut listed = Vec::new();
        for size in sizes {
            let size = (size >> log2).max(1);
            if chunks.size(whole) <= size {
                break;
            }
            let chunk = chunks.cut_front(whole, size);
            let class = class_of(size);
            bins.insert(chunks.parts_mut().0, chunk, class);
            lists.entry(class).or_default().push(chunk);
            listed.push((chunk, class));
        }
        let mut random = Random(u64::from(log2));
        loop {
            for probe in (0..=bins.last_class()).step_by(7) {
                prop_assert_eq!(bins.find(probe), lists.range(probe..).next().map(|(&class, _)| class));
                prop_assert_eq!(bins.find_below(probe), lists.range(..=probe).next_back().map(|(&class, _)| class));
            }
            for (&class, list) in &lists {
                prop_assert_eq!(Some(&bins.head(class)), list.last());
            }
            let mut seen = BTreeSet::new();
            bins.validate(&chunks, &mut |chunk| { seen.insert(chunk); });
            prop_assert_eq!(seen.len(), listed.len());
            if listed.is_empty() {
                break;
            }
            let place = random.place(listed.len());
            let (chunk, class) = listed.swap_remove(place);
            let list = lists.get_mut(&class).unwrap();
            if list.last() == Some(&chunk) && random.place(2) == 0 {
                bins.pop(chunks.parts_mut().0, chunk, class);
            } else {
                bins.remove(chunks.parts_mut().0, chunk, class);
            }
            list.retain(|&other| other != chunk);
            if list.is_empty() {
                lists.remove(&class);
            }
        }
    }
}
