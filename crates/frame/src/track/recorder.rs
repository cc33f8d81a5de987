//! What one list does, before anybody knows what comes before it.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use ash::vk;
use vk::PipelineStageFlags2 as Stages;

use super::batch::Batch;
use super::error::UseError;
use super::global::Queue;
use super::id::{BufferId, ImageId, Raw, Resource, ResourceId, Shape};
use super::intervals::Intervals;
use super::local::{Answer, Local, Phase};
use super::places::{Before, LastUsers, User};
use super::usage::{Subresources, Use};

/// A resource in a list.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) resource: Resource,
    pub(crate) cells: Intervals<Local>,
    /// When it was used first and last, among the resources that may share memory; 0 for never.
    pub(crate) first_tick: u32,
    pub(crate) last_tick: u32,
    /// What its first use waited for, if another resource had the memory before in this list.
    pub(crate) taken: Option<Stages>,
    /// Where its memory is in `held`, if it has a place.
    memory: usize,
    step: u32,
}

/// What a list does first with a resource: with some of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FirstUse {
    pub(crate) reads: bool,
    /// It writes it, first or later.
    pub(crate) writes: bool,
}

/// A dependency in two halves, for `vkCmdSetEvent2` and `vkCmdWaitEvents2`: what is between them may run meanwhile.
///
/// Keep it and pass it again: it keeps its room.
#[derive(Debug, Default)]
#[doc(alias = "D3D12_RESOURCE_BARRIER_FLAG_BEGIN_ONLY")]
#[doc(alias = "BeginResourceTransition")]
pub struct Split {
    batch: Batch,
    resource: Option<Resource>,
    id: u32,
}

impl Split {
    /// Nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { batch: Batch::new(), resource: None, id: 0 }
    }

    /// What both calls get.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }
}

/// What one command list does with resources: the barriers within it, the first use of everything, and the state that
/// it leaves.
///
/// A list is recorded by one thread at a time: the type can be sent but not shared. Recording needs no lock and no
/// [`Global`](super::Global).
///
/// Before each command, declare what it uses, and record what [`flush`](Self::flush) returns.
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
/// assert!(list.flush().is_none(), "what comes before the list is settled at submission");
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
    /// Where the entry of a slot is, if the first word is `epoch`.
    index: Vec<(u32, usize)>,
    epoch: u32,
    /// Those up to `used` are this list's; the others keep their room for later ones.
    entries: Vec<Entry>,
    used: usize,
    /// The command that is being prepared.
    step: u32,
    batch: Batch,
    /// What `batch` has was handed out.
    flushed: bool,
    /// Where a memory is in `held`.
    memories: HashMap<vk::DeviceMemory, usize>,
    /// The entry that used each byte of a memory last, from 1; 0 for none. Those up to the length of `memories` are this
    /// list's.
    held: Vec<Intervals<usize>>,
    /// Entries with a place in the order of their first use, and the clock that orders their uses.
    placed: Vec<usize>,
    tick: u32,
    last_users: LastUsers,
    fenced: bool,
    not_sync: PhantomData<Cell<()>>,
}

impl Recorder {
    /// An empty list for a queue.
    #[must_use]
    pub fn new(queue: Queue) -> Self {
        Self {
            queue,
            index: Vec::new(),
            epoch: 1,
            entries: Vec::new(),
            used: 0,
            step: 1,
            batch: Batch::new(),
            flushed: false,
            memories: HashMap::new(),
            held: Vec::new(),
            placed: Vec::new(),
            tick: 0,
            last_users: LastUsers::new(),
            fenced: false,
            not_sync: PhantomData,
        }
    }

    /// Becomes an empty list again, and keeps its room: a list that does what it did before allocates nothing.
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
        self.placed.clear();
        self.tick = 0;
        self.fenced = false;
    }

    /// [`reset`](Self::reset), for a list that another queue gets.
    pub fn reset_for(&mut self, queue: Queue) {
        self.reset();
        self.queue = queue;
    }

    /// The queue that the list is for.
    #[must_use]
    pub fn queue(&self) -> Queue {
        self.queue
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries[..self.used]
    }

    /// Those with a place, in the order of their first use.
    pub(crate) fn placed(&self) -> impl Iterator<Item = &Entry> {
        self.placed.iter().map(|&index| &self.entries[index])
    }

    /// Who used the bytes of each memory last.
    pub(crate) fn for_each_held(&self, mut f: impl FnMut(vk::DeviceMemory, u64, u64, &Entry)) {
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

    /// The next command uses bytes of a buffer. What is beyond its end is ignored.
    ///
    /// # Errors
    ///
    /// See [`UseError`].
    ///
    /// # Complexity
    ///
    /// Constant where the whole buffer is alike and the range is all of it; see `Intervals` in the source.
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

    /// The next command uses a part of an image. What is beyond the image is ignored.
    ///
    /// # Errors
    ///
    /// See [`UseError`].
    ///
    /// # Complexity
    ///
    /// Constant where the whole image is alike and the part is all of it. A part that has not all layers costs a step
    /// for each of its mips.
    #[inline]
    #[doc(alias = "ResourceBarrier")]
    #[doc(alias = "TransitionBarrier")]
    #[doc(alias = "TransitionResource")]
    #[doc(alias = "setTextureState")]
    #[doc(alias = "requireTextureState")]
    pub fn use_image(&mut self, image: ImageId, part: &Subresources, usage: Use) -> Result<(), UseError> {
        let Raw::Image { shape, .. } = image.0.raw else {
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

    /// Commands that the list does not know have left a part of an image as `usage` says: in that layout, and visible to its
    /// stages and accesses, or written by them. What they found there was declared before. What comes next follows
    /// `usage`, and no barrier is recorded for it.
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
    /// // a library draws a menu, and makes the image ready for a copy
    /// list.assume_image(image, &Subresources::ALL, Use::COPY_SOURCE)?;
    /// list.use_image(image, &Subresources::ALL, Use::COPY_SOURCE)?;
    /// assert!(list.flush().is_none(), "it is ready");
    /// # Ok::<(), sublet_frame::track::UseError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`UseError::NotUsed`] for what the list has not used; [`UseError::OutOfRange`], [`UseError::NoLayout`].
    pub fn assume_image(&mut self, image: ImageId, part: &Subresources, usage: Use) -> Result<(), UseError> {
        let Raw::Image { shape, .. } = image.0.raw else {
            return Err(UseError::OutOfRange { resource: image.into() });
        };
        if usage.layout == vk::ImageLayout::UNDEFINED {
            return Err(UseError::NoLayout { resource: image.into() });
        }
        if !shape.has(part) {
            return Err(UseError::OutOfRange { resource: image.into() });
        }
        let (index, usage) = (self.find(&image.0)?, self.owned(&image.0, usage));
        // They were recorded before the command that comes next.
        let (step, cells) = (self.step.wrapping_sub(1), &mut self.entries[index].cells);
        let mut known = true;
        shape.runs(part, |start, end| {
            cells.update(start, end, |_, _, local| known &= local.assume(&usage, step));
        });
        if known { Ok(()) } else { Err(UseError::NotUsed { resource: image.into() }) }
    }

    /// What the list does first with each resource.
    #[cfg_attr(
        not(feature = "frame"),
        expect(dead_code, reason = "frames look for reads of what was not written")
    )]
    pub(crate) fn first_uses(&self) -> impl Iterator<Item = (ResourceId, FirstUse)> {
        self.entries().iter().map(|entry| {
            let mut first = FirstUse::default();
            entry.cells.for_each(|_, _, local| {
                let touched = local.phase != Phase::Untouched;
                let reads = !local.first.writes() && !local.first.stages.is_empty() && !local.first.discards;
                first.reads |= touched && local.pending && reads;
                first.writes |= touched && local.phase == Phase::Closed;
            });
            (ResourceId(entry.resource), first)
        })
    }

    /// Whether the points are all of the resource, and the use repeats what was declared before: then it is noted. Most
    /// uses are such.
    #[inline]
    fn repeats(&mut self, index: usize, start: u64, end: u64, usage: &Use) -> bool {
        let Entry { resource, cells, .. } = &mut self.entries[index];
        let given = usage.family != vk::QUEUE_FAMILY_IGNORED || resource.concurrent;
        let family = if given { usage.family } else { self.queue.family() };
        let step = self.step;
        let local = cells.alike(start, end).filter(|local| local.repeats(usage, family, step));
        // Whoever shares memory may have had it since.
        let Some(local) = local.filter(|_| resource.place.is_none()) else { return false };
        local.step = step;
        true
    }

    #[inline(never)]
    fn change(&mut self, index: usize, start: u64, end: u64, usage: &Use) -> Result<(), UseError> {
        let resource = &self.entries[index].resource;
        let (placed, usage) = (resource.place.is_some(), self.owned(resource, *usage));
        self.discard_flushed();
        if placed {
            self.take_place(index, &usage)?;
        }
        self.apply(index, start, end, &usage)
    }

    #[inline(never)]
    fn use_part(
        &mut self,
        resource: &Resource,
        shape: &Shape,
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

    /// The barriers that have to be recorded before the next command; none if there are none. What is declared from
    /// here on belongs to the command after it.
    #[doc(alias = "FlushResourceBarriers")]
    #[doc(alias = "commitBarriers")]
    pub fn flush(&mut self) -> Option<&Batch> {
        self.step = self.step.wrapping_add(1);
        self.discard_flushed();
        self.flushed = !self.batch.is_empty();
        self.flushed.then_some(&self.batch)
    }

    /// Begins the dependency of a later use of a buffer; see [`split_image`](Self::split_image).
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

    /// Begins the dependency of a later use that reads a part of an image, so that commands which need neither can run
    /// between its halves. Call it behind the command that comes before, and [`join`](Self::join) before the one that
    /// reads.
    ///
    /// If true, record `vkCmdSetEvent2` with [`Split::batch`] now, and `vkCmdWaitEvents2` with the same at the other
    /// end. If false, there is nothing to record: the use writes, or gets its barrier in front of the list.
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
        let Raw::Image { shape, .. } = image.0.raw else {
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

    /// Ends a dependency that was split. Nothing happens if it was none of this list.
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

    fn begin_split(&mut self, resource: &Resource, split: &mut Split) -> Result<Option<usize>, UseError> {
        split.batch.clear();
        let index = self.find(resource)?;
        (split.id, split.resource) = (next_split(), Some(*resource));
        // Who shares memory may have had it since: the use itself takes it back.
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
        let Entry { resource, cells, .. } = &mut self.entries[index];
        let mut result = Ok(());
        cells.update(start, end, |from, to, local| match local.split(usage, step, split.id) {
            Answer::Barrier(edge) => split.batch.push(resource, from, to, &edge),
            Answer::Twice => result = Err(UseError::Twice { resource: ResourceId(*resource) }),
            Answer::Split => result = Err(UseError::Split { resource: ResourceId(*resource) }),
            Answer::Nothing | Answer::Widen => {}
        });
        result
    }

    /// Asks for a barrier between unordered writes to a resource so far and the next ones.
    ///
    /// # Errors
    ///
    /// [`UseError::Destroyed`] and [`UseError::OtherGlobal`] as with a use.
    #[doc(alias = "UAVBarrier")]
    #[doc(alias = "InsertUAVBarrier")]
    #[doc(alias = "TextureUavBarrier")]
    #[doc(alias = "BufferUavBarrier")]
    pub fn storage_barrier(&mut self, resource: impl Into<ResourceId>) -> Result<(), UseError> {
        let index = self.find(&resource.into().0)?;
        self.entries[index].cells.each(Local::fence);
        Ok(())
    }

    /// The same for every resource.
    pub fn storage_barriers(&mut self) {
        self.fenced = true;
        self.entries[..self.used].iter_mut().for_each(|entry| entry.cells.each(Local::fence));
    }

    /// The use with the family that it is in.
    #[inline]
    fn owned(&self, resource: &Resource, usage: Use) -> Use {
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

    /// The entry of a resource, which another one in the same memory may have to leave first.
    #[inline]
    fn enter(&mut self, resource: &Resource, usage: &Use) -> Result<usize, UseError> {
        self.discard_flushed();
        let index = self.find(resource)?;
        if resource.place.is_some() {
            self.take_place(index, usage)?;
        }
        Ok(index)
    }

    #[inline]
    fn find(&mut self, resource: &Resource) -> Result<usize, UseError> {
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
    fn add(&mut self, resource: &Resource, slot: usize) -> Result<usize, UseError> {
        // So everything that a list uses is of the one `Global` that its queue is of.
        if resource.global != self.queue.global() {
            return Err(self.unknown(resource));
        }
        if self.index.len() <= slot {
            self.index.resize(slot + 1, (0, 0));
        }
        let index = self.used;
        self.index[slot] = (self.epoch, index);
        self.used += 1;
        let memory = resource.place.map_or(0, |place| self.memory(place.memory));
        let local = Local { fenced: self.fenced, ..Local::UNTOUCHED };
        let len = resource.raw.len();
        if let Some(entry) = self.entries.get_mut(index) {
            entry.cells.reset(len, local);
            (entry.resource, entry.memory) = (*resource, memory);
            (entry.first_tick, entry.last_tick, entry.taken, entry.step) = (0, 0, None, 0);
        } else {
            let (resource, cells) = (*resource, Intervals::new(len, local));
            let entry = Entry { resource, cells, first_tick: 0, last_tick: 0, taken: None, memory, step: 0 };
            self.entries.push(entry);
        }
        Ok(index)
    }

    /// A resource that is not what the list has in its slot, or of another `Global`.
    #[cold]
    fn unknown(&self, resource: &Resource) -> UseError {
        let foreign = resource.global != self.queue.global();
        let resource = ResourceId(*resource);
        if foreign { UseError::OtherGlobal { resource } } else { UseError::Destroyed { resource } }
    }

    /// Where a memory is in `held`.
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
        let Entry { resource, cells, .. } = &mut self.entries[index];
        let (mut twice, mut split) = (false, false);
        cells.update(start, end, |from, to, local| match local.advance(usage, step) {
            Answer::Nothing => {}
            Answer::Barrier(edge) => batch.push(resource, from, to, &edge),
            Answer::Widen => batch.widen(resource, from, to, usage.stages, usage.access),
            Answer::Twice => twice = true,
            Answer::Split => split = true,
        });
        if split {
            return Err(UseError::Split { resource: ResourceId(*resource) });
        }
        if twice { Err(UseError::Twice { resource: ResourceId(*resource) }) } else { Ok(()) }
    }

    /// Lets the memory of an entry go over to it, if resources that share it were used since.
    fn take_place(&mut self, index: usize, usage: &Use) -> Result<(), UseError> {
        let Entry { resource, last_tick, memory, .. } = self.entries[index];
        let Some((start, end)) = resource.bytes() else { return Ok(()) };
        let holder = index + 1;
        if self.held[memory].single(start, end) != Some(&holder) {
            let union = self.leave_place(index, (start, end))?;
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
                    local.phase = Phase::Closed;
                    local.sync = sync;
                });
            }
            entry.last_tick = self.tick;
            if last_tick == 0 {
                entry.first_tick = self.tick;
                self.placed.push(index);
            }
        }
        self.entries[index].step = self.step;
        Ok(())
    }

    /// What those did that share memory with an entry and were used since its last use.
    fn leave_place(&mut self, index: usize, (start, end): (u64, u64)) -> Result<Option<Before>, UseError> {
        let Self { entries, held, last_users, step, .. } = self;
        let Entry { resource, memory, .. } = entries[index];
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
        let mut union: Option<Before> = None;
        for user in last_users.settle() {
            let before = union.get_or_insert(Before::default());
            let mut split = false;
            entries[user.index].cells.each(|local| {
                split |= local.split != 0;
                if local.phase != Phase::Untouched {
                    before.add(&local.sync);
                    local.then_written |= local.phase == Phase::Open;
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

/// A list for no queue, to be [reset for](Recorder::reset_for) one before it uses anything.
impl Default for Recorder {
    fn default() -> Self {
        Self::new(Queue::default())
    }
}

/// Names a dependency in two halves: in all lists, so that none is joined by another list's name.
fn next_split() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    // 0 is none.
    LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1)
}
