//! The heap of this example: on one set that is written at any time, or, where the device cannot do that, on a copy of
//! it for each frame in flight.

use ash::vk;
use sublet::descriptor::{
    BufferDescriptor, ClassicStore, Descriptor, DescriptorDevice, DescriptorHeap, DescriptorKind,
    DescriptorRange, HeapCreateInfo, HeapKind, SetStore,
};
use sublet::retire::{Clock, Ticket};

use crate::support::{Result, note};

/// As many as the shader declares.
const SLOTS: u32 = 16;

#[allow(clippy::large_enum_variant, reason = "there is one of it")]
pub(crate) enum Heap {
    Bindless(DescriptorHeap<SetStore>),
    Copies(DescriptorHeap<ClassicStore>),
}

/// Calls whichever heap it is.
macro_rules! either {
    ($heap:expr, $it:ident => $call:expr) => {
        match $heap {
            Heap::Bindless($it) => $call,
            Heap::Copies($it) => $call,
        }
    };
}

impl Heap {
    /// `default` is what shaders find in slots that nobody has.
    ///
    /// # Safety
    /// The buffer of `default` outlives the heap.
    pub(crate) unsafe fn new(
        device: &DescriptorDevice,
        in_flight: u32,
        default: BufferDescriptor,
    ) -> Result<Self> {
        let info = HeapCreateInfo {
            slots: SLOTS,
            types: &[DescriptorKind::StorageBuffer],
            stages: vk::ShaderStageFlags::COMPUTE,
            name: "numbers",
            ..HeapCreateInfo::new(HeapKind::Resource)
        };
        match SetStore::new(device, &info) {
            Ok(store) => {
                note("The heap is one set, and is written while the device uses it.");
                Ok(Self::Bindless(DescriptorHeap::new(store)))
            }
            Err(why) => {
                note(&format!("The heap is a set for each frame in flight, because: {why}."));
                let default = [Descriptor::StorageBuffer(default)];
                // SAFETY: the caller's own promise.
                let store = unsafe { ClassicStore::new(device, &info, in_flight, &default) }?;
                Ok(Self::Copies(DescriptorHeap::new(store)))
            }
        }
    }

    pub(crate) fn layout(&self) -> vk::DescriptorSetLayout {
        either!(self, heap => heap.store().layout())
    }

    /// Room for `buffers` in a row, and their descriptors in it.
    ///
    /// # Safety
    /// The buffers live until the range is retired and collected.
    pub(crate) unsafe fn hold(&self, buffers: &[BufferDescriptor]) -> Result<DescriptorRange> {
        either!(self, heap => {
            let range = heap.allocate(u32::try_from(buffers.len())?)?;
            for (at, &buffer) in (0..).zip(buffers) {
                // SAFETY: no shader looks at slots that were just allocated.
                unsafe { heap.write(range, at, &Descriptor::StorageBuffer(buffer)) }?;
            }
            Ok(range)
        })
    }

    /// The range is not used after this frame.
    ///
    /// # Safety
    /// It is not, and the clock is told the truth of the frame.
    pub(crate) unsafe fn retire(&self, frame: Ticket, range: DescriptorRange) -> Result<()> {
        // SAFETY: the caller's own promise.
        Ok(either!(self, heap => unsafe { heap.retire(frame, range) })?)
    }

    /// Takes slots back that the device is done with.
    pub(crate) fn collect(&self, clock: &Clock) -> Result<()> {
        either!(self, heap => heap.collect(clock))?;
        Ok(())
    }

    /// Slots that are not free.
    pub(crate) fn used(&self) -> u32 {
        SLOTS - either!(self, heap => heap.statistics().free)
    }

    /// Binds the heap as set 1, with all that was written.
    ///
    /// # Safety
    /// The slot's last frame is done, and the command buffer is being recorded; set 1 of the layout is the heap.
    pub(crate) unsafe fn bind(&self, slot: u32, commands: vk::CommandBuffer, layout: vk::PipelineLayout) {
        let point = vk::PipelineBindPoint::COMPUTE;
        match self {
            // SAFETY: the caller's own promise.
            Self::Bindless(heap) => unsafe { heap.store().cmd_bind(commands, point, layout, 1) },
            Self::Copies(heap) => {
                // SAFETY: the caller's own promise.
                unsafe { heap.store().update(slot) };
                // SAFETY: the caller's own promise.
                unsafe { heap.store().cmd_bind(slot, commands, point, layout, 1) };
            }
        }
    }

    /// # Safety
    /// The device is idle.
    pub(crate) unsafe fn destroy(self) {
        match self {
            // SAFETY: the caller's own promise.
            Self::Bindless(heap) => unsafe { heap.into_store().destroy() },
            // SAFETY: the caller's own promise.
            Self::Copies(heap) => unsafe { heap.into_store().destroy() },
        }
    }
}
