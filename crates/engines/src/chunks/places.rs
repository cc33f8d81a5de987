//! Chunks in their actual layout, for explicit placement.

use std::num::NonZeroU64;

use super::slots::USED;
use super::{Chunks, GrantVisitor, NONE, nonzero};
use crate::cast::index;
use crate::{ChunkInfo, Key, RegionId, Tag};

impl Chunks {
    /// Visits the chunks of a region, but not slack and not the free space in slabs. `granted` visits the grants in a
    /// slab.
    pub(crate) fn places(
        &self,
        region: RegionId,
        granted: &GrantVisitor<'_>,
        visit: &mut dyn FnMut(ChunkInfo),
    ) {
        for chunk in self.chunks(region) {
            let node = self.slots.get(chunk);
            if let Some(number) = node.slab() {
                granted(number, visit);
                continue;
            }
            let (offset, size) = (self.offset(chunk), node.size);
            let used = (node.state() == USED).then(|| {
                let key = NonZeroU64::from(nonzero(chunk)) | (u64::from(node.b) << 32);
                (Key(key), Tag(node.a & Tag::MASK))
            });
            visit(ChunkInfo { offset, size, used });
        }
    }

    /// The used chunk of a key.
    pub(crate) fn chunk_of(&self, key: Key) -> Option<u32> {
        self.used(key).ok().map(|(chunk, _)| chunk)
    }

    /// The free chunk after `before`, or at the start of a region, if it contains `size` units at `offset` of that
    /// region. Also returns the number of its units before them.
    pub(crate) fn free_behind(
        &self,
        before: Option<u32>,
        region: RegionId,
        offset: u64,
        size: u64,
    ) -> Option<(u32, u64)> {
        let slot = self.regions.get(index(region.0)).filter(|slot| slot.header != NONE)?;
        let chunk = self.next(before.unwrap_or(slot.header));
        let (addr, have) = self.extent(chunk);
        if !self.is_free(chunk) || self.region_of(addr) != region {
            return None;
        }
        let gap = offset.checked_sub(self.offset(chunk))?;
        (size != 0 && size <= have && gap <= have - size).then_some((chunk, gap))
    }

    /// The last chunk of a region, if it is free and contains `offset`. Also returns the number of its units before
    /// `offset`, and from there to the end of the region.
    pub(crate) fn free_tail(&self, region: RegionId, offset: u64) -> Option<(u32, u64, u64)> {
        let slot = self.regions.get(index(region.0)).filter(|slot| slot.header != NONE)?;
        let chunk = self.prev(slot.header);
        let gap = offset.checked_sub(self.offset(chunk))?;
        let size = self.extent(chunk).1.checked_sub(gap).filter(|&size| size != 0)?;
        self.is_free(chunk).then_some((chunk, gap, size))
    }
}
