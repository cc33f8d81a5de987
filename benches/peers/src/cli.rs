//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::gpu::Driver;
use crate::peers::PeerKind;

/// Measures Sublet and other Vulkan memory allocators.
///
/// Tables go to standard output, progress to standard error. Every run checks its end state and ends with an error if
/// it is wrong.
#[derive(Parser, Debug)]
#[command(name = "sublet-peers", after_help = EXAMPLES, max_term_width = 110)]
pub(crate) struct PeersArguments {
    #[command(subcommand)]
    pub(crate) command: PeersCommand,
    #[command(flatten)]
    pub(crate) options: Options,
}

const EXAMPLES: &str = "\
Examples:
  sublet-peers all                                     everything, in some minutes
  sublet-peers all --quick                             everything, roughly, in less than one
  sublet-peers churn --peer sublet --peer vma          one group of workloads, two peers
  sublet-peers churn --only 10k-mixed --rounds 51      one workload, many rounds
  sublet-peers threads --threads 1,2,4,8,16            scaling
  sublet-peers create --driver vulkan --device 0       on the system's driver
  sublet-peers churn --driver sim:nvidia-h200 --quick  on a simulated driver that checks every call
  sublet-peers frames --driver vulkan                  the worst frame of a program that grows and shrinks
  sublet-peers driver --driver vulkan                  the driver's own times for memory
  sublet-peers descriptors --driver vulkan             descriptor sets, on the system's driver
  sublet-peers replay tests/traces/vello.trace         the requests of a program, on every peer
  sublet-peers instructions                            counted by valgrind, the same on every run";

/// The driver that does nothing.
const DEFAULT_DRIVER: &str = "null";

/// The workloads to measure.
#[derive(Subcommand, Debug, Clone, PartialEq, Eq)]
pub(crate) enum PeersCommand {
    /// All workloads
    All,
    /// Allocations that come and go at random
    Churn,
    /// Everything is allocated, then freed in various orders
    Order,
    /// Small buffers that live for a frame
    Frame,
    /// Levels of a game that come and go
    Level,
    /// Buffers and images next to each other
    Granularity,
    /// One block or thousands
    Blocks,
    /// A buffer with its memory, created and destroyed
    Create,
    /// Persistent descriptor sets, of which random ones are replaced
    Descriptors,
    /// Several threads, which free their own or others' allocations
    Threads,
    /// Latency of one thread's calls while vkAllocateMemory blocks another
    Growth,
    /// The slowest frame and calls of a program that grows and shrinks; most useful with `--driver vulkan`
    Frames,
    /// The time of the driver's calls of memory, and of submissions beside them; most useful with `--driver vulkan`
    Driver,
    /// Instructions per pair, with valgrind
    Instructions,
    /// Runs the same random programs on VMA and on Sublet, and compares the two after each step
    Differential {
        /// Number of programs
        #[arg(long, default_value_t = 20_000)]
        programs: u64,
        /// Only this simulated device
        #[arg(long)]
        profile: Option<String>,
    },
    /// Replays recordings of programs on each peer; with the null driver, on the recorded device's memory types
    Replay {
        /// Recordings by Sublet
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    #[command(hide = true)]
    Counted { workload: String },
}

/// Options of all commands.
#[derive(Args, Debug, Clone)]
pub(crate) struct Options {
    /// Only this peer; may be given several times
    #[arg(long = "peer", global = true, value_parser = peer)]
    pub(crate) peers: Vec<PeerKind>,
    /// Only workloads whose name contains this; may be given several times
    #[arg(long, global = true)]
    pub(crate) only: Vec<String>,
    /// Numbers of threads, separated by commas; by default up to twice the processors, at least 16
    #[arg(long, global = true, value_delimiter = ',')]
    pub(crate) threads: Vec<usize>,
    /// null, null:PROFILE, sim:PROFILE or vulkan
    #[arg(long, global = true, default_value = DEFAULT_DRIVER)]
    driver: String,
    /// Index of the system's device
    #[arg(long, global = true, default_value_t = 0)]
    device: usize,
    /// Seed of the operations
    #[arg(long, global = true, default_value_t = 42)]
    pub(crate) seed: u64,
    /// Number of rounds for each workload
    #[arg(long, global = true)]
    pub(crate) rounds: Option<u64>,
    /// Fewer rounds of fewer operations: a check that it works, with rough figures
    #[arg(long, global = true)]
    pub(crate) quick: bool,
}

impl Options {
    pub(crate) fn driver(&self) -> Result<Driver, String> {
        Driver::parse(&self.driver, self.device)
    }

    /// Returns true if no driver was named.
    pub(crate) fn has_default_driver(&self) -> bool {
        self.driver == DEFAULT_DRIVER
    }

    /// Returns true if the peer is selected.
    pub(crate) fn wants_peer(&self, kind: PeerKind) -> bool {
        self.peers.is_empty() || self.peers.contains(&kind)
    }

    /// Returns true if the workload is selected.
    pub(crate) fn wants(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| id.contains(part.as_str()))
    }

    /// Returns the numbers of threads, by default 1, 2, 4 and so on.
    pub(crate) fn thread_counts(&self) -> Vec<usize> {
        if !self.threads.is_empty() {
            return self.threads.iter().copied().filter(|count| (1..=256).contains(count)).collect();
        }
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let most = if self.quick { 4 } else { (2 * processors).clamp(16, 64) };
        [1, 2, 4, 8, 16, 32, 64].into_iter().filter(|count| *count <= most).collect()
    }
}

fn peer(text: &str) -> Result<PeerKind, String> {
    let names: Vec<_> = PeerKind::ALL.iter().map(|kind| kind.id()).collect();
    let found = PeerKind::ALL.into_iter().find(|kind| kind.id() == text);
    found.ok_or_else(|| format!("the peers are {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory as _;
        PeersArguments::command().debug_assert();
    }

    #[test]
    fn the_examples_are_understood() {
        for line in EXAMPLES.lines().skip(1) {
            let command = line.trim().split("  ").next().unwrap();
            let arguments = PeersArguments::try_parse_from(command.split_whitespace());
            let options = arguments.unwrap_or_else(|error| panic!("{command}: {error}")).options;
            assert!(options.driver().is_ok(), "{command}");
        }
    }

    #[test]
    fn filters_filter() {
        let options = |text: &str| PeersArguments::try_parse_from(text.split_whitespace()).unwrap().options;
        let all = options("p all");
        assert!(all.wants("churn-1k-usual") && all.wants_peer(PeerKind::GpuAlloc));
        let some = options("p all --only 10k --peer vma --threads 3,5");
        assert!(some.wants("churn-10k-usual") && !some.wants("churn-1k-usual"));
        assert!(some.wants_peer(PeerKind::Vma) && !some.wants_peer(PeerKind::Sublet));
        assert_eq!(some.thread_counts(), [3, 5]);
        assert!(PeersArguments::try_parse_from(["p", "all", "--peer", "nobody"]).is_err());
        assert!(options("p all --driver sim:nobody").driver().is_err());
    }
}
