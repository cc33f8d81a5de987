//! A range that retires itself.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::error::HeapError;
use super::heap::DescriptorHeap;
use super::range::{DescriptorRange, DescriptorRangeId};
use super::store::HeapStore;

mod sealed {
    pub trait SealedHeapRef {}
}

/// A reference to the heap of an [`OwnedRange`]: `&DescriptorHeap` or `Arc<DescriptorHeap>`.
///
/// ```
/// use sublet_descriptors::{HeapRef, OwnedRange};
/// struct Material<H: HeapRef> {
///     textures: OwnedRange<H>,
/// }
/// ```
pub trait HeapRef: sealed::SealedHeapRef {
    #[doc(hidden)]
    fn allocate_range(&self, count: u32) -> Result<DescriptorRange, HeapError>;

    #[doc(hidden)]
    fn drop_range(&self, range: DescriptorRange);
}

impl<S: HeapStore> sealed::SealedHeapRef for &DescriptorHeap<S> {}
impl<S: HeapStore> HeapRef for &DescriptorHeap<S> {
    fn allocate_range(&self, count: u32) -> Result<DescriptorRange, HeapError> {
        self.allocate(count)
    }

    fn drop_range(&self, range: DescriptorRange) {
        self.note_dropped(range);
    }
}

impl<S: HeapStore> sealed::SealedHeapRef for Arc<DescriptorHeap<S>> {}
impl<S: HeapStore> HeapRef for Arc<DescriptorHeap<S>> {
    fn allocate_range(&self, count: u32) -> Result<DescriptorRange, HeapError> {
        self.allocate(count)
    }

    fn drop_range(&self, range: DescriptorRange) {
        self.note_dropped(range);
    }
}

/// A range of a heap that retires itself: a [`DescriptorRange`] that may be dropped.
///
/// A dropped range waits in the heap for [`retire_dropped`](DescriptorHeap::retire_dropped), which the program calls
/// once per frame with the frame's ticket. The owner of a range therefore needs no ticket, and dropping it is safe: its
/// slots are reused only after the program has promised that no later recording uses them.
///
/// ```
/// use sublet_descriptors::*;
/// use sublet::retire::Clock;
/// # use sublet::sim;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-h200").unwrap());
/// # let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// let heap = DescriptorHeap::new(SetStore::new(&device, &HeapCreateInfo::default())?);
/// let clock = Clock::new();
/// let timeline = clock.add_timeline()?;
///
/// let material = OwnedRange::new(&heap, 5)?;
/// assert!(material.index(4).is_ok());
/// let frame = clock.begin_frame(timeline, 0);
/// drop(material);
/// // SAFETY: no recording after this frame's uses a range that was dropped by now.
/// assert_eq!(unsafe { heap.retire_dropped(frame) }, 1);
/// clock.end_frame(frame)?;
/// clock.shutdown();
/// assert_eq!(heap.collect(&clock)?, 5);
/// # unsafe { heap.into_store().destroy() };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Retiring it twice does not compile:
///
/// ```compile_fail,E0382
/// # use sublet_descriptors::*;
/// fn twice<H: HeapRef>(range: OwnedRange<H>) {
///     drop(range);
///     drop(range);
/// }
/// ```
#[must_use = "the slots are retired when it is dropped"]
#[doc(alias = "DescriptorAllocation")]
#[doc(alias = "DescriptorHeapAllocation")]
pub struct OwnedRange<H: HeapRef> {
    heap: H,
    range: DescriptorRangeId,
    /// True if `into_range` has returned the range, so that dropping it has no effect.
    is_released: bool,
}

impl<H: HeapRef> OwnedRange<H> {
    /// Allocates `count` consecutive slots.
    ///
    /// # Errors
    /// [`HeapError`], same as [`DescriptorHeap::allocate`].
    pub fn new(heap: H, count: u32) -> Result<Self, HeapError> {
        let range = heap.allocate_range(count)?.id();
        Ok(Self { heap, range, is_released: false })
    }

    /// Returns the id of the range, for the heap's methods.
    #[must_use]
    pub fn id(&self) -> DescriptorRangeId {
        self.range
    }

    /// Gives up the ownership: the program retires or frees the range.
    pub fn into_range(mut self) -> DescriptorRange {
        self.is_released = true;
        DescriptorRange(self.range)
    }
}

impl<H: HeapRef> Deref for OwnedRange<H> {
    type Target = DescriptorRangeId;

    fn deref(&self) -> &DescriptorRangeId {
        &self.range
    }
}

impl<H: HeapRef> Drop for OwnedRange<H> {
    fn drop(&mut self) {
        if !self.is_released {
            self.heap.drop_range(DescriptorRange(self.range));
        }
    }
}

impl<H: HeapRef> fmt::Debug for OwnedRange<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedRange").field(&self.range).finish()
    }
}
