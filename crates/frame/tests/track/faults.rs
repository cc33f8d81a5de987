//! Known bugs of other trackers, and the guarantees of this one that random programs do not prove: a test for each.

use ash::vk::{self, Handle};
use sublet_frame::track::{
    BarrierBatch, BufferId, BufferInfo, Global, ImageId, ImageInfo, MemoryRange, Queue, Recorder,
    ResolveError, Split, StateError, Submission, Subresources, Use, UseError,
};
use vk::{AccessFlags2 as Access, ImageLayout as Layout, PipelineStageFlags2 as Stages};

const ALL: Subresources = Subresources::ALL;
const SAMPLED: Use = Use::sampled(Stages::FRAGMENT_SHADER);

struct World {
    global: Global,
    queue: Queue,
    submission: Submission,
    raw: u64,
}

impl World {
    fn new() -> Self {
        let mut global = Global::new();
        let queue = global.add_queue(0);
        Self { global, queue, submission: Submission::new(), raw: 0 }
    }

    fn list(&self) -> Recorder {
        Recorder::new(self.queue)
    }

    fn image(&mut self, mips: u32, layers: u32) -> ImageId {
        self.raw += 1;
        self.global.add_image(&ImageInfo { mips, layers, ..image_info(self.raw) })
    }

    fn buffer(&mut self, size: u64) -> BufferId {
        self.raw += 1;
        self.global.add_buffer(&BufferInfo::new(vk::Buffer::from_raw(self.raw), size))
    }

    /// Submits one list, and returns its preamble.
    fn submit(&mut self, list: &Recorder) -> BarrierBatch {
        self.global.resolve(list.queue(), &[list], &mut self.submission).unwrap();
        self.submission.preamble(0).cloned().unwrap_or_default()
    }

    /// Submits a list with one use of an image.
    fn submit_use(&mut self, image: ImageId, part: &Subresources, usage: Use) -> BarrierBatch {
        let mut list = self.list();
        list.use_image(image, part, usage).unwrap();
        self.submit(&list)
    }
}

fn image_info(raw: u64) -> ImageInfo {
    ImageInfo::new(vk::Image::from_raw(raw))
}

/// Returns old layout, new layout, mips and layers.
fn images(batch: &BarrierBatch) -> Vec<(Layout, Layout, std::ops::Range<u32>, std::ops::Range<u32>)> {
    let range = |base: u32, count: u32| base..base + count;
    let mut images: Vec<_> = batch
        .images()
        .iter()
        .map(|barrier| {
            let part = &barrier.subresource_range;
            let mips = range(part.base_mip_level, part.level_count);
            // A barrier on an image with one layer has REMAINING_ARRAY_LAYERS.
            let count =
                if part.layer_count == ash::vk::REMAINING_ARRAY_LAYERS { 1 } else { part.layer_count };
            (barrier.old_layout, barrier.new_layout, mips, range(part.base_array_layer, count))
        })
        .collect();
    images.sort_by_key(|image| (image.2.start, image.3.start));
    images
}

#[test]
fn a_subresource_that_this_list_has_not_touched_is_unknown_and_not_common() {
    let mut world = World::new();
    let image = world.image(2, 1);
    world.submit_use(image, &ALL, SAMPLED);
    // Only one mip is used. The other one has its first use later, and waits for uses before the list.
    let mut list = world.list();
    list.use_image(image, &ALL.mips(0..1), Use::COPY_TARGET).unwrap();
    list.flush();
    list.use_image(image, &ALL.mips(1..2), Use::COPY_TARGET).unwrap();
    assert!(list.flush().is_none(), "the state of mip 1 is not known here");
    let front = world.submit(&list);
    assert_eq!(images(&front), [(SAMPLED.layout, Layout::TRANSFER_DST_OPTIMAL, 0..2, 0..1)]);
}

#[test]
fn a_use_of_all_changes_the_rest_too_and_not_only_the_subresources_that_were_named() {
    let mut world = World::new();
    let image = world.image(3, 1);
    let mut list = world.list();
    list.use_image(image, &ALL, Use::COPY_TARGET).unwrap();
    list.flush();
    list.use_image(image, &ALL.mips(1..2), Use::COPY_SOURCE).unwrap();
    list.flush();
    list.use_image(image, &ALL, SAMPLED).unwrap();
    let batch = list.flush().unwrap();
    let (source, target) = (Layout::TRANSFER_SRC_OPTIMAL, Layout::TRANSFER_DST_OPTIMAL);
    let expected = [
        (target, SAMPLED.layout, 0..1, 0..1),
        (source, SAMPLED.layout, 1..2, 0..1),
        (target, SAMPLED.layout, 2..3, 0..1),
    ];
    assert_eq!(images(batch), expected);
}

#[test]
fn a_commit_merges_and_leaves_what_the_list_did_not_use() {
    let mut world = World::new();
    let image = world.image(1, 4);
    world.submit_use(image, &ALL, SAMPLED);
    world.submit_use(image, &ALL.layers(1..2), Use::COLOR_ATTACHMENT);
    // Other layers keep the state of the first list.
    assert!(world.submit_use(image, &ALL.layers(2..4), SAMPLED).is_empty());
    let front = world.submit_use(image, &ALL, SAMPLED);
    assert_eq!(images(&front), [(Use::COLOR_ATTACHMENT.layout, SAMPLED.layout, 0..1, 1..2)]);
}

#[test]
fn an_image_whose_subresources_are_alike_has_one_state() {
    let mut world = World::new();
    let image = world.image(12, 6);
    world.submit_use(image, &ALL, SAMPLED);
    assert_eq!(world.global.intervals(image).unwrap(), 1);
    world.submit_use(image, &ALL.mips(3..4), Use::COPY_TARGET);
    assert_eq!(world.global.intervals(image).unwrap(), 3);
    world.submit_use(image, &ALL, SAMPLED);
    world.submit_use(image, &ALL, Use::COPY_SOURCE);
    assert_eq!(world.global.intervals(image).unwrap(), 1);
}

#[test]
fn unordered_writes_get_a_barrier_on_request_only() {
    let mut world = World::new();
    let (image, buffer) = (world.image(1, 1), world.buffer(64));
    let write = Use::storage_write(Stages::COMPUTE_SHADER).unordered();
    let mut list = world.list();
    for _ in 0..2 {
        list.use_image(image, &ALL, write).unwrap();
        list.use_buffer(buffer, 0..64, write).unwrap();
        assert!(list.flush().is_none());
    }
    list.storage_barrier(image).unwrap();
    list.use_image(image, &ALL, write).unwrap();
    list.use_buffer(buffer, 0..64, write).unwrap();
    assert_eq!(list.flush().unwrap().len(), 1, "only the image needs a barrier");
    list.storage_barriers();
    list.use_image(image, &ALL, write).unwrap();
    list.use_buffer(buffer, 0..64, write).unwrap();
    assert_eq!(list.flush().unwrap().len(), 2);
    world.submit(&list);
    let mut list = world.list();
    list.use_buffer(buffer, 0..64, write).unwrap();
    assert!(world.submit(&list).is_empty());
    let mut list = world.list();
    list.storage_barrier(buffer).unwrap();
    list.use_buffer(buffer, 0..64, write).unwrap();
    assert_eq!(world.submit(&list).len(), 1);
}

#[test]
fn a_destroyed_resource_is_an_error_and_changes_nothing() {
    let mut world = World::new();
    let (gone, kept) = (world.image(1, 1), world.image(1, 1));
    let mut list = world.list();
    list.use_image(kept, &ALL, SAMPLED).unwrap();
    list.use_image(gone, &ALL, SAMPLED).unwrap();
    world.global.remove(gone).unwrap();
    // Another resource has the slot now.
    let successor = world.image(1, 1);
    let error = world.global.resolve(world.queue, &[&list], &mut world.submission).unwrap_err();
    assert_eq!(error, ResolveError::Destroyed { list: 0, resource: gone.into() });
    assert_eq!(world.global.submitted(world.queue), 0);
    assert_eq!(world.global.remove(gone), Err(StateError::Destroyed { resource: gone.into() }));
    let error = list.use_image(successor, &ALL, SAMPLED).unwrap_err();
    assert_eq!(error, UseError::Destroyed { resource: successor.into() });
    list.reset();
    list.use_image(successor, &ALL, SAMPLED).unwrap();
    assert_eq!(images(&world.submit(&list))[0].0, Layout::UNDEFINED);
}

#[test]
fn one_command_uses_a_range_in_one_way() {
    let mut world = World::new();
    let image = world.image(2, 1);
    let mut list = world.list();
    list.use_image(image, &ALL, SAMPLED).unwrap();
    let twice = UseError::Twice { resource: image.into() };
    assert_eq!(list.use_image(image, &ALL, Use::COPY_TARGET), Err(twice));
    let none = UseError::OutOfRange { resource: image.into() };
    assert_eq!(list.use_image(image, &ALL.mips(2..3), SAMPLED), Err(none));
    let no_layout = Use::buffer(Stages::COPY, Access::TRANSFER_READ);
    let error = UseError::NoLayout { resource: image.into() };
    assert_eq!(list.use_image(image, &ALL, no_layout), Err(error));
    // Two readers may be declared one after the other: the barrier of the command covers both.
    list.reset();
    list.use_image(image, &ALL, Use::COPY_TARGET).unwrap();
    list.flush();
    list.use_image(image, &ALL, SAMPLED).unwrap();
    list.use_image(image, &ALL, Use::sampled(Stages::VERTEX_SHADER)).unwrap();
    let batch = list.flush().unwrap();
    assert_eq!(batch.len(), 1);
    assert_eq!(batch.images()[0].dst_stage_mask, Stages::FRAGMENT_SHADER | Stages::VERTEX_SHADER);
    // A reader in another stage follows that barrier.
    list.use_image(image, &ALL, Use::sampled(Stages::COMPUTE_SHADER)).unwrap();
    let batch = list.flush().unwrap();
    assert_eq!(batch.images()[0].src_stage_mask, Stages::FRAGMENT_SHADER | Stages::VERTEX_SHADER);
}

#[test]
fn a_queue_of_another_family_gets_a_release_an_acquire_and_a_semaphore() {
    let mut world = World::new();
    let transfer = world.global.add_queue(2);
    let image = world.image(1, 1);
    let mut upload = Recorder::new(transfer);
    upload.use_image(image, &ALL, Use::COPY_TARGET.discard()).unwrap();
    world.submit(&upload);
    let front = world.submit_use(image, &ALL, SAMPLED);
    let [release] = world.submission.releases() else {
        panic!("{:?}", world.submission);
    };
    assert_eq!((release.queue(), release.serial()), (transfer, 2));
    let (out, back) = (release.batch().images()[0], front.images()[0]);
    for barrier in [out, back] {
        assert_eq!((barrier.src_queue_family_index, barrier.dst_queue_family_index), (2, 0));
        assert_eq!((barrier.old_layout, barrier.new_layout), (Use::COPY_TARGET.layout, SAMPLED.layout));
    }
    assert_eq!((out.src_access_mask, out.dst_stage_mask), (Access::TRANSFER_WRITE, Stages::NONE));
    assert_eq!((back.src_access_mask, back.dst_access_mask), (Access::NONE, Access::SHADER_SAMPLED_READ));
    let [wait] = world.submission.waits() else {
        panic!("{:?}", world.submission);
    };
    assert_eq!((wait.queue, wait.serial, wait.stages), (transfer, 2, Stages::FRAGMENT_SHADER));
    // This queue owns it now.
    assert!(world.submit_use(image, &ALL, SAMPLED).is_empty());
    assert!(world.submission.waits().is_empty() && world.submission.releases().is_empty());
    // A discarding use needs no release.
    let mut upload = Recorder::new(transfer);
    upload.use_image(image, &ALL, Use::COPY_TARGET.discard()).unwrap();
    let front = world.submit(&upload);
    assert!(world.submission.releases().is_empty());
    assert_eq!(images(&front)[0].0, Layout::UNDEFINED);
    assert_eq!(world.submission.waits().len(), 1);
}

/// A host-written resource has no owner. The first family that reads it becomes the owner.
#[test]
fn host_written_resources_are_released_by_the_first_reader() {
    let mut world = World::new();
    let compute = world.global.add_queue(1);
    let read = Use::storage_read(Stages::COMPUTE_SHADER);
    let buffer = world.buffer(64);
    let submit = |world: &mut World, queue, range| {
        let mut list = Recorder::new(queue);
        list.use_buffer(buffer, range, read).unwrap();
        world.submit(&list);
        world.submission.releases().len()
    };
    let graphics = world.queue;
    // Only the used half gets an owner.
    assert_eq!(submit(&mut world, graphics, 0..32), 0);
    assert_eq!(submit(&mut world, compute, 32..64), 0);
    assert_eq!(submit(&mut world, compute, 0..32), 1);
    let release = &world.submission.releases()[0].batch().buffers()[0];
    assert_eq!((release.src_queue_family_index, release.dst_queue_family_index), (0, 1));
    assert_eq!((release.offset, release.size), (0, 32));
    assert_eq!(submit(&mut world, compute, 0..64), 0);
    assert_eq!(submit(&mut world, graphics, 0..64), 1);
    // An external semaphore orders the use, but does not change the owner.
    let buffer = world.buffer(64);
    let submit = |world: &mut World, queue| {
        let mut list = Recorder::new(queue);
        list.use_buffer(buffer, 0..64, read).unwrap();
        world.submit(&list);
        world.submission.releases().len()
    };
    world.global.acquired(buffer, graphics, Stages::COMPUTE_SHADER).unwrap();
    assert_eq!(submit(&mut world, compute), 0);
    assert_eq!(submit(&mut world, graphics), 1);
    world.global.idle(buffer).unwrap();
    assert_eq!(submit(&mut world, compute), 1, "a host write keeps the owner");
}

#[test]
fn memory_that_is_shared_is_handed_over_with_a_barrier_and_a_discard() {
    let mut world = World::new();
    let memory_range = Some(MemoryRange { memory: vk::DeviceMemory::from_raw(1), offset: 0, size: 100 });
    let shadow = world.global.add_image(&ImageInfo { memory_range, ..image_info(1) });
    let bloom = world.global.add_image(&ImageInfo { memory_range, ..image_info(2) });
    let mut list = world.list();
    list.use_image(shadow, &ALL, Use::COLOR_ATTACHMENT).unwrap();
    list.flush();
    list.use_image(bloom, &ALL, Use::storage_write(Stages::COMPUTE_SHADER)).unwrap();
    let batch = list.flush().unwrap();
    assert_eq!(batch.images()[0].old_layout, Layout::UNDEFINED);
    assert_eq!(batch.images()[0].src_stage_mask, Stages::COLOR_ATTACHMENT_OUTPUT);
    // A memory barrier makes the writes of the first image available, because an image barrier covers only its own
    // image. It also names the writes for the validation layer, which would report a hazard otherwise.
    assert_eq!(batch.memory()[0].src_access_mask, Access::COLOR_ATTACHMENT_WRITE);
    assert_eq!(batch.images()[0].src_access_mask, Access::COLOR_ATTACHMENT_WRITE);
    world.submit(&list);
    // The same between two lists.
    let front = world.submit_use(shadow, &ALL, Use::COLOR_ATTACHMENT);
    assert_eq!(front.images()[0].old_layout, Layout::UNDEFINED);
    assert_eq!(front.images()[0].src_stage_mask, Stages::COMPUTE_SHADER);
    assert!(front.memory()[0].src_access_mask == Access::SHADER_STORAGE_WRITE);
    assert!(front.images()[0].src_access_mask == Access::SHADER_STORAGE_WRITE);
    // A repeated use of the same image is not special.
    let front = world.submit_use(shadow, &ALL, SAMPLED);
    assert_eq!(front.images()[0].old_layout, Use::COLOR_ATTACHMENT.layout);
}

#[test]
fn a_frozen_resource_costs_nothing_and_refuses_writes() {
    let mut world = World::new();
    let image = world.image(4, 1);
    world.submit_use(image, &ALL, Use::COPY_TARGET);
    let not_visible = Err(StateError::NotVisible { resource: image.into() });
    assert_eq!(world.global.freeze(image, SAMPLED), not_visible);
    world.submit_use(image, &ALL, SAMPLED);
    world.global.freeze(image, SAMPLED).unwrap();
    assert_eq!(world.global.freeze(image, Use::sampled(Stages::COMPUTE_SHADER)), not_visible);
    assert!(world.submit_use(image, &ALL, SAMPLED).is_empty());
    let mut list = world.list();
    list.use_image(image, &ALL, Use::COPY_TARGET).unwrap();
    let error = world.global.resolve(world.queue, &[&list], &mut world.submission).unwrap_err();
    assert_eq!(error, ResolveError::Frozen { list: 0, resource: image.into() });
    // Resources that share its memory are rejected while it is frozen.
    let memory_range = Some(MemoryRange { memory: vk::DeviceMemory::from_raw(1), offset: 0, size: 100 });
    let shadow = world.global.add_image(&ImageInfo { memory_range, ..image_info(101) });
    let bloom = world.global.add_image(&ImageInfo { memory_range, ..image_info(102) });
    world.submit_use(shadow, &ALL, SAMPLED);
    world.global.freeze(shadow, SAMPLED).unwrap();
    world.global.freeze(shadow, SAMPLED).unwrap();
    assert!(world.submit_use(shadow, &ALL, SAMPLED).is_empty());
    let mut other = world.list();
    other.use_image(bloom, &ALL, Use::COPY_TARGET).unwrap();
    let error = world.global.resolve(world.queue, &[&other], &mut world.submission).unwrap_err();
    assert_eq!(error, ResolveError::Frozen { list: 0, resource: shadow.into() });
    world.global.thaw(shadow).unwrap();
    world.submit(&other);
    world.submit_use(shadow, &ALL, SAMPLED);
    world.global.freeze(shadow, SAMPLED).unwrap();
    world.global.remove(shadow).unwrap();
    world.submit(&other);
    world.global.thaw(image).unwrap();
    let front = world.submit(&list);
    assert_eq!(
        front.images()[0].src_stage_mask,
        Stages::FRAGMENT_SHADER,
        "undeclared reads may have happened"
    );
}

#[test]
fn a_swapchain_image_is_acquired_drawn_and_presented() {
    let mut world = World::new();
    let image = world.image(1, 1);
    for frame in 0..3 {
        world.global.acquired(image, world.queue, Stages::COLOR_ATTACHMENT_OUTPUT).unwrap();
        let mut list = world.list();
        list.use_image(image, &ALL, Use::COLOR_ATTACHMENT.discard()).unwrap();
        list.flush();
        list.use_image(image, &ALL, Use::PRESENT).unwrap();
        let present = list.flush().unwrap().images()[0];
        assert_eq!((present.dst_stage_mask, present.dst_access_mask), (Stages::NONE, Access::NONE));
        let front = world.submit(&list);
        let draw = front.images()[0];
        // After the semaphore, which waits at that stage.
        assert_eq!(draw.src_stage_mask, Stages::COLOR_ATTACHMENT_OUTPUT, "frame {frame}");
        assert_eq!((draw.old_layout, draw.src_access_mask), (Layout::UNDEFINED, Access::NONE));
    }
}

#[test]
fn external_owners_get_a_resource_and_return_it() {
    let mut world = World::new();
    let image = world.image(1, 1);
    let mut list = world.list();
    list.use_image(image, &ALL, Use::COLOR_ATTACHMENT).unwrap();
    list.flush();
    list.use_image(image, &ALL, Use::release_to(vk::QUEUE_FAMILY_EXTERNAL, Layout::GENERAL)).unwrap();
    let out = list.flush().unwrap().images()[0];
    let outside = vk::QUEUE_FAMILY_EXTERNAL;
    assert_eq!((out.src_queue_family_index, out.dst_queue_family_index), (0, outside));
    world.submit(&list);
    let back = world.submit_use(image, &ALL, SAMPLED).images()[0];
    assert_eq!((back.src_queue_family_index, back.dst_queue_family_index), (outside, 0));
    assert_eq!((back.old_layout, back.new_layout), (Layout::GENERAL, SAMPLED.layout));
}

#[test]
fn the_host_reads_behind_a_barrier_and_writes_without_one() {
    let mut world = World::new();
    let buffer = world.buffer(64);
    let mut list = world.list();
    list.use_buffer(buffer, 0..64, Use::COPY_TARGET).unwrap();
    list.flush();
    list.use_buffer(buffer, 0..64, Use::HOST_READ).unwrap();
    let barrier = list.flush().unwrap().memory()[0];
    assert_eq!((barrier.dst_stage_mask, barrier.dst_access_mask), (Stages::HOST, Access::HOST_READ));
    world.submit(&list);
    world.global.idle(buffer).unwrap();
    list.reset();
    list.use_buffer(buffer, 0..64, Use::COPY_SOURCE).unwrap();
    assert!(world.submit(&list).is_empty());
}

#[test]
fn depth_and_stencil_change_together_unless_they_may_be_apart() {
    let mut world = World::new();
    let both = vk::ImageAspectFlags::DEPTH | vk::ImageAspectFlags::STENCIL;
    for apart in [false, true] {
        let image =
            world.global.add_image(&ImageInfo { aspects: both, aspects_apart: apart, ..image_info(9) });
        world.submit_use(image, &ALL, Use::DEPTH_ATTACHMENT);
        let depth = ALL.aspects(vk::ImageAspectFlags::DEPTH);
        let front = world.submit_use(image, &depth, Use::COPY_SOURCE);
        let expected = if apart { vk::ImageAspectFlags::DEPTH } else { both };
        assert_eq!(front.images()[0].subresource_range.aspect_mask, expected);
        let front = world.submit_use(image, &ALL, Use::CLEAR);
        assert_eq!(front.images().len(), if apart { 2 } else { 1 });
    }
}

#[test]
fn barriers_of_a_submission_go_to_its_first_preamble_if_possible() {
    let mut world = World::new();
    let (first, second) = (world.image(1, 1), world.image(1, 1));
    let mut lists = [world.list(), world.list()];
    lists[0].use_image(first, &ALL, Use::COLOR_ATTACHMENT).unwrap();
    lists[1].use_image(first, &ALL, SAMPLED).unwrap();
    lists[1].use_image(second, &ALL, Use::COLOR_ATTACHMENT).unwrap();
    let lists: Vec<&Recorder> = lists.iter().collect();
    world.global.resolve(world.queue, &lists, &mut world.submission).unwrap();
    assert_eq!(world.submission.preamble(0).unwrap().len(), 2);
    assert_eq!(world.submission.preamble(1).unwrap().len(), 1, "the first list has to finish before");
}

#[test]
fn the_old_call_is_as_narrow_as_it_can_be() {
    let mut world = World::new();
    let (image, buffer) = (world.image(1, 1), world.buffer(64));
    let mut list = world.list();
    list.use_image(image, &ALL, Use::BLIT_TARGET).unwrap();
    list.use_buffer(buffer, 0..64, Use::INDIRECT).unwrap();
    list.flush();
    list.use_image(image, &ALL, SAMPLED).unwrap();
    list.use_buffer(buffer, 0..64, Use::storage_write(Stages::COMPUTE_SHADER)).unwrap();
    let old = list.flush().unwrap().to_barrier1();
    assert_eq!(old.src_stages, vk::PipelineStageFlags::TRANSFER | vk::PipelineStageFlags::DRAW_INDIRECT);
    let both = vk::PipelineStageFlags::FRAGMENT_SHADER | vk::PipelineStageFlags::COMPUTE_SHADER;
    assert_eq!(old.dst_stages, both);
    assert!(old.memory.is_empty(), "an execution dependency needs no memory barrier");
    assert_eq!(old.images[0].dst_access_mask, vk::AccessFlags::SHADER_READ);
    assert_eq!(BarrierBatch::new().to_barrier1().src_stages, vk::PipelineStageFlags::TOP_OF_PIPE);
}

#[test]
fn a_write_after_a_vertex_or_index_read_sees_the_previous_write() {
    let mut world = World::new();
    let copied = Use::COPY_TARGET;
    for (read, access) in [
        (Use::VERTICES, Access::TRANSFER_WRITE),
        (Use::INDICES, Access::TRANSFER_WRITE),
        (Use::uniform(Stages::VERTEX_SHADER), Access::NONE),
    ] {
        let buffer = world.buffer(64);
        let mut list = world.list();
        list.use_buffer(buffer, 0..64, copied).unwrap();
        list.flush();
        list.use_buffer(buffer, 0..64, read).unwrap();
        list.flush();
        list.use_buffer(buffer, 0..64, copied).unwrap();
        // A draw may have fetched less than was bound.
        let barrier = list.flush().unwrap().memory()[0];
        assert_eq!((barrier.src_access_mask, barrier.dst_access_mask), (Access::NONE, access), "{read:?}");
    }
}

#[test]
fn a_split_dependency_excludes_uses_between_its_halves() {
    let mut world = World::new();
    let image = world.image(1, 1);
    let mut list = world.list();
    let mut split = Split::new();
    assert!(!list.split_image(image, &ALL, SAMPLED, &mut split).unwrap(), "the previous state is not known");
    list.use_image(image, &ALL, Use::COLOR_ATTACHMENT).unwrap();
    list.flush();
    assert!(
        !list.split_image(image, &ALL, Use::COPY_TARGET, &mut split).unwrap(),
        "a write gets a normal barrier"
    );
    assert!(list.split_image(image, &ALL, SAMPLED, &mut split).unwrap());
    assert_eq!(split.batch().images()[0].src_access_mask, Access::COLOR_ATTACHMENT_WRITE);
    let open = UseError::Split { resource: image.into() };
    assert_eq!(list.use_image(image, &ALL, SAMPLED), Err(open));
    let error = world.global.resolve(world.queue, &[&list], &mut world.submission).unwrap_err();
    assert_eq!(error, ResolveError::Split { list: 0, resource: image.into() });
    list.join(&mut split);
    list.use_image(image, &ALL, SAMPLED).unwrap();
    assert!(list.flush().is_none());
    world.submit(&list);
}

#[test]
fn a_split_dependency_does_not_cover_later_unordered_writes() {
    let mut world = World::new();
    let buffer = world.buffer(64);
    let (write, read) = (Use::storage_write(Stages::COMPUTE_SHADER).unordered(), Use::COPY_SOURCE);
    let mut list = world.list();
    let mut split = Split::new();
    list.use_buffer(buffer, 0..64, write).unwrap();
    list.flush();
    assert!(list.split_buffer(buffer, 0..64, read, &mut split).unwrap());
    list.join(&mut split);
    list.use_buffer(buffer, 0..64, write).unwrap();
    assert!(list.flush().is_none());
    list.use_buffer(buffer, 0..64, read).unwrap();
    assert_eq!(list.flush().unwrap().len(), 1);
}

#[test]
fn lists_are_recorded_on_many_threads_in_any_order() {
    let mut world = World::new();
    let images: Vec<ImageId> = (0..8).map(|_| world.image(1, 1)).collect();
    let queue = world.queue;
    let lists: Vec<Recorder> = std::thread::scope(|scope| {
        let threads: Vec<_> = images
            .iter()
            .map(|&image| {
                scope.spawn(move || {
                    let mut list = Recorder::new(queue);
                    list.use_image(image, &ALL, SAMPLED).unwrap();
                    list
                })
            })
            .collect();
        threads.into_iter().rev().map(|thread| thread.join().unwrap()).collect()
    });
    let lists: Vec<&Recorder> = lists.iter().collect();
    world.global.resolve(queue, &lists, &mut world.submission).unwrap();
    assert_eq!(world.submission.preamble(0).unwrap().len(), 8);
    let other = world.global.add_queue(1);
    let error = world.global.resolve(other, &lists, &mut world.submission).unwrap_err();
    assert_eq!(error, ResolveError::WrongQueue { list: 0 });
}
