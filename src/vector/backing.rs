//! What a landlord is, and what can go wrong with one.

use std::error::Error;
use std::fmt;

use super::policy::{NextBlock, PolicyError};
use crate::metadata::{AllocateError, Key, Metadata, RegionError, RegionId};

/// The landlord of a vector: what a block is, and what a span of one becomes.
///
/// `M` is the engine that divides the blocks. A landlord whose blocks are ranges is written for any engine of ranges:
/// `impl<M: RangeMetadata> Backing<M> for Atlas`.
///
/// All methods take `&self`, because a shared vector makes blocks while other threads are served from those that there
/// are. A landlord that changes has a [`Cell`](std::cell::Cell) or a lock; one whose blocks are spans of another vector
/// has that vector in a [`RefCell`](std::cell::RefCell), or a [`SharedBlockVector`](super::SharedBlockVector).
///
/// In a shared vector [`create`](Self::create) and [`destroy`](Self::destroy) are called without the lock of the books,
/// and the others with it. None may call the vector itself.
///
/// A method may panic: what was asked for did not happen then, or what was given back is back, and the vector can be used
/// on. A block that is emptied by a grant whose release panics is not reset. If [`destroy`](Self::destroy) panics, the
/// other blocks that were to go with it are dropped.
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
///     fn capacity_for(&self, request: Option<&Request>, outlook: &Outlook) -> Option<NextBlock<u64>> {
///         Some(Growth::fixed(64).next(request.map_or(0, |request| request.size), outlook.largest))
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
    /// What a span of a block becomes: a set, a pointer, a rectangle; `()` where the span says it all.
    type Item;
    /// Why a block was not made, or a span not realised.
    type Error;

    /// What the next block is to hold, so that `request` fits into it while it is empty; without a request, for a block
    /// that is made with the vector. `None` if no block would do. [`Growth`](super::Growth) has the usual rule for
    /// ranges.
    fn capacity_for(&self, request: Option<&M::Request>, outlook: &Outlook)
    -> Option<NextBlock<M::Capacity>>;

    /// Makes a block.
    ///
    /// # Errors
    /// Nothing was made then.
    fn create(&self, capacity: &M::Capacity) -> Result<Self::Block, Self::Error>;

    /// Destroys a block. Nothing of it is granted.
    fn destroy(&self, block: Self::Block);

    /// Makes an emptied block as good as new. `false` if that failed: it is destroyed then.
    fn reset(&self, block: &mut Self::Block) -> bool {
        let _ = block;
        true
    }

    /// What a span becomes that was granted just now.
    ///
    /// # Errors
    /// [`Refusal`]: the span is given back.
    fn realize(&self, block: &mut Self::Block, span: &M::Span) -> Result<Self::Item, Refusal<Self::Error>>;

    /// Undoes [`realize`](Self::realize). The span is given back next.
    fn release(&self, block: &mut Self::Block, span: &M::Span, item: Self::Item) {
        let _ = (block, span, item);
    }

    /// Whether an error of [`create`](Self::create) may pass if the vector destroys what it has empty.
    fn is_shortage(&self, error: &Self::Error) -> bool {
        let _ = error;
        false
    }
}

/// What a landlord knows of its vector when it says how large the next block is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outlook {
    /// Blocks that there are.
    pub blocks: u32,
    /// Units of all of them.
    pub units: u64,
    /// Units of the largest one that was not made for an oversize request.
    pub largest: u64,
}

/// Why a span was not realised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal<E> {
    /// The block has no more, whatever the engine counts: it is sealed until it is empty, and the next one is tried.
    Exhausted,
    /// It failed, and another block would not help.
    Failed(E),
}

/// Names one grant of one vector. It is found out when it is stale or foreign: it has the number of its vector, and the
/// engine's own generation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VectorKey {
    pub(super) vector: u64,
    /// The engine's key.
    pub(super) key: Key,
}

/// What a vector granted. Neither `Copy` nor `Clone`: giving it back twice does not compile.
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
    /// What the landlord made of it.
    pub item: I,
}

impl<S: Copy, I> Granted<S, I> {
    /// Its name.
    #[must_use]
    pub const fn key(&self) -> VectorKey {
        self.key
    }

    /// Where it is.
    #[must_use]
    pub const fn span(&self) -> S {
        self.span
    }
}

/// [`Granted`] by a vector with this landlord and engine.
pub type GrantOf<B, M> = Granted<<M as Metadata>::Span, <B as Backing<M>>::Item>;

/// Why nothing was granted. Nothing was changed, except that a block that turned out to be exhausted is sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum VectorError<E> {
    /// The policy allows no vector.
    Policy(PolicyError),
    /// The engine has no such thing as was asked for.
    Request(AllocateError),
    /// The landlord has no block that is large enough, or the one it proposed was not.
    TooLarge,
    /// No block has room, and there may be no further one: see [`Policy`](super::Policy). Free something.
    Full {
        /// Blocks that there are.
        blocks: u32,
        /// Their units.
        units: u64,
    },
    /// The engine does not take the block.
    Region(RegionError),
    /// The landlord made no block.
    Create(E),
    /// The landlord did not realise the span.
    Realize(E),
    /// So many blocks, a new one among them, said that they are exhausted.
    Exhausted {
        /// Blocks that were tried.
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
    /// Behind what is printed.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Create(error) | Self::Realize(error) => error.source(),
            _ => None,
        }
    }
}

/// A handle is not good for this vector.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum HandleError {
    /// It is another vector's.
    Foreign,
    /// It was given back, or the vector was cleared.
    Stale,
}

impl fmt::Display for HandleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Foreign => "the handle is another vector's",
            Self::Stale => "the handle was given back already",
        })
    }
}

impl Error for HandleError {}

/// A grant was not taken back. Nothing was changed, and here it is again.
#[derive(PartialEq, Eq, Debug)]
pub struct GiveBackError<G> {
    /// Why.
    pub reason: HandleError,
    /// What was given.
    pub granted: G,
}

impl<G> fmt::Display for GiveBackError<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<G: fmt::Debug> Error for GiveBackError<G> {}

/// A block of a vector, as it is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockInfo {
    /// The engine's name for it. A later block may have the same.
    pub region: RegionId,
    /// What is granted in it.
    pub live: u32,
    /// Nothing more is granted in it before it is empty.
    pub sealed: bool,
    /// It was made for an oversize request.
    pub own: bool,
}

/// Sums over a vector. O(1) to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VectorStatistics {
    /// Blocks that there are.
    pub blocks: u32,
    /// Those in which nothing is granted.
    pub empty_blocks: u32,
    /// Those that were made for oversize requests.
    pub own_blocks: u32,
    /// Those that are sealed.
    pub sealed_blocks: u32,
    /// What is granted, what waits for its ticket included.
    pub live: u64,
    /// What waits for its ticket.
    pub waiting: u64,
    /// Units of all blocks.
    pub units: u64,
    /// Units that are granted.
    pub used_units: u64,
    /// Units of all empty blocks.
    pub empty_units: u64,
    /// The most units that there were at once.
    pub peak_units: u64,
    /// Blocks made so far.
    pub created: u64,
}
