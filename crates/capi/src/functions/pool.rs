//! Creation, names, statistics and destruction of pools.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::{CStr, c_char};

use ash::vk;

use crate::guard::{answer, exported, foreign, given, leaked, misused, refused};
use crate::pool::PoolObject;
use crate::types::{
    POOL_LINEAR_ALGORITHM, VmaAllocator, VmaDetailedStatistics, VmaPool, VmaPoolCreateInfo, VmaStatistics,
};
use sublet::Algorithm;
use sublet::CreatePoolError;
use sublet::MemoryAllocateNext;
use sublet::private::widen;
use sublet::{PoolCreateFlags, PoolCreateInfo};

/// The flags that VMA knows, except the algorithm. The Rust interface may know more.
const KNOWN_FLAGS: u32 = 0x2;

/// Converts a number of blocks. Saturates.
fn blocks(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

exported! {
    /// Creates a pool.
    fn vmaCreatePool(allocator: VmaAllocator, info: *const VmaPoolCreateInfo, pool: *mut VmaPool) -> vk::Result {
        const NAME: &str = "vmaCreatePool";
        // SAFETY: C3.
        unsafe { answer(pool, std::ptr::null_mut()) };
        // SAFETY: C1, C3.
        let (Some(object), Some(info)) = (unsafe { given(NAME, allocator) }, unsafe { given(NAME, info) }) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        if pool.is_null() {
            misused(NAME, "pPool must not be null");
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        }
        let linear = info.flags & POOL_LINEAR_ALGORITHM != 0;
        let asked = PoolCreateInfo {
            flags: PoolCreateFlags::from_bits_truncate(info.flags & KNOWN_FLAGS),
            algorithm: if linear { Algorithm::Linear } else { Algorithm::Tlsf },
            block_size: info.block_size,
            min_block_count: blocks(info.min_block_count),
            max_block_count: blocks(info.max_block_count),
            priority: if object.front.has_priorities { info.priority } else { 0.5 },
            min_allocation_alignment: info.min_allocation_alignment,
            // SAFETY: C3: the chain is valid while the pool lives.
            memory_allocate_next: unsafe { MemoryAllocateNext::new(info.memory_allocate_next) },
            ..PoolCreateInfo::new(info.memory_type_index)
        };
        match object.front.allocator.create_pool(&asked) {
            Ok(made) => {
                // SAFETY: C3; the pointer is not null.
                unsafe { pool.write(object.pools.give(PoolObject::new(made))) };
                vk::Result::SUCCESS
            }
            Err(error) => {
                let misuse = matches!(error, CreatePoolError::Alignment { .. } | CreatePoolError::Priority { .. });
                refused(NAME, &error, misuse, error.vk_result())
            }
        }
    }

    /// Destroys a pool.
    fn vmaDestroyPool(allocator: VmaAllocator, pool: VmaPool) {
        const NAME: &str = "vmaDestroyPool";
        if pool.is_null() {
            return;
        }
        // SAFETY: C1.
        let Some(object) = (unsafe { given(NAME, allocator) }) else { return };
        let Some(pool) = object.pools.take(NAME, pool).map(|pool| pool.into_pool()) else { return };
        // SAFETY: C3: the device no longer uses anything in the pool.
        match unsafe { object.front.allocator.destroy_pool(pool) } {
            Ok(leaks) if leaks.is_empty() => {}
            Ok(leaks) => leaked(NAME, "pool", "allocations", widen(leaks.len())),
            Err(error) => foreign(NAME, &error),
        }
    }

    /// Returns the statistics of a pool that are always current.
    fn vmaGetPoolStatistics(allocator: VmaAllocator, pool: VmaPool, statistics: *mut VmaStatistics) {
        const NAME: &str = "vmaGetPoolStatistics";
        // SAFETY: C1.
        let Some(object) = (unsafe { given(NAME, allocator) }) else { return };
        // SAFETY: C2.
        let Some(pool) = (unsafe { object.pools.of(NAME, pool) }) else { return };
        match object.front.allocator.pool_statistics(pool.pool()) {
            // SAFETY: C3.
            Ok(known) => unsafe { answer(statistics, VmaStatistics::from(&known)) },
            Err(error) => foreign(NAME, &error),
        }
    }

    /// Walks a pool and returns detailed statistics.
    fn vmaCalculatePoolStatistics(
        allocator: VmaAllocator,
        pool: VmaPool,
        statistics: *mut VmaDetailedStatistics,
    ) {
        const NAME: &str = "vmaCalculatePoolStatistics";
        // SAFETY: C1.
        let Some(object) = (unsafe { given(NAME, allocator) }) else { return };
        // SAFETY: C2.
        let Some(pool) = (unsafe { object.pools.of(NAME, pool) }) else { return };
        match object.front.allocator.calculate_pool_statistics(pool.pool()) {
            // SAFETY: C3.
            Ok(known) => unsafe { answer(statistics, VmaDetailedStatistics::from(&known)) },
            Err(error) => foreign(NAME, &error),
        }
    }

    /// Returns a pointer to the name of a pool.
    fn vmaGetPoolName(allocator: VmaAllocator, pool: VmaPool, name: *mut *const c_char) {
        const NAME: &str = "vmaGetPoolName";
        // SAFETY: C1.
        let Some(object) = (unsafe { given(NAME, allocator) }) else { return };
        // SAFETY: C2.
        let Some(pool) = (unsafe { object.pools.of(NAME, pool) }) else { return };
        // SAFETY: C2.
        let known = unsafe { pool.name() };
        // SAFETY: C3.
        unsafe { answer(name, known) };
    }

    /// Names a pool.
    fn vmaSetPoolName(allocator: VmaAllocator, pool: VmaPool, name: *const c_char) {
        const NAME: &str = "vmaSetPoolName";
        // SAFETY: C1.
        let Some(object) = (unsafe { given(NAME, allocator) }) else { return };
        // SAFETY: C2.
        let Some(pool) = (unsafe { object.pools.of(NAME, pool) }) else { return };
        // SAFETY: C3.
        let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_owned());
        let text = name.as_deref().map(CStr::to_string_lossy);
        if let Err(error) = object.front.allocator.set_pool_name(pool.pool(), text.as_deref()) {
            foreign(NAME, &error);
        }
        // SAFETY: C2.
        unsafe { pool.set_name(name) };
    }
}
