//! How full a descriptor heap is, and with what.
#![forbid(unsafe_code)]

/// Slots of a heap. `free + live + retiring == capacity`, always.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct HeapStatistics {
    /// All slots.
    pub capacity: u32,
    /// Slots that no range has.
    pub free: u32,
    /// Slots of ranges that are not retired, as granted.
    pub live: u32,
    /// Slots that wait for the GPU: those that were retired, and those of frames.
    pub retiring: u32,
    /// Ranges that are not retired, without those of frames.
    pub ranges: u32,
    /// The most slots that were not free at once.
    pub peak: u32,
    /// Slots of the part that is for frames; they are among those above.
    pub transient_capacity: u32,
    /// The most slots that the heap grows to.
    pub max_capacity: u32,
    /// How often it has grown: what command buffers bound before is the smaller heap.
    pub growths: u32,
}

/// What a run of slots is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum SlotState {
    /// No range has it.
    Free,
    /// A range that is not retired.
    Live,
    /// A range that waits for the GPU.
    Retiring,
    /// A range of a frame that the GPU is not done with.
    Transient,
}

/// A run of slots, as `walk` shows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SlotRun {
    /// Index of the first slot.
    pub first: u32,
    /// Slots; not zero.
    pub count: u32,
    /// What they are.
    pub state: SlotState,
}
