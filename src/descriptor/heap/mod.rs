//! Descriptor heaps: ranges of indices in one large array of descriptors.

mod error;
mod range;
mod slots;
mod statistics;

pub use error::{HeapError, HeapWriteError, OutOfRange, RangeError};
pub use range::DescriptorRange;
pub use statistics::{HeapStatistics, SlotRun, SlotState};
