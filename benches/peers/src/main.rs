//! Measures Sublet against other allocators for Vulkan memory.
//!
//! `cargo run --profile bench -p sublet-peers -- all` prints tables in Markdown; `--help` describes the rest. Only this
//! package needs a C++ compiler, for VMA.
//!
//! `workloads` has the operations, `peers` the allocators, and `gpu` the layer between them and the driver. The
//! operations are generated before anything is measured, from a fixed seed.
#![deny(unsafe_code)]
#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "a benchmark's own arithmetic, on numbers that are far from any limit"
)]

mod case;
mod cli;
mod clock;
mod differential;
mod gpu;
mod gpu_work;
mod heap;
mod instructions;
mod output;
mod peers;
mod replay;
mod script;
mod session;
mod statistics;
mod table;
#[cfg(test)]
mod tests;
mod workloads;

use std::process::ExitCode;

use clap::Parser as _;

use crate::session::Session;

/// The versions of all peers, which `build.rs` read from Cargo.lock.
const VERSIONS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/versions.rs"));

fn main() -> ExitCode {
    let arguments = cli::PeersArguments::parse();
    let ran = Session::new(&arguments.options).and_then(|session| session.run(&arguments.command));
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sublet-peers: {error}");
            ExitCode::FAILURE
        }
    }
}
