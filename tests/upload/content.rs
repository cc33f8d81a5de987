//! The bytes themselves: what the device copies is what was written, though it copies as late as it can.

use std::mem::MaybeUninit;

use sublet::retire::Clock;
use sublet::upload::{Upload, UploadArenaCreateInfo, UploadError, UploadMemory, UploadRingCreateInfo};

use crate::common::*;
use crate::support::*;

const SLOTS: u64 = 3;
const FRAMES: u64 = 30;
/// Bytes of the target that each frame may fill.
const PER_FRAME: u64 = 16_384;

/// Runs frames that upload at random, and checks what the device has copied of them. Nothing is executed before its fence is
/// waited for, so that whoever writes a page too early is found out.
fn frames<U>(
    rig: &Rig,
    uploader: &mut U,
    collect: impl Fn(&mut U, &Clock),
    write: impl Fn(&mut U, &[u8], u64) -> Upload,
    finish: impl Fn(&mut U, sublet::retire::Ticket),
    most: u64,
) {
    let mut random = Random::new(7);
    let clock = Clock::new();
    let lane = clock.add_lane().unwrap();
    let copies = Copies::new(rig, FRAMES * PER_FRAME, SLOTS as usize);
    let mut expected = vec![None; (FRAMES * PER_FRAME) as usize];
    for frame in 0..FRAMES {
        let slot = (frame % SLOTS) as usize;
        copies.wait(slot);
        let ticket = clock.begin_frame(lane, slot as u32);
        collect(uploader, &clock);
        let mut uploads = Vec::new();
        let mut at = frame * PER_FRAME;
        let end = at + most.min(PER_FRAME);
        while at + 1 < end {
            let largest = random.pick(&[700, 700, 700, 700, 700, 700, 700, 9000]);
            let size = 1 + random.below((end - at).min(largest));
            let bytes: Vec<u8> = (0..size).map(|_| random.next() as u8).collect();
            let alignment = 1 << random.below(9);
            let upload = write(uploader, &bytes, alignment);
            assert_eq!((upload.offset % alignment, upload.size), (0, size));
            for (target, &byte) in expected[at as usize..].iter_mut().zip(&bytes) {
                *target = Some(byte);
            }
            uploads.push((upload, at));
            at += size;
        }
        finish(uploader, ticket);
        copies.submit(slot, &uploads);
        clock.end_frame(ticket);
        assert!(rig.gpu.pending_submissions() > 0, "the device is to be late");
    }
    let copied = copies.finish();
    clock.idle();
    collect(uploader, &clock);
    for (at, (expected, copied)) in expected.iter().zip(&copied).enumerate() {
        if let Some(byte) = expected {
            assert_eq!(copied, byte, "byte {} of frame {}", at as u64 % PER_FRAME, at as u64 / PER_FRAME);
        }
    }
}

const MEMORIES: [UploadMemory; 3] =
    [UploadMemory::Auto, UploadMemory::PreferDevice, UploadMemory::PreferHost];

#[test]
fn the_device_reads_what_was_written_to_an_arena() {
    on_every_profile(|profile| {
        for memory in MEMORIES {
            for share_pages in [false, true] {
                let rig = Rig::new(profile);
                let info = UploadArenaCreateInfo {
                    memory,
                    share_pages,
                    own_pages_kept: 1,
                    idle_collects: Some(2),
                    ..small(8192)
                };
                let mut arena = arena(&rig, &info);
                frames(
                    &rig,
                    &mut arena,
                    |arena, clock| {
                        arena.collect(clock);
                        arena.validate();
                    },
                    |arena, bytes, alignment| arena.write(bytes, alignment).unwrap(),
                    |arena, ticket| arena.flush(ticket).unwrap(),
                    PER_FRAME,
                );
                assert_eq!(arena.statistics().used, 0);
                drop(arena);
                rig.finish();
            }
        }
    });
}

#[test]
fn the_device_reads_what_was_written_to_a_ring() {
    on_every_profile(|profile| {
        for memory in MEMORIES {
            let rig = Rig::new(profile);
            let mut ring = ring(&rig, &UploadRingCreateInfo { memory, ..UploadRingCreateInfo::new(40_000) });
            // A frame has at most a quarter of the ring, or little enough for its losses to alignment to fit too.
            frames(
                &rig,
                &mut ring,
                |ring, clock| {
                    ring.collect(clock);
                    ring.validate();
                },
                |ring, bytes, alignment| ring.write(bytes, alignment).unwrap(),
                |ring, ticket| ring.finish(ticket).unwrap(),
                5000,
            );
            assert_eq!(ring.statistics().free, ring.statistics().size);
            drop(ring);
            rig.finish();
        }
    });
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Padded {
    byte: u8,
    // Three bytes of nothing.
    word: u32,
}

#[test]
fn values_and_slices_arrive_as_they_are_and_padding_does_no_harm() {
    on_every_profile(|profile| {
        let rig = Rig::new(profile);
        let mut arena = arena(&rig, &small(4096));
        let copies = Copies::new(&rig, 64, 1);
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
        arena.collect(&time.clock);
        drop(arena);
        rig.finish();
    });
}

#[test]
fn what_panics_while_it_fills_leaves_everything_in_order() {
    let rig = Rig::new(sublet::sim::profiles::ALL[0]);
    let mut arena = arena(&rig, &small(4096));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _: Result<Upload, UploadError> = arena.write_with(100, 1, |_| panic!("in the middle of it"));
    }));
    assert!(panicked.is_err());
    arena.validate();
    assert_eq!(arena.write(&[1; 10], 1).unwrap().offset, 100);
    // SAFETY: nothing was submitted.
    unsafe { arena.destroy() };
    rig.finish();
}

/// One call for all pages, whatever their number, and none where the memory is coherent.
#[test]
fn flushing_is_one_call_of_the_driver_or_none() {
    on_every_profile(|profile| {
        for memory in MEMORIES {
            let rig = Rig::new(profile);
            let mut arena = arena(&rig, &UploadArenaCreateInfo { memory, ..small(4096) });
            let mut ring = ring(&rig, &UploadRingCreateInfo { memory, ..UploadRingCreateInfo::new(4096) });
            let mut time = Time::new();
            let coherent = rig.properties(arena.memory_type_index()).contains(HOST_COHERENT);
            let calls = u64::from(!coherent);
            for size in [4000, 4000, 4000, 10_000] {
                arena.write(&vec![1; size], 1).unwrap();
            }
            rig.gpu.reset_calls();
            arena.flush(time.submitted()).unwrap();
            assert_eq!(rig.gpu.calls("vkFlushMappedMemoryRanges"), calls);
            // Nothing new, nothing to flush.
            arena.flush(time.submitted()).unwrap();
            assert_eq!(rig.gpu.calls("vkFlushMappedMemoryRanges"), calls);
            ring.write(&[1; 3000], 1).unwrap();
            ring.finish(time.submitted()).unwrap();
            time.finish(3);
            ring.collect(&time.clock);
            for _ in 0..3 {
                // The second of these goes round the end: two ranges.
                ring.write(&[1; 1500], 1).unwrap();
                rig.gpu.reset_calls();
                ring.finish(time.submitted()).unwrap();
                assert_eq!(rig.gpu.calls("vkFlushMappedMemoryRanges"), calls);
                ring.finish(time.submitted()).unwrap();
                assert_eq!(rig.gpu.calls("vkFlushMappedMemoryRanges"), calls);
                time.finish(100);
                ring.collect(&time.clock);
                time = Time::new();
            }
            // SAFETY: nothing was submitted.
            unsafe { arena.destroy() };
            drop(ring);
            rig.finish();
        }
    });
}
