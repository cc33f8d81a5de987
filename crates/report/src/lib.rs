//! Reports on the contents of a Sublet allocator or a virtual block, as text, data and pictures.
//!
//! A [`Snapshot`] comes from a live allocator or from a file. Pages, pictures, timelines, figures and comparisons need
//! only snapshots. [`stats_string()`] and its variants write the JSON that VMA's tools read.
//!
//! Features: `snapshots` (default) adds everything except the statistics strings, and needs serde. `trace` adds
//! `History`, a page of a whole recording, and `recording_to_perfetto`. `findings` adds `Findings`.
//!
//! ```
//! use sublet_report::Snapshot;
//!
//! # let (_gpu, allocator, allocate) = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/example/gpu.rs"));
//! let mesh = allocate(&allocator, "mesh", 4096);
//! let saved: String = Snapshot::of(&allocator).to_json();
//! // Later, or elsewhere:
//! let snapshot = Snapshot::from_json(&saved)?;
//! assert_eq!(snapshot.allocations().next().unwrap().entry.name.as_deref(), Some("mesh"));
//! # Ok::<(), sublet_report::ReadSnapshotError>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(feature = "snapshots"),
    allow(rustdoc::broken_intra_doc_links, reason = "the targets need `snapshots`")
)]

mod cast;
#[cfg(feature = "snapshots")]
mod chrome;
#[cfg(feature = "snapshots")]
mod comparison;
#[cfg(feature = "snapshots")]
mod figures;
#[cfg(feature = "findings")]
mod findings;
mod flags;
#[cfg(feature = "trace")]
mod history;
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
#[cfg(feature = "findings")]
pub use findings::{
    FindingKind, FindingLimit, FindingObject, Findings, LimitBreach, MemoryFinding, MomentSums,
    PresetOutcome, ReadLimitError,
};
#[cfg(feature = "trace")]
pub use history::History;
#[cfg(feature = "snapshots")]
pub use page::Page;
#[cfg(feature = "snapshots")]
pub use perfetto::perfetto;
#[cfg(feature = "trace")]
pub use recording::recording_to_perfetto;
#[cfg(feature = "snapshots")]
pub use snapshot::{
    Block, Chunk, Dedicated, DescriptorHeapMap, DescriptorPoolMap, DescriptorPools, Device, Entry,
    FaultPosition, Heap, Located, MemoryType, PoolDescriptors, PoolState, ReadSnapshotError, SlotUse, Slots,
    Snapshot, SnapshotFault, Vector,
};
pub use stats_string::{stats_string, stats_string_of_map, virtual_block_stats_string};
#[cfg(feature = "snapshots")]
pub use svg::svg;
