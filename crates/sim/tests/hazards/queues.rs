//! Several queues, and waits of the host: what the layer of this version does not look at.

use ash::vk;
use sublet_sim::{Gpu, Profile};
use vk::{AccessFlags2 as Access, PipelineStageFlags2 as Stages};

use super::rig::{A, B, Bar, C, Op, Rig};

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
    rig: Rig<'a>,
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
        self.rig.batch(self.gpu.queue_at(queue), ops, waits, signals, vk::Fence::null());
    }
}

/// Runs a test on a GPU of three queues, and compares what is reported.
#[track_caller]
fn finds(rules: &[&str], test: impl FnOnce(&Two<'_>)) {
    let gpu = Gpu::builder(Profile::by_name("lavapipe").unwrap()).queues(3).hazards(true).build();
    let device = gpu.device();
    let info = vk::SemaphoreCreateInfo::default();
    let binary = unsafe { device.create_semaphore(&info, None) }.unwrap();
    let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
    let timeline = unsafe { device.create_semaphore(&info.push_next(&mut kind), None) }.unwrap();
    let fence = unsafe { device.create_fence(&vk::FenceCreateInfo::default(), None) }.unwrap();
    let two = Two { gpu: &gpu, rig: Rig::new(device, gpu.queue()), binary, timeline, fence };
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
        two.rig.batch(two.gpu.queue(), &[fill()], &[], &[], two.fence);
        unsafe { device(two).wait_for_fences(&[two.fence], true, u64::MAX) }.unwrap();
        two.batch(1, &[copy()], &[], &[]);
    });
    finds(&[], |two| {
        two.rig.batch(two.gpu.queue(), &[fill()], &[], &[], two.fence);
        assert!(unsafe { device(two).get_fence_status(two.fence) }.unwrap());
        two.batch(0, &[copy()], &[], &[]);
    });
    finds(READ, |two| {
        // The fence is that of what was before.
        two.rig.batch(two.gpu.queue(), &[], &[], &[], two.fence);
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

/// What was unordered is reported once: what comes later has to be ordered after the write that took its place alone.
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
    let rig = Rig::new(gpu.device(), gpu.queue());
    let bar = Bar::memory((T, Access::NONE), (T, Access::TRANSFER_READ));
    let partly = Op::Copy(A, B, (64, 64));
    rig.batch(gpu.queue(), &[fill(), Op::Barrier(vec![bar]), partly], &[], &[], vk::Fence::null());
    drop(rig);
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
