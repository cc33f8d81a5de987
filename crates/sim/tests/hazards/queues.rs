//! Several queues, and waits of the host: what the layer of this version does not look at.

use ash::vk;
use sublet_sim::{Gpu, Profile};
use vk::{AccessFlags2 as Access, ImageLayout as Layout, PipelineStageFlags2 as Stages};

use super::fixture::{A, B, Bar, C, HazardFixture, Op, Part};

const T: Stages = Stages::ALL_TRANSFER;
const ALL: Stages = Stages::ALL_COMMANDS;
const COMPUTE: Stages = Stages::COMPUTE_SHADER;
const R: Access = Access::TRANSFER_READ;
const W: Access = Access::TRANSFER_WRITE;

const RACING_READ: &[&str] = &["SYNC-HAZARD-READ-RACING-WRITE"];
const RACING_WRITE: &[&str] = &["SYNC-HAZARD-WRITE-RACING-WRITE"];
const WRITE_RACING_READ: &[&str] = &["SYNC-HAZARD-WRITE-RACING-READ"];
const READ: &[&str] = &["SYNC-HAZARD-READ-AFTER-WRITE"];
const WRITE: &[&str] = &["SYNC-HAZARD-WRITE-AFTER-WRITE"];

fn fill() -> Op {
    Op::Fill(A, (0, 256))
}

fn copy() -> Op {
    Op::Copy(A, B, (0, 256))
}

struct Two<'a> {
    gpu: &'a Gpu,
    fixture: HazardFixture<'a>,
    binary: vk::Semaphore,
    timeline: vk::Semaphore,
    fence: vk::Fence,
}

impl Two<'_> {
    fn batch(
        &self,
        queue: usize,
        ops: &[Op],
        waits: &[(vk::Semaphore, u64, Stages)],
        signals: &[(vk::Semaphore, u64, Stages)],
    ) {
        // The fourth queue is of the second family.
        let family = queue / 3;
        self.fixture.batch((self.gpu.queue_at(queue), family), ops, waits, signals, vk::Fence::null());
    }
}

/// Runs a test on a GPU of three queues and one of another family, and compares what is reported.
#[track_caller]
fn finds(rules: &[&str], test: impl FnOnce(&Two<'_>)) {
    let builder = Gpu::builder(Profile::by_name("lavapipe").unwrap()).queues(3).hazards(true);
    let gpu = builder.family(vk::QueueFlags::TRANSFER, 1).build();
    let device = gpu.device();
    let info = vk::SemaphoreCreateInfo::default();
    let binary = unsafe { device.create_semaphore(&info, None) }.unwrap();
    let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
    let timeline = unsafe { device.create_semaphore(&info.push_next(&mut kind), None) }.unwrap();
    let fence = unsafe { device.create_fence(&vk::FenceCreateInfo::default(), None) }.unwrap();
    let two = Two {
        gpu: &gpu,
        fixture: HazardFixture::of_families(device, gpu.queue(), 2),
        binary,
        timeline,
        fence,
    };
    test(&two);
    unsafe { device.device_wait_idle() }.unwrap();
    drop(two);
    unsafe { device.destroy_semaphore(binary, None) };
    unsafe { device.destroy_semaphore(timeline, None) };
    unsafe { device.destroy_fence(fence, None) };
    let found = gpu.finish();
    assert_eq!(found.iter().map(|message| message.vuid).collect::<Vec<_>>(), rules, "{found:#?}");
}

#[test]
fn queues_race_without_a_semaphore() {
    finds(RACING_READ, |two| {
        two.batch(0, &[fill()], &[], &[]);
        two.batch(1, &[copy()], &[], &[]);
    });
    finds(RACING_WRITE, |two| {
        two.batch(0, &[fill()], &[], &[]);
        two.batch(1, &[fill()], &[], &[]);
    });
    finds(WRITE_RACING_READ, |two| {
        two.batch(0, &[copy()], &[], &[]);
        two.batch(1, &[fill()], &[], &[]);
    });
    finds(&[], |two| {
        two.batch(0, &[Op::Fill(A, (0, 128))], &[], &[]);
        two.batch(1, &[Op::Fill(A, (128, 128))], &[], &[]);
    });
}

#[test]
fn a_binary_semaphore_orders_two_queues() {
    finds(&[], |two| {
        two.batch(0, &[fill()], &[], &[(two.binary, 0, ALL)]);
        two.batch(1, &[copy()], &[(two.binary, 0, T)], &[]);
    });
    // A barrier cannot take its place.
    finds(RACING_READ, |two| {
        let bar = Bar::memory((ALL, Access::MEMORY_WRITE), (ALL, Access::MEMORY_READ));
        two.batch(0, &[fill(), Op::Barrier(vec![bar])], &[], &[]);
        two.batch(1, &[Op::Barrier(vec![bar]), copy()], &[], &[]);
    });
}

#[test]
fn the_stages_that_wait_for_a_semaphore_are_those_that_are_ordered() {
    finds(READ, |two| {
        two.batch(0, &[fill()], &[], &[(two.binary, 0, ALL)]);
        two.batch(1, &[copy()], &[(two.binary, 0, COMPUTE)], &[]);
    });
    finds(&[], |two| {
        two.batch(0, &[fill()], &[], &[(two.binary, 0, ALL)]);
        let bar = Bar::memory((COMPUTE, Access::NONE), (T, Access::TRANSFER_READ));
        two.batch(1, &[Op::Barrier(vec![bar]), copy()], &[(two.binary, 0, COMPUTE)], &[]);
    });
    // The signal has stages too.
    finds(RACING_READ, |two| {
        two.batch(0, &[fill()], &[], &[(two.binary, 0, COMPUTE)]);
        two.batch(1, &[copy()], &[(two.binary, 0, T)], &[]);
    });
}

#[test]
fn a_timeline_orders_what_was_before_its_value() {
    finds(&[], |two| {
        two.batch(0, &[fill()], &[], &[(two.timeline, 1, ALL)]);
        two.batch(1, &[copy()], &[(two.timeline, 1, T)], &[]);
    });
    finds(RACING_READ, |two| {
        two.batch(0, &[], &[], &[(two.timeline, 1, ALL)]);
        two.batch(0, &[fill()], &[], &[(two.timeline, 2, ALL)]);
        two.batch(1, &[copy()], &[(two.timeline, 1, T)], &[]);
    });
    // By way of a third queue.
    finds(&[], |two| {
        two.batch(0, &[fill()], &[], &[(two.timeline, 1, ALL)]);
        two.batch(1, &[], &[(two.timeline, 1, ALL)], &[(two.binary, 0, ALL)]);
        two.batch(2, &[copy()], &[(two.binary, 0, T)], &[]);
    });
}

#[test]
fn the_host_orders_what_it_has_waited_for() {
    let device = |two: &Two<'_>| two.gpu.device().clone();
    finds(&[], |two| {
        two.fixture.batch((two.gpu.queue(), 0), &[fill()], &[], &[], two.fence);
        unsafe { device(two).wait_for_fences(&[two.fence], true, u64::MAX) }.unwrap();
        two.batch(1, &[copy()], &[], &[]);
    });
    finds(&[], |two| {
        two.fixture.batch((two.gpu.queue(), 0), &[fill()], &[], &[], two.fence);
        assert!(unsafe { device(two).get_fence_status(two.fence) }.unwrap());
        two.batch(0, &[copy()], &[], &[]);
    });
    finds(READ, |two| {
        // The fence is that of what was before.
        two.fixture.batch((two.gpu.queue(), 0), &[], &[], &[], two.fence);
        two.batch(0, &[fill()], &[], &[]);
        unsafe { device(two).wait_for_fences(&[two.fence], true, u64::MAX) }.unwrap();
        two.batch(0, &[copy()], &[], &[]);
    });
    finds(&[], |two| {
        two.batch(0, &[fill()], &[], &[(two.timeline, 3, ALL)]);
        let (semaphores, values) = ([two.timeline], [2]);
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        unsafe { device(two).wait_semaphores(&info, u64::MAX) }.unwrap();
        two.batch(1, &[copy()], &[], &[]);
    });
    finds(RACING_READ, |two| {
        // Another queue is idle.
        two.batch(0, &[fill()], &[], &[]);
        unsafe { device(two).queue_wait_idle(two.gpu.queue_at(1)) }.unwrap();
        two.batch(1, &[copy()], &[], &[]);
    });
}

/// A hazard is reported once. Later accesses have to be ordered after the second write alone.
#[test]
fn a_write_takes_the_place_of_what_it_covers() {
    let bar = |stages| Op::Barrier(vec![Bar::memory((stages, W), (stages, R))]);
    finds(RACING_WRITE, |two| {
        two.batch(0, &[fill()], &[], &[]);
        two.batch(1, &[fill(), bar(T), copy()], &[], &[]);
    });
    finds(WRITE, |two| {
        let onto = Op::Copy(B, A, (0, 256));
        two.batch(0, &[fill(), onto, bar(Stages::COPY), Op::Copy(A, C, (0, 256))], &[], &[]);
    });
    finds(WRITE_RACING_READ, |two| {
        two.batch(0, &[copy()], &[], &[]);
        let again = Op::Barrier(vec![Bar::memory((T, W), (T, W))]);
        two.batch(1, &[fill(), again, fill()], &[], &[]);
    });
    // Of a half, the other half is as it was.
    finds(&[RACING_WRITE, RACING_READ].concat(), |two| {
        two.batch(0, &[fill()], &[], &[]);
        two.batch(1, &[Op::Fill(A, (0, 128)), bar(T), copy()], &[], &[]);
    });
}

#[test]
fn a_report_names_both_calls_and_what_is_missing() {
    let gpu = Gpu::builder(Profile::by_name("lavapipe").unwrap()).hazards(true).build();
    let fixture = HazardFixture::new(gpu.device(), gpu.queue());
    let bar = Bar::memory((T, Access::NONE), (T, Access::TRANSFER_READ));
    let partly = Op::Copy(A, B, (64, 64));
    fixture.batch((gpu.queue(), 0), &[fill(), Op::Barrier(vec![bar]), partly], &[], &[], vk::Fence::null());
    drop(fixture);
    let found = gpu.finish();
    let text = &found[0].text;
    for part in [
        "vkCmdCopyBuffer, call 2 of COMMAND_BUFFER",
        "(COPY TRANSFER_READ) reads BUFFER",
        "bytes 64 to 127",
        "vkCmdFillBuffer, call 0 of COMMAND_BUFFER",
        "(CLEAR TRANSFER_WRITE) wrote it before",
        "the write is not made available",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

const UNOWNED: &str = "SUBLET-exclusive-ownership";
const UNMATCHED: &str = "VUID-vkQueueSubmit-pSubmits-02207";
const NO: Access = Access::NONE;
const OTHER: usize = 3;

/// Gives a buffer away, after it was filled.
fn release(range: (u64, u64)) -> Op {
    Op::Barrier(vec![Bar::buffer(A, range, (T, W), (Stages::NONE, NO)).moves(0, 1)])
}

fn acquire(range: (u64, u64)) -> Op {
    Op::Barrier(vec![Bar::buffer(A, range, (Stages::NONE, NO), (T, R)).moves(0, 1)])
}

const BYTES: (u64, u64) = (0, 256);

/// Two batches, the second on a queue of another family, with a semaphore between them.
fn hand_over(two: &Two<'_>, first: &[Op], second: &[Op]) {
    two.batch(0, first, &[], &[(two.binary, 0, ALL)]);
    two.batch(OTHER, second, &[(two.binary, 0, T)], &[]);
}

#[test]
fn a_buffer_changes_hands_by_a_release_and_an_acquire() {
    finds(&[], |two| hand_over(two, &[fill(), release(BYTES)], &[acquire(BYTES), copy()]));
    // Without, the semaphore alone is not enough.
    finds(&[UNOWNED], |two| hand_over(two, &[fill()], &[copy()]));
    finds(&[UNOWNED], |two| hand_over(two, &[fill(), release(BYTES)], &[copy()]));
    finds(&[UNMATCHED], |two| hand_over(two, &[fill()], &[acquire(BYTES), copy()]));
    finds(&[UNMATCHED], |two| {
        let half = (0, 128);
        hand_over(two, &[fill(), release(half)], &[acquire(BYTES), Op::Copy(A, B, half)]);
    });
    // A family that released it does not own it.
    finds(&[UNOWNED], |two| {
        let ops = [fill(), release(BYTES), Op::Barrier(vec![Bar::memory((T, W), (T, R))]), copy()];
        let ordered = [Op::Barrier(vec![Bar::memory((ALL, W), (ALL, R | W))])];
        two.batch(0, &ops[..2], &[], &[(two.binary, 0, ALL)]);
        two.batch(0, &ordered, &[(two.binary, 0, ALL)], &[]);
        two.batch(0, &ops[3..], &[], &[]);
    });
    // The halves are on two queues: only a semaphore orders them.
    finds(RACING_WRITE, |two| {
        two.batch(0, &[fill(), release(BYTES)], &[], &[]);
        two.batch(OTHER, &[acquire(BYTES), copy()], &[], &[]);
    });
}

#[test]
fn what_is_written_needs_no_owner_and_what_is_read_by_one_family_none_before() {
    finds(&[], |two| hand_over(two, &[fill()], &[fill()]));
    finds(&[], |two| hand_over(two, &[Op::Fill(A, (0, 128))], &[Op::Copy(A, B, (128, 128))]));
    // Taken, it is the other's.
    finds(&[UNOWNED], |two| {
        hand_over(two, &[fill()], &[fill()]);
        unsafe { two.gpu.device().device_wait_idle() }.unwrap();
        two.batch(0, &[copy()], &[], &[]);
    });
}

#[test]
fn an_image_changes_hands_and_its_layout_once() {
    let part = Part { levels: (0, 2), layers: (0, 2) };
    let (fresh, dst, src) = (Layout::UNDEFINED, Layout::TRANSFER_DST_OPTIMAL, Layout::TRANSFER_SRC_OPTIMAL);
    let begin = Op::Barrier(vec![Bar::image(part, (fresh, dst), (Stages::NONE, NO), (T, W))]);
    let give = |layouts| Op::Barrier(vec![Bar::image(part, layouts, (T, W), (Stages::NONE, NO)).moves(0, 1)]);
    let get = |layouts| Op::Barrier(vec![Bar::image(part, layouts, (Stages::NONE, NO), (T, R)).moves(0, 1)]);
    let first = Part { levels: (0, 1), layers: (0, 2) };
    let read = Op::FromImage(B, first, src);
    let ops = [begin.clone(), Op::Clear(part), give((dst, src))];
    finds(&[], |two| hand_over(two, &ops, &[get((dst, src)), read.clone()]));
    // The halves differ, and what comes out is not what the reader needs.
    finds(&[UNMATCHED], |two| {
        hand_over(two, &ops, &[get((dst, Layout::GENERAL)), Op::FromImage(B, first, Layout::GENERAL)]);
    });
    // Discarded contents need no transfer.
    finds(&[], |two| {
        let again = Op::Barrier(vec![Bar::image(part, (fresh, dst), (T, NO), (T, W))]);
        hand_over(two, &ops[..2], &[again, Op::ToImage(A, first, dst, (0, 16))]);
    });
    finds(&[UNOWNED], |two| {
        let stays = Op::Barrier(vec![Bar::image(part, (dst, src), (T, NO), (T, R))]);
        hand_over(two, &ops[..2], &[stays, read.clone()]);
    });
}

#[test]
fn what_another_api_has_comes_back_as_it_left_it() {
    const OUTSIDE: u32 = vk::QUEUE_FAMILY_EXTERNAL;
    let part = Part { levels: (0, 2), layers: (0, 2) };
    let (fresh, dst, src) = (Layout::UNDEFINED, Layout::TRANSFER_DST_OPTIMAL, Layout::TRANSFER_SRC_OPTIMAL);
    let begin = Op::Barrier(vec![Bar::image(part, (fresh, dst), (Stages::NONE, NO), (T, W))]);
    let give = Bar::image(part, (dst, src), (T, W), (Stages::NONE, NO)).moves(0, OUTSIDE);
    let get = |old| {
        let bar = Bar::image(part, (old, src), (Stages::NONE, NO), (T, R)).moves(OUTSIDE, 0);
        Op::Barrier(vec![bar])
    };
    let read = Op::FromImage(B, Part { levels: (0, 1), layers: (0, 2) }, src);
    let gone = [begin.clone(), Op::Clear(part), Op::Barrier(vec![give])];
    let back = |two: &Two<'_>, ops: &[Op]| {
        two.batch(0, &gone, &[], &[]);
        unsafe { two.gpu.device().device_wait_idle() }.unwrap();
        two.batch(0, ops, &[], &[]);
    };
    // As it was given away, and as the other may have left it.
    finds(&[], |two| back(two, &[get(dst), read.clone()]));
    finds(&[], |two| back(two, &[get(Layout::GENERAL), read.clone()]));
    // A new image may be the other's from the start.
    finds(&[], |two| two.batch(0, &[get(Layout::GENERAL), read.clone()], &[], &[]));
    // It is not ours in between, nor the other's unless it was given.
    finds(&[UNOWNED], |two| back(two, &[Op::Barrier(vec![Bar::image(part, (dst, src), (T, W), (T, R))])]));
    finds(&[UNMATCHED], |two| {
        two.batch(0, &gone[..2], &[], &[]);
        unsafe { two.gpu.device().device_wait_idle() }.unwrap();
        two.batch(0, &[get(dst), read.clone()], &[], &[]);
    });
}

#[test]
fn a_command_buffer_is_for_the_queues_of_its_family_and_for_what_they_do() {
    finds(&["VUID-VkBufferMemoryBarrier2-buffer-04089"], |two| {
        let bar = Bar::buffer(A, BYTES, (T, W), (T, R)).moves(1, 2);
        two.batch(0, &[Op::Barrier(vec![bar])], &[], &[]);
    });
    finds(&["VUID-vkCmdClearColorImage-commandBuffer-cmdpool"], |two| {
        two.batch(OTHER, &[Op::Clear(Part { levels: (0, 1), layers: (0, 1) })], &[], &[]);
    });
    finds(&["VUID-vkQueueSubmit2-commandBuffer-03878"], |two| {
        let device = two.gpu.device();
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(1);
        let pool = unsafe { device.create_command_pool(&info, None) }.unwrap();
        let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        let commands = unsafe { device.allocate_command_buffers(&info) }.unwrap()[0];
        unsafe { device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()) }.unwrap();
        unsafe { device.end_command_buffer(commands) }.unwrap();
        let infos = [vk::CommandBufferSubmitInfo::default().command_buffer(commands)];
        let work = [vk::SubmitInfo2::default().command_buffer_infos(&infos)];
        assert!(unsafe { device.queue_submit2(two.gpu.queue(), &work, vk::Fence::null()) }.is_err());
        unsafe { device.destroy_command_pool(pool, None) };
    });
}
