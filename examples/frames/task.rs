//! What the device is given to do, and what must come of it.

use ash::vk;
use sublet::descriptor::{BufferDescriptor, DescriptorRange, SetLayout};
use sublet::retire::Ticket;
use sublet::upload::Upload;
use sublet::{
    Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, Allocator, MemoryUsage,
    RetiredResources, sim,
};

use crate::heap::{self, Heap};
use crate::support::{Compute, Context, Result};

/// Numbers of an array, as the shader has it.
pub(crate) const NUMBERS: u64 = 64;

/// What the shader is told.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Task {
    pub(crate) first: u32,
    pub(crate) factor: u32,
    pub(crate) result: u32,
    pub(crate) unused: u32,
}

/// Numbers that are of this frame and place and no other.
pub(crate) fn numbers(frame: u32, place: u32) -> Vec<u32> {
    (0..64).map(|at| frame.wrapping_mul(2_654_435_761).wrapping_add(place * 1_000 + at)).collect()
}

fn sums(frame: u32, places: [u32; 2], factor: u32) -> impl Iterator<Item = u32> {
    let [left, right] = places.map(|place| numbers(frame, place));
    left.into_iter().zip(right).map(move |(left, right)| left.wrapping_mul(factor).wrapping_add(right))
}

/// What the two tasks of a frame write.
pub(crate) fn expected(frame: u32, material: u32) -> Vec<u32> {
    sums(frame, [1, 2], frame).chain(sums(material, [3, 4], 3)).collect()
}

/// How many numbers there are, if all of them are right.
pub(crate) fn compare(frame: u32, expected: &[u32], found: &[u8]) -> Result<u64> {
    for (at, (&expected, found)) in expected.iter().zip(found.chunks_exact(4)).enumerate() {
        let found = u32::from_le_bytes(found.try_into()?);
        if found != expected {
            return Err(format!("frame {frame}, number {at}: {found} instead of {expected}").into());
        }
    }
    Ok(u64::try_from(expected.len())?)
}

/// Two arrays that many frames read: a buffer, and two slots of the heap in a row.
pub(crate) struct Material {
    pub(crate) range: DescriptorRange,
    /// The frame that its numbers are of.
    pub(crate) frame: u32,
    buffer: vk::Buffer,
    memory: Allocation,
}

impl Material {
    pub(crate) fn new(allocator: &Allocator, heap: &Heap<'_>, frame: u32) -> Result<Self> {
        let limits = allocator.physical_device_properties().limits;
        let second = (NUMBERS * 4).next_multiple_of(limits.min_storage_buffer_offset_alignment);
        let info = vk::BufferCreateInfo::default()
            .size(second + NUMBERS * 4)
            .usage(vk::BufferUsageFlags::STORAGE_BUFFER);
        let written = AllocationCreateInfo {
            flags: Flags::HOST_ACCESS_SEQUENTIAL_WRITE,
            name: Some("material"),
            ..AllocationCreateInfo::new(MemoryUsage::Auto)
        };
        // SAFETY: the create-info is valid.
        let (buffer, mut memory) = unsafe { allocator.create_buffer(&info, &written) }?;
        for (place, offset) in [(3, 0), (4, second)] {
            let bytes: Vec<u8> =
                numbers(frame, place).iter().flat_map(|number| number.to_le_bytes()).collect();
            allocator.copy_to_allocation(&bytes, &mut memory, offset)?;
        }
        let arrays = [0, second].map(|offset| BufferDescriptor::new(buffer, offset, NUMBERS * 4));
        // SAFETY: the buffer is retired with the range, or later.
        let range = unsafe { heap::hold(heap, &arrays) }?;
        Ok(Self { range, frame, buffer, memory })
    }

    /// Nothing after the frame of this ticket uses it.
    pub(crate) fn retire(self, frame: Ticket, heap: &Heap<'_>, retired: &RetiredResources) -> Result<()> {
        // SAFETY: no later recording uses it.
        unsafe { heap.retire(frame, self.range) }?;
        // SAFETY: frames that still use the buffer were begun before this one.
        unsafe { retired.retire_buffer(frame, self.buffer, self.memory) };
        Ok(())
    }
}

/// The layout of set 0: the task, and where results go.
pub(crate) struct SetZero<'a> {
    context: &'a Context,
    pub(crate) layout: SetLayout,
}

impl<'a> SetZero<'a> {
    pub(crate) fn new(context: &'a Context) -> Result<Self> {
        let binding = |number, descriptor_type| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(number)
                .descriptor_type(descriptor_type)
                .descriptor_count(1)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        };
        let bindings =
            [binding(0, vk::DescriptorType::UNIFORM_BUFFER), binding(1, vk::DescriptorType::STORAGE_BUFFER)];
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        // SAFETY: the create-info is valid.
        let handle = unsafe { context.device().create_descriptor_set_layout(&info, None) }?;
        // SAFETY: the layout was made from it.
        let layout = unsafe { SetLayout::new(handle, &info) }?;
        Ok(Self { context, layout })
    }

    /// Says in a set what its task is.
    pub(crate) fn write(&self, set: vk::DescriptorSet, task: &Upload, results: vk::Buffer) {
        let (task, results) = (
            [task.descriptor_info()],
            [vk::DescriptorBufferInfo { buffer: results, offset: 0, range: vk::WHOLE_SIZE }],
        );
        let write = |binding, descriptor_type| {
            vk::WriteDescriptorSet::default()
                .dst_set(set)
                .dst_binding(binding)
                .descriptor_type(descriptor_type)
        };
        let writes = [
            write(0, vk::DescriptorType::UNIFORM_BUFFER).buffer_info(&task),
            write(1, vk::DescriptorType::STORAGE_BUFFER).buffer_info(&results),
        ];
        // SAFETY: the set was just allocated, and what it names lives until the frame is done.
        unsafe { self.context.device().update_descriptor_sets(&writes, &[]) };
    }
}

impl Drop for SetZero<'_> {
    fn drop(&mut self) {
        // SAFETY: no set is allocated with it any more.
        unsafe { self.context.device().destroy_descriptor_set_layout(self.layout.handle(), None) };
    }
}

/// Records a dispatch for each set; the host sees what they write.
pub(crate) fn record(
    device: &ash::Device,
    commands: vk::CommandBuffer,
    compute: &Compute<'_>,
    sets: &[vk::DescriptorSet],
) {
    let point = vk::PipelineBindPoint::COMPUTE;
    // SAFETY: the command buffer is being recorded, and the pipeline is one for compute.
    unsafe { device.cmd_bind_pipeline(commands, point, compute.pipeline) };
    for &set in sets {
        // SAFETY: the set is of the layout's first set layout.
        unsafe { device.cmd_bind_descriptor_sets(commands, point, compute.layout, 0, &[set], &[]) };
        // SAFETY: pipeline and both sets are bound.
        unsafe { device.cmd_dispatch(commands, 1, 1, 1) };
    }
    let visible = vk::MemoryBarrier::default()
        .src_access_mask(vk::AccessFlags::SHADER_WRITE)
        .dst_access_mask(vk::AccessFlags::HOST_READ);
    let (from, to) = (vk::PipelineStageFlags::COMPUTE_SHADER, vk::PipelineStageFlags::HOST);
    // SAFETY: the command buffer is being recorded, outside of a render pass.
    unsafe {
        device.cmd_pipeline_barrier(commands, from, to, vk::DependencyFlags::empty(), &[visible], &[], &[]);
    };
}

/// The shader, for a simulated GPU.
pub(crate) fn kernel(kernel: &mut sim::Kernel<'_>) {
    let task = kernel.buffer(0, 0, 0);
    let [first, factor, result] = [0, 4, 8].map(|offset| task.read_u32(offset));
    let (left, right) = (kernel.buffer(1, 0, first), kernel.buffer(1, 0, first + 1));
    let results = kernel.buffer(0, 1, 0);
    for at in 0..NUMBERS {
        let sum = left.read_u32(at * 4).wrapping_mul(factor).wrapping_add(right.read_u32(at * 4));
        results.write_u32((u64::from(result) * NUMBERS + at) * 4, sum);
    }
}
