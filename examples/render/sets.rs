//! The layouts of the descriptor sets, the samplers, and how a set is written.

use ash::vk;
use sublet::descriptor::{SetLayout, TransientSets};
use sublet::upload::Upload;

use crate::keeper::Keeper;
use crate::support::{Context, Result};

/// What is at a binding of a set.
pub(crate) enum Bound<'a> {
    Uniform(&'a Upload),
    Sampler(vk::Sampler),
    Image(vk::ImageView),
    /// The shaders of the pass do not look there.
    Nothing,
}

pub(crate) struct Layouts {
    /// Of a whole pass.
    pub(crate) frame: SetLayout,
    pub(crate) object: SetLayout,
    /// Of what comes after the scene.
    pub(crate) post: SetLayout,
    pub(crate) repeating: vk::Sampler,
    pub(crate) clamped: vk::Sampler,
    pub(crate) comparing: vk::Sampler,
}

impl Layouts {
    pub(crate) fn new(keeper: &Keeper<'_>) -> Result<Self> {
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
        Ok(Self {
            frame: layout(keeper, &[UNIFORM, SAMPLER, SAMPLER, IMAGE, IMAGE, SAMPLER, IMAGE])?,
            object: layout(keeper, &[UNIFORM, IMAGE, IMAGE])?,
            post: layout(keeper, &[UNIFORM, SAMPLER, IMAGE, IMAGE, IMAGE])?,
            // SAFETY: the create-info is valid and needs no feature; here and below.
            repeating: unsafe { keeper.sampler(&smooth) }?,
            // SAFETY: as above.
            clamped: unsafe { keeper.sampler(&clamped) }?,
            // SAFETY: as above.
            comparing: unsafe { keeper.sampler(&comparing) }?,
        })
    }
}

fn layout(keeper: &Keeper<'_>, kinds: &[vk::DescriptorType]) -> Result<SetLayout> {
    let stages = vk::ShaderStageFlags::VERTEX | vk::ShaderStageFlags::FRAGMENT;
    let binding = |(number, &kind)| {
        vk::DescriptorSetLayoutBinding::default()
            .binding(number)
            .descriptor_type(kind)
            .descriptor_count(1)
            .stage_flags(stages)
    };
    let bindings: Vec<_> = (0..).zip(kinds).map(binding).collect();
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    // SAFETY: the create-info is valid.
    let handle = unsafe { keeper.set_layout(&info) }?;
    // SAFETY: the layout was made from it.
    Ok(unsafe { SetLayout::new(handle, &info) }?)
}

/// A set for this frame. What it names has to live until the frame is done.
pub(crate) fn set(
    context: &Context,
    sets: &mut TransientSets,
    layout: &SetLayout,
    bound: &[Bound<'_>],
) -> Result<vk::DescriptorSet> {
    // SAFETY: the layout is live, and the set is used in this frame only.
    let set = unsafe { sets.allocate(layout) }?;
    for (binding, bound) in (0..).zip(bound) {
        let write = vk::WriteDescriptorSet::default().dst_set(set).dst_binding(binding);
        let image = vk::DescriptorImageInfo::default();
        let (mut buffers, mut images) = ([vk::DescriptorBufferInfo::default()], [image]);
        let write = match *bound {
            Bound::Uniform(upload) => {
                buffers[0] = upload.descriptor_info();
                write.descriptor_type(vk::DescriptorType::UNIFORM_BUFFER).buffer_info(&buffers)
            }
            Bound::Sampler(sampler) => {
                images[0] = image.sampler(sampler);
                write.descriptor_type(vk::DescriptorType::SAMPLER).image_info(&images)
            }
            Bound::Image(view) => {
                images[0] = image.image_view(view).image_layout(vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL);
                write.descriptor_type(vk::DescriptorType::SAMPLED_IMAGE).image_info(&images)
            }
            Bound::Nothing => continue,
        };
        // SAFETY: the set was just allocated, and what it names lives until the frame is done.
        unsafe { context.device().update_descriptor_sets(&[write], &[]) };
    }
    Ok(set)
}
