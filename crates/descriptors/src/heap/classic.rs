//! The store for devices without descriptor indexing: one copy of the set for each frame in flight.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::collections::TryReserveError;
use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use parking_lot::Mutex;

use super::super::batch::WriteBatch;
use super::super::counts::DescriptorKind;
use super::super::descriptor::Descriptor;
use super::super::device::DescriptorDevice;
use super::super::features::DescriptorFeatures;
use super::arrays::{HeapLayout, LayoutArrays, LayoutPurpose, layout_getters};
use super::create_info::{CreateHeapError, HeapArrays, HeapCreateInfo};
use super::current::{CurrentParts, of_current_parts};
use super::error::HeapWriteError;
use super::sets::HeapSets;
use super::slot::{HeapSlot, HostSlot};
use super::store::HeapStore;
use crate::driver::BindTarget;
use sublet_engines::cast::{index, narrow};

/// Ordinary descriptor sets with arrays, for devices on which a set must not be written while it is in use. There is
/// one copy for each frame in flight.
///
/// [`DescriptorHeap::write`](super::DescriptorHeap::write) stores the descriptor on the host. Once per frame,
/// [`update`](Self::update) writes the changes into the frame's copy, which the GPU no longer uses;
/// [`cmd_bind`](Self::cmd_bind) binds it. Later writes are visible from the next frame on. A changed slot costs one
/// descriptor write for each copy; an unchanged slot costs nothing.
///
/// On such devices, every slot of a shader's array must hold a descriptor, even if the shader does not use it.
/// Unallocated slots therefore hold a default for their type, for example a white texture or a buffer of zeros. A slot
/// returns to the default when its range is retired, so the objects of the range may be destroyed once the ticket is
/// done, as with other stores. Retire a range only after the last `update` that must show it; otherwise this frame's
/// shaders already see the default.
///
/// Transient slots ([`allocate_transient`](super::DescriptorHeap::allocate_transient)) return to the default when they
/// are collected. The copies of frames that were updated earlier still contain their descriptors, used or not. Destroy
/// the objects only after those frames are done as well.
///
/// Shaders declare one array for each type, with exactly the heap's size:
/// `layout(set = 0, binding = 0) uniform texture2D textures[64];`. Without `shaderSampledImageArrayDynamicIndexing` and
/// its siblings, indices must be constant. Indices must never differ within a draw. Such devices allow few descriptors
/// in a set ([`CreateHeapError::Limit`] reports the maximum): use small heaps.
///
/// The store has [`HeapCreateInfo::max_slots`] slots from the start, because shaders declare that size, unless the
/// layout may change ([`HeapGrowth::ChangeLayout`](super::HeapGrowth::ChangeLayout)). Then it grows: the copies of the
/// larger set are empty until their frame's [`update`](Self::update), which writes all slots.
///
/// ```
/// use ash::vk;
/// use sublet_descriptors::*;
/// # use sublet::sim;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// # let sampler = unsafe { gpu.device().create_sampler(&vk::SamplerCreateInfo::default(), None) }?;
/// let info = HeapCreateInfo { slots: 8, ..HeapCreateInfo::new(HeapKind::Sampler) };
/// // SAFETY: the sampler is live until the store is destroyed.
/// let store = unsafe { ClassicStore::new(&device, &info, 2, &[Descriptor::Sampler(sampler)]) }?;
/// let heap = DescriptorHeap::new(store);
/// let range = heap.allocate(1)?;
/// // SAFETY: the sampler is live.
/// unsafe { heap.write(range.id(), 0, &Descriptor::Sampler(sampler)) }?;
/// // SAFETY: nothing was submitted.
/// unsafe { heap.store().update(0) };
/// // SAFETY: as above.
/// unsafe { heap.into_store().destroy() };
/// # unsafe { gpu.device().destroy_sampler(sampler, None) };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "the sets live until they are destroyed"]
pub struct ClassicStore {
    device: DescriptorDevice,
    arrays: LayoutArrays,
    name: Box<str>,
    copies: u32,
    /// Indexed by binding.
    defaults: Box<[Descriptor]>,
    current: CurrentParts<Copies>,
    /// Protects the writes of one update, and its set; taken before the current copies and their content. Held during
    /// the driver call.
    writes: Mutex<WriteBatch>,
}

/// One set for each frame, and their intended content.
#[derive(Debug)]
struct Copies {
    sets: HeapSets,
    /// Protects the content; taken before that of the smaller copies. Never held over a driver call.
    content: Mutex<CopyContent>,
}

/// A slot of one of the arrays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ArraySlot {
    binding: u32,
    index: u32,
}

/// The intended content of the copies, and the slots that are not up to date.
///
/// Invariant: a slot is in a copy's list exactly once if it has the copy's bit, and otherwise not at all.
#[derive(Debug)]
struct CopyContent {
    slots: u32,
    /// Indexed by binding.
    defaults: Box<[Descriptor]>,
    /// Indexed by binding, then by slot.
    descriptors: Vec<Descriptor>,
    /// Indexed like `descriptors`: one bit for each copy that is not up to date.
    stale: Vec<u32>,
    /// Indexed by copy.
    lists: Vec<Vec<ArraySlot>>,
}

/// Collects `count` values. Fails before the first if the host is out of memory.
fn collect<T>(count: usize, values: impl Iterator<Item = T>) -> Result<Vec<T>, TryReserveError> {
    let mut all = Vec::new();
    all.try_reserve_exact(count)?;
    all.extend(values);
    Ok(all)
}

impl CopyContent {
    /// Creates a content in which all slots hold their defaults. No copy is up to date.
    fn new(slots: u32, defaults: &[Descriptor], copies: u32) -> Result<Self, TryReserveError> {
        let count = index(slots).saturating_mul(defaults.len());
        let places = || {
            (0..narrow(defaults.len()))
                .flat_map(|binding| (0..slots).map(move |index| ArraySlot { binding, index }))
        };
        let all = u32::MAX >> (u32::BITS - copies);
        let mut lists = Vec::new();
        for _ in 0..copies {
            lists.push(collect(count, places())?);
        }
        let descriptors =
            collect(count, defaults.iter().flat_map(|&default| std::iter::repeat_n(default, index(slots))))?;
        let stale = collect(count, std::iter::repeat_n(all, count))?;
        Ok(Self { slots, defaults: defaults.into(), descriptors, stale, lists })
    }

    /// Copies the slots of a smaller content. All copies of this one are out of date.
    fn take_over(&mut self, smaller: &Self) {
        let from = smaller.descriptors.chunks_exact(index(smaller.slots));
        for (from, to) in from.zip(self.descriptors.chunks_exact_mut(index(self.slots))) {
            to[..from.len()].copy_from_slice(from);
        }
    }

    fn at(&self, place: ArraySlot) -> usize {
        index(place.binding) * index(self.slots) + index(place.index)
    }

    fn set(&mut self, place: ArraySlot, descriptor: Descriptor) {
        let at = self.at(place);
        self.descriptors[at] = descriptor;
        for (copy, list) in self.lists.iter_mut().enumerate() {
            if self.stale[at] & 1 << copy == 0 {
                list.push(place);
            }
        }
        self.stale[at] = u32::MAX >> (u32::BITS - narrow(self.lists.len()));
    }

    fn reset(&mut self, index: u32) {
        for binding in 0..narrow(self.defaults.len()) {
            let default = self.defaults[sublet_engines::cast::index(binding)];
            let place = ArraySlot { binding, index };
            if self.descriptors[self.at(place)] != default {
                self.set(place, default);
            }
        }
    }

    /// Moves the pending changes of a copy into `writes`, and marks the copy as up to date. Returns the number of
    /// descriptors.
    fn take(&mut self, copy: usize, writes: &mut WriteBatch) -> u32 {
        writes.clear();
        let mut list = std::mem::take(&mut self.lists[copy]);
        let count = narrow(list.len());
        for place in list.drain(..) {
            let at = self.at(place);
            self.stale[at] &= !(1 << copy);
            writes.push(place.binding, place.index, &self.descriptors[at]);
        }
        self.lists[copy] = list;
        count
    }
}

impl ClassicStore {
    /// Creates layout, pool and `copies` sets: one for each frame in flight, 1 to 32.
    ///
    /// `defaults` has a descriptor for each type of the heap.
    ///
    /// # Errors
    /// [`CreateHeapError`]: limits, a type without a default, or a driver error. Nothing is left behind.
    /// [`HeapArrays::One`] is rejected, because shaders cannot declare it.
    ///
    /// # Safety
    /// The objects in the defaults are live, belong to this device, and outlive the store.
    pub unsafe fn new(
        device: &DescriptorDevice,
        info: &HeapCreateInfo<'_>,
        copies: u32,
        defaults: &[Descriptor],
    ) -> Result<Self, CreateHeapError> {
        let defaults = Self::check(info, copies, defaults)?;
        if info.arrays == HeapArrays::One {
            let missing = DescriptorFeatures::PARTIALLY_BOUND;
            return Err(CreateHeapError::Unsupported { missing });
        }
        let info = HeapCreateInfo { arrays: HeapArrays::PerType, ..*info };
        let arrays = LayoutArrays::new(device, &info, LayoutPurpose::Classic)?;
        let layout = HeapLayout::create(device, &arrays, arrays.slots)?;
        let all = Self::make(device, &arrays, layout, info.name, (copies, &defaults), arrays.slots)?;
        let current = CurrentParts::new(all, arrays.slots, arrays.max_slots);
        let (device, name, writes) = (device.clone(), info.name.into(), Mutex::default());
        Ok(Self { device, arrays, name, copies, defaults: defaults.into(), current, writes })
    }

    /// Creates `copies` sets of `slots` slots, with the defaults as content. On failure nothing is left behind,
    /// including the layout.
    fn make(
        device: &DescriptorDevice,
        arrays: &LayoutArrays,
        layout: Arc<HeapLayout>,
        name: &str,
        (copies, defaults): (u32, &[Descriptor]),
        slots: u32,
    ) -> Result<Copies, CreateHeapError> {
        // The limits were checked before, so they bound the host memory.
        let Ok(content) = CopyContent::new(slots, defaults, copies) else {
            // SAFETY: the layout belongs to this device, and nothing was created from it.
            unsafe { layout.release(device) };
            return Err(CreateHeapError::HostMemory { slots, types: defaults.len(), copies });
        };
        let sets = HeapSets::create(device, arrays, layout, name, copies, slots)?;
        Ok(Copies { sets, content: Mutex::new(content) })
    }

    /// Checks everything that does not depend on the device. Returns the defaults in the order of the types.
    pub(super) fn check(
        info: &HeapCreateInfo<'_>,
        copies: u32,
        defaults: &[Descriptor],
    ) -> Result<Vec<Descriptor>, CreateHeapError> {
        if !(1..=32).contains(&copies) {
            return Err(CreateHeapError::Copies { copies });
        }
        let default_of = |&kind: &DescriptorKind| {
            let found = defaults.iter().find(|default| default.kind() == kind);
            found.copied().ok_or(CreateHeapError::NoDefault { kind })
        };
        info.actual_types().iter().map(default_of).collect()
    }

    layout_getters!(sets.layout);

    /// Returns the number of copies of the set.
    #[must_use]
    pub fn copies(&self) -> u32 {
        self.copies
    }

    fn copy(&self, frame: u32) -> usize {
        index(frame % self.copies)
    }

    /// Returns the copy of a frame. `frame` is a running count or the frame's slot; it is taken modulo the number of
    /// copies.
    #[must_use]
    pub fn set(&self, frame: u32) -> vk::DescriptorSet {
        self.current.with(|all, _| all.sets.all[self.copy(frame)])
    }

    /// Writes all changes since the last update into the frame's copy, with at most one driver call. Returns the number
    /// of written descriptors. Call it once per frame, before recording anything that binds the copy.
    ///
    /// # Safety
    /// 1. The device is done with all submissions that use the copy, and no command buffer that binds it will be
    ///    submitted.
    /// 2. The objects in the slots' descriptors are live.
    pub unsafe fn update(&self, frame: u32) -> u32 {
        let copy = self.copy(frame);
        let mut writes = self.writes.lock();
        self.current.with(|all, _| {
            let count = all.content.lock().take(copy, &mut writes);
            if count != 0 {
                writes.show(all.sets.all[copy], |writes| {
                    // SAFETY: slots and bindings exist in the layout, and each binding has the type that is written to
                    // it (VUID-VkWriteDescriptorSet-dstBinding-00315, -dstArrayElement-00321, -descriptorType-00319).
                    // The caller promises that the objects are live and that the device does not use the set. Nobody
                    // else writes it, because `self.writes` is locked.
                    unsafe { self.device.driver().update_sets(writes, &[]) };
                });
            }
            count
        })
    }

    /// Binds the frame's copy.
    ///
    /// # Safety
    /// This thread alone records the command buffer. [`update`](Self::update) was called for the frame since the heap
    /// last grew. `layout` has [`Self::layout`] as its set number `set`.
    pub unsafe fn cmd_bind(
        &self,
        frame: u32,
        commands: vk::CommandBuffer,
        bind_point: vk::PipelineBindPoint,
        layout: vk::PipelineLayout,
        set: u32,
    ) {
        let target = BindTarget { commands, bind_point, layout, set };
        // SAFETY: the set is live; the caller promises the rest about command buffer and layout.
        unsafe { self.device.driver().cmd_bind_sets(&target, &[self.set(frame)], &[]) };
    }

    /// Destroys sets, pool and layout. Without this call they are leaked, with a `tracing` warning.
    ///
    /// # Safety
    /// The device is done with all submissions that use the sets.
    pub unsafe fn destroy(self) {
        let Self { device, current, .. } = self;
        // SAFETY: the sets belong to this device, and the caller promises that it is done with all of them.
        current.into_each(|all| unsafe { all.sets.destroy(&device) });
    }
}

impl HeapStore for ClassicStore {
    of_current_parts!(arrays, |store, all| all.sets.destroy(&store.device));

    /// Creates one layout, one pool, and a set for each frame. Each frame's `update` then writes all slots.
    fn grow(&self, slots: u32) -> Result<(), CreateHeapError> {
        let make = || {
            let layout = HeapLayout::create(&self.device, &self.arrays, slots)?;
            Self::make(&self.device, &self.arrays, layout, &self.name, (self.copies, &self.defaults), slots)
        };
        self.current.grow(slots, self.defaults.len(), make, |old, next, _| {
            next.content.lock().take_over(&old.content.lock());
        })
    }

    /// Same as [`HeapStore::write`], but running shaders may use the slot. The objects in the descriptor must stay live
    /// until the slot is written again or its range is retired, and is no longer in use.
    unsafe fn write(&self, index: u32, descriptor: &Descriptor) -> Result<(), HeapWriteError> {
        let binding = self.arrays.binding_of(descriptor.kind())?;
        self.current.with(|all, _| all.content.lock().set(ArraySlot { binding, index }, *descriptor));
        Ok(())
    }

    unsafe fn write_many<'a>(
        &self,
        writes: impl Iterator<Item = (u32, &'a Descriptor)> + Clone,
    ) -> Result<(), HeapWriteError> {
        let binding_of = |descriptor: &Descriptor| self.arrays.binding_of(descriptor.kind());
        for (_, descriptor) in writes.clone() {
            binding_of(descriptor)?;
        }
        self.current.with(|all, _| {
            let mut content = all.content.lock();
            for (index, descriptor) in writes {
                content.set(ArraySlot { binding: binding_of(descriptor)?, index }, *descriptor);
            }
            Ok(())
        })
    }

    fn slot(&self, index: u32, kind: DescriptorKind) -> Option<HeapSlot> {
        let binding = self.binding(kind)?;
        Some(HeapSlot { host: Some(HostSlot::EachFrame { binding }), ..HeapSlot::new(index) })
    }

    fn retired(&self, indices: Range<u32>) {
        self.current.with(|all, _| {
            let mut content = all.content.lock();
            for index in indices {
                content.reset(index);
            }
        });
    }
}
