//! Runs 1,000 frames, two of them in flight. Each uploads numbers, sometimes replaces a table that earlier frames still
//! read, dispatches with changing constants, and reads sums back. Every number is compared with its expected value. The
//! example needs no barrier, fence, pool or `collect`. The example `frames` adds a descriptor heap.
//!
//! Then streams textures under a budget, while a compactor moves resources and frees blocks.
//!
//! `cargo run -p sublet-shader-examples --example streams`
//!
//! With `-- --compare`, it also compares its pictures with those of a run without a compactor.

mod textures;

use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::Arc;

use ash::vk;
use sublet::{AllocationCreateInfo, Allocator, MemoryUsage, sim};
use sublet_descriptors::{BindPoint, BindingModel, DescriptorDevice, DescriptorDeviceCreateInfo, SetLayout};
use sublet_examples::{Arguments, Compute, Context, Result, note};
use sublet_frame::{
    Buffer, CompactorStatistics, Frames, FramesCreateInfo, PipelineLayout, QueueInfo, ReadBack, StorageAccess,
};
use sublet_shader_examples::{compile, frame_features};

const FRAMES: u32 = 1_000;
const NUMBERS: usize = 64;
const BYTES: u64 = 256;
const POINT: BindPoint = BindPoint::Compute;

fn main() -> ExitCode {
    const HELP: &str = "
  --compare         compare every picture of the textures with the one without a compactor";
    let compare = |arguments: &mut Arguments| Ok(arguments.flag("--compare"));
    sublet_examples::run_with(HELP, compare, |context, compare| {
        streams(context)?;
        textures(context, compare)
    })
}

fn textures(context: &Context, compare: bool) -> Result<()> {
    let with = textures::stream(context, true)?;
    let CompactorStatistics { moves, bytes_moved, blocks_freed, .. } = with.compaction;
    note(&format!(
        "{} pictures of textures under a budget; {moves} moves ({bytes_moved} bytes), {blocks_freed} blocks freed.",
        with.pictures.len()
    ));
    if compare {
        let without = textures::stream(context, false)?;
        if with.pictures != without.pictures {
            return Err("a picture is another one than without a compactor".into());
        }
        let (reserved, before) = (with.reserved, without.reserved);
        note(&format!(
            "All equal those without a compactor, byte by byte: {reserved} bytes of blocks, {before} without it."
        ));
    }
    Ok(())
}

/// Returns numbers that are unique for this frame and index.
fn numbers(frame: u32, place: u32) -> Vec<u32> {
    (0..64).map(|at| frame.wrapping_mul(2_654_435_761).wrapping_add(place * 1_000 + at)).collect()
}

fn bytes(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn buffer(frames: &Frames) -> Result<Buffer> {
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER
        | vk::BufferUsageFlags::TRANSFER_DST
        | vk::BufferUsageFlags::TRANSFER_SRC;
    let info = vk::BufferCreateInfo::default().size(BYTES).usage(usage);
    // SAFETY: the create-info is valid.
    Ok(unsafe { frames.create_buffer(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?)
}

/// The shader for a simulated GPU.
fn kernel(kernel: &mut sim::Kernel<'_>) {
    let factor = kernel.buffer(0, 0, 0).read_u32(0);
    let [left, right, sums] = [1, 2, 3].map(|binding| kernel.buffer(0, binding, 0));
    for at in (0..BYTES).step_by(4) {
        sums.write_u32(at, left.read_u32(at).wrapping_mul(factor).wrapping_add(right.read_u32(at)));
    }
}

/// The layout of set 0 of the shader.
fn set_layout(context: &Context) -> Result<SetLayout> {
    let uniform = vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC;
    let storage = vk::DescriptorType::STORAGE_BUFFER;
    let bindings = [(0, uniform), (1, storage), (2, storage), (3, storage)].map(|(number, kind)| {
        vk::DescriptorSetLayoutBinding::default()
            .binding(number)
            .descriptor_type(kind)
            .descriptor_count(1)
            .stage_flags(vk::ShaderStageFlags::COMPUTE)
    });
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    // SAFETY: the create-info is valid, and the layout was created from it.
    let layout = unsafe { context.device().create_descriptor_set_layout(&info, None) }?;
    // SAFETY: as above.
    Ok(unsafe { SetLayout::new(layout, &info) }?)
}

fn check((expected, read): &(Vec<u8>, ReadBack)) -> Result<()> {
    if read.bytes()? == *expected { Ok(()) } else { Err("a sum is wrong".into()) }
}

fn streams(context: &Context) -> Result<()> {
    if let Some(gpu) = context.gpu() {
        gpu.set_kernel("main", kernel);
    }
    // SAFETY: the context created instance and device with this version and these flags, and outlives the allocator.
    let allocator = Arc::new(unsafe { Allocator::new(&context.allocator_info()) }?);
    let info = DescriptorDeviceCreateInfo { model: BindingModel::Sets, ..context.descriptor_info() };
    // SAFETY: as above, for the descriptor device.
    let descriptors = unsafe { DescriptorDevice::new(&info) }?;
    let queues = [QueueInfo { queue: context.queue(), family: context.queue_family_index() }];
    let (instance, device, physical) = (context.instance(), context.device(), context.physical_device());
    let info = FramesCreateInfo {
        features: frame_features(context),
        descriptors: Some(&descriptors),
        ..FramesCreateInfo::new(instance, device, physical, context.api_version(), &allocator, &queues)
    };
    // SAFETY: all handles belong to the context's device, which has these features, and outlive the frames.
    let mut frames = unsafe { Frames::new(&info) }?;
    let set = set_layout(context)?;
    let code = compile(include_str!("sums.wgsl"))?;
    let compute = Compute::new(context, &code, &[set.handle()], vk::PipelineCreateFlags::empty())?;
    let sets = std::slice::from_ref(&set);
    // SAFETY: the pipeline layout was created from this set layout, and both are destroyed after the frames.
    let layout = unsafe { PipelineLayout::new(&descriptors, compute.layout, sets, &[]) }?;

    let (input, sums) = (buffer(&frames)?, buffer(&frames)?);
    let mut table = buffer(&frames)?;
    let mut table_of = 0;
    let mut under_way = VecDeque::new();
    let mut compared = 0;
    for frame in 0..FRAMES {
        frames.begin()?;
        let queue = frames.queue(0);
        let mut list = frames.list(queue)?;
        if frame % 7 == 0 {
            // The old one is destroyed when the device is done with the frames that read it.
            table = buffer(&frames)?;
            table_of = frame;
            list.upload(&table, 0, &bytes(&numbers(frame, 2)))?;
        }
        list.upload(&input, 0, &bytes(&numbers(frame, 1)))?;
        // SAFETY: the pipeline was created with this layout, and is destroyed after the frames.
        unsafe { list.bind_pipeline(POINT, compute.pipeline, &layout) }?;
        list.bind_buffer(POINT, (0, 1, 0), &input, 0..BYTES, StorageAccess::Read)?;
        list.bind_buffer(POINT, (0, 2, 0), &table, 0..BYTES, StorageAccess::Read)?;
        list.bind_buffer(POINT, (0, 3, 0), &sums, 0..BYTES, StorageAccess::Write)?;
        for factor in [frame, 3] {
            list.bind_constants(POINT, (0, 0), &[factor, 0, 0, 0])?;
            // SAFETY: all resources of the shader are bound with matching access.
            unsafe { list.dispatch([1, 1, 1]) }?;
            let pairs = numbers(frame, 1).into_iter().zip(numbers(table_of, 2));
            let expected: Vec<u32> =
                pairs.map(|(left, right)| left.wrapping_mul(factor).wrapping_add(right)).collect();
            under_way.push_back((bytes(&expected), list.read_buffer(&sums, 0..BYTES)?));
        }
        frames.submit(queue, [list])?;
        frames.end();
        while under_way.front().is_some_and(|(_, read)| read.is_ready()) {
            under_way.pop_front().iter().try_for_each(check)?;
            compared += NUMBERS;
        }
    }
    frames.wait_idle()?;
    under_way.iter().try_for_each(check)?;
    compared += NUMBERS * under_way.len();
    note(&format!("{FRAMES} frames, {compared} numbers computed by the device, all correct."));
    let statistics = frames.statistics();
    note(&format!(
        "{} barriers in {} calls, {} command pools, {} bytes of upload pages.",
        statistics.barriers, statistics.barrier_calls, statistics.pools, statistics.upload_bytes
    ));
    drop((under_way, frames, layout, compute));
    // SAFETY: the frames were dropped, so nothing uses it.
    unsafe { context.device().destroy_descriptor_set_layout(set.handle(), None) };
    Ok(())
}
