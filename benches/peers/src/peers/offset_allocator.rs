//! offset-allocator: an engine of 32-bit units without alignment.

use offset_allocator::{Allocation, Allocator};

use super::{Peer, PeerMode};
use crate::script::PeerRequest;

/// Bytes of a unit: the smallest requested alignment.
const UNIT: u64 = 16;
/// More than the maximum of live allocations and free ranges.
const MAX_ALLOCATIONS: u32 = 512 * 1024;

/// An engine.
pub(super) struct OffsetAllocator {
    allocator: Allocator,
    capacity: u64,
    live: u64,
}

impl OffsetAllocator {
    pub(super) fn new(shape: PeerMode) -> Option<Self> {
        let PeerMode::Engine { capacity } = shape else { return None };
        let units = u32::try_from(capacity / UNIT).ok()?;
        Some(Self { allocator: Allocator::with_max_allocs(units, MAX_ALLOCATIONS), capacity, live: 0 })
    }
}

impl Peer for OffsetAllocator {
    type Allocation = Allocation;

    #[inline]
    fn allocate(&mut self, request: &PeerRequest) -> Option<Allocation> {
        // It does not support alignment, so its users have to pad the size.
        let padded = request.size + request.alignment - UNIT.min(request.alignment);
        let allocation = self.allocator.allocate(padded.div_ceil(UNIT) as u32)?;
        self.live += 1;
        Some(allocation)
    }

    #[inline]
    fn free(&mut self, allocation: Allocation) {
        self.live -= 1;
        self.allocator.free(allocation);
    }

    fn reset(&mut self) -> bool {
        self.live = 0;
        self.allocator.reset();
        true
    }

    fn live(&self) -> Option<u64> {
        Some(self.live)
    }

    fn capacity(&self) -> Option<u64> {
        Some(self.capacity)
    }

    fn finish(self) -> Result<(), String> {
        let free = u64::from(self.allocator.storage_report().total_free_space) * UNIT;
        if self.live == 0 && free == self.capacity {
            Ok(())
        } else {
            let Self { live, capacity, .. } = self;
            Err(format!("offset-allocator ends with {live} live, {free} of {capacity} bytes free"))
        }
    }
}
