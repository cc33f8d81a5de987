//! The tables of descriptor sets.

use crate::cli::Options;
use crate::gpu::{Driver, TestGpu};
use crate::statistics::number;
use crate::table::AlignedTable;
use crate::workloads::Scale;
use crate::workloads::descriptors::{Giver, ROWS, SetFigures, sets};

/// Returns the requested driver. For the null driver, adds the system's driver if there is one, because the cost of
/// driver calls matters here.
pub(crate) fn drivers(asked: &Driver) -> Vec<Driver> {
    let real = Driver::Vulkan(0);
    let has_real = matches!(asked, Driver::Null(_)) && TestGpu::new(&real, None).is_ok();
    std::iter::once(asked.clone()).chain(has_real.then_some(real)).collect()
}

/// Prints title, note and table, and stores the results.
pub(crate) fn tables(
    driver: &Driver,
    options: &Options,
    scale: &Scale,
    rounds: u64,
    mut tell: impl FnMut(&'static str, Giver, SetFigures),
) -> Result<[(String, &'static str, AlignedTable); 2], String> {
    const TIMES: &str = "Eight layouts of four shapes; medians of rounds. `driver` is the driver alone, with pools that are large \
                         enough and nobody who counts: single sets are freed, and for frames whole pools are reset. \
                         gpu-descriptor and what is done as in wgpu-hal are measured without the lock that their users put \
                         around them.";
    const POOLS: &str = "Sublet's persistent sets are kept for their layouts, and so the driver is called only where another \
                         layout needs the place.";
    let heads = || std::iter::once("").chain(Giver::ALL.map(Giver::title));
    let (mut times, mut pools) = (AlignedTable::new(heads()), AlignedTable::new(heads()));
    for row in ROWS.iter().filter(|row| options.wants(row.id)) {
        let mut found = Vec::new();
        for giver in Giver::ALL {
            let figures = sets(row, giver, driver, scale, rounds)?;
            if let Some(figures) = figures {
                tell(row.id, giver, figures);
            }
            found.push(figures);
        }
        let cells = |of: &dyn Fn(&SetFigures) -> String| {
            let cell = |figures: &Option<SetFigures>| figures.as_ref().map_or("-".to_owned(), of);
            let cells: Vec<String> = found.iter().map(cell).collect();
            std::iter::once(row.title.to_owned()).chain(cells)
        };
        times.row(cells(&|figures| number(figures.nanoseconds)));
        pools.row(cells(&|figures| figures.pools.to_string()));
    }
    let description = TestGpu::new(driver, None)?.description();
    Ok([
        (format!("Descriptor sets, nanoseconds for each set, {driver}: {description}"), TIMES, times),
        (format!("Descriptor pools in the end, {driver}"), POOLS, pools),
    ])
}
