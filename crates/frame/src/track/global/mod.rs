//! Submitted states of all resources on all queues.

mod memory;
mod resolve;
mod submission;

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use ash::vk;
use vk::PipelineStageFlags2 as Stages;

use self::memory::Memories;
use super::aliasing::LastUsers;
use super::error::StateError;
use super::id::{BufferId, IdContents, ImageId, ImageShape, MemoryRange, RawHandle, Rectangle, ResourceId};
use super::intervals::Intervals;
use super::sync::{Sync, is_external};
use super::usage::{AccessScope, Subresources, Use};
#[cfg(feature = "sim")]
pub use memory::join_states_above;
pub use submission::{Release, Submission, Wait};

/// A queue of a [`Global`]. Queues of one family need no transfer of ownership.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Queue {
    /// The number of its [`Global`], or 0.
    global: u32,
    index: u8,
    family: u32,
}

impl Queue {
    /// Returns its number, in the order of [`Global::add_queue`].
    #[must_use]
    pub fn index(&self) -> usize {
        usize::from(self.index)
    }

    /// Returns its family.
    #[must_use]
    pub fn family(&self) -> u32 {
        self.family
    }

    /// Returns the number of its [`Global`].
    pub(crate) fn global(&self) -> u32 {
        self.global
    }
}

/// Omits the number of the `Global`, which differs from run to run.
impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("index", &self.index).field("family", &self.family).finish()
    }
}

/// Describes a buffer to a [`Global`].
#[derive(Clone, Copy, Debug)]
pub struct BufferInfo {
    /// The handle for barriers.
    pub buffer: vk::Buffer,
    /// The size in bytes.
    pub size: u64,
    /// `VK_SHARING_MODE_CONCURRENT`: the buffer has no owner.
    pub concurrent: bool,
    /// The memory range, if other resources may share it.
    pub memory_range: Option<MemoryRange>,
}

impl BufferInfo {
    /// Describes a buffer with exclusive sharing mode and memory of its own.
    #[must_use]
    pub const fn new(buffer: vk::Buffer, size: u64) -> Self {
        Self { buffer, size, concurrent: false, memory_range: None }
    }
}

/// Describes an image to a [`Global`].
#[derive(Clone, Copy, Debug)]
pub struct ImageInfo {
    /// The handle for barriers.
    pub image: vk::Image,
    /// All aspects of its format.
    pub aspects: vk::ImageAspectFlags,
    /// Number of mip levels.
    pub mips: u32,
    /// Number of array layers.
    pub layers: u32,
    /// The layout at creation.
    pub initial_layout: vk::ImageLayout,
    /// The feature `separateDepthStencilLayouts` is enabled: depth and stencil may be in different layouts.
    pub aspects_apart: bool,
    /// `VK_SHARING_MODE_CONCURRENT`: the image has no owner.
    pub concurrent: bool,
    /// The memory range, if other resources may share it.
    pub memory_range: Option<MemoryRange>,
}

impl ImageInfo {
    /// Describes a color image with one mip, one layer, exclusive sharing mode and memory of its own.
    #[must_use]
    pub const fn new(image: vk::Image) -> Self {
        Self {
            image,
            aspects: vk::ImageAspectFlags::COLOR,
            mips: 1,
            layers: 1,
            initial_layout: vk::ImageLayout::UNDEFINED,
            aspects_apart: false,
            concurrent: false,
            memory_range: None,
        }
    }
}

/// The state of an interval across all queues.
#[derive(Clone, Copy, Debug, PartialEq)]
struct IntervalState {
    /// State on `queue`. Reads by other queues since then are in `others`.
    sync: Sync,
    /// `NO_QUEUE` if no submission used it.
    queue: u8,
    /// Bit mask of other queues that have read since, and the stages of these reads.
    others: u16,
    other_readers: Stages,
    /// The last submission on `queue` that used the interval, and the last that wrote it.
    serial: u64,
    written: u64,
}

const NO_QUEUE: u8 = u8::MAX;

/// `IntervalState::others` has one bit for each queue.
const MAX_QUEUES: usize = 16;

impl IntervalState {
    const fn fresh(layout: vk::ImageLayout) -> Self {
        let sync = Sync::fresh(layout);
        Self { sync, queue: NO_QUEUE, others: 0, other_readers: Stages::NONE, serial: 0, written: 0 }
    }
}

#[derive(Debug)]
struct TrackedResource {
    /// The resource in this slot. The slot is free if the generation is odd.
    resource: IdContents,
    cells: Intervals<IntervalState>,
    /// Number of intervals after states were joined last.
    joined: usize,
    /// Sequence number of the last use, across all lists.
    used_at: u64,
    mode: TrackingMode,
}

/// How uses of a resource are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrackingMode {
    /// Uses change its states.
    Tracked,
    /// The only allowed use.
    Frozen(Use),
    /// A copy under another id has replaced it.
    Superseded,
}

impl TrackingMode {
    fn frozen(&self) -> Option<&Use> {
        match self {
            Self::Frozen(usage) => Some(usage),
            Self::Tracked | Self::Superseded => None,
        }
    }
}

/// The newest submission of another queue that a queue has waited for, and the stages that waited.
#[derive(Clone, Copy, Debug, Default)]
struct SeenSubmission {
    serial: u64,
    stages: Stages,
}

#[derive(Clone, Debug, Default)]
struct TrackedQueue {
    family: u32,
    submitted: u64,
    seen: Vec<SeenSubmission>,
}

impl TrackedQueue {
    /// Copies `other` without reallocation.
    fn copy_from(&mut self, other: &Self) {
        (self.family, self.submitted) = (other.family, other.submitted);
        self.seen.clear();
        self.seen.extend_from_slice(&other.seen);
    }
}

/// The resources of a device and the last submitted use of each.
///
/// Programs with several threads keep the `Global` in a mutex. Hold the lock from [`resolve`](Self::resolve) to
/// `vkQueueSubmit`: queues must receive submissions in the order of resolution.
///
/// ```
/// use ash::vk;
/// use sublet_frame::track::{Global, ImageInfo, Recorder, Submission, Subresources, Use};
///
/// let mut global = Global::new();
/// let queue = global.add_queue(0);
/// let image = global.add_image(&ImageInfo { mips: 4, ..ImageInfo::new(vk::Image::null()) });
///
/// let mut list = Recorder::new(queue);
/// list.use_image(image, &Subresources::ALL, Use::COPY_TARGET.discard())?;
///
/// let mut submission = Submission::new();
/// global.resolve(queue, &[&list], &mut submission)?;
/// let preamble = submission.preamble(0).expect("the layout has to change before the list");
/// assert_eq!(preamble.images()[0].old_layout, vk::ImageLayout::UNDEFINED);
/// assert!(submission.waits().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[doc(alias = "GlobalResourceState")]
pub struct Global {
    /// Identifies this `Global` in ids and queues. Unique in the process.
    number: u32,
    entries: Vec<TrackedResource>,
    free: Vec<u32>,
    queues: Vec<TrackedQueue>,
    /// Memory that resources with a memory range share.
    memories: Memories,
    last_users: LastUsers,
    /// Orders uses of resources that share memory.
    sequence: u64,
}

fn index(slot: u32) -> usize {
    usize::try_from(slot).unwrap_or(usize::MAX)
}

impl Global {
    /// Creates a `Global` without queues and resources.
    ///
    /// # Panics
    ///
    /// If the process has created 2^32 - 1 of them.
    #[must_use]
    pub fn new() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| last.checked_add(1));
        let Ok(last) = last else { panic!("a process makes at most 2^32 - 1 `Global`s") };
        Self {
            number: last + 1,
            entries: Vec::new(),
            free: Vec::new(),
            queues: Vec::new(),
            memories: Memories::new(),
            last_users: LastUsers::new(),
            sequence: 0,
        }
    }

    /// Adds a queue.
    ///
    /// # Panics
    ///
    /// If there are 16 queues already.
    pub fn add_queue(&mut self, family: u32) -> Queue {
        assert!(self.queues.len() < MAX_QUEUES, "there can be {MAX_QUEUES} queues");
        let index = u8::try_from(self.queues.len()).unwrap_or(NO_QUEUE);
        self.queues.push(TrackedQueue {
            family,
            submitted: 0,
            seen: vec![SeenSubmission::default(); MAX_QUEUES],
        });
        Queue { global: self.number, index, family }
    }

    /// Adds a buffer that no submission has used.
    #[doc(alias = "AddGlobalResourceState")]
    pub fn add_buffer(&mut self, info: &BufferInfo) -> BufferId {
        let raw = RawHandle::Buffer { handle: info.buffer, size: info.size };
        BufferId(self.add(raw, info.concurrent, info.memory_range, vk::ImageLayout::UNDEFINED))
    }

    /// Adds an image that no submission has used.
    #[doc(alias = "beginTrackingTextureState")]
    pub fn add_image(&mut self, info: &ImageInfo) -> ImageId {
        let shape = ImageShape::new(info.aspects, info.mips, info.layers, info.aspects_apart);
        let raw = RawHandle::Image { handle: info.image, shape };
        ImageId(self.add(raw, info.concurrent, info.memory_range, info.initial_layout))
    }

    fn add(
        &mut self,
        raw: RawHandle,
        concurrent: bool,
        memory_range: Option<MemoryRange>,
        layout: vk::ImageLayout,
    ) -> IdContents {
        let (global, state) = (self.number, IntervalState::fresh(layout));
        let slot = self.free.pop();
        let slot = slot.unwrap_or_else(|| u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
        let resource = if let Some(entry) = self.entries.get_mut(index(slot)) {
            let generation = entry.resource.generation.wrapping_add(1);
            entry.resource = IdContents { global, slot, generation, concurrent, raw, memory_range };
            entry.cells.reset(raw.len(), state);
            (entry.joined, entry.used_at, entry.mode) = (0, 0, TrackingMode::Tracked);
            entry.resource
        } else {
            let resource = IdContents { global, slot, generation: 0, concurrent, raw, memory_range };
            let cells = Intervals::new(raw.len(), state);
            self.entries.push(TrackedResource {
                resource,
                cells,
                joined: 0,
                used_at: 0,
                mode: TrackingMode::Tracked,
            });
            resource
        };
        self.add_memory_range(&resource);
        resource
    }

    /// Removes a resource that the GPU no longer uses. Later lists that use it are rejected.
    ///
    /// # Errors
    ///
    /// [`StateError::Destroyed`] if it was removed before, and [`StateError::OtherGlobal`] if it belongs to another
    /// `Global`.
    #[doc(alias = "RemoveGlobalResourceState")]
    pub fn remove(&mut self, resource: impl Into<ResourceId>) -> Result<(), StateError> {
        let ResourceId(resource) = resource.into();
        self.entry(resource)?;
        self.set_mode(resource.slot, TrackingMode::Tracked);
        self.remove_memory_range(&resource);
        let entry = &mut self.entries[index(resource.slot)];
        // Odd generations mark free slots.
        entry.resource.generation = entry.resource.generation.wrapping_add(1);
        entry.resource.memory_range = None;
        self.free.push(resource.slot);
        Ok(())
    }

    fn entry(&self, resource: IdContents) -> Result<&TrackedResource, StateError> {
        if resource.global != self.number {
            return Err(StateError::OtherGlobal { resource: ResourceId(resource) });
        }
        let entry = self.entries.get(index(resource.slot));
        let entry = entry.filter(|entry| entry.resource.generation == resource.generation);
        entry.ok_or(StateError::Destroyed { resource: ResourceId(resource) })
    }

    fn entry_mut(&mut self, resource: IdContents) -> Result<&mut TrackedResource, StateError> {
        self.entry(resource)?;
        Ok(&mut self.entries[index(resource.slot)])
    }

    /// Stops tracking a resource that is only read from now on, as `usage` says. Lists need not declare that use any
    /// more; [`resolve`](Self::resolve) rejects every other use.
    ///
    /// The last write must be visible to all of `usage`: first submit a list that declares this use for the whole
    /// resource. That covers the queue of that list. On every other queue, declare the use once, so that its semaphore
    /// is reported.
    ///
    /// # Errors
    ///
    /// [`StateError::NotVisible`] if the last write is not visible to the use, or the layout differs.
    /// [`StateError::Destroyed`] if it was removed, or a compactor has replaced it since its id was read.
    /// [`StateError::OtherGlobal`] if it belongs to another `Global`.
    #[doc(alias = "setPermanentTextureState")]
    #[doc(alias = "setPermanentBufferState")]
    pub fn freeze(&mut self, resource: impl Into<ResourceId>, usage: Use) -> Result<(), StateError> {
        let ResourceId(resource) = resource.into();
        let entry = self.entry_mut(resource)?;
        if entry.mode == TrackingMode::Superseded {
            return Err(StateError::Destroyed { resource: ResourceId(resource) });
        }
        let image = matches!(resource.raw, RawHandle::Image { .. });
        let mut visible = !usage.writes();
        entry.cells.for_each(|_, _, state| {
            visible &=
                state.sync.is_visible_to(usage.scope()) && (!image || state.sync.layout == usage.layout);
        });
        if !visible {
            return Err(StateError::NotVisible { resource: ResourceId(resource) });
        }
        self.set_mode(resource.slot, TrackingMode::Frozen(usage));
        Ok(())
    }

    /// Tracks a frozen resource again. Does nothing if it is not frozen.
    ///
    /// # Errors
    ///
    /// [`StateError::Destroyed`] if it was removed, and [`StateError::OtherGlobal`] if it belongs to another `Global`.
    pub fn thaw(&mut self, resource: impl Into<ResourceId>) -> Result<(), StateError> {
        let ResourceId(resource) = resource.into();
        self.entry(resource)?;
        let TrackingMode::Frozen(usage) = self.entries[index(resource.slot)].mode else {
            return Ok(());
        };
        self.set_mode(resource.slot, TrackingMode::Tracked);
        let (entries, queues) = (&mut self.entries, &self.queues);
        let entry = &mut entries[index(resource.slot)];
        // Every submission since the freeze may have read it.
        entry.cells.each(|state| {
            state.sync.readers |= usage.stages;
            if state.others != 0 {
                state.other_readers |= usage.stages;
            }
            if let Some(queue) = queues.get(usize::from(state.queue)) {
                state.serial = queue.submitted;
            }
        });
        Ok(())
    }

    /// Declares that the next submission to `queue` waits at `stages` for a semaphore of an external owner. Call it
    /// after a swapchain image was acquired, or when another process has finished.
    ///
    /// # Errors
    ///
    /// [`StateError::Destroyed`] if it was removed; [`StateError::OtherGlobal`] and [`StateError::OtherQueue`] if it or
    /// the queue belongs to another `Global`.
    #[doc(alias = "vkAcquireNextImageKHR")]
    pub fn acquired(
        &mut self,
        resource: impl Into<ResourceId>,
        queue: Queue,
        stages: Stages,
    ) -> Result<(), StateError> {
        let resource = resource.into();
        self.entry(resource.0)?;
        if queue.global != self.number {
            return Err(StateError::OtherQueue { queue });
        }
        let submitted = self.queues[queue.index()].submitted;
        let entry = self.entry_mut(resource.0)?;
        entry.cells.each(|state| {
            let all = vk::AccessFlags2::MEMORY_READ | vk::AccessFlags2::MEMORY_WRITE;
            let sync = Sync::after_wait(AccessScope::new(stages, all), state.sync.layout, state.sync.owner);
            let fresh = IntervalState::fresh(state.sync.layout);
            *state =
                IntervalState { sync, queue: queue.index, serial: submitted, written: submitted, ..fresh };
        });
        Ok(())
    }

    /// Declares that an external owner has left all of an image in `layout`. Call it together with
    /// [`acquired`](Self::acquired) or [`idle`](Self::idle).
    ///
    /// # Errors
    ///
    /// [`StateError::Destroyed`] if it was removed.
    pub fn assume_layout(&mut self, image: ImageId, layout: vk::ImageLayout) -> Result<(), StateError> {
        let entry = self.entry_mut(ResourceId::from(image).0)?;
        entry.cells.each(|state| state.sync.layout = layout);
        Ok(())
    }

    /// Declares that the GPU has finished with the resource and that the host may have written it. The next submission
    /// sees those writes without a barrier. Layout and owner stay.
    ///
    /// # Errors
    ///
    /// [`StateError::Destroyed`] if it was removed, and [`StateError::OtherGlobal`] if it belongs to another `Global`.
    pub fn idle(&mut self, resource: impl Into<ResourceId>) -> Result<(), StateError> {
        let entry = self.entry_mut(resource.into().0)?;
        entry.cells.each(|state| {
            let (owner, queue) = (state.sync.owner, state.queue);
            *state = IntervalState { queue, ..IntervalState::fresh(state.sync.layout) };
            state.sync.owner = owner;
        });
        Ok(())
    }

    /// Returns the number of the last submission to a queue, or 0 before the first.
    ///
    /// # Panics
    ///
    /// If the queue belongs to another [`Global`].
    #[must_use]
    pub fn submitted(&self, queue: Queue) -> u64 {
        assert!(queue.global == self.number, "{queue:?} belongs to another `Global`");
        self.queues[queue.index()].submitted
    }

    /// Undoes the last [`resolve`](Self::resolve) with this [revocable](Submission::revocable) submission, after the
    /// driver has rejected it and its releases. Returns false and changes nothing if another `Global` has resolved it.
    ///
    /// Keep the `Global` locked between both calls.
    pub fn revoke(&mut self, submission: &mut Submission) -> bool {
        let Self { number, entries, queues, memories, sequence, .. } = self;
        let before = submission.journal.restore(*number, entries, queues, memories);
        *sequence = before.unwrap_or(*sequence);
        before.is_some()
    }

    /// Returns true if a copy can replace the resource: it is not frozen, and no external owner has a part of it.
    #[cfg_attr(not(feature = "frame"), expect(dead_code, reason = "used by the compactor"))]
    pub(crate) fn can_be_replaced(&self, resource: impl Into<ResourceId>) -> bool {
        let Ok(entry) = self.entry(resource.into().0) else { return false };
        let mut here = entry.mode == TrackingMode::Tracked;
        entry.cells.for_each(|_, _, state| here &= !is_external(state.sync.owner));
        here
    }

    /// Marks a resource as replaced by a copy. Only earlier submissions use it.
    #[cfg_attr(not(feature = "frame"), expect(dead_code, reason = "used by the compactor"))]
    pub(crate) fn supersede(&mut self, resource: impl Into<ResourceId>) {
        let ResourceId(resource) = resource.into();
        // A removed resource needs no mark.
        if self.entry(resource).is_ok() {
            self.set_mode(resource.slot, TrackingMode::Superseded);
        }
    }

    /// Calls `f` with each part of an image that has contents, that is, a defined layout.
    #[cfg_attr(not(feature = "frame"), expect(dead_code, reason = "used by the compactor"))]
    pub(crate) fn defined(&self, image: ImageId, mut f: impl FnMut(Subresources)) {
        let RawHandle::Image { shape, .. } = image.0.raw else { return };
        let _ = self.layouts(image, |start, end, layout| {
            if layout != vk::ImageLayout::UNDEFINED {
                shape.rectangles(start, end, |Rectangle { aspects, mips, layers }| {
                    f(Subresources { mips, layers, aspects });
                });
            }
        });
    }

    /// Returns the number of intervals with separate states. Memory and time grow with it.
    ///
    /// # Errors
    ///
    /// [`StateError::Destroyed`] if it was removed, and [`StateError::OtherGlobal`] if it belongs to another `Global`.
    pub fn intervals(&self, resource: impl Into<ResourceId>) -> Result<usize, StateError> {
        Ok(self.entry(resource.into().0)?.cells.count())
    }

    /// Calls `f` with each interval of an image: first subresource, end, layout. For diagnostics.
    ///
    /// # Errors
    ///
    /// [`StateError::Destroyed`] if it was removed, and [`StateError::OtherGlobal`] if it belongs to another `Global`.
    pub fn layouts(
        &self,
        image: ImageId,
        mut f: impl FnMut(u64, u64, vk::ImageLayout),
    ) -> Result<(), StateError> {
        self.entry(image.0)?.cells.for_each(|start, end, state| f(start, end, state.sync.layout));
        Ok(())
    }

    /// Host memory in bytes for a resource with one state.
    pub const BYTES_PER_RESOURCE: usize = size_of::<TrackedResource>();
}

impl Default for Global {
    fn default() -> Self {
        Self::new()
    }
}
