//! Runs a program on an engine, its twin and the model, and compares after every operation.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use sublet_engines::{
    Alignment, AllocateError, BadKey, Buddy, ChunkInfo, Freed, Key, Linear, Metadata, NotEmpty,
    RangeMetadata, RegionError, RegionId, Request, Span, Strategy, Tag, Tlsf,
};

use crate::model::{Live, Model};
use crate::program::{BadKind, Operation, Pick, Program, Setup, Size, WantedAlignment};
use crate::subjects::{At, Expect, Rules, Subject};

/// How often each outcome occurred in each situation: shows that the programs reach the intended cases.
pub(crate) type Seen = BTreeMap<(&'static str, &'static str), u64>;

/// Runs a program. Panics if the engine differs from the model or breaks its rules.
pub(crate) fn play<S: Subject>(program: &Program, seen: &mut Seen) {
    let mut player = Player::<S>::new(program.setup);
    player.step(Operation::AddRegion(program.setup.capacity));
    for &operation in &program.operations {
        player.step(operation);
    }
    for (what, count) in std::mem::take(&mut player.seen) {
        *seen.entry(what).or_default() += count;
    }
    player.finish();
}

struct Player<S: Subject> {
    setup: Setup,
    engine: S::Engine,
    /// A second engine, which gets the same calls and must return the same spans, but through its fast paths. Its keys
    /// are foreign to `engine`.
    twin: S::Engine,
    rules: S::Rules,
    model: Model,
    seen: Seen,
}

impl<S: Subject> Player<S> {
    fn new(setup: Setup) -> Self {
        Self {
            setup,
            engine: S::engine(&setup),
            twin: S::engine(&setup),
            rules: S::Rules::new(&setup),
            model: Model::default(),
            seen: Seen::new(),
        }
    }

    fn see(&mut self, situation: &'static str, what: &'static str) {
        *self.seen.entry((situation, what)).or_default() += 1;
    }

    fn step(&mut self, operation: Operation) {
        match operation {
            Operation::AddRegion(capacity) => self.add_region(capacity),
            Operation::RemoveRegion(pick) => {
                if let Some(region) = self.model.pick_region(pick) {
                    self.remove_region(region);
                }
            }
            Operation::Reset(pick) => {
                if let Some(region) = self.model.pick_region(pick) {
                    self.reset(region);
                }
            }
            Operation::Allocate { size, alignment, strategy, upper, tag } => {
                let (size, alignment) = (self.size(size), self.alignment(alignment));
                self.allocate(&Request { size, alignment, strategy, upper, tag });
            }
            Operation::AllocateAt { gap, skipped, size, plus, behind, tag } => {
                self.allocate_at(gap, (skipped, size, plus), behind, tag);
            }
            Operation::AllocateOutside { closed, size, alignment, strategy } => {
                let (size, alignment) = (self.size(size).max(1), self.alignment(alignment));
                if let Some(closed) = self.model.pick_region(closed) {
                    self.allocate_outside(closed, &Request { strategy, ..Request::new(size, alignment) });
                }
            }
            Operation::Free(pick) => self.free(pick),
            Operation::Bad(kind) => self.bad_key(kind),
        }
        self.compare();
    }

    fn size(&self, size: Size) -> u64 {
        let size = match size {
            // The only size that may be 0.
            Size::Units(units) => return units,
            Size::Part { region, halvings, plus } => {
                let capacity =
                    self.model.pick_region(region).map_or(1, |region| self.model.region(region).capacity);
                (capacity >> halvings).saturating_add_signed(i64::from(plus))
            }
            Size::Gap { gap, plus } => {
                let gaps: Vec<u64> = self
                    .model
                    .present()
                    .flat_map(|(_, region)| region.gaps())
                    .map(|(_, size)| size)
                    .collect();
                let size = gaps.get(gap as usize % gaps.len().max(1)).copied().unwrap_or(1);
                size.saturating_add_signed(i64::from(plus))
            }
        };
        size.max(1)
    }

    fn alignment(&self, alignment: WantedAlignment) -> Alignment {
        let alignment = match alignment {
            WantedAlignment::One => 1,
            WantedAlignment::Usual(log2) => {
                let capacity = self.model.present().map(|(_, region)| region.capacity).max().unwrap_or(1);
                1 << (u32::from(log2) % (capacity.ilog2() + 2)).min(63)
            }
            WantedAlignment::Any(log2) => 1 << log2,
        };
        Alignment::new(alignment).expect("a power of two")
    }

    fn add_region(&mut self, capacity: u64) {
        let max = self.setup.max_capacity;
        let expected = if capacity == 0 || capacity > max {
            Err(RegionError::Capacity { capacity, max })
        } else if self.model.capacity() + u128::from(capacity) > u128::from(u64::MAX)
            || u64::from(self.model.next_region().0) >= S::max_regions(&self.setup)
        {
            Err(RegionError::TooMany)
        } else {
            Ok(self.model.next_region())
        };
        let result = self.unchanged_on_error(|engine| engine.add_region(&capacity));
        assert_eq!(result, expected, "add_region({capacity})");
        assert_eq!(self.twin.add_region(&capacity), expected, "add_region({capacity}) of the twin");
        self.see(
            "add_region",
            match result {
                Ok(id) if self.model.regions.len() > id.0 as usize => "slot used again",
                Ok(_) => "new slot",
                Err(RegionError::TooMany) => "TooMany",
                Err(_) => "Capacity",
            },
        );
        if let Ok(id) = result {
            self.model.add_region(id, capacity);
            self.rules.added(id, capacity);
        }
    }

    fn remove_region(&mut self, id: RegionId) {
        let expected = if self.model.region(id).used.is_empty() { Ok(()) } else { Err(NotEmpty) };
        let result = self.unchanged_on_error(|engine| engine.remove_region(id));
        assert_eq!(result, expected, "remove_region({id:?})");
        assert_eq!(self.twin.remove_region(id), expected, "remove_region({id:?}) of the twin");
        self.see("remove_region", if result.is_ok() { "ok" } else { "NotEmpty" });
        if result.is_ok() {
            self.model.remove_region(id);
            self.rules.removed(id);
        }
    }

    fn reset(&mut self, id: RegionId) {
        self.see("reset", if self.model.region(id).used.is_empty() { "empty" } else { "used" });
        self.engine.reset(id);
        self.twin.reset(id);
        let keys: Vec<Key> = self.model.region(id).used.values().map(|live| live.key).collect();
        for key in keys {
            self.model.remove(key);
        }
        self.rules.reset(id);
    }

    /// Allocates while one region is closed. Uses copies, because the rules do not track what the attempt changes.
    fn allocate_outside(&mut self, closed: RegionId, request: &Request) {
        // Some engines fill the closed region with such requests first: too many steps for small sizes.
        if self.model.region(closed).capacity / request.size > 200 {
            return;
        }
        let mut copy = self.engine.clone();
        let result = copy.allocate_outside(request, &|region| region == closed);
        let mut without = self.engine.clone();
        without.discard(closed);
        let expected = without.allocate(request).map(|(_, span)| span);
        let granted = result.map(|(_, span)| span);
        if S::DISCARD_KEEPS_PLACES {
            assert_eq!(granted, expected, "{request:?} outside of {closed:?}");
        } else {
            assert_eq!(granted.err(), expected.err(), "{request:?} outside of {closed:?}");
        }
        let mut model = self.model.clone();
        if let Ok((key, Span { region, offset, size })) = result {
            assert_ne!(region, closed, "{request:?}: it is closed");
            assert_eq!(offset % request.alignment.get(), 0, "{request:?}: {offset} is not aligned");
            let (asked, tag) = (request.size, request.tag);
            model.insert(Live { key, twin_key: key, region, offset, size, asked, tag });
        }
        model.compare(&copy);
        self.see("outside", if result.is_ok() { "granted" } else { "refused" });
    }

    fn allocate(&mut self, request: &Request) {
        // A request for 0 units fails like a request for one unit that has no place.
        let not_empty = Request { size: request.size.max(1), ..*request };
        let expected = match self.rules.expect(&self.model, &not_empty) {
            Expect::Refuse(error) => Expect::Refuse(error),
            _ if request.size == 0 => Expect::Refuse(AllocateError::NoSpace),
            expected => expected,
        };
        let result = self.unchanged_on_error(|engine| engine.allocate(request));
        let twin = allocate_fast(&mut self.twin, request);
        assert_eq!(result.map(|(_, span)| span), twin.map(|(_, span)| span), "{request:?}: the twin differs");
        let what = match (result, request.upper) {
            (Ok(_), false) => "granted",
            (Ok(_), true) => "upper granted",
            (Err(AllocateError::NoSpace), false) => "NoSpace",
            (Err(AllocateError::NoSpace), true) => "upper NoSpace",
            (Err(AllocateError::UpperInRing), _) => "UpperInRing",
            (Err(_), _) => "UpperUnsupported",
        };
        self.see(self.rules.situation(), what);
        let (key, span) = match (result, expected) {
            (Err(error), Expect::Refuse(expected)) => {
                assert_eq!(error, expected, "{request:?}");
                return;
            }
            (Err(AllocateError::NoSpace), Expect::Either) => {
                assert!(!S::has_room(&self.engine, &self.model, request), "{request:?}: there is room");
                return;
            }
            (Ok(granted), Expect::Either | Expect::Somewhere) => granted,
            (Ok((key, span)), Expect::At(region, offset)) => {
                assert_eq!((span.region, span.offset), (region, offset), "{request:?}");
                (key, span)
            }
            (result, expected) => panic!("{request:?}: {result:?}, expected {expected:?}"),
        };
        assert_eq!(span.offset % request.alignment.get(), 0, "{request:?}: {span:?} is not aligned");
        assert_eq!(span.size, S::granted(&self.setup, &self.model, request), "{request:?}: {span:?}");
        self.rules.check(&self.model, request, span);
        self.model.insert(Live {
            key,
            twin_key: twin.expect("as the engine").0,
            region: span.region,
            offset: span.offset,
            size: span.size,
            asked: request.size,
            tag: Tag(request.tag.0 & Tag::MASK),
        });
        self.rules.allocated(span, request.upper);
    }

    /// The gaps: region, offset, size, and the key of the chunk before.
    fn gaps_behind(&self) -> Vec<(RegionId, u64, u64, Option<Key>)> {
        let mut gaps = Vec::new();
        for (id, region) in self.model.present() {
            for (start, size) in region.gaps() {
                let before = region.used.range(..start).next_back().map(|(_, live)| live.key);
                gaps.push((id, start, size, before));
            }
        }
        gaps
    }

    fn allocate_at(&mut self, gap: u8, (skipped, part, plus): (u8, u8, i8), behind: i8, tag: Tag) {
        let gaps = self.gaps_behind();
        let Some(&(region, start, have, before)) = gaps.get(gap as usize % gaps.len().max(1)) else { return };
        let of = |units: u64, part: u8| (u128::from(units) * u128::from(part) / 255) as u64;
        let offset = start + of(have - 1, skipped);
        let size = of(start + have - offset, part).saturating_add_signed(i64::from(plus));
        // The key before another gap, if `behind` is not 0.
        let (_, _, _, key) = gaps[(gap as usize + behind as usize) % gaps.len()];
        let mut at = At { before: key, region, offset, size, tag };
        S::tidy(&mut self.engine);
        S::tidy(&mut self.twin);
        let places = S::places(&self.engine, region);
        let holds = |place: &&ChunkInfo| {
            let end = u128::from(offset) + u128::from(size);
            place.used.is_none()
                && place.offset <= offset
                && end <= u128::from(place.offset) + u128::from(place.size)
        };
        let fits = size != 0 && places.iter().any(|place| holds(&place));
        let before_engine = format!("{:?}", self.engine);
        let Some(result) = S::allocate_at(&mut self.engine, &at) else { return };
        let is_region = have == self.model.region(region).capacity;
        self.see(
            "at",
            match result {
                Some(_) if is_region => "in an empty region",
                Some(_) => "granted",
                None if key != before => "not behind that",
                None => "refused",
            },
        );
        assert_eq!(result.is_some(), fits && key == before, "{at:?} in {places:?}");
        if key.is_some() {
            let twin = self.model.live.iter().find(|live| Some(live.key) == key);
            at.before = twin.map(|live| live.twin_key);
        }
        let twin = S::allocate_at(&mut self.twin, &at).expect("as the engine");
        assert_eq!(result.is_some(), twin.is_some(), "{at:?}: the twin differs");
        let (Some(key), Some(twin_key)) = (result, twin) else {
            assert_eq!(before_engine, format!("{:?}", self.engine), "failure changed something");
            return;
        };
        let tag = Tag(tag.0 & Tag::MASK);
        self.model.insert(Live { key, twin_key, region, offset, size, asked: size, tag });
        self.rules.allocated(Span { region, offset, size }, false);
    }

    fn free(&mut self, pick: Pick) {
        let live = &self.model.live;
        let (at, count) = match pick {
            _ if live.is_empty() => return,
            Pick::Oldest => (0, 1),
            Pick::Newest => (live.len() - 1, 1),
            Pick::Any(any) => (any as usize % live.len(), 1),
            Pick::Many(count) => (0, live.len().min(count as usize)),
        };
        for _ in 0..count {
            let key = self.model.live[at].key;
            let live = self.model.remove(key);
            let region_empty = self.model.region(live.region).used.is_empty();
            let span = Span { region: live.region, offset: live.offset, size: live.size };
            let expected = Ok(Freed { span, region_empty });
            assert_eq!(self.engine.free(key), expected, "{live:?}");
            let taken = Playable::take_back(&mut self.twin, live.twin_key);
            assert_eq!(taken, Some((live.region, region_empty)), "{live:?} of the twin");
            self.rules.freed(span);
        }
    }

    fn bad_key(&mut self, kind: BadKind) {
        let Model { live, freed, .. } = &self.model;
        let key = match kind {
            BadKind::Freed(pick) => freed.get(pick as usize % freed.len().max(1)).map(|(key, _)| *key),
            BadKind::OfTwin(pick) => {
                let keys: Vec<Key> = live
                    .iter()
                    .map(|live| live.twin_key)
                    .chain(freed.iter().map(|(_, twin)| *twin))
                    .collect();
                keys.get(pick as usize % keys.len().max(1)).copied()
            }
            BadKind::Bits(bits) => NonZeroU64::new(bits).map(Key),
            BadKind::Flipped { key, bit } => live
                .get(key as usize % live.len().max(1))
                .and_then(|live| NonZeroU64::new(live.key.0.get() ^ 1 << bit))
                .map(Key),
        };
        let Some(key) = key else { return };
        if live.iter().any(|live| live.key == key) {
            // Random bits may form a live key. A freed key, or a key of the twin, is never live.
            assert!(matches!(kind, BadKind::Bits(_) | BadKind::Flipped { .. }), "{kind:?}: {key:?} is live");
            return;
        }
        assert_eq!(self.engine.span(key), Err(BadKey), "{key:?}");
        assert_eq!(self.engine.tag(key), Err(BadKey), "{key:?}");
        let result = self.unchanged_on_error(|engine| engine.free(key));
        assert_eq!(result, Err(BadKey), "{key:?}");
        self.see(
            "bad key",
            match kind {
                BadKind::Freed(_) => "freed",
                BadKind::OfTwin(_) => "of the twin",
                BadKind::Bits(_) => "bits",
                BadKind::Flipped { .. } => "flipped",
            },
        );
    }

    /// Calls the engine. On error, asserts that its state did not change.
    fn unchanged_on_error<T, E>(
        &mut self,
        call: impl FnOnce(&mut S::Engine) -> Result<T, E>,
    ) -> Result<T, E> {
        let before = self.engine.clone();
        let result = call(&mut self.engine);
        if result.is_err() {
            assert_eq!(format!("{before:?}"), format!("{:?}", self.engine), "failure changed something");
        }
        result
    }

    fn compare(&self) {
        self.model.compare(&self.engine);
        for (id, _) in self.model.present().filter(|_| S::JOINS_ALL) {
            let mut after_free = false;
            self.engine.walk(id, &mut |chunk| {
                let is_free = chunk.used.is_none();
                assert!(!(after_free && is_free), "{id:?}: two free chunks beside one another");
                after_free = is_free;
            });
        }
        self.largest_free();
    }

    fn largest_free(&self) {
        let largest = self.engine.largest_free();
        let mut copy = self.engine.clone();
        assert_eq!(
            copy.allocate(&Request::new(largest + 1, Alignment::ONE)).err(),
            Some(AllocateError::NoSpace),
            "largest_free"
        );
        if largest != 0 {
            let (_, span) =
                copy.allocate(&Request::new(largest, Alignment::ONE)).expect("largest_free promises it");
            assert_eq!(span.size, largest, "largest_free");
        }
    }

    /// Frees everything, and asserts that the engine is as good as new.
    fn finish(mut self) {
        while let Some(live) = self.model.live.last() {
            let key = live.key;
            self.model.remove(key);
            assert!(self.engine.free(key).is_ok());
        }
        let largest = self.model.present().map(|(_, region)| S::largest(&self.setup, region.capacity)).max();
        assert_eq!(self.engine.largest_free(), largest.unwrap_or(0), "something stays lost");
        let ids: Vec<RegionId> = self.model.present().map(|(id, _)| id).collect();
        for id in ids {
            assert_eq!(self.engine.remove_region(id), Ok(()));
            self.engine.validate();
        }
        assert_eq!(self.engine.usage(), sublet_engines::Usage::default());
    }
}

/// Engines that the suite can run.
pub(crate) trait Playable: RangeMetadata + Clone {
    /// The fast path for requests without a strategy: the key, the region and the offset. `None` if it declines.
    fn try_allocate(&mut self, _request: &Request) -> Option<(Key, RegionId, u64)> {
        None
    }

    /// The shorter `free`: the region, and true if it is empty now.
    fn take_back(&mut self, key: Key) -> Option<(RegionId, bool)> {
        self.free(key).ok().map(|freed| (freed.span.region, freed.region_empty))
    }
}

impl Playable for Buddy {}

/// For engines that have a fast path.
macro_rules! fast_path {
    ($($engine:ident),*) => { $(
        impl Playable for $engine {
            fn try_allocate(&mut self, request: &Request) -> Option<(Key, RegionId, u64)> {
                $engine::try_allocate(self, request.size, request.alignment, request.tag)
            }

            fn take_back(&mut self, key: Key) -> Option<(RegionId, bool)> {
                $engine::take_back(self, key)
            }
        }
    )* };
}

fast_path!(Linear, Tlsf);

/// Allocates through the fast path if it serves the request.
fn allocate_fast<E: Playable>(engine: &mut E, request: &Request) -> Result<(Key, Span), AllocateError> {
    let is_usual = request.strategy == Strategy::Balanced && !request.upper;
    let granted = is_usual.then(|| Playable::try_allocate(engine, request)).flatten();
    let Some((key, region, offset)) = granted else { return engine.allocate(request) };
    let span = engine.span(key).expect("a live key");
    assert_eq!((span.region, span.offset), (region, offset), "{request:?}");
    assert_eq!(engine.tag(key), Ok(Tag(request.tag.0 & Tag::MASK)), "{request:?}");
    Ok((key, span))
}
