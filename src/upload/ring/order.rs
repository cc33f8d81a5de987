//! The books of a ring: which bytes of it are whose.
//!
//! Offsets go up, and start again at 0 where the end is too near. Nothing is freed but the oldest piece, whole: so two
//! offsets and a short list are all there is. The linear engine is a ring as well; it keeps a record of each
//! allocation, so that each can be freed by itself, and nobody would do that here.
//!
//! ```text
//!    0        tail                    head                size
//!    |..........|#1######|#2####|#open#|...................|     not wrapped: what is used is between tail and head
//!
//!    0        head         tail                          size
//!    |#2#|#open#|............|#1#################|--------|     wrapped: what is free is between head and tail
//!                                                 - left, because 2 did not fit there
//! ```
//!
//! Invariants, asserted by `validate` under these numbers:
//! - O1: `taken` is the bytes from `tail` round to `head`, and the pieces and the open one make it up.
//! - O2: an upload never goes over the end.
//! - O3: a piece begins where the one before it ended, rounded to an atom where the memory has to be flushed.
#![forbid(unsafe_code)]

use std::collections::VecDeque;

use crate::retire::{ClockView, MixedClocks, OtherClock, Ticket};
use crate::upload::error::UploadError;
use crate::upload::piece::padding;

/// What one recording has of the ring.
#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    /// Bytes of the ring, with those that are lost.
    taken: u64,
    /// Bytes that were asked for.
    used: u64,
    /// Bytes that were left at the end of the ring.
    tail: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Order {
    size: u64,
    head: u64,
    /// Where the free run that `head` is in ends.
    limit: u64,
    tail: u64,
    /// Bytes that are not free.
    taken: u64,
    /// The piece that no ticket was given for yet, and where it begins.
    open: Piece,
    begin: u64,
    /// Where the open piece left the end of the ring, if it has.
    wrapped_at: Option<u64>,
    /// With the place where each one ends, oldest first.
    pieces: VecDeque<(Ticket, u64, Piece)>,
    pub(super) peak: u64,
    /// The start of the ring is at a multiple of this wherever it is looked at from.
    most_alignment: u64,
}

impl Order {
    pub(super) fn new(size: u64, most_alignment: u64) -> Self {
        Self {
            size,
            head: 0,
            limit: size,
            tail: 0,
            taken: 0,
            open: Piece::default(),
            begin: 0,
            wrapped_at: None,
            pieces: VecDeque::new(),
            peak: 0,
            most_alignment,
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// An offset for `size` bytes, and the bytes are taken.
    #[inline]
    pub(super) fn allocate(&mut self, size: u64, alignment: u64) -> Result<u64, UploadError> {
        if size != 0 && alignment.is_power_of_two() && alignment <= self.most_alignment {
            if let Some(offset) = self.take(size, alignment) {
                return Ok(offset);
            }
        }
        self.turn(size, alignment)
    }

    #[inline]
    fn take(&mut self, size: u64, alignment: u64) -> Option<u64> {
        let padding = padding(self.head, alignment);
        let rest = (self.limit - self.head).checked_sub(padding)?;
        if size > rest {
            return None;
        }
        let offset = self.head + padding;
        self.head = offset + size;
        self.taken += padding + size;
        self.open.taken += padding + size;
        self.open.used += size;
        Some(offset)
    }

    /// Goes back to the start if there is room, or says why there is none.
    #[cold]
    #[inline(never)]
    fn turn(&mut self, size: u64, alignment: u64) -> Result<u64, UploadError> {
        self.check(size, alignment)?;
        let left = self.size - self.head;
        self.wrapped_at = Some(self.head);
        (self.head, self.limit) = (0, self.tail);
        self.taken += left;
        self.open.taken += left;
        self.open.tail += left;
        // The start is aligned for all that `check` lets through, and `check` saw that there is room up to the tail.
        let Some(offset) = self.take(size, alignment) else {
            unreachable!("the start has room for {size} bytes");
        };
        Ok(offset)
    }

    /// Whether [`Self::allocate`] would find room, or why not.
    pub(super) fn check(&self, size: u64, alignment: u64) -> Result<(), UploadError> {
        if size == 0 {
            return Err(UploadError::ZeroSize);
        }
        if !alignment.is_power_of_two() {
            return Err(UploadError::Alignment { alignment });
        }
        if size > self.size {
            return Err(UploadError::Oversize { size, max: self.size });
        }
        if alignment > self.most_alignment {
            return Err(UploadError::AlignmentTooLarge { alignment, max: self.most_alignment });
        }
        let rest = (self.limit - self.head).checked_sub(padding(self.head, alignment));
        if rest.is_some_and(|rest| size <= rest) || (!self.is_wrapped() && size <= self.tail) {
            return Ok(());
        }
        Err(UploadError::Full { size, alignment, free: self.free(), largest_free: self.largest_free() })
    }

    /// What is free is one run, from head to tail.
    fn is_wrapped(&self) -> bool {
        self.head < self.tail || (self.head == self.tail && self.taken > 0)
    }

    pub(super) fn free(&self) -> u64 {
        self.size - self.taken
    }

    fn largest_free(&self) -> u64 {
        if self.is_wrapped() { self.limit - self.head } else { (self.limit - self.head).max(self.tail) }
    }

    /// The bytes that the open piece has written, in two runs at most; an empty one has its ends together.
    pub(super) fn written(&self) -> [(u64, u64); 2] {
        match self.wrapped_at {
            Some(end) => [(self.begin, end), (0, self.head)],
            None => [(self.begin, self.head), (0, 0)],
        }
    }

    pub(super) fn has_open(&self) -> bool {
        self.open.taken > 0
    }

    /// The open piece is `ticket`'s, and another one begins at `next`, which is not below the head.
    pub(super) fn close(&mut self, ticket: Ticket, next: u64) {
        let rounding = next - self.head;
        self.head = next;
        self.taken += rounding;
        self.open.taken += rounding;
        self.peak = self.peak.max(self.taken);
        self.pieces.push_back((ticket, self.head, std::mem::take(&mut self.open)));
        (self.begin, self.wrapped_at) = (self.head, None);
    }

    pub(super) fn head(&self) -> u64 {
        self.head
    }

    pub(super) fn oldest(&self) -> Option<Ticket> {
        self.pieces.front().map(|&(ticket, ..)| ticket)
    }

    /// Whether the ticket is of the clock that the pieces wait for.
    pub(super) fn check_clock(&self, ticket: Ticket) -> Result<(), MixedClocks> {
        match self.pieces.back() {
            Some(&(waiting, ..)) if !waiting.is_of_same_clock(ticket) => Err(MixedClocks { ticket, waiting }),
            _ => Ok(()),
        }
    }

    /// Frees pieces from the oldest on, as far as they are done. Returns how many; an error if the next one waits for
    /// another clock.
    pub(super) fn collect(&mut self, clock: &ClockView) -> Result<usize, OtherClock> {
        let mut count = 0;
        let mut foreign = None;
        while let Some(&(ticket, end, piece)) = self.pieces.front() {
            if !clock.is_done(ticket) {
                foreign = Some(ticket).filter(|&ticket| clock.is_foreign(ticket));
                break;
            }
            self.pieces.pop_front();
            self.tail = end;
            self.taken -= piece.taken;
            count += 1;
        }
        if self.taken == 0 {
            // Nobody has anything: begin at the start, where the longest run is.
            (self.head, self.tail, self.begin) = (0, 0, 0);
        }
        self.limit = if self.is_wrapped() { self.tail } else { self.size };
        match foreign {
            Some(ticket) => {
                let tickets = self.pieces.iter().filter(|&&(ticket, ..)| clock.is_foreign(ticket)).count();
                Err(OtherClock { ticket, tickets, collected: count })
            }
            None => Ok(count),
        }
    }

    pub(super) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    fn sum(&self, of: impl Fn(&Piece) -> u64) -> u64 {
        self.pieces.iter().map(|(_, _, piece)| of(piece)).sum::<u64>() + of(&self.open)
    }

    /// Bytes that were asked for.
    pub(super) fn used(&self) -> u64 {
        self.sum(|piece| piece.used)
    }

    /// Bytes that were left at the end of the ring.
    pub(super) fn tails(&self) -> u64 {
        self.sum(|piece| piece.tail)
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Whether anybody may use anything.
    pub(super) fn is_empty(&self) -> bool {
        self.taken == 0
    }

    /// See the invariants in the [module](self).
    pub(super) fn validate(&self) {
        assert_eq!(self.taken, self.sum(|piece| piece.taken), "O1");
        let round = if self.is_wrapped() { self.size - self.tail + self.head } else { self.head - self.tail };
        assert_eq!(self.taken, round, "O1");
        assert!(self.head <= self.limit && self.limit <= self.size && self.tail <= self.size, "O2");
        assert_eq!(self.limit, if self.is_wrapped() { self.tail } else { self.size }, "O2");
        let last = self.pieces.back().map_or(self.tail, |&(_, end, _)| end);
        assert_eq!(self.begin, last, "O3");
    }
}
