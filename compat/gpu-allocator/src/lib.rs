//! The Vulkan interface of the crate gpu-allocator, version 0.28, on [`sublet`].
//!
//! A program that uses gpu-allocator, by itself or below wgpu, tries Sublet without an edit: one redirection does.
//!
//! ```toml
//! [patch.crates-io]
//! gpu-allocator = { path = "../sublet/compat/gpu-allocator" }
//! ```
//!
//! What is the same: every type, method and field; the memory type that each [`MemoryLocation`] gets; persistent mapping of all
//! memory that the host sees; one `VkDeviceMemory` kept when it is empty; reports and the log of leaks.
//!
//! What is not:
//!
//! - Blocks begin at an eighth of the largest size that [`AllocationSizes`] allows and double from there. Small programs take less
//!   memory. On heaps of 1 GiB and less the largest size is an eighth of the heap.
//! - Memory of its own is [`is_dedicated`](vulkan::Allocation::is_dedicated), also where no scheme asked for it.
//! - Sizes in reports are those of the allocations. The original adds what alignment left before them.
//! - A request that no block can hold gets memory of its own where its size is more than half a block, and not only where it is
//!   larger than one.
//! - Only Vulkan. With the features `d3d12` on Windows or `metal` on Apple's systems, and with `visualizer`, the build stops with a
//!   message. What the visualizer draws into a window of egui (of 0.27 at the latest), Sublet's feature `report` writes as a page, from
//!   `vulkan::Allocator::as_sublet`. The edit: leave `AllocatorVisualizer` out.
//!
//! With the feature `trace` a program is recorded where the environment variable `SUBLET_TRACE` names a file: see
//! `sublet::trace`. A program below which this crate is deep down gets it by a dependency of its own on this crate, with the feature.
#![cfg_attr(not(feature = "vulkan"), forbid(unsafe_code))]

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
     `sublet::report` (Sublet's feature `report`), which are made from `vulkan::Allocator::as_sublet`"
);

mod report;
mod result;
mod settings;
#[cfg(feature = "vulkan")]
pub mod vulkan;

pub use report::{AllocationReport, AllocatorReport, MemoryBlockReport};
pub use result::{AllocationError, Result};
pub use settings::{AllocationSizes, AllocatorDebugSettings, MemoryLocation};
