//! Limits of a pass.

use super::*;

/// Four blocks of 64 allocations of 16 KiB, a quarter of which is left.
fn sparse() -> (Rig, Vec<Held>) {
    let rig = Rig::new(small_blocks());
    let held = rig.thin_out(rig.fill(4, 16 * KIB), |at| at % 4 == 0);
    (rig, held)
}

fn bytes(planned: &[Planned]) -> u64 {
    planned.iter().map(|planned| planned.size).sum()
}

#[test]
fn a_pass_moves_no_more_bytes_than_it_may() {
    for effort in EFFORTS {
        for limit in [16 * KIB, 40 * KIB, 100 * KIB] {
            let (rig, mut held) = sparse();
            let mut compaction = rig.begin(effort);
            let mut emptied = Emptied::default();
            let mut passes = 0;
            loop {
                let planned = rig.plan_within(&mut compaction, limit, 0, None, &mut || false);
                if planned.is_empty() {
                    break;
                }
                passes += 1;
                assert!(bytes(&planned) <= limit);
                assert!(bytes(&planned) + 16 * KIB > limit || rig.blocks() <= 2, "it moves what it may");
                planned.iter().for_each(|planned| emptied.add(rig.complete(planned, &mut held)));
            }
            assert_eq!(emptied.blocks, 3, "{effort:?}");
            assert!(passes >= 48 * 16 * KIB / limit);
            rig.vector.end_compaction(&compaction);
            rig.free_all(held);
            rig.finish();
        }
    }
}

#[test]
fn what_is_larger_than_a_pass_is_not_moved() {
    for effort in EFFORTS {
        let (rig, held) = sparse();
        let mut compaction = rig.begin(effort);
        assert!(rig.plan_within(&mut compaction, 16 * KIB - 1, 0, None, &mut || false).is_empty());
        rig.vector.end_compaction(&compaction);
        rig.free_all(held);
        rig.finish();
    }
}

/// Allocations too large for any pass do not block the others.
#[test]
fn what_is_too_large_is_in_nobodys_way() {
    let rig = Rig::new(small_blocks());
    let below = rig.get(512 * KIB, 16);
    let small = rig.get(KIB, 16);
    let held: Vec<_> = (0..20).map(|_| rig.get(24 * KIB, 16)).collect();
    rig.free(below);
    let mut compaction = rig.begin(Effort::Full);
    let planned = rig.plan_within(&mut compaction, 2 * KIB, 0, None, &mut || false);
    assert_eq!(planned.iter().map(|planned| planned.size).collect::<Vec<_>>(), [KIB]);
    rig.roll_back_all(&planned);
    rig.vector.end_compaction(&compaction);
    rig.free(small);
    rig.free_all(held);
    rig.finish();
}

/// A pass ends after sixteen candidates that do not fit, even if the next would. The next pass counts anew.
#[test]
fn sixteen_skips_end_a_pass() {
    for (large, planned_small) in [(16, true), (17, false)] {
        let rig = Rig::new(small_blocks());
        let below = rig.get(512 * KIB, 16);
        // Above the hole: a small one at the lowest place, then the large ones. Candidates are visited from the end.
        let small = rig.get(KIB, 16);
        let held: Vec<_> = (0..large).map(|_| rig.get(24 * KIB, 16)).collect();
        assert_eq!(rig.blocks(), 1);
        rig.free(below);
        let mut compaction = rig.begin(Effort::Full);
        for _ in 0..3 {
            // The first takes all but 1 KiB; the others do not fit.
            let planned = rig.plan_within(&mut compaction, 25 * KIB, 0, None, &mut || false);
            let sizes: Vec<_> = planned.iter().map(|planned| planned.size / KIB).collect();
            assert_eq!(sizes, if planned_small { vec![24, 1] } else { vec![24] }, "{large} large ones");
            rig.roll_back_all(&planned);
        }
        rig.vector.end_compaction(&compaction);
        rig.free(small);
        rig.free_all(held);
        rig.finish();
    }
}

#[test]
fn a_pass_makes_no_more_moves_than_it_may() {
    let (rig, mut held) = sparse();
    let mut compaction = rig.begin(Effort::Fast);
    for _ in 0..9 {
        let planned = rig.plan_within(&mut compaction, 0, 5, None, &mut || false);
        assert_eq!(planned.len(), 5);
        rig.complete_all(&planned, &mut held);
    }
    assert_eq!(rig.plan_within(&mut compaction, 0, 5, None, &mut || false).len(), 3);
    rig.vector.deactivate(&rig.context, &mut |_| {});
}

/// A pass without time makes one move, so repeated passes make all.
#[test]
fn a_pass_without_time_makes_one_move() {
    let (rig, mut held) = sparse();
    let mut compaction = rig.begin(Effort::Fast);
    let mut moves = 0;
    loop {
        let planned = rig.plan_within(&mut compaction, 0, 0, Some(Duration::ZERO), &mut || false);
        let Some(planned) = planned.first().filter(|_| planned.len() == 1) else {
            assert!(planned.is_empty());
            break;
        };
        let _ = rig.complete(planned, &mut held);
        moves += 1;
    }
    assert_eq!((moves, rig.blocks()), (48, 1));
    rig.vector.end_compaction(&compaction);
    rig.free_all(held);
    rig.finish();
}

#[test]
fn time_enough_is_no_limit() {
    let (rig, held) = sparse();
    let mut compaction = rig.begin(Effort::Fast);
    let planned = rig.plan_within(&mut compaction, 0, 0, Some(Duration::from_secs(3600)), &mut || false);
    assert_eq!(planned.len(), 48);
    rig.roll_back_all(&planned);
    rig.vector.end_compaction(&compaction);
    rig.free_all(held);
    rig.finish();
}

/// The program is asked before each move, without any lock held.
#[test]
fn the_program_may_stop_a_pass() {
    for effort in EFFORTS {
        let (rig, held) = sparse();
        for after in [0, 1, 7] {
            let mut compaction = rig.begin(effort);
            let mut asked = 0;
            let mut stop = || {
                asked += 1;
                rig.vector.validate();
                rig.free(rig.get(100, 16));
                asked > after
            };
            let planned = rig.plan_within(&mut compaction, 0, 0, None, &mut stop);
            assert_eq!((planned.len(), asked), (after, after + 1), "{effort:?}");
            rig.roll_back_all(&planned);
            // A stopped context is not done.
            let planned = rig.plan(&mut compaction);
            assert!(planned.len() >= 48);
            rig.roll_back_all(&planned);
            rig.vector.end_compaction(&compaction);
        }
        rig.free_all(held);
        rig.finish();
    }
}
