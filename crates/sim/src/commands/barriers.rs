//! Pipeline barriers: what they do to the layouts of images, and what they order, for the search for hazards.
//!
//! To run the commands, neither is needed: they run one after another.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use super::record;
use crate::facts::broken::rule;
use crate::facts::chain;
use crate::hazards::{
    CommandBarrier, DependencyScope, Half, On, OwnershipTransfer, access2, is_outside, stages2,
};
use crate::objects::commands::RecordedCommand;
use crate::objects::state::{DeviceObject, DeviceState};

/// The structures of one of the two forms: each has rules of its own, whose identifiers end alike.
struct BarrierForm {
    buffer: &'static str,
    image: &'static str,
    old_layout: &'static str,
}

static FIRST: BarrierForm = BarrierForm {
    buffer: "VkBufferMemoryBarrier",
    image: "VkImageMemoryBarrier",
    old_layout: "VUID-VkImageMemoryBarrier-oldLayout-01197",
};
static SECOND: BarrierForm = BarrierForm {
    buffer: "VkBufferMemoryBarrier2",
    image: "VkImageMemoryBarrier2",
    old_layout: "VUID-VkImageMemoryBarrier2-oldLayout-01197",
};

pub(crate) unsafe extern "system" fn barrier(
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
    record(command_buffer, "vkCmdPipelineBarrier", |device, state| {
        Ok(of_first(device, state, command_buffer, (src, dst), memory, buffers, images).commands())
    });
}

pub(crate) unsafe extern "system" fn barrier2(
    command_buffer: vk::CommandBuffer,
    p_info: *const vk::DependencyInfo<'_>,
) {
    // SAFETY: VUID-vkCmdPipelineBarrier2-pDependencyInfo-parameter.
    let Some(info) = (unsafe { chain::input(p_info) }) else {
        return;
    };
    record(command_buffer, "vkCmdPipelineBarrier2", |device, state| {
        if !device.features.synchronization2 {
            let text = "the feature synchronization2 is not enabled";
            device.report("VUID-vkCmdPipelineBarrier2-synchronization2-03848", text);
        }
        // SAFETY: VUID-vkCmdPipelineBarrier2-pDependencyInfo-parameter: a valid structure.
        Ok(unsafe { of_second(device, state, command_buffer, info) }.commands())
    });
}

/// The recorded form of a call's barriers.
pub(crate) struct Barriers {
    /// Their scopes, if hazards are looked for.
    pub(crate) bars: Option<Vec<CommandBarrier>>,
    /// The layouts that they change.
    pub(crate) changes: Vec<RecordedCommand>,
}

impl Barriers {
    fn commands(self) -> Vec<RecordedCommand> {
        self.bars.map(RecordedCommand::Barrier).into_iter().chain(self.changes).collect()
    }
}

/// Checks and reads the barriers of a call of the first form.
pub(crate) fn of_first(
    device: &DeviceObject,
    state: &DeviceState,
    command_buffer: vk::CommandBuffer,
    (src, dst): (vk::PipelineStageFlags, vk::PipelineStageFlags),
    memory: &[vk::MemoryBarrier<'_>],
    buffers: &[vk::BufferMemoryBarrier<'_>],
    images: &[vk::ImageMemoryBarrier<'_>],
) -> Barriers {
    let (src, dst) = (stages2(src), stages2(dst));
    // The call orders its stages without a barrier too.
    let stages = vk::MemoryBarrier2::default().src_stage_mask(src).dst_stage_mask(dst);
    let memory = memory.iter().map(|barrier| {
        stages
            .src_access_mask(access2(barrier.src_access_mask))
            .dst_access_mask(access2(barrier.dst_access_mask))
    });
    let buffers = buffers.iter().map(|barrier| vk::BufferMemoryBarrier2 {
        src_stage_mask: src,
        src_access_mask: access2(barrier.src_access_mask),
        dst_stage_mask: dst,
        dst_access_mask: access2(barrier.dst_access_mask),
        src_queue_family_index: barrier.src_queue_family_index,
        dst_queue_family_index: barrier.dst_queue_family_index,
        buffer: barrier.buffer,
        offset: barrier.offset,
        size: barrier.size,
        ..Default::default()
    });
    let images = images.iter().map(|barrier| vk::ImageMemoryBarrier2 {
        src_stage_mask: src,
        src_access_mask: access2(barrier.src_access_mask),
        dst_stage_mask: dst,
        dst_access_mask: access2(barrier.dst_access_mask),
        old_layout: barrier.old_layout,
        new_layout: barrier.new_layout,
        src_queue_family_index: barrier.src_queue_family_index,
        dst_queue_family_index: barrier.dst_queue_family_index,
        image: barrier.image,
        subresource_range: barrier.subresource_range,
        ..Default::default()
    });
    let place = Recorded { device, state, form: &FIRST, family: state.commands.family(command_buffer) };
    place.read(std::iter::once(stages).chain(memory), buffers, images)
}

/// Checks and reads the barriers of a call of the second form.
///
/// # Safety
///
/// The arrays of `info` have as many elements as it says.
pub(crate) unsafe fn of_second(
    device: &DeviceObject,
    state: &DeviceState,
    command_buffer: vk::CommandBuffer,
    info: &vk::DependencyInfo<'_>,
) -> Barriers {
    // SAFETY: the promise of `of_second`.
    let (memory, buffers, images) = unsafe { arrays(info) };
    let place = Recorded { device, state, form: &SECOND, family: state.commands.family(command_buffer) };
    place.read(memory.iter().copied(), buffers.iter().copied(), images.iter().copied())
}

/// The stages that the barriers of a call of the second form wait for.
///
/// # Safety
///
/// The arrays of `info` have as many elements as it says.
pub(crate) unsafe fn first_stages(info: &vk::DependencyInfo<'_>) -> vk::PipelineStageFlags2 {
    // SAFETY: the promise of `first_stages`.
    let (memory, buffers, images) = unsafe { arrays(info) };
    let memory = memory.iter().map(|barrier| barrier.src_stage_mask);
    let buffers = buffers.iter().map(|barrier| barrier.src_stage_mask);
    let images = images.iter().map(|barrier| barrier.src_stage_mask);
    memory.chain(buffers).chain(images).fold(vk::PipelineStageFlags2::NONE, |all, stages| all | stages)
}

/// The barriers of memory, of buffers and of images of a call of the second form.
type BarrierArrays<'a> =
    (&'a [vk::MemoryBarrier2<'a>], &'a [vk::BufferMemoryBarrier2<'a>], &'a [vk::ImageMemoryBarrier2<'a>]);

/// # Safety
///
/// The arrays of `info` have as many elements as it says.
unsafe fn arrays<'a>(info: &'a vk::DependencyInfo<'a>) -> BarrierArrays<'a> {
    // SAFETY: the promise of `arrays` (VUID-VkDependencyInfo-pMemoryBarriers-parameter).
    let memory = unsafe { chain::array(info.p_memory_barriers, info.memory_barrier_count) };
    // SAFETY: the promise of `arrays` (VUID-VkDependencyInfo-pBufferMemoryBarriers-parameter).
    let buffers = unsafe { chain::array(info.p_buffer_memory_barriers, info.buffer_memory_barrier_count) };
    // SAFETY: the promise of `arrays` (VUID-VkDependencyInfo-pImageMemoryBarriers-parameter).
    let images = unsafe { chain::array(info.p_image_memory_barriers, info.image_memory_barrier_count) };
    (memory, buffers, images)
}

/// The device and the command buffer that barriers are recorded for.
struct Recorded<'a> {
    device: &'a DeviceObject,
    state: &'a DeviceState,
    form: &'static BarrierForm,
    /// The family of the command buffer.
    family: u32,
}

impl Recorded<'_> {
    /// Checks the barriers of a call, and reads what they order and change.
    fn read<'a>(
        &self,
        memory: impl Iterator<Item = vk::MemoryBarrier2<'a>>,
        buffers: impl Iterator<Item = vk::BufferMemoryBarrier2<'a>>,
        images: impl Iterator<Item = vk::ImageMemoryBarrier2<'a>>,
    ) -> Barriers {
        let Self { device, state, form, .. } = *self;
        let mut bars: Vec<_> = memory
            .map(|barrier| CommandBarrier {
                first: DependencyScope::first(barrier.src_stage_mask, barrier.src_access_mask),
                second: DependencyScope::second(barrier.dst_stage_mask, barrier.dst_access_mask),
                on: On::All,
                half: None,
            })
            .collect();
        for barrier in buffers {
            let found = state.buffers.get(&barrier.buffer);
            if found.is_none() {
                device.report(rule(form.buffer, "buffer-parameter"), state.missing(device, barrier.buffer));
            }
            let families = (barrier.src_queue_family_index, barrier.dst_queue_family_index);
            let exclusive = found.is_some_and(|buffer| buffer.exclusive);
            bars.push(CommandBarrier {
                first: DependencyScope::first(barrier.src_stage_mask, barrier.src_access_mask),
                second: DependencyScope::second(barrier.dst_stage_mask, barrier.dst_access_mask),
                on: On::Buffer { buffer: barrier.buffer, offset: barrier.offset, size: barrier.size },
                half: self.half(exclusive, families, Default::default(), (form.buffer, "buffer-04089")),
            });
        }
        let mut changes = Vec::new();
        for barrier in images {
            let layouts = (barrier.old_layout, barrier.new_layout);
            let families = (barrier.src_queue_family_index, barrier.dst_queue_family_index);
            let exclusive = state.images.get(&barrier.image).is_some_and(|image| image.exclusive);
            let half = self.half(exclusive, families, layouts, (form.image, "image-04072"));
            bars.push(CommandBarrier {
                first: DependencyScope::first(barrier.src_stage_mask, barrier.src_access_mask),
                second: DependencyScope::second(barrier.dst_stage_mask, barrier.dst_access_mask),
                on: On::Image { image: barrier.image, range: barrier.subresource_range, layouts },
                half,
            });
            changes.extend(self.transition(&barrier, half));
        }
        Barriers { bars: state.hazards.is_some().then_some(bars), changes }
    }

    /// Which half of a change of owner a barrier is. A transfer with another API or device changes the owner, even of
    /// resources that families share.
    fn half(
        &self,
        exclusive: bool,
        (from, to): (u32, u32),
        layouts: (vk::ImageLayout, vk::ImageLayout),
        (of, rest): (&str, &str),
    ) -> Option<Half> {
        let is_ignored = [from, to].contains(&vk::QUEUE_FAMILY_IGNORED);
        if from == to || is_ignored || !(exclusive || is_outside(from) || is_outside(to)) {
            return None;
        }
        let transfer = OwnershipTransfer { from, to, layouts };
        if from == self.family {
            Some(Half::Release(transfer))
        } else if to == self.family {
            Some(Half::Acquire(transfer))
        } else {
            let text = format!("from family {from} to {to}, in a command buffer of family {}", self.family);
            self.device.report(rule(of, rest), text);
            None
        }
    }

    /// The command for a barrier, or the rule that it breaks.
    fn transition(
        &self,
        change: &vk::ImageMemoryBarrier2<'_>,
        half: Option<Half>,
    ) -> Option<RecordedCommand> {
        let Self { device, state, form, .. } = *self;
        let Some(found) = state.images.get(&change.image) else {
            device.report(rule(form.image, "image-parameter"), state.missing(device, change.image));
            return None;
        };
        let description = &found.description;
        let range = change.subresource_range;
        let (image, old, new) = (change.image, change.old_layout, change.new_layout);
        let broken = if found.bound.is_none() {
            Some(("image-01932", "it has no memory".to_owned()))
        } else if old != new && (new == vk::ImageLayout::UNDEFINED || new == vk::ImageLayout::PREINITIALIZED)
        {
            Some(("newLayout-01198", format!("no barrier leads to the layout {}", layout_name(new))))
        } else if range.base_mip_level >= description.mip_levels {
            Some((
                "subresourceRange-01486",
                format!("level {} of {}", range.base_mip_level, description.mip_levels),
            ))
        } else if range.level_count != vk::REMAINING_MIP_LEVELS
            && range.base_mip_level.saturating_add(range.level_count) > description.mip_levels
        {
            Some((
                "subresourceRange-01724",
                format!("{} levels of {}", range.level_count, description.mip_levels),
            ))
        } else if range.base_array_layer >= description.array_layers {
            Some((
                "subresourceRange-01488",
                format!("layer {} of {}", range.base_array_layer, description.array_layers),
            ))
        } else if range.layer_count != vk::REMAINING_ARRAY_LAYERS
            && range.base_array_layer.saturating_add(range.layer_count) > description.array_layers
        {
            Some((
                "subresourceRange-01725",
                format!("{} layers of {}", range.layer_count, description.array_layers),
            ))
        } else {
            None
        };
        if let Some((rest, text)) = broken {
            device.report(rule(form.image, rest), format!("{}: {text}", state.name(image)));
            return None;
        }
        let (old, new) = match half {
            // The layout changes once: when the new owner gets it.
            Some(Half::Release(_)) => (Some(old), old),
            // Nobody here has seen what another API or device did to it.
            Some(Half::Acquire(transfer)) if is_outside(transfer.from) => (None, new),
            _ => (Some(old), new),
        };
        Some(RecordedCommand::Transition { image, old, new, range, rule: form.old_layout })
    }
}

/// How a message calls a layout.
pub(crate) fn layout_name(layout: vk::ImageLayout) -> String {
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
