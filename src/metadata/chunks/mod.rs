//! The chunks of all regions of one engine: an arena of 32-byte nodes, chained in the order of their addresses.
//!
//! Region `r` of an engine made for regions of up to `2^shift` units occupies the **addresses** `r << shift` and up, so
//! that one `u64` says both the region and the offset, and an address is as aligned as the offset is.
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
//! The links to a free chunk are marked, here with `*`: [`TO_FREE`]. Whether neighbours are free is anybody's guess, and
//! a processor that guessed wrong learns it as soon as it has the freed chunk, and need not wait for them too.
//!
//! A node's last two words depend on its state, which the two highest bits of `a` tell:
//!
//! | state | `a` | `b` |
//! |---|---|---|
//! | free | 00, previous in the engine's free list, but in the first any | next in it (0: none) |
//! | dead | 01, zero | next dead slot (0: none) |
//! | used | 10, tag | generation |
//! | header | 11, zero | region |
//! | slab | 11, its number, not zero | zero |
//!
//! A header starts at its region's end and ends at its start, `size` being the negative of the capacity, so that what
//! lies between two nodes of a ring is `next.addr - (prev.addr + prev.size)`, whichever of them is the header.
//!
//! The nodes are in `slots.rs`, the lists of free chunks in `lists.rs`, what touches several nodes at once in
//! `warm.rs`, what is left out between them in `slack.rs`.
//!
//! Invariants, asserted by [`Chunks::validate`] under these numbers:
//!
//! - C1: slot 0 is in no chain, so that index 0 can mean "none". It has no units and its `b` is zero; its `a` may be
//!   anything, so that links can be written without asking whether there is a node to link.
//! - C2: a region's chain starts and ends at its header; `next` and `prev` are inverse to one another, and marked where
//!   they name a free chunk.
//! - C3: a region's chunks are not empty and tile it, but for a few units that a used chunk may leave out behind
//!   itself, and before itself where a used chunk is before it: the first starts at `r << shift`, each starts where the
//!   one before ends, the last ends at the region's capacity. How many is [`Chunks::slack_behind`] and
//!   [`Chunks::slack_before`], none in an engine that did not [`Chunks::allow_slack`]. What is left out beside a chunk
//!   is joined to it when it is freed.
//! - C4: a chain holds used nodes, free ones and slabs only, and one header.
//! - C5: the sums of each region and of the engine are those of their used chunks and of what is granted in their slabs.
//! - C6: every slot is slot 0, in one region's chain, or in the chain of dead slots.
//! - C7: a vacant region slot is all zero, and none is below `lowest_vacant`.
#![forbid(unsafe_code)]

mod lists;
mod places;
mod slack;
mod slots;
mod validate;
mod warm;

#[cfg(test)]
mod tests;

use std::num::{NonZeroU32, NonZeroU64};

use self::slots::{DEAD, FREE, HEADER, STATE_SHIFT, Slots, USED};
use super::{
    BadKey, Chunk, Freed, Key, NotEmpty, RegionError, RegionId, Sizes, Span, Tag, Usage, first_generation,
};
use crate::base::cast::{index, narrow};

#[cfg(test)]
pub(super) use self::slots::LOOKS;
pub(super) use self::slots::{DEAD_A, Node, TO_FREE, named};
pub(super) use self::warm::Vacated;

/// Shows what is granted in the slab with that number.
pub(super) type Granted<'a> = dyn Fn(u32, &mut dyn FnMut(Chunk)) + 'a;

/// No node: the end of a list.
pub(super) const NONE: u32 = 0;

/// What is known of a region. All zero: vacant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Region {
    capacity: u64,
    used: u64,
    used_chunks: u32,
    header: u32,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct Chunks {
    slots: Slots,
    shift: u32,
    /// The bits of an address that are an offset: all below `shift`.
    offset_mask: u64,
    /// Counts what is granted, in chunks and in slabs.
    generation: u32,
    max_capacity: u64,
    /// Units of all regions.
    capacity: u64,
    /// Units in used chunks.
    used: u64,
    used_chunks: u32,
    regions: Vec<Region>,
    /// What sizes are rounded up by at most: one less than a power of two.
    rounding: u64,
    /// The most units before a small used chunk that are not worth a free chunk.
    sliver: u64,
    /// No region slot below this is vacant.
    lowest_vacant: u32,
    region_count: u32,
}

impl Chunks {
    /// No regions yet; each is to have at most `max_capacity` units.
    ///
    /// # Panics
    /// If `max_capacity` is 0 or above 2^63.
    pub(super) fn new(max_capacity: u64) -> Self {
        assert!(
            (1..=1 << 63).contains(&max_capacity),
            "a region has 1 to 2^63 units, not {max_capacity}: the capacity of an engine is its owner's choice"
        );
        Self {
            slots: Slots::new(),
            shift: max_capacity.next_power_of_two().trailing_zeros(),
            offset_mask: max_capacity.next_power_of_two() - 1,
            generation: first_generation(),
            max_capacity,
            capacity: 0,
            used: 0,
            used_chunks: 0,
            regions: Vec::new(),
            rounding: 0,
            sliver: 0,
            lowest_vacant: 0,
            region_count: 0,
        }
    }

    /// The bits of an address that are an offset.
    #[inline]
    pub(super) const fn offset_mask(&self) -> u64 {
        self.offset_mask
    }

    /// The most units that a region can have.
    #[inline]
    pub(super) const fn max_capacity(&self) -> u64 {
        self.max_capacity
    }

    // ---- Regions ----

    /// Adds a region and gives the one free chunk in it, which is in no list yet.
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
        // The last region's number has all the bits above `shift`, and there is one less than 2^32 numbers.
        if u64::from(region) > u64::MAX >> self.shift || region == u32::MAX || !self.slots.has_slots(2) {
            return Err(RegionError::TooMany);
        }
        let addr = u64::from(region) << self.shift;
        let header = self.slots.insert(Node {
            addr: addr.wrapping_add(capacity),
            size: capacity.wrapping_neg(),
            prev: NONE,
            next: NONE,
            a: HEADER << STATE_SHIFT,
            b: region,
        });
        let chunk =
            self.slots.insert(Node { addr, size: capacity, prev: header, next: header, a: FREE, b: NONE });
        let node = self.slots.get_mut(header);
        node.prev = chunk | TO_FREE;
        node.next = chunk | TO_FREE;
        let slot = Region { capacity, used: 0, used_chunks: 0, header };
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

    /// `NotEmpty` if the region has used chunks.
    pub(super) fn check_empty(&self, region: RegionId) -> Result<(), NotEmpty> {
        if self.region(region).used_chunks == 0 { Ok(()) } else { Err(NotEmpty) }
    }

    /// Takes out an empty region. Its free chunks are in no list any more.
    pub(super) fn remove_region(&mut self, region: RegionId) {
        let Region { capacity, used_chunks, header, .. } = *self.region(region);
        debug_assert_eq!(used_chunks, 0);
        let mut chunk = self.next(header);
        while chunk != header {
            let next = self.next(chunk);
            self.slots.bury(chunk);
            chunk = next;
        }
        self.slots.bury(header);
        self.regions[index(region.0)] = Region::default();
        self.lowest_vacant = self.lowest_vacant.min(region.0);
        self.region_count -= 1;
        self.capacity -= capacity;
    }

    /// Makes a region one free chunk, whatever was in it, and gives that. Its free chunks are in no list any more.
    pub(super) fn collapse(&mut self, region: RegionId) -> u32 {
        let Region { capacity, used, used_chunks, header } = *self.region(region);
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
    fn region(&self, region: RegionId) -> &Region {
        match self.regions.get(index(region.0)) {
            Some(slot) if slot.header != NONE => slot,
            _ => panic!("this engine has no region {}", region.0),
        }
    }

    /// How many regions there are.
    #[inline]
    pub(super) const fn region_count(&self) -> u32 {
        self.region_count
    }

    /// The ids of the regions there are, lowest first.
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

    /// [`Chunks::addr`] and [`Chunks::size`] in one look.
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

    /// The region that an address lies in.
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

    /// Whether `chunk` is a free one; `false` for a header.
    #[inline]
    pub(super) fn is_free(&self, chunk: u32) -> bool {
        self.slots.get(chunk).state() == FREE
    }

    /// The chunk behind, or the region's header.
    #[inline]
    pub(super) fn next(&self, chunk: u32) -> u32 {
        named(self.slots.get(chunk).next)
    }

    /// The chunk before, or the region's header.
    #[inline]
    pub(super) fn prev(&self, chunk: u32) -> u32 {
        named(self.slots.get(chunk).prev)
    }

    /// Whether `chunk` is all of its region.
    #[inline]
    pub(super) fn is_whole_region(&self, chunk: u32) -> bool {
        let node = self.slots.get(chunk);
        // Only with one chunk in the ring is the header both before and behind it.
        node.prev == node.next
    }

    /// Cuts the first `size` units off a free chunk, which keeps its name and its list. The new chunk is free and in no
    /// list. `size` is neither 0 nor all.
    #[inline]
    pub(super) fn cut_front(&mut self, chunk: u32, size: u64) -> u32 {
        let node = self.slots.get_mut(chunk);
        debug_assert!(node.state() == FREE && 0 < size && size < node.size);
        let (addr, prev) = (node.addr, node.prev);
        node.addr = addr + size;
        node.size -= size;
        self.link(Node { addr, size, prev, next: chunk | TO_FREE, a: FREE, b: NONE })
    }

    /// Cuts the last `size` units off a free chunk, which keeps its name and its list. The new chunk is free and in no
    /// list. `size` is neither 0 nor all.
    #[inline]
    pub(super) fn cut_back(&mut self, chunk: u32, size: u64) -> u32 {
        let node = self.slots.get_mut(chunk);
        debug_assert!(node.state() == FREE && 0 < size && size < node.size);
        let next = node.next;
        node.size -= size;
        let addr = node.addr + node.size;
        self.link(Node { addr, size, prev: chunk | TO_FREE, next, a: FREE, b: NONE })
    }

    /// Puts a free chunk between the two that it names as its neighbours.
    #[inline]
    fn link(&mut self, node: Node) -> u32 {
        let new = self.slots.insert(node);
        self.mark_links(new, TO_FREE);
        new
    }

    /// Marks the links to a chunk with [`TO_FREE`], or with 0.
    #[inline]
    pub(super) fn mark_links(&mut self, chunk: u32, free: u32) {
        let &Node { prev, next, .. } = self.slots.get(chunk);
        self.slots.get_mut(named(prev)).next = chunk | free;
        self.slots.get_mut(named(next)).prev = chunk | free;
    }

    /// Joins the chunk behind to a free chunk, which keeps its name and its list. Both are free; the one behind is in
    /// no list any more, and its name is dead.
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

    /// Joins the chunk before to a free chunk, which keeps its name and its list. Both are free; the one before is in
    /// no list any more, and its name is dead.
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

    /// Makes a free chunk a used one. It is in no list any more.
    #[inline]
    pub(super) fn occupy(&mut self, chunk: u32, tag: Tag) -> (Key, Span) {
        let generation = self.generation;
        let node = self.slots.get_mut(chunk);
        debug_assert!(node.state() == FREE);
        node.a = (USED << STATE_SHIFT) | (tag.0 & Tag::MASK);
        node.b = generation;
        let (addr, size) = (node.addr, node.size);
        self.mark_links(chunk, 0);
        (self.count_used(chunk, addr, size), self.span_at(addr, size))
    }

    /// The key of a chunk that was made a used one, which is counted.
    #[inline]
    fn count_used(&mut self, chunk: u32, addr: u64, size: u64) -> Key {
        let generation = self.count(addr, size);
        Key(NonZeroU64::from(nonzero(chunk)) | (u64::from(generation) << 32))
    }

    /// Counts units that were granted, in a chunk or in a slab, and gives their generation.
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

    /// Undoes [`Chunks::count`]: the region, and whether nothing is granted in it any more.
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

    /// The slab that a chunk is, if it is one.
    #[inline]
    pub(super) fn slab(&self, chunk: u32) -> Option<u32> {
        self.slots.get(chunk).slab()
    }

    /// Makes a used chunk, of `size` units at `addr`, a slab, whose units are not counted: what is granted in it is.
    pub(super) fn hand_over(&mut self, key: Key, addr: u64, size: u64, number: u32) -> u32 {
        let (chunk, _) = halves(key);
        self.uncount(addr, size);
        let node = self.slots.get_mut(chunk);
        node.a = HEADER << STATE_SHIFT | number;
        node.b = NONE;
        chunk
    }

    /// The chunk that a key names.
    #[inline]
    fn used(&self, key: Key) -> Result<(u32, &Node), BadKey> {
        let (chunk, generation) = halves(key);
        match self.slots.nodes.get(index(chunk)) {
            Some(node) if node.state() == USED && node.b == generation => Ok((chunk, node)),
            _ => Err(BadKey),
        }
    }

    /// Makes a used chunk a free one, in no list yet, and gives it.
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

    /// The region of the used chunk that a key names.
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

    /// `granted` shows what is granted in the slab with that number.
    pub(super) fn walk(&self, region: RegionId, granted: &Granted<'_>, visit: &mut dyn FnMut(Chunk)) {
        // Where what was shown ends. Units that are left out are free to the owner: a chunk, or the beginning of one.
        let mut shown = 0;
        let show_free = |from: u64, to: u64, visit: &mut dyn FnMut(Chunk)| {
            if from != to {
                visit(Chunk { offset: from, size: to - from, used: None });
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
                // What a slab has free at its start goes on with it.
                if self.slab(named(node.next)).is_none() {
                    show_free(shown, end, visit);
                    shown = end;
                }
            } else {
                show_free(shown, offset, visit);
                let key = NonZeroU64::from(nonzero(chunk)) | (u64::from(node.b) << 32);
                visit(Chunk { offset, size: node.size, used: Some((Key(key), Tag(node.a & Tag::MASK))) });
                shown = end;
            }
        }
        show_free(shown, self.region(region).capacity, visit);
    }

    /// The sizes of what [`Chunks::walk`] shows where no two free chunks are neighbours: a free one is then what lies
    /// between two others, so that only those have to be looked at. `granted` adds what is in the slab with that number,
    /// is told where what was looked at ends, and answers where it ends then.
    #[inline(always)]
    pub(super) fn measure(&self, region: RegionId, granted: impl Fn(u32, u64, &mut Sizes) -> u64) -> Sizes {
        // A variable of this function, so that it is in registers.
        let mut sizes = Sizes::default();
        // Ends wrap where the region is the last that there can be.
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

    /// Sees to it that one [`Chunks::split`] or two cuts can have the slots for it; `false` if they cannot. To be asked
    /// before anything is changed.
    #[inline]
    pub(super) fn reserve_two(&mut self) -> bool {
        self.slots.reserve_two()
    }

    /// Whether `count` more cuts can have the slots for it. To be asked before anything is changed.
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
        self.slots.nodes.capacity() * size_of::<Node>() + self.regions.capacity() * size_of::<Region>()
    }

    /// Takes units of a used chunk out of the sums, for a test that made it smaller.
    #[cfg(test)]
    pub(super) fn shrink_sums(&mut self, region: RegionId, units: u64) {
        self.regions[index(region.0)].used -= units;
        self.used -= units;
    }

    /// Nodes that there is room for without another growth.
    #[cfg(test)]
    fn node_capacity(&self) -> usize {
        self.slots.nodes.capacity()
    }

    /// Brings the limit of slots within reach of a test.
    #[cfg(test)]
    pub(super) fn set_max_slots(&mut self, max: u32) {
        self.slots.set_max(max);
    }
}

/// A key's chunk and generation.
#[inline]
#[allow(clippy::as_conversions, clippy::cast_possible_truncation, reason = "the two halves of a u64")]
const fn halves(key: Key) -> (u32, u32) {
    let bits = key.0.get();
    (bits as u32, (bits >> 32) as u32)
}

/// The index of a chunk is never that of slot 0.
#[inline]
fn nonzero(chunk: u32) -> NonZeroU32 {
    match NonZeroU32::new(chunk) {
        Some(chunk) => chunk,
        None => unreachable!("C1: slot 0 is no chunk"),
    }
}
