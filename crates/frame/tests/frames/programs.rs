//! Random programs on simulated GPUs.

use ash::vk;

use sublet::sim;

use crate::fixture::{FrameFixture, PROFILES};
use crate::paint::Painter;
use crate::random::{SIZE, program};

fn cases() -> u64 {
    std::env::var("SUBLET_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(150)
}

/// The kernel of the painter's shader.
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

/// Runs a program. Profiles whose descriptor pools can be recycled also draw.
fn run(fixture: &mut FrameFixture, queues: usize, copies: Option<usize>, seed: u64) -> u64 {
    fixture.gpu.set_kernel("corner", |_| {});
    fixture.gpu.set_kernel("paint", paint);
    let painter = (fixture.gpu.profile().name != PROFILES[2])
        .then(|| Painter::new(fixture.gpu.device(), fixture.frames.as_ref().unwrap()));
    program(fixture.frames(), queues, copies, painter.as_ref(), seed)
}

/// `SUBLET_CASES` sets the number of programs.
#[test]
fn random_programs_match_the_host_model() {
    const QUEUES: u32 = 3;
    let cases = cases();
    let mut moves = 0;
    for seed in 0..cases {
        let profile = PROFILES[seed as usize % PROFILES.len()];
        let mut fixture = FrameFixture::new(profile, QUEUES);
        fixture.gpu.hold_submissions(seed % 2 == 0);
        moves += run(&mut fixture, QUEUES as usize, None, seed);
    }
    assert!(moves > cases, "only {moves} resources were moved");
}

/// Compacts on a transfer-only family without other lists, so each move transfers ownership in both directions.
#[test]
fn a_family_that_only_copies_compacts() {
    let (mut moves, mut releases) = (0, 0);
    for seed in 0..cases() {
        let profile = PROFILES[seed as usize % PROFILES.len()];
        let mut fixture = FrameFixture::with_family(profile, 3, vk::QueueFlags::TRANSFER);
        fixture.gpu.hold_submissions(seed % 2 == 0);
        moves += program(fixture.frames(), 2, Some(2), None, seed);
        releases += fixture.frames().statistics().releases;
    }
    assert!(moves > cases() / 2, "only {moves} resources were moved");
    assert!(releases > cases() / 2, "only {releases} releases");
}
