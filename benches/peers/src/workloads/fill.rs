//! Measures how much fits into a heap before it is full.

use super::Scale;
use crate::case::{self, CaseFigures, CaseSetup};
use crate::gpu::Driver;
use crate::peers::{PeerKind, PeerMode};
use crate::script::{AlignmentMix, PeerRequest, Random, Shapes};

/// A sequence of requests for one limit.
pub(crate) struct Fill {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    limit: u64,
    shape: PeerMode,
    shapes: Shapes,
}

const POOL_BLOCK: u64 = 64 << 20;

/// The heap of a small card, and a pool of a few blocks.
pub(crate) const FILLS: [Fill; 4] = [
    Fill {
        id: "fill-heap-usual",
        title: "heap of 4 GiB, usual",
        limit: 4 << 30,
        shape: PeerMode::Default,
        shapes: Shapes::common(AlignmentMix::Usual),
    },
    Fill {
        id: "fill-heap-mixed",
        title: "heap of 4 GiB, mixed",
        limit: 4 << 30,
        shape: PeerMode::Default,
        shapes: Shapes::common(AlignmentMix::Mixed),
    },
    Fill {
        id: "fill-pool-usual",
        title: "pool of 8 blocks of 64 MiB, usual",
        limit: u64::MAX,
        shape: PeerMode::Pool { block_size: POOL_BLOCK, min: 0, max: 8 },
        shapes: Shapes::common(AlignmentMix::Usual),
    },
    Fill {
        id: "fill-pool-mixed",
        title: "pool of 8 blocks of 64 MiB, mixed",
        limit: u64::MAX,
        shape: PeerMode::Pool { block_size: POOL_BLOCK, min: 0, max: 8 },
        shapes: Shapes::common(AlignmentMix::Mixed),
    },
];

/// Allocates until the first failure.
pub(crate) fn fill(
    fill: &Fill,
    driver: &Driver,
    kind: PeerKind,
    scale: &Scale,
) -> Result<Option<CaseFigures>, String> {
    let place = CaseSetup { driver, granularity: 1, kind, shape: fill.shape };
    // Four times the possible amount, so that one request always fails.
    let most = if fill.limit == u64::MAX { 8 * POOL_BLOCK } else { fill.limit };
    let count = usize::try_from(most / 131_072 * 4).unwrap_or(usize::MAX);
    let mut random = Random::new(scale.seed(800, 0));
    let requests: Vec<PeerRequest> = (0..count).map(|_| fill.shapes.draw(&mut random)).collect();
    let said = |error| format!("{}, {}: {error}", fill.id, kind.title());
    let Some(mut case) = case::case(place, count).map_err(said)? else { return Ok(None) };
    case.limit(fill.limit);
    let filled = case.fill(&requests);
    let figures = case.figures();
    case.finish().map_err(said)?;
    if filled == count {
        return Err(said("it was never full".to_owned()));
    }
    Ok(Some(figures))
}
