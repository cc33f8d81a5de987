//! Pipeline barriers: what they do to the layouts of images, and what they order, for the search for hazards.
//!
//! To run the commands, neither is needed: they run one after another.

use ash::vk;

use super::{Command, record};
use crate::chain;
use crate::entry::call;
use crate::hazards::{Bar, On, Scope};
use crate::state::{Device, DeviceState};

/// The fields that both forms of image barrier have.
struct Change {
    image: vk::Image,
    old: vk::ImageLayout,
    new: vk::ImageLayout,
    range: vk::ImageSubresourceRange,
    rules: &'static Rules,
}

/// The rules for an image barrier. Each of the two forms has identifiers of its own.
struct Rules {
    image: &'static str,
    bound: &'static str,
    new_layout: &'static str,
    buffer: &'static str,
    level: &'static str,
    levels: &'static str,
    layer: &'static str,
    layers: &'static str,
    old_layout: &'static str,
}

macro_rules! rules {
    ($image:literal, $buffer:literal) => {
        Rules {
            image: concat!("VUID-", $image, "-image-parameter"),
            bound: concat!("VUID-", $image, "-image-01932"),
            new_layout: concat!("VUID-", $image, "-newLayout-01198"),
            buffer: concat!("VUID-", $buffer, "-buffer-parameter"),
            level: concat!("VUID-", $image, "-subresourceRange-01486"),
            levels: concat!("VUID-", $image, "-subresourceRange-01724"),
            layer: concat!("VUID-", $image, "-subresourceRange-01488"),
            layers: concat!("VUID-", $image, "-subresourceRange-01725"),
            old_layout: concat!("VUID-", $image, "-oldLayout-01197"),
        }
    };
}

static FIRST: Rules = rules!("VkImageMemoryBarrier", "VkBufferMemoryBarrier");
static SECOND: Rules = rules!("VkImageMemoryBarrier2", "VkBufferMemoryBarrier2");

pub(super) unsafe extern "system" fn barrier(
    command_buffer: vk::CommandBuffer,
    src: vk::PipelineStageFlags,
    dst: vk::PipelineStageFlags,
    _: vk::DependencyFlags,
    memory_count: u32,
    p_memory: *const vk::MemoryBarrier<'_>,
    buffer_count: u32,
    p_buffers: *const vk::BufferMemoryBarrier<'_>,
    image_count: u32,
    p_images: *const vk::ImageMemoryBarrier<'_>,
) {
    // SAFETY: VUID-vkCmdPipelineBarrier-pMemoryBarriers-parameter.
    let memory = unsafe { chain::array(p_memory, memory_count) };
    // SAFETY: VUID-vkCmdPipelineBarrier-pBufferMemoryBarriers-parameter.
    let buffers = unsafe { chain::array(p_buffers, buffer_count) };
    // SAFETY: VUID-vkCmdPipelineBarrier-pImageMemoryBarriers-parameter.
    let images = unsafe { chain::array(p_images, image_count) };
    let recording = "VUID-vkCmdPipelineBarrier-commandBuffer-recording";
    record(command_buffer, call!("vkCmdPipelineBarrier"), recording, |device, state| {
        Ok(of_first(device, state, (src, dst), memory, buffers, images).commands())
    });
}

pub(super) unsafe extern "system" fn barrier2(
    command_buffer: vk::CommandBuffer,
    p_info: *const vk::DependencyInfo<'_>,
) {
    // SAFETY: VUID-vkCmdPipelineBarrier2-pDependencyInfo-parameter.
    let Some(info) = (unsafe { chain::input(p_info) }) else {
        return;
    };
    let recording = "VUID-vkCmdPipelineBarrier2-commandBuffer-recording";
    record(command_buffer, call!("vkCmdPipelineBarrier2"), recording, |device, state| {
        if !device.features.synchronization2 {
            let text = "the feature synchronization2 is not enabled";
            device.report("VUID-vkCmdPipelineBarrier2-synchronization2-03848", text);
        }
        // SAFETY: VUID-vkCmdPipelineBarrier2-pDependencyInfo-parameter: a valid structure.
        Ok(unsafe { of_second(device, state, info) }.commands())
    });
}

/// What the barriers of a call are recorded as.
pub(super) struct Barriers {
    /// What they order, if hazards are looked for.
    pub(super) bars: Option<Vec<Bar>>,
    /// The layouts that they change.
    pub(super) changes: Vec<Command>,
}

impl Barriers {
    fn commands(self) -> Vec<Command> {
        self.bars.map(Command::Barrier).into_iter().chain(self.changes).collect()
    }
}

/// Checks and reads the barriers of a call of the first form.
pub(super) fn of_first(
    device: &Device,
    state: &DeviceState,
    (src, dst): (vk::PipelineStageFlags, vk::PipelineStageFlags),
    memory: &[vk::MemoryBarrier<'_>],
    buffers: &[vk::BufferMemoryBarrier<'_>],
    images: &[vk::ImageMemoryBarrier<'_>],
) -> Barriers {
    for barrier in buffers {
        check_buffer(device, state, barrier.buffer, &FIRST);
    }
    let changes = images.iter().map(|barrier| Change {
        image: barrier.image,
        old: barrier.old_layout,
        new: barrier.new_layout,
        range: barrier.subresource_range,
        rules: &FIRST,
    });
    Barriers {
        bars: state.hazards.is_some().then(|| bars(src, dst, memory, buffers, images)),
        changes: changes.filter_map(|change| transition(device, state, change)).collect(),
    }
}

/// Checks and reads the barriers of a call of the second form.
///
/// # Safety
///
/// The arrays of `info` have as many elements as it says.
pub(super) unsafe fn of_second(
    device: &Device,
    state: &DeviceState,
    info: &vk::DependencyInfo<'_>,
) -> Barriers {
    // SAFETY: the promise of `of_second` (VUID-VkDependencyInfo-pMemoryBarriers-parameter).
    let memory = unsafe { chain::array(info.p_memory_barriers, info.memory_barrier_count) };
    // SAFETY: the promise of `of_second` (VUID-VkDependencyInfo-pBufferMemoryBarriers-parameter).
    let buffers = unsafe { chain::array(info.p_buffer_memory_barriers, info.buffer_memory_barrier_count) };
    // SAFETY: the promise of `of_second` (VUID-VkDependencyInfo-pImageMemoryBarriers-parameter).
    let images = unsafe { chain::array(info.p_image_memory_barriers, info.image_memory_barrier_count) };
    for barrier in buffers {
        check_buffer(device, state, barrier.buffer, &SECOND);
    }
    let changes = images.iter().map(|barrier| Change {
        image: barrier.image,
        old: barrier.old_layout,
        new: barrier.new_layout,
        range: barrier.subresource_range,
        rules: &SECOND,
    });
    Barriers {
        bars: state.hazards.is_some().then(|| bars2(memory, buffers, images)),
        changes: changes.filter_map(|change| transition(device, state, change)).collect(),
    }
}

/// The stages that the barriers of a call of the second form wait for.
///
/// # Safety
///
/// The arrays of `info` have as many elements as it says.
pub(super) unsafe fn first_stages(info: &vk::DependencyInfo<'_>) -> vk::PipelineStageFlags2 {
    // SAFETY: the promise of `first_stages` (VUID-VkDependencyInfo-pMemoryBarriers-parameter).
    let memory = unsafe { chain::array(info.p_memory_barriers, info.memory_barrier_count) };
    // SAFETY: the promise of `first_stages` (VUID-VkDependencyInfo-pBufferMemoryBarriers-parameter).
    let buffers = unsafe { chain::array(info.p_buffer_memory_barriers, info.buffer_memory_barrier_count) };
    // SAFETY: the promise of `first_stages` (VUID-VkDependencyInfo-pImageMemoryBarriers-parameter).
    let images = unsafe { chain::array(info.p_image_memory_barriers, info.image_memory_barrier_count) };
    let memory = memory.iter().map(|barrier| barrier.src_stage_mask);
    let buffers = buffers.iter().map(|barrier| barrier.src_stage_mask);
    let images = images.iter().map(|barrier| barrier.src_stage_mask);
    memory.chain(buffers).chain(images).fold(vk::PipelineStageFlags2::NONE, |all, stages| all | stages)
}

/// The barriers of a call of the first form, and what the call orders without any.
fn bars(
    src: vk::PipelineStageFlags,
    dst: vk::PipelineStageFlags,
    memory: &[vk::MemoryBarrier<'_>],
    buffers: &[vk::BufferMemoryBarrier<'_>],
    images: &[vk::ImageMemoryBarrier<'_>],
) -> Vec<Bar> {
    // The flags of the first form have the same bits in the second.
    let stages = |flags: vk::PipelineStageFlags| vk::PipelineStageFlags2::from_raw(u64::from(flags.as_raw()));
    let accesses = |flags: vk::AccessFlags| vk::AccessFlags2::from_raw(u64::from(flags.as_raw()));
    let (src, dst) = (stages(src), stages(dst));
    let bar = |from: vk::AccessFlags, to: vk::AccessFlags, on: On| Bar {
        first: Scope::first(src, accesses(from)),
        second: Scope::second(dst, accesses(to)),
        on,
    };
    let mut all = vec![bar(vk::AccessFlags::empty(), vk::AccessFlags::empty(), On::All)];
    all.extend(memory.iter().map(|barrier| bar(barrier.src_access_mask, barrier.dst_access_mask, On::All)));
    all.extend(buffers.iter().map(|barrier| {
        let on = On::Buffer { buffer: barrier.buffer, offset: barrier.offset, size: barrier.size };
        bar(barrier.src_access_mask, barrier.dst_access_mask, on)
    }));
    all.extend(images.iter().map(|barrier| {
        let changes = barrier.old_layout != barrier.new_layout;
        let on = On::Image { image: barrier.image, range: barrier.subresource_range, changes };
        bar(barrier.src_access_mask, barrier.dst_access_mask, on)
    }));
    all
}

/// The barriers of a call of the second form.
fn bars2(
    memory: &[vk::MemoryBarrier2<'_>],
    buffers: &[vk::BufferMemoryBarrier2<'_>],
    images: &[vk::ImageMemoryBarrier2<'_>],
) -> Vec<Bar> {
    let memory = memory.iter().map(|barrier| Bar {
        first: Scope::first(barrier.src_stage_mask, barrier.src_access_mask),
        second: Scope::second(barrier.dst_stage_mask, barrier.dst_access_mask),
        on: On::All,
    });
    let buffers = buffers.iter().map(|barrier| Bar {
        first: Scope::first(barrier.src_stage_mask, barrier.src_access_mask),
        second: Scope::second(barrier.dst_stage_mask, barrier.dst_access_mask),
        on: On::Buffer { buffer: barrier.buffer, offset: barrier.offset, size: barrier.size },
    });
    let images = images.iter().map(|barrier| Bar {
        first: Scope::first(barrier.src_stage_mask, barrier.src_access_mask),
        second: Scope::second(barrier.dst_stage_mask, barrier.dst_access_mask),
        on: On::Image {
            image: barrier.image,
            range: barrier.subresource_range,
            changes: barrier.old_layout != barrier.new_layout,
        },
    });
    memory.chain(buffers).chain(images).collect()
}

fn check_buffer(device: &Device, state: &DeviceState, buffer: vk::Buffer, rules: &Rules) {
    if !state.buffers.contains_key(&buffer) {
        device.report(rules.buffer, state.missing(device, buffer));
    }
}

/// The command for a barrier, or the rule that it breaks.
fn transition(device: &Device, state: &DeviceState, change: Change) -> Option<Command> {
    let rules = change.rules;
    let name = state.name(change.image);
    let Some(found) = state.images.get(&change.image) else {
        device.report(rules.image, state.missing(device, change.image));
        return None;
    };
    let description = &found.description;
    let range = change.range;
    let broken = if found.bound.is_none() {
        Some((rules.bound, "it has no memory".to_owned()))
    } else if change.old != change.new
        && (change.new == vk::ImageLayout::UNDEFINED || change.new == vk::ImageLayout::PREINITIALIZED)
    {
        Some((rules.new_layout, format!("no barrier leads to the layout {}", layout_name(change.new))))
    } else if range.base_mip_level >= description.mip_levels {
        Some((rules.level, format!("level {} of {}", range.base_mip_level, description.mip_levels)))
    } else if range.level_count != vk::REMAINING_MIP_LEVELS
        && range.base_mip_level.saturating_add(range.level_count) > description.mip_levels
    {
        Some((rules.levels, format!("{} levels of {}", range.level_count, description.mip_levels)))
    } else if range.base_array_layer >= description.array_layers {
        Some((rules.layer, format!("layer {} of {}", range.base_array_layer, description.array_layers)))
    } else if range.layer_count != vk::REMAINING_ARRAY_LAYERS
        && range.base_array_layer.saturating_add(range.layer_count) > description.array_layers
    {
        Some((rules.layers, format!("{} layers of {}", range.layer_count, description.array_layers)))
    } else {
        None
    };
    if let Some((rule, text)) = broken {
        device.report(rule, format!("{name}: {text}"));
        return None;
    }
    let (image, old, new) = (change.image, change.old, change.new);
    Some(Command::Transition { image, old, new, range, rule: rules.old_layout })
}

/// How a message calls a layout.
pub(super) fn layout_name(layout: vk::ImageLayout) -> String {
    match layout {
        vk::ImageLayout::UNDEFINED => "UNDEFINED".to_owned(),
        vk::ImageLayout::PREINITIALIZED => "PREINITIALIZED".to_owned(),
        vk::ImageLayout::GENERAL => "GENERAL".to_owned(),
        vk::ImageLayout::TRANSFER_SRC_OPTIMAL => "TRANSFER_SRC_OPTIMAL".to_owned(),
        vk::ImageLayout::TRANSFER_DST_OPTIMAL => "TRANSFER_DST_OPTIMAL".to_owned(),
        vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL => "SHADER_READ_ONLY_OPTIMAL".to_owned(),
        vk::ImageLayout::COLOR_ATTACHMENT_OPTIMAL => "COLOR_ATTACHMENT_OPTIMAL".to_owned(),
        other => format!("{}", other.as_raw()),
    }
}
