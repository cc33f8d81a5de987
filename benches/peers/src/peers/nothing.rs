//! No allocator: the cost of the measurement itself.

use super::{Peer, SharedPeer};
use crate::script::PeerRequest;

/// Returns the requested size, and does nothing else.
pub(crate) struct NothingPeer;

impl Peer for NothingPeer {
    type Allocation = u64;

    #[inline]
    fn allocate(&mut self, request: &PeerRequest) -> Option<u64> {
        Some(std::hint::black_box(request.size))
    }

    #[inline]
    fn free(&mut self, allocation: u64) {
        std::hint::black_box(allocation);
    }

    fn reset(&mut self) -> bool {
        true
    }

    fn live(&self) -> Option<u64> {
        None
    }

    fn finish(self) -> Result<(), String> {
        Ok(())
    }
}

impl SharedPeer for NothingPeer {
    type Allocation = u64;

    #[inline]
    fn allocate(&self, request: &PeerRequest) -> Option<u64> {
        Some(std::hint::black_box(request.size))
    }

    #[inline]
    fn free(&self, allocation: u64) {
        std::hint::black_box(allocation);
    }

    fn live(&self) -> Option<u64> {
        None
    }

    fn finish(self) -> Result<(), String> {
        Ok(())
    }
}
