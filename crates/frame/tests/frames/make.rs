//! Resources for the tests.

use ash::vk;
use sublet::retire::Ticket;
use sublet::{AllocationCreateInfo, MemoryUsage};
use sublet_frame::{Buffer, CommandList, Frames, Image};

pub(crate) fn auto() -> AllocationCreateInfo<'static> {
    AllocationCreateInfo::new(MemoryUsage::Auto)
}

pub(crate) fn buffer(frames: &Frames, size: u64) -> Buffer {
    let usage = vk::BufferUsageFlags::TRANSFER_SRC
        | vk::BufferUsageFlags::TRANSFER_DST
        | vk::BufferUsageFlags::STORAGE_BUFFER
        | vk::BufferUsageFlags::UNIFORM_BUFFER
        | vk::BufferUsageFlags::VERTEX_BUFFER
        | vk::BufferUsageFlags::INDIRECT_BUFFER;
    let info = vk::BufferCreateInfo::default().size(size).usage(usage);
    // SAFETY: the create-info is valid.
    unsafe { frames.create_buffer(&info, &auto()) }.unwrap()
}

/// Returns the info of a two-dimensional image for copies.
pub(crate) fn image_info(
    format: vk::Format,
    (width, height): (u32, u32),
    mips: u32,
    layers: u32,
) -> vk::ImageCreateInfo<'static> {
    vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(format)
        .extent(vk::Extent3D { width, height, depth: 1 })
        .mip_levels(mips)
        .array_layers(layers)
        .samples(vk::SampleCountFlags::TYPE_1)
        .usage(vk::ImageUsageFlags::TRANSFER_SRC | vk::ImageUsageFlags::TRANSFER_DST)
}

pub(crate) fn image(frames: &Frames, info: &vk::ImageCreateInfo<'_>) -> Image {
    // SAFETY: the create-info is valid.
    unsafe { frames.create_image(info, &auto()) }.unwrap()
}

/// Begins a frame, and opens a list on the first queue.
pub(crate) fn begin_list(frames: &mut Frames) -> CommandList {
    frames.begin().unwrap();
    frames.list(frames.queue(0)).unwrap()
}

/// Submits a list, and ends the frame.
pub(crate) fn end_with(frames: &mut Frames, list: CommandList) -> Ticket {
    let ticket = frames.submit(list.queue(), [list]).unwrap();
    frames.end();
    ticket
}
