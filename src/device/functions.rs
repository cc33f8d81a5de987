//! The Vulkan functions that the library calls: given by the program, or looked up.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ffi::{CStr, c_char};
use std::fmt;

use ash::vk;

macro_rules! functions {
    ($( $(#[$doc:meta])* $field:ident : $pfn:ident = $level:ident $name:literal $kind:ident $( | $khr:literal )? ;)*) => {
        /// Raw Vulkan function pointers, for programs that have no `ash` objects or that hook calls.
        ///
        /// Every member may be `None`: the library then looks it up through the two get-proc members. A given member is
        /// used unchanged.
        #[derive(Clone, Default)]
        pub struct VulkanFunctions {
            /// `vkGetInstanceProcAddr`.
            pub get_instance_proc_addr: Option<vk::PFN_vkGetInstanceProcAddr>,
            /// `vkGetDeviceProcAddr`.
            pub get_device_proc_addr: Option<vk::PFN_vkGetDeviceProcAddr>,
            $( #[doc = concat!("`", $name, "`.")] $(#[$doc])* pub $field: Option<vk::$pfn>, )*
        }

        /// The function table of the library. Every required function is present.
        #[derive(Clone)]
        #[cfg_attr(not(unix), allow(dead_code, reason = "file descriptors are exported on Unix only"))]
        pub(crate) struct Functions {
            $( pub(crate) $field: functions!(@type $kind $pfn), )*
        }

        impl Functions {
            /// Takes functions from `given`, and looks up the others.
            fn resolve(given: &VulkanFunctions, lookup: &Lookup) -> Result<Self, MissingFunction> {
                Ok(Self {
                    $( $field: functions!(@get $kind given.$field, lookup, $level, $name, [$($khr)?], vk::$pfn), )*
                })
            }
        }
    };
    (@type must $pfn:ident) => { vk::$pfn };
    (@type may $pfn:ident) => { Option<vk::$pfn> };
    (@get must $given:expr, $lookup:ident, $level:ident, $name:literal, [$($khr:literal)?], $pfn:ty) => {
        functions!(@get may $given, $lookup, $level, $name, [$($khr)?], $pfn)
            .ok_or(MissingFunction { name: $name })?
    };
    (@get may $given:expr, $lookup:ident, $level:ident, $name:literal, [$($khr:literal)?], $pfn:ty) => {
        $given.or_else(|| {
            let found = $lookup.$level($name)$( .or_else(|| $lookup.$level($khr)) )?;
            // SAFETY: a get-proc function returns the function of that name, whose type is `$pfn`; the table below
            // pairs names and types.
            found.map(|pointer| unsafe { std::mem::transmute::<unsafe extern "system" fn(), $pfn>(pointer) })
        })
    };
}

functions! {
    get_physical_device_properties: PFN_vkGetPhysicalDeviceProperties = instance "vkGetPhysicalDeviceProperties" must;
    /// Optional: required for descriptors beyond Vulkan 1.0.
    get_physical_device_properties2: PFN_vkGetPhysicalDeviceProperties2 = instance "vkGetPhysicalDeviceProperties2" may | "vkGetPhysicalDeviceProperties2KHR";
    get_physical_device_memory_properties: PFN_vkGetPhysicalDeviceMemoryProperties = instance "vkGetPhysicalDeviceMemoryProperties" must;
    /// Optional: required for budgets.
    get_physical_device_memory_properties2: PFN_vkGetPhysicalDeviceMemoryProperties2 = instance "vkGetPhysicalDeviceMemoryProperties2" may | "vkGetPhysicalDeviceMemoryProperties2KHR";
    allocate_memory: PFN_vkAllocateMemory = device "vkAllocateMemory" must;
    free_memory: PFN_vkFreeMemory = device "vkFreeMemory" must;
    map_memory: PFN_vkMapMemory = device "vkMapMemory" must;
    unmap_memory: PFN_vkUnmapMemory = device "vkUnmapMemory" must;
    flush_mapped_memory_ranges: PFN_vkFlushMappedMemoryRanges = device "vkFlushMappedMemoryRanges" must;
    invalidate_mapped_memory_ranges: PFN_vkInvalidateMappedMemoryRanges = device "vkInvalidateMappedMemoryRanges" must;
    bind_buffer_memory: PFN_vkBindBufferMemory = device "vkBindBufferMemory" must;
    bind_image_memory: PFN_vkBindImageMemory = device "vkBindImageMemory" must;
    get_buffer_memory_requirements: PFN_vkGetBufferMemoryRequirements = device "vkGetBufferMemoryRequirements" must;
    get_image_memory_requirements: PFN_vkGetImageMemoryRequirements = device "vkGetImageMemoryRequirements" must;
    create_buffer: PFN_vkCreateBuffer = device "vkCreateBuffer" must;
    destroy_buffer: PFN_vkDestroyBuffer = device "vkDestroyBuffer" must;
    create_image: PFN_vkCreateImage = device "vkCreateImage" must;
    destroy_image: PFN_vkDestroyImage = device "vkDestroyImage" must;
    /// Optional: reports whether the driver prefers a dedicated allocation.
    get_buffer_memory_requirements2: PFN_vkGetBufferMemoryRequirements2 = device "vkGetBufferMemoryRequirements2" may | "vkGetBufferMemoryRequirements2KHR";
    /// Optional: reports whether the driver prefers a dedicated allocation.
    get_image_memory_requirements2: PFN_vkGetImageMemoryRequirements2 = device "vkGetImageMemoryRequirements2" may | "vkGetImageMemoryRequirements2KHR";
    /// Optional: required for binding with a `pNext` chain.
    bind_buffer_memory2: PFN_vkBindBufferMemory2 = device "vkBindBufferMemory2" may | "vkBindBufferMemory2KHR";
    /// Optional: required for binding with a `pNext` chain.
    bind_image_memory2: PFN_vkBindImageMemory2 = device "vkBindImageMemory2" may | "vkBindImageMemory2KHR";
    /// Optional: returns requirements without a temporary object.
    get_device_buffer_memory_requirements: PFN_vkGetDeviceBufferMemoryRequirements = device "vkGetDeviceBufferMemoryRequirements" may | "vkGetDeviceBufferMemoryRequirementsKHR";
    /// Optional: returns requirements without a temporary object.
    get_device_image_memory_requirements: PFN_vkGetDeviceImageMemoryRequirements = device "vkGetDeviceImageMemoryRequirements" may | "vkGetDeviceImageMemoryRequirementsKHR";
    /// Optional: required for device addresses.
    get_buffer_device_address: PFN_vkGetBufferDeviceAddress = device "vkGetBufferDeviceAddress" may | "vkGetBufferDeviceAddressKHR";
    /// Optional: required for changing a priority.
    set_device_memory_priority: PFN_vkSetDeviceMemoryPriorityEXT = device "vkSetDeviceMemoryPriorityEXT" may;
    /// Optional: required for reading a timeline semaphore.
    get_semaphore_counter_value: PFN_vkGetSemaphoreCounterValue = device "vkGetSemaphoreCounterValue" may | "vkGetSemaphoreCounterValueKHR";
    /// Optional: required for exporting memory as a file descriptor.
    get_memory_fd: PFN_vkGetMemoryFdKHR = device "vkGetMemoryFdKHR" may;
    /// Optional: required for importing host memory.
    get_memory_host_pointer_properties: PFN_vkGetMemoryHostPointerPropertiesEXT = device "vkGetMemoryHostPointerPropertiesEXT" may;
    /// Optional: required for exporting memory as a Windows handle.
    get_memory_win32_handle: PFN_vkGetMemoryWin32HandleKHR = device "vkGetMemoryWin32HandleKHR" may;
}

/// The program did not give a required Vulkan function, and the lookup did not find it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MissingFunction {
    /// The function's name.
    pub name: &'static str,
}

sublet_engines::errors! { struct MissingFunction { name } => "the Vulkan function {name} was neither given nor found" }

impl fmt::Debug for VulkanFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VulkanFunctions").finish_non_exhaustive()
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Functions").finish_non_exhaustive()
    }
}

impl VulkanFunctions {
    /// The functions of an `ash` instance, and its `vkGetDeviceProcAddr`.
    ///
    /// `api_version` decides if the instance functions of Vulkan 1.1 may be used. An instance of version 1.0 with
    /// VK_KHR_get_physical_device_properties2 has them under another name, which only [`Self::get_instance_proc_addr`]
    /// finds: see [`Self::with_entry`].
    #[must_use]
    pub fn from_ash(instance: &ash::Instance, api_version: u32) -> Self {
        let core = instance.fp_v1_0();
        let mut functions = Self {
            get_device_proc_addr: Some(core.get_device_proc_addr),
            get_physical_device_properties: Some(core.get_physical_device_properties),
            get_physical_device_memory_properties: Some(core.get_physical_device_memory_properties),
            ..Self::default()
        };
        if api_version >= vk::API_VERSION_1_1 {
            let v1_1 = instance.fp_v1_1();
            functions.get_physical_device_properties2 = Some(v1_1.get_physical_device_properties2);
            functions.get_physical_device_memory_properties2 =
                Some(v1_1.get_physical_device_memory_properties2);
        }
        functions
    }

    /// Adds the entry's `vkGetInstanceProcAddr`.
    #[must_use]
    pub fn with_entry(self, entry: &ash::Entry) -> Self {
        Self { get_instance_proc_addr: Some(entry.static_fn().get_instance_proc_addr), ..self }
    }

    /// Returns the complete table.
    ///
    /// # Safety
    /// `instance` and `device` are live, and the given functions belong to them and conform to Vulkan.
    pub(crate) unsafe fn resolve(
        &self,
        instance: vk::Instance,
        device: vk::Device,
    ) -> Result<Functions, MissingFunction> {
        // SAFETY: the caller's promise: `instance` and `device` are live, and the given functions belong to them and
        // conform to Vulkan.
        let lookup = unsafe { self.lookup(instance, device) };
        Functions::resolve(self, &lookup)
    }

    /// Returns the two get-proc functions. If the device's was not given, the instance's finds it.
    ///
    /// # Safety
    /// Same as [`Self::resolve`].
    unsafe fn lookup(&self, instance: vk::Instance, device: vk::Device) -> Lookup {
        let instance_lookup = self.get_instance_proc_addr;
        let by_instance = Lookup { instance, instance_lookup, device, device_lookup: None };
        let device_lookup = self.get_device_proc_addr.or_else(|| {
            let found = by_instance.instance("vkGetDeviceProcAddr");
            // SAFETY: same as in the table above.
            found.map(|pointer| unsafe {
                std::mem::transmute::<unsafe extern "system" fn(), vk::PFN_vkGetDeviceProcAddr>(pointer)
            })
        });
        Lookup { device_lookup, ..by_instance }
    }
}

/// The two get-proc functions with their objects.
struct Lookup {
    instance: vk::Instance,
    instance_lookup: Option<vk::PFN_vkGetInstanceProcAddr>,
    device: vk::Device,
    device_lookup: Option<vk::PFN_vkGetDeviceProcAddr>,
}

/// The capacity for function names. All names in this file are shorter; a longer one is never found.
const NAME_CAPACITY: usize = 96;

/// Passes `name` as a C string to `call`.
fn with_c_name<R>(name: &str, call: impl FnOnce(*const c_char) -> Option<R>) -> Option<R> {
    let mut bytes = [0_u8; NAME_CAPACITY];
    bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
    call(CStr::from_bytes_until_nul(&bytes).ok()?.as_ptr())
}

impl Lookup {
    fn instance(&self, name: &str) -> Option<unsafe extern "system" fn()> {
        let lookup = self.instance_lookup?;
        // SAFETY: the instance is live and the name ends with a zero (VUID-vkGetInstanceProcAddr-pName-parameter).
        with_c_name(name, |name| unsafe { lookup(self.instance, name) })
    }

    fn device(&self, name: &str) -> Option<unsafe extern "system" fn()> {
        let lookup = self.device_lookup?;
        // SAFETY: the device is live and the name ends with a zero (VUID-vkGetDeviceProcAddr-pName-parameter).
        with_c_name(name, |name| unsafe { lookup(self.device, name) })
    }
}
