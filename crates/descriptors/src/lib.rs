//! Descriptors: sets, heaps and the binder.
//!
//! Everything here starts from a [`DescriptorDevice`]: the descriptor capabilities of a device, queried once and shared
//! by all objects created from it. A [`Clock`](sublet::retire::Clock) reports when a resource may be reused. [The
//! guide](guide) explains which type to choose.
//!
//! | | for | threads | reused |
//! |---|---|---|---|
//! | [`TransientSets`] | sets of one recording | one | all at once, when the recording is done |
//! | [`PersistentSets`] | sets with arbitrary lifetimes | any | one by one, when freed, or when their ticket is done |
//! | [`DescriptorHeap`] | ranges of indices in one array for shaders | any | one range at a time, likewise |
//! | [`Binder`] | staging by set and binding, and binding of changes | one | all at once, when the recording is done |
//!
//! ```text
//! Binder ---> TransientSets ----> pools ----+
//!    |        PersistentSets ---> pools ----+--> DescriptorDevice --> the driver
//!    |        DescriptorHeap ---> stores ---+
//!    +------> pages of an upload arena, if descriptors are in buffers
//! ```
//!
//! The layout determines the size of a set, and Vulkan cannot report the bindings of a layout: a [`SetLayout`] can. A
//! [`Descriptor`] is a value to write, for sets and for descriptor buffers.
#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

// Locks. Each is taken before those to its right:
//
//   PersistentSets   Bucket::growing > registry > Bucket::state; waiting
//   DescriptorHeap   growing > slots > locks of the store; dropped > slots
//   stores           the heap's growing > Growing::turn > now > content; turn > outgrown; ClassicStore::writes > now
//   HostHeap         Shelves::names
//
// `PersistentSets::vacate` takes a bucket's `growing` under `registry`, but only tries to, so it cannot deadlock.
// `registry`, `waiting`, `slots`, `dropped`, `content` and `names` are never held over a driver call.
// Events of descriptor pools are emitted after the locks are released. A store in a buffer allocates and frees it under
// `growing` and `turn`, or `outgrown`, and the allocator emits its events there. Callbacks of `walk_pools` and `walk`
// run under `state` and `slots`. A store of the program runs under the locks that the heap holds when it calls it.

mod batch;
mod binder;
mod counts;
mod descriptor;
mod device;
mod driver;
mod events;
mod features;
pub mod guide;
mod heap;
mod layout;
mod models;
mod pool;
mod pool_view;
mod quirks;
mod sets;
mod sizes;
mod source;
mod transient;

pub use binder::{
    BindPoint, Binder, BinderCreateInfo, CommitError, CreateBinderError, PipelineLayoutError,
    PipelineLayoutInfo, StageError, Unstaged, UseLayoutError,
};
pub use counts::{DescriptorCounts, DescriptorKind};
pub use descriptor::{
    AccelerationStructureDescriptor, BufferDescriptor, Descriptor, DescriptorDataError, ImageDescriptor,
    TexelBufferDescriptor,
};
pub use device::{CreateDescriptorDeviceError, DescriptorDevice, DescriptorDeviceCreateInfo};
pub use features::DescriptorFeatures;
pub use heap::*;
pub use layout::{SetLayout, SetLayoutBinding, SetLayoutError};
pub use models::BindingModel;
pub use pool::CreateDescriptorPoolError;
pub use pool_view::{DescriptorPoolState, DescriptorPoolView};
pub use quirks::DescriptorQuirks;
pub use sets::{
    AllocateDescriptorSetError, DescriptorSet, DescriptorSetId, DescriptorSetLeak, ForeignDescriptorSet,
    PersistentSets, PersistentSetsCreateInfo, PersistentSetsStatistics, StaleDescriptorSet,
};
pub use sizes::DescriptorSizes;
pub use source::DescriptorSource;
pub use sublet_vk::descriptor_heap as heap_ffi;
pub use transient::{
    CollectPoolsError, CreateTransientSetsError, LargeSets, PoolSizing, PoolTemplateError, TransientError,
    TransientSets, TransientSetsCreateInfo, TransientSetsStatistics,
};

/// The README's code, compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
