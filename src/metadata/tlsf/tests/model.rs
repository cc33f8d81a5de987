//! Random programs against a shadow that knows every unit.

use std::collections::BTreeMap;

use proptest::prelude::{Just, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as Generator;

use super::*;
use crate::base::cast::{index, widen};
use crate::metadata::tlsf::search::{LAST_LOOKS, LOW_LOOKS};

/// What a program does to an engine.
#[derive(Clone, Debug)]
enum Step {
    Allocate { size: u64, alignment: u64, strategy: Strategy, tag: u32 },
    Free { which: usize },
    FreeTwice { which: usize },
    AddRegion { capacity: u64 },
    RemoveRegion { which: usize },
    Reset { which: usize },
}

fn step(with_min_offset: bool) -> impl Generator<Value = Step> {
    let strategies = if with_min_offset { 4_usize } else { 3 };
    prop_oneof![
        8 => (0_u32..11, any::<u64>(), 0_u32..13, 0..strategies, any::<u32>()).prop_map(|(log2, bits, align, strategy, tag)| {
            Step::Allocate {
                size: (1 << log2) + bits % (1 << log2),
                alignment: 1 << align,
                strategy: STRATEGIES[strategy],
                tag,
            }
        }),
        6 => any::<usize>().prop_map(|which| Step::Free { which }),
        1 => any::<usize>().prop_map(|which| Step::FreeTwice { which }),
        1 => (1_u64..=4096).prop_map(|capacity| Step::AddRegion { capacity }),
        1 => Just(Step::AddRegion { capacity: 4096 }),
        1 => any::<usize>().prop_map(|which| Step::RemoveRegion { which }),
        1 => any::<usize>().prop_map(|which| Step::Reset { which }),
    ]
}

/// What is granted, kept as the naive thing it is.
#[derive(Default)]
struct Shadow {
    capacities: BTreeMap<RegionId, u64>,
    live: Vec<(Key, Span, Tag)>,
}

impl Shadow {
    fn check(&self, tlsf: &Tlsf) {
        tlsf.validate();
        let mut total = Usage::default();
        for (&region, &capacity) in &self.capacities {
            let mut live: Vec<_> = self.live.iter().filter(|(_, span, _)| span.region == region).collect();
            live.sort_unstable_by_key(|(_, span, _)| span.offset);
            let mut expected = Vec::new();
            let mut end = 0;
            for &(key, span, tag) in live {
                assert!(span.offset >= end, "two allocations overlap");
                if span.offset > end {
                    expected.push(Chunk { offset: end, size: span.offset - end, used: None });
                }
                expected.push(Chunk { offset: span.offset, size: span.size, used: Some((key, tag)) });
                end = span.offset + span.size;
                assert_eq!(tlsf.span(key), Ok(span));
                assert_eq!(tlsf.tag(key), Ok(tag));
            }
            assert!(end <= capacity, "an allocation reaches over the end");
            if end < capacity {
                expected.push(Chunk { offset: end, size: capacity - end, used: None });
            }
            assert_eq!(walked(tlsf, region), expected);
            let used: u64 =
                expected.iter().filter(|chunk| chunk.used.is_some()).map(|chunk| chunk.size).sum();
            let used_chunks = widen(expected.iter().filter(|chunk| chunk.used.is_some()).count());
            let usage = Usage { capacity, used, used_chunks, ..Usage::default() };
            assert_eq!(tlsf.region_usage(region), usage);
            total.capacity += capacity;
            total.used += used;
            total.used_chunks += used_chunks;
        }
        assert_eq!(tlsf.usage(), total);
        let largest = free_chunks(tlsf).into_iter().map(|(_, _, size)| size).max().unwrap_or(0);
        assert_eq!(tlsf.largest_free(), largest);
    }

    fn run(&mut self, tlsf: &mut Tlsf, step: &Step) {
        let region_at =
            |which: usize| self.capacities.keys().nth(which % self.capacities.len().max(1)).copied();
        match *step {
            Step::Allocate { size, alignment, strategy, tag } => {
                let free = free_chunks(tlsf);
                let fit = free.iter().any(|&chunk| fits(chunk, size, alignment));
                let request = Request { tag: Tag(tag), ..request(size, alignment, strategy) };
                match tlsf.allocate(&request) {
                    Ok((key, span)) => {
                        assert_eq!(span.size, size);
                        assert_eq!(span.offset % alignment, 0);
                        assert!(fit);
                        self.live.push((key, span, Tag(tag & Tag::MASK)));
                    }
                    Err(error) => {
                        assert_eq!(error, AllocateError::NoSpace);
                        // There are few chunks: the search is as good as complete.
                        assert!(!fit || free.len() > index(LAST_LOOKS), "{request:?} would fit");
                    }
                }
            }
            Step::Free { which } | Step::FreeTwice { which } => {
                if self.live.is_empty() {
                    return;
                }
                let (key, span, _) = self.live.swap_remove(which % self.live.len());
                let region_empty = self.live.iter().all(|(_, other, _)| other.region != span.region);
                assert_eq!(tlsf.free(key), Ok(Freed { span, region_empty }));
                if matches!(step, Step::FreeTwice { .. }) {
                    assert_eq!(tlsf.free(key), Err(BadKey));
                    assert_eq!(tlsf.span(key), Err(BadKey));
                }
            }
            Step::AddRegion { capacity } => {
                if self.capacities.len() < 6 {
                    let region = tlsf.add_region(&capacity).unwrap();
                    let lowest = (0..).map(RegionId).find(|id| !self.capacities.contains_key(id));
                    assert_eq!(Some(region), lowest);
                    self.capacities.insert(region, capacity);
                }
            }
            Step::RemoveRegion { which } => {
                if let Some(region) = region_at(which) {
                    if self.live.iter().any(|(_, span, _)| span.region == region) {
                        assert_eq!(tlsf.remove_region(region), Err(NotEmpty));
                    } else {
                        assert_eq!(tlsf.remove_region(region), Ok(()));
                        self.capacities.remove(&region);
                    }
                }
            }
            Step::Reset { which } => {
                if let Some(region) = region_at(which) {
                    tlsf.reset(region);
                    for (key, _, _) in self.live.extract_if_(|(_, span, _)| span.region == region) {
                        assert_eq!(tlsf.free(key), Err(BadKey));
                    }
                }
            }
        }
    }
}

/// `Vec::extract_if` is younger than the oldest compiler that this crate is for.
trait ExtractIf<T> {
    fn extract_if_(&mut self, is_out: impl Fn(&T) -> bool) -> Vec<T>;
}

impl<T> ExtractIf<T> for Vec<T> {
    fn extract_if_(&mut self, is_out: impl Fn(&T) -> bool) -> Vec<T> {
        let (out, stay) = std::mem::take(self).into_iter().partition(|item| is_out(item));
        *self = stay;
        out
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn programs_agree_with_the_shadow(steps in prop::collection::vec(step(false), 1..120)) {
        let mut tlsf = Tlsf::new(4096);
        let mut shadow = Shadow::default();
        for step in &steps {
            shadow.run(&mut tlsf, step);
            shadow.check(&tlsf);
        }
        assert!(tlsf.index.is_none());
    }

    #[test]
    fn programs_with_an_index_agree_with_the_shadow(steps in prop::collection::vec(step(true), 1..120)) {
        let mut tlsf = Tlsf::new(4096);
        let mut shadow = Shadow::default();
        for step in &steps {
            shadow.run(&mut tlsf, step);
            shadow.check(&tlsf);
        }
    }

    #[test]
    fn the_same_program_gives_the_same_offsets(steps in prop::collection::vec(step(true), 1..120)) {
        let run = || {
            let mut tlsf = Tlsf::new(4096);
            let mut shadow = Shadow::default();
            steps.iter().for_each(|step| shadow.run(&mut tlsf, step));
            shadow.live.iter().map(|&(_, span, tag)| (span, tag)).collect::<Vec<_>>()
        };
        assert_eq!(run(), run());
    }

    /// The promise of [`Strategy::MinOffset`], word by word.
    #[test]
    fn min_offset_is_the_lowest(seed in any::<u64>(), churn in 0_usize..300) {
        let mut random = Random(seed);
        let mut tlsf = Tlsf::new(1 << 16);
        for _ in 0..3 {
            tlsf.add_region(&((1 << 16) - random.below(100))).unwrap();
        }
        let mut live = Vec::new();
        for turn in 0..churn + 20 {
            if turn < churn && random.below(100) < 45 && !live.is_empty() {
                let place = random.place(live.len());
                tlsf.free(live.swap_remove(place)).unwrap();
                continue;
            }
            let (size, alignment) = (random.size(0, 12), 1 << random.below(13));
            let strategy = if turn < churn / 2 { Strategy::Balanced } else { Strategy::MinOffset };
            let free = free_chunks(&tlsf);
            let large = || free.iter().filter(|&&(_, _, have)| have >= size);
            let lowest = large()
                .take(index(LOW_LOOKS))
                .find(|&&chunk| fits(chunk, size, alignment))
                .or_else(|| large().find(|&&(_, _, have)| have >= size + alignment - 1));
            match tlsf.allocate(&request(size, alignment, strategy)) {
                Ok((key, span)) => {
                    live.push(key);
                    if let (Strategy::MinOffset, Some(&(region, offset, _))) = (strategy, lowest) {
                        prop_assert_eq!((span.region, span.offset), (region, offset.next_multiple_of(alignment)));
                    }
                }
                Err(_) => prop_assert!(lowest.is_none()),
            }
            tlsf.validate();
        }
    }
}
