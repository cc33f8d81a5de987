//! `Retire`: order, panics, capacity.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use super::*;
use crate::retire::{ClockSubmitError, DiscardError, MixedClocks, OtherClock, ReserveError, Retire};

#[test]
fn items_come_in_the_order_of_tickets_and_then_of_pushes() {
    let clock = Clock::new();
    let timelines = [clock.add_timeline().unwrap(), clock.add_timeline().unwrap()];
    let tickets: Vec<_> = (0..6).map(|at| clock.open(timelines[at % 2])).collect();
    let mut queue = Retire::new();
    for (turn, at) in [5, 0, 3, 1, 4, 2, 3, 0, 5].into_iter().enumerate() {
        queue.push(tickets[at], (at, turn));
        queue.validate();
    }
    assert_eq!(queue.oldest(), Some(tickets[0]));
    for (value, &ticket) in (1..).zip(&tickets) {
        clock.submit(ticket, value).unwrap();
    }
    clock.idle();
    let mut out = Vec::new();
    assert_eq!(queue.collect(&clock, |item| out.push(item)).unwrap(), 9);
    assert!(out.is_sorted(), "{out:?}");
    queue.validate();
    assert!(queue.is_empty() && queue.oldest().is_none());
}

#[test]
fn a_visitor_that_panics_loses_nothing_that_was_not_handed_out() {
    let (clock, timeline) = clock_with_timeline();
    let mut queue = Retire::new();
    let (done, open) = (clock.open(timeline), clock.open(timeline));
    for item in 0..5 {
        queue.push(done, item);
    }
    queue.push(open, 99);
    clock.submit(done, 1).unwrap();
    clock.completed(timeline, 1);
    let mut out = Vec::new();
    let result = catch_unwind(AssertUnwindSafe(|| {
        queue.collect(&clock, |item| {
            assert!(item != 2, "the visitor's own");
            out.push(item);
        })
    }));
    assert!(result.is_err());
    queue.validate();
    assert_eq!((queue.len(), queue.oldest()), (3, Some(done)));
    queue.push(done, 5);
    assert_eq!(queue.collect(&clock, |item| out.push(item)).unwrap(), 3);
    assert_eq!(out, [0, 1, 3, 4, 5]);
    assert_eq!(queue.len(), 1);
    queue.validate();
}

#[test]
fn a_drain_takes_everything_and_one_that_stops_half_way_frees_nothing_early() {
    let (clock, timeline) = clock_with_timeline();
    let mut queue = Retire::new();
    let (first, second) = (clock.open(timeline), clock.open(timeline));
    for item in 0..3 {
        queue.push(first, item);
        queue.push(second, item + 10);
    }
    assert_eq!(queue.drain().take(2).collect::<Vec<_>>(), [0, 1]);
    queue.validate();
    assert_eq!(queue.collect(&clock, |_| unreachable!("nothing is done")).unwrap(), 0);
    assert_eq!(queue.drain().collect::<Vec<_>>(), [2, 10, 11, 12]);
    queue.validate();
    assert!(queue.is_empty());
}

#[test]
fn items_of_another_clock_stay_and_are_an_error_that_names_them() {
    let (clock, timeline) = clock_with_timeline();
    let (other, other_timeline) = clock_with_timeline();
    let mut queue = Retire::new();
    let (own, foreign) = (clock.open(timeline), other.open(other_timeline));
    assert_eq!(queue.check(foreign), Ok(()), "an empty queue accepts any ticket");
    queue.push(own, "own");
    assert_eq!((queue.check(own), queue.check(clock.open(timeline))), (Ok(()), Ok(())));
    assert_eq!(queue.check(foreign), Err(MixedClocks { ticket: foreign, waiting: own }));
    queue.push(foreign, "foreign");
    clock.shutdown();
    let error = queue.collect(&clock, |item| assert_eq!(item, "own")).unwrap_err();
    assert_eq!(error, OtherClock { ticket: foreign, tickets: 1, collected: 1 });
    assert!(error.to_string().contains(&format!("{foreign:?} is of another clock")), "{error}");
    other.discard(foreign).unwrap();
    let error = queue.collect(&clock, |_| unreachable!()).unwrap_err();
    assert_eq!(error, OtherClock { ticket: foreign, tickets: 1, collected: 0 });
    assert_eq!(queue.collect(&other, |item| assert_eq!(item, "foreign")), Ok(1));
    assert_eq!(queue.collect(&clock, |_| unreachable!()), Ok(0));
}

#[test]
fn tickets_of_a_clock_whose_number_repeats_are_foreign_where_that_can_be_known() {
    let [first, second] = [(); 2].map(|()| Clock::with_id(7));
    let (first_timeline, second_timeline) = (first.add_timeline().unwrap(), second.add_timeline().unwrap());
    assert_eq!(first_timeline, second_timeline, "the number repeats");
    let [_, _, ticket] = [(); 3].map(|()| first.open(first_timeline));
    // The second clock has issued neither this serial nor this timeline.
    let other_timeline = first.open(first.add_timeline().unwrap());
    for foreign in [ticket, other_timeline] {
        assert!(!second.is_done(foreign));
        assert_eq!(second.submit(foreign, 1), Err(ClockSubmitError::OtherClock { ticket: foreign }));
        assert_eq!(second.discard(foreign), Err(DiscardError::OtherClock { ticket: foreign }));
        assert_eq!(second.end_frame(foreign), Err(ClockSubmitError::OtherClock { ticket: foreign }));
        let mut queue = Retire::new();
        queue.push(foreign, ());
        let error = queue.collect(&second, drop).unwrap_err();
        assert_eq!(error, OtherClock { ticket: foreign, tickets: 1, collected: 0 });
    }
    second.shutdown();
    assert!(!second.is_done(ticket), "nor does the end of the one clock end the other's recordings");
    let own = second.open(second_timeline);
    assert!(second.is_done(own) && !second.is_done(other_timeline));
    second.validate();
}

#[test]
fn room_for_more_than_there_can_be_is_refused_and_changes_nothing() {
    let (clock, timeline) = clock_with_timeline();
    let mut queue = Retire::<[u64; 1 << 20]>::new();
    let mut small = Retire::new();
    small.push(clock.open(timeline), ());
    for additional in [usize::MAX, 0xffff_ffff] {
        assert_eq!(small.reserve(additional), Err(ReserveError::TooMany { additional, waiting: 1 }));
    }
    let additional = 0xffff_ffff;
    let error = queue.reserve(additional).unwrap_err();
    assert!(matches!(error, ReserveError::HostMemory { additional: 0xffff_ffff, .. }), "{error:?}");
    assert!(error.to_string().contains("4294967295 items"), "{error}");
    small.validate();
    assert_eq!(small.len(), 1);
}

#[test]
fn what_is_handed_out_is_let_go_of_and_a_dropped_queue_drops_its_items() {
    let (clock, timeline) = clock_with_timeline();
    let item = Rc::new(());
    let mut queue = Retire::new();
    let ticket = clock.open(timeline);
    queue.push(ticket, Rc::clone(&item));
    clock.discard(ticket).unwrap();
    queue.collect(&clock, drop).unwrap();
    assert_eq!(Rc::strong_count(&item), 1);
    queue.push(clock.open(timeline), Rc::clone(&item));
    drop(queue);
    assert_eq!(Rc::strong_count(&item), 1);
}

#[test]
fn the_visitor_may_call_the_clock() {
    let (clock, timeline) = clock_with_timeline();
    let mut queue = Retire::new();
    let ticket = clock.open(timeline);
    queue.push(ticket, ());
    clock.discard(ticket).unwrap();
    assert_eq!(queue.collect(&clock, |()| assert!(clock.is_done(ticket))).unwrap(), 1);
}

#[test]
fn nodes_are_used_again() {
    let (clock, timeline) = clock_with_timeline();
    let mut queue = Retire::new();
    queue.reserve(40).unwrap();
    for slot in (0..1_000).map(|frame| frame % 3) {
        let ticket = clock.begin_frame(timeline, slot);
        queue.collect(&clock, drop).unwrap();
        for _ in 0..10 {
            queue.push(ticket, slot);
        }
        clock.end_frame(ticket).unwrap();
        queue.validate();
        assert!(queue.nodes() <= 30);
    }
}
