//! Replays defragmentations.

use std::collections::BTreeMap;

use super::super::{BeginDefragmentation, MoveOutcome};
use super::play::timed;
use super::{CallKind, Context, Replay, ReplayedAllocation, ReplayedOwner};
use crate::allocator::defragment::PlannedAllocationMove;
use crate::defragment::{DefragmentationAlgorithm, DefragmentationInfo, DefragmentationStatistics};
use crate::pool::Pool;
use sublet_engines::cast::index;

/// More passes than a full defragmentation needs: it ends when a pass has no moves.
const MAX_PASSES: u32 = 1000;

impl Replay<'_> {
    /// Defragments the live allocations of the replay with the allocator's own planner, without limits, and frees the
    /// emptied blocks. Returns the gain at this moment of the recording. The report does not count it, but later steps
    /// find the allocations at their new places.
    ///
    /// # Complexity
    /// As many passes as the planner needs, each O(n log n) for n allocations.
    pub fn defragment(&mut self) -> DefragmentationStatistics {
        let pools: Vec<&Pool> = self.pools.values().collect();
        let info = DefragmentationInfo {
            algorithm: DefragmentationAlgorithm::Full,
            pools: &pools,
            memory_type_bits: u32::MAX,
            ..DefragmentationInfo::default()
        };
        let allocator = self.allocator;
        let Ok(mut open) = allocator.open_defragmentation(&info) else {
            return DefragmentationStatistics::default();
        };
        for _ in 0..MAX_PASSES {
            let moves = allocator.plan_moves(&mut open, &mut || false);
            if moves.is_empty() {
                break;
            }
            let live = self.live.values_mut().map(|held| (held.allocation.id(), held));
            let mut live: BTreeMap<_, _> = live.collect();
            for planned in &moves {
                let moved = live.remove(&planned.source()).is_some_and(|held| {
                    let users = u64::from(held.mappings);
                    allocator.complete_move(&open, planned, &mut held.allocation, users).is_ok()
                });
                // Somebody else's allocation stays.
                if !moved {
                    allocator.roll_back_move(&open, planned);
                }
            }
            allocator.end_pass(&open);
        }
        let gained = allocator.close_defragmentation(open);
        self.look();
        gained
    }

    pub(super) fn begin_defragmentation(&mut self, begin: &BeginDefragmentation) {
        let pools: Vec<&Pool> = begin.pools.iter().filter_map(|pool| self.pools.get(&pool.0)).collect();
        let missing = begin.pools.len() - pools.len();
        // With neither pools nor memory types, it would defragment all default memory.
        let nothing_left = pools.is_empty() && missing > 0 && begin.memory_type_bits == 0;
        let info = DefragmentationInfo {
            algorithm: begin.algorithm,
            pools: &pools,
            memory_type_bits: self.translation.wish(begin.memory_type_bits),
            max_bytes_per_pass: begin.max_bytes_per_pass,
            max_allocations_per_pass: begin.max_allocations_per_pass,
            max_time_per_pass: None,
            break_callback: None,
        };
        if missing > 0 {
            self.report.unknown += 1;
        }
        if nothing_left {
            return;
        }
        let (opened, took) = timed(|| self.allocator.open_defragmentation(&info));
        self.count(CallKind::Defragment, took, opened.is_err());
        if let Ok(open) = opened {
            let before = self.contexts.insert(begin.defragmentation.0, Context { open, moves: Vec::new() });
            if let Some(before) = before {
                self.unknown();
                self.close(before);
            }
        }
    }

    pub(super) fn begin_pass(&mut self, number: u32, count: u32) {
        let Some(mut context) = self.contexts.remove(&number) else { return self.unknown() };
        let allocator = self.allocator;
        self.roll_back(&mut context);
        let open = &mut context.open;
        let planned = self.run(CallKind::Defragment, || allocator.plan_moves(open, &mut || false));
        context.moves = planned;
        let wanted = index(count);
        let more = context.moves.split_off(wanted.min(context.moves.len()));
        for planned in more.into_iter().rev() {
            allocator.roll_back_move(&context.open, &planned);
        }
        self.contexts.insert(number, context);
        self.look();
    }

    pub(super) fn resolve(&mut self, number: u32, allocation: u32, outcome: MoveOutcome) {
        let Some(mut context) = self.contexts.remove(&number) else { return self.unknown() };
        let source = self.live.get(&allocation).map(|held| held.allocation.id());
        let found = context.moves.iter().position(|planned| Some(planned.source()) == source);
        match (found, self.live.remove(&allocation)) {
            (Some(at), Some(held)) => {
                let planned = context.moves.remove(at);
                self.resolve_planned(&context, &planned, (allocation, held), outcome);
            }
            (_, held) => {
                let done = matches!(outcome, MoveOutcome::Completed | MoveOutcome::Freed);
                self.report.moves_missing += u64::from(done);
                match held {
                    // The replay did not plan the move, but the allocation must be freed.
                    Some(held) if outcome == MoveOutcome::Freed => self.give_back(held),
                    Some(held) => drop(self.live.insert(allocation, held)),
                    None => {}
                }
            }
        }
        self.contexts.insert(number, context);
        self.look();
    }

    pub(super) fn end_pass(&mut self, number: u32) {
        let Some(mut context) = self.contexts.remove(&number) else { return self.unknown() };
        self.roll_back(&mut context);
        let allocator = self.allocator;
        self.run(CallKind::Defragment, || allocator.end_pass(&context.open));
        self.contexts.insert(number, context);
        self.look();
    }

    pub(super) fn end_defragmentation(&mut self, number: u32) {
        let Some(context) = self.contexts.remove(&number) else { return self.unknown() };
        self.close(context);
        self.look();
    }

    fn close(&mut self, mut context: Context) {
        self.roll_back(&mut context);
        let allocator = self.allocator;
        self.run(CallKind::Defragment, || allocator.close_defragmentation(context.open));
    }

    /// Rolls back the unresolved moves.
    fn roll_back(&mut self, context: &mut Context) {
        let allocator = self.allocator;
        for planned in context.moves.drain(..) {
            self.run(CallKind::Defragment, || allocator.roll_back_move(&context.open, &planned));
        }
    }

    /// Resolves a recorded move that the replay has also planned.
    fn resolve_planned(
        &mut self,
        context: &Context,
        planned: &PlannedAllocationMove,
        (number, mut held): (u32, ReplayedAllocation),
        outcome: MoveOutcome,
    ) {
        let (allocator, open) = (self.allocator, &context.open);
        let source = held.allocation.memory();
        // Mappings move with the allocation, or end with it. If they ended with the old place, no later call refers to
        // them.
        let users = u64::from(held.mappings);
        match outcome {
            MoveOutcome::Completed => {
                let allocation = &mut held.allocation;
                let moved = self
                    .call(CallKind::Defragment, || allocator.complete_move(open, planned, allocation, users));
                if moved.is_some() {
                    self.placements.placed(&held.allocation, held.owner != ReplayedOwner::Nobody);
                    self.placements.left(source);
                } else {
                    self.report.moves_missing += 1;
                    allocator.roll_back_move(open, planned);
                }
            }
            MoveOutcome::Freed => {
                let allocation = &held.allocation;
                let freed =
                    self.call(CallKind::Defragment, || allocator.free_move(open, planned, allocation, users));
                if freed.is_some() {
                    self.placements.left(source);
                    return;
                }
                self.report.moves_missing += 1;
                allocator.roll_back_move(open, planned);
            }
            MoveOutcome::Ignored => {
                self.run(CallKind::Defragment, || allocator.ignore_move(open, planned));
            }
            _ => {
                self.run(CallKind::Defragment, || allocator.roll_back_move(open, planned));
            }
        }
        self.live.insert(number, held);
    }
}
