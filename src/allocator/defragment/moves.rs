//! One move of a pass.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;

use ash::vk;

use super::shared::MoveContext;
use super::{CompleteMoveError, FreeMoveError, PlannedAllocationMove};
use crate::allocation::{Allocation, AllocationId, ResourceKind};
use crate::device::{BufferOrImage, DriverError};
use crate::error::{BindError, CreateError};

/// A planned move of one allocation, with a reserved destination.
///
/// The program creates a buffer or image like the old one at the destination, with [`Self::create_buffer`],
/// [`Self::create_image`], or its own call and [`Self::bind_buffer_memory`], [`Self::bind_image_memory`]. It copies on
/// the device, waits until the device is done with the old one, destroys that, and [completes](Self::complete) the
/// move. In mapped memory it may copy through [`Self::mapped_pointer`] instead.
///
/// Dropping a move rolls it back: the destination is free again, and the allocation stays in place. Any thread may free
/// the allocation meanwhile; its move can then only be dropped.
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
/// assert_eq!((moved.source(), moved.name()), (allocation.id(), Some("mesh")));
/// drop(moved);
/// # unsafe { allocator.destroy_buffer(buffer, allocation) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a move that is dropped rolls back"]
#[doc(alias = "DEFRAGMENTATION_MOVE")]
pub struct Move<'p> {
    home: MoveContext<'p>,
    /// `None` once it is resolved.
    planned: Option<Box<PlannedAllocationMove>>,
}

impl<'p> Move<'p> {
    pub(super) fn new(home: MoveContext<'p>, planned: PlannedAllocationMove) -> Self {
        Self { home, planned: Some(Box::new(planned)) }
    }

    /// Resolving a move consumes it, so an existing move has a plan.
    fn planned(&self) -> &PlannedAllocationMove {
        self.planned.as_ref().expect("a move that was not resolved")
    }

    /// The allocation of the move: its [`Allocation::id`].
    #[must_use]
    pub fn source(&self) -> AllocationId {
        self.planned().source()
    }

    /// The name of the allocation, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.planned().planned.annotation.name.as_deref()
    }

    /// The caller's own number of the allocation, if [`Tracking::USER_DATA`](crate::Tracking::USER_DATA) is on.
    #[must_use]
    pub fn user_data(&self) -> Option<u64> {
        self.planned().planned.annotation.user_data
    }

    /// The kind of resource, as far as known.
    #[must_use]
    pub fn kind(&self) -> ResourceKind {
        ResourceKind::of(self.planned().planned.tag)
    }

    /// Bytes of the allocation, rounding included.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.planned().planned.size
    }

    /// Index of the memory type of source and destination.
    #[must_use]
    pub fn memory_type_index(&self) -> u32 {
        self.planned().memory_type
    }

    /// The device memory of the source. If the program cannot move an allocation, it should ignore all moves out of the
    /// same memory, which stays in use anyway.
    #[must_use]
    pub fn source_memory(&self) -> vk::DeviceMemory {
        self.planned().planned.source_memory
    }

    /// The device memory of the destination.
    #[must_use]
    pub fn memory(&self) -> vk::DeviceMemory {
        self.planned().planned.memory
    }

    /// The destination, in bytes from the start of [`Self::memory`].
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.planned().planned.offset
    }

    /// The mapped address of the destination, if the source is mapped. The pointer is valid until the move is resolved.
    /// If the move is completed and the allocation is persistently mapped, it stays valid as long as the mapping.
    #[must_use]
    pub fn mapped_pointer(&self) -> Option<NonNull<c_void>> {
        self.planned().planned.mapped.get().map(NonNull::cast)
    }

    /// Creates a buffer at the destination.
    ///
    /// # Errors
    /// [`CreateError`] if the driver cannot create or bind it; nothing is left behind.
    ///
    /// # Safety
    /// 1. `buffer_info` is that of the buffer that is bound to the allocation: buffers with equal create-infos have
    ///    equal requirements (VUID-vkBindBufferMemory-memoryOffset-01036, -size-01037).
    /// 2. The buffer is destroyed, or no longer used, before the move is dropped or ignored.
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
    /// // SAFETY: `buffer_info` is what the buffer was made with.
    /// let new = unsafe { moved.create_buffer(&buffer_info) }?;
    /// // SAFETY: the device is done with it.
    /// unsafe { gpu.device().destroy_buffer(buffer, None) };
    /// // SAFETY: as above.
    /// unsafe { moved.complete(&mut allocation) }.map_err(MoveError::from)?;
    /// # let buffer = new;
    /// # unsafe { allocator.destroy_buffer(buffer, allocation) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn create_buffer(
        &self,
        buffer_info: &vk::BufferCreateInfo<'_>,
    ) -> Result<vk::Buffer, CreateError> {
        self.home.allocator().check_buffer_size(buffer_info)?;
        let device = &self.home.allocator().inner.context.device;
        // SAFETY: the caller's promise: `buffer_info` is valid for the device.
        let buffer = unsafe { device.create_buffer(buffer_info) }.map_err(CreateError::Resource)?;
        // SAFETY: the buffer was created just now, and is like the one that is bound to the allocation.
        match unsafe { self.bind(BufferOrImage::Buffer(buffer)) } {
            Ok(()) => Ok(buffer),
            Err(error) => {
                // SAFETY: the buffer was created just now, and nobody has used it.
                unsafe { device.destroy_buffer(buffer) };
                Err(CreateError::Bind(error))
            }
        }
    }

    /// Creates an image at the destination.
    ///
    /// # Errors
    /// [`CreateError`] if the driver cannot create or bind it; nothing is left behind.
    ///
    /// # Safety
    /// 1. `image_info` is that of the image that is bound to the allocation: images with equal create-infos have equal
    ///    requirements (VUID-vkBindImageMemory-memoryOffset-01048, -size-01049).
    /// 2. The image is destroyed, or no longer used, before the move is dropped or ignored.
    pub unsafe fn create_image(
        &self,
        image_info: &vk::ImageCreateInfo<'_>,
    ) -> Result<vk::Image, CreateError> {
        let device = &self.home.allocator().inner.context.device;
        // SAFETY: the caller's promise: `image_info` is valid for the device.
        let image = unsafe { device.create_image(image_info) }.map_err(CreateError::Resource)?;
        // SAFETY: the image was created just now, and is like the one that is bound to the allocation.
        match unsafe { self.bind(BufferOrImage::Image(image)) } {
            Ok(()) => Ok(image),
            Err(error) => {
                // SAFETY: the image was created just now, and nobody has used it.
                unsafe { device.destroy_image(image) };
                Err(CreateError::Bind(error))
            }
        }
    }

    /// Binds a buffer to the destination.
    ///
    /// # Errors
    /// [`BindError`] if the driver refuses.
    ///
    /// # Safety
    /// 1. The buffer belongs to the allocator's device and is not bound. It has the requirements of the one that is
    ///    bound to the allocation (VUID-vkBindBufferMemory-memory-01035, -memoryOffset-01036, -size-01037).
    /// 2. It is destroyed, or no longer used, before the move is dropped or ignored.
    pub unsafe fn bind_buffer_memory(&self, buffer: vk::Buffer) -> Result<(), BindError> {
        // SAFETY: the caller's promise 1: the buffer is not bound and its requirements are met there.
        unsafe { self.bind(BufferOrImage::Buffer(buffer)) }.map_err(BindError::Driver)
    }

    /// Binds an image to the destination.
    ///
    /// # Errors
    /// [`BindError`] if the driver refuses.
    ///
    /// # Safety
    /// 1. The image belongs to the allocator's device and is not bound. It has the requirements of the one that is
    ///    bound to the allocation (VUID-vkBindImageMemory-memory-01047, -memoryOffset-01048, -size-01049).
    /// 2. It is destroyed, or no longer used, before the move is dropped or ignored.
    pub unsafe fn bind_image_memory(&self, image: vk::Image) -> Result<(), BindError> {
        // SAFETY: the caller's promise 1: the image is not bound and its requirements are met there.
        unsafe { self.bind(BufferOrImage::Image(image)) }.map_err(BindError::Driver)
    }

    /// # Safety
    /// See [`Self::bind_buffer_memory`].
    unsafe fn bind(&self, resource: BufferOrImage) -> Result<(), DriverError> {
        let device = &self.home.allocator().inner.context.device;
        // SAFETY: the caller's promise: the resource is not bound, and its requirements are met there. The memory is
        // live because the destination in it is reserved.
        unsafe { device.bind(resource, self.memory(), self.offset(), std::ptr::null()) }
    }

    /// Completes the move: the allocation gets its new place, and the old one is freed. Its size, name, user data and
    /// flags stay the same. Its [`id`](Allocation::id), memory and offset change, and so does the pointer if it is
    /// persistently mapped.
    ///
    /// # Errors
    /// [`CompleteMoveError`], which contains the move, if `allocation` is not the one of the move, is no longer live,
    /// or cannot be mapped.
    ///
    /// # Safety
    /// 1. The device no longer uses the memory at the old place, and resources that are bound to it are not used again
    ///    (VUID-vkFreeMemory-memory-00677).
    /// 2. No mapping from [`Mapping::into_raw`](crate::Mapping::into_raw) is open: it would end with the old place, and
    ///    must not be unmapped afterwards.
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
    /// let (memory, offset) = (moved.memory(), moved.offset());
    /// # unsafe { gpu.device().destroy_buffer(buffer, None) };
    /// // SAFETY: nothing is bound to the old place any more.
    /// unsafe { moved.complete(&mut allocation) }.map_err(MoveError::from)?;
    /// assert_eq!((allocation.memory(), allocation.offset()), (memory, offset));
    /// # let buffer = vk::Buffer::null();
    /// # unsafe { allocator.destroy_buffer(buffer, allocation) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn complete(mut self, allocation: &mut Allocation) -> Result<(), CompleteMoveError<'p>> {
        match self.home.allocator().complete_move(self.home.open(), self.planned(), allocation, 0) {
            Ok(()) => {
                self.planned = None;
                Ok(())
            }
            Err(source) => Err(CompleteMoveError { unfinished: self, source: Box::new(source) }),
        }
    }

    /// Leaves the allocation in place, and moves nothing else out of its block in this context. Dropping the move does
    /// only the former.
    pub fn ignore(mut self) {
        if let Some(planned) = self.planned.take() {
            self.home.allocator().ignore_move(self.home.open(), &planned);
        }
    }

    /// Frees the allocation instead of moving it.
    ///
    /// # Errors
    /// [`FreeMoveError`], which contains both, if the allocation is not the one of the move, or is no longer live.
    ///
    /// # Safety
    /// See [`Allocator::free_memory`](crate::Allocator::free_memory), and [`Self::complete`] about mappings.
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
    /// # unsafe { gpu.device().destroy_buffer(buffer, None) };
    /// // SAFETY: nothing is bound to it any more.
    /// unsafe { moved.free(allocation) }.map_err(|error| error.error())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn free(mut self, allocation: Allocation) -> Result<(), FreeMoveError<'p>> {
        match self.home.allocator().free_move(self.home.open(), self.planned(), &allocation, 0) {
            Ok(()) => {
                self.planned = None;
                Ok(())
            }
            Err(source) => Err(FreeMoveError { unfinished: self, allocation, source: Box::new(source) }),
        }
    }
}

impl Drop for Move<'_> {
    fn drop(&mut self) {
        if let Some(planned) = self.planned.take() {
            self.home.allocator().roll_back_move(self.home.open(), &planned);
        }
    }
}

impl fmt::Debug for Move<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Move")
            .field("source", &self.source())
            .field("memory", &self.memory())
            .field("offset", &self.offset())
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}
