//! The device copies the written bytes, even though it copies as late as possible.

use std::mem::MaybeUninit;

use sublet::retire::Clock;
use sublet::upload::{Upload, UploadArenaCreateInfo, UploadError};

use crate::common::*;
use crate::support::*;

const SLOTS: u64 = 3;
const FRAMES: u64 = 30;
/// Bytes of the target that each frame may fill.
const PER_FRAME: u64 = 16_384;

/// Runs frames with random uploads and checks the bytes that the device copied. A submission executes only when its
/// fence is waited for, so writing to a page too early is detected.
fn frames(
    fixture: &Fixture,
    arena: &mut Arena<'_>,
    write: impl Fn(&mut Arena<'_>, &[u8], u64) -> Upload,
    finish: impl Fn(&mut Arena<'_>, sublet::retire::Ticket),
) {
    let mut random = Random::new(7);
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    let copies = Copies::new(fixture, FRAMES * PER_FRAME, SLOTS as usize);
    let mut expected = vec![None; (FRAMES * PER_FRAME) as usize];
    for frame in 0..FRAMES {
        let slot = (frame % SLOTS) as usize;
        copies.wait(slot);
        let ticket = clock.begin_frame(timeline, slot as u32);
        arena.collect(&clock).unwrap();
        arena.validate();
        let mut uploads = Vec::new();
        let mut at = frame * PER_FRAME;
        let end = at + PER_FRAME;
        while at + 1 < end {
            let largest = random.pick(&[700, 700, 700, 700, 700, 700, 700, 9000]);
            let size = 1 + random.below((end - at).min(largest));
            let bytes: Vec<u8> = (0..size).map(|_| random.next() as u8).collect();
            let alignment = 1 << random.below(9);
            let upload = write(arena, &bytes, alignment);
            assert_eq!((upload.offset % alignment, upload.size), (0, size));
            for (target, &byte) in expected[at as usize..].iter_mut().zip(&bytes) {
                *target = Some(byte);
            }
            uploads.push((upload, at));
            at += size;
        }
        finish(arena, ticket);
        copies.submit(slot, &uploads);
        clock.end_frame(ticket).unwrap();
        assert!(fixture.gpu.pending_submissions() > 0, "the device is to be late");
    }
    let copied = copies.finish();
    clock.idle();
    arena.collect(&clock).unwrap();
    arena.validate();
    for (at, (expected, copied)) in expected.iter().zip(&copied).enumerate() {
        if let Some(byte) = expected {
            assert_eq!(copied, byte, "byte {} of frame {}", at as u64 % PER_FRAME, at as u64 / PER_FRAME);
        }
    }
}

#[test]
fn the_device_reads_what_was_written_to_an_arena() {
    on_every_profile(|profile| {
        everywhere(profile, |fixture, pool| {
            for share_pages in [false, true] {
                let info = UploadArenaCreateInfo {
                    pool: pool.clone(),
                    share_pages,
                    own_pages_kept: 1,
                    idle_collects: Some(2),
                    ..small(8192)
                };
                let mut arena = arena(fixture, &info);
                frames(
                    fixture,
                    &mut arena,
                    |arena, bytes, alignment| arena.write(bytes, alignment).unwrap(),
                    |arena, ticket| arena.flush(ticket).unwrap(),
                );
                assert_eq!(arena.statistics().used, 0);
            }
        });
    });
}

#[test]
fn the_device_reads_what_was_kept_and_made_visible() {
    on_every_profile(|profile| {
        everywhere(profile, |fixture, pool| {
            let info = UploadArenaCreateInfo { pool: pool.clone(), share_pages: true, ..small(8192) };
            let given = std::cell::RefCell::new(Vec::new());
            let mut arena = arena(fixture, &info);
            frames(
                fixture,
                &mut arena,
                |arena, bytes, alignment| {
                    let upload = arena.write(bytes, alignment).unwrap();
                    given.borrow_mut().push(upload);
                    upload
                },
                |arena, ticket| {
                    arena.keep(ticket).unwrap();
                    arena.make_visible(&given.take()).unwrap();
                },
            );
            assert_eq!(arena.statistics().used, 0);
        });
    });
}

/// Otherwise the flush of one recording would write to an atom that the device reads for the other.
#[test]
fn no_two_recordings_have_an_atom_together_in_memory_that_is_flushed() {
    let flushed = std::cell::Cell::new(0);
    on_every_profile(|profile| {
        everywhere(profile, |fixture, pool| {
            let info = UploadArenaCreateInfo { pool, share_pages: true, ..small(4096) };
            let mut arena = arena(fixture, &info);
            let coherent = is_coherent(fixture, arena.memory_type_index());
            flushed.set(flushed.get() + usize::from(!coherent));
            let atom = if coherent { 1 } else { profile.limits.non_coherent_atom_size };
            let mut time = Time::new();
            let mut end = 0_u64;
            for _ in 0..5 {
                let upload = arena.write(&[1; 10], 1).unwrap();
                assert_eq!(upload.offset, end);
                end = (upload.offset + 10).next_multiple_of(atom);
                arena.flush(time.submitted()).unwrap();
            }
            assert_eq!(arena.statistics().pages, 1);
            time.finish(5);
            arena.collect(&time.clock).unwrap();
        });
    });
    assert!(flushed.get() > 1, "there is a profile with such memory");
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Padded {
    byte: u8,
    // Followed by three bytes of padding.
    word: u32,
}

#[test]
fn values_and_slices_arrive_as_they_are_and_padding_does_no_harm() {
    on_every_gpu(|fixture| {
        let mut arena = arena(&fixture, &small(4096));
        let copies = Copies::new(&fixture, 64, 1);
        let mut time = Time::new();
        arena.write(&[9], 1).unwrap();
        let value = arena.write_value(&Padded { byte: 7, word: 0x0102_0304 }, 1).unwrap();
        assert_eq!((value.size, value.offset % 4), (8, 0), "aligned for its type");
        let slice = arena.write_slice(&[1_u16, 2, 3], 16).unwrap();
        assert_eq!((slice.size, slice.offset % 16), (6, 0));
        let with = arena.write_with(3, 1, |bytes| {
            assert_eq!(bytes.len(), 3);
            bytes.fill(MaybeUninit::new(5));
        });
        let with = with.unwrap();
        arena.flush(time.submitted()).unwrap();
        copies.wait(0);
        copies.submit(0, &[(value, 0), (slice, 8), (with, 14)]);
        let copied = copies.finish();
        assert_eq!(copied[0], 7);
        assert_eq!(copied[4..8], 0x0102_0304_u32.to_ne_bytes());
        assert_eq!(copied[8..14], [1_u16, 2, 3].map(u16::to_ne_bytes).concat());
        assert_eq!(copied[14..17], [5; 3]);
        time.finish(1);
        arena.collect(&time.clock).unwrap();
        drop(arena.release());
    });
}

#[test]
fn what_panics_while_it_fills_leaves_everything_in_order() {
    let fixture = Fixture::new(sublet::sim::profiles::ALL[0]);
    let mut arena = arena(&fixture, &small(4096));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _: Result<Upload, UploadError> = arena.write_with(100, 1, |_| panic!("in the middle of it"));
    }));
    assert!(panicked.is_err());
    arena.validate();
    assert_eq!(arena.write(&[1; 10], 1).unwrap().offset, 100);
}

/// One call covers all pages. Coherent memory needs no call.
#[test]
fn flushing_is_one_call_of_the_driver_or_none() {
    on_every_profile(|profile| {
        everywhere(profile, |fixture, pool| {
            let mut arena = arena(fixture, &UploadArenaCreateInfo { pool, ..small(4096) });
            let mut time = Time::new();
            let calls = u64::from(!is_coherent(fixture, arena.memory_type_index()));
            for size in [4000, 4000, 4000, 10_000] {
                arena.write(&vec![1; size], 1).unwrap();
            }
            fixture.gpu.reset_calls();
            arena.flush(time.submitted()).unwrap();
            assert_eq!(fixture.gpu.calls("vkFlushMappedMemoryRanges"), calls);
            // Without new uploads there is nothing to flush.
            arena.flush(time.submitted()).unwrap();
            assert_eq!(fixture.gpu.calls("vkFlushMappedMemoryRanges"), calls);
            time.finish(2);
            arena.collect(&time.clock).unwrap();
        });
    });
}
