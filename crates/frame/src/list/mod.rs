//! Command lists: see [`CommandList`].

mod attachment;
mod bind;
mod bound;
mod buffers;
mod copy_region;
mod downsample;
mod draw;
mod error;
mod images;
mod layout;
mod mips;
mod moving;
mod part;
mod pass;
mod read;
mod rendering;
mod staging;
mod state;
mod texels;
mod upload;

pub use self::attachment::{Attachment, RenderingInfo, Resolve};
pub use self::bind::StorageAccess;
pub(crate) use self::bound::BoundPoint;
pub(crate) use self::downsample::Downsampler;
pub use self::error::ListError;
pub use self::layout::{CreateLayoutError, PipelineLayout};
pub(crate) use self::moving::MovedImage;
pub use self::pass::RenderPassInfo;
pub(crate) use self::read::ReadState;
pub use self::read::{ReadBack, ReadError};
pub use self::staging::{ImagePart, ImagePiece, UploadPiece};
pub use self::state::ViewportInfo;
pub use self::upload::{ImageData, Pitch};

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use sublet::retire::Ticket;
use sublet::upload::{Alignments, FlushError, Upload};

use self::rendering::ListRendering;
use crate::device::{CommandPool, DeviceCore, KeptObject, ListContext};
use crate::frame::SubmitError;
use crate::resource::{Body, Buffer, CurrentBody, Image, ResourceClass, c_name};
use crate::track::{Queue, Recorder, ResourceId, Subresources, Use, UseError};

/// A list of commands with automatic barriers and resource lifetimes.
///
/// Each function declares the uses of its command, records the required barriers in one call, and then the command.
/// Submission resolves the barriers before the list. Buffers and images that the list uses live until the device is
/// done with it.
///
/// [`Frames::list`](crate::Frames::list) creates it, one thread at a time records it, and
/// [`Frames::submit`](crate::Frames::submit) consumes it. An unsubmitted list can be dropped.
///
/// | commands | |
/// |---|---|
/// | buffers | [`copy_buffer`](Self::copy_buffer), [`fill_buffer`](Self::fill_buffer), [`update_buffer`](Self::update_buffer), [`upload`](Self::upload), [`upload_with`](Self::upload_with), [`read_buffer`](Self::read_buffer) |
/// | images | [`upload_image`](Self::upload_image), [`upload_image_with`](Self::upload_image_with), [`read_image`](Self::read_image), [`generate_mips`](Self::generate_mips), [`copy_image`](Self::copy_image), [`copy_buffer_to_image`](Self::copy_buffer_to_image), [`copy_image_to_buffer`](Self::copy_image_to_buffer), [`blit_image`](Self::blit_image), [`resolve_image`](Self::resolve_image), [`clear_color`](Self::clear_color), [`clear_depth_stencil`](Self::clear_depth_stencil) |
/// | binding | [`bind_pipeline`](Self::bind_pipeline), [`bind_buffer`](Self::bind_buffer), [`bind_texel_buffer`](Self::bind_texel_buffer), [`bind_image`](Self::bind_image), [`bind_sampler`](Self::bind_sampler), [`bind_set`](Self::bind_set), [`bind_heap`](Self::bind_heap), [`bind_constants`](Self::bind_constants), [`push_constants`](Self::push_constants), [`bind_vertex_buffer`](Self::bind_vertex_buffer), [`bind_index_buffer`](Self::bind_index_buffer) |
/// | state | [`set_viewport`](Self::set_viewport), [`set_depth_bias`](Self::set_depth_bias), [`set_cull_mode`](Self::set_cull_mode), [`set_front_face`](Self::set_front_face), [`set_stencil_reference`](Self::set_stencil_reference), [`set_blend_constants`](Self::set_blend_constants) |
/// | work | [`dispatch`](Self::dispatch), [`dispatch_indirect`](Self::dispatch_indirect), [`begin_rendering`](Self::begin_rendering), [`draw`](Self::draw), [`draw_indexed`](Self::draw_indexed), [`draw_indirect`](Self::draw_indirect), [`draw_indexed_indirect`](Self::draw_indexed_indirect) |
/// | names | [`begin_label`](Self::begin_label), [`end_label`](Self::end_label) |
/// | all else | [`use_buffer`](Self::use_buffer), [`use_image`](Self::use_image), then [`raw`](Self::raw) |
///
/// A command that fails records nothing, and the list stays usable. After a failed use, however, it cannot be
/// submitted.
#[doc(alias = "CommandContext")]
pub struct CommandList {
    core: Arc<DeviceCore>,
    queue: Queue,
    context: ListContext,
    pool: CommandPool,
    rendering: Option<ListRendering>,
    /// The first error that made the list incomplete.
    broken: Option<Box<ListError>>,
    has_reads: bool,
    /// Number of open labels.
    labels: u32,
    submitted: Option<Ticket>,
    /// One thread at a time records it.
    not_sync: PhantomData<Cell<()>>,
}

#[expect(unsafe_code, reason = "calls Vulkan")]
impl CommandList {
    pub(crate) fn new(core: &Arc<DeviceCore>, queue: Queue, context: ListContext, pool: CommandPool) -> Self {
        Self {
            core: Arc::clone(core),
            queue,
            context,
            pool,
            rendering: None,
            broken: None,
            has_reads: false,
            labels: 0,
            submitted: None,
            not_sync: PhantomData,
        }
    }

    /// Returns the queue of the list.
    #[must_use]
    pub fn queue(&self) -> Queue {
        self.queue
    }

    pub(crate) fn commands(&self) -> vk::CommandBuffer {
        self.pool.main
    }

    pub(crate) fn preamble(&self) -> vk::CommandBuffer {
        self.pool.preamble
    }

    /// Checks that the list can be submitted.
    pub(crate) fn check(&self, core: &Arc<DeviceCore>, queue: Queue, list: usize) -> Result<(), SubmitError> {
        if !Arc::ptr_eq(&self.core, core) || self.queue != queue {
            return Err(SubmitError::WrongQueue { list });
        }
        if self.rendering.is_some() {
            return Err(SubmitError::Rendering { list });
        }
        match &self.broken {
            Some(error) => Err(SubmitError::Broken { list, error: error.clone() }),
            None => Ok(()),
        }
    }

    /// Flushes uploads and bindings, and keeps them until the ticket is done.
    pub(crate) fn flush_uploads(&mut self, ticket: Ticket) -> Result<(), FlushError> {
        self.core.uploads.flush(self.context.family, &self.context.uploads)?;
        self.context.flush(ticket)
    }

    /// Records the submission. The resources wait for the ticket when the list is dropped.
    pub(crate) fn submitted(&mut self, ticket: Ticket) {
        self.submitted = Some(ticket);
        self.leave_kept();
        if self.has_reads {
            for kept in &self.pool.kept {
                if let KeptObject::Read(guard) = kept {
                    guard.state.submitted(ticket);
                }
            }
        }
    }

    /// Declares a buffer use of the next command, for [`raw`](Self::raw).
    ///
    /// # Errors
    /// See [`ListError`].
    ///
    /// # Safety
    /// The queue supports the stages, and the device the features that stages and accesses need
    /// (VUID-vkCmdPipelineBarrier2-srcStageMask-09673, VUID-VkMemoryBarrier2-dstStageMask-03929).
    pub unsafe fn use_buffer(
        &mut self,
        buffer: &Buffer,
        range: Range<u64>,
        usage: Use,
    ) -> Result<(), ListError> {
        self.keep_buffer(buffer)?;
        self.declare(|recorder| recorder.use_buffer(buffer.id(), range, usage))
    }

    /// Declares an image use of the next command, for [`raw`](Self::raw). It can also be used for a layout transition
    /// alone: [`flush`](Self::flush) or the next command records the barrier.
    ///
    /// # Errors
    /// See [`ListError`].
    ///
    /// # Safety
    /// See [`use_buffer`](Self::use_buffer). The usage of the image permits the layout
    /// (VUID-VkImageMemoryBarrier2-oldLayout-01208 and those that follow).
    #[doc(alias = "TransitionBarrier")]
    pub unsafe fn use_image(
        &mut self,
        image: &Image,
        part: &Subresources,
        usage: Use,
    ) -> Result<(), ListError> {
        self.keep_image(image)?;
        self.declare(|recorder| recorder.use_image(image.id(), &image.tracked(part), usage))
    }

    /// Requests a barrier between previous and later unordered writes to a resource.
    ///
    /// # Errors
    /// [`OtherFrames`](ListError::OtherFrames) if the resource belongs to other frames; the list stays usable.
    /// Otherwise see [`ListError::Use`].
    #[doc(alias = "UAVBarrier")]
    pub fn storage_barrier(&mut self, resource: impl Into<ResourceId>) -> Result<(), ListError> {
        let resource = resource.into();
        if resource.0.global != self.queue.global() {
            return Err(ListError::OtherFrames);
        }
        self.declare(|recorder| recorder.storage_barrier(resource))
    }

    /// Records the barriers of the declared uses.
    ///
    /// # Errors
    /// [`ListError::RenderingNeedsBarrier`] within rendering that cannot be interrupted, and [`ListError::Driver`] if
    /// the render pass to continue with cannot be created. The list can no longer be submitted.
    #[doc(alias = "FlushResourceBarriers")]
    pub fn flush(&mut self) -> Result<(), ListError> {
        let Self { core, context, pool, rendering, broken, .. } = self;
        let Some(batch) = context.recorder.flush() else { return Ok(()) };
        if let Some(rendering) = rendering {
            // SAFETY: the list is being recorded, by its owner.
            if let Err(error) = unsafe { rendering.suspend(core, pool.main) } {
                broken.get_or_insert_with(|| Box::new(error.clone()));
                return Err(error);
            }
        }
        // SAFETY: the list's owner records the command buffer, outside of rendering. The list keeps the resources of
        // the barriers.
        unsafe { core.barrier(pool.main, batch) };
        if core.info.on_barriers.is_none() {
            return Ok(());
        }
        // If the observer panics, the command after the barriers is missing.
        let whole = broken.is_none();
        broken.get_or_insert_with(|| Box::new(ListError::Observer));
        core.notify_barriers(std::slice::from_ref(batch));
        if whole {
            *broken = None;
        }
        Ok(())
    }

    /// Marks the list as incomplete, so that it cannot be submitted.
    fn mark_broken(&mut self, error: ListError) -> ListError {
        self.broken.get_or_insert_with(|| Box::new(error.clone()));
        error
    }

    /// Records commands by `f`. First declare their uses with [`use_buffer`](Self::use_buffer) and
    /// [`use_image`](Self::use_image).
    ///
    /// Pipelines, descriptor sets and dynamic state that `f` binds stay bound for later commands of the list. The next
    /// command of the list rebinds the descriptors that the list has bound.
    ///
    /// # Errors
    /// See [`ListError`]; `f` was not called.
    ///
    /// # Safety
    /// 1. The commands of `f` are valid, and need no barriers other than those of the declared uses.
    /// 2. They use only resources that are declared or kept ([`keep`](Self::keep), [`keep_buffer`](Self::keep_buffer),
    ///    [`keep_image`](Self::keep_image)), or that live until the list is done.
    /// 3. The command buffer is neither ended nor reset, and the rendering state is unchanged.
    pub unsafe fn raw<R>(
        &mut self,
        f: impl FnOnce(&ash::Device, vk::CommandBuffer) -> R,
    ) -> Result<R, ListError> {
        self.flush()?;
        self.resume_rendering();
        if let Some(binder) = &mut self.context.binder {
            binder.begin();
        }
        Ok(f(self.core.api.device(), self.pool.main))
    }

    /// Begins a label: tools show the commands up to [`end_label`](Self::end_label) under this name. Labels can be
    /// nested. Does nothing without [`Features::debug_utils`](crate::Features::debug_utils).
    ///
    /// ```
    /// # let (_, mut frames) = sublet_frame::doc_example();
    /// frames.begin()?;
    /// let mut list = frames.list(frames.queue(0))?;
    /// list.begin_label("shadows");
    /// // Record draws.
    /// list.end_label()?;
    /// # drop(list);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "vkCmdBeginDebugUtilsLabelEXT")]
    #[doc(alias = "PIXBeginEvent")]
    pub fn begin_label(&mut self, name: &str) {
        self.labels += 1;
        // SAFETY: the list is being recorded by its owner.
        unsafe { self.core.api.label(self.pool.main, Some(&c_name(name))) };
    }

    /// Ends the most recent label.
    ///
    /// # Errors
    /// [`ListError::NoLabel`] if no label is open; nothing was recorded.
    #[doc(alias = "PIXEndEvent")]
    pub fn end_label(&mut self) -> Result<(), ListError> {
        self.labels = self.labels.checked_sub(1).ok_or(ListError::NoLabel)?;
        // SAFETY: the list is being recorded by its owner, and a label was begun in it.
        unsafe { self.core.api.label(self.pool.main, None) };
        Ok(())
    }

    /// Declares that commands recorded by [`raw`](Self::raw) have left a part of an image as `usage` says: see
    /// [`Recorder::assume_image`]. Declare their own uses before them.
    ///
    /// ```no_run
    /// use sublet_frame::track::{Subresources, Use};
    /// use sublet_frame::{CommandList, Image, ListError};
    ///
    /// fn upscale(list: &mut CommandList, image: &Image) -> Result<(), ListError> {
    ///     // SAFETY: the library expects a storage image, and leaves it in the layout for copies.
    ///     unsafe { list.use_image(image, &Subresources::ALL, Use::storage_write(ash::vk::PipelineStageFlags2::COMPUTE_SHADER)) }?;
    ///     // SAFETY: as above; it uses no other resources.
    ///     unsafe { list.raw(|_device, _commands| { /* the library's call */ }) }?;
    ///     // SAFETY: as above.
    ///     unsafe { list.assume_image(image, &Subresources::ALL, Use::COPY_SOURCE) }
    /// }
    /// ```
    ///
    /// # Errors
    /// See [`ListError`]. The list can no longer be submitted.
    ///
    /// # Safety
    /// The commands have changed the layout, and made their writes visible to the use.
    pub unsafe fn assume_image(
        &mut self,
        image: &Image,
        part: &Subresources,
        usage: Use,
    ) -> Result<(), ListError> {
        self.keep_image(image)?;
        self.declare(|recorder| recorder.assume_image(image.id(), &image.tracked(part), usage))
    }

    /// Keeps a value until the device is done with the list, or the list is dropped. A clone of a [`Buffer`] or
    /// [`Image`] stays alive, but a compactor may move it: see [`keep_buffer`](Self::keep_buffer) and
    /// [`keep_image`](Self::keep_image).
    #[doc(alias = "TrackResource")]
    pub fn keep(&mut self, what: impl Send + 'static) {
        self.pool.kept.push(KeptObject::Any(Box::new(what)));
    }

    /// Allocates upload memory until the device is done with the list. `align` returns the alignment.
    fn allocate_upload(
        &mut self,
        size: u64,
        align: impl Fn(&Alignments) -> u64,
    ) -> Result<Upload, ListError> {
        let Self { core, context, pool, .. } = self;
        let made = core.uploads.allocate(context.family, &mut context.uploads, &mut pool.kept, size, align);
        made.map_err(|error| core.or_lost(error))
    }

    fn declare(&mut self, f: impl FnOnce(&mut Recorder) -> Result<(), UseError>) -> Result<(), ListError> {
        f(&mut self.context.recorder).map_err(|error| self.mark_broken(ListError::Use(error)))
    }

    /// Prevents moves of a buffer until the list is submitted, and keeps the current buffer until the device is done
    /// with the list. Call it for uses that the list cannot see; declared uses do it themselves.
    ///
    /// # Errors
    /// [`ListError::OtherFrames`].
    pub fn keep_buffer(&mut self, buffer: &Buffer) -> Result<(), ListError> {
        self.keep_current(buffer.core(), buffer.current(), KeptObject::Buffer)
    }

    /// Keeps an image and its views as [`keep_buffer`](Self::keep_buffer) does.
    ///
    /// # Errors
    /// [`ListError::OtherFrames`].
    pub fn keep_image(&mut self, image: &Image) -> Result<(), ListError> {
        self.keep_current(image.core(), image.current(), KeptObject::Image)
    }

    /// Keeps the current body of a resource, which cannot be replaced until the list is submitted.
    fn keep_current<K: ResourceClass>(
        &mut self,
        core: &Arc<DeviceCore>,
        current: &CurrentBody<K>,
        kept: fn(Arc<Body<K>>) -> KeptObject,
    ) -> Result<(), ListError> {
        if !Arc::ptr_eq(core, &self.core) {
            return Err(ListError::OtherFrames);
        }
        let id: ResourceId = current.id().into();
        if !self.context.has_seen(id.slot()) {
            self.enter(current, kept);
        }
        Ok(())
    }

    #[inline(never)]
    fn enter<K: ResourceClass>(&mut self, current: &CurrentBody<K>, kept: fn(Arc<Body<K>>) -> KeptObject) {
        let Self { core, context, pool, .. } = self;
        // The resource may have moved since, and the list may keep the new body already.
        while !current.with(|body| {
            let has = context.has_seen(body.slot());
            let entered = !has && body.enter();
            if entered {
                context.see(body.slot());
                pool.kept.push(kept(Arc::clone(body)));
            }
            has || entered
        }) {
            // It is being moved: wait for the replacement.
            core.wait_for_moves();
        }
    }

    /// Moves the kept resources into `keeps`, for releases that are already submitted. Read-backs stay.
    pub(crate) fn move_kept(&mut self, keeps: &mut Vec<KeptObject>) {
        self.leave_kept();
        let is_read = |kept: &KeptObject| matches!(kept, KeptObject::Read(_));
        let (reads, used): (Vec<_>, Vec<_>) = self.pool.kept.drain(..).partition(is_read);
        self.pool.kept = reads;
        keeps.extend(used);
    }

    /// Permits moves of the kept resources again.
    fn leave_kept(&self) {
        for kept in &self.pool.kept {
            match kept {
                KeptObject::Buffer(buffer) => buffer.leave(),
                KeptObject::Image(image) => image.leave(),
                KeptObject::Pass(..) | KeptObject::Uploads(_) | KeptObject::Read(_) | KeptObject::Any(_) => {}
            }
        }
    }

    /// Returns an error within rendering, where transfers and dispatches are not allowed.
    fn outside(&self) -> Result<(), ListError> {
        if self.rendering.is_some() { Err(ListError::InsideRendering) } else { Ok(()) }
    }

    /// Returns an error outside of rendering, where draws are not allowed.
    fn inside(&self) -> Result<(), ListError> {
        if self.rendering.is_none() { Err(ListError::OutsideRendering) } else { Ok(()) }
    }

    fn needs_queue(&self, any: vk::QueueFlags) -> Result<(), ListError> {
        let has = self.core.families[self.core.queues[self.queue.index()].family].flags;
        if has.intersects(any) { Ok(()) } else { Err(ListError::Queue { needs: any, has }) }
    }
}

impl AsRef<Recorder> for CommandList {
    fn as_ref(&self) -> &Recorder {
        &self.context.recorder
    }
}

impl Drop for CommandList {
    fn drop(&mut self) {
        if self.submitted.is_none() {
            self.leave_kept();
        }
        let (mut context, pool) = (std::mem::take(&mut self.context), std::mem::take(&mut self.pool));
        if let Some(ticket) = self.submitted {
            self.core.retire(ticket, crate::device::RetiredDeviceObject::Pool(pool));
        } else {
            // Nothing of the list runs, so its bindings get a ticket that is done. If that fails, the next list flushes
            // them.
            let ticket = self.core.clock.open(self.core.queues[self.queue.index()].timeline);
            let _ = self.core.clock.discard(ticket);
            let _ = context.flush(ticket);
            self.core.return_context(context);
            return self.core.discard(pool);
        }
        self.core.return_context(context);
    }
}

impl fmt::Debug for CommandList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandList").field("queue", &self.queue).finish_non_exhaustive()
    }
}
