//! Allocates everything, then frees it in various orders.

use super::{Scale, short, whole};
use crate::case::Workload;
use crate::peers::PeerMode;
use crate::script::{self, AlignmentMix, Phase, Random, Shapes};

#[derive(Clone, Copy)]
enum FreeOrder {
    LastFirst,
    FirstFirst,
    Random,
}

/// 10k allocations, freed last in first out, first in first out, and at random.
pub(crate) fn order(scale: &Scale) -> Vec<Workload> {
    const COUNT: usize = 10_000;
    let orders =
        [(FreeOrder::LastFirst, "LIFO"), (FreeOrder::FirstFirst, "FIFO"), (FreeOrder::Random, "random")];
    let one = |(order, name): (FreeOrder, &str)| {
        let scale = *scale;
        let live = scale.live(COUNT);
        let round = move |round| {
            let mut random = Random::new(scale.seed(200, round));
            let mut slots: Vec<u32> = (0..live as u32).collect();
            match order {
                FreeOrder::LastFirst => slots.reverse(),
                FreeOrder::FirstFirst => {}
                FreeOrder::Random => random.shuffle(&mut slots),
            }
            vec![script::fill(&mut random, Shapes::common(AlignmentMix::Mixed), live), Phase::Free(slots)]
        };
        Workload {
            id: format!("order-{}", name.to_lowercase()),
            title: format!("allocate {}, free {name}", short(COUNT)),
            peers: whole(PeerMode::Default, live),
            granularity: 1,
            slots: live,
            before: round(u64::from(u32::MAX)),
            warm_up: None,
            fewer_rounds: 1,
            round: Box::new(round),
            thorough: false,
            reserves: true,
        }
    };
    orders.map(one).into()
}
