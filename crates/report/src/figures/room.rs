//! Estimates which blocks of a vector could be emptied into the free ranges of the others.
#![forbid(unsafe_code)]

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::snapshot::{Block, Chunk};

/// A free range. Ordered by size first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    size: u64,
    /// Which of the blocks.
    block: usize,
    offset: u64,
}

/// The free ranges that can receive allocations.
#[derive(Default)]
struct Room {
    ranges: BTreeSet<Range>,
    bytes: u64,
}

impl Room {
    fn add(&mut self, range: Range) {
        if range.size > 0 && self.ranges.insert(range) {
            self.bytes += range.size;
        }
    }

    fn remove(&mut self, range: Range) {
        if self.ranges.remove(&range) {
            self.bytes -= range.size;
        }
    }

    /// Takes `size` from the start of the smallest range that fits, and returns that range as it was.
    fn take(&mut self, size: u64) -> Option<Range> {
        let found = *self.ranges.range(Range { size, block: 0, offset: 0 }..).next()?;
        self.remove(found);
        self.add(rest(found, size));
        Some(found)
    }

    /// Undoes the last [`Self::take`] that is not undone yet.
    fn put_back(&mut self, size: u64, found: Range) {
        self.remove(rest(found, size));
        self.add(found);
    }
}

/// The rest of a range behind its first `size` bytes.
fn rest(range: Range, size: u64) -> Range {
    Range { size: range.size - size, offset: range.offset + size, ..range }
}

fn used(block: &Block) -> impl Iterator<Item = u64> + '_ {
    block.chunks.iter().filter(|chunk| chunk.allocation.is_some()).map(|chunk| chunk.size)
}

fn free(at: usize, block: &Block) -> impl Iterator<Item = Range> + '_ {
    let free = |chunk: &&Chunk| chunk.allocation.is_none();
    block.chunks.iter().filter(free).map(move |it| Range { size: it.size, block: at, offset: it.offset })
}

/// The number of removable blocks, and their bytes. Empty blocks neither count nor receive: a move into one would only
/// keep it instead of another.
pub(super) fn removable(blocks: &[Block]) -> (u64, u64) {
    let mut order: Vec<(u64, usize, &Block)> = Vec::with_capacity(blocks.len());
    let mut room = Room::default();
    for (at, block) in blocks.iter().enumerate() {
        let bytes = used(block).sum();
        if bytes > 0 {
            order.push((bytes, at, block));
            free(at, block).for_each(|range| room.add(range));
        }
    }
    // Of two with the same bytes in use, the larger block first: it gives back more.
    order.sort_by_key(|&(bytes, at, block)| (bytes, Reverse(block.size), at));
    let mut has_taken = vec![false; blocks.len()];
    let (mut count, mut bytes) = (0, 0);
    for (_, at, block) in order {
        // Moved allocations stay where they are.
        if has_taken[at] {
            continue;
        }
        if let Some(moves) = empty(at, block, &mut room) {
            moves.iter().for_each(|(_, range)| has_taken[range.block] = true);
            count += 1;
            bytes += block.size;
        }
    }
    (count, bytes)
}

/// Moves all allocations of the block to the others. If one does not fit, nothing changes.
fn empty(at: usize, block: &Block, room: &mut Room) -> Option<Vec<(u64, Range)>> {
    free(at, block).for_each(|range| room.remove(range));
    let mut sizes: Vec<u64> = used(block).filter(|&size| size > 0).collect();
    sizes.sort_by_key(|&size| Reverse(size));
    let fits = sizes.iter().sum::<u64>() <= room.bytes;
    let mut moves = Vec::with_capacity(sizes.len());
    for size in sizes {
        match room.take(size) {
            Some(range) if fits => moves.push((size, range)),
            found => {
                found.into_iter().for_each(|range| room.put_back(size, range));
                moves.into_iter().rev().for_each(|(size, range)| room.put_back(size, range));
                free(at, block).for_each(|range| room.add(range));
                return None;
            }
        }
    }
    Some(moves)
}
