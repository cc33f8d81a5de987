//! Items that wait for their tickets.
//!
//! Items are nodes of one arena, chained into batches, with one batch for each ticket. The node of a collected item is
//! reused by the next item.
//!
//! Invariants:
//! - Q1: `waiting` is sorted by ticket, with one batch for each ticket.
//! - Q2: each node is in exactly one chain: that of a batch, or that of the free nodes.
//! - Q3: a node of a batch holds an item, a free node holds none; `len` counts the items.
//! - Q4: between calls, no batch is empty.

use std::collections::VecDeque;

use super::{ClockView, MixedClocks, OtherClock, ReserveError, Ticket};
use sublet_engines::cast::{index, narrow};

/// The end of a chain.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct QueueNode<T> {
    item: Option<T>,
    next: u32,
}

/// The items of one ticket, in the order in which they were pushed.
#[derive(Clone, Copy, Debug)]
struct TicketBatch {
    ticket: Ticket,
    first: u32,
    last: u32,
}

/// The storage of the items.
#[derive(Debug)]
struct NodeArena<T> {
    nodes: Vec<QueueNode<T>>,
    /// The chain of nodes without an item.
    free: u32,
    len: usize,
}

impl<T> NodeArena<T> {
    const fn new() -> Self {
        Self { nodes: Vec::new(), free: NONE, len: 0 }
    }

    /// Stores `item` in a node without a successor. Returns its index.
    #[inline]
    fn put(&mut self, item: T) -> u32 {
        let mut at = self.free;
        if at == NONE {
            assert!(self.nodes.len() < index(NONE), "at most 2^32 - 1 items wait");
            at = narrow(self.nodes.len());
            self.nodes.push(QueueNode { item: Some(item), next: NONE });
        } else {
            let node = &mut self.nodes[index(at)];
            self.free = node.next;
            *node = QueueNode { item: Some(item), next: NONE };
        }
        self.len += 1;
        at
    }

    /// Appends a node to a batch.
    #[inline]
    fn append(&mut self, batch: &mut TicketBatch, node: u32) {
        self.nodes[index(batch.last)].next = node;
        batch.last = node;
    }

    /// Removes the first item of the first batch. All invariants hold on return, so the caller's visitor may panic.
    #[inline]
    fn take_first(&mut self, batches: &mut VecDeque<TicketBatch>) -> Option<T> {
        let batch = batches.front_mut()?;
        let at = batch.first;
        let node = &mut self.nodes[index(at)];
        let item = node.item.take();
        debug_assert!(item.is_some(), "Q3");
        if at == batch.last {
            batches.pop_front();
        } else {
            batch.first = node.next;
        }
        node.next = self.free;
        self.free = at;
        self.len -= 1;
        item
    }
}

/// A queue of items that wait until the GPU is done with them. Push each item with the [`Ticket`] of the last recording
/// that uses it; [`collect`](Self::collect) hands it out once the ticket is done.
///
/// One queue may hold items of several timelines, pushed in any order: no item waits for an unrelated one. All tickets
/// must belong to one clock; [`collect`](Self::collect) reports others. Items come out in the order of their tickets,
/// and items of one ticket in the order of their pushes.
///
/// Dropping the queue drops all items, done or not.
///
/// # Complexity
///
/// `push`: O(1) if no ticket in the queue is higher, which is the usual case. Otherwise a binary search among the
/// tickets of the queue, and a move of the higher ones if the ticket is new. `collect`: O(tickets in the queue + items
/// that are done). Neither allocates host memory once the queue has held as many items.
///
/// # Examples
///
/// Items can be of any type; here, everything that must outlive a recording:
///
/// ```
/// use std::any::Any;
/// use std::sync::Arc;
/// use sublet::retire::{Clock, Retire};
///
/// let clock = Clock::new();
/// let timeline = clock.add_timeline()?;
/// let mut kept: Retire<Box<dyn Any + Send>> = Retire::new();
///
/// let texture = Arc::new("texture");
/// let ticket = clock.open(timeline);
/// kept.push(ticket, Box::new(Arc::clone(&texture))); // shared
/// kept.push(ticket, Box::new(vec![0_u8; 64])); // a temporary value
/// clock.submit(ticket, 1)?;
///
/// clock.completed(timeline, 1);
/// kept.collect(&clock, drop)?;
/// assert_eq!(Arc::strong_count(&texture), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// To wait for tickets of two timelines, push the item with the first. When `collect` hands it out, push it with the
/// second.
#[derive(Debug)]
#[doc(alias = "TrackResource")]
#[doc(alias = "ResourceReleaseQueue")]
pub struct Retire<T> {
    arena: NodeArena<T>,
    waiting: VecDeque<TicketBatch>,
    /// Batches that are being handed out. Between calls, non-empty only if a visitor panicked.
    ready: VecDeque<TicketBatch>,
}

impl<T> Retire<T> {
    /// Creates an empty queue. Allocates no memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { arena: NodeArena::new(), waiting: VecDeque::new(), ready: VecDeque::new() }
    }

    /// Adds `item`, which waits for `ticket`.
    ///
    /// # Panics
    ///
    /// If 2^32 - 1 items wait. Nothing was changed.
    #[inline]
    pub fn push(&mut self, ticket: Ticket, item: T) {
        let node = self.arena.put(item);
        match self.waiting.back_mut() {
            Some(batch) if batch.ticket == ticket => self.arena.append(batch, node),
            Some(batch) if batch.ticket > ticket => self.push_older(ticket, node),
            _ => self.waiting.push_back(TicketBatch { ticket, first: node, last: node }),
        }
    }

    /// Checks that `ticket` belongs to the same clock as the pending tickets, so that one `collect` can cover all. An
    /// empty queue accepts any ticket.
    ///
    /// # Errors
    ///
    /// [`MixedClocks`] if the ticket belongs to another clock.
    pub fn check(&self, ticket: Ticket) -> Result<(), MixedClocks> {
        match self.waiting.back() {
            Some(&TicketBatch { ticket: waiting, .. }) if !waiting.is_of_same_clock(ticket) => {
                Err(MixedClocks { ticket, waiting })
            }
            _ => Ok(()),
        }
    }

    /// Adds a node with a ticket that is not the highest of the queue.
    fn push_older(&mut self, ticket: Ticket, node: u32) {
        match self.waiting.binary_search_by_key(&ticket, |batch| batch.ticket) {
            Ok(at) => self.arena.append(&mut self.waiting[at], node),
            Err(at) => self.waiting.insert(at, TicketBatch { ticket, first: node, last: node }),
        }
    }

    /// Hands out the items whose tickets are done according to `clock`. Returns their number.
    ///
    /// Reads the clock once, before the first item; `visit` may call the clock. If `visit` panics, the remaining done
    /// items come first in the next call.
    ///
    /// # Errors
    ///
    /// [`OtherClock`] if there are tickets of another clock. Their items stay in the queue. All done items were handed
    /// out.
    ///
    /// ```
    /// # use sublet::retire::*;
    /// # let clock = Clock::new();
    /// # let (graphics, transfer) = (clock.add_timeline()?, clock.add_timeline()?);
    /// let mut queue = Retire::new();
    /// let (slow, fast) = (clock.open(graphics), clock.open(transfer));
    /// queue.push(slow, "slow");
    /// queue.push(fast, "fast");
    /// clock.submit(fast, 1)?;
    /// clock.completed(transfer, 1);
    /// let mut free = Vec::new();
    /// assert_eq!(queue.collect(&clock, |item| free.push(item))?, 1);
    /// assert_eq!(free, ["fast"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn collect(&mut self, clock: &ClockView, mut visit: impl FnMut(T)) -> Result<usize, OtherClock> {
        if self.is_empty() {
            return Ok(0);
        }
        let mut foreign: Option<OtherClock> = None;
        {
            let (ready, look) = (&mut self.ready, clock.look());
            self.waiting.retain(|batch| {
                let done = look.is_done(batch.ticket);
                if done {
                    ready.push_back(*batch);
                } else if look.is_foreign(batch.ticket) {
                    let first = OtherClock { ticket: batch.ticket, tickets: 0, collected: 0 };
                    foreign.get_or_insert(first).tickets += 1;
                }
                !done
            });
        }
        let mut count = 0;
        while let Some(item) = self.arena.take_first(&mut self.ready) {
            count += 1;
            visit(item);
        }
        match foreign {
            Some(foreign) => Err(OtherClock { collected: count, ..foreign }),
            None => Ok(count),
        }
    }

    /// Returns the number of waiting items.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.arena.len
    }

    /// Returns true if no item waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.arena.len == 0
    }

    /// Removes all items, done or not. Use it at the end of the program, when the device is idle or lost.
    ///
    /// Items that the iterator does not yield stay in the queue.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        std::iter::from_fn(|| {
            let ready = self.arena.take_first(&mut self.ready);
            ready.or_else(|| self.arena.take_first(&mut self.waiting))
        })
    }

    /// Returns the oldest ticket that an item waits for.
    #[must_use]
    pub fn oldest(&self) -> Option<Ticket> {
        let ready = self.ready.iter().map(|batch| batch.ticket).min();
        let waiting = self.waiting.front().map(|batch| batch.ticket);
        ready.into_iter().chain(waiting).min()
    }

    /// Reserves host memory for `additional` more items, each with its own ticket in the worst case. Pushing and
    /// collecting that many then allocates nothing.
    ///
    /// # Errors
    ///
    /// [`ReserveError`] if more than 2^32 - 1 items would wait, or the host is out of memory. Waiting items are
    /// unchanged, and host memory that the call allocated is released.
    pub fn reserve(&mut self, additional: usize) -> Result<(), ReserveError> {
        let waiting = self.arena.len;
        if waiting.checked_add(additional).is_none_or(|items| items > index(NONE)) {
            return Err(ReserveError::TooMany { additional, waiting });
        }
        let had = (self.arena.nodes.capacity(), self.waiting.capacity(), self.ready.capacity());
        let free = self.arena.nodes.len() - waiting;
        let nodes = self.arena.nodes.try_reserve(additional.saturating_sub(free));
        let reserved = nodes
            .and_then(|()| self.waiting.try_reserve(additional))
            .and_then(|()| self.ready.try_reserve(self.waiting.len() + additional));
        reserved.map_err(|source| {
            self.arena.nodes.shrink_to(had.0);
            self.waiting.shrink_to(had.1);
            self.ready.shrink_to(had.2);
            ReserveError::HostMemory { additional, source }
        })
    }

    /// The number of nodes, used and free.
    #[cfg(test)]
    pub(super) fn nodes(&self) -> usize {
        self.arena.nodes.len()
    }

    /// Asserts all invariants.
    #[cfg(test)]
    pub(super) fn validate(&self) {
        assert!(self.waiting.iter().is_sorted_by(|a, b| a.ticket < b.ticket), "Q1");
        let mut seen = vec![false; self.arena.nodes.len()];
        let mut walk = |first: u32, last: u32, full: bool| {
            let mut at = first;
            while at != NONE {
                let node = &self.arena.nodes[index(at)];
                assert!(!std::mem::replace(&mut seen[index(at)], true), "Q2: node {at} is in two chains");
                assert_eq!(node.item.is_some(), full, "Q3: node {at}");
                if at == last {
                    break;
                }
                at = node.next;
            }
            assert_eq!(at, last, "Q4");
        };
        walk(self.arena.free, NONE, false);
        for batch in self.waiting.iter().chain(&self.ready) {
            walk(batch.first, batch.last, true);
        }
        assert!(seen.iter().all(|&seen| seen), "Q2");
        assert_eq!(self.arena.nodes.iter().filter(|node| node.item.is_some()).count(), self.arena.len, "Q3");
    }
}

impl<T> Default for Retire<T> {
    fn default() -> Self {
        Self::new()
    }
}
