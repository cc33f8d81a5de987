//! The ground-floor room that divides ranges: which units of a block are whose.
//!
//! An engine counts **units** (bytes of a block of device memory, slots of a heap, indices of anything), knows no
//! Vulkan and holds no `unsafe`. One engine serves all the blocks of a vector: each block is a **region** of it. With
//! the free chunks of all regions in one index, no operation costs more because there are more blocks. (The one
//! exception is an alignment that no place of a region has but its start: for that, starts are looked at one by one.)
//!
//! | engine | for | allocate | free |
//! |---|---|---|---|
//! | [`Tlsf`] | everything | O(1) | O(1) |
//! | [`Tlsf`] that was ever asked for [`Strategy::MinOffset`] | low offsets | O(log n) | O(log n) |
//! | [`Linear`] | lifetimes that nest, follow one another, or end together | O(1) | O(1) |
//! | [`Buddy`] | power-of-two sizes | O(1) | O(log n) merges |
//!
//! [`Counted`] divides no ranges: its regions hold so many of each kind, as descriptor pools do. It is a [`Metadata`]
//! with capacities, requests and spans of its own. The others are [`RangeMetadata`].
//!
//! A program's own engine is a [`Divider`], which says where in a region a request goes, in a [`Ledger`]; or a
//! [`Metadata`] from the ground up.
//!
//! Each engine has two ways in. The methods of [`Metadata`] are the whole contract. What a vector of blocks does all
//! day, one usual request and one free, has a shorter one that answers in registers, and leaves to the other what it
//! does not know.
//!
//! Placement is deterministic: the same calls give the same offsets.
#![forbid(unsafe_code)]
// The traits and types below are the contract; the engines are in the files beside.

mod buddy;
pub mod check;
mod chunks;
mod counted;
mod engine;
mod ledger;
mod linear;
mod tlsf;

use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU32, Ordering};

pub use crate::base::align::Alignment;
pub use buddy::Buddy;
pub use counted::{
    BadGrant, Counted, CountedCapacity, CountedChunk, CountedRequest, CountedSpan, CountedUsage, Counts,
};
pub use engine::Algorithm;
#[cfg(all(test, not(loom)))]
pub(crate) use engine::{ASKED, ASKED_WARM};
pub(crate) use engine::{Engine, LEAST_FOR_SLABS};
pub use ledger::{Divider, Ledger};
pub use linear::{Linear, Regions};
pub use tlsf::Tlsf;

/// A region: what an engine knows of one block. Slots of removed regions are used again, lowest first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct RegionId(pub u32);

/// Names one used chunk of one engine, until it is freed. Never zero.
///
/// A key that was freed, or that came from another engine, is told apart from a live one by the generation in it, so
/// that freeing twice is an error instead of damage. Engines start their generations far apart, and one comes back
/// after 2^32 allocations: who mixes up engines must expect to be told, not rely on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key(pub NonZeroU64);

/// What an allocation is for, in the owner's own words: carried with the chunk and shown by [`Metadata::walk`].
/// Only the lowest 30 bits are kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Tag(pub u32);

impl Tag {
    /// The bits that an engine keeps.
    pub const MASK: u32 = (1 << 30) - 1;
}

/// What [`Tlsf`] optimises when several free chunks would do. The other engines have only one place to offer.
///
/// ```
/// use sublet::metadata::*;
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
    /// The smallest chunk that fits, as far as a fixed number of looks finds it.
    MinMemory,
    /// The lowest offset: regions in the order of their ids, then offsets.
    MinOffset,
}

/// Where an engine starts to count generations: each engine elsewhere, so that a key of one is hardly ever good in
/// another.
#[must_use]
pub fn first_generation() -> u32 {
    static ENGINES: AtomicU32 = AtomicU32::new(0);
    // Multiples of 2^32 divided by the golden ratio lie as far apart as they can, however many there are.
    ENGINES.fetch_add(0x9e37_79b9, Ordering::Relaxed)
}

/// What is asked of an engine.
///
/// ```
/// use sublet::metadata::*;
/// let mut engine = Tlsf::new(1024);
/// let region = engine.add_region(&1024).unwrap();
/// let request = Request::new(10, Alignment::new(256).unwrap());
/// assert_eq!(engine.allocate(&request).unwrap().1.offset % 256, 0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Units wanted; not zero.
    pub size: u64,
    /// The offset is a multiple of this.
    pub alignment: Alignment,
    /// See [`Strategy`].
    pub strategy: Strategy,
    /// From the upper end downwards: the second stack of a [`Linear`] double stack. Others refuse it.
    pub upper: bool,
    /// See [`Tag`].
    pub tag: Tag,
}

impl Request {
    /// `size` units at a multiple of `alignment`, balanced, untagged.
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

/// What was granted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Span {
    /// The region that the chunk is in.
    pub region: RegionId,
    /// First unit, counted from the start of the region.
    pub offset: u64,
    /// Units granted: what was asked, except where the engine rounds ([`Buddy`]).
    pub size: u64,
}

/// What is in a region: what an engine granted.
///
/// ```
/// use sublet::metadata::*;
/// let span = CountedSpan { region: RegionId(3), counts: [1, 2] };
/// assert_eq!(span.region(), RegionId(3));
/// ```
pub trait InRegion {
    /// Where it is.
    fn region(&self) -> RegionId;
}

impl InRegion for Span {
    fn region(&self) -> RegionId {
        self.region
    }
}

/// Why an engine did not allocate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AllocateError {
    /// No free chunk of any region fits, as far as the engine looks. Another region, or freeing, may help.
    NoSpace,
    /// [`Request::upper`] of an engine that is not [`Linear`], or of one that may have several regions.
    UpperUnsupported,
    /// [`Request::upper`] while the region is used as a ring buffer: the two exclude each other.
    UpperInRing,
}

/// What freeing a key did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Freed<S = Span> {
    /// What was freed.
    pub span: S,
    /// The region has no used chunk left.
    pub region_empty: bool,
}

/// The key is of no live chunk of this engine: freed already, or foreign. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadKey;

/// The region still holds used chunks. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotEmpty;

/// Why a region was not added. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RegionError {
    /// Zero units, or more than the engine was made for.
    Capacity {
        /// What was given.
        capacity: u64,
        /// The most that the engine takes.
        max: u64,
    },
    /// The engine's address space (2^64 units over all regions) or its 2^30 chunks are used up, or the regions would
    /// have more than `u64::MAX` units in all.
    TooMany,
}

/// A range of a region, used or free, as [`Metadata::walk`] shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// First unit.
    pub offset: u64,
    /// Units; not zero.
    pub size: u64,
    /// `Some` if used.
    pub used: Option<(Key, Tag)>,
}

/// Sums over one region or a whole engine, kept up to date: O(1) to read. The units of a [`Counted`] are grants.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Units of the regions.
    pub capacity: u64,
    /// Used chunks.
    pub used_chunks: u64,
    /// Units in used chunks, as granted.
    pub used: u64,
    /// The part of `used` that was granted beyond what was asked: [`Buddy`] rounds, the others do not.
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

/// The extremes of the sizes of chunks, and how many free ones there are: a [`Usage`] says that of the used ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sizes {
    /// `u64::MAX` if there are none.
    pub(crate) used_min: u64,
    pub(crate) used_max: u64,
    pub(crate) free_count: u64,
    /// `u64::MAX` if there are none.
    pub(crate) free_min: u64,
    pub(crate) free_max: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { used_min: u64::MAX, used_max: 0, free_count: 0, free_min: u64::MAX, free_max: 0 }
    }
}

impl Sizes {
    /// Adds up: `self` is then of the chunks of both.
    pub(crate) fn add(&mut self, other: &Self) {
        self.used_min = self.used_min.min(other.used_min);
        self.used_max = self.used_max.max(other.used_max);
        self.free_count += other.free_count;
        self.free_min = self.free_min.min(other.free_min);
        self.free_max = self.free_max.max(other.free_max);
    }

    fn add_chunk(&mut self, chunk: &Chunk) {
        match chunk.used {
            Some(_) => self.add_used(chunk.size),
            None => self.add_free(chunk.size),
        }
    }

    /// A used chunk.
    #[inline(always)]
    pub(crate) fn add_used(&mut self, units: u64) {
        self.used_min = self.used_min.min(units);
        self.used_max = self.used_max.max(units);
    }

    /// What is free between two used chunks, if anything is.
    #[inline(always)]
    fn add_free(&mut self, units: u64) {
        if units != 0 {
            self.free_count += 1;
            self.free_min = self.free_min.min(units);
            self.free_max = self.free_max.max(units);
        }
    }
}

/// The algorithm: how units are divided. One engine serves all the regions of a vector.
///
/// Failure changes nothing. No method allocates host memory once the engine is warm, that is, once it has held as many
/// chunks and regions before.
///
/// ```
/// use sublet::metadata::*;
/// let mut engine = Tlsf::new(1024);
/// let region = engine.add_region(&1024).unwrap();
/// let (key, span) = engine.allocate(&Request::new(100, Alignment::ONE)).unwrap();
/// assert_eq!(engine.span(key), Ok(span));
/// assert!(engine.largest_free() < 1024);
/// engine.free(key).unwrap();
/// engine.validate();
/// engine.remove_region(region).unwrap();
/// ```
pub trait Metadata: Sized + fmt::Debug {
    /// What a region can hold.
    type Capacity: Clone;
    /// What is asked.
    type Request;
    /// What is granted.
    type Span: Copy + InRegion + fmt::Debug;
    /// A part of a region, as [`walk`](Self::walk) shows it.
    type Chunk;

    /// Adds an empty region.
    ///
    /// # Errors
    /// See [`RegionError`].
    fn add_region(&mut self, capacity: &Self::Capacity) -> Result<RegionId, RegionError>;

    /// Takes an empty region out.
    ///
    /// # Errors
    /// [`NotEmpty`] if it has used chunks.
    /// # Panics
    /// If there is no such region.
    fn remove_region(&mut self, region: RegionId) -> Result<(), NotEmpty>;

    /// Grants what is asked, in whichever region the engine sees fit.
    ///
    /// # Errors
    /// See [`AllocateError`].
    fn allocate(&mut self, request: &Self::Request) -> Result<(Key, Self::Span), AllocateError>;

    /// Takes a grant back.
    ///
    /// # Errors
    /// [`BadKey`] if it is not a live one of this engine.
    fn free(&mut self, key: Key) -> Result<Freed<Self::Span>, BadKey>;

    /// Frees everything in a region.
    ///
    /// # Panics
    /// If there is no such region.
    fn reset(&mut self, region: RegionId);

    /// Grants nothing more in a region before it is [reset](Self::reset), whatever is freed in it, and says so. `false`,
    /// and nothing happens, of an engine that cannot.
    ///
    /// ```
    /// use sublet::metadata::*;
    /// let mut engine = Counted::new();
    /// let region = engine.add_region(&CountedCapacity { grants: 1, counts: [2] }).unwrap();
    /// assert!(engine.seal(region) && !engine.fits(region, &[1]));
    /// assert!(!Tlsf::new(64).seal(RegionId(0)), "it cannot");
    /// ```
    ///
    /// # Panics
    /// If there is no such region.
    fn seal(&mut self, region: RegionId) -> bool {
        let _ = region;
        false
    }

    /// [`allocate`](Self::allocate), but not in a region that `is_closed`. So a vector seals the blocks of an engine that
    /// [cannot](Self::seal): nothing stays granted that nobody asked for.
    ///
    /// What is given here allocates until it is elsewhere, and gives the rest back, the last one first: an allocation for
    /// each such request that the closed regions have room for. [`Tlsf`] and [`Buddy`] look at each of their chunks once,
    /// [`Linear`] at none.
    ///
    /// ```
    /// use sublet::metadata::*;
    /// let mut engine = Tlsf::exact(64);
    /// let (first, second) = (engine.add_region(&64).unwrap(), engine.add_region(&64).unwrap());
    /// let request = Request::new(10, Alignment::ONE);
    /// let (_, span) = engine.allocate_outside(&request, &|region| region == first).unwrap();
    /// assert_eq!((span.region, engine.region_usage(first).used), (second, 0));
    /// ```
    ///
    /// # Errors
    /// As for [`allocate`](Self::allocate). Nothing is granted then.
    fn allocate_outside(
        &mut self,
        request: &Self::Request,
        is_closed: &dyn Fn(RegionId) -> bool,
    ) -> Result<(Key, Self::Span), AllocateError> {
        allocate_elsewhere(self, request, is_closed)
    }

    /// Forgets a region and what is granted in it. What is granted later goes where it would go if the region were
    /// there and [closed](Self::allocate_outside). For a copy of an engine on which something is tried.
    ///
    /// ```
    /// use sublet::metadata::*;
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
    /// If there is no such region.
    fn discard(&mut self, region: RegionId) {
        self.reset(region);
        let removed = self.remove_region(region);
        debug_assert!(removed.is_ok(), "it was reset just now");
    }

    /// What `key` was granted.
    ///
    /// # Errors
    /// [`BadKey`] if it is not a live one of this engine.
    fn span(&self, key: Key) -> Result<Self::Span, BadKey>;

    /// The tag of a live key.
    ///
    /// # Errors
    /// [`BadKey`] if it is not a live one of this engine.
    fn tag(&self, key: Key) -> Result<Tag, BadKey>;

    /// Sums over one region. O(1).
    ///
    /// # Panics
    /// If there is no such region.
    fn region_usage(&self, region: RegionId) -> Usage;

    /// Sums over all regions. O(1).
    fn usage(&self) -> Usage;

    /// The largest size that an allocation with alignment 1 could have now. For error reports: [`Tlsf`] compares a
    /// fixed number of chunks, so that where several of them are about as large this may be too little by less than
    /// 1/64. Of a [`Counted`] the room of one region.
    fn largest_free(&self) -> Self::Capacity;

    /// Shows the chunks of a region. Those of ranges come in the order of their offsets, free ones included: they tile
    /// the region. What a [`Tlsf`] leaves out beside a used chunk is shown as free.
    ///
    /// # Panics
    /// If there is no such region.
    fn walk(&self, region: RegionId, visit: &mut dyn FnMut(Self::Chunk));

    /// Checks every numbered invariant of the engine. O(n), for tests and debugging.
    ///
    /// # Panics
    /// Names the invariant that is broken.
    fn validate(&self);
}

/// What [`Metadata::allocate_outside`] does of an engine that has no better way.
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
/// use sublet::metadata::*;
/// fn free_units(engine: &impl RangeMetadata) -> u64 {
///     engine.usage().capacity - engine.usage().used
/// }
/// assert_eq!(free_units(&Tlsf::new(64)), 0);
/// ```
pub trait RangeMetadata: Metadata<Capacity = u64, Request = Request, Span = Span, Chunk = Chunk> {}
impl<M: Metadata<Capacity = u64, Request = Request, Span = Span, Chunk = Chunk>> RangeMetadata for M {}
