//! The unmodified egui-ash-renderer draws the same window with three allocators: its own simple one, the stand-in for
//! gpu-allocator, and the stand-in for vk-mem. The pictures are byte-identical, and nothing leaks.

use std::sync::{Arc, Mutex};

use ash::vk;
use egui_ash_renderer::{Options, RenderMode, Renderer, allocator};
use vk_mem::Alloc as _;

const SIDE: u32 = 256;
const FORMAT: vk::Format = vk::Format::R8G8B8A8_UNORM;
/// The window grows with each frame, so that buffers are replaced.
const FRAMES: usize = 40;

/// A device of the first available driver, with a queue.
struct Device {
    _entry: ash::Entry,
    instance: ash::Instance,
    physical_device: vk::PhysicalDevice,
    device: ash::Device,
    queue: vk::Queue,
}

impl Device {
    fn open() -> Self {
        let entry = unsafe { ash::Entry::load() }.expect("a Vulkan loader");
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_1);
        let info = vk::InstanceCreateInfo::default().application_info(&application);
        let instance = unsafe { entry.create_instance(&info, None) }.expect("an instance");
        let physical_device = unsafe { instance.enumerate_physical_devices() }.expect("devices")[0];
        let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
        let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
        let device = unsafe { instance.create_device(physical_device, &info, None) }.expect("a device");
        let queue = unsafe { device.get_device_queue(0, 0) };
        Self { _entry: entry, instance, physical_device, device, queue }
    }

    fn vk_mem(&self) -> vk_mem::Allocator {
        let mut info = vk_mem::AllocatorCreateInfo::new(&self.instance, &self.device, self.physical_device);
        info.vulkan_api_version = vk::API_VERSION_1_1;
        unsafe { vk_mem::Allocator::new(info) }.expect("an allocator")
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        unsafe { self.device.destroy_device(None) };
        unsafe { self.instance.destroy_instance(None) };
    }
}

/// The render target and its read-back buffer. Both use vk-mem memory.
struct Target<'a> {
    device: &'a Device,
    allocator: vk_mem::Allocator,
    image: (vk::Image, vk_mem::Allocation),
    back: (vk::Buffer, vk_mem::Allocation),
    view: vk::ImageView,
    render_pass: vk::RenderPass,
    framebuffer: vk::Framebuffer,
    pool: vk::CommandPool,
}

impl<'a> Target<'a> {
    fn new(device: &'a Device) -> Self {
        let allocator = device.vk_mem();
        let raw = &device.device;
        let image = vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(FORMAT)
            .extent(vk::Extent3D { width: SIDE, height: SIDE, depth: 1 })
            .mip_levels(1)
            .array_layers(1)
            .samples(vk::SampleCountFlags::TYPE_1)
            .usage(vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::TRANSFER_SRC);
        let info = vk_mem::AllocationCreateInfo {
            usage: vk_mem::MemoryUsage::Auto,
            flags: vk_mem::AllocationCreateFlags::DEDICATED_MEMORY,
            ..Default::default()
        };
        let image = unsafe { allocator.create_image(&image, &info) }.expect("an image");
        let back = vk::BufferCreateInfo::default()
            .size(u64::from(SIDE * SIDE * 4))
            .usage(vk::BufferUsageFlags::TRANSFER_DST);
        let info = vk_mem::AllocationCreateInfo {
            usage: vk_mem::MemoryUsage::Auto,
            flags: vk_mem::AllocationCreateFlags::HOST_ACCESS_RANDOM,
            ..Default::default()
        };
        let back = unsafe { allocator.create_buffer(&back, &info) }.expect("a buffer");
        let attachments = [vk::AttachmentDescription::default()
            .format(FORMAT)
            .samples(vk::SampleCountFlags::TYPE_1)
            .load_op(vk::AttachmentLoadOp::CLEAR)
            .store_op(vk::AttachmentStoreOp::STORE)
            .final_layout(vk::ImageLayout::TRANSFER_SRC_OPTIMAL)];
        let color =
            [vk::AttachmentReference { attachment: 0, layout: vk::ImageLayout::COLOR_ATTACHMENT_OPTIMAL }];
        let subpasses = [vk::SubpassDescription::default()
            .pipeline_bind_point(vk::PipelineBindPoint::GRAPHICS)
            .color_attachments(&color)];
        let dependencies = [vk::SubpassDependency::default()
            .src_subpass(0)
            .dst_subpass(vk::SUBPASS_EXTERNAL)
            .src_stage_mask(vk::PipelineStageFlags::COLOR_ATTACHMENT_OUTPUT)
            .src_access_mask(vk::AccessFlags::COLOR_ATTACHMENT_WRITE)
            .dst_stage_mask(vk::PipelineStageFlags::TRANSFER)
            .dst_access_mask(vk::AccessFlags::TRANSFER_READ)];
        let info = vk::RenderPassCreateInfo::default()
            .attachments(&attachments)
            .subpasses(&subpasses)
            .dependencies(&dependencies);
        let render_pass = unsafe { raw.create_render_pass(&info, None) }.expect("a render pass");
        let info = vk::ImageViewCreateInfo::default()
            .image(image.0)
            .view_type(vk::ImageViewType::TYPE_2D)
            .format(FORMAT)
            .subresource_range(vk::ImageSubresourceRange {
                aspect_mask: vk::ImageAspectFlags::COLOR,
                level_count: 1,
                layer_count: 1,
                ..Default::default()
            });
        let view = unsafe { raw.create_image_view(&info, None) }.expect("a view");
        let views = [view];
        let info = vk::FramebufferCreateInfo::default()
            .render_pass(render_pass)
            .attachments(&views)
            .width(SIDE)
            .height(SIDE)
            .layers(1);
        let framebuffer = unsafe { raw.create_framebuffer(&info, None) }.expect("a framebuffer");
        let pool = unsafe { raw.create_command_pool(&vk::CommandPoolCreateInfo::default(), None) };
        let pool = pool.expect("a command pool");
        Self { device, allocator, image, back, view, render_pass, framebuffer, pool }
    }

    /// Draws, waits for the device, and returns the bytes of the picture.
    fn draw(&mut self, draw: impl FnOnce(vk::CommandBuffer)) -> Vec<u8> {
        let raw = &self.device.device;
        let extent = vk::Extent2D { width: SIDE, height: SIDE };
        let one = vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(1);
        let region = vk::BufferImageCopy::default()
            .image_extent(vk::Extent3D { width: SIDE, height: SIDE, depth: 1 })
            .image_subresource(vk::ImageSubresourceLayers {
                aspect_mask: vk::ImageAspectFlags::COLOR,
                layer_count: 1,
                ..Default::default()
            });
        let clear = [vk::ClearValue::default()];
        let begun = vk::RenderPassBeginInfo::default()
            .render_pass(self.render_pass)
            .framebuffer(self.framebuffer)
            .render_area(extent.into())
            .clear_values(&clear);
        unsafe {
            let commands = raw.allocate_command_buffers(&one).expect("commands");
            raw.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default()).expect("begun");
            raw.cmd_begin_render_pass(commands[0], &begun, vk::SubpassContents::INLINE);
            draw(commands[0]);
            raw.cmd_end_render_pass(commands[0]);
            let layout = vk::ImageLayout::TRANSFER_SRC_OPTIMAL;
            raw.cmd_copy_image_to_buffer(commands[0], self.image.0, layout, self.back.0, &[region]);
            raw.end_command_buffer(commands[0]).expect("ended");
            let submission = [vk::SubmitInfo::default().command_buffers(&commands)];
            raw.queue_submit(self.device.queue, &submission, vk::Fence::null()).expect("submitted");
            raw.queue_wait_idle(self.device.queue).expect("done");
            raw.free_command_buffers(self.pool, &commands);
        }
        self.allocator.invalidate_allocation(&self.back.1, 0, vk::WHOLE_SIZE).expect("invalidated");
        let pointer = unsafe { self.allocator.map_memory(&mut self.back.1) }.expect("mapped");
        let size = usize::try_from(SIDE * SIDE * 4).expect("small");
        let bytes = unsafe { std::slice::from_raw_parts(pointer, size) }.to_vec();
        unsafe { self.allocator.unmap_memory(&mut self.back.1) };
        bytes
    }
}

impl Drop for Target<'_> {
    fn drop(&mut self) {
        let raw = &self.device.device;
        unsafe {
            raw.destroy_command_pool(self.pool, None);
            raw.destroy_framebuffer(self.framebuffer, None);
            raw.destroy_image_view(self.view, None);
            raw.destroy_render_pass(self.render_pass, None);
            self.allocator.destroy_image(self.image.0, &mut self.image.1);
            self.allocator.destroy_buffer(self.back.0, &mut self.back.1);
        }
    }
}

/// Returns the picture after all frames.
fn picture<A: allocator::Allocator>(
    device: &Device,
    make: impl FnOnce(vk::RenderPass) -> Renderer<A>,
    mut each_frame: impl FnMut(),
) -> Vec<u8> {
    let mut target = Target::new(device);
    let mut renderer = make(target.render_pass);
    let context = egui::Context::default();
    let mut bytes = Vec::new();
    for frame in 0..FRAMES {
        let side = 256.0;
        let input = egui::RawInput {
            screen_rect: Some(egui::Rect::from_min_size(egui::Pos2::ZERO, egui::vec2(side, side))),
            time: Some(frame as f64),
            ..Default::default()
        };
        let mut output = context.run_ui(input, |ui| {
            ui.heading("memory");
            for line in 0..=frame {
                ui.label(format!("{line} bytes of {frame}"));
            }
        });
        for (id, deltas) in output.textures_delta.set.drain() {
            for delta in deltas {
                renderer.set_texture(device.queue, target.pool, id, &delta).expect("a texture");
            }
        }
        let primitives = context.tessellate(output.shapes, output.pixels_per_point);
        let extent = vk::Extent2D { width: SIDE, height: SIDE };
        bytes = target.draw(|commands| {
            renderer.cmd_draw(commands, extent, output.pixels_per_point, &primitives).expect("drawn");
        });
        for id in output.textures_delta.free.drain() {
            renderer.free_texture(id).expect("a texture");
        }
        each_frame();
    }
    bytes
}

#[test]
fn a_renderer_draws_the_same_with_its_own_memory_and_with_both_stand_ins() {
    let device = Device::open();
    let options = || Options { srgb_framebuffer: false, ..Default::default() };
    let own = picture(
        &device,
        |pass| {
            let mode = RenderMode::RenderPass(pass);
            let (instance, physical_device) = (&device.instance, device.physical_device);
            Renderer::with_default_allocator(
                instance,
                physical_device,
                device.device.clone(),
                mode,
                options(),
            )
            .expect("a renderer")
        },
        || {},
    );
    let colors = own.chunks(4).filter(|pixel| pixel[..3] != [0, 0, 0]).count();
    assert!(colors > 1000, "there is something in the picture: {colors}");

    let gpu_allocator = gpu_allocator::vulkan::Allocator::new(&gpu_allocator::vulkan::AllocatorCreateDesc {
        instance: device.instance.clone(),
        device: device.device.clone(),
        physical_device: device.physical_device,
        debug_settings: Default::default(),
        buffer_device_address: false,
        allocation_sizes: Default::default(),
    });
    let gpu_allocator = Arc::new(Mutex::new(gpu_allocator.expect("an allocator")));
    let mut most = 0;
    let with_gpu_allocator = picture(
        &device,
        |pass| {
            let mode = RenderMode::RenderPass(pass);
            Renderer::with_gpu_allocator(Arc::clone(&gpu_allocator), device.device.clone(), mode, options())
                .expect("a renderer")
        },
        || most = gpu_allocator.lock().expect("no panic").generate_report().allocations.len().max(most),
    );
    assert!(most >= 3, "a texture, vertices and indices are there: {most}");
    assert!(own == with_gpu_allocator, "the picture is another one with gpu-allocator");
    // Only the stand-in has this function.
    let left = gpu_allocator.lock().expect("no panic").as_sublet().statistics();
    assert_eq!(left.allocation_count, 0);
    drop(gpu_allocator);

    let vk_mem = Arc::new(device.vk_mem());
    let mut most = 0;
    let with_vk_mem = picture(
        &device,
        |pass| {
            let mode = RenderMode::RenderPass(pass);
            Renderer::with_vk_mem_allocator(Arc::clone(&vk_mem), device.device.clone(), mode, options())
                .expect("a renderer")
        },
        || most = vk_mem.as_sublet().statistics().allocation_count.max(most),
    );
    assert!(most >= 3, "a texture, vertices and indices are there: {most}");
    assert!(own == with_vk_mem, "the picture is another one with vk-mem");
    assert_eq!(vk_mem.as_sublet().statistics().allocation_count, 0);
    let sum: u64 = own.iter().map(|&byte| u64::from(byte)).sum();
    println!("{FRAMES} frames, {colors} pixels that are not black, sum {sum}, the same three times");
}
