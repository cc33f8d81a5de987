//! A GPU with a command pool and a command buffer, and short names for the steps that tests of commands share.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use ash::vk;

use crate::Gpu;
use crate::facts::profiles::Profile;
use crate::tests::{destroy_all, refuses, reports};

pub(crate) const SRC: vk::BufferUsageFlags = vk::BufferUsageFlags::TRANSFER_SRC;
pub(crate) const DST: vk::BufferUsageFlags = vk::BufferUsageFlags::TRANSFER_DST;

pub(crate) struct CommandFixture {
    pub(crate) gpu: Gpu,
    pub(crate) pool: vk::CommandPool,
    pub(crate) commands: vk::CommandBuffer,
}

/// A buffer with memory that the host sees.
#[derive(Clone, Copy)]
pub(crate) struct Mapped {
    pub(crate) buffer: vk::Buffer,
    pub(crate) memory: vk::DeviceMemory,
    pub(crate) size: usize,
    pointer: *mut u8,
}

impl CommandFixture {
    pub(crate) fn new(profile: &'static Profile) -> Self {
        Self::of(Gpu::new(profile))
    }

    pub(crate) fn of(gpu: Gpu) -> Self {
        let flags = vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER;
        let info = vk::CommandPoolCreateInfo::default().flags(flags);
        let pool = unsafe { gpu.device().create_command_pool(&info, None) }.unwrap();
        let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        let commands = unsafe { gpu.device().allocate_command_buffers(&info) }.unwrap()[0];
        Self { gpu, pool, commands }
    }

    pub(crate) fn simple() -> Self {
        Self::new(Profile::by_name("lavapipe").unwrap())
    }

    pub(crate) fn device(&self) -> &ash::Device {
        self.gpu.device()
    }

    /// Memory for requirements, of the first type of theirs that has `flags`.
    fn memory(&self, needs: vk::MemoryRequirements, flags: vk::MemoryPropertyFlags) -> vk::DeviceMemory {
        let special = vk::MemoryPropertyFlags::DEVICE_COHERENT_AMD;
        let properties =
            unsafe { self.gpu.instance().get_physical_device_memory_properties(self.gpu.physical_device()) };
        let index = (0..properties.memory_type_count).find(|&index| {
            let kind = properties.memory_types[usize::try_from(index).unwrap()].property_flags;
            needs.memory_type_bits & 1 << index != 0 && kind.contains(flags) && !kind.intersects(special)
        });
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(index.expect("a memory type"));
        unsafe { self.device().allocate_memory(&info, None) }.unwrap()
    }

    /// Memory of the first type.
    pub(crate) fn arena(&self, size: u64) -> vk::DeviceMemory {
        let needs = vk::MemoryRequirements { size, alignment: 1, memory_type_bits: 1 };
        self.memory(needs, vk::MemoryPropertyFlags::empty())
    }

    /// A buffer that is not bound.
    pub(crate) fn bare(&self, size: u64, usage: vk::BufferUsageFlags) -> vk::Buffer {
        let info = vk::BufferCreateInfo::default().size(size).usage(usage);
        unsafe { self.device().create_buffer(&info, None) }.unwrap()
    }

    /// A buffer in mapped memory with these flags.
    pub(crate) fn mapped_in(
        &self,
        size: u64,
        usage: vk::BufferUsageFlags,
        flags: vk::MemoryPropertyFlags,
    ) -> Mapped {
        let buffer = self.bare(size, usage);
        let needs = unsafe { self.device().get_buffer_memory_requirements(buffer) };
        let memory = self.memory(needs, flags);
        unsafe { self.device().bind_buffer_memory(buffer, memory, 0) }.unwrap();
        let pointer =
            unsafe { self.device().map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()) }
                .unwrap();
        Mapped { buffer, memory, size: usize::try_from(size).unwrap(), pointer: pointer.cast() }
    }

    pub(crate) fn mapped(&self, size: u64, usage: vk::BufferUsageFlags) -> Mapped {
        let flags = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        self.mapped_in(size, usage, flags)
    }

    /// A buffer in memory of the device.
    pub(crate) fn local(&self, size: u64, usage: vk::BufferUsageFlags) -> vk::Buffer {
        let buffer = self.bare(size, usage);
        let needs = unsafe { self.device().get_buffer_memory_requirements(buffer) };
        let memory = self.memory(needs, vk::MemoryPropertyFlags::DEVICE_LOCAL);
        unsafe { self.device().bind_buffer_memory(buffer, memory, 0) }.unwrap();
        buffer
    }

    /// An image with memory.
    pub(crate) fn image(&self, info: &vk::ImageCreateInfo<'_>) -> vk::Image {
        let image = self.bare_image(info);
        let needs = unsafe { self.device().get_image_memory_requirements(image) };
        let memory = self.memory(needs, vk::MemoryPropertyFlags::DEVICE_LOCAL);
        unsafe { self.device().bind_image_memory(image, memory, 0) }.unwrap();
        image
    }

    pub(crate) fn bare_image(&self, info: &vk::ImageCreateInfo<'_>) -> vk::Image {
        unsafe { self.device().create_image(info, None) }.unwrap()
    }

    pub(crate) fn begin(&self) {
        let info = vk::CommandBufferBeginInfo::default();
        unsafe { self.device().begin_command_buffer(self.commands, &info) }.unwrap();
    }

    pub(crate) fn end(&self) {
        unsafe { self.device().end_command_buffer(self.commands) }.unwrap();
    }

    /// Records what `body` records, and runs it.
    pub(crate) fn run(&self, body: impl FnOnce(&ash::Device, vk::CommandBuffer)) {
        self.begin();
        body(self.device(), self.commands);
        self.end();
        self.submit().unwrap();
        unsafe { self.device().queue_wait_idle(self.gpu.queue()) }.unwrap();
    }

    pub(crate) fn submit(&self) -> Result<(), vk::Result> {
        let buffers = [self.commands];
        let info = vk::SubmitInfo::default().command_buffers(&buffers);
        unsafe { self.device().queue_submit(self.gpu.queue(), &[info], vk::Fence::null()) }
    }

    /// The layout of all of an image, from nothing.
    pub(crate) fn to_layout(&self, commands: vk::CommandBuffer, image: vk::Image, new: vk::ImageLayout) {
        self.change_layout(commands, image, vk::ImageLayout::UNDEFINED, new);
    }

    pub(crate) fn change_layout(
        &self,
        commands: vk::CommandBuffer,
        image: vk::Image,
        old: vk::ImageLayout,
        new: vk::ImageLayout,
    ) {
        let barrier = vk::ImageMemoryBarrier::default()
            .image(image)
            .old_layout(old)
            .new_layout(new)
            .subresource_range(all_of(vk::ImageAspectFlags::COLOR));
        let stages = vk::PipelineStageFlags::ALL_COMMANDS;
        let none = vk::DependencyFlags::empty();
        unsafe { self.device().cmd_pipeline_barrier(commands, stages, stages, none, &[], &[], &[barrier]) };
    }

    /// The rules reported since the last call.
    pub(crate) fn reports(&self) -> Vec<&'static str> {
        reports(&self.gpu)
    }

    /// Asserts that exactly this is reported since the last call.
    #[track_caller]
    pub(crate) fn expect(&self, rule: &str) {
        assert_eq!(self.reports(), [rule]);
    }

    /// Asserts that a call was refused, and that it reported `rule` alone.
    #[track_caller]
    pub(crate) fn refuses<T>(&self, rule: &str, result: Result<T, vk::Result>) {
        refuses(&self.gpu, rule, result);
    }

    #[track_caller]
    pub(crate) fn expect_silence(&self) {
        assert_eq!(self.gpu.take_messages(), []);
    }
}

impl Drop for CommandFixture {
    fn drop(&mut self) {
        destroy_all(&self.gpu);
    }
}

impl Mapped {
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.size);
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.pointer.add(offset), bytes.len()) };
    }

    pub(crate) fn read(&self) -> Vec<u8> {
        unsafe { std::slice::from_raw_parts(self.pointer, self.size) }.to_vec()
    }
}

pub(crate) fn all_of(aspect_mask: vk::ImageAspectFlags) -> vk::ImageSubresourceRange {
    vk::ImageSubresourceRange {
        aspect_mask,
        base_mip_level: 0,
        level_count: vk::REMAINING_MIP_LEVELS,
        base_array_layer: 0,
        layer_count: vk::REMAINING_ARRAY_LAYERS,
    }
}

/// Bytes that differ from their neighbours, and from those of another seed.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(len).collect()
}
