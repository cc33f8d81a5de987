//! Levels of a game: thousands of allocations are made, and all freed.

use super::{Scale, whole};
use crate::case::Workload;
use crate::peers::PeerMode;
use crate::script::{self, AlignmentMix, Phase, Random, Shapes};

/// Allocations that stay.
const STAYING: usize = 500;
/// Allocations per level.
const LEVEL: usize = 4_000;
/// 1 KiB to 4 MiB.
const SHAPES: Shapes = Shapes { alignments: AlignmentMix::Usual, octaves: (10, 22) };

/// Three levels per round, each freed before the next begins. Some allocations stay all the time.
pub(crate) fn level(scale: &Scale) -> Vec<Workload> {
    let scale = *scale;
    let (staying, count) = (scale.live(STAYING), scale.live(LEVEL));
    let level = move |random: &mut Random| {
        let slots = staying..staying + count;
        let mut load: Vec<_> = slots.map(|slot| (slot as u32, SHAPES.draw(random))).collect();
        random.shuffle(&mut load);
        let mut unload: Vec<u32> = load.iter().map(|(slot, _)| *slot).collect();
        random.shuffle(&mut unload);
        [Phase::Allocate(load), Phase::Free(unload)]
    };
    vec![Workload {
        id: "level".to_owned(),
        title: "levels of 4,000 come and go".to_owned(),
        peers: whole(PeerMode::Default, count),
        granularity: 1,
        slots: staying + count,
        before: vec![script::fill(&mut Random::new(scale.seed(400, 0)), SHAPES, staying)],
        warm_up: None,
        fewer_rounds: 1,
        round: Box::new(move |round| {
            let mut random = Random::new(scale.seed(401, round));
            (0..3).flat_map(|_| level(&mut random)).collect()
        }),
        thorough: false,
        reserves: true,
    }]
}
