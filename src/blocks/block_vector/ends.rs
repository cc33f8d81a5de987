//! Placement at the end of a block whose size is no multiple of the granularity. An allocation that reaches the end
//! shares the last page with nothing after it, so its size need not be rounded up to whole pages.

use super::VectorRequest;
use super::state::Active;
use crate::engine::Engine;
use sublet_engines::cast::{index, narrow};
use sublet_engines::{Key, Metadata, RegionId, Request};

impl Active {
    /// Places a request for whole pages at the end of a block, and takes everything from its offset on.
    #[cold]
    pub(super) fn allocate_at_end(&mut self, request: &VectorRequest) -> Option<(Key, RegionId, u64)> {
        if !self.has_partial_pages {
            return None;
        }
        self.regions().find_map(|region| {
            let (offset, tail) = self.end_of(region, request)?;
            let key = match &mut self.engine {
                Engine::Tlsf(tlsf) => tlsf.allocate_tail(region, offset, tail.tag)?,
                // The other engines have only one candidate. Frees it if it is another place.
                engine => {
                    let (key, span) = engine.allocate(&tail).ok()?;
                    if (span.region, span.offset) != (region, offset) {
                        let freed = engine.free(key);
                        debug_assert!(freed.is_ok(), "it was granted just now");
                        return None;
                    }
                    key
                }
            };
            Some((key, region, offset))
        })
    }

    /// Returns true if [`Self::allocate_at_end`] would succeed.
    pub(super) fn fits_at_end(&self, request: &VectorRequest) -> bool {
        let fits = |region| {
            self.end_of(region, request).is_some_and(|(at, tail)| self.engine.fits_tail(region, at, &tail))
        };
        self.has_partial_pages && self.regions().any(fits)
    }

    fn regions(&self) -> impl Iterator<Item = RegionId> + use<> {
        (0..narrow(self.blocks.len())).map(RegionId)
    }

    /// The last aligned offset of one block with enough bytes after it, free or not, and a request for all of these
    /// bytes. `None` if the request needs no whole pages, or if the block ends on a page boundary.
    fn end_of(&self, region: RegionId, request: &VectorRequest) -> Option<(u64, Request)> {
        let capacity = self.blocks.get(index(region.0))?.as_ref()?.memory.size;
        if !request.whole_pages || capacity & self.config.granularity.mask() == 0 {
            return None;
        }
        let wanted = self.wanted(request);
        let offset = wanted.alignment.align_down(capacity.checked_sub(request.size)?);
        Some((offset, Request { size: capacity - offset, ..wanted }))
    }
}
