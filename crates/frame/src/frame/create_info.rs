//! How frames are to be made.
#![forbid(unsafe_code)]

use std::sync::Arc;

use ash::vk;
use sublet::Allocator;
use sublet::descriptor::{BinderCreateInfo, DescriptorDevice, TransientSetsCreateInfo};
use sublet::upload::UploadArenaCreateInfo;

use super::UnwrittenObserver;
use crate::device::Features;
use crate::track::Batch;

/// A queue that lists are submitted to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QueueInfo {
    /// The queue.
    pub queue: vk::Queue,
    /// Its family.
    pub family: u32,
}

/// How [`Frames`](super::Frames) are to be made.
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
    /// What the device was made from.
    pub physical_device: vk::PhysicalDevice,
    /// The Vulkan version that the program uses, as in `VkApplicationInfo::apiVersion`, and no more than the device
    /// has.
    pub api_version: u32,
    /// What is enabled on the device.
    pub features: Features,
    /// Where memory comes from.
    pub allocator: &'a Arc<Allocator>,
    /// The queues: 16 at most, of any families.
    pub queues: &'a [QueueInfo],
    /// How many frames the device may be behind, up to [`MOST_IN_FLIGHT`](super::Frames::MOST_IN_FLIGHT).
    /// [`begin`](super::Frames::begin) waits for the one before those.
    pub frames_in_flight: usize,
    /// How upload pages are made. The lists of a family of queues share them, whatever `share_pages` says, and a
    /// `memory_limit` is one for all of them. `idle_collects` is also when command pools and other things go that lists
    /// no longer need.
    pub uploads: UploadArenaCreateInfo<'static>,
    /// What descriptors are bound with; without it lists bind none.
    pub descriptors: Option<&'a DescriptorDevice>,
    /// How the binders of lists are made.
    pub binder: BinderCreateInfo<'static>,
    /// Called with each batch of barriers once it is recorded, by the thread that records it: to show them. Those in
    /// front of lists are shown when the driver has the submission.
    ///
    /// No lock is held: it may make, use and drop all that is of the frames. If it panics, the list that was being
    /// recorded cannot be submitted any more; what was submitted is.
    pub on_barriers: Option<BarrierObserver>,
    /// For debugging: called, before lists are submitted, with each buffer and image that they read first and of which
    /// nothing was written before, once for each. Not of those that the host may map or that were imported; attachments
    /// that are loaded are not looked at. Other work takes longer meanwhile.
    ///
    /// No lock is held. If it panics, the lists are not submitted.
    pub on_unwritten_read: Option<UnwrittenObserver>,
}

/// What is called with barriers.
pub type BarrierObserver = Arc<dyn Fn(&Batch) + Send + Sync>;

impl<'a> FramesCreateInfo<'a> {
    /// Two frames in flight, on a device with nothing enabled.
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
            on_barriers: None,
            on_unwritten_read: None,
        }
    }
}
