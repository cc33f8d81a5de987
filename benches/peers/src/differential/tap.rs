//! A simulated device of one side, with the calls that its allocator made, and the faults that it gets.
#![expect(unsafe_code, reason = "looks up functions of Vulkan")]

use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::mem::transmute;

use ash::vk;
use sublet::sim;

use super::program::ProgramSetup;
use crate::peers::vma::{self, ffi};

/// A call of `vkAllocateMemory`, without the handles in its chain.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct AllocateMemoryCall {
    pub(super) size: u64,
    pub(super) memory_type: u32,
    /// Front to back.
    chain: Vec<vk::StructureType>,
    priority: Option<f32>,
    flags: u32,
    dedicated_to: vk::ObjectType,
    pub(super) result: vk::Result,
}

/// A live `VkDeviceMemory`.
#[derive(Clone, Copy, Debug)]
pub(super) struct TappedMemory {
    pub(super) memory: vk::DeviceMemory,
    pub(super) size: u64,
    pub(super) memory_type: u32,
}

/// Driver calls since the last query.
#[derive(Clone, Default, Debug)]
pub(super) struct TapLog {
    pub(super) asked: Vec<AllocateMemoryCall>,
    /// New memory that is still live, in the order of `asked`.
    pub(super) got: Vec<TappedMemory>,
    /// Freed memory that existed before.
    pub(super) freed: Vec<vk::DeviceMemory>,
    /// Flushed and invalidated ranges.
    pub(super) ranges: Vec<sim::SyncedRange>,
    /// Number of `vkMapMemory` calls that failed on request.
    pub(super) maps_refused: u64,
}

/// A request to fail calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fault {
    pub(super) call: FaultyCall,
    /// Number of calls that succeed first, and number that fail then.
    pub(super) skip: u32,
    pub(super) times: u32,
    pub(super) result: vk::Result,
}

/// The functions that can fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FaultyCall {
    Allocate,
    Map,
}

/// More calls of a function than one operation makes.
pub(super) const MANY: u32 = 1_000;

thread_local! {
    /// The `maxMemoryAllocationCount` of the devices of this thread, and the function that reports the real one.
    static MAX_COUNT: Cell<(u32, Option<vk::PFN_vkGetPhysicalDeviceProperties>)> = const { Cell::new((0, None)) };
}

unsafe extern "system" fn properties(device: vk::PhysicalDevice, out: *mut vk::PhysicalDeviceProperties) {
    let (count, real) = MAX_COUNT.get();
    // SAFETY: forwards the allocator's arguments.
    real.into_iter().for_each(|real| unsafe { real(device, out) });
    // SAFETY: VUID-vkGetPhysicalDeviceProperties-pProperties-parameter, and the driver has filled it.
    unsafe { (*out).limits.max_memory_allocation_count = count };
}

/// The device of one side.
pub(super) struct Tap {
    gpu: sim::Gpu,
    /// Reports the setup's `maxMemoryAllocationCount`, which the driver does not enforce.
    properties: vk::PFN_vkGetPhysicalDeviceProperties,
    live: RefCell<Vec<vk::DeviceMemory>>,
    /// The ordered fault, and the number of `vkMapMemory` calls before it.
    fault: Cell<Option<(Fault, u64)>>,
    maps_refused: Cell<u64>,
}

impl Tap {
    pub(super) fn new(setup: &ProgramSetup) -> Self {
        let gpu = sim::Gpu::builder(setup.profile).api_version(setup.version()).build();
        gpu.log_allocations(true);
        let real = gpu.instance().fp_v1_0().get_physical_device_properties;
        MAX_COUNT.set((setup.max_count.unwrap_or(0), Some(real)));
        Self {
            properties: if setup.max_count.is_some() { properties } else { real },
            gpu,
            live: RefCell::default(),
            fault: Cell::default(),
            maps_refused: Cell::default(),
        }
    }

    pub(super) fn gpu(&self) -> &sim::Gpu {
        &self.gpu
    }

    /// Returns and clears the log.
    pub(super) fn take(&self) -> TapLog {
        let mut live = self.live.borrow_mut();
        let is_live = |memory: &vk::DeviceMemory| self.gpu.memory_info(*memory).is_some();
        let (kept, freed) = live.drain(..).partition(is_live);
        *live = kept;
        let mut log = TapLog { freed, ranges: self.gpu.take_synced(), ..TapLog::default() };
        log.maps_refused = self.maps_refused.take();
        for call in self.gpu.take_log() {
            let (size, memory_type) = (call.asked.size, call.asked.type_index);
            if is_live(&call.memory) {
                live.push(call.memory);
                log.got.push(TappedMemory { memory: call.memory, size, memory_type });
            }
            log.asked.push(AllocateMemoryCall {
                size,
                memory_type,
                dedicated_to: call.asked.dedicated_kind(),
                chain: call.asked.chain,
                priority: call.asked.priority,
                flags: call.asked.flags,
                result: call.result,
            });
        }
        log
    }

    /// Replaces the ordered fault.
    pub(super) fn order(&self, fault: Option<Fault>) {
        const MAP: &str = "vkMapMemory";
        let maps = self.gpu.calls(MAP);
        if let Some((Fault { call: FaultyCall::Map, skip, times, .. }, before)) = self.fault.take() {
            let refused = (maps - before).saturating_sub(u64::from(skip)).min(u64::from(times));
            self.maps_refused.set(self.maps_refused.get() + refused);
        }
        self.gpu.faults().cancel(MAP).cancel("vkAllocateMemory");
        if let Some(Fault { call, skip, times, result }) = fault {
            let name = if call == FaultyCall::Map { MAP } else { "vkAllocateMemory" };
            for number in skip..skip + times {
                self.gpu.faults().fail_nth(name, u64::from(number), result);
            }
        }
        self.fault.set(fault.map(|fault| (fault, maps)));
    }

    /// Returns messages of the simulated driver since the last call.
    pub(super) fn messages(&self) -> Vec<String> {
        self.gpu.take_messages().iter().map(ToString::to_string).collect()
    }

    /// Destroys the device. Returns its messages, which include those of memory that is left.
    pub(super) fn finish(self) -> Vec<String> {
        self.gpu.finish().iter().map(ToString::to_string).collect()
    }

    /// Returns the functions for Sublet.
    pub(super) fn sublet_functions(&self) -> sublet::device::VulkanFunctions {
        let functions =
            sublet::device::VulkanFunctions::from_ash(self.gpu.instance(), self.gpu.api_version());
        sublet::device::VulkanFunctions {
            get_physical_device_properties: Some(self.properties),
            ..functions.with_entry(self.gpu.entry())
        }
    }

    /// Returns the functions for VMA. Functions that the device does not have must not be called.
    pub(super) fn vma_functions(&self) -> ffi::FfiVulkanFunctions {
        let (instance, device) = (self.gpu.instance(), self.gpu.device());
        let of_device = |names: [&CStr; 2]| {
            let find = instance.fp_v1_0().get_device_proc_addr;
            // SAFETY: the device is live and the name ends with a zero.
            names.iter().find_map(|name| unsafe { find(device.handle(), name.as_ptr()) })
        };
        let of_instance = |names: [&CStr; 2]| {
            let find = self.gpu.entry().static_fn().get_instance_proc_addr;
            // SAFETY: the instance is live and the name ends with a zero.
            names.iter().find_map(|name| unsafe { find(instance.handle(), name.as_ptr()) })
        };
        macro_rules! found {
            ($find:ident, $pfn:ty, $name:literal, $khr:literal) => {
                // SAFETY: the function of this name has this type.
                unsafe { transmute::<vk::PFN_vkVoidFunction, Option<$pfn>>($find([$name, $khr])) }
            };
        }
        ffi::FfiVulkanFunctions {
            get_physical_device_properties: self.properties,
            get_buffer_memory_requirements2: found!(
                of_device,
                vk::PFN_vkGetBufferMemoryRequirements2,
                c"vkGetBufferMemoryRequirements2",
                c"vkGetBufferMemoryRequirements2KHR"
            ),
            get_image_memory_requirements2: found!(
                of_device,
                vk::PFN_vkGetImageMemoryRequirements2,
                c"vkGetImageMemoryRequirements2",
                c"vkGetImageMemoryRequirements2KHR"
            ),
            bind_buffer_memory2: found!(
                of_device,
                vk::PFN_vkBindBufferMemory2,
                c"vkBindBufferMemory2",
                c"vkBindBufferMemory2KHR"
            ),
            bind_image_memory2: found!(
                of_device,
                vk::PFN_vkBindImageMemory2,
                c"vkBindImageMemory2",
                c"vkBindImageMemory2KHR"
            ),
            get_physical_device_memory_properties2: found!(
                of_instance,
                vk::PFN_vkGetPhysicalDeviceMemoryProperties2,
                c"vkGetPhysicalDeviceMemoryProperties2",
                c"vkGetPhysicalDeviceMemoryProperties2KHR"
            ),
            get_device_buffer_memory_requirements: found!(
                of_device,
                vk::PFN_vkGetDeviceBufferMemoryRequirements,
                c"vkGetDeviceBufferMemoryRequirements",
                c"vkGetDeviceBufferMemoryRequirementsKHR"
            ),
            get_device_image_memory_requirements: found!(
                of_device,
                vk::PFN_vkGetDeviceImageMemoryRequirements,
                c"vkGetDeviceImageMemoryRequirements",
                c"vkGetDeviceImageMemoryRequirementsKHR"
            ),
            ..vma::functions(instance, device)
        }
    }
}
