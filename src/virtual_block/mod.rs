//! Public access to the engines, for ranges of the caller: parts of a buffer, slots of an array, any indices.

mod error;
pub(crate) mod handle;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};

pub use self::error::{VirtualAllocationError, VirtualBlockError, VirtualFreeError, VirtualHandleError};
use crate::engine::{Algorithm, Engine};
use crate::statistics::{DetailedStatistics, Statistics};
use sublet_engines::Alignment;
use sublet_engines::cast::{index, narrow};
use sublet_engines::{AllocateError, BadKey, Key, Metadata, RegionError, RegionId, Request, Strategy, Tag};

/// The parameters of a [`VirtualBlock`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VirtualBlockCreateInfo {
    /// The size of the block: 1 to 2^63 units. The caller defines the unit.
    pub size: u64,
    /// The algorithm that divides the block.
    pub algorithm: Algorithm,
}

/// The parameters of an allocation in a [`VirtualBlock`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VirtualAllocationCreateInfo {
    /// The number of units to allocate; not zero.
    pub size: u64,
    /// The offset is a multiple of this power of two. 0 means 1.
    pub alignment: u64,
    /// The optimisation goal. Only [`Algorithm::Tlsf`] uses it.
    pub strategy: Strategy,
    /// If true, allocates from the end of the block downwards: the second stack of a double stack.
    /// [`Algorithm::Linear`] only.
    pub upper_address: bool,
    /// A number that the block stores with the allocation. A value of 2^29 or more takes 12 bytes of host memory;
    /// smaller values take none.
    pub user_data: u64,
}

/// A range of a [`VirtualBlock`]. Neither `Copy` nor `Clone`, so that freeing it twice does not compile.
///
/// Dropping one without [`VirtualBlock::free`] leaves its range allocated until [`VirtualBlock::clear`].
///
/// ```compile_fail
/// # use sublet::*;
/// # let mut block = VirtualBlock::new(&VirtualBlockCreateInfo { size: 64, ..Default::default() }).unwrap();
/// # let info = VirtualAllocationCreateInfo { size: 16, ..Default::default() };
/// let range = block.allocate(&info).unwrap();
/// block.free(range).unwrap();
/// block.free(range).unwrap(); // moved already
/// ```
#[derive(PartialEq, Eq, Debug)]
#[must_use = "the range stays allocated until it is given back to its block"]
pub struct VirtualAllocation {
    block: u64,
    key: Key,
    offset: u64,
    size: u64,
}

impl VirtualAllocation {
    /// Returns the first unit.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the number of granted units: the requested size, or the power of two that [`Algorithm::Buddy`] rounds it
    /// up to.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }
}

/// The properties of an allocation in a [`VirtualBlock`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VirtualAllocationInfo {
    /// The first unit.
    pub offset: u64,
    /// The number of granted units.
    pub size: u64,
    /// The value of [`VirtualAllocationCreateInfo::user_data`], or the last value that
    /// [`VirtualBlock::set_user_data`] stored.
    pub user_data: u64,
}

/// A used or free range of a block: see [`VirtualBlock::walk`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VirtualRange {
    /// The first unit.
    pub offset: u64,
    /// The number of units; not zero.
    pub size: u64,
    /// The user data of the range's allocation; `None` if the range is free.
    pub user_data: Option<u64>,
}

/// Divides a range of numbers whose meaning the caller defines: bytes of one large buffer, elements of an array, rows
/// of a texture, identifiers. Uses no Vulkan and no device memory.
///
/// The caller defines the unit. The block has no lock; `&mut self` excludes other threads. Placement is deterministic:
/// the same calls return the same offsets.
///
/// A block of at least 2^27 units with [`Algorithm::Tlsf`] uses the same fast paths as blocks of device memory. Like
/// those, it rounds sizes up while there is space: by less than 1/64, and by at most 1/65536 of the block. It also has
/// [slabs](crate::metadata::Tlsf#slabs) for small sizes. The free slots of a slab serve no larger allocation while
/// another slot of the slab is used. Before such a block refuses a request, it frees all slack. From then on it does
/// not round up, like a smaller block.
///
/// No block has more than 2^29 allocations.
///
/// # Examples
/// One vertex buffer for many meshes:
///
/// ```
/// use sublet::{VirtualAllocationCreateInfo, VirtualBlock, VirtualBlockCreateInfo};
///
/// let mut vertices = VirtualBlock::new(&VirtualBlockCreateInfo { size: 1 << 20, ..Default::default() })?;
/// let info = VirtualAllocationCreateInfo { size: 24 * 36, alignment: 4, user_data: 7, ..Default::default() };
/// let cube = vertices.allocate(&info)?;
/// // Upload the cube's vertices to cube.offset() of the buffer; draw it from there.
/// assert_eq!((cube.offset() % 4, cube.size()), (0, 864));
/// assert_eq!(vertices.user_data(&cube)?, 7);
/// assert_eq!(vertices.statistics().allocation_bytes, 864);
///
/// vertices.free(cube)?;
/// assert!(vertices.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[doc(alias = "VariableSizeAllocationsManager")]
pub struct VirtualBlock {
    id: u64,
    engine: Engine,
    region: RegionId,
    user_data: UserData,
}

/// The user data of the allocations. A small value is stored in the engine's tag; the tag of a large value holds a slot
/// index.
#[derive(Debug, Default)]
struct UserData {
    slots: Vec<u64>,
    vacant: Vec<u32>,
}

impl UserData {
    /// The bit of a tag that marks a slot index; without it, the tag is the value itself.
    const SLOT: u32 = (Tag::MASK >> 1) + 1;

    /// Stores the value and returns its tag.
    #[inline]
    fn keep(&mut self, user_data: u64) -> Tag {
        match u32::try_from(user_data) {
            Ok(number) if number < Self::SLOT => Tag(number),
            _ => self.insert(user_data),
        }
    }

    #[inline(never)]
    fn insert(&mut self, user_data: u64) -> Tag {
        let slot = if let Some(slot) = self.vacant.pop() {
            self.slots[index(slot)] = user_data;
            slot
        } else {
            self.slots.push(user_data);
            narrow(self.slots.len() - 1)
        };
        Tag(Self::SLOT | slot)
    }

    /// Returns the slot index in a tag, if there is one.
    #[inline]
    const fn slot(tag: Tag) -> Option<u32> {
        if tag.0 & Self::SLOT == 0 { None } else { Some(tag.0 ^ Self::SLOT) }
    }

    #[inline]
    fn get(&self, tag: Tag) -> u64 {
        Self::slot(tag).map_or(tag.0.into(), |slot| self.slots[index(slot)])
    }

    #[inline]
    fn forget(&mut self, tag: Tag) {
        if let Some(slot) = Self::slot(tag) {
            self.vacant.push(slot);
        }
    }

    /// Returns true if no slot is in use.
    #[inline]
    fn is_empty(&self) -> bool {
        self.slots.len() == self.vacant.len()
    }

    fn clear(&mut self) {
        self.slots.clear();
        self.vacant.clear();
    }
}

impl VirtualBlock {
    /// Creates an empty block.
    ///
    /// # Errors
    /// [`VirtualBlockError::Size`] if `info.size` is 0 or above 2^63.
    pub fn new(info: &VirtualBlockCreateInfo) -> Result<Self, VirtualBlockError> {
        /// The number of blocks created so far. A handle contains the number of its block.
        static BLOCKS: AtomicU64 = AtomicU64::new(0);

        let &VirtualBlockCreateInfo { size, algorithm } = info;
        if !(1..=1 << 63).contains(&size) {
            return Err(VirtualBlockError::Size { size, max: 1 << 63 });
        }
        let mut engine = Engine::single(algorithm, size);
        let region = engine.add_region(&size).map_err(|error| match error {
            RegionError::Capacity { capacity, max } => VirtualBlockError::Size { size: capacity, max },
            RegionError::TooMany => VirtualBlockError::Size { size, max: 0 },
        })?;
        let id = BLOCKS.fetch_add(1, Ordering::Relaxed);
        Ok(Self { id, engine, region, user_data: UserData::default() })
    }

    /// Returns the size of the block in units.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.engine.region_usage(self.region).capacity
    }

    /// Returns the algorithm of the block.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.engine.algorithm()
    }

    /// Allocates a range.
    ///
    /// # Errors
    /// - [`ZeroSize`](VirtualAllocationError::ZeroSize): the size is zero.
    /// - [`Alignment`](VirtualAllocationError::Alignment): the alignment is neither 0 nor a power of two.
    /// - [`NoSpace`](VirtualAllocationError::NoSpace): free something, or create a larger block. The error contains the
    ///   number of free units and the largest free range.
    /// - [`UpperUnsupported`](VirtualAllocationError::UpperUnsupported): only [`Algorithm::Linear`] has an upper side.
    /// - [`UpperInRing`](VirtualAllocationError::UpperInRing): the block is used as a ring buffer.
    ///
    /// Nothing was changed on error.
    ///
    /// # Complexity
    /// The complexity of the engine, plus a few free ranges to inspect for
    /// [`NoSpace`](VirtualAllocationError::NoSpace). O(n) once in the life of a block of at least 2^27 units: the first
    /// time that no range fits although enough units are free.
    #[inline]
    pub fn allocate(
        &mut self,
        info: &VirtualAllocationCreateInfo,
    ) -> Result<VirtualAllocation, VirtualAllocationError> {
        let &VirtualAllocationCreateInfo { size, alignment, strategy, upper_address, user_data } = info;
        if size == 0 {
            return Err(VirtualAllocationError::ZeroSize);
        }
        let Some(alignment) = Alignment::of_both(alignment, 0) else {
            return Err(VirtualAllocationError::Alignment { alignment });
        };
        // Each allocation may need a slot for its user data, and a tag can hold this many slot indices.
        if self.engine.usage().used_chunks >= UserData::SLOT.into() {
            return Err(self.refused(AllocateError::NoSpace, size, alignment, self.free_units()));
        }
        let tag = self.user_data.keep(user_data);
        // A closure, so that the fast path does not build the request in memory.
        let request = || Request { size, alignment, strategy, upper: upper_address, tag };
        if strategy == Strategy::Balanced && !upper_address && !self.engine.rounds_up() {
            if let Some((key, _, offset)) = self.engine.try_allocate(size, alignment, tag) {
                return Ok(VirtualAllocation { block: self.id, key, offset, size });
            }
        }
        self.allocate_slow(&request())
    }

    /// The slow path of [`Self::allocate`].
    #[inline(never)]
    fn allocate_slow(&mut self, request: &Request) -> Result<VirtualAllocation, VirtualAllocationError> {
        let mut granted = self.engine.allocate(request);
        let free = self.free_units();
        // Skipped for requests larger than all free units.
        if granted == Err(AllocateError::NoSpace) && request.size <= free && self.engine.free_slack() {
            granted = self.engine.allocate(request);
        }
        match granted {
            Ok((key, span)) => {
                Ok(VirtualAllocation { block: self.id, key, offset: span.offset, size: span.size })
            }
            Err(error) => {
                self.user_data.forget(request.tag);
                Err(self.refused(error, request.size, request.alignment, free))
            }
        }
    }

    #[cold]
    #[inline]
    fn refused(
        &self,
        error: AllocateError,
        size: u64,
        alignment: Alignment,
        free: u64,
    ) -> VirtualAllocationError {
        match error {
            AllocateError::UpperUnsupported => {
                VirtualAllocationError::UpperUnsupported { algorithm: self.algorithm() }
            }
            AllocateError::UpperInRing => VirtualAllocationError::UpperInRing,
            AllocateError::NoSpace => VirtualAllocationError::NoSpace {
                size,
                alignment: alignment.get(),
                free,
                largest_free: self.engine.largest_free(),
            },
        }
    }

    fn free_units(&self) -> u64 {
        let usage = self.engine.usage();
        usage.capacity - usage.used
    }

    /// Frees a range.
    ///
    /// # Errors
    /// [`VirtualFreeError`], which returns the handle, if the handle belongs to another block or was allocated before
    /// [`VirtualBlock::clear`].
    #[inline]
    pub fn free(&mut self, allocation: VirtualAllocation) -> Result<(), VirtualFreeError> {
        if allocation.block != self.id {
            return Err(VirtualFreeError { reason: VirtualHandleError::ForeignBlock, allocation });
        }
        // Without slots, the tag need not be looked up.
        let tag = if self.user_data.is_empty() { Ok(Tag(0)) } else { self.engine.tag(allocation.key) };
        match (tag, self.engine.take_back(allocation.key)) {
            (Ok(tag), Some(_)) => {
                self.user_data.forget(tag);
                Ok(())
            }
            _ => Err(VirtualFreeError { reason: VirtualHandleError::Cleared, allocation }),
        }
    }

    /// Returns the tag of an allocation of this block.
    #[inline]
    fn tag(&self, allocation: &VirtualAllocation) -> Result<Tag, VirtualHandleError> {
        if allocation.block != self.id {
            return Err(VirtualHandleError::ForeignBlock);
        }
        self.engine.tag(allocation.key).map_err(|_| VirtualHandleError::Cleared)
    }

    /// Frees everything. Earlier allocations are no longer valid.
    pub fn clear(&mut self) {
        self.engine.reset(self.region);
        self.user_data.clear();
    }

    /// Returns true if nothing is allocated.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.engine.usage().used_chunks == 0
    }

    /// Returns the offset, size and user data of an allocation.
    ///
    /// # Errors
    /// [`VirtualHandleError`] if it belongs to another block or was allocated before [`VirtualBlock::clear`].
    #[inline]
    pub fn info(&self, allocation: &VirtualAllocation) -> Result<VirtualAllocationInfo, VirtualHandleError> {
        let user_data = self.user_data(allocation)?;
        Ok(VirtualAllocationInfo { offset: allocation.offset, size: allocation.size, user_data })
    }

    /// Returns the user data of an allocation.
    ///
    /// # Errors
    /// [`VirtualHandleError`] if it belongs to another block or was allocated before [`VirtualBlock::clear`].
    #[inline]
    pub fn user_data(&self, allocation: &VirtualAllocation) -> Result<u64, VirtualHandleError> {
        self.tag(allocation).map(|tag| self.user_data.get(tag))
    }

    /// Replaces the user data of an allocation.
    ///
    /// # Errors
    /// [`VirtualHandleError`] if it belongs to another block or was allocated before [`VirtualBlock::clear`].
    #[inline]
    pub fn set_user_data(
        &mut self,
        allocation: &VirtualAllocation,
        user_data: u64,
    ) -> Result<(), VirtualHandleError> {
        if allocation.block != self.id {
            return Err(VirtualHandleError::ForeignBlock);
        }
        // Without slots, the old tag need not be looked up.
        if !self.user_data.is_empty() {
            let tag = self.tag(allocation)?;
            self.user_data.forget(tag);
        }
        let tag = self.user_data.keep(user_data);
        self.engine.set_tag(allocation.key, tag).map_err(|BadKey| {
            self.user_data.forget(tag);
            VirtualHandleError::Cleared
        })
    }

    /// Returns the number and the size of the allocations. O(1).
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let usage = self.engine.usage();
        Statistics {
            block_count: 1,
            block_bytes: usage.capacity,
            allocation_count: usage.used_chunks,
            allocation_bytes: usage.used,
        }
    }

    /// Returns the statistics with the sizes of allocations and free ranges. O(n).
    #[must_use]
    pub fn detailed_statistics(&self) -> DetailedStatistics {
        DetailedStatistics::from_sizes(self.statistics(), self.engine.measure(self.region))
    }

    /// Calls `visit` for every range of the block, used or free, in the order of offsets. O(n).
    ///
    /// # Examples
    /// ```
    /// # use sublet::*;
    /// let mut block = VirtualBlock::new(&VirtualBlockCreateInfo { size: 64, ..Default::default() })?;
    /// let range = block.allocate(&VirtualAllocationCreateInfo { size: 16, ..Default::default() })?;
    /// let mut end = 0;
    /// block.walk(|range| {
    ///     assert_eq!(range.offset, end);
    ///     end += range.size;
    /// });
    /// assert_eq!(end, 64);
    /// # block.free(range)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn walk(&self, mut visit: impl FnMut(VirtualRange)) {
        self.engine.walk(self.region, &mut |chunk| {
            let user_data = chunk.used.map(|(_, tag)| self.user_data.get(tag));
            visit(VirtualRange { offset: chunk.offset, size: chunk.size, user_data });
        });
    }

    /// Returns the allocations in the order of offsets, as a copy. O(n) in time and memory.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = VirtualAllocationInfo> + use<> {
        let mut all = Vec::new();
        self.walk(|VirtualRange { offset, size, user_data }| {
            if let Some(user_data) = user_data {
                all.push(VirtualAllocationInfo { offset, size, user_data });
            }
        });
        all.into_iter()
    }
}
