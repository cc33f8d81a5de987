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

use super::fixture::Fixture;
use super::said::said;
use tracing::Level;

#[test]
fn what_is_another_allocators_stays_and_the_rest_is_freed() {
    let fixture = Fixture::new();
    // SAFETY: instance and device are live, and outlive the allocator.
    let other = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&fixture.gpu)) }.unwrap();
    let timeline = fixture.clock.add_timeline().unwrap();
    let ticket = fixture.clock.open(timeline);
    for _ in 0..3 {
        let (buffer, allocation) = fixture.buffer();
        // SAFETY: the device does not use the buffer.
        unsafe { fixture.retired.retire_buffer(ticket, buffer, allocation) };
        let requirements = vk::MemoryRequirements { size: 256, alignment: 256, memory_type_bits: !0 };
        let foreign = other.allocate_memory(&requirements, &AllocationCreateInfo::default()).unwrap();
        // SAFETY: the device does not use the memory.
        unsafe { fixture.retired.retire_memory(ticket, foreign) };
    }
    fixture.clock.discard(ticket).unwrap();
    let error = fixture.collect().unwrap_err();
    assert_eq!((error.collected, error.kept, error.refused.len()), (3, 3, 0));
    assert_eq!((fixture.retired.len(), fixture.buffers()), (3, 0));
    assert_eq!(fixture.collect().unwrap_err().kept, 3, "they are still there");
    assert_eq!(fixture.retired.collect(&other, &fixture.clock).unwrap(), 3);
    assert!(other.destroy().is_empty());
}

#[test]
fn a_pool_or_scope_that_is_gone_gives_the_allocation_back_and_the_buffer_is_destroyed() {
    let fixture = Fixture::new();
    let timeline = fixture.clock.add_timeline().unwrap();
    let ticket = fixture.clock.open(timeline);
    let info = vk::BufferCreateInfo::default().size(4096).usage(vk::BufferUsageFlags::TRANSFER_DST);
    let pool = fixture.allocator.create_pool(&PoolCreateInfo::new(0)).unwrap();
    let scope = fixture.allocator.create_scope(&ScopeCreateInfo::default()).unwrap();
    for from in [AllocationCreateInfo::in_pool(&pool), AllocationCreateInfo::in_scope(&scope)] {
        // SAFETY: the create-info is valid.
        let (buffer, allocation) = unsafe { fixture.allocator.create_buffer(&info, &from) }.unwrap();
        // SAFETY: the device does not use the buffer.
        unsafe { fixture.retired.retire_buffer(ticket, buffer, allocation) };
    }
    let (buffer, allocation) = fixture.buffer();
    // SAFETY: the device does not use the buffer.
    unsafe { fixture.retired.retire_buffer(ticket, buffer, allocation) };
    // SAFETY: the device never used them.
    assert_eq!(unsafe { fixture.allocator.destroy_pool(pool) }.unwrap().len(), 1);
    // SAFETY: as above.
    unsafe { fixture.allocator.free_scope(scope) }.unwrap();
    fixture.clock.discard(ticket).unwrap();
    let error = fixture.collect().unwrap_err();
    assert_eq!((error.collected, error.kept, error.refused.len()), (1, 0, 2));
    let foreign = ForeignHandle::Allocation.to_string();
    assert!(error.refused.iter().all(|refused| refused.to_string().ends_with(&foreign)), "{error}");
    assert_eq!((fixture.retired.len(), fixture.buffers()), (0, 0));
}

#[test]
fn what_waits_for_another_clock_is_an_error_and_the_rest_is_freed() {
    let fixture = Fixture::new();
    let other = sublet::retire::Clock::new();
    let own = fixture.clock.open(fixture.clock.add_timeline().unwrap());
    let foreign = other.open(other.add_timeline().unwrap());
    for ticket in [foreign, own, foreign] {
        let (buffer, allocation) = fixture.buffer();
        // SAFETY: the device does not use the buffer.
        unsafe { fixture.retired.retire_buffer(ticket, buffer, allocation) };
    }
    fixture.clock.discard(own).unwrap();
    let error = fixture.collect().unwrap_err();
    assert_eq!((error.collected, error.kept), (1, 0));
    assert_eq!(error.other_clock, Some(OtherClock { ticket: foreign, tickets: 1, collected: 1 }));
    assert!(
        error.to_string().contains(&format!("of another clock, the first of them {foreign:?}")),
        "{error}"
    );
    other.discard(foreign).unwrap();
    assert_eq!(fixture.retired.collect(&fixture.allocator, &other).unwrap(), 2);
}

/// Ten buffers in each, some of which are retired individually.
#[test]
fn pools_and_scopes_wait_for_their_tickets_with_what_is_in_them() {
    let mut fixture = Fixture::new();
    let timeline = fixture.clock.add_timeline().unwrap();
    let info = vk::BufferCreateInfo::default().size(4096).usage(vk::BufferUsageFlags::TRANSFER_DST);
    let pool = fixture.allocator.create_pool(&PoolCreateInfo::new(0)).unwrap();
    let scope = fixture.allocator.create_scope(&ScopeCreateInfo::default()).unwrap();
    let in_both = [AllocationCreateInfo::in_pool(&pool), AllocationCreateInfo::in_scope(&scope)];
    let made: Vec<_> = in_both
        .iter()
        // SAFETY: the create-info is valid.
        .flat_map(|from| (0..10).map(|_| unsafe { fixture.allocator.create_buffer(&info, from) }.unwrap()))
        .collect();
    let commands = fixture.record(&made.iter().map(|(buffer, _)| *buffer).collect::<Vec<_>>());
    let fence = vk::Fence::null();
    let value = fixture.submit(commands, None, fence);
    let ticket = fixture.clock.open(timeline);
    for (buffer, allocation) in made {
        // SAFETY: the recording of the ticket is the last one to use the buffer.
        unsafe { fixture.retired.retire_buffer(ticket, buffer, allocation) };
    }
    // SAFETY: everything in the pool was retired before, with the same ticket.
    unsafe { fixture.retired.retire_pool(ticket, pool) };
    // SAFETY: as above.
    unsafe { fixture.retired.retire_scope(ticket, scope) };
    fixture.clock.submit(ticket, value).unwrap();
    assert_eq!((fixture.retired.len(), fixture.collect().unwrap(), fixture.buffers()), (22, 0, 20));
    let blocks = fixture.allocator.statistics().block_count;
    assert!(blocks >= 2, "one of the pool, one of the scope");
    fixture.execute_all();
    fixture.clock.completed(timeline, value);
    assert_eq!((fixture.collect().unwrap(), fixture.buffers()), (22, 0));
    assert_eq!(fixture.allocator.statistics().block_count, 0, "both are gone, and their blocks with them");
}

#[test]
fn pools_and_scopes_of_another_allocator_stay_and_leaks_in_a_pool_are_told() {
    let fixture = Fixture::new();
    // SAFETY: instance and device are live, and outlive the allocator.
    let other = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&fixture.gpu)) }.unwrap();
    let ticket = fixture.clock.open(fixture.clock.add_timeline().unwrap());
    let pool = other.create_pool(&PoolCreateInfo::new(0)).unwrap();
    let needed = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
    let info = AllocationCreateInfo { name: Some("left in it"), ..AllocationCreateInfo::in_pool(&pool) };
    let _lost = other.allocate_memory(&needed, &info).unwrap();
    // SAFETY: the device does not use its memory.
    unsafe { fixture.retired.retire_pool(ticket, pool) };
    let scope = other.create_scope(&ScopeCreateInfo::default()).unwrap();
    // SAFETY: as above.
    unsafe { fixture.retired.retire_scope(ticket, scope) };
    fixture.clock.discard(ticket).unwrap();
    let error = fixture.collect().unwrap_err();
    assert_eq!((error.collected, error.kept, error.refused.len()), (0, 2, 0));
    assert_eq!((fixture.retired.len(), other.statistics().allocation_count), (2, 1));
    let said = said(Level::WARN, || {
        assert_eq!(fixture.retired.collect(&other, &fixture.clock).unwrap(), 2);
    });
    assert!(said.lines().count() == 1 && said.contains("left in it"), "{said}");
    assert!(other.destroy().is_empty());
}

#[test]
fn a_queue_that_is_dropped_with_a_pool_and_a_scope_says_so_and_they_stay() {
    let fixture = Fixture::new();
    let ticket = fixture.clock.open(fixture.clock.add_timeline().unwrap());
    let pool =
        fixture.allocator.create_pool(&PoolCreateInfo { min_block_count: 1, ..PoolCreateInfo::new(0) });
    let scope = fixture.allocator.create_scope(&ScopeCreateInfo::default()).unwrap();
    let said = said(Level::INFO, || {
        let retired = RetiredResources::new();
        // SAFETY: the device does not use its memory.
        unsafe { retired.retire_pool(ticket, pool.unwrap()) };
        // SAFETY: as above.
        unsafe { retired.retire_scope(ticket, scope) };
    });
    assert!(said.lines().count() == 1 && said.contains("resources=2"), "{said}");
    assert_eq!(fixture.allocator.statistics().block_count, 1);
    fixture.clock.discard(ticket).unwrap();
}

#[test]
fn a_null_buffer_and_image_are_memory_alone() {
    let fixture = Fixture::new();
    let ticket = fixture.clock.open(fixture.clock.add_timeline().unwrap());
    // SAFETY: the device does not use the memory.
    unsafe { fixture.retired.retire_buffer(ticket, vk::Buffer::null(), fixture.memory()) };
    // SAFETY: as above.
    unsafe { fixture.retired.retire_image(ticket, vk::Image::null(), fixture.memory()) };
    fixture.clock.discard(ticket).unwrap();
    assert_eq!(fixture.collect().unwrap(), 2);
}

#[test]
fn a_callback_that_panics_loses_nothing_that_waits_behind() {
    let fixture = Fixture::new();
    let armed = Arc::new(AtomicBool::new(true));
    let once = Arc::clone(&armed);
    let callbacks = DeviceMemoryCallbacks::new(move |event| {
        let freeing = matches!(event, DeviceMemoryEvent::Freeing { .. });
        assert!(!(freeing && once.swap(false, Ordering::Relaxed)), "the program's own");
    });
    let info = AllocatorCreateInfo {
        device_memory_callbacks: Some(callbacks),
        ..AllocatorCreateInfo::for_gpu(&fixture.gpu)
    };
    // SAFETY: instance and device are live, and outlive the allocator.
    let allocator = unsafe { Allocator::new(&info) }.unwrap();
    let ticket = fixture.clock.open(fixture.clock.add_timeline().unwrap());
    let dedicated =
        AllocationCreateInfo { flags: AllocationCreateFlags::DEDICATED_MEMORY, ..Default::default() };
    let requirements = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
    for _ in 0..3 {
        let memory = allocator.allocate_memory(&requirements, &dedicated).unwrap();
        // SAFETY: the device does not use the memory.
        unsafe { fixture.retired.retire_memory(ticket, memory) };
    }
    fixture.clock.discard(ticket).unwrap();
    let collect = || fixture.retired.collect(&allocator, &fixture.clock);
    assert!(catch_unwind(AssertUnwindSafe(collect)).is_err());
    assert_eq!(fixture.retired.len(), 2);
    assert_eq!(collect().unwrap(), 2);
    assert!(fixture.retired.is_empty());
    // The interrupted allocator leaks an object.
    drop(fixture.release());
}

#[test]
fn a_queue_that_is_dropped_with_resources_says_so() {
    let fixture = Fixture::new();
    let ticket = fixture.clock.open(fixture.clock.add_timeline().unwrap());
    let said = said(Level::INFO, || {
        drop(RetiredResources::new());
        let retired = RetiredResources::new();
        for _ in 0..2 {
            // SAFETY: the device does not use the memory.
            unsafe { retired.retire_memory(ticket, fixture.memory()) };
        }
        drop(retired);
    });
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("WARN") && said.contains("resources=2") && said.contains("bytes=8192"), "{said}");
    assert_eq!(fixture.release().allocator.destroy().len(), 2);
}
