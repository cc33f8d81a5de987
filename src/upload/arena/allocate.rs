//! Allocates bytes, and finds a page for them.

use std::mem::MaybeUninit;

use super::pages::{ArenaPage, PageId};
use super::{NO_PAGE, UploadArena};
use crate::retire::{ClockView, Ticket};
use crate::upload::allocator_ref::AllocatorRef;
use crate::upload::backing::PageBacking;
use crate::upload::create_info::Oversize;
use crate::upload::error::{UploadError, WaitError};
use crate::upload::piece::{Alignments, Upload, padding};
use sublet_engines::cast::{host_size, widen};

/// Allocates `size` bytes in a page. Returns `None` and changes nothing if the page is too full. `size` must not be
/// zero, and `alignment` must be a power of two.
#[inline]
fn take(page: &mut ArenaPage, size: u64, alignment: u64) -> Option<Upload> {
    let padding = padding(page.next, alignment);
    let rest = page.rest().checked_sub(padding)?;
    if size > rest {
        return None;
    }
    // Cannot overflow: the sum is at most the size of the page, which fits `usize`.
    let offset = page.next + padding;
    page.next = offset + size;
    page.used += size;
    Some(page.backing.upload(offset, size))
}

impl<A: AllocatorRef> UploadArena<A> {
    /// Returns the offset alignments that the device requires, by use of the bytes.
    #[inline]
    #[must_use]
    pub fn alignments(&self) -> Alignments {
        self.buffers.alignments
    }

    /// Returns the largest alignment of an upload: 4096, or more if the device requires larger offset alignments. It is
    /// smaller if the driver maps a page at a less aligned address.
    #[inline]
    #[must_use]
    pub fn max_alignment(&self) -> u64 {
        self.buffers.most_alignment
    }

    /// Allocates `size` bytes whose offset, pointer and device address are multiples of `alignment`.
    ///
    /// # Errors
    /// [`UploadError`]. Nothing was changed.
    ///
    /// # Complexity
    /// O(1), plus driver calls if the arena needs another page.
    #[inline]
    pub fn allocate(&mut self, size: u64, alignment: u64) -> Result<Upload, UploadError> {
        self.place(size, alignment, |_, upload| upload)
    }

    /// Copies `bytes` into the arena.
    ///
    /// # Errors
    /// Same as [`Self::allocate`].
    #[inline]
    pub fn write(&mut self, bytes: &[u8], alignment: u64) -> Result<Upload, UploadError> {
        self.write_slice(bytes, alignment)
    }

    /// Copies a value, including its padding bytes, into the arena. The alignment is at least that of `T`.
    ///
    /// # Errors
    /// Same as [`Self::allocate`]; [`UploadError::ZeroSize`] for a zero-sized type.
    #[inline]
    pub fn write_value<T: Copy>(&mut self, value: &T, alignment: u64) -> Result<Upload, UploadError> {
        self.write_slice(std::slice::from_ref(value), alignment)
    }

    /// Copies the values of a slice, contiguously, into the arena. The alignment is at least that of `T`.
    ///
    /// # Errors
    /// Same as [`Self::allocate`]; [`UploadError::ZeroSize`] for an empty slice.
    #[inline]
    pub fn write_slice<T: Copy>(&mut self, values: &[T], alignment: u64) -> Result<Upload, UploadError> {
        // An alignment that is not a power of two is an error, even if it is below that of `T`.
        let least = widen(align_of::<T>());
        let alignment = if alignment.is_power_of_two() { alignment.max(least) } else { alignment };
        self.place(widen(size_of_val(values)), alignment, |backing, upload| {
            backing.write(&upload, values);
            upload
        })
    }

    /// Allocates `size` bytes and passes them to `fill`, which writes them in place. Their previous content is
    /// arbitrary, for example an earlier upload. Reading them may be very slow.
    ///
    /// # Errors
    /// Same as [`Self::allocate`].
    ///
    /// ```
    /// # use sublet::{*, upload::*};
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # let mut uploads = unsafe { UploadArena::new(&allocator, &UploadArenaCreateInfo::default()) }?;
    /// let upload = uploads.write_with(1000, 4, |bytes| {
    ///     for (at, byte) in (0_u8..).zip(&mut bytes[..100]) {
    ///         byte.write(at);
    ///     }
    /// })?;
    /// assert_eq!(upload.size, 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn write_with(
        &mut self,
        size: u64,
        alignment: u64,
        fill: impl FnOnce(&mut [MaybeUninit<u8>]),
    ) -> Result<Upload, UploadError> {
        self.place(size, alignment, |backing, upload| {
            fill(backing.bytes(&upload));
            upload
        })
    }

    /// Waits until the next upload of this size and alignment has space, within
    /// [`memory_limit`](crate::upload::UploadArenaCreateInfo::memory_limit) and in the heap.
    ///
    /// Calls `wait` with the oldest ticket that holds a page. `wait` blocks until the device is done with that
    /// recording, and reports this to the clock. If the ticket is still not done then, the function returns an error.
    /// The wait is therefore bounded.
    ///
    /// # Errors
    /// [`WaitError`]: no ticket is left to wait for, `wait` failed, or the completion was not reported to the clock.
    ///
    /// ```
    /// # use sublet::{*, retire::*, upload::*};
    /// # let (gpu, allocator) = sublet::doc_example();
    /// let info = UploadArenaCreateInfo { page_size: 4096, memory_limit: Some(4096), ..Default::default() };
    /// // SAFETY: the usages need nothing enabled, and the clock reports completion correctly.
    /// let mut uploads = unsafe { UploadArena::new(&allocator, &info) }?;
    /// # let clock = Clock::new();
    /// # let timeline = clock.add_timeline()?;
    /// let wait = |ticket: Ticket| {
    ///     // vkWaitSemaphores goes here.
    ///     clock.completed(ticket.timeline(), 1);
    ///     Ok::<(), ash::vk::Result>(())
    /// };
    /// let ticket = clock.open(timeline);
    /// uploads.write(&[1; 4096], 1)?;
    /// uploads.flush(ticket)?;
    /// clock.submit(ticket, 1)?;
    /// uploads.wait_for_space(100, 4, &clock, wait)?;
    /// uploads.write(&[2; 100], 4)?;
    /// # unsafe { uploads.destroy() };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait_for_space<W>(
        &mut self,
        size: u64,
        alignment: u64,
        clock: &ClockView,
        mut wait: impl FnMut(Ticket) -> Result<(), W>,
    ) -> Result<(), WaitError<W>> {
        // Bounded: each iteration but the last removes tickets from the queue, and none adds any.
        loop {
            let error = match self.make_ready(size, alignment) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if !error.may_pass() {
                return Err(WaitError::NoRoom(error));
            }
            match self.take_back(clock).0 {
                Ok(0) => {}
                Err(other) if other.collected == 0 => return Err(WaitError::OtherClock(other)),
                _ => continue,
            }
            let Some(ticket) = self.retire.oldest() else {
                return Err(WaitError::NoRoom(error));
            };
            wait(ticket).map_err(WaitError::Wait)?;
            if matches!(self.take_back(clock).0, Ok(0)) {
                return Err(WaitError::NoProgress { ticket });
            }
        }
    }

    /// [`Self::wait_for_space`], then [`Self::allocate`].
    ///
    /// # Errors
    /// Same as [`Self::wait_for_space`].
    pub fn allocate_or_wait<W>(
        &mut self,
        size: u64,
        alignment: u64,
        clock: &ClockView,
        wait: impl FnMut(Ticket) -> Result<(), W>,
    ) -> Result<Upload, WaitError<W>> {
        self.wait_for_space(size, alignment, clock, wait)?;
        self.allocate(size, alignment).map_err(WaitError::NoRoom)
    }

    /// Finds space and passes its buffer to `then`. Fast path: the current page has space.
    #[inline(always)]
    fn place<R>(
        &mut self,
        size: u64,
        alignment: u64,
        then: impl FnOnce(&mut PageBacking, Upload) -> R,
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

    /// Returns a page with space, or the reason why there is none. All invariants hold on return, but the caller must
    /// then allocate from the page.
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
        // The page with more space becomes current, so a large upload does not waste the rest of a page that was just
        // started.
        let rest = self.pages.get(self.current).map_or(0, ArenaPage::rest);
        if page_size - size >= rest {
            self.leave_current();
            self.current = fresh;
        } else {
            self.touched.push(fresh);
        }
        Ok(fresh)
    }

    /// Returns true if the current page has space.
    fn has_room(&self, size: u64, alignment: u64) -> bool {
        self.pages.get(self.current).is_some_and(|page| {
            page.rest().checked_sub(padding(page.next, alignment)).is_some_and(|rest| size <= rest)
        })
    }

    /// Gives up the current page; the rest of it is lost until it is collected.
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

    /// Ensures that a page has space. Changes no existing page, and creates at most one.
    fn make_ready(&mut self, size: u64, alignment: u64) -> Result<(), UploadError> {
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

    /// Checks that every page is aligned to `alignment`. The caller checks again after creating a page, because the
    /// driver chooses the address of the mapping.
    fn check_alignment(&self, alignment: u64) -> Result<(), UploadError> {
        let max = self.buffers.most_alignment;
        if alignment > max { Err(UploadError::AlignmentTooLarge { alignment, max }) } else { Ok(()) }
    }
}
