//! Defragmentation: contexts, passes and moves.

mod errors;
mod moves;
mod open;
mod shared;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

pub use self::errors::{CompleteMoveError, FreeMoveError};
pub use self::moves::Move;
pub use self::open::{OpenDefragmentation, PlannedAllocationMove};
use self::shared::MoveContext;
pub use self::shared::SharedDefragmentation;
use super::Allocator;
use crate::defragment::{DefragmentationInfo, DefragmentationStatistics};
use crate::error::BeginDefragmentationError;

impl Allocator {
    /// Begins a defragmentation of default memory, pools, or both. Moves nothing yet; [`Defragmentation::begin_pass`]
    /// plans moves.
    ///
    /// Other threads may allocate and free at the same time. Dedicated allocations are never moved.
    ///
    /// # Errors
    /// [`BeginDefragmentationError`] if a pool belongs to another allocator, its algorithm does not support moves, or
    /// another context is active. Nothing was changed.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # let pool = allocator.create_pool(&PoolCreateInfo { block_size: 1 << 20, empty_blocks_kept: 0, ..PoolCreateInfo::new(0) })?;
    /// # let requirements = vk::MemoryRequirements { size: 300 << 10, alignment: 256, memory_type_bits: !0 };
    /// let mut allocations = Vec::new();
    /// for _ in 0..6 {
    ///     allocations.push(allocator.allocate_memory(&requirements, &AllocationCreateInfo::in_pool(&pool))?);
    /// }
    /// // Two blocks, of which one has room for what is left in the other.
    /// for freed in [4, 3, 1] {
    ///     // SAFETY: nothing was ever bound to it.
    ///     unsafe { allocator.free_memory(allocations.remove(freed)) }?;
    /// }
    /// let info = DefragmentationInfo { pools: &[&pool], ..Default::default() };
    /// let mut defragmentation = allocator.begin_defragmentation(&info)?;
    /// while let Some(pass) = defragmentation.begin_pass() {
    ///     for moved in pass {
    ///         // Here the program makes new resources, copies on the device, waits for that, and destroys the old ones.
    ///         let at = allocations.iter().position(|allocation| allocation.id() == moved.source()).unwrap();
    ///         // SAFETY: nothing is bound to it.
    ///         unsafe { moved.complete(&mut allocations[at]) }.map_err(MoveError::from)?;
    ///     }
    /// }
    /// assert_eq!(defragmentation.end().blocks_freed, 1);
    /// # for allocation in allocations { unsafe { allocator.free_memory(allocation) }?; }
    /// # unsafe { allocator.destroy_pool(pool) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begin_defragmentation<'a>(
        &'a self,
        info: &DefragmentationInfo<'a>,
    ) -> Result<Defragmentation<'a>, BeginDefragmentationError> {
        let open = self.open_defragmentation(info)?;
        Ok(Defragmentation { allocator: self, open: Some(open), break_callback: info.break_callback })
    }
}

/// A defragmentation context: created by [`Allocator::begin_defragmentation`], ended by [`Self::end`] or by dropping
/// it.
///
/// ```
/// # use sublet::*; use ash::vk;
/// # let (gpu, allocator) = sublet::doc_example();
/// let mut defragmentation = allocator.begin_defragmentation(&DefragmentationInfo::default())?;
/// assert!(defragmentation.begin_pass().is_none(), "there is nothing to move");
/// let other = allocator.begin_defragmentation(&DefragmentationInfo::default()).unwrap_err();
/// assert!(matches!(other, BeginDefragmentationError::InProgress { .. }), "one at a time");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping it ends it"]
pub struct Defragmentation<'a> {
    allocator: &'a Allocator,
    /// `None` once it has ended.
    open: Option<OpenDefragmentation>,
    break_callback: Option<&'a dyn Fn() -> bool>,
}

impl Defragmentation<'_> {
    /// Plans the next moves and reserves their destinations. Returns `None` if nothing is left to move, or if the break
    /// callback ended the pass before its first move. Also returns `None` if no move of the last pass was completed,
    /// ignored or freed.
    ///
    /// Each pass takes a new snapshot of the memory. If limits ended a pass early, the next pass continues.
    ///
    /// # Complexity
    /// O(n log n) for n allocations and blocks. Only the walk over them holds the locks.
    pub fn begin_pass(&mut self) -> Option<DefragmentationPass<'_>> {
        let callback = self.break_callback;
        let mut panicked = None;
        let mut stop = || {
            callback.is_some_and(|callback| {
                // The reserved destinations must be released before a panic continues.
                catch_unwind(AssertUnwindSafe(callback)).unwrap_or_else(|payload| {
                    panicked = Some(payload);
                    true
                })
            })
        };
        let planned = self.allocator.plan_moves(self.open.as_mut()?, &mut stop);
        let (allocator, open) = (self.allocator, self.open.as_ref()?);
        let moves: Vec<_> = planned
            .into_iter()
            .map(|planned| Move::new(MoveContext::Borrowed(allocator, open), planned))
            .collect();
        if let Some(payload) = panicked {
            drop(moves);
            resume_unwind(payload);
        }
        (!moves.is_empty()).then(|| DefragmentationPass { moves: moves.into_iter() })
    }

    /// The results so far.
    #[must_use]
    pub fn statistics(&self) -> DefragmentationStatistics {
        let open = self.open.as_ref();
        open.map(|open| self.allocator.defragmentation_statistics(open)).unwrap_or_default()
    }

    /// Ends the context, and returns its results.
    pub fn end(mut self) -> DefragmentationStatistics {
        let open = self.open.take();
        open.map(|open| self.allocator.close_defragmentation(open)).unwrap_or_default()
    }
}

impl Drop for Defragmentation<'_> {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            self.allocator.close_defragmentation(open);
        }
    }
}

impl fmt::Debug for Defragmentation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Defragmentation").field("statistics", &self.statistics()).finish_non_exhaustive()
    }
}

/// The moves of one pass. An iterator over them; dropping it rolls back the remaining ones.
///
/// ```
/// # use sublet::*; use ash::vk;
/// # let (gpu, allocator) = sublet::doc_example();
/// let mut defragmentation = allocator.begin_defragmentation(&DefragmentationInfo::default())?;
/// let bytes: u64 = defragmentation.begin_pass().into_iter().flatten().map(|moved| moved.size()).sum();
/// assert_eq!(bytes, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "the moves of a pass that is dropped roll back"]
pub struct DefragmentationPass<'p> {
    moves: std::vec::IntoIter<Move<'p>>,
}

impl<'p> DefragmentationPass<'p> {
    /// The moves that the iterator still has.
    pub fn moves(&self) -> &[Move<'p>] {
        self.moves.as_slice()
    }
}

impl<'p> Iterator for DefragmentationPass<'p> {
    type Item = Move<'p>;

    fn next(&mut self) -> Option<Self::Item> {
        self.moves.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.moves.size_hint()
    }
}

impl ExactSizeIterator for DefragmentationPass<'_> {}

impl fmt::Debug for DefragmentationPass<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.moves()).finish()
    }
}
