//! The pipelines, from two WGSL shaders.

use std::ffi::CStr;

use ash::vk;

use crate::keeper::Keeper;
use crate::meshes::Vertex;
use crate::passes::{DEPTH, HDR, Pass, SRGB};
use crate::sets::Layouts;
use sublet_examples::Result;
use sublet_shader_examples::compile;

pub(crate) struct Pipelines {
    pub(crate) shadow: vk::Pipeline,
    pub(crate) object: vk::Pipeline,
    pub(crate) floor: vk::Pipeline,
    pub(crate) sky: vk::Pipeline,
    pub(crate) blur: vk::Pipeline,
    pub(crate) bright: vk::Pipeline,
    pub(crate) down: vk::Pipeline,
    pub(crate) up: vk::Pipeline,
    pub(crate) develop: vk::Pipeline,
    pub(crate) shrink: vk::Pipeline,
}

/// The differences between the pipelines.
struct Kind<'a> {
    pass: Pass,
    vertex: &'a CStr,
    fragment: Option<&'a CStr>,
    /// Number of vertex attributes.
    attributes: usize,
    writes_depth: bool,
}

impl Pipelines {
    pub(crate) fn new(keeper: &Keeper<'_>, layouts: &Layouts) -> Result<Self> {
        let scene_shader = compile(include_str!("shaders/scene.wgsl"))?;
        let post_shader = compile(include_str!("shaders/post.wgsl"))?;
        let scene = |pass, vertex, fragment, attributes, writes_depth| {
            let kind = Kind { pass, vertex, fragment, attributes, writes_depth };
            pipeline(keeper, &scene_shader, layouts.scene.handle(), &kind)
        };
        let post = |pass, fragment| {
            let (vertex, fragment) = (c"vs_post", Some(fragment));
            let kind = Kind { pass, vertex, fragment, attributes: 0, writes_depth: false };
            let layout = if pass == Pass::Develop { &layouts.develop } else { &layouts.post };
            pipeline(keeper, &post_shader, layout.handle(), &kind)
        };
        Ok(Self {
            shadow: scene(Pass::Shadow, c"vs_shadow", None, 1, true)?,
            // Also used for the mirror, whose pass has the same formats.
            object: scene(Pass::Scene, c"vs_object", Some(c"fs_object"), 3, true)?,
            floor: scene(Pass::Scene, c"vs_object", Some(c"fs_floor"), 3, true)?,
            sky: scene(Pass::Scene, c"vs_sky", Some(c"fs_sky"), 0, false)?,
            blur: post(Pass::Blur, c"fs_blur")?,
            bright: post(Pass::Down(0), c"fs_bright")?,
            down: post(Pass::Down(1), c"fs_down")?,
            up: post(Pass::Up(0), c"fs_up")?,
            develop: post(Pass::Develop, c"fs_develop")?,
            shrink: post(Pass::Shrink, c"fs_shrink")?,
        })
    }
}

fn pipeline(
    keeper: &Keeper<'_>,
    code: &[u32],
    layout: vk::PipelineLayout,
    kind: &Kind<'_>,
) -> Result<vk::Pipeline> {
    let device = keeper.context.device();
    let info = vk::ShaderModuleCreateInfo::default().code(code);
    // SAFETY: the compiler has validated the module.
    let module = unsafe { device.create_shader_module(&info, None) }?;
    let stage =
        |stage, name| vk::PipelineShaderStageCreateInfo::default().stage(stage).module(module).name(name);
    let mut stages = vec![stage(vk::ShaderStageFlags::VERTEX, kind.vertex)];
    stages.extend(kind.fragment.map(|name| stage(vk::ShaderStageFlags::FRAGMENT, name)));

    let stride = u32::try_from(size_of::<Vertex>())?;
    let bindings = [vk::VertexInputBindingDescription::default().stride(stride)];
    let (three, two) = (vk::Format::R32G32B32_SFLOAT, vk::Format::R32G32_SFLOAT);
    let attribute = |location, format, offset| vk::VertexInputAttributeDescription {
        location,
        format,
        offset,
        ..Default::default()
    };
    let attributes = [attribute(0, three, 0), attribute(1, three, 12), attribute(2, two, 24)];
    let attributes = &attributes[..kind.attributes];
    let mut vertices = vk::PipelineVertexInputStateCreateInfo::default();
    if kind.attributes > 0 {
        vertices = vertices.vertex_binding_descriptions(&bindings).vertex_attribute_descriptions(attributes);
    }
    let triangles =
        vk::PipelineInputAssemblyStateCreateInfo::default().topology(vk::PrimitiveTopology::TRIANGLE_LIST);
    let viewport = vk::PipelineViewportStateCreateInfo::default().viewport_count(1).scissor_count(1);
    let shadow = kind.pass == Pass::Shadow;
    let raster = vk::PipelineRasterizationStateCreateInfo::default()
        .line_width(1.0)
        .depth_bias_enable(shadow)
        .depth_bias_constant_factor(2.0)
        .depth_bias_slope_factor(2.0);
    let samples =
        vk::PipelineMultisampleStateCreateInfo::default().rasterization_samples(vk::SampleCountFlags::TYPE_1);
    let depth = vk::PipelineDepthStencilStateCreateInfo::default()
        .depth_test_enable(matches!(kind.pass, Pass::Shadow | Pass::Scene))
        .depth_write_enable(kind.writes_depth)
        .depth_compare_op(vk::CompareOp::LESS_OR_EQUAL);
    // Only the upward bloom passes blend.
    let colours = [vk::PipelineColorBlendAttachmentState::default()
        .color_write_mask(vk::ColorComponentFlags::RGBA)
        .blend_enable(matches!(kind.pass, Pass::Up(_)))
        .src_color_blend_factor(vk::BlendFactor::ONE)
        .dst_color_blend_factor(vk::BlendFactor::ONE)];
    let blend =
        vk::PipelineColorBlendStateCreateInfo::default().attachments(if shadow { &[] } else { &colours });
    let formats = [if matches!(kind.pass, Pass::Develop | Pass::Shrink) { SRGB } else { HDR }];
    let mut rendering = vk::PipelineRenderingCreateInfo::default();
    if !shadow {
        rendering = rendering.color_attachment_formats(&formats);
    }
    if matches!(kind.pass, Pass::Shadow | Pass::Scene) {
        rendering = rendering.depth_attachment_format(DEPTH);
    }
    let dynamic = [vk::DynamicState::VIEWPORT, vk::DynamicState::SCISSOR];
    let dynamic = vk::PipelineDynamicStateCreateInfo::default().dynamic_states(&dynamic);
    let info = vk::GraphicsPipelineCreateInfo::default()
        .stages(&stages)
        .vertex_input_state(&vertices)
        .input_assembly_state(&triangles)
        .viewport_state(&viewport)
        .rasterization_state(&raster)
        .multisample_state(&samples)
        .depth_stencil_state(&depth)
        .color_blend_state(&blend)
        .dynamic_state(&dynamic)
        .layout(layout)
        .push_next(&mut rendering);
    // SAFETY: the layout matches the shaders' declarations, and the attachments have these formats.
    let made = unsafe { keeper.pipeline(&info) };
    // SAFETY: a pipeline does not need its module after its creation.
    unsafe { device.destroy_shader_module(module, None) };
    made
}
