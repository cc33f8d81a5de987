//! Fast-path operations on several nodes at once, for ordinary allocations and frees.
//!
//! They have the same effect as operations on single chunks, but load and store each node once.

use super::slots::{ChunkNode, FREE, STATE_SHIFT, TO_FREE, USED, named};
use super::{BadKey, Chunks, Key, NONE, Span, Tag, halves, nonzero};
use crate::cast::index;
use std::num::NonZeroU64;

/// A freed chunk that is neither listed nor dead yet, with its links.
#[derive(Clone, Copy)]
pub(crate) struct Vacated {
    pub(crate) chunk: u32,
    pub(crate) prev: u32,
    pub(crate) next: u32,
}

/// The result of [`Chunks::split`].
#[derive(Clone, Copy)]
pub(crate) struct SplitChunk {
    /// The chunk to be used.
    pub(crate) used: u32,
    /// The free chunk before it, unlisted, or [`NONE`].
    pub(crate) front: u32,
}

impl Chunks {
    /// All nodes, and the first dead slot.
    #[inline]
    pub(crate) fn parts_mut(&mut self) -> (&mut [ChunkNode], &mut u32) {
        self.slots.parts_mut()
    }

    /// Makes a vacated chunk free and unlisted. It then reaches from the end of the previous chunk to the start of the
    /// next one, and includes the slack on both sides.
    pub(crate) fn make_free(&mut self, vacated: &Vacated) {
        let (before, behind) = (self.slots.get(named(vacated.prev)), self.slots.get(named(vacated.next)));
        // A header's end is its region's start, and its start is the region's end.
        let addr = before.addr.wrapping_add(before.size);
        let size = behind.addr.wrapping_sub(addr);
        let node = self.slots.get_mut(vacated.chunk);
        node.addr = addr;
        node.size = size;
        node.a = FREE;
        node.b = NONE;
        self.mark_links(vacated.chunk, TO_FREE);
    }

    /// The links of a used chunk or slab that is about to be freed.
    pub(crate) fn vacated(&self, chunk: u32) -> Vacated {
        let &ChunkNode { prev, next, .. } = self.slots.get(chunk);
        Vacated { chunk, prev, next }
    }

    /// Cuts `size` units for a used chunk out of a free chunk. The first `gap` units and the last `rest` units stay
    /// free, and are not both 0. Other units become slack. The rest keeps the chunk's index and list; if it is 0, the
    /// gap does. Returns `None`, and changes nothing, if there are not two dead slots.
    #[inline(always)]
    pub(crate) fn split(
        &mut self,
        chunk: u32,
        gap: u64,
        size: u64,
        rest: u64,
        used_addr: u64,
    ) -> Option<SplitChunk> {
        let (nodes, dead) = self.slots.parts_mut();
        let used = *dead;
        let spare = nodes[index(used)].b;
        if spare == NONE {
            return None;
        }
        let node = &mut nodes[index(chunk)];
        debug_assert!(node.state() == FREE && gap + size + rest <= node.size && gap + rest != 0);
        let (addr, end, prev, next) = (node.addr, node.addr.wrapping_add(node.size), node.prev, node.next);
        let mut front = NONE;
        if rest == 0 {
            node.size = gap;
            node.next = used;
            let node = &mut nodes[index(used)];
            (node.addr, node.size, node.prev, node.next) = (used_addr, size, chunk | TO_FREE, next);
            nodes[index(named(next))].prev = used;
            *dead = spare;
        } else {
            // The last region may end at 2^64.
            node.addr = end.wrapping_sub(rest);
            node.size = rest;
            node.prev = used;
            let node = &mut nodes[index(used)];
            (node.addr, node.size, node.prev, node.next) = (used_addr, size, prev, chunk | TO_FREE);
            if gap == 0 {
                nodes[index(named(prev))].next = used;
                *dead = spare;
            } else {
                node.prev = spare | TO_FREE;
                front = spare;
                let node = &mut nodes[index(spare)];
                let next_dead = node.b;
                (node.addr, node.size, node.prev, node.next) = (addr, gap, prev, used);
                nodes[index(named(prev))].next = spare | TO_FREE;
                *dead = next_dead;
            }
        }
        Some(SplitChunk { used, front })
    }

    /// Makes an unlisted free chunk used, with this address and size. No link to it is marked as one to a free chunk.
    #[inline(always)]
    pub(crate) fn occupy(&mut self, chunk: u32, addr: u64, size: u64, tag: Tag) -> Key {
        let generation = self.count(addr, size);
        let node = self.slots.get_mut(chunk);
        node.addr = addr;
        node.size = size;
        node.a = (USED << STATE_SHIFT) | (tag.0 & Tag::MASK);
        node.b = generation;
        Key(NonZeroU64::from(nonzero(chunk)) | (u64::from(generation) << 32))
    }

    /// Releases a key. Returns the freed chunk, its address, its units, and whether its region is empty now. The node
    /// is unchanged: the caller makes it free or merges it.
    #[inline(always)]
    pub(crate) fn release(&mut self, key: Key) -> Result<(Vacated, u64, u64, bool), BadKey> {
        let (chunk, generation) = halves(key);
        let node = match self.slots.nodes.get(index(chunk)) {
            Some(node) if node.state() == USED && node.b == generation => node,
            _ => return Err(BadKey),
        };
        let &ChunkNode { addr, size, prev, next, .. } = node;
        let (_, region_empty) = self.uncount(addr, size);
        Ok((Vacated { chunk, prev, next }, addr, size, region_empty))
    }

    /// The span of `size` units at `addr`.
    #[inline]
    pub(crate) fn span_at(&self, addr: u64, size: u64) -> Span {
        Span { region: self.region_of(addr), offset: addr & self.offset_mask, size }
    }
}
