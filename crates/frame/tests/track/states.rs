//! Derived states: joined from two, or taken over from another queue.

use ash::vk::{self, Handle};
use sublet_frame::track::{
    BufferId, BufferInfo, Global, MemoryRange, Queue, Recorder, Submission, Use, join_states_above,
};
use vk::PipelineStageFlags2 as Stages;

/// Submits one list to `queue`.
fn submit(global: &mut Global, queue: Queue, uses: &[(BufferId, std::ops::Range<u64>, Use)]) -> Submission {
    let mut list = Recorder::new(queue);
    for (buffer, range, usage) in uses {
        list.use_buffer(*buffer, range.clone(), *usage).unwrap();
        list.flush();
    }
    let mut submission = Submission::new();
    global.resolve(queue, &[&list], &mut submission).unwrap();
    submission
}

/// Joins a written part with one that was also read. A later unordered write must wait for the reader.
#[test]
fn an_unordered_write_waits_for_readers_of_a_joined_part() {
    join_states_above(0, 0);
    let mut global = Global::new();
    let queue = global.add_queue(0);
    let buffer = global.add_buffer(&BufferInfo::new(vk::Buffer::from_raw(1), 8));
    let write = (buffer, 0..8, Use::COPY_TARGET.unordered());
    submit(&mut global, queue, &[write.clone(), (buffer, 5..7, Use::COPY_SOURCE)]);
    assert_eq!(global.intervals(buffer).unwrap(), 1, "the states are joined");

    let submission = submit(&mut global, queue, &[write]);
    let barriers = submission.preamble(0).expect("the write waits for the reader").memory();
    assert!(barriers.iter().all(|barrier| barrier.src_stage_mask == Stages::COPY), "{barriers:?}");
}

/// A queue that reads memory without an owner takes over its state. Later waits name a submission to that queue.
#[test]
fn later_readers_wait_for_the_reader_that_took_over_a_state() {
    let mut global = Global::new();
    let (first, second) = (global.add_queue(0), global.add_queue(0));
    let [old, new] = [1, 2].map(|raw| {
        let memory_range = MemoryRange { memory: vk::DeviceMemory::from_raw(1), offset: 0, size: 8 };
        let info =
            BufferInfo { memory_range: Some(memory_range), ..BufferInfo::new(vk::Buffer::from_raw(raw), 8) };
        global.add_buffer(&info)
    });
    submit(&mut global, first, &[(old, 0..8, Use::COPY_TARGET)]);
    // Takes over the memory from `old`: the second half has a state, but no owner.
    submit(&mut global, first, &[(new, 0..4, Use::COPY_TARGET)]);
    let taken = submit(&mut global, second, &[(new, 4..8, Use::COPY_SOURCE)]);
    assert_eq!(taken.waits().iter().map(|wait| (wait.queue, wait.serial)).collect::<Vec<_>>(), [(first, 2)]);

    let back = submit(&mut global, first, &[(new, 4..8, Use::COPY_SOURCE)]);
    for wait in back.waits() {
        assert!(wait.serial <= global.submitted(wait.queue), "nobody signals {wait:?}");
    }
    assert_eq!(back.waits().iter().map(|wait| (wait.queue, wait.serial)).collect::<Vec<_>>(), [(second, 1)]);
}
