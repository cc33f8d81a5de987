//! Records the uses of one list before the preceding states are known.

use std::cell::Cell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use ash::vk;
use vk::PipelineStageFlags2 as Stages;

use super::aliasing::{LastUsers, PreviousUses, User};
use super::batch::BarrierBatch;
use super::error::UseError;
use super::global::Queue;
use super::id::{BufferId, IdContents, ImageId, ImageShape, RawHandle, ResourceId};
use super::intervals::Intervals;
use super::local::{IntervalPhase, Local, UseEffect};
use super::usage::{Subresources, Use};

#[derive(Debug)]
pub(crate) struct UsedResource {
    pub(crate) resource: IdContents,
    pub(crate) cells: Intervals<Local>,
    /// Ticks of the first and last use, among resources that may share memory; 0 for never.
    pub(crate) first_tick: u32,
    pub(crate) last_tick: u32,
    /// The stages that its first use waited for, if another resource in this list had the memory before.
    pub(crate) taken: Option<Stages>,
    /// Index in `held`, if it has a memory range.
    memory: usize,
    step: u32,
}

/// The first uses of a resource by a list.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FirstUse {
    pub(crate) reads: bool,
    /// The list writes it, at first or later.
    pub(crate) writes: bool,
}

/// A split dependency, for `vkCmdSetEvent2` and `vkCmdWaitEvents2`. Commands between the two calls may overlap with it.
///
/// Reuse it to avoid allocations.
#[derive(Debug, Default)]
#[doc(alias = "D3D12_RESOURCE_BARRIER_FLAG_BEGIN_ONLY")]
#[doc(alias = "BeginResourceTransition")]
pub struct Split {
    batch: BarrierBatch,
    resource: Option<IdContents>,
    id: u32,
}

impl Split {
    /// Creates an empty split dependency.
    #[must_use]
    pub const fn new() -> Self {
        Self { batch: BarrierBatch::new(), resource: None, id: 0 }
    }

    /// Returns the barriers for both calls.
    pub fn batch(&self) -> &BarrierBatch {
        &self.batch
    }
}

/// Records the resource uses of one command list: its inner barriers, the first use of each resource, and the final
/// states.
///
/// One thread at a time records a list: the type is `Send` but not `Sync`. Recording needs no lock and no
/// [`Global`](super::Global).
///
/// Before each command, declare its uses and record the result of [`flush`](Self::flush).
///
/// ```
/// use ash::vk;
/// use sublet_frame::track::{BufferInfo, Global, Recorder, Use};
///
/// let mut global = Global::new();
/// let queue = global.add_queue(0);
/// let buffer = global.add_buffer(&BufferInfo::new(vk::Buffer::null(), 256));
///
/// let mut list = Recorder::new(queue);
/// list.use_buffer(buffer, 0..256, Use::COPY_TARGET)?;
/// assert!(list.flush().is_none(), "barriers before the list come from `Global::resolve`");
/// // vkCmdCopyBuffer
/// list.use_buffer(buffer, 0..256, Use::VERTICES)?;
/// let batch = list.flush().expect("the copy has to end before vertices are read");
/// assert_eq!(batch.memory().len(), 1);
/// // vkCmdPipelineBarrier2(batch.dependency_info()), vkCmdDraw
/// # Ok::<(), sublet_frame::track::UseError>(())
/// ```
#[derive(Debug)]
#[doc(alias = "ResourceStateTracker")]
#[doc(alias = "CommandListResourceStateTracker")]
pub struct Recorder {
    queue: Queue,
    /// For each slot, the epoch and the index of its entry. Valid if the epoch is `epoch`.
    index: Vec<(u32, usize)>,
    epoch: u32,
    /// Only the first `used` belong to this list. The others keep their capacity.
    entries: Vec<UsedResource>,
    used: usize,
    /// Number of the next command.
    step: u32,
    batch: BarrierBatch,
    /// True if `flush` has returned the contents of `batch`.
    flushed: bool,
    /// Index in `held`.
    memories: HashMap<vk::DeviceMemory, usize>,
    /// The entry that used each byte of a memory last, counted from 1; 0 for none. Only the first `memories.len()`
    /// belong to this list.
    held: Vec<Intervals<usize>>,
    /// Entries with a memory range, in the order of their first use, and the clock that orders their uses.
    aliased: Vec<usize>,
    tick: u32,
    last_users: LastUsers,
    fenced: bool,
    not_sync: PhantomData<Cell<()>>,
}

impl Recorder {
    /// Creates an empty list for a queue.
    #[must_use]
    pub fn new(queue: Queue) -> Self {
        Self {
            queue,
            index: Vec::new(),
            epoch: 1,
            entries: Vec::new(),
            used: 0,
            step: 1,
            batch: BarrierBatch::new(),
            flushed: false,
            memories: HashMap::new(),
            held: Vec::new(),
            aliased: Vec::new(),
            tick: 0,
            last_users: LastUsers::new(),
            fenced: false,
            not_sync: PhantomData,
        }
    }

    /// Clears the list and keeps its capacity: recording the same list again does not allocate.
    pub fn reset(&mut self) {
        self.used = 0;
        self.epoch = self.epoch.checked_add(1).unwrap_or_else(|| {
            self.index.clear();
            1
        });
        self.step = 1;
        self.batch.clear();
        self.flushed = false;
        self.memories.clear();
        self.aliased.clear();
        self.tick = 0;
        self.fenced = false;
    }

    /// Clears the list as [`reset`](Self::reset) does, and assigns it to another queue.
    pub fn reset_for(&mut self, queue: Queue) {
        self.reset();
        self.queue = queue;
    }

    /// Returns the queue of the list.
    #[must_use]
    pub fn queue(&self) -> Queue {
        self.queue
    }

    pub(crate) fn entries(&self) -> &[UsedResource] {
        &self.entries[..self.used]
    }

    /// Returns the entries with a memory range, in the order of their first use.
    pub(crate) fn aliased(&self) -> impl Iterator<Item = &UsedResource> {
        self.aliased.iter().map(|&index| &self.entries[index])
    }

    /// Calls `f` with the last user of each byte of shared memory.
    pub(crate) fn for_each_held(&self, mut f: impl FnMut(vk::DeviceMemory, u64, u64, &UsedResource)) {
        for (&memory, &at) in &self.memories {
            self.held[at].for_each(|start, end, holder| {
                if let Some(index) = holder.checked_sub(1) {
                    f(memory, start, end, &self.entries[index]);
                }
            });
        }
    }

    pub(crate) fn ticks(&self) -> u32 {
        self.tick
    }

    /// Declares that the next command uses bytes of a buffer. Clamps the range to the size of the buffer.
    ///
    /// # Errors
    ///
    /// See [`UseError`].
    ///
    /// # Complexity
    ///
    /// Constant if the whole buffer has one state and the range covers it; see `Intervals` in the source.
    #[inline]
    pub fn use_buffer(&mut self, buffer: BufferId, range: Range<u64>, usage: Use) -> Result<(), UseError> {
        let end = range.end.min(buffer.0.raw.len());
        if range.start >= end {
            return Err(UseError::OutOfRange { resource: buffer.into() });
        }
        let usage = Use { layout: vk::ImageLayout::UNDEFINED, ..usage };
        let index = self.find(&buffer.0)?;
        if self.repeats(index, range.start, end, &usage) {
            return Ok(());
        }
        self.change(index, range.start, end, &usage)
    }

    /// Declares that the next command uses a part of an image. Ignores subresources that the image does not have.
    ///
    /// # Errors
    ///
    /// See [`UseError`].
    ///
    /// # Complexity
    ///
    /// Constant if the whole image has one state and the part covers it. A part with some of the layers costs one step
    /// for each mip.
    #[inline]
    #[doc(alias = "ResourceBarrier")]
    #[doc(alias = "TransitionBarrier")]
    #[doc(alias = "TransitionResource")]
    #[doc(alias = "setTextureState")]
    #[doc(alias = "requireTextureState")]
    pub fn use_image(&mut self, image: ImageId, part: &Subresources, usage: Use) -> Result<(), UseError> {
        let RawHandle::Image { shape, .. } = image.0.raw else {
            return Err(UseError::OutOfRange { resource: image.into() });
        };
        if usage.layout == vk::ImageLayout::UNDEFINED {
            return Err(UseError::NoLayout { resource: image.into() });
        }
        if !shape.is_whole(part) {
            return self.use_part(&image.0, &shape, part, &usage);
        }
        let (index, len) = (self.find(&image.0)?, shape.len());
        if self.repeats(index, 0, len, &usage) {
            return Ok(());
        }
        self.change(index, 0, len, &usage)
    }

    /// Declares that unrecorded commands have left a part of an image as `usage` says: in that layout, and visible to
    /// or written by its stages and accesses. Declare their own first use before them. Later uses follow `usage`, and
    /// this call records no barrier.
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_frame::track::{Global, ImageInfo, Recorder, Subresources, Use};
    ///
    /// let mut global = Global::new();
    /// let queue = global.add_queue(0);
    /// let image = global.add_image(&ImageInfo::new(vk::Image::null()));
    /// let mut list = Recorder::new(queue);
    /// list.use_image(image, &Subresources::ALL, Use::COLOR_ATTACHMENT)?;
    /// list.flush();
    /// // A library draws a menu and prepares the image for a copy.
    /// list.assume_image(image, &Subresources::ALL, Use::COPY_SOURCE)?;
    /// list.use_image(image, &Subresources::ALL, Use::COPY_SOURCE)?;
    /// assert!(list.flush().is_none(), "the image is ready");
    /// # Ok::<(), sublet_frame::track::UseError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`UseError::NotUsed`] for a part that the list has not used; [`UseError::OutOfRange`]; [`UseError::NoLayout`].
    pub fn assume_image(&mut self, image: ImageId, part: &Subresources, usage: Use) -> Result<(), UseError> {
        let RawHandle::Image { shape, .. } = image.0.raw else {
            return Err(UseError::OutOfRange { resource: image.into() });
        };
        if usage.layout == vk::ImageLayout::UNDEFINED {
            return Err(UseError::NoLayout { resource: image.into() });
        }
        if !shape.has(part) {
            return Err(UseError::OutOfRange { resource: image.into() });
        }
        let (index, usage) = (self.find(&image.0)?, self.owned(&image.0, usage));
        // The undeclared commands were recorded before the next command.
        let (step, cells) = (self.step.wrapping_sub(1), &mut self.entries[index].cells);
        let mut known = true;
        shape.runs(part, |start, end| {
            cells.update(start, end, |_, _, local| known &= local.assume(&usage, step));
        });
        if known { Ok(()) } else { Err(UseError::NotUsed { resource: image.into() }) }
    }

    /// Returns the first uses of each resource.
    #[cfg_attr(
        not(feature = "frame"),
        expect(dead_code, reason = "frames report reads of unwritten resources")
    )]
    pub(crate) fn first_uses(&self) -> impl Iterator<Item = (ResourceId, FirstUse)> {
        self.entries().iter().map(|entry| {
            let mut first = FirstUse::default();
            entry.cells.for_each(|_, _, local| {
                let touched = local.phase != IntervalPhase::Untouched;
                let reads = !local.first.writes() && !local.first.stages.is_empty() && !local.first.discards;
                first.reads |= touched && local.pending && reads;
                first.writes |= touched && local.phase == IntervalPhase::Closed;
            });
            (ResourceId(entry.resource), first)
        })
    }

    /// Fast path: returns true if the range is the whole resource and the use repeats an earlier one.
    #[inline]
    fn repeats(&mut self, index: usize, start: u64, end: u64, usage: &Use) -> bool {
        let UsedResource { resource, cells, .. } = &mut self.entries[index];
        let given = usage.family != vk::QUEUE_FAMILY_IGNORED || resource.concurrent;
        let family = if given { usage.family } else { self.queue.family() };
        let step = self.step;
        let local = cells.alike(start, end).filter(|local| local.repeats(usage, family, step));
        // Another resource may have taken shared memory since.
        let Some(local) = local.filter(|_| resource.memory_range.is_none()) else { return false };
        local.step = step;
        true
    }

    #[inline(never)]
    fn change(&mut self, index: usize, start: u64, end: u64, usage: &Use) -> Result<(), UseError> {
        let resource = &self.entries[index].resource;
        let (aliased, usage) = (resource.memory_range.is_some(), self.owned(resource, *usage));
        self.discard_flushed();
        if aliased {
            self.take_memory(index, &usage)?;
        }
        self.apply(index, start, end, &usage)
    }

    #[inline(never)]
    fn use_part(
        &mut self,
        resource: &IdContents,
        shape: &ImageShape,
        part: &Subresources,
        usage: &Use,
    ) -> Result<(), UseError> {
        if !shape.has(part) {
            return Err(UseError::OutOfRange { resource: ResourceId(*resource) });
        }
        let usage = &self.owned(resource, *usage);
        let index = self.enter(resource, usage)?;
        let mut answer = Ok(());
        shape.runs(part, |start, end| {
            if answer.is_ok() {
                answer = self.apply(index, start, end, usage);
            }
        });
        answer
    }

    /// Returns the barriers to record before the next command, if there are any. Later declarations belong to the
    /// command after it.
    #[doc(alias = "FlushResourceBarriers")]
    #[doc(alias = "commitBarriers")]
    pub fn flush(&mut self) -> Option<&BarrierBatch> {
        self.step = self.step.wrapping_add(1);
        self.discard_flushed();
        self.flushed = !self.batch.is_empty();
        self.flushed.then_some(&self.batch)
    }

    /// Begins a split dependency for a later use of a buffer; see [`split_image`](Self::split_image).
    ///
    /// # Errors
    ///
    /// See [`UseError`].
    pub fn split_buffer(
        &mut self,
        buffer: BufferId,
        range: Range<u64>,
        usage: Use,
        split: &mut Split,
    ) -> Result<bool, UseError> {
        let end = range.end.min(buffer.0.raw.len());
        if range.start >= end {
            return Err(UseError::OutOfRange { resource: buffer.into() });
        }
        let usage = Use { layout: vk::ImageLayout::UNDEFINED, ..self.owned(&buffer.0, usage) };
        let Some(index) = self.begin_split(&buffer.0, split)? else {
            return Ok(false);
        };
        self.split_run(index, range.start, end, &usage, split)?;
        Ok(!split.batch.is_empty())
    }

    /// Begins a split dependency for a later read of a part of an image, so that other commands can run between its
    /// halves. Call it after the command to wait for, and call [`join`](Self::join) before the reader.
    ///
    /// If it returns true, record `vkCmdSetEvent2` with [`Split::batch`] now, and `vkCmdWaitEvents2` with the same
    /// batch before the reader. If it returns false, record nothing: the use writes, or gets its barrier before the
    /// list.
    ///
    /// # Errors
    ///
    /// See [`UseError`].
    pub fn split_image(
        &mut self,
        image: ImageId,
        part: &Subresources,
        usage: Use,
        split: &mut Split,
    ) -> Result<bool, UseError> {
        let RawHandle::Image { shape, .. } = image.0.raw else {
            return Err(UseError::OutOfRange { resource: image.into() });
        };
        if !shape.has(part) {
            return Err(UseError::OutOfRange { resource: image.into() });
        }
        if usage.layout == vk::ImageLayout::UNDEFINED {
            return Err(UseError::NoLayout { resource: image.into() });
        }
        let usage = self.owned(&image.0, usage);
        let Some(index) = self.begin_split(&image.0, split)? else {
            return Ok(false);
        };
        let mut answer = Ok(());
        shape.runs(part, |start, end| {
            if answer.is_ok() {
                answer = self.split_run(index, start, end, &usage, split);
            }
        });
        answer.map(|()| !split.batch.is_empty())
    }

    /// Ends a split dependency. Does nothing if it belongs to another list.
    pub fn join(&mut self, split: &mut Split) {
        let id = split.id;
        let resource = split.resource.take();
        if let Some(Ok(index)) = resource.map(|resource| self.find(&resource)) {
            self.entries[index].cells.each(|local| {
                if local.split == id {
                    local.split = 0;
                }
            });
        }
    }

    fn begin_split(&mut self, resource: &IdContents, split: &mut Split) -> Result<Option<usize>, UseError> {
        split.batch.clear();
        let index = self.find(resource)?;
        (split.id, split.resource) = (next_split(), Some(*resource));
        // Another resource may have taken the shared memory since. The later use then takes it back.
        let memory = self.entries[index].memory;
        let held = |(start, end)| self.held[memory].single(start, end) == Some(&(index + 1));
        let here = resource.bytes().is_none_or(held);
        Ok(here.then_some(index))
    }

    fn split_run(
        &mut self,
        index: usize,
        start: u64,
        end: u64,
        usage: &Use,
        split: &mut Split,
    ) -> Result<(), UseError> {
        let step = self.step;
        let UsedResource { resource, cells, .. } = &mut self.entries[index];
        let mut result = Ok(());
        cells.update(start, end, |from, to, local| match local.split(usage, step, split.id) {
            UseEffect::Barrier(edge) => split.batch.push(resource, from, to, &edge),
            UseEffect::Twice => result = Err(UseError::Twice { resource: ResourceId(*resource) }),
            UseEffect::Split => result = Err(UseError::Split { resource: ResourceId(*resource) }),
            UseEffect::Nothing | UseEffect::Widen => {}
        });
        result
    }

    /// Requests a barrier between previous and later unordered writes to a resource.
    ///
    /// # Errors
    ///
    /// [`UseError::Destroyed`] and [`UseError::OtherGlobal`].
    #[doc(alias = "UAVBarrier")]
    #[doc(alias = "InsertUAVBarrier")]
    #[doc(alias = "TextureUavBarrier")]
    #[doc(alias = "BufferUavBarrier")]
    pub fn storage_barrier(&mut self, resource: impl Into<ResourceId>) -> Result<(), UseError> {
        let index = self.find(&resource.into().0)?;
        self.entries[index].cells.each(Local::fence);
        Ok(())
    }

    /// Requests the barrier of [`storage_barrier`](Self::storage_barrier) for every resource.
    pub fn storage_barriers(&mut self) {
        self.fenced = true;
        self.entries[..self.used].iter_mut().for_each(|entry| entry.cells.each(Local::fence));
    }

    /// Returns the use with its queue family filled in.
    #[inline]
    fn owned(&self, resource: &IdContents, usage: Use) -> Use {
        if usage.family != vk::QUEUE_FAMILY_IGNORED || resource.concurrent {
            return usage;
        }
        Use { family: self.queue.family(), ..usage }
    }

    #[inline]
    fn discard_flushed(&mut self) {
        if self.flushed {
            self.batch.clear();
            self.flushed = false;
        }
    }

    /// Returns the entry of a resource, after it has taken its memory from other resources.
    #[inline]
    fn enter(&mut self, resource: &IdContents, usage: &Use) -> Result<usize, UseError> {
        self.discard_flushed();
        let index = self.find(resource)?;
        if resource.memory_range.is_some() {
            self.take_memory(index, usage)?;
        }
        Ok(index)
    }

    #[inline]
    fn find(&mut self, resource: &IdContents) -> Result<usize, UseError> {
        let slot = usize::try_from(resource.slot).unwrap_or(usize::MAX);
        match self.index.get(slot) {
            Some(&(epoch, index)) if epoch == self.epoch => {
                let known = &self.entries[index].resource;
                if known.generation == resource.generation && known.global == resource.global {
                    Ok(index)
                } else {
                    Err(self.unknown(resource))
                }
            }
            _ => self.add(resource, slot),
        }
    }

    #[inline(never)]
    fn add(&mut self, resource: &IdContents, slot: usize) -> Result<usize, UseError> {
        // Ensures that all resources of a list belong to the `Global` of its queue.
        if resource.global != self.queue.global() {
            return Err(self.unknown(resource));
        }
        if self.index.len() <= slot {
            self.index.resize(slot + 1, (0, 0));
        }
        let index = self.used;
        self.index[slot] = (self.epoch, index);
        self.used += 1;
        let memory = resource.memory_range.map_or(0, |memory_range| self.memory(memory_range.memory));
        let local = Local { fenced: self.fenced, ..Local::UNTOUCHED };
        let len = resource.raw.len();
        if let Some(entry) = self.entries.get_mut(index) {
            entry.cells.reset(len, local);
            (entry.resource, entry.memory) = (*resource, memory);
            (entry.first_tick, entry.last_tick, entry.taken, entry.step) = (0, 0, None, 0);
        } else {
            let (resource, cells) = (*resource, Intervals::new(len, local));
            let entry =
                UsedResource { resource, cells, first_tick: 0, last_tick: 0, taken: None, memory, step: 0 };
            self.entries.push(entry);
        }
        Ok(index)
    }

    /// Returns the error for a resource that another one replaced in its slot, or that belongs to another `Global`.
    #[cold]
    fn unknown(&self, resource: &IdContents) -> UseError {
        let foreign = resource.global != self.queue.global();
        let resource = ResourceId(*resource);
        if foreign { UseError::OtherGlobal { resource } } else { UseError::Destroyed { resource } }
    }

    /// Returns the index of a memory in `held`.
    fn memory(&mut self, memory: vk::DeviceMemory) -> usize {
        let next = self.memories.len();
        let at = *self.memories.entry(memory).or_insert(next);
        if at == next {
            match self.held.get_mut(at) {
                Some(held) => held.fill(0),
                None => self.held.push(Intervals::new(u64::MAX, 0)),
            }
        }
        at
    }

    #[inline]
    fn apply(&mut self, index: usize, start: u64, end: u64, usage: &Use) -> Result<(), UseError> {
        let (batch, step) = (&mut self.batch, self.step);
        let UsedResource { resource, cells, .. } = &mut self.entries[index];
        let (mut twice, mut split) = (false, false);
        cells.update(start, end, |from, to, local| match local.advance(usage, step) {
            UseEffect::Nothing => {}
            UseEffect::Barrier(edge) => batch.push(resource, from, to, &edge),
            UseEffect::Widen => batch.widen(resource, from, to, usage.stages, usage.access),
            UseEffect::Twice => twice = true,
            UseEffect::Split => split = true,
        });
        if split {
            return Err(UseError::Split { resource: ResourceId(*resource) });
        }
        if twice { Err(UseError::Twice { resource: ResourceId(*resource) }) } else { Ok(()) }
    }

    /// Transfers shared memory to an entry, if other resources used it since.
    fn take_memory(&mut self, index: usize, usage: &Use) -> Result<(), UseError> {
        let UsedResource { resource, last_tick, memory, .. } = self.entries[index];
        let Some((start, end)) = resource.bytes() else { return Ok(()) };
        let holder = index + 1;
        if self.held[memory].single(start, end) != Some(&holder) {
            let union = self.previous_uses(index, (start, end))?;
            self.held[memory].update(start, end, |_, _, held| *held = holder);
            self.tick += 1;
            let entry = &mut self.entries[index];
            if let Some(before) = union {
                if last_tick == 0 {
                    entry.taken = Some(before.stages);
                }
                if let Some(edge) = before.memory_edge(&resource, usage.scope()) {
                    self.batch.push_memory(&edge);
                }
                let sync = before.sync();
                entry.cells.each(|local| {
                    local.phase = IntervalPhase::Closed;
                    local.sync = sync;
                });
            }
            entry.last_tick = self.tick;
            if last_tick == 0 {
                entry.first_tick = self.tick;
                self.aliased.push(index);
            }
        }
        self.entries[index].step = self.step;
        Ok(())
    }

    /// Returns the uses of shared memory by other entries since the last use of this one.
    fn previous_uses(
        &mut self,
        index: usize,
        (start, end): (u64, u64),
    ) -> Result<Option<PreviousUses>, UseError> {
        let Self { entries, held, last_users, step, .. } = self;
        let UsedResource { resource, memory, .. } = entries[index];
        last_users.clear();
        let mut twice = false;
        held[memory].visit(start, end, |holder| {
            let other = holder.checked_sub(1).filter(|&other| other != index);
            let found = other.and_then(|other| entries[other].resource.bytes().map(|bytes| (other, bytes)));
            if let Some((index, bytes)) = found {
                twice |= entries[index].step == *step;
                last_users.add(User { used_at: entries[index].last_tick.into(), index, bytes });
            }
        });
        if twice {
            return Err(UseError::Twice { resource: ResourceId(resource) });
        }
        let mut union: Option<PreviousUses> = None;
        for user in last_users.retain_latest() {
            let before = union.get_or_insert(PreviousUses::default());
            let mut split = false;
            entries[user.index].cells.each(|local| {
                split |= local.split != 0;
                if local.phase != IntervalPhase::Untouched {
                    before.add(&local.sync);
                    local.then_written |= local.phase == IntervalPhase::Open;
                }
            });
            if split {
                return Err(UseError::Split { resource: ResourceId(entries[user.index].resource) });
            }
        }
        Ok(union)
    }
}

impl AsRef<Recorder> for Recorder {
    fn as_ref(&self) -> &Recorder {
        self
    }
}

/// A list without a queue. [Assign](Recorder::reset_for) one before the first use.
impl Default for Recorder {
    fn default() -> Self {
        Self::new(Queue::default())
    }
}

/// Returns an id that is unique across lists, so that `join` cannot match the split of another list.
fn next_split() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    // 0 means none.
    LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1)
}
