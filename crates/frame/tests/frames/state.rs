//! Dynamic state and labels.

use ash::vk;
use sublet_descriptors::BindPoint;
use sublet_frame::{Attachment, CommandList, Image, ListError, RenderingInfo, ViewportInfo};

use crate::fixture::{FrameFixture, PROFILES, image_info};
use crate::make::{begin_list, end_with};
use crate::paint::{self, PipelineInfo};

const AREA: vk::Rect2D =
    vk::Rect2D { offset: vk::Offset2D { x: 0, y: 0 }, extent: vk::Extent2D { width: 8, height: 8 } };

/// Draws with the current state. The list stays usable.
fn draw(list: &mut CommandList, image: &Image) {
    let colors = [Some(Attachment::clear(image))];
    unsafe { list.begin_rendering(&RenderingInfo::new(image.extent(0), &colors, None)) }.unwrap();
    unsafe { list.draw(0..3, 0..1) }.unwrap();
    list.end_rendering().unwrap();
}

#[test]
fn pipelines_draw_once_all_dynamic_state_is_set() {
    let mut without_culling = 0;
    for profile in ["lavapipe", "nvidia-gtx-1060", "arm-mali-g52"] {
        let mut fixture = FrameFixture::new(profile, 1);
        let culls = fixture.gpu.api_version() >= vk::API_VERSION_1_3;
        let mut dynamic = vec![
            vk::DynamicState::VIEWPORT,
            vk::DynamicState::SCISSOR,
            vk::DynamicState::DEPTH_BIAS,
            vk::DynamicState::BLEND_CONSTANTS,
            vk::DynamicState::STENCIL_REFERENCE,
        ];
        if culls {
            dynamic.extend([vk::DynamicState::CULL_MODE, vk::DynamicState::FRONT_FACE]);
        }
        let info = image_info(vk::Format::R8G8B8A8_UNORM, (8, 8), 1, 1);
        let image = fixture.image(&info.usage(info.usage | vk::ImageUsageFlags::COLOR_ATTACHMENT));
        let corners = fixture.buffer(64);
        let device = fixture.gpu.device().clone();
        let frames = fixture.frames.as_mut().unwrap();
        let layout = unsafe { frames.create_pipeline_layout(&[], &[]) }.unwrap();
        let shape = PipelineInfo {
            shader: include_bytes!("paint.spv"),
            stages: [c"corner", c"paint"],
            input: vk::VertexInputBindingDescription::default().stride(4),
            attribute: vk::Format::R32_UINT,
            depth: vk::Format::UNDEFINED,
            dynamic: &dynamic,
        };
        let pipeline = paint::pipeline(&device, frames, layout.handle(), &shape);
        let mut list = begin_list(frames);
        unsafe { list.bind_pipeline(BindPoint::Graphics, pipeline, &layout) }.unwrap();
        list.bind_vertex_buffer(0, &corners, 0).unwrap();
        // Each draw lacks the next state in this order.
        let lacks = |list: &mut CommandList, name: &str| {
            draw(list, &image);
            let messages = fixture.gpu.take_messages();
            assert_eq!(messages.len(), 1, "{profile}, {name}: {messages:#?}");
            assert!(messages[0].to_string().contains(name), "{messages:#?}");
        };
        lacks(&mut list, "viewport");
        let viewport = ViewportInfo { flip: true, min_depth: 1.0, max_depth: 0.0, ..ViewportInfo::new(AREA) };
        list.set_viewport(viewport).unwrap();
        lacks(&mut list, "depth bias");
        list.set_depth_bias(1.0, 0.0, 2.0).unwrap();
        lacks(&mut list, "blend constants");
        list.set_blend_constants([0.5; 4]).unwrap();
        lacks(&mut list, "stencil reference");
        list.set_stencil_reference(vk::StencilFaceFlags::FRONT_AND_BACK, 7).unwrap();
        if culls {
            lacks(&mut list, "cull mode");
            list.set_cull_mode(vk::CullModeFlags::BACK).unwrap();
            lacks(&mut list, "front face");
            list.set_front_face(vk::FrontFace::CLOCKWISE).unwrap();
        } else {
            let error = ListError::NotEnabled { feature: "extendedDynamicState" };
            assert_eq!(list.set_cull_mode(vk::CullModeFlags::BACK), Err(error.clone()));
            assert_eq!(list.set_front_face(vk::FrontFace::CLOCKWISE), Err(error));
            without_culling += 1;
        }
        draw(&mut list, &image);
        drop(list);
        unsafe { device.destroy_pipeline(pipeline, None) };
    }
    assert!(without_culling > 0, "one of the profiles is below Vulkan 1.3");
}

#[test]
fn invalid_viewports_are_rejected_and_record_nothing() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let frames = fixture.frames();
    let mut list = begin_list(frames);
    let viewport = ViewportInfo::new(AREA);
    for (min, max) in [(-0.1, 1.0), (0.0, 1.1), (f32::NAN, 1.0), (0.0, f32::INFINITY)] {
        let refused = list.set_viewport(ViewportInfo { min_depth: min, max_depth: max, ..viewport });
        assert!(matches!(refused, Err(ListError::DepthRange { .. })), "{refused:?}");
    }
    let at =
        |x, width| vk::Rect2D { offset: vk::Offset2D { x, y: 0 }, extent: vk::Extent2D { width, height: 1 } };
    for scissor in [at(-1, 4), at(0, 0), at(i32::MAX, 1), at(1, u32::MAX)] {
        let refused = list.set_viewport(ViewportInfo { scissor: Some(scissor), ..viewport });
        assert!(matches!(refused, Err(ListError::OutOfRange { .. })), "{refused:?}");
    }
    let scissor = Some(at(100, i32::MAX as u32 - 100));
    list.set_viewport(ViewportInfo { scissor, ..viewport }).unwrap();
    let none = vk::StencilFaceFlags::empty();
    assert!(matches!(list.set_stencil_reference(none, 1), Err(ListError::OutOfRange { .. })));
    let clamp = ListError::NotEnabled { feature: "depthBiasClamp" };
    assert_eq!(list.set_depth_bias(1.0, 0.5, 1.0), Err(clamp));
}

#[test]
fn viewports_are_flipped_if_the_device_supports_it() {
    use sublet::sim;
    use sublet_frame::{Features, Frames, FramesCreateInfo, QueueInfo};

    let profile = sim::Profile::by_name("nvidia-gtx-1060").unwrap();
    let gpu = sim::Gpu::builder(profile).api_version(vk::API_VERSION_1_0).build();
    let (allocator, _descriptors) = crate::fixture::parts(&gpu);
    let queues = [QueueInfo { queue: gpu.queue(), family: gpu.queue_family_index() }];
    let (instance, device, physical) = (gpu.instance(), gpu.device(), gpu.physical_device());
    for maintenance1 in [false, true] {
        let info = FramesCreateInfo {
            features: Features { maintenance1, ..Features::default() },
            ..FramesCreateInfo::new(instance, device, physical, gpu.api_version(), &allocator, &queues)
        };
        let mut frames = unsafe { Frames::new(&info) }.unwrap();
        let mut list = begin_list(&mut frames);
        let flipped = ViewportInfo { flip: true, ..ViewportInfo::new(AREA) };
        assert_eq!(list.set_viewport(flipped).is_ok(), maintenance1);
        list.set_viewport(AREA).unwrap();
    }
    gpu.assert_silent();
}

#[test]
fn only_open_labels_can_end() {
    for profile in PROFILES {
        let mut fixture = FrameFixture::new(profile, 1);
        let frames = fixture.frames();
        let mut list = begin_list(frames);
        assert_eq!(list.end_label(), Err(ListError::NoLabel));
        list.begin_label("outer");
        list.begin_label("inner\0 and text after a NUL");
        list.end_label().unwrap();
        list.end_label().unwrap();
        assert_eq!(list.end_label(), Err(ListError::NoLabel));
        end_with(frames, list);
    }
}
