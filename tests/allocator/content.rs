//! Content tests: the host writes bytes, the device copies them through memory of every kind and back, the host
//! compares.

use ash::vk;
use sublet::{Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, MemoryUsage};

use crate::common::*;

type Buffer = (vk::Buffer, Allocation);
type Image = (vk::Image, Allocation);

pub(crate) const COPIED: vk::BufferUsageFlags = vk::BufferUsageFlags::from_raw(
    vk::BufferUsageFlags::TRANSFER_SRC.as_raw() | vk::BufferUsageFlags::TRANSFER_DST.as_raw(),
);

/// Records commands, submits them and waits until the device is idle.
pub(crate) fn submit(fixture: &Fixture, record: impl FnOnce(&ash::Device, vk::CommandBuffer)) {
    let device = fixture.gpu.device();
    let pool_info = vk::CommandPoolCreateInfo::default().queue_family_index(fixture.gpu.queue_family_index());
    // SAFETY: the create-info is valid.
    let pool = unsafe { device.create_command_pool(&pool_info, None) }.unwrap();
    let info = vk::CommandBufferAllocateInfo::default()
        .command_pool(pool)
        .level(vk::CommandBufferLevel::PRIMARY)
        .command_buffer_count(1);
    // SAFETY: the pool is live.
    let commands = unsafe { device.allocate_command_buffers(&info) }.unwrap()[0];
    // SAFETY: the command buffer is new.
    unsafe { device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()) }.unwrap();
    record(device, commands);
    // SAFETY: it is being recorded.
    unsafe { device.end_command_buffer(commands) }.unwrap();
    let list = [commands];
    let submits = [vk::SubmitInfo::default().command_buffers(&list)];
    // SAFETY: the command buffer is recorded, and the objects that it uses are live.
    unsafe { device.queue_submit(fixture.gpu.queue(), &submits, vk::Fence::null()) }.unwrap();
    // SAFETY: the queue is live.
    unsafe { device.queue_wait_idle(fixture.gpu.queue()) }.unwrap();
    // SAFETY: the device is idle.
    unsafe { device.destroy_command_pool(pool, None) };
}

fn copy(fixture: &Fixture, from: vk::Buffer, to: vk::Buffer, size: u64) {
    submit(fixture, |device, commands| {
        let region = vk::BufferCopy { src_offset: 0, dst_offset: 0, size };
        // SAFETY: both buffers are bound and have at least `size` bytes.
        unsafe { device.cmd_copy_buffer(commands, from, to, &[region]) };
    });
}

pub(crate) fn bytes(seed: u64, size: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..size).map(|_| random.next() as u8).collect()
}

/// Creates a buffer for host writes and one for host reads.
fn windows(fixture: &Fixture, size: u64) -> (Buffer, Buffer) {
    let write = with_flags(MemoryUsage::Auto, Flags::HOST_ACCESS_SEQUENTIAL_WRITE | Flags::MAPPED);
    let read = with_flags(MemoryUsage::Auto, Flags::HOST_ACCESS_RANDOM);
    let staging = fixture.buffer(size, vk::BufferUsageFlags::TRANSFER_SRC, &write).unwrap();
    (staging, fixture.buffer(size, vk::BufferUsageFlags::TRANSFER_DST, &read).unwrap())
}

#[test]
fn buffers_keep_their_bytes_through_churn() {
    on_every_gpu(|fixture| {
        let most = 1 << 14;
        let (mut staging, readback) = windows(&fixture, most);
        let mut random = Random::new(21);
        let mut held: Vec<(Buffer, u64, u64)> = Vec::new();
        for round in 0..120_u64 {
            if random.below(3) > 0 || held.is_empty() {
                let usage = random.pick(&[
                    MemoryUsage::Auto,
                    MemoryUsage::AutoPreferHost,
                    MemoryUsage::GpuOnly,
                    MemoryUsage::CpuToGpu,
                ]);
                let flags = random.pick(&[
                    Flags::empty(),
                    Flags::empty(),
                    Flags::DEDICATED_MEMORY,
                    Flags::STRATEGY_MIN_OFFSET,
                ]);
                let size = random.size(14);
                let usages = COPIED | vk::BufferUsageFlags::STORAGE_BUFFER;
                let buffer = fixture.buffer(size, usages, &with_flags(usage, flags)).unwrap();
                fixture.allocator.copy_to_allocation(&bytes(round, size), &mut staging.1, 0).unwrap();
                copy(&fixture, staging.0, buffer.0, size);
                held.push((buffer, round, size));
            } else {
                let at = random.below(held.len() as u64) as usize;
                fixture.destroy_buffer(held.swap_remove(at).0);
            }
        }
        assert!(held.len() > 20);
        for (buffer, seed, size) in held {
            copy(&fixture, buffer.0, readback.0, size);
            let mut seen = vec![0; size as usize];
            fixture.allocator.copy_from_allocation(&readback.1, 0, &mut seen).unwrap();
            assert!(seen == bytes(seed, size), "{:?}", buffer.1);
            fixture.destroy_buffer(buffer);
        }
        fixture.destroy_buffer(staging);
        fixture.destroy_buffer(readback);
    });
}

pub(crate) fn barrier(
    device: &ash::Device,
    commands: vk::CommandBuffer,
    image: vk::Image,
    from: vk::ImageLayout,
    to: vk::ImageLayout,
) {
    let range = vk::ImageSubresourceRange {
        aspect_mask: vk::ImageAspectFlags::COLOR,
        level_count: 1,
        layer_count: 1,
        ..Default::default()
    };
    let barrier = vk::ImageMemoryBarrier::default()
        .old_layout(from)
        .new_layout(to)
        .src_access_mask(vk::AccessFlags::MEMORY_WRITE)
        .dst_access_mask(vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE)
        .src_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
        .dst_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
        .image(image)
        .subresource_range(range);
    let all = vk::PipelineStageFlags::ALL_COMMANDS;
    let none = vk::DependencyFlags::empty();
    // SAFETY: the command buffer is being recorded and the image is live.
    unsafe { device.cmd_pipeline_barrier(commands, all, all, none, &[], &[], &[barrier]) };
}

pub(crate) fn texels(side: u32) -> vk::BufferImageCopy {
    vk::BufferImageCopy {
        image_subresource: vk::ImageSubresourceLayers {
            aspect_mask: vk::ImageAspectFlags::COLOR,
            layer_count: 1,
            ..Default::default()
        },
        image_extent: vk::Extent3D { width: side, height: side, depth: 1 },
        ..Default::default()
    }
}

#[test]
fn images_between_buffers_keep_their_texels() {
    on_every_gpu(|fixture| {
        let side = 16;
        let size = u64::from(side * side * 4);
        let (mut staging, readback) = windows(&fixture, size);
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        let usage = vk::ImageUsageFlags::TRANSFER_SRC | vk::ImageUsageFlags::TRANSFER_DST;
        let mut held: Vec<(Image, Buffer, u64)> = Vec::new();
        for seed in 0..12 {
            let image = fixture.image(&square(side, usage | vk::ImageUsageFlags::SAMPLED), &auto).unwrap();
            let buffer = fixture.buffer(size, COPIED | vk::BufferUsageFlags::VERTEX_BUFFER, &auto).unwrap();
            fixture.allocator.copy_to_allocation(&bytes(seed, size), &mut staging.1, 0).unwrap();
            submit(&fixture, |device, commands| {
                let (fresh, target) = (vk::ImageLayout::UNDEFINED, vk::ImageLayout::TRANSFER_DST_OPTIMAL);
                barrier(device, commands, image.0, fresh, target);
                // SAFETY: the buffer has as many bytes as the image, and the named layout is the current one.
                unsafe {
                    device.cmd_copy_buffer_to_image(commands, staging.0, image.0, target, &[texels(side)])
                };
                barrier(device, commands, image.0, target, vk::ImageLayout::TRANSFER_SRC_OPTIMAL);
                // SAFETY: the buffer is bound and has at least `size` bytes.
                unsafe { device.cmd_fill_buffer(commands, buffer.0, 0, size, seed as u32) };
            });
            held.push((image, buffer, seed));
            if seed % 3 == 2 {
                let (image, buffer, _) = held.swap_remove(0);
                fixture.destroy_image(image);
                fixture.destroy_buffer(buffer);
            }
        }
        for (image, buffer, seed) in held {
            submit(&fixture, |device, commands| {
                let source = vk::ImageLayout::TRANSFER_SRC_OPTIMAL;
                // SAFETY: the buffer has as many bytes as the image, and the named layout is the current one.
                unsafe {
                    device.cmd_copy_image_to_buffer(commands, image.0, source, readback.0, &[texels(side)])
                };
            });
            let mut seen = vec![0; size as usize];
            fixture.allocator.copy_from_allocation(&readback.1, 0, &mut seen).unwrap();
            assert!(seen == bytes(seed, size), "{:?}", image.1);
            copy(&fixture, buffer.0, readback.0, size);
            fixture.allocator.copy_from_allocation(&readback.1, 0, &mut seen).unwrap();
            assert!(seen.chunks(4).all(|word| word == (seed as u32).to_le_bytes()), "{:?}", buffer.1);
            fixture.destroy_image(image);
            fixture.destroy_buffer(buffer);
        }
        fixture.destroy_buffer(staging);
        fixture.destroy_buffer(readback);
    });
}
