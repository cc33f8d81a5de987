//! Draws: counts, and the state that they need.

use std::collections::BTreeMap;
use std::sync::Arc;

use ash::vk;

use crate::objects::commands::rendering::BegunRendering;
use crate::objects::pipelines::{DYNAMIC, Drawing, PipelineProgram};

/// The state for a draw: bindings and dynamic state.
#[derive(Clone, Default)]
pub(crate) struct DrawState {
    /// The graphics pipeline.
    pub(crate) program: Option<Arc<PipelineProgram>>,
    /// Vertex buffers by binding, each with an offset.
    pub(crate) vertices: BTreeMap<u32, (vk::Buffer, u64)>,
    pub(crate) indices: Option<Indices>,
    /// Which of [`DYNAMIC`] were set.
    pub(crate) set: [bool; DYNAMIC.len()],
}

/// An index buffer: its offset in bytes, and the type of an index.
pub(crate) type Indices = (vk::Buffer, u64, vk::IndexType);

/// A draw, with all that it uses but its descriptors.
pub(crate) struct Draw {
    pub(crate) program: Arc<PipelineProgram>,
    pub(crate) rendering: Arc<BegunRendering>,
    pub(crate) vertices: BTreeMap<u32, (vk::Buffer, u64)>,
    /// Of a draw with indices.
    pub(crate) indices: Option<Indices>,
    pub(crate) counts: DrawCounts,
}

/// How much is drawn.
#[derive(Clone, Copy)]
pub(crate) enum DrawCounts {
    Given(DrawSpan),
    /// In a buffer: so many commands from an offset on, so many bytes apart.
    At {
        buffer: vk::Buffer,
        offset: u64,
        count: u32,
        stride: u32,
    },
}

/// One draw: vertices, or indices, and instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DrawSpan {
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) vertex_offset: i32,
    pub(crate) first_instance: u32,
    pub(crate) instances: u32,
}

impl DrawCounts {
    pub(crate) fn buffer(&self) -> Option<vk::Buffer> {
        match self {
            Self::Given(_) => None,
            Self::At { buffer, .. } => Some(*buffer),
        }
    }
}

impl Draw {
    /// Bytes of a command in a buffer.
    pub(crate) fn indirect_size(&self) -> u64 {
        indirect_size(self.indices.is_some())
    }

    pub(crate) fn drawing(&self) -> Option<&Drawing> {
        self.program.drawing.as_ref()
    }
}

/// Bytes of a `VkDrawIndexedIndirectCommand`, or of a `VkDrawIndirectCommand`.
pub(crate) fn indirect_size(indexed: bool) -> u64 {
    if indexed { 20 } else { 16 }
}

impl DrawSpan {
    /// Decodes a command of a buffer: a `VkDrawIndirectCommand`, or with indices a `VkDrawIndexedIndirectCommand`.
    pub(crate) fn from_words(words: [u32; 5], indexed: bool) -> Self {
        let [count, instances, first, fourth, fifth] = words;
        if indexed {
            let vertex_offset = i32::from_le_bytes(fourth.to_le_bytes());
            return Self { first, count, vertex_offset, first_instance: fifth, instances };
        }
        Self { first, count, vertex_offset: 0, first_instance: fourth, instances }
    }
}
