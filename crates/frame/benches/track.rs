//! What it costs to declare a use, and to settle lists.
//!
//! Run with `cargo bench -p sublet-frame`; as a test of itself with `cargo test -p sublet-frame --benches`. No device
//! is needed. One item is one use, or one resource that changed.
#![forbid(unsafe_code)]
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::collections::HashMap;

use ash::vk::{self, Handle, ImageLayout as Layout, PipelineStageFlags2 as Stages};
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use sublet_frame::track::{Global, ImageId, ImageInfo, Queue, Recorder, Submission, Subresources, Use};

const SAMPLED: Use = Use::sampled(Stages::FRAGMENT_SHADER);
const ALL: Subresources = Subresources::ALL;

fn main() {
    println!("bytes for each tracked resource that is alike: {}", Global::BYTES_PER_RESOURCE);
    divan::main();
}

fn world(count: u64) -> (Global, Queue, Vec<ImageId>) {
    let mut global = Global::new();
    let queue = global.add_queue(0);
    let image = |raw| ImageInfo { mips: 8, layers: 6, ..ImageInfo::new(vk::Image::from_raw(raw)) };
    let images = (1..=count).map(|raw| global.add_image(&image(raw))).collect();
    (global, queue, images)
}

const USES: usize = 1_000;

/// One of a hundred images is sampled again, before each of a thousand draws.
#[divan::bench]
fn a_use_that_needs_nothing(bencher: Bencher<'_, '_>) {
    let (_, queue, images) = world(100);
    let mut list = Recorder::new(queue);
    images.iter().for_each(|&image| list.use_image(image, &ALL, SAMPLED).unwrap());
    list.flush();
    bencher.counter(ItemsCount::new(USES)).bench_local(|| {
        for &image in images.iter().cycle().take(USES) {
            list.use_image(black_box(image), &ALL, SAMPLED).unwrap();
            assert!(black_box(list.flush()).is_none());
        }
    });
}

/// An image is copied to and sampled in turn.
#[divan::bench]
fn a_use_that_needs_a_barrier(bencher: Bencher<'_, '_>) {
    let (_, queue, images) = world(100);
    let mut list = Recorder::new(queue);
    let uses = |list: &mut Recorder, usage| {
        for &image in &images {
            list.use_image(black_box(image), &ALL, usage).unwrap();
            black_box(list.flush());
        }
    };
    uses(&mut list, SAMPLED);
    bencher.counter(ItemsCount::new(USES)).bench_local(|| {
        for round in 0..USES / images.len() {
            uses(&mut list, if round % 2 == 0 { Use::COPY_TARGET } else { SAMPLED });
        }
    });
}

/// One mip after another of an image with eight: its states are apart, and alike again at the end.
#[divan::bench]
fn a_use_of_one_mip(bencher: Bencher<'_, '_>) {
    let (_, queue, images) = world(100);
    let mut list = Recorder::new(queue);
    let chain = |list: &mut Recorder| {
        for &image in &images {
            for mip in 0..8 {
                list.use_image(image, &ALL.mips(mip..mip + 1), Use::BLIT_TARGET).unwrap();
                black_box(list.flush());
                list.use_image(image, &ALL.mips(mip..mip + 1), Use::BLIT_SOURCE).unwrap();
                black_box(list.flush());
            }
        }
    };
    chain(&mut list);
    bencher.counter(ItemsCount::new(1_600_usize)).bench_local(|| chain(&mut list));
}

/// What most programs have: a map of layouts by subresource, and a barrier where the layout differs.
#[divan::bench]
fn a_use_of_one_mip_by_a_hash_map(bencher: Bencher<'_, '_>) {
    let mut layouts = HashMap::<(u64, u32, u32), Layout>::new();
    let mut barriers = Vec::<vk::ImageMemoryBarrier2<'static>>::new();
    let mut chain = || {
        for image in 0..100 {
            for mip in 0..8 {
                for layout in [Layout::TRANSFER_DST_OPTIMAL, Layout::TRANSFER_SRC_OPTIMAL] {
                    for layer in 0..6 {
                        let old = layouts.entry((image, mip, layer)).or_insert(Layout::UNDEFINED);
                        if *old != layout {
                            barriers.push(
                                vk::ImageMemoryBarrier2::default()
                                    .image(vk::Image::from_raw(image))
                                    .old_layout(*old)
                                    .new_layout(layout),
                            );
                            *old = layout;
                        }
                    }
                    black_box(&barriers);
                    barriers.clear();
                }
            }
        }
    };
    chain();
    bencher.counter(ItemsCount::new(1_600_usize)).bench_local(chain);
}

/// A list of a hundred changes meets some thousands of resources. The cost is that of the hundred.
#[divan::bench(args = [100, 1_000, 10_000])]
fn resolving_100_changes_among(bencher: Bencher<'_, '_>, count: u64) {
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
    let mut round = 0;
    bencher.counter(ItemsCount::new(100_usize)).bench_local(|| {
        global.resolve(queue, &[&lists[round % 2]], &mut submission).unwrap();
        assert_eq!(submission.front(0).map(|batch| batch.len()), Some(100));
        round += 1;
    });
}
