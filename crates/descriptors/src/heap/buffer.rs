//! The store for programs that bind descriptor buffers: bytes in mapped memory.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use ash::vk;

use super::super::counts::DescriptorKind;
use super::super::descriptor::Descriptor;
use super::super::device::DescriptorDevice;
use super::super::sizes::{DescriptorSizes, MAX_DESCRIPTOR_BYTES};
use super::arrays::{HeapLayout, LayoutArrays, LayoutPurpose, layout_getters};
use super::create_info::{CreateHeapError, HeapCreateInfo};
use super::current::{CurrentParts, of_current_parts};
use super::error::HeapWriteError;
use super::mapped::{BufferWish, MappedBuffer};
use super::slot::{HeapSlot, HostSlot};
use super::store::HeapStore;
use crate::driver::BindTarget;
use sublet::upload::AllocatorRef;
use sublet_engines::cast::{host_size, widen};

/// The arrays of a heap in a descriptor buffer (`VK_EXT_descriptor_buffer`). A write copies a few bytes and takes no
/// lock in the driver.
///
/// The buffer is mapped and comes from an [`Allocator`](sublet::Allocator), in device memory if that can be mapped. Its
/// memory is coherent, so there is nothing to flush. It is not read in normal use, because reads of mapped memory are
/// slow. The store holds the allocator, by reference or shared ([`AllocatorRef`]), so the memory lives as long as the
/// store.
///
/// Shaders declare the same arrays as for a [`SetStore`](super::SetStore). Pipelines need
/// `VK_PIPELINE_CREATE_DESCRIPTOR_BUFFER_BIT_EXT`. Descriptors of buffers need their addresses
/// ([`BufferDescriptor::address`](super::super::BufferDescriptor::address)).
///
/// # Binding
/// [`cmd_bind_all`](Self::cmd_bind_all) binds all descriptor buffers of a command buffer in one call, because each call
/// unbinds the earlier ones. Then [`cmd_set_offset`](Self::cmd_set_offset) selects the buffer of a set. Binding sets
/// (`vkCmdBindDescriptorSets`) invalidates both, and vice versa: use one of the two for everything.
///
/// ```
/// use sublet_descriptors::*;
/// use sublet::{Allocator, AllocatorCreateInfo, sim};
/// let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-h200").unwrap());
/// // SAFETY: instance and device are live, and outlive everything that is created from the values.
/// let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// // SAFETY: as above.
/// let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// let heap = DescriptorHeap::new(BufferStore::new(&device, &allocator, &HeapCreateInfo::default())?);
/// let range = heap.allocate(8)?;
/// // SAFETY: the device does not use the heap.
/// unsafe { heap.into_store().destroy() };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The allocator cannot be dropped before the store:
///
/// ```compile_fail,E0505
/// use sublet_descriptors::*;
/// use sublet::{Allocator, AllocatorCreateInfo, sim};
/// let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-h200").unwrap());
/// let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }.unwrap();
/// let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
/// let store = BufferStore::new(&device, &allocator, &HeapCreateInfo::default()).unwrap();
/// allocator.destroy(); // would free the memory that the store writes to
/// unsafe { store.destroy() };
/// ```
#[must_use = "the buffer lives until it is destroyed"]
#[doc(alias = "DescriptorBufferAllocator")]
pub struct BufferStore<A: AllocatorRef> {
    allocator: A,
    device: DescriptorDevice,
    arrays: LayoutArrays,
    name: Box<str>,
    /// The caller that created the store: its buffers are attributed to it.
    caller: &'static Location<'static>,
    current: CurrentParts<LaidBuffer>,
}

/// A buffer and the positions of its layout's arrays.
#[derive(Debug)]
struct LaidBuffer {
    layout: Arc<HeapLayout>,
    plan: SetBytesPlan,
    buffer: MappedBuffer,
}

/// The position of a type's descriptors, in bytes from the start of the set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ArrayBytes {
    kind: DescriptorKind,
    first: usize,
    stride: usize,
    size: usize,
}

impl ArrayBytes {
    fn at(&self, index: u32) -> usize {
        self.first + self.stride * sublet_engines::cast::index(index)
    }

    /// The slot is inside the buffer, so this only wraps if the driver's address is invalid.
    fn address_in(&self, buffer: &MappedBuffer, index: u32) -> vk::DeviceAddress {
        buffer.address().wrapping_add(widen(self.first) + widen(self.stride) * u64::from(index))
    }
}

/// The positions of a set's arrays, the validated size of the set, and the usages of its buffer.
#[derive(Debug)]
struct SetBytesPlan {
    places: Box<[ArrayBytes]>,
    size: u64,
    usage: vk::BufferUsageFlags,
}

impl SetBytesPlan {
    /// Queries the positions of the arrays from the device, and rejects implausible values.
    fn new(
        device: &DescriptorDevice,
        arrays: &LayoutArrays,
        layout: &HeapLayout,
    ) -> Result<Self, CreateHeapError> {
        let driver = device.driver();
        let sizes = DescriptorSizes::of(device);
        let handle = layout.of_sets().handle();
        // SAFETY: the layout is live, and was created for descriptor buffers.
        let size = unsafe { driver.set_layout_size(handle) };
        let size_of = |kind| sizes.get(kind).ok_or(CreateHeapError::NoSize { kind });
        let mut places = Vec::new();
        for &kind in arrays.types() {
            let own = size_of(kind)?;
            let largest = sizes.largest(arrays.types()).filter(|_| arrays.is_one());
            let stride = largest.unwrap_or(own);
            let binding = arrays.binding(kind).unwrap_or(0);
            // SAFETY: the layout is live, was created for descriptor buffers, and has the binding.
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

    /// Returns the size of a set with this number of slots, which is at most that of its layout.
    fn bytes_of(&self, arrays: &LayoutArrays, slots: u32) -> u64 {
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

/// Returns the usages of a buffer for a set of this size, if the device allows it.
fn usage_of(
    device: &DescriptorDevice,
    arrays: &LayoutArrays,
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
    /// Creates the layout and its buffer.
    ///
    /// # Errors
    /// [`CreateHeapError`]: missing features, limits, no memory, an allocator of another device, or a driver error.
    /// Nothing is left behind.
    #[track_caller]
    pub fn new(
        device: &DescriptorDevice,
        allocator: A,
        info: &HeapCreateInfo<'_>,
    ) -> Result<Self, CreateHeapError> {
        if !device.driver().is_of(allocator.allocator()) {
            return Err(CreateHeapError::ForeignAllocator);
        }
        let properties = &device.driver().facts.buffer;
        let has_combined = info.actual_types().contains(&DescriptorKind::CombinedImageSampler);
        let arrays = LayoutArrays::new(device, info, LayoutPurpose::Buffer)?;
        let is_split = properties.combined_image_sampler_descriptor_single_array == vk::FALSE;
        if has_combined && is_split {
            return Err(CreateHeapError::SplitArrays);
        }
        let source = (info.name, Location::caller());
        let layout = HeapLayout::create(device, &arrays, arrays.slots)?;
        let laid = Self::make(device, &allocator, &arrays, layout, source, arrays.slots)?;
        let current = CurrentParts::new(laid, arrays.slots, arrays.max_slots);
        Ok(Self {
            allocator,
            device: device.clone(),
            arrays,
            name: info.name.into(),
            caller: source.1,
            current,
        })
    }

    /// Creates a buffer for this number of slots of the layout. On failure nothing is left behind; the layout is
    /// destroyed if it has no other owner.
    fn make(
        device: &DescriptorDevice,
        allocator: &A,
        arrays: &LayoutArrays,
        layout: Arc<HeapLayout>,
        (name, caller): (&str, &'static Location<'static>),
        slots: u32,
    ) -> Result<LaidBuffer, CreateHeapError> {
        let alignment = device.driver().facts.buffer.descriptor_buffer_offset_alignment.max(1);
        let made = SetBytesPlan::new(device, arrays, &layout).and_then(|plan| {
            let bytes = plan.bytes_of(arrays, slots).max(1);
            let wish = BufferWish { bytes, alignment, usage: plan.usage, name, caller };
            // SAFETY: `new` checked the owner of the allocator; the size is not zero, and the features of the usages
            // are enabled.
            Ok((unsafe { MappedBuffer::create(device, allocator, &wish) }?, plan))
        });
        match made {
            Ok((buffer, plan)) => Ok(LaidBuffer { layout, plan, buffer }),
            Err(error) => {
                // SAFETY: the layout belongs to this device, and everything created from it here is destroyed.
                unsafe { layout.release(device) };
                Err(error)
            }
        }
    }

    layout_getters!(layout);

    /// Returns the distance between slots in bytes, for descriptors of a type; `None` if the heap does not hold the
    /// type.
    #[must_use]
    pub fn stride(&self, kind: DescriptorKind) -> Option<u64> {
        self.current.with(|laid, _| laid.plan.place(kind).map(|place| widen(place.stride)))
    }

    /// Returns the device address of a slot's descriptor, for commands that write descriptors on the GPU. `None` if the
    /// heap does not hold the type, or has no such slot.
    #[must_use]
    pub fn address_of(&self, kind: DescriptorKind, index: u32) -> Option<vk::DeviceAddress> {
        self.current.with(|laid, slots| {
            let place = laid.plan.place(kind).filter(|_| index < slots)?;
            Some(place.address_in(&laid.buffer, index))
        })
    }

    /// Returns address and usage, for programs that bind it together with other descriptor buffers. The set starts at
    /// the address.
    pub fn binding_info(&self) -> vk::DescriptorBufferBindingInfoEXT<'static> {
        self.current.with(|laid, _| {
            let address = laid.buffer.address();
            vk::DescriptorBufferBindingInfoEXT::default().address(address).usage(laid.plan.usage)
        })
    }

    /// Binds the buffers of several heaps, and unbinds all earlier descriptor buffers. Call it once for each command
    /// buffer.
    ///
    /// # Panics
    /// If there are more than four. Devices guarantee one for resources and one for samplers.
    ///
    /// # Safety
    /// The command buffer is being recorded by this thread alone. There is at least one store, all belong to one
    /// device, and their number is within its limits (`maxDescriptorBufferBindings`, and those for samplers and
    /// resources).
    pub unsafe fn cmd_bind_all(commands: vk::CommandBuffer, stores: &[&Self]) {
        assert!(stores.len() <= 4, "{} descriptor buffers are bound at once", stores.len());
        let Some(first) = stores.first() else { return };
        let mut infos = [vk::DescriptorBufferBindingInfoEXT::default(); 4];
        for (info, store) in infos.iter_mut().zip(stores) {
            *info = store.binding_info();
        }
        // SAFETY: the buffers are live and have the usages. The caller promises that this thread alone records the
        // command buffer, and that the device allows this many.
        unsafe { first.device.driver().cmd_bind_buffers(commands, &infos[..stores.len()]) };
    }

    /// Selects this heap for set number `set` of the layout. The heap is number `buffer` of the bound buffers.
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
        // SAFETY: the set starts at the buffer's bound address. The caller promises that this thread alone records the
        // command buffer, that the heap is bound as number `buffer`, and that the layout has the set.
        unsafe { self.device.driver().cmd_set_offsets(&target, &[buffer], &[0]) };
    }

    /// Destroys buffer and layout. Without this call they are leaked, with a `tracing` warning.
    ///
    /// # Safety
    /// The device is done with all submissions that use the heap.
    pub unsafe fn destroy(self) {
        let Self { allocator, device, current, .. } = self;
        // SAFETY: all parts belong to this store, and the caller promises that the device is done with them.
        current.into_each(|laid| unsafe { laid.destroy(&device, &allocator) });
    }
}

impl LaidBuffer {
    /// Copies bytes into a slot.
    ///
    /// # Safety
    /// The place belongs to this plan, the index is one of the heap's, and nobody else writes the slot.
    #[inline]
    unsafe fn put(&self, place: &ArrayBytes, index: u32, bytes: &[u8]) {
        debug_assert!(bytes.len() <= place.stride);
        // SAFETY: `SetBytesPlan::new` checked that the arrays are inside the set; the caller promises that nobody else
        // writes the slot.
        unsafe { self.buffer.put(place.at(index), bytes) };
    }

    /// # Safety
    /// This device and this allocator created it, and the device is done with it.
    unsafe fn destroy(self, device: &DescriptorDevice, allocator: &impl AllocatorRef) {
        // SAFETY: the device is done with the buffer, and this consumes the value.
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
    of_current_parts!(arrays, |store, laid| laid.destroy(&store.device, &store.allocator));

    /// Creates one buffer and copies the bytes of the old one. Reading mapped memory is slow, but happens only once for
    /// each slot.
    fn grow(&self, slots: u32) -> Result<(), CreateHeapError> {
        let make = || {
            let now = self.current.with(|laid, _| laid.layout.clone());
            let layout = now.next(&self.device, &self.arrays, slots)?;
            let source = (&*self.name, self.caller);
            Self::make(&self.device, &self.allocator, &self.arrays, layout, source, slots)
        };
        self.current.grow(slots, self.arrays.types().len(), make, |old, next, had| {
            // If all types share an array, the first type represents it.
            let arrays = if self.arrays.is_one() { 1 } else { self.arrays.types().len() };
            for (from, to) in old.plan.places.iter().zip(&next.plan.places).take(arrays) {
                let bytes = from.stride * sublet_engines::cast::index(had);
                // SAFETY: both buffers have this many slots of the type with the same stride; nobody writes the old one
                // meanwhile, and nobody else has the new one.
                unsafe { next.buffer.copy_from(to.first, &old.buffer, from.first, bytes) };
            }
        })
    }

    unsafe fn write(&self, index: u32, descriptor: &Descriptor) -> Result<(), HeapWriteError> {
        self.current.with(|laid, slots| {
            debug_assert!(index < slots);
            let place = laid.plan.place_of(descriptor.kind())?;
            // Built here and then copied whole: drivers may write a descriptor in pieces, or read back their writes.
            let mut bytes = [0; MAX_DESCRIPTOR_BYTES];
            let bytes = &mut bytes[..place.size];
            descriptor.with_get_info(|info| {
                // SAFETY: the caller promises that the objects in the info are live; `bytes` has the size of the type.
                unsafe { self.device.driver().descriptor_bytes(info, bytes) };
            })?;
            // SAFETY: the caller promises that the index is one of the heap's and that nobody else writes the slot.
            unsafe { laid.put(place, index, bytes) };
            Ok(())
        })
    }

    /// Makes one driver call for each descriptor: the driver has no call for several.
    unsafe fn write_many<'a>(
        &self,
        writes: impl Iterator<Item = (u32, &'a Descriptor)> + Clone,
    ) -> Result<(), HeapWriteError> {
        for (_, descriptor) in writes.clone() {
            self.arrays.binding_of(descriptor.kind())?;
            descriptor.with_get_info(|_| ())?;
        }
        for (index, descriptor) in writes {
            // SAFETY: the caller keeps the promises of `write` for each of them.
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
