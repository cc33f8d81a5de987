//! Descriptors in host memory: written once, and copied into other heaps any number of times.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::collections::HashMap;
use std::ops::Range;

use super::super::counts::DescriptorKind;
use super::super::descriptor::Descriptor;
use super::super::device::DescriptorDevice;
use super::super::models::BindingModel;
use super::super::sizes::{DescriptorSizes, MAX_DESCRIPTOR_BYTES};
use super::create_info::{CreateHeapError, HeapKind, check_types};
use super::error::{HeapError, HeapWriteError, RangeError};
use super::heap::next_id;
use super::range::{DescriptorRange, DescriptorRangeId, ForeignDescriptorRange};
use super::statistics::{HeapStatistics, SlotRun, SlotState};
use parking_lot::Mutex;
use sublet::vector::{
    Backing, BlockVector, Granted, Growth, GrowthLimits, NextBlock, Policy, Refusal, VectorError,
};
use sublet_engines::cast::{host_size, index, widen};
use sublet_engines::{Alignment, Buddy, Key, Metadata, Request, Span};

/// The parameters of a [`HostHeap`].
#[derive(Clone, Copy, Debug)]
pub struct HostHeapCreateInfo<'a> {
    /// The slots per block, rounded up to a power of two: 256 by default. A longer range gets its own block.
    pub block: u32,
    /// The maximum number of slots; 2^20 by default.
    pub max_slots: u32,
    /// The types of descriptors; empty means all types that heaps support, including samplers.
    pub types: &'a [DescriptorKind],
}

impl Default for HostHeapCreateInfo<'_> {
    fn default() -> Self {
        Self { block: 256, max_slots: 1 << 20, types: &[] }
    }
}

/// All types that heaps support.
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

/// Descriptors in host memory. Any thread creates them, for example while a level is loaded, and copies them into a
/// heap for shaders ([`DescriptorHeap::copy_from`](super::DescriptorHeap::copy_from)) when they are needed. Shaders
/// cannot access a host heap.
///
/// With [`BindingModel::Buffer`] it stores descriptors as bytes, so that a copy moves a few bytes without a driver
/// call. Otherwise it stores the arguments of [`write`](Self::write).
///
/// It grows by blocks, which are divided into powers of two: it is a [`BlockVector`]. A range that is longer than a
/// block gets its own block, and does not make later blocks larger. One empty block is kept; other empty blocks are
/// released. Freed slots are reusable at once, because the GPU never sees them. Stale handles are detected, as in all
/// heaps.
///
/// It has no lock: `&mut self` ensures exclusive access. Programs with several loading threads create one for each
/// thread.
///
/// # Complexity
/// [`allocate`](Self::allocate), [`free`](Self::free): one step for each halving of a block, and a lookup in a hash
/// table. Host memory: 48 bytes for each slot, or the size of its bytes; and about 100 bytes for each range.
///
/// ```
/// use sublet_descriptors::*;
/// # use sublet::sim;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// let mut staging = HostHeap::new(&device, &HostHeapCreateInfo::default())?;
/// let range = staging.allocate(3)?;
/// let all = BufferDescriptor::null();
/// // SAFETY: the null descriptor refers to no object.
/// unsafe { staging.write(range.id(), 0, &Descriptor::StorageBuffer(all)) }?;
/// staging.free(range)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[doc(alias = "DescriptorAllocator")]
#[doc(alias = "CPUDescriptorHeap")]
pub struct HostHeap {
    device: DescriptorDevice,
    types: Box<[DescriptorKind]>,
    id: u32,
    vector: BlockVector<Shelves, Buddy>,
    max_slots: u32,
    /// Keyed by first slot.
    ranges: HashMap<u32, LiveRange>,
    generation: u32,
    peak: u32,
}

/// A live range.
#[derive(Debug)]
struct LiveRange {
    generation: u32,
    granted: Granted<Span, u32>,
}

/// The block source: its blocks are `Shelf` values.
#[derive(Debug)]
struct Shelves {
    growth: Growth,
    /// Allocates the slot numbers of blocks, from one region with the maximum number of slots. No lock is taken under
    /// its lock.
    names: Mutex<Buddy>,
    format: SlotFormat,
}

/// The content format of a slot.
#[derive(Debug)]
enum SlotFormat {
    Descriptors,
    Bytes { sizes: DescriptorSizes, stride: usize },
}

/// A block.
#[derive(Debug)]
struct Shelf {
    name: Key,
    first: u32,
    content: HostContent,
}

/// Indexed by slot of the block, up to the highest slot that was ever allocated: unused slots of a block of 2^31 take
/// no memory.
#[derive(Debug)]
enum HostContent {
    Descriptors(Vec<Option<Descriptor>>),
    Bytes { stride: usize, kinds: Vec<Option<DescriptorKind>>, bytes: Vec<u8> },
}

/// The reason why no slots are available.
#[derive(Debug)]
enum Short {
    Names,
    HostMemory,
}

impl Backing<Buddy> for Shelves {
    type Block = Shelf;
    /// The first slot.
    type Item = u32;
    type Error = Short;

    fn capacity_for(&self, request: Option<&Request>, _: &GrowthLimits) -> Option<NextBlock<u64>> {
        Some(self.growth.next(request.map_or(0, |request| request.size.next_power_of_two()), 0))
    }

    fn create(&self, &slots: &u64) -> Result<Shelf, Short> {
        let named = self.names.lock().allocate(&Request::new(slots, Alignment::ONE));
        let (name, span) = named.map_err(|_| Short::Names)?;
        let content = match &self.format {
            SlotFormat::Descriptors => HostContent::Descriptors(Vec::new()),
            &SlotFormat::Bytes { stride, .. } => {
                HostContent::Bytes { stride, kinds: Vec::new(), bytes: Vec::new() }
            }
        };
        Ok(Shelf { name, first: narrow_slots(span.offset), content })
    }

    fn destroy(&self, shelf: Shelf) {
        let freed = self.names.lock().free(shelf.name);
        debug_assert!(freed.is_ok(), "a block has its slots until it goes");
    }

    fn realize(&self, shelf: &mut Shelf, span: &Span) -> Result<u32, Refusal<Short>> {
        shelf.content.clear(slots_of(span)).ok_or(Refusal::Failed(Short::HostMemory))?;
        Ok(shelf.first + narrow_slots(span.offset))
    }

    /// Destroying empty blocks frees their slot numbers.
    fn is_shortage(&self, error: &Short) -> bool {
        matches!(error, Short::Names)
    }
}

/// Slot numbers have 32 bits.
fn narrow_slots(slots: u64) -> u32 {
    u32::try_from(slots).unwrap_or(u32::MAX)
}

/// Returns the granted slots of a block.
fn slots_of(span: &Span) -> Range<u32> {
    narrow_slots(span.offset)..narrow_slots(span.offset + span.size)
}

impl HostContent {
    /// Clears these slots. Returns `None` if the host has no memory for them.
    fn clear(&mut self, slots: Range<u32>) -> Option<()> {
        let (first, end) = (index(slots.start), index(slots.end));
        match self {
            Self::Descriptors(descriptors) => {
                grow(descriptors, end, None)?;
                descriptors[first..end].fill(None);
            }
            Self::Bytes { stride, kinds, bytes } => {
                grow(bytes, end.checked_mul(*stride)?, 0)?;
                grow(kinds, end, None)?;
                kinds[first..end].fill(None);
            }
        }
        Some(())
    }
}

/// Extends the vector to at least `length` values.
fn grow<T: Clone>(values: &mut Vec<T>, length: usize, value: T) -> Option<()> {
    if length > values.len() {
        values.try_reserve(length - values.len()).ok()?;
        values.resize(length, value);
    }
    Some(())
}

/// The content of some slots.
pub(super) enum Staged<'a> {
    Descriptors(&'a [Option<Descriptor>]),
    Bytes(StagedBytes<'a>),
}

/// The types and the bytes of slots, with `stride` bytes for each slot.
pub(super) struct StagedBytes<'a> {
    sizes: &'a DescriptorSizes,
    stride: usize,
    kinds: &'a [Option<DescriptorKind>],
    bytes: &'a [u8],
}

impl<'a> StagedBytes<'a> {
    /// Returns type and bytes of each slot; `None` for a slot that was never written.
    pub(super) fn iter(&self) -> impl Iterator<Item = Option<(DescriptorKind, &'a [u8])>> {
        let sizes = self.sizes;
        self.kinds.iter().zip(self.bytes.chunks_exact(self.stride)).map(|(&kind, bytes)| {
            // Every written type has a size: `write` checked it.
            let kind = kind?;
            Some((kind, &bytes[..sizes.get(kind).and_then(host_size)?]))
        })
    }
}

impl HostHeap {
    /// Creates a heap without blocks.
    ///
    /// # Errors
    /// [`CreateHeapError`]: a block with zero or too many slots, or a type that no heap supports.
    pub fn new(device: &DescriptorDevice, info: &HostHeapCreateInfo<'_>) -> Result<Self, CreateHeapError> {
        let &HostHeapCreateInfo { block, max_slots, types } = info;
        let rounded = if block == 0 { None } else { block.checked_next_power_of_two() };
        let wrong = || CreateHeapError::Block { block, max_slots };
        let block = rounded.filter(|&block| block <= max_slots).ok_or(wrong())?;
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
        let format = if device.model() == BindingModel::Buffer {
            let sizes = DescriptorSizes::of(device);
            // A write of a type without a size is rejected.
            let stride = types.iter().filter_map(|&kind| sizes.get(kind)).max().unwrap_or(1);
            let stride = host_size(stride).unwrap_or(MAX_DESCRIPTOR_BYTES);
            SlotFormat::Bytes { sizes, stride }
        } else {
            SlotFormat::Descriptors
        };
        let mut names = Buddy::new(max_slots.into(), block.into());
        let named = names.add_region(&max_slots.into());
        debug_assert!(named.is_ok(), "the names are made for one region of this size");
        let growth = Growth::fixed(block.into());
        let shelves = Shelves { growth, names: Mutex::new(names), format };
        let policy = Policy { max_units: max_slots.into(), ..Policy::default() };
        let vector = BlockVector::new(shelves, Buddy::new(max_slots.into(), 1), policy);
        Ok(Self {
            device: device.clone(),
            types: types.into(),
            id: next_id(),
            vector: vector.map_err(|_| wrong())?,
            max_slots,
            ranges: HashMap::new(),
            generation: 1,
            peak: 0,
        })
    }

    /// Allocates `count` consecutive slots. Adds a block if necessary.
    ///
    /// # Errors
    /// [`HeapError`]: zero or too many slots.
    pub fn allocate(&mut self, count: u32) -> Result<DescriptorRange, HeapError> {
        if count == 0 {
            return Err(HeapError::ZeroCount);
        }
        let most = 1 << self.max_slots.ilog2();
        if count > most {
            return Err(HeapError::TooMany { asked: count, most });
        }
        let made = self.vector.allocate(&Request::new(count.into(), Alignment::ONE));
        let granted = made.map_err(|error| match error {
            VectorError::Realize(_) => HeapError::HostMemory { asked: count },
            _ => {
                let HeapStatistics { free, .. } = self.statistics();
                let largest_free = narrow_slots(self.vector.engine().largest_free());
                HeapError::Full { asked: count, free, largest_free, retiring: 0 }
            }
        })?;
        let (first, generation) = (granted.item, self.generation);
        // Adding 2 keeps it odd.
        self.generation = generation.wrapping_add(2);
        self.ranges.insert(first, LiveRange { generation, granted });
        self.peak = self.peak.max(self.statistics().live);
        Ok(DescriptorRange(DescriptorRangeId { first, count, generation, heap: self.id }))
    }

    fn find(&self, range: DescriptorRangeId) -> Result<&Granted<Span, u32>, RangeError> {
        if range.heap != self.id {
            return Err(RangeError::ForeignHeap { range });
        }
        let live = self.ranges.get(&range.first).filter(|live| live.generation == range.generation);
        live.map(|live| &live.granted).ok_or(RangeError::StaleHandle { range })
    }

    /// Checks that a range is live and belongs to this heap.
    ///
    /// # Errors
    /// [`RangeError`] otherwise.
    pub fn check(&self, range: DescriptorRangeId) -> Result<(), RangeError> {
        self.find(range).map(|_| ())
    }

    /// Writes a descriptor into a slot of a range.
    ///
    /// # Errors
    /// [`HeapWriteError`]. The slot is unchanged.
    ///
    /// # Safety
    /// The objects in the descriptor are live, belong to this heap's device, and fit its type.
    pub unsafe fn write(
        &mut self,
        range: DescriptorRangeId,
        slot: u32,
        descriptor: &Descriptor,
    ) -> Result<(), HeapWriteError> {
        // SAFETY: the caller's promise: the objects in the descriptor are live, belong to this heap's device, and fit
        // its type.
        unsafe { self.write_many(range, slot, std::slice::from_ref(descriptor)) }
    }

    /// Writes descriptors into consecutive slots of a range, from `slot` on.
    ///
    /// # Errors
    /// [`HeapWriteError`]. All slots are unchanged.
    ///
    /// # Safety
    /// Same as [`Self::write`], for each of them.
    pub unsafe fn write_many(
        &mut self,
        range: DescriptorRangeId,
        slot: u32,
        descriptors: &[Descriptor],
    ) -> Result<(), HeapWriteError> {
        range.part(slot, descriptors.len())?;
        let key = self.find(range)?.key();
        for descriptor in descriptors {
            let kind = descriptor.kind();
            if !self.types.contains(&kind) {
                return Err(HeapWriteError::Kind { kind });
            }
            if let SlotFormat::Bytes { sizes, .. } = &self.vector.backing().format {
                sizes.get(kind).ok_or(HeapWriteError::Kind { kind })?;
                descriptor.with_get_info(|_| ())?;
            }
        }
        let sizes = match &self.vector.backing().format {
            SlotFormat::Descriptors => None,
            SlotFormat::Bytes { sizes, .. } => Some(*sizes),
        };
        let found = self.vector.block_mut(key);
        let (shelf, span) = found.map_err(|_| RangeError::StaleHandle { range })?;
        let first = index(narrow_slots(span.offset) + slot);
        match (&mut shelf.content, sizes) {
            (HostContent::Descriptors(all), _) => {
                for (place, &descriptor) in all[first..].iter_mut().zip(descriptors) {
                    *place = Some(descriptor);
                }
            }
            (HostContent::Bytes { stride, kinds, bytes }, sizes) => {
                let driver = self.device.driver();
                for (at, descriptor) in (first..).zip(descriptors) {
                    let kind = descriptor.kind();
                    let size =
                        sizes.as_ref().and_then(|sizes| sizes.get(kind)).and_then(host_size).unwrap_or(0);
                    let place = &mut bytes[at * *stride..][..size];
                    descriptor.with_get_info(|info| {
                        // SAFETY: the caller promises that the objects in the info are live; `place` has the size of
                        // the type.
                        unsafe { driver.descriptor_bytes(info, place) };
                    })?;
                    kinds[at] = Some(kind);
                }
            }
        }
        Ok(())
    }

    /// Returns the content of a part of a range.
    pub(super) fn staged(
        &self,
        range: DescriptorRangeId,
        slots: Range<u32>,
    ) -> Result<Staged<'_>, RangeError> {
        let found = self.vector.block(self.find(range)?.key());
        let (shelf, _) = found.map_err(|_| RangeError::StaleHandle { range })?;
        let slots = index(slots.start - shelf.first)..index(slots.end - shelf.first);
        Ok(match (&shelf.content, &self.vector.backing().format) {
            (HostContent::Bytes { kinds, bytes, .. }, &SlotFormat::Bytes { ref sizes, stride }) => {
                let bytes = &bytes[slots.start * stride..slots.end * stride];
                Staged::Bytes(StagedBytes { sizes, stride, kinds: &kinds[slots], bytes })
            }
            (HostContent::Descriptors(descriptors), _) => Staged::Descriptors(&descriptors[slots]),
            (HostContent::Bytes { .. }, SlotFormat::Descriptors) => Staged::Descriptors(&[]),
        })
    }

    /// Frees a range.
    ///
    /// # Errors
    /// [`ForeignDescriptorRange`] if it belongs to another heap.
    pub fn free(&mut self, range: DescriptorRange) -> Result<(), ForeignDescriptorRange> {
        if range.heap != self.id {
            return Err(ForeignDescriptorRange { range });
        }
        if let Some(LiveRange { granted, .. }) = self.ranges.remove(&range.first) {
            let freed = self.vector.free(granted);
            debug_assert!(freed.is_ok(), "what is alive was granted");
        }
        Ok(())
    }

    /// Releases the memory of all empty blocks. Returns their number.
    pub fn trim(&mut self) -> usize {
        self.vector.trim()
    }

    /// Returns the distance between slots in bytes; `None` if descriptors are not stored as bytes.
    #[must_use]
    pub fn stride(&self) -> Option<u64> {
        match &self.vector.backing().format {
            SlotFormat::Descriptors => None,
            SlotFormat::Bytes { stride, .. } => Some(widen(*stride)),
        }
    }

    /// Returns the heap's figures. Slots are counted as granted: in powers of two.
    #[must_use]
    pub fn statistics(&self) -> HeapStatistics {
        let statistics = self.vector.statistics();
        let (capacity, live) = (narrow_slots(statistics.units), narrow_slots(statistics.used_units));
        HeapStatistics {
            capacity,
            free: capacity - live,
            live,
            ranges: narrow_slots(statistics.live),
            peak: self.peak,
            ..HeapStatistics::default()
        }
    }

    /// Calls `visit` for all runs of slots, in the order of their indices, for debugging.
    pub fn walk(&self, mut visit: impl FnMut(SlotRun)) {
        let mut blocks: Vec<_> = self.vector.blocks().map(|(info, shelf)| (shelf.first, info)).collect();
        blocks.sort_unstable_by_key(|&(first, _)| first);
        for (first, info) in blocks {
            self.vector.engine().walk(info.region, &mut |chunk| {
                let state = if chunk.used.is_some() { SlotState::Live } else { SlotState::Free };
                visit(SlotRun {
                    first: first + narrow_slots(chunk.offset),
                    count: narrow_slots(chunk.size),
                    state,
                });
            });
        }
    }
}
