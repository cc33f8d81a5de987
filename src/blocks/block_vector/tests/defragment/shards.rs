//! Defragmentation of allocations in shards.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// Allocations in leased ranges move to the core. The ranges and their blocks return.
#[test]
fn allocations_leave_their_leases() {
    for effort in EFFORTS {
        let fixture = Fixture::new(VectorConfig { empty_blocks_kept: 0, ..config() });
        let mut held = vec![fixture.get(12 * MIB, 16)];
        for thread in 1..4 {
            fixture.attach(thread);
            for at in 0..120 {
                held.push(
                    fixture.allocate(&VectorRequest { mapped: at % 3 == 0, ..buffer(100 * KIB) }).unwrap(),
                );
            }
        }
        fixture.thread(9);
        let mut held = fixture.thin_out(held, |at| at % 15 == 0);
        fixture.vector.set_name(held[1].live(), Some("moved")).unwrap();
        assert!(held[1..].iter().all(|held| held.grant.shard != 0));
        fixture.check();
        let (before, blocks) = (fixture.leased(), fixture.blocks());
        assert!(before.0 > 3 && blocks > 1);
        let (emptied, _, _) = fixture.compact(effort, &mut held);
        assert_eq!((emptied.blocks, fixture.blocks()), (blocks - 1, 1), "{effort:?}");
        assert!(fixture.leased().0 < before.0, "leases came back");
        let out = held.iter().filter(|held| held.grant.shard == 0).count();
        assert!(out > 5, "{out}");
        assert_eq!(fixture.vector.name(held[1].live()).unwrap().as_deref(), Some("moved"));
        for held in held.iter().filter(|held| held.request.mapped) {
            let base = fixture.vector.map(&fixture.context, held.live()).unwrap();
            fixture.vector.unmap(held.live()).unwrap();
            assert_eq!(held.grant.mapped, base.at(held.grant.offset));
        }
        fixture.free_all(held);
        fixture.finish();
    }
}

/// Guards on an allocation in a leased range move along, and leave its block.
#[test]
fn guards_leave_their_leases() {
    let fixture = Fixture::new(VectorConfig { empty_blocks_kept: 0, ..config() });
    let full = fixture.get(31 * MIB, 16);
    fixture.attach(1);
    let mut held = vec![fixture.get(64 * KIB, 16), fixture.get(64 * KIB, 16)];
    fixture.thread(0);
    let other = fixture.get(30 * MIB, 16);
    assert_eq!(fixture.blocks(), 2);
    fixture.free(full);
    held.push(fixture.get(20 * MIB, 16));
    fixture.free(other);
    let source = held[0].live();
    assert_ne!(source.shard, 0);
    for _ in 0..2 {
        fixture.vector.map(&fixture.context, source).unwrap();
    }
    let users = || {
        let core = fixture.vector.core.lock();
        let blocks = core.active.as_ref().unwrap().blocks.iter().flatten();
        blocks.map(|block| block.map_count).sum::<u64>()
    };
    let mut compaction = fixture.begin(Effort::Full);
    for planned in fixture.plan(&mut compaction) {
        let is_it = planned.source.key == source.key && planned.source.shard == source.shard;
        let guards = if is_it { 2 } else { 0 };
        let (grant, _) = fixture.vector.complete(&fixture.context, &planned, false, guards).unwrap();
        held.iter_mut().find(|held| is(held, planned.source)).unwrap().grant = grant;
    }
    assert_eq!((users(), fixture.blocks()), (2, 1));
    assert_eq!(held[0].grant.shard, 0, "it was moved");
    for _ in 0..2 {
        fixture.vector.unmap(held[0].live()).unwrap();
    }
    assert_eq!(users(), 0);
    fixture.vector.end_compaction(&compaction);
    fixture.free_all(held);
    fixture.finish();
}

/// A key of a shard may equal a key of the core.
#[test]
fn a_source_is_of_its_shard() {
    let fixture = Fixture::new(VectorConfig { empty_blocks_kept: 0, ..config() });
    let full = fixture.get(31 * MIB, 16);
    let mut held = Vec::new();
    for thread in 1..4 {
        fixture.attach(thread);
        held.push(fixture.allocate(&buffer(64 * KIB)).unwrap());
    }
    fixture.thread(0);
    let mut compaction = fixture.begin(Effort::Fast);
    fixture.free(full);
    held.push(fixture.get(20 * MIB, 16));
    for planned in fixture.plan(&mut compaction) {
        assert_eq!(held.iter().filter(|held| is(held, planned.source)).count(), 1);
        let wrong = AllocationKey { shard: planned.source.shard % 3 + 1, ..planned.source };
        assert_eq!(held.iter().filter(|held| is(held, wrong)).count(), 0);
        let _ = fixture.complete(&planned, &mut held);
    }
    fixture.check();
    fixture.vector.end_compaction(&compaction);
    fixture.free_all(held);
    fixture.finish();
}

/// Threads allocate and free for themselves and for others, while one thread defragments.
#[test]
fn threads_go_on_meanwhile() {
    let fixture = Fixture::new(VectorConfig { block_size: 16 * MIB, empty_blocks_kept: 1, ..config() });
    let rounds = cases(256);
    let mut own: Vec<Held> = (0..300).map(|_| fixture.allocate(&buffer(200 * KIB)).unwrap()).collect();
    own = fixture.thin_out(own, |at| at % 4 == 0);
    let done = AtomicBool::new(false);
    let moved = std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (fixture, done) = (&fixture, &done);
            scope.spawn(move || {
                fixture.attach(u32::try_from(thread).unwrap() + 1);
                let mut random = Random::new(thread + 1);
                let mut held = Vec::new();
                while !done.load(Ordering::Relaxed) {
                    if held.len() < 40 || random.one_in(2) && held.len() < 120 {
                        let mapped = random.one_in(4);
                        held.push(
                            fixture.allocate(&VectorRequest { mapped, ..buffer(random.size(18)) }).unwrap(),
                        );
                    } else {
                        fixture.free(held.swap_remove(random.place(held.len())));
                    }
                }
                fixture.free_all(held);
            });
        }
        thread_token::pose_as(0);
        let mut random = Random::new(9);
        let mut moved = 0;
        for round in 0..rounds {
            let effort = EFFORTS[index(narrow_round(round) % 4)];
            let mut compaction = fixture.begin(effort);
            for _ in 0..4 {
                let planned = fixture.plan_within(&mut compaction, 4 * MIB, 0, None, &mut || false);
                for planned in &planned {
                    // Moves of other threads' allocations are rolled back.
                    let mine = own.iter().any(|held| is(held, planned.source));
                    if mine && !random.one_in(8) {
                        let _ = fixture.complete(planned, &mut own);
                        moved += 1;
                    } else {
                        let _ = fixture.roll_back(planned);
                    }
                }
                let _ = fixture.vector.tidy(&fixture.context, &compaction);
            }
            fixture.vector.end_compaction(&compaction);
            fixture.vector.validate();
            let at = random.place(own.len());
            fixture.free(own.swap_remove(at));
            own.push(fixture.allocate(&buffer(200 * KIB)).unwrap());
        }
        done.store(true, Ordering::Relaxed);
        moved
    });
    assert!(moved > 20, "{moved}");
    fixture.check();
    fixture.free_all(own);
    fixture.finish();
}

fn narrow_round(round: u64) -> u32 {
    u32::try_from(round % 4).unwrap()
}
