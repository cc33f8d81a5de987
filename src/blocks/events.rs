//! Events of device memory. A subscriber may call the allocator, and even allocate. So events are collected under
//! locks, and emitted after the locks are released.

use ash::vk::{self, Handle};

use super::budget::{BudgetStep, HeapLevel};
use super::device_block::DeviceContext;
use crate::base::watch::Watch;
use crate::error::MemoryError;
use sublet_engines::cast::narrow;

/// One attempt to allocate a `VkDeviceMemory`, and its outcome.
#[derive(Debug)]
struct AllocationAttempt {
    memory_type: u32,
    size: u64,
    /// The memory is for one allocation, not a block that many share.
    dedicated: bool,
    outcome: Result<AllocatedMemory, MemoryError>,
}

/// Memory that the driver allocated.
#[derive(Debug)]
struct AllocatedMemory {
    memory: vk::DeviceMemory,
    /// Duration of the call; 0 if there was no subscriber when it began.
    nanoseconds: u64,
    /// The number of live `VkDeviceMemory` objects.
    blocks: u32,
    /// Bytes of the live objects in this heap.
    heap_bytes: u64,
}

/// Events that are collected but not emitted yet.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct PendingEvents(Vec<AllocationAttempt>);

/// Returns true if a subscriber listens to block events.
pub(super) fn is_heard() -> bool {
    tracing::enabled!(target: "sublet::block", tracing::Level::DEBUG)
}

impl PendingEvents {
    /// Records an attempt, including one that failed before the driver was called.
    #[cold]
    pub(super) fn asked(
        &mut self,
        context: &DeviceContext,
        (memory_type, size, dedicated): (u32, u64, bool),
        outcome: Result<(vk::DeviceMemory, &Watch), MemoryError>,
    ) {
        if !is_heard() {
            return;
        }
        let outcome = outcome.map(|(memory, watch)| AllocatedMemory {
            memory,
            nanoseconds: watch.nanoseconds().unwrap_or(0),
            blocks: context.budgets.live_memory().0,
            heap_bytes: context.budgets.memory_bytes(context.heap_of(memory_type)),
        });
        self.0.push(AllocationAttempt { memory_type, size, dedicated, outcome });
    }

    /// Emits the events. `pool` is the pool's name.
    #[cold]
    pub(super) fn emit(
        self,
        context: &DeviceContext,
        memory_type: u32,
        pool: impl FnOnce() -> Option<Box<str>>,
    ) {
        if !self.0.is_empty() {
            let pool = pool();
            let mut attempts = self.0.iter().peekable();
            while let Some(attempt) = attempts.next() {
                attempt.emit(context, pool.as_deref(), attempts.peek().map(|next| next.size));
            }
        }
        emit_levels(context, context.heap_of(memory_type));
    }
}

impl AllocationAttempt {
    fn emit(&self, context: &DeviceContext, pool: Option<&str>, next_size: Option<u64>) {
        let Self { memory_type, size, dedicated, ref outcome } = *self;
        let heap = context.heap_of(memory_type);
        match *outcome {
            Ok(AllocatedMemory { memory, nanoseconds, blocks, heap_bytes }) => tracing::debug!(
                name: "block_created",
                target: "sublet::block",
                memory = memory.as_raw(), size, memory_type, heap, dedicated, pool, blocks, heap_bytes,
                nanoseconds,
                "device memory allocated"
            ),
            Err(ref error) => {
                let (reason, result) = match error {
                    MemoryError::HeapTooSmall { .. } => ("heap_too_small", None),
                    MemoryError::HeapLimit { .. } => ("heap_limit", None),
                    MemoryError::OverBudget { .. } => ("over_budget", None),
                    MemoryError::TooManyAllocations { .. } => ("too_many_allocations", None),
                    MemoryError::Driver { error, .. } => ("driver", Some(error.result)),
                };
                tracing::debug!(
                    name: "block_refused",
                    target: "sublet::block",
                    size, memory_type, heap, dedicated, pool, reason,
                    result = result.map(tracing::field::debug),
                    error = %error,
                    next_size,
                    "device memory refused"
                );
            }
        }
    }
}

/// Warns that the driver is about to be asked for more than `limit`, its `maxMemoryAllocationSize`.
#[cold]
pub(super) fn emit_above_limit(context: &DeviceContext, memory_type: u32, size: u64, limit: u64) {
    tracing::warn!(
        name: "allocation_above_limit", target: "sublet::block",
        size, limit, memory_type, heap = context.heap_of(memory_type),
        "one allocation is larger than maxMemoryAllocationSize, which drivers may refuse"
    );
}

/// Emits that the driver freed `size` bytes. `pool` is the pool's name.
#[cold]
pub(super) fn emit_destroyed(
    context: &DeviceContext,
    memory: vk::DeviceMemory,
    (memory_type, size, dedicated): (u32, u64, bool),
    watch: &Watch,
    pool: impl FnOnce() -> Option<Box<str>>,
) {
    let heap = context.heap_of(memory_type);
    if let Some(nanoseconds) = watch.nanoseconds() {
        tracing::debug!(
            name: "block_destroyed",
            target: "sublet::block",
            memory = memory.as_raw(), size, memory_type, heap, dedicated,
            pool = pool().as_deref(),
            blocks = context.budgets.live_memory().0,
            heap_bytes = context.budgets.memory_bytes(heap),
            nanoseconds,
            "device memory freed"
        );
    }
    emit_levels(context, heap);
}

/// Returns true if a subscriber listens to budget events.
#[inline]
fn are_levels_heard() -> bool {
    tracing::enabled!(target: "sublet::budget", tracing::Level::WARN)
}

/// Emits an event if a heap's usage passed a share of its budget since the last call. Emits another one if the number
/// of blocks came near the device's limit.
#[cold]
fn emit_levels(context: &DeviceContext, heap: u32) {
    // Without a subscriber the steps stay unreported, so that a later subscriber learns of them.
    if are_levels_heard() {
        emit_heard_levels(context, heap);
    }
}

/// [`emit_levels`], if there is a subscriber.
#[cold]
fn emit_heard_levels(context: &DeviceContext, heap: u32) {
    if let Some((before, now, HeapLevel { usage, budget })) = context.budgets.step_taken(heap) {
        let share = now.max(before).percent();
        if now < before {
            tracing::info!(
                name: "budget_eased", target: "sublet::budget", heap, share = now.above().percent(), usage, budget,
                "the heap's usage is below a share of its budget again"
            );
        } else if now == BudgetStep::Passed {
            tracing::warn!(
                name: "budget_passed", target: "sublet::budget", heap, share, usage, budget,
                "more of the heap is in use than its budget"
            );
        } else {
            tracing::info!(
                name: "budget_near", target: "sublet::budget", heap, share, usage, budget,
                "the heap's usage comes near its budget"
            );
        }
    }
    if let Some((live, limit)) = context.budgets.count_came_near() {
        tracing::warn!(
            name: "allocation_count_near", target: "sublet::budget", live, limit,
            "three quarters of the memory allocations that the device allows are live: preferences for dedicated memory do not count now"
        );
    }
}

/// [`emit_levels`] for all heaps.
#[inline]
pub(crate) fn emit_all_levels(context: &DeviceContext) {
    // One check for all heaps: a check for each would cost more than the rest of a call that may run every frame.
    if are_levels_heard() {
        for heap in 0..narrow(context.device.memory_heaps().len()) {
            emit_heard_levels(context, heap);
        }
    }
}
