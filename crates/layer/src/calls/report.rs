//! Memory that the driver allocates for its own objects: `VK_EXT_device_memory_report`.
//!
//! The layer enables the extension if the driver has it. It has no functions, so the program sees the same device.
#![expect(unsafe_code, reason = "extends the creation of a device, and the driver calls back")]

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::{Arc, OnceLock};

use ash::ext::device_memory_report::NAME;
use ash::vk;
use parking_lot::Mutex;
use sublet::private::Operation;

use super::{raw, slice, start};
use crate::chain;
use crate::instance::{WatchedInstance, names_contain};
use crate::recording::WatchRecording;

/// The events that are kept until the recording begins: those of the creation of the device.
const MOST_EARLY: usize = 1 << 16;

/// Receives the driver's events.
#[derive(Debug, Default)]
pub(crate) struct DriverReport {
    recording: OnceLock<Option<Arc<WatchRecording>>>,
    early: Mutex<Vec<[u64; 5]>>,
}

impl DriverReport {
    /// Records the events so far, and from now on all others at once.
    pub(crate) fn begin(&self, recording: Option<&Arc<WatchRecording>>) {
        let mut early = self.early.lock();
        let _ = self.recording.set(recording.cloned());
        for event in std::mem::take(&mut *early) {
            self.record(&event);
        }
    }

    fn record(&self, event: &[u64; 5]) {
        if let Some(Some(recording)) = self.recording.get() {
            recording.put(Operation::DriverMemory, event);
        }
    }

    fn receive(&self, event: [u64; 5]) {
        if self.recording.get().is_none() {
            let mut early = self.early.lock();
            // Otherwise `begin` was faster.
            if self.recording.get().is_none() {
                if early.len() < MOST_EARLY {
                    early.push(event);
                }
                return;
            }
        }
        self.record(&event);
    }
}

unsafe extern "system" fn receive(
    data: *const vk::DeviceMemoryReportCallbackDataEXT<'_>,
    report: *mut c_void,
) {
    // SAFETY: the driver passes a valid structure.
    let Some(data) = (unsafe { data.as_ref() }) else { return };
    // SAFETY: the pointer is that of a report, which lives longer than its device: see `ReportChain`.
    let Some(report) = (unsafe { report.cast::<DriverReport>().as_ref() }) else { return };
    // The program's own memory, which its calls describe.
    if data.object_type == vk::ObjectType::DEVICE_MEMORY {
        return;
    }
    let kind = raw(data.ty.as_raw());
    let object = raw(data.object_type.as_raw());
    // The driver leaves both undefined when memory ends.
    let is_end = data.ty == vk::DeviceMemoryReportEventTypeEXT::FREE
        || data.ty == vk::DeviceMemoryReportEventTypeEXT::UNIMPORT;
    let (size, heap) = if is_end { (0, 0) } else { (data.size, data.heap_index.into()) };
    report.receive([kind, data.memory_object_id, object, size, heap]);
}

/// The program's description of a device, with the extension.
pub(crate) struct ReportChain {
    info: vk::DeviceCreateInfo<'static>,
    report: Arc<DriverReport>,
    // `info` points to these.
    _extensions: Vec<*const c_char>,
    _create: Box<vk::DeviceDeviceMemoryReportCreateInfoEXT<'static>>,
    _features: Box<vk::PhysicalDeviceDeviceMemoryReportFeaturesEXT<'static>>,
}

impl ReportChain {
    /// Extends a description. `None` if the driver does not have the extension, or the program has disabled it.
    ///
    /// # Safety
    /// V1 and V2 hold for the parameters. `info` lives as long as the result.
    pub(crate) unsafe fn new(
        instance: &WatchedInstance,
        physical: vk::PhysicalDevice,
        info: &vk::DeviceCreateInfo<'_>,
    ) -> Option<Self> {
        // SAFETY: the caller's.
        let own = unsafe { chain::find::<vk::PhysicalDeviceDeviceMemoryReportFeaturesEXT<'_>>(info.p_next) };
        // SAFETY: the caller's.
        let named =
            unsafe { names_contain(info.pp_enabled_extension_names, info.enabled_extension_count, NAME) };
        // SAFETY: the caller's.
        let is_supported = unsafe { is_supported(instance, physical) };
        if !is_supported || own.is_some_and(|own| own.device_memory_report != vk::TRUE) {
            return None;
        }
        // SAFETY: the caller's.
        let mut extensions =
            unsafe { slice(info.pp_enabled_extension_names, info.enabled_extension_count) }.to_vec();
        if !named {
            extensions.push(NAME.as_ptr());
        }
        let report = Arc::new(DriverReport::default());
        let mut features = Box::new(vk::PhysicalDeviceDeviceMemoryReportFeaturesEXT::default());
        features.device_memory_report = vk::TRUE;
        let mut create = Box::new(vk::DeviceDeviceMemoryReportCreateInfoEXT::default());
        create.pfn_user_callback = Some(receive);
        create.p_user_data = Arc::as_ptr(&report).cast_mut().cast();
        create.p_next = info.p_next;
        if own.is_none() {
            features.p_next = info.p_next.cast_mut();
            create.p_next = ptr::from_ref(&*features).cast();
        }
        let extended = vk::DeviceCreateInfo {
            p_next: ptr::from_ref(&*create).cast(),
            pp_enabled_extension_names: extensions.as_ptr(),
            enabled_extension_count: u32::try_from(extensions.len()).ok()?,
            flags: info.flags,
            queue_create_info_count: info.queue_create_info_count,
            p_queue_create_infos: info.p_queue_create_infos.cast(),
            p_enabled_features: info.p_enabled_features,
            ..vk::DeviceCreateInfo::default()
        };
        Some(Self { info: extended, report, _extensions: extensions, _create: create, _features: features })
    }

    pub(crate) fn info(&self) -> &vk::DeviceCreateInfo<'static> {
        &self.info
    }

    /// Returns the report, which must live as long as the device.
    pub(crate) fn into_report(self) -> Arc<DriverReport> {
        self.report
    }
}

/// Returns true if the driver has the extension and its feature.
///
/// # Safety
/// V1 and V2 hold for the parameters.
unsafe fn is_supported(instance: &WatchedInstance, physical: vk::PhysicalDevice) -> bool {
    let Some(get) = instance.features2 else { return false };
    // SAFETY: the caller's.
    if !unsafe { start::has_extension(instance, physical, NAME) } {
        return false;
    }
    let mut features = vk::PhysicalDeviceDeviceMemoryReportFeaturesEXT::default();
    let mut all = vk::PhysicalDeviceFeatures2::default().push_next(&mut features);
    // SAFETY: V3, and the structures live during the call.
    unsafe { get(physical, &mut all) };
    features.device_memory_report == vk::TRUE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_before_the_recording_are_kept() {
        let report = DriverReport::default();
        report.receive([0, 1, 2, 3, 4]);
        assert_eq!(report.early.lock().len(), 1);
        report.begin(None);
        report.receive([1, 1, 2, 3, 4]);
        assert!(report.early.lock().is_empty());
    }
}
