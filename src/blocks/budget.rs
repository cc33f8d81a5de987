//! Memory used and allowed in each heap.
//!
//! The counters change only with driver allocations and frees, which are rare and slow. An allocation from an existing
//! block does not touch them. They need no lock.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use ash::vk;

use crate::device::LiveDevice;
use crate::error::{MapError, MemoryError};
use sublet_engines::cast::index;

/// The driver's figures are queried again after this many allocations and frees.
const CALLS_BETWEEN_QUERIES: u32 = 30;

/// Usage and limits of one heap, in bytes.
#[derive(Debug)]
struct HeapUsage {
    /// The heap's size, or the program's limit where that is lower.
    size: u64,
    /// True if `size` is a limit that the program set. It is enforced before the driver is called.
    limited: bool,
    /// Bytes of the live `VkDeviceMemory` objects, including those being allocated now.
    memory_bytes: AtomicU64,
    /// The bytes that the driver has allocated so far, and was asked to free so far. Both only grow, and wrap.
    given: AtomicU64,
    taken_back: AtomicU64,
    /// The driver's figures at the last query, and the bytes of this allocator that they certainly include.
    fetched_usage: AtomicU64,
    fetched_budget: AtomicU64,
    bytes_at_fetch: AtomicU64,
    /// The [`BudgetStep`] that was reported last.
    reported: AtomicU8,
}

/// Usage of all heaps.
#[derive(Debug)]
pub(crate) struct Budgets {
    heaps: Vec<HeapUsage>,
    from_driver: bool,
    live_memory: AtomicU32,
    max_live_memory: u32,
    /// The largest allowed size of one `VkDeviceMemory`.
    max_memory_size: u64,
    /// True if more than `max_live_memory` objects may be requested.
    exceeds_max: bool,
    calls_since_query: AtomicU32,
    /// True if the event for nearing `max_live_memory` was emitted.
    is_near_told: AtomicBool,
    /// Bytes that are mapped or being mapped, and their limit.
    mapped: AtomicU64,
    max_mapped: u64,
}

/// Usage and budget of a heap, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HeapLevel {
    pub(crate) usage: u64,
    pub(crate) budget: u64,
}

/// The share of a heap's budget that is in use. Passing one of these shares emits an event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum BudgetStep {
    Below,
    Eighty,
    Ninety,
    Passed,
}

impl BudgetStep {
    const ALL: [Self; 4] = [Self::Below, Self::Eighty, Self::Ninety, Self::Passed];

    fn of(level: HeapLevel) -> Self {
        let reached = |percent: u128| u128::from(level.usage) * 100 >= u128::from(level.budget) * percent;
        match () {
            // A heap with neither budget nor usage is not full.
            () if level.usage > level.budget => Self::Passed,
            () if level.usage == 0 || !reached(80) => Self::Below,
            () if !reached(90) => Self::Eighty,
            () => Self::Ninety,
        }
    }

    /// The percentage at which this step begins.
    pub(super) fn percent(self) -> u32 {
        match self {
            Self::Below => 0,
            Self::Eighty => 80,
            Self::Ninety => 90,
            Self::Passed => 100,
        }
    }

    /// The next higher step.
    pub(super) fn above(self) -> Self {
        match self {
            Self::Below => Self::Eighty,
            Self::Eighty => Self::Ninety,
            Self::Ninety | Self::Passed => Self::Passed,
        }
    }

    fn number(self) -> u8 {
        match self {
            Self::Below => 0,
            Self::Eighty => 1,
            Self::Ninety => 2,
            Self::Passed => 3,
        }
    }
}

/// A device that allows at least this many allocations is not expected to run out of them.
const PLENTY_OF_ALLOCATIONS: u32 = u32::MAX / 4;

/// The limit of mapped bytes that a program does not set. With 4-byte addresses, a process has 2 to 4 GiB of them.
const DEFAULT_MAX_MAPPED: u64 = if cfg!(target_pointer_width = "32") { 1 << 30 } else { u64::MAX };

/// 80 % of a number of bytes, rounded down. Multiplying first would overflow above an eighth of `u64::MAX`.
const fn eight_tenths(bytes: u64) -> u64 {
    bytes / 10 * 8 + bytes % 10 * 8 / 10
}

impl HeapLevel {
    /// Bytes that may still be allocated.
    pub(crate) fn free(self) -> u64 {
        self.budget.saturating_sub(self.usage)
    }
}

impl Budgets {
    /// `limits` has bytes for each heap, `vk::WHOLE_SIZE` for no limit. It may be shorter than the list of heaps.
    pub(crate) fn new(device: &LiveDevice, limits: &[u64]) -> Self {
        let heaps = device.memory_heaps().iter().enumerate().map(|(at, heap)| {
            let limit = limits.get(at).copied().unwrap_or(vk::WHOLE_SIZE);
            HeapUsage {
                size: heap.size.min(limit),
                limited: limit != vk::WHOLE_SIZE,
                memory_bytes: AtomicU64::new(0),
                given: AtomicU64::new(0),
                taken_back: AtomicU64::new(0),
                fetched_usage: AtomicU64::new(0),
                fetched_budget: AtomicU64::new(0),
                bytes_at_fetch: AtomicU64::new(0),
                reported: AtomicU8::new(0),
            }
        });
        let budgets = Self {
            heaps: heaps.collect(),
            from_driver: device.settings.memory_budget,
            live_memory: AtomicU32::new(0),
            max_live_memory: device.properties.limits.max_memory_allocation_count,
            max_memory_size: device.max_memory_size,
            exceeds_max: false,
            calls_since_query: AtomicU32::new(0),
            is_near_told: AtomicBool::new(false),
            mapped: AtomicU64::new(0),
            max_mapped: DEFAULT_MAX_MAPPED,
        };
        budgets.refresh(device);
        budgets
    }

    /// The heap's size in bytes, or the program's limit where that is lower.
    pub(crate) fn heap_size(&self, heap: u32) -> u64 {
        self.heaps[index(heap)].size
    }

    /// Allows more `VkDeviceMemory` objects than the driver's limit.
    pub(crate) fn exceed_max_live_memory(&mut self) {
        self.exceeds_max = true;
    }

    /// Limits the mapped bytes; 0 is the default limit.
    pub(crate) fn limit_mapped(&mut self, bytes: u64) {
        self.max_mapped = if bytes == 0 { DEFAULT_MAX_MAPPED } else { bytes };
    }

    /// Bytes that are mapped or being mapped.
    pub(crate) fn mapped(&self) -> u64 {
        self.mapped.load(Ordering::Relaxed)
    }

    /// Counts `size` bytes before they are mapped, if the limit allows it.
    pub(super) fn reserve_mapping(&self, size: u64) -> Result<(), MapError> {
        let limit = self.max_mapped;
        let entered = self.mapped.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |mapped| {
            mapped.checked_add(size).filter(|&sum| sum <= limit)
        });
        entered.map(drop).map_err(|mapped| MapError::AddressSpace { size, mapped, limit })
    }

    /// Ends [`Self::reserve_mapping`]: the bytes are no longer mapped.
    pub(super) fn release_mapping(&self, size: u64) {
        self.mapped.fetch_sub(size, Ordering::Relaxed);
    }

    /// Live `VkDeviceMemory` objects of this allocator and their limit on this device.
    pub(crate) fn live_memory(&self) -> (u32, u32) {
        (self.live_memory.load(Ordering::Relaxed), self.max_live_memory)
    }

    /// Returns true if the device allows few allocations and three quarters of them are live. The last quarter is
    /// reserved for requests that have no alternative.
    pub(crate) fn is_near_max_live_memory(&self) -> bool {
        let (live, most) = self.live_memory();
        // Multiplying before dividing avoids reserving too much if the limit is no multiple of four. Values below 2^30
        // cannot overflow.
        most < PLENTY_OF_ALLOCATIONS && live > most * 3 / 4
    }

    /// [`Self::live_memory`], if it came near its limit since the last call.
    pub(super) fn count_came_near(&self) -> Option<(u32, u32)> {
        let is_near = self.is_near_max_live_memory();
        let was_near = self.is_near_told.swap(is_near, Ordering::Relaxed);
        (is_near && !was_near).then(|| self.live_memory())
    }

    /// Bytes of the live `VkDeviceMemory` objects in a heap.
    pub(super) fn memory_bytes(&self, heap: u32) -> u64 {
        self.heaps[index(heap)].memory_bytes.load(Ordering::Relaxed)
    }

    /// The step at the last call, the step now, and the level. Returns `None` if the step did not change.
    pub(super) fn step_taken(&self, heap: u32) -> Option<(BudgetStep, BudgetStep, HeapLevel)> {
        let reported = &self.heaps[index(heap)].reported;
        loop {
            // Loaded before the level: if another thread reports a step in between, the exchange fails, and the level
            // is read again.
            let before = reported.load(Ordering::Acquire);
            let level = self.level(heap);
            let now = BudgetStep::of(level);
            if before == now.number() {
                return None;
            }
            // If two threads look at once, only one reports.
            let entered =
                reported.compare_exchange(before, now.number(), Ordering::AcqRel, Ordering::Relaxed);
            if entered.is_ok() {
                return BudgetStep::ALL.get(usize::from(before)).map(|&before| (before, now, level));
            }
        }
    }

    /// Queries the driver's figures. Does nothing without VK_EXT_memory_budget.
    #[inline]
    pub(crate) fn refresh(&self, device: &LiveDevice) {
        if self.from_driver {
            self.fetch(device);
        }
    }

    #[inline(never)]
    fn fetch(&self, device: &LiveDevice) {
        let mut given = [0; vk::MAX_MEMORY_HEAPS];
        for (given, heap) in given.iter_mut().zip(&self.heaps) {
            *given = heap.given.load(Ordering::Acquire);
        }
        let Some(fetched) = device.budgets() else { return };
        self.calls_since_query.store(0, Ordering::Relaxed);
        for (at, heap) in self.heaps.iter().enumerate() {
            // The driver's figures include all memory allocated before the query and not freed until now. Memory that
            // is allocated or freed during the query may be counted twice until the next one, but is never missed.
            let taken_back = heap.taken_back.load(Ordering::Acquire);
            let surely_live = given[at].wrapping_sub(taken_back);
            // Negative if memory was allocated and freed again during the query.
            let surely_live = if surely_live > u64::MAX / 2 { 0 } else { surely_live };
            heap.fetched_usage.store(fetched.heap_usage[at], Ordering::Relaxed);
            heap.fetched_budget.store(fetched.heap_budget[at], Ordering::Relaxed);
            heap.bytes_at_fetch.store(surely_live, Ordering::Relaxed);
        }
    }

    /// Calls [`Self::refresh`] if enough allocations and frees happened since the last query.
    pub(crate) fn refresh_if_stale(&self, device: &LiveDevice) {
        if self.calls_since_query.load(Ordering::Relaxed) >= CALLS_BETWEEN_QUERIES {
            self.refresh(device);
        }
    }

    /// Usage and budget now: the driver's last figures, corrected by what this allocator allocated and freed since.
    ///
    /// Without the driver's figures, these are the bytes of this allocator and 80 % of the heap.
    pub(crate) fn level(&self, heap: u32) -> HeapLevel {
        let heap = &self.heaps[index(heap)];
        self.level_with(heap, heap.memory_bytes.load(Ordering::Relaxed))
    }

    /// The level of a heap if its live `VkDeviceMemory` objects have `bytes`.
    fn level_with(&self, heap: &HeapUsage, bytes: u64) -> HeapLevel {
        let guess = eight_tenths(heap.size);
        if !self.from_driver {
            return HeapLevel { usage: bytes, budget: guess };
        }
        let fetched_usage = heap.fetched_usage.load(Ordering::Relaxed);
        let fetched_budget = heap.fetched_budget.load(Ordering::Relaxed);
        let at_fetch = heap.bytes_at_fetch.load(Ordering::Relaxed);
        let usage = fetched_usage.saturating_add(bytes).saturating_sub(at_fetch);
        HeapLevel {
            // Some drivers report zero for a heap that is in use.
            usage: if fetched_usage == 0 { usage.max(bytes) } else { usage },
            budget: if fetched_budget == 0 { guess } else { fetched_budget.min(heap.size) },
        }
    }

    /// Checks that one `VkDeviceMemory` of `size` bytes fits the heap at all.
    fn check_size(&self, heap: u32, size: u64) -> Result<(), MemoryError> {
        let heap_size = self.heap_size(heap);
        if size > heap_size { Err(MemoryError::HeapTooSmall { size, heap, heap_size }) } else { Ok(()) }
    }

    /// Returns `maxMemoryAllocationSize` if `size` exceeds it. Blocks never do. A request may, and some drivers grant
    /// it, so it is still passed on.
    pub(crate) fn exceeded_by(&self, size: u64) -> Option<u64> {
        (size > self.max_memory_size).then_some(self.max_memory_size)
    }

    /// The largest size of a block in the heap.
    pub(crate) fn max_block_size(&self, heap: u32) -> u64 {
        self.heap_size(heap).min(self.max_memory_size)
    }

    /// Reserves `size` bytes before the driver is called.
    ///
    /// # Errors
    /// Reserves nothing if the heap, the program's limit on it, its budget (if `within_budget`) or the number of live
    /// objects does not allow it.
    pub(crate) fn reserve(
        &self,
        device: &LiveDevice,
        heap_index: u32,
        size: u64,
        within_budget: bool,
    ) -> Result<(), MemoryError> {
        let heap = &self.heaps[index(heap_index)];
        self.check_size(heap_index, size)?;
        if within_budget {
            self.refresh_if_stale(device);
        }
        let below_limit = |sum: u64| !heap.limited || sum <= heap.size;
        // Checked and reserved in one step: if two threads compete for the last bytes, only one gets them.
        let entered = heap.memory_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |bytes| {
            let sum = bytes.checked_add(size).filter(|&sum| below_limit(sum))?;
            let HeapLevel { usage, budget } = self.level_with(heap, bytes);
            let fits = !within_budget || usage.saturating_add(size) <= budget;
            fits.then_some(sum)
        });
        if let Err(used) = entered {
            // Reported before a heap's limit, as in VMA: the caller can meet a heap limit with a smaller request.
            if !within_budget && self.live_memory.load(Ordering::Relaxed) >= self.max_live_memory {
                return Err(MemoryError::TooManyAllocations { limit: self.max_live_memory });
            }
            if !used.checked_add(size).is_some_and(below_limit) {
                return Err(MemoryError::HeapLimit { size, heap: heap_index, used, limit: heap.size });
            }
            let HeapLevel { usage, budget } = self.level_with(heap, used);
            return Err(MemoryError::OverBudget { size, heap: heap_index, usage, budget });
        }
        // An increment followed by a rollback would make other threads see one object too many.
        let counted = self.live_memory.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
            let most = if self.exceeds_max { u32::MAX } else { self.max_live_memory };
            (count < most).then(|| count + 1)
        });
        if counted.is_err() {
            heap.memory_bytes.fetch_sub(size, Ordering::Relaxed);
            return Err(MemoryError::TooManyAllocations { limit: self.max_live_memory });
        }
        self.calls_since_query.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Returns what [`Self::reserve`] would return now for `count` objects of `size` bytes in total. Reserves nothing.
    pub(crate) fn check(
        &self,
        heap_index: u32,
        size: u64,
        count: u32,
        within_budget: bool,
    ) -> Result<(), MemoryError> {
        let heap = &self.heaps[index(heap_index)];
        self.check_size(heap_index, size)?;
        let used = heap.memory_bytes.load(Ordering::Relaxed);
        if heap.limited && used.saturating_add(size) > heap.size {
            return Err(MemoryError::HeapLimit { size, heap: heap_index, used, limit: heap.size });
        }
        let HeapLevel { usage, budget } = self.level_with(heap, used);
        if within_budget && usage.saturating_add(size) > budget {
            return Err(MemoryError::OverBudget { size, heap: heap_index, usage, budget });
        }
        let (live, limit) = self.live_memory();
        if live.saturating_add(count) > limit && !self.exceeds_max {
            Err(MemoryError::TooManyAllocations { limit })
        } else {
            Ok(())
        }
    }

    /// Returns true if the known limits would allow `needed` after `returned` was freed. Both are bytes and
    /// `VkDeviceMemory` objects. If the driver refused more memory (`is_full`), the size of the heap is a limit too.
    pub(crate) fn would_allow(
        &self,
        heap_index: u32,
        (needed, needed_count): (u64, u32),
        (returned, returned_count): (u64, u64),
        within_budget: bool,
        is_full: bool,
    ) -> bool {
        let heap = &self.heaps[index(heap_index)];
        let bytes = heap.memory_bytes.load(Ordering::Relaxed).saturating_sub(returned);
        let fits_heap = !(heap.limited || is_full) || bytes.saturating_add(needed) <= heap.size;
        let HeapLevel { usage, budget } = self.level_with(heap, bytes);
        let fits_budget = !within_budget || usage.saturating_add(needed) <= budget;
        let (live, most) = self.live_memory();
        let count = u64::from(live).saturating_sub(returned_count) + u64::from(needed_count);
        fits_heap && fits_budget && (self.exceeds_max || count <= u64::from(most))
    }

    /// Counts `size` reserved bytes that the driver allocated.
    pub(crate) fn count_given(&self, heap: u32, size: u64) {
        self.heaps[index(heap)].given.fetch_add(size, Ordering::Release);
    }

    /// Counts `size` bytes that the driver is about to free.
    pub(crate) fn count_taken_back(&self, heap: u32, size: u64) {
        self.heaps[index(heap)].taken_back.fetch_add(size, Ordering::Release);
    }

    /// Ends the reservation of `size` bytes: the driver freed them, or did not allocate them.
    pub(crate) fn release(&self, heap: u32, size: u64) {
        let heap = &self.heaps[index(heap)];
        heap.memory_bytes.fetch_sub(size, Ordering::Relaxed);
        self.live_memory.fetch_sub(1, Ordering::Relaxed);
        self.calls_since_query.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{BudgetStep, HeapLevel, eight_tenths};

    #[test]
    fn steps_are_told_by_the_share_that_is_in_use() {
        let of = |usage, budget| BudgetStep::of(HeapLevel { usage, budget }).percent();
        let shares: Vec<_> = [0, 79, 80, 89, 90, 100, 101].map(|usage| of(usage, 100)).into();
        assert_eq!(shares, [0, 0, 80, 80, 90, 90, 100]);
        assert_eq!((of(0, 0), of(1, 0), of(u64::MAX, u64::MAX)), (0, 100, 90));
        for step in BudgetStep::ALL {
            assert_eq!(BudgetStep::ALL[usize::from(step.number())], step);
            assert!(step.above() > step || step == BudgetStep::Passed);
        }
    }

    #[test]
    fn eight_tenths_are_rounded_down_once() {
        for bytes in (0..100).chain([1 << 30, (1 << 30) + 7, u64::MAX / 8]) {
            assert_eq!(eight_tenths(bytes), bytes * 8 / 10);
        }
        assert_eq!(eight_tenths(u64::MAX), 14_757_395_258_967_641_292);
    }
}
