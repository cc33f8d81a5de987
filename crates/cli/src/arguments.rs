//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::failure::EXIT_CODES;

/// Inspects device memory, memory maps and recordings of allocators.
#[derive(Parser)]
#[command(name = "sublet", version, about, after_help = EXIT_CODES, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

#[derive(Subcommand)]
pub(crate) enum CliCommand {
    /// Shows devices: heaps, memory types, limits, and the memory that Sublet chooses for each usage
    #[command(after_help = DEVICES)]
    Devices(DevicesArguments),
    /// Turns a memory map into a page, a picture, a trace or text
    #[command(after_help = REPORT)]
    Report(ReportArguments),
    /// Replays the requests of a recorded program, and measures them
    #[command(after_help = REPLAY)]
    Replay(ReplayArguments),
    /// Compares two memory maps, or two replays
    #[command(after_help = COMPARE)]
    Compare(CompareArguments),
    /// Measures a device, and writes it as a profile for the simulated device
    #[command(after_help = PROFILE)]
    Profile(ProfileArguments),
}

/// Examples, and the text below all of them.
macro_rules! examples {
    ($examples:literal) => {
        concat!(
            $examples,
            "\n\nExit codes: 0 fine, 1 not as expected, 2 arguments, 3 file, 4 no device, 5 driver. See `sublet --help`."
        )
    };
}

const DEVICES: &str = examples!(
    "\
Examples:
  sublet devices
  sublet devices --sim
  sublet devices --device 0 --json
  sublet devices --device sim:nvidia-h200
  sublet devices --device profile.json"
);

const REPORT: &str = examples!(
    "\
Examples:
  sublet report map.json
  sublet report map.json -o map.html
  sublet report map.json --before before.json -o difference.html
  sublet report map.json -o map.svg
  sublet report map.json --format perfetto -o map.trace.json
  sublet report --trace frames.trace --at peak -o peak.html"
);

const REPLAY: &str = examples!(
    "\
Examples:
  sublet replay frames.trace
  sublet replay frames.trace --device sim:amd-rx-6700-xt
  sublet replay frames.trace --json --no-progress
  sublet replay frames.trace --expect frames.json
  sublet replay frames.trace --map map.json
  sublet replay frames.trace --partial"
);

const COMPARE: &str = examples!(
    "\
Examples:
  sublet compare before.json map.json
  sublet compare before.json map.json --json
  sublet compare map.json map.json --fail-above 5"
);

const PROFILE: &str = examples!(
    "\
Examples:
  sublet profile
  sublet profile --device 0 -o profile.json
  sublet profile --device sim:arm-mali-g52 -o mali.json"
);

/// The forms of a device's name, and the default device.
macro_rules! device_help {
    ($otherwise:literal) => {
        concat!(
            "A device: its number or a part of its name as `sublet devices` shows them, sim:NAME for a simulated one, ",
            "or a file with a profile; else ",
            $otherwise
        )
    };
}

#[derive(Args)]
pub(crate) struct DevicesArguments {
    #[arg(long, value_name = "DEVICE", help = device_help!("all that drivers have"))]
    pub(crate) device: Option<String>,
    /// Lists the simulated devices as well
    #[arg(long, conflicts_with = "device")]
    pub(crate) sim: bool,
    /// Prints one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// One self-contained page for a browser
    Html,
    /// An SVG picture
    Svg,
    /// For ui.perfetto.dev and chrome://tracing
    Perfetto,
    /// Tables
    Text,
    /// The memory map in Sublet's own schema
    Json,
}

#[derive(Args)]
pub(crate) struct ReportArguments {
    /// The map: Sublet's JSON, or VMA's
    #[arg(value_name = "MAP", required_unless_present = "trace", conflicts_with = "trace")]
    pub(crate) map: Option<PathBuf>,
    /// A recorded program to replay on the simulated device, instead of a map
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// The moment in the trace: `peak` (default), `end`, the number of a frame, or a percentage such as 50%
    #[arg(long, value_name = "WHEN")]
    pub(crate) at: Option<String>,
    /// Reads the intact part of a trace that is damaged or was never ended
    #[arg(long)]
    pub(crate) partial: bool,
    /// The most memory of this machine that the simulated device may use for the trace, in MiB; else half of it
    #[arg(long, value_name = "MIB")]
    pub(crate) memory_limit: Option<u64>,
    /// An earlier map to compare with, on a page or in tables
    #[arg(long, value_name = "MAP")]
    pub(crate) before: Option<PathBuf>,
    /// The file to write; else standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The format; else that of the output file's extension, else text
    #[arg(long, value_enum)]
    pub(crate) format: Option<OutputFormat>,
    /// The report's title
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// Prints one JSON document: the figures, and the path of the report
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ReplayArguments {
    /// The recording
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    #[arg(long, value_name = "DEVICE", help = device_help!("the one of the trace, simulated"))]
    pub(crate) device: Option<String>,
    /// Reads the intact part of a trace that is damaged or was never ended
    #[arg(long)]
    pub(crate) partial: bool,
    /// The most memory of this machine that the simulated device may use for the trace, in MiB; else half of it
    #[arg(long, value_name = "MIB")]
    pub(crate) memory_limit: Option<u64>,
    /// A result of `replay --json`: any difference from it is an error
    #[arg(long, value_name = "FILE")]
    pub(crate) expect: Option<PathBuf>,
    /// Writes the memory map at the end to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) map: Option<PathBuf>,
    /// Hides the progress bar, even on a terminal
    #[arg(long)]
    pub(crate) no_progress: bool,
    /// Prints one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct CompareArguments {
    /// A memory map (Sublet's JSON, or VMA's), or a result of `replay --json`
    #[arg(value_name = "BEFORE")]
    pub(crate) before: PathBuf,
    /// Another of the same kind
    #[arg(value_name = "NOW")]
    pub(crate) now: PathBuf,
    /// Ends with exit code 1 if reserved bytes, used bytes or blocks grew by more than this many percent
    #[arg(long, value_name = "PERCENT")]
    pub(crate) fail_above: Option<f64>,
    /// Prints one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ProfileArguments {
    #[arg(long, value_name = "DEVICE", help = device_help!("the best one"))]
    pub(crate) device: Option<String>,
    /// The file to write; else standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Prints one JSON document: the profile, or its path
    #[arg(long)]
    pub(crate) json: bool,
}

impl CliCommand {
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Devices(arguments) => arguments.json,
            Self::Report(arguments) => arguments.json,
            Self::Replay(arguments) => arguments.json,
            Self::Compare(arguments) => arguments.json,
            Self::Profile(arguments) => arguments.json,
        }
    }
}
