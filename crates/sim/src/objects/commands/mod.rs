//! Command pools, command buffers, and the commands that are recorded in them.

pub(crate) mod bindings;
pub(crate) mod draw;
pub(crate) mod rendering;

use std::collections::BTreeMap;
use std::sync::Arc;

use ash::vk;

use crate::hazards::{CommandBarrier, Site};
use crate::objects::commands::bindings::BoundSet;
use crate::objects::commands::draw::{Draw, DrawState};
use crate::objects::commands::rendering::BegunRendering;
use crate::objects::descriptors::PipelineLayoutDescription;
use crate::objects::descriptors::contents::ContentsChange;
use crate::objects::handle_map::{HandleMap, HandleSet};
use crate::objects::heaps::HeapBinding;
use crate::objects::pipelines::PipelineProgram;

/// The layouts of images, by level and layer. A subresource that no barrier has named is not in it. A dispatch keeps
/// them as they were when it began.
pub(crate) type ImageLayouts = Arc<BTreeMap<vk::Image, BTreeMap<(u32, u32), vk::ImageLayout>>>;

/// Command pools and command buffers of a device.
#[derive(Default)]
pub(crate) struct CommandState {
    pub(crate) pools: HandleMap<vk::CommandPool, CommandPoolObject>,
    pub(crate) buffers: HandleMap<vk::CommandBuffer, CommandBuffer>,
    pub(crate) layouts: ImageLayouts,
}

/// A `VkCommandPool`.
pub(crate) struct CommandPoolObject {
    pub(crate) family: u32,
    pub(crate) flags: vk::CommandPoolCreateFlags,
    pub(crate) buffers: HandleSet<vk::CommandBuffer>,
}

/// A `VkCommandBuffer`.
pub(crate) struct CommandBuffer {
    pub(crate) pool: vk::CommandPool,
    pub(crate) level: vk::CommandBufferLevel,
    pub(crate) phase: CommandBufferState,
    pub(crate) usage: vk::CommandBufferUsageFlags,
    /// The recorded commands, shared with the submissions that run them.
    pub(crate) commands: Arc<Vec<RecordedCommand>>,
    /// The resources that the commands name.
    pub(crate) uses: Uses,
    /// The count of its submissions that are not done.
    pub(crate) pending: u32,
}

/// The state of a command buffer. Pending is no state here: it is counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandBufferState {
    Initial,
    Recording,
    Executable,
    Invalid,
}

/// The resources that a command buffer names.
#[derive(Clone, Default)]
pub(crate) struct Uses {
    pub(crate) buffers: HandleSet<vk::Buffer>,
    pub(crate) images: HandleSet<vk::Image>,
    /// The sets that are bound, each with the version that it had when it was first bound.
    pub(crate) sets: BTreeMap<vk::DescriptorSet, u64>,
    pub(crate) pipelines: HandleSet<vk::Pipeline>,
    pub(crate) passes: HandleSet<vk::RenderPass>,
    pub(crate) framebuffers: HandleSet<vk::Framebuffer>,
    /// The addresses of the descriptor buffers that are bound after the last command.
    pub(crate) descriptor_buffers: Vec<u64>,
    /// The heaps that were bound, each with its reserved range.
    pub(crate) heaps: Vec<HeapBinding>,
    /// The heaps of resources and of samplers that are bound after the last command.
    pub(crate) bound_heaps: [Option<HeapBinding>; 2],
    /// The heaps of resources and of samplers that a secondary command buffer inherits.
    pub(crate) inherited: [Option<HeapBinding>; 2],
    /// The rendering that has begun and not ended.
    pub(crate) rendering: Option<Arc<BegunRendering>>,
    /// True if a compute pipeline is bound after the last command.
    pub(crate) can_dispatch: bool,
    /// The state for a draw after the last command.
    pub(crate) draws: DrawState,
    /// Labels that were begun and not ended.
    pub(crate) labels: u32,
    /// The calls that are recorded, if hazards are looked for.
    pub(crate) calls: u32,
}

/// A recorded command.
#[derive(Clone)]
pub(crate) enum RecordedCommand {
    CopyBuffer {
        src: vk::Buffer,
        dst: vk::Buffer,
        regions: Vec<vk::BufferCopy>,
    },
    Fill {
        dst: vk::Buffer,
        offset: u64,
        size: u64,
        data: u32,
    },
    Update {
        dst: vk::Buffer,
        offset: u64,
        data: Vec<u8>,
    },
    BufferToImage {
        src: vk::Buffer,
        dst: ImageTarget,
        regions: Vec<vk::BufferImageCopy>,
    },
    ImageToBuffer {
        src: ImageTarget,
        dst: vk::Buffer,
        regions: Vec<vk::BufferImageCopy>,
    },
    CopyImage {
        src: ImageTarget,
        dst: ImageTarget,
        regions: Vec<vk::ImageCopy>,
    },
    Blit {
        src: ImageTarget,
        dst: ImageTarget,
        regions: Vec<vk::ImageBlit>,
        filter: vk::Filter,
    },
    ResolveImage {
        src: ImageTarget,
        dst: ImageTarget,
        regions: Vec<vk::ImageResolve>,
    },
    BeginRendering(Arc<BegunRendering>),
    EndRendering(Arc<BegunRendering>),
    Clear {
        dst: ImageTarget,
        texel: Vec<u8>,
        ranges: Vec<vk::ImageSubresourceRange>,
    },
    Transition {
        image: vk::Image,
        /// `None` where nothing is known of it.
        old: Option<vk::ImageLayout>,
        new: vk::ImageLayout,
        range: vk::ImageSubresourceRange,
        rule: &'static str,
    },
    BindSets {
        point: vk::PipelineBindPoint,
        layout: Arc<PipelineLayoutDescription>,
        first: u32,
        sets: Vec<BoundSet>,
    },
    PushDescriptors {
        point: vk::PipelineBindPoint,
        layout: Arc<PipelineLayoutDescription>,
        set: u32,
        changes: Vec<ContentsChange>,
    },
    PushConstants {
        layout: Arc<PipelineLayoutDescription>,
        offset: u32,
        bytes: Vec<u8>,
    },
    BindDescriptorBuffers {
        /// The buffer of each, and the address that it is bound at.
        buffers: Vec<(vk::Buffer, u64)>,
    },
    SetOffsets {
        point: vk::PipelineBindPoint,
        layout: Arc<PipelineLayoutDescription>,
        first: u32,
        /// For each set which of the descriptor buffers it is in, and where.
        sets: Vec<(u32, u64)>,
    },
    BindHeap(HeapBinding),
    PushData {
        offset: u32,
        bytes: Vec<u8>,
    },
    BindPipeline {
        point: vk::PipelineBindPoint,
        pipeline: vk::Pipeline,
        program: Arc<PipelineProgram>,
    },
    Dispatch {
        groups: [u32; 3],
    },
    DispatchIndirect {
        buffer: vk::Buffer,
        offset: u64,
    },
    BindVertexBuffers {
        first: u32,
        /// Each with an offset.
        buffers: Vec<(vk::Buffer, u64)>,
    },
    BindIndexBuffer {
        buffer: vk::Buffer,
        offset: u64,
        kind: vk::IndexType,
    },
    /// Sets what pipelines leave to commands: the place of it in [`DYNAMIC`](crate::objects::pipelines::DYNAMIC).
    Set(usize),
    /// Begins a label, or ends the last one.
    Label(bool),
    Draw(Arc<Draw>),
    /// Forgets what is bound, because a secondary command buffer begins or ends.
    ForgetBindings,
    /// The call that recorded the commands behind this one. Recorded only where hazards are looked for, as the next.
    By(Site),
    Barrier(Vec<CommandBarrier>),
    SetEvent {
        event: vk::Event,
        stages: vk::PipelineStageFlags2,
    },
    ResetEvent {
        event: vk::Event,
    },
    WaitEvents {
        events: Vec<vk::Event>,
        bars: Vec<CommandBarrier>,
    },
}

/// An image in a command, the layout that the command names, and the rule that another layout breaks.
#[derive(Clone, Copy)]
pub(crate) struct ImageTarget {
    pub(crate) image: vk::Image,
    pub(crate) layout: vk::ImageLayout,
    pub(crate) layout_rule: &'static str,
}

impl Uses {
    pub(crate) fn add(&mut self, command: &RecordedCommand) {
        match command {
            RecordedCommand::CopyBuffer { src, dst, .. } => {
                self.buffers.insert(*src);
                self.buffers.insert(*dst);
            }
            RecordedCommand::Fill { dst, .. } | RecordedCommand::Update { dst, .. } => {
                self.buffers.insert(*dst);
            }
            RecordedCommand::BufferToImage { src: buffer, dst: image, .. }
            | RecordedCommand::ImageToBuffer { src: image, dst: buffer, .. } => {
                self.buffers.insert(*buffer);
                self.images.insert(image.image);
            }
            RecordedCommand::CopyImage { src, dst, .. }
            | RecordedCommand::Blit { src, dst, .. }
            | RecordedCommand::ResolveImage { src, dst, .. } => {
                self.images.insert(src.image);
                self.images.insert(dst.image);
            }
            RecordedCommand::BeginRendering(rendering) => {
                self.images.extend(rendering.attached().map(|attached| attached.target.image));
                if let Some(pass) = &rendering.pass {
                    self.passes.insert(pass.pass);
                    self.framebuffers.insert(pass.framebuffer);
                }
                self.rendering = Some(Arc::clone(rendering));
            }
            RecordedCommand::EndRendering(_) => self.rendering = None,
            RecordedCommand::Clear { dst, .. } => {
                self.images.insert(dst.image);
            }
            RecordedCommand::Transition { image, .. } => {
                self.images.insert(*image);
            }
            RecordedCommand::BindSets { sets, .. } => {
                for set in sets {
                    self.sets.entry(set.set).or_insert(set.version);
                }
            }
            RecordedCommand::BindDescriptorBuffers { buffers } => {
                self.buffers.extend(buffers.iter().map(|(buffer, _)| *buffer));
                self.descriptor_buffers = buffers.iter().map(|(_, address)| *address).collect();
            }
            RecordedCommand::BindHeap(heap) => {
                self.buffers.insert(heap.buffer);
                self.heaps.push(*heap);
                self.bound_heaps[usize::from(heap.sampler)] = Some(*heap);
            }
            RecordedCommand::BindPipeline { pipeline, program, .. } => {
                self.pipelines.insert(*pipeline);
                if program.drawing.is_some() {
                    self.draws.program = Some(Arc::clone(program));
                } else {
                    self.can_dispatch = true;
                }
            }
            RecordedCommand::BindVertexBuffers { first, buffers } => {
                self.buffers.extend(buffers.iter().map(|(buffer, _)| *buffer));
                self.draws.vertices.extend((*first..).zip(buffers.iter().copied()));
            }
            RecordedCommand::BindIndexBuffer { buffer, offset, kind } => {
                self.buffers.insert(*buffer);
                self.draws.indices = Some((*buffer, *offset, *kind));
            }
            RecordedCommand::Set(state) => self.draws.set[*state] = true,
            RecordedCommand::Label(begins) => {
                self.labels = if *begins { self.labels + 1 } else { self.labels - 1 }
            }
            RecordedCommand::Draw(draw) => self.buffers.extend(draw.counts.buffer()),
            RecordedCommand::ForgetBindings => {
                self.descriptor_buffers.clear();
                self.bound_heaps = [None; 2];
                self.can_dispatch = false;
                self.draws = DrawState::default();
            }
            RecordedCommand::DispatchIndirect { buffer, .. } => {
                self.buffers.insert(*buffer);
            }
            RecordedCommand::PushDescriptors { .. }
            | RecordedCommand::PushConstants { .. }
            | RecordedCommand::PushData { .. }
            | RecordedCommand::SetOffsets { .. }
            | RecordedCommand::By(_)
            | RecordedCommand::Barrier(_)
            | RecordedCommand::SetEvent { .. }
            | RecordedCommand::ResetEvent { .. }
            | RecordedCommand::WaitEvents { .. }
            | RecordedCommand::Dispatch { .. } => {}
        }
    }
}

impl CommandBuffer {
    pub(crate) fn is_secondary(&self) -> bool {
        self.level == vk::CommandBufferLevel::SECONDARY
    }

    /// Returns it to the initial state.
    pub(crate) fn clear(&mut self) {
        self.phase = CommandBufferState::Initial;
        self.commands = Arc::default();
        self.uses = Uses::default();
    }
}

impl CommandState {
    /// The family of a command buffer's pool.
    pub(crate) fn family(&self, command_buffer: vk::CommandBuffer) -> u32 {
        let pool = self.buffers.get(&command_buffer).and_then(|buffer| self.pools.get(&buffer.pool));
        pool.map_or(0, |pool| pool.family)
    }

    /// The layout of a subresource; `None` as long as no barrier has named it: UNDEFINED or PREINITIALIZED.
    pub(crate) fn layout(&self, image: vk::Image, level: u32, layer: u32) -> Option<vk::ImageLayout> {
        self.layouts.get(&image)?.get(&(level, layer)).copied()
    }
}
