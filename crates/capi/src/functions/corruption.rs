//! Whether anybody wrote beyond an allocation.

use ash::vk;

use crate::allocator::each;
use crate::guard::{exported, given, refused};
use crate::types::{VmaAllocator, VmaPool};
use sublet::CorruptionError;

fn tell(function: &'static str, answered: Result<(), CorruptionError>) -> vk::Result {
    let Err(error) = answered else { return vk::Result::SUCCESS };
    let result = match &error {
        // VMA has no result for what it does not notice.
        CorruptionError::Foreign(_) => vk::Result::ERROR_UNKNOWN,
        known => known.vk_result(),
    };
    refused(function, &error, result == vk::Result::ERROR_UNKNOWN, result)
}

exported! {
    /// Looks at the margins in memory of some types.
    fn vmaCheckCorruption(allocator: VmaAllocator, memory_type_bits: u32) -> vk::Result {
        const NAME: &str = "vmaCheckCorruption";
        // SAFETY: C1.
        let Some(object) = (unsafe { given(NAME, allocator) }) else { return vk::Result::ERROR_FEATURE_NOT_PRESENT };
        tell(NAME, each!(object, front => front.allocator.check_corruption(memory_type_bits)))
    }

    /// Looks at the margins in a pool.
    fn vmaCheckPoolCorruption(allocator: VmaAllocator, pool: VmaPool) -> vk::Result {
        const NAME: &str = "vmaCheckPoolCorruption";
        // SAFETY: C1.
        let Some(object) = (unsafe { given(NAME, allocator) }) else { return vk::Result::ERROR_FEATURE_NOT_PRESENT };
        // SAFETY: C2.
        let Some(pool) = (unsafe { object.pools.of(NAME, pool) }) else { return vk::Result::ERROR_UNKNOWN };
        tell(NAME, each!(object, front => front.allocator.check_pool_corruption(pool.pool())))
    }
}
