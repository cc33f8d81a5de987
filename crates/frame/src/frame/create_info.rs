//! Creation parameters of frames.

use std::sync::Arc;

use ash::vk;
use sublet::upload::UploadArenaCreateInfo;
use sublet::{Allocator, MaintainInfo};
use sublet_descriptors::{BinderCreateInfo, DescriptorDevice, TransientSetsCreateInfo};

use super::UnwrittenObserver;
use crate::device::Features;
use crate::track::BarrierBatch;

/// A queue that lists are submitted to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QueueInfo {
    /// The queue.
    pub queue: vk::Queue,
    /// The index of its family.
    pub family: u32,
}

/// Creation parameters of [`Frames`](super::Frames).
///
/// ```
/// # let gpu = sublet::sim::Gpu::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
/// # let allocator = unsafe { sublet::Allocator::new(&sublet::AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// # let allocator = std::sync::Arc::new(allocator);
/// use sublet_frame::{Features, FramesCreateInfo, QueueInfo};
///
/// let queues = [QueueInfo { queue: gpu.queue(), family: gpu.queue_family_index() }];
/// let info = FramesCreateInfo {
///     features: Features { synchronization2: true, timeline_semaphore: true, ..Features::default() },
///     ..FramesCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device(), gpu.api_version(), &allocator, &queues)
/// };
/// assert_eq!(info.frames_in_flight, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct FramesCreateInfo<'a> {
    /// The instance.
    pub instance: &'a ash::Instance,
    /// The device.
    pub device: &'a ash::Device,
    /// The physical device of `device`.
    pub physical_device: vk::PhysicalDevice,
    /// The Vulkan version that the program uses, as in `VkApplicationInfo::apiVersion`, and at most that of the device.
    pub api_version: u32,
    /// The features that are enabled on the device.
    pub features: Features,
    /// The source of memory.
    pub allocator: &'a Arc<Allocator>,
    /// The queues: 1 to 16, of any families.
    pub queues: &'a [QueueInfo],
    /// Number of frames in flight, up to [`MOST_IN_FLIGHT`](super::Frames::MOST_IN_FLIGHT).
    /// [`begin`](super::Frames::begin) waits for the oldest of them.
    pub frames_in_flight: usize,
    /// Parameters of upload pages. The lists of a queue family share pages regardless of `share_pages`, and
    /// `memory_limit` applies to all of them together. `idle_collects` also applies to command pools and other objects
    /// of lists.
    pub uploads: UploadArenaCreateInfo<'static>,
    /// The descriptor device. Without it, lists cannot bind descriptors.
    pub descriptors: Option<&'a DescriptorDevice>,
    /// Parameters of the lists' binders.
    pub binder: BinderCreateInfo<'static>,
    /// Parameters of the [`Allocator::maintain`] that ends each frame; `None` to leave it to the program.
    pub maintain: Option<MaintainInfo>,
    /// Observer of barriers. The recording thread calls it with each recorded batch. The submitting thread calls it
    /// with the preambles of lists, after the driver has accepted the submission.
    ///
    /// The caller holds no lock: the observer may create, use and drop objects of the frames. If it panics, the open
    /// list can no longer be submitted; an accepted submission is not affected.
    pub on_barriers: Option<BarrierObserver>,
    /// Debugging observer of unwritten reads. A submission first calls it once with each buffer and image that its
    /// lists read and that was never written. Host-mappable and imported resources and loaded attachments are not
    /// checked. Enabling it makes other work slower.
    ///
    /// The caller holds no lock. If the observer panics, the lists are not submitted.
    pub on_unwritten_read: Option<UnwrittenObserver>,
}

/// An observer of barriers.
pub type BarrierObserver = Arc<dyn Fn(&BarrierBatch) + Send + Sync>;

impl<'a> FramesCreateInfo<'a> {
    /// Returns the defaults: two frames in flight, no features enabled.
    #[must_use]
    pub fn new(
        instance: &'a ash::Instance,
        device: &'a ash::Device,
        physical_device: vk::PhysicalDevice,
        api_version: u32,
        allocator: &'a Arc<Allocator>,
        queues: &'a [QueueInfo],
    ) -> Self {
        let sets = TransientSetsCreateInfo { share_pools: true, ..TransientSetsCreateInfo::default() };
        Self {
            instance,
            device,
            physical_device,
            api_version,
            features: Features::default(),
            allocator,
            queues,
            frames_in_flight: 2,
            uploads: UploadArenaCreateInfo { share_pages: true, ..UploadArenaCreateInfo::default() },
            descriptors: None,
            binder: BinderCreateInfo { sets, ..BinderCreateInfo::default() },
            maintain: Some(MaintainInfo::default()),
            on_barriers: None,
            on_unwritten_read: None,
        }
    }
}
