//! A frame does not allocate host memory after the warm-up.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

#[allow(unreachable_pub, dead_code, reason = "shared with other binaries")]
#[path = "../../../tests/shared/counting.rs"]
mod counting;

use ash::vk::{self, Handle, PipelineStageFlags2 as Stages};
use counting::count;
use sublet_frame::track::{
    BufferInfo, Global, ImageInfo, MemoryRange, Recorder, Submission, Subresources, Use,
};

#[test]
fn a_frame_of_the_tracker_does_not_allocate() {
    const ALL: Subresources = Subresources::ALL;
    let mut global = Global::new();
    let (graphics, compute) = (global.add_queue(0), global.add_queue(1));
    let memory_range = Some(MemoryRange { memory: vk::DeviceMemory::from_raw(1), offset: 0, size: 4096 });
    let mut image = |raw, mips, memory_range| {
        global.add_image(&ImageInfo { mips, memory_range, ..ImageInfo::new(vk::Image::from_raw(raw)) })
    };
    let (target, shadow, bloom) = (image(1, 1, None), image(2, 1, memory_range), image(3, 6, memory_range));
    let particles = global.add_buffer(&BufferInfo::new(vk::Buffer::from_raw(4), 4096));
    let mut lists = [Recorder::new(graphics), Recorder::new(graphics), Recorder::new(compute)];
    let mut submission = Submission::new();
    let mut frame = || {
        lists.iter_mut().for_each(Recorder::reset);
        let [draw, post, simulate] = &mut lists;
        simulate.use_buffer(particles, 0..2048, Use::storage_write(Stages::COMPUTE_SHADER)).unwrap();
        simulate.flush();
        simulate.use_buffer(particles, 1024..4096, Use::storage_read(Stages::COMPUTE_SHADER)).unwrap();
        simulate.flush();
        draw.use_image(shadow, &ALL, Use::COLOR_ATTACHMENT).unwrap();
        draw.use_buffer(particles, 0..4096, Use::VERTICES).unwrap();
        draw.flush();
        draw.use_image(shadow, &ALL, Use::sampled(Stages::FRAGMENT_SHADER)).unwrap();
        draw.use_image(target, &ALL, Use::COLOR_ATTACHMENT.discard()).unwrap();
        draw.flush();
        post.use_image(target, &ALL, Use::sampled(Stages::COMPUTE_SHADER)).unwrap();
        for mip in 0..6 {
            post.use_image(bloom, &ALL.mips(mip..mip + 1), Use::storage_write(Stages::COMPUTE_SHADER))
                .unwrap();
            post.flush();
        }
        global.resolve(compute, &[&lists[2]], &mut submission).unwrap();
        global.resolve(graphics, &[&lists[0], &lists[1]], &mut submission).unwrap();
        assert_eq!(submission.releases().len(), 1);
        assert!(submission.preamble(0).is_some());
    };
    for _ in 0..4 {
        frame();
    }
    let before = count();
    for _ in 0..100 {
        frame();
    }
    assert_eq!(count() - before, 0);
}
