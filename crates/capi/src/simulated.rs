//! Access to a simulated GPU for C programs.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_char;

use ash::vk;

/// Returns functions of a simulated GPU, like `vkGetInstanceProcAddr`: see
/// [`get_instance_proc_addr`](sublet::sim::get_instance_proc_addr).
///
/// # Safety
/// 1. `name` is null or a string.
/// 2. The returned function is called with the type that Vulkan gives its name.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn sublet_sim_get_instance_proc_addr(
    instance: vk::Instance,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: 1: the name is null or a string.
    unsafe { sublet::sim::get_instance_proc_addr(instance, name) }
}
