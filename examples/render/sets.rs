//! The samplers, and the layouts of descriptor sets and pipelines.

use ash::vk;
use sublet::descriptor::{DescriptorDevice, SetLayout};
use sublet_frame::PipelineLayout;

use crate::keeper::Keeper;
use crate::support::Result;

pub(crate) struct Layouts {
    /// Set 0 is of a whole pass, set 1 of an object.
    pub(crate) scene: PipelineLayout,
    /// Of what comes after the scene, and of the pass that reads three images.
    pub(crate) post: PipelineLayout,
    pub(crate) develop: PipelineLayout,
    pub(crate) repeating: vk::Sampler,
    pub(crate) clamped: vk::Sampler,
    pub(crate) comparing: vk::Sampler,
}

impl Layouts {
    pub(crate) fn new(keeper: &Keeper<'_>, descriptors: &DescriptorDevice) -> Result<Self> {
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
        let layout = |sets: &[&[vk::DescriptorType]]| layout(keeper, descriptors, sets);
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

fn layout(
    keeper: &Keeper<'_>,
    descriptors: &DescriptorDevice,
    sets: &[&[vk::DescriptorType]],
) -> Result<PipelineLayout> {
    let mut layouts = Vec::new();
    for kinds in sets {
        let binding = |(number, &kind)| {
            let mut stages = vk::ShaderStageFlags::FRAGMENT;
            if kind == vk::DescriptorType::UNIFORM_BUFFER {
                stages |= vk::ShaderStageFlags::VERTEX;
            }
            let binding = vk::DescriptorSetLayoutBinding::default().binding(number).descriptor_type(kind);
            binding.descriptor_count(1).stage_flags(stages)
        };
        let bindings: Vec<_> = (0..).zip(*kinds).map(binding).collect();
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        // SAFETY: the create-info is valid.
        let handle = unsafe { keeper.set_layout(&info) }?;
        // SAFETY: the layout was made from it.
        layouts.push(unsafe { SetLayout::new(handle, &info) }?);
    }
    let handles: Vec<_> = layouts.iter().map(SetLayout::handle).collect();
    let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&handles);
    // SAFETY: the set layouts are live.
    let handle = unsafe { keeper.pipeline_layout(&info) }?;
    // SAFETY: the layout was made from them; the keeper outlives the lists.
    Ok(unsafe { PipelineLayout::new(descriptors, handle, &layouts, &[]) }?)
}
