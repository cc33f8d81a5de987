//! Descriptor heaps beside the descriptors of lists.

use std::sync::Arc;

use ash::vk;
use sublet::sim;
use sublet_descriptors::{
    BindPoint, BindingModel, BindlessHeap, BindlessHeapCreateInfo, BindlessKind, BufferDescriptor,
    Descriptor, DescriptorKind, HeapCreateInfo, HeapKind, SetLayout,
};
use sublet_frame::track::Use;
use sublet_frame::{Buffer, ListError, PipelineLayout, StorageAccess};

use crate::fixture::FrameFixture;
use crate::make::end_with;
use crate::paint::binding;

const COMPUTE: BindPoint = BindPoint::Compute;

/// A heap of storage buffers as set 0, and the list's constants and result as set 1.
#[test]
fn heaps_are_bound_beside_descriptors_of_the_list() {
    for (profile, model) in [
        ("lavapipe", BindingModel::Sets),
        ("nvidia-h200", BindingModel::Sets),
        ("nvidia-h200", BindingModel::Buffer),
    ] {
        let mut fixture = FrameFixture::with_model(profile, model);
        let in_buffers = model == BindingModel::Buffer;
        let defaults = fixture.addressed(256);
        let described = |fixture: &FrameFixture, buffer: &Buffer| {
            let address = unsafe { fixture.allocator.buffer_address(buffer.handle()) };
            let plain = BufferDescriptor::new(buffer.handle(), 0, 256);
            Descriptor::StorageBuffer(address.map_or(plain, |address| plain.with_buffer_address(address)))
        };
        let types = [DescriptorKind::StorageBuffer];
        let first = [described(&fixture, &defaults)];
        let info = BindlessHeapCreateInfo::new(HeapKind::Resource);
        let stages = vk::ShaderStageFlags::COMPUTE;
        let info = BindlessHeapCreateInfo {
            heap: HeapCreateInfo { slots: 8, types: &types, stages, ..info.heap },
            frames: 2,
            defaults: &first,
        };
        let heap =
            unsafe { BindlessHeap::create(&fixture.descriptors, Arc::clone(&fixture.allocator), &info) }
                .unwrap();
        assert_eq!(heap.kind() == BindlessKind::Buffer, in_buffers, "{profile}");

        let device = fixture.gpu.device().clone();
        let bindings = [
            binding(0, vk::DescriptorType::UNIFORM_BUFFER, stages),
            binding(1, vk::DescriptorType::STORAGE_BUFFER, stages),
        ];
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
        let layout =
            unsafe { PipelineLayout::new(&fixture.descriptors, pipeline_layout, &sets, &[]) }.unwrap();
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
        // Adds the heap buffer selected by the constants to the result.
        fixture.gpu.set_kernel("main", move |kernel: &mut sim::Kernel<'_>| {
            let slot = kernel.buffer(1, 0, 0).read_u32(0);
            let (from, to) = (kernel.buffer(0, slots, slot), kernel.buffer(1, 1, 0));
            for at in 0..to.len() / 4 {
                to.write_u32(at * 4, to.read_u32(at * 4) + from.read_u32(at * 4));
            }
        });

        let sources: Vec<_> = (0..3).map(|_| fixture.addressed(256)).collect();
        let result = fixture.addressed(256);
        let range = heap.allocate(3).unwrap();
        let indices: Vec<u32> = (0..3)
            .zip(&sources)
            .map(|(at, buffer)| unsafe { heap.write(range.id(), at, &described(&fixture, buffer)) }.unwrap())
            .collect();
        for frame in 0..4_u32 {
            let frames = fixture.frames();
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
            end_with(frames, list);
            frames.wait(&read).unwrap();
            let expected = (frame + 600).to_le_bytes().repeat(64);
            assert_eq!(read.bytes().unwrap(), expected, "{profile}, {model:?}, frame {frame}");
        }
        if in_buffers {
            let plain = fixture.buffer(256);
            let frames = fixture.frames();
            let mut list = frames.list(frames.queue(0)).unwrap();
            unsafe { list.bind_pipeline(COMPUTE, pipeline, &layout) }.unwrap();
            let refused = list.bind_buffer(COMPUTE, (1, 1, 0), &plain, 0..256, StorageAccess::Read);
            assert!(matches!(refused, Err(ListError::BufferUsage { .. })), "{refused:?}");
        }
        drop((sources, result, defaults));
        drop(fixture.frames.take());
        drop((layout, sets));
        unsafe { heap.destroy() };
        unsafe { device.destroy_pipeline(pipeline, None) };
        unsafe { device.destroy_pipeline_layout(pipeline_layout, None) };
        unsafe { device.destroy_descriptor_set_layout(own, None) };
    }
}
