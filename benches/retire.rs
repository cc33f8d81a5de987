//! Measures clocks and queues: the cost of a ticket, a query of its state, and a retired item.
//!
//! Run with `cargo bench --bench retire`, or as a test with `cargo test --benches`. No device is needed. One item is
//! one ticket, one query, or one retired item pushed and collected.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use divan::Bencher;
use divan::counter::ItemsCount;
use sublet::retire::{Clock, Retire, Ticket, TimelineId};

fn main() {
    divan::main();
}

/// Returns a clock with `count` open tickets.
fn clock_with(count: usize) -> (Clock, TimelineId, Vec<Ticket>) {
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    let tickets = (0..count).map(|_| clock.open(timeline)).collect();
    (clock, timeline, tickets)
}

/// Three frame slots, each of which retires `items` handles.
#[divan::bench(args = [1, 10, 100, 1_000])]
fn push_and_collect_in_frames(bencher: Bencher<'_, '_>, items: usize) {
    let (clock, timeline, _) = clock_with(0);
    let mut queue = Retire::<(u64, u64)>::new();
    let mut slot = 0;
    bencher.counter(ItemsCount::new(items)).bench_local(|| {
        slot = (slot + 1) % 3;
        let ticket = clock.begin_frame(timeline, slot);
        let mut sum = 0;
        let collected = queue.collect(&clock, |(handle, _)| sum += handle).unwrap();
        for item in 0..items {
            queue.push(ticket, (divan::black_box(1), 2));
            divan::black_box(item);
        }
        clock.end_frame(ticket).unwrap();
        assert!(collected == items || collected == 0);
        sum
    });
}

/// The same number of items, pushed to `tickets` tickets in turn.
#[divan::bench(args = [4, 64])]
fn push_and_collect_by_turns(bencher: Bencher<'_, '_>, tickets: usize) {
    let (clock, timeline, _) = clock_with(0);
    let mut queue = Retire::<u64>::new();
    let mut value = 0;
    bencher.counter(ItemsCount::new(1_024_usize)).bench_local(|| {
        let tickets: Vec<Ticket> = (0..tickets).map(|_| clock.open(timeline)).collect();
        for (item, &ticket) in (0..1_024).zip(tickets.iter().cycle()) {
            queue.push(ticket, item);
        }
        value += 1;
        for ticket in tickets {
            clock.submit(ticket, value).unwrap();
        }
        clock.completed(timeline, value);
        assert_eq!(queue.collect(&clock, |item| _ = divan::black_box(item)), Ok(1_024));
    });
}

/// Opens, submits and completes a ticket.
#[divan::bench]
fn tickets_life(bencher: Bencher<'_, '_>) {
    let (clock, timeline, _) = clock_with(0);
    let mut value = 0;
    bencher.counter(ItemsCount::new(1_usize)).bench_local(|| {
        value += 1;
        let ticket = clock.open(timeline);
        clock.submit(ticket, value).unwrap();
        clock.completed(timeline, value);
        ticket
    });
}

#[divan::bench]
fn is_done_and_is(bencher: Bencher<'_, '_>) {
    let (clock, _, tickets) = clock_with(1);
    clock.discard(tickets[0]).unwrap();
    bencher
        .counter(ItemsCount::new(1_usize))
        .bench_local(|| assert!(clock.is_done(divan::black_box(tickets[0]))));
}

/// With this many pending tickets on the same timeline.
#[divan::bench(args = [1, 100, 10_000])]
fn is_done_and_is_not(bencher: Bencher<'_, '_>, count: usize) {
    let (clock, _, tickets) = clock_with(count);
    let ticket = tickets[count / 2];
    bencher
        .counter(ItemsCount::new(1_usize))
        .bench_local(|| assert!(!clock.is_done(divan::black_box(ticket))));
}
