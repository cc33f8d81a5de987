//! Whether anybody wrote beyond an allocation.

use ash::vk;

use crate::capi::guard::exported;
use crate::capi::types::{VmaAllocator, VmaPool};

exported! {
    /// Looks at the margins in memory of some types.
    fn vmaCheckCorruption(_allocator: VmaAllocator, _memory_type_bits: u32) -> vk::Result {
        vk::Result::ERROR_FEATURE_NOT_PRESENT
    }

    /// Looks at the margins in a pool.
    fn vmaCheckPoolCorruption(_allocator: VmaAllocator, _pool: VmaPool) -> vk::Result {
        vk::Result::ERROR_FEATURE_NOT_PRESENT
    }
}
