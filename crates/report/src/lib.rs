//! Reports: what a Sublet allocator or a virtual block holds, as text, as data and as pictures.
//!
//! A [`Snapshot`] is everything that a live allocator holds, or what a file says that one held; pages, pictures,
//! timelines, figures and comparisons are made of snapshots alone. [`stats_string()`] and its kin write the JSON that
//! VMA's tools read.
//!
//! Features: `snapshots`, which is on by default, is everything but the statistics strings, and needs serde; `trace`
//! adds `recording_to_perfetto`.
//!
//! ```
//! # use sublet::*; use ash::vk;
//! use sublet_report::Snapshot;
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
#![cfg_attr(
    not(feature = "snapshots"),
    allow(rustdoc::broken_intra_doc_links, reason = "they lead to snapshots")
)]

mod cast;
#[cfg(feature = "snapshots")]
mod chrome;
#[cfg(feature = "snapshots")]
mod comparison;
#[cfg(feature = "snapshots")]
mod figures;
mod flags;
#[cfg(feature = "snapshots")]
mod page;
#[cfg(feature = "snapshots")]
mod perfetto;
#[cfg(feature = "trace")]
mod recording;
#[cfg(feature = "snapshots")]
mod snapshot;
mod stats_string;
#[cfg(feature = "snapshots")]
mod svg;
#[cfg(test)]
mod tests;
#[cfg(feature = "snapshots")]
mod words;
mod writer;

#[cfg(feature = "snapshots")]
pub use comparison::{Change, Comparison, Matching, NameChange, VectorChange};
#[cfg(feature = "snapshots")]
pub use figures::{Figures, Fragmentation, Group, suspected_leaks};
#[cfg(feature = "snapshots")]
pub use page::Page;
#[cfg(feature = "snapshots")]
pub use perfetto::perfetto;
#[cfg(feature = "trace")]
pub use recording::recording_to_perfetto;
#[cfg(feature = "snapshots")]
pub use snapshot::{
    Block, Chunk, Dedicated, Device, Entry, Heap, Located, MemoryType, Place, ReadSnapshotError, Snapshot,
    SnapshotFault, Vector,
};
pub use stats_string::{stats_string, stats_string_of_map, virtual_block_stats_string};
#[cfg(feature = "snapshots")]
pub use svg::svg;
