//! The interface of the crate vk-mem, version 0.5, on [`sublet`]: no C++ compiler, no VMA.
//!
//! ```toml
//! [patch.crates-io]
//! vk-mem = { path = "../sublet/compat/vk-mem" }
//! ```
//!
//! What is the same: names, parameters and results of the functions, the values of the flags, what each usage means for
//! the choice of memory, and the `vk::Result` of every error that the original has one for.
//!
//! `compat/tests/vk-mem` compiles one program that uses everything in both crates with either of them, and compares
//! the results on every simulated GPU and on a real driver. `differences.txt` there lists what may differ,
//! `missing.txt` the public items that only the original has. egui-ash-renderer 0.13, which uses vk-mem and
//! gpu-allocator, draws with the stand-ins as it is published (`compat/tests/egui`).
//!
//! # What differs, and the edit that a program needs
//!
//! - [`Allocation`] is not `Copy` and not `Clone`. A program that kept copies keeps one, for example in an `Rc`, or
//!   takes it out of an `Option`. [`free_memory`](Allocator::free_memory) and the functions that destroy leave it
//!   empty. Every function refuses an empty one, and frees nothing a second time. A program that frees the memory
//!   before the buffer destroys the buffer with `ash`: with an empty allocation
//!   [`destroy_buffer`](Allocator::destroy_buffer) does nothing.
//! - An [`Allocation`] that is dropped stays allocated until its allocator is destroyed, as in the original.
//! - [`AllocatorPool::name`] returns an owned `CString` instead of a borrowed one: add `.as_deref()` where an
//!   `Option<&CStr>` is needed.
//! - [`AllocatorCreateInfo::device_memory_callbacks`] takes Sublet's [`DeviceMemoryCallbacks`]. The original's type has
//!   no public name, so that no program can have set it.
//! - [`Alloc::pool`] returns a [`PoolHandle`] that borrows the pool. Only a program that names the type with a
//!   lifetime, or keeps it, needs an edit.
//! - There are no raw bindings: the module `ffi` of the original is private, so that no program can name anything in
//!   it. Types of it that are visible anyway, such as the statistics, have names here, without `Vma`, and the same
//!   fields. A program that declares VMA's functions for itself links Sublet's C interface (package `sublet-capi`): an
//!   allocator belongs to one of the two.
//! - Defragmentation can be called. The original's cannot: its parameters have no public name, and its results cannot
//!   be matched with a program's allocations. Names and order of calls are the original's. [`DefragmentationInfo`] and
//!   [`DefragmentationFlags`] are VMA's in this crate's spelling. Because allocations are no copies of a handle, a move
//!   changes the program's own: [`DefragmentationMove::commit`] takes it, within the pass.
//!   [`DefragmentationMove::operation`] is an enum with short names.
//! - [`AllocatorCreateFlags::EXTERNALLY_SYNCHRONIZED`] has no effect: every thread may call everything.
//! - [`VirtualBlockCreateInfo::allocation_callbacks`] has no effect: host memory comes from Rust's allocator.
//! - A wrong call that VMA meets with an assertion or with undefined behaviour (a foreign allocation, a range that is
//!   too long) returns `ERROR_UNKNOWN` if it has a result. It is always logged through `tracing`, with its reason.
//!
//! # What works here and not there
//!
//! [`Allocator::get_physical_device_properties`] returns the device's properties.
//! [`Alloc::find_memory_type_index_for_buffer_info`] and its variants work on devices below Vulkan 1.3, where the
//! original ends the program. Defragmentation can be called. There are names of allocations
//! ([`Allocator::set_allocation_name`]), statistics as JSON ([`Allocator::build_stats_string`]), resources that share
//! memory ([`Allocator::create_aliasing_buffer`]), copies with the flush they need
//! ([`Allocator::copy_memory_to_allocation`]), properties of memory types ([`Allocator::get_memory_type_properties`]),
//! and figures and JSON of a [`VirtualBlock`].
//!
//! With the feature `trace` a program is recorded where the environment variable `SUBLET_TRACE` names a file: see
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
