//! The recorded functions. Each calls the next layer with the program's parameters, returns its result, and records
//! the call.

pub(crate) mod bind;
pub(crate) mod budget;
mod given;
pub(crate) mod memory;
pub(crate) mod names;
pub(crate) mod queue;
pub(crate) mod report;
pub(crate) mod resources;
pub(crate) mod sparse;
pub(crate) mod start;

pub(crate) use given::slice;

use ash::vk;

/// The result of a call that the layer neither answers nor forwards.
pub(crate) const FAILED: vk::Result = vk::Result::ERROR_INITIALIZATION_FAILED;

/// Returns a value of an enum as a number. A negative one becomes a number of 32 bits.
fn raw(value: i32) -> u64 {
    u32::from_le_bytes(value.to_le_bytes()).into()
}

/// Finds the device of a handle, and the function of the next layer. Returns from the calling function if there is
/// none, which V2 and V3 exclude.
macro_rules! next {
    ($handle:expr, $function:ident $(, $missing:expr)?) => {{
        // SAFETY: V2.
        let found = unsafe { crate::device::WatchedDevice::of($handle) };
        let Some(device) = found else { return $($missing)? };
        let Some(next) = device.functions.$function else { return $($missing)? };
        (device, next)
    }};
}
pub(crate) use next;
