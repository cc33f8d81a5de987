//! Frees empty memory before an allocation fails, and unmaps idle memory before a mapping fails.
//!
//! All device memory is allocated in attempts of `Allocator::visit_vector` or `Allocator::create_pool`. If an attempt
//! fails for lack of device memory, the empty blocks of that heap are freed, and the attempt is repeated once.

use std::sync::atomic::Ordering;

use super::AllocatorInner;
use crate::blocks::{Emptied, ReturnedBlock};
use crate::error::{MapError, MemoryError};

/// The minimum that an attempt needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReliefNeed {
    pub(super) memory_type: u32,
    /// Bytes needed in total.
    pub(super) bytes: u64,
    /// `VkDeviceMemory` objects.
    pub(super) count: u32,
    pub(super) within_budget: bool,
    /// The attempt frees no reserved blocks.
    pub(super) spares_reserved: bool,
}

/// A vector with empty blocks.
struct Empty {
    vector: u32,
    heap: u32,
    empty: Emptied,
}

impl AllocatorInner {
    /// Runs an attempt. If it fails for lack of device memory, frees empty blocks and runs it once more.
    ///
    /// `why` returns the memory error of a failed attempt, if that was the cause. Frees nothing if that cannot help.
    pub(super) fn with_relief<R, E>(
        &self,
        need: ReliefNeed,
        attempt: impl Fn() -> Result<R, E>,
        why: impl Fn(&E) -> Option<MemoryError>,
    ) -> Result<R, E> {
        let seen = self.reliefs.load(Ordering::Acquire);
        let answer = attempt();
        match answer.as_ref().err().and_then(why) {
            Some(error) if self.relieve(need, error, seen) => attempt(),
            _ => answer,
        }
    }

    /// Frees empty blocks, if that may help. Returns true if any thread has done so since `seen` reliefs.
    #[cold]
    fn relieve(&self, need: ReliefNeed, error: MemoryError, seen: u32) -> bool {
        if matches!(error, MemoryError::HeapTooSmall { .. }) || !error.is_shortage() {
            return false;
        }
        if self.is_above_limit(error) {
            return false;
        }
        // Outside the lock: a subscriber that allocates as the span begins must not find it held.
        let span = tracing::debug_span!(target: "sublet::block", "relieve", size = need.bytes);
        let _entered = span.enter();
        let returned = {
            // If several threads run out of memory, one frees and the others wait until the driver has the memory back.
            // No other thread waits for them.
            let _turn = self.relief.lock();
            let returned = self.give_empty_back(need, error);
            if !returned.is_empty() {
                self.reliefs.fetch_add(1, Ordering::Release);
            }
            returned
        };
        let bytes: u64 = returned.iter().map(|(_, block)| block.size()).sum();
        for (vector, block) in returned {
            block.emit(&self.context, || self.vector(vector)?.pool_name());
        }
        if bytes > 0 {
            tracing::debug!(
                name: "relieved", target: "sublet::block", bytes, needed = need.bytes, memory_type = need.memory_type,
                "empty blocks given back: there was no memory"
            );
        }
        self.reliefs.load(Ordering::Acquire) != seen
    }

    /// Runs an attempt. If it fails for lack of addresses, unmaps idle memory and runs it once more.
    ///
    /// `why` returns the mapping error of a failed attempt, if that was the cause.
    #[inline]
    pub(super) fn with_addresses<R, E>(
        &self,
        attempt: impl Fn() -> Result<R, E>,
        why: impl Fn(&E) -> Option<&MapError>,
    ) -> Result<R, E> {
        let answer = attempt();
        match answer.as_ref().err().and_then(why) {
            Some(error) if self.unmap_idle_for(error) => attempt(),
            _ => answer,
        }
    }

    /// Unmaps all memory without users of its mapping, if mapping failed for lack of addresses. Returns true if less is
    /// mapped than at the failure, also because of another thread.
    #[cold]
    fn unmap_idle_for(&self, error: &MapError) -> bool {
        if !error.is_out_of_addresses() {
            return false;
        }
        let before = match *error {
            MapError::AddressSpace { mapped, .. } => mapped,
            _ => self.context.budgets.mapped(),
        };
        for vector in self.vectors() {
            // An empty leased range is a user.
            vector.reclaim(&self.context);
            vector.unmap_idle(&self.context);
        }
        self.context.budgets.mapped() < before
    }

    /// Returns true if the driver rejected a size above its limit although the heap has room: then memory is not the
    /// problem.
    fn is_above_limit(&self, error: MemoryError) -> bool {
        let MemoryError::Driver { size, heap, .. } = error else { return false };
        let budgets = &self.context.budgets;
        budgets.exceeded_by(size).is_some() && size <= budgets.level(heap).free()
    }

    /// Frees the empty blocks of the heap. If the number of allocations is exhausted and that is not enough, frees all
    /// empty blocks. Frees nothing if even that would not be enough.
    fn give_empty_back(&self, need: ReliefNeed, error: MemoryError) -> Vec<(u32, ReturnedBlock)> {
        let heap = self.context.heap_of(need.memory_type);
        // The driver does not say how much it lacks. All other limits do, and reserved blocks stay if they can.
        let mut reserved = matches!(error, MemoryError::Driver { .. }) && !need.spares_reserved;
        let mut empty = self.gather_empty(reserved, |it| it == heap);
        if !self.would_do(need, error, &empty) && !need.spares_reserved {
            reserved = true;
            empty = self.gather_empty(reserved, |it| it == heap);
        }
        if !self.would_do(need, error, &empty) && matches!(error, MemoryError::TooManyAllocations { .. }) {
            empty = self.gather_empty(reserved, |_| true);
        }
        if !self.would_do(need, error, &empty) {
            return Vec::new();
        }
        let vectors =
            empty.into_iter().filter_map(|Empty { vector, .. }| Some((vector, self.vector(vector)?)));
        let returned = vectors.map(|(number, vector)| (number, vector.return_empty(&self.context, reserved)));
        returned.flat_map(|(number, blocks)| blocks.into_iter().map(move |block| (number, block))).collect()
    }

    /// The vectors with empty blocks in the heaps that `wants` selects.
    fn gather_empty(&self, reserved: bool, wants: impl Fn(u32) -> bool) -> Vec<Empty> {
        let vectors = self.numbered_vectors().filter_map(|(vector, it)| {
            let (memory_type, empty) = it.gather_empty(reserved, |it| wants(self.context.heap_of(it)))?;
            (empty.blocks > 0).then(|| Empty { vector, heap: self.context.heap_of(memory_type), empty })
        });
        vectors.collect()
    }

    /// Returns true if every known limit would allow the need once `empty` is freed.
    fn would_do(&self, need: ReliefNeed, error: MemoryError, empty: &[Empty]) -> bool {
        let heap = self.context.heap_of(need.memory_type);
        let bytes = empty.iter().filter(|it| it.heap == heap).map(|it| it.empty.bytes).sum();
        let count = empty.iter().map(|it| it.empty.blocks).sum();
        let is_full = matches!(error, MemoryError::Driver { .. });
        let ReliefNeed { bytes: needed, count: needed_count, within_budget, .. } = need;
        let needed = (needed, needed_count);
        count > 0 && self.context.budgets.would_allow(heap, needed, (bytes, count), within_budget, is_full)
    }
}
