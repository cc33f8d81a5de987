//! Memory that lies empty goes back before a failure is told.
//!
//! Whatever asks for device memory does it in an attempt that `Allocator::place_in` or `Allocator::create_pool` makes.
//! If the attempt fails for want of device memory, what is empty elsewhere in that heap goes back to the driver, and
//! the attempt is made once more.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering;

use super::Inner;
use crate::blocks::{Emptied, ReturnedBlock};
use crate::error::MemoryError;

/// What an attempt needs at least.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    pub(super) memory_type: u32,
    /// Bytes of all that is needed.
    pub(super) bytes: u64,
    /// `VkDeviceMemory` objects.
    pub(super) count: u32,
    pub(super) within_budget: bool,
}

/// A vector of which blocks are empty.
struct Empty {
    vector: u32,
    heap: u32,
    empty: Emptied,
}

impl Inner {
    /// Makes an attempt; if it fails for want of device memory, gives back what is empty, and makes it once more.
    ///
    /// `why` tells what refused, if it was that. Nothing is given back where that cannot help.
    pub(super) fn with_relief<R, E>(
        &self,
        need: Need,
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

    /// Gives back what is empty, if that may help. Whether anybody has, since there were `seen` reliefs.
    #[cold]
    fn relieve(&self, need: Need, error: MemoryError, seen: u32) -> bool {
        if matches!(error, MemoryError::HeapTooSmall { .. }) || !error.is_shortage() {
            return false;
        }
        if self.is_above_limit(error) {
            return false;
        }
        // Not under the lock: a subscriber that allocates as the span begins must not find it taken.
        let span = tracing::debug_span!(target: "sublet::block", "relieve", size = need.bytes);
        let _entered = span.enter();
        let returned = {
            // Of several threads that run out of memory one gives back, and the others wait until that has come to
            // something: what has left the books is not yet with the driver. Nobody else waits for them.
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

    /// Whether the driver has refused a size above its limit for which the heap has room: then it wants no memory.
    fn is_above_limit(&self, error: MemoryError) -> bool {
        let MemoryError::Driver { size, heap, .. } = error else { return false };
        let budgets = &self.context.budgets;
        budgets.exceeded_by(size).is_some() && size <= budgets.level(heap).free()
    }

    /// Gives back what is empty in the heap; if the number of allocations is exhausted and that is not enough, what is
    /// empty anywhere. Nothing if there would be too little even so.
    fn give_empty_back(&self, need: Need, error: MemoryError) -> Vec<(u32, ReturnedBlock)> {
        let heap = self.context.heap_of(need.memory_type);
        let mut empty = self.gather_empty(|it| it == heap);
        if !self.would_do(need, error, &empty) && matches!(error, MemoryError::TooManyAllocations { .. }) {
            empty = self.gather_empty(|_| true);
        }
        if !self.would_do(need, error, &empty) {
            return Vec::new();
        }
        let vectors =
            empty.into_iter().filter_map(|Empty { vector, .. }| Some((vector, self.vector(vector)?)));
        let returned = vectors.map(|(number, vector)| (number, vector.return_empty(&self.context)));
        returned.flat_map(|(number, blocks)| blocks.into_iter().map(move |block| (number, block))).collect()
    }

    /// The vectors of the heaps that are wanted in which a block is empty.
    fn gather_empty(&self, wants: impl Fn(u32) -> bool) -> Vec<Empty> {
        let vectors = self.numbered_vectors().filter_map(|(vector, it)| {
            let (memory_type, empty) = it.gather_empty(|it| wants(self.context.heap_of(it)))?;
            (empty.blocks > 0).then(|| Empty { vector, heap: self.context.heap_of(memory_type), empty })
        });
        vectors.collect()
    }

    /// Whether every limit that is known has room for the need once that is given back.
    fn would_do(&self, need: Need, error: MemoryError, empty: &[Empty]) -> bool {
        let heap = self.context.heap_of(need.memory_type);
        let bytes = empty.iter().filter(|it| it.heap == heap).map(|it| it.empty.bytes).sum();
        let count = empty.iter().map(|it| it.empty.blocks).sum();
        let is_full = matches!(error, MemoryError::Driver { .. });
        let Need { bytes: needed, count: needed_count, within_budget, .. } = need;
        let needed = (needed, needed_count);
        count > 0 && self.context.budgets.would_allow(heap, needed, (bytes, count), within_budget, is_full)
    }
}
