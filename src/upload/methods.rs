//! What an arena and a ring have in common: the methods that give out bytes, and those that wait for them.
#![forbid(unsafe_code)]

use super::backing::Backing;
use super::error::{UploadError, WaitError};
use super::piece::Upload;
use crate::retire::{ClockView, OtherClock, Ticket};

/// Where bytes for uploads come from.
pub(super) trait Room {
    /// Finds room, and tells `then` of the buffer that it is in.
    fn place<R>(
        &mut self,
        size: u64,
        alignment: u64,
        then: impl FnOnce(&mut Backing, Upload) -> R,
    ) -> Result<R, UploadError>;

    /// Sees to it that the next such upload finds room.
    fn make_ready(&mut self, size: u64, alignment: u64) -> Result<(), UploadError>;

    /// Takes back what recordings no longer need, and says how many of them there were.
    fn recycle(&mut self, clock: &ClockView) -> Result<usize, OtherClock>;

    /// The first recording that may still need something.
    fn oldest(&self) -> Option<Ticket>;

    fn wait<W>(
        &mut self,
        size: u64,
        alignment: u64,
        clock: &ClockView,
        mut wait: impl FnMut(Ticket) -> Result<(), W>,
    ) -> Result<(), WaitError<W>> {
        // Each turn but the last one takes tickets out of the queue, and none puts any in.
        loop {
            let error = match self.make_ready(size, alignment) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if !error.may_pass() {
                return Err(WaitError::NoRoom(error));
            }
            match self.recycle(clock) {
                Ok(0) => {}
                Err(other) if other.collected == 0 => return Err(WaitError::OtherClock(other)),
                _ => continue,
            }
            let Some(ticket) = self.oldest() else {
                return Err(WaitError::NoRoom(error));
            };
            wait(ticket).map_err(WaitError::Wait)?;
            if matches!(self.recycle(clock), Ok(0)) {
                return Err(WaitError::NoProgress { ticket });
            }
        }
    }
}

/// The methods of `$owner`; `$make` makes one for the examples, of 4096 bytes or pages of them.
macro_rules! upload_methods {
    ($owner:ident, $make:literal) => {
        impl<A: AllocatorRef> $owner<A> {
            /// What offsets are to be multiples of, by what the bytes are for.
            #[inline]
            #[must_use]
            pub fn alignments(&self) -> Alignments {
                self.buffers.alignments
            }

            /// The most that an upload can be aligned to: 4096, or more if the device wants more of offsets. Less if
            /// the driver mapped a buffer at a crooked place; whatever is given out holds for offset, pointer and
            /// address.
            #[inline]
            #[must_use]
            pub fn max_alignment(&self) -> u64 {
                self.buffers.most_alignment
            }

            /// Gives out `size` bytes whose offset, pointer and device address are multiples of `alignment`.
            ///
            /// # Errors
            /// [`UploadError`]: nothing was changed.
            ///
            /// # Complexity
            /// O(1), and a call of the driver where an arena needs another page.
            #[inline]
            pub fn allocate(&mut self, size: u64, alignment: u64) -> Result<Upload, UploadError> {
                self.place(size, alignment, |_, upload| upload)
            }

            /// Copies `bytes` to where the device can read them.
            ///
            /// # Errors
            /// As for [`Self::allocate`].
            #[inline]
            pub fn write(&mut self, bytes: &[u8], alignment: u64) -> Result<Upload, UploadError> {
                self.write_slice(bytes, alignment)
            }

            /// Copies a value, with its padding as it is, to where the device can read it. The alignment is that of `T`
            /// at least.
            ///
            /// # Errors
            /// As for [`Self::allocate`]; [`UploadError::ZeroSize`] for a type without a size.
            #[inline]
            pub fn write_value<T: Copy>(&mut self, value: &T, alignment: u64) -> Result<Upload, UploadError> {
                self.write_slice(std::slice::from_ref(value), alignment)
            }

            /// Copies values one behind the other, as they are in the slice. The alignment is that of `T` at least.
            ///
            /// # Errors
            /// As for [`Self::allocate`]; [`UploadError::ZeroSize`] for an empty slice.
            #[inline]
            pub fn write_slice<T: Copy>(
                &mut self,
                values: &[T],
                alignment: u64,
            ) -> Result<Upload, UploadError> {
                // What is no power of two stays the error that it is.
                let least = widen(align_of::<T>());
                let alignment = if alignment.is_power_of_two() { alignment.max(least) } else { alignment };
                self.place(widen(size_of_val(values)), alignment, |backing, upload| {
                    backing.write(&upload, values);
                    upload
                })
            }

            /// Gives `size` bytes to `fill`, which writes them in place. They hold anything before: an earlier upload,
            /// most of the time. Reading them may be very slow.
            ///
            /// # Errors
            /// As for [`Self::allocate`].
            ///
            /// ```
            /// # use sublet::{*, upload::*};
            /// # let (gpu, allocator) = sublet::doc_example();
            #[doc = $make]
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

            /// Waits until the next upload of such a size and alignment finds room: where memory is limited, as pages
            /// are, or as all of a ring is.
            ///
            /// `wait` is called with the ticket to wait for; it waits until the device is done with that recording, and
            /// tells the clock. A call that does not make the clock say so ends with an error, so that this comes to an
            /// end.
            ///
            /// # Errors
            /// [`WaitError`]: there is nothing to wait for, `wait` failed, or it did not do what it should.
            ///
            /// ```
            /// # use sublet::{*, retire::*, upload::*};
            /// # let (gpu, allocator) = sublet::doc_example();
            #[doc = $make]
            /// # let clock = Clock::new();
            /// # let lane = clock.add_lane()?;
            /// let wait = |ticket: Ticket| {
            ///     // vkWaitSemaphores goes here.
            ///     clock.completed(ticket.lane(), 1);
            ///     Ok::<(), ash::vk::Result>(())
            /// };
            /// let ticket = clock.open(lane);
            /// uploads.write(&[1; 4096], 1)?;
            /// uploads.flush(ticket)?;
            /// clock.submit(ticket, 1)?;
            /// uploads.wait_for_room(100, 4, &clock, wait)?;
            /// uploads.write(&[2; 100], 4)?;
            /// # unsafe { uploads.destroy() };
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn wait_for_room<W>(
                &mut self,
                size: u64,
                alignment: u64,
                clock: &ClockView,
                wait: impl FnMut(Ticket) -> Result<(), W>,
            ) -> Result<(), WaitError<W>> {
                self.wait(size, alignment, clock, wait)
            }

            /// [`Self::wait_for_room`] and [`Self::allocate`].
            ///
            /// # Errors
            /// As there.
            pub fn allocate_or_wait<W>(
                &mut self,
                size: u64,
                alignment: u64,
                clock: &ClockView,
                wait: impl FnMut(Ticket) -> Result<(), W>,
            ) -> Result<Upload, WaitError<W>> {
                self.wait(size, alignment, clock, wait)?;
                self.allocate(size, alignment).map_err(WaitError::NoRoom)
            }
        }
    };
}
pub(super) use upload_methods;
