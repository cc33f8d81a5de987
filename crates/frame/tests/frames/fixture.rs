//! Frames on simulated GPUs.

use std::sync::Arc;

use ash::vk;
use sublet::{Allocator, AllocatorCreateInfo, sim};
use sublet_descriptors::{BindingModel, DescriptorDevice, DescriptorDeviceCreateInfo};
use sublet_frame::{Buffer, CreateFramesError, Features, Frames, FramesCreateInfo, Image, QueueInfo};

use crate::held::{End, Held, hold};
pub(crate) use crate::make::{auto, buffer, image, image_info};

/// With all features, without synchronization2, and also without timelines.
pub(crate) const PROFILES: [&str; 3] = ["lavapipe", "nvidia-gtx-1060", "imagination-powervr-gx6250"];

/// Ends when it goes out of scope: see [`End`].
pub(crate) type FrameFixture = Held<FrameParts>;

pub(crate) struct FrameParts {
    // Dropped in this order.
    pub(crate) frames: Option<Frames>,
    pub(crate) descriptors: DescriptorDevice,
    pub(crate) allocator: Arc<Allocator>,
    pub(crate) gpu: sim::Gpu,
}

/// The first queue of the second family. The queues below it support everything.
const COMPUTE: usize = 2;

/// Creates a GPU with this number of queues, with checks for hazards and ownership.
pub(crate) fn gpu(profile: &str, queues: u32) -> sim::Gpu {
    gpu_with_family(profile, queues, vk::QueueFlags::COMPUTE | vk::QueueFlags::TRANSFER)
}

fn gpu_with_family(profile: &str, queues: u32, flags: vk::QueueFlags) -> sim::Gpu {
    let first = queues.min(COMPUTE as u32);
    let builder = sim::Gpu::builder(sim::Profile::by_name(profile).unwrap()).queues(first).hazards(true);
    if first < queues { builder.family(flags, queues - first) } else { builder }.build()
}

/// Creates an allocator and a descriptor device.
pub(crate) fn parts(gpu: &sim::Gpu) -> (Arc<Allocator>, DescriptorDevice) {
    parts_with(gpu, BindingModel::Auto)
}

pub(crate) fn parts_with(gpu: &sim::Gpu, model: BindingModel) -> (Arc<Allocator>, DescriptorDevice) {
    // SAFETY, here and below: the tests drop what they make before the device.
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(gpu)) }.unwrap();
    let info = DescriptorDeviceCreateInfo { model, ..DescriptorDeviceCreateInfo::for_gpu(gpu) };
    let descriptors = unsafe { DescriptorDevice::new(&info) }.unwrap();
    (Arc::new(allocator), descriptors)
}

pub(crate) fn frames(
    gpu: &sim::Gpu,
    allocator: &Arc<Allocator>,
    descriptors: &DescriptorDevice,
    queues: usize,
) -> Result<Frames, CreateFramesError> {
    frames_with(gpu, allocator, descriptors, queues, |_| ())
}

/// Creates frames with changes to the create-info.
pub(crate) fn frames_with(
    gpu: &sim::Gpu,
    allocator: &Arc<Allocator>,
    descriptors: &DescriptorDevice,
    queues: usize,
    change: impl FnOnce(&mut FramesCreateInfo<'_>),
) -> Result<Frames, CreateFramesError> {
    let family = |at| gpu.queue_family_index() + u32::from(at >= COMPUTE);
    let queues: Vec<QueueInfo> =
        (0..queues).map(|at| QueueInfo { queue: gpu.queue_at(at), family: family(at) }).collect();
    let (instance, device, physical) = (gpu.instance(), gpu.device(), gpu.physical_device());
    let mut info = FramesCreateInfo {
        features: Features::for_gpu(gpu),
        descriptors: Some(descriptors),
        ..FramesCreateInfo::new(instance, device, physical, gpu.api_version(), allocator, &queues)
    };
    change(&mut info);
    // SAFETY: all handles belong to the simulated device.
    unsafe { Frames::new(&info) }
}

impl Held<FrameParts> {
    pub(crate) fn new(profile: &str, queues: u32) -> Self {
        Self::of(gpu(profile, queues), queues)
    }

    /// Creates the fixture with other flags of the second family.
    pub(crate) fn with_family(profile: &str, queues: u32, flags: vk::QueueFlags) -> Self {
        Self::of(gpu_with_family(profile, queues, flags), queues)
    }

    /// Creates the fixture with one queue, and descriptors in sets or buffers.
    pub(crate) fn with_model(profile: &str, model: BindingModel) -> Self {
        let gpu = gpu(profile, 1);
        let (allocator, descriptors) = parts_with(&gpu, model);
        let frames = frames(&gpu, &allocator, &descriptors, 1).unwrap();
        hold(FrameParts { frames: Some(frames), descriptors, allocator, gpu })
    }

    /// Creates a buffer with a device address.
    pub(crate) fn addressed(&mut self, size: u64) -> Buffer {
        let usage = vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST
            | vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        let info = vk::BufferCreateInfo::default().size(size).usage(usage);
        unsafe { self.frames().create_buffer(&info, &auto()) }.unwrap()
    }

    pub(crate) fn of(gpu: sim::Gpu, queues: u32) -> Self {
        let (allocator, descriptors) = parts(&gpu);
        let frames = frames(&gpu, &allocator, &descriptors, queues as usize).unwrap();
        hold(FrameParts { frames: Some(frames), descriptors, allocator, gpu })
    }

    pub(crate) fn frames(&mut self) -> &mut Frames {
        self.frames.as_mut().unwrap()
    }

    pub(crate) fn buffer(&mut self, size: u64) -> Buffer {
        buffer(self.frames(), size)
    }

    pub(crate) fn image(&mut self, info: &vk::ImageCreateInfo<'_>) -> Image {
        image(self.frames(), info)
    }
}

impl End for FrameParts {
    fn end(self) {
        let Self { frames, descriptors, allocator, gpu } = self;
        drop(frames);
        drop(descriptors);
        let leaks = Arc::try_unwrap(allocator).expect("the allocator is no longer shared").destroy();
        assert!(leaks.is_empty(), "{leaks:?}");
        let messages = gpu.finish();
        assert!(messages.is_empty(), "{messages:#?}");
    }
}
