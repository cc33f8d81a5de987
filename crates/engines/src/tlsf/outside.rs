//! Allocating outside closed regions, by taking their free chunks off the lists.

use super::Tlsf;
use crate::chunks::NONE;
use crate::{AllocateError, Key, Metadata, RegionId, Request, Span, Strategy, allocate_elsewhere};

impl Tlsf {
    /// [`Metadata::allocate_outside`]: takes the free chunks of closed regions off the lists meanwhile. O(chunks of
    /// those regions).
    pub(super) fn allocate_off_list(
        &mut self,
        request: &Request,
        is_closed: &dyn Fn(RegionId) -> bool,
    ) -> Result<(Key, Span), AllocateError> {
        if self.is_over_aligned(request.alignment.mask()) {
            // `find_start` checks the starts of all regions, listed or not.
            return allocate_elsewhere(self, request, is_closed);
        }
        if request.strategy == Strategy::MinOffset && self.index.is_none() {
            // The index must contain all free chunks.
            self.build_index();
        }
        // An empty slab cannot be merged with a free chunk that is off the lists.
        self.give_slabs_back();
        self.hand = NONE;
        let slab_sizes = std::mem::take(&mut self.slab_sizes);
        let closed: Vec<RegionId> = self.chunks.regions().filter(|&region| is_closed(region)).collect();
        closed.iter().for_each(|&region| self.unlist_all(region));
        let result = self.allocate(request);
        closed.iter().for_each(|&region| self.list_all(region));
        self.slab_sizes = slab_sizes;
        match result {
            // No chunk fits, and the request got a free slot in a closed region.
            Ok((key, span)) if is_closed(span.region) => {
                let _ = self.free(key);
                allocate_elsewhere(self, request, is_closed)
            }
            other => other,
        }
    }

    /// Adds the free chunks of a region to their lists and to the index.
    fn list_all(&mut self, region: RegionId) {
        self.with_free(region, Self::list);
    }

    /// Removes the free chunks of a region from their lists and from the index.
    pub(super) fn unlist_all(&mut self, region: RegionId) {
        self.with_free(region, Self::unlist);
    }

    /// Calls `act` with each free chunk of a region. `act` must not change the region's ring.
    fn with_free(&mut self, region: RegionId, act: fn(&mut Self, u32)) {
        let mut chunk = self.chunks.first(region);
        let header = self.chunks.prev(chunk);
        while chunk != header {
            if self.chunks.is_free(chunk) {
                act(self, chunk);
            }
            chunk = self.chunks.next(chunk);
        }
    }
}
