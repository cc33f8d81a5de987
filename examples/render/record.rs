//! The commands of a frame.

use ash::vk;

use crate::Resources;
use crate::passes::{PICTURE, Pass};
use crate::renderer::{FrameSets, Renderer};
use crate::scene::Scene;
use crate::targets::Target;

/// All that a frame is drawn with.
pub(crate) struct Frame<'a> {
    pub(crate) renderer: &'a Renderer<'a>,
    pub(crate) scene: &'a Scene,
    pub(crate) resources: &'a Resources,
    pub(crate) sets: &'a FrameSets,
    /// Of the frames in flight: it says where the picture goes.
    pub(crate) slot: usize,
}

impl Frame<'_> {
    pub(crate) fn record(&self, device: &ash::Device, commands: vk::CommandBuffer) {
        for (pass, barrier) in &self.renderer.barriers {
            barrier.record(device, commands);
            match self.renderer.targets.of(*pass) {
                Some(target) => self.draw(device, commands, target),
                None => self.copy(device, commands),
            }
        }
    }

    fn draw(&self, device: &ash::Device, commands: vk::CommandBuffer, target: &Target) {
        target.begin(device, commands);
        let pipelines = &self.renderer.pipelines;
        let [direct, mirrored] = self.sets.seen;
        match target.pass {
            Pass::Shadow => self.objects(device, commands, pipelines.shadow, direct, 1..),
            Pass::Mirror => {
                self.objects(device, commands, pipelines.object, mirrored, 1..);
                self.sky(device, commands, mirrored);
            }
            Pass::Scene => {
                self.objects(device, commands, pipelines.object, direct, 1..);
                self.objects(device, commands, pipelines.floor, direct, ..1);
                self.sky(device, commands, direct);
            }
            pass => self.post(device, commands, pass),
        }
        // SAFETY: a render pass was begun above.
        unsafe { device.cmd_end_render_pass(commands) };
    }

    /// Some of the objects, as one pass sees them.
    fn objects(
        &self,
        device: &ash::Device,
        commands: vk::CommandBuffer,
        pipeline: vk::Pipeline,
        seen: vk::DescriptorSet,
        which: impl std::ops::RangeBounds<usize>,
    ) {
        let (layout, point) = (self.renderer.pipelines.scene_layout, vk::PipelineBindPoint::GRAPHICS);
        // SAFETY: the pass is one that the pipeline was made for, or one like it.
        unsafe { device.cmd_bind_pipeline(commands, point, pipeline) };
        for (at, (object, &set)) in self.scene.objects.iter().zip(&self.sets.objects).enumerate() {
            if !which.contains(&at) {
                continue;
            }
            let mesh = &self.resources.world.meshes[object.mesh];
            let sets = [seen, set];
            // SAFETY: the sets are of the layout's set layouts.
            unsafe { device.cmd_bind_descriptor_sets(commands, point, layout, 0, &sets, &[]) };
            let (buffers, offsets) = ([mesh.buffer], [mesh.vertices_at]);
            // SAFETY: the vertices begin there.
            unsafe { device.cmd_bind_vertex_buffers(commands, 0, &buffers, &offsets) };
            // SAFETY: the indices are at the start.
            unsafe { device.cmd_bind_index_buffer(commands, mesh.buffer, 0, vk::IndexType::UINT32) };
            // SAFETY: there are so many, and all name vertices of the mesh.
            unsafe { device.cmd_draw_indexed(commands, mesh.indices, 1, 0, 0, 0) };
        }
    }

    fn sky(&self, device: &ash::Device, commands: vk::CommandBuffer, seen: vk::DescriptorSet) {
        let pipelines = &self.renderer.pipelines;
        triangle(device, commands, pipelines.sky, pipelines.scene_layout, seen);
    }

    fn post(&self, device: &ash::Device, commands: vk::CommandBuffer, pass: Pass) {
        let pipelines = &self.renderer.pipelines;
        let pipeline = match pass {
            Pass::Blur => pipelines.blur,
            Pass::Down(0) => pipelines.bright,
            Pass::Down(_) => pipelines.down,
            Pass::Up(_) => pipelines.up,
            Pass::Develop => pipelines.develop,
            _ => pipelines.shrink,
        };
        if let Some(&(_, set)) = self.sets.post.iter().find(|(of, _)| *of == pass) {
            triangle(device, commands, pipeline, pipelines.post_layout, set);
        }
    }

    /// The picture, for the host.
    fn copy(&self, device: &ash::Device, commands: vk::CommandBuffer) {
        let attachments = &self.resources.attachments;
        let [width, height] = attachments.table[PICTURE].extent.map(u32::from);
        let layers =
            vk::ImageSubresourceLayers::default().aspect_mask(vk::ImageAspectFlags::COLOR).layer_count(1);
        let all = [vk::BufferImageCopy::default().image_subresource(layers).image_extent(vk::Extent3D {
            width,
            height,
            depth: 1,
        })];
        let (image, layout) = (attachments.images[PICTURE], vk::ImageLayout::TRANSFER_SRC_OPTIMAL);
        let (buffer, _) = &self.resources.readback.buffers[self.slot];
        // SAFETY: the image is in this layout, and the buffer has a texel for each of its own.
        unsafe { device.cmd_copy_image_to_buffer(commands, image, layout, *buffer, &all) };
    }
}

/// One triangle that covers the target.
fn triangle(
    device: &ash::Device,
    commands: vk::CommandBuffer,
    pipeline: vk::Pipeline,
    layout: vk::PipelineLayout,
    set: vk::DescriptorSet,
) {
    let point = vk::PipelineBindPoint::GRAPHICS;
    // SAFETY: the pass is one that the pipeline was made for, or one like it.
    unsafe { device.cmd_bind_pipeline(commands, point, pipeline) };
    // SAFETY: the set is of the layout's first set layout.
    unsafe { device.cmd_bind_descriptor_sets(commands, point, layout, 0, &[set], &[]) };
    // SAFETY: the shader makes the corners out of their numbers.
    unsafe { device.cmd_draw(commands, 3, 1, 0, 0) };
}
