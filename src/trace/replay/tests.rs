#![expect(unsafe_code, reason = "tests call Vulkan")]
#![allow(clippy::unwrap_used, reason = "a test")]

use ash::vk;

use super::*;
use crate::allocation::ResourceKind;
use crate::allocator::AllocatorCreateInfo;
use crate::create_info::{AllocationCreateFlags, AllocatorCreateFlags, MemoryUsage};
use crate::engine::Algorithm;
use crate::trace::*;
use sublet_sim::{Gpu, Profile};

const KIB: u64 = 1 << 10;

fn record(event: Event) -> Record {
    Record { event, ..Record::default() }
}

fn trace(events: impl IntoIterator<Item = Event>) -> Trace {
    Trace { records: events.into_iter().map(record).collect(), ..Trace::default() }
}

fn allocate_with(number: u32, size: u64, wanted: Wanted) -> Event {
    Event::Allocate(Box::new(Allocate {
        allocation: AllocationNumber(number),
        resource: Needs { size, alignment: 256, kind: ResourceKind::Buffer, ..Needs::default() },
        wanted,
        granted: GrantedMemory::default(),
    }))
}

fn allocate(number: u32, size: u64) -> Event {
    allocate_with(number, size, Wanted::default())
}

fn free(number: u32) -> Event {
    Event::Free { allocation: AllocationNumber(number) }
}

fn in_pool(pool: u32) -> Wanted {
    Wanted { pool: Some(PoolNumber(pool)), ..Wanted::default() }
}

fn pool(number: u32, settings: PoolSettings) -> Event {
    Event::CreatePool { pool: PoolNumber(number), settings: Box::new(settings) }
}

fn small_pool() -> PoolSettings {
    PoolSettings { block_size: 256 * KIB, max_block_count: 1, ..PoolSettings::default() }
}

/// Returns the results on lavapipe, which has one memory type. Checks that no allocation is left.
fn replayed(trace: &Trace) -> ReplayReport {
    let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    // SAFETY: instance and device are live, and outlive the allocator.
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
    let report = Replay::new(trace, &allocator).finish();
    allocator.validate();
    assert!(allocator.destroy().is_empty());
    gpu.assert_silent();
    report
}

#[test]
fn what_is_not_there_is_passed_over_and_counted() {
    let (allocation, pool, scope) = (AllocationNumber(7), PoolNumber(7), ScopeNumber(7));
    let defragmentation = DefragmentationNumber(7);
    let events = [
        free(7),
        Event::Map { allocation },
        Event::Unmap { allocation },
        Event::Flush { allocation, offset: 0, size: 1 },
        Event::Invalidate { allocation, offset: 0, size: 1 },
        Event::SetName { allocation, name: None },
        Event::DestroyPool { pool },
        Event::SettleInPool { pool },
        Event::FreeScope { scope },
        allocate_with(0, 1, in_pool(7)),
        Event::BeginPass { defragmentation, moves: 1 },
        Event::Move { defragmentation, allocation, outcome: MoveOutcome::Completed },
        Event::EndPass { defragmentation },
        Event::EndDefragmentation { defragmentation },
    ];
    let count = u64::try_from(events.len()).unwrap();
    let report = replayed(&trace(events));
    assert_eq!((report.unknown, report.events), (count, count));
    assert!(report.calls.iter().all(|calls| calls.made == 0));
}

#[test]
fn an_unmap_without_a_map_is_not_made() {
    let allocation = AllocationNumber(0);
    let events = [
        allocate(0, KIB),
        Event::Unmap { allocation },
        Event::Map { allocation },
        Event::Unmap { allocation },
    ];
    let report = replayed(&trace(events));
    assert_eq!(
        (report.unknown, report.call(CallKind::Unmap).made, report.call(CallKind::Unmap).failed),
        (1, 1, 0)
    );
}

#[test]
fn what_is_refused_here_is_counted_and_so_is_what_is_done_to_it() {
    let events = [
        pool(0, small_pool()),
        allocate_with(0, 200 * KIB, in_pool(0)),
        allocate_with(1, 200 * KIB, in_pool(0)),
        Event::Map { allocation: AllocationNumber(1) },
        free(1),
        free(0),
    ];
    let report = replayed(&trace(events));
    let allocate = report.call(CallKind::Allocate);
    assert_eq!((report.refused, allocate.made, allocate.failed, report.unknown), (1, 2, 1, 2));
    assert_eq!(allocate.latencies.count(), 2, "what fails takes its time as well");
}

#[test]
fn what_was_refused_is_asked_for_again_and_freed_at_once_if_it_is_granted() {
    let failed = |size, wanted: Wanted, failure| {
        let resource = Needs { size, ..Needs::default() };
        Event::AllocateFailed(Box::new(AllocateFailed { resource, wanted, failure }))
    };
    let events = [
        pool(0, small_pool()),
        failed(512 * KIB, in_pool(0), Failure::BlockTooSmall),
        failed(KIB, in_pool(0), Failure::Driver),
        failed(KIB, Wanted::default(), Failure::ForeignPool),
    ];
    let report = replayed(&trace(events));
    assert_eq!((report.refused_in_recording, report.granted_after_all, report.refused), (3, 1, 0));
    assert_eq!(report.call(CallKind::Allocate).made, 2, "which pool was meant is not known");
    assert_eq!(report.call(CallKind::Free).made, 0, "the program freed nothing");
    assert_eq!(report.memory.at_end.allocation_count, 0);
}

#[test]
fn what_ends_with_its_pool_or_scope_is_gone() {
    let (pool_number, scope) = (PoolNumber(0), ScopeNumber(0));
    let in_scope = Wanted { scope: Some(scope), ..Wanted::default() };
    let events = [
        pool(0, PoolSettings::default()),
        Event::CreateScope { scope, settings: Box::default() },
        allocate_with(0, KIB, in_pool(0)),
        allocate_with(1, KIB, in_scope),
        allocate(2, KIB),
        Event::DestroyPool { pool: pool_number },
        Event::FreeScope { scope },
        free(0),
        free(1),
        free(2),
    ];
    let report = replayed(&trace(events));
    assert_eq!((report.unknown, report.call(CallKind::Free).made), (2, 1));
    assert_eq!(report.memory.at_end.allocation_count, 0);
}

#[test]
fn a_replay_that_is_dropped_at_any_event_leaves_nothing() {
    let defragmentation = DefragmentationNumber(0);
    let mut events = vec![
        pool(
            0,
            PoolSettings { block_size: 256 * KIB, algorithm: Algorithm::Tlsf, ..PoolSettings::default() },
        ),
        Event::CreateScope { scope: ScopeNumber(0), settings: Box::default() },
        allocate_with(100, KIB, Wanted { scope: Some(ScopeNumber(0)), ..Wanted::default() }),
        Event::Map { allocation: AllocationNumber(100) },
    ];
    events.extend((0..8).map(|number| allocate_with(number, 60 * KIB, in_pool(0))));
    events.extend([free(0), free(2), free(5)]);
    let mut begin = BeginDefragmentation::new(defragmentation);
    begin.pools.push(PoolNumber(0));
    events.push(Event::BeginDefragmentation(Box::new(begin)));
    events.push(Event::BeginPass { defragmentation, moves: 9 });
    for number in [1, 3, 4, 6, 7] {
        let allocation = AllocationNumber(number);
        events.push(Event::Move { defragmentation, allocation, outcome: MoveOutcome::Completed });
    }
    events.push(Event::EndPass { defragmentation });
    events.push(Event::EndDefragmentation { defragmentation });
    let trace = trace(events);

    let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    for steps in 0..=trace.records.len() {
        // SAFETY: instance and device are live, and outlive the allocator.
        let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
        let mut replay = Replay::new(&trace, &allocator);
        (0..steps).for_each(|_| assert!(replay.step().is_some()));
        drop(replay);
        allocator.validate();
        assert!(allocator.destroy().is_empty(), "after {steps} events");
    }
    gpu.assert_silent();
    let report = replayed(&trace);
    assert!(report.moves_missing < 5, "some were planned here, too");
}

/// The gain is the bytes that the emptied blocks had, and the replay goes on.
#[test]
fn a_replay_can_be_defragmented_at_any_moment() {
    let mut events = vec![pool(0, PoolSettings { block_size: 256 * KIB, ..PoolSettings::default() })];
    events.extend((0..16).map(|number| allocate_with(number, 60 * KIB, in_pool(0))));
    events.push(Event::Map { allocation: AllocationNumber(3) });
    events.extend((0..16).filter(|number| number % 4 != 3).map(free));
    let moment = events.len();
    events.push(Event::Unmap { allocation: AllocationNumber(3) });
    events.extend((0..16).filter(|number| number % 4 == 3).map(free));
    let trace = trace(events);
    let gained = trace.header.with_allocator(|gpu, allocator| {
        let mut replay = Replay::new(&trace, allocator);
        (0..moment).for_each(|_| assert!(replay.step().is_some()));
        let before = replay.report().memory.at_end.reserved_bytes;
        let gained = replay.defragment();
        assert_eq!(replay.report().memory.at_end.reserved_bytes, before - gained.bytes_freed);
        let report = replay.finish();
        assert_eq!((report.unknown, report.call(CallKind::Free).made), (0, 16));
        gpu.assert_silent();
        gained
    });
    let gained = gained.unwrap();
    assert_eq!(
        (gained.allocations_moved, gained.bytes_freed),
        (3, 2 * 256 * KIB),
        "four blocks become one, and the pool keeps an empty one"
    );
}

/// Like the C interface, where a program may unmap an allocation after a move.
#[test]
fn mappings_go_along_with_what_is_moved() {
    let defragmentation = DefragmentationNumber(0);
    let kept = [1, 3, 4, 6, 7].map(AllocationNumber);
    let mut events = vec![pool(0, PoolSettings { block_size: 256 * KIB, ..PoolSettings::default() })];
    events.extend((0..8).map(|number| allocate_with(number, 60 * KIB, in_pool(0))));
    events.extend(kept.map(|allocation| Event::Map { allocation }));
    events.extend([0, 2, 5].map(free));
    let mut begin = BeginDefragmentation::new(defragmentation);
    begin.pools.push(PoolNumber(0));
    events.push(Event::BeginDefragmentation(Box::new(begin)));
    events.push(Event::BeginPass { defragmentation, moves: 9 });
    let outcome = MoveOutcome::Completed;
    events.extend(kept.map(|allocation| Event::Move { defragmentation, allocation, outcome }));
    events.push(Event::EndPass { defragmentation });
    events.push(Event::EndDefragmentation { defragmentation });
    events.extend(kept.map(|allocation| Event::Unmap { allocation }));
    events.extend(kept.map(|allocation| Event::Free { allocation }));
    let report = replayed(&trace(events));
    assert!(report.moves_missing < 5, "some were planned here, too");
    let unmap = report.call(CallKind::Unmap);
    assert_eq!((report.unknown, unmap.made, unmap.failed), (0, 5, 0));
}

#[test]
fn a_number_that_is_given_twice_is_the_later_one() {
    let scope = ScopeNumber(0);
    let events = [
        allocate(0, KIB),
        allocate(0, 2 * KIB),
        pool(0, small_pool()),
        allocate_with(1, KIB, in_pool(0)),
        pool(0, small_pool()),
        free(1),
        Event::CreateScope { scope, settings: Box::default() },
        Event::CreateScope { scope, settings: Box::default() },
    ];
    let report = replayed(&trace(events));
    assert_eq!(report.unknown, 4);
}

#[test]
fn any_call_of_the_driver_may_fail_and_nothing_is_left() {
    let mapped =
        Wanted { usage: MemoryUsage::CpuToGpu, flags: AllocationCreateFlags::MAPPED, ..Wanted::default() };
    let alone = Wanted { flags: AllocationCreateFlags::DEDICATED_MEMORY, ..Wanted::default() };
    let min = PoolSettings { min_block_count: 1, ..small_pool() };
    let trace = trace([
        pool(0, min),
        allocate(0, KIB),
        allocate_with(1, KIB, mapped),
        allocate_with(2, 300 * KIB, alone),
        allocate_with(3, KIB, in_pool(0)),
        Event::CopyTo { allocation: AllocationNumber(1), offset: 0, size: 64 },
        free(0),
        Event::Trim,
        free(1),
        allocate(4, KIB),
    ]);
    let gpu = Gpu::new(Profile::by_name("nvidia-rtx-5070-ti").unwrap());
    for call in ["vkAllocateMemory", "vkMapMemory"] {
        for number in 0..6 {
            // SAFETY: instance and device are live, and outlive the allocator.
            let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
            gpu.faults().fail_nth(call, number, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
            let report = Replay::new(&trace, &allocator).finish();
            gpu.faults().clear();
            let failed: u64 = report.calls.iter().map(|calls| calls.failed).sum();
            assert!(failed <= 2 && report.refused <= 1, "{call} {number}: {report:?}");
            assert!(allocator.destroy().is_empty(), "{call} {number}");
        }
    }
    gpu.assert_silent();
}

#[test]
fn a_header_of_nonsense_is_a_device_all_the_same() {
    let flags = vk::MemoryPropertyFlags::DEVICE_LOCAL | vk::MemoryPropertyFlags::HOST_VISIBLE;
    let odd = Header {
        device_name: "no such device".repeat(40).into(),
        device_type: vk::PhysicalDeviceType::from_raw(77),
        heaps: vec![TraceHeap { size: 0, flags: vk::MemoryHeapFlags::empty() }; 40],
        memory_types: vec![TraceMemoryType { heap: 99, flags }; 80],
        buffer_image_granularity: 0,
        non_coherent_atom_size: u64::MAX,
        max_memory_allocation_count: 0,
        api_version: u32::MAX,
        device_api_version: u32::MAX,
        flags: AllocatorCreateFlags::all(),
        heap_size_limits: vec![1; 60],
        tracking: u32::MAX,
        ..Header::default()
    };
    for header in [odd, Header::default()] {
        let gpu = header.simulated().build();
        // SAFETY: instance and device are live, and outlive the allocator.
        let allocator = unsafe { Allocator::new(&header.create_info(&gpu)) }.unwrap();
        let trace = Trace { header, ..trace([allocate(0, KIB), free(0)]) };
        assert_eq!(Replay::new(&trace, &allocator).finish().events, 2);
        drop(allocator);
        gpu.assert_silent();
    }
}

#[test]
fn the_same_device_has_the_same_profile_and_a_known_one_its_own() {
    for profile in sublet_sim::profiles::ALL {
        let gpu = Gpu::new(profile);
        // SAFETY: the physical device belongs to this live instance.
        let said = unsafe { gpu.instance().get_physical_device_properties(gpu.physical_device()) };
        let mut header = Header {
            device_name: profile.device_name.into(),
            vendor_id: said.vendor_id,
            device_id: said.device_id,
            device_type: said.device_type,
            driver_version: said.driver_version,
            device_api_version: said.api_version,
            heaps: profile
                .heaps
                .iter()
                .map(|heap| TraceHeap { size: heap.size, flags: heap.flags })
                .collect(),
            memory_types: profile
                .types
                .iter()
                .map(|kind| TraceMemoryType { heap: kind.heap, flags: kind.flags })
                .collect(),
            buffer_image_granularity: said.limits.buffer_image_granularity,
            non_coherent_atom_size: said.limits.non_coherent_atom_size,
            max_memory_allocation_count: said.limits.max_memory_allocation_count,
            ..Header::default()
        };
        assert!(std::ptr::eq(header.profile(), *profile), "{}", profile.name);
        header.heaps[0].size /= 2;
        let posed = header.profile();
        assert_eq!(posed.heaps[0].size, profile.heaps[0].size / 2);
        assert_eq!(posed.types.len(), profile.types.len());
        assert!(std::ptr::eq(header.profile(), posed), "it is made once");
    }
}
