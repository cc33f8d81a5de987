//! The life of command pools and command buffers.

use std::sync::Arc;

use ash::vk;
use ash::vk::Handle as _;

use super::{Command, CommandBuffer, Phase, Pool, Uses, record};
use crate::entry::{call, on_command_buffer, on_device};
use crate::state::{Device, DeviceState};
use crate::{chain, registry};

pub(super) unsafe extern "system" fn create(
    device: vk::Device,
    p_info: *const vk::CommandPoolCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    p_pool: *mut vk::CommandPool,
) -> vk::Result {
    on_device(device, call!("vkCreateCommandPool"), |device| {
        // SAFETY: VUID-vkCreateCommandPool-pCreateInfo-parameter.
        let Some(info) = (unsafe { chain::input(p_info) }) else {
            return device.refuse("VUID-vkCreateCommandPool-pCreateInfo-parameter", "pCreateInfo is NULL");
        };
        if info.queue_family_index != 0 {
            let text = format!("queueFamilyIndex is {}, and there is one family", info.queue_family_index);
            return device.refuse("VUID-vkCreateCommandPool-queueFamilyIndex-01937", text);
        }
        let handle = device.hub.handle();
        let pool = Pool { flags: info.flags, buffers: Default::default() };
        device.state.lock().commands.pools.insert(handle, pool);
        // SAFETY: VUID-vkCreateCommandPool-pCommandPool-parameter.
        unsafe { chain::output(p_pool, handle) };
        vk::Result::SUCCESS
    })
}

pub(super) unsafe extern "system" fn destroy(
    device: vk::Device,
    pool: vk::CommandPool,
    _: *const vk::AllocationCallbacks<'_>,
) {
    on_device(device, call!("vkDestroyCommandPool"), |device| {
        if pool.is_null() {
            return;
        }
        let mut state = device.state.lock();
        let name = state.name(pool);
        let Some(found) = state.commands.pools.remove(&pool) else {
            return device
                .report("VUID-vkDestroyCommandPool-commandPool-parameter", state.missing(device, pool));
        };
        state.names.remove(&pool.as_raw());
        if state.any_pending(found.buffers.iter().copied()) {
            let text = format!("{name} is destroyed, and a submission still runs one of its command buffers");
            device.report("VUID-vkDestroyCommandPool-commandPool-00041", text);
        }
        for handle in found.buffers {
            state.forget_command_buffer(handle);
        }
    });
}

pub(super) unsafe extern "system" fn reset(
    device: vk::Device,
    pool: vk::CommandPool,
    _: vk::CommandPoolResetFlags,
) -> vk::Result {
    on_device(device, call!("vkResetCommandPool"), |device| {
        let mut state = device.state.lock();
        let name = state.name(pool);
        let Some(found) = state.commands.pools.get(&pool) else {
            let text = state.missing(device, pool);
            return device.refuse("VUID-vkResetCommandPool-commandPool-parameter", text);
        };
        let buffers = found.buffers.clone();
        if state.any_pending(buffers.iter().copied()) {
            let text = format!("{name} is reset, and a submission still runs one of its command buffers");
            return device.refuse("VUID-vkResetCommandPool-commandPool-00040", text);
        }
        for handle in buffers {
            if let Some(buffer) = state.commands.buffers.get_mut(&handle) {
                buffer.clear();
            }
        }
        vk::Result::SUCCESS
    })
}

pub(super) unsafe extern "system" fn trim(
    device: vk::Device,
    pool: vk::CommandPool,
    _: vk::CommandPoolTrimFlags,
) {
    on_device(device, call!("vkTrimCommandPool"), |device| {
        let state = device.state.lock();
        if !state.commands.pools.contains_key(&pool) {
            device.report("VUID-vkTrimCommandPool-commandPool-parameter", state.missing(device, pool));
        }
    });
}

pub(super) unsafe extern "system" fn allocate(
    device: vk::Device,
    p_info: *const vk::CommandBufferAllocateInfo<'_>,
    p_buffers: *mut vk::CommandBuffer,
) -> vk::Result {
    on_device(device, call!("vkAllocateCommandBuffers"), |device| {
        // SAFETY: VUID-vkAllocateCommandBuffers-pAllocateInfo-parameter.
        let Some(info) = (unsafe { chain::input(p_info) }) else {
            let text = "pAllocateInfo is NULL";
            return device.refuse("VUID-vkAllocateCommandBuffers-pAllocateInfo-parameter", text);
        };
        let mut state = device.state.lock();
        if !state.commands.pools.contains_key(&info.command_pool) {
            let text = state.missing(device, info.command_pool);
            return device.refuse("VUID-VkCommandBufferAllocateInfo-commandPool-parameter", text);
        }
        if info.command_buffer_count == 0 {
            let text = "commandBufferCount is 0";
            return device
                .refuse("VUID-vkAllocateCommandBuffers-pAllocateInfo::commandBufferCount-arraylength", text);
        }
        let handles: Vec<_> =
            (0..info.command_buffer_count).map(|_| registry::add_command_buffer(device)).collect();
        for (index, &handle) in handles.iter().enumerate() {
            let buffer = CommandBuffer {
                pool: info.command_pool,
                level: info.level,
                phase: Phase::Initial,
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
        vk::Result::SUCCESS
    })
}

pub(super) unsafe extern "system" fn free(
    device: vk::Device,
    pool: vk::CommandPool,
    count: u32,
    p_buffers: *const vk::CommandBuffer,
) {
    on_device(device, call!("vkFreeCommandBuffers"), |device| {
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
                pool.buffers.remove(&handle);
            }
            state.forget_command_buffer(handle);
        }
    });
}

pub(super) unsafe extern "system" fn begin(
    command_buffer: vk::CommandBuffer,
    p_info: *const vk::CommandBufferBeginInfo<'_>,
) -> vk::Result {
    on_command_buffer(command_buffer, call!("vkBeginCommandBuffer"), |device| {
        // SAFETY: VUID-vkBeginCommandBuffer-pBeginInfo-parameter.
        let Some(info) = (unsafe { chain::input(p_info) }) else {
            return device.refuse("VUID-vkBeginCommandBuffer-pBeginInfo-parameter", "pBeginInfo is NULL");
        };
        let mut state = device.state.lock();
        let name = state.name(command_buffer);
        let resettable = state.resettable(command_buffer);
        let Some(buffer) = state.commands.buffers.get_mut(&command_buffer) else {
            return vk::Result::ERROR_VALIDATION_FAILED_EXT;
        };
        let broken = if buffer.phase == Phase::Recording || buffer.pending > 0 {
            let what = if buffer.pending > 0 { "a submission still runs it" } else { "it is being recorded" };
            Some(("VUID-vkBeginCommandBuffer-commandBuffer-00049", format!("{name} is begun, and {what}")))
        } else if buffer.phase != Phase::Initial && !resettable {
            let text =
                format!("{name} is begun again, and its pool was created without RESET_COMMAND_BUFFER");
            Some(("VUID-vkBeginCommandBuffer-commandBuffer-00050", text))
        } else if buffer.level == vk::CommandBufferLevel::SECONDARY && info.p_inheritance_info.is_null() {
            let text = format!("{name} is secondary, and pInheritanceInfo is NULL");
            Some(("VUID-vkBeginCommandBuffer-commandBuffer-00051", text))
        } else {
            None
        };
        if let Some((vuid, text)) = broken {
            return device.refuse(vuid, text);
        }
        buffer.clear();
        buffer.phase = Phase::Recording;
        buffer.usage = info.flags;
        vk::Result::SUCCESS
    })
}

pub(super) unsafe extern "system" fn end(command_buffer: vk::CommandBuffer) -> vk::Result {
    on_command_buffer(command_buffer, call!("vkEndCommandBuffer"), |device| {
        let mut state = device.state.lock();
        let name = state.name(command_buffer);
        let buffer = state.commands.buffers.get_mut(&command_buffer);
        match buffer {
            Some(buffer) if buffer.phase == Phase::Recording => {
                buffer.phase = Phase::Executable;
                vk::Result::SUCCESS
            }
            _ => {
                let text = format!("{name} is not being recorded");
                device.refuse("VUID-vkEndCommandBuffer-commandBuffer-00059", text)
            }
        }
    })
}

pub(super) unsafe extern "system" fn reset_buffer(
    command_buffer: vk::CommandBuffer,
    _: vk::CommandBufferResetFlags,
) -> vk::Result {
    on_command_buffer(command_buffer, call!("vkResetCommandBuffer"), |device| {
        let mut state = device.state.lock();
        let name = state.name(command_buffer);
        let resettable = state.resettable(command_buffer);
        let Some(buffer) = state.commands.buffers.get_mut(&command_buffer) else {
            return vk::Result::ERROR_VALIDATION_FAILED_EXT;
        };
        if buffer.pending > 0 {
            let text = format!("{name} is reset, and a submission still runs it");
            return device.refuse("VUID-vkResetCommandBuffer-commandBuffer-00045", text);
        }
        if !resettable {
            let text = format!("{name} is reset, and its pool was created without RESET_COMMAND_BUFFER");
            return device.refuse("VUID-vkResetCommandBuffer-commandBuffer-00046", text);
        }
        buffer.clear();
        vk::Result::SUCCESS
    })
}

pub(super) unsafe extern "system" fn execute_commands(
    command_buffer: vk::CommandBuffer,
    count: u32,
    p_buffers: *const vk::CommandBuffer,
) {
    // SAFETY: VUID-vkCmdExecuteCommands-pCommandBuffers-parameter.
    let handles = unsafe { chain::array(p_buffers, count) };
    let rule = "VUID-vkCmdExecuteCommands-commandBuffer-recording";
    record(command_buffer, call!("vkCmdExecuteCommands"), rule, |device, state| {
        let mut commands = Vec::new();
        for &handle in handles {
            // Nothing that is bound is inherited, and nothing is left behind.
            commands.push(Command::ForgetBindings);
            commands.extend(secondary(device, state, handle));
            commands.push(Command::ForgetBindings);
        }
        Ok(commands)
    });
}

/// The commands of a secondary command buffer, which a primary one takes over as they are now.
fn secondary(device: &Device, state: &DeviceState, handle: vk::CommandBuffer) -> Vec<Command> {
    let name = state.name(handle);
    match state.commands.buffers.get(&handle) {
        None => {
            let text = format!("{name} was never allocated, or is freed");
            device.report("VUID-vkCmdExecuteCommands-pCommandBuffers-parameter", text);
        }
        Some(buffer) if buffer.level != vk::CommandBufferLevel::SECONDARY => {
            device.report("VUID-vkCmdExecuteCommands-pCommandBuffers-00088", format!("{name} is primary"))
        }
        Some(buffer) if buffer.phase != Phase::Executable => {
            let text = format!("{name} is not executable, but {:?}", buffer.phase);
            device.report("VUID-vkCmdExecuteCommands-pCommandBuffers-00089", text);
        }
        Some(buffer) => return buffer.commands.to_vec(),
    }
    Vec::new()
}

impl CommandBuffer {
    pub(crate) fn is_secondary(&self) -> bool {
        self.level == vk::CommandBufferLevel::SECONDARY
    }

    /// Back to the initial state.
    fn clear(&mut self) {
        self.phase = Phase::Initial;
        self.commands = Arc::default();
        self.uses = Uses::default();
    }
}

impl DeviceState {
    fn any_pending(&self, mut buffers: impl Iterator<Item = vk::CommandBuffer>) -> bool {
        buffers.any(|handle| self.commands.buffers.get(&handle).is_some_and(|buffer| buffer.pending > 0))
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
