//! Cost of declaring uses and of resolving lists.
//!
//! Run with `cargo bench -p sublet-frame`. `cargo test -p sublet-frame --benches` runs it as a test. Needs no device.
//! One item is one use, or one changed resource.
//!
//! `SUBLET_COUNTED=NAME` runs one of [`CASES`] twice, the second time within [`counted`], and prints its number of
//! items. Use it with `valgrind --tool=callgrind --collect-atstart=no --toggle-collect='*counted*'`.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::collections::HashMap;

use ash::vk::{self, Handle, ImageLayout as Layout, PipelineStageFlags2 as Stages};
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use sublet_frame::track::{
    BufferInfo, Global, ImageId, ImageInfo, MemoryRange, Queue, Recorder, Submission, Subresources, Use,
};

const SAMPLED: Use = Use::sampled(Stages::FRAGMENT_SHADER);
const ALL: Subresources = Subresources::ALL;

fn main() {
    if let Ok(name) = std::env::var("SUBLET_COUNTED") {
        let (_, case) = CASES.iter().find(|(known, _)| *known == name).expect("the name of a case");
        let (items, mut round) = case();
        // Warm up. Two rounds return cases with two states to the first.
        round();
        round();
        counted(&mut round);
        return println!("{items}");
    }
    println!("bytes of a tracked resource with one state: {}", Global::BYTES_PER_RESOURCE);
    divan::main();
}

/// The number of items of a round, and the round.
type Case = (usize, Box<dyn FnMut()>);

type MakeCase = fn() -> Case;

const CASES: [(&str, MakeCase); 14] = [
    ("nothing", nothing),
    ("nothing-map", || by_map(1)),
    ("barrier", barrier),
    ("barrier-map", || by_map(2)),
    ("mip", mip),
    ("mip-map", mip_by_map),
    ("resolve-100", || resolve(100)),
    ("resolve-1000", || resolve(1_000)),
    ("resolve-10000", || resolve(10_000)),
    ("scattered-64000", || scattered(64_000)),
    ("pieces", pieces),
    ("alias-2000", || alias(2_000)),
    ("places-1000", || places(1_000)),
    ("places-100000", || places(100_000)),
];

#[inline(never)]
fn counted(round: &mut dyn FnMut()) {
    round();
}

fn bench(bencher: Bencher<'_, '_>, (items, mut round): Case) {
    round();
    bencher.counter(ItemsCount::new(items)).bench_local(round);
}

fn world(count: u64) -> (Global, Queue, Vec<ImageId>) {
    let mut global = Global::new();
    let queue = global.add_queue(0);
    let image = |raw| ImageInfo { mips: 8, layers: 6, ..ImageInfo::new(vk::Image::from_raw(raw)) };
    let images = (1..=count).map(|raw| global.add_image(&image(raw))).collect();
    (global, queue, images)
}

const USES: usize = 1_000;

/// Samples one of a hundred images before each of a thousand draws.
fn nothing() -> Case {
    let (_, queue, images) = world(100);
    let mut list = Recorder::new(queue);
    images.iter().for_each(|&image| list.use_image(image, &ALL, SAMPLED).unwrap());
    list.flush();
    let round = move || {
        for &image in images.iter().cycle().take(USES) {
            list.use_image(black_box(image), &ALL, SAMPLED).unwrap();
            assert!(black_box(list.flush()).is_none());
        }
    };
    (USES, Box::new(round))
}

/// Copies to an image and samples it, in turn.
fn barrier() -> Case {
    let (_, queue, images) = world(100);
    let mut list = Recorder::new(queue);
    let round = move || {
        for round in 0..USES / images.len() {
            for &image in &images {
                let usage = if round % 2 == 0 { Use::COPY_TARGET } else { SAMPLED };
                list.use_image(black_box(image), &ALL, usage).unwrap();
                black_box(list.flush());
            }
        }
    };
    (USES, Box::new(round))
}

/// Uses one mip after another of an image with eight. Its states differ, and are equal again at the end.
fn mip() -> Case {
    let (_, queue, images) = world(100);
    let mut list = Recorder::new(queue);
    let round = move || {
        for &image in &images {
            for mip in 0..8 {
                list.use_image(image, &ALL.mips(mip..mip + 1), Use::BLIT_TARGET).unwrap();
                black_box(list.flush());
                list.use_image(image, &ALL.mips(mip..mip + 1), Use::BLIT_SOURCE).unwrap();
                black_box(list.flush());
            }
        }
    };
    (1_600, Box::new(round))
}

/// The common approach: a map of layouts by subresource, and a barrier if the layout differs.
#[derive(Default)]
struct Layouts {
    map: HashMap<(u64, u32, u32), Layout>,
    barriers: Vec<vk::ImageMemoryBarrier2<'static>>,
}

impl Layouts {
    fn change(&mut self, image: u64, mips: std::ops::Range<u32>, layout: Layout) {
        for (mip, layer) in mips.flat_map(|mip| (0..6).map(move |layer| (mip, layer))) {
            let old = self.map.entry((image, mip, layer)).or_insert(Layout::UNDEFINED);
            if *old != layout {
                let barrier = vk::ImageMemoryBarrier2::default().image(vk::Image::from_raw(image));
                self.barriers.push(barrier.old_layout(*old).new_layout(layout));
                *old = layout;
            }
        }
        black_box(&self.barriers);
        self.barriers.clear();
    }
}

/// Whole images of eight mips and six layers, in one or in two alternating layouts.
fn by_map(count: usize) -> Case {
    let mut layouts = Layouts::default();
    let round = move || {
        for round in 0..USES / 100 {
            let layout = [Layout::SHADER_READ_ONLY_OPTIMAL, Layout::TRANSFER_DST_OPTIMAL][round % count];
            (0..100).for_each(|image| layouts.change(black_box(image), 0..8, layout));
        }
    };
    (USES, Box::new(round))
}

fn mip_by_map() -> Case {
    let mut layouts = Layouts::default();
    let round = move || {
        for (image, mip) in (0..100).flat_map(|image| (0..8).map(move |mip| (image, mip))) {
            layouts.change(image, mip..mip + 1, Layout::TRANSFER_DST_OPTIMAL);
            layouts.change(image, mip..mip + 1, Layout::TRANSFER_SRC_OPTIMAL);
        }
    };
    (1_600, Box::new(round))
}

/// Resolves a list of a hundred changes among thousands of resources. Only the hundred cost.
fn resolve(count: u64) -> Case {
    let (mut global, queue, images) = world(count);
    let mut submission = Submission::new();
    let mut list = Recorder::new(queue);
    let step = images.len() / 100;
    let mut lists = [SAMPLED, Use::COPY_TARGET].map(|usage| {
        let mut list = Recorder::new(queue);
        images.iter().step_by(step).for_each(|&image| list.use_image(image, &ALL, usage).unwrap());
        list
    });
    images.iter().for_each(|&image| list.use_image(image, &ALL, SAMPLED).unwrap());
    global.resolve(queue, &[&list], &mut submission).unwrap();
    lists.reverse();
    let mut done = 0;
    let round = move || {
        global.resolve(queue, &[&lists[done % 2]], &mut submission).unwrap();
        assert_eq!(submission.preamble(0).map(|batch| batch.len()), Some(100));
        done += 1;
    };
    (100, Box::new(round))
}

/// A list uses every other byte of a buffer, in random order.
fn scattered(count: usize) -> Case {
    let bytes = u64::try_from(count).unwrap() * 2;
    let mut global = Global::new();
    let queue = global.add_queue(0);
    let buffer = global.add_buffer(&BufferInfo::new(vk::Buffer::from_raw(1), bytes));
    let mut order: Vec<u64> = (0..bytes).step_by(2).collect();
    fastrand::Rng::with_seed(1).shuffle(&mut order);
    let (mut list, mut submission) = (Recorder::new(queue), Submission::new());
    let round = move || {
        list.reset();
        for &at in &order {
            list.use_buffer(black_box(buffer), at..at + 1, Use::COPY_TARGET).unwrap();
        }
        list.flush();
        global.resolve(queue, &[&list], &mut submission).unwrap();
    };
    (count, Box::new(round))
}

/// Writes a hundred random pieces of a buffer, then reads all of it. Measures the six hundredth frame.
fn pieces() -> Case {
    const BYTES: u64 = 64 << 20;
    let mut global = Global::new();
    let queue = global.add_queue(0);
    let buffer = global.add_buffer(&BufferInfo::new(vk::Buffer::from_raw(1), BYTES));
    let (mut list, mut submission) = (Recorder::new(queue), Submission::new());
    let mut random = fastrand::Rng::with_seed(1);
    let mut round = move || {
        list.reset();
        for _ in 0..100 {
            let at = random.u64(0..BYTES / 64) * 64;
            list.use_buffer(black_box(buffer), at..at + 64, Use::COPY_TARGET).unwrap();
            list.flush();
        }
        list.use_buffer(buffer, 0..BYTES, Use::VERTICES).unwrap();
        list.flush();
        global.resolve(queue, &[&list], &mut submission).unwrap();
    };
    (0..600).for_each(|_| round());
    (101, Box::new(round))
}

fn placed(count: u64, place: impl Fn(u64) -> (u64, u64)) -> (Global, Queue, Vec<ImageId>) {
    let mut global = Global::new();
    let queue = global.add_queue(0);
    let images = (1..=count).map(|raw| {
        let (offset, size) = place(raw);
        let memory_range = Some(MemoryRange { memory: vk::DeviceMemory::from_raw(1), offset, size });
        global.add_image(&ImageInfo { memory_range, ..ImageInfo::new(vk::Image::from_raw(raw)) })
    });
    let images = images.collect();
    (global, queue, images)
}

/// Uses images that all have the same memory, one after another.
fn alias(count: u64) -> Case {
    let (mut global, queue, images) = placed(count, |_| (0, 64));
    let (mut list, mut submission) = (Recorder::new(queue), Submission::new());
    let items = images.len();
    let round = move || {
        list.reset();
        for &image in &images {
            list.use_image(black_box(image), &ALL, Use::COLOR_ATTACHMENT).unwrap();
            black_box(list.flush());
        }
        global.resolve(queue, &[&list], &mut submission).unwrap();
    };
    (items, Box::new(round))
}

/// Resolves a list of a hundred changes among many resources with disjoint ranges of one memory.
fn places(count: u64) -> Case {
    let (mut global, queue, images) = placed(count, |raw| (raw * 64, 64));
    let mut submission = Submission::new();
    let mut list = Recorder::new(queue);
    images.iter().for_each(|&image| list.use_image(image, &ALL, SAMPLED).unwrap());
    global.resolve(queue, &[&list], &mut submission).unwrap();
    let step = images.len() / 100;
    let mut lists = [SAMPLED, Use::COPY_TARGET].map(|usage| {
        let mut list = Recorder::new(queue);
        images.iter().step_by(step).for_each(|&image| list.use_image(image, &ALL, usage).unwrap());
        list
    });
    lists.reverse();
    let mut done = 0;
    let round = move || {
        global.resolve(queue, &[&lists[done % 2]], &mut submission).unwrap();
        done += 1;
    };
    (100, Box::new(round))
}

#[divan::bench(sample_count = 10)]
fn a_scattered_use_of_64000(bencher: Bencher<'_, '_>) {
    bench(bencher, scattered(64_000));
}

#[divan::bench]
fn a_use_of_a_buffer_that_is_written_in_pieces(bencher: Bencher<'_, '_>) {
    bench(bencher, pieces());
}

#[divan::bench(sample_count = 10)]
fn a_use_of_one_of_2000_images_in_one_memory(bencher: Bencher<'_, '_>) {
    bench(bencher, alias(2_000));
}

#[divan::bench(args = [1_000, 100_000])]
fn resolving_100_changes_among_memory_ranges(bencher: Bencher<'_, '_>, count: u64) {
    bench(bencher, places(count));
}

#[divan::bench]
fn a_use_that_needs_nothing(bencher: Bencher<'_, '_>) {
    bench(bencher, nothing());
}

#[divan::bench]
fn a_use_that_needs_nothing_by_a_hash_map(bencher: Bencher<'_, '_>) {
    bench(bencher, by_map(1));
}

#[divan::bench]
fn a_use_that_needs_a_barrier(bencher: Bencher<'_, '_>) {
    bench(bencher, barrier());
}

#[divan::bench]
fn a_use_that_needs_a_barrier_by_a_hash_map(bencher: Bencher<'_, '_>) {
    bench(bencher, by_map(2));
}

#[divan::bench]
fn a_use_of_one_mip(bencher: Bencher<'_, '_>) {
    bench(bencher, mip());
}

#[divan::bench]
fn a_use_of_one_mip_by_a_hash_map(bencher: Bencher<'_, '_>) {
    bench(bencher, mip_by_map());
}

#[divan::bench(args = [100, 1_000, 10_000])]
fn resolving_100_changes_among(bencher: Bencher<'_, '_>, count: u64) {
    bench(bencher, resolve(count));
}
