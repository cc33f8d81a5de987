//! Frames with one fence for each slot.

use super::*;
use crate::retire::ClockSubmitError;

#[test]
fn a_slot_that_is_never_used_again_blocks_nothing() {
    let (clock, timeline) = clock_with_timeline();
    let three = [0, 1, 2].map(|slot| {
        let ticket = clock.begin_frame(timeline, slot);
        clock.end_frame(ticket).unwrap();
        ticket
    });
    assert!(three.iter().all(|&ticket| !clock.is_done(ticket)));
    // From here on, two frames are in flight.
    let mut frames = three.to_vec();
    for at in 0..10 {
        let ticket = clock.begin_frame(timeline, at % 2);
        clock.validate();
        clock.end_frame(ticket).unwrap();
        frames.push(ticket);
    }
    let (last, older) = frames.split_last_chunk::<2>().map(|(older, last)| (last, older)).unwrap();
    assert!(older.iter().all(|&ticket| clock.is_done(ticket)));
    assert!(last.iter().all(|&ticket| !clock.is_done(ticket)));
    assert!(clock.footprint(timeline).1 <= 3);
}

#[test]
fn the_same_slot_twice_without_an_end_frees_nothing_early_and_is_said() {
    let (clock, timeline) = clock_with_timeline();
    let first = clock.begin_frame(timeline, 0);
    let mut second = first;
    let said = events(tracing::Level::WARN, || second = clock.begin_frame(timeline, 0));
    assert!(said.contains("neither ended nor discarded"), "{said}");
    assert!(!clock.is_done(first) && !clock.is_done(second));
    clock.end_frame(second).unwrap();
    let mut third = first;
    let said = events(tracing::Level::WARN, || third = clock.begin_frame(timeline, 0));
    assert_eq!(said, "", "the second was ended");
    assert!(!clock.is_done(first) && clock.is_done(second));
    // The first frame is ended late.
    clock.end_frame(first).unwrap();
    assert!(!clock.is_done(first));
    clock.end_frame(third).unwrap();
    let _ = clock.begin_frame(timeline, 0);
    assert!(clock.is_done(first) && clock.is_done(third));
    clock.validate();
}

#[test]
fn a_frame_that_is_discarded_is_done_and_not_complained_of() {
    let (clock, timeline) = clock_with_timeline();
    let first = clock.begin_frame(timeline, 0);
    clock.discard(first).unwrap();
    assert!(clock.is_done(first));
    let said = events(tracing::Level::WARN, || {
        let _ = clock.begin_frame(timeline, 0);
    });
    assert_eq!(said, "");
}

#[test]
fn a_fence_that_was_not_waited_for_is_seen_where_the_counter_is_read_as_well() {
    let (clock, timeline) = clock_with_timeline();
    let value = clock.end_frame(clock.begin_frame(timeline, 0)).unwrap();
    let _ = clock.begin_frame(timeline, 0);
    let said = events(tracing::Level::WARN, || clock.completed(timeline, value - 1));
    assert!(said.contains("was it waited for"), "{said}");
    assert_eq!(events(tracing::Level::WARN, || clock.completed(timeline, value)), "");
}

#[test]
fn a_program_that_numbers_frames_instead_of_slots_leaves_no_slots_behind() {
    let (clock, timeline) = clock_with_timeline();
    for frame in 0..10_000 {
        let value = clock.end_frame(clock.begin_frame(timeline, frame)).unwrap();
        clock.completed(timeline, value.saturating_sub(2));
        clock.validate();
    }
    assert!(clock.footprint(timeline).1 <= 4);
}

#[test]
fn ending_a_frame_twice_is_an_error_as_submitting_it_twice_is_and_changes_nothing() {
    let (clock, timeline) = clock_with_timeline();
    let frame = clock.begin_frame(timeline, 0);
    let value = clock.end_frame(frame).unwrap();
    assert_eq!(clock.end_frame(frame), Err(ClockSubmitError::NotOpen { ticket: frame }));
    assert_eq!(clock.submit(frame, value), Err(ClockSubmitError::NotOpen { ticket: frame }));
    assert_eq!(clock.end_frame(clock.begin_frame(timeline, 1)).unwrap(), value + 1);
    clock.validate();
}
