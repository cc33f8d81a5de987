//! What draws the frames, and the sets that a frame is drawn with.

use ash::vk;
use sublet::Allocator;
use sublet::descriptor::{DescriptorDevice, TransientSets, TransientSetsCreateInfo};
use sublet::retire::Ticket;
use sublet::upload::{UploadArena, UploadArenaCreateInfo};

use crate::Resources;
use crate::barriers::Barrier;
use crate::camera;
use crate::flight::Flight;
use crate::keeper::Keeper;
use crate::passes::{HALF, MIRRORED, Pass, SHADOW_MAP, Use, order};
use crate::pipelines::Pipelines;
use crate::scene::{SKY, Scene};
use crate::sets::{Bound, Layouts, set};
use crate::support::{Context, Result};
use crate::targets::Targets;
use crate::textures::{COLOUR, NORMAL};

pub(crate) struct Renderer<'a> {
    context: &'a Context,
    pub(crate) targets: Targets,
    pub(crate) pipelines: Pipelines,
    /// What has to be done before each pass, in order.
    pub(crate) barriers: Vec<(Pass, Barrier)>,
    layouts: Layouts,
    textures: Vec<[vk::ImageView; 2]>,
    /// The numbers of a frame, which the device reads where the host has written them.
    pub(crate) arena: UploadArena<&'a Allocator>,
    pub(crate) sets: TransientSets,
    _keeper: Keeper<'a>,
}

/// The sets of one frame.
pub(crate) struct FrameSets {
    /// For what the camera sees, and for what the floor mirrors.
    pub(crate) seen: [vk::DescriptorSet; 2],
    /// By object.
    pub(crate) objects: Vec<vk::DescriptorSet>,
    /// By pass.
    pub(crate) post: Vec<(Pass, vk::DescriptorSet)>,
}

impl<'a> Renderer<'a> {
    pub(crate) fn new(
        context: &'a Context,
        allocator: &'a Allocator,
        descriptors: &DescriptorDevice,
        scene: &Scene,
        Resources { attachments, world, .. }: &Resources,
    ) -> Result<Self> {
        let keeper = Keeper::new(context);
        let targets = Targets::new(&keeper, attachments)?;
        let layouts = Layouts::new(&keeper)?;
        let pipelines = Pipelines::new(&keeper, &layouts, &targets)?;
        let mut textures = Vec::new();
        for ([colour, normal], texture) in world.textures.iter().zip(&scene.textures) {
            let view = |image, format| {
                keeper.view_of(image, &texture.image_info(format), vk::ImageAspectFlags::COLOR)
            };
            textures.push([view(colour.0, COLOUR)?, view(normal.0, NORMAL)?]);
        }
        let barriers = order().into_iter().map(|pass| (pass, Barrier::before(pass, attachments))).collect();
        let info = UploadArenaCreateInfo {
            page_size: 64 << 10,
            usage: vk::BufferUsageFlags::UNIFORM_BUFFER,
            name: Some("uniforms"),
            ..Default::default()
        };
        // SAFETY: the usage needs nothing enabled, and a ticket is done when its frame's fence was waited for.
        let arena = unsafe { UploadArena::new(allocator, &info) }?;
        let sets = TransientSets::new(descriptors, &TransientSetsCreateInfo::default())?;
        Ok(Self { context, targets, pipelines, barriers, layouts, textures, arena, sets, _keeper: keeper })
    }

    /// Takes back what the device is done with, writes the numbers of the frame at `time`, from 0 to 1, and its sets.
    pub(crate) fn prepare(
        &mut self,
        flight: &Flight<'_>,
        ticket: Ticket,
        scene: &Scene,
        Resources { attachments, .. }: &Resources,
        time: f32,
    ) -> Result<FrameSets> {
        self.arena.collect(&flight.clock)?;
        self.sets.collect(&flight.clock)?;
        let Self { context, targets, layouts, textures, arena, sets, .. } = self;
        let uniform = arena.alignments().uniform;
        let mut seen = [vk::DescriptorSet::null(); 2];
        for (at, data) in camera::frame(scene, time, HALF).iter().enumerate() {
            // The mirror itself is not seen in the mirror.
            let mirror = if at == 0 { Bound::Image(targets.views[MIRRORED]) } else { Bound::Nothing };
            let bound = [
                Bound::Uniform(&arena.write_value(data, uniform)?),
                Bound::Sampler(layouts.repeating),
                Bound::Sampler(layouts.comparing),
                Bound::Image(targets.views[SHADOW_MAP]),
                mirror,
                Bound::Sampler(layouts.clamped),
                Bound::Image(textures[SKY][0]),
            ];
            seen[at] = set(context, sets, &layouts.frame, &bound)?;
        }
        let mut objects = Vec::new();
        for object in &scene.objects {
            let upload = arena.write_value(&object.data, uniform)?;
            let [colour, normal] = textures[object.texture];
            let bound = [Bound::Uniform(&upload), Bound::Image(colour), Bound::Image(normal)];
            objects.push(set(context, sets, &layouts.object, &bound)?);
        }
        let mut post = Vec::new();
        for target in targets.all.iter().filter(|target| target.pass > Pass::Scene) {
            let read = |at: &usize| attachments.table[*at].used_in(target.pass) == Some(Use::Sampled);
            let sources: Vec<usize> = (0..attachments.table.len()).filter(read).collect();
            let [width, height] = attachments.table[sources[0]].extent.map(f32::from);
            let upload = arena.write_value(&[1.0 / width, 1.0 / height, 0.0, 0.0], uniform)?;
            let mut bound = vec![Bound::Uniform(&upload), Bound::Sampler(layouts.clamped)];
            bound.extend(sources.iter().map(|&at| Bound::Image(targets.views[at])));
            post.push((target.pass, set(context, sets, &layouts.post, &bound)?));
        }
        // What the host wrote is visible to the device, and stays until the ticket is done.
        arena.flush(ticket)?;
        sets.flush(ticket)?;
        Ok(FrameSets { seen, objects, post })
    }

    /// # Safety
    /// The device is idle.
    pub(crate) unsafe fn destroy(self) {
        // SAFETY: the caller's own promise.
        unsafe { self.arena.destroy() };
        // SAFETY: the caller's own promise.
        unsafe { self.sets.destroy() };
    }
}
