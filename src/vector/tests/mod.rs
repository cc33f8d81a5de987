#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected is to fail")]

mod faults;
mod panics;
mod policies;
mod random;
#[cfg(not(loom))]
mod sealed;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use super::*;
use sublet_engines::{
    Alignment, Counted, CountedCapacity, CountedRequest, Metadata, RangeMetadata, Request, Span, Tlsf,
};

/// The calls that a block source received, and its prepared answers.
#[derive(Debug, Default)]
struct Desk {
    blocks: RefCell<BTreeSet<u32>>,
    items: RefCell<BTreeSet<u32>>,
    next: Cell<u32>,
    resets: Cell<u32>,
    /// The number of calls that succeed before one fails.
    creates: Cell<Option<u32>>,
    realizes: Cell<Option<u32>>,
    /// Destroying a block may resolve a failed creation.
    shortage: Cell<bool>,
    resets_fail: Cell<bool>,
    /// Blocks that refuse.
    exhausted: RefCell<BTreeSet<u32>>,
    /// All new blocks refuse.
    all_exhausted: Cell<bool>,
    /// The call that panics, once.
    panics: Cell<Option<&'static str>>,
}

impl Desk {
    fn blocks(&self) -> usize {
        self.blocks.borrow().len()
    }

    fn items(&self) -> usize {
        self.items.borrow().len()
    }

    /// Begins a call.
    fn enter(&self, call: &'static str) {
        if self.panics.get() == Some(call) {
            self.panics.set(None);
            panic!("{call} panics");
        }
    }

    fn number(&self) -> u32 {
        self.next.set(self.next.get() + 1);
        self.next.get()
    }
}

/// Counts down to the call that fails. Returns true for that call.
fn fails(left: &Cell<Option<u32>>) -> bool {
    let now = left.get();
    left.set(now.and_then(|left| left.checked_sub(1)));
    now == Some(0)
}

/// The error of a failed call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Fault(&'static str);

/// A block source of ranges whose blocks and items are numbers.
struct Numbers {
    desk: Rc<Desk>,
    growth: Growth,
}

impl<M: RangeMetadata> Backing<M> for Numbers {
    type Block = u32;
    type Item = u32;
    type Error = Fault;

    fn capacity_for(&self, request: Option<&Request>, limits: &GrowthLimits) -> Option<NextBlock<u64>> {
        self.desk.enter("capacity_for");
        let needed = request.map_or(0, |request| request.size);
        (needed <= 1 << 20).then(|| self.growth.next(needed, limits.largest))
    }

    fn create(&self, _: &u64) -> Result<u32, Fault> {
        self.desk.enter("create");
        if fails(&self.desk.creates) {
            return Err(Fault("create"));
        }
        let block = self.desk.number();
        self.desk.blocks.borrow_mut().insert(block);
        if self.desk.all_exhausted.get() {
            self.desk.exhausted.borrow_mut().insert(block);
        }
        Ok(block)
    }

    fn destroy(&self, block: u32) {
        assert!(self.desk.blocks.borrow_mut().remove(&block), "block {block} is destroyed twice");
        self.desk.enter("destroy");
    }

    fn reset(&self, block: &mut u32) -> bool {
        self.desk.enter("reset");
        assert!(self.desk.blocks.borrow().contains(block));
        self.desk.resets.set(self.desk.resets.get() + 1);
        self.desk.exhausted.borrow_mut().remove(block);
        !self.desk.resets_fail.get()
    }

    fn realize(&self, block: &mut u32, _: &Span) -> Result<u32, Refusal<Fault>> {
        assert!(self.desk.blocks.borrow().contains(block), "block {block} is gone");
        self.desk.enter("realize");
        if self.desk.exhausted.borrow().contains(block) {
            return Err(Refusal::Exhausted);
        }
        if fails(&self.desk.realizes) {
            return Err(Refusal::Failed(Fault("realize")));
        }
        let item = self.desk.number();
        self.desk.items.borrow_mut().insert(item);
        Ok(item)
    }

    fn release(&self, _: &mut u32, _: &Span, item: u32) {
        assert!(self.desk.items.borrow_mut().remove(&item), "item {item} is released twice");
        self.desk.enter("release");
    }

    fn is_shortage(&self, _: &Fault) -> bool {
        self.desk.shortage.get()
    }
}

type Vector = BlockVector<Numbers, Tlsf>;

/// Blocks of 64 units.
fn vector(policy: Policy) -> (Rc<Desk>, Vector) {
    growing(Growth::fixed(64), policy)
}

fn growing(growth: Growth, policy: Policy) -> (Rc<Desk>, Vector) {
    let desk = Rc::new(Desk::default());
    let numbers = Numbers { desk: Rc::clone(&desk), growth };
    (desk, BlockVector::new(numbers, Tlsf::exact(1 << 20), policy).unwrap())
}

fn units(size: u64) -> Request {
    Request::new(size, Alignment::ONE)
}

/// Each block holds four grants of two kinds.
struct Pools(Rc<Desk>);

impl Backing<Counted<[u32; 2]>> for Pools {
    type Block = u32;
    type Item = ();
    type Error = Fault;

    fn capacity_for(
        &self,
        request: Option<&CountedRequest<[u32; 2]>>,
        _: &GrowthLimits,
    ) -> Option<NextBlock<CountedCapacity<[u32; 2]>>> {
        let usual = [8, 8];
        let counts = request.map_or(usual, |request| request.counts);
        let own = counts.iter().any(|&count| count > 8);
        let grants = if own { 1 } else { 4 };
        let capacity = CountedCapacity { grants, counts: if own { counts } else { usual } };
        Some(NextBlock { capacity, units: grants.into(), own })
    }

    fn create(&self, _: &CountedCapacity<[u32; 2]>) -> Result<u32, Fault> {
        let block = self.0.number();
        self.0.blocks.borrow_mut().insert(block);
        Ok(block)
    }

    fn destroy(&self, block: u32) {
        assert!(self.0.blocks.borrow_mut().remove(&block));
    }

    fn realize(
        &self,
        block: &mut u32,
        _: &<Counted<[u32; 2]> as Metadata>::Span,
    ) -> Result<(), Refusal<Fault>> {
        if self.0.exhausted.borrow().contains(block) { Err(Refusal::Exhausted) } else { Ok(()) }
    }
}

#[test]
fn counts_are_divided_as_ranges_are() {
    let desk = Rc::new(Desk::default());
    let mut vector = BlockVector::new(Pools(Rc::clone(&desk)), Counted::new(), Policy::default()).unwrap();
    let mut sets: Vec<_> = (0..5).map(|_| vector.allocate(&CountedRequest::new([1, 2])).unwrap()).collect();
    assert_eq!((vector.statistics().blocks, vector.statistics().live), (2, 5));
    let large = vector.allocate(&CountedRequest::new([20, 1])).unwrap();
    assert_eq!((vector.statistics().own_blocks, desk.blocks()), (1, 3));
    vector.free(large).unwrap();
    assert_eq!((vector.statistics().own_blocks, desk.blocks()), (0, 2));
    // The second pool refuses, although it has room. It is closed, and a third is created.
    desk.exhausted.borrow_mut().insert(2);
    sets.push(vector.allocate(&CountedRequest::new([1, 2])).unwrap());
    assert_eq!((vector.statistics().sealed_blocks, vector.statistics().blocks), (1, 3));
    vector.validate();
    for set in sets {
        vector.free(set).unwrap();
        vector.validate();
    }
    assert_eq!((vector.statistics().sealed_blocks, vector.statistics().blocks), (0, 1));
}

#[test]
fn what_waits_for_a_ticket_comes_back_when_it_is_done() {
    let (desk, mut vector) = vector(Policy::default());
    let clock = crate::retire::Clock::new();
    let timeline = clock.add_timeline().unwrap();
    let (kept, first) = (vector.allocate(&units(8)).unwrap(), vector.allocate(&units(8)).unwrap());
    let ticket = clock.open(timeline);
    vector.retire(ticket, first).unwrap();
    assert_eq!((vector.collect(&clock), vector.statistics().waiting), (Ok(0), 1));
    clock.submit(ticket, 1).unwrap();
    clock.completed(timeline, 1);
    assert_eq!((vector.collect(&clock), vector.statistics().waiting), (Ok(1), 0));
    assert_eq!(desk.items(), 1);
    vector.free(kept).unwrap();
    vector.validate();
}

#[test]
fn foreign_and_stale_handles_come_back() {
    let ((_, mut one), (_, mut other)) = (vector(Policy::default()), vector(Policy::default()));
    let granted = one.allocate(&units(8)).unwrap();
    let _same_place = other.allocate(&units(8)).unwrap();
    let refused = other.free(granted).unwrap_err();
    assert_eq!(refused.reason, HandleError::Foreign);
    assert_eq!(other.span(refused.granted.key()), Err(HandleError::Foreign));
    let granted = refused.granted;
    assert_eq!(one.clear(), 1);
    assert!(one.block(granted.key()).is_err());
    let again = one.allocate(&units(8)).unwrap();
    let refused = one.free(granted).unwrap_err();
    assert_eq!(refused.reason, HandleError::Stale);
    let clock = crate::retire::Clock::new();
    let ticket = clock.open(clock.add_timeline().unwrap());
    assert_eq!(one.retire(ticket, refused.granted).unwrap_err().reason, HandleError::Stale);
    one.free(again).unwrap();
    one.validate();
}
