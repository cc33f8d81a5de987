//! No barrier is redundant: the judge must report a hazard when any barrier is removed or narrowed.

use std::collections::BTreeMap;

use ash::vk;
use vk::{AccessFlags2 as Access, PipelineStageFlags2 as Stages};

use crate::judge::{Bar, Judge, Step, show};
use crate::program::{Program, ProgramShape, SHAPE, run};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cut {
    Barrier,
    SourceStage,
    SourceAccess,
    TargetStage,
    TargetAccess,
    Wait,
    WaitStage,
}

fn bits(mut mask: u64) -> Vec<u64> {
    let mut all = Vec::new();
    while mask != 0 {
        all.push(mask & mask.wrapping_neg());
        mask &= mask - 1;
    }
    all
}

/// Calls `f` with every program that has one part less.
fn cuts(steps: &[Step], mut f: impl FnMut(Cut, usize, &[Step])) {
    let mut changed = steps.to_vec();
    for at in 0..steps.len() {
        match &steps[at] {
            Step::Barriers { queue, bars } => {
                for bar in 0..bars.len() {
                    let mut cut = |kind, with: Option<Bar>| {
                        let mut bars = bars.clone();
                        match with {
                            Some(with) => bars[bar] = with,
                            None => drop(bars.remove(bar)),
                        }
                        changed[at] = Step::Barriers { queue: *queue, bars };
                        f(kind, at, &changed);
                    };
                    cut(Cut::Barrier, None);
                    let whole = &bars[bar];
                    let stage = |of: Stages, bit: u64| Stages::from_raw(of.as_raw() & !bit);
                    let access = |of: Access, bit: u64| Access::from_raw(of.as_raw() & !bit);
                    for bit in bits(whole.src.0.as_raw()) {
                        let src = (stage(whole.src.0, bit), whole.src.1);
                        cut(Cut::SourceStage, Some(Bar { src, ..whole.clone() }));
                    }
                    for bit in bits(whole.src.1.as_raw()) {
                        let src = (whole.src.0, access(whole.src.1, bit));
                        cut(Cut::SourceAccess, Some(Bar { src, ..whole.clone() }));
                    }
                    for bit in bits(whole.dst.0.as_raw()) {
                        let dst = (stage(whole.dst.0, bit), whole.dst.1);
                        cut(Cut::TargetStage, Some(Bar { dst, ..whole.clone() }));
                    }
                    for bit in bits(whole.dst.1.as_raw()) {
                        let dst = (whole.dst.0, access(whole.dst.1, bit));
                        cut(Cut::TargetAccess, Some(Bar { dst, ..whole.clone() }));
                    }
                }
            }
            Step::Wait { queue, on, serial, stages } => {
                // Replaces the step, so that the indices of the others stay.
                changed[at] = Step::Barriers { queue: *queue, bars: Vec::new() };
                f(Cut::Wait, at, &changed);
                for bit in bits(stages.as_raw()) {
                    let stages = Stages::from_raw(stages.as_raw() & !bit);
                    changed[at] = Step::Wait { queue: *queue, on: *on, serial: *serial, stages };
                    f(Cut::WaitStage, at, &changed);
                }
            }
            Step::Command { .. } | Step::Signal { .. } | Step::Set { .. } | Step::Join { .. } => continue,
        }
        changed[at] = steps[at].clone();
    }
}

/// The redundant parts that the tracker accepts, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Excuse {
    /// A barrier waits for all stages that were ordered after an earlier use. One of them would suffice if only the
    /// order after that use mattered.
    SeveralStages,
    /// A later reader includes the write access again, although an earlier reader or a semaphore has made it available.
    AvailableBefore,
    /// Merged readers form one product of stages and accesses; or the write was visible to a third product, which is
    /// not stored.
    Products,
    /// A list does not know the ordering and visibility established by previous lists.
    BeforeTheList,
    /// After a vertex or index read, a later write still needs a memory dependency, because the read may have been
    /// partial.
    Fetched,
    /// A queue has waited for another one that has waited for a third.
    ChainedQueues,
}

const FETCHING: u64 =
    Stages::VERTEX_INPUT.as_raw() | Stages::INDEX_INPUT.as_raw() | Stages::VERTEX_ATTRIBUTE_INPUT.as_raw();

fn excuse(cut: Cut, step: &Step, before: &[Step]) -> Option<Excuse> {
    let several = |mask: u64| mask.count_ones() > 1;
    let Step::Barriers { bars, .. } = step else {
        return Some(Excuse::ChainedQueues);
    };
    let src = bars.iter().fold((0, 0), |all, bar| (all.0 | bar.src.0.as_raw(), all.1 | bar.src.1.as_raw()));
    let dst = bars.iter().fold((0, 0), |all, bar| (all.0 | bar.dst.0.as_raw(), all.1 | bar.dst.1.as_raw()));
    let repeated = before.iter().any(|earlier| match earlier {
        Step::Barriers { bars, .. } => bars.iter().any(|bar| bar.src.1.as_raw() & src.1 != 0),
        // A semaphore makes all writes available.
        Step::Wait { .. } => true,
        _ => false,
    });
    match cut {
        Cut::SourceStage if several(src.0) => Some(Excuse::SeveralStages),
        Cut::TargetStage if several(dst.0) => Some(Excuse::SeveralStages),
        Cut::SourceAccess => repeated.then_some(Excuse::AvailableBefore),
        Cut::TargetAccess if src.0 & FETCHING != 0 => Some(Excuse::Fetched),
        _ if src.1 == 0 => Some(Excuse::BeforeTheList),
        _ if several(dst.0) || several(dst.1) || repeated => Some(Excuse::Products),
        _ => None,
    }
}

/// Counts the cuts of each kind, and those that left a program without a hazard.
fn count(shape: ProgramShape, programs: u64) -> BTreeMap<Cut, (usize, BTreeMap<Excuse, usize>)> {
    let mut counts = BTreeMap::<Cut, (usize, BTreeMap<Excuse, usize>)>::new();
    for seed in 0..programs {
        let Program { resources, families, steps } = run(seed, shape);
        cuts(&steps, |cut, at, changed| {
            let (all, needless) = counts.entry(cut).or_default();
            *all += 1;
            if Judge::new(&resources, &families).judge(changed).is_ok() {
                let Some(excuse) = excuse(cut, &steps[at], &steps[..at]) else {
                    let steps: Vec<String> = steps.iter().map(show).collect();
                    let (whole, cut) = (show(&changed[at]), steps.join("\n"));
                    panic!("seed {seed}: at step {at} less would do: {whole}\nin\n{cut}");
                };
                *needless.entry(excuse).or_default() += 1;
            }
        });
    }
    counts
}

/// Tests programs with one resource, so that no barrier of another resource can replace the removed one.
fn is_minimal(queues: usize) {
    let counts = count(ProgramShape { whole: true, resources: 1, queues, ..SHAPE }, crate::cases() / 5);
    println!("{counts:?}");
    for (cut, (all, needless)) in counts {
        // Per thousand.
        let bound = match cut {
            Cut::Barrier => 10,
            Cut::Wait => 60,
            // Two of eleven buffer uses fetch vertices or indices.
            Cut::TargetAccess => 90,
            Cut::TargetStage => 50,
            // After several first readers of a host write, only their order matters.
            Cut::SourceStage => 110,
            Cut::SourceAccess => 220,
            Cut::WaitStage => 380,
        };
        let sum: usize = needless.values().sum();
        assert!(sum * 1_000 <= all * bound, "{sum} of {all} are needless: {cut:?}, {needless:?}");
    }
}

#[test]
fn on_one_queues_only_listed_parts_are_redundant() {
    is_minimal(1);
}

#[test]
fn on_two_queues_only_listed_parts_are_redundant() {
    is_minimal(2);
}

#[test]
fn on_three_queues_only_listed_parts_are_redundant() {
    is_minimal(3);
}
