//! Submissions, presentation, and the calls that report a lost device.
#![expect(unsafe_code, reason = "the functions have the C ABI, and call the next layer")]

use std::ffi::c_void;

use ash::vk;
use sublet::private::Operation;

use super::{FAILED, next, slice};
use crate::device::WatchedDevice;

/// Records a submission of so many command buffers, and a budget from time to time.
fn record_submit(known: &WatchedDevice, result: vk::Result, command_buffers: u64) {
    let Some(recording) = &known.recording else { return };
    if result == vk::Result::SUCCESS {
        recording.put(Operation::Submitted, &[command_buffers]);
        known.sample_budget();
    }
}

pub(crate) unsafe extern "system" fn submit(
    queue: vk::Queue,
    count: u32,
    submits: *const vk::SubmitInfo<'_>,
    fence: vk::Fence,
) -> vk::Result {
    let (known, next) = next!(queue, submit, FAILED);
    // SAFETY: V3, and the parameters are those of the program.
    let result = known.checked(unsafe { next(queue, count, submits, fence) });
    // SAFETY: V1.
    let submits = unsafe { slice(submits, count) };
    record_submit(known, result, submits.iter().map(|submit| u64::from(submit.command_buffer_count)).sum());
    result
}

pub(crate) unsafe extern "system" fn submit2(
    queue: vk::Queue,
    count: u32,
    submits: *const vk::SubmitInfo2<'_>,
    fence: vk::Fence,
) -> vk::Result {
    let (known, next) = next!(queue, submit2, FAILED);
    // SAFETY: V3, and the parameters are those of the program.
    let result = known.checked(unsafe { next(queue, count, submits, fence) });
    // SAFETY: V1.
    let submits = unsafe { slice(submits, count) };
    record_submit(
        known,
        result,
        submits.iter().map(|submit| u64::from(submit.command_buffer_info_count)).sum(),
    );
    result
}

pub(crate) unsafe extern "system" fn present(
    queue: vk::Queue,
    info: *const vk::PresentInfoKHR<'_>,
) -> vk::Result {
    let (known, next) = next!(queue, present, FAILED);
    // SAFETY: V3, and the parameters are those of the program.
    let result = known.checked(unsafe { next(queue, info) });
    if let Some(recording) = &known.recording {
        recording.put(Operation::Presented, &[]);
        known.sample_budget();
    }
    result
}

/// Defines calls of which the layer only records that the device was lost.
macro_rules! losing {
    ($($call:ident($handle:ident: $type:ty $(, $parameter:ident: $of:ty)*);)*) => {$(
        pub(crate) unsafe extern "system" fn $call($handle: $type $(, $parameter: $of)*) -> vk::Result {
            let (known, next) = next!($handle, $call, FAILED);
            // SAFETY: V3, and the parameters are those of the program.
            known.checked(unsafe { next($handle $(, $parameter)*) })
        }
    )*};
}

losing! {
    queue_wait_idle(queue: vk::Queue);
    device_wait_idle(device: vk::Device);
    wait_for_fences(device: vk::Device, count: u32, fences: *const vk::Fence, all: vk::Bool32, timeout: u64);
    fence_status(device: vk::Device, fence: vk::Fence);
    wait_semaphores(device: vk::Device, info: *const vk::SemaphoreWaitInfo<'_>, timeout: u64);
    semaphore_value(device: vk::Device, semaphore: vk::Semaphore, value: *mut u64);
    event_status(device: vk::Device, event: vk::Event);
    query_results(
        device: vk::Device, pool: vk::QueryPool, first: u32, count: u32, size: usize, data: *mut c_void,
        stride: vk::DeviceSize, flags: vk::QueryResultFlags
    );
    acquire(
        device: vk::Device, swapchain: vk::SwapchainKHR, timeout: u64, semaphore: vk::Semaphore, fence: vk::Fence,
        image: *mut u32
    );
    acquire2(device: vk::Device, info: *const vk::AcquireNextImageInfoKHR<'_>, image: *mut u32);
}
