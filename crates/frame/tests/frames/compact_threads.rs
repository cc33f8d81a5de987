//! Compaction while other threads record lists and freeze resources.

use std::sync::Barrier;

use sublet_frame::track::{StateError, Use};
use sublet_frame::{Buffer, CompactStep, Compactor, CompactorCreateInfo};

use crate::compact::{SIZE, check, fixture, info, scattered};

#[test]
fn other_threads_record_lists_during_a_step() {
    let mut fixture = fixture("lavapipe", 2);
    let frames = fixture.frames.as_mut().unwrap();
    let (buffers, images) = scattered(frames).unwrap();
    let mut compactor = Compactor::new(CompactorCreateInfo { max_moves_per_frame: 2, ..info(frames) });
    for round in 0..20 {
        frames.begin().unwrap();
        compactor.request();
        let (shared, queue) = (&*frames, frames.queue(round % 2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for (at, buffer) in (0_u32..).zip(&buffers) {
                    let mut list = shared.list(queue).unwrap();
                    list.fill_buffer(buffer, 0..SIZE, at * 0x0101_0101).unwrap();
                    shared.submit(queue, [list]).unwrap();
                }
            });
            compactor.step(shared).unwrap();
        });
        frames.end();
    }
    check(frames, &buffers, &images).unwrap();
}

#[test]
fn resources_frozen_by_another_thread_do_not_move() {
    let mut fixture = fixture("lavapipe", 2);
    let shown = Use::COPY_SOURCE;
    let mut frozen = 0;
    for _ in 0..20 {
        let frames = fixture.frames.as_mut().unwrap();
        let (buffers, images) = scattered(frames).unwrap();
        frames.wait_idle().unwrap();
        let mut compactor = Compactor::new(CompactorCreateInfo { max_moves_per_frame: 1, ..info(frames) });
        compactor.request();
        let (shared, queue) = (&*frames, frames.queue(0));
        std::thread::scope(|scope| {
            let freezing = scope.spawn(|| {
                let mut frozen = 0;
                for buffer in buffers.iter().rev().cycle().take(30) {
                    let mut list = shared.list(queue).unwrap();
                    unsafe { list.use_buffer(buffer, 0..SIZE, shown) }.unwrap();
                    let id = buffer.id();
                    shared.submit(queue, [list]).unwrap();
                    if shared.freeze(id, shown).is_ok() {
                        std::thread::yield_now();
                        assert_eq!(buffer.id(), id, "the buffer was moved");
                        frozen += 1;
                        shared.thaw(id).unwrap();
                    }
                }
                frozen
            });
            while !freezing.is_finished() {
                compactor.request();
                compactor.step(shared).unwrap();
                shared.collect().unwrap();
            }
            frozen += freezing.join().unwrap();
        });
        check(frames, &buffers, &images).unwrap();
    }
    assert!(frozen > 100, "only {frozen} were frozen");
}

#[test]
fn the_old_id_of_a_moved_resource_cannot_be_frozen() {
    let mut fixture = fixture("lavapipe", 1);
    let frames = fixture.frames.as_mut().unwrap();
    let (buffers, _images) = scattered(frames).unwrap();
    frames.wait_idle().unwrap();
    let ids: Vec<_> = buffers.iter().map(Buffer::id).collect();
    // The list keeps the old buffers that it reads.
    fixture.gpu.hold_submissions(true);
    let frames = fixture.frames.as_mut().unwrap();
    let mut list = frames.list(frames.queue(0)).unwrap();
    for buffer in &buffers {
        unsafe { list.use_buffer(buffer, 0..SIZE, Use::COPY_SOURCE) }.unwrap();
    }
    frames.submit(frames.queue(0), [list]).unwrap();
    let mut compactor = Compactor::new(info(frames));
    compactor.request();
    frames.begin().unwrap();
    assert!(matches!(compactor.step(frames).unwrap(), CompactStep::Moved { .. }));
    let mut moved = 0;
    for (buffer, &id) in buffers.iter().zip(&ids).filter(|(buffer, id)| buffer.id() != **id) {
        moved += 1;
        assert!(matches!(frames.freeze(id, Use::COPY_SOURCE), Err(StateError::Destroyed { .. })));
        let mut list = frames.list(frames.queue(0)).unwrap();
        unsafe { list.use_buffer(buffer, 0..SIZE, Use::COPY_SOURCE) }.unwrap();
        frames.submit(frames.queue(0), [list]).unwrap();
        frames.freeze(buffer.id(), Use::COPY_SOURCE).unwrap();
    }
    assert!(moved > 0);
    frames.end();
}

#[test]
fn another_thread_freezes_within_with_queue_during_a_step() {
    let mut fixture = fixture("lavapipe", 1);
    let frames = fixture.frames.as_mut().unwrap();
    let (buffers, images) = scattered(frames).unwrap();
    let mut compactor = Compactor::new(CompactorCreateInfo { max_moves_per_frame: 1, ..info(frames) });
    for _ in 0..20 {
        frames.begin().unwrap();
        compactor.request();
        let (shared, entered) = (&*frames, Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                shared.with_queue(shared.queue(0), |_| {
                    entered.wait();
                    for id in buffers.iter().map(Buffer::id) {
                        if shared.freeze(id, Use::COPY_SOURCE).is_ok() {
                            shared.thaw(id).unwrap();
                        }
                        std::thread::yield_now();
                    }
                });
            });
            entered.wait();
            compactor.step(shared).unwrap();
        });
        frames.end();
    }
    check(frames, &buffers, &images).unwrap();
}
