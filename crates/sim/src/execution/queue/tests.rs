//! Submission, fences, binary and timeline semaphores.
#![expect(unsafe_code, reason = "tests call Vulkan")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every block calls the simulated device, whose rules are what is tested"
)]

use std::sync::mpsc;
use std::time::{Duration, Instant};

use ash::vk;

use crate::Gpu;
use crate::commands::tests::fixture::{CommandFixture, DST, Mapped, SRC};
use crate::execution::sync::PATIENCE;
use crate::facts::profiles::Profile;

const FOR_EVER: u64 = u64::MAX;

fn fence(fixture: &CommandFixture) -> vk::Fence {
    unsafe { fixture.device().create_fence(&vk::FenceCreateInfo::default(), None) }.unwrap()
}

fn semaphore(fixture: &CommandFixture) -> vk::Semaphore {
    unsafe { fixture.device().create_semaphore(&vk::SemaphoreCreateInfo::default(), None) }.unwrap()
}

fn timeline_from(fixture: &CommandFixture, initial: u64) -> vk::Semaphore {
    let mut kind = vk::SemaphoreTypeCreateInfo::default()
        .semaphore_type(vk::SemaphoreType::TIMELINE)
        .initial_value(initial);
    let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
    unsafe { fixture.device().create_semaphore(&info, None) }.unwrap()
}

fn value(fixture: &CommandFixture, semaphore: vk::Semaphore) -> u64 {
    unsafe { fixture.device().get_semaphore_counter_value(semaphore) }.unwrap()
}

fn host_signal(fixture: &CommandFixture, semaphore: vk::Semaphore, value: u64) -> Result<(), vk::Result> {
    let info = vk::SemaphoreSignalInfo::default().semaphore(semaphore).value(value);
    unsafe { fixture.device().signal_semaphore(&info) }
}

fn wait_values(
    fixture: &CommandFixture,
    pairs: &[(vk::Semaphore, u64)],
    any: bool,
    timeout: u64,
) -> Result<(), vk::Result> {
    let (semaphores, values): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
    let flags = if any { vk::SemaphoreWaitFlags::ANY } else { vk::SemaphoreWaitFlags::empty() };
    let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values).flags(flags);
    unsafe { fixture.device().wait_semaphores(&info, timeout) }
}

/// Submits command buffers that wait for values and signal values.
fn submit_with(
    fixture: &CommandFixture,
    waits: &[(vk::Semaphore, u64)],
    commands: &[vk::CommandBuffer],
    signals: &[(vk::Semaphore, u64)],
    fence: vk::Fence,
) -> Result<(), vk::Result> {
    let (wait_semaphores, wait_values): (Vec<_>, Vec<_>) = waits.iter().copied().unzip();
    let (signal_semaphores, signal_values): (Vec<_>, Vec<_>) = signals.iter().copied().unzip();
    let stages = vec![vk::PipelineStageFlags::ALL_COMMANDS; waits.len()];
    let mut values = vk::TimelineSemaphoreSubmitInfo::default()
        .wait_semaphore_values(&wait_values)
        .signal_semaphore_values(&signal_values);
    let info = vk::SubmitInfo::default()
        .wait_semaphores(&wait_semaphores)
        .wait_dst_stage_mask(&stages)
        .command_buffers(commands)
        .signal_semaphores(&signal_semaphores)
        .push_next(&mut values);
    unsafe { fixture.device().queue_submit(fixture.gpu.queue(), &[info], fence) }
}

/// As `submit_with`, in the second form.
fn submit2_with(
    fixture: &CommandFixture,
    waits: &[(vk::Semaphore, u64)],
    commands: &[vk::CommandBuffer],
    signals: &[(vk::Semaphore, u64)],
    fence: vk::Fence,
) -> Result<(), vk::Result> {
    let pair = |&(semaphore, value): &(vk::Semaphore, u64)| {
        vk::SemaphoreSubmitInfo::default().semaphore(semaphore).value(value)
    };
    let waits: Vec<_> = waits.iter().map(pair).collect();
    let signals: Vec<_> = signals.iter().map(pair).collect();
    let commands: Vec<_> =
        commands.iter().map(|&it| vk::CommandBufferSubmitInfo::default().command_buffer(it)).collect();
    let info = vk::SubmitInfo2::default()
        .wait_semaphore_infos(&waits)
        .command_buffer_infos(&commands)
        .signal_semaphore_infos(&signals);
    unsafe { fixture.device().queue_submit2(fixture.gpu.queue(), &[info], fence) }
}

/// Command buffers of which each writes its number into the next word of a buffer.
fn writers(fixture: &CommandFixture, count: u32) -> (Mapped, Vec<vk::CommandBuffer>) {
    let target = fixture.mapped(4 * u64::from(count), DST | SRC);
    let info =
        vk::CommandBufferAllocateInfo::default().command_pool(fixture.pool).command_buffer_count(count);
    let device = fixture.device();
    let buffers = unsafe { device.allocate_command_buffers(&info) }.unwrap();
    for (number, &commands) in (0..).zip(&buffers) {
        unsafe { device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()) }.unwrap();
        unsafe { device.cmd_fill_buffer(commands, target.buffer, 4 * u64::from(number), 4, number + 1) };
        unsafe { device.end_command_buffer(commands) }.unwrap();
    }
    (target, buffers)
}

fn words(target: &Mapped) -> Vec<u8> {
    target.read().into_iter().step_by(4).collect()
}

fn destroy(fixture: &CommandFixture, fences: &[vk::Fence], semaphores: &[vk::Semaphore]) {
    for &fence in fences {
        unsafe { fixture.device().destroy_fence(fence, None) };
    }
    for &semaphore in semaphores {
        unsafe { fixture.device().destroy_semaphore(semaphore, None) };
    }
}

#[test]
fn a_fence_is_signaled_when_its_submission_is_done() {
    let fixture = CommandFixture::simple();
    let device = fixture.device();
    let first = fence(&fixture);
    assert!(!unsafe { device.get_fence_status(first) }.unwrap());
    fixture.begin();
    fixture.end();
    submit_with(&fixture, &[], &[fixture.commands], &[], first).unwrap();
    assert!(unsafe { device.get_fence_status(first) }.unwrap());
    unsafe { device.wait_for_fences(&[first], true, FOR_EVER) }.unwrap();
    fixture.refuses("VUID-vkQueueSubmit-fence-00063", submit_with(&fixture, &[], &[], &[], first));
    unsafe { device.reset_fences(&[first]) }.unwrap();
    assert!(!unsafe { device.get_fence_status(first) }.unwrap());
    let info = vk::FenceCreateInfo::default().flags(vk::FenceCreateFlags::SIGNALED);
    let signaled = unsafe { device.create_fence(&info, None) }.unwrap();
    assert!(unsafe { device.get_fence_status(signaled) }.unwrap());
    // One of two is enough, if one is asked for.
    unsafe { device.wait_for_fences(&[first, signaled], false, 0) }.unwrap();
    let both = unsafe { device.wait_for_fences(&[first, signaled], true, 0) };
    assert_eq!(both, Err(vk::Result::TIMEOUT));
    destroy(&fixture, &[first, signaled], &[]);
    fixture.expect_silence();
}

#[test]
fn a_fence_in_flight_is_left_alone() {
    let fixture = CommandFixture::simple();
    let device = fixture.device();
    let fence = fence(&fixture);
    fixture.gpu.hold_submissions(true);
    submit_with(&fixture, &[], &[], &[], fence).unwrap();
    fixture.refuses("VUID-vkResetFences-pFences-01123", unsafe { device.reset_fences(&[fence]) });
    fixture.refuses("VUID-vkQueueSubmit-fence-00064", submit_with(&fixture, &[], &[], &[], fence));
    fixture.refuses("VUID-vkQueueSubmit2-fence-04895", submit2_with(&fixture, &[], &[], &[], fence));
    unsafe { device.destroy_fence(fence, None) };
    fixture.expect("VUID-vkDestroyFence-fence-01120");
    fixture.gpu.hold_submissions(false);
    assert_eq!(fixture.gpu.pending_submissions(), 0);
    fixture.refuses("VUID-vkGetFenceStatus-fence-parameter", unsafe { device.get_fence_status(fence) });
    assert!(unsafe { device.wait_for_fences(&[fence], true, 0) }.is_err());
    fixture.expect("VUID-vkWaitForFences-pFences-parameter");
    fixture.refuses("VUID-vkQueueSubmit-fence-parameter", submit_with(&fixture, &[], &[], &[], fence));
    unsafe { device.destroy_fence(fence, None) };
    fixture.expect("VUID-vkDestroyFence-fence-parameter");
}

#[test]
fn waiting_for_a_fence_runs_what_is_held_back() {
    let fixture = CommandFixture::simple();
    let (target, buffers) = writers(&fixture, 2);
    let fences = [fence(&fixture), fence(&fixture)];
    fixture.gpu.hold_submissions(true);
    submit_with(&fixture, &[], &buffers[..1], &[], fences[0]).unwrap();
    submit_with(&fixture, &[], &buffers[1..], &[], fences[1]).unwrap();
    assert_eq!(fixture.gpu.pending_submissions(), 2);
    assert_eq!(words(&target), [0, 0]);
    // A look is no wait.
    assert_eq!(unsafe { fixture.device().wait_for_fences(&fences, true, 0) }, Err(vk::Result::TIMEOUT));
    assert_eq!(words(&target), [0, 0]);
    unsafe { fixture.device().wait_for_fences(&fences, true, FOR_EVER) }.unwrap();
    assert_eq!(words(&target), [1, 2]);
    destroy(&fixture, &fences, &[]);
    fixture.expect_silence();
}

#[test]
fn waiting_for_a_fence_that_nothing_signals_does_not_hang() {
    let fixture = CommandFixture::simple();
    let lonely = fence(&fixture);
    // A wait with hope takes at least this long each time, and one without only now and then, on a busy machine.
    let ends_at_once = (0..10).any(|_| {
        let start = Instant::now();
        let result = unsafe { fixture.device().wait_for_fences(&[lonely], true, FOR_EVER) };
        assert_eq!(result, Err(vk::Result::TIMEOUT));
        fixture.expect("SUBLET-vkWaitForFences-never-signaled");
        start.elapsed() < PATIENCE
    });
    assert!(ends_at_once, "hopeless from the start");
    // A wait with an end is not reported: that is what timeouts are for.
    let result = unsafe { fixture.device().wait_for_fences(&[lonely], true, 1_000_000) };
    assert_eq!(result, Err(vk::Result::TIMEOUT));
    fixture.expect_silence();
    // Submitted, but behind a value that nobody signals: hope dies after a while.
    let never = timeline_from(&fixture, 0);
    submit_with(&fixture, &[(never, 1)], &[], &[], lonely).unwrap();
    let result = unsafe { fixture.device().wait_for_fences(&[lonely], true, FOR_EVER) };
    assert_eq!(result, Err(vk::Result::TIMEOUT));
    fixture.expect("SUBLET-vkWaitForFences-never-signaled");
    assert_eq!(wait_values(&fixture, &[(never, 1)], false, FOR_EVER), Err(vk::Result::TIMEOUT));
    fixture.expect("SUBLET-vkWaitSemaphores-never-signaled");
    let idle = unsafe { fixture.device().queue_wait_idle(fixture.gpu.queue()) };
    assert_eq!(idle, Err(vk::Result::ERROR_DEVICE_LOST));
    fixture.expect("SUBLET-vkQueueWaitIdle-stuck");
    assert_eq!(unsafe { fixture.device().device_wait_idle() }, Err(vk::Result::ERROR_DEVICE_LOST));
    fixture.expect("SUBLET-vkDeviceWaitIdle-stuck");
    host_signal(&fixture, never, 1).unwrap();
    unsafe { fixture.device().device_wait_idle() }.unwrap();
    destroy(&fixture, &[lonely], &[never]);
    fixture.expect_silence();
}

#[test]
fn a_submission_waits_for_its_value_and_those_behind_it_wait_too() {
    type Submit = fn(
        &CommandFixture,
        &[(vk::Semaphore, u64)],
        &[vk::CommandBuffer],
        &[(vk::Semaphore, u64)],
        vk::Fence,
    ) -> Result<(), vk::Result>;
    let forms: [Submit; 2] = [submit_with, submit2_with];
    for submit in forms {
        let fixture = CommandFixture::new(Profile::by_name("nvidia-h200").unwrap());
        let (target, buffers) = writers(&fixture, 3);
        let (input, output) = (timeline_from(&fixture, 5), timeline_from(&fixture, 0));
        let done = fence(&fixture);
        submit(&fixture, &[(input, 5)], &buffers[..1], &[(output, 1)], vk::Fence::null()).unwrap();
        assert_eq!((words(&target), value(&fixture, output)), (vec![1, 0, 0], 1));
        submit(&fixture, &[(input, 7)], &buffers[1..2], &[(output, 2)], vk::Fence::null()).unwrap();
        submit(&fixture, &[], &buffers[2..], &[(output, 9)], done).unwrap();
        assert_eq!(fixture.gpu.pending_submissions(), 2);
        assert_eq!((words(&target), value(&fixture, output)), (vec![1, 0, 0], 1));
        host_signal(&fixture, input, 6).unwrap();
        assert_eq!(fixture.gpu.pending_submissions(), 2);
        assert!(!unsafe { fixture.device().get_fence_status(done) }.unwrap());
        host_signal(&fixture, input, 8).unwrap();
        assert_eq!((words(&target), value(&fixture, output)), (vec![1, 2, 3], 9));
        assert!(unsafe { fixture.device().get_fence_status(done) }.unwrap());
        destroy(&fixture, &[done], &[input, output]);
        fixture.expect_silence();
    }
}

#[test]
fn batches_of_one_call_wait_for_one_another() {
    let fixture = CommandFixture::simple();
    let (target, buffers) = writers(&fixture, 2);
    let (binary, counter) = (semaphore(&fixture), timeline_from(&fixture, 0));
    let (one, two) = ([buffers[0]], [buffers[1]]);
    let stages = [vk::PipelineStageFlags::ALL_COMMANDS; 2];
    let (signals, waits) = ([binary, counter], [counter, binary]);
    let (signal_values, wait_values) = ([0, 3], [3, 0]);
    let mut first_values = vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&signal_values);
    let mut second_values = vk::TimelineSemaphoreSubmitInfo::default().wait_semaphore_values(&wait_values);
    let infos = [
        vk::SubmitInfo::default()
            .command_buffers(&one)
            .signal_semaphores(&signals)
            .push_next(&mut first_values),
        vk::SubmitInfo::default()
            .wait_semaphores(&waits)
            .wait_dst_stage_mask(&stages)
            .command_buffers(&two)
            .push_next(&mut second_values),
    ];
    let done = fence(&fixture);
    unsafe { fixture.device().queue_submit(fixture.gpu.queue(), &infos, done) }.unwrap();
    assert_eq!((words(&target), value(&fixture, counter)), (vec![1, 2], 3));
    assert!(unsafe { fixture.device().get_fence_status(done) }.unwrap());
    destroy(&fixture, &[done], &[binary, counter]);
    fixture.expect_silence();
}

#[test]
fn a_binary_semaphore_is_signaled_once_and_waited_for_once() {
    let fixture = CommandFixture::simple();
    let binary = semaphore(&fixture);
    let none = vk::Fence::null();
    assert!(submit_with(&fixture, &[(binary, 0)], &[], &[], none).is_err());
    fixture.expect("VUID-vkQueueSubmit-pWaitSemaphores-03238");
    assert!(submit2_with(&fixture, &[(binary, 0)], &[], &[], none).is_err());
    fixture.expect("VUID-vkQueueSubmit2-semaphore-03873");
    submit_with(&fixture, &[], &[], &[(binary, 0)], none).unwrap();
    assert!(submit_with(&fixture, &[], &[], &[(binary, 0)], none).is_err());
    fixture.expect("VUID-vkQueueSubmit-pSignalSemaphores-00067");
    assert!(submit2_with(&fixture, &[], &[], &[(binary, 0)], none).is_err());
    fixture.expect("VUID-vkQueueSubmit2-semaphore-03868");
    // Waited for and signaled again by the same batch.
    submit_with(&fixture, &[(binary, 0)], &[], &[(binary, 0)], none).unwrap();
    submit2_with(&fixture, &[(binary, 0)], &[], &[], none).unwrap();
    assert!(submit_with(&fixture, &[(binary, 0)], &[], &[], none).is_err());
    fixture.expect("VUID-vkQueueSubmit-pWaitSemaphores-03238");
    fixture.gpu.hold_submissions(true);
    submit_with(&fixture, &[], &[], &[(binary, 0)], none).unwrap();
    unsafe { fixture.device().destroy_semaphore(binary, None) };
    fixture.expect("VUID-vkDestroySemaphore-semaphore-05149");
    fixture.gpu.run_pending();
    assert!(submit_with(&fixture, &[(binary, 0)], &[], &[], none).is_err());
    fixture.expect("VUID-VkSubmitInfo-pWaitSemaphores-parameter");
    assert!(submit_with(&fixture, &[], &[], &[(binary, 0)], none).is_err());
    fixture.expect("VUID-VkSubmitInfo-pSignalSemaphores-parameter");
    unsafe { fixture.device().destroy_semaphore(binary, None) };
    fixture.expect("VUID-vkDestroySemaphore-semaphore-parameter");
}

#[test]
fn the_value_of_a_timeline_only_grows() {
    let fixture = CommandFixture::simple();
    let counter = timeline_from(&fixture, 10);
    let none = vk::Fence::null();
    assert_eq!(value(&fixture, counter), 10);
    for wrong in [9, 10] {
        fixture.refuses("VUID-VkSemaphoreSignalInfo-value-03258", host_signal(&fixture, counter, wrong));
        assert!(submit_with(&fixture, &[], &[], &[(counter, wrong)], none).is_err());
        fixture.expect("VUID-VkSubmitInfo-pSignalSemaphores-03242");
        assert!(submit2_with(&fixture, &[], &[], &[(counter, wrong)], none).is_err());
        fixture.expect("VUID-VkSubmitInfo2-semaphore-03882");
    }
    fixture.gpu.hold_submissions(true);
    submit_with(&fixture, &[], &[], &[(counter, 20)], none).unwrap();
    // Not above what is to come, and not at it.
    for wrong in [20, 21] {
        fixture.refuses("VUID-VkSemaphoreSignalInfo-value-03259", host_signal(&fixture, counter, wrong));
    }
    assert!(submit_with(&fixture, &[], &[], &[(counter, 15)], none).is_err());
    fixture.expect("VUID-VkSubmitInfo-pSignalSemaphores-03242");
    host_signal(&fixture, counter, 19).unwrap();
    assert_eq!(value(&fixture, counter), 19);
    fixture.gpu.run_pending();
    assert_eq!(value(&fixture, counter), 20);
    destroy(&fixture, &[], &[counter]);
    fixture.expect_silence();
}

#[test]
fn timelines_need_their_feature_and_their_values() {
    let fixture = CommandFixture::simple();
    let (binary, counter) = (semaphore(&fixture), timeline_from(&fixture, 0));
    let device = fixture.device();
    let semaphores = [counter];
    let info = vk::SubmitInfo::default().signal_semaphores(&semaphores);
    assert!(unsafe { device.queue_submit(fixture.gpu.queue(), &[info], vk::Fence::null()) }.is_err());
    fixture.expect("VUID-VkSubmitInfo-pWaitSemaphores-03239");
    let values = [1, 2];
    let mut wrong = vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values);
    let info = vk::SubmitInfo::default().signal_semaphores(&semaphores).push_next(&mut wrong);
    assert!(unsafe { device.queue_submit(fixture.gpu.queue(), &[info], vk::Fence::null()) }.is_err());
    fixture.expect("VUID-VkSubmitInfo-pNext-03241");
    let mut wrong = vk::TimelineSemaphoreSubmitInfo::default().wait_semaphore_values(&values);
    let stages = [vk::PipelineStageFlags::ALL_COMMANDS];
    let info = vk::SubmitInfo::default()
        .wait_semaphores(&semaphores)
        .wait_dst_stage_mask(&stages)
        .push_next(&mut wrong);
    assert!(unsafe { device.queue_submit(fixture.gpu.queue(), &[info], vk::Fence::null()) }.is_err());
    fixture.expect("VUID-VkSubmitInfo-pNext-03240");
    assert!(unsafe { device.get_semaphore_counter_value(binary) }.is_err());
    fixture.expect("VUID-vkGetSemaphoreCounterValue-semaphore-03255");
    fixture.refuses("VUID-VkSemaphoreSignalInfo-semaphore-03257", host_signal(&fixture, binary, 1));
    assert!(wait_values(&fixture, &[(binary, 1)], false, 0).is_err());
    fixture.expect("VUID-VkSemaphoreWaitInfo-pSemaphores-03256");
    let mut kind = vk::SemaphoreTypeCreateInfo::default().initial_value(3);
    let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
    assert!(unsafe { device.create_semaphore(&info, None) }.is_err());
    fixture.expect("VUID-VkSemaphoreTypeCreateInfo-semaphoreType-03279");
    destroy(&fixture, &[], &[binary, counter]);
    let old = CommandFixture::new(Profile::by_name("imagination-powervr-gx6250").unwrap());
    let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
    let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
    assert!(unsafe { old.device().create_semaphore(&info, None) }.is_err());
    old.expect("VUID-VkSemaphoreTypeCreateInfo-timelineSemaphore-03252");
}

#[test]
fn a_wait_for_one_or_for_all_values() {
    let fixture = CommandFixture::simple();
    let (first, second) = (timeline_from(&fixture, 4), timeline_from(&fixture, 0));
    let pairs = [(first, 4), (second, 1)];
    wait_values(&fixture, &pairs, true, 0).unwrap();
    assert_eq!(wait_values(&fixture, &pairs, false, 0), Err(vk::Result::TIMEOUT));
    fixture.gpu.hold_submissions(true);
    submit_with(&fixture, &[], &[], &[(second, 1)], vk::Fence::null()).unwrap();
    assert_eq!(wait_values(&fixture, &pairs, false, 0), Err(vk::Result::TIMEOUT));
    wait_values(&fixture, &pairs, false, FOR_EVER).unwrap();
    destroy(&fixture, &[], &[first, second]);
    fixture.expect_silence();
}

#[test]
fn a_wait_ends_when_another_thread_signals() {
    let fixture = CommandFixture::simple();
    let (input, output) = (timeline_from(&fixture, 0), timeline_from(&fixture, 0));
    let done = fence(&fixture);
    submit_with(&fixture, &[(input, 1)], &[], &[(output, 1)], done).unwrap();
    let device = fixture.device().clone();
    let (started, wait_started) = mpsc::channel();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            started.send(()).unwrap();
            // A minute stands for any time: the thread below ends the wait.
            unsafe { device.wait_for_fences(&[done], true, 60_000_000_000) }
        });
        wait_started.recv().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        host_signal(&fixture, input, 1).unwrap();
        waiter.join().unwrap().unwrap();
    });
    assert_eq!(value(&fixture, output), 1);
    destroy(&fixture, &[done], &[input, output]);
    fixture.expect_silence();
}

/// A wait without a timeout is no deadlock as long as other threads signal anything.
#[test]
fn a_wait_for_ever_goes_on_while_other_threads_do() {
    let fixture = CommandFixture::simple();
    let ends = || {
        let input = timeline_from(&fixture, 0);
        let waited = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| wait_values(&fixture, &[(input, 8)], true, FOR_EVER));
            for value in 1..=8 {
                std::thread::sleep(PATIENCE / 4);
                host_signal(&fixture, input, value).unwrap();
            }
            waiter.join().unwrap()
        });
        destroy(&fixture, &[], &[input]);
        let reports = fixture.gpu.take_messages();
        assert_eq!(waited.is_err(), !reports.is_empty(), "{waited:?}, {reports:?}");
        waited.is_ok()
    };
    // On a busy machine, a sleep may take too long, but not each time.
    assert!((0..10).any(|_| ends()));
}

#[test]
fn a_wait_runs_what_another_thread_submits_and_holds_back() {
    let fixture = CommandFixture::simple();
    let input = timeline_from(&fixture, 0);
    fixture.gpu.hold_submissions(true);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| wait_values(&fixture, &[(input, 1)], true, 60_000_000_000));
        std::thread::sleep(Duration::from_millis(20));
        submit_with(&fixture, &[], &[], &[(input, 1)], vk::Fence::null()).unwrap();
        waiter.join().unwrap().unwrap();
    });
    destroy(&fixture, &[], &[input]);
    fixture.expect_silence();
}

#[test]
fn threads_submit_side_by_side() {
    let fixture = CommandFixture::simple();
    let count = 64;
    let (target, buffers) = writers(&fixture, count);
    let (device, queue) = (fixture.device(), fixture.gpu.queue());
    std::thread::scope(|scope| {
        for buffers in buffers.chunks(16) {
            scope.spawn(move || {
                for &commands in buffers {
                    let commands = [commands];
                    let info = vk::SubmitInfo::default().command_buffers(&commands);
                    unsafe { device.queue_submit(queue, &[info], vk::Fence::null()) }.unwrap();
                }
            });
        }
    });
    unsafe { device.queue_wait_idle(queue) }.unwrap();
    let all: Vec<u8> = (1..=64).collect();
    assert_eq!(words(&target), all);
    fixture.expect_silence();
}

#[test]
fn one_submission_ends_before_the_next_starts_whoever_runs_them() {
    let fixture = CommandFixture::simple();
    let target = fixture.mapped(65536, SRC | DST);
    let (_, buffers) = writers(&fixture, 2);
    let [slow, quick] = buffers[..] else {
        panic!("two command buffers");
    };
    for (commands, times, word) in [(slow, 1000, 1), (quick, 1, 2)] {
        let device = fixture.device();
        unsafe { device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()) }.unwrap();
        for _ in 0..times {
            unsafe { device.cmd_fill_buffer(commands, target.buffer, 0, 65536, word) };
        }
        unsafe { device.end_command_buffer(commands) }.unwrap();
    }
    for _ in 0..4 {
        fixture.gpu.hold_submissions(true);
        for commands in [slow, quick] {
            submit_with(&fixture, &[], &[commands], &[], vk::Fence::null()).unwrap();
        }
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| fixture.gpu.run_pending());
            }
        });
        assert_eq!(target.read(), [2, 0, 0, 0].repeat(16384));
    }
    fixture.expect_silence();
}

#[test]
fn a_wait_takes_over_what_a_submitting_thread_leaves_held() {
    let fixture = CommandFixture::simple();
    let (_target, buffers) = writers(&fixture, 200);
    let (device, queue) = (fixture.device(), fixture.gpu.queue());
    let gpu = &fixture.gpu;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for &commands in &buffers {
                gpu.hold_submissions(false);
                let commands = [commands];
                let info = vk::SubmitInfo::default().command_buffers(&commands);
                unsafe { device.queue_submit(queue, &[info], vk::Fence::null()) }.unwrap();
                gpu.hold_submissions(true);
            }
        });
        for _ in 0..200 {
            unsafe { device.queue_wait_idle(queue) }.unwrap();
        }
    });
    unsafe { device.queue_wait_idle(queue) }.unwrap();
    assert_eq!(fixture.gpu.pending_submissions(), 0);
    fixture.expect_silence();
}

#[test]
fn the_second_form_reports_wrong_command_buffers_by_its_own_names() {
    let fixture = CommandFixture::simple();
    let none = vk::Fence::null();
    assert!(submit2_with(&fixture, &[], &[fixture.commands], &[], none).is_err());
    fixture.expect("VUID-vkQueueSubmit2-commandBuffer-03874");
    fixture.begin();
    fixture.end();
    assert!(submit2_with(&fixture, &[], &[fixture.commands; 2], &[], none).is_err());
    fixture.expect("VUID-vkQueueSubmit2-commandBuffer-03875");
    assert!(submit_with(&fixture, &[], &[fixture.commands; 2], &[], none).is_err());
    fixture.expect("VUID-vkQueueSubmit-pCommandBuffers-00071");
    submit2_with(&fixture, &[], &[fixture.commands], &[], none).unwrap();
    fixture.expect_silence();
}

#[test]
fn a_command_buffer_for_simultaneous_use_is_in_flight_twice() {
    let fixture = CommandFixture::simple();
    let target = fixture.mapped(8, SRC | DST);
    let info = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE);
    unsafe { fixture.device().begin_command_buffer(fixture.commands, &info) }.unwrap();
    unsafe { fixture.device().cmd_fill_buffer(fixture.commands, target.buffer, 0, 4, u32::MAX) };
    fixture.end();
    fixture.gpu.hold_submissions(true);
    submit_with(&fixture, &[], &[fixture.commands; 2], &[], vk::Fence::null()).unwrap();
    submit_with(&fixture, &[], &[fixture.commands], &[], vk::Fence::null()).unwrap();
    assert_eq!(fixture.gpu.pending_submissions(), 2);
    unsafe { fixture.device().queue_wait_idle(fixture.gpu.queue()) }.unwrap();
    assert_eq!(fixture.gpu.pending_submissions(), 0);
    assert_eq!(target.read()[..4], [255; 4]);
    fixture.expect_silence();
}

#[test]
fn a_submission_that_breaks_a_rule_changes_nothing() {
    let fixture = CommandFixture::simple();
    let (binary, counter) = (semaphore(&fixture), timeline_from(&fixture, 0));
    let done = fence(&fixture);
    fixture.begin();
    // The command buffer is not executable, so nothing of this happens.
    let signals = [(binary, 0), (counter, 1)];
    assert!(submit_with(&fixture, &[], &[fixture.commands], &signals, done).is_err());
    fixture.expect("VUID-vkQueueSubmit-pCommandBuffers-00070");
    assert_eq!((value(&fixture, counter), fixture.gpu.pending_submissions()), (0, 0));
    fixture.end();
    submit_with(&fixture, &[], &[fixture.commands], &signals, done).unwrap();
    unsafe { fixture.device().wait_for_fences(&[done], true, FOR_EVER) }.unwrap();
    destroy(&fixture, &[done], &[binary, counter]);
    fixture.expect_silence();
}

#[test]
fn what_is_left_on_a_device_is_reported() {
    let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    let device = gpu.device();
    unsafe { device.create_fence(&vk::FenceCreateInfo::default(), None) }.unwrap();
    unsafe { device.create_semaphore(&vk::SemaphoreCreateInfo::default(), None) }.unwrap();
    unsafe { device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None) }.unwrap();
    let leaks = gpu.finish();
    assert_eq!(leaks.len(), 3, "{leaks:?}");
    assert!(leaks.iter().all(|leak| leak.vuid == "VUID-vkDestroyDevice-device-05137"));
}
