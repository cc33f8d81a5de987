//! The outcomes of a move.

use super::*;

/// Two blocks, the second with a third of the allocations.
fn two_blocks() -> (Rig, Vec<Held>) {
    let rig = Rig::new(small_blocks());
    let held = rig.thin_out(rig.fill(2, 64 * KIB), |at| at % 4 == 0 || at < 8);
    (rig, held)
}

#[test]
fn a_move_that_rolls_back_leaves_no_trace() {
    let (rig, held) = two_blocks();
    rig.vector.set_name(held[1].live(), Some("one")).unwrap();
    let before = rig.walk();
    for effort in EFFORTS {
        let mut compaction = rig.begin(effort);
        let planned = rig.plan(&mut compaction);
        assert!(!planned.is_empty());
        assert_eq!(rig.vector.totals().allocation_count, widen(held.len() + planned.len()));
        rig.check();
        planned.iter().for_each(|planned| assert_eq!(rig.roll_back(planned), Emptied::default()));
        assert_eq!(rig.walk(), before);
        rig.vector.end_compaction(&compaction);
    }
    rig.free_all(held);
    rig.finish();
}

#[test]
fn names_move_along() {
    let (rig, mut held) = two_blocks();
    for (at, held) in held.iter().enumerate() {
        rig.vector.set_name(held.live(), Some(&at.to_string())).unwrap();
    }
    let mut compaction = rig.begin(Effort::Full);
    let planned = rig.plan(&mut compaction);
    for planned in &planned {
        let at = held.iter().position(|held| is(held, planned.source)).unwrap();
        assert_eq!(planned.annotation.name.as_deref(), Some(at.to_string().as_str()));
        let _ = rig.complete(planned, &mut held);
    }
    for (at, held) in held.iter().enumerate() {
        assert_eq!(rig.vector.name(held.live()).unwrap().as_deref(), Some(at.to_string().as_str()));
    }
    rig.check();
    rig.vector.end_compaction(&compaction);
    rig.free_all(held);
    rig.finish();
}

/// The owner may free the source: its move can then only be rolled back, which frees nothing else.
#[test]
fn a_source_that_was_freed_is_no_danger() {
    let (rig, mut held) = two_blocks();
    let mut compaction = rig.begin(Effort::Fast);
    let planned = rig.plan(&mut compaction);
    let at = held.iter().position(|held| is(held, planned[0].source)).unwrap();
    rig.free(held.swap_remove(at));
    // Another allocation may take its place.
    held.push(rig.get(64 * KIB, 16));
    let stale = rig.vector.complete(&rig.context, &planned[0], false, 0);
    assert!(matches!(stale, Err(MapError::Foreign(_))));
    assert!(rig.vector.free_moved(&rig.context, planned[0].source, false, 0).is_err());
    rig.vector.let_stay(planned[0].source);
    rig.check();
    let _ = rig.roll_back(&planned[0]);
    rig.complete_all(&planned[1..], &mut held);
    rig.check();
    rig.vector.end_compaction(&compaction);
    rig.free_all(held);
    rig.finish();
}

/// All sources are freed, and their blocks too, before any move is completed.
#[test]
fn all_sources_may_go() {
    let (rig, held) = two_blocks();
    let mut compaction = rig.begin(Effort::Fast);
    let planned = rig.plan(&mut compaction);
    rig.free_all(held);
    assert_eq!(rig.blocks(), 1, "destinations hold their block");
    rig.check();
    let mut emptied = Emptied::default();
    planned.iter().for_each(|planned| emptied.add(rig.roll_back(planned)));
    assert_eq!((emptied.blocks, rig.blocks()), (1, 0));
    rig.vector.end_compaction(&compaction);
    rig.finish();
}

#[test]
fn both_places_are_freed() {
    let (rig, mut held) = two_blocks();
    let mut compaction = rig.begin(Effort::Fast);
    let mut emptied = Emptied::default();
    for planned in rig.plan(&mut compaction) {
        let at = held.iter().position(|held| is(held, planned.source)).unwrap();
        held.swap_remove(at);
        emptied.add(rig.vector.free_moved(&rig.context, planned.source, false, 0).unwrap());
        emptied.add(rig.roll_back(&planned));
    }
    assert_eq!(emptied, Emptied { blocks: 1, bytes: MIB });
    assert_eq!(rig.vector.totals().allocation_count, widen(held.len()));
    rig.vector.end_compaction(&compaction);
    rig.free_all(held);
    rig.finish();
}

/// Nothing is moved out of a block marked to stay, until the next context. Moves into it are allowed.
#[test]
fn a_block_may_stay() {
    for effort in EFFORTS {
        let (rig, mut held) = two_blocks();
        let mut compaction = rig.begin(effort);
        let planned = rig.plan(&mut compaction);
        let source = planned[0].source;
        let stays = held.iter().find(|held| is(held, source)).unwrap().grant.memory;
        rig.vector.let_stay(source);
        rig.roll_back_all(&planned);
        let planned = rig.plan(&mut compaction);
        for planned in &planned {
            let source = held.iter().find(|held| is(held, planned.source)).unwrap();
            assert_ne!(source.grant.memory, stays, "{effort:?}");
        }
        let mut emptied = Emptied::default();
        planned.iter().for_each(|planned| emptied.add(rig.complete(planned, &mut held)));
        assert_eq!(emptied.blocks, 1, "{effort:?}: the other becomes empty");
        rig.vector.end_compaction(&compaction);
        assert!(held.iter().all(|held| held.grant.memory == stays));
        let mut compaction = rig.begin(Effort::Full);
        let planned = rig.plan(&mut compaction);
        rig.roll_back_all(&planned);
        rig.vector.end_compaction(&compaction);
        rig.free_all(held);
        rig.finish();
    }
}

#[test]
fn a_context_that_ends_forgets_what_was_to_stay() {
    let (rig, held) = two_blocks();
    for _ in 0..4 {
        let mut compaction = rig.begin(Effort::Fast);
        let planned = rig.plan(&mut compaction);
        assert!(!planned.is_empty());
        rig.vector.let_stay(planned[0].source);
        rig.roll_back_all(&planned);
        rig.vector.end_compaction(&compaction);
    }
    rig.free_all(held);
    rig.finish();
}

#[test]
fn one_context_at_a_time() {
    let (rig, held) = two_blocks();
    let first = rig.begin(Effort::Fast);
    let second = rig.vector.begin_compaction(&rig.context, None, Effort::Fast);
    assert_eq!(second.unwrap_err(), BeginError::InProgress);
    rig.vector.end_compaction(&first);
    rig.vector.end_compaction(&rig.begin(Effort::Fast));
    let old = rig.vector.begin_compaction(&rig.context, Some(rig.generation.wrapping_sub(1)), Effort::Fast);
    assert_eq!(old.unwrap_err(), BeginError::Gone);
    rig.free_all(held);
    rig.finish();
}

/// The vector is deactivated and reused during a pass.
#[test]
fn a_context_of_an_earlier_use_does_nothing() {
    let (rig, _) = two_blocks();
    let mut old = rig.begin(Effort::Full);
    let planned = rig.plan(&mut old);
    rig.vector.deactivate(&rig.context, &mut |_| {});
    let generation = rig.vector.activate(&rig.context, rig.config, None).unwrap();
    let rig = Rig { generation, ..rig };
    let held = vec![rig.get(100, 16)];
    let now = rig.begin(Effort::Full);
    for planned in &planned {
        assert!(rig.vector.complete(&rig.context, planned, true, 0).is_err());
        rig.vector.let_stay(planned.source);
        assert_eq!(rig.roll_back(planned), Emptied::default());
    }
    assert!(rig.plan(&mut old).is_empty());
    assert_eq!(rig.vector.tidy(&rig.context, &old), Emptied::default());
    rig.vector.end_compaction(&old);
    let another = rig.vector.begin_compaction(&rig.context, None, Effort::Fast);
    assert_eq!(another.unwrap_err(), BeginError::InProgress, "the old one did not end the new one");
    rig.check();
    rig.vector.end_compaction(&now);
    rig.free_all(held);
    rig.finish();
}

/// A destination that was taken between snapshot and move is abandoned.
#[test]
fn a_place_that_was_taken_is_given_up() {
    let (rig, mut held) = two_blocks();
    let mut compaction = rig.begin(Effort::Fast);
    let mut taken = Vec::new();
    let mut stop = || {
        taken.push(rig.get(64 * KIB, 16));
        false
    };
    let planned = rig.plan_within(&mut compaction, 0, 0, None, &mut stop);
    held.append(&mut taken);
    rig.check();
    rig.complete_all(&planned, &mut held);
    rig.check();
    rig.vector.end_compaction(&compaction);
    rig.free_all(held);
    rig.finish();
}

/// A fuller block that became empty between snapshot and move is not filled again.
#[test]
fn a_block_that_became_empty_stays_empty() {
    let rig = Rig::new(VectorConfig { empty_blocks_kept: 1, ..small_blocks() });
    let mut held = rig.thin_out(rig.fill(2, 64 * KIB), |at| at % 4 == 1 || (1..9).contains(&at));
    let fuller = held[0].grant.memory;
    let mut gone = Vec::new();
    let mut rest = Vec::new();
    for held in held.drain(..) {
        if held.grant.memory == fuller { gone.push(held) } else { rest.push(held) }
    }
    let mut compaction = rig.begin(Effort::Fast);
    let mut stop = || {
        rig.free_all(gone.drain(..));
        false
    };
    assert!(rig.plan_within(&mut compaction, 0, 0, None, &mut stop).is_empty());
    rig.check();
    rig.vector.end_compaction(&compaction);
    rig.free_all(rest);
    rig.finish();
}

/// A block marked to stay gets no moves within it, and none out of it even if it is the only candidate.
#[test]
fn a_block_that_stays_is_left_alone() {
    let rig = Rig::new(small_blocks());
    let held = rig.thin_out(rig.fill(1, 64 * KIB), |at| at % 2 == 1);
    let mut compaction = rig.begin(Effort::Full);
    let planned = rig.plan(&mut compaction);
    assert!(!planned.is_empty());
    rig.vector.let_stay(held[0].live());
    rig.roll_back_all(&planned);
    assert!(rig.plan(&mut compaction).is_empty());
    rig.vector.end_compaction(&compaction);
    rig.free_all(held);
    rig.finish();

    let rig = Rig::new(small_blocks());
    let held: Vec<_> = [600, 424, 462, 100, 462].iter().map(|size| rig.get(size * KIB, 16)).collect();
    let held = rig.thin_out(held, |at| at == 0 || at == 3);
    assert_eq!(rig.blocks(), 2);
    let mut compaction = rig.begin(Effort::Fast);
    let planned = rig.plan(&mut compaction);
    assert_eq!(planned.len(), 1);
    rig.vector.let_stay(held[1].live());
    rig.roll_back_all(&planned);
    assert!(rig.plan(&mut compaction).is_empty(), "the other is too large");
    rig.vector.end_compaction(&compaction);
    rig.free_all(held);
    rig.finish();
}

/// The user count of each block's mapping.
fn users(rig: &Rig) -> Vec<u64> {
    let core = rig.vector.core.lock();
    core.active.as_ref().unwrap().blocks.iter().flatten().map(|block| block.map_count).collect()
}

/// Persistently mapped allocations are mapped and counted at their new place.
#[test]
fn mappings_move_along() {
    for roll_back in [false, true] {
        let rig = Rig::new(VectorConfig { empty_blocks_kept: 1, ..small_blocks() });
        let mut held = Vec::new();
        for at in 0..32 {
            held.push(rig.allocate(&VectorRequest { mapped: at % 2 == 0, ..buffer(64 * KIB) }).unwrap());
        }
        let mut held = rig.thin_out(held, |at| !(6..28).contains(&at));
        assert_eq!(users(&rig), [3, 2]);
        let mut compaction = rig.begin(Effort::Fast);
        let planned = rig.plan(&mut compaction);
        assert_eq!(planned.len(), 4);
        assert_eq!(users(&rig), [7, 2], "a destination is a user");
        let mut halfway = vec![];
        for (at, planned) in planned.iter().enumerate() {
            if at == 2 {
                halfway = users(&rig);
            }
            let base = rig.vector.map(&rig.context, planned.destination()).unwrap();
            rig.vector.unmap(planned.destination()).unwrap();
            assert_eq!(planned.mapped, base.at(planned.offset));
            if roll_back {
                let _ = rig.roll_back(planned);
            } else {
                let _ = rig.complete(planned, &mut held);
            }
        }
        assert_eq!(users(&rig), if roll_back { [3, 2] } else { [5, 0] });
        assert_eq!(halfway, if roll_back { [5, 2] } else { [6, 1] });
        for held in &held {
            assert_eq!(held.grant.mapped.is_mapped(), held.request.mapped);
            if held.request.mapped {
                let base = rig.vector.map(&rig.context, held.live()).unwrap();
                rig.vector.unmap(held.live()).unwrap();
                assert_eq!(held.grant.mapped, base.at(held.grant.offset));
            }
        }
        rig.vector.end_compaction(&compaction);
        rig.free_all(held);
        assert!(users(&rig).iter().all(|&users| users == 0));
        rig.finish();
    }
}

/// Moved guards are counted, even if the destination was not mapped when the move was planned.
#[test]
fn guards_move_along() {
    let (rig, mut held) = two_blocks();
    let mut compaction = rig.begin(Effort::Fast);
    let planned = rig.plan(&mut compaction);
    let source = planned[0].source;
    for _ in 0..3 {
        rig.vector.map(&rig.context, source).unwrap();
    }
    let before = users(&rig);
    assert_eq!(before.iter().sum::<u64>(), 3);
    let (grant, _) = rig.vector.complete(&rig.context, &planned[0], false, 3).unwrap();
    let moved = held.iter_mut().find(|held| is(held, source)).unwrap();
    moved.grant = grant;
    assert_eq!(users(&rig).iter().sum::<u64>(), 3);
    assert_ne!(users(&rig), before, "in another block");
    for _ in 0..3 {
        rig.vector.unmap(moved.live()).unwrap();
    }
    assert!(rig.vector.unmap(moved.live()).is_err());
    rig.complete_all(&planned[1..], &mut held);
    rig.vector.end_compaction(&compaction);
    rig.free_all(held);
    rig.finish();
}

/// If the destination cannot be mapped, nothing changes, and the move may be retried.
#[test]
fn a_mapping_that_fails_changes_nothing() {
    let (rig, mut held) = two_blocks();
    let mut compaction = rig.begin(Effort::Fast);
    let planned = rig.plan(&mut compaction);
    rig.gpu.faults().fail_always("vkMapMemory", ash::vk::Result::ERROR_MEMORY_MAP_FAILED);
    let before = (rig.walk(), users(&rig));
    let failed = rig.vector.complete(&rig.context, &planned[0], true, 0);
    assert!(matches!(failed, Err(MapError::Driver(_))));
    assert_eq!((rig.walk(), users(&rig)), before);
    rig.gpu.faults().clear();
    rig.complete_all(&planned, &mut held);
    rig.check();
    rig.vector.end_compaction(&compaction);
    rig.free_all(held);
    rig.finish();
}
