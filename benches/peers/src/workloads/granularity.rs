//! Buffers and images together, on devices where linear and optimal resources may or may not share pages.

use super::{Scale, whole};
use crate::case::Workload;
use crate::peers::PeerMode;
use crate::script::{PeerRequest, PeerRequestKind, Phase, Random};

const LIVE: usize = 5_000;

/// Draws a request. Every third one is an image of 16 to 271 texels per side.
fn draw(random: &mut Random) -> PeerRequest {
    if random.below(3) == 0 {
        PeerRequest { size: 16 + random.below(256), alignment: 1, kind: PeerRequestKind::Image }
    } else {
        PeerRequest { size: random.log_uniform(8, 18), alignment: 1, kind: PeerRequestKind::Buffer }
    }
}

/// Creates and destroys buffers and images with their memory, at `bufferImageGranularity` 1 and 1024.
pub(crate) fn granularity(scale: &Scale) -> Vec<Workload> {
    let one = |granularity: u64| {
        let scale = *scale;
        let live = scale.live(LIVE);
        let pairs = scale.pairs / 2;
        let churn = move |random: &mut Random, count: usize| {
            Phase::Replace((0..count).map(|_| (random.below(live as u64) as u32, draw(random))).collect())
        };
        let mut random = Random::new(scale.seed(500, 0));
        let fill = Phase::Allocate((0..live as u32).map(|slot| (slot, draw(&mut random))).collect());
        Workload {
            id: format!("granularity-{granularity}"),
            title: format!("buffers and images, granularity {granularity}"),
            peers: whole(PeerMode::Created, live),
            granularity,
            slots: live,
            before: vec![fill, churn(&mut random, 2 * live)],
            warm_up: None,
            fewer_rounds: 1,
            round: Box::new(move |round| vec![churn(&mut Random::new(scale.seed(501, round)), pairs)]),
            thorough: false,
            reserves: true,
        }
    };
    vec![one(1), one(1024)]
}
