//! The peers as a replay of a trace drives them: see [`script`](mod@crate::replay::script) for what they are asked.

mod gpu_alloc;
mod gpu_allocator;
mod sublet;
mod vma;

use ::sublet::trace::PoolSettings;
use clap::ValueEnum;

use super::PeerKind;
use crate::gpu::Gpu;
use crate::replay::gaps::MemoryOffset;
use crate::replay::script::Ask;

/// An allocator that a script is played on.
pub(crate) trait Plays: Sized {
    type Allocation;

    /// `None` if there is no room, or on any other error.
    fn allocate(&mut self, ask: &Ask) -> Option<Self::Allocation>;
    fn free(&mut self, allocation: Self::Allocation);

    /// Where it lies.
    fn place(&self, allocation: &Self::Allocation) -> MemoryOffset;

    /// Whether it could be mapped.
    fn map(&mut self, allocation: &mut Self::Allocation) -> bool;
    fn unmap(&mut self, allocation: &mut Self::Allocation);

    /// Peers without pools have nothing to do.
    fn create_pool(&mut self, _number: u32, _settings: &PoolSettings) -> Result<(), String> {
        Ok(())
    }

    fn destroy_pool(&mut self, _number: u32) {}

    /// Peers that ask the driver for no budget have nothing to do.
    fn frame(&mut self, _index: u32) {}

    /// Ends the peer. An error if something is left.
    fn finish(self) -> Result<(), String>;
}

/// Who has something to do with such a peer of whatever type.
pub(crate) trait VisitPlayer {
    type Output;
    fn visit<P: Plays>(self, peer: P) -> Self::Output;
}

/// The peers that scripts are played on.
pub(crate) const PLAYERS: [PeerKind; 5] =
    [PeerKind::Sublet, PeerKind::Vma, PeerKind::GpuAllocator, PeerKind::StandIn, PeerKind::GpuAlloc];

/// What a program tells wgpu 30 of its memory, as `wgpu::MemoryHints`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum WgpuHint {
    /// Blocks of 128 to 256 MiB for the device, and of 64 to 128 for the host
    Performance,
    /// Blocks of 8 to 64 MiB for the device, and of 4 to 32 for the host
    MemoryUsage,
}

impl WgpuHint {
    /// For the device and for the host, the smallest and the largest block in bytes:
    /// `AllocationSizes::from_memory_hints` of wgpu-hal 30.0.1.
    const fn sizes(self) -> [[u64; 2]; 2] {
        const MIB: u64 = 1 << 20;
        match self {
            Self::Performance => [[128 * MIB, 256 * MIB], [64 * MIB, 128 * MIB]],
            Self::MemoryUsage => [[8 * MIB, 64 * MIB], [4 * MIB, 32 * MIB]],
        }
    }
}

/// Makes a peer. `None` if it plays no scripts; the stand-in plays them only with the sizes of a hint.
pub(crate) fn make<V: VisitPlayer>(
    kind: PeerKind,
    gpu: &Gpu,
    hint: Option<WgpuHint>,
    visit: V,
) -> Result<Option<V::Output>, String> {
    Ok(match kind {
        PeerKind::Sublet => Some(visit.visit(sublet::Player::new(gpu)?)),
        PeerKind::Vma => Some(visit.visit(vma::Player::new(gpu)?)),
        PeerKind::GpuAllocator => Some(visit.visit(gpu_allocator::original::Player::new(gpu, hint)?)),
        PeerKind::StandIn => match hint {
            Some(hint) => Some(visit.visit(gpu_allocator::stand_in::Player::new(gpu, hint)?)),
            None => None,
        },
        PeerKind::GpuAlloc => Some(visit.visit(gpu_alloc::Player::new(gpu))),
        _ => None,
    })
}
