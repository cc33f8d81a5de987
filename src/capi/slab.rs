//! Where the objects behind `VmaAllocation` live: slots that never move and are used again.
//!
//! A handle is the address of a slot with a part of the slot's generation in the bits below its alignment. A handle that
//! was freed is told from the one that its slot has now, unless a multiple of 128 others were in between.
//!
//! Slots are in stripes, each with a lock and a list of free slots. A thread takes from the stripe of its token, so that
//! threads do not meet here; a slot goes back to the stripe that it is of, so that no stripe grows because one thread
//! allocates what another frees.

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::fmt;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::allocation::Allocation;
use crate::base::cast::index;
use crate::base::sync::{CoreMutex, Threading, thread_token};

use super::types::VmaAllocation;

/// Stripes of a slab that threads share. A power of two.
const STRIPES: u32 = 64;
/// Slots of a stripe's first chunk; each further chunk has twice as many, up to [`LARGEST_CHUNK`].
const FIRST_CHUNK: usize = 32;
/// Slots of a chunk at most.
const LARGEST_CHUNK: usize = 1024;
/// Doublings after which a chunk has as many in any case.
const DOUBLINGS: usize = 5;
/// The bits of a handle that hold a generation.
const GENERATION_MASK: usize = align_of::<Slot>() - 1;

/// One object: an allocation, and what C wants to know of it.
#[repr(align(128))]
pub struct Slot {
    /// `None` if the slot is free. Written under the stripe's lock.
    allocation: UnsafeCell<Option<Allocation>>,
    /// Where it is mapped while [`Self::map_count`] is not zero.
    mapped: AtomicPtr<c_void>,
    /// How often it was mapped, the mapping of a `MAPPED` allocation left out.
    map_count: AtomicU32,
    /// Odd while the slot is used; counts up with each use and each end of one.
    generation: AtomicU32,
    name: UnsafeCell<Option<CString>>,
    /// The next free slot of the stripe.
    next: UnsafeCell<*const Slot>,
    /// Which slab it is of, and which stripe of that.
    slab: u32,
    stripe: u32,
}

const _: () = assert!(size_of::<Slot>() == 128, "a slot is two cache lines");

// SAFETY: `allocation` and `next` are written under the lock of the slot's stripe only. `allocation` and `name` are read
// without it by calls that got the handle, and the program promises not to free, rename or move an allocation while another
// call uses it (C2 of the interface).
unsafe impl Sync for Slot {}
// SAFETY: nothing in it is bound to a thread; the pointers are to other slots of the slab, which live as long.
unsafe impl Send for Slot {}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot")
            .field("generation", &self.generation)
            .field("map_count", &self.map_count)
            .finish_non_exhaustive()
    }
}

impl Slot {
    fn new(slab: u32, stripe: u32) -> Self {
        Self {
            allocation: UnsafeCell::new(None),
            mapped: AtomicPtr::new(std::ptr::null_mut()),
            map_count: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            name: UnsafeCell::new(None),
            next: UnsafeCell::new(std::ptr::null()),
            slab,
            stripe,
        }
    }

    /// The slot that a handle is of, if the handle is the one that the slot has now.
    ///
    /// # Safety
    /// `handle` is null, or came from a slab that lives; while the answer is used, the allocation is not freed, renamed or
    /// moved.
    #[inline]
    pub(super) unsafe fn of<'a>(handle: VmaAllocation) -> Option<&'a Self> {
        let address = handle.map_addr(|address| address & !GENERATION_MASK).cast_const();
        // SAFETY: the caller's own promise: slots live as long as their slab, whether used or not.
        let slot = unsafe { address.as_ref() }?;
        let generation = slot.generation.load(Ordering::Relaxed);
        (generation & 1 == 1 && handle.addr() & GENERATION_MASK == tag(generation)).then_some(slot)
    }

    /// The allocation. `None` cannot be where [`Self::of`] has answered.
    #[inline]
    pub(super) fn allocation(&self) -> Option<&Allocation> {
        // SAFETY: a used slot's allocation is written only by calls that the program does not make at the same time: the
        // promise of `of`.
        unsafe { &*self.allocation.get() }.as_ref()
    }

    /// The allocation, to be changed.
    ///
    /// # Safety
    /// No other reference to the allocation is in use, on any thread.
    #[allow(clippy::mut_from_ref, reason = "the cell is what gives it")]
    pub(super) unsafe fn allocation_mut(&self) -> Option<&mut Allocation> {
        // SAFETY: the caller's own promise.
        unsafe { &mut *self.allocation.get() }.as_mut()
    }

    /// Its name, for C; null if it has none.
    #[inline]
    pub(super) fn name(&self) -> *const c_char {
        // SAFETY: as in `allocation`.
        unsafe { &*self.name.get() }.as_deref().map_or(std::ptr::null(), CStr::as_ptr)
    }

    /// Gives it another name. The old one lives no longer.
    ///
    /// # Safety
    /// No other call uses the allocation.
    pub(super) unsafe fn set_name(&self, name: Option<CString>) {
        // SAFETY: the caller's own promise.
        let old = unsafe { std::ptr::replace(self.name.get(), name) };
        drop(old);
    }

    /// Where it is mapped: by `vmaMapMemory`, or for as long as it lives; null if it is not.
    #[inline]
    pub(super) fn mapped(&self) -> *mut c_void {
        let always = self.allocation().and_then(Allocation::mapped_pointer);
        always.map_or_else(|| self.mapped.load(Ordering::Relaxed), std::ptr::NonNull::as_ptr)
    }

    /// Notes that it was mapped once more, at `pointer`.
    pub(super) fn count_map(&self, pointer: *mut c_void) {
        self.mapped.store(pointer, Ordering::Relaxed);
        self.map_count.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that it is to be unmapped once; `false` if it is not mapped.
    pub(super) fn count_unmap(&self) -> bool {
        let counted = self.map_count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        if counted == Ok(1) {
            self.mapped.store(std::ptr::null_mut(), Ordering::Relaxed);
        }
        counted.is_ok()
    }
}

/// The part of a generation that a handle holds.
#[inline]
fn tag(generation: u32) -> usize {
    index(generation >> 1) & GENERATION_MASK
}

#[derive(Debug)]
struct Free {
    head: *const Slot,
    chunks: Vec<Box<[Slot]>>,
}

// SAFETY: the pointers are to slots of the chunks beside them.
unsafe impl Send for Free {}

#[repr(align(128))]
struct Stripe<T: Threading> {
    free: CoreMutex<T, Free>,
}

/// All the objects of one allocator.
pub(super) struct Slab<T: Threading> {
    id: u32,
    stripes: Box<[Stripe<T>]>,
}

impl<T: Threading> fmt::Debug for Slab<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What was in a slot.
#[derive(Debug)]
pub(super) struct Removed {
    pub(super) allocation: Allocation,
    /// How often it was still mapped.
    pub(super) map_count: u32,
}

impl<T: Threading> Slab<T> {
    /// With stripes for threads that share it, or one for a program that does not.
    pub(super) fn new(shared: bool) -> Self {
        static SLABS: AtomicU32 = AtomicU32::new(0);
        let id = SLABS.fetch_add(1, Ordering::Relaxed);
        let stripe = |_| Stripe { free: CoreMutex::new(Free { head: std::ptr::null(), chunks: Vec::new() }) };
        Self { id, stripes: (0..if shared { STRIPES } else { 1 }).map(stripe).collect() }
    }

    /// The calling thread's stripe.
    #[inline]
    fn home(&self) -> u32 {
        if self.stripes.len() == 1 { 0 } else { thread_token::current() % STRIPES }
    }

    /// Gives an allocation a slot and a handle.
    #[inline]
    pub(super) fn insert(&self, allocation: Allocation) -> VmaAllocation {
        let home = self.home();
        let stripe = &self.stripes[index(home)];
        let mut free = stripe.free.lock();
        if free.head.is_null() {
            drop(free);
            let chunk = stripe.chunk(self.id, home);
            free = stripe.free.lock();
            free.add(chunk);
        }
        let slot = free.head;
        // SAFETY: the head of the list is a slot of a chunk of this stripe, and there is one: a chunk was added if not.
        let used = unsafe { &*slot };
        // SAFETY: `next` of a free slot is of whoever holds the stripe's lock.
        free.head = unsafe { *used.next.get() };
        // SAFETY: nobody has a handle of a free slot. What is overwritten is `None` and needs no drop.
        unsafe { used.allocation.get().write(Some(allocation)) };
        let generation = used.generation.load(Ordering::Relaxed).wrapping_add(1);
        used.generation.store(generation, Ordering::Relaxed);
        slot.cast_mut().map_addr(|address| address | tag(generation))
    }

    /// Takes the allocation out of a slot, and frees the slot. `None` if the handle is no longer one, or is another slab's.
    ///
    /// # Safety
    /// `handle` is null or came from a slab that lives, and no other call uses it.
    #[inline]
    pub(super) unsafe fn remove(&self, handle: VmaAllocation) -> Option<Removed> {
        // SAFETY: the caller's own promise.
        let slot = unsafe { Slot::of(handle) }?;
        if slot.slab != self.id {
            return None;
        }
        let (name, removed) = {
            let mut free = self.stripes.get(index(slot.stripe))?.free.lock();
            // SAFETY: the handle is the slot's, and no other call uses it.
            let allocation = unsafe { &mut *slot.allocation.get() }.take()?;
            let map_count = slot.map_count.load(Ordering::Relaxed);
            if map_count != 0 {
                slot.map_count.store(0, Ordering::Relaxed);
                slot.mapped.store(std::ptr::null_mut(), Ordering::Relaxed);
            }
            // SAFETY: as above; the name of a free slot is never read.
            let name = unsafe { &mut *slot.name.get() }.take();
            let generation = slot.generation.load(Ordering::Relaxed).wrapping_add(1);
            slot.generation.store(generation, Ordering::Relaxed);
            // SAFETY: `next` is of whoever holds the stripe's lock.
            unsafe { slot.next.get().write(free.head) };
            free.head = slot;
            (name, Removed { allocation, map_count })
        };
        // Memory of the host is given back when nobody waits.
        drop(name);
        Some(removed)
    }

    /// Calls `visit` with each used slot and its handle. Nothing is allocated or freed meanwhile.
    pub(super) fn for_each(&self, mut visit: impl FnMut(VmaAllocation, &Slot)) {
        for stripe in &self.stripes {
            let free = stripe.free.lock();
            for slot in free.chunks.iter().flat_map(|chunk| chunk.iter()) {
                let generation = slot.generation.load(Ordering::Relaxed);
                if generation & 1 == 1 {
                    let handle = std::ptr::from_ref(slot).cast_mut();
                    visit(handle.map_addr(|address| address | tag(generation)), slot);
                }
            }
        }
    }
}

impl<T: Threading> Stripe<T> {
    /// More slots, made while nobody waits for them.
    #[cold]
    #[inline(never)]
    fn chunk(&self, slab: u32, stripe: u32) -> Box<[Slot]> {
        let chunks = self.free.lock().chunks.len();
        let slots = (FIRST_CHUNK << chunks.min(DOUBLINGS)).min(LARGEST_CHUNK);
        (0..slots).map(|_| Slot::new(slab, stripe)).collect()
    }
}

impl Free {
    /// Puts the slots of a chunk in front of the list, the first one first.
    #[cold]
    #[inline(never)]
    fn add(&mut self, chunk: Box<[Slot]>) {
        for slot in chunk.iter().rev() {
            // SAFETY: nobody else has seen the slot.
            unsafe { slot.next.get().write(self.head) };
            self.head = slot;
        }
        // The slots are behind the box, which moves; they do not.
        self.chunks.push(chunk);
    }
}
