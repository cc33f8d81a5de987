//! Each situation with each subject.

use ash::vk;
use sublet_descriptors::{BindingModel, HeapCreateInfo, SetStore};
use tracing::Level;

use crate::fixture::Fixture;
use crate::said::said;
use crate::subjects::{self, Subject};

type Make = fn(&Fixture) -> Box<dyn Subject>;

/// The device has executed everything and the clock knows it, so nothing waits.
fn end(fixture: Fixture, mut subject: Box<dyn Subject>) {
    unsafe { fixture.vulkan().device_wait_idle() }.unwrap();
    fixture.clock.idle();
    subject.collect(&fixture);
    assert_ne!(subject.waits(), Some(true), "something waits for ever");
    fixture.check();
    subject.destroy(&fixture);
    fixture.finish();
}

fn a_slot_is_never_used_again(model: BindingModel, make: Make) {
    let fixture = Fixture::new(model);
    let mut subject = make(&fixture);
    let fences = [(); 3].map(|()| fixture.fence());
    let mut frame = |slot: u32| {
        let fence = fences[usize::try_from(slot).unwrap()];
        unsafe { fixture.vulkan().wait_for_fences(&[fence], true, u64::MAX) }.unwrap();
        unsafe { fixture.vulkan().reset_fences(&[fence]) }.unwrap();
        let ticket = fixture.clock.begin_frame(fixture.timelines[0], slot);
        subject.collect(&fixture);
        let recording = fixture.record(&mut *subject, ticket);
        fixture.submit(0, &recording, fence);
        fixture.clock.end_frame(ticket).unwrap();
        fixture.gpu.assert_silent();
        fixture.objects()
    };
    for number in 0..12 {
        frame(number % 3);
    }
    // Slot 2 is never used again.
    let mut objects = None;
    for number in 0..60 {
        let now = frame(number % 2);
        if number >= 10 {
            assert_eq!(*objects.get_or_insert(fixture.objects()), now, "frame {number}");
        }
    }
    end(fixture, subject);
}

fn recordings_are_discarded(model: BindingModel, make: Make) {
    let fixture = Fixture::new(model);
    let mut subject = make(&fixture);
    let mut discard = || {
        let ticket = fixture.clock.open(fixture.timelines[0]);
        let recording = fixture.record(&mut *subject, ticket);
        fixture.clock.discard(recording.ticket).unwrap();
        subject.collect(&fixture);
        fixture.objects()
    };
    let warm = (0..5).map(|_| discard()).last();
    for _ in 0..40 {
        assert_eq!(Some(discard()), warm);
    }
    // Resources of another recording are untouched.
    let ticket = fixture.clock.open(fixture.timelines[0]);
    let recording = fixture.record(&mut *subject, ticket);
    fixture.submit(0, &recording, vk::Fence::null());
    fixture.clock.submit(ticket, 1).unwrap();
    for _ in 0..8 {
        let ticket = fixture.clock.open(fixture.timelines[0]);
        fixture.record(&mut *subject, ticket);
        fixture.clock.discard(ticket).unwrap();
        subject.collect(&fixture);
        fixture.gpu.assert_silent();
        assert_ne!(subject.waits(), Some(false));
    }
    end(fixture, subject);
}

fn submissions_are_out_of_order(model: BindingModel, make: Make) {
    let fixture = Fixture::new(model);
    let mut subject = make(&fixture);
    let timeline = fixture.timelines[0];
    for round in 0..4_u64 {
        let mut recordings: Vec<_> = (0..3)
            .map(|_| {
                let ticket = fixture.clock.open(timeline);
                Some(fixture.record(&mut *subject, ticket))
            })
            .collect();
        // The last one is submitted and executed before the others. A fourth is recorded meanwhile.
        for (value, at) in [(1, 2), (2, 0), (3, 3), (4, 1)] {
            let recording = recordings[at].take().unwrap();
            let value = 4 * round + value;
            fixture.submit(0, &recording, vk::Fence::null());
            fixture.clock.submit(recording.ticket, value).unwrap();
            subject.collect(&fixture);
            // If a new recording reused a resource too early, the execution would find its data.
            for _ in 0..3 {
                let ticket = fixture.clock.open(timeline);
                fixture.record(&mut *subject, ticket);
                fixture.clock.discard(ticket).unwrap();
            }
            fixture.gpu.assert_silent();
            fixture.gpu.run_pending();
            fixture.clock.completed(timeline, value);
            subject.collect(&fixture);
            if at == 2 {
                let ticket = fixture.clock.open(timeline);
                recordings.push(Some(fixture.record(&mut *subject, ticket)));
            }
            fixture.gpu.assert_silent();
        }
        assert_ne!(subject.waits(), Some(true));
    }
    end(fixture, subject);
}

fn there_are_two_queues(model: BindingModel, make: Make) {
    let fixture = Fixture::new(model);
    let mut subject = make(&fixture);
    let [slow, fast] = fixture.timelines;
    let ticket = fixture.clock.open(slow);
    let recording = fixture.record(&mut *subject, ticket);
    fixture.submit(0, &recording, vk::Fence::null());
    // Its value is below all values that the other queue reaches.
    fixture.clock.submit(ticket, 1).unwrap();
    let mut warm = None;
    for value in 1..=12_u64 {
        let ticket = fixture.clock.open(fast);
        let recording = fixture.record(&mut *subject, ticket);
        fixture.submit(1, &recording, vk::Fence::null());
        fixture.clock.submit(ticket, value).unwrap();
        subject.collect(&fixture);
        fixture.gpu.run_pending_on(1);
        fixture.clock.completed(fast, value);
        subject.collect(&fixture);
        fixture.gpu.assert_silent();
        assert_ne!(subject.waits(), Some(false), "the other queue is not done");
        if value >= 4 {
            assert_eq!(*warm.get_or_insert(fixture.objects()), fixture.objects(), "submission {value}");
        }
    }
    assert_eq!(fixture.gpu.pending_submissions(), 1);
    fixture.gpu.run_pending();
    fixture.clock.completed(slow, 1);
    subject.collect(&fixture);
    assert_ne!(subject.waits(), Some(true));
    end(fixture, subject);
}

fn the_device_is_lost(model: BindingModel, make: Make) {
    let fixture = Fixture::new(model);
    let mut subject = make(&fixture);
    let timeline = fixture.timelines[0];
    let mut objects = None;
    for value in 1..=4_u64 {
        let ticket = fixture.clock.open(timeline);
        let recording = fixture.record(&mut *subject, ticket);
        fixture.submit(0, &recording, vk::Fence::null());
        fixture.clock.submit(ticket, value).unwrap();
        if value == 1 {
            fixture.gpu.run_pending();
            fixture.clock.completed(timeline, 1);
            subject.collect(&fixture);
        } else {
            objects = Some(fixture.objects());
        }
    }
    fixture.gpu.faults().lose_device();
    // It is unknown which work was executed, so nothing is released.
    assert_eq!((subject.collect(&fixture), Some(fixture.objects())), (0, objects));
    assert_ne!(subject.waits(), Some(false));
    // The open recording is never submitted.
    let ticket = fixture.clock.open(timeline);
    fixture.record(&mut *subject, ticket);
    fixture.clock.shutdown();
    assert_ne!(subject.collect(&fixture), 0);
    assert_ne!(subject.waits(), Some(true));
    fixture.gpu.assert_silent();
    subject.destroy(&fixture);
    fixture.finish();
}

/// Each frame begins and ends once, and all subjects share the clock.
#[test]
fn one_clock_serves_all_of_them() {
    let fixture = Fixture::new(BindingModel::Sets);
    let makes: [Make; 6] = [
        subjects::resources,
        subjects::transient_sets,
        subjects::persistent_sets,
        subjects::heap_slots,
        subjects::arena_pages,
        subjects::binder,
    ];
    let mut all = makes.map(|make| make(&fixture));
    let fences = [fixture.fence(), fixture.fence()];
    let mut objects = None;
    for frame in 0..30_u32 {
        let slot = frame % 2;
        let fence = fences[usize::try_from(slot).unwrap()];
        unsafe { fixture.vulkan().wait_for_fences(&[fence], true, u64::MAX) }.unwrap();
        unsafe { fixture.vulkan().reset_fences(&[fence]) }.unwrap();
        let ticket = fixture.clock.begin_frame(fixture.timelines[0], slot);
        let last = all.len() - 1;
        for (at, subject) in all.iter_mut().enumerate() {
            subject.collect(&fixture);
            let recording = fixture.record(&mut **subject, ticket);
            fixture.submit(0, &recording, if at == last { fence } else { vk::Fence::null() });
        }
        fixture.clock.end_frame(ticket).unwrap();
        fixture.gpu.assert_silent();
        if frame >= 10 {
            assert_eq!(*objects.get_or_insert(fixture.objects()), fixture.objects(), "frame {frame}");
        }
    }
    unsafe { fixture.vulkan().device_wait_idle() }.unwrap();
    fixture.clock.idle();
    fixture.check();
    for mut subject in all {
        subject.collect(&fixture);
        assert_ne!(subject.waits(), Some(true));
        subject.destroy(&fixture);
    }
    fixture.finish();
}

/// The types that may be dropped while the device uses them. `PersistentSets` and heap stores have tests of their own.
#[test]
fn what_is_dropped_while_the_device_uses_it_is_left_alone_and_said() {
    let makes: [(BindingModel, Make); 5] = [
        (BindingModel::Sets, subjects::resources),
        (BindingModel::Sets, subjects::transient_sets),
        (BindingModel::Sets, subjects::arena_pages),
        (BindingModel::Sets, subjects::binder),
        (BindingModel::Buffer, subjects::binder),
    ];
    for (at, (model, make)) in makes.into_iter().enumerate() {
        let fixture = Fixture::new(model);
        let mut subject = make(&fixture);
        let ticket = fixture.clock.open(fixture.timelines[0]);
        let recording = fixture.record(&mut *subject, ticket);
        fixture.submit(0, &recording, vk::Fence::null());
        fixture.clock.submit(ticket, 1).unwrap();
        let said = said(Level::WARN, || drop(subject));
        assert_eq!(said.lines().count(), 1, "{at}: {said}");
        fixture.gpu.assert_silent();
        fixture.gpu.run_pending();
        fixture.check();
        fixture.abandon();
    }
    // With nothing in flight, dropping emits no warning.
    for (at, (model, make)) in makes.into_iter().enumerate() {
        let fixture = Fixture::new(model);
        let subject = make(&fixture);
        let said = said(Level::WARN, || drop(subject));
        assert_eq!(said, "", "{at}");
        fixture.finish();
    }
}

#[test]
fn the_store_of_a_heap_that_is_dropped_and_not_destroyed_is_left_alone_and_said() {
    for destroy in [true, false] {
        let fixture = Fixture::new(BindingModel::Sets);
        let store = SetStore::new(&fixture.device, &HeapCreateInfo::default()).unwrap();
        let said = said(Level::WARN, || {
            if destroy {
                // SAFETY: nothing was submitted.
                unsafe { store.destroy() };
            } else {
                drop(store);
            }
        });
        assert_eq!(said.lines().count(), usize::from(!destroy), "{said}");
        assert_eq!(fixture.gpu.live().descriptor_pools, u64::from(!destroy));
        fixture.gpu.assert_silent();
        if destroy {
            fixture.finish();
        } else {
            fixture.abandon();
        }
    }
}

macro_rules! subjects {
    ($($name:ident: $model:ident, $make:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn come_back_although_a_slot_of_frames_is_never_used_again() {
                a_slot_is_never_used_again(BindingModel::$model, $make);
            }

            #[test]
            fn come_back_when_their_recording_is_discarded() {
                recordings_are_discarded(BindingModel::$model, $make);
            }

            #[test]
            fn are_not_touched_too_early_when_submissions_are_in_another_order() {
                submissions_are_out_of_order(BindingModel::$model, $make);
            }

            #[test]
            fn of_one_queue_are_not_touched_when_another_is_done() {
                there_are_two_queues(BindingModel::$model, $make);
            }

            #[test]
            fn come_back_after_the_device_is_lost_and_not_before_that_is_said() {
                the_device_is_lost(BindingModel::$model, $make);
            }
        }
    )*};
}

subjects! {
    retired_resources: Sets, subjects::resources;
    transient_sets: Sets, subjects::transient_sets;
    persistent_sets: Sets, subjects::persistent_sets;
    slots_of_a_heap: Sets, subjects::heap_slots;
    pages_of_an_arena: Sets, subjects::arena_pages;
    sets_of_a_binder: Sets, subjects::binder;
    bytes_of_a_binder: Buffer, subjects::binder;
}
