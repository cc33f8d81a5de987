//! The free chunks in the order of their addresses, with which
//! [`Strategy::MinOffset`](crate::Strategy::MinOffset) finds the lowest fit.
//!
//! A treap: a search tree by address and a heap by a priority, which is a hash of the chunk's slot. It is as deep as a
//! tree of random insertions, O(log n), but deterministic. Each node stores the largest size in its subtree, so one
//! descent finds the lowest chunk of a given size. The links are in an array beside the arena, with the same indices.
//! An engine without requests for the lowest offset has no index.
//!
//! ```text
//!                      9: 100 units, largest below: 300
//!                    /                                  \
//!       3: 300 units, largest 300              4: 50 units, largest 70
//!                                                        \
//!                                                    12: 70 units, largest 70
//!
//!   addresses grow from left to right:  3  9  4  12
//! ```

use crate::cast::index;
use crate::chunks::{Chunks, NONE};

#[derive(Clone, Copy, Debug)]
struct TreeLink {
    /// The largest size in the subtree; 0 for slot 0, which is no node.
    largest: u64,
    left: u32,
    right: u32,
    parent: u32,
    priority: u32,
}

const NO_LINK: TreeLink = TreeLink { largest: 0, left: NONE, right: NONE, parent: NONE, priority: 0 };

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct OffsetIndex {
    links: Vec<TreeLink>,
    root: u32,
}

/// A bijection that spreads the slots' numbers over all of `u32`.
const fn priority(slot: u32) -> u32 {
    // The finalizer of Murmur 3.
    let mut hash = slot;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

impl OffsetIndex {
    /// Builds the index of all free chunks. O(slots).
    pub(super) fn new(chunks: &Chunks) -> Self {
        let mut index = Self { links: Vec::new(), root: NONE };
        index.make_room(chunks);
        // Each chunk in turn becomes the last node of the rightmost path. The nodes there that it outranks become its
        // left subtree. Nodes that leave that path are complete.
        let mut last = NONE;
        for region in chunks.regions() {
            for chunk in chunks.chunks(region).filter(|&chunk| chunks.is_free(chunk)) {
                let priority = priority(chunk);
                let mut above = last;
                let mut below = NONE;
                while above != NONE && index.link(above).priority < priority {
                    index.pull(chunks, above);
                    below = above;
                    above = index.link(above).parent;
                }
                *index.link_mut(chunk) =
                    TreeLink { largest: 0, left: below, right: NONE, parent: above, priority };
                index.link_mut(below).parent = chunk;
                if above == NONE {
                    index.root = chunk;
                } else {
                    index.link_mut(above).right = chunk;
                }
                last = chunk;
            }
        }
        while last != NONE {
            index.pull(chunks, last);
            last = index.link(last).parent;
        }
        index
    }

    #[inline]
    fn link(&self, chunk: u32) -> &TreeLink {
        &self.links[index(chunk)]
    }

    #[inline]
    fn link_mut(&mut self, chunk: u32) -> &mut TreeLink {
        &mut self.links[index(chunk)]
    }

    /// Grows the links to the number of slots in the arena.
    fn make_room(&mut self, chunks: &Chunks) {
        let slots = chunks.slot_count();
        if self.links.len() < slots {
            self.links.reserve_exact(slots - self.links.len());
            self.links.resize(slots, NO_LINK);
        }
    }

    /// Recomputes a node's largest size from its children.
    #[inline]
    fn pull(&mut self, chunks: &Chunks, chunk: u32) {
        let &TreeLink { left, right, .. } = self.link(chunk);
        let below = self.link(left).largest.max(self.link(right).largest);
        self.link_mut(chunk).largest = below.max(chunks.size(chunk));
    }

    /// Puts `new` in the place of `old` below `parent`.
    #[inline]
    fn replace_child(&mut self, parent: u32, old: u32, new: u32) {
        if parent == NONE {
            self.root = new;
        } else {
            let link = self.link_mut(parent);
            if link.left == old {
                link.left = new;
            } else {
                link.right = new;
            }
        }
        // If `new` is none, this writes to slot 0, whose parent is never read.
        self.link_mut(new).parent = parent;
    }

    /// Rotates the edge between `chunk` and its parent, so that the parent is below. `chunk` takes over the parent's
    /// largest size; the caller recomputes the parent's.
    fn rotate_up(&mut self, chunk: u32) {
        let &TreeLink { left, right, parent, .. } = self.link(chunk);
        let &TreeLink { largest, left: parent_left, parent: above, .. } = self.link(parent);
        self.replace_child(above, parent, chunk);
        if parent_left == chunk {
            self.link_mut(parent).left = right;
            self.link_mut(right).parent = parent;
            self.link_mut(chunk).right = parent;
        } else {
            self.link_mut(parent).right = left;
            self.link_mut(left).parent = parent;
            self.link_mut(chunk).left = parent;
        }
        self.link_mut(parent).parent = chunk;
        self.link_mut(chunk).largest = largest;
    }

    /// Adds a free chunk. O(log n).
    pub(super) fn insert(&mut self, chunks: &Chunks, chunk: u32) {
        self.make_room(chunks);
        let (addr, size) = chunks.extent(chunk);
        let mut parent = NONE;
        let mut at = self.root;
        let mut is_left = false;
        while at != NONE {
            parent = at;
            is_left = addr < chunks.addr(at);
            let link = self.link_mut(at);
            link.largest = link.largest.max(size);
            at = if is_left { link.left } else { link.right };
        }
        let priority = priority(chunk);
        *self.link_mut(chunk) = TreeLink { largest: size, left: NONE, right: NONE, parent, priority };
        if parent == NONE {
            self.root = chunk;
            return;
        }
        let link = self.link_mut(parent);
        if is_left {
            link.left = chunk;
        } else {
            link.right = chunk;
        }
        while parent != NONE && self.link(parent).priority < priority {
            self.rotate_up(chunk);
            self.pull(chunks, parent);
            parent = self.link(chunk).parent;
        }
    }

    /// Removes a chunk, even if its address and size have changed. O(log n).
    pub(super) fn remove(&mut self, chunks: &Chunks, chunk: u32) {
        loop {
            let &TreeLink { left, right, .. } = self.link(chunk);
            if left == NONE && right == NONE {
                break;
            }
            // Tests for none first, and so does not depend on the priority of slot 0.
            let left_rises =
                right == NONE || (left != NONE && self.link(left).priority > self.link(right).priority);
            self.rotate_up(if left_rises { left } else { right });
        }
        let parent = self.link(chunk).parent;
        self.replace_child(parent, chunk, NONE);
        let mut at = parent;
        while at != NONE {
            self.pull(chunks, at);
            at = self.link(at).parent;
        }
    }

    /// Updates a chunk whose size changed, or whose address changed without passing another. O(log n).
    pub(super) fn update(&mut self, chunks: &Chunks, chunk: u32) {
        let mut at = chunk;
        while at != NONE {
            let before = self.link(at).largest;
            self.pull(chunks, at);
            if self.link(at).largest == before {
                break;
            }
            at = self.link(at).parent;
        }
    }

    /// The lowest chunk of at least `size` units, or [`NONE`]. O(log n).
    pub(super) fn first(&self, chunks: &Chunks, size: u64) -> u32 {
        self.first_below(chunks, self.root, size)
    }

    /// [`OffsetIndex::first`] in the subtree of `at`.
    fn first_below(&self, chunks: &Chunks, mut at: u32, size: u64) -> u32 {
        if self.link(at).largest < size {
            return NONE;
        }
        loop {
            let &TreeLink { left, right, .. } = self.link(at);
            if self.link(left).largest >= size {
                at = left;
            } else if chunks.size(at) >= size {
                return at;
            } else {
                at = right;
            }
        }
    }

    /// The next chunk after `chunk` with at least `size` units, or [`NONE`]. O(log n).
    pub(super) fn next(&self, chunks: &Chunks, chunk: u32, size: u64) -> u32 {
        let found = self.first_below(chunks, self.link(chunk).right, size);
        if found != NONE {
            return found;
        }
        let mut below = chunk;
        let mut at = self.link(chunk).parent;
        while at != NONE {
            let &TreeLink { left, right, parent, .. } = self.link(at);
            if left == below {
                if chunks.size(at) >= size {
                    return at;
                }
                let found = self.first_below(chunks, right, size);
                if found != NONE {
                    return found;
                }
            }
            (below, at) = (at, parent);
        }
        NONE
    }

    /// Bytes of host memory.
    pub(super) fn heap_bytes(&self) -> usize {
        self.links.capacity() * size_of::<TreeLink>()
    }

    /// Asserts I6 against `free`, all free chunks in the order of their addresses. O(n).
    pub(super) fn validate(&self, chunks: &Chunks, free: &[u32]) {
        assert_eq!(self.link(NONE).largest, 0, "I6: slot 0 has units");
        assert_eq!(self.root == NONE, free.is_empty(), "I6: the root of {} chunks", free.len());
        for (place, &chunk) in free.iter().enumerate() {
            let link = self.link(chunk);
            let largest =
                self.link(link.left).largest.max(self.link(link.right).largest).max(chunks.size(chunk));
            assert_eq!(link.largest, largest, "I6: the largest chunk from chunk {chunk} down");
            if link.parent == NONE {
                assert_eq!(self.root, chunk, "I6: chunk {chunk} has no parent");
            } else {
                assert!(
                    priority(chunk) < self.link(link.parent).priority,
                    "I6: chunk {chunk} outranks its parent"
                );
            }
            for child in [link.left, link.right] {
                assert!(child == NONE || self.link(child).parent == chunk, "I6: parent of chunk {child}");
            }
            // Every chunk's successor is the next free one, so the tree contains exactly these chunks in order.
            let next = free.get(place + 1).copied().unwrap_or(NONE);
            assert_eq!(self.next(chunks, chunk, 1), next, "I6: what follows chunk {chunk}");
        }
        let first = free.first().copied().unwrap_or(NONE);
        assert_eq!(self.first(chunks, 1), first, "I6: the lowest chunk");
    }

    /// The number of chunks on the longest path.
    #[cfg(test)]
    pub(super) fn depth(&self) -> u32 {
        let mut deepest = 0;
        let mut open = vec![(self.root, 0)];
        while let Some((chunk, depth)) = open.pop() {
            deepest = deepest.max(depth);
            if chunk != NONE {
                open.extend([(self.link(chunk).left, depth + 1), (self.link(chunk).right, depth + 1)]);
            }
        }
        deepest
    }

    /// Parent and children of each of `chunks`.
    #[cfg(test)]
    pub(super) fn shape(&self, chunks: &[u32]) -> Vec<[u32; 3]> {
        chunks
            .iter()
            .map(|&chunk| self.link(chunk))
            .map(|link| [link.parent, link.left, link.right])
            .collect()
    }

    /// Damages I6 for a test.
    #[cfg(test)]
    pub(super) fn forget_largest(&mut self, chunk: u32) {
        self.link_mut(chunk).largest = 0;
    }
}
