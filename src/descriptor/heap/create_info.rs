//! How to make a descriptor heap, and why making one fails.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use ash::vk;

use super::super::counts::DescriptorKind;
use super::super::features::DescriptorFeatures;
use super::super::pool::CreateDescriptorPoolError;
use crate::device::{DriverError, MissingFunction};
use crate::error::{CreateError, MapError};

/// What a heap holds: samplers, or everything else. Devices keep samplers apart, and there are few of them.
///
/// ```
/// use sublet::descriptor::{DescriptorKind, HeapKind};
/// assert!(HeapKind::Resource.default_types().contains(&DescriptorKind::StorageBuffer));
/// assert_eq!(HeapKind::Sampler.default_types(), [DescriptorKind::Sampler]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum HeapKind {
    /// Buffers and images.
    #[default]
    Resource,
    /// Samplers alone.
    Sampler,
}

impl HeapKind {
    /// The types that a heap of this kind holds by default.
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

    /// Whether a heap of this kind can hold descriptors of a type.
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

/// How the slots of a heap are laid out for shaders.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum HeapArrays {
    /// [`Self::One`] where mutable descriptors are enabled and the heap holds more than one type, else
    /// [`Self::PerType`].
    #[default]
    Auto,
    /// One array at binding 0, of descriptors that take any of the heap's types (`VK_EXT_mutable_descriptor_type`).
    /// Needs the least memory. Shaders declare one array for each type that they use, all at binding 0.
    One,
    /// An array for each type, each as long as the heap, at binding 0, 1, 2 ... in the order of
    /// [`HeapCreateInfo::types`]. A slot has the same index in all of them.
    PerType,
}

/// What a heap that grows may do to its layout.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum HeapGrowth {
    /// The layout stays, and so do pipelines. What cannot grow so has all slots from the start: sets and descriptor buffers
    /// with several arrays, and a set for each frame.
    #[default]
    KeepLayout,
    /// Every heap grows. Where the layout cannot stay, it is another one afterwards: the program compares what
    /// `layout` returns with what its pipelines were made with, and makes them anew.
    ChangeLayout,
}

/// How to make a store of descriptors.
///
/// ```
/// use sublet::descriptor::{HeapCreateInfo, HeapKind};
/// let info = HeapCreateInfo { slots: 4_096, transient: 512, name: "textures", ..HeapCreateInfo::new(HeapKind::Resource) };
/// assert_eq!(info.kind, HeapKind::Resource);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct HeapCreateInfo<'a> {
    /// Samplers, or everything else.
    pub kind: HeapKind,
    /// Slots, those for frames included: not zero. 32,768 by default, and 1,024 for samplers.
    pub slots: u32,
    /// The most slots, to which the heap grows when it is full: see
    /// [growing](super::DescriptorHeap#growing). Not more than [`slots`](Self::slots), or 0 as by default: it does not grow.
    pub max_slots: u32,
    /// Whether the layout may change when it grows. It stays by default.
    pub growth: HeapGrowth,
    /// Slots at the upper end of [`slots`](Self::slots) that are for frames: see
    /// [`DescriptorHeap::allocate_transient`](super::DescriptorHeap::allocate_transient). None by default.
    pub transient: u32,
    /// The types of descriptors; empty for [`HeapKind::default_types`].
    pub types: &'a [DescriptorKind],
    /// How slots are laid out for shaders.
    pub arrays: HeapArrays,
    /// The stages that see it: all by default.
    pub stages: vk::ShaderStageFlags,
    /// What debuggers show; nothing if it is empty.
    pub name: &'a str,
}

impl HeapCreateInfo<'_> {
    /// A heap of the default size for the default types.
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

    /// The types, with the default put in.
    pub(super) fn actual_types(&self) -> &[DescriptorKind] {
        if self.types.is_empty() { self.kind.default_types() } else { self.types }
    }

    /// The most slots that there are ever to be.
    pub(super) fn most(&self) -> u32 {
        self.max_slots.max(self.slots)
    }

    /// Checks what does not depend on the device.
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

/// Each type is one of the kind's, and is there once.
pub(super) fn check_types(kind: HeapKind, types: &[DescriptorKind]) -> Result<(), CreateHeapError> {
    for (at, &descriptor) in types.iter().enumerate() {
        if !kind.allows(descriptor) || types[..at].contains(&descriptor) {
            return Err(CreateHeapError::Kind { heap: kind, kind: descriptor });
        }
    }
    Ok(())
}

/// Why a store of descriptors was not made. Nothing is left of it.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum CreateHeapError {
    /// No slots, or more for frames than there are.
    Slots {
        /// Slots in all.
        slots: u32,
        /// Those of frames.
        transient: u32,
    },
    /// A block of a heap in host memory has no slots, or more than the heap may have.
    Block {
        /// Slots of a block as asked for. They are rounded up to a power of two.
        block: u32,
        /// The most slots of the heap.
        max_slots: u32,
    },
    /// A type that a heap of this kind cannot hold, or that is there twice.
    Kind {
        /// The heap.
        heap: HeapKind,
        /// The type.
        kind: DescriptorKind,
    },
    /// Features that such a heap needs and that are not enabled.
    Unsupported {
        /// Those features.
        missing: DescriptorFeatures,
    },
    /// More descriptors than the device allows.
    Limit {
        /// Vulkan's name of the limit.
        limit: &'static str,
        /// Descriptors of the heap.
        asked: u64,
        /// Descriptors that the device allows.
        allowed: u64,
    },
    /// The device says that it has no such layout (`vkGetDescriptorSetLayoutSupport`).
    Layout {
        /// Descriptors of the layout.
        descriptors: u64,
    },
    /// The device has no size for descriptors of this type, and so no place in a descriptor buffer.
    NoSize {
        /// The type.
        kind: DescriptorKind,
    },
    /// A store that needs a default for each type was given none for this one.
    NoDefault {
        /// The type.
        kind: DescriptorKind,
    },
    /// A store has 1 to 32 copies of its set.
    Copies {
        /// What was asked for.
        copies: u32,
    },
    /// The host has no memory for what a store keeps of its slots.
    HostMemory {
        /// Slots.
        slots: u32,
        /// Types, each with an array of so many.
        types: usize,
        /// Copies of the set.
        copies: u32,
    },
    /// Arrays of combined image samplers are split in this device's descriptor buffers
    /// (`combinedImageSamplerDescriptorSingleArray`): use images and samplers apart.
    SplitArrays,
    /// The device's answers about the layout in a descriptor buffer cannot be: the arrays would not lie in it.
    Absurd {
        /// Bytes that the layout is said to have.
        size: u64,
        /// Bytes that its arrays need.
        needed: u64,
    },
    /// The store does not grow to so many slots.
    Fixed {
        /// Slots that it was to have.
        slots: u32,
    },
    /// The allocator is of another `VkDevice` than the descriptors.
    ForeignAllocator,
    /// There is no pool for the set.
    Pool(CreateDescriptorPoolError),
    /// There is no buffer for the descriptors.
    Buffer(CreateError),
    /// The buffer cannot be written.
    Map(MapError),
    /// A function is missing.
    Missing(MissingFunction),
    /// The driver's answer.
    Driver(DriverError),
}

impl From<CreateDescriptorPoolError> for CreateHeapError {
    fn from(error: CreateDescriptorPoolError) -> Self {
        Self::Pool(error)
    }
}

impl From<DriverError> for CreateHeapError {
    fn from(error: DriverError) -> Self {
        Self::Driver(error)
    }
}

impl From<MissingFunction> for CreateHeapError {
    fn from(error: MissingFunction) -> Self {
        Self::Missing(error)
    }
}

impl From<CreateError> for CreateHeapError {
    fn from(error: CreateError) -> Self {
        Self::Buffer(error)
    }
}

impl From<MapError> for CreateHeapError {
    fn from(error: MapError) -> Self {
        Self::Map(error)
    }
}

impl fmt::Display for CreateHeapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slots { slots, transient } => {
                write!(
                    f,
                    "a heap of {slots} slots, {transient} of them for frames: it has one at least, and not fewer than frames have"
                )
            }
            Self::Block { block, max_slots } => write!(
                f,
                "blocks of {block} slots, which are rounded up to a power of two, in a heap of at most {max_slots} slots"
            ),
            Self::Kind { heap, kind } => {
                write!(f, "a {heap:?} heap cannot hold a {kind:?}, or is to hold it twice")
            }
            Self::Unsupported { missing } => {
                write!(f, "the heap needs {missing:?}, which the program has not enabled")
            }
            Self::Limit { limit, asked, allowed } => {
                write!(f, "a heap of {asked} descriptors: {limit} of the device is {allowed}")
            }
            Self::Layout { descriptors } => {
                write!(f, "the device has no layout with {descriptors} descriptors like these")
            }
            Self::NoSize { kind } => write!(f, "the device has no size for a {kind:?} in descriptor buffers"),
            Self::NoDefault { kind } => write!(f, "there is no default for slots of type {kind:?}"),
            Self::Copies { copies } => write!(f, "{copies} copies of a set, of which there are 1 to 32"),
            Self::HostMemory { slots, types, copies } => write!(
                f,
                "the host has no memory for what is kept of {slots} slots of {types} types in {copies} copies of a set"
            ),
            Self::SplitArrays => {
                f.write_str("arrays of combined image samplers are split in descriptor buffers of the device")
            }
            Self::Absurd { size, needed } => {
                write!(f, "the device says that the layout has {size} bytes, and its arrays need {needed}")
            }
            Self::Fixed { slots } => write!(f, "the store does not grow to {slots} slots"),
            Self::ForeignAllocator => f.write_str("the allocator for the heap's buffer is of another device"),
            Self::Pool(error) => write!(f, "there is no pool for the heap's set: {error}"),
            Self::Buffer(error) => write!(f, "there is no buffer for the heap's descriptors: {error}"),
            Self::Map(error) => write!(f, "the heap's buffer cannot be written: {error}"),
            Self::Missing(error) => write!(f, "the device does not have what the heap needs: {error}"),
            Self::Driver(error) => write!(f, "the driver did not make the heap: {error}"),
        }
    }
}

impl Error for CreateHeapError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Pool(error) => error.source(),
            Self::Buffer(error) => error.source(),
            Self::Map(error) => error.source(),
            Self::Missing(error) => error.source(),
            Self::Driver(error) => error.source(),
            _ => None,
        }
    }
}
