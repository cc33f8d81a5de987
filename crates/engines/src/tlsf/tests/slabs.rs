//! Slabs: when they are used, that they take almost no space, and when they are freed.

use std::collections::BTreeMap;

use super::*;

const BLOCK: u64 = 64 << 20;

/// An engine used like that of a vector of blocks: adds a region if there is no space, and keeps only one empty region.
struct Vector {
    tlsf: Tlsf,
    empty: Vec<RegionId>,
    live: Vec<(Key, u64)>,
    /// The end of each grant, by its start, counted over all regions.
    used: BTreeMap<u64, u64>,
    /// The peak of the units of all regions.
    peak: u64,
}

impl Vector {
    fn new(has_slabs: bool) -> Self {
        let tlsf = if has_slabs { Tlsf::with_slabs(BLOCK) } else { Tlsf::new(BLOCK) };
        Self { tlsf, empty: Vec::new(), live: Vec::new(), used: BTreeMap::new(), peak: 0 }
    }

    fn allocate(&mut self, size: u64, alignment: u64) -> Span {
        let request = asked(size, alignment);
        let (key, span) = self.tlsf.allocate(&request).unwrap_or_else(|_| {
            let region = self.tlsf.add_region(&BLOCK).unwrap();
            self.empty.push(region);
            self.tlsf.allocate(&request).unwrap()
        });
        self.empty.retain(|&region| region != span.region);
        let start = address(span);
        assert_eq!((span.size, span.offset % alignment), (size, 0), "{span:?} at {alignment}");
        let before = self.used.range(..start + size).next_back();
        assert!(before.is_none_or(|(_, &end)| end <= start), "{span:?} overlaps with {before:?}");
        self.used.insert(start, start + size);
        self.live.push((key, size));
        self.peak = self.peak.max(self.reserved());
        span
    }

    fn free(&mut self, place: usize) {
        let (key, size) = self.live.swap_remove(place);
        let Freed { span, region_empty } = self.tlsf.free(key).unwrap();
        assert_eq!(self.used.remove(&address(span)), Some(address(span) + size), "{span:?}");
        if region_empty {
            self.empty.push(span.region);
            if self.empty.len() > 1 {
                self.tlsf.remove_region(self.empty.remove(0)).unwrap();
            }
        }
    }

    fn reserved(&self) -> u64 {
        self.tlsf.usage().capacity
    }
}

fn address(span: Span) -> u64 {
    u64::from(span.region.0) * BLOCK + span.offset
}

/// Runs a program with and without slabs. Returns the units of all regions with slabs in percent of those without: at
/// the peak, and at the end.
fn compare(what: &str, play: impl Fn(&mut Vector, &mut Random)) -> (u64, u64) {
    let mut vectors = [true, false].map(|has_slabs| {
        let mut vector = Vector::new(has_slabs);
        play(&mut vector, &mut Random(7));
        vector.tlsf.validate();
        vector
    });
    let [with, without] = vectors.each_ref().map(|vector| (vector.peak >> 20, vector.reserved() >> 20));
    println!(
        "{what}: {with:?} MiB with slabs, {without:?} without; slabs {:?}",
        vectors[0].tlsf.slab_units()
    );
    // All units become free.
    for vector in &mut vectors {
        while !vector.live.is_empty() {
            vector.free(0);
        }
        assert_eq!(vector.tlsf.largest_free(), BLOCK, "{what}");
        vector.tlsf.validate();
    }
    (with.0 * 100 / without.0, with.1 * 100 / without.1.max(1))
}

fn fill(vector: &mut Vector, random: &mut Random, count: usize, low: u32, high: u32) {
    for _ in 0..count {
        let (size, alignment) = (random.size(low, high), random.usual_alignment());
        vector.allocate(size, alignment);
    }
}

fn free_down_to(vector: &mut Vector, random: &mut Random, count: usize) {
    while vector.live.len() > count {
        let place = random.place(vector.live.len());
        vector.free(place);
    }
}

#[test]
fn churn_takes_no_more() {
    for (high, count) in [(20, 4000), (17, 4000), (12, 20_000)] {
        let (peak, end) = compare("churn", |vector, random| {
            fill(vector, random, count, 8, high);
            for _ in 0..4 * count {
                let place = random.place(vector.live.len());
                vector.free(place);
                fill(vector, random, 1, 8, high);
            }
        });
        assert!(peak <= 100 && end <= 100, "up to 2^{high}: {peak} %, {end} %");
    }
}

#[test]
fn one_survivor_in_each_slab_and_then_large_ones() {
    let (peak, end) = compare("survivors", |vector, random| {
        for _ in 0..40_000 {
            vector.allocate(2048, 256);
        }
        // Frees all but one in 32.
        let mut place = 0;
        let mut count = 0;
        while place < vector.live.len() {
            count += 1;
            if count % 32 == 0 { place += 1 } else { vector.free(place) }
        }
        fill(vector, random, 300, 16, 20);
    });
    assert!(peak <= 100 && end <= 100, "{peak} %, {end} %");
}

#[test]
fn classes_drift() {
    let (peak, end) = compare("drift", |vector, random| {
        for step in 0..48_u64 {
            let size = 256 + step * 79;
            for _ in 0..2000 {
                vector.allocate(size, 256);
            }
            let len = vector.live.len();
            // Frees most of the allocations, at random.
            free_down_to(vector, random, len.min(2500));
        }
    });
    assert!(peak <= 100 && end <= 100, "{peak} %, {end} %");
}

#[test]
fn alternating_sizes() {
    let (peak, end) = compare("alternating", |vector, _| {
        for round in 0..20 {
            for _ in 0..3000 {
                vector.allocate(if round % 2 == 0 { 1024 } else { 3000 }, 256);
            }
            while vector.live.len() > 500 {
                vector.free(0);
            }
        }
    });
    assert!(peak <= 100 && end <= 100, "{peak} %, {end} %");
}

#[test]
fn freed_at_random() {
    for part in [10, 100] {
        let (peak, end) = compare("freed at random", |vector, random| {
            fill(vector, random, 8000, 8, 18);
            free_down_to(vector, random, 8000 / part);
            fill(vector, random, 600, 16, 18);
        });
        assert!(peak <= 100 && end <= 100, "to 1/{part}: {peak} %, {end} %");
    }
}

#[test]
fn long_lived_among_short_lived() {
    let (peak, end) = compare("long-lived", |vector, random| {
        let mut long = Vec::new();
        for _ in 0..60 {
            let first = vector.live.len();
            fill(vector, random, 800, 8, 16);
            // Keeps one in 16.
            for place in (first..vector.live.len()).rev() {
                if place % 16 == 0 {
                    long.push(vector.live.swap_remove(place));
                } else {
                    vector.free(place);
                }
            }
        }
        vector.live.append(&mut long);
    });
    assert!(peak <= 100 && end <= 100, "{peak} %, {end} %");
}

/// The granted units at the first refused request.
fn filled(mut tlsf: Tlsf, blocks: u64, mut next: impl FnMut() -> (u64, u64)) -> u64 {
    let mut live = Vec::new();
    loop {
        let (size, alignment) = next();
        match tlsf.allocate(&asked(size, alignment)) {
            Ok((key, _)) => live.push(key),
            Err(_) if tlsf.usage().capacity < blocks * BLOCK => drop(tlsf.add_region(&BLOCK)),
            Err(_) => return tlsf.usage().used,
        }
    }
}

#[test]
fn as_much_fits_as_without() {
    for (is_mixed, per_10_000) in [(false, 10), (true, 20)] {
        let [mut with, mut without] = [0, 0];
        for seed in 1..=4 {
            let fill = |tlsf| {
                let mut random = Random(seed);
                filled(tlsf, 8, || {
                    let alignment =
                        if is_mixed { 1 << (8 + 4 * random.below(3)) } else { random.usual_alignment() };
                    (random.size(8, 20), alignment)
                })
            };
            with += fill(Tlsf::with_slabs(BLOCK));
            without += fill(Tlsf::new(BLOCK));
        }
        println!("mixed {is_mixed}: {with} with slabs, {without} without");
        assert!(with >= without / 10_000 * (10_000 - per_10_000), "mixed {is_mixed}: {with}, {without}");
    }
}

/// An engine of one region in which every request of 1000 units gets a slot, except the first few.
fn hot() -> (Tlsf, Vec<Key>) {
    let mut tlsf = Tlsf::with_slabs(BLOCK);
    tlsf.add_region(&BLOCK).unwrap();
    let keys = (0..200).map(|_| tlsf.allocate(&asked(1000, 8)).unwrap().0).collect();
    assert!(tlsf.slab_units().0 > 150_000, "this tests nothing");
    (tlsf, keys)
}

#[test]
fn the_only_chunk_of_an_engine_has_no_slab() {
    let mut tlsf = Tlsf::with_slabs(BLOCK);
    tlsf.add_region(&BLOCK).unwrap();
    let host_bytes = tlsf.heap_bytes();
    for _ in 0..100 {
        let key = tlsf.allocate(&asked(500, 16)).unwrap().0;
        tlsf.free(key).unwrap();
    }
    assert_eq!(tlsf.slab_units(), (0, 0));
    assert!(tlsf.heap_bytes() <= host_bytes + 512, "a few nodes");
}

#[test]
fn what_is_not_hot_takes_no_host_memory() {
    let [mut with, mut without] = [Tlsf::with_slabs(BLOCK), Tlsf::new(BLOCK)];
    for tlsf in [&mut with, &mut without] {
        tlsf.add_region(&BLOCK).unwrap();
        for size in [300, 600, 1000, 9000, 20_000, 20_000, 20_000, 20_000, 300, 300] {
            tlsf.allocate(&asked(size, 256)).unwrap();
        }
    }
    assert_eq!(with.heap_bytes(), without.heap_bytes());
    assert_eq!(with.slab_units(), (0, 0));
    for _ in 0..4 {
        with.allocate(&asked(300, 256)).unwrap();
    }
    assert_ne!(with.slab_units(), (0, 0));
    assert!(with.heap_bytes() > without.heap_bytes());
}

#[test]
fn a_stale_key_is_an_error() {
    let (mut tlsf, mut keys) = hot();
    let stale = keys.pop().unwrap();
    tlsf.free(stale).unwrap();
    assert_eq!(tlsf.free(stale), Err(BadKey));
    // Reuses the slot.
    let key = tlsf.allocate(&asked(1000, 8)).unwrap().0;
    assert_eq!(key.0.get() << 32, stale.0.get() << 32, "this tests nothing");
    for key in [stale, Key(stale.0.saturating_add(1 << 6)), Key(stale.0.saturating_add(1 << 20))] {
        assert_eq!(tlsf.free(key), Err(BadKey));
        assert_eq!(tlsf.take_back(key), None);
        assert_eq!((tlsf.span(key), tlsf.tag(key)), (Err(BadKey), Err(BadKey)));
    }
    keys.push(key);
    for key in &keys {
        tlsf.free(*key).unwrap();
    }
    // After the slabs are freed, all keys are stale.
    assert!(tlsf.give_slabs_back());
    assert!(!tlsf.give_slabs_back());
    assert_eq!(tlsf.slab_units(), (0, 0));
    for key in keys {
        assert_eq!(tlsf.free(key), Err(BadKey));
    }
    tlsf.validate();
}

/// The records of freed slabs are used again.
#[test]
fn slabs_made_in_turn_take_no_more_host_memory() {
    let (mut tlsf, mut keys) = hot();
    let mut held = None;
    for _ in 0..100 {
        keys.drain(..).for_each(|key| assert!(tlsf.free(key).is_ok()));
        assert!(tlsf.give_slabs_back());
        keys.extend((0..200).map(|_| tlsf.allocate(&asked(1000, 8)).unwrap().0));
        assert_eq!(*held.get_or_insert(tlsf.heap_bytes()), tlsf.heap_bytes());
    }
    tlsf.validate();
}

#[test]
fn empty_slabs_are_no_reason_to_refuse() {
    let (mut tlsf, keys) = hot();
    let kept = keys[0];
    for key in &keys[1..] {
        tlsf.free(*key).unwrap();
    }
    assert!(tlsf.slab_units().0 > 0, "this tests nothing");
    let offset = tlsf.span(kept).unwrap().offset;
    let rest = BLOCK - 1000 - offset.max(8);
    assert_eq!(tlsf.fits(&asked(rest - 1000, 8)), Ok(true));
    assert!(tlsf.largest_free() >= rest - 1000);
    tlsf.allocate(&asked(rest - 1000, 8)).unwrap();
    tlsf.validate();
}

#[test]
fn slots_of_other_sizes_are_the_last_resort() {
    let (mut tlsf, mut keys) = hot();
    // Fills the core.
    while let Ok((_, span)) = tlsf.allocate(&asked(tlsf.largest_free(), 1)) {
        assert!(span.size > 0);
    }
    while tlsf.allocate(&asked(1000, 8)).is_ok() {}
    let largest = tlsf.largest_free();
    assert!(largest < 600, "{largest}");
    tlsf.free(keys.pop().unwrap()).unwrap();
    for (size, alignment, strategy) in [
        (1025, 8, Strategy::Balanced),
        (900, 2048, Strategy::Balanced),
        (u64::MAX, 8, Strategy::Balanced),
        (0, 8, Strategy::Balanced),
    ] {
        let request = Request { strategy, ..asked(size, alignment) };
        assert_eq!(tlsf.fits(&request), Ok(false), "{request:?}");
        assert!(tlsf.allocate(&request).is_err(), "{request:?}");
    }
    for strategy in [Strategy::Balanced, Strategy::MinTime, Strategy::MinMemory, Strategy::MinOffset] {
        let request = Request { strategy, ..asked(600, 64) };
        assert_eq!(tlsf.fits(&request), Ok(true), "{strategy:?}");
        let (key, span) = tlsf.allocate(&request).unwrap();
        assert_eq!((span.size, span.offset % 64), (600, 0));
        assert!(tlsf.allocate(&request).is_err(), "{strategy:?}");
        tlsf.validate();
        tlsf.free(key).unwrap();
    }
}

#[test]
fn where_little_is_free_no_slab_is_made() {
    let mut tlsf = Tlsf::with_slabs(BLOCK);
    tlsf.add_region(&BLOCK).unwrap();
    // Less than 12 of 128 parts are free.
    let (large, _) = tlsf.allocate(&asked(BLOCK / 128 * 116, 8)).unwrap();
    for _ in 0..100 {
        tlsf.allocate(&asked(1000, 8)).unwrap();
    }
    assert_eq!(tlsf.slab_units(), (0, 0));
    // A new region enables slabs again.
    let region = tlsf.add_region(&BLOCK).unwrap();
    for _ in 0..100 {
        tlsf.allocate(&asked(1000, 8)).unwrap();
    }
    assert_ne!(tlsf.slab_units(), (0, 0));
    assert_eq!(tlsf.region_usage(region).used, 0, "and slabs are made of what is in use");
    tlsf.free(large).unwrap();
    tlsf.validate();
}

#[test]
fn strategies_that_look_for_a_place_take_no_slot() {
    let (mut tlsf, mut keys) = hot();
    let before = tlsf.slab_units();
    tlsf.free(keys.pop().unwrap()).unwrap();
    let mut allocate =
        |strategy| tlsf.allocate(&Request { strategy, ..asked(1000, 8) }).map(|_| tlsf.slab_units());
    assert_eq!(allocate(Strategy::MinMemory), Ok((before.0, before.1 + 1000)));
    assert_eq!(allocate(Strategy::MinTime), Ok(before));
    tlsf.free(keys.pop().unwrap()).unwrap();
    let mut allocate =
        |strategy| tlsf.allocate(&Request { strategy, ..asked(1000, 8) }).map(|_| tlsf.slab_units());
    assert_eq!(allocate(Strategy::MinOffset), Ok((before.0, before.1 + 1000)));
    assert_eq!(allocate(Strategy::Balanced), Ok(before));
}

#[test]
fn empty_slabs_that_are_too_many_go_back() {
    let (mut tlsf, keys) = hot();
    // Up to half of a single region may be empty slabs.
    let mut more: Vec<_> = (0..20_000).map(|_| tlsf.allocate(&asked(1000, 8)).unwrap().0).collect();
    let made = tlsf.slab_units().0;
    more.drain(..).for_each(|key| assert!(tlsf.free(key).is_ok()));
    assert!(tlsf.slab_units().0 > made / 10 * 9);
    // With several regions, empty slabs have at most a 64th of the granted units, plus those emptied since the last
    // check.
    tlsf.add_region(&BLOCK).unwrap();
    assert!(tlsf.slab_units().0 < 300_000);
    more.extend((0..20_000).map(|_| tlsf.allocate(&asked(1000, 8)).unwrap().0));
    more.drain(..).for_each(|key| assert!(tlsf.free(key).is_ok()));
    let (units, free) = tlsf.slab_units();
    assert!(free < 64 * (64 << 10) + 300_000, "{units}, {free}");
    tlsf.validate();
    keys.into_iter().for_each(|key| assert!(tlsf.free(key).is_ok()));
}

/// A region without grants is one free chunk, unless it is the only one.
#[test]
fn an_empty_region_has_no_slab() {
    let mut tlsf = Tlsf::with_slabs(BLOCK);
    let regions = [(); 2].map(|()| tlsf.add_region(&BLOCK).unwrap());
    let mut keys = Vec::new();
    let large: Vec<_> = (0..2).map(|_| tlsf.allocate(&asked(BLOCK / 4 * 3, 8)).unwrap()).collect();
    assert_ne!(large[0].1.region, large[1].1.region);
    for _ in 0..1000 {
        keys.push(tlsf.allocate(&asked(1000, 8)).unwrap());
    }
    let in_use = keys[999].1.region;
    let place = usize::from(large[1].1.region == in_use);
    tlsf.free(large[place].0).unwrap();
    let last = keys.pop().unwrap();
    for (key, _) in keys {
        assert!(!tlsf.free(key).unwrap().region_empty);
    }
    assert_eq!(tlsf.take_back(last.0), Some((in_use, true)));
    tlsf.validate();
    assert_eq!(tlsf.slab_units(), (0, 0));
    tlsf.remove_region(in_use).unwrap();
    assert!(regions.contains(&in_use));
    // A reset drops the grants in the slabs of its region.
    let other = large[1 - place].1.region;
    tlsf.free(large[1 - place].0).unwrap();
    let keys: Vec<_> = (0..1000).map(|_| tlsf.allocate(&asked(1000, 8)).unwrap().0).collect();
    assert_ne!(tlsf.slab_units(), (0, 0));
    tlsf.reset(other);
    tlsf.validate();
    assert_eq!((tlsf.slab_units(), tlsf.usage().used), ((0, 0), 0));
    assert!(keys.into_iter().all(|key| tlsf.free(key).is_err()));
}

#[test]
fn a_reset_keeps_the_slabs_of_other_regions() {
    let (mut tlsf, _) = hot();
    let before = (tlsf.slab_units().0, tlsf.usage().used);
    let rest = tlsf.largest_free();
    let mut granted = vec![tlsf.allocate(&asked(rest, 8)).unwrap()];
    let region = tlsf.add_region(&BLOCK).unwrap();
    granted.extend((0..2000).map(|_| tlsf.allocate(&asked(1000, 8)).unwrap()));
    assert!(tlsf.slab_units().0 > 2 * before.0, "this tests nothing");
    tlsf.reset(region);
    tlsf.validate();
    let (gone, kept): (Vec<_>, Vec<_>) = granted.into_iter().partition(|(_, span)| span.region == region);
    let sizes: u64 = kept.iter().map(|(_, span)| span.size).sum();
    assert_eq!(tlsf.usage().used, before.1 + sizes);
    assert!(gone.into_iter().all(|(key, _)| tlsf.free(key).is_err()));
    assert!(kept.into_iter().all(|(key, _)| tlsf.free(key).is_ok()));
    assert_eq!(tlsf.usage().used, before.1);
}
