//! Which grants to move so that a block becomes empty.
#![forbid(unsafe_code)]

use super::backing::{Backing, VectorKey};
use super::owned::BlockVector;
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

/// How to empty a block: [seal](BlockVector::seal) it, allocate anew for each move, copy, and free the old grant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EmptyingPlan {
    /// The block that becomes empty.
    pub block: RegionId,
    /// All that is in it, in the order of offsets.
    pub moves: Vec<PlannedMove>,
}

impl<B: Backing<M>, M: RangeMetadata + Clone> BlockVector<B, M> {
    /// The block with the least in it whose contents fit into the others that are in use. `alignment` says what a grant
    /// with a tag has to be aligned to. Nothing is changed.
    ///
    /// # Complexity
    /// A copy of the engine for each block that is tried, of which there are 8 at most, and what is in it.
    pub fn plan_to_empty(&self, alignment: impl Fn(Tag) -> Alignment) -> Option<EmptyingPlan> {
        let used = |block| self.engine().region_usage(block).used;
        let in_use =
            self.blocks().map(|(info, _)| info).filter(|info| info.live > 0 && !info.own && !info.sealed);
        let mut blocks: Vec<RegionId> = in_use.map(|info| info.region).collect();
        blocks.sort_by_key(|&block| (used(block), block));
        blocks.into_iter().take(TRIES).find_map(|block| {
            let mut moves = Vec::new();
            self.engine().walk(block, &mut |Chunk { offset, size, used }| {
                if let Some((key, tag)) = used {
                    let span = Span { region: block, offset, size };
                    moves.push(PlannedMove { key: self.key_of(key), span, tag });
                }
            });
            self.fits_elsewhere(block, &moves, &alignment).then_some(EmptyingPlan { block, moves })
        })
    }

    /// Whether all moves find room in other blocks that are in use: tried on a copy of the books.
    fn fits_elsewhere(
        &self,
        block: RegionId,
        moves: &[PlannedMove],
        alignment: impl Fn(Tag) -> Alignment,
    ) -> bool {
        let mut engine = self.engine().clone();
        moves.iter().all(|planned| {
            let request =
                Request { tag: planned.tag, ..Request::new(planned.span.size, alignment(planned.tag)) };
            // What is granted in the block itself stays granted in the copy, so that the next try is elsewhere.
            let mut granted = || engine.allocate(&request).map(|(_, span)| span.region);
            let found = std::iter::repeat_with(&mut granted).find(|region| *region != Ok(block));
            let Some(Ok(region)) = found else { return false };
            self.blocks().any(|(info, _)| info.region == region && info.live > 0 && !info.sealed)
        })
    }
}
