//! Runs 1,000 frames, three of them in flight: uploads, constants, a descriptor heap, and resources that are dropped
//! while the device still reads them. A compute shader reads all of them, and the program checks every number that it
//! writes. `sublet-frame` manages barriers, fences, command pools and deferred destruction.
//!
//! `cargo run -p sublet-shader-examples --example frames`

mod task;

use std::collections::VecDeque;
use std::process::ExitCode;
use std::slice::from_ref;
use std::sync::Arc;

use ash::vk;
use sublet::Allocator;
use sublet::retire::Retire;
use sublet_descriptors::{
    BindPoint, BindingModel, BindlessHeap, BindlessHeapCreateInfo, BindlessKind, Descriptor,
    DescriptorDevice, DescriptorDeviceCreateInfo, DescriptorKind, HeapCreateInfo, HeapKind, HeapPlace,
};
use sublet_examples::{Compute, Context, Result, bytes, frame_features, note};
use sublet_frame::{Frames, FramesCreateInfo, PipelineLayout, QueueInfo, StorageAccess};
use sublet_shader_examples::compile;

use task::{Arrays, BYTES, Heap, Task, buffer, set_layout};

const FRAMES: u32 = 1_000;
const IN_FLIGHT: u32 = 3;
/// The number of slots that the shader declares.
const SLOTS: u32 = 16;
const POINT: BindPoint = BindPoint::Compute;

fn main() -> ExitCode {
    sublet_examples::run(frames)
}

fn frames(context: &Context) -> Result<()> {
    if let Some(gpu) = context.gpu() {
        gpu.set_kernel("main", task::kernel);
    }
    // SAFETY: the context created instance and device with this version and these flags, and outlives the allocator.
    let allocator = Arc::new(unsafe { Allocator::new(&context.allocator_info()) }?);
    // Records all requests to the file in `SUBLET_TRACE`, if it is set.
    sublet::trace::start_from_environment(&allocator)?;
    // Set 0 is a descriptor set. Binding descriptor buffers would unbind it.
    let info = DescriptorDeviceCreateInfo { model: BindingModel::Sets, ..context.descriptor_info() };
    // SAFETY: as above, for everything made from this.
    let descriptors = unsafe { DescriptorDevice::new(&info) }?;
    let queues = [QueueInfo { queue: context.queue(), family: context.queue_family_index() }];
    let (instance, device, physical) = (context.instance(), context.device(), context.physical_device());
    let info = FramesCreateInfo {
        features: frame_features(context),
        frames_in_flight: usize::try_from(IN_FLIGHT)?,
        descriptors: Some(&descriptors),
        ..FramesCreateInfo::new(instance, device, physical, context.api_version(), &allocator, &queues)
    };
    // SAFETY: all handles belong to the context's device, which has these features enabled, and outlive the frames.
    let mut frames = unsafe { Frames::new(&info) }?;

    // The contents of slots that no range uses.
    let default = buffer(&frames, BYTES)?;
    let info = BindlessHeapCreateInfo::new(HeapKind::Resource);
    let heap = HeapCreateInfo {
        slots: SLOTS,
        types: &[DescriptorKind::StorageBuffer],
        stages: vk::ShaderStageFlags::COMPUTE,
        name: "numbers",
        ..info.heap
    };
    let defaults = [Descriptor::StorageBuffer(task::array(&default, 0))];
    let info = BindlessHeapCreateInfo { heap, frames: IN_FLIGHT, defaults: &defaults };
    // SAFETY: the buffer is dropped after the heap.
    let heap = unsafe { BindlessHeap::create(&descriptors, &*allocator, &info) }?;
    note(match heap.kind() {
        BindlessKind::Set => "The heap is one set, and is written while the device uses it.",
        _ => "The heap is a set for each frame in flight.",
    });
    let set = set_layout(context)?;
    let code = compile(include_str!("numbers.wgsl"))?;
    let no_flags = vk::PipelineCreateFlags::empty();
    let compute = Compute::new(context, &code, &[set.handle(), heap.layout()], no_flags)?;
    let sets = [set.clone(), heap.set_layout().ok_or("the heap is of sets")?.clone()];
    // SAFETY: the pipeline layout was created from these set layouts, and all are destroyed after the frames.
    let layout = unsafe { PipelineLayout::new(&descriptors, compute.layout, &sets, &[]) }?;
    let place = HeapPlace { bind_point: POINT.to_vk(), layout: compute.layout, first_set: 1 };

    // Two dispatches write into it. The results are read back before the next frame writes its own.
    let results = buffer(&frames, 2 * BYTES)?;
    let mut material = None;
    let mut gone = Retire::new();
    let mut under_way = VecDeque::new();
    let (mut compared, mut most_slots) = (0, 0);
    for frame in 0..FRAMES {
        frames.begin()?;
        // Slots get the default back before the buffers that they describe are destroyed.
        heap.collect(frames.clock())?;
        gone.collect(frames.clock(), drop)?;
        let slot = u32::try_from(frames.slot())?;
        let mut list = frames.list(frames.queue(0))?;
        // Each frame has its own numbers. Every few frames the material is replaced, while frames that use the old one
        // are in flight.
        let own = Arrays::new(&frames, &mut list, &heap, frame, [1, 2])?;
        let mut old = None;
        if frame % 7 == 0 {
            old = material.replace(Arrays::new(&frames, &mut list, &heap, frame, [3, 4])?);
        }
        let lasting = material.as_ref().ok_or("there is one from the first frame on")?;
        most_slots = most_slots.max(SLOTS - heap.statistics().free);
        // SAFETY: the slot's last frame is complete, and the buffers of all ranges are live.
        unsafe { heap.flush(slot) };

        // SAFETY: the pipeline was created with this layout, and is destroyed after the frames.
        unsafe { list.bind_pipeline(POINT, compute.pipeline, &layout) }?;
        list.bind_buffer(POINT, (0, 1, 0), &results, 0..2 * BYTES, StorageAccess::Write)?;
        let bind = |_: &ash::Device, commands| {
            // SAFETY: the command buffer is being recorded, and set 1 of the layout is the heap.
            unsafe { Heap::cmd_bind(commands, slot, from_ref(&place), &[&heap]) };
        };
        // SAFETY: the heap outlives the frames, and all resources that shaders access through it are declared.
        unsafe { list.raw(bind) }?;
        for (result, (arrays, factor)) in (0..).zip([(&own, frame), (lasting, 3)]) {
            list.bind_constants(
                POINT,
                (0, 0),
                &Task { first: arrays.range.first(), factor, result, unused: 0 },
            )?;
            arrays.declare(&mut list)?;
            // SAFETY: everything that the shader uses is bound or declared.
            unsafe { list.dispatch([1, 1, 1]) }?;
        }
        under_way
            .push_back((task::expected(frame, lasting.frame), list.read_buffer(&results, 0..2 * BYTES)?));
        let ticket = frames.submit(frames.queue(0), [list])?;
        for arrays in [Some(own), old].into_iter().flatten() {
            // SAFETY: no later recording uses it.
            unsafe { heap.retire(ticket, arrays.range) }?;
            gone.push(ticket, arrays.buffer);
        }
        frames.end();
        while under_way.front().is_some_and(|(_, read)| read.is_ready()) {
            compared += under_way.pop_front().map_or(Ok(0), task::compare)?;
        }
    }
    frames.wait_idle()?;
    compared += under_way.into_iter().map(task::compare).sum::<Result<usize>>()?;
    note(&format!("{FRAMES} frames, {compared} numbers computed by the device, all as they must be."));
    let statistics = frames.statistics();
    note(&format!(
        "Uploads took {} of pages, {} barriers took {} calls, and the heap held {most_slots} slots at most.",
        bytes(statistics.upload_bytes),
        statistics.barriers,
        statistics.barrier_calls,
    ));
    heap.collect(frames.clock())?;
    drop((gone, material, frames, layout, sets));
    // SAFETY: the device is idle.
    unsafe { heap.destroy() };
    // SAFETY: nothing uses it any more.
    unsafe { context.device().destroy_descriptor_set_layout(set.handle(), None) };
    Ok(())
}
