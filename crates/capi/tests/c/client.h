/* Shared parts of the tests of the C interface: a device, and error reporting. C11 and C++17. */
#ifndef CLIENT_H
#define CLIENT_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VK_NO_PROTOTYPES
#include <vk_mem_alloc.h>

/* The structures of VMA 3.3, and only its functions. */
#if defined(VMA_SUBLET_3_3) || defined(CLIENT_OF_VMA_3_3)
#define OLD_CLIENT 1
#else
#define OLD_CLIENT 0
#endif

#define CHECK(condition)                                                                                                         \
    do {                                                                                                                         \
        if (!(condition)) {                                                                                                      \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                               \
            failures++;                                                                                                          \
        }                                                                                                                        \
    } while (0)

#define CHECK_RESULT(expression, expected)                                                                                       \
    do {                                                                                                                         \
        VkResult result_ = (expression);                                                                                         \
        if (result_ != (expected)) {                                                                                             \
            printf("%s:%d: %s is %d, not %s\n", __FILE__, __LINE__, #expression, (int)result_, #expected);                       \
            failures++;                                                                                                          \
        }                                                                                                                        \
    } while (0)

/* Stops, because later code cannot run if this fails. */
#define REQUIRE(expression)                                                                                                      \
    do {                                                                                                                         \
        VkResult result_ = (expression);                                                                                         \
        if (result_ != VK_SUCCESS) {                                                                                             \
            printf("%s:%d: %s is %d\n", __FILE__, __LINE__, #expression, (int)result_);                                          \
            exit(2);                                                                                                             \
        }                                                                                                                        \
    } while (0)

/* The Vulkan functions that the tests call. */
#define INSTANCE_FUNCTIONS(X)                                                                                                    \
    X(vkDestroyInstance)                                                                                                         \
    X(vkEnumeratePhysicalDevices)                                                                                                \
    X(vkGetPhysicalDeviceProperties)                                                                                             \
    X(vkGetPhysicalDeviceMemoryProperties)                                                                                       \
    X(vkEnumerateDeviceExtensionProperties)                                                                                      \
    X(vkCreateDevice)                                                                                                            \
    X(vkGetDeviceProcAddr)
#define DEVICE_FUNCTIONS(X)                                                                                                      \
    X(vkDestroyDevice)                                                                                                           \
    X(vkCreateBuffer)                                                                                                            \
    X(vkDestroyBuffer)                                                                                                           \
    X(vkCreateImage)                                                                                                             \
    X(vkDestroyImage)                                                                                                            \
    X(vkGetBufferMemoryRequirements)                                                                                             \
    X(vkGetImageMemoryRequirements)

typedef struct Gpu {
    PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr;
#define MEMBER(name) PFN_##name name;
    INSTANCE_FUNCTIONS(MEMBER)
    DEVICE_FUNCTIONS(MEMBER)
#undef MEMBER
    VkInstance instance;
    VkPhysicalDevice physicalDevice;
    VkDevice device;
    uint32_t apiVersion;
    VmaAllocatorCreateFlags flags;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory;
    /* All functions, if the allocator gets them in a table. */
    VmaVulkanFunctions functions;
    const VmaVulkanFunctions *pFunctions;
} Gpu;

extern int failures;

/* A device, and the way in which the library gets its functions. */
Gpu open_gpu(PFN_vkGetInstanceProcAddr entry, const char *way);
void close_gpu(Gpu *gpu);
/* Creates an allocator with all features of the device, and more flags. */
VmaAllocator make_allocator(const Gpu *gpu, VmaAllocatorCreateFlags more);

static inline VmaAllocationCreateInfo wanted(VmaMemoryUsage usage, VmaAllocationCreateFlags flags) {
    VmaAllocationCreateInfo info;
    memset(&info, 0, sizeof(info));
    info.usage = usage;
    info.flags = flags;
    return info;
}

static inline VkBufferCreateInfo buffer_of(VkDeviceSize size, VkBufferUsageFlags usage) {
    VkBufferCreateInfo info;
    memset(&info, 0, sizeof(info));
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = size;
    info.usage = usage;
    return info;
}

static inline VkImageCreateInfo image_of(uint32_t extent, VkImageUsageFlags usage) {
    VkImageCreateInfo info;
    memset(&info, 0, sizeof(info));
    info.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO;
    info.imageType = VK_IMAGE_TYPE_2D;
    info.format = VK_FORMAT_R8G8B8A8_UNORM;
    info.extent.width = extent;
    info.extent.height = extent;
    info.extent.depth = 1;
    info.mipLevels = 1;
    info.arrayLayers = 1;
    info.samples = VK_SAMPLE_COUNT_1_BIT;
    info.usage = usage;
    return info;
}

/* The tests, one file for each noun. */
void test_allocator(const Gpu *gpu);
void test_chains(const Gpu *gpu);
void test_memory(const Gpu *gpu, VmaAllocator allocator);
void test_buffers(const Gpu *gpu, VmaAllocator allocator);
void test_images(const Gpu *gpu, VmaAllocator allocator);
void test_aliasing(const Gpu *gpu, VmaAllocator allocator);
void test_pools(const Gpu *gpu, VmaAllocator allocator);
void test_linear(const Gpu *gpu, VmaAllocator allocator);
void test_mapping(const Gpu *gpu, VmaAllocator allocator);
void test_defragmentation(const Gpu *gpu, VmaAllocator allocator);
void test_passes(const Gpu *gpu, VmaAllocator allocator);
void test_virtual_blocks(void);
void test_statistics(const Gpu *gpu, VmaAllocator allocator);
#ifdef VMA_SUBLET
void test_log(const Gpu *gpu);
int make_mistake(const Gpu *gpu, const char *which);
#endif
void test_bad_input(const Gpu *gpu, VmaAllocator allocator);
void test_ownership(const Gpu *gpu, VmaAllocator allocator);

#endif
