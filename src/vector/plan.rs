//! Which grants to move so that a block becomes empty.

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

    /// Whether all moves find room in other blocks that are in use: tried on a copy of the engine, without the block and
    /// without what is behind a seal.
    fn fits_elsewhere(
        &self,
        block: RegionId,
        moves: &[PlannedMove],
        alignment: impl Fn(Tag) -> Alignment,
    ) -> bool {
        let mut engine = self.engine.clone();
        let closed = self.blocks().map(|(info, _)| info).filter(|info| info.sealed || info.region == block);
        closed.for_each(|info| engine.discard(info.region));
        moves.iter().all(|planned| {
            let request =
                Request { tag: planned.tag, ..Request::new(planned.span.size, alignment(planned.tag)) };
            // As the vector allocates once the block is sealed.
            let found = engine.allocate_outside(&request, &|region| region == block);
            found.is_ok_and(|(_, span)| self.is_used(span.region))
        })
    }
}
