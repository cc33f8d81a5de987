//! Driver calls between frames: blocks are created ahead of need, and freed later than they become empty.

use std::time::Duration;

use super::recorded_call::RecordedCall;
use super::{Allocator, AllocatorInner};
use crate::blocks::{BlockLack, MaintenanceWish, MemoryBlockVector};
use crate::device::TimeBudget;

/// The driver calls that one [`Allocator::maintain`] may make. By default one of each kind, if both are short.
///
/// ```
/// # use sublet::*; use std::time::Duration;
/// let info = MaintainInfo { max_frees: 4, max_time: Duration::from_millis(6), ..MaintainInfo::default() };
/// assert_eq!(info.max_allocations, 1);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MaintainInfo {
    /// Blocks to create at most, by one call of `vkAllocateMemory` each. Refused calls count.
    pub max_allocations: u32,
    /// Blocks to free at most, by one call of `vkFreeMemory` each.
    pub max_frees: u32,
    /// The time that all calls may take together. A model after an H200 gives the time of each call by its kind of memory
    /// and its size. The first call is made even if it takes longer.
    pub max_time: Duration,
}

impl Default for MaintainInfo {
    /// One call of each kind, and 1.5 ms.
    fn default() -> Self {
        Self { max_allocations: 1, max_frees: 1, max_time: Duration::from_micros(1_500) }
    }
}

/// The driver calls that [`Allocator::maintain`] made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Maintained {
    /// Blocks that were created.
    pub blocks_created: u32,
    /// Their bytes.
    pub bytes_created: u64,
    /// Empty blocks that were freed.
    pub blocks_freed: u32,
    /// Their bytes.
    pub bytes_freed: u64,
}

impl Allocator {
    /// Creates the next blocks ahead of need, and frees blocks that have been empty for a long time. Call it once per
    /// frame, after the last submission, when the device has work and waiting for the driver costs least.
    ///
    /// - A memory type or pool that grew in at least two of the last 32 calls gets another block before its free bytes
    ///   last for less than three calls. The block has the usual size, or that of the expected growth if it is larger.
    ///   Nothing is created above a heap's budget.
    /// - After the first call, frees do not return blocks to the driver. Empty blocks wait until 32 calls found them
    ///   unused. Then each call frees one, down to the number that would stay without maintenance. Statistics and
    ///   budgets count such blocks. A request that would otherwise fail, a heap over its budget, a defragmentation, and
    ///   [`trim`](Self::trim) free them at once.
    /// - If more bytes of blocks become empty between two calls than all blocks had at the first of them, the program
    ///   does not call regularly. Until the next call, blocks are then freed as without maintenance.
    ///
    /// By default, an allocation and a free share a call only if both are modelled to take at most 1.5 ms together; see
    /// [`MaintainInfo::max_time`]. While usage is steady, no call reaches the driver. After a driver has refused memory,
    /// only further growth causes another attempt. Without `maintain`, allocations create blocks, and frees free them.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # let requirements = vk::MemoryRequirements { size: 5 << 20, alignment: 256, memory_type_bits: 1 };
    /// # let mut held = Vec::new();
    /// for frame in 0..100 {
    ///     let calls = gpu.calls("vkAllocateMemory");
    ///     held.push(allocator.allocate_memory(&requirements, &AllocationCreateInfo::default())?);
    ///     // ... record and submit ...
    ///     if frame > 2 {
    ///         assert_eq!(gpu.calls("vkAllocateMemory"), calls, "no driver call within the frame");
    ///     }
    ///     allocator.maintain(&MaintainInfo::default());
    /// }
    /// # for allocation in held {
    /// #     // SAFETY: nothing was ever bound to it.
    /// #     unsafe { allocator.free_memory(allocation) }?;
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Complexity
    /// A short lock for each memory type and pool that has or had memory; O(blocks) for those that grow or have surplus
    /// blocks.
    pub fn maintain(&self, info: &MaintainInfo) -> Maintained {
        let span = tracing::debug_span!(target: "sublet::block", "maintain");
        let _entered = span.enter();
        let maintained = self.inner.maintain(info);
        let microseconds = u32::try_from(info.max_time.as_micros()).unwrap_or(u32::MAX);
        self.record(RecordedCall::Maintain(info.max_allocations, info.max_frees, microseconds));
        maintained
    }
}

impl AllocatorInner {
    fn maintain(&self, info: &MaintainInfo) -> Maintained {
        let mut maintained = Maintained::default();
        // No heap allocation while usage is steady.
        let mut wishes: Vec<(&MemoryBlockVector, MaintenanceWish)> =
            self.vectors().filter_map(|vector| Some((vector, vector.observe()?))).collect();
        let mut time = TimeBudget::new(info.max_time);
        // Missing blocks come first, because the next frame would have to create them. Blocks to free can wait.
        let mut attempts = 0;
        while attempts < info.max_allocations {
            let Some((vector, wish)) = neediest(&mut wishes) else { break };
            let grown = vector.grow_ahead(&self.context, &mut time);
            wish.lack = grown.and_then(|(_, lack)| lack);
            // A refusal takes the driver's time, too.
            attempts += u32::from(grown.is_some());
            if let Some((bytes @ 1.., _)) = grown {
                maintained.blocks_created += 1;
                maintained.bytes_created += bytes;
            }
        }
        while maintained.blocks_freed < info.max_frees {
            // The largest, so that memory returns soon.
            let idle = wishes.iter_mut().filter(|(_, wish)| wish.idle.is_some()).max_by_key(|it| it.1.idle);
            let Some((vector, wish)) = idle else { break };
            let freed = vector.free_idle_block(&self.context, &mut time);
            wish.idle = freed.and_then(|(_, next)| next);
            if let Some((bytes, _)) = freed {
                maintained.blocks_freed += 1;
                maintained.bytes_freed += bytes;
            }
        }
        maintained
    }
}

/// The vector whose free bytes last for the shortest time.
fn neediest<V>(wishes: &mut [(V, MaintenanceWish)]) -> Option<&mut (V, MaintenanceWish)> {
    let mut worst: Option<(usize, BlockLack)> = None;
    for (at, (_, wish)) in wishes.iter().enumerate() {
        if let Some(lack) = wish.lack.filter(|lack| worst.is_none_or(|(_, it)| lack.is_worse_than(it))) {
            worst = Some((at, lack));
        }
    }
    wishes.get_mut(worst?.0)
}
