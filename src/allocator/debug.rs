//! Debugging aids: checked margins, fill patterns, and unusual placements.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::collections::BTreeMap;
use std::ptr::NonNull;

use ash::vk;

use super::Allocator;
use crate::allocation::{Allocation, allocation_flags};
use crate::base::sync::Mutex;
use crate::blocks::{AllocationKey, MemoryBlockVector};
use crate::error::{CorruptionError, DamagedAllocation, MapError};
use crate::pool::Pool;
use sublet_engines::cast::host_size;

/// The repeated fill pattern of a margin.
const MAGIC: [u8; 4] = 0x7F84_E666_u32.to_le_bytes();
/// The fill byte of newly allocated memory.
const CREATED: u8 = 0xDC;
/// The fill byte of freed memory.
const DESTROYED: u8 = 0xEF;

/// Debugging aids for the program, the driver or the allocator. All are off by default, and then cost nothing.
///
/// ```
/// use sublet::{DebugSettings, CorruptionError};
/// # use sublet::*; use ash::vk;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// let info = AllocatorCreateInfo {
///     debug: DebugSettings { margin: 16, detect_corruption: true, ..Default::default() },
///     ..AllocatorCreateInfo::for_gpu(&gpu)
/// };
/// // SAFETY: the handles are live and outlive the allocator.
/// let allocator = unsafe { Allocator::new(&info) }?;
/// # let requirements = vk::MemoryRequirements { size: 100, alignment: 4, memory_type_bits: !0 };
/// let upload = AllocationCreateInfo {
///     flags: AllocationCreateFlags::MAPPED,
///     name: Some("upload"),
///     ..AllocationCreateInfo::new(MemoryUsage::CpuOnly)
/// };
/// let allocation = allocator.allocate_memory(&requirements, &upload)?;
/// let start = allocation.mapped_pointer().unwrap().cast::<u8>();
/// allocator.check_corruption(!0)?;
/// // SAFETY: the byte is in the margin, which is mapped as the allocation is. Wrong all the same.
/// unsafe { start.add(101).write(0) };
/// let Err(CorruptionError::Damaged(damaged)) = allocator.check_corruption(!0) else { panic!() };
/// assert_eq!((damaged[0].name.as_deref(), damaged[0].bytes_past_end), (Some("upload"), 1));
/// # unsafe { allocator.free_memory(allocation) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DebugSettings {
    /// Bytes that stay free after every allocation in a block. Statistics count them as part of the allocation.
    /// Dedicated memory and virtual blocks have no margins.
    pub margin: u64,
    /// Fills margins in host-visible and host-coherent memory with a pattern. The pattern is checked when the
    /// allocation is freed, and by [`check_corruption`](Allocator::check_corruption). Needs a [`Self::margin`].
    pub detect_corruption: bool,
    /// Fills mappable memory with `0xDC` when it is allocated, and with `0xEF` when it is freed. Memory with its own
    /// `pNext` chain is left alone, because it may be imported.
    pub fill: bool,
    /// Makes every allocation dedicated, except with `NEVER_ALLOCATE` or `UPPER_ADDRESS`, or in a pool with blocks of a
    /// fixed size.
    #[doc(alias = "ALLOCATOR_FLAG_ALWAYS_COMMITTED")]
    pub always_dedicated: bool,
    /// A lower bound for the device's `bufferImageGranularity`; rounded up to a power of two.
    pub min_buffer_image_granularity: u64,
    /// Allows more driver allocations than `maxMemoryAllocationCount` guarantees.
    pub exceed_max_allocation_count: bool,
}

impl DebugSettings {
    /// Returns true if no allocation may use the fast path.
    pub(super) fn is_special(&self) -> bool {
        self.margin != 0 || self.fill || self.always_dedicated
    }
}

/// An allocation whose margin is filled with the pattern.
#[derive(Clone, Copy, Debug)]
struct MarginGuard {
    vector: u32,
    live: AllocationKey,
    memory: vk::DeviceMemory,
    memory_type: u32,
    offset: u64,
    size: u64,
}

/// Vector, its generation, shard, and key.
type GuardKey = (u32, u32, u8, u64);

#[derive(Debug, Default)]
struct Guards {
    live: BTreeMap<GuardKey, MarginGuard>,
    /// Damage found when an allocation was freed: the vector, its generation, and the report.
    freed: Vec<(u32, u32, DamagedAllocation)>,
}

/// The state of the debugging aids.
pub(super) struct DebugState {
    pub(super) settings: DebugSettings,
    guards: Mutex<Guards>,
}

impl DebugState {
    pub(super) fn new(settings: DebugSettings) -> Self {
        Self { settings, guards: Mutex::new(Guards::default()) }
    }

    /// Drops the guards of a destroyed vector. Damage that was already found is still reported.
    pub(super) fn forget(&self, vector: u32, generation: u32) {
        if self.settings.detect_corruption {
            let mut guards = self.guards.lock();
            guards.live.retain(|&(of, in_use, ..), _| (of, in_use) != (vector, generation));
        }
    }
}

fn guard_key(vector: u32, live: AllocationKey) -> GuardKey {
    (vector, live.generation, live.shard, live.key.0.get())
}

/// The pattern of a margin.
fn pattern() -> impl Iterator<Item = u8> {
    MAGIC.into_iter().cycle()
}

impl Allocator {
    /// Checks the margins of all allocations in memory types of `memory_type_bits`, in pools and outside. Damage means
    /// that something wrote beyond the end of an allocation. Needs [`DebugSettings::detect_corruption`].
    ///
    /// # Errors
    /// [`CorruptionError::Damaged`] names the damaged allocations. Each call reports live ones again. Damage found when
    /// an allocation was freed is reported once. [`CorruptionError::NotDetected`] if the setting is off or no memory
    /// type is host-visible and host-coherent.
    ///
    /// # Complexity
    /// O(allocations), under a lock that blocks allocating and freeing with margins.
    ///
    /// ```
    /// # use sublet::*;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// let debug = DebugSettings { margin: 64, detect_corruption: true, ..Default::default() };
    /// let allocator = unsafe { Allocator::new(&AllocatorCreateInfo { debug, ..AllocatorCreateInfo::for_gpu(&gpu) }) }?;
    /// assert_eq!(allocator.check_corruption(!0), Ok(()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_corruption(&self, memory_type_bits: u32) -> Result<(), CorruptionError> {
        let of_types = |memory_type: u32| memory_type_bits.checked_shr(memory_type).unwrap_or(0) & 1 != 0;
        let types = 0..self.inner.context.device.memory.memory_type_count;
        if !types.into_iter().any(|memory_type| of_types(memory_type) && self.has_guards(memory_type)) {
            return Err(CorruptionError::NotDetected);
        }
        self.check_margins(
            |guard| of_types(guard.memory_type),
            |(_, _, damaged)| of_types(damaged.memory_type_index),
        )
    }

    /// [`Self::check_corruption`] for one pool.
    ///
    /// # Errors
    /// See [`Self::check_corruption`]; [`CorruptionError::Foreign`] if the pool belongs to another allocator.
    pub fn check_pool_corruption(&self, pool: &Pool) -> Result<(), CorruptionError> {
        let facts = self.pool_facts(pool).map_err(CorruptionError::Foreign)?;
        if !self.has_guards(facts.config.memory_type) {
            return Err(CorruptionError::NotDetected);
        }
        let this = (facts.vector, pool.generation);
        self.check_margins(
            |guard| (guard.vector, guard.live.generation) == this,
            |&(vector, generation, _)| (vector, generation) == this,
        )
    }

    /// Returns true if non-dedicated allocations of this type have guards.
    fn has_guards(&self, memory_type: u32) -> bool {
        let device = &self.inner.context.device;
        self.inner.debug.settings.detect_corruption
            && device.is_host_visible(memory_type)
            && device.is_coherent(memory_type)
    }

    /// Checks the margins that `is_wanted` selects, and reports the earlier findings that `is_reported` selects.
    fn check_margins(
        &self,
        is_wanted: impl Fn(&MarginGuard) -> bool,
        is_reported: impl Fn(&(u32, u32, DamagedAllocation)) -> bool,
    ) -> Result<(), CorruptionError> {
        // Held throughout: freeing an allocation, pool or scope removes its guards first. So all checked allocations
        // stay live.
        let mut guards = self.inner.debug.guards.lock();
        let mut damaged = Vec::new();
        for guard in guards.live.values().filter(|guard| is_wanted(guard)) {
            match self.damage_of(guard) {
                Ok(found) => damaged.extend(found),
                Err(error @ (MapError::Driver(_) | MapError::AddressSpace { .. })) => {
                    return Err(CorruptionError::Map(error));
                }
                // Its pool was destroyed meanwhile.
                Err(_) => {}
            }
        }
        let (reported, kept) = std::mem::take(&mut guards.freed).into_iter().partition(&is_reported);
        guards.freed = kept;
        damaged.extend(reported.into_iter().map(|(_, _, damaged)| damaged));
        if damaged.is_empty() { Ok(()) } else { Err(CorruptionError::Damaged(damaged.into())) }
    }

    /// The damage of a margin, if any.
    fn damage_of(&self, guard: &MarginGuard) -> Result<Option<DamagedAllocation>, MapError> {
        let vector = self.vector_of_guard(guard)?;
        let wrong = self.with_margin(vector, guard, |margin| {
            margin.iter().zip(pattern()).position(|(&byte, expected)| byte != expected)
        })?;
        let Some(wrong) = wrong else { return Ok(None) };
        let annotation = vector.annotation(guard.live)?;
        Ok(Some(DamagedAllocation {
            name: annotation.name,
            user_data: annotation.user_data,
            caller: annotation.caller,
            memory_type_index: guard.memory_type,
            memory: guard.memory,
            offset: guard.offset,
            size: guard.size,
            bytes_past_end: sublet_engines::cast::widen(wrong),
            freed: false,
        }))
    }

    fn vector_of_guard(&self, guard: &MarginGuard) -> Result<&MemoryBlockVector, MapError> {
        self.inner.vector(guard.vector).ok_or(MapError::Foreign(crate::error::ForeignHandle::Allocation))
    }

    /// Maps the margin of a live allocation while `look` runs.
    fn with_margin<R>(
        &self,
        vector: &MemoryBlockVector,
        guard: &MarginGuard,
        look: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R, MapError> {
        let margin = host_size(self.inner.debug.settings.margin).ok_or(MapError::NotMapped)?;
        let map = || vector.map(&self.inner.context, guard.live);
        let base = match map() {
            // Blocks that were just checked are still mapped. This emits no event, because the guards are locked here.
            Err(error) if error.is_out_of_addresses() => {
                self.inner.vectors().for_each(|vector| vector.unmap_idle(&self.inner.context));
                map()?
            }
            answer => answer?,
        };
        let answer = match base.at(guard.offset + guard.size).get() {
            Some(start) => {
                // SAFETY: the block is mapped until `unmap` below. The margin lies in the block, because the vector
                // granted it together with the allocation. It belongs to nobody else: only a faulty program has other
                // pointers to it.
                Ok(look(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), margin) }))
            }
            None => Err(MapError::NotMapped),
        };
        vector.unmap(guard.live)?;
        answer
    }

    /// Applies the settings to a new allocation.
    #[cold]
    pub(super) fn watch(&self, allocation: &mut Allocation, may_fill: bool) {
        let is_filled = self.inner.debug.settings.fill && may_fill && self.fill(allocation, CREATED);
        if self.guard(allocation) || is_filled {
            allocation.flags |= allocation_flags::WATCHED;
        }
    }

    /// Applies the settings to an allocation that is about to be freed.
    #[cold]
    #[inline(never)]
    pub(super) fn unwatch(&self, allocation: &Allocation) {
        self.unguard(allocation);
        if self.inner.debug.settings.fill {
            self.fill(allocation, DESTROYED);
        }
    }

    /// Fills the margin of an allocation, if it needs one. Returns true if it has a pattern now.
    pub(super) fn guard(&self, allocation: &Allocation) -> bool {
        if allocation.is_dedicated() || !self.has_guards(allocation.memory_type_index()) {
            return false;
        }
        let guard = MarginGuard {
            vector: allocation.vector,
            live: allocation.live(),
            memory: allocation.memory,
            memory_type: allocation.memory_type_index(),
            offset: allocation.offset,
            size: allocation.size,
        };
        let written = self.vector_of_guard(&guard).and_then(|vector| {
            self.with_margin(vector, &guard, |margin| {
                margin.iter_mut().zip(pattern()).for_each(|(byte, magic)| *byte = magic);
            })
        });
        // Memory that cannot be mapped now stays unchecked; the allocation is still valid.
        if written.is_ok() {
            self.inner.debug.guards.lock().live.insert(guard_key(guard.vector, guard.live), guard);
        }
        written.is_ok()
    }

    /// Checks the margin for the last time, before the allocation is freed or moved.
    pub(super) fn unguard(&self, allocation: &Allocation) {
        if allocation.allocator != self.inner.id || !self.inner.debug.settings.detect_corruption {
            return;
        }
        let key = guard_key(allocation.vector, allocation.live());
        // A separate statement releases the lock first: the code below may call the driver.
        let guard = self.inner.debug.guards.lock().live.remove(&key);
        let found = guard.and_then(|guard| self.damage_of(&guard).ok().flatten());
        let Some(damaged) = found else { return };
        let damaged = DamagedAllocation { freed: true, ..damaged };
        tracing::error!(
            name: "corruption_found", target: "sublet::corruption",
            allocation = damaged.name.as_deref().unwrap_or("(unnamed)"),
            memory_type = damaged.memory_type_index, offset = damaged.offset, size = damaged.size,
            bytes_past_end = damaged.bytes_past_end,
            "something wrote beyond the end of an allocation that is freed or moved now"
        );
        let entry = (allocation.vector, allocation.generation, damaged);
        self.inner.debug.guards.lock().freed.push(entry);
    }

    /// Fills an allocation that the host may map. Returns true on success.
    fn fill(&self, allocation: &Allocation, byte: u8) -> bool {
        let Ok(mapping) = self.mapping(allocation) else { return false };
        let Some(size) = host_size(allocation.size) else { return false };
        let start: NonNull<u8> = mapping.pointer().cast();
        // SAFETY: the guard keeps the allocation mapped, and all of its bytes are written. Nobody uses them: the
        // allocation is new or about to be freed, and `free_memory` requires that the device is done with it.
        unsafe { start.write_bytes(byte, size) };
        mapping.flush(0, vk::WHOLE_SIZE).is_ok()
    }

    /// Returns true if every allocation must be dedicated where possible.
    pub(super) fn is_always_dedicated(&self) -> bool {
        self.inner.debug.settings.always_dedicated
    }

    /// Bytes of the margin after every allocation in a block.
    pub(crate) fn margin(&self) -> u64 {
        self.inner.debug.settings.margin
    }
}
