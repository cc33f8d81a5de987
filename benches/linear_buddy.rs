//! Measures the linear and the buddy engine alone: no memory, no lock.
//!
//! Times are for 1,000 operations of one allocation and its free each. `cargo bench --bench linear_buddy` also prints
//! reserved units per live unit. Workloads come from a fixed seed.
#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "numbers of a bench on a 64-bit host"
)]
#![allow(clippy::unwrap_used, reason = "a bench that fails is to stop")]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use sublet::metadata::{
    Alignment, Buddy, Key, Linear, Metadata, RangeMetadata, RegionId, Regions, Request, Tlsf,
};

fn main() {
    divan::main();
    if !std::env::args().any(|argument| argument == "--test") {
        reserved();
    }
}

const N: usize = 1000;

/// A seeded generator, so that every run has the same operations.
#[derive(Clone)]
struct Random(fastrand::Rng);

impl Random {
    fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0.usize(..limit)
    }
}

fn aligned(alignment: u64) -> Alignment {
    Alignment::new(alignment).expect("a power of two")
}

/// Passes only the values that a caller uses to `black_box`. Copies of whole results would dominate the time.
#[inline]
fn allocate(engine: &mut impl RangeMetadata, size: u64, alignment: u64) -> Key {
    let (key, span) = engine.allocate(&Request::new(size, aligned(alignment))).unwrap();
    black_box(span.offset);
    key
}

#[inline]
fn free(engine: &mut impl RangeMetadata, key: Key) {
    black_box(engine.free(key).unwrap().region_empty);
}

// ---- Linear ----

mod linear {
    use super::*;

    fn engine(regions: u64, capacity: u64) -> Linear {
        let mut engine = Linear::new(1 << 40, if regions == 1 { Regions::Single } else { Regions::Many });
        for _ in 0..regions {
            engine.add_region(&capacity).unwrap();
        }
        engine
    }

    const REGIONS: [u64; 2] = [1, 4000];

    #[inline]
    fn size(n: usize) -> u64 {
        256 + (black_box(n) as u64 & 1023)
    }

    /// A frame, freed in the order of allocation.
    #[divan::bench(args = REGIONS)]
    fn frame_in_order(bencher: Bencher<'_, '_>, regions: u64) {
        let mut engine = engine(regions, 64 << 20);
        let mut keys = Vec::with_capacity(N);
        bencher.counter(ItemsCount::new(N)).bench_local(|| {
            keys.extend((0..N).map(|n| allocate(&mut engine, size(n), 256)));
            keys.drain(..).for_each(|key| free(&mut engine, key));
        });
        assert_eq!(engine.usage().used, 0);
    }

    /// A stack, freed in reverse order.
    #[divan::bench(args = REGIONS)]
    fn frame_reversed(bencher: Bencher<'_, '_>, regions: u64) {
        let mut engine = engine(regions, 64 << 20);
        let mut keys = Vec::with_capacity(N);
        bencher.counter(ItemsCount::new(N)).bench_local(|| {
            keys.extend((0..N).map(|n| allocate(&mut engine, size(n), 256)));
            keys.drain(..).rev().for_each(|key| free(&mut engine, key));
        });
        assert_eq!(engine.usage().used, 0);
    }

    /// Freed all at once.
    #[divan::bench(args = REGIONS)]
    fn frame_reset(bencher: Bencher<'_, '_>, regions: u64) {
        let mut engine = engine(regions, 64 << 20);
        let RegionId(current) = engine.allocate(&Request::new(1, Alignment::ONE)).unwrap().1.region;
        engine.reset(RegionId(current));
        bencher.counter(ItemsCount::new(N)).bench_local(|| {
            (0..N).for_each(|n| _ = black_box(allocate(&mut engine, size(n), 256)));
            engine.reset(RegionId(current));
        });
        assert_eq!(engine.usage().used, 0);
    }

    /// Freed in random order.
    #[divan::bench(args = REGIONS)]
    fn frame_random(bencher: Bencher<'_, '_>, regions: u64) {
        let mut engine = engine(regions, 64 << 20);
        let mut random = Random::new(1);
        let mut order: Vec<usize> = (0..N).collect();
        (1..N).rev().for_each(|n| order.swap(n, random.below(n + 1)));
        let mut keys = Vec::with_capacity(N);
        bencher.counter(ItemsCount::new(N)).bench_local(|| {
            keys.extend((0..N).map(|n| allocate(&mut engine, size(n), 256)));
            order.iter().for_each(|&n| free(&mut engine, keys[n]));
            keys.clear();
        });
        assert_eq!(engine.usage().used, 0);
    }

    /// 100 live allocations. Each step frees the oldest, and cycles through regions of about 85.
    #[divan::bench(args = [4, 1000, 4000])]
    fn flow(bencher: Bencher<'_, '_>, regions: u64) {
        let mut engine = engine(regions, 64 << 10);
        let mut keys: std::collections::VecDeque<Key> =
            (0..100).map(|n| allocate(&mut engine, size(n), 256)).collect();
        bencher.counter(ItemsCount::new(N)).bench_local(|| {
            for n in 0..N {
                keys.push_back(allocate(&mut engine, size(n), 256));
                free(&mut engine, keys.pop_front().unwrap());
            }
        });
        assert_eq!(engine.usage().used_chunks, 100);
    }

    /// A ring buffer with 1,000 allocations in flight.
    #[divan::bench]
    fn ring(bencher: Bencher<'_, '_>) {
        let mut engine = engine(1, 2 << 20);
        let mut keys: std::collections::VecDeque<Key> =
            (0..N).map(|n| allocate(&mut engine, size(n), 256)).collect();
        bencher.counter(ItemsCount::new(N)).bench_local(|| {
            for n in 0..N {
                free(&mut engine, keys.pop_front().unwrap());
                keys.push_back(allocate(&mut engine, size(n), 256));
            }
        });
        assert_eq!(engine.usage().used_chunks, N as u64);
    }

    /// The worst case for many regions: each allocation fills one, and the oldest is freed. All but one region are in
    /// use.
    #[divan::bench(args = [2, 64, 4000])]
    fn one_each(bencher: Bencher<'_, '_>, regions: u64) {
        let mut engine = engine(regions, 4096);
        let mut keys: std::collections::VecDeque<Key> =
            (1..regions).map(|_| allocate(&mut engine, 4096, 256)).collect();
        bencher.counter(ItemsCount::new(N)).bench_local(|| {
            for _ in 0..N {
                keys.push_back(allocate(&mut engine, 4096, 256));
                free(&mut engine, keys.pop_front().unwrap());
            }
        });
        assert_eq!(engine.usage().used_chunks, regions - 1);
    }

    /// Same, while half of the regions are empty.
    #[divan::bench(args = [4, 64, 4000])]
    fn one_each_of_half(bencher: Bencher<'_, '_>, regions: u64) {
        let mut engine = engine(regions, 4096);
        let mut keys: std::collections::VecDeque<Key> =
            (0..regions / 2).map(|_| allocate(&mut engine, 4096, 256)).collect();
        bencher.counter(ItemsCount::new(N)).bench_local(|| {
            for _ in 0..N {
                keys.push_back(allocate(&mut engine, 4096, 256));
                free(&mut engine, keys.pop_front().unwrap());
            }
        });
        assert_eq!(engine.usage().used_chunks, regions / 2);
    }
}

// ---- Buddy, and its alternatives ----

/// Distributions of sizes.
#[derive(Clone, Copy, Debug)]
enum Sizes {
    /// 1 to 64 slots of a table, in powers of two.
    Slots,
    /// 256 B to 1 MiB in powers of two, aligned to their size up to 64 KiB: tiles, atlases, mip chains, ring pages.
    Bytes,
    /// Same range as `Bytes`, with any size.
    AnyBytes,
}

impl Sizes {
    fn draw(self, random: &mut Random) -> (u64, u64) {
        match self {
            Self::Slots => (1 << random.below(7), 1),
            Self::Bytes => {
                let size = 1 << (8 + random.below(13));
                (size, size.min(1 << 16))
            }
            Self::AnyBytes => {
                let size = 1 << (8 + random.below(12));
                (size + random.0.u64(..size), 256)
            }
        }
    }

    const fn region(self) -> u64 {
        match self {
            Self::Slots => 1 << 12,
            Self::Bytes | Self::AnyBytes => 8 << 20,
        }
    }

    fn buddy(self) -> Buddy {
        Buddy::new(self.region(), if matches!(self, Self::Slots) { 1 } else { 256 })
    }
}

/// `live` allocations. Each step replaces a random one. Regions are added when space runs out.
#[derive(Clone)]
struct Churn<M> {
    engine: M,
    sizes: Sizes,
    random: Random,
    live: Vec<(Key, u64)>,
}

impl<M: RangeMetadata> Churn<M> {
    fn new(engine: M, sizes: Sizes, live: usize) -> Self {
        let mut churn = Self { engine, sizes, random: Random::new(1), live: Vec::new() };
        for _ in 0..live {
            let granted = churn.allocate();
            churn.live.push(granted);
        }
        (0..20 * live).for_each(|_| churn.step());
        churn
    }

    #[inline]
    fn allocate(&mut self) -> (Key, u64) {
        let (size, alignment) = self.sizes.draw(&mut self.random);
        let request = Request::new(size, aligned(alignment));
        loop {
            if let Ok((key, span)) = self.engine.allocate(&request) {
                black_box(span.offset);
                return (key, size);
            }
            self.engine.add_region(&self.sizes.region()).unwrap();
        }
    }

    #[inline]
    fn step(&mut self) {
        let at = self.random.below(self.live.len());
        free(&mut self.engine, self.live[at].0);
        self.live[at] = self.allocate();
    }

    /// Returns the units of all regions per live unit.
    fn reserved(&self) -> f64 {
        let live: u64 = self.live.iter().map(|(_, size)| size).sum();
        self.engine.usage().capacity as f64 / live as f64
    }
}

fn churn<M: RangeMetadata>(bencher: Bencher<'_, '_>, engine: M, sizes: Sizes) {
    let mut churn = Churn::new(engine, sizes, 10_000);
    bencher.counter(ItemsCount::new(N)).bench_local(|| (0..N).for_each(|_| churn.step()));
    assert_eq!(churn.engine.usage().used_chunks, 10_000);
}

const SIZES: [Sizes; 3] = [Sizes::Slots, Sizes::Bytes, Sizes::AnyBytes];

#[divan::bench(args = SIZES)]
fn churn_10k_buddy(bencher: Bencher<'_, '_>, sizes: Sizes) {
    churn(bencher, sizes.buddy(), sizes);
}

#[divan::bench(args = SIZES)]
fn churn_10k_tlsf(bencher: Bencher<'_, '_>, sizes: Sizes) {
    churn(bencher, Tlsf::new(sizes.region()), sizes);
}

/// The workload's own cost, to be subtracted from the other rows.
#[divan::bench(args = SIZES)]
fn churn_10k_no_engine(bencher: Bencher<'_, '_>, sizes: Sizes) {
    let mut random = Random::new(1);
    let mut live = vec![(0_u64, 0_u64); 10_000];
    bencher.counter(ItemsCount::new(N)).bench_local(|| {
        for _ in 0..N {
            let at = random.below(live.len());
            black_box(live[at]);
            live[at] = black_box(sizes.draw(&mut random));
        }
    });
}

fn reserved() {
    println!("\nunits reserved for one that is live, after 20 replacements of each of n allocations");
    println!("{:>10} {:>8} {:>8} {:>8}", "sizes", "n", "Buddy", "Tlsf");
    for sizes in SIZES {
        for live in [100, 1000, 10_000] {
            let buddy = Churn::new(sizes.buddy(), sizes, live).reserved();
            let tlsf = Churn::new(Tlsf::new(sizes.region()), sizes, live).reserved();
            println!("{:>10} {live:>8} {buddy:>8.3} {tlsf:>8.3}", format!("{sizes:?}"));
        }
    }
}
