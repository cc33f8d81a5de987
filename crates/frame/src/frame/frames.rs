//! Frames: begin, lists, submissions, end.

use std::fmt;
use std::sync::Arc;

use ash::vk;
use sublet::retire::{Clock, ClockView, Ticket};
use sublet::upload::UploadArenaCreateInfo;
use sublet::{AllocationCreateInfo, Allocator, CreateError, RetiredResources};

use super::{BeginError, CreateFramesError, FrameStatistics, FramesCreateInfo, OpenError, Unwritten};
use crate::device::{Api, Core, Family, QueueData, ToolInfo, Uploads, binds_buffers};
use crate::list::{CommandList, CreateLayoutError, ListError, PipelineLayout, RenderPassInfo};
use crate::resource::{
    Buffer, CreateResourceError, Image, SharedMemory, TransientImage, create_transient_images,
};
use crate::track::{Global, ImageId, Queue, ResourceId, StateError, Use};

/// What devices may still use, for ever: cores whose frames were dropped and could not be waited for. Not forgotten, so
/// that tools that look for leaks of host memory do not take them for one.
static LEFT: parking_lot::Mutex<Vec<Arc<Core>>> = parking_lot::Mutex::new(Vec::new());

/// Frames in flight in one place: queues, what counts their submissions, command pools, uploads, descriptor sets, the
/// states of resources, and what waits for the device.
///
/// ```text
///   begin     waits for the frame that is too far behind, reads the counters, and takes back all that is done:
///             command pools, upload pages, descriptor pools, what lists kept, what was retired
///   list      lends a list what it records with; any number, on any threads
///   submit    makes uploads visible, settles what comes in front of the lists, and submits them as one
///   end       notes what the frame has submitted
/// ```
///
/// There is no other `collect` or `flush` to call, and none to forget.
///
/// Dropping it waits until the device is done with all submissions. Resources may outlive it.
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
/// // SAFETY: all of it is live, of one device, and outlives the frames and their resources.
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
///     let read = list.read_buffer(&buffer, 0..16)?; // behind its barrier
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
    pub(crate) core: Arc<Core>,
    /// By frame in flight: the last submission to each queue.
    slots: Vec<Vec<u64>>,
    frames: u64,
    /// Lists of the submission that is being made: kept for its room.
    pub(super) lists: parking_lot::Mutex<Vec<CommandList>>,
}

impl Frames {
    /// The most frames that may be in flight.
    pub const MOST_IN_FLIGHT: usize = 1024;

    /// Makes frames without pools and pages.
    ///
    /// # Errors
    /// [`CreateFramesError`]: nothing is left behind.
    ///
    /// # Safety
    /// 1. Instance and device are live and outlive the frames and every resource that is made with them. The physical
    ///    device, the allocator, the queues and the descriptor device are of that device.
    /// 2. Version and features are what the device was made with, and `uploads.usage` is valid on it
    ///    (VUID-VkBufferCreateInfo-None-09499).
    /// 3. Nobody else submits to the queues meanwhile, except within [`with_queue`](Self::with_queue)
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
        // SAFETY: clause 1: the physical device is of the instance.
        let properties =
            unsafe { info.instance.get_physical_device_queue_family_properties(info.physical_device) };
        let (mut global, clock) = (Global::new(), Clock::new());
        let (mut queues, mut families) = (Vec::new(), Vec::<Family>::new());
        for queue in info.queues {
            let known = usize::try_from(queue.family).ok().and_then(|family| properties.get(family));
            let known = known.ok_or(CreateFramesError::NoSuchFamily { family: queue.family })?;
            let family = families.iter().position(|family| family.index == queue.family);
            let family = family.unwrap_or_else(|| {
                families.push(Family::new(queue.family, known));
                families.len() - 1
            });
            queues.push(QueueData {
                handle: queue.queue,
                track: global.add_queue(queue.family),
                lane: clock.add_lane().map_err(CreateFramesError::Lanes)?,
                family,
                timeline: vk::Semaphore::null(),
            });
        }
        let addressed = UploadArenaCreateInfo {
            device_address: info.uploads.device_address || binds_buffers(info.descriptors),
            ..info.uploads.clone()
        };
        let uploads =
            Uploads::new(info.allocator, addressed, families.len()).map_err(CreateFramesError::Lanes)?;
        for made in 0..if api.has_timeline() { queues.len() } else { 0 } {
            // SAFETY: clause 1: the device is live.
            match unsafe { api.create_semaphore(true) } {
                Ok(timeline) => queues[made].timeline = timeline,
                Err(error) => {
                    for queue in &queues[..made] {
                        // SAFETY: it was made just now, and nobody has it.
                        unsafe { api.device().destroy_semaphore(queue.timeline, None) };
                    }
                    return Err(CreateFramesError::of(error));
                }
            }
        }
        let count = queues.len();
        let core = Core::new(
            api,
            info.instance.clone(),
            info.physical_device,
            Arc::clone(info.allocator),
            clock,
            queues,
            families,
            global,
            ToolInfo {
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
            lists: parking_lot::Mutex::new(Vec::new()),
        })
    }

    /// The queue with this index among those that were given.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn queue(&self, index: usize) -> Queue {
        self.core.queues[index].track
    }

    /// Which of the frames in flight the next one is, or the one that was begun: from 0, for what the program has one
    /// of for each.
    #[must_use]
    pub fn slot(&self) -> usize {
        let slots = u64::try_from(self.slots.len()).unwrap_or(u64::MAX);
        usize::try_from(self.frames % slots).unwrap_or(0)
    }

    /// Frames that were ended.
    #[must_use]
    pub fn frame(&self) -> u64 {
        self.frames
    }

    /// Begins a frame: waits until the device is done with the frame of the same [`slot`](Self::slot), and takes back
    /// all that is done.
    ///
    /// # Errors
    /// [`BeginError`].
    ///
    /// # Complexity
    /// O(what is done, and sets of tools). No memory from the host once it has seen as much.
    #[doc(alias = "vkWaitForFences")]
    pub fn begin(&mut self) -> Result<(), BeginError> {
        for (queue, &serial) in self.slots[self.slot()].iter().enumerate() {
            self.core.wait(queue, serial).map_err(|error| self.core.told(BeginError::Driver(error)))?;
        }
        self.collect()
    }

    /// Takes back all that is done, without waiting: [`begin`](Self::begin) does it too.
    ///
    /// # Errors
    /// [`BeginError`].
    pub fn collect(&self) -> Result<(), BeginError> {
        let core = &self.core;
        core.poll().map_err(|error| core.told(BeginError::Driver(error)))?;
        core.collect();
        core.collect_tools().map_err(|error| core.told(BeginError::Descriptors(error)))?;
        let retired = core.retired_resources.collect(&core.allocator, &core.clock);
        retired.map_err(|error| core.told(BeginError::Retired(error)))?;
        if core.is_lost() { Err(BeginError::Lost) } else { Ok(()) }
    }

    /// [Collects](Self::collect), and gives back all that no list has and the device does not need: upload pages, command
    /// pools, and what lists record with. For a moment without frames, as when a level ends or a window is hidden; what
    /// the next lists need is made again. Returns the bytes of upload pages.
    ///
    /// Without it the same goes by itself, but for two pages of each family of queues, once nobody has needed it for as
    /// many calls of `collect` as `idle_collects` of [`FramesCreateInfo::uploads`] says.
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
    /// As [`collect`](Self::collect): nothing was given back.
    #[doc(alias = "vkTrimCommandPool")]
    pub fn trim(&self) -> Result<u64, BeginError> {
        self.collect()?;
        Ok(self.core.trim())
    }

    /// Ends the frame: what was submitted since `begin` is what the frame of this slot waits for next time.
    pub fn end(&mut self) {
        let slot = self.slot();
        self.slots[slot].clear();
        self.slots[slot].extend(self.core.books.lock().submitted());
        self.frames += 1;
    }

    /// A list for a queue, to be recorded by any thread. It may be submitted in any frame, or dropped.
    ///
    /// # Errors
    /// [`OpenError`]: nothing was changed.
    pub fn list(&self, queue: Queue) -> Result<CommandList, OpenError> {
        if self.core.queues.get(queue.index()).is_none_or(|data| data.track != queue) {
            return Err(OpenError::NoSuchQueue);
        }
        let (tools, pool) = self.core.open(queue)?;
        Ok(CommandList::new(&self.core, queue, tools, pool))
    }

    /// Waits until something that was submitted is done: the ticket of a submission, or a read-back of a list that was
    /// submitted.
    ///
    /// # Errors
    /// [`BeginError::OtherFrames`] if the ticket is of other frames, and [`BeginError::Driver`] if the driver does not
    /// wait. A read-back whose list is not submitted is not waited for.
    pub fn wait(&self, what: impl Into<Option<Ticket>>) -> Result<(), BeginError> {
        let Some(ticket) = what.into() else { return Ok(()) };
        let core = &self.core;
        self.check_ticket(ticket)?;
        // The clock gave the ticket out, and has a lane for each queue.
        let index = ticket.lane().index();
        while !core.clock.is_done(ticket) && !core.is_lost() {
            // The submissions up to the ticket's are done one after another.
            let Some((_, serial)) = core.clock.oldest_pending(core.queues[index].lane) else { break };
            core.wait(index, serial).map_err(|error| core.told(BeginError::Driver(error)))?;
        }
        core.collect();
        if core.is_lost() { Err(BeginError::Lost) } else { Ok(()) }
    }

    /// Waits until all that was submitted is done, and takes it back.
    ///
    /// # Errors
    /// [`BeginError`].
    #[doc(alias = "vkDeviceWaitIdle")]
    pub fn wait_idle(&self) -> Result<(), BeginError> {
        for queue in 0..self.core.queues.len() {
            let serial = self.core.books.lock().submitted().nth(queue).unwrap_or(0);
            self.core.wait(queue, serial).map_err(|error| self.core.told(BeginError::Driver(error)))?;
        }
        self.collect()
    }

    /// Makes a buffer.
    ///
    /// # Errors
    /// [`CreateResourceError`]: nothing is left behind.
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
        made.map_err(|error| self.core.told(error.into()))
    }

    /// Makes an image.
    ///
    /// # Errors
    /// [`CreateResourceError`]: nothing is left behind.
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
        made.map_err(|error| self.core.told(error.into()))
    }

    /// Memory for resources that share it.
    ///
    /// # Errors
    /// [`CreateResourceError`]: those of [`Allocator::allocate_memory`], and a lost device.
    #[track_caller]
    pub fn allocate_shared(
        &self,
        requirements: &vk::MemoryRequirements,
        allocation: &AllocationCreateInfo<'_>,
    ) -> Result<SharedMemory, CreateResourceError> {
        let made = self.core.allocator.allocate_memory(requirements, allocation);
        let made =
            made.map_err(|error| self.core.told(CreateResourceError::from(CreateError::Allocation(error))))?;
        Ok(SharedMemory::new(Arc::clone(&self.core), made))
    }

    /// Makes a buffer in shared memory, `offset` bytes from its start.
    ///
    /// # Errors
    /// [`CreateResourceError`]: nothing is left behind.
    ///
    /// # Safety
    /// As [`create_buffer`](Self::create_buffer); the memory is not dedicated to another resource
    /// (VUID-vkBindBufferMemory-memory-01508).
    pub unsafe fn create_buffer_in(
        &self,
        memory: &SharedMemory,
        offset: u64,
        info: &vk::BufferCreateInfo<'_>,
    ) -> Result<Buffer, CreateResourceError> {
        // SAFETY: the caller's own promise.
        unsafe { Buffer::create_in(&self.core, memory, offset, info) }.map_err(|error| self.core.told(error))
    }

    /// Makes an image in shared memory, `offset` bytes from its start.
    ///
    /// # Errors
    /// [`CreateResourceError`]: nothing is left behind.
    ///
    /// # Safety
    /// As [`create_image`](Self::create_image); the memory is not dedicated to another resource
    /// (VUID-vkBindImageMemory-memory-01509).
    pub unsafe fn create_image_in(
        &self,
        memory: &SharedMemory,
        offset: u64,
        info: &vk::ImageCreateInfo<'_>,
    ) -> Result<Image, CreateResourceError> {
        // SAFETY: the caller's own promise.
        unsafe { Image::create_in(&self.core, memory, offset, info) }.map_err(|error| self.core.told(error))
    }

    /// Makes the images of a frame that no step needs all together, in memory that they share. Images with the usage
    /// `TRANSIENT_ATTACHMENT` take lazily allocated memory of their own where the device has some. The largest image is
    /// placed first, each as low as those that are used at the same time leave room, so that the same images have the
    /// same offsets. Images without a memory type in common do not share.
    /// Choose the memory by flags or by `GpuOnly`: the usages `Auto` need a resource, and this memory is for several.
    ///
    /// Lists wait between images that share bytes, and discard what the other has left: see [`SharedMemory`].
    ///
    /// # Errors
    /// [`CreateResourceError`]: nothing is left behind.
    ///
    /// # Safety
    /// As [`create_image`](Self::create_image) of each; all have the same tiling
    /// (VkPhysicalDeviceLimits, `bufferImageGranularity`).
    ///
    /// # Complexity
    /// O(n² log n) of the images, each of which is made twice: Vulkan 1.0 has no other way to ask what it needs.
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
    /// // SAFETY: the create-infos are valid, and of one tiling.
    /// let images = unsafe { frames.create_transient_images(&images, &allocation) }?;
    /// assert_eq!(images[0].place(), images[2].place()); // no step uses both
    /// assert_ne!(images[0].place(), images[1].place());
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
            .map_err(|error| self.core.told(error))
    }

    /// Lets lists use a buffer of the program's own.
    ///
    /// # Safety
    /// 1. The buffer is a live one of the device, bound to memory, and was made from `info`.
    /// 2. It lives until the last clone is gone and no list that uses it is in flight.
    /// 3. It is used by nothing but lists, or lists are told with
    ///    [`acquired`](Self::acquired) and [`idle`](Self::idle).
    #[must_use]
    pub unsafe fn import_buffer(&self, buffer: vk::Buffer, info: &vk::BufferCreateInfo<'_>) -> Buffer {
        // SAFETY: the caller's own promise.
        unsafe { Buffer::import(&self.core, buffer, info) }
    }

    /// Lets lists use an image of the program's own, of a swapchain for example. Its views are destroyed with the last
    /// clone, and it is not.
    ///
    /// # Safety
    /// As [`import_buffer`](Self::import_buffer).
    #[must_use]
    pub unsafe fn import_image(&self, image: vk::Image, info: &vk::ImageCreateInfo<'_>) -> Image {
        // SAFETY: the caller's own promise.
        unsafe { Image::import(&self.core, image, info) }
    }

    /// The next submission to `queue` waits at `stages` for a semaphore that somebody else signals who had the resource:
    /// see [`Global::acquired`].
    ///
    /// # Errors
    /// [`StateError`] if the resource or the queue is of other frames, or the resource is gone.
    ///
    /// # Safety
    /// It is so: the next [`submit_with`](Self::submit_with) to the queue has that semaphore, and whoever had the
    /// resource leaves it in the layout that lists left it in.
    pub unsafe fn acquired(
        &self,
        resource: impl Into<ResourceId>,
        queue: Queue,
        stages: vk::PipelineStageFlags2,
    ) -> Result<(), StateError> {
        self.core.global.lock().acquired(resource, queue, stages)
    }

    /// Somebody else had an image and has left all of it in `layout`. Say so together with [`acquired`](Self::acquired) or
    /// [`idle`](Self::idle). Within a list there is [`CommandList::assume_image`].
    ///
    /// # Errors
    /// [`StateError`] if the image is of other frames, or gone.
    ///
    /// # Safety
    /// It is so when the next submission that uses the image runs (VUID-vkCmdDraw-None-09600).
    pub unsafe fn assume_layout(&self, image: ImageId, layout: vk::ImageLayout) -> Result<(), StateError> {
        self.core.global.lock().assume_layout(image, layout)
    }

    /// The device is done with the resource, and the host may have written it: see [`Global::idle`].
    ///
    /// # Errors
    /// [`StateError`] if the resource is of other frames or gone.
    ///
    /// # Safety
    /// It is so: every submission that uses the resource is done, and the host waited for it.
    pub unsafe fn idle(&self, resource: impl Into<ResourceId>) -> Result<(), StateError> {
        self.core.global.lock().idle(resource)
    }

    /// The resource is only read from now on, as `usage` says, and costs nothing any more: see [`Global::freeze`]. A
    /// [`Compactor`](crate::Compactor) leaves it where it is; a step that moves resources comes to its end first.
    ///
    /// Subscribers of a compactor must not call it: it would never return.
    ///
    /// # Errors
    /// [`StateError`] if the resource is of other frames or gone, if the last write is not visible to that use, or a
    /// compactor has moved the resource since its id was read: then use it in a list as it will be used, submit that, and freeze what its id is now.
    pub fn freeze(&self, resource: impl Into<ResourceId>, usage: Use) -> Result<(), StateError> {
        // What a step moves is told apart from what it leaves once this is held.
        let _moving = self.core.moving.lock();
        self.core.global.lock().freeze(resource, usage)
    }

    /// Takes a frozen resource back into tracking: see [`Global::thaw`].
    ///
    /// # Errors
    /// [`StateError`] if the resource is of other frames or gone.
    pub fn thaw(&self, resource: impl Into<ResourceId>) -> Result<(), StateError> {
        self.core.global.lock().thaw(resource)
    }

    /// The render pass that pipelines are to be made with for rendering to such attachments: whatever is loaded, stored
    /// or resolved, it is compatible. Lives as long as the frames and their resources; the same one for the same info.
    ///
    /// Null where [dynamic rendering](crate::Features::dynamic_rendering) is enabled: there pipelines are made with
    /// `VkPipelineRenderingCreateInfo`.
    ///
    /// # Errors
    /// [`ListError::OutOfRange`] for more than 8 colors; [`ListError::NoRendering`]; [`ListError::Driver`].
    ///
    /// # Safety
    /// The device can render to attachments of these formats and samples; `multiview` is enabled if there are views.
    #[doc(alias = "vkCreateRenderPass")]
    pub unsafe fn render_pass(&self, info: &RenderPassInfo<'_>) -> Result<vk::RenderPass, ListError> {
        // SAFETY: the caller's own promise.
        unsafe { info.pass(&self.core) }
    }

    /// Makes a pipeline layout with the layouts of its sets, which live as long as the frames and their resources.
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
    /// [`CreateLayoutError`]: nothing is left behind.
    ///
    /// # Safety
    /// The create-infos, with their chains, and the ranges are valid for the device.
    #[doc(alias = "vkCreatePipelineLayout")]
    #[doc(alias = "vkCreateDescriptorSetLayout")]
    pub unsafe fn create_pipeline_layout(
        &self,
        sets: &[vk::DescriptorSetLayoutCreateInfo<'_>],
        push_constants: &[vk::PushConstantRange],
    ) -> Result<PipelineLayout, CreateLayoutError> {
        // SAFETY: the caller's own promise.
        unsafe { PipelineLayout::create(&self.core, sets, push_constants) }
            .map_err(|error| self.core.told(error))
    }

    /// Calls `f` with the queue while no other thread submits: for presenting, and for submissions of the program's own.
    /// `f` may make, use and drop all that is of the frames, and submit. It must not wait for a thread that submits.
    ///
    /// # Panics
    /// If the queue is of other frames.
    pub fn with_queue<R>(&self, queue: Queue, f: impl FnOnce(vk::Queue) -> R) -> R {
        let known = self.core.queues.get(queue.index()).is_some_and(|data| data.track == queue);
        assert!(known, "{queue:?} is of other frames");
        let _queues = self.core.submitter.lock();
        f(self.core.queues[queue.index()].handle)
    }

    /// What knows which tickets are done. For components of the program's own, which collect with it.
    ///
    /// It can only be asked: what the frames recycle depends on it.
    ///
    /// ```compile_fail,E0599
    /// # let (_, frames) = sublet_frame::doc_example();
    /// frames.clock().idle(); // there is no such method: nobody waited for the device
    /// ```
    #[must_use]
    pub fn clock(&self) -> &ClockView {
        &self.core.clock
    }

    /// The allocator.
    #[must_use]
    pub fn allocator(&self) -> &Arc<Allocator> {
        &self.core.allocator
    }

    /// Raw buffers, images, memory, pools and scopes of the program's own that wait for a ticket of a submission.
    /// [`begin`](Self::begin) and [`collect`](Self::collect) free them. What waits for a ticket of other frames waits
    /// for ever, and both say so.
    ///
    /// # Safety
    /// It is only asked, and given what is to be retired: the frames alone collect it, with their own clock. Another clock
    /// could say that what the device still uses is done.
    #[must_use]
    pub unsafe fn retired(&self) -> &RetiredResources {
        &self.core.retired_resources
    }

    fn check_ticket(&self, ticket: Ticket) -> Result<(), BeginError> {
        if self.core.clock.is_foreign(ticket) { Err(BeginError::OtherFrames { ticket }) } else { Ok(()) }
    }

    /// Figures.
    ///
    /// # Complexity
    /// O(sets of tools).
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
            fronts: counts.fronts.load(Relaxed),
            releases: counts.releases.load(Relaxed),
            waits: counts.waits.load(Relaxed),
            pools: counts.pools.load(Relaxed),
            in_flight: self.core.in_flight(),
            tools: counts.tools.load(Relaxed),
            upload_bytes: self.core.uploads.reserved(),
        }
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        if !self.core.close() {
            LEFT.lock().push(Arc::clone(&self.core));
        }
    }
}

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frames").field("statistics", &self.statistics()).finish_non_exhaustive()
    }
}
