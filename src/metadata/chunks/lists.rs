//! Lists of free chunks, threaded through the nodes: what an engine finds its free chunks with.
//!
//! Only from the second chunk of a list on is there a link back: that of the first one may name any node.
#![forbid(unsafe_code)]

use super::slots::FREE;
use super::{Chunks, NONE};
use crate::base::cast::index;

impl Chunks {
    /// The next free chunk in the list that `chunk` is in, or [`NONE`].
    #[inline]
    pub(in crate::metadata) fn list_next(&self, chunk: u32) -> u32 {
        self.slots.get(chunk).b
    }

    /// Units of a free chunk, and the next one in its list, or [`NONE`]: in one look.
    #[inline]
    pub(in crate::metadata) fn listed(&self, chunk: u32) -> (u64, u32) {
        let node = self.slots.get(chunk);
        (node.size, node.b)
    }

    /// Puts a free chunk that is in no list at the head of the list that starts at `head`.
    #[inline]
    pub(in crate::metadata) fn list_push(&mut self, head: &mut u32, chunk: u32) {
        let next = *head;
        let (nodes, _) = self.slots.parts_mut();
        let node = &mut nodes[index(chunk)];
        debug_assert!(node.state() == FREE);
        node.a = NONE;
        node.b = next;
        // Of slot 0 if there is none: see C1.
        nodes[index(next)].a = chunk;
        *head = chunk;
    }

    /// Puts a free chunk that is in no list behind `before`, which is in one.
    pub(in crate::metadata) fn list_insert_behind(&mut self, before: u32, chunk: u32) {
        let next = self.list_next(before);
        let node = self.slots.get_mut(chunk);
        debug_assert!(node.state() == FREE);
        node.a = before;
        node.b = next;
        self.slots.get_mut(next).a = chunk;
        self.slots.get_mut(before).b = chunk;
    }

    /// Takes a free chunk out of the list that starts at `head`.
    #[inline]
    pub(in crate::metadata) fn list_remove(&mut self, head: &mut u32, chunk: u32) {
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

    /// Checks one list for [`Chunks::validate`]'s caller: calls `visit` for each chunk in it.
    ///
    /// # Panics
    /// If a chunk in it is not free, or not linked both ways.
    pub(in crate::metadata) fn validate_list(&self, head: u32, visit: &mut dyn FnMut(u32)) {
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
