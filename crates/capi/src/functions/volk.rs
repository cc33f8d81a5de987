//! Support for programs with volk that were compiled with VMA's own header.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use crate::allocator::loaded;
use crate::guard::{answer, exported, given, is_missing, misused};
use crate::types::{VmaAllocatorCreateInfo, VmaVulkanFunctions};

exported! {
    /// Writes the two functions that look up all others. A library cannot access the program's copies in volk. It
    /// writes those of the system's Vulkan library, which volk has loaded as well.
    fn vmaImportVulkanFunctionsFromVolk(info: *const VmaAllocatorCreateInfo, written: *mut VmaVulkanFunctions) -> vk::Result {
        const NAME: &str = "vmaImportVulkanFunctionsFromVolk";
        // SAFETY: C3.
        let (Some(info), false) = (unsafe { given(NAME, info) }, is_missing(NAME, written)) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        if info.instance == vk::Instance::null() {
            misused(NAME, "instance must not be null");
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        }
        let Some(lookup) = loaded() else { return vk::Result::ERROR_INITIALIZATION_FAILED };
        // SAFETY: the instance is live and the name ends with a zero (VUID-vkGetInstanceProcAddr-pName-parameter).
        let found = unsafe { lookup(info.instance, c"vkGetDeviceProcAddr".as_ptr()) };
        // SAFETY: the function of this name has this type.
        let of_device = found.map(|found| unsafe {
            std::mem::transmute::<unsafe extern "system" fn(), vk::PFN_vkGetDeviceProcAddr>(found)
        });
        let both = VmaVulkanFunctions {
            get_instance_proc_addr: Some(lookup),
            get_device_proc_addr: of_device,
            ..VmaVulkanFunctions::default()
        };
        // SAFETY: C3; the pointer is not null.
        unsafe { answer(written, both) };
        vk::Result::SUCCESS
    }
}
