//! Instructions per pair. Virtual machines rarely have hardware counters, so this program runs itself under valgrind.
//! It counts in the function `case::counted`, including C++ code called from it.

use std::process::{Command, Stdio};

use crate::case::{self, CaseSetup, Workload};
use crate::cli::Options;
use crate::gpu::Driver;
use crate::peers::PeerKind;
use crate::workloads::{self, Scale};

/// The workloads that are counted with `--quick`.
pub(crate) const QUICK: [&str; 2] = ["churn-10k-usual", "frame-linear"];

/// Returns the workloads that are counted. The others take too long under valgrind.
pub(crate) fn workloads(scale: &Scale) -> Vec<Workload> {
    const COUNTED: [&str; 8] = [
        "churn-1k-usual",
        "churn-10k-usual",
        "churn-10k-mixed",
        "order-random",
        "frame",
        "frame-linear",
        "create",
        "create-alone",
    ];
    let makers = [workloads::churn, workloads::order, workloads::frame, workloads::create];
    let all = makers.iter().flat_map(|maker| maker(scale));
    all.filter(|workload| COUNTED.contains(&workload.id.as_str())).collect()
}

/// Returns true if valgrind is installed.
pub(crate) fn available() -> bool {
    let quiet =
        Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

/// Runs one counted round in the child process. Returns the number of pairs.
pub(crate) fn child(workload: &Workload, driver: &Driver, kind: PeerKind) -> Result<f64, String> {
    let entry = workload.peers.iter().find(|entry| entry.kind == kind).ok_or("it takes no part")?;
    let place = CaseSetup { driver, granularity: workload.granularity, kind, shape: entry.shape };
    let Some(mut case) = case::case(place, workload.slots)? else { return Ok(0.0) };
    case.prepare(&workload.before, entry.share);
    let (_, pairs) = case.run(&(workload.round)(0), entry.share);
    case.finish()?;
    Ok(pairs)
}

/// Returns the instructions per pair. `None` if the peer does not support the shape.
pub(crate) fn count(id: &str, kind: PeerKind, options: &Options) -> Result<Option<f64>, String> {
    let own = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
        .arg("--toggle-collect=sublet_peers::case::counted*")
        .arg(own)
        .args(["counted", id, "--peer", kind.id(), "--seed", &options.seed.to_string()]);
    if options.quick {
        command.arg("--quick");
    }
    let output = command.output().map_err(|error| format!("valgrind: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("instructions, {id}, {}: {said}", kind.title()));
    }
    let pairs: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(0.0);
    Ok(collected(&said).filter(|_| pairs > 0.0).map(|collected| collected / pairs))
}

/// Returns the number after "Collected" in callgrind's output.
fn collected(said: &str) -> Option<f64> {
    let line = said.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_callgrind_says_is_understood() {
        let said =
            "==1== \n==1== Events    : Ir\n==1== Collected : 123456\n==1== \n==1== I   refs:      123,456\n";
        assert_eq!(collected(said), Some(123_456.0));
        assert_eq!(collected("==1== nothing"), None);
    }

    #[test]
    fn all_that_are_counted_exist() {
        let scale = Scale { seed: 1, pairs: 10, smaller: 100 };
        let found = workloads(&scale);
        assert_eq!(found.len(), 8);
        assert!(QUICK.iter().all(|quick| found.iter().any(|workload| workload.id == *quick)));
    }
}
