//! Threads that retire and collect at once.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::fixture::Fixture;

#[test]
fn threads_retire_and_collect_at_once_and_nothing_is_freed_twice_or_lost() {
    const THREADS: usize = 4;
    const ROUNDS: u64 = 100;
    let fixture = Fixture::new();
    let collected = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let timeline = fixture.clock.add_timeline().unwrap();
                for value in 1..=ROUNDS {
                    let ticket = fixture.clock.open(timeline);
                    let (buffer, allocation) = fixture.buffer();
                    // SAFETY: the device does not use the buffer.
                    unsafe { fixture.retired.retire_buffer(ticket, buffer, allocation) };
                    // SAFETY: the device does not use the memory.
                    unsafe { fixture.retired.retire_memory(ticket, fixture.memory()) };
                    fixture.clock.submit(ticket, value).unwrap();
                    fixture.clock.completed(timeline, value - value % 3);
                    collected.fetch_add(fixture.collect().unwrap(), Ordering::Relaxed);
                }
            });
        }
    });
    fixture.clock.shutdown();
    let rest = fixture.collect().unwrap();
    let all = usize::try_from(ROUNDS).unwrap() * 2 * THREADS;
    assert_eq!(collected.into_inner() + rest, all);
}

#[test]
fn nobody_waits_for_the_drivers_call_of_another_thread() {
    let fixture = Fixture::new();
    let timeline = fixture.clock.add_timeline().unwrap();
    let done = fixture.clock.open(timeline);
    let (buffer, allocation) = fixture.buffer();
    // SAFETY: the device does not use the buffer.
    unsafe { fixture.retired.retire_buffer(done, buffer, allocation) };
    fixture.clock.discard(done).unwrap();
    fixture.gpu.reset_calls();
    fixture.gpu.faults().hold("vkDestroyBuffer");
    std::thread::scope(|scope| {
        let collector = scope.spawn(|| fixture.collect().unwrap());
        while fixture.gpu.calls("vkDestroyBuffer") == 0 {
            assert!(!collector.is_finished(), "the buffer is done, and was not destroyed");
            std::thread::yield_now();
        }
        // The driver call for the buffer is blocked. If a lock were held, these calls would never return.
        let ticket = fixture.clock.open(timeline);
        // SAFETY: the device does not use the memory.
        unsafe { fixture.retired.retire_memory(ticket, fixture.memory()) };
        fixture.clock.discard(ticket).unwrap();
        let other = fixture.collect();
        fixture.gpu.faults().release("vkDestroyBuffer");
        assert_eq!(other.unwrap(), 1);
        assert_eq!(collector.join().unwrap(), 1);
    });
}
