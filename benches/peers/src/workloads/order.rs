//! Allocates everything, then frees it in various orders.

use super::{Scale, short, whole};
use crate::case::Workload;
use crate::peers::Shape;
use crate::script::{self, Alignments, Phase, Random, Shapes};

#[derive(Clone, Copy)]
enum Order {
    LastFirst,
    FirstFirst,
    Random,
}

/// 10k allocations, freed last in first out, first in first out, and at random.
pub(crate) fn order(scale: &Scale) -> Vec<Workload> {
    const COUNT: usize = 10_000;
    let orders = [(Order::LastFirst, "LIFO"), (Order::FirstFirst, "FIFO"), (Order::Random, "random")];
    let one = |(order, name): (Order, &str)| {
        let scale = *scale;
        let live = scale.live(COUNT);
        let round = move |round| {
            let mut random = Random::new(scale.seed(200, round));
            let mut slots: Vec<u32> = (0..live as u32).collect();
            match order {
                Order::LastFirst => slots.reverse(),
                Order::FirstFirst => {}
                Order::Random => random.shuffle(&mut slots),
            }
            vec![script::fill(&mut random, Shapes::common(Alignments::Mixed), live), Phase::Free(slots)]
        };
        Workload {
            id: format!("order-{}", name.to_lowercase()),
            title: format!("allocate {}, free {name}", short(COUNT)),
            peers: whole(Shape::Default, live),
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
