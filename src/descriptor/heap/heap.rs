//! The heap: its slots, and a store for what is in them.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use super::super::counts::DescriptorKind;
use super::super::descriptor::Descriptor;
use super::super::source::DescriptorSource;
use super::error::{HeapError, HeapWriteError, RangeError};
use super::host::{HostHeap, Staged};
use super::range::{DescriptorRange, DescriptorRangeId, ForeignDescriptorRange};
use super::slot::HeapSlot;
use super::slots::Slots;
use super::statistics::{HeapStatistics, SlotRun};
use super::store::HeapStore;
use crate::base::cast::narrow;
use crate::base::sync::{CoreMutex, Mutex};
use crate::retire::{ClockView, OtherClock, ReserveError, Ticket};

/// The number of the next heap.
static NEXT_ID: AtomicU32 = AtomicU32::new(0);

pub(super) fn next_id() -> u32 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// One large array of descriptors, allocated in ranges, that shaders index ("bindless").
///
/// [`allocate`](Self::allocate) gives out slots in a row, so that a material with five textures is one number in a push
/// constant; [`write`](Self::write) puts a descriptor into one of them; [`retire`](Self::retire) ends a range, whose
/// slots come back with [`collect`](Self::collect) once the GPU is done with the recording that used them last. The store decides
/// what is bound and what shaders declare: see [`HeapStore`] for which there are. A program has one
/// heap for buffers and images and one for samplers ([`HeapKind`](super::HeapKind)); both are bound at the start of a
/// command buffer and stay bound.
///
/// Any number of threads use it at once: its short lock is not held while the driver is called.
///
/// # Growing
/// With [`HeapCreateInfo::max_slots`](super::HeapCreateInfo::max_slots) a full heap grows: [`allocate`](Self::allocate)
/// makes a store of twice the slots, or of as many as the request needs, and copies what the old one holds. Live slots
/// keep their numbers. Layouts stay too, and so do the pipelines that were made with them, unless the program allows
/// otherwise ([`HeapGrowth::ChangeLayout`](super::HeapGrowth::ChangeLayout)). If anything fails, the heap is as it was ([`HeapError::NotGrown`]).
///
/// From then on the heap binds the larger store. A command buffer that bound the smaller one goes on to see that: it finds
/// no slots that are new, and nothing that was written since the heap grew. So allocate and write before you bind, and
/// record again what was recorded for several submissions: [`HeapStatistics::growths`] says that there is a reason. The old
/// store lives until [`retire_outgrown`](Self::retire_outgrown) names a ticket and [`collect`](Self::collect) finds it
/// done. Descriptors that commands write on the GPU come along as far as those commands have run.
///
/// | store | keeps its layout |
/// |---|---|
/// | [`SetStore`](super::SetStore) | with one array ([`HeapArrays::One`](super::HeapArrays::One), or one type) and `VARIABLE_DESCRIPTOR_COUNT` |
/// | [`BufferStore`](super::BufferStore) | the same |
/// | [`NativeStore`](super::NativeStore) | always: it has none |
/// | [`ClassicStore`](super::ClassicStore) | never |
///
/// What cannot keep it has all slots from the start, or, with `ChangeLayout`, grows with another layout. Then:
///
/// - After you have allocated, compare the store's `layout` with that of your pipelines, and make these anew if it is
///   another one. The old layout lives as long as the old store.
/// - Allocate where no other thread is between looking at the layout and binding the heap. Slots of frames
///   ([`allocate_transient`](Self::allocate_transient)) never make a heap grow.
/// - A set for each frame is flushed once more, because the larger one holds nothing yet.
///
/// A program that wants several types to grow and its pipelines to stay, on every device with descriptor indexing, has a
/// heap for each type.
///
/// # Invariant
/// Free, live and retiring slots are all slots, at any time ([`HeapStatistics`]).
///
/// # Complexity
/// [`allocate`](Self::allocate), [`retire`](Self::retire): O(1). [`collect`](Self::collect): O(what comes back). None
/// takes host memory once as many ranges were alive. A slot costs 16 bytes of host memory once a range has started at
/// it or above it, and a range 40.
///
/// # What it does not do
/// It is not defragmented: indices are in the GPU's memory, where the heap cannot find them. Samplers are not looked
/// up by their create-info: keep them in a table of your own, since devices allow as few as 4,000.
///
/// ```
/// use ash::vk;
/// use sublet::descriptor::*;
/// use sublet::retire::Clock;
/// # use sublet::sim;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-h200").unwrap());
/// # let buffer_info = vk::BufferCreateInfo::default().size(256).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
/// # let allocator = unsafe { sublet::Allocator::new(&sublet::AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// # let memory = sublet::AllocationCreateInfo::new(sublet::MemoryUsage::Auto);
/// # let (buffer, allocation) = unsafe { allocator.create_buffer(&buffer_info, &memory) }?;
/// // SAFETY: instance and device are live, and outlive everything that is made from the value.
/// let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// let info = HeapCreateInfo { slots: 1_024, ..HeapCreateInfo::new(HeapKind::Resource) };
/// let heap = DescriptorHeap::new(SetStore::new(&device, &info)?);
///
/// let material = heap.allocate(2)?;
/// let lights = Descriptor::StorageBuffer(BufferDescriptor::new(buffer, 0, 256));
/// // SAFETY: the buffer is live, and no shader looks at the slot.
/// let index = unsafe { heap.write(material.id(), 1, &lights) }?;
/// assert_eq!(index, material.first() + 1);
///
/// // Its last frame:
/// let clock = Clock::new();
/// let lane = clock.add_lane()?;
/// let frame = clock.open(lane);
/// // SAFETY: no later recording uses it.
/// unsafe { heap.retire(frame, material) }?;
/// clock.submit(frame, 1)?;
/// clock.completed(lane, 1);
/// assert_eq!(heap.collect(&clock)?, 2);
/// // SAFETY: the device uses nothing of it.
/// unsafe { heap.into_store().destroy() };
/// # unsafe { allocator.destroy_buffer(buffer, allocation) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "UserDescriptorHeap")]
#[doc(alias = "GPUDescriptorHeap")]
#[doc(alias = "ID3D12DescriptorHeap")]
#[doc(alias = "DescriptorTable")]
pub struct DescriptorHeap<S> {
    slots: CoreMutex<Slots>,
    /// Whoever makes the store larger holds it.
    growing: Mutex<()>,
    /// Ranges whose [`OwnedRange`](super::OwnedRange) was dropped.
    dropped: CoreMutex<Vec<DescriptorRange>>,
    store: S,
}

impl<S: HeapStore> DescriptorHeap<S> {
    /// Makes a heap over `store`.
    pub fn new(store: S) -> Self {
        // Asked once: a store of the program's own may answer differently the next time.
        let all = store.slots();
        let transient = store.transient().min(all);
        let slots = Slots::new(next_id(), all - transient, transient, store.max_slots());
        let (growing, dropped) = (Mutex::new(()), CoreMutex::new(Vec::new()));
        Self { slots: CoreMutex::new(slots), growing, dropped, store }
    }

    /// Allocates `count` slots in a row, which hold whatever they held.
    ///
    /// # Errors
    /// [`HeapError`]: no slots, or no place for so many. The latter says whether waiting for the GPU or another order of
    /// things can help.
    ///
    /// # Complexity
    /// O(1); O(slots) when the heap [grows](Self#growing). Others allocate, free and look meanwhile; they write once the
    /// descriptors are copied.
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
        let _growing = self.growing.lock();
        let next = {
            let mut slots = self.slots.lock();
            // Another thread may have grown the heap, or freed something, since.
            let full = match slots.allocate(count) {
                Err(full @ HeapError::Full { .. }) => full,
                made => return made,
            };
            slots.grown_for(count).ok_or(full)?
        };
        // Nothing is locked that others need for what is there already.
        let grown = self.store.grow(next);
        grown.map_err(|source| HeapError::NotGrown { asked: count, source: Box::new(source) })?;
        let mut slots = self.slots.lock();
        slots.extend(next);
        slots.allocate(count)
    }

    /// Allocates slots for one recording, out of the part that is for frames
    /// ([`HeapCreateInfo::transient`](super::HeapCreateInfo::transient)).
    ///
    /// They come back by themselves once the ticket is done, with [`collect`](Self::collect), and in no other way. The
    /// part is a ring: what lasts and what goes with its frame do not fragment each other.
    ///
    /// # Errors
    /// [`HeapError`], as for [`allocate`](Self::allocate), of that part.
    ///
    /// # Complexity
    /// O(1).
    #[doc(alias = "AllocateDynamic")]
    #[doc(alias = "DynamicSuballocationsManager")]
    pub fn allocate_transient(&self, ticket: Ticket, count: u32) -> Result<DescriptorRangeId, HeapError> {
        self.slots.lock().allocate_transient(ticket, count)
    }

    /// Whether a range is alive, and this heap's.
    ///
    /// # Errors
    /// [`RangeError`] if it is not.
    #[inline]
    pub fn check(&self, range: DescriptorRangeId) -> Result<(), RangeError> {
        self.slots.lock().check(range)
    }

    /// Writes a descriptor into a slot of a range, counted from its first, and returns the index that shaders use.
    ///
    /// # Errors
    /// [`HeapWriteError`]: the slot holds what it held.
    ///
    /// # Safety
    /// 1. What the descriptor names is live and of the store's device, and fits its type; and it stays live until the
    ///    slot is written again or the range is retired and collected, as long as shaders look at it.
    /// 2. Nobody else writes the slot at the same time, or retires its range.
    /// 3. No shader that is running, or was submitted, looks at the slot.
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
        // SAFETY: the index is one of the heap's, because the range is alive and its own; the rest is the caller's
        // promise.
        unsafe { self.store.write(index, descriptor) }?;
        Ok(index)
    }

    /// Writes a descriptor into a slot of a range, from what its view or sampler was created from: what
    /// [every store](HeapStore) takes. Returns the index that shaders use.
    ///
    /// # Errors
    /// [`HeapWriteError`]: the slot holds what it held.
    ///
    /// # Safety
    /// As for [`write`](Self::write). The create-info is valid; a handle that is not null was created from it, and the
    /// image that it names is live as long as shaders look at the slot.
    pub unsafe fn write_source(
        &self,
        range: DescriptorRangeId,
        slot: u32,
        source: &DescriptorSource<'_>,
    ) -> Result<u32, HeapWriteError> {
        let index = range.index(slot)?;
        self.check(range)?;
        // SAFETY: the index is one of the heap's, because the range is alive and its own; the rest is the caller's
        // promise.
        unsafe { self.store.write_source(index, source) }?;
        Ok(index)
    }

    /// Writes descriptors into consecutive slots of a range, from `slot` on, and returns the index that shaders use for
    /// the first. They may be of different types. A set takes all of them with one call of the driver.
    ///
    /// # Errors
    /// [`HeapWriteError`]: all slots hold what they held. A [store of the program's own](HeapStore::write_many) may have written some.
    ///
    /// # Safety
    /// As for [`write`](Self::write), of every descriptor.
    ///
    /// # Complexity
    /// O(descriptors), and host memory for the time of the call where the driver is to have them side by side.
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
        // SAFETY: the indices are the heap's, because the range is alive and its own; the rest is the caller's promise.
        unsafe { self.store.write_many(writes) }?;
        Ok(first)
    }

    /// Copies the descriptors of a range in host memory into this heap, to a range's slots from `slot` on, and returns how
    /// many it copied. A slot of the source that was never written leaves the heap's slot as it is. A set takes all of
    /// them with one call of the driver.
    ///
    /// # Errors
    /// [`HeapWriteError`]. Nothing is written: but where bytes are copied, and the heap does not hold the type of one
    /// of them, those before it are.
    ///
    /// # Safety
    /// As for [`write`](Self::write), of every descriptor that was written into the source.
    ///
    /// # Complexity
    /// As [`write_many`](Self::write_many).
    pub unsafe fn copy_from(
        &self,
        range: DescriptorRangeId,
        slot: u32,
        staging: &HostHeap,
        from: DescriptorRangeId,
    ) -> Result<u32, HeapWriteError> {
        // SAFETY: the caller makes the promises of `copy_part_from`, of the whole range.
        unsafe { self.copy_part_from(range, slot, staging, from, 0..from.count()) }
    }

    /// Copies a part of a range in host memory: its slots `part`, counted from its first. For the rest see
    /// [`copy_from`](Self::copy_from).
    ///
    /// # Errors
    /// As [`copy_from`](Self::copy_from).
    ///
    /// # Safety
    /// As for [`copy_from`](Self::copy_from), of the descriptors in the part.
    ///
    /// # Complexity
    /// As [`write_many`](Self::write_many).
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
                // SAFETY: the indices are the heap's, because the range is alive and its own; the rest is the caller's
                // promise.
                unsafe { self.store.write_many(written.clone()) }?;
                Ok(narrow(written.count()))
            }
            Staged::Bytes(all) => {
                let mut copied = 0;
                for (to, staged) in to.zip(all.iter()) {
                    let Some((kind, bytes)) = staged else { continue };
                    // SAFETY: as above, and the bytes are a device's for this type; that it is the store's device is
                    // the caller's promise.
                    unsafe { self.store.write_bytes(to, kind, bytes) }?;
                    copied += 1;
                }
                Ok(copied)
            }
        }
    }

    /// Ends a range: its name is dead at once, and its slots are free once the ticket is done and
    /// [`collect`](Self::collect) was called.
    ///
    /// `ticket` is that of the last recording that uses the range.
    ///
    /// # Errors
    /// [`ForeignDescriptorRange`] if it is another heap's.
    ///
    /// # Safety
    /// Once `ticket` is done, as the clock says that [`collect`](Self::collect) is given, no shader looks at the range:
    /// else it sees what somebody else writes there.
    ///
    /// # Complexity
    /// O(1) where tickets come in order: see [`Retire`](crate::retire::Retire).
    #[inline]
    pub unsafe fn retire(
        &self,
        ticket: Ticket,
        range: DescriptorRange,
    ) -> Result<(), ForeignDescriptorRange> {
        // Under the lock: once it is released, another thread may get the slots and write them.
        let mut slots = self.slots.lock();
        self.store.retired(slots.retire(ticket, range)?);
        Ok(())
    }

    /// Retires every range whose [`OwnedRange`](super::OwnedRange) was dropped, and returns how many those are. Call it
    /// once a frame, with the ticket of the frame's last recording.
    ///
    /// # Safety
    /// As for [`retire`](Self::retire), of every range that was dropped by now.
    ///
    /// # Complexity
    /// O(ranges that were dropped).
    pub unsafe fn retire_dropped(&self, ticket: Ticket) -> usize {
        let mut dropped = self.dropped.lock();
        let count = dropped.len();
        for range in dropped.drain(..) {
            // SAFETY: the caller makes the promise of `retire` for every range that was dropped.
            let retired = unsafe { self.retire(ticket, range) };
            debug_assert!(retired.is_ok(), "it was allocated here");
        }
        count
    }

    /// The range is retired with the next [`Self::retire_dropped`].
    pub(super) fn note_dropped(&self, range: DescriptorRange) {
        self.dropped.lock().push(range);
    }

    /// Where a slot's descriptor of a type is for shaders, for the host and for the GPU.
    ///
    /// # Errors
    /// [`HeapWriteError`]: the range is not alive, has no such slot, or the heap does not hold the type.
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

    /// Ends a range whose slots are free at once.
    ///
    /// # Errors
    /// [`ForeignDescriptorRange`] if it is another heap's.
    ///
    /// # Safety
    /// No shader that is running, or was submitted, looks at the range: else it sees another range's descriptors.
    pub unsafe fn free(&self, range: DescriptorRange) -> Result<(), ForeignDescriptorRange> {
        // As in `retire`.
        let mut slots = self.slots.lock();
        self.store.retired(slots.free(range)?);
        Ok(())
    }

    /// What the heap has [outgrown](Self#growing) until now is destroyed by the first [`collect`](Self::collect) after the
    /// ticket is done. Returns how many stores that is. Call it once a frame, with the ticket of the frame's last
    /// recording; a heap that does not grow needs none of it.
    ///
    /// # Safety
    /// No recording after the ticket's has bound the heap before it grew; and once the ticket is done, no command buffer
    /// that has is pending or is submitted again. For a [`NativeStore`](super::NativeStore) those are reset or freed by then.
    pub unsafe fn retire_outgrown(&self, ticket: Ticket) -> usize {
        // SAFETY: the caller promises that nobody uses it once the ticket is done.
        unsafe { self.store.retire_outgrown(ticket) }
    }

    /// Frees the slots of ranges whose tickets are done, and returns how many those are. Call it once a frame, for
    /// example.
    ///
    /// # Errors
    /// [`OtherClock`] if ranges, or what the heap has outgrown, wait for tickets of another clock. All that this clock
    /// says is done is free nonetheless.
    pub fn collect(&self, clock: &ClockView) -> Result<usize, OtherClock> {
        // As in `retire`: the ranges of frames end here.
        let freed = self.slots.lock().collect(clock, |ended| self.store.retired(ended));
        let outgrown = self.store.collect_outgrown(clock);
        let freed = freed?;
        // Counted in slots, whatever the error is of.
        outgrown.map_err(|other| OtherClock { collected: freed, ..other })?;
        Ok(freed)
    }

    /// The most slots that [`allocate`](Self::allocate) grants now.
    #[must_use]
    pub fn largest_free(&self) -> u32 {
        self.slots.lock().largest_free()
    }

    /// How full it is.
    #[must_use]
    pub fn statistics(&self) -> HeapStatistics {
        self.slots.lock().statistics()
    }

    /// Shows all slots in runs, in the order of their indices: for debugging. The heap is locked meanwhile.
    pub fn walk(&self, visit: impl FnMut(SlotRun)) {
        self.slots.lock().walk(visit);
    }

    /// Takes host memory for `ranges` ranges that wait at once, so that retiring them takes none. A number above that of
    /// slots counts as all slots.
    ///
    /// # Errors
    /// [`ReserveError`] if the host has too little. Nothing was changed.
    pub fn reserve(&self, ranges: u32) -> Result<(), ReserveError> {
        self.slots.lock().reserve(ranges)
    }

    /// The store: where the descriptors are, and what is bound.
    #[inline]
    #[must_use]
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The store alone, to be destroyed. Ranges that are still allocated are forgotten.
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
