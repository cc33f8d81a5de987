//! Giving out bytes, and finding a page for them.
#![forbid(unsafe_code)]

use std::mem::MaybeUninit;

use super::pages::{Page, PageId};
use super::{NO_PAGE, UploadArena};
use crate::base::align::align_up;
use crate::base::cast::{host_size, widen};
use crate::upload::allocator_ref::AllocatorRef;
use crate::upload::create_info::Oversize;
use crate::upload::error::UploadError;
use crate::upload::piece::{Upload, padding};

/// Room for `size` bytes in a page; `None`, and nothing happens, if there is not. The size is not zero, and the alignment a power
/// of two.
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

impl<A: AllocatorRef> UploadArena<A> {
    /// Gives out `size` bytes whose offset, pointer and device address are multiples of `alignment`.
    ///
    /// # Errors
    /// [`UploadError`]: nothing was changed.
    ///
    /// # Complexity
    /// O(1), and a call of the driver where another page has to be made.
    ///
    /// ```
    /// # use sublet::{*, upload::*};
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// # let mut arena = unsafe { UploadArena::new(&allocator, &UploadArenaCreateInfo::default()) }?;
    /// arena.allocate(1, 1)?;
    /// let upload = arena.allocate(100, 256)?;
    /// // The offset is aligned, and the size is as it was.
    /// assert_eq!((upload.offset, upload.size), (256, 100));
    /// assert_eq!(arena.allocate(1, 1)?.offset, 356);
    /// assert_eq!(arena.allocate(1, 3), Err(UploadError::Alignment { alignment: 3 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn allocate(&mut self, size: u64, alignment: u64) -> Result<Upload, UploadError> {
        self.place(size, alignment, |_, upload| upload)
    }

    /// Copies `bytes` to where the device can read them.
    ///
    /// # Errors
    /// As for [`Self::allocate`].
    ///
    /// ```
    /// # use sublet::{*, upload::*};
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// # let mut arena = unsafe { UploadArena::new(&allocator, &UploadArenaCreateInfo::default()) }?;
    /// let upload = arena.write(b"sublet", 16)?;
    /// assert_eq!(upload.size, 6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn write(&mut self, bytes: &[u8], alignment: u64) -> Result<Upload, UploadError> {
        self.write_slice(bytes, alignment)
    }

    /// Copies a value, with its padding as it is, to where the device can read it. The alignment is that of `T` at least.
    ///
    /// # Errors
    /// As for [`Self::allocate`]; [`UploadError::ZeroSize`] for a type without a size.
    ///
    /// ```
    /// # use sublet::{*, upload::*};
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// # let mut arena = unsafe { UploadArena::new(&allocator, &UploadArenaCreateInfo::default()) }?;
    /// #[derive(Clone, Copy)]
    /// #[repr(C)]
    /// struct Light {
    ///     colour: [f32; 3],
    ///     range: f32,
    /// }
    /// let light = Light { colour: [1.0, 0.9, 0.8], range: 12.0 };
    /// assert_eq!(arena.write_value(&light, arena.alignments().uniform)?.size, 16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn write_value<T: Copy>(&mut self, value: &T, alignment: u64) -> Result<Upload, UploadError> {
        self.write_slice(std::slice::from_ref(value), alignment)
    }

    /// Copies values one behind the other, as they are in the slice. The alignment is that of `T` at least.
    ///
    /// # Errors
    /// As for [`Self::allocate`]; [`UploadError::ZeroSize`] for an empty slice.
    ///
    /// ```
    /// # use sublet::{*, upload::*};
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// # let mut arena = unsafe { UploadArena::new(&allocator, &UploadArenaCreateInfo::default()) }?;
    /// let indices = arena.write_slice(&[0_u32, 1, 2, 2, 1, 3], 1)?;
    /// assert_eq!((indices.size, indices.offset % 4), (24, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn write_slice<T: Copy>(&mut self, values: &[T], alignment: u64) -> Result<Upload, UploadError> {
        // What is no power of two stays the error that it is.
        let least = widen(align_of::<T>());
        let alignment = if alignment.is_power_of_two() { alignment.max(least) } else { alignment };
        self.place(widen(size_of_val(values)), alignment, |page, upload| {
            page.backing.write(&upload, values);
            upload
        })
    }

    /// Gives `size` bytes to `fill`, which writes them in place. They hold anything before: an earlier upload, most of the time.
    /// Reading them may be very slow.
    ///
    /// # Errors
    /// As for [`Self::allocate`].
    ///
    /// ```
    /// # use sublet::{*, upload::*};
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// # let mut arena = unsafe { UploadArena::new(&allocator, &UploadArenaCreateInfo::default()) }?;
    /// let upload = arena.write_with(1000, 4, |bytes| {
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
        self.place(size, alignment, |page, upload| {
            fill(page.backing.bytes(&upload));
            upload
        })
    }

    /// Every upload goes through here, and nearly all of them end here: the current page has room. `then` is told of the page.
    #[inline(always)]
    fn place<R>(
        &mut self,
        size: u64,
        alignment: u64,
        then: impl FnOnce(&mut Page, Upload) -> R,
    ) -> Result<R, UploadError> {
        if size != 0 && alignment.is_power_of_two() && alignment <= self.source.most_alignment {
            if let Some(page) = self.pages.get_mut(self.current) {
                if let Some(upload) = take(page, size, alignment) {
                    return Ok(then(page, upload));
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
        let answer = then(slot, upload);
        Ok(answer)
    }

    /// A page that has room, or the reason why there is none. Everything is in order afterwards, but that the page is not yet
    /// used; only whoever takes bytes of it calls.
    #[cold]
    #[inline(never)]
    fn another_page(&mut self, size: u64, alignment: u64) -> Result<PageId, UploadError> {
        self.make_ready(size, alignment)?;
        if size > self.policy.page_size {
            let own = self.pages.take_own(size);
            let page = own.unwrap_or_else(|| unreachable!("one was made ready"));
            self.touched.push(page);
            return Ok(page);
        }
        let fresh = self.pages.take_free().unwrap_or_else(|| unreachable!("one was made ready"));
        // Of two pages with room left, the one with more goes on: a large upload does not cost the rest of a page that has just
        // been begun.
        let rest = self.pages.get(self.current).map_or(0, Page::rest);
        if self.policy.page_size - size >= rest {
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
    pub(super) fn make_ready(&mut self, size: u64, alignment: u64) -> Result<(), UploadError> {
        let page_size = self.policy.page_size;
        if size == 0 {
            return Err(UploadError::ZeroSize);
        }
        if !alignment.is_power_of_two() {
            return Err(UploadError::Alignment { alignment });
        }
        if size <= page_size {
            self.check_alignment(alignment)?;
            if self.has_room(size, alignment) || self.pages.has_free() {
                return Ok(());
            }
            self.make_page(page_size, false)?;
            return self.check_alignment(alignment);
        }
        let oversize = UploadError::Oversize { size, page_size };
        if self.policy.oversize == Oversize::Error {
            return Err(oversize);
        }
        self.check_alignment(alignment)?;
        if self.pages.has_own(size) {
            return Ok(());
        }
        let own = align_up(size, self.source.alignments.any).ok_or(oversize)?;
        if host_size(own).and_then(|own| isize::try_from(own).ok()).is_none() {
            return Err(oversize);
        }
        self.make_page(own, true)?;
        self.check_alignment(alignment)
    }

    /// Every page begins at a multiple of as much. Asked again when one was made: where the driver maps it is its own matter.
    fn check_alignment(&self, alignment: u64) -> Result<(), UploadError> {
        let max = self.source.most_alignment;
        if alignment > max { Err(UploadError::AlignmentTooLarge { alignment, max }) } else { Ok(()) }
    }
}
