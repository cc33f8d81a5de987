//! Defragmentation: contexts, passes and moves.

mod open;

use std::error::Error;
use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;

use ash::vk;

pub(crate) use self::open::{OpenDefragmentation, PlannedMove};
use super::Allocator;
use crate::allocation::{Allocation, AllocationId, ResourceKind};
use crate::base::sync::{Shared, Threading};
use crate::defragment::{DefragmentationInfo, DefragmentationStatistics, MoveError};
use crate::device::BufferOrImage;
use crate::error::{BeginDefragmentationError, BindError, CreateError};

impl<T: Threading> Allocator<T> {
    /// Begins to defragment: default memory, pools, or both. Nothing is moved yet; [`Defragmentation::begin_pass`] says what
    /// could be.
    ///
    /// Other threads may go on allocating and freeing all the while. Dedicated allocations are never moved.
    ///
    /// # Errors
    /// [`BeginDefragmentationError`] if a pool is another allocator's, or of an algorithm in which nothing can be moved, or
    /// where another context works already. Nothing was begun then.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
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
    ) -> Result<Defragmentation<'a, T>, BeginDefragmentationError> {
        let open = self.open_defragmentation(info)?;
        Ok(Defragmentation { allocator: self, open: Some(open), break_callback: info.break_callback })
    }
}

/// A context for defragmentation: made by [`Allocator::begin_defragmentation`], ended by [`Self::end`] or by dropping it.
///
/// ```
/// # use sublet::*; use ash::vk;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// let mut defragmentation = allocator.begin_defragmentation(&DefragmentationInfo::default())?;
/// assert!(defragmentation.begin_pass().is_none(), "there is nothing to move");
/// let other = allocator.begin_defragmentation(&DefragmentationInfo::default()).unwrap_err();
/// assert!(matches!(other, BeginDefragmentationError::InProgress { .. }), "one at a time");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping it ends it"]
pub struct Defragmentation<'a, T: Threading = Shared> {
    allocator: &'a Allocator<T>,
    /// `None` once it has ended.
    open: Option<OpenDefragmentation>,
    break_callback: Option<&'a dyn Fn() -> bool>,
}

impl<T: Threading> Defragmentation<'_, T> {
    /// Plans what to move next, and sets aside where to. `None`: nothing is left to be moved, the break callback ended the pass
    /// before its first move, or of the last pass no move was completed, ignored or freed.
    ///
    /// Each pass looks at the memory anew. A pass that limits have cut short is followed by one that goes on.
    ///
    /// # Complexity
    /// O(n log n) for n allocations and blocks, of which the walk over them is under the lock.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// let mut defragmentation = allocator.begin_defragmentation(&DefragmentationInfo::default())?;
    /// assert!(defragmentation.begin_pass().is_none(), "there is nothing to move");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begin_pass(&mut self) -> Option<DefragmentationPass<'_, T>> {
        let callback = self.break_callback;
        let mut stop = || callback.is_some_and(|callback| callback());
        let planned = self.allocator.plan_moves(self.open.as_mut()?, &mut stop);
        let (allocator, open) = (self.allocator, self.open.as_ref()?);
        let moves: Vec<_> =
            planned.into_iter().map(|planned| Move { allocator, open, planned: Some(planned) }).collect();
        (!moves.is_empty()).then(|| DefragmentationPass { moves: moves.into_iter() })
    }

    /// What came of it so far.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// let defragmentation = allocator.begin_defragmentation(&DefragmentationInfo::default())?;
    /// assert_eq!(defragmentation.statistics().allocations_moved, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn statistics(&self) -> DefragmentationStatistics {
        let open = self.open.as_ref();
        open.map(|open| self.allocator.defragmentation_statistics(open)).unwrap_or_default()
    }

    /// Ends the context, and says what came of it.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// let defragmentation = allocator.begin_defragmentation(&DefragmentationInfo::default())?;
    /// assert_eq!(defragmentation.end().bytes_freed, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn end(mut self) -> DefragmentationStatistics {
        let open = self.open.take();
        open.map(|open| self.allocator.close_defragmentation(open)).unwrap_or_default()
    }
}

impl<T: Threading> Drop for Defragmentation<'_, T> {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            self.allocator.close_defragmentation(open);
        }
    }
}

impl<T: Threading> fmt::Debug for Defragmentation<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Defragmentation").field("statistics", &self.statistics()).finish_non_exhaustive()
    }
}

/// The moves of one pass. It is an iterator over them; those that it still has when it is dropped roll back.
///
/// ```
/// # use sublet::*; use ash::vk;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// let mut defragmentation = allocator.begin_defragmentation(&DefragmentationInfo::default())?;
/// let bytes: u64 = defragmentation.begin_pass().into_iter().flatten().map(|moved| moved.size()).sum();
/// assert_eq!(bytes, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "the moves of a pass that is dropped roll back"]
pub struct DefragmentationPass<'p, T: Threading = Shared> {
    moves: std::vec::IntoIter<Move<'p, T>>,
}

impl<'p, T: Threading> DefragmentationPass<'p, T> {
    /// The moves that the iterator still has.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// let mut defragmentation = allocator.begin_defragmentation(&DefragmentationInfo::default())?;
    /// if let Some(pass) = defragmentation.begin_pass() {
    ///     println!("{} moves, the first of {} bytes", pass.len(), pass.moves()[0].size());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn moves(&self) -> &[Move<'p, T>] {
        self.moves.as_slice()
    }
}

impl<'p, T: Threading> Iterator for DefragmentationPass<'p, T> {
    type Item = Move<'p, T>;

    fn next(&mut self) -> Option<Self::Item> {
        self.moves.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.moves.size_hint()
    }
}

impl<T: Threading> ExactSizeIterator for DefragmentationPass<'_, T> {}

/// One allocation that is to be moved, and the place that is set aside for it.
///
/// The program makes a buffer or image like the old one on the new place ([`Self::create_buffer`], [`Self::create_image`], or its
/// own call and [`Self::bind_buffer_memory`], [`Self::bind_image_memory`]), copies on the device, waits until the device is done
/// with the old one, destroys that, and [completes](Self::complete) the move. In memory that is mapped it may copy through
/// [`Self::mapped_pointer`] instead.
///
/// A move that is dropped rolls back: the new place is free again, and the allocation stays where it is. The allocation may be
/// freed while it is to be moved, by any thread; its move can only be dropped then.
///
/// See [`Allocator::begin_defragmentation`] for an example.
#[must_use = "a move that is dropped rolls back"]
pub struct Move<'p, T: Threading = Shared> {
    allocator: &'p Allocator<T>,
    open: &'p OpenDefragmentation,
    /// `None` once it is resolved.
    planned: Option<PlannedMove>,
}

/// A move was not completed. It is given back, and neither it nor the allocation was changed.
pub struct CompleteMoveError<'p, T: Threading = Shared> {
    /// What was to be completed.
    pub unfinished: Move<'p, T>,
    source: MoveError,
}

/// The allocation of a move was not freed. Both are given back, unchanged.
pub struct FreeMoveError<'p, T: Threading = Shared> {
    /// The move.
    pub unfinished: Move<'p, T>,
    /// What was to be freed.
    pub allocation: Allocation,
    source: MoveError,
}

impl<T: Threading> CompleteMoveError<'_, T> {
    /// Why.
    #[must_use]
    pub fn error(&self) -> MoveError {
        self.source
    }
}

impl<T: Threading> FreeMoveError<'_, T> {
    /// Why.
    #[must_use]
    pub fn error(&self) -> MoveError {
        self.source
    }
}

impl<'p, T: Threading> Move<'p, T> {
    /// A move is resolved by consuming it, so that whoever has one can look.
    fn planned(&self) -> &PlannedMove {
        self.planned.as_ref().expect("a move that was not resolved")
    }

    /// The allocation that is to be moved: its [`Allocation::id`].
    #[must_use]
    pub fn source(&self) -> AllocationId {
        self.planned().source()
    }

    /// The name of the allocation, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.planned().planned.record.name.as_deref()
    }

    /// The caller's own number with the allocation, where [`Tracking::USER_DATA`](crate::Tracking::USER_DATA) is on.
    #[must_use]
    pub fn user_data(&self) -> Option<u64> {
        self.planned().planned.record.user_data
    }

    /// What the allocation is for, as far as the allocator was told.
    #[must_use]
    pub fn kind(&self) -> ResourceKind {
        ResourceKind::of(self.planned().planned.tag)
    }

    /// Bytes that the allocation takes, rounding included.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.planned().planned.size
    }

    /// Index of the memory type, of the old place and of the new one.
    #[must_use]
    pub fn memory_type_index(&self) -> u32 {
        self.planned().memory_type
    }

    /// The device memory that the new place is in.
    #[must_use]
    pub fn memory(&self) -> vk::DeviceMemory {
        self.planned().planned.memory
    }

    /// Where the new place is, in bytes from the start of [`Self::memory`].
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.planned().planned.offset
    }

    /// Where the new place is mapped, if the old one is. The pointer is valid until the move is resolved; if it is completed
    /// and the allocation is persistently mapped, for as long as that is.
    #[must_use]
    pub fn mapped_pointer(&self) -> Option<NonNull<c_void>> {
        self.planned().planned.mapped.get().map(NonNull::cast)
    }

    /// Creates a buffer on the new place.
    ///
    /// # Errors
    /// [`CreateError`] if the driver creates or binds none; nothing is left behind.
    ///
    /// # Safety
    /// 1. `buffer_info` is the one of the buffer that is bound to the allocation: buffers that are created alike have the same
    ///    requirements (VUID-vkBindBufferMemory-memoryOffset-01036, -size-01037).
    /// 2. The buffer is destroyed, or not used any more, before the move is dropped or ignored.
    pub unsafe fn create_buffer(
        &self,
        buffer_info: &vk::BufferCreateInfo<'_>,
    ) -> Result<vk::Buffer, CreateError> {
        let device = &self.allocator.inner.context.device;
        // SAFETY: the caller's own promise.
        let buffer = unsafe { device.create_buffer(buffer_info) }.map_err(CreateError::Resource)?;
        // SAFETY: the buffer was created just now, and is like the one that has been bound to the allocation.
        match unsafe { self.bind(BufferOrImage::Buffer(buffer)) } {
            Ok(()) => Ok(buffer),
            Err(error) => {
                // SAFETY: the buffer was created just now and nobody has used it.
                unsafe { device.destroy_buffer(buffer) };
                Err(CreateError::Bind(error))
            }
        }
    }

    /// Creates an image on the new place.
    ///
    /// # Errors
    /// [`CreateError`] if the driver creates or binds none; nothing is left behind.
    ///
    /// # Safety
    /// 1. `image_info` is the one of the image that is bound to the allocation: images that are created alike have the same
    ///    requirements (VUID-vkBindImageMemory-memoryOffset-01048, -size-01049).
    /// 2. The image is destroyed, or not used any more, before the move is dropped or ignored.
    pub unsafe fn create_image(
        &self,
        image_info: &vk::ImageCreateInfo<'_>,
    ) -> Result<vk::Image, CreateError> {
        let device = &self.allocator.inner.context.device;
        // SAFETY: the caller's own promise.
        let image = unsafe { device.create_image(image_info) }.map_err(CreateError::Resource)?;
        // SAFETY: the image was created just now, and is like the one that has been bound to the allocation.
        match unsafe { self.bind(BufferOrImage::Image(image)) } {
            Ok(()) => Ok(image),
            Err(error) => {
                // SAFETY: the image was created just now and nobody has used it.
                unsafe { device.destroy_image(image) };
                Err(CreateError::Bind(error))
            }
        }
    }

    /// Binds a buffer to the new place.
    ///
    /// # Errors
    /// [`BindError`] if the driver refuses.
    ///
    /// # Safety
    /// 1. The buffer is of the allocator's device, not bound, and has the requirements of the one that is bound to the allocation
    ///    (VUID-vkBindBufferMemory-memory-01035, -memoryOffset-01036, -size-01037).
    /// 2. It is destroyed, or not used any more, before the move is dropped or ignored.
    pub unsafe fn bind_buffer_memory(&self, buffer: vk::Buffer) -> Result<(), BindError> {
        // SAFETY: the caller's own promise.
        unsafe { self.bind(BufferOrImage::Buffer(buffer)) }.map_err(BindError::Driver)
    }

    /// Binds an image to the new place.
    ///
    /// # Errors
    /// [`BindError`] if the driver refuses.
    ///
    /// # Safety
    /// 1. The image is of the allocator's device, not bound, and has the requirements of the one that is bound to the allocation
    ///    (VUID-vkBindImageMemory-memory-01047, -memoryOffset-01048, -size-01049).
    /// 2. It is destroyed, or not used any more, before the move is dropped or ignored.
    pub unsafe fn bind_image_memory(&self, image: vk::Image) -> Result<(), BindError> {
        // SAFETY: the caller's own promise.
        unsafe { self.bind(BufferOrImage::Image(image)) }.map_err(BindError::Driver)
    }

    /// # Safety
    /// As for [`Self::bind_buffer_memory`].
    unsafe fn bind(&self, resource: BufferOrImage) -> Result<(), crate::device::DriverError> {
        let device = &self.allocator.inner.context.device;
        // SAFETY: the caller's own promise; the memory is live because the place in it is set aside.
        unsafe { device.bind(resource, self.memory(), self.offset(), std::ptr::null()) }
    }

    /// Completes the move: the allocation has its new place, and the old one is free. It keeps its size, name, user data and
    /// flags; its [`id`](Allocation::id), memory and offset are new ones, and so is the pointer if it is persistently mapped.
    ///
    /// # Errors
    /// [`CompleteMoveError`] has the move again. `allocation` is not the one that is moved, is gone, or cannot be mapped.
    ///
    /// # Safety
    /// The device no longer uses the memory at the old place, and what is bound to it is not used again
    /// (VUID-vkFreeMemory-memory-00677).
    pub unsafe fn complete(mut self, allocation: &mut Allocation) -> Result<(), CompleteMoveError<'p, T>> {
        match self.allocator.complete_move(self.open, self.planned(), allocation, 0) {
            Ok(()) => {
                self.planned = None;
                Ok(())
            }
            Err(source) => Err(CompleteMoveError { unfinished: self, source }),
        }
    }

    /// Leaves the allocation where it is, and everything else in its block: nothing more is moved out of that by this context.
    /// To drop the move does not say that.
    pub fn ignore(mut self) {
        if let Some(planned) = self.planned.take() {
            self.allocator.ignore_move(self.open, &planned);
        }
    }

    /// Frees the allocation instead of moving it.
    ///
    /// # Errors
    /// [`FreeMoveError`] has both again. The allocation is not the one that is moved, or is gone.
    ///
    /// # Safety
    /// As for [`Allocator::free_memory`].
    pub unsafe fn free(mut self, allocation: Allocation) -> Result<(), FreeMoveError<'p, T>> {
        match self.allocator.free_move(self.open, self.planned(), &allocation, 0) {
            Ok(()) => {
                self.planned = None;
                Ok(())
            }
            Err(source) => Err(FreeMoveError { unfinished: self, allocation, source }),
        }
    }
}

impl<T: Threading> Drop for Move<'_, T> {
    fn drop(&mut self) {
        if let Some(planned) = self.planned.take() {
            self.allocator.roll_back_move(self.open, &planned);
        }
    }
}

impl<T: Threading> fmt::Debug for Move<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Move")
            .field("source", &self.source())
            .field("memory", &self.memory())
            .field("offset", &self.offset())
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}

impl<T: Threading> fmt::Debug for DefragmentationPass<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.moves()).finish()
    }
}

impl<T: Threading> fmt::Debug for CompleteMoveError<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompleteMoveError")
            .field("unfinished", &self.unfinished)
            .field("source", &self.source)
            .finish()
    }
}

impl<T: Threading> fmt::Debug for FreeMoveError<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FreeMoveError")
            .field("unfinished", &self.unfinished)
            .field("allocation", &self.allocation)
            .field("source", &self.source)
            .finish()
    }
}

impl<T: Threading> From<CompleteMoveError<'_, T>> for MoveError {
    /// Drops the move, which rolls back.
    fn from(error: CompleteMoveError<'_, T>) -> Self {
        error.source
    }
}

impl<T: Threading> fmt::Display for CompleteMoveError<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the move was not completed")
    }
}

impl<T: Threading> Error for CompleteMoveError<'_, T> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}

impl<T: Threading> fmt::Display for FreeMoveError<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the allocation was not freed")
    }
}

impl<T: Threading> Error for FreeMoveError<'_, T> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}
