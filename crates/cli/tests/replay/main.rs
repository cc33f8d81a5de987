//! Replays traces of real programs, from `tests/traces`, and of random programs.
//!
//! Each `tests/traces/NAME.trace` has a `tests/traces/NAME.json`: the report of its replay, without the times, on the
//! simulated device that it was recorded for and on a few others. [`committed`] describes the programs and how to
//! record them. `SUBLET_BLESS=1 cargo test --test replay` rewrites the reports.
#![allow(clippy::unwrap_used, reason = "a test")]

mod committed;
mod expected;
// Shared with the command, because `sublet replay --expect` reads the committed files.
#[path = "../../src/outcome.rs"]
mod outcome;
mod program;
mod random;

use std::fs;
use std::path::PathBuf;

/// Returns names and bytes of the committed traces, sorted by name.
fn traces() -> Vec<(String, Vec<u8>)> {
    let folder = folder();
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "trace"));
    paths.sort_unstable();
    let name = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    paths.iter().map(|path| (name(path), fs::read(path).unwrap())).collect()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces")
}
