//! The outcomes of a move.

use super::*;

/// Two blocks: the first with ten allocations, the second with four.
fn two_blocks() -> (Fixture, Vec<Held>) {
    let fixture = Fixture::new(small_blocks());
    let held = fixture.thin_out(fixture.fill(2, 64 * KIB), |at| at % 4 == 0 || at < 8);
    (fixture, held)
}

#[test]
fn a_move_that_rolls_back_leaves_no_trace() {
    let (fixture, held) = two_blocks();
    fixture.vector.set_name(held[1].live(), Some("one")).unwrap();
    let before = fixture.walk();
    for effort in EFFORTS {
        let mut compaction = fixture.begin(effort);
        let planned = fixture.plan(&mut compaction);
        assert!(!planned.is_empty());
        assert_eq!(fixture.vector.totals().allocation_count, widen(held.len() + planned.len()));
        fixture.check();
        planned.iter().for_each(|planned| assert_eq!(fixture.roll_back(planned), Emptied::default()));
        assert_eq!(fixture.walk(), before);
        fixture.vector.end_compaction(&compaction);
    }
    fixture.free_all(held);
    fixture.finish();
}

/// The owner may free the source: its move can then only be rolled back, which frees nothing else.
#[test]
fn a_source_that_was_freed_is_no_danger() {
    let (fixture, mut held) = two_blocks();
    let mut compaction = fixture.begin(Effort::Fast);
    let planned = fixture.plan(&mut compaction);
    let at = held.iter().position(|held| is(held, planned[0].source)).unwrap();
    fixture.free(held.swap_remove(at));
    // Another allocation may take its place.
    held.push(fixture.get(64 * KIB, 16));
    let stale = fixture.vector.complete(&fixture.context, &planned[0], false, 0);
    assert!(matches!(stale, Err(MapError::Foreign(_))));
    assert!(fixture.vector.free_moved(&fixture.context, planned[0].source, false, 0).is_err());
    fixture.vector.let_stay(planned[0].source);
    fixture.check();
    let _ = fixture.roll_back(&planned[0]);
    fixture.complete_all(&planned[1..], &mut held);
    fixture.check();
    fixture.vector.end_compaction(&compaction);
    fixture.free_all(held);
    fixture.finish();
}

/// All sources are freed, and their blocks too, before any move is completed.
#[test]
fn all_sources_may_go() {
    let (fixture, held) = two_blocks();
    let mut compaction = fixture.begin(Effort::Fast);
    let planned = fixture.plan(&mut compaction);
    fixture.free_all(held);
    assert_eq!(fixture.blocks(), 1, "destinations hold their block");
    fixture.check();
    let mut emptied = Emptied::default();
    planned.iter().for_each(|planned| emptied.add(fixture.roll_back(planned)));
    assert_eq!((emptied.blocks, fixture.blocks()), (1, 0));
    fixture.vector.end_compaction(&compaction);
    fixture.finish();
}

#[test]
fn both_places_are_freed() {
    let (fixture, mut held) = two_blocks();
    let mut compaction = fixture.begin(Effort::Fast);
    let mut emptied = Emptied::default();
    for planned in fixture.plan(&mut compaction) {
        let at = held.iter().position(|held| is(held, planned.source)).unwrap();
        held.swap_remove(at);
        emptied.add(fixture.vector.free_moved(&fixture.context, planned.source, false, 0).unwrap());
        emptied.add(fixture.roll_back(&planned));
    }
    assert_eq!(emptied, Emptied { blocks: 1, bytes: MIB });
    assert_eq!(fixture.vector.totals().allocation_count, widen(held.len()));
    fixture.vector.end_compaction(&compaction);
    fixture.free_all(held);
    fixture.finish();
}

/// Nothing is moved out of a block marked to stay, until the next context. Moves into it are allowed.
#[test]
fn a_block_may_stay() {
    for effort in EFFORTS {
        let (fixture, mut held) = two_blocks();
        let mut compaction = fixture.begin(effort);
        let planned = fixture.plan(&mut compaction);
        let source = planned[0].source;
        let stays = held.iter().find(|held| is(held, source)).unwrap().grant.memory;
        fixture.vector.let_stay(source);
        fixture.roll_back_all(&planned);
        let planned = fixture.plan(&mut compaction);
        for planned in &planned {
            let source = held.iter().find(|held| is(held, planned.source)).unwrap();
            assert_ne!(source.grant.memory, stays, "{effort:?}");
        }
        let mut emptied = Emptied::default();
        planned.iter().for_each(|planned| emptied.add(fixture.complete(planned, &mut held)));
        assert_eq!(emptied.blocks, 1, "{effort:?}: the other becomes empty");
        fixture.vector.end_compaction(&compaction);
        assert!(held.iter().all(|held| held.grant.memory == stays));
        let mut compaction = fixture.begin(Effort::Full);
        let planned = fixture.plan(&mut compaction);
        fixture.roll_back_all(&planned);
        fixture.vector.end_compaction(&compaction);
        fixture.free_all(held);
        fixture.finish();
    }
}

#[test]
fn a_context_that_ends_forgets_what_was_to_stay() {
    let (fixture, held) = two_blocks();
    for _ in 0..4 {
        let mut compaction = fixture.begin(Effort::Fast);
        let planned = fixture.plan(&mut compaction);
        assert!(!planned.is_empty());
        fixture.vector.let_stay(planned[0].source);
        fixture.roll_back_all(&planned);
        fixture.vector.end_compaction(&compaction);
    }
    fixture.free_all(held);
    fixture.finish();
}

#[test]
fn one_context_at_a_time() {
    let (fixture, held) = two_blocks();
    let first = fixture.begin(Effort::Fast);
    let second = fixture.vector.begin_compaction(&fixture.context, None, Effort::Fast);
    assert_eq!(second.unwrap_err(), BeginVectorError::InProgress);
    fixture.vector.end_compaction(&first);
    fixture.vector.end_compaction(&fixture.begin(Effort::Fast));
    let old = fixture.vector.begin_compaction(
        &fixture.context,
        Some(fixture.generation.wrapping_sub(1)),
        Effort::Fast,
    );
    assert_eq!(old.unwrap_err(), BeginVectorError::Gone);
    fixture.free_all(held);
    fixture.finish();
}

/// The vector is deactivated and reused during a pass.
#[test]
fn a_context_of_an_earlier_use_does_nothing() {
    let (fixture, _) = two_blocks();
    let mut old = fixture.begin(Effort::Full);
    let planned = fixture.plan(&mut old);
    fixture.vector.deactivate(&fixture.context, &mut |_| {});
    let generation = fixture.vector.activate(&fixture.context, fixture.config, None).unwrap();
    let fixture = Fixture { generation, ..fixture };
    let held = vec![fixture.get(100, 16)];
    let now = fixture.begin(Effort::Full);
    for planned in &planned {
        assert!(fixture.vector.complete(&fixture.context, planned, true, 0).is_err());
        fixture.vector.let_stay(planned.source);
        assert_eq!(fixture.roll_back(planned), Emptied::default());
    }
    assert!(fixture.plan(&mut old).is_empty());
    assert_eq!(fixture.vector.tidy(&fixture.context, &old), Emptied::default());
    fixture.vector.end_compaction(&old);
    let another = fixture.vector.begin_compaction(&fixture.context, None, Effort::Fast);
    assert_eq!(another.unwrap_err(), BeginVectorError::InProgress, "the old one did not end the new one");
    fixture.check();
    fixture.vector.end_compaction(&now);
    fixture.free_all(held);
    fixture.finish();
}

/// A destination that was taken between snapshot and move is abandoned.
#[test]
fn a_place_that_was_taken_is_given_up() {
    let (fixture, mut held) = two_blocks();
    let mut compaction = fixture.begin(Effort::Fast);
    let mut taken = Vec::new();
    let mut stop = || {
        taken.push(fixture.get(64 * KIB, 16));
        false
    };
    let planned = fixture.plan_within(&mut compaction, 0, 0, None, &mut stop);
    held.append(&mut taken);
    fixture.check();
    fixture.complete_all(&planned, &mut held);
    fixture.check();
    fixture.vector.end_compaction(&compaction);
    fixture.free_all(held);
    fixture.finish();
}

/// A fuller block that became empty between snapshot and move is not filled again.
#[test]
fn a_block_that_became_empty_stays_empty() {
    let fixture = Fixture::new(VectorConfig { empty_blocks_kept: 1, ..small_blocks() });
    let mut held = fixture.thin_out(fixture.fill(2, 64 * KIB), |at| at % 4 == 1 || (1..9).contains(&at));
    let fuller = held[0].grant.memory;
    let mut gone = Vec::new();
    let mut rest = Vec::new();
    for held in held.drain(..) {
        if held.grant.memory == fuller { gone.push(held) } else { rest.push(held) }
    }
    let mut compaction = fixture.begin(Effort::Fast);
    let mut stop = || {
        fixture.free_all(gone.drain(..));
        false
    };
    assert!(fixture.plan_within(&mut compaction, 0, 0, None, &mut stop).is_empty());
    fixture.check();
    fixture.vector.end_compaction(&compaction);
    fixture.free_all(rest);
    fixture.finish();
}

/// A block marked to stay gets no moves within it, and none out of it even if it is the only candidate.
#[test]
fn a_block_that_stays_is_left_alone() {
    let fixture = Fixture::new(small_blocks());
    let held = fixture.thin_out(fixture.fill(1, 64 * KIB), |at| at % 2 == 1);
    let mut compaction = fixture.begin(Effort::Full);
    let planned = fixture.plan(&mut compaction);
    assert!(!planned.is_empty());
    fixture.vector.let_stay(held[0].live());
    fixture.roll_back_all(&planned);
    assert!(fixture.plan(&mut compaction).is_empty());
    fixture.vector.end_compaction(&compaction);
    fixture.free_all(held);
    fixture.finish();

    let fixture = Fixture::new(small_blocks());
    let held: Vec<_> = [600, 424, 462, 100, 462].iter().map(|size| fixture.get(size * KIB, 16)).collect();
    let held = fixture.thin_out(held, |at| at == 0 || at == 3);
    assert_eq!(fixture.blocks(), 2);
    let mut compaction = fixture.begin(Effort::Fast);
    let planned = fixture.plan(&mut compaction);
    assert_eq!(planned.len(), 1);
    fixture.vector.let_stay(held[1].live());
    fixture.roll_back_all(&planned);
    assert!(fixture.plan(&mut compaction).is_empty(), "the other is too large");
    fixture.vector.end_compaction(&compaction);
    fixture.free_all(held);
    fixture.finish();
}

/// The user count of each block's mapping.
fn users(fixture: &Fixture) -> Vec<u64> {
    let core = fixture.vector.core.lock();
    core.active.as_ref().unwrap().blocks.iter().flatten().map(|block| block.map_count).collect()
}

/// Persistently mapped allocations are mapped and counted at their new place.
#[test]
fn mappings_move_along() {
    for roll_back in [false, true] {
        let fixture = Fixture::new(VectorConfig { empty_blocks_kept: 1, ..small_blocks() });
        let mut held = Vec::new();
        for at in 0..32 {
            held.push(fixture.allocate(&VectorRequest { mapped: at % 2 == 0, ..buffer(64 * KIB) }).unwrap());
        }
        let mut held = fixture.thin_out(held, |at| !(6..28).contains(&at));
        assert_eq!(users(&fixture), [3, 2]);
        let mut compaction = fixture.begin(Effort::Fast);
        let planned = fixture.plan(&mut compaction);
        assert_eq!(planned.len(), 4);
        assert_eq!(users(&fixture), [7, 2], "a destination is a user");
        let mut halfway = vec![];
        for (at, planned) in planned.iter().enumerate() {
            if at == 2 {
                halfway = users(&fixture);
            }
            let base = fixture.vector.map(&fixture.context, planned.destination()).unwrap();
            fixture.vector.unmap(planned.destination()).unwrap();
            assert_eq!(planned.mapped, base.at(planned.offset));
            if roll_back {
                let _ = fixture.roll_back(planned);
            } else {
                let _ = fixture.complete(planned, &mut held);
            }
        }
        assert_eq!(users(&fixture), if roll_back { [3, 2] } else { [5, 0] });
        assert_eq!(halfway, if roll_back { [5, 2] } else { [6, 1] });
        for held in &held {
            assert_eq!(held.grant.mapped.is_mapped(), held.request.mapped);
            if held.request.mapped {
                let base = fixture.vector.map(&fixture.context, held.live()).unwrap();
                fixture.vector.unmap(held.live()).unwrap();
                assert_eq!(held.grant.mapped, base.at(held.grant.offset));
            }
        }
        fixture.vector.end_compaction(&compaction);
        fixture.free_all(held);
        assert!(users(&fixture).iter().all(|&users| users == 0));
        fixture.finish();
    }
}

/// Moved guards are counted, even if the destination was not mapped when the move was planned.
#[test]
fn guards_move_along() {
    let (fixture, mut held) = two_blocks();
    let mut compaction = fixture.begin(Effort::Fast);
    let planned = fixture.plan(&mut compaction);
    let source = planned[0].source;
    for _ in 0..3 {
        fixture.vector.map(&fixture.context, source).unwrap();
    }
    let before = users(&fixture);
    assert_eq!(before.iter().sum::<u64>(), 3);
    let (grant, _) = fixture.vector.complete(&fixture.context, &planned[0], false, 3).unwrap();
    let moved = held.iter_mut().find(|held| is(held, source)).unwrap();
    moved.grant = grant;
    assert_eq!(users(&fixture).iter().sum::<u64>(), 3);
    assert_ne!(users(&fixture), before, "in another block");
    for _ in 0..3 {
        fixture.vector.unmap(moved.live()).unwrap();
    }
    assert!(fixture.vector.unmap(moved.live()).is_err());
    fixture.complete_all(&planned[1..], &mut held);
    fixture.vector.end_compaction(&compaction);
    fixture.free_all(held);
    fixture.finish();
}

/// If the destination cannot be mapped, nothing changes, and the move may be retried.
#[test]
fn a_mapping_that_fails_changes_nothing() {
    let (fixture, mut held) = two_blocks();
    let mut compaction = fixture.begin(Effort::Fast);
    let planned = fixture.plan(&mut compaction);
    fixture.gpu.faults().fail_always("vkMapMemory", ash::vk::Result::ERROR_MEMORY_MAP_FAILED);
    let before = (fixture.walk(), users(&fixture));
    let failed = fixture.vector.complete(&fixture.context, &planned[0], true, 0);
    assert!(matches!(failed, Err(MapError::Driver(_))));
    assert_eq!((fixture.walk(), users(&fixture)), before);
    fixture.gpu.faults().clear();
    fixture.complete_all(&planned, &mut held);
    fixture.check();
    fixture.vector.end_compaction(&compaction);
    fixture.free_all(held);
    fixture.finish();
}
