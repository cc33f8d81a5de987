//! Creation and destruction of an arena and its pages.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::marker::PhantomData;
use std::panic::Location;

use super::pages::{ArenaPage, ArenaPages, PageId};
use super::{NO_PAGE, UploadArena};
use crate::retire::Retire;
use crate::upload::allocator_ref::AllocatorRef;
use crate::upload::buffers::{ArenaBuffers, FlushRanges};
use crate::upload::create_info::UploadArenaCreateInfo;
use crate::upload::error::{CreateUploadError, UploadError, is_shortage, may_pass};
use crate::vector::{Growth, Policy};

impl<A: AllocatorRef> UploadArena<A> {
    /// Creates an arena without pages.
    ///
    /// # Errors
    /// [`CreateUploadError`] if the sizes are invalid, no memory type fits, or the allocator cannot provide the
    /// requested device addresses.
    ///
    /// # Safety
    /// 1. `info.usage` is valid for the device: usages that need an extension or a feature have it enabled
    ///    (VUID-VkBufferCreateInfo-None-09499).
    /// 2. Only recordings whose ticket is passed to the next [`flush`](Self::flush) use the uploads. A clock that is
    ///    passed to the arena reports a ticket as done only if the device is done with its recording, or will never
    ///    receive it.
    /// 3. `info.pool`, if set, outlives the arena's pages.
    #[track_caller]
    pub unsafe fn new(allocator: A, info: &UploadArenaCreateInfo<'_>) -> Result<Self, CreateUploadError> {
        // SAFETY: the caller's promise.
        let (buffers, page_size) = unsafe { ArenaBuffers::new(allocator, info, Location::caller()) }?;
        Ok(Self {
            pages: ArenaPages::default(),
            current: NO_PAGE,
            buffers,
            policy: Policy {
                max_units: info.memory_limit.unwrap_or(u64::MAX),
                empty_blocks_kept: info.pages_kept,
                own_blocks_kept: info.own_pages_kept,
                idle_collects: info.idle_collects,
                ..Policy::default()
            },
            growth: Growth::fixed(page_size),
            oversize: info.oversize,
            share_pages: info.share_pages,
            touched: Vec::new(),
            retire: Retire::new(),
            done: Vec::new(),
            ranges: FlushRanges::default(),
            collections: 0,
            peak_used: 0,
            not_sync: PhantomData,
        })
    }

    /// Destroys all pages and the arena's own pools. Dropping an arena does the same if everything was flushed and
    /// collected. Otherwise the drop leaks the remaining pages and logs their number, and how many of them have
    /// unflushed uploads.
    ///
    /// # Safety
    /// The device no longer uses any upload of this arena (VUID-vkDestroyBuffer-buffer-00922).
    pub unsafe fn destroy(mut self) {
        // SAFETY: the caller's promise: the device no longer uses any upload of this arena.
        unsafe { self.pages.destroy_all(&self.buffers) };
        // SAFETY: the caller's promise; dropping creates no page.
        unsafe { self.buffers.close() };
    }

    /// Creates a free page within the limit. If the limit or a full heap prevents it, destroys free pages first: any
    /// free page for a large request, and free pages of large requests for a regular page. As a last resort, tries
    /// another heap.
    pub(super) fn make_page(&mut self, size: u64, own: bool) -> Result<PageId, UploadError> {
        if own && self.pages.get(self.current).is_some_and(ArenaPage::is_done) {
            self.leave_current();
        }
        let may_go = |pages: &ArenaPages| if own { pages.free_bytes } else { pages.own_free_bytes() };
        let in_use = self.pages.reserved - may_go(&self.pages);
        let memory_limit = self.policy.max_units;
        if !self.policy.allows(self.pages.count(), in_use, size) {
            return Err(UploadError::MemoryLimit { memory_limit, in_use, needed: size });
        }
        let excess = self.pages.reserved.saturating_add(size).saturating_sub(memory_limit);
        self.pages.trim(&self.buffers, excess);
        // SAFETY: condition 1 of `new`; no page has the size zero.
        let made = unsafe { self.pages.create(&mut self.buffers, size, own, self.collections, (0..1, None)) };
        let Err(error) = made else { return made.map_err(UploadError::Page) };
        // Computed again: trimming to the limit may have destroyed some of these pages, and the old figure would now
        // destroy pages that must stay.
        let left = may_go(&self.pages);
        let has_room_now = may_pass(&error) && self.pages.trim(&self.buffers, left) > 0;
        if !has_room_now && !is_shortage(&error) {
            return Err(UploadError::Page(error));
        }
        let heaps = usize::from(!has_room_now)..self.buffers.heaps();
        let last_error = Some(error).filter(|_| !has_room_now);
        // SAFETY: as above.
        unsafe { self.pages.create(&mut self.buffers, size, own, self.collections, (heaps, last_error)) }
            .map_err(UploadError::Page)
    }
}

impl<A: AllocatorRef> Drop for UploadArena<A> {
    fn drop(&mut self) {
        let used = self.pages.iter().filter(|page| !page.is_done()).count();
        if used == 0 {
            // SAFETY: all pages are done: the clock reported their tickets, or they hold no uploads.
            unsafe { self.pages.destroy_all(&self.buffers) };
            // SAFETY: as above; the arena creates no more buffers.
            unsafe { self.buffers.close() };
            return;
        }
        // Free pages can be destroyed. The pool stays because it contains the other pages; the allocator destroys it.
        self.pages.trim(&self.buffers, u64::MAX);
        let unflushed = self.pages.iter().filter(|page| page.is_used()).count();
        let why =
            if unflushed > 0 { "with uploads that were never flushed" } else { "before its last collection" };
        tracing::warn!(
            name: "upload_arena_leaked", target: "sublet::leak",
            pages = used, unflushed, bytes = self.pages.in_use(),
            "an upload arena was dropped {why}: its pages are leaked"
        );
    }
}
