//! Budgets of heaps: those that the program queries, and some that the layer queries.
#![expect(unsafe_code, reason = "the functions have the C ABI, and call the next layer")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;
use sublet::private::Operation;

use crate::chain;
use crate::device::WatchedDevice;
use crate::instance::WatchedInstance;
use crate::recording::WatchRecording;
use crate::table::InstanceFunctions;

/// The nanoseconds between two queries of the layer.
const INTERVAL: u64 = 100_000_000;

/// Queries budgets, but not often.
#[derive(Debug)]
pub(crate) struct BudgetSampler {
    query: vk::PFN_vkGetPhysicalDeviceMemoryProperties2,
    /// The time of the next query in nanoseconds since the recording began.
    next: AtomicU64,
}

impl BudgetSampler {
    pub(super) fn new(query: vk::PFN_vkGetPhysicalDeviceMemoryProperties2) -> Self {
        Self { query, next: AtomicU64::new(0) }
    }

    /// Returns true for one thread in each interval.
    fn is_due(&self, now: u64) -> bool {
        let due = self.next.load(Ordering::Relaxed);
        let then = now.saturating_add(INTERVAL);
        now >= due && self.next.compare_exchange(due, then, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl WatchedDevice {
    /// Records the budgets, if the driver reports them and enough time has passed.
    pub(super) fn sample_budget(&self) {
        let (Some(recording), Some(sampler)) = (&self.recording, &self.budget) else { return };
        if !sampler.is_due(recording.now()) {
            return;
        }
        let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
        let mut properties = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
        // SAFETY: V3: the device's driver supports the extension, and its instance the function.
        unsafe { (sampler.query)(self.physical, &mut properties) };
        let heaps = properties.memory_properties.memory_heap_count;
        record_budget(recording, heaps, &budget);
    }
}

fn record_budget(
    recording: &Arc<WatchRecording>,
    heaps: u32,
    budget: &vk::PhysicalDeviceMemoryBudgetPropertiesEXT<'_>,
) {
    recording.record(|access| {
        for (heap, (&most, &used)) in (0..heaps).zip(budget.heap_budget.iter().zip(&budget.heap_usage)) {
            access.put(Operation::Budget, &[heap.into(), most, used]);
        }
    });
}

/// Records what the driver answered to the program.
///
/// # Safety
/// V1: the next layer wrote the structure.
unsafe fn record_answer(
    physical: vk::PhysicalDevice,
    answer: *const vk::PhysicalDeviceMemoryProperties2<'_>,
) {
    // SAFETY: the caller's.
    let Some(answer) = (unsafe { answer.as_ref() }) else { return };
    // SAFETY: the caller's.
    let Some(budget) =
        (unsafe { chain::find::<vk::PhysicalDeviceMemoryBudgetPropertiesEXT<'_>>(answer.p_next) })
    else {
        return;
    };
    WatchedDevice::for_each(|device| {
        // Without a sampler, the driver does not know the structure.
        if let (Some(recording), Some(_), true) =
            (&device.recording, &device.budget, device.physical == physical)
        {
            record_budget(recording, answer.memory_properties.memory_heap_count, budget);
        }
    });
}

/// Calls a function of the next layer, and records its answer.
///
/// # Safety
/// V1 to V3 hold for the parameters.
unsafe fn query(
    physical: vk::PhysicalDevice,
    properties: *mut vk::PhysicalDeviceMemoryProperties2<'_>,
    of: impl FnOnce(&InstanceFunctions) -> Option<vk::PFN_vkGetPhysicalDeviceMemoryProperties2>,
) {
    // SAFETY: V2.
    let Some(instance) = (unsafe { WatchedInstance::of(physical) }) else { return };
    let Some(next) = of(&instance.functions) else { return };
    // SAFETY: V3, and the parameters are those of the program.
    unsafe { next(physical, properties) };
    // SAFETY: V1.
    unsafe { record_answer(physical, properties) };
}

pub(crate) unsafe extern "system" fn memory_properties2(
    physical: vk::PhysicalDevice,
    properties: *mut vk::PhysicalDeviceMemoryProperties2<'_>,
) {
    // SAFETY: V1 to V3.
    unsafe { query(physical, properties, |functions| functions.memory_properties2) };
}

pub(crate) unsafe extern "system" fn memory_properties2_khr(
    physical: vk::PhysicalDevice,
    properties: *mut vk::PhysicalDeviceMemoryProperties2<'_>,
) {
    // SAFETY: V1 to V3.
    unsafe { query(physical, properties, |functions| functions.memory_properties2_khr) };
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "system" fn nothing(
        _: vk::PhysicalDevice,
        _: *mut vk::PhysicalDeviceMemoryProperties2<'_>,
    ) {
    }

    #[test]
    fn budgets_are_sampled_once_in_an_interval() {
        let sampler = BudgetSampler::new(nothing);
        assert!(sampler.is_due(5) && !sampler.is_due(6));
        assert!(!sampler.is_due(INTERVAL) && sampler.is_due(INTERVAL + 5) && !sampler.is_due(INTERVAL + 6));
    }
}
