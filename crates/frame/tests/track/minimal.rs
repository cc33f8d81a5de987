//! No barrier is needless: each one is removed and narrowed in turn, and the judge has to object.

use std::collections::BTreeMap;

use ash::vk;
use vk::{AccessFlags2 as Access, PipelineStageFlags2 as Stages};

use crate::judge::{Bar, Judge, Step, show};
use crate::program::{Program, SHAPE, Shape, run};

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

/// Every program that has one thing less.
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
                // Step by step the numbers of the others stay.
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

/// The few that the tracker gives although less would do, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Excuse {
    /// What waits for several stages that came after something waits for all of them. One would do, if nothing but the
    /// order behind the others were wanted.
    SeveralStages,
    /// A later reader names the write once more, although an earlier reader or a semaphore has made it available.
    AvailableBefore,
    /// Readers that came together are one product of stages and accesses; or the write was visible to a third product,
    /// of which no note is kept.
    Products,
    /// A list does not know what those before it have ordered or shown.
    BeforeTheList,
    /// A write behind vertices or indices is made to see the write before them, as it is not known which were read.
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
        // A semaphore makes everything available.
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

/// How many cuts there were of each kind, and how many of them left a program without a hazard.
fn count(shape: Shape, programs: u64) -> BTreeMap<Cut, (usize, BTreeMap<Excuse, usize>)> {
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

/// Programs with one resource, so that no barrier of another one does the same by chance.
fn is_minimal(queues: usize) {
    let counts = count(Shape { whole: true, resources: 1, queues, ..SHAPE }, crate::cases() / 5);
    println!("{counts:?}");
    for (cut, (all, needless)) in counts {
        // Of a thousand.
        let bound = match cut {
            Cut::Barrier => 10,
            Cut::Wait => 60,
            // Two of eleven uses of a buffer fetch vertices or indices.
            Cut::TargetAccess => 90,
            Cut::TargetStage => 50,
            // Behind several first readers of what the host wrote there is nothing but their order.
            Cut::SourceStage => 110,
            Cut::SourceAccess => 220,
            Cut::WaitStage => 380,
        };
        let sum: usize = needless.values().sum();
        assert!(sum * 1_000 <= all * bound, "{sum} of {all} are needless: {cut:?}, {needless:?}");
    }
}

#[test]
fn on_one_queue_nothing_is_needless_but_a_listed_few() {
    is_minimal(1);
}

#[test]
fn on_two_queues_nothing_is_needless_but_a_listed_few() {
    is_minimal(2);
}

#[test]
fn on_three_queues_nothing_is_needless_but_a_listed_few() {
    is_minimal(3);
}
