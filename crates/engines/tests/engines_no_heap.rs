//! An engine allocates no host memory until it exceeds its earlier peak. The global allocator of this binary counts
//! calls.
#![allow(clippy::as_conversions, clippy::cast_possible_truncation, reason = "test code on 64-bit hosts")]

#[allow(unreachable_pub, reason = "shared with other binaries")]
#[path = "../../../tests/shared/counting.rs"]
mod counting;

use counting::{bytes, count};
use sublet_engines::{
    Alignment, Buddy, Key, Linear, RangeMetadata, RegionId, Regions, Request, Strategy, Tlsf,
};

/// Adds and removes regions, fills them, frees in three orders, and resets. `keys` has capacity for all keys.
fn work(engine: &mut impl RangeMetadata, regions: u32, upper: bool, keys: &mut Vec<Key>) {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..regions {
        engine.add_region(&(1 << 16)).expect("few regions");
    }
    let strategies = [Strategy::Balanced, Strategy::MinTime, Strategy::MinMemory, Strategy::MinOffset];
    for round in 0..12 {
        for n in 0..400 {
            let request = Request {
                strategy: strategies[random.u64(..4).min(3) as usize],
                upper: upper && n % 5 == 0,
                ..Request::new(
                    1 + random.u64(..900),
                    Alignment::new(1 << random.u64(..9)).expect("a power of two"),
                )
            };
            if let Ok((key, _)) = engine.allocate(&request) {
                keys.push(key);
            }
            if random.u64(..3) == 0 && !keys.is_empty() {
                let at = random.u64(..keys.len() as u64) as usize;
                let key = keys.swap_remove(at);
                engine.free(key).expect("a live key");
                assert!(engine.free(key).is_err());
            }
            if n % 100 == 0 {
                let mut chunks = 0;
                engine.walk(RegionId(0), &mut |_| chunks += 1);
                assert!(chunks > 0 && engine.largest_free() <= 1 << 16);
            }
        }
        match round % 3 {
            0 => keys.drain(..).for_each(|key| assert!(engine.free(key).is_ok())),
            1 => keys.drain(..).rev().for_each(|key| assert!(engine.free(key).is_ok())),
            _ => {
                keys.clear();
                (0..regions).for_each(|id| engine.reset(RegionId(id)));
            }
        }
        assert_eq!(engine.usage().used, 0);
    }
    for id in 0..regions {
        engine.remove_region(RegionId(id)).expect("an empty region");
    }
}

fn check(mut engine: impl RangeMetadata, regions: u32, upper: bool) {
    let mut keys = Vec::with_capacity(400);
    let start = count();
    work(&mut engine, regions, upper, &mut keys);
    let warm = count();
    assert!(warm > start, "a cold engine allocates, or nothing is counted");
    work(&mut engine, regions, upper, &mut keys);
    assert_eq!(count() - warm, 0, "host allocations of a warm engine: {engine:?}");
}

#[test]
fn linear_single() {
    check(Linear::new(1 << 16, Regions::Single), 1, true);
}

#[test]
fn linear_many() {
    check(Linear::new(1 << 16, Regions::Many), 7, false);
}

#[test]
fn buddy() {
    check(Buddy::new(1 << 16, 1), 7, false);
}

#[test]
fn tlsf() {
    check(Tlsf::new(1 << 16), 7, false);
    check(Tlsf::with_slabs(1 << 22), 7, false);
}

/// Creates and uses an engine, and compares its `heap_bytes` with the allocations of this thread.
fn check_heap_bytes<E: RangeMetadata>(
    make: impl Fn() -> E,
    upper: bool,
    regions: u32,
    heap_bytes: impl Fn(&E) -> usize,
) {
    let mut keys = Vec::with_capacity(10_000);
    let before = bytes();
    let held = || bytes().wrapping_sub(before);
    let mut engine = make();
    assert_eq!(heap_bytes(&engine), held(), "before it has a region");
    for _ in 0..3 {
        work(&mut engine, regions, upper, &mut keys);
        assert_eq!(heap_bytes(&engine), held());
    }
    drop(engine);
    assert_eq!(held(), 0);
}

#[test]
fn engines_say_what_they_hold() {
    check_heap_bytes(|| Tlsf::new(1 << 16), false, 4, Tlsf::heap_bytes);
    check_heap_bytes(|| Tlsf::with_slabs(1 << 22), false, 4, Tlsf::heap_bytes);
    check_heap_bytes(|| Buddy::new(1 << 16, 1), false, 4, Buddy::heap_bytes);
    check_heap_bytes(|| Linear::new(1 << 16, Regions::Single), true, 1, Linear::heap_bytes);
    check_heap_bytes(|| Linear::new(1 << 16, Regions::Many), false, 4, Linear::heap_bytes);
}
