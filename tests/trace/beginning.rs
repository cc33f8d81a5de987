//! Pools, scopes and allocations that exist when a recording begins.

use sublet::trace::{AllocationNumber, Event, PoolNumber, ScopeNumber, StartRecordingError, TraceBuffer};
use sublet::{
    Algorithm, AllocationCreateFlags as Flags, AllocationCreateInfo, MemoryUsage, PoolCreateInfo,
    ResourceKind, ScopeCreateInfo, Tracking,
};

use crate::fixture::*;

#[test]
fn what_lives_already_is_recorded_first() {
    let gpu = gpu();
    let allocator = allocator_with(&gpu, |info| info.tracking = Tracking::USER_DATA);
    let pool_info = PoolCreateInfo {
        block_size: MIB,
        max_block_count: 1,
        algorithm: Algorithm::Linear,
        name: Some("ring"),
        ..PoolCreateInfo::new(0)
    };
    let pool = allocator.create_pool(&pool_info).unwrap();
    let gone = allocator.create_scope(&ScopeCreateInfo::default()).unwrap();
    let scope_info = ScopeCreateInfo { name: Some("level"), ..Default::default() };
    let scope = allocator.create_scope(&scope_info).unwrap();
    // SAFETY: the scope is empty.
    unsafe { allocator.free_scope(gone) }.unwrap();
    let named = AllocationCreateInfo {
        usage: MemoryUsage::GpuOnly,
        name: Some("old"),
        user_data: 5,
        ..Default::default()
    };
    let in_default = allocator.allocate_memory(&requirements(1000), &named).unwrap();
    let alone = AllocationCreateInfo { flags: Flags::DEDICATED_MEMORY, ..named };
    let alone = allocator.allocate_memory(&requirements(2000), &alone).unwrap();
    let in_pool = AllocationCreateInfo::in_pool(&pool);
    let in_pool = allocator.allocate_memory(&requirements(3000), &in_pool).unwrap();
    let in_scope =
        AllocationCreateInfo { usage: MemoryUsage::GpuOnly, ..AllocationCreateInfo::in_scope(&scope) };
    // SAFETY: only a buffer would be bound to it.
    let _of_scope =
        unsafe { allocator.allocate_memory_of_kind(&requirements(4000), ResourceKind::Buffer, &in_scope) }
            .unwrap();
    let trace = recorded(&allocator, || {
        for allocation in [in_default, alone, in_pool] {
            free(&allocator, allocation);
        }
        // SAFETY: nothing was bound to its allocations.
        unsafe { allocator.free_scope(scope) }.unwrap();
        // SAFETY: the pool is empty.
        unsafe { allocator.destroy_pool(pool) }.unwrap();
    });
    let mut existing = Vec::new();
    for record in &trace.records {
        match &record.event {
            Event::Existing(one) => existing.push((**one).clone()),
            Event::CreatePool { pool: PoolNumber(0), settings } => {
                assert_eq!(settings.name.as_deref(), Some("ring"));
                assert_eq!((settings.block_size, settings.max_block_count), (MIB, 1));
                assert_eq!(settings.algorithm, Algorithm::Linear);
            }
            Event::CreateScope { scope: ScopeNumber(0), settings } => {
                assert_eq!(settings.name.as_deref(), Some("level"));
            }
            event => {
                let rest = &trace.records[trace.records.len() - 5..];
                assert!(rest.iter().any(|record| record.event == *event), "{event:?}");
            }
        }
        let is_call =
            matches!(record.event, Event::Free { .. } | Event::FreeScope { .. } | Event::DestroyPool { .. });
        assert!(is_call || record.time.is_zero(), "{record:?}");
    }
    existing.sort_by_key(|existing| existing.size);
    let facts: Vec<_> = existing.iter().map(|of| (of.size, of.dedicated, of.pool, of.scope)).collect();
    assert_eq!(facts[1], (2000, true, None, None));
    assert_eq!((facts[0].1, facts[0].2, facts[0].3), (false, None, None));
    assert_eq!((facts[2].2, facts[2].3), (Some(PoolNumber(0)), None));
    assert_eq!((facts[3].2, facts[3].3), (None, Some(ScopeNumber(0))));
    assert!(
        existing
            .iter()
            .zip([1000, 2000, 3000, 4000])
            .all(|(of, size)| of.size >= size && of.size <= size + 4096)
    );
    assert!(existing.iter().all(|of| of.alignment >= 256));
    assert_eq!((existing[0].name.as_deref(), existing[0].user_data), (Some("old"), Some(5)));
    assert_eq!((existing[3].kind, existing[0].kind), (ResourceKind::Buffer, ResourceKind::Unknown));
    assert_eq!(existing.len(), 4);
    assert_eq!(trace.unknown_events, 0);
    // Two records of other existing objects, and the ends.
    assert_eq!(trace.records.len(), 4 + 2 + 3 + 2);
}

#[test]
fn an_allocator_records_once_at_a_time_and_as_often_as_it_likes() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    allocator.start_recording(TraceBuffer::new()).unwrap();
    let error = allocator.start_recording(TraceBuffer::new()).unwrap_err();
    assert!(matches!(error, StartRecordingError::Recording), "{error}");
    assert!(allocator.is_recording());
    allocator.stop_recording().unwrap();
    assert!(!allocator.is_recording());
    let kept = allocate(&allocator, 64);
    for _ in 0..3 {
        let trace = recorded(&allocator, || free(&allocator, allocate(&allocator, 128)));
        assert_eq!(trace.records.len(), 3);
        assert_eq!(trace.records[0].event.allocation(), Some(AllocationNumber(0)));
    }
    free(&allocator, kept);
}

/// A trace is consistent, whatever other threads do when the recording begins.
#[test]
fn recordings_begin_and_end_while_other_threads_allocate() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let gpu = gpu();
    let allocator = &allocator(&gpu);
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            scope.spawn(move || {
                let mut kept = Vec::new();
                let mut random = fastrand::Rng::with_seed(thread);
                while !stop.load(Ordering::Relaxed) {
                    kept.push(allocate(allocator, random.u64(1..64 * KIB)));
                    if kept.len() > 20 {
                        free(allocator, kept.swap_remove(random.usize(..kept.len())));
                    }
                }
                kept.into_iter().for_each(|allocation| free(allocator, allocation));
            });
        }
        let mut random = fastrand::Rng::with_seed(9);
        for _ in 0..40 {
            let trace = recorded(allocator, || {
                std::thread::sleep(std::time::Duration::from_micros(random.u64(1..500)));
            });
            // Each thread had at most one call in progress, and may free the allocation of that call.
            assert!(trace.unknown_events <= 6, "{}", trace.unknown_events);
        }
        stop.store(true, Ordering::Relaxed);
    });
}
