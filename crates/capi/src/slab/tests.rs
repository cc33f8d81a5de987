//! Slots are reused, and their generations differ.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use std::collections::{BTreeSet, VecDeque};
use std::ffi::CStr;
use std::thread;

use ash::vk;

use super::handles::*;
use crate::types::VmaAllocation;
use sublet::sim::{Gpu, Profile};
use sublet::{Allocation, AllocationCreateInfo};
use sublet::{Allocator, AllocatorCreateInfo};

fn gpu() -> Gpu {
    Gpu::new(Profile::by_name("lavapipe").unwrap())
}

fn allocate(allocator: &Allocator, mark: u64) -> Allocation {
    let needs = vk::MemoryRequirements { size: 64, alignment: 64, memory_type_bits: !0 };
    let info = AllocationCreateInfo { user_data: mark, ..Default::default() };
    allocator.allocate_memory(&needs, &info).unwrap()
}

fn insert(slab: &HandleSlab, allocation: &Allocation) -> VmaAllocation {
    // SAFETY: it is not used again.
    unsafe { slab.insert(allocation) }
}

/// Frees allocation and slot, as `vmaFreeMemory` does. Returns true if the handle was live.
fn free(allocator: &Allocator, slab: &HandleSlab, handle: VmaAllocation) -> bool {
    // SAFETY: the slab lives, and no other call uses the handle.
    let Some(slot) = (unsafe { slab.own(handle) }) else { return false };
    // SAFETY: no device uses it.
    unsafe { allocator.free_in_place(slot.allocation()) }.unwrap();
    // SAFETY: as above.
    unsafe { slab.remove(slot) };
    true
}

fn mark_of(handle: VmaAllocation) -> Option<u64> {
    // SAFETY: the slab lives, and no other call uses the handle.
    unsafe { HandleSlot::of(handle) }.map(|slot| slot.allocation().user_data())
}

#[test]
fn a_handle_is_good_until_it_is_freed() {
    let gpu = gpu();
    // SAFETY: the device outlives the allocator.
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
    let (slab, other) = (HandleSlab::new(), HandleSlab::new());
    let first = insert(&slab, &allocate(&allocator, 1));
    assert_eq!(mark_of(first), Some(1));
    assert!(!free(&allocator, &other, first), "another slab took the slot");
    assert_eq!(mark_of(first), Some(1));
    assert!(free(&allocator, &slab, first));
    assert_eq!(mark_of(first), None);
    assert!(!free(&allocator, &slab, first), "freed twice");
    // All of them reuse one slot, and no handle repeats within 128.
    let mut seen = BTreeSet::from([first.addr()]);
    for round in 0..127 {
        let next = insert(&slab, &allocate(&allocator, round));
        assert_eq!(next.addr() & !GENERATION_MASK, first.addr() & !GENERATION_MASK);
        assert!(seen.insert(next.addr()), "round {round}");
        assert_eq!((mark_of(first), mark_of(next)), (None, Some(round)));
        assert!(free(&allocator, &slab, next));
    }
    assert_eq!(mark_of(std::ptr::null_mut()), None);
}

#[test]
fn what_a_slot_kept_is_gone_when_it_is_used_again() {
    let gpu = gpu();
    // SAFETY: the device outlives the allocator.
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
    let slab = HandleSlab::new();
    let first = insert(&slab, &allocate(&allocator, 1));
    // SAFETY: the slab lives, and no other call uses the handle.
    let slot = unsafe { HandleSlot::of(first) }.unwrap();
    // SAFETY: as above.
    unsafe { slot.set_name(Some(c"name".to_owned())) };
    slot.count_map(std::ptr::without_provenance_mut(64));
    slot.count_map(std::ptr::without_provenance_mut(64));
    assert_eq!((slot.map_count(), slot.mapped().addr()), (2, 64));
    // SAFETY: the name is a string.
    assert_eq!(unsafe { CStr::from_ptr(slot.name()) }, c"name");
    assert!(free(&allocator, &slab, first));
    let second = insert(&slab, &allocate(&allocator, 2));
    // SAFETY: as above.
    let slot = unsafe { HandleSlot::of(second) }.unwrap();
    assert!(slot.name().is_null() && slot.mapped().is_null());
    assert!(slot.map_count() == 0 && !slot.count_unmap());
    slot.count_map(std::ptr::without_provenance_mut(64));
    assert!(slot.count_unmap() && !slot.count_unmap() && slot.mapped().is_null());
    // SAFETY: the copy replaces the allocation.
    let mut changed = unsafe { slot.copy() };
    changed.set_user_data(3);
    // SAFETY: as above.
    unsafe { slab.replace(slot, changed) };
    assert_eq!(mark_of(second), Some(3));
    assert!(free(&allocator, &slab, second));
}

#[test]
fn slots_are_walked_once_each() {
    let gpu = gpu();
    // SAFETY: the device outlives the allocator.
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
    let slab = HandleSlab::new();
    let count = if cfg!(miri) { 100 } else { 5_000 };
    let mut handles: VecDeque<_> =
        (0..count).map(|mark| insert(&slab, &allocate(&allocator, mark))).collect();
    let distinct: BTreeSet<_> = handles.iter().map(|handle| handle.addr() & !GENERATION_MASK).collect();
    assert_eq!(distinct.len(), handles.len());
    for _ in 0..count / 2 {
        assert!(free(&allocator, &slab, handles.pop_front().unwrap()));
    }
    let mut marks = Vec::new();
    slab.for_each(|handle, slot| {
        assert_eq!(mark_of(handle), Some(slot.allocation().user_data()));
        marks.push(slot.allocation().user_data());
    });
    marks.sort_unstable();
    assert!(marks.iter().copied().eq(count / 2..count));
    for handle in handles {
        assert!(free(&allocator, &slab, handle));
    }
    slab.for_each(|_, _| panic!("nothing is left"));
}

#[test]
fn threads_free_what_others_have_made() {
    let gpu = gpu();
    // SAFETY: the device outlives the allocator.
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
    let slab = HandleSlab::new();
    let rounds: u64 = if cfg!(miri) { 50 } else { 2_000 };
    let (allocator, slab) = (&allocator, &slab);
    thread::scope(|scope| {
        for thread in 0..3 {
            let (sender, receiver) = std::sync::mpsc::channel::<usize>();
            scope.spawn(move || {
                for mark in 0..rounds {
                    let handle = insert(slab, &allocate(allocator, thread << 32 | mark));
                    sender.send(handle.expose_provenance()).unwrap();
                }
            });
            scope.spawn(move || {
                for (address, mark) in receiver.iter().zip(0..) {
                    let handle = std::ptr::with_exposed_provenance_mut(address);
                    assert_eq!(mark_of(handle), Some(thread << 32 | mark));
                    assert!(free(allocator, slab, handle));
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..20 {
                slab.for_each(|_, slot| assert!(slot.allocation().user_data() >> 32 < 3));
            }
        });
    });
    slab.for_each(|_, _| panic!("nothing is left"));
    // Slots returned to their own stripes, so no stripe has more slots than its own threads ever held.
    slab.validate();
}
