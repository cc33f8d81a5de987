//! Lists of free chunks, linked through the nodes. Engines find their free chunks with them.
//!
//! The link back is valid from the second chunk of a list on; in the first chunk it may contain anything.

use super::slots::FREE;
use super::{Chunks, NONE};
use crate::cast::index;

impl Chunks {
    /// The next free chunk in the list of `chunk`, or [`NONE`].
    #[inline]
    pub(crate) fn list_next(&self, chunk: u32) -> u32 {
        self.slots.get(chunk).b
    }

    /// Units of a free chunk, and the next one in its list, or [`NONE`], with one node access.
    #[inline]
    pub(crate) fn listed(&self, chunk: u32) -> (u64, u32) {
        let node = self.slots.get(chunk);
        (node.size, node.b)
    }

    /// Adds an unlisted free chunk at the head of the list that starts at `head`.
    #[inline]
    pub(crate) fn list_push(&mut self, head: &mut u32, chunk: u32) {
        let next = *head;
        let (nodes, _) = self.slots.parts_mut();
        let node = &mut nodes[index(chunk)];
        debug_assert!(node.state() == FREE);
        node.a = NONE;
        node.b = next;
        // Writes to slot 0 if there is no next chunk: see C1.
        nodes[index(next)].a = chunk;
        *head = chunk;
    }

    /// Adds an unlisted free chunk after `before`, which is in a list.
    pub(crate) fn list_insert_behind(&mut self, before: u32, chunk: u32) {
        let next = self.list_next(before);
        let node = self.slots.get_mut(chunk);
        debug_assert!(node.state() == FREE);
        node.a = before;
        node.b = next;
        self.slots.get_mut(next).a = chunk;
        self.slots.get_mut(before).b = chunk;
    }

    /// Removes a free chunk from the list that starts at `head`.
    #[inline]
    pub(crate) fn list_remove(&mut self, head: &mut u32, chunk: u32) {
        let (nodes, _) = self.slots.parts_mut();
        let node = &nodes[index(chunk)];
        debug_assert!(node.state() == FREE);
        let (prev, next) = (node.a, node.b);
        nodes[index(next)].a = prev;
        if *head == chunk {
            *head = next;
        } else {
            nodes[index(prev)].b = next;
        }
    }

    /// Checks one list, and calls `visit` for each chunk in it.
    ///
    /// # Panics
    /// Panics if a chunk in it is not free, or not linked both ways.
    pub(crate) fn validate_list(&self, head: u32, visit: &mut dyn FnMut(u32)) {
        let (mut before, mut chunk) = (NONE, head);
        while chunk != NONE {
            assert!(self.is_free(chunk), "list: chunk {chunk} in a free list is not free");
            let points_back = before == NONE || self.slots.get(chunk).a == before;
            assert!(points_back, "list: chunk {chunk} does not point back");
            visit(chunk);
            (before, chunk) = (chunk, self.list_next(chunk));
        }
    }
}
