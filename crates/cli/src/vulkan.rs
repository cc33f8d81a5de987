//! Finds, describes and opens devices. No other file of this package calls Vulkan.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ffi::CStr;

use ash::{ext, khr, vk};
use sublet::sim::Gpu;
use sublet::sim::profiles::{MeasureError, Profile};
use sublet::trace::Header;
use sublet::{AllocationCreateInfo, Allocator, AllocatorCreateFlags, AllocatorCreateInfo, Tracking};

use crate::failure::CommandFailure;

/// The newest version that the command requests.
const WANTED: u32 = vk::API_VERSION_1_3;
/// Devices that are a layer over another API require this extension to be enabled.
const PORTABILITY: &CStr = c"VK_KHR_portability_subset";

/// An instance of the installed Vulkan.
pub(crate) struct Vulkan {
    /// Keeps the library of the functions loaded.
    _entry: ash::Entry,
    instance: ash::Instance,
    version: u32,
}

impl Vulkan {
    pub(crate) fn open() -> Result<Self, CommandFailure> {
        // SAFETY: loading the Vulkan loader runs its initialisers, which are trusted.
        let entry = unsafe { ash::Entry::load() }.map_err(CommandFailure::no_vulkan)?;
        // SAFETY: the library is loaded.
        let version = unsafe { entry.try_enumerate_instance_version() }.map_err(CommandFailure::no_vulkan)?;
        let version = version.unwrap_or(vk::API_VERSION_1_0).min(WANTED);
        // SAFETY: the library is loaded.
        let offered = unsafe { entry.enumerate_instance_extension_properties(None) }
            .map_err(CommandFailure::no_vulkan)?;
        let application = vk::ApplicationInfo::default().application_name(c"sublet").api_version(version);
        let mut extensions = Vec::new();
        let mut flags = vk::InstanceCreateFlags::empty();
        if has(&offered, khr::portability_enumeration::NAME) {
            // Devices on a layer over another API are listed only with this extension and flag.
            extensions.push(khr::portability_enumeration::NAME.as_ptr());
            flags |= vk::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR;
        }
        let info = vk::InstanceCreateInfo::default()
            .flags(flags)
            .application_info(&application)
            .enabled_extension_names(&extensions);
        // SAFETY: the create-info is valid, and everything that it points to lives during the call.
        let instance = unsafe { entry.create_instance(&info, None) }.map_err(CommandFailure::no_vulkan)?;
        Ok(Self { _entry: entry, instance, version })
    }

    /// Returns the physical devices, best first.
    pub(crate) fn devices(&self) -> Result<Vec<Physical<'_>>, CommandFailure> {
        // SAFETY: the instance is live.
        let handles =
            unsafe { self.instance.enumerate_physical_devices() }.map_err(CommandFailure::no_vulkan)?;
        let of = |handle| Physical { instance: &self.instance, handle, version: self.version, gpu: None };
        let mut devices: Vec<_> = handles.into_iter().map(of).collect();
        devices.sort_by_key(|device| match device.properties().device_type {
            vk::PhysicalDeviceType::DISCRETE_GPU => 0,
            vk::PhysicalDeviceType::INTEGRATED_GPU => 1,
            vk::PhysicalDeviceType::VIRTUAL_GPU => 2,
            vk::PhysicalDeviceType::CPU => 3,
            _ => 4,
        });
        Ok(devices)
    }
}

impl Drop for Vulkan {
    fn drop(&mut self) {
        // SAFETY: everything created from the instance borrows it, and is destroyed.
        unsafe { self.instance.destroy_instance(None) };
    }
}

/// A physical device of a driver, or a simulated one. I1: `handle` belongs to `instance`, which is live and has
/// `version`.
#[derive(Clone, Copy)]
pub(crate) struct Physical<'a> {
    instance: &'a ash::Instance,
    handle: vk::PhysicalDevice,
    version: u32,
    gpu: Option<&'a Gpu>,
}

/// Budget and usage of a heap. Units: bytes.
#[derive(Clone, Copy)]
pub(crate) struct ReportedBudget {
    pub(crate) budget: u64,
    pub(crate) usage: u64,
}

/// Device properties that Vulkan 1.0 does not report.
#[derive(Default)]
pub(crate) struct ExtendedProperties {
    pub(crate) driver: Option<String>,
    pub(crate) max_memory_allocation_size: Option<u64>,
    pub(crate) max_buffer_size: Option<u64>,
}

impl<'a> Physical<'a> {
    pub(crate) fn simulated(gpu: &'a Gpu) -> Self {
        Self {
            instance: gpu.instance(),
            handle: gpu.physical_device(),
            version: gpu.api_version(),
            gpu: Some(gpu),
        }
    }

    pub(crate) fn properties(&self) -> vk::PhysicalDeviceProperties {
        // SAFETY: I1.
        unsafe { self.instance.get_physical_device_properties(self.handle) }
    }

    /// Returns the memory properties. Counts beyond Vulkan's arrays are cut.
    pub(crate) fn memory(&self) -> vk::PhysicalDeviceMemoryProperties {
        // SAFETY: I1.
        let mut memory = unsafe { self.instance.get_physical_device_memory_properties(self.handle) };
        let most = |room: usize| u32::try_from(room).unwrap_or(u32::MAX);
        memory.memory_type_count = memory.memory_type_count.min(most(memory.memory_types.len()));
        memory.memory_heap_count = memory.memory_heap_count.min(most(memory.memory_heaps.len()));
        memory
    }

    /// Returns the version that a program may use.
    fn usable(&self) -> u32 {
        self.version.min(self.properties().api_version)
    }

    pub(crate) fn extensions(&self) -> Result<Vec<vk::ExtensionProperties>, CommandFailure> {
        // SAFETY: I1.
        unsafe { self.instance.enumerate_device_extension_properties(self.handle) }
            .map_err(|error| CommandFailure::driver("the device's extensions cannot be read", error))
    }

    /// Returns each heap's budget and usage, if the driver reports them.
    pub(crate) fn budgets(&self) -> Result<Option<Vec<ReportedBudget>>, CommandFailure> {
        if self.usable() < vk::API_VERSION_1_1 || !has(&self.extensions()?, ext::memory_budget::NAME) {
            return Ok(None);
        }
        let mut budgets = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
        let mut memory = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budgets);
        // SAFETY: I1; the device has at least 1.1, and supports the extension of the structure.
        unsafe { self.instance.get_physical_device_memory_properties2(self.handle, &mut memory) };
        let pairs = budgets.heap_budget.into_iter().zip(budgets.heap_usage);
        Ok(Some(pairs.map(|(budget, usage)| ReportedBudget { budget, usage }).collect()))
    }

    pub(crate) fn more(&self) -> Result<ExtendedProperties, CommandFailure> {
        let usable = self.usable();
        if usable < vk::API_VERSION_1_1 {
            return Ok(ExtendedProperties::default());
        }
        let extensions = self.extensions()?;
        let with_driver = usable >= vk::API_VERSION_1_2 || has(&extensions, khr::driver_properties::NAME);
        let with_size = usable >= vk::API_VERSION_1_3 || has(&extensions, khr::maintenance4::NAME);
        let mut driver = vk::PhysicalDeviceDriverProperties::default();
        let mut maintenance3 = vk::PhysicalDeviceMaintenance3Properties::default();
        let mut maintenance4 = vk::PhysicalDeviceMaintenance4Properties::default();
        let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut maintenance3);
        if with_driver {
            all = all.push_next(&mut driver);
        }
        if with_size {
            all = all.push_next(&mut maintenance4);
        }
        // SAFETY: I1; the device has at least 1.1, and supports every structure in the chain.
        unsafe { self.instance.get_physical_device_properties2(self.handle, &mut all) };
        let text = |text: Result<&CStr, _>| {
            text.map_or_else(|_| String::new(), |text| text.to_string_lossy().into())
        };
        let name = format!(
            "{} {}",
            text(driver.driver_name_as_c_str().map_err(drop)),
            text(driver.driver_info_as_c_str().map_err(drop))
        );
        Ok(ExtendedProperties {
            driver: with_driver.then(|| name.trim().to_owned()),
            max_memory_allocation_size: Some(maintenance3.max_memory_allocation_size),
            max_buffer_size: with_size.then_some(maintenance4.max_buffer_size),
        })
    }

    /// Returns the profile of a simulated device like this one.
    pub(crate) fn measure(&self) -> Result<&'static Profile, MeasureError> {
        // SAFETY: I1.
        unsafe { Profile::measure(self.instance, self.handle, self.version) }
    }

    /// Creates a device with all features that the allocator uses, and with protected memory: a recording may name any
    /// memory type.
    pub(crate) fn open(self) -> Result<Opened<'a>, CommandFailure> {
        let refused = |error| CommandFailure::driver("the device cannot be opened", error);
        if let Some(gpu) = self.gpu {
            let info = AllocatorCreateInfo::for_gpu(gpu);
            return Ok(Opened { physical: self, device: gpu.device().clone(), flags: info.flags });
        }
        let version = self.usable();
        let offered = self.extensions()?;
        // SAFETY: I1.
        let families = unsafe { self.instance.get_physical_device_queue_family_properties(self.handle) };
        if families.is_empty() {
            return Err(CommandFailure::driver("the device cannot be opened", "it has no queue"));
        }
        let mut priority = vk::PhysicalDeviceMemoryPriorityFeaturesEXT::default();
        let mut addresses = vk::PhysicalDeviceBufferDeviceAddressFeatures::default();
        let mut protected = vk::PhysicalDeviceProtectedMemoryFeatures::default();
        let with_priority = version >= vk::API_VERSION_1_1 && has(&offered, ext::memory_priority::NAME);
        let with_addresses = version >= vk::API_VERSION_1_2;
        if version >= vk::API_VERSION_1_1 {
            let mut all = vk::PhysicalDeviceFeatures2::default().push_next(&mut protected);
            if with_priority {
                all = all.push_next(&mut priority);
            }
            if with_addresses {
                all = all.push_next(&mut addresses);
            }
            // SAFETY: I1; the device has at least 1.1, and supports every structure in the chain.
            unsafe { self.instance.get_physical_device_features2(self.handle, &mut all) };
        }
        // The query linked these structures. The new chain links each again.
        priority.p_next = std::ptr::null_mut();
        addresses.p_next = std::ptr::null_mut();
        protected.p_next = std::ptr::null_mut();
        addresses.buffer_device_address_capture_replay = vk::FALSE;
        addresses.buffer_device_address_multi_device = vk::FALSE;
        let (mut flags, mut extensions) = (AllocatorCreateFlags::empty(), Vec::new());
        for (name, wanted, flag) in [
            (
                ext::memory_budget::NAME,
                version >= vk::API_VERSION_1_1,
                AllocatorCreateFlags::EXT_MEMORY_BUDGET,
            ),
            (
                ext::memory_priority::NAME,
                priority.memory_priority == vk::TRUE,
                AllocatorCreateFlags::EXT_MEMORY_PRIORITY,
            ),
            (PORTABILITY, true, AllocatorCreateFlags::empty()),
        ] {
            if wanted && has(&offered, name) {
                extensions.push(name.as_ptr());
                flags |= flag;
            }
        }
        let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(0).queue_priorities(&[1.0])];
        let mut info =
            vk::DeviceCreateInfo::default().queue_create_infos(&queues).enabled_extension_names(&extensions);
        if flags.contains(AllocatorCreateFlags::EXT_MEMORY_PRIORITY) {
            info = info.push_next(&mut priority);
        }
        if addresses.buffer_device_address == vk::TRUE {
            flags |= AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS;
            info = info.push_next(&mut addresses);
        }
        if protected.protected_memory == vk::TRUE {
            info = info.push_next(&mut protected);
        }
        // SAFETY: I1; the physical device supports all these extensions and features, and the queue.
        let device = unsafe { self.instance.create_device(self.handle, &info, None) }.map_err(refused)?;
        Ok(Opened { physical: self, device, flags })
    }
}

/// An open device.
pub(crate) struct Opened<'a> {
    physical: Physical<'a>,
    device: ash::Device,
    flags: AllocatorCreateFlags,
}

impl Opened<'_> {
    pub(crate) fn name(&self) -> String {
        let simulated = if self.physical.gpu.is_some() { ", simulated" } else { "" };
        crate::text::device_name(&self.physical.properties()) + simulated
    }

    /// Passes an allocator to a closure, then destroys it. It uses everything that was enabled, except `without`.
    pub(crate) fn with_allocator<R>(
        &self,
        without: AllocatorCreateFlags,
        task: impl FnOnce(&Allocator) -> R,
    ) -> Result<R, CommandFailure> {
        let Physical { instance, handle, version, gpu } = self.physical;
        let info = match gpu {
            Some(gpu) => AllocatorCreateInfo::for_gpu(gpu),
            None => AllocatorCreateInfo::new(instance, &self.device, handle, version),
        };
        self.on(&AllocatorCreateInfo { flags: self.flags.difference(without), ..info }, task)
    }

    /// Same with an allocator configured like a recorded one, as far as the device supports it.
    pub(crate) fn with_allocator_like<R>(
        &self,
        header: &Header,
        tracking: Tracking,
        task: impl FnOnce(&Allocator) -> R,
    ) -> Result<R, CommandFailure> {
        let Physical { instance, handle, version, gpu } = self.physical;
        let memory = self.physical.memory();
        let heaps = memory.memory_heaps_as_slice().len().min(header.heap_size_limits.len());
        let types = memory.memory_types_as_slice().len().min(header.block_sizes.len());
        let mut info = match gpu {
            Some(gpu) => header.create_info(gpu),
            None => AllocatorCreateInfo {
                flags: (self.flags | AllocatorCreateFlags::KEEP_ONLY_LAST_BLOCK) & header.flags,
                growth: header.growth,
                preferred_large_heap_block_size: header.preferred_large_heap_block_size,
                block_sizes: &header.block_sizes[..types],
                heap_size_limits: &header.heap_size_limits[..heaps],
                empty_blocks_kept: header.empty_blocks_kept,
                ..AllocatorCreateInfo::new(instance, &self.device, handle, version)
            },
        };
        info.tracking |= tracking;
        self.on(&info, task)
    }

    /// Passes an allocator with this create-info to a closure. `info` belongs to this device, and its flags are a
    /// subset of `self.flags`.
    fn on<R>(
        &self,
        info: &AllocatorCreateInfo<'_>,
        task: impl FnOnce(&Allocator) -> R,
    ) -> Result<R, CommandFailure> {
        // SAFETY: instance and device are live and outlive the allocator, and the flags match what is enabled. Both
        // callers ensure this.
        let allocator: Allocator = unsafe { Allocator::new(info) }
            .map_err(|error| CommandFailure::driver("there is no allocator for the device", error))?;
        Ok(task(&allocator))
    }

    /// Returns the memory types for a buffer, in the order in which they are tried.
    pub(crate) fn types_for_buffer(
        &self,
        allocator: &Allocator,
        buffer: &vk::BufferCreateInfo<'_>,
        wanted: &AllocationCreateInfo<'_>,
    ) -> Vec<u32> {
        in_order(wanted, |wanted| {
            // SAFETY: the create-infos are this program's own: plain buffers with usages of Vulkan 1.0.
            unsafe { allocator.find_memory_type_index_for_buffer_info(buffer, wanted) }.ok()
        })
    }

    /// Same for an image. `None` if the device does not support such images.
    pub(crate) fn types_for_image(
        &self,
        allocator: &Allocator,
        image: &vk::ImageCreateInfo<'_>,
        wanted: &AllocationCreateInfo<'_>,
    ) -> Option<Vec<u32>> {
        // SAFETY: I1.
        let limits = unsafe {
            self.physical.instance.get_physical_device_image_format_properties(
                self.physical.handle,
                image.format,
                image.image_type,
                image.tiling,
                image.usage,
                image.flags,
            )
        };
        if limits.is_err() {
            return None;
        }
        Some(in_order(wanted, |wanted| {
            // SAFETY: the query above confirmed that the device supports such images. They are smaller than any limit
            // of Vulkan's.
            unsafe { allocator.find_memory_type_index_for_image_info(image, wanted) }.ok()
        }))
    }
}

/// Returns all memory types in order of preference. Each found type is excluded from the next search.
fn in_order(
    wanted: &AllocationCreateInfo<'_>,
    find: impl Fn(&AllocationCreateInfo<'_>) -> Option<u32>,
) -> Vec<u32> {
    let mut left = u32::MAX;
    let next = || {
        // A mask of 0 would mean every type.
        if left == 0 {
            return None;
        }
        let found = find(&AllocationCreateInfo { memory_type_bits: left, ..*wanted })?;
        left &= !1_u32.checked_shl(found)?;
        Some(found)
    };
    std::iter::from_fn(next).take(vk::MAX_MEMORY_TYPES).collect()
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        if self.physical.gpu.is_none() {
            // SAFETY: `on` has destroyed its allocators, and nothing was submitted.
            unsafe { self.device.destroy_device(None) };
        }
    }
}

fn has(extensions: &[vk::ExtensionProperties], name: &CStr) -> bool {
    extensions.iter().any(|extension| extension.extension_name_as_c_str() == Ok(name))
}

#[cfg(test)]
mod tests {
    use sublet::sim::profiles;

    use super::*;

    /// A recording may name any memory type of the device on which it is replayed.
    #[test]
    fn an_opened_device_has_the_feature_of_its_protected_memory_types() {
        let mut count = 0;
        for profile in profiles::ALL {
            let gpu = Gpu::new(profile);
            // As a device of a driver.
            let physical = Physical { gpu: None, ..Physical::simulated(&gpu) };
            let opened = physical.open().unwrap();
            let reserve = |allocator: &Allocator| {
                for (index, kind) in (0..).zip(physical.memory().memory_types_as_slice()) {
                    if kind.property_flags.contains(vk::MemoryPropertyFlags::PROTECTED) {
                        allocator.reserve(index, 1).unwrap();
                        count += 1;
                    }
                }
            };
            opened.with_allocator(AllocatorCreateFlags::empty(), reserve).unwrap();
            drop(opened);
            assert_eq!(gpu.finish(), [], "{}", profile.name);
        }
        assert!(count > 0, "no profile has such a type");
    }
}
