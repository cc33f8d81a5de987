//! Shader modules and pipelines.

use std::collections::BTreeMap;
use std::sync::Arc;

use ash::vk;

use crate::objects::descriptors::PipelineLayoutDescription;
use crate::objects::handle_map::HandleMap;
use crate::objects::heaps::SetMapping;
use crate::objects::host_bytes::HostBytes;
use crate::objects::passes::Formats;

/// Shader modules, pipelines and pipeline caches of a device.
#[derive(Default)]
pub(crate) struct PipelineState {
    pub(crate) modules: HandleMap<vk::ShaderModule, HostBytes>,
    pub(crate) pipelines: HandleMap<vk::Pipeline, Pipeline>,
    pub(crate) caches: HandleMap<vk::PipelineCache, HostBytes>,
}

/// A `VkPipeline`.
pub(crate) struct Pipeline {
    pub(crate) program: Arc<PipelineProgram>,
    /// Submissions that are not done and bind it.
    pub(crate) in_use: u32,
    pub(crate) host: HostBytes,
}

/// The shaders and the layout of a pipeline.
#[derive(Debug)]
pub(crate) struct PipelineProgram {
    pub(crate) layout: Arc<PipelineLayoutDescription>,
    /// True if it takes its descriptors from descriptor buffers.
    pub(crate) descriptor_buffer: bool,
    /// Its shaders, in the order of their stages.
    pub(crate) shaders: Vec<Shader>,
    /// The state of a graphics pipeline; of a compute pipeline none.
    pub(crate) drawing: Option<Drawing>,
}

/// A shader of a pipeline.
#[derive(Debug)]
pub(crate) struct Shader {
    pub(crate) stage: vk::ShaderStageFlags,
    /// The name of its entry point.
    pub(crate) entry_point: String,
    /// The heap mappings of its sets and bindings, if it uses heaps.
    pub(crate) heap: Option<Vec<SetMapping>>,
    /// The values of specialization constants, by their numbers.
    pub(crate) constants: BTreeMap<u32, Vec<u8>>,
}

impl PipelineProgram {
    pub(crate) fn point(&self) -> vk::PipelineBindPoint {
        match self.drawing {
            Some(_) => vk::PipelineBindPoint::GRAPHICS,
            None => vk::PipelineBindPoint::COMPUTE,
        }
    }
}

/// The state of a graphics pipeline.
#[derive(Debug)]
pub(crate) struct Drawing {
    /// Its vertex buffers, by binding.
    pub(crate) buffers: BTreeMap<u32, VertexBuffer>,
    /// True if viewports and scissors are set by commands.
    pub(crate) sets: [bool; DYNAMIC.len()],
    /// The attachments that it is for.
    pub(crate) formats: Formats,
    /// By location.
    pub(crate) colors: Vec<Touch>,
    pub(crate) depth: Touch,
    pub(crate) stencil: Touch,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct VertexBuffer {
    /// Bytes from a vertex, or an instance, to the next.
    pub(crate) stride: u32,
    pub(crate) by_instance: bool,
}

/// The access of a draw to an attachment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Touch {
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

/// State that pipelines may leave to commands, with its name, and how the rule ends of a draw that lacks it.
pub(crate) const DYNAMIC: [(vk::DynamicState, &str, &str); 7] = [
    (vk::DynamicState::VIEWPORT, "viewport", "None-07831"),
    (vk::DynamicState::SCISSOR, "scissor", "None-07832"),
    (vk::DynamicState::DEPTH_BIAS, "depth bias", "None-07834"),
    (vk::DynamicState::BLEND_CONSTANTS, "blend constants", "None-07835"),
    (vk::DynamicState::STENCIL_REFERENCE, "stencil reference", "None-07839"),
    (vk::DynamicState::CULL_MODE, "cull mode", "None-07840"),
    (vk::DynamicState::FRONT_FACE, "front face", "None-07841"),
];
