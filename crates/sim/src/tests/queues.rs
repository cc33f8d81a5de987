//! Several queues, and a device that is lost.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use std::time::Duration;

use super::*;

fn two_queues() -> Gpu {
    Gpu::builder(profile("lavapipe")).queues(2).build()
}

fn fence(gpu: &Gpu) -> vk::Fence {
    unsafe { gpu.device().create_fence(&vk::FenceCreateInfo::default(), None) }.unwrap()
}

fn is_signaled(gpu: &Gpu, fence: vk::Fence) -> bool {
    unsafe { gpu.device().get_fence_status(fence) }.unwrap()
}

fn binary(gpu: &Gpu) -> vk::Semaphore {
    unsafe { gpu.device().create_semaphore(&vk::SemaphoreCreateInfo::default(), None) }.unwrap()
}

fn timeline(gpu: &Gpu) -> vk::Semaphore {
    let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
    let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
    unsafe { gpu.device().create_semaphore(&info, None) }.unwrap()
}

fn value(gpu: &Gpu, semaphore: vk::Semaphore) -> u64 {
    unsafe { gpu.device().get_semaphore_counter_value(semaphore) }.unwrap()
}

/// Submits nothing to a queue, but what it waits for and what it signals.
fn submit(
    gpu: &Gpu,
    queue: usize,
    waits: &[(vk::Semaphore, u64)],
    signals: &[(vk::Semaphore, u64)],
    fence: vk::Fence,
) -> Result<(), vk::Result> {
    let info = |&(semaphore, value): &(vk::Semaphore, u64)| {
        vk::SemaphoreSubmitInfo::default()
            .semaphore(semaphore)
            .value(value)
            .stage_mask(vk::PipelineStageFlags2::ALL_COMMANDS)
    };
    let waits: Vec<_> = waits.iter().map(info).collect();
    let signals: Vec<_> = signals.iter().map(info).collect();
    let submit = vk::SubmitInfo2::default().wait_semaphore_infos(&waits).signal_semaphore_infos(&signals);
    unsafe { gpu.device().queue_submit2(gpu.queue_at(queue), &[submit], fence) }
}

#[test]
fn a_queue_does_not_wait_for_another() {
    let gpu = two_queues();
    let fences = [fence(&gpu), fence(&gpu)];
    let gate = timeline(&gpu);
    submit(&gpu, 0, &[(gate, 1)], &[], fences[0]).unwrap();
    submit(&gpu, 1, &[], &[], fences[1]).unwrap();
    assert_eq!(fences.map(|fence| is_signaled(&gpu, fence)), [false, true]);
    let signal = vk::SemaphoreSignalInfo::default().semaphore(gate).value(1);
    unsafe { gpu.device().signal_semaphore(&signal) }.unwrap();
    assert!(is_signaled(&gpu, fences[0]));
    destroy_all(&gpu);
    gpu.assert_silent();
}

#[test]
fn a_binary_semaphore_holds_a_queue_until_the_other_has_signaled_it() {
    let gpu = two_queues();
    let (semaphore, done) = (binary(&gpu), fence(&gpu));
    gpu.hold_queue(0, true);
    submit(&gpu, 0, &[], &[(semaphore, 0)], vk::Fence::null()).unwrap();
    submit(&gpu, 1, &[(semaphore, 0)], &[], done).unwrap();
    // Not even when it is asked to: the signal is behind the other queue's held work.
    assert_eq!(gpu.run_pending_on(1), 0);
    assert!(!is_signaled(&gpu, done));
    gpu.hold_queue(0, false);
    assert!(is_signaled(&gpu, done));
    destroy_all(&gpu);
    gpu.assert_silent();
}

#[test]
fn a_timeline_goes_from_queue_to_queue() {
    let gpu = two_queues();
    let time = timeline(&gpu);
    gpu.hold_submissions(true);
    submit(&gpu, 1, &[(time, 1)], &[(time, 2)], vk::Fence::null()).unwrap();
    let early = gpu.run_pending();
    assert_eq!((early, value(&gpu, time)), (0, 0));
    unsafe { gpu.device().signal_semaphore(&vk::SemaphoreSignalInfo::default().semaphore(time).value(1)) }
        .unwrap();
    assert_eq!(value(&gpu, time), 1, "held work does not run because a semaphore allows it");
    assert_eq!(gpu.run_pending(), 1);
    assert_eq!(value(&gpu, time), 2);
    unsafe { gpu.device().destroy_semaphore(time, None) };
    gpu.assert_silent();
}

#[test]
fn queues_may_be_given_a_timelines_values_in_any_order() {
    let gpu = two_queues();
    let (time, gate) = (timeline(&gpu), timeline(&gpu));
    submit(&gpu, 0, &[(gate, 1)], &[(time, 2)], vk::Fence::null()).unwrap();
    submit(&gpu, 1, &[], &[(time, 1)], vk::Fence::null()).unwrap();
    assert_eq!(value(&gpu, time), 1);
    unsafe { gpu.device().signal_semaphore(&vk::SemaphoreSignalInfo::default().semaphore(gate).value(1)) }
        .unwrap();
    assert_eq!(value(&gpu, time), 2);
    gpu.assert_silent();
    // Backwards is still wrong, on whichever queue.
    assert_eq!(submit(&gpu, 1, &[], &[(time, 2)], vk::Fence::null()), Err(WRONG));
    assert_eq!(reports(&gpu), ["VUID-VkSubmitInfo2-semaphore-03882"]);
    for semaphore in [time, gate] {
        unsafe { gpu.device().destroy_semaphore(semaphore, None) };
    }
    gpu.assert_silent();
}

#[test]
fn a_wait_runs_held_work_of_one_queue_after_the_other_until_it_is_over() {
    let gpu = Gpu::builder(profile("lavapipe")).queues(3).build();
    let times = [timeline(&gpu), timeline(&gpu), timeline(&gpu)];
    gpu.hold_submissions(true);
    for (queue, time) in times.iter().enumerate() {
        submit(&gpu, queue, &[], &[(*time, 5)], vk::Fence::null()).unwrap();
    }
    let values = [5];
    let waited = [times[1]];
    let wait = vk::SemaphoreWaitInfo::default().semaphores(&waited).values(&values);
    unsafe { gpu.device().wait_semaphores(&wait, u64::MAX) }.unwrap();
    assert_eq!(times.map(|time| value(&gpu, time)), [5, 5, 0]);
    unsafe { gpu.device().device_wait_idle() }.unwrap();
    assert_eq!(times.map(|time| value(&gpu, time)), [5; 3]);
    for time in times {
        unsafe { gpu.device().destroy_semaphore(time, None) };
    }
    gpu.assert_silent();
}

#[test]
fn a_device_has_no_more_queues_than_its_family() {
    let gpu = two_queues();
    let families =
        unsafe { gpu.instance().get_physical_device_queue_family_properties(gpu.physical_device()) };
    assert_eq!(families[0].queue_count, 2);
    let _ = unsafe { gpu.device().get_device_queue(0, 2) };
    assert_eq!(reports(&gpu), ["VUID-vkGetDeviceQueue-queueIndex-00385"]);
    let priorities = [1.0; 3];
    let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&priorities)];
    let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
    let refused = unsafe { gpu.instance().create_device(gpu.physical_device(), &info, None) };
    assert_eq!(refused.err(), Some(WRONG));
    assert_eq!(reports(&gpu), ["VUID-VkDeviceQueueCreateInfo-queueCount-00382"]);
}

#[test]
fn a_lost_device_says_so_wherever_vulkan_lets_it() {
    let gpu = Gpu::new(profile("nvidia-h200"));
    let lost = vk::Result::ERROR_DEVICE_LOST;
    let (done, time) = (fence(&gpu), timeline(&gpu));
    let device = gpu.device();
    gpu.faults().lose_device();
    assert_eq!(submit(&gpu, 0, &[], &[], vk::Fence::null()), Err(lost));
    assert_eq!(unsafe { device.queue_submit(gpu.queue(), &[], done) }, Err(lost));
    assert_eq!(unsafe { device.queue_bind_sparse(gpu.queue(), &[], done) }, Err(lost));
    assert_eq!(unsafe { device.queue_wait_idle(gpu.queue()) }, Err(lost));
    assert_eq!(unsafe { device.device_wait_idle() }, Err(lost));
    assert_eq!(unsafe { device.wait_for_fences(&[done], true, u64::MAX) }, Err(lost));
    assert_eq!(unsafe { device.get_fence_status(done) }, Err(lost));
    assert_eq!(unsafe { device.get_semaphore_counter_value(time) }, Err(lost));
    let (semaphores, values) = ([time], [1]);
    let wait = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
    assert_eq!(unsafe { device.wait_semaphores(&wait, u64::MAX) }, Err(lost));
    // Existing objects can be destroyed, and new ones created.
    storage(&gpu, 64);
    destroy_all(&gpu);
    assert_eq!(gpu.finish(), []);
}

#[test]
fn work_that_a_lost_device_had_in_flight_is_no_longer_in_the_way() {
    let gpu = simple();
    let device = gpu.device();
    let target = buffer(&gpu, 64, vk::BufferUsageFlags::TRANSFER_DST);
    let memory = allocate(&gpu, 64, 0);
    unsafe { device.bind_buffer_memory(target, memory, 0) }.unwrap();
    let (_, commands) = filling(&gpu, target);
    let (done, semaphore) = (fence(&gpu), binary(&gpu));
    gpu.hold_submissions(true);
    let signals = [semaphore];
    let submit = vk::SubmitInfo::default().command_buffers(&commands).signal_semaphores(&signals);
    unsafe { device.queue_submit(gpu.queue(), &[submit], done) }.unwrap();
    gpu.faults().lose_device();
    assert_eq!((gpu.pending_submissions(), gpu.run_pending()), (0, 0));
    assert_eq!(unsafe { gpu.read_memory(memory, 0, 4) }, Some(vec![0; 4]), "it never ran");
    destroy_all(&gpu);
    assert_eq!(gpu.finish(), []);
}

#[test]
fn a_thread_that_waits_is_woken_when_the_device_is_lost() {
    let gpu = simple();
    let (gate, done) = (timeline(&gpu), fence(&gpu));
    submit(&gpu, 0, &[(gate, 1)], &[], done).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| unsafe { gpu.device().wait_for_fences(&[done], true, 60_000_000_000) });
        std::thread::sleep(Duration::from_millis(20));
        gpu.faults().lose_device();
        assert_eq!(waiting.join().unwrap(), Err(vk::Result::ERROR_DEVICE_LOST));
    });
    destroy_all(&gpu);
    assert_eq!(gpu.finish(), []);
}
