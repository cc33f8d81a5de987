//! The same allocations in one large block, or in thousands of small ones.

use super::Scale;
use crate::case::{Participant, Workload};
use crate::peers::{PeerKind, PeerMode};
use crate::script::{self, AlignmentMix, Random, Shapes};

/// Total bytes of all blocks.
const TOTAL: u64 = 512 << 20;
/// 4 to 32 KiB, 12 on average. They fill three quarters of the bytes.
const SHAPES: Shapes = Shapes { alignments: AlignmentMix::Fixed, octaves: (12, 15) };
const LIVE: usize = 32_000;

/// 1, 100, 1,000 and 4,000 blocks in one pool.
pub(crate) fn blocks(scale: &Scale) -> Vec<Workload> {
    let one = |count: usize| {
        let scale = *scale;
        let live = scale.live(LIVE);
        // Fewer blocks if there are fewer allocations to fill them.
        let blocks = count.min(live / 8).max(1);
        let block_size = (TOTAL / scale.smaller as u64 / blocks as u64).next_multiple_of(4096);
        let shape = PeerMode::Pool { block_size, min: blocks, max: 0 };
        let entry = |kind: PeerKind| Participant {
            kind,
            shape,
            share: if kind == PeerKind::Vma { (count / 40).max(1) } else { 1 },
        };
        let pairs = scale.pairs;
        let mut random = Random::new(scale.seed(600, 0));
        Workload {
            id: format!("blocks-{count}"),
            title: format!("{count} blocks in one pool"),
            peers: [PeerKind::Sublet, PeerKind::Vma].map(entry).into(),
            granularity: 1,
            slots: live,
            before: vec![
                script::fill(&mut random, SHAPES, live),
                script::churn(&mut random, SHAPES, live, live),
            ],
            warm_up: None,
            fewer_rounds: 1,
            round: Box::new(move |round| {
                vec![script::churn(&mut Random::new(scale.seed(601, round)), SHAPES, live, pairs)]
            }),
            thorough: false,
            reserves: true,
        }
    };
    [1, 100, 1_000, 4_000].map(one).into()
}
