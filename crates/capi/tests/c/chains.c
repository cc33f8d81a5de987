/* Values that the library passes to Vulkan: chains, priorities, handle types, allocation callbacks. Hooks replace
 * Vulkan's own functions. They record the values and forward those that every driver accepts. */
#include "client.h"

#define MOST_CHAINED 8

/* The last vkAllocateMemory. */
static struct {
    PFN_vkAllocateMemory allocate;
    PFN_vkFreeMemory free_;
    uint32_t calls;
    uint32_t count;
    VkStructureType chained[MOST_CHAINED];
    float priority;
    VkExternalMemoryHandleTypeFlags handle_types;
    const VkAllocationCallbacks *callbacks;
    void *user_data;
} seen;

static VKAPI_ATTR VkResult VKAPI_CALL looking_allocate(VkDevice device, const VkMemoryAllocateInfo *info,
                                                       const VkAllocationCallbacks *callbacks, VkDeviceMemory *memory) {
    VkMemoryAllocateInfo plain = *info;
    seen.calls++;
    seen.count = 0;
    seen.priority = -1.0f;
    seen.handle_types = 0;
    seen.callbacks = callbacks;
    seen.user_data = callbacks == NULL ? NULL : callbacks->pUserData;
    for (const VkBaseInStructure *at = (const VkBaseInStructure *)info->pNext; at != NULL; at = at->pNext) {
        if (seen.count < MOST_CHAINED) {
            seen.chained[seen.count++] = at->sType;
        }
        if (at->sType == VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT) {
            seen.priority = ((const VkMemoryPriorityAllocateInfoEXT *)at)->priority;
        }
        if (at->sType == VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO) {
            seen.handle_types |= ((const VkExportMemoryAllocateInfo *)at)->handleTypes;
        }
    }
    plain.pNext = NULL;
    return seen.allocate(device, &plain, NULL, memory);
}

static VKAPI_ATTR void VKAPI_CALL looking_free(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks *callbacks) {
    CHECK((callbacks != NULL) == (seen.callbacks != NULL));
    seen.free_(device, memory, NULL);
}

static bool was_chained(VkStructureType type) {
    for (uint32_t i = 0; i < seen.count; i++) {
        if (seen.chained[i] == type) {
            return true;
        }
    }
    return false;
}

static void *VKAPI_PTR no_memory(void *data, size_t size, size_t alignment, VkSystemAllocationScope scope) {
    (void)data, (void)size, (void)alignment, (void)scope;
    return NULL;
}

static void *VKAPI_PTR no_more_memory(void *data, void *old, size_t size, size_t alignment, VkSystemAllocationScope scope) {
    (void)data, (void)old, (void)size, (void)alignment, (void)scope;
    return NULL;
}

static void VKAPI_PTR nothing_to_free(void *data, void *memory) { (void)data, (void)memory; }

void test_chains(const Gpu *gpu) {
    /* Only a program that provides every function can replace some. */
    if (gpu->pFunctions == NULL || gpu->functions.vkAllocateMemory == NULL) {
        return;
    }
    VmaVulkanFunctions functions = gpu->functions;
    seen.allocate = functions.vkAllocateMemory;
    seen.free_ = functions.vkFreeMemory;
    functions.vkAllocateMemory = looking_allocate;
    functions.vkFreeMemory = looking_free;

    VkExternalMemoryHandleTypeFlagsKHR types[VK_MAX_MEMORY_TYPES];
    for (uint32_t i = 0; i < VK_MAX_MEMORY_TYPES; i++) {
        types[i] = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    }
    int mark = 0;
    VkAllocationCallbacks callbacks;
    memset(&callbacks, 0, sizeof(callbacks));
    callbacks.pUserData = &mark;
    callbacks.pfnAllocation = no_memory;
    callbacks.pfnReallocation = no_more_memory;
    callbacks.pfnFree = nothing_to_free;

    VmaAllocatorCreateInfo create;
    memset(&create, 0, sizeof(create));
    create.flags = VMA_ALLOCATOR_CREATE_EXT_MEMORY_PRIORITY_BIT;
    create.physicalDevice = gpu->physicalDevice;
    create.device = gpu->device;
    create.instance = gpu->instance;
    create.vulkanApiVersion = gpu->apiVersion;
    create.pVulkanFunctions = &functions;
    create.pTypeExternalMemoryHandleTypes = types;
    create.pAllocationCallbacks = &callbacks;
    VmaAllocator allocator = NULL;
    REQUIRE(vmaCreateAllocator(&create, &allocator));
    /* Both were copied. */
    memset(types, 0, sizeof(types));
    memset(&callbacks, 0, sizeof(callbacks));

    VkMemoryRequirements needs = {4096, 256, 0xFFFFFFFF};
    VmaAllocationCreateInfo own = wanted(VMA_MEMORY_USAGE_UNKNOWN, VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT);
    own.priority = 0.75f;
    VmaAllocation allocation = NULL;
    REQUIRE(vmaAllocateMemory(allocator, &needs, &own, &allocation, NULL));
    CHECK(seen.count == 2 && seen.chained[0] == VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO);
    CHECK(seen.handle_types == VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT);
    CHECK(seen.priority == 0.75f);
    CHECK(seen.callbacks != NULL && seen.user_data == &mark);
    vmaFreeMemory(allocator, allocation);

    /* A block has the priority and the chain of its pool. */
    VkMemoryAllocateFlagsInfo mask;
    memset(&mask, 0, sizeof(mask));
    mask.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
    VmaPoolCreateInfo info;
    memset(&info, 0, sizeof(info));
    info.blockSize = 1u << 20;
    info.minBlockCount = 1;
    info.priority = 0.25f;
    info.pMemoryAllocateNext = &mask;
    VmaPool pool = NULL;
    uint32_t before = seen.calls;
    REQUIRE(vmaCreatePool(allocator, &info, &pool));
    CHECK(seen.calls == before + 1 && seen.priority == 0.25f);
    CHECK(was_chained(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO));
    vmaDestroyPool(allocator, pool);

#if !OLD_CLIENT
    /* The chain of an allocation comes last. */
    REQUIRE(vmaAllocateDedicatedMemory(allocator, &needs, &own, &mask, &allocation, NULL));
    CHECK(seen.count == 3 && seen.chained[2] == VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);
    vmaFreeMemory(allocator, allocation);
#endif
    vmaDestroyAllocator(allocator);
}
