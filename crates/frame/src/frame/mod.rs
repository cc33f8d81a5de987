//! Frames in flight: see [`Frames`].

mod create_info;
mod error;
mod frames;
mod statistics;
mod submit;
mod unwritten;

pub use self::create_info::{BarrierObserver, FramesCreateInfo, QueueInfo};
pub use self::error::{BeginError, CreateFramesError, OpenError, SubmitError};
pub use self::frames::Frames;
pub use self::statistics::FrameStatistics;
pub use self::submit::{SemaphorePoint, SubmitInfo};
pub(crate) use self::unwritten::Unwritten;
pub use self::unwritten::UnwrittenObserver;

/// Returns frames on a simulated GPU for documentation examples.
#[cfg(feature = "sim")]
#[expect(unsafe_code, reason = "calls Vulkan")]
pub(crate) fn doc_example() -> (&'static sublet::sim::Gpu, Frames) {
    let (gpu, allocator) = sublet::doc_example();
    let allocator = std::sync::Arc::new(allocator);
    let queues = [QueueInfo { queue: gpu.queue(), family: gpu.queue_family_index() }];
    let (instance, device) = (gpu.instance(), gpu.device());
    let physical = gpu.physical_device();
    let descriptors = sublet_descriptors::DescriptorDeviceCreateInfo::for_gpu(gpu);
    // SAFETY: the simulated device is never destroyed.
    let descriptors = unsafe { sublet_descriptors::DescriptorDevice::new(&descriptors) };
    let descriptors = descriptors.expect("the simulated driver has every function");
    let info = FramesCreateInfo {
        features: crate::Features::for_gpu(gpu),
        descriptors: Some(&descriptors),
        ..FramesCreateInfo::new(instance, device, physical, gpu.api_version(), &allocator, &queues)
    };
    // SAFETY: the simulated device is never destroyed, and all handles belong to it.
    let frames = unsafe { Frames::new(&info) };
    (gpu, frames.expect("the simulated driver returns no errors"))
}
