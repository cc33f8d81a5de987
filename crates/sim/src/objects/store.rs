//! The bytes of one `VkDeviceMemory`: ordinary zeroed host memory that exists from its first use on.
//!
//! Memory that the host sees but that is not coherent has its bytes twice: the host's view, which is what
//! `vkMapMemory` returns, and the device's view, which is what commands read and write. Flush and invalidate copy
//! between the two. All other memory has one view for both.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::facts::arithmetic::{ALIGNMENT, host_size, widen};

/// The host memory that the views of one GPU may take.
#[derive(Debug)]
pub(crate) struct HostMemoryLimit {
    pub(crate) limit: u64,
    taken: AtomicU64,
    /// Bytes of the first view that there was no host_limit for, until it is reported.
    refused: AtomicU64,
    /// True if it was reported: once is enough.
    reported: AtomicBool,
}

impl HostMemoryLimit {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, taken: AtomicU64::new(0), refused: AtomicU64::new(0), reported: AtomicBool::new(false) }
    }

    fn take(&self, size: u64) -> bool {
        let more = |taken: u64| taken.checked_add(size).filter(|&sum| sum <= self.limit);
        let taken = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        if !taken {
            let _ = self.refused.compare_exchange(0, size, Ordering::Relaxed, Ordering::Relaxed);
        }
        taken
    }

    /// Bytes of the first view that was refused. Only the first call after the refusal returns them.
    #[inline]
    pub(crate) fn take_refusal(&self) -> Option<u64> {
        let size = self.refused.load(Ordering::Relaxed);
        (size != 0 && !self.reported.swap(true, Ordering::Relaxed)).then_some(size)
    }
}

/// One view. The pages are the operating system's zero pages until something writes them.
#[derive(Debug)]
struct View {
    /// The limit that its bytes count against, and their count.
    host_limit: Arc<HostMemoryLimit>,
    size: u64,
    /// The allocator's pointer, and its layout.
    base: NonNull<u8>,
    layout: Layout,
    /// `base`, rounded up to [`ALIGNMENT`].
    start: NonNull<u8>,
}

// SAFETY: a view is owned bytes. Vulkan asks the program to synchronise access to them, as to any device memory.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

impl View {
    fn new(size: usize, host_limit: &Arc<HostMemoryLimit>) -> Option<Self> {
        // The alignment is made by hand: the global allocator clears blocks of large alignment by writing all of them,
        // whereas it gets large blocks of small alignment cleared, and not even committed, from the system.
        let layout = Layout::from_size_align(size.checked_add(ALIGNMENT)?, 16).ok()?;
        let taken = widen(size);
        if !host_limit.take(taken) {
            return None;
        }
        // SAFETY: the layout's size is at least `ALIGNMENT`.
        let Some(base) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
            host_limit.taken.fetch_sub(taken, Ordering::Relaxed);
            return None;
        };
        let skip = base.align_offset(ALIGNMENT);
        // SAFETY: `skip` < ALIGNMENT, and there are `size + ALIGNMENT` bytes.
        let start = unsafe { base.add(skip) };
        Some(Self { host_limit: Arc::clone(host_limit), size: taken, base, layout, start })
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if self.layout.size() == 0 {
            // The bytes are the program's.
            return;
        }
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
        self.host_limit.taken.fetch_sub(self.size, Ordering::Relaxed);
    }
}

/// The bytes of one `VkDeviceMemory`.
#[derive(Debug)]
pub(crate) struct Store {
    size: u64,
    host_limit: Arc<HostMemoryLimit>,
    device: OnceLock<View>,
    /// The host's view, if it differs from the device's.
    host: Option<OnceLock<View>>,
    /// The ranges whose bytes are in other stores, sorted by their starts and disjoint.
    pieces: Option<Vec<Piece>>,
}

/// A range of a store whose bytes are in another one.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) store: Arc<Store>,
    /// The start of the range in `store`.
    pub(crate) offset: u64,
}

impl Store {
    /// `size` bytes; `split` if host and device are to have a view each.
    pub(crate) fn new(size: u64, split: bool, host_limit: &Arc<HostMemoryLimit>) -> Self {
        let host_limit = Arc::clone(host_limit);
        Self { size, host_limit, device: OnceLock::new(), host: split.then(OnceLock::new), pieces: None }
    }

    /// `size` bytes of the program, for host and device.
    ///
    /// # Safety
    ///
    /// They are valid for reads and writes as long as the store is used.
    pub(crate) unsafe fn of_host(start: NonNull<u8>, size: u64) -> Self {
        let host_limit = Arc::new(HostMemoryLimit::new(0));
        let layout = Layout::new::<()>();
        let view = View { host_limit: Arc::clone(&host_limit), size: 0, base: start, layout, start };
        Self { device: OnceLock::from(view), ..Self::new(size, false, &host_limit) }
    }

    /// `size` bytes that are in other stores; some may be in none.
    pub(crate) fn of_pieces(size: u64, pieces: Vec<Piece>) -> Self {
        // It has no view of its own.
        Self { pieces: Some(pieces), ..Self::new(size, false, &Arc::new(HostMemoryLimit::new(0))) }
    }

    /// Calls `each` with a store, an offset in it and a range of what is asked for, for all of `len` bytes from
    /// `offset` on. False if a byte is in no store, or if `each` answers false.
    fn each_piece(
        pieces: &[Piece],
        offset: u64,
        len: usize,
        mut each: impl FnMut(&Store, u64, std::ops::Range<usize>) -> bool,
    ) -> bool {
        let Some(end) = offset.checked_add(widen(len)) else { return false };
        let mut at = offset;
        for piece in pieces.iter().filter(|piece| piece.start + piece.size > offset) {
            if at == end || piece.start > at {
                break;
            }
            let until = end.min(piece.start + piece.size);
            let range = host_size(at - offset).zip(host_size(until - offset));
            let Some((from, to)) = range else { return false };
            if !each(&piece.store, piece.offset + (at - piece.start), from..to) {
                return false;
            }
            at = until;
        }
        at == end
    }

    /// `None` if the system, or the GPU's limit, has no memory for it now.
    fn view(&self, slot: &OnceLock<View>) -> Option<NonNull<u8>> {
        if slot.get().is_none() {
            // If another thread was faster, this view is dropped.
            let _ = slot.set(View::new(host_size(self.size)?, &self.host_limit)?);
        }
        slot.get().map(|view| view.start)
    }

    /// The start of the host's view. `None` if there is no memory for it.
    pub(crate) fn host(&self) -> Option<NonNull<u8>> {
        self.view(self.host.as_ref().unwrap_or(&self.device))
    }

    /// `len` bytes of the device's view from `offset` on. `None` outside of the memory, or if there is no host memory.
    fn device_range(&self, offset: u64, len: usize) -> Option<NonNull<u8>> {
        let start = self.inside(offset, len)?;
        let view = self.view(&self.device)?;
        // SAFETY: `start + len` lies within the `size` bytes of the view, see `inside`.
        Some(unsafe { view.add(start) })
    }

    fn inside(&self, offset: u64, len: usize) -> Option<usize> {
        let start = host_size(offset)?;
        let end = start.checked_add(len)?;
        (end <= host_size(self.size)?).then_some(start)
    }

    /// Copies bytes of the device's view into `to`. Outside of the memory it does nothing and answers false.
    pub(crate) fn read(&self, offset: u64, to: &mut [u8]) -> bool {
        if let Some(pieces) = &self.pieces {
            return Self::each_piece(pieces, offset, to.len(), |store, at, range| {
                store.read(at, &mut to[range])
            });
        }
        let Some(from) = self.device_range(offset, to.len()) else {
            return false;
        };
        // SAFETY: `from` has `to.len()` bytes; `to` is borrowed exclusively, so it is not the view, which is not lent
        // out.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr(), to.len()) };
        true
    }

    /// Copies `from` into the device's view. Outside of the memory it does nothing and answers false.
    pub(crate) fn write(&self, offset: u64, from: &[u8]) -> bool {
        if let Some(pieces) = &self.pieces {
            return Self::each_piece(pieces, offset, from.len(), |store, at, range| {
                store.write(at, &from[range])
            });
        }
        let Some(to) = self.device_range(offset, from.len()) else {
            return false;
        };
        // SAFETY: `to` has `from.len()` bytes. The ranges may overlap: `from` may be mapped memory of the program.
        unsafe { std::ptr::copy(from.as_ptr(), to.as_ptr(), from.len()) };
        true
    }

    /// Copies bytes from the device's view of `from` to the device's view of this memory; the two may be the same
    /// memory, and the ranges may overlap. False, and nothing happens, outside of either memory.
    pub(crate) fn copy_from(&self, offset: u64, from: &Store, from_offset: u64, len: u64) -> bool {
        let Some(len) = host_size(len) else { return false };
        if self.pieces.is_some() || from.pieces.is_some() {
            let mut bytes = vec![0; len];
            return from.read(from_offset, &mut bytes) && self.write(offset, &bytes);
        }
        let Some(source) = from.device_range(from_offset, len) else {
            return false;
        };
        let Some(target) = self.device_range(offset, len) else {
            return false;
        };
        // SAFETY: both have `len` bytes.
        unsafe { std::ptr::copy(source.as_ptr(), target.as_ptr(), len) };
        true
    }

    /// Makes what the host wrote in a range visible to the device. It does nothing if there is only one view.
    pub(crate) fn flush(&self, offset: u64, len: u64) -> bool {
        self.exchange(offset, len, true)
    }

    /// Makes what the device wrote in a range visible to the host. It does nothing if there is only one view.
    pub(crate) fn invalidate(&self, offset: u64, len: u64) -> bool {
        self.exchange(offset, len, false)
    }

    fn exchange(&self, offset: u64, len: u64, to_device: bool) -> bool {
        if self.host.is_none() {
            return true;
        }
        let Some(len) = host_size(len) else { return false };
        let Some(start) = self.inside(offset, len) else {
            return false;
        };
        let Some(host) = self.host() else { return false };
        let Some(device) = self.view(&self.device) else {
            return false;
        };
        // SAFETY: `start + len` lies within both views, see `inside`.
        let host = unsafe { host.add(start) };
        // SAFETY: as above.
        let device = unsafe { device.add(start) };
        let (from, to) = if to_device { (host, device) } else { (device, host) };
        // SAFETY: both have `len` bytes, and two views are two allocations.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), len) };
        true
    }
}
