//! Serves a request from the vector, or from a new block.

use super::backing::{Backing, GrantOf, VectorError};
use super::state::{BlockVectorState, PlacementResult, Realize};
use sublet_engines::Metadata;

/// Runs `visit` on the state, and then destroys blocks that it removed.
pub(super) fn visit<B: Backing<M>, M: Metadata, R>(
    backing: &B,
    core: &mut BlockVectorState<B, M>,
    visit: impl FnOnce(&mut BlockVectorState<B, M>, &mut Vec<B::Block>) -> R,
) -> R {
    let mut doomed = Doomed { backing, blocks: Vec::new() };
    visit(core, &mut doomed.blocks)
}

/// Destroys blocks that were removed from their vector.
pub(super) fn destroy_all<B: Backing<M>, M: Metadata>(backing: &B, blocks: Vec<B::Block>) {
    drop(Doomed { backing, blocks });
}

/// Blocks that are destroyed at the end of a call, even if it panics.
struct Doomed<'a, B: Backing<M>, M: Metadata> {
    backing: &'a B,
    blocks: Vec<B::Block>,
}

impl<B: Backing<M>, M: Metadata> Drop for Doomed<'_, B, M> {
    fn drop(&mut self) {
        self.blocks.drain(..).for_each(|block| self.backing.destroy(block));
    }
}

/// Creates a block, and runs `then` with it in the vector.
pub(super) fn grow<B: Backing<M>, M: Metadata, R>(
    backing: &B,
    core: &mut BlockVectorState<B, M>,
    request: Option<&M::Request>,
    then: impl FnOnce(&mut BlockVectorState<B, M>, &mut Vec<B::Block>) -> Result<R, VectorError<B::Error>>,
) -> Result<R, VectorError<B::Error>> {
    let next = visit(backing, core, |core, doomed| core.plan(backing, request, doomed))?;
    let block = match backing.create(&next.capacity) {
        Ok(block) => block,
        Err(error) => {
            let trimmed = if backing.is_shortage(&error) { core.trim() } else { Vec::new() };
            if trimmed.is_empty() {
                return Err(VectorError::Create(error));
            }
            destroy_all(backing, trimmed);
            backing.create(&next.capacity).map_err(VectorError::Create)?
        }
    };
    visit(backing, core, |core, doomed| match core.adopt(block, &next) {
        Ok(region) => then(core, doomed).inspect_err(|_| doomed.extend(core.take(region))),
        Err((block, error)) => {
            doomed.push(block);
            Err(error)
        }
    })
}

/// Grants a request from a new block.
pub(super) fn grow_for<B: Backing<M>, M: Metadata>(
    backing: &B,
    core: &mut BlockVectorState<B, M>,
    request: &M::Request,
    tried: u32,
    realize: Realize<'_, B, M>,
) -> Result<GrantOf<B, M>, VectorError<B::Error>> {
    grow(backing, core, Some(request), |core, doomed| match core.allocate(request, realize, doomed)? {
        PlacementResult::Granted(granted) => Ok(granted),
        PlacementResult::NoRoom { tried: 0 } => Err(VectorError::TooLarge),
        PlacementResult::NoRoom { tried: again } => Err(VectorError::Exhausted { tried: tried + again }),
    })
}
