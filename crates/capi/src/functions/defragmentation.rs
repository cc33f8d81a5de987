//! Defragmentation in passes.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use crate::defragmentation::ContextObject;
use crate::guard::{answer, exported, given, misused, refused};
use crate::types::{
    Pointer, VmaAllocator, VmaDefragmentationContext, VmaDefragmentationInfo, VmaDefragmentationPassMoveInfo,
    VmaDefragmentationStats,
};
use sublet::private::AllocatorInside;
use sublet::private::{index, narrow};
use sublet::{BeginDefragmentationError, DefragmentationAlgorithm, DefragmentationInfo};

/// Returns the algorithm that the flags select: of several, the one that does least.
fn algorithm(flags: u32) -> DefragmentationAlgorithm {
    match flags {
        flags if flags & 0x1 != 0 => DefragmentationAlgorithm::Fast,
        flags if flags & 0x2 != 0 => DefragmentationAlgorithm::Balanced,
        flags if flags & 0x4 != 0 => DefragmentationAlgorithm::Full,
        flags if flags & 0x8 != 0 => DefragmentationAlgorithm::Extensive,
        _ => DefragmentationAlgorithm::Balanced,
    }
}

exported! {
    /// Begins a defragmentation.
    fn vmaBeginDefragmentation(
        allocator: VmaAllocator,
        info: *const VmaDefragmentationInfo,
        context: *mut VmaDefragmentationContext,
    ) -> vk::Result {
        const NAME: &str = "vmaBeginDefragmentation";
        // SAFETY: C3.
        unsafe { answer(context, std::ptr::null_mut()) };
        // SAFETY: C1, C3.
        let (Some(object), Some(info)) = (unsafe { given(NAME, allocator) }, unsafe { given(NAME, info) }) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        if context.is_null() {
            misused(NAME, "pContext must not be null");
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        }
        let pool = if info.pool.is_null() {
            None
        } else {
            // SAFETY: C2.
            let Some(pool) = (unsafe { object.pools.of(NAME, info.pool) }) else { return vk::Result::ERROR_UNKNOWN };
            Some(pool.pool())
        };
        let asked = DefragmentationInfo {
            algorithm: algorithm(info.flags),
            pools: pool.as_slice(),
            max_bytes_per_pass: info.max_bytes_per_pass,
            max_allocations_per_pass: info.max_allocations_per_pass,
            ..DefragmentationInfo::default()
        };
        match object.front.allocator.open_defragmentation(&asked) {
            Ok(open) => {
                let user_data = Pointer(info.break_callback_user_data);
                let callback = info.break_callback.map(|callback| (callback, user_data));
                // SAFETY: C3; the pointer is not null.
                unsafe { context.write(object.contexts.give(ContextObject::new(open, callback))) };
                vk::Result::SUCCESS
            }
            Err(error) => {
                // VMA returns an error for a linear pool, and detects no other misuse.
                let misuse = !matches!(error, BeginDefragmentationError::Algorithm { .. });
                let result = match error.vk_result() {
                    // VMA defines no result for misuse that it does not detect.
                    vk::Result::ERROR_VALIDATION_FAILED_EXT => vk::Result::ERROR_UNKNOWN,
                    result => result,
                };
                refused(NAME, &error, misuse, result)
            }
        }
    }

    /// Ends a defragmentation.
    fn vmaEndDefragmentation(
        allocator: VmaAllocator,
        context: VmaDefragmentationContext,
        statistics: *mut VmaDefragmentationStats,
    ) {
        const NAME: &str = "vmaEndDefragmentation";
        // SAFETY: C1.
        let Some(object) = (unsafe { given(NAME, allocator) }) else { return };
        let Some(context) = object.contexts.take(NAME, context) else { return };
        if context.has_open_pass() {
            misused(NAME, "a pass is open");
        }
        let known = object.front.end_defragmentation(*context);
        // SAFETY: C3.
        unsafe { answer(statistics, known) };
    }

    /// Begins a pass and returns its moves.
    fn vmaBeginDefragmentationPass(
        allocator: VmaAllocator,
        context: VmaDefragmentationContext,
        pass: *mut VmaDefragmentationPassMoveInfo,
    ) -> vk::Result {
        const NAME: &str = "vmaBeginDefragmentationPass";
        // SAFETY: C1.
        let Some(object) = (unsafe { given(NAME, allocator) }) else { return vk::Result::ERROR_UNKNOWN };
        if pass.is_null() {
            misused(NAME, "pPassInfo must not be null");
            return vk::Result::ERROR_UNKNOWN;
        }
        // SAFETY: C3; the pointer is not null.
        unsafe { pass.write(VmaDefragmentationPassMoveInfo { move_count: 0, moves: std::ptr::null_mut() }) };
        // SAFETY: C2.
        let Some(context) = (unsafe { object.contexts.of_mut(NAME, context) }) else {
            return vk::Result::ERROR_UNKNOWN;
        };
        if context.has_open_pass() {
            misused(NAME, "the pass before is open");
        }
        object.front.begin_pass(context);
        let moves = context.moves();
        let described = VmaDefragmentationPassMoveInfo {
            move_count: narrow(moves.len()),
            moves: if moves.is_empty() { std::ptr::null_mut() } else { moves.as_mut_ptr() },
        };
        // SAFETY: C3; the pointer is not null.
        unsafe { pass.write(described) };
        if described.move_count == 0 { vk::Result::SUCCESS } else { vk::Result::INCOMPLETE }
    }

    /// Ends a pass after the program has made its moves.
    fn vmaEndDefragmentationPass(
        allocator: VmaAllocator,
        context: VmaDefragmentationContext,
        pass: *mut VmaDefragmentationPassMoveInfo,
    ) -> vk::Result {
        const NAME: &str = "vmaEndDefragmentationPass";
        // SAFETY: C1.
        let Some(object) = (unsafe { given(NAME, allocator) }) else { return vk::Result::ERROR_UNKNOWN };
        // SAFETY: C2.
        let Some(context) = (unsafe { object.contexts.of_mut(NAME, context) }) else {
            return vk::Result::ERROR_UNKNOWN;
        };
        // SAFETY: C3.
        let described = unsafe { pass.as_ref() }.filter(|pass| !pass.moves.is_null() && pass.move_count != 0).map(|pass| {
            // The list may be the context's own, so it is copied before the context changes.
            // SAFETY: C3: the list has this many moves.
            unsafe { std::slice::from_raw_parts(pass.moves, index(pass.move_count)) }.to_vec()
        });
        // SAFETY: C1 to C3.
        let result = unsafe { object.front.end_pass(NAME, context, described.as_deref()) };
        // SAFETY: C3.
        unsafe {
            answer(pass, VmaDefragmentationPassMoveInfo { move_count: 0, moves: std::ptr::null_mut() });
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flag_is_an_algorithm_and_of_several_the_first_counts() {
        use DefragmentationAlgorithm::{Balanced, Extensive, Fast, Full};
        let cases = [
            (0, Balanced),
            (1, Fast),
            (2, Balanced),
            (4, Full),
            (6, Balanced),
            (8, Extensive),
            (12, Full),
            (15, Fast),
            (16, Balanced),
        ];
        for (flags, expected) in cases {
            assert_eq!(algorithm(flags), expected, "{flags}");
        }
    }
}
