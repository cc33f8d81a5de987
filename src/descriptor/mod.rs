//! Descriptors: sets, heaps and what binds them.
//!
//! Everything here starts from a [`DescriptorDevice`]: what the device can do with descriptors, asked once, and shared
//! by all that is made from it. When something may be used again, a [`Clock`](crate::retire::Clock) says. Which of
//! these to take, and why, is in [the guide](crate::guide::descriptors).
//!
//! | | for | threads | comes back |
//! |---|---|---|---|
//! | [`TransientSets`] | sets of one recording | one | all at once, when the recording is done |
//! | [`PersistentSets`] | sets that stay | any | one by one, when they are freed or what they were retired with is done |
//! | [`DescriptorHeap`] | ranges of indices in one array for shaders | any | as ranges, likewise |
//! | [`Binder`] | staging by set and binding, and binding what has changed | one | all at once, when the recording is done |
//!
//! ```text
//! Binder ----> TransientSets ----> pools ----+
//!    |    PersistentSets ---> pools ----+--> DescriptorDevice --> the driver
//!    |         DescriptorHeap ---> stores ---+
//!    +----> pages of an upload arena, where descriptors are in buffers
//! ```
//!
//! A set is as long as its layout says, and Vulkan does not tell what that was made from: a [`SetLayout`] does. A
//! [`Descriptor`] is what is written, as a value that goes for sets and for descriptor buffers alike.

mod batch;
mod binder;
mod counts;
#[allow(clippy::module_inception, reason = "one descriptor")]
mod descriptor;
mod device;
mod events;
mod features;
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
    CollectError, CreateTransientSetsError, LargeSets, PoolSizing, PoolTemplateError, TransientError,
    TransientSets, TransientSetsCreateInfo, TransientSetsStatistics,
};
