/* Sublet's simulated GPU for C and C++: a Vulkan driver in the library itself, for tests without a GPU.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The library has it when it is made with the feature `sim`:
 *     cargo build -p sublet-capi --release --features sim
 */
#ifndef SUBLET_SIM_H
#define SUBLET_SIM_H

#include <vulkan/vulkan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* vkGetInstanceProcAddr of a simulated GPU. A program asks it for vkCreateInstance and goes on as with any driver.
 *
 * Each instance is a GPU of its own. The environment variable SUBLET_SIM_PROFILE names the GPU that it poses as (lavapipe,
 * if there is none), or a file that `sublet profile` wrote. SUBLET_SIM_API_VERSION is the version of Vulkan, 1.0 to 1.4.
 * What the program does against Vulkan's rules, and what it leaves behind, is written to standard error when the instance
 * is destroyed. Thread-safe. */
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL sublet_sim_get_instance_proc_addr(VkInstance instance, const char *pName);

#ifdef __cplusplus
}
#endif

#endif /* SUBLET_SIM_H */
