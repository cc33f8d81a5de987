//! Defragmentation of allocations in shards.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// Allocations in leased ranges move to the core. The ranges and their blocks return.
#[test]
fn allocations_leave_their_loans() {
    for effort in EFFORTS {
        let rig = Rig::new(VectorConfig { empty_blocks_kept: 0, ..config() });
        let mut held = vec![rig.get(12 * MIB, 16)];
        for thread in 1..4 {
            rig.settle(thread);
            for at in 0..120 {
                held.push(rig.allocate(&VectorRequest { mapped: at % 3 == 0, ..buffer(100 * KIB) }).unwrap());
            }
        }
        rig.thread(9);
        let mut held = rig.thin_out(held, |at| at % 15 == 0);
        rig.vector.set_name(held[1].live(), Some("moved")).unwrap();
        assert!(held[1..].iter().all(|held| held.grant.shard != 0));
        rig.check();
        let (before, blocks) = (rig.lent(), rig.blocks());
        assert!(before.0 > 3 && blocks > 1);
        let (emptied, _, _) = rig.compact(effort, &mut held);
        assert_eq!((emptied.blocks, rig.blocks()), (blocks - 1, 1), "{effort:?}");
        assert!(rig.lent().0 < before.0, "loans came back");
        let out = held.iter().filter(|held| held.grant.shard == 0).count();
        assert!(out > 5, "{out}");
        assert_eq!(rig.vector.name(held[1].live()).unwrap().as_deref(), Some("moved"));
        for held in held.iter().filter(|held| held.request.mapped) {
            let base = rig.vector.map(&rig.context, held.live()).unwrap();
            rig.vector.unmap(held.live()).unwrap();
            assert_eq!(held.grant.mapped, base.at(held.grant.offset));
        }
        rig.free_all(held);
        rig.finish();
    }
}

/// Guards on an allocation in a leased range move along, and leave its block.
#[test]
fn guards_leave_their_loans() {
    let rig = Rig::new(VectorConfig { empty_blocks_kept: 0, ..config() });
    let full = rig.get(31 * MIB, 16);
    rig.settle(1);
    let mut held = vec![rig.get(64 * KIB, 16), rig.get(64 * KIB, 16)];
    rig.thread(0);
    let other = rig.get(30 * MIB, 16);
    assert_eq!(rig.blocks(), 2);
    rig.free(full);
    held.push(rig.get(20 * MIB, 16));
    rig.free(other);
    let source = held[0].live();
    assert_ne!(source.shard, 0);
    for _ in 0..2 {
        rig.vector.map(&rig.context, source).unwrap();
    }
    let users = || {
        let core = rig.vector.core.lock();
        let blocks = core.active.as_ref().unwrap().blocks.iter().flatten();
        blocks.map(|block| block.map_count).sum::<u64>()
    };
    let mut compaction = rig.begin(Effort::Full);
    for planned in rig.plan(&mut compaction) {
        let is_it = planned.source.key == source.key && planned.source.shard == source.shard;
        let guards = if is_it { 2 } else { 0 };
        let (grant, _) = rig.vector.complete(&rig.context, &planned, false, guards).unwrap();
        held.iter_mut().find(|held| is(held, planned.source)).unwrap().grant = grant;
    }
    assert_eq!((users(), rig.blocks()), (2, 1));
    assert_eq!(held[0].grant.shard, 0, "it was moved");
    for _ in 0..2 {
        rig.vector.unmap(held[0].live()).unwrap();
    }
    assert_eq!(users(), 0);
    rig.vector.end_compaction(&compaction);
    rig.free_all(held);
    rig.finish();
}

/// A key of a shard may equal a key of the core.
#[test]
fn a_source_is_of_its_shard() {
    let rig = Rig::new(VectorConfig { empty_blocks_kept: 0, ..config() });
    let full = rig.get(31 * MIB, 16);
    let mut held = Vec::new();
    for thread in 1..4 {
        rig.settle(thread);
        held.push(rig.allocate(&buffer(64 * KIB)).unwrap());
    }
    rig.thread(0);
    let mut compaction = rig.begin(Effort::Fast);
    rig.free(full);
    held.push(rig.get(20 * MIB, 16));
    for planned in rig.plan(&mut compaction) {
        assert_eq!(held.iter().filter(|held| is(held, planned.source)).count(), 1);
        let wrong = Live { shard: planned.source.shard % 3 + 1, ..planned.source };
        assert_eq!(held.iter().filter(|held| is(held, wrong)).count(), 0);
        let _ = rig.complete(&planned, &mut held);
    }
    rig.check();
    rig.vector.end_compaction(&compaction);
    rig.free_all(held);
    rig.finish();
}

/// Threads allocate and free for themselves and for others, while one thread defragments.
#[test]
fn threads_go_on_meanwhile() {
    let rig = Rig::new(VectorConfig { block_size: 16 * MIB, empty_blocks_kept: 1, ..config() });
    let rounds = cases(256);
    let mut own: Vec<Held> = (0..300).map(|_| rig.allocate(&buffer(200 * KIB)).unwrap()).collect();
    own = rig.thin_out(own, |at| at % 4 == 0);
    let done = AtomicBool::new(false);
    let moved = std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (rig, done) = (&rig, &done);
            scope.spawn(move || {
                rig.settle(u32::try_from(thread).unwrap() + 1);
                let mut random = Random::new(thread + 1);
                let mut held = Vec::new();
                while !done.load(Ordering::Relaxed) {
                    if held.len() < 40 || random.one_in(2) && held.len() < 120 {
                        let mapped = random.one_in(4);
                        held.push(
                            rig.allocate(&VectorRequest { mapped, ..buffer(random.size(18)) }).unwrap(),
                        );
                    } else {
                        rig.free(held.swap_remove(random.place(held.len())));
                    }
                }
                rig.free_all(held);
            });
        }
        thread_token::pose_as(0);
        let mut random = Random::new(9);
        let mut moved = 0;
        for round in 0..rounds {
            let effort = EFFORTS[index(narrow_round(round) % 4)];
            let mut compaction = rig.begin(effort);
            for _ in 0..4 {
                let planned = rig.plan_within(&mut compaction, 4 * MIB, 0, None, &mut || false);
                for planned in &planned {
                    // Moves of other threads' allocations are rolled back.
                    let mine = own.iter().any(|held| is(held, planned.source));
                    if mine && !random.one_in(8) {
                        let _ = rig.complete(planned, &mut own);
                        moved += 1;
                    } else {
                        let _ = rig.roll_back(planned);
                    }
                }
                let _ = rig.vector.tidy(&rig.context, &compaction);
            }
            rig.vector.end_compaction(&compaction);
            rig.vector.validate();
            let at = random.place(own.len());
            rig.free(own.swap_remove(at));
            own.push(rig.allocate(&buffer(200 * KIB)).unwrap());
        }
        done.store(true, Ordering::Relaxed);
        moved
    });
    assert!(moved > 20, "{moved}");
    rig.check();
    rig.free_all(own);
    rig.finish();
}

fn narrow_round(round: u64) -> u32 {
    u32::try_from(round % 4).unwrap()
}
