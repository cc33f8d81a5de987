//! Granting and growing, independently of how the state is locked.

use super::backing::{Backing, GrantOf, VectorError};
use super::state::{BlockVectorState, PlacementResult, Realize};
use sublet_engines::Metadata;

/// Exclusive access to the state of a vector. Other threads may have to wait meanwhile.
pub(super) trait StateAccess<B: Backing<M>, M: Metadata> {
    fn enter<R>(&mut self, visit: impl FnOnce(&mut BlockVectorState<B, M>) -> R) -> R;
}

impl<B: Backing<M>, M: Metadata> StateAccess<B, M> for &mut BlockVectorState<B, M> {
    fn enter<R>(&mut self, visit: impl FnOnce(&mut BlockVectorState<B, M>) -> R) -> R {
        visit(self)
    }
}

/// Runs `visit` with access to the state, and destroys blocks after releasing it.
pub(super) fn visit<B: Backing<M>, M: Metadata, R>(
    backing: &B,
    access: &mut impl StateAccess<B, M>,
    visit: impl FnOnce(&mut BlockVectorState<B, M>, &mut Vec<B::Block>) -> R,
) -> R {
    // Declared before the access begins, so that a panic releases the lock before the blocks are destroyed.
    let mut doomed = Doomed { backing, blocks: Vec::new() };
    access.enter(|core| visit(core, &mut doomed.blocks))
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

/// Creates a block without access to the state, and runs `then` before other threads see it.
pub(super) fn grow<B: Backing<M>, M: Metadata, R>(
    backing: &B,
    access: &mut impl StateAccess<B, M>,
    request: Option<&M::Request>,
    then: impl FnOnce(&mut BlockVectorState<B, M>, &mut Vec<B::Block>) -> Result<R, VectorError<B::Error>>,
) -> Result<R, VectorError<B::Error>> {
    let next = visit(backing, access, |core, doomed| core.plan(backing, request, doomed))?;
    let block = match backing.create(&next.capacity) {
        Ok(block) => block,
        Err(error) => {
            let trimmed =
                if backing.is_shortage(&error) { access.enter(BlockVectorState::trim) } else { Vec::new() };
            if trimmed.is_empty() {
                return Err(VectorError::Create(error));
            }
            destroy_all(backing, trimmed);
            backing.create(&next.capacity).map_err(VectorError::Create)?
        }
    };
    visit(backing, access, |core, doomed| match core.adopt(block, &next) {
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
    access: &mut impl StateAccess<B, M>,
    request: &M::Request,
    tried: u32,
    realize: Realize<'_, B, M>,
) -> Result<GrantOf<B, M>, VectorError<B::Error>> {
    grow(backing, access, Some(request), |core, doomed| match core.allocate(request, realize, doomed)? {
        PlacementResult::Granted(granted) => Ok(granted),
        PlacementResult::NoRoom { tried: 0 } => Err(VectorError::TooLarge),
        PlacementResult::NoRoom { tried: again } => Err(VectorError::Exhausted { tried: tried + again }),
    })
}
