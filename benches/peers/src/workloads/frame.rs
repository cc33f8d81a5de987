//! Small buffers that live for a frame.

use super::{Scale, whole};
use crate::case::Workload;
use crate::peers::PeerMode;
use crate::script::{PeerRequest, PeerRequestKind, Phase, Random};

/// Allocations per frame.
const COUNT: usize = 1_000;
const POOL: u64 = 64 << 20;

/// 256 to 4,352 bytes.
fn requests(random: &mut Random, first: usize, count: usize) -> Phase {
    let request = |slot: usize| {
        (
            slot as u32,
            PeerRequest { size: 256 + random.below(4096), alignment: 256, kind: PeerRequestKind::Memory },
        )
    };
    Phase::Allocate((first..first + count).map(request).collect())
}

fn slots(first: usize, count: usize) -> Phase {
    Phase::Free((first..first + count).map(|slot| slot as u32).collect())
}

/// Returns the frames of a round, each freed in order.
fn frames(scale: Scale, count: usize, round: u64) -> Vec<Phase> {
    let mut random = Random::new(scale.seed(300, round));
    let frame = |_| [requests(&mut random, 0, count), slots(0, count)];
    (0..(scale.pairs / count).max(1)).flat_map(frame).collect()
}

/// Same, but each frame is freed after the next two have been made.
fn ring(scale: Scale, count: usize, round: u64) -> Vec<Phase> {
    let mut random = Random::new(scale.seed(301, round));
    // A multiple of three, so that the next round continues from this one's state.
    let frame = |frame: usize| {
        let (now, oldest) = (frame % 3, (frame + 1) % 3);
        [requests(&mut random, now * count, count), slots(oldest * count, count)]
    };
    (0..(scale.pairs / count).max(1).next_multiple_of(3)).flat_map(frame).collect()
}

/// Frames and rings in default vectors, and in linear pools.
pub(crate) fn frame(scale: &Scale) -> Vec<Workload> {
    let scale = *scale;
    let count = scale.live(COUNT);
    let linear = PeerMode::LinearPool { block_size: POOL };
    let one = |id: &str, title: &str, shape, in_ring: bool| {
        let before = |round: fn(Scale, usize, u64) -> Vec<Phase>| round(scale, count, u64::from(u32::MAX));
        Workload {
            id: id.to_owned(),
            title: title.to_owned(),
            peers: whole(shape, count),
            granularity: 1,
            slots: 3 * count,
            before: before(if in_ring { ring } else { frames }),
            warm_up: None,
            fewer_rounds: 1,
            round: Box::new(
                move |round| {
                    if in_ring { ring(scale, count, round) } else { frames(scale, count, round) }
                },
            ),
            thorough: false,
            reserves: shape == PeerMode::Default,
        }
    };
    vec![
        one("frame", "frame of 1,000, default", PeerMode::Default, false),
        one("frame-linear", "frame of 1,000, linear pool", linear, false),
        one("ring", "frames freed two later, default", PeerMode::Default, true),
        one("ring-linear", "frames freed two later, linear pool", linear, true),
    ]
}
