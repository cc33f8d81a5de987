//! What a descriptor heap is made of.

use std::ops::Range;

use super::super::counts::DescriptorKind;
use super::super::descriptor::Descriptor;
use super::super::source::DescriptorSource;
use super::create_info::CreateHeapError;
use super::error::HeapWriteError;
use super::slot::HeapSlot;
use crate::retire::{ClockView, OtherClock, Ticket};

/// Where the descriptors of a heap are. The heap allocates slots; its store writes them.
///
/// | store | for | shaders see |
/// |---|---|---|
/// | [`SetStore`](super::SetStore) | devices with descriptor indexing: nearly all | a set, bound once |
/// | [`BufferStore`](super::BufferStore) | devices with `VK_EXT_descriptor_buffer`, if the program binds nothing but descriptor buffers | the same arrays, in a buffer |
/// | [`NativeStore`](super::NativeStore) | devices with `VK_EXT_descriptor_heap` | Vulkan's own heap, by offset or mapped to the same arrays |
/// | [`ClassicStore`](super::ClassicStore) | everything else | a set for each frame in flight |
///
/// [`BindlessHeap`](super::BindlessHeap) picks one of them. A program may have one of its own, over an extension that the library does not know:
///
/// ```
/// use std::cell::RefCell;
/// use sublet::descriptor::{Descriptor, DescriptorHeap, HeapStore, HeapWriteError};
///
/// struct Written(RefCell<Vec<u32>>);
///
/// impl HeapStore for Written {
///     fn slots(&self) -> u32 {
///         16
///     }
///     unsafe fn write(&self, index: u32, _: &Descriptor) -> Result<(), HeapWriteError> {
///         self.0.borrow_mut().push(index);
///         Ok(())
///     }
/// }
///
/// let heap = DescriptorHeap::new(Written(RefCell::default()));
/// let range = heap.allocate(4)?;
/// let sampler = Descriptor::Sampler(ash::vk::Sampler::null());
/// // SAFETY: this store looks at nothing.
/// unsafe { heap.write(range.id(), 3, &sampler) }?;
/// assert_eq!(*heap.store().0.borrow(), [3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait HeapStore {
    /// Slots of the store: a heap asks once.
    fn slots(&self) -> u32;

    /// The most slots that the store can grow to: a heap asks once. As many as it has by default: it does not grow.
    fn max_slots(&self) -> u32 {
        self.slots()
    }

    /// Makes the store larger, for so many slots; one that has them stays as it is. They keep their numbers and what they hold, and whoever binds the
    /// store from now on binds the larger one. What it was until now stays for those who have bound it, until
    /// [`Self::retire_outgrown`] names a ticket. The default refuses.
    ///
    /// # Errors
    /// [`CreateHeapError`]. Nothing was changed.
    fn grow(&self, slots: u32) -> Result<(), CreateHeapError> {
        Err(CreateHeapError::Fixed { slots })
    }

    /// What the store has outgrown until now waits for the ticket. How many that is.
    ///
    /// # Safety
    /// Once the ticket is done, no command buffer that bound it is pending or is submitted.
    unsafe fn retire_outgrown(&self, ticket: Ticket) -> usize {
        let _ = ticket;
        0
    }

    /// Destroys what was outgrown and whose ticket is done. How many that is.
    ///
    /// # Errors
    /// [`OtherClock`] if something waits for another clock. All else that is done is destroyed.
    fn collect_outgrown(&self, clock: &ClockView) -> Result<usize, OtherClock> {
        let _ = clock;
        Ok(0)
    }

    /// Those of [`Self::slots`], at their upper end, that are for frames: a heap asks once.
    fn transient(&self) -> u32 {
        0
    }

    /// Writes a descriptor into a slot.
    ///
    /// # Errors
    /// [`HeapWriteError`]: the slot holds what it held.
    ///
    /// # Safety
    /// 1. `index` is below the slots of the store.
    /// 2. What the descriptor names is live and of the store's device, and fits its type.
    /// 3. Nobody else writes the slot at the same time, and no shader that may look at it is running.
    unsafe fn write(&self, index: u32, descriptor: &Descriptor) -> Result<(), HeapWriteError>;

    /// Writes a descriptor into a slot, from what its view or sampler was created from. Stores that take handles write
    /// [the descriptor](DescriptorSource::descriptor).
    ///
    /// # Errors
    /// [`HeapWriteError`]: the slot holds what it held.
    ///
    /// # Safety
    /// As for [`Self::write`]. The create-info is valid; a handle that is not null was created from it.
    unsafe fn write_source(&self, index: u32, source: &DescriptorSource<'_>) -> Result<(), HeapWriteError> {
        // SAFETY: the caller's own promise.
        unsafe { self.write(index, &source.descriptor()) }
    }

    /// Writes many descriptors, each into the slot that stands beside it: the library's stores with one call of the
    /// driver, where the driver has one for several. The default writes them one by one.
    ///
    /// # Errors
    /// [`HeapWriteError`]. The library's stores have written nothing then; this default has written those before the
    /// one at fault.
    ///
    /// # Safety
    /// As for [`Self::write`], of each of them. A slot that is named twice holds the last one.
    unsafe fn write_many<'a>(
        &self,
        writes: impl Iterator<Item = (u32, &'a Descriptor)> + Clone,
    ) -> Result<(), HeapWriteError>
    where
        Self: Sized,
    {
        for (index, descriptor) in writes {
            // SAFETY: the caller makes the promises of `write`, of each of them.
            unsafe { self.write(index, descriptor) }?;
        }
        Ok(())
    }

    /// Writes the bytes of a descriptor, as this device makes them, into a slot. The default refuses.
    ///
    /// # Errors
    /// [`HeapWriteError`]: the slot holds what it held.
    ///
    /// # Safety
    /// As for [`Self::write`]; the bytes were made by this device for a descriptor of this type.
    unsafe fn write_bytes(
        &self,
        index: u32,
        kind: DescriptorKind,
        bytes: &[u8],
    ) -> Result<(), HeapWriteError> {
        let _ = (index, kind);
        Err(HeapWriteError::Unlike { from: crate::base::cast::widen(bytes.len()), to: 0 })
    }

    /// Where a slot's descriptor of a type is; `None` if the store does not hold the type. The default knows the index
    /// alone.
    fn slot(&self, index: u32, kind: DescriptorKind) -> Option<HeapSlot> {
        let _ = kind;
        Some(HeapSlot::new(index))
    }

    /// The slots belong to no range from now on: no later submission uses them. The heap calls this when a range is
    /// retired or freed, or, for a range of a frame, when it is collected. It must not call the heap, which is locked.
    /// Only the heap calls it: a store may panic at an index that it does not have.
    fn retired(&self, indices: Range<u32>) {
        let _ = indices;
    }
}
