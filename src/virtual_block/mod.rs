//! The engines for the user's own ranges: parts of a buffer, slots of an array, indices of anything.
#![forbid(unsafe_code)]

mod error;
pub(crate) mod handle;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};

pub use self::error::{VirtualAllocationError, VirtualBlockError, VirtualFreeError, VirtualHandleError};
use crate::base::align::Alignment;
use crate::base::cast::{index, narrow};
use crate::metadata::{
    Algorithm, AllocateError, BadKey, Engine, Key, Metadata, RegionError, RegionId, Request, Span, Strategy,
    Tag,
};
use crate::statistics::{DetailedStatistics, Statistics};

/// How to make a [`VirtualBlock`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VirtualBlockCreateInfo {
    /// Units of the block: 1 to 2^63 of whatever the caller counts.
    pub size: u64,
    /// How it is divided.
    pub algorithm: Algorithm,
}

/// How to allocate a range of a [`VirtualBlock`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VirtualAllocationCreateInfo {
    /// Units to allocate; not zero.
    pub size: u64,
    /// The offset is a multiple of this power of two. 0 means 1.
    pub alignment: u64,
    /// What to optimise. Only [`Algorithm::Tlsf`] has a choice.
    pub strategy: Strategy,
    /// From the end of the block downwards: the second stack of a double stack, [`Algorithm::Linear`] only.
    pub upper_address: bool,
    /// A number that the block keeps with the allocation, for the caller's use. One of 2^29 and more takes 12 bytes of
    /// host memory, others none.
    pub user_data: u64,
}

/// A range of a [`VirtualBlock`]. By value and neither `Copy` nor `Clone`, so that freeing it twice does not compile.
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
    /// First unit.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Units granted: as many as were asked for, or the power of two that [`Algorithm::Buddy`] rounds them up to.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }
}

/// What a [`VirtualBlock`] knows of an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VirtualAllocationInfo {
    /// First unit.
    pub offset: u64,
    /// Units granted.
    pub size: u64,
    /// The value of [`VirtualAllocationCreateInfo::user_data`], or the last one of [`VirtualBlock::set_user_data`].
    pub user_data: u64,
}

/// A range of a block, used or free, as [`VirtualBlock::walk`] shows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VirtualRange {
    /// First unit.
    pub offset: u64,
    /// Units; not zero.
    pub size: u64,
    /// The user data of the allocation that has the range; `None` if the range is free.
    pub user_data: Option<u64>,
}

/// Divides a range of numbers whose meaning only the caller knows: bytes of one large buffer, elements of an array,
/// rows of a texture, identifiers. No Vulkan and no memory are behind it.
///
/// Units: whatever the caller counts. The block has no lock: `&mut self` keeps other threads away. Placement is
/// deterministic: the same calls give the same offsets.
///
/// A block of 2^27 units or more that is divided by [`Algorithm::Tlsf`] is as fast as those of device memory. Like them
/// it rounds sizes up by less than 1/64, and by at most 1/65536 of the block, while there is room, and has
/// [slabs](crate::metadata::Tlsf#slabs) for small ones, whose free slots serve no larger ones while a slot beside them
/// is used. Before it refuses a request all that was rounded up is made free, and from then on nothing is, as in
/// smaller blocks. No block has more than 2^29 allocations.
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

/// The user data of the allocations. The engine carries each in its tag, or else the slot that it is in.
#[derive(Debug, Default)]
struct UserData {
    slots: Vec<u64>,
    vacant: Vec<u32>,
}

impl UserData {
    /// The bit of a tag that says that the others are a slot; without it they are the number itself.
    const SLOT: u32 = (Tag::MASK >> 1) + 1;

    /// The tag of an allocation with this number.
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

    /// The slot that a tag names, if it does.
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

    /// Whether no tag names a slot.
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
    /// An empty block.
    ///
    /// # Errors
    /// [`VirtualBlockError::Size`] if `info.size` is 0 or above 2^63.
    pub fn new(info: &VirtualBlockCreateInfo) -> Result<Self, VirtualBlockError> {
        /// Blocks made so far. A handle carries the number of its block.
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

    /// The size of the block in units.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.engine.region_usage(self.region).capacity
    }

    /// How the block is divided.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.engine.algorithm()
    }

    /// Allocates a range.
    ///
    /// # Errors
    /// - [`ZeroSize`](VirtualAllocationError::ZeroSize): ask for at least one unit.
    /// - [`Alignment`](VirtualAllocationError::Alignment): the alignment is neither 0 nor a power of two.
    /// - [`NoSpace`](VirtualAllocationError::NoSpace): free something, or make the block larger. The error has the free
    ///   units and the largest free range.
    /// - [`UpperUnsupported`](VirtualAllocationError::UpperUnsupported): only [`Algorithm::Linear`] has an upper side.
    /// - [`UpperInRing`](VirtualAllocationError::UpperInRing): the block is used as a ring buffer.
    ///
    /// On error nothing has changed.
    ///
    /// # Complexity
    /// That of the engine; an error of [`NoSpace`](VirtualAllocationError::NoSpace) looks at a few free ranges besides.
    /// Once in the life of a block of 2^27 units or more, when there is no space for the first time though as many units
    /// are free, O(n).
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
        // So that each of them may have a slot.
        if self.engine.usage().used_chunks >= UserData::SLOT.into() {
            return Err(self.refused(AllocateError::NoSpace, size, alignment, self.free_units()));
        }
        let tag = self.user_data.keep(user_data);
        // Not made where it is not needed: it would have to be in memory.
        let request = || Request { size, alignment, strategy, upper: upper_address, tag };
        if strategy == Strategy::Balanced && !upper_address && !self.engine.rounds_up() {
            return match self.engine.grant(size, alignment, tag) {
                Some((key, _, offset)) => Ok(VirtualAllocation { block: self.id, key, offset, size }),
                None => self.end(&request(), Err(AllocateError::NoSpace)),
            };
        }
        let request = request();
        let granted = self.engine.allocate(&request);
        self.end(&request, granted)
    }

    /// What comes of a request that is out of the ordinary, or that found no space at first.
    #[inline(never)]
    fn end(
        &mut self,
        request: &Request,
        mut granted: Result<(Key, Span), AllocateError>,
    ) -> Result<VirtualAllocation, VirtualAllocationError> {
        let free = self.free_units();
        // Not for what is larger than all that is free.
        if granted == Err(AllocateError::NoSpace) && request.size <= free && self.engine.leave_nothing_out() {
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
    /// [`VirtualFreeError`], with the handle in it, if it is of another block, or from before [`VirtualBlock::clear`].
    #[inline]
    pub fn free(&mut self, allocation: VirtualAllocation) -> Result<(), VirtualFreeError> {
        if allocation.block != self.id {
            return Err(VirtualFreeError { reason: VirtualHandleError::ForeignBlock, allocation });
        }
        // What nobody has to look up is not looked up.
        let tag = if self.user_data.is_empty() { Ok(Tag(0)) } else { self.engine.tag(allocation.key) };
        match (tag, self.engine.take_back(allocation.key)) {
            (Ok(tag), Some(_)) => {
                self.user_data.forget(tag);
                Ok(())
            }
            _ => Err(VirtualFreeError { reason: VirtualHandleError::Cleared, allocation }),
        }
    }

    /// The tag of an allocation of this block.
    #[inline]
    fn tag(&self, allocation: &VirtualAllocation) -> Result<Tag, VirtualHandleError> {
        if allocation.block != self.id {
            return Err(VirtualHandleError::ForeignBlock);
        }
        self.engine.tag(allocation.key).map_err(|_| VirtualHandleError::Cleared)
    }

    /// Frees everything. Allocations from before are not valid any more.
    pub fn clear(&mut self) {
        self.engine.reset(self.region);
        self.user_data.clear();
    }

    /// Whether nothing is allocated.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.engine.usage().used_chunks == 0
    }

    /// The offset, size and user data of an allocation.
    ///
    /// # Errors
    /// [`VirtualHandleError`] if it is of another block, or from before [`VirtualBlock::clear`].
    #[inline]
    pub fn info(&self, allocation: &VirtualAllocation) -> Result<VirtualAllocationInfo, VirtualHandleError> {
        let user_data = self.user_data(allocation)?;
        Ok(VirtualAllocationInfo { offset: allocation.offset, size: allocation.size, user_data })
    }

    /// The user data of an allocation.
    ///
    /// # Errors
    /// [`VirtualHandleError`] if it is of another block, or from before [`VirtualBlock::clear`].
    #[inline]
    pub fn user_data(&self, allocation: &VirtualAllocation) -> Result<u64, VirtualHandleError> {
        self.tag(allocation).map(|tag| self.user_data.get(tag))
    }

    /// Replaces the user data of an allocation.
    ///
    /// # Errors
    /// [`VirtualHandleError`] if it is of another block, or from before [`VirtualBlock::clear`].
    #[inline]
    pub fn set_user_data(
        &mut self,
        allocation: &VirtualAllocation,
        user_data: u64,
    ) -> Result<(), VirtualHandleError> {
        if allocation.block != self.id {
            return Err(VirtualHandleError::ForeignBlock);
        }
        // What nobody has to look up is not looked up.
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

    /// How much is allocated. O(1).
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

    /// How much is allocated, and the sizes of the allocations and of the free ranges. O(n).
    #[must_use]
    pub fn detailed_statistics(&self) -> DetailedStatistics {
        DetailedStatistics::from_sizes(self.statistics(), self.engine.measure(self.region))
    }

    /// Calls `visit` with every range of the block, used or free, in the order of offsets. O(n).
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

    /// A copy of the list of allocations, in the order of offsets. O(n) in time and memory.
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
