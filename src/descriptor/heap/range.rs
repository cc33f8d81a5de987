//! What a descriptor heap gives out.
#![forbid(unsafe_code)]

use std::ops;

use super::error::OutOfRange;

/// Consecutive slots of one [`DescriptorHeap`](super::DescriptorHeap): what shaders know them by, and the heap.
///
/// `Copy`, because shaders' data is full of copies of it anyway: nothing could keep an index in GPU memory from
/// outliving its range. What is stale is found out instead. Each range has a generation, and it is dead from the moment
/// it is retired, not only once somebody else has the slots: [`write`](super::DescriptorHeap::write) and
/// [`retire`](super::DescriptorHeap::retire) refuse it then, and so does every heap but its own. 2^31 ranges can start
/// at one slot before a dead one is taken for a living one. [`OwnedRange`](super::OwnedRange) cannot be copied, and
/// retires itself.
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
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DescriptorRange {
    pub(super) first: u32,
    pub(super) count: u32,
    /// Odd. A slot's generation is even while no range starts there.
    pub(super) generation: u32,
    /// Each heap of the process has a number of its own, until 2^32 were made.
    pub(super) heap: u32,
}

impl DescriptorRange {
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
