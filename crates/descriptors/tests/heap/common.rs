//! Fixture: a simulated GPU with a buffer and several samplers to describe.

use ash::vk;
use sublet::retire::{Clock, Ticket, TimelineId};
use sublet::sim::{Gpu, Profile};
use sublet::{Allocation, AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage};
use sublet_descriptors::{
    BindlessHeap, BufferDescriptor, BufferStore, ClassicStore, Descriptor, DescriptorDevice,
    DescriptorDeviceCreateInfo, DescriptorFeatures, DescriptorHeap, HeapCreateInfo, HeapStore, SetStore,
};

pub use crate::held::{End, Held, hold};

pub const BUFFER_BYTES: u64 = 4_096;

pub struct Fixture {
    pub device: DescriptorDevice,
    pub allocator: Allocator,
    pub buffer: vk::Buffer,
    pub samplers: Vec<vk::Sampler>,
    memory: Allocation,
    pub clock: Clock,
    pub timeline: TimelineId,
    pub gpu: Gpu,
}

impl Fixture {
    pub fn new(profile: &str) -> Held<Self> {
        Self::with(Gpu::new(Profile::by_name(profile).unwrap()), |features| features)
    }

    /// Creates a fixture whose program has enabled only the features that the function returns.
    pub fn with(gpu: Gpu, features: impl Fn(DescriptorFeatures) -> DescriptorFeatures) -> Held<Self> {
        let mut info = DescriptorDeviceCreateInfo::for_gpu(&gpu);
        info.features = features(info.features);
        let device = unsafe { DescriptorDevice::new(&info) }.unwrap();
        let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
        let mut usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::UNIFORM_BUFFER;
        if device.features().contains(DescriptorFeatures::BUFFER_DEVICE_ADDRESS) {
            usage |= vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        }
        let buffer_info = vk::BufferCreateInfo::default().size(BUFFER_BYTES).usage(usage);
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        let (buffer, memory) = unsafe { allocator.create_buffer(&buffer_info, &auto) }.unwrap();
        let sampler =
            |_| unsafe { gpu.device().create_sampler(&vk::SamplerCreateInfo::default(), None) }.unwrap();
        let samplers = (0..4).map(sampler).collect();
        let clock = Clock::new();
        let timeline = clock.add_timeline().unwrap();
        hold(Self { device, allocator, buffer, samplers, memory, clock, timeline, gpu })
    }

    /// Describes 256 bytes of the buffer, starting at 256 times `at`.
    pub fn storage(&self, at: u64) -> Descriptor {
        Descriptor::StorageBuffer(self.range(at))
    }

    /// The same as a uniform buffer.
    pub fn uniform(&self, at: u64) -> Descriptor {
        Descriptor::UniformBuffer(self.range(at))
    }

    fn range(&self, at: u64) -> BufferDescriptor {
        let mut range = BufferDescriptor::new(self.buffer, 256 * at, 256);
        if self.device.features().contains(DescriptorFeatures::BUFFER_DEVICE_ADDRESS) {
            let info = vk::BufferDeviceAddressInfo::default().buffer(self.buffer);
            let address = unsafe { self.gpu.device().get_buffer_device_address(&info) };
            range = range.with_buffer_address(address);
        }
        range
    }

    /// Returns the first word at 256 times `at`.
    pub fn get(&self, at: u64) -> u32 {
        let memory = &self.memory;
        let bytes = unsafe { self.gpu.read_memory(memory.memory(), memory.offset() + 256 * at, 4) }.unwrap();
        u32::from_le_bytes(bytes.try_into().unwrap())
    }

    pub fn put(&self, at: u64, value: u32) {
        let memory = &self.memory;
        let offset = memory.offset() + 256 * at;
        let written = unsafe { self.gpu.write_memory(memory.memory(), offset, &value.to_le_bytes()) };
        assert!(written);
    }

    pub fn sampler(&self, at: usize) -> Descriptor {
        Descriptor::Sampler(self.samplers[at])
    }

    /// Returns the ticket of a recording that is already done.
    pub fn done(&self) -> Ticket {
        let ticket = self.clock.open(self.timeline);
        self.clock.discard(ticket).unwrap();
        ticket
    }

    pub fn set_store(&self, info: &HeapCreateInfo<'_>) -> Held<SetStore> {
        hold(SetStore::new(&self.device, info).unwrap())
    }

    pub fn set_heap(&self, info: &HeapCreateInfo<'_>) -> Held<DescriptorHeap<SetStore>> {
        hold(DescriptorHeap::new(SetStore::new(&self.device, info).unwrap()))
    }

    pub fn buffer_heap(&self, info: &HeapCreateInfo<'_>) -> Held<DescriptorHeap<BufferStore<&Allocator>>> {
        hold(DescriptorHeap::new(BufferStore::new(&self.device, &self.allocator, info).unwrap()))
    }
}

impl End for Fixture {
    fn end(self) {
        for sampler in self.samplers {
            unsafe { self.gpu.device().destroy_sampler(sampler, None) };
        }
        unsafe { self.allocator.destroy_buffer(self.buffer, self.memory) }.unwrap();
        let leaks = self.allocator.destroy();
        assert!(leaks.is_empty(), "{leaks:?}");
        drop(self.device);
        assert!(self.gpu.live().is_empty(), "{:?}", self.gpu.live());
        self.gpu.assert_silent();
        assert!(self.gpu.finish().is_empty());
    }
}

impl End for SetStore {
    fn end(self) {
        unsafe { self.destroy() };
    }
}

impl End for BufferStore<&Allocator> {
    fn end(self) {
        unsafe { self.destroy() };
    }
}

impl End for ClassicStore {
    fn end(self) {
        unsafe { self.destroy() };
    }
}

impl<S: HeapStore + End> End for DescriptorHeap<S> {
    fn end(self) {
        self.into_store().end();
    }
}

/// A heap of the kind that the device supports best.
pub struct Bindless<'a>(pub BindlessHeap<&'a Allocator>);

impl<'a> std::ops::Deref for Bindless<'a> {
    type Target = BindlessHeap<&'a Allocator>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl End for Bindless<'_> {
    fn end(self) {
        unsafe { self.0.destroy() };
    }
}
