//! Registers closures for shaders.

use std::sync::Arc;

use crate::gpu::Gpu;
use crate::objects::kernels::Kernel;

impl Gpu {
    /// Sets what shaders with this entry point do, from the next dispatch or draw that runs. Only the name of the entry
    /// point and the layout of a pipeline count: any SPIR-V serves as a module.
    ///
    /// A dispatch or a draw of which an entry point has no closure is reported as `SUBLET-no-kernel`, and a closure
    /// that panics as `SUBLET-kernel-panicked`.
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Gpu, Kernel, profiles::Profile};
    /// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    /// gpu.set_kernel("triple", |kernel: &mut Kernel<'_>| {
    ///     let mut address = [0; 8];
    ///     kernel.read_push_constants(0, &mut address);
    ///     let numbers = kernel.memory(u64::from_le_bytes(address));
    ///     for group in 0..kernel.groups()[0] {
    ///         let at = u64::from(group) * 4;
    ///         numbers.write_u32(at, numbers.read_u32(at) * 3);
    ///     }
    /// });
    /// # let device = gpu.device();
    /// # let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
    /// # let info = vk::BufferCreateInfo::default().size(64).usage(usage);
    /// # let buffer = unsafe { device.create_buffer(&info, None) }.unwrap();
    /// # let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
    /// # let info = vk::MemoryAllocateInfo::default().allocation_size(64).push_next(&mut flags);
    /// # let memory = unsafe { device.allocate_memory(&info, None) }.unwrap();
    /// # unsafe { device.bind_buffer_memory(buffer, memory, 0) }.unwrap();
    /// # let address = unsafe { device.get_buffer_device_address(&vk::BufferDeviceAddressInfo::default().buffer(buffer)) };
    /// # let code = [0x0723_0203];
    /// # let module = unsafe { device.create_shader_module(&vk::ShaderModuleCreateInfo::default().code(&code), None) }.unwrap();
    /// # let ranges = [vk::PushConstantRange { stage_flags: vk::ShaderStageFlags::COMPUTE, offset: 0, size: 8 }];
    /// # let info = vk::PipelineLayoutCreateInfo::default().push_constant_ranges(&ranges);
    /// # let layout = unsafe { device.create_pipeline_layout(&info, None) }.unwrap();
    /// let stage = vk::PipelineShaderStageCreateInfo::default()
    ///     .stage(vk::ShaderStageFlags::COMPUTE)
    ///     .module(module)
    ///     .name(c"triple");
    /// let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout);
    /// let pipelines = unsafe { device.create_compute_pipelines(vk::PipelineCache::null(), &[info], None) }.unwrap();
    /// # let info = vk::CommandPoolCreateInfo::default();
    /// # let pool = unsafe { device.create_command_pool(&info, None) }.unwrap();
    /// # let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
    /// # let commands = unsafe { device.allocate_command_buffers(&info) }.unwrap();
    /// # unsafe { device.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default()) }.unwrap();
    /// let (point, stage) = (vk::PipelineBindPoint::COMPUTE, vk::ShaderStageFlags::COMPUTE);
    /// unsafe { device.cmd_bind_pipeline(commands[0], point, pipelines[0]) };
    /// unsafe { device.cmd_push_constants(commands[0], layout, stage, 0, &address.to_le_bytes()) };
    /// unsafe { device.cmd_dispatch(commands[0], 2, 1, 1) };
    /// # unsafe { device.end_command_buffer(commands[0]) }.unwrap();
    /// unsafe { gpu.write_memory(memory, 0, &[5, 0, 0, 0, 7, 0, 0, 0]) };
    /// # let work = [vk::SubmitInfo::default().command_buffers(&commands)];
    /// unsafe { device.queue_submit(gpu.queue(), &work, vk::Fence::null()) }.unwrap();
    /// assert_eq!(unsafe { gpu.read_memory(memory, 0, 8) }.unwrap(), [15, 0, 0, 0, 21, 0, 0, 0]);
    /// # unsafe { device.destroy_command_pool(pool, None) };
    /// # unsafe { device.destroy_pipeline(pipelines[0], None) };
    /// # unsafe { device.destroy_pipeline_layout(layout, None) };
    /// # unsafe { device.destroy_shader_module(module, None) };
    /// # unsafe { device.destroy_buffer(buffer, None) };
    /// # unsafe { device.free_memory(memory, None) };
    /// assert!(gpu.finish().is_empty());
    /// ```
    pub fn set_kernel(&self, entry_point: &str, kernel: impl Fn(&mut Kernel<'_>) + Send + Sync + 'static) {
        self.gpu_state().kernels.0.write().insert(entry_point.to_owned(), Arc::new(kernel));
    }
}
