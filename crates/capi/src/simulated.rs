//! The way of C programs to a simulated GPU.

use std::ffi::c_char;

use ash::vk;

/// `vkGetInstanceProcAddr` of a simulated GPU: see [`get_instance_proc_addr`](sublet::sim::get_instance_proc_addr).
///
/// # Safety
/// `name` is null or a string; the function that is returned is called with the type that Vulkan gives its name.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn sublet_sim_get_instance_proc_addr(
    instance: vk::Instance,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: the caller's own promise.
    unsafe { sublet::sim::get_instance_proc_addr(instance, name) }
}
