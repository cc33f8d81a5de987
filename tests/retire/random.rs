//! Random programs on two queues. The device reports early frees, and a count detects late ones.

use ash::vk;
use sublet::retire::Ticket;

use super::rig::{Rig, timeline};

/// A recording that writes to its own buffer, which is retired with it.
struct Recording {
    ticket: Ticket,
    queue: usize,
    commands: vk::CommandBuffer,
}

fn play(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut rig = Rig::with_queues(2);
    let lanes = [(); 2].map(|()| (rig.clock.add_lane().unwrap(), timeline(&rig.gpu)));
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
                let ticket = rig.clock.open(lanes[queue].0);
                let (buffer, allocation) = rig.buffer();
                // SAFETY: only this recording uses the buffer.
                unsafe { rig.retired.retire_buffer(ticket, buffer, allocation) };
                open.push(Recording { ticket, queue, commands: rig.record(&[buffer]) });
            }
            3 | 4 if !open.is_empty() => {
                let Recording { ticket, queue, commands } = open.swap_remove(random.usize(..open.len()));
                submitted[queue] += 1;
                let signal = Some((lanes[queue].1, submitted[queue]));
                rig.submit_to(queue, commands, signal, vk::Fence::null());
                untold.push((ticket, queue, submitted[queue]));
            }
            5 if !open.is_empty() => {
                let recording = open.swap_remove(random.usize(..open.len()));
                rig.clock.discard(recording.ticket).unwrap();
            }
            6 if !untold.is_empty() => {
                let (ticket, queue, value) = untold.swap_remove(random.usize(..untold.len()));
                rig.clock.submit(ticket, value).unwrap();
                waiting[queue].push(value);
            }
            7 if executed[queue] < submitted[queue] => {
                executed[queue] += 1;
                rig.execute_on(queue, executed[queue]);
            }
            8 => {
                // SAFETY: the semaphores are live.
                unsafe { rig.allocator.poll_timelines(&rig.clock, &lanes) }.unwrap();
                for queue in 0..2 {
                    // Timelines with nothing in flight are not read.
                    if waiting[queue].iter().any(|&value| value > told[queue]) {
                        told[queue] = executed[queue];
                    }
                }
            }
            9 => {
                rig.collect().unwrap();
                for (waiting, &told) in waiting.iter_mut().zip(&told) {
                    waiting.retain(|&value| value > told);
                }
                let left = open.len() + untold.len() + waiting[0].len() + waiting[1].len();
                assert_eq!(rig.retired.len(), left, "with seed {seed}");
                assert_eq!(rig.buffers(), u64::try_from(left).unwrap());
            }
            _ => {}
        }
    }
    for recording in open {
        rig.clock.discard(recording.ticket).unwrap();
    }
    for (ticket, _, value) in untold {
        rig.clock.submit(ticket, value).unwrap();
    }
    rig.execute_all();
    // SAFETY: the semaphores are live.
    unsafe { rig.allocator.poll_timelines(&rig.clock, &lanes) }.unwrap();
    rig.collect().unwrap();
    for (_, semaphore) in lanes {
        // SAFETY: nothing is in flight.
        unsafe { rig.gpu.device().destroy_semaphore(semaphore, None) };
    }
}

#[test]
fn nothing_is_freed_early_and_nothing_waits_for_ever() {
    (0..40).for_each(play);
}
