//! Short forms for the tests of shaders and descriptors: buffers with memory, layouts, pipelines, submissions.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use ash::vk;

use crate::Gpu;
use crate::facts::profiles::Profile;
use crate::tests::{destroy_all, reports};

pub(crate) const POINT: vk::PipelineBindPoint = vk::PipelineBindPoint::COMPUTE;
pub(crate) const STAGE: vk::ShaderStageFlags = vk::ShaderStageFlags::COMPUTE;
pub(crate) const NO_FENCE: vk::Fence = vk::Fence::null();

/// A GPU, and what is to be destroyed with it.
pub(crate) struct KernelFixture {
    pub(crate) gpu: Gpu,
    pool: vk::CommandPool,
}

/// A buffer with memory.
#[derive(Clone, Copy)]
pub(crate) struct Buffer {
    pub(crate) handle: vk::Buffer,
    pub(crate) memory: vk::DeviceMemory,
    /// 0 without the usage SHADER_DEVICE_ADDRESS.
    pub(crate) address: u64,
}

impl KernelFixture {
    pub(crate) fn new(profile: &str) -> Self {
        Self::of(Gpu::new(Profile::by_name(profile).unwrap()))
    }

    pub(crate) fn of(gpu: Gpu) -> Self {
        let flags = vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER;
        let info = vk::CommandPoolCreateInfo::default().flags(flags);
        let pool = unsafe { gpu.device().create_command_pool(&info, None) }.unwrap();
        Self { gpu, pool }
    }

    pub(crate) fn device(&self) -> &ash::Device {
        self.gpu.device()
    }

    pub(crate) fn buffer(&self, size: u64, usage: vk::BufferUsageFlags) -> Buffer {
        let info = vk::BufferCreateInfo::default().size(size).usage(usage);
        let handle = unsafe { self.device().create_buffer(&info, None) }.unwrap();
        let needs = unsafe { self.device().get_buffer_memory_requirements(handle) };
        let addressed = usage.contains(vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS);
        let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(if addressed {
            vk::MemoryAllocateFlags::DEVICE_ADDRESS
        } else {
            vk::MemoryAllocateFlags::empty()
        });
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(needs.memory_type_bits.trailing_zeros())
            .push_next(&mut flags);
        let memory = unsafe { self.device().allocate_memory(&info, None) }.unwrap();
        unsafe { self.device().bind_buffer_memory(handle, memory, 0) }.unwrap();
        let info = vk::BufferDeviceAddressInfo::default().buffer(handle);
        let address = if addressed { unsafe { self.device().get_buffer_device_address(&info) } } else { 0 };
        Buffer { handle, memory, address }
    }

    /// Destroys a buffer before the fixture does.
    pub(crate) fn destroy(&self, buffer: Buffer) {
        unsafe { self.device().destroy_buffer(buffer.handle, None) };
        unsafe { self.device().free_memory(buffer.memory, None) };
    }

    /// A set layout with these bindings, numbered from 0 on: type and elements.
    pub(crate) fn set_layout(
        &self,
        flags: vk::DescriptorSetLayoutCreateFlags,
        bindings: &[(vk::DescriptorType, u32)],
    ) -> vk::DescriptorSetLayout {
        let binding = |(number, &(kind, count)): (u32, &(vk::DescriptorType, u32))| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(number)
                .descriptor_type(kind)
                .descriptor_count(count)
                .stage_flags(STAGE)
        };
        let bindings: Vec<_> = (0..).zip(bindings).map(binding).collect();
        let info = vk::DescriptorSetLayoutCreateInfo::default().flags(flags).bindings(&bindings);
        unsafe { self.device().create_descriptor_set_layout(&info, None) }.unwrap()
    }

    /// A pipeline layout with 16 bytes of push constants.
    pub(crate) fn layout(&self, sets: &[vk::DescriptorSetLayout]) -> vk::PipelineLayout {
        let ranges = [vk::PushConstantRange { stage_flags: STAGE, offset: 0, size: 16 }];
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(sets).push_constant_ranges(&ranges);
        unsafe { self.device().create_pipeline_layout(&info, None) }.unwrap()
    }

    pub(crate) fn try_pipeline(
        &self,
        layout: vk::PipelineLayout,
        entry: &std::ffi::CStr,
        flags: vk::PipelineCreateFlags,
    ) -> Result<vk::Pipeline, vk::Result> {
        let code = [0x0723_0203, 0];
        let info = vk::ShaderModuleCreateInfo::default().code(&code);
        let module = unsafe { self.device().create_shader_module(&info, None) }.unwrap();
        let stage = vk::PipelineShaderStageCreateInfo::default().stage(STAGE).module(module).name(entry);
        let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout).flags(flags);
        let cache = vk::PipelineCache::null();
        let made = unsafe { self.device().create_compute_pipelines(cache, &[info], None) };
        unsafe { self.device().destroy_shader_module(module, None) };
        Ok(made.map_err(|(_, error)| error)?[0])
    }

    pub(crate) fn pipeline(&self, layout: vk::PipelineLayout, entry: &std::ffi::CStr) -> vk::Pipeline {
        self.try_pipeline(layout, entry, vk::PipelineCreateFlags::empty()).unwrap()
    }

    /// A command buffer with what `body` records.
    pub(crate) fn record(&self, body: impl FnOnce(vk::CommandBuffer)) -> vk::CommandBuffer {
        let info = vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(1);
        let commands = unsafe { self.device().allocate_command_buffers(&info) }.unwrap()[0];
        let info = vk::CommandBufferBeginInfo::default();
        unsafe { self.device().begin_command_buffer(commands, &info) }.unwrap();
        body(commands);
        unsafe { self.device().end_command_buffer(commands) }.unwrap();
        commands
    }

    /// Resets all command buffers.
    pub(crate) fn reset(&self) {
        let flags = vk::CommandPoolResetFlags::empty();
        unsafe { self.device().reset_command_pool(self.pool, flags) }.unwrap();
    }

    pub(crate) fn submit(&self, commands: vk::CommandBuffer) -> Result<(), vk::Result> {
        let commands = [commands];
        let work = [vk::SubmitInfo::default().command_buffers(&commands)];
        unsafe { self.device().queue_submit(self.gpu.queue(), &work, NO_FENCE) }
    }

    /// Dispatches one workgroup of a pipeline, with what `body` binds.
    pub(crate) fn dispatch(&self, pipeline: vk::Pipeline, body: impl FnOnce(vk::CommandBuffer)) {
        self.run(|commands| {
            unsafe { self.device().cmd_bind_pipeline(commands, POINT, pipeline) };
            body(commands);
            unsafe { self.device().cmd_dispatch(commands, 1, 1, 1) };
        });
    }

    /// Records and submits.
    pub(crate) fn run(&self, body: impl FnOnce(vk::CommandBuffer)) {
        let commands = self.record(body);
        self.submit(commands).unwrap();
    }

    /// The device's view of a buffer.
    pub(crate) fn bytes(&self, buffer: Buffer, size: usize) -> Vec<u8> {
        unsafe { self.gpu.read_memory(buffer.memory, 0, size) }.unwrap()
    }

    pub(crate) fn write(&self, buffer: Buffer, offset: u64, bytes: &[u8]) {
        assert!(unsafe { self.gpu.write_memory(buffer.memory, offset, bytes) });
    }

    /// The identifiers of the reports since the last call.
    pub(crate) fn reports(&self) -> Vec<&'static str> {
        reports(&self.gpu)
    }
}

impl Drop for KernelFixture {
    /// Destroys everything. There may be no report, unless the test fails anyway.
    fn drop(&mut self) {
        destroy_all(&self.gpu);
        if !std::thread::panicking() {
            assert!(self.gpu.live().is_empty(), "{:?}", self.gpu.live());
            assert_eq!(self.gpu.take_messages(), []);
        }
    }
}
