//! The store of programs that bind descriptor buffers: bytes in mapped memory.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use ash::vk;

use super::super::counts::DescriptorKind;
use super::super::descriptor::Descriptor;
use super::super::device::DescriptorDevice;
use super::super::sizes::{DescriptorSizes, MAX_DESCRIPTOR_BYTES};
use super::arrays::{Arrays, HeapLayout, Purpose, layout_getters};
use super::create_info::{CreateHeapError, HeapCreateInfo};
use super::current::Current;
use super::error::HeapWriteError;
use super::mapped::{BufferWish, MappedBuffer};
use super::slot::{HeapSlot, HostSlot};
use super::store::HeapStore;
use crate::base::cast::{host_size, widen};
use crate::device::descriptors::BindTarget;
use crate::retire::{ClockView, OtherClock, Ticket};
use crate::upload::AllocatorRef;

/// The arrays of a heap in a descriptor buffer (`VK_EXT_descriptor_buffer`): a write is a few bytes, and no call that
/// takes a lock.
///
/// The buffer comes out of an [`Allocator`](crate::Allocator), mapped, and in the GPU's own memory where that can be
/// mapped. Its memory is written and never read: what is mapped is slow to read. It is coherent: there is nothing to
/// flush. The store holds the allocator, by reference or shared ([`AllocatorRef`]), so that the memory is there for as
/// long as the store can be written.
///
/// Shaders declare what they declare for a [`SetStore`](super::SetStore). The pipelines are made with
/// `VK_PIPELINE_CREATE_DESCRIPTOR_BUFFER_BIT_EXT`. Descriptors of buffers want their addresses
/// ([`BufferDescriptor::address`](super::super::BufferDescriptor::address)).
///
/// # Binding
/// All descriptor buffers of a command buffer are bound in one call, because each call undoes the one before:
/// [`cmd_bind_all`](Self::cmd_bind_all). Then [`cmd_set_offset`](Self::cmd_set_offset) says which of them a set is in.
/// Sets that are bound (`vkCmdBindDescriptorSets`) undo both, and the other way round: a program has one way for all.
///
/// ```
/// use sublet::descriptor::*;
/// use sublet::{Allocator, AllocatorCreateInfo, sim};
/// let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-h200").unwrap());
/// // SAFETY: instance and device are live, and outlive everything that is made from the values.
/// let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// // SAFETY: as above.
/// let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// let heap = DescriptorHeap::new(BufferStore::new(&device, &allocator, &HeapCreateInfo::default())?);
/// let range = heap.allocate(8)?;
/// // SAFETY: the device uses nothing of it.
/// unsafe { heap.into_store().destroy() };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The allocator does not go before the store:
///
/// ```compile_fail,E0505
/// use sublet::descriptor::*;
/// use sublet::{Allocator, AllocatorCreateInfo, sim};
/// let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-h200").unwrap());
/// let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }.unwrap();
/// let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
/// let store = BufferStore::new(&device, &allocator, &HeapCreateInfo::default()).unwrap();
/// allocator.destroy(); // its memory, in which the store writes
/// unsafe { store.destroy() };
/// ```
#[must_use = "the buffer lives until it is destroyed"]
#[doc(alias = "DescriptorBufferAllocator")]
pub struct BufferStore<A: AllocatorRef> {
    allocator: A,
    device: DescriptorDevice,
    arrays: Arrays,
    name: Box<str>,
    /// Who made the store: where its buffers come from.
    caller: &'static Location<'static>,
    current: Current<LaidBuffer>,
}

/// A buffer, and where in it the arrays of its layout are.
#[derive(Debug)]
struct LaidBuffer {
    layout: Arc<HeapLayout>,
    plan: Plan,
    buffer: MappedBuffer,
}

/// Where the descriptors of a type are, in bytes from the start of the set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ArrayBytes {
    kind: DescriptorKind,
    first: usize,
    stride: usize,
    size: usize,
}

impl ArrayBytes {
    fn at(&self, index: u32) -> usize {
        self.first + self.stride * crate::base::cast::index(index)
    }

    /// It lies in the buffer. Of a driver for which that overflows every address is nonsense.
    fn address_in(&self, buffer: &MappedBuffer, index: u32) -> vk::DeviceAddress {
        buffer.address().wrapping_add(widen(self.first) + widen(self.stride) * u64::from(index))
    }
}

/// The set's places, its bytes as far as they are known to be enough for the layout's slots, and the usages of its buffer.
#[derive(Debug)]
struct Plan {
    places: Box<[ArrayBytes]>,
    size: u64,
    usage: vk::BufferUsageFlags,
}

impl Plan {
    /// Asks the device where the arrays are, and refuses answers that cannot be.
    fn new(device: &DescriptorDevice, arrays: &Arrays, layout: &HeapLayout) -> Result<Self, CreateHeapError> {
        let driver = device.driver();
        let sizes = DescriptorSizes::of(device);
        let handle = layout.of_sets().handle();
        // SAFETY: the layout is live, and was made for descriptor buffers.
        let size = unsafe { driver.set_layout_size(handle) };
        let size_of = |kind| sizes.get(kind).ok_or(CreateHeapError::NoSize { kind });
        let mut places = Vec::new();
        for &kind in arrays.types() {
            let own = size_of(kind)?;
            let largest = sizes.largest(arrays.types()).filter(|_| arrays.is_one());
            let stride = largest.unwrap_or(own);
            let binding = arrays.binding(kind).unwrap_or(0);
            // SAFETY: the layout is live, was made for descriptor buffers, and has the binding.
            let first = unsafe { driver.binding_offset(handle, binding) };
            let needed = stride.checked_mul(layout.slots().into()).and_then(|all| first.checked_add(all));
            let absurd = CreateHeapError::Absurd { size, needed: needed.unwrap_or(u64::MAX) };
            if needed.is_none_or(|needed| needed > size) {
                return Err(absurd);
            }
            let (Some(first), Some(stride), Some(own)) =
                (host_size(first), host_size(stride), host_size(own))
            else {
                return Err(absurd);
            };
            places.push(ArrayBytes { kind, first, stride, size: own });
        }
        let usage = usage_of(device, arrays, size)?;
        Ok(Self { places: places.into(), size, usage })
    }

    /// Bytes of a set with so many slots, no more than its layout has.
    fn bytes_of(&self, arrays: &Arrays, slots: u32) -> u64 {
        if !arrays.is_variable() {
            return self.size;
        }
        let end = |place: &ArrayBytes| widen(place.first) + widen(place.stride) * u64::from(slots);
        self.places.iter().map(end).max().unwrap_or(0)
    }

    fn place(&self, kind: DescriptorKind) -> Option<&ArrayBytes> {
        self.places.iter().find(|place| place.kind == kind)
    }

    #[inline]
    fn place_of(&self, kind: DescriptorKind) -> Result<&ArrayBytes, HeapWriteError> {
        self.place(kind).ok_or(HeapWriteError::Kind { kind })
    }
}

/// The usages of a buffer for such a set, of so many bytes, if the device allows it.
fn usage_of(
    device: &DescriptorDevice,
    arrays: &Arrays,
    size: u64,
) -> Result<vk::BufferUsageFlags, CreateHeapError> {
    let properties = &device.driver().facts.buffer;
    let is_sampler = |&kind: &DescriptorKind| {
        matches!(kind, DescriptorKind::Sampler | DescriptorKind::CombinedImageSampler)
    };
    let limits = [
        (
            arrays.types().iter().any(is_sampler),
            vk::BufferUsageFlags::SAMPLER_DESCRIPTOR_BUFFER_EXT,
            "maxSamplerDescriptorBufferRange",
            properties.max_sampler_descriptor_buffer_range,
        ),
        (
            arrays.types().iter().any(|&kind| kind != DescriptorKind::Sampler),
            vk::BufferUsageFlags::RESOURCE_DESCRIPTOR_BUFFER_EXT,
            "maxResourceDescriptorBufferRange",
            properties.max_resource_descriptor_buffer_range,
        ),
    ];
    let mut usage = vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
    for (_, flag, limit, allowed) in limits.into_iter().filter(|&(has, ..)| has) {
        usage |= flag;
        if size > allowed {
            return Err(CreateHeapError::Limit { limit, asked: size, allowed });
        }
    }
    Ok(usage)
}

impl<A: AllocatorRef> BufferStore<A> {
    /// Makes the layout and a buffer for it.
    ///
    /// # Errors
    /// [`CreateHeapError`]: features that are missing, limits, no memory, an allocator of another device, or the driver's answer.
    /// Nothing is left.
    #[track_caller]
    pub fn new(
        device: &DescriptorDevice,
        allocator: A,
        info: &HeapCreateInfo<'_>,
    ) -> Result<Self, CreateHeapError> {
        if !device.driver().is_of(allocator.allocator().device()) {
            return Err(CreateHeapError::ForeignAllocator);
        }
        let properties = &device.driver().facts.buffer;
        let has_combined = info.actual_types().contains(&DescriptorKind::CombinedImageSampler);
        let arrays = Arrays::new(device, info, Purpose::Buffer)?;
        let is_split = properties.combined_image_sampler_descriptor_single_array == vk::FALSE;
        if has_combined && is_split {
            return Err(CreateHeapError::SplitArrays);
        }
        let source = (info.name, Location::caller());
        let layout = HeapLayout::create(device, &arrays, arrays.slots())?;
        let laid = Self::make(device, &allocator, &arrays, layout, source, arrays.slots())?;
        let current = Current::new(laid, arrays.slots(), arrays.max_slots());
        Ok(Self {
            allocator,
            device: device.clone(),
            arrays,
            name: info.name.into(),
            caller: source.1,
            current,
        })
    }

    /// Makes a buffer for so many slots of the layout. On failure nothing is left, the layout included if nobody else
    /// has it.
    fn make(
        device: &DescriptorDevice,
        allocator: &A,
        arrays: &Arrays,
        layout: Arc<HeapLayout>,
        (name, caller): (&str, &'static Location<'static>),
        slots: u32,
    ) -> Result<LaidBuffer, CreateHeapError> {
        let alignment = device.driver().facts.buffer.descriptor_buffer_offset_alignment.max(1);
        let made = Plan::new(device, arrays, &layout).and_then(|plan| {
            let bytes = plan.bytes_of(arrays, slots).max(1);
            let wish = BufferWish { bytes, alignment, usage: plan.usage, name, caller };
            // SAFETY: `new` has looked at whose the allocator is; the size is not zero, and the features of the usages
            // are enabled.
            Ok((unsafe { MappedBuffer::create(device, allocator, &wish) }?, plan))
        });
        match made {
            Ok((buffer, plan)) => Ok(LaidBuffer { layout, plan, buffer }),
            Err(error) => {
                // SAFETY: the layout is of this device, and nothing that was made from it here is left.
                unsafe { layout.release(device) };
                Err(error)
            }
        }
    }

    layout_getters!(layout);

    /// Bytes from one slot to the next, among descriptors of a type; `None` if the heap does not hold it.
    #[must_use]
    pub fn stride(&self, kind: DescriptorKind) -> Option<u64> {
        self.current.with(|laid, _| laid.plan.place(kind).map(|place| widen(place.stride)))
    }

    /// Where shaders see a slot's descriptor of a type: for commands that write descriptors on the GPU. `None` if the
    /// heap does not hold the type, or has no such slot.
    #[must_use]
    pub fn address_of(&self, kind: DescriptorKind, index: u32) -> Option<vk::DeviceAddress> {
        self.current.with(|laid, slots| {
            let place = laid.plan.place(kind).filter(|_| index < slots)?;
            Some(place.address_in(&laid.buffer, index))
        })
    }

    /// Address and usage, for programs that bind it with other descriptor buffers. The set starts at the address.
    pub fn binding_info(&self) -> vk::DescriptorBufferBindingInfoEXT<'static> {
        self.current.with(|laid, _| {
            let address = laid.buffer.address();
            vk::DescriptorBufferBindingInfoEXT::default().address(address).usage(laid.plan.usage)
        })
    }

    /// Binds the buffers of several heaps, and nothing else: what was bound before is not bound any more. Once for each
    /// command buffer.
    ///
    /// # Panics
    /// If there are more than four: one for resources and one for samplers are what devices are sure to have.
    ///
    /// # Safety
    /// The command buffer is being recorded by this thread alone, there is one store at least, all are of one device,
    /// and there are not more than it allows (`maxDescriptorBufferBindings`, and those of samplers and resources).
    pub unsafe fn cmd_bind_all(commands: vk::CommandBuffer, stores: &[&Self]) {
        assert!(stores.len() <= 4, "{} descriptor buffers are bound at once", stores.len());
        let Some(first) = stores.first() else { return };
        let mut infos = [vk::DescriptorBufferBindingInfoEXT::default(); 4];
        for (info, store) in infos.iter_mut().zip(stores) {
            *info = store.binding_info();
        }
        // SAFETY: the buffers are live and have the usages. The caller promises that it alone records the commands, and
        // that the device allows so many.
        unsafe { first.device.driver().cmd_bind_buffers(commands, &infos[..stores.len()]) };
    }

    /// Says that set number `set` of the layout is in this heap, which is number `buffer` of those that are bound.
    ///
    /// # Safety
    /// The command buffer is being recorded by this thread alone, the heap is bound as number `buffer`, and `layout`
    /// has [`Self::layout`] as its set number `set`.
    pub unsafe fn cmd_set_offset(
        &self,
        commands: vk::CommandBuffer,
        bind_point: vk::PipelineBindPoint,
        layout: vk::PipelineLayout,
        set: u32,
        buffer: u32,
    ) {
        let target = BindTarget { commands, bind_point, layout, set };
        // SAFETY: the set starts where the buffer is bound. The caller promises that it alone records the commands, that
        // the heap is bound as number `buffer`, and that the layout has the set.
        unsafe { self.device.driver().cmd_set_offsets(&target, &[buffer], &[0]) };
    }

    /// Destroys buffer and layout. Without it they are leaked, and an event of `tracing` warns of that.
    ///
    /// # Safety
    /// The device is done with all submissions that use the heap.
    pub unsafe fn destroy(self) {
        let Self { allocator, device, current, .. } = self;
        // SAFETY: all of it is of this store, and the caller promises that the device is done with it.
        current.into_each(|laid| unsafe { laid.destroy(&device, &allocator) });
    }
}

impl LaidBuffer {
    /// Puts bytes into a slot.
    ///
    /// # Safety
    /// The place is of this plan, the index is one of the heap's, and nobody else writes the slot.
    #[inline]
    unsafe fn put(&self, place: &ArrayBytes, index: u32, bytes: &[u8]) {
        debug_assert!(bytes.len() <= place.stride);
        // SAFETY: `Plan::new` has seen that the arrays lie in the set; nobody else writes the slot: the caller's promise.
        unsafe { self.buffer.put(place.at(index), bytes) };
    }

    /// # Safety
    /// Device and allocator made it, and the device is done with it.
    unsafe fn destroy(self, device: &DescriptorDevice, allocator: &impl AllocatorRef) {
        // SAFETY: the device is done with the buffer, and the value goes with it.
        unsafe { self.buffer.destroy(allocator) };
        // SAFETY: as above.
        unsafe { self.layout.release(device) };
    }
}

impl<A: AllocatorRef> fmt::Debug for BufferStore<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferStore")
            .field("arrays", &self.arrays)
            .field("current", &self.current)
            .finish_non_exhaustive()
    }
}

impl<A: AllocatorRef> HeapStore for BufferStore<A> {
    fn slots(&self) -> u32 {
        self.current.slots()
    }

    fn max_slots(&self) -> u32 {
        self.arrays.max_slots()
    }

    /// With one buffer, into which the bytes of the old one are copied. They are read where they are mapped, which is
    /// slow: each slot once, or about as often as it is written.
    fn grow(&self, slots: u32) -> Result<(), CreateHeapError> {
        let make = || {
            let now = self.current.with(|laid, _| laid.layout.clone());
            let layout = now.next(&self.device, &self.arrays, slots)?;
            let source = (&*self.name, self.caller);
            Self::make(&self.device, &self.allocator, &self.arrays, layout, source, slots)
        };
        self.current.grow(slots, self.arrays.types().len(), make, |old, next, had| {
            // Where all types share an array, the first stands for it.
            let arrays = if self.arrays.is_one() { 1 } else { self.arrays.types().len() };
            for (from, to) in old.plan.places.iter().zip(&next.plan.places).take(arrays) {
                let bytes = from.stride * crate::base::cast::index(had);
                // SAFETY: both plans have so many slots of the type, with one stride, in their buffers; nobody writes the
                // one meanwhile, and nobody knows of the other.
                unsafe { next.buffer.copy_from(to.first, &old.buffer, from.first, bytes) };
            }
        })
    }

    unsafe fn retire_outgrown(&self, ticket: Ticket) -> usize {
        self.current.retire(ticket)
    }

    fn collect_outgrown(&self, clock: &ClockView) -> Result<usize, OtherClock> {
        // SAFETY: their ticket is done, and who named it promised that no later recording uses them.
        self.current.collect(clock, |laid| unsafe { laid.destroy(&self.device, &self.allocator) })
    }

    fn transient(&self) -> u32 {
        self.arrays.transient()
    }

    unsafe fn write(&self, index: u32, descriptor: &Descriptor) -> Result<(), HeapWriteError> {
        self.current.with(|laid, slots| {
            debug_assert!(index < slots);
            let place = laid.plan.place_of(descriptor.kind())?;
            // Made here and then copied whole: drivers may write a descriptor in pieces, or read what they wrote.
            let mut bytes = [0; MAX_DESCRIPTOR_BYTES];
            let bytes = &mut bytes[..place.size];
            descriptor.with_get_info(|info| {
                // SAFETY: what the info names is live: the caller's promise; and there is as much room as the type needs.
                unsafe { self.device.driver().descriptor_bytes(info, bytes) };
            })?;
            // SAFETY: the caller promises that the index is one of the heap's and that nobody else writes the slot.
            unsafe { laid.put(place, index, bytes) };
            Ok(())
        })
    }

    /// The driver has no call for several.
    unsafe fn write_many<'a>(
        &self,
        writes: impl Iterator<Item = (u32, &'a Descriptor)> + Clone,
    ) -> Result<(), HeapWriteError> {
        for (_, descriptor) in writes.clone() {
            self.arrays.binding_of(descriptor.kind())?;
            descriptor.with_get_info(|_| ())?;
        }
        for (index, descriptor) in writes {
            // SAFETY: the caller makes the promises of `write`, of each of them.
            unsafe { self.write(index, descriptor) }?;
        }
        Ok(())
    }

    unsafe fn write_bytes(
        &self,
        index: u32,
        kind: DescriptorKind,
        bytes: &[u8],
    ) -> Result<(), HeapWriteError> {
        self.current.with(|laid, _| {
            let place = laid.plan.place_of(kind)?;
            if bytes.len() != place.size {
                return Err(HeapWriteError::Unlike { from: widen(bytes.len()), to: widen(place.size) });
            }
            // SAFETY: the caller promises that the index is one of the heap's and that nobody else writes the slot.
            unsafe { laid.put(place, index, bytes) };
            Ok(())
        })
    }

    fn slot(&self, index: u32, kind: DescriptorKind) -> Option<HeapSlot> {
        self.current.with(|laid, slots| {
            let place = laid.plan.place(kind)?;
            let host = HostSlot::Mapped { pointer: laid.buffer.pointer(place.at(index))?, bytes: place.size };
            let device = (index < slots).then(|| place.address_in(&laid.buffer, index));
            Some(HeapSlot { host: Some(host), device, ..HeapSlot::new(index) })
        })
    }
}
