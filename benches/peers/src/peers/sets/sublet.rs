//! Sublet's persistent sets.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use ash::vk;
use sublet_descriptors::{
    DescriptorDevice, DescriptorDeviceCreateInfo, DescriptorFeatures, DescriptorSet, PersistentSets,
    PersistentSetsCreateInfo, SetLayout,
};

use super::{LAYOUTS, PeerLayouts, SetPeer, bindings};

/// Creates a device with only the features of its version.
fn device(layouts: &PeerLayouts<'_>) -> Result<DescriptorDevice, String> {
    let gpu = layouts.gpu();
    let info = DescriptorDeviceCreateInfo {
        features: DescriptorFeatures::empty(),
        ..DescriptorDeviceCreateInfo::new(
            gpu.instance(),
            gpu.device(),
            gpu.physical_device(),
            gpu.api_version(),
        )
    };
    // SAFETY: instance and device are live, and outlive everything made from the value: it borrows the layouts, and
    // they borrow the GPU.
    unsafe { DescriptorDevice::new(&info) }.map_err(|error| error.to_string())
}

fn set_layouts(layouts: &PeerLayouts<'_>) -> Result<Vec<SetLayout>, String> {
    let of = |layout| {
        let bindings = bindings(layout);
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        // SAFETY: the layout was made from it.
        unsafe { SetLayout::new(layouts.handle(layout), &info) }.map_err(|error| error.to_string())
    };
    (0..LAYOUTS).map(of).collect()
}

pub(crate) struct Persistent<'a> {
    sets: PersistentSets,
    layouts: Vec<SetLayout>,
    /// Keeps the layouts borrowed.
    _borrowed: &'a PeerLayouts<'a>,
}

impl<'a> Persistent<'a> {
    pub(crate) fn new(layouts: &'a PeerLayouts<'a>) -> Result<Self, String> {
        let info = PersistentSetsCreateInfo::new(&device(layouts)?);
        let sets = PersistentSets::new(&info);
        Ok(Self { sets, layouts: set_layouts(layouts)?, _borrowed: layouts })
    }
}

impl SetPeer for Persistent<'_> {
    type Set = DescriptorSet;

    fn allocate(&mut self, layout: usize) -> Option<DescriptorSet> {
        // SAFETY: the layout is live.
        unsafe { self.sets.allocate(&self.layouts[layout]) }.ok()
    }

    fn free(&mut self, set: DescriptorSet) {
        // SAFETY: nothing was ever submitted. The set belongs to this allocator.
        let _ = unsafe { self.sets.free(set) };
    }

    fn finish(self) -> Result<(), String> {
        // SAFETY: nothing runs on the null device.
        let leaks = unsafe { self.sets.destroy() };
        leaks.first().map_or(Ok(()), |leak| Err(format!("left: {leak}")))
    }
}
