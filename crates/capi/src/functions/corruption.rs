//! Detection of writes beyond an allocation.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use crate::error_in_c::success_or_logged;
use crate::guard::{exported, given};
use crate::types::{VmaAllocator, VmaPool};
use sublet::CorruptionError;

/// Returns the result of a check. Damage does not make the call a wrong call, and is logged elsewhere.
fn checked(function: &'static str, outcome: Result<(), CorruptionError>) -> vk::Result {
    match outcome {
        Err(error @ CorruptionError::Damaged(_)) => {
            tracing::error!(
                name: "margins_damaged", target: "sublet::capi", function, %error,
                "memory is damaged"
            );
            error.vk_result()
        }
        outcome => success_or_logged(function, outcome),
    }
}

exported! {
    /// Checks the margins in memory of the given types.
    fn vmaCheckCorruption(allocator: VmaAllocator, memory_type_bits: u32) -> vk::Result {
        const NAME: &str = "vmaCheckCorruption";
        // SAFETY: C1.
        let Some(object) = (unsafe { given(NAME, allocator) }) else { return vk::Result::ERROR_FEATURE_NOT_PRESENT };
        checked(NAME, object.front.allocator.check_corruption(memory_type_bits))
    }

    /// Checks the margins in a pool.
    fn vmaCheckPoolCorruption(allocator: VmaAllocator, pool: VmaPool) -> vk::Result {
        const NAME: &str = "vmaCheckPoolCorruption";
        // SAFETY: C1.
        let Some(object) = (unsafe { given(NAME, allocator) }) else { return vk::Result::ERROR_FEATURE_NOT_PRESENT };
        // SAFETY: C2.
        let Some(pool) = (unsafe { object.pools.of(NAME, pool) }) else { return vk::Result::ERROR_UNKNOWN };
        checked(NAME, object.front.allocator.check_pool_corruption(pool.pool()))
    }
}
