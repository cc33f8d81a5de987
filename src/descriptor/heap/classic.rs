//! The store for devices without descriptor indexing: a copy of the set for each frame in flight.

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
use super::arrays::{Arrays, HeapLayout, Purpose, layout_getters};
use super::create_info::{CreateHeapError, HeapArrays, HeapCreateInfo};
use super::current::Current;
use super::error::HeapWriteError;
use super::sets::HeapSets;
use super::slot::{HeapSlot, HostSlot};
use super::store::HeapStore;
use crate::base::cast::{index, narrow};
use crate::device::descriptors::BindTarget;
use crate::retire::{ClockView, OtherClock, Ticket};

/// Ordinary descriptor sets with arrays, for devices on which a set must not be written while it is in use: one copy
/// for each frame in flight.
///
/// [`DescriptorHeap::write`](super::DescriptorHeap::write) keeps the descriptor on the host. Once a frame,
/// [`update`](Self::update) writes the changes into the frame's copy, which the GPU is done with;
/// [`cmd_bind`](Self::cmd_bind) binds it. A later write is seen from the next frame on. A slot that changed costs one descriptor write
/// for each copy, and one that did not costs nothing.
///
/// Here every slot that a shader's array has must hold a descriptor, whether the shader looks at it or not. So every
/// slot that no range has holds a default for its type, for example a white texture or a buffer of zeros. A slot goes back
/// to it when its range is retired: what the range described may be destroyed once the ticket is done, as with the
/// other stores. So a range is retired after the last `update` that is to show it: before that, this frame's shaders
/// find the default already.
///
/// Slots of frames ([`allocate_transient`](super::DescriptorHeap::allocate_transient)) go back when they are collected.
/// Frames that were updated until then have seen them, whether they use them or not: what they describe may be
/// destroyed once those are done, too.
///
/// Shaders declare an array for each type, each with exactly the heap's size:
/// `layout(set = 0, binding = 0) uniform texture2D textures[64];`. Without `shaderSampledImageArrayDynamicIndexing` and
/// its kin indices must be constant, and they must not differ within a draw in any case. Devices of this kind allow few
/// descriptors in a set ([`CreateHeapError::Limit`] says how many): ask for small heaps.
///
/// It has [`HeapCreateInfo::max_slots`] from the start, because shaders have that size, unless the layout may change
/// ([`HeapGrowth::ChangeLayout`](super::HeapGrowth::ChangeLayout)). Then it grows: no copy of the larger sets holds anything
/// before its frame's [`update`](Self::update), which writes all slots.
///
/// ```
/// use ash::vk;
/// use sublet::descriptor::*;
/// # use sublet::sim;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # // SAFETY: instance and device are live, and outlive everything that is made from the value.
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
    arrays: Arrays,
    name: Box<str>,
    copies: u32,
    /// By binding.
    defaults: Box<[Descriptor]>,
    current: Current<Copies>,
    /// What one update writes. Locked while the driver is called, unlike the content.
    writes: Mutex<WriteBatch>,
}

/// A set for each frame, and what they are to hold.
#[derive(Debug)]
struct Copies {
    sets: HeapSets,
    content: Mutex<Content>,
}

/// A slot of one of the arrays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ArraySlot {
    binding: u32,
    index: u32,
}

/// What the copies are to hold, and where they do not yet.
///
/// Invariant: a place is in a copy's list once, exactly if the place has the copy's bit.
#[derive(Debug)]
struct Content {
    slots: u32,
    /// By binding.
    defaults: Box<[Descriptor]>,
    /// By binding, then by slot.
    descriptors: Vec<Descriptor>,
    /// The same; a bit for each copy that has another descriptor there, or none.
    stale: Vec<u32>,
    /// By copy.
    lists: Vec<Vec<ArraySlot>>,
}

/// Collects `count` values, or fails before the first if the host has no memory for them.
fn collect<T>(count: usize, values: impl Iterator<Item = T>) -> Result<Vec<T>, TryReserveError> {
    let mut all = Vec::new();
    all.try_reserve_exact(count)?;
    all.extend(values);
    Ok(all)
}

impl Content {
    /// All slots hold their defaults, which no copy holds yet.
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

    /// Takes over what the slots of smaller content hold. No copy holds any of this one's.
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
            let default = self.defaults[crate::base::cast::index(binding)];
            let place = ArraySlot { binding, index };
            if self.descriptors[self.at(place)] != default {
                self.set(place, default);
            }
        }
    }

    /// Moves what a copy does not hold yet into `writes`, and returns how many descriptors that is. The copy counts as
    /// up to date from then on.
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
    /// Makes layout, pool and `copies` sets, as many as there are frames in flight: 1 to 32.
    ///
    /// `defaults` has a descriptor for each type of the heap.
    ///
    /// # Errors
    /// [`CreateHeapError`]: limits, a type without a default, or the driver's answer. Nothing is left. [`HeapArrays::One`] is
    /// refused: shaders could not declare it.
    ///
    /// # Safety
    /// What the defaults name is live, of this device, and stays so until the store is destroyed.
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
        let arrays = Arrays::new(device, &info, Purpose::Classic)?;
        let layout = HeapLayout::create(device, &arrays, arrays.slots())?;
        let all = Self::make(device, &arrays, layout, info.name, (copies, &defaults), arrays.slots())?;
        let current = Current::new(all, arrays.slots(), arrays.max_slots());
        let (device, name, writes) = (device.clone(), info.name.into(), Mutex::default());
        Ok(Self { device, arrays, name, copies, defaults: defaults.into(), current, writes })
    }

    /// Makes so many copies of so many slots, which hold the defaults. On failure nothing is left, the layout included.
    fn make(
        device: &DescriptorDevice,
        arrays: &Arrays,
        layout: Arc<HeapLayout>,
        name: &str,
        (copies, defaults): (u32, &[Descriptor]),
        slots: u32,
    ) -> Result<Copies, CreateHeapError> {
        // Once the limits are known to allow the slots.
        let Ok(content) = Content::new(slots, defaults, copies) else {
            // SAFETY: the layout is of this device, and nothing was made from it.
            unsafe { layout.release(device) };
            return Err(CreateHeapError::HostMemory { slots, types: defaults.len(), copies });
        };
        let sets = HeapSets::create(device, arrays, layout, name, copies, slots)?;
        Ok(Copies { sets, content: Mutex::new(content) })
    }

    /// Checks what does not depend on the device, and returns the defaults in the order of the types.
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

    /// Copies of the set.
    #[must_use]
    pub fn copies(&self) -> u32 {
        self.copies
    }

    fn copy(&self, frame: u32) -> usize {
        index(frame % self.copies)
    }

    /// The copy of a frame, counted on and on or by its slot: the number is taken modulo the number of copies.
    #[must_use]
    pub fn set(&self, frame: u32) -> vk::DescriptorSet {
        self.current.with(|all, _| all.sets.all[self.copy(frame)])
    }

    /// Writes into the frame's copy what has changed since its last update, with at most one call of the driver, and
    /// returns how many descriptors it wrote. Call it once a frame, before anything is recorded that binds the copy.
    ///
    /// # Safety
    /// 1. The device is done with all submissions that use the copy, and no command buffer that binds it is still to be
    ///    submitted.
    /// 2. What the slots describe is live.
    pub unsafe fn update(&self, frame: u32) -> u32 {
        let copy = self.copy(frame);
        let mut writes = self.writes.lock();
        self.current.with(|all, _| {
            let count = all.content.lock().take(copy, &mut writes);
            if count != 0 {
                writes.show(all.sets.all[copy], |writes| {
                    // SAFETY: slots and bindings are of the layout, and each binding is of the type that is written to it
                    // (VUID-VkWriteDescriptorSet-dstBinding-00315, -dstArrayElement-00321, -descriptorType-00319); what
                    // they name is live, and the device does not use the set: the caller's promise; and nobody else
                    // writes it: `self.writes` is locked.
                    unsafe { self.device.driver().update_sets(writes, &[]) };
                });
            }
            count
        })
    }

    /// Binds the frame's copy.
    ///
    /// # Safety
    /// The command buffer is being recorded by this thread alone, [`update`](Self::update) was called for the frame and
    /// since the heap last grew, and `layout` has [`Self::layout`] as its set number `set`.
    pub unsafe fn cmd_bind(
        &self,
        frame: u32,
        commands: vk::CommandBuffer,
        bind_point: vk::PipelineBindPoint,
        layout: vk::PipelineLayout,
        set: u32,
    ) {
        let target = BindTarget { commands, bind_point, layout, set };
        // SAFETY: the set is live; the caller promises the rest of commands and layout.
        unsafe { self.device.driver().cmd_bind_sets(&target, &[self.set(frame)], &[]) };
    }

    /// Destroys sets, pool and layout. Without it they are leaked, and an event of `tracing` warns of that.
    ///
    /// # Safety
    /// The device is done with all submissions that use the sets.
    pub unsafe fn destroy(self) {
        let Self { device, current, .. } = self;
        // SAFETY: the sets are of this device, and the caller promises that it is done with all of them.
        current.into_each(|all| unsafe { all.sets.destroy(&device) });
    }
}

impl HeapStore for ClassicStore {
    fn slots(&self) -> u32 {
        self.current.slots()
    }

    fn max_slots(&self) -> u32 {
        self.arrays.max_slots()
    }

    /// With one layout, one pool and a set for each frame. Each frame's `update` writes all slots of its own.
    fn grow(&self, slots: u32) -> Result<(), CreateHeapError> {
        let make = || {
            let layout = HeapLayout::create(&self.device, &self.arrays, slots)?;
            Self::make(&self.device, &self.arrays, layout, &self.name, (self.copies, &self.defaults), slots)
        };
        self.current.grow(slots, self.defaults.len(), make, |old, next, _| {
            next.content.lock().take_over(&old.content.lock());
        })
    }

    unsafe fn retire_outgrown(&self, ticket: Ticket) -> usize {
        self.current.retire(ticket)
    }

    fn collect_outgrown(&self, clock: &ClockView) -> Result<usize, OtherClock> {
        // SAFETY: their ticket is done, and who named it promised that no later recording uses them.
        self.current.collect(clock, |all| unsafe { all.sets.destroy(&self.device) })
    }

    fn transient(&self) -> u32 {
        self.arrays.transient()
    }

    /// As [`HeapStore::write`]; that no running shader looks at the slot is not needed here. What the descriptor names
    /// stays live until the slot is written again or its range is retired, and no longer is looked at.
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
