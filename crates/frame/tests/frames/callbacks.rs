//! Callbacks into the program: with the queue, with barriers, and destructors. They may use everything, and may panic.
//! A test that does not end is deadlocked.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ash::vk;
use sublet_frame::track::{Queue, Use};
use sublet_frame::{
    BarrierObserver, Buffer, CommandList, CompactStep, Compactor, Frames, ListError, ReadBack, ReadError,
    SubmitError,
};

use crate::compact;
use crate::fixture::{
    FrameFixture, FrameParts, PROFILES, buffer, frames_with, gpu, image, image_info, parts,
};
use crate::held::hold;

fn watched(profile: &str, queues: u32, observer: BarrierObserver) -> FrameFixture {
    let gpu = gpu(profile, queues);
    let (allocator, descriptors) = parts(&gpu);
    let frames = frames_with(&gpu, &allocator, &descriptors, queues as usize, |info| {
        info.on_barriers = Some(observer);
    });
    hold(FrameParts { frames: Some(frames.unwrap()), descriptors, allocator, gpu })
}

/// Performs everything that a program might do in a callback.
fn everything(frames: &Frames, spare: Option<Buffer>) {
    drop(spare);
    let made = buffer(frames, 64);
    drop(image(frames, &image_info(vk::Format::R8G8B8A8_UNORM, (4, 4), 1, 1)));
    let mut list = frames.list(frames.queue(0)).unwrap();
    list.fill_buffer(&made, 0..64, 7).unwrap();
    let read = list.read_buffer(&made, 0..64).unwrap();
    let ticket = frames.submit(frames.queue(0), [list]).unwrap();
    frames.wait(ticket).unwrap();
    assert_eq!(read.bytes().unwrap()[..4], [7, 0, 0, 0]);
    let _ = frames.freeze(made.id(), Use::COPY_SOURCE);
    frames.thaw(made.id()).unwrap();
    made.pin(true);
    frames.collect().unwrap();
    frames.with_queue(frames.queue(0), |_| ());
    drop(frames.list(frames.queue(0)).unwrap());
    frames.wait_idle().unwrap();
    assert!(frames.statistics().lists > 0);
}

/// Records a list that reads the previous number and then writes one.
fn written(frames: &Frames, queue: Queue, shared: &Buffer, round: u32) -> CommandList {
    let mut list = frames.list(queue).unwrap();
    if round > 1 {
        let copy = vk::BufferCopy { src_offset: 0, dst_offset: 32, size: 32 };
        list.copy_buffer(shared, shared, &[copy]).unwrap();
    }
    list.fill_buffer(shared, 0..32, round).unwrap();
    list
}

/// Submits lists on the first queue, and one on the last, of another family, that takes ownership.
fn two_lists(frames: &Frames, queues: usize, shared: &Buffer) {
    for (queue, round) in [(0, 1), (queues - 1, 2), (0, 3)] {
        let queue = frames.queue(queue);
        let list = written(frames, queue, shared, round);
        frames.submit(queue, [list]).unwrap();
    }
}

#[test]
fn everything_is_allowed_within_with_queue() {
    for profile in PROFILES {
        let mut fixture = FrameFixture::new(profile, 1);
        let spare = fixture.buffer(64);
        let frames = fixture.frames();
        frames.with_queue(frames.queue(0), |_| everything(frames, Some(spare)));
    }
}

/// The frames for the observer, and the number of its calls.
#[derive(Default)]
struct Watch {
    frames: Mutex<Option<Arc<Frames>>>,
    spares: Mutex<Vec<Buffer>>,
    calls: AtomicU64,
}

thread_local! {
    static WATCHING: Cell<bool> = const { Cell::new(false) };
}

impl Watch {
    fn observer(self: &Arc<Self>) -> BarrierObserver {
        let watch = Arc::clone(self);
        Arc::new(move |batch| {
            assert!(!batch.is_empty());
            let frames = watch.frames.lock().unwrap().clone();
            // The calls of the observer record barriers too.
            let Some(frames) = frames.filter(|_| !WATCHING.replace(true)) else { return };
            watch.calls.fetch_add(1, Ordering::Relaxed);
            let spare = watch.spares.lock().unwrap().pop();
            everything(&frames, spare);
            WATCHING.set(false);
        })
    }
}

#[test]
fn everything_is_allowed_in_a_barrier_observer() {
    for profile in PROFILES {
        let watch = Arc::new(Watch::default());
        let mut fixture = watched(profile, 3, watch.observer());
        let shared = fixture.buffer(64);
        watch.spares.lock().unwrap().extend((0..20).map(|_| fixture.buffer(64)));
        let frames = Arc::new(fixture.frames.take().unwrap());
        *watch.frames.lock().unwrap() = Some(Arc::clone(&frames));
        two_lists(&frames, 3, &shared);
        frames.wait_idle().unwrap();
        *watch.frames.lock().unwrap() = None;
        watch.spares.lock().unwrap().clear();
        // Within two lists, in their preambles, and their releases.
        let calls = watch.calls.load(Ordering::Relaxed);
        assert!(calls >= 6, "{profile}: {calls}");
    }
}

#[test]
fn everything_is_allowed_in_a_barrier_observer_of_a_compactor() {
    let watch = Arc::new(Watch::default());
    let mut fixture = compact::fixture_with("lavapipe", 1, Some(watch.observer()));
    let mut frames = fixture.frames.take().unwrap();
    let _moved = compact::scattered(&mut frames).unwrap();
    frames.wait_idle().unwrap();
    let mut compactor = Compactor::new(compact::info(&frames));
    compactor.request();
    let frames = Arc::new(frames);
    *watch.frames.lock().unwrap() = Some(Arc::clone(&frames));
    let mut moved = 0;
    for _ in 0..100 {
        match compactor.step(&frames).unwrap() {
            CompactStep::Moved { moves, .. } => moved += moves,
            CompactStep::Ended(_) => break,
            _ => {}
        }
        frames.wait_idle().unwrap();
    }
    *watch.frames.lock().unwrap() = None;
    assert!(moved > 0 && watch.calls.load(Ordering::Relaxed) > 0);
}

#[test]
fn barriers_are_observed_once_in_recording_order() {
    for profile in PROFILES {
        let shown = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&shown);
        let observer: BarrierObserver = Arc::new(move |batch| sink.lock().unwrap().push(batch.len() as u64));
        let mut fixture = watched(profile, 3, observer);
        let shared = fixture.buffer(64);
        two_lists(fixture.frames(), 3, &shared);
        let statistics = fixture.frames().statistics();
        let shown = shown.lock().unwrap();
        assert_eq!(shown.len() as u64, statistics.barrier_calls, "{profile}");
        assert_eq!(shown.iter().sum::<u64>(), statistics.barriers, "{profile}");
        assert_eq!(statistics.releases, 2);
    }
}

/// Returns an observer that panics on request.
fn fuse() -> (Arc<AtomicU64>, BarrierObserver) {
    let fuse = Arc::new(AtomicU64::new(u64::MAX));
    let own = Arc::clone(&fuse);
    (fuse, Arc::new(move |_| assert!(own.fetch_sub(1, Ordering::Relaxed) > 0, "it burns")))
}

#[test]
fn a_list_whose_observer_panicked_is_not_submitted() {
    for profile in PROFILES {
        let (fuse, observer) = fuse();
        let mut fixture = watched(profile, 1, observer);
        let shared = fixture.buffer(64);
        let frames = fixture.frames();
        let queue = frames.queue(0);
        let mut list = frames.list(queue).unwrap();
        list.fill_buffer(&shared, 0..64, 1).unwrap();
        fuse.store(0, Ordering::Relaxed);
        assert!(catch_unwind(AssertUnwindSafe(|| list.fill_buffer(&shared, 0..64, 2))).is_err());
        fuse.store(u64::MAX, Ordering::Relaxed);
        // The barrier was recorded, but not its command. The same command can be recorded after it.
        list.fill_buffer(&shared, 0..64, 3).unwrap();
        let refused = frames.submit(queue, [list]);
        assert_eq!(refused, Err(SubmitError::Broken { list: 0, error: Box::new(ListError::Observer) }));
    }
}

#[test]
fn states_match_the_submission_when_an_observer_panics() {
    for profile in PROFILES {
        let (fuse, observer) = fuse();
        let mut fixture = watched(profile, 3, observer);
        let shared = fixture.buffer(64);
        let frames = fixture.frames();
        for (queue, value) in [(0, 1), (2, 2), (0, 3), (2, 4)] {
            let queue = frames.queue(queue);
            let list = written(frames, queue, &shared, value);
            fuse.store(0, Ordering::Relaxed);
            // Only lists with a preamble call the observer.
            let thrown = catch_unwind(AssertUnwindSafe(|| frames.submit(queue, [list]))).is_err();
            assert_eq!(thrown, value > 1, "{profile}");
            fuse.store(u64::MAX, Ordering::Relaxed);
        }
        let mut list = frames.list(frames.queue(0)).unwrap();
        let read = list.read_buffer(&shared, 0..32).unwrap();
        let ticket = frames.submit(frames.queue(0), [list]).unwrap();
        frames.wait(ticket).unwrap();
        assert_eq!(read.bytes().unwrap()[..4], [4, 0, 0, 0], "{profile}");
        frames.wait_idle().unwrap();
        assert_eq!(frames.statistics().in_flight, 0);
    }
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

/// Records a list that keeps values with panicking destructors, a buffer and a read-back.
fn mined(frames: &Frames) -> (CommandList, ReadBack) {
    let own = buffer(frames, 64);
    let mut list = frames.list(frames.queue(0)).unwrap();
    list.keep(Bomb);
    list.fill_buffer(&own, 0..64, 9).unwrap();
    list.keep(Bomb);
    let read = list.read_buffer(&own, 0..64).unwrap();
    (list, read)
}

#[test]
fn a_panicking_destructor_leaks_nothing() {
    for profile in PROFILES {
        let mut fixture = FrameFixture::new(profile, 1);
        fixture.gpu.hold_submissions(true);
        let frames = fixture.frames();
        let mut reads = Vec::new();
        for _ in 0..3 {
            let (list, read) = mined(frames);
            frames.submit(frames.queue(0), [list]).unwrap();
            reads.push(read);
        }
        let pools = frames.statistics().pools;
        assert!(catch_unwind(AssertUnwindSafe(|| frames.wait_idle())).is_err(), "{profile}");
        frames.wait_idle().unwrap();
        for read in &reads {
            assert_eq!(read.bytes().unwrap()[..4], [9, 0, 0, 0], "{profile}");
        }
        assert_eq!((frames.statistics().in_flight, frames.statistics().pools), (0, pools));
        for _ in 0..3 {
            frames.submit(frames.queue(0), [frames.list(frames.queue(0)).unwrap()]).unwrap();
        }
        assert_eq!(frames.statistics().pools, pools, "pools are reused");
    }
}

#[test]
fn dropping_a_list_with_a_panicking_destructor_leaks_nothing() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let frames = fixture.frames();
    let (list, read) = mined(frames);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(list))).is_err());
    assert_eq!((frames.statistics().pools, frames.statistics().contexts), (0, 1));
    assert_eq!(read.bytes(), Err(ReadError::Never));
    // Its context is reused.
    drop(frames.list(frames.queue(0)).unwrap());
    assert_eq!(frames.statistics().contexts, 1);
}

#[test]
fn dropping_frames_with_a_panicking_destructor_leaks_nothing() {
    for profile in PROFILES {
        let mut fixture = FrameFixture::new(profile, 1);
        fixture.gpu.hold_submissions(true);
        let frames = fixture.frames.take().unwrap();
        for _ in 0..2 {
            let (list, read) = mined(&frames);
            drop(read);
            frames.submit(frames.queue(0), [list]).unwrap();
        }
        assert!(catch_unwind(AssertUnwindSafe(|| drop(frames))).is_err(), "{profile}");
        let live = fixture.gpu.live();
        assert_eq!((live.command_pools, live.buffers, live.fences, live.semaphores), (0, 0, 0, 0));
    }
}
