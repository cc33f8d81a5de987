//! Tickets, values, lanes.

use super::*;
use crate::retire::{DiscardError, SubmitError, TooManyLanes};

#[test]
fn a_value_is_done_when_the_counter_has_reached_it() {
    let (clock, lane) = clock_with_lane();
    let ticket = clock.open(lane);
    clock.completed(lane, 4);
    assert!(!clock.is_done(ticket), "not submitted");
    clock.submit(ticket, 5).unwrap();
    assert!(!clock.is_done(ticket));
    clock.completed(lane, 5);
    assert!(clock.is_done(ticket));
    // A submission may be reported after the counter has reached its value.
    let late = clock.open(lane);
    clock.submit(late, 5).unwrap();
    assert!(clock.is_done(late));
    clock.validate();
}

#[test]
fn submissions_out_of_order_are_judged_by_their_values() {
    let (clock, lane) = clock_with_lane();
    let tickets = [(); 3].map(|()| clock.open(lane));
    for (ticket, value) in tickets.into_iter().zip([30, 10, 20]) {
        clock.submit(ticket, value).unwrap();
    }
    let done = || tickets.map(|ticket| clock.is_done(ticket));
    clock.completed(lane, 9);
    assert_eq!(done(), [false, false, false]);
    assert_eq!(clock.oldest_pending(lane), Some((tickets[1], 10)));
    clock.completed(lane, 10);
    assert_eq!(done(), [false, true, false]);
    clock.completed(lane, 29);
    assert_eq!(done(), [false, true, true]);
    clock.completed(lane, 30);
    assert_eq!(done(), [true, true, true]);
    assert_eq!(clock.oldest_pending(lane), None);
    clock.validate();
}

#[test]
fn one_lane_never_holds_another_up() {
    let clock = Clock::new();
    let (slow, fast) = (clock.add_lane().unwrap(), clock.add_lane().unwrap());
    let (stuck, free) = (clock.open(slow), clock.open(fast));
    clock.submit(stuck, 1).unwrap();
    clock.submit(free, 1).unwrap();
    clock.completed(fast, 1);
    assert!(clock.is_done(free) && !clock.is_done(stuck));
}

#[test]
fn a_ticket_that_is_never_submitted_holds_up_only_itself_and_costs_a_few_bytes() {
    let (clock, lane) = clock_with_lane();
    let stuck = clock.open(lane);
    for value in 1..=100_000 {
        let ticket = clock.open(lane);
        clock.submit(ticket, value).unwrap();
        assert!(!clock.is_done(ticket));
        clock.completed(lane, value);
        assert!(clock.is_done(ticket) && !clock.is_done(stuck));
    }
    clock.validate();
    let (entries, _) = clock.footprint(lane);
    assert!(entries <= 64, "room for {entries} entries with one ticket open");
}

#[test]
fn the_record_grows_with_what_is_in_flight_and_not_with_what_is_done() {
    let (clock, lane) = clock_with_lane();
    let _stuck = clock.open(lane);
    for value in 1..=50_000 {
        let ticket = clock.open(lane);
        clock.submit(ticket, value).unwrap();
        clock.completed(lane, value.saturating_sub(100));
    }
    clock.validate();
    let (entries, _) = clock.footprint(lane);
    assert!((101..=512).contains(&entries), "room for {entries} entries with 101 tickets in flight");
}

#[test]
fn what_is_discarded_is_done_at_once() {
    let (clock, lane) = clock_with_lane();
    let (first, second, third) = (clock.open(lane), clock.open(lane), clock.open(lane));
    clock.discard(second).unwrap();
    assert!(clock.is_done(second) && !clock.is_done(first) && !clock.is_done(third));
    assert_eq!(clock.discard(second), Err(DiscardError::NotOpen { ticket: second }));
    assert_eq!(clock.submit(second, 1), Err(SubmitError::NotOpen { ticket: second }));
    assert_eq!(clock.oldest_pending(lane), None);
    clock.validate();
}

#[test]
fn a_ticket_is_submitted_once() {
    let (clock, lane) = clock_with_lane();
    let ticket = clock.open(lane);
    clock.submit(ticket, 9).unwrap();
    assert_eq!(clock.submit(ticket, 1), Err(SubmitError::NotOpen { ticket }));
    assert_eq!(clock.discard(ticket), Err(DiscardError::NotOpen { ticket }));
    clock.completed(lane, 8);
    assert!(!clock.is_done(ticket), "a refused call changed something");
    clock.completed(lane, 9);
    assert_eq!(clock.submit(ticket, 10), Err(SubmitError::NotOpen { ticket }));
    assert!(clock.is_done(ticket));
}

#[test]
fn a_ticket_of_another_clock_is_refused_and_not_done() {
    let (clock, lane) = clock_with_lane();
    let (other, other_lane) = clock_with_lane();
    let foreign = other.open(other_lane);
    for value in 1..10 {
        let ticket = clock.open(lane);
        clock.submit(ticket, value).unwrap();
    }
    clock.completed(lane, 10);
    assert!(!clock.is_done(foreign));
    assert_eq!(clock.submit(foreign, 1), Err(SubmitError::OtherClock { ticket: foreign }));
    assert_eq!(clock.discard(foreign), Err(DiscardError::OtherClock { ticket: foreign }));
    clock.shutdown();
    assert!(!clock.is_done(foreign));
    assert!(panics(|| clock.open(other_lane)));
    assert_eq!(clock.end_frame(foreign), Err(SubmitError::OtherClock { ticket: foreign }));
    assert!(!other.is_done(foreign));
}

#[test]
fn a_counter_that_goes_backwards_is_ignored_and_said() {
    let (clock, lane) = clock_with_lane();
    let ticket = clock.open(lane);
    clock.submit(ticket, 5).unwrap();
    clock.completed(lane, 5);
    let said = events(tracing::Level::DEBUG, || clock.completed(lane, 3));
    assert!(said.contains("DEBUG") && said.contains("out of order"), "{said}");
    assert!(clock.is_done(ticket));
    let next = clock.open(lane);
    clock.submit(next, 4).unwrap();
    assert!(clock.is_done(next));
    assert_eq!(events(tracing::Level::DEBUG, || clock.completed(lane, 5)), "");
}

#[test]
fn poll_asks_only_for_lanes_with_something_in_flight() {
    let clock = Clock::new();
    let lanes = [(); 4].map(|()| clock.add_lane().unwrap());
    let tickets = lanes.map(|lane| clock.open(lane));
    clock.submit(tickets[1], 1).unwrap();
    clock.submit(tickets[3], 7).unwrap();
    let mut asked = Vec::new();
    clock
        .poll(|lane| {
            asked.push(lane.index());
            Ok::<u64, ()>(if lane == lanes[3] { 6 } else { 1 })
        })
        .unwrap();
    assert_eq!(asked, [1, 3]);
    assert_eq!(tickets.map(|ticket| clock.is_done(ticket)), [false, true, false, false]);
    asked.clear();
    clock
        .poll(|lane| {
            asked.push(lane.index());
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
    let lanes = [(); 3].map(|()| clock.add_lane().unwrap());
    let tickets = lanes.map(|lane| clock.open(lane));
    for ticket in tickets {
        clock.submit(ticket, 1).unwrap();
    }
    let result = clock.poll(|lane| if lane == lanes[1] { Err("device lost") } else { Ok(1) });
    assert_eq!(result, Err("device lost"));
    assert_eq!(tickets.map(|ticket| clock.is_done(ticket)), [true, false, false]);
}

#[test]
fn when_idle_everything_submitted_is_done_and_open_recordings_stay_open() {
    let clock = Clock::new();
    let lanes = [clock.add_lane().unwrap(), clock.add_lane().unwrap()];
    let submitted = lanes.map(|lane| clock.open(lane));
    let open = lanes.map(|lane| clock.open(lane));
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
    let (clock, lane) = clock_with_lane();
    let (open, submitted, frame) = (clock.open(lane), clock.open(lane), clock.begin_frame(lane, 0));
    clock.submit(submitted, 1).unwrap();
    clock.shutdown();
    assert!([open, submitted, frame].into_iter().all(|ticket| clock.is_done(ticket)));
    let later = clock.open(lane);
    assert!(clock.is_done(later) && clock.is_done(clock.begin_frame(lane, 0)));
    assert_eq!(clock.submit(later, 2), Err(SubmitError::ShutDown { ticket: later }));
    assert_eq!(clock.discard(later), Ok(()));
    assert_eq!(clock.end_frame(frame), Err(SubmitError::ShutDown { ticket: frame }));
    let new_lane = clock.add_lane().unwrap();
    assert!(clock.is_done(clock.open(new_lane)));
    clock.poll(|_| -> Result<u64, ()> { unreachable!() }).unwrap();
    clock.validate();
}

#[test]
fn there_are_64_lanes_and_no_more() {
    let clock = Clock::new();
    let lanes: Vec<LaneId> = std::iter::from_fn(|| clock.add_lane().ok()).collect();
    assert_eq!(lanes.len(), Clock::MAX_LANES);
    assert_eq!(clock.add_lane(), Err(TooManyLanes));
    let tickets: Vec<_> = lanes.iter().map(|&lane| clock.open(lane)).collect();
    for (&lane, &ticket) in lanes.iter().zip(&tickets) {
        assert_eq!(ticket.lane(), lane);
        clock.submit(ticket, 1).unwrap();
    }
    let mut asked = 0;
    clock
        .poll(|_| {
            asked += 1;
            Ok::<u64, ()>(1)
        })
        .unwrap();
    assert_eq!(asked, Clock::MAX_LANES);
    assert!(tickets.into_iter().all(|ticket| clock.is_done(ticket)));
}

#[test]
fn tickets_ascend_in_the_order_of_opening_on_all_lanes() {
    let clock = Clock::new();
    let lanes = [clock.add_lane().unwrap(), clock.add_lane().unwrap()];
    let tickets: Vec<_> = (0..10).map(|at| clock.open(lanes[(at * 7) % 2])).collect();
    assert!(tickets.is_sorted_by(|a, b| a < b));
}

#[test]
fn a_counter_at_its_highest_value_ends_the_lane_without_a_panic() {
    let (clock, lane) = clock_with_lane();
    let frame = clock.begin_frame(lane, 0);
    clock.completed(lane, u64::MAX);
    assert!(!clock.is_done(frame));
    assert_eq!(clock.end_frame(frame).unwrap(), u64::MAX);
    assert!(clock.is_done(frame));
    clock.validate();
}

#[test]
fn threads_share_a_clock() {
    let clock = Clock::new();
    let lanes = [(); 4].map(|()| clock.add_lane().unwrap());
    std::thread::scope(|scope| {
        for lane in lanes {
            let clock = &clock;
            scope.spawn(move || {
                for value in 1..=2_000 {
                    let ticket = clock.open(lane);
                    assert!(!clock.is_done(ticket));
                    clock.submit(ticket, value).unwrap();
                    assert!(!clock.is_done(ticket));
                    clock.completed(lane, value);
                    assert!(clock.is_done(ticket));
                }
            });
        }
    });
    clock.validate();
}
