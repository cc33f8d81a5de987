//! The ends of blocks that end within a granularity page. What ends with its block shares the rest of that page with
//! nothing, so that its size need not be rounded up to whole pages.
#![forbid(unsafe_code)]

use super::VectorRequest;
use super::state::Active;
use crate::base::cast::{index, narrow};
use crate::metadata::{Key, RegionId, Request};

impl Active {
    /// Places what is to have whole pages at the end of a block: everything from its offset on.
    #[cold]
    pub(super) fn place_at_end(&mut self, request: &VectorRequest) -> Option<(Key, RegionId, u64)> {
        if !self.has_partial_pages {
            return None;
        }
        self.regions().find_map(|region| {
            let (offset, tail) = self.end_of(region, request)?;
            Some((self.engine.allocate_tail(region, offset, &tail)?, region, offset))
        })
    }

    /// Whether [`Self::place_at_end`] has room.
    pub(super) fn fits_at_end(&self, request: &VectorRequest) -> bool {
        let fits = |region| {
            self.end_of(region, request).is_some_and(|(at, tail)| self.engine.fits_tail(region, at, &tail))
        };
        self.has_partial_pages && self.regions().any(fits)
    }

    fn regions(&self) -> impl Iterator<Item = RegionId> + use<> {
        (0..narrow(self.blocks.len())).map(RegionId)
    }

    /// The place in one block, free or not: the last offset from which on there are enough bytes, and a request for all
    /// of these. `None` if the block ends with a page.
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
