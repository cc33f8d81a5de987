//! Each driver call fails in turn. A failure leaves nothing behind, and the same works immediately afterwards.

use std::error::Error;
use std::sync::Arc;

use ash::vk;
use sublet::{Allocator, sim};
use sublet_descriptors::{BindingModel, DescriptorDevice};
use sublet_frame::{Frames, ImageData};

use crate::fixture::{PROFILES, frames, gpu, image_info, parts_with};

/// Two frames with uploads, copies, images, read-backs and two queues, the second of which is `other`; and a layout.
pub(crate) fn program(frames: &mut Frames, other: usize) -> Result<(), Box<dyn Error>> {
    let binding = vk::DescriptorSetLayoutBinding::default()
        .descriptor_type(vk::DescriptorType::SAMPLER)
        .descriptor_count(1);
    let set = vk::DescriptorSetLayoutCreateInfo::default().bindings(std::slice::from_ref(&binding));
    unsafe { frames.create_pipeline_layout(&[set; 2], &[]) }?;
    let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    let info = vk::BufferCreateInfo::default().size(1024).usage(usage);
    let buffer = unsafe { frames.create_buffer(&info, &crate::fixture::auto()) }?;
    let info = image_info(vk::Format::R8G8B8A8_UNORM, (8, 8), 2, 1);
    let image = unsafe { frames.create_image(&info, &crate::fixture::auto()) }?;
    for frame in 1..3_u8 {
        frames.begin()?;
        let mut first = frames.list(frames.queue(0))?;
        first.upload(&buffer, 0, &[frame; 1024])?;
        let mut second = frames.list(frames.queue(0))?;
        second.upload_image(
            &image,
            &[ImageData::new(0, 0, &[frame; 256]), ImageData::new(1, 0, &[frame; 64])],
        )?;
        let copy = vk::BufferCopy { src_offset: 0, dst_offset: 512, size: 512 };
        second.copy_buffer(&buffer, &buffer, &[copy])?;
        frames.submit(frames.queue(0), [first, second])?;
        let mut third = frames.list(frames.queue(other))?;
        let bytes = third.read_buffer(&buffer, 0..1024)?;
        let texels = third.read_image(&image, 1, 0..1, vk::ImageAspectFlags::COLOR)?;
        let ticket = frames.submit(frames.queue(other), [third])?;
        frames.end();
        frames.wait(ticket)?;
        assert_eq!(bytes.bytes()?, [frame; 1024]);
        assert_eq!(texels.bytes()?, [frame; 64]);
    }
    frames.wait_idle()?;
    Ok(())
}

type FallibleProgram<'a> =
    &'a dyn Fn(&mut Frames, &Arc<Allocator>, &DescriptorDevice, &sim::Gpu) -> Result<(), Box<dyn Error>>;

/// Runs a program with one failing call, then without. Returns true if an error was returned.
fn run(profile: &str, fault: Option<(&str, u64)>, program: FallibleProgram<'_>) -> (bool, sim::Gpu) {
    let gpu = gpu(profile, 2);
    // The layout of the program is for sets.
    let (allocator, descriptors) = parts_with(&gpu, BindingModel::Sets);
    if let Some((call, n)) = fault {
        gpu.faults().fail_nth(call, n, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
    }
    let mut failed = false;
    let made = frames(&gpu, &allocator, &descriptors, 2);
    let mut made = made.or_else(|_| {
        failed = true;
        gpu.faults().clear();
        frames(&gpu, &allocator, &descriptors, 2)
    });
    let frames = made.as_mut().unwrap();
    if let Err(error) = program(frames, &allocator, &descriptors, &gpu) {
        failed = true;
        assert!(!error.to_string().is_empty());
        gpu.faults().clear();
        // Nothing is left behind, and the program works.
        frames.wait_idle().unwrap();
        assert_eq!(frames.statistics().in_flight, 0, "{fault:?}");
        program(frames, &allocator, &descriptors, &gpu)
            .unwrap_or_else(|error| panic!("{profile}, {fault:?}: {error}"));
    }
    gpu.faults().clear();
    drop(made);
    drop(descriptors);
    let leaks = Arc::try_unwrap(allocator).unwrap().destroy();
    assert!(leaks.is_empty(), "{profile}, {fault:?}: {leaks:?}");
    let live = gpu.live();
    assert_eq!(
        (live.semaphores, live.fences, live.command_pools, live.buffers, live.descriptor_set_layouts),
        (0, 0, 0, 0, 0),
        "{profile}, {fault:?}"
    );
    let messages = gpu.take_messages();
    assert!(messages.is_empty(), "{profile}, {fault:?}: {messages:#?}");
    (failed, gpu)
}

pub(crate) fn may_fail(call: &str) -> bool {
    let starts = [
        "vkCreate",
        "vkAllocate",
        "vkBind",
        "vkBegin",
        "vkEnd",
        "vkQueueSubmit",
        "vkMap",
        "vkReset",
        "vkWait",
        "vkFlush",
        "vkInvalidate",
    ];
    starts.iter().any(|start| call.starts_with(start))
        && !["vkCreateInstance", "vkCreateDevice"].contains(&call)
        || ["vkGetSemaphoreCounterValue", "vkGetFenceStatus"].contains(&call)
}

/// Runs a program on each device, and each of its calls fails in turn. Returns how many of them made the program fail.
pub(crate) fn fail_each_call<'a>(
    profiles: impl IntoIterator<Item = &'a str>,
    program: FallibleProgram<'_>,
) -> usize {
    let mut tried = 0;
    for profile in profiles {
        let (failed, gpu) = run(profile, None, program);
        assert!(!failed, "{profile}");
        let counts = gpu.call_counts();
        drop(gpu);
        for (call, count) in counts.into_iter().filter(|(call, _)| may_fail(call)) {
            for n in 0..count {
                let (failed, _) = run(profile, Some((call, n)), program);
                // Calls in destructors and calls with a fallback do not fail the program.
                tried += usize::from(failed);
            }
        }
    }
    tried
}

#[test]
fn every_call_fails_in_turn() {
    let tried = fail_each_call(PROFILES, &|frames, _, _, _| program(frames, 1));
    assert!(tried > 100, "only {tried} calls failed");
}
