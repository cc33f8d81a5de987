//! Persistent descriptor sets with random replacement.

use super::Scale;
use crate::cli::Options;
use crate::clock::Stopwatch;
use crate::gpu::{Driver, TestGpu};
use crate::peers::sets::{Bucketed, GpuDescriptor, LAYOUTS, PeerLayouts, Persistent, RawFree, SetPeer};
use crate::script::Random;
use crate::statistics::{median, number};
use crate::table::AlignedTable;

/// The allocators that take part, as in the heading of the table.
pub(crate) const GIVERS: [&str; 4] = ["Sublet", "gpu-descriptor", "wgpu-hal's way", "driver"];

/// Names of the rows, and the numbers of live sets.
pub(crate) const ROWS: [(&str, usize); 2] = [("sets-churn-1k", 1_000), ("sets-churn-10k", 10_000)];

/// Returns the table of a driver.
pub(crate) fn table(
    driver: &Driver,
    options: &Options,
    scale: &Scale,
    rounds: u64,
    tell: impl Fn(&str),
) -> Result<AlignedTable, String> {
    let description = TestGpu::new(driver, None)?.description();
    let mut table = AlignedTable::new(
        &format!("Descriptor sets, nanoseconds for each set, {driver}: {description}"),
        "Eight layouts of four shapes; medians of rounds. `driver` is the driver alone, with pools that are large \
         enough. gpu-descriptor and wgpu-hal's way run without the lock that their users put around them.",
        std::iter::once("").chain(GIVERS),
    );
    for (id, live) in ROWS.into_iter().filter(|(id, _)| options.wants(id)) {
        let mut cells = vec![format!("{} live, one replaced", number(live as f64))];
        for giver in GIVERS {
            tell(&format!("{id}: {giver}"));
            let gpu = TestGpu::new(driver, Some(1))?;
            let found = sets(giver, scale.live(live), &gpu, scale, rounds).and_then(|found| {
                gpu.finish()?;
                Ok(found)
            });
            cells.push(number(found.map_err(|error| format!("{id}, {giver}: {error}"))?));
        }
        table.row(cells);
    }
    Ok(table)
}

/// Returns the nanoseconds of one allocator for each set.
fn sets(giver: &str, live: usize, gpu: &TestGpu, scale: &Scale, rounds: u64) -> Result<f64, String> {
    let layouts = PeerLayouts::new(gpu)?;
    let run = SetsRun { live, scale, rounds, is_real: gpu.is_real() };
    match giver {
        "Sublet" => run.churn(Persistent::new(&layouts)?),
        "gpu-descriptor" => run.churn(GpuDescriptor::new(&layouts)),
        "driver" => run.churn(RawFree::new(&layouts, live as u32 + 1).ok_or("no pool was made")?),
        _ => run.churn(Bucketed::new(&layouts)),
    }
}

struct SetsRun<'a> {
    live: usize,
    scale: &'a Scale,
    rounds: u64,
    is_real: bool,
}

impl SetsRun<'_> {
    fn churn<P: SetPeer>(self, mut peer: P) -> Result<f64, String> {
        let Self { live, scale, rounds, is_real } = self;
        let mut held: Vec<Option<P::Set>> = (0..live).map(|at| peer.allocate(at % LAYOUTS)).collect();
        let mut times = Vec::new();
        for round in 0..=rounds {
            let mut random = Random::new(scale.seed(2_000, round));
            let list: Vec<(usize, usize)> = (0..scale.pairs)
                .map(|_| (random.below(live as u64) as usize, random.below(LAYOUTS as u64) as usize))
                .collect();
            let stopwatch = Stopwatch::start();
            for &(place, layout) in &list {
                if let Some(set) = held[place].take() {
                    peer.free(set);
                }
                held[place] = peer.allocate(layout);
            }
            times.push(stopwatch.stop(is_real) / list.len() as f64);
        }
        let refused = held.iter().filter(|set| set.is_none()).count();
        held.into_iter().flatten().for_each(|set| peer.free(set));
        peer.finish()?;
        if refused != 0 {
            return Err(format!("{refused} sets were refused"));
        }
        // The first round is the warm-up.
        median(&times[1..]).ok_or_else(|| "nothing was measured".to_owned())
    }
}
