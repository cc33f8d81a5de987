//! A compute shader that generates mips where blits cannot. Pipelines are created on first use.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::sync::Arc;

use ash::vk;
use sublet::device::DriverError;

use crate::device::DeviceCore;

/// Compiled from `downsample.wgsl`; `examples/shaders/tests/binaries.rs` checks that they match.
const SHADER: &[u8] = include_bytes!("downsample.spv");
/// Width and height of a workgroup in texels.
pub(super) const GROUP: u32 = 8;
const COMPUTE: vk::ShaderStageFlags = vk::ShaderStageFlags::COMPUTE;
const KINDS: [vk::DescriptorType; 2] = [vk::DescriptorType::SAMPLED_IMAGE, vk::DescriptorType::STORAGE_IMAGE];

/// Storage formats that need no feature. Their SPIR-V numbers are 1, 2, and so on.
const FORMATS: [vk::Format; 5] = [
    vk::Format::R32G32B32A32_SFLOAT,
    vk::Format::R16G16B16A16_SFLOAT,
    vk::Format::R32_SFLOAT,
    vk::Format::R8G8B8A8_UNORM,
    vk::Format::R8G8B8A8_SNORM,
];

pub(super) fn is_known(format: vk::Format) -> bool {
    FORMATS.contains(&format)
}

/// Layouts, and a pipeline for each format. Null until created.
#[derive(Default)]
pub(crate) struct Downsampler {
    set_layout: vk::DescriptorSetLayout,
    pub(super) layout: vk::PipelineLayout,
    pipelines: [vk::Pipeline; FORMATS.len()],
}

/// Returns the words of the shader, patched to write images of the format with this SPIR-V number.
fn words(number: u32) -> Vec<u32> {
    const HEADER: usize = 5;
    const OP_TYPE_IMAGE: u32 = 25;
    /// The offset of the operand `Sampled`; `Format` follows it.
    const SAMPLED: usize = 7;
    let mut words: Vec<u32> = SHADER
        .chunks_exact(4)
        .map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        .collect();
    let mut at = HEADER;
    while let Some(&word) = words.get(at) {
        if word & 0xffff == OP_TYPE_IMAGE && words[at + SAMPLED] == 2 {
            words[at + SAMPLED + 1] = number;
        }
        // Each instruction starts with its length in words. 16 bits fit a `usize`.
        at += usize::try_from(word >> 16).unwrap_or(usize::MAX).max(1);
    }
    words
}

fn or<T>(call: &'static str, made: Result<T, vk::Result>) -> Result<T, DriverError> {
    made.map_err(|result| DriverError { call, result })
}

impl Downsampler {
    /// Returns the pipeline for a format.
    ///
    /// # Safety
    /// The device is live, and the same in all calls.
    pub(super) unsafe fn pipeline(
        &mut self,
        device: &ash::Device,
        format: vk::Format,
    ) -> Result<vk::Pipeline, DriverError> {
        let at =
            FORMATS.iter().position(|known| *known == format).expect("the caller has checked the format");
        if self.pipelines[at] != vk::Pipeline::null() {
            return Ok(self.pipelines[at]);
        }
        if self.set_layout == vk::DescriptorSetLayout::null() {
            let binding = |number| {
                let binding = vk::DescriptorSetLayoutBinding::default().binding(number).stage_flags(COMPUTE);
                binding.descriptor_count(1)
            };
            let bindings = [binding(0).descriptor_type(KINDS[0]), binding(1).descriptor_type(KINDS[1])];
            let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
            // SAFETY: the create-info is valid; the caller guarantees the device, here and below.
            let made = unsafe { device.create_descriptor_set_layout(&info, None) };
            self.set_layout = or("vkCreateDescriptorSetLayout", made)?;
        }
        if self.layout == vk::PipelineLayout::null() {
            let sets = [self.set_layout];
            let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets);
            // SAFETY: the set layout is live.
            let made = unsafe { device.create_pipeline_layout(&info, None) };
            self.layout = or("vkCreatePipelineLayout", made)?;
        }
        let words = words(u32::try_from(at + 1).unwrap_or(0));
        let info = vk::ShaderModuleCreateInfo::default().code(&words);
        // SAFETY: the words are a valid module, which needs no feature for any of the formats.
        let made = unsafe { device.create_shader_module(&info, None) };
        let module = or("vkCreateShaderModule", made)?;
        let stage = vk::PipelineShaderStageCreateInfo::default().stage(COMPUTE).module(module);
        let info =
            vk::ComputePipelineCreateInfo::default().stage(stage.name(c"sublet_mips")).layout(self.layout);
        // SAFETY: the module has this entry point, and the layout has both bindings.
        let made = unsafe { device.create_compute_pipelines(vk::PipelineCache::null(), &[info], None) };
        // SAFETY: pipelines no longer need it.
        unsafe { device.destroy_shader_module(module, None) };
        let made = or("vkCreateComputePipelines", made.map_err(|(_, result)| result))?;
        self.pipelines[at] = made[0];
        Ok(made[0])
    }

    /// # Safety
    /// The device is live, the same as before, and no longer uses the objects. The value is not used afterwards.
    pub(crate) unsafe fn destroy(&mut self, device: &ash::Device) {
        for pipeline in self.pipelines {
            // SAFETY: the caller's promise; null handles are ignored.
            unsafe { device.destroy_pipeline(pipeline, None) };
        }
        // SAFETY: as above.
        unsafe { device.destroy_pipeline_layout(self.layout, None) };
        // SAFETY: as above.
        unsafe { device.destroy_descriptor_set_layout(self.set_layout, None) };
    }
}

/// Descriptor sets for the mips of an image, destroyed when the list is done.
pub(super) struct MipSets {
    core: Arc<DeviceCore>,
    pool: vk::DescriptorPool,
}

impl MipSets {
    /// Creates a set for each pair of views: source mip and destination mip.
    ///
    /// # Safety
    /// The pipeline was created, and the views outlive the sets.
    pub(super) unsafe fn new(
        core: &Arc<DeviceCore>,
        pairs: &[[vk::ImageView; 2]],
    ) -> Result<(Self, Vec<vk::DescriptorSet>), DriverError> {
        let device = core.api.device();
        let count = u32::try_from(pairs.len()).unwrap_or(u32::MAX);
        let sizes = KINDS.map(|ty| vk::DescriptorPoolSize { ty, descriptor_count: count });
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(count).pool_sizes(&sizes);
        // SAFETY: the device is live as long as the core.
        let pool = or("vkCreateDescriptorPool", unsafe { device.create_descriptor_pool(&info, None) })?;
        let made = Self { core: Arc::clone(core), pool };
        let layouts = vec![core.downsampler.lock().set_layout; pairs.len()];
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
        // SAFETY: the pool is new and has this many sets; the caller guarantees the layout.
        let sets = or("vkAllocateDescriptorSets", unsafe { device.allocate_descriptor_sets(&info) })?;
        for (&set, &[from, to]) in sets.iter().zip(pairs) {
            let image = |image_view, image_layout| {
                [vk::DescriptorImageInfo { image_view, image_layout, ..Default::default() }]
            };
            let from = image(from, vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL);
            let to = image(to, vk::ImageLayout::GENERAL);
            let write = |number: u32| vk::WriteDescriptorSet::default().dst_set(set).dst_binding(number);
            let writes = [
                write(0).descriptor_type(KINDS[0]).image_info(&from),
                write(1).descriptor_type(KINDS[1]).image_info(&to),
            ];
            // SAFETY: the set was just allocated and has these bindings; the caller guarantees the views.
            unsafe { device.update_descriptor_sets(&writes, &[]) };
        }
        Ok((made, sets))
    }
}

impl Drop for MipSets {
    fn drop(&mut self) {
        // SAFETY: the list with the sets is done, or was never submitted.
        unsafe { self.core.api.device().destroy_descriptor_pool(self.pool, None) };
    }
}
