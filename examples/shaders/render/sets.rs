//! Samplers, and layouts of descriptor sets and pipelines.

use ash::vk;
use sublet_frame::{Frames, PipelineLayout};

use crate::keeper::Keeper;
use sublet_examples::Result;

pub(crate) struct Layouts {
    /// Set 0 belongs to a pass, set 1 to an object.
    pub(crate) scene: PipelineLayout,
    /// For post-processing, and for the pass that reads three images.
    pub(crate) post: PipelineLayout,
    pub(crate) develop: PipelineLayout,
    pub(crate) repeating: vk::Sampler,
    pub(crate) clamped: vk::Sampler,
    pub(crate) comparing: vk::Sampler,
}

impl Layouts {
    pub(crate) fn new(keeper: &Keeper<'_>, frames: &Frames) -> Result<Self> {
        const UNIFORM: vk::DescriptorType = vk::DescriptorType::UNIFORM_BUFFER;
        const SAMPLER: vk::DescriptorType = vk::DescriptorType::SAMPLER;
        const IMAGE: vk::DescriptorType = vk::DescriptorType::SAMPLED_IMAGE;
        let smooth = vk::SamplerCreateInfo::default()
            .mag_filter(vk::Filter::LINEAR)
            .min_filter(vk::Filter::LINEAR)
            .mipmap_mode(vk::SamplerMipmapMode::LINEAR)
            .max_lod(vk::LOD_CLAMP_NONE);
        let edge = vk::SamplerAddressMode::CLAMP_TO_EDGE;
        let clamped = smooth.address_mode_u(edge).address_mode_v(edge);
        let comparing = vk::SamplerCreateInfo::default()
            .address_mode_u(edge)
            .address_mode_v(edge)
            .compare_enable(true)
            .compare_op(vk::CompareOp::LESS_OR_EQUAL);
        let layout = |sets: &[&[vk::DescriptorType]]| layout(frames, sets);
        Ok(Self {
            scene: layout(&[
                &[UNIFORM, SAMPLER, SAMPLER, IMAGE, IMAGE, SAMPLER, IMAGE],
                &[UNIFORM, IMAGE, IMAGE],
            ])?,
            post: layout(&[&[UNIFORM, SAMPLER, IMAGE]])?,
            develop: layout(&[&[UNIFORM, SAMPLER, IMAGE, IMAGE, IMAGE]])?,
            // SAFETY: the create-info is valid and needs no feature; here and below.
            repeating: unsafe { keeper.sampler(&smooth) }?,
            // SAFETY: as above.
            clamped: unsafe { keeper.sampler(&clamped) }?,
            // SAFETY: as above.
            comparing: unsafe { keeper.sampler(&comparing) }?,
        })
    }
}

/// Creates the bindings of each set: constants are visible to both stages, everything else to fragments.
fn layout(frames: &Frames, sets: &[&[vk::DescriptorType]]) -> Result<PipelineLayout> {
    let binding = |(number, &kind): (u32, &vk::DescriptorType)| {
        let constants = kind == vk::DescriptorType::UNIFORM_BUFFER;
        let vertex = if constants { vk::ShaderStageFlags::VERTEX } else { vk::ShaderStageFlags::empty() };
        vk::DescriptorSetLayoutBinding::default()
            .binding(number)
            .descriptor_type(kind)
            .descriptor_count(1)
            .stage_flags(vk::ShaderStageFlags::FRAGMENT | vertex)
    };
    let sets: Vec<Vec<_>> = sets.iter().map(|kinds| (0..).zip(*kinds).map(binding).collect()).collect();
    let set = |bindings| vk::DescriptorSetLayoutCreateInfo::default().bindings(bindings);
    let infos: Vec<_> = sets.iter().map(|bindings| set(bindings)).collect();
    // SAFETY: the create-infos are valid.
    Ok(unsafe { frames.create_pipeline_layout(&infos, &[]) }?)
}
