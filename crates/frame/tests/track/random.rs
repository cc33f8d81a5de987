//! Random programs have no hazards.

use sublet_frame::track::join_states_above;

use crate::judge::{Fault, Judge, Step, show};
use crate::program::{Program, ProgramShape, SHAPE, run};

fn no_hazard(shape: ProgramShape) {
    let mut shortest: Option<(u64, usize, Fault, Program)> = None;
    for seed in 0..crate::cases() {
        let program = run(seed, shape);
        if let Err((at, fault)) = Judge::new(&program.resources, &program.families).judge(&program.steps) {
            if shortest.as_ref().is_none_or(|&(_, best, ..)| at < best) {
                shortest = Some((seed, at, fault, program));
            }
        }
    }
    if let Some((seed, at, fault, Program { resources, steps, families })) = shortest {
        let steps: Vec<String> = steps[..=at].iter().map(show).collect();
        panic!("seed {seed}: {fault:?} at the end of\n{}\nof {resources:#?} {families:?}", steps.join("\n"));
    }
}

#[test]
fn one_queue() {
    no_hazard(SHAPE);
}

#[test]
fn two_queues() {
    no_hazard(ProgramShape { queues: 2, ..SHAPE });
}

#[test]
fn three_queues_of_whole_resources() {
    no_hazard(ProgramShape { queues: 3, whole: true, submissions: 8, ..SHAPE });
}

#[test]
fn shared_memory() {
    no_hazard(ProgramShape { aliasing: true, ..SHAPE });
}

#[test]
fn shared_memory_on_two_queues() {
    no_hazard(ProgramShape { aliasing: true, queues: 2, resources: 5, submissions: 6, ..SHAPE });
}

#[test]
fn unordered_writes() {
    no_hazard(ProgramShape { unordered: true, queues: 2, ..SHAPE });
}

#[test]
fn everything_on_three_queues() {
    no_hazard(ProgramShape {
        aliasing: true,
        unordered: true,
        splits: true,
        queues: 3,
        resources: 6,
        submissions: 8,
        whole: false,
    });
}

#[test]
fn split_dependencies() {
    no_hazard(ProgramShape { splits: true, ..SHAPE });
}

/// Joins states as early as possible: the tracker then knows less about each part, but never something wrong.
#[test]
fn joined_states() {
    let shape = ProgramShape { submissions: 12, ..SHAPE };
    join_states_above(0, 0);
    for queues in 1..=3 {
        no_hazard(ProgramShape { queues, ..shape });
        no_hazard(ProgramShape {
            queues,
            aliasing: true,
            unordered: true,
            splits: true,
            resources: 6,
            ..shape
        });
    }
    join_states_above(0, usize::MAX);
    no_hazard(ProgramShape { queues: 3, ..shape });
}

/// The time of use does not affect barriers, so joining such states adds none.
#[test]
fn joining_states_that_differ_in_time_costs_no_barrier() {
    let count = |seed| {
        let program = run(seed, ProgramShape { resources: 1, submissions: 12, ..SHAPE });
        let bars = |step: &Step| if let Step::Barriers { bars, .. } = step { bars.len() } else { 0 };
        program.steps.iter().map(bars).sum::<usize>()
    };
    let (mut apart, mut joined) = (0, 0);
    for seed in 0..crate::cases() {
        join_states_above(usize::MAX, usize::MAX);
        apart += count(seed);
        join_states_above(0, usize::MAX);
        joined += count(seed);
    }
    // An image interval may need one rectangle more or less.
    assert!(joined <= apart, "{apart} barriers without joining, {joined} with it");
}
