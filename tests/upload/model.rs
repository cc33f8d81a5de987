//! Random arenas, compared with a list of live uploads: no two overlap, each is aligned and inside its buffer, and the
//! figures are consistent. Recordings on three timelines complete in any order.

use ash::vk;
use sublet::retire::{Clock, Ticket, TimelineId};
use sublet::upload::{Upload, UploadArenaCreateInfo, UploadError};

use crate::common::*;
use crate::support::*;

/// A clock with timelines whose submissions complete at random.
struct Timelines {
    clock: Clock,
    timelines: Vec<TimelineId>,
    submitted: Vec<u64>,
    done: Vec<u64>,
    /// Recorded but not submitted.
    open: Vec<Ticket>,
}

impl Timelines {
    fn new() -> Self {
        let clock = Clock::new();
        let timelines: Vec<_> = (0..3).map(|_| clock.add_timeline().unwrap()).collect();
        Self { clock, timelines, submitted: vec![0; 3], done: vec![0; 3], open: Vec::new() }
    }

    fn ticket(&mut self, random: &mut Random) -> Ticket {
        let ticket = self.clock.open(random.pick(&self.timelines));
        self.open.push(ticket);
        ticket
    }

    /// Submits, discards or completes a recording.
    fn go_on(&mut self, random: &mut Random) {
        if !self.open.is_empty() && random.below(2) == 0 {
            let ticket = self.open.swap_remove(random.below(self.open.len() as u64) as usize);
            let timeline = ticket.timeline().index();
            if random.below(8) == 0 {
                self.clock.discard(ticket).unwrap();
            } else {
                self.submitted[timeline] += 1;
                self.clock.submit(ticket, self.submitted[timeline]).unwrap();
            }
        }
        let timeline = random.below(3) as usize;
        self.done[timeline] += random.below(self.submitted[timeline] - self.done[timeline] + 1);
        self.clock.completed(self.timelines[timeline], self.done[timeline]);
    }

    fn end(&mut self) {
        for ticket in self.open.drain(..) {
            self.clock.discard(ticket).unwrap();
        }
        self.clock.idle();
    }
}

/// A live upload, with its recording's ticket once it is flushed.
#[derive(Default)]
struct Live(Vec<(Upload, Option<Ticket>)>);

impl Live {
    fn enter(&mut self, timelines: &Timelines, upload: Upload, size: u64, alignment: u64) {
        assert_eq!((upload.size, upload.offset % alignment), (size, 0));
        self.0.retain(|(_, ticket)| ticket.is_none_or(|ticket| !timelines.clock.is_done(ticket)));
        for (other, _) in &self.0 {
            let apart = other.buffer != upload.buffer
                || other.offset + other.size <= upload.offset
                || upload.offset + upload.size <= other.offset;
            assert!(apart, "{upload:?} and {other:?} overlap");
        }
        self.0.push((upload, None));
    }

    fn name(&mut self, name: Ticket) {
        for (_, ticket) in &mut self.0 {
            ticket.get_or_insert(name);
        }
    }

    fn bytes(&self, timelines: &Timelines) -> u64 {
        let live =
            self.0.iter().filter(|(_, ticket)| ticket.is_none_or(|ticket| !timelines.clock.is_done(ticket)));
        live.map(|(upload, _)| upload.size).sum()
    }
}

fn steps() -> u64 {
    from_environment("SUBLET_UPLOAD_STEPS", 1500)
}

#[test]
fn arenas_agree_with_a_list_of_what_is_live() {
    on_every_profile(|profile| {
        for seed in 0..4 {
            let fixture = Fixture::new(profile);
            let mut random = Random::new(seed);
            let info = UploadArenaCreateInfo {
                share_pages: seed % 2 == 0,
                memory_limit: (seed >= 2).then_some(20 * 4096),
                own_pages_kept: seed as u32,
                pages_per_block: 1 + seed as u32,
                pages_kept: 1,
                idle_collects: Some(3),
                ..small(4096)
            };
            let mut arena = arena(&fixture, &info);
            // A clock that knows none of the tickets, so that none of them is done.
            let never = Clock::new();
            let (mut timelines, mut live) = (Timelines::new(), Live::default());
            for _ in 0..steps() {
                match random.below(20) {
                    0..=13 => {
                        let bits = random.pick(&[10, 10, 10, 10, 10, 10, 14]);
                        let size = random.size(bits);
                        let alignment = 1 << random.below(12);
                        // Predicts the outcome. There is no ticket to wait for.
                        let expected = (random.below(4) == 0)
                            .then(|| arena.wait_for_space(size, alignment, &never, |_| Err(())).is_ok());
                        let outcome = arena.allocate(size, alignment);
                        assert!(expected.is_none_or(|expected| expected == outcome.is_ok()));
                        match outcome {
                            Ok(upload) => {
                                live.enter(&timelines, upload, size, alignment);
                                // SAFETY: the upload has this many bytes, and only the test uses them.
                                unsafe { upload.ptr.write_bytes(1, size as usize) };
                            }
                            Err(error) => assert!(
                                matches!(error, UploadError::MemoryLimit { memory_limit, in_use, needed }
                                    if in_use + needed > memory_limit),
                                "{error}"
                            ),
                        }
                    }
                    14 | 15 => {
                        let ticket = timelines.ticket(&mut random);
                        arena.flush(ticket).unwrap();
                        live.name(ticket);
                    }
                    16 | 17 => timelines.go_on(&mut random),
                    18 => {
                        arena.collect(&timelines.clock).unwrap();
                        assert!(arena.statistics().used >= live.bytes(&timelines));
                    }
                    _ if random.below(10) == 0 => assert!(arena.trim() % 64 == 0),
                    _ if random.below(10) == 0 => drop(arena.reserve(random.below(9000))),
                    _ => timelines.go_on(&mut random),
                }
                arena.validate();
                let statistics = arena.statistics();
                assert!(statistics.reserved <= info.memory_limit.unwrap_or(u64::MAX));
                assert!(statistics.used >= live.bytes(&timelines));
            }
            timelines.end();
            arena.flush(timelines.ticket(&mut random)).unwrap();
            timelines.end();
            arena.collect(&timelines.clock).unwrap();
            let statistics = arena.statistics();
            assert_eq!((statistics.used, statistics.padding, statistics.tail), (0, 0, 0));
            assert_eq!(statistics.pages_in_flight, 0);
            fixture.validate();
            drop(arena.release());
        }
    });
}

/// The driver refuses any calls, several times in one operation.
#[test]
fn arenas_agree_with_the_list_where_the_device_refuses() {
    const CALLS: [&str; 4] =
        ["vkAllocateMemory", "vkCreateBuffer", "vkBindBufferMemory", "vkFlushMappedMemoryRanges"];
    on_every_profile(|profile| {
        for seed in 0..6 {
            let fixture = Fixture::new(profile);
            let mut random = Random::new(seed);
            let info = UploadArenaCreateInfo {
                share_pages: seed % 2 == 0,
                memory_limit: (seed >= 2).then_some((4 + 4 * seed) * 4096),
                own_pages_kept: 1 + seed as u32,
                pages_kept: 1,
                idle_collects: Some(3),
                ..small(4096)
            };
            let mut arena = arena(&fixture, &info);
            let (mut timelines, mut live) = (Timelines::new(), Live::default());
            for _ in 0..steps() / 2 {
                let refuses = random.below(4) == 0;
                if refuses {
                    let (call, first) = (random.pick(&CALLS), random.below(3));
                    for nth in first..=first + random.below(3) {
                        fixture.gpu.faults().fail_nth(call, nth, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
                    }
                }
                match random.below(20) {
                    0..=8 => {
                        let bits = random.pick(&[10, 12, 14]);
                        let (size, alignment) = (random.size(bits), 1 << random.below(12));
                        if let Ok(upload) = arena.allocate(size, alignment) {
                            live.enter(&timelines, upload, size, alignment);
                        }
                    }
                    9 | 10 => {
                        let ticket = timelines.ticket(&mut random);
                        if arena.flush(ticket).is_ok() {
                            live.name(ticket);
                        }
                    }
                    11 | 12 => drop(arena.collect(&timelines.clock).unwrap()),
                    13 => drop(arena.trim()),
                    14..=16 => {
                        let bytes = random.below(6 * 4096);
                        if arena.reserve(bytes).is_ok() {
                            let statistics = arena.statistics();
                            assert!(statistics.free + statistics.rest >= bytes, "{statistics:?}");
                        }
                    }
                    _ => timelines.go_on(&mut random),
                }
                fixture.gpu.faults().clear();
                arena.validate();
                let statistics = arena.statistics();
                assert!(statistics.reserved <= info.memory_limit.unwrap_or(u64::MAX));
                assert!(statistics.used >= live.bytes(&timelines));
                assert_eq!(fixture.gpu.live().buffers, statistics.pages as u64);
            }
            timelines.end();
            arena.flush(timelines.ticket(&mut random)).unwrap();
            timelines.end();
            arena.collect(&timelines.clock).unwrap();
            assert_eq!(arena.statistics().used, 0);
            drop(arena.release());
        }
    });
}
