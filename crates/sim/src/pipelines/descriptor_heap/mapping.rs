//! The heap mappings that a pipeline is created with, and their valid usage.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use crate::facts::arithmetic::is_aligned;
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::facts::ffi;
use crate::facts::ffi::{mapping_source as source, resource_type as resource};
use crate::facts::profiles::DescriptorHeapLimits;
use crate::objects::heaps::{HeapAddress, Index, MappedSource, SamplerState, SetMapping};

/// The mappings in the chain of a stage, or the rule that they break. Empty if there are none.
///
/// # Safety
///
/// The chain is valid, with what it points to.
pub(crate) unsafe fn read(
    limits: &DescriptorHeapLimits,
    uniform_alignment: u64,
    next: *const std::ffi::c_void,
) -> Result<Vec<SetMapping>, Broken> {
    // SAFETY: the promise of `read`.
    let info = unsafe { chain::find::<ffi::ShaderDescriptorSetAndBindingMappingInfoEXT>(next) };
    let Some(info) = info else { return Ok(Vec::new()) };
    // SAFETY: VUID-VkShaderDescriptorSetAndBindingMappingInfoEXT-pMappings-parameter.
    let infos = unsafe { chain::array(info.p_mappings, info.mapping_count) };
    let mut all: Vec<SetMapping> = Vec::new();
    for info in infos {
        // SAFETY: as above: a valid structure.
        let source = unsafe { source_of(info) }?;
        let mapping = SetMapping {
            set: info.descriptor_set,
            first: info.first_binding,
            count: info.binding_count,
            mask: info.resource_mask,
            source,
        };
        check(limits, uniform_alignment, &mapping).map_err(|(rule, text)| {
            (rule, format!("set {}, binding {}: {text}", mapping.set, mapping.first))
        })?;
        let overlaps = |other: &SetMapping| {
            let end = |of: &SetMapping| of.first.saturating_add(of.count);
            other.set == mapping.set
                && other.mask & mapping.mask != 0
                && other.first < end(&mapping)
                && mapping.first < end(other)
        };
        refuse_if!(all.iter().any(overlaps)
            => "VUID-VkShaderDescriptorSetAndBindingMappingInfoEXT-pMappings-11244",
            "set {}, binding {} is mapped twice", mapping.set, mapping.first);
        all.push(mapping);
    }
    Ok(all)
}

/// # Safety
///
/// The info is valid: the field of its union that goes with its source is set, and points to what is valid.
unsafe fn source_of(info: &ffi::DescriptorSetAndBindingMappingEXT) -> Result<MappedSource, Broken> {
    // The parts of a source in a heap, in the order of the structures.
    let heap = |place, sampler, embedded: *const vk::SamplerCreateInfo<'static>, combined: vk::Bool32| {
        // SAFETY: the promise of `source_of`.
        let embedded = unsafe { chain::input(embedded) }.map(SamplerState::new);
        MappedSource::Heap { place, sampler, embedded, combined: combined != vk::FALSE }
    };
    let place =
        |offset, index, index_stride, array_stride| HeapAddress { offset, index, index_stride, array_stride };
    // Structures that have the same fields and no common type.
    macro_rules! indexed {
        ($data:ident, $one:expr, $other:expr) => {
            heap(
                place($data.heap_offset, $one, $data.heap_index_stride, $data.heap_array_stride),
                place(
                    $data.sampler_heap_offset,
                    $other,
                    $data.sampler_heap_index_stride,
                    $data.sampler_heap_array_stride,
                ),
                $data.p_embedded_sampler,
                $data.use_combined_image_sampler_index,
            )
        };
    }
    Ok(match info.source {
        source::HEAP_WITH_CONSTANT_OFFSET => {
            // SAFETY: the promise of `source_of`, here and below.
            let data = unsafe { info.source_data.constant_offset };
            heap(
                place(data.heap_offset, Index::Zero, 0, data.heap_array_stride),
                place(data.sampler_heap_offset, Index::Zero, 0, data.sampler_heap_array_stride),
                data.p_embedded_sampler,
                vk::FALSE,
            )
        }
        source::HEAP_WITH_PUSH_INDEX => {
            // SAFETY: as above.
            let data = unsafe { info.source_data.push_index };
            let (one, other) = (Index::Push(data.push_offset), Index::Push(data.sampler_push_offset));
            indexed!(data, one, other)
        }
        source::HEAP_WITH_INDIRECT_INDEX => {
            // SAFETY: as above.
            let data = unsafe { info.source_data.indirect_index };
            let at = |push, address| Index::Indirect { push, address, each: false };
            let (one, other) = (
                at(data.push_offset, data.address_offset),
                at(data.sampler_push_offset, data.sampler_address_offset),
            );
            indexed!(data, one, other)
        }
        source::HEAP_WITH_INDIRECT_INDEX_ARRAY => {
            // SAFETY: as above.
            let data = unsafe { info.source_data.indirect_index_array };
            let at = |push, address| Index::Indirect { push, address, each: true };
            heap(
                place(data.heap_offset, at(data.push_offset, data.address_offset), data.heap_index_stride, 0),
                place(
                    data.sampler_heap_offset,
                    at(data.sampler_push_offset, data.sampler_address_offset),
                    data.sampler_heap_index_stride,
                    0,
                ),
                data.p_embedded_sampler,
                data.use_combined_image_sampler_index,
            )
        }
        source::RESOURCE_HEAP_DATA => {
            // SAFETY: as above.
            let data = unsafe { info.source_data.heap_data };
            MappedSource::HeapData { heap: data.heap_offset, push: data.push_offset }
        }
        source::PUSH_DATA => {
            // SAFETY: as above.
            MappedSource::PushData(unsafe { info.source_data.push_data_offset })
        }
        source::PUSH_ADDRESS => {
            // SAFETY: as above.
            MappedSource::PushAddress(unsafe { info.source_data.push_address_offset })
        }
        source::INDIRECT_ADDRESS => {
            // SAFETY: as above.
            let data = unsafe { info.source_data.indirect_address };
            MappedSource::IndirectAddress { push: data.push_offset, address: data.address_offset }
        }
        source::HEAP_WITH_SHADER_RECORD_INDEX => {
            // SAFETY: as above.
            let data = unsafe { info.source_data.shader_record_index };
            let one = Index::Record(data.shader_record_offset);
            let other = Index::Record(data.sampler_shader_record_offset);
            indexed!(data, one, other)
        }
        source::SHADER_RECORD_DATA => {
            // SAFETY: as above.
            MappedSource::RecordData(unsafe { info.source_data.shader_record_data_offset })
        }
        source::SHADER_RECORD_ADDRESS => {
            // SAFETY: as above.
            MappedSource::RecordAddress(unsafe { info.source_data.shader_record_address_offset })
        }
        other => {
            let text = format!("source is {other}");
            return Err(("VUID-VkDescriptorSetAndBindingMappingEXT-source-parameter", text));
        }
    })
}

const BUFFERS: u32 =
    resource::UNIFORM_BUFFER | resource::READ_ONLY_STORAGE_BUFFER | resource::READ_WRITE_STORAGE_BUFFER;
const IMAGES: u32 = resource::SAMPLED_IMAGE | resource::READ_ONLY_IMAGE | resource::READ_WRITE_IMAGE;

fn check(limits: &DescriptorHeapLimits, uniform_alignment: u64, mapping: &SetMapping) -> Result<(), Broken> {
    let broken = |is: bool, rule: &'static str, text: &str| {
        if is { Err((rule, text.to_owned())) } else { Ok(()) }
    };
    let (mask, count) = (mapping.mask, mapping.count);
    let misplaced = |push: u32, alignment: u32| push % alignment != 0;
    let beyond = |push: u32, bytes: u64| u64::from(push) + bytes > limits.max_push_data;
    broken(mask == 0, "VUID-VkDescriptorSetAndBindingMappingEXT-resourceMask-requiredbitmask", "no types")?;
    let one = "VUID-VkDescriptorSetAndBindingMappingEXT-source-11245";
    let one_of_record = "VUID-VkDescriptorSetAndBindingMappingEXT-source-11248";
    let uniform = "VUID-VkDescriptorSetAndBindingMappingEXT-source-11356";
    let (addressed, addressed_rule) =
        (BUFFERS | resource::ACCELERATION_STRUCTURE, "VUID-VkDescriptorSetAndBindingMappingEXT-source-11357");
    match mapping.source {
        MappedSource::Heap { place, sampler, embedded, combined } => {
            check_places(limits, mask, &place, &sampler)?;
            let rule = "VUID-VkDescriptorSetAndBindingMappingEXT-source-11389";
            broken(embedded.is_some() && count != 1, rule, "an embedded sampler for several bindings")?;
            let border = match place.index {
                Index::Zero => "VUID-VkDescriptorMappingSourceConstantOffsetEXT-pEmbeddedSampler-11445",
                Index::Push(_) => "VUID-VkDescriptorMappingSourcePushIndexEXT-pEmbeddedSampler-11446",
                Index::Indirect { each: false, .. } => {
                    "VUID-VkDescriptorMappingSourceIndirectIndexEXT-pEmbeddedSampler-11447"
                }
                Index::Indirect { .. } => {
                    "VUID-VkDescriptorMappingSourceIndirectIndexArrayEXT-pEmbeddedSampler-11448"
                }
                Index::Record(_) => {
                    "VUID-VkDescriptorMappingSourceShaderRecordIndexEXT-pEmbeddedSampler-11449"
                }
            };
            let custom = embedded.is_some_and(|sampler| sampler.has_custom_border());
            broken(custom, border, "the embedded sampler's border has a custom color")?;
            let samplers = resource::COMBINED_SAMPLED_IMAGE | resource::SAMPLED_IMAGE | resource::SAMPLER;
            let rule = "VUID-VkDescriptorSetAndBindingMappingEXT-source-11358";
            broken(combined && mask & samplers == 0, rule, "combined indices, and no images or samplers")?;
            let text = "the index is misplaced in push data, or beyond it";
            match place.index {
                Index::Zero => Ok(()),
                Index::Push(push) => {
                    let rule = "VUID-VkDescriptorMappingSourcePushIndexEXT-pushOffset-11258";
                    broken(misplaced(push, 4), rule, text)?;
                    let rule = "VUID-VkDescriptorMappingSourcePushIndexEXT-pushOffset-11259";
                    broken(beyond(push, 4), rule, text)
                }
                Index::Indirect { push, address, each } => {
                    let rules = if each {
                        [
                            "VUID-VkDescriptorMappingSourceIndirectIndexArrayEXT-pushOffset-11359",
                            "VUID-VkDescriptorMappingSourceIndirectIndexArrayEXT-pushOffset-11360",
                            "VUID-VkDescriptorMappingSourceIndirectIndexArrayEXT-addressOffset-11361",
                        ]
                    } else {
                        [
                            "VUID-VkDescriptorMappingSourceIndirectIndexEXT-pushOffset-11260",
                            "VUID-VkDescriptorMappingSourceIndirectIndexEXT-pushOffset-11261",
                            "VUID-VkDescriptorMappingSourceIndirectIndexEXT-addressOffset-11262",
                        ]
                    };
                    broken(misplaced(push, 8), rules[0], text)?;
                    broken(beyond(push, 8), rules[1], text)?;
                    broken(misplaced(address, 4), rules[2], "addressOffset is no multiple of 4")
                }
                Index::Record(offset) => {
                    let rule = "VUID-VkDescriptorMappingSourceShaderRecordIndexEXT-shaderRecordOffset-11269";
                    broken(misplaced(offset, 4), rule, "shaderRecordOffset is no multiple of 4")
                }
            }
        }
        MappedSource::HeapData { heap, push } => {
            broken(count != 1, one, "heap data for several bindings")?;
            broken(mask & resource::UNIFORM_BUFFER == 0, uniform, "heap data, and no uniform buffers")?;
            let aligned = is_aligned(heap.into(), uniform_alignment.max(1));
            let rule = "VUID-VkDescriptorMappingSourceHeapDataEXT-heapOffset-11263";
            broken(!aligned, rule, "heapOffset is no multiple of minUniformBufferOffsetAlignment")?;
            let text = "the offset is misplaced in push data, or beyond it";
            let rule = "VUID-VkDescriptorMappingSourceHeapDataEXT-pushOffset-11264";
            broken(misplaced(push, 4), rule, text)?;
            broken(beyond(push, 4), "VUID-VkDescriptorMappingSourceHeapDataEXT-pushOffset-11265", text)
        }
        MappedSource::PushData(push) => {
            broken(count != 1, one, "push data for several bindings")?;
            broken(mask & resource::UNIFORM_BUFFER == 0, uniform, "push data, and no uniform buffers")?;
            let rule = "VUID-VkDescriptorSetAndBindingMappingEXT-source-11246";
            broken(misplaced(push, 4), rule, "pushDataOffset is no multiple of 4")
        }
        MappedSource::PushAddress(push) => {
            broken(count != 1, one, "an address for several bindings")?;
            broken(mask & addressed == 0, addressed_rule, "an address, and no buffers")?;
            let rule = "VUID-VkDescriptorSetAndBindingMappingEXT-source-11247";
            broken(misplaced(push, 8), rule, "pushAddressOffset is no multiple of 8")
        }
        MappedSource::IndirectAddress { push, address } => {
            broken(count != 1, one, "an address for several bindings")?;
            let text = "the address is misplaced in push data, or beyond it";
            let rule = "VUID-VkDescriptorMappingSourceIndirectAddressEXT-pushOffset-11266";
            broken(misplaced(push, 8), rule, text)?;
            let rule = "VUID-VkDescriptorMappingSourceIndirectAddressEXT-pushOffset-11267";
            broken(beyond(push, 8), rule, text)?;
            let rule = "VUID-VkDescriptorMappingSourceIndirectAddressEXT-addressOffset-11268";
            broken(misplaced(address, 8), rule, "addressOffset is no multiple of 8")
        }
        MappedSource::RecordData(offset) => {
            broken(count != 1, one_of_record, "data of a record for several bindings")?;
            broken(
                mask & resource::UNIFORM_BUFFER == 0,
                uniform,
                "data of a record, and no uniform buffers",
            )?;
            let rule = "VUID-VkDescriptorSetAndBindingMappingEXT-source-11249";
            broken(misplaced(offset, 4), rule, "shaderRecordDataOffset is no multiple of 4")
        }
        MappedSource::RecordAddress(offset) => {
            broken(count != 1, one_of_record, "an address for several bindings")?;
            broken(mask & addressed == 0, addressed_rule, "an address, and no buffers")?;
            let rule = "VUID-VkDescriptorSetAndBindingMappingEXT-source-11250";
            broken(misplaced(offset, 8), rule, "shaderRecordAddressOffset is no multiple of 8")
        }
    }
}

/// Checks that offsets and strides suit descriptors of the types. A mask of all types does not show what the shader
/// has.
fn check_places(
    limits: &DescriptorHeapLimits,
    mask: u32,
    place: &HeapAddress,
    sampler: &HeapAddress,
) -> Result<(), Broken> {
    if mask == resource::ALL {
        return Ok(());
    }
    let rules = [
        (IMAGES, limits.image_alignment, place, "VUID-VkDescriptorSetAndBindingMappingEXT-source-11251"),
        (BUFFERS, limits.buffer_alignment, place, "VUID-VkDescriptorSetAndBindingMappingEXT-source-11252"),
        (
            resource::SAMPLER,
            limits.sampler_alignment,
            place,
            "VUID-VkDescriptorSetAndBindingMappingEXT-source-11253",
        ),
        (
            resource::COMBINED_SAMPLED_IMAGE,
            limits.sampler_alignment,
            sampler,
            "VUID-VkDescriptorSetAndBindingMappingEXT-source-11254",
        ),
    ];
    for (types, alignment, place, rule) in rules {
        let aligned = [place.offset, place.array_stride].iter().all(|&at| is_aligned(at.into(), alignment));
        refuse_if!(mask & types != 0 && !aligned => rule,
            "the offset {} and the stride {} are not both multiples of {alignment}",
            place.offset, place.array_stride);
    }
    Ok(())
}
