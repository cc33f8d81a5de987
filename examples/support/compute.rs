//! Compute pipelines.

use ash::vk;
#[cfg(feature = "descriptors")]
use sublet_descriptors::{BindingMapping, HeapMappings, heap_ffi};

use super::{Context, Result};

/// A pipeline and its layout. The entry point is `main`.
pub struct Compute<'a> {
    context: &'a Context,
    pub layout: vk::PipelineLayout,
    pub pipeline: vk::Pipeline,
}

impl<'a> Compute<'a> {
    /// Creates a pipeline from SPIR-V, with flags. The groups of the shader are the sets of `set_layouts`.
    pub fn new(
        context: &'a Context,
        code: &[u32],
        set_layouts: &[vk::DescriptorSetLayout],
        flags: vk::PipelineCreateFlags,
    ) -> Result<Self> {
        let device = context.device();
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(set_layouts);
        // SAFETY: the layouts are live, and belong to this device.
        let layout = unsafe { device.create_pipeline_layout(&info, None) }?;
        let compute = Self { context, layout, pipeline: vk::Pipeline::null() };
        let info = vk::ComputePipelineCreateInfo::default().flags(flags).layout(layout);
        compute.with_stage(code, info, vk::PipelineShaderStageCreateInfo::default())
    }

    /// Creates a pipeline without a layout, for Vulkan's own descriptor heaps. The mappings say where the groups of the
    /// shader are.
    #[cfg(feature = "descriptors")]
    pub fn with_heaps(
        context: &'a Context,
        code: &[u32],
        mappings: impl IntoIterator<Item = BindingMapping>,
    ) -> Result<Self> {
        let compute = Self { context, layout: vk::PipelineLayout::null(), pipeline: vk::Pipeline::null() };
        let mut flags = vk::PipelineCreateFlags2CreateInfoKHR::default()
            .flags(heap_ffi::PIPELINE_CREATE_2_DESCRIPTOR_HEAP);
        let mut mappings = HeapMappings::new(mappings);
        let info = vk::ComputePipelineCreateInfo::default().push_next(&mut flags);
        let stage = vk::PipelineShaderStageCreateInfo::default().push_next(mappings.info());
        compute.with_stage(code, info, stage)
    }

    fn with_stage(
        mut self,
        code: &[u32],
        info: vk::ComputePipelineCreateInfo<'_>,
        stage: vk::PipelineShaderStageCreateInfo<'_>,
    ) -> Result<Self> {
        let device = self.context.device();
        let module = vk::ShaderModuleCreateInfo::default().code(code);
        // SAFETY: the code is a valid module: it is a compiler's output.
        let module = unsafe { device.create_shader_module(&module, None) }?;
        let stage = stage.stage(vk::ShaderStageFlags::COMPUTE).module(module).name(c"main");
        // SAFETY: the callers' layouts or mappings match their shaders' declarations.
        let made =
            unsafe { device.create_compute_pipelines(vk::PipelineCache::null(), &[info.stage(stage)], None) };
        // SAFETY: a pipeline does not need its module after its creation.
        unsafe { device.destroy_shader_module(module, None) };
        self.pipeline = made.map_err(|(_, error)| error)?[0];
        Ok(self)
    }
}

impl Drop for Compute<'_> {
    fn drop(&mut self) {
        let device = self.context.device();
        // SAFETY: the examples wait for the device before they end; a null pipeline is ignored.
        unsafe { device.destroy_pipeline(self.pipeline, None) };
        // SAFETY: as above.
        unsafe { device.destroy_pipeline_layout(self.layout, None) };
    }
}
