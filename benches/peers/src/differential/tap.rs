//! A layer between an allocator and its simulated driver. It logs calls, and fails calls on request.
//!
//! Both allocators get the same functions, which identify the caller by its device. Everything runs on the thread that
//! created the tap.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_void};
use std::mem::transmute;
use std::rc::Rc;

use ash::vk::{self, Handle as _};
use sublet::sim;

use crate::peers::vma::{self, ffi};

/// A structure in the chain of a `VkMemoryAllocateInfo`, with its relevant members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ChainLink {
    Export(u32),
    /// The bits of the `f32`.
    Priority(u32),
    Flags(u32),
    DedicatedBuffer,
    DedicatedImage,
    Other(i32),
}

/// A call of `vkAllocateMemory`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct AllocateMemoryCall {
    pub(super) size: u64,
    pub(super) memory_type: u32,
    /// Front to back.
    pub(super) chain: Vec<ChainLink>,
    pub(super) result: vk::Result,
}

/// A range that was flushed or invalidated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MappedRange {
    pub(super) memory: vk::DeviceMemory,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) flushed: bool,
}

/// Driver calls since the last query.
#[derive(Clone, Default, Debug)]
pub(super) struct TapLog {
    pub(super) asked: Vec<AllocateMemoryCall>,
    /// Allocated memory, in the order of `asked`, and freed memory.
    pub(super) got: Vec<vk::DeviceMemory>,
    pub(super) freed: Vec<vk::DeviceMemory>,
    pub(super) ranges: Vec<MappedRange>,
    /// Number of `vkMapMemory` calls that failed on request.
    pub(super) maps_refused: u32,
}

/// A live `VkDeviceMemory`.
#[derive(Clone, Copy, Debug)]
pub(super) struct TappedMemory {
    pub(super) size: u64,
    pub(super) memory_type: u32,
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

/// Device properties that differ from the profile's.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct PropertyOverrides {
    /// `maxMemoryAllocationCount`.
    pub(super) max_count: Option<u32>,
}

struct TapState {
    real: Real,
    pose: PropertyOverrides,
    heaps: Vec<u32>,
    live: BTreeMap<vk::DeviceMemory, TappedMemory>,
    bytes: Vec<u64>,
    /// Budget of a heap, and the usage of other processes.
    budgets: Vec<Option<(u64, u64)>>,
    fault: Option<Fault>,
    log: TapLog,
}

struct Real {
    allocate: vk::PFN_vkAllocateMemory,
    free: vk::PFN_vkFreeMemory,
    map: vk::PFN_vkMapMemory,
    flush: vk::PFN_vkFlushMappedMemoryRanges,
    invalidate: vk::PFN_vkInvalidateMappedMemoryRanges,
    properties: vk::PFN_vkGetPhysicalDeviceProperties,
    memory2: Option<vk::PFN_vkGetPhysicalDeviceMemoryProperties2>,
}

/// The log and the requests of one device.
#[derive(Clone)]
pub(super) struct Tap(Rc<RefCell<TapState>>);

struct TappedDevice {
    device: vk::Device,
    physical_device: vk::PhysicalDevice,
    tap: Tap,
}

thread_local! {
    static TAPS: RefCell<Vec<TappedDevice>> = const { RefCell::new(Vec::new()) };
}

/// While it lives, calls of its device use their tap.
pub(super) struct Registered(vk::Device);

impl Drop for Registered {
    fn drop(&mut self) {
        TAPS.with_borrow_mut(|taps| taps.retain(|entry| entry.device != self.0));
    }
}

/// Returns the function with one of these names.
fn lookup(gpu: &sim::Gpu, names: &[&CStr]) -> vk::PFN_vkVoidFunction {
    let find = gpu.instance().fp_v1_0().get_device_proc_addr;
    // SAFETY: the device is live and the name ends with a zero.
    names.iter().find_map(|name| unsafe { find(gpu.device().handle(), name.as_ptr()) })
}

impl Tap {
    pub(super) fn new(gpu: &sim::Gpu, pose: PropertyOverrides) -> (Self, Registered) {
        let core = gpu.device().fp_v1_0();
        let find = gpu.entry().static_fn().get_instance_proc_addr;
        let names = [c"vkGetPhysicalDeviceMemoryProperties2", c"vkGetPhysicalDeviceMemoryProperties2KHR"];
        let instance = gpu.instance().handle();
        // SAFETY: the instance is live and the name ends with a zero.
        let memory2 = names.iter().find_map(|name| unsafe { find(instance, name.as_ptr()) });
        let real = Real {
            allocate: core.allocate_memory,
            free: core.free_memory,
            map: core.map_memory,
            flush: core.flush_mapped_memory_ranges,
            invalidate: core.invalidate_mapped_memory_ranges,
            properties: gpu.instance().fp_v1_0().get_physical_device_properties,
            // SAFETY: the function of this name has this type.
            memory2: unsafe {
                transmute::<vk::PFN_vkVoidFunction, Option<vk::PFN_vkGetPhysicalDeviceMemoryProperties2>>(
                    memory2,
                )
            },
        };
        let profile = gpu.profile();
        let count = profile.heaps.len();
        let tap = Self(Rc::new(RefCell::new(TapState {
            real,
            pose,
            heaps: profile.types.iter().map(|kind| kind.heap).collect(),
            live: BTreeMap::new(),
            bytes: vec![0; count],
            budgets: vec![None; count],
            fault: None,
            log: TapLog::default(),
        })));
        let (device, physical_device) = (gpu.device().handle(), gpu.physical_device());
        TAPS.with_borrow_mut(|taps| taps.push(TappedDevice { device, physical_device, tap: tap.clone() }));
        (tap, Registered(device))
    }

    /// Returns and clears the log.
    pub(super) fn take(&self) -> TapLog {
        std::mem::take(&mut self.0.borrow_mut().log)
    }

    pub(super) fn order(&self, fault: Option<Fault>) {
        self.0.borrow_mut().fault = fault;
    }

    /// Sets a heap's budget, and the usage of other processes.
    pub(super) fn set_budget(&self, heap: usize, budget: u64, others: u64) {
        self.0.borrow_mut().budgets[heap] = Some((budget, others));
    }

    pub(super) fn live(&self, memory: vk::DeviceMemory) -> Option<TappedMemory> {
        self.0.borrow().live.get(&memory).copied()
    }

    /// Returns the bytes allocated from each heap.
    pub(super) fn bytes(&self) -> Vec<u64> {
        self.0.borrow().bytes.clone()
    }

    pub(super) fn live_count(&self) -> usize {
        self.0.borrow().live.len()
    }

    /// Returns the functions for Sublet.
    pub(super) fn sublet_functions(&self, gpu: &sim::Gpu) -> sublet::device::VulkanFunctions {
        let functions = sublet::device::VulkanFunctions::from_ash(gpu.instance(), gpu.api_version());
        let has_memory2 = self.0.borrow().real.memory2.is_some();
        sublet::device::VulkanFunctions {
            allocate_memory: Some(allocate),
            free_memory: Some(free),
            map_memory: Some(map),
            flush_mapped_memory_ranges: Some(flush),
            invalidate_mapped_memory_ranges: Some(invalidate),
            get_physical_device_properties: Some(properties),
            get_physical_device_memory_properties2: if has_memory2 { Some(memory2) } else { None },
            ..functions.with_entry(gpu.entry())
        }
    }

    /// Returns the functions for VMA.
    pub(super) fn vma_functions(&self, gpu: &sim::Gpu) -> ffi::FfiVulkanFunctions {
        let has_memory2 = self.0.borrow().real.memory2.is_some();
        macro_rules! found {
            ($pfn:ty, $($name:literal),*) => {
                // SAFETY: the function of this name has this type.
                unsafe { transmute::<vk::PFN_vkVoidFunction, Option<$pfn>>(lookup(gpu, &[$($name),*])) }
            };
        }
        let one_three = vk::api_version_minor(gpu.api_version()) >= 3;
        let has_maintenance4 = one_three || gpu.extensions().iter().any(|name| name == "VK_KHR_maintenance4");
        ffi::FfiVulkanFunctions {
            get_physical_device_properties: properties,
            allocate_memory: allocate,
            free_memory: free,
            map_memory: map,
            flush_mapped_memory_ranges: flush,
            invalidate_mapped_memory_ranges: invalidate,
            get_buffer_memory_requirements2: found!(
                vk::PFN_vkGetBufferMemoryRequirements2,
                c"vkGetBufferMemoryRequirements2",
                c"vkGetBufferMemoryRequirements2KHR"
            ),
            get_image_memory_requirements2: found!(
                vk::PFN_vkGetImageMemoryRequirements2,
                c"vkGetImageMemoryRequirements2",
                c"vkGetImageMemoryRequirements2KHR"
            ),
            bind_buffer_memory2: found!(
                vk::PFN_vkBindBufferMemory2,
                c"vkBindBufferMemory2",
                c"vkBindBufferMemory2KHR"
            ),
            bind_image_memory2: found!(
                vk::PFN_vkBindImageMemory2,
                c"vkBindImageMemory2",
                c"vkBindImageMemory2KHR"
            ),
            get_physical_device_memory_properties2: if has_memory2 { Some(memory2) } else { None },
            get_device_buffer_memory_requirements: if has_maintenance4 {
                found!(
                    vk::PFN_vkGetDeviceBufferMemoryRequirements,
                    c"vkGetDeviceBufferMemoryRequirements",
                    c"vkGetDeviceBufferMemoryRequirementsKHR"
                )
            } else {
                None
            },
            get_device_image_memory_requirements: if has_maintenance4 {
                found!(
                    vk::PFN_vkGetDeviceImageMemoryRequirements,
                    c"vkGetDeviceImageMemoryRequirements",
                    c"vkGetDeviceImageMemoryRequirementsKHR"
                )
            } else {
                None
            },
            ..vma::functions(gpu.instance(), gpu.device())
        }
    }
}

/// Finds a tap and passes its state to a closure.
fn find<R>(whose: impl Fn(&TappedDevice) -> bool, look: impl FnOnce(&mut TapState) -> R) -> R {
    TAPS.with_borrow(|taps| match taps.iter().find(|entry| whose(entry)) {
        Some(entry) => look(&mut entry.tap.0.borrow_mut()),
        None => panic!("a device that has no tap on this thread"),
    })
}

fn with<R>(device: vk::Device, look: impl FnOnce(&mut TapState) -> R) -> R {
    find(|entry| entry.device == device, look)
}

fn with_physical<R>(device: vk::PhysicalDevice, look: impl FnOnce(&mut TapState) -> R) -> R {
    find(|entry| entry.physical_device == device, look)
}

impl TapState {
    /// Returns the error with which a call must fail, if any.
    fn fails(&mut self, call: FaultyCall) -> Option<vk::Result> {
        let fault = self.fault.as_mut().filter(|fault| fault.call == call)?;
        if let Some(left) = fault.skip.checked_sub(1) {
            fault.skip = left;
            return None;
        }
        fault.times = fault.times.checked_sub(1)?;
        Some(fault.result)
    }
}

/// # Safety
/// The chain is valid.
unsafe fn links(mut next: *const c_void) -> Vec<ChainLink> {
    let mut links = Vec::new();
    while !next.is_null() {
        // SAFETY: every structure of a chain begins with these members.
        let base = unsafe { &*next.cast::<vk::BaseInStructure<'_>>() };
        links.push(match base.s_type {
            vk::StructureType::EXPORT_MEMORY_ALLOCATE_INFO => {
                // SAFETY: the type tag determines the structure.
                ChainLink::Export(
                    unsafe { &*next.cast::<vk::ExportMemoryAllocateInfo<'_>>() }.handle_types.as_raw(),
                )
            }
            vk::StructureType::MEMORY_PRIORITY_ALLOCATE_INFO_EXT => {
                // SAFETY: as above.
                let info = unsafe { &*next.cast::<vk::MemoryPriorityAllocateInfoEXT<'_>>() };
                ChainLink::Priority(info.priority.to_bits())
            }
            vk::StructureType::MEMORY_ALLOCATE_FLAGS_INFO => {
                // SAFETY: as above.
                ChainLink::Flags(unsafe { &*next.cast::<vk::MemoryAllocateFlagsInfo<'_>>() }.flags.as_raw())
            }
            vk::StructureType::MEMORY_DEDICATED_ALLOCATE_INFO => {
                // SAFETY: as above.
                let info = unsafe { &*next.cast::<vk::MemoryDedicatedAllocateInfo<'_>>() };
                if info.image.is_null() { ChainLink::DedicatedBuffer } else { ChainLink::DedicatedImage }
            }
            other => ChainLink::Other(other.as_raw()),
        });
        next = base.p_next.cast();
    }
    links
}

unsafe extern "system" fn allocate(
    device: vk::Device,
    info: *const vk::MemoryAllocateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    memory: *mut vk::DeviceMemory,
) -> vk::Result {
    // SAFETY: VUID-vkAllocateMemory-pAllocateInfo-parameter.
    let given = unsafe { &*info };
    // SAFETY: VUID-VkMemoryAllocateInfo-pNext-pNext.
    let chain = unsafe { links(given.p_next) };
    let (fault, real) = with(device, |state| (state.fails(FaultyCall::Allocate), state.real.allocate));
    // SAFETY: forwards the allocator's arguments.
    let result = fault.unwrap_or_else(|| unsafe { real(device, info, callbacks, memory) });
    with(device, |state| {
        let (size, memory_type) = (given.allocation_size, given.memory_type_index);
        state.log.asked.push(AllocateMemoryCall { size, memory_type, chain, result });
        if result == vk::Result::SUCCESS {
            // SAFETY: VUID-vkAllocateMemory-pMemory-parameter, and it was written just now.
            let got = unsafe { *memory };
            state.log.got.push(got);
            state.live.insert(got, TappedMemory { size, memory_type });
            let heap = state.heaps[memory_type as usize] as usize;
            state.bytes[heap] += size;
        }
    });
    result
}

unsafe extern "system" fn free(
    device: vk::Device,
    memory: vk::DeviceMemory,
    callbacks: *const vk::AllocationCallbacks<'_>,
) {
    let real = with(device, |state| {
        state.log.freed.push(memory);
        if let Some(freed) = state.live.remove(&memory) {
            let heap = state.heaps[freed.memory_type as usize] as usize;
            state.bytes[heap] -= freed.size;
        }
        state.real.free
    });
    // SAFETY: forwards the allocator's arguments.
    unsafe { real(device, memory, callbacks) };
}

unsafe extern "system" fn map(
    device: vk::Device,
    memory: vk::DeviceMemory,
    offset: vk::DeviceSize,
    size: vk::DeviceSize,
    flags: vk::MemoryMapFlags,
    data: *mut *mut c_void,
) -> vk::Result {
    let (fault, real) = with(device, |state| {
        let fault = state.fails(FaultyCall::Map);
        state.log.maps_refused += u32::from(fault.is_some());
        (fault, state.real.map)
    });
    // SAFETY: forwards the allocator's arguments.
    fault.unwrap_or_else(|| unsafe { real(device, memory, offset, size, flags, data) })
}

/// # Safety
/// `ranges` has `count` elements.
unsafe fn log_ranges(
    device: vk::Device,
    count: u32,
    ranges: *const vk::MappedMemoryRange<'_>,
    flushed: bool,
) {
    // SAFETY: guaranteed by the caller.
    let ranges = unsafe { std::slice::from_raw_parts(ranges, count as usize) };
    with(device, |state| {
        state.log.ranges.extend(ranges.iter().map(|range| MappedRange {
            memory: range.memory,
            offset: range.offset,
            size: range.size,
            flushed,
        }));
    });
}

unsafe extern "system" fn flush(
    device: vk::Device,
    count: u32,
    ranges: *const vk::MappedMemoryRange<'_>,
) -> vk::Result {
    // SAFETY: VUID-vkFlushMappedMemoryRanges-pMemoryRanges-parameter.
    unsafe { log_ranges(device, count, ranges, true) };
    let real = with(device, |state| state.real.flush);
    // SAFETY: forwards the allocator's arguments.
    unsafe { real(device, count, ranges) }
}

unsafe extern "system" fn invalidate(
    device: vk::Device,
    count: u32,
    ranges: *const vk::MappedMemoryRange<'_>,
) -> vk::Result {
    // SAFETY: VUID-vkInvalidateMappedMemoryRanges-pMemoryRanges-parameter.
    unsafe { log_ranges(device, count, ranges, false) };
    let real = with(device, |state| state.real.invalidate);
    // SAFETY: forwards the allocator's arguments.
    unsafe { real(device, count, ranges) }
}

unsafe extern "system" fn properties(
    physical_device: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceProperties,
) {
    let (real, pose) = with_physical(physical_device, |state| (state.real.properties, state.pose));
    // SAFETY: forwards the allocator's arguments.
    unsafe { real(physical_device, out) };
    if let Some(count) = pose.max_count {
        // SAFETY: VUID-vkGetPhysicalDeviceProperties-pProperties-parameter, and the driver has filled it.
        unsafe { (*out).limits.max_memory_allocation_count = count };
    }
}

unsafe extern "system" fn memory2(
    physical_device: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceMemoryProperties2<'_>,
) {
    let Some(real) = with_physical(physical_device, |state| state.real.memory2) else { return };
    // SAFETY: forwards the allocator's arguments.
    unsafe { real(physical_device, out) };
    // SAFETY: VUID-vkGetPhysicalDeviceMemoryProperties2-pMemoryProperties-parameter.
    let mut next = unsafe { (*out).p_next };
    while !next.is_null() {
        // SAFETY: every structure of a chain begins with these members.
        let base = unsafe { &*next.cast::<vk::BaseOutStructure<'_>>() };
        if base.s_type == vk::StructureType::PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT {
            let budget = next.cast::<vk::PhysicalDeviceMemoryBudgetPropertiesEXT<'_>>();
            with_physical(physical_device, |state| {
                for (heap, order) in state.budgets.iter().enumerate() {
                    if let Some((most, others)) = order {
                        // SAFETY: the type tag determines the structure.
                        let budget = unsafe { &mut *budget };
                        budget.heap_budget[heap] = *most;
                        budget.heap_usage[heap] = state.bytes[heap] + others;
                    }
                }
            });
            return;
        }
        next = base.p_next.cast();
    }
}
