//! A fence for each frame slot.

use ash::vk;
use sublet::retire::TimelineId;

use super::fixture::Fixture;

/// The frame slots of a renderer.
struct Slots {
    timeline: TimelineId,
    fences: Vec<vk::Fence>,
    /// The submission that signals each slot's fence.
    submission: Vec<u64>,
}

impl Slots {
    fn new(fixture: &Fixture, count: usize) -> Self {
        let info = vk::FenceCreateInfo::default();
        // SAFETY: the create-info is valid.
        let fence = |_| unsafe { fixture.gpu.device().create_fence(&info, None) }.unwrap();
        let fences = (0..count).map(fence).collect();
        Self { timeline: fixture.clock.add_timeline().unwrap(), fences, submission: vec![0; count] }
    }

    /// Waits for the slot's fence. The GPU signals it no earlier than necessary.
    fn wait(&self, fixture: &Fixture, slot: usize) {
        if self.submission[slot] == 0 {
            return;
        }
        // SAFETY: the fence is live.
        if !unsafe { fixture.gpu.device().get_fence_status(self.fences[slot]) }.unwrap() {
            fixture.execute(self.submission[slot]);
        }
        let fences = [self.fences[slot]];
        // SAFETY: the fence is live.
        unsafe { fixture.gpu.device().wait_for_fences(&fences, true, u64::MAX) }.unwrap();
        // SAFETY: the fence is live, and its submission is done.
        unsafe { fixture.gpu.device().reset_fences(&fences) }.unwrap();
    }

    /// Runs one frame that uses a new buffer and retires it.
    fn frame(&mut self, fixture: &mut Fixture, slot: usize) {
        self.wait(fixture, slot);
        let ticket = fixture.clock.begin_frame(self.timeline, u32::try_from(slot).unwrap());
        fixture.collect().unwrap();
        let (buffer, allocation) = fixture.buffer();
        let commands = fixture.record(&[buffer]);
        // SAFETY: this frame is the only one that uses the buffer.
        unsafe { fixture.retired.retire_buffer(ticket, buffer, allocation) };
        self.submission[slot] = fixture.submit(commands, None, self.fences[slot]);
        fixture.clock.end_frame(ticket).unwrap();
    }

    fn destroy(self, fixture: &Fixture) {
        for fence in self.fences {
            // SAFETY: nothing is in flight.
            unsafe { fixture.gpu.device().destroy_fence(fence, None) };
        }
    }
}

#[test]
fn what_frames_retire_is_freed_when_their_slots_come_again_and_not_before() {
    let mut fixture = Fixture::new();
    let mut slots = Slots::new(&fixture, 3);
    for frame in 0..30 {
        slots.frame(&mut fixture, frame % 3);
        assert_eq!(fixture.retired.len(), (frame + 1).min(3));
    }
    fixture.execute_all();
    fixture.clock.idle();
    assert_eq!(fixture.collect().unwrap(), 3);
    slots.destroy(&fixture);
}

#[test]
fn a_frame_slot_that_is_never_used_again_holds_nothing_back() {
    let mut fixture = Fixture::new();
    let mut slots = Slots::new(&fixture, 3);
    for frame in 0..6 {
        slots.frame(&mut fixture, frame % 3);
    }
    // Two frames in flight instead of three: slot 2 is not used any more.
    for frame in 6..30 {
        slots.frame(&mut fixture, frame % 2);
    }
    assert_eq!(fixture.retired.len(), 2, "only what is in flight waits");
    // One frame in flight.
    for _ in 30..40 {
        slots.frame(&mut fixture, 1);
    }
    assert_eq!(fixture.retired.len(), 1);
    fixture.execute_all();
    fixture.clock.idle();
    assert_eq!(fixture.collect().unwrap(), 1);
    slots.destroy(&fixture);
}

#[test]
fn a_slot_begun_twice_without_an_end_frees_nothing_of_the_first() {
    let mut fixture = Fixture::new();
    let mut slots = Slots::new(&fixture, 2);
    slots.frame(&mut fixture, 0);
    // The frame is begun and recorded, and then begun again, for example after a window resize.
    slots.wait(&fixture, 0);
    let first = fixture.clock.begin_frame(slots.timeline, 0);
    let (buffer, allocation) = fixture.buffer();
    // SAFETY: nothing else uses the buffer.
    unsafe { fixture.retired.retire_buffer(first, buffer, allocation) };
    slots.submission[0] = 0;
    slots.frame(&mut fixture, 0);
    slots.frame(&mut fixture, 1);
    slots.frame(&mut fixture, 0);
    assert!(!fixture.clock.is_done(first), "it may still be submitted");
    // This time the frame is submitted.
    let commands = fixture.record(&[buffer]);
    slots.wait(&fixture, 1);
    slots.submission[1] = fixture.submit(commands, None, slots.fences[1]);
    fixture.clock.end_frame(first).unwrap();
    fixture.collect().unwrap();
    fixture.execute_all();
    fixture.clock.idle();
    fixture.collect().unwrap();
    slots.destroy(&fixture);
}

#[test]
fn a_frame_that_is_discarded_frees_at_once_what_only_it_used() {
    let fixture = Fixture::new();
    let timeline = fixture.clock.add_timeline().unwrap();
    let frame = fixture.clock.begin_frame(timeline, 0);
    let (buffer, allocation) = fixture.buffer();
    let _never_submitted = fixture.record(&[buffer]);
    // SAFETY: only this frame uses the buffer.
    unsafe { fixture.retired.retire_buffer(frame, buffer, allocation) };
    assert_eq!(fixture.collect().unwrap(), 0);
    fixture.clock.discard(frame).unwrap();
    assert_eq!(fixture.collect().unwrap(), 1);
}
