//! A subscriber that uses the allocator while it handles an event.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use sublet::retire::{Clock, TimelineId};
use sublet::sim::{Gpu, Profile};
use sublet::{Allocation, AllocationCreateInfo, Allocator, AllocatorCreateInfo};
use sublet_descriptors::{
    DescriptorHeap, DescriptorKind, HeapArrays, HeapCreateInfo, HeapKind, PersistentSets,
    PersistentSetsCreateInfo, SetLayout, SetStore,
};

use crate::collect::heard_with;
use crate::memory::{KIB, MIB, gpu, requirements};
use crate::sets::device_and_layout;

thread_local! {
    /// The allocator that the subscriber uses. The test hangs if an event is emitted under one of its locks.
    static USED: RefCell<Option<Rc<Allocator>>> = const { RefCell::new(None) };
    static HELD: RefCell<Vec<Allocation>> = const { RefCell::new(Vec::new()) };
    static MOVED: Cell<u32> = const { Cell::new(0) };
    static IS_BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Allocates so that a block is created, frees, and reads statistics.
fn use_it() {
    if IS_BUSY.replace(true) {
        return;
    }
    USED.with_borrow(|used| {
        let Some(allocator) = used else { return };
        // Larger than the free space of any block, so that the vector grows.
        let large = AllocationCreateInfo { memory_type_bits: 1, ..Default::default() };
        let large = allocator.allocate_memory(&requirements(20 * MIB), &large);
        let small = allocator.allocate_memory(&requirements(KIB), &Default::default());
        let _ = (allocator.heap_budgets(), allocator.calculate_statistics());
        // SAFETY: nothing was bound to it.
        small.into_iter().for_each(|small| unsafe { allocator.free_memory(small) }.unwrap());
        HELD.with_borrow_mut(|held| held.extend(large));
        allocator.trim();
    });
    IS_BUSY.set(false);
}

#[test]
fn a_subscriber_may_allocate_at_whatever_it_is_told() {
    let mut grown = 0;
    for refused in [false, true] {
        let gpu = gpu();
        // SAFETY: instance and device are live, and outlive the allocator.
        let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
        let allocator = Rc::new(allocator);
        USED.set(Some(Rc::clone(&allocator)));
        let seen = heard_with(
            |_| use_it(),
            || {
                if refused {
                    gpu.faults().fail_above(16 * MIB);
                }
                let info = AllocationCreateInfo { memory_type_bits: 1, ..Default::default() };
                let own =
                    AllocationCreateInfo { flags: sublet::AllocationCreateFlags::DEDICATED_MEMORY, ..info };
                for _ in 0..4 {
                    let mut held: Vec<_> = (0..30)
                        .map(|_| allocator.allocate_memory(&requirements(3 * MIB), &info).unwrap())
                        .collect();
                    held.push(allocator.allocate_memory(&requirements(KIB), &own).unwrap());
                    let _ = allocator.memory_map();
                    // Frees every other allocation. The rest moves.
                    let mut kept = Vec::new();
                    for (at, allocation) in held.drain(..).enumerate() {
                        if at % 2 == 0 {
                            // SAFETY: nothing was bound to it.
                            unsafe { allocator.free_memory(allocation) }.unwrap();
                        } else {
                            kept.push(allocation);
                        }
                    }
                    held = kept;
                    let mut context = allocator.begin_defragmentation(&Default::default()).unwrap();
                    while let Some(pass) = context.begin_pass() {
                        for step in pass {
                            let at = held.iter().position(|it| it.id() == step.source());
                            match at {
                                // SAFETY: nothing was bound to it.
                                Some(at) => unsafe { step.complete(&mut held[at]) }.unwrap(),
                                // Allocations of the subscriber stay where they are.
                                None => step.ignore(),
                            }
                            MOVED.set(MOVED.get() + 1);
                        }
                    }
                    context.end();
                    // SAFETY: nothing was bound to any of them.
                    held.into_iter().for_each(|it| unsafe { allocator.free_memory(it) }.unwrap());
                    allocator.trim();
                    // SAFETY: as above.
                    HELD.take().into_iter().for_each(|it| unsafe { allocator.free_memory(it) }.unwrap());
                }
                allocator.maintain(&sublet::MaintainInfo::default());
                allocator.trim();
            },
        );
        // SAFETY: as above.
        HELD.take().into_iter().for_each(|it| unsafe { allocator.free_memory(it) }.unwrap());
        USED.set(None);
        grown += seen.iter().filter(|seen| seen.name() == "grow").count();
        allocator.validate();
        allocator.trim();
        assert_eq!(allocator.statistics().block_count, 0);
        drop(allocator);
        assert!(gpu.live().is_empty());
        gpu.assert_silent();
    }
    assert!(grown >= 8, "{grown}");
    assert!(MOVED.get() > 0, "nothing was moved");
}

thread_local! {
    static SETS: RefCell<Option<Rc<(PersistentSets, SetLayout)>>> = const { RefCell::new(None) };
    static TOLD: Cell<u32> = const { Cell::new(0) };
}

#[test]
fn a_subscriber_may_ask_for_sets_when_it_is_told_of_pools() {
    let gpu = Gpu::new(Profile::by_name("nvidia-h200").unwrap());
    let (device, layout) = device_and_layout(&gpu);
    let info = PersistentSetsCreateInfo {
        first_sets: 1,
        max_sets: 2,
        keep_idle_pools: 0,
        ..PersistentSetsCreateInfo::new(&device)
    };
    let sets = PersistentSets::new(&info);
    let both = Rc::new((sets, layout));
    SETS.set(Some(Rc::clone(&both)));
    let ask = |_: &crate::collect::Seen| {
        SETS.with_borrow(|both| {
            let Some(both) = both else { return };
            TOLD.set(TOLD.get() + 1);
            if !IS_BUSY.replace(true) {
                let (sets, layout) = &**both;
                // SAFETY: the layout belongs to this device.
                let more: Vec<_> = (0..3).map(|_| unsafe { sets.allocate(layout) }.unwrap()).collect();
                for set in more {
                    // SAFETY: the device never used it.
                    unsafe { sets.free(set) }.unwrap();
                }
                IS_BUSY.set(false);
            }
        });
    };
    heard_with(ask, || {
        for _ in 0..4 {
            let (sets, layout) = &*both;
            // SAFETY: the layout belongs to this device.
            let held: Vec<_> = (0..9).map(|_| unsafe { sets.allocate(layout) }.unwrap()).collect();
            for set in held {
                // SAFETY: the device never used it.
                unsafe { sets.free(set) }.unwrap();
            }
        }
    });
    assert!(TOLD.get() >= 5, "{}", TOLD.get());
    SETS.set(None);
    let (sets, layout) = Rc::into_inner(both).unwrap();
    drop(sets);
    // SAFETY: the device does not use it.
    unsafe { gpu.device().destroy_descriptor_set_layout(layout.handle(), None) };
    drop(device);
    assert!(gpu.finish().is_empty());
}

const CREATED: &str = "descriptor_pool_created";

struct GrowingHeap {
    heap: DescriptorHeap<SetStore>,
    clock: Clock,
    timeline: TimelineId,
}

impl GrowingHeap {
    fn grow(&self) {
        let _kept = self.heap.allocate(self.heap.largest_free() + 1).unwrap();
    }

    /// Destroys the pools that the heap has outgrown.
    fn collect(&self) {
        let ticket = self.clock.open(self.timeline);
        self.clock.discard(ticket).unwrap();
        // SAFETY: no command buffer binds the heap.
        unsafe { self.heap.retire_outgrown(ticket) };
        self.heap.collect(&self.clock).unwrap();
    }
}

thread_local! {
    static HEAP: RefCell<Option<Rc<GrowingHeap>>> = const { RefCell::new(None) };
}

#[test]
fn a_subscriber_may_use_the_heap_whose_pools_it_is_told_of() {
    let gpu = Gpu::new(Profile::by_name("nvidia-h200").unwrap());
    let (device, layout) = device_and_layout(&gpu);
    let (types, arrays) = (&[DescriptorKind::StorageBuffer], HeapArrays::One);
    let info = HeapCreateInfo {
        slots: 4,
        max_slots: 4096,
        types,
        arrays,
        ..HeapCreateInfo::new(HeapKind::Resource)
    };
    let heap = DescriptorHeap::new(SetStore::new(&device, &info).unwrap());
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    let heap = Rc::new(GrowingHeap { heap, clock, timeline });
    HEAP.set(Some(Rc::clone(&heap)));
    let seen = heard_with(
        |seen| {
            HEAP.with_borrow(|heap| {
                let Some(heap) = heap.as_ref().filter(|_| !IS_BUSY.replace(true)) else { return };
                if seen.name() == CREATED {
                    heap.grow()
                } else {
                    heap.collect()
                }
                IS_BUSY.set(false);
            });
        },
        || {
            for _ in 0..2 {
                heap.grow();
                heap.collect();
            }
        },
    );
    HEAP.set(None);
    // `tracing` drops the events that the subscriber causes itself.
    let count = |name| seen.iter().filter(|seen| seen.name() == name).count();
    assert_eq!((count(CREATED), count("descriptor_pool_destroyed")), (2, 4), "{seen:?}");
    // SAFETY: the device does not use the heap.
    unsafe { Rc::into_inner(heap).unwrap().heap.into_store().destroy() };
    // SAFETY: the device does not use it.
    unsafe { gpu.device().destroy_descriptor_set_layout(layout.handle(), None) };
    drop(device);
    assert!(gpu.finish().is_empty());
}
