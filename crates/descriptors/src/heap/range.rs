//! The ranges of a descriptor heap, and their ids.

use std::ops::{self, Deref};

use super::error::OutOfRange;

/// Consecutive slots of one [`DescriptorHeap`](super::DescriptorHeap). Neither `Copy` nor `Clone`, so that it cannot be
/// retired or freed twice.
///
/// It has an [id](Self::id), which may be copied, and all of the id's methods. Dropping it does not retire the range,
/// because only the program knows when the device is done with it; dropping an [`OwnedRange`](super::OwnedRange) does.
///
/// ```
/// use sublet_descriptors::DescriptorHeap;
/// # use sublet::sim; use sublet_descriptors::*;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// let mut staging = HostHeap::new(&device, &HostHeapCreateInfo::default())?;
/// let textures = staging.allocate(5)?;
/// assert_eq!(textures.index(4)?, textures.first() + 4);
/// assert!(textures.index(5).is_err());
/// staging.free(textures)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```compile_fail,E0382
/// # use sublet::retire::Ticket; use sublet_descriptors::*;
/// fn twice<S: HeapStore>(heap: &DescriptorHeap<S>, ticket: Ticket, range: DescriptorRange) {
///     unsafe { heap.retire(ticket, range) }.unwrap();
///     unsafe { heap.retire(ticket, range) }.unwrap(); // moved already
/// }
/// ```
#[derive(PartialEq, Eq, Hash, Debug)]
#[must_use = "a range that is dropped stays allocated: give it to `free` or `retire`"]
pub struct DescriptorRange(pub(super) DescriptorRangeId);

impl DescriptorRange {
    /// Returns an id that may be copied and stored. Writes take it.
    #[inline]
    #[must_use]
    pub const fn id(&self) -> DescriptorRangeId {
        self.0
    }
}

impl Deref for DescriptorRange {
    type Target = DescriptorRangeId;

    #[inline]
    fn deref(&self) -> &DescriptorRangeId {
        &self.0
    }
}

/// Identifies a [`DescriptorRange`], or transient slots.
///
/// `Copy`, because shader data contains copies anyway: nothing prevents an index in GPU memory from outliving its
/// range. Stale ids are detected instead. Each range has a generation, and its id is stale from the moment it is
/// retired, even before its slots are reused: [`write`](super::DescriptorHeap::write) and
/// [`check`](super::DescriptorHeap::check) then reject it, and so does every other heap. 2^31 ranges can start at one
/// slot before a stale id is mistaken for a valid one.
///
/// ```
/// # use sublet::sim; use sublet_descriptors::*;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// let mut staging = HostHeap::new(&device, &HostHeapCreateInfo::default())?;
/// let textures = staging.allocate(5)?;
/// let kept: DescriptorRangeId = textures.id();
/// staging.free(textures)?;
/// assert_eq!(staging.check(kept), Err(RangeError::StaleHandle { range: kept }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// An id cannot retire a range, nor end a transient range early:
///
/// ```compile_fail,E0308
/// # use sublet::retire::Ticket; use sublet_descriptors::*;
/// fn early<S: HeapStore>(heap: &DescriptorHeap<S>, frame: Ticket) {
///     let slots = heap.allocate_transient(frame, 3).unwrap();
///     unsafe { heap.free(slots) }.unwrap(); // they are freed with their frame
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DescriptorRangeId {
    pub(super) first: u32,
    pub(super) count: u32,
    /// Odd. A slot's generation is even while no range starts there.
    pub(super) generation: u32,
    /// Every heap of the process has a unique number, up to 2^32 heaps.
    pub(super) heap: u32,
}

impl DescriptorRangeId {
    /// Returns the index of the first slot, which a material stores.
    #[inline]
    #[must_use]
    pub const fn first(self) -> u32 {
        self.first
    }

    /// Returns the number of slots; not zero.
    #[inline]
    #[must_use]
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Returns the index of a slot, counted from the first of the range.
    ///
    /// # Errors
    /// [`OutOfRange`] if the range has no such slot.
    #[inline]
    pub const fn index(self, slot: u32) -> Result<u32, OutOfRange> {
        if slot < self.count {
            // Cannot overflow: the range is inside a heap, whose slot numbers have 32 bits.
            Ok(self.first + slot)
        } else {
            Err(OutOfRange { slot, count: self.count })
        }
    }

    /// Returns the indices of all slots.
    #[must_use]
    pub const fn indices(self) -> ops::Range<u32> {
        self.first..self.first + self.count
    }

    /// Returns the indices of `count` slots, counted from `slot`. An empty part is allowed.
    pub(super) fn part(self, slot: u32, count: usize) -> Result<ops::Range<u32>, OutOfRange> {
        let end = u32::try_from(count).ok().and_then(|count| slot.checked_add(count));
        match end.filter(|&end| end <= self.count) {
            Some(end) => Ok(self.first + slot..self.first + end),
            None => {
                let last = u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX);
                Err(OutOfRange { slot: slot.saturating_add(last), count: self.count })
            }
        }
    }
}

/// The [`DescriptorRange`] belongs to another heap. Nothing was changed; the error returns the range.
#[derive(PartialEq, Eq, Debug)]
pub struct ForeignDescriptorRange {
    /// The range.
    pub range: DescriptorRange,
}

sublet_engines::errors! { struct ForeignDescriptorRange { range } =>
    "the range of {} slots at {} is of another heap" (range.count, range.first)
}
