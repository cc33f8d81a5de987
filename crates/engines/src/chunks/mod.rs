//! The chunks of all regions of one engine: an arena of 32-byte nodes, linked in the order of their addresses.
//!
//! Region `r` of an engine for regions of up to `2^shift` units occupies the **addresses** from `r << shift` on. So one
//! `u64` contains both the region and the offset, and an address is as aligned as its offset.
//!
//! ```text
//!            region 2, capacity 1000, shift 10              header: node 7, the two ends of a ring
//!  address   2048          2348    2448                3048
//!            |  used, 300   | free  |    used, 600      |
//!  node      |      3       |   9   |        4          |
//!                  prev <-------+-------> next
//!
//!    7.next = 3   3.next = 9*  9.next = 4   4.next = 7         (and backwards through prev)
//! ```
//!
//! Links to a free chunk are marked, here with `*`: [`TO_FREE`]. So a free knows which neighbours are free without
//! loading them.
//!
//! A node's last two words depend on its state, which is in the two highest bits of `a`:
//!
//! | state | `a` | `b` |
//! |---|---|---|
//! | free | 00, previous in the engine's free list; anything in the first chunk | next in it (0: none) |
//! | dead | 01, zero | next dead slot (0: none) |
//! | used | 10, tag | generation |
//! | header | 11, zero | region |
//! | slab | 11, its number, not zero | zero |
//!
//! A header starts at its region's end and ends at its start: `size` is the negative capacity. So the gap between two
//! nodes of a ring is `next.addr - (prev.addr + prev.size)`, even if one of them is the header.
//!
//! The nodes are in `slots.rs`, the lists of free chunks in `lists.rs`, operations on several nodes at once in
//! `warm.rs`, and slack between nodes in `slack.rs`.
//!
//! Invariants, asserted by [`Chunks::validate`] under these numbers:
//!
//! - C1: slot 0 is in no chain, so that index 0 can mean "none". It has no units and its `b` is zero. Its `a` may be
//!   anything, so that links can be written without checking for a target.
//! - C2: a region's chain starts and ends at its header; `next` and `prev` are inverse to one another, and marked where
//!   they name a free chunk.
//! - C3: a region's chunks are not empty and cover it, except for slack. A used chunk may leave a few units of slack
//!   behind it, and before it if the previous chunk is used. Apart from that, the first starts at `r << shift`, each
//!   starts where the previous one ends, and the last ends at the region's capacity. [`Chunks::slack_behind`] and
//!   [`Chunks::slack_before`] limit the slack; an engine that did not [`Chunks::allow_slack`] has none. Freeing a chunk
//!   also frees the slack beside it.
//! - C4: a chain contains only used chunks, free chunks and slabs, and one header.
//! - C5: the sums of each region and of the engine are those of their used chunks and of the grants in their slabs.
//! - C6: every slot is slot 0, in one region's chain, or in the chain of dead slots.
//! - C7: a vacant region slot is all zero. No slot below `lowest_vacant` is vacant.

mod lists;
mod places;
mod slack;
mod slots;
mod validate;
mod warm;

#[cfg(test)]
mod tests;

use std::num::{NonZeroU32, NonZeroU64};

use self::slots::{ChunkNodes, DEAD, FREE, HEADER, STATE_SHIFT, USED};
use super::{
    BadKey, ChunkInfo, Freed, Key, NotEmpty, RegionError, RegionId, Sizes, Span, Tag, Usage, first_generation,
};
use crate::cast::{index, narrow};

#[cfg(test)]
pub(super) use self::slots::LOOKS;
pub(super) use self::slots::{ChunkNode, DEAD_A, TO_FREE, named};
pub(super) use self::warm::Vacated;

/// Visits the grants in the slab with the given number.
pub(super) type GrantVisitor<'a> = dyn Fn(u32, &mut dyn FnMut(ChunkInfo)) + 'a;

/// No node: the end of a list.
pub(super) const NONE: u32 = 0;

/// A region. All zero: vacant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ChunkRegion {
    capacity: u64,
    used: u64,
    used_chunks: u32,
    header: u32,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct Chunks {
    slots: ChunkNodes,
    shift: u32,
    /// The offset bits of an address: all below `shift`.
    offset_mask: u64,
    /// Counts all grants, of chunks and in slabs.
    generation: u32,
    max_capacity: u64,
    /// Units of all regions.
    capacity: u64,
    /// Units in used chunks.
    used: u64,
    used_chunks: u32,
    regions: Vec<ChunkRegion>,
    /// The most units by which a size is rounded up: one less than a power of two.
    rounding: u64,
    /// The most slack before a small used chunk.
    slack_before_max: u64,
    /// No region slot below this is vacant.
    lowest_vacant: u32,
    region_count: u32,
}

impl Chunks {
    /// Creates an arena without regions. Each region may have up to `max_capacity` units.
    ///
    /// # Panics
    /// Panics if `max_capacity` is 0 or above 2^63.
    pub(super) fn new(max_capacity: u64) -> Self {
        assert!(
            (1..=1 << 63).contains(&max_capacity),
            "a region has 1 to 2^63 units, not {max_capacity}: the capacity of an engine is its owner's choice"
        );
        Self {
            slots: ChunkNodes::new(),
            shift: max_capacity.next_power_of_two().trailing_zeros(),
            offset_mask: max_capacity.next_power_of_two() - 1,
            generation: first_generation(),
            max_capacity,
            capacity: 0,
            used: 0,
            used_chunks: 0,
            regions: Vec::new(),
            rounding: 0,
            slack_before_max: 0,
            lowest_vacant: 0,
            region_count: 0,
        }
    }

    /// The offset bits of an address.
    #[inline]
    pub(super) const fn offset_mask(&self) -> u64 {
        self.offset_mask
    }

    /// The largest capacity of a region.
    #[inline]
    pub(super) const fn max_capacity(&self) -> u64 {
        self.max_capacity
    }

    // ---- Regions ----

    /// Adds a region and returns its free chunk, which is not listed yet.
    pub(super) fn add_region(&mut self, capacity: u64) -> Result<(RegionId, u32), RegionError> {
        if capacity == 0 || capacity > self.max_capacity {
            return Err(RegionError::Capacity { capacity, max: self.max_capacity });
        }
        let Some(total) = self.capacity.checked_add(capacity) else {
            return Err(RegionError::TooMany);
        };
        let mut region = self.lowest_vacant;
        while self.regions.get(index(region)).is_some_and(|slot| slot.header != NONE) {
            region += 1;
        }
        // The last region id has all bits above `shift` set, and there are at most 2^32 - 1 ids.
        if u64::from(region) > u64::MAX >> self.shift || region == u32::MAX || !self.slots.has_slots(2) {
            return Err(RegionError::TooMany);
        }
        let addr = u64::from(region) << self.shift;
        let header = self.slots.insert(ChunkNode {
            addr: addr.wrapping_add(capacity),
            size: capacity.wrapping_neg(),
            prev: NONE,
            next: NONE,
            a: HEADER << STATE_SHIFT,
            b: region,
        });
        let chunk = self.slots.insert(ChunkNode {
            addr,
            size: capacity,
            prev: header,
            next: header,
            a: FREE,
            b: NONE,
        });
        let node = self.slots.get_mut(header);
        node.prev = chunk | TO_FREE;
        node.next = chunk | TO_FREE;
        let slot = ChunkRegion { capacity, used: 0, used_chunks: 0, header };
        if index(region) == self.regions.len() {
            self.regions.push(slot);
        } else {
            self.regions[index(region)] = slot;
        }
        self.lowest_vacant = region + 1;
        self.region_count += 1;
        self.capacity = total;
        Ok((RegionId(region), chunk))
    }

    /// Returns `NotEmpty` if the region has used chunks.
    pub(super) fn check_empty(&self, region: RegionId) -> Result<(), NotEmpty> {
        if self.region(region).used_chunks == 0 { Ok(()) } else { Err(NotEmpty) }
    }

    /// Removes an empty region. Its free chunks must not be listed.
    pub(super) fn remove_region(&mut self, region: RegionId) {
        let ChunkRegion { capacity, used_chunks, header, .. } = *self.region(region);
        debug_assert_eq!(used_chunks, 0);
        let mut chunk = self.next(header);
        while chunk != header {
            let next = self.next(chunk);
            self.slots.bury(chunk);
            chunk = next;
        }
        self.slots.bury(header);
        self.regions[index(region.0)] = ChunkRegion::default();
        self.lowest_vacant = self.lowest_vacant.min(region.0);
        self.region_count -= 1;
        self.capacity -= capacity;
    }

    /// Makes a region one free chunk, whatever it contained, and returns it. Its free chunks must not be listed.
    pub(super) fn collapse(&mut self, region: RegionId) -> u32 {
        let ChunkRegion { capacity, used, used_chunks, header } = *self.region(region);
        let first = self.next(header);
        let mut chunk = self.next(first);
        while chunk != header {
            let next = self.next(chunk);
            self.slots.bury(chunk);
            chunk = next;
        }
        let addr = u64::from(region.0) << self.shift;
        let node = self.slots.get_mut(first);
        node.addr = addr;
        node.size = capacity;
        node.next = header;
        node.a = FREE;
        node.b = NONE;
        let node = self.slots.get_mut(header);
        node.prev = first | TO_FREE;
        node.next = first | TO_FREE;
        let slot = &mut self.regions[index(region.0)];
        slot.used = 0;
        slot.used_chunks = 0;
        self.used -= used;
        self.used_chunks -= used_chunks;
        first
    }

    #[inline]
    fn region(&self, region: RegionId) -> &ChunkRegion {
        match self.regions.get(index(region.0)) {
            Some(slot) if slot.header != NONE => slot,
            _ => panic!("this engine has no region {}", region.0),
        }
    }

    /// The number of regions.
    #[inline]
    pub(super) const fn region_count(&self) -> u32 {
        self.region_count
    }

    /// The ids of the existing regions, lowest first.
    pub(super) fn regions(&self) -> impl DoubleEndedIterator<Item = RegionId> + '_ {
        self.regions
            .iter()
            .enumerate()
            .filter(|(_, region)| region.header != NONE)
            .map(|(id, _)| RegionId(narrow(id)))
    }

    /// The chunk at offset 0 of a region.
    pub(super) fn first(&self, region: RegionId) -> u32 {
        self.next(self.region(region).header)
    }

    /// The chunks of a region from its start.
    pub(super) fn chunks(&self, region: RegionId) -> impl Iterator<Item = u32> + '_ {
        let header = self.region(region).header;
        std::iter::successors(Some(self.next(header)), |&chunk| Some(self.next(chunk)))
            .take_while(move |&chunk| chunk != header)
    }

    #[inline(always)]
    pub(super) fn used_chunks(&self, region: RegionId) -> u32 {
        self.region(region).used_chunks
    }

    pub(super) fn region_usage(&self, region: RegionId) -> Usage {
        let region = self.region(region);
        Usage {
            capacity: region.capacity,
            used_chunks: u64::from(region.used_chunks),
            used: region.used,
            rounding: 0,
        }
    }

    #[inline]
    pub(super) fn usage(&self) -> Usage {
        Usage {
            capacity: self.capacity,
            used_chunks: u64::from(self.used_chunks),
            used: self.used,
            rounding: 0,
        }
    }

    // ---- One chunk ----

    /// First unit, counted over all regions.
    #[inline]
    pub(super) fn addr(&self, chunk: u32) -> u64 {
        self.slots.get(chunk).addr
    }

    /// Units.
    #[inline]
    pub(super) fn size(&self, chunk: u32) -> u64 {
        self.slots.get(chunk).size
    }

    /// [`Chunks::addr`] and [`Chunks::size`] with one node access.
    #[inline]
    pub(super) fn extent(&self, chunk: u32) -> (u64, u64) {
        let node = self.slots.get(chunk);
        (node.addr, node.size)
    }

    /// First unit, counted from the start of the region.
    #[inline]
    pub(super) fn offset(&self, chunk: u32) -> u64 {
        self.slots.get(chunk).addr & self.offset_mask
    }

    /// The region that contains an address.
    #[inline]
    pub(super) fn region_of(&self, addr: u64) -> RegionId {
        RegionId(narrow(self.region_index(addr)))
    }

    #[inline]
    #[allow(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        reason = "region numbers are u32, see add_region"
    )]
    const fn region_index(&self, addr: u64) -> usize {
        (addr >> (self.shift & 63)) as usize
    }

    /// Returns true if `chunk` is free; false for a header.
    #[inline]
    pub(super) fn is_free(&self, chunk: u32) -> bool {
        self.slots.get(chunk).state() == FREE
    }

    /// The next chunk, or the region's header.
    #[inline]
    pub(super) fn next(&self, chunk: u32) -> u32 {
        named(self.slots.get(chunk).next)
    }

    /// The previous chunk, or the region's header.
    #[inline]
    pub(super) fn prev(&self, chunk: u32) -> u32 {
        named(self.slots.get(chunk).prev)
    }

    /// Returns true if `chunk` is its whole region.
    #[inline]
    pub(super) fn is_whole_region(&self, chunk: u32) -> bool {
        let node = self.slots.get(chunk);
        // Only in a ring with one chunk is the header both its previous and next node.
        node.prev == node.next
    }

    /// Cuts the first `size` units off a free chunk, which keeps its index and its list. The new chunk is free and
    /// unlisted. `size` is neither 0 nor all.
    #[inline]
    pub(super) fn cut_front(&mut self, chunk: u32, size: u64) -> u32 {
        let node = self.slots.get_mut(chunk);
        debug_assert!(node.state() == FREE && 0 < size && size < node.size);
        let (addr, prev) = (node.addr, node.prev);
        node.addr = addr + size;
        node.size -= size;
        self.link(ChunkNode { addr, size, prev, next: chunk | TO_FREE, a: FREE, b: NONE })
    }

    /// Cuts the last `size` units off a free chunk, which keeps its index and its list. The new chunk is free and
    /// unlisted. `size` is neither 0 nor all.
    #[inline]
    pub(super) fn cut_back(&mut self, chunk: u32, size: u64) -> u32 {
        let node = self.slots.get_mut(chunk);
        debug_assert!(node.state() == FREE && 0 < size && size < node.size);
        let next = node.next;
        node.size -= size;
        let addr = node.addr + node.size;
        self.link(ChunkNode { addr, size, prev: chunk | TO_FREE, next, a: FREE, b: NONE })
    }

    /// Inserts a free chunk between the two neighbours that it names.
    #[inline]
    fn link(&mut self, node: ChunkNode) -> u32 {
        let new = self.slots.insert(node);
        self.mark_links(new, TO_FREE);
        new
    }

    /// Marks the links to a chunk with [`TO_FREE`], or with 0.
    #[inline]
    pub(super) fn mark_links(&mut self, chunk: u32, free: u32) {
        let &ChunkNode { prev, next, .. } = self.slots.get(chunk);
        self.slots.get_mut(named(prev)).next = chunk | free;
        self.slots.get_mut(named(next)).prev = chunk | free;
    }

    /// Merges the next chunk into a free chunk, which keeps its index and its list. Both are free. The next chunk must
    /// be unlisted, and its slot becomes dead.
    #[inline]
    pub(super) fn absorb_next(&mut self, chunk: u32) {
        let (nodes, dead) = self.slots.parts_mut();
        let gone = named(nodes[index(chunk)].next);
        let node = &mut nodes[index(gone)];
        debug_assert!(node.state() == FREE);
        let (size, next) = (node.size, node.next);
        (node.a, node.b) = (DEAD << STATE_SHIFT, *dead);
        *dead = gone;
        let node = &mut nodes[index(chunk)];
        debug_assert!(node.state() == FREE);
        node.size += size;
        node.next = next;
        nodes[index(named(next))].prev = chunk | TO_FREE;
    }

    /// Merges the previous chunk into a free chunk, which keeps its index and its list. Both are free. The previous
    /// chunk must be unlisted, and its slot becomes dead.
    #[inline]
    pub(super) fn absorb_prev(&mut self, chunk: u32) {
        let (nodes, dead) = self.slots.parts_mut();
        let gone = named(nodes[index(chunk)].prev);
        let node = &mut nodes[index(gone)];
        debug_assert!(node.state() == FREE);
        let (addr, size, prev) = (node.addr, node.size, node.prev);
        (node.a, node.b) = (DEAD << STATE_SHIFT, *dead);
        *dead = gone;
        let node = &mut nodes[index(chunk)];
        debug_assert!(node.state() == FREE);
        node.addr = addr;
        node.size += size;
        node.prev = prev;
        nodes[index(named(prev))].next = chunk | TO_FREE;
    }

    /// Counts a grant, of a chunk or in a slab, and returns its generation.
    #[inline(always)]
    pub(super) fn count(&mut self, addr: u64, size: u64) -> u32 {
        let generation = self.generation;
        self.generation = generation.wrapping_add(1);
        let id = self.region_index(addr);
        let region = &mut self.regions[id];
        region.used += size;
        region.used_chunks += 1;
        self.used += size;
        self.used_chunks += 1;
        generation
    }

    /// Undoes [`Chunks::count`]. Returns the region, and whether it is empty now.
    #[inline(always)]
    pub(super) fn uncount(&mut self, addr: u64, size: u64) -> (RegionId, bool) {
        let id = self.region_of(addr);
        let region = &mut self.regions[index(id.0)];
        region.used -= size;
        region.used_chunks -= 1;
        self.used -= size;
        self.used_chunks -= 1;
        (id, region.used_chunks == 0)
    }

    /// The number of the slab, if the chunk is one.
    #[inline]
    pub(super) fn slab(&self, chunk: u32) -> Option<u32> {
        self.slots.get(chunk).slab()
    }

    /// Turns the used chunk of `key`, with `size` units at `addr`, into slab `number`. Returns the chunk. Its units no
    /// longer count as used, only the grants in it do.
    pub(super) fn hand_over(&mut self, key: Key, addr: u64, size: u64, number: u32) -> u32 {
        let (chunk, _) = halves(key);
        self.uncount(addr, size);
        let node = self.slots.get_mut(chunk);
        node.a = HEADER << STATE_SHIFT | number;
        node.b = NONE;
        chunk
    }

    /// The chunk of a key.
    #[inline]
    fn used(&self, key: Key) -> Result<(u32, &ChunkNode), BadKey> {
        let (chunk, generation) = halves(key);
        match self.slots.nodes.get(index(chunk)) {
            Some(node) if node.state() == USED && node.b == generation => Ok((chunk, node)),
            _ => Err(BadKey),
        }
    }

    /// Makes a used chunk free and unlisted, and returns it.
    #[inline]
    pub(super) fn vacate(&mut self, key: Key) -> Result<(u32, Freed), BadKey> {
        let (chunk, generation) = halves(key);
        let node = match self.slots.nodes.get_mut(index(chunk)) {
            Some(node) if node.state() == USED && node.b == generation => node,
            _ => return Err(BadKey),
        };
        node.a = FREE;
        node.b = NONE;
        let (addr, size) = (node.addr, node.size);
        self.mark_links(chunk, TO_FREE);
        let (region, region_empty) = self.uncount(addr, size);
        let span = Span { region, offset: addr & self.offset_mask, size };
        Ok((chunk, Freed { span, region_empty }))
    }

    pub(super) fn span(&self, key: Key) -> Result<Span, BadKey> {
        let (chunk, node) = self.used(key)?;
        Ok(Span { region: self.region_of(node.addr), offset: self.offset(chunk), size: node.size })
    }

    /// The region of the used chunk of a key.
    #[inline]
    pub(super) fn region_of_used(&self, key: Key) -> Option<RegionId> {
        self.used(key).ok().map(|(_, node)| self.region_of(node.addr))
    }

    #[inline]
    pub(super) fn tag(&self, key: Key) -> Result<Tag, BadKey> {
        let (_, node) = self.used(key)?;
        Ok(Tag(node.a & Tag::MASK))
    }

    #[inline]
    pub(super) fn set_tag(&mut self, key: Key, tag: Tag) -> Result<(), BadKey> {
        let (chunk, _) = self.used(key)?;
        self.slots.get_mut(chunk).a = (USED << STATE_SHIFT) | (tag.0 & Tag::MASK);
        Ok(())
    }

    /// Visits the chunks of a region. `granted` visits the grants in a slab.
    pub(super) fn walk(
        &self,
        region: RegionId,
        granted: &GrantVisitor<'_>,
        visit: &mut dyn FnMut(ChunkInfo),
    ) {
        // The end of the visited part. Slack appears as free: as a chunk of its own, or as the beginning of one.
        let mut shown = 0;
        let show_free = |from: u64, to: u64, visit: &mut dyn FnMut(ChunkInfo)| {
            if from != to {
                visit(ChunkInfo { offset: from, size: to - from, used: None });
            }
        };
        for chunk in self.chunks(region) {
            let node = self.slots.get(chunk);
            let offset = self.offset(chunk);
            let end = offset + node.size;
            if let Some(number) = node.slab() {
                granted(number, &mut |slot| {
                    show_free(shown, slot.offset, visit);
                    visit(slot);
                    shown = slot.offset + slot.size;
                });
                continue;
            }
            if node.is_free() {
                // Free space at the start of a slab continues this chunk.
                if self.slab(named(node.next)).is_none() {
                    show_free(shown, end, visit);
                    shown = end;
                }
            } else {
                show_free(shown, offset, visit);
                let key = NonZeroU64::from(nonzero(chunk)) | (u64::from(node.b) << 32);
                visit(ChunkInfo { offset, size: node.size, used: Some((Key(key), Tag(node.a & Tag::MASK))) });
                shown = end;
            }
        }
        show_free(shown, self.region(region).capacity, visit);
    }

    /// The sizes of the chunks that [`Chunks::walk`] visits, provided that no two free chunks are neighbours. Then each
    /// gap between used chunks is one free chunk, so only used chunks and slabs are measured. `granted` adds the grants
    /// in a slab. It gets the end of the visited part, and returns the new end.
    #[inline(always)]
    pub(super) fn measure(&self, region: RegionId, granted: impl Fn(u32, u64, &mut Sizes) -> u64) -> Sizes {
        let mut sizes = Sizes::default();
        // The end of the last possible region wraps to 0.
        let mut end = u64::from(region.0) << self.shift;
        let mut node = self.slots.get(self.first(region));
        loop {
            match node.state() {
                FREE => {}
                USED => {
                    sizes.add_free(node.addr - end);
                    sizes.add_used(node.size);
                    end = node.addr.wrapping_add(node.size);
                }
                _ => match node.slab() {
                    Some(number) => end = granted(number, end, &mut sizes),
                    None => break,
                },
            }
            node = self.slots.get(named(node.next));
        }
        sizes.add_free(node.addr.wrapping_sub(end));
        sizes
    }

    /// Ensures slots for one [`Chunks::split`] or two cuts. Returns false at the limit of slots. Call before changing
    /// anything.
    #[inline]
    pub(super) fn reserve_two(&mut self) -> bool {
        self.slots.reserve_two()
    }

    /// Returns true if there are slots for `count` more cuts. Call before changing anything.
    #[inline]
    pub(super) fn has_slots(&self, count: u32) -> bool {
        self.slots.has_slots(count)
    }

    /// One more than the highest index of a chunk.
    #[inline]
    pub(super) fn slot_count(&self) -> usize {
        self.slots.nodes.len()
    }

    /// Bytes of host memory held.
    pub(super) fn heap_bytes(&self) -> usize {
        self.slots.nodes.capacity() * size_of::<ChunkNode>()
            + self.regions.capacity() * size_of::<ChunkRegion>()
    }

    /// Subtracts units of a used chunk from the sums, for a test that made it smaller.
    #[cfg(test)]
    pub(super) fn shrink_sums(&mut self, region: RegionId, units: u64) {
        self.regions[index(region.0)].used -= units;
        self.used -= units;
    }

    /// The capacity of the array of nodes.
    #[cfg(test)]
    fn node_capacity(&self) -> usize {
        self.slots.nodes.capacity()
    }

    /// Limits the number of slots.
    pub(super) fn set_max_slots(&mut self, max: u32) {
        self.slots.set_max(max);
    }
}

/// The chunk and the generation in a key.
#[inline]
#[allow(clippy::as_conversions, clippy::cast_possible_truncation, reason = "the two halves of a u64")]
const fn halves(key: Key) -> (u32, u32) {
    let bits = key.0.get();
    (bits as u32, (bits >> 32) as u32)
}

/// Chunks never have the index of slot 0.
#[inline]
fn nonzero(chunk: u32) -> NonZeroU32 {
    match NonZeroU32::new(chunk) {
        Some(chunk) => chunk,
        None => unreachable!("C1: slot 0 is no chunk"),
    }
}
