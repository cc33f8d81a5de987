//! Measures a peer's host memory: a counting global allocator for Rust, and Vulkan callbacks for VMA.
//!
//! It counts only inside [`counting`] and on one thread, so that it does not affect the times.
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
    // While the thread ends, the counter is gone, and there is nothing to count.
    let counted = COUNTED.try_with(Cell::get).unwrap_or(false);
    if counted {
        let _ = BYTES.try_with(|all| all.set(all.get() + bytes));
    }
}

// SAFETY: everything is forwarded to the system's allocator, and the counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if ARMED.load(Ordering::Relaxed) {
            add(layout.size() as i64);
        }
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    // Not through `alloc`: the system provides large memory zeroed, without touching it.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if ARMED.load(Ordering::Relaxed) {
            add(layout.size() as i64);
        }
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if ARMED.load(Ordering::Relaxed) {
            add(-(layout.size() as i64));
        }
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if ARMED.load(Ordering::Relaxed) {
            add(size as i64 - layout.size() as i64);
        }
        // SAFETY: guaranteed by the caller.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Counts this thread's allocated and freed host memory until the result is dropped.
#[must_use]
pub(crate) fn counting() -> HeapCounter {
    BYTES.set(0);
    COUNTED.set(true);
    ARMED.store(true, Ordering::Relaxed);
    HeapCounter(())
}

/// Counts host memory while it lives.
pub(crate) struct HeapCounter(());

impl HeapCounter {
    /// Returns the bytes that were allocated and not freed.
    pub(crate) fn bytes(&self) -> i64 {
        BYTES.get()
    }
}

impl Drop for HeapCounter {
    fn drop(&mut self) {
        ARMED.store(false, Ordering::Relaxed);
        COUNTED.set(false);
    }
}

/// Runs `body` without counting its host memory.
pub(crate) fn uncounted<R>(body: impl FnOnce() -> R) -> R {
    let before = COUNTED.replace(false);
    let result = body();
    COUNTED.set(before);
    result
}

/// The header before each allocation of a callback.
#[repr(C)]
struct AllocationHeader {
    size: usize,
    align: usize,
}

/// Callbacks that use the counting allocator.
pub(crate) static CALLBACKS: Callbacks = Callbacks(vk::AllocationCallbacks {
    p_user_data: std::ptr::null_mut(),
    pfn_allocation: Some(callback_allocate),
    pfn_reallocation: Some(callback_reallocate),
    pfn_free: Some(callback_free),
    pfn_internal_allocation: None,
    pfn_internal_free: None,
    _marker: std::marker::PhantomData,
});

/// A wrapper that makes the callbacks `Sync` although they hold a pointer.
pub(crate) struct Callbacks(pub(crate) vk::AllocationCallbacks<'static>);

// SAFETY: the user data is NULL, and the functions keep their state per thread.
unsafe impl Sync for Callbacks {}

/// Returns the layout of an allocation with its header, and the offset of the allocation.
fn with_header(size: usize, align: usize) -> Option<(Layout, usize)> {
    let align = align.max(align_of::<AllocationHeader>());
    Layout::new::<AllocationHeader>().extend(Layout::from_size_align(size, align).ok()?).ok()
}

/// Returns the header of an allocation.
///
/// # Safety
/// The allocation came from [`callback_allocate`].
unsafe fn header(piece: *mut u8) -> *mut AllocationHeader {
    // SAFETY: a header precedes each allocation, and the alignment suits it: `with_header`.
    unsafe { piece.cast::<AllocationHeader>().sub(1) }
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
    // SAFETY: the layout has space for a header.
    let start = unsafe { std::alloc::alloc(layout) };
    if start.is_null() {
        return std::ptr::null_mut();
    }
    // The header does not belong to the peer.
    add(-((layout.size() - size) as i64));
    // SAFETY: `offset` is within the layout.
    let piece = unsafe { start.add(offset) };
    // SAFETY: the allocation is preceded by a header, as `header` requires.
    let header = unsafe { header(piece) };
    // SAFETY: within the memory that was allocated above.
    unsafe { header.write(AllocationHeader { size, align }) };
    piece.cast()
}

unsafe extern "system" fn callback_free(_: *mut c_void, piece: *mut c_void) {
    if piece.is_null() {
        return;
    }
    // SAFETY: the caller of the callback passes an allocation of these callbacks.
    let header = unsafe { header(piece.cast()) };
    // SAFETY: `callback_allocate` wrote it.
    let AllocationHeader { size, align } = unsafe { header.read() };
    let Some((layout, offset)) = with_header(size, align) else {
        return;
    };
    add((layout.size() - size) as i64);
    // SAFETY: the allocation begins `offset` bytes after the start.
    let start = unsafe { piece.cast::<u8>().sub(offset) };
    // SAFETY: allocated with this layout.
    unsafe { std::alloc::dealloc(start, layout) };
}

unsafe extern "system" fn callback_reallocate(
    user: *mut c_void,
    old: *mut c_void,
    size: usize,
    align: usize,
    scope: vk::SystemAllocationScope,
) -> *mut c_void {
    // SAFETY: guaranteed by the caller.
    let new = unsafe { callback_allocate(user, size, align, scope) };
    if !old.is_null() && !new.is_null() {
        // SAFETY: the caller passes an allocation of these callbacks.
        let header = unsafe { header(old.cast()) };
        // SAFETY: `callback_allocate` wrote it.
        let before = unsafe { header.read() };
        // SAFETY: both have at least this length, and do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast::<u8>(), size.min(before.size)) };
        // SAFETY: guaranteed by the caller.
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
        // The compiler may leave out an allocation that it knows to be unused.
        let piece = std::hint::black_box(piece);
        assert_eq!(counter.bytes(), 100);
        // SAFETY: allocated just now.
        let piece = unsafe {
            callback_reallocate(std::ptr::null_mut(), piece, 300, 64, vk::SystemAllocationScope::OBJECT)
        };
        let piece = std::hint::black_box(piece);
        assert_eq!(counter.bytes(), 300);
        // SAFETY: allocated just now.
        unsafe { callback_free(std::ptr::null_mut(), piece) };
        assert_eq!(counter.bytes(), 0);
    }
}
