//! Draws a triangle in a window: acquires swapchain images, renders to them with lists, and presents them. Resizes the
//! window half-way, which recreates the swapchain. Reads the last image back and checks it.
//!
//! `cargo run -p sublet-shader-examples --example swapchain`
//! `xvfb-run cargo run -p sublet-shader-examples --example swapchain -- --frames 100` runs without a screen

mod chain;
mod window;

use std::process::ExitCode;
use std::sync::Arc;

use ash::vk;
use sublet::Allocator;
use sublet_descriptors::{BindPoint, DescriptorDevice};
use sublet_frame::track::{Subresources, Use};
use sublet_frame::{
    Attachment, CommandList, Frames, FramesCreateInfo, Image, PipelineLayout, QueueInfo, RenderPassInfo,
    RenderingInfo, SemaphorePoint, SubmitInfo,
};

use chain::{Presentable, Swapchain};
use sublet_examples::{Arguments, Context, Result, frame_features, note};
use sublet_shader_examples::compile;
use window::Window;

const SIZE: vk::Extent2D = vk::Extent2D { width: 640, height: 480 };
const LATER: vk::Extent2D = vk::Extent2D { width: 400, height: 300 };
/// The stage that waits for an acquired image, and that renders to it.
const OUTPUT: vk::PipelineStageFlags2 = vk::PipelineStageFlags2::COLOR_ATTACHMENT_OUTPUT;

fn main() -> ExitCode {
    const HELP: &str = "
  --frames COUNT    how many images are presented: 300 by default";
    let count = |arguments: &mut Arguments| match arguments.value("--frames")? {
        Some(count) => Ok(count.parse().map_err(|error| format!("--frames {count}: {error}"))?),
        None => Ok(300),
    };
    sublet_examples::run_with(HELP, count, show)
}

fn show(context: &Context, wanted: u64) -> Result<()> {
    let Some(mut window) = Window::open(context, SIZE)? else {
        note("The device cannot present, or there is no display: nothing was shown.");
        return Ok(());
    };
    let (physical, family) = (context.physical_device(), context.queue_family_index());
    let (surfaces, surface) = (&window.functions, window.surface);
    // SAFETY: surface and physical device belong to one instance, and the device has the family.
    let presents = unsafe { surfaces.get_physical_device_surface_support(physical, family, surface) }?;
    if !presents {
        return Err("the queue does not present to the surface".into());
    }
    // SAFETY: the context created instance and device with this version and these flags, and outlives the allocator.
    let allocator = Arc::new(unsafe { Allocator::new(&context.allocator_info()) }?);
    // SAFETY: as above, for the descriptor device.
    let descriptors = unsafe { DescriptorDevice::new(&context.descriptor_info()) }?;
    let queues = [QueueInfo { queue: context.queue(), family }];
    let (instance, device) = (context.instance(), context.device());
    let info = FramesCreateInfo {
        features: frame_features(context),
        descriptors: Some(&descriptors),
        ..FramesCreateInfo::new(instance, device, physical, context.api_version(), &allocator, &queues)
    };
    // SAFETY: all handles belong to the context's device, which has these features, and outlive the frames.
    let mut frames = unsafe { Frames::new(&info) }?;
    // One for each frame in flight: the previous frame of a slot is done when the slot is reused.
    let mut acquired = Vec::new();
    for _ in 0..info.frames_in_flight {
        // SAFETY: the device is live.
        acquired.push(unsafe { device.create_semaphore(&vk::SemaphoreCreateInfo::default(), None) }?);
    }
    let mut swapchain = Swapchain::new(context, &window)?;
    let triangle = Triangle::new(context, &frames, swapchain.format.format)?;

    let (mut shown, mut renewed, mut stale) = (0, 0, true);
    let mut last = None;
    while shown < wanted {
        if stale {
            if !swapchain.renew(&frames, &window)? {
                return Err("the window has no size".into());
            }
            renewed += 1;
        }
        frames.begin()?;
        let ready = acquired[frames.slot()];
        let (functions, handle) = (&swapchain.functions, swapchain.handle);
        // SAFETY: the semaphore is unsignaled, and `begin` has waited for its previous use.
        let next = unsafe { functions.acquire_next_image(handle, u64::MAX, ready, vk::Fence::null()) };
        let index = match next {
            // A suboptimal image can still be presented.
            Ok((index, suboptimal)) => {
                stale = suboptimal;
                index
            }
            // No image was acquired.
            Err(vk::Result::ERROR_OUT_OF_DATE_KHR) => {
                stale = true;
                frames.end();
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let Presentable { image, rendered } = &swapchain.images[usize::try_from(index)?];

        let queue = frames.queue(0);
        // SAFETY: the submission below waits for the semaphore at this stage.
        unsafe { frames.acquired(image.id(), queue, OUTPUT) }?;
        let mut list = frames.list(queue)?;
        triangle.draw(&mut list, image, shown)?;
        if shown + 1 == wanted && swapchain.can_read {
            last = Some(list.read_image(image, 0, 0..1, vk::ImageAspectFlags::COLOR)?);
        }
        // SAFETY: the image belongs to a swapchain.
        unsafe { list.use_image(image, &Subresources::ALL, Use::PRESENT) }?;
        list.flush()?;
        let info = SubmitInfo {
            waits: &[SemaphorePoint::binary(ready, OUTPUT)],
            signals: &[SemaphorePoint::binary(*rendered, vk::PipelineStageFlags2::ALL_COMMANDS)],
        };
        // SAFETY: the acquisition signals the first; the wait for the second ended before the image was acquired again.
        unsafe { frames.submit_with(queue, [list], &info) }?;
        frames.end();

        let (waits, chains, indices) = ([*rendered], [handle], [index]);
        let info =
            vk::PresentInfoKHR::default().wait_semaphores(&waits).swapchains(&chains).image_indices(&indices);
        // SAFETY: the image was acquired and is in the present layout, and the semaphore will be signaled.
        match frames.with_queue(queue, |queue| unsafe { functions.queue_present(queue, &info) }) {
            Ok(suboptimal) => stale |= suboptimal,
            Err(vk::Result::ERROR_OUT_OF_DATE_KHR) => stale = true,
            Err(error) => return Err(error.into()),
        }
        shown += 1;
        if shown == wanted / 2 {
            window.resize(LATER);
        }
        stale |= window.has_changed(swapchain.extent);
    }
    swapchain.let_go(&frames)?;
    if let Some(read) = last {
        look_at(&read.bytes()?, swapchain.extent)?;
    }
    note(&format!(
        "{shown} images of {}, {renewed} swapchains; the last one had {} x {} texels.",
        window.kind(),
        swapchain.extent.width,
        swapchain.extent.height,
    ));
    drop(frames);
    // SAFETY: the images were dropped.
    unsafe { swapchain.destroy() };
    // SAFETY: the device is idle.
    unsafe { triangle.destroy(device) };
    for semaphore in acquired {
        // SAFETY: as above.
        unsafe { device.destroy_semaphore(semaphore, None) };
    }
    Ok(())
}

/// Checks that the background is dark, and that the triangle is not.
fn look_at(texels: &[u8], extent: vk::Extent2D) -> Result<()> {
    let width = usize::try_from(extent.width)?;
    let bright = |texel: &&[u8]| texel[..3].iter().map(|&byte| u32::from(byte)).sum::<u32>() > 200;
    let half = texels.len() / width / 4 / 2 * width * 4;
    let [above, below] = [&texels[..half], &texels[half..]].map(|half| half.chunks(4).filter(bright).count());
    // The narrow end of the triangle is at the top.
    if above == 0 || below <= above || above + below >= texels.len() / 4 {
        return Err(format!("the last image is wrong: {above} bright texels above, {below} below").into());
    }
    Ok(())
}

struct Triangle {
    layout: PipelineLayout,
    pipeline: vk::Pipeline,
}

impl Triangle {
    fn new(context: &Context, frames: &Frames, format: vk::Format) -> Result<Self> {
        let device = context.device();
        // SAFETY: it is empty.
        let layout = unsafe { frames.create_pipeline_layout(&[], &[]) }?;
        let formats = [format];
        // SAFETY: formats of surfaces support rendering.
        let pass = unsafe { frames.render_pass(&RenderPassInfo::new(&formats, vk::Format::UNDEFINED)) }?;
        let code = compile(include_str!("triangle.wgsl"))?;
        let info = vk::ShaderModuleCreateInfo::default().code(&code);
        // SAFETY: the compiler has validated the module.
        let module = unsafe { device.create_shader_module(&info, None) }?;
        let stage =
            |stage, name| vk::PipelineShaderStageCreateInfo::default().stage(stage).module(module).name(name);
        let stages =
            [stage(vk::ShaderStageFlags::VERTEX, c"corner"), stage(vk::ShaderStageFlags::FRAGMENT, c"texel")];
        let vertices = vk::PipelineVertexInputStateCreateInfo::default();
        let triangles = vk::PipelineInputAssemblyStateCreateInfo::default()
            .topology(vk::PrimitiveTopology::TRIANGLE_LIST);
        let viewport = vk::PipelineViewportStateCreateInfo::default().viewport_count(1).scissor_count(1);
        let raster = vk::PipelineRasterizationStateCreateInfo::default()
            .cull_mode(vk::CullModeFlags::BACK)
            .front_face(vk::FrontFace::COUNTER_CLOCKWISE)
            .line_width(1.0);
        let samples = vk::PipelineMultisampleStateCreateInfo::default()
            .rasterization_samples(vk::SampleCountFlags::TYPE_1);
        let colors =
            [vk::PipelineColorBlendAttachmentState::default()
                .color_write_mask(vk::ColorComponentFlags::RGBA)];
        let blend = vk::PipelineColorBlendStateCreateInfo::default().attachments(&colors);
        let dynamic = [vk::DynamicState::VIEWPORT, vk::DynamicState::SCISSOR];
        let dynamic = vk::PipelineDynamicStateCreateInfo::default().dynamic_states(&dynamic);
        let mut rendering = vk::PipelineRenderingCreateInfo::default().color_attachment_formats(&formats);
        let mut info = vk::GraphicsPipelineCreateInfo::default()
            .stages(&stages)
            .vertex_input_state(&vertices)
            .input_assembly_state(&triangles)
            .viewport_state(&viewport)
            .rasterization_state(&raster)
            .multisample_state(&samples)
            .color_blend_state(&blend)
            .dynamic_state(&dynamic)
            .layout(layout.handle())
            .render_pass(pass);
        if pass == vk::RenderPass::null() {
            info = info.push_next(&mut rendering); // dynamic rendering is enabled
        }
        // SAFETY: the info matches the shaders.
        let made = unsafe { device.create_graphics_pipelines(vk::PipelineCache::null(), &[info], None) };
        // SAFETY: the pipeline no longer needs the module.
        unsafe { device.destroy_shader_module(module, None) };
        let pipeline = made.map_err(|(_, error)| error)?[0];
        Ok(Self { layout, pipeline })
    }

    /// Draws a triangle that moves from left to right.
    fn draw(&self, list: &mut CommandList, image: &Image, frame: u64) -> Result<()> {
        let extent = image.extent(0);
        let dark = vk::ClearValue { color: vk::ClearColorValue { float32: [0.02, 0.02, 0.05, 1.0] } };
        let colors = [Some(Attachment { clear: dark, ..Attachment::clear(image) })];
        let info = RenderingInfo::new(extent, &colors, None);
        let width = extent.width.div_ceil(2);
        let steps = u64::from(extent.width - width) + 1;
        let mut left = info.area;
        (left.offset.x, left.extent.width) = (i32::try_from(frame * 2 % steps)?, width);
        // SAFETY: the pipeline was created with this layout, and both outlive the frames.
        unsafe { list.bind_pipeline(BindPoint::Graphics, self.pipeline, &self.layout) }?;
        // The WGSL compiler has flipped the coordinates already, so `ViewportInfo::flip` is not needed.
        list.set_viewport(left)?;
        list.begin_label("triangle");
        // SAFETY: the area is that of the image.
        unsafe { list.begin_rendering(&info) }?;
        // SAFETY: the pipeline matches this attachment, and its dynamic state is set.
        unsafe { list.draw(0..3, 0..1) }?;
        list.end_rendering()?;
        list.end_label()?;
        Ok(())
    }

    /// # Safety
    /// The device is done with the pipeline.
    unsafe fn destroy(self, device: &ash::Device) {
        // SAFETY: the caller's promise.
        unsafe { device.destroy_pipeline(self.pipeline, None) };
    }
}
