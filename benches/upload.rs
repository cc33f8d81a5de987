//! Measures the cost of an upload beyond the copy of its bytes.
//!
//! `cargo bench --bench upload`. Times are for one upload of 256 bytes, aligned to 256, into 64 KiB that stay in the
//! cache. `copy_alone` is the same copy to a fixed place. The simulated device's memory is host memory, and no driver
//! call is timed. Each run checks its end state.
#![allow(clippy::unwrap_used, reason = "a bench that fails is to stop")]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use sublet::metadata::{Alignment, Linear, Metadata, RegionId, Regions, Request};
use sublet::retire::Clock;
use sublet::sim::{Gpu, Profile};
use sublet::upload::{UploadArena, UploadArenaCreateInfo};
use sublet::{Allocator, AllocatorCreateInfo};

fn main() {
    divan::main();
}

/// Uploads per recording.
const COUNT: usize = 256;
const SIZE: usize = 256;
const BYTES: u64 = 65_536;

#[derive(Clone, Copy)]
#[repr(C)]
struct Constants([[f32; 4]; 16]);
const _: () = assert!(size_of::<Constants>() == SIZE);

fn gpu() -> Gpu {
    Gpu::new(Profile::by_name("nvidia-rtx-5070-ti").unwrap())
}

fn allocator(gpu: &Gpu) -> Allocator {
    // SAFETY: the device outlives the allocator: it is made before and dropped after.
    unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(gpu)) }.unwrap()
}

/// Fills a page, and gets it back at once.
fn in_arena(bencher: Bencher<'_, '_>, upload: impl Fn(&mut UploadArena<&Allocator>)) {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let info = UploadArenaCreateInfo { page_size: BYTES, ..Default::default() };
    // SAFETY: nothing is submitted.
    let mut arena = unsafe { UploadArena::new(&allocator, &info) }.unwrap();
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    bencher.counter(ItemsCount::new(COUNT)).bench_local(|| {
        for _ in 0..COUNT {
            upload(&mut arena);
        }
        let ticket = clock.open(timeline);
        arena.flush(ticket).unwrap();
        clock.discard(ticket).unwrap();
        arena.collect(&clock).unwrap();
    });
    let statistics = arena.statistics();
    assert_eq!((statistics.pages, statistics.free_pages, statistics.peak_used), (1, 1, BYTES));
}

#[divan::bench]
fn copy_alone(bencher: Bencher<'_, '_>) {
    let source = black_box([7_u8; SIZE]);
    let mut target = vec![0_u8; SIZE * COUNT];
    bencher.counter(ItemsCount::new(COUNT)).bench_local(|| {
        for target in target.chunks_exact_mut(SIZE) {
            // The size is opaque to the compiler, as in a real upload.
            let source = black_box(&source[..]);
            target.copy_from_slice(source);
        }
    });
    assert!(target.iter().all(|&byte| byte == 7));
}

#[divan::bench]
fn arena_write(bencher: Bencher<'_, '_>) {
    let source = [7_u8; SIZE];
    in_arena(bencher, |arena| {
        black_box(arena.write(black_box(&source[..]), 256).unwrap().offset);
    });
}

#[divan::bench]
fn arena_write_value(bencher: Bencher<'_, '_>) {
    let source = Constants([[1.0; 4]; 16]);
    in_arena(bencher, |arena| {
        black_box(arena.write_value(black_box(&source), 256).unwrap().offset);
    });
}

#[divan::bench]
fn arena_allocate(bencher: Bencher<'_, '_>) {
    in_arena(bencher, |arena| {
        black_box(arena.allocate(black_box(256), 256).unwrap().offset);
    });
}

/// An engine as the alternative to the page's offset.
#[divan::bench]
fn linear_engine(bencher: Bencher<'_, '_>) {
    let alignment = Alignment::new(256).expect("a power of two");
    let mut engine = Linear::new(1 << 40, Regions::Single);
    let region: RegionId = engine.add_region(&BYTES).unwrap();
    bencher.counter(ItemsCount::new(COUNT)).bench_local(|| {
        for _ in 0..COUNT {
            black_box(engine.allocate(&Request::new(black_box(256), alignment)).unwrap().1.offset);
        }
        engine.reset(region);
    });
    assert_eq!(engine.usage().used, 0);
}
