//! What a binder binds: by sets, by pushing, and in descriptor buffers.

use ash::vk;
use sublet::descriptor::{
    BindPoint, Binder, BinderCreateInfo, BindingModel, DescriptorDevice, DescriptorDeviceCreateInfo,
    DescriptorFeatures, PipelineLayoutInfo,
};
use sublet::retire::Clock;

use super::{ADD, Data, add_descriptors, add_layout, destroy_layout, show_to_host, simulate_add};
use crate::support::{Compute, compile};
use crate::{Bench, on_each_device};

const TASKS: u32 = 30;

fn run(bench: &Bench<'_>, model: BindingModel, flags: vk::DescriptorSetLayoutCreateFlags) {
    simulate_add(bench.context);
    let mut data = Data::new(bench, TASKS);
    for task in 0..TASKS {
        data.set_task(task, [task + 5, 0, 0, 0]);
    }
    let info = DescriptorDeviceCreateInfo { model, ..bench.context.descriptor_info() };
    // SAFETY: the context has made instance and device with what its info says, and outlives what is made from it.
    let device = unsafe { DescriptorDevice::new(&info) }.unwrap();
    let set = add_layout(bench.context, flags);
    let pipeline = match model {
        BindingModel::Buffer => vk::PipelineCreateFlags::DESCRIPTOR_BUFFER_EXT,
        _ => vk::PipelineCreateFlags::empty(),
    };
    let compute =
        Compute::from_spirv(bench.context, &compile(ADD).unwrap(), &[set.handle()], pipeline).unwrap();
    // SAFETY: the layout was made from this one set layout, and both outlive the value.
    let layout =
        unsafe { PipelineLayoutInfo::new(&device, compute.layout, std::slice::from_ref(&set), &[]) }.unwrap();
    // SAFETY: the allocator is of the device; each commit is used by the recording whose ticket is flushed next.
    let mut binder = unsafe { Binder::new(&device, bench.allocator, &BinderCreateInfo::default()) }.unwrap();
    let clock = Clock::new();
    let lane = clock.add_lane().unwrap();
    for frame in 0..8 {
        let ticket = clock.begin_frame(lane, frame % 2);
        binder.collect(&clock).unwrap();
        let mut flushed = Ok(());
        let record = |vulkan: &ash::Device, commands: vk::CommandBuffer| {
            let point = vk::PipelineBindPoint::COMPUTE;
            // SAFETY: the pipeline is one for compute.
            unsafe { vulkan.cmd_bind_pipeline(commands, point, compute.pipeline) };
            binder.set_layout(BindPoint::Compute, &layout).unwrap();
            for task in 0..TASKS {
                let wanted = add_descriptors(&data, task, (task * 7 + frame) % TASKS, task);
                for (binding, descriptor) in (0..).zip(wanted) {
                    binder.stage(BindPoint::Compute, 0, binding, 0, &[descriptor]).unwrap();
                }
                // SAFETY: the buffer is live, the command buffer is being recorded, and nobody else binds anything in it.
                unsafe { binder.commit(commands, BindPoint::Compute) }.unwrap();
                // SAFETY: all that the pipeline needs is bound.
                unsafe { vulkan.cmd_dispatch(commands, 1, 1, 1) };
            }
            show_to_host(vulkan, commands);
            flushed = binder.flush(ticket);
        };
        bench.context.submit(record).unwrap();
        flushed.unwrap();
        clock.end_frame(ticket);
        for task in 0..TASKS {
            data.expect(task, (task * 7 + frame) % TASKS, task + 5);
        }
        binder.validate();
    }
    // SAFETY: every submission was waited for.
    unsafe { binder.destroy() };
    drop(layout);
    drop(compute);
    destroy_layout(bench.context, &set);
    data.destroy();
}

#[test]
fn what_is_staged_is_bound_as_sets() {
    on_each_device(|bench| {
        if bench.descriptor_device().features().contains(DescriptorFeatures::MAINTENANCE1) {
            run(bench, BindingModel::Sets, vk::DescriptorSetLayoutCreateFlags::empty());
        } else {
            println!("{}: skipped, Vulkan 1.0 without VK_KHR_maintenance1", bench.context.device_name());
        }
    });
}

#[test]
fn what_is_staged_is_pushed() {
    on_each_device(|bench| {
        if bench.descriptor_features().contains(DescriptorFeatures::PUSH_DESCRIPTOR) {
            run(bench, BindingModel::Sets, vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR);
        } else {
            println!("{}: skipped, no push descriptors", bench.context.device_name());
        }
    });
}

#[test]
fn what_is_staged_is_bound_in_descriptor_buffers() {
    on_each_device(|bench| {
        if bench.descriptor_features().contains(DescriptorFeatures::DESCRIPTOR_BUFFER) {
            run(bench, BindingModel::Buffer, vk::DescriptorSetLayoutCreateFlags::DESCRIPTOR_BUFFER_EXT);
        } else {
            println!("{}: skipped, no descriptor buffers", bench.context.device_name());
        }
    });
}

#[test]
fn what_is_staged_is_pushed_beside_descriptor_buffers() {
    on_each_device(|bench| {
        let wanted =
            DescriptorFeatures::DESCRIPTOR_BUFFER_PUSH_DESCRIPTORS | DescriptorFeatures::PUSH_DESCRIPTOR;
        if bench.descriptor_features().contains(wanted | DescriptorFeatures::DESCRIPTOR_BUFFER) {
            let flags = vk::DescriptorSetLayoutCreateFlags::DESCRIPTOR_BUFFER_EXT
                | vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR;
            run(bench, BindingModel::Buffer, flags);
        } else {
            println!("{}: skipped, no push descriptors in descriptor buffers", bench.context.device_name());
        }
    });
}
