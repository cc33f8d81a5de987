//! The store for programs that bind Vulkan's own heaps: `VK_EXT_descriptor_heap`.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::fmt;
use std::ops::Range;
use std::panic::Location;
use std::ptr;

use ash::vk;

use super::super::counts::DescriptorKind;
use super::super::descriptor::{Descriptor, DescriptorDataError};
use super::super::device::DescriptorDevice;
use super::super::features::DescriptorFeatures;
use super::super::sizes::MAX_DESCRIPTOR_BYTES;
use super::super::source::DescriptorSource;
use super::create_info::{CreateHeapError, HeapCreateInfo, HeapKind};
use super::current::{CurrentParts, of_current_parts};
use super::error::HeapWriteError;
use super::mapped::{BufferWish, MappedBuffer};
use super::mapping::BindingMapping;
use super::store::HeapStore;
use ffi::resource_type as resource;
use sublet::upload::AllocatorRef;
use sublet_engines::cast::{host_size, index as host_index, widen};
use sublet_vk::descriptor_heap as ffi;

/// A resource heap or a sampler heap of `VK_EXT_descriptor_heap`: one array of slots in a mapped buffer, followed by
/// the range that the driver reserves for itself.
///
/// **Tested on lavapipe of Mesa 26.2 under the validation layer, and on the simulated driver, but on no GPU yet.** Its
/// structures are the library's own ([`heap_ffi`](crate::heap_ffi)), because `ash` does not have them yet; their
/// layouts are checked against Vulkan's registry.
///
/// A slot is large enough for any of the heap's types, so an index is independent of the type. A shader that was
/// written for heaps finds slot *i* at *i* times [`stride`](Self::stride). A shader that was written for the arrays of
/// a [`SetStore`](super::SetStore) runs unchanged with [`mappings`](Self::mappings).
///
/// | heap | holds | made with [`HeapKind`] |
/// |---|---|---|
/// | resource | images, texel buffers, buffers, acceleration structures | `Resource` |
/// | sampler | samplers | `Sampler` |
///
/// Heaps have no combined image samplers: use an image and a sampler. Images and samplers are written from the
/// create-info of their view or handle ([`DescriptorHeap::write_source`](super::DescriptorHeap::write_source)), because
/// the driver takes no handles. Buffers are written from their address, as in a [`BufferStore`](super::BufferStore).
///
/// [`HeapCreateInfo::arrays`] and [`HeapCreateInfo::stages`] are ignored: there is one array, visible to all stages.
/// When the heap [grows](super::DescriptorHeap#growing), the reserved range moves after the slots of the new buffer.
/// Mappings and offsets stay the same.
///
/// # Binding
/// Call [`cmd_bind`](Self::cmd_bind) once for each command buffer and kind of heap, before the first draw or dispatch.
/// It invalidates bound sets, descriptor buffers and push constants, and vice versa: use one of them for everything.
///
/// ```
/// use sublet_descriptors::*;
/// use sublet::sim::{DescriptorHeapLimits, Gpu, Profile};
/// use sublet::{Allocator, AllocatorCreateInfo};
/// let gpu = Gpu::builder(Profile::by_name("intel-arc-a770").unwrap())
///     .descriptor_heap(DescriptorHeapLimits::MESA_ANV)
///     .build();
/// // SAFETY: instance and device are live, and outlive everything that is created from the values.
/// let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// // SAFETY: as above.
/// let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// let heap = DescriptorHeap::new(NativeStore::new(&device, &allocator, &HeapCreateInfo::default())?);
/// let range = heap.allocate(8)?;
/// assert_eq!(heap.store().offset_of(range.first()), Some(0));
/// // SAFETY: the device does not use the heap.
/// unsafe { heap.into_store().destroy() };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "VkBindHeapInfoEXT")]
#[must_use = "the buffer lives until it is destroyed"]
pub struct NativeStore<A: AllocatorRef> {
    allocator: A,
    device: DescriptorDevice,
    shape: NativeHeapLayout,
    types: Box<[DescriptorKind]>,
    name: Box<str>,
    /// The caller that created the store: its buffers are attributed to it.
    caller: &'static Location<'static>,
    current: CurrentParts<MappedBuffer>,
}

/// The layout of a heap's bytes. Slots come first, so that index and offset are proportional; the reserved range
/// follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct NativeHeapLayout {
    kind: HeapKind,
    max_slots: u32,
    transient: u32,
    /// The size of a slot in bytes: at most [`MAX_DESCRIPTOR_BYTES`].
    stride: u32,
    reserved: u64,
    /// The alignment of the heap's address.
    alignment: u64,
}

/// The validated source of a descriptor.
#[derive(Clone, Copy)]
enum Prepared<'a> {
    Sampler(&'a vk::SamplerCreateInfo<'a>),
    Image(&'a vk::ImageViewCreateInfo<'a>, vk::ImageLayout),
    /// A null address means the null descriptor.
    Address(vk::DescriptorAddressInfoEXT<'a>),
}

/// The number of descriptors in one driver call.
const BATCH: usize = 8;

impl NativeHeapLayout {
    /// Reads the requirements of such a heap from the device, and rejects implausible values.
    fn new(
        device: &DescriptorDevice,
        info: &HeapCreateInfo<'_>,
        embedded: bool,
    ) -> Result<Self, CreateHeapError> {
        let facts = &device.driver().facts.heap;
        let (mut size, mut align) = (0, 1);
        for &kind in info.actual_types() {
            let (own, alignment) = match kind {
                DescriptorKind::Sampler => {
                    (facts.sampler_descriptor_size, facts.sampler_descriptor_alignment)
                }
                DescriptorKind::SampledImage
                | DescriptorKind::StorageImage
                | DescriptorKind::UniformTexelBuffer
                | DescriptorKind::StorageTexelBuffer => {
                    (facts.image_descriptor_size, facts.image_descriptor_alignment)
                }
                DescriptorKind::UniformBuffer
                | DescriptorKind::StorageBuffer
                | DescriptorKind::AccelerationStructure => {
                    (facts.buffer_descriptor_size, facts.buffer_descriptor_alignment)
                }
                _ => return Err(CreateHeapError::Kind { heap: info.kind, kind }),
            };
            if own == 0 || own > widen(MAX_DESCRIPTOR_BYTES) || !alignment.is_power_of_two() {
                return Err(CreateHeapError::NoSize { kind });
            }
            size = own.max(size);
            align = alignment.max(align);
        }
        let (reserved, most, limit, alignment) = match info.kind {
            HeapKind::Sampler if embedded => (
                facts.min_sampler_heap_reserved_range_with_embedded,
                facts.max_sampler_heap_size,
                "maxSamplerHeapSize",
                facts.sampler_heap_alignment,
            ),
            HeapKind::Sampler => (
                facts.min_sampler_heap_reserved_range,
                facts.max_sampler_heap_size,
                "maxSamplerHeapSize",
                facts.sampler_heap_alignment,
            ),
            HeapKind::Resource => {
                // The reserved range of a resource heap needs the largest alignment, independent of the heap's types.
                align = align.max(facts.image_descriptor_alignment).max(facts.buffer_descriptor_alignment);
                (
                    facts.min_resource_heap_reserved_range,
                    facts.max_resource_heap_size,
                    "maxResourceHeapSize",
                    facts.resource_heap_alignment,
                )
            }
        };
        let absurd = CreateHeapError::Absurd { size: most, needed: u64::MAX };
        let stride =
            size.checked_next_multiple_of(align).filter(|&stride| stride <= widen(MAX_DESCRIPTOR_BYTES));
        let Some(stride) = stride.and_then(|stride| u32::try_from(stride).ok()) else { return Err(absurd) };
        // Both are below 2^32; and a multiple of the stride is a multiple of the alignment.
        let max_slots = info.most();
        let asked = (u64::from(stride) * u64::from(max_slots)).checked_add(reserved).ok_or(absurd)?;
        if asked > most {
            return Err(CreateHeapError::Limit { limit, asked, allowed: most });
        }
        let (kind, transient) = (info.kind, info.transient);
        Ok(Self { kind, max_slots, transient, stride, reserved, alignment: alignment.max(1) })
    }

    /// Returns the start of the reserved range for this number of slots: a multiple of every descriptor's alignment.
    fn reserved_offset(&self, slots: u32) -> u64 {
        u64::from(self.stride) * u64::from(slots)
    }

    /// Returns the size of a heap with this number of slots, including the reserved range.
    fn size(&self, slots: u32) -> u64 {
        // `new` checked that this is within the device's limit.
        self.reserved_offset(slots) + self.reserved
    }
}

impl<A: AllocatorRef> NativeStore<A> {
    /// Creates the buffer of the heap.
    ///
    /// # Errors
    /// [`CreateHeapError`]: the feature is not enabled, an unsupported type, limits, no memory, an allocator of another
    /// device, or a driver error. Nothing is left behind.
    #[track_caller]
    pub fn new(
        device: &DescriptorDevice,
        allocator: A,
        info: &HeapCreateInfo<'_>,
    ) -> Result<Self, CreateHeapError> {
        Self::make(device, allocator, info, false, Location::caller())
    }

    /// Variant of [`new`](Self::new) that reserves the space of a sampler heap for shaders with embedded samplers
    /// ([`BindingMapping::embedded_sampler`]).
    ///
    /// # Errors
    /// Same as [`new`](Self::new).
    #[track_caller]
    pub fn with_embedded_samplers(
        device: &DescriptorDevice,
        allocator: A,
        info: &HeapCreateInfo<'_>,
    ) -> Result<Self, CreateHeapError> {
        Self::make(device, allocator, info, true, Location::caller())
    }

    fn make(
        device: &DescriptorDevice,
        allocator: A,
        info: &HeapCreateInfo<'_>,
        embedded: bool,
        caller: &'static Location<'static>,
    ) -> Result<Self, CreateHeapError> {
        info.check()?;
        let missing = (DescriptorFeatures::DESCRIPTOR_HEAP | DescriptorFeatures::BUFFER_DEVICE_ADDRESS)
            - device.features();
        if !missing.is_empty() {
            return Err(CreateHeapError::Unsupported { missing });
        }
        if !device.driver().is_of(allocator.allocator()) {
            return Err(CreateHeapError::ForeignAllocator);
        }
        let shape = NativeHeapLayout::new(device, info, embedded)?;
        let buffer = Self::make_buffer(device, &allocator, &shape, (info.name, caller), info.slots)?;
        let current = CurrentParts::new(buffer, info.slots, shape.max_slots);
        let (device, types, name) = (device.clone(), info.actual_types().into(), info.name.into());
        Ok(Self { allocator, device, shape, types, name, caller, current })
    }

    fn make_buffer(
        device: &DescriptorDevice,
        allocator: &A,
        shape: &NativeHeapLayout,
        (name, caller): (&str, &'static Location<'static>),
        slots: u32,
    ) -> Result<MappedBuffer, CreateHeapError> {
        let usage = ffi::BUFFER_USAGE_DESCRIPTOR_HEAP;
        let (bytes, alignment) = (shape.size(slots), shape.alignment);
        let wish = BufferWish { bytes, alignment, usage, name, caller };
        // SAFETY: `make` checked the owner of the allocator and the features; there is at least one slot.
        unsafe { MappedBuffer::create(device, allocator, &wish) }
    }

    /// Returns the kind of the heap.
    #[must_use]
    pub fn kind(&self) -> HeapKind {
        self.shape.kind
    }

    /// Returns the distance between slots in bytes.
    #[must_use]
    pub fn stride(&self) -> u64 {
        self.shape.stride.into()
    }

    /// Returns the offset of a slot in bytes from the start of the heap, as shaders and mappings use it. `None` if
    /// there is no such slot.
    #[must_use]
    pub fn offset_of(&self, index: u32) -> Option<u64> {
        (index < self.slots()).then(|| u64::from(self.shape.stride) * u64::from(index))
    }

    /// Returns the device address of a slot, for commands that write descriptors on the GPU. `None` if there is no such
    /// slot.
    #[must_use]
    pub fn address_of(&self, index: u32) -> Option<vk::DeviceAddress> {
        let offset = u64::from(self.shape.stride) * u64::from(index);
        // The slot is inside the buffer, so this only wraps if the driver's address is invalid.
        self.current.with(|buffer, slots| (index < slots).then(|| buffer.address().wrapping_add(offset)))
    }

    /// Returns the reserved range of the driver, in bytes from the start of the heap. Nobody else may read or write it
    /// while a command buffer has the heap bound.
    #[must_use]
    pub fn reserved(&self) -> Range<u64> {
        let slots = self.slots();
        self.shape.reserved_offset(slots)..self.shape.size(slots)
    }

    /// Returns the parameters of [`cmd_bind`](Self::cmd_bind), for `VkCommandBufferInheritanceDescriptorHeapInfoEXT` of
    /// secondary command buffers.
    pub fn bind_info(&self) -> ffi::BindHeapInfoEXT {
        let (address, slots) = self.current.with(|buffer, slots| (buffer.address(), slots));
        ffi::BindHeapInfoEXT {
            heap_range: ffi::DeviceAddressRangeKHR { address, size: self.shape.size(slots) },
            reserved_range_offset: self.shape.reserved_offset(slots),
            reserved_range_size: self.shape.reserved,
            ..Default::default()
        }
    }

    /// Returns the binding at which shaders that were written for a [`SetStore`](super::SetStore) with one array for
    /// each type find descriptors of a type; `None` if the heap does not hold the type.
    #[must_use]
    pub fn binding(&self, kind: DescriptorKind) -> Option<u32> {
        let at = self.types.iter().position(|&own| own == kind)?;
        u32::try_from(at).ok()
    }

    /// Returns the mappings of set number `set` of such a shader: one array for each type, at
    /// [`binding`](Self::binding), each covering the whole heap.
    pub fn mappings(&self, set: u32) -> impl Iterator<Item = BindingMapping> {
        let stride = self.shape.stride;
        (0..).zip(self.types.iter()).map(move |(binding, &kind)| {
            let resources = match kind {
                DescriptorKind::Sampler => resource::SAMPLER,
                DescriptorKind::SampledImage | DescriptorKind::UniformTexelBuffer => resource::SAMPLED_IMAGE,
                DescriptorKind::StorageImage | DescriptorKind::StorageTexelBuffer => {
                    resource::READ_ONLY_IMAGE | resource::READ_WRITE_IMAGE
                }
                DescriptorKind::UniformBuffer => resource::UNIFORM_BUFFER,
                DescriptorKind::AccelerationStructure => resource::ACCELERATION_STRUCTURE,
                _ => resource::READ_ONLY_STORAGE_BUFFER | resource::READ_WRITE_STORAGE_BUFFER,
            };
            BindingMapping::array(set, binding, resources, 0, stride)
        })
    }

    /// Binds the heap, and replaces the bound heap of its kind.
    ///
    /// # Safety
    /// The command buffer is being recorded by this thread alone, and inherits no heap of this kind
    /// (VUID-vkCmdBindResourceHeapEXT-commandBuffer-11238, VUID-vkCmdBindSamplerHeapEXT-commandBuffer-11231).
    pub unsafe fn cmd_bind(&self, commands: vk::CommandBuffer) {
        let (driver, info) = (self.device.driver(), self.bind_info());
        match self.shape.kind {
            // SAFETY: the heap is in a buffer with the right usage, starts aligned, is within the size limit, and
            // reserves the required range; the rest is the caller's promise.
            HeapKind::Resource => unsafe { driver.cmd_bind_resource_heap(commands, &info) },
            // SAFETY: as above.
            HeapKind::Sampler => unsafe { driver.cmd_bind_sampler_heap(commands, &info) },
        }
    }

    /// Destroys the buffer. Without this call it is leaked, with a `tracing` warning.
    ///
    /// # Safety
    /// The device is done with all submissions that use the heap. The command buffers that bind it are reset or freed,
    /// because the memory of its reserved range is reused (VUID-vkCmdBindResourceHeapEXT-pBindInfo-11236,
    /// VUID-vkCmdBindSamplerHeapEXT-pBindInfo-11228).
    pub unsafe fn destroy(self) {
        let Self { allocator, current, .. } = self;
        // SAFETY: the allocator created the buffers, and the caller promises that the device is done with them.
        current.into_each(|buffer| unsafe { buffer.destroy(&allocator) });
    }

    /// Validates a source: the heap must hold the type, and the source must be complete.
    fn prepare<'a>(&self, source: &DescriptorSource<'a>) -> Result<Prepared<'a>, HeapWriteError> {
        let kind = source.descriptor().kind();
        if !self.types.contains(&kind) {
            return Err(HeapWriteError::Kind { kind });
        }
        Ok(match *source {
            DescriptorSource::Sampler { info, .. } => Prepared::Sampler(info),
            DescriptorSource::SampledImage { image, info }
            | DescriptorSource::StorageImage { image, info } => Prepared::Image(info, image.layout),
            DescriptorSource::Other(descriptor) => Prepared::Address(descriptor.address_info()?),
        })
    }

    /// Writes at most [`BATCH`] descriptors with one driver call.
    ///
    /// # Safety
    /// Same as [`HeapStore::write_many`]. Each kind matches its prepared source.
    unsafe fn put<const N: usize>(
        &self,
        batch: &[(u32, DescriptorKind, Prepared<'_>)],
    ) -> Result<(), HeapWriteError> {
        // Built here and then copied: drivers may write a descriptor in pieces, or read back their writes.
        let mut bytes = [[0_u8; MAX_DESCRIPTOR_BYTES]; N];
        let stride = host_index(self.shape.stride);
        let to = bytes
            .each_mut()
            .map(|bytes| ffi::HostAddressRangeEXT { address: bytes.as_mut_ptr().cast(), size: stride });
        let driver = self.device.driver();
        if self.shape.kind == HeapKind::Sampler {
            let mut infos = [vk::SamplerCreateInfo::default(); N];
            for (info, (.., prepared)) in infos.iter_mut().zip(batch) {
                if let Prepared::Sampler(sampler) = prepared {
                    *info = **sampler;
                }
            }
            // SAFETY: the caller promises that the create-infos are valid; a slot is large enough for a sampler.
            unsafe { driver.write_samplers(&infos[..batch.len()], &to[..batch.len()]) }?;
        } else {
            let mut ranges = [ffi::DeviceAddressRangeKHR { address: 0, size: 0 }; N];
            let mut texels = [ffi::TexelBufferDescriptorInfoEXT::default(); N];
            let mut images = [ffi::ImageDescriptorInfoEXT::default(); N];
            let mut infos = [ffi::ResourceDescriptorInfoEXT::default(); N];
            for (at, &(_, kind, prepared)) in batch.iter().enumerate() {
                let data = match prepared {
                    Prepared::Image(view, layout) => {
                        images[at].p_view = ptr::from_ref(view).cast();
                        images[at].layout = layout;
                        ffi::ResourceDescriptorDataEXT { p_image: &images[at] }
                    }
                    Prepared::Address(of) if of.address != 0 => {
                        ranges[at] = ffi::DeviceAddressRangeKHR { address: of.address, size: of.range };
                        if matches!(
                            kind,
                            DescriptorKind::UniformTexelBuffer | DescriptorKind::StorageTexelBuffer
                        ) {
                            texels[at].format = of.format;
                            texels[at].address_range = ranges[at];
                            ffi::ResourceDescriptorDataEXT { p_texel_buffer: &texels[at] }
                        } else {
                            ffi::ResourceDescriptorDataEXT { p_address_range: &ranges[at] }
                        }
                    }
                    _ => ffi::ResourceDescriptorDataEXT { p_address_range: ptr::null() },
                };
                infos[at].ty = kind.to_vk();
                infos[at].data = data;
            }
            // SAFETY: the caller promises that the objects in the infos are live. They point to local values, and a
            // slot is large enough for each of the heap's types.
            unsafe { driver.write_resources(&infos[..batch.len()], &to[..batch.len()]) }?;
        }
        self.current.with(|buffer, slots| {
            for (&(index, ..), bytes) in batch.iter().zip(&bytes) {
                debug_assert!(index < slots);
                // SAFETY: the slot is inside the buffer, because the index is one of the heap's; the caller promises
                // that nobody else writes it.
                unsafe { buffer.put(stride * host_index(index), &bytes[..stride]) };
            }
        });
        Ok(())
    }

    /// Writes sources, [`BATCH`] at a time. Writes nothing if one of them is incomplete.
    ///
    /// # Safety
    /// Same as [`HeapStore::write_many`].
    unsafe fn write_sources<'a>(
        &self,
        writes: impl Iterator<Item = (u32, DescriptorSource<'a>)> + Clone,
    ) -> Result<(), HeapWriteError> {
        for (_, source) in writes.clone() {
            self.prepare(&source)?;
        }
        let nothing = Prepared::Address(vk::DescriptorAddressInfoEXT::default());
        let mut batch = [(0, DescriptorKind::UniformBuffer, nothing); BATCH];
        let mut count = 0;
        for (index, source) in writes {
            batch[count] = (index, source.descriptor().kind(), self.prepare(&source)?);
            count += 1;
            if count == BATCH {
                // SAFETY: the caller's promise.
                unsafe { self.put::<BATCH>(&batch) }?;
                count = 0;
            }
        }
        if count == 0 {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.put::<BATCH>(&batch[..count]) }
    }
}

impl<A: AllocatorRef> fmt::Debug for NativeStore<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeStore")
            .field("shape", &self.shape)
            .field("types", &self.types)
            .field("current", &self.current)
            .finish_non_exhaustive()
    }
}

impl<A: AllocatorRef> HeapStore for NativeStore<A> {
    of_current_parts!(shape, |store, buffer| buffer.destroy(&store.allocator));

    /// Creates one buffer and copies the bytes of the old slots, like a [`BufferStore`](super::BufferStore).
    fn grow(&self, slots: u32) -> Result<(), CreateHeapError> {
        let from = (&*self.name, self.caller);
        let make = || Self::make_buffer(&self.device, &self.allocator, &self.shape, from, slots);
        self.current.grow(slots, self.types.len(), make, |old, next, had| {
            let bytes = host_size(self.shape.reserved_offset(had)).unwrap_or(0);
            // SAFETY: both buffers have this many slots; nobody writes those of the old one meanwhile, and nobody else
            // has the new one. The reserved range is not read.
            unsafe { next.copy_from(0, old, 0, bytes) };
        })
    }

    unsafe fn write(&self, index: u32, descriptor: &Descriptor) -> Result<(), HeapWriteError> {
        // SAFETY: the caller's promise.
        unsafe { self.write_source(index, &DescriptorSource::Other(*descriptor)) }
    }

    unsafe fn write_source(&self, index: u32, source: &DescriptorSource<'_>) -> Result<(), HeapWriteError> {
        let kind = source.descriptor().kind();
        // SAFETY: the caller's promise.
        unsafe { self.put::<1>(&[(index, kind, self.prepare(source)?)]) }
    }

    /// Makes one driver call for up to eight descriptors. If the driver fails, those of earlier calls stay written.
    unsafe fn write_many<'a>(
        &self,
        writes: impl Iterator<Item = (u32, &'a Descriptor)> + Clone,
    ) -> Result<(), HeapWriteError> {
        let sources = writes.map(|(index, descriptor)| (index, DescriptorSource::Other(*descriptor)));
        // SAFETY: the caller's promise.
        unsafe { self.write_sources(sources) }
    }
}

/// Addresses of descriptors that need no create-info.
impl Descriptor {
    fn address_info(&self) -> Result<vk::DescriptorAddressInfoEXT<'static>, DescriptorDataError> {
        match *self {
            Self::SampledImage(image) | Self::StorageImage(image) if image.view == vk::ImageView::null() => {
                Ok(vk::DescriptorAddressInfoEXT::default())
            }
            Self::Sampler(_)
            | Self::CombinedImageSampler { .. }
            | Self::SampledImage(_)
            | Self::StorageImage(_)
            | Self::InputAttachment(_) => Err(DescriptorDataError::NoCreateInfo { kind: self.kind() }),
            _ => self.address(),
        }
    }
}
