//! The driver alone, as in a program that knows its number of sets.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use ash::vk;

use super::{
    FramePeer, IN_FLIGHT, LAYOUTS, PeerLayouts, SetPeer, allocate_set, counts, create_pool, destroy_pool,
    free_set,
};

/// A sufficiently large pool for each layout. Sets are freed one by one.
pub(crate) struct RawFree<'a> {
    layouts: &'a PeerLayouts<'a>,
    pools: Vec<vk::DescriptorPool>,
}

impl<'a> RawFree<'a> {
    /// Creates pools for `sets` sets each.
    pub(crate) fn new(layouts: &'a PeerLayouts<'a>, sets: u32) -> Option<Self> {
        let flags = vk::DescriptorPoolCreateFlags::FREE_DESCRIPTOR_SET;
        let device = layouts.gpu().device();
        let pools: Option<_> =
            (0..LAYOUTS).map(|layout| create_pool(device, counts(layout), sets, flags)).collect();
        Some(Self { layouts, pools: pools? })
    }
}

impl SetPeer for RawFree<'_> {
    type Set = (usize, vk::DescriptorSet);

    fn allocate(&mut self, layout: usize) -> Option<Self::Set> {
        let set = allocate_set(self.layouts.gpu().device(), self.pools[layout], self.layouts.handle(layout))?;
        Some((layout, set))
    }

    fn free(&mut self, (layout, set): Self::Set) {
        free_set(self.layouts.gpu().device(), self.pools[layout], set);
    }

    fn finish(self) -> Result<(), String> {
        self.pools.iter().for_each(|&pool| destroy_pool(self.layouts.gpu().device(), pool));
        Ok(())
    }
}

/// A sufficiently large pool for all layouts per frame in flight. It is reset as a whole.
pub(crate) struct RawFrames<'a> {
    layouts: &'a PeerLayouts<'a>,
    pools: [vk::DescriptorPool; IN_FLIGHT],
    now: usize,
}

impl<'a> RawFrames<'a> {
    pub(crate) fn new(layouts: &'a PeerLayouts<'a>, sets: u32) -> Option<Self> {
        // The maximum of each type over all layouts.
        const EACH: super::LayoutCounts = &[
            (vk::DescriptorType::UNIFORM_BUFFER, 2),
            (vk::DescriptorType::COMBINED_IMAGE_SAMPLER, 4),
            (vk::DescriptorType::STORAGE_BUFFER, 3),
        ];
        let none = vk::DescriptorPoolCreateFlags::empty();
        let mut pools = [vk::DescriptorPool::null(); IN_FLIGHT];
        for pool in &mut pools {
            *pool = create_pool(layouts.gpu().device(), EACH, sets, none)?;
        }
        Some(Self { layouts, pools, now: 0 })
    }
}

impl FramePeer for RawFrames<'_> {
    fn begin(&mut self) {
        self.now = (self.now + 1) % IN_FLIGHT;
        let none = vk::DescriptorPoolResetFlags::empty();
        // SAFETY: the pool is live, and nothing was ever submitted with its sets. The call cannot fail.
        let _ = unsafe { self.layouts.gpu().device().reset_descriptor_pool(self.pools[self.now], none) };
    }

    fn allocate(&mut self, layout: usize) -> bool {
        let device = self.layouts.gpu().device();
        allocate_set(device, self.pools[self.now], self.layouts.handle(layout)).is_some()
    }

    fn finish(self) -> Result<(), String> {
        self.pools.iter().for_each(|&pool| destroy_pool(self.layouts.gpu().device(), pool));
        Ok(())
    }
}
