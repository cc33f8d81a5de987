//! Random programs on simulated GPUs.

use ash::vk;

use crate::bench::{Bench, PROFILES};
use crate::random::program;

fn cases() -> u64 {
    std::env::var("SUBLET_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(150)
}

/// `SUBLET_CASES` sets how many.
#[test]
fn random_programs_are_those_of_the_host() {
    const QUEUES: u32 = 3;
    let cases = cases();
    let mut moves = 0;
    for seed in 0..cases {
        let profile = PROFILES[seed as usize % PROFILES.len()];
        let mut bench = Bench::new(profile, QUEUES);
        bench.gpu.hold_submissions(seed % 2 == 0);
        moves += program(bench.frames(), QUEUES as usize, None, seed);
        bench.finish();
    }
    assert!(moves > cases, "only {moves} resources were moved");
}

/// A family that only copies compacts, and no list of the program is for it: what it moves comes and goes with each step.
#[test]
fn a_family_that_only_copies_compacts() {
    let (mut moves, mut releases) = (0, 0);
    for seed in 0..cases() {
        let profile = PROFILES[seed as usize % PROFILES.len()];
        let mut bench = Bench::with_family(profile, 3, vk::QueueFlags::TRANSFER);
        bench.gpu.hold_submissions(seed % 2 == 0);
        moves += program(bench.frames(), 2, Some(2), seed);
        releases += bench.frames().statistics().releases;
        bench.finish();
    }
    assert!(moves > cases(), "only {moves} resources were moved");
    assert!(releases > cases(), "only {releases} submissions gave something away");
}
