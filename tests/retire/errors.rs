//! An item that cannot be freed is not lost.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ash::vk;
use sublet::device::{DeviceMemoryCallbacks, DeviceMemoryEvent};
use sublet::retire::OtherClock;
use sublet::{
    AllocationCreateFlags, AllocationCreateInfo, Allocator, AllocatorCreateInfo, ForeignHandle,
    PoolCreateInfo, RetiredResources, ScopeCreateInfo,
};

use super::rig::Rig;
use super::said::said;
use tracing::Level;

#[test]
fn what_is_another_allocators_stays_and_the_rest_is_freed() {
    let rig = Rig::new();
    // SAFETY: instance and device are live, and outlive the allocator.
    let other = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&rig.gpu)) }.unwrap();
    let lane = rig.clock.add_lane().unwrap();
    let ticket = rig.clock.open(lane);
    for _ in 0..3 {
        let (buffer, allocation) = rig.buffer();
        // SAFETY: the device does not use the buffer.
        unsafe { rig.retired.retire_buffer(ticket, buffer, allocation) };
        let requirements = vk::MemoryRequirements { size: 256, alignment: 256, memory_type_bits: !0 };
        let foreign = other.allocate_memory(&requirements, &AllocationCreateInfo::default()).unwrap();
        // SAFETY: the device does not use the memory.
        unsafe { rig.retired.retire_memory(ticket, foreign) };
    }
    rig.clock.discard(ticket).unwrap();
    let error = rig.collect().unwrap_err();
    assert_eq!((error.collected, error.kept, error.refused.len()), (3, 3, 0));
    assert_eq!((rig.retired.len(), rig.buffers()), (3, 0));
    assert_eq!(rig.collect().unwrap_err().kept, 3, "they are still there");
    assert_eq!(rig.retired.collect(&other, &rig.clock).unwrap(), 3);
    assert!(other.destroy().is_empty());
}

#[test]
fn a_pool_or_scope_that_is_gone_gives_the_allocation_back_and_the_buffer_is_destroyed() {
    let rig = Rig::new();
    let lane = rig.clock.add_lane().unwrap();
    let ticket = rig.clock.open(lane);
    let info = vk::BufferCreateInfo::default().size(4096).usage(vk::BufferUsageFlags::TRANSFER_DST);
    let pool = rig.allocator.create_pool(&PoolCreateInfo::new(0)).unwrap();
    let scope = rig.allocator.create_scope(&ScopeCreateInfo::default()).unwrap();
    for from in [AllocationCreateInfo::in_pool(&pool), AllocationCreateInfo::in_scope(&scope)] {
        // SAFETY: the create-info is valid.
        let (buffer, allocation) = unsafe { rig.allocator.create_buffer(&info, &from) }.unwrap();
        // SAFETY: the device does not use the buffer.
        unsafe { rig.retired.retire_buffer(ticket, buffer, allocation) };
    }
    let (buffer, allocation) = rig.buffer();
    // SAFETY: the device does not use the buffer.
    unsafe { rig.retired.retire_buffer(ticket, buffer, allocation) };
    // SAFETY: the device never used them.
    assert_eq!(unsafe { rig.allocator.destroy_pool(pool) }.unwrap().len(), 1);
    // SAFETY: as above.
    unsafe { rig.allocator.free_scope(scope) }.unwrap();
    rig.clock.discard(ticket).unwrap();
    let error = rig.collect().unwrap_err();
    assert_eq!((error.collected, error.kept, error.refused.len()), (1, 0, 2));
    let foreign = ForeignHandle::Allocation.to_string();
    assert!(error.refused.iter().all(|refused| refused.to_string().ends_with(&foreign)), "{error}");
    assert_eq!((rig.retired.len(), rig.buffers()), (0, 0));
}

#[test]
fn what_waits_for_another_clock_is_an_error_and_the_rest_is_freed() {
    let rig = Rig::new();
    let other = sublet::retire::Clock::new();
    let own = rig.clock.open(rig.clock.add_lane().unwrap());
    let foreign = other.open(other.add_lane().unwrap());
    for ticket in [foreign, own, foreign] {
        let (buffer, allocation) = rig.buffer();
        // SAFETY: the device does not use the buffer.
        unsafe { rig.retired.retire_buffer(ticket, buffer, allocation) };
    }
    rig.clock.discard(own).unwrap();
    let error = rig.collect().unwrap_err();
    assert_eq!((error.collected, error.kept), (1, 0));
    assert_eq!(error.other_clock, Some(OtherClock { ticket: foreign, tickets: 1, collected: 1 }));
    assert!(
        error.to_string().contains(&format!("of another clock, the first of them {foreign:?}")),
        "{error}"
    );
    other.discard(foreign).unwrap();
    assert_eq!(rig.retired.collect(&rig.allocator, &other).unwrap(), 2);
}

/// Ten buffers in each, some of which are retired individually.
#[test]
fn pools_and_scopes_wait_for_their_tickets_with_what_is_in_them() {
    let mut rig = Rig::new();
    let lane = rig.clock.add_lane().unwrap();
    let info = vk::BufferCreateInfo::default().size(4096).usage(vk::BufferUsageFlags::TRANSFER_DST);
    let pool = rig.allocator.create_pool(&PoolCreateInfo::new(0)).unwrap();
    let scope = rig.allocator.create_scope(&ScopeCreateInfo::default()).unwrap();
    let in_both = [AllocationCreateInfo::in_pool(&pool), AllocationCreateInfo::in_scope(&scope)];
    let made: Vec<_> = in_both
        .iter()
        // SAFETY: the create-info is valid.
        .flat_map(|from| (0..10).map(|_| unsafe { rig.allocator.create_buffer(&info, from) }.unwrap()))
        .collect();
    let commands = rig.record(&made.iter().map(|(buffer, _)| *buffer).collect::<Vec<_>>());
    let fence = vk::Fence::null();
    let value = rig.submit(commands, None, fence);
    let ticket = rig.clock.open(lane);
    for (buffer, allocation) in made {
        // SAFETY: the recording of the ticket is the last one to use the buffer.
        unsafe { rig.retired.retire_buffer(ticket, buffer, allocation) };
    }
    // SAFETY: everything in the pool was retired before, with the same ticket.
    unsafe { rig.retired.retire_pool(ticket, pool) };
    // SAFETY: as above.
    unsafe { rig.retired.retire_scope(ticket, scope) };
    rig.clock.submit(ticket, value).unwrap();
    assert_eq!((rig.retired.len(), rig.collect().unwrap(), rig.buffers()), (22, 0, 20));
    let blocks = rig.allocator.statistics().block_count;
    assert!(blocks >= 2, "one of the pool, one of the scope");
    rig.execute_all();
    rig.clock.completed(lane, value);
    assert_eq!((rig.collect().unwrap(), rig.buffers()), (22, 0));
    assert_eq!(rig.allocator.statistics().block_count, 0, "both are gone, and their blocks with them");
}

#[test]
fn pools_and_scopes_of_another_allocator_stay_and_leaks_in_a_pool_are_told() {
    let rig = Rig::new();
    // SAFETY: instance and device are live, and outlive the allocator.
    let other = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&rig.gpu)) }.unwrap();
    let ticket = rig.clock.open(rig.clock.add_lane().unwrap());
    let pool = other.create_pool(&PoolCreateInfo::new(0)).unwrap();
    let needed = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
    let info = AllocationCreateInfo { name: Some("left in it"), ..AllocationCreateInfo::in_pool(&pool) };
    let _lost = other.allocate_memory(&needed, &info).unwrap();
    // SAFETY: the device does not use its memory.
    unsafe { rig.retired.retire_pool(ticket, pool) };
    let scope = other.create_scope(&ScopeCreateInfo::default()).unwrap();
    // SAFETY: as above.
    unsafe { rig.retired.retire_scope(ticket, scope) };
    rig.clock.discard(ticket).unwrap();
    let error = rig.collect().unwrap_err();
    assert_eq!((error.collected, error.kept, error.refused.len()), (0, 2, 0));
    assert_eq!((rig.retired.len(), other.statistics().allocation_count), (2, 1));
    let said = said(Level::WARN, || {
        assert_eq!(rig.retired.collect(&other, &rig.clock).unwrap(), 2);
    });
    assert!(said.lines().count() == 1 && said.contains("left in it"), "{said}");
    assert!(other.destroy().is_empty());
}

#[test]
fn a_queue_that_is_dropped_with_a_pool_and_a_scope_says_so_and_they_stay() {
    let rig = Rig::new();
    let ticket = rig.clock.open(rig.clock.add_lane().unwrap());
    let pool = rig.allocator.create_pool(&PoolCreateInfo { min_block_count: 1, ..PoolCreateInfo::new(0) });
    let scope = rig.allocator.create_scope(&ScopeCreateInfo::default()).unwrap();
    let said = said(Level::INFO, || {
        let retired = RetiredResources::new();
        // SAFETY: the device does not use its memory.
        unsafe { retired.retire_pool(ticket, pool.unwrap()) };
        // SAFETY: as above.
        unsafe { retired.retire_scope(ticket, scope) };
    });
    assert!(said.lines().count() == 1 && said.contains("resources=2"), "{said}");
    assert_eq!(rig.allocator.statistics().block_count, 1);
    rig.clock.discard(ticket).unwrap();
}

#[test]
fn a_null_buffer_and_image_are_memory_alone() {
    let rig = Rig::new();
    let ticket = rig.clock.open(rig.clock.add_lane().unwrap());
    // SAFETY: the device does not use the memory.
    unsafe { rig.retired.retire_buffer(ticket, vk::Buffer::null(), rig.memory()) };
    // SAFETY: as above.
    unsafe { rig.retired.retire_image(ticket, vk::Image::null(), rig.memory()) };
    rig.clock.discard(ticket).unwrap();
    assert_eq!(rig.collect().unwrap(), 2);
}

#[test]
fn a_callback_that_panics_loses_nothing_that_waits_behind() {
    let rig = Rig::new();
    let armed = Arc::new(AtomicBool::new(true));
    let once = Arc::clone(&armed);
    let callbacks = DeviceMemoryCallbacks::new(move |event| {
        let freeing = matches!(event, DeviceMemoryEvent::Freeing { .. });
        assert!(!(freeing && once.swap(false, Ordering::Relaxed)), "the program's own");
    });
    let info = AllocatorCreateInfo {
        device_memory_callbacks: Some(callbacks),
        ..AllocatorCreateInfo::for_gpu(&rig.gpu)
    };
    // SAFETY: instance and device are live, and outlive the allocator.
    let allocator = unsafe { Allocator::new(&info) }.unwrap();
    let ticket = rig.clock.open(rig.clock.add_lane().unwrap());
    let dedicated =
        AllocationCreateInfo { flags: AllocationCreateFlags::DEDICATED_MEMORY, ..Default::default() };
    let requirements = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
    for _ in 0..3 {
        let memory = allocator.allocate_memory(&requirements, &dedicated).unwrap();
        // SAFETY: the device does not use the memory.
        unsafe { rig.retired.retire_memory(ticket, memory) };
    }
    rig.clock.discard(ticket).unwrap();
    let collect = || rig.retired.collect(&allocator, &rig.clock);
    assert!(catch_unwind(AssertUnwindSafe(collect)).is_err());
    assert_eq!(rig.retired.len(), 2);
    assert_eq!(collect().unwrap(), 2);
    assert!(rig.retired.is_empty());
    // The interrupted allocator leaks an object.
    drop(rig.release());
}

#[test]
fn a_queue_that_is_dropped_with_resources_says_so() {
    let rig = Rig::new();
    let ticket = rig.clock.open(rig.clock.add_lane().unwrap());
    let said = said(Level::INFO, || {
        drop(RetiredResources::new());
        let retired = RetiredResources::new();
        for _ in 0..2 {
            // SAFETY: the device does not use the memory.
            unsafe { retired.retire_memory(ticket, rig.memory()) };
        }
        drop(retired);
    });
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("WARN") && said.contains("resources=2") && said.contains("bytes=8192"), "{said}");
    assert_eq!(rig.release().allocator.destroy().len(), 2);
}
