//! The Vulkan interface of the crate gpu-allocator, version 0.28, on [`sublet`].
//!
//! A program that uses gpu-allocator, directly or through wgpu, can use Sublet without changes to its code:
//!
//! ```toml
//! [patch.crates-io]
//! gpu-allocator = { path = "../sublet/compat/gpu-allocator" }
//! ```
//!
//! These parts are equal to the original:
//!
//! - every type, method and field;
//! - the memory type for each [`MemoryLocation`];
//! - the sizes of blocks for device and host, as set in [`AllocationSizes`];
//! - persistent mapping of all host-visible memory;
//! - the last block of a memory type, and only that block, is kept when it is empty;
//! - errors, including the driver's result;
//! - log messages with their targets, and `{:?}`.
//!
//! These parts differ:
//!
//! - Among more than three blocks of a memory type, a request takes the smallest range that fits. The original takes
//!   the last block with room. A request larger than the next block gets dedicated memory, but here only if no block
//!   has room.
//! - On heaps of 1 GiB and less, no block is larger than an eighth of the heap. If the driver or the heap's budget has
//!   no space for a block, the allocator tries a smaller one.
//! - Sizes in reports and in the log of leaks are those of the allocations. The original adds the padding before them.
//! - The allocator, not the block, counts [`chunk_id`](vulkan::Allocation::chunk_id). `{:?}` of an allocation has no
//!   `memory_block_index`. The number of a block in the log of leaks is its index among the live ones, shared blocks
//!   first.
//! - Leaks in a block are listed in order of their offsets. The original has the order of a hash table.
//! - The allocator never requests more bytes from the driver than the heap has. The original does when a `CpuToGpu`
//!   allocation falls back.
//! - The driver may have rejected several sizes before a request fails. The error holds its last result.
//! - Log records have the original's targets, but not its `module_path`, `file` and `line`. Sublet also emits its own
//!   `tracing` events.
//! - Only Vulkan is supported. With the features `d3d12` on Windows or `metal` on Apple's systems, and with
//!   `visualizer`, the build stops with a message. Instead of the visualizer, which needs a window of egui (0.27 at the
//!   latest), use Sublet's feature `report`. It writes a page from `vulkan::Allocator::as_sublet`. Remove
//!   `AllocatorVisualizer` from the program.
//!
//! With the feature `trace`, a program is recorded to the file in the environment variable `SUBLET_TRACE`: see
//! `sublet::trace`. If this crate is an indirect dependency, add a direct dependency on it to enable the feature.
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
