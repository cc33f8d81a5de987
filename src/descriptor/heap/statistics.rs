//! How full a descriptor heap is, and with what.
#![forbid(unsafe_code)]

/// Slots of a heap. `free + live + retiring == capacity`, always.
///
/// ```
/// use sublet::descriptor::*;
/// # use sublet::sim;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # // SAFETY: instance and device are live, and outlive everything that is made from the value.
/// # let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// let mut staging = HostHeap::new(&device, &HostHeapCreateInfo::default())?;
/// staging.allocate(3)?;
/// let HeapStatistics { live, ranges, peak, .. } = staging.statistics();
/// // Powers of two in host memory.
/// assert_eq!((live, ranges, peak), (4, 1, 4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct HeapStatistics {
    /// Slots that there are.
    pub capacity: u32,
    /// Slots that nobody has.
    pub free: u32,
    /// Slots of ranges that are not retired, as granted.
    pub live: u32,
    /// Slots that wait for the GPU: those that were retired, and those of frames.
    pub retiring: u32,
    /// Ranges that are not retired, but for those of frames.
    pub ranges: u32,
    /// The most slots that were not free at once.
    pub peak: u32,
    /// Slots of the part that is for frames; they are among those above.
    pub transient_capacity: u32,
}

/// What a run of slots is.
///
/// ```
/// assert_ne!(sublet::descriptor::SlotState::Free, sublet::descriptor::SlotState::Live);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum SlotState {
    /// Nobody has it.
    Free,
    /// A range that is not retired.
    Live,
    /// A range that waits for the GPU.
    Retiring,
    /// A range of a frame that the GPU is not done with.
    Transient,
}

/// A run of slots, as `walk` shows it.
///
/// ```
/// use sublet::descriptor::*;
/// # use sublet::sim;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # // SAFETY: instance and device are live, and outlive everything that is made from the value.
/// # let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// let mut staging = HostHeap::new(&device, &HostHeapCreateInfo::default())?;
/// staging.allocate(1)?;
/// let mut seen = Vec::new();
/// staging.walk(|run| seen.push(run));
/// assert_eq!(seen[0], SlotRun { first: 0, count: 1, state: SlotState::Live });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SlotRun {
    /// Index of the first slot.
    pub first: u32,
    /// Slots; not zero.
    pub count: u32,
    /// What they are.
    pub state: SlotState,
}
