//! The arena: a recording fills pages in order, and frees them all at once. See [`UploadArena`].
//!
//! An offset that only increases divides a page; no engine of [`metadata`](crate::metadata) is involved. An engine
//! keeps a record of each allocation, so that each can be freed by its key. An arena frees whole pages only, and stores
//! no keys. In `benches/upload.rs` the offset takes 1.7 ns per upload, including flush and collection; the linear
//! engine takes 2.5 ns and 25 bytes of host memory. The pool that the pages come from does use an engine.

mod allocate;
mod cycle;
mod life;
mod pages;

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use self::pages::{ArenaPage, ArenaPages, PageId};
use super::allocator_ref::AllocatorRef;
use super::buffers::{ArenaBuffers, FlushRanges};
use super::create_info::Oversize;
use super::statistics::ArenaStatistics;
use crate::retire::Retire;
use crate::vector::{Growth, Policy};
use sublet_engines::cast::index;

/// The absence of a page.
const NO_PAGE: PageId = PageId::MAX;

/// Allocates consecutive bytes of mapped pages for the uploads of a recording: constants, vertices, staging. Made for
/// one recording thread: [`Send`], not [`Sync`], no locks.
///
/// A page is a buffer that is mapped for its whole life. Uploads are not freed one by one. [`flush`](Self::flush)
/// assigns all uploads since the last flush to the recording of a [`Ticket`](crate::retire::Ticket), and
/// [`collect`](Self::collect) frees pages whose tickets are all done. The first request creates the first page.
///
/// ```text
///   page  |#1##|#2#######|.|#3#|....next          # used   . padding, to align 3
///   page  |#4###############|-------|             - tail: 5 did not fit, and went to a fresh page
///   page  |#5##########|....next
/// ```
///
/// If the current page is too full, the arena takes a free page or creates one. The page with more remaining space
/// becomes current; the rest of the other is lost until it is collected.
///
/// Offset, pointer and device address are aligned; sizes are not rounded. Use the alignments of
/// [`alignments`](Self::alignments), or any power of two up to [`max_alignment`](Self::max_alignment), to which a fresh
/// page is aligned.
///
/// **A failed upload takes no page.** A request larger than a page gets its own page or is rejected before anything is
/// created. Any other request fits a fresh page, which begins at offset 0.
///
/// # Complexity
/// Allocation: O(1), without lock, driver call or host memory while the current page or a free page has space. Flush:
/// O(pages). Collection: O(tickets that wait + pages that become free).
///
/// # Example
/// ```
/// use ash::vk;
/// use sublet::{Allocator, AllocatorCreateInfo, retire::Clock, sim, upload::{UploadArena, UploadArenaCreateInfo}};
///
/// let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-rtx-5070-ti").unwrap());
/// // SAFETY: the handles are live and outlive the allocator.
/// let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// // SAFETY: the usages need nothing enabled; tickets are done when the device is done with their recordings.
/// let mut arena = unsafe { UploadArena::new(&allocator, &UploadArenaCreateInfo::default()) }?;
/// let clock = Clock::new();
/// let timeline = clock.add_timeline()?;
///
/// for frame in 0..10_u32 {
///     // vkWaitForFences for the slot's fence goes here.
///     let ticket = clock.begin_frame(timeline, frame % 2);
///     arena.collect(&clock)?;
///     let camera = arena.write_value(&[[0.0_f32; 4]; 4], arena.alignments().uniform)?;
///     let corners = arena.write_slice(&[[0.0_f32; 3]; 300], 4)?;
///     // The recording binds `camera.buffer` at `camera.offset`, and so on. Then, before vkQueueSubmit:
///     arena.flush(ticket)?;
///     clock.end_frame(ticket)?;
/// }
/// assert_eq!(arena.statistics().pages, 2);
/// // vkDeviceWaitIdle goes here. Dropping an arena leaks the pages that it has not collected.
/// clock.idle();
/// arena.collect(&clock)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// An arena cannot be shared by threads:
///
/// ```compile_fail
/// fn shared<A: Sync>() {}
/// shared::<sublet::upload::UploadArena<&sublet::Allocator>>();
/// ```
///
/// It cannot outlive its allocator, unless it holds an `Arc`:
///
/// ```compile_fail
/// # use sublet::{*, upload::*};
/// fn make(info: &AllocatorCreateInfo<'_>) -> UploadArena<&'static Allocator> {
///     let allocator = unsafe { Allocator::new(info) }.unwrap();
///     unsafe { UploadArena::new(&allocator, &UploadArenaCreateInfo::default()) }.unwrap()
/// }
/// ```
#[doc(alias = "UploadBuffer")]
#[doc(alias = "LinearAllocator")]
#[doc(alias = "D3D12DynamicHeap")]
#[doc(alias = "VulkanUploadHeap")]
#[doc(alias = "BufferPool")]
#[doc(alias = "BufferBlock")]
#[doc(alias = "UploadManager")]
#[doc(alias = "DynamicUploadHeap")]
#[doc(alias = "GPURingBuffer")]
pub struct UploadArena<A: AllocatorRef> {
    pages: ArenaPages,
    /// The page that receives uploads: neither free nor in `touched`.
    current: PageId,
    buffers: ArenaBuffers<A>,
    /// The memory limit, and which free pages to destroy: the same policy as for blocks of a vector.
    policy: Policy,
    /// The page size, and which requests get their own page.
    growth: Growth,
    oversize: Oversize,
    share_pages: bool,
    /// Used pages that are not the current page.
    touched: Vec<PageId>,
    retire: Retire<PageId>,
    /// Pages that [`Self::collect`] found done. Kept for its capacity.
    done: Vec<PageId>,
    ranges: FlushRanges,
    /// The number of calls of [`Self::collect`].
    collections: u64,
    peak_used: u64,
    /// Makes the arena `!Sync`.
    not_sync: PhantomData<Cell<()>>,
}

impl<A: AllocatorRef> UploadArena<A> {
    /// Returns the size of a page in bytes: the requested size, rounded up to `nonCoherentAtomSize`.
    #[must_use]
    pub fn page_size(&self) -> u64 {
        self.growth.preferred
    }

    /// Returns the preferred memory type of pages. See [`ArenaStatistics::fallback_pages`] for the case that its heap
    /// is full.
    #[must_use]
    pub fn memory_type_index(&self) -> u32 {
        self.buffers.memory_type()
    }

    /// Returns the arena's current figures.
    ///
    /// # Complexity
    /// O(pages).
    #[must_use]
    pub fn statistics(&self) -> ArenaStatistics {
        let pages = &self.pages;
        let mut statistics = ArenaStatistics {
            own_pages: pages.own_count(),
            free_pages: pages.free_count(),
            reserved: pages.reserved,
            peak_reserved: pages.peak_reserved,
            free: pages.free_bytes,
            peak_used: self.peak_used,
            rest: pages.get(self.current).map_or(0, ArenaPage::rest),
            ..ArenaStatistics::default()
        };
        for page in pages.iter() {
            statistics.pages += 1;
            if page.backing.is_fallback {
                statistics.fallback_pages += 1;
                statistics.fallback += page.backing.size();
            }
            statistics.pages_in_flight += usize::from(page.tickets > 0);
            statistics.used += page.used;
            statistics.padding += page.next - page.used;
            statistics.tail += page.tail;
        }
        statistics
    }

    /// Checks the internal state for consistency, for tests and debugging. O(pages²).
    ///
    /// # Panics
    /// If an invariant does not hold; the message names it.
    pub fn validate(&self) {
        self.pages.validate();
        assert!(
            self.current == NO_PAGE || !self.pages.is_own(self.current),
            "a large request's page is current"
        );
        assert!(!self.touched.contains(&self.current), "the current page is among the others");
        for &page in &self.touched {
            assert!(self.pages.get(page).is_some_and(|page| page.is_used()), "page {page} is not used");
        }
        let tickets: usize = self.pages.iter().map(|page| index(page.tickets)).sum();
        assert_eq!(tickets, self.retire.len(), "tickets of pages");
        let statistics = self.statistics();
        let bytes =
            statistics.used + statistics.padding + statistics.tail + statistics.rest + statistics.free;
        assert_eq!(bytes, statistics.reserved, "{statistics:?}");
    }
}

impl<A: AllocatorRef> fmt::Debug for UploadArena<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UploadArena").field("statistics", &self.statistics()).finish_non_exhaustive()
    }
}
