//! Several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;

use super::*;

/// Blocks whose creation waits for a signal.
struct Slow {
    made: AtomicU32,
    started: mpsc::SyncSender<()>,
    go_on: Mutex<mpsc::Receiver<()>>,
}

impl Backing<Tlsf> for Slow {
    type Block = ();
    type Item = ();
    type Error = Fault;

    fn capacity_for(&self, _: Option<&Request>, _: &GrowthLimits) -> Option<NextBlock<u64>> {
        Some(Growth::fixed(64).next(0, 0))
    }

    fn create(&self, _: &u64) -> Result<(), Fault> {
        if self.made.fetch_add(1, Ordering::Relaxed) > 0 {
            self.started.send(()).unwrap();
            self.go_on.lock().unwrap().recv().unwrap();
        }
        Ok(())
    }

    fn destroy(&self, (): ()) {}

    fn realize(&self, (): &mut (), _: &Span) -> Result<(), Refusal<Fault>> {
        Ok(())
    }
}

/// While a thread waits in `create`, others are served. Two threads that find no room create one block.
#[test]
fn others_go_on_while_a_block_is_made() {
    let (started, has_started) = mpsc::sync_channel(8);
    let (go_on, may_go_on) = mpsc::sync_channel(8);
    let slow = Slow { made: AtomicU32::new(0), started, go_on: Mutex::new(may_go_on) };
    let policy = Policy { min_blocks: 1, ..Policy::default() };
    let vector = SharedBlockVector::new(slow, Tlsf::exact(64), policy).unwrap();
    let half = vector.allocate(&units(32)).unwrap();
    std::thread::scope(|scope| {
        let grow = || vector.allocate(&units(40)).unwrap();
        let first = scope.spawn(grow);
        has_started.recv().unwrap();
        // The lock of the state is free meanwhile.
        let other = vector.allocate(&units(32)).unwrap();
        vector.free(half).unwrap();
        vector.validate();
        let small = scope.spawn(|| vector.allocate(&units(20)).unwrap());
        let small = small.join().unwrap();
        go_on.send(()).unwrap();
        let first = first.join().unwrap();
        assert_eq!(vector.statistics().blocks, 2);
        [other, small, first].into_iter().for_each(|granted| vector.free(granted).unwrap());
    });
    assert_eq!((vector.backing().made.load(Ordering::Relaxed), vector.statistics().live), (2, 0));
}

#[test]
fn threads_that_find_it_full_together_make_one_block() {
    let (started, has_started) = mpsc::sync_channel(8);
    let (go_on, may_go_on) = mpsc::sync_channel(8);
    let slow = Slow { made: AtomicU32::new(1), started, go_on: Mutex::new(may_go_on) };
    let vector = SharedBlockVector::new(slow, Tlsf::exact(64), Policy::default()).unwrap();
    let all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| vector.allocate(&units(16)).unwrap())).collect();
        has_started.recv().unwrap();
        go_on.send(()).unwrap();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!((vector.statistics().created, vector.statistics().live), (1, 4));
    all.into_iter().for_each(|granted| vector.free(granted).unwrap());
    vector.validate();
}

#[test]
fn threads_allocate_and_free() {
    struct Plain;
    impl Backing<Tlsf> for Plain {
        type Block = ();
        type Item = ();
        type Error = Fault;
        fn capacity_for(&self, request: Option<&Request>, limits: &GrowthLimits) -> Option<NextBlock<u64>> {
            let needed = request.map_or(0, |request| request.size);
            Some(Growth { first: 32, preferred: 128 }.next(needed, limits.largest))
        }
        fn create(&self, _: &u64) -> Result<(), Fault> {
            Ok(())
        }
        fn destroy(&self, (): ()) {}
        fn realize(&self, (): &mut (), _: &Span) -> Result<(), Refusal<Fault>> {
            Ok(())
        }
    }
    let vector = SharedBlockVector::new(Plain, Tlsf::exact(1024), Policy::default()).unwrap();
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let vector = &vector;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                let mut live = Vec::new();
                for _ in 0..500 {
                    if random.bool() {
                        live.push(vector.allocate(&units(random.u64(1..150))).unwrap());
                    } else if !live.is_empty() {
                        vector.free(live.swap_remove(random.usize(0..live.len()))).unwrap();
                    }
                }
                live.into_iter().for_each(|granted| vector.free(granted).unwrap());
            });
        }
    });
    vector.validate();
    assert_eq!((vector.statistics().live, vector.trim()), (0, 1));
}

#[test]
fn one_thread_may_share_a_vector_with_itself() {
    let desk = Rc::new(Desk::default());
    let numbers = Numbers { desk: Rc::clone(&desk), growth: Growth::fixed(64) };
    let vector = SharedBlockVector::<_, Tlsf>::new(numbers, Tlsf::exact(64), Policy::default()).unwrap();
    let granted = vector.allocate(&units(8)).unwrap();
    let offset = vector.with_block(granted.key(), |_, span| span.offset).unwrap();
    assert_eq!((offset, vector.span(granted.key()).unwrap().size), (0, 8));
    let mut used = 0;
    vector.walk(|_, chunk| used += u32::from(chunk.used.is_some()));
    assert_eq!(used, 1);
    vector.free(granted).unwrap();
    assert_eq!(vector.trim(), 1);
}

#[test]
fn a_shared_vector_has_plans_and_a_name() {
    let desk = Rc::new(Desk::default());
    let numbers = Numbers { desk: Rc::clone(&desk), growth: Growth::fixed(64) };
    let vector: SharedBlockVector<_, Tlsf> =
        SharedBlockVector::new(numbers, Tlsf::exact(64), Policy::default()).unwrap();
    vector.set_name(Some("meshes"));
    assert_eq!(vector.name().as_deref(), Some("meshes"));
    let mut live: Vec<_> = (0..8).map(|_| vector.allocate(&units(16)).unwrap()).collect();
    assert_eq!(vector.plan_to_empty(|_| Alignment::ONE), None, "all blocks are full");
    for at in [6, 5, 1] {
        vector.free(live.remove(at)).unwrap();
    }
    vector.free(live.pop().unwrap()).unwrap();
    let plan = vector.plan_to_empty(|_| Alignment::ONE).unwrap();
    assert_eq!(plan.moves.len(), 1);
    assert_eq!(vector.span(plan.moves[0].key), Ok(plan.moves[0].span));
    live.into_iter().for_each(|granted| vector.free(granted).unwrap());
}

#[test]
fn a_shared_vector_destroys_its_first_blocks_when_it_is_dropped() {
    let desk = Rc::new(Desk::default());
    let numbers = Numbers { desk: Rc::clone(&desk), growth: Growth::fixed(64) };
    let policy = Policy { min_blocks: 2, ..Policy::default() };
    let vector = SharedBlockVector::new(numbers, Tlsf::exact(64), policy).unwrap();
    vector.free(vector.allocate(&units(8)).unwrap()).unwrap();
    assert_eq!((vector.trim(), desk.blocks()), (0, 2), "they stay");
    drop(vector);
    assert_eq!(desk.blocks(), 0);
}
