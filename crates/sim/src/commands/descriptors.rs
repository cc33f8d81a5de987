//! Binding of descriptor sets, push descriptors and push constants: recording, and its valid usage.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;
use std::sync::Arc;

use ash::vk;
use ash::vk::DescriptorSetLayoutCreateFlags as LayoutFlags;
use ash::vk::DescriptorType as Type;

use super::record;
use crate::facts::arithmetic::{index, widen};
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::objects::commands::RecordedCommand;
use crate::objects::commands::bindings::BoundSet;
use crate::objects::descriptors::contents::{Contents, ContentsChange, SimulatedDescriptor};
use crate::objects::descriptors::{PipelineLayoutDescription, SetLayoutDescription};
use crate::objects::state::{DeviceObject, DeviceState};
use crate::pipelines::descriptors;
use crate::pipelines::descriptors::{Write, WriteTarget};

pub(crate) unsafe extern "system" fn bind_sets(
    command_buffer: vk::CommandBuffer,
    point: vk::PipelineBindPoint,
    layout: vk::PipelineLayout,
    first: u32,
    count: u32,
    p_sets: *const vk::DescriptorSet,
    offset_count: u32,
    p_offsets: *const u32,
) {
    // SAFETY: VUID-vkCmdBindDescriptorSets-pDescriptorSets-parameter.
    let handles = unsafe { chain::array(p_sets, count) };
    // SAFETY: VUID-vkCmdBindDescriptorSets-pDynamicOffsets-parameter.
    let offsets = unsafe { chain::array(p_offsets, offset_count) };
    record(command_buffer, "vkCmdBindDescriptorSets", |device, state| {
        let rule = "VUID-vkCmdBindDescriptorSets-layout-parameter";
        let layout = pipeline_layout(device, state, layout, rule)?;
        let sets = bound_sets(device, state, &layout, first, handles, offsets)?;
        Ok(vec![RecordedCommand::BindSets { point, layout, first, sets }])
    });
}

fn pipeline_layout(
    device: &DeviceObject,
    state: &DeviceState,
    handle: vk::PipelineLayout,
    rule: &'static str,
) -> Result<Arc<PipelineLayoutDescription>, Broken> {
    state.known(device, handle, state.descriptors.pipeline_layout(handle).map(Arc::clone), rule)
}

/// The sets of a command with their dynamic offsets, if they may be bound.
fn bound_sets(
    device: &DeviceObject,
    state: &DeviceState,
    layout: &PipelineLayoutDescription,
    first: u32,
    handles: &[vk::DescriptorSet],
    offsets: &[u32],
) -> Result<Vec<BoundSet>, Broken> {
    refuse_if!(handles.is_empty() => "VUID-vkCmdBindDescriptorSets-descriptorSetCount-arraylength",
        "descriptorSetCount is 0");
    refuse_if!(index(first) + handles.len() > layout.sets.len()
        => "VUID-vkCmdBindDescriptorSets-firstSet-00360",
        "{} sets from {first} on, and the layout has {}", handles.len(), layout.sets.len());
    let mut sets = Vec::with_capacity(handles.len());
    let mut rest = offsets;
    let mut wanted = 0;
    for (number, &handle) in (first..).zip(handles) {
        let name = state.label(handle);
        let found = state.descriptors.sets.get(&handle);
        let rule = "VUID-vkCmdBindDescriptorSets-pDescriptorSets-parameter";
        let found = state.known(device, handle, found, rule)?;
        refuse_if!(layout.set(number).is_none_or(|own| *own != found.layout)
            => "VUID-vkCmdBindDescriptorSets-pDescriptorSets-00358",
            "{name} is of another layout than set {number} of the pipeline layout");
        refuse_if!(state.descriptors.is_host_only(handle) => "VUID-vkCmdBindDescriptorSets-pDescriptorSets-04616",
            "{name} is of a pool that is HOST_ONLY");
        let count = found.layout.dynamic().count();
        wanted += count;
        let (own, others) = rest.split_at(count.min(rest.len()));
        rest = others;
        check_offsets(device, state, &found.layout, &found.contents, own)
            .map_err(|(rule, text)| (rule, format!("{name}: {text}")))?;
        sets.push(BoundSet { set: handle, version: found.version, offsets: own.to_vec() });
    }
    refuse_if!(wanted != offsets.len() => "VUID-vkCmdBindDescriptorSets-dynamicOffsetCount-00359",
        "{} dynamic offsets, and the sets have {wanted} dynamic buffers", offsets.len());
    Ok(sets)
}

/// Checks whether dynamic offsets are aligned and stay within their buffers.
fn check_offsets(
    device: &DeviceObject,
    state: &DeviceState,
    layout: &SetLayoutDescription,
    contents: &Contents,
    offsets: &[u32],
) -> Result<(), Broken> {
    let limits = &device.profile().limits;
    for ((number, element), &dynamic) in layout.dynamic().zip(offsets) {
        let uniform = layout.bindings.get(&number).is_some_and(|it| it.kind == Type::UNIFORM_BUFFER_DYNAMIC);
        let (alignment, rule) = if uniform {
            let rule = "VUID-vkCmdBindDescriptorSets-pDynamicOffsets-01971";
            (limits.min_uniform_buffer_offset_alignment, rule)
        } else {
            let rule = "VUID-vkCmdBindDescriptorSets-pDynamicOffsets-01972";
            (limits.min_storage_buffer_offset_alignment, rule)
        };
        let dynamic = u64::from(dynamic);
        refuse_if!(dynamic % alignment.max(1) != 0 => rule,
            "the dynamic offset {dynamic} is no multiple of {alignment}");
        let Some(&SimulatedDescriptor::Buffer { buffer, offset, range, .. }) =
            contents.descriptor(number, element)
        else {
            continue;
        };
        let Some(size) = state.buffers.get(&buffer).map(|found| found.description.size) else {
            continue;
        };
        let rest = size.saturating_sub(offset);
        let end = if range == vk::WHOLE_SIZE { rest } else { range };
        refuse_if!(dynamic > rest || end > rest - dynamic
            => "VUID-vkCmdBindDescriptorSets-pDescriptorSets-01979",
            "binding {number}, element {element}: offset {offset}, dynamic offset {dynamic} and range {end} end \
             behind the {size} bytes of {}", state.name(buffer));
    }
    Ok(())
}

pub(crate) unsafe extern "system" fn push_set(
    command_buffer: vk::CommandBuffer,
    point: vk::PipelineBindPoint,
    layout: vk::PipelineLayout,
    set: u32,
    count: u32,
    p_writes: *const vk::WriteDescriptorSet<'_>,
) {
    // SAFETY: VUID-vkCmdPushDescriptorSet-pDescriptorWrites-parameter.
    let infos = unsafe { chain::array(p_writes, count) };
    let writes: Vec<_> = infos
        .iter()
        .map(|info| {
            // SAFETY: as above: valid structures, with what goes with their types.
            unsafe { descriptors::read_write(info) }
        })
        .collect();
    record(command_buffer, "vkCmdPushDescriptorSetKHR", |device, state| {
        let rule = "VUID-vkCmdPushDescriptorSet-layout-parameter";
        let rules = ["VUID-vkCmdPushDescriptorSet-set-00364", "VUID-vkCmdPushDescriptorSet-set-00365"];
        let layout = pipeline_layout(device, state, layout, rule)?;
        let changes = pushed(device, state, &layout, set, &writes, rules)?;
        Ok(vec![RecordedCommand::PushDescriptors { point, layout, set, changes }])
    });
}

/// The changes that writes make to the push descriptors of a set.
fn pushed(
    device: &DeviceObject,
    state: &DeviceState,
    layout: &PipelineLayoutDescription,
    set: u32,
    writes: &[Write],
    [number_rule, push_rule]: [&'static str; 2],
) -> Result<Vec<ContentsChange>, Broken> {
    refuse_if!(index(set) >= layout.sets.len() => number_rule,
        "set {set}, and the layout has {}", layout.sets.len());
    let Some(set_layout) = layout.set(set).filter(|set| set.has(LayoutFlags::PUSH_DESCRIPTOR_KHR)) else {
        return Err((push_rule, format!("set {set} of the layout is not for push descriptors")));
    };
    let mut all = Vec::new();
    for write in writes {
        all.extend(descriptors::changes(device, state, WriteTarget::pushed(set_layout), write)?);
    }
    Ok(all)
}

pub(crate) unsafe extern "system" fn push_with_template(
    command_buffer: vk::CommandBuffer,
    template: vk::DescriptorUpdateTemplate,
    layout: vk::PipelineLayout,
    set: u32,
    p_data: *const c_void,
) {
    record(command_buffer, "vkCmdPushDescriptorSetWithTemplateKHR", |device, state| {
        // SAFETY: VUID-vkCmdPushDescriptorSetWithTemplate-pData-01686.
        Ok(vec![unsafe { with_template(device, state, template, layout, set, p_data) }?])
    });
}

/// # Safety
///
/// `data` is NULL, or has what the template says.
unsafe fn with_template(
    device: &DeviceObject,
    state: &DeviceState,
    template: vk::DescriptorUpdateTemplate,
    layout: vk::PipelineLayout,
    set: u32,
    data: *const c_void,
) -> Result<RecordedCommand, Broken> {
    let name = state.label(template);
    let rule = "VUID-vkCmdPushDescriptorSetWithTemplate-descriptorUpdateTemplate-parameter";
    let found = state.known(device, template, state.descriptors.templates.get(&template), rule)?;
    let rule = "VUID-vkCmdPushDescriptorSetWithTemplate-layout-parameter";
    let layout = pipeline_layout(device, state, layout, rule)?;
    let Some(point) = found.pushes_to(&layout, set) else {
        let text = format!("{name} was not made to push to set {set} of this layout");
        return Err(("VUID-vkCmdPushDescriptorSetWithTemplate-layout-07993", text));
    };
    refuse_if!(data.is_null() => "VUID-vkCmdPushDescriptorSetWithTemplate-pData-01686",
        "{name}: pData is NULL");
    // SAFETY: the promise of `with_template`: not NULL, and so what the template says.
    let writes = unsafe { descriptors::read_template(found, data) };
    let rules = [
        "VUID-vkCmdPushDescriptorSetWithTemplate-set-07304",
        "VUID-vkCmdPushDescriptorSetWithTemplate-set-07305",
    ];
    let changes = pushed(device, state, &layout, set, &writes, rules)?;
    Ok(RecordedCommand::PushDescriptors { point, layout, set, changes })
}

pub(crate) unsafe extern "system" fn push_constants(
    command_buffer: vk::CommandBuffer,
    layout: vk::PipelineLayout,
    stages: vk::ShaderStageFlags,
    offset: u32,
    size: u32,
    p_values: *const c_void,
) {
    // SAFETY: VUID-vkCmdPushConstants-pValues-parameter: `size` bytes.
    let bytes = unsafe { chain::array(p_values.cast::<u8>(), size) };
    record(command_buffer, "vkCmdPushConstants", |device, state| {
        let rule = "VUID-vkCmdPushConstants-layout-parameter";
        let layout = pipeline_layout(device, state, layout, rule)?;
        let limit = device.gpu_state.descriptors.limits.max_push_constants_size;
        check_constants(&layout, stages, (offset, size), limit)?;
        refuse_if!(widen(bytes.len()) != u64::from(size) => "VUID-vkCmdPushConstants-pValues-parameter",
            "pValues is NULL");
        Ok(vec![RecordedCommand::PushConstants { layout, offset, bytes: bytes.to_vec() }])
    });
}

fn check_constants(
    layout: &PipelineLayoutDescription,
    stages: vk::ShaderStageFlags,
    (offset, size): (u32, u32),
    limit: u32,
) -> Result<(), Broken> {
    let text = format!("{size} bytes from {offset} on, and maxPushConstantsSize is {limit}");
    let rule = if size == 0 {
        "VUID-vkCmdPushConstants-size-arraylength"
    } else if offset % 4 != 0 {
        "VUID-vkCmdPushConstants-offset-00368"
    } else if size % 4 != 0 {
        "VUID-vkCmdPushConstants-size-00369"
    } else if offset >= limit {
        "VUID-vkCmdPushConstants-offset-00370"
    } else if size > limit - offset {
        "VUID-vkCmdPushConstants-size-00371"
    } else {
        ""
    };
    refuse_if!(!rule.is_empty() => rule, "{text}");
    let stages = stages.as_raw();
    for byte in offset..offset + size {
        let ranges =
            layout.push_constants.iter().filter(|(_, start, size)| (*start..start + size).contains(&byte));
        let (mut any, mut all) = (0, 0);
        for (range, ..) in ranges {
            any |= range & stages;
            all |= range;
        }
        refuse_if!(any != stages => "VUID-vkCmdPushConstants-offset-01795",
            "byte {byte} is not in a range of each of the stages {stages:#x}");
        refuse_if!(all & !stages != 0 => "VUID-vkCmdPushConstants-offset-01796",
            "byte {byte} is also in a range of the stages {all:#x}");
    }
    Ok(())
}
