//! Uploads in every host-visible memory type: frames in flight, and the bytes that the device copied.

use std::sync::Arc;

use ash::vk;
use sublet::retire::Clock;
use sublet::upload::{Upload, UploadArena, UploadArenaCreateInfo, UploadMemory};
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, AllocatorCreateFlags, MemoryUsage, PoolCreateInfo,
};
use sublet_examples::{Frames, Random};

use crate::{Fixture, on_each_device};

const IN_FLIGHT: u32 = 3;
const FRAMES: usize = 12;
/// Bytes that each frame uploads.
const PER_FRAME: usize = 6000;

/// Uploads a few pieces in each frame, lets the device copy them, and compares the copies.
fn frames(
    fixture: &Fixture<'_>,
    mut record: impl FnMut(&Clock, sublet::retire::Ticket, &[&[u8]]) -> Vec<Upload>,
) {
    let size = (FRAMES * PER_FRAME) as u64;
    let read = AllocationCreateInfo {
        flags: Flags::HOST_ACCESS_RANDOM | Flags::MAPPED,
        ..AllocationCreateInfo::new(MemoryUsage::Auto)
    };
    let target = fixture.buffer(size, vk::BufferUsageFlags::TRANSFER_DST, &read);
    let expected = Random::new(3).bytes(FRAMES * PER_FRAME);
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    let mut frames = Frames::new(fixture.context, IN_FLIGHT).unwrap();
    for frame in expected.chunks(PER_FRAME) {
        let slot = frames.wait().unwrap();
        let ticket = clock.begin_frame(timeline, slot as u32);
        let (first, rest) = frame.split_at(PER_FRAME / 60);
        let (second, third) = rest.split_at(PER_FRAME / 7);
        let uploads = record(&clock, ticket, &[first, second, third]);
        let mut at = (frame.as_ptr().addr() - expected.as_ptr().addr()) as u64;
        let submitted = frames.submit(|device, commands| {
            for upload in &uploads {
                let region = [upload.copy_to(at)];
                // SAFETY: both buffers have at least as many bytes, and live until the frame is waited for.
                unsafe { device.cmd_copy_buffer(commands, upload.buffer, target.0, &region) };
                at += upload.size;
            }
        });
        submitted.unwrap();
        clock.end_frame(ticket).unwrap();
    }
    frames.wait_for_all().unwrap();
    let mut copied = vec![0; FRAMES * PER_FRAME];
    fixture.allocator.copy_from_allocation(&target.1, 0, &mut copied).unwrap();
    assert!(copied == expected, "the device has copied something else");
    fixture.destroy(target);
}

#[test]
fn the_device_reads_what_was_uploaded() {
    on_each_device(|fixture| {
        let possible = {
            let sample =
                vk::BufferCreateInfo::default().size(4096).usage(UploadArenaCreateInfo::default().usage);
            // SAFETY: the create-info is valid.
            let buffer = unsafe { fixture.context.device().create_buffer(&sample, None) }.unwrap();
            // SAFETY: the buffer is live.
            let needed = unsafe { fixture.context.device().get_buffer_memory_requirements(buffer) };
            // SAFETY: the device does not use it.
            unsafe { fixture.context.device().destroy_buffer(buffer, None) };
            needed.memory_type_bits
        };
        for memory_type in fixture.host_visible_types().into_iter().filter(|kind| possible & (1 << kind) != 0)
        {
            let info = PoolCreateInfo { block_size: 1 << 20, ..PoolCreateInfo::new(memory_type) };
            let pool = Arc::new(fixture.allocator.create_pool(&info).unwrap());
            for share_pages in [false, true] {
                // The third piece of each frame is larger than a page.
                let info = UploadArenaCreateInfo {
                    pool: Some(Arc::clone(&pool)),
                    page_size: 4096,
                    share_pages,
                    ..Default::default()
                };
                // SAFETY: the usages need no feature, and a frame is waited for before its slot is reused.
                let mut arena = unsafe { UploadArena::new(fixture.allocator, &info) }.unwrap();
                frames(fixture, |clock, ticket, pieces| {
                    arena.collect(clock).unwrap();
                    let uploads = pieces.iter().map(|piece| arena.write(piece, 64).unwrap()).collect();
                    arena.flush(ticket).unwrap();
                    arena.validate();
                    uploads
                });
                // SAFETY: the device is idle.
                unsafe { arena.destroy() };
            }
            let pool = Arc::into_inner(pool).unwrap();
            // SAFETY: the device is idle.
            assert!(unsafe { fixture.allocator.destroy_pool(pool) }.unwrap().is_empty());
        }
    });
}

/// Arenas choose the memory themselves, with device addresses if the device has them.
#[test]
fn arenas_choose_their_memory() {
    on_each_device(|fixture| {
        let device_address =
            fixture.context.allocator_flags().contains(AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS);
        for memory in [UploadMemory::Auto, UploadMemory::PreferDevice, UploadMemory::PreferHost] {
            let info =
                UploadArenaCreateInfo { memory, device_address, pages_per_block: 3, ..Default::default() };
            // SAFETY: the usages need no feature, and nothing is submitted.
            let mut arena = unsafe { UploadArena::new(fixture.allocator, &info) }.unwrap();
            for size in [100_000, 2 << 20, 3 << 20] {
                let upload = arena.write(&vec![1; size], arena.alignments().any).unwrap();
                assert_eq!(upload.address.is_some(), device_address);
                assert_eq!(upload.address.unwrap_or(0) % arena.alignments().any, 0);
            }
            // SAFETY: nothing was submitted.
            unsafe { arena.destroy() };
        }
    });
}
