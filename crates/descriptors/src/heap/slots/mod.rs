//! The allocation state of a heap's slots. Uses no Vulkan: an engine, a generation for each slot, and a queue of ranges
//! that wait for the GPU.
//!
//! ```text
//!   0                                     ring_first       first          capacity        most
//!   | live | free | retiring | free ...   | a frame's | .. | live | free  | future slots  |
//!   '-- Tlsf ------------------------------------------------------------------------------'
//!                                         '-- a ring -----'
//! ```
//!
//! For the engine, the ring and the slots beyond `capacity` are used chunks. Growing frees the next chunk beyond
//! `capacity`, which merges with free space before it. No slot number changes.
//!
//! Invariants, asserted by `validate`:
//! - S1: a slot's generation is odd exactly while a valid range starts there.
//! - S2: a slot has a key exactly while a chunk of its engine starts there; a chunk is a live or a retiring range.
//! - S3: free + live + retiring = capacity, all counted as granted.
//! - S4: each chunk without a live range, and each transient chunk, is in the queue exactly once.

#[cfg(test)]
mod tests;

use std::ops::Range;

use super::error::{HeapError, RangeError};
use super::range::{DescriptorRange, DescriptorRangeId, ForeignDescriptorRange};
use super::statistics::{HeapStatistics, SlotRun, SlotState};
use sublet::retire::{ClockView, OtherClock, ReserveError, Retire, Ticket};
use sublet::vector::Growth;
use sublet_engines::cast::index;
use sublet_engines::{Alignment, Key, Linear, Metadata, RegionId, Regions, Request, Tag, Tlsf};

/// The state of a slot. Only the generation is meaningful while no chunk starts there.
#[derive(Clone, Copy, Debug, Default)]
struct SlotEntry {
    key: Option<Key>,
    generation: u32,
}

impl SlotEntry {
    /// S1.
    const fn is_live(self) -> bool {
        self.generation % 2 == 1
    }
}

/// The state of each slot, up to the highest start of a range: unused slots of a heap of 2^31 take no memory.
#[derive(Debug, Default)]
struct SlotTable {
    lasting: Vec<SlotEntry>,
    ring: Vec<SlotEntry>,
    /// The first slot of the ring.
    ring_first: u32,
    /// The number of slots in the ring.
    transient: u32,
}

impl SlotTable {
    #[inline]
    fn is_ring(&self, first: u32) -> bool {
        first.wrapping_sub(self.ring_first) < self.transient
    }

    /// Returns the position of a slot in its table. The slot must belong to the heap.
    #[inline]
    fn find(&mut self, first: u32) -> (&mut Vec<SlotEntry>, usize) {
        if self.is_ring(first) {
            (&mut self.ring, index(first - self.ring_first))
        } else {
            (&mut self.lasting, index(first))
        }
    }

    #[inline]
    fn get(&self, first: u32) -> SlotEntry {
        let slot = if self.is_ring(first) {
            self.ring.get(index(first - self.ring_first))
        } else {
            self.lasting.get(index(first))
        };
        slot.copied().unwrap_or_default()
    }

    #[inline]
    fn get_mut(&mut self, first: u32) -> Option<&mut SlotEntry> {
        let (slots, at) = self.find(first);
        slots.get_mut(at)
    }

    /// Returns the slot, and extends the table if necessary; `None` if the host is out of memory.
    #[inline]
    fn make(&mut self, first: u32) -> Option<&mut SlotEntry> {
        let (slots, at) = self.find(first);
        if at >= slots.len() {
            slots.try_reserve(at + 1 - slots.len()).ok()?;
            slots.resize(at + 1, SlotEntry::default());
        }
        slots.get_mut(at)
    }
}

/// Slots beyond the capacity, up to the end of one growth step.
#[derive(Debug)]
struct GrowthStep {
    end: u32,
    key: Key,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct HeapSlots {
    /// The number of the heap.
    id: u32,
    engine: Tlsf,
    /// The transient part.
    ring: Option<Linear>,
    slots: SlotTable,
    /// The initial number of slots.
    first: u32,
    capacity: u32,
    most: u32,
    /// The next step is last.
    steps: Vec<GrowthStep>,
    growths: u32,
    /// The first slots of waiting ranges.
    queue: Retire<u32>,
    live: u32,
    ranges: u32,
    retiring: u32,
    peak: u32,
}

impl HeapSlots {
    /// Creates `lasting` slots, followed by `transient` ones, either of which may be zero. The heap can grow to `most`
    /// slots in total.
    ///
    /// The callers ensure that the sum is at most `u32::MAX`.
    pub(super) fn new(id: u32, lasting: u32, transient: u32, most: u32) -> Self {
        let first = lasting + transient;
        let most = most.max(first);
        let mut slots = Self {
            id,
            engine: Tlsf::exact(u64::from(most.max(1))),
            ring: None,
            slots: SlotTable { ring_first: lasting, transient, ..SlotTable::default() },
            first,
            capacity: first,
            most,
            steps: Vec::new(),
            growths: 0,
            queue: Retire::new(),
            live: 0,
            ranges: 0,
            retiring: 0,
            peak: 0,
        };
        if first == 0 || slots.lay_out().is_none() {
            // The engine must not grant slots that it could not reserve, so such a heap has no slots.
            slots.engine = Tlsf::exact(1);
            slots.slots.transient = 0;
            slots.steps.clear();
            (slots.capacity, slots.most) = (0, 0);
        } else if transient != 0 {
            let mut ring = Linear::new(transient.into(), Regions::Single);
            let added = ring.add_region(&transient.into());
            debug_assert!(added.is_ok(), "the ring is made for one region of this size");
            slots.ring = Some(ring);
        }
        slots
    }

    /// Reserves the ring and the slots beyond the capacity in the engine. Returns `None` if the host is out of memory.
    fn lay_out(&mut self) -> Option<()> {
        let region = self.engine.add_region(&self.most.into()).ok()?;
        let (mut before, ring_first) = (None, self.slots.ring_first);
        let mut hide = |engine: &mut Tlsf, from: u32, to: u32| {
            let size = u64::from(to - from);
            before = Some(engine.allocate_at(before, region, from.into(), size, Tag(0))?);
            before
        };
        if ring_first != self.first {
            hide(&mut self.engine, ring_first, self.first)?;
        }
        let mut from = self.first;
        while from != self.most {
            let end = self.step_behind(from, 0);
            let key = hide(&mut self.engine, from, end)?;
            self.steps.push(GrowthStep { end, key });
            from = end;
        }
        self.steps.reverse();
        Some(())
    }

    /// Returns the end of the next growth step from `capacity` on, for a range of `count`: it doubles.
    fn step_behind(&self, capacity: u32, count: u32) -> u32 {
        let growth = Growth { first: self.first.into(), preferred: self.most.into() };
        narrow_units(growth.next(count.min(self.most).into(), capacity.into()).capacity)
    }

    /// Returns the number of slots that the heap needs for `count` consecutive ones; `None` if it cannot grow that far.
    pub(super) fn grown_for(&self, count: u32) -> Option<u32> {
        if self.capacity == self.most {
            return None;
        }
        let mut at_end = 0;
        self.walk(|run| {
            let is_free = run.state == SlotState::Free && !self.slots.is_ring(run.first);
            at_end = if is_free { run.count } else { 0 };
        });
        let next = self.step_behind(self.capacity, count);
        (next - self.capacity >= count.saturating_sub(at_end)).then_some(next)
    }

    /// Extends the heap to this number of slots, from [`Self::grown_for`].
    pub(super) fn extend(&mut self, capacity: u32) {
        while self.steps.last().is_some_and(|step| step.end <= capacity) {
            let Some(GrowthStep { end, key }) = self.steps.pop() else { break };
            let freed = self.engine.free(key);
            debug_assert!(freed.is_ok(), "it was hidden until now");
            self.capacity = end;
        }
        self.growths += 1;
    }

    #[inline]
    pub(super) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// # Complexity
    /// O(1); an error inspects the free lists.
    #[inline]
    pub(super) fn allocate(&mut self, count: u32) -> Result<DescriptorRange, HeapError> {
        let (key, first) = match self.engine.try_allocate(count.into(), Alignment::ONE, Tag(0)) {
            Some((key, _, first)) => (key, first),
            None => self.allocate_slow(count)?,
        };
        let Some(range) = self.open(first, count, key).map(DescriptorRange) else {
            let freed = self.engine.free(key);
            debug_assert!(freed.is_ok(), "it was granted just now");
            return Err(HeapError::HostMemory { asked: count });
        };
        self.live += count;
        self.ranges += 1;
        self.peak = self.peak.max(self.live + self.retiring);
        Ok(range)
    }

    /// Slow path of [`Self::allocate`].
    #[cold]
    fn allocate_slow(&mut self, count: u32) -> Result<(Key, u64), HeapError> {
        if count == 0 {
            return Err(HeapError::ZeroCount);
        }
        let found = self.engine.allocate(&Request::new(count.into(), Alignment::ONE));
        let (key, span) = found.map_err(|_| self.full(count))?;
        Ok((key, span.offset))
    }

    #[cold]
    fn full(&self, asked: u32) -> HeapError {
        let usage = self.engine.usage();
        HeapError::Full {
            asked,
            free: narrow_units(usage.capacity - usage.used),
            largest_free: self.largest_free(),
            retiring: self.retiring,
        }
    }

    /// Allocates a range in the ring, which waits for its frame from the start.
    pub(super) fn allocate_transient(
        &mut self,
        ticket: Ticket,
        count: u32,
    ) -> Result<DescriptorRangeId, HeapError> {
        if count == 0 {
            return Err(HeapError::ZeroCount);
        }
        let retiring = self.retiring;
        let nothing = HeapError::Full { asked: count, free: 0, largest_free: 0, retiring };
        let ring = self.ring.as_mut().ok_or(nothing)?;
        let (key, span) = ring.allocate(&Request::new(count.into(), Alignment::ONE)).map_err(|_| {
            let usage = ring.usage();
            HeapError::Full {
                asked: count,
                free: narrow_units(usage.capacity - usage.used),
                largest_free: narrow_units(ring.largest_free()),
                retiring,
            }
        })?;
        let first = u64::from(self.slots.ring_first) + span.offset;
        let Some(range) = self.open(first, count, key) else {
            let freed = self.ring.as_mut().map(|ring| ring.free(key));
            debug_assert!(matches!(freed, Some(Ok(_))), "it was granted just now");
            return Err(HeapError::HostMemory { asked: count });
        };
        self.retiring += count;
        self.peak = self.peak.max(self.live + self.retiring);
        self.queue.push(ticket, range.first);
        Ok(range)
    }

    /// Starts a range; returns `None` if the host has no memory for its slot.
    #[inline]
    fn open(&mut self, first: u64, count: u32, key: Key) -> Option<DescriptorRangeId> {
        let first = narrow_units(first);
        let slot = self.slots.make(first)?;
        debug_assert!(!slot.is_live() && slot.key.is_none(), "S1, S2");
        slot.key = Some(key);
        slot.generation = slot.generation.wrapping_add(1);
        Some(DescriptorRangeId { first, count, generation: slot.generation, heap: self.id })
    }

    /// Checks that the range is live and belongs to this heap.
    #[inline]
    pub(super) fn check(&self, range: DescriptorRangeId) -> Result<(), RangeError> {
        if range.heap != self.id {
            return Err(RangeError::ForeignHeap { range });
        }
        let slot = self.slots.get(range.first);
        if slot.generation == range.generation && slot.is_live() {
            Ok(())
        } else {
            Err(RangeError::StaleHandle { range })
        }
    }

    /// Makes the id of a range stale. Returns its slots.
    #[inline]
    fn kill(&mut self, range: DescriptorRange) -> Result<Range<u32>, ForeignDescriptorRange> {
        if range.heap != self.id {
            return Err(ForeignDescriptorRange { range });
        }
        debug_assert_eq!(self.check(range.id()), Ok(()), "S1: whoever has the range has not ended it");
        if let Some(slot) = self.slots.get_mut(range.first) {
            slot.generation = slot.generation.wrapping_add(1);
        }
        self.live -= range.count;
        self.ranges -= 1;
        Ok(range.indices())
    }

    /// Makes the range stale now, and frees it once the ticket is done. Returns its slots.
    #[inline]
    pub(super) fn retire(
        &mut self,
        ticket: Ticket,
        range: DescriptorRange,
    ) -> Result<Range<u32>, ForeignDescriptorRange> {
        let slots = self.kill(range)?;
        self.retiring += slots.end - slots.start;
        self.queue.push(ticket, slots.start);
        Ok(slots)
    }

    /// Makes the range stale and frees it now. Returns its slots.
    pub(super) fn free(&mut self, range: DescriptorRange) -> Result<Range<u32>, ForeignDescriptorRange> {
        let slots = self.kill(range)?;
        self.engines().release(slots.start);
        Ok(slots)
    }

    /// Frees all ranges that the clock reports as done. Returns the number of slots. Calls `ended` for transient
    /// ranges, which end only here.
    ///
    /// # Errors
    /// [`OtherClock`], whose `collected` counts slots.
    pub(super) fn collect(
        &mut self,
        clock: &ClockView,
        mut ended: impl FnMut(Range<u32>),
    ) -> Result<usize, OtherClock> {
        if self.queue.is_empty() {
            return Ok(0);
        }
        let (mut engines, queue, retiring) = self.split();
        let mut freed = 0;
        let collected = queue.collect(clock, |first| {
            let slots = engines.release(first);
            // The state is consistent here, even if `ended` panics.
            *retiring -= slots;
            freed += slots;
            if engines.slots.is_ring(first) {
                ended(first..first + slots);
            }
        });
        let freed = index(freed);
        match collected {
            Ok(_) => Ok(freed),
            Err(other) => Err(OtherClock { collected: freed, ..other }),
        }
    }

    fn split(&mut self) -> (SlotEngines<'_>, &mut Retire<u32>, &mut u32) {
        let Self { engine, ring, slots, queue, retiring, .. } = self;
        (SlotEngines { engine, ring, slots }, queue, retiring)
    }

    fn engines(&mut self) -> SlotEngines<'_> {
        self.split().0
    }

    /// Returns the largest count that [`Self::allocate`] can grant now.
    pub(super) fn largest_free(&self) -> u32 {
        narrow_units(self.engine.largest_free())
    }

    pub(super) fn statistics(&self) -> HeapStatistics {
        let capacity = self.capacity();
        HeapStatistics {
            capacity,
            free: capacity - self.live - self.retiring,
            live: self.live,
            retiring: self.retiring,
            ranges: self.ranges,
            peak: self.peak,
            transient_capacity: self.slots.transient,
            max_capacity: self.most,
            growths: self.growths,
        }
    }

    /// Reserves host memory for this many ranges that wait at once, capped at the number of slots.
    pub(super) fn reserve(&mut self, ranges: u32) -> Result<(), ReserveError> {
        self.queue.reserve(index(ranges.min(self.most)))
    }

    /// Calls `visit` for runs of slots in the order of their indices; they cover the heap.
    pub(super) fn walk(&self, mut visit: impl FnMut(SlotRun)) {
        if self.capacity == 0 {
            return;
        }
        self.engine.walk(RegionId(0), &mut |chunk| {
            let first = narrow_units(chunk.offset);
            match &self.ring {
                _ if first >= self.capacity => {}
                Some(ring) if first == self.slots.ring_first => ring.walk(RegionId(0), &mut |chunk| {
                    visit(self.run(first + narrow_units(chunk.offset), chunk.size, chunk.used.is_some()));
                }),
                _ => visit(self.run(first, chunk.size, chunk.used.is_some())),
            }
        });
    }

    fn run(&self, first: u32, count: u64, is_used: bool) -> SlotRun {
        let state = match (is_used, self.slots.is_ring(first), self.slots.get(first).is_live()) {
            (false, _, _) => SlotState::Free,
            (true, true, _) => SlotState::Transient,
            (true, false, true) => SlotState::Live,
            (true, false, false) => SlotState::Retiring,
        };
        SlotRun { first, count: narrow_units(count), state }
    }

    /// Asserts the invariants of the module.
    #[cfg(test)]
    pub(super) fn validate(&self) {
        self.engine.validate();
        if let Some(ring) = &self.ring {
            ring.validate();
        }
        let (mut next, mut waiting) = (0, 0);
        let mut sums = [0; 4];
        self.walk(|run| {
            assert_eq!(run.first, next, "S3: the runs tile the heap");
            next += run.count;
            let (sum, is_dead) = match run.state {
                SlotState::Free => (0, true),
                SlotState::Live => (1, false),
                SlotState::Retiring => (2, true),
                SlotState::Transient => (3, false),
            };
            sums[sum] += run.count;
            waiting += usize::from(matches!(run.state, SlotState::Retiring | SlotState::Transient));
            for slot in run.first..next {
                let SlotEntry { key, generation } = self.slots.get(slot);
                let starts = slot == run.first && run.state != SlotState::Free;
                assert_eq!(key.is_some(), starts, "S2: slot {slot}");
                assert_eq!(generation % 2 == 1, starts && !is_dead, "S1: slot {slot}");
            }
        });
        assert_eq!(next, self.capacity(), "S3");
        let [free, live, retiring, transient] = sums;
        let statistics = self.statistics();
        assert_eq!(
            (statistics.free, statistics.live, statistics.retiring),
            (free, live, retiring + transient),
            "S3"
        );
        assert_eq!(self.queue.len(), waiting, "S4");
    }
}

/// The state that releasing a chunk changes.
struct SlotEngines<'a> {
    engine: &'a mut Tlsf,
    ring: &'a mut Option<Linear>,
    slots: &'a mut SlotTable,
}

impl SlotEngines<'_> {
    /// Frees the chunk that starts at this slot. Returns its number of slots.
    #[inline]
    fn release(&mut self, first: u32) -> u32 {
        let is_transient = self.slots.is_ring(first);
        let slot = self.slots.get_mut(first);
        let Some((slot, key)) = slot.and_then(|slot| slot.key.take().map(|key| (slot, key))) else {
            debug_assert!(false, "S2: nothing starts at slot {first}");
            return 0;
        };
        let freed = match &mut self.ring {
            Some(ring) if is_transient => {
                // A transient range is live until here.
                slot.generation = slot.generation.wrapping_add(1);
                ring.free(key)
            }
            _ => self.engine.free(key),
        };
        debug_assert!(freed.is_ok(), "S2: the key is of no chunk");
        freed.map_or(0, |freed| narrow_units(freed.span.size))
    }
}

/// Converts engine units, which are slots. A heap has fewer than 2^32 of them.
#[inline]
fn narrow_units(units: u64) -> u32 {
    debug_assert!(u32::try_from(units).is_ok());
    u32::try_from(units).unwrap_or(u32::MAX)
}
