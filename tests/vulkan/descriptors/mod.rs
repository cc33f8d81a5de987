//! Descriptors as shaders see them: sets, heaps and what a binder binds, each read through by a compute shader whose
//! results are compared.

mod binder;
mod heaps;
mod sets;

use ash::vk;
use sublet::descriptor::{BufferDescriptor, Descriptor, DescriptorDevice, DescriptorFeatures, SetLayout};
use sublet::{Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, MemoryUsage};

use crate::Bench;
use crate::support::Context;

/// Numbers of an array, as the shaders have it.
pub(super) const NUMBERS: u64 = 64;
/// Bytes between two tasks, and between two arrays: a multiple of every alignment that descriptors have.
const STEP: u64 = 256;
const _: () = assert!(STEP == NUMBERS * 4);

/// A buffer of the host's with tasks, arrays to read and arrays to write, as many of each.
pub(super) struct Data<'a> {
    bench: &'a Bench<'a>,
    buffer: vk::Buffer,
    memory: Allocation,
    address: Option<vk::DeviceAddress>,
    count: u32,
}

impl<'a> Data<'a> {
    /// Array `i` of those to read has the numbers `1000 i`, `1000 i + 1`, ...; the others are zero.
    pub(super) fn new(bench: &'a Bench<'a>, count: u32) -> Self {
        let addresses = bench.descriptor_features().contains(DescriptorFeatures::BUFFER_DEVICE_ADDRESS);
        let mut usage = vk::BufferUsageFlags::UNIFORM_BUFFER | vk::BufferUsageFlags::STORAGE_BUFFER;
        if addresses {
            usage |= vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        }
        let host = AllocationCreateInfo {
            flags: Flags::HOST_ACCESS_RANDOM | Flags::MAPPED,
            ..AllocationCreateInfo::new(MemoryUsage::Auto)
        };
        let (buffer, memory) = bench.buffer(u64::from(count) * STEP * 3, usage, &host);
        let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
        // SAFETY: the buffer is live, has memory, and was made with the usage for it.
        let address = addresses.then(|| unsafe { bench.context.device().get_buffer_device_address(&info) });
        let mut data = Self { bench, buffer, memory, address, count };
        for array in 0..count {
            let numbers: Vec<u32> = (0..64).map(|at| array * 1000 + at).collect();
            data.put(data.source(array).offset, &numbers);
            data.put(data.target(array).offset, &[0; 64]);
        }
        data
    }

    fn put(&mut self, offset: u64, numbers: &[u32]) {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.bench.allocator.copy_to_allocation(&bytes, &mut self.memory, offset).unwrap();
    }

    fn piece(&self, offset: u64, range: u64) -> BufferDescriptor {
        let piece = BufferDescriptor::new(self.buffer, offset, range);
        self.address.map_or(piece, |address| piece.with_buffer_address(address))
    }

    /// Says what a task is: four numbers for the shader.
    pub(super) fn set_task(&mut self, task: u32, words: [u32; 4]) {
        self.put(u64::from(task) * STEP, &words);
    }

    pub(super) fn task(&self, task: u32) -> BufferDescriptor {
        self.piece(u64::from(task) * STEP, 16)
    }

    /// The same with the bytes of an array, of which the first are the task's.
    pub(super) fn task_as_array(&self, task: u32) -> BufferDescriptor {
        self.piece(u64::from(task) * STEP, STEP)
    }

    pub(super) fn source(&self, array: u32) -> BufferDescriptor {
        self.piece(u64::from(self.count + array) * STEP, STEP)
    }

    pub(super) fn target(&self, array: u32) -> BufferDescriptor {
        self.piece(u64::from(2 * self.count + array) * STEP, STEP)
    }

    /// Array `target` has what the source has, plus `add`; and is cleared for the next time.
    pub(super) fn expect(&mut self, target: u32, source: u32, add: u32) {
        let mut bytes = [0; 256];
        let offset = self.target(target).offset;
        self.bench.allocator.copy_from_allocation(&self.memory, offset, &mut bytes).unwrap();
        for (at, word) in (0..).zip(bytes.chunks_exact(4)) {
            let found = u32::from_le_bytes(word.try_into().unwrap());
            assert_eq!(found, source * 1000 + at + add, "array {target}, number {at}");
        }
        self.put(offset, &[0; 64]);
    }

    pub(super) fn destroy(self) {
        self.bench.destroy((self.buffer, self.memory));
    }
}

impl Bench<'_> {
    pub(super) fn descriptor_features(&self) -> DescriptorFeatures {
        self.context.descriptor_info().features
    }

    pub(super) fn descriptor_device(&self) -> DescriptorDevice {
        // SAFETY: the context has made instance and device with what its info says, and outlives what is made from it.
        unsafe { DescriptorDevice::new(&self.context.descriptor_info()) }.unwrap()
    }
}

/// A shader that adds a number to an array. Its set has the task, the array to read and the array to write.
pub(super) const ADD: &str = "
struct Task { add: u32, a: u32, b: u32, c: u32 }
@group(0) @binding(0) var<uniform> task: Task;
@group(0) @binding(1) var<storage, read> source: array<u32, 64>;
@group(0) @binding(2) var<storage, read_write> target_: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) at: u32) {
    target_[at] = source[at] + task.add;
}";

/// The same for a simulated device.
pub(super) fn simulate_add(context: &Context) {
    let Some(gpu) = context.gpu() else { return };
    gpu.set_kernel("main", |kernel| {
        let add = kernel.buffer(0, 0, 0).read_u32(0);
        let (source, target) = (kernel.buffer(0, 1, 0), kernel.buffer(0, 2, 0));
        for at in 0..NUMBERS {
            target.write_u32(at * 4, source.read_u32(at * 4) + add);
        }
    });
}

/// The layout of that set. Destroyed by hand, with [`destroy_layout`].
pub(super) fn add_layout(context: &Context, flags: vk::DescriptorSetLayoutCreateFlags) -> SetLayout {
    let bindings = [
        vk::DescriptorType::UNIFORM_BUFFER,
        vk::DescriptorType::STORAGE_BUFFER,
        vk::DescriptorType::STORAGE_BUFFER,
    ];
    let bindings: Vec<_> = (0..)
        .zip(bindings)
        .map(|(number, descriptor_type)| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(number)
                .descriptor_type(descriptor_type)
                .descriptor_count(1)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        })
        .collect();
    let info = vk::DescriptorSetLayoutCreateInfo::default().flags(flags).bindings(&bindings);
    // SAFETY: the create-info is valid; the callers ask for flags that are enabled.
    let handle = unsafe { context.device().create_descriptor_set_layout(&info, None) }.unwrap();
    // SAFETY: the layout was made from it.
    unsafe { SetLayout::new(handle, &info) }.unwrap()
}

pub(super) fn destroy_layout(context: &Context, layout: &SetLayout) {
    // SAFETY: the tests have destroyed what uses it.
    unsafe { context.device().destroy_descriptor_set_layout(layout.handle(), None) };
}

/// The three descriptors of a task's set.
pub(super) fn add_descriptors(data: &Data<'_>, task: u32, source: u32, target: u32) -> [Descriptor; 3] {
    [
        Descriptor::UniformBuffer(data.task(task)),
        Descriptor::StorageBuffer(data.source(source)),
        Descriptor::StorageBuffer(data.target(target)),
    ]
}

/// Makes what shaders wrote visible to the host.
pub(super) fn show_to_host(device: &ash::Device, commands: vk::CommandBuffer) {
    let visible = vk::MemoryBarrier::default()
        .src_access_mask(vk::AccessFlags::SHADER_WRITE)
        .dst_access_mask(vk::AccessFlags::HOST_READ);
    let (from, to) = (vk::PipelineStageFlags::COMPUTE_SHADER, vk::PipelineStageFlags::HOST);
    // SAFETY: the command buffer is being recorded, outside of a render pass.
    unsafe {
        device.cmd_pipeline_barrier(commands, from, to, vk::DependencyFlags::empty(), &[visible], &[], &[]);
    };
}
