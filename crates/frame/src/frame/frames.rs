//! The frames: begin, lists, waits, end.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use ash::vk;
use sublet::retire::{Clock, ClockView, Ticket};
use sublet::upload::UploadArenaCreateInfo;
use sublet::{AllocationCreateInfo, Allocator, CreateError, MaintainInfo, RetiredResources};

use super::{BeginError, CreateFramesError, FrameStatistics, FramesCreateInfo, OpenError, Unwritten};
use crate::device::{Api, ContextInfo, DeviceCore, QueueData, QueueFamily, Uploads, binds_buffers};
use crate::list::{CommandList, CreateLayoutError, ListError, PipelineLayout, RenderPassInfo};
use crate::resource::{
    Buffer, CreateResourceError, Image, SharedMemory, TransientImage, create_transient_images,
};
use crate::track::{Global, ImageId, Queue, ResourceId, StateError, Use};

/// Cores that a device may still use after a failed wait. They are stored here instead of passed to `mem::forget`, so
/// that leak checkers for host memory do not report them. No lock is taken under theirs.
static LEAKED: parking_lot::Mutex<Vec<Arc<DeviceCore>>> = parking_lot::Mutex::new(Vec::new());

/// Frames in flight: queues, timelines, command pools, uploads, descriptor sets, resource states, and objects that wait
/// for the device.
///
/// ```text
///   begin     waits for the oldest frame in flight, reads the progress of the queues, and recycles what is done:
///             command pools, upload pages, descriptor pools, resources of lists, retired resources
///   list      opens a command list; any number, on any threads
///   submit    flushes uploads, resolves the barriers before the lists, and submits them together
///   end       records the submissions of the frame
/// ```
///
/// No other `collect` or `flush` is needed.
///
/// Dropping the value waits until the device is done with all submissions. Resources may outlive it.
///
/// ```
/// use std::sync::Arc;
/// use ash::vk;
/// use sublet::{AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage, sim};
/// use sublet_frame::{Features, Frames, FramesCreateInfo, QueueInfo};
///
/// let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// // SAFETY: the handles are live and outlive the allocator.
/// let allocator = Arc::new(unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?);
/// let queues = [QueueInfo { queue: gpu.queue(), family: gpu.queue_family_index() }];
/// let info = FramesCreateInfo {
///     features: Features::for_gpu(&gpu),
///     ..FramesCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device(), gpu.api_version(), &allocator, &queues)
/// };
/// // SAFETY: all handles are live, belong to one device, and outlive the frames and their resources.
/// let mut frames = unsafe { Frames::new(&info) }?;
///
/// let buffer = vk::BufferCreateInfo::default()
///     .size(1024)
///     .usage(vk::BufferUsageFlags::TRANSFER_DST | vk::BufferUsageFlags::TRANSFER_SRC);
/// // SAFETY: the create-info is valid.
/// let buffer = unsafe { frames.create_buffer(&buffer, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?;
/// for frame in 0..10_u8 {
///     frames.begin()?;
///     let mut list = frames.list(frames.queue(0))?;
///     list.upload(&buffer, 0, &[frame; 1024])?;
///     let read = list.read_buffer(&buffer, 0..16)?; // after a barrier
///     frames.submit(frames.queue(0), [list])?;
///     frames.end();
///
///     frames.wait(&read)?;
///     assert_eq!(read.bytes()?, [frame; 16]);
/// }
/// # drop((buffer, frames));
/// # drop(allocator);
/// # gpu.assert_silent();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "CommandQueue")]
#[doc(alias = "CommandAllocatorPool")]
pub struct Frames {
    pub(crate) core: Arc<DeviceCore>,
    /// For each frame in flight, the last submission to each queue.
    slots: Vec<Vec<u64>>,
    frames: u64,
    maintain: Option<MaintainInfo>,
    /// Protects a vector that is kept to avoid allocations; no lock is taken under it. Never held during a submission.
    pub(super) lists: parking_lot::Mutex<Vec<CommandList>>,
}

impl Frames {
    /// Maximum number of frames in flight.
    pub const MOST_IN_FLIGHT: usize = 1024;

    /// Creates frames. Pools and pages are created on first use.
    ///
    /// # Errors
    /// See [`CreateFramesError`].
    ///
    /// # Safety
    /// 1. Instance and device are live and outlive the frames and all their resources. The physical device, the
    ///    allocator, the queues and the descriptor device belong to that device.
    /// 2. Version and features are those of the device, and it supports `uploads.usage`
    ///    (VUID-VkBufferCreateInfo-None-09499).
    /// 3. No one else submits to the queues meanwhile, except within [`with_queue`](Self::with_queue)
    ///    (VUID-vkQueueSubmit-queue-parameter, host synchronization).
    pub unsafe fn new(info: &FramesCreateInfo<'_>) -> Result<Self, CreateFramesError> {
        if info.queues.is_empty() || info.queues.len() > 16 {
            return Err(CreateFramesError::Queues { queues: info.queues.len() });
        }
        let (frames, most) = (info.frames_in_flight, Self::MOST_IN_FLIGHT);
        if frames == 0 {
            return Err(CreateFramesError::NoFrames);
        }
        if frames > most {
            return Err(CreateFramesError::TooManyFrames { frames, most });
        }
        // SAFETY: clauses 1 and 2.
        let api = unsafe { Api::new(info.instance, info.device, info.api_version, info.features) };
        // SAFETY: clause 1: the physical device belongs to the instance.
        let properties =
            unsafe { info.instance.get_physical_device_queue_family_properties(info.physical_device) };
        let (mut global, clock) = (Global::new(), Clock::new());
        let (mut queues, mut families) = (Vec::new(), Vec::<QueueFamily>::new());
        for queue in info.queues {
            let known = usize::try_from(queue.family).ok().and_then(|family| properties.get(family));
            let known = known.ok_or(CreateFramesError::NoSuchFamily { family: queue.family })?;
            let family = families.iter().position(|family| family.index == queue.family);
            let family = family.unwrap_or_else(|| {
                families.push(QueueFamily::new(queue.family, known));
                families.len() - 1
            });
            queues.push(QueueData {
                handle: queue.queue,
                track: global.add_queue(queue.family),
                timeline: clock.add_timeline().map_err(CreateFramesError::Timelines)?,
                family,
                semaphore: vk::Semaphore::null(),
            });
        }
        let addressed = UploadArenaCreateInfo {
            device_address: info.uploads.device_address || binds_buffers(info.descriptors),
            ..info.uploads.clone()
        };
        let uploads =
            Uploads::new(info.allocator, addressed, families.len()).map_err(CreateFramesError::Timelines)?;
        for made in 0..if api.has_timeline() { queues.len() } else { 0 } {
            // SAFETY: clause 1: the device is live.
            match unsafe { api.create_semaphore(true) } {
                Ok(timeline) => queues[made].semaphore = timeline,
                Err(error) => {
                    for queue in &queues[..made] {
                        // SAFETY: it was just created and is unused.
                        unsafe { api.device().destroy_semaphore(queue.semaphore, None) };
                    }
                    return Err(CreateFramesError::of(error));
                }
            }
        }
        let count = queues.len();
        let core = DeviceCore::new(
            api,
            info.instance.clone(),
            info.physical_device,
            Arc::clone(info.allocator),
            clock,
            queues,
            families,
            global,
            ContextInfo {
                binder: info.binder.clone(),
                descriptors: info.descriptors.cloned(),
                on_barriers: info.on_barriers.clone(),
                unwritten: info.on_unwritten_read.clone().map(Unwritten::new),
            },
            uploads,
            info.features.separate_depth_stencil_layouts,
        );
        Ok(Self {
            core: Arc::new(core),
            slots: vec![vec![0; count]; info.frames_in_flight],
            frames: 0,
            maintain: info.maintain,
            lists: parking_lot::Mutex::new(Vec::new()),
        })
    }

    /// Returns the queue with this index in [`FramesCreateInfo::queues`].
    ///
    /// # Panics
    /// If `index` is out of range.
    #[must_use]
    pub fn queue(&self, index: usize) -> Queue {
        self.core.queues[index].track
    }

    /// Returns the index of the current or next frame among the frames in flight, from 0. Use it for objects that the
    /// program keeps per frame in flight.
    #[must_use]
    pub fn slot(&self) -> usize {
        let slots = u64::try_from(self.slots.len()).unwrap_or(u64::MAX);
        usize::try_from(self.frames % slots).unwrap_or(0)
    }

    /// Returns the number of ended frames.
    #[must_use]
    pub fn frame(&self) -> u64 {
        self.frames
    }

    /// Begins a frame: waits until the device is done with the previous frame of the same [`slot`](Self::slot), and
    /// collects.
    ///
    /// # Errors
    /// See [`BeginError`].
    ///
    /// # Complexity
    /// O(completed objects, list contexts). Does not allocate host memory in the steady state.
    #[doc(alias = "vkWaitForFences")]
    pub fn begin(&mut self) -> Result<(), BeginError> {
        for (queue, &serial) in self.slots[self.slot()].iter().enumerate() {
            self.core.wait(queue, serial).map_err(|error| self.core.or_lost(BeginError::Driver(error)))?;
        }
        self.collect()
    }

    /// Recycles everything that is done, without waiting. [`begin`](Self::begin) does it too.
    ///
    /// # Errors
    /// See [`BeginError`].
    pub fn collect(&self) -> Result<(), BeginError> {
        let core = &self.core;
        core.poll().map_err(|error| core.or_lost(BeginError::Driver(error)))?;
        core.collect();
        core.collect_contexts().map_err(|error| core.or_lost(BeginError::Descriptors(error)))?;
        let retired = core.retired_resources.collect(&core.allocator, &core.clock);
        retired.map_err(|error| core.or_lost(BeginError::Retired(error)))?;
        if core.is_lost() { Err(BeginError::Lost) } else { Ok(()) }
    }

    /// [Collects](Self::collect), and frees everything that neither a list nor the device uses: upload pages, command
    /// pools and list contexts. Returns the bytes of freed upload pages. Call it between levels or when the window is
    /// hidden. The next lists create what they need again.
    ///
    /// Without this call, objects are freed that were idle during a number of calls of `collect`, except two pages of
    /// each queue family. The number is `idle_collects` of [`FramesCreateInfo::uploads`].
    ///
    /// ```
    /// # let (_gpu, mut frames) = sublet_frame::doc_example();
    /// # use ash::vk; use sublet::{AllocationCreateInfo, MemoryUsage};
    /// # let info = vk::BufferCreateInfo::default().size(64).usage(vk::BufferUsageFlags::TRANSFER_DST);
    /// # let buffer = unsafe { frames.create_buffer(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?;
    /// # frames.begin()?;
    /// let mut list = frames.list(frames.queue(0))?;
    /// list.upload(&buffer, 0, &[1; 64])?;
    /// frames.submit(frames.queue(0), [list])?;
    /// # frames.end();
    /// frames.wait_idle()?;
    /// assert!(frames.trim()? > 0);
    /// assert_eq!((frames.statistics().pools, frames.statistics().upload_bytes), (0, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`collect`](Self::collect); nothing was freed.
    #[doc(alias = "vkTrimCommandPool")]
    pub fn trim(&self) -> Result<u64, BeginError> {
        self.collect()?;
        Ok(self.core.trim())
    }

    /// Ends the frame. The next frame of this slot waits for the submissions since `begin`.
    ///
    /// [Maintains](sublet::Allocator::maintain) the allocator, unless [`FramesCreateInfo::maintain`] is `None`: blocks
    /// are created before they are needed, and empty ones are freed, while the device works.
    pub fn end(&mut self) {
        let slot = self.slot();
        self.slots[slot].clear();
        self.slots[slot].extend(self.core.submission_state.lock().submitted());
        self.frames += 1;
        if let Some(info) = &self.maintain {
            self.core.allocator.maintain(info);
        }
    }

    /// Opens a list for a queue. Any thread may record it. It may be submitted in any frame, or dropped.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn list(&self, queue: Queue) -> Result<CommandList, OpenError> {
        if self.core.queues.get(queue.index()).is_none_or(|data| data.track != queue) {
            return Err(OpenError::NoSuchQueue);
        }
        let (context, pool) = self.core.open(queue)?;
        Ok(CommandList::new(&self.core, queue, context, pool))
    }

    /// Waits for a submission, given its ticket or a read-back of one of its lists.
    ///
    /// # Errors
    /// [`BeginError::OtherFrames`] if the ticket belongs to other frames, and [`BeginError::Driver`] if the wait fails.
    /// Returns at once for a read-back whose list is not submitted.
    pub fn wait(&self, what: impl Into<Option<Ticket>>) -> Result<(), BeginError> {
        let Some(ticket) = what.into() else { return Ok(()) };
        let core = &self.core;
        self.check_ticket(ticket)?;
        // The clock has one timeline for each queue.
        let index = ticket.timeline().index();
        while !core.clock.is_done(ticket) && !core.is_lost() {
            // Submissions of a queue finish in order.
            let Some((_, serial)) = core.clock.oldest_pending(core.queues[index].timeline) else { break };
            core.wait(index, serial).map_err(|error| core.or_lost(BeginError::Driver(error)))?;
        }
        core.collect();
        if core.is_lost() { Err(BeginError::Lost) } else { Ok(()) }
    }

    /// Waits for all submissions, and collects.
    ///
    /// # Errors
    /// See [`BeginError`].
    #[doc(alias = "vkDeviceWaitIdle")]
    pub fn wait_idle(&self) -> Result<(), BeginError> {
        for queue in 0..self.core.queues.len() {
            let serial = self.core.submission_state.lock().submitted().nth(queue).unwrap_or(0);
            self.core.wait(queue, serial).map_err(|error| self.core.or_lost(BeginError::Driver(error)))?;
        }
        self.collect()
    }

    /// Creates a buffer.
    ///
    /// # Errors
    /// See [`CreateResourceError`].
    ///
    /// # Safety
    /// `info` is valid for the device (VUID-vkCreateBuffer-pCreateInfo-parameter).
    #[track_caller]
    pub unsafe fn create_buffer(
        &self,
        info: &vk::BufferCreateInfo<'_>,
        allocation: &AllocationCreateInfo<'_>,
    ) -> Result<Buffer, CreateResourceError> {
        // SAFETY: the caller's own promise.
        let made = unsafe { Buffer::create(&self.core, info, allocation) };
        made.map_err(|error| self.core.or_lost(error.into()))
    }

    /// Creates an image.
    ///
    /// # Errors
    /// See [`CreateResourceError`].
    ///
    /// # Safety
    /// `info` is valid for the device (VUID-vkCreateImage-pCreateInfo-parameter).
    #[track_caller]
    pub unsafe fn create_image(
        &self,
        info: &vk::ImageCreateInfo<'_>,
        allocation: &AllocationCreateInfo<'_>,
    ) -> Result<Image, CreateResourceError> {
        // SAFETY: the caller's own promise.
        let made = unsafe { Image::create(&self.core, info, allocation) };
        made.map_err(|error| self.core.or_lost(error.into()))
    }

    /// Allocates memory for resources that share it.
    ///
    /// # Errors
    /// Those of [`Allocator::allocate_memory`], and [`CreateResourceError::Lost`].
    #[track_caller]
    pub fn allocate_shared(
        &self,
        requirements: &vk::MemoryRequirements,
        allocation: &AllocationCreateInfo<'_>,
    ) -> Result<SharedMemory, CreateResourceError> {
        let made = self.core.allocator.allocate_memory(requirements, allocation);
        let made = made
            .map_err(|error| self.core.or_lost(CreateResourceError::from(CreateError::Allocation(error))))?;
        Ok(SharedMemory::new(Arc::clone(&self.core), made))
    }

    /// Creates a buffer in shared memory, at `offset` bytes.
    ///
    /// # Errors
    /// See [`CreateResourceError`].
    ///
    /// # Safety
    /// See [`create_buffer`](Self::create_buffer). The memory is not dedicated to another resource
    /// (VUID-vkBindBufferMemory-memory-01508).
    pub unsafe fn create_buffer_in(
        &self,
        memory: &SharedMemory,
        offset: u64,
        info: &vk::BufferCreateInfo<'_>,
    ) -> Result<Buffer, CreateResourceError> {
        // SAFETY: the caller's own promise.
        unsafe { Buffer::create_in(&self.core, memory, offset, info) }
            .map_err(|error| self.core.or_lost(error))
    }

    /// Creates an image in shared memory, at `offset` bytes.
    ///
    /// # Errors
    /// See [`CreateResourceError`].
    ///
    /// # Safety
    /// See [`create_image`](Self::create_image). The memory is not dedicated to another resource
    /// (VUID-vkBindImageMemory-memory-01509).
    pub unsafe fn create_image_in(
        &self,
        memory: &SharedMemory,
        offset: u64,
        info: &vk::ImageCreateInfo<'_>,
    ) -> Result<Image, CreateResourceError> {
        // SAFETY: the caller's own promise.
        unsafe { Image::create_in(&self.core, memory, offset, info) }
            .map_err(|error| self.core.or_lost(error))
    }

    /// Creates images that share memory if their steps do not overlap. Images with the usage `TRANSIENT_ATTACHMENT` get
    /// lazily allocated memory instead, if the device has some. Images without a common memory type do not share. The
    /// largest image is placed first, each at the lowest offset that is free during its steps, so placement is
    /// deterministic. Choose the memory by flags or by `GpuOnly`: the `Auto` usages need a single resource.
    ///
    /// Lists order the uses of aliased images, and discard their contents: see [`SharedMemory`].
    ///
    /// # Errors
    /// See [`CreateResourceError`].
    ///
    /// # Safety
    /// See [`create_image`](Self::create_image), for each. All images have the same tiling (VkPhysicalDeviceLimits,
    /// `bufferImageGranularity`).
    ///
    /// # Complexity
    /// O(n² log n) for n images. Each image is created twice, because Vulkan 1.0 cannot query requirements without one.
    ///
    /// # Example
    /// ```
    /// use ash::vk;
    /// use sublet::{AllocationCreateInfo, MemoryUsage};
    /// use sublet_frame::TransientImage;
    ///
    /// # let (gpu, frames) = sublet_frame::doc_example();
    /// # gpu.allow_aliasing(true);
    /// let info = vk::ImageCreateInfo::default()
    ///     .image_type(vk::ImageType::TYPE_2D)
    ///     .format(vk::Format::R8G8B8A8_UNORM)
    ///     .extent(vk::Extent3D { width: 256, height: 256, depth: 1 })
    ///     .mip_levels(1)
    ///     .array_layers(1)
    ///     .samples(vk::SampleCountFlags::TYPE_1)
    ///     .usage(vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::SAMPLED);
    /// let images = [0..=1, 1..=2, 2..=3].map(|steps| TransientImage { info, steps });
    /// let allocation = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
    /// // SAFETY: the create-infos are valid, with one tiling.
    /// let images = unsafe { frames.create_transient_images(&images, &allocation) }?;
    /// assert_eq!(images[0].memory_range(), images[2].memory_range()); // no step uses both
    /// assert_ne!(images[0].memory_range(), images[1].memory_range());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub unsafe fn create_transient_images(
        &self,
        images: &[TransientImage<'_>],
        allocation: &AllocationCreateInfo<'_>,
    ) -> Result<Vec<Image>, CreateResourceError> {
        // SAFETY: the caller's own promise.
        unsafe { create_transient_images(&self.core, images, allocation) }
            .map_err(|error| self.core.or_lost(error))
    }

    /// Creates a buffer whose bytes are those of host memory: a long-lived source of copies, such as a mapped file or
    /// the arena of a decoder. See [`Allocator::import_host_buffer`] for the alignment and the memory type. `info` has
    /// at most the size of the memory.
    ///
    /// The buffer keeps `owner`, the value that owns the memory, until the device is done with it and the last clone of
    /// the buffer is dropped. Copy from it with [`CommandList::copy_buffer`] and
    /// [`CommandList::copy_buffer_to_image`].
    ///
    /// # Errors
    /// [`CreateResourceError::HostImport`].
    ///
    /// # Safety
    /// See [`Allocator::import_host_buffer`]. The memory stays valid until `owner` is dropped.
    ///
    /// ```
    /// # let (_gpu, mut frames) = sublet_frame::doc_example();
    /// # use ash::vk; use sublet::{AllocationCreateInfo, MemoryUsage};
    /// # use std::ptr::NonNull; use std::sync::Arc;
    /// #[repr(align(4096))]
    /// struct Page([u8; 4096]);
    ///
    /// assert_eq!(frames.allocator().host_import_alignment(), Some(4096));
    /// let asset: Arc<[Page]> = (0..16).map(|at| Page([at; 4096])).collect();
    /// let memory = NonNull::slice_from_raw_parts(NonNull::from(&asset[..]).cast::<u8>(), 16 * 4096);
    /// let info = vk::BufferCreateInfo::default().size(16 * 4096).usage(vk::BufferUsageFlags::TRANSFER_SRC);
    /// // SAFETY: the `Arc` owns the memory, which nothing writes.
    /// let source = unsafe { frames.import_host_memory(&info, memory, asset) }?;
    /// # let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    /// # let info = vk::BufferCreateInfo::default().size(256).usage(usage);
    /// # let target = unsafe { frames.create_buffer(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?;
    ///
    /// # frames.begin()?;
    /// let mut list = frames.list(frames.queue(0))?;
    /// list.copy_buffer(&source, &target, &[vk::BufferCopy { src_offset: 3 * 4096, dst_offset: 0, size: 256 }])?;
    /// let read = list.read_buffer(&target, 0..256)?;
    /// frames.submit(frames.queue(0), [list])?;
    /// drop(source); // the list keeps it
    /// frames.wait(&read)?;
    /// assert_eq!(read.bytes()?, [3; 256]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub unsafe fn import_host_memory(
        &self,
        info: &vk::BufferCreateInfo<'_>,
        memory: NonNull<[u8]>,
        owner: impl Send + Sync + 'static,
    ) -> Result<Buffer, CreateResourceError> {
        // SAFETY: the caller's own promise.
        let made = unsafe { Buffer::import_host(&self.core, info, memory, Box::new(owner)) };
        made.map_err(|error| self.core.or_lost(error))
    }

    /// Imports a buffer of the program, for use in lists.
    ///
    /// # Safety
    /// 1. The buffer is a live buffer of the device, bound to memory, and was created from `info`.
    /// 2. It outlives the last clone and all lists that use it.
    /// 3. All uses outside of lists are declared with [`acquired`](Self::acquired) and [`idle`](Self::idle).
    #[must_use]
    pub unsafe fn import_buffer(&self, buffer: vk::Buffer, info: &vk::BufferCreateInfo<'_>) -> Buffer {
        // SAFETY: the caller's own promise.
        unsafe { Buffer::import(&self.core, buffer, info) }
    }

    /// Imports an image of the program, for example of a swapchain, for use in lists. Dropping the last clone destroys
    /// its views, but not the image.
    ///
    /// # Safety
    /// See [`import_buffer`](Self::import_buffer).
    #[must_use]
    pub unsafe fn import_image(&self, image: vk::Image, info: &vk::ImageCreateInfo<'_>) -> Image {
        // SAFETY: the caller's own promise.
        unsafe { Image::import(&self.core, image, info) }
    }

    /// Declares that the next submission to `queue` waits at `stages` for a semaphore of an external owner: see
    /// [`Global::acquired`].
    ///
    /// # Errors
    /// [`StateError`] if the resource or the queue belongs to other frames, or the resource was removed.
    ///
    /// # Safety
    /// The next [`submit_with`](Self::submit_with) to the queue waits for that semaphore. The external owner has not
    /// changed the layout.
    pub unsafe fn acquired(
        &self,
        resource: impl Into<ResourceId>,
        queue: Queue,
        stages: vk::PipelineStageFlags2,
    ) -> Result<(), StateError> {
        self.core.global.lock().acquired(resource, queue, stages)
    }

    /// Declares that an external owner has left all of an image in `layout`. Call it together with
    /// [`acquired`](Self::acquired) or [`idle`](Self::idle). Within a list, use [`CommandList::assume_image`].
    ///
    /// # Errors
    /// [`StateError`] if the image belongs to other frames or was removed.
    ///
    /// # Safety
    /// The image has this layout when the next submission that uses it runs (VUID-vkCmdDraw-None-09600).
    pub unsafe fn assume_layout(&self, image: ImageId, layout: vk::ImageLayout) -> Result<(), StateError> {
        self.core.global.lock().assume_layout(image, layout)
    }

    /// Declares that the device is done with the resource, and that the host may have written it: see [`Global::idle`].
    ///
    /// # Errors
    /// [`StateError`] if the resource belongs to other frames or was removed.
    ///
    /// # Safety
    /// Every submission that uses the resource is done, and the host has waited for it.
    pub unsafe fn idle(&self, resource: impl Into<ResourceId>) -> Result<(), StateError> {
        self.core.global.lock().idle(resource)
    }

    /// Stops tracking a resource that is only read from now on, as `usage` says: see [`Global::freeze`]. A
    /// [`Compactor`](crate::Compactor) does not move it. Waits for a running step of a compactor.
    ///
    /// Subscribers of a compactor must not call this function: it would deadlock.
    ///
    /// # Errors
    /// [`StateError`] if the resource belongs to other frames or was removed. It is also returned if the last write is
    /// not visible to the use, or if a compactor has moved the resource since its id was read. Then submit a list that
    /// declares this use, and freeze the current id.
    pub fn freeze(&self, resource: impl Into<ResourceId>, usage: Use) -> Result<(), StateError> {
        // Excludes a running step, so the resource is either replaced already or stays.
        let _moving = self.core.moving.lock();
        self.core.global.lock().freeze(resource, usage)
    }

    /// Tracks a frozen resource again: see [`Global::thaw`].
    ///
    /// # Errors
    /// [`StateError`] if the resource belongs to other frames or was removed.
    pub fn thaw(&self, resource: impl Into<ResourceId>) -> Result<(), StateError> {
        self.core.global.lock().thaw(resource)
    }

    /// Returns the render pass for pipelines that render to such attachments. It is compatible with all load, store and
    /// resolve operations. Equal infos return the same pass, which lives as long as the frames and their resources.
    ///
    /// Null if [dynamic rendering](crate::Features::dynamic_rendering) is enabled: create pipelines with
    /// `VkPipelineRenderingCreateInfo` then.
    ///
    /// # Errors
    /// [`ListError::OutOfRange`] for more than 8 colors; [`ListError::NoRendering`]; [`ListError::Driver`].
    ///
    /// # Safety
    /// The device supports attachments of these formats and samples; `multiview` is enabled if `view_mask` is not 0.
    #[doc(alias = "vkCreateRenderPass")]
    pub unsafe fn render_pass(&self, info: &RenderPassInfo<'_>) -> Result<vk::RenderPass, ListError> {
        // SAFETY: the caller's own promise.
        unsafe { info.pass(&self.core) }
    }

    /// Creates a pipeline layout and its set layouts, which live as long as the frames and their resources.
    ///
    /// ```
    /// use ash::vk;
    /// # let (_, frames) = sublet_frame::doc_example();
    /// let stages = vk::ShaderStageFlags::COMPUTE;
    /// let bindings = [vk::DescriptorSetLayoutBinding::default()
    ///     .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
    ///     .descriptor_count(1)
    ///     .stage_flags(stages)];
    /// let sets = [vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings)];
    /// // SAFETY: the create-info is valid.
    /// let layout = unsafe { frames.create_pipeline_layout(&sets, &[]) }?;
    /// // For `vkCreateComputePipelines`, and then for `CommandList::bind_pipeline`.
    /// assert_ne!(layout.handle(), vk::PipelineLayout::null());
    /// # Ok::<(), sublet_frame::CreateLayoutError>(())
    /// ```
    ///
    /// # Errors
    /// See [`CreateLayoutError`].
    ///
    /// # Safety
    /// The create-infos, their chains, and the ranges are valid for the device.
    #[doc(alias = "vkCreatePipelineLayout")]
    #[doc(alias = "vkCreateDescriptorSetLayout")]
    pub unsafe fn create_pipeline_layout(
        &self,
        sets: &[vk::DescriptorSetLayoutCreateInfo<'_>],
        push_constants: &[vk::PushConstantRange],
    ) -> Result<PipelineLayout, CreateLayoutError> {
        // SAFETY: the caller's own promise.
        unsafe { PipelineLayout::create(&self.core, sets, push_constants) }
            .map_err(|error| self.core.or_lost(error))
    }

    /// Calls `f` with the queue while no other thread submits. Use it to present, or to submit outside of the frames.
    /// `f` may create, use and drop objects of the frames, and submit. It must not wait for another thread that
    /// submits.
    ///
    /// # Panics
    /// If the queue belongs to other frames.
    pub fn with_queue<R>(&self, queue: Queue, f: impl FnOnce(vk::Queue) -> R) -> R {
        let known = self.core.queues.get(queue.index()).is_some_and(|data| data.track == queue);
        assert!(known, "{queue:?} belongs to other frames");
        let _queues = self.core.submitter.lock();
        f(self.core.queues[queue.index()].handle)
    }

    /// Returns the clock of the frames, so that components of the program can collect with it.
    ///
    /// The view is read-only, because recycling depends on the clock.
    ///
    /// ```compile_fail,E0599
    /// # let (_, frames) = sublet_frame::doc_example();
    /// frames.clock().idle(); // no such method: the device may be busy
    /// ```
    #[must_use]
    pub fn clock(&self) -> &ClockView {
        &self.core.clock
    }

    /// Returns the allocator.
    #[must_use]
    pub fn allocator(&self) -> &Arc<Allocator> {
        &self.core.allocator
    }

    /// Returns the retired raw buffers, images, memory, pools and scopes of the program, which wait for a submission.
    /// [`begin`](Self::begin) and [`collect`](Self::collect) free them. An object with a ticket of other frames is
    /// never freed, and both return an error.
    ///
    /// # Safety
    /// Only query it and retire objects. The frames collect it with their own clock; another clock might report a
    /// submission as done too early.
    #[must_use]
    pub unsafe fn retired(&self) -> &RetiredResources {
        &self.core.retired_resources
    }

    fn check_ticket(&self, ticket: Ticket) -> Result<(), BeginError> {
        if self.core.clock.is_foreign(ticket) { Err(BeginError::OtherFrames { ticket }) } else { Ok(()) }
    }

    /// Returns the statistics.
    ///
    /// # Complexity
    /// O(list contexts).
    #[must_use]
    pub fn statistics(&self) -> FrameStatistics {
        use std::sync::atomic::Ordering::Relaxed;
        let counts = &self.core.counts;
        FrameStatistics {
            frames: self.frames,
            lists: counts.lists.load(Relaxed),
            submissions: counts.submissions.load(Relaxed),
            barrier_calls: counts.barrier_calls.load(Relaxed),
            barriers: counts.barriers.load(Relaxed),
            preambles: counts.preambles.load(Relaxed),
            releases: counts.releases.load(Relaxed),
            waits: counts.waits.load(Relaxed),
            pools: counts.pools.load(Relaxed),
            in_flight: self.core.in_flight(),
            contexts: counts.contexts.load(Relaxed),
            upload_bytes: self.core.uploads.reserved(),
        }
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        if !self.core.close() {
            LEAKED.lock().push(Arc::clone(&self.core));
        }
    }
}

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frames").field("statistics", &self.statistics()).finish_non_exhaustive()
    }
}
