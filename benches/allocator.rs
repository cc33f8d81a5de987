//! Measures a whole allocator on a device whose calls do nothing, so that only the library's own work counts.
//!
//! `cargo bench --bench allocator`. Times are for one pair of allocate and free (or create and destroy). Sizes are
//! log-uniform from 256 bytes to 1 MiB. "Usual" alignments are 16, 256, 4096 and 65536 at 40, 50, 8 and 2 %; "mixed"
//! ones are at 25 % each. The operations are generated in advance from fixed seeds, and every run checks its end state.
#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "a benchmark's own arithmetic on small numbers"
)]

use ash::vk;
use divan::Bencher;
use divan::counter::ItemsCount;
use sublet::sim::{NullGpu, Profile};
use sublet::{
    Algorithm, Allocation, AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage, PoolCreateInfo,
};

fn main() {
    divan::main();
}

const SEED: u64 = 0x5eed;
const PAIRS: usize = 100_000;

/// A seeded generator, so that every run has the same operations.
struct Random(fastrand::Rng);

impl Random {
    fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0.u64(..limit)
    }
}

#[derive(Clone, Copy, Debug)]
enum Alignments {
    Usual,
    Mixed,
}

fn requirements(random: &mut Random, alignments: Alignments) -> vk::MemoryRequirements {
    let exponent = 8 + random.below(12);
    let size = (1 << exponent) + random.below(1 << exponent);
    let percent = random.below(100);
    let alignment = match (alignments, percent) {
        (Alignments::Usual, 0..40) | (Alignments::Mixed, 0..25) => 16,
        (Alignments::Usual, 40..90) | (Alignments::Mixed, 25..50) => 256,
        (Alignments::Usual, 90..98) | (Alignments::Mixed, 50..75) => 4096,
        _ => 65_536,
    };
    vk::MemoryRequirements { size, alignment, memory_type_bits: !0 }
}

fn gpu() -> NullGpu {
    NullGpu::new(Profile::by_name("nvidia-h200").expect("it is one of the profiles"))
}

fn info(gpu: &NullGpu) -> AllocatorCreateInfo<'static> {
    AllocatorCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device(), gpu.api_version())
}

fn allocator(gpu: &NullGpu) -> Allocator {
    // SAFETY: the null device outlives the allocator: it is made before and dropped after.
    unsafe { Allocator::new(&info(gpu)) }.expect("the null device has every function")
}

fn free(allocator: &Allocator, allocation: Allocation) {
    // SAFETY: no device uses it.
    unsafe { allocator.free_memory(allocation) }.expect("it is this allocator's");
}

fn live_count(allocator: &Allocator) -> u64 {
    allocator.memory_type_statistics().iter().map(|statistics| statistics.allocation_count).sum()
}

/// Replaces one of `live` allocations at a time.
fn churn(bencher: Bencher<'_, '_>, allocator: &Allocator, live: usize, alignments: Alignments) {
    let create = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
    churn_by(bencher, allocator, live, alignments, |needs| allocator.allocate_memory(needs, &create).ok());
}

fn churn_by(
    bencher: Bencher<'_, '_>,
    allocator: &Allocator,
    live: usize,
    alignments: Alignments,
    allocate: impl Fn(&vk::MemoryRequirements) -> Option<Allocation>,
) {
    let mut random = Random::new(SEED);
    let mut held: Vec<Option<Allocation>> =
        (0..live).map(|_| allocate(&requirements(&mut random, alignments))).collect();
    assert!(held.iter().all(Option::is_some));
    let operations: Vec<(usize, vk::MemoryRequirements)> = (0..PAIRS)
        .map(|_| (random.below(live as u64) as usize, requirements(&mut random, alignments)))
        .collect();
    bencher.counter(ItemsCount::new(PAIRS)).bench_local(|| {
        for (at, requirements) in &operations {
            if let Some(allocation) = held[*at].take() {
                free(allocator, allocation);
            }
            held[*at] = allocate(requirements);
        }
    });
    assert_eq!(live_count(allocator), live as u64);
    held.into_iter().flatten().for_each(|allocation| free(allocator, allocation));
    assert_eq!(live_count(allocator), 0);
}

#[divan::bench(args = [1_000, 10_000, 100_000])]
fn churn_usual(bencher: Bencher<'_, '_>, live: usize) {
    let gpu = gpu();
    churn(bencher, &allocator(&gpu), live, Alignments::Usual);
}

#[divan::bench(args = [1_000, 10_000, 100_000])]
fn churn_mixed(bencher: Bencher<'_, '_>, live: usize) {
    let gpu = gpu();
    churn(bencher, &allocator(&gpu), live, Alignments::Mixed);
}

/// Same as `churn_usual`, but each allocation has a name.
#[divan::bench(args = [10_000])]
fn churn_usual_named(bencher: Bencher<'_, '_>, live: usize) {
    let gpu = gpu();
    let named =
        AllocationCreateInfo { name: Some("terrain"), ..AllocationCreateInfo::new(MemoryUsage::GpuOnly) };
    let allocator = allocator(&gpu);
    let allocate = |needs: &_| allocator.allocate_memory(needs, &named).ok();
    churn_by(bencher, &allocator, live, Alignments::Usual, allocate);
}

/// Creates a map of everything live.
#[divan::bench(args = [1_000, 100_000])]
fn memory_map(bencher: Bencher<'_, '_>, live: usize) {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let create = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
    let mut random = Random::new(SEED);
    let held: Vec<Allocation> = (0..live)
        .filter_map(|_| {
            allocator.allocate_memory(&requirements(&mut random, Alignments::Usual), &create).ok()
        })
        .collect();
    assert_eq!(held.len(), live);
    bencher.bench_local(|| allocator.memory_map());
    held.into_iter().for_each(|allocation| free(&allocator, allocation));
    assert_eq!(live_count(&allocator), 0);
}

/// A frame: 1,000 small allocations from a linear pool, freed in the order of allocation.
#[divan::bench(args = [Algorithm::Linear, Algorithm::Tlsf])]
fn frame_in_pool(bencher: Bencher<'_, '_>, algorithm: Algorithm) {
    const COUNT: usize = 1_000;
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let pool_info =
        PoolCreateInfo { block_size: 64 << 20, max_block_count: 1, algorithm, ..PoolCreateInfo::new(0) };
    let pool = allocator.create_pool(&pool_info).expect("the null device has memory");
    let create = AllocationCreateInfo::in_pool(&pool);
    let mut random = Random::new(SEED);
    let sizes: Vec<vk::MemoryRequirements> = (0..COUNT)
        .map(|_| vk::MemoryRequirements {
            size: 256 + random.below(4096),
            alignment: 256,
            memory_type_bits: !0,
        })
        .collect();
    let mut held = Vec::with_capacity(COUNT);
    bencher.counter(ItemsCount::new(COUNT)).bench_local(|| {
        held.extend(
            sizes.iter().filter_map(|requirements| allocator.allocate_memory(requirements, &create).ok()),
        );
        assert_eq!(held.len(), COUNT);
        held.drain(..).for_each(|allocation| free(&allocator, allocation));
    });
    assert_eq!(allocator.pool_statistics(&pool).map(|statistics| statistics.allocation_count), Ok(0));
    // SAFETY: no device uses it.
    let leaks = unsafe { allocator.destroy_pool(pool) };
    assert!(leaks.is_ok_and(|leaks| leaks.is_empty()));
}

/// A buffer with its memory: create, query requirements, allocate, bind; then destroy and free.
#[divan::bench]
fn create_and_destroy_buffer(bencher: Bencher<'_, '_>) {
    const COUNT: usize = 1_000;
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let create = AllocationCreateInfo::new(MemoryUsage::Auto);
    let buffer_info = vk::BufferCreateInfo::default().size(4096).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
    bencher.counter(ItemsCount::new(COUNT)).bench_local(|| {
        for _ in 0..COUNT {
            // SAFETY: the create-info is valid.
            let made = unsafe { allocator.create_buffer(&buffer_info, &create) };
            let (buffer, allocation) = made.expect("the null device has memory");
            // SAFETY: no device uses it.
            unsafe { allocator.destroy_buffer(buffer, allocation) }.expect("it is this allocator's");
        }
    });
    assert_eq!(live_count(&allocator), 0);
}
