//! Simulated devices.

use arbitrary::Arbitrary;
use ash::vk;
use sublet::sim::{Gpu, GpuBuilder, profiles};

use crate::choice::Choice;

/// The bytes of host memory that the memory of one device may take. Larger requests fail, as on a full device.
pub const MEMORY_LIMIT: u64 = 1 << 28;

/// Returns a builder of a device with one of the profiles.
#[must_use]
pub fn gpu(profile: Choice) -> GpuBuilder {
    Gpu::builder(profile.one(&profiles::ALL)).memory_limit(MEMORY_LIMIT)
}

/// Checks that the device has not reported a wrong call. Reaching [`MEMORY_LIMIT`] is allowed.
///
/// # Panics
/// If there is a report.
pub fn silent(gpu: &Gpu) {
    let mut messages = gpu.take_messages();
    messages.retain(|message| message.vuid != "SUBLET-memory-limit");
    assert!(messages.is_empty(), "the simulated device reports wrong use: {messages:#?}");
}

/// Checks that a program left nothing on the device, and that the device has reported no wrong call.
///
/// # Panics
/// If an object is left, or if there is a report.
pub fn finished(gpu: &Gpu) {
    silent(gpu);
    assert!(gpu.live().is_empty(), "{:?}", gpu.live());
}

/// The calls that allocators make.
pub const MEMORY_CALLS: &[&str] = &[
    "vkAllocateMemory",
    "vkMapMemory",
    "vkCreateBuffer",
    "vkCreateImage",
    "vkBindBufferMemory",
    "vkBindBufferMemory2",
    "vkBindImageMemory",
    "vkBindImageMemory2",
    "vkFlushMappedMemoryRanges",
];
const RESULTS: [vk::Result; 8] = [
    vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
    vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
    vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
    vk::Result::ERROR_OUT_OF_HOST_MEMORY,
    vk::Result::ERROR_OUT_OF_HOST_MEMORY,
    vk::Result::ERROR_UNKNOWN,
    vk::Result::ERROR_UNKNOWN,
    vk::Result::ERROR_DEVICE_LOST,
];

/// A failure of the driver.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Fault {
    /// The n-th of the next calls fails.
    Call { call: Choice, nth: Choice, result: Choice },
    /// A heap has this budget and usage, as a share of 256.
    Budget { heap: Choice, budget: u8, usage: u8 },
    /// No call fails from now on.
    Clear,
}

impl Fault {
    /// Makes one of these calls of the device fail, or changes a budget.
    pub fn inject(self, gpu: &Gpu, calls: &[&'static str]) {
        match self {
            Self::Call { call, nth, result } => match result.one(&RESULTS) {
                // A lost device runs nothing any more.
                vk::Result::ERROR_DEVICE_LOST => {
                    gpu.faults().lose_device();
                }
                result => {
                    gpu.faults().fail_nth(call.one(calls), nth.one(&[1, 2, 3, 5]), result);
                }
            },
            Self::Budget { heap, budget, usage } => {
                let Some(index) = heap.at(gpu.profile().heaps.len()) else { return };
                let share = |part: u8| gpu.profile().heaps[index].size / 256 * u64::from(part);
                gpu.faults().set_budget(u32::try_from(index).unwrap_or(0), share(budget), share(usage));
            }
            Self::Clear => gpu.faults().clear(),
        }
    }
}
