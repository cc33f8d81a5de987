//! Defragmentation: a context, passes and moves.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::cell::RefCell;
use std::fmt;

use ash::prelude::VkResult;
use ash::vk;

use crate::alloc::PoolHandle;
use crate::allocation::Allocation;
use crate::allocator::Allocator;
use crate::refused::{misused, not_bound, not_created, not_mapped, refused};

bitflags::bitflags! {
    /// Selects the algorithm of a defragmentation. The first of several counts; none means `ALGORITHM_BALANCED`.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct DefragmentationFlags: u32 {
        /// Makes only moves that empty a block.
        const ALGORITHM_FAST = 0x1;
        /// Also makes moves that fill holes.
        const ALGORITHM_BALANCED = 0x2;
        /// Moves everything that fits closer to the start.
        const ALGORITHM_FULL = 0x4;
        /// Same as full, with images first if `bufferImageGranularity` is above 1.
        const ALGORITHM_EXTENSIVE = 0x8;
        /// The bits that choose the algorithm.
        const ALGORITHM_MASK = 0xf;
    }
}

/// Pool and limits of a defragmentation.
#[derive(Clone, Copy, Default)]
pub struct DefragmentationInfo<'a> {
    /// The algorithm.
    pub flags: DefragmentationFlags,
    /// The pool: [`Alloc::pool`](crate::Alloc::pool). By default, the allocator's own blocks.
    pub pool: PoolHandle<'a>,
    /// Maximum bytes per pass; zero for no limit.
    pub max_bytes_per_pass: vk::DeviceSize,
    /// Maximum number of allocations per pass; zero for no limit.
    pub max_allocations_per_pass: u32,
    /// Called before each move is planned. `true` ends the pass.
    pub break_callback: Option<&'a dyn Fn() -> bool>,
}

impl fmt::Debug for DefragmentationInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DefragmentationInfo")
            .field("flags", &self.flags)
            .field("pool", &self.pool)
            .field("max_bytes_per_pass", &self.max_bytes_per_pass)
            .field("max_allocations_per_pass", &self.max_allocations_per_pass)
            .finish_non_exhaustive()
    }
}

/// The operation on an allocation that is planned to move.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum DefragmentationMoveOperation {
    /// Commits it to its new place.
    #[default]
    Copy,
    /// Keeps it in place, together with the rest of its block.
    Ignore,
    /// Frees it at commit.
    Destroy,
}

/// The result of a defragmentation, with the field names of VMA's C structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(non_snake_case, reason = "the names that programs read")]
pub struct DefragmentationStats {
    /// Bytes that were moved.
    pub bytesMoved: vk::DeviceSize,
    /// Bytes of the `VkDeviceMemory` objects that were freed.
    pub bytesFreed: vk::DeviceSize,
    /// Number of moved allocations.
    pub allocationsMoved: u32,
    /// Number of `VkDeviceMemory` objects that were freed.
    pub deviceMemoryBlocksFreed: u32,
}

/// A planned move of one allocation, with its reserved destination.
///
/// [`is_of`](Self::is_of) identifies the program's allocation. A program with many allocations can look up
/// [`id`](Self::id) in a table by [`Allocation::id`].
#[derive(Debug)]
pub struct DefragmentationMove<'p> {
    /// The operation of [`commit`](Self::commit). `Ignore` needs no commit.
    pub operation: DefragmentationMoveOperation,
    allocator: &'p Allocator,
    /// `None` after the commit.
    inner: Option<sublet::Move<'p>>,
}

impl DefragmentationMove<'_> {
    fn planned(&self) -> VkResult<&sublet::Move<'_>> {
        self.inner.as_ref().ok_or_else(|| misused("the move is committed"))
    }

    /// Returns the [`Allocation::id`] of the allocation. `None` after the commit.
    pub fn id(&self) -> Option<sublet::AllocationId> {
        self.inner.as_ref().map(sublet::Move::source)
    }

    /// Returns true if the move is of this allocation.
    pub fn is_of(&self, allocation: &Allocation) -> bool {
        self.inner.is_some() && self.id() == allocation.id()
    }

    /// Returns the bytes of the allocation; zero after the commit.
    pub fn size(&self) -> vk::DeviceSize {
        self.inner.as_ref().map_or(0, sublet::Move::size)
    }

    /// Returns the memory of the destination; null after the commit.
    pub fn device_memory(&self) -> vk::DeviceMemory {
        self.inner.as_ref().map_or(vk::DeviceMemory::null(), sublet::Move::memory)
    }

    /// Returns the destination's offset in its memory, in bytes; zero after the commit.
    pub fn offset(&self) -> vk::DeviceSize {
        self.inner.as_ref().map_or(0, sublet::Move::offset)
    }

    /// Creates a buffer at the destination.
    ///
    /// # Errors
    /// The driver's error. The buffer is destroyed on failure. `ERROR_UNKNOWN` after the commit.
    ///
    /// # Safety
    /// 1. The create-info equals that of the buffer at the source.
    /// 2. Unless the move is committed with [`Copy`](DefragmentationMoveOperation::Copy), the buffer is destroyed
    ///    before the pass ends.
    pub unsafe fn create_buffer(&self, buffer_info: &vk::BufferCreateInfo<'_>) -> VkResult<vk::Buffer> {
        // SAFETY: 1: the create-info is that of the buffer at the source; 2: without a copy, the buffer is destroyed
        // before the pass ends.
        unsafe { self.planned()?.create_buffer(buffer_info) }.map_err(|error| not_created(&error))
    }

    /// Creates an image at the destination.
    ///
    /// # Errors
    /// As for [`create_buffer`](Self::create_buffer).
    ///
    /// # Safety
    /// As for [`create_buffer`](Self::create_buffer).
    pub unsafe fn create_image(&self, image_info: &vk::ImageCreateInfo<'_>) -> VkResult<vk::Image> {
        // SAFETY: 1: the create-info is that of the image at the source; 2: without a copy, the image is destroyed
        // before the pass ends.
        unsafe { self.planned()?.create_image(image_info) }.map_err(|error| not_created(&error))
    }

    /// Binds a buffer to the destination.
    ///
    /// # Errors
    /// The driver's error. `ERROR_UNKNOWN` after the commit.
    ///
    /// # Safety
    /// 1 and 2 of [`create_buffer`](Self::create_buffer), and
    /// 3. nothing is bound to the buffer.
    pub unsafe fn bind_buffer_memory(&self, buffer: vk::Buffer) -> VkResult<()> {
        // SAFETY: 1: the create-info is that of the buffer at the source; 2: without a copy, the buffer is destroyed
        // before the pass ends; 3: nothing is bound to it.
        unsafe { self.planned()?.bind_buffer_memory(buffer) }.map_err(|error| not_bound(&error))
    }

    /// Binds an image to the destination.
    ///
    /// # Errors
    /// As for [`bind_buffer_memory`](Self::bind_buffer_memory).
    ///
    /// # Safety
    /// As for [`bind_buffer_memory`](Self::bind_buffer_memory).
    pub unsafe fn bind_image_memory(&self, image: vk::Image) -> VkResult<()> {
        // SAFETY: 1: the create-info is that of the image at the source; 2: without a copy, the image is destroyed
        // before the pass ends; 3: nothing is bound to it.
        unsafe { self.planned()?.bind_image_memory(image) }.map_err(|error| not_bound(&error))
    }

    /// Applies [`operation`](Self::operation) to the allocation of the move. The allocation gets its new place, becomes
    /// empty, or does not change. The program's mapping moves with it and gets a new pointer.
    ///
    /// # Errors
    /// `ERROR_UNKNOWN` for another allocation, or after the commit. `ERROR_MEMORY_MAP_FAILED` or the driver's error if
    /// mapped memory cannot be mapped at the destination; the allocation then stays in place. If only the program's own
    /// mapping cannot be restored, the allocation has moved and is not mapped.
    ///
    /// # Safety
    /// 1. The device has completed the copy and its use of resources at the source. Those are destroyed, or never used
    ///    again.
    /// 2. Pointers of earlier mappings are not used again.
    pub unsafe fn commit(&mut self, allocation: &mut Allocation) -> VkResult<()> {
        let planned = self.inner.take_if(|planned| Some(planned.source()) == allocation.id());
        let planned = planned.ok_or_else(|| misused("the move is of another allocation, or is committed"))?;
        if self.operation == DefragmentationMoveOperation::Ignore {
            planned.ignore();
            return Ok(());
        }
        let mappings = self.unmap(allocation);
        if self.operation == DefragmentationMoveOperation::Destroy {
            let inner = allocation.take()?;
            // SAFETY: 1: the device has finished using the old place. The program's mappings have ended.
            return unsafe { planned.free(inner) }.map_err(|error| {
                let why = error.error();
                allocation.put_back(error.allocation);
                misused(&why.to_string())
            });
        }
        // SAFETY: 1: the device has completed the copy and its use of the old place. The program's mappings have ended.
        let moved =
            unsafe { planned.complete(allocation.live_mut()?) }.map_err(|error| match error.error() {
                sublet::MoveError::Map(error) => not_mapped(&error),
                error => misused(&error.to_string()),
            });
        self.map(allocation, mappings).and(moved)
    }

    /// Removes the program's mappings, and returns their number.
    fn unmap(&self, allocation: &mut Allocation) -> u32 {
        let mappings = allocation.map_count;
        for _ in 0..mappings {
            // SAFETY: `map_memory` counted the mapping; 2 of `commit`: its pointer is not used again.
            unsafe { self.allocator.unmap_memory(allocation) };
        }
        mappings
    }

    fn map(&self, allocation: &mut Allocation, mappings: u32) -> VkResult<()> {
        for _ in 0..mappings {
            // SAFETY: `unmap_memory` or the end of the allocation ends the mapping.
            unsafe { self.allocator.map_memory(allocation) }?;
        }
        Ok(())
    }

    /// Ends the move when its pass ends.
    fn end(self) {
        match (self.inner, self.operation) {
            (Some(planned), DefragmentationMoveOperation::Ignore) => planned.ignore(),
            (Some(_), _) => {
                let _ = misused("a move was not committed: the allocation stays where it is");
            }
            (None, _) => {}
        }
    }
}

/// Moves allocations until blocks are empty. [`Allocator::begin_defragmentation`] creates it. [`end`](Self::end) or a
/// drop ends it.
#[derive(Debug)]
#[must_use = "dropping it ends it"]
pub struct DefragmentationContext<'a> {
    allocator: &'a Allocator,
    inner: RefCell<sublet::Defragmentation<'a>>,
}

impl DefragmentationContext<'_> {
    /// Ends the defragmentation, and returns its statistics.
    pub fn end(self) -> DefragmentationStats {
        let known = self.inner.into_inner().end();
        let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        DefragmentationStats {
            bytesMoved: known.bytes_moved,
            bytesFreed: known.bytes_freed,
            allocationsMoved: count(known.allocations_moved),
            deviceMemoryBlocksFreed: count(known.blocks_freed),
        }
    }

    /// Plans moves and calls `mover` to make them. Returns false if nothing is left to move, without a call of `mover`,
    /// or if the pass had no effect, so that another pass would plan the same moves.
    ///
    /// For each move, `mover` creates a new resource at the destination, copies on the device, waits, destroys the old
    /// resource, and [commits](DefragmentationMove::commit) the move. An allocation whose move is neither committed nor
    /// ignored stays in place, and a warning is logged.
    pub fn begin_pass(&self, mover: impl FnOnce(&mut [DefragmentationMove<'_>])) -> bool {
        let Ok(mut inner) = self.inner.try_borrow_mut() else {
            let _ = misused("a pass within a pass");
            return false;
        };
        let allocator = self.allocator;
        let operation = DefragmentationMoveOperation::Copy;
        let Some(pass) = inner.begin_pass() else { return false };
        let with = |planned| DefragmentationMove { operation, allocator, inner: Some(planned) };
        let mut moves: Vec<_> = pass.map(with).collect();
        mover(&mut moves);
        let is_resolved = |moved: &DefragmentationMove<'_>| {
            moved.inner.is_none() || moved.operation == DefragmentationMoveOperation::Ignore
        };
        let goes_on = moves.iter().any(is_resolved);
        moves.into_iter().for_each(DefragmentationMove::end);
        goes_on
    }
}

impl Allocator {
    /// Begins a defragmentation. [`DefragmentationContext::begin_pass`] then makes the moves. Dedicated memory never
    /// moves.
    ///
    /// ```
    /// use ash::vk;
    /// use vk_mem::{Alloc, AllocationCreateInfo, DefragmentationInfo, PoolCreateInfo};
    ///
    /// # let gpu = sublet::sim::Gpu::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    /// # let info = vk_mem::AllocatorCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device());
    /// # let allocator = std::sync::Arc::new(unsafe { vk_mem::Allocator::new(info) }?);
    /// let pool = allocator.create_pool(&PoolCreateInfo { block_size: 1 << 20, ..Default::default() })?;
    /// let needed = vk::MemoryRequirements { size: 300 << 10, alignment: 256, memory_type_bits: !0 };
    /// // SAFETY: the user data is none.
    /// let mut all = unsafe { pool.allocate_memory_pages(&needed, &AllocationCreateInfo::default(), 6) }?;
    /// for freed in [4, 3, 1] {
    ///     // SAFETY: nothing was ever bound to it.
    ///     unsafe { allocator.free_memory(&mut all.remove(freed)) };
    /// }
    /// let info = DefragmentationInfo { pool: pool.pool(), ..Default::default() };
    /// // SAFETY: no move is committed while the device uses the memory.
    /// let context = unsafe { allocator.begin_defragmentation(&info) }?;
    /// while context.begin_pass(|moves| {
    ///     for moved in moves {
    ///         // Here the program makes new resources, copies on the device, waits for that, and destroys the old ones.
    ///         let allocation = all.iter_mut().find(|allocation| moved.is_of(allocation)).unwrap();
    ///         // SAFETY: nothing is bound to it.
    ///         unsafe { moved.commit(allocation) }.unwrap();
    ///     }
    /// }) {}
    /// assert_eq!(context.end().allocationsMoved, 1);
    /// assert_eq!(pool.calculate_statistics()?.unusedRangeCount, 2, "one empty block, and what the other has left");
    /// # unsafe { allocator.free_memory_pages(&mut all) };
    /// # Ok::<(), vk::Result>(())
    /// ```
    ///
    /// # Errors
    /// `ERROR_FEATURE_NOT_PRESENT` for a linear pool, `ERROR_INITIALIZATION_FAILED` if another context is active.
    ///
    /// # Safety
    /// Always safe: [`DefragmentationMove::commit`] has the conditions.
    pub unsafe fn begin_defragmentation<'a>(
        &'a self,
        info: &'a DefragmentationInfo<'a>,
    ) -> VkResult<DefragmentationContext<'a>> {
        let inner = self.as_sublet().begin_defragmentation(&sublet::DefragmentationInfo {
            algorithm: algorithm(info.flags),
            pools: info.pool.0.as_slice(),
            max_bytes_per_pass: info.max_bytes_per_pass,
            max_allocations_per_pass: info.max_allocations_per_pass,
            break_callback: info.break_callback,
            ..Default::default()
        });
        let inner = inner.map_err(|error| refused(&error, error.vk_result()))?;
        Ok(DefragmentationContext { allocator: self, inner: RefCell::new(inner) })
    }
}

fn algorithm(flags: DefragmentationFlags) -> sublet::DefragmentationAlgorithm {
    use sublet::DefragmentationAlgorithm as Algorithm;
    let known = [
        (DefragmentationFlags::ALGORITHM_FAST, Algorithm::Fast),
        (DefragmentationFlags::ALGORITHM_BALANCED, Algorithm::Balanced),
        (DefragmentationFlags::ALGORITHM_FULL, Algorithm::Full),
        (DefragmentationFlags::ALGORITHM_EXTENSIVE, Algorithm::Extensive),
    ];
    known.into_iter().find(|&(flag, _)| flags.contains(flag)).map_or(Algorithm::default(), |(_, found)| found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_choose_the_algorithm_and_of_several_the_first_counts() {
        use sublet::DefragmentationAlgorithm as Algorithm;
        let chosen = |flags: u32| algorithm(DefragmentationFlags::from_bits_retain(flags));
        assert_eq!(
            [0, 1, 2, 4, 8].map(chosen),
            [
                Algorithm::Balanced,
                Algorithm::Fast,
                Algorithm::Balanced,
                Algorithm::Full,
                Algorithm::Extensive,
            ]
        );
        assert_eq!([0xf, 6, 12].map(chosen), [Algorithm::Fast, Algorithm::Balanced, Algorithm::Full]);
    }
}
