//! A revoked submission leaves no trace.

use ash::vk;
use sublet_frame::track::{BufferInfo, Global, ImageInfo, Recorder, Submission, Subresources, Use};

/// Two queues of two families, an image that changes its owner, and a buffer that is written in parts.
#[test]
fn a_revoked_submission_leaves_no_trace() {
    let (mut one, mut two) = (Global::new(), Global::new());
    let mut lists = Vec::new();
    for global in [&mut one, &mut two] {
        let (graphics, compute) = (global.add_queue(0), global.add_queue(1));
        let image = global.add_image(&ImageInfo { mips: 4, ..ImageInfo::new(vk::Image::null()) });
        let buffer = global.add_buffer(&BufferInfo::new(vk::Buffer::null(), 1024));
        let stages = vk::PipelineStageFlags2::COMPUTE_SHADER;
        let mut first = Recorder::new(graphics);
        first.use_image(image, &Subresources::ALL, Use::COPY_TARGET.discard()).unwrap();
        first.use_buffer(buffer, 0..512, Use::COPY_TARGET).unwrap();
        let mut second = Recorder::new(compute);
        second.use_image(image, &Subresources::ALL.mips(1..3), Use::storage_write(stages)).unwrap();
        second.use_buffer(buffer, 256..1024, Use::storage_write(stages)).unwrap();
        let mut third = Recorder::new(graphics);
        third.use_image(image, &Subresources::ALL, Use::COPY_SOURCE).unwrap();
        third.use_buffer(buffer, 0..1024, Use::COPY_SOURCE).unwrap();
        lists.push([(graphics, first), (compute, second), (graphics, third)]);
    }
    let two_lists = lists.pop().unwrap();
    let one_lists = lists.pop().unwrap();
    let (mut plain, mut revocable) = (Submission::new(), Submission::revocable());
    for ((queue, list), (other_queue, other)) in one_lists.iter().zip(&two_lists) {
        one.resolve(*queue, &[list], &mut plain).unwrap();
        assert!(!one.revoke(&mut plain), "nothing was saved");
        for _ in 0..3 {
            two.resolve(*other_queue, &[other], &mut revocable).unwrap();
            assert!(two.revoke(&mut revocable));
            assert!(!two.revoke(&mut revocable), "only once");
        }
        two.resolve(*other_queue, &[other], &mut revocable).unwrap();
        assert_eq!(plain.serial(), revocable.serial());
        // Queues of two `Global`s are never equal.
        let waits = |submission: &Submission| format!("{:?}", submission.waits());
        assert_eq!(waits(&plain), waits(&revocable));
        let releases = |submission: &Submission| format!("{:?}", submission.releases());
        assert_eq!(releases(&plain), releases(&revocable));
        assert_eq!(format!("{:?}", plain.preamble(0)), format!("{:?}", revocable.preamble(0)));
    }
    assert_eq!(plain.releases().len(), 1, "ownership returns");
}
