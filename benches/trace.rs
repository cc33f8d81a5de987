//! Measures the cost of recording: the same calls with and without it. The device's calls do nothing, and the sink
//! discards its input.
//!
//! `cargo bench --bench trace`. Times are for one pair of calls: allocate and free with 512 live allocations of 256
//! bytes to 64 KiB, or map and unmap. A pair writes two records, so one record costs half the difference between
//! `quiet` and `recorded`. With threads, each has one allocation at a time, and all share the allocator.
#![allow(clippy::as_conversions, reason = "a benchmark's own arithmetic on small numbers")]

use std::sync::Barrier;

use ash::vk;
use divan::Bencher;
use divan::counter::ItemsCount;
use sublet::sim::{NullGpu, Profile};
use sublet::{Allocation, AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage, ResourceKind};

fn main() {
    divan::main();
}

const PAIRS: usize = 100_000;
const LIVE: usize = 512;

fn gpu() -> NullGpu {
    NullGpu::new(Profile::by_name("nvidia-h200").expect("it is one of the profiles"))
}

fn allocator(gpu: &NullGpu, is_recording: bool) -> Allocator {
    let info =
        AllocatorCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device(), gpu.api_version());
    // SAFETY: the null device outlives the allocator: it is made before and dropped after.
    let allocator = unsafe { Allocator::new(&info) }.expect("the null device has every function");
    if is_recording {
        allocator.start_recording(std::io::sink()).expect("it is the first");
    }
    allocator
}

fn finish(allocator: Allocator, is_recording: bool, least: u64) {
    if is_recording {
        let summary = allocator.stop_recording().expect("a sink that takes everything");
        assert!(summary.records >= least, "{summary:?}");
    }
    assert!(allocator.destroy().is_empty());
}

fn allocate(allocator: &Allocator, random: &mut fastrand::Rng) -> Allocation {
    let size = 1 << random.u32(8..16) | u64::from(random.u8(..));
    // The mask of all existing types, as a driver reports it.
    let requirements = vk::MemoryRequirements { size, alignment: 256, memory_type_bits: 0x1F };
    let info = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
    // SAFETY: nothing is bound to it.
    unsafe { allocator.allocate_memory_of_kind(&requirements, ResourceKind::Buffer, &info) }
        .expect("there is room")
}

fn free(allocator: &Allocator, allocation: Allocation) {
    // SAFETY: nothing was ever bound to it.
    unsafe { allocator.free_memory(allocation) }.expect("it is of this allocator");
}

fn churn(bencher: Bencher<'_, '_>, is_recording: bool) {
    let gpu = gpu();
    let allocator = allocator(&gpu, is_recording);
    let mut random = fastrand::Rng::with_seed(7);
    let mut live: Vec<_> = (0..LIVE).map(|_| allocate(&allocator, &mut random)).collect();
    bencher.counter(ItemsCount::new(PAIRS)).bench_local(|| {
        for _ in 0..PAIRS {
            let at = random.usize(..LIVE);
            let next = allocate(&allocator, &mut random);
            free(&allocator, std::mem::replace(&mut live[at], next));
        }
    });
    live.into_iter().for_each(|allocation| free(&allocator, allocation));
    finish(allocator, is_recording, 2 * PAIRS as u64);
}

fn map(bencher: Bencher<'_, '_>, is_recording: bool) {
    let gpu = gpu();
    let allocator = allocator(&gpu, is_recording);
    let requirements = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
    let info = AllocationCreateInfo::new(MemoryUsage::CpuOnly);
    let mut allocation = allocator.allocate_memory(&requirements, &info).expect("there is room");
    // Keeps the memory mapped, so that no pair calls the driver.
    let pointer = allocator.map(&mut allocation).expect("it can be mapped").into_raw();
    bencher.counter(ItemsCount::new(PAIRS)).bench_local(|| {
        for _ in 0..PAIRS {
            let mapping = allocator.map(&mut allocation).expect("it can be mapped");
            assert_eq!(mapping.pointer(), pointer);
        }
    });
    // SAFETY: it pairs with `into_raw` above, and the pointer is not used any more.
    unsafe { allocator.unmap_memory(&allocation) }.expect("it is mapped");
    free(&allocator, allocation);
    finish(allocator, is_recording, 2 * PAIRS as u64);
}

fn on_threads(bencher: Bencher<'_, '_>, threads: usize, is_recording: bool) {
    let gpu = gpu();
    let allocator = &allocator(&gpu, is_recording);
    bencher.counter(ItemsCount::new(PAIRS)).bench_local(|| {
        let barrier = &Barrier::new(threads);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(thread as u64);
                    barrier.wait();
                    for _ in 0..PAIRS / threads {
                        free(allocator, allocate(allocator, &mut random));
                    }
                });
            }
        });
    });
    if is_recording {
        allocator.stop_recording().expect("a sink that takes everything");
    }
}

mod one_thread {
    use super::*;

    #[divan::bench]
    fn quiet(bencher: Bencher<'_, '_>) {
        churn(bencher, false);
    }

    #[divan::bench]
    fn recorded(bencher: Bencher<'_, '_>) {
        churn(bencher, true);
    }
}

mod mapping {
    use super::*;

    #[divan::bench]
    fn quiet(bencher: Bencher<'_, '_>) {
        map(bencher, false);
    }

    #[divan::bench]
    fn recorded(bencher: Bencher<'_, '_>) {
        map(bencher, true);
    }
}

#[divan::bench_group(sample_count = 20)]
mod threads {
    use super::*;

    #[divan::bench(args = [2, 4])]
    fn quiet(bencher: Bencher<'_, '_>, threads: usize) {
        on_threads(bencher, threads, false);
    }

    #[divan::bench(args = [2, 4])]
    fn recorded(bencher: Bencher<'_, '_>, threads: usize) {
        on_threads(bencher, threads, true);
    }
}
