//! The interface of the crate vk-mem, version 0.5, on [`sublet`]: no C++ compiler, no VMA.
//!
//! ```toml
//! [patch.crates-io]
//! vk-mem = { path = "../sublet/compat/vk-mem" }
//! ```
//!
//! Equal to the original: names, parameters and results of the functions, the values of the flags, the memory choice
//! for each usage, and the `vk::Result` of every error for which the original has one.
//!
//! `compat/tests/vk-mem` compiles one program with both crates and compares the results on every simulated GPU and on a
//! real driver. The program uses everything that both have. `differences.txt` there lists the allowed differences, and
//! `missing.txt` the public items that only the original has. egui-ash-renderer 0.13, which uses vk-mem and
//! gpu-allocator, draws unmodified with the stand-ins (`compat/tests/egui`).
//!
//! # Differences, and the changes that a program needs
//!
//! - [`Allocation`] is neither `Copy` nor `Clone`. A program with copies has to share one, for example in an `Rc`, or
//!   take it out of an `Option`. [`free_memory`](Allocator::free_memory) and the functions that destroy resources leave
//!   it empty. Every function rejects an empty one, so that nothing is freed twice. A program that frees the memory
//!   before the buffer must destroy the buffer with `ash`: with an empty allocation,
//!   [`destroy_buffer`](Allocator::destroy_buffer) does nothing.
//! - A dropped [`Allocation`] stays allocated until its allocator is destroyed, as in the original.
//! - [`AllocatorPool::name`] returns an owned `CString` instead of a borrowed one. Add `.as_deref()` for an
//!   `Option<&CStr>`.
//! - [`AllocatorCreateInfo::device_memory_callbacks`] takes Sublet's [`DeviceMemoryCallbacks`]. The original's type has
//!   no public name, so no program can have set it.
//! - [`Alloc::pool`] returns a [`PoolHandle`] that borrows the pool. Only a program that names the type with a
//!   lifetime, or stores it, needs a change.
//! - There are no raw bindings. The original's module `ffi` is private, so a program cannot name anything in it. Its
//!   types that are visible anyway, such as the statistics, have names here without `Vma`, and the same fields. A
//!   program that declares VMA's functions itself links Sublet's C interface (package `sublet-capi`). An allocator
//!   belongs to only one of the two.
//! - Defragmentation can be called. In the original it cannot: its parameters have no public name, and its results
//!   cannot be matched with a program's allocations. Names and order of calls are the original's.
//!   [`DefragmentationInfo`] and [`DefragmentationFlags`] are VMA's in this crate's spelling. Allocations are not
//!   copyable handles, so a move changes the program's own: [`DefragmentationMove::commit`] takes it, within the pass.
//!   [`DefragmentationMove::operation`] is an enum with short names.
//! - [`AllocatorCreateFlags::EXTERNALLY_SYNCHRONIZED`] has no effect: all functions are thread-safe.
//! - [`VirtualBlockCreateInfo::allocation_callbacks`] has no effect: host memory comes from Rust's allocator.
//! - Some wrong calls cause an assertion or undefined behaviour in VMA, such as a foreign allocation or a range that is
//!   too long. Here they return `ERROR_UNKNOWN` if they have a result. The reason is always logged through `tracing`.
//!
//! # Additions
//!
//! [`Allocator::get_physical_device_properties`] returns the device's properties.
//! [`Alloc::find_memory_type_index_for_buffer_info`] and its variants work on devices below Vulkan 1.3, where the
//! original aborts the program. Defragmentation can be called. There are names of allocations
//! ([`Allocator::set_allocation_name`]), statistics as JSON ([`Allocator::build_stats_string`]), resources that share
//! memory ([`Allocator::create_aliasing_buffer`]), copies with the flush they need
//! ([`Allocator::copy_memory_to_allocation`]), properties of memory types ([`Allocator::get_memory_type_properties`]),
//! and figures and JSON of a [`VirtualBlock`].
//!
//! With the feature `trace`, a program is recorded to the file in the environment variable `SUBLET_TRACE`: see
//! `sublet::trace`.
#![deny(unsafe_code)]

mod access;
mod alias;
mod alloc;
mod allocation;
mod allocator;
mod defragmentation;
mod flags;
mod info;
mod pool;
mod refused;
mod statistics;
mod virtual_block;

pub use alloc::{Alloc, PoolHandle};
pub use allocation::{Allocation, AllocationInfo, AllocationInfo2};
pub use allocator::Allocator;
pub use defragmentation::{
    DefragmentationContext, DefragmentationFlags, DefragmentationInfo, DefragmentationMove,
    DefragmentationMoveOperation, DefragmentationStats,
};
pub use flags::{
    AllocationCreateFlags, AllocatorCreateFlags, AllocatorPoolCreateFlags, MemoryUsage,
    VirtualAllocationCreateFlags, VirtualBlockCreateFlags,
};
pub use info::{AllocationCreateInfo, AllocatorCreateInfo, PoolCreateInfo};
pub use pool::AllocatorPool;
pub use statistics::{Budget, DetailedStatistics, Statistics, TotalStatistics};
pub use sublet::device::DeviceMemoryCallbacks;
pub use virtual_block::{
    VirtualAllocation, VirtualAllocationCreateInfo, VirtualAllocationInfo, VirtualBlock,
    VirtualBlockCreateInfo,
};
