//! The device's tasks and their expected results.

use ash::vk;
use sublet::{AllocationCreateInfo, Allocator, MemoryUsage, sim};
use sublet_descriptors::{BindlessHeap, BufferDescriptor, Descriptor, DescriptorRange, SetLayout};
use sublet_frame::track::Use;
use sublet_frame::{Buffer, CommandList, Frames, ReadBack};

use sublet_examples::{Context, Result};

pub(crate) type Heap<'a> = BindlessHeap<&'a Allocator>;

/// Bytes of an array: 64 numbers, as in the shader. A valid offset alignment on every device.
pub(crate) const BYTES: u64 = 256;

/// The parameters of the shader.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Task {
    pub(crate) first: u32,
    pub(crate) factor: u32,
    pub(crate) result: u32,
    pub(crate) unused: u32,
}

/// Returns numbers that are unique to this frame and place.
fn numbers(frame: u32, place: u32) -> impl Iterator<Item = u32> {
    (0..64).map(move |at| frame.wrapping_mul(2_654_435_761).wrapping_add(place * 1_000 + at))
}

fn bytes(numbers: impl Iterator<Item = u32>) -> Vec<u8> {
    numbers.flat_map(u32::to_le_bytes).collect()
}

fn sums(frame: u32, places: [u32; 2], factor: u32) -> impl Iterator<Item = u32> {
    let [left, right] = places.map(|place| numbers(frame, place));
    left.zip(right).map(move |(left, right)| left.wrapping_mul(factor).wrapping_add(right))
}

/// Returns the expected results of a frame's two tasks.
pub(crate) fn expected(frame: u32, material: u32) -> Vec<u8> {
    bytes(sums(frame, [1, 2], frame).chain(sums(material, [3, 4], 3)))
}

/// Checks all numbers, and returns their count.
pub(crate) fn compare((expected, read): (Vec<u8>, ReadBack)) -> Result<usize> {
    if read.bytes()? == expected { Ok(expected.len() / 4) } else { Err("a sum is wrong".into()) }
}

pub(crate) fn buffer(frames: &Frames, size: u64) -> Result<Buffer> {
    let copied = vk::BufferUsageFlags::TRANSFER_DST | vk::BufferUsageFlags::TRANSFER_SRC;
    let info =
        vk::BufferCreateInfo::default().size(size).usage(copied | vk::BufferUsageFlags::STORAGE_BUFFER);
    // SAFETY: the create-info is valid.
    Ok(unsafe { frames.create_buffer(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?)
}

pub(crate) fn array(buffer: &Buffer, offset: u64) -> BufferDescriptor {
    BufferDescriptor::new(buffer.handle(), offset, BYTES)
}

/// Two arrays: one buffer with two consecutive slots of the heap.
pub(crate) struct Arrays {
    pub(crate) range: DescriptorRange,
    /// The frame that its numbers encode.
    pub(crate) frame: u32,
    pub(crate) buffer: Buffer,
}

impl Arrays {
    pub(crate) fn new(
        frames: &Frames,
        list: &mut CommandList,
        heap: &Heap<'_>,
        frame: u32,
        places: [u32; 2],
    ) -> Result<Self> {
        let buffer = buffer(frames, 2 * BYTES)?;
        let [left, right] = places.map(|place| numbers(frame, place));
        list.upload(&buffer, 0, &bytes(left.chain(right)))?;
        let range = heap.allocate(2)?;
        for (at, offset) in [(0, 0), (1, BYTES)] {
            let descriptor = Descriptor::StorageBuffer(array(&buffer, offset));
            // SAFETY: the buffer is dropped after the range, and nothing reads new slots yet.
            unsafe { heap.write(range.id(), at, &descriptor) }?;
        }
        Ok(Self { range, frame, buffer })
    }

    /// Declares the accesses, because the list cannot see descriptors in the heap.
    pub(crate) fn declare(&self, list: &mut CommandList) -> Result<()> {
        let read = Use::storage_read(vk::PipelineStageFlags2::COMPUTE_SHADER);
        // SAFETY: every queue of this example supports compute.
        unsafe { list.use_buffer(&self.buffer, 0..2 * BYTES, read) }?;
        Ok(())
    }
}

/// Creates the layout of set 0: the task, and the buffer for results.
pub(crate) fn set_layout(context: &Context) -> Result<SetLayout> {
    let kinds = [vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC, vk::DescriptorType::STORAGE_BUFFER];
    let bindings = [(0, kinds[0]), (1, kinds[1])].map(|(number, kind)| {
        let binding = vk::DescriptorSetLayoutBinding::default().binding(number).descriptor_type(kind);
        binding.descriptor_count(1).stage_flags(vk::ShaderStageFlags::COMPUTE)
    });
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    // SAFETY: the create-info is valid.
    let layout = unsafe { context.device().create_descriptor_set_layout(&info, None) }?;
    // SAFETY: the layout is made from it.
    Ok(unsafe { SetLayout::new(layout, &info) }?)
}

/// The shader for a simulated GPU.
pub(crate) fn kernel(kernel: &mut sim::Kernel<'_>) {
    let task = kernel.buffer(0, 0, 0);
    let [first, factor, result] = [0, 4, 8].map(|offset| task.read_u32(offset));
    let (left, right) = (kernel.buffer(1, 0, first), kernel.buffer(1, 0, first + 1));
    let results = kernel.buffer(0, 1, 0);
    for at in (0..BYTES).step_by(4) {
        let sum = left.read_u32(at).wrapping_mul(factor).wrapping_add(right.read_u32(at));
        results.write_u32(u64::from(result) * BYTES + at, sum);
    }
}
