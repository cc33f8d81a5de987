//! Mappings from the sets and bindings of shaders to Vulkan's own heaps.

use std::fmt;

use ash::vk;

use ffi::mapping_source as source;
use sublet_vk::descriptor_heap as ffi;

/// The source of the descriptors of some bindings, or of the data of a uniform or storage buffer
/// (`VkDescriptorMappingSourceEXT`). Offsets and strides are in bytes. The formulas are in the specification's chapter
/// "Descriptor Heaps".
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum MappingSource {
    /// A heap, at a constant offset.
    HeapWithConstantOffset(ffi::DescriptorMappingSourceConstantOffsetEXT),
    /// A heap, at an index from push data.
    HeapWithPushIndex(ffi::DescriptorMappingSourcePushIndexEXT),
    /// A heap, at an index that is read from memory. The address of that memory is in push data.
    HeapWithIndirectIndex(ffi::DescriptorMappingSourceIndirectIndexEXT),
    /// The same, with one index for each element of an array.
    HeapWithIndirectIndexArray(ffi::DescriptorMappingSourceIndirectIndexArrayEXT),
    /// A uniform buffer whose content is in the resource heap itself.
    ResourceHeapData(ffi::DescriptorMappingSourceHeapDataEXT),
    /// A uniform buffer in push data, from this offset on.
    PushData(u32),
    /// A buffer whose address is in push data, at this offset.
    PushAddress(u32),
    /// A buffer whose address is read from memory. The address of that memory is in push data.
    IndirectAddress(ffi::DescriptorMappingSourceIndirectAddressEXT),
    /// A heap, at an index from the shader's record in a shader binding table. This source and the two below are for
    /// ray tracing pipelines. The simulated driver does not run these pipelines: it only validates the sources.
    HeapWithShaderRecordIndex(ffi::DescriptorMappingSourceShaderRecordIndexEXT),
    /// A uniform buffer in the shader's record, from this offset on.
    ShaderRecordData(u32),
    /// A buffer whose address is in the shader's record, at this offset.
    ShaderRecordAddress(u32),
}

impl fmt::Debug for MappingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, _) = self.raw();
        f.debug_tuple("MappingSource").field(&source).finish()
    }
}

impl MappingSource {
    fn raw(&self) -> (i32, ffi::DescriptorMappingSourceDataEXT) {
        type Data = ffi::DescriptorMappingSourceDataEXT;
        match *self {
            Self::HeapWithConstantOffset(constant_offset) => {
                (source::HEAP_WITH_CONSTANT_OFFSET, Data { constant_offset })
            }
            Self::HeapWithPushIndex(push_index) => (source::HEAP_WITH_PUSH_INDEX, Data { push_index }),
            Self::HeapWithIndirectIndex(indirect_index) => {
                (source::HEAP_WITH_INDIRECT_INDEX, Data { indirect_index })
            }
            Self::HeapWithIndirectIndexArray(indirect_index_array) => {
                (source::HEAP_WITH_INDIRECT_INDEX_ARRAY, Data { indirect_index_array })
            }
            Self::ResourceHeapData(heap_data) => (source::RESOURCE_HEAP_DATA, Data { heap_data }),
            Self::PushData(push_data_offset) => (source::PUSH_DATA, Data { push_data_offset }),
            Self::PushAddress(push_address_offset) => (source::PUSH_ADDRESS, Data { push_address_offset }),
            Self::IndirectAddress(indirect_address) => (source::INDIRECT_ADDRESS, Data { indirect_address }),
            Self::HeapWithShaderRecordIndex(shader_record_index) => {
                (source::HEAP_WITH_SHADER_RECORD_INDEX, Data { shader_record_index })
            }
            Self::ShaderRecordData(shader_record_data_offset) => {
                (source::SHADER_RECORD_DATA, Data { shader_record_data_offset })
            }
            Self::ShaderRecordAddress(shader_record_address_offset) => {
                (source::SHADER_RECORD_ADDRESS, Data { shader_record_address_offset })
            }
        }
    }
}

/// A mapping of some bindings of a set (`VkDescriptorSetAndBindingMappingEXT`).
///
/// ```
/// use sublet_descriptors::{BindingMapping, MappingSource, heap_ffi::resource_type};
/// // Set 0, binding 2: a uniform buffer in push data, from byte 16 on.
/// let resources = resource_type::UNIFORM_BUFFER;
/// let material = BindingMapping { set: 0, binding: 2, count: 1, resources, source: MappingSource::PushData(16) };
/// assert_eq!(material.to_vk().first_binding, 2);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BindingMapping {
    /// The set number in the shader.
    pub set: u32,
    /// The first binding.
    pub binding: u32,
    /// The number of consecutive bindings: 1 if the source is not an array of descriptors in a heap, or has an embedded
    /// sampler.
    pub count: u32,
    /// The types of variables that it covers: bits of [`resource_type`](ffi::resource_type).
    pub resources: u32,
    /// The source of the descriptors.
    pub source: MappingSource,
}

impl BindingMapping {
    /// Maps a sampler that is compiled into the shader and takes no slot. The create-info must live until the pipeline
    /// is created. The bound sampler heap must reserve space for such samplers:
    /// [`NativeStore::with_embedded_samplers`](super::NativeStore::with_embedded_samplers).
    #[must_use]
    pub fn embedded_sampler(set: u32, binding: u32, sampler: &vk::SamplerCreateInfo<'_>) -> Self {
        let constant = ffi::DescriptorMappingSourceConstantOffsetEXT {
            p_embedded_sampler: std::ptr::from_ref(sampler).cast(),
            ..Default::default()
        };
        let source = MappingSource::HeapWithConstantOffset(constant);
        Self { set, binding, count: 1, resources: ffi::resource_type::SAMPLER, source }
    }

    /// Maps an array of descriptors in a heap, from a byte offset on.
    #[must_use]
    pub fn array(set: u32, binding: u32, resources: u32, heap_offset: u32, stride: u32) -> Self {
        let constant = ffi::DescriptorMappingSourceConstantOffsetEXT {
            heap_offset,
            heap_array_stride: stride,
            ..Default::default()
        };
        Self { set, binding, count: 1, resources, source: MappingSource::HeapWithConstantOffset(constant) }
    }

    /// Returns the Vulkan structure.
    #[must_use]
    pub fn to_vk(&self) -> ffi::DescriptorSetAndBindingMappingEXT {
        let (source, source_data) = self.source.raw();
        ffi::DescriptorSetAndBindingMappingEXT {
            descriptor_set: self.set,
            first_binding: self.binding,
            binding_count: self.count,
            resource_mask: self.resources,
            source,
            source_data,
            ..Default::default()
        }
    }
}

/// The mappings of a shader's sets and bindings, for the chain of a pipeline stage. With them, shaders that were
/// written for sets run unchanged with Vulkan's own heaps.
///
/// The pipeline needs the flag [`PIPELINE_CREATE_2_DESCRIPTOR_HEAP`](ffi::PIPELINE_CREATE_2_DESCRIPTOR_HEAP) in a
/// `VkPipelineCreateFlags2CreateInfo`, and has no layout. Its push constants are [push
/// data](super::super::DescriptorDevice::cmd_push_data).
///
/// ```
/// use ash::vk;
/// use sublet_descriptors::{BindingMapping, HeapMappings, heap_ffi};
/// let sampler = vk::SamplerCreateInfo::default().min_filter(vk::Filter::LINEAR);
/// let images = heap_ffi::resource_type::SAMPLED_IMAGE;
/// let mut mappings = HeapMappings::new([
///     BindingMapping::array(0, 0, images, 0, 64),
///     BindingMapping::embedded_sampler(0, 1, &sampler),
/// ]);
/// let mut flags = vk::PipelineCreateFlags2CreateInfoKHR::default()
///     .flags(heap_ffi::PIPELINE_CREATE_2_DESCRIPTOR_HEAP);
/// let stage = vk::PipelineShaderStageCreateInfo::default()
///     .stage(vk::ShaderStageFlags::COMPUTE)
///     .name(c"main")
///     .push_next(mappings.info());
/// let pipeline = vk::ComputePipelineCreateInfo::default().stage(stage).push_next(&mut flags);
/// ```
#[derive(Debug)]
pub struct HeapMappings {
    /// The target of the pointer in `info`.
    all: Box<[ffi::DescriptorSetAndBindingMappingEXT]>,
    info: ffi::ShaderDescriptorSetAndBindingMappingInfoEXT,
}

impl HeapMappings {
    /// Collects mappings. The caller of pipeline creation must ensure that no two of them cover the same binding and
    /// type (VUID-VkShaderDescriptorSetAndBindingMappingInfoEXT-pMappings-11244).
    #[must_use]
    pub fn new(mappings: impl IntoIterator<Item = BindingMapping>) -> Self {
        let all = mappings.into_iter().map(|mapping| mapping.to_vk()).collect();
        Self { all, info: ffi::ShaderDescriptorSetAndBindingMappingInfoEXT::default() }
    }

    /// Returns the structure for the chain of `VkPipelineShaderStageCreateInfo`. It points to the mappings, and can be
    /// in one chain at a time.
    pub fn info(&mut self) -> &mut ffi::ShaderDescriptorSetAndBindingMappingInfoEXT {
        self.info = ffi::ShaderDescriptorSetAndBindingMappingInfoEXT {
            mapping_count: sublet_engines::cast::narrow(self.all.len()),
            p_mappings: self.all.as_ptr(),
            ..Default::default()
        };
        &mut self.info
    }
}
