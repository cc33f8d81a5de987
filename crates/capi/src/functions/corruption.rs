//! Whether anybody wrote beyond an allocation.

use ash::vk;

use crate::allocator::each;
use crate::guard::{exported, given};
use crate::refusal::success_or_logged;
use crate::types::{VmaAllocator, VmaPool};

exported! {
    /// Looks at the margins in memory of some types.
    fn vmaCheckCorruption(allocator: VmaAllocator, memory_type_bits: u32) -> vk::Result {
        const NAME: &str = "vmaCheckCorruption";
        // SAFETY: C1.
        let Some(object) = (unsafe { given(NAME, allocator) }) else { return vk::Result::ERROR_FEATURE_NOT_PRESENT };
        success_or_logged(NAME, each!(object, front => front.allocator.check_corruption(memory_type_bits)))
    }

    /// Looks at the margins in a pool.
    fn vmaCheckPoolCorruption(allocator: VmaAllocator, pool: VmaPool) -> vk::Result {
        const NAME: &str = "vmaCheckPoolCorruption";
        // SAFETY: C1.
        let Some(object) = (unsafe { given(NAME, allocator) }) else { return vk::Result::ERROR_FEATURE_NOT_PRESENT };
        // SAFETY: C2.
        let Some(pool) = (unsafe { object.pools.of(NAME, pool) }) else { return vk::Result::ERROR_UNKNOWN };
        success_or_logged(NAME, each!(object, front => front.allocator.check_pool_corruption(pool.pool())))
    }
}
