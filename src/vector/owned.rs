//! A vector of one thread.

use std::fmt;

use super::backing::{
    Backing, BlockInfo, GiveBackError, GrantOf, HandleError, Refusal, VectorError, VectorKey,
    VectorStatistics,
};
use super::books::{Core, Placed};
use super::grow::{destroy_all, grow, grow_for, visit};
use super::plan::EmptyingPlan;
use super::policy::{Policy, PolicyError};
use crate::metadata::{Alignment, Metadata, RangeMetadata, RegionId, Tag};
use crate::retire::{ClockView, OtherClock, Ticket};

/// Blocks of a landlord, divided by one engine: `&mut self` says that nobody else is at it.
/// [`SharedBlockVector`](super::SharedBlockVector) is the same for several threads; [the module](super) has an example.
///
/// Dropping it destroys what is empty. A block in which something is granted is dropped without
/// [`Backing::destroy`]: [`clear`](Self::clear) comes first where everything is to go.
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
/// #     fn capacity_for(&self, request: Option<&Request>, outlook: &Outlook) -> Option<NextBlock<u64>> {
/// #         Some(Growth::fixed(64).next(request.map_or(0, |request| request.size), outlook.largest))
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
    core: Core<B, M>,
}

impl<B: Backing<M>, M: Metadata> BlockVector<B, M> {
    /// A vector with its first blocks. The engine has no regions yet.
    ///
    /// # Errors
    /// [`VectorError`] if one of the first blocks was not made, or there may not be so many: there are none then.
    pub fn new(backing: B, engine: M, policy: Policy) -> Result<Self, VectorError<B::Error>> {
        policy.check().map_err(VectorError::Policy)?;
        let mut vector = Self { backing, core: Core::new(engine, Policy { min_blocks: 0, ..policy }) };
        for _ in 0..policy.min_blocks {
            grow(&vector.backing, &mut &mut vector.core, None, |_, _| Ok(()))?;
        }
        vector.core.policy = policy;
        Ok(vector)
    }

    /// Grants what is asked: out of a block that has room, or out of a new one.
    ///
    /// # Errors
    /// [`VectorError`]: nothing was granted, and no block was kept that was made for it.
    ///
    /// # Complexity
    /// That of the engine while there is room, O(blocks) and a call of the landlord when a block is made.
    pub fn allocate(&mut self, request: &M::Request) -> Result<GrantOf<B, M>, VectorError<B::Error>> {
        self.allocate_with(request, B::realize)
    }

    /// [`Self::allocate`] with another way to make an item of the span, where that depends on more than the span.
    ///
    /// # Errors
    /// As for [`Self::allocate`].
    pub fn allocate_with(
        &mut self,
        request: &M::Request,
        mut realize: impl FnMut(&B, &mut B::Block, &M::Span) -> Result<B::Item, Refusal<B::Error>>,
    ) -> Result<GrantOf<B, M>, VectorError<B::Error>> {
        let Self { backing, core } = self;
        let mut realize = |block: &mut B::Block, span: &M::Span| realize(backing, block, span);
        match visit(backing, &mut &mut *core, |core, doomed| core.place(request, &mut realize, doomed))? {
            Placed::Granted(granted) => Ok(granted),
            Placed::NoRoom { tried } => grow_for(backing, &mut &mut *core, request, tried, &mut realize),
        }
    }

    /// Gives a grant back: it may be granted again at once.
    ///
    /// # Errors
    /// [`GiveBackError`], with the grant, if it is another vector's or from before [`clear`](Self::clear).
    pub fn free(&mut self, granted: GrantOf<B, M>) -> Result<(), GiveBackError<GrantOf<B, M>>> {
        visit(&self.backing, &mut &mut self.core, |core, doomed| core.free(&self.backing, granted, doomed))
    }

    /// Gives a grant back once `ticket` is done: see [`collect`](Self::collect).
    ///
    /// # Errors
    /// As for [`free`](Self::free).
    pub fn retire(
        &mut self,
        ticket: Ticket,
        granted: GrantOf<B, M>,
    ) -> Result<(), GiveBackError<GrantOf<B, M>>> {
        self.core.retire(ticket, granted)
    }

    /// Takes back what waits for tickets that are done, and destroys what has been empty for longer than
    /// [`Policy::idle_collects`]. Returns how many grants came back.
    ///
    /// # Errors
    /// [`OtherClock`] if some wait for tickets of another clock. All else was collected nonetheless.
    pub fn collect(&mut self, clock: &ClockView) -> Result<usize, OtherClock> {
        visit(&self.backing, &mut &mut self.core, |core, doomed| core.collect(&self.backing, clock, doomed))
    }

    /// Destroys all empty blocks, but for the minimum. Returns how many.
    pub fn trim(&mut self) -> usize {
        let trimmed = self.core.trim();
        let count = trimmed.len();
        destroy_all(&self.backing, trimmed);
        count
    }

    /// Takes everything back at once, what waits for tickets included. Items are dropped and not
    /// [released](Backing::release); the blocks are [reset](Backing::reset). Returns how many grants there were: their
    /// handles are stale from here on.
    pub fn clear(&mut self) -> u64 {
        visit(&self.backing, &mut &mut self.core, |core, doomed| core.clear(&self.backing, doomed))
    }

    /// Grants nothing more in a block before it is empty, so that it becomes so. `false` if it is empty, or is not there.
    pub fn seal(&mut self, block: RegionId) -> bool {
        self.core.seal(block)
    }

    /// Where a grant is.
    ///
    /// # Errors
    /// [`HandleError`] if it is not one of this vector's, or not live.
    pub fn span(&self, key: VectorKey) -> Result<M::Span, HandleError> {
        self.core.span(key)
    }

    /// The block that a grant is in, and where in it.
    ///
    /// # Errors
    /// As for [`span`](Self::span).
    pub fn block(&self, key: VectorKey) -> Result<(&B::Block, M::Span), HandleError> {
        self.core.block(key)
    }

    /// The same, to be changed.
    ///
    /// # Errors
    /// As for [`span`](Self::span).
    pub fn block_mut(&mut self, key: VectorKey) -> Result<(&mut B::Block, M::Span), HandleError> {
        self.core.block_mut(key)
    }

    /// The landlord.
    pub fn backing(&self) -> &B {
        &self.backing
    }

    /// The engine, to be asked and not to be changed.
    pub fn engine(&self) -> &M {
        &self.core.engine
    }

    /// How many blocks there may be, and how many are kept.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.core.policy
    }

    /// Changes the policy, but not its minimum. It acts from the next call on. A maximum below what there is makes no
    /// block go that is in use: there is no further one before there is room for it below the maximum.
    ///
    /// # Errors
    /// [`PolicyError`] if the maximum is below the vector's minimum. Nothing is changed then.
    pub fn set_policy(&mut self, policy: Policy) -> Result<(), PolicyError> {
        self.core.set_policy(policy)
    }

    /// What the vector is called in messages.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.core.name.as_deref()
    }

    /// Calls the vector something.
    pub fn set_name(&mut self, name: Option<&str>) {
        self.core.name = name.map(Box::from);
    }

    /// How much there is, and how much of it is granted. O(1).
    #[must_use]
    pub fn statistics(&self) -> VectorStatistics {
        self.core.statistics()
    }

    /// The blocks, in the order of their regions.
    pub fn blocks(&self) -> impl Iterator<Item = (BlockInfo, &B::Block)> {
        self.core.blocks()
    }

    /// Shows what is in each block: see [`Metadata::walk`].
    pub fn walk(&self, mut visit: impl FnMut(BlockInfo, M::Chunk)) {
        for (info, _) in self.core.blocks() {
            self.core.engine.walk(info.region, &mut |chunk| visit(info, chunk));
        }
    }

    /// Checks the books. O(n), for tests and debugging.
    ///
    /// # Panics
    /// Names the invariant that is broken.
    pub fn validate(&self) {
        self.core.validate();
    }
}

impl<B: Backing<M>, M: RangeMetadata + Clone> BlockVector<B, M> {
    /// The block with the least in it whose contents fit into the others that are in use. `alignment` says what a grant
    /// with a tag has to be aligned to. Nothing is changed.
    ///
    /// # Complexity
    /// A copy of the engine for each block that is tried, of which there are 8 at most, and an allocation for each grant
    /// in it. Sealed blocks cost what is in them, however much they have free.
    pub fn plan_to_empty(&self, alignment: impl Fn(Tag) -> Alignment) -> Option<EmptyingPlan> {
        self.core.plan_to_empty(alignment)
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
        self.core.fmt_as("BlockVector", f)
    }
}
