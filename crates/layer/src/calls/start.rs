//! Begins the recording of a device: its file, and the description of the device in it.
#![expect(unsafe_code, reason = "queries the physical device")]

use std::ffi::CStr;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{iter, ptr};

use ash::vk;
use sublet::private::index;
use sublet::trace::{Header, TraceHeap, TraceMemoryType};

use super::budget::BudgetSampler;
use crate::instance::WatchedInstance;
use crate::message::complain;
use crate::recording::WatchRecording;
use crate::settings::{WatchSettings, with_suffix};

/// The numbers that are tried for the file of a device.
const MOST_NUMBERS: usize = 1 << 16;

/// The settings and the header of a recording whose device does not exist yet.
pub(crate) struct DeviceDescription {
    settings: WatchSettings,
    header: Header,
    /// `None` if the driver reports no budgets.
    pub(crate) budget: Option<BudgetSampler>,
}

/// Queries the physical device. `None` if nothing is to be recorded.
///
/// # Safety
/// V1 and V2 hold for the parameters.
pub(crate) unsafe fn describe(
    instance: &WatchedInstance,
    physical: vk::PhysicalDevice,
) -> Option<DeviceDescription> {
    let settings = WatchSettings::of_environment()?;
    let mut properties = vk::PhysicalDeviceProperties::default();
    // SAFETY: V3, and the structure lives during the call.
    unsafe { (instance.functions.properties?)(physical, &mut properties) };
    let mut memory = vk::PhysicalDeviceMemoryProperties::default();
    // SAFETY: V3, and the structure lives during the call.
    unsafe { (instance.functions.memory_properties?)(physical, &mut memory) };
    let mut header = header(&properties, &memory);
    header.api_version = instance.api_version;
    if settings.names {
        let program = std::env::current_exe().unwrap_or_default();
        header.program = program.file_name().unwrap_or_default().to_string_lossy().into();
    }
    let query = instance.memory_properties2.filter(|_| {
        // SAFETY: the caller's.
        unsafe { has_extension(instance, physical, ash::ext::memory_budget::NAME) }
    });
    Some(DeviceDescription { settings, header, budget: query.map(BudgetSampler::new) })
}

fn header(properties: &vk::PhysicalDeviceProperties, memory: &vk::PhysicalDeviceMemoryProperties) -> Header {
    let mut header = Header::default();
    header.library_version = env!("CARGO_PKG_VERSION").into();
    header.process = std::process::id();
    header.started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs());
    let name = properties.device_name_as_c_str().unwrap_or_default();
    header.device_name = name.to_string_lossy().into();
    header.vendor_id = properties.vendor_id;
    header.device_id = properties.device_id;
    header.device_type = properties.device_type;
    header.driver_version = properties.driver_version;
    header.device_api_version = properties.api_version;
    let heaps = memory.memory_heaps.iter().take(index(memory.memory_heap_count));
    header.heaps = heaps.map(|heap| TraceHeap { size: heap.size, flags: heap.flags }).collect();
    let types = memory.memory_types.iter().take(index(memory.memory_type_count));
    let to_type =
        |kind: &vk::MemoryType| TraceMemoryType { heap: kind.heap_index, flags: kind.property_flags };
    header.memory_types = types.map(to_type).collect();
    header.buffer_image_granularity = properties.limits.buffer_image_granularity;
    header.non_coherent_atom_size = properties.limits.non_coherent_atom_size;
    header.max_memory_allocation_count = properties.limits.max_memory_allocation_count;
    header
}

/// Returns true if the driver has an extension.
///
/// # Safety
/// V1 and V2 hold for the parameters.
pub(super) unsafe fn has_extension(
    instance: &WatchedInstance,
    physical: vk::PhysicalDevice,
    name: &CStr,
) -> bool {
    let Some(enumerate) = instance.functions.extensions else { return false };
    let mut count = 0;
    // SAFETY: V3, and `count` lives during the call.
    let counted = unsafe { enumerate(physical, ptr::null(), &mut count, ptr::null_mut()) };
    if counted != vk::Result::SUCCESS {
        return false;
    }
    let mut all = vec![vk::ExtensionProperties::default(); index(count)];
    // SAFETY: V3, and the list has `count` elements.
    let listed = unsafe { enumerate(physical, ptr::null(), &mut count, all.as_mut_ptr()) };
    let is_listed = listed == vk::Result::SUCCESS || listed == vk::Result::INCOMPLETE;
    is_listed && all.iter().take(index(count)).any(|one| one.extension_name_as_c_str() == Ok(name))
}

impl DeviceDescription {
    /// Creates the file. Without it, the program runs as if the layer were absent.
    pub(crate) fn start(&self) -> Option<Arc<WatchRecording>> {
        static DEVICES: AtomicU32 = AtomicU32::new(0);
        let WatchSettings { limit, names, path } = &self.settings;
        let mut error = io::Error::from(io::ErrorKind::AlreadyExists);
        let numbers = iter::repeat_with(|| DEVICES.fetch_add(1, Ordering::Relaxed).saturating_add(1));
        // The counter begins again when the layer is loaded again, and all names of this process may be taken.
        for path in numbers.take(MOST_NUMBERS).flat_map(|number| paths(path, number)) {
            match WatchRecording::create(&path, self.header.clone(), *limit, *names) {
                Ok(recording) => return Some(recording),
                Err(refused) => error = refused,
            }
            if error.kind() != io::ErrorKind::AlreadyExists {
                break;
            }
        }
        complain(&format!("nothing is recorded: {} cannot be created: {error}", path.display()));
        None
    }
}

/// The paths for a device of this process, the best first. Existing files belong to other processes, or to an earlier
/// run, and are never overwritten.
fn paths(path: &std::path::Path, number: u32) -> [PathBuf; 2] {
    let device = if number == 1 { String::new() } else { format!("-{number}") };
    [with_suffix(path, &device), with_suffix(path, &format!("-p{}{device}", std::process::id()))]
}
