//! Errors that return a move or an allocation.

use std::error::Error;
use std::fmt;

use super::Move;
use crate::allocation::Allocation;
use crate::defragment::MoveError;

/// A move was not completed. The error contains the move; neither it nor the allocation was changed.
///
/// ```
/// # use sublet::*; use ash::vk;
/// # let (gpu, allocator) = sublet::doc_example();
/// # let buffer_info = vk::BufferCreateInfo::default().size(1000).usage(vk::BufferUsageFlags::TRANSFER_DST);
/// # let named = AllocationCreateInfo { name: Some("mesh"), ..AllocationCreateInfo::new(MemoryUsage::Auto) };
/// # let (gone, hole) = unsafe { allocator.create_buffer(&buffer_info, &named) }?;
/// # let (buffer, mut allocation) = unsafe { allocator.create_buffer(&buffer_info, &named) }?;
/// # unsafe { allocator.destroy_buffer(gone, hole) }?;
/// # let mut defragmentation = allocator.begin_defragmentation(&DefragmentationInfo::default())?;
/// # let moved = defragmentation.begin_pass().and_then(|mut pass| pass.next()).ok_or("there is a hole before it")?;
/// let mut other = allocator.allocate_memory_pages(
///     &[vk::MemoryRequirements { size: 1, alignment: 1, memory_type_bits: !0 }],
///     &[AllocationCreateInfo::default()],
/// )?.remove(0);
/// // SAFETY: nothing is bound to it.
/// let error = unsafe { moved.complete(&mut other) }.unwrap_err();
/// assert!(matches!(error.error(), MoveError::WrongAllocation { .. }));
/// let moved = error.unfinished;
/// # drop(moved);
/// # unsafe { allocator.free_memory(other) }?;
/// # unsafe { allocator.destroy_buffer(buffer, allocation) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CompleteMoveError<'p> {
    /// The move that was not completed.
    pub unfinished: Move<'p>,
    pub(super) source: Box<MoveError>,
}

/// The allocation of a move was not freed. The error contains both, unchanged.
pub struct FreeMoveError<'p> {
    /// The move.
    pub unfinished: Move<'p>,
    /// The allocation that was not freed.
    pub allocation: Allocation,
    pub(super) source: Box<MoveError>,
}

impl CompleteMoveError<'_> {
    /// The reason.
    #[must_use]
    pub fn error(&self) -> MoveError {
        *self.source
    }
}

impl FreeMoveError<'_> {
    /// The reason.
    #[must_use]
    pub fn error(&self) -> MoveError {
        *self.source
    }
}

impl fmt::Debug for CompleteMoveError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompleteMoveError")
            .field("unfinished", &self.unfinished)
            .field("source", &self.source)
            .finish()
    }
}

impl fmt::Debug for FreeMoveError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FreeMoveError")
            .field("unfinished", &self.unfinished)
            .field("allocation", &self.allocation)
            .field("source", &self.source)
            .finish()
    }
}

impl From<CompleteMoveError<'_>> for MoveError {
    /// Drops the move, which rolls back.
    fn from(error: CompleteMoveError<'_>) -> Self {
        *error.source
    }
}

impl fmt::Display for CompleteMoveError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the move was not completed: {}", self.source)
    }
}

impl Error for CompleteMoveError<'_> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.source()
    }
}

impl fmt::Display for FreeMoveError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.allocation.describe(f)?;
        write!(f, " was not freed: {}", self.source)
    }
}

impl Error for FreeMoveError<'_> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.source()
    }
}
