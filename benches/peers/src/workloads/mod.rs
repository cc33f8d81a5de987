//! The operations on the peers. Each group of workloads is one file.

mod blocks;
mod churn;
mod create;
mod frame;
mod granularity;
mod level;
mod order;

pub(crate) mod descriptors;
pub(crate) mod driver;
pub(crate) mod frames;
pub(crate) mod growth;
pub(crate) mod threads;

pub(crate) use self::blocks::blocks;
pub(crate) use self::churn::churn;
pub(crate) use self::create::create;
pub(crate) use self::frame::frame;
pub(crate) use self::granularity::granularity;
pub(crate) use self::level::level;
pub(crate) use self::order::order;

use crate::case::{Participant, Workload};
use crate::peers::{PeerKind, PeerMode};

/// The size of the workloads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) seed: u64,
    /// Pairs per round.
    pub(crate) pairs: usize,
    /// Divisor of the numbers of live allocations.
    pub(crate) smaller: usize,
}

impl Scale {
    fn live(&self, count: usize) -> usize {
        (count / self.smaller).max(10)
    }

    /// Returns a seed that is unique to a workload and a round.
    fn seed(&self, salt: u64, round: u64) -> u64 {
        self.seed ^ (salt << 40) ^ (round + 1)
    }
}

/// Creates the workloads that make up the rows of one table.
pub(crate) type MakeWorkloads = fn(&Scale) -> Vec<Workload>;

/// All groups of workloads.
pub(crate) const ALL: [MakeWorkloads; 7] = [churn, order, frame, level, granularity, blocks, create];

/// The allocators that a program would choose from.
pub(crate) const WHOLE: [PeerKind; 4] =
    [PeerKind::Sublet, PeerKind::Vma, PeerKind::GpuAllocator, PeerKind::GpuAlloc];

/// All of them in the same shape. Slow ones do a part of the replacements.
fn whole(shape: PeerMode, live: usize) -> Vec<Participant> {
    WHOLE.iter().map(|&kind| Participant { kind, shape, share: kind.patience(live) }).collect()
}

/// Formats 1,000 as `1k`.
fn short(count: usize) -> String {
    if count >= 1_000 && count % 1_000 == 0 { format!("{}k", count / 1_000) } else { count.to_string() }
}
