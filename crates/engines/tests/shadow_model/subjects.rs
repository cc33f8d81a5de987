//! The engines, and the placement rules of each. The rules follow the documentation, and do not use the engine's data
//! structures.

use sublet_engines::{
    AllocateError, Buddy, ChunkInfo, Key, Linear, RegionId, Regions, Request, Span, Strategy, Tag, Tlsf,
};

use crate::model::Model;
use crate::play::Playable;
use crate::program::Setup;

/// An engine under test.
pub(crate) trait Subject {
    type Engine: Playable;
    type Rules: Rules;
    /// True if two free chunks are never neighbours.
    const JOINS_ALL: bool;
    /// Grants go to the same places whether a region is closed or discarded.
    const DISCARD_KEEPS_PLACES: bool = true;
    /// Situations, and outcomes that some program must reach in them.
    const SEEN: &'static [(&'static str, &'static str)];

    fn engine(setup: &Setup) -> Self::Engine;
    /// The maximum number of regions, apart from the limit on the sum of their capacities.
    fn max_regions(setup: &Setup) -> u64;
    /// The size of a granted span. The model shows the state before the request.
    fn granted(_setup: &Setup, _model: &Model, request: &Request) -> u64 {
        request.size
    }
    /// Allocates at a place that the caller chose. `None` if the engine does not support this.
    fn allocate_at(_engine: &mut Self::Engine, _at: &At) -> Option<Option<Key>> {
        None
    }
    /// The chunks of a region, for explicit placement.
    fn places(_engine: &Self::Engine, _region: RegionId) -> Vec<ChunkInfo> {
        Vec::new()
    }
    /// Frees memory that the engine keeps for itself and that interferes with explicit placement.
    fn tidy(_engine: &mut Self::Engine) {}
    /// Returns true if the engine must grant a request for which the rules expect [`Expect::Either`]. The model does
    /// not know which free space an engine keeps for itself.
    fn has_room(_engine: &Self::Engine, _model: &Model, _request: &Request) -> bool {
        false
    }
    /// The largest allocation in an empty region.
    fn largest(_setup: &Setup, capacity: u64) -> u64 {
        capacity
    }
}

/// A place that the caller chose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) before: Option<Key>,
    pub(crate) region: RegionId,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) tag: Tag,
}

/// The expected result of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expect {
    At(RegionId, u64),
    Somewhere,
    /// Any place, or [`AllocateError::NoSpace`].
    Either,
    Refuse(AllocateError),
}

/// The placement rules of an engine. They track every operation.
pub(crate) trait Rules {
    fn new(setup: &Setup) -> Self;
    fn expect(&self, model: &Model, request: &Request) -> Expect;
    /// A name for the state of the engine, to record what the programs reach.
    fn situation(&self) -> &'static str {
        "any"
    }
    /// Panics if a span that is free and aligned breaks a rule.
    fn check(&self, _model: &Model, _request: &Request, _span: Span) {}
    fn allocated(&mut self, _span: Span, _upper: bool) {}
    fn freed(&mut self, _span: Span) {}
    fn reset(&mut self, _region: RegionId) {}
    fn added(&mut self, _region: RegionId, _capacity: u64) {}
    fn removed(&mut self, _region: RegionId) {}
}

// ---- Linear ----

pub(crate) struct LinearSingle;
pub(crate) struct LinearMany;

impl Subject for LinearSingle {
    type Engine = Linear;
    type Rules = LinearRules<false>;
    const JOINS_ALL: bool = true;
    const SEEN: &'static [(&'static str, &'static str)] = &[
        ("empty", "granted"),
        ("empty", "NoSpace"),
        ("empty", "upper granted"),
        ("empty", "upper NoSpace"),
        ("stack", "granted"),
        ("stack", "NoSpace"),
        ("stack", "upper granted"),
        ("stack", "upper NoSpace"),
        ("double stack", "granted"),
        ("double stack", "NoSpace"),
        ("double stack", "upper granted"),
        ("double stack", "upper NoSpace"),
        ("upper stack", "granted"),
        ("upper stack", "upper granted"),
        ("ring", "granted"),
        ("ring", "NoSpace"),
        ("ring", "UpperInRing"),
    ];

    fn engine(setup: &Setup) -> Linear {
        Linear::new(setup.max_capacity, Regions::Single)
    }

    fn max_regions(_: &Setup) -> u64 {
        1
    }
}

impl Subject for LinearMany {
    type Engine = Linear;
    type Rules = LinearRules<true>;
    const JOINS_ALL: bool = true;
    const SEEN: &'static [(&'static str, &'static str)] = &[
        ("nothing current", "granted"),
        ("nothing current", "NoSpace"),
        ("empty", "granted"),
        ("empty", "NoSpace"),
        ("stack", "granted"),
        ("stack", "NoSpace"),
        ("stack", "UpperUnsupported"),
        ("two regions", "granted"),
        ("two regions", "NoSpace"),
        ("many regions", "granted"),
        ("back in a region", "granted"),
        ("back in a region", "NoSpace"),
        ("outside", "granted"),
    ];

    fn engine(setup: &Setup) -> Linear {
        Linear::new(setup.max_capacity, Regions::Many)
    }

    fn max_regions(_: &Setup) -> u64 {
        u64::from(u32::MAX)
    }
}

/// One allocation of a region's history.
#[derive(Clone, Copy)]
struct Event {
    offset: u64,
    size: u64,
    upper: bool,
    live: bool,
}

/// All allocations in a region since its last reset, live or not, in order.
#[derive(Clone, Default)]
struct History {
    capacity: u64,
    events: Vec<Event>,
    /// The number of the event that last opened it: it was added, was emptied, or was left empty for another region.
    opened: usize,
}

impl History {
    fn is_empty(&self) -> bool {
        self.events.iter().all(|event| !event.live)
    }

    /// The oldest and the newest live allocation of a side.
    fn ends(&self, upper: bool) -> Option<(Event, Event)> {
        let mut live = self.events.iter().filter(|event| event.upper == upper && event.live);
        let first = *live.next()?;
        Some((first, live.next_back().copied().unwrap_or(first)))
    }

    /// The lower end of the upper side, if there is one.
    fn upper(&self) -> Option<u64> {
        self.ends(true).map(|(_, newest)| newest.offset)
    }

    fn is_ring(&self) -> bool {
        self.ends(false).is_some_and(|(oldest, newest)| newest.offset < oldest.offset)
    }

    /// The place on the lower side for a request, if there is one.
    fn lower_place(&self, request: &Request, may_wrap: bool) -> Option<u64> {
        let fits = |from: u64, to: u64| {
            let from = u128::from(from).next_multiple_of(u128::from(request.alignment.get()));
            (from + u128::from(request.size) <= u128::from(to)).then_some(from as u64)
        };
        let limit = self.upper().unwrap_or(self.capacity);
        match self.ends(false) {
            None => fits(0, limit),
            Some((oldest, newest)) if newest.offset < oldest.offset => {
                fits(newest.offset + newest.size, oldest.offset)
            }
            Some((oldest, newest)) => fits(newest.offset + newest.size, limit)
                .or_else(|| if may_wrap && self.upper().is_none() { fits(0, oldest.offset) } else { None }),
        }
    }

    /// The place on the upper side. A formula, because trying every offset from the top would take too long.
    fn upper_place(&self, request: &Request) -> Option<u64> {
        let top = self.upper().unwrap_or(self.capacity);
        let bottom = self.ends(false).map_or(0, |(_, newest)| newest.offset + newest.size);
        let start = top.checked_sub(request.size)?;
        let offset = start - start % request.alignment.get();
        (offset >= bottom).then_some(offset)
    }
}

pub(crate) struct LinearRules<const MANY: bool> {
    histories: Vec<History>,
    /// The regions with allocations, in the order of their first one. The last one is current. An emptied region stays
    /// if it is the only one.
    stack: Vec<usize>,
    openings: usize,
    /// True if the current region became current again and has granted nothing since.
    is_back: bool,
}

impl<const MANY: bool> LinearRules<MANY> {
    fn open(&mut self, region: usize) {
        self.openings += 1;
        self.histories[region].opened = self.openings;
    }

    /// Removes an emptied region from the stack, unless it is the only one there.
    fn emptied(&mut self, region: usize) {
        if self.stack != [region] {
            self.is_back = self.stack.last() == Some(&region);
            self.stack.retain(|&other| other != region);
            self.open(region);
        }
    }
}

impl<const MANY: bool> Rules for LinearRules<MANY> {
    fn new(_: &Setup) -> Self {
        Self { histories: Vec::new(), stack: Vec::new(), openings: 0, is_back: false }
    }

    fn expect(&self, _: &Model, request: &Request) -> Expect {
        let at = |region: usize, offset| Expect::At(RegionId(region as u32), offset);
        if request.upper && MANY {
            return Expect::Refuse(AllocateError::UpperUnsupported);
        }
        if !MANY {
            let Some(region) = self.histories.first() else {
                return Expect::Refuse(AllocateError::NoSpace);
            };
            if request.upper && region.is_ring() {
                return Expect::Refuse(AllocateError::UpperInRing);
            }
            let place =
                if request.upper { region.upper_place(request) } else { region.lower_place(request, true) };
            return place.map_or(Expect::Refuse(AllocateError::NoSpace), |offset| at(0, offset));
        }
        if let Some(&current) = self.stack.last() {
            if let Some(offset) = self.histories[current].lower_place(request, false) {
                return at(current, offset);
            }
        }
        // The smallest region; among equals, the one that was opened last.
        let fits = |history: &History| {
            history.is_empty() && history.capacity != 0 && history.capacity >= request.size
        };
        let open = self.histories.iter().enumerate().filter(|(_, history)| fits(history));
        let best = open.min_by_key(|(_, history)| (history.capacity, usize::MAX - history.opened));
        best.map_or(Expect::Refuse(AllocateError::NoSpace), |(region, _)| at(region, 0))
    }

    fn situation(&self) -> &'static str {
        let current = if MANY { self.stack.last().copied() } else { Some(0) };
        let Some(region) = current.and_then(|current| self.histories.get(current)) else {
            return "nothing current";
        };
        match (region.ends(false), region.ends(true)) {
            _ if self.is_back => "back in a region",
            _ if self.stack.len() == 2 => "two regions",
            _ if self.stack.len() > 2 => "many regions",
            _ if region.is_ring() => "ring",
            (None, None) => "empty",
            (Some(_), None) => "stack",
            (None, Some(_)) => "upper stack",
            (Some(_), Some(_)) => "double stack",
        }
    }

    fn allocated(&mut self, Span { region, offset, size }: Span, upper: bool) {
        let region = region.0 as usize;
        self.histories[region].events.push(Event { offset, size, upper, live: true });
        self.is_back = false;
        if !MANY || self.stack.last() == Some(&region) {
            return;
        }
        if self.stack.last().is_some_and(|&left| self.histories[left].is_empty()) {
            let left = self.stack.remove(0);
            self.open(left);
        }
        self.stack.push(region);
    }

    fn freed(&mut self, span: Span) {
        let region = span.region.0 as usize;
        let mut events = self.histories[region].events.iter_mut();
        events.find(|event| event.live && event.offset == span.offset).expect("an allocation").live = false;
        if self.histories[region].is_empty() {
            self.emptied(region);
        }
    }

    fn reset(&mut self, region: RegionId) {
        let region = region.0 as usize;
        if !self.histories[region].is_empty() {
            self.emptied(region);
        }
        self.histories[region].events.clear();
    }

    fn added(&mut self, region: RegionId, capacity: u64) {
        let region = region.0 as usize;
        self.histories.resize(self.histories.len().max(region + 1), History::default());
        self.histories[region].capacity = capacity;
        self.open(region);
    }

    fn removed(&mut self, region: RegionId) {
        let region = region.0 as usize;
        self.histories[region] = History::default();
        self.stack.retain(|&current| current != region);
    }
}

// ---- Buddy ----

pub(crate) struct BuddySubject;

impl Subject for BuddySubject {
    type Engine = Buddy;
    type Rules = BuddyRules;
    const JOINS_ALL: bool = false;
    const SEEN: &'static [(&'static str, &'static str)] =
        &[("any", "granted"), ("any", "NoSpace"), ("any", "UpperUnsupported"), ("outside", "granted")];

    fn engine(setup: &Setup) -> Buddy {
        Buddy::new(setup.max_capacity, setup.smallest)
    }

    fn max_regions(setup: &Setup) -> u64 {
        regions_in_address_space(setup)
    }

    fn granted(setup: &Setup, model: &Model, request: &Request) -> u64 {
        BuddyRules::new(setup).size(model, request) as u64
    }

    fn largest(setup: &Setup, capacity: u64) -> u64 {
        let powers = (0..64).map(|order| 1_u64 << order);
        powers.filter(|&size| size <= capacity && size >= setup.smallest).max().unwrap_or(0)
    }
}

/// The maximum number of regions of an engine with one address space: each region occupies the maximum capacity,
/// rounded up to a power of two.
fn regions_in_address_space(setup: &Setup) -> u64 {
    let each = u128::from(setup.max_capacity.next_power_of_two());
    u64::try_from((1_u128 << 64) / each).unwrap_or(u64::MAX)
}

pub(crate) struct BuddyRules {
    smallest: u64,
}

impl BuddyRules {
    /// The size to be granted: at least the alignment, or less at the start of a region if no free chunk is that large.
    fn size(&self, model: &Model, request: &Request) -> u128 {
        let least = u128::from(request.size.max(self.smallest)).next_power_of_two();
        let aligned = least.max(u128::from(request.alignment.get()));
        if Self::free(model).any(|(_, _, free)| free >= aligned) { aligned } else { least }
    }

    /// The free chunks that fit: region, offset and size.
    fn fits(&self, model: &Model, request: &Request) -> Vec<(RegionId, u64, u128)> {
        let size = self.size(model, request);
        let is_aligned = |offset: u64| size >= u128::from(request.alignment.get()) || offset == 0;
        Self::free(model).filter(|&(_, offset, free)| free >= size && is_aligned(offset)).collect()
    }

    /// The expected free chunks: region, offset and size. Merged buddies are the largest aligned powers of two in each
    /// gap of each piece.
    fn free(model: &Model) -> impl Iterator<Item = (RegionId, u64, u128)> {
        model.present().flat_map(|(id, region)| {
            let mut free = Vec::new();
            for (start, size) in region.gaps() {
                let end = u128::from(start) + u128::from(size);
                let mut offset = u128::from(start);
                while offset < end {
                    // The largest power of two that is aligned and ends in the gap. It never crosses the end of a
                    // piece: pieces are the set bits of the capacity, so a piece doubled exceeds the capacity.
                    let mut power: u128 = 1 << 64;
                    while offset % power != 0 || offset + power > end {
                        power /= 2;
                    }
                    free.push((id, offset as u64, power));
                    offset += power;
                }
            }
            free
        })
    }
}

impl Rules for BuddyRules {
    fn new(setup: &Setup) -> Self {
        Self { smallest: setup.smallest }
    }

    fn expect(&self, model: &Model, request: &Request) -> Expect {
        if request.upper {
            return Expect::Refuse(AllocateError::UpperUnsupported);
        }
        let fits = self.fits(model, request);
        // The engine may take any of the smallest chunks. Among the starts of regions it takes the lowest.
        let tightest = fits.iter().map(|fit| fit.2).min();
        match fits.iter().find(|fit| Some(fit.2) == tightest) {
            None => Expect::Refuse(AllocateError::NoSpace),
            Some(&(region, ..)) if self.size(model, request) < u128::from(request.alignment.get()) => {
                Expect::At(region, 0)
            }
            Some(_) => Expect::Somewhere,
        }
    }

    fn check(&self, model: &Model, request: &Request, span: Span) {
        let fits = self.fits(model, request);
        let tightest = fits.iter().map(|&(.., free)| free).min();
        let taken = fits
            .iter()
            .find(|&&(region, offset, free)| {
                region == span.region && offset <= span.offset && u128::from(span.offset - offset) < free
            })
            .map(|&(.., free)| free);
        assert_eq!(taken, tightest, "{request:?}: {span:?} is not in the smallest chunk that fits");
    }
}

// ---- Tlsf ----

pub(crate) type TlsfRounding = TlsfSubject<false>;
pub(crate) type TlsfExact = TlsfSubject<true>;

pub(crate) struct TlsfSubject<const EXACT: bool>;

impl<const EXACT: bool> Subject for TlsfSubject<EXACT> {
    type Engine = Tlsf;
    type Rules = TlsfRules<EXACT>;
    const JOINS_ALL: bool = true;
    const SEEN: &'static [(&'static str, &'static str)] = &[
        ("any", "granted"),
        ("any", "NoSpace"),
        ("any", "UpperUnsupported"),
        ("at", "granted"),
        ("at", "in an empty region"),
        ("at", "refused"),
        ("at", "not behind that"),
        ("outside", "granted"),
    ];

    fn engine(setup: &Setup) -> Tlsf {
        if EXACT { Tlsf::exact(setup.max_capacity) } else { Tlsf::new(setup.max_capacity) }
    }

    fn allocate_at(engine: &mut Tlsf, at: &At) -> Option<Option<Key>> {
        Some(engine.allocate_at(at.before, at.region, at.offset, at.size, at.tag))
    }

    fn places(engine: &Tlsf, region: RegionId) -> Vec<ChunkInfo> {
        let mut places = Vec::new();
        engine.places(region, &mut |place| places.push(place));
        places
    }

    fn max_regions(setup: &Setup) -> u64 {
        regions_in_address_space(setup)
    }
}

pub(crate) struct TlsfRules<const EXACT: bool> {
    /// Up to this alignment, an address is as aligned as its offset.
    addresses: u64,
    /// The most units by which a size is rounded up.
    rounding: u64,
    /// The most slack before a small used chunk.
    slack_before_max: u64,
}

/// The number of candidates that the engine checks before it refuses a request.
const LAST_LOOKS: usize = 1024;
/// Every search checks at least this many chunks. With at most this many free chunks, it misses none.
const ALL_LOOKS: usize = 32;
/// The number of chunks of a list that `MinMemory` compares.
const COMPARED: usize = 8;

/// A gap that a request fits into.
#[derive(Clone, Copy)]
struct Fit {
    region: RegionId,
    /// The lowest possible offset of the request.
    offset: u64,
    /// First unit of the gap.
    start: u64,
    size: u64,
    /// The most slack at the start of the gap.
    slack: u64,
    /// True if the gap contains a free chunk that the request fits, however many units are slack.
    is_sure: bool,
    /// True if the gap is its whole region.
    is_region: bool,
}

impl<const EXACT: bool> TlsfRules<EXACT> {
    fn gaps(model: &Model) -> usize {
        model.present().map(|(_, region)| region.gaps().len()).sum()
    }

    /// The most slack before a used chunk of `size` units, and behind it.
    fn slack(&self, size: u64) -> (u64, u64) {
        let step = ((1_u64 << size.ilog2()) / 64).max(1);
        let behind = 2 * (self.rounding & (step - 1));
        (behind.max(self.slack_before_max.min(size / 8)), behind)
    }

    /// All gaps that the request may fit into, the lowest first.
    fn fits(&self, model: &Model, request: &Request) -> Vec<Fit> {
        let mut fits = Vec::new();
        for (id, region) in model.present() {
            for (start, size) in region.gaps() {
                let end = u128::from(start) + u128::from(size);
                let at = |start: u64| u128::from(start).next_multiple_of(u128::from(request.alignment.get()));
                let is_in = |offset: u128| offset + u128::from(request.size) <= end;
                if !is_in(at(start)) {
                    continue;
                }
                let before = region.used.range(..start).next_back().map(|(_, live)| live.size);
                let behind = region.used.range(start..).next().map(|(_, live)| live.size);
                let slack = before.map_or(0, |size| self.slack(size).1);
                // A gap at the start of a region has no slack.
                let all_slack = before.map_or(0, |_| slack + behind.map_or(0, |size| self.slack(size).0));
                fits.push(Fit {
                    region: id,
                    offset: at(start) as u64,
                    start,
                    size,
                    slack,
                    is_sure: size > all_slack && is_in(at(start + slack)),
                    is_region: size == region.capacity,
                });
            }
        }
        fits
    }

    /// Returns true if the engine must take the lowest place: for `MinOffset`, or if only the starts of regions are
    /// aligned.
    fn is_lowest(&self, model: &Model, request: &Request) -> bool {
        request.alignment.get() > self.addresses
            || (request.strategy == Strategy::MinOffset && Self::gaps(model) <= ALL_LOOKS)
    }

    /// Returns true if the engine finds this gap, however many chunks there are. It then has at least the size plus the
    /// alignment cost, rounded up to one of 64 sizes to a power of two.
    fn is_large(request: &Request, fit: &Fit) -> bool {
        let most = u128::from(request.size) + u128::from(request.alignment.get()) - 1;
        let step = (1_u128 << most.ilog2()) / 64;
        fit.is_sure
            && (u128::from(fit.size - fit.slack) >= most.next_multiple_of(step.max(1)) || fit.is_region)
    }
}

impl<const EXACT: bool> Rules for TlsfRules<EXACT> {
    fn new(setup: &Setup) -> Self {
        let share = if EXACT { 0 } else { setup.max_capacity >> 16 };
        Self {
            addresses: setup.max_capacity.next_power_of_two(),
            rounding: share.checked_ilog2().map_or(0, |log2| (1 << log2) - 1),
            slack_before_max: share / 16,
        }
    }

    fn expect(&self, model: &Model, request: &Request) -> Expect {
        if request.upper {
            return Expect::Refuse(AllocateError::UpperUnsupported);
        }
        let fits = self.fits(model, request);
        let few = Self::gaps(model) <= ALL_LOOKS;
        match fits.first() {
            None => Expect::Refuse(AllocateError::NoSpace),
            Some(lowest)
                if few && request.strategy == Strategy::MinOffset && lowest.is_sure && lowest.slack == 0 =>
            {
                Expect::At(lowest.region, lowest.offset)
            }
            Some(_) if Self::gaps(model) <= LAST_LOOKS && fits.iter().any(|fit| fit.is_sure) => {
                Expect::Somewhere
            }
            Some(_) if fits.iter().any(|fit| Self::is_large(request, fit)) => Expect::Somewhere,
            Some(_) => Expect::Either,
        }
    }

    fn situation(&self) -> &'static str {
        "any"
    }

    fn check(&self, model: &Model, request: &Request, span: Span) {
        let fits = self.fits(model, request);
        let in_gap = |fit: &&Fit| {
            fit.region == span.region && fit.start <= span.offset && span.offset - fit.start < fit.size
        };
        let taken = fits.iter().find(in_gap).expect("a gap that fits");
        let highest =
            u128::from(taken.start + taken.slack).next_multiple_of(u128::from(request.alignment.get()));
        assert!(
            taken.offset <= span.offset && u128::from(span.offset) <= highest,
            "{request:?}: {span:?} is not as low as it can be in {}",
            taken.start
        );
        if self.is_lowest(model, request) || Self::gaps(model) > ALL_LOOKS {
            return;
        }
        let mut in_use = fits.iter().filter(|fit| !fit.is_region && fit.is_sure);
        assert!(
            !taken.is_region || in_use.next().is_none(),
            "{request:?}: {span:?} breaks into an empty region"
        );
        if request.strategy == Strategy::MinMemory
            && request.alignment.get() == 1
            && Self::gaps(model) <= COMPARED
        {
            let kind = fits.iter().filter(|fit| fit.is_region == taken.is_region && fit.is_sure);
            let smallest = kind.map(|fit| fit.size).min().unwrap_or(u64::MAX);
            assert!(
                taken.size.saturating_sub(taken.slack) <= smallest,
                "{request:?}: {span:?} is not in the smallest chunk that fits"
            );
        }
    }
}

// ---- Tlsf with slabs ----

pub(crate) struct TlsfSlabs;

impl Subject for TlsfSlabs {
    type Engine = Tlsf;
    type Rules = SlabRules;
    const JOINS_ALL: bool = true;
    const DISCARD_KEEPS_PLACES: bool = false;
    const SEEN: &'static [(&'static str, &'static str)] = TlsfRounding::SEEN;

    fn engine(setup: &Setup) -> Tlsf {
        Tlsf::with_slabs(setup.max_capacity)
    }

    fn allocate_at(engine: &mut Tlsf, at: &At) -> Option<Option<Key>> {
        TlsfRounding::allocate_at(engine, at)
    }

    fn places(engine: &Tlsf, region: RegionId) -> Vec<ChunkInfo> {
        TlsfRounding::places(engine, region)
    }

    fn max_regions(setup: &Setup) -> u64 {
        regions_in_address_space(setup)
    }

    fn tidy(engine: &mut Tlsf) {
        engine.give_slabs_back();
    }

    /// Returns true if a free chunk fits, and there are few enough that the engine checks each.
    fn has_room(engine: &Tlsf, model: &Model, request: &Request) -> bool {
        let places = model.present().flat_map(|(id, _)| Self::places(engine, id));
        let free: Vec<_> = places.filter(|place| place.used.is_none()).collect();
        let fits = |place: &ChunkInfo| {
            let start = u128::from(place.offset).next_multiple_of(u128::from(request.alignment.get()));
            start + u128::from(request.size) <= u128::from(place.offset) + u128::from(place.size)
        };
        request.size != 0 && free.len() <= LAST_LOOKS && free.iter().any(fits)
    }
}

/// The rules cannot see which gaps are free slots of slabs, which serve few requests. So the result is only certain
/// for a request that fits no gap.
pub(crate) struct SlabRules(TlsfRules<false>);

impl Rules for SlabRules {
    fn new(setup: &Setup) -> Self {
        Self(TlsfRules::new(setup))
    }

    fn expect(&self, model: &Model, request: &Request) -> Expect {
        match self.0.expect(model, request) {
            Expect::Refuse(error) => Expect::Refuse(error),
            _ => Expect::Either,
        }
    }
}
