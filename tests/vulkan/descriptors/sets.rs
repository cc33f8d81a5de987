//! Sets for one frame, and persistent sets.

use ash::vk;
use sublet::retire::Clock;
use sublet_descriptors::{
    Descriptor, DescriptorFeatures, PersistentSets, PersistentSetsCreateInfo, SetLayout, TransientSets,
    TransientSetsCreateInfo,
};
use sublet_examples::{Compute, Context};

use super::{ADD, Data, add_descriptors, add_layout, destroy_layout, show_to_host, simulate_add, words};
use crate::{Fixture, on_each_device};

const TASKS: u32 = 40;

/// Writes a set with `vkUpdateDescriptorSets`, so that the test depends only on the origin of the set.
fn write(context: &Context, set: vk::DescriptorSet, descriptors: &[Descriptor]) {
    for (binding, descriptor) in (0..).zip(descriptors) {
        let (Descriptor::UniformBuffer(buffer) | Descriptor::StorageBuffer(buffer)) = descriptor else {
            unreachable!("the shader has no others")
        };
        let info =
            [vk::DescriptorBufferInfo { buffer: buffer.buffer, offset: buffer.offset, range: buffer.range }];
        let write = vk::WriteDescriptorSet::default()
            .dst_set(set)
            .dst_binding(binding)
            .descriptor_type(descriptor.kind().to_vk())
            .buffer_info(&info);
        // SAFETY: the set is not in use, and the buffer is live.
        unsafe { context.device().update_descriptor_sets(&[write], &[]) };
    }
}

/// Runs a dispatch for each set.
fn run(fixture: &Fixture<'_>, compute: &Compute<'_>, sets: &[vk::DescriptorSet]) {
    let point = vk::PipelineBindPoint::COMPUTE;
    let record = |device: &ash::Device, commands: vk::CommandBuffer| {
        // SAFETY: it is a compute pipeline.
        unsafe { device.cmd_bind_pipeline(commands, point, compute.pipeline) };
        for &set in sets {
            // SAFETY: the set has this layout.
            unsafe { device.cmd_bind_descriptor_sets(commands, point, compute.layout, 0, &[set], &[]) };
            // SAFETY: pipeline and set are bound.
            unsafe { device.cmd_dispatch(commands, 1, 1, 1) };
        }
        show_to_host(device, commands);
    };
    fixture.context.submit(record).unwrap();
}

fn prepare<'a>(fixture: &'a Fixture<'a>) -> (Data<'a>, SetLayout, Compute<'a>) {
    simulate_add(fixture.context);
    let mut data = Data::new(fixture, TASKS);
    for task in 0..TASKS {
        data.set_task(task, [task + 7, 0, 0, 0]);
    }
    let layout = add_layout(fixture.context, vk::DescriptorSetLayoutCreateFlags::empty());
    let no_flags = vk::PipelineCreateFlags::empty();
    let compute = Compute::new(fixture.context, &words(ADD), &[layout.handle()], no_flags).unwrap();
    (data, layout, compute)
}

#[test]
fn transient_sets_are_what_was_written_into_them_frame_after_frame() {
    on_each_device(|fixture| {
        let device = fixture.descriptor_device();
        if !device.features().contains(DescriptorFeatures::MAINTENANCE1) {
            println!("{}: skipped, Vulkan 1.0 without VK_KHR_maintenance1", fixture.context.device_name());
            return;
        }
        let (mut data, layout, compute) = prepare(fixture);
        let mut transient = TransientSets::new(&device, &TransientSetsCreateInfo::default()).unwrap();
        let clock = Clock::new();
        let timeline = clock.add_timeline().unwrap();
        for frame in 0..12 {
            let ticket = clock.begin_frame(timeline, frame % 3);
            transient.collect(&clock).unwrap();
            let mut sets = Vec::new();
            for task in 0..TASKS {
                // SAFETY: the layout is live, and the set is used in this frame only.
                let set = unsafe { transient.allocate(&layout) }.unwrap();
                let source = (task + frame) % TASKS;
                write(fixture.context, set, &add_descriptors(&data, task, source, task));
                sets.push(set);
            }
            transient.flush(ticket).unwrap();
            clock.end_frame(ticket).unwrap();
            run(fixture, &compute, &sets);
            for task in 0..TASKS {
                data.expect(task, (task + frame) % TASKS, task + 7);
            }
        }
        assert!(transient.statistics().resets > 5, "sets came again out of pools that were reset");
        // SAFETY: all submissions were waited for.
        unsafe { transient.destroy() };
        drop(compute);
        destroy_layout(fixture.context, &layout);
        data.destroy();
    });
}

#[test]
fn persistent_sets_stay_what_they_are_while_others_come_and_go() {
    on_each_device(|fixture| {
        let (mut data, layout, compute) = prepare(fixture);
        let device = fixture.descriptor_device();
        let allocator = PersistentSets::new(&PersistentSetsCreateInfo::new(&device));
        let clock = Clock::new();
        let timeline = clock.add_timeline().unwrap();
        let mut live = Vec::new();
        for round in 0..8 {
            // In the first round every task gets a set. Later, every third task gets another.
            for task in 0..TASKS {
                let at = usize::try_from(task).unwrap();
                if round != 0 && task % 3 != round % 3 {
                    continue;
                }
                // SAFETY: the layout is live.
                let set = unsafe { allocator.allocate(&layout) }.unwrap();
                write(
                    fixture.context,
                    set.handle(),
                    &add_descriptors(&data, task, (task + round) % TASKS, task),
                );
                if round == 0 {
                    live.push((set, task));
                } else {
                    let old = std::mem::replace(&mut live[at], (set, (task + round) % TASKS));
                    let ticket = clock.open(timeline);
                    // SAFETY: no recording uses it any more.
                    unsafe { allocator.retire(ticket, old.0) }.unwrap();
                    clock.submit(ticket, u64::from(round)).unwrap();
                }
            }
            let sets: Vec<_> = live.iter().map(|(set, _)| set.handle()).collect();
            run(fixture, &compute, &sets);
            for (task, (_, source)) in (0..).zip(&live) {
                data.expect(task, *source, task + 7);
            }
            clock.completed(timeline, u64::from(round));
            allocator.collect(&clock).unwrap();
            allocator.validate();
        }
        for (set, _) in live {
            // SAFETY: all submissions were waited for.
            unsafe { allocator.free(set) }.unwrap();
        }
        // SAFETY: the device is idle.
        assert!(unsafe { allocator.destroy() }.is_empty());
        drop(compute);
        destroy_layout(fixture.context, &layout);
        data.destroy();
    });
}
