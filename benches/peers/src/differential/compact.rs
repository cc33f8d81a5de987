//! Defragments the same memory on both sides.

use std::ops::AddAssign;

use sublet::{
    AllocationCreateFlags as Flags, AllocatorCreateFlags, DefragmentationAlgorithm, MemoryUsage, sim,
};

use super::memory::SideMemory;
use super::program::{PoolSpec, ProgramResource, ProgramSetup, Spec};
use super::side::{Compacted, CompactionSettings, Placement, Side};
use super::sublet_side::SubletSide;
use super::vma_side::VmaSide;
use crate::script::Random;

const ALGORITHMS: [DefragmentationAlgorithm; 4] = [
    DefragmentationAlgorithm::Fast,
    DefragmentationAlgorithm::Balanced,
    DefragmentationAlgorithm::Full,
    DefragmentationAlgorithm::Extensive,
];

/// Sums over many heaps.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Gains {
    pub(super) heaps: u64,
    /// Number of heaps that differed at the start.
    pub(super) others: u64,
    /// Number of heaps of which Sublet, or VMA, freed more, by algorithm.
    pub(super) more: [u64; 4],
    pub(super) less: [u64; 4],
    pub(super) vma: CompactionSums,
    pub(super) sublet: CompactionSums,
}

/// Sums of one side, in bytes except for the moves.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct CompactionSums {
    pub(super) freed: u128,
    pub(super) moved: u128,
    pub(super) moves: u64,
}

impl AddAssign<&Compacted> for CompactionSums {
    fn add_assign(&mut self, done: &Compacted) {
        self.freed += u128::from(done.bytes_freed);
        self.moved += u128::from(done.bytes_moved);
        self.moves += done.moves;
    }
}

impl Gains {
    pub(super) fn add(&mut self, other: &Self) {
        self.heaps += other.heaps;
        self.others += other.others;
        for (count, other) in
            self.more.iter_mut().chain(&mut self.less).zip(other.more.iter().chain(&other.less))
        {
            *count += other;
        }
        for (sums, other) in [(&mut self.vma, &other.vma), (&mut self.sublet, &other.sublet)] {
            sums.freed += other.freed;
            sums.moved += other.moved;
            sums.moves += other.moves;
        }
    }
}

/// The operations on each side: the pool, allocated sizes, and freed slots.
struct CompactHeap {
    pool: Option<PoolSpec>,
    sizes: Vec<(u64, u64)>,
    freed: Vec<usize>,
}

fn heap(random: &mut Random, memory_type: u32) -> CompactHeap {
    let pool = (random.below(3) != 0).then(|| PoolSpec {
        memory_type,
        flags: sublet::PoolCreateFlags::empty(),
        linear: false,
        block_size: 1 << (18 + random.below(4)),
        min_blocks: 0,
        max_blocks: 0,
        priority: 0.5,
        min_alignment: 0,
    });
    let block = pool.map_or(4 << 20, |pool| pool.block_size);
    let most = block / (3 + random.below(30));
    let alignments = [16, 256, 256, 4096];
    let count = 20 + random.below(120);
    let sizes = (0..count).map(|_| {
        let size = 1 + random.below(most.max(2));
        (size, alignments[random.below(4) as usize])
    });
    let sizes: Vec<_> = sizes.collect();
    let share = 20 + random.below(70);
    // The first allocation stays, because VMA divides by the number of allocations.
    let freed = (1..sizes.len()).filter(|_| random.below(100) < share).collect();
    CompactHeap { pool, sizes, freed }
}

/// Bytes before and after, and the result.
type CompactionResult = (u64, u64, Compacted);

fn one<S: Side>(
    mut side: S,
    heap: &CompactHeap,
    how: &CompactionSettings,
) -> Result<(CompactionResult, Vec<Placement>), String> {
    if let Some(pool) = &heap.pool {
        side.create_pool(0, pool).map_err(|failed| format!("no pool: {failed:?}"))?;
    }
    let none = ash::vk::MemoryPropertyFlags::empty();
    let flags = Flags::empty();
    let spec = Spec {
        flags,
        usage: MemoryUsage::GpuOnly,
        required: none,
        preferred: none,
        bits: 0,
        pool: None,
        priority: 0.5,
    };
    let pool = heap.pool.map(|_| 0);
    for (slot, (size, alignment)) in heap.sizes.iter().enumerate() {
        let resource = ProgramResource::Raw { size: *size, alignment: *alignment, bits: u32::MAX };
        side.allocate(slot, &resource, &spec, pool).map_err(|failed| format!("no room: {failed:?}"))?;
    }
    heap.freed.iter().for_each(|slot| side.free(*slot));
    let mut memory = SideMemory::default();
    memory.enter(&side.tap().take(), None);
    let before = memory.bytes(|_| true);
    let done = side.compact(how);
    side.validate();
    memory.enter(&side.tap().take(), None);
    let after = memory.bytes(|_| true);
    let live = (0..heap.sizes.len()).filter(|slot| !heap.freed.contains(slot));
    let live: Vec<_> = live.collect();
    let places = live.iter().map(|slot| side.place(*slot)).collect();
    live.iter().for_each(|slot| side.free(*slot));
    pool.into_iter().for_each(|slot| side.destroy_pool(slot));
    let messages = side.finish();
    if messages.is_empty() { Ok(((before, after, done), places)) } else { Err(messages.join("; ")) }
}

/// Fragments memory and defragments it.
///
/// # Errors
/// If Sublet's allocations overlap afterwards, a limit was exceeded, or Sublet's count of freed bytes differs from the
/// driver's.
pub(super) fn compact(seed: u64, profile: &'static sim::Profile) -> Result<Gains, String> {
    let mut random = Random::new(seed);
    let setup = ProgramSetup {
        profile,
        minor: ash::vk::api_version_minor(profile.api_version).min(4),
        flags: AllocatorCreateFlags::empty(),
        large_block: 4 << 20,
        heap_limits: Vec::new(),
        max_count: None,
        empty_blocks_kept: 0,
    };
    let memory_type = random.below(profile.types.len() as u64) as u32;
    let amd =
        profile.types[memory_type as usize].flags.contains(ash::vk::MemoryPropertyFlags::DEVICE_COHERENT_AMD);
    let heap = heap(&mut random, if amd { 0 } else { memory_type });
    let algorithm = random.below(4) as usize;
    let how = CompactionSettings {
        algorithm: ALGORITHMS[algorithm],
        pool: heap.pool.map(|_| 0),
        max_bytes: if random.below(2) == 0 { 0 } else { 1 << (16 + random.below(6)) },
        max_moves: if random.below(2) == 0 { 0 } else { 1 + random.below(10) as u32 },
    };
    let ((vma_before, _, vma), _) = one(VmaSide::new(&setup), &heap, &how)?;
    let ((before, after, sublet), places) = one(SubletSide::new(&setup), &heap, &how)?;
    let mut ends: Vec<_> =
        places.iter().map(|place| (place.memory, place.offset, place.offset + place.size)).collect();
    ends.sort_unstable();
    if ends.windows(2).any(|two| two[0].0 == two[1].0 && two[0].2 > two[1].1) {
        return Err("two allocations overlap".to_owned());
    }
    if how.max_moves != 0 && sublet.largest_pass.1 > u64::from(how.max_moves)
        || how.max_bytes != 0 && sublet.largest_pass.0 > how.max_bytes
    {
        return Err(format!("a pass passes its limits: {how:?} {sublet:?}"));
    }
    if before - after != sublet.bytes_freed {
        return Err(format!("{before} bytes, then {after}: {sublet:?}"));
    }
    let mut gains = Gains { heaps: 1, ..Gains::default() };
    if vma_before != before {
        gains.others = 1;
        return Ok(gains);
    }
    gains.vma += &vma;
    gains.sublet += &sublet;
    gains.more[algorithm] = u64::from(sublet.bytes_freed > vma.bytes_freed);
    gains.less[algorithm] = u64::from(sublet.bytes_freed < vma.bytes_freed);
    Ok(gains)
}
