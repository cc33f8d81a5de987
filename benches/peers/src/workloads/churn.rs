//! Random replacement with a constant number of live allocations.

use super::{Scale, short, whole};
use crate::case::{Rounds, Workload};
use crate::peers::PeerMode;
use crate::script::{self, AlignmentMix, Random, Shapes};

/// 1k, 10k, 100k live, with three distributions of alignments; and large sizes.
pub(crate) fn churn(scale: &Scale) -> Vec<Workload> {
    let mut all = Vec::new();
    for count in [1_000, 10_000, 100_000] {
        for (alignments, name) in
            [(AlignmentMix::Usual, "usual"), (AlignmentMix::Mixed, "mixed"), (AlignmentMix::Fixed, "256")]
        {
            let id = format!("churn-{}-{name}", short(count));
            let title = format!("churn, {} live, {name}", short(count));
            all.push(one(scale, id, title, Shapes::common(alignments), count));
        }
    }
    let shapes = Shapes { alignments: AlignmentMix::Mixed, octaves: (20, 26) };
    all.push(one(scale, "churn-large".to_owned(), "churn, 200 live, 1 to 64 MiB".to_owned(), shapes, 200));
    all
}

fn one(scale: &Scale, id: String, title: String, shapes: Shapes, count: usize) -> Workload {
    let live = scale.live(count);
    let pairs = scale.pairs;
    let many = count > 20_000;
    let salt = id.bytes().fold(0, |salt: u64, byte| salt * 31 % 65_521 + u64::from(byte));
    let scale = *scale;
    let mut random = Random::new(scale.seed(salt, 0));
    let mut before = vec![script::fill(&mut random, shapes, live)];
    // Brings the free ranges to their steady state.
    before.push(script::churn(&mut random, shapes, live, 2 * live));
    Workload {
        id,
        title,
        peers: whole(PeerMode::Default, live),
        granularity: 1,
        slots: live,
        before,
        // With this many live allocations a round touches few of them. Only a longer one warms what the next needs.
        warm_up: many.then(|| -> Rounds {
            Box::new(move |round| {
                vec![script::churn(&mut Random::new(scale.seed(salt, round)), shapes, live, 3 * pairs)]
            })
        }),
        fewer_rounds: if many { 3 } else { 1 },
        round: Box::new(move |round| {
            vec![script::churn(&mut Random::new(scale.seed(salt, round + 1)), shapes, live, pairs)]
        }),
        thorough: true,
        reserves: true,
    }
}
