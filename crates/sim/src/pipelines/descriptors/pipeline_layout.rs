//! Pipeline layouts, and when two of them are compatible.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::sync::Arc;

use ash::vk;
use ash::vk::DescriptorSetLayoutCreateFlags as LayoutFlags;

use super::limits::DescriptorTotals;
use crate::facts::arithmetic::widen;
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::objects::descriptors::{PipelineLayoutDescription, PipelineLayoutObject, SetLayoutDescription};
use crate::objects::entry::checked;
use crate::objects::features::EnabledFeatures;
use crate::objects::host;
use crate::objects::host::destroys;
use crate::objects::state::{DeviceObject, DeviceState};

/// # Safety
///
/// `info` is NULL or valid with what it points to.
unsafe fn describe(
    device: &DeviceObject,
    info: *const vk::PipelineLayoutCreateInfo<'_>,
) -> Result<PipelineLayoutDescription, Broken> {
    // SAFETY: the promise of `describe`: NULL or valid.
    let info = unsafe { chain::given(info, "VUID-vkCreatePipelineLayout-pCreateInfo-parameter") }?;
    // SAFETY: VUID-VkPipelineLayoutCreateInfo-pSetLayouts-parameter.
    let sets = unsafe { chain::array(info.p_set_layouts, info.set_layout_count) };
    // SAFETY: VUID-VkPipelineLayoutCreateInfo-pPushConstantRanges-parameter.
    let ranges = unsafe { chain::array(info.p_push_constant_ranges, info.push_constant_range_count) };
    let limits = &device.gpu_state.descriptors.limits;
    refuse_if!(widen(sets.len()) > u64::from(limits.max_bound_descriptor_sets)
        => "VUID-VkPipelineLayoutCreateInfo-setLayoutCount-00286",
        "{} sets, and maxBoundDescriptorSets is {}", sets.len(), limits.max_bound_descriptor_sets);
    let sets = set_layouts(device, &device.state.lock(), sets)?;
    let pushed = sets.iter().flatten().filter(|set| set.has(LayoutFlags::PUSH_DESCRIPTOR_KHR)).count();
    refuse_if!(pushed > 1 => "VUID-VkPipelineLayoutCreateInfo-pSetLayouts-00293",
        "{pushed} of the sets are push descriptor sets");
    let buffers = sets.iter().flatten().filter(|set| set.has(LayoutFlags::DESCRIPTOR_BUFFER_EXT)).count();
    refuse_if!(buffers != 0 && buffers != sets.iter().flatten().count()
        => "VUID-VkPipelineLayoutCreateInfo-pSetLayouts-08008",
        "some of the sets are for descriptor buffers, and some are not");
    let indexing = EnabledFeatures::supported(&device.gpu_state).descriptor_indexing;
    let totals = DescriptorTotals::of(sets.iter().flatten().map(Arc::as_ref));
    if let Some(broken) = totals.first_over(limits, indexing) {
        return Err(broken);
    }
    let mut stages = vk::ShaderStageFlags::empty();
    for range in ranges {
        check_range(range, limits.max_push_constants_size)?;
        refuse_if!(range.stage_flags.intersects(stages)
            => "VUID-VkPipelineLayoutCreateInfo-pPushConstantRanges-00292",
            "two ranges of push constants have the stage {:?}", range.stage_flags & stages);
        stages |= range.stage_flags;
    }
    let mut push_constants: Vec<_> =
        ranges.iter().map(|range| (range.stage_flags.as_raw(), range.offset, range.size)).collect();
    push_constants.sort_unstable();
    Ok(PipelineLayoutDescription { flags: info.flags.as_raw(), sets, push_constants })
}

fn set_layouts(
    device: &DeviceObject,
    state: &DeviceState,
    handles: &[vk::DescriptorSetLayout],
) -> Result<Vec<Option<Arc<SetLayoutDescription>>>, Broken> {
    let mut layouts = Vec::with_capacity(handles.len());
    for &handle in handles {
        let found = state.descriptors.layouts.get(&handle).map(|found| Arc::clone(&found.layout));
        // With graphics pipeline libraries, NULL would be a set that nothing is bound to; here it is a mistake.
        refuse_if!(found.is_none() => "VUID-VkPipelineLayoutCreateInfo-pSetLayouts-parameter",
            "{}", state.missing(device, handle));
        layouts.push(found);
    }
    Ok(layouts)
}

fn check_range(range: &vk::PushConstantRange, limit: u32) -> Result<(), Broken> {
    let vk::PushConstantRange { offset, size, .. } = *range;
    let rule = if offset >= limit {
        "VUID-VkPushConstantRange-offset-00294"
    } else if offset % 4 != 0 {
        "VUID-VkPushConstantRange-offset-00295"
    } else if size == 0 {
        "VUID-VkPushConstantRange-size-00296"
    } else if size % 4 != 0 {
        "VUID-VkPushConstantRange-size-00297"
    } else if size > limit - offset {
        "VUID-VkPushConstantRange-size-00298"
    } else if range.stage_flags.is_empty() {
        "VUID-VkPushConstantRange-stageFlags-requiredbitmask"
    } else {
        return Ok(());
    };
    let text = format!("{size} bytes from {offset} on, and maxPushConstantsSize is {limit}");
    Err((rule, text))
}

pub(crate) unsafe extern "system" fn create(
    device: vk::Device,
    p_info: *const vk::PipelineLayoutCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    p_layout: *mut vk::PipelineLayout,
) -> vk::Result {
    checked(device, "vkCreatePipelineLayout", |device| {
        // SAFETY: VUID-vkCreatePipelineLayout-pCreateInfo-parameter.
        let layout = Arc::new(unsafe { describe(device, p_info) }?);
        let insert = |state: &mut DeviceState, handle, host| {
            state.descriptors.pipeline_layouts.insert(handle, PipelineLayoutObject { layout, host });
        };
        // SAFETY: 1: VUID-vkCreatePipelineLayout-pAllocator-parameter. 2: no lock is held. 3:
        // VUID-vkCreatePipelineLayout-pPipelineLayout-parameter.
        Ok(unsafe { host::create(device, callbacks, p_layout, insert) })
    })
}

destroys! {
    pub(crate) fn destroy(layout: vk::PipelineLayout) = "vkDestroyPipelineLayout",
    ["pipelineLayout-parameter", "pipelineLayout-00299", "pipelineLayout-00300"],
    |device, state, _| Some(state.descriptors.pipeline_layouts.remove(&layout)?.host)
}
