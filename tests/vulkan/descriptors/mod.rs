//! Descriptors as shaders see them: sets, heaps and binders. A compute shader reads through each of them, and the tests
//! compare its results.

mod binder;
mod draw;
mod heaps;
mod native;
mod rays;
mod sets;

use ash::vk;
use sublet::{Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, MemoryUsage};
use sublet_descriptors::{BufferDescriptor, Descriptor, DescriptorDevice, DescriptorFeatures, SetLayout};
use sublet_examples::Context;

use crate::Fixture;

/// Elements of an array in the shaders.
pub(super) const NUMBERS: u64 = 64;
/// Bytes between two tasks and between two arrays: a multiple of every descriptor alignment.
const STEP: u64 = 256;
const _: () = assert!(STEP == NUMBERS * 4);

/// A host-visible buffer with equal numbers of tasks, arrays to read and arrays to write.
pub(super) struct Data<'a> {
    fixture: &'a Fixture<'a>,
    buffer: vk::Buffer,
    memory: Allocation,
    address: Option<vk::DeviceAddress>,
    count: u32,
}

impl<'a> Data<'a> {
    /// Array `i` to read contains `1000 i`, `1000 i + 1`, ... and the arrays to write contain zeros.
    pub(super) fn new(fixture: &'a Fixture<'a>, count: u32) -> Self {
        let addresses = fixture.descriptor_features().contains(DescriptorFeatures::BUFFER_DEVICE_ADDRESS);
        let mut usage = vk::BufferUsageFlags::UNIFORM_BUFFER | vk::BufferUsageFlags::STORAGE_BUFFER;
        if addresses {
            usage |= vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        }
        let host = AllocationCreateInfo {
            flags: Flags::HOST_ACCESS_RANDOM | Flags::MAPPED,
            ..AllocationCreateInfo::new(MemoryUsage::Auto)
        };
        let (buffer, memory) = fixture.buffer(u64::from(count) * STEP * 3, usage, &host);
        let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
        // SAFETY: the buffer is live and bound, and has the usage for addresses.
        let address = addresses.then(|| unsafe { fixture.context.device().get_buffer_device_address(&info) });
        let mut data = Self { fixture, buffer, memory, address, count };
        for array in 0..count {
            let numbers: Vec<u32> = (0..64).map(|at| array * 1000 + at).collect();
            data.put(data.source(array).offset, &numbers);
            data.put(data.target(array).offset, &[0; 64]);
        }
        data
    }

    fn put(&mut self, offset: u64, numbers: &[u32]) {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.fixture.allocator.copy_to_allocation(&bytes, &mut self.memory, offset).unwrap();
    }

    fn piece(&self, offset: u64, range: u64) -> BufferDescriptor {
        let piece = BufferDescriptor::new(self.buffer, offset, range);
        self.address.map_or(piece, |address| piece.with_buffer_address(address))
    }

    /// Sets the four words of a task.
    pub(super) fn set_task(&mut self, task: u32, words: [u32; 4]) {
        self.put(u64::from(task) * STEP, &words);
    }

    pub(super) fn task(&self, task: u32) -> BufferDescriptor {
        self.piece(u64::from(task) * STEP, 16)
    }

    /// The same with the size of an array. The task is at its start.
    pub(super) fn task_as_array(&self, task: u32) -> BufferDescriptor {
        self.piece(u64::from(task) * STEP, STEP)
    }

    pub(super) fn source(&self, array: u32) -> BufferDescriptor {
        self.piece(u64::from(self.count + array) * STEP, STEP)
    }

    pub(super) fn target(&self, array: u32) -> BufferDescriptor {
        self.piece(u64::from(2 * self.count + array) * STEP, STEP)
    }

    /// Returns the numbers of array `target`.
    pub(super) fn read(&self, target: u32) -> Vec<u32> {
        let mut bytes = [0; 256];
        let offset = self.target(target).offset;
        self.fixture.allocator.copy_from_allocation(&self.memory, offset, &mut bytes).unwrap();
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }

    /// Checks that array `target` equals the source plus `add`, and clears it for the next check.
    pub(super) fn expect(&mut self, target: u32, source: u32, add: u32) {
        for (at, found) in (0..).zip(self.read(target)) {
            assert_eq!(found, source * 1000 + at + add, "array {target}, number {at}");
        }
        self.put(self.target(target).offset, &[0; 64]);
    }

    pub(super) fn destroy(self) {
        self.fixture.destroy((self.buffer, self.memory));
    }
}

impl Fixture<'_> {
    pub(super) fn descriptor_features(&self) -> DescriptorFeatures {
        self.context.descriptor_info().features
    }

    pub(super) fn descriptor_device(&self) -> DescriptorDevice {
        // SAFETY: the context created instance and device as its info states, and outlives the objects created from the
        // value.
        unsafe { DescriptorDevice::new(&self.context.descriptor_info()) }.unwrap()
    }
}

/// A shader that adds a number to an array. Its set has the task, the array to read and the array to write.
pub(super) const ADD: &[u8] = include_bytes!("add.spv");

/// Returns the words of a shader. `examples/shaders` compiles it from the WGSL beside it.
pub(super) fn words(code: &[u8]) -> Vec<u32> {
    ash::util::read_spv(&mut std::io::Cursor::new(code)).unwrap()
}

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

/// Creates the layout of that set. The test destroys it with [`destroy_layout`].
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
    // SAFETY: the create-info is valid, and the callers pass only flags that are enabled.
    let handle = unsafe { context.device().create_descriptor_set_layout(&info, None) }.unwrap();
    // SAFETY: the layout was created from this create-info.
    unsafe { SetLayout::new(handle, &info) }.unwrap()
}

pub(super) fn destroy_layout(context: &Context, layout: &SetLayout) {
    // SAFETY: the tests have destroyed the objects that use it.
    unsafe { context.device().destroy_descriptor_set_layout(layout.handle(), None) };
}

/// Returns the three descriptors of a task's set.
pub(super) fn add_descriptors(data: &Data<'_>, task: u32, source: u32, target: u32) -> [Descriptor; 3] {
    [
        Descriptor::UniformBuffer(data.task(task)),
        Descriptor::StorageBuffer(data.source(source)),
        Descriptor::StorageBuffer(data.target(target)),
    ]
}

/// Makes shader writes visible to the host.
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
