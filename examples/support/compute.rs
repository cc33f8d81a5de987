//! Compute pipelines.

use ash::vk;

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
        let mut compute = Self { context, layout, pipeline: vk::Pipeline::null() };
        let info = vk::ShaderModuleCreateInfo::default().code(code);
        // SAFETY: the code is a valid module: it is a compiler's output.
        let module = unsafe { device.create_shader_module(&info, None) }?;
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(c"main");
        let info = [vk::ComputePipelineCreateInfo::default().flags(flags).stage(stage).layout(layout)];
        // SAFETY: the callers' layouts match their shaders' declarations.
        let made = unsafe { device.create_compute_pipelines(vk::PipelineCache::null(), &info, None) };
        // SAFETY: a pipeline does not need its module after its creation.
        unsafe { device.destroy_shader_module(module, None) };
        compute.pipeline = made.map_err(|(_, error)| error)?[0];
        Ok(compute)
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
