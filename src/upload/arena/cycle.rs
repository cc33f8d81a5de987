//! The way of pages through recordings: flushed, waited for, collected, kept or given back.
#![forbid(unsafe_code)]

use super::pages::{Page, PageId};
use super::{UploadArena, UploadError};
use crate::retire::{ClockView, OtherClock, Ticket};
use crate::upload::allocator_ref::AllocatorRef;
use crate::upload::error::FlushError;
use crate::upload::piece::Upload;

impl<A: AllocatorRef> UploadArena<A> {
    /// Ends what a recording uploads: makes it visible to the device, and keeps its pages until `ticket` is done. To be
    /// called before the recording is submitted.
    ///
    /// In memory that is not host-coherent that is one `vkFlushMappedMemoryRanges` for all pages; else the driver is
    /// not called. Unless [`share_pages`](crate::upload::UploadArenaCreateInfo::share_pages) is set, the next recording
    /// begins on another page. Without uploads since the last flush nothing happens.
    ///
    /// # Errors
    /// [`FlushError`]: what the driver answered, or that the ticket is of another clock than those that are waited for. Nothing was
    /// changed: the call may be made again.
    #[doc(alias = "submitChunks")]
    pub fn flush(&mut self, ticket: Ticket) -> Result<(), FlushError> {
        self.retire.check(ticket).map_err(FlushError::MixedClocks)?;
        let current = self.current;
        let is_used = self.pages.get(current).is_some_and(Page::is_used);
        let in_use = self.touched.iter().copied().chain(is_used.then_some(current));
        for page in in_use.filter_map(|page| self.pages.get(page)) {
            self.buffers.add_range(&mut self.ranges, &page.backing, page.flushed, page.next);
        }
        self.buffers.flush(&mut self.ranges)?;
        self.retain(ticket);
        Ok(())
    }

    /// [`Self::flush`] before anything is written: keeps the pages of what was given out since the last flush until
    /// `ticket` is done. For recordings that share an arena, each with a ticket of its own, and that write what they
    /// were given later. Call [`Self::make_visible`] before the recording is submitted.
    ///
    /// # Errors
    /// [`FlushError::MixedClocks`]: nothing was changed.
    pub fn keep(&mut self, ticket: Ticket) -> Result<(), FlushError> {
        self.retire.check(ticket).map_err(FlushError::MixedClocks)?;
        self.retain(ticket);
        Ok(())
    }

    /// Makes uploads visible to the device that are [kept](Self::keep): one `vkFlushMappedMemoryRanges` for those in
    /// memory that is not host-coherent, if there are any.
    ///
    /// # Errors
    /// [`FlushError::Driver`]: the call may be made again.
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

    /// The pages that are used wait for one more ticket.
    fn retain(&mut self, ticket: Ticket) {
        let used: u64 = self.pages.iter().map(|page| page.used).sum();
        self.peak_used = self.peak_used.max(used);
        let current = self.current;
        let is_used = self.pages.get(current).is_some_and(Page::is_used);
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

    /// The current page goes on behind what was flushed.
    fn share_current(&mut self) {
        if let Some(page) = self.pages.get_mut(self.current) {
            let next = self.buffers.round(&page.backing, page.next);
            (page.next, page.flushed) = (next, next);
        }
    }

    /// Makes those pages free whose tickets are all done, and gives back what nobody has needed for long. Returns how
    /// many became free. To be called once for each frame.
    ///
    /// # Errors
    /// [`OtherClock`] if pages wait for tickets of another clock, which this one never says are done. All else was
    /// collected nonetheless.
    ///
    /// # Complexity
    /// O(tickets that wait + pages that become free), and a call of the driver for each page that is given back.
    pub fn collect(&mut self, clock: &ClockView) -> Result<usize, OtherClock> {
        self.collections += 1;
        let (tickets, freed) = self.take_back(clock);
        self.pages.trim_idle(&self.buffers, &self.policy, self.collections);
        match tickets {
            Ok(_) => Ok(freed),
            Err(other) => Err(OtherClock { collected: freed, ..other }),
        }
    }

    /// [`Self::collect`] without a word on what is idle. Returns how many tickets of pages were done, and how many
    /// pages became free.
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
                // It is shared, and nobody needs what was written to it: it may as well be fresh.
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

    /// Sees to it that there is room for `bytes` without another page: for what can be foreseen, outside of the time
    /// that counts.
    ///
    /// # Errors
    /// [`UploadError`] if the heaps have not as much, or the limit or the driver refuse. Pages that the call had made
    /// are destroyed again.
    pub fn reserve(&mut self, bytes: u64) -> Result<(), UploadError> {
        let rest = self.pages.get(self.current).map_or(0, Page::rest);
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

    /// Destroys all free pages. Returns their bytes.
    pub fn trim(&mut self) -> u64 {
        if self.pages.get(self.current).is_some_and(|page| page.is_done()) {
            self.leave_current();
        }
        self.pages.trim(&self.buffers, u64::MAX)
    }
}
