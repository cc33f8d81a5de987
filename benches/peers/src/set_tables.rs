//! The table of descriptor sets.

use crate::cli::Options;
use crate::gpu::{Driver, TestGpu};
use crate::statistics::number;
use crate::table::AlignedTable;
use crate::workloads::Scale;
use crate::workloads::descriptors::{Giver, ROWS, sets};

/// Returns the requested driver. For the null driver, adds the system's driver if there is one, because the cost of
/// driver calls matters here.
pub(crate) fn drivers(asked: &Driver) -> Vec<Driver> {
    let real = Driver::Vulkan(0);
    let has_real = matches!(asked, Driver::Null(_)) && TestGpu::new(&real, None).is_ok();
    std::iter::once(asked.clone()).chain(has_real.then_some(real)).collect()
}

/// Returns title, note and table, and calls `tell` with each result.
pub(crate) fn table(
    driver: &Driver,
    options: &Options,
    scale: &Scale,
    rounds: u64,
    mut tell: impl FnMut(&'static str, Giver, f64),
) -> Result<(String, &'static str, AlignedTable), String> {
    const TIMES: &str = "Eight layouts of four shapes; medians of rounds. `driver` is the driver alone, with pools that are large \
                         enough and nobody who counts: single sets are freed, and for frames whole pools are reset. \
                         gpu-descriptor and what is done as in wgpu-hal are measured without the lock that their users put \
                         around them.";
    let mut times = AlignedTable::new(std::iter::once("").chain(Giver::ALL.map(Giver::title)));
    for row in ROWS.iter().filter(|row| options.wants(row.id)) {
        let mut found = Vec::new();
        for giver in Giver::ALL {
            let figures = sets(row, giver, driver, scale, rounds)?;
            if let Some(figures) = figures {
                tell(row.id, giver, figures);
            }
            found.push(figures);
        }
        let cells: Vec<String> = found.iter().map(|found| found.map_or("-".to_owned(), number)).collect();
        times.row(std::iter::once(row.title.to_owned()).chain(cells));
    }
    let description = TestGpu::new(driver, None)?.description();
    Ok((format!("Descriptor sets, nanoseconds for each set, {driver}: {description}"), TIMES, times))
}
