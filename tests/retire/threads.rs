//! Threads that retire and collect at once.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::rig::Rig;

#[test]
fn threads_retire_and_collect_at_once_and_nothing_is_freed_twice_or_lost() {
    const THREADS: usize = 4;
    const ROUNDS: u64 = 100;
    let rig = Rig::new();
    let collected = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let lane = rig.clock.add_lane().unwrap();
                for value in 1..=ROUNDS {
                    let ticket = rig.clock.open(lane);
                    let (buffer, allocation) = rig.buffer();
                    // SAFETY: the device does not use the buffer.
                    unsafe { rig.retired.retire_buffer(ticket, buffer, allocation) };
                    // SAFETY: the device does not use the memory.
                    unsafe { rig.retired.retire_memory(ticket, rig.memory()) };
                    rig.clock.submit(ticket, value).unwrap();
                    rig.clock.completed(lane, value - value % 3);
                    collected.fetch_add(rig.collect().unwrap(), Ordering::Relaxed);
                }
            });
        }
    });
    rig.clock.shutdown();
    let rest = rig.collect().unwrap();
    let all = usize::try_from(ROUNDS).unwrap() * 2 * THREADS;
    assert_eq!(collected.into_inner() + rest, all);
}

#[test]
fn nobody_waits_for_the_drivers_call_of_another_thread() {
    let rig = Rig::new();
    let lane = rig.clock.add_lane().unwrap();
    let done = rig.clock.open(lane);
    let (buffer, allocation) = rig.buffer();
    // SAFETY: the device does not use the buffer.
    unsafe { rig.retired.retire_buffer(done, buffer, allocation) };
    rig.clock.discard(done).unwrap();
    rig.gpu.reset_calls();
    rig.gpu.faults().hold("vkDestroyBuffer");
    std::thread::scope(|scope| {
        let collector = scope.spawn(|| rig.collect().unwrap());
        while rig.gpu.calls("vkDestroyBuffer") == 0 {
            assert!(!collector.is_finished(), "the buffer is done, and was not destroyed");
            std::thread::yield_now();
        }
        // The driver call for the buffer is blocked. If a lock were held, these calls would hang, so a separate thread
        // makes them.
        let (tell, told) = std::sync::mpsc::channel();
        let rig = &rig;
        scope.spawn(move || {
            let ticket = rig.clock.open(lane);
            // SAFETY: the device does not use the memory.
            unsafe { rig.retired.retire_memory(ticket, rig.memory()) };
            rig.clock.discard(ticket).unwrap();
            tell.send(rig.collect().unwrap()).unwrap();
        });
        let other = told.recv_timeout(std::time::Duration::from_secs(10));
        rig.gpu.faults().release("vkDestroyBuffer");
        assert_eq!(other, Ok(1));
        assert_eq!(collector.join().unwrap(), 1);
    });
}
