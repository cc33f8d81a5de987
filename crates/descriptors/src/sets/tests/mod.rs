//! Tests of `SetBooks` without a driver. `tests/persistent` tests the driver calls.
#![allow(clippy::unwrap_used, reason = "a test")]

mod buckets;
mod model;

use ash::vk;
use ash::vk::Handle;

use super::books::{LayoutKey, NextSet, SetBooks, Ways};

type TestBooks = SetBooks<(), &'static str>;

const ALL: Ways = Ways { free: true, reset: true };
const A: LayoutKey = wanted(1);
const B: LayoutKey = wanted(2);

const fn wanted(layout: u64) -> LayoutKey {
    LayoutKey { layout, handle: vk::DescriptorSetLayout::null() }
}

fn set(number: u64) -> vk::DescriptorSet {
    vk::DescriptorSet::from_raw(number)
}

/// A pool of two sets of A, both live.
fn full() -> (TestBooks, [u32; 2]) {
    let mut books = TestBooks::default();
    let pool = books.add_pool("first", 2);
    let slots = [books.add_live(A, pool, set(1)), books.add_live(A, pool, set(2))];
    books.validate();
    assert_eq!(books.source(A, ALL), NextSet::Nowhere);
    (books, slots)
}

#[test]
fn a_freed_set_serves_its_own_layout_first_and_other_layouts_before_a_pool_is_made() {
    let (mut books, [first, _]) = full();
    books.release(first);
    books.validate();
    assert_eq!(books.source(A, ALL), NextSet::Ready(0));
    assert_eq!(books.source(B, ALL), NextSet::Evict(0));
    let (slot, freed) = books.evictable(0).unwrap();
    assert_eq!(freed, set(1));
    books.evict(slot);
    books.validate();
    assert_eq!(books.source(B, ALL), NextSet::Room(0));
    assert_eq!(books.source(A, ALL), NextSet::Room(0));
}

#[test]
fn an_empty_pool_is_reset_for_another_layout_and_not_freed_set_by_set() {
    let (mut books, slots) = full();
    for slot in slots {
        books.release(slot);
    }
    assert_eq!(books.source(B, ALL), NextSet::Reset(0));
    assert_eq!(books.source(B, Ways { free: true, reset: false }), NextSet::Evict(0));
    assert_eq!(books.source(B, Ways { free: false, reset: false }), NextSet::Replace(0));
    assert_eq!(books.source(A, ALL), NextSet::Ready(0));
    books.reset(0);
    books.validate();
    assert_eq!(books.source(A, ALL), NextSet::Room(0));
    assert_eq!(books.pool(0).unwrap().room, 2);
}

#[test]
fn where_sets_are_not_freed_one_by_one_other_layouts_wait_for_an_empty_pool() {
    let (mut books, [first, second]) = full();
    let ways = Ways { free: false, reset: true };
    books.release(first);
    assert_eq!(books.source(B, ways), NextSet::Nowhere);
    books.release(second);
    assert_eq!(books.source(B, ways), NextSet::Reset(0));
}

#[test]
fn the_lowest_pool_serves_whether_its_set_is_ready_or_new() {
    let (mut books, [first, _]) = full();
    let second = books.add_pool("second", 2);
    assert_eq!(books.source(A, ALL), NextSet::Room(second));
    books.release(first);
    assert_eq!(books.source(A, ALL), NextSet::Ready(0));
    let first = books.take_ready(A, 0).unwrap();
    let other = books.add_live(A, second, set(3));
    books.release(other);
    assert_eq!(books.source(A, ALL), NextSet::Ready(second));
    books.release(first);
    assert_eq!(books.source(A, ALL), NextSet::Ready(0));
    books.validate();
}

#[test]
fn names_end_with_a_free_and_with_a_retirement() {
    let (mut books, [first, second]) = full();
    let names = [first, second].map(|slot| (slot, books.set_of(slot).1));
    let live = |books: &TestBooks| names.map(|(slot, generation)| books.live_set(slot, generation));
    assert_eq!(live(&books), [Some(set(1)), Some(set(2))]);
    books.release(first);
    assert_eq!(live(&books), [None, Some(set(2))]);
    let waits = books.retire(second);
    assert_eq!(live(&books), [None, None]);
    assert_eq!(books.pool(0).unwrap().live, 1, "a retired set is not given to anybody");
    assert_eq!(books.take_ready(A, 0), Some(first));
    assert_eq!(live(&books), [None, None], "the same set with another name");
    assert_eq!(books.source(A, ALL), NextSet::Nowhere);
    books.release(waits);
    assert_eq!(books.source(A, ALL), NextSet::Ready(0));
    books.validate();
}

#[test]
fn a_slot_whose_generations_are_used_up_is_left() {
    let (mut books, [first, second]) = full();
    books.set_generation(first, u32::MAX - 1);
    books.set_generation(second, u32::MAX - 1);
    books.release(first);
    books.validate();
    let again = books.take_ready(A, 0).unwrap();
    assert_ne!(again, first);
    assert_eq!(books.set_of(again), (set(1), 0));
    let waits = books.retire(second);
    assert_ne!(waits, second);
    assert_eq!(books.set_of(waits).0, set(2));
    books.validate();
    books.release(waits);
    books.release(again);
    books.validate();
    books.reset(0);
    books.validate();
    for number in 3..5 {
        let slot = books.add_live(A, 0, set(number));
        assert!(slot != first && slot != second);
    }
    books.validate();
}

#[test]
fn a_sealed_pool_gives_nothing_before_it_is_empty_and_all_of_it_afterwards() {
    let mut books = TestBooks::default();
    let pool = books.add_pool("first", 4);
    let slots = [1, 2, 3].map(|number| books.add_live(A, pool, set(number)));
    books.release(slots[0]);
    books.seal(pool);
    books.validate();
    assert_eq!(books.source(A, ALL), NextSet::Nowhere, "neither the ready set nor the room");
    books.release(slots[1]);
    books.validate();
    assert_eq!(books.source(A, ALL), NextSet::Nowhere);
    books.release(slots[2]);
    assert_eq!(books.pool(pool).unwrap().live, 0);
    books.reset(pool);
    books.validate();
    assert_eq!(books.source(A, ALL), NextSet::Room(pool));
    assert_eq!(books.pool(pool).unwrap().room, 4);
}

#[test]
fn an_empty_pool_goes_only_if_the_others_have_a_quarter_of_it_free() {
    let mut books = TestBooks::default();
    let first = books.add_pool("first", 8);
    let slots: Vec<u32> = (0..8).map(|number| books.add_live(A, first, set(number + 1))).collect();
    let second = books.add_pool("second", 8);
    assert!(!books.has_enough_without(second));
    books.release(slots[0]);
    assert!(!books.has_enough_without(second), "one of eight");
    books.release(slots[1]);
    assert!(books.has_enough_without(second), "two of eight");
    assert_eq!(books.remove_pool(second), Some("second"));
    assert_eq!(books.remove_pool(first), None, "sets of it live");
    books.validate();
    assert_eq!(books.add_pool("third", 1), second, "its place is taken again");
    books.validate();
}

#[test]
fn what_is_held_is_told_by_layout() {
    let (mut books, [first, second]) = full();
    let pool = books.add_pool("second", 2);
    books.add_live(B, pool, set(3));
    books.retire(first);
    let none = vk::DescriptorSetLayout::null();
    assert_eq!(books.held(), [(none, 1, 1), (none, 1, 0)]);
    books.release(second);
    assert_eq!(books.held(), [(none, 0, 1), (none, 1, 0)]);
}
