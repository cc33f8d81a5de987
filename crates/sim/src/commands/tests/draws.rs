//! Draws: what their closures find, what they touch, and what is refused.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use std::sync::Arc;

use ash::vk;
use ash::vk::Format as F;
use ash::vk::ImageAspectFlags as A;
use parking_lot::Mutex;
use vk::BufferUsageFlags as Usage;

use super::fixture::{CommandFixture, DST, Mapped};
use super::images::{GENERAL, info, whole};
use super::rendering::{area, clear, red, view};
use crate::Gpu;
use crate::facts::profiles::Profile;
use crate::objects::kernels::Kernel;

const GRAPHICS: vk::PipelineBindPoint = vk::PipelineBindPoint::GRAPHICS;

/// The options of a test's pipeline.
#[derive(Clone, Copy)]
pub(super) struct PipelineOptions {
    pub(super) color: F,
    pub(super) depth: F,
    pub(super) samples: vk::SampleCountFlags,
    pub(super) pass: vk::RenderPass,
    pub(super) views: u32,
    pub(super) dynamic: &'static [vk::DynamicState],
    pub(super) blends: bool,
}

impl PipelineOptions {
    pub(super) const PLAIN: Self = Self {
        color: F::R8_UNORM,
        depth: F::UNDEFINED,
        samples: vk::SampleCountFlags::TYPE_1,
        pass: vk::RenderPass::null(),
        views: 0,
        dynamic: &[],
        blends: false,
    };
}

/// A pipeline with the shaders `vertex` and `fragment`, two vertex buffers, and its layout.
pub(super) struct Pipeline {
    pub(super) layout: vk::PipelineLayout,
    pub(super) handle: vk::Pipeline,
}

impl Pipeline {
    pub(super) fn new(fixture: &CommandFixture, shape: &PipelineOptions) -> Self {
        Self::with(fixture, shape, &[])
    }

    pub(super) fn with(
        fixture: &CommandFixture,
        shape: &PipelineOptions,
        sets: &[vk::DescriptorSetLayout],
    ) -> Self {
        let device = fixture.device();
        let code = [0x0723_0203];
        let code = vk::ShaderModuleCreateInfo::default().code(&code);
        let module = unsafe { device.create_shader_module(&code, None) }.unwrap();
        let layout = vk::PipelineLayoutCreateInfo::default().set_layouts(sets);
        let layout = unsafe { device.create_pipeline_layout(&layout, None) }.unwrap();
        let stage =
            |stage, name| vk::PipelineShaderStageCreateInfo::default().stage(stage).module(module).name(name);
        // In the order of nobody.
        let stages = [
            stage(vk::ShaderStageFlags::FRAGMENT, c"fragment"),
            stage(vk::ShaderStageFlags::VERTEX, c"vertex"),
        ];
        let rate =
            |binding, stride, input_rate| vk::VertexInputBindingDescription { binding, stride, input_rate };
        let rates = [rate(0, 4, vk::VertexInputRate::VERTEX), rate(3, 2, vk::VertexInputRate::INSTANCE)];
        let input = vk::PipelineVertexInputStateCreateInfo::default().vertex_binding_descriptions(&rates);
        let raster = vk::PipelineRasterizationStateCreateInfo::default();
        let samples = vk::PipelineMultisampleStateCreateInfo::default().rasterization_samples(shape.samples);
        let depth = vk::PipelineDepthStencilStateCreateInfo::default()
            .depth_test_enable(true)
            .depth_write_enable(true);
        let blend = [vk::PipelineColorBlendAttachmentState::default()
            .blend_enable(shape.blends)
            .color_write_mask(vk::ColorComponentFlags::RGBA)];
        let blend = vk::PipelineColorBlendStateCreateInfo::default().attachments(&blend);
        let dynamic = vk::PipelineDynamicStateCreateInfo::default().dynamic_states(shape.dynamic);
        let colors = [shape.color];
        let mut rendering = vk::PipelineRenderingCreateInfo::default()
            .color_attachment_formats(&colors)
            .depth_attachment_format(shape.depth)
            .view_mask(shape.views);
        let mut info = vk::GraphicsPipelineCreateInfo::default()
            .stages(&stages)
            .vertex_input_state(&input)
            .rasterization_state(&raster)
            .multisample_state(&samples)
            .depth_stencil_state(&depth)
            .color_blend_state(&blend)
            .dynamic_state(&dynamic)
            .render_pass(shape.pass)
            .layout(layout);
        if shape.pass == vk::RenderPass::null() {
            info = info.push_next(&mut rendering);
        }
        let made = unsafe { device.create_graphics_pipelines(vk::PipelineCache::null(), &[info], None) };
        let handle = made.map_or(vk::Pipeline::null(), |made| made[0]);
        Self { layout, handle }
    }
}

/// Writes what the first vertex of the buffer of binding 0 begins with, all over the area.
fn paint(kernel: &mut Kernel<'_>) {
    let draw = kernel.draw().unwrap();
    let mut color = [0];
    draw.vertex_buffer(0).read(0, &mut color);
    let area = draw.area();
    let (left, top) = (area.offset.x.unsigned_abs(), area.offset.y.unsigned_abs());
    let to = draw.color(0);
    for layer in 0..to.layers() {
        for (x, y) in (0..area.extent.height).flat_map(|y| (0..area.extent.width).map(move |x| (x, y))) {
            to.write(0, layer, [left + x, top + y, 0], &color);
        }
    }
}

/// An image of 4 by 2 texels that is drawn to, with a view, and vertex and index buffers.
pub(super) struct Scene {
    pub(super) fixture: CommandFixture,
    pub(super) image: vk::Image,
    pub(super) shown: vk::ImageView,
    pub(super) vertices: Mapped,
    indices: Mapped,
    numbers: Mapped,
    pub(super) down: Mapped,
}

impl Scene {
    pub(super) fn new(judged: bool) -> Self {
        let profile = Profile::by_name("lavapipe").unwrap();
        let fixture = CommandFixture::of(Gpu::builder(profile).hazards(judged).build());
        let plain = info(F::R8_UNORM, 4, 2);
        let image = fixture.image(&plain.usage(plain.usage | vk::ImageUsageFlags::COLOR_ATTACHMENT));
        let shown = view(&fixture, image, F::R8_UNORM, A::COLOR);
        let vertices = fixture.mapped(64, Usage::VERTEX_BUFFER | Usage::TRANSFER_DST);
        let indices = fixture.mapped(16, Usage::INDEX_BUFFER | Usage::TRANSFER_DST);
        let numbers = fixture.mapped(64, Usage::INDIRECT_BUFFER | Usage::TRANSFER_DST);
        let down = fixture.mapped(8, DST);
        fixture.gpu.set_kernel("vertex", |_| {});
        fixture.gpu.set_kernel("fragment", paint);
        fixture.run(|_, commands| fixture.to_layout(commands, image, GENERAL));
        Self { fixture, image, shown, vertices, indices, numbers, down }
    }

    /// Begins rendering with a black image, and binds everything.
    fn begin(&self, commands: vk::CommandBuffer, pipeline: &Pipeline, first_vertex: u64) {
        let device = self.fixture.device();
        let colors = [clear(self.shown, red(0.0))];
        let info = vk::RenderingInfo::default().render_area(area(0, 0, 4, 2)).layer_count(1);
        unsafe {
            device.cmd_begin_rendering(commands, &info.color_attachments(&colors));
            device.cmd_bind_pipeline(commands, GRAPHICS, pipeline.handle);
            device.cmd_bind_vertex_buffers(commands, 0, &[self.vertices.buffer], &[first_vertex]);
            device.cmd_bind_vertex_buffers(commands, 3, &[self.vertices.buffer], &[48]);
            device.cmd_bind_index_buffer(commands, self.indices.buffer, 2, vk::IndexType::UINT16);
        }
    }

    fn copy_down(&self, commands: vk::CommandBuffer) {
        self.copy_from(commands, GENERAL);
    }

    pub(super) fn copy_from(&self, commands: vk::CommandBuffer, layout: vk::ImageLayout) {
        let (image, to) = (self.image, self.down.buffer);
        unsafe {
            self.fixture.device().cmd_copy_image_to_buffer(commands, image, layout, to, &[whole(4, 2)])
        };
    }

    /// The report of a command that fails.
    #[track_caller]
    fn refused(&self, rule: &str, record: impl FnOnce(&ash::Device, vk::CommandBuffer)) {
        self.fixture.begin();
        record(self.fixture.device(), self.fixture.commands);
        self.fixture.expect(rule);
        unsafe { self.fixture.device().cmd_end_rendering(self.fixture.commands) };
        self.fixture.gpu.take_messages();
        self.fixture.end();
    }
}

#[test]
fn a_draw_runs_its_shaders_in_order_on_what_is_bound() {
    let scene = Scene::new(false);
    let Scene { fixture, vertices, indices, down, .. } = &scene;
    let pipeline = Pipeline::new(fixture, &PipelineOptions::PLAIN);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    fixture.gpu.set_kernel("vertex", move |kernel| {
        let draw = kernel.draw().unwrap();
        assert_eq!((kernel.stage(), kernel.groups()), (vk::ShaderStageFlags::VERTEX, [1; 3]));
        log.lock().push((draw.vertices(), draw.instances(), draw.vertex_offset(), draw.indices()));
    });
    let log = Arc::clone(&seen);
    fixture.gpu.set_kernel("fragment", move |kernel| {
        assert_eq!(kernel.stage(), vk::ShaderStageFlags::FRAGMENT);
        log.lock().push((0..0, 0..0, 0, None));
        paint(kernel);
    });
    vertices.write(4, &[9]);
    indices.write(0, &[0, 0, 7, 0, 1, 0, 5, 1]);
    fixture.run(|device, commands| {
        scene.begin(commands, &pipeline, 4);
        unsafe {
            device.cmd_draw(commands, 3, 2, 1, 5);
            device.cmd_draw_indexed(commands, 2, 1, 1, -4, 0);
            device.cmd_draw(commands, 0, 1, 0, 0);
            device.cmd_end_rendering(commands);
        }
        scene.copy_down(commands);
    });
    fixture.expect_silence();
    let fragment = (0..0, 0..0, 0, None);
    let indexed = (1..3, 0..1, -4, Some(vec![1, 261]));
    assert_eq!(*seen.lock(), [(1..4, 5..7, 0, None), fragment.clone(), indexed, fragment]);
    assert_eq!(down.read(), [9; 8]);
}

#[test]
fn indirect_draws_read_their_numbers_when_they_run() {
    let scene = Scene::new(false);
    let Scene { fixture, numbers, .. } = &scene;
    let pipeline = Pipeline::new(fixture, &PipelineOptions::PLAIN);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    fixture.gpu.set_kernel("vertex", move |kernel| {
        let draw = kernel.draw().unwrap();
        log.lock().push((draw.vertices(), draw.instances(), draw.vertex_offset()));
    });
    fixture.run(|device, commands| {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        unsafe {
            device.cmd_update_buffer(commands, numbers.buffer, 4, &words(&[3, 1, 7, 2]));
            device.cmd_update_buffer(commands, numbers.buffer, 24, &words(&[4, 0, 0, 0]));
            device.cmd_update_buffer(commands, numbers.buffer, 44, &words(&[2, 3, 0, u32::MAX, 1]));
        }
        scene.begin(commands, &pipeline, 0);
        unsafe {
            device.cmd_draw_indirect(commands, numbers.buffer, 4, 2, 20);
            device.cmd_draw_indexed_indirect(commands, numbers.buffer, 44, 1, 0);
            device.cmd_draw_indirect(commands, numbers.buffer, 0, 0, 0);
            device.cmd_end_rendering(commands);
        }
    });
    fixture.expect_silence();
    assert_eq!(*seen.lock(), [(7..10, 2..3, 0), (0..2, 1..4, -1)]);
}

#[test]
fn indices_behind_the_buffer_are_left_out() {
    let scene = Scene::new(false);
    let pipeline = Pipeline::new(&scene.fixture, &PipelineOptions::PLAIN);
    let seen = Arc::new(Mutex::new(None));
    let log = Arc::clone(&seen);
    scene.fixture.gpu.set_kernel("vertex", move |kernel| *log.lock() = kernel.draw().unwrap().indices());
    scene.indices.write(0, &[0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0]);
    scene.numbers.write(0, &[u32::MAX, 1, 5, 0, 0].map(u32::to_le_bytes).concat());
    scene.fixture.run(|device, commands| {
        scene.begin(commands, &pipeline, 0);
        unsafe { device.cmd_draw_indexed_indirect(commands, scene.numbers.buffer, 0, 1, 0) };
        unsafe { device.cmd_end_rendering(commands) };
    });
    scene.fixture.expect("SUBLET-descriptor-range");
    // The buffer is bound from its second index on.
    assert_eq!(*seen.lock(), Some(vec![6, 7]));
}

#[test]
fn wrong_draws_are_reported() {
    use vk::DynamicState as State;
    let scene = Scene::new(false);
    let fixture = &scene.fixture;
    let plain = Pipeline::new(fixture, &PipelineOptions::PLAIN);
    scene.refused("VUID-vkCmdDraw-renderpass", |device, commands| unsafe {
        device.cmd_bind_pipeline(commands, GRAPHICS, plain.handle);
        device.cmd_draw(commands, 3, 1, 0, 0);
    });
    let begin = |commands| {
        let colors = [clear(scene.shown, red(0.0))];
        let info = vk::RenderingInfo::default().render_area(area(0, 0, 4, 2)).layer_count(1);
        unsafe { fixture.device().cmd_begin_rendering(commands, &info.color_attachments(&colors)) };
    };
    scene.refused("VUID-vkCmdDrawIndexed-None-08606", |device, commands| {
        begin(commands);
        unsafe { device.cmd_draw_indexed(commands, 3, 1, 0, 0, 0) };
    });
    scene.refused("VUID-vkCmdDraw-None-04007", |device, commands| unsafe {
        begin(commands);
        device.cmd_bind_pipeline(commands, GRAPHICS, plain.handle);
        device.cmd_bind_vertex_buffers(commands, 0, &[scene.vertices.buffer], &[0]);
        device.cmd_draw(commands, 3, 1, 0, 0);
    });
    scene.refused("VUID-vkCmdDrawIndexed-None-07312", |device, commands| unsafe {
        begin(commands);
        device.cmd_bind_pipeline(commands, GRAPHICS, plain.handle);
        device.cmd_bind_vertex_buffers(commands, 0, &[scene.vertices.buffer; 4], &[0; 4]);
        device.cmd_draw_indexed(commands, 3, 1, 0, 0, 0);
    });
    // 2 + 2 * 7 bytes of 16.
    scene.refused("VUID-vkCmdDrawIndexed-robustBufferAccess2-08798", |device, commands| {
        scene.begin(commands, &plain, 0);
        unsafe { device.cmd_draw_indexed(commands, 6, 1, 1, 0, 0) };
        fixture.expect_silence();
        unsafe { device.cmd_draw_indexed(commands, 7, 1, 1, 0, 0) };
    });
    let shape = |change: fn(&mut PipelineOptions)| {
        let mut shape = PipelineOptions::PLAIN;
        change(&mut shape);
        Pipeline::new(fixture, &shape)
    };
    for (pipeline, rule) in [
        (shape(|shape| shape.color = F::R8_UINT), "VUID-vkCmdDraw-dynamicRenderingUnusedAttachments-08910"),
        (shape(|shape| shape.depth = F::D16_UNORM), "VUID-vkCmdDraw-dynamicRenderingUnusedAttachments-08914"),
        (shape(|shape| shape.views = 1), "VUID-vkCmdDraw-viewMask-06178"),
        (
            shape(|shape| shape.samples = vk::SampleCountFlags::TYPE_4),
            "VUID-vkCmdDraw-multisampledRenderToSingleSampled-07285",
        ),
        (shape(|shape| shape.dynamic = &[State::VIEWPORT, State::SCISSOR]), "VUID-vkCmdDraw-None-07831"),
    ] {
        scene.refused(rule, |device, commands| {
            scene.begin(commands, &pipeline, 0);
            unsafe { device.cmd_draw(commands, 3, 1, 0, 0) };
        });
    }
    let sets = shape(|shape| shape.dynamic = &[State::VIEWPORT, State::SCISSOR]);
    let viewport = [vk::Viewport { width: 4.0, height: 2.0, ..Default::default() }];
    scene.refused("VUID-vkCmdDraw-None-07832", |device, commands| {
        scene.begin(commands, &sets, 0);
        unsafe { device.cmd_set_viewport(commands, 0, &viewport) };
        unsafe { device.cmd_draw(commands, 3, 1, 0, 0) };
        let first = fixture.reports();
        unsafe { device.cmd_set_scissor(commands, 0, &[vk::Rect2D::default()]) };
        unsafe { device.cmd_draw(commands, 3, 1, 0, 0) };
        fixture.expect_silence();
        assert_eq!(first, ["VUID-vkCmdDraw-None-07832"]);
        unsafe { device.cmd_bind_pipeline(commands, GRAPHICS, sets.handle) };
        // Once more for `refused`: nothing is inherited from the last time.
        unsafe { device.cmd_end_rendering(commands) };
        fixture.end();
        fixture.begin();
        scene.begin(commands, &sets, 0);
        unsafe { device.cmd_set_viewport(commands, 0, &viewport) };
        unsafe { device.cmd_draw(commands, 3, 1, 0, 0) };
    });
    assert_eq!(shape(|shape| shape.dynamic = &[State::LINE_WIDTH]).handle, vk::Pipeline::null());
    fixture.expect("SUBLET-unsupported-pipeline");
    let (numbers, vertices, indices) = (scene.numbers.buffer, scene.vertices.buffer, scene.indices.buffer);
    for (indexed, buffer, offset, count, stride, rule) in [
        (false, numbers, 2, 1, 0, "VUID-vkCmdDrawIndirect-offset-02710"),
        (false, numbers, 0, 2, 12, "VUID-vkCmdDrawIndirect-drawCount-00476"),
        (false, numbers, 52, 1, 16, "VUID-vkCmdDrawIndirect-drawCount-00487"),
        (true, numbers, 0, 4, 20, "VUID-vkCmdDrawIndexedIndirect-drawCount-00540"),
        (false, vertices, 0, 1, 16, "VUID-vkCmdDrawIndirect-buffer-02709"),
    ] {
        scene.refused(rule, |device, commands| {
            scene.begin(commands, &plain, 0);
            let draw =
                if indexed { ash::Device::cmd_draw_indexed_indirect } else { ash::Device::cmd_draw_indirect };
            unsafe { draw(device, commands, buffer, offset, count, stride) };
        });
    }
    scene.refused("VUID-vkCmdBindVertexBuffers-pBuffers-00627", |device, commands| {
        scene.begin(commands, &plain, 0);
        unsafe { device.cmd_bind_vertex_buffers(commands, 0, &[indices], &[0]) };
    });
    for (offset, rule) in
        [(1, "VUID-vkCmdBindIndexBuffer-offset-08783"), (16, "VUID-vkCmdBindIndexBuffer-offset-08782")]
    {
        scene.refused(rule, |device, commands| {
            scene.begin(commands, &plain, 0);
            unsafe { device.cmd_bind_index_buffer(commands, indices, offset, vk::IndexType::UINT16) };
        });
    }
}

#[test]
fn what_a_closure_asks_for_and_is_not_there_is_reported() {
    let scene = Scene::new(false);
    let pipeline = Pipeline::new(&scene.fixture, &PipelineOptions::PLAIN);
    scene.fixture.gpu.set_kernel("fragment", |kernel| {
        let draw = kernel.draw().unwrap();
        assert!(draw.vertex_buffer(1).is_empty());
        draw.vertex_buffer(0).write(0, &[1]);
        assert_eq!((draw.color(1).layers(), draw.depth().layers()), (0, 0));
        draw.color(0).write(0, 0, [4, 0, 0], &[1]);
        kernel.buffer(0, 0, 0);
    });
    scene.fixture.run(|device, commands| {
        scene.begin(commands, &pipeline, 0);
        unsafe { device.cmd_draw(commands, 3, 1, 0, 0) };
        unsafe { device.cmd_end_rendering(commands) };
    });
    let mut expected = vec!["SUBLET-descriptor-binding", "SUBLET-descriptor-read-only"];
    expected.extend(["SUBLET-descriptor-binding"; 2]);
    expected.extend(["SUBLET-descriptor-range", "SUBLET-descriptor-binding"]);
    assert_eq!(scene.fixture.reports(), expected);
}

/// The judge's reports for a frame in which `before` precedes rendering, and `behind` at its end.
fn judged(
    shape: &PipelineOptions,
    before: impl Fn(&Scene, vk::CommandBuffer),
    draws: impl Fn(&Scene, vk::CommandBuffer),
    behind: impl Fn(&Scene, vk::CommandBuffer),
) -> Vec<&'static str> {
    let scene = Scene::new(true);
    let pipeline = Pipeline::new(&scene.fixture, shape);
    scene.fixture.run(|device, commands| {
        before(&scene, commands);
        scene.begin(commands, &pipeline, 0);
        draws(&scene, commands);
        unsafe { device.cmd_end_rendering(commands) };
        behind(&scene, commands);
    });
    scene.fixture.reports()
}

fn barrier(
    scene: &Scene,
    commands: vk::CommandBuffer,
    src: (vk::PipelineStageFlags, vk::AccessFlags),
    dst: (vk::PipelineStageFlags, vk::AccessFlags),
) {
    let bar = [vk::MemoryBarrier::default().src_access_mask(src.1).dst_access_mask(dst.1)];
    let none = vk::DependencyFlags::empty();
    unsafe { scene.fixture.device().cmd_pipeline_barrier(commands, src.0, dst.0, none, &bar, &[], &[]) };
}

#[test]
fn the_judge_sees_what_draws_touch() {
    use vk::AccessFlags as Access;
    use vk::PipelineStageFlags as Stage;
    const RAW: &str = "SYNC-HAZARD-READ-AFTER-WRITE";
    let nothing = |_: &Scene, _: vk::CommandBuffer| {};
    let draw = |scene: &Scene, commands| unsafe { scene.fixture.device().cmd_draw(commands, 2, 1, 0, 0) };
    let twice = |scene: &Scene, commands| {
        draw(scene, commands);
        draw(scene, commands);
    };
    let copied = (Stage::TRANSFER, Access::TRANSFER_WRITE);
    let drawn = (Stage::COLOR_ATTACHMENT_OUTPUT, Access::COLOR_ATTACHMENT_WRITE);
    let read = (Stage::TRANSFER, Access::TRANSFER_READ);
    let blending = PipelineOptions { blends: true, ..PipelineOptions::PLAIN };
    // Attachments are in order among themselves, and with nothing else.
    assert_eq!(judged(&blending, nothing, twice, nothing), Vec::<&str>::new());
    assert_eq!(judged(&PipelineOptions::PLAIN, nothing, twice, Scene::copy_down), [RAW]);
    let right = |scene: &Scene, commands| {
        barrier(scene, commands, drawn, read);
        scene.copy_down(commands);
    };
    assert_eq!(judged(&blending, nothing, twice, right), Vec::<&str>::new());
    // Vertices, by their range: two of 4 bytes, and one instance of 2 at 48.
    for (offset, hazard) in [(0, true), (4, true), (8, false), (44, false), (48, true), (52, false)] {
        let fill = |scene: &Scene, commands| unsafe {
            scene.fixture.device().cmd_fill_buffer(commands, scene.vertices.buffer, offset, 4, 0);
        };
        let expected = if hazard { vec![RAW] } else { Vec::new() };
        assert_eq!(judged(&PipelineOptions::PLAIN, fill, draw, nothing), expected, "{offset}");
        let waits = |stage, access| {
            move |scene: &Scene, commands| {
                fill(scene, commands);
                barrier(scene, commands, copied, (stage, access));
            }
        };
        let right = waits(Stage::VERTEX_INPUT, Access::VERTEX_ATTRIBUTE_READ);
        assert_eq!(judged(&PipelineOptions::PLAIN, right, draw, nothing), Vec::<&str>::new(), "{offset}");
        let wrong = waits(Stage::VERTEX_SHADER, Access::SHADER_READ);
        assert_eq!(judged(&PipelineOptions::PLAIN, wrong, draw, nothing), expected, "{offset}");
    }
    // Indices: two of 2 bytes from 2 + 2 * 1 on. Vertices may be any.
    let indexed = |scene: &Scene, commands| unsafe {
        scene.fixture.device().cmd_draw_indexed(commands, 2, 1, 1, 0, 0);
    };
    for (offset, hazard) in [(0, false), (4, true), (8, false)] {
        let fill = |scene: &Scene, commands| unsafe {
            scene.fixture.device().cmd_fill_buffer(commands, scene.indices.buffer, offset, 4, 0);
        };
        let expected = if hazard { vec![RAW] } else { Vec::new() };
        assert_eq!(judged(&PipelineOptions::PLAIN, fill, indexed, nothing), expected, "{offset}");
    }
    let vertices = |scene: &Scene, commands| unsafe {
        scene.fixture.device().cmd_fill_buffer(commands, scene.vertices.buffer, 60, 4, 0);
    };
    assert_eq!(judged(&PipelineOptions::PLAIN, vertices, indexed, nothing), [RAW]);
    // Commands.
    let indirect = |scene: &Scene, commands| unsafe {
        scene.fixture.device().cmd_draw_indirect(commands, scene.numbers.buffer, 0, 2, 32);
    };
    for (offset, hazard) in [(12, true), (16, false), (32, true), (48, false)] {
        let fill = |scene: &Scene, commands| unsafe {
            scene.fixture.device().cmd_fill_buffer(commands, scene.numbers.buffer, offset, 4, 0);
        };
        let expected = if hazard { vec![RAW] } else { Vec::new() };
        assert_eq!(judged(&PipelineOptions::PLAIN, fill, indirect, nothing), expected, "{offset}");
    }
}

#[test]
fn shaders_of_draws_have_stages_of_their_own() {
    use vk::AccessFlags as Access;
    use vk::PipelineStageFlags as Stage;
    let run = |shader: &'static str, stage: Stage| {
        let scene = Scene::new(true);
        let buffer = scene.fixture.mapped(16, Usage::STORAGE_BUFFER | Usage::TRANSFER_DST);
        let device = scene.fixture.device().clone();
        let bindings = [vk::DescriptorSetLayoutBinding::default()
            .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
            .descriptor_count(1)
            .stage_flags(vk::ShaderStageFlags::ALL_GRAPHICS)];
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        let layouts = [unsafe { device.create_descriptor_set_layout(&info, None) }.unwrap()];
        let sizes = [vk::DescriptorPoolSize { ty: vk::DescriptorType::STORAGE_BUFFER, descriptor_count: 1 }];
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
        let pool = unsafe { device.create_descriptor_pool(&info, None) }.unwrap();
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
        let set = unsafe { device.allocate_descriptor_sets(&info) }.unwrap()[0];
        let infos = [vk::DescriptorBufferInfo { buffer: buffer.buffer, offset: 0, range: vk::WHOLE_SIZE }];
        let write = vk::WriteDescriptorSet::default()
            .dst_set(set)
            .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
            .buffer_info(&infos);
        unsafe { device.update_descriptor_sets(&[write], &[]) };
        let pipeline = Pipeline::with(&scene.fixture, &PipelineOptions::PLAIN, &layouts);
        scene.fixture.gpu.set_kernel("fragment", |_| {});
        scene.fixture.gpu.set_kernel(shader, |kernel| assert_eq!(kernel.buffer(0, 0, 0).read_u32(0), 5));
        scene.fixture.run(|device, commands| unsafe {
            device.cmd_fill_buffer(commands, buffer.buffer, 0, 16, 5);
            let copied = (Stage::TRANSFER, Access::TRANSFER_WRITE);
            barrier(&scene, commands, copied, (stage, Access::SHADER_READ));
            scene.begin(commands, &pipeline, 0);
            device.cmd_bind_descriptor_sets(commands, GRAPHICS, pipeline.layout, 0, &[set], &[]);
            device.cmd_draw(commands, 3, 1, 0, 0);
            device.cmd_end_rendering(commands);
        });
        scene.fixture.reports()
    };
    assert_eq!(run("vertex", Stage::VERTEX_SHADER), Vec::<&str>::new());
    assert_eq!(run("fragment", Stage::FRAGMENT_SHADER), Vec::<&str>::new());
    assert_eq!(run("vertex", Stage::FRAGMENT_SHADER), ["SYNC-HAZARD-READ-AFTER-WRITE"]);
    assert_eq!(run("fragment", Stage::COMPUTE_SHADER), ["SYNC-HAZARD-READ-AFTER-WRITE"]);
}
