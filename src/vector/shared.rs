//! A vector for several threads.

use std::fmt;

use super::backing::{
    Backing, BlockInfo, GiveBackError, GrantOf, HandleError, Refusal, VectorError, VectorKey,
    VectorStatistics,
};
use super::grow::{StateAccess, destroy_all, grow, grow_for, visit};
use super::plan::EmptyingPlan;
use super::policy::{Policy, PolicyError};
use super::state::{BlockVectorState, PlacementResult};
use crate::base::sync::Mutex;
use crate::retire::{ClockView, OtherClock, Ticket};
use sublet_engines::{Alignment, Metadata, RangeMetadata, RegionId, Tag};

/// A [`BlockVector`](super::BlockVector) with locks: one for its state, and one for creating blocks.
///
/// While a thread creates a block, other threads allocate from existing blocks and free. A thread that finds no room
/// takes the growth lock, **tries again**, and only then creates a block. So if many threads find the vector full at
/// once, they create one block instead of one each.
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
/// let vector: SharedBlockVector<_, _> = SharedBlockVector::new(Plain, Tlsf::exact(64), Policy::default())?;
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| vector.free(vector.allocate(&Request::new(10, Alignment::ONE)).unwrap()).unwrap());
///     }
/// });
/// assert_eq!((vector.statistics().blocks, vector.statistics().live), (1, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SharedBlockVector<B: Backing<M>, M: Metadata> {
    backing: B,
    core: Mutex<BlockVectorState<B, M>>,
    growth: Mutex<()>,
}

/// The lock of the state, held while a closure runs.
struct LockedState<'a, B: Backing<M>, M: Metadata>(&'a Mutex<BlockVectorState<B, M>>);

impl<B: Backing<M>, M: Metadata> StateAccess<B, M> for LockedState<'_, B, M> {
    fn enter<R>(&mut self, visit: impl FnOnce(&mut BlockVectorState<B, M>) -> R) -> R {
        visit(&mut self.0.lock())
    }
}

impl<B: Backing<M>, M: Metadata> SharedBlockVector<B, M> {
    /// Creates a vector with its first blocks. The engine has no regions yet.
    ///
    /// # Errors
    /// [`VectorError`] if one of the first blocks could not be created, or exceeds the limits. Then none stays.
    pub fn new(backing: B, engine: M, policy: Policy) -> Result<Self, VectorError<B::Error>> {
        policy.check().map_err(VectorError::Policy)?;
        let core = BlockVectorState::new(engine, Policy { min_blocks: 0, ..policy });
        let vector = Self { backing, core: Mutex::new(core), growth: Mutex::new(()) };
        for _ in 0..policy.min_blocks {
            grow(&vector.backing, &mut vector.lock_state(), None, |_, _| Ok(()))?;
        }
        vector.core.lock().policy = policy;
        Ok(vector)
    }

    fn lock_state(&self) -> LockedState<'_, B, M> {
        LockedState(&self.core)
    }

    /// Grants a request, from a block that has room or from a new one.
    ///
    /// # Errors
    /// [`VectorError`]; nothing was granted, and no block that was made for it stays.
    ///
    /// # Complexity
    /// That of the engine while there is room. If a block is created: O(blocks) and a call of the block source.
    pub fn allocate(&self, request: &M::Request) -> Result<GrantOf<B, M>, VectorError<B::Error>> {
        self.allocate_with(request, B::realize)
    }

    /// [`Self::allocate`] with a closure that makes the item, if that depends on more than the span. Holds the lock of
    /// the state meanwhile.
    ///
    /// # Errors
    /// See [`Self::allocate`].
    pub fn allocate_with(
        &self,
        request: &M::Request,
        mut realize: impl FnMut(&B, &mut B::Block, &M::Span) -> Result<B::Item, Refusal<B::Error>>,
    ) -> Result<GrantOf<B, M>, VectorError<B::Error>> {
        let (backing, mut access) = (&self.backing, self.lock_state());
        let mut realize = |block: &mut B::Block, span: &M::Span| realize(backing, block, span);
        let mut tried = 0;
        let mut look = |tried: &mut u32| {
            let placed = visit(backing, &mut self.lock_state(), |core, doomed| {
                core.allocate(request, &mut realize, doomed)
            })?;
            Ok(match placed {
                PlacementResult::Granted(granted) => Some(granted),
                PlacementResult::NoRoom { tried: again } => {
                    *tried += again;
                    None
                }
            })
        };
        if let Some(granted) = look(&mut tried)? {
            return Ok(granted);
        }
        let _growing = self.growth.lock();
        if let Some(granted) = look(&mut tried)? {
            return Ok(granted);
        }
        grow_for(backing, &mut access, request, tried, &mut realize)
    }

    /// Frees a grant. Its span may be granted again at once.
    ///
    /// # Errors
    /// [`GiveBackError`], with the grant, if it belongs to another vector or is older than a [`clear`](Self::clear).
    pub fn free(&self, granted: GrantOf<B, M>) -> Result<(), GiveBackError<GrantOf<B, M>>> {
        visit(&self.backing, &mut self.lock_state(), |core, doomed| core.free(&self.backing, granted, doomed))
    }

    /// Frees a grant once `ticket` is done: see [`collect`](Self::collect).
    ///
    /// # Errors
    /// See [`free`](Self::free).
    pub fn retire(&self, ticket: Ticket, granted: GrantOf<B, M>) -> Result<(), GiveBackError<GrantOf<B, M>>> {
        self.core.lock().retire(ticket, granted)
    }

    /// Frees the grants whose tickets are done, and destroys blocks that have been empty for longer than
    /// [`Policy::idle_collects`]. Returns the number of freed grants.
    ///
    /// # Errors
    /// [`OtherClock`] if some grants wait for tickets of another clock. Everything else was collected nonetheless.
    pub fn collect(&self, clock: &ClockView) -> Result<usize, OtherClock> {
        visit(&self.backing, &mut self.lock_state(), |core, doomed| {
            core.collect(&self.backing, clock, doomed)
        })
    }

    /// Destroys all empty blocks, except for the minimum. Returns their number.
    pub fn trim(&self) -> usize {
        let trimmed = self.core.lock().trim();
        let count = trimmed.len();
        destroy_all(&self.backing, trimmed);
        count
    }

    /// Frees everything at once, including grants that wait for tickets. Drops items without
    /// [releasing](Backing::release) them, and [resets](Backing::reset) the blocks. Returns the number of grants, whose
    /// keys are stale afterwards.
    pub fn clear(&self) -> u64 {
        visit(&self.backing, &mut self.lock_state(), |core, doomed| core.clear(&self.backing, doomed))
    }

    /// Closes a block: nothing more is granted in it until it is empty. Returns false if it is empty, or does not
    /// exist.
    pub fn seal(&self, block: RegionId) -> bool {
        self.core.lock().seal(block)
    }

    /// The span of a grant.
    ///
    /// # Errors
    /// [`HandleError`] if the key belongs to another vector, or is not live.
    pub fn span(&self, key: VectorKey) -> Result<M::Span, HandleError> {
        self.core.lock().span(key)
    }

    /// Calls `visit` with the block and the span of a grant. Holds the lock of the state meanwhile.
    ///
    /// # Errors
    /// See [`span`](Self::span).
    pub fn with_block<R>(
        &self,
        key: VectorKey,
        visit: impl FnOnce(&mut B::Block, M::Span) -> R,
    ) -> Result<R, HandleError> {
        self.core.lock().block_mut(key).map(|(block, span)| visit(block, span))
    }

    /// The block source.
    pub fn backing(&self) -> &B {
        &self.backing
    }

    /// The limits on blocks, and the number of blocks kept.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.core.lock().policy
    }

    /// Changes the policy: see [`BlockVector::set_policy`](super::BlockVector::set_policy).
    ///
    /// # Errors
    /// See [`BlockVector::set_policy`](super::BlockVector::set_policy).
    pub fn set_policy(&self, policy: Policy) -> Result<(), PolicyError> {
        self.core.lock().set_policy(policy)
    }

    /// The vector's name in messages.
    #[must_use]
    pub fn name(&self) -> Option<Box<str>> {
        self.core.lock().name.clone()
    }

    /// Sets the vector's name.
    pub fn set_name(&self, name: Option<&str>) {
        self.core.lock().name = name.map(Box::from);
    }

    /// The number of blocks, grants and units. O(1).
    #[must_use]
    pub fn statistics(&self) -> VectorStatistics {
        self.core.lock().statistics()
    }

    /// Visits the contents of each block: see [`Metadata::walk`]. Holds the lock of the state meanwhile.
    pub fn walk(&self, mut visit: impl FnMut(BlockInfo, M::Chunk)) {
        let core = self.core.lock();
        for (info, _) in core.blocks() {
            core.engine.walk(info.region, &mut |chunk| visit(info, chunk));
        }
    }

    /// Checks the state. O(n), for tests and debugging.
    ///
    /// # Panics
    /// Panics with the violated invariant.
    pub fn validate(&self) {
        self.core.lock().validate();
    }
}

impl<B: Backing<M>, M: RangeMetadata + Clone> SharedBlockVector<B, M> {
    /// Like [`BlockVector::plan_to_empty`](super::BlockVector::plan_to_empty). Holds the lock of the state meanwhile.
    /// Grants that another thread frees later are stale in the plan.
    pub fn plan_to_empty(&self, alignment: impl Fn(Tag) -> Alignment) -> Option<EmptyingPlan> {
        self.core.lock().plan_to_empty(alignment)
    }
}

impl<B: Backing<M>, M: Metadata> Drop for SharedBlockVector<B, M> {
    fn drop(&mut self) {
        self.core.get_mut().policy.min_blocks = 0;
        self.trim();
    }
}

impl<B: Backing<M>, M: Metadata> fmt::Debug for SharedBlockVector<B, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.lock().fmt_as("SharedBlockVector", f)
    }
}
