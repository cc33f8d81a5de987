//! The Vulkan interface of the crate gpu-allocator, version 0.28, on [`sublet`].
//!
//! A program that uses gpu-allocator, by itself or below wgpu, tries Sublet without an edit: one redirection does.
//!
//! ```toml
//! [patch.crates-io]
//! gpu-allocator = { path = "../sublet/compat/gpu-allocator" }
//! ```
//!
//! What is the same: every type, method and field; the memory type that each [`MemoryLocation`] gets; the smallest and
//! the largest block for the device and for the host, as [`AllocationSizes`] has them; persistent mapping of all memory
//! that the host sees; the last block of a memory type that is kept when it is empty, and no other; errors, with the
//! driver's result in them; what is logged, with its targets; `{:?}`.
//!
//! What is not:
//!
//! - A request that no block can hold gets memory of its own where its size is more than half of the largest block, and
//!   not only where it is larger than the next one would be. One that would fill more than half of the next block gets
//!   a larger block. Blocks double beside the largest that there is; the original counts the blocks. Under the sizes
//!   that wgpu takes for its hints, vello (`tests/traces`) reserves 192 MiB with both for `Performance`, and 180 MiB
//!   where the original reserves 188 for `MemoryUsage`; under gpu-allocator's default it is 192 and 256.
//! - On heaps of 1 GiB and less no block is larger than an eighth of the heap. Where the driver, or the heap's budget,
//!   has no room for a block, a smaller one is asked for.
//! - Sizes in reports and in the log of leaks are those of the allocations. The original adds what alignment left
//!   before them.
//! - [`chunk_id`](vulkan::Allocation::chunk_id) is counted by the allocator, and not by the block. `{:?}` of an
//!   allocation has no `memory_block_index`, and the number of a block in the log of leaks counts those that there are:
//!   shared ones first.
//! - Leaks in a block are listed in the order of their offsets. The original has the order of a hash table.
//! - More bytes than the heap has are never asked of the driver. The original asks for them where a `CpuToGpu`
//!   allocation falls back.
//! - What the driver refuses may have been asked for more than once, with other sizes. The last answer is the error.
//! - Records of the log have their targets, but not their `module_path`, `file` and `line`, of the original. Sublet's
//!   own events, of `tracing`, come beside them where the program has a subscriber.
//! - Only Vulkan. With the features `d3d12` on Windows or `metal` on Apple's systems, and with `visualizer`, the build
//!   stops with a message. What the visualizer draws into a window of egui (of 0.27 at the latest), Sublet's feature
//!   `report` writes as a page, from `vulkan::Allocator::as_sublet`. The edit: leave `AllocatorVisualizer` out.
//!
//! With the feature `trace` a program is recorded where the environment variable `SUBLET_TRACE` names a file: see
//! `sublet::trace`. A program below which this crate is deep down gets it by a dependency of its own on this crate,
//! with the feature.
#![deny(unsafe_code)]

#[cfg(all(windows, feature = "d3d12"))]
compile_error!(
    "this stand-in for gpu-allocator has no Direct3D 12: build without the feature `d3d12`, or without the patch"
);
#[cfg(all(target_vendor = "apple", feature = "metal"))]
compile_error!(
    "this stand-in for gpu-allocator has no Metal: build without the feature `metal`, or without the patch"
);
#[cfg(feature = "visualizer")]
compile_error!(
    "this stand-in for gpu-allocator has no `visualizer`: build without that feature. The same is shown without egui by the pages of \
     `sublet_report` (Sublet's package `sublet-report`), which are made from `vulkan::Allocator::as_sublet`"
);

mod report;
mod result;
mod settings;
#[cfg(feature = "vulkan")]
pub mod vulkan;

pub use report::{AllocationReport, AllocatorReport, MemoryBlockReport};
pub use result::{AllocationError, Result};
pub use settings::{AllocationSizes, AllocatorDebugSettings, MemoryLocation};
