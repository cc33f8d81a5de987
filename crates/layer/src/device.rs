//! Creation of devices.
#![expect(unsafe_code, reason = "the functions have the C ABI, and call the next layer")]

use std::ffi::{CStr, c_char};
use std::mem::transmute;
use std::sync::Arc;

use ash::vk::{self, Handle as _};
use ash_layer::{LayerDeviceCreateInfo, LayerDeviceLink, LayerFunction};

use crate::calls::FAILED;
use crate::calls::budget::BudgetSampler;
use crate::calls::report::{DriverReport, ReportChain};
use crate::calls::start;
use crate::chain;
use crate::instance::WatchedInstance;
use crate::recording::{RecordedAccess, WatchRecording};
use crate::registry::{Registry, key_of};
use crate::table::{self, DeviceFunctions};

static DEVICES: Registry<WatchedDevice> = Registry::new();

/// A device, the functions of the next layer, and the recording.
pub(crate) struct WatchedDevice {
    pub(crate) physical: vk::PhysicalDevice,
    pub(crate) functions: DeviceFunctions,
    /// `None` if nothing is recorded.
    pub(crate) recording: Option<Arc<WatchRecording>>,
    /// `None` if the driver reports no budgets.
    pub(crate) budget: Option<BudgetSampler>,
    /// The driver calls back with a pointer to it, so it lives as long as the device.
    _report: Option<Arc<DriverReport>>,
}

impl WatchedDevice {
    /// Returns the state that belongs to a device, a queue or a command buffer.
    ///
    /// # Safety
    /// V2 holds for `handle` during `'a`.
    #[inline]
    pub(crate) unsafe fn of<'a, H: vk::Handle>(handle: H) -> Option<&'a Self> {
        // SAFETY: the caller's.
        let key = unsafe { key_of(handle) };
        // SAFETY: V2: the device is destroyed after this call.
        unsafe { DEVICES.find(key) }
    }

    /// Calls `visit` with each device.
    pub(crate) fn for_each(visit: impl FnMut(&Self)) {
        DEVICES.for_each(visit);
    }

    /// Records a call, if anything is recorded.
    #[inline]
    pub(crate) fn record(&self, body: impl FnOnce(&mut RecordedAccess<'_>)) {
        if let Some(recording) = &self.recording {
            recording.record(body);
        }
    }

    /// Records that the device is lost, if that is the result. Returns the result.
    #[inline]
    pub(crate) fn checked(&self, result: vk::Result) -> vk::Result {
        if result == vk::Result::ERROR_DEVICE_LOST {
            if let Some(recording) = &self.recording {
                recording.device_lost();
            }
        }
        result
    }
}

/// The loader's link to the next layer, and the link as it was, which a second `vkCreateDevice` without the report needs.
struct DeviceLink {
    info: *mut LayerDeviceCreateInfo,
    next: *mut LayerDeviceLink,
    get_instance_proc_addr: vk::PFN_vkGetInstanceProcAddr,
    get_device_proc_addr: vk::PFN_vkGetDeviceProcAddr,
}

impl DeviceLink {
    /// Finds the loader's description of the next layer.
    ///
    /// # Safety
    /// V1 holds for `info`, and the loader created its chain.
    unsafe fn find(info: &vk::DeviceCreateInfo<'_>) -> Option<Self> {
        // SAFETY: the caller's.
        let all = unsafe { chain::of_type::<LayerDeviceCreateInfo>(info.p_next) };
        for link in all.map(<*const _>::cast_mut) {
            // SAFETY: V1: the type of the structure is the one that `sType` states.
            let found = unsafe { link.as_ref() }?;
            if found.function != LayerFunction::LAYER_LINK_INFO {
                continue;
            }
            // SAFETY: this function is the discriminant of the union.
            let layer = unsafe { found.u.p_layer_info };
            // SAFETY: the loader points to a link for each layer.
            let layer = unsafe { layer.as_ref() }?;
            return Some(Self {
                info: link,
                next: layer.p_next,
                get_instance_proc_addr: layer.pfn_next_get_instance_proc_addr?,
                get_device_proc_addr: layer.pfn_next_get_device_proc_addr?,
            });
        }
        None
    }

    /// Moves the link to the layer after the next one, as the next layer expects.
    fn advance(&self) {
        // SAFETY: the structure lives as long as `vkCreateDevice`, and the loader lets each layer move its link.
        if let Some(info) = unsafe { self.info.as_mut() } {
            info.u.p_layer_info = self.next;
        }
    }
}

pub(crate) unsafe extern "system" fn create_device(
    physical: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    device: *mut vk::Device,
) -> vk::Result {
    // SAFETY: V2.
    let Some(instance) = (unsafe { WatchedInstance::of(physical) }) else { return FAILED };
    // SAFETY: V1.
    let Some(given) = (unsafe { info.as_ref() }) else { return FAILED };
    // SAFETY: V1, and the loader calls this function.
    let Some(link) = (unsafe { DeviceLink::find(given) }) else { return FAILED };
    // SAFETY: V3, and the instance is live.
    let create = unsafe { (link.get_instance_proc_addr)(instance.handle, c"vkCreateDevice".as_ptr()) };
    let Some(create) = create else { return FAILED };
    // SAFETY: V3.
    let create = unsafe { transmute::<unsafe extern "system" fn(), vk::PFN_vkCreateDevice>(create) };
    // SAFETY: V1 and V2.
    let description = unsafe { start::describe(instance, physical) };
    let mut report = None;
    let mut result = FAILED;
    if description.is_some() {
        // SAFETY: V1 and V2.
        report = unsafe { ReportChain::new(instance, physical, given) };
        if let Some(chain) = &report {
            link.advance();
            // SAFETY: the chain is that of the program, with two structures and an extension added.
            result = unsafe { create(physical, chain.info(), callbacks, device) };
        }
    }
    if result != vk::Result::SUCCESS {
        report = None;
        link.advance();
        // SAFETY: the parameters are those of the program.
        result = unsafe { create(physical, info, callbacks, device) };
    }
    if result == vk::Result::SUCCESS {
        // SAFETY: V1: the next layer wrote the handle.
        let handle = unsafe { *device };
        // SAFETY: V3, and the device is live.
        let functions = unsafe { DeviceFunctions::load(link.get_device_proc_addr, handle) };
        let recording = description.as_ref().and_then(start::DeviceDescription::start);
        let report = report.map(ReportChain::into_report).inspect(|report| report.begin(recording.as_ref()));
        let budget = description.filter(|_| recording.is_some()).and_then(|known| known.budget);
        // SAFETY: V2.
        let key = unsafe { key_of(handle) };
        DEVICES
            .insert(key, Box::new(WatchedDevice { physical, functions, recording, budget, _report: report }));
    }
    result
}

pub(crate) unsafe extern "system" fn destroy_device(
    device: vk::Device,
    callbacks: *const vk::AllocationCallbacks<'_>,
) {
    if device.is_null() {
        return;
    }
    // The next layer frees the object that has the key.
    // SAFETY: V2.
    let key = unsafe { key_of(device) };
    let Some(known) = DEVICES.remove(key) else { return };
    if let Some(destroy) = known.functions.destroy_device {
        // SAFETY: V3, and the parameters are those of the program.
        unsafe { destroy(device, callbacks) };
    }
    // The driver reports the last frees of its own memory while the device is destroyed.
    if let Some(recording) = &known.recording {
        recording.finish();
    }
}

/// `vkGetDeviceProcAddr` of this layer.
pub(crate) unsafe extern "system" fn get_device_proc_addr(
    device: vk::Device,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    if name.is_null() {
        return None;
    }
    // SAFETY: V2.
    let known = unsafe { WatchedDevice::of(device) }?;
    let get = known.functions.get_device_proc_addr?;
    // SAFETY: V3, and the parameters are those of the program.
    let next = unsafe { get(device, name) }?;
    // SAFETY: V1: a text that ends with a zero.
    let text = unsafe { CStr::from_ptr(name) };
    let own = table::intercepted_of_device(text);
    let needed = known.recording.is_some() || [c"vkDestroyDevice", c"vkGetDeviceProcAddr"].contains(&text);
    // A function that the next layer does not have does not exist for the program either.
    Some(own.filter(|_| needed).unwrap_or(next))
}
