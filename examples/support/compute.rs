//! Compute pipelines from WGSL.

use ash::vk;
use naga::back::spv;
use naga::front::wgsl;
use naga::valid::{Capabilities, ValidationFlags, Validator};

use super::{Context, Result};

/// A pipeline and its layout. The entry point is `main`.
pub(crate) struct Compute<'a> {
    context: &'a Context,
    pub(crate) layout: vk::PipelineLayout,
    pub(crate) pipeline: vk::Pipeline,
}

impl<'a> Compute<'a> {
    /// Creates a pipeline. The groups of the shader are the sets of `set_layouts`.
    pub(crate) fn new(
        context: &'a Context,
        shader: &str,
        set_layouts: &[vk::DescriptorSetLayout],
    ) -> Result<Self> {
        Self::from_spirv(context, &compile(shader)?, set_layouts, vk::PipelineCreateFlags::empty())
    }

    /// Same from SPIR-V, with flags for the pipeline.
    pub(crate) fn from_spirv(
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
        // SAFETY: the compiler has validated the module.
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

/// Compiles WGSL to SPIR-V.
pub(crate) fn compile(shader: &str) -> Result<Vec<u32>> {
    let module = wgsl::parse_str(shader).map_err(|error| error.emit_to_string(shader))?;
    let info = Validator::new(ValidationFlags::all(), Capabilities::all())
        .validate(&module)
        .map_err(|error| error.emit_to_string(shader))?;
    let options = spv::Options { lang_version: (1, 0), ..Default::default() };
    Ok(spv::write_vec(&module, &info, &options, None)?)
}
