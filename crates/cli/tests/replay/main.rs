//! Replays traces of real programs, from `tests/traces`, and of random programs.
//!
//! Every `tests/traces/NAME.trace` has a `tests/traces/NAME.json` beside it: the report of its replay, without the
//! times, on the simulated device that it was recorded for, and on a few others. [`committed`] says what the programs
//! are, and how they are recorded. `SUBLET_BLESS=1 cargo test --test replay` writes the reports anew.
#![allow(clippy::unwrap_used, reason = "a test")]

mod committed;
mod damage;
mod expected;
// What the command prints is what the committed files say: `sublet replay --expect` reads them.
#[path = "../../src/outcome.rs"]
mod outcome;
mod program;
mod random;

use std::fs;
use std::path::PathBuf;

/// The committed traces: name and bytes, in the order of their names.
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
