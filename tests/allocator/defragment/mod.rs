//! Defragmentation through the public API.

mod cycles;
mod interface;

use ash::vk;
use sublet::{
    Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationId,
    BeginDefragmentationError, Defragmentation, DefragmentationAlgorithm, DefragmentationInfo, MemoryUsage,
    Move, MoveError, Pool, PoolCreateFlags, PoolCreateInfo,
};

use crate::common::*;

const ALGORITHMS: [DefragmentationAlgorithm; 4] = [
    DefragmentationAlgorithm::Fast,
    DefragmentationAlgorithm::Balanced,
    DefragmentationAlgorithm::Full,
    DefragmentationAlgorithm::Extensive,
];

/// Returns the index of the allocation with this id.
fn place(held: &[Allocation], id: AllocationId) -> usize {
    held.iter().position(|allocation| allocation.id() == id).expect("a move of what is held")
}

fn complete(moved: Move<'_>, allocation: &mut Allocation) {
    // SAFETY: nothing is bound to it, or the device no longer uses the bound resource.
    unsafe { moved.complete(allocation) }.unwrap();
}

/// Runs passes until there is nothing left to move.
fn run(
    mut defragmentation: Defragmentation<'_>,
    held: &mut [Allocation],
) -> sublet::DefragmentationStatistics {
    while let Some(pass) = defragmentation.begin_pass() {
        for moved in pass {
            let at = place(held, moved.source());
            complete(moved, &mut held[at]);
        }
    }
    defragmentation.end()
}

/// Creates a pool with four blocks of 1 MiB, each a quarter used.
fn sparse_pool(fixture: &Fixture, memory_type: u32, flags: Flags) -> (Pool, Vec<Allocation>) {
    let flags_of_pool = PoolCreateFlags::IGNORE_BUFFER_IMAGE_GRANULARITY;
    let info = PoolCreateInfo { block_size: MIB, flags: flags_of_pool, ..PoolCreateInfo::new(memory_type) };
    let pool = fixture.pool(&info).unwrap();
    let asked = AllocationCreateInfo { flags, ..AllocationCreateInfo::in_pool(&pool) };
    let all: Vec<_> = (0..64).map(|_| fixture.memory(64 * KIB, 256, &asked).unwrap()).collect();
    let (held, freed): (Vec<_>, Vec<_>) = all.into_iter().enumerate().partition(|(at, _)| at % 4 == 1);
    fixture.free_all(freed.into_iter().map(|(_, allocation)| allocation));
    (pool, held.into_iter().map(|(_, allocation)| allocation).collect())
}
