//! Command lists: see [`CommandList`].

mod attachment;
mod bind;
mod bound;
mod buffers;
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

use self::rendering::Rendering;
use crate::device::{Core, Kept, Pool, Tools};
use crate::frame::SubmitError;
use crate::resource::{Body, Buffer, Current, Image, Kind, c_name};
use crate::track::{Queue, Recorder, ResourceId, Subresources, Use, UseError};

/// A list of commands that knows its barriers and keeps what it uses.
///
/// Each command declares what it uses, records the barriers that it needs in one call, and then itself. What comes
/// before the list is settled when it is submitted. Buffers and images that it uses live until the device is done.
///
/// Made by [`Frames::list`](crate::Frames::list), recorded by one thread at a time, submitted by
/// [`Frames::submit`](crate::Frames::submit) or dropped.
///
/// | commands | |
/// |---|---|
/// | buffers | [`copy_buffer`](Self::copy_buffer), [`fill_buffer`](Self::fill_buffer), [`update_buffer`](Self::update_buffer), [`upload`](Self::upload), [`read_buffer`](Self::read_buffer) |
/// | images | [`upload_image`](Self::upload_image), [`read_image`](Self::read_image), [`generate_mips`](Self::generate_mips), [`copy_image`](Self::copy_image), [`copy_buffer_to_image`](Self::copy_buffer_to_image), [`copy_image_to_buffer`](Self::copy_image_to_buffer), [`blit_image`](Self::blit_image), [`resolve_image`](Self::resolve_image), [`clear_color`](Self::clear_color), [`clear_depth_stencil`](Self::clear_depth_stencil) |
/// | binding | [`bind_pipeline`](Self::bind_pipeline), [`bind_buffer`](Self::bind_buffer), [`bind_texel_buffer`](Self::bind_texel_buffer), [`bind_image`](Self::bind_image), [`bind_sampler`](Self::bind_sampler), [`bind_set`](Self::bind_set), [`bind_heap`](Self::bind_heap), [`bind_constants`](Self::bind_constants), [`push_constants`](Self::push_constants), [`bind_vertex_buffer`](Self::bind_vertex_buffer), [`bind_index_buffer`](Self::bind_index_buffer) |
/// | state | [`set_viewport`](Self::set_viewport), [`set_depth_bias`](Self::set_depth_bias), [`set_cull_mode`](Self::set_cull_mode), [`set_front_face`](Self::set_front_face), [`set_stencil_reference`](Self::set_stencil_reference), [`set_blend_constants`](Self::set_blend_constants) |
/// | work | [`dispatch`](Self::dispatch), [`dispatch_indirect`](Self::dispatch_indirect), [`begin_rendering`](Self::begin_rendering), [`draw`](Self::draw), [`draw_indexed`](Self::draw_indexed), [`draw_indirect`](Self::draw_indirect), [`draw_indexed_indirect`](Self::draw_indexed_indirect) |
/// | names | [`begin_label`](Self::begin_label), [`end_label`](Self::end_label) |
/// | all else | [`use_buffer`](Self::use_buffer), [`use_image`](Self::use_image), then [`raw`](Self::raw) |
///
/// A command that fails records nothing, and the list goes on, unless a use failed: then it cannot be submitted.
#[doc(alias = "CommandContext")]
pub struct CommandList {
    core: Arc<Core>,
    queue: Queue,
    tools: Tools,
    pool: Pool,
    rendering: Option<Rendering>,
    /// The first error that left the list not whole.
    broken: Option<Box<ListError>>,
    has_reads: bool,
    /// Labels that were begun and not ended.
    labels: u32,
    submitted: Option<Ticket>,
    /// It is recorded by one thread at a time.
    not_sync: PhantomData<Cell<()>>,
}

impl CommandList {
    pub(crate) fn new(core: &Arc<Core>, queue: Queue, tools: Tools, pool: Pool) -> Self {
        Self {
            core: Arc::clone(core),
            queue,
            tools,
            pool,
            rendering: None,
            broken: None,
            has_reads: false,
            labels: 0,
            submitted: None,
            not_sync: PhantomData,
        }
    }

    /// The queue that it is for.
    #[must_use]
    pub fn queue(&self) -> Queue {
        self.queue
    }

    pub(crate) fn commands(&self) -> vk::CommandBuffer {
        self.pool.main
    }

    /// The command buffer for what comes in front.
    pub(crate) fn front(&self) -> vk::CommandBuffer {
        self.pool.front
    }

    /// Whether it can be submitted so.
    pub(crate) fn check(&self, core: &Arc<Core>, queue: Queue, list: usize) -> Result<(), SubmitError> {
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

    /// What it uploaded and bound is visible, and stays until the ticket is done.
    pub(crate) fn flush_tools(&mut self, ticket: Ticket) -> Result<(), FlushError> {
        self.core.uploads.flush(self.tools.family, &self.tools.uploads)?;
        self.tools.flush(ticket)
    }

    /// The driver has it: what it uses waits for the ticket once it is dropped.
    pub(crate) fn submitted(&mut self, ticket: Ticket) {
        self.submitted = Some(ticket);
        self.leave_kept();
        if self.has_reads {
            for kept in &self.pool.kept {
                if let Kept::Read(guard) = kept {
                    guard.state.submitted(ticket);
                }
            }
        }
    }

    /// Declares a use of the next command that the list does not know: see [`raw`](Self::raw).
    ///
    /// # Errors
    /// [`ListError`].
    ///
    /// # Safety
    /// Barriers may name the use: the queue has its stages, and the device what they and the accesses need
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

    /// Declares a use of the next command that the list does not know: see [`raw`](Self::raw). Alone, it brings an image
    /// to a layout: [`flush`](Self::flush), or the next command, records the barrier.
    ///
    /// # Errors
    /// [`ListError`].
    ///
    /// # Safety
    /// As of [`use_buffer`](Self::use_buffer), and the image was made for the layout
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

    /// Asks for a barrier between unordered writes to a resource so far and the next ones.
    ///
    /// # Errors
    /// [`ListError`]: [`OtherFrames`](ListError::OtherFrames) if the resource is of other frames, after which the list
    /// goes on.
    #[doc(alias = "UAVBarrier")]
    pub fn storage_barrier(&mut self, resource: impl Into<ResourceId>) -> Result<(), ListError> {
        let resource = resource.into();
        if resource.0.global != self.queue.global() {
            return Err(ListError::OtherFrames);
        }
        self.declare(|recorder| recorder.storage_barrier(resource))
    }

    /// Records the barriers of the uses that were declared.
    ///
    /// # Errors
    /// [`ListError::RenderingNeedsBarrier`] if there is one within rendering that cannot be interrupted, and
    /// [`ListError::Driver`] if there is no render pass to go on with. The list cannot be submitted any more.
    #[doc(alias = "FlushResourceBarriers")]
    pub fn flush(&mut self) -> Result<(), ListError> {
        let Self { core, tools, pool, rendering, broken, .. } = self;
        let Some(batch) = tools.recorder.flush() else { return Ok(()) };
        if let Some(rendering) = rendering {
            // SAFETY: the list is being recorded, by its owner.
            if let Err(error) = unsafe { rendering.suspend(core, pool.main) } {
                broken.get_or_insert_with(|| Box::new(error.clone()));
                return Err(error);
            }
        }
        // SAFETY: the command buffer is being recorded by the list's owner, outside of rendering; the list keeps what
        // the barriers name.
        unsafe { core.barrier(pool.main, batch) };
        if core.info.on_barriers.is_none() {
            return Ok(());
        }
        // If it panics, the command that the barriers are for is missing.
        let whole = broken.is_none();
        broken.get_or_insert_with(|| Box::new(ListError::Observer));
        core.show(std::slice::from_ref(batch));
        if whole {
            *broken = None;
        }
        Ok(())
    }

    /// The list is not whole any more, and cannot be submitted.
    fn break_off(&mut self, error: ListError) -> ListError {
        self.broken.get_or_insert_with(|| Box::new(error.clone()));
        error
    }

    /// Commands that the list does not know: `f` records them. First declare what they use:
    /// [`use_buffer`](Self::use_buffer), [`use_image`](Self::use_image).
    ///
    /// Pipelines, descriptor sets and dynamic state that `f` binds are bound for the commands of the list too.
    /// Descriptors that the list has bound are bound again by its next command.
    ///
    /// # Errors
    /// [`ListError`], before `f` is called.
    ///
    /// # Safety
    /// 1. What `f` records is valid, and needs no other barriers than the declared uses give.
    /// 2. It uses nothing that is not declared or kept ([`keep`](Self::keep), [`keep_buffer`](Self::keep_buffer),
    ///    [`keep_image`](Self::keep_image)), or that does not live until the list is done.
    /// 3. The command buffer is neither ended nor reset, and rendering is as it was.
    pub unsafe fn raw<R>(
        &mut self,
        f: impl FnOnce(&ash::Device, vk::CommandBuffer) -> R,
    ) -> Result<R, ListError> {
        self.flush()?;
        self.resume_rendering();
        if let Some(binder) = &mut self.tools.binder {
            binder.begin();
        }
        Ok(f(self.core.api.device(), self.pool.main))
    }

    /// Begins a label: tools show the commands up to its [end](Self::end_label) under the name. Labels may lie in one
    /// another. Nothing without [`Features::debug_utils`](crate::Features::debug_utils).
    ///
    /// ```
    /// # let (_, mut frames) = sublet_frame::doc_example();
    /// frames.begin()?;
    /// let mut list = frames.list(frames.queue(0))?;
    /// list.begin_label("shadows");
    /// // draws
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

    /// Ends the label that was begun last.
    ///
    /// # Errors
    /// [`ListError::NoLabel`] if there is none: nothing was recorded.
    #[doc(alias = "PIXEndEvent")]
    pub fn end_label(&mut self) -> Result<(), ListError> {
        self.labels = self.labels.checked_sub(1).ok_or(ListError::NoLabel)?;
        // SAFETY: the list is being recorded by its owner, and a label was begun in it.
        unsafe { self.core.api.label(self.pool.main, None) };
        Ok(())
    }

    /// Commands that the list does not know, recorded by [`raw`](Self::raw), have left a part of an image as `usage` says:
    /// see [`Recorder::assume_image`]. What they found there was declared before.
    ///
    /// ```no_run
    /// use sublet_frame::track::{Subresources, Use};
    /// use sublet_frame::{CommandList, Image, ListError};
    ///
    /// fn upscale(list: &mut CommandList, image: &Image) -> Result<(), ListError> {
    ///     // SAFETY: the library expects a storage image, and leaves one to be copied.
    ///     unsafe { list.use_image(image, &Subresources::ALL, Use::storage_write(ash::vk::PipelineStageFlags2::COMPUTE_SHADER)) }?;
    ///     // SAFETY: as above; it uses nothing else of the program's.
    ///     unsafe { list.raw(|_device, _commands| { /* the library's call */ }) }?;
    ///     // SAFETY: as above.
    ///     unsafe { list.assume_image(image, &Subresources::ALL, Use::COPY_SOURCE) }
    /// }
    /// ```
    ///
    /// # Errors
    /// [`ListError`]. The list cannot be submitted any more.
    ///
    /// # Safety
    /// It is so: they have changed the layout, and made what was written visible to the use.
    pub unsafe fn assume_image(
        &mut self,
        image: &Image,
        part: &Subresources,
        usage: Use,
    ) -> Result<(), ListError> {
        self.keep_image(image)?;
        self.declare(|recorder| recorder.assume_image(image.id(), &image.tracked(part), usage))
    }

    /// Keeps something until the device is done with the list, or the list is dropped. A clone of a [`Buffer`] or
    /// [`Image`] lives as long, but may be moved meanwhile: see [`keep_buffer`](Self::keep_buffer) and
    /// [`keep_image`](Self::keep_image).
    #[doc(alias = "TrackResource")]
    pub fn keep(&mut self, what: impl Send + 'static) {
        self.pool.kept.push(Kept::Any(Box::new(what)));
    }

    /// Bytes for an upload, until the device is done with the list, aligned as `align` says.
    fn room(&mut self, size: u64, align: impl Fn(&Alignments) -> u64) -> Result<Upload, ListError> {
        let Self { core, tools, pool, .. } = self;
        let made = core.uploads.allocate(tools.family, &mut tools.uploads, &mut pool.kept, size, align);
        made.map_err(|error| core.told(error))
    }

    fn declare(&mut self, f: impl FnOnce(&mut Recorder) -> Result<(), UseError>) -> Result<(), ListError> {
        f(&mut self.tools.recorder).map_err(|error| self.break_off(ListError::Use(error)))
    }

    /// Keeps a buffer where it is until the list is submitted, and what it is now until the device is done with the
    /// list: for uses that the list does not know of. Those that it knows of keep what they use.
    ///
    /// # Errors
    /// [`ListError::OtherFrames`].
    pub fn keep_buffer(&mut self, buffer: &Buffer) -> Result<(), ListError> {
        self.keep_current(buffer.core(), buffer.current(), Kept::Buffer)
    }

    /// The same of an image, with its views.
    ///
    /// # Errors
    /// [`ListError::OtherFrames`].
    pub fn keep_image(&mut self, image: &Image) -> Result<(), ListError> {
        self.keep_current(image.core(), image.current(), Kept::Image)
    }

    /// Keeps what a resource is at the moment. It stays that until the list is submitted.
    fn keep_current<K: Kind>(
        &mut self,
        core: &Arc<Core>,
        current: &Current<K>,
        kept: fn(Arc<Body<K>>) -> Kept,
    ) -> Result<(), ListError> {
        if !Arc::ptr_eq(core, &self.core) {
            return Err(ListError::OtherFrames);
        }
        let id: ResourceId = current.id().into();
        if !self.tools.has_seen(id.slot()) {
            self.enter(current, kept);
        }
        Ok(())
    }

    #[inline(never)]
    fn enter<K: Kind>(&mut self, current: &Current<K>, kept: fn(Arc<Body<K>>) -> Kept) {
        let Self { core, tools, pool, .. } = self;
        // It may have moved since it was looked at, and what it is now may be kept.
        while !current.with(|body| {
            let has = tools.has_seen(body.slot());
            let entered = !has && body.enter();
            if entered {
                tools.see(body.slot());
                pool.kept.push(kept(Arc::clone(body)));
            }
            has || entered
        }) {
            // It is being moved: soon there is another one.
            core.wait_for_moves();
        }
    }

    /// It will not be submitted, and something else still uses what it keeps, but for what it would have read back.
    pub(crate) fn give_up(&mut self, keeps: &mut Vec<Kept>) {
        self.leave_kept();
        let is_read = |kept: &Kept| matches!(kept, Kept::Read(_));
        let (reads, used): (Vec<_>, Vec<_>) = self.pool.kept.drain(..).partition(is_read);
        self.pool.kept = reads;
        keeps.extend(used);
    }

    /// Resources may be moved again.
    fn leave_kept(&self) {
        for kept in &self.pool.kept {
            match kept {
                Kept::Buffer(buffer) => buffer.leave(),
                Kept::Image(image) => image.leave(),
                Kept::Pass(..) | Kept::Uploads(_) | Kept::Read(_) | Kept::Any(_) => {}
            }
        }
    }

    /// Transfers and dispatches are not for the inside of rendering.
    fn outside(&self) -> Result<(), ListError> {
        if self.rendering.is_some() { Err(ListError::InsideRendering) } else { Ok(()) }
    }

    /// Draws are for the inside of rendering.
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
        &self.tools.recorder
    }
}

impl Drop for CommandList {
    fn drop(&mut self) {
        if self.submitted.is_none() {
            self.leave_kept();
        }
        let (mut tools, pool) = (std::mem::take(&mut self.tools), std::mem::take(&mut self.pool));
        if let Some(ticket) = self.submitted {
            self.core.retire(ticket, crate::device::Retired::Pool(pool));
        } else {
            // Nothing of it runs: what it bound is given to a ticket that is done. If the driver refuses, the next
            // list flushes it.
            let ticket = self.core.clock.open(self.core.queues[self.queue.index()].lane);
            let _ = self.core.clock.discard(ticket);
            let _ = tools.flush(ticket);
            self.core.give_tools(tools);
            return self.core.discard(pool);
        }
        self.core.give_tools(tools);
    }
}

impl fmt::Debug for CommandList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandList").field("queue", &self.queue).finish_non_exhaustive()
    }
}
