//! Tests for engines, built-in and custom.
//!
//! [`any`] checks an engine against the contract of [`Metadata`]: stale and foreign keys, empty and used regions,
//! closed regions, sums, and that failure changes nothing. [`ranges`] adds the promises of a [`RangeMetadata`]: spans
//! are inside their region, aligned and disjoint, and chunks cover the region. Both run seeded random programs, on the
//! engine and on a twin. The twin gets the same calls and must give the same results; its keys are foreign to the
//! engine.
//!
//! [`Shadow`] is the model behind [`ranges`], slow and simple, for your own programs.
//!
//! ```
//! use sublet::metadata::{Buddy, Counted, CountedCapacity, CountedRequest, check};
//! check::ranges(|| Buddy::new(1024, 1), &[64, 100, 1024], 4);
//! check::any(
//!     Counted::new,
//!     &[CountedCapacity { grants: 8, counts: [8, 20] }],
//!     &[CountedRequest::new([1, 2]), CountedRequest::new([2, 0])],
//!     4,
//! );
//! ```
//!
//! All checks panic if the engine is wrong, and report the program.

mod shadow;
#[cfg(test)]
mod tests;

use std::fmt;
use std::num::NonZeroU64;

pub use self::shadow::{Shadow, ShadowChunk};
use super::{
    Alignment, BadKey, Freed, InRegion, Key, Metadata, NotEmpty, RangeMetadata, RegionId, Request, Strategy,
    Tag, Usage,
};
use crate::base::cast::{index, widen};

/// Operations in one program.
const STEPS: u32 = 200;

/// A deterministic pseudo-random generator: `SplitMix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not zero.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        (!all.is_empty()).then(|| &all[usize::try_from(self.below(widen(all.len()))).unwrap_or(0)])
    }
}

/// Checks an engine against the contract of [`Metadata`]. Runs `programs` programs, on regions of these capacities and
/// with these requests.
///
/// # Panics
/// Panics if the engine violates the contract, and reports the program.
pub fn any<M>(make: impl Fn() -> M, capacities: &[M::Capacity], requests: &[M::Request], programs: u64)
where
    M: Metadata,
    M::Capacity: fmt::Debug,
    M::Request: Clone + fmt::Debug,
    M::Span: PartialEq,
{
    for program in 0..programs {
        let ask = |random: &mut Random| random.pick(requests).cloned();
        Player::new(&make).run(program, capacities, ask, |_, _| {});
    }
}

/// [`any`] with generated requests, and checks the promises of a [`RangeMetadata`].
///
/// # Panics
/// Panics if the engine violates the contract, and reports the program.
pub fn ranges<M: RangeMetadata>(make: impl Fn() -> M, capacities: &[u64], programs: u64) {
    let largest = capacities.iter().copied().max().unwrap_or(1).max(1);
    let ask = |random: &mut Random| {
        let most = if random.below(8) == 0 { largest } else { (largest / 8).max(1) };
        let strategies = [Strategy::Balanced, Strategy::MinTime, Strategy::MinMemory, Strategy::MinOffset];
        let strategy = random.pick(&strategies).copied().unwrap_or_default();
        let exponent = random.below(u64::from(largest.ilog2()) + 1);
        let alignment = if random.below(2) == 0 { 1 } else { 1 << exponent };
        let alignment = Alignment::new(alignment).unwrap_or(Alignment::ONE);
        let tag = Tag(u32::try_from(random.next() >> 32).unwrap_or(0));
        Some(Request { strategy, tag, ..Request::new(1 + random.below(most), alignment) })
    };
    for program in 0..programs {
        let mut shadow = Shadow::default();
        Player::new(&make).run(program, capacities, ask, |event, engine| {
            match event {
                Event::Added(region) => shadow.add_region(region, engine.region_usage(region).capacity),
                Event::Removed(region) => shadow.remove_region(region),
                Event::Granted(key, span, request) => {
                    assert_eq!(
                        span.offset % request.alignment.get(),
                        0,
                        "{request:?}: {span:?} is not aligned"
                    );
                    let tag = Tag(request.tag.0 & Tag::MASK);
                    shadow.insert(ShadowChunk { key, span, asked: request.size, tag });
                }
                Event::Freed(key) => drop(shadow.remove(key)),
                Event::Reset(region) => drop(shadow.reset(region)),
            }
            shadow.compare(engine);
        });
    }
}

/// An operation on an engine.
enum Event<'a, M: Metadata> {
    Added(RegionId),
    Removed(RegionId),
    Granted(Key, M::Span, &'a M::Request),
    Freed(Key),
    Reset(RegionId),
}

/// A live grant: its key, the twin's key, and its span.
struct Live<S>(Key, Key, S);

struct Player<M: Metadata> {
    engine: M,
    /// Gets the same calls, and must give the same spans. Its keys are foreign to the engine.
    twin: M,
    /// By id: true if the region is closed; `None` if there is no region.
    regions: Vec<Option<bool>>,
    /// True if the engine closes regions itself. Otherwise [`allocate_outside`](Metadata::allocate_outside) is used.
    seals: bool,
    live: Vec<Live<M::Span>>,
    /// Invalid keys: freed ones, and the twin's.
    bad: Vec<Key>,
}

impl<M: Metadata> Player<M>
where
    M::Capacity: fmt::Debug,
    M::Request: fmt::Debug,
    M::Span: PartialEq,
{
    fn new(make: &impl Fn() -> M) -> Self {
        Self {
            engine: make(),
            twin: make(),
            regions: Vec::new(),
            seals: false,
            live: Vec::new(),
            bad: Vec::new(),
        }
    }

    fn run(
        mut self,
        program: u64,
        capacities: &[M::Capacity],
        mut ask: impl FnMut(&mut Random) -> Option<M::Request>,
        mut observe: impl FnMut(Event<'_, M>, &M),
    ) {
        let mut random = Random(program);
        for step in 0..STEPS {
            let present: Vec<RegionId> = self.present().collect();
            let any_region = random.pick(&present).copied();
            match (if step == 0 { 0 } else { random.below(32) }, any_region) {
                (0 | 1, _) => {
                    let Some(capacity) = random.pick(capacities) else { return };
                    if let Some(region) = self.add_region(capacity) {
                        observe(Event::Added(region), &self.engine);
                    }
                }
                (2, Some(region)) => {
                    if self.remove_region(region) {
                        observe(Event::Removed(region), &self.engine);
                    }
                }
                (3, Some(region)) => {
                    self.reset(region);
                    observe(Event::Reset(region), &self.engine);
                }
                (4, Some(region)) => self.seal(region),
                (5..=7, _) => self.bad_key(&mut random),
                (8..=16, _) if !self.live.is_empty() => {
                    let at = match random.below(3) {
                        0 => 0,
                        1 => self.live.len() - 1,
                        _ => usize::try_from(random.below(widen(self.live.len()))).unwrap_or(0),
                    };
                    let key = self.free(at);
                    observe(Event::Freed(key), &self.engine);
                }
                _ => {
                    let Some(request) = ask(&mut random) else { return };
                    if let Some((key, span)) = self.allocate(&request) {
                        observe(Event::Granted(key, span, &request), &self.engine);
                    }
                }
            }
            self.compare();
        }
        while !self.live.is_empty() {
            let key = self.free(0);
            observe(Event::Freed(key), &self.engine);
        }
        for region in self.present().collect::<Vec<_>>() {
            assert!(self.remove_region(region), "an empty region is not removed in program {program}");
            observe(Event::Removed(region), &self.engine);
        }
        assert_eq!(self.engine.usage(), Usage::default(), "something is left of program {program}");
    }

    fn present(&self) -> impl Iterator<Item = RegionId> {
        (0..).zip(&self.regions).filter(|(_, sealed)| sealed.is_some()).map(|(id, _)| RegionId(id))
    }

    fn live_in(&self, region: RegionId) -> usize {
        self.live.iter().filter(|live| live.2.region() == region).count()
    }

    /// Calls the engine, and checks that an error changed nothing.
    fn call<T, E>(&mut self, call: impl FnOnce(&mut M) -> Result<T, E>) -> Result<T, E> {
        let before = format!("{:?}", self.engine);
        let result = call(&mut self.engine);
        assert!(result.is_ok() || before == format!("{:?}", self.engine), "failure changed something");
        result
    }

    fn add_region(&mut self, capacity: &M::Capacity) -> Option<RegionId> {
        let result = self.call(|engine| engine.add_region(capacity));
        assert_eq!(result, self.twin.add_region(capacity), "add_region({capacity:?}): the twin differs");
        let region = result.ok()?;
        let vacant = self.regions.iter().position(Option::is_none).unwrap_or(self.regions.len());
        assert_eq!(index(region.0), vacant, "add_region({capacity:?}): the lowest id that is vacant");
        if vacant == self.regions.len() {
            self.regions.push(None);
        }
        self.regions[vacant] = Some(false);
        Some(region)
    }

    fn remove_region(&mut self, region: RegionId) -> bool {
        let expected = if self.live_in(region) == 0 { Ok(()) } else { Err(NotEmpty) };
        assert_eq!(self.call(|engine| engine.remove_region(region)), expected, "remove_region({region:?})");
        assert_eq!(self.twin.remove_region(region), expected, "remove_region({region:?}) of the twin");
        if expected.is_ok() {
            self.regions[index(region.0)] = None;
        }
        expected.is_ok()
    }

    fn reset(&mut self, region: RegionId) {
        self.engine.reset(region);
        self.twin.reset(region);
        self.regions[index(region.0)] = Some(false);
        let (gone, live) =
            std::mem::take(&mut self.live).into_iter().partition(|live| live.2.region() == region);
        self.live = live;
        self.bad.extend(Vec::into_iter(gone).flat_map(|Live(key, twin, _)| [key, twin]));
    }

    fn seal(&mut self, region: RegionId) {
        self.seals = self.engine.seal(region);
        assert_eq!(self.twin.seal(region), self.seals, "seal({region:?}): the twin differs");
        self.regions[index(region.0)] = Some(true);
    }

    fn allocate(&mut self, request: &M::Request) -> Option<(Key, M::Span)> {
        let (result, twin) = if self.seals || !self.regions.contains(&Some(true)) {
            (self.call(|engine| engine.allocate(request)), self.twin.allocate(request))
        } else {
            let regions = self.regions.clone();
            let is_closed = |region: RegionId| regions.get(index(region.0)) == Some(&Some(true));
            let outside = |engine: &mut M| engine.allocate_outside(request, &is_closed);
            (outside(&mut self.engine), outside(&mut self.twin))
        };
        let spans = (result.map(|granted| granted.1), twin.map(|granted| granted.1));
        assert!(spans.0 == spans.1, "{request:?}: {:?}, and the twin {:?}", spans.0, spans.1);
        let ((key, span), (twin, _)) = (result.ok()?, twin.ok()?);
        let sealed = self.regions.get(index(span.region().0)).copied().flatten();
        assert_eq!(sealed, Some(false), "{request:?}: {span:?} is in no region, or in a closed one");
        let known = self.live.iter().map(|live| live.0).chain(self.bad.iter().copied());
        assert!(known.into_iter().all(|known| known != key), "{request:?}: {key:?} was in use");
        self.live.push(Live(key, twin, span));
        Some((key, span))
    }

    fn free(&mut self, at: usize) -> Key {
        let Live(key, twin, span) = self.live.remove(at);
        let region_empty = self.live_in(span.region()) == 0;
        for freed in [self.engine.free(key), self.twin.free(twin)] {
            let Ok(Freed { span: was, region_empty: says }) = freed else { panic!("{span:?} is not freed") };
            assert!(was == span, "{span:?} was freed, and {was:?} said");
            assert_eq!(says, region_empty, "{span:?}: whether the region is empty");
        }
        self.bad.extend([key, twin]);
        key
    }

    fn bad_key(&mut self, random: &mut Random) {
        let key = match random.below(3) {
            0 => random.pick(&self.bad).copied(),
            1 => random.pick(&self.live).map(|live| live.1),
            _ => NonZeroU64::new(random.next()).map(Key),
        };
        let Some(key) = key.filter(|key| self.live.iter().all(|live| live.0 != *key)) else { return };
        assert!(self.engine.span(key).is_err() && self.engine.tag(key).is_err(), "{key:?} is not live");
        assert!(self.call(|engine| engine.free(key)) == Err(BadKey), "{key:?} is not live");
    }

    fn compare(&self) {
        self.engine.validate();
        for region in self.present() {
            let used = self.engine.region_usage(region).used_chunks;
            assert_eq!(used, widen(self.live_in(region)), "used chunks of {region:?}");
        }
        let sum = self.present().map(|region| self.engine.region_usage(region)).sum();
        assert_eq!(self.engine.usage(), sum, "the sums are those of the regions");
        for Live(key, _, span) in &self.live {
            assert!(self.engine.span(*key) == Ok(*span), "{key:?}: {span:?}");
        }
    }
}
