//! Defragmentation of one vector, step by step.

mod limits;
mod moves;
mod plans;
mod random;
mod shards;

use std::time::Duration;

use super::super::defragment::{BeginVectorError, Effort, Emptied, PassBudget, Planned, VectorCompaction};
use super::*;
use crate::blocks::tag::{needs_whole_pages, tag_of, with_alignment};

const EFFORTS: [Effort; 4] = [Effort::Fast, Effort::Balanced, Effort::Full, Effort::Extensive];
/// Kinds in tags.
const BUFFER: u32 = 1;
const IMAGE: u32 = 4;

/// Blocks of 1 MiB, too small for leasing.
fn small_blocks() -> VectorConfig {
    VectorConfig { block_size: MIB, empty_blocks_kept: 0, ..config() }
}

/// A request like the allocator's.
fn asked(kind: u32, size: u64, alignment: u64) -> VectorRequest {
    let tag = with_alignment(tag_of(kind, 0), aligned(alignment));
    VectorRequest { tag, whole_pages: needs_whole_pages(tag), ..request(size, alignment) }
}

fn buffer(size: u64) -> VectorRequest {
    asked(BUFFER, size, 16)
}

impl Fixture {
    fn begin(&self, effort: Effort) -> VectorCompaction {
        self.vector.begin_compaction(&self.context, Some(self.generation), effort).unwrap()
    }

    /// Plans a pass without limits.
    fn plan(&self, compaction: &mut VectorCompaction) -> Vec<Planned> {
        self.plan_within(compaction, 0, 0, None, &mut || false)
    }

    fn plan_within(
        &self,
        compaction: &mut VectorCompaction,
        bytes: u64,
        moves: u32,
        time: Option<Duration>,
        stop: &mut dyn FnMut() -> bool,
    ) -> Vec<Planned> {
        let mut planned = Vec::new();
        let mut budget = PassBudget::new(bytes, moves, time, stop);
        self.vector.plan(&self.context, compaction, &mut budget, &mut planned);
        planned
    }

    fn roll_back(&self, planned: &Planned) -> Emptied {
        self.vector.roll_back(&self.context, planned)
    }

    fn roll_back_all(&self, planned: &[Planned]) {
        for planned in planned {
            let _ = self.roll_back(planned);
        }
    }

    fn complete_all(&self, planned: &[Planned], held: &mut [Held]) {
        for planned in planned {
            let _ = self.complete(planned, held);
        }
    }

    /// Completes a move of one of `held`.
    fn complete(&self, planned: &Planned, held: &mut [Held]) -> Emptied {
        let moved = held.iter_mut().find(|held| is(held, planned.source)).expect("a move of what is held");
        let (grant, emptied) =
            self.vector.complete(&self.context, planned, moved.request.mapped, 0).expect("it is live");
        assert_eq!((grant.offset, grant.memory), (planned.offset, planned.memory));
        moved.grant = grant;
        emptied
    }

    /// Runs passes without limits until nothing is left to do. Returns the freed blocks, and the number of passes and
    /// moves.
    fn compact(&self, effort: Effort, held: &mut [Held]) -> (Emptied, u32, usize) {
        let mut compaction = self.begin(effort);
        let (mut emptied, mut passes, mut moves) = (Emptied::default(), 0, 0);
        loop {
            let planned = self.plan(&mut compaction);
            if planned.is_empty() {
                break;
            }
            passes += 1;
            moves += planned.len();
            planned.iter().for_each(|planned| emptied.add(self.complete(planned, held)));
            emptied.add(self.vector.tidy(&self.context, &compaction));
            self.check();
            assert!(passes < 200, "it never ends");
        }
        self.vector.end_compaction(&compaction);
        (emptied, passes, moves)
    }

    fn blocks(&self) -> u64 {
        self.vector.totals().block_count
    }

    /// Fills so many blocks with allocations of `size` bytes.
    fn fill(&self, blocks: u64, size: u64) -> Vec<Held> {
        let mut held = Vec::new();
        for _ in 0..blocks * (self.config.block_size / size) {
            held.push(self.allocate(&buffer(size)).unwrap());
        }
        assert_eq!(self.blocks(), blocks);
        held
    }

    /// Frees all allocations whose index `kept` rejects.
    fn thin_out(&self, held: Vec<Held>, kept: impl Fn(usize) -> bool) -> Vec<Held> {
        let (left, freed): (Vec<_>, Vec<_>) = held.into_iter().enumerate().partition(|&(at, _)| kept(at));
        self.free_all(freed.into_iter().map(|(_, held)| held));
        left.into_iter().map(|(_, held)| held).collect()
    }
}

fn is(held: &Held, live: AllocationKey) -> bool {
    let own = held.live();
    own.key == live.key && own.shard == live.shard && own.generation == live.generation
}

/// The block and offset of each held allocation.
fn places(held: &[Held]) -> Vec<(ash::vk::DeviceMemory, u64)> {
    held.iter().map(|held| (held.grant.memory, held.grant.offset)).collect()
}
