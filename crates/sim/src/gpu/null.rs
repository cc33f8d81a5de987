//! A GPU whose device does nothing.

use std::sync::Arc;

use ash::vk;

use crate::facts::extensions;
use crate::facts::profiles::Profile;
use crate::gpu::Gpu;
use crate::objects::state::GpuState;

/// A GPU whose device does nothing, to measure an allocator without a driver's cost. To test one, use [`Gpu`].
///
/// The objects are ash's own. Memory types, heaps and limits are the profile's. A memory is a number without bytes;
/// **what `vkMapMemory` returns points nowhere and must not be read or written**. Buffers and images need the size that
/// was asked for, with the profile's alignment, in any memory type. Descriptor pools never refuse, and their sets are
/// mere handles; descriptors in memory have the profile's sizes, and no bytes are written. Nothing is checked or
/// counted, and nothing leaks. Functions that have nothing to do with memory, such as those of queues, are the
/// simulated device's.
///
/// # Complexity
///
/// O(1) for each call of the device, without a lock.
///
/// ```
/// use ash::vk;
/// use sublet_sim::{NullGpu, profiles::Profile};
/// let gpu = NullGpu::new(Profile::by_name("lavapipe").unwrap());
/// let info = vk::BufferCreateInfo::default().size(1000).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
/// let buffer = unsafe { gpu.device().create_buffer(&info, None) }.unwrap();
/// let needs = unsafe { gpu.device().get_buffer_memory_requirements(buffer) };
/// assert!(needs.size >= 1000 && needs.size % needs.alignment == 0);
/// let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size);
/// let memory = unsafe { gpu.device().allocate_memory(&info, None) }.unwrap();
/// unsafe { gpu.device().bind_buffer_memory(buffer, memory, 0) }.unwrap();
/// unsafe { gpu.device().destroy_buffer(buffer, None) };
/// unsafe { gpu.device().free_memory(memory, None) };
/// ```
#[derive(Debug)]
pub struct NullGpu(Gpu);

impl NullGpu {
    /// A GPU with everything that the profile has. Never panics.
    pub fn new(profile: &'static Profile) -> Self {
        let minor = vk::api_version_minor(profile.api_version);
        let extensions = extensions::device(profile);
        let mut gpu_state = GpuState::new(profile, minor, minor, extensions.clone());
        gpu_state.null = true;
        Self(Gpu::with(Arc::new(gpu_state), &extensions))
    }

    /// Vulkan without an instance.
    pub fn entry(&self) -> &ash::Entry {
        self.0.entry()
    }

    /// The instance.
    pub fn instance(&self) -> &ash::Instance {
        self.0.instance()
    }

    /// The physical device.
    pub fn physical_device(&self) -> vk::PhysicalDevice {
        self.0.physical_device()
    }

    /// The device that does nothing.
    pub fn device(&self) -> &ash::Device {
        self.0.device()
    }

    /// The version of Vulkan that instance and device report.
    pub fn api_version(&self) -> u32 {
        self.0.api_version()
    }

    /// The GPU whose memory types this one has.
    pub fn profile(&self) -> &'static Profile {
        self.0.profile()
    }

    /// The device extensions that are enabled, sorted.
    pub fn extensions(&self) -> Vec<String> {
        self.0.extensions()
    }
}
