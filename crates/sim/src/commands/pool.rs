//! The life of command pools and command buffers.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::sync::Arc;

use ash::vk;
use ash::vk::Handle as _;

use super::{heaps, record};
use crate::facts::broken::refuse_if;
use crate::facts::chain;
use crate::objects::commands::{CommandBuffer, CommandBufferState, CommandPoolObject, RecordedCommand, Uses};
use crate::objects::entry::{checked, on_command_buffer_checked, on_device};
use crate::objects::handle_map::HandleSet;
use crate::objects::state::{DeviceObject, DeviceState, Label};
use crate::objects::{host, registry};

pub(crate) unsafe extern "system" fn create(
    device: vk::Device,
    p_info: *const vk::CommandPoolCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    p_pool: *mut vk::CommandPool,
) -> vk::Result {
    checked(device, "vkCreateCommandPool", |device| {
        // SAFETY: VUID-vkCreateCommandPool-pCreateInfo-parameter.
        let info = unsafe { chain::given(p_info, "VUID-vkCreateCommandPool-pCreateInfo-parameter") }?;
        let family = info.queue_family_index;
        refuse_if!(!device.families.contains(&family) => "VUID-vkCreateCommandPool-queueFamilyIndex-01937",
            "queueFamilyIndex is {family}, and the device was created without that family");
        let handle = device.gpu_state.handle();
        let pool = CommandPoolObject { family, flags: info.flags, buffers: Default::default() };
        device.state.lock().commands.pools.insert(handle, pool);
        // SAFETY: VUID-vkCreateCommandPool-pCommandPool-parameter.
        unsafe { chain::output(p_pool, handle) };
        Ok(vk::Result::SUCCESS)
    })
}

pub(crate) unsafe extern "system" fn destroy(
    device: vk::Device,
    pool: vk::CommandPool,
    _: *const vk::AllocationCallbacks<'_>,
) {
    on_device(device, "vkDestroyCommandPool", |device| {
        let remove = |state: &mut DeviceState, name: &Label| {
            let found = state.commands.pools.remove(&pool)?;
            if state.any_pending(&found.buffers) {
                let text =
                    format!("{name} is destroyed, and a submission still runs one of its command buffers");
                device.report("VUID-vkDestroyCommandPool-commandPool-00041", text);
            }
            found.buffers.iter().for_each(|handle| state.forget_command_buffer(handle));
            Some(())
        };
        host::forget(device, pool, "VUID-vkDestroyCommandPool-commandPool-parameter", remove);
    });
}

pub(crate) unsafe extern "system" fn reset(
    device: vk::Device,
    pool: vk::CommandPool,
    _: vk::CommandPoolResetFlags,
) -> vk::Result {
    checked(device, "vkResetCommandPool", |device| {
        let mut state = device.state.lock();
        let name = state.name(pool);
        let buffers = state.commands.pools.get(&pool).map(|found| found.buffers.clone());
        let rule = "VUID-vkResetCommandPool-commandPool-parameter";
        let buffers = state.known(device, pool, buffers, rule)?;
        refuse_if!(state.any_pending(&buffers) => "VUID-vkResetCommandPool-commandPool-00040",
            "{name} is reset, and a submission still runs one of its command buffers");
        for handle in buffers.iter() {
            if let Some(buffer) = state.commands.buffers.get_mut(&handle) {
                buffer.clear();
            }
        }
        Ok(vk::Result::SUCCESS)
    })
}

pub(crate) unsafe extern "system" fn trim(
    device: vk::Device,
    pool: vk::CommandPool,
    _: vk::CommandPoolTrimFlags,
) {
    checked(device, "vkTrimCommandPool", |device| {
        let state = device.state.lock();
        let found = state.commands.pools.get(&pool).map(drop);
        state.known(device, pool, found, "VUID-vkTrimCommandPool-commandPool-parameter")
    });
}

pub(crate) unsafe extern "system" fn allocate(
    device: vk::Device,
    p_info: *const vk::CommandBufferAllocateInfo<'_>,
    p_buffers: *mut vk::CommandBuffer,
) -> vk::Result {
    checked(device, "vkAllocateCommandBuffers", |device| {
        let rule = "VUID-vkAllocateCommandBuffers-pAllocateInfo-parameter";
        // SAFETY: VUID-vkAllocateCommandBuffers-pAllocateInfo-parameter.
        let info = unsafe { chain::given(p_info, rule) }?;
        let mut state = device.state.lock();
        let pool = state.commands.pools.get(&info.command_pool);
        let rule = "VUID-VkCommandBufferAllocateInfo-commandPool-parameter";
        state.known(device, info.command_pool, pool, rule)?;
        refuse_if!(info.command_buffer_count == 0
            => "VUID-vkAllocateCommandBuffers-pAllocateInfo::commandBufferCount-arraylength",
            "commandBufferCount is 0");
        let handles: Vec<_> =
            (0..info.command_buffer_count).map(|_| registry::add_command_buffer(device)).collect();
        for (index, &handle) in handles.iter().enumerate() {
            let buffer = CommandBuffer {
                pool: info.command_pool,
                level: info.level,
                phase: CommandBufferState::Initial,
                usage: vk::CommandBufferUsageFlags::empty(),
                commands: Arc::default(),
                uses: Uses::default(),
                pending: 0,
            };
            state.commands.buffers.insert(handle, buffer);
            if let Some(pool) = state.commands.pools.get_mut(&info.command_pool) {
                pool.buffers.insert(handle);
            }
            // SAFETY: `pCommandBuffers` has `commandBufferCount` elements:
            // VUID-vkAllocateCommandBuffers-pCommandBuffers-parameter.
            let slot = unsafe { p_buffers.add(index) };
            // SAFETY: as above.
            unsafe { chain::output(slot, handle) };
        }
        Ok(vk::Result::SUCCESS)
    })
}

pub(crate) unsafe extern "system" fn free(
    device: vk::Device,
    pool: vk::CommandPool,
    count: u32,
    p_buffers: *const vk::CommandBuffer,
) {
    on_device(device, "vkFreeCommandBuffers", |device| {
        // SAFETY: VUID-vkFreeCommandBuffers-pCommandBuffers-00048.
        let handles = unsafe { chain::array(p_buffers, count) };
        let mut state = device.state.lock();
        for &handle in handles.iter().filter(|handle| !handle.is_null()) {
            let name = state.name(handle);
            let Some(buffer) = state.commands.buffers.get(&handle) else {
                let text = format!("{name} was never allocated, or is freed");
                device.report("VUID-vkFreeCommandBuffers-pCommandBuffers-00048", text);
                continue;
            };
            if buffer.pool != pool {
                let text = format!("{name} is of another pool");
                device.report("VUID-vkFreeCommandBuffers-pCommandBuffers-parent", text);
                continue;
            }
            if buffer.pending > 0 {
                let text = format!("{name} is freed, and a submission still runs it");
                device.report("VUID-vkFreeCommandBuffers-pCommandBuffers-00047", text);
            }
            if let Some(pool) = state.commands.pools.get_mut(&pool) {
                pool.buffers.remove(handle);
            }
            state.forget_command_buffer(handle);
        }
    });
}

pub(crate) unsafe extern "system" fn begin(
    command_buffer: vk::CommandBuffer,
    p_info: *const vk::CommandBufferBeginInfo<'_>,
) -> vk::Result {
    on_command_buffer_checked(command_buffer, "vkBeginCommandBuffer", |device| {
        // SAFETY: VUID-vkBeginCommandBuffer-pBeginInfo-parameter.
        let info = unsafe { chain::given(p_info, "VUID-vkBeginCommandBuffer-pBeginInfo-parameter") }?;
        let mut state = device.state.lock();
        let name = state.name(command_buffer);
        let resettable = state.resettable(command_buffer);
        // SAFETY: VUID-VkCommandBufferBeginInfo-pInheritanceInfo-parameter; it is ignored in primary command buffers.
        let inheritance = unsafe { chain::input(info.p_inheritance_info) }
            .filter(|_| state.commands.buffers.get(&command_buffer).is_some_and(CommandBuffer::is_secondary));
        let inherited = match inheritance {
            // SAFETY: as above.
            Some(info) => unsafe { heaps::inherited(device, &state, command_buffer, info) }?,
            None => [None; 2],
        };
        let Some(buffer) = state.commands.buffers.get_mut(&command_buffer) else {
            return Ok(vk::Result::ERROR_VALIDATION_FAILED_EXT);
        };
        refuse_if!(buffer.pending > 0 => "VUID-vkBeginCommandBuffer-commandBuffer-00049",
            "{name} is begun, and a submission still runs it");
        refuse_if!(buffer.phase == CommandBufferState::Recording => "VUID-vkBeginCommandBuffer-commandBuffer-00049",
            "{name} is begun, and it is being recorded");
        refuse_if!(buffer.phase != CommandBufferState::Initial && !resettable
            => "VUID-vkBeginCommandBuffer-commandBuffer-00050",
            "{name} is begun again, and its pool was created without RESET_COMMAND_BUFFER");
        refuse_if!(buffer.is_secondary() && info.p_inheritance_info.is_null()
            => "VUID-vkBeginCommandBuffer-commandBuffer-00051",
            "{name} is secondary, and pInheritanceInfo is NULL");
        buffer.clear();
        buffer.phase = CommandBufferState::Recording;
        buffer.usage = info.flags;
        buffer.uses.inherited = inherited;
        let binds: Vec<_> = inherited.into_iter().flatten().map(RecordedCommand::BindHeap).collect();
        binds.iter().for_each(|bind| buffer.uses.add(bind));
        Arc::make_mut(&mut buffer.commands).extend(binds);
        Ok(vk::Result::SUCCESS)
    })
}

pub(crate) unsafe extern "system" fn end(command_buffer: vk::CommandBuffer) -> vk::Result {
    on_command_buffer_checked(command_buffer, "vkEndCommandBuffer", |device| {
        let mut state = device.state.lock();
        let name = state.name(command_buffer);
        match state.commands.buffers.get_mut(&command_buffer) {
            Some(buffer)
                if buffer.phase == CommandBufferState::Recording && buffer.uses.rendering.is_some() =>
            {
                let text = format!("rendering in {name} has begun and not ended");
                Err(("VUID-vkEndCommandBuffer-commandBuffer-00060", text))
            }
            Some(buffer) if buffer.phase == CommandBufferState::Recording => {
                buffer.phase = CommandBufferState::Executable;
                Ok(vk::Result::SUCCESS)
            }
            _ => {
                Err(("VUID-vkEndCommandBuffer-commandBuffer-00059", format!("{name} is not being recorded")))
            }
        }
    })
}

pub(crate) unsafe extern "system" fn reset_buffer(
    command_buffer: vk::CommandBuffer,
    _: vk::CommandBufferResetFlags,
) -> vk::Result {
    on_command_buffer_checked(command_buffer, "vkResetCommandBuffer", |device| {
        let mut state = device.state.lock();
        let name = state.name(command_buffer);
        let resettable = state.resettable(command_buffer);
        let Some(buffer) = state.commands.buffers.get_mut(&command_buffer) else {
            return Ok(vk::Result::ERROR_VALIDATION_FAILED_EXT);
        };
        refuse_if!(buffer.pending > 0 => "VUID-vkResetCommandBuffer-commandBuffer-00045",
            "{name} is reset, and a submission still runs it");
        refuse_if!(!resettable => "VUID-vkResetCommandBuffer-commandBuffer-00046",
            "{name} is reset, and its pool was created without RESET_COMMAND_BUFFER");
        buffer.clear();
        Ok(vk::Result::SUCCESS)
    })
}

pub(crate) unsafe extern "system" fn execute_commands(
    command_buffer: vk::CommandBuffer,
    count: u32,
    p_buffers: *const vk::CommandBuffer,
) {
    // SAFETY: VUID-vkCmdExecuteCommands-pCommandBuffers-parameter.
    let handles = unsafe { chain::array(p_buffers, count) };
    record(command_buffer, "vkCmdExecuteCommands", |device, state| {
        let mut commands = Vec::new();
        let uses = |handle: vk::CommandBuffer| state.commands.buffers.get(&handle).map(|buffer| &buffer.uses);
        let bound = uses(command_buffer).map(|uses| uses.bound_heaps).unwrap_or_default();
        for &handle in handles {
            let inherited = uses(handle).map(|uses| uses.inherited).unwrap_or_default();
            heaps::check_inherited(&bound, &inherited)?;
            // Apart from heaps, secondary command buffers neither inherit bindings nor leave any.
            commands.push(RecordedCommand::ForgetBindings);
            commands.extend(secondary(device, state, handle));
            commands.push(RecordedCommand::ForgetBindings);
            commands.extend(inherited.into_iter().flatten().map(RecordedCommand::BindHeap));
        }
        Ok(commands)
    });
}

/// The current commands of a secondary command buffer, for a primary one to take over.
fn secondary(device: &DeviceObject, state: &DeviceState, handle: vk::CommandBuffer) -> Vec<RecordedCommand> {
    let name = state.name(handle);
    match state.commands.buffers.get(&handle) {
        None => {
            let text = format!("{name} was never allocated, or is freed");
            device.report("VUID-vkCmdExecuteCommands-pCommandBuffers-parameter", text);
        }
        Some(buffer) if buffer.level != vk::CommandBufferLevel::SECONDARY => {
            device.report("VUID-vkCmdExecuteCommands-pCommandBuffers-00088", format!("{name} is primary"))
        }
        Some(buffer) if buffer.phase != CommandBufferState::Executable => {
            let text = format!("{name} is not executable, but {:?}", buffer.phase);
            device.report("VUID-vkCmdExecuteCommands-pCommandBuffers-00089", text);
        }
        Some(buffer) => return buffer.commands.to_vec(),
    }
    Vec::new()
}

impl DeviceState {
    fn any_pending(&self, buffers: &HandleSet<vk::CommandBuffer>) -> bool {
        let mut buffers = buffers.iter().filter_map(|handle| self.commands.buffers.get(&handle));
        buffers.any(|buffer| buffer.pending > 0)
    }

    fn resettable(&self, handle: vk::CommandBuffer) -> bool {
        let pool =
            self.commands.buffers.get(&handle).and_then(|buffer| self.commands.pools.get(&buffer.pool));
        pool.is_some_and(|pool| pool.flags.contains(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER))
    }

    fn forget_command_buffer(&mut self, handle: vk::CommandBuffer) {
        self.commands.buffers.remove(&handle);
        self.names.remove(&handle.as_raw());
        registry::remove_command_buffer(handle);
    }
}
