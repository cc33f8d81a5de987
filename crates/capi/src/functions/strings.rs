//! Reports as JSON.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::collections::HashMap;
use std::ffi::c_char;

use ash::vk;

use crate::allocator::Front;
use crate::guard::{answer, exported, given};
use crate::types::{VmaAllocator, VmaVirtualBlock};

/// Size of the prefix that stores the length. The program may write into the text and shorten it.
const HEADER: usize = size_of::<usize>();

/// Passes ownership of a text to C.
fn into_c(text: String) -> *mut c_char {
    let length = HEADER + text.len() + 1;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(length.to_ne_bytes());
    // JSON has no zero bytes: it writes them as escapes.
    bytes.extend(text.into_bytes());
    bytes.push(0);
    let bytes: *mut u8 = Box::into_raw(bytes.into_boxed_slice()).cast();
    bytes.wrapping_add(HEADER).cast()
}

/// Frees a text.
///
/// # Safety
/// `text` is null or came from [`into_c`] and was not freed.
unsafe fn free(text: *mut c_char) {
    if !text.is_null() {
        let bytes: *mut u8 = text.cast::<u8>().wrapping_sub(HEADER);
        // SAFETY: `into_c` wrote the length there.
        let length = usize::from_ne_bytes(unsafe { bytes.cast::<[u8; HEADER]>().read() });
        // SAFETY: `into_c` made the box with this length.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(bytes, length)) });
    }
}

impl Front {
    /// Returns the report, with names and user data from C.
    fn stats_string(&self, detailed: bool) -> String {
        if !detailed {
            return sublet_report::stats_string(&self.allocator, false);
        }
        let mut map = self.allocator.memory_map();
        let mut kept = HashMap::new();
        self.slab.for_each(|_, slot| {
            let allocation = slot.allocation();
            kept.insert(allocation.id(), allocation.user_data());
        });
        for entry in map.allocations_mut() {
            entry.user_data = kept.get(&entry.id).copied().filter(|&user_data| user_data != 0);
        }
        sublet_report::stats_string_of_map(&self.allocator, &map)
    }
}

exported! {
    /// Describes everything that an allocator holds.
    fn vmaBuildStatsString(allocator: VmaAllocator, text: *mut *mut c_char, detailed_map: vk::Bool32) {
        // SAFETY: C1.
        let Some(object) = (unsafe { given("vmaBuildStatsString", allocator) }) else { return };
        // As in VMA, only `VK_TRUE` asks for details.
        let json = object.front.stats_string(detailed_map == vk::TRUE);
        // SAFETY: C3.
        unsafe { answer(text, into_c(json)) };
    }

    /// Frees a text from `vmaBuildStatsString`.
    fn vmaFreeStatsString(_allocator: VmaAllocator, text: *mut c_char) {
        // SAFETY: C1: it came from `vmaBuildStatsString`.
        unsafe { free(text) };
    }

    /// Describes everything that a virtual block holds.
    fn vmaBuildVirtualBlockStatsString(block: VmaVirtualBlock, text: *mut *mut c_char, detailed_map: vk::Bool32) {
        // SAFETY: C1, C2.
        if let Some(object) = unsafe { given("vmaBuildVirtualBlockStatsString", block) } {
            let json = sublet_report::virtual_block_stats_string(&object.block, detailed_map != vk::FALSE);
            // SAFETY: C3.
            unsafe { answer(text, into_c(json)) };
        }
    }

    /// Frees a text from `vmaBuildVirtualBlockStatsString`.
    fn vmaFreeVirtualBlockStatsString(_block: VmaVirtualBlock, text: *mut c_char) {
        // SAFETY: C1: it came from `vmaBuildVirtualBlockStatsString`.
        unsafe { free(text) };
    }
}
