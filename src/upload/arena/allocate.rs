//! Giving out bytes, and finding a page for them.
#![forbid(unsafe_code)]

use std::mem::MaybeUninit;

use super::pages::{Page, PageId};
use super::{NO_PAGE, UploadArena};
use crate::base::cast::{host_size, widen};
use crate::retire::{ClockView, OtherClock, Ticket};
use crate::upload::allocator_ref::AllocatorRef;
use crate::upload::backing::Backing;
use crate::upload::create_info::Oversize;
use crate::upload::error::{UploadError, WaitError};
use crate::upload::methods::{Room, upload_methods};
use crate::upload::piece::{Alignments, Upload, padding};

/// Room for `size` bytes in a page; `None`, and nothing happens, if there is not. The size is not zero, and the
/// alignment a power of two.
#[inline]
fn take(page: &mut Page, size: u64, alignment: u64) -> Option<Upload> {
    let padding = padding(page.next, alignment);
    let rest = page.rest().checked_sub(padding)?;
    if size > rest {
        return None;
    }
    // Not above the size of the page, which is a size of the host's.
    let offset = page.next + padding;
    page.next = offset + size;
    page.used += size;
    Some(page.backing.upload(offset, size))
}

upload_methods!(
    UploadArena,
    " # let info = UploadArenaCreateInfo { page_size: 4096, memory_limit: Some(4096), ..Default::default() };
 # let mut uploads = unsafe { UploadArena::new(&allocator, &info) }?;"
);

impl<A: AllocatorRef> Room for UploadArena<A> {
    /// Every upload goes through here, and nearly all of them end here: the current page has room. `then` is told of
    /// the buffer.
    #[inline(always)]
    fn place<R>(
        &mut self,
        size: u64,
        alignment: u64,
        then: impl FnOnce(&mut Backing, Upload) -> R,
    ) -> Result<R, UploadError> {
        if size != 0 && alignment.is_power_of_two() && alignment <= self.buffers.most_alignment {
            if let Some(page) = self.pages.get_mut(self.current) {
                if let Some(upload) = take(page, size, alignment) {
                    return Ok(then(&mut page.backing, upload));
                }
            }
        }
        let page = self.another_page(size, alignment)?;
        let goes_on = page == self.current;
        let taken = self.pages.get_mut(page).and_then(|page| {
            let upload = take(page, size, alignment)?;
            if !goes_on {
                page.close();
            }
            Some((page, upload))
        });
        let Some((slot, upload)) = taken else {
            unreachable!("a fresh page has room for {size} bytes");
        };
        Ok(then(&mut slot.backing, upload))
    }

    fn make_ready(&mut self, size: u64, alignment: u64) -> Result<(), UploadError> {
        self.make_page_ready(size, alignment)
    }

    fn recycle(&mut self, clock: &ClockView) -> Result<usize, OtherClock> {
        self.take_back(clock).0
    }

    fn oldest(&self) -> Option<Ticket> {
        self.retire.oldest()
    }
}

impl<A: AllocatorRef> UploadArena<A> {
    /// A page that has room, or the reason why there is none. Everything is in order afterwards, but that the page is
    /// not yet used; only whoever takes bytes of it calls.
    #[cold]
    #[inline(never)]
    fn another_page(&mut self, size: u64, alignment: u64) -> Result<PageId, UploadError> {
        self.make_ready(size, alignment)?;
        let page_size = self.page_size();
        if self.growth.next(size, page_size).own {
            let own = self.pages.take_own(size);
            let page = own.unwrap_or_else(|| unreachable!("one was made ready"));
            self.touched.push(page);
            return Ok(page);
        }
        let fresh = self.pages.take_free().unwrap_or_else(|| unreachable!("one was made ready"));
        // Of two pages with room left, the one with more goes on: a large upload does not cost the rest of a page that
        // has just been begun.
        let rest = self.pages.get(self.current).map_or(0, Page::rest);
        if page_size - size >= rest {
            self.leave_current();
            self.current = fresh;
        } else {
            self.touched.push(fresh);
        }
        Ok(fresh)
    }

    /// Whether the current page has room.
    fn has_room(&self, size: u64, alignment: u64) -> bool {
        self.pages.get(self.current).is_some_and(|page| {
            page.rest().checked_sub(padding(page.next, alignment)).is_some_and(|rest| size <= rest)
        })
    }

    /// The current page is current no more, and its rest is lost.
    pub(super) fn leave_current(&mut self) {
        let left = std::mem::replace(&mut self.current, NO_PAGE);
        if let Some(page) = self.pages.get_mut(left) {
            page.close();
            if page.is_used() {
                self.touched.push(left);
            } else if page.is_done() {
                self.pages.release(left, self.collections);
            }
        }
    }

    /// Sees to it that there is a page with room. Changes no page that there is; makes at most one.
    fn make_page_ready(&mut self, size: u64, alignment: u64) -> Result<(), UploadError> {
        let page_size = self.page_size();
        if size == 0 {
            return Err(UploadError::ZeroSize);
        }
        if !alignment.is_power_of_two() {
            return Err(UploadError::Alignment { alignment });
        }
        if !self.growth.next(size, page_size).own {
            self.check_alignment(alignment)?;
            if self.has_room(size, alignment) || self.pages.has_free() {
                return Ok(());
            }
            self.make_page(page_size, false)?;
            return self.check_alignment(alignment);
        }
        let oversize = UploadError::Oversize { size, max: page_size };
        if self.oversize == Oversize::Error {
            return Err(oversize);
        }
        self.check_alignment(alignment)?;
        if self.pages.has_own(size) {
            return Ok(());
        }
        let own = size.checked_next_multiple_of(self.buffers.alignments.any).ok_or(oversize)?;
        if host_size(own).and_then(|own| isize::try_from(own).ok()).is_none() {
            return Err(oversize);
        }
        self.make_page(own, true)?;
        self.check_alignment(alignment)
    }

    /// Every page begins at a multiple of as much. Asked again when one was made: where the driver maps it is its own
    /// matter.
    fn check_alignment(&self, alignment: u64) -> Result<(), UploadError> {
        let max = self.buffers.most_alignment;
        if alignment > max { Err(UploadError::AlignmentTooLarge { alignment, max }) } else { Ok(()) }
    }
}
