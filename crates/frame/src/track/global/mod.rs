//! What all queues did to all resources, as far as it was submitted.
#![forbid(unsafe_code)]

mod memory;
mod resolve;
mod submission;

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use ash::vk;
use vk::PipelineStageFlags2 as Stages;

use self::memory::Memories;
use super::error::StateError;
use super::id::{BufferId, ImageId, Place, Raw, Rectangle, Resource, ResourceId, Shape};
use super::intervals::Intervals;
use super::places::LastUsers;
use super::sync::{Sync, is_outside};
use super::usage::{Scope, Subresources, Use};
#[cfg(feature = "sim")]
pub use memory::join_states_above;
pub use submission::{Release, Submission, Wait};

/// A queue of a [`Global`]. Queues of one family need no change of ownership between them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Queue {
    /// The number of its [`Global`]; 0 is none's.
    global: u32,
    index: u8,
    family: u32,
}

impl Queue {
    /// Its number, in the order in which queues were added.
    #[must_use]
    pub fn index(&self) -> usize {
        usize::from(self.index)
    }

    /// Its family.
    #[must_use]
    pub fn family(&self) -> u32 {
        self.family
    }

    /// The number of its [`Global`].
    pub(crate) fn global(&self) -> u32 {
        self.global
    }
}

/// Without the number, which depends on what else the process has made.
impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("index", &self.index).field("family", &self.family).finish()
    }
}

/// What a [`Global`] has to know of a buffer.
#[derive(Clone, Copy, Debug)]
pub struct BufferInfo {
    /// Barriers name it.
    pub buffer: vk::Buffer,
    /// In bytes.
    pub size: u64,
    /// `VK_SHARING_MODE_CONCURRENT`: it has no owner.
    pub concurrent: bool,
    /// Where it is, if other resources are there too.
    pub place: Option<Place>,
}

impl BufferInfo {
    /// A buffer that is exclusive to one family at a time, and alone in its memory.
    #[must_use]
    pub const fn new(buffer: vk::Buffer, size: u64) -> Self {
        Self { buffer, size, concurrent: false, place: None }
    }
}

/// What a [`Global`] has to know of an image.
#[derive(Clone, Copy, Debug)]
pub struct ImageInfo {
    /// Barriers name it.
    pub image: vk::Image,
    /// All aspects of its format.
    pub aspects: vk::ImageAspectFlags,
    /// Levels of its mip chain.
    pub mips: u32,
    /// Layers of its array.
    pub layers: u32,
    /// The layout that it was created in.
    pub initial_layout: vk::ImageLayout,
    /// Depth and stencil may be in different layouts: the feature `separateDepthStencilLayouts` is enabled.
    pub aspects_apart: bool,
    /// `VK_SHARING_MODE_CONCURRENT`: it has no owner.
    pub concurrent: bool,
    /// Where it is, if other resources are there too.
    pub place: Option<Place>,
}

impl ImageInfo {
    /// A color image of one mip and one layer that is exclusive to one family at a time, and alone in its memory.
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
            place: None,
        }
    }
}

/// What is known of an interval over all queues.
#[derive(Clone, Copy, Debug, PartialEq)]
struct State {
    /// On the queue that had it last. What other queues read since is in `others`.
    sync: Sync,
    /// `NOBODY` where no submission used it.
    queue: u8,
    /// Other queues that read since, one bit for each; and at which stages.
    others: u16,
    other_readers: Stages,
    /// The submission that used it last on `queue`, and the one that wrote it.
    serial: u64,
    written: u64,
}

const NOBODY: u8 = u8::MAX;

/// Queues have a bit in a mask.
const MAX_QUEUES: usize = 16;

impl State {
    const fn fresh(layout: vk::ImageLayout) -> Self {
        let sync = Sync::fresh(layout);
        Self { sync, queue: NOBODY, others: 0, other_readers: Stages::NONE, serial: 0, written: 0 }
    }
}

#[derive(Debug)]
struct Entry {
    /// As its name has it; the slot is free if the generation is odd.
    resource: Resource,
    cells: Intervals<State>,
    /// How many intervals there were when states were joined last.
    joined: usize,
    /// When it was used last, among all lists.
    used_at: u64,
    standing: Standing,
}

/// What uses mean for a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// They change its states.
    Tracked,
    /// All of them are this one.
    Frozen(Use),
    /// Another resource has taken its place, with another name.
    Superseded,
}

impl Standing {
    fn frozen(&self) -> Option<&Use> {
        match self {
            Self::Frozen(usage) => Some(usage),
            Self::Tracked | Self::Superseded => None,
        }
    }
}

/// What a queue has waited for of another one: everything up to a submission, at some stages.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    serial: u64,
    stages: Stages,
}

#[derive(Clone, Debug, Default)]
struct QueueState {
    family: u32,
    submitted: u64,
    seen: Vec<Seen>,
}

impl QueueState {
    /// Becomes as `other` is, and keeps its room.
    fn copy_from(&mut self, other: &Self) {
        (self.family, self.submitted) = (other.family, other.submitted);
        self.seen.clear();
        self.seen.extend_from_slice(&other.seen);
    }
}

/// The resources, and the last submitted use of each.
///
/// `&mut Global` is the lock: programs with several threads keep it in a mutex, and hold that from
/// [`resolve`](Self::resolve) to `vkQueueSubmit`, so that queues get submissions in the order in which they were
/// resolved.
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
/// let front = submission.front(0).expect("the layout has to change before the list");
/// assert_eq!(front.images()[0].old_layout, vk::ImageLayout::UNDEFINED);
/// assert!(submission.waits().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[doc(alias = "GlobalResourceState")]
pub struct Global {
    /// All that it names carries it. No other one has it, as long as the process runs.
    number: u32,
    entries: Vec<Entry>,
    free: Vec<u32>,
    queues: Vec<QueueState>,
    /// Those that resources have a place in.
    memories: Memories,
    last_users: LastUsers,
    /// Orders uses of resources that share memory.
    sequence: u64,
}

fn index(slot: u32) -> usize {
    usize::try_from(slot).unwrap_or(usize::MAX)
}

impl Global {
    /// Without queues and resources.
    ///
    /// # Panics
    ///
    /// If the process has made 2^32 - 1 of them.
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
    /// At more than 16 queues.
    pub fn add_queue(&mut self, family: u32) -> Queue {
        assert!(self.queues.len() < MAX_QUEUES, "there can be {MAX_QUEUES} queues");
        let index = u8::try_from(self.queues.len()).unwrap_or(NOBODY);
        self.queues.push(QueueState { family, submitted: 0, seen: vec![Seen::default(); MAX_QUEUES] });
        Queue { global: self.number, index, family }
    }

    /// Adds a buffer that no submission has used.
    #[doc(alias = "AddGlobalResourceState")]
    pub fn add_buffer(&mut self, info: &BufferInfo) -> BufferId {
        let raw = Raw::Buffer { handle: info.buffer, size: info.size };
        BufferId(self.add(raw, info.concurrent, info.place, vk::ImageLayout::UNDEFINED))
    }

    /// Adds an image that no submission has used.
    #[doc(alias = "beginTrackingTextureState")]
    pub fn add_image(&mut self, info: &ImageInfo) -> ImageId {
        let shape = Shape::new(info.aspects, info.mips, info.layers, info.aspects_apart);
        let raw = Raw::Image { handle: info.image, shape };
        ImageId(self.add(raw, info.concurrent, info.place, info.initial_layout))
    }

    fn add(&mut self, raw: Raw, concurrent: bool, place: Option<Place>, layout: vk::ImageLayout) -> Resource {
        let (global, state) = (self.number, State::fresh(layout));
        let slot = self.free.pop();
        let slot = slot.unwrap_or_else(|| u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
        let resource = if let Some(entry) = self.entries.get_mut(index(slot)) {
            let generation = entry.resource.generation.wrapping_add(1);
            entry.resource = Resource { global, slot, generation, concurrent, raw, place };
            entry.cells.reset(raw.len(), state);
            (entry.joined, entry.used_at, entry.standing) = (0, 0, Standing::Tracked);
            entry.resource
        } else {
            let resource = Resource { global, slot, generation: 0, concurrent, raw, place };
            let cells = Intervals::new(raw.len(), state);
            self.entries.push(Entry { resource, cells, joined: 0, used_at: 0, standing: Standing::Tracked });
            resource
        };
        self.add_place(&resource);
        resource
    }

    /// Forgets a resource that the GPU is done with. Lists that name it are refused from now on.
    ///
    /// # Errors
    ///
    /// [`StateError::Destroyed`] if it is gone, and [`StateError::OtherGlobal`] if it is of another `Global`.
    #[doc(alias = "RemoveGlobalResourceState")]
    pub fn remove(&mut self, resource: impl Into<ResourceId>) -> Result<(), StateError> {
        let ResourceId(resource) = resource.into();
        self.entry(resource)?;
        self.set_standing(resource.slot, Standing::Tracked);
        self.remove_place(&resource);
        let entry = &mut self.entries[index(resource.slot)];
        // Odd: free.
        entry.resource.generation = entry.resource.generation.wrapping_add(1);
        entry.resource.place = None;
        self.free.push(resource.slot);
        Ok(())
    }

    fn entry(&self, resource: Resource) -> Result<&Entry, StateError> {
        if resource.global != self.number {
            return Err(StateError::OtherGlobal { resource: ResourceId(resource) });
        }
        let entry = self.entries.get(index(resource.slot));
        let entry = entry.filter(|entry| entry.resource.generation == resource.generation);
        entry.ok_or(StateError::Destroyed { resource: ResourceId(resource) })
    }

    fn entry_mut(&mut self, resource: Resource) -> Result<&mut Entry, StateError> {
        self.entry(resource)?;
        Ok(&mut self.entries[index(resource.slot)])
    }

    /// Takes a resource out of tracking that is only read from now on, as `usage` says: lists need not declare that use
    /// any more. A list that does is resolved as before; one that does anything else is refused.
    ///
    /// The last write has to be visible to all of `usage`: submit a list first that uses the whole resource so. That
    /// holds for the queue of that list. On another queue, declare the use once, so that its semaphore is named.
    ///
    /// # Errors
    ///
    /// [`StateError::NotVisible`] if the last write is not visible to the use, or the layout is another one.
    /// [`StateError::Destroyed`] if it is gone, or a compactor has moved it since its name was read.
    /// [`StateError::OtherGlobal`] if it is of another `Global`.
    #[doc(alias = "setPermanentTextureState")]
    #[doc(alias = "setPermanentBufferState")]
    pub fn freeze(&mut self, resource: impl Into<ResourceId>, usage: Use) -> Result<(), StateError> {
        let ResourceId(resource) = resource.into();
        let entry = self.entry_mut(resource)?;
        if entry.standing == Standing::Superseded {
            return Err(StateError::Destroyed { resource: ResourceId(resource) });
        }
        let image = matches!(resource.raw, Raw::Image { .. });
        let mut visible = !usage.writes();
        entry.cells.for_each(|_, _, state| {
            visible &= state.sync.shows(usage.scope()) && (!image || state.sync.layout == usage.layout);
        });
        if !visible {
            return Err(StateError::NotVisible { resource: ResourceId(resource) });
        }
        self.set_standing(resource.slot, Standing::Frozen(usage));
        Ok(())
    }

    /// Takes a frozen resource back into tracking. Nothing happens if it was not frozen.
    ///
    /// # Errors
    ///
    /// [`StateError::Destroyed`] if it is gone, and [`StateError::OtherGlobal`] if it is of another `Global`.
    pub fn thaw(&mut self, resource: impl Into<ResourceId>) -> Result<(), StateError> {
        let ResourceId(resource) = resource.into();
        self.entry(resource)?;
        let Standing::Frozen(usage) = self.entries[index(resource.slot)].standing else {
            return Ok(());
        };
        self.set_standing(resource.slot, Standing::Tracked);
        let (entries, queues) = (&mut self.entries, &self.queues);
        let entry = &mut entries[index(resource.slot)];
        // Every submission since may have read it.
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

    /// The program waits, in the next submission to `queue` and at `stages`, for a semaphore that somebody else signals
    /// who had the resource: a swapchain image was acquired, or another process is done.
    ///
    /// # Errors
    ///
    /// [`StateError::Destroyed`] if it is gone; [`StateError::OtherGlobal`] and [`StateError::OtherQueue`] if it or the
    /// queue is of another `Global`.
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
            let sync = Sync::after_wait(Scope::new(stages, all), state.sync.layout, state.sync.owner);
            let fresh = State::fresh(state.sync.layout);
            *state = State { sync, queue: queue.index, serial: submitted, written: submitted, ..fresh };
        });
        Ok(())
    }

    /// Somebody else had an image and has left all of it in `layout`. Say so together with [`acquired`](Self::acquired) or
    /// [`idle`](Self::idle).
    ///
    /// # Errors
    ///
    /// [`StateError::Destroyed`] if it is gone.
    pub fn assume_layout(&mut self, image: ImageId, layout: vk::ImageLayout) -> Result<(), StateError> {
        let entry = self.entry_mut(ResourceId::from(image).0)?;
        entry.cells.each(|state| state.sync.layout = layout);
        Ok(())
    }

    /// The host has waited until the GPU was done with the resource, and may have written it since: the next submission
    /// sees that without a barrier. Layout and owner stay.
    ///
    /// # Errors
    ///
    /// [`StateError::Destroyed`] if it is gone, and [`StateError::OtherGlobal`] if it is of another `Global`.
    pub fn idle(&mut self, resource: impl Into<ResourceId>) -> Result<(), StateError> {
        let entry = self.entry_mut(resource.into().0)?;
        entry.cells.each(|state| {
            let (owner, queue) = (state.sync.owner, state.queue);
            *state = State { queue, ..State::fresh(state.sync.layout) };
            state.sync.owner = owner;
        });
        Ok(())
    }

    /// The number of the last submission to a queue; 0 before the first one.
    ///
    /// # Panics
    ///
    /// If the queue is of another [`Global`].
    #[must_use]
    pub fn submitted(&self, queue: Queue) -> u64 {
        assert!(queue.global == self.number, "{queue:?} is of another `Global`");
        self.queues[queue.index()].submitted
    }

    /// Takes back what the last [`resolve`](Self::resolve) with this [revocable](Submission::revocable) submission
    /// changed, because the driver refused it and nothing of it runs, its releases included. True if it was taken back:
    /// nothing happens if another `Global` has resolved it.
    ///
    /// Nothing else happens to the `Global` between the two: keep it locked.
    pub fn revoke(&mut self, submission: &mut Submission) -> bool {
        let Self { number, entries, queues, memories, sequence, .. } = self;
        let before = submission.journal.restore(*number, entries, queues, memories);
        *sequence = before.unwrap_or(*sequence);
        before.is_some()
    }

    /// Whether a copy can take the place of a resource: it is not frozen, and nobody outside of the device has any of it.
    #[cfg_attr(not(feature = "frame"), expect(dead_code, reason = "the compactor asks"))]
    pub(crate) fn can_be_replaced(&self, resource: impl Into<ResourceId>) -> bool {
        let Ok(entry) = self.entry(resource.into().0) else { return false };
        let mut here = entry.standing == Standing::Tracked;
        entry.cells.for_each(|_, _, state| here &= !is_outside(state.sync.owner));
        here
    }

    /// A copy has taken the place of a resource, which is only used by what was submitted before.
    #[cfg_attr(not(feature = "frame"), expect(dead_code, reason = "the compactor says so"))]
    pub(crate) fn supersede(&mut self, resource: impl Into<ResourceId>) {
        let ResourceId(resource) = resource.into();
        // If it is gone already there is nothing to note.
        if self.entry(resource).is_ok() {
            self.set_standing(resource.slot, Standing::Superseded);
        }
    }

    /// The parts of an image that have contents: those that are in any layout.
    #[cfg_attr(not(feature = "frame"), expect(dead_code, reason = "the compactor asks"))]
    pub(crate) fn defined(&self, image: ImageId, mut f: impl FnMut(Subresources)) {
        let Raw::Image { shape, .. } = image.0.raw else { return };
        let _ = self.layouts(image, |start, end, layout| {
            if layout != vk::ImageLayout::UNDEFINED {
                shape.rectangles(start, end, |Rectangle { aspects, mips, layers }| {
                    f(Subresources { mips, layers, aspects });
                });
            }
        });
    }

    /// How many intervals of a resource have states of their own, which is what it costs.
    ///
    /// # Errors
    ///
    /// [`StateError::Destroyed`] if it is gone, and [`StateError::OtherGlobal`] if it is of another `Global`.
    pub fn intervals(&self, resource: impl Into<ResourceId>) -> Result<usize, StateError> {
        Ok(self.entry(resource.into().0)?.cells.count())
    }

    /// The layout of each interval of an image, for pages and messages: first subresource, end, layout.
    ///
    /// # Errors
    ///
    /// [`StateError::Destroyed`] if it is gone, and [`StateError::OtherGlobal`] if it is of another `Global`.
    pub fn layouts(
        &self,
        image: ImageId,
        mut f: impl FnMut(u64, u64, vk::ImageLayout),
    ) -> Result<(), StateError> {
        self.entry(image.0)?.cells.for_each(|start, end, state| f(start, end, state.sync.layout));
        Ok(())
    }

    /// Bytes of host memory for a resource whose states are all alike.
    pub const BYTES_PER_RESOURCE: usize = size_of::<Entry>();
}

impl Default for Global {
    fn default() -> Self {
        Self::new()
    }
}
