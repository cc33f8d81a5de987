//! The functions of the next layer, and those of this one that replace them.
#![expect(unsafe_code, reason = "converts function pointers")]
#![allow(clippy::missing_docs_in_private_items, reason = "the names are those of Vulkan")]

use std::ffi::CStr;
use std::mem::transmute;

use ash::vk;

use crate::calls::{bind, budget, memory, names, queue, resources, sparse};
use crate::device;

/// Creates a table of functions. Each row has the names of one function: an extension's before Vulkan's own, because
/// both are present only if the program enabled the extension. The function after the arrow is this layer's.
macro_rules! functions {
    (
        $(#[$attribute:meta])* $table:ident, $get:ty, $handle:ty, $intercepted:ident;
        $($field:ident: $pfn:ident = $($name:literal)|+ $(=> $own:path)?;)+
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy)]
        #[allow(dead_code, reason = "a row may only name a function that this layer replaces")]
        pub(crate) struct $table {
            $(pub(crate) $field: Option<vk::$pfn>,)+
        }

        impl $table {
            /// Loads the functions of the next layer.
            ///
            /// # Safety
            /// V3 holds for `get`, and `handle` is live.
            pub(crate) unsafe fn load(get: $get, handle: $handle) -> Self {
                let find = |names: &[&CStr]| {
                    // SAFETY: the handle is live and the names end with a zero.
                    names.iter().find_map(|name| unsafe { get(handle, name.as_ptr()) })
                };
                Self {
                    $($field: {
                        let found = find(&[$($name),+]);
                        // SAFETY: V3: the function has this type. Both types are null or the address of a function.
                        unsafe { transmute::<vk::PFN_vkVoidFunction, Option<vk::$pfn>>(found) }
                    },)+
                }
            }
        }

        /// Returns the function of this layer that replaces the named one.
        pub(crate) fn $intercepted(name: &CStr) -> vk::PFN_vkVoidFunction {
            $(
                let names: &[&CStr] = &[$($name),+];
                if names.contains(&name) {
                    $(
                        let own: vk::$pfn = $own;
                        // SAFETY: both types are addresses of functions. The caller converts it back.
                        return Some(unsafe { transmute::<vk::$pfn, unsafe extern "system" fn()>(own) });
                    )?
                }
            )+
            None
        }
    };
}

functions! {
    /// The device's functions of the next layer.
    DeviceFunctions, vk::PFN_vkGetDeviceProcAddr, vk::Device, intercepted_of_device;
    get_device_proc_addr: PFN_vkGetDeviceProcAddr = c"vkGetDeviceProcAddr" => device::get_device_proc_addr;
    destroy_device: PFN_vkDestroyDevice = c"vkDestroyDevice" => device::destroy_device;
    allocate_memory: PFN_vkAllocateMemory = c"vkAllocateMemory" => memory::allocate_memory;
    free_memory: PFN_vkFreeMemory = c"vkFreeMemory" => memory::free_memory;
    map_memory: PFN_vkMapMemory = c"vkMapMemory" => memory::map_memory;
    map_memory2: PFN_vkMapMemory2KHR = c"vkMapMemory2KHR" | c"vkMapMemory2" => memory::map_memory2;
    unmap_memory: PFN_vkUnmapMemory = c"vkUnmapMemory" => memory::unmap_memory;
    unmap_memory2: PFN_vkUnmapMemory2KHR = c"vkUnmapMemory2KHR" | c"vkUnmapMemory2" => memory::unmap_memory2;
    flush: PFN_vkFlushMappedMemoryRanges = c"vkFlushMappedMemoryRanges" => memory::flush;
    invalidate: PFN_vkInvalidateMappedMemoryRanges = c"vkInvalidateMappedMemoryRanges" => memory::invalidate;
    create_buffer: PFN_vkCreateBuffer = c"vkCreateBuffer" => resources::create_buffer;
    destroy_buffer: PFN_vkDestroyBuffer = c"vkDestroyBuffer" => resources::destroy_buffer;
    create_image: PFN_vkCreateImage = c"vkCreateImage" => resources::create_image;
    destroy_image: PFN_vkDestroyImage = c"vkDestroyImage" => resources::destroy_image;
    buffer_requirements: PFN_vkGetBufferMemoryRequirements =
        c"vkGetBufferMemoryRequirements" => resources::buffer_requirements;
    buffer_requirements2: PFN_vkGetBufferMemoryRequirements2 =
        c"vkGetBufferMemoryRequirements2KHR" | c"vkGetBufferMemoryRequirements2" => resources::buffer_requirements2;
    image_requirements: PFN_vkGetImageMemoryRequirements =
        c"vkGetImageMemoryRequirements" => resources::image_requirements;
    image_requirements2: PFN_vkGetImageMemoryRequirements2 =
        c"vkGetImageMemoryRequirements2KHR" | c"vkGetImageMemoryRequirements2" => resources::image_requirements2;
    sparse_requirements: PFN_vkGetImageSparseMemoryRequirements = c"vkGetImageSparseMemoryRequirements";
    bind_buffer: PFN_vkBindBufferMemory = c"vkBindBufferMemory" => bind::bind_buffer;
    bind_buffers: PFN_vkBindBufferMemory2 = c"vkBindBufferMemory2KHR" | c"vkBindBufferMemory2" => bind::bind_buffers;
    bind_image: PFN_vkBindImageMemory = c"vkBindImageMemory" => bind::bind_image;
    bind_images: PFN_vkBindImageMemory2 = c"vkBindImageMemory2KHR" | c"vkBindImageMemory2" => bind::bind_images;
    bind_sparse: PFN_vkQueueBindSparse = c"vkQueueBindSparse" => sparse::bind_sparse;
    submit: PFN_vkQueueSubmit = c"vkQueueSubmit" => queue::submit;
    submit2: PFN_vkQueueSubmit2 = c"vkQueueSubmit2KHR" | c"vkQueueSubmit2" => queue::submit2;
    present: PFN_vkQueuePresentKHR = c"vkQueuePresentKHR" => queue::present;
    queue_wait_idle: PFN_vkQueueWaitIdle = c"vkQueueWaitIdle" => queue::queue_wait_idle;
    device_wait_idle: PFN_vkDeviceWaitIdle = c"vkDeviceWaitIdle" => queue::device_wait_idle;
    wait_for_fences: PFN_vkWaitForFences = c"vkWaitForFences" => queue::wait_for_fences;
    fence_status: PFN_vkGetFenceStatus = c"vkGetFenceStatus" => queue::fence_status;
    wait_semaphores: PFN_vkWaitSemaphores = c"vkWaitSemaphoresKHR" | c"vkWaitSemaphores" => queue::wait_semaphores;
    semaphore_value: PFN_vkGetSemaphoreCounterValue =
        c"vkGetSemaphoreCounterValueKHR" | c"vkGetSemaphoreCounterValue" => queue::semaphore_value;
    event_status: PFN_vkGetEventStatus = c"vkGetEventStatus" => queue::event_status;
    query_results: PFN_vkGetQueryPoolResults = c"vkGetQueryPoolResults" => queue::query_results;
    acquire: PFN_vkAcquireNextImageKHR = c"vkAcquireNextImageKHR" => queue::acquire;
    acquire2: PFN_vkAcquireNextImage2KHR = c"vkAcquireNextImage2KHR" => queue::acquire2;
    set_name: PFN_vkSetDebugUtilsObjectNameEXT = c"vkSetDebugUtilsObjectNameEXT" => names::set_name;
    set_marker_name: PFN_vkDebugMarkerSetObjectNameEXT = c"vkDebugMarkerSetObjectNameEXT" => names::set_marker_name;
}

functions! {
    /// The instance's functions of the next layer.
    InstanceFunctions, vk::PFN_vkGetInstanceProcAddr, vk::Instance, intercepted_of_instance;
    destroy_instance: PFN_vkDestroyInstance = c"vkDestroyInstance" => crate::instance::destroy_instance;
    create_device: PFN_vkCreateDevice = c"vkCreateDevice" => device::create_device;
    properties: PFN_vkGetPhysicalDeviceProperties = c"vkGetPhysicalDeviceProperties";
    memory_properties: PFN_vkGetPhysicalDeviceMemoryProperties = c"vkGetPhysicalDeviceMemoryProperties";
    memory_properties2: PFN_vkGetPhysicalDeviceMemoryProperties2 =
        c"vkGetPhysicalDeviceMemoryProperties2" => budget::memory_properties2;
    memory_properties2_khr: PFN_vkGetPhysicalDeviceMemoryProperties2 =
        c"vkGetPhysicalDeviceMemoryProperties2KHR" => budget::memory_properties2_khr;
    features2: PFN_vkGetPhysicalDeviceFeatures2 = c"vkGetPhysicalDeviceFeatures2";
    features2_khr: PFN_vkGetPhysicalDeviceFeatures2 = c"vkGetPhysicalDeviceFeatures2KHR";
    extensions: PFN_vkEnumerateDeviceExtensionProperties = c"vkEnumerateDeviceExtensionProperties";
}
