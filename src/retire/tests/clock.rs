//! Tickets, values, timelines, as far as [`super::model`] does not prove them.

use super::*;
use crate::retire::{ClockSubmitError, DiscardError, TooManyTimelines};

#[test]
fn a_ticket_that_is_never_submitted_holds_up_only_itself_and_costs_a_few_bytes() {
    let (clock, timeline) = clock_with_timeline();
    let stuck = clock.open(timeline);
    for value in 1..=100_000 {
        let ticket = clock.open(timeline);
        clock.submit(ticket, value).unwrap();
        assert!(!clock.is_done(ticket));
        clock.completed(timeline, value);
        assert!(clock.is_done(ticket) && !clock.is_done(stuck));
    }
    clock.validate();
    let (entries, _) = clock.footprint(timeline);
    assert!(entries <= 64, "room for {entries} entries with one ticket open");
}

#[test]
fn the_record_grows_with_what_is_in_flight_and_not_with_what_is_done() {
    let (clock, timeline) = clock_with_timeline();
    let _stuck = clock.open(timeline);
    for value in 1..=50_000 {
        let ticket = clock.open(timeline);
        clock.submit(ticket, value).unwrap();
        clock.completed(timeline, value.saturating_sub(100));
    }
    clock.validate();
    let (entries, _) = clock.footprint(timeline);
    assert!((101..=512).contains(&entries), "room for {entries} entries with 101 tickets in flight");
}

#[test]
fn what_is_discarded_is_done_at_once() {
    let (clock, timeline) = clock_with_timeline();
    let (first, second, third) = (clock.open(timeline), clock.open(timeline), clock.open(timeline));
    clock.discard(second).unwrap();
    assert!(clock.is_done(second) && !clock.is_done(first) && !clock.is_done(third));
    assert_eq!(clock.discard(second), Err(DiscardError::NotOpen { ticket: second }));
    assert_eq!(clock.submit(second, 1), Err(ClockSubmitError::NotOpen { ticket: second }));
    assert_eq!(clock.oldest_pending(timeline), None);
    clock.validate();
}

#[test]
fn a_ticket_is_submitted_once() {
    let (clock, timeline) = clock_with_timeline();
    let ticket = clock.open(timeline);
    clock.submit(ticket, 9).unwrap();
    assert_eq!(clock.submit(ticket, 1), Err(ClockSubmitError::NotOpen { ticket }));
    assert_eq!(clock.discard(ticket), Err(DiscardError::NotOpen { ticket }));
    clock.completed(timeline, 8);
    assert!(!clock.is_done(ticket), "a refused call changed something");
    clock.completed(timeline, 9);
    assert_eq!(clock.submit(ticket, 10), Err(ClockSubmitError::NotOpen { ticket }));
    assert!(clock.is_done(ticket));
}

#[test]
fn a_ticket_of_another_clock_is_refused_and_not_done() {
    let (clock, timeline) = clock_with_timeline();
    let (other, other_timeline) = clock_with_timeline();
    let foreign = other.open(other_timeline);
    for value in 1..10 {
        let ticket = clock.open(timeline);
        clock.submit(ticket, value).unwrap();
    }
    clock.completed(timeline, 10);
    assert!(!clock.is_done(foreign));
    assert_eq!(clock.submit(foreign, 1), Err(ClockSubmitError::OtherClock { ticket: foreign }));
    assert_eq!(clock.discard(foreign), Err(DiscardError::OtherClock { ticket: foreign }));
    clock.shutdown();
    assert!(!clock.is_done(foreign));
    assert!(panics(|| clock.open(other_timeline)));
    assert_eq!(clock.end_frame(foreign), Err(ClockSubmitError::OtherClock { ticket: foreign }));
    assert!(!other.is_done(foreign));
}

#[test]
fn a_counter_that_goes_backwards_is_ignored_and_said() {
    let (clock, timeline) = clock_with_timeline();
    let ticket = clock.open(timeline);
    clock.submit(ticket, 5).unwrap();
    clock.completed(timeline, 5);
    let said = events(tracing::Level::DEBUG, || clock.completed(timeline, 3));
    assert!(said.contains("DEBUG") && said.contains("out of order"), "{said}");
    assert!(clock.is_done(ticket));
    let next = clock.open(timeline);
    clock.submit(next, 4).unwrap();
    assert!(clock.is_done(next));
    assert_eq!(events(tracing::Level::DEBUG, || clock.completed(timeline, 5)), "");
}

#[test]
fn poll_asks_only_for_timelines_with_something_in_flight() {
    let clock = Clock::new();
    let timelines = [(); 4].map(|()| clock.add_timeline().unwrap());
    let tickets = timelines.map(|timeline| clock.open(timeline));
    clock.submit(tickets[1], 1).unwrap();
    clock.submit(tickets[3], 7).unwrap();
    let mut asked = Vec::new();
    clock
        .poll(|timeline| {
            asked.push(timeline.index());
            Ok::<u64, ()>(if timeline == timelines[3] { 6 } else { 1 })
        })
        .unwrap();
    assert_eq!(asked, [1, 3]);
    assert_eq!(tickets.map(|ticket| clock.is_done(ticket)), [false, true, false, false]);
    asked.clear();
    clock
        .poll(|timeline| {
            asked.push(timeline.index());
            // `read` may call the clock.
            assert!(!clock.is_done(tickets[3]));
            Ok::<u64, ()>(7)
        })
        .unwrap();
    assert_eq!(asked, [3]);
    clock.poll(|_| -> Result<u64, ()> { unreachable!() }).unwrap();
}

#[test]
fn what_was_read_before_an_error_stays_and_nothing_else_is_done() {
    let clock = Clock::new();
    let timelines = [(); 3].map(|()| clock.add_timeline().unwrap());
    let tickets = timelines.map(|timeline| clock.open(timeline));
    for ticket in tickets {
        clock.submit(ticket, 1).unwrap();
    }
    let result = clock.poll(|timeline| if timeline == timelines[1] { Err("device lost") } else { Ok(1) });
    assert_eq!(result, Err("device lost"));
    assert_eq!(tickets.map(|ticket| clock.is_done(ticket)), [true, false, false]);
}

#[test]
fn when_idle_everything_submitted_is_done_and_open_recordings_stay_open() {
    let clock = Clock::new();
    let timelines = [clock.add_timeline().unwrap(), clock.add_timeline().unwrap()];
    let submitted = timelines.map(|timeline| clock.open(timeline));
    let open = timelines.map(|timeline| clock.open(timeline));
    clock.submit(submitted[0], 3).unwrap();
    clock.submit(submitted[1], u64::MAX).unwrap();
    clock.idle();
    assert!(submitted.iter().all(|&ticket| clock.is_done(ticket)));
    assert!(open.iter().all(|&ticket| !clock.is_done(ticket)));
    clock.submit(open[0], 4).unwrap();
    assert!(!clock.is_done(open[0]));
    clock.validate();
}

#[test]
fn after_the_shutdown_everything_is_done() {
    let (clock, timeline) = clock_with_timeline();
    let (open, submitted, frame) =
        (clock.open(timeline), clock.open(timeline), clock.begin_frame(timeline, 0));
    clock.submit(submitted, 1).unwrap();
    clock.shutdown();
    assert!([open, submitted, frame].into_iter().all(|ticket| clock.is_done(ticket)));
    let later = clock.open(timeline);
    assert!(clock.is_done(later) && clock.is_done(clock.begin_frame(timeline, 0)));
    assert_eq!(clock.submit(later, 2), Err(ClockSubmitError::ShutDown { ticket: later }));
    assert_eq!(clock.discard(later), Ok(()));
    assert_eq!(clock.end_frame(frame), Err(ClockSubmitError::ShutDown { ticket: frame }));
    let new_timeline = clock.add_timeline().unwrap();
    assert!(clock.is_done(clock.open(new_timeline)));
    clock.poll(|_| -> Result<u64, ()> { unreachable!() }).unwrap();
    clock.validate();
}

#[test]
fn there_are_64_timelines_and_no_more() {
    let clock = Clock::new();
    let timelines: Vec<TimelineId> = std::iter::from_fn(|| clock.add_timeline().ok()).collect();
    assert_eq!(timelines.len(), Clock::MAX_TIMELINES);
    assert_eq!(clock.add_timeline(), Err(TooManyTimelines));
    let tickets: Vec<_> = timelines.iter().map(|&timeline| clock.open(timeline)).collect();
    for (&timeline, &ticket) in timelines.iter().zip(&tickets) {
        assert_eq!(ticket.timeline(), timeline);
        clock.submit(ticket, 1).unwrap();
    }
    let mut asked = 0;
    clock
        .poll(|_| {
            asked += 1;
            Ok::<u64, ()>(1)
        })
        .unwrap();
    assert_eq!(asked, Clock::MAX_TIMELINES);
    assert!(tickets.into_iter().all(|ticket| clock.is_done(ticket)));
}

#[test]
fn a_counter_at_its_highest_value_ends_the_timeline_without_a_panic() {
    let (clock, timeline) = clock_with_timeline();
    let frame = clock.begin_frame(timeline, 0);
    clock.completed(timeline, u64::MAX);
    assert!(!clock.is_done(frame));
    assert_eq!(clock.end_frame(frame).unwrap(), u64::MAX);
    assert!(clock.is_done(frame));
    clock.validate();
}

#[test]
fn threads_share_a_clock() {
    let clock = Clock::new();
    let timelines = [(); 4].map(|()| clock.add_timeline().unwrap());
    std::thread::scope(|scope| {
        for timeline in timelines {
            let clock = &clock;
            scope.spawn(move || {
                for value in 1..=2_000 {
                    let ticket = clock.open(timeline);
                    assert!(!clock.is_done(ticket));
                    clock.submit(ticket, value).unwrap();
                    assert!(!clock.is_done(ticket));
                    clock.completed(timeline, value);
                    assert!(clock.is_done(ticket));
                }
            });
        }
    });
    clock.validate();
}
