//! Tests of `BucketState` without a driver. `tests/persistent` tests the driver calls.
#![allow(clippy::unwrap_used, reason = "a test")]

mod buckets;
mod model;

use ash::vk;
use ash::vk::Handle;

use super::state::{BucketState, LayoutKey, NextSet, Ways};

type TestBucketState = BucketState<(), &'static str>;

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
fn full() -> (TestBucketState, [u32; 2]) {
    let mut state = TestBucketState::default();
    let pool = state.add_pool("first", 2);
    let slots = [state.add_live(A, pool, set(1)), state.add_live(A, pool, set(2))];
    state.validate();
    assert_eq!(state.source(A, ALL), NextSet::Nowhere);
    (state, slots)
}

#[test]
fn a_freed_set_serves_its_own_layout_first_and_other_layouts_before_a_pool_is_made() {
    let (mut state, [first, _]) = full();
    state.release(first);
    state.validate();
    assert_eq!(state.source(A, ALL), NextSet::Ready(0));
    assert_eq!(state.source(B, ALL), NextSet::Evict(0));
    let (slot, freed) = state.evictable(0).unwrap();
    assert_eq!(freed, set(1));
    state.evict(slot);
    state.validate();
    assert_eq!(state.source(B, ALL), NextSet::Room(0));
    assert_eq!(state.source(A, ALL), NextSet::Room(0));
}

#[test]
fn an_empty_pool_is_reset_for_another_layout_and_not_freed_set_by_set() {
    let (mut state, slots) = full();
    for slot in slots {
        state.release(slot);
    }
    assert_eq!(state.source(B, ALL), NextSet::Reset(0));
    assert_eq!(state.source(B, Ways { free: true, reset: false }), NextSet::Evict(0));
    assert_eq!(state.source(B, Ways { free: false, reset: false }), NextSet::Replace(0));
    assert_eq!(state.source(A, ALL), NextSet::Ready(0));
    state.reset(0);
    state.validate();
    assert_eq!(state.source(A, ALL), NextSet::Room(0));
    assert_eq!(state.pool(0).unwrap().room, 2);
}

#[test]
fn where_sets_are_not_freed_one_by_one_other_layouts_wait_for_an_empty_pool() {
    let (mut state, [first, second]) = full();
    let ways = Ways { free: false, reset: true };
    state.release(first);
    assert_eq!(state.source(B, ways), NextSet::Nowhere);
    state.release(second);
    assert_eq!(state.source(B, ways), NextSet::Reset(0));
}

#[test]
fn the_lowest_pool_serves_whether_its_set_is_ready_or_new() {
    let (mut state, [first, _]) = full();
    let second = state.add_pool("second", 2);
    assert_eq!(state.source(A, ALL), NextSet::Room(second));
    state.release(first);
    assert_eq!(state.source(A, ALL), NextSet::Ready(0));
    let first = state.take_ready(A, 0).unwrap();
    let other = state.add_live(A, second, set(3));
    state.release(other);
    assert_eq!(state.source(A, ALL), NextSet::Ready(second));
    state.release(first);
    assert_eq!(state.source(A, ALL), NextSet::Ready(0));
    state.validate();
}

#[test]
fn names_end_with_a_free_and_with_a_retirement() {
    let (mut state, [first, second]) = full();
    let names = [first, second].map(|slot| (slot, state.set_of(slot).1));
    let live = |state: &TestBucketState| names.map(|(slot, generation)| state.live_set(slot, generation));
    assert_eq!(live(&state), [Some(set(1)), Some(set(2))]);
    state.release(first);
    assert_eq!(live(&state), [None, Some(set(2))]);
    let waits = state.retire(second);
    assert_eq!(live(&state), [None, None]);
    assert_eq!(state.pool(0).unwrap().live, 1, "a retired set is not given to anybody");
    assert_eq!(state.take_ready(A, 0), Some(first));
    assert_eq!(live(&state), [None, None], "the same set with another name");
    assert_eq!(state.source(A, ALL), NextSet::Nowhere);
    state.release(waits);
    assert_eq!(state.source(A, ALL), NextSet::Ready(0));
    state.validate();
}

#[test]
fn a_slot_whose_generations_are_used_up_is_left() {
    let (mut state, [first, second]) = full();
    state.set_generation(first, u32::MAX - 1);
    state.set_generation(second, u32::MAX - 1);
    state.release(first);
    state.validate();
    let again = state.take_ready(A, 0).unwrap();
    assert_ne!(again, first);
    assert_eq!(state.set_of(again), (set(1), 0));
    let waits = state.retire(second);
    assert_ne!(waits, second);
    assert_eq!(state.set_of(waits).0, set(2));
    state.validate();
    state.release(waits);
    state.release(again);
    state.validate();
    state.reset(0);
    state.validate();
    for number in 3..5 {
        let slot = state.add_live(A, 0, set(number));
        assert!(slot != first && slot != second);
    }
    state.validate();
}

#[test]
fn a_sealed_pool_gives_nothing_before_it_is_empty_and_all_of_it_afterwards() {
    let mut state = TestBucketState::default();
    let pool = state.add_pool("first", 4);
    let slots = [1, 2, 3].map(|number| state.add_live(A, pool, set(number)));
    state.release(slots[0]);
    state.seal(pool);
    state.validate();
    assert_eq!(state.source(A, ALL), NextSet::Nowhere, "neither the ready set nor the room");
    state.release(slots[1]);
    state.validate();
    assert_eq!(state.source(A, ALL), NextSet::Nowhere);
    state.release(slots[2]);
    assert_eq!(state.pool(pool).unwrap().live, 0);
    state.reset(pool);
    state.validate();
    assert_eq!(state.source(A, ALL), NextSet::Room(pool));
    assert_eq!(state.pool(pool).unwrap().room, 4);
}

#[test]
fn an_empty_pool_goes_only_if_the_others_have_a_quarter_of_it_free() {
    let mut state = TestBucketState::default();
    let first = state.add_pool("first", 8);
    let slots: Vec<u32> = (0..8).map(|number| state.add_live(A, first, set(number + 1))).collect();
    let second = state.add_pool("second", 8);
    assert!(!state.has_enough_without(second));
    state.release(slots[0]);
    assert!(!state.has_enough_without(second), "one of eight");
    state.release(slots[1]);
    assert!(state.has_enough_without(second), "two of eight");
    assert_eq!(state.remove_pool(second), Some("second"));
    assert_eq!(state.remove_pool(first), None, "sets of it live");
    state.validate();
    assert_eq!(state.add_pool("third", 1), second, "its place is taken again");
    state.validate();
}

#[test]
fn what_is_held_is_told_by_layout() {
    let (mut state, [first, second]) = full();
    let pool = state.add_pool("second", 2);
    state.add_live(B, pool, set(3));
    state.retire(first);
    let none = vk::DescriptorSetLayout::null();
    assert_eq!(state.held(), [(none, 1, 1), (none, 1, 0)]);
    state.release(second);
    assert_eq!(state.held(), [(none, 0, 1), (none, 1, 0)]);
}
