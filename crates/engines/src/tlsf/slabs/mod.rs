//! Slabs: chunks of the core that are cut into equal slots, for recurring small sizes.
//!
//! Taking and freeing a slot touches no neighbours, lists or classes of free chunks: a mask of 64 bits marks the free
//! slots of a slab. To the core, a slab is one chunk that is not free. Only its granted units count as used.
//!
//! ```text
//!   heads     first slab of each class that has a free slot      heads[34] = 7
//!                                                                     |
//!   slabs     records of 48 bytes           7: 8 slots of 2560, first 96, free 0b1010_0000, next 2
//!                                                 |             |
//!   chunks    of the core                      [ slab 7 ]       |
//!   entries   tag, generation and size of each slot      [ 96 ][ 97 ] ... [ 103 ]
//! ```
//!
//! There are 8 classes to a power of two, up to [`LIMIT`]. Only those whose slots are multiples of 128 units are used,
//! because each class in use has a slab that is half empty on average. A size is first rounded up to its alignment, so
//! every slot of its class has the alignment.
//!
//! A key of a slot has the highest bit of its lower half set, then the slab and the slot. Its generation is from the
//! same counter as that of a chunk, limited to 22 bits.
//!
//! `policy.rs` decides when slabs are made and freed.
//!
//! The slabs of a class that have a free slot form a singly linked list. A full slab that gets a free slot goes to the
//! front. An empty slab keeps its place, for sizes that are repeatedly allocated and freed. To find the slabs to free,
//! the lists of the classes that may have some are traversed, see [`Slabs::sift`].
//!
//! Invariants, asserted by [`Slabs::validate`] under these numbers:
//!
//! - S1: a slab in use has a chunk of the core. The chunk names the slab, has the size of all its slots together, and
//!   has the alignment that they need.
//! - S2: a slab with free slots is in the list of its class; one with none is in no list.
//! - S3: a class with an empty slab has its bit in `empty_map`.
//! - S4: the sums are those of the slabs. So are the numbers of slots of the classes.
//! - S5: a used slot holds its size. Runs of entries do not overlap.

mod policy;
mod validate;

use std::num::NonZeroU64;

use crate::cast::{byte, index, narrow, widen};
use crate::chunks::Chunks;
use crate::{Alignment, ChunkInfo, Key, RegionId, Sizes, Span, Tag};

/// The largest slot; a power of two. Slabs of larger slots would take the holes that large sizes need, so more blocks
/// would be necessary.
pub(super) const LIMIT: u64 = 4 << 10;
/// The largest slab. Larger ones could not use the gaps that alignments of 64 KiB leave.
const LARGEST: u64 = 64 << 10;
const FEWEST_SLOTS: u32 = 4;
const MOST_SLOTS: u32 = 64;
/// One less than the smallest slot.
const SMALLEST: u64 = 127;
/// Each time this many slabs became empty, the engine checks if there are too many empty ones.
const LOOK_EVERY: u32 = 64;
/// No slab: the record without slots.
const NONE: u32 = 0;
/// No run of entries.
const NO_RUN: u32 = u32::MAX;
/// The bit of a key that marks a slot.
const SLOT: NonZeroU64 = NonZeroU64::MIN.saturating_add((1 << 31) - 1);
/// The number of a slab uses the bits of a key between [`SLOT`] and the slot.
const MAX_SLABS: usize = 1 << 25;
/// Engines of smaller regions have no slabs.
pub(super) const LEAST_CAPACITY: u64 = 4 << 20;

/// The class for `last + 1` units, and the units of its slots. `last` is at least [`SMALLEST`].
#[inline(always)]
const fn class_and_slot(last: u64) -> (u32, u64) {
    let log2 = last.ilog2();
    let step = log2 - 3;
    let leading = last >> step;
    (log2 * 8 + low(leading) - 63, (leading + 1) << step)
}

/// Units of a slot of a class.
const fn slot_of(class: u32) -> u64 {
    // The inverse of `class_and_slot`. `leading` has eight values, 9 to 16, for each power of two.
    let (step, leading) = (class.div_ceil(8) + 3, (class + 7) % 8 + 9);
    widen(index(leading)) << step
}

const CLASSES: u32 = class_and_slot(LIMIT - 1).0 + 1;
/// The number of lists: a power of two, so that masking an index removes its bounds check.
pub(super) const LISTS: usize = 64;
const _: () = assert!(index(CLASSES) < LISTS && class_and_slot(SMALLEST).0 == 0 && LIMIT.is_power_of_two());

#[inline]
#[allow(clippy::as_conversions, clippy::cast_possible_truncation, reason = "at most 4 KiB, or half a key")]
const fn low(units: u64) -> u32 {
    units as u32
}

/// Slots support alignments up to this. They waste few units in the smallest slots, and larger alignments are rare for
/// small sizes.
const MOST_ALIGNED: u64 = 512;

/// Requests with a [`smallness`] below this may use slots.
pub(super) const SMALL: u64 = LIMIT / 4;
const _: () = assert!(SMALL == 2 * MOST_ALIGNED);

/// Combines size and alignment into one number, so that one branch decides if slots may serve a request. Two branches
/// would be mispredicted more often.
#[inline(always)]
pub(super) const fn smallness(size: u64, alignment: Alignment) -> u64 {
    // Both are below a power of two iff the combined bits are. 0 is not a small size.
    (size.wrapping_sub(1) / (LIMIT / SMALL)) | alignment.get()
}

/// Log2 of a divisor of all slot sizes.
const GRAIN_LOG2: u32 = 4;

/// The class for `n + 1` grains of 16 units, at index `n`. Reading the table is faster than computing the class.
static CLASS_OF: [u8; index(low(LIMIT >> GRAIN_LOG2))] = {
    let mut classes = [0; index(low(LIMIT >> GRAIN_LOG2))];
    let mut grain = 0;
    while grain < classes.len() {
        // Sets the last seven bits, because slots are multiples of 128 units.
        classes[grain] = byte(class_and_slot(widen(grain) << GRAIN_LOG2 | SMALLEST).0);
        grain += 1;
    }
    classes
};

/// The class that serves a request of up to [`LIMIT`] units at an alignment up to [`MOST_ALIGNED`].
#[inline(always)]
pub(super) fn class_for(size: u64, alignment: Alignment) -> u32 {
    // One less than the size, rounded up to the alignment.
    let last = (size - 1) | alignment.mask();
    CLASS_OF[index(low(last >> GRAIN_LOG2)) & (CLASS_OF.len() - 1)].into()
}

/// Returns true if a key belongs to a slot.
#[inline]
pub(super) fn is_slot(key: Key) -> bool {
    key.0.get() & SLOT.get() != 0
}

/// One slab. Slab 0 has no slots and means none.
#[derive(Clone, Copy, Debug)]
struct Slab {
    /// Bit `i`: slot `i` is free.
    free: u64,
    /// Bit `i`: there is a slot `i`. Zero: the record is unused.
    full: u64,
    /// First unit, counted over all regions.
    addr: u64,
    /// Units of a slot.
    slot: u32,
    /// Units of all slots.
    units: u32,
    class: u32,
    /// The first of its entries.
    first: u32,
    chunk: u32,
    /// The next slab of a list, or the next unused record.
    next: u32,
}

const NO_SLAB: Slab =
    Slab { free: 0, full: 0, addr: 0, slot: 0, units: 0, class: 0, first: 0, chunk: 0, next: NONE };

impl Slab {
    const fn slots(&self) -> u32 {
        self.full.count_ones()
    }

    const fn units(&self) -> u64 {
        widen(index(self.units))
    }

    /// Returns true if the slab is in use and nothing is granted in it.
    const fn is_empty(&self) -> bool {
        self.full != 0 && self.free == self.full
    }

    /// The granted slots, lowest first.
    fn used(self) -> impl Iterator<Item = u32> {
        let mut used = self.full & !self.free;
        std::iter::from_fn(move || {
            let slot = used.checked_ilog2().map(|_| used.trailing_zeros())?;
            used &= used - 1;
            Some(slot)
        })
    }
}

/// A granted slot: from the highest bit on, 22 bits of its generation, its requested units minus one in 12 bits, and
/// its tag. The first entry of an unused run holds the start of the next such run.
#[derive(Clone, Copy, Debug)]
struct SlabEntry(u64);

/// The bits of a generation that a slot keeps.
const GENERATION: u32 = (1 << 22) - 1;
const GENERATION_SHIFT: u32 = 42;
const SIZE_SHIFT: u32 = 30;
const _: () = assert!(Tag::MASK < 1 << SIZE_SHIFT && LIMIT << SIZE_SHIFT == 1 << GENERATION_SHIFT);

impl SlabEntry {
    #[inline(always)]
    fn new(generation: u32, size: u64, tag: Tag) -> Self {
        Self(
            u64::from(generation) << GENERATION_SHIFT
                | (size - 1) << SIZE_SHIFT
                | u64::from(tag.0 & Tag::MASK),
        )
    }

    #[inline(always)]
    const fn generation(self) -> u32 {
        low(self.0 >> GENERATION_SHIFT)
    }

    /// Requested units.
    #[inline(always)]
    const fn size(self) -> u64 {
        (self.0 >> SIZE_SHIFT & (LIMIT - 1)) + 1
    }

    const fn tag(self) -> Tag {
        Tag(low(self.0) & Tag::MASK)
    }
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct Slabs {
    /// The first slab of each class that has a free slot.
    heads: [u32; LISTS],
    slabs: Vec<Slab>,
    entries: Vec<SlabEntry>,
    /// Units granted.
    used: u64,
    /// Units of all slabs.
    total: u64,
    /// Units of empty slabs.
    empty_units: u64,
    /// The classes that may have empty slabs.
    empty_map: u64,
    /// Counts slabs that became empty; wraps.
    emptied: u32,
    /// The class at which the next search for surplus empty slabs starts.
    hand: u32,
    /// The first unused record.
    spare: u32,
    /// Unused runs of entries, by log2 of their length.
    runs: [u32; 7],
    /// Slots of all slabs of each class.
    slots: [u32; LISTS],
}

impl Slabs {
    fn new() -> Self {
        Self {
            heads: [NONE; LISTS],
            slabs: vec![NO_SLAB],
            entries: Vec::new(),
            used: 0,
            total: 0,
            empty_units: 0,
            empty_map: 0,
            emptied: 0,
            hand: 0,
            spare: NONE,
            runs: [NO_RUN; 7],
            slots: [0; LISTS],
        }
    }

    #[inline]
    fn slab(&mut self, number: u32) -> &mut Slab {
        &mut self.slabs[index(number)]
    }

    /// Takes a slot of the first slab of a class that has one. Returns the key and the address.
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        chunks: &mut Chunks,
        class: u32,
        size: u64,
        tag: Tag,
    ) -> Option<(Key, u64)> {
        let list = index(class) & (LISTS - 1);
        let number = self.heads[list];
        let slab = &mut self.slabs[index(number)];
        let free = slab.free;
        // Slab 0 has no slots.
        if free == 0 {
            return None;
        }
        let slot = free.trailing_zeros();
        let left = free & (free - 1);
        slab.free = left;
        if left == 0 {
            self.heads[list] = slab.next;
        }
        if free == slab.full {
            self.empty_units -= slab.units();
        }
        let addr = slab.addr + u64::from(slot) * u64::from(slab.slot);
        let entry = &mut self.entries[index(slab.first + slot)];
        let generation = chunks.count(addr, size) & GENERATION;
        *entry = SlabEntry::new(generation, size, tag);
        self.used += size;
        Some((key(number, slot, generation), addr))
    }

    /// The slab, the slot and the entry of a live key.
    #[inline(always)]
    fn find(&self, key: Key) -> Option<(u32, u32, SlabEntry)> {
        let (number, slot, generation) = places(key);
        let slab = self.slabs.get(index(number))?;
        let entry = *self.entries.get(index(slab.first + slot))?;
        let is_live = (slab.full & !slab.free) >> slot & 1 == 1 && entry.generation() == generation;
        is_live.then_some((number, slot, entry))
    }

    /// Frees a slot. Returns `None` if the key is not live.
    #[inline(always)]
    pub(super) fn give(&mut self, chunks: &mut Chunks, key: Key) -> Option<FreedSlot> {
        let (number, slot, generation) = places(key);
        let slab = self.slabs.get_mut(index(number))?;
        let entry = self.entries.get(index(slab.first + slot))?;
        let (before, full) = (slab.free, slab.full);
        let bit = 1 << slot;
        if full & !before & bit == 0 || entry.generation() != generation {
            return None;
        }
        let size = entry.size();
        slab.free = before | bit;
        if before == 0 {
            let head = &mut self.heads[index(slab.class) & (LISTS - 1)];
            slab.next = std::mem::replace(head, number);
        }
        let mut is_time = false;
        if before | bit == full {
            self.empty_units += slab.units();
            self.empty_map |= 1 << (slab.class & 63);
            self.emptied = self.emptied.wrapping_add(1);
            is_time = self.emptied % LOOK_EVERY == 0;
        }
        self.used -= size;
        // Any address in the slab is in its region.
        let (region, is_empty) = chunks.uncount(slab.addr, size);
        Some(FreedSlot { region, is_empty, is_time })
    }

    /// Traverses the list of a class, and removes the slabs for which `goes` returns true. Returns the first of these,
    /// linked by `next`. Among the others, moves the empty ones to the end.
    fn sift(&mut self, class: u32, mut goes: impl FnMut(&Slab) -> bool) -> u32 {
        let mut gone = NONE;
        // First and last of the slabs in use, and of the empty ones.
        let mut stay = [(NONE, NONE); 2];
        let mut number = self.heads[index(class)];
        while number != NONE {
            let slab = self.slabs[index(number)];
            if goes(&slab) {
                self.slab(number).next = std::mem::replace(&mut gone, number);
            } else {
                let (first, last) = &mut stay[usize::from(slab.is_empty())];
                match std::mem::replace(last, number) {
                    NONE => *first = number,
                    last => self.slab(last).next = number,
                }
            }
            number = slab.next;
        }
        let [(mut first, last), (first_empty, last_empty)] = stay;
        if first_empty != NONE {
            self.slab(last_empty).next = NONE;
        } else {
            self.empty_map &= !(1 << class);
        }
        if first == NONE {
            first = first_empty;
        } else {
            self.slab(last).next = first_empty;
        }
        self.heads[index(class)] = first;
        gone
    }

    /// Adds an empty slab of `slots` slots at the front of its class.
    fn add(&mut self, chunk: u32, addr: u64, class: u32, slot: u64, slots: u32) {
        let log2 = slots.next_power_of_two().ilog2();
        let mut first = self.runs[index(log2)];
        if first == NO_RUN {
            first = narrow(self.entries.len());
            let none = SlabEntry(0);
            reserve(&mut self.entries, 1 << log2);
            self.entries.resize(self.entries.len() + (1 << log2), none);
        } else {
            self.runs[index(log2)] = low(self.entries[index(first)].0);
        }
        let number = self.next_number();
        if self.spare == NONE {
            reserve(&mut self.slabs, 1);
            self.slabs.push(NO_SLAB);
        } else {
            self.spare = self.slabs[index(number)].next;
        }
        let full = u64::MAX >> (MOST_SLOTS - slots);
        let next = std::mem::replace(&mut self.heads[index(class)], number);
        let units = low(slot) * slots;
        let slab = Slab { free: full, full, addr, slot: low(slot), units, class, first, chunk, next };
        *self.slab(number) = slab;
        self.slots[index(class)] += slots;
        self.total += slab.units();
        self.empty_units += slab.units();
        self.empty_map |= 1 << class;
    }

    /// The number of the next slab.
    fn next_number(&self) -> u32 {
        if self.spare == NONE { narrow(self.slabs.len()) } else { self.spare }
    }

    /// Drops an unlisted slab with all its grants. Returns the next slab after it, and its record.
    fn forget(&mut self, number: u32) -> (u32, Slab) {
        let slab = self.slabs[index(number)];
        for slot in slab.used() {
            self.used -= self.entries[index(slab.first + slot)].size();
        }
        if slab.is_empty() {
            self.empty_units -= slab.units();
        }
        let log2 = slab.slots().next_power_of_two().ilog2();
        self.entries[index(slab.first)] =
            SlabEntry(std::mem::replace(&mut self.runs[index(log2)], slab.first).into());
        self.slots[index(slab.class)] -= slab.slots();
        self.total -= slab.units();
        *self.slab(number) = Slab { next: std::mem::replace(&mut self.spare, number), ..NO_SLAB };
        (slab.next, slab)
    }

    /// Drops the slabs of a region with all their grants, because the region is reset.
    pub(super) fn forget_region(&mut self, chunks: &Chunks, region: RegionId) {
        for class in 0..CLASSES {
            let mut gone = self.sift(class, |slab| chunks.region_of(slab.addr) == region);
            while gone != NONE {
                (gone, _) = self.forget(gone);
            }
        }
        // The full slabs.
        for number in chunks.chunks(region).filter_map(|chunk| chunks.slab(chunk)) {
            if self.slabs[index(number)].full != 0 {
                self.forget(number);
            }
        }
    }

    /// The span of a slot's key.
    pub(super) fn span(&self, chunks: &Chunks, key: Key) -> Option<Span> {
        let (number, slot, entry) = self.find(key)?;
        let slab = &self.slabs[index(number)];
        Some(chunks.span_at(slab.addr + u64::from(slot) * u64::from(slab.slot), entry.size()))
    }

    /// The tag of a slot's key.
    pub(super) fn tag(&self, key: Key) -> Option<Tag> {
        self.find(key).map(|(.., entry)| entry.tag())
    }

    /// Replaces the tag of a slot's key. Returns `None` if the key is not live.
    pub(super) fn set_tag(&mut self, key: Key, tag: Tag) -> Option<()> {
        let (number, slot, entry) = self.find(key)?;
        let first = self.slabs[index(number)].first;
        self.entries[index(first + slot)] = SlabEntry::new(entry.generation(), entry.size(), tag);
        Some(())
    }

    /// The chunk of the core that contains a key's slot.
    pub(super) fn chunk_of(&self, key: Key) -> Option<u32> {
        self.find(key).map(|(number, ..)| self.slabs[index(number)].chunk)
    }

    /// Visits the grants in a slab.
    pub(super) fn walk(&self, chunks: &Chunks, number: u32, visit: &mut dyn FnMut(ChunkInfo)) {
        let slab = self.slabs[index(number)];
        for slot in slab.used() {
            let entry = self.entries[index(slab.first + slot)];
            let addr = slab.addr + u64::from(slot) * u64::from(slab.slot);
            visit(ChunkInfo {
                offset: addr & chunks.offset_mask(),
                size: entry.size(),
                used: Some((key(number, slot, entry.generation()), entry.tag())),
            });
        }
    }

    /// Adds the grants in a slab and the free ranges before them, starting at `end`. Returns the new end.
    #[inline(always)]
    pub(super) fn measure(&self, number: u32, mut end: u64, sizes: &mut Sizes) -> u64 {
        let slab = self.slabs[index(number)];
        for slot in slab.used() {
            let size = self.entries[index(slab.first + slot)].size();
            let addr = slab.addr + u64::from(slot) * u64::from(slab.slot);
            sizes.add_free(addr - end);
            sizes.add_used(size);
            end = addr.wrapping_add(size);
        }
        end
    }

    /// Units and number of the grants in a slab.
    pub(super) fn sums(&self, number: u32) -> (u64, u32) {
        let slab = self.slabs[index(number)];
        let units = slab.used().map(|slot| self.entries[index(slab.first + slot)].size()).sum();
        (units, (slab.full & !slab.free).count_ones())
    }

    /// Bytes of host memory, besides the engine itself.
    pub(super) fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + self.slabs.capacity() * size_of::<Slab>()
            + self.entries.capacity() * size_of::<SlabEntry>()
    }
}

/// Reserves capacity for `more`. Grows by an eighth, like the nodes of chunks, because doubling would leave half
/// unused.
fn reserve<T>(all: &mut Vec<T>, more: usize) {
    if all.capacity() - all.len() < more {
        all.reserve_exact(16.max(all.len() / 8));
    }
}

/// The result of freeing a slot.
#[derive(Clone, Copy)]
pub(super) struct FreedSlot {
    pub(super) region: RegionId,
    pub(super) is_empty: bool,
    /// True if it is time to check for too many empty slabs.
    pub(super) is_time: bool,
}

/// Slab, slot and generation of a key of a slot.
#[inline(always)]
fn places(key: Key) -> (u32, u32, u32) {
    let bits = key.0.get();
    (low(bits >> 6 & (widen(MAX_SLABS) - 1)), low(bits & 63), low(bits >> 32))
}

/// The key of a granted slot.
#[inline]
fn key(number: u32, slot: u32, generation: u32) -> Key {
    Key(SLOT | u64::from(number) << 6 | u64::from(slot) | u64::from(generation) << 32)
}

const _: () = assert!(size_of::<Slab>() == 48 && size_of::<SlabEntry>() == 8);
const _: () = assert!(widen(MAX_SLABS) << 6 == 1 << 31 && 4 * LIMIT <= LARGEST && FEWEST_SLOTS == 4);
