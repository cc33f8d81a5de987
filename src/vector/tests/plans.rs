//! Plans to empty a block, with every engine of ranges.

use super::*;
use crate::engine::{Algorithm, ENGINE_CALLS, Engine};
use sublet_engines::{Buddy, Linear, RegionId, Regions};

const ALGORITHMS: [Algorithm; 3] = [Algorithm::Tlsf, Algorithm::Linear, Algorithm::Buddy];
const LARGE: u64 = 1 << 26;

/// Blocks of one size, as many as the minimum.
fn vector_of(algorithm: Algorithm, units: u64, policy: Policy) -> BlockVector<Numbers, Engine> {
    let numbers = Numbers { desk: Rc::default(), growth: Growth::fixed(units) };
    BlockVector::new(numbers, Engine::new(algorithm, units, true), policy).unwrap()
}

/// One move of 16 units, next to a closed block that has room for four million of them.
#[test]
fn what_is_behind_a_seal_is_not_filled_for_a_plan() {
    for algorithm in ALGORITHMS {
        let policy = Policy { min_blocks: 3, ..Policy::default() };
        let mut vector = vector_of(algorithm, LARGE, policy);
        let sealed = vector.allocate(&units(16)).unwrap();
        assert!(vector.seal(sealed.span().region));
        let large =
            [vector.allocate(&units(LARGE / 2)).unwrap(), vector.allocate(&units(LARGE / 2)).unwrap()];
        let small = vector.allocate(&units(16)).unwrap();
        let [kept, freed] = large;
        assert_eq!(kept.span().region, freed.span().region, "{algorithm:?}");
        assert_ne!(kept.span().region, small.span().region, "{algorithm:?}");
        vector.free(freed).unwrap();
        let before = ENGINE_CALLS.get();
        let plan = vector.plan_to_empty(|_| Alignment::ONE).unwrap();
        let asked = ENGINE_CALLS.get() - before;
        assert_eq!(plan.moves.len(), 1);
        assert_ne!(plan.block, sealed.span().region);
        assert!(asked <= 4, "{algorithm:?}: the engine was asked {asked} times");
        [sealed, kept, small].into_iter().for_each(|granted| vector.free(granted).unwrap());
    }
}

/// The same for an allocation: filling the block would need host memory in the engine.
#[test]
fn what_is_behind_a_seal_is_not_filled_for_an_allocation() {
    fn allocate_beside<M: RangeMetadata>(engine: M, heap_bytes: impl Fn(&M) -> usize) {
        let numbers = Numbers { desk: Rc::default(), growth: Growth::fixed(LARGE) };
        let policy = Policy { min_blocks: 2, ..Policy::default() };
        let mut vector = BlockVector::new(numbers, engine, policy).unwrap();
        let sealed = vector.allocate(&units(16)).unwrap();
        assert!(vector.seal(sealed.span().region));
        let moved = vector.allocate(&units(16)).unwrap();
        assert_ne!(moved.span().region, sealed.span().region);
        let bytes = heap_bytes(vector.engine());
        assert!(bytes < 1 << 16, "{bytes} bytes");
        [sealed, moved].into_iter().for_each(|granted| vector.free(granted).unwrap());
    }
    allocate_beside(Tlsf::exact(LARGE), Tlsf::heap_bytes);
    allocate_beside(Linear::new(LARGE, Regions::Many), Linear::heap_bytes);
    allocate_beside(Buddy::new(LARGE, 1), Buddy::heap_bytes);
}

/// A plan succeeds without a new block, and uses neither empty nor closed blocks.
#[test]
fn a_plan_can_be_done() {
    for algorithm in ALGORITHMS {
        let mut plans = 0;
        for seed in 1..=150 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut vector = vector_of(algorithm, 4096, Policy { empty_blocks_kept: 2, ..Policy::default() });
            let mut held: Vec<_> =
                (0..60).map(|_| vector.allocate(&units(random.u64(1..=900))).unwrap()).collect();
            let most = random.usize(4..50);
            while held.len() > most {
                vector.free(held.swap_remove(random.usize(..held.len()))).unwrap();
            }
            if random.bool() {
                vector.seal(held[0].span().region);
            }
            let sealed: Vec<_> = vector.blocks().map(|(info, _)| info).filter(|info| info.sealed).collect();
            let Some(plan) = vector.plan_to_empty(|_| Alignment::ONE) else { continue };
            plans += 1;
            let before = vector.statistics();
            let used: Vec<_> = vector.blocks().map(|(info, _)| info).filter(|info| info.live > 0).collect();
            assert!(vector.seal(plan.block));
            for planned in plan.moves {
                let at = held.iter().position(|granted| granted.key() == planned.key).unwrap();
                let moved = vector.allocate(&units(planned.span.size)).unwrap();
                let region = moved.span().region;
                assert!(region != plan.block && used.iter().any(|info| info.region == region));
                assert!(sealed.iter().all(|info| info.region != region));
                vector.free(std::mem::replace(&mut held[at], moved)).unwrap();
                vector.validate();
            }
            assert_eq!(vector.statistics().created, before.created, "{algorithm:?}, {seed}");
            held.into_iter().for_each(|granted| vector.free(granted).unwrap());
        }
        assert!(plans > 20, "{algorithm:?}: {plans}");
    }
}

/// Placement outside closed regions equals repeated allocation until a grant is outside.
#[test]
fn closed_regions_grant_nothing() {
    for algorithm in ALGORITHMS {
        for seed in 1..=100 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut engine = Engine::new(algorithm, 4096, true);
            for _ in 0..4 {
                engine.add_region(&4096).unwrap();
            }
            let mut held = Vec::new();
            for _ in 0..60 {
                if random.u32(..3) == 0 && !held.is_empty() {
                    engine.free(held.swap_remove(random.usize(..held.len()))).unwrap();
                }
                let closed = random.u32(..16);
                let alignment = Alignment::new(1 << random.u32(..13)).unwrap();
                let request = Request::new(random.u64(1..=900), alignment);
                let is_closed = |region: RegionId| closed >> region.0 & 1 == 1;
                let before: Vec<_> = (0..4).map(|at| engine.region_usage(RegionId(at))).collect();
                let granted = engine.allocate_outside(&request, &is_closed);
                engine.validate();
                for at in 0..4 {
                    let id = RegionId(at);
                    let is_there = granted.is_ok_and(|(_, span)| span.region == id);
                    let same = engine.region_usage(id) == before[usize::try_from(at).unwrap()];
                    assert!(same != is_there && !(is_there && is_closed(id)), "{algorithm:?}, {seed}");
                }
                held.extend(granted.ok().map(|(key, _)| key));
            }
        }
    }
}
