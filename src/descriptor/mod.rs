//! Descriptors: sets, heaps and what binds them.
//!
//! Everything here starts from a [`DescriptorDevice`]: what the device can do with descriptors, asked once, and shared by all
//! that is made from it.

mod binder;
mod counts;
#[allow(clippy::module_inception, reason = "one descriptor")]
mod descriptor;
mod device;
mod features;
mod heap;
mod layout;
mod pool;
mod quirks;
mod sets;
mod sizes;
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
pub use device::{BindingModel, CreateDescriptorDeviceError, DescriptorDevice, DescriptorDeviceCreateInfo};
pub use features::DescriptorFeatures;
pub use heap::*;
pub use layout::{SetLayout, SetLayoutBinding, SetLayoutError};
pub use pool::CreateDescriptorPoolError;
pub use quirks::DescriptorQuirks;
pub use sets::{
    AllocateDescriptorSetError, DescriptorAllocator, DescriptorAllocatorCreateInfo,
    DescriptorAllocatorStatistics, DescriptorSet, DescriptorSetId, DescriptorSetLeak, ForeignDescriptorSet,
    LocalDescriptorAllocator, StaleDescriptorSet,
};
pub use sizes::DescriptorSizes;
pub use transient::{
    CollectError, CreateTransientSetsError, LargeSets, PoolSizing, PoolTemplateError, TransientError,
    TransientSets, TransientSetsCreateInfo, TransientSetsStatistics,
};
