//! The driver alone, as in a program that knows its number of sets.
use ash::vk;

use super::{LAYOUTS, PeerLayouts, SetPeer, allocate_set, counts, create_pool, destroy_pool, free_set};

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
