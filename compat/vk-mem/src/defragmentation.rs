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
    /// How much is moved for how little. Of several the first counts; none means `ALGORITHM_BALANCED`.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct DefragmentationFlags: u32 {
        /// Only what empties a block.
        const ALGORITHM_FAST = 0x1;
        /// Also what fills holes.
        const ALGORITHM_BALANCED = 0x2;
        /// Everything that can go further to the front.
        const ALGORITHM_FULL = 0x4;
        /// The same; images first where `bufferImageGranularity` is above 1.
        const ALGORITHM_EXTENSIVE = 0x8;
        /// The bits that choose the algorithm.
        const ALGORITHM_MASK = 0xf;
    }
}

/// What is defragmented, and how much at a time.
#[derive(Clone, Copy, Default)]
pub struct DefragmentationInfo<'a> {
    /// How.
    pub flags: DefragmentationFlags,
    /// The pool: [`Alloc::pool`](crate::Alloc::pool). The default is the allocator's own blocks.
    pub pool: PoolHandle<'a>,
    /// The most bytes that a pass moves; zero for no limit.
    pub max_bytes_per_pass: vk::DeviceSize,
    /// The most allocations that a pass moves; zero for no limit.
    pub max_allocations_per_pass: u32,
    /// Asked before each move that might be planned: `true` ends the pass.
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

/// What becomes of an allocation that is to be moved.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum DefragmentationMoveOperation {
    /// It has its new place once it is committed.
    #[default]
    Copy,
    /// It stays where it is, and so does what else is in its block.
    Ignore,
    /// It is freed once it is committed.
    Destroy,
}

/// What came of it, under the names that VMA's C structure gives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(non_snake_case, reason = "the names that programs read")]
pub struct DefragmentationStats {
    /// Bytes of what was moved.
    pub bytesMoved: vk::DeviceSize,
    /// Bytes of the `VkDeviceMemory` objects that went back to the driver.
    pub bytesFreed: vk::DeviceSize,
    /// Allocations that were moved.
    pub allocationsMoved: u32,
    /// `VkDeviceMemory` objects that went back to the driver.
    pub deviceMemoryBlocksFreed: u32,
}

/// One allocation that is to be moved, and the place that is set aside for it.
///
/// Which of the program's allocations it is, [`is_of`](Self::is_of) says; a program with many makes a table by
/// [`Allocation::id`] and looks up [`id`](Self::id).
#[derive(Debug)]
pub struct DefragmentationMove<'p> {
    /// What [`commit`](Self::commit) does. What is to be ignored needs no commit.
    pub operation: DefragmentationMoveOperation,
    allocator: &'p Allocator,
    /// `None` once it is committed.
    inner: Option<sublet::Move<'p>>,
}

impl DefragmentationMove<'_> {
    fn planned(&self) -> VkResult<&sublet::Move<'_>> {
        self.inner.as_ref().ok_or_else(|| misused("the move is committed"))
    }

    /// Which allocation it is of: [`Allocation::id`]. `None` once it is committed.
    pub fn id(&self) -> Option<sublet::AllocationId> {
        self.inner.as_ref().map(sublet::Move::source)
    }

    /// Whether it is of this allocation.
    pub fn is_of(&self, allocation: &Allocation) -> bool {
        self.inner.is_some() && self.id() == allocation.id()
    }

    /// Bytes of the allocation; zero once it is committed.
    pub fn size(&self) -> vk::DeviceSize {
        self.inner.as_ref().map_or(0, sublet::Move::size)
    }

    /// The memory that the new place is in; null once it is committed.
    pub fn device_memory(&self) -> vk::DeviceMemory {
        self.inner.as_ref().map_or(vk::DeviceMemory::null(), sublet::Move::memory)
    }

    /// Where the new place is, in bytes from the start of the memory; zero once it is committed.
    pub fn offset(&self) -> vk::DeviceSize {
        self.inner.as_ref().map_or(0, sublet::Move::offset)
    }

    /// Creates a buffer on the new place.
    ///
    /// # Errors
    /// What the driver says; nothing is left behind. `ERROR_UNKNOWN` if it is committed.
    ///
    /// # Safety
    /// 1. The create-info is the one that the buffer at the old place was made with.
    /// 2. Unless the move is committed with [`Copy`](DefragmentationMoveOperation::Copy), the buffer is destroyed
    ///    before the pass ends.
    pub unsafe fn create_buffer(&self, buffer_info: &vk::BufferCreateInfo<'_>) -> VkResult<vk::Buffer> {
        // SAFETY: 1: the create-info is that of the old place; 2: without a copy the buffer goes before the pass ends.
        unsafe { self.planned()?.create_buffer(buffer_info) }.map_err(|error| not_created(&error))
    }

    /// Creates an image on the new place.
    ///
    /// # Errors
    /// As for [`create_buffer`](Self::create_buffer).
    ///
    /// # Safety
    /// As for [`create_buffer`](Self::create_buffer).
    pub unsafe fn create_image(&self, image_info: &vk::ImageCreateInfo<'_>) -> VkResult<vk::Image> {
        // SAFETY: 1: the create-info is that of the old place; 2: without a copy the image goes before the pass ends.
        unsafe { self.planned()?.create_image(image_info) }.map_err(|error| not_created(&error))
    }

    /// Binds a buffer to the new place.
    ///
    /// # Errors
    /// What the driver says. `ERROR_UNKNOWN` if it is committed.
    ///
    /// # Safety
    /// 1 and 2 of [`create_buffer`](Self::create_buffer), and
    /// 3. nothing is bound to the buffer.
    pub unsafe fn bind_buffer_memory(&self, buffer: vk::Buffer) -> VkResult<()> {
        // SAFETY: 1: the create-info is that of the old place; 2: without a copy the buffer goes before the pass ends;
        // 3: nothing is bound to it.
        unsafe { self.planned()?.bind_buffer_memory(buffer) }.map_err(|error| not_bound(&error))
    }

    /// Binds an image to the new place.
    ///
    /// # Errors
    /// As for [`bind_buffer_memory`](Self::bind_buffer_memory).
    ///
    /// # Safety
    /// As for [`bind_buffer_memory`](Self::bind_buffer_memory).
    pub unsafe fn bind_image_memory(&self, image: vk::Image) -> VkResult<()> {
        // SAFETY: 1: the create-info is that of the old place; 2: without a copy the image goes before the pass ends;
        // 3: nothing is bound to it.
        unsafe { self.planned()?.bind_image_memory(image) }.map_err(|error| not_bound(&error))
    }

    /// Does what [`operation`](Self::operation) says, with the allocation that the move is of: it has its new place
    /// now, or is empty, or nothing happens to it. A mapping of the program's goes along, and has another pointer.
    ///
    /// # Errors
    /// `ERROR_UNKNOWN` if it is another allocation, or the move is committed already; `ERROR_MEMORY_MAP_FAILED`, or
    /// what the driver says, if what is mapped cannot be mapped at its new place, and then it stays at the old one. If
    /// only the program's own mapping could not be made again, it has moved, and is not mapped.
    ///
    /// # Safety
    /// 1. The device is done with the copy and with what is bound to the old place, which is destroyed, or never used
    ///    again.
    /// 2. No pointer of a mapping is used again.
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
            // SAFETY: 1: the device is done with the old place. The program's mappings have ended.
            return unsafe { planned.free(inner) }.map_err(|error| {
                let why = error.error();
                allocation.put_back(error.allocation);
                misused(&why.to_string())
            });
        }
        // SAFETY: 1: the device is done with the copy and with the old place. The program's mappings have ended.
        let moved =
            unsafe { planned.complete(allocation.live_mut()?) }.map_err(|error| match error.error() {
                sublet::MoveError::Map(error) => not_mapped(&error),
                error => misused(&error.to_string()),
            });
        self.map(allocation, mappings).and(moved)
    }

    /// Ends the program's mappings, and says how many there were.
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
            // SAFETY: `unmap_memory` ends it, or the end of the allocation does.
            unsafe { self.allocator.map_memory(allocation) }?;
        }
        Ok(())
    }

    /// What is left of it when its pass ends.
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

/// What moves allocations until blocks are empty: made by [`Allocator::begin_defragmentation`], ended by
/// [`end`](Self::end) or by dropping it.
#[derive(Debug)]
#[must_use = "dropping it ends it"]
pub struct DefragmentationContext<'a> {
    allocator: &'a Allocator,
    inner: RefCell<sublet::Defragmentation<'a>>,
}

impl DefragmentationContext<'_> {
    /// Ends it, and says what came of it.
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

    /// Plans moves and has `mover` make them. `false`: there is nothing left to be moved, and `mover` was not called;
    /// or nothing came of this pass, so that another one would plan the same.
    ///
    /// For each move `mover` makes a new resource at the new place, copies on the device, waits for that, destroys the
    /// old resource, and [commits](DefragmentationMove::commit) the move with its allocation. What is neither committed
    /// nor to be ignored stays where it is, and the log says so.
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
    /// Begins to defragment. Nothing is moved yet: [`DefragmentationContext::begin_pass`] does that. Memory of a
    /// resource's own is never moved.
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
    /// `ERROR_FEATURE_NOT_PRESENT` for a linear pool, `ERROR_INITIALIZATION_FAILED` where another context works
    /// already.
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
