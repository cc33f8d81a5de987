//! Reports: what an allocator or a virtual block holds, as text, as data and as pictures.
//!
//! With the feature `json`, [`Allocator::build_stats_string`](crate::Allocator::build_stats_string) writes the JSON that VMA's tools
//! read. With `report` there is this module: a [`Snapshot`] is everything that a live allocator holds, or what a file says that
//! one held, and the rest of the module works on snapshots alone.
//!
//! ```
//! # use sublet::*; use ash::vk;
//! use sublet::report::Snapshot;
//!
//! # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
//! # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
//! # let requirements = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
//! # let info = AllocationCreateInfo { name: Some("mesh"), ..Default::default() };
//! # let allocation = allocator.allocate_memory(&requirements, &info)?;
//! let saved: String = Snapshot::of(&allocator).to_json();
//! // Later, or elsewhere:
//! let snapshot = Snapshot::from_json(&saved)?;
//! assert_eq!(snapshot.allocations().next().unwrap().entry.name.as_deref(), Some("mesh"));
//! # unsafe { allocator.free_memory(allocation) }?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(feature = "report")]
pub(crate) mod chrome;
#[cfg(feature = "report")]
mod comparison;
#[cfg(feature = "report")]
mod figures;
mod flags;
#[cfg(feature = "report")]
mod page;
#[cfg(feature = "report")]
mod perfetto;
#[cfg(feature = "report")]
mod snapshot;
mod stats_string;
#[cfg(feature = "report")]
mod svg;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
#[cfg(feature = "report")]
pub(crate) mod words;
mod writer;

#[cfg(feature = "report")]
pub use comparison::{Change, Comparison, Matching, NameChange, VectorChange};
#[cfg(feature = "report")]
pub use figures::{Figures, Fragmentation, Group, suspected_leaks};
#[cfg(feature = "report")]
pub use page::Page;
#[cfg(feature = "report")]
pub use perfetto::perfetto;
#[cfg(feature = "report")]
pub use snapshot::{
    Block, Chunk, Dedicated, Device, Entry, Heap, Located, MemoryType, Place, ReadSnapshotError, Snapshot,
    SnapshotFault, Vector,
};
#[cfg(feature = "report")]
pub use svg::svg;
