//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use sublet::GrowthPreset;
use sublet_report::FindingLimit;

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
    /// Turns a memory map or a recording into a page, a picture, a trace or text
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
    /// Runs any Vulkan program, and records what it does with device memory
    #[command(after_help = WATCH)]
    Watch(WatchArguments),
    /// Shows where the Vulkan layer is that `sublet watch` loads
    #[command(after_help = LAYER)]
    Layer(LayerArguments),
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
  sublet report frames.trace -o memory.html
  sublet report frames.trace --at peak -o peak.html
  sublet report frames.trace --live
  sublet report watched.trace --findings text
  sublet report watched.trace --findings junit --fail-on waste=30% --fail-on leak -o findings.xml"
);

const REPLAY: &str = examples!(
    "\
Examples:
  sublet replay frames.trace
  sublet replay frames.trace --device sim:amd-rx-6700-xt
  sublet replay frames.trace --json --no-progress
  sublet replay frames.trace --expect frames.json
  sublet replay frames.trace --map map.json
  sublet replay watched.trace --compare
  sublet replay frames.trace --growth memory-first --plot memory.html
  sublet replay frames.trace --block-size 16
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

const WATCH: &str = "\
Examples:
  sublet watch -- vkcube --c 100
  sublet watch -o cube.trace --no-names -- vkcube

The recording contains the names of the program and of its objects, unless --no-names is given. The exit code is that of
the program, 128 and the number of the signal that ended it, or one of those below if it cannot be run.
See `sublet --help`.";

const LAYER: &str = examples!(
    "\
Examples:
  sublet layer
  sublet layer --where
  sublet layer --json"
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

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FindingsFormat {
    /// Sentences, for a terminal
    Text,
    /// One JSON document
    Json,
    /// For continuous integration: a test for each kind of finding, and for each limit
    Junit,
}

#[derive(Args)]
pub(crate) struct ReportArguments {
    /// The map: Sublet's JSON, or VMA's; or a recording
    #[arg(value_name = "MAP", required_unless_present = "trace", conflicts_with = "trace")]
    pub(crate) map: Option<PathBuf>,
    /// A recording, of which one moment is shown
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// The moment of the recording: `peak`, `end`, the number of a frame, or a percentage such as 50%. Without it, a page
    /// shows the whole recording, and everything else its peak
    #[arg(long, value_name = "WHEN")]
    pub(crate) at: Option<String>,
    /// Reads the intact part of a trace that is damaged or was never ended
    #[arg(long)]
    pub(crate) partial: bool,
    /// The most memory of this machine that the simulated device may use for the trace, in MiB; else half of it
    #[arg(long, value_name = "MIB")]
    pub(crate) memory_limit: Option<u64>,
    /// Serves the page of a recording that a program is still writing, at an address of this machine, until it ends
    #[arg(long, requires = "map", conflicts_with_all = ["trace", "at", "before", "output", "format", "partial"])]
    pub(crate) live: bool,
    /// An earlier map to compare with, on a page or in tables
    #[arg(long, value_name = "MAP")]
    pub(crate) before: Option<PathBuf>,
    /// The file to write; else standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The format; else that of the output file's extension, else text
    #[arg(long, value_enum)]
    pub(crate) format: Option<OutputFormat>,
    /// Shows what the recorded program could do better, instead of its memory
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) findings: Option<FindingsFormat>,
    /// Ends with exit code 1 if a recorded program exceeds a limit: waste=30% (reserved bytes that nothing uses, at the
    /// peak), leak (memory or resources left when the device is destroyed), allocations=1000 (VkDeviceMemory at the same
    /// time). May be given several times
    #[arg(long, value_name = "LIMIT")]
    pub(crate) fail_on: Vec<FindingLimit>,
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
    /// Grows blocks by this rule, instead of that of the recorded allocator
    #[arg(long, value_name = "PRESET", conflicts_with = "compare", value_parser = growth_preset)]
    pub(crate) growth: Option<GrowthPreset>,
    /// Gives all blocks outside pools this many MiB, as far as the heap has room
    #[arg(long, value_name = "MIB", conflicts_with_all = ["growth", "compare"], value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) block_size: Option<u64>,
    /// A result of `replay --json`: any difference from it is an error
    #[arg(long, value_name = "FILE")]
    pub(crate) expect: Option<PathBuf>,
    /// Compares what the requests take with each preset for the sizes of blocks, and as one allocation each
    #[arg(long, conflicts_with_all = ["device", "expect", "map", "plot"])]
    pub(crate) compare: bool,
    /// Writes the memory map at the end to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) map: Option<PathBuf>,
    /// Writes a page of the reserved and used memory over time to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
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

#[derive(Args)]
pub(crate) struct WatchArguments {
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", last = true, required = true)]
    pub(crate) program: Vec<OsString>,
    /// The recording to write; a program with several devices or processes writes several, with a number in their name
    #[arg(short, long, value_name = "FILE", default_value = "watched.trace")]
    pub(crate) output: PathBuf,
    /// Serves a page that shows the memory while the program runs, at an address of this machine
    #[arg(long)]
    pub(crate) live: bool,
    /// The size of a file in MiB after which another one begins; the first and the newest file stay; 512 by default
    #[arg(long, value_name = "MIB")]
    pub(crate) limit: Option<u64>,
    /// Leaves out the names of the program and of its objects
    #[arg(long)]
    pub(crate) no_names: bool,
    /// Prints one JSON document on standard output when the program has ended
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct LayerArguments {
    /// Prints only the folder for `VK_ADD_LAYER_PATH`
    #[arg(long = "where")]
    pub(crate) only_folder: bool,
    /// Prints one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

impl ReportArguments {
    /// Returns true if the findings of a recording are wanted, or limits for them.
    pub(crate) fn judges(&self) -> bool {
        self.findings.is_some() || !self.fail_on.is_empty()
    }
}

impl CliCommand {
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Devices(arguments) => arguments.json,
            Self::Report(arguments) => arguments.json,
            Self::Replay(arguments) => arguments.json,
            Self::Compare(arguments) => arguments.json,
            Self::Profile(arguments) => arguments.json,
            Self::Watch(arguments) => arguments.json,
            Self::Layer(arguments) => arguments.json,
        }
    }
}

fn growth_preset(name: &str) -> Result<GrowthPreset, String> {
    let found = GrowthPreset::ALL.iter().copied().find(|preset| preset.name() == name);
    let names: Vec<_> = GrowthPreset::ALL.iter().map(|preset| preset.name()).collect();
    found.ok_or_else(|| format!("the presets are {}", names.join(", ")))
}
