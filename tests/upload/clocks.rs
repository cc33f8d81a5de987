//! Tickets of another clock result in an error, not in an endless wait.

use sublet::retire::{Clock, MixedClocks, OtherClock, Ticket};
use sublet::upload::{FlushError, UploadArenaCreateInfo, WaitError};

use crate::common::*;
use crate::support::*;

fn no_wait(_: Ticket) -> Result<(), ash::vk::Result> {
    unreachable!("it would wait for ever")
}

#[test]
fn an_arena_says_that_it_waits_for_another_clock() {
    let fixture = Fixture::new(sublet::sim::profiles::ALL[0]);
    let (clock, other) = (Clock::new(), Clock::new());
    let (timeline, other_timeline) = (clock.add_timeline().unwrap(), other.add_timeline().unwrap());
    let mut arena = arena(&fixture, &UploadArenaCreateInfo { memory_limit: Some(8192), ..small(4096) });
    let foreign = other.open(other_timeline);
    arena.allocate(4096, 1).unwrap();
    arena.flush(foreign).unwrap();
    arena.allocate(4096, 1).unwrap();
    let own = clock.open(timeline);
    let before = arena.statistics();
    let mixed = MixedClocks { ticket: own, waiting: foreign };
    assert_eq!(arena.flush(own), Err(FlushError::MixedClocks(mixed)));
    assert_eq!(arena.statistics(), before);
    let foreign_clock = OtherClock { ticket: foreign, tickets: 1, collected: 0 };
    assert_eq!(arena.collect(&clock), Err(foreign_clock));
    let error = arena.wait_for_space(1, 1, &clock, no_wait).unwrap_err();
    assert_eq!(error, WaitError::OtherClock(foreign_clock));
    assert!(error.to_string().contains("of another clock"), "{error}");
    // The arena continues with the correct clock.
    other.discard(foreign).unwrap();
    assert_eq!(arena.collect(&other), Ok(1));
    arena.flush(own).unwrap();
    clock.discard(own).unwrap();
    assert_eq!(arena.collect(&clock), Ok(1));
    arena.validate();
    drop(arena.release());
}
