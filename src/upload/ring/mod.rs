//! One buffer that is written round and round: see [`UploadRing`].

mod order;

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::panic::Location;

use self::order::Order;
use super::allocator_ref::AllocatorRef;
use super::backing::Backing;
use super::buffers::{Buffers, BuffersInfo, Ranges};
use super::create_info::UploadRingCreateInfo;
use super::error::{CreateUploadError, FlushError, UploadError, WaitError};
use super::methods::{Room, upload_methods};
use super::piece::{Alignments, Upload};
use super::statistics::RingStatistics;
use crate::base::cast::widen;
use crate::retire::{ClockView, OtherClock, Ticket};

/// Hands out bytes of one mapped buffer of a fixed size, round and round. For streams of uploads with a known bound:
/// one buffer to bind, and no memory that comes and goes. [`Send`], not [`Sync`], no locks.
///
/// [`flush`](Self::flush) says that what was uploaded since the last one is used by the recording of a ticket: a piece
/// of the ring. [`collect`](Self::collect) frees pieces whose tickets are done, **from the oldest on**: one that is not
/// done holds up all behind it, though they may be done. That is what makes it a ring; where recordings of several
/// queues end in any order, an [`UploadArena`](super::UploadArena) wastes less. A ticket that the clock has given up
/// (discarded, or of a frame slot that is never used again and whose fence was waited for) holds up nothing.
///
/// ```text
///   0        tail                    head                size
///   |..........|#1######|#2####|#open#|...................|
/// ```
///
/// An upload is never split. Where the end of the buffer is too near it goes to the start, and the bytes at the end are
/// lost until the piece is collected.
///
/// # Complexity
/// Allocating: O(1), without a lock, a call of the driver or host memory. Collecting: O(pieces that become free).
///
/// # Example
/// ```
/// use sublet::{Allocator, AllocatorCreateInfo, retire::Clock, sim, upload::{UploadRing, UploadRingCreateInfo}};
///
/// let gpu = sim::Gpu::new(sim::Profile::by_name("arm-mali-g52").unwrap());
/// // SAFETY: the handles are live and outlive the allocator.
/// let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// // SAFETY: the usages need nothing enabled; tickets are done when the device is done with their recordings.
/// let mut ring = unsafe { UploadRing::new(&allocator, &UploadRingCreateInfo::new(4096)) }?;
/// let clock = Clock::new();
/// let lane = clock.add_lane()?;
/// for frame in 0..20_u32 {
///     // vkWaitForFences for the slot's fence goes here.
///     let ticket = clock.begin_frame(lane, frame % 3);
///     ring.collect(&clock)?;
///     let constants = ring.write(&[1; 1000], ring.alignments().uniform)?;
///     assert_eq!(constants.buffer, ring.buffer());
///     ring.flush(ticket)?;
///     // vkQueueSubmit goes here.
///     clock.end_frame(ticket)?;
/// }
/// clock.idle();
/// ring.collect(&clock)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It cannot be shared by threads:
#[doc(alias = "DynamicUploadHeap")]
#[doc(alias = "GPURingBuffer")]
pub struct UploadRing<A: AllocatorRef> {
    order: Order,
    backing: Backing,
    buffers: Buffers<A>,
    ranges: Ranges,
    /// It is for one thread at a time.
    not_sync: PhantomData<Cell<()>>,
}

impl<A: AllocatorRef> UploadRing<A> {
    /// Makes a ring and its buffer.
    ///
    /// # Errors
    /// [`CreateUploadError`]; nothing is left behind.
    ///
    /// # Safety
    /// 1. `info.usage` is valid for the device: what needs an extension or a feature has it enabled
    ///    (VUID-VkBufferCreateInfo-None-09499).
    /// 2. Uploads are used by recordings whose ticket is given to the next [`flush`](Self::flush), and by no others;
    ///    and a clock that is given to the ring says that a ticket is done only when the device is done with its
    ///    recording, or never gets it.
    /// 3. A pool that is given outlives the ring.
    #[track_caller]
    pub unsafe fn new(allocator: A, info: &UploadRingCreateInfo<'_>) -> Result<Self, CreateUploadError> {
        let asked = BuffersInfo {
            size: info.size,
            usage: info.usage,
            device_address: info.device_address,
            memory: info.memory,
            pool: info.pool.as_ref(),
            name: info.name,
            caller: Location::caller(),
        };
        // SAFETY: the caller's own promise.
        let (mut buffers, size) = unsafe { Buffers::new(allocator, &asked) }?;
        // SAFETY: the caller's own promise; the size is not zero.
        let backing = unsafe { buffers.create(size, false, 0..buffers.heaps(), None) }
            .map_err(CreateUploadError::Buffer)?;
        Ok(Self {
            order: Order::new(size, buffers.most_alignment),
            backing,
            buffers,
            ranges: Ranges::default(),
            not_sync: PhantomData,
        })
    }

    /// Destroys the buffer. Dropping a ring does the same if everything was collected; else it leaks the buffer, and
    /// logs that.
    ///
    /// # Safety
    /// The device no longer uses the buffer (VUID-vkDestroyBuffer-buffer-00922).
    pub unsafe fn destroy(mut self) {
        // SAFETY: the caller's promise: the device no longer uses the buffer.
        unsafe { self.buffers.destroy(&mut self.backing) };
    }

    /// The buffer that all uploads are in.
    #[must_use]
    pub fn buffer(&self) -> ash::vk::Buffer {
        self.backing.buffer
    }

    /// The memory type that the ring is in: see [`RingStatistics::is_fallback`].
    #[must_use]
    pub fn memory_type_index(&self) -> u32 {
        self.backing.memory_type
    }

    /// Ends what a recording uploads: makes it visible to the device, and keeps it until `ticket` is done. To be called
    /// before the recording is submitted, and in the order in which the recordings are expected to be done.
    ///
    /// In memory that is not host-coherent that is one `vkFlushMappedMemoryRanges` with two ranges at most; else the
    /// driver is not called. Without uploads since the last one nothing happens.
    ///
    /// # Errors
    /// [`FlushError`]: what the driver answered, or that the ticket is of another clock than those that are waited for. Nothing was
    /// changed: the call may be made again.
    pub fn flush(&mut self, ticket: Ticket) -> Result<(), FlushError> {
        if !self.order.has_open() {
            return Ok(());
        }
        self.order.check_clock(ticket).map_err(FlushError::MixedClocks)?;
        for (begin, end) in self.order.written() {
            self.buffers.add_range(&mut self.ranges, &self.backing, begin, end);
        }
        self.buffers.flush(&mut self.ranges)?;
        let next = self.buffers.round(&self.backing, self.order.head());
        self.order.close(ticket, next);
        Ok(())
    }

    /// Frees pieces whose tickets are done, from the oldest on. Returns how many.
    ///
    /// # Errors
    /// [`OtherClock`] if the next piece waits for a ticket of another clock, which this one never says is done. Those
    /// before it were collected nonetheless.
    pub fn collect(&mut self, clock: &ClockView) -> Result<usize, OtherClock> {
        self.order.collect(clock)
    }

    /// What the ring's bytes are used for.
    ///
    /// # Complexity
    /// O(pieces).
    #[must_use]
    pub fn statistics(&self) -> RingStatistics {
        let (used, tail) = (self.order.used(), self.order.tails());
        RingStatistics {
            size: self.order.size(),
            pieces: self.order.pieces(),
            used,
            padding: self.order.taken() - used - tail,
            tail,
            free: self.order.free(),
            peak: self.order.peak,
            is_fallback: self.backing.is_fallback,
        }
    }

    /// Checks the books. For tests and debugging: O(pieces).
    ///
    /// # Panics
    /// Names what does not agree.
    pub fn validate(&self) {
        self.order.validate();
    }
}

upload_methods!(
    UploadRing,
    " # let mut uploads = unsafe { UploadRing::new(&allocator, &UploadRingCreateInfo::new(4096)) }?;"
);

impl<A: AllocatorRef> Room for UploadRing<A> {
    #[inline(always)]
    fn place<R>(
        &mut self,
        size: u64,
        alignment: u64,
        then: impl FnOnce(&mut Backing, Upload) -> R,
    ) -> Result<R, UploadError> {
        let offset = self.order.allocate(size, alignment)?;
        let upload = self.backing.upload(offset, size);
        Ok(then(&mut self.backing, upload))
    }

    fn make_ready(&mut self, size: u64, alignment: u64) -> Result<(), UploadError> {
        self.order.check(size, alignment)
    }

    fn recycle(&mut self, clock: &ClockView) -> Result<usize, OtherClock> {
        self.order.collect(clock)
    }

    fn oldest(&self) -> Option<Ticket> {
        self.order.oldest()
    }
}

impl<A: AllocatorRef> Drop for UploadRing<A> {
    fn drop(&mut self) {
        if self.order.is_empty() {
            // SAFETY: nothing is used that the clock has not said to be done, or that was not given to a flush.
            unsafe { self.buffers.destroy(&mut self.backing) };
        } else if self.backing.size() > 0 {
            let unflushed = self.order.has_open();
            let why =
                if unflushed { "with uploads that were never flushed" } else { "before its last collection" };
            tracing::warn!(
                name: "upload_ring_leaked", target: "sublet::leak",
                bytes = self.order.size(), unflushed,
                "an upload ring was dropped {why}: its buffer is leaked"
            );
        }
    }
}

impl<A: AllocatorRef> fmt::Debug for UploadRing<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UploadRing").field("statistics", &self.statistics()).finish_non_exhaustive()
    }
}
