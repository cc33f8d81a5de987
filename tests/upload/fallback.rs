//! Fallback of uploads when the best heap is full, and errors when no heap has space.

use ash::vk;
use sublet::upload::{CreateUploadError, UploadArena, UploadArenaCreateInfo, UploadError, UploadMemory};
use sublet::{CreateError, PoolCreateInfo};

use crate::common::*;
use crate::support::*;

fn near() -> UploadArenaCreateInfo<'static> {
    UploadArenaCreateInfo { memory: UploadMemory::PreferDevice, ..small(4096) }
}

/// Returns the memory type of uploads, and heap limits that leave it `room` bytes. Returns `None` if all host-visible
/// types are in one heap.
fn limits(profile: &'static sublet::sim::Profile, room: u64) -> Option<(u32, Vec<u64>)> {
    let fixture = Fixture::new(profile);
    let best = arena(&fixture, &near()).memory_type_index();
    let heap = fixture.heap_of(best);
    let usable = fixture.types_with(HOST_VISIBLE, PROTECTED);
    let others = usable
        .into_iter()
        .filter(|kind| profile.buffers.types & (1 << kind) != 0 && fixture.heap_of(*kind) != heap);
    let is_alone = others.count() == 0;
    let limits = (0..profile.heaps.len()).map(|at| if at == heap as usize { room } else { u64::MAX });
    let answer = (!is_alone).then(|| (best, limits.collect()));
    drop(fixture);
    answer
}

#[test]
fn an_arena_goes_on_in_another_heap_when_the_best_one_is_full() {
    let mut seen = 0;
    let count = std::cell::RefCell::new(&mut seen);
    on_every_profile(|profile| {
        let Some((best, limits)) = limits(profile, 64 << 10) else { return };
        **count.borrow_mut() += 1;
        let run = || {
            let fixture = Fixture::with(
                sublet::sim::Gpu::new(profile),
                &Options { heap_size_limits: &limits, ..Options::default() },
            );
            let mut time = Time::new();
            let mut arena = arena(&fixture, &near());
            let mut fits = 0;
            while arena.statistics().fallback_pages == 0 {
                fits += 1;
                arena.allocate(4096, 1).unwrap();
            }
            assert!(fits > 1 && arena.statistics().pages == fits);
            assert_eq!(arena.memory_type_index(), best);
            let last = arena.write(&[7; 4096], 1).unwrap();
            let statistics = arena.statistics();
            assert_eq!((statistics.fallback_pages, statistics.fallback), (2, 2 * 4096));
            // A page for a single large upload goes there as well.
            arena.allocate(200_000, 1).unwrap();
            assert_eq!(arena.statistics().fallback_pages, 3);
            arena.flush(time.submitted()).unwrap();
            let copies = Copies::new(&fixture, 4096, 1);
            copies.wait(0);
            copies.submit(0, &[(last, 0)]);
            assert!(copies.finish()[..4096].iter().all(|&byte| byte == 7));
            arena.validate();
            time.finish(1);
            arena.collect(&time.clock).unwrap();
            arena.trim();
            assert_eq!(arena.statistics().fallback, 0);
            // The best heap has space again.
            arena.allocate(1, 1).unwrap();
            assert_eq!(arena.statistics().fallback_pages, 0);
            drop(arena);
            drop(fixture);
            (fits, statistics)
        };
        assert_eq!(run(), run(), "the same calls have the same answers");
    });
    assert!(seen > 0, "a device with two such heaps is needed");
}

/// A pool fixes the memory type, so there is no fallback.
#[test]
fn an_arena_with_a_pool_stays_in_its_memory_type() {
    let seen = std::cell::Cell::new(0);
    on_every_profile(|profile| {
        let Some((best, limits)) = limits(profile, 4096) else { return };
        seen.set(seen.get() + 1);
        let fixture = Fixture::with(
            sublet::sim::Gpu::new(profile),
            &Options { heap_size_limits: &limits, ..Options::default() },
        );
        let pool = std::sync::Arc::new(fixture.pool(&PoolCreateInfo::new(best)).unwrap());
        let info = UploadArenaCreateInfo { pool: Some(pool.clone()), ..small(8192) };
        let mut made = arena(&fixture, &info);
        let refused = made.allocate(1, 1).unwrap_err();
        let UploadError::Page(reason) = refused else { panic!("{refused:?}") };
        assert!(refused.to_string().contains(&reason.to_string()), "{refused}");
        assert_eq!(made.statistics().pages, 0);
        drop((made, info));
        fixture.destroy_pool(std::sync::Arc::into_inner(pool).unwrap());
    });
    assert!(seen.get() > 0, "a device with two such heaps is needed");
}

#[test]
fn reserving_more_than_the_heaps_have_is_an_error_and_makes_no_page() {
    on_every_gpu(|fixture| {
        let mut arena = arena(&fixture, &UploadArenaCreateInfo::default());
        arena.allocate(1, 1).unwrap();
        let before = arena.statistics();
        fixture.gpu.reset_calls();
        for bytes in [u64::MAX, 1 << 60, 1 << 50] {
            let error = arena.reserve(bytes).unwrap_err();
            assert!(
                matches!(error, UploadError::Reserve { bytes: reported, .. } if reported == bytes),
                "{error:?}"
            );
            assert!(error.to_string().contains(&format!("{bytes} bytes were to be reserved")), "{error}");
        }
        assert_eq!(arena.statistics(), before);
        assert!(fixture.gpu.call_counts().is_empty());
    });
}

#[test]
fn a_reserve_that_fails_half_way_changes_nothing() {
    on_every_gpu(|fixture| {
        let mut arena = arena(&fixture, &small(4096));
        arena.allocate(1, 1).unwrap();
        let before = arena.statistics();
        for nth in 2..8 {
            fixture.gpu.faults().fail_nth("vkAllocateMemory", nth, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        }
        assert!(arena.reserve(5 * 4096).is_err());
        fixture.gpu.faults().clear();
        assert_eq!(arena.statistics(), before);
    });
}

#[test]
fn no_page_is_above_the_largest_buffer() {
    let mut seen = 0;
    let count = std::cell::RefCell::new(&mut seen);
    on_every_gpu(|fixture| {
        let max = fixture.allocator.max_buffer_size();
        if max > 1 << 40 {
            return;
        }
        **count.borrow_mut() += 1;
        let mut made = arena(&fixture, &UploadArenaCreateInfo::default());
        let size = max + 1;
        let error = made.allocate(size, 4).unwrap_err();
        let UploadError::Page(CreateError::BufferTooLarge { size: reported, max: limit }) = error else {
            panic!("{error:?}")
        };
        assert!(reported >= size && limit == max);
        assert!(error.to_string().contains(&format!("above maxBufferSize, which is {max}")), "{error}");
        assert_eq!(made.statistics().pages, 0);
        drop(made.release());
        // SAFETY: the usages are those of version 1.0.
        let error = unsafe { UploadArena::new(&fixture.allocator, &small(size)) }.unwrap_err();
        assert!(
            matches!(error, CreateUploadError::BufferTooLarge { max: limit, .. } if limit == max),
            "{error:?}"
        );
        assert!(error.to_string().contains("above maxBufferSize"), "{error}");
    });
    assert!(seen > 0, "a device with a limit is needed");
}

/// Flushes the second half of a memory that ends directly behind it.
#[test]
fn a_flush_ends_where_what_was_written_ends() {
    on_profiles(
        having(|profile| {
            profile
                .types
                .iter()
                .any(|kind| kind.flags.contains(HOST_VISIBLE) && !kind.flags.contains(HOST_COHERENT))
        }),
        |profile| {
            let fixture = Fixture::new(profile);
            let memory_type = fixture.types_with(HOST_VISIBLE, HOST_COHERENT | PROTECTED)[0];
            let pool_info = PoolCreateInfo { block_size: 65_536, ..PoolCreateInfo::new(memory_type) };
            let pool = std::sync::Arc::new(fixture.pool(&pool_info).unwrap());
            let pool_of = Some(pool.clone());
            let info = UploadArenaCreateInfo { pool: pool_of, share_pages: true, ..small(65_536) };
            let mut time = Time::new();
            let mut arena = arena(&fixture, &info);
            for at in 0..4 {
                assert_eq!(arena.write(&[3; 16_384], 1).unwrap().offset, at * 16_384);
                arena.flush(time.submitted()).unwrap();
                // The driver would report a range beyond the end of the memory.
                fixture.gpu.assert_silent();
            }
            drop((arena, info));
            fixture.destroy_pool(std::sync::Arc::into_inner(pool).unwrap());
        },
    );
}
