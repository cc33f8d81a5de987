//! Objects of other frames are rejected.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ash::vk;
use sublet_frame::track::{StateError, Subresources, Use};
use sublet_frame::{BeginError, ListError, OpenError, SubmitError};

use crate::fixture::{FrameFixture, PROFILES, image_info};

const STAGES: vk::PipelineStageFlags2 = vk::PipelineStageFlags2::ALL_COMMANDS;

/// The foreign id refers to the same slot, whose image would otherwise change its layout.
#[test]
fn ids_of_other_frames_are_refused() {
    let (mut fixture, mut other) = (FrameFixture::new("lavapipe", 1), FrameFixture::new("lavapipe", 1));
    let info = image_info(vk::Format::R8G8B8A8_UNORM, (4, 4), 1, 1);
    let (own, foreign) = (fixture.image(&info), other.image(&info));
    let frames = fixture.frames();
    let queue = frames.queue(0);
    let clear = |list: &mut sublet_frame::CommandList| unsafe {
        list.clear_color(&own, &Subresources::ALL, vk::ClearColorValue::default())
    };
    let mut list = frames.list(queue).unwrap();
    clear(&mut list).unwrap();
    assert_eq!(list.storage_barrier(foreign.id()), Err(ListError::OtherFrames));
    assert_eq!(list.storage_barrier(own.id()), Ok(()));
    let keep = unsafe { list.use_image(&foreign, &Subresources::ALL, Use::COPY_SOURCE) };
    assert_eq!(keep, Err(ListError::OtherFrames));
    // The list is not broken.
    frames.submit(queue, [list]).unwrap();
    frames.wait_idle().unwrap();

    let resource = foreign.id().into();
    let refused = Err(StateError::OtherGlobal { resource });
    assert_eq!(frames.freeze(foreign.id(), Use::CLEAR), refused);
    assert_eq!(frames.thaw(foreign.id()), refused);
    assert_eq!(unsafe { frames.idle(foreign.id()) }, refused);
    assert_eq!(unsafe { frames.acquired(foreign.id(), queue, STAGES) }, refused);
    let layout = vk::ImageLayout::GENERAL;
    assert_eq!(unsafe { frames.assume_layout(foreign.id(), layout) }, refused);
    let other_queue = other.frames().queue(0);
    let frames = fixture.frames();
    assert_eq!(
        unsafe { frames.acquired(own.id(), other_queue, STAGES) },
        Err(StateError::OtherQueue { queue: other_queue })
    );
    let mut list = frames.list(queue).unwrap();
    clear(&mut list).unwrap();
    frames.submit(queue, [list]).unwrap();
}

#[test]
fn queues_of_other_frames_are_refused() {
    let (mut fixture, mut other) = (FrameFixture::new("lavapipe", 1), FrameFixture::new("lavapipe", 1));
    let foreign = other.frames().queue(0);
    let frames = fixture.frames();
    assert_eq!(frames.list(foreign).err(), Some(OpenError::NoSuchQueue));
    let list = frames.list(frames.queue(0)).unwrap();
    assert_eq!(frames.submit(foreign, [list]), Err(SubmitError::WrongQueue { list: 0 }));
    assert_eq!(frames.submit(foreign, []), Err(SubmitError::WrongQueue { list: 0 }));
    let called = catch_unwind(AssertUnwindSafe(|| frames.with_queue(foreign, |_| ())));
    assert!(called.is_err(), "the queue belongs to other frames");
    frames.with_queue(frames.queue(0), |_| ());
}

#[test]
fn tickets_of_other_frames_are_not_waited_for() {
    for profile in PROFILES {
        let (mut fixture, mut other) = (FrameFixture::new(profile, 1), FrameFixture::new(profile, 1));
        let buffer = other.buffer(16);
        other.gpu.hold_submissions(true);
        let frames = other.frames();
        let mut list = frames.list(frames.queue(0)).unwrap();
        list.fill_buffer(&buffer, 0..16, 0).unwrap();
        let read = list.read_buffer(&buffer, 0..16).unwrap();
        let ticket = frames.submit(frames.queue(0), [list]).unwrap();
        let own = fixture.frames();
        for what in [Some(ticket), (&read).into()] {
            let refused = own.wait(what);
            let reported = matches!(refused, Err(BeginError::OtherFrames { ticket: of }) if of == ticket);
            assert!(reported, "{profile}: {refused:?}");
        }
        assert!(own.clock().is_foreign(ticket) && !own.clock().is_done(ticket));
        other.frames().wait(&read).unwrap();
        assert_eq!(read.bytes().unwrap(), [0; 16]);
    }
}

/// Retired objects wait for the device, regardless of other clocks.
#[test]
fn retired_objects_wait_for_their_submission() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    fixture.gpu.hold_submissions(true);
    let info = vk::BufferCreateInfo::default().size(64).usage(vk::BufferUsageFlags::TRANSFER_DST);
    let (raw, allocation) =
        unsafe { fixture.allocator.create_buffer(&info, &crate::fixture::auto()) }.unwrap();
    let frames = fixture.frames();
    let mut list = frames.list(frames.queue(0)).unwrap();
    unsafe { list.raw(|device, commands| device.cmd_fill_buffer(commands, raw, 0, 64, 1)) }.unwrap();
    let ticket = frames.submit(frames.queue(0), [list]).unwrap();
    unsafe { frames.retired().retire_buffer(ticket, raw, allocation) };
    frames.collect().unwrap();
    assert_eq!(fixture.gpu.live().buffers, 1);
    let frames = fixture.frames();
    frames.wait(ticket).unwrap();
    frames.collect().unwrap();
    assert_eq!(fixture.gpu.live().buffers, 0);
}
