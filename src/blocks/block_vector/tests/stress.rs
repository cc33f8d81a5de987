//! Stress tests with real threads. Each allocation is stamped in device memory, which detects overlapping allocations.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;
use crate::blocks::device_block::{peek, poke};

const THREADS: u64 = 8;

/// Stamps both ends of an allocation.
fn stamp(fixture: &Fixture, it: &Held, stamp: u64) {
    let Grant { memory, offset, .. } = it.grant;
    let last = offset + it.request.size - 8;
    assert!(poke(&fixture.gpu, memory, offset, &stamp.to_le_bytes()));
    assert!(poke(&fixture.gpu, memory, last, &stamp.to_le_bytes()));
}

/// Checks the stamp at both ends.
fn verify(fixture: &Fixture, it: &Held, stamp: u64) {
    let Grant { memory, offset, .. } = it.grant;
    let last = offset + it.request.size - 8;
    for at in [offset, last] {
        assert_eq!(peek(&fixture.gpu, memory, at, 8).unwrap(), stamp.to_le_bytes(), "{it:?} at {at}");
    }
}

struct Worker<'a> {
    fixture: &'a Fixture,
    random: Random,
    number: u64,
    rounds: u64,
    held: Vec<(Held, u64)>,
    next: Sender<(Held, u64)>,
    inbox: Receiver<(Held, u64)>,
}

impl Worker<'_> {
    fn run(mut self) {
        for round in 0..self.rounds {
            match self.random.below(10) {
                0..=4 => self.allocate(round),
                5..=6 => self.free_own(),
                7 => self.pass_on(),
                8 => self.free_foreign(),
                _ => self.look(),
            }
        }
        drop(self.next);
        for (it, stamp) in self.held.drain(..).chain(self.inbox.iter()) {
            verify(self.fixture, &it, stamp);
            self.fixture.free(it);
        }
    }

    fn allocate(&mut self, round: u64) {
        let bits = if self.random.one_in(8) { 20 } else { 13 };
        // The two stamps must not overlap.
        let size = 16 + self.random.size(bits);
        let mapped = self.random.one_in(4);
        let wanted = VectorRequest { mapped, ..request(size, 8 << self.random.below(8)) };
        let it = self.fixture.allocate(&wanted).unwrap();
        let mark = self.number << 32 | round;
        stamp(self.fixture, &it, mark);
        self.held.push((it, mark));
        if self.held.len() > 300 {
            self.free_own();
        }
    }

    fn take(&mut self) -> Option<(Held, u64)> {
        let at = (!self.held.is_empty()).then(|| self.random.place(self.held.len()))?;
        Some(self.held.swap_remove(at))
    }

    fn free_own(&mut self) {
        if let Some((it, stamp)) = self.take() {
            verify(self.fixture, &it, stamp);
            self.fixture.free(it);
        }
    }

    /// Passes an allocation to the next thread, which frees it.
    fn pass_on(&mut self) {
        if let Some(it) = self.take() {
            self.next.send(it).unwrap();
        }
    }

    fn free_foreign(&mut self) {
        while let Ok((it, stamp)) = self.inbox.try_recv() {
            verify(self.fixture, &it, stamp);
            self.fixture.free(it);
        }
    }

    fn look(&mut self) {
        let Fixture { vector, context, .. } = self.fixture;
        let Some(&(it, _)) = self.held.last() else { return };
        match self.random.below(4) {
            0 => {
                let base = vector.map(context, it.live()).unwrap();
                assert!(!it.request.mapped || it.grant.mapped == base.at(it.grant.offset));
                vector.unmap(it.live()).unwrap();
            }
            1 => {
                vector.set_name(it.live(), Some("seen")).unwrap();
                assert_eq!(vector.name(it.live()).unwrap().as_deref(), Some("seen"));
            }
            2 => assert!(vector.memory_size(it.live()).unwrap() >= it.grant.offset + it.request.size),
            _ => assert!(vector.totals().allocation_count <= THREADS * 1000),
        }
    }
}

/// `attached`: all threads have a shard from the start. Otherwise threads that contend for the core get one.
fn work(config: VectorConfig, attached: bool, rounds: u64) {
    let fixture = Fixture::new(config);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (senders, inboxes): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel()).unzip();
        let mut senders: Vec<_> = senders.into_iter().map(Some).collect();
        senders.rotate_left(1);
        let workers: Vec<_> = (0..)
            .zip(senders.iter_mut().zip(inboxes))
            .map(|(number, (next, inbox))| {
                let (fixture, next) = (&fixture, next.take().unwrap());
                scope.spawn(move || {
                    if attached {
                        fixture.vector.shards.attach();
                    }
                    let random = Random::new(number + 1);
                    Worker { fixture, random, number, rounds, held: Vec::new(), next, inbox }.run();
                })
            })
            .collect();
        scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                fixture.trim();
                fixture.vector.validate();
                let mut used = 0;
                fixture.vector.visit(&mut |visited| match visited {
                    Visited::Chunk { chunk, .. } => used += u64::from(chunk.used.is_some()),
                    Visited::Block { size, .. } => assert!(size > 0),
                    Visited::Vector { .. } => {}
                    Visited::Dedicated { .. } => panic!("nothing is dedicated here"),
                });
                assert!(used <= THREADS * 1000);
                std::thread::yield_now();
            }
        });
        let results: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        stop.store(true, Ordering::Release);
        assert!(results.iter().all(Result::is_ok));
    });
    fixture.finish();
}

#[test]
fn threads_that_have_attached() {
    work(config(), true, cases(30) * 50);
    work(VectorConfig { empty_blocks_kept: 0, granularity: aligned(1024), ..config() }, true, cases(30) * 20);
}

#[test]
fn threads_that_may_attach() {
    work(config(), false, cases(30) * 50);
}

/// If several threads find the vector full, only one grows it, attached or not.
#[test]
fn one_grows_for_all() {
    for attached in [false, true] {
        for _ in 0..3 {
            let fixture = Fixture::new(config());
            fixture.gpu.faults().delay("vkAllocateMemory", std::time::Duration::from_millis(20));
            let barrier = std::sync::Barrier::new(8);
            let held: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8)
                    .map(|_| {
                        scope.spawn(|| {
                            if attached {
                                fixture.vector.shards.attach();
                            }
                            barrier.wait();
                            let one = fixture.get(64, 1);
                            [one, fixture.get(KIB, 1), fixture.get(64 * KIB, 256)]
                        })
                    })
                    .collect();
                threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 1, "attached: {attached}");
            fixture.gpu.faults().clear();
            fixture.check();
            fixture.free_all(held);
            fixture.finish();
        }
    }
}
