//! The storage of a descriptor heap.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::ops::Range;

use super::super::counts::DescriptorKind;
use super::super::descriptor::Descriptor;
use super::super::source::DescriptorSource;
use super::create_info::CreateHeapError;
use super::error::HeapWriteError;
use super::slot::HeapSlot;
use sublet::retire::{ClockView, OtherClock, Ticket};

/// Holds the descriptors of a heap. The heap allocates slots; its store writes them.
///
/// | store | for | visible to shaders as |
/// |---|---|---|
/// | [`SetStore`](super::SetStore) | devices with descriptor indexing: nearly all | a set, bound once |
/// | [`BufferStore`](super::BufferStore) | devices with `VK_EXT_descriptor_buffer`, if the program binds nothing but descriptor buffers | the same arrays, in a buffer |
/// | [`NativeStore`](super::NativeStore) | devices with `VK_EXT_descriptor_heap` | Vulkan's own heap, by offset or mapped to the same arrays |
/// | [`ClassicStore`](super::ClassicStore) | everything else | a set for each frame in flight |
///
/// [`BindlessHeap`](super::BindlessHeap) selects one of them. A program may implement its own, for an extension that
/// the library does not support:
///
/// ```
/// use std::cell::RefCell;
/// use sublet_descriptors::{Descriptor, DescriptorHeap, HeapStore, HeapWriteError};
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
/// // SAFETY: this store does not use the descriptor.
/// unsafe { heap.write(range.id(), 3, &sampler) }?;
/// assert_eq!(*heap.store().0.borrow(), [3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait HeapStore {
    /// Returns the number of slots. A heap reads it once.
    fn slots(&self) -> u32;

    /// Returns the maximum number of slots after growth. A heap reads it once. Defaults to the current number: the
    /// store does not grow.
    fn max_slots(&self) -> u32 {
        self.slots()
    }

    /// Grows the store to this number of slots, unless it has them already. Slots keep their numbers and their content.
    /// Later binds use the larger store. The old one stays for command buffers that have bound it, until
    /// [`Self::retire_outgrown`] assigns a ticket. The default returns an error.
    ///
    /// # Errors
    /// [`CreateHeapError`]. Nothing was changed.
    fn grow(&self, slots: u32) -> Result<(), CreateHeapError> {
        Err(CreateHeapError::Fixed { slots })
    }

    /// Assigns the ticket to everything that the store has outgrown. Returns its number.
    ///
    /// # Safety
    /// Once the ticket is done, no command buffer that has bound an outgrown part is pending or is submitted again.
    unsafe fn retire_outgrown(&self, ticket: Ticket) -> usize {
        let _ = ticket;
        0
    }

    /// Destroys outgrown parts whose tickets are done. Returns their number.
    ///
    /// # Errors
    /// [`OtherClock`] if something waits for another clock. Everything that is done was destroyed.
    fn collect_outgrown(&self, clock: &ClockView) -> Result<usize, OtherClock> {
        let _ = clock;
        Ok(0)
    }

    /// Returns the number of transient slots, at the upper end of [`Self::slots`]. A heap reads it once.
    fn transient(&self) -> u32 {
        0
    }

    /// Writes a descriptor into a slot.
    ///
    /// # Errors
    /// [`HeapWriteError`]. The slot is unchanged.
    ///
    /// # Safety
    /// 1. `index` is below the slots of the store.
    /// 2. The objects in the descriptor are live, belong to the store's device, and fit its type.
    /// 3. Nobody else writes the slot at the same time, and no shader that may use it is running.
    unsafe fn write(&self, index: u32, descriptor: &Descriptor) -> Result<(), HeapWriteError>;

    /// Writes a descriptor into a slot, from the create-info of its view or sampler. Stores that take handles write
    /// [the descriptor](DescriptorSource::descriptor).
    ///
    /// # Errors
    /// [`HeapWriteError`]. The slot is unchanged.
    ///
    /// # Safety
    /// Same as [`Self::write`]. The create-info is valid; a non-null handle was created from it.
    unsafe fn write_source(&self, index: u32, source: &DescriptorSource<'_>) -> Result<(), HeapWriteError> {
        // SAFETY: the caller's promise.
        unsafe { self.write(index, &source.descriptor()) }
    }

    /// Writes many descriptors, each into its slot. The library's stores use one driver call if the driver supports
    /// that. The default writes them one by one.
    ///
    /// # Errors
    /// [`HeapWriteError`]. The library's stores have then written nothing, but a [`NativeStore`](super::NativeStore)
    /// may have written some if the driver failed. The default has written those before the failed one.
    ///
    /// # Safety
    /// Same as [`Self::write`], for each of them. A slot that occurs twice gets the last one.
    unsafe fn write_many<'a>(
        &self,
        writes: impl Iterator<Item = (u32, &'a Descriptor)> + Clone,
    ) -> Result<(), HeapWriteError>
    where
        Self: Sized,
    {
        for (index, descriptor) in writes {
            // SAFETY: the caller keeps the promises of `write` for each of them.
            unsafe { self.write(index, descriptor) }?;
        }
        Ok(())
    }

    /// Writes the bytes of a descriptor, in this device's format, into a slot. The default returns an error.
    ///
    /// # Errors
    /// [`HeapWriteError`]. The slot is unchanged.
    ///
    /// # Safety
    /// Same as [`Self::write`]; this device made the bytes for a descriptor of this type.
    unsafe fn write_bytes(
        &self,
        index: u32,
        kind: DescriptorKind,
        bytes: &[u8],
    ) -> Result<(), HeapWriteError> {
        let _ = (index, kind);
        Err(HeapWriteError::Unlike { from: sublet_engines::cast::widen(bytes.len()), to: 0 })
    }

    /// Returns the positions of a slot's descriptor of a type; `None` if the store does not hold the type. The default
    /// returns only the index.
    fn slot(&self, index: u32, kind: DescriptorKind) -> Option<HeapSlot> {
        let _ = kind;
        Some(HeapSlot::new(index))
    }

    /// Notifies the store that the slots belong to no range any more, so no later submission uses them. The heap calls
    /// this function when a range is retired or freed, or when a transient range is collected. The function must not
    /// call the heap, which is locked. Only the heap calls it: a store may panic at an invalid index.
    fn retired(&self, indices: Range<u32>) {
        let _ = indices;
    }
}
