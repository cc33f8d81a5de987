//! Reports as JSON.

use std::ffi::{CString, c_char};

use ash::vk;

use crate::capi::guard::{answer, exported, given, misused};
use crate::capi::types::{VmaAllocator, VmaVirtualBlock};

/// Hands a text to C, which gives it back to be freed.
fn into_c(text: String) -> *mut c_char {
    // JSON has no zero bytes: it writes them as escapes.
    CString::new(text).map_or(std::ptr::null_mut(), CString::into_raw)
}

/// Takes a text back.
///
/// # Safety
/// `text` is null or came from [`into_c`] and was not given back.
unsafe fn free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: the caller's own promise.
        drop(unsafe { CString::from_raw(text) });
    }
}

exported! {
    /// Describes all that an allocator holds.
    fn vmaBuildStatsString(allocator: VmaAllocator, text: *mut *mut c_char, detailed_map: vk::Bool32) {
        const NAME: &str = "vmaBuildStatsString";
        let _ = detailed_map;
        // SAFETY: C1.
        let Some(_object) = (unsafe { given(NAME, allocator) }) else { return };
        misused(NAME, "there is no report as JSON yet");
        // SAFETY: C3.
        unsafe { answer(text, into_c("{}".to_owned())) };
    }

    /// Frees what `vmaBuildStatsString` has made.
    fn vmaFreeStatsString(_allocator: VmaAllocator, text: *mut c_char) {
        // SAFETY: C1: it came from `vmaBuildStatsString`.
        unsafe { free(text) };
    }

    /// Describes all that a virtual block holds.
    fn vmaBuildVirtualBlockStatsString(block: VmaVirtualBlock, text: *mut *mut c_char, detailed_map: vk::Bool32) {
        const NAME: &str = "vmaBuildVirtualBlockStatsString";
        let _ = detailed_map;
        // SAFETY: C1.
        let Some(_object) = (unsafe { given(NAME, block) }) else { return };
        misused(NAME, "there is no report as JSON yet");
        // SAFETY: C3.
        unsafe { answer(text, into_c("{}".to_owned())) };
    }

    /// Frees what `vmaBuildVirtualBlockStatsString` has made.
    fn vmaFreeVirtualBlockStatsString(_block: VmaVirtualBlock, text: *mut c_char) {
        // SAFETY: C1: it came from `vmaBuildVirtualBlockStatsString`.
        unsafe { free(text) };
    }
}
