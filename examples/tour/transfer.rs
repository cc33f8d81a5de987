//! Data transfer: from the host to the device, through a buffer and an image, and back.

use ash::vk;
use sublet::{AllocationCreateFlags as Flags, AllocationCreateInfo, MemoryUsage};

use crate::kept::{Kept, texture};
use sublet_examples::{
    COPIED_FROM, COPIED_TO, OVERWRITTEN, Random, Result, Table, bytes, change_use, checksum, make_visible,
    note,
};

const SIDE: u32 = 1024;
const SIZE: usize = 4 << 20;

pub(crate) fn run(kept: &mut Kept<'_>) -> Result<()> {
    note(
        "Random texels go host -> staging -> buffer -> image -> read-back -> host, three copies on the device.",
    );
    let size = u64::try_from(SIZE)?;
    let texels = Random::new(7).bytes(SIZE);
    let auto = |flags, name| AllocationCreateInfo {
        flags,
        name: Some(name),
        ..AllocationCreateInfo::new(MemoryUsage::Auto)
    };
    let source = vk::BufferUsageFlags::TRANSFER_SRC;
    let target = vk::BufferUsageFlags::TRANSFER_DST;
    let (staging, mut staged) =
        kept.buffer(size, source, &auto(Flags::HOST_ACCESS_SEQUENTIAL_WRITE, "staging"))?;
    let on_device = kept.buffer(size, source | target, &auto(Flags::empty(), "on the device"))?;
    let back = kept.buffer(size, target, &auto(Flags::HOST_ACCESS_RANDOM, "read-back"))?;
    // SAFETY: the create-info is valid.
    let image =
        unsafe { kept.allocator.create_image(&texture(SIDE, SIDE), &auto(Flags::empty(), "texels")) }?;

    // Maps, writes, and flushes if the memory is not host-coherent.
    kept.allocator.copy_to_allocation(&texels, &mut staged, 0)?;
    kept.context.submit(|device, commands| {
        let whole = [vk::BufferCopy::default().size(size)];
        // SAFETY: both buffers have `size` bytes and the required usage.
        unsafe { device.cmd_copy_buffer(commands, staging, on_device.0, &whole) };
        make_visible(device, commands);
        through_image(device, commands, on_device.0, image.0, back.0);
    })?;
    // Maps, invalidates if the memory is not host-coherent, and reads.
    let mut read = vec![0; SIZE];
    kept.allocator.copy_from_allocation(&back.1, 0, &mut read)?;

    let mut table = Table::new(&["", ">bytes", ">FNV-1a"]);
    table.row([&"written", &bytes(size), &format!("{:016x}", checksum(&texels))]);
    table.row([&"read back", &bytes(size), &format!("{:016x}", checksum(&read))]);
    table.print();
    kept.destroy_buffer((staging, staged))?;
    kept.buffers.extend([on_device, back]);
    kept.images.push(image);
    if read != texels {
        return Err("what came back is not what was written".into());
    }
    note("  The same: every byte went where it should.");
    Ok(())
}

/// Records the copies from `from` to the image, and from the image to `to`.
fn through_image(
    device: &ash::Device,
    commands: vk::CommandBuffer,
    from: vk::Buffer,
    image: vk::Image,
    to: vk::Buffer,
) {
    let region = [vk::BufferImageCopy::default()
        .image_subresource(
            vk::ImageSubresourceLayers::default().aspect_mask(vk::ImageAspectFlags::COLOR).layer_count(1),
        )
        .image_extent(vk::Extent3D { width: SIDE, height: SIDE, depth: 1 })];
    change_use(device, commands, image, OVERWRITTEN, COPIED_TO);
    // SAFETY: the image is in the given layout, and the buffer is large enough for all its texels.
    unsafe { device.cmd_copy_buffer_to_image(commands, from, image, COPIED_TO.0, &region) };
    change_use(device, commands, image, COPIED_TO, COPIED_FROM);
    // SAFETY: as above.
    unsafe { device.cmd_copy_image_to_buffer(commands, image, COPIED_FROM.0, to, &region) };
}
