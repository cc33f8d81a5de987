//! A fence for each frame slot.

use ash::vk;
use sublet::retire::LaneId;

use super::rig::Rig;

/// The frame slots of a renderer.
struct Slots {
    lane: LaneId,
    fences: Vec<vk::Fence>,
    /// The submission that signals each slot's fence.
    submission: Vec<u64>,
}

impl Slots {
    fn new(rig: &Rig, count: usize) -> Self {
        let info = vk::FenceCreateInfo::default();
        // SAFETY: the create-info is valid.
        let fence = |_| unsafe { rig.gpu.device().create_fence(&info, None) }.unwrap();
        let fences = (0..count).map(fence).collect();
        Self { lane: rig.clock.add_lane().unwrap(), fences, submission: vec![0; count] }
    }

    /// Waits for the slot's fence. The GPU signals it no earlier than necessary.
    fn wait(&self, rig: &Rig, slot: usize) {
        if self.submission[slot] == 0 {
            return;
        }
        // SAFETY: the fence is live.
        if !unsafe { rig.gpu.device().get_fence_status(self.fences[slot]) }.unwrap() {
            rig.execute(self.submission[slot]);
        }
        let fences = [self.fences[slot]];
        // SAFETY: the fence is live.
        unsafe { rig.gpu.device().wait_for_fences(&fences, true, u64::MAX) }.unwrap();
        // SAFETY: the fence is live, and its submission is done.
        unsafe { rig.gpu.device().reset_fences(&fences) }.unwrap();
    }

    /// Runs one frame that uses a new buffer and retires it.
    fn frame(&mut self, rig: &mut Rig, slot: usize) {
        self.wait(rig, slot);
        let ticket = rig.clock.begin_frame(self.lane, u32::try_from(slot).unwrap());
        rig.collect().unwrap();
        let (buffer, allocation) = rig.buffer();
        let commands = rig.record(&[buffer]);
        // SAFETY: this frame is the only one that uses the buffer.
        unsafe { rig.retired.retire_buffer(ticket, buffer, allocation) };
        self.submission[slot] = rig.submit(commands, None, self.fences[slot]);
        rig.clock.end_frame(ticket).unwrap();
    }

    fn destroy(self, rig: &Rig) {
        for fence in self.fences {
            // SAFETY: nothing is in flight.
            unsafe { rig.gpu.device().destroy_fence(fence, None) };
        }
    }
}

#[test]
fn what_frames_retire_is_freed_when_their_slots_come_again_and_not_before() {
    let mut rig = Rig::new();
    let mut slots = Slots::new(&rig, 3);
    for frame in 0..30 {
        slots.frame(&mut rig, frame % 3);
        assert_eq!(rig.retired.len(), (frame + 1).min(3));
    }
    rig.execute_all();
    rig.clock.idle();
    assert_eq!(rig.collect().unwrap(), 3);
    slots.destroy(&rig);
}

#[test]
fn a_frame_slot_that_is_never_used_again_holds_nothing_back() {
    let mut rig = Rig::new();
    let mut slots = Slots::new(&rig, 3);
    for frame in 0..6 {
        slots.frame(&mut rig, frame % 3);
    }
    // Two frames in flight instead of three: slot 2 is not used any more.
    for frame in 6..30 {
        slots.frame(&mut rig, frame % 2);
    }
    assert_eq!(rig.retired.len(), 2, "only what is in flight waits");
    // One frame in flight.
    for _ in 30..40 {
        slots.frame(&mut rig, 1);
    }
    assert_eq!(rig.retired.len(), 1);
    rig.execute_all();
    rig.clock.idle();
    assert_eq!(rig.collect().unwrap(), 1);
    slots.destroy(&rig);
}

#[test]
fn a_slot_begun_twice_without_an_end_frees_nothing_of_the_first() {
    let mut rig = Rig::new();
    let mut slots = Slots::new(&rig, 2);
    slots.frame(&mut rig, 0);
    // The frame is begun and recorded, and then begun again, for example after a window resize.
    slots.wait(&rig, 0);
    let first = rig.clock.begin_frame(slots.lane, 0);
    let (buffer, allocation) = rig.buffer();
    // SAFETY: nothing else uses the buffer.
    unsafe { rig.retired.retire_buffer(first, buffer, allocation) };
    slots.submission[0] = 0;
    slots.frame(&mut rig, 0);
    slots.frame(&mut rig, 1);
    slots.frame(&mut rig, 0);
    assert!(!rig.clock.is_done(first), "it may still be submitted");
    // This time the frame is submitted.
    let commands = rig.record(&[buffer]);
    slots.wait(&rig, 1);
    slots.submission[1] = rig.submit(commands, None, slots.fences[1]);
    rig.clock.end_frame(first).unwrap();
    rig.collect().unwrap();
    rig.execute_all();
    rig.clock.idle();
    rig.collect().unwrap();
    slots.destroy(&rig);
}

#[test]
fn a_frame_that_is_discarded_frees_at_once_what_only_it_used() {
    let rig = Rig::new();
    let lane = rig.clock.add_lane().unwrap();
    let frame = rig.clock.begin_frame(lane, 0);
    let (buffer, allocation) = rig.buffer();
    let _never_submitted = rig.record(&[buffer]);
    // SAFETY: only this frame uses the buffer.
    unsafe { rig.retired.retire_buffer(frame, buffer, allocation) };
    assert_eq!(rig.collect().unwrap(), 0);
    rig.clock.discard(frame).unwrap();
    assert_eq!(rig.collect().unwrap(), 1);
}
