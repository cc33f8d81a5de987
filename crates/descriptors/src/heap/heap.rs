//! The heap allocates slots; a store holds their content.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use super::super::counts::DescriptorKind;
use super::super::descriptor::Descriptor;
use super::super::events;
use super::super::source::DescriptorSource;
use super::error::{HeapError, HeapWriteError, RangeError};
use super::host::{HostHeap, Staged};
use super::range::{DescriptorRange, DescriptorRangeId, ForeignDescriptorRange};
use super::slot::HeapSlot;
use super::slots::HeapSlots;
use super::statistics::{HeapStatistics, SlotRun};
use super::store::HeapStore;
use parking_lot::Mutex;
use sublet::retire::{ClockView, OtherClock, ReserveError, Ticket};
use sublet_engines::cast::narrow;

/// The number of the next heap.
static NEXT_ID: AtomicU32 = AtomicU32::new(0);

pub(super) fn next_id() -> u32 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// One large array of descriptors, allocated in ranges, that shaders index ("bindless").
///
/// [`allocate`](Self::allocate) returns consecutive slots, so a material with five textures needs one number in a push
/// constant. [`write`](Self::write) writes a descriptor into a slot. [`retire`](Self::retire) ends a range;
/// [`collect`](Self::collect) frees its slots once the GPU is done with the last recording that uses them. The store
/// determines the bound objects and the declarations in shaders: see [`HeapStore`] for a list. A program has one heap
/// for buffers and images and one for samplers ([`HeapKind`](super::HeapKind)). It binds both at the start of a command
/// buffer.
///
/// Any number of threads may use it at once. Its short lock is not held during driver calls.
///
/// # Growing
/// With [`HeapCreateInfo::max_slots`](super::HeapCreateInfo::max_slots) a full heap grows: [`allocate`](Self::allocate)
/// creates a store of twice the slots, or of as many as the request needs, and copies the old content. Live slots keep
/// their numbers. Layouts and their pipelines stay valid too, unless the program permits a change
/// ([`HeapGrowth::ChangeLayout`](super::HeapGrowth::ChangeLayout)). If anything fails, the heap is unchanged
/// ([`HeapError::NotGrown`]).
///
/// From then on the heap binds the larger store. Command buffers that bound the smaller store continue to use it: they
/// see neither new slots nor later writes. So allocate and write before you bind. When
/// [`HeapStatistics::growths`] changes, record reusable command buffers again. The old store lives until
/// [`retire_outgrown`](Self::retire_outgrown) assigns a ticket and [`collect`](Self::collect) finds it done.
/// Descriptors that commands write on the GPU are copied if those commands have completed.
///
/// | store | keeps its layout |
/// |---|---|
/// | [`SetStore`](super::SetStore) | with one array ([`HeapArrays::One`](super::HeapArrays::One), or one type) and `VARIABLE_DESCRIPTOR_COUNT` |
/// | [`BufferStore`](super::BufferStore) | under the same conditions |
/// | [`NativeStore`](super::NativeStore) | always: it has none |
/// | [`ClassicStore`](super::ClassicStore) | never |
///
/// Other stores have all slots from the start, or, with `ChangeLayout`, grow with a new layout. Then:
///
/// - After an allocation, compare the store's `layout` with that of your pipelines, and recreate them if it differs.
///   The old layout lives as long as the old store.
/// - Do not allocate while another thread is between reading the layout and binding the heap. Transient slots
///   ([`allocate_transient`](Self::allocate_transient)) never make a heap grow.
/// - With a set for each frame, flush again before binding, because the larger set is still empty.
///
/// To grow several types with stable pipelines on every device with descriptor indexing, use one heap for each type.
///
/// # Invariant
/// At any time, the free, live and retiring slots add up to all slots ([`HeapStatistics`]).
///
/// # Complexity
/// [`allocate`](Self::allocate), [`retire`](Self::retire): O(1). [`collect`](Self::collect): O(freed ranges). None of
/// them allocates host memory once as many ranges have been live. Host memory is 16 bytes for each slot up to the
/// highest start of a range, and 40 bytes for each range.
///
/// # Limitations
/// The heap is not defragmented, because it cannot find indices in GPU memory. Samplers are not deduplicated: keep your
/// own table, since devices allow as few as 4,000.
///
/// ```
/// use ash::vk;
/// use sublet_descriptors::*;
/// use sublet::retire::Clock;
/// # use sublet::sim;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-h200").unwrap());
/// # let buffer_info = vk::BufferCreateInfo::default().size(256).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
/// # let allocator = unsafe { sublet::Allocator::new(&sublet::AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// # let memory = sublet::AllocationCreateInfo::new(sublet::MemoryUsage::Auto);
/// # let (buffer, allocation) = unsafe { allocator.create_buffer(&buffer_info, &memory) }?;
/// // SAFETY: instance and device are live, and outlive everything that is created from the value.
/// let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// let info = HeapCreateInfo { slots: 1_024, ..HeapCreateInfo::new(HeapKind::Resource) };
/// let heap = DescriptorHeap::new(SetStore::new(&device, &info)?);
///
/// let material = heap.allocate(2)?;
/// let lights = Descriptor::StorageBuffer(BufferDescriptor::new(buffer, 0, 256));
/// // SAFETY: the buffer is live, and no shader uses the slot.
/// let index = unsafe { heap.write(material.id(), 1, &lights) }?;
/// assert_eq!(index, material.first() + 1);
///
/// // The last frame that uses the material:
/// let clock = Clock::new();
/// let timeline = clock.add_timeline()?;
/// let frame = clock.open(timeline);
/// // SAFETY: no later recording uses it.
/// unsafe { heap.retire(frame, material) }?;
/// clock.submit(frame, 1)?;
/// clock.completed(timeline, 1);
/// assert_eq!(heap.collect(&clock)?, 2);
/// // SAFETY: the device does not use the heap.
/// unsafe { heap.into_store().destroy() };
/// # unsafe { allocator.destroy_buffer(buffer, allocation) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "UserDescriptorHeap")]
#[doc(alias = "GPUDescriptorHeap")]
#[doc(alias = "ID3D12DescriptorHeap")]
#[doc(alias = "DescriptorTable")]
pub struct DescriptorHeap<S> {
    /// Protects the ranges; taken before the locks of the store, which [`HeapStore::retired`] takes. The library's
    /// stores call no driver there.
    slots: Mutex<HeapSlots>,
    /// Held by the thread that grows the store; taken before `slots`, and held over driver calls.
    growing: Mutex<()>,
    /// Protects the ranges whose [`OwnedRange`](super::OwnedRange) was dropped; taken before `slots`.
    dropped: Mutex<Vec<DescriptorRange>>,
    store: S,
}

impl<S: HeapStore> DescriptorHeap<S> {
    /// Creates a heap over `store`.
    pub fn new(store: S) -> Self {
        // Read once: a custom store may return different values the next time.
        let all = store.slots();
        let transient = store.transient().min(all);
        let slots = HeapSlots::new(next_id(), all - transient, transient, store.max_slots());
        let (growing, dropped) = (Mutex::new(()), Mutex::new(Vec::new()));
        Self { slots: Mutex::new(slots), growing, dropped, store }
    }

    /// Allocates `count` consecutive slots. Their content is arbitrary.
    ///
    /// # Errors
    /// [`HeapError`]: zero slots, or no free range of this size. [`HeapError::Full`] reports if waiting for the GPU or
    /// less fragmentation can help.
    ///
    /// # Complexity
    /// O(1); O(slots) if the heap [grows](Self#growing). Other threads allocate, free and look up meanwhile; their
    /// writes wait for the copy.
    #[inline]
    pub fn allocate(&self, count: u32) -> Result<DescriptorRange, HeapError> {
        let made = self.slots.lock().allocate(count);
        match made {
            Err(HeapError::Full { .. }) => self.grow_and_allocate(count),
            made => made,
        }
    }

    #[cold]
    fn grow_and_allocate(&self, count: u32) -> Result<DescriptorRange, HeapError> {
        events::after(|| self.grow_in_turn(count))
    }

    /// Implements [`Self::grow_and_allocate`] under `growing`.
    fn grow_in_turn(&self, count: u32) -> Result<DescriptorRange, HeapError> {
        let _growing = self.growing.lock();
        let next = {
            let mut slots = self.slots.lock();
            // Another thread may have grown the heap or freed a range meanwhile.
            let full = match slots.allocate(count) {
                Err(full @ HeapError::Full { .. }) => full,
                made => return made,
            };
            slots.grown_for(count).ok_or(full)?
        };
        // `grow` runs without the slot lock, so other threads can use the existing slots.
        let grown = self.store.grow(next);
        grown.map_err(|source| HeapError::NotGrown { asked: count, source: Box::new(source) })?;
        let mut slots = self.slots.lock();
        slots.extend(next);
        slots.allocate(count)
    }

    /// Allocates slots for one recording from the transient part
    /// ([`HeapCreateInfo::transient`](super::HeapCreateInfo::transient)).
    ///
    /// [`collect`](Self::collect) frees them once the ticket is done; nothing else does. The part is a ring, so lasting
    /// and transient ranges do not fragment each other.
    ///
    /// # Errors
    /// [`HeapError`], same as [`allocate`](Self::allocate), for that part.
    ///
    /// # Complexity
    /// O(1).
    #[doc(alias = "AllocateDynamic")]
    #[doc(alias = "DynamicSuballocationsManager")]
    pub fn allocate_transient(&self, ticket: Ticket, count: u32) -> Result<DescriptorRangeId, HeapError> {
        self.slots.lock().allocate_transient(ticket, count)
    }

    /// Checks that a range is live and belongs to this heap.
    ///
    /// # Errors
    /// [`RangeError`] otherwise.
    #[inline]
    pub fn check(&self, range: DescriptorRangeId) -> Result<(), RangeError> {
        self.slots.lock().check(range)
    }

    /// Writes a descriptor into a slot of a range, counted from its first. Returns the index for shaders.
    ///
    /// # Errors
    /// [`HeapWriteError`]. The slot is unchanged.
    ///
    /// # Safety
    /// 1. The objects in the descriptor are live, belong to the store's device, and fit its type. They stay live while
    ///    shaders use the slot, until it is written again or the range is retired and collected.
    /// 2. Nobody else writes the slot at the same time, or retires its range.
    /// 3. No running or submitted shader uses the slot.
    #[doc(alias = "CopyDescriptor")]
    #[doc(alias = "UploadDirect")]
    #[doc(alias = "writeDescriptorTable")]
    pub unsafe fn write(
        &self,
        range: DescriptorRangeId,
        slot: u32,
        descriptor: &Descriptor,
    ) -> Result<u32, HeapWriteError> {
        let index = range.index(slot)?;
        self.check(range)?;
        // SAFETY: the index is one of the heap's, because the range is live and belongs to it; the rest is the caller's
        // promise.
        unsafe { self.store.write(index, descriptor) }?;
        Ok(index)
    }

    /// Writes a descriptor into a slot of a range, from the create-info of its view or sampler. [Every
    /// store](HeapStore) supports this. Returns the index for shaders.
    ///
    /// # Errors
    /// [`HeapWriteError`]. The slot is unchanged.
    ///
    /// # Safety
    /// Same as [`write`](Self::write). The create-info is valid; a non-null handle was created from it, and its image
    /// is live while shaders use the slot.
    pub unsafe fn write_source(
        &self,
        range: DescriptorRangeId,
        slot: u32,
        source: &DescriptorSource<'_>,
    ) -> Result<u32, HeapWriteError> {
        let index = range.index(slot)?;
        self.check(range)?;
        // SAFETY: the index is one of the heap's, because the range is live and belongs to it; the rest is the caller's
        // promise.
        unsafe { self.store.write_source(index, source) }?;
        Ok(index)
    }

    /// Writes descriptors into consecutive slots of a range, from `slot` on. Returns the index of the first for
    /// shaders. They may have different types. A set needs one driver call for all of them.
    ///
    /// # Errors
    /// [`HeapWriteError`]. The slots are unchanged, except that [some stores](HeapStore::write_many) may have written a
    /// part of them.
    ///
    /// # Safety
    /// Same as [`write`](Self::write), for every descriptor.
    ///
    /// # Complexity
    /// O(descriptors), plus temporary host memory if the driver takes them as one array.
    pub unsafe fn write_many(
        &self,
        range: DescriptorRangeId,
        slot: u32,
        descriptors: &[Descriptor],
    ) -> Result<u32, HeapWriteError> {
        let indices = range.part(slot, descriptors.len())?;
        self.check(range)?;
        let first = indices.start;
        let writes = indices.zip(descriptors);
        // SAFETY: the indices are the heap's, because the range is live and belongs to it; the rest is the caller's
        // promise.
        unsafe { self.store.write_many(writes) }?;
        Ok(first)
    }

    /// Copies the descriptors of a range in host memory into the slots of a range in this heap, from `slot` on. Returns
    /// the number of copied descriptors. Slots that were never written in the source leave the heap's slots unchanged.
    /// A set needs one driver call for all of them.
    ///
    /// # Errors
    /// [`HeapWriteError`]. Nothing is written, except when bytes are copied and the heap lacks the type of one of them:
    /// the descriptors before it are written.
    ///
    /// # Safety
    /// Same as [`write`](Self::write), for every descriptor that was written into the source.
    ///
    /// # Complexity
    /// Same as [`write_many`](Self::write_many).
    pub unsafe fn copy_from(
        &self,
        range: DescriptorRangeId,
        slot: u32,
        staging: &HostHeap,
        from: DescriptorRangeId,
    ) -> Result<u32, HeapWriteError> {
        // SAFETY: the caller keeps the promises of `copy_part_from` for the whole range.
        unsafe { self.copy_part_from(range, slot, staging, from, 0..from.count()) }
    }

    /// Copies the slots `part`, counted from the first, of a range in host memory. See [`copy_from`](Self::copy_from).
    ///
    /// # Errors
    /// Same as [`copy_from`](Self::copy_from).
    ///
    /// # Safety
    /// Same as [`copy_from`](Self::copy_from), for the descriptors in the part.
    ///
    /// # Complexity
    /// Same as [`write_many`](Self::write_many).
    pub unsafe fn copy_part_from(
        &self,
        range: DescriptorRangeId,
        slot: u32,
        staging: &HostHeap,
        from: DescriptorRangeId,
        part: Range<u32>,
    ) -> Result<u32, HeapWriteError> {
        let source = from.part(part.start, part.len())?;
        let to = range.part(slot, part.len())?;
        self.check(range)?;
        match staging.staged(from, source)? {
            Staged::Descriptors(all) => {
                let written = to.zip(all).filter_map(|(to, descriptor)| Some((to, descriptor.as_ref()?)));
                // SAFETY: the indices are the heap's, because the range is live and belongs to it; the rest is the
                // caller's promise.
                unsafe { self.store.write_many(written.clone()) }?;
                Ok(narrow(written.count()))
            }
            Staged::Bytes(all) => {
                let mut copied = 0;
                for (to, staged) in to.zip(all.iter()) {
                    let Some((kind, bytes)) = staged else { continue };
                    // SAFETY: as above. A device made the bytes for this type; the caller promises that it is the
                    // store's device.
                    unsafe { self.store.write_bytes(to, kind, bytes) }?;
                    copied += 1;
                }
                Ok(copied)
            }
        }
    }

    /// Retires a range: its id becomes stale at once, and [`collect`](Self::collect) frees its slots once the ticket is
    /// done.
    ///
    /// `ticket` is the ticket of the last recording that uses the range.
    ///
    /// # Errors
    /// [`ForeignDescriptorRange`] if it belongs to another heap.
    ///
    /// # Safety
    /// Once the clock passed to [`collect`](Self::collect) reports `ticket` as done, no shader uses the range.
    /// Otherwise the shader would see descriptors of another range.
    ///
    /// # Complexity
    /// O(1) if tickets come in order: see [`Retire`](sublet::retire::Retire).
    #[inline]
    pub unsafe fn retire(
        &self,
        ticket: Ticket,
        range: DescriptorRange,
    ) -> Result<(), ForeignDescriptorRange> {
        // Under the lock: once it is released, another thread may allocate and write the slots.
        let mut slots = self.slots.lock();
        self.store.retired(slots.retire(ticket, range)?);
        Ok(())
    }

    /// Retires every range whose [`OwnedRange`](super::OwnedRange) was dropped. Returns their number. Call it once per
    /// frame, with the ticket of the frame's last recording.
    ///
    /// # Safety
    /// Same as [`retire`](Self::retire), for every range that was dropped so far.
    ///
    /// # Complexity
    /// O(dropped ranges).
    pub unsafe fn retire_dropped(&self, ticket: Ticket) -> usize {
        let mut dropped = self.dropped.lock();
        let count = dropped.len();
        for range in dropped.drain(..) {
            // SAFETY: the caller keeps the promise of `retire` for every range that was dropped.
            let retired = unsafe { self.retire(ticket, range) };
            debug_assert!(retired.is_ok(), "it was allocated here");
        }
        count
    }

    /// Adds a dropped range, for the next [`Self::retire_dropped`].
    pub(super) fn note_dropped(&self, range: DescriptorRange) {
        self.dropped.lock().push(range);
    }

    /// Returns the positions of a slot's descriptor: for shaders, for the host and for the GPU.
    ///
    /// # Errors
    /// [`HeapWriteError`]: the range is not valid, has no such slot, or the heap does not hold the type.
    pub fn slot(
        &self,
        range: DescriptorRangeId,
        slot: u32,
        kind: DescriptorKind,
    ) -> Result<HeapSlot, HeapWriteError> {
        let index = range.index(slot)?;
        self.check(range)?;
        self.store.slot(index, kind).ok_or(HeapWriteError::Kind { kind })
    }

    /// Frees a range and its slots at once.
    ///
    /// # Errors
    /// [`ForeignDescriptorRange`] if it belongs to another heap.
    ///
    /// # Safety
    /// No running or submitted shader uses the range. Otherwise it would see descriptors of another range.
    pub unsafe fn free(&self, range: DescriptorRange) -> Result<(), ForeignDescriptorRange> {
        // Under the lock, see `retire`.
        let mut slots = self.slots.lock();
        self.store.retired(slots.free(range)?);
        Ok(())
    }

    /// Assigns the ticket to all stores that the heap has [outgrown](Self#growing). Returns their number. The first
    /// [`collect`](Self::collect) after the ticket is done destroys them. Call this function once per frame, with the
    /// ticket of the frame's last recording. A heap that does not grow does not need it.
    ///
    /// # Safety
    /// No later recording than that of the ticket binds an outgrown store. Once the ticket is done, no command buffer
    /// that binds one is pending or is submitted again. For a [`NativeStore`](super::NativeStore), those command
    /// buffers are reset or freed by then.
    pub unsafe fn retire_outgrown(&self, ticket: Ticket) -> usize {
        // SAFETY: the caller promises that nothing uses the store once the ticket is done.
        unsafe { self.store.retire_outgrown(ticket) }
    }

    /// Frees the slots of ranges whose tickets are done. Returns the number of freed slots. Call it regularly, for
    /// example once per frame.
    ///
    /// # Errors
    /// [`OtherClock`] if ranges or outgrown stores wait for tickets of another clock. Everything that is done was
    /// freed.
    pub fn collect(&self, clock: &ClockView) -> Result<usize, OtherClock> {
        // Under the lock, see `retire`: transient ranges end here.
        let freed = self.slots.lock().collect(clock, |ended| self.store.retired(ended));
        let outgrown = self.store.collect_outgrown(clock);
        let freed = freed?;
        // `collected` counts slots, whichever part failed.
        outgrown.map_err(|other| OtherClock { collected: freed, ..other })?;
        Ok(freed)
    }

    /// Returns the largest count that [`allocate`](Self::allocate) grants now.
    #[must_use]
    pub fn largest_free(&self) -> u32 {
        self.slots.lock().largest_free()
    }

    /// Returns the heap's current figures.
    #[must_use]
    pub fn statistics(&self) -> HeapStatistics {
        self.slots.lock().statistics()
    }

    /// Calls `visit` for all runs of slots, in the order of their indices, for debugging. The heap is locked meanwhile.
    pub fn walk(&self, visit: impl FnMut(SlotRun)) {
        self.slots.lock().walk(visit);
    }

    /// Reserves host memory for `ranges` ranges that wait at once, so that retiring them allocates none. The number is
    /// capped at the number of slots.
    ///
    /// # Errors
    /// [`ReserveError`] if the host is out of memory. Nothing was changed.
    pub fn reserve(&self, ranges: u32) -> Result<(), ReserveError> {
        self.slots.lock().reserve(ranges)
    }

    /// Returns the store, which holds the descriptors.
    #[inline]
    #[must_use]
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Returns the store, for destruction. Ranges that are still allocated are dropped.
    #[must_use]
    pub fn into_store(self) -> S {
        self.store
    }
}

impl<S: fmt::Debug> fmt::Debug for DescriptorHeap<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DescriptorHeap").field("store", &self.store).finish_non_exhaustive()
    }
}
