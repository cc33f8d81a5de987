//! Chunks as they lie: for who decides where something goes, and does not leave it to an engine.
#![forbid(unsafe_code)]

use std::num::NonZeroU64;

use super::slots::USED;
use super::{Chunks, NONE, nonzero};
use crate::base::cast::index;
use crate::metadata::{Chunk, Key, RegionId, Tag};

impl Chunks {
    /// Shows the chunks of a region, what is left out beside them not.
    pub(in crate::metadata) fn places(&self, region: RegionId, visit: &mut dyn FnMut(Chunk)) {
        for chunk in self.chunks(region) {
            let node = self.slots.get(chunk);
            let (offset, size) = (self.offset(chunk), node.size);
            let used = (node.state() == USED).then(|| {
                let key = NonZeroU64::from(nonzero(chunk)) | (u64::from(node.b) << 32);
                (Key(key), Tag(node.a & Tag::MASK))
            });
            visit(Chunk { offset, size, used });
        }
    }

    /// The free chunk behind a used one, or at the start of a region, if it holds `size` units at `offset` of that
    /// region; and how many of its units are in front of them.
    pub(in crate::metadata) fn free_behind(
        &self,
        before: Option<Key>,
        region: RegionId,
        offset: u64,
        size: u64,
    ) -> Option<(u32, u64)> {
        let slot = self.regions.get(index(region.0)).filter(|slot| slot.header != NONE)?;
        let chunk = match before {
            Some(key) => self.next(self.used(key).ok()?.0),
            None => self.next(slot.header),
        };
        let (addr, have) = self.extent(chunk);
        if !self.is_free(chunk) || self.region_of(addr) != region {
            return None;
        }
        let gap = offset.checked_sub(self.offset(chunk))?;
        (size != 0 && size <= have && gap <= have - size).then_some((chunk, gap))
    }
}
