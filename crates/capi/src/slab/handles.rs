//! Slots for the objects behind `VmaAllocation`. Slots never move and are reused.
//!
//! A handle is the address of a slot, with a part of the slot's generation in the bits below its alignment. A freed
//! handle therefore differs from the slot's current one, unless a multiple of 128 handles came in between.
//!
//! Slots are in stripes, each with a lock and a list of free slots. A thread takes slots from the stripe of its token,
//! so that threads do not contend. A slot returns to its own stripe. Otherwise a stripe would grow if one thread
//! allocates what another frees.
#![expect(unsafe_code, reason = "handles of C are pointers")]

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::fmt;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use sublet::Allocation;
use sublet::private::index;
use sublet::private::{CoreGuard, CoreMutex, thread_token};

use crate::types::VmaAllocation;

/// Number of stripes of a slab. A power of two.
pub(super) const STRIPES: usize = 64;
/// Number of slots in a stripe's first chunk. Each further chunk has twice as many, up to [`LARGEST_CHUNK`].
pub(super) const FIRST_CHUNK: usize = 32;
/// Maximum number of slots in a chunk.
pub(super) const LARGEST_CHUNK: usize = 1024;
/// Number of doublings after which a chunk has its maximum size.
pub(super) const DOUBLINGS: usize = 5;
/// Flag in [`HandleSlot::maps`]: the slot is the destination of a move, and the defragmentation frees it.
pub(super) const DESTINATION: u32 = 1 << 31;
/// Flag in [`HandleSlot::maps`]: the program has freed the destination.
pub(super) const GIVEN_UP: u32 = 1 << 30;
/// Mask of [`HandleSlot::maps`] for the map count.
pub(super) const MAPS: u32 = GIVEN_UP - 1;
/// The bits of a handle that hold a generation.
pub(super) const GENERATION_MASK: usize = align_of::<HandleSlot>() - 1;

/// One object: an allocation with its name and mappings.
#[repr(align(128))]
pub struct HandleSlot {
    /// Written under the stripe's lock. Initialised while the slot is used.
    allocation: UnsafeCell<MaybeUninit<Allocation>>,
    /// The mapped address while [`Self::map_count`] is not zero.
    mapped: AtomicPtr<c_void>,
    /// The map count, without the mapping of a `MAPPED` allocation, and the two flags of a destination. They share one
    /// number so that [`Self::is_plain`] needs one load.
    maps: AtomicU32,
    /// Odd while the slot is used. Increases at the start and the end of each use.
    generation: AtomicU32,
    name: UnsafeCell<Option<CString>>,
    /// The next free slot of the stripe.
    next: UnsafeCell<*const HandleSlot>,
    /// The number of its slab, and of its stripe in the slab.
    slab: u32,
    stripe: u32,
}

const _: () = assert!(size_of::<HandleSlot>() == 128, "a slot is two cache lines");

// SAFETY: `allocation` and `next` are written only under the lock of the slot's stripe. Calls with the handle read
// `allocation` and `name` without the lock. The program does not free, rename or move an allocation while another call
// uses it (C2 of the interface).
unsafe impl Sync for HandleSlot {}
// SAFETY: no field is bound to a thread; the pointers refer to slots of the slab, which live as long.
unsafe impl Send for HandleSlot {}

impl fmt::Debug for HandleSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandleSlot")
            .field("generation", &self.generation)
            .field("maps", &self.maps)
            .finish_non_exhaustive()
    }
}

impl HandleSlot {
    fn new(slab: u32, stripe: u32) -> Self {
        Self {
            allocation: UnsafeCell::new(MaybeUninit::uninit()),
            mapped: AtomicPtr::new(std::ptr::null_mut()),
            maps: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            name: UnsafeCell::new(None),
            next: UnsafeCell::new(std::ptr::null()),
            slab,
            stripe,
        }
    }

    /// Returns the slot of a handle, if the handle is the slot's current one. The slot then holds an allocation.
    ///
    /// # Safety
    /// 1. `handle` is null, or came from a slab that lives.
    /// 2. While the result is used, the allocation is not freed, renamed or moved.
    #[inline]
    pub(crate) unsafe fn of<'a>(handle: VmaAllocation) -> Option<&'a Self> {
        let address = handle.map_addr(|address| address & !GENERATION_MASK).cast_const();
        // SAFETY: 1: the slab lives, and slots live as long as their slab, whether used or not.
        let slot = unsafe { address.as_ref() }?;
        let generation = slot.generation.load(Ordering::Relaxed);
        (generation & 1 == 1 && handle.addr() & GENERATION_MASK == tag(generation)).then_some(slot)
    }

    /// Returns the allocation.
    #[inline(always)]
    pub(crate) fn allocation(&self) -> &Allocation {
        // SAFETY: only calls that the program does not make concurrently write a used slot's allocation. `of` requires
        // this, and every reference to a slot outside this file comes from `of`.
        let allocation = unsafe { &*self.allocation.get() };
        // SAFETY: `of` checked that the slot is used, and `insert` stored an allocation before marking it as used.
        unsafe { allocation.assume_init_ref() }
    }

    /// Returns a second copy of the allocation, to be changed and written back with [`HandleSlab::replace`].
    ///
    /// # Safety
    /// Only one of the two is used from now on.
    pub(crate) unsafe fn copy(&self) -> Allocation {
        // SAFETY: the copied value needs no drop. It is not `Copy`, but the caller uses only one of the two.
        unsafe { std::ptr::read(self.allocation()) }
    }

    /// Returns the name as a C string, or null if it has none.
    #[inline]
    pub(crate) fn name(&self) -> *const c_char {
        // SAFETY: as in `allocation`.
        unsafe { &*self.name.get() }.as_deref().map_or(std::ptr::null(), CStr::as_ptr)
    }

    /// Replaces the name and frees the old one.
    ///
    /// # Safety
    /// No other call uses the allocation.
    pub(crate) unsafe fn set_name(&self, name: Option<CString>) {
        // SAFETY: the caller's promise: no other call uses the allocation.
        let old = unsafe { std::ptr::replace(self.name.get(), name) };
        drop(old);
    }

    /// Returns the mapped address: of `vmaMapMemory`, or of the persistent mapping. Null if it is not mapped.
    #[inline]
    pub(crate) fn mapped(&self) -> *mut c_void {
        match self.allocation().mapped_pointer() {
            Some(always) => always.as_ptr(),
            // Otherwise the pointer of the last mapping would be returned.
            None if self.map_count() == 0 => std::ptr::null_mut(),
            None => self.mapped.load(Ordering::Relaxed),
        }
    }

    /// Counts one more mapping, at `pointer`.
    pub(crate) fn count_map(&self, pointer: *mut c_void) {
        self.mapped.store(pointer, Ordering::Relaxed);
        self.maps.fetch_add(1, Ordering::Relaxed);
    }

    /// Replaces the mapped address. The count does not change.
    pub(crate) fn set_mapped(&self, pointer: *mut c_void) {
        self.mapped.store(pointer, Ordering::Relaxed);
    }

    /// Counts one mapping less. Returns false if it is not mapped.
    pub(crate) fn count_unmap(&self) -> bool {
        // The pointer stays, because another thread may be mapping the allocation again.
        let less = |maps: u32| (maps & MAPS != 0).then(|| maps.wrapping_sub(1));
        self.maps.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Returns the map count.
    #[inline(always)]
    pub(crate) fn map_count(&self) -> u32 {
        self.maps.load(Ordering::Relaxed) & MAPS
    }

    /// Marks the slot as the destination of a move, which the program must not free.
    pub(crate) fn mark_destination(&self) {
        self.maps.fetch_or(DESTINATION, Ordering::Relaxed);
    }

    /// Marks a destination as freed by the program. Returns true if the slot is a destination: it then stays, and its
    /// move is rolled back.
    pub(crate) fn give_up_destination(&self) -> bool {
        let is_destination = self.maps.load(Ordering::Relaxed) & DESTINATION != 0;
        if is_destination {
            self.maps.fetch_or(GIVEN_UP, Ordering::Relaxed);
        }
        is_destination
    }

    /// Returns true if the program has freed this destination.
    pub(crate) fn is_given_up(&self) -> bool {
        self.maps.load(Ordering::Relaxed) & GIVEN_UP != 0
    }

    /// Returns true if the slot has no name and no counted mapping, and is not a destination.
    ///
    /// # Safety
    /// No other call uses the slot.
    #[inline(always)]
    pub(crate) unsafe fn is_plain(&self) -> bool {
        // SAFETY: the caller's promise: no other call uses the slot.
        unsafe { &*self.name.get() }.is_none() && self.maps.load(Ordering::Relaxed) == 0
    }

    /// Clears name, mappings and flags.
    ///
    /// # Safety
    /// No other call uses the slot.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn clean(&self) {
        self.maps.store(0, Ordering::Relaxed);
        self.mapped.store(std::ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: the caller's promise: no other call uses the slot.
        unsafe { self.set_name(None) };
    }
}

/// Returns the part of a generation that a handle holds.
#[inline]
fn tag(generation: u32) -> usize {
    index(generation >> 1) & GENERATION_MASK
}

#[derive(Debug)]
struct Free {
    head: *const HandleSlot,
    chunks: Vec<Box<[HandleSlot]>>,
}

// SAFETY: the pointers refer to slots of the same slab's chunks.
unsafe impl Send for Free {}

#[repr(align(128))]
struct Stripe {
    free: CoreMutex<Free>,
}

/// All objects of one allocator.
pub(crate) struct HandleSlab {
    id: u32,
    /// The fixed size removes bounds checks.
    stripes: Box<[Stripe; STRIPES]>,
}

impl fmt::Debug for HandleSlab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandleSlab").field("id", &self.id).finish_non_exhaustive()
    }
}

impl HandleSlab {
    pub(crate) fn new() -> Self {
        static SLABS: AtomicU32 = AtomicU32::new(0);
        let id = SLABS.fetch_add(1, Ordering::Relaxed);
        let stripe = |_| Stripe { free: CoreMutex::new(Free { head: std::ptr::null(), chunks: Vec::new() }) };
        Self { id, stripes: Box::new(std::array::from_fn(stripe)) }
    }

    #[inline(always)]
    fn stripe(&self, number: u32) -> &Stripe {
        &self.stripes[index(number) % STRIPES]
    }

    /// Stores an allocation in a slot and returns its handle. Takes a reference to avoid a second copy.
    ///
    /// # Safety
    /// The caller does not use the original again.
    #[inline(always)]
    pub(crate) unsafe fn insert(&self, allocation: &Allocation) -> VmaAllocation {
        let home = thread_token();
        let stripe = self.stripe(home);
        let mut free = stripe.free.lock();
        if free.head.is_null() {
            drop(free);
            free = stripe.more(self.id, home);
        }
        let slot = free.head;
        // SAFETY: the head of the list is a slot of a chunk of this stripe, and there is one: a chunk was added if not.
        let used = unsafe { &*slot };
        // SAFETY: the holder of the stripe's lock owns `next` of a free slot.
        free.head = unsafe { *used.next.get() };
        let to = used.allocation.get().cast::<Allocation>();
        // SAFETY: a free slot has no handle, and the lock keeps other threads from taking it. The allocation is not
        // `Copy`, but the caller does not use the original again.
        unsafe { std::ptr::copy_nonoverlapping(allocation, to, 1) };
        let generation = used.generation.load(Ordering::Relaxed).wrapping_add(1);
        used.generation.store(generation, Ordering::Relaxed);
        slot.cast_mut().map_addr(|address| address | tag(generation))
    }

    /// Returns the slot of a handle, if it belongs to this slab.
    ///
    /// # Safety
    /// As for [`HandleSlot::of`].
    #[inline(always)]
    pub(crate) unsafe fn own<'a>(&self, handle: VmaAllocation) -> Option<&'a HandleSlot> {
        // SAFETY: 1 and 2 of `HandleSlot::of`.
        unsafe { HandleSlot::of(handle) }.filter(|slot| slot.slab == self.id)
    }

    /// Returns a copy of the allocation of a handle, which another thread may be changing. Returns `None` if the handle
    /// is not a live one of this slab. The copy is only for reading.
    ///
    /// # Safety
    /// `handle` is null, or came from a slab that lives.
    pub(crate) unsafe fn peek(&self, handle: VmaAllocation) -> Option<Allocation> {
        // SAFETY: the caller guarantees 1 of `HandleSlot::of`. Without the lock only the slot's numbers are read, for
        // which 2 is not needed.
        let slot = unsafe { self.own(handle) }?;
        let _free = self.stripe(slot.stripe).free.lock();
        // SAFETY: 1 of `HandleSlot::of` as above; 2: under the lock the slot is neither removed nor replaced.
        let slot = unsafe { self.own(handle) }?;
        // SAFETY: the slot is used; the caller frees nothing by the copy.
        Some(unsafe { slot.copy() })
    }

    /// Replaces an allocation by its changed copy.
    ///
    /// # Safety
    /// 1. The slot is from [`Self::own`] and was not removed since.
    /// 2. No other call uses it.
    pub(crate) unsafe fn replace(&self, slot: &HandleSlot, allocation: Allocation) {
        // A walk over the slab reads the slot under this lock.
        let _free = self.stripe(slot.stripe).free.lock();
        // SAFETY: 2: no other call uses the slot. The overwritten value needs no drop.
        unsafe { slot.allocation.get().write(MaybeUninit::new(allocation)) };
    }

    /// Releases a slot whose allocation was freed.
    ///
    /// # Safety
    /// 1. The slot is from [`Self::own`] and was not removed since.
    /// 2. No other call uses it.
    pub(crate) unsafe fn remove(&self, slot: &HandleSlot) {
        // SAFETY: 2: no other call uses the slot.
        if !unsafe { slot.is_plain() } {
            // SAFETY: 2: no other call uses the slot.
            unsafe { slot.clean() };
        }
        // SAFETY: the caller's promises 1 and 2.
        unsafe { self.remove_plain(slot) };
    }

    /// Same as [`Self::remove`], for a slot for which [`HandleSlot::is_plain`] is true.
    ///
    /// # Safety
    /// As for [`Self::remove`].
    #[inline(always)]
    pub(crate) unsafe fn remove_plain(&self, slot: &HandleSlot) {
        let mut free = self.stripe(slot.stripe).free.lock();
        let generation = slot.generation.load(Ordering::Relaxed).wrapping_add(1);
        slot.generation.store(generation, Ordering::Relaxed);
        // SAFETY: the holder of the stripe's lock owns `next`.
        unsafe { slot.next.get().write(free.head) };
        free.head = slot;
    }

    /// Asserts that all slots are free, and in the list of their stripe.
    #[cfg(test)]
    pub(super) fn validate(&self) {
        for stripe in self.stripes.iter() {
            let free = stripe.free.lock();
            let slots: usize = free.chunks.iter().map(|chunk| chunk.len()).sum();
            let mut in_list = 0;
            let mut next = free.head;
            while !next.is_null() {
                // SAFETY: the list holds slots of the slab, and the lock is held.
                let slot = unsafe { &*next };
                in_list += 1;
                // SAFETY: as above.
                next = unsafe { *slot.next.get() };
            }
            assert_eq!(in_list, slots);
        }
    }

    /// Calls `visit` with each used slot and its handle. A stripe is locked while its slots are visited.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(VmaAllocation, &HandleSlot)) {
        for stripe in self.stripes.iter() {
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

impl Stripe {
    /// Adds a chunk of slots. Allocates it without the stripe's lock.
    #[cold]
    #[inline(never)]
    fn more(&self, slab: u32, stripe: u32) -> CoreGuard<'_, Free> {
        let chunks = self.free.lock().chunks.len();
        let slots = (FIRST_CHUNK << chunks.min(DOUBLINGS)).min(LARGEST_CHUNK);
        let chunk = (0..slots).map(|_| HandleSlot::new(slab, stripe)).collect();
        let mut free = self.free.lock();
        free.add(chunk);
        free
    }
}

impl Free {
    /// Prepends the slots of a chunk to the free list, the first slot first.
    #[cold]
    #[inline(never)]
    fn add(&mut self, chunk: Box<[HandleSlot]>) {
        for slot in chunk.iter().rev() {
            // SAFETY: no other thread has seen the slot.
            unsafe { slot.next.get().write(self.head) };
            self.head = slot;
        }
        // Moving the box does not move the slots.
        self.chunks.push(chunk);
    }
}
