//! Random programs on simulated GPUs.

use crate::bench::{Bench, PROFILES};
use crate::random::program;

/// `SUBLET_CASES` sets how many.
#[test]
fn random_programs_are_those_of_the_host() {
    const QUEUES: u32 = 3;
    let cases = std::env::var("SUBLET_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(150);
    let mut moves = 0;
    for seed in 0..cases {
        let profile = PROFILES[seed as usize % PROFILES.len()];
        let mut bench = Bench::new(profile, QUEUES);
        bench.gpu.hold_submissions(seed % 2 == 0);
        moves += program(bench.frames(), QUEUES as usize, seed);
        bench.finish();
    }
    assert!(moves > cases, "only {moves} resources were moved");
}
