//! The guide: chapters to read, rather than items to look up.
//!
//! | to begin with | |
//! |---|---|
//! | [`start`] | from a device to a mesh in its memory |
//! | [`switching`] | from raw `ash`, gpu-allocator or VMA in 15 minutes |
//! | [`memory`] | usages and flags, and the memory that they select |
//! | [`pools`] | memory with limits of its own; rings, stacks and scopes |
//! | [`retirement`] | when resources that the GPU uses may be freed |
//! | [`uploads`] | how bytes get to the device |
//!
//! | when it grows | |
//! |---|---|
//! | [`budgets`] | how much memory there is, and how to recover when it is used up |
//! | [`moving`] | defragmentation: moving live resources, so that blocks can be freed |
//! | [`threads`] | types that threads may share, calls that wait |
//! | [`block_sources`] | engines and blocks of your own |
//! | [`testing`] | your code on GPUs that you do not have |
//! | [`reports`] | maps of the memory, recordings, and the command `sublet` |
//! | [`programs`] | programs that do not use Sublet, recorded and judged |
//! | [`debugging`] | leaks, corruption, validation messages, events |
//! | [`security`] | what is trusted, what is not, and how it is tested |
//! | [`performance`] | the cost of each call, the fast paths, and measured alternatives |
//!
//! | reference | |
//! |---|---|
//! | [`migrating`] | tables of old and new calls: vk-mem, gpu-allocator, VMA, Direct3D 12, Granite, NVRHI |
//! | [`c`] | C and C++ |
//! | [`differences`] | what differs from VMA |
//! | [`limits`] | missing features, weaknesses, numeric limits |
//! | [`faq`] | questions that users ask |
//! | [`design`] | the words of the source, and the reason for each decision |
//! | [`moved`] | old and new names and paths of this repository |
//!
//! The package `sublet-descriptors` has a chapter on how shaders find buffers and images, its module `guide`.
//!
//! The package `sublet-frame` has chapters of its own, as the docs of its modules: `track` on states, which says what
//! barriers follow from the uses of buffers and images, `frames` on frames in flight and command lists, and
//! `compact` on resources that move by themselves. In Direct3D 12 programs, `track` is a resource state tracker, and
//! `frames` has the command queues and command lists.

/// The names by which the pages link to items.
#[cfg(doc)]
mod names {
    pub(super) use crate::allocation::*;
    pub(super) use crate::allocator::*;
    pub(super) use crate::create_info::*;
    pub(super) use crate::defragment::*;
    pub(super) use crate::device::*;
    pub(super) use crate::engine::*;
    pub(super) use crate::error::*;
    pub(super) use crate::pool::*;
    pub(super) use crate::retire::*;
    pub(super) use crate::statistics::*;
    #[cfg(feature = "trace")]
    pub(super) use crate::trace::Trace;
    pub(super) use crate::upload::*;
    pub(super) use crate::vector::*;
    pub(super) use crate::virtual_block::*;
    pub(super) use sublet_engines::*;
}
#[cfg(doc)]
use names::*;

#[doc = include_str!("start.md")]
pub mod start {}

#[doc = include_str!("memory.md")]
pub mod memory {}

#[doc = include_str!("pools.md")]
pub mod pools {}

#[doc = include_str!("moving.md")]
pub mod moving {}

#[doc = include_str!("retirement.md")]
pub mod retirement {}

#[doc = include_str!("uploads.md")]
pub mod uploads {}

#[doc = include_str!("security.md")]
pub mod security {}

#[doc = include_str!("budgets.md")]
pub mod budgets {}

#[doc = include_str!("threads.md")]
pub mod threads {}

#[doc = include_str!("block_sources.md")]
pub mod block_sources {}

#[cfg_attr(
    not(feature = "sim"),
    allow(rustdoc::broken_intra_doc_links, reason = "the simulated device is documented with its feature")
)]
#[doc = include_str!("testing.md")]
pub mod testing {}

#[doc = include_str!("debugging.md")]
pub mod debugging {}

#[doc = include_str!("switching.md")]
pub mod switching {}

#[doc = include_str!("migrating.md")]
pub mod migrating {}

#[doc = include_str!("c.md")]
/// ```c
#[doc = include_str!("buffer.c")]
/// ```
pub mod c {}

#[cfg_attr(
    not(feature = "trace"),
    allow(rustdoc::broken_intra_doc_links, reason = "recordings are documented with their feature")
)]
#[doc = include_str!("reports.md")]
pub mod reports {}

#[doc = include_str!("programs.md")]
pub mod programs {}

#[doc = include_str!("performance.md")]
pub mod performance {}

#[doc = include_str!("differences.md")]
pub mod differences {}

#[doc = include_str!("limits.md")]
pub mod limits {}

#[doc = include_str!("faq.md")]
pub mod faq {}

#[doc = include_str!("design.md")]
pub mod design {}

#[doc = include_str!("moved.md")]
pub mod moved {}
