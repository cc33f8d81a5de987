#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;

use super::*;
use sublet::retire::{Clock, TimelineId};

/// The model of a heap: a free list by offset. It predicts if a request fits, but not its position.
struct Shadow {
    /// The free runs, merged: first slot to count.
    free: BTreeMap<u32, u32>,
    capacity: u32,
}

impl Shadow {
    fn new(capacity: u32) -> Self {
        Self { free: BTreeMap::from([(0, capacity)]), capacity }
    }

    fn largest(&self) -> u32 {
        self.free.values().copied().max().unwrap_or(0)
    }

    fn free_slots(&self) -> u32 {
        self.free.values().sum()
    }

    /// Takes a range, which must be free.
    fn take(&mut self, first: u32, count: u32) {
        let (&start, &size) = self.free.range(..=first).next_back().expect("the slots are free");
        assert!(first + count <= start + size, "{count} slots at {first} are not all free");
        self.free.remove(&start);
        if start < first {
            self.free.insert(start, first - start);
        }
        if first + count < start + size {
            self.free.insert(first + count, start + size - first - count);
        }
    }

    /// Frees a range, and merges it with free neighbours.
    fn give(&mut self, mut first: u32, mut count: u32) {
        assert!(first + count <= self.capacity);
        if let Some((&start, &size)) = self.free.range(..first).next_back() {
            assert!(start + size <= first, "freed twice");
            if start + size == first {
                self.free.remove(&start);
                (first, count) = (start, count + size);
            }
        }
        if let Some(size) = self.free.remove(&(first + count)) {
            count += size;
        }
        assert!(self.free.insert(first, count).is_none(), "freed twice");
    }
}

fn clock() -> (Clock, TimelineId) {
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    (clock, timeline)
}

#[test]
fn random_ranges_agree_with_a_free_list() {
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let capacity = random.u32(1..700);
        let transient = if seed % 3 == 0 { random.u32(1..100) } else { 0 };
        let mut slots = HeapSlots::new(1, capacity, transient, 0);
        let mut shadow = Shadow::new(capacity);
        let (clock, timeline) = clock();
        let mut live = Vec::<DescriptorRange>::new();
        let mut dead = Vec::<DescriptorRangeId>::new();
        let mut waiting = Vec::<(u64, DescriptorRangeId)>::new();
        let mut frames = Vec::<(u64, DescriptorRangeId)>::new();
        let mut now = 0;
        for value in 1..400 {
            let ticket = clock.open(timeline);
            for _ in 0..random.usize(0..6) {
                match random.u32(0..10) {
                    0..5 => {
                        let most = capacity / random.u32(1..20);
                        let count = random.u32(0..1 + most);
                        let (free, largest) = (shadow.free_slots(), shadow.largest());
                        match slots.allocate(count) {
                            Ok(range) => {
                                assert_eq!(range.count(), count);
                                shadow.take(range.first(), count);
                                live.push(range);
                            }
                            Err(HeapError::ZeroCount) => assert_eq!(count, 0),
                            Err(HeapError::Full { asked, free: reported, largest_free, retiring }) => {
                                assert_eq!((asked, reported, largest_free), (count, free, largest));
                                assert_eq!(retiring, slots.statistics().retiring);
                                assert!(count > largest);
                            }
                            Err(other) => panic!("{other}"),
                        }
                    }
                    5..8 if !live.is_empty() => {
                        let range = live.swap_remove(random.usize(..live.len()));
                        let id = range.id();
                        assert_eq!(slots.retire(ticket, range), Ok(id.indices()));
                        waiting.push((value, id));
                        dead.push(id);
                    }
                    8 if !live.is_empty() => {
                        let range = live.swap_remove(random.usize(..live.len()));
                        let id = range.id();
                        slots.free(range).unwrap();
                        shadow.give(id.first(), id.count());
                        dead.push(id);
                    }
                    _ => {
                        let count = random.u32(1..20);
                        if let Ok(range) = slots.allocate_transient(ticket, count) {
                            assert!(range.first() >= capacity);
                            assert!(range.first() + count <= capacity + transient);
                            for &(_, other) in &frames {
                                let (a, b) = (range.indices(), other.indices());
                                assert!(a.end <= b.start || b.end <= a.start, "{range:?} {other:?}");
                            }
                            frames.push((value, range));
                        }
                    }
                }
                slots.validate();
            }
            clock.submit(ticket, value).unwrap();
            if random.u32(0..4) == 0 {
                now = random.u64(now..=value);
                clock.completed(timeline, now);
                let before = slots.statistics();
                let collected = slots.collect(&clock, drop).unwrap();
                let mut expected = 0;
                waiting.retain(|&(value, range)| {
                    if value <= now {
                        expected += range.count();
                        shadow.give(range.first(), range.count());
                    }
                    value > now
                });
                frames.retain(|&(value, range)| {
                    if value <= now {
                        expected += range.count();
                        dead.push(range);
                    }
                    value > now
                });
                assert_eq!(before.retiring - slots.statistics().retiring, expected);
                assert_eq!(collected, index(expected));
                slots.validate();
            }
            for range in live.iter().map(DescriptorRange::id).chain(frames.iter().map(|&(_, range)| range)) {
                assert_eq!(slots.check(range), Ok(()));
            }
            for &range in &dead {
                assert_eq!(slots.check(range), Err(RangeError::StaleHandle { range }));
            }
            assert_eq!(slots.largest_free(), shadow.largest());
        }
        clock.shutdown();
        for range in live {
            slots.retire(clock.open(timeline), range).unwrap();
        }
        slots.collect(&clock, drop).unwrap();
        let HeapStatistics { free, live, retiring, ranges, .. } = slots.statistics();
        assert_eq!((free, live, retiring, ranges), (capacity + transient, 0, 0, 0));
        assert_eq!(slots.largest_free(), capacity);
        slots.validate();
    }
}

/// Three consecutive ranges; the middle one is freed last, with its neighbours free or not.
#[test]
fn what_is_freed_is_joined_with_what_is_free_before_and_behind() {
    for (before, behind) in [(true, false), (false, true), (true, true), (false, false)] {
        let mut slots = HeapSlots::new(1, 96, 0, 0);
        let mut ranges = [(); 3].map(|()| slots.allocate(32).unwrap());
        ranges.sort_by_key(|range| range.first());
        let [first, second, third] = ranges;
        assert_eq!(slots.largest_free(), 0);
        for (goes, range) in [(before, first), (behind, third), (true, second)] {
            if goes {
                slots.free(range).unwrap();
                slots.validate();
            }
        }
        let largest = 32 * (1 + u32::from(before) + u32::from(behind));
        assert_eq!(slots.largest_free(), largest, "before: {before}, behind: {behind}");
        assert!(slots.allocate(largest).is_ok());
    }
}

#[test]
fn enough_slots_that_are_not_in_a_row_are_told_apart_from_too_few() {
    let mut slots = HeapSlots::new(1, 1_024, 0, 0);
    let mut ranges: Vec<_> = (0..32).map(|_| slots.allocate(32).unwrap()).collect();
    ranges.sort_by_key(|range| range.first());
    // Runs of at most 128 slots, 544 in total: four ranges in a row four times, and one alone.
    let mut free = 0;
    for (at, range) in ranges.into_iter().enumerate() {
        if at % 5 != 4 && at < 20 || at == 22 {
            slots.free(range).unwrap();
            free += 32;
        }
    }
    assert_eq!(free, 544);
    let full = HeapError::Full { asked: 200, free: 544, largest_free: 128, retiring: 0 };
    assert_eq!(slots.allocate(200), Err(full));
    assert!(slots.allocate(128).is_ok());
}

#[test]
fn a_range_is_dead_as_soon_as_it_is_retired() {
    let (clock, timeline) = clock();
    let mut slots = HeapSlots::new(1, 8, 0, 0);
    let range = slots.allocate(8).unwrap();
    let ticket = clock.open(timeline);
    let id = range.id();
    slots.retire(ticket, range).unwrap();
    // The slots are not free yet, and no request gets them.
    let stale = Err(RangeError::StaleHandle { range: id });
    assert_eq!(slots.check(id), stale);
    let full = HeapError::Full { asked: 1, free: 0, largest_free: 0, retiring: 8 };
    assert_eq!(slots.allocate(1), Err(full));
    clock.submit(ticket, 5).unwrap();
    clock.completed(timeline, 4);
    assert_eq!(slots.collect(&clock, drop), Ok(0));
    // Done when the counter has reached the value.
    clock.completed(timeline, 5);
    assert_eq!(slots.collect(&clock, drop), Ok(8));
    // The same slots, in a new range.
    let again = slots.allocate(8).unwrap();
    assert_eq!(again.first(), id.first());
    assert_eq!((slots.check(id), slots.check(again.id())), (stale, Ok(())));
    assert_ne!(id, again.id());
}

/// A range of another heap with the same fields.
#[test]
fn ranges_of_other_heaps_are_found_out() {
    let (mut one, mut other) = (HeapSlots::new(1, 8, 0, 0), HeapSlots::new(2, 8, 0, 0));
    let (mine, range) = (one.allocate(4).unwrap(), other.allocate(4).unwrap());
    assert_eq!((mine.first(), mine.count()), (range.first(), range.count()));
    let id = range.id();
    assert_eq!(one.check(id), Err(RangeError::ForeignHeap { range: id }));
    let ForeignDescriptorRange { range } = one.free(range).unwrap_err();
    assert_eq!((one.check(mine.id()), other.free(range)), (Ok(()), Ok(id.indices())), "it is given back");
    one.validate();
}

/// A stale range that starts inside a live one.
#[test]
fn a_dead_range_inside_a_living_one_stays_dead() {
    let mut slots = HeapSlots::new(1, 8, 0, 0);
    let (first, inner) = (slots.allocate(4).unwrap(), slots.allocate(4).unwrap());
    assert_eq!((first.first(), inner.first()), (0, 4));
    let id = inner.id();
    slots.free(inner).unwrap();
    slots.free(first).unwrap();
    assert_eq!(slots.allocate(8).unwrap().first(), 0);
    assert_eq!(slots.check(id), Err(RangeError::StaleHandle { range: id }));
    // A made-up handle with an even generation is rejected too.
    let made_up = DescriptorRangeId { generation: 2, ..id };
    assert_eq!(slots.check(made_up), Err(RangeError::StaleHandle { range: made_up }));
}

#[test]
fn ranges_of_frames_come_from_above_and_go_with_their_frame() {
    let (clock, timeline) = clock();
    let mut slots = HeapSlots::new(1, 100, 28, 0);
    let lasting = slots.allocate(100).unwrap();
    assert_eq!(lasting.first(), 0);
    for frame in 1..50 {
        let ticket = clock.open(timeline);
        for _ in 0..3 {
            let range = slots.allocate_transient(ticket, 3).unwrap();
            assert!(range.first() >= 100 && range.indices().end <= 128);
        }
        clock.submit(ticket, frame).unwrap();
        clock.completed(timeline, frame - 1);
        slots.collect(&clock, drop).unwrap();
        slots.validate();
        // Two frames never have more slots than were collected.
        assert_eq!(slots.statistics().retiring, 9);
    }
    let ticket = clock.open(timeline);
    assert!(matches!(slots.allocate_transient(ticket, 20), Err(HeapError::Full { asked: 20, .. })));
    assert_eq!(slots.allocate_transient(ticket, 0), Err(HeapError::ZeroCount));
}

#[test]
fn a_heap_without_a_part_for_frames_says_so() {
    let (clock, timeline) = clock();
    let mut slots = HeapSlots::new(1, 100, 0, 0);
    let full = HeapError::Full { asked: 1, free: 0, largest_free: 0, retiring: 0 };
    assert_eq!(slots.allocate_transient(clock.open(timeline), 1), Err(full));
}

/// Slots that were never allocated take no memory.
#[test]
fn a_heap_of_many_slots_takes_memory_for_those_that_somebody_had() {
    let (clock, timeline) = clock();
    let mut slots = HeapSlots::new(1, 1 << 31, 1 << 30, 0);
    assert_eq!(slots.capacity(), 3 << 30);
    let range = slots.allocate(5).unwrap();
    let frame = slots.allocate_transient(clock.open(timeline), 7).unwrap();
    assert_eq!((range.first(), frame.first()), (0, 1 << 31));
    assert!(slots.slots.lasting.len() + slots.slots.ring.len() < 16);
    assert_eq!((slots.check(range.id()), slots.check(frame)), (Ok(()), Ok(())));
    let far = DescriptorRangeId { first: 1 << 29, ..range.id() };
    assert_eq!(slots.check(far), Err(RangeError::StaleHandle { range: far }));
    slots.free(range).unwrap();
    assert_eq!(slots.statistics().free, (3 << 30) - 7);
}

/// The reservation is capped at the number of slots.
#[test]
fn room_for_more_ranges_than_slots_is_room_for_all_slots() {
    let mut slots = HeapSlots::new(1, 100, 28, 0);
    assert_eq!(slots.reserve(u32::MAX), Ok(()));
}

/// No slot beyond the capacity is granted, no slot number changes, and every range fits after the growth that
/// `grown_for` computed.
#[test]
fn a_heap_that_grows_grants_what_there_is_and_no_more() {
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (lasting, transient) = (random.u32(0..20), random.u32(0..8));
        let most = lasting + transient + random.u32(0..300);
        let mut slots = HeapSlots::new(1, lasting, transient, most);
        let (clock, timeline) = clock();
        let mut live = Vec::<DescriptorRange>::new();
        for _ in 0..300 {
            let capacity = slots.capacity();
            match random.u32(0..10) {
                0..6 => {
                    let count = random.u32(1..30);
                    let made = slots.allocate(count).or_else(|full| {
                        let next = slots.grown_for(count).ok_or(full)?;
                        assert!(capacity < next && next <= most, "{capacity} {next} {most}");
                        slots.extend(next);
                        assert_eq!(slots.capacity(), next);
                        Ok::<_, HeapError>(slots.allocate(count).expect("it has grown for this"))
                    });
                    live.extend(made);
                }
                6..9 if !live.is_empty() => {
                    slots.free(live.swap_remove(random.usize(..live.len()))).unwrap();
                }
                _ => {
                    if let Ok(range) = slots.allocate_transient(clock.open(timeline), random.u32(1..4)) {
                        assert!(range.first() >= lasting && range.indices().end <= lasting + transient);
                    }
                    clock.shutdown();
                    slots.collect(&clock, drop).unwrap();
                }
            }
            slots.validate();
            let mut sorted: Vec<_> = live.iter().map(|range| range.indices()).collect();
            sorted.sort_by_key(|range| range.start);
            assert!(sorted.windows(2).all(|pair| pair[0].end <= pair[1].start), "{sorted:?}");
            let ring = lasting..lasting + transient;
            let apart = |range: &Range<u32>| range.end <= ring.start || ring.end <= range.start;
            assert!(ring.is_empty() || sorted.iter().all(apart), "{sorted:?} {ring:?}");
            assert!(sorted.last().is_none_or(|range| range.end <= slots.capacity()));
        }
    }
}
