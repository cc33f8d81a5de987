//! The drivers: one that does nothing, simulated ones, and the system's own, each below a thin layer that counts.
//!
//! The layer is between every peer and `vkAllocateMemory`, `vkFreeMemory` and `vkMapMemory`. No other function of the
//! device passes through it. It counts, delays and limits all peers equally on any driver. These three calls are rare,
//! and cost about fifty nanoseconds more than without the layer.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::fmt;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ash::vk;
use parking_lot::{Mutex, RwLock};
use sublet::sim::{self, Profile};

/// The profile of the null driver, if the command line names none.
const NULL_PROFILE: &str = "nvidia-h200";

/// The choice of a driver.
#[derive(Clone, Debug)]
pub(crate) enum Driver {
    /// Calls do nothing. Heaps and memory types are the profile's.
    Null(&'static Profile),
    /// A simulated GPU, which checks every call.
    Simulated(&'static Profile),
    /// The system's driver, with the index of a device.
    Vulkan(usize),
}

impl Driver {
    /// Parses `null`, `null:PROFILE`, `sim:PROFILE` or `vulkan`.
    pub(crate) fn parse(text: &str, device: usize) -> Result<Self, String> {
        let profile = |name: &str| {
            let names: Vec<_> = Profile::names().collect();
            Profile::by_name(name)
                .ok_or_else(|| format!("no profile is called {name}; there are {}", names.join(", ")))
        };
        match text.split_once(':') {
            None if text == "null" => Ok(Self::Null(profile(NULL_PROFILE)?)),
            None if text == "vulkan" => Ok(Self::Vulkan(device)),
            Some(("null", name)) => Ok(Self::Null(profile(name)?)),
            Some(("sim", name)) => Ok(Self::Simulated(profile(name)?)),
            _ => Err(format!("the driver is null, null:PROFILE, sim:PROFILE or vulkan, not {text}")),
        }
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null(profile) => write!(f, "null (heaps of {})", profile.name),
            Self::Simulated(profile) => write!(f, "sim:{}", profile.name),
            Self::Vulkan(device) => write!(f, "vulkan, device {device}"),
        }
    }
}

/// Counters of the layer.
#[derive(Debug)]
pub(crate) struct Counters {
    entered: AtomicU64,
    allocations: AtomicU64,
    frees: AtomicU64,
    maps: AtomicU64,
    reserved: AtomicU64,
    peak: AtomicU64,
    limit: AtomicU64,
    delay: AtomicU64,
    objects: Mutex<HashMap<vk::DeviceMemory, GpuMemoryObject>>,
    /// The objects since the last [`Counters::take_objects`]; `None` unless they are listed.
    listed: Mutex<Option<Vec<GpuMemoryObject>>>,
}

/// A memory object from `vkAllocateMemory`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GpuMemoryObject {
    pub(crate) size: u64,
    pub(crate) memory_type: u32,
}

/// Numbers of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    pub(crate) allocations: u64,
    pub(crate) frees: u64,
    pub(crate) maps: u64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            entered: AtomicU64::new(0),
            allocations: AtomicU64::new(0),
            frees: AtomicU64::new(0),
            maps: AtomicU64::new(0),
            reserved: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            limit: AtomicU64::new(u64::MAX),
            delay: AtomicU64::new(0),
            // Large enough to be no part of a peer's growing host memory.
            objects: Mutex::new(HashMap::with_capacity(8 * 1024)),
            listed: Mutex::default(),
        }
    }
}

impl Counters {
    /// Returns the number of started `vkAllocateMemory` calls.
    pub(crate) fn entered(&self) -> u64 {
        self.entered.load(Ordering::Relaxed)
    }

    /// Returns the number of `vkAllocateMemory` calls so far.
    pub(crate) fn allocations(&self) -> u64 {
        self.allocations.load(Ordering::Relaxed)
    }

    pub(crate) fn calls(&self) -> Calls {
        Calls {
            allocations: self.allocations(),
            frees: self.frees.load(Ordering::Relaxed),
            maps: self.maps.load(Ordering::Relaxed),
        }
    }

    /// Returns the bytes that are currently allocated from the driver.
    pub(crate) fn reserved(&self) -> u64 {
        self.reserved.load(Ordering::Relaxed)
    }

    /// Returns the maximum of allocated bytes.
    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Returns the number of live memory objects.
    pub(crate) fn blocks(&self) -> u64 {
        self.objects.lock().len() as u64
    }

    /// Returns the memory objects that were allocated since the last call, except for the first call, which starts the
    /// list.
    pub(crate) fn take_objects(&self) -> Vec<GpuMemoryObject> {
        self.listed.lock().replace(Vec::new()).unwrap_or_default()
    }

    /// Makes `vkAllocateMemory` fail if the sum of all memory would exceed this.
    #[cfg(test)]
    pub(crate) fn limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    fn delay(&self, delay: Duration) {
        self.delay.store(delay.as_nanos() as u64, Ordering::Relaxed);
    }

    fn take(&self, bytes: u64) -> bool {
        let reserved = self.reserved.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if reserved > self.limit.load(Ordering::Relaxed) {
            self.reserved.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.peak.fetch_max(reserved, Ordering::Relaxed);
        true
    }
}

/// The layer's state for one device.
#[derive(Clone)]
struct Layer {
    device: vk::Device,
    physical_device: vk::PhysicalDevice,
    device_lookup: vk::PFN_vkGetDeviceProcAddr,
    allocate: vk::PFN_vkAllocateMemory,
    free: vk::PFN_vkFreeMemory,
    map: vk::PFN_vkMapMemory,
    properties: vk::PFN_vkGetPhysicalDeviceProperties,
    granularity: Option<u64>,
    counters: Arc<Counters>,
}

static LAYERS: RwLock<Vec<Layer>> = RwLock::new(Vec::new());

fn layer(device: vk::Device) -> Layer {
    let layers = LAYERS.read();
    let found = layers.iter().find(|layer| layer.device == device);
    found.expect("only devices of this module call the layer").clone()
}

unsafe extern "system" fn allocate_memory(
    device: vk::Device,
    info: *const vk::MemoryAllocateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    memory: *mut vk::DeviceMemory,
) -> vk::Result {
    let layer = layer(device);
    let counters = &layer.counters;
    // SAFETY: VUID-vkAllocateMemory-pAllocateInfo-parameter, which the caller keeps.
    let size = unsafe { (*info).allocation_size };
    // SAFETY: as above.
    let memory_type = unsafe { (*info).memory_type_index };
    counters.entered.fetch_add(1, Ordering::Relaxed);
    let delay = counters.delay.load(Ordering::Relaxed);
    if delay > 0 {
        std::thread::sleep(Duration::from_nanos(delay));
    }
    counters.allocations.fetch_add(1, Ordering::Relaxed);
    if !counters.take(size) {
        return vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
    }
    // SAFETY: the caller's arguments, except its callbacks.
    let result = unsafe { (layer.allocate)(device, info, std::ptr::null(), memory) };
    if result == vk::Result::SUCCESS {
        // SAFETY: VUID-vkAllocateMemory-pMemory-parameter; the driver wrote it.
        let handle = unsafe { *memory };
        let object = GpuMemoryObject { size, memory_type };
        counters.objects.lock().insert(handle, object);
        counters.listed.lock().iter_mut().for_each(|listed| listed.push(object));
    } else {
        counters.reserved.fetch_sub(size, Ordering::Relaxed);
    }
    result
}

unsafe extern "system" fn free_memory(
    device: vk::Device,
    memory: vk::DeviceMemory,
    _: *const vk::AllocationCallbacks<'_>,
) {
    let layer = layer(device);
    let object = layer.counters.objects.lock().remove(&memory);
    // SAFETY: the caller's arguments; it was allocated without callbacks.
    unsafe { (layer.free)(device, memory, std::ptr::null()) };
    if let Some(object) = object {
        layer.counters.reserved.fetch_sub(object.size, Ordering::Relaxed);
        layer.counters.frees.fetch_add(1, Ordering::Relaxed);
    }
}

unsafe extern "system" fn map_memory(
    device: vk::Device,
    memory: vk::DeviceMemory,
    offset: u64,
    size: u64,
    flags: vk::MemoryMapFlags,
    data: *mut *mut c_void,
) -> vk::Result {
    let layer = layer(device);
    layer.counters.maps.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller's arguments.
    unsafe { (layer.map)(device, memory, offset, size, flags, data) }
}

unsafe extern "system" fn physical_device_properties(
    physical_device: vk::PhysicalDevice,
    properties: *mut vk::PhysicalDeviceProperties,
) {
    let found = LAYERS.read().iter().rfind(|layer| layer.physical_device == physical_device).cloned();
    let Some(layer) = found else { return };
    // SAFETY: the caller's arguments.
    unsafe { (layer.properties)(physical_device, properties) };
    if let Some(granularity) = layer.granularity {
        // SAFETY: VUID-vkGetPhysicalDeviceProperties-pProperties-parameter.
        unsafe { (*properties).limits.buffer_image_granularity = granularity };
    }
}

/// A function pointer as returned by function lookup.
type Void = unsafe extern "system" fn();

/// Returns the layer's own function of that name.
fn own(name: &CStr) -> Option<*const c_void> {
    let allocate: vk::PFN_vkAllocateMemory = allocate_memory;
    let free: vk::PFN_vkFreeMemory = free_memory;
    let map: vk::PFN_vkMapMemory = map_memory;
    match name.to_bytes() {
        b"vkAllocateMemory" => Some(allocate as *const c_void),
        b"vkFreeMemory" => Some(free as *const c_void),
        b"vkMapMemory" => Some(map as *const c_void),
        _ => None,
    }
}

unsafe extern "system" fn device_proc_addr(
    device: vk::Device,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: VUID-vkGetDeviceProcAddr-pName-parameter.
    let text = unsafe { CStr::from_ptr(name) };
    if let Some(function) = own(text) {
        // SAFETY: a non-null function pointer; the caller calls it with the type of the name that it looked up.
        return Some(unsafe { std::mem::transmute::<*const c_void, Void>(function) });
    }
    let layer = layer(device);
    // SAFETY: the caller's arguments.
    unsafe { (layer.device_lookup)(device, name) }
}

fn pointer(function: vk::PFN_vkVoidFunction) -> *const c_void {
    function.map_or(std::ptr::null(), |function| function as *const c_void)
}

/// Objects that must outlive the device.
enum GpuOwner {
    Null(sim::NullGpu),
    Simulated(sim::Gpu),
    Vulkan(System),
}

/// A device of the system's driver.
struct System {
    entry: ash::Entry,
    instance: ash::Instance,
    physical_device: vk::PhysicalDevice,
    device: ash::Device,
    api_version: u32,
}

/// A device under the layer.
pub(crate) struct TestGpu {
    instance: ash::Instance,
    device: ash::Device,
    physical_device: vk::PhysicalDevice,
    api_version: u32,
    counters: Arc<Counters>,
    owner: GpuOwner,
}

impl TestGpu {
    /// Creates a device of a driver. `granularity` replaces `bufferImageGranularity` on simulated ones.
    pub(crate) fn new(driver: &Driver, granularity: Option<u64>) -> Result<Self, String> {
        Ok(match driver {
            Driver::Null(profile) => Self::layered(GpuOwner::Null(sim::NullGpu::new(profile)), granularity),
            Driver::Simulated(profile) => Self::layered(GpuOwner::Simulated(sim::Gpu::new(profile)), None),
            Driver::Vulkan(index) => Self::layered(GpuOwner::Vulkan(system(*index)?), None),
        })
    }

    fn layered(owner: GpuOwner, granularity: Option<u64>) -> Self {
        let (entry, real_instance, real_device, physical_device, api_version) = match &owner {
            GpuOwner::Null(gpu) => {
                (gpu.entry(), gpu.instance(), gpu.device(), gpu.physical_device(), gpu.api_version())
            }
            GpuOwner::Simulated(gpu) => {
                (gpu.entry(), gpu.instance(), gpu.device(), gpu.physical_device(), gpu.api_version())
            }
            GpuOwner::Vulkan(system) => {
                (&system.entry, &system.instance, &system.device, system.physical_device, system.api_version)
            }
        };
        let counters = Arc::new(Counters::default());
        let real = real_device.fp_v1_0();
        LAYERS.write().push(Layer {
            device: real_device.handle(),
            physical_device,
            device_lookup: real_instance.fp_v1_0().get_device_proc_addr,
            allocate: real.allocate_memory,
            free: real.free_memory,
            map: real.map_memory,
            properties: real_instance.fp_v1_0().get_physical_device_properties,
            granularity,
            counters: Arc::clone(&counters),
        });
        let lookup = entry.static_fn().get_instance_proc_addr;
        let handle = real_instance.handle();
        let of_instance = |name: &CStr| {
            let by_device: vk::PFN_vkGetDeviceProcAddr = device_proc_addr;
            let properties: vk::PFN_vkGetPhysicalDeviceProperties = physical_device_properties;
            match name.to_bytes() {
                b"vkGetDeviceProcAddr" => by_device as *const c_void,
                b"vkGetPhysicalDeviceProperties" => properties as *const c_void,
                // SAFETY: the instance is live, the name ends with a zero.
                _ => pointer(unsafe { lookup(handle, name.as_ptr()) }),
            }
        };
        // SAFETY: the lookup returns the function of the given name.
        let instance = unsafe { ash::Instance::load_with(of_instance, handle) };
        // SAFETY: the device is live, and belongs to this instance.
        let device = unsafe { ash::Device::load(instance.fp_v1_0(), real_device.handle()) };
        Self { instance, device, physical_device, api_version, counters, owner }
    }

    pub(crate) fn instance(&self) -> &ash::Instance {
        &self.instance
    }

    pub(crate) fn device(&self) -> &ash::Device {
        &self.device
    }

    pub(crate) fn physical_device(&self) -> vk::PhysicalDevice {
        self.physical_device
    }

    pub(crate) fn api_version(&self) -> u32 {
        self.api_version
    }

    pub(crate) fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Delays each later `vkAllocateMemory` by this time. Does nothing on a real driver.
    pub(crate) fn slow(&self, delay: Duration) {
        if !self.is_real() {
            self.counters.delay(delay);
        }
    }

    /// Returns true for a real driver.
    pub(crate) fn is_real(&self) -> bool {
        matches!(self.owner, GpuOwner::Vulkan(_))
    }

    /// Returns the driver's description.
    pub(crate) fn description(&self) -> String {
        // SAFETY: the physical device belongs to this live instance.
        let properties = unsafe { self.instance.get_physical_device_properties(self.physical_device) };
        let name = properties.device_name_as_c_str().map_or("unnamed".into(), CStr::to_string_lossy);
        format!("{name}, granularity {}", properties.limits.buffer_image_granularity)
    }

    /// Returns heaps and memory types.
    pub(crate) fn memory(&self) -> vk::PhysicalDeviceMemoryProperties {
        // SAFETY: the physical device belongs to this live instance.
        unsafe { self.instance.get_physical_device_memory_properties(self.physical_device) }
    }

    /// Returns the first device-local memory type, for pools.
    pub(crate) fn device_local_type(&self) -> u32 {
        let memory = self.memory();
        let local =
            |kind: &vk::MemoryType| kind.property_flags.contains(vk::MemoryPropertyFlags::DEVICE_LOCAL);
        memory.memory_types_as_slice().iter().position(local).unwrap_or(0) as u32
    }

    /// Returns the bytes of the largest heap.
    pub(crate) fn largest_heap(&self) -> u64 {
        self.memory().memory_heaps_as_slice().iter().map(|heap| heap.size).max().unwrap_or(0)
    }

    /// Checks that all memory was freed and that the simulated driver reported nothing.
    pub(crate) fn finish(self) -> Result<(), String> {
        let (reserved, blocks) = (self.counters.reserved(), self.counters.blocks());
        let messages = match &self.owner {
            GpuOwner::Simulated(gpu) => gpu.take_messages(),
            _ => Vec::new(),
        };
        if blocks != 0 || reserved != 0 {
            return Err(format!(
                "{blocks} memory objects, {reserved} bytes, were never given back to the driver"
            ));
        }
        match messages.first() {
            Some(message) => Err(format!("the simulated driver says: {message}")),
            None => Ok(()),
        }
    }
}

impl Drop for TestGpu {
    fn drop(&mut self) {
        LAYERS.write().retain(|layer| layer.device != self.device.handle());
        if let GpuOwner::Vulkan(System { instance, device, .. }) = &self.owner {
            // SAFETY: each run drops its peer first, so nothing uses the device.
            unsafe { device.destroy_device(None) };
            // SAFETY: its only device is destroyed.
            unsafe { instance.destroy_instance(None) };
        }
    }
}

fn system(index: usize) -> Result<System, String> {
    let said = |what: &str, error: &dyn fmt::Display| format!("{what}: {error}");
    // SAFETY: the system's loader is trusted like any library of the system.
    let entry = unsafe { ash::Entry::load() }.map_err(|error| said("no Vulkan loader", &error))?;
    // SAFETY: the loader is loaded.
    let newest = unsafe { entry.try_enumerate_instance_version() }.ok().flatten();
    let version = newest.unwrap_or(vk::API_VERSION_1_0).min(vk::API_VERSION_1_3);
    let application = vk::ApplicationInfo::default().api_version(version);
    let info = vk::InstanceCreateInfo::default().application_info(&application);
    // SAFETY: the create-info is complete and everything in it is live.
    let instance = unsafe { entry.create_instance(&info, None) };
    let instance = instance.map_err(|error| said("vkCreateInstance", &error))?;
    // Keeps the driver loaded while the process runs. Some drivers do not support being unloaded and loaded again.
    static KEPT: OnceLock<(ash::Entry, Option<ash::Instance>)> = OnceLock::new();
    KEPT.get_or_init(|| {
        // SAFETY: as above.
        let kept = unsafe { entry.create_instance(&info, None) };
        (entry.clone(), kept.ok())
    });
    match make_device(&instance, index) {
        Ok((physical_device, device)) => {
            // SAFETY: the physical device belongs to this live instance.
            let properties = unsafe { instance.get_physical_device_properties(physical_device) };
            let api_version = properties.api_version.min(version);
            Ok(System { entry, instance, physical_device, device, api_version })
        }
        Err(error) => {
            // SAFETY: it has no device.
            unsafe { instance.destroy_instance(None) };
            Err(error)
        }
    }
}

fn make_device(instance: &ash::Instance, index: usize) -> Result<(vk::PhysicalDevice, ash::Device), String> {
    // SAFETY: the instance is live.
    let all = unsafe { instance.enumerate_physical_devices() };
    let all = all.map_err(|error| format!("vkEnumeratePhysicalDevices: {error}"))?;
    let physical_device = *all.get(index).ok_or(format!("there are {} Vulkan devices", all.len()))?;
    let priorities = [1.0];
    let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&priorities)];
    let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
    // SAFETY: every device has a queue family 0 with one queue; nothing else is asked for.
    let device = unsafe { instance.create_device(physical_device, &info, None) };
    Ok((physical_device, device.map_err(|error| format!("vkCreateDevice: {error}"))?))
}
