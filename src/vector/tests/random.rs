//! Random programs, compared with a list of grants.

use super::*;
use crate::retire::Clock;
use sublet_engines::cast::{narrow, widen};
use sublet_engines::{Buddy, Linear, Regions};

/// Runs a program on a vector over this engine.
fn play<M: RangeMetadata>(seed: u64, engine: M) {
    let mut random = fastrand::Rng::with_seed(seed);
    let policy = Policy {
        min_blocks: random.u32(0..2),
        max_blocks: if random.bool() { random.u32(3..9) } else { u32::MAX },
        max_units: if random.bool() { random.u64(300..2000) } else { u64::MAX },
        empty_blocks_kept: random.u32(0..3),
        own_blocks_kept: random.u32(0..2),
        idle_collects: [Some(0), Some(3), None][random.usize(0..3)],
    };
    let growth = Growth { first: 1 << random.u32(3..7), preferred: 64 };
    let desk = Rc::new(Desk::default());
    let numbers = Numbers { desk: Rc::clone(&desk), growth };
    let mut vector = BlockVector::new(numbers, engine, policy).unwrap();
    let (clock, mut value) = (Clock::new(), 0);
    let timeline = clock.add_timeline().unwrap();
    let mut live: Vec<GrantOf<Numbers, M>> = Vec::new();
    let mut waiting = 0_u64;
    for _ in 0..300 {
        match random.u32(0..20) {
            0..=8 => {
                let size = if random.u32(0..12) == 0 { random.u64(65..257) } else { random.u64(1..40) };
                let request = Request::new(size, Alignment::new(1 << random.u32(0..4)).unwrap());
                let before = (desk.items(), vector.statistics().live);
                match random.u32(0..16) {
                    0 => desk.creates.set(Some(0)),
                    1 => desk.realizes.set(Some(0)),
                    2 => desk.exhausted.borrow_mut().extend(desk.blocks.borrow().iter().copied()),
                    _ => {}
                }
                match vector.allocate(&request) {
                    Ok(granted) => {
                        let span = granted.span();
                        assert_eq!(span.offset % request.alignment.get(), 0);
                        for other in
                            live.iter().map(Granted::span).filter(|other| other.region == span.region)
                        {
                            let apart = span.offset + span.size <= other.offset
                                || other.offset + other.size <= span.offset;
                            assert!(apart, "{span:?} overlaps {other:?}");
                        }
                        live.push(granted);
                    }
                    Err(_) => assert_eq!((desk.items(), vector.statistics().live), before, "rolled back"),
                }
                desk.creates.set(None);
                desk.realizes.set(None);
            }
            9..=14 if !live.is_empty() => vector.free(live.swap_remove(random.usize(0..live.len()))).unwrap(),
            15 | 16 if !live.is_empty() => {
                value += 1;
                let ticket = clock.open(timeline);
                vector.retire(ticket, live.swap_remove(random.usize(0..live.len()))).unwrap();
                waiting += 1;
                clock.submit(ticket, value).unwrap();
            }
            17 => {
                clock.completed(timeline, value);
                assert_eq!(vector.collect(&clock).unwrap(), usize::try_from(waiting).unwrap());
                waiting = 0;
            }
            18 => drop(vector.trim()),
            19 if random.u32(0..6) == 0 => {
                let were = widen(live.len()) + waiting;
                assert_eq!(vector.clear(), were);
                desk.items.borrow_mut().clear();
                waiting = 0;
                for stale in live.drain(..) {
                    assert_eq!(vector.free(stale).unwrap_err().reason, HandleError::Stale);
                }
            }
            _ => {}
        }
        vector.validate();
        let statistics = vector.statistics();
        assert_eq!(statistics.live, widen(live.len()) + waiting);
        assert_eq!((statistics.waiting, widen(desk.items())), (waiting, statistics.live));
        assert_eq!(narrow(desk.blocks()), statistics.blocks, "no block is lost, and none left behind");
        assert!(statistics.units <= policy.max_units);
        let own = statistics.own_blocks;
        // A block of the minimum that stays empty is surplus once there are others. It is destroyed when the next block
        // becomes empty.
        if policy.idle_collects == Some(0) && policy.min_blocks == 0 {
            let empty = vector.blocks().filter(|(info, _)| info.live == 0 && !info.own);
            let usual = statistics.blocks - own;
            assert_eq!(policy.surplus(narrow(empty.count()), usual), 0, "{statistics:?}");
        }
    }
    live.into_iter().for_each(|granted| vector.free(granted).unwrap());
    clock.completed(timeline, value);
    vector.collect(&clock).unwrap();
    vector.trim();
    vector.validate();
    assert_eq!((desk.items(), vector.statistics().live), (0, 0));
    drop(vector);
    assert_eq!(desk.blocks(), 0);
}

#[test]
fn random_programs_agree_with_a_list() {
    for seed in 0..60 {
        play(seed, Tlsf::exact(1 << 20));
        play(seed, Tlsf::new(1 << 20));
        play(seed, Linear::new(1 << 20, Regions::Many));
        play(seed, Buddy::new(1 << 20, 1));
    }
}
