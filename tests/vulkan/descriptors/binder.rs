//! Bindings of a binder: by sets, by push descriptors, and in descriptor buffers.

use ash::vk;
use sublet::Allocator;
use sublet::retire::Clock;
use sublet_descriptors::{
    BindPoint, Binder, BinderCreateInfo, BindingModel, BufferStore, CreateHeapError, Descriptor,
    DescriptorDevice, DescriptorDeviceCreateInfo, DescriptorFeatures, DescriptorHeap, DescriptorKind,
    HeapArrays, HeapCreateInfo, HeapStore, PipelineLayoutInfo, SetLayout, SetStore,
};
use sublet_examples::Compute;

use super::{
    ADD, Data, NUMBERS, add_descriptors, add_layout, destroy_layout, show_to_host, simulate_add, words,
};
use crate::{Fixture, on_each_device};

const TASKS: u32 = 30;

fn run(fixture: &Fixture<'_>, model: BindingModel, flags: vk::DescriptorSetLayoutCreateFlags) {
    simulate_add(fixture.context);
    let mut data = Data::new(fixture, TASKS);
    for task in 0..TASKS {
        data.set_task(task, [task + 5, 0, 0, 0]);
    }
    let info = DescriptorDeviceCreateInfo { model, ..fixture.context.descriptor_info() };
    // SAFETY: the context created instance and device as its info states, and outlives the objects created from the
    // value.
    let device = unsafe { DescriptorDevice::new(&info) }.unwrap();
    let set = add_layout(fixture.context, flags);
    let pipeline = match model {
        BindingModel::Buffer => vk::PipelineCreateFlags::DESCRIPTOR_BUFFER_EXT,
        _ => vk::PipelineCreateFlags::empty(),
    };
    let compute = Compute::new(fixture.context, &words(ADD), &[set.handle()], pipeline).unwrap();
    // SAFETY: the pipeline layout was created from this set layout, and both outlive the value.
    let layout =
        unsafe { PipelineLayoutInfo::new(&device, compute.layout, std::slice::from_ref(&set), &[]) }.unwrap();
    // SAFETY: the allocator belongs to the device, and each commit is used by the recording whose ticket is flushed
    // next.
    let mut binder =
        unsafe { Binder::new(&device, fixture.allocator, &BinderCreateInfo::default()) }.unwrap();
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    for frame in 0..8 {
        let ticket = clock.begin_frame(timeline, frame % 2);
        binder.collect(&clock).unwrap();
        let mut flushed = Ok(());
        let record = |vulkan: &ash::Device, commands: vk::CommandBuffer| {
            let point = vk::PipelineBindPoint::COMPUTE;
            // SAFETY: it is a compute pipeline.
            unsafe { vulkan.cmd_bind_pipeline(commands, point, compute.pipeline) };
            binder.set_layout(BindPoint::Compute, &layout).unwrap();
            for task in 0..TASKS {
                let wanted = add_descriptors(&data, task, (task * 7 + frame) % TASKS, task);
                for (binding, descriptor) in (0..).zip(wanted) {
                    binder.stage(BindPoint::Compute, 0, binding, 0, &[descriptor]).unwrap();
                }
                // SAFETY: the buffer is live, the command buffer is being recorded, and nothing else is bound in it.
                unsafe { binder.commit(commands, BindPoint::Compute) }.unwrap();
                // SAFETY: everything that the pipeline needs is bound.
                unsafe { vulkan.cmd_dispatch(commands, 1, 1, 1) };
            }
            show_to_host(vulkan, commands);
            flushed = binder.flush(ticket);
        };
        fixture.context.submit(record).unwrap();
        flushed.unwrap();
        clock.end_frame(ticket).unwrap();
        for task in 0..TASKS {
            data.expect(task, (task * 7 + frame) % TASKS, task + 5);
        }
        binder.validate();
    }
    // SAFETY: all submissions were waited for.
    unsafe { binder.destroy() };
    drop(layout);
    drop(compute);
    destroy_layout(fixture.context, &set);
    data.destroy();
}

#[test]
fn what_is_staged_is_bound_as_sets() {
    on_each_device(|fixture| {
        if fixture.descriptor_device().features().contains(DescriptorFeatures::MAINTENANCE1) {
            run(fixture, BindingModel::Sets, vk::DescriptorSetLayoutCreateFlags::empty());
        } else {
            println!("{}: skipped, Vulkan 1.0 without VK_KHR_maintenance1", fixture.context.device_name());
        }
    });
}

#[test]
fn what_is_staged_is_pushed() {
    on_each_device(|fixture| {
        if fixture.descriptor_features().contains(DescriptorFeatures::PUSH_DESCRIPTOR) {
            run(fixture, BindingModel::Sets, vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR);
        } else {
            println!("{}: skipped, no push descriptors", fixture.context.device_name());
        }
    });
}

#[test]
fn what_is_staged_is_bound_in_descriptor_buffers() {
    on_each_device(|fixture| {
        if fixture.descriptor_features().contains(DescriptorFeatures::DESCRIPTOR_BUFFER) {
            run(fixture, BindingModel::Buffer, vk::DescriptorSetLayoutCreateFlags::DESCRIPTOR_BUFFER_EXT);
        } else {
            println!("{}: skipped, no descriptor buffers", fixture.context.device_name());
        }
    });
}

#[test]
fn what_is_staged_is_pushed_beside_descriptor_buffers() {
    on_each_device(|fixture| {
        let wanted =
            DescriptorFeatures::DESCRIPTOR_BUFFER_PUSH_DESCRIPTORS | DescriptorFeatures::PUSH_DESCRIPTOR;
        if fixture.descriptor_features().contains(wanted | DescriptorFeatures::DESCRIPTOR_BUFFER) {
            let flags = vk::DescriptorSetLayoutCreateFlags::DESCRIPTOR_BUFFER_EXT
                | vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR;
            run(fixture, BindingModel::Buffer, flags);
        } else {
            println!("{}: skipped, no push descriptors in descriptor buffers", fixture.context.device_name());
        }
    });
}

/// Like the shader [`ADD`], but reads the array from a heap. The task holds its index.
const ADD_FROM_HEAP: &[u8] = include_bytes!("add_from_heap.spv");

/// Runs with a heap of storage buffers, and with the function that stages it.
fn beside_heap<S: HeapStore>(
    fixture: &Fixture<'_>,
    device: &DescriptorDevice,
    heap: &DescriptorHeap<S>,
    heap_layout: &SetLayout,
    stage: impl Fn(&mut Binder<&Allocator>),
) {
    if let Some(gpu) = fixture.context.gpu() {
        gpu.set_kernel("main", |kernel| {
            let task = kernel.buffer(0, 0, 0);
            let [add, source] = [0, 4].map(|offset| task.read_u32(offset));
            let (source, target) = (kernel.buffer(1, 0, source), kernel.buffer(0, 2, 0));
            for at in 0..NUMBERS {
                target.write_u32(at * 4, source.read_u32(at * 4) + add);
            }
        });
    }
    let in_buffers = device.model() == BindingModel::Buffer;
    let mut data = Data::new(fixture, 8);
    let range = heap.allocate(8).unwrap();
    for array in 0..8 {
        // SAFETY: the buffer is live, and no shader reads newly allocated slots.
        unsafe { heap.write(range.id(), array, &Descriptor::StorageBuffer(data.source(array))) }.unwrap();
        data.set_task(array, [array + 5, range.index((array * 3) % 8).unwrap(), 0, 0]);
    }
    let flags = if in_buffers {
        vk::DescriptorSetLayoutCreateFlags::DESCRIPTOR_BUFFER_EXT
    } else {
        vk::DescriptorSetLayoutCreateFlags::empty()
    };
    let set = add_layout(fixture.context, flags);
    let pipeline = if in_buffers {
        vk::PipelineCreateFlags::DESCRIPTOR_BUFFER_EXT
    } else {
        vk::PipelineCreateFlags::empty()
    };
    let code = words(ADD_FROM_HEAP);
    let handles = [set.handle(), heap_layout.handle()];
    let compute = Compute::new(fixture.context, &code, &handles, pipeline).unwrap();
    let layouts = [set.clone(), heap_layout.clone()];
    // SAFETY: the pipeline layout was created from these two, and all of them outlive the value.
    let layout = unsafe { PipelineLayoutInfo::new(device, compute.layout, &layouts, &[]) }.unwrap();
    // SAFETY: the allocator belongs to the device, and each commit is used by the recording whose ticket is flushed
    // next.
    let mut binder = unsafe { Binder::new(device, fixture.allocator, &BinderCreateInfo::default()) }.unwrap();
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    for frame in 0..3 {
        let ticket = clock.begin_frame(timeline, frame % 2);
        binder.collect(&clock).unwrap();
        let mut flushed = Ok(());
        let record = |vulkan: &ash::Device, commands: vk::CommandBuffer| {
            // SAFETY: it is a compute pipeline.
            unsafe { vulkan.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, compute.pipeline) };
            binder.set_layout(BindPoint::Compute, &layout).unwrap();
            stage(&mut binder);
            for task in 0..8 {
                for (binding, descriptor) in (0..).zip(add_descriptors(&data, task, 0, task)) {
                    binder.stage(BindPoint::Compute, 0, binding, 0, &[descriptor]).unwrap();
                }
                // SAFETY: the buffer is live, the command buffer is being recorded, and nothing else is bound in it.
                unsafe { binder.commit(commands, BindPoint::Compute) }.unwrap();
                // SAFETY: everything that the pipeline needs is bound.
                unsafe { vulkan.cmd_dispatch(commands, 1, 1, 1) };
            }
            show_to_host(vulkan, commands);
            flushed = binder.flush(ticket);
        };
        fixture.context.submit(record).unwrap();
        flushed.unwrap();
        clock.end_frame(ticket).unwrap();
        for task in 0..8 {
            data.expect(task, (task * 3) % 8, task + 5);
        }
    }
    // SAFETY: all submissions were waited for.
    unsafe { binder.destroy() };
    drop(layout);
    drop(compute);
    destroy_layout(fixture.context, &set);
    data.destroy();
}

fn heap_info() -> HeapCreateInfo<'static> {
    HeapCreateInfo {
        slots: 8,
        types: &[DescriptorKind::StorageBuffer],
        arrays: HeapArrays::PerType,
        stages: vk::ShaderStageFlags::COMPUTE,
        ..Default::default()
    }
}

fn device_with(fixture: &Fixture<'_>, model: BindingModel) -> DescriptorDevice {
    let info = DescriptorDeviceCreateInfo { model, ..fixture.context.descriptor_info() };
    // SAFETY: the context created instance and device as its info states, and outlives the objects created from the
    // value.
    unsafe { DescriptorDevice::new(&info) }.unwrap()
}

#[test]
fn a_heap_on_one_set_is_bound_beside_what_is_staged() {
    on_each_device(|fixture| {
        let device = device_with(fixture, BindingModel::Sets);
        match SetStore::new(&device, &heap_info()) {
            Ok(store) => {
                let heap = DescriptorHeap::new(store);
                let set = heap.store().set();
                let layout = heap.store().set_layout();
                beside_heap(fixture, &device, &heap, &layout, |binder| {
                    binder.stage_set(BindPoint::Compute, 1, set).unwrap();
                });
                // SAFETY: all submissions were waited for.
                unsafe { heap.into_store().destroy() };
            }
            Err(CreateHeapError::Unsupported { missing }) => {
                println!("{}: skipped, no {missing:?}", fixture.context.device_name());
            }
            Err(error) => panic!("{error}"),
        }
    });
}

#[test]
fn a_heap_in_a_descriptor_buffer_is_bound_beside_what_is_staged() {
    on_each_device(|fixture| {
        if !fixture.descriptor_features().contains(DescriptorFeatures::DESCRIPTOR_BUFFER) {
            println!("{}: skipped, no descriptor buffers", fixture.context.device_name());
            return;
        }
        let device = device_with(fixture, BindingModel::Buffer);
        let heap = DescriptorHeap::new(BufferStore::new(&device, fixture.allocator, &heap_info()).unwrap());
        let buffer = heap.store().binding_info();
        let layout = heap.store().set_layout();
        beside_heap(fixture, &device, &heap, &layout, |binder| {
            binder.stage_buffer(BindPoint::Compute, 1, &buffer, 0).unwrap();
        });
        // SAFETY: all submissions were waited for.
        unsafe { heap.into_store().destroy() };
    });
}
