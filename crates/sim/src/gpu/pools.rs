//! Counts of what descriptor pools of the driver let through, or lost.

use std::sync::atomic::Ordering;

use crate::gpu::Gpu;

impl Gpu {
    /// The count of sets and descriptors that were allocated past what their pools were made for, over all pools since
    /// the GPU was made. A driver need not refuse them ([`DescriptorPoolPolicy`](crate::DescriptorPoolPolicy)). Bytes
    /// of inline uniform blocks count as descriptors.
    ///
    /// A program that counts what its pools hold leaves it at 0, whatever the driver.
    pub fn descriptor_pool_overruns(&self) -> u64 {
        self.gpu_state().descriptors.overruns.load(Ordering::Relaxed)
    }

    /// The count of sets whose memory a faulty driver has lost, of pools that are not destroyed yet: see
    /// [`DescriptorQuirk::RESET_LEAKS`](crate::DescriptorQuirk::RESET_LEAKS). Always 0 without that quirk.
    pub fn leaked_descriptor_sets(&self) -> u64 {
        self.gpu_state().descriptors.leaked.load(Ordering::Relaxed)
    }
}
