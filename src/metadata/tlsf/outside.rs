//! Allocating outside of some regions, and taking what is free in a region off the lists.
#![forbid(unsafe_code)]

use super::Tlsf;
use super::bins::class_of;
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
        let slab_sizes = std::mem::take(&mut self.slab_sizes);
        let closed: Vec<RegionId> = self.chunks.regions().filter(|&region| is_closed(region)).collect();
        closed.iter().for_each(|&region| self.unlist(region));
        let result = self.allocate(request);
        closed.iter().for_each(|&region| self.relist(region));
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

    /// The free chunks of a region.
    fn free_chunks(&self, region: RegionId) -> Vec<u32> {
        self.chunks.chunks(region).filter(|&chunk| self.chunks.is_free(chunk)).collect()
    }

    /// Takes the free chunks of a region out of their lists.
    fn unlist(&mut self, region: RegionId) {
        for chunk in self.free_chunks(region) {
            if self.chunks.is_whole_region(chunk) {
                self.empties.remove(&mut self.chunks, chunk);
            } else {
                let class = class_of(self.chunks.size(chunk));
                self.bins.remove(self.chunks.parts_mut().0, chunk, class);
            }
            if let Some(index) = &mut self.index {
                index.remove(&self.chunks, chunk);
            }
        }
    }

    /// Puts the free chunks of a region into their lists.
    fn relist(&mut self, region: RegionId) {
        for chunk in self.free_chunks(region) {
            if self.chunks.is_whole_region(chunk) {
                self.empties.insert(&mut self.chunks, chunk);
            } else {
                let class = class_of(self.chunks.size(chunk));
                self.bins.insert(self.chunks.parts_mut().0, chunk, class);
            }
            if let Some(index) = &mut self.index {
                index.insert(&self.chunks, chunk);
            }
        }
    }
}
