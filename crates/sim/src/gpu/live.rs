//! The count of each kind of object on a device.

use crate::facts::arithmetic::widen;
use crate::gpu::Gpu;

impl Gpu {
    /// The count of each kind of object on the device.
    pub fn live(&self) -> LiveObjects {
        let heaps = self.gpu_state().profile.heaps.len();
        let mut live = LiveObjects { memory_bytes_by_heap: vec![0; heaps], ..Default::default() };
        let Some(device) = self.state() else { return live };
        let state = device.state.lock();
        for memory in state.memories.values() {
            if let Some(bytes) =
                usize::try_from(memory.heap).ok().and_then(|it| live.memory_bytes_by_heap.get_mut(it))
            {
                *bytes += memory.info.size;
            }
        }
        live.memories = widen(state.memories.len());
        live.mapped = widen(state.memories.values().filter(|memory| memory.mapped.is_some()).count());
        live.buffers = widen(state.buffers.len());
        live.images = widen(state.images.len());
        live.command_buffers = widen(state.commands.buffers.len());
        live.command_pools = widen(state.commands.pools.len());
        live.fences = widen(state.sync.fences.len());
        live.semaphores = widen(state.sync.semaphores.len());
        live.views = widen(state.buffer_views.len() + state.image_views.len());
        let descriptors = &state.descriptors;
        live.descriptor_pools = widen(descriptors.pools.len());
        live.descriptor_sets = widen(descriptors.sets.len());
        live.descriptor_set_layouts = widen(descriptors.layouts.len());
        live.descriptor_update_templates = widen(descriptors.templates.len());
        live.samplers = widen(descriptors.samplers.len());
        live.pipeline_layouts = widen(descriptors.pipeline_layouts.len());
        live.shader_modules = widen(state.pipelines.modules.len());
        live.pipelines = widen(state.pipelines.pipelines.len());
        live.pipeline_caches = widen(state.pipelines.caches.len());
        live.render_passes = widen(state.passes.passes.len());
        live.framebuffers = widen(state.passes.framebuffers.len());
        live
    }
}

/// The count of each kind of object on a device: the result of [`Gpu::live`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveObjects {
    /// `VkDeviceMemory` objects.
    pub memories: u64,
    /// Mapped `VkDeviceMemory` objects.
    pub mapped: u64,
    /// Bytes of `VkDeviceMemory` objects, for each heap.
    pub memory_bytes_by_heap: Vec<u64>,
    /// Buffers.
    pub buffers: u64,
    /// Images.
    pub images: u64,
    /// Views of buffers and of images.
    pub views: u64,
    /// Command buffers.
    pub command_buffers: u64,
    /// Command pools.
    pub command_pools: u64,
    /// Fences.
    pub fences: u64,
    /// Semaphores.
    pub semaphores: u64,
    /// Descriptor pools.
    pub descriptor_pools: u64,
    /// Descriptor sets. Destroying a pool frees its sets.
    pub descriptor_sets: u64,
    /// Descriptor set layouts.
    pub descriptor_set_layouts: u64,
    /// Descriptor update templates.
    pub descriptor_update_templates: u64,
    /// Samplers.
    pub samplers: u64,
    /// Pipeline layouts.
    pub pipeline_layouts: u64,
    /// Shader modules.
    pub shader_modules: u64,
    /// Pipelines.
    pub pipelines: u64,
    /// Pipeline caches.
    pub pipeline_caches: u64,
    /// Render passes.
    pub render_passes: u64,
    /// Framebuffers.
    pub framebuffers: u64,
}

impl LiveObjects {
    /// Returns whether no object is left.
    pub fn is_empty(&self) -> bool {
        // Without memories, no heap has bytes.
        Self { memory_bytes_by_heap: Vec::new(), ..self.clone() } == Self::default()
    }
}
