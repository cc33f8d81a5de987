//! Descriptors in host memory: written once, copied into other heaps as often as one likes.

use std::ops::Range;

use super::super::counts::DescriptorKind;
use super::super::descriptor::Descriptor;
use super::super::device::DescriptorDevice;
use super::super::models::BindingModel;
use super::super::sizes::{DescriptorSizes, MAX_DESCRIPTOR_BYTES};
use super::create_info::{CreateHeapError, HeapKind, check_types};
use super::error::{HeapError, HeapWriteError, RangeError};
use super::heap::next_id;
use super::range::DescriptorRange;
use super::slots::Slots;
use super::statistics::{HeapStatistics, SlotRun};
use crate::base::cast::{host_size, index, widen};

/// How a [`HostHeap`] is to be made.
#[derive(Clone, Copy, Debug)]
pub struct HostHeapCreateInfo<'a> {
    /// Slots of a block, rounded up to a power of two: 256 by default. No range is longer.
    pub block: u32,
    /// The most slots that there are to be; 2^20 by default.
    pub max_slots: u32,
    /// The types of descriptors; empty for all that any heap takes, samplers included.
    pub types: &'a [DescriptorKind],
}

impl Default for HostHeapCreateInfo<'_> {
    fn default() -> Self {
        Self { block: 256, max_slots: 1 << 20, types: &[] }
    }
}

/// Everything that heaps take.
const ALL: &[DescriptorKind] = &[
    DescriptorKind::Sampler,
    DescriptorKind::CombinedImageSampler,
    DescriptorKind::SampledImage,
    DescriptorKind::StorageImage,
    DescriptorKind::UniformTexelBuffer,
    DescriptorKind::StorageTexelBuffer,
    DescriptorKind::UniformBuffer,
    DescriptorKind::StorageBuffer,
    DescriptorKind::AccelerationStructure,
];

/// Descriptors in host memory: made while a level is loaded, by whichever thread, and copied to where shaders see them
/// ([`DescriptorHeap::copy_from`](super::DescriptorHeap::copy_from)) when they are needed. No shader sees them here.
///
/// Where descriptors are bytes ([`BindingModel::Buffer`]) it holds these, so that a copy is a few bytes moved and not a
/// call of the driver; elsewhere it holds what [`write`](Self::write) was told.
///
/// It grows by blocks, which are divided into powers of two. What was asked for last does not change how large the next
/// block is, and a range is never longer than a block. Blocks stay: `free` makes their slots free, not their memory.
/// Freed slots are there again at once, because the GPU never sees them; handles are found out when they are stale, as
/// everywhere.
///
/// No lock: `&mut self` says that nobody else is at it. Programs with several loading threads have one for each.
///
/// # Complexity
/// [`allocate`](Self::allocate), [`free`](Self::free): a step for each halving of a block. Host memory for a slot: 32
/// bytes, and 48 for the descriptor, or as many as its bytes need.
///
/// ```
/// use sublet::descriptor::*;
/// # use sublet::sim;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # // SAFETY: instance and device are live, and outlive everything that is made from the value.
/// # let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// let mut staging = HostHeap::new(&device, &HostHeapCreateInfo::default())?;
/// let range = staging.allocate(3)?;
/// let all = BufferDescriptor::null();
/// // SAFETY: there is nothing that could be dead.
/// unsafe { staging.write(range, 0, &Descriptor::StorageBuffer(all)) }?;
/// staging.free(range)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HostHeap {
    device: DescriptorDevice,
    types: Box<[DescriptorKind]>,
    slots: Slots,
    max_slots: u32,
    block: u32,
    content: Content,
}

/// By slot.
#[derive(Debug)]
enum Content {
    Descriptors(Vec<Option<Descriptor>>),
    Bytes { sizes: DescriptorSizes, stride: usize, kinds: Vec<Option<DescriptorKind>>, bytes: Vec<u8> },
}

impl Content {
    /// Nothing is in these slots. `None` if the host has no memory for them.
    fn clear(&mut self, slots: Range<u32>) -> Option<()> {
        let (first, end) = (index(slots.start), index(slots.end));
        match self {
            Self::Descriptors(descriptors) => {
                grow(descriptors, end, None)?;
                descriptors[first..end].fill(None);
            }
            Self::Bytes { stride, kinds, bytes, .. } => {
                grow(bytes, end.checked_mul(*stride)?, 0)?;
                grow(kinds, end, None)?;
                kinds[first..end].fill(None);
            }
        }
        Some(())
    }
}

/// At least `length` values.
fn grow<T: Clone>(values: &mut Vec<T>, length: usize, value: T) -> Option<()> {
    if length > values.len() {
        values.try_reserve(length - values.len()).ok()?;
        values.resize(length, value);
    }
    Some(())
}

/// What is in some slots.
pub(super) enum Staged<'a> {
    Descriptors(&'a [Option<Descriptor>]),
    Bytes(StagedBytes<'a>),
}

/// By slot: the types, and the bytes, `stride` of them.
pub(super) struct StagedBytes<'a> {
    sizes: &'a DescriptorSizes,
    stride: usize,
    kinds: &'a [Option<DescriptorKind>],
    bytes: &'a [u8],
}

impl<'a> StagedBytes<'a> {
    /// Type and bytes of each slot; `None` of one that was never written.
    pub(super) fn iter(&self) -> impl Iterator<Item = Option<(DescriptorKind, &'a [u8])>> {
        let sizes = self.sizes;
        self.kinds.iter().zip(self.bytes.chunks_exact(self.stride)).map(|(&kind, bytes)| {
            // What was written has a size: `write` has looked.
            let kind = kind?;
            Some((kind, &bytes[..sizes.get(kind).and_then(host_size)?]))
        })
    }
}

impl HostHeap {
    /// A heap without blocks yet.
    ///
    /// # Errors
    /// [`CreateHeapError`]: a block of no slots or of more than there may be, or a type that no heap takes.
    pub fn new(device: &DescriptorDevice, info: &HostHeapCreateInfo<'_>) -> Result<Self, CreateHeapError> {
        let &HostHeapCreateInfo { block, max_slots, types } = info;
        let rounded = if block == 0 { None } else { block.checked_next_power_of_two() };
        let wrong = CreateHeapError::Block { block, max_slots };
        let block = rounded.filter(|&block| block <= max_slots).ok_or(wrong)?;
        let types = if types.is_empty() { ALL } else { types };
        let of_kind =
            |kind: HeapKind| types.iter().copied().filter(|&held| kind.allows(held)).collect::<Vec<_>>();
        let (samplers, resources) = (of_kind(HeapKind::Sampler), of_kind(HeapKind::Resource));
        check_types(HeapKind::Sampler, &samplers)?;
        check_types(HeapKind::Resource, &resources)?;
        let is_foreign =
            |&&held: &&DescriptorKind| !HeapKind::Sampler.allows(held) && !HeapKind::Resource.allows(held);
        if let Some(&kind) = types.iter().find(is_foreign) {
            return Err(CreateHeapError::Kind { heap: HeapKind::Resource, kind });
        }
        let content = if device.model() == BindingModel::Buffer {
            let sizes = DescriptorSizes::of(device);
            // A type without a size is refused when it is written.
            let stride = types.iter().filter_map(|&kind| sizes.get(kind)).max().unwrap_or(1);
            let stride = host_size(stride).unwrap_or(MAX_DESCRIPTOR_BYTES);
            Content::Bytes { sizes, stride, kinds: Vec::new(), bytes: Vec::new() }
        } else {
            Content::Descriptors(Vec::new())
        };
        Ok(Self {
            device: device.clone(),
            types: types.into(),
            slots: Slots::of_blocks(next_id(), block),
            max_slots,
            block,
            content,
        })
    }

    /// Allocates `count` slots in a row. A block is added if there is no room.
    ///
    /// # Errors
    /// [`HeapError`]: no slots, more than a block has, or more than there may be.
    pub fn allocate(&mut self, count: u32) -> Result<DescriptorRange, HeapError> {
        if count > self.block {
            return Err(HeapError::TooMany { asked: count, most: self.block });
        }
        let range = match self.slots.allocate(count) {
            Err(HeapError::Full { .. }) if self.has_room_for_block() => {
                // A refusal leaves the heap as it was, and the second try says how full that is.
                let _ = self.slots.grow();
                self.slots.allocate(count)?
            }
            other => other?,
        };
        if self.content.clear(range.indices()).is_none() {
            let freed = self.slots.free(range);
            debug_assert!(freed.is_ok(), "it was allocated just now");
            return Err(HeapError::HostMemory { asked: count });
        }
        Ok(range)
    }

    fn has_room_for_block(&self) -> bool {
        self.slots.lasting().checked_add(self.block).is_some_and(|slots| slots <= self.max_slots)
    }

    /// Whether a range is alive, and this heap's.
    ///
    /// # Errors
    /// [`RangeError`] if it is not.
    pub fn check(&self, range: DescriptorRange) -> Result<(), RangeError> {
        self.slots.check(range)
    }

    /// Writes a descriptor into a slot of a range.
    ///
    /// # Errors
    /// [`HeapWriteError`]: the slot holds what it held.
    ///
    /// # Safety
    /// What the descriptor names is live and of this heap's device, and fits its type.
    pub unsafe fn write(
        &mut self,
        range: DescriptorRange,
        slot: u32,
        descriptor: &Descriptor,
    ) -> Result<(), HeapWriteError> {
        // SAFETY: the caller's promise: what the descriptor names is live and of this heap's device, and fits its type.
        unsafe { self.write_many(range, slot, std::slice::from_ref(descriptor)) }
    }

    /// Writes descriptors into consecutive slots of a range, from `slot` on.
    ///
    /// # Errors
    /// [`HeapWriteError`]: all slots hold what they held.
    ///
    /// # Safety
    /// As for [`Self::write`], of each of them.
    pub unsafe fn write_many(
        &mut self,
        range: DescriptorRange,
        slot: u32,
        descriptors: &[Descriptor],
    ) -> Result<(), HeapWriteError> {
        let first = index(range.part(slot, descriptors.len())?.start);
        self.slots.check(range)?;
        for descriptor in descriptors {
            let kind = descriptor.kind();
            if !self.types.contains(&kind) {
                return Err(HeapWriteError::Kind { kind });
            }
            if let Content::Bytes { sizes, .. } = &self.content {
                sizes.get(kind).ok_or(HeapWriteError::Kind { kind })?;
                descriptor.with_get_info(|_| ())?;
            }
        }
        match &mut self.content {
            Content::Descriptors(all) => {
                for (place, &descriptor) in all[first..].iter_mut().zip(descriptors) {
                    *place = Some(descriptor);
                }
            }
            Content::Bytes { sizes, stride, kinds, bytes } => {
                let driver = self.device.driver();
                for (at, descriptor) in (first..).zip(descriptors) {
                    let kind = descriptor.kind();
                    let size = sizes.get(kind).and_then(host_size).unwrap_or(0);
                    let place = &mut bytes[at * *stride..][..size];
                    descriptor.with_get_info(|info| {
                        // SAFETY: what the info names is live: the caller's promise; and the place has the size of the
                        // type.
                        unsafe { driver.descriptor_bytes(info, place) };
                    })?;
                    kinds[at] = Some(kind);
                }
            }
        }
        Ok(())
    }

    /// What was written into some slots of a living range.
    pub(super) fn staged(&self, slots: Range<u32>) -> Staged<'_> {
        let slots = index(slots.start)..index(slots.end);
        match &self.content {
            Content::Descriptors(descriptors) => Staged::Descriptors(&descriptors[slots]),
            &Content::Bytes { ref sizes, stride, ref kinds, ref bytes } => {
                let bytes = &bytes[slots.start * stride..slots.end * stride];
                Staged::Bytes(StagedBytes { sizes, stride, kinds: &kinds[slots], bytes })
            }
        }
    }

    /// Gives a range back.
    ///
    /// # Errors
    /// [`RangeError`]: nothing was changed.
    pub fn free(&mut self, range: DescriptorRange) -> Result<(), RangeError> {
        self.slots.free(range)
    }

    /// Bytes from one slot to the next; `None` where descriptors are not bytes.
    #[must_use]
    pub fn stride(&self) -> Option<u64> {
        match &self.content {
            Content::Descriptors(_) => None,
            Content::Bytes { stride, .. } => Some(widen(*stride)),
        }
    }

    /// How full it is. Slots are counted as granted: powers of two.
    #[must_use]
    pub fn statistics(&self) -> HeapStatistics {
        self.slots.statistics()
    }

    /// Shows all slots in runs, in the order of their indices: for debugging.
    pub fn walk(&self, visit: impl FnMut(SlotRun)) {
        self.slots.walk(visit);
    }
}
