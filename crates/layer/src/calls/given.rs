//! Reads the lists that the program passes.
#![expect(unsafe_code, reason = "reads the program's memory")]

use std::slice::from_raw_parts;

use sublet::private::index;

/// Returns a list; an empty one for null.
///
/// # Safety
/// V1: `first` is null or valid for reads of `count` elements during `'a`.
pub(crate) unsafe fn slice<'a, T>(first: *const T, count: u32) -> &'a [T] {
    if first.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: the caller's.
    unsafe { from_raw_parts(first, index(count)) }
}
