//! The peers in a replay of a trace. [`script`](mod@crate::replay::script) describes their input.

mod gpu_alloc;
mod gpu_allocator;
mod sublet;
mod vma;

use ::sublet::trace::PoolSettings;

use super::PeerKind;
use crate::gpu::TestGpu;
use crate::replay::script::ScriptRequest;

/// An allocator that can play a script.
pub(crate) trait Plays: Sized {
    type Allocation;

    /// Allocates. `None` if there is no space, or on any other error.
    fn allocate(&mut self, ask: &ScriptRequest) -> Option<Self::Allocation>;
    fn free(&mut self, allocation: Self::Allocation);

    /// Returns true if it could be mapped.
    fn map(&mut self, allocation: &mut Self::Allocation) -> bool;
    fn unmap(&mut self, allocation: &mut Self::Allocation);

    /// Creates a pool. Does nothing for peers without pools.
    fn create_pool(&mut self, _number: u32, _settings: &PoolSettings) -> Result<(), String> {
        Ok(())
    }

    fn destroy_pool(&mut self, _number: u32) {}

    /// Begins a frame. Does nothing for peers that do not query budgets.
    fn frame(&mut self, _index: u32) {}

    /// Destroys the peer. Returns an error if something is left.
    fn finish(self) -> Result<(), String>;
}

/// A function that is generic over the type of the player.
pub(crate) trait VisitPlayer {
    type Output;
    fn visit<P: Plays>(self, peer: P) -> Self::Output;
}

/// Creates a peer.
pub(crate) fn make<V: VisitPlayer>(kind: PeerKind, gpu: &TestGpu, visit: V) -> Result<V::Output, String> {
    Ok(match kind {
        PeerKind::Sublet => visit.visit(sublet::SubletPlayer::new(gpu)?),
        PeerKind::Vma => visit.visit(vma::VmaPlayer::new(gpu)?),
        PeerKind::GpuAllocator => visit.visit(gpu_allocator::GpuAllocatorPlayer::new(gpu)?),
        PeerKind::GpuAlloc => visit.visit(gpu_alloc::GpuAllocPlayer::new(gpu)),
        PeerKind::Driver => return Err("the driver alone replays no recording".to_owned()),
    })
}
