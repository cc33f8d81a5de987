//! Looks descriptors and data up in the heaps that are bound, and in push data.

use ash::vk;
use ash::vk::DescriptorType as Type;

use crate::facts::arithmetic::{host_size, is_aligned};
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::ffi::resource_type as resource;
use crate::facts::profiles::DescriptorHeapLimits;
use crate::objects::descriptor_table::Meaning;
use crate::objects::descriptors::names::buffer_needs;
use crate::objects::heaps::{
    HeapAddress, HeapBinding, HeapImage, Index, MappedSource, SamplerState, SetMapping,
};
use crate::objects::state::{DeviceObject, DeviceState, StoreRange};

/// The kind of descriptor that a shader requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShaderDescriptorKind {
    Buffer,
    Image,
    Sampler,
}

impl ShaderDescriptorKind {
    /// The types of variables that it may be, the certain ones first.
    fn masks(self) -> &'static [u32] {
        const BUFFERS: u32 = resource::UNIFORM_BUFFER
            | resource::READ_ONLY_STORAGE_BUFFER
            | resource::READ_WRITE_STORAGE_BUFFER;
        const IMAGES: u32 = resource::SAMPLED_IMAGE | resource::READ_ONLY_IMAGE | resource::READ_WRITE_IMAGE;
        match self {
            // Texel buffers are images.
            Self::Buffer => &[BUFFERS, IMAGES],
            Self::Image => &[IMAGES, resource::COMBINED_SAMPLED_IMAGE],
            Self::Sampler => &[resource::SAMPLER, resource::COMBINED_SAMPLED_IMAGE],
        }
    }
}

/// The result of a lookup.
pub(crate) enum HeapDescriptor {
    /// A range of a buffer.
    Buffer {
        kind: Type,
        buffer: vk::Buffer,
        offset: u64,
        range: u64,
    },
    /// Bytes from an address on.
    Bytes {
        bytes: StoreRange,
        len: u64,
        writable: bool,
    },
    /// A copy of push data.
    Data(Vec<u8>),
    Image(HeapImage),
    Sampler(SamplerState),
}

/// The heaps that are bound, and push data.
pub(crate) struct HeapView<'a> {
    pub(crate) device: &'a DeviceObject,
    pub(crate) state: &'a DeviceState,
    pub(crate) limits: DescriptorHeapLimits,
    /// Resources, and samplers.
    pub(crate) heaps: [Option<HeapBinding>; 2],
    /// The bytes of push data from an offset on, if all of them were pushed.
    pub(crate) push: &'a dyn Fn(u32, u32) -> Option<&'a [u8]>,
}

impl HeapView<'_> {
    fn heap(&self, sampler: bool) -> Result<&HeapBinding, Broken> {
        self.heaps[usize::from(sampler)].as_ref().ok_or_else(|| {
            let name = if sampler { "sampler" } else { "resource" };
            ("VUID-vkCmdDispatch-None-11308", format!("no {name} heap is bound"))
        })
    }

    fn pushed<const N: usize>(&self, offset: u32) -> Result<[u8; N], Broken> {
        let size = u32::try_from(N).unwrap_or(0);
        let found = (self.push)(offset, size).and_then(|bytes| bytes.first_chunk::<N>().copied());
        found.ok_or_else(|| {
            let text = format!("{N} bytes of push data from {offset} on are read, and not all were pushed");
            ("VUID-vkCmdDispatch-None-11376", text)
        })
    }

    /// Reads memory through an address that must be a multiple of `alignment`, as uniform data.
    fn memory<const N: usize>(
        &self,
        (base, offset): (u64, u64),
        (alignment, misaligned): (u64, &'static str),
        unmapped: &'static str,
    ) -> Result<[u8; N], Broken> {
        refuse_if!(!is_aligned(base, alignment) => misaligned,
            "the address {base:#x} is no multiple of {alignment}");
        let address = base.saturating_add(offset);
        let usage = vk::BufferUsageFlags::UNIFORM_BUFFER;
        let found = self
            .state
            .locate(address, usage)
            .filter(|found| found.left >= crate::facts::arithmetic::widen(N));
        let Some(found) = found else {
            return Err((unmapped, format!("no buffer with SHADER_DEVICE_ADDRESS lies at {address:#x}")));
        };
        let usages = self.state.buffers.get(&found.buffer).map(|buffer| buffer.description.usage);
        refuse_if!(!usages.unwrap_or_default().contains(usage) => "VUID-vkCmdDispatch-None-11437",
            "{} was created without UNIFORM_BUFFER", self.state.name(found.buffer));
        let mut bytes = [0; N];
        if found.bytes.store.read(found.bytes.offset, &mut bytes) {
            Ok(bytes)
        } else {
            Err(("SUBLET-transfer-failed", "there are no bytes behind it".to_owned()))
        }
    }

    /// The word that an index is in, for an element.
    fn word(&self, index: Index, element: u32) -> Result<u32, Broken> {
        match index {
            Index::Zero => Ok(0),
            Index::Push(offset) => Ok(u32::from_le_bytes(self.pushed(offset)?)),
            Index::Indirect { push, address, each } => {
                let base = u64::from_le_bytes(self.pushed(push)?);
                let element = if each { u64::from(element) * 4 } else { 0 };
                let at = (base, u64::from(address) + element);
                let aligned = (4, "VUID-vkCmdDispatch-None-11300");
                Ok(u32::from_le_bytes(self.memory(at, aligned, "VUID-vkCmdDispatch-None-11301")?))
            }
            Index::Record(_) => no_record(),
        }
    }

    /// The descriptor at an offset of a heap.
    fn descriptor(&self, sampler: bool, offset: u64) -> Result<HeapDescriptor, Broken> {
        let heap = self.heap(sampler)?;
        let smallest = if sampler { self.limits.sampler } else { self.limits.buffer.min(self.limits.image) };
        let end = offset.saturating_add(smallest);
        let (from, to) = heap.reserved;
        refuse_if!(end > heap.size || (offset < to && from < end) => "VUID-vkCmdDispatch-None-11309",
            "a descriptor at {offset}, in a heap of {} bytes that is reserved from {from} to {to}",
            heap.size);
        let address = heap.address.saturating_add(offset);
        let Some(found) = self.state.locate(address, crate::facts::ffi::BUFFER_USAGE_DESCRIPTOR_HEAP) else {
            let text = format!("no heap lies at the address {address:#x}");
            return Err(("SUBLET-descriptor-destroyed", text));
        };
        let sizes = if sampler { [self.limits.sampler; 2] } else { [self.limits.buffer, self.limits.image] };
        let mut unwritten = true;
        for size in sizes {
            let mut bytes = vec![0; host_size(size.min(heap.size - offset)).unwrap_or(0)];
            refuse_if!(!found.bytes.store.read(found.bytes.offset, &mut bytes) => "SUBLET-transfer-failed",
                "the heap has no bytes behind it");
            if let Some(meaning) = self.state.descriptor_bytes.decode(&bytes) {
                return self.seen(meaning);
            }
            unwritten &= bytes.iter().all(|&byte| byte == 0);
        }
        refuse_if!(unwritten => "SUBLET-descriptor-unwritten", "nothing was written at {offset}");
        Err(("SUBLET-descriptor-garbage", format!("the bytes at {offset} are no descriptor")))
    }

    fn seen(&self, meaning: Meaning) -> Result<HeapDescriptor, Broken> {
        let gone = |text: String| Err(("SUBLET-descriptor-destroyed", text));
        match meaning {
            Meaning::Buffer { kind, address, range } => {
                let Some(found) = self.state.locate(address, vk::BufferUsageFlags::empty()) else {
                    return gone(format!("the buffer at {address:#x}, which it describes, is destroyed"));
                };
                let size = self.state.buffers.get(&found.buffer).map_or(0, |of| of.description.size);
                Ok(HeapDescriptor::Buffer {
                    kind,
                    buffer: found.buffer,
                    offset: size.saturating_sub(found.left),
                    range,
                })
            }
            Meaning::HeapImage(image) => match self.state.image_bytes(image.image) {
                Ok(_) => Ok(HeapDescriptor::Image(image)),
                Err(reason) => gone(format!("{} is {reason:?}", self.state.name(image.image))),
            },
            Meaning::HeapSampler(sampler) => Ok(HeapDescriptor::Sampler(sampler)),
            Meaning::Image { .. } | Meaning::Sampler(_) => {
                let text = "the bytes are of a descriptor buffer's descriptor".to_owned();
                Err(("SUBLET-descriptor-garbage", text))
            }
            Meaning::AccelerationStructure(_) => {
                let text = "it holds what no shader of the simulated device can use".to_owned();
                Err(("SUBLET-descriptor-type", text))
            }
        }
    }

    /// Bytes from an address on.
    fn at_address(&self, address: u64, mask: u32) -> Result<HeapDescriptor, Broken> {
        let uniform = mask & resource::UNIFORM_BUFFER != 0;
        let limits = &self.device.profile().limits;
        let (kind, unusable, misaligned) = if uniform {
            (Type::UNIFORM_BUFFER, "VUID-vkCmdDispatch-None-11438", "VUID-vkCmdDispatch-None-11441")
        } else {
            (Type::STORAGE_BUFFER, "VUID-vkCmdDispatch-None-11439", "VUID-vkCmdDispatch-None-11442")
        };
        let (usage, alignment) = buffer_needs(kind, limits);
        let Some(found) = self.state.locate(address, usage) else {
            let text = format!("no buffer with SHADER_DEVICE_ADDRESS lies at {address:#x}");
            return Err(("VUID-vkCmdDispatch-None-11302", text));
        };
        let usages = self.state.buffers.get(&found.buffer).map(|buffer| buffer.description.usage);
        refuse_if!(!usages.unwrap_or_default().contains(usage) => unusable,
            "{} has not the usage {usage:?}", self.state.name(found.buffer));
        refuse_if!(!is_aligned(address, alignment.max(1)) => misaligned,
            "the address {address:#x} is no multiple of {alignment}");
        Ok(HeapDescriptor::Bytes { bytes: found.bytes, len: found.left, writable: !uniform })
    }
}

/// Looks up an offset of a heap, for shaders that were written for heaps.
pub(crate) fn at_offset(view: &HeapView<'_>, sampler: bool, offset: u64) -> Result<HeapDescriptor, Broken> {
    view.descriptor(sampler, offset)
}

/// Looks up a set's number, a binding and an element through the pipeline's mappings.
pub(crate) fn mapped(
    view: &HeapView<'_>,
    mappings: &[SetMapping],
    (set, binding, element): (u32, u32, u32),
    asked: ShaderDescriptorKind,
) -> Result<HeapDescriptor, Broken> {
    let fits = |&&mask: &&u32| mappings.iter().any(|mapping| mapping.fits(set, binding, mask));
    let mask = asked.masks().iter().find(fits);
    let found = mask.and_then(|&mask| mappings.iter().find(|mapping| mapping.fits(set, binding, mask)));
    let (Some(&mask), Some(mapping)) = (mask, found) else {
        let text = "the pipeline has no mapping for such a variable".to_owned();
        return Err(("VUID-VkComputePipelineCreateInfo-flags-11312", text));
    };
    match mapping.source {
        MappedSource::Heap { embedded: Some(sampler), .. } if asked == ShaderDescriptorKind::Sampler => {
            let reserved = view.heap(true)?.reserved;
            let least = view.limits.sampler_reserved_with_embedded;
            refuse_if!(reserved.1 - reserved.0 < least => "VUID-vkCmdDispatch-pBindInfo-11375",
                "{} bytes of the sampler heap are reserved, and embedded samplers want {least}",
                reserved.1 - reserved.0);
            Ok(HeapDescriptor::Sampler(sampler))
        }
        MappedSource::Heap { place, sampler, combined, .. } => {
            // A lone sampler is at the main offset; that of a combined descriptor has an offset of its own.
            let is_pair = mask == resource::COMBINED_SAMPLED_IMAGE;
            let second = asked == ShaderDescriptorKind::Sampler && is_pair;
            let used = if second { sampler } else { place };
            let element = (binding - mapping.first).saturating_add(element);
            let word = view.word(if combined && is_pair { place.index } else { used.index }, element)?;
            let index = match (combined && is_pair, second) {
                (true, false) => word & 0xf_ffff,
                (true, true) => word >> 20,
                _ => word,
            };
            let offset = offset_of(&used, index, element);
            let (alignment, rule) = match asked {
                ShaderDescriptorKind::Buffer => {
                    (view.limits.buffer_alignment, "VUID-vkCmdDispatch-None-11297")
                }
                ShaderDescriptorKind::Image => (view.limits.image_alignment, "VUID-vkCmdDispatch-None-11298"),
                ShaderDescriptorKind::Sampler => {
                    (view.limits.sampler_alignment, "VUID-vkCmdDispatch-None-11299")
                }
            };
            refuse_if!(!is_aligned(offset, alignment) => rule,
                "the offset {offset} is no multiple of {alignment}");
            view.descriptor(asked == ShaderDescriptorKind::Sampler, offset)
        }
        MappedSource::HeapData { heap: offset, push } => {
            let heap = view.heap(false)?;
            let offset = u64::from(offset) + u64::from(u32::from_le_bytes(view.pushed(push)?));
            let address = heap.address.saturating_add(offset);
            let found = view.state.locate(address, crate::facts::ffi::BUFFER_USAGE_DESCRIPTOR_HEAP);
            let (Some(found), Some(len)) = (found, heap.size.checked_sub(offset)) else {
                let text = format!("data at {offset}, in a heap of {} bytes", heap.size);
                return Err(("VUID-vkCmdDispatch-None-11398", text));
            };
            // Data before and behind the reserved range is the program's.
            let before = if offset < heap.reserved.1 { heap.reserved.0.saturating_sub(offset) } else { len };
            let len = if heap.reserved.0 == heap.reserved.1 { len } else { before };
            Ok(HeapDescriptor::Bytes { bytes: found.bytes, len, writable: false })
        }
        MappedSource::PushData(offset) => {
            let size = (1..=view.limits.max_push_data.saturating_sub(offset.into())).rev().find_map(|size| {
                let size = u32::try_from(size).ok()?;
                (view.push)(offset, size)
            });
            match size {
                Some(bytes) => Ok(HeapDescriptor::Data(bytes.to_vec())),
                None => view.pushed::<4>(offset).map(|bytes| HeapDescriptor::Data(bytes.to_vec())),
            }
        }
        MappedSource::PushAddress(offset) => {
            view.at_address(u64::from_le_bytes(view.pushed(offset)?), mapping.mask & mask)
        }
        MappedSource::IndirectAddress { push, address } => {
            let at = (u64::from_le_bytes(view.pushed(push)?), u64::from(address));
            let aligned = (8, "VUID-vkCmdDispatch-None-11304");
            let found = view.memory(at, aligned, "VUID-vkCmdDispatch-None-11305")?;
            view.at_address(u64::from_le_bytes(found), mapping.mask & mask)
        }
        MappedSource::RecordData(_) | MappedSource::RecordAddress(_) => no_record(),
    }
}

/// The error for a mapping through the shader's record.
fn no_record<T>() -> Result<T, Broken> {
    Err(("SUBLET-descriptor-binding", "compute shaders have no shader records".to_owned()))
}

/// The byte offset in a heap.
fn offset_of(place: &HeapAddress, index: u32, element: u32) -> u64 {
    let product = |count: u32, stride: u32| u64::from(count) * u64::from(stride);
    let sum = u64::from(place.offset).saturating_add(product(index, place.index_stride));
    sum.saturating_add(product(element, place.array_stride))
}
