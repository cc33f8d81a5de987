//! Allocating outside of some regions, and taking what is free in a region off the lists.
#![forbid(unsafe_code)]

use super::Tlsf;
use crate::metadata::chunks::NONE;
use crate::metadata::{AllocateError, Key, Metadata, RegionId, Request, Span, Strategy, allocate_elsewhere};

impl Tlsf {
    /// [`Metadata::allocate_outside`]: what is free in closed regions is off the lists for so long. O(chunks of those
    /// regions).
    pub(super) fn allocate_off_list(
        &mut self,
        request: &Request,
        is_closed: &dyn Fn(RegionId) -> bool,
    ) -> Result<(Key, Span), AllocateError> {
        if self.is_over_aligned(request.alignment.mask()) {
            // The starts of all regions are looked at then, listed or not.
            return allocate_elsewhere(self, request, is_closed);
        }
        if request.strategy == Strategy::MinOffset && self.index.is_none() {
            // It is built of all free chunks.
            self.build_index();
        }
        // What is free around empty slabs is not joined while it is off the lists.
        self.give_slabs_back();
        self.hand = NONE;
        let slab_sizes = std::mem::take(&mut self.slab_sizes);
        let closed: Vec<RegionId> = self.chunks.regions().filter(|&region| is_closed(region)).collect();
        closed.iter().for_each(|&region| self.unlist_all(region));
        let result = self.allocate(request);
        closed.iter().for_each(|&region| self.list_all(region));
        self.slab_sizes = slab_sizes;
        match result {
            // The last slot that there was.
            Ok((key, span)) if is_closed(span.region) => {
                let _ = self.free(key);
                allocate_elsewhere(self, request, is_closed)
            }
            other => other,
        }
    }

    /// Puts what is free in a region into its lists, and into the index.
    fn list_all(&mut self, region: RegionId) {
        self.with_free(region, Self::list);
    }

    /// Takes what is free in a region out of its lists, and out of the index.
    pub(super) fn unlist_all(&mut self, region: RegionId) {
        self.with_free(region, Self::unlist);
    }

    /// Calls `act`, which leaves the region's ring as it is, with each of its free chunks.
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
