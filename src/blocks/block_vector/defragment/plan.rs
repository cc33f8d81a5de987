//! Planning of moves.
//!
//! The planner first empties blocks, starting with the emptiest, if everything in a block fits into the others. It
//! places all allocations of the block, largest first, and undoes that if one does not fit. So it plans no move out of
//! a block that would not become empty.
//!
//! With more effort, it then visits each remaining allocation, from the end of the emptiest block on. It moves the
//! allocation into a fuller block, or to a lower offset in its own.
//!
//! Each allocation is considered once or twice, at O(log ranges) each.

use std::cmp::Reverse;

use super::super::MemoryBlockVector;
use super::picture::{BlockPicture, MoveCandidate, Picture};
use super::ranges::{FillRanges, FreeRange, TakenRange, below};
use super::{Effort, PassBudget, Planned, VectorCompaction};
use crate::blocks::device_block::DeviceContext;
use crate::blocks::tag::{alignment_of, kind_of, needs_whole_pages};
use sublet_engines::Alignment;
use sublet_engines::{Key, RegionId, Tag};

/// One pass over one vector.
struct Planner<'a, 'b> {
    vector: &'a MemoryBlockVector,
    context: &'a DeviceContext,
    compaction: &'a mut VectorCompaction,
    budget: &'a mut PassBudget<'b>,
    moves: &'a mut Vec<Planned>,
    blocks: Vec<BlockPicture>,
    candidates: Vec<MoveCandidate>,
    ranges: FillRanges,
    /// For each range, the chunk that was placed in it last.
    placed: Vec<Option<Key>>,
    granularity: Alignment,
    min_alignment: Alignment,
}

impl MemoryBlockVector {
    /// Plans moves within the budget, and adds them to `moves`.
    pub(crate) fn plan(
        &self,
        context: &DeviceContext,
        compaction: &mut VectorCompaction,
        budget: &mut PassBudget<'_>,
        moves: &mut Vec<Planned>,
    ) {
        if compaction.is_done || budget.is_over() {
            return;
        }
        let Some(picture) = self.draw(compaction.generation) else {
            compaction.is_done = true;
            return;
        };
        let begun_with = moves.len();
        let Picture { blocks, candidates, ranges, granularity, min_alignment } = picture;
        let mut planner = Planner {
            vector: self,
            context,
            compaction,
            budget,
            moves,
            placed: vec![None; ranges.len()],
            blocks,
            candidates,
            ranges: FillRanges::new(ranges),
            granularity,
            min_alignment,
        };
        planner.run();
        let is_over = planner.budget.is_over();
        if moves.len() == begun_with && !is_over || compaction.moves_left == 0 {
            compaction.is_done = true;
        }
    }
}

impl Planner<'_, '_> {
    fn run(&mut self) {
        let emptied = self.empty_blocks();
        match self.compaction.effort {
            // With `Fast`, only blocks that become empty are worth a move. A single block cannot become empty, so it is
            // packed.
            Effort::Fast if self.blocks.len() > 1 => {}
            Effort::Extensive => {
                for kinds in [&[2, 3, 4][..], &[1], &[0, 5, 6, 7]] {
                    self.pack(&emptied, |candidate| kinds.contains(&kind_of(candidate.tag)));
                }
            }
            _ => self.pack(&emptied, |_| true),
        }
    }

    /// Empties blocks. Returns a flag for each block: true if it will be empty.
    fn empty_blocks(&mut self) -> Vec<bool> {
        let mut emptied = vec![false; self.blocks.len()];
        if self.blocks.len() < 2 {
            return emptied;
        }
        for at in (0..self.blocks.len()).rev() {
            if self.budget.is_over() {
                break;
            }
            let BlockPicture { used, stays, is_held, .. } = self.blocks[at];
            if stays || is_held {
                continue;
            }
            let ranges = self.blocks[at].ranges.clone();
            self.ranges.close(ranges.clone());
            if used <= self.ranges.free() {
                if let Some(places) = self.place_all(at) {
                    emptied[at] = true;
                    for (candidate, taken) in places {
                        if !self.budget.is_over() {
                            self.propose(candidate, taken);
                        }
                    }
                    continue;
                }
            }
            self.ranges.open(ranges);
        }
        emptied
    }

    /// Finds a place for every allocation of a block, largest first, or for none.
    fn place_all(&mut self, block: usize) -> Option<Vec<(usize, TakenRange)>> {
        let mut order: Vec<usize> = self.blocks[block].candidates.clone().collect();
        // Equal sizes from the end on, so that moves postponed to a later pass concern the start of the block.
        order.sort_by_key(|&at| Reverse((self.candidates[at].size, self.candidates[at].offset)));
        let mut places = Vec::with_capacity(order.len());
        for candidate in order {
            let all = 0..self.ranges.ranges.len();
            match self.take(candidate, all) {
                Some(taken) => places.push((candidate, taken)),
                None => {
                    places.into_iter().rev().for_each(|(_, taken)| self.ranges.undo(taken));
                    return None;
                }
            }
        }
        Some(places)
    }

    /// Moves allocations out of blocks that stay in use, into fuller blocks or to lower offsets in their own.
    fn pack(&mut self, emptied: &[bool], is_wanted: impl Fn(&MoveCandidate) -> bool) {
        for block in (0..self.blocks.len()).rev() {
            if emptied[block] || self.blocks[block].stays {
                continue;
            }
            let ranges = self.blocks[block].ranges.clone();
            let free: u64 =
                self.ranges.ranges[ranges.clone()].iter().map(|range| range.end - range.start).sum();
            let average = free.checked_div(u64::try_from(ranges.len()).unwrap_or(1)).unwrap_or(0);
            for at in self.blocks[block].candidates.clone().rev() {
                if self.budget.is_over() {
                    return;
                }
                let candidate = self.candidates[at];
                if !is_wanted(&candidate) {
                    continue;
                }
                let mut taken = self.take(at, 0..ranges.start);
                if taken.is_none() && self.is_worth_it(&candidate, average) {
                    taken = self.take(at, below(&ranges, candidate.ranges_below));
                }
                if let Some(taken) = taken {
                    self.propose(at, taken);
                }
            }
        }
    }

    /// Returns true if a move within the block pays. `average` is the mean size of the block's free ranges.
    fn is_worth_it(&self, candidate: &MoveCandidate, average: u64) -> bool {
        match self.compaction.effort {
            Effort::Balanced => candidate.free_beside >= candidate.size / 2 || candidate.size <= average,
            _ => true,
        }
    }

    fn take(&mut self, candidate: usize, within: std::ops::Range<usize>) -> Option<TakenRange> {
        let MoveCandidate { tag, offset, size, .. } = self.candidates[candidate];
        if size > self.budget.most_bytes {
            return None;
        }
        let mut alignment = alignment_of(tag, offset).max(self.min_alignment);
        if self.has_whole_pages(tag) {
            alignment = alignment.max(self.granularity);
        }
        self.ranges.take(within, self.size_at(candidate), alignment)
    }

    fn has_whole_pages(&self, tag: Tag) -> bool {
        self.granularity > Alignment::ONE && needs_whole_pages(tag)
    }

    /// Bytes of a candidate at its destination. A candidate at the end of a block may have a size that is not rounded
    /// up to whole pages.
    fn size_at(&self, candidate: usize) -> u64 {
        let MoveCandidate { tag, size, .. } = self.candidates[candidate];
        if self.has_whole_pages(tag) { self.granularity.align_up(size).unwrap_or(size) } else { size }
    }

    /// Plans a move, if the budget allows it and the destination is still free.
    fn propose(&mut self, candidate: usize, taken: TakenRange) {
        let MoveCandidate { live, tag, size, .. } = self.candidates[candidate];
        if self.compaction.moves_left == 0 || !self.budget.admits(size) {
            return;
        }
        let to = self.region_of(taken.range);
        let FreeRange { before, .. } = self.ranges.ranges[taken.range];
        let before = self.placed[taken.range].or(before);
        let at = self.size_at(candidate);
        let Some(planned) = self.vector.set_aside(self.context, live, tag, at, to, taken.offset, before)
        else {
            return;
        };
        self.placed[taken.range] = Some(planned.key);
        self.compaction.moves_left -= 1;
        self.budget.spend(size);
        self.moves.push(planned);
    }

    /// The block that contains a range. Ranges are in the order of blocks.
    fn region_of(&self, range: usize) -> RegionId {
        let at = self.blocks.partition_point(|block| block.ranges.end <= range);
        self.blocks[at].region
    }
}
