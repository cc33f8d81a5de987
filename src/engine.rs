//! One of the three engines, chosen when a block, a pool or a vector is created.

use sublet_engines::{
    Alignment, AllocateError, BadKey, Buddy, ChunkInfo, Freed, Key, Linear, Metadata, NotEmpty, RegionError,
    RegionId, Regions, Request, Sizes, Span, Tag, Tlsf, Usage,
};

/// The engine of a pool or a virtual block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
#[doc(alias = "POOL_FLAG_ALGORITHM_LINEAR")]
pub enum Algorithm {
    /// Any sizes, any order of freeing, O(1): see [`Tlsf`].
    #[default]
    Tlsf,
    /// Free-at-once or stack, and in a single block double stack or ring buffer: see [`Linear`].
    Linear,
    /// Powers of two: see [`Buddy`].
    Buddy,
}

impl Algorithm {
    /// All algorithms, in the order of their numbers in traces.
    ///
    /// ```
    /// # use sublet::Algorithm;
    /// assert_eq!(Algorithm::ALL[0], Algorithm::default());
    /// ```
    pub const ALL: [Self; 3] = [Self::Tlsf, Self::Linear, Self::Buddy];

    /// The number of the algorithm in traces: its index in [`Self::ALL`].
    #[cfg(feature = "trace")]
    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::Tlsf => 0,
            Self::Linear => 1,
            Self::Buddy => 2,
        }
    }
}

/// The smallest chunk of a [`Buddy`] in device memory, in bytes. Smaller chunks would save nothing: resources have
/// alignments of 16 and more, and a node of metadata takes 32 bytes.
const BUDDY_BYTES: u64 = 64;

/// The smallest block size, in bytes, for which a [`Tlsf`] uses slabs. Programs choose smaller blocks to reserve little
/// memory. There, free slots of slabs could take the space for the last request.
pub(crate) const LEAST_FOR_SLABS: u64 = 128 << 20;

/// An engine whose algorithm is known at run time. Forwards every call.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one for each vector of blocks, and every call uses it"
)]
// An explicit tag: reading a niche in a field of one of the engines takes four more instructions.
#[repr(u8)]
pub(crate) enum Engine {
    /// See [`Tlsf`].
    Tlsf(Tlsf),
    /// See [`Linear`].
    Linear(Linear),
    /// Grouped in one variant: with four variants the compiler uses a jump table, which would slow every call.
    Other(Other),
}

/// See [`Engine`].
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "see `Engine`, in which the others are larger still")]
pub(crate) enum Other {
    /// See [`Buddy`].
    Buddy(Buddy),
    /// A [`Tlsf`] that is created with the first region; the number is its maximum region capacity. Most memory types
    /// and many pools never have a block, so this saves the memory of its lists.
    Unmade(u64),
}

#[cfg(test)]
std::thread_local! {
    /// The number of calls that this thread made to the complete allocation of an [`Engine`].
    pub(crate) static ENGINE_CALLS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    /// The number of calls that this thread made to [`Engine::try_allocate`].
    pub(crate) static FAST_CALLS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Calls a method of the contained engine. The last argument is the result without regions.
macro_rules! each {
    ($engine:expr, $inner:ident => $call:expr, $unmade:expr) => {
        match $engine {
            Engine::Tlsf($inner) => $call,
            Engine::Linear($inner) => $call,
            Engine::Other(Other::Buddy($inner)) => $call,
            Engine::Other(Other::Unmade(_)) => $unmade,
        }
    };
}

/// The result of a [`Tlsf`] without regions: no space, unless the request is invalid.
fn nothing_fits(request: &Request) -> Result<(), AllocateError> {
    if request.upper { Err(AllocateError::UpperUnsupported) } else { Ok(()) }
}

#[cold]
fn no_region(region: RegionId) -> ! {
    panic!("this engine has no region {}", region.0)
}

impl Engine {
    /// An engine for the blocks of a vector, each of at most `max_region_capacity` bytes. `many` is false for a single
    /// block, which [`Linear`] needs for its ring buffer and double stack.
    ///
    /// # Panics
    /// Panics if `max_region_capacity` is 0 or above 2^63.
    pub(crate) fn new(algorithm: Algorithm, max_region_capacity: u64, many: bool) -> Self {
        let regions = if many { Regions::Many } else { Regions::Single };
        Self::with_smallest(algorithm, max_region_capacity, regions, BUDDY_BYTES)
    }

    /// Like [`Self::new`] for a [`Tlsf`] with many blocks, which is created with the first block.
    #[inline(always)]
    pub(crate) const fn unmade(max_region_capacity: u64) -> Self {
        Self::Other(Other::Unmade(max_region_capacity))
    }

    /// An engine for one block of `capacity` units of anything. A [`Buddy`] divides it down to single units. A [`Tlsf`]
    /// leaves no slack if `capacity` is below [`LEAST_FOR_SLABS`]. Otherwise, call [`Engine::free_slack`] before
    /// refusing a request.
    ///
    /// # Panics
    /// Panics if `capacity` is 0 or above 2^63.
    pub(crate) fn single(algorithm: Algorithm, capacity: u64) -> Self {
        Self::with_smallest(algorithm, capacity, Regions::Single, 1)
    }

    fn with_smallest(
        algorithm: Algorithm,
        max_region_capacity: u64,
        regions: Regions,
        smallest: u64,
    ) -> Self {
        assert!(
            (1..=1 << 63).contains(&max_region_capacity),
            "a region has 1 to 2^63 units, not {max_region_capacity}"
        );
        match algorithm {
            Algorithm::Tlsf if max_region_capacity >= LEAST_FOR_SLABS => {
                Self::Tlsf(Tlsf::with_slabs(max_region_capacity))
            }
            // The owner needs single units, so none may become slack.
            Algorithm::Tlsf if smallest == 1 => Self::Tlsf(Tlsf::exact(max_region_capacity)),
            Algorithm::Tlsf => Self::Tlsf(Tlsf::new(max_region_capacity)),
            Algorithm::Linear => Self::Linear(Linear::new(max_region_capacity, regions)),
            Algorithm::Buddy => Self::Other(Other::Buddy(Buddy::new(max_region_capacity, smallest))),
        }
    }

    /// The smallest capacity of an empty region that fits the request; `u64::MAX` if none does.
    pub(crate) fn least_capacity(&self, request: &Request) -> u64 {
        match self {
            // Offset 0 is a multiple of every alignment.
            Self::Tlsf(_) | Self::Linear(_) | Self::Other(Other::Unmade(_)) => request.size,
            Self::Other(Other::Buddy(buddy)) => buddy.granted(request).unwrap_or(u64::MAX),
        }
    }

    /// Returns true if more than the requested size may be granted.
    #[inline]
    pub(crate) const fn rounds_up(&self) -> bool {
        matches!(self, Self::Other(Other::Buddy(_)))
    }

    /// The fast path, for the balanced strategy and the lower side. Returns the key, the region, and the offset in it.
    /// On `None`, nothing changed, and the caller continues with [`Metadata::allocate`].
    #[inline(always)]
    pub(crate) fn try_allocate(
        &mut self,
        size: u64,
        alignment: Alignment,
        tag: Tag,
    ) -> Option<(Key, RegionId, u64)> {
        #[cfg(test)]
        FAST_CALLS.set(FAST_CALLS.get() + 1);
        match self {
            Self::Tlsf(tlsf) => tlsf.try_allocate(size, alignment, tag),
            Self::Linear(linear) => linear.try_allocate(size, alignment, tag),
            Self::Other(Other::Buddy(buddy)) => {
                let request = Request { tag, ..Request::new(size, alignment) };
                buddy.allocate(&request).ok().map(|(key, span)| (key, span.region, span.offset))
            }
            Self::Other(Other::Unmade(_)) => None,
        }
    }

    /// A faster [`Metadata::free`]. Returns the region, and true if it is empty now, or `None` for a bad key.
    #[inline(always)]
    pub(crate) fn take_back(&mut self, key: Key) -> Option<(RegionId, bool)> {
        match self {
            Self::Tlsf(tlsf) => tlsf.take_back(key),
            Self::Linear(linear) => linear.take_back(key),
            Self::Other(Other::Buddy(buddy)) => {
                buddy.free(key).ok().map(|freed| (freed.span.region, freed.region_empty))
            }
            Self::Other(Other::Unmade(_)) => None,
        }
    }

    /// Returns true if a request would succeed now, as far as the engine searches. Changes nothing.
    pub(crate) fn fits(&self, request: &Request) -> Result<bool, AllocateError> {
        each!(self, engine => engine.fits(request), nothing_fits(request).map(|()| false))
    }

    /// Returns true if a refused request would be refused again, as long as nothing is granted or freed.
    pub(crate) const fn has_looked_at_all(&self) -> bool {
        match self {
            Self::Tlsf(tlsf) => tlsf.has_looked_at_all(),
            Self::Linear(_) | Self::Other(_) => true,
        }
    }

    /// The sizes of the chunks that [`Metadata::walk`] shows.
    pub(crate) fn measure(&self, region: RegionId) -> Sizes {
        let mut sizes = Sizes::default();
        match self {
            Self::Tlsf(tlsf) => return tlsf.measure(region),
            Self::Linear(linear) => linear.walk(region, &mut |chunk| sizes.add_chunk(&chunk)),
            Self::Other(Other::Buddy(buddy)) => buddy.walk(region, &mut |chunk| sizes.add_chunk(&chunk)),
            Self::Other(Other::Unmade(_)) => no_region(region),
        }
        sizes
    }

    /// Visits the chunks of a region in their actual layout: see [`Tlsf::places`]. Visits nothing for a [`Linear`],
    /// which only allocates at the ends.
    pub(crate) fn places(&self, region: RegionId, visit: &mut dyn FnMut(ChunkInfo)) {
        match self {
            Self::Tlsf(tlsf) => tlsf.places(region, visit),
            Self::Other(Other::Buddy(buddy)) => buddy.walk(region, visit),
            Self::Linear(_) | Self::Other(Other::Unmade(_)) => {}
        }
    }

    /// Grants exactly this range, in the free chunk after `before`: see [`Tlsf::allocate_at`]. `None` for the other
    /// engines.
    pub(crate) fn allocate_at(
        &mut self,
        before: Option<Key>,
        region: RegionId,
        offset: u64,
        size: u64,
        tag: Tag,
    ) -> Option<Key> {
        match self {
            Self::Tlsf(tlsf) => tlsf.allocate_at(before, region, offset, size, tag),
            _ => None,
        }
    }

    /// Returns true if everything from `offset` to the end of a region may be granted. `request` must have exactly this
    /// size. Changes nothing.
    pub(crate) fn fits_tail(&self, region: RegionId, offset: u64, request: &Request) -> bool {
        match self {
            Self::Tlsf(tlsf) => tlsf.fits_tail(region, offset),
            Self::Linear(_) | Self::Other(_) => self.fits(request) == Ok(true),
        }
    }

    /// Returns the memory that a [`Tlsf`] keeps for recurring sizes. It would interfere with explicit placement.
    pub(crate) fn give_slabs_back(&mut self) {
        if let Self::Tlsf(tlsf) = self {
            tlsf.give_slabs_back();
        }
    }

    /// Makes the slack of a [`Tlsf`] free, and forbids slack from now on. Returns true if that gains anything.
    pub(crate) fn free_slack(&mut self) -> bool {
        match self {
            Self::Tlsf(tlsf) => tlsf.free_slack(),
            Self::Linear(_) | Self::Other(_) => false,
        }
    }

    /// The region of a live key, or `None` for a bad key. Cheaper than [`Metadata::span`].
    #[inline]
    pub(crate) fn region_of(&self, key: Key) -> Option<RegionId> {
        match self {
            Self::Tlsf(tlsf) => tlsf.region_of(key),
            Self::Linear(_) | Self::Other(_) => self.span(key).ok().map(|span| span.region),
        }
    }

    /// Replaces the tag of a live key.
    #[inline]
    pub(crate) fn set_tag(&mut self, key: Key, tag: Tag) -> Result<(), BadKey> {
        each!(self, engine => engine.set_tag(key, tag), Err(BadKey))
    }

    /// The algorithm of the engine.
    pub(crate) const fn algorithm(&self) -> Algorithm {
        match self {
            Self::Tlsf(_) | Self::Other(Other::Unmade(_)) => Algorithm::Tlsf,
            Self::Linear(_) => Algorithm::Linear,
            Self::Other(Other::Buddy(_)) => Algorithm::Buddy,
        }
    }
}

impl Metadata for Engine {
    type Capacity = u64;
    type Request = Request;
    type Span = Span;
    type Chunk = ChunkInfo;

    fn add_region(&mut self, capacity: &u64) -> Result<RegionId, RegionError> {
        if let &mut Self::Other(Other::Unmade(max_region_capacity)) = self {
            *self = Self::new(Algorithm::Tlsf, max_region_capacity, true);
        }
        each!(self, engine => engine.add_region(capacity), unreachable!("it was made just now"))
    }

    fn remove_region(&mut self, region: RegionId) -> Result<(), NotEmpty> {
        each!(self, engine => engine.remove_region(region), no_region(region))
    }

    #[inline]
    fn allocate(&mut self, request: &Request) -> Result<(Key, Span), AllocateError> {
        #[cfg(test)]
        ENGINE_CALLS.set(ENGINE_CALLS.get() + 1);
        each!(self, engine => engine.allocate(request), nothing_fits(request).and(Err(AllocateError::NoSpace)))
    }

    #[inline]
    fn free(&mut self, key: Key) -> Result<Freed, BadKey> {
        each!(self, engine => engine.free(key), Err(BadKey))
    }

    fn reset(&mut self, region: RegionId) {
        each!(self, engine => engine.reset(region), no_region(region));
    }

    fn allocate_outside(
        &mut self,
        request: &Request,
        is_closed: &dyn Fn(RegionId) -> bool,
    ) -> Result<(Key, Span), AllocateError> {
        #[cfg(test)]
        ENGINE_CALLS.set(ENGINE_CALLS.get() + 1);
        each!(
            self,
            engine => engine.allocate_outside(request, is_closed),
            nothing_fits(request).and(Err(AllocateError::NoSpace))
        )
    }

    fn discard(&mut self, region: RegionId) {
        each!(self, engine => engine.discard(region), no_region(region));
    }

    fn span(&self, key: Key) -> Result<Span, BadKey> {
        each!(self, engine => engine.span(key), Err(BadKey))
    }

    #[inline]
    fn tag(&self, key: Key) -> Result<Tag, BadKey> {
        each!(self, engine => engine.tag(key), Err(BadKey))
    }

    fn region_usage(&self, region: RegionId) -> Usage {
        each!(self, engine => engine.region_usage(region), no_region(region))
    }

    fn usage(&self) -> Usage {
        each!(self, engine => engine.usage(), Usage::default())
    }

    fn largest_free(&self) -> u64 {
        each!(self, engine => engine.largest_free(), 0)
    }

    fn walk(&self, region: RegionId, visit: &mut dyn FnMut(ChunkInfo)) {
        each!(self, engine => engine.walk(region, visit), no_region(region));
    }

    fn validate(&self) {
        each!(self, engine => engine.validate(), {});
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sublet_engines::Strategy;

    fn asked(size: u64, alignment: u64) -> Request {
        Request::new(size, Alignment::new(alignment).unwrap())
    }

    const ALGORITHMS: [Algorithm; 3] = [Algorithm::Tlsf, Algorithm::Linear, Algorithm::Buddy];

    /// Every method calls the engine inside.
    #[test]
    fn every_call_is_passed_on() {
        for algorithm in ALGORITHMS {
            let mut engine = Engine::with_smallest(algorithm, 64, Regions::Many, 1);
            let region = engine.add_region(&64).unwrap();
            let other = engine.add_region(&32).unwrap();
            let request = Request { tag: Tag(5), ..asked(16, 4) };
            let (key, span) = engine.allocate(&request).unwrap();
            assert_eq!(engine.algorithm(), algorithm);
            assert_eq!((engine.span(key), engine.tag(key)), (Ok(span), Ok(Tag(5))));
            assert_eq!((engine.set_tag(key, Tag(6)), engine.tag(key)), (Ok(()), Ok(Tag(6))));
            assert_eq!(engine.span(key), Ok(span));
            assert_eq!((engine.usage().capacity, engine.usage().used), (96, 16));
            assert_eq!(engine.region_usage(span.region).used_chunks, 1);
            assert!(engine.largest_free() >= 32);
            let mut chunks = 0;
            engine.walk(span.region, &mut |_| chunks += 1);
            assert!(chunks >= 2);
            engine.validate();
            assert_eq!(engine.remove_region(span.region), Err(NotEmpty));
            assert!(engine.free(key).unwrap().region_empty);
            assert_eq!((engine.free(key), engine.set_tag(key, Tag(7))), (Err(BadKey), Err(BadKey)));
            let (key, span) = engine.allocate(&request).unwrap();
            engine.reset(span.region);
            assert_eq!(engine.free(key), Err(BadKey));
            let (key, span) = engine.allocate_outside(&request, &|closed| closed == region).unwrap();
            assert_eq!(span.region, other);
            engine.free(key).unwrap();
            let mut copy = engine.clone();
            copy.discard(region);
            assert_eq!(copy.allocate(&request).unwrap().1.region, other);
            assert_eq!((engine.remove_region(region), engine.remove_region(other)), (Ok(()), Ok(())));
            assert_eq!(engine.allocate(&request), Err(AllocateError::NoSpace));
        }
    }

    /// An engine that is not created yet behaves like a [`Tlsf`] without regions, and becomes one with the first
    /// region.
    #[test]
    fn what_is_not_made_yet_answers_as_if_it_were() {
        let mut engines = [Engine::unmade(4096), Engine::new(Algorithm::Tlsf, 4096, true)];
        let key = {
            let mut other = engines[1].clone();
            other.add_region(&64).unwrap();
            other.allocate(&asked(1, 1)).unwrap().0
        };
        let answers = engines.each_mut().map(|engine| {
            engine.validate();
            engine.give_slabs_back();
            let upper = Request { upper: true, ..asked(1, 1) };
            let asked = [asked(1, 1), asked(0, 1), asked(8192, 4096), upper].map(|request| {
                let granted = engine.try_allocate(request.size, request.alignment, request.tag);
                (granted, engine.allocate(&request), engine.fits(&request), engine.least_capacity(&request))
            });
            let of_key = (engine.free(key), engine.span(key), engine.tag(key), engine.set_tag(key, Tag(1)));
            let facts = (engine.algorithm(), engine.rounds_up(), engine.has_looked_at_all());
            let place = (engine.take_back(key), engine.allocate_at(None, RegionId(0), 0, 1, Tag(1)));
            (asked, of_key, place, facts, engine.usage(), engine.largest_free())
        });
        assert_eq!(answers[0], answers[1]);
        for engine in &mut engines {
            let called = std::panic::AssertUnwindSafe(|| engine.reset(RegionId(0)));
            assert!(std::panic::catch_unwind(called).is_err(), "there is no such region");
            assert!(engine.add_region(&8192).is_err());
            assert_eq!(engine.add_region(&4096), Ok(RegionId(0)));
            assert!(matches!(engine, Engine::Tlsf(_)) && engine.allocate(&asked(4096, 1)).is_ok());
        }
    }

    /// Blocks below [`LEAST_FOR_SLABS`], sizes above 4 KiB, and alignments above 512 use chunks only.
    #[test]
    fn slabs_are_of_large_blocks_and_small_sizes() {
        for (block, size, alignment, has_slabs) in [
            (LEAST_FOR_SLABS, 4096, 256, true),
            (LEAST_FOR_SLABS, 4097, 256, false),
            (LEAST_FOR_SLABS, 4096, 512, true),
            (LEAST_FOR_SLABS, 4096, 1024, false),
            (LEAST_FOR_SLABS, 1, 1 << 62, false),
            (LEAST_FOR_SLABS - 1, 4096, 256, false),
        ] {
            let mut engine = Engine::new(Algorithm::Tlsf, block, true);
            engine.add_region(&block).unwrap();
            for _ in 0..100 {
                // The largest alignment is only possible at offset 0, so only the first such request succeeds.
                let _ = engine.allocate(&asked(size, alignment));
            }
            let Engine::Tlsf(tlsf) = &engine else { unreachable!("it was asked for") };
            assert_eq!(tlsf.slab_units() != (0, 0), has_slabs, "{size} at {alignment} in {block}");
        }
    }

    /// `fits` agrees with `allocate`.
    #[test]
    fn what_fits_is_granted() {
        let mut random = fastrand::Rng::with_seed(4);
        for algorithm in [Algorithm::Tlsf, Algorithm::Linear, Algorithm::Buddy] {
            for many in [false, true] {
                let mut engine = Engine::new(algorithm, 4096, many);
                let mut live: Vec<Key> = Vec::new();
                let mut answers = [0; 3];
                for round in 0..3000 {
                    if round % 500 == 0 && (many || round == 0) {
                        engine.add_region(&(1024 << random.u32(0..3))).unwrap();
                    }
                    if random.u32(0..5) < 2 && !live.is_empty() {
                        // Frees the oldest or the newest, so that a linear engine has candidates.
                        let at = if random.bool() { 0 } else { live.len() - 1 };
                        engine.free(live.remove(at)).unwrap();
                    }
                    let strategies =
                        [Strategy::Balanced, Strategy::MinTime, Strategy::MinMemory, Strategy::MinOffset];
                    // The last strategy changes how the engine works, so it is used late.
                    let known = if round < 2000 { 3 } else { 4 };
                    let request = Request {
                        strategy: strategies[random.usize(0..known)],
                        upper: random.u32(0..8) == 0,
                        ..asked(random.u64(0..900), 1 << random.u32(0..13))
                    };
                    let said = engine.fits(&request);
                    engine.validate();
                    match engine.allocate(&request) {
                        Ok((key, _)) => {
                            assert_eq!(said, Ok(true), "{request:?}");
                            live.push(key);
                            answers[0] += 1;
                        }
                        Err(AllocateError::NoSpace) => {
                            assert_eq!(said, Ok(false), "{request:?}");
                            answers[1] += 1;
                        }
                        Err(error) => {
                            assert_eq!(said, Err(error), "{request:?}");
                            answers[2] += 1;
                        }
                    }
                }
                assert!(answers[0] > 100 && answers[1] > 100, "{algorithm:?}: {answers:?}");
            }
        }
    }

    #[test]
    fn one_block_or_many() {
        for algorithm in ALGORITHMS {
            let regions = |mut engine: Engine| (0..3).filter(|_| engine.add_region(&256).is_ok()).count();
            let single = if algorithm == Algorithm::Linear { 1 } else { 3 };
            assert_eq!(regions(Engine::new(algorithm, 256, false)), single);
            assert_eq!(regions(Engine::single(algorithm, 256)), single);
            assert_eq!(regions(Engine::new(algorithm, 256, true)), 3);
        }
    }

    #[test]
    fn bytes_are_not_divided_into_single_ones() {
        let granted = |mut engine: Engine| {
            engine.add_region(&256).unwrap();
            engine.allocate(&asked(1, 1)).unwrap().1.size
        };
        assert_eq!(granted(Engine::new(Algorithm::Buddy, 256, true)), BUDDY_BYTES);
        assert_eq!(granted(Engine::single(Algorithm::Buddy, 256)), 1);
    }

    #[test]
    fn single_units_are_no_slack() {
        let behind = |mut engine: Engine| {
            engine.add_region(&(1 << 20)).unwrap();
            engine.allocate(&asked(1 << 10, 1)).unwrap();
            engine.allocate(&asked(1001, 1)).unwrap();
            engine.allocate(&asked(1, 1)).unwrap().1.offset
        };
        assert_eq!(behind(Engine::single(Algorithm::Tlsf, 1 << 20)), 1024 + 1001);
        assert!(!Engine::single(Algorithm::Tlsf, LEAST_FOR_SLABS - 1).free_slack());
        assert_eq!(behind(Engine::new(Algorithm::Tlsf, 1 << 20, true)), 1024 + 1008);
    }

    #[test]
    fn no_engine_is_made_for_nothing() {
        for algorithm in ALGORITHMS {
            for capacity in [0, (1 << 63) + 1] {
                let made = std::panic::catch_unwind(|| Engine::single(algorithm, capacity));
                assert!(made.is_err());
            }
        }
    }
}
