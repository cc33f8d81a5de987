//! How much host memory a peer takes: a counting global allocator for Rust, and Vulkan callbacks for VMA.
//!
//! It counts only inside [`counting`], and one thread only, so that the times are not of the counting.
#![expect(unsafe_code, reason = "a global allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use ash::vk;

/// The counting allocator.
pub(crate) struct Counting;

static ARMED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static COUNTED: Cell<bool> = const { Cell::new(false) };
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

fn add(bytes: i64) {
    // During the thread's end there is nothing left to count with, and nothing to count.
    let counted = COUNTED.try_with(Cell::get).unwrap_or(false);
    if counted {
        let _ = BYTES.try_with(|all| all.set(all.get() + bytes));
    }
}

// SAFETY: everything is passed on to the system's allocator, and the counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if ARMED.load(Ordering::Relaxed) {
            add(layout.size() as i64);
        }
        // SAFETY: the caller's own promise.
        unsafe { System.alloc(layout) }
    }

    // Not by way of `alloc`: large memory comes from the system zeroed, and need not be touched.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if ARMED.load(Ordering::Relaxed) {
            add(layout.size() as i64);
        }
        // SAFETY: the caller's own promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if ARMED.load(Ordering::Relaxed) {
            add(-(layout.size() as i64));
        }
        // SAFETY: the caller's own promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if ARMED.load(Ordering::Relaxed) {
            add(size as i64 - layout.size() as i64);
        }
        // SAFETY: the caller's own promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Counts the host memory that this thread takes and gives back until the result is dropped.
#[must_use]
pub(crate) fn counting() -> Counter {
    BYTES.set(0);
    COUNTED.set(true);
    ARMED.store(true, Ordering::Relaxed);
    Counter(())
}

/// While it lives, host memory is counted.
pub(crate) struct Counter(());

impl Counter {
    /// Bytes that were taken and not given back.
    pub(crate) fn bytes(&self) -> i64 {
        BYTES.get()
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        ARMED.store(false, Ordering::Relaxed);
        COUNTED.set(false);
    }
}

/// Runs `body`, whose host memory is not the peer's.
pub(crate) fn uncounted<R>(body: impl FnOnce() -> R) -> R {
    let before = COUNTED.replace(false);
    let result = body();
    COUNTED.set(before);
    result
}

/// What stands before each piece of memory that a callback gives out.
#[repr(C)]
struct Header {
    size: usize,
    align: usize,
}

/// Callbacks that take from the counting allocator.
pub(crate) static CALLBACKS: Callbacks = Callbacks(vk::AllocationCallbacks {
    p_user_data: std::ptr::null_mut(),
    pfn_allocation: Some(callback_allocate),
    pfn_reallocation: Some(callback_reallocate),
    pfn_free: Some(callback_free),
    pfn_internal_allocation: None,
    pfn_internal_free: None,
    _marker: std::marker::PhantomData,
});

/// What may be shared although it holds a pointer.
pub(crate) struct Callbacks(pub(crate) vk::AllocationCallbacks<'static>);

// SAFETY: the user data is NULL, and the functions keep their state per thread.
unsafe impl Sync for Callbacks {}

/// The layout of a piece with its header, and where the piece begins in it.
fn with_header(size: usize, align: usize) -> Option<(Layout, usize)> {
    let align = align.max(align_of::<Header>());
    Layout::new::<Header>().extend(Layout::from_size_align(size, align).ok()?).ok()
}

/// Where the header of a piece is.
///
/// # Safety
/// The piece is one that [`callback_allocate`] gives out.
unsafe fn header(piece: *mut u8) -> *mut Header {
    // SAFETY: a header lies before each piece, and the pieces are aligned for it: `with_header`.
    unsafe { piece.cast::<Header>().sub(1) }
}

unsafe extern "system" fn callback_allocate(
    _: *mut c_void,
    size: usize,
    align: usize,
    _: vk::SystemAllocationScope,
) -> *mut c_void {
    let Some((layout, offset)) = with_header(size, align) else {
        return std::ptr::null_mut();
    };
    // SAFETY: the layout holds a header at least.
    let start = unsafe { std::alloc::alloc(layout) };
    if start.is_null() {
        return std::ptr::null_mut();
    }
    // The header is not the peer's own.
    add(-((layout.size() - size) as i64));
    // SAFETY: `offset` is within the layout.
    let piece = unsafe { start.add(offset) };
    // SAFETY: this is how pieces are made.
    let header = unsafe { header(piece) };
    // SAFETY: within the memory that was allocated just now.
    unsafe { header.write(Header { size, align }) };
    piece.cast()
}

unsafe extern "system" fn callback_free(_: *mut c_void, piece: *mut c_void) {
    if piece.is_null() {
        return;
    }
    // SAFETY: a piece of these callbacks, as whoever calls them promises.
    let header = unsafe { header(piece.cast()) };
    // SAFETY: `callback_allocate` wrote it.
    let Header { size, align } = unsafe { header.read() };
    let Some((layout, offset)) = with_header(size, align) else {
        return;
    };
    add((layout.size() - size) as i64);
    // SAFETY: the piece begins `offset` bytes behind the start.
    let start = unsafe { piece.cast::<u8>().sub(offset) };
    // SAFETY: allocated with this very layout.
    unsafe { std::alloc::dealloc(start, layout) };
}

unsafe extern "system" fn callback_reallocate(
    user: *mut c_void,
    old: *mut c_void,
    size: usize,
    align: usize,
    scope: vk::SystemAllocationScope,
) -> *mut c_void {
    // SAFETY: the caller's own promise.
    let new = unsafe { callback_allocate(user, size, align, scope) };
    if !old.is_null() && !new.is_null() {
        // SAFETY: a piece of these callbacks, as the caller promises.
        let header = unsafe { header(old.cast()) };
        // SAFETY: `callback_allocate` wrote it.
        let before = unsafe { header.read() };
        // SAFETY: both are at least that long, and apart.
        unsafe { std::ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast::<u8>(), size.min(before.size)) };
        // SAFETY: the caller's own promise.
        unsafe { callback_free(user, old) };
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_counted_once() {
        let counter = counting();
        let kept = vec![0_u8; 1000];
        drop(vec![0_u8; 5000]);
        assert_eq!(counter.bytes(), 1000);
        uncounted(|| std::mem::forget(std::hint::black_box(vec![0_u8; 10])));
        assert_eq!(counter.bytes(), 1000);
        drop(kept);
        assert_eq!(counter.bytes(), 0);
        // SAFETY: a valid size and alignment.
        let piece =
            unsafe { callback_allocate(std::ptr::null_mut(), 100, 64, vk::SystemAllocationScope::OBJECT) };
        assert_eq!(piece.addr() % 64, 0);
        assert_eq!(counter.bytes(), 100);
        // SAFETY: allocated just now.
        let piece = unsafe {
            callback_reallocate(std::ptr::null_mut(), piece, 300, 64, vk::SystemAllocationScope::OBJECT)
        };
        assert_eq!(counter.bytes(), 300);
        // SAFETY: allocated just now.
        unsafe { callback_free(std::ptr::null_mut(), piece) };
        assert_eq!(counter.bytes(), 0);
    }
}
