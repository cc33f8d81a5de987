//! Block sources, and the errors of vectors.

use std::error::Error;
use std::fmt;

use super::policy::{NextBlock, PolicyError};
use sublet_engines::{AllocateError, Key, Metadata, RegionError, RegionId};

/// The block source of a vector: it defines what a block is, and what a span of a block becomes.
///
/// `M` is the engine that divides the blocks. A block source whose blocks are ranges supports any engine of ranges:
/// `impl<M: RangeMetadata> Backing<M> for Atlas`.
///
/// All methods take `&self`: several vectors may share a block source. One with mutable state uses a
/// [`Cell`](std::cell::Cell) or a lock. One whose blocks are spans of another vector keeps that vector in a
/// [`RefCell`](std::cell::RefCell).
///
/// A method may panic. Then the requested operation did not happen, or the returned grant is free, and the vector stays
/// usable. If the release of the last grant in a block panics, the block is not reset. If [`destroy`](Self::destroy)
/// panics, the other blocks to be destroyed with it are dropped.
///
/// ```
/// use sublet::metadata::{Alignment, Request, Span, Tlsf};
/// use sublet::vector::*;
/// /// Blocks that are nothing but their units.
/// struct Plain;
///
/// impl Backing<Tlsf> for Plain {
///     type Block = ();
///     type Item = ();
///     type Error = std::fmt::Error;
///     fn capacity_for(&self, request: Option<&Request>, limits: &GrowthLimits) -> Option<NextBlock<u64>> {
///         Some(Growth::fixed(64).next(request.map_or(0, |request| request.size), limits.largest))
///     }
///     fn create(&self, _: &u64) -> Result<(), Self::Error> {
///         Ok(())
///     }
///     fn destroy(&self, (): ()) {}
///     fn realize(&self, (): &mut (), _: &Span) -> Result<(), Refusal<Self::Error>> {
///         Ok(())
///     }
/// }
/// let mut vector = BlockVector::new(Plain, Tlsf::exact(64), Policy::fixed())?;
/// assert!(vector.allocate(&Request::new(64, Alignment::ONE)).is_ok());
/// assert!(matches!(vector.allocate(&Request::new(1, Alignment::ONE)), Err(VectorError::Full { blocks: 1, .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Backing<M: Metadata> {
    /// A block: a descriptor pool, a mapped buffer, a page of an atlas.
    type Block;
    /// The item made from a span: a set, a pointer, a rectangle; `()` if the span suffices.
    type Item;
    /// The reason why a block was not created, or a span not realized.
    type Error;

    /// The capacity of the next block, such that `request` fits into it while it is empty. There is no request for the
    /// blocks that are created with the vector. Returns `None` if no block would suffice. [`Growth`](super::Growth) has
    /// the usual rule for ranges.
    fn capacity_for(
        &self,
        request: Option<&M::Request>,
        limits: &GrowthLimits,
    ) -> Option<NextBlock<M::Capacity>>;

    /// Creates a block.
    ///
    /// # Errors
    /// On error, nothing was created.
    fn create(&self, capacity: &M::Capacity) -> Result<Self::Block, Self::Error>;

    /// Destroys a block in which nothing is granted.
    fn destroy(&self, block: Self::Block);

    /// Resets a block that became empty. Returns false on failure; the block is then destroyed.
    fn reset(&self, block: &mut Self::Block) -> bool {
        let _ = block;
        true
    }

    /// Makes an item from a span that was just granted.
    ///
    /// # Errors
    /// On a [`Refusal`], the span is freed.
    fn realize(&self, block: &mut Self::Block, span: &M::Span) -> Result<Self::Item, Refusal<Self::Error>>;

    /// Undoes [`realize`](Self::realize). The span is freed next.
    fn release(&self, block: &mut Self::Block, span: &M::Span, item: Self::Item) {
        let _ = (block, span, item);
    }

    /// Returns true if destroying the vector's empty blocks may resolve an error of [`create`](Self::create).
    fn is_shortage(&self, error: &Self::Error) -> bool {
        let _ = error;
        false
    }
}

/// The state of a vector, from which its block source derives the size of the next block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GrowthLimits {
    /// The number of blocks.
    pub blocks: u32,
    /// Units of all blocks.
    pub units: u64,
    /// Units of the largest block that was not made for an oversize request.
    pub largest: u64,
}

/// The reason why a span was not realized.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal<E> {
    /// The block is exhausted, although the engine counts free space. The vector closes it until it is empty, and tries
    /// the next one.
    Exhausted,
    /// The operation failed, and another block would not help.
    Failed(E),
}

/// Identifies one grant of one vector. Stale and foreign keys are detected: a key contains the number of its vector and
/// the engine's generation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VectorKey {
    pub(super) vector: u64,
    /// The engine's key.
    pub(super) key: Key,
}

/// A grant of a vector. Neither `Copy` nor `Clone`, so that it cannot be freed twice.
///
/// ```compile_fail
/// fn twice<S, I>(granted: sublet::vector::Granted<S, I>) {
///     drop(granted);
///     drop(granted);
/// }
/// ```
#[derive(PartialEq, Eq, Debug)]
#[must_use = "what was granted stays so until it is given back to its vector"]
pub struct Granted<S, I> {
    pub(super) key: VectorKey,
    pub(super) span: S,
    /// The item from the block source.
    pub item: I,
}

impl<S: Copy, I> Granted<S, I> {
    /// The key of the grant.
    #[must_use]
    pub const fn key(&self) -> VectorKey {
        self.key
    }

    /// The span of the grant.
    #[must_use]
    pub const fn span(&self) -> S {
        self.span
    }
}

/// The [`Granted`] of a vector with this block source and engine.
pub type GrantOf<B, M> = Granted<<M as Metadata>::Span, <B as Backing<M>>::Item>;

/// The reason why nothing was granted. Nothing was changed, except that exhausted blocks were closed, and that empty
/// blocks may have been destroyed to stay within the limits or after a shortage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum VectorError<E> {
    /// The policy is invalid.
    Policy(PolicyError),
    /// The engine rejects the request.
    Request(AllocateError),
    /// The block source has no block that is large enough, or the one that it proposed was not.
    TooLarge,
    /// No block has room, and no further block is allowed: see [`Policy`](super::Policy). Remedy: free something.
    Full {
        /// The number of blocks.
        blocks: u32,
        /// Their units.
        units: u64,
    },
    /// The engine rejected the block.
    Region(RegionError),
    /// The block source could not create a block.
    Create(E),
    /// The block source could not realize the span.
    Realize(E),
    /// All tried blocks, a new one among them, were exhausted.
    Exhausted {
        /// The number of tried blocks.
        tried: u32,
    },
}

impl<E: fmt::Display> fmt::Display for VectorError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(error) => error.fmt(f),
            Self::Request(error) => write!(f, "the engine does not take the request: {error:?}"),
            Self::TooLarge => f.write_str("the request is too large for any block"),
            Self::Full { blocks, units } => {
                write!(
                    f,
                    "there is no room in {blocks} blocks of {units} units, and no further block is allowed"
                )
            }
            Self::Region(error) => write!(f, "the engine does not take the block: {error:?}"),
            Self::Create(error) => write!(f, "no block was made: {error}"),
            Self::Realize(error) => write!(f, "there was room, but nothing was made of it: {error}"),
            Self::Exhausted { tried } => write!(f, "{tried} blocks refused although they had room"),
        }
    }
}

impl<E: Error> Error for VectorError<E> {
    /// Skips the error that `Display` already prints.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Create(error) | Self::Realize(error) => error.source(),
            _ => None,
        }
    }
}

/// A key does not identify a live grant of this vector.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum HandleError {
    /// It belongs to another vector.
    Foreign,
    /// It was freed, or the vector was cleared.
    Stale,
}

sublet_engines::errors! { HandleError:
    Foreign => "the handle is another vector's";
    Stale => "the handle was given back already";
}

/// A grant was not freed. Nothing was changed, and the error contains the grant.
#[derive(PartialEq, Eq, Debug)]
pub struct GiveBackError<G> {
    /// The reason.
    pub reason: HandleError,
    /// The grant.
    pub granted: G,
}

impl<G> fmt::Display for GiveBackError<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<G: fmt::Debug> Error for GiveBackError<G> {}

/// The state of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockInfo {
    /// The engine's id of the block. A later block may have the same.
    pub region: RegionId,
    /// The number of live grants.
    pub live: u32,
    /// Nothing more is granted in it until it is empty.
    pub sealed: bool,
    /// It was made for an oversize request.
    pub own: bool,
}

/// Sums over a vector. O(1) to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VectorStatistics {
    /// The number of blocks.
    pub blocks: u32,
    /// Blocks without grants.
    pub empty_blocks: u32,
    /// Blocks that were made for oversize requests.
    pub own_blocks: u32,
    /// Blocks that are closed.
    pub sealed_blocks: u32,
    /// Live grants, including those that wait for a ticket.
    pub live: u64,
    /// Grants that wait for a ticket.
    pub waiting: u64,
    /// Units of all blocks.
    pub units: u64,
    /// Granted units.
    pub used_units: u64,
    /// Units of all empty blocks.
    pub empty_units: u64,
    /// The peak of the units of all blocks.
    pub peak_units: u64,
    /// Blocks created so far.
    pub created: u64,
}
