//! Cost of lists, in visited or moved intervals. Unlike times, these are deterministic.

use ash::vk::{self, Handle};
use sublet_frame::track::{
    BufferInfo, Global, ImageId, ImageInfo, MemoryRange, Queue, Recorder, Submission, Subresources, Use,
    steps,
};
use vk::PipelineStageFlags2 as Stages;

const ALL: Subresources = Subresources::ALL;
const SAMPLED: Use = Use::sampled(Stages::FRAGMENT_SHADER);

fn cost(f: impl FnOnce()) -> usize {
    let before = steps();
    f();
    steps() - before
}

/// Returns the cost of frames 200 to 300, and of the last hundred of ten thousand.
fn early_and_late(mut frame: impl FnMut()) -> (usize, usize) {
    let mut hundreds = Vec::new();
    for _ in 0..100 {
        hundreds.push(cost(|| (0..100).for_each(|_| frame())));
    }
    (hundreds[2], hundreds[99])
}

fn place(offset: u64, size: u64) -> Option<MemoryRange> {
    Some(MemoryRange { memory: vk::DeviceMemory::from_raw(1), offset, size })
}

fn images(global: &mut Global, places: impl Iterator<Item = Option<MemoryRange>>) -> Vec<ImageId> {
    let image = |(raw, memory_range)| ImageInfo { memory_range, ..ImageInfo::new(vk::Image::from_raw(raw)) };
    (1..).zip(places).map(|named| global.add_image(&image(named))).collect()
}

/// A hundred writes at random offsets in each frame, then one use of the whole buffer.
#[test]
fn a_buffer_that_is_written_piece_by_piece_costs_the_same_after_ten_thousand_frames() {
    let compute = Stages::COMPUTE_SHADER;
    let writes = [Use::COPY_TARGET, Use::CLEAR, Use::storage_write(compute).discard()];
    let reads = [Use::VERTICES, Use::storage_read(compute)];
    // One kind of read; several kinds; and never used as a whole.
    for (kinds, whole) in [(1, true), (3, true), (3, false)] {
        const SIZE: u64 = 64 << 20;
        let mut random = fastrand::Rng::with_seed(5);
        let mut global = Global::new();
        let queue = global.add_queue(0);
        let buffer = global.add_buffer(&BufferInfo::new(vk::Buffer::from_raw(1), SIZE));
        let (mut list, mut submission) = (Recorder::new(queue), Submission::new());
        let mut most = 0;
        let (early, late) = early_and_late(|| {
            list.reset();
            for upload in 0..100 {
                let start = random.u64(0..SIZE / 64) * 64;
                list.use_buffer(buffer, start..start + 64, writes[upload % kinds]).unwrap();
                list.flush();
            }
            let read = reads[random.usize(0..kinds.min(2))];
            let start = random.u64(0..SIZE / 64) * 64;
            let range = if whole { 0..SIZE } else { start..start + 64 };
            list.use_buffer(buffer, range, read).unwrap();
            list.flush();
            global.resolve(queue, &[&list], &mut submission).unwrap();
            most = most.max(global.intervals(buffer).unwrap());
        });
        assert!(early > 0 && late * 10 <= early * 12, "{kinds} {whole}: {early}, then {late}");
        assert!(most <= 2_500, "{kinds} {whole}: {most} intervals");
    }
}

/// A ring that two queues share. States with different queues or owners are not joined, so their number is that of the
/// pieces of the ring.
#[test]
fn a_ring_between_two_queues_costs_the_same_after_ten_thousand_frames() {
    for concurrent in [false, true] {
        let mut global = Global::new();
        let queues = [global.add_queue(0), global.add_queue(1)];
        let info = BufferInfo { concurrent, ..BufferInfo::new(vk::Buffer::from_raw(1), 1 << 20) };
        let ring = global.add_buffer(&info);
        let mut lists = queues.map(Recorder::new);
        let mut submission = Submission::new();
        let mut at = 0;
        let (early, late) = early_and_late(|| {
            lists.iter_mut().for_each(Recorder::reset);
            let range = at * 1_000..at * 1_000 + 1_000;
            at = (at + 1) % 1_000;
            lists[0].use_buffer(ring, range.clone(), Use::COPY_TARGET.discard()).unwrap();
            lists[1].use_buffer(ring, range, Use::storage_read(Stages::COMPUTE_SHADER)).unwrap();
            global.resolve(queues[0], &[&lists[0]], &mut submission).unwrap();
            global.resolve(queues[1], &[&lists[1]], &mut submission).unwrap();
        });
        assert!(late * 10 <= early * 12, "{concurrent}: {early}, then {late}");
        assert!(global.intervals(ring).unwrap() < 100);
    }
}

/// Every other byte, in random order.
#[test]
fn scattered_uses_in_one_list_cost_a_little_each() {
    let mut costs = Vec::new();
    for count in [4_000_u64, 64_000] {
        let mut global = Global::new();
        let queue = global.add_queue(0);
        let buffer = global.add_buffer(&BufferInfo::new(vk::Buffer::from_raw(1), count * 2));
        let (mut list, mut submission) = (Recorder::new(queue), Submission::new());
        let mut order: Vec<u64> = (0..count).collect();
        fastrand::Rng::with_seed(9).shuffle(&mut order);
        costs.push(cost(|| {
            for &at in &order {
                list.use_buffer(buffer, at * 2..at * 2 + 1, Use::COPY_TARGET).unwrap();
            }
            list.flush();
            global.resolve(queue, &[&list], &mut submission).unwrap();
        }));
    }
    assert!(costs[0] >= 4_000 && costs[1] <= costs[0] * 16 * 13 / 10, "{costs:?}");
}

fn submit_each(
    global: &mut Global,
    queue: Queue,
    images: &[ImageId],
    (list, submission): (&mut Recorder, &mut Submission),
) {
    list.reset();
    for &image in images {
        list.use_image(image, &ALL, Use::COLOR_ATTACHMENT).unwrap();
        list.flush();
    }
    global.resolve(queue, &[&*list], submission).unwrap();
}

/// All in the same bytes; and a large image that takes the memory of many small ones.
#[test]
fn images_that_alias_one_memory_cost_a_little_each() {
    for large in [false, true] {
        let mut costs = Vec::new();
        for count in [500, 8_000] {
            let mut global = Global::new();
            let queue = global.add_queue(0);
            let small = move |at: u64| if large { place(at * 64, 64) } else { place(0, 64) };
            let last = large.then(|| place(0, count * 64));
            let images = images(&mut global, (0..count).map(small).chain(last));
            let (mut list, mut submission) = (Recorder::new(queue), Submission::revocable());
            costs.push(cost(|| {
                for _ in 0..3 {
                    submit_each(&mut global, queue, &images, (&mut list, &mut submission));
                }
            }));
        }
        assert!(costs[0] >= 1_500 && costs[1] <= costs[0] * 16 * 13 / 10, "{large}: {costs:?}");
    }
}

/// Unused resources cost nothing.
#[test]
fn changes_cost_the_same_among_many_resources_with_a_memory_range() {
    let mut costs = Vec::new();
    for count in [1_000_u64, 100_000] {
        let mut global = Global::new();
        let queue = global.add_queue(0);
        let images = images(&mut global, (0..count).map(|at| place(at * 64, 80)));
        let (mut list, mut submission) = (Recorder::new(queue), Submission::revocable());
        submit_each(&mut global, queue, &images, (&mut list, &mut submission));
        let some: Vec<_> = images.iter().copied().step_by(images.len() / 100).collect();
        costs.push(cost(|| {
            submit_each(&mut global, queue, &some, (&mut list, &mut submission));
            list.reset();
            some.iter().for_each(|&image| list.use_image(image, &ALL, SAMPLED).unwrap());
            global.resolve(queue, &[&list], &mut submission).unwrap();
            assert!(global.revoke(&mut submission));
            some.iter().for_each(|&image| global.remove(image).unwrap());
        }));
    }
    assert!(costs[0] >= 100 && costs[1] <= costs[0] * 2, "{costs:?}");
}
