//! Optional features of a device.

/// The features that the program has enabled on its device, as far as frames and lists use them. All are optional:
/// without any, Vulkan 1.0 suffices.
///
/// ```
/// use sublet_frame::Features;
/// let features = Features { timeline_semaphore: true, ..Features::default() };
/// assert!(!features.synchronization2);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Features {
    /// `synchronization2`, of Vulkan 1.3 or VK_KHR_synchronization2. Without it, barriers and submissions use the older
    /// calls, which have one pair of stage masks for all barriers.
    pub synchronization2: bool,
    /// `timelineSemaphore`, of Vulkan 1.2 or VK_KHR_timeline_semaphore. Without it, each submission has a fence, and
    /// each wait between queues a binary semaphore.
    pub timeline_semaphore: bool,
    /// `dynamicRendering`, of Vulkan 1.3 or VK_KHR_dynamic_rendering. Without it, lists draw in render passes, and
    /// pipelines use [`Frames::render_pass`](crate::Frames::render_pass).
    pub dynamic_rendering: bool,
    /// `separateDepthStencilLayouts`: depth and stencil have separate layouts.
    pub separate_depth_stencil_layouts: bool,
    /// VK_KHR_maintenance1, included in Vulkan 1.1: viewports may have a negative height.
    pub maintenance1: bool,
    /// `extendedDynamicState`, of VK_EXT_extended_dynamic_state; included in Vulkan 1.3. Commands can set the cull mode
    /// and the front face.
    pub extended_dynamic_state: bool,
    /// `depthBiasClamp`.
    pub depth_bias_clamp: bool,
    /// VK_EXT_debug_utils, of the instance: tools show resource names and list labels.
    pub debug_utils: bool,
}

impl Features {
    /// Returns the features that a simulated GPU has enabled.
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
