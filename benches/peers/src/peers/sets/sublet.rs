//! Sublet's two allocators: persistent sets and transient sets.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use ash::vk;
use sublet::retire::{Clock, Ticket, TimelineId};
use sublet_descriptors::{
    DescriptorDevice, DescriptorDeviceCreateInfo, DescriptorFeatures, DescriptorSet, PersistentSets,
    PersistentSetsCreateInfo, SetLayout, TransientSets, TransientSetsCreateInfo,
};

use super::{FramePeer, IN_FLIGHT, LAYOUTS, PeerLayouts, SetPeer, bindings};

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

pub(crate) struct Transient<'a> {
    sets: TransientSets,
    layouts: Vec<SetLayout>,
    clock: Clock,
    timeline: TimelineId,
    /// The ticket of the frame that is being recorded.
    now: Option<Ticket>,
    slot: u32,
    _borrowed: &'a PeerLayouts<'a>,
}

impl<'a> Transient<'a> {
    pub(crate) fn new(layouts: &'a PeerLayouts<'a>) -> Result<Self, String> {
        let device = device(layouts)?;
        let sets = TransientSets::new(&device, &TransientSetsCreateInfo::default());
        let sets = sets.map_err(|error| error.to_string())?;
        let clock = Clock::new();
        let timeline = clock.add_timeline().map_err(|error| error.to_string())?;
        let layouts_of = set_layouts(layouts)?;
        Ok(Self { sets, layouts: layouts_of, clock, timeline, now: None, slot: 0, _borrowed: layouts })
    }

    fn end(&mut self) {
        if let Some(ticket) = self.now.take() {
            self.sets.flush(ticket).expect("one clock");
            self.clock.end_frame(ticket).expect("an open frame");
        }
    }
}

impl FramePeer for Transient<'_> {
    fn begin(&mut self) {
        self.end();
        self.slot = (self.slot + 1) % IN_FLIGHT as u32;
        self.now = Some(self.clock.begin_frame(self.timeline, self.slot));
        // A failed reset is tried again with the next frame.
        let _ = self.sets.collect(&self.clock);
    }

    fn allocate(&mut self, layout: usize) -> bool {
        // SAFETY: the layout is live.
        unsafe { self.sets.allocate(&self.layouts[layout]) }.is_ok()
    }

    fn finish(mut self) -> Result<(), String> {
        self.end();
        // SAFETY: nothing was ever submitted.
        unsafe { self.sets.destroy() };
        Ok(())
    }
}
