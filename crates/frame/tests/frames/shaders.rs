//! Dispatches find what lists have bound, behind the barriers that it means.

use std::sync::Arc;

use ash::vk;
use sublet::descriptor::{
    BindPoint, BindingModel, BindlessHeap, BindlessHeapCreateInfo, BindlessKind, BufferDescriptor,
    Descriptor, DescriptorKind, HeapCreateInfo, HeapKind, SetLayout,
};
use sublet::sim;
use sublet_frame::track::Use;
use sublet_frame::{Buffer, ListError, PipelineLayout, StorageAccess};

use crate::bench::{Bench, PROFILES};

const COMPUTE: BindPoint = BindPoint::Compute;

/// A pipeline with constants in binding 0 and storage buffers in bindings 1 and 2.
struct Program {
    pipeline: vk::Pipeline,
    layout: PipelineLayout,
}

impl Program {
    fn new(bench: &Bench, constants: vk::DescriptorType) -> Self {
        let device = bench.gpu.device();
        let stages = vk::ShaderStageFlags::COMPUTE;
        let binding = |number, kind| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(number)
                .descriptor_type(kind)
                .descriptor_count(1)
                .stage_flags(stages)
        };
        let storage = vk::DescriptorType::STORAGE_BUFFER;
        let bindings = [binding(0, constants), binding(1, storage), binding(2, storage)];
        let sets = [vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings)];
        let ranges = [vk::PushConstantRange { stage_flags: stages, offset: 0, size: 4 }];
        let frames = bench.frames.as_ref().unwrap();
        let layout = unsafe { frames.create_pipeline_layout(&sets, &ranges) }.unwrap();
        let code = vk::ShaderModuleCreateInfo::default().code(&[0x0723_0203]);
        let module = unsafe { device.create_shader_module(&code, None) }.unwrap();
        let stage = vk::PipelineShaderStageCreateInfo::default().stage(stages).module(module).name(c"main");
        let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout.handle());
        let none = vk::PipelineCache::null();
        let pipeline = unsafe { device.create_compute_pipelines(none, &[info], None) }.unwrap()[0];
        unsafe { device.destroy_shader_module(module, None) };
        // Adds the constants to each number of the first buffer, into the second.
        bench.gpu.set_kernel("main", |kernel: &mut sim::Kernel<'_>| {
            let mut factor = [0; 4];
            kernel.read_push_constants(0, &mut factor);
            let more = kernel.buffer(0, 0, 0).read_u32(0);
            let (from, to) = (kernel.buffer(0, 1, 0), kernel.buffer(0, 2, 0));
            for at in 0..to.len() / 4 {
                let number = from.read_u32(at * 4).wrapping_mul(u32::from_le_bytes(factor));
                to.write_u32(at * 4, number.wrapping_add(more));
            }
        });
        Self { pipeline, layout }
    }

    fn destroy(self, bench: &Bench) {
        unsafe { bench.gpu.device().destroy_pipeline(self.pipeline, None) };
    }
}

#[test]
fn dispatches_follow_one_another() {
    let kinds = [vk::DescriptorType::UNIFORM_BUFFER, vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC];
    // The third one cannot recycle pools of descriptors.
    for (profile, kind) in PROFILES[..2].iter().flat_map(|profile| kinds.map(|kind| (*profile, kind))) {
        let mut bench = Bench::new(profile, 1);
        let program = Program::new(&bench, kind);
        let layout = &program.layout;
        let (one, two) = (bench.buffer(256), bench.buffer(256));
        for frame in 0..6_u32 {
            let frames = bench.frames();
            frames.begin().unwrap();
            let queue = frames.queue(0);
            let mut list = frames.list(queue).unwrap();
            list.fill_buffer(&one, 0..256, frame).unwrap();
            unsafe { list.bind_pipeline(COMPUTE, program.pipeline, layout) }.unwrap();
            let factor = 3_u32.to_le_bytes();
            unsafe { list.push_constants(COMPUTE, vk::ShaderStageFlags::COMPUTE, 0, &factor) }.unwrap();
            for step in 0..4_u32 {
                let (from, to) = if step % 2 == 0 { (&one, &two) } else { (&two, &one) };
                list.bind_constants(COMPUTE, (0, 0), &(step * 10)).unwrap();
                list.bind_buffer(COMPUTE, (0, 1, 0), from, 0..256, StorageAccess::Read).unwrap();
                list.bind_buffer(COMPUTE, (0, 2, 0), to, 0..256, StorageAccess::Write).unwrap();
                let before = frames.statistics().barrier_calls;
                unsafe { list.dispatch([1, 1, 1]) }.unwrap();
                assert_eq!(frames.statistics().barrier_calls, before + 1, "step {step}");
            }
            let read = list.read_buffer(&one, 0..256).unwrap();
            frames.submit(queue, [list]).unwrap();
            frames.end();
            frames.wait(&read).unwrap();
            let expected = (0..4).fold(frame, |number, step| number * 3 + step * 10);
            assert_eq!(read.bytes().unwrap(), expected.to_le_bytes().repeat(64), "{profile}, frame {frame}");
        }
        drop((one, two));
        program.destroy(&bench);
        bench.finish();
    }
}

#[test]
fn arguments_come_from_a_buffer() {
    let mut bench = Bench::new("lavapipe", 1);
    let program = Program::new(&bench, vk::DescriptorType::UNIFORM_BUFFER);
    let layout = &program.layout;
    let (one, two, arguments) = (bench.buffer(256), bench.buffer(256), bench.buffer(64));
    let frames = bench.frames();
    frames.begin().unwrap();
    let queue = frames.queue(0);
    let mut list = frames.list(queue).unwrap();
    let counts: Vec<u8> = [1_u32, 1, 1].iter().flat_map(|count| count.to_le_bytes()).collect();
    list.update_buffer(&arguments, 4, &counts).unwrap();
    list.fill_buffer(&one, 0..256, 5).unwrap();
    unsafe { list.bind_pipeline(COMPUTE, program.pipeline, layout) }.unwrap();
    unsafe { list.push_constants(COMPUTE, vk::ShaderStageFlags::COMPUTE, 0, &2_u32.to_le_bytes()) }.unwrap();
    list.bind_constants(COMPUTE, (0, 0), &1_u32).unwrap();
    list.bind_buffer(COMPUTE, (0, 1, 0), &one, 0..256, StorageAccess::Read).unwrap();
    list.bind_buffer(COMPUTE, (0, 2, 0), &two, 0..256, StorageAccess::Write).unwrap();
    assert!(matches!(unsafe { list.dispatch_indirect(&arguments, 56) }, Err(ListError::OutOfRange { .. })));
    unsafe { list.dispatch_indirect(&arguments, 4) }.unwrap();
    // Commands that the list does not know.
    unsafe { list.use_buffer(&two, 0..4, Use::CLEAR) }.unwrap();
    let handle = two.handle();
    unsafe { list.raw(|device, commands| device.cmd_fill_buffer(commands, handle, 0, 4, 9)) }.unwrap();
    let read = list.read_buffer(&two, 0..8).unwrap();
    frames.submit(queue, [list]).unwrap();
    frames.end();
    frames.wait(&read).unwrap();
    assert_eq!(read.bytes().unwrap(), [9, 0, 0, 0, 11, 0, 0, 0]);
    drop((read, one, two, arguments));
    program.destroy(&bench);
    bench.finish();
}

#[test]
fn bindings_are_checked() {
    let mut bench = Bench::new("lavapipe", 1);
    let program = Program::new(&bench, vk::DescriptorType::UNIFORM_BUFFER);
    let buffer = bench.buffer(256);
    let frames = bench.frames();
    let mut list = frames.list(frames.queue(0)).unwrap();
    let bound = list.bind_buffer(COMPUTE, (0, 1, 0), &buffer, 0..256, StorageAccess::Read);
    assert_eq!(bound, Err(ListError::NoBinding { set: 0, binding: 1 }));
    let layout = &program.layout;
    unsafe { list.bind_pipeline(COMPUTE, program.pipeline, layout) }.unwrap();
    let bound = list.bind_buffer(COMPUTE, (0, 3, 0), &buffer, 0..256, StorageAccess::Read);
    assert_eq!(bound, Err(ListError::NoBinding { set: 0, binding: 3 }));
    let bound = list.bind_buffer(COMPUTE, (0, 1, 0), &buffer, 2..256, StorageAccess::Read);
    assert!(matches!(bound, Err(ListError::Misaligned { given: 2, .. })));
    let bound = list.bind_buffer(COMPUTE, (0, 1, 1), &buffer, 0..256, StorageAccess::Read);
    assert!(matches!(bound, Err(ListError::Stage(_))));
    drop((list, buffer));
    program.destroy(&bench);
    bench.finish();
}

/// A heap of storage buffers as set 0, and the list's own constants and result as set 1.
#[test]
fn heaps_are_bound_beside_descriptors_of_the_list() {
    for (profile, model) in [
        ("lavapipe", BindingModel::Sets),
        ("nvidia-h200", BindingModel::Sets),
        ("nvidia-h200", BindingModel::Buffer),
    ] {
        let mut bench = Bench::with_model(profile, model);
        let in_buffers = model == BindingModel::Buffer;
        let defaults = bench.addressed(256);
        let described = |bench: &Bench, buffer: &Buffer| {
            let address = unsafe { bench.allocator.buffer_address(buffer.handle()) };
            let plain = BufferDescriptor::new(buffer.handle(), 0, 256);
            Descriptor::StorageBuffer(address.map_or(plain, |address| plain.with_buffer_address(address)))
        };
        let types = [DescriptorKind::StorageBuffer];
        let first = [described(&bench, &defaults)];
        let info = BindlessHeapCreateInfo::new(HeapKind::Resource);
        let stages = vk::ShaderStageFlags::COMPUTE;
        let info = BindlessHeapCreateInfo {
            heap: HeapCreateInfo { slots: 8, types: &types, stages, ..info.heap },
            frames: 2,
            defaults: &first,
        };
        let heap =
            unsafe { BindlessHeap::create(&bench.descriptors, Arc::clone(&bench.allocator), &info) }.unwrap();
        assert_eq!(heap.kind() == BindlessKind::Buffer, in_buffers, "{profile}");

        let device = bench.gpu.device().clone();
        let binding = |number, kind| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(number)
                .descriptor_type(kind)
                .descriptor_count(1)
                .stage_flags(stages)
        };
        let bindings =
            [binding(0, vk::DescriptorType::UNIFORM_BUFFER), binding(1, vk::DescriptorType::STORAGE_BUFFER)];
        let flags = match in_buffers {
            true => vk::DescriptorSetLayoutCreateFlags::DESCRIPTOR_BUFFER_EXT,
            false => vk::DescriptorSetLayoutCreateFlags::empty(),
        };
        let own_info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).flags(flags);
        let own = unsafe { device.create_descriptor_set_layout(&own_info, None) }.unwrap();
        let sets = [heap.set_layout().unwrap(), unsafe { SetLayout::new(own, &own_info) }.unwrap()];
        let handles = [heap.layout(), own];
        let layout_info = vk::PipelineLayoutCreateInfo::default().set_layouts(&handles);
        let pipeline_layout = unsafe { device.create_pipeline_layout(&layout_info, None) }.unwrap();
        let layout = unsafe { PipelineLayout::new(&bench.descriptors, pipeline_layout, &sets, &[]) }.unwrap();
        let code = vk::ShaderModuleCreateInfo::default().code(&[0x0723_0203]);
        let module = unsafe { device.create_shader_module(&code, None) }.unwrap();
        let stage = vk::PipelineShaderStageCreateInfo::default().stage(stages).module(module).name(c"main");
        let info = vk::ComputePipelineCreateInfo::default()
            .stage(stage)
            .layout(pipeline_layout)
            .flags(heap.pipeline_flags());
        let none = vk::PipelineCache::null();
        let pipeline = unsafe { device.create_compute_pipelines(none, &[info], None) }.unwrap()[0];
        unsafe { device.destroy_shader_module(module, None) };
        let slots = heap.binding(DescriptorKind::StorageBuffer).unwrap();
        // Adds the buffer of the heap that the constants name to the result.
        bench.gpu.set_kernel("main", move |kernel: &mut sim::Kernel<'_>| {
            let slot = kernel.buffer(1, 0, 0).read_u32(0);
            let (from, to) = (kernel.buffer(0, slots, slot), kernel.buffer(1, 1, 0));
            for at in 0..to.len() / 4 {
                to.write_u32(at * 4, to.read_u32(at * 4) + from.read_u32(at * 4));
            }
        });

        let sources: Vec<_> = (0..3).map(|_| bench.addressed(256)).collect();
        let result = bench.addressed(256);
        let range = heap.allocate(3).unwrap();
        let indices: Vec<u32> = (0..3)
            .zip(&sources)
            .map(|(at, buffer)| unsafe { heap.write(range.id(), at, &described(&bench, buffer)) }.unwrap())
            .collect();
        for frame in 0..4_u32 {
            let frames = bench.frames();
            frames.begin().unwrap();
            let slot = frames.slot() as u32;
            unsafe { heap.flush(slot) };
            let mut list = frames.list(frames.queue(0)).unwrap();
            list.fill_buffer(&result, 0..256, frame).unwrap();
            for (number, buffer) in (1..).zip(&sources) {
                list.fill_buffer(buffer, 0..256, number * 100).unwrap();
            }
            unsafe { list.bind_pipeline(COMPUTE, pipeline, &layout) }.unwrap();
            unsafe { list.bind_heap(COMPUTE, 0, &heap, slot) }.unwrap();
            list.bind_buffer(COMPUTE, (1, 1, 0), &result, 0..256, StorageAccess::ReadWrite).unwrap();
            for (index, buffer) in indices.iter().zip(&sources) {
                list.bind_constants(COMPUTE, (1, 0), index).unwrap();
                let read = Use::storage_read(vk::PipelineStageFlags2::COMPUTE_SHADER);
                unsafe { list.use_buffer(buffer, 0..256, read) }.unwrap();
                unsafe { list.dispatch([1, 1, 1]) }.unwrap();
            }
            let read = list.read_buffer(&result, 0..256).unwrap();
            frames.submit(frames.queue(0), [list]).unwrap();
            frames.end();
            frames.wait(&read).unwrap();
            let expected = (frame + 600).to_le_bytes().repeat(64);
            assert_eq!(read.bytes().unwrap(), expected, "{profile}, {model:?}, frame {frame}");
        }
        if in_buffers {
            let plain = bench.buffer(256);
            let frames = bench.frames();
            let mut list = frames.list(frames.queue(0)).unwrap();
            unsafe { list.bind_pipeline(COMPUTE, pipeline, &layout) }.unwrap();
            let refused = list.bind_buffer(COMPUTE, (1, 1, 0), &plain, 0..256, StorageAccess::Read);
            assert!(matches!(refused, Err(ListError::BufferUsage { .. })), "{refused:?}");
        }
        drop((sources, result, defaults));
        drop(bench.frames.take());
        drop((layout, sets));
        unsafe { heap.destroy() };
        unsafe { device.destroy_pipeline(pipeline, None) };
        unsafe { device.destroy_pipeline_layout(pipeline_layout, None) };
        unsafe { device.destroy_descriptor_set_layout(own, None) };
        bench.finish();
    }
}
