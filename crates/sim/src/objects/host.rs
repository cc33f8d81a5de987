//! The life of an object with allocation callbacks: its host memory, its place among the device's objects, its end.
//!
//! The driver needs no host memory from the program. If the program gives callbacks, it asks for some all the same, so
//! that a test can count them.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;

use ash::vk;
use ash::vk::Handle;

use crate::facts::chain;
use crate::objects::host_bytes::HostBytes;
use crate::objects::state::{DeviceObject, DeviceState, Label};

/// The host memory that an object takes, in bytes. Real drivers take about as much.
const BYTES: usize = 64;
const ALIGNMENT: usize = 16;

/// Takes host memory for an object.
///
/// # Safety
///
/// 1. `callbacks` is NULL or valid.
/// 2. No lock of the driver is held: a callback is code of the program.
pub(crate) unsafe fn take(callbacks: *const vk::AllocationCallbacks<'_>) -> Result<HostBytes, vk::Result> {
    // SAFETY: 1 of `take`.
    let Some(callbacks) = (unsafe { callbacks.as_ref() }) else {
        return Ok(HostBytes::default());
    };
    let Some(allocate) = callbacks.pfn_allocation else {
        return Ok(HostBytes(Some(0)));
    };
    let scope = vk::SystemAllocationScope::OBJECT;
    // SAFETY: the function is what Vulkan says that it is (VUID-VkAllocationCallbacks-pfnAllocation-00632).
    let bytes = unsafe { allocate(callbacks.p_user_data, BYTES, ALIGNMENT, scope) };
    if bytes.is_null() {
        return Err(vk::Result::ERROR_OUT_OF_HOST_MEMORY);
    }
    Ok(HostBytes(Some(bytes.expose_provenance())))
}

/// Gives host memory back through the callbacks of the object's destruction.
///
/// # Safety
///
/// 1. `callbacks` is NULL or valid.
/// 2. No lock of the driver is held.
/// 3. `bytes` came from [`take`] with compatible callbacks, and is given back once.
pub(crate) unsafe fn give_back(callbacks: *const vk::AllocationCallbacks<'_>, bytes: HostBytes) {
    // SAFETY: 1 of `give_back`.
    let Some(callbacks) = (unsafe { callbacks.as_ref() }) else { return };
    if let (Some(bytes @ 1..), Some(free)) = (bytes.0, callbacks.pfn_free) {
        let bytes = std::ptr::with_exposed_provenance_mut::<c_void>(bytes);
        // SAFETY: as in `take` (VUID-VkAllocationCallbacks-pfnFree-00634); 3 of `give_back`.
        unsafe { free(callbacks.p_user_data, bytes) };
    }
}

/// Creates an object: takes its host memory, lets `insert` put it among the device's objects, and writes its handle.
///
/// # Safety
///
/// 1. `callbacks` is NULL or valid.
/// 2. No lock of the driver is held.
/// 3. `p_handle` is NULL, or valid for a write.
pub(crate) unsafe fn create<H: Handle + Copy>(
    device: &DeviceObject,
    callbacks: *const vk::AllocationCallbacks<'_>,
    p_handle: *mut H,
    insert: impl FnOnce(&mut DeviceState, H, HostBytes),
) -> vk::Result {
    // SAFETY: 1 and 2 of `create`.
    let host = match unsafe { take(callbacks) } {
        Ok(host) => host,
        Err(error) => return error,
    };
    let handle = device.gpu_state.handle();
    insert(&mut device.state.lock(), handle, host);
    // SAFETY: 3 of `create`.
    unsafe { chain::output(p_handle, handle) };
    vk::Result::SUCCESS
}

/// Destroys an object, unless its handle is NULL: lets `remove` take it from the device's objects, and gives its host
/// memory back.
///
/// `rules` are those of a handle that has no object, of callbacks at creation alone, and of callbacks at destruction
/// alone.
///
/// # Safety
///
/// 1. `callbacks` is NULL or valid.
/// 2. No lock of the driver is held.
/// 3. If the object was created with callbacks, these are compatible.
pub(crate) unsafe fn destroy<H: Handle + Copy>(
    device: &DeviceObject,
    handle: H,
    callbacks: *const vk::AllocationCallbacks<'_>,
    rules: [&'static str; 3],
    remove: impl FnOnce(&mut DeviceState, &Label) -> Option<HostBytes>,
) {
    if let Some((name, host)) = forget(device, handle, rules[0], remove) {
        check_callbacks(device, &name, host, callbacks, [rules[1], rules[2]]);
        // SAFETY: 1 to 3 of `destroy`; `remove` has taken the object from the others, so this is the one time.
        unsafe { give_back(callbacks, host) };
    }
}

/// Defines a call that destroys an object: the function with the object's handle, the call's name, how its rules end,
/// and the body of `remove` as for [`destroy`].
macro_rules! destroys {
    (
        $visibility:vis fn $function:ident($handle:ident: $type:ty) = $name:literal, [$($rule:literal),*],
        |$device:ident, $state:ident, $label:pat_param| $remove:expr
    ) => {
        #[expect(unsafe_code, reason = "the functions have the C ABI")]
        $visibility unsafe extern "system" fn $function(
            device: ash::vk::Device,
            $handle: $type,
            callbacks: *const ash::vk::AllocationCallbacks<'_>,
        ) {
            $crate::objects::entry::on_device(device, $name, |$device| {
                let remove =
                    |$state: &mut $crate::objects::state::DeviceState, $label: &$crate::objects::state::Label| $remove;
                let rules = [$(concat!("VUID-", $name, "-", $rule)),*];
                // SAFETY: 1: the call's rule pAllocator-parameter. 2: no lock is held. 3: the second of `rules`.
                unsafe { $crate::objects::host::destroy($device, $handle, callbacks, rules, remove) };
            });
        }
    };
}
pub(crate) use destroys;

/// Forgets an object and its name, unless its handle is NULL; `remove` takes the object. Reports `unknown` if there is
/// no such object.
pub(crate) fn forget<H: Handle + Copy, T>(
    device: &DeviceObject,
    handle: H,
    unknown: &'static str,
    remove: impl FnOnce(&mut DeviceState, &Label) -> Option<T>,
) -> Option<(Label, T)> {
    if handle.is_null() {
        return None;
    }
    let mut state = device.state.lock();
    let name = state.label(handle);
    let Some(removed) = remove(&mut state, &name) else {
        device.report(unknown, format!("{name} {}", device.gpu_state.fate(handle)));
        return None;
    };
    state.names.remove(&handle.as_raw());
    Some((name, removed))
}

/// Allocation callbacks come at creation and destruction, or at neither.
pub(crate) fn check_callbacks(
    device: &DeviceObject,
    name: &Label,
    created: HostBytes,
    destroyed: *const vk::AllocationCallbacks<'_>,
    rules: [&'static str; 2],
) {
    match (created.0.is_some(), !destroyed.is_null()) {
        (true, false) => device.report(rules[0], format!("{name} was created with allocation callbacks")),
        (false, true) => device.report(rules[1], format!("{name} was created without allocation callbacks")),
        _ => {}
    }
}
