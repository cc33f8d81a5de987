//! The life of a page: flushed, in flight, collected, then kept or destroyed.

use super::UploadArena;
use super::pages::{ArenaPage, PageId};
use crate::retire::{ClockView, OtherClock, Ticket};
use crate::upload::allocator_ref::AllocatorRef;
use crate::upload::error::{FlushError, UploadError};
use crate::upload::piece::Upload;

impl<A: AllocatorRef> UploadArena<A> {
    /// Ends the uploads of a recording: makes them visible to the device, and keeps their pages until `ticket` is done.
    /// Call it before the recording is submitted.
    ///
    /// Memory that is not host-coherent costs one `vkFlushMappedMemoryRanges` for all pages; otherwise the function
    /// makes no driver call. Unless [`share_pages`](crate::upload::UploadArenaCreateInfo::share_pages) is set, the next
    /// recording begins on another page. Does nothing if there were no uploads since the last flush.
    ///
    /// # Errors
    /// [`FlushError`]: the driver failed, or the ticket belongs to another clock than the pending tickets. Nothing was
    /// changed, so the caller may retry.
    #[doc(alias = "submitChunks")]
    pub fn flush(&mut self, ticket: Ticket) -> Result<(), FlushError> {
        self.retire.check(ticket).map_err(FlushError::MixedClocks)?;
        let current = self.current;
        let is_used = self.pages.get(current).is_some_and(ArenaPage::is_used);
        let in_use = self.touched.iter().copied().chain(is_used.then_some(current));
        for page in in_use.filter_map(|page| self.pages.get(page)) {
            self.buffers.add_range(&mut self.ranges, &page.backing, page.flushed, page.next);
        }
        self.buffers.flush(&mut self.ranges)?;
        self.retain(ticket);
        Ok(())
    }

    /// Variant of [`Self::flush`] for bytes that are not written yet: keeps the pages of all uploads since the last
    /// flush until `ticket` is done. Use it for recordings that share an arena, have their own tickets, and write their
    /// uploads later. Call [`Self::make_visible`] before the recording is submitted.
    ///
    /// # Errors
    /// [`FlushError::MixedClocks`]. Nothing was changed.
    pub fn keep(&mut self, ticket: Ticket) -> Result<(), FlushError> {
        self.retire.check(ticket).map_err(FlushError::MixedClocks)?;
        self.retain(ticket);
        Ok(())
    }

    /// Makes [kept](Self::keep) uploads visible to the device: one `vkFlushMappedMemoryRanges` for those that are not
    /// in host-coherent memory, if any.
    ///
    /// # Errors
    /// [`FlushError::Driver`]. The caller may retry.
    ///
    /// # Complexity
    /// O(pages), and O(uploads × pages) if a page is not host-coherent.
    pub fn make_visible(&mut self, uploads: &[Upload]) -> Result<(), FlushError> {
        if self.pages.iter().all(|page| page.backing.coherent) {
            return Ok(());
        }
        for upload in uploads {
            if let Some(page) = self.pages.iter().find(|page| page.backing.buffer == upload.buffer) {
                let end = upload.offset.saturating_add(upload.size).min(page.backing.size());
                self.buffers.add_range(&mut self.ranges, &page.backing, upload.offset, end);
            }
        }
        self.buffers.flush(&mut self.ranges)
    }

    /// Keeps all used pages until one more ticket is done.
    fn retain(&mut self, ticket: Ticket) {
        let used: u64 = self.pages.iter().map(|page| page.used).sum();
        self.peak_used = self.peak_used.max(used);
        let current = self.current;
        let is_used = self.pages.get(current).is_some_and(ArenaPage::is_used);
        for id in self.touched.iter().copied().chain(is_used.then_some(current)) {
            if let Some(page) = self.pages.get_mut(id) {
                page.flushed = page.next;
                page.tickets += 1;
                self.retire.push(ticket, id);
            }
        }
        self.touched.clear();
        if is_used {
            if self.share_pages {
                self.share_current();
            } else {
                self.leave_current();
            }
        }
    }

    /// Continues the current page after its flushed bytes.
    fn share_current(&mut self) {
        if let Some(page) = self.pages.get_mut(self.current) {
            let next = self.buffers.round(&page.backing, page.next);
            (page.next, page.flushed) = (next, next);
        }
    }

    /// Frees pages whose tickets are all done, and destroys surplus pages that have been idle for long. Returns the
    /// number of freed pages. Call it once per frame.
    ///
    /// # Errors
    /// [`OtherClock`] if pages wait for tickets of another clock, which this clock never reports as done. All other
    /// pages were collected.
    ///
    /// # Complexity
    /// O(tickets that wait + pages that become free), plus one driver call for each destroyed page.
    pub fn collect(&mut self, clock: &ClockView) -> Result<usize, OtherClock> {
        self.collections += 1;
        let (tickets, freed) = self.take_back(clock);
        self.pages.trim_idle(&self.buffers, &self.policy, self.collections);
        match tickets {
            Ok(_) => Ok(freed),
            Err(other) => Err(OtherClock { collected: freed, ..other }),
        }
    }

    /// [`Self::collect`] without destroying idle pages. Returns the number of page tickets that were done, and the
    /// number of freed pages.
    pub(super) fn take_back(&mut self, clock: &ClockView) -> (Result<usize, OtherClock>, usize) {
        let Self { pages, retire, done, .. } = self;
        let tickets = retire.collect(clock, |id: PageId| {
            if let Some(page) = pages.get_mut(id) {
                page.tickets -= 1;
                if page.is_done() {
                    done.push(id);
                }
            }
        });
        let mut freed = 0;
        for id in self.done.drain(..) {
            if id == self.current {
                // The page is shared, and its content is no longer needed: restart it at offset 0.
                if let Some(page) = self.pages.get_mut(id) {
                    page.rewind();
                }
            } else {
                self.pages.release(id, self.collections);
                freed += 1;
            }
        }
        (tickets, freed)
    }

    /// Reserves space for `bytes` so that later uploads create no page. Use it outside of time-critical code.
    ///
    /// # Errors
    /// [`UploadError`] if the heaps are too small, the limit is reached, or the driver fails. Pages that the call had
    /// created are destroyed again.
    pub fn reserve(&mut self, bytes: u64) -> Result<(), UploadError> {
        let rest = self.pages.get(self.current).map_or(0, ArenaPage::rest);
        let page_size = self.page_size();
        let there = rest.saturating_add(self.pages.free_pages_bytes());
        let missing = bytes.saturating_sub(there).div_ceil(page_size);
        let (reserved, heaps) = (self.pages.reserved, self.buffers.capacity());
        let in_all = missing.checked_mul(page_size).and_then(|bytes| bytes.checked_add(reserved));
        if in_all.is_none_or(|in_all| in_all > heaps) {
            return Err(UploadError::Reserve { bytes, reserved, heaps });
        }
        let peak = self.pages.peak_reserved;
        let mut made = Vec::new();
        for _ in 0..missing {
            match self.make_page(page_size, false) {
                Ok(page) => made.push(page),
                Err(error) => {
                    for page in made {
                        self.pages.undo(&self.buffers, page);
                    }
                    self.pages.peak_reserved = peak;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Destroys all free pages. Returns their size in bytes.
    pub fn trim(&mut self) -> u64 {
        if self.pages.get(self.current).is_some_and(|page| page.is_done()) {
            self.leave_current();
        }
        self.pages.trim(&self.buffers, u64::MAX)
    }
}
