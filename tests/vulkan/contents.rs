//! The host writes bytes, the device moves them, and the host reads them.

use ash::vk;
use sublet::{Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, MapError, MemoryUsage};
use sublet_examples::Random;

use crate::{Buffer, Fixture, on_each_device};

const BOTH: vk::BufferUsageFlags = vk::BufferUsageFlags::from_raw(
    vk::BufferUsageFlags::TRANSFER_SRC.as_raw() | vk::BufferUsageFlags::TRANSFER_DST.as_raw(),
);

fn auto(flags: Flags) -> AllocationCreateInfo<'static> {
    AllocationCreateInfo { flags, ..AllocationCreateInfo::new(MemoryUsage::Auto) }
}

fn read(fixture: &Fixture<'_>, allocation: &Allocation, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    fixture.allocator.copy_from_allocation(allocation, 0, &mut bytes).unwrap();
    bytes
}

#[test]
fn up_across_and_down_in_many_sizes() {
    on_each_device(|fixture| {
        let mut random = Random::new(1);
        for size in [1, 3, 4, 255, 256, 4_097, 100_000, 1 << 20] {
            let data = random.bytes(size);
            let size = size as u64;
            let mut up = fixture.buffer(size, BOTH, &auto(Flags::HOST_ACCESS_SEQUENTIAL_WRITE));
            let across = fixture.buffer(size, BOTH, &auto(Flags::empty()));
            let down = fixture.buffer(size, BOTH, &auto(Flags::HOST_ACCESS_RANDOM | Flags::MAPPED));
            fixture.allocator.copy_to_allocation(&data, &mut up.1, 0).unwrap();
            fixture.copy(&up, &across, size);
            fixture.copy(&across, &down, size);
            assert!(read(fixture, &down.1, data.len()) == data, "{size} bytes");
            [up, across, down].into_iter().for_each(|buffer| fixture.destroy(buffer));
        }
    });
}

/// Writes through the mapped pointer with explicit flushes, in each host-visible type, coherent or not.
#[test]
fn flush_and_invalidate_in_every_host_visible_type() {
    on_each_device(|fixture| {
        let mut random = Random::new(2);
        for memory_type in fixture.host_visible_types() {
            let info = AllocationCreateInfo {
                flags: Flags::MAPPED,
                memory_type_bits: 1 << memory_type,
                ..AllocationCreateInfo::new(MemoryUsage::Unknown)
            };
            let buffer_info = vk::BufferCreateInfo::default().size(1_000).usage(BOTH);
            // SAFETY: the create-info is valid.
            let Ok(mut up) = (unsafe { fixture.allocator.create_buffer(&buffer_info, &info) }) else {
                // Some types support only images.
                continue;
            };
            assert_eq!(up.1.memory_type_index(), memory_type);
            let down = fixture.buffer(1_000, BOTH, &info);
            let data = random.bytes(1_000);
            let mut mapping = fixture.allocator.map(&mut up.1).unwrap();
            for (piece, offset) in data.chunks(77).zip((0..).step_by(77)) {
                mapping.write(offset, piece).unwrap();
                mapping.flush(offset, piece.len() as u64).unwrap();
            }
            drop(mapping);
            fixture.copy(&up, &down, 1_000);
            fixture.allocator.invalidate_many(&[(&down.1, 0, 500), (&down.1, 500, vk::WHOLE_SIZE)]).unwrap();
            let mut back = vec![0; 1_000];
            let pointer = down.1.mapped_pointer().unwrap().cast::<u8>();
            // SAFETY: the allocation is mapped and has 1,000 bytes, and the device is idle.
            unsafe { std::ptr::copy_nonoverlapping(pointer.as_ptr(), back.as_mut_ptr(), back.len()) };
            assert!(back == data, "memory type {memory_type}");

            fixture.allocator.flush_many(&[(&up.1, 0, 0), (&up.1, 999, 1), (&down.1, 3, 5)]).unwrap();
            let size = up.1.size();
            let outside = fixture.allocator.flush(&up.1, size, 1);
            assert_eq!(outside, Err(MapError::OutOfRange { offset: size, size: 1, allocation_size: size }));
            fixture.destroy(up);
            fixture.destroy(down);
        }
    });
}

/// No binding overlaps: every buffer still has its own pattern after all of them were filled.
#[test]
fn no_two_resources_share_a_byte() {
    on_each_device(|fixture| {
        let mut random = Random::new(3);
        let mut buffers: Vec<(Buffer, u32)> = Vec::new();
        for number in 0..300 {
            let size = random.within(1..5_000) * 4;
            let flags = if number % 3 == 0 { Flags::HOST_ACCESS_SEQUENTIAL_WRITE } else { Flags::empty() };
            let info = AllocationCreateInfo { user_data: size, ..auto(flags) };
            buffers.push((fixture.buffer(size, BOTH, &info), number));
            if number % 4 == 3 {
                let (buffer, _) = buffers.swap_remove(random.index(buffers.len()));
                fixture.destroy(buffer);
            }
        }
        let fill = |device: &ash::Device, commands| {
            for ((buffer, _), number) in &buffers {
                // SAFETY: the buffer has the transfer usage, and its size is a multiple of 4.
                unsafe {
                    device.cmd_fill_buffer(
                        commands,
                        *buffer,
                        0,
                        vk::WHOLE_SIZE,
                        0x0101_0101 * (number & 0xff),
                    )
                };
            }
        };
        fixture.context.submit(fill).unwrap();
        let down = fixture.buffer(20_000, BOTH, &auto(Flags::HOST_ACCESS_RANDOM));
        let mut ranges = Vec::new();
        for (buffer, number) in buffers {
            let size = buffer.1.user_data();
            fixture.copy(&buffer, &down, size);
            let bytes = read(fixture, &down.1, size as usize);
            assert!(bytes.iter().all(|&byte| u32::from(byte) == number & 0xff), "buffer {number}");
            ranges.push((buffer.1.memory(), buffer.1.offset(), buffer.1.offset() + buffer.1.size()));
            fixture.destroy(buffer);
        }
        ranges.sort_unstable();
        for pair in ranges.windows(2) {
            assert!(pair[0].0 != pair[1].0 || pair[0].2 <= pair[1].1, "{pair:?}");
        }
        fixture.destroy(down);
    });
}

#[test]
fn an_image_keeps_its_texels_while_its_neighbours_are_written() {
    on_each_device(|fixture| {
        let side = 64;
        let size = u64::from(side * side * 4);
        let data = Random::new(4).bytes(size as usize);
        let mut up = fixture.buffer(size, BOTH, &auto(Flags::HOST_ACCESS_SEQUENTIAL_WRITE));
        let down = fixture.buffer(size, BOTH, &auto(Flags::HOST_ACCESS_RANDOM));
        fixture.allocator.copy_to_allocation(&data, &mut up.1, 0).unwrap();
        let before = fixture.buffer(1_000, BOTH, &auto(Flags::empty()));
        let info = crate::resources::plain(side)
            .usage(vk::ImageUsageFlags::TRANSFER_SRC | vk::ImageUsageFlags::TRANSFER_DST);
        let image = fixture.image(&info, &auto(Flags::empty()));
        let after = fixture.buffer(1_000, BOTH, &auto(Flags::empty()));
        let region = [vk::BufferImageCopy::default()
            .image_subresource(
                vk::ImageSubresourceLayers::default().aspect_mask(vk::ImageAspectFlags::COLOR).layer_count(1),
            )
            .image_extent(info.extent)];
        let (written, read_from) =
            (vk::ImageLayout::TRANSFER_DST_OPTIMAL, vk::ImageLayout::TRANSFER_SRC_OPTIMAL);
        let record = |device: &ash::Device, commands| {
            change_layout(device, commands, image.0, (vk::ImageLayout::UNDEFINED, written));
            // SAFETY: the image is in this layout, and the buffer holds all of its texels.
            unsafe { device.cmd_copy_buffer_to_image(commands, up.0, image.0, written, &region) };
            for neighbour in [&before, &after] {
                // SAFETY: the buffer has the transfer usage.
                unsafe { device.cmd_fill_buffer(commands, neighbour.0, 0, vk::WHOLE_SIZE, !0) };
            }
            change_layout(device, commands, image.0, (written, read_from));
            // SAFETY: as above.
            unsafe { device.cmd_copy_image_to_buffer(commands, image.0, read_from, down.0, &region) };
        };
        fixture.context.submit(record).unwrap();
        assert!(read(fixture, &down.1, data.len()) == data);
        fixture.destroy_image(image);
        [up, down, before, after].into_iter().for_each(|buffer| fixture.destroy(buffer));
    });
}

fn change_layout(
    device: &ash::Device,
    commands: vk::CommandBuffer,
    image: vk::Image,
    (old, new): (vk::ImageLayout, vk::ImageLayout),
) {
    let barrier = vk::ImageMemoryBarrier::default()
        .src_access_mask(vk::AccessFlags::TRANSFER_WRITE)
        .dst_access_mask(vk::AccessFlags::TRANSFER_WRITE | vk::AccessFlags::TRANSFER_READ)
        .old_layout(old)
        .new_layout(new)
        .src_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
        .dst_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
        .image(image)
        .subresource_range(
            vk::ImageSubresourceRange::default()
                .aspect_mask(vk::ImageAspectFlags::COLOR)
                .level_count(1)
                .layer_count(1),
        );
    let stage = vk::PipelineStageFlags::TRANSFER;
    let none = vk::DependencyFlags::empty();
    // SAFETY: the command buffer is being recorded, and the image is in the old layout.
    unsafe { device.cmd_pipeline_barrier(commands, stage, stage, none, &[], &[], &[barrier]) };
}

#[test]
fn two_allocations_of_one_block_are_mapped_at_once() {
    on_each_device(|fixture| {
        let host = auto(Flags::HOST_ACCESS_RANDOM);
        let mut first = fixture.buffer(100, BOTH, &host);
        let mut second = fixture.buffer(100, BOTH, &host);
        let mut one = fixture.allocator.map(&mut first.1).unwrap();
        let mut two = fixture.allocator.map(&mut second.1).unwrap();
        one.write(0, b"one").unwrap();
        two.write(97, b"two").unwrap();
        drop(one);
        let mut back = [0; 3];
        two.read(97, &mut back).unwrap();
        assert_eq!(&back, b"two");
        let _pointer = two.into_raw();
        // SAFETY: it pairs with `into_raw`, and the pointer is not used.
        unsafe { fixture.allocator.unmap_memory(&second.1) }.unwrap();
        fixture.destroy(first);
        fixture.destroy(second);
    });
}
