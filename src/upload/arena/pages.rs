//! The pages of an arena: made, filled, waited for, free, destroyed.
//!
//! ```text
//!             create                 flush                  all tickets done
//!   vacant ----------> free ----> used ------> in flight ----------------------> free
//!      ^                |           ^              | shared: more is written
//!      +----------------+           +--------------+
//!           destroy
//! ```
//!
//! A page is used while it has bytes that no flush has covered, and in flight while there are tickets in the queue that
//! name it. It may be both, and is free when it is neither. With
//! [`share_pages`](crate::upload::UploadArenaCreateInfo::share_pages) several tickets name one page; as they may be of
//! several lanes, none of them stands for the others, and the page counts them.
//!
//! Invariants, asserted by `validate` under these numbers:
//! - P1: `flushed <= next`, `used <= next`, and `next + tail <= size`.
//! - P2: a page is in `free` or in `own_free`, or not, as it is free; and there once.
//! - P3: `reserved` is the sum of the sizes, `free_bytes` that of the free ones.
//! - P4: vacant places have no buffer, and are in `vacant` once each.

use std::collections::VecDeque;
use std::ops::Range;

use crate::base::cast::{index, narrow};
use crate::error::CreateError;
use crate::upload::allocator_ref::AllocatorRef;
use crate::upload::backing::Backing;
use crate::upload::buffers::Buffers;
use crate::vector::Policy;

/// Names a page while it is not destroyed.
pub(super) type PageId = u32;

#[derive(Debug)]
pub(super) struct Page {
    pub(super) backing: Backing,
    /// Where the next upload may begin.
    pub(super) next: u64,
    /// Up to where flushes have covered what was written.
    pub(super) flushed: u64,
    /// Bytes that were asked for.
    pub(super) used: u64,
    /// Bytes behind `next` that are given up.
    pub(super) tail: u64,
    /// Tickets in the queue that name the page.
    pub(super) tickets: u32,
    /// It is for one large request.
    own: bool,
    /// It is in one of the lists of free pages, since this collection.
    free_since: Option<u64>,
}

impl Page {
    const VACANT: Self = Self {
        backing: Backing::GONE,
        next: 0,
        flushed: 0,
        used: 0,
        tail: 0,
        tickets: 0,
        own: false,
        free_since: None,
    };

    /// Bytes behind `next`, for whoever still may have them.
    #[inline]
    pub(super) fn rest(&self) -> u64 {
        self.backing.size() - self.next
    }

    /// Whether there is something that no flush has covered.
    pub(super) fn is_used(&self) -> bool {
        self.flushed < self.next
    }

    /// Nobody needs what is in it.
    pub(super) fn is_done(&self) -> bool {
        self.tickets == 0 && !self.is_used()
    }

    pub(super) fn rewind(&mut self) {
        (self.next, self.flushed, self.used, self.tail) = (0, 0, 0, 0);
    }

    /// Gives up what is behind `next`.
    pub(super) fn close(&mut self) {
        self.tail = self.rest();
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Pages {
    slots: Vec<Page>,
    vacant: Vec<PageId>,
    /// The one that was freed last is at the back, and used first: it is the likeliest to be in a cache, and those at
    /// the front are the ones to go.
    free: VecDeque<PageId>,
    /// Of large requests: few, if any.
    own_free: VecDeque<PageId>,
    pub(super) reserved: u64,
    pub(super) free_bytes: u64,
    pub(super) peak_reserved: u64,
}

impl Pages {
    /// The page at a place, which is [`PageId::MAX`] for none.
    #[inline]
    pub(super) fn get_mut(&mut self, page: PageId) -> Option<&mut Page> {
        self.slots.get_mut(index(page))
    }

    pub(super) fn get(&self, page: PageId) -> Option<&Page> {
        self.slots.get(index(page))
    }

    /// Those that are not vacant.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Page> {
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

    /// Bytes that are not free.
    pub(super) fn in_use(&self) -> u64 {
        self.reserved - self.free_bytes
    }

    pub(super) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Bytes of the free pages that are not of large requests.
    pub(super) fn free_pages_bytes(&self) -> u64 {
        self.free_bytes - self.own_free_bytes()
    }

    /// Bytes of the free pages of large requests.
    pub(super) fn own_free_bytes(&self) -> u64 {
        self.own_free.iter().filter_map(|&page| self.get(page)).map(|page| page.backing.size()).sum()
    }

    pub(super) fn is_own(&self, page: PageId) -> bool {
        self.get(page).is_some_and(|page| page.own)
    }

    /// Makes a free page: see [`Buffers::create`].
    ///
    /// # Safety
    /// The buffers's usages are valid for the device, and the size is not zero.
    pub(super) unsafe fn create<A: AllocatorRef>(
        &mut self,
        buffers: &mut Buffers<A>,
        size: u64,
        own: bool,
        collections: u64,
        (heaps, told): (Range<usize>, Option<CreateError>),
    ) -> Result<PageId, CreateError> {
        // SAFETY: the caller's promise: the buffers's usages are valid for the device, and the size is not zero.
        let backing = unsafe { buffers.create(size, own, heaps, told) }?;
        let page = Page { backing, own, ..Page::VACANT };
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

    /// A page that is done becomes free.
    pub(super) fn release(&mut self, page: PageId, collections: u64) {
        let Some(slot) = self.slots.get_mut(index(page)) else { return };
        debug_assert!(slot.is_done() && slot.free_since.is_none(), "P2");
        slot.rewind();
        slot.free_since = Some(collections);
        self.free_bytes += slot.backing.size();
        if slot.own { self.own_free.push_back(page) } else { self.free.push_back(page) }
    }

    /// The free page that was used last.
    pub(super) fn take_free(&mut self) -> Option<PageId> {
        let page = self.free.pop_back()?;
        self.unfree(page);
        Some(page)
    }

    /// The smallest free page of a large request that has room for another one.
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

    /// Destroys a page that was just taken out of the lists of free ones.
    ///
    /// # Safety
    /// The device no longer uses it.
    unsafe fn destroy<A: AllocatorRef>(&mut self, buffers: &Buffers<A>, page: PageId) {
        let slot = &mut self.slots[index(page)];
        self.reserved -= slot.backing.size();
        // SAFETY: the caller's promise: the device no longer uses it.
        unsafe { buffers.destroy(&mut slot.backing) };
        *slot = Page::VACANT;
        self.vacant.push(page);
    }

    /// Destroys free pages until `bytes` are gone: those of large requests first, and of each kind the one that has
    /// been free for longest. Returns the bytes that did go.
    pub(super) fn trim<A: AllocatorRef>(&mut self, buffers: &Buffers<A>, bytes: u64) -> u64 {
        let before = self.reserved;
        while before - self.reserved < bytes {
            let Some(page) = self.own_free.pop_front().or_else(|| self.free.pop_front()) else { break };
            self.unfree(page);
            // SAFETY: it was free, and so all recordings that used it are done: `release` is told of pages only when
            // the clock says so, or when they have never been used.
            unsafe { self.destroy(buffers, page) };
        }
        before - self.reserved
    }

    /// Destroys free pages that are more than the policy keeps after so many collections.
    pub(super) fn trim_idle<A: AllocatorRef>(
        &mut self,
        buffers: &Buffers<A>,
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

    /// Destroys a page that [`Self::create`] has made and nobody has used.
    pub(super) fn undo<A: AllocatorRef>(&mut self, buffers: &Buffers<A>, page: PageId) {
        for list in [&mut self.free, &mut self.own_free] {
            list.retain(|&free| free != page);
        }
        self.unfree(page);
        // SAFETY: it was free, and so nobody uses it.
        unsafe { self.destroy(buffers, page) };
    }

    /// Destroys all pages, whatever they are.
    ///
    /// # Safety
    /// The device no longer uses any of them.
    pub(super) unsafe fn destroy_all<A: AllocatorRef>(&mut self, buffers: &Buffers<A>) {
        for page in &mut self.slots {
            // SAFETY: the caller's promise: the device no longer uses any of them.
            unsafe { buffers.destroy(&mut page.backing) };
        }
        *self = Self::default();
    }

    /// See the invariants in the [module](self).
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
