//! Fences and semaphores.
//!
//! No thread runs in the background. The thread that submits, signals or waits does the work that a fence or semaphore
//! waits for, see `queue`. A thread that waits for the work of another one sleeps.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::time::Duration;

use ash::vk;
use parking_lot::MutexGuard;

use crate::execution::queue;
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::objects::entry::{checked, entries, on_device};
use crate::objects::host;
use crate::objects::state::{DeviceObject, DeviceState, Label};
use crate::objects::sync::{Fence, Semaphore, SemaphoreKind};

entries! {
    Device result vk::PFN_vkCreateFence = create_fence: core 0 "vkCreateFence";
    Device void vk::PFN_vkDestroyFence = destroy_fence: core 0 "vkDestroyFence";
    Device result vk::PFN_vkResetFences = reset_fences: core 0 "vkResetFences";
    Device result vk::PFN_vkGetFenceStatus = fence_status: core 0 "vkGetFenceStatus";
    Device result vk::PFN_vkWaitForFences = wait_for_fences: core 0 "vkWaitForFences";
    Device result vk::PFN_vkCreateSemaphore = create_semaphore: core 0 "vkCreateSemaphore";
    Device void vk::PFN_vkDestroySemaphore = destroy_semaphore: core 0 "vkDestroySemaphore";
    Device result vk::PFN_vkGetSemaphoreCounterValue = counter_value:
        core 2 "vkGetSemaphoreCounterValue", ext "VK_KHR_timeline_semaphore" "vkGetSemaphoreCounterValueKHR";
    Device result vk::PFN_vkWaitSemaphores = wait_semaphores:
        core 2 "vkWaitSemaphores", ext "VK_KHR_timeline_semaphore" "vkWaitSemaphoresKHR";
    Device result vk::PFN_vkSignalSemaphore = signal_semaphore:
        core 2 "vkSignalSemaphore", ext "VK_KHR_timeline_semaphore" "vkSignalSemaphoreKHR";
}

/// How long a wait without a timeout waits for another thread, before it counts as a deadlock.
#[cfg(not(test))]
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
#[cfg(test)]
pub(crate) const PATIENCE: Duration = Duration::from_millis(200);

unsafe extern "system" fn create_fence(
    device: vk::Device,
    p_info: *const vk::FenceCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    p_fence: *mut vk::Fence,
) -> vk::Result {
    checked(device, "vkCreateFence", |device| {
        // SAFETY: VUID-vkCreateFence-pCreateInfo-parameter.
        let info = unsafe { chain::given(p_info, "VUID-vkCreateFence-pCreateInfo-parameter") }?;
        let handle = device.gpu_state.handle();
        let fence = Fence { signaled: info.flags.contains(vk::FenceCreateFlags::SIGNALED), pending: 0 };
        device.state.lock().sync.fences.insert(handle, fence);
        // SAFETY: VUID-vkCreateFence-pFence-parameter.
        unsafe { chain::output(p_fence, handle) };
        Ok(vk::Result::SUCCESS)
    })
}

unsafe extern "system" fn destroy_fence(
    device: vk::Device,
    fence: vk::Fence,
    _: *const vk::AllocationCallbacks<'_>,
) {
    on_device(device, "vkDestroyFence", |device| {
        let rule = "VUID-vkDestroyFence-fence-parameter";
        let found = host::forget(device, fence, rule, |state, _| state.sync.fences.remove(&fence));
        if let Some((name, Fence { pending: 1.., .. })) = found {
            let text = format!("{name} is destroyed, and a submission is still to signal it");
            device.report("VUID-vkDestroyFence-fence-01120", text);
        }
    });
}

/// The fences of an array, all of which must exist.
fn known(
    device: &DeviceObject,
    state: &DeviceState,
    fences: &[vk::Fence],
    rule: &'static str,
) -> Result<(), Broken> {
    fences
        .iter()
        .try_for_each(|fence| state.known(device, *fence, state.sync.fences.get(fence), rule).map(drop))
}

unsafe extern "system" fn reset_fences(
    device: vk::Device,
    count: u32,
    p_fences: *const vk::Fence,
) -> vk::Result {
    checked(device, "vkResetFences", |device| {
        // SAFETY: VUID-vkResetFences-pFences-parameter.
        let fences = unsafe { chain::array(p_fences, count) };
        let mut state = device.state.lock();
        known(device, &state, fences, "VUID-vkResetFences-pFences-parameter")?;
        for fence in fences {
            let name = state.name(*fence);
            let Some(found) = state.sync.fences.get_mut(fence) else {
                continue;
            };
            refuse_if!(found.pending > 0 => "VUID-vkResetFences-pFences-01123",
                "{name} is reset, and a submission is still to signal it");
            found.signaled = false;
        }
        Ok(vk::Result::SUCCESS)
    })
}

unsafe extern "system" fn fence_status(device: vk::Device, fence: vk::Fence) -> vk::Result {
    checked(device, "vkGetFenceStatus", |device| {
        let mut state = device.state.lock();
        let found = state.sync.fences.get(&fence);
        let found = state.known(device, fence, found, "VUID-vkGetFenceStatus-fence-parameter")?;
        let signaled = found.signaled;
        if let Some(judge) = state.hazards.as_deref_mut().filter(|_| signaled) {
            judge.host_saw_fence(fence);
        }
        Ok(if signaled { vk::Result::SUCCESS } else { vk::Result::NOT_READY })
    })
}

unsafe extern "system" fn wait_for_fences(
    device: vk::Device,
    count: u32,
    p_fences: *const vk::Fence,
    all: vk::Bool32,
    timeout: u64,
) -> vk::Result {
    checked(device, "vkWaitForFences", |device| {
        // SAFETY: VUID-vkWaitForFences-pFences-parameter.
        let fences = unsafe { chain::array(p_fences, count) };
        let state = device.state.lock();
        known(device, &state, fences, "VUID-vkWaitForFences-pFences-parameter")?;
        refuse_if!(fences.is_empty() => "VUID-vkWaitForFences-fenceCount-arraylength", "fenceCount is 0");
        let of = |state: &DeviceState, what: fn(&Fence) -> bool| {
            let mut each = fences.iter().map(|fence| state.sync.fences.get(fence).is_none_or(what));
            if all == vk::TRUE { each.all(|yes| yes) } else { each.any(|yes| yes) }
        };
        let done = |state: &DeviceState| of(state, |fence| fence.signaled);
        // True if submitted work is going to signal enough fences: a fence that no submission has stays unsignaled.
        let hopeful = |state: &DeviceState| of(state, |fence| fence.signaled || fence.pending > 0);
        let names: Vec<_> = fences.iter().map(|&fence| state.name(fence)).collect();
        let names = names.join(", ");
        let rule = "SUBLET-vkWaitForFences-never-signaled";
        let (mut state, result) = wait(device, state, timeout, &names, rule, done, hopeful);
        let DeviceState { hazards, sync, .. } = &mut *state;
        if let Some(judge) = hazards.as_deref_mut().filter(|_| result == vk::Result::SUCCESS) {
            let signaled = |fence: &&vk::Fence| sync.fences.get(fence).is_some_and(|fence| fence.signaled);
            fences.iter().filter(signaled).for_each(|fence| judge.host_saw_fence(*fence));
        }
        Ok(result)
    })
}

/// Waits until `done`, or for `timeout` nanoseconds. It runs what is submitted, held back or not, unless `timeout` is
/// 0.
///
/// A wait without a timeout that nothing is going to end is reported as `rule`, and returns `TIMEOUT` instead of
/// waiting for ever: at once if it is not `hopeful`, else after [`PATIENCE`].
///
/// When it returns, the device is locked again.
fn wait<'a>(
    device: &'a DeviceObject,
    state: MutexGuard<'a, DeviceState>,
    timeout: u64,
    names: &str,
    rule: &'static str,
    done: impl Fn(&DeviceState) -> bool,
    hopeful: impl Fn(&DeviceState) -> bool,
) -> (MutexGuard<'a, DeviceState>, vk::Result) {
    if done(&state) {
        return (state, vk::Result::SUCCESS);
    }
    if timeout == 0 {
        return (state, vk::Result::TIMEOUT);
    }
    drop(state);
    let (state, ended) = queue::run_until(device, 0, timeout, done, hopeful);
    let result = match ended {
        Ok(()) => vk::Result::SUCCESS,
        Err(queue::Stuck::InTime) => vk::Result::TIMEOUT,
        Err(queue::Stuck::Lost) => vk::Result::ERROR_DEVICE_LOST,
        Err(queue::Stuck::ForEver) => {
            let text = format!("{names}: waited for without a timeout, and nothing is going to signal it");
            device.report(rule, text);
            vk::Result::TIMEOUT
        }
    };
    (state, result)
}

unsafe extern "system" fn create_semaphore(
    device: vk::Device,
    p_info: *const vk::SemaphoreCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    p_semaphore: *mut vk::Semaphore,
) -> vk::Result {
    checked(device, "vkCreateSemaphore", |device| {
        // SAFETY: VUID-vkCreateSemaphore-pCreateInfo-parameter.
        let info = unsafe { chain::given(p_info, "VUID-vkCreateSemaphore-pCreateInfo-parameter") }?;
        // SAFETY: VUID-VkSemaphoreCreateInfo-pNext-pNext.
        let typed = unsafe { chain::find::<vk::SemaphoreTypeCreateInfo<'_>>(info.p_next) };
        let kind = match typed {
            Some(typed) if typed.semaphore_type == vk::SemaphoreType::TIMELINE => {
                refuse_if!(!device.features.timeline_semaphore
                    => "VUID-VkSemaphoreTypeCreateInfo-timelineSemaphore-03252",
                    "the feature timelineSemaphore is not enabled");
                SemaphoreKind::Timeline { value: typed.initial_value, scheduled: typed.initial_value }
            }
            Some(typed) if typed.initial_value != 0 => {
                let text = format!("a binary semaphore begins with the value {}", typed.initial_value);
                return Err(("VUID-VkSemaphoreTypeCreateInfo-semaphoreType-03279", text));
            }
            _ => SemaphoreKind::Binary { signaled: false },
        };
        let handle = device.gpu_state.handle();
        device.state.lock().sync.semaphores.insert(handle, Semaphore { kind, signaler: None, pending: 0 });
        // SAFETY: VUID-vkCreateSemaphore-pSemaphore-parameter.
        unsafe { chain::output(p_semaphore, handle) };
        Ok(vk::Result::SUCCESS)
    })
}

unsafe extern "system" fn destroy_semaphore(
    device: vk::Device,
    semaphore: vk::Semaphore,
    _: *const vk::AllocationCallbacks<'_>,
) {
    on_device(device, "vkDestroySemaphore", |device| {
        let rule = "VUID-vkDestroySemaphore-semaphore-parameter";
        let remove = |state: &mut DeviceState, _: &Label| state.sync.semaphores.remove(&semaphore);
        let found = host::forget(device, semaphore, rule, remove);
        if let Some((name, Semaphore { pending: 1.., .. })) = found {
            let text = format!("{name} is destroyed, and a submission still names it");
            device.report("VUID-vkDestroySemaphore-semaphore-05149", text);
        }
    });
}

/// The value of a timeline semaphore; the rules are of a handle that has no semaphore, and of a binary one.
fn timeline(
    device: &DeviceObject,
    state: &DeviceState,
    semaphore: vk::Semaphore,
    [unknown, binary]: [&'static str; 2],
) -> Result<u64, Broken> {
    state.known(device, semaphore, state.sync.semaphores.get(&semaphore), unknown)?;
    state.sync.timeline(semaphore).ok_or_else(|| (binary, format!("{} is binary", state.name(semaphore))))
}

unsafe extern "system" fn counter_value(
    device: vk::Device,
    semaphore: vk::Semaphore,
    p_value: *mut u64,
) -> vk::Result {
    checked(device, "vkGetSemaphoreCounterValue", |device| {
        let rules = [
            "VUID-vkGetSemaphoreCounterValue-semaphore-parameter",
            "VUID-vkGetSemaphoreCounterValue-semaphore-03255",
        ];
        let mut state = device.state.lock();
        let value = timeline(device, &state, semaphore, rules)?;
        if let Some(judge) = &mut state.hazards {
            judge.host_saw_value(semaphore, value);
        }
        // SAFETY: VUID-vkGetSemaphoreCounterValue-pValue-parameter.
        unsafe { chain::output(p_value, value) };
        Ok(vk::Result::SUCCESS)
    })
}

unsafe extern "system" fn wait_semaphores(
    device: vk::Device,
    p_info: *const vk::SemaphoreWaitInfo<'_>,
    timeout: u64,
) -> vk::Result {
    checked(device, "vkWaitSemaphores", |device| {
        // SAFETY: VUID-vkWaitSemaphores-pWaitInfo-parameter.
        let info = unsafe { chain::given(p_info, "VUID-vkWaitSemaphores-pWaitInfo-parameter") }?;
        // SAFETY: VUID-VkSemaphoreWaitInfo-pSemaphores-parameter.
        let semaphores = unsafe { chain::array(info.p_semaphores, info.semaphore_count) };
        // SAFETY: VUID-VkSemaphoreWaitInfo-pValues-parameter.
        let values = unsafe { chain::array(info.p_values, info.semaphore_count) };
        let state = device.state.lock();
        let rules =
            ["VUID-VkSemaphoreWaitInfo-pSemaphores-parameter", "VUID-VkSemaphoreWaitInfo-pSemaphores-03256"];
        for &semaphore in semaphores {
            timeline(device, &state, semaphore, rules)?;
        }
        let any = info.flags.contains(vk::SemaphoreWaitFlags::ANY);
        let done = |state: &DeviceState| {
            let mut each = semaphores.iter().zip(values).map(|(&semaphore, &value)| {
                state.sync.timeline(semaphore).is_none_or(|reached| reached >= value)
            });
            if any { each.any(|yes| yes) } else { each.all(|yes| yes) }
        };
        let names: Vec<_> = semaphores.iter().map(|&semaphore| state.name(semaphore)).collect();
        let names = names.join(", ");
        // Another thread may signal at any time, so there is always hope.
        let rule = "SUBLET-vkWaitSemaphores-never-signaled";
        let (mut state, result) = wait(device, state, timeout, &names, rule, done, |_| true);
        let DeviceState { hazards, sync, .. } = &mut *state;
        if let Some(judge) = hazards.as_deref_mut().filter(|_| result == vk::Result::SUCCESS) {
            for (&semaphore, &value) in semaphores.iter().zip(values) {
                if sync.timeline(semaphore).is_some_and(|reached| reached >= value) {
                    judge.host_saw_value(semaphore, value);
                }
            }
        }
        Ok(result)
    })
}

unsafe extern "system" fn signal_semaphore(
    device: vk::Device,
    p_info: *const vk::SemaphoreSignalInfo<'_>,
) -> vk::Result {
    checked(device, "vkSignalSemaphore", |device| {
        // SAFETY: VUID-vkSignalSemaphore-pSignalInfo-parameter.
        let info = unsafe { chain::given(p_info, "VUID-vkSignalSemaphore-pSignalInfo-parameter") }?;
        let mut state = device.state.lock();
        let name = state.name(info.semaphore);
        let rules =
            ["VUID-VkSemaphoreSignalInfo-semaphore-parameter", "VUID-VkSemaphoreSignalInfo-semaphore-03257"];
        let value = timeline(device, &state, info.semaphore, rules)?;
        refuse_if!(info.value <= value => "VUID-VkSemaphoreSignalInfo-value-03258",
            "{name} is signaled with {}, and its value is {value}", info.value);
        if let Some(next) = state.next_signal(info.semaphore) {
            refuse_if!(info.value >= next => "VUID-VkSemaphoreSignalInfo-value-03259",
                "{name} is signaled with {}, and a submission is to signal it with {next}", info.value);
        }
        if let Some(found) = state.sync.semaphores.get_mut(&info.semaphore) {
            if let SemaphoreKind::Timeline { value, scheduled } = &mut found.kind {
                *value = info.value;
                *scheduled = info.value.max(*scheduled);
            }
        }
        drop(state);
        device.changed.notify_all();
        queue::run(device, queue::HeldSubmissions::Back);
        Ok(vk::Result::SUCCESS)
    })
}
