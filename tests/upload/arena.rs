//! Arenas and their pages.

use sublet::retire::Clock;
use sublet::upload::{Oversize, UploadArena, UploadArenaCreateInfo, UploadError};

use crate::common::*;
use crate::said::said;
use crate::support::*;
use tracing::Level;

#[test]
fn no_page_is_made_before_the_first_request() {
    on_every_gpu(|fixture| {
        let mut arena = arena(&fixture, &UploadArenaCreateInfo::default());
        fixture.gpu.reset_calls();
        assert_eq!(arena.statistics().pages, 0);
        assert_eq!(fixture.allocator.statistics().block_count, 0);
        arena.flush(Time::new().submitted()).unwrap();
        assert!(fixture.gpu.call_counts().is_empty());
        arena.allocate(1, 1).unwrap();
        assert_eq!(arena.statistics().pages, 1);
        assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 1);
    });
}

#[test]
fn the_offset_is_aligned_and_never_the_size() {
    on_every_gpu(|fixture| {
        let mut arena = arena(&fixture, &small(65_536));
        let mut end = 0;
        for (size, alignment) in [(1, 1), (10, 256), (1, 1), (3, 2), (100, 4096), (7, 16)] {
            let upload = arena.allocate(size, alignment).unwrap();
            let expected = u64::next_multiple_of(end, alignment);
            assert_eq!((upload.offset, upload.size), (expected, size));
            end = expected + size;
        }
        // The upload ends at the last byte: no space is lost if a size is no multiple of its alignment.
        let rest = arena.statistics().rest;
        let last = arena.allocate(rest - 1, 2).unwrap();
        assert_eq!(last.offset + last.size, 65_536);
        assert_eq!((arena.statistics().pages, arena.statistics().rest), (1, 0));
    });
}

#[test]
fn pointers_are_aligned_as_the_device_wants_offsets() {
    on_every_gpu(|fixture| {
        // Several pages per block, of a size that is not a multiple of every alignment.
        let size = 4096 + fixture.profile().limits.non_coherent_atom_size;
        let mut arena = arena(&fixture, &UploadArenaCreateInfo { pages_per_block: 5, ..small(size) });
        let any = arena.max_alignment();
        let first = arena.allocate(4000, 1).unwrap().ptr.as_ptr().addr();
        for _ in 0..4 {
            let upload = arena.allocate(4000, 1).unwrap();
            assert_eq!(upload.offset, 0);
            let distance = upload.ptr.as_ptr().addr().abs_diff(first) as u64;
            assert!(distance < 5 * 8192 && distance % any == 0, "{distance}");
        }
    });
}

/// Adjacent pages in a block with an odd size, and uploads behind small ones.
#[test]
fn offset_pointer_and_address_are_all_aligned_as_asked() {
    on_every_gpu(|fixture| {
        let device_address =
            enabled(&fixture.gpu).contains(sublet::AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS);
        let check = |upload: sublet::upload::Upload, alignment: u64| {
            let pointer = upload.ptr.as_ptr().addr() as u64;
            let address = upload.address.unwrap_or(0);
            assert_eq!(upload.address.is_some(), device_address);
            for place in [upload.offset, pointer, address] {
                assert_eq!(place % alignment, 0, "{upload:?} is not aligned to {alignment}");
            }
        };
        let info = UploadArenaCreateInfo { pages_per_block: 4, device_address, ..small(100_000) };
        let memory_type = {
            let mut arena = arena(&fixture, &info);
            for _ in 0..6 {
                for alignment in (0..=12).map(|bits| 1 << bits) {
                    check(arena.allocate(5_000, alignment).unwrap(), alignment);
                }
            }
            check(arena.allocate(150_000, 4096).unwrap(), 4096);
            assert!(arena.statistics().pages > 4);
            let memory_type = arena.memory_type_index();
            drop(arena);
            memory_type
        };
        let pool = std::sync::Arc::new(fixture.pool(&sublet::PoolCreateInfo::new(memory_type)).unwrap());
        let wish = sublet::AllocationCreateInfo::in_pool(&pool);
        let requirements = ash::vk::MemoryRequirements { size: 64, alignment: 64, memory_type_bits: !0 };
        let before = fixture.allocator.allocate_memory(&requirements, &wish).unwrap();
        let info = UploadArenaCreateInfo { pool: Some(pool.clone()), device_address, ..small(100_000) };
        let mut arena = arena(&fixture, &info);
        for alignment in (0..=12).map(|bits| 1 << bits) {
            check(arena.allocate(100, alignment).unwrap(), alignment);
        }
        assert_eq!(fixture.allocator.pool_statistics(&pool).unwrap().block_count, 1);
        drop((arena, info));
        fixture.free(before);
        fixture.destroy_pool(std::sync::Arc::into_inner(pool).unwrap());
    });
}

#[test]
fn alignments_are_the_devices_limits() {
    on_every_gpu(|fixture| {
        let arena = arena(&fixture, &small(4096));
        let (alignments, limits) = (arena.alignments(), &fixture.profile().limits);
        assert_eq!(alignments.uniform, limits.min_uniform_buffer_offset_alignment);
        assert_eq!(alignments.storage, limits.min_storage_buffer_offset_alignment);
        assert_eq!(alignments.texel, limits.min_texel_buffer_offset_alignment);
        assert_eq!(alignments.copy, limits.optimal_buffer_copy_offset_alignment.max(4));
        assert!(alignments.any >= limits.non_coherent_atom_size);
        drop(arena.release());
    });
}

#[test]
fn zero_bytes_and_crooked_alignments_are_refused_before_anything_is_made() {
    let fixture = Fixture::new(sublet::sim::profiles::ALL[0]);
    let mut arena = arena(&fixture, &small(4096));
    fixture.gpu.reset_calls();
    for alignment in [0, 3, 100, u64::MAX] {
        assert_eq!(arena.allocate(1, alignment), Err(UploadError::Alignment { alignment }));
        assert_eq!(arena.write_value(&1_u32, alignment), Err(UploadError::Alignment { alignment }));
    }
    assert_eq!(arena.allocate(0, 1), Err(UploadError::ZeroSize));
    assert_eq!(arena.write(&[], 1), Err(UploadError::ZeroSize));
    assert_eq!(arena.write_value(&(), 1), Err(UploadError::ZeroSize));
    assert!(fixture.gpu.call_counts().is_empty());
    // The same with an existing page.
    arena.allocate(1, 1).unwrap();
    let before = arena.statistics();
    assert!(arena.allocate(1, 3).is_err() && arena.allocate(0, 1).is_err());
    assert_eq!(arena.statistics(), before);
}

#[test]
fn a_page_that_is_too_short_is_left_and_its_tail_counted() {
    let fixture = Fixture::new(sublet::sim::profiles::ALL[0]);
    let mut arena = arena(&fixture, &small(4096));
    let first = arena.allocate(3000, 1).unwrap();
    let second = arena.allocate(2000, 1).unwrap();
    assert_ne!(first.buffer, second.buffer);
    assert_eq!(second.offset, 0);
    let statistics = arena.statistics();
    assert_eq!((statistics.pages, statistics.tail, statistics.rest), (2, 1096, 2096));
    // The next upload goes behind the second one.
    assert_eq!(arena.allocate(2000, 1).unwrap().buffer, second.buffer);
}

#[test]
fn a_large_upload_does_not_cost_the_rest_of_a_page_that_has_just_been_begun() {
    let fixture = Fixture::new(sublet::sim::profiles::ALL[0]);
    let mut arena = arena(&fixture, &small(4096));
    let first = arena.allocate(100, 1).unwrap();
    let large = arena.allocate(4090, 1).unwrap();
    assert_ne!(first.buffer, large.buffer);
    let next = arena.allocate(100, 1).unwrap();
    assert_eq!((next.buffer, next.offset), (first.buffer, 100));
    assert_eq!(arena.statistics().tail, 6);
}

/// The arena of a well-known Direct3D 12 sample takes or creates another page at each call that fails.
#[test]
fn what_does_not_fit_takes_no_page_however_often_it_is_asked_for() {
    on_every_gpu(|fixture| {
        let info = UploadArenaCreateInfo { oversize: Oversize::Error, ..small(4096) };
        let mut arena = arena(&fixture, &info);
        arena.allocate(1, 1).unwrap();
        arena.reserve(3 * 4096).unwrap();
        let before = arena.statistics();
        fixture.gpu.reset_calls();
        for size in [4097, 5000, 1 << 40, u64::MAX] {
            for alignment in [1, 256, 1 << 20, 1 << 63] {
                let error = arena.allocate(size, alignment).unwrap_err();
                assert_eq!(error, UploadError::Oversize { size, max: 4096 });
            }
        }
        assert_eq!(arena.statistics(), before);
        assert!(fixture.gpu.call_counts().is_empty());
    });
}

/// A size that would not fit if it were rounded up to its alignment, and alignments larger than that of a page.
#[test]
fn what_is_not_larger_than_a_page_fits_a_fresh_one_however_it_is_aligned() {
    on_every_gpu(|fixture| {
        for oversize in [Oversize::Error, Oversize::OwnPage] {
            let info = UploadArenaCreateInfo { oversize, ..small(4096 + 256) };
            let mut arena = arena(&fixture, &info);
            let page = arena.page_size();
            let mut pages = 0;
            let max = arena.max_alignment();
            for alignment in [2 * max, 1 << 20, 1 << 40, 1 << 63] {
                let error = arena.allocate(1, alignment).unwrap_err();
                assert_eq!(error, UploadError::AlignmentTooLarge { alignment, max });
                assert_eq!(arena.statistics().pages, 0);
            }
            for alignment in [1, 256, 4096, max] {
                for size in [page, page - 1] {
                    let upload = arena.allocate(size, alignment).unwrap();
                    pages += 1;
                    assert_eq!((upload.offset, upload.size), (0, size));
                    let statistics = arena.statistics();
                    assert_eq!((statistics.pages, statistics.own_pages), (pages, 0));
                }
            }
        }
    });
}

#[test]
fn what_is_larger_than_a_page_gets_one_of_its_own_that_goes_after_use() {
    on_every_gpu(|fixture| {
        let mut time = Time::new();
        let mut arena = arena(&fixture, &small(4096));
        let small = arena.allocate(100, 1).unwrap();
        let large = arena.allocate(10_000, 256).unwrap();
        assert_eq!((large.offset, large.size), (0, 10_000));
        assert_ne!(large.buffer, small.buffer);
        // The current page is still in use.
        assert_eq!(arena.allocate(100, 1).unwrap().buffer, small.buffer);
        assert_eq!((arena.statistics().pages, arena.statistics().own_pages), (2, 1));
        arena.flush(time.submitted()).unwrap();
        arena.collect(&time.clock).unwrap();
        assert_eq!(arena.statistics().own_pages, 1, "the device is using it");
        time.finish(1);
        assert_eq!(arena.collect(&time.clock).unwrap(), 2);
        assert_eq!((arena.statistics().pages, arena.statistics().own_pages), (1, 0));
        arena.validate();
        drop(arena.release());
    });
}

#[test]
fn pages_of_large_uploads_are_kept_for_others_as_large_if_that_is_asked_for() {
    let fixture = Fixture::new(sublet::sim::profiles::ALL[0]);
    let mut time = Time::new();
    let mut arena = arena(&fixture, &UploadArenaCreateInfo { own_pages_kept: 3, ..small(4096) });
    let uploads = [9000, 30_000, 10_000, 20_000].map(|size| arena.allocate(size, 1).unwrap());
    arena.flush(time.submitted()).unwrap();
    time.finish(1);
    arena.collect(&time.clock).unwrap();
    assert_eq!((arena.statistics().own_pages, arena.statistics().free_pages), (3, 3));
    fixture.gpu.reset_calls();
    // Selects the smallest sufficient page, not the first.
    let again = arena.allocate(15_000, 1).unwrap();
    assert_eq!(again.buffer, uploads[3].buffer);
    assert_eq!(fixture.gpu.calls("vkCreateBuffer"), 0);
    let too_large = arena.allocate(40_000, 1).unwrap();
    assert_eq!(fixture.gpu.calls("vkCreateBuffer"), 1);
    assert!(uploads.iter().all(|upload| upload.buffer != too_large.buffer));
}

#[test]
fn once_warm_no_page_is_made() {
    on_every_gpu(|fixture| {
        let mut arena = arena(&fixture, &UploadArenaCreateInfo { page_size: 4096, ..Default::default() });
        let clock = Clock::new();
        let timeline = clock.add_timeline().unwrap();
        for frame in 0..300_u32 {
            if frame == 10 {
                fixture.gpu.reset_calls();
            }
            let ticket = clock.begin_frame(timeline, frame % 3);
            arena.collect(&clock).unwrap();
            for at in 0..30 {
                arena.write(&[1; 300], 1 << (at % 9)).unwrap();
            }
            arena.flush(ticket).unwrap();
            clock.end_frame(ticket).unwrap();
            arena.validate();
        }
        assert_eq!(fixture.gpu.calls("vkCreateBuffer") + fixture.gpu.calls("vkAllocateMemory"), 0);
        assert!(arena.statistics().pages <= 4 * 5, "{:?}", arena.statistics());
        clock.idle();
        arena.collect(&clock).unwrap();
        drop(arena.release());
    });
}

#[test]
fn a_shared_page_is_free_when_all_recordings_that_used_it_are_done() {
    on_every_gpu(|fixture| {
        let mut arena = arena(&fixture, &UploadArenaCreateInfo { share_pages: true, ..small(4096) });
        let clock = Clock::new();
        let timelines = [clock.add_timeline().unwrap(), clock.add_timeline().unwrap()];
        let mut buffers = Vec::new();
        let mut end = 0;
        for (at, timeline) in (1..).zip(timelines) {
            let upload = arena.write(&[1; 100], 1).unwrap();
            assert!(upload.offset >= end);
            end = upload.offset + upload.size;
            buffers.push(upload.buffer);
            let ticket = clock.open(timeline);
            arena.flush(ticket).unwrap();
            clock.submit(ticket, at).unwrap();
        }
        assert_eq!(buffers[0], buffers[1], "the rest of the page was used");
        // The later recording, on the second timeline, is done. The one on the first is not.
        clock.completed(timelines[1], 2);
        arena.collect(&clock).unwrap();
        assert!(
            arena.write(&[2; 100], 1).unwrap().offset >= end,
            "what the device reads was given out again"
        );
        // Both are done, but a third recording uses the page.
        clock.completed(timelines[0], 1);
        arena.collect(&clock).unwrap();
        assert!(arena.write(&[2; 100], 1).unwrap().offset >= end + 100);
        arena.validate();
        let ticket = clock.open(timelines[0]);
        arena.flush(ticket).unwrap();
        clock.discard(ticket).unwrap();
        arena.collect(&clock).unwrap();
        assert_eq!(
            arena.write(&[2; 100], 1).unwrap().offset,
            0,
            "nobody uses the page: it is as a fresh one"
        );
    });
}

#[test]
fn pages_that_nobody_needs_for_long_are_given_back_but_for_those_kept() {
    let fixture = Fixture::new(sublet::sim::profiles::ALL[0]);
    let clock = Clock::new();
    let mut arena =
        arena(&fixture, &UploadArenaCreateInfo { pages_kept: 2, idle_collects: Some(5), ..small(4096) });
    arena.reserve(6 * 4096).unwrap();
    for collection in 1..=10 {
        arena.collect(&clock).unwrap();
        let expected = if collection < 5 { 6 } else { 2 };
        assert_eq!(arena.statistics().pages, expected, "after {collection} collections");
        assert_eq!(
            fixture.allocator.statistics().block_count,
            expected as u64,
            "their memory goes with them"
        );
    }
    arena.validate();
    drop(arena.release());
}

#[test]
fn pages_of_an_arena_share_blocks_if_that_is_asked_for() {
    let fixture = Fixture::new(sublet::sim::profiles::ALL[0]);
    let mut arena = arena(&fixture, &UploadArenaCreateInfo { pages_per_block: 4, ..small(65_536) });
    arena.reserve(8 * 65_536).unwrap();
    assert_eq!((arena.statistics().pages, fixture.allocator.statistics().block_count), (8, 2));
    assert_eq!(arena.trim(), 8 * 65_536);
    assert_eq!(fixture.allocator.statistics().block_count, 0);
    drop(arena.release());
}

#[test]
fn an_arena_that_is_dropped_too_early_leaks_what_the_device_may_use_and_nothing_else() {
    let fixture = Fixture::new(sublet::sim::profiles::ALL[0]);
    let mut time = Time::new();
    let mut arena = arena(&fixture, &UploadArenaCreateInfo { name: Some("early"), ..small(4096) });
    arena.reserve(3 * 4096).unwrap();
    let upload = arena.write(b"the device reads this later", 1).unwrap();
    arena.flush(time.submitted()).unwrap();
    drop(arena.release());
    assert_eq!(fixture.gpu.live().buffers, 1);
    assert_eq!(fixture.allocator.statistics().allocation_count, 1);
    // SAFETY: the memory still belongs to the arena, and is mapped.
    assert_eq!(unsafe { upload.ptr.read() }, b't');
    // SAFETY: nothing was really submitted.
    unsafe { fixture.gpu.device().destroy_buffer(upload.buffer, None) };
    let Fixture { allocator, gpu } = fixture.release();
    let leaks = allocator.destroy();
    assert_eq!((leaks.len(), leaks[0].name.as_deref()), (1, Some("early")));
    assert!(gpu.finish().is_empty());
}

#[test]
fn an_arena_keeps_the_allocator_that_it_has_a_share_in() {
    use std::sync::Arc;
    let fixture = Fixture::new(sublet::sim::profiles::ALL[0]);
    let Fixture { allocator, gpu } = fixture.release();
    let allocator = Arc::new(allocator);
    // SAFETY: nothing is submitted.
    let mut arena = unsafe { UploadArena::new(Arc::clone(&allocator), &small(4096)) }.unwrap();
    drop(allocator);
    let moved = std::thread::spawn(move || {
        arena.write(b"sublet", 1).unwrap();
        // SAFETY: nothing was submitted.
        unsafe { arena.destroy() };
    });
    moved.join().unwrap();
    assert!(gpu.live().is_empty());
    assert!(gpu.finish().is_empty());
}

#[test]
fn an_allocator_in_an_rc_has_arenas_too() {
    use std::rc::Rc;
    let fixture = Fixture::new(sublet::sim::profiles::ALL[0]);
    let Fixture { allocator, gpu } = fixture.release();
    let allocator = Rc::new(allocator);
    // SAFETY: nothing is submitted.
    let mut arena = unsafe { UploadArena::new(Rc::clone(&allocator), &small(4096)) }.unwrap();
    arena.write(b"sublet", 1).unwrap();
    // SAFETY: nothing was submitted.
    unsafe { arena.destroy() };
    drop(allocator);
    assert!(gpu.finish().is_empty());
}

/// The warning states the bytes of dropped pages that are in use, and whether they were flushed.
#[test]
fn an_arena_that_is_dropped_too_early_says_what_it_leaks_and_what_was_never_flushed() {
    let fixture = Fixture::new(sublet::sim::profiles::ALL[0]);
    let mut time = Time::new();
    let mut leaked = 0;
    let mut drop_with = |pages: usize, flush: bool| {
        let mut arena = arena(&fixture, &small(4096));
        arena.reserve(5 * 4096).unwrap();
        for _ in 0..pages {
            arena.allocate(4000, 1).unwrap();
        }
        if flush {
            arena.flush(time.submitted()).unwrap();
        }
        leaked += pages as u64;
        said(Level::INFO, || drop(arena.release()))
    };
    let text = drop_with(2, true);
    assert!(text.contains("before its last collection"), "{text}");
    assert!(text.contains("pages=2 unflushed=0 bytes=8192"), "{text}");
    let text = drop_with(3, false);
    assert!(text.contains("with uploads that were never flushed"), "{text}");
    assert!(text.contains("pages=3 unflushed=3 bytes=12288"), "{text}");
    assert_eq!(fixture.allocator.statistics().allocation_count, leaked);
    let Fixture { allocator, gpu } = fixture.release();
    allocator.destroy();
    drop(gpu.take_messages());
}

/// A documentation example shows that they cannot be shared.
#[test]
fn arenas_can_be_sent_to_their_thread() {
    fn sendable<T: Send>() {}
    sendable::<UploadArena<&sublet::Allocator>>();
    sendable::<UploadArena<std::sync::Arc<sublet::Allocator>>>();
    sendable::<sublet::upload::Upload>();
}
