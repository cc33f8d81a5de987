//! The arena: nodes of 32 bytes in one array, with dead ones linked into a list.

use super::NONE;
use crate::cast::{index, narrow};

pub(super) const STATE_SHIFT: u32 = 30;
pub(super) const FREE: u32 = 0;
pub(super) const DEAD: u32 = 1;
pub(super) const USED: u32 = 2;
pub(super) const HEADER: u32 = 3;

#[cfg(test)]
thread_local! {
    /// Nodes accessed by this thread, for tests of the promised costs.
    pub(crate) static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts a node access.
#[inline]
fn look() {
    #[cfg(test)]
    LOOKS.set(LOOKS.get() + 1);
}

/// The bit of a link that marks its target as free.
pub(crate) const TO_FREE: u32 = 1 << 31;

/// The target of a link.
#[inline(always)]
pub(crate) const fn named(link: u32) -> u32 {
    link & !TO_FREE
}

/// Indices stay below the state bits.
const MAX_SLOTS: u32 = 1 << STATE_SHIFT;

/// One chunk, one region's header, or a dead slot. The parent module has the table of `a` and `b`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(crate) struct ChunkNode {
    /// First unit, counted over all regions; a header's is the end of its region.
    pub(crate) addr: u64,
    /// Units; in a header the region's capacity, negative.
    pub(crate) size: u64,
    /// The link to the previous chunk, or to the header.
    pub(crate) prev: u32,
    /// The link to the next chunk, or to the header.
    pub(crate) next: u32,
    /// State in the two highest bits; previous in a free list, or tag.
    pub(crate) a: u32,
    /// Next in a list, generation, or region.
    pub(crate) b: u32,
}

// Two nodes share a cache line of 64 bytes, and none crosses one.
const _: () = assert!(size_of::<ChunkNode>() == 32 && align_of::<ChunkNode>() == 32);

/// The value of [`ChunkNode::a`] in a dead slot.
pub(crate) const DEAD_A: u32 = DEAD << STATE_SHIFT;

const DEAD_NODE: ChunkNode =
    ChunkNode { addr: 0, size: 0, prev: NONE, next: NONE, a: DEAD << STATE_SHIFT, b: NONE };

impl ChunkNode {
    #[inline]
    pub(super) const fn state(&self) -> u32 {
        self.a >> STATE_SHIFT
    }

    /// The number of the slab, if it is one. A header has the number 0 there.
    #[inline]
    pub(crate) const fn slab(&self) -> Option<u32> {
        let number = self.a & !(HEADER << STATE_SHIFT);
        if self.state() == HEADER && number != 0 { Some(number) } else { None }
    }

    /// Returns true if it is a free chunk.
    #[inline]
    pub(crate) const fn is_free(&self) -> bool {
        self.state() == FREE
    }
}

/// The number of dead slots that [`ChunkNodes::add_dead`] adds at once: enough to make calls rare while an engine
/// grows.
const BATCH: usize = 8;

/// All nodes of an engine.
#[derive(Clone, Debug)]
pub(super) struct ChunkNodes {
    pub(super) nodes: Vec<ChunkNode>,
    /// The first dead slot.
    pub(super) dead: u32,
    /// [`MAX_SLOTS`], except in tests.
    max: u32,
}

impl ChunkNodes {
    pub(super) fn new() -> Self {
        let mut nodes = Vec::with_capacity(1 + BATCH);
        nodes.push(DEAD_NODE);
        Self { nodes, dead: NONE, max: MAX_SLOTS }
    }

    #[inline]
    pub(super) fn get(&self, slot: u32) -> &ChunkNode {
        look();
        &self.nodes[index(slot)]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: u32) -> &mut ChunkNode {
        look();
        &mut self.nodes[index(slot)]
    }

    /// The nodes and the first dead slot, for operations on several nodes. The compiler knows that writing to a slice
    /// does not move it.
    #[inline]
    pub(super) fn parts_mut(&mut self) -> (&mut [ChunkNode], &mut u32) {
        (&mut self.nodes, &mut self.dead)
    }

    /// Returns true if `count` more slots are available. Call before changing anything.
    #[inline]
    pub(super) fn has_slots(&self, count: u32) -> bool {
        self.nodes.len() + index(count) <= index(self.max) || self.has_dead(count)
    }

    /// The slow path of [`Self::has_slots`]: also counts dead slots.
    #[cold]
    fn has_dead(&self, count: u32) -> bool {
        let mut had = index(self.max).saturating_sub(self.nodes.len());
        let mut slot = self.dead;
        while slot != NONE && had < index(count) {
            had += 1;
            slot = self.get(slot).b;
        }
        had >= index(count)
    }

    /// Ensures two dead slots. Returns false at the limit of slots.
    #[inline]
    pub(super) fn reserve_two(&mut self) -> bool {
        // Without a dead slot, this reads slot 0, whose `b` is zero: C1.
        self.get(self.dead).b != NONE || self.add_dead()
    }

    /// Adds dead slots, up to the limit. Returns false if there are not two afterwards.
    #[cold]
    #[inline(never)]
    fn add_dead(&mut self) -> bool {
        let len = self.nodes.len();
        let batch = BATCH.min(index(self.max).saturating_sub(len));
        if self.nodes.capacity() - len < batch {
            // Grows by an eighth, because doubling would leave half of the memory unused. In total, each node is copied
            // about nine times.
            self.nodes.reserve_exact(64.max(len / 8));
        }
        self.nodes.resize(len + batch, DEAD_NODE);
        // The lowest is used first.
        for slot in (len..len + batch).rev() {
            self.bury(narrow(slot));
        }
        self.get(self.dead).b != NONE
    }

    /// Inserts `node` into a slot.
    ///
    /// # Panics
    /// Panics if all 2^30 slots are in use. The caller has checked [`ChunkNodes::has_slots`].
    #[inline]
    pub(super) fn insert(&mut self, node: ChunkNode) -> u32 {
        if self.dead == NONE {
            self.add_dead();
            assert_ne!(self.dead, NONE, "there is no slot left for a chunk");
        }
        let slot = self.dead;
        let place = &mut self.nodes[index(slot)];
        self.dead = place.b;
        *place = node;
        slot
    }

    /// Makes a slot dead.
    #[inline]
    pub(super) fn bury(&mut self, slot: u32) {
        let dead = self.dead;
        let node = self.get_mut(slot);
        node.a = DEAD << STATE_SHIFT;
        node.b = dead;
        self.dead = slot;
    }

    /// Limits the number of slots.
    pub(crate) fn set_max(&mut self, max: u32) {
        self.max = max.min(MAX_SLOTS);
    }
}
