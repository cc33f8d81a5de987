//! Granting an explicitly chosen place.

use super::Tlsf;
use super::bins::class_of;
use super::search::Find;
use super::slabs::is_slot;
use crate::{ChunkInfo, Key, RegionId, Tag};

impl Tlsf {
    /// Grants the `size` units at `offset` of a region. They must lie in the free chunk directly after the chunk of
    /// `before`, or in the free chunk at the start of the region if `before` is `None`. Meant for owners that move
    /// their allocations: [`Tlsf::places`] shows the free ranges. Leaves no slack.
    ///
    /// Returns `None`, and changes nothing, if some of the units are used, or `before` is not live or not directly
    /// before them.
    ///
    /// # Complexity
    /// O(1); O(log n) after the first request with [`Strategy::MinOffset`](crate::Strategy::MinOffset).
    ///
    /// # Examples
    /// ```
    /// use sublet_engines::{Alignment, Metadata, Request, Tag, Tlsf};
    ///
    /// let mut tlsf = Tlsf::new(1 << 20);
    /// let region = tlsf.add_region(&(1 << 20))?;
    /// let (key, _) = tlsf.allocate(&Request::new(4096, Alignment::ONE)).expect("there is room");
    /// let at = tlsf.allocate_at(Some(key), region, 65_536, 100, Tag(7)).expect("it is free");
    /// assert_eq!(tlsf.span(at).expect("a live key").offset, 65_536);
    /// assert_eq!(tlsf.allocate_at(Some(key), region, 65_500, 100, Tag(7)), None, "some of it is used");
    /// # Ok::<(), sublet_engines::RegionError>(())
    /// ```
    pub fn allocate_at(
        &mut self,
        before: Option<Key>,
        region: RegionId,
        offset: u64,
        size: u64,
        tag: Tag,
    ) -> Option<Key> {
        let before = match before {
            Some(key) => Some(self.chunk_of(key)?),
            None => None,
        };
        let (chunk, gap) = self.chunks.free_behind(before, region, offset, size)?;
        let find = self.find_at(chunk, gap)?;
        self.take_slow(find, size, tag, true).map(|(key, _)| key)
    }

    /// Grants everything from `offset` to the end of a region, if that is free.
    pub fn allocate_tail(&mut self, region: RegionId, offset: u64, tag: Tag) -> Option<Key> {
        self.give_slabs_back();
        let (chunk, gap, size) = self.chunks.free_tail(region, offset)?;
        let find = self.find_at(chunk, gap)?;
        self.take_slow(find, size, tag, true).map(|(key, _)| key)
    }

    /// Returns true if [`Self::allocate_tail`] would succeed. May return false because of an empty slab.
    pub fn fits_tail(&self, region: RegionId, offset: u64) -> bool {
        self.chunks.free_tail(region, offset).is_some()
    }

    /// Prepares [`Self::take_slow`] for a free chunk, from its unit `gap` on.
    fn find_at(&mut self, chunk: u32, gap: u64) -> Option<Find> {
        if !self.chunks.reserve_two() {
            return None;
        }
        if self.is_apart(chunk) {
            self.open_region(chunk);
        }
        let (addr, have) = self.chunks.extent(chunk);
        Some(Find { chunk, class: class_of(have), addr, have, gap })
    }

    /// The chunk of a key, or the chunk of the slab that contains its slot.
    fn chunk_of(&self, key: Key) -> Option<u32> {
        match &self.slabs {
            Some(slabs) if is_slot(key) => slabs.chunk_of(key),
            _ => self.chunks.chunk_of(key),
        }
    }

    /// Visits the chunks of a region in the order of their offsets. Unlike
    /// [`Metadata::walk`](crate::Metadata::walk), it does not show slack beside used chunks or free space in
    /// slabs. Call [`Tlsf::give_slabs_back`] first. Then [`Tlsf::allocate_at`] can grant all of each free chunk.
    ///
    /// # Panics
    /// Panics if there is no such region.
    pub fn places(&self, region: RegionId, visit: &mut dyn FnMut(ChunkInfo)) {
        self.chunks.places(region, &|number, visit| self.show_slab(number, visit), visit);
    }
}
