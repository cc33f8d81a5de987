//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::gpu::Driver;
use crate::peers::PeerKind;
use crate::peers::replay::WgpuHint;

/// Sublet beside other Vulkan memory allocators.
///
/// Tables go to standard output, progress to standard error. Every run checks its end state and ends with an error if
/// it is wrong.
#[derive(Parser, Debug)]
#[command(name = "sublet-peers", after_help = EXAMPLES, max_term_width = 110)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
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
  sublet-peers descriptors --driver vulkan             descriptor sets, on the system's driver
  sublet-peers replay tests/traces/vello.trace         what a program asked for, asked of every peer
  sublet-peers replay tests/traces/vello.trace --wgpu-hint performance  under the sizes that wgpu gives gpu-allocator
  sublet-peers instructions                            counted by valgrind, the same on every run";

/// The one that does nothing.
const DEFAULT_DRIVER: &str = "null";

/// What is to be measured.
#[derive(Subcommand, Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    /// Everything
    All,
    /// Allocations that come and go at random
    Churn,
    /// Everything allocated, then freed in one order or another
    Order,
    /// Small buffers that live for a frame
    Frame,
    /// Levels of a game that come and go
    Level,
    /// How much fits into a full heap or pool
    Fill,
    /// Buffers and images side by side
    Granularity,
    /// One block or thousands
    Blocks,
    /// A buffer with its memory, created and destroyed
    Create,
    /// Engines without memory, lock and driver
    Engines,
    /// Descriptor sets: those that live long, and those of frames
    Descriptors,
    /// Several threads, which free what they or others have allocated
    Threads,
    /// Calls of one thread while vkAllocateMemory keeps another
    Growth,
    /// Instructions of a pair, with valgrind
    Instructions,
    /// The same random programs given to VMA and to Sublet, and the two compared after each step
    Differential {
        /// How many programs
        #[arg(long, default_value_t = 20_000)]
        programs: u64,
        /// Only this simulated device
        #[arg(long)]
        profile: Option<String>,
    },
    /// Traces of programs, replayed on each peer. With the null driver, on the recorded device's memory types
    Replay {
        /// Files that Sublet recorded
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// gpu-allocator's block sizes are those that wgpu takes for this hint, and its stand-in takes part with the
        /// same
        #[arg(long)]
        wgpu_hint: Option<WgpuHint>,
    },
    /// The names of the workloads, peers and simulated devices
    List,
    #[command(hide = true)]
    Counted { workload: String },
}

/// What every command takes.
#[derive(Args, Debug, Clone)]
pub(crate) struct Options {
    /// Only this peer; may be given several times
    #[arg(long = "peer", global = true, value_parser = peer)]
    pub(crate) peers: Vec<PeerKind>,
    /// Only workloads whose name contains this; may be given several times
    #[arg(long, global = true)]
    pub(crate) only: Vec<String>,
    /// Numbers of threads, with commas between; by default up to twice the processors, and 16 at least
    #[arg(long, global = true, value_delimiter = ',')]
    pub(crate) threads: Vec<usize>,
    /// null, null:PROFILE, sim:PROFILE or vulkan
    #[arg(long, global = true, default_value = DEFAULT_DRIVER)]
    driver: String,
    /// Which of the system's devices
    #[arg(long, global = true, default_value_t = 0)]
    device: usize,
    /// Where the lists of operations start from
    #[arg(long, global = true, default_value_t = 42)]
    pub(crate) seed: u64,
    /// How often each workload is measured
    #[arg(long, global = true)]
    pub(crate) rounds: Option<u64>,
    /// Fewer rounds of fewer operations: to see that it works, and the first digit
    #[arg(long, global = true)]
    pub(crate) quick: bool,
}

impl Options {
    pub(crate) fn driver(&self) -> Result<Driver, String> {
        Driver::parse(&self.driver, self.device)
    }

    /// Whether no driver was named.
    pub(crate) fn has_default_driver(&self) -> bool {
        self.driver == DEFAULT_DRIVER
    }

    /// Whether the peer is asked for.
    pub(crate) fn wants_peer(&self, kind: PeerKind) -> bool {
        self.peers.is_empty() || self.peers.contains(&kind)
    }

    /// Whether the workload is asked for.
    pub(crate) fn wants(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| id.contains(part.as_str()))
    }

    /// 1, 2, 4 and so on.
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
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_examples_are_understood() {
        for line in EXAMPLES.lines().skip(1) {
            let command = line.trim().split("  ").next().unwrap();
            let arguments = Arguments::try_parse_from(command.split_whitespace());
            let options = arguments.unwrap_or_else(|error| panic!("{command}: {error}")).options;
            assert!(options.driver().is_ok(), "{command}");
        }
    }

    #[test]
    fn filters_filter() {
        let options = |text: &str| Arguments::try_parse_from(text.split_whitespace()).unwrap().options;
        let all = options("p all");
        assert!(all.wants("churn-1k-usual") && all.wants_peer(PeerKind::Rlsf));
        let some = options("p all --only 10k --peer vma --threads 3,5");
        assert!(some.wants("churn-10k-usual") && !some.wants("churn-1k-usual"));
        assert!(some.wants_peer(PeerKind::Vma) && !some.wants_peer(PeerKind::Sublet));
        assert_eq!(some.thread_counts(), [3, 5]);
        assert!(Arguments::try_parse_from(["p", "all", "--peer", "nobody"]).is_err());
        assert!(options("p all --driver sim:nobody").driver().is_err());
    }
}
