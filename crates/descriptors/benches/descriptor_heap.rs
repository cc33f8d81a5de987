//! Measures the allocation of ranges in descriptor heaps, and writing a descriptor to a range.
//!
//! `cargo bench --bench descriptor_heap`. The device's calls do nothing (`NullGpu`) or are not timed, so this is the
//! library's own share. Each run checks its end state.
#![allow(clippy::unwrap_used, reason = "a bench that fails is to stop")]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use sublet::retire::Clock;
use sublet::sim::{Gpu, NullGpu, Profile};
use sublet::{Allocator, AllocatorCreateInfo};
use sublet_descriptors::{
    BufferDescriptor, BufferStore, Descriptor, DescriptorDevice, DescriptorDeviceCreateInfo,
    DescriptorFeatures, DescriptorHeap, HeapCreateInfo, HeapKind, HeapStore, HeapWriteError, HostHeap,
    HostHeapCreateInfo, SetStore,
};

fn main() {
    divan::main();
}

/// A store without contents.
struct Nothing;

impl HeapStore for Nothing {
    fn slots(&self) -> u32 {
        65_536
    }

    unsafe fn write(&self, _: u32, _: &Descriptor) -> Result<(), HeapWriteError> {
        Ok(())
    }
}

/// Ranges per frame.
const RANGES: usize = 256;

/// Three frames in flight. Each allocates and retires ranges of 1 to `most` slots between 4,096 live ranges.
#[divan::bench(args = [1, 8])]
fn allocate_retire_collect(bencher: Bencher<'_, '_>, most: u32) {
    let heap = DescriptorHeap::new(Nothing);
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let mut others: Vec<_> = (0..8_192).map(|_| heap.allocate(random.u32(1..=most)).unwrap()).collect();
    random.shuffle(&mut others);
    for range in others.drain(4_096..) {
        // SAFETY: there is no device.
        unsafe { heap.free(range) }.unwrap();
    }
    let before = heap.statistics();
    let counts: Vec<u32> = (0..RANGES).map(|_| random.u32(1..=most)).collect();
    let mut ranges = Vec::with_capacity(RANGES);
    let mut slot = 0;
    bencher.counter(ItemsCount::new(RANGES)).bench_local(|| {
        slot = (slot + 1) % 3;
        let ticket = clock.begin_frame(timeline, slot);
        heap.collect(&clock).unwrap();
        for &count in &counts {
            ranges.push(heap.allocate(black_box(count)).unwrap());
        }
        for range in ranges.drain(..) {
            // SAFETY: no later recording uses it.
            unsafe { heap.retire(ticket, black_box(range)) }.unwrap();
        }
        clock.end_frame(ticket).unwrap();
    });
    clock.shutdown();
    heap.collect(&clock).unwrap();
    assert_eq!(heap.statistics().free, before.free);
}

/// Ranges that end with their frame.
#[divan::bench(args = [1, 8])]
fn transient(bencher: Bencher<'_, '_>, count: u32) {
    struct Frames;
    impl HeapStore for Frames {
        fn slots(&self) -> u32 {
            65_536
        }
        fn transient(&self) -> u32 {
            65_536
        }
        unsafe fn write(&self, _: u32, _: &Descriptor) -> Result<(), HeapWriteError> {
            Ok(())
        }
    }
    let heap = DescriptorHeap::new(Frames);
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    let mut slot = 0;
    bencher.counter(ItemsCount::new(RANGES)).bench_local(|| {
        slot = (slot + 1) % 3;
        let ticket = clock.begin_frame(timeline, slot);
        heap.collect(&clock).unwrap();
        for _ in 0..RANGES {
            black_box(heap.allocate_transient(ticket, black_box(count)).unwrap());
        }
        clock.end_frame(ticket).unwrap();
    });
    clock.shutdown();
    heap.collect(&clock).unwrap();
    assert_eq!(heap.statistics().free, 65_536);
}

/// Writes one descriptor to a set: the cost around `vkUpdateDescriptorSets`.
#[divan::bench]
fn write_set(bencher: Bencher<'_, '_>) {
    let gpu = NullGpu::new(Profile::by_name("nvidia-h200").unwrap());
    let mut info = DescriptorDeviceCreateInfo::new(
        gpu.instance(),
        gpu.device(),
        gpu.physical_device(),
        gpu.api_version(),
    );
    info.features = DescriptorFeatures::UPDATE_AFTER_BIND;
    // SAFETY: the device outlives everything made from it.
    let device = unsafe { DescriptorDevice::new(&info) }.unwrap();
    let heap = DescriptorHeap::new(SetStore::new(&device, &HeapCreateInfo::default()).unwrap());
    let range = heap.allocate(256).unwrap();
    let descriptor = Descriptor::StorageBuffer(BufferDescriptor::null());
    bencher.counter(ItemsCount::new(256_usize)).bench_local(|| {
        for slot in 0..256 {
            // SAFETY: the null device reads no arguments.
            black_box(unsafe { heap.write(range.id(), black_box(slot), &descriptor) }).unwrap();
        }
    });
    // SAFETY: nothing was submitted.
    unsafe { heap.into_store().destroy() };
}

/// Copies one descriptor from host memory to a descriptor buffer, in ranges of 256.
#[divan::bench]
fn copy_bytes(bencher: Bencher<'_, '_>) {
    let gpu = Gpu::new(Profile::by_name("nvidia-h200").unwrap());
    // SAFETY: the device outlives everything made from it.
    let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }.unwrap();
    // SAFETY: as above.
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
    let info = HeapCreateInfo::new(HeapKind::Sampler);
    let heap = DescriptorHeap::new(BufferStore::new(&device, &allocator, &info).unwrap());
    let mut staging = HostHeap::new(&device, &HostHeapCreateInfo::default()).unwrap();
    let (from, to) = (staging.allocate(256).unwrap(), heap.allocate(256).unwrap());
    // SAFETY: the create-info is valid.
    let sampler = unsafe { gpu.device().create_sampler(&Default::default(), None) }.unwrap();
    for slot in 0..256 {
        // SAFETY: the sampler is live.
        unsafe { staging.write(from.id(), slot, &Descriptor::Sampler(sampler)) }.unwrap();
    }
    bencher.counter(ItemsCount::new(256_usize)).bench_local(|| {
        // SAFETY: no shader reads the heap.
        unsafe { heap.copy_from(black_box(to.id()), 0, &staging, black_box(from.id())) }.unwrap();
    });
    // SAFETY: nothing was submitted.
    unsafe { heap.into_store().destroy() };
    // SAFETY: as above.
    unsafe { gpu.device().destroy_sampler(sampler, None) };
}

/// Frees a slot between two free ones, among few or many slots. The time must be the same.
#[divan::bench(args = [256, 65_536], sample_count = 20, sample_size = 1)]
fn free_and_join(bencher: Bencher<'_, '_>, slots: u32) {
    let fragmented = || {
        let heap = DescriptorHeap::new(Nothing);
        let ranges: Vec<_> = (0..slots).map(|_| heap.allocate(1).unwrap()).collect();
        let (first, second): (Vec<_>, Vec<_>) = ranges.into_iter().partition(|range| range.first() % 2 == 0);
        for range in first {
            // SAFETY: there is no device.
            unsafe { heap.free(range) }.unwrap();
        }
        (heap, second)
    };
    let free_all = |(heap, ranges): (DescriptorHeap<Nothing>, Vec<_>)| {
        for range in ranges {
            // SAFETY: there is no device.
            unsafe { heap.free(black_box(range)) }.unwrap();
        }
        assert_eq!(heap.largest_free(), heap.statistics().capacity);
        heap
    };
    bencher.counter(ItemsCount::new(slots / 2)).with_inputs(fragmented).bench_local_values(free_all);
}
