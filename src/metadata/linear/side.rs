//! One side of a region: its allocations in the order in which they were made.
#![forbid(unsafe_code)]

use std::collections::VecDeque;

use super::serial::Serial;
use crate::metadata::Tag;

/// One allocation, or the hole that it left.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(super) struct Record {
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) serial: Serial,
    /// The lowest 30 bits are the tag, the highest says that this was freed.
    bits: u32,
}

// Two to a cache line of 64 bytes, none across two.
const _: () = assert!(size_of::<Record>() == 32);

const FREED: u32 = 1 << 31;
const _: () = assert!(FREED & Tag::MASK == 0);

impl Record {
    #[inline]
    pub(super) const fn new(offset: u64, size: u64, serial: Serial, tag: Tag) -> Self {
        Self { offset, size, serial, bits: tag.0 & Tag::MASK }
    }

    /// The unit behind the last one. A record lies in its region, so this cannot overflow.
    #[inline]
    pub(super) const fn end(&self) -> u64 {
        self.offset + self.size
    }

    #[inline]
    pub(super) const fn is_live(&self) -> bool {
        self.bits & FREED == 0
    }

    #[inline]
    pub(super) const fn tag(&self) -> Tag {
        Tag(self.bits & Tag::MASK)
    }
}

/// Where a record was that [`Side::take`] took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    Front,
    Middle,
    Back,
}

/// A queue of records, oldest first. Freed ones stay as holes until an end of the queue reaches them, so that both ends
/// are live: taking holes off the back pops the stack, taking them off the front moves the ring on.
#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    records: VecDeque<Record>,
}

impl Side {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The oldest; live.
    #[inline]
    pub(super) fn front(&self) -> Option<&Record> {
        self.records.front()
    }

    /// The newest; live.
    #[inline]
    pub(super) fn back(&self) -> Option<&Record> {
        self.records.back()
    }

    #[inline]
    pub(super) fn push(&mut self, record: Record) {
        self.records.push_back(record);
    }

    /// Forgets all records. Keeps the memory.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.records.clear();
    }

    pub(super) fn records(&self) -> &VecDeque<Record> {
        &self.records
    }

    /// Bytes of host memory held.
    pub(super) fn heap_bytes(&self) -> usize {
        self.records.capacity() * size_of::<Record>()
    }

    /// Whether memory for records is held.
    #[inline]
    pub(super) fn is_warm(&self) -> bool {
        self.records.capacity() != 0
    }

    /// Frees the record with that number, if it is live. One that is both front and back counts as front.
    #[inline]
    pub(super) fn take(&mut self, serial: Serial) -> Option<(Record, Place)> {
        let front = *self.records.front()?;
        if front.serial == serial {
            self.records.pop_front();
            while let Some(next) = self.records.front() {
                if next.is_live() {
                    break;
                }
                self.records.pop_front();
            }
            return Some((front, Place::Front));
        }
        let back = *self.records.back()?;
        if back.serial == serial {
            self.records.pop_back();
            // The front is live, and is not what was popped: this ends there at the latest.
            while let Some(next) = self.records.back() {
                if next.is_live() {
                    break;
                }
                self.records.pop_back();
            }
            return Some((back, Place::Back));
        }
        let at = self.find(serial)?;
        let record = self.records.get_mut(at)?;
        if !record.is_live() {
            return None;
        }
        let taken = *record;
        record.bits |= FREED;
        Some((taken, Place::Middle))
    }

    /// The live record with that number.
    pub(super) fn live(&self, serial: Serial) -> Option<&Record> {
        self.records.get(self.find(serial)?).filter(|record| record.is_live())
    }

    /// Where the record with that number is.
    ///
    /// The numbers of neighbours differ by one, except where records were popped between two pushes. So the first guess
    /// is right unless the stack was popped and the front is still older than that; then this is a binary search over
    /// as many records as were popped.
    #[inline]
    fn find(&self, serial: Serial) -> Option<usize> {
        let (front, back) = (self.records.front()?, self.records.back()?);
        let last = self.records.len() - 1;
        let ahead = serial.since(front.serial);
        let span = back.serial.since(front.serial);
        if ahead > span {
            return None;
        }
        // Numbers rise by one or more from record to record: `at <= ahead` and `last - at <= span - ahead`.
        let mut high = usize::try_from(ahead).map_or(last, |ahead| ahead.min(last));
        if self.records.get(high)?.serial == serial {
            return Some(high);
        }
        let mut low = usize::try_from(span - ahead).map_or(0, |behind| last.saturating_sub(behind));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.records.get(middle)?.serial.since(front.serial) < ahead {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (self.records.get(low)?.serial == serial).then_some(low)
    }

    /// Asserts L1 and L2 of the engine.
    pub(super) fn validate(&self) {
        let (Some(front), Some(back)) = (self.front(), self.back()) else {
            return;
        };
        assert!(front.is_live() && back.is_live(), "L1: an end of a queue is a hole");
        let mut before = None;
        for record in &self.records {
            let age = record.serial.since(front.serial);
            assert!(before < Some(age), "L2: serial numbers do not rise");
            before = Some(age);
        }
    }
}
