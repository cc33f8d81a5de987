//! Estimates which blocks of a vector defragmentation could empty. It follows the allocator's planner: the emptiest
//! block first, into the fullest blocks first.

use std::cmp::Ordering;
use std::ops::Range;

use crate::snapshot::Block;

/// Sizes of free ranges in the order in which they are to be filled, under a tree of the largest.
///
/// ```text
///   tree[1]                 the largest of all
///   tree[2]     tree[3]     of the first half, of the second
///   ...
///   tree[leaves + i]        bytes of range i
/// ```
struct FreeRangeTree {
    leaves: usize,
    tree: Vec<u64>,
    bytes: u64,
}

impl FreeRangeTree {
    fn new(sizes: &[u64]) -> Self {
        let leaves = sizes.len().next_power_of_two();
        let mut tree = vec![0; 2 * leaves];
        tree[leaves..leaves + sizes.len()].copy_from_slice(sizes);
        for at in (1..leaves).rev() {
            tree[at] = tree[2 * at].max(tree[2 * at + 1]);
        }
        Self { leaves, tree, bytes: sizes.iter().sum() }
    }

    fn set(&mut self, range: usize, size: u64) {
        let mut at = self.leaves + range;
        self.bytes = self.bytes - self.tree[at] + size;
        self.tree[at] = size;
        while at > 1 {
            at /= 2;
            self.tree[at] = self.tree[2 * at].max(self.tree[2 * at + 1]);
        }
    }

    /// Takes `size` bytes (not 0) from the first range that has enough. Returns the index of the range.
    fn take(&mut self, size: u64) -> Option<usize> {
        let mut at = 1;
        if self.tree[at] < size {
            return None;
        }
        while at < self.leaves {
            at *= 2;
            at += usize::from(self.tree[at] < size);
        }
        let range = at - self.leaves;
        self.set(range, self.tree[at] - size);
        Some(range)
    }

    fn put_back(&mut self, range: usize, size: u64) {
        self.set(range, self.tree[self.leaves + range] + size);
    }
}

/// A block with allocations.
struct OccupiedBlock<'a> {
    block: &'a Block,
    used: u64,
    ranges: Range<usize>,
    /// True if an allocation moved into the block, which then stays.
    has_taken: bool,
}

fn used(block: &Block) -> impl Iterator<Item = u64> + '_ {
    block.chunks.iter().filter(|chunk| chunk.allocation.is_some()).map(|chunk| chunk.size)
}

fn free(block: &Block) -> impl Iterator<Item = u64> + '_ {
    block.chunks.iter().filter(|chunk| chunk.allocation.is_none()).map(|chunk| chunk.size)
}

/// Orders blocks by their share in use, the fullest first.
fn fuller(a: &OccupiedBlock<'_>, b: &OccupiedBlock<'_>) -> Ordering {
    let part = |used: u64, size: u64| u128::from(used) * u128::from(size);
    part(b.used, a.block.size).cmp(&part(a.used, b.block.size))
}

/// Returns the number of removable blocks, and their bytes. Empty blocks neither count nor receive allocations: a move
/// into one gains no block.
pub(super) fn removable(blocks: &[Block]) -> (u64, u64) {
    let candidates = blocks.iter().map(|block| OccupiedBlock {
        block,
        used: used(block).sum(),
        ranges: 0..0,
        has_taken: false,
    });
    let mut ranked: Vec<_> = candidates.filter(|candidate| candidate.used > 0).collect();
    ranked.sort_by(fuller);
    let mut sizes = Vec::new();
    for candidate in &mut ranked {
        let first = sizes.len();
        sizes.extend(free(candidate.block));
        candidate.ranges = first..sizes.len();
    }
    let mut room = FreeRangeTree::new(&sizes);
    let (mut count, mut bytes) = (0, 0);
    for at in (0..ranked.len()).rev() {
        if ranked[at].has_taken {
            continue;
        }
        let ranges = ranked[at].ranges.clone();
        ranges.clone().for_each(|range| room.set(range, 0));
        match empty(&ranked[at], &mut room) {
            Some(taken) => {
                for range in taken {
                    // Ranges are in block order.
                    let receiver = ranked.partition_point(|candidate| candidate.ranges.end <= range);
                    ranked[receiver].has_taken = true;
                }
                count += 1;
                bytes += ranked[at].block.size;
            }
            None => ranges.for_each(|range| room.set(range, sizes[range])),
        }
    }
    (count, bytes)
}

/// Moves all allocations of a block, the largest first, and returns the ranges that take them. Changes nothing if one
/// does not fit.
fn empty(candidate: &OccupiedBlock<'_>, room: &mut FreeRangeTree) -> Option<Vec<usize>> {
    if candidate.used > room.bytes {
        return None;
    }
    let mut order: Vec<u64> = used(candidate.block).filter(|&size| size > 0).collect();
    order.sort_unstable_by(|a, b| b.cmp(a));
    let mut taken = Vec::with_capacity(order.len());
    for &size in &order {
        match room.take(size) {
            Some(range) => taken.push(range),
            None => {
                taken.into_iter().zip(&order).rev().for_each(|(range, &size)| room.put_back(range, size));
                return None;
            }
        }
    }
    Some(taken)
}
