//! A ring for streams of uploads: particles that move, written by the host each frame and read by the device when it
//! gets there. Three frames are in flight; the clock says when the ring may go over what they read.
//!
//! `cargo run --example upload_ring`

mod support;

use std::process::ExitCode;

use ash::vk;
use sublet::retire::{Clock, Ticket};
use sublet::upload::{UploadRing, UploadRingCreateInfo};
use sublet::{AllocationCreateInfo, Allocator, MemoryUsage};
use support::{Context, Frames, Result, Table, bytes, note};

const IN_FLIGHT: u32 = 3;
/// Particles of the largest frame.
const MOST: u16 = 6_000;
const PARTICLE: u64 = 16;
/// Room for three frames, and for a fourth that may be lost at the end because nothing is ever split.
const RING: u64 = 4 * 100_000;

/// What the device reads of each.
#[derive(Clone, Copy)]
#[repr(C)]
struct Particle {
    position: [f32; 3],
    size: f32,
}
const _: () = assert!(size_of::<Particle>() == 16);

fn main() -> ExitCode {
    support::run(particles)
}

fn particles(context: &Context) -> Result<()> {
    // SAFETY: the context has made instance and device for this version and these flags, and outlives the allocator.
    let allocator = unsafe { Allocator::new(&context.allocator_info()) }?;
    let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::VERTEX_BUFFER;
    let info = UploadRingCreateInfo { usage, name: Some("particles"), ..UploadRingCreateInfo::new(RING) };
    // SAFETY: the usages need nothing enabled. A ticket is done when its frame's fence was waited for, see below.
    let mut ring = unsafe { UploadRing::new(&allocator, &info) }?;

    let on_device = vk::BufferCreateInfo::default()
        .size(u64::from(MOST) * PARTICLE)
        .usage(vk::BufferUsageFlags::TRANSFER_DST | vk::BufferUsageFlags::VERTEX_BUFFER);
    // SAFETY: the create-info is valid.
    let target =
        unsafe { allocator.create_buffer(&on_device, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?;

    note(&format!("A ring of {}, {IN_FLIGHT} frames in flight.", bytes(RING)));
    let clock = Clock::new();
    let lane = clock.add_lane()?;
    let mut frames = Frames::new(context, IN_FLIGHT)?;
    let mut table = Table::new(&[">frame", ">particles", ">from", ">to", ">in flight", ">free", ">lost"]);
    for frame in 0..12_u16 {
        // Waits for the slot's fence: what the slot did before is done, and so is its ticket.
        let slot = frames.wait()?;
        let ticket = clock.begin_frame(lane, u32::try_from(slot)?);
        ring.collect(&clock)?;

        let spiral = spiral(frame);
        let alive = &spiral[..usize::from(MOST / 6 * (1 + frame % 6))];
        // The two uploads of a frame.
        let constants = ring.write_value(&[0.5_f32; 16], ring.alignments().uniform)?;
        let particles = ring.write_slice(alive, PARTICLE)?;
        // What the host wrote is visible to the device from here on, and stays until the ticket is done.
        ring.flush(ticket)?;
        frames.submit(|device, commands| {
            // SAFETY: both buffers have as many bytes, and live until the frame is waited for.
            unsafe { device.cmd_copy_buffer(commands, particles.buffer, target.0, &[particles.copy_to(0)]) };
        })?;
        clock.end_frame(ticket)?;

        let statistics = ring.statistics();
        let end = particles.offset + particles.size;
        let lost = bytes(statistics.padding + statistics.tail);
        table.row([
            &frame,
            &alive.len(),
            &bytes(constants.offset),
            &bytes(end),
            &statistics.pieces,
            &bytes(statistics.free),
            &lost,
        ]);
    }
    table.print();
    note("No frame waits for another but by its fence, and nothing is allocated.");

    // More than is free: whoever has nothing else to do waits for the oldest frame.
    let mut waited = 0;
    let wait = |_: Ticket| -> Result<()> {
        waited += 1;
        frames.wait_for_all()?;
        clock.idle();
        Ok(())
    };
    let all = ring.allocate_or_wait(RING, 1, &clock, wait).map_err(|error| format!("{error}"))?;
    note(&format!("For all {} at once it took {waited} wait.", bytes(all.size)));

    // SAFETY: the device is idle.
    unsafe { allocator.destroy_buffer(target.0, target.1) }?;
    // SAFETY: as above.
    unsafe { ring.destroy() };
    let leaks = allocator.destroy();
    if leaks.is_empty() { Ok(()) } else { Err(format!("forgotten: {leaks:?}").into()) }
}

/// The particles of a frame: a spiral that turns.
fn spiral(frame: u16) -> Vec<Particle> {
    let at = |number: u16| {
        let angle = f32::from(number) * 0.01 + f32::from(frame) * 0.1;
        Particle { position: [angle.cos(), f32::from(number), angle.sin()], size: 0.1 }
    };
    (0..MOST).map(at).collect()
}
