//! What is behind a `VmaDefragmentationContext`.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::collections::HashMap;
use std::fmt;

use ash::vk;

use sublet::MapError;
use sublet::MoveError;
use sublet::private::{AllocatorInside, OpenDefragmentation, PlannedMove};
use sublet::{Allocation, AllocationId};

use super::allocator::Front;
use super::guard::{misused, refused};
use super::slab::Slot;
use super::types::{BreakFunction, Pointer, VmaAllocation, VmaDefragmentationMove, VmaDefragmentationStats};

/// `VMA_DEFRAGMENTATION_MOVE_OPERATION_COPY`.
pub(super) const COPY: u32 = 0;
/// `VMA_DEFRAGMENTATION_MOVE_OPERATION_IGNORE`.
const IGNORE: u32 = 1;
/// `VMA_DEFRAGMENTATION_MOVE_OPERATION_DESTROY`.
const DESTROY: u32 = 2;

/// A defragmentation under way.
pub struct ContextObject {
    open: OpenDefragmentation,
    break_callback: Option<(BreakFunction, Pointer)>,
    /// The moves of the open pass, with source and destination.
    planned: Vec<(PlannedMove, VmaAllocation, VmaAllocation)>,
    /// What C sees of them, and may change.
    moves: Vec<VmaDefragmentationMove>,
    /// Handles of allocations, as they were when they were last looked for.
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

    /// Whether the program has moves to make.
    pub(super) fn has_open_pass(&self) -> bool {
        !self.planned.is_empty()
    }

    /// The moves, for the program to change what is to be done with them.
    pub(super) fn moves(&mut self) -> &mut [VmaDefragmentationMove] {
        &mut self.moves
    }
}

impl Front {
    /// An allocation that is to be moved: its handle, and what it is now. `None` if it has no handle yet: another
    /// thread is just making it.
    ///
    /// The program does not know yet which allocations a pass moves, so that it may do with them whatever it likes
    /// meanwhile, but free them: they are looked at under the slab's locks.
    fn find(
        &self,
        handles: &mut HashMap<AllocationId, VmaAllocation>,
        wanted: AllocationId,
    ) -> Option<(VmaAllocation, Allocation)> {
        let look = |handle: VmaAllocation| {
            // SAFETY: handles of the slab, freed ones perhaps.
            let allocation = unsafe { self.slab.peek(handle) }?;
            (allocation.id() == wanted).then_some((handle, allocation))
        };
        if let Some(found) = handles.get(&wanted).copied().and_then(look) {
            return Some(found);
        }
        // Looked for once for all moves of a pass, and of those that follow, but for what was allocated since.
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

    /// Ends the use of a temporary handle, and of what is mapped through it. Returns whether the program has freed it.
    fn forget(&self, handle: VmaAllocation) -> bool {
        // SAFETY: `begin_pass` made the handle.
        let slot = unsafe { self.slab.own(handle) };
        let given_up = slot.is_some_and(Slot::is_given_up);
        if let Some(slot) = slot {
            while slot.count_unmap() {
                // SAFETY: it was counted when it was made.
                let _ = unsafe { self.allocator.unmap_memory(slot.allocation()) };
            }
            // SAFETY: nobody uses it any more: the pass is at its end.
            unsafe { self.slab.remove(slot) };
        }
        given_up
    }

    /// Ends a pass: does with every move what the program has said. `VK_INCOMPLETE` if a move was completed or its
    /// allocation destroyed.
    ///
    /// The moves are those of `given`, in any order, or of the context if that is `None`. Moves that are not among
    /// them are rolled back, as are those whose destination was freed.
    ///
    /// # Safety
    /// C1 to C3: the program has done what it says, and no other call uses the allocations that are moved.
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
                // It was logged when the destination was freed.
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
                    // SAFETY: C2: the copy takes the place of the allocation, or is forgotten.
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
                        MoveError::Map(MapError::Driver(error)) => error.result,
                        _ => vk::Result::ERROR_UNKNOWN,
                    };
                    result = refused(function, &error, false, code);
                }
            }
        }
        self.allocator.end_pass(&context.open);
        result
    }

    /// Notes where an allocation is mapped now that it was moved.
    fn mapped_elsewhere(&self, slot: &Slot) {
        let allocation = slot.allocation();
        if let Ok(pointer) = self.allocator.count_mapping(allocation) {
            slot.set_mapped(pointer.as_ptr().cast());
            let unmapped = self.allocator.uncount_mapping(allocation);
            debug_assert!(unmapped.is_ok());
        }
    }

    /// Takes back what was planned and not ended.
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
    use crate::slab::Slab;
    use sublet::DefragmentationInfo;
    use sublet::sim::{Gpu, Profile};
    use sublet::{AllocationCreateInfo, PoolCreateInfo};
    use sublet::{Allocator, AllocatorCreateInfo};

    /// The program may free an allocation between passes. Its handle and its id then go to other allocations.
    #[test]
    fn a_cached_handle_of_another_allocation_is_looked_up_again() {
        let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
        // SAFETY: the device outlives the allocator.
        let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
        let front = Front { allocator, slab: Slab::new(), has_priorities: false };
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

    /// What moves is decided by the call that begins a pass: until it returns the program does not know it. That
    /// nothing races is for the sanitizer to say.
    #[test]
    fn a_pass_begins_while_another_thread_changes_user_data() {
        let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
        // SAFETY: the device outlives the allocator.
        let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
        let front = Front { allocator, slab: Slab::new(), has_priorities: false };
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
        let handle = |&number: &usize| std::ptr::with_exposed_provenance_mut::<Slot>(number);
        let (begun, done) = (AtomicBool::new(false), AtomicBool::new(false));
        let mut passes = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                for mark in 1.. {
                    for number in &handles {
                        // SAFETY: the handle is live, and this thread alone changes what it is of.
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
                // No move is made: what is moved must not be used meanwhile.
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
