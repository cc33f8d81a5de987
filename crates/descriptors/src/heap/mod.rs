//! Descriptor heaps: ranges of indices in one large array of descriptors.

mod arrays;
mod bindless;
mod buffer;
mod classic;
mod create_info;
mod current;
mod error;
#[allow(clippy::module_inception, reason = "the heap itself")]
mod heap;
mod host;
mod limits;
mod mapped;
mod mapping;
mod native;
mod owned;
mod range;
mod set;
mod sets;
mod slot;
mod slots;
mod statistics;
mod store;

pub use bindless::{BindlessHeap, BindlessHeapCreateInfo, BindlessKind, BindlessStore, HeapPlace};
pub use buffer::BufferStore;
pub use classic::ClassicStore;
pub use create_info::{CreateHeapError, HeapArrays, HeapCreateInfo, HeapGrowth, HeapKind};
pub use error::{HeapError, HeapWriteError, OutOfRange, RangeError};
pub use heap::DescriptorHeap;
pub use host::{HostHeap, HostHeapCreateInfo};
pub use mapping::{BindingMapping, HeapMappings, MappingSource};
pub use native::NativeStore;
pub use owned::{HeapRef, OwnedRange};
pub use range::{DescriptorRange, DescriptorRangeId, ForeignDescriptorRange};
pub use set::SetStore;
pub use slot::{HeapSlot, HostSlot};
pub use statistics::{HeapStatistics, SlotRun, SlotState};
pub use store::HeapStore;
