//! Engines alone: no memory, no lock, no driver.

use super::frame::{COUNT, requests, slots};
use super::{Scale, short};
use crate::case::{Participant, Rounds, Workload};
use crate::peers::{PeerKind, PeerMode};
use crate::script::{self, AlignmentMix, Phase, Random, Shapes};

const ENGINES: [PeerKind; 5] = [
    PeerKind::SubletEngine,
    PeerKind::SubletVirtual,
    PeerKind::VmaVirtual,
    PeerKind::OffsetAllocator,
    PeerKind::Nothing,
];
/// Enough for one frame or three.
const FRAME_CAPACITY: u64 = 64 << 20;

fn entries(shape: PeerMode) -> Vec<Participant> {
    ENGINES.iter().map(|&kind| Participant { kind, shape, share: 1 }).collect()
}

/// Churn and frames in general engines, frames in linear ones.
pub(crate) fn engines(scale: &Scale) -> Vec<Workload> {
    let mut all = Vec::new();
    for (count, capacity) in [(10_000, 4 << 30), (100_000, 32 << 30)] {
        for (alignments, name) in [(AlignmentMix::Usual, "usual"), (AlignmentMix::Mixed, "mixed")] {
            all.push(churn(*scale, count, capacity, alignments, name));
        }
    }
    all.push(frame(
        *scale,
        "engine-frame",
        "frame of 1,000",
        PeerMode::Engine { capacity: FRAME_CAPACITY },
        false,
    ));
    let linear = PeerMode::LinearEngine { capacity: FRAME_CAPACITY };
    all.push(frame(*scale, "engine-linear", "frame of 1,000, linear", linear, false));
    all.push(frame(*scale, "engine-reset", "frame of 1,000, linear, reset", linear, true));
    all
}

fn churn(scale: Scale, count: usize, capacity: u64, alignments: AlignmentMix, name: &str) -> Workload {
    let live = scale.live(count);
    let shapes = Shapes::common(alignments);
    let many = count > 20_000;
    let mut random = Random::new(scale.seed(700, 0));
    Workload {
        id: format!("engine-{}-{name}", short(count)),
        title: format!("churn, {} live, {name}", short(count)),
        peers: entries(PeerMode::Engine { capacity }),
        granularity: 1,
        slots: live,
        before: vec![
            script::fill(&mut random, shapes, live),
            script::churn(&mut random, shapes, live, 2 * live),
        ],
        warm_up: many.then(|| -> Rounds {
            Box::new(move |round| {
                vec![script::churn(&mut Random::new(scale.seed(703, round)), shapes, live, 3 * scale.pairs)]
            })
        }),
        fewer_rounds: if many { 3 } else { 1 },
        round: Box::new(move |round| {
            vec![script::churn(&mut Random::new(scale.seed(701, round)), shapes, live, scale.pairs)]
        }),
        thorough: true,
        reserves: false,
    }
}

fn frame(scale: Scale, id: &str, title: &str, shape: PeerMode, reset: bool) -> Workload {
    let count = scale.live(COUNT);
    let frames = move |round: u64| {
        let mut random = Random::new(scale.seed(702, round));
        let end = || if reset { Phase::Reset } else { slots(0, count) };
        let frame = |_| [requests(&mut random, 0, count), end()];
        (0..(scale.pairs / count).max(1)).flat_map(frame).collect::<Vec<_>>()
    };
    let mut peers = entries(shape);
    if reset {
        // The other engines have no reset.
        let with_reset =
            [PeerKind::SubletEngine, PeerKind::SubletVirtual, PeerKind::VmaVirtual, PeerKind::Nothing];
        peers.retain(|entry| with_reset.contains(&entry.kind));
    }
    Workload {
        id: id.to_owned(),
        title: title.to_owned(),
        peers,
        granularity: 1,
        slots: count,
        before: frames(u64::from(u32::MAX)),
        warm_up: None,
        fewer_rounds: 1,
        round: Box::new(frames),
        thorough: false,
        reserves: false,
    }
}
