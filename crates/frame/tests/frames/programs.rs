//! Random programs on simulated GPUs.

use ash::vk;

use sublet::sim;

use crate::bench::{Bench, PROFILES};
use crate::paint::Painter;
use crate::random::{SIZE, program};

fn cases() -> u64 {
    std::env::var("SUBLET_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(150)
}

/// What the shader of the painter does.
fn paint(kernel: &mut sim::Kernel<'_>) {
    let draw = kernel.draw().unwrap();
    assert_eq!(draw.indices().unwrap_or(vec![0, 1, 2]), [0, 1, 2]);
    let word = draw.vertex_buffer(0).read_u32(u64::from(draw.instances().start) * 4);
    let texel = kernel.texels(0, 1, 0).read(0, 0, [0; 3]);
    let texel = u32::from_le_bytes(texel.try_into().unwrap_or_default());
    let color = (word ^ kernel.buffer(0, 0, 0).read_u32(0) ^ texel).to_le_bytes();
    let to = draw.color(0);
    for at in 0..SIZE * SIZE {
        to.write(0, 0, [at % SIZE, at / SIZE, 0], &color);
    }
}

/// Runs a program, on profiles whose descriptor pools can be recycled with draws.
fn run(bench: &mut Bench, queues: usize, copies: Option<usize>, seed: u64) -> u64 {
    bench.gpu.set_kernel("corner", |_| {});
    bench.gpu.set_kernel("paint", paint);
    let painter = (bench.gpu.profile().name != PROFILES[2])
        .then(|| Painter::new(bench.gpu.device(), bench.frames.as_ref().unwrap()));
    program(bench.frames(), queues, copies, painter.as_ref(), seed)
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
        moves += run(&mut bench, QUEUES as usize, None, seed);
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
        moves += program(bench.frames(), 2, Some(2), None, seed);
        releases += bench.frames().statistics().releases;
        bench.finish();
    }
    assert!(moves > cases() / 2, "only {moves} resources were moved");
    assert!(releases > cases() / 2, "only {releases} submissions gave something away");
}
