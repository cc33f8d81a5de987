//! The vector: its block source, policy and state.

use std::fmt;

use super::backing::{
    Backing, BlockInfo, GiveBackError, GrantOf, HandleError, Refusal, VectorError, VectorKey,
    VectorStatistics,
};
use super::grow::{destroy_all, grow, grow_for, visit};
use super::policy::Policy;
use super::state::{BlockVectorState, PlacementResult};
use crate::retire::{ClockView, OtherClock, Ticket};
use sublet_engines::Metadata;

/// Blocks from a block source, divided by one engine. [The module](super) has an example.
///
/// Dropping it destroys the empty blocks. A block with grants is dropped without [`Backing::destroy`]: call
/// [`clear`](Self::clear) first to destroy everything.
///
/// ```
/// # use sublet::metadata::{Alignment, Request, Span, Tlsf};
/// # use sublet::vector::*;
/// # /// Blocks that are nothing but their units.
/// # struct Plain;
/// #
/// # impl Backing<Tlsf> for Plain {
/// #     type Block = ();
/// #     type Item = ();
/// #     type Error = std::fmt::Error;
/// #     fn capacity_for(&self, request: Option<&Request>, limits: &GrowthLimits) -> Option<NextBlock<u64>> {
/// #         Some(Growth::fixed(64).next(request.map_or(0, |request| request.size), limits.largest))
/// #     }
/// #     fn create(&self, _: &u64) -> Result<(), Self::Error> {
/// #         Ok(())
/// #     }
/// #     fn destroy(&self, (): ()) {}
/// #     fn realize(&self, (): &mut (), _: &Span) -> Result<(), Refusal<Self::Error>> {
/// #         Ok(())
/// #     }
/// # }
/// let mut vector = BlockVector::new(Plain, Tlsf::exact(64), Policy::default())?;
/// let (one, other) = (Request::new(40, Alignment::ONE), Request::new(30, Alignment::ONE));
/// let (one, other) = (vector.allocate(&one)?, vector.allocate(&other)?);
/// assert_eq!((vector.statistics().blocks, other.span().offset), (2, 0));
/// vector.free(one).unwrap();
/// assert_eq!((vector.statistics().empty_blocks, vector.trim()), (1, 1));
/// # vector.free(other).unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BlockVector<B: Backing<M>, M: Metadata> {
    backing: B,
    core: BlockVectorState<B, M>,
}

impl<B: Backing<M>, M: Metadata> BlockVector<B, M> {
    /// Creates a vector with its first blocks. The engine has no regions yet.
    ///
    /// # Errors
    /// [`VectorError`] if one of the first blocks could not be created, or exceeds the limits. Then none stays.
    pub fn new(backing: B, engine: M, policy: Policy) -> Result<Self, VectorError<B::Error>> {
        policy.check().map_err(VectorError::Policy)?;
        let mut vector =
            Self { backing, core: BlockVectorState::new(engine, Policy { min_blocks: 0, ..policy }) };
        for _ in 0..policy.min_blocks {
            grow(&vector.backing, &mut vector.core, None, |_, _| Ok(()))?;
        }
        vector.core.policy = policy;
        Ok(vector)
    }

    /// Grants a request, from a block that has room or from a new one.
    ///
    /// # Errors
    /// [`VectorError`]; nothing was granted, and no block that was made for it stays. Empty blocks may be gone.
    ///
    /// # Complexity
    /// That of the engine while there is room. If a block is created: O(blocks) and a call of the block source.
    pub fn allocate(&mut self, request: &M::Request) -> Result<GrantOf<B, M>, VectorError<B::Error>> {
        self.allocate_with(request, B::realize)
    }

    /// [`Self::allocate`] with a closure that makes the item, if that depends on more than the span.
    ///
    /// # Errors
    /// See [`Self::allocate`].
    pub fn allocate_with(
        &mut self,
        request: &M::Request,
        mut realize: impl FnMut(&B, &mut B::Block, &M::Span) -> Result<B::Item, Refusal<B::Error>>,
    ) -> Result<GrantOf<B, M>, VectorError<B::Error>> {
        let Self { backing, core } = self;
        let mut realize = |block: &mut B::Block, span: &M::Span| realize(backing, block, span);
        match visit(backing, core, |core, doomed| core.allocate(request, &mut realize, doomed))? {
            PlacementResult::Granted(granted) => Ok(granted),
            PlacementResult::NoRoom { tried } => grow_for(backing, core, request, tried, &mut realize),
        }
    }

    /// Frees a grant. Its span may be granted again at once.
    ///
    /// # Errors
    /// [`GiveBackError`], with the grant, if it belongs to another vector or is older than a [`clear`](Self::clear).
    pub fn free(&mut self, granted: GrantOf<B, M>) -> Result<(), GiveBackError<GrantOf<B, M>>> {
        visit(&self.backing, &mut self.core, |core, doomed| core.free(&self.backing, granted, doomed))
    }

    /// Frees a grant once `ticket` is done: see [`collect`](Self::collect).
    ///
    /// # Errors
    /// See [`free`](Self::free).
    pub fn retire(
        &mut self,
        ticket: Ticket,
        granted: GrantOf<B, M>,
    ) -> Result<(), GiveBackError<GrantOf<B, M>>> {
        self.core.retire(ticket, granted)
    }

    /// Frees the grants whose tickets are done, and destroys blocks that have been empty for longer than
    /// [`Policy::idle_collects`]. Returns the number of freed grants.
    ///
    /// # Errors
    /// [`OtherClock`] if some grants wait for tickets of another clock. Everything else was collected nonetheless.
    pub fn collect(&mut self, clock: &ClockView) -> Result<usize, OtherClock> {
        visit(&self.backing, &mut self.core, |core, doomed| core.collect(&self.backing, clock, doomed))
    }

    /// Destroys all empty blocks, except for the minimum. Returns their number.
    pub fn trim(&mut self) -> usize {
        let trimmed = self.core.trim();
        let count = trimmed.len();
        destroy_all(&self.backing, trimmed);
        count
    }

    /// Frees everything at once, including grants that wait for tickets. Drops items without
    /// [releasing](Backing::release) them, and [resets](Backing::reset) the blocks. Returns the number of grants, whose
    /// keys are stale afterwards.
    pub fn clear(&mut self) -> u64 {
        visit(&self.backing, &mut self.core, |core, doomed| core.clear(&self.backing, doomed))
    }

    /// The span of a grant.
    ///
    /// # Errors
    /// [`HandleError`] if the key belongs to another vector, or is not live.
    pub fn span(&self, key: VectorKey) -> Result<M::Span, HandleError> {
        self.core.span(key)
    }

    /// The block and the span of a grant.
    ///
    /// # Errors
    /// See [`span`](Self::span).
    pub fn block(&self, key: VectorKey) -> Result<(&B::Block, M::Span), HandleError> {
        self.core.block(key)
    }

    /// The block, mutable, and the span of a grant.
    ///
    /// # Errors
    /// See [`span`](Self::span).
    pub fn block_mut(&mut self, key: VectorKey) -> Result<(&mut B::Block, M::Span), HandleError> {
        self.core.block_mut(key)
    }

    /// The block source.
    pub fn backing(&self) -> &B {
        &self.backing
    }

    /// The engine, for queries.
    pub fn engine(&self) -> &M {
        &self.core.engine
    }

    /// The limits on blocks, and the number of blocks kept.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.core.policy
    }

    /// The number of blocks, grants and units. O(1).
    #[must_use]
    pub fn statistics(&self) -> VectorStatistics {
        self.core.statistics()
    }

    /// The blocks, in the order of their regions.
    pub fn blocks(&self) -> impl Iterator<Item = (BlockInfo, &B::Block)> {
        self.core.blocks()
    }

    /// Visits the contents of each block: see [`Metadata::walk`].
    pub fn walk(&self, mut visit: impl FnMut(BlockInfo, M::Chunk)) {
        for (info, _) in self.core.blocks() {
            self.core.engine.walk(info.region, &mut |chunk| visit(info, chunk));
        }
    }

    /// Checks the state. O(n), for tests and debugging.
    ///
    /// # Panics
    /// Panics with the violated invariant.
    pub fn validate(&self) {
        self.core.validate();
    }
}

impl<B: Backing<M>, M: Metadata> Drop for BlockVector<B, M> {
    fn drop(&mut self) {
        self.core.policy.min_blocks = 0;
        self.trim();
    }
}

impl<B: Backing<M>, M: Metadata> fmt::Debug for BlockVector<B, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("BlockVector");
        shown.field("policy", &self.policy()).field("statistics", &self.statistics());
        shown.finish_non_exhaustive()
    }
}
