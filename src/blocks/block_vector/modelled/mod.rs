//! Model checks of shards: the ring of keys, the table of shards, a shard, and a whole vector. See `base::sync::model`.

mod returns;
mod shard;
mod table;
mod vector;

use loom::sync::Arc;
use loom::thread::JoinHandle;

use super::*;
use crate::base::sync::model::{Outcomes, check, check_deep, spawn_deep};
use crate::base::sync::thread_token;
use crate::engine::Algorithm;
use crate::pool::BlockSizing;
use sublet_engines::{Alignment, Strategy};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A vector with one block, whose leased ranges have at most 2 MiB.
fn config() -> VectorConfig {
    VectorConfig {
        memory_type: 0,
        algorithm: Algorithm::Tlsf,
        block_size: 32 * MIB,
        sizing: BlockSizing::Vma,
        fixed_block_size: true,
        min_blocks: 1,
        max_blocks: 1,
        empty_blocks_kept: 1,
        keeps_only_last: false,
        granularity: Alignment::ONE,
        min_alignment: Alignment::ONE,
        priority: 0.5,
        next: crate::device::MemoryAllocateNext::NONE,
        scope: None,
    }
}

fn request(size: u64) -> VectorRequest {
    VectorRequest {
        size,
        alignment: Alignment::ONE,
        strategy: Strategy::Balanced,
        upper: false,
        tag: Tag(7),
        whole_pages: false,
        mapped: false,
        never_allocate: true,
        within_budget: false,
    }
}

fn live(grant: Grant) -> AllocationKey {
    let Grant { generation, key, shard, .. } = grant;
    AllocationKey { generation, key, dedicated: false, shard }
}

/// Starts a thread that shares `what`.
fn spawn<V: Send + Sync + 'static, R: Send + 'static>(
    what: &Arc<V>,
    run: impl FnOnce(&V) -> R + Send + 'static,
) -> JoinHandle<R> {
    let what = Arc::clone(what);
    spawn_deep(move || run(&what))
}
