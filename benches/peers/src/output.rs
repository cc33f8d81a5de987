//! Standard output, and the description of the machine.

use std::io::Write as _;

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
