//! Plans the moves that empty a block.

use super::backing::{Backing, VectorKey};
use super::state::BlockVectorState;
use sublet_engines::{Alignment, ChunkInfo, RangeMetadata, RegionId, Request, Span, Tag};

/// The number of blocks that are tried.
const TRIES: usize = 8;

/// A grant to move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedMove {
    /// The key of the grant.
    pub key: VectorKey,
    /// Its current span.
    pub span: Span,
    /// Its tag.
    pub tag: Tag,
}

/// A plan to empty a block: [close](super::BlockVector::seal) it, then for each move allocate again, copy, and free the
/// old grant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EmptyingPlan {
    /// The block that becomes empty.
    pub block: RegionId,
    /// All its grants, in the order of offsets.
    pub moves: Vec<PlannedMove>,
}

impl<B: Backing<M>, M: RangeMetadata + Clone> BlockVectorState<B, M> {
    /// See [`BlockVector::plan_to_empty`](super::BlockVector::plan_to_empty).
    pub(super) fn plan_to_empty(&self, alignment: impl Fn(Tag) -> Alignment) -> Option<EmptyingPlan> {
        let used = |block| self.engine.region_usage(block).used;
        let in_use =
            self.blocks().map(|(info, _)| info).filter(|info| info.live > 0 && !info.own && !info.sealed);
        let mut blocks: Vec<RegionId> = in_use.map(|info| info.region).collect();
        blocks.sort_by_key(|&block| (used(block), block));
        blocks.into_iter().take(TRIES).find_map(|block| {
            let mut moves = Vec::new();
            self.engine.walk(block, &mut |ChunkInfo { offset, size, used }| {
                if let Some((key, tag)) = used {
                    let span = Span { region: block, offset, size };
                    moves.push(PlannedMove { key: self.key_of(key), span, tag });
                }
            });
            self.fits_elsewhere(block, &moves, &alignment).then_some(EmptyingPlan { block, moves })
        })
    }

    /// Returns true if all moves fit into other blocks in use. Tries it on a copy of the engine, without the block and
    /// without closed blocks.
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
            // Like the vector's allocation after the block is closed.
            let found = engine.allocate_outside(&request, &|region| region == block);
            found.is_ok_and(|(_, span)| self.is_used(span.region))
        })
    }
}
