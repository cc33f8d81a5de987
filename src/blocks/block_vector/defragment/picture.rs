//! A snapshot of a vector: the movable allocations and the free ranges.

use std::collections::HashMap;
use std::ops::Range;

use super::super::shard::ShardState;
use super::super::state::is_lease;
use super::super::{AllocationKey, MemoryBlockVector};
use super::ranges::FreeRange;
use sublet_engines::Alignment;
use sublet_engines::cast::index;
use sublet_engines::{RegionId, Tag};

/// An allocation that could be moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct MoveCandidate {
    pub(super) live: AllocationKey,
    pub(super) tag: Tag,
    /// Bytes from the start of the block.
    pub(super) offset: u64,
    pub(super) size: u64,
    /// Free bytes in the chunks directly before and after it.
    pub(super) free_beside: u64,
    /// The number of free ranges of the block with lower offsets.
    pub(super) ranges_below: u32,
}

/// A block in use.
#[derive(Clone, Debug)]
pub(super) struct BlockPicture {
    pub(super) region: RegionId,
    pub(super) size: u64,
    /// Bytes of its allocations.
    pub(super) used: u64,
    /// Nothing in it may be moved.
    pub(super) stays: bool,
    /// Something in it cannot be moved, so it will not become empty.
    pub(super) is_held: bool,
    /// In the order of offsets.
    pub(super) candidates: Range<usize>,
    /// In the order of offsets.
    pub(super) ranges: Range<usize>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Picture {
    /// The fullest first.
    pub(super) blocks: Vec<BlockPicture>,
    pub(super) candidates: Vec<MoveCandidate>,
    pub(super) ranges: Vec<FreeRange>,
    pub(super) granularity: Alignment,
    pub(super) min_alignment: Alignment,
}

/// A snapshot under construction.
struct Draft {
    picture: Picture,
    generation: u32,
    /// Free bytes directly before the next chunk.
    free_before: u64,
    /// True if the last chunk was a candidate.
    was_candidate: bool,
    ranges_of_block: u32,
    used: u64,
}

impl Draft {
    fn candidate(&mut self, live: AllocationKey, tag: Tag, offset: u64, size: u64) {
        self.used += size;
        self.picture.candidates.push(MoveCandidate {
            live,
            tag,
            offset,
            size,
            free_beside: self.free_before,
            ranges_below: self.ranges_of_block,
        });
        self.was_candidate = true;
        self.free_before = 0;
    }
}

impl MemoryBlockVector {
    /// Takes the snapshot under the locks. Returns `None` if the generation has ended. O(chunks).
    pub(super) fn draw(&self, generation: u32) -> Option<Picture> {
        let shards: Vec<_> = self.shards.iter().map(|(number, shard)| (number, shard.lock())).collect();
        let mut leases = HashMap::new();
        for ((_, shard), at) in shards.iter().zip(0..) {
            leases.extend(shard.leases().map(|(key, region)| (key, (at, region))));
        }
        let mut core = self.core.lock();
        let active = core.use_of(generation).ok()?;
        active.engine.give_slabs_back();
        let picture = Picture {
            blocks: Vec::new(),
            candidates: Vec::new(),
            ranges: Vec::new(),
            granularity: active.config.granularity,
            min_alignment: active.config.min_alignment,
        };
        let mut draft =
            Draft { picture, generation, free_before: 0, was_candidate: false, ranges_of_block: 0, used: 0 };
        for (id, block) in (0..).zip(&active.blocks) {
            let region = RegionId(id);
            let Some(block) = block.as_ref().filter(|_| !active.is_unused(region)) else { continue };
            let (first, first_range) = (draft.picture.candidates.len(), draft.picture.ranges.len());
            (draft.free_before, draft.was_candidate) = (0, false);
            (draft.ranges_of_block, draft.used) = (0, 0);
            let mut before = None;
            let mut is_held = false;
            active.engine.places(region, &mut |chunk| {
                let Some((key, tag)) = chunk.used else {
                    let (start, end) = (chunk.offset, chunk.offset + chunk.size);
                    draft.picture.ranges.push(FreeRange { start, end, before });
                    draft.ranges_of_block += 1;
                    if draft.was_candidate {
                        if let Some(last) = draft.picture.candidates.last_mut() {
                            last.free_beside += chunk.size;
                        }
                    }
                    (draft.free_before, draft.was_candidate) = (chunk.size, false);
                    return;
                };
                before = Some(key);
                if !is_lease(tag) {
                    let live = AllocationKey { generation, key, dedicated: false, shard: 0 };
                    draft.candidate(live, tag, chunk.offset, chunk.size);
                    return;
                }
                (draft.free_before, draft.was_candidate) = (0, false);
                match leases.get(&key) {
                    Some(&(at, region)) => {
                        let (number, shard) = &shards[index(at)];
                        draft.leased(*number, shard, region);
                    }
                    // The range is being leased or returned.
                    None => is_held = true,
                }
                (draft.free_before, draft.was_candidate) = (0, false);
            });
            draft.picture.blocks.push(BlockPicture {
                region,
                size: block.memory.size,
                used: draft.used,
                stays: block.stays,
                is_held: is_held || draft.used == 0,
                candidates: first..draft.picture.candidates.len(),
                ranges: first_range..draft.picture.ranges.len(),
            });
        }
        drop(core);
        drop(shards);
        draft.picture.rank();
        Some(draft.picture)
    }
}

impl Draft {
    /// Adds the allocations of a shard in one leased range.
    fn leased(&mut self, shard: u8, state: &ShardState, region: RegionId) {
        let generation = self.generation;
        state.walk(region, &mut |chunk, _| {
            if let Some((key, tag)) = chunk.used {
                let live = AllocationKey { generation, key, dedicated: false, shard };
                self.candidate(live, tag, chunk.offset, chunk.size);
            }
            // Only the shard can use the space next to it.
            self.free_before = 0;
        });
    }
}

impl Picture {
    /// Sorts blocks and their ranges. Blocks that stay come first, because they cannot become empty, then the fullest.
    fn rank(&mut self) {
        let part = |used: u64, size: u64| u128::from(used) * u128::from(size);
        self.blocks.sort_by(|a, b| {
            let fuller = part(b.used, a.size).cmp(&part(a.used, b.size));
            b.stays.cmp(&a.stays).then(fuller).then(a.region.cmp(&b.region))
        });
        let mut ranges = Vec::with_capacity(self.ranges.len());
        for block in &mut self.blocks {
            let first = ranges.len();
            ranges.extend_from_slice(&self.ranges[block.ranges.clone()]);
            block.ranges = first..ranges.len();
        }
        self.ranges = ranges;
    }
}
