//! The limits at which descriptor pools refuse, and the faults that some of them have.

/// The limits that a driver checks before it allocates from a descriptor pool.
///
/// Vulkan lets a driver go past what a pool was made for (section "Allocation of Descriptor Sets"), and so a program
/// that waits for `VK_ERROR_OUT_OF_POOL_MEMORY` may wait for ever while the driver's memory grows. The excess is
/// counted: [`Gpu::descriptor_pool_overruns`](crate::Gpu::descriptor_pool_overruns).
///
/// ```
/// use sublet_sim::{DescriptorPoolPolicy, profiles::Profile};
/// let policy = |name| Profile::by_name(name).unwrap().descriptor_pools;
/// assert_eq!(policy("lavapipe"), DescriptorPoolPolicy::NeverRefuses);
/// assert_eq!(policy("nvidia-h200"), DescriptorPoolPolicy::CountsSets);
/// assert_eq!(policy("intel-arc-a770"), DescriptorPoolPolicy::Strict);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DescriptorPoolPolicy {
    /// At `maxSets`, and at the count of descriptors of each type, of inline uniform bytes and of their bindings.
    Strict,
    /// At `maxSets` only; the driver does not look at types. NVIDIA's driver 580 was measured to do so.
    CountsSets,
    /// Never. Mesa's lavapipe 22.3 was measured to do so.
    NeverRefuses,
}

bitflags::bitflags! {
    /// Faults that descriptor pools of real drivers have or had. A simulated GPU has none of them unless it is asked
    /// to.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
    pub struct DescriptorQuirk: u32 {
        /// `vkResetDescriptorPool` gives the descriptors back, but not the sets, unless the pool was created with
        /// `VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT`: a pool ends when `maxSets` sets were ever allocated
        /// from it. Intel's driver 31.0.101.4502 for Windows does so. Policies that count no sets hide it.
        const SET_COUNT_SURVIVES_RESET = 1;
        /// A pool from which sets were freed answers `VK_ERROR_FRAGMENTED_POOL` from the 129th allocation since its
        /// creation or its last reset on, however much capacity it has left. Drivers for Mali GPUs do so.
        const FRAGMENTS = 2;
        /// `vkResetDescriptorPool` drops the memory of the sets that it frees, and only the pool's destruction gives it
        /// back; sets that are freed one by one lose nothing. Drivers 512.597 to 512.671 for Adreno 730 do so. It shows
        /// in [`Gpu::leaked_descriptor_sets`](crate::Gpu::leaked_descriptor_sets).
        const RESET_LEAKS = 4;
    }
}
