//! Applies a `VkCopyDescriptorSet`.

use ash::vk;
use ash::vk::DescriptorSetLayoutCreateFlags as LayoutFlags;
use ash::vk::DescriptorType as Type;

use super::write::{WriteTarget, run};
use crate::facts::arithmetic::index;
use crate::facts::broken::{Broken, refuse_if};
use crate::objects::descriptors::DescriptorSetObject;
use crate::objects::descriptors::contents::ContentsChange;
use crate::objects::descriptors::names::type_name;
use crate::objects::state::{DeviceObject, DeviceState};

/// The changes of the destination, or the rule that the copy breaks.
pub(crate) fn changes(
    device: &DeviceObject,
    state: &DeviceState,
    copy: &vk::CopyDescriptorSet<'_>,
) -> Result<Vec<ContentsChange>, Broken> {
    let find = |handle: vk::DescriptorSet, rule| match state.descriptors.sets.get(&handle) {
        Some(set) => Ok(set),
        None => Err((rule, state.missing(device, handle))),
    };
    let src = find(copy.src_set, "VUID-VkCopyDescriptorSet-srcSet-parameter")?;
    let dst = find(copy.dst_set, "VUID-VkCopyDescriptorSet-dstSet-parameter")?;
    check(copy, src, dst)?;
    let count = copy.descriptor_count;
    let from = (copy.src_binding, copy.src_array_element, count);
    let to = (copy.dst_binding, copy.dst_array_element, count);
    let from = run(WriteTarget::set(src), from, "VUID-VkCopyDescriptorSet-srcArrayElement-00346")?;
    let to = run(WriteTarget::set(dst), to, "VUID-VkCopyDescriptorSet-dstArrayElement-00348")?;
    refuse_if!(copy.src_set == copy.dst_set && from.iter().any(|one| to.iter().any(|other| overlap(*one, *other)))
        => "VUID-VkCopyDescriptorSet-srcSet-00349",
        "the source and the destination overlap");
    if src.layout.bindings.get(&copy.src_binding).is_some_and(|it| it.kind == Type::INLINE_UNIFORM_BLOCK) {
        return Ok(inline(copy, src));
    }
    let each = |runs: Vec<(u32, u32, u32)>| {
        runs.into_iter().flat_map(|(number, from, count)| (from..from + count).map(move |at| (number, at)))
    };
    let mutable = dst.layout.bindings.get(&copy.dst_binding).filter(|it| it.kind == Type::MUTABLE_EXT);
    let mut changes = Vec::new();
    for ((from, at), (binding, element)) in each(from).zip(each(to)) {
        let Some(&descriptor) = src.contents.descriptor(from, at) else {
            changes.push(ContentsChange::Forget { binding, element });
            continue;
        };
        refuse_if!(mutable.is_some_and(|binding| !binding.mutable.contains(&descriptor.kind()))
            => "VUID-VkCopyDescriptorSet-dstSet-04612",
            "binding {binding} cannot become {}", type_name(descriptor.kind()));
        changes.push(ContentsChange::Descriptor { binding, element, descriptor });
    }
    Ok(changes)
}

fn overlap(one: (u32, u32, u32), other: (u32, u32, u32)) -> bool {
    one.0 == other.0 && one.1 < other.1 + other.2 && other.1 < one.1 + one.2
}

fn check(
    copy: &vk::CopyDescriptorSet<'_>,
    src: &DescriptorSetObject,
    dst: &DescriptorSetObject,
) -> Result<(), Broken> {
    let Some(from) = src.layout.bindings.get(&copy.src_binding) else {
        let text = format!("the source has no binding {}", copy.src_binding);
        return Err(("VUID-VkCopyDescriptorSet-srcBinding-00345", text));
    };
    let Some(to) = dst.layout.bindings.get(&copy.dst_binding) else {
        let text = format!("the destination has no binding {}", copy.dst_binding);
        return Err(("VUID-VkCopyDescriptorSet-dstBinding-00347", text));
    };
    let mutable = from.kind == Type::MUTABLE_EXT || to.kind == Type::MUTABLE_EXT;
    refuse_if!(from.kind != to.kind && !mutable => "VUID-VkCopyDescriptorSet-dstBinding-02632",
        "{} is copied to {}", type_name(from.kind), type_name(to.kind));
    refuse_if!(from.kind == Type::MUTABLE_EXT && to.kind == Type::MUTABLE_EXT && from.mutable != to.mutable
        => "VUID-VkCopyDescriptorSet-dstSet-04614", "the two are mutable with different lists of types");
    if from.kind == Type::MUTABLE_EXT && to.kind != Type::MUTABLE_EXT {
        let active = src.contents.descriptor(copy.src_binding, copy.src_array_element);
        if let Some(active) = active.filter(|active| active.kind() != to.kind) {
            let text = format!("{} is copied to {}", type_name(active.kind()), type_name(to.kind));
            return Err(("VUID-VkCopyDescriptorSet-srcSet-04613", text));
        }
    }
    refuse_if!(from.kind == Type::SAMPLER && !to.immutable.is_empty()
        => "VUID-VkCopyDescriptorSet-dstBinding-02753",
        "the samplers of binding {} are immutable", copy.dst_binding);
    let after = |set: &DescriptorSetObject| set.layout.has(LayoutFlags::UPDATE_AFTER_BIND_POOL);
    refuse_if!(after(src) && !after(dst) => "VUID-VkCopyDescriptorSet-srcSet-01918",
        "the layout of the source has UPDATE_AFTER_BIND_POOL, and the destination's has not");
    refuse_if!(!after(src) && after(dst) && !src.layout.has(LayoutFlags::HOST_ONLY_POOL_EXT)
        => "VUID-VkCopyDescriptorSet-srcSet-04885",
        "the layout of the destination has UPDATE_AFTER_BIND_POOL, and the source's has not");
    Ok(())
}

/// A copy of bytes of inline uniform blocks; bytes that were never written are 0.
fn inline(copy: &vk::CopyDescriptorSet<'_>, src: &DescriptorSetObject) -> Vec<ContentsChange> {
    let (from, count) = (index(copy.src_array_element), index(copy.descriptor_count));
    let written = src.contents.inline(copy.src_binding).unwrap_or_default();
    let bytes = (from..from + count).map(|at| written.get(at).copied().unwrap_or(0)).collect();
    vec![ContentsChange::Bytes { binding: copy.dst_binding, offset: copy.dst_array_element, bytes }]
}
