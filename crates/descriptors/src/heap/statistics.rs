//! Figures of a descriptor heap.

/// The slots of a heap. `free + live + retiring == capacity` always holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct HeapStatistics {
    /// All slots.
    pub capacity: u32,
    /// Slots without a range.
    pub free: u32,
    /// Slots of live ranges, as granted.
    pub live: u32,
    /// Slots that wait for the GPU: retired and transient ones.
    pub retiring: u32,
    /// Live ranges, without transient ones.
    pub ranges: u32,
    /// The maximum number of slots that were not free at once.
    pub peak: u32,
    /// Slots of the transient part, included in the figures above.
    pub transient_capacity: u32,
    /// The maximum number of slots that the heap grows to.
    pub max_capacity: u32,
    /// The number of growths. Command buffers that were recorded before a growth bind the smaller store.
    pub growths: u32,
}

/// The state of a run of slots.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum SlotState {
    /// No range.
    Free,
    /// A live range.
    Live,
    /// A range that waits for the GPU.
    Retiring,
    /// A transient range that the GPU is not done with.
    Transient,
}

/// A run of slots, for `walk`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SlotRun {
    /// Index of the first slot.
    pub first: u32,
    /// The number of slots; not zero.
    pub count: u32,
    /// The state of the slots.
    pub state: SlotState,
}
