//! Which grants to move so that a block becomes empty.
#![forbid(unsafe_code)]

use super::backing::{Backing, VectorKey};
use super::books::Core;
use crate::metadata::{Alignment, Chunk, RangeMetadata, RegionId, Request, Span, Tag};

/// Blocks that are tried before there is no plan.
const TRIES: usize = 8;

/// A grant that is to move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedMove {
    /// Its name.
    pub key: VectorKey,
    /// Where it is now.
    pub span: Span,
    /// Its tag.
    pub tag: Tag,
}

/// How to empty a block: [seal](super::BlockVector::seal) it, allocate anew for each move, copy, and free the old grant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EmptyingPlan {
    /// The block that becomes empty.
    pub block: RegionId,
    /// All that is in it, in the order of offsets.
    pub moves: Vec<PlannedMove>,
}

impl<B: Backing<M>, M: RangeMetadata + Clone> Core<B, M> {
    /// See [`BlockVector::plan_to_empty`](super::BlockVector::plan_to_empty).
    pub(super) fn plan_to_empty(&self, alignment: impl Fn(Tag) -> Alignment) -> Option<EmptyingPlan> {
        let used = |block| self.engine.region_usage(block).used;
        let in_use =
            self.blocks().map(|(info, _)| info).filter(|info| info.live > 0 && !info.own && !info.sealed);
        let mut blocks: Vec<RegionId> = in_use.map(|info| info.region).collect();
        blocks.sort_by_key(|&block| (used(block), block));
        blocks.into_iter().take(TRIES).find_map(|block| {
            let mut moves = Vec::new();
            self.engine.walk(block, &mut |Chunk { offset, size, used }| {
                if let Some((key, tag)) = used {
                    let span = Span { region: block, offset, size };
                    moves.push(PlannedMove { key: self.key_of(key), span, tag });
                }
            });
            self.fits_elsewhere(block, &moves, &alignment).then_some(EmptyingPlan { block, moves })
        })
    }

    /// Whether all moves find room in other blocks that are in use: tried on a copy of the engine.
    fn fits_elsewhere(
        &self,
        block: RegionId,
        moves: &[PlannedMove],
        alignment: impl Fn(Tag) -> Alignment,
    ) -> bool {
        let mut engine = self.engine.clone();
        let is_sealed = |region| self.blocks().any(|(info, _)| info.region == region && info.sealed);
        moves.iter().all(|planned| {
            let request =
                Request { tag: planned.tag, ..Request::new(planned.span.size, alignment(planned.tag)) };
            // What is granted in the block itself, or behind a seal, stays granted in the copy, so that the next try is
            // elsewhere.
            let mut granted = || engine.allocate(&request).map(|(_, span)| span.region).ok();
            let found =
                std::iter::from_fn(&mut granted).find(|&region| region != block && !is_sealed(region));
            let in_use = |region| self.blocks().any(|(info, _)| info.region == region && info.live > 0);
            found.is_some_and(in_use)
        })
    }
}
