//! Driver functions with a core and an extension variant, or whose errors are mapped.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ffi::CStr;

use ash::vk;
use sublet::device::DriverError;

use super::Features;
use crate::track::BarrierBatch;

/// Source of the functions of a feature.
enum EntryPoints<K> {
    /// Not enabled.
    None,
    /// Core Vulkan.
    Core,
    /// An extension.
    Extension(K),
}

/// A semaphore in a submission. Binary semaphores ignore `value`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubmitSemaphore {
    pub(crate) semaphore: vk::Semaphore,
    pub(crate) value: u64,
    pub(crate) stages: vk::PipelineStageFlags2,
}

/// Buffers for submission arguments. Kept to avoid allocations.
#[derive(Default)]
pub(crate) struct SubmitScratch {
    infos: Vec<vk::CommandBufferSubmitInfo<'static>>,
    waits: Vec<vk::SemaphoreSubmitInfo<'static>>,
    signals: Vec<vk::SemaphoreSubmitInfo<'static>>,
    semaphores: [Vec<vk::Semaphore>; 2],
    values: [Vec<u64>; 2],
    stages: Vec<vk::PipelineStageFlags>,
}

pub(crate) struct Api {
    device: ash::Device,
    sync2: EntryPoints<ash::khr::synchronization2::Device>,
    timeline: EntryPoints<ash::khr::timeline_semaphore::Device>,
    rendering: EntryPoints<ash::khr::dynamic_rendering::Device>,
    dynamic: EntryPoints<ash::ext::extended_dynamic_state::Device>,
    debug: Option<ash::ext::debug_utils::Device>,
    flips_viewports: bool,
    clamps_depth_bias: bool,
    /// True if the driver has render passes. Compute-only drivers may lack them.
    has_render_passes: bool,
}

fn named<T>(call: &'static str, result: Result<T, vk::Result>) -> Result<T, DriverError> {
    result.map_err(|result| DriverError { call, result })
}

impl Api {
    /// # Safety
    /// Instance and device outlive the value, and were created with this version and these features.
    pub(crate) unsafe fn new(
        instance: &ash::Instance,
        device: &ash::Device,
        version: u32,
        features: Features,
    ) -> Self {
        let core = |minor| vk::api_version_minor(version) >= minor || vk::api_version_major(version) > 1;
        let sync2 = match features.synchronization2 {
            false => EntryPoints::None,
            true if core(3) => EntryPoints::Core,
            true => EntryPoints::Extension(ash::khr::synchronization2::Device::new(instance, device)),
        };
        let timeline = match features.timeline_semaphore {
            false => EntryPoints::None,
            true if core(2) => EntryPoints::Core,
            true => EntryPoints::Extension(ash::khr::timeline_semaphore::Device::new(instance, device)),
        };
        let rendering = match features.dynamic_rendering {
            false => EntryPoints::None,
            true if core(3) => EntryPoints::Core,
            true => EntryPoints::Extension(ash::khr::dynamic_rendering::Device::new(instance, device)),
        };
        let dynamic = match features.extended_dynamic_state {
            _ if core(3) => EntryPoints::Core,
            true => EntryPoints::Extension(ash::ext::extended_dynamic_state::Device::new(instance, device)),
            false => EntryPoints::None,
        };
        let debug = features.debug_utils.then(|| ash::ext::debug_utils::Device::new(instance, device));
        // SAFETY: instance and device are live, and the device belongs to the instance.
        let passes =
            unsafe { instance.get_device_proc_addr(device.handle(), c"vkCreateRenderPass".as_ptr()) };
        Self {
            device: device.clone(),
            sync2,
            timeline,
            rendering,
            dynamic,
            debug,
            flips_viewports: core(1) || features.maintenance1,
            clamps_depth_bias: features.depth_bias_clamp,
            has_render_passes: passes.is_some(),
        }
    }

    pub(crate) fn device(&self) -> &ash::Device {
        &self.device
    }

    pub(crate) fn has_timeline(&self) -> bool {
        !matches!(self.timeline, EntryPoints::None)
    }

    pub(crate) fn has_dynamic_rendering(&self) -> bool {
        !matches!(self.rendering, EntryPoints::None)
    }

    pub(crate) fn has_render_passes(&self) -> bool {
        self.has_render_passes
    }

    /// Returns true if viewports may have a negative height.
    pub(crate) fn flips_viewports(&self) -> bool {
        self.flips_viewports
    }

    pub(crate) fn clamps_depth_bias(&self) -> bool {
        self.clamps_depth_bias
    }

    /// Returns `None` if the command is not available.
    ///
    /// # Safety
    /// The command buffer is being recorded by this thread alone, for a queue that draws.
    pub(crate) unsafe fn set_cull_mode(
        &self,
        commands: vk::CommandBuffer,
        mode: vk::CullModeFlags,
    ) -> Option<()> {
        match &self.dynamic {
            EntryPoints::None => return None,
            // SAFETY: the caller's promise.
            EntryPoints::Core => unsafe { self.device.cmd_set_cull_mode(commands, mode) },
            // SAFETY: the caller's promise; the feature is enabled.
            EntryPoints::Extension(dynamic) => unsafe { dynamic.cmd_set_cull_mode(commands, mode) },
        }
        Some(())
    }

    /// Returns `None` if the command is not available.
    ///
    /// # Safety
    /// As [`set_cull_mode`](Self::set_cull_mode).
    pub(crate) unsafe fn set_front_face(
        &self,
        commands: vk::CommandBuffer,
        face: vk::FrontFace,
    ) -> Option<()> {
        match &self.dynamic {
            EntryPoints::None => return None,
            // SAFETY: the caller's promise.
            EntryPoints::Core => unsafe { self.device.cmd_set_front_face(commands, face) },
            // SAFETY: the caller's promise; the feature is enabled.
            EntryPoints::Extension(dynamic) => unsafe { dynamic.cmd_set_front_face(commands, face) },
        }
        Some(())
    }

    /// Sets the debug name of an object, if VK_EXT_debug_utils is enabled.
    ///
    /// # Safety
    /// The object is live, and no other thread uses it during the call (host synchronization of
    /// `VkDebugUtilsObjectNameInfoEXT::objectHandle`).
    pub(crate) unsafe fn set_name<H: vk::Handle>(&self, object: H, name: &CStr) -> Result<(), DriverError> {
        let Some(debug) = &self.debug else { return Ok(()) };
        let info = vk::DebugUtilsObjectNameInfoEXT::default().object_handle(object).object_name(name);
        // SAFETY: the caller's promise; the extension is enabled.
        named("vkSetDebugUtilsObjectNameEXT", unsafe { debug.set_debug_utils_object_name(&info) })
    }

    /// Begins a command label, or ends the most recent one.
    ///
    /// # Safety
    /// Only this thread records the command buffer. A label that ends was begun in it
    /// (VUID-vkCmdEndDebugUtilsLabelEXT-commandBuffer-01913).
    pub(crate) unsafe fn label(&self, commands: vk::CommandBuffer, begin: Option<&CStr>) {
        let Some(debug) = &self.debug else { return };
        match begin {
            Some(name) => {
                let info = vk::DebugUtilsLabelEXT::default().label_name(name);
                // SAFETY: the caller's promise; the extension is enabled.
                unsafe { debug.cmd_begin_debug_utils_label(commands, &info) };
            }
            // SAFETY: as above.
            None => unsafe { debug.cmd_end_debug_utils_label(commands) },
        }
    }

    /// # Safety
    /// The device is live.
    pub(crate) unsafe fn create_semaphore(&self, timeline: bool) -> Result<vk::Semaphore, DriverError> {
        let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let mut info = vk::SemaphoreCreateInfo::default();
        if timeline {
            info = info.push_next(&mut kind);
        }
        // SAFETY: the device is live, and timeline semaphores are requested only if enabled.
        named("vkCreateSemaphore", unsafe { self.device.create_semaphore(&info, None) })
    }

    /// # Safety
    /// The device is live.
    pub(crate) unsafe fn create_fence(&self) -> Result<vk::Fence, DriverError> {
        // SAFETY: the device is live: the caller's promise.
        named("vkCreateFence", unsafe { self.device.create_fence(&vk::FenceCreateInfo::default(), None) })
    }

    /// # Safety
    /// The semaphore is a live timeline semaphore of the device.
    pub(crate) unsafe fn counter(&self, semaphore: vk::Semaphore) -> Result<u64, DriverError> {
        let counter = match &self.timeline {
            // SAFETY: the caller's promise: it is a live timeline semaphore.
            EntryPoints::Extension(timeline) => unsafe { timeline.get_semaphore_counter_value(semaphore) },
            // SAFETY: as above.
            _ => unsafe { self.device.get_semaphore_counter_value(semaphore) },
        };
        named("vkGetSemaphoreCounterValue", counter)
    }

    /// Waits until the semaphore has the value.
    ///
    /// # Safety
    /// As [`counter`](Self::counter).
    pub(crate) unsafe fn wait(&self, semaphore: vk::Semaphore, value: u64) -> Result<(), DriverError> {
        let (semaphores, values) = ([semaphore], [value]);
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        let waited = match &self.timeline {
            // SAFETY: the caller's promise: it is a live timeline semaphore.
            EntryPoints::Extension(timeline) => unsafe { timeline.wait_semaphores(&info, u64::MAX) },
            // SAFETY: as above.
            _ => unsafe { self.device.wait_semaphores(&info, u64::MAX) },
        };
        named("vkWaitSemaphores", waited)
    }

    /// Records barriers in one call.
    ///
    /// # Safety
    /// Only this thread records the command buffer, outside of a render pass. All objects of the barriers are live.
    pub(crate) unsafe fn barrier(&self, commands: vk::CommandBuffer, batch: &BarrierBatch) {
        let info = batch.dependency_info();
        match &self.sync2 {
            // SAFETY: the caller's promise; the feature is enabled.
            EntryPoints::Core => unsafe { self.device.cmd_pipeline_barrier2(commands, &info) },
            // SAFETY: as above.
            EntryPoints::Extension(sync2) => unsafe { sync2.cmd_pipeline_barrier2(commands, &info) },
            EntryPoints::None => {
                let old = batch.to_barrier1();
                let (src, dst, flags) = (old.src_stages, old.dst_stages, vk::DependencyFlags::empty());
                // SAFETY: the caller's promise.
                unsafe {
                    self.device.cmd_pipeline_barrier(
                        commands,
                        src,
                        dst,
                        flags,
                        &old.memory,
                        &old.buffers,
                        &old.images,
                    );
                };
            }
        }
    }

    /// # Safety
    /// See `vkCmdBeginRendering`; the feature is enabled.
    pub(crate) unsafe fn begin_rendering(&self, commands: vk::CommandBuffer, info: &vk::RenderingInfo<'_>) {
        match &self.rendering {
            // SAFETY: the caller's promise.
            EntryPoints::Extension(rendering) => unsafe { rendering.cmd_begin_rendering(commands, info) },
            // SAFETY: the caller's promise.
            _ => unsafe { self.device.cmd_begin_rendering(commands, info) },
        }
    }

    /// Begins a render pass of one subpass.
    ///
    /// # Safety
    /// See `vkCmdBeginRenderPass`; dynamic rendering is not enabled.
    pub(crate) unsafe fn begin_pass(&self, commands: vk::CommandBuffer, info: &vk::RenderPassBeginInfo<'_>) {
        let inline = vk::SubpassContents::INLINE;
        // SAFETY: the caller's promise.
        unsafe { self.device.cmd_begin_render_pass(commands, info, inline) };
    }

    /// # Safety
    /// See `vkCmdEndRendering`, or `vkCmdEndRenderPass` without dynamic rendering.
    pub(crate) unsafe fn end_rendering(&self, commands: vk::CommandBuffer) {
        match &self.rendering {
            // SAFETY: the caller's promise.
            EntryPoints::None => unsafe { self.device.cmd_end_render_pass(commands) },
            // SAFETY: the caller's promise.
            EntryPoints::Core => unsafe { self.device.cmd_end_rendering(commands) },
            // SAFETY: the caller's promise.
            EntryPoints::Extension(rendering) => unsafe { rendering.cmd_end_rendering(commands) },
        }
    }

    /// Submits command buffers in this order.
    ///
    /// # Safety
    /// See `vkQueueSubmit2`: only this thread uses the queue, all handles are live, command buffers are executable and
    /// not pending. Binary semaphores will be signaled, and are not signaled twice.
    pub(crate) unsafe fn submit(
        &self,
        queue: vk::Queue,
        commands: &[vk::CommandBuffer],
        waits: &[SubmitSemaphore],
        signals: &[SubmitSemaphore],
        fence: vk::Fence,
        scratch: &mut SubmitScratch,
    ) -> Result<(), DriverError> {
        if matches!(self.sync2, EntryPoints::None) {
            // SAFETY: the caller's own promise.
            return unsafe { self.submit1(queue, commands, waits, signals, fence, scratch) };
        }
        let SubmitScratch { infos, waits: wait_infos, signals: signal_infos, .. } = scratch;
        let point = |point: &SubmitSemaphore| {
            vk::SemaphoreSubmitInfo::default()
                .semaphore(point.semaphore)
                .value(point.value)
                .stage_mask(point.stages)
        };
        infos.clear();
        infos.extend(commands.iter().map(|&one| vk::CommandBufferSubmitInfo::default().command_buffer(one)));
        wait_infos.clear();
        wait_infos.extend(waits.iter().map(point));
        signal_infos.clear();
        signal_infos.extend(signals.iter().map(point));
        let submits = [vk::SubmitInfo2::default()
            .wait_semaphore_infos(wait_infos)
            .command_buffer_infos(infos)
            .signal_semaphore_infos(signal_infos)];
        let submitted = match &self.sync2 {
            // SAFETY: the caller's promise; the feature is enabled.
            EntryPoints::Extension(sync2) => unsafe { sync2.queue_submit2(queue, &submits, fence) },
            // SAFETY: as above.
            _ => unsafe { self.device.queue_submit2(queue, &submits, fence) },
        };
        named("vkQueueSubmit2", submitted)
    }

    /// # Safety
    /// As [`submit`](Self::submit).
    unsafe fn submit1(
        &self,
        queue: vk::Queue,
        commands: &[vk::CommandBuffer],
        waits: &[SubmitSemaphore],
        signals: &[SubmitSemaphore],
        fence: vk::Fence,
        scratch: &mut SubmitScratch,
    ) -> Result<(), DriverError> {
        let SubmitScratch { semaphores, values, stages, .. } = scratch;
        for (points, (semaphores, values)) in
            [waits, signals].iter().zip(semaphores.iter_mut().zip(values.iter_mut()))
        {
            semaphores.clear();
            semaphores.extend(points.iter().map(|point| point.semaphore));
            values.clear();
            values.extend(points.iter().map(|point| point.value));
        }
        stages.clear();
        stages.extend(waits.iter().map(|point| match crate::track::old_stages(point.stages) {
            // The older call needs a wait stage.
            none if none.is_empty() => vk::PipelineStageFlags::ALL_COMMANDS,
            stages => stages,
        }));
        let mut timeline = vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(&values[0])
            .signal_semaphore_values(&values[1]);
        let mut info = vk::SubmitInfo::default()
            .command_buffers(commands)
            .wait_semaphores(&semaphores[0])
            .wait_dst_stage_mask(stages)
            .signal_semaphores(&semaphores[1]);
        if self.has_timeline() {
            info = info.push_next(&mut timeline);
        }
        // SAFETY: the caller's promise.
        named("vkQueueSubmit", unsafe { self.device.queue_submit(queue, &[info], fence) })
    }
}
