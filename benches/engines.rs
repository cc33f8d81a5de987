//! Measures the TLSF engine alone: no memory, no lock, no driver.
//!
//! Run with `cargo bench --bench engines`, or as a test with `cargo test --benches`. The operations are generated in
//! advance from fixed seeds, and every run checks its end state. One item is one pair of allocate and free.
//!
//! Sizes are log-uniform by octave, 256 to 1,048,575 units. Alignments are 16, 256, 4096 and 65536 at 40, 50, 8 and 2
//! percent (usual), or at 25 percent each (mixed). Drivers report sizes that are multiples of the alignment, so sizes
//! are rounded up to it. `odd` sizes are not: they leave slack on both sides of each allocation, which is the most
//! work.
//!
//! A table comes first: reserved units per live unit at the peak, the engine's host memory per allocation, and the
//! latencies of single calls.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::fmt;
use std::time::Instant;

use divan::Bencher;
use divan::counter::ItemsCount;
use sublet::metadata::{Alignment, Key, Metadata, Request, Strategy, Tlsf};

const MIB: u64 = 1 << 20;

/// A seeded generator, so that every run has the same operations.
struct Random(fastrand::Rng);

impl Random {
    fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0.u64(..bound)
    }

    fn index(&mut self, bound: usize) -> usize {
        self.0.usize(..bound)
    }

    /// Returns a size: uniform over powers of two, and uniform within each.
    fn size(&mut self) -> u64 {
        let octave = 1 << (8 + self.below(12));
        octave + self.below(octave)
    }

    fn alignment(&mut self, alignments: Alignments) -> u64 {
        let percent = self.below(100);
        match alignments {
            Alignments::Mixed => [16, 256, 4096, 65536][self.index(4)],
            _ if percent < 40 => 16,
            _ if percent < 90 => 256,
            _ if percent < 98 => 4096,
            _ => 65536,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Alignments {
    Usual,
    Mixed,
    /// Usual alignments, with sizes that are not multiples of them.
    Odd,
}

fn aligned(alignment: u64) -> Alignment {
    Alignment::new(alignment).expect("a power of two")
}

/// `live` allocations. Each pair frees a random one and allocates a new one.
#[derive(Clone, Copy)]
struct Churn {
    live: usize,
    alignments: Alignments,
    strategy: Strategy,
}

impl fmt::Display for Churn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>6} live, {:?}, {:?}", self.live, self.alignments, self.strategy)
    }
}

/// A warm engine and its operations.
struct Play {
    tlsf: Tlsf,
    keys: Vec<Key>,
    pairs: Vec<(usize, Request)>,
    /// Units in use after all pairs.
    used: u64,
    /// Reserved units per unit in use at the peak.
    reserved: f64,
}

fn allocate(tlsf: &mut Tlsf, region: u64, request: &Request) -> Key {
    loop {
        match tlsf.allocate(request) {
            Ok((key, _)) => return key,
            Err(_) => assert!(tlsf.add_region(&region).is_ok()),
        }
    }
}

impl Churn {
    fn request(&self, random: &mut Random) -> Request {
        let alignment = random.alignment(self.alignments);
        let size = random.size();
        let size = if self.alignments == Alignments::Odd { size } else { size.next_multiple_of(alignment) };
        Request { strategy: self.strategy, ..Request::new(size, aligned(alignment)) }
    }

    /// Warms up with ten times as many pairs as allocations.
    fn warm(&self, region: u64, pairs: usize) -> Play {
        let mut random = Random::new(42);
        let mut tlsf = Tlsf::new(region);
        let mut requests: Vec<_> = (0..self.live).map(|_| self.request(&mut random)).collect();
        let mut keys: Vec<_> = requests.iter().map(|request| allocate(&mut tlsf, region, request)).collect();
        let mut peak = 0;
        for _ in 0..10 * self.live {
            let place = random.index(self.live);
            tlsf.free(keys[place]).unwrap();
            requests[place] = self.request(&mut random);
            keys[place] = allocate(&mut tlsf, region, &requests[place]);
            peak = peak.max(tlsf.usage().used);
        }
        let units = |bytes: u64| f64::from(u32::try_from(bytes / 4096).unwrap());
        let reserved = units(tlsf.usage().capacity) / units(peak);
        let pairs: Vec<_> =
            (0..pairs).map(|_| (random.index(self.live), self.request(&mut random))).collect();
        for (place, request) in &pairs {
            requests[*place] = *request;
        }
        let used = requests.iter().map(|request| request.size).sum();
        // One region more than needed, so that growth is not measured.
        tlsf.add_region(&region).unwrap();
        Play { tlsf, keys, pairs, used, reserved }
    }
}

const fn churn(live: usize, alignments: Alignments, strategy: Strategy) -> Churn {
    Churn { live, alignments, strategy }
}

const CHURNS: [Churn; 14] = [
    churn(1_000, Alignments::Usual, Strategy::Balanced),
    churn(1_000, Alignments::Mixed, Strategy::Balanced),
    churn(10_000, Alignments::Usual, Strategy::Balanced),
    churn(10_000, Alignments::Mixed, Strategy::Balanced),
    churn(10_000, Alignments::Odd, Strategy::Balanced),
    churn(100_000, Alignments::Usual, Strategy::Balanced),
    churn(100_000, Alignments::Mixed, Strategy::Balanced),
    churn(10_000, Alignments::Usual, Strategy::MinTime),
    churn(10_000, Alignments::Mixed, Strategy::MinTime),
    churn(10_000, Alignments::Odd, Strategy::MinTime),
    churn(10_000, Alignments::Usual, Strategy::MinMemory),
    churn(10_000, Alignments::Mixed, Strategy::MinMemory),
    churn(10_000, Alignments::Usual, Strategy::MinOffset),
    churn(10_000, Alignments::Mixed, Strategy::MinOffset),
];

#[divan::bench(args = CHURNS, sample_count = 100, sample_size = 1)]
fn churning(bencher: Bencher<'_, '_>, case: Churn) {
    let play = case.warm(256 * MIB, 20_000);
    bencher
        .counter(ItemsCount::new(play.pairs.len()))
        .with_inputs(|| (play.tlsf.clone(), play.keys.clone()))
        .bench_local_values(|(mut tlsf, mut keys)| {
            for (place, request) in &play.pairs {
                tlsf.free(keys[*place]).unwrap();
                keys[*place] = tlsf.allocate(request).unwrap().0;
            }
            assert_eq!(tlsf.usage().used, play.used);
            (tlsf, keys)
        });
}

/// The order in which allocations are freed.
#[derive(Clone, Copy, Debug)]
enum Order {
    Lifo,
    Fifo,
    Random,
}

/// Allocates all `requests` in existing regions of `region` units, and frees them in an order.
fn all(bencher: Bencher<'_, '_>, region: u64, requests: &[Request], order: Order) {
    let mut random = Random::new(11);
    let mut places: Vec<_> = (0..requests.len()).collect();
    match order {
        Order::Lifo => places.reverse(),
        Order::Fifo => {}
        Order::Random => (1..places.len()).for_each(|place| places.swap(place, random.index(place + 1))),
    }
    let mut tlsf = Tlsf::new(region);
    let units: u64 = requests.iter().map(|request| request.size).sum();
    for _ in 0..2 + units * 5 / 4 / region {
        tlsf.add_region(&region).unwrap();
    }
    let mut keys = Vec::with_capacity(requests.len());
    bencher.counter(ItemsCount::new(requests.len())).bench_local(|| {
        keys.clear();
        for request in requests {
            keys.push(tlsf.allocate(request).unwrap().0);
        }
        for place in &places {
            tlsf.free(keys[*place]).unwrap();
        }
        assert_eq!(tlsf.usage().used, 0);
    });
}

/// A thousand small buffers, freed in the order of allocation.
#[divan::bench(sample_count = 100, sample_size = 10)]
fn frame(bencher: Bencher<'_, '_>) {
    let mut random = Random::new(7);
    let requests: Vec<_> = (0..1000)
        .map(|_| Request::new((256 + random.below(4097)).next_multiple_of(256), aligned(256)))
        .collect();
    all(bencher, 64 * MIB, &requests, Order::Fifo);
}

/// Ten thousand usual allocations into empty regions, then freed.
#[divan::bench(args = [Order::Lifo, Order::Fifo, Order::Random], sample_count = 100, sample_size = 1)]
fn level(bencher: Bencher<'_, '_>, order: Order) {
    let mut random = Random::new(7);
    let case = churn(10_000, Alignments::Usual, Strategy::Balanced);
    let requests: Vec<_> = (0..case.live).map(|_| case.request(&mut random)).collect();
    all(bencher, 256 * MIB, &requests, order);
}

/// The same churn of 20,000 small allocations in one region, hundreds, and thousands.
#[divan::bench(args = [8192, 64, 16], sample_count = 100, sample_size = 1)]
fn regions(bencher: Bencher<'_, '_>, region_kib: u64) {
    const LIVE: usize = 20_000;
    let mut random = Random::new(13);
    let region = region_kib << 10;
    let mut tlsf = Tlsf::new(region);
    let request =
        |random: &mut Random| Request::new((64 + random.below(641)).next_multiple_of(16), aligned(16));
    let mut keys: Vec<_> = (0..LIVE).map(|_| allocate(&mut tlsf, region, &request(&mut random))).collect();
    for _ in 0..5 * LIVE {
        let place = random.index(LIVE);
        tlsf.free(keys[place]).unwrap();
        keys[place] = allocate(&mut tlsf, region, &request(&mut random));
    }
    let pairs: Vec<_> = (0..20_000).map(|_| (random.index(LIVE), request(&mut random))).collect();
    bencher.counter(ItemsCount::new(pairs.len())).bench_local(|| {
        for (place, request) in &pairs {
            tlsf.free(keys[*place]).unwrap();
            keys[*place] = allocate(&mut tlsf, region, request);
        }
        assert_eq!(tlsf.usage().used_chunks, 20_000);
    });
}

/// Prints figures other than average times.
fn print_table() {
    println!("                                    reserved/live  host bytes  one allocate, ns");
    println!("                                    of 16 MiB ones  each        p50   p99  p99.9");
    for case in CHURNS.iter().filter(|case| case.live == 10_000) {
        let Play { mut tlsf, mut keys, pairs, reserved, .. } = case.warm(16 * MIB, 20_000);
        let host_bytes = tlsf.heap_bytes() / case.live;
        let mut times: Vec<_> = pairs
            .iter()
            .map(|(place, request)| {
                tlsf.free(keys[*place]).unwrap();
                let start = Instant::now();
                let key = allocate(&mut tlsf, 16 * MIB, request);
                let time = start.elapsed();
                keys[*place] = key;
                time.as_nanos()
            })
            .collect();
        times.sort_unstable();
        let share = |permille: usize| times[(times.len() - 1) * permille / 1000];
        println!(
            "{:<36} {reserved:>8.3}    {host_bytes:>8}    {:>6} {:>5} {:>6}",
            case.to_string(),
            share(500),
            share(990),
            share(999)
        );
    }
    println!("(a look at the clock is part of each of these latencies)\n");
}

fn main() {
    // Skipped when run as a test.
    if std::env::args().any(|argument| argument == "--bench") {
        print_table();
    }
    divan::main();
}
