//! The `VkWriteDescriptorSet`s of staged descriptors, for sets without a template.

use ash::vk;

use super::area::SetArea;
use super::plan::{BindingPlan, IMAGES_ARE_DENSE, SetPlan};
use crate::counts::DescriptorKind;
use sublet_engines::cast::index;

/// The maximum number of writes in one driver call.
const BATCH: usize = 16;

/// Passes the writes of all staged descriptors in `area` to `then`, in batches.
pub(super) fn for_writes(
    set: vk::DescriptorSet,
    plan: &SetPlan,
    area: &SetArea,
    mut then: impl FnMut(&[vk::WriteDescriptorSet<'_>]),
) {
    let mut batch = [vk::WriteDescriptorSet::default(); BATCH];
    let mut used = 0;
    for binding in plan.bindings.iter().filter(|binding| binding.elements != 0) {
        if binding.is_inline() {
            if area.is_staged(binding.first_element) {
                inline(set, binding, area, &mut then);
            }
            continue;
        }
        let mut element = 0;
        while element < binding.elements {
            let staged = area.run(binding, element);
            if staged == 0 {
                element += 1;
                continue;
            }
            let (write, count) = write(set, binding, area, element, staged);
            if write.descriptor_type == vk::DescriptorType::ACCELERATION_STRUCTURE_KHR {
                structures(write, binding, area, element, &mut then);
            } else {
                batch[used] = write;
                used += 1;
                if used == BATCH {
                    then(&batch);
                    used = 0;
                }
            }
            element += count;
        }
    }
    if used != 0 {
        then(&batch[..used]);
    }
}

/// Returns a pointer to the words of a descriptor. It is valid for all later words of the area too, because a write of
/// several descriptors reads them.
fn words_at(binding: &BindingPlan, area: &SetArea, element: u32) -> *const u64 {
    let at = binding.first_word + index(element) * binding.stride;
    area.words.get(at..).map_or(std::ptr::null(), <[u64]>::as_ptr)
}

/// Returns a write of descriptors from `element` on, `staged` of which are staged, and the number of descriptors that
/// it writes.
fn write<'a>(
    set: vk::DescriptorSet,
    binding: &BindingPlan,
    area: &SetArea,
    element: u32,
    staged: u32,
) -> (vk::WriteDescriptorSet<'a>, u32) {
    let kind = area.kinds.get(index(binding.first_element + element)).copied().unwrap_or(binding.kind);
    let words = words_at(binding, area, element);
    let write = vk::WriteDescriptorSet::default()
        .dst_set(set)
        .dst_binding(binding.number)
        .dst_array_element(element)
        .descriptor_type(kind.to_vk());
    // The stride of mutable descriptors is three words, that of handles one.
    let apart = binding.kind == DescriptorKind::Mutable;
    let (mut write, count) = match kind {
        DescriptorKind::UniformTexelBuffer | DescriptorKind::StorageTexelBuffer => {
            let count = if apart { 1 } else { staged };
            (vk::WriteDescriptorSet { p_texel_buffer_view: words.cast(), ..write }, count)
        }
        DescriptorKind::AccelerationStructure => (write, if apart { 1 } else { staged }),
        DescriptorKind::UniformBuffer
        | DescriptorKind::StorageBuffer
        | DescriptorKind::UniformBufferDynamic
        | DescriptorKind::StorageBufferDynamic => {
            (vk::WriteDescriptorSet { p_buffer_info: words.cast(), ..write }, staged)
        }
        _ => {
            let count = if IMAGES_ARE_DENSE { staged } else { 1 };
            (vk::WriteDescriptorSet { p_image_info: words.cast(), ..write }, count)
        }
    };
    write.descriptor_count = count;
    (write, count)
}

/// Adds acceleration structures to a write, as a structure in its chain.
fn structures(
    write: vk::WriteDescriptorSet<'_>,
    binding: &BindingPlan,
    area: &SetArea,
    element: u32,
    then: &mut impl FnMut(&[vk::WriteDescriptorSet<'_>]),
) {
    let mut handles = vk::WriteDescriptorSetAccelerationStructureKHR {
        acceleration_structure_count: write.descriptor_count,
        p_acceleration_structures: words_at(binding, area, element).cast(),
        ..Default::default()
    };
    then(&[write.push_next(&mut handles)]);
}

/// Returns a write of all bytes of an inline uniform block.
fn inline(
    set: vk::DescriptorSet,
    binding: &BindingPlan,
    area: &SetArea,
    then: &mut impl FnMut(&[vk::WriteDescriptorSet<'_>]),
) {
    let mut bytes = vk::WriteDescriptorSetInlineUniformBlock {
        data_size: binding.count,
        p_data: words_at(binding, area, 0).cast(),
        ..Default::default()
    };
    let write = vk::WriteDescriptorSet::default()
        .dst_set(set)
        .dst_binding(binding.number)
        .descriptor_type(vk::DescriptorType::INLINE_UNIFORM_BLOCK)
        .push_next(&mut bytes);
    then(&[vk::WriteDescriptorSet { descriptor_count: binding.count, ..write }]);
}
