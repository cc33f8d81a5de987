//! A context without borrows, for programs whose moves take several frames.

use std::fmt;
use std::sync::Arc;

use super::{DefragmentationPass, Move, OpenDefragmentation};
use crate::allocator::Allocator;
use crate::defragment::{DefragmentationInfo, DefragmentationStatistics};
use crate::error::BeginDefragmentationError;

/// A context and its allocator. The context ends when the last reference is dropped.
pub(super) struct DefragmentationOwner {
    allocator: Arc<Allocator>,
    /// `None` once it has ended.
    open: Option<OpenDefragmentation>,
}

impl DefragmentationOwner {
    fn open(&self) -> &OpenDefragmentation {
        self.open.as_ref().expect("a context that is held is open")
    }
}

impl Drop for DefragmentationOwner {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            self.allocator.close_defragmentation(open);
        }
    }
}

/// The context of a move: borrowed from a [`Defragmentation`](super::Defragmentation), or shared.
pub(super) enum MoveContext<'p> {
    Borrowed(&'p Allocator, &'p OpenDefragmentation),
    Held(Arc<DefragmentationOwner>),
}

impl MoveContext<'_> {
    pub(super) fn allocator(&self) -> &Allocator {
        match self {
            Self::Borrowed(allocator, _) => allocator,
            Self::Held(held) => &held.allocator,
        }
    }

    pub(super) fn open(&self) -> &OpenDefragmentation {
        match self {
            Self::Borrowed(_, open) => open,
            Self::Held(held) => held.open(),
        }
    }
}

impl Allocator {
    /// [`begin_defragmentation`](Self::begin_defragmentation) for a program that stores the context and moves in its
    /// own structures, for as many frames as the copies take. Does not call the break callback of `info`.
    ///
    /// # Errors
    /// See [`begin_defragmentation`](Self::begin_defragmentation).
    pub fn begin_shared_defragmentation(
        self: &Arc<Self>,
        info: &DefragmentationInfo<'_>,
    ) -> Result<SharedDefragmentation, BeginDefragmentationError> {
        let open = Some(self.open_defragmentation(info)?);
        Ok(SharedDefragmentation {
            held: Arc::new(DefragmentationOwner { allocator: Arc::clone(self), open }),
        })
    }
}

/// A [`Defragmentation`](super::Defragmentation) that keeps its allocator alive: created by
/// [`Allocator::begin_shared_defragmentation`]. Its [`Move`]s borrow nothing.
///
/// It ends when it and all of its moves are dropped.
///
/// ```
/// # use sublet::*; use ash::vk;
/// # let (gpu, allocator) = sublet::doc_example();
/// # let allocator = std::sync::Arc::new(allocator);
/// # let buffer_info = vk::BufferCreateInfo::default().size(1000).usage(vk::BufferUsageFlags::TRANSFER_DST);
/// # let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
/// # let (gone, hole) = unsafe { allocator.create_buffer(&buffer_info, &auto) }?;
/// # let (buffer, mut allocation) = unsafe { allocator.create_buffer(&buffer_info, &auto) }?;
/// # unsafe { allocator.destroy_buffer(gone, hole) }?;
/// struct Renderer {
///     tidying: SharedDefragmentation,
///     moves: Vec<Move<'static>>,
/// }
/// let tidying = allocator.begin_shared_defragmentation(&DefragmentationInfo::default())?;
/// let mut renderer = Renderer { tidying, moves: Vec::new() };
/// renderer.moves.extend(renderer.tidying.begin_pass().into_iter().flatten());
/// assert_eq!((renderer.moves.len(), renderer.tidying.has_moves()), (1, true));
/// assert!(renderer.tidying.begin_pass().is_none(), "the move is not resolved");
/// renderer.moves.clear(); // rolls back
/// assert!(!renderer.tidying.has_moves());
/// # unsafe { allocator.destroy_buffer(buffer, allocation) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping it ends it"]
pub struct SharedDefragmentation {
    held: Arc<DefragmentationOwner>,
}

impl SharedDefragmentation {
    /// Like [`Defragmentation::begin_pass`](super::Defragmentation::begin_pass). Also returns `None` while
    /// [`has_moves`](Self::has_moves) is true.
    ///
    /// # Complexity
    /// See [`Defragmentation::begin_pass`](super::Defragmentation::begin_pass).
    pub fn begin_pass(&mut self) -> Option<DefragmentationPass<'static>> {
        let DefragmentationOwner { allocator, open } = Arc::get_mut(&mut self.held)?;
        let planned = allocator.plan_moves(open.as_mut()?, &mut || false).into_iter();
        let home = |held| MoveContext::Held(Arc::clone(held));
        let moves: Vec<_> = planned.map(|planned| Move::new(home(&self.held), planned)).collect();
        (!moves.is_empty()).then(|| DefragmentationPass { moves: moves.into_iter() })
    }

    /// Returns true if moves of the last pass are neither resolved nor dropped. The next pass must wait for them.
    #[must_use]
    pub fn has_moves(&self) -> bool {
        Arc::strong_count(&self.held) > 1
    }

    /// The results so far.
    #[must_use]
    pub fn statistics(&self) -> DefragmentationStatistics {
        self.held.allocator.defragmentation_statistics(self.held.open())
    }
}

impl fmt::Debug for SharedDefragmentation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedDefragmentation")
            .field("statistics", &self.statistics())
            .finish_non_exhaustive()
    }
}
