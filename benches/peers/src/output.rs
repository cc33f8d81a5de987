//! Standard output besides tables: texts, and figures as tables show them.

use std::io::Write as _;

use crate::peers::PeerKind;
use crate::statistics::{Percentiles, number};
use crate::workloads::descriptors::ROWS;
use crate::workloads::{self, Scale};

/// Formats p50 / p99 / p99.9 / max, in whole nanoseconds.
pub(crate) fn percentiles(found: Percentiles) -> String {
    let Percentiles { p50, p99, p999, max } = found;
    [p50, p99, p999, max].map(|value| number(value.round())).map(|text| trimmed(&text)).join(" / ")
}

/// Removes decimals, because these are whole nanoseconds.
fn trimmed(text: &str) -> String {
    text.trim_end_matches(".00").trim_end_matches(".0").to_owned()
}

/// Prints all names.
pub(crate) fn list(scale: &Scale) -> Result<(), String> {
    let row = |name: &str, title: &str| format!("  {name:<20} {title}\n");
    let mut text = "Workloads:\n".to_owned();
    for workload in workloads::all().flat_map(|maker| maker(scale)) {
        text.push_str(&row(&workload.id, &workload.title));
    }
    ROWS.iter().for_each(|one| text.push_str(&row(one.id, one.title)));
    text.push_str("  threads-local, threads-remote, threads-exchange, growth\nPeers:\n");
    PeerKind::ALL.iter().for_each(|kind| text.push_str(&row(kind.id(), kind.title())));
    text.push_str("Profiles of simulated devices:\n");
    sublet::sim::Profile::names().for_each(|name| text.push_str(&row(name, "")));
    say(&text)
}

/// Prints to standard output. It may be closed, or its disk full.
pub(crate) fn say(text: &str) -> Result<(), String> {
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes()).map_err(|error| format!("standard output: {error}"))
}

/// Returns the system's description of its processor.
pub(crate) fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| "unknown processor".to_owned(), |(_, name)| name.trim().to_owned())
}

/// Returns true if other processes use the machine, if the system reports it.
pub(crate) fn is_busy() -> bool {
    // This process is part of the load.
    const OWN_LOAD: f64 = 1.0;
    const LITTLE: f64 = 0.7;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().and_then(|load| load.parse::<f64>().ok());
    load.is_some_and(|load| load > OWN_LOAD + LITTLE)
}
