//! Closed blocks, with every engine of ranges.

use super::*;
use crate::engine::{Algorithm, Engine};
use sublet_engines::{Buddy, Linear, RegionId, Regions};

const ALGORITHMS: [Algorithm; 3] = [Algorithm::Tlsf, Algorithm::Linear, Algorithm::Buddy];
const LARGE: u64 = 1 << 26;

/// An engine that filled the rest of a closed block, to allocate beside it, would need host memory for that.
#[test]
fn what_is_behind_a_seal_is_not_filled() {
    fn allocate_beside<M: RangeMetadata>(engine: M, heap_bytes: impl Fn(&M) -> usize) {
        let desk = Rc::new(Desk::default());
        let numbers = Numbers { desk: Rc::clone(&desk), growth: Growth::fixed(LARGE) };
        let policy = Policy { min_blocks: 2, ..Policy::default() };
        let mut vector = BlockVector::new(numbers, engine, policy).unwrap();
        let sealed = vector.allocate(&units(16)).unwrap();
        desk.exhausted.borrow_mut().insert(*vector.block(sealed.key()).unwrap().0);
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
