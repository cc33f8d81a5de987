//! What a descriptor heap gives out.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;
use std::ops::{self, Deref};

use super::error::OutOfRange;

/// Consecutive slots of one [`DescriptorHeap`](super::DescriptorHeap), by value. Neither `Copy` nor `Clone`: what was
/// retired or freed cannot be retired again.
///
/// It has a [name](Self::id), which may be copied, and all of the name's methods. It does not retire itself when it is
/// dropped, because only the program knows when the device is done with it; an [`OwnedRange`](super::OwnedRange) does.
///
/// ```
/// use sublet::descriptor::DescriptorHeap;
/// # use sublet::{descriptor::*, sim};
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # // SAFETY: instance and device are live, and outlive everything that is made from the value.
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
/// # use sublet::{descriptor::*, retire::Ticket};
/// fn twice<S: HeapStore>(heap: &DescriptorHeap<S>, ticket: Ticket, range: DescriptorRange) {
///     unsafe { heap.retire(ticket, range) }.unwrap();
///     unsafe { heap.retire(ticket, range) }.unwrap(); // moved already
/// }
/// ```
#[derive(PartialEq, Eq, Hash, Debug)]
#[must_use = "a range that is dropped stays allocated: give it to `free` or `retire`"]
pub struct DescriptorRange(pub(super) DescriptorRangeId);

impl DescriptorRange {
    /// A name that may be copied and kept. Writing takes it.
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

/// Names a [`DescriptorRange`], or the slots of a frame.
///
/// `Copy`, because shaders' data is full of copies of it anyway: nothing could keep an index in GPU memory from
/// outliving its range. What is stale is found out instead. Each range has a generation, and it is dead from the moment
/// it is retired, not only once somebody else has the slots: [`write`](super::DescriptorHeap::write) and
/// [`check`](super::DescriptorHeap::check) refuse its name then, and so does every heap but its own. 2^31 ranges can
/// start at one slot before a dead one is taken for a living one.
///
/// ```
/// # use sublet::{descriptor::*, sim};
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # // SAFETY: instance and device are live, and outlive everything that is made from the value.
/// # let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// let mut staging = HostHeap::new(&device, &HostHeapCreateInfo::default())?;
/// let textures = staging.allocate(5)?;
/// let kept: DescriptorRangeId = textures.id();
/// staging.free(textures)?;
/// assert_eq!(staging.check(kept), Err(RangeError::StaleHandle { range: kept }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A name is not enough to end a range, nor is it to end a frame's slots early:
///
/// ```compile_fail,E0308
/// # use sublet::{descriptor::*, retire::Ticket};
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
    /// Each heap of the process has a number of its own, until 2^32 were made.
    pub(super) heap: u32,
}

impl DescriptorRangeId {
    /// Index of the first slot: what a material keeps.
    #[inline]
    #[must_use]
    pub const fn first(self) -> u32 {
        self.first
    }

    /// How many slots; not zero.
    #[inline]
    #[must_use]
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Index of a slot, counted from the first of the range.
    ///
    /// # Errors
    /// [`OutOfRange`] if the range has not so many.
    #[inline]
    pub const fn index(self, slot: u32) -> Result<u32, OutOfRange> {
        if slot < self.count {
            // The range is in a heap, whose slots have numbers of 32 bits.
            Ok(self.first + slot)
        } else {
            Err(OutOfRange { slot, count: self.count })
        }
    }

    /// Indices of all slots.
    #[must_use]
    pub const fn indices(self) -> ops::Range<u32> {
        self.first..self.first + self.count
    }

    /// Indices of `count` slots, counted from `slot`. For no slots it is where they would be.
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

/// A [`DescriptorRange`] was given to a heap that it is not of. Nothing was changed, and here it is back.
#[derive(PartialEq, Eq, Debug)]
pub struct ForeignDescriptorRange {
    /// The range.
    pub range: DescriptorRange,
}

impl fmt::Display for ForeignDescriptorRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the range of {} slots at {} is of another heap", self.range.count, self.range.first)
    }
}

impl Error for ForeignDescriptorRange {}
