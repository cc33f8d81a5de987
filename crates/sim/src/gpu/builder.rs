//! The choices for a simulated GPU, and the creation of its instance and device.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::CString;
use std::sync::Arc;

use ash::vk;

use crate::driver::instance::HubInfo;
use crate::facts::arithmetic::index;
use crate::facts::extensions;
use crate::facts::extensions::NEWEST_MINOR;
use crate::facts::profiles::pool_policy::{DescriptorPoolPolicy, DescriptorQuirk};
use crate::facts::profiles::{DescriptorHeapLimits, DescriptorLimits, Profile};
use crate::gpu::Gpu;
use crate::objects::features::EnabledFeatures;
use crate::objects::state::{ALL_WORK, GpuState};
use crate::objects::store::HostMemoryLimit;

/// Makes a [`Gpu`] that differs from its profile.
///
/// ```
/// use ash::vk;
/// use sublet_sim::{Gpu, profiles::Profile};
/// let gpu = Gpu::builder(Profile::by_name("lavapipe").unwrap())
///     .api_version(vk::API_VERSION_1_0)
///     .extension("VK_KHR_bind_memory2")
///     .build();
/// assert_eq!(gpu.api_version(), vk::API_VERSION_1_0);
/// ```
#[derive(Debug, Clone)]
pub struct GpuBuilder {
    profile: &'static Profile,
    minor: Option<u32>,
    only: Option<Vec<String>>,
    without: Vec<String>,
    families: Vec<(vk::QueueFlags, u32)>,
    memory_limit: u64,
    driver: Option<(vk::DriverId, u32)>,
    descriptor_pools: Option<DescriptorPoolPolicy>,
    descriptor_quirks: DescriptorQuirk,
    descriptor_limits: Option<DescriptorLimits>,
    descriptor_heap: Option<DescriptorHeapLimits>,
    hazards: bool,
}

impl GpuBuilder {
    pub(crate) fn new(profile: &'static Profile) -> Self {
        Self {
            profile,
            minor: None,
            only: None,
            without: Vec::new(),
            driver: None,
            descriptor_pools: None,
            descriptor_quirks: DescriptorQuirk::empty(),
            descriptor_limits: None,
            descriptor_heap: None,
            hazards: false,
            families: vec![(ALL_WORK, 1)],
            memory_limit: u64::MAX,
        }
    }

    /// The version of Vulkan that instance and device report, 1.0 to 1.4; by default the profile's. Functions of later
    /// versions are offered only under the name of an extension that is enabled.
    pub fn api_version(mut self, version: u32) -> Self {
        self.minor = Some(vk::api_version_minor(version).min(NEWEST_MINOR));
        self
    }

    /// Enables this device extension and its feature. Without a call of this method the device has everything that the
    /// profile has; with one, only what is named.
    pub fn extension(mut self, name: &str) -> Self {
        self.only.get_or_insert_default().push(name.to_owned());
        self
    }

    /// Removes a device extension and its feature, also where the feature is core.
    pub fn without_extension(mut self, name: &str) -> Self {
        self.without.push(name.to_owned());
        self
    }

    /// How many queues the first family has; by default one. Each queue runs its submissions in order, and waits for
    /// another queue only where a semaphore says so.
    ///
    /// # Panics
    ///
    /// If `count` is 0.
    #[track_caller]
    pub fn queues(mut self, count: u32) -> Self {
        assert!(count > 0, "a GPU without queues");
        if let Some((_, queues)) = self.families.first_mut() {
            *queues = count;
        }
        self
    }

    /// Adds a family of queues behind the others, which can do what `flags` say. The first family can do everything.
    /// [`Gpu::queue_at`] counts the queues of all families. Between families, resources that are not shared change
    /// hands by a release and an acquire; where [`hazards`](Self::hazards) are looked for, so is what is missing there.
    ///
    /// # Panics
    ///
    /// If `count` is 0.
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Gpu, profiles::Profile};
    /// let gpu = Gpu::builder(Profile::by_name("lavapipe").unwrap()).family(vk::QueueFlags::TRANSFER, 2).build();
    /// let families =
    ///     unsafe { gpu.instance().get_physical_device_queue_family_properties(gpu.physical_device()) };
    /// assert_eq!(families[1].queue_count, 2);
    /// assert!(!families[1].queue_flags.contains(vk::QueueFlags::COMPUTE));
    /// assert_eq!(gpu.queue_at(1), unsafe { gpu.device().get_device_queue(1, 0) });
    /// ```
    #[track_caller]
    pub fn family(mut self, flags: vk::QueueFlags, count: u32) -> Self {
        assert!(count > 0, "a family without queues");
        self.families.push((flags, count));
        self
    }

    /// The most host memory that device memory may take, in bytes; by default there is no limit. A memory takes none
    /// until it is mapped, or a command or a test reads or writes it. Then it takes its size, and twice that if it is
    /// visible to the host and not coherent. Beyond the limit `vkMapMemory` and `vkFlushMappedMemoryRanges` fail with
    /// `VK_ERROR_OUT_OF_HOST_MEMORY`, and commands leave the memory as it is; the first time is reported as
    /// `SUBLET-memory-limit`.
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Gpu, host_memory, profiles::Profile};
    /// // To run what comes from elsewhere, such as a recording: half of what the machine has.
    /// let limit = host_memory().map_or(1 << 30, |bytes| bytes / 2);
    /// let builder = Gpu::builder(Profile::by_name("lavapipe").unwrap());
    /// builder.clone().memory_limit(limit).build().assert_silent();
    /// // As small as a test wants it.
    /// let gpu = builder.memory_limit(100).build();
    /// let info = vk::MemoryAllocateInfo::default().allocation_size(101);
    /// let memory = unsafe { gpu.device().allocate_memory(&info, None) }.unwrap();
    /// let mapped = unsafe { gpu.device().map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()) };
    /// assert_eq!(mapped, Err(vk::Result::ERROR_OUT_OF_HOST_MEMORY));
    /// assert_eq!(gpu.take_messages()[0].vuid, "SUBLET-memory-limit");
    /// # unsafe { gpu.device().free_memory(memory, None) };
    /// ```
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// `VkPhysicalDeviceDriverProperties::driverID`, and `VkPhysicalDeviceProperties::driverVersion` in the vendor's
    /// own encoding. By default the profile's.
    pub fn driver(mut self, id: vk::DriverId, version: u32) -> Self {
        self.driver = Some((id, version));
        self
    }

    /// How descriptor pools refuse. By default as the profile's driver does.
    pub fn descriptor_pools(mut self, policy: DescriptorPoolPolicy) -> Self {
        self.descriptor_pools = Some(policy);
        self
    }

    /// The faults of real drivers that the descriptor pools have. By default they have none.
    pub fn descriptor_quirks(mut self, quirks: DescriptorQuirk) -> Self {
        self.descriptor_quirks = quirks;
        self
    }

    /// The limits that touch descriptors. By default the profile's.
    pub fn descriptor_limits(mut self, limits: DescriptorLimits) -> Self {
        self.descriptor_limits = Some(limits);
        self
    }

    /// Makes the GPU look for hazards, as the validation layers' synchronization validation does: accesses
    /// that no barrier, event or semaphore orders. By default it does not, because every barrier and access takes
    /// longer then. The documentation of this crate lists the accesses.
    ///
    /// # Complexity
    ///
    /// A command takes time for each interval of bytes or subresources that it touches; a barrier, for each interval
    /// that submissions touched and the host has not waited for.
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Gpu, profiles::Profile};
    /// let gpu = Gpu::builder(Profile::by_name("lavapipe").unwrap()).hazards(true).build();
    /// let device = gpu.device();
    /// # let info = vk::BufferCreateInfo::default().size(64).usage(vk::BufferUsageFlags::TRANSFER_DST);
    /// # let buffer = unsafe { device.create_buffer(&info, None) }.unwrap();
    /// # let needs = unsafe { device.get_buffer_memory_requirements(buffer) };
    /// # let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size);
    /// # let memory = unsafe { device.allocate_memory(&info, None) }.unwrap();
    /// # unsafe { device.bind_buffer_memory(buffer, memory, 0) }.unwrap();
    /// # let pool = unsafe { device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None) }.unwrap();
    /// # let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
    /// # let commands = unsafe { device.allocate_command_buffers(&info) }.unwrap();
    /// # unsafe { device.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default()) }.unwrap();
    /// unsafe { device.cmd_fill_buffer(commands[0], buffer, 0, 64, 1) };
    /// unsafe { device.cmd_fill_buffer(commands[0], buffer, 32, 32, 2) };
    /// # unsafe { device.end_command_buffer(commands[0]) }.unwrap();
    /// # let work = [vk::SubmitInfo::default().command_buffers(&commands)];
    /// unsafe { device.queue_submit(gpu.queue(), &work, vk::Fence::null()) }.unwrap();
    /// let found = gpu.take_messages();
    /// assert_eq!(found[0].vuid, "SYNC-HAZARD-WRITE-AFTER-WRITE");
    /// assert!(found[0].text.contains("bytes 32 to 63"), "{}", found[0]);
    /// # unsafe { device.destroy_command_pool(pool, None) };
    /// # unsafe { device.destroy_buffer(buffer, None) };
    /// # unsafe { device.free_memory(memory, None) };
    /// # assert!(gpu.finish().is_empty());
    /// ```
    pub fn hazards(mut self, yes: bool) -> Self {
        self.hazards = yes;
        self
    }

    /// Gives the GPU `VK_EXT_descriptor_heap`, with a driver's sizes and reservations, whatever its profile says.
    ///
    /// ```
    /// use sublet_sim::{DescriptorHeapLimits, Gpu, profiles::Profile};
    /// let gpu = Gpu::builder(Profile::by_name("nvidia-h200").unwrap())
    ///     .descriptor_heap(DescriptorHeapLimits::NVIDIA)
    ///     .build();
    /// assert!(gpu.extensions().iter().any(|name| name == "VK_EXT_descriptor_heap"));
    /// ```
    pub fn descriptor_heap(mut self, limits: DescriptorHeapLimits) -> Self {
        self.descriptor_heap = Some(limits);
        self
    }

    /// Makes the GPU.
    ///
    /// # Panics
    ///
    /// If the profile does not have an extension that was named.
    #[track_caller]
    pub fn build(self) -> Gpu {
        let mut offered = extensions::device(self.profile);
        let heaps = "VK_EXT_descriptor_heap".to_owned();
        if self.descriptor_heap.is_some() && !offered.contains(&heaps) {
            offered.push(heaps);
        }
        for name in self.only.iter().flatten().chain(&self.without) {
            assert!(offered.contains(name), "the profile {} has no extension {name}", self.profile.name);
        }
        offered.retain(|name| !self.without.contains(name));
        let minor = self.minor.unwrap_or_else(|| vk::api_version_minor(self.profile.api_version));
        let enabled = self.only.unwrap_or_else(|| offered.clone());
        let mut gpu_state = GpuState::new(self.profile, minor, minor, offered);
        gpu_state.families = self.families;
        gpu_state.hazards = self.hazards;
        gpu_state.host_limit = Arc::new(HostMemoryLimit::new(self.memory_limit));
        gpu_state.driver = self.driver.unwrap_or(gpu_state.driver);
        gpu_state.descriptors.policy = self.descriptor_pools.unwrap_or(gpu_state.descriptors.policy);
        gpu_state.descriptor_heap = self.descriptor_heap.or(gpu_state.descriptor_heap);
        gpu_state.descriptors.quirks = self.descriptor_quirks;
        gpu_state.descriptors.limits = self.descriptor_limits.unwrap_or(gpu_state.descriptors.limits);
        Gpu::with(Arc::new(gpu_state), &enabled)
    }
}

pub(crate) fn create_instance(entry: &ash::Entry, gpu_state: &Arc<GpuState>) -> ash::Instance {
    let application =
        vk::ApplicationInfo::default().api_version(vk::make_api_version(0, 1, gpu_state.instance_minor, 0));
    let names: Vec<_> = extensions::INSTANCE.iter().filter_map(|name| CString::new(*name).ok()).collect();
    let names: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
    let mut chosen = HubInfo::new(gpu_state);
    let info = vk::InstanceCreateInfo::default()
        .application_info(&application)
        .enabled_extension_names(&names)
        .push_next(&mut chosen);
    // SAFETY: `info` is complete, and everything that it points to is live.
    expect(unsafe { entry.create_instance(&info, None) }, "vkCreateInstance")
}

pub(crate) fn create_device(
    instance: &ash::Instance,
    physical_device: vk::PhysicalDevice,
    gpu_state: &GpuState,
    enabled: &[String],
) -> ash::Device {
    let names: Vec<_> = enabled.iter().filter_map(|name| CString::new(name.as_str()).ok()).collect();
    let names: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
    let mut features = EnabledFeatures::supported(gpu_state);
    features.retain(|extension| enabled.iter().any(|name| name == extension));
    let priorities: Vec<_> = gpu_state.families.iter().map(|(_, count)| vec![1.0; index(*count)]).collect();
    let each = (0..).zip(&priorities);
    let queues: Vec<_> = each
        .map(|(family, own)| {
            vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(own)
        })
        .collect();
    let mut eleven = vk::PhysicalDeviceVulkan11Features::default();
    let mut twelve = vk::PhysicalDeviceVulkan12Features::default();
    let mut thirteen = vk::PhysicalDeviceVulkan13Features::default();
    let mut priorities = vk::PhysicalDeviceMemoryPriorityFeaturesEXT::default();
    let mut pageable = vk::PhysicalDevicePageableDeviceLocalMemoryFeaturesEXT::default();
    let mut coherent = vk::PhysicalDeviceCoherentMemoryFeaturesAMD::default();
    let mut mutable = vk::PhysicalDeviceMutableDescriptorTypeFeaturesEXT::default();
    let mut descriptor_buffers = vk::PhysicalDeviceDescriptorBufferFeaturesEXT::default();
    let mut heaps = crate::facts::ffi::PhysicalDeviceDescriptorHeapFeaturesEXT::default();
    let mut plain = vk::PhysicalDeviceFeatures2::default();
    let info = vk::DeviceCreateInfo::default()
        .queue_create_infos(&queues)
        .enabled_extension_names(&names)
        .push_next(&mut eleven)
        .push_next(&mut twelve)
        .push_next(&mut thirteen)
        .push_next(&mut priorities)
        .push_next(&mut pageable)
        .push_next(&mut coherent)
        .push_next(&mut descriptor_buffers)
        .push_next(&mut heaps)
        .push_next(&mut mutable)
        .push_next(&mut plain);
    // SAFETY: the chain was made just now, of structures that are mutable here.
    unsafe { features.write(info.p_next.cast_mut()) };
    // SAFETY: `physical_device` is the instance's; `info` is complete, and everything that it points to is live.
    expect(unsafe { instance.create_device(physical_device, &info, None) }, "vkCreateDevice")
}

/// The driver's own result, which must be a success.
#[track_caller]
pub(crate) fn expect<T>(result: Result<T, vk::Result>, call: &str) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("the simulated device refuses its own {call}: {error}"),
    }
}
