//! Engines that divide ranges of units: for suballocating device memory, slots of a heap, or indices of any kind.
//!
//! An engine counts **units** (bytes of a block of device memory, slots of a heap, indices of anything). It knows no
//! Vulkan, contains no `unsafe`, and has no dependencies. One engine serves many blocks: each block is a **region** of
//! it. One index holds the free chunks of all regions, so the cost of an operation does not depend on the number of
//! blocks. There is one exception: if only offset 0 of a region has the requested alignment, the engine checks the
//! starts of all regions.
//!
//! ```
//! use sublet_engines::{Alignment, Metadata, Request, Tlsf};
//!
//! // Regions of at most 1,024 units.
//! let mut engine = Tlsf::new(1024);
//! let region = engine.add_region(&1024).unwrap();
//! let (key, span) = engine.allocate(&Request::new(100, Alignment::new(16).unwrap())).unwrap();
//! assert_eq!((span.region, span.offset % 16), (region, 0));
//! engine.free(key).unwrap();
//! // A freed key is an error. It never damages another chunk.
//! assert!(engine.free(key).is_err());
//! ```
//!
//! | engine | for | allocate | free |
//! |---|---|---|---|
//! | [`Tlsf`] | everything | O(1) | O(1) |
//! | [`Tlsf`] after the first request with [`Strategy::MinOffset`] | low offsets | O(log n) | O(log n) |
//! | [`Linear`] | lifetimes that nest, follow one another, or end together | O(1) | O(1) |
//! | [`Buddy`] | power-of-two sizes | at most 63 halvings | at most 63 merges |
//!
//! [`Counted`] divides no ranges: its regions hold a number of items of each kind, as descriptor pools do. It is a
//! [`Metadata`] with its own capacities, requests and spans. The others are [`RangeMetadata`].
//!
//! A custom engine implements [`Metadata`], whose documentation has an example.
//!
//! Each engine has two interfaces. The methods of [`Metadata`] are the complete contract. Ordinary requests and frees
//! of a vector of blocks use shorter inherent methods, which fall back to [`Metadata`].
//!
//! Placement is deterministic: the same calls give the same offsets.
#![forbid(unsafe_code)]

// The traits and types below are the contract; the engines are in the other files.

mod align;
mod buddy;
pub mod cast;
mod chunks;
mod counted;
mod errors;
mod linear;
mod tlsf;

use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU32, Ordering};

pub use align::Alignment;
pub use buddy::Buddy;
pub use counted::{
    BadGrant, Counted, CountedCapacity, CountedChunk, CountedRequest, CountedSpan, CountedUsage, Counts,
};
pub use linear::{Linear, Regions};
pub use tlsf::Tlsf;

/// A region: an engine's view of one block. Ids of removed regions are reused, lowest first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct RegionId(pub u32);

/// Identifies one used chunk of one engine until it is freed. Never zero.
///
/// A key contains a generation, which distinguishes it from freed keys. So freeing twice is an error instead of damage.
/// A generation repeats after 2^32 allocations. Engines start their generations far apart, so a key of another engine
/// is usually an error too, but not always.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key(pub NonZeroU64);

/// The owner's description of an allocation, stored with the chunk and shown by [`Metadata::walk`]. Only the lowest 30
/// bits are kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Tag(pub u32);

impl Tag {
    /// The bits that an engine keeps.
    pub const MASK: u32 = (1 << 30) - 1;
}

/// The preference of [`Tlsf`] among several free chunks that fit. The other engines have only one candidate.
///
/// ```
/// use sublet_engines::*;
/// let mut engine = Tlsf::new(1024);
/// let region = engine.add_region(&1024).unwrap();
/// let low = Request { strategy: Strategy::MinOffset, ..Request::new(10, Alignment::ONE) };
/// assert_eq!(engine.allocate(&low).unwrap().1.offset, 0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Strategy {
    /// The engine's own balance of time and packing.
    #[default]
    Balanced,
    /// The first chunk that is sure to fit.
    MinTime,
    /// The smallest chunk that fits, among a fixed number of candidates.
    MinMemory,
    /// The lowest offset: regions in the order of their ids, then offsets.
    MinOffset,
    /// The smallest chunk of the region with the highest id, among a fixed number of candidates.
    LastRegion,
}

/// The first generation of a new engine. Engines start far apart, so that a key is hardly ever valid in another engine.
#[must_use]
pub fn first_generation() -> u32 {
    static ENGINES: AtomicU32 = AtomicU32::new(0);
    // Multiples of 2^32 divided by the golden ratio are spread as far apart as possible, for any number of them.
    ENGINES.fetch_add(0x9e37_79b9, Ordering::Relaxed)
}

/// A request to an engine.
///
/// ```
/// use sublet_engines::*;
/// let mut engine = Tlsf::new(1024);
/// let region = engine.add_region(&1024).unwrap();
/// let request = Request::new(10, Alignment::new(256).unwrap());
/// assert_eq!(engine.allocate(&request).unwrap().1.offset % 256, 0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Number of units; not zero.
    pub size: u64,
    /// The offset is a multiple of this.
    pub alignment: Alignment,
    /// See [`Strategy`].
    pub strategy: Strategy,
    /// Allocates from the upper end downwards: the second stack of a [`Linear`] double stack. Other engines reject it.
    pub upper: bool,
    /// See [`Tag`].
    pub tag: Tag,
}

impl Request {
    /// A request for `size` units at a multiple of `alignment`, balanced, untagged.
    #[must_use]
    pub const fn new(size: u64, alignment: Alignment) -> Self {
        Self { size, alignment, strategy: Strategy::Balanced, upper: false, tag: Tag(0) }
    }
}

/// [`Request::new`] with a number.
#[cfg(test)]
fn asked(size: u64, alignment: u64) -> Request {
    Request::new(size, Alignment::new(alignment).unwrap())
}

/// A granted range.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Span {
    /// The region that contains the chunk.
    pub region: RegionId,
    /// First unit, counted from the start of the region.
    pub offset: u64,
    /// Granted units: the requested size, or more with a [`Buddy`].
    pub size: u64,
}

/// A grant that lies in one region.
///
/// ```
/// use sublet_engines::*;
/// let span = CountedSpan { region: RegionId(3), counts: [1, 2] };
/// assert_eq!(span.region(), RegionId(3));
/// ```
pub trait InRegion {
    /// The region of the grant.
    fn region(&self) -> RegionId;
}

impl InRegion for Span {
    fn region(&self) -> RegionId {
        self.region
    }
}

/// The reason why an engine did not allocate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AllocateError {
    /// No free chunk of any region fits, as far as the engine searches. Another region, or freeing, may help.
    NoSpace,
    /// [`Request::upper`] for an engine that is not [`Linear`], or that may have several regions.
    UpperUnsupported,
    /// [`Request::upper`] while the region is used as a ring buffer: the two exclude each other.
    UpperInRing,
}

/// The result of freeing a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Freed<S = Span> {
    /// The freed grant.
    pub span: S,
    /// The region has no used chunk left.
    pub region_empty: bool,
}

/// The key belongs to no live chunk of this engine: it was freed already, or is foreign. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadKey;

/// The region still holds used chunks. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotEmpty;

/// The reason why a region was not added. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegionError {
    /// Zero units, or more than the engine was made for.
    Capacity {
        /// The requested capacity.
        capacity: u64,
        /// The largest capacity that the engine accepts.
        max: u64,
    },
    /// The engine's address space (2^64 units over all regions) or its 2^30 chunks are used up, or the regions would
    /// have more than `u64::MAX` units in all.
    TooMany,
}

/// A range of a region, used or free, as [`Metadata::walk`] shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkInfo {
    /// First unit.
    pub offset: u64,
    /// Units; not zero.
    pub size: u64,
    /// `Some` if used.
    pub used: Option<(Key, Tag)>,
}

/// Sums over one region or a whole engine, always up to date: O(1) to read. The units of a [`Counted`] are grants.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Units of the regions.
    pub capacity: u64,
    /// Used chunks.
    pub used_chunks: u64,
    /// Units in used chunks, as granted.
    pub used: u64,
    /// The part of `used` beyond the requested sizes. Only a [`Buddy`] grants more than requested.
    pub rounding: u64,
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            capacity: sum.capacity + one.capacity,
            used_chunks: sum.used_chunks + one.used_chunks,
            used: sum.used + one.used,
            rounding: sum.rounding + one.rounding,
        })
    }
}

/// The extremes of chunk sizes, and the number of free chunks. [`Usage`] has the number of used ones.
///
/// ```
/// use sublet_engines::{ChunkInfo, Sizes};
/// let mut sizes = Sizes::default();
/// sizes.add_chunk(&ChunkInfo { offset: 0, size: 16, used: None });
/// sizes.add_chunk(&ChunkInfo { offset: 16, size: 64, used: None });
/// assert_eq!((sizes.free_count, sizes.free_min, sizes.free_max), (2, 16, 64));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Units of the smallest used chunk; `u64::MAX` if there are none.
    pub used_min: u64,
    /// Units of the largest used chunk; 0 if there are none.
    pub used_max: u64,
    /// Number of free chunks.
    pub free_count: u64,
    /// Units of the smallest free chunk; `u64::MAX` if there are none.
    pub free_min: u64,
    /// Units of the largest free chunk; 0 if there are none.
    pub free_max: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { used_min: u64::MAX, used_max: 0, free_count: 0, free_min: u64::MAX, free_max: 0 }
    }
}

impl Sizes {
    /// Merges the sizes of `other` into `self`.
    pub fn add(&mut self, other: &Self) {
        self.used_min = self.used_min.min(other.used_min);
        self.used_max = self.used_max.max(other.used_max);
        self.free_count += other.free_count;
        self.free_min = self.free_min.min(other.free_min);
        self.free_max = self.free_max.max(other.free_max);
    }

    /// Adds a chunk.
    pub fn add_chunk(&mut self, chunk: &ChunkInfo) {
        match chunk.used {
            Some(_) => self.add_used(chunk.size),
            None => self.add_free(chunk.size),
        }
    }

    /// Adds a used chunk.
    #[inline(always)]
    pub fn add_used(&mut self, units: u64) {
        self.used_min = self.used_min.min(units);
        self.used_max = self.used_max.max(units);
    }

    /// Adds the free range between two used chunks, unless it is empty.
    #[inline(always)]
    fn add_free(&mut self, units: u64) {
        if units != 0 {
            self.free_count += 1;
            self.free_min = self.free_min.min(units);
            self.free_max = self.free_max.max(units);
        }
    }
}

/// An algorithm that divides units. One engine serves all the regions of a vector.
///
/// A failed call changes nothing. A method allocates host memory only if the engine then holds more chunks or regions
/// than ever before.
///
/// ```
/// use sublet_engines::*;
/// let mut engine = Tlsf::new(1024);
/// let region = engine.add_region(&1024).unwrap();
/// let (key, span) = engine.allocate(&Request::new(100, Alignment::ONE)).unwrap();
/// assert_eq!(engine.span(key), Ok(span));
/// assert!(engine.largest_free() < 1024);
/// engine.free(key).unwrap();
/// engine.validate();
/// engine.remove_region(region).unwrap();
/// ```
///
/// # A custom engine
///
/// This engine has slots of equal size. It visits each slot, so it suits a few hundred of them. The library's own
/// engines are O(1).
///
/// ```
/// use sublet_engines::*;
///
/// /// Slots of `size` units. Each request takes the lowest free slot.
/// #[derive(Debug)]
/// struct Slots {
///     size: u64,
///     last_key: u64,
///     regions: Vec<Option<Region>>,
/// }
///
/// #[derive(Debug)]
/// struct Region {
///     capacity: u64,
///     /// The grant of each slot.
///     slots: Vec<Option<(Key, Request)>>,
/// }
///
/// impl Slots {
///     fn new(size: u64) -> Self {
///         Self { size, last_key: u64::from(first_generation()) << 32, regions: Vec::new() }
///     }
///     fn region(&self, region: RegionId) -> &Region {
///         self.regions[region.0 as usize].as_ref().expect("there is such a region")
///     }
///     fn region_mut(&mut self, region: RegionId) -> &mut Region {
///         self.regions[region.0 as usize].as_mut().expect("there is such a region")
///     }
///     /// All slots: region, index in the region, and grant.
///     fn slots(&self) -> impl Iterator<Item = (RegionId, usize, Option<(Key, Request)>)> {
///         let regions = (0..).map(RegionId).zip(&self.regions);
///         let regions = regions.filter_map(|(id, region)| Some((id, region.as_ref()?)));
///         regions.flat_map(|(id, region)| (0..).zip(&region.slots).map(move |(at, slot)| (id, at, *slot)))
///     }
///     fn find(&self, key: Key) -> Result<(Span, usize, Request), BadKey> {
///         let used = |(region, at, slot): (RegionId, usize, Option<(Key, Request)>)| {
///             let (_, request) = slot.filter(|(of, _)| *of == key)?;
///             Some((Span { region, offset: at as u64 * self.size, size: self.size }, at, request))
///         };
///         self.slots().find_map(used).ok_or(BadKey)
///     }
/// }
///
/// impl Metadata for Slots {
///     type Capacity = u64;
///     type Request = Request;
///     type Span = Span;
///     type Chunk = ChunkInfo;
///
///     fn add_region(&mut self, &capacity: &u64) -> Result<RegionId, RegionError> {
///         let vacant = self.regions.iter().position(Option::is_none).unwrap_or(self.regions.len());
///         if vacant == self.regions.len() {
///             self.regions.push(None);
///         }
///         let slots = vec![None; (capacity / self.size) as usize];
///         self.regions[vacant] = Some(Region { capacity, slots });
///         Ok(RegionId(vacant as u32))
///     }
///     fn remove_region(&mut self, region: RegionId) -> Result<(), NotEmpty> {
///         if self.region_usage(region).used > 0 {
///             return Err(NotEmpty);
///         }
///         self.regions[region.0 as usize] = None;
///         Ok(())
///     }
///     fn allocate(&mut self, request: &Request) -> Result<(Key, Span), AllocateError> {
///         if request.upper {
///             return Err(AllocateError::UpperUnsupported);
///         }
///         let is_aligned = |at: usize| at as u64 * self.size % request.alignment.get() == 0;
///         let fits = |at: usize| request.size <= self.size && is_aligned(at);
///         let free = self.slots().find(|(_, at, slot)| slot.is_none() && fits(*at));
///         let (region, at, _) = free.ok_or(AllocateError::NoSpace)?;
///         self.last_key += 1;
///         let key = Key(self.last_key.try_into().expect("it is above zero"));
///         self.region_mut(region).slots[at] = Some((key, *request));
///         Ok((key, self.span(key).expect("it was granted just now")))
///     }
///     fn free(&mut self, key: Key) -> Result<Freed, BadKey> {
///         let (span, at, _) = self.find(key)?;
///         self.region_mut(span.region).slots[at] = None;
///         Ok(Freed { span, region_empty: self.region_usage(span.region).used == 0 })
///     }
///     fn reset(&mut self, region: RegionId) {
///         self.region_mut(region).slots.fill(None);
///     }
///     fn span(&self, key: Key) -> Result<Span, BadKey> {
///         Ok(self.find(key)?.0)
///     }
///     fn tag(&self, key: Key) -> Result<Tag, BadKey> {
///         Ok(Tag(self.find(key)?.2.tag.0 & Tag::MASK))
///     }
///     fn region_usage(&self, region: RegionId) -> Usage {
///         let Region { capacity, slots } = self.region(region);
///         let mut usage = Usage { capacity: *capacity, ..Usage::default() };
///         for (_, request) in slots.iter().flatten() {
///             usage.used_chunks += 1;
///             usage.used += self.size;
///             usage.rounding += self.size - request.size;
///         }
///         usage
///     }
///     fn usage(&self) -> Usage {
///         let regions = (0..).map(RegionId).zip(&self.regions).filter(|(_, region)| region.is_some());
///         regions.map(|(id, _)| self.region_usage(id)).sum()
///     }
///     fn largest_free(&self) -> u64 {
///         if self.slots().any(|(_, _, slot)| slot.is_none()) { self.size } else { 0 }
///     }
///     fn walk(&self, region: RegionId, visit: &mut dyn FnMut(ChunkInfo)) {
///         let Region { capacity, slots } = self.region(region);
///         let mut offset = 0;
///         for slot in slots {
///             let used = slot.map(|(key, Request { tag, .. })| (key, Tag(tag.0 & Tag::MASK)));
///             visit(ChunkInfo { offset, size: self.size, used });
///             offset += self.size;
///         }
///         if offset < *capacity {
///             visit(ChunkInfo { offset, size: capacity - offset, used: None });
///         }
///     }
///     /// There is no redundant state to check.
///     fn validate(&self) {}
/// }
///
/// let mut engine = Slots::new(8);
/// let region = engine.add_region(&64).unwrap();
/// let row = Request::new(8, Alignment::ONE);
/// let keys: Vec<_> = (0..8).map(|_| engine.allocate(&row).unwrap().0).collect();
/// assert_eq!(engine.span(keys[3]).unwrap().offset, 24);
/// assert_eq!(engine.allocate(&row), Err(AllocateError::NoSpace));
/// engine.free(keys[3]).unwrap();
/// assert_eq!(engine.free(keys[3]), Err(BadKey));
/// assert_eq!(engine.usage().used, 56);
/// ```
pub trait Metadata: Sized + fmt::Debug {
    /// The capacity of a region.
    type Capacity: Clone;
    /// A request.
    type Request;
    /// A grant.
    type Span: Copy + InRegion + fmt::Debug;
    /// A part of a region, as [`walk`](Self::walk) shows it.
    type Chunk;

    /// Adds an empty region.
    ///
    /// # Errors
    /// See [`RegionError`].
    fn add_region(&mut self, capacity: &Self::Capacity) -> Result<RegionId, RegionError>;

    /// Removes an empty region.
    ///
    /// # Errors
    /// [`NotEmpty`] if it has used chunks.
    /// # Panics
    /// Panics if there is no such region.
    fn remove_region(&mut self, region: RegionId) -> Result<(), NotEmpty>;

    /// Grants a request, in any region that the engine chooses.
    ///
    /// # Errors
    /// See [`AllocateError`].
    fn allocate(&mut self, request: &Self::Request) -> Result<(Key, Self::Span), AllocateError>;

    /// Frees a grant.
    ///
    /// # Errors
    /// [`BadKey`] if `key` is not live in this engine.
    fn free(&mut self, key: Key) -> Result<Freed<Self::Span>, BadKey>;

    /// Frees everything in a region.
    ///
    /// # Panics
    /// Panics if there is no such region.
    fn reset(&mut self, region: RegionId);

    /// Closes a region: the engine grants nothing more in it until it is [reset](Self::reset), even if grants are
    /// freed. Returns false, and does nothing, if the engine does not support this.
    ///
    /// ```
    /// use sublet_engines::*;
    /// let mut engine = Counted::new();
    /// let region = engine.add_region(&CountedCapacity { grants: 1, counts: [2] }).unwrap();
    /// assert!(engine.seal(region) && !engine.fits(region, &[1]));
    /// assert!(!Tlsf::new(64).seal(RegionId(0)), "it cannot");
    /// ```
    ///
    /// # Panics
    /// Panics if there is no such region.
    fn seal(&mut self, region: RegionId) -> bool {
        let _ = region;
        false
    }

    /// Like [`allocate`](Self::allocate), but not in a region for which `is_closed` returns true. A vector uses this to
    /// close blocks of an engine without [`seal`](Self::seal).
    ///
    /// The default implementation allocates until it gets a grant in another region, and then frees the unwanted grants
    /// in reverse order. So it temporarily makes as many grants as fit in the closed regions. [`Tlsf`] and [`Buddy`]
    /// visit each chunk of the closed regions once, [`Linear`] none.
    ///
    /// ```
    /// use sublet_engines::*;
    /// let mut engine = Tlsf::exact(64);
    /// let (first, second) = (engine.add_region(&64).unwrap(), engine.add_region(&64).unwrap());
    /// let request = Request::new(10, Alignment::ONE);
    /// let (_, span) = engine.allocate_outside(&request, &|region| region == first).unwrap();
    /// assert_eq!((span.region, engine.region_usage(first).used), (second, 0));
    /// ```
    ///
    /// # Errors
    /// See [`allocate`](Self::allocate). On error, nothing is granted.
    fn allocate_outside(
        &mut self,
        request: &Self::Request,
        is_closed: &dyn Fn(RegionId) -> bool,
    ) -> Result<(Key, Self::Span), AllocateError> {
        allocate_elsewhere(self, request, is_closed)
    }

    /// Removes a region and its grants. Later grants go where they would go if the region existed and were
    /// [closed](Self::allocate_outside). Meant for copies of an engine, on which requests are tried. A [`Tlsf`] with
    /// slabs may choose other offsets, because its slabs depend on the live units, and the region has none.
    ///
    /// ```
    /// use sublet_engines::*;
    /// let mut engine = Tlsf::exact(64);
    /// let (first, second) = (engine.add_region(&64).unwrap(), engine.add_region(&64).unwrap());
    /// let request = Request::new(10, Alignment::ONE);
    /// let (_, span) = engine.allocate(&request).unwrap();
    /// let mut copy = engine.clone();
    /// copy.discard(span.region);
    /// let other = if span.region == first { second } else { first };
    /// assert_eq!(copy.allocate(&request).unwrap().1.region, other);
    /// ```
    ///
    /// # Panics
    /// Panics if there is no such region.
    fn discard(&mut self, region: RegionId) {
        self.reset(region);
        let removed = self.remove_region(region);
        debug_assert!(removed.is_ok(), "it was reset just now");
    }

    /// The grant of a live key.
    ///
    /// # Errors
    /// [`BadKey`] if `key` is not live in this engine.
    fn span(&self, key: Key) -> Result<Self::Span, BadKey>;

    /// The tag of a live key.
    ///
    /// # Errors
    /// [`BadKey`] if `key` is not live in this engine.
    fn tag(&self, key: Key) -> Result<Tag, BadKey>;

    /// Sums over one region. O(1).
    ///
    /// # Panics
    /// Panics if there is no such region.
    fn region_usage(&self, region: RegionId) -> Usage;

    /// Sums over all regions. O(1).
    fn usage(&self) -> Usage;

    /// The largest size that an allocation with alignment 1 could have now, for error reports. A [`Tlsf`] compares a
    /// fixed number of chunks. If several are about equally large, its result may be too small by less than 1/64. For a
    /// [`Counted`], the result is the free capacity of one region.
    fn largest_free(&self) -> Self::Capacity;

    /// Visits the chunks of a region. Ranges come in the order of their offsets, free ones included, and cover the
    /// region without gaps. Slack beside a used chunk of a [`Tlsf`] is shown as free.
    ///
    /// # Panics
    /// Panics if there is no such region.
    fn walk(&self, region: RegionId, visit: &mut dyn FnMut(Self::Chunk));

    /// Checks every numbered invariant of the engine. O(n), for tests and debugging.
    ///
    /// # Panics
    /// Panics with the violated invariant.
    fn validate(&self);
}

/// The default implementation of [`Metadata::allocate_outside`].
fn allocate_elsewhere<M: Metadata>(
    engine: &mut M,
    request: &M::Request,
    is_closed: &dyn Fn(RegionId) -> bool,
) -> Result<(Key, M::Span), AllocateError> {
    let mut inside = Vec::new();
    let result = loop {
        match engine.allocate(request) {
            Ok((key, span)) if is_closed(span.region()) => inside.push(key),
            result => break result,
        }
    };
    for key in inside.into_iter().rev() {
        let freed = engine.free(key);
        debug_assert!(freed.is_ok(), "it was granted just now");
    }
    result
}

/// A [`Metadata`] that divides ranges of units.
///
/// ```
/// use sublet_engines::*;
/// fn free_units(engine: &impl RangeMetadata) -> u64 {
///     engine.usage().capacity - engine.usage().used
/// }
/// assert_eq!(free_units(&Tlsf::new(64)), 0);
/// ```
pub trait RangeMetadata: Metadata<Capacity = u64, Request = Request, Span = Span, Chunk = ChunkInfo> {}
impl<M: Metadata<Capacity = u64, Request = Request, Span = Span, Chunk = ChunkInfo>> RangeMetadata for M {}
