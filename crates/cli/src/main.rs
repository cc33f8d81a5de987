//! `sublet`: inspects device memory, memory maps and recordings of allocators, and records programs.
//!
//! Each subcommand is one file and returns an [`Answer`](answer::Answer), which `main` prints.
#![deny(unsafe_code, clippy::print_stdout, clippy::print_stderr)]

mod answer;
mod arguments;
mod change;
mod choices;
mod compare;
mod describe;
mod devices;
#[cfg(unix)]
mod disposition;
mod failure;
mod files;
mod findings;
mod growing;
mod layer;
mod live;
mod maps;
mod outcome;
mod play;
mod profile;
mod progress;
mod replay;
mod report;
mod select;
mod signals;
mod table;
mod text;
mod totals;
mod vulkan;
mod watch;

use std::process::ExitCode;

use clap::Parser as _;

use answer::Answer;
use arguments::{Arguments, CliCommand};
use failure::CommandFailure;

fn run(command: &CliCommand) -> Result<Answer, CommandFailure> {
    match command {
        CliCommand::Devices(arguments) => devices::run(arguments),
        CliCommand::Report(arguments) => report::run(arguments),
        CliCommand::Replay(arguments) => replay::run(arguments),
        CliCommand::Compare(arguments) => compare::run(arguments),
        CliCommand::Profile(arguments) => profile::run(arguments),
        CliCommand::Watch(arguments) => watch::run(arguments),
        CliCommand::Layer(arguments) => layer::run(arguments),
    }
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // clap reports help and version as errors with exit code 0.
        Err(told) => return answer::print_usage(&told, std::env::args_os().any(|word| word == "--json")),
    };
    let json = arguments.command.json();
    match run(&arguments.command) {
        Ok(answer) => answer.print(json),
        Err(failure) => failure.print(json),
    }
}
