//! Sublet measured beside the other allocators for Vulkan memory that its users would choose from.
//!
//! `cargo run --release -p sublet-peers -- all` prints tables in Markdown; `--help` has the rest. This package is the
//! only one that needs a C++ compiler, for VMA.
//!
//! What is done to the peers is in `workloads`, how they are driven in `peers`, and what stands between them and the
//! driver in `gpu`. The lists of operations are made before anything is measured, from a fixed seed.
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
mod heap;
mod instructions;
mod output;
mod peers;
mod replay;
mod results;
mod ring;
mod script;
mod session;
mod set_tables;
mod statistics;
mod table;
#[cfg(test)]
mod tests;
mod workloads;

use std::process::ExitCode;

use clap::Parser as _;

use crate::session::Session;

#[global_allocator]
static HEAP: heap::Counting = heap::Counting;

/// The versions of all peers, as `build.rs` found them in Cargo.lock.
const VERSIONS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/versions.rs"));

fn main() -> ExitCode {
    let arguments = cli::Arguments::parse();
    let ran = Session::new(&arguments.options).and_then(|mut session| session.run(&arguments.command));
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sublet-peers: {error}");
            ExitCode::FAILURE
        }
    }
}
