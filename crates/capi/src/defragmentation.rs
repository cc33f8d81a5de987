//! The object behind a `VmaDefragmentationContext`.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::collections::HashMap;
use std::fmt;

use ash::vk;

use sublet::MapError;
use sublet::MoveError;
use sublet::private::{AllocatorInside, OpenDefragmentation, PlannedAllocationMove};
use sublet::{Allocation, AllocationId};

use super::allocator::Front;
use super::guard::{misused, refused};
use super::slab::HandleSlot;
use super::types::{BreakFunction, Pointer, VmaAllocation, VmaDefragmentationMove, VmaDefragmentationStats};

/// `VMA_DEFRAGMENTATION_MOVE_OPERATION_COPY`.
pub(super) const COPY: u32 = 0;
/// `VMA_DEFRAGMENTATION_MOVE_OPERATION_IGNORE`.
const IGNORE: u32 = 1;
/// `VMA_DEFRAGMENTATION_MOVE_OPERATION_DESTROY`.
const DESTROY: u32 = 2;

/// A defragmentation in progress.
pub struct ContextObject {
    open: OpenDefragmentation,
    break_callback: Option<(BreakFunction, Pointer)>,
    /// The moves of the open pass, with source and destination.
    planned: Vec<(PlannedAllocationMove, VmaAllocation, VmaAllocation)>,
    /// The same moves in C's structure, which the program may change.
    moves: Vec<VmaDefragmentationMove>,
    /// Cached handles of allocations, from the last search.
    handles: HashMap<AllocationId, VmaAllocation>,
}

impl fmt::Debug for ContextObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextObject").field("open", &self.open).finish_non_exhaustive()
    }
}

impl ContextObject {
    pub(super) fn new(open: OpenDefragmentation, break_callback: Option<(BreakFunction, Pointer)>) -> Self {
        Self { open, break_callback, planned: Vec::new(), moves: Vec::new(), handles: HashMap::new() }
    }

    /// Returns true if a pass is open and has moves.
    pub(super) fn has_open_pass(&self) -> bool {
        !self.planned.is_empty()
    }

    /// Returns the moves. The program may change their operations.
    pub(super) fn moves(&mut self) -> &mut [VmaDefragmentationMove] {
        &mut self.moves
    }
}

impl Front {
    /// Returns the handle of an allocation that is to move, and a copy of the allocation. Returns `None` if it has no
    /// handle yet because another thread is still creating it.
    ///
    /// The program does not know yet which allocations the pass moves. It may use them meanwhile in any way except
    /// freeing them, so they are read under the slab's locks.
    fn find(
        &self,
        handles: &mut HashMap<AllocationId, VmaAllocation>,
        wanted: AllocationId,
    ) -> Option<(VmaAllocation, Allocation)> {
        let look = |handle: VmaAllocation| {
            // SAFETY: handles of this slab, which may be freed.
            let allocation = unsafe { self.slab.peek(handle) }?;
            (allocation.id() == wanted).then_some((handle, allocation))
        };
        if let Some(found) = handles.get(&wanted).copied().and_then(look) {
            return Some(found);
        }
        // One walk fills the cache for all moves. Later passes walk again only for allocations that are newer.
        handles.clear();
        self.slab.for_each(|handle, slot| {
            handles.insert(slot.allocation().id(), handle);
        });
        handles.get(&wanted).copied().and_then(look)
    }

    /// Plans a pass.
    pub(super) fn begin_pass(&self, context: &mut ContextObject) {
        self.roll_back(context);
        let callback = context.break_callback;
        let mut stop = || {
            callback.is_some_and(|(callback, user_data)| {
                // SAFETY: C3: a function of the program that may be called while the context lives.
                let answer = unsafe { callback(user_data.0) };
                answer != vk::FALSE
            })
        };
        for planned in self.allocator.plan_moves(&mut context.open, &mut stop) {
            let Some((source, allocation)) = self.find(&mut context.handles, planned.source()) else {
                self.allocator.roll_back_move(&context.open, &planned);
                continue;
            };
            let place = planned.destination(&allocation);
            // SAFETY: it is not used again.
            let destination = unsafe { self.slab.insert(&place) };
            // SAFETY: the handle was made just now.
            if let Some(slot) = unsafe { self.slab.own(destination) } {
                slot.mark_destination();
            }
            context.moves.push(VmaDefragmentationMove {
                operation: COPY,
                src_allocation: source,
                dst_tmp_allocation: destination,
            });
            context.planned.push((planned, source, destination));
        }
    }

    /// Removes a temporary handle and its mappings. Returns true if the program freed the handle.
    fn forget(&self, handle: VmaAllocation) -> bool {
        // SAFETY: `begin_pass` made the handle.
        let slot = unsafe { self.slab.own(handle) };
        let given_up = slot.is_some_and(HandleSlot::is_given_up);
        if let Some(slot) = slot {
            while slot.count_unmap() {
                // SAFETY: the mapping was counted when it was made.
                let _ = unsafe { self.allocator.unmap_memory(slot.allocation()) };
            }
            // SAFETY: the pass has ended, so that nothing uses the slot any more.
            unsafe { self.slab.remove(slot) };
        }
        given_up
    }

    /// Ends a pass and applies the operation that the program chose for each move. Returns `VK_INCOMPLETE` if a move
    /// was completed or its allocation destroyed.
    ///
    /// `given` holds the pass's moves in any order. If it is `None`, the context's own list is used. Moves that are
    /// missing from it are rolled back, and so are moves whose destination the program freed.
    ///
    /// # Safety
    /// C1 to C3: the program has done what each operation says, and no other call uses the allocations that move.
    pub(super) unsafe fn end_pass(
        &self,
        function: &'static str,
        context: &mut ContextObject,
        given: Option<&[VmaDefragmentationMove]>,
    ) -> vk::Result {
        let mut result = vk::Result::SUCCESS;
        let own = std::mem::take(&mut context.moves);
        let operations: HashMap<VmaAllocation, u32> =
            given.unwrap_or(&own).iter().map(|one| (one.src_allocation, one.operation)).collect();
        for (planned, source, destination) in &std::mem::take(&mut context.planned) {
            let source = *source;
            let given_up = self.forget(*destination);
            let Some(&operation) = operations.get(&source) else {
                self.allocator.roll_back_move(&context.open, planned);
                continue;
            };
            if operation == COPY && given_up {
                // The call that freed the destination has logged it.
                self.allocator.roll_back_move(&context.open, planned);
                continue;
            }
            // SAFETY: C1, C2.
            let Some(slot) = (unsafe { self.slab.own(source) }) else {
                misused(function, "an allocation was freed while it was moved");
                self.allocator.roll_back_move(&context.open, planned);
                continue;
            };
            let users = u64::from(slot.map_count());
            let answered = match operation {
                IGNORE => {
                    self.allocator.ignore_move(&context.open, planned);
                    continue;
                }
                DESTROY => {
                    let freed = self.allocator.free_move(&context.open, planned, slot.allocation(), users);
                    if freed.is_ok() {
                        // SAFETY: C2; it was freed.
                        unsafe { self.slab.remove(slot) };
                    }
                    freed
                }
                COPY => {
                    // SAFETY: C2: the copy replaces the allocation, or is forgotten.
                    let mut allocation = unsafe { slot.copy() };
                    let moved = self.allocator.complete_move(&context.open, planned, &mut allocation, users);
                    if moved.is_ok() {
                        // SAFETY: C2: no other call uses the allocation.
                        unsafe { self.slab.replace(slot, allocation) };
                        if users != 0 {
                            self.mapped_elsewhere(slot);
                        }
                    }
                    moved
                }
                _ => {
                    misused(function, "operation is not one of VmaDefragmentationMoveOperation");
                    self.allocator.roll_back_move(&context.open, planned);
                    continue;
                }
            };
            match answered {
                Ok(()) if result == vk::Result::SUCCESS => result = vk::Result::INCOMPLETE,
                Ok(()) => {}
                Err(error) => {
                    self.allocator.roll_back_move(&context.open, planned);
                    let code = match &error {
                        MoveError::Map(error @ (MapError::Driver(_) | MapError::AddressSpace { .. })) => {
                            error.vk_result()
                        }
                        _ => vk::Result::ERROR_UNKNOWN,
                    };
                    result = refused(function, &error, false, code);
                }
            }
        }
        self.allocator.end_pass(&context.open);
        result
    }

    /// Updates the mapped address of an allocation after its move.
    fn mapped_elsewhere(&self, slot: &HandleSlot) {
        let allocation = slot.allocation();
        if let Ok(pointer) = self.allocator.count_mapping(allocation) {
            slot.set_mapped(pointer.as_ptr().cast());
            let unmapped = self.allocator.uncount_mapping(allocation);
            debug_assert!(unmapped.is_ok());
        }
    }

    /// Rolls back planned moves that were not ended.
    fn roll_back(&self, context: &mut ContextObject) {
        context.moves.clear();
        for (planned, _, destination) in context.planned.drain(..) {
            let _ = self.forget(destination);
            self.allocator.roll_back_move(&context.open, &planned);
        }
    }

    /// Ends a defragmentation.
    pub(super) fn end_defragmentation(&self, mut context: ContextObject) -> VmaDefragmentationStats {
        self.roll_back(&mut context);
        let known = self.allocator.close_defragmentation(context.open);
        VmaDefragmentationStats {
            bytes_moved: known.bytes_moved,
            bytes_freed: known.bytes_freed,
            allocations_moved: u32::try_from(known.allocations_moved).unwrap_or(u32::MAX),
            device_memory_blocks_freed: u32::try_from(known.blocks_freed).unwrap_or(u32::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;
    use crate::slab::HandleSlab;
    use sublet::DefragmentationInfo;
    use sublet::sim::{Gpu, Profile};
    use sublet::{AllocationCreateInfo, PoolCreateInfo};
    use sublet::{Allocator, AllocatorCreateInfo};

    fn fixture() -> (Gpu, Front) {
        let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
        // SAFETY: the caller keeps the device as long as the allocator.
        let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
        (gpu, Front { allocator, slab: HandleSlab::new(), has_priorities: false })
    }

    /// The program may free an allocation between passes. Other allocations may reuse its handle and its id.
    #[test]
    fn a_cached_handle_of_another_allocation_is_looked_up_again() {
        let (_gpu, front) = fixture();
        let needs = vk::MemoryRequirements { size: 1 << 10, alignment: 64, memory_type_bits: !0 };
        let [(wanted, handle), (other, other_handle)] = [(); 2].map(|()| {
            let allocation = front.allocator.allocate_memory(&needs, &Default::default()).unwrap();
            // SAFETY: it is not used again.
            (allocation.id(), unsafe { front.slab.insert(&allocation) })
        });
        let mut handles = HashMap::from([(wanted, other_handle), (other, other_handle)]);
        let (found, allocation) = front.find(&mut handles, wanted).unwrap();
        assert_eq!((found, allocation.id()), (handle, wanted));
        for handle in [handle, other_handle] {
            // SAFETY: the handle is live, and no device uses its memory.
            unsafe { front.free("test", handle) };
        }
    }

    /// The call that begins a pass selects the moves, and the program learns them only when it returns. A thread
    /// sanitizer checks that nothing races.
    #[test]
    fn a_pass_begins_while_another_thread_changes_user_data() {
        let (_gpu, front) = fixture();
        let create = PoolCreateInfo { block_size: 1 << 14, ..PoolCreateInfo::new(0) };
        let pool = front.allocator.create_pool(&create).unwrap();
        let needs = vk::MemoryRequirements { size: 1 << 10, alignment: 64, memory_type_bits: !0 };
        let inside = AllocationCreateInfo { pool: Some(&pool), ..Default::default() };
        let (mut handles, mut holes): (Vec<usize>, Vec<Allocation>) = (Vec::new(), Vec::new());
        for number in 0..64 {
            let allocation = front.allocator.allocate_memory(&needs, &inside).unwrap();
            if number % 2 == 0 {
                // SAFETY: it is not used again.
                handles.push(unsafe { front.slab.insert(&allocation) }.expose_provenance());
            } else {
                holes.push(allocation);
            }
        }
        for hole in holes {
            // SAFETY: no device uses it.
            unsafe { front.allocator.free_memory(hole) }.unwrap();
        }
        let handle = |&number: &usize| std::ptr::with_exposed_provenance_mut::<HandleSlot>(number);
        let (begun, done) = (AtomicBool::new(false), AtomicBool::new(false));
        let mut passes = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                for mark in 1.. {
                    for number in &handles {
                        // SAFETY: the handle is live, and only this thread changes its allocation.
                        unsafe { front.set_user_data("test", handle(number), mark) };
                    }
                    begun.store(true, Ordering::Relaxed);
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    thread::yield_now();
                }
            });
            while !begun.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            for _ in 0..4 {
                let asked = DefragmentationInfo { pools: &[&pool], ..Default::default() };
                let open = front.allocator.open_defragmentation(&asked).unwrap();
                let mut context = ContextObject::new(open, None);
                front.begin_pass(&mut context);
                passes.push(context.moves().len());
                // No move is made, because the program must not use a moving allocation.
                front.end_defragmentation(context);
            }
            done.store(true, Ordering::Relaxed);
        });
        assert!(passes.iter().all(|&moves| moves != 0), "{passes:?}");
        for number in &handles {
            // SAFETY: the handle is live, and no other thread is left.
            unsafe { front.free("test", handle(number)) };
        }
        // SAFETY: no device uses it.
        assert!(unsafe { front.allocator.destroy_pool(pool) }.unwrap().is_empty());
    }
}
