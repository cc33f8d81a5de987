//! The engines, and for each the rules of where it must, may and must not allocate, written down a second time: from
//! the documentation, without the data structures of the engine.

use sublet::metadata::{AllocateError, Buddy, Linear, RegionId, Regions, Request, Span, Strategy, Tlsf};

use crate::model::Model;
use crate::play::Playable;
use crate::program::Setup;

/// An engine under test.
pub(crate) trait Subject {
    type Engine: Playable;
    type Rules: Rules;
    /// Two free chunks never touch.
    const JOINS_ALL: bool;
    /// Situations and what must have happened in them, in some program.
    const SEEN: &'static [(&'static str, &'static str)];

    fn engine(setup: &Setup) -> Self::Engine;
    /// How many regions there may be, besides the limit on the sum of their capacities.
    fn max_regions(setup: &Setup) -> u64;
    /// The size of a granted span.
    fn granted(_setup: &Setup, request: &Request) -> u64 {
        request.size
    }
    /// The largest allocation in an empty region.
    fn largest(_setup: &Setup, capacity: u64) -> u64 {
        capacity
    }
}

/// What must come of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expect {
    At(RegionId, u64),
    Somewhere,
    /// Somewhere, or [`AllocateError::NoSpace`].
    Either,
    Refuse(AllocateError),
}

/// Where an engine allocates. Told everything that happens.
pub(crate) trait Rules {
    fn new(setup: &Setup) -> Self;
    fn expect(&self, model: &Model, request: &Request) -> Expect;
    /// The state of the engine in a word, to see what was tested.
    fn situation(&self) -> &'static str {
        "any"
    }
    /// What there is to say against a span that is free and aligned.
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
    ];

    fn engine(setup: &Setup) -> Linear {
        Linear::new(setup.max_capacity, Regions::Many)
    }

    fn max_regions(_: &Setup) -> u64 {
        65_535
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

/// Everything that ever happened in a region since it was last reset, live or not, in order.
#[derive(Clone, Default)]
struct History {
    capacity: u64,
    events: Vec<Event>,
}

impl History {
    /// The oldest and the newest live allocation of a side.
    fn ends(&self, upper: bool) -> Option<(Event, Event)> {
        let mut live = self.events.iter().filter(|event| event.upper == upper && event.live);
        let first = *live.next()?;
        Some((first, live.next_back().copied().unwrap_or(first)))
    }

    /// Where the upper side ends, and whether there is one.
    fn upper(&self) -> Option<u64> {
        self.ends(true).map(|(_, newest)| newest.offset)
    }

    fn is_ring(&self) -> bool {
        self.ends(false).is_some_and(|(oldest, newest)| newest.offset < oldest.offset)
    }

    /// The place on the lower side for a request, if there is one.
    fn lower_place(&self, request: &Request, may_wrap: bool) -> Option<u64> {
        let fits = |from: u64, to: u64| {
            let from = u128::from(from).next_multiple_of(u128::from(request.alignment));
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

    /// The place on the upper side: tried from the top down would take too long, so this is a formula after all.
    fn upper_place(&self, request: &Request) -> Option<u64> {
        let top = self.upper().unwrap_or(self.capacity);
        let bottom = self.ends(false).map_or(0, |(_, newest)| newest.offset + newest.size);
        let start = top.checked_sub(request.size)?;
        let offset = start - start % request.alignment;
        (offset >= bottom).then_some(offset)
    }
}

pub(crate) struct LinearRules<const MANY: bool> {
    histories: Vec<History>,
    current: Option<usize>,
}

impl<const MANY: bool> Rules for LinearRules<MANY> {
    fn new(_: &Setup) -> Self {
        Self { histories: Vec::new(), current: None }
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
        if let Some(current) = self.current {
            if let Some(offset) = self.histories[current].lower_place(request, false) {
                return at(current, offset);
            }
        }
        let empty = |history: &History| history.ends(false).is_none() && history.capacity >= request.size;
        self.histories
            .iter()
            .position(empty)
            .map_or(Expect::Refuse(AllocateError::NoSpace), |region| at(region, 0))
    }

    fn situation(&self) -> &'static str {
        let current = if MANY { self.current } else { Some(0) };
        let Some(region) = current.and_then(|current| self.histories.get(current)) else {
            return "nothing current";
        };
        match (region.ends(false), region.ends(true)) {
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
        self.current = Some(region);
    }

    fn freed(&mut self, span: Span) {
        let events = &mut self.histories[span.region.0 as usize].events;
        let event = events.iter_mut().find(|event| event.live && event.offset == span.offset);
        event.expect("an allocation").live = false;
    }

    fn reset(&mut self, region: RegionId) {
        self.histories[region.0 as usize].events.clear();
    }

    fn added(&mut self, region: RegionId, capacity: u64) {
        let region = region.0 as usize;
        self.histories.resize(self.histories.len().max(region + 1), History::default());
        self.histories[region].capacity = capacity;
    }

    fn removed(&mut self, region: RegionId) {
        let region = region.0 as usize;
        self.histories[region] = History::default();
        if self.current == Some(region) {
            self.current = None;
        }
    }
}

// ---- Buddy ----

pub(crate) struct BuddySubject;

impl Subject for BuddySubject {
    type Engine = Buddy;
    type Rules = BuddyRules;
    const JOINS_ALL: bool = false;
    const SEEN: &'static [(&'static str, &'static str)] =
        &[("any", "granted"), ("any", "NoSpace"), ("any", "UpperUnsupported")];

    fn engine(setup: &Setup) -> Buddy {
        Buddy::new(setup.max_capacity, setup.smallest)
    }

    fn max_regions(setup: &Setup) -> u64 {
        regions_in_address_space(setup)
    }

    fn granted(setup: &Setup, request: &Request) -> u64 {
        BuddyRules::new(setup).size(request) as u64
    }

    fn largest(setup: &Setup, capacity: u64) -> u64 {
        let powers = (0..64).map(|order| 1_u64 << order);
        powers.filter(|&size| size <= capacity && size >= setup.smallest).max().unwrap_or(0)
    }
}

/// Engines that count addresses over all regions give each as many as the largest may need.
fn regions_in_address_space(setup: &Setup) -> u64 {
    let each = u128::from(setup.max_capacity.next_power_of_two());
    u64::try_from((1_u128 << 64) / each).unwrap_or(u64::MAX)
}

pub(crate) struct BuddyRules {
    smallest: u64,
}

impl BuddyRules {
    fn size(&self, request: &Request) -> u128 {
        let least = request.size.max(request.alignment).max(self.smallest);
        u128::from(least).next_power_of_two()
    }

    /// The sizes of the free chunks that there must be when all buddies are joined, with their places: each gap, inside
    /// each piece, is cut into the largest aligned powers of two.
    fn free(model: &Model) -> impl Iterator<Item = (RegionId, u64, u128)> {
        model.present().flat_map(|(id, region)| {
            let mut free = Vec::new();
            for (start, size) in region.gaps() {
                let end = u128::from(start) + u128::from(size);
                let mut offset = u128::from(start);
                while offset < end {
                    // The largest that starts here, ends in the gap, and does not cross the end of a piece: pieces are
                    // the set bits of the capacity, so every offset in one is below the next end of that size.
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
        let size = self.size(request);
        if Self::free(model).any(|(_, _, free)| free >= size) {
            Expect::Somewhere
        } else {
            Expect::Refuse(AllocateError::NoSpace)
        }
    }

    fn check(&self, model: &Model, request: &Request, span: Span) {
        let size = self.size(request);
        let tightest = Self::free(model).map(|(.., free)| free).filter(|&free| free >= size).min();
        let taken = Self::free(model)
            .find(|&(region, offset, free)| {
                region == span.region && offset <= span.offset && u128::from(span.offset - offset) < free
            })
            .map(|(.., free)| free);
        assert_eq!(taken, tightest, "{request:?}: {span:?} is not in the smallest chunk that fits");
    }
}

// ---- Tlsf ----

pub(crate) struct TlsfSubject;

impl Subject for TlsfSubject {
    type Engine = Tlsf;
    type Rules = TlsfRules;
    const JOINS_ALL: bool = true;
    const SEEN: &'static [(&'static str, &'static str)] =
        &[("any", "granted"), ("any", "NoSpace"), ("any", "UpperUnsupported")];

    fn engine(setup: &Setup) -> Tlsf {
        Tlsf::new(setup.max_capacity)
    }

    fn max_regions(setup: &Setup) -> u64 {
        regions_in_address_space(setup)
    }
}

pub(crate) struct TlsfRules {
    /// Addresses are as aligned as offsets up to this alignment.
    addresses: u128,
}

/// Every search of the engine looks at so many chunks at least, so that with no more free ones it misses none.
const ALL_LOOKS: usize = 32;
/// The same for the comparison of sizes.
const COMPARED: usize = 8;

/// A gap that a request fits into.
#[derive(Clone, Copy)]
struct Fit {
    region: RegionId,
    /// Where the request would go.
    offset: u64,
    /// Of the gap.
    start: u64,
    size: u64,
    /// The gap is all of its region.
    is_region: bool,
}

impl TlsfRules {
    fn gaps(model: &Model) -> usize {
        model.present().map(|(_, region)| region.gaps().len()).sum()
    }

    /// All gaps that the request fits into, the lowest first.
    fn fits(model: &Model, request: &Request) -> Vec<Fit> {
        let mut fits = Vec::new();
        for (id, region) in model.present() {
            for (start, size) in region.gaps() {
                let offset = u128::from(start).next_multiple_of(u128::from(request.alignment));
                if offset + u128::from(request.size) <= u128::from(start) + u128::from(size) {
                    let is_region = size == region.capacity;
                    fits.push(Fit { region: id, offset: offset as u64, start, size, is_region });
                }
            }
        }
        fits
    }

    /// Whether the lowest place is to be taken: if that is asked for, or if only the starts of regions will do.
    fn is_lowest(&self, model: &Model, request: &Request) -> bool {
        u128::from(request.alignment) > self.addresses
            || (request.strategy == Strategy::MinOffset && Self::gaps(model) <= ALL_LOOKS)
    }

    /// What is sure to be found, however many chunks there are: the size and what alignment can cost, rounded up to the
    /// next of 64 sizes to a power of two.
    fn is_sure(request: &Request, fit: &Fit) -> bool {
        let most = u128::from(request.size) + u128::from(request.alignment) - 1;
        let step = (1_u128 << most.ilog2()) / 64;
        u128::from(fit.size) >= most.next_multiple_of(step.max(1)) || fit.is_region
    }
}

impl Rules for TlsfRules {
    fn new(setup: &Setup) -> Self {
        Self { addresses: u128::from(setup.max_capacity).next_power_of_two() }
    }

    fn expect(&self, model: &Model, request: &Request) -> Expect {
        if request.upper {
            return Expect::Refuse(AllocateError::UpperUnsupported);
        }
        let fits = Self::fits(model, request);
        let few = Self::gaps(model) <= ALL_LOOKS;
        match fits.first() {
            None => Expect::Refuse(AllocateError::NoSpace),
            Some(lowest) if few && request.strategy == Strategy::MinOffset => {
                Expect::At(lowest.region, lowest.offset)
            }
            Some(_) if few || fits.iter().any(|fit| Self::is_sure(request, fit)) => Expect::Somewhere,
            Some(_) => Expect::Either,
        }
    }

    fn situation(&self) -> &'static str {
        "any"
    }

    fn check(&self, model: &Model, request: &Request, span: Span) {
        let fits = Self::fits(model, request);
        let in_gap = |fit: &&Fit| {
            fit.region == span.region && fit.start <= span.offset && span.offset - fit.start < fit.size
        };
        let taken = fits.iter().find(in_gap).expect("a gap that fits");
        assert_eq!(
            span.offset, taken.offset,
            "{request:?}: {span:?} is not as low as it can be in {}",
            taken.start
        );
        if self.is_lowest(model, request) || Self::gaps(model) > ALL_LOOKS {
            return;
        }
        let in_use: Vec<&Fit> = fits.iter().filter(|fit| !fit.is_region).collect();
        assert!(!taken.is_region || in_use.is_empty(), "{request:?}: {span:?} breaks into an empty region");
        if request.strategy == Strategy::MinMemory && request.alignment == 1 && Self::gaps(model) <= COMPARED
        {
            let kind = fits.iter().filter(|fit| fit.is_region == taken.is_region);
            let smallest = kind.map(|fit| fit.size).min();
            assert_eq!(
                Some(taken.size),
                smallest,
                "{request:?}: {span:?} is not in the smallest chunk that fits"
            );
        }
    }
}
