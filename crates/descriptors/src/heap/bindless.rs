//! The heap for programs: one API for layout, write, flush, bind, retire and destroy on all devices.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use ash::vk;

use super::super::counts::DescriptorKind;
use super::super::descriptor::Descriptor;
use super::super::device::DescriptorDevice;
use super::super::features::DescriptorFeatures;
use super::super::layout::SetLayout;
use super::super::models::BindingModel;
use super::super::source::DescriptorSource;
use super::buffer::BufferStore;
use super::classic::ClassicStore;
use super::create_info::{CreateHeapError, HeapArrays, HeapCreateInfo, HeapKind};
use super::error::HeapWriteError;
use super::heap::DescriptorHeap;
use super::mapping::BindingMapping;
use super::native::NativeStore;
use super::set::SetStore;
use super::slot::HeapSlot;
use super::store::HeapStore;
use crate::driver::BindTarget;
use sublet::retire::{ClockView, OtherClock, Ticket};
use sublet::upload::AllocatorRef;

/// A [`DescriptorHeap`] with the best store for the device.
///
/// | [`kind`](Self::kind) | condition | writes are visible |
/// |---|---|---|
/// | [`Native`](BindlessKind::Native) | the device's [model](DescriptorDevice::model) is Vulkan's own heaps; only if the program requests it | at once |
/// | [`Buffer`](BindlessKind::Buffer) | the device's [model](DescriptorDevice::model) is descriptor buffers | at once |
/// | [`Set`](BindlessKind::Set) | descriptor indexing is enabled | at once |
/// | [`Classic`](BindlessKind::Classic) | otherwise | from the next [`flush`](Self::flush) on |
///
/// The program is the same for all of them. In each frame: wait for its fence, [`collect`](DescriptorHeap::collect),
/// allocate and write, [`flush`](Self::flush), record with [`cmd_bind`](Self::cmd_bind),
/// [`retire`](DescriptorHeap::retire) ranges that later frames do not use, and submit. Shaders find descriptors of a
/// type at [`binding`](Self::binding). Create pipelines with [`pipeline_flags`](Self::pipeline_flags).
///
/// Pipelines for Vulkan's own heaps differ in three points, because there are no layouts. [`mappings`](Self::mappings)
/// go into the chain of each stage, with the flag
/// [`PIPELINE_CREATE_2_DESCRIPTOR_HEAP`](crate::heap_ffi::PIPELINE_CREATE_2_DESCRIPTOR_HEAP). The pipeline
/// layout is null. Push constants are [push data](DescriptorDevice::cmd_push_data). Images and samplers are written
/// with [`write_source`](DescriptorHeap::write_source), which every kind accepts. At most one heap of resources and one
/// of samplers are bound at a time.
///
/// To override the choice, set [`DescriptorDeviceCreateInfo::model`](super::super::DescriptorDeviceCreateInfo::model).
///
/// ```
/// use ash::vk;
/// use sublet_descriptors::*;
/// use sublet::{AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage, sim};
/// # let profile = "lavapipe";
/// let gpu = sim::Gpu::new(sim::Profile::by_name(profile).unwrap());
/// // SAFETY: instance and device are live, and outlive everything that is created from the values.
/// let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// # let sampler = unsafe { gpu.device().create_sampler(&vk::SamplerCreateInfo::default(), None) }?;
/// let defaults = [Descriptor::Sampler(sampler)];
/// let info = BindlessHeapCreateInfo::new(HeapKind::Sampler);
/// let heap = HeapCreateInfo { slots: 32, ..info.heap };
/// let info = BindlessHeapCreateInfo { heap, frames: 2, defaults: &defaults };
/// // SAFETY: the sampler is destroyed after the heap.
/// let samplers = unsafe { BindlessHeap::create(&device, &allocator, &info) }?;
///
/// let range = samplers.allocate(1)?;
/// // SAFETY: the sampler is live, and no shader uses a slot that was just allocated.
/// let index = unsafe { samplers.write(range.id(), 0, &Descriptor::Sampler(sampler)) }?;
/// // SAFETY: nothing was submitted, here and below.
/// unsafe { samplers.flush(0) };
/// // In the command buffer of frame 0: BindlessHeap::cmd_bind(commands, 0, &[place], &[&samplers])
/// unsafe { samplers.destroy() };
/// # unsafe { gpu.device().destroy_sampler(sampler, None) };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "SetDescriptorHeaps")]
#[doc(alias = "BindlessAllocator")]
#[doc(alias = "BindlessDescriptorPool")]
pub type BindlessHeap<A> = DescriptorHeap<BindlessStore<A>>;

/// The store of a [`BindlessHeap`]. A later version may add kinds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum BindlessKind {
    /// A [`NativeStore`].
    Native,
    /// A [`BufferStore`].
    Buffer,
    /// A [`SetStore`].
    Set,
    /// A [`ClassicStore`].
    Classic,
}

/// The parameters of a [`BindlessHeap`].
///
/// ```
/// use sublet_descriptors::{BindlessHeapCreateInfo, HeapArrays, HeapCreateInfo, HeapKind};
/// let info = BindlessHeapCreateInfo::new(HeapKind::Resource);
/// let info = BindlessHeapCreateInfo { heap: HeapCreateInfo { slots: 4_096, ..info.heap }, frames: 2, ..info };
/// assert_eq!(info.heap.arrays, HeapArrays::PerType);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BindlessHeapCreateInfo<'a> {
    /// Kind, slots, types, stages and name.
    pub heap: HeapCreateInfo<'a>,
    /// The number of frames in flight, 1 to 32. 3 by default.
    pub frames: u32,
    /// One default descriptor for each type of the heap, for example a white texture and a buffer of zeros. If every
    /// slot must hold a descriptor, unallocated slots hold these. They are required on every device, so that a program
    /// that runs on one device runs on all.
    pub defaults: &'a [Descriptor],
}

impl BindlessHeapCreateInfo<'_> {
    /// Returns a heap of the default size with one array for each default type: the only form that shaders can declare
    /// on every device.
    #[must_use]
    pub const fn new(kind: HeapKind) -> Self {
        let heap = HeapCreateInfo { arrays: HeapArrays::PerType, ..HeapCreateInfo::new(kind) };
        Self { heap, frames: 3, defaults: &[] }
    }
}

/// The bind target of [`BindlessHeap::cmd_bind`]. The first heap is bound as set `first_set`, the next heap as set
/// `first_set + 1`, and so on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HeapPlace {
    /// The bind point: graphics, compute or ray tracing.
    pub bind_point: vk::PipelineBindPoint,
    /// The layout of the pipelines.
    pub layout: vk::PipelineLayout,
    /// The set number of the first heap.
    pub first_set: u32,
}

/// The store of a [`BindlessHeap`].
#[derive(Debug)]
#[must_use = "what it is made of lives until it is destroyed"]
pub struct BindlessStore<A: AllocatorRef> {
    device: DescriptorDevice,
    inner: AnyHeapStore<A>,
}

#[derive(Debug)]
enum AnyHeapStore<A: AllocatorRef> {
    Buffer(Box<BufferStore<A>>),
    Set(Box<SetStore>),
    Classic(Box<ClassicStore>),
    Native(Box<NativeStore<A>>),
}

/// Calls a method of the actual store.
macro_rules! each {
    ($inner:expr, $store:ident => $call:expr) => {
        match $inner {
            AnyHeapStore::Buffer($store) => $call,
            AnyHeapStore::Set($store) => $call,
            AnyHeapStore::Classic($store) => $call,
            AnyHeapStore::Native($store) => $call,
        }
    };
}

impl<A: AllocatorRef> BindlessStore<A> {
    /// Creates the best store for the device.
    ///
    /// # Safety
    /// Same as [`BindlessHeap::create`].
    unsafe fn new(
        device: &DescriptorDevice,
        allocator: A,
        info: &BindlessHeapCreateInfo<'_>,
    ) -> Result<Self, CreateHeapError> {
        let BindlessHeapCreateInfo { heap, frames, defaults } = info;
        ClassicStore::check(heap, *frames, defaults)?;
        let sets = match device.model() {
            BindingModel::Buffer => {
                let store = BufferStore::new(device, allocator, heap)?;
                return Ok(Self { device: device.clone(), inner: AnyHeapStore::Buffer(Box::new(store)) });
            }
            BindingModel::Heap => {
                let store = NativeStore::new(device, allocator, heap)?;
                return Ok(Self { device: device.clone(), inner: AnyHeapStore::Native(Box::new(store)) });
            }
            BindingModel::Auto | BindingModel::Sets => SetStore::new(device, heap),
        };
        let inner = match sets {
            Ok(store) => AnyHeapStore::Set(Box::new(store)),
            Err(CreateHeapError::Unsupported { missing })
                if !missing.contains(DescriptorFeatures::MUTABLE_DESCRIPTOR_TYPE) =>
            {
                // SAFETY: the caller promises that the objects in the defaults outlive the store.
                let store = unsafe { ClassicStore::new(device, heap, *frames, defaults) }?;
                AnyHeapStore::Classic(Box::new(store))
            }
            Err(error) => return Err(error),
        };
        Ok(Self { device: device.clone(), inner })
    }

    /// Returns the set that a frame binds. `None` for descriptor buffers and Vulkan's own heaps.
    fn set(&self, frame: u32) -> Option<vk::DescriptorSet> {
        match &self.inner {
            AnyHeapStore::Buffer(_) | AnyHeapStore::Native(_) => None,
            AnyHeapStore::Set(store) => Some(store.set()),
            AnyHeapStore::Classic(store) => Some(store.set(frame)),
        }
    }

    fn as_buffer(&self) -> Option<&BufferStore<A>> {
        match &self.inner {
            AnyHeapStore::Buffer(store) => Some(store),
            AnyHeapStore::Set(_) | AnyHeapStore::Classic(_) | AnyHeapStore::Native(_) => None,
        }
    }

    fn as_native(&self) -> Option<&NativeStore<A>> {
        match &self.inner {
            AnyHeapStore::Native(store) => Some(store),
            AnyHeapStore::Set(_) | AnyHeapStore::Classic(_) | AnyHeapStore::Buffer(_) => None,
        }
    }
}

/// The maximum number of heaps bound at once: the same as for [`BufferStore::cmd_bind_all`].
const MOST: usize = 4;

impl<A: AllocatorRef> BindlessHeap<A> {
    /// Creates a heap with the best store for the device.
    ///
    /// # Errors
    /// [`CreateHeapError`]: a type without a default, missing features, limits, or a driver error. Nothing is left
    /// behind.
    ///
    /// # Safety
    /// The objects in the defaults are live, belong to this device, and outlive the heap.
    pub unsafe fn create(
        device: &DescriptorDevice,
        allocator: A,
        info: &BindlessHeapCreateInfo<'_>,
    ) -> Result<Self, CreateHeapError> {
        // SAFETY: the caller keeps the promises of `BindlessStore::new`, which are the same.
        unsafe { BindlessStore::new(device, allocator, info) }.map(Self::new)
    }

    /// Returns the kind of the store.
    #[must_use]
    pub fn kind(&self) -> BindlessKind {
        match &self.store().inner {
            AnyHeapStore::Buffer(_) => BindlessKind::Buffer,
            AnyHeapStore::Set(_) => BindlessKind::Set,
            AnyHeapStore::Classic(_) => BindlessKind::Classic,
            AnyHeapStore::Native(_) => BindlessKind::Native,
        }
    }

    /// Returns the layout, for pipeline layouts. Null for Vulkan's own heaps. It stays the same, unless the heap grows
    /// with [`HeapGrowth::ChangeLayout`](super::HeapGrowth::ChangeLayout): then compare it after each allocation.
    #[must_use]
    pub fn layout(&self) -> vk::DescriptorSetLayout {
        self.set_layout().map_or(vk::DescriptorSetLayout::null(), |layout| layout.handle())
    }

    /// Returns the layout with its bindings, for a [`PipelineLayoutInfo`](crate::PipelineLayoutInfo).
    /// `None` for Vulkan's own heaps.
    #[must_use]
    pub fn set_layout(&self) -> Option<SetLayout> {
        match &self.store().inner {
            AnyHeapStore::Buffer(store) => Some(store.set_layout()),
            AnyHeapStore::Set(store) => Some(store.set_layout()),
            AnyHeapStore::Classic(store) => Some(store.set_layout()),
            AnyHeapStore::Native(_) => None,
        }
    }

    /// Returns the set that a frame binds; `None` for descriptor buffers and Vulkan's own heaps.
    pub(crate) fn frame_set(&self, frame: u32) -> Option<vk::DescriptorSet> {
        self.store().set(frame)
    }

    /// Returns the descriptor buffer, which starts with the set.
    pub(crate) fn buffer_info(&self) -> Option<vk::DescriptorBufferBindingInfoEXT<'static>> {
        self.store().as_buffer().map(BufferStore::binding_info)
    }

    /// Returns the mappings of Vulkan's own heap for shaders that declare the heap as set number `set`. Combine them
    /// with those of the other heap in [`HeapMappings`](crate::HeapMappings). Empty for all other stores.
    pub fn mappings(&self, set: u32) -> impl Iterator<Item = BindingMapping> {
        self.store().as_native().into_iter().flat_map(move |store| store.mappings(set))
    }

    /// Returns the binding at which shaders find descriptors of a type; `None` if the heap does not hold the type.
    #[must_use]
    pub fn binding(&self, kind: DescriptorKind) -> Option<u32> {
        each!(&self.store().inner, store => store.binding(kind))
    }

    /// Returns the flags that every pipeline with the heap's layout needs.
    #[must_use]
    pub fn pipeline_flags(&self) -> vk::PipelineCreateFlags {
        match self.kind() {
            BindlessKind::Buffer => vk::PipelineCreateFlags::DESCRIPTOR_BUFFER_EXT,
            BindlessKind::Set | BindlessKind::Classic | BindlessKind::Native => {
                vk::PipelineCreateFlags::empty()
            }
        }
    }

    /// Makes writes visible to the recordings of a frame. Returns the number of descriptors that it wrote: 0 if writes
    /// are visible at once. Call it once per frame, after its writes and before recording anything that binds the heap.
    /// `frame` is a running count or the number of the frame's slot.
    ///
    /// # Safety
    /// 1. The device is done with the submissions of the last frame in this slot, and none of its command buffers is
    ///    submitted later.
    /// 2. The objects in the slots' descriptors are live.
    pub unsafe fn flush(&self, frame: u32) -> u32 {
        match &self.store().inner {
            AnyHeapStore::Buffer(_) | AnyHeapStore::Set(_) | AnyHeapStore::Native(_) => 0,
            // SAFETY: clauses 1 and 2 are those of `update`.
            AnyHeapStore::Classic(store) => unsafe { store.update(frame) },
        }
    }

    /// Binds heaps at all places where a command buffer uses them. Call it once for each command buffer, with all heaps
    /// and all places, because binding descriptor buffers unbinds earlier ones. Vulkan's own heaps are bound for all
    /// places at once, independent of `places`.
    ///
    /// # Panics
    /// If there are more than four heaps.
    ///
    /// # Safety
    /// 1. The command buffer is being recorded by this thread alone. [`flush`](Self::flush) was called for the frame,
    ///    for each heap, since that heap last grew.
    /// 2. The heaps belong to one device, which allows this many descriptor buffers at once; one for resources and one
    ///    for samplers are always allowed.
    /// 3. Each place's layout has the [layouts](Self::layout) of the heaps from set `first_set` on. There is at most
    ///    one of Vulkan's own heaps of each [kind](HeapKind), and the command buffer inherits none.
    pub unsafe fn cmd_bind(commands: vk::CommandBuffer, frame: u32, places: &[HeapPlace], heaps: &[&Self]) {
        assert!(heaps.len() <= MOST, "{} heaps are bound at once", heaps.len());
        let Some(first) = heaps.first() else { return };
        if first.kind() == BindlessKind::Native {
            for store in heaps.iter().filter_map(|heap| heap.store().as_native()) {
                // SAFETY: clauses 1 and 3.
                unsafe { store.cmd_bind(commands) };
            }
            return;
        }
        let mut buffers = [None; MOST];
        let mut sets = [vk::DescriptorSet::null(); MOST];
        for (heap, (buffer, set)) in heaps.iter().zip(buffers.iter_mut().zip(&mut sets)) {
            *buffer = heap.store().as_buffer();
            *set = heap.store().set(frame).unwrap_or_default();
        }
        if let Some(first) = buffers[0] {
            let stores = buffers.map(|store| store.unwrap_or(first));
            // SAFETY: clauses 1 and 2; the heaps of one device are all in buffers if one is.
            unsafe { BufferStore::cmd_bind_all(commands, &stores[..heaps.len()]) };
        }
        for &HeapPlace { bind_point, layout, first_set } in places {
            let target = BindTarget { commands, bind_point, layout, set: first_set };
            let driver = first.store().device.driver();
            if buffers[0].is_some() {
                let (numbers, offsets) = ([0, 1, 2, 3], [0; MOST]);
                // SAFETY: the buffers are bound under these numbers, each set starts where its buffer is bound, and the
                // layout has the sets: clause 3.
                unsafe { driver.cmd_set_offsets(&target, &numbers[..heaps.len()], &offsets[..heaps.len()]) };
            } else {
                // SAFETY: the sets are live, and the layout has them: clause 3.
                unsafe { driver.cmd_bind_sets(&target, &sets[..heaps.len()], &[]) };
            }
        }
    }

    /// Destroys the heap's Vulkan objects. Ranges that are still allocated are dropped. Without this call the objects
    /// are leaked, with a `tracing` warning.
    ///
    /// # Safety
    /// The device is done with all submissions that use the heap.
    pub unsafe fn destroy(self) {
        // SAFETY: the caller promises that the device is done with the heap, whichever store it has.
        each!(self.into_store().inner, store => unsafe { store.destroy() });
    }
}

impl<A: AllocatorRef> HeapStore for BindlessStore<A> {
    fn slots(&self) -> u32 {
        each!(&self.inner, store => store.slots())
    }

    fn transient(&self) -> u32 {
        each!(&self.inner, store => store.transient())
    }

    fn max_slots(&self) -> u32 {
        each!(&self.inner, store => store.max_slots())
    }

    fn grow(&self, slots: u32) -> Result<(), CreateHeapError> {
        each!(&self.inner, store => store.grow(slots))
    }

    unsafe fn retire_outgrown(&self, ticket: Ticket) -> usize {
        // SAFETY: the caller keeps the promise of the trait's method.
        each!(&self.inner, store => unsafe { store.retire_outgrown(ticket) })
    }

    fn collect_outgrown(&self, clock: &ClockView) -> Result<usize, OtherClock> {
        each!(&self.inner, store => store.collect_outgrown(clock))
    }

    unsafe fn write_source(&self, index: u32, source: &DescriptorSource<'_>) -> Result<(), HeapWriteError> {
        // SAFETY: the caller keeps the promises of the trait's method.
        each!(&self.inner, store => unsafe { store.write_source(index, source) })
    }

    unsafe fn write(&self, index: u32, descriptor: &Descriptor) -> Result<(), HeapWriteError> {
        // SAFETY: the caller keeps the promises of the trait's method.
        each!(&self.inner, store => unsafe { store.write(index, descriptor) })
    }

    unsafe fn write_many<'a>(
        &self,
        writes: impl Iterator<Item = (u32, &'a Descriptor)> + Clone,
    ) -> Result<(), HeapWriteError> {
        // SAFETY: the caller keeps the promises of the trait's method.
        each!(&self.inner, store => unsafe { store.write_many(writes) })
    }

    unsafe fn write_bytes(
        &self,
        index: u32,
        kind: DescriptorKind,
        bytes: &[u8],
    ) -> Result<(), HeapWriteError> {
        // SAFETY: the caller keeps the promises of the trait's method.
        each!(&self.inner, store => unsafe { store.write_bytes(index, kind, bytes) })
    }

    fn retired(&self, indices: std::ops::Range<u32>) {
        each!(&self.inner, store => store.retired(indices));
    }

    fn slot(&self, index: u32, kind: DescriptorKind) -> Option<HeapSlot> {
        each!(&self.inner, store => store.slot(index, kind))
    }
}
