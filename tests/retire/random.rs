//! Random programs on two queues. The device reports early frees, and a count detects late ones.

use ash::vk;
use sublet::retire::Ticket;

use super::fixture::{Fixture, timeline_semaphore};

/// A recording that writes to its own buffer, which is retired with it.
struct Recording {
    ticket: Ticket,
    queue: usize,
    commands: vk::CommandBuffer,
}

fn play(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut fixture = Fixture::with_queues(2);
    let timelines =
        [(); 2].map(|()| (fixture.clock.add_timeline().unwrap(), timeline_semaphore(&fixture.gpu)));
    let mut open: Vec<Recording> = Vec::new();
    let (mut submitted, mut executed, mut told) = ([0_u64; 2], [0_u64; 2], [0_u64; 2]);
    // Submissions that the clock does not know yet.
    let mut untold: Vec<(Ticket, usize, u64)> = Vec::new();
    // Values of tickets that the clock knows as submitted, by queue.
    let mut waiting: [Vec<u64>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..300 {
        let queue = random.usize(..2);
        match random.u32(..10) {
            0..=2 => {
                let ticket = fixture.clock.open(timelines[queue].0);
                let (buffer, allocation) = fixture.buffer();
                // SAFETY: only this recording uses the buffer.
                unsafe { fixture.retired.retire_buffer(ticket, buffer, allocation) };
                open.push(Recording { ticket, queue, commands: fixture.record(&[buffer]) });
            }
            3 | 4 if !open.is_empty() => {
                let Recording { ticket, queue, commands } = open.swap_remove(random.usize(..open.len()));
                submitted[queue] += 1;
                let signal = Some((timelines[queue].1, submitted[queue]));
                fixture.submit_to(queue, commands, signal, vk::Fence::null());
                untold.push((ticket, queue, submitted[queue]));
            }
            5 if !open.is_empty() => {
                let recording = open.swap_remove(random.usize(..open.len()));
                fixture.clock.discard(recording.ticket).unwrap();
            }
            6 if !untold.is_empty() => {
                let (ticket, queue, value) = untold.swap_remove(random.usize(..untold.len()));
                fixture.clock.submit(ticket, value).unwrap();
                waiting[queue].push(value);
            }
            7 if executed[queue] < submitted[queue] => {
                executed[queue] += 1;
                fixture.execute_on(queue, executed[queue]);
            }
            8 => {
                // SAFETY: the semaphores are live.
                unsafe { fixture.allocator.poll_timelines(&fixture.clock, &timelines) }.unwrap();
                for queue in 0..2 {
                    // Timelines with nothing in flight are not read.
                    if waiting[queue].iter().any(|&value| value > told[queue]) {
                        told[queue] = executed[queue];
                    }
                }
            }
            9 => {
                fixture.collect().unwrap();
                for (waiting, &told) in waiting.iter_mut().zip(&told) {
                    waiting.retain(|&value| value > told);
                }
                let left = open.len() + untold.len() + waiting[0].len() + waiting[1].len();
                assert_eq!(fixture.retired.len(), left, "with seed {seed}");
                assert_eq!(fixture.buffers(), u64::try_from(left).unwrap());
            }
            _ => {}
        }
    }
    for recording in open {
        fixture.clock.discard(recording.ticket).unwrap();
    }
    for (ticket, _, value) in untold {
        fixture.clock.submit(ticket, value).unwrap();
    }
    fixture.execute_all();
    // SAFETY: the semaphores are live.
    unsafe { fixture.allocator.poll_timelines(&fixture.clock, &timelines) }.unwrap();
    fixture.collect().unwrap();
    for (_, semaphore) in timelines {
        // SAFETY: nothing is in flight.
        unsafe { fixture.gpu.device().destroy_semaphore(semaphore, None) };
    }
}

#[test]
fn nothing_is_freed_early_and_nothing_waits_for_ever() {
    (0..40).for_each(play);
}
