//! The parameters of a descriptor heap, and the errors of its creation.

use ash::vk;

use super::super::counts::DescriptorKind;
use super::super::features::DescriptorFeatures;
use super::super::pool::CreateDescriptorPoolError;
use sublet::CreateError;
use sublet::device::{DriverError, MissingFunction};

/// The content of a heap: samplers, or everything else. Devices keep samplers separate, and allow few of them.
///
/// ```
/// use sublet_descriptors::{DescriptorKind, HeapKind};
/// assert!(HeapKind::Resource.default_types().contains(&DescriptorKind::StorageBuffer));
/// assert_eq!(HeapKind::Sampler.default_types(), [DescriptorKind::Sampler]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum HeapKind {
    /// Buffers and images.
    #[default]
    Resource,
    /// Samplers only.
    Sampler,
}

impl HeapKind {
    /// Returns the types that a heap of this kind holds by default.
    #[must_use]
    pub const fn default_types(self) -> &'static [DescriptorKind] {
        match self {
            Self::Resource => &[
                DescriptorKind::SampledImage,
                DescriptorKind::StorageImage,
                DescriptorKind::UniformBuffer,
                DescriptorKind::StorageBuffer,
            ],
            Self::Sampler => &[DescriptorKind::Sampler],
        }
    }

    /// Returns true if a heap of this kind can hold descriptors of a type.
    #[must_use]
    pub const fn allows(self, kind: DescriptorKind) -> bool {
        match kind {
            DescriptorKind::Sampler => matches!(self, Self::Sampler),
            DescriptorKind::CombinedImageSampler
            | DescriptorKind::SampledImage
            | DescriptorKind::StorageImage
            | DescriptorKind::UniformTexelBuffer
            | DescriptorKind::StorageTexelBuffer
            | DescriptorKind::UniformBuffer
            | DescriptorKind::StorageBuffer
            | DescriptorKind::AccelerationStructure => matches!(self, Self::Resource),
            DescriptorKind::UniformBufferDynamic
            | DescriptorKind::StorageBufferDynamic
            | DescriptorKind::InputAttachment
            | DescriptorKind::InlineUniformBlock
            | DescriptorKind::Mutable => false,
        }
    }
}

/// The layout of a heap's slots for shaders.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum HeapArrays {
    /// [`Self::One`] if mutable descriptors are enabled and the heap holds more than one type, otherwise
    /// [`Self::PerType`].
    #[default]
    Auto,
    /// One array at binding 0, whose descriptors can have any of the heap's types (`VK_EXT_mutable_descriptor_type`).
    /// Needs the least memory. Shaders declare one array for each type that they use, all at binding 0.
    One,
    /// One array for each type, each as long as the heap, at bindings 0, 1, 2 ... in the order of
    /// [`HeapCreateInfo::types`]. A slot has the same index in all arrays.
    PerType,
}

/// The effect of growth on a heap's layout.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum HeapGrowth {
    /// The layout stays the same, so pipelines stay valid. Stores that cannot grow this way have all slots from the
    /// start: sets and descriptor buffers with several arrays, and a set for each frame.
    #[default]
    KeepLayout,
    /// Every heap can grow, and its layout changes if necessary. The program compares the result of `layout` with the
    /// layout of its pipelines, and recreates them if it differs.
    ChangeLayout,
}

/// The parameters of a descriptor store.
///
/// ```
/// use sublet_descriptors::{HeapCreateInfo, HeapKind};
/// let info = HeapCreateInfo { slots: 4_096, transient: 512, name: "textures", ..HeapCreateInfo::new(HeapKind::Resource) };
/// assert_eq!(info.kind, HeapKind::Resource);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct HeapCreateInfo<'a> {
    /// Samplers, or everything else.
    pub kind: HeapKind,
    /// The number of slots, including transient ones; not zero. 32,768 by default, and 1,024 for samplers.
    pub slots: u32,
    /// The maximum number of slots, to which a full heap grows: see [growing](super::DescriptorHeap#growing). At most
    /// [`slots`](Self::slots), or 0 (the default), means that it does not grow.
    pub max_slots: u32,
    /// Specifies if the layout may change when the heap grows. By default, it may not.
    pub growth: HeapGrowth,
    /// The number of transient slots, at the upper end of [`slots`](Self::slots): see
    /// [`DescriptorHeap::allocate_transient`](super::DescriptorHeap::allocate_transient). Zero by default.
    pub transient: u32,
    /// The types of descriptors; empty means [`HeapKind::default_types`].
    pub types: &'a [DescriptorKind],
    /// The layout of slots for shaders.
    pub arrays: HeapArrays,
    /// The stages that use the heap; all by default.
    pub stages: vk::ShaderStageFlags,
    /// The name for debuggers; empty for none.
    pub name: &'a str,
}

impl HeapCreateInfo<'_> {
    /// Returns the parameters of a heap of the default size with the default types.
    #[must_use]
    pub const fn new(kind: HeapKind) -> Self {
        let slots = match kind {
            HeapKind::Resource => 32_768,
            HeapKind::Sampler => 1_024,
        };
        Self {
            kind,
            slots,
            max_slots: 0,
            growth: HeapGrowth::KeepLayout,
            transient: 0,
            types: &[],
            arrays: HeapArrays::Auto,
            stages: vk::ShaderStageFlags::ALL,
            name: "",
        }
    }

    /// Returns the types, with the default resolved.
    pub(super) fn actual_types(&self) -> &[DescriptorKind] {
        if self.types.is_empty() { self.kind.default_types() } else { self.types }
    }

    /// Returns the maximum number of slots.
    pub(super) fn most(&self) -> u32 {
        self.max_slots.max(self.slots)
    }

    /// Checks everything that does not depend on the device.
    pub(super) fn check(&self) -> Result<(), CreateHeapError> {
        if self.slots == 0 || self.transient > self.slots {
            return Err(CreateHeapError::Slots { slots: self.slots, transient: self.transient });
        }
        check_types(self.kind, self.actual_types())
    }
}

impl Default for HeapCreateInfo<'_> {
    fn default() -> Self {
        Self::new(HeapKind::Resource)
    }
}

/// Checks that the kind allows each type, and that no type occurs twice.
pub(super) fn check_types(kind: HeapKind, types: &[DescriptorKind]) -> Result<(), CreateHeapError> {
    for (at, &descriptor) in types.iter().enumerate() {
        if !kind.allows(descriptor) || types[..at].contains(&descriptor) {
            return Err(CreateHeapError::Kind { heap: kind, kind: descriptor });
        }
    }
    Ok(())
}

/// A descriptor store could not be created. Nothing is left behind.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum CreateHeapError {
    /// The number of slots is zero, or smaller than the number of transient slots.
    Slots {
        /// The number of slots.
        slots: u32,
        /// The number of transient slots.
        transient: u32,
    },
    /// The blocks of a heap in host memory would have no slots, or more than the maximum of the heap.
    Block {
        /// The requested slots per block. They are rounded up to a power of two.
        block: u32,
        /// The maximum number of slots of the heap.
        max_slots: u32,
    },
    /// A heap of this kind cannot hold the type, or the type occurs twice.
    Kind {
        /// The kind of the heap.
        heap: HeapKind,
        /// The type.
        kind: DescriptorKind,
    },
    /// The heap needs features that are not enabled.
    Unsupported {
        /// The missing features.
        missing: DescriptorFeatures,
    },
    /// The heap has more descriptors than the device allows.
    Limit {
        /// The Vulkan name of the limit.
        limit: &'static str,
        /// The number of descriptors of the heap.
        asked: u64,
        /// The number of descriptors that the device allows.
        allowed: u64,
    },
    /// The device does not support the layout (`vkGetDescriptorSetLayoutSupport`).
    Layout {
        /// The number of descriptors in the layout.
        descriptors: u64,
    },
    /// The device reports no size for descriptors of this type, so they cannot be in a descriptor buffer.
    NoSize {
        /// The type.
        kind: DescriptorKind,
    },
    /// The store needs a default for each type, and this type has none.
    NoDefault {
        /// The type.
        kind: DescriptorKind,
    },
    /// The number of copies is not in 1 to 32.
    Copies {
        /// The requested number of copies.
        copies: u32,
    },
    /// The host has no memory for the state of the slots.
    HostMemory {
        /// The number of slots.
        slots: u32,
        /// The number of types, each with one array.
        types: usize,
        /// The number of copies of the set.
        copies: u32,
    },
    /// The device splits arrays of combined image samplers in descriptor buffers
    /// (`combinedImageSamplerDescriptorSingleArray`): use separate images and samplers.
    SplitArrays,
    /// The device reports an implausible layout in a descriptor buffer: the arrays would exceed it.
    Absurd {
        /// The reported size of the layout in bytes.
        size: u64,
        /// The bytes that its arrays need.
        needed: u64,
    },
    /// The store cannot grow to this number of slots.
    Fixed {
        /// The requested number of slots.
        slots: u32,
    },
    /// The allocator and the descriptors belong to different `VkDevice`s.
    ForeignAllocator,
    /// The pool for the set could not be created.
    Pool(CreateDescriptorPoolError),
    /// The buffer for the descriptors could not be created.
    Buffer(CreateError),
    /// A Vulkan function is missing.
    Missing(MissingFunction),
    /// A driver error.
    Driver(DriverError),
}

sublet_engines::errors! { CreateHeapError:
    Slots { slots, transient } =>
        "a heap of {slots} slots, {transient} of them for frames: it has one at least, and not fewer than frames have";
    Block { block, max_slots } =>
        "blocks of {block} slots, which are rounded up to a power of two, in a heap of at most {max_slots} slots";
    Kind { heap, kind } => "a {heap:?} heap cannot hold a {kind:?}, or is to hold it twice";
    Unsupported { missing } => "the heap needs {missing:?}, which the program has not enabled";
    Limit { limit, asked, allowed } => "a heap of {asked} descriptors: {limit} of the device is {allowed}";
    Layout { descriptors } => "the device has no layout with {descriptors} descriptors like these";
    NoSize { kind } => "the device has no size for a {kind:?} in descriptor buffers";
    NoDefault { kind } => "there is no default for slots of type {kind:?}";
    Copies { copies } => "{copies} copies of a set, of which there are 1 to 32";
    HostMemory { slots, types, copies } =>
        "the host has no memory for what is kept of {slots} slots of {types} types in {copies} copies of a set";
    SplitArrays => "arrays of combined image samplers are split in descriptor buffers of the device";
    Absurd { size, needed } => "the device says that the layout has {size} bytes, and its arrays need {needed}";
    Fixed { slots } => "the store does not grow to {slots} slots";
    ForeignAllocator => "the allocator for the heap's buffer is of another device";
    Pool(error: CreateDescriptorPoolError) => "there is no pool for the heap's set: {error}";
    Buffer(error: CreateError) => "there is no buffer for the heap's descriptors: {error}";
    Missing(error: MissingFunction) => "the device does not have what the heap needs: {error}";
    Driver(error: DriverError) => "the driver did not make the heap: {error}";
}
