//! What is enabled on a device.
#![forbid(unsafe_code)]

/// What the program has enabled on its device, of what frames and lists make use of. With none of it they work on
/// Vulkan 1.0.
///
/// ```
/// use sublet_frame::Features;
/// let features = Features { timeline_semaphore: true, ..Features::default() };
/// assert!(!features.synchronization2);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Features {
    /// `synchronization2`, of Vulkan 1.3 or VK_KHR_synchronization2. Else barriers and submissions are the older calls,
    /// whose barriers have one pair of stages for all.
    pub synchronization2: bool,
    /// `timelineSemaphore`, of Vulkan 1.2 or VK_KHR_timeline_semaphore. Else there is a fence for each submission, and
    /// a binary semaphore for each wait between queues.
    pub timeline_semaphore: bool,
    /// `dynamicRendering`, of Vulkan 1.3 or VK_KHR_dynamic_rendering. Else lists draw in render
    /// passes, and pipelines are made with [`Frames::render_pass`](crate::Frames::render_pass).
    pub dynamic_rendering: bool,
    /// `separateDepthStencilLayouts`: depth and stencil have layouts of their own.
    pub separate_depth_stencil_layouts: bool,
    /// VK_KHR_maintenance1, which Vulkan 1.1 has anyway: viewports may be flipped.
    pub maintenance1: bool,
    /// `extendedDynamicState`, of VK_EXT_extended_dynamic_state; Vulkan 1.3 has it anyway. Commands may set which
    /// triangles are culled.
    pub extended_dynamic_state: bool,
    /// `depthBiasClamp`.
    pub depth_bias_clamp: bool,
    /// VK_EXT_debug_utils, of the instance: tools show the names of resources and the labels of lists.
    pub debug_utils: bool,
}

impl Features {
    /// What a simulated GPU has enabled.
    #[cfg(feature = "sim")]
    #[must_use]
    pub fn for_gpu(gpu: &sublet::sim::Gpu) -> Self {
        let extensions = gpu.extensions();
        let has = |name: &str| extensions.iter().any(|extension| extension == name);
        Self {
            synchronization2: has("VK_KHR_synchronization2"),
            timeline_semaphore: has("VK_KHR_timeline_semaphore"),
            dynamic_rendering: has("VK_KHR_dynamic_rendering"),
            separate_depth_stencil_layouts: false,
            maintenance1: has("VK_KHR_maintenance1"),
            extended_dynamic_state: false,
            depth_bias_clamp: false,
            debug_utils: true,
        }
    }
}
