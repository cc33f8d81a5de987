//! Limits of a pass.

use super::*;

/// Four blocks of 64 allocations of 16 KiB, a quarter of which is left.
fn sparse() -> (Fixture, Vec<Held>) {
    let fixture = Fixture::new(small_blocks());
    let held = fixture.thin_out(fixture.fill(4, 16 * KIB), |at| at % 4 == 0);
    (fixture, held)
}

fn bytes(planned: &[Planned]) -> u64 {
    planned.iter().map(|planned| planned.size).sum()
}

#[test]
fn a_pass_moves_no_more_bytes_than_it_may() {
    for effort in EFFORTS {
        for limit in [16 * KIB, 40 * KIB, 100 * KIB] {
            let (fixture, mut held) = sparse();
            let mut compaction = fixture.begin(effort);
            let mut emptied = Emptied::default();
            let mut passes = 0;
            loop {
                let planned = fixture.plan_within(&mut compaction, limit, 0, None, &mut || false);
                if planned.is_empty() {
                    break;
                }
                passes += 1;
                assert!(bytes(&planned) <= limit);
                assert!(bytes(&planned) + 16 * KIB > limit || fixture.blocks() <= 2, "it moves what it may");
                planned.iter().for_each(|planned| emptied.add(fixture.complete(planned, &mut held)));
            }
            assert_eq!(emptied.blocks, 3, "{effort:?}");
            assert!(passes >= 48 * 16 * KIB / limit);
            fixture.vector.end_compaction(&compaction);
            fixture.free_all(held);
            fixture.finish();
        }
    }
}

#[test]
fn what_is_larger_than_a_pass_is_not_moved() {
    for effort in EFFORTS {
        let (fixture, held) = sparse();
        let mut compaction = fixture.begin(effort);
        assert!(fixture.plan_within(&mut compaction, 16 * KIB - 1, 0, None, &mut || false).is_empty());
        fixture.vector.end_compaction(&compaction);
        fixture.free_all(held);
        fixture.finish();
    }
}

/// Allocations too large for any pass do not block the others.
#[test]
fn what_is_too_large_is_in_nobodys_way() {
    let fixture = Fixture::new(small_blocks());
    let below = fixture.get(512 * KIB, 16);
    let small = fixture.get(KIB, 16);
    let held: Vec<_> = (0..20).map(|_| fixture.get(24 * KIB, 16)).collect();
    fixture.free(below);
    let mut compaction = fixture.begin(Effort::Full);
    let planned = fixture.plan_within(&mut compaction, 2 * KIB, 0, None, &mut || false);
    assert_eq!(planned.iter().map(|planned| planned.size).collect::<Vec<_>>(), [KIB]);
    fixture.roll_back_all(&planned);
    fixture.vector.end_compaction(&compaction);
    fixture.free(small);
    fixture.free_all(held);
    fixture.finish();
}

/// A pass ends after sixteen candidates that do not fit, even if the next would. The next pass counts anew.
#[test]
fn sixteen_skips_end_a_pass() {
    for (large, planned_small) in [(16, true), (17, false)] {
        let fixture = Fixture::new(small_blocks());
        let below = fixture.get(512 * KIB, 16);
        // Above the hole: a small one at the lowest place, then the large ones. Candidates are visited from the end.
        let small = fixture.get(KIB, 16);
        let held: Vec<_> = (0..large).map(|_| fixture.get(24 * KIB, 16)).collect();
        assert_eq!(fixture.blocks(), 1);
        fixture.free(below);
        let mut compaction = fixture.begin(Effort::Full);
        for _ in 0..3 {
            // The first takes all but 1 KiB; the others do not fit.
            let planned = fixture.plan_within(&mut compaction, 25 * KIB, 0, None, &mut || false);
            let sizes: Vec<_> = planned.iter().map(|planned| planned.size / KIB).collect();
            assert_eq!(sizes, if planned_small { vec![24, 1] } else { vec![24] }, "{large} large ones");
            fixture.roll_back_all(&planned);
        }
        fixture.vector.end_compaction(&compaction);
        fixture.free(small);
        fixture.free_all(held);
        fixture.finish();
    }
}

#[test]
fn a_pass_makes_no_more_moves_than_it_may() {
    let (fixture, mut held) = sparse();
    let mut compaction = fixture.begin(Effort::Fast);
    for _ in 0..9 {
        let planned = fixture.plan_within(&mut compaction, 0, 5, None, &mut || false);
        assert_eq!(planned.len(), 5);
        fixture.complete_all(&planned, &mut held);
    }
    assert_eq!(fixture.plan_within(&mut compaction, 0, 5, None, &mut || false).len(), 3);
    fixture.vector.deactivate(&fixture.context, &mut |_| {});
}

/// A pass without time makes one move, so repeated passes make all.
#[test]
fn a_pass_without_time_makes_one_move() {
    let (fixture, mut held) = sparse();
    let mut compaction = fixture.begin(Effort::Fast);
    let mut moves = 0;
    loop {
        let planned = fixture.plan_within(&mut compaction, 0, 0, Some(Duration::ZERO), &mut || false);
        let Some(planned) = planned.first().filter(|_| planned.len() == 1) else {
            assert!(planned.is_empty());
            break;
        };
        let _ = fixture.complete(planned, &mut held);
        moves += 1;
    }
    assert_eq!((moves, fixture.blocks()), (48, 1));
    fixture.vector.end_compaction(&compaction);
    fixture.free_all(held);
    fixture.finish();
}

#[test]
fn time_enough_is_no_limit() {
    let (fixture, held) = sparse();
    let mut compaction = fixture.begin(Effort::Fast);
    let planned = fixture.plan_within(&mut compaction, 0, 0, Some(Duration::from_secs(3600)), &mut || false);
    assert_eq!(planned.len(), 48);
    fixture.roll_back_all(&planned);
    fixture.vector.end_compaction(&compaction);
    fixture.free_all(held);
    fixture.finish();
}

/// The stop callback runs before each move, without any lock held.
#[test]
fn the_program_may_stop_a_pass() {
    for effort in EFFORTS {
        let (fixture, held) = sparse();
        for after in [0, 1, 7] {
            let mut compaction = fixture.begin(effort);
            let mut asked = 0;
            let mut stop = || {
                asked += 1;
                fixture.vector.validate();
                fixture.free(fixture.get(100, 16));
                asked > after
            };
            let planned = fixture.plan_within(&mut compaction, 0, 0, None, &mut stop);
            assert_eq!((planned.len(), asked), (after, after + 1), "{effort:?}");
            fixture.roll_back_all(&planned);
            // A stopped context is not done.
            let planned = fixture.plan(&mut compaction);
            assert!(planned.len() >= 48);
            fixture.roll_back_all(&planned);
            fixture.vector.end_compaction(&compaction);
        }
        fixture.free_all(held);
        fixture.finish();
    }
}
