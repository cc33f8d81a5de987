//! The peers in a replay of a trace. [`script`](mod@crate::replay::script) describes their input.

mod gpu_alloc;
mod gpu_allocator;
mod sublet;
mod vma;

use ::sublet::trace::PoolSettings;
use clap::ValueEnum;

use super::PeerKind;
use crate::gpu::TestGpu;
use crate::replay::gaps::MemoryOffset;
use crate::replay::script::ScriptRequest;

/// An allocator that can play a script.
pub(crate) trait Plays: Sized {
    type Allocation;

    /// Allocates. `None` if there is no space, or on any other error.
    fn allocate(&mut self, ask: &ScriptRequest) -> Option<Self::Allocation>;
    fn free(&mut self, allocation: Self::Allocation);

    /// Returns the place of an allocation.
    fn place(&self, allocation: &Self::Allocation) -> MemoryOffset;

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

/// The peers that can play scripts.
pub(crate) const PLAYERS: [PeerKind; 5] =
    [PeerKind::Sublet, PeerKind::Vma, PeerKind::GpuAllocator, PeerKind::StandIn, PeerKind::GpuAlloc];

/// A program's hint for wgpu 30, as in `wgpu::MemoryHints`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum WgpuHint {
    /// Blocks of 128 to 256 MiB for the device, and of 64 to 128 for the host
    Performance,
    /// Blocks of 8 to 64 MiB for the device, and of 4 to 32 for the host
    MemoryUsage,
}

impl WgpuHint {
    /// Returns the smallest and the largest block in bytes, for the device and for the host. Source:
    /// `AllocationSizes::from_memory_hints` of wgpu-hal 30.0.1.
    const fn sizes(self) -> [[u64; 2]; 2] {
        const MIB: u64 = 1 << 20;
        match self {
            Self::Performance => [[128 * MIB, 256 * MIB], [64 * MIB, 128 * MIB]],
            Self::MemoryUsage => [[8 * MIB, 64 * MIB], [4 * MIB, 32 * MIB]],
        }
    }
}

/// Creates a peer. `None` if it cannot play scripts. The stand-in plays them only with the sizes of a hint.
pub(crate) fn make<V: VisitPlayer>(
    kind: PeerKind,
    gpu: &TestGpu,
    hint: Option<WgpuHint>,
    visit: V,
) -> Result<Option<V::Output>, String> {
    Ok(match kind {
        PeerKind::Sublet => Some(visit.visit(sublet::SubletPlayer::new(gpu)?)),
        PeerKind::Vma => Some(visit.visit(vma::VmaPlayer::new(gpu)?)),
        PeerKind::GpuAllocator => {
            Some(visit.visit(gpu_allocator::original::GpuAllocatorPlayer::new(gpu, hint)?))
        }
        PeerKind::StandIn => match hint {
            Some(hint) => Some(visit.visit(gpu_allocator::stand_in::GpuAllocatorPlayer::new(gpu, hint)?)),
            None => None,
        },
        PeerKind::GpuAlloc => Some(visit.visit(gpu_alloc::GpuAllocPlayer::new(gpu))),
        _ => None,
    })
}
