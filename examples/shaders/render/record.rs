//! Records a frame: each pass with its inputs and targets from the table.

use std::ops::RangeBounds;

use ash::vk;
use sublet_descriptors::BindPoint;
use sublet_frame::track::{Subresources, Use as TrackedUse};
use sublet_frame::{
    Attachment as Target, CommandList, Frames, Image, PipelineLayout, ReadBack, RenderingInfo, StorageAccess,
};

use crate::Resources;
use crate::barriers::Barriers;
use crate::camera::{self, FrameData};
use crate::keeper::Keeper;
use crate::passes::{HALF, MIRRORED, PICTURE, Pass, SHADOW_MAP, Use, order};
use crate::pipelines::Pipelines;
use crate::scene::{SKY, Scene};
use crate::sets::Layouts;
use sublet_examples::{Context, Result};

const POINT: BindPoint = BindPoint::Graphics;

pub(crate) struct Renderer<'a> {
    pipelines: Pipelines,
    layouts: Layouts,
    _keeper: Keeper<'a>,
}

impl<'a> Renderer<'a> {
    pub(crate) fn new(context: &'a Context, frames: &Frames) -> Result<Self> {
        let keeper = Keeper::new(context);
        let layouts = Layouts::new(&keeper, frames)?;
        let pipelines = Pipelines::new(&keeper, &layouts)?;
        Ok(Self { pipelines, layouts, _keeper: keeper })
    }
}

/// Everything that a frame needs to draw.
pub(crate) struct Frame<'a> {
    pub(crate) renderer: &'a Renderer<'a>,
    pub(crate) scene: &'a Scene,
    pub(crate) resources: &'a Resources,
    pub(crate) list: &'a mut CommandList,
}

impl Frame<'_> {
    /// Draws the frame at `time`, from 0 to 1, and reads back its picture.
    pub(crate) fn record(mut self, time: f32, barriers: &Barriers) -> Result<ReadBack> {
        let [direct, mirrored] = camera::frame(self.scene, time, HALF);
        let (renderer, images) = (self.renderer, &self.resources.attachments.images);
        let (pipelines, layouts) = (&renderer.pipelines, &renderer.layouts);
        for pass in order() {
            barriers.enter(pass);
            if !self.begin(pass)? {
                continue;
            }
            match pass {
                Pass::Shadow => {
                    self.bind(pipelines.shadow, &layouts.scene)?;
                    self.samplers(&[(1, layouts.repeating), (2, layouts.comparing), (5, layouts.clamped)])?;
                    self.objects(pipelines.shadow, &direct, 1..)?;
                }
                // The layout is the same, so the bindings stay.
                Pass::Mirror => {
                    self.image(0, 3, &images[SHADOW_MAP])?;
                    self.image(0, 6, &self.resources.world.textures[SKY][0])?;
                    self.objects(pipelines.object, &mirrored, 1..)?;
                    self.triangle(pipelines.sky, &layouts.scene)?;
                }
                Pass::Scene => {
                    // The mirror does not show itself.
                    self.image(0, 4, &images[MIRRORED])?;
                    self.objects(pipelines.object, &direct, 1..)?;
                    self.objects(pipelines.floor, &direct, ..1)?;
                    self.triangle(pipelines.sky, &layouts.scene)?;
                }
                _ => self.post(pass)?,
            }
            self.list.end_rendering()?;
        }
        Ok(self.list.read_image(&images[PICTURE], 0, 0..1, vk::ImageAspectFlags::COLOR)?)
    }

    /// Begins rendering to the pass's targets. Returns false if the pass draws nothing.
    fn begin(&mut self, pass: Pass) -> Result<bool> {
        let (mut colours, mut depth, mut extent) = (Vec::new(), None, None);
        let attachments = &self.resources.attachments;
        for (attachment, image) in attachments.table.iter().zip(&attachments.images) {
            let Some(how) = attachment.used_in(pass) else { continue };
            let far = vk::ClearDepthStencilValue { depth: 1.0, stencil: 0 };
            let (load_op, clear) = (how.load_op(), vk::ClearValue { depth_stencil: far });
            let mut target = Target::clear(image);
            (target.load_op, target.clear) = (load_op, clear);
            if attachment.life().1 == pass {
                target.store_op = vk::AttachmentStoreOp::DONT_CARE;
            }
            match how {
                Use::Depth => depth = Some(target),
                Use::Colour | Use::Blend => colours.push(Some(target)),
                Use::Sampled => {
                    let mut sampled = TrackedUse::sampled(vk::PipelineStageFlags2::FRAGMENT_SHADER);
                    if attachment.is_depth() {
                        // The layout in which lists bind it.
                        sampled.layout = vk::ImageLayout::DEPTH_STENCIL_READ_ONLY_OPTIMAL;
                    }
                    // Declared here, so that the barrier before the pass includes it.
                    // SAFETY: the queue supports drawing.
                    unsafe { self.list.use_image(image, &Subresources::ALL, sampled) }?;
                    continue;
                }
                Use::Copied => continue,
            }
            extent = Some(attachment.extent);
        }
        let Some([width, height]) = extent else { return Ok(false) };
        let size = vk::Extent3D { width: width.into(), height: height.into(), depth: 1 };
        let info = RenderingInfo::new(size, &colours, depth);
        self.list.set_viewport(info.area)?;
        // SAFETY: the attachments have this size and the required usage.
        unsafe { self.list.begin_rendering(&info) }?;
        Ok(true)
    }

    fn bind(&mut self, pipeline: vk::Pipeline, layout: &PipelineLayout) -> Result<()> {
        // SAFETY: the renderer outlives the list, and created pipeline and layout for each other.
        Ok(unsafe { self.list.bind_pipeline(POINT, pipeline, layout) }?)
    }

    fn image(&mut self, set: u32, binding: u32, image: &Image) -> Result<()> {
        let (place, none) = ((set, binding, 0), vk::Sampler::null());
        // SAFETY: the shader declares an image of this kind at this binding, without a sampler.
        Ok(unsafe { self.list.bind_image(POINT, place, image, None, none, StorageAccess::Read) }?)
    }

    fn samplers(&mut self, samplers: &[(u32, vk::Sampler)]) -> Result<()> {
        for &(binding, sampler) in samplers {
            // SAFETY: the renderer outlives the list.
            unsafe { self.list.bind_sampler(POINT, (0, binding, 0), sampler) }?;
        }
        Ok(())
    }

    /// Draws some of the objects for one pass.
    fn objects(
        &mut self,
        pipeline: vk::Pipeline,
        seen: &FrameData,
        which: impl RangeBounds<usize>,
    ) -> Result<()> {
        self.bind(pipeline, &self.renderer.layouts.scene)?;
        self.list.bind_constants(POINT, (0, 0), seen)?;
        for (_, object) in self.scene.objects.iter().enumerate().filter(|(at, _)| which.contains(at)) {
            let mesh = &self.resources.world.meshes[object.mesh];
            let [colour, normal] = &self.resources.world.textures[object.texture];
            self.list.bind_constants(POINT, (1, 0), &object.data)?;
            self.image(1, 1, colour)?;
            self.image(1, 2, normal)?;
            self.list.bind_vertex_buffer(0, &mesh.buffer, mesh.vertices_at)?;
            self.list.bind_index_buffer(&mesh.buffer, 0, true)?;
            // SAFETY: the buffer has this many indices, and all refer to vertices of the mesh.
            unsafe { self.list.draw_indexed(0..mesh.indices, 0, 0..1) }?;
        }
        Ok(())
    }

    /// Draws one triangle that covers the target.
    fn triangle(&mut self, pipeline: vk::Pipeline, layout: &PipelineLayout) -> Result<()> {
        self.bind(pipeline, layout)?;
        // SAFETY: the shader computes the corners from the vertex index.
        Ok(unsafe { self.list.draw(0..3, 0..1) }?)
    }

    /// Draws a post-processing pass.
    fn post(&mut self, pass: Pass) -> Result<()> {
        let Renderer { pipelines, layouts, .. } = self.renderer;
        let (pipeline, layout) = match pass {
            Pass::Blur => (pipelines.blur, &layouts.post),
            Pass::Down(0) => (pipelines.bright, &layouts.post),
            Pass::Down(_) => (pipelines.down, &layouts.post),
            Pass::Up(_) => (pipelines.up, &layouts.post),
            Pass::Develop => (pipelines.develop, &layouts.develop),
            _ => (pipelines.shrink, &layouts.post),
        };
        self.bind(pipeline, layout)?;
        self.samplers(&[(1, layouts.clamped)])?;
        let attachments = &self.resources.attachments;
        let read = attachments.table.iter().zip(&attachments.images);
        let read = read.filter(|(attachment, _)| attachment.used_in(pass) == Some(Use::Sampled));
        for (binding, (attachment, image)) in (2..).zip(read) {
            if binding == 2 {
                let [width, height] = attachment.extent.map(f32::from);
                self.list.bind_constants(POINT, (0, 0), &[1.0 / width, 1.0 / height, 0.0, 0.0])?;
            }
            self.image(0, binding, image)?;
        }
        self.triangle(pipeline, layout)
    }
}
