//! Three frames in flight, 1,000 of them: uploads, sets that live for a frame, a heap of descriptors, and things that
//! are retired while the device still reads them. A compute shader reads through all of it, and every number that it
//! writes is compared with what it must be.
//!
//! `cargo run --example frames`

mod heap;
#[path = "../support/mod.rs"]
mod support;
mod task;

use std::process::ExitCode;

use ash::vk;
use sublet::descriptor::{
    BindingModel, BufferDescriptor, DescriptorDevice, DescriptorDeviceCreateInfo, HeapPlace, TransientSets,
    TransientSetsCreateInfo,
};
use sublet::retire::Clock;
use sublet::upload::{UploadArena, UploadArenaCreateInfo};
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, Allocator, MemoryUsage, RetiredResources,
};
use support::{Compute, Context, Frames, Result, bytes, note};

use heap::Heap;
use task::{Material, NUMBERS, SetZero, Task, numbers};

const FRAMES: u32 = 1_000;
const IN_FLIGHT: u32 = 3;
/// Dispatches of a frame: two, one with what was uploaded for it, one with a material that stays for a while.
const TASKS: u32 = 2;
const RESULT: u64 = NUMBERS * 2 * 4;

fn main() -> ExitCode {
    support::run(frames)
}

fn frames(context: &Context) -> Result<()> {
    if let Some(gpu) = context.gpu() {
        gpu.set_kernel("main", task::kernel);
    }
    // SAFETY: the context has made instance and device for this version and these flags, and outlives the allocator.
    let allocator = unsafe { Allocator::new(&context.allocator_info()) }?;
    // With `SUBLET_TRACE=FILE` all that is asked of it is recorded there.
    sublet::trace::start_from_environment(&allocator)?;
    // SAFETY: the same of all that is made from this.
    let descriptors = unsafe {
        DescriptorDevice::new(&DescriptorDeviceCreateInfo {
            // Set 0 is a descriptor set, and descriptor buffers would undo it.
            model: BindingModel::Sets,
            ..context.descriptor_info()
        })
    }?;
    let clock = Clock::new();
    let lane = clock.add_lane()?;

    // One buffer for the results of all frames in flight, which the host reads.
    let info = vk::BufferCreateInfo::default()
        .size(RESULT * u64::from(IN_FLIGHT))
        .usage(vk::BufferUsageFlags::STORAGE_BUFFER);
    let read_back = AllocationCreateInfo {
        flags: Flags::HOST_ACCESS_RANDOM | Flags::MAPPED,
        ..AllocationCreateInfo::new(MemoryUsage::Auto)
    };
    // SAFETY: the create-info is valid.
    let (results, results_memory) = unsafe { allocator.create_buffer(&info, &read_back) }?;

    let usage = vk::BufferUsageFlags::UNIFORM_BUFFER | vk::BufferUsageFlags::STORAGE_BUFFER;
    // SAFETY: the usages need nothing enabled, and a ticket is done when its frame's fence was waited for.
    let mut arena =
        unsafe { UploadArena::new(&allocator, &UploadArenaCreateInfo { usage, ..Default::default() }) }?;
    let mut sets = TransientSets::new(&descriptors, &TransientSetsCreateInfo::default())?;
    let default = BufferDescriptor::new(results, 0, NUMBERS * 4);
    // SAFETY: the buffer is destroyed last.
    let heap = unsafe { heap::new(&descriptors, &allocator, IN_FLIGHT, default) }?;
    let retired = RetiredResources::new();
    let set_zero = SetZero::new(context)?;
    let compute =
        Compute::new(context, include_str!("numbers.wgsl"), &[set_zero.layout.handle(), heap.layout()])?;

    let mut frames = Frames::new(context, IN_FLIGHT)?;
    // By slot: what the frame in flight is to write.
    let mut expected: Vec<Option<Vec<u32>>> = vec![None; usize::try_from(IN_FLIGHT)?];
    let mut material = Material::new(&allocator, &heap, 0)?;
    let (mut compared, mut most_slots) = (0_u64, 0);
    for frame in 0..FRAMES + IN_FLIGHT {
        // Waits for the slot's fence: what the slot did before is done.
        let at = frames.wait()?;
        let slot = u32::try_from(at)?;
        if let Some(expected) = expected[at].take() {
            let mut found = vec![0; expected.len() * 4];
            allocator.copy_from_allocation(&results_memory, u64::from(slot) * RESULT, &mut found)?;
            compared += task::compare(frame - IN_FLIGHT, &expected, &found)?;
        }
        let ticket = clock.begin_frame(lane, slot);
        arena.collect(&clock)?;
        sets.collect(&clock)?;
        heap.collect(&clock)?;
        retired.collect(&allocator, &clock)?;

        // The last frames only wait for those before.
        if frame < FRAMES {
            // Numbers for this frame alone, read by the device where the host has written them.
            let alignment = arena.alignments().storage;
            let left = arena.write_slice(&numbers(frame, 1), alignment)?;
            let right = arena.write_slice(&numbers(frame, 2), alignment)?;
            let pair =
                [left, right].map(|upload| BufferDescriptor::new(upload.buffer, upload.offset, upload.size));
            // SAFETY: what is in the arena stays until the ticket is done.
            let range = unsafe { heap::hold(&heap, &pair) }?;
            // Every few frames another material, while frames that use the old one are in flight.
            if frame % 7 == 6 {
                let old = std::mem::replace(&mut material, Material::new(&allocator, &heap, frame)?);
                old.retire(ticket, &heap, &retired)?;
            }

            let tasks = [
                Task { first: range.first(), factor: frame, result: slot * TASKS, unused: 0 },
                Task { first: material.range.first(), factor: 3, result: slot * TASKS + 1, unused: 0 },
            ];
            let mut bound = Vec::new();
            for task in &tasks {
                let upload = arena.write_value(task, arena.alignments().uniform)?;
                // SAFETY: the layout is live, and the set is used in this frame only.
                let set = unsafe { sets.allocate(&set_zero.layout) }?;
                set_zero.write(set, &upload, results);
                bound.push(set);
            }
            expected[at] = Some(task::expected(frame, material.frame));
            most_slots = most_slots.max(heap::used(&heap));
            // What the host wrote is visible to the device, and stays until the ticket is done.
            arena.flush(ticket)?;
            sets.flush(ticket)?;
            // SAFETY: the slot's last frame is done, and the buffers of all ranges are live.
            unsafe { heap.flush(slot) };
            let place = HeapPlace {
                bind_point: vk::PipelineBindPoint::COMPUTE,
                layout: compute.layout,
                first_set: 1,
            };
            frames.submit(|device, commands| {
                // SAFETY: the command buffer is being recorded, and set 1 of the layout is the heap.
                unsafe { Heap::cmd_bind(commands, slot, &[place], &[&heap]) };
                task::record(device, commands, &compute, &bound);
            })?;
            // SAFETY: no later recording uses it.
            unsafe { heap.retire(ticket, range) }?;
            clock.end_frame(ticket)?;
        } else {
            frames.submit(|_, _| ())?;
            clock.end_frame(ticket)?;
        }
    }

    frames.wait_for_all()?;
    clock.shutdown();
    note(&format!("{FRAMES} frames, {compared} numbers computed by the device, all as they must be."));
    let (uploads, pools) = (arena.statistics(), sets.statistics());
    note(&format!(
        "Uploads took {} in {} pages, {} sets came out of {} pools, and the heap held {most_slots} slots at most.",
        bytes(uploads.reserved),
        uploads.pages,
        pools.sets_allocated,
        pools.peak_pools,
    ));

    material.retire(clock.open(lane), &heap, &retired)?;
    retired.collect(&allocator, &clock)?;
    // SAFETY: the device is idle, here and below.
    unsafe { sets.destroy() };
    // SAFETY: as above.
    unsafe { heap.destroy() };
    arena.collect(&clock)?;
    drop(arena);
    // SAFETY: as above.
    unsafe { allocator.destroy_buffer(results, results_memory) }?;
    Ok(())
}
