/* Sublet: Vulkan device memory by the piece. The C interface.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * This header declares the interface of the Vulkan Memory Allocator (VMA) 3.4 and nothing more: the library behind it is
 * Sublet, which is written in Rust. A program that uses VMA compiles with this header as it is, and links to the library
 * instead of compiling VMA. There is no implementation in here: VMA_IMPLEMENTATION has no effect, and the compiler notes that.
 * If VMA's own header is included in the same file too, so that VMA would be compiled and used, the compiler stops.
 *
 *     cargo build -p sublet-capi --release      target/release/libsublet_capi.a, and libsublet_capi.so, .dylib or .dll
 *     packaging/build && packaging/install      both as libsublet, for Linux, with pkg-config and CMake
 *
 * Needs the headers of Vulkan 1.1 or later. C11, C++17 and later.
 *
 * Define VMA_SUBLET_3_3 before including it, and build the library with SUBLET_VMA_3_3=1 in the environment, for the
 * structures of VMA 3.3: they lack VmaAllocationCreateInfo::minAlignment and VmaVulkanFunctions::vkGetPhysicalDeviceProperties2KHR.
 *
 *
 * WHAT HOLDS FOR ALL FUNCTIONS
 *
 * Results. Where a function returns a VkResult, each error is one that its description names, or the driver's own, which is
 * passed on as it is. Where a function that creates something fails, nothing is left behind, and the handles that it was to
 * write are null.
 *
 * Wrong calls. VMA stops the program with an assertion. This library logs an error, and returns what the description says,
 * or does nothing. It stops the program on request: see subletSetAssertions. Pointers must not be null unless the description
 * allows it. The library detects a null pointer, but no other wrong one. It detects pools, defragmentation contexts and
 * allocations of another allocator before it uses them, and also pools and contexts that were destroyed. It detects most
 * allocations that were freed already: freeing one again does nothing, and a buffer or image that was to be destroyed with
 * it stays as it is.
 *
 * Internal faults never unwind into the program: they are logged, and the result is VK_ERROR_UNKNOWN.
 *
 * Logs go to the function of subletSetLogCallback. Without one they go to standard error, if the environment variable SUBLET_LOG
 * is one of error, warn, info, debug and trace. A library that was built for debugging logs warnings and errors also without the
 * variable, unless that is off. A message is one line: control characters in names are escaped. A variable that is not understood
 * is named there in any case.
 *
 * Threads. Functions of one allocator may be called by any number of threads at once, except that no two calls may use the
 * same allocation, pool or defragmentation context while one of them frees, names or moves it, or changes its user data. A
 * pass of a defragmentation moves its allocations when it ends; while it begins they may be used, but not freed.
 * Virtual blocks belong to no allocator, and only one thread at a time may use one. "Thread-safe" below means this.
 *
 * Memory of the host. Neither an allocation nor its end asks the host's heap for memory in the steady state.
 *
 *
 * WHERE IT DIFFERS FROM VMA
 *
 * - Errors of the driver are passed on, also where VMA returns VK_ERROR_OUT_OF_DEVICE_MEMORY instead.
 * - Combinations of flags that VMA's assertions exclude are VK_ERROR_FEATURE_NOT_PRESENT: both kinds of host access, and
 *   VMA_ALLOCATION_CREATE_MAPPED_BIT with VMA_MEMORY_USAGE_AUTO* and no host access.
 * - VMA_ALLOCATION_CREATE_WITHIN_BUDGET_BIT applies to every call of the driver for memory.
 * - VMA_ALLOCATION_CREATE_UPPER_ADDRESS_BIT without a linear pool of one block is VK_ERROR_FEATURE_NOT_PRESENT.
 * - vmaCopyMemoryToAllocation flushes while the memory is mapped, and both copies check their range.
 * - vmaMapMemory counts further than 255.
 * - VkAllocationCallbacks are given to Vulkan. The library's own memory comes from Rust's allocator.
 */
/* Notes are never errors, also where warnings are. VMA_SUBLET_NO_NOTES switches them off. */
#if defined(AMD_VULKAN_MEMORY_ALLOCATOR_H) && !defined(VMA_SUBLET)
/* The second one is a macro that VMA's implementation leaves behind. */
#if defined(VMA_IMPLEMENTATION) || defined(VMA_NULL)
#error "VMA's own header comes before Sublet's, with VMA_IMPLEMENTATION: the program would use VMA. Include only one of the two."
#elif !defined(VMA_SUBLET_NO_NOTES)
#pragma message("VMA's own vk_mem_alloc.h was included before Sublet's, which is left out: what VMA declares has to fit the library.")
#endif
#endif

#ifdef VMA_IMPLEMENTATION
/* Another header of that name, further down in the same file, must not compile VMA either. */
#undef VMA_IMPLEMENTATION
#ifndef VMA_SUBLET_NO_NOTES
#pragma message("VMA_IMPLEMENTATION has no effect with Sublet: link the library, and leave the macro out.")
#endif
#endif

#ifndef AMD_VULKAN_MEMORY_ALLOCATOR_H
#define AMD_VULKAN_MEMORY_ALLOCATOR_H
/* Lets programs check which of the two headers they have. */
#define VMA_SUBLET 1

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A program may have included Vulkan's header under another name, for example volk.h. */
#if !defined(VULKAN_H_)
#include <vulkan/vulkan.h>
#endif

#if !defined(VK_VERSION_1_1)
#error "vk_mem_alloc.h needs the headers of Vulkan 1.1 or later"
#endif

#ifdef __clang__
#pragma clang diagnostic push
/* Vulkan's handle types have no annotations for null. */
#pragma clang diagnostic ignored "-Wnullability-completeness"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------------------------------------------------- configuration */

/* The macros that configure VMA's implementation have no effect on a compiled library. The notes say what to do instead.
 * The macros that choose how to reach Vulkan (VMA_STATIC_VULKAN_FUNCTIONS, VMA_DYNAMIC_VULKAN_FUNCTIONS) have no note: all
 * three ways that VmaVulkanFunctions describes work without them. */
#ifndef VMA_SUBLET_NO_NOTES
#ifdef VMA_DEBUG_MARGIN
#pragma message("VMA_DEBUG_MARGIN has no effect with Sublet: call subletSetDebugSettings, margin.")
#endif
#ifdef VMA_DEBUG_DETECT_CORRUPTION
#pragma message("VMA_DEBUG_DETECT_CORRUPTION has no effect with Sublet: call subletSetDebugSettings, detectCorruption.")
#endif
#ifdef VMA_DEBUG_INITIALIZE_ALLOCATIONS
#pragma message("VMA_DEBUG_INITIALIZE_ALLOCATIONS has no effect with Sublet: call subletSetDebugSettings, fill.")
#endif
#ifdef VMA_DEBUG_ALWAYS_DEDICATED_MEMORY
#pragma message("VMA_DEBUG_ALWAYS_DEDICATED_MEMORY has no effect with Sublet: call subletSetDebugSettings, alwaysDedicated.")
#endif
#ifdef VMA_DEBUG_MIN_BUFFER_IMAGE_GRANULARITY
#pragma message("VMA_DEBUG_MIN_BUFFER_IMAGE_GRANULARITY has no effect with Sublet: call subletSetDebugSettings, minBufferImageGranularity.")
#endif
#ifdef VMA_DEBUG_DONT_EXCEED_MAX_MEMORY_ALLOCATION_COUNT
#pragma message("VMA_DEBUG_DONT_EXCEED_MAX_MEMORY_ALLOCATION_COUNT has no effect with Sublet: call subletSetDebugSettings, exceedMaxAllocationCount.")
#endif
#ifdef VMA_DEBUG_DONT_EXCEED_HEAP_SIZE_WITH_ALLOCATION_SIZE
#pragma message("VMA_DEBUG_DONT_EXCEED_HEAP_SIZE_WITH_ALLOCATION_SIZE has no effect with Sublet: what is larger than its heap is always refused.")
#endif
#ifdef VMA_DEBUG_GLOBAL_MUTEX
#pragma message("VMA_DEBUG_GLOBAL_MUTEX has no effect with Sublet: the library locks what it has to.")
#endif
#ifdef VMA_ASSERT
#pragma message("VMA_ASSERT has no effect with Sublet: call subletSetAssertions, or abort in a callback of subletSetLogCallback.")
#endif
#ifdef VMA_HEAVY_ASSERT
#pragma message("VMA_HEAVY_ASSERT has no effect with Sublet: call subletSetAssertions.")
#endif
#ifdef VMA_ASSERT_LEAK
#pragma message("VMA_ASSERT_LEAK has no effect with Sublet: call subletSetAssertions.")
#endif
#ifdef VMA_DEBUG_LOG
#pragma message("VMA_DEBUG_LOG has no effect with Sublet: call subletSetLogCallback.")
#endif
#ifdef VMA_DEBUG_LOG_FORMAT
#pragma message("VMA_DEBUG_LOG_FORMAT has no effect with Sublet: call subletSetLogCallback.")
#endif
#ifdef VMA_LEAK_LOG_FORMAT
#pragma message("VMA_LEAK_LOG_FORMAT has no effect with Sublet: call subletSetLogCallback.")
#endif
#ifdef VMA_DEFAULT_LARGE_HEAP_BLOCK_SIZE
#pragma message("VMA_DEFAULT_LARGE_HEAP_BLOCK_SIZE has no effect with Sublet: set VmaAllocatorCreateInfo::preferredLargeHeapBlockSize.")
#endif
#ifdef VMA_SMALL_HEAP_MAX_SIZE
#pragma message("VMA_SMALL_HEAP_MAX_SIZE has no effect with Sublet: set VmaAllocatorCreateInfo::preferredLargeHeapBlockSize, or a pool's blockSize.")
#endif
#ifdef VMA_MIN_ALIGNMENT
#pragma message("VMA_MIN_ALIGNMENT has no effect with Sublet: set VmaAllocationCreateInfo::minAlignment, or a pool's minAllocationAlignment.")
#endif
#ifdef VMA_SYSTEM_ALIGNED_MALLOC
#pragma message("VMA_SYSTEM_ALIGNED_MALLOC has no effect with Sublet: the library's own memory comes from Rust's allocator.")
#endif
#ifdef VMA_SYSTEM_ALIGNED_FREE
#pragma message("VMA_SYSTEM_ALIGNED_FREE has no effect with Sublet: the library's own memory comes from Rust's allocator.")
#endif
#ifdef VMA_SYSTEM_FREE
#pragma message("VMA_SYSTEM_FREE has no effect with Sublet: the library's own memory comes from Rust's allocator.")
#endif
#ifdef VMA_MUTEX
#pragma message("VMA_MUTEX has no effect with Sublet: the library has its own locks.")
#endif
#ifdef VMA_RW_MUTEX
#pragma message("VMA_RW_MUTEX has no effect with Sublet: the library has its own locks.")
#endif
#ifdef VMA_CONFIGURATION_USER_INCLUDES_H
#pragma message("VMA_CONFIGURATION_USER_INCLUDES_H has no effect with Sublet: nothing is compiled here.")
#endif
#endif

/* VMA's implementation includes the file of this name. If another header of VMA's name comes after this one and would compile
 * VMA, the compiler stops with this text. */
#undef VMA_CONFIGURATION_USER_INCLUDES_H
#define VMA_CONFIGURATION_USER_INCLUDES_H "VMA_IMPLEMENTATION compiles VMA beside Sublet. Include only one of the two."

/* The version of the interface. */
#ifdef VMA_SUBLET_3_3
#define VMA_VERSION (VK_MAKE_VERSION(3, 3, 0))
#else
#define VMA_VERSION (VK_MAKE_VERSION(3, 4, 0))
#endif

/* The version of the Vulkan headers, for programs that check it. The library does not depend on it. */
#ifndef VMA_VULKAN_VERSION
#if defined(VK_VERSION_1_4)
#define VMA_VULKAN_VERSION 1004000
#elif defined(VK_VERSION_1_3)
#define VMA_VULKAN_VERSION 1003000
#elif defined(VK_VERSION_1_2)
#define VMA_VULKAN_VERSION 1002000
#else
#define VMA_VULKAN_VERSION 1001000
#endif
#endif

/* These stand before and after the result type of each function. */
#ifndef VMA_CALL_PRE
#define VMA_CALL_PRE
#endif
#ifndef VMA_CALL_POST
#define VMA_CALL_POST
#endif

/* Annotations of what may be null, for compilers that check them. */
#ifndef VMA_NULLABLE
#ifdef __clang__
#define VMA_NULLABLE _Nullable
#else
#define VMA_NULLABLE
#endif
#endif
#ifndef VMA_NOT_NULL
#ifdef __clang__
#define VMA_NOT_NULL _Nonnull
#else
#define VMA_NOT_NULL
#endif
#endif

/* The same for handles that are numbers on systems with 32-bit pointers. */
#ifndef VMA_NULLABLE_NON_DISPATCHABLE
#if UINTPTR_MAX > 0xFFFFFFFFu
#define VMA_NULLABLE_NON_DISPATCHABLE VMA_NULLABLE
#else
#define VMA_NULLABLE_NON_DISPATCHABLE
#endif
#endif

/* For programs that fill in VmaVulkanFunctions under these conditions. All members are always there. */
#ifndef VMA_DEDICATED_ALLOCATION
#define VMA_DEDICATED_ALLOCATION 1
#endif
#ifndef VMA_BIND_MEMORY2
#define VMA_BIND_MEMORY2 1
#endif
#ifndef VMA_GET_PHYSICAL_DEVICE_PROPERTIES2
#ifdef VMA_SUBLET_3_3
#define VMA_GET_PHYSICAL_DEVICE_PROPERTIES2 0
#else
#define VMA_GET_PHYSICAL_DEVICE_PROPERTIES2 1
#endif
#endif
#ifndef VMA_MEMORY_BUDGET
#define VMA_MEMORY_BUDGET 1
#endif
#ifndef VMA_BUFFER_DEVICE_ADDRESS
#define VMA_BUFFER_DEVICE_ADDRESS 1
#endif
#ifndef VMA_MEMORY_PRIORITY
#define VMA_MEMORY_PRIORITY 1
#endif
#ifndef VMA_KHR_MAINTENANCE4
#define VMA_KHR_MAINTENANCE4 1
#endif
#ifndef VMA_KHR_MAINTENANCE5
#define VMA_KHR_MAINTENANCE5 1
#endif
#ifndef VMA_EXTERNAL_MEMORY
#define VMA_EXTERNAL_MEMORY 1
#endif

/* Annotations for readers and for generators of bindings; compilers ignore them. */
#ifndef VMA_NOT_NULL_NON_DISPATCHABLE
#if UINTPTR_MAX > 0xFFFFFFFFu
#define VMA_NOT_NULL_NON_DISPATCHABLE VMA_NOT_NULL
#else
#define VMA_NOT_NULL_NON_DISPATCHABLE
#endif
#endif
#ifndef VMA_LEN_IF_NOT_NULL
#define VMA_LEN_IF_NOT_NULL(length)
#endif
#ifndef VMA_EXTENDS_VK_STRUCT
#define VMA_EXTENDS_VK_STRUCT(structure)
#endif

/* The functions are always there; a program may switch the declarations off. */
#ifndef VMA_STATS_STRING_ENABLED
#define VMA_STATS_STRING_ENABLED 1
#endif

/* Whether the functions of Windows are declared. */
#ifndef VMA_EXTERNAL_MEMORY_WIN32
#if defined(VK_KHR_external_memory_win32)
#define VMA_EXTERNAL_MEMORY_WIN32 1
#else
#define VMA_EXTERNAL_MEMORY_WIN32 0
#endif
#endif

/* ---------------------------------------------------------------------------------------------------------------- handles */

VK_DEFINE_HANDLE(VmaAllocator)
VK_DEFINE_HANDLE(VmaPool)
/* The handle stays the same for as long as the allocation lives, also when defragmentation moves it. */
VK_DEFINE_HANDLE(VmaAllocation)
VK_DEFINE_HANDLE(VmaDefragmentationContext)
VK_DEFINE_HANDLE(VmaVirtualBlock)
VK_DEFINE_NON_DISPATCHABLE_HANDLE(VmaVirtualAllocation)

/* ------------------------------------------------------------------------------------------------------------------ flags */

/* What the program has enabled on the device, and how it uses the allocator. */
typedef enum VmaAllocatorCreateFlagBits {
    /* Has no effect: an allocator always has its locks. One that no other thread holds is too cheap to be worth a second form. */
    VMA_ALLOCATOR_CREATE_EXTERNALLY_SYNCHRONIZED_BIT = 0x00000001,
    /* VK_KHR_get_memory_requirements2 and VK_KHR_dedicated_allocation are enabled. Part of Vulkan 1.1. */
    VMA_ALLOCATOR_CREATE_KHR_DEDICATED_ALLOCATION_BIT = 0x00000002,
    /* VK_KHR_bind_memory2 is enabled. Part of Vulkan 1.1. */
    VMA_ALLOCATOR_CREATE_KHR_BIND_MEMORY2_BIT = 0x00000004,
    /* VK_EXT_memory_budget is enabled: budgets come from the driver. */
    VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT = 0x00000008,
    /* deviceCoherentMemory of VK_AMD_device_coherent_memory is enabled. Without the flag, such memory is never used. */
    VMA_ALLOCATOR_CREATE_AMD_DEVICE_COHERENT_MEMORY_BIT = 0x00000010,
    /* bufferDeviceAddress is enabled: memory can have addresses on the device. */
    VMA_ALLOCATOR_CREATE_BUFFER_DEVICE_ADDRESS_BIT = 0x00000020,
    /* VK_EXT_memory_priority is enabled: priorities are passed to the driver. */
    VMA_ALLOCATOR_CREATE_EXT_MEMORY_PRIORITY_BIT = 0x00000040,
    /* VK_KHR_maintenance4 is enabled. Part of Vulkan 1.3. */
    VMA_ALLOCATOR_CREATE_KHR_MAINTENANCE4_BIT = 0x00000080,
    /* VK_KHR_maintenance5 is enabled: VkBufferUsageFlags2CreateInfoKHR in a chain is read. Part of Vulkan 1.4. */
    VMA_ALLOCATOR_CREATE_KHR_MAINTENANCE5_BIT = 0x00000100,
    /* VK_KHR_external_memory_win32 is enabled: vmaGetMemoryWin32Handle works. */
    VMA_ALLOCATOR_CREATE_KHR_EXTERNAL_MEMORY_WIN32_BIT = 0x00000200,
    /* Sublet's own: blocks are smaller and less empty memory stays, for more calls of the driver. Without it, blocks follow
     * the bytes in use. 256 MiB as preferredLargeHeapBlockSize selects VMA's rule, and the flag has no effect then. */
    SUBLET_ALLOCATOR_CREATE_MEMORY_FIRST_BIT = 0x00040000,
    VMA_ALLOCATOR_CREATE_FLAG_BITS_MAX_ENUM = 0x7FFFFFFF
} VmaAllocatorCreateFlagBits;
typedef VkFlags VmaAllocatorCreateFlags;

/* What memory is for. */
typedef enum VmaMemoryUsage {
    /* Only requiredFlags and preferredFlags decide. */
    VMA_MEMORY_USAGE_UNKNOWN = 0,
    /* Prefers DEVICE_LOCAL. This and the next four are of VMA's older vocabulary. */
    VMA_MEMORY_USAGE_GPU_ONLY = 1,
    /* Requires HOST_VISIBLE and HOST_COHERENT. */
    VMA_MEMORY_USAGE_CPU_ONLY = 2,
    /* Requires HOST_VISIBLE, prefers DEVICE_LOCAL. */
    VMA_MEMORY_USAGE_CPU_TO_GPU = 3,
    /* Requires HOST_VISIBLE, prefers HOST_CACHED. */
    VMA_MEMORY_USAGE_GPU_TO_CPU = 4,
    /* Prefers memory that is not DEVICE_LOCAL. */
    VMA_MEMORY_USAGE_CPU_COPY = 5,
    /* Requires LAZILY_ALLOCATED. Always a dedicated allocation. */
    VMA_MEMORY_USAGE_GPU_LAZILY_ALLOCATED = 6,
    /* The best type for the buffer or image and the HOST_ACCESS flags. Only for functions that take the buffer or image. */
    VMA_MEMORY_USAGE_AUTO = 7,
    /* As AUTO, and DEVICE_LOCAL if there is a choice. */
    VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE = 8,
    /* As AUTO, and not DEVICE_LOCAL if there is a choice. */
    VMA_MEMORY_USAGE_AUTO_PREFER_HOST = 9,
    VMA_MEMORY_USAGE_MAX_ENUM = 0x7FFFFFFF
} VmaMemoryUsage;

/* How one allocation is made. */
typedef enum VmaAllocationCreateFlagBits {
    /* A dedicated allocation: a VkDeviceMemory of its own. */
    VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT = 0x00000001,
    /* Only in existing blocks. */
    VMA_ALLOCATION_CREATE_NEVER_ALLOCATE_BIT = 0x00000002,
    /* Mapped for as long as it lives, if the memory can be. */
    VMA_ALLOCATION_CREATE_MAPPED_BIT = 0x00000004,
    /* pUserData is a string, which becomes the name. Deprecated: use vmaSetAllocationName. */
    VMA_ALLOCATION_CREATE_USER_DATA_COPY_STRING_BIT = 0x00000020,
    /* At the upper end of a linear pool with one block. */
    VMA_ALLOCATION_CREATE_UPPER_ADDRESS_BIT = 0x00000040,
    /* The buffer or image is not bound. */
    VMA_ALLOCATION_CREATE_DONT_BIND_BIT = 0x00000080,
    /* Fails rather than exceed the budget. */
    VMA_ALLOCATION_CREATE_WITHIN_BUDGET_BIT = 0x00000100,
    /* Other resources will be bound to the memory too: it is not dedicated to one in Vulkan's sense. */
    VMA_ALLOCATION_CREATE_CAN_ALIAS_BIT = 0x00000200,
    /* The host writes in order, and never reads. */
    VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT = 0x00000400,
    /* The host reads and writes as it likes. */
    VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT = 0x00000800,
    /* With one of the two above: memory that the host cannot access is allowed; the program then transfers. */
    VMA_ALLOCATION_CREATE_HOST_ACCESS_ALLOW_TRANSFER_INSTEAD_BIT = 0x00001000,
    /* At most one of the strategies. */
    VMA_ALLOCATION_CREATE_STRATEGY_MIN_MEMORY_BIT = 0x00010000,
    VMA_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT = 0x00020000,
    VMA_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT = 0x00040000,
    VMA_ALLOCATION_CREATE_STRATEGY_BEST_FIT_BIT = VMA_ALLOCATION_CREATE_STRATEGY_MIN_MEMORY_BIT,
    VMA_ALLOCATION_CREATE_STRATEGY_FIRST_FIT_BIT = VMA_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT,
    VMA_ALLOCATION_CREATE_STRATEGY_MASK = 0x00070000,
    VMA_ALLOCATION_CREATE_FLAG_BITS_MAX_ENUM = 0x7FFFFFFF
} VmaAllocationCreateFlagBits;
typedef VkFlags VmaAllocationCreateFlags;

typedef enum VmaPoolCreateFlagBits {
    /* The pool has only buffers and linear images, or only optimal images. */
    VMA_POOL_CREATE_IGNORE_BUFFER_IMAGE_GRANULARITY_BIT = 0x00000002,
    /* Places allocations one after the other, to be freed all at once, or as a stack, a double stack or a ring. */
    VMA_POOL_CREATE_LINEAR_ALGORITHM_BIT = 0x00000004,
    VMA_POOL_CREATE_ALGORITHM_MASK = VMA_POOL_CREATE_LINEAR_ALGORITHM_BIT,
    VMA_POOL_CREATE_FLAG_BITS_MAX_ENUM = 0x7FFFFFFF
} VmaPoolCreateFlagBits;
typedef VkFlags VmaPoolCreateFlags;

/* How hard a defragmentation tries. No flag means balanced. */
typedef enum VmaDefragmentationFlagBits {
    VMA_DEFRAGMENTATION_FLAG_ALGORITHM_FAST_BIT = 0x1,
    VMA_DEFRAGMENTATION_FLAG_ALGORITHM_BALANCED_BIT = 0x2,
    VMA_DEFRAGMENTATION_FLAG_ALGORITHM_FULL_BIT = 0x4,
    VMA_DEFRAGMENTATION_FLAG_ALGORITHM_EXTENSIVE_BIT = 0x8,
    VMA_DEFRAGMENTATION_FLAG_ALGORITHM_MASK = 0xF,
    VMA_DEFRAGMENTATION_FLAG_BITS_MAX_ENUM = 0x7FFFFFFF
} VmaDefragmentationFlagBits;
typedef VkFlags VmaDefragmentationFlags;

/* The outcome of a move. */
typedef enum VmaDefragmentationMoveOperation {
    /* The program has copied the data: the allocation is at its new place. */
    VMA_DEFRAGMENTATION_MOVE_OPERATION_COPY = 0,
    /* The program has not copied it: the allocation stays. */
    VMA_DEFRAGMENTATION_MOVE_OPERATION_IGNORE = 1,
    /* The program has destroyed the resource of the allocation. The allocation is freed. */
    VMA_DEFRAGMENTATION_MOVE_OPERATION_DESTROY = 2
} VmaDefragmentationMoveOperation;

typedef enum VmaVirtualBlockCreateFlagBits {
    /* As VMA_POOL_CREATE_LINEAR_ALGORITHM_BIT. */
    VMA_VIRTUAL_BLOCK_CREATE_LINEAR_ALGORITHM_BIT = 0x00000001,
    VMA_VIRTUAL_BLOCK_CREATE_ALGORITHM_MASK = VMA_VIRTUAL_BLOCK_CREATE_LINEAR_ALGORITHM_BIT,
    VMA_VIRTUAL_BLOCK_CREATE_FLAG_BITS_MAX_ENUM = 0x7FFFFFFF
} VmaVirtualBlockCreateFlagBits;
typedef VkFlags VmaVirtualBlockCreateFlags;

typedef enum VmaVirtualAllocationCreateFlagBits {
    /* At the upper end of a linear block. No effect in other blocks. */
    VMA_VIRTUAL_ALLOCATION_CREATE_UPPER_ADDRESS_BIT = VMA_ALLOCATION_CREATE_UPPER_ADDRESS_BIT,
    VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_MEMORY_BIT = VMA_ALLOCATION_CREATE_STRATEGY_MIN_MEMORY_BIT,
    VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT = VMA_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT,
    VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT = VMA_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT,
    VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MASK = VMA_ALLOCATION_CREATE_STRATEGY_MASK,
    VMA_VIRTUAL_ALLOCATION_CREATE_FLAG_BITS_MAX_ENUM = 0x7FFFFFFF
} VmaVirtualAllocationCreateFlagBits;
typedef VkFlags VmaVirtualAllocationCreateFlags;

/* ------------------------------------------------------------------------------------------------------------- structures */

/* Called after vkAllocateMemory has succeeded. Must not call functions of the allocator. */
typedef void(VKAPI_PTR *PFN_vmaAllocateDeviceMemoryFunction)(VmaAllocator VMA_NOT_NULL allocator, uint32_t memoryType,
                                                             VkDeviceMemory memory, VkDeviceSize size,
                                                             void *VMA_NULLABLE pUserData);
/* Called before vkFreeMemory. Must not call functions of the allocator. */
typedef void(VKAPI_PTR *PFN_vmaFreeDeviceMemoryFunction)(VmaAllocator VMA_NOT_NULL allocator, uint32_t memoryType,
                                                         VkDeviceMemory memory, VkDeviceSize size,
                                                         void *VMA_NULLABLE pUserData);
/* Called before each candidate for a move: VK_TRUE ends the pass. Must not call functions of the allocator. */
typedef VkBool32(VKAPI_PTR *PFN_vmaCheckDefragmentationBreakFunction)(void *VMA_NULLABLE pUserData);

/* Each of the functions may be null. */
typedef struct VmaDeviceMemoryCallbacks {
    PFN_vmaAllocateDeviceMemoryFunction VMA_NULLABLE pfnAllocate;
    PFN_vmaFreeDeviceMemoryFunction VMA_NULLABLE pfnFree;
    void *VMA_NULLABLE pUserData;
} VmaDeviceMemoryCallbacks;

/* The functions of Vulkan that the library calls. There are three ways:
 * - every member is given, but vkGetInstanceProcAddr and vkGetDeviceProcAddr may be null;
 * - only those two are given, or the first of them: the library looks up what is null, core names first, then those of
 *   extensions;
 * - pVulkanFunctions is null, or both of them and vkAllocateMemory are: the library loads the system's Vulkan library, which
 *   stays loaded for as long as the program runs.
 * Functions that are given are used as they are. vkCmdCopyBuffer is never called, nor is vkGetPhysicalDeviceProperties2KHR. */
typedef struct VmaVulkanFunctions {
    PFN_vkGetInstanceProcAddr VMA_NULLABLE vkGetInstanceProcAddr;
    PFN_vkGetDeviceProcAddr VMA_NULLABLE vkGetDeviceProcAddr;
    PFN_vkGetPhysicalDeviceProperties VMA_NULLABLE vkGetPhysicalDeviceProperties;
    PFN_vkGetPhysicalDeviceMemoryProperties VMA_NULLABLE vkGetPhysicalDeviceMemoryProperties;
    PFN_vkAllocateMemory VMA_NULLABLE vkAllocateMemory;
    PFN_vkFreeMemory VMA_NULLABLE vkFreeMemory;
    PFN_vkMapMemory VMA_NULLABLE vkMapMemory;
    PFN_vkUnmapMemory VMA_NULLABLE vkUnmapMemory;
    PFN_vkFlushMappedMemoryRanges VMA_NULLABLE vkFlushMappedMemoryRanges;
    PFN_vkInvalidateMappedMemoryRanges VMA_NULLABLE vkInvalidateMappedMemoryRanges;
    PFN_vkBindBufferMemory VMA_NULLABLE vkBindBufferMemory;
    PFN_vkBindImageMemory VMA_NULLABLE vkBindImageMemory;
    PFN_vkGetBufferMemoryRequirements VMA_NULLABLE vkGetBufferMemoryRequirements;
    PFN_vkGetImageMemoryRequirements VMA_NULLABLE vkGetImageMemoryRequirements;
    PFN_vkCreateBuffer VMA_NULLABLE vkCreateBuffer;
    PFN_vkDestroyBuffer VMA_NULLABLE vkDestroyBuffer;
    PFN_vkCreateImage VMA_NULLABLE vkCreateImage;
    PFN_vkDestroyImage VMA_NULLABLE vkDestroyImage;
    PFN_vkCmdCopyBuffer VMA_NULLABLE vkCmdCopyBuffer;
    PFN_vkGetBufferMemoryRequirements2KHR VMA_NULLABLE vkGetBufferMemoryRequirements2KHR;
    PFN_vkGetImageMemoryRequirements2KHR VMA_NULLABLE vkGetImageMemoryRequirements2KHR;
    PFN_vkBindBufferMemory2KHR VMA_NULLABLE vkBindBufferMemory2KHR;
    PFN_vkBindImageMemory2KHR VMA_NULLABLE vkBindImageMemory2KHR;
    PFN_vkGetPhysicalDeviceMemoryProperties2KHR VMA_NULLABLE vkGetPhysicalDeviceMemoryProperties2KHR;
#if defined(VK_KHR_maintenance4)
    PFN_vkGetDeviceBufferMemoryRequirementsKHR VMA_NULLABLE vkGetDeviceBufferMemoryRequirements;
    PFN_vkGetDeviceImageMemoryRequirementsKHR VMA_NULLABLE vkGetDeviceImageMemoryRequirements;
#else
    /* Older headers have no types for them. */
    PFN_vkVoidFunction VMA_NULLABLE vkGetDeviceBufferMemoryRequirements;
    PFN_vkVoidFunction VMA_NULLABLE vkGetDeviceImageMemoryRequirements;
#endif
#if VMA_EXTERNAL_MEMORY_WIN32
    PFN_vkGetMemoryWin32HandleKHR VMA_NULLABLE vkGetMemoryWin32HandleKHR;
#else
    void *VMA_NULLABLE vkGetMemoryWin32HandleKHR;
#endif
#ifndef VMA_SUBLET_3_3
    PFN_vkGetPhysicalDeviceProperties2KHR VMA_NULLABLE vkGetPhysicalDeviceProperties2KHR;
#endif
} VmaVulkanFunctions;

/* How an allocator is made. vmaCreateAllocator reads the structures that it points to and does not keep them. */
typedef struct VmaAllocatorCreateInfo {
    VmaAllocatorCreateFlags flags;
    /* The physical device, and the device that was made from it. Both outlive the allocator. */
    VkPhysicalDevice VMA_NOT_NULL physicalDevice;
    VkDevice VMA_NOT_NULL device;
    /* The most bytes of a block in heaps above 1 GiB, by VMA's rule; 0 for blocks that follow the bytes in use. */
    VkDeviceSize preferredLargeHeapBlockSize;
    /* Passed to every function of Vulkan that takes them; null for none. */
    const VkAllocationCallbacks *VMA_NULLABLE pAllocationCallbacks;
    /* Called for every VkDeviceMemory; null for none. */
    const VmaDeviceMemoryCallbacks *VMA_NULLABLE pDeviceMemoryCallbacks;
    /* The most bytes to take from each heap, or VK_WHOLE_SIZE: an element for each heap. Null for no limits. */
    const VkDeviceSize *VMA_NULLABLE pHeapSizeLimit;
    const VmaVulkanFunctions *VMA_NULLABLE pVulkanFunctions;
    VkInstance VMA_NOT_NULL instance;
    /* The version of Vulkan that the program uses, 1.0 to 1.4; 0 for 1.0. */
    uint32_t vulkanApiVersion;
    /* The handle types that memory of each type can be exported as: an element for each memory type. Null for none. */
    const VkExternalMemoryHandleTypeFlags *VMA_NULLABLE pTypeExternalMemoryHandleTypes;
} VmaAllocatorCreateInfo;

typedef struct VmaAllocatorInfo {
    VkInstance VMA_NOT_NULL instance;
    VkPhysicalDevice VMA_NOT_NULL physicalDevice;
    VkDevice VMA_NOT_NULL device;
} VmaAllocatorInfo;

/* Figures that are always at hand. A dedicated allocation counts as a block and as an allocation. */
typedef struct VmaStatistics {
    uint32_t blockCount;
    uint32_t allocationCount;
    /* Bytes of the VkDeviceMemory objects. */
    VkDeviceSize blockBytes;
    /* Bytes that are allocated in them. */
    VkDeviceSize allocationBytes;
} VmaStatistics;

/* Figures that a walk collects. */
typedef struct VmaDetailedStatistics {
    VmaStatistics statistics;
    uint32_t unusedRangeCount;
    /* VK_WHOLE_SIZE if there is no allocation. */
    VkDeviceSize allocationSizeMin;
    /* 0 if there is none. */
    VkDeviceSize allocationSizeMax;
    /* VK_WHOLE_SIZE if there is no unused range. */
    VkDeviceSize unusedRangeSizeMin;
    /* 0 if there is none. */
    VkDeviceSize unusedRangeSizeMax;
} VmaDetailedStatistics;

typedef struct VmaTotalStatistics {
    VmaDetailedStatistics memoryType[VK_MAX_MEMORY_TYPES];
    VmaDetailedStatistics memoryHeap[VK_MAX_MEMORY_HEAPS];
    VmaDetailedStatistics total;
} VmaTotalStatistics;

typedef struct VmaBudget {
    /* What this allocator has taken from the heap. */
    VmaStatistics statistics;
    /* Bytes of the heap that the program uses; without VK_EXT_memory_budget, those of this allocator. */
    VkDeviceSize usage;
    /* Bytes that the program may use; without VK_EXT_memory_budget, 80 % of the heap. */
    VkDeviceSize budget;
} VmaBudget;

/* How an allocation is made. A structure of zeroes is a valid start. */
typedef struct VmaAllocationCreateInfo {
    VmaAllocationCreateFlags flags;
    /* This and the next three are ignored with a pool. */
    VmaMemoryUsage usage;
    /* Properties that the memory type must have. */
    VkMemoryPropertyFlags requiredFlags;
    /* Properties that it should have. */
    VkMemoryPropertyFlags preferredFlags;
    /* A bit for each memory type that may be used; 0 for all. */
    uint32_t memoryTypeBits;
    /* Where to allocate; null for the default pool of the best memory type. */
    VmaPool VMA_NULLABLE pool;
    /* The program's own pointer, kept with the allocation. */
    void *VMA_NULLABLE pUserData;
    /* 0 to 1, for dedicated allocations, with VMA_ALLOCATOR_CREATE_EXT_MEMORY_PRIORITY_BIT. */
    float priority;
#ifndef VMA_SUBLET_3_3
    /* The least alignment in bytes, a power of two; 0 for none. */
    VkDeviceSize minAlignment;
#endif
} VmaAllocationCreateInfo;

typedef struct VmaPoolCreateInfo {
    uint32_t memoryTypeIndex;
    VmaPoolCreateFlags flags;
    /* Bytes of each block; 0 lets the library choose, and allows dedicated allocations in the pool. */
    VkDeviceSize blockSize;
    /* The count of blocks that exist from the beginning and are kept. */
    size_t minBlockCount;
    /* The most blocks; 0 for no limit. */
    size_t maxBlockCount;
    /* 0 to 1, with VMA_ALLOCATOR_CREATE_EXT_MEMORY_PRIORITY_BIT. */
    float priority;
    /* The least alignment of every allocation, a power of two; 0 for none. */
    VkDeviceSize minAllocationAlignment;
    /* A chain for every VkMemoryAllocateInfo of the pool. It must live as long as the pool. */
    void *VMA_NULLABLE pMemoryAllocateNext;
} VmaPoolCreateInfo;

typedef struct VmaAllocationInfo {
    /* Index of the memory type. */
    uint32_t memoryType;
    /* The memory that the allocation is in, which other allocations may share. Defragmentation changes it. */
    VkDeviceMemory VMA_NULLABLE_NON_DISPATCHABLE deviceMemory;
    /* Bytes from the beginning of that memory. Defragmentation changes it. */
    VkDeviceSize offset;
    /* The requested size in bytes. */
    VkDeviceSize size;
    /* The mapped address; null if it is not mapped. */
    void *VMA_NULLABLE pMappedData;
    void *VMA_NULLABLE pUserData;
    /* Null if it has no name. Valid until the allocation is named again or freed. */
    const char *VMA_NULLABLE pName;
} VmaAllocationInfo;

typedef struct VmaAllocationInfo2 {
    VmaAllocationInfo allocationInfo;
    /* Bytes of deviceMemory. */
    VkDeviceSize blockSize;
    /* Whether the allocation is dedicated. */
    VkBool32 dedicatedMemory;
} VmaAllocationInfo2;

typedef struct VmaDefragmentationInfo {
    VmaDefragmentationFlags flags;
    /* The pool; null for all default pools. */
    VmaPool VMA_NULLABLE pool;
    /* The most bytes to move in a pass; 0 for no limit. */
    VkDeviceSize maxBytesPerPass;
    /* The most allocations to move in a pass; 0 for no limit. */
    uint32_t maxAllocationsPerPass;
    PFN_vmaCheckDefragmentationBreakFunction VMA_NULLABLE pfnBreakCallback;
    void *VMA_NULLABLE pBreakCallbackUserData;
} VmaDefragmentationInfo;

typedef struct VmaDefragmentationMove {
    /* Set by the program before the pass ends; VMA_DEFRAGMENTATION_MOVE_OPERATION_COPY if it does nothing. */
    VmaDefragmentationMoveOperation operation;
    /* The allocation to move. */
    VmaAllocation VMA_NOT_NULL srcAllocation;
    /* The new place, to bind a new buffer or image to. Lives until the pass ends, and must not be freed. */
    VmaAllocation VMA_NOT_NULL dstTmpAllocation;
} VmaDefragmentationMove;

typedef struct VmaDefragmentationPassMoveInfo {
    uint32_t moveCount;
    /* The library's; valid until the pass ends. */
    VmaDefragmentationMove *VMA_NULLABLE pMoves;
} VmaDefragmentationPassMoveInfo;

typedef struct VmaDefragmentationStats {
    VkDeviceSize bytesMoved;
    /* Bytes of blocks that were given back. */
    VkDeviceSize bytesFreed;
    uint32_t allocationsMoved;
    uint32_t deviceMemoryBlocksFreed;
} VmaDefragmentationStats;

typedef struct VmaVirtualBlockCreateInfo {
    /* The size in units of any kind; not 0. */
    VkDeviceSize size;
    VmaVirtualBlockCreateFlags flags;
    /* Not used. */
    const VkAllocationCallbacks *VMA_NULLABLE pAllocationCallbacks;
} VmaVirtualBlockCreateInfo;

typedef struct VmaVirtualAllocationCreateInfo {
    /* The size in units; not 0. */
    VkDeviceSize size;
    /* A power of two; 0 for 1. */
    VkDeviceSize alignment;
    VmaVirtualAllocationCreateFlags flags;
    void *VMA_NULLABLE pUserData;
} VmaVirtualAllocationCreateInfo;

typedef struct VmaVirtualAllocationInfo {
    VkDeviceSize offset;
    VkDeviceSize size;
    void *VMA_NULLABLE pUserData;
} VmaVirtualAllocationInfo;

/* -------------------------------------------------------------------------------------------------------------- allocator */

#ifdef VOLK_HEADER_VERSION
/* Writes volk's functions for pVulkanFunctions: the two that find all others, which is all that the library needs. volk must have
 * loaded the instance, and volk.h must be included before this header. Always VK_SUCCESS. A program that was compiled with VMA's
 * own header calls a function of this name in the library, which cannot see volk: it writes the two of the system's Vulkan
 * library. After volkInitializeCustom, include this header, or write the two yourself. */
static inline VkResult vmaImportVulkanFunctionsFromVolk(const VmaAllocatorCreateInfo *VMA_NOT_NULL pAllocatorCreateInfo,
                                                        VmaVulkanFunctions *VMA_NOT_NULL pDstVulkanFunctions) {
    (void)pAllocatorCreateInfo;
    memset(pDstVulkanFunctions, 0, sizeof(*pDstVulkanFunctions));
    pDstVulkanFunctions->vkGetInstanceProcAddr = vkGetInstanceProcAddr;
    pDstVulkanFunctions->vkGetDeviceProcAddr = vkGetDeviceProcAddr;
    return VK_SUCCESS;
}
#endif

/* Makes an allocator. It takes no memory yet.
 * Errors: VK_ERROR_INITIALIZATION_FAILED if a handle is null, the version is not one of 1.0 to 1.4, or a function is neither
 * given nor found; VK_ERROR_EXTENSION_NOT_PRESENT if a flag needs a function that is not there. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaCreateAllocator(const VmaAllocatorCreateInfo *VMA_NOT_NULL pCreateInfo,
                                                       VmaAllocator VMA_NULLABLE *VMA_NOT_NULL pAllocator);

/* Destroys an allocator; null does nothing. It also destroys the pools, allocations and contexts that are left, and logs them.
 * No other call may use the allocator meanwhile. */
VMA_CALL_PRE void VMA_CALL_POST vmaDestroyAllocator(VmaAllocator VMA_NULLABLE allocator);

/* The handles that the allocator was made with. Thread-safe. */
VMA_CALL_PRE void VMA_CALL_POST vmaGetAllocatorInfo(VmaAllocator VMA_NOT_NULL allocator,
                                                    VmaAllocatorInfo *VMA_NOT_NULL pAllocatorInfo);

/* The properties of the physical device. They live as long as the allocator. Thread-safe. */
VMA_CALL_PRE void VMA_CALL_POST vmaGetPhysicalDeviceProperties(
    VmaAllocator VMA_NOT_NULL allocator,
    const VkPhysicalDeviceProperties *VMA_NULLABLE *VMA_NOT_NULL ppPhysicalDeviceProperties);

/* The heaps, as pHeapSizeLimit limits them, and the memory types. They live as long as the allocator. Thread-safe. */
VMA_CALL_PRE void VMA_CALL_POST vmaGetMemoryProperties(
    VmaAllocator VMA_NOT_NULL allocator,
    const VkPhysicalDeviceMemoryProperties *VMA_NULLABLE *VMA_NOT_NULL ppPhysicalDeviceMemoryProperties);

/* The properties of one memory type; none if there is no such type. Thread-safe. */
VMA_CALL_PRE void VMA_CALL_POST vmaGetMemoryTypeProperties(VmaAllocator VMA_NOT_NULL allocator, uint32_t memoryTypeIndex,
                                                           VkMemoryPropertyFlags *VMA_NOT_NULL pFlags);

/* Asks the driver for its budgets, if VK_EXT_memory_budget is enabled. Call it once in a frame. Thread-safe. */
VMA_CALL_PRE void VMA_CALL_POST vmaSetCurrentFrameIndex(VmaAllocator VMA_NOT_NULL allocator, uint32_t frameIndex);

/* Sublet's own: creates blocks of the pool, or of the memory type if the pool is null, until unused ones have `size`
 * bytes. The library keeps them until something was allocated and freed in them, or another allocation would fail. On
 * failure no new block is left. Errors: VK_ERROR_INITIALIZATION_FAILED if the pool belongs to another allocator, or
 * the allocator may not use the memory type; VK_ERROR_OUT_OF_DEVICE_MEMORY if a limit or the budget does not allow it;
 * VK_ERROR_TOO_MANY_OBJECTS; those of vkAllocateMemory. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST subletReserve(VmaAllocator VMA_NOT_NULL allocator, VmaPool VMA_NULLABLE pool,
                                                  uint32_t memoryTypeIndex, VkDeviceSize size);

/* Sublet's own: creates the next blocks before they are needed, at most `maxAllocations`, and frees blocks that were
 * empty for a long time, at most `maxFrees`; usually 1 and 1. All these calls of the driver take at most
 * `maxMicroseconds`, usually 1500, as modelled after an H200; the first one is made even if it takes longer. Call it
 * once per frame, after the last submission. After the first call, functions that free leave empty blocks to it.
 * Thread-safe. */
VMA_CALL_PRE void VMA_CALL_POST subletMaintain(VmaAllocator VMA_NOT_NULL allocator, uint32_t maxAllocations,
                                               uint32_t maxFrees, uint32_t maxMicroseconds);

/* ------------------------------------------------------------------------------------------------------------- statistics */

/* Walks all memory, and counts it by memory type, by heap, and in all. Slow: for debugging. Thread-safe. */
VMA_CALL_PRE void VMA_CALL_POST vmaCalculateStatistics(VmaAllocator VMA_NOT_NULL allocator,
                                                       VmaTotalStatistics *VMA_NOT_NULL pStats);

/* Writes an element for each heap. Fast enough for every frame. Thread-safe. */
VMA_CALL_PRE void VMA_CALL_POST vmaGetHeapBudgets(VmaAllocator VMA_NOT_NULL allocator, VmaBudget *VMA_NOT_NULL pBudgets);

#if VMA_STATS_STRING_ENABLED
/* Describes the allocator as JSON that VMA's tools read; with VK_TRUE, also every allocation. Free the text with
 * vmaFreeStatsString. Thread-safe. */
VMA_CALL_PRE void VMA_CALL_POST vmaBuildStatsString(VmaAllocator VMA_NOT_NULL allocator,
                                                    char *VMA_NULLABLE *VMA_NOT_NULL ppStatsString, VkBool32 detailedMap);

/* Frees a text of vmaBuildStatsString; null does nothing. Thread-safe. */
VMA_CALL_PRE void VMA_CALL_POST vmaFreeStatsString(VmaAllocator VMA_NOT_NULL allocator, char *VMA_NULLABLE pStatsString);
#endif

/* ---------------------------------------------------------------------------------------------------------- memory types */

/* The memory type that vmaAllocateMemory would take first.
 * Errors: VK_ERROR_FEATURE_NOT_PRESENT if there is none; then the index is UINT32_MAX. The three AUTO usages are a wrong call.
 * Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaFindMemoryTypeIndex(VmaAllocator VMA_NOT_NULL allocator, uint32_t memoryTypeBits,
                                                           const VmaAllocationCreateInfo *VMA_NOT_NULL pAllocationCreateInfo,
                                                           uint32_t *VMA_NOT_NULL pMemoryTypeIndex);

/* The memory type that vmaCreateBuffer would take first. If Vulkan cannot report the requirements of such a buffer, this function
 * makes one and destroys it. Errors: as above, and those of vkCreateBuffer. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaFindMemoryTypeIndexForBufferInfo(
    VmaAllocator VMA_NOT_NULL allocator, const VkBufferCreateInfo *VMA_NOT_NULL pBufferCreateInfo,
    const VmaAllocationCreateInfo *VMA_NOT_NULL pAllocationCreateInfo, uint32_t *VMA_NOT_NULL pMemoryTypeIndex);

/* The memory type that vmaCreateImage would take first. Errors: as above, and those of vkCreateImage. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaFindMemoryTypeIndexForImageInfo(
    VmaAllocator VMA_NOT_NULL allocator, const VkImageCreateInfo *VMA_NOT_NULL pImageCreateInfo,
    const VmaAllocationCreateInfo *VMA_NOT_NULL pAllocationCreateInfo, uint32_t *VMA_NOT_NULL pMemoryTypeIndex);

/* ------------------------------------------------------------------------------------------------------------------ pools */

/* Makes a pool: blocks of one memory type with limits of their own.
 * Errors: VK_ERROR_INITIALIZATION_FAILED if minBlockCount is above maxBlockCount, or an alignment is no power of two;
 * VK_ERROR_FEATURE_NOT_PRESENT if the memory type must not be used; those of vkAllocateMemory for the first blocks.
 * Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaCreatePool(VmaAllocator VMA_NOT_NULL allocator,
                                                  const VmaPoolCreateInfo *VMA_NOT_NULL pCreateInfo,
                                                  VmaPool VMA_NULLABLE *VMA_NOT_NULL pPool);

/* Destroys a pool; null does nothing. It also frees the allocations that are left in the pool, and logs them. No other call may
 * use the pool meanwhile. */
VMA_CALL_PRE void VMA_CALL_POST vmaDestroyPool(VmaAllocator VMA_NOT_NULL allocator, VmaPool VMA_NULLABLE pool);

/* Figures of a pool, fast. Thread-safe. */
VMA_CALL_PRE void VMA_CALL_POST vmaGetPoolStatistics(VmaAllocator VMA_NOT_NULL allocator, VmaPool VMA_NOT_NULL pool,
                                                     VmaStatistics *VMA_NOT_NULL pPoolStats);

/* Figures of a pool, collected by a walk. Thread-safe. */
VMA_CALL_PRE void VMA_CALL_POST vmaCalculatePoolStatistics(VmaAllocator VMA_NOT_NULL allocator, VmaPool VMA_NOT_NULL pool,
                                                           VmaDetailedStatistics *VMA_NOT_NULL pPoolStats);

/* Looks for writes beyond the allocations of a pool.
 * Errors: VK_ERROR_FEATURE_NOT_PRESENT if the host cannot read the memory, or there are no margins; VK_ERROR_UNKNOWN if a margin
 * was overwritten. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaCheckPoolCorruption(VmaAllocator VMA_NOT_NULL allocator, VmaPool VMA_NOT_NULL pool);

/* The name of a pool; null if it has none. Valid until the pool is named again or destroyed. No other call may name the pool
 * meanwhile. */
VMA_CALL_PRE void VMA_CALL_POST vmaGetPoolName(VmaAllocator VMA_NOT_NULL allocator, VmaPool VMA_NOT_NULL pool,
                                               const char *VMA_NULLABLE *VMA_NOT_NULL ppName);

/* Names a pool; null removes the name. The name is copied. No other call may name the pool or read its name meanwhile. */
VMA_CALL_PRE void VMA_CALL_POST vmaSetPoolName(VmaAllocator VMA_NOT_NULL allocator, VmaPool VMA_NOT_NULL pool,
                                               const char *VMA_NULLABLE pName);

/* ----------------------------------------------------------------------------------------------------------------- memory */

/* Allocates memory. pAllocationInfo may be null here and everywhere.
 * Errors of this and all functions that allocate: VK_ERROR_INITIALIZATION_FAILED if the size is 0, an alignment is no power of
 * two, or the usage is none of VmaMemoryUsage and there is no pool; VK_ERROR_FEATURE_NOT_PRESENT if no memory type fits, flags
 * exclude each other, or the pool cannot do what they ask. An AUTO usage without a buffer or image to look at is a wrong call;
 * VK_ERROR_OUT_OF_DEVICE_MEMORY if there is no room, or a limit or the budget stands in the way; VK_ERROR_TOO_MANY_OBJECTS if
 * maxMemoryAllocationCount does; those of vkAllocateMemory and vkMapMemory. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaAllocateMemory(VmaAllocator VMA_NOT_NULL allocator,
                                                      const VkMemoryRequirements *VMA_NOT_NULL pVkMemoryRequirements,
                                                      const VmaAllocationCreateInfo *VMA_NOT_NULL pCreateInfo,
                                                      VmaAllocation VMA_NULLABLE *VMA_NOT_NULL pAllocation,
                                                      VmaAllocationInfo *VMA_NULLABLE pAllocationInfo);

/* Makes a dedicated allocation with a chain for VkMemoryAllocateInfo, which may be null: for example to import memory.
 * Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaAllocateDedicatedMemory(VmaAllocator VMA_NOT_NULL allocator,
                                                               const VkMemoryRequirements *VMA_NOT_NULL pVkMemoryRequirements,
                                                               const VmaAllocationCreateInfo *VMA_NOT_NULL pCreateInfo,
                                                               void *VMA_NULLABLE pMemoryAllocateNext,
                                                               VmaAllocation VMA_NULLABLE *VMA_NOT_NULL pAllocation,
                                                               VmaAllocationInfo *VMA_NULLABLE pAllocationInfo);

/* Makes allocationCount allocations that are alike: all of them, or none. Only the first elements of
 * pVkMemoryRequirements and pCreateInfo are read. pAllocations, and pAllocationInfo if it is not null, have room for all.
 * A count of 0 is VK_SUCCESS. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaAllocateMemoryPages(VmaAllocator VMA_NOT_NULL allocator,
                                                           const VkMemoryRequirements *VMA_NOT_NULL pVkMemoryRequirements,
                                                           const VmaAllocationCreateInfo *VMA_NOT_NULL pCreateInfo,
                                                           size_t allocationCount,
                                                           VmaAllocation VMA_NULLABLE *VMA_NOT_NULL pAllocations,
                                                           VmaAllocationInfo *VMA_NULLABLE pAllocationInfo);

/* Allocates memory for a buffer, and does not bind it. The library does not know the buffer's usage: the AUTO usages are
 * VK_ERROR_FEATURE_NOT_PRESENT. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaAllocateMemoryForBuffer(VmaAllocator VMA_NOT_NULL allocator, VkBuffer buffer,
                                                               const VmaAllocationCreateInfo *VMA_NOT_NULL pCreateInfo,
                                                               VmaAllocation VMA_NULLABLE *VMA_NOT_NULL pAllocation,
                                                               VmaAllocationInfo *VMA_NULLABLE pAllocationInfo);

/* Allocates memory for an image, and does not bind it. As for a buffer. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaAllocateMemoryForImage(VmaAllocator VMA_NOT_NULL allocator, VkImage image,
                                                              const VmaAllocationCreateInfo *VMA_NOT_NULL pCreateInfo,
                                                              VmaAllocation VMA_NULLABLE *VMA_NOT_NULL pAllocation,
                                                              VmaAllocationInfo *VMA_NULLABLE pAllocationInfo);

/* Frees memory; null does nothing. It ends mappings that are left, and logs them. Thread-safe for different allocations. */
VMA_CALL_PRE void VMA_CALL_POST vmaFreeMemory(VmaAllocator VMA_NOT_NULL allocator, VmaAllocation VMA_NULLABLE allocation);

/* Frees several allocations, the last one first; elements may be null. Thread-safe for different allocations. */
VMA_CALL_PRE void VMA_CALL_POST vmaFreeMemoryPages(VmaAllocator VMA_NOT_NULL allocator, size_t allocationCount,
                                                   const VmaAllocation VMA_NULLABLE *VMA_NOT_NULL pAllocations);

/* Describes an allocation. Fast. Thread-safe. */
VMA_CALL_PRE void VMA_CALL_POST vmaGetAllocationInfo(VmaAllocator VMA_NOT_NULL allocator, VmaAllocation VMA_NOT_NULL allocation,
                                                     VmaAllocationInfo *VMA_NOT_NULL pAllocationInfo);

/* Describes an allocation and its memory. Takes a lock. Thread-safe. */
VMA_CALL_PRE void VMA_CALL_POST vmaGetAllocationInfo2(VmaAllocator VMA_NOT_NULL allocator,
                                                      VmaAllocation VMA_NOT_NULL allocation,
                                                      VmaAllocationInfo2 *VMA_NOT_NULL pAllocationInfo);

/* Changes the user data of an allocation. Thread-safe for different allocations. */
VMA_CALL_PRE void VMA_CALL_POST vmaSetAllocationUserData(VmaAllocator VMA_NOT_NULL allocator,
                                                         VmaAllocation VMA_NOT_NULL allocation, void *VMA_NULLABLE pUserData);

/* Names an allocation; null removes the name. The name is copied. Thread-safe for different allocations. */
VMA_CALL_PRE void VMA_CALL_POST vmaSetAllocationName(VmaAllocator VMA_NOT_NULL allocator, VmaAllocation VMA_NOT_NULL allocation,
                                                     const char *VMA_NULLABLE pName);

/* The properties of the memory type of an allocation. Thread-safe. */
VMA_CALL_PRE void VMA_CALL_POST vmaGetAllocationMemoryProperties(VmaAllocator VMA_NOT_NULL allocator,
                                                                 VmaAllocation VMA_NOT_NULL allocation,
                                                                 VkMemoryPropertyFlags *VMA_NOT_NULL pFlags);

#if VMA_EXTERNAL_MEMORY_WIN32
/* A handle of the memory that an allocation is in, of the type OPAQUE_WIN32, for hTargetProcess or, if that is null, this
 * process. The program owns the handle and closes it.
 * Errors: VK_ERROR_FEATURE_NOT_PRESENT if the extension is not enabled; those of vkGetMemoryWin32HandleKHR. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaGetMemoryWin32Handle(VmaAllocator VMA_NOT_NULL allocator,
                                                            VmaAllocation VMA_NOT_NULL allocation, HANDLE hTargetProcess,
                                                            HANDLE *VMA_NOT_NULL pHandle);

/* The same for any handle type of Windows. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaGetMemoryWin32Handle2(VmaAllocator VMA_NOT_NULL allocator,
                                                             VmaAllocation VMA_NOT_NULL allocation,
                                                             VkExternalMemoryHandleTypeFlagBits handleType,
                                                             HANDLE hTargetProcess, HANDLE *VMA_NOT_NULL pHandle);
#endif

/* --------------------------------------------------------------------------------------------------- access of the host */

/* Maps an allocation, also if it is mapped already. The first byte of the allocation is at *ppData. Call vmaUnmapMemory once for
 * each success, in any order and from any thread.
 * Errors: VK_ERROR_MEMORY_MAP_FAILED if the memory is not HOST_VISIBLE, or the allocation was made with an AUTO usage and
 * without a HOST_ACCESS flag; those of vkMapMemory. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaMapMemory(VmaAllocator VMA_NOT_NULL allocator, VmaAllocation VMA_NOT_NULL allocation,
                                                 void *VMA_NULLABLE *VMA_NOT_NULL ppData);

/* Ends one mapping of vmaMapMemory. Thread-safe. */
VMA_CALL_PRE void VMA_CALL_POST vmaUnmapMemory(VmaAllocator VMA_NOT_NULL allocator, VmaAllocation VMA_NOT_NULL allocation);

/* Makes what the host wrote visible to the device, if the memory needs that. VK_WHOLE_SIZE means up to the end. The library widens
 * the range to whole atoms.
 * Errors: VK_ERROR_UNKNOWN if the range is not inside the allocation; VK_ERROR_MEMORY_MAP_FAILED if it is not mapped; those of
 * vkFlushMappedMemoryRanges. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaFlushAllocation(VmaAllocator VMA_NOT_NULL allocator,
                                                       VmaAllocation VMA_NOT_NULL allocation, VkDeviceSize offset,
                                                       VkDeviceSize size);

/* Makes what the device wrote visible to the host. As vmaFlushAllocation. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaInvalidateAllocation(VmaAllocator VMA_NOT_NULL allocator,
                                                            VmaAllocation VMA_NOT_NULL allocation, VkDeviceSize offset,
                                                            VkDeviceSize size);

/* Flushes several allocations with one call of Vulkan. offsets may be null, for 0, and sizes, for VK_WHOLE_SIZE.
 * Errors: as vmaFlushAllocation. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaFlushAllocations(VmaAllocator VMA_NOT_NULL allocator, uint32_t allocationCount,
                                                        const VmaAllocation VMA_NOT_NULL *VMA_NULLABLE allocations,
                                                        const VkDeviceSize *VMA_NULLABLE offsets,
                                                        const VkDeviceSize *VMA_NULLABLE sizes);

/* Invalidates several allocations with one call of Vulkan. As vmaFlushAllocations. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaInvalidateAllocations(VmaAllocator VMA_NOT_NULL allocator, uint32_t allocationCount,
                                                             const VmaAllocation VMA_NOT_NULL *VMA_NULLABLE allocations,
                                                             const VkDeviceSize *VMA_NULLABLE offsets,
                                                             const VkDeviceSize *VMA_NULLABLE sizes);

/* Maps, copies, flushes, unmaps. Errors: as vmaMapMemory and vmaFlushAllocation. Thread-safe for different allocations. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaCopyMemoryToAllocation(VmaAllocator VMA_NOT_NULL allocator,
                                                              const void *VMA_NOT_NULL pSrcHostPointer,
                                                              VmaAllocation VMA_NOT_NULL dstAllocation,
                                                              VkDeviceSize dstAllocationLocalOffset, VkDeviceSize size);

/* Maps, invalidates, copies, unmaps. Errors: as vmaMapMemory and vmaInvalidateAllocation. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaCopyAllocationToMemory(VmaAllocator VMA_NOT_NULL allocator,
                                                              VmaAllocation VMA_NOT_NULL srcAllocation,
                                                              VkDeviceSize srcAllocationLocalOffset,
                                                              void *VMA_NOT_NULL pDstHostPointer, VkDeviceSize size);

/* Looks for writes beyond allocations, in default and other pools of the memory types that have a bit.
 * Errors: as vmaCheckPoolCorruption. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaCheckCorruption(VmaAllocator VMA_NOT_NULL allocator, uint32_t memoryTypeBits);

/* ------------------------------------------------------------------------------------------------------- defragmentation */

/* Begins to defragment one pool, or all default pools. It reads the structure and does not keep it.
 * Errors: VK_ERROR_FEATURE_NOT_PRESENT if the pool is linear; VK_ERROR_INITIALIZATION_FAILED if it is being defragmented
 * already. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaBeginDefragmentation(VmaAllocator VMA_NOT_NULL allocator,
                                                            const VmaDefragmentationInfo *VMA_NOT_NULL pInfo,
                                                            VmaDefragmentationContext VMA_NULLABLE *VMA_NOT_NULL pContext);

/* Ends a defragmentation and, unless pStats is null, writes what it has done. No pass may be open. */
VMA_CALL_PRE void VMA_CALL_POST vmaEndDefragmentation(VmaAllocator VMA_NOT_NULL allocator,
                                                      VmaDefragmentationContext VMA_NOT_NULL context,
                                                      VmaDefragmentationStats *VMA_NULLABLE pStats);

/* Begins a pass. VK_INCOMPLETE means that there are moves, VK_SUCCESS that there are none and no pass is open. For each move, the
 * program makes a new buffer or image, binds it to dstTmpAllocation, copies on the device, waits, and destroys the old one. If it
 * does not do so, it says so in `operation`. It must not free the allocations that are moved meanwhile. It must not free
 * dstTmpAllocation either: that is a wrong call which frees nothing, and COPY then leaves srcAllocation where it is. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaBeginDefragmentationPass(VmaAllocator VMA_NOT_NULL allocator,
                                                                VmaDefragmentationContext VMA_NOT_NULL context,
                                                                VmaDefragmentationPassMoveInfo *VMA_NOT_NULL pPassInfo);

/* Ends a pass. Each srcAllocation is where dstTmpAllocation was. It keeps its handle, name, user data and mappings, but the mapped
 * addresses change. VK_INCOMPLETE means that another pass may move more, VK_SUCCESS that it will not. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaEndDefragmentationPass(VmaAllocator VMA_NOT_NULL allocator,
                                                              VmaDefragmentationContext VMA_NOT_NULL context,
                                                              VmaDefragmentationPassMoveInfo *VMA_NOT_NULL pPassInfo);

/* ------------------------------------------------------------------------------------------------------------------- bind */

/* Binds a buffer to an allocation. Errors: those of vkBindBufferMemory. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaBindBufferMemory(VmaAllocator VMA_NOT_NULL allocator,
                                                        VmaAllocation VMA_NOT_NULL allocation, VkBuffer buffer);

/* Binds a buffer to a part of an allocation, with a chain for VkBindBufferMemoryInfo, which may be null.
 * Errors: VK_ERROR_EXTENSION_NOT_PRESENT if there is a chain and no VK_KHR_bind_memory2; VK_ERROR_UNKNOWN if the offset is not
 * inside the allocation; those of Vulkan. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaBindBufferMemory2(VmaAllocator VMA_NOT_NULL allocator,
                                                         VmaAllocation VMA_NOT_NULL allocation,
                                                         VkDeviceSize allocationLocalOffset, VkBuffer buffer,
                                                         const void *VMA_NULLABLE pNext);

/* Binds an image to an allocation. Errors: those of vkBindImageMemory. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaBindImageMemory(VmaAllocator VMA_NOT_NULL allocator,
                                                       VmaAllocation VMA_NOT_NULL allocation, VkImage image);

/* Binds an image to a part of an allocation. As vmaBindBufferMemory2. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaBindImageMemory2(VmaAllocator VMA_NOT_NULL allocator,
                                                        VmaAllocation VMA_NOT_NULL allocation,
                                                        VkDeviceSize allocationLocalOffset, VkImage image,
                                                        const void *VMA_NULLABLE pNext);

/* ---------------------------------------------------------------------------------------------------- buffers and images */

/* Creates a buffer, allocates memory for it and binds the two.
 * Errors: VK_ERROR_INITIALIZATION_FAILED if the size is 0, or the usage has SHADER_DEVICE_ADDRESS and the allocator was not made
 * for it; those of vkCreateBuffer, vmaAllocateMemory and vkBindBufferMemory. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaCreateBuffer(VmaAllocator VMA_NOT_NULL allocator,
                                                    const VkBufferCreateInfo *VMA_NOT_NULL pBufferCreateInfo,
                                                    const VmaAllocationCreateInfo *VMA_NOT_NULL pAllocationCreateInfo,
                                                    VkBuffer VMA_NULLABLE_NON_DISPATCHABLE *VMA_NOT_NULL pBuffer,
                                                    VmaAllocation VMA_NULLABLE *VMA_NOT_NULL pAllocation,
                                                    VmaAllocationInfo *VMA_NULLABLE pAllocationInfo);

/* As vmaCreateBuffer with a least alignment. Deprecated: use VmaAllocationCreateInfo::minAlignment. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaCreateBufferWithAlignment(
    VmaAllocator VMA_NOT_NULL allocator, const VkBufferCreateInfo *VMA_NOT_NULL pBufferCreateInfo,
    const VmaAllocationCreateInfo *VMA_NOT_NULL pAllocationCreateInfo, VkDeviceSize minAlignment,
    VkBuffer VMA_NULLABLE_NON_DISPATCHABLE *VMA_NOT_NULL pBuffer, VmaAllocation VMA_NULLABLE *VMA_NOT_NULL pAllocation,
    VmaAllocationInfo *VMA_NULLABLE pAllocationInfo);

/* The same with a dedicated allocation, and a chain for VkMemoryAllocateInfo, which may be null. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaCreateDedicatedBuffer(VmaAllocator VMA_NOT_NULL allocator,
                                                             const VkBufferCreateInfo *VMA_NOT_NULL pBufferCreateInfo,
                                                             const VmaAllocationCreateInfo *VMA_NOT_NULL pAllocationCreateInfo,
                                                             void *VMA_NULLABLE pMemoryAllocateNext,
                                                             VkBuffer VMA_NULLABLE_NON_DISPATCHABLE *VMA_NOT_NULL pBuffer,
                                                             VmaAllocation VMA_NULLABLE *VMA_NOT_NULL pAllocation,
                                                             VmaAllocationInfo *VMA_NULLABLE pAllocationInfo);

/* Creates a buffer in the memory of an allocation, from its first byte on. The program must not use resources that share bytes at
 * the same time. The memory is not freed with the buffer.
 * Errors: VK_ERROR_INITIALIZATION_FAILED if the size is 0; VK_ERROR_FEATURE_NOT_PRESENT if the buffer does not fit there, or
 * cannot be in that memory type; those of Vulkan. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaCreateAliasingBuffer(VmaAllocator VMA_NOT_NULL allocator,
                                                            VmaAllocation VMA_NOT_NULL allocation,
                                                            const VkBufferCreateInfo *VMA_NOT_NULL pBufferCreateInfo,
                                                            VkBuffer VMA_NULLABLE_NON_DISPATCHABLE *VMA_NOT_NULL pBuffer);

/* The same from allocationLocalOffset on. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaCreateAliasingBuffer2(VmaAllocator VMA_NOT_NULL allocator,
                                                             VmaAllocation VMA_NOT_NULL allocation,
                                                             VkDeviceSize allocationLocalOffset,
                                                             const VkBufferCreateInfo *VMA_NOT_NULL pBufferCreateInfo,
                                                             VkBuffer VMA_NULLABLE_NON_DISPATCHABLE *VMA_NOT_NULL pBuffer);

/* Destroys a buffer and frees its memory; either may be null. Thread-safe for different ones. */
VMA_CALL_PRE void VMA_CALL_POST vmaDestroyBuffer(VmaAllocator VMA_NOT_NULL allocator, VkBuffer VMA_NULLABLE_NON_DISPATCHABLE buffer,
                                                 VmaAllocation VMA_NULLABLE allocation);

/* Creates an image, allocates memory for it and binds the two.
 * Errors: VK_ERROR_INITIALIZATION_FAILED if an extent, mipLevels or arrayLayers is 0; VK_ERROR_FEATURE_NOT_PRESENT if it is
 * disjoint; those of vkCreateImage, vmaAllocateMemory and vkBindImageMemory. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaCreateImage(VmaAllocator VMA_NOT_NULL allocator,
                                                   const VkImageCreateInfo *VMA_NOT_NULL pImageCreateInfo,
                                                   const VmaAllocationCreateInfo *VMA_NOT_NULL pAllocationCreateInfo,
                                                   VkImage VMA_NULLABLE_NON_DISPATCHABLE *VMA_NOT_NULL pImage,
                                                   VmaAllocation VMA_NULLABLE *VMA_NOT_NULL pAllocation,
                                                   VmaAllocationInfo *VMA_NULLABLE pAllocationInfo);

/* The same with a dedicated allocation, and a chain for VkMemoryAllocateInfo, which may be null. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaCreateDedicatedImage(VmaAllocator VMA_NOT_NULL allocator,
                                                            const VkImageCreateInfo *VMA_NOT_NULL pImageCreateInfo,
                                                            const VmaAllocationCreateInfo *VMA_NOT_NULL pAllocationCreateInfo,
                                                            void *VMA_NULLABLE pMemoryAllocateNext,
                                                            VkImage VMA_NULLABLE_NON_DISPATCHABLE *VMA_NOT_NULL pImage,
                                                            VmaAllocation VMA_NULLABLE *VMA_NOT_NULL pAllocation,
                                                            VmaAllocationInfo *VMA_NULLABLE pAllocationInfo);

/* Creates an image in the memory of an allocation. As vmaCreateAliasingBuffer. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaCreateAliasingImage(VmaAllocator VMA_NOT_NULL allocator,
                                                           VmaAllocation VMA_NOT_NULL allocation,
                                                           const VkImageCreateInfo *VMA_NOT_NULL pImageCreateInfo,
                                                           VkImage VMA_NULLABLE_NON_DISPATCHABLE *VMA_NOT_NULL pImage);

/* The same from allocationLocalOffset on. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaCreateAliasingImage2(VmaAllocator VMA_NOT_NULL allocator,
                                                            VmaAllocation VMA_NOT_NULL allocation,
                                                            VkDeviceSize allocationLocalOffset,
                                                            const VkImageCreateInfo *VMA_NOT_NULL pImageCreateInfo,
                                                            VkImage VMA_NULLABLE_NON_DISPATCHABLE *VMA_NOT_NULL pImage);

/* Destroys an image and frees its memory; either may be null. Thread-safe for different ones. */
VMA_CALL_PRE void VMA_CALL_POST vmaDestroyImage(VmaAllocator VMA_NOT_NULL allocator, VkImage VMA_NULLABLE_NON_DISPATCHABLE image,
                                                VmaAllocation VMA_NULLABLE allocation);

/* --------------------------------------------------------------------------------------------------------- virtual blocks */

/* Makes a virtual block: it allocates ranges of numbers, and no memory.
 * Errors: VK_ERROR_INITIALIZATION_FAILED if the size is 0 or above 2^63. Thread-safe. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaCreateVirtualBlock(const VmaVirtualBlockCreateInfo *VMA_NOT_NULL pCreateInfo,
                                                          VmaVirtualBlock VMA_NULLABLE *VMA_NOT_NULL pVirtualBlock);

/* Destroys a virtual block; null does nothing. It logs the ranges that are left. */
VMA_CALL_PRE void VMA_CALL_POST vmaDestroyVirtualBlock(VmaVirtualBlock VMA_NULLABLE virtualBlock);

/* Whether nothing is allocated. Only one thread at a time may call this and the functions that follow. */
VMA_CALL_PRE VkBool32 VMA_CALL_POST vmaIsVirtualBlockEmpty(VmaVirtualBlock VMA_NOT_NULL virtualBlock);

/* Describes a virtual allocation. */
VMA_CALL_PRE void VMA_CALL_POST vmaGetVirtualAllocationInfo(VmaVirtualBlock VMA_NOT_NULL virtualBlock,
                                                            VmaVirtualAllocation allocation,
                                                            VmaVirtualAllocationInfo *VMA_NOT_NULL pVirtualAllocInfo);

/* Allocates a range. pOffset may be null.
 * Errors: VK_ERROR_OUT_OF_DEVICE_MEMORY if there is no room, the size is 0, or the alignment is no power of two; then the
 * allocation is null and the offset UINT64_MAX. */
VMA_CALL_PRE VkResult VMA_CALL_POST vmaVirtualAllocate(VmaVirtualBlock VMA_NOT_NULL virtualBlock,
                                                       const VmaVirtualAllocationCreateInfo *VMA_NOT_NULL pCreateInfo,
                                                       VmaVirtualAllocation VMA_NULLABLE_NON_DISPATCHABLE *VMA_NOT_NULL pAllocation,
                                                       VkDeviceSize *VMA_NULLABLE pOffset);

/* Frees a range; null does nothing. */
VMA_CALL_PRE void VMA_CALL_POST vmaVirtualFree(VmaVirtualBlock VMA_NOT_NULL virtualBlock,
                                               VmaVirtualAllocation VMA_NULLABLE_NON_DISPATCHABLE allocation);

/* Frees all ranges. */
VMA_CALL_PRE void VMA_CALL_POST vmaClearVirtualBlock(VmaVirtualBlock VMA_NOT_NULL virtualBlock);

/* Changes the user data of a range. */
VMA_CALL_PRE void VMA_CALL_POST vmaSetVirtualAllocationUserData(VmaVirtualBlock VMA_NOT_NULL virtualBlock,
                                                                VmaVirtualAllocation allocation, void *VMA_NULLABLE pUserData);

/* Figures of a virtual block, fast. */
VMA_CALL_PRE void VMA_CALL_POST vmaGetVirtualBlockStatistics(VmaVirtualBlock VMA_NOT_NULL virtualBlock,
                                                             VmaStatistics *VMA_NOT_NULL pStats);

/* Figures of a virtual block, collected by a walk. */
VMA_CALL_PRE void VMA_CALL_POST vmaCalculateVirtualBlockStatistics(VmaVirtualBlock VMA_NOT_NULL virtualBlock,
                                                                   VmaDetailedStatistics *VMA_NOT_NULL pStats);

#if VMA_STATS_STRING_ENABLED
/* Describes a virtual block as JSON; unless detailedMap is VK_FALSE, also every range. Free the text with
 * vmaFreeVirtualBlockStatsString. */
VMA_CALL_PRE void VMA_CALL_POST vmaBuildVirtualBlockStatsString(VmaVirtualBlock VMA_NOT_NULL virtualBlock,
                                                                char *VMA_NULLABLE *VMA_NOT_NULL ppStatsString,
                                                                VkBool32 detailedMap);

/* Frees a text of vmaBuildVirtualBlockStatsString; null does nothing. */
VMA_CALL_PRE void VMA_CALL_POST vmaFreeVirtualBlockStatsString(VmaVirtualBlock VMA_NOT_NULL virtualBlock,
                                                               char *VMA_NULLABLE pStatsString);
#endif

/* --------------------------------------------------------------------------------------------------- what VMA has macros for */

/* These functions are Sublet's own. They hold for the whole process, and any thread may call them at any time. */

typedef enum SubletLogLevel {
    /* No level: no messages. */
    SUBLET_LOG_LEVEL_OFF = 0,
    /* Wrong calls, leaks when something is destroyed, damaged margins, faults of the library. */
    SUBLET_LOG_LEVEL_ERROR = 1,
    /* Probable mistakes: each allocation that leaked, by name, and budgets that are exceeded. */
    SUBLET_LOG_LEVEL_WARN = 2,
    SUBLET_LOG_LEVEL_INFO = 3,
    /* Blocks that the library makes and frees, and allocations that fail, each with its reason. */
    SUBLET_LOG_LEVEL_DEBUG = 4,
    SUBLET_LOG_LEVEL_TRACE = 5,
    SUBLET_LOG_LEVEL_MAX_ENUM = 0x7FFFFFFF
} SubletLogLevel;

/* Gets the messages of the library: one line each, without an end of line. The text lives until the function returns. Any thread
 * may call it, also several at once. It must not call functions of the library, and must not throw. */
typedef void(VKAPI_PTR *PFN_subletLog)(SubletLogLevel level, const char *VMA_NOT_NULL pMessage, void *VMA_NULLABLE pUserData);

/* Sets the function that gets all messages up to the level. With null, they go to standard error, as the head of this file says.
 * When this returns, the previous function is no longer called. Standard error is silent while there is a function. In a
 * process whose Rust part has a subscriber of `tracing`, that subscriber gets the messages instead. */
VMA_CALL_PRE void VMA_CALL_POST subletSetLogCallback(PFN_subletLog VMA_NULLABLE pfnLog, SubletLogLevel mostDetailed,
                                                     void *VMA_NULLABLE pUserData);

/* VK_TRUE: where VMA asserts (wrong calls, leaks when something is destroyed, damaged margins), the library logs the reason, on
 * standard error if there is no log callback, and ends the program with abort(). VK_FALSE: the program continues, as this header
 * describes. The environment variable SUBLET_ASSERT=1 is the same as VK_TRUE; so are on, yes and true. */
VMA_CALL_PRE void VMA_CALL_POST subletSetAssertions(VkBool32 enabled);

/* Settings that help to find faults. All zero switches everything off, and costs nothing. */
typedef struct SubletDebugSettings {
    /* Bytes that stay free behind every allocation in a block: VMA_DEBUG_MARGIN. */
    VkDeviceSize margin;
    /* The least bufferImageGranularity in bytes: VMA_DEBUG_MIN_BUFFER_IMAGE_GRANULARITY. */
    VkDeviceSize minBufferImageGranularity;
    /* Margins have a pattern, which is checked when an allocation is freed, and by vmaCheckCorruption:
     * VMA_DEBUG_DETECT_CORRUPTION. Needs a margin. */
    VkBool32 detectCorruption;
    /* Memory that the host can map is filled with 0xDC when it is allocated, with 0xEF when it is freed:
     * VMA_DEBUG_INITIALIZE_ALLOCATIONS. */
    VkBool32 fill;
    /* Every allocation is dedicated, where that is possible: VMA_DEBUG_ALWAYS_DEDICATED_MEMORY. */
    VkBool32 alwaysDedicated;
    /* The library may exceed maxMemoryAllocationCount: VMA_DEBUG_DONT_EXCEED_MAX_MEMORY_ALLOCATION_COUNT as 0. */
    VkBool32 exceedMaxAllocationCount;
} SubletDebugSettings;

/* Sets the debug settings of allocators that are made from now on. Null takes them from the environment variable SUBLET_DEBUG, a
 * list such as `margin=64,detect_corruption,fill`, with always_dedicated, min_buffer_image_granularity=BYTES and exceed_max_allocation_count. */
VMA_CALL_PRE void VMA_CALL_POST subletSetDebugSettings(const SubletDebugSettings *VMA_NULLABLE pSettings);

/* Sets the most bytes that each allocator made from now on maps at a time. 0 is the default: 1 GiB on 32-bit hosts, and no limit
 * on others. Beyond the limit, memory that is mapped without need is unmapped, and then mapping fails with
 * VK_ERROR_MEMORY_MAP_FAILED. A block is mapped as a whole. */
VMA_CALL_PRE void VMA_CALL_POST subletSetMaxMappedSize(VkDeviceSize size);

#ifdef __cplusplus
}
#endif

#ifdef __clang__
#pragma clang diagnostic pop
#endif

#endif /* AMD_VULKAN_MEMORY_ALLOCATOR_H */
