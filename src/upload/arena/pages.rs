//! The pages of an arena and their states: used, in flight, free.
//!
//! ```text
//!             create                 flush                  all tickets done
//!   vacant ----------> free ----> used ------> in flight ----------------------> free
//!      ^                |           ^              | shared: more is written
//!      +----------------+           +--------------+
//!           destroy
//! ```
//!
//! A page is used while it has bytes that no flush has covered, and in flight while tickets in the queue refer to it.
//! It can be both, and is free if it is neither. With
//! [`share_pages`](crate::upload::UploadArenaCreateInfo::share_pages) several tickets refer to one page. They may
//! belong to several timelines, so no ticket implies the others, and the page counts them.
//!
//! Invariants, asserted by `validate`:
//! - P1: `flushed <= next`, `used <= next`, and `next + tail <= size`.
//! - P2: a free page is in `free` or in `own_free` exactly once; any other page is in neither.
//! - P3: `reserved` is the sum of all sizes, `free_bytes` that of the free pages.
//! - P4: vacant slots have no buffer, and are in `vacant` exactly once.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::collections::VecDeque;
use std::ops::Range;

use crate::error::CreateError;
use crate::upload::allocator_ref::AllocatorRef;
use crate::upload::backing::PageBacking;
use crate::upload::buffers::ArenaBuffers;
use crate::vector::Policy;
use sublet_engines::cast::{index, narrow};

/// Identifies a page until it is destroyed.
pub(super) type PageId = u32;

#[derive(Debug)]
pub(super) struct ArenaPage {
    pub(super) backing: PageBacking,
    /// The offset at which the next upload may begin.
    pub(super) next: u64,
    /// The end of the bytes that flushes have covered.
    pub(super) flushed: u64,
    /// The sum of the requested sizes.
    pub(super) used: u64,
    /// Bytes after `next` that were given up.
    pub(super) tail: u64,
    /// The number of tickets in the queue that refer to the page.
    pub(super) tickets: u32,
    /// The page serves one large request.
    own: bool,
    /// The collection count at which the page became free; `None` if it is not free.
    free_since: Option<u64>,
}

impl ArenaPage {
    const VACANT: Self = Self {
        backing: PageBacking::GONE,
        next: 0,
        flushed: 0,
        used: 0,
        tail: 0,
        tickets: 0,
        own: false,
        free_since: None,
    };

    /// The number of bytes after `next`.
    #[inline]
    pub(super) fn rest(&self) -> u64 {
        self.backing.size() - self.next
    }

    /// Returns true if the page has bytes that no flush has covered.
    pub(super) fn is_used(&self) -> bool {
        self.flushed < self.next
    }

    /// Returns true if the content of the page is no longer needed.
    pub(super) fn is_done(&self) -> bool {
        self.tickets == 0 && !self.is_used()
    }

    pub(super) fn rewind(&mut self) {
        (self.next, self.flushed, self.used, self.tail) = (0, 0, 0, 0);
    }

    /// Gives up the bytes after `next`.
    pub(super) fn close(&mut self) {
        self.tail = self.rest();
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct ArenaPages {
    slots: Vec<ArenaPage>,
    vacant: Vec<PageId>,
    /// The page that was freed last is at the back and is reused first, because it is most likely in a cache. Trimming
    /// starts at the front.
    free: VecDeque<PageId>,
    /// Free pages of large requests: few, if any.
    own_free: VecDeque<PageId>,
    pub(super) reserved: u64,
    pub(super) free_bytes: u64,
    pub(super) peak_reserved: u64,
}

impl ArenaPages {
    /// Returns a page; `None` for [`PageId::MAX`].
    #[inline]
    pub(super) fn get_mut(&mut self, page: PageId) -> Option<&mut ArenaPage> {
        self.slots.get_mut(index(page))
    }

    pub(super) fn get(&self, page: PageId) -> Option<&ArenaPage> {
        self.slots.get(index(page))
    }

    /// The pages in occupied slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ArenaPage> {
        self.slots.iter().filter(|page| page.backing.size() > 0)
    }

    pub(super) fn count(&self) -> u32 {
        narrow(self.slots.len() - self.vacant.len())
    }

    pub(super) fn own_count(&self) -> usize {
        self.iter().filter(|page| page.own).count()
    }

    pub(super) fn free_count(&self) -> usize {
        self.free.len() + self.own_free.len()
    }

    /// The size of all pages that are not free.
    pub(super) fn in_use(&self) -> u64 {
        self.reserved - self.free_bytes
    }

    pub(super) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// The size of all free regular pages.
    pub(super) fn free_pages_bytes(&self) -> u64 {
        self.free_bytes - self.own_free_bytes()
    }

    /// The size of all free pages of large requests.
    pub(super) fn own_free_bytes(&self) -> u64 {
        self.own_free.iter().filter_map(|&page| self.get(page)).map(|page| page.backing.size()).sum()
    }

    pub(super) fn is_own(&self, page: PageId) -> bool {
        self.get(page).is_some_and(|page| page.own)
    }

    /// Creates a free page: see [`ArenaBuffers::create`].
    ///
    /// # Safety
    /// The usages of `buffers` are valid for the device, and the size is not zero.
    pub(super) unsafe fn create<A: AllocatorRef>(
        &mut self,
        buffers: &mut ArenaBuffers<A>,
        size: u64,
        own: bool,
        collections: u64,
        (heaps, last_error): (Range<usize>, Option<CreateError>),
    ) -> Result<PageId, CreateError> {
        // SAFETY: the caller's promise: the usages of `buffers` are valid for the device, and the size is not zero.
        let backing = unsafe { buffers.create(size, own, heaps, last_error) }?;
        let page = ArenaPage { backing, own, ..ArenaPage::VACANT };
        let at = match self.vacant.pop() {
            Some(at) => {
                self.slots[index(at)] = page;
                at
            }
            None => {
                self.slots.push(page);
                narrow(self.slots.len() - 1)
            }
        };
        self.reserved += size;
        self.peak_reserved = self.peak_reserved.max(self.reserved);
        self.release(at, collections);
        Ok(at)
    }

    /// Frees a page that is done.
    pub(super) fn release(&mut self, page: PageId, collections: u64) {
        let Some(slot) = self.slots.get_mut(index(page)) else { return };
        debug_assert!(slot.is_done() && slot.free_since.is_none(), "P2");
        slot.rewind();
        slot.free_since = Some(collections);
        self.free_bytes += slot.backing.size();
        if slot.own { self.own_free.push_back(page) } else { self.free.push_back(page) }
    }

    /// Takes the free page that was used last.
    pub(super) fn take_free(&mut self) -> Option<PageId> {
        let page = self.free.pop_back()?;
        self.unfree(page);
        Some(page)
    }

    /// Takes the smallest free page of a large request that is large enough.
    pub(super) fn take_own(&mut self, size: u64) -> Option<PageId> {
        let at = self.smallest_own(size)?;
        let page = self.own_free.remove(at)?;
        self.unfree(page);
        Some(page)
    }

    pub(super) fn has_own(&self, size: u64) -> bool {
        self.smallest_own(size).is_some()
    }

    fn smallest_own(&self, size: u64) -> Option<usize> {
        let size_of = |&page: &PageId| self.get(page).map_or(0, |page| page.backing.size());
        let fitting = self.own_free.iter().enumerate().filter(|(_, page)| size_of(page) >= size);
        fitting.min_by_key(|(_, page)| size_of(page)).map(|(at, _)| at)
    }

    fn unfree(&mut self, page: PageId) {
        if let Some(slot) = self.slots.get_mut(index(page)) {
            slot.free_since = None;
            self.free_bytes -= slot.backing.size();
        }
    }

    /// Destroys a page that was just removed from the lists of free pages.
    ///
    /// # Safety
    /// The device no longer uses it.
    unsafe fn destroy<A: AllocatorRef>(&mut self, buffers: &ArenaBuffers<A>, page: PageId) {
        let slot = &mut self.slots[index(page)];
        self.reserved -= slot.backing.size();
        // SAFETY: the caller's promise: the device no longer uses it.
        unsafe { buffers.destroy(&mut slot.backing) };
        *slot = ArenaPage::VACANT;
        self.vacant.push(page);
    }

    /// Destroys free pages until `bytes` are released: pages of large requests first, and of each kind the one that has
    /// been free for longest. Returns the released bytes.
    pub(super) fn trim<A: AllocatorRef>(&mut self, buffers: &ArenaBuffers<A>, bytes: u64) -> u64 {
        let before = self.reserved;
        while before - self.reserved < bytes {
            let Some(page) = self.own_free.pop_front().or_else(|| self.free.pop_front()) else { break };
            self.unfree(page);
            // SAFETY: the page was free, so all recordings that used it are done: `release` is called only for pages
            // that the clock reported, or that were never used.
            unsafe { self.destroy(buffers, page) };
        }
        before - self.reserved
    }

    /// Destroys free pages that the policy no longer keeps after this many collections.
    pub(super) fn trim_idle<A: AllocatorRef>(
        &mut self,
        buffers: &ArenaBuffers<A>,
        policy: &Policy,
        collections: u64,
    ) {
        while policy.own_surplus(narrow(self.own_free.len())) > 0 {
            let Some(page) = self.own_free.pop_front() else { break };
            self.unfree(page);
            // SAFETY: as in `trim`.
            unsafe { self.destroy(buffers, page) };
        }
        while policy.surplus(narrow(self.free.len()), self.count()) > 0 {
            let since = self.free.front().and_then(|&page| self.get(page)?.free_since);
            if !since.is_some_and(|since| policy.is_idle(since, collections)) {
                break;
            }
            let Some(page) = self.free.pop_front() else { break };
            self.unfree(page);
            // SAFETY: as in `trim`.
            unsafe { self.destroy(buffers, page) };
        }
    }

    /// Destroys a page that [`Self::create`] created and that is still unused.
    pub(super) fn undo<A: AllocatorRef>(&mut self, buffers: &ArenaBuffers<A>, page: PageId) {
        for list in [&mut self.free, &mut self.own_free] {
            list.retain(|&free| free != page);
        }
        self.unfree(page);
        // SAFETY: the page was free, so nothing uses it.
        unsafe { self.destroy(buffers, page) };
    }

    /// Destroys all pages in any state.
    ///
    /// # Safety
    /// The device no longer uses any of them.
    pub(super) unsafe fn destroy_all<A: AllocatorRef>(&mut self, buffers: &ArenaBuffers<A>) {
        for page in &mut self.slots {
            // SAFETY: the caller's promise: the device no longer uses any of them.
            unsafe { buffers.destroy(&mut page.backing) };
        }
        *self = Self::default();
    }

    /// Asserts the invariants of the [module](self).
    pub(super) fn validate(&self) {
        let (mut reserved, mut free_bytes, mut free) = (0, 0, 0);
        for (at, page) in (0..).zip(&self.slots) {
            let size = page.backing.size();
            assert!(page.flushed <= page.next && page.used <= page.next, "P1: page {at}");
            assert!(page.next + page.tail <= size, "P1: page {at}");
            let listed = self.free.iter().chain(&self.own_free).filter(|&&free| free == at).count();
            assert_eq!(listed, usize::from(page.free_since.is_some()), "P2: page {at}");
            let vacant = self.vacant.iter().filter(|&&vacant| vacant == at).count();
            assert_eq!(vacant, usize::from(size == 0), "P4: page {at}");
            reserved += size;
            if page.free_since.is_some() {
                assert!(page.is_done() && page.next == 0, "P2: page {at}");
                (free_bytes, free) = (free_bytes + size, free + 1);
            }
        }
        assert_eq!((self.reserved, self.free_bytes), (reserved, free_bytes), "P3");
        assert_eq!(self.free_count(), free, "P2");
    }
}
