//! Cost of resource uses in a list, by the kind of resource.
//!
//! Run with `cargo bench -p sublet-frame --bench lists`. `cargo test -p sublet-frame --benches` runs it as a test. The
//! lists are on a simulated GPU that records nothing. One item is one use that needs no barrier.
//!
//! `SUBLET_COUNTED=NAME` runs one of [`CASES`] twice, as in `track.rs`.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    reason = "a benchmark, with buffers and uses that are valid"
)]

use std::sync::Arc;

use ash::vk::{self, PipelineStageFlags2 as Stages};
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use sublet::{AllocationCreateFlags, AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage, sim};
use sublet_descriptors::{BindPoint, BindingModel, DescriptorDevice, DescriptorDeviceCreateInfo};
use sublet_frame::track::Use;
use sublet_frame::{
    CompactStep, Compactor, CompactorCreateInfo, Features, Frames, FramesCreateInfo, QueueInfo, StorageAccess,
};

const USES: usize = 1_000;
const BUFFERS: usize = 100;

fn main() {
    if let Ok(name) = std::env::var("SUBLET_COUNTED") {
        let (_, case) = CASES.iter().find(|(known, _)| *known == name).expect("the name of a case");
        let mut round = case();
        round();
        counted(&mut round);
        return println!("{USES}");
    }
    divan::main();
}

type Case = Box<dyn FnMut()>;

type MakeCase = fn() -> Case;

const CASES: [(&str, MakeCase); 3] =
    [("stays", || uses(false, false)), ("movable", || uses(true, false)), ("moved", || uses(true, true))];

#[inline(never)]
fn counted(round: &mut dyn FnMut()) {
    round();
}

/// Uses one of a hundred buffers before each of a thousand commands.
fn uses(movable: bool, moved: bool) -> Case {
    let (_, mut frames) = sublet_frame::doc_example();
    let usage = vk::BufferUsageFlags::TRANSFER_SRC
        | vk::BufferUsageFlags::TRANSFER_DST
        | vk::BufferUsageFlags::UNIFORM_BUFFER;
    let info = vk::BufferCreateInfo::default().size(4096).usage(usage);
    let mut memory = AllocationCreateInfo::new(MemoryUsage::Auto);
    if !movable {
        memory.flags |= AllocationCreateFlags::CAN_ALIAS;
    }
    let make = |frames: &Frames| unsafe { frames.create_buffer(&info, &memory) }.unwrap();
    let holes: Vec<_> = (0..BUFFERS).map(|_| make(&frames)).collect();
    let buffers: Vec<_> = (0..BUFFERS).map(|_| make(&frames)).collect();
    assert!(buffers.iter().all(|buffer| buffer.is_movable() == movable));
    drop(holes);
    if moved {
        compact(&mut frames);
    }
    let mut list = frames.list(frames.queue(0)).unwrap();
    let read = Use::uniform(Stages::COMPUTE_SHADER);
    let round = move || {
        for buffer in buffers.iter().cycle().take(USES) {
            unsafe { list.use_buffer(black_box(buffer), 0..4096, read) }.unwrap();
            list.flush().unwrap();
            black_box(buffer.handle());
        }
        black_box(&frames);
    };
    Box::new(round)
}

fn compact(frames: &mut Frames) {
    let mut compactor = Compactor::new(CompactorCreateInfo {
        algorithm: sublet::DefragmentationAlgorithm::Full,
        max_moves_per_frame: 0,
        max_bytes_per_frame: 0,
        max_time_per_frame: std::time::Duration::MAX,
        ..CompactorCreateInfo::new(frames.queue(0))
    });
    compactor.request();
    loop {
        frames.begin().unwrap();
        let step = compactor.step(frames).unwrap();
        frames.end();
        if matches!(step, CompactStep::Ended(_)) {
            break;
        }
    }
    let moves = compactor.statistics().moves;
    // Some are at their destination already.
    assert!(moves > 80, "only {moves} were moved");
}

const REGIONS: usize = 20_000;

/// Copies many regions in random order.
fn regions() -> Case {
    let (_, mut frames) = sublet_frame::doc_example();
    let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    let size = u64::try_from(REGIONS).unwrap() * 8;
    let info = vk::BufferCreateInfo::default().size(size).usage(usage);
    let memory = AllocationCreateInfo::new(MemoryUsage::Auto);
    let (from, to) = (
        unsafe { frames.create_buffer(&info, &memory) }.unwrap(),
        unsafe { frames.create_buffer(&info, &memory) }.unwrap(),
    );
    let mut regions: Vec<_> = (0..size)
        .step_by(8)
        .map(|offset| vk::BufferCopy { src_offset: offset, dst_offset: size - 8 - offset, size: 4 })
        .collect();
    fastrand::Rng::with_seed(1).shuffle(&mut regions);
    let round = move || {
        frames.begin().unwrap();
        let mut list = frames.list(frames.queue(0)).unwrap();
        list.copy_buffer(&from, &to, black_box(&regions)).unwrap();
        drop(list);
        frames.end();
    };
    Box::new(round)
}

const BOUND: u32 = 1_000;
const CHANGES: u32 = 100;

/// Binds a thousand storage buffers, and changes one of them before each of a hundred dispatches.
fn descriptors() -> Case {
    // The default profile has fewer descriptors per stage.
    let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-h200").expect("a known profile"));
    let gpu: &sim::Gpu = Box::leak(Box::new(gpu));
    let allocator = Arc::new(unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(gpu)) }.unwrap());
    let sets =
        DescriptorDeviceCreateInfo { model: BindingModel::Sets, ..DescriptorDeviceCreateInfo::for_gpu(gpu) };
    let descriptors = unsafe { DescriptorDevice::new(&sets) }.unwrap();
    let queues = [QueueInfo { queue: gpu.queue(), family: gpu.queue_family_index() }];
    let (instance, device, physical) = (gpu.instance(), gpu.device(), gpu.physical_device());
    let info = FramesCreateInfo {
        features: Features::for_gpu(gpu),
        descriptors: Some(&descriptors),
        ..FramesCreateInfo::new(instance, device, physical, gpu.api_version(), &allocator, &queues)
    };
    let mut frames = unsafe { Frames::new(&info) }.unwrap();
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER;
    let info = vk::BufferCreateInfo::default().size(256).usage(usage);
    let memory = AllocationCreateInfo::new(MemoryUsage::Auto);
    let buffers: Vec<_> =
        (0..=BOUND).map(|_| unsafe { frames.create_buffer(&info, &memory) }.unwrap()).collect();
    let stages = vk::ShaderStageFlags::COMPUTE;
    let binding = vk::DescriptorSetLayoutBinding::default()
        .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
        .descriptor_count(BOUND)
        .stage_flags(stages);
    let bindings = [binding];
    let set = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    let layout = unsafe { frames.create_pipeline_layout(&[set], &[]) }.unwrap();
    let device = gpu.device().clone();
    let code = vk::ShaderModuleCreateInfo::default().code(&[0x0723_0203]);
    let module = unsafe { device.create_shader_module(&code, None) }.unwrap();
    let stage = vk::PipelineShaderStageCreateInfo::default().stage(stages).module(module).name(c"main");
    let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout.handle());
    let made = unsafe { device.create_compute_pipelines(vk::PipelineCache::null(), &[info], None) };
    let pipeline = made.unwrap()[0];
    let point = BindPoint::Compute;
    let round = move || {
        frames.begin().unwrap();
        let mut list = frames.list(frames.queue(0)).unwrap();
        unsafe { list.bind_pipeline(point, pipeline, &layout) }.unwrap();
        for (element, buffer) in (0..BOUND).zip(&buffers) {
            list.bind_buffer(point, (0, 0, element), buffer, 0..256, StorageAccess::Read).unwrap();
        }
        for change in 0..CHANGES {
            let buffer = &buffers[usize::try_from(BOUND - change % 2).unwrap()];
            list.bind_buffer(point, (0, 0, change), buffer, 0..256, StorageAccess::Read).unwrap();
            unsafe { list.dispatch([1, 1, 1]) }.unwrap();
        }
        drop(list);
        frames.end();
    };
    Box::new(round)
}

fn bench(bencher: Bencher<'_, '_>, mut round: Case) {
    round();
    bencher.counter(ItemsCount::new(USES)).bench_local(round);
}

#[divan::bench]
fn a_use_of_a_fixed_buffer(bencher: Bencher<'_, '_>) {
    bench(bencher, uses(false, false));
}

#[divan::bench]
fn a_use_of_a_movable_buffer(bencher: Bencher<'_, '_>) {
    bench(bencher, uses(true, false));
}

#[divan::bench]
fn a_use_of_a_moved_buffer(bencher: Bencher<'_, '_>) {
    bench(bencher, uses(true, true));
}

#[divan::bench(sample_count = 10)]
fn a_copy_of_one_of_20000_regions(bencher: Bencher<'_, '_>) {
    let mut round = regions();
    round();
    bencher.counter(ItemsCount::new(REGIONS)).bench_local(round);
}

#[divan::bench(sample_count = 10)]
fn a_dispatch_after_one_of_1000_descriptors_changed(bencher: Bencher<'_, '_>) {
    let mut round = descriptors();
    round();
    bencher.counter(ItemsCount::new(CHANGES)).bench_local(round);
}
