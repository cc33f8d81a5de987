/* Allocators. */
#include "client.h"

/* The last arguments of the callbacks. */
typedef struct Told {
    VmaAllocator allocator;
    uint32_t allocated, freed, wrong;
    VkDeviceSize bytes;
} Told;

static void VKAPI_PTR on_allocate(VmaAllocator allocator, uint32_t type, VkDeviceMemory memory, VkDeviceSize size, void *data) {
    Told *told = (Told *)data;
    told->allocator = allocator;
    told->allocated++;
    told->bytes += size;
    told->wrong += type >= VK_MAX_MEMORY_TYPES || memory == VK_NULL_HANDLE;
}

static void VKAPI_PTR on_free(VmaAllocator allocator, uint32_t type, VkDeviceMemory memory, VkDeviceSize size, void *data) {
    Told *told = (Told *)data;
    told->freed++;
    told->bytes -= size;
    told->wrong += type >= VK_MAX_MEMORY_TYPES || memory == VK_NULL_HANDLE || allocator != told->allocator;
}

static void test_callbacks(const Gpu *gpu) {
    Told told;
    memset(&told, 0, sizeof(told));
    VmaDeviceMemoryCallbacks callbacks = {on_allocate, on_free, &told};
    VmaAllocatorCreateInfo create;
    memset(&create, 0, sizeof(create));
    create.physicalDevice = gpu->physicalDevice;
    create.device = gpu->device;
    create.instance = gpu->instance;
    create.pVulkanFunctions = gpu->pFunctions == NULL ? NULL : &gpu->functions;
    create.pDeviceMemoryCallbacks = &callbacks;
    VmaAllocator allocator = NULL;
    REQUIRE(vmaCreateAllocator(&create, &allocator));
    /* The structures were copied. */
    memset(&callbacks, 0, sizeof(callbacks));
    VmaAllocationCreateInfo own = wanted(VMA_MEMORY_USAGE_UNKNOWN, VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT);
    VkMemoryRequirements needs = {5000, 256, 0xFFFFFFFF};
    VmaAllocation first = NULL, second = NULL;
    REQUIRE(vmaAllocateMemory(allocator, &needs, &own, &first, NULL));
    CHECK(told.allocator == allocator && told.allocated == 1 && told.bytes == 5000);
    own.flags = 0;
    REQUIRE(vmaAllocateMemory(allocator, &needs, &own, &second, NULL));
    CHECK(told.allocated == 2 && told.freed == 0 && told.bytes > 10000);
    vmaFreeMemory(allocator, first);
    CHECK(told.freed == 1);
    vmaFreeMemory(allocator, second);
    vmaDestroyAllocator(allocator);
    CHECK(told.freed == 2 && told.bytes == 0 && told.wrong == 0);
}

#ifdef VMA_SUBLET
static void test_memory_first(const Gpu *gpu) {
    const VmaAllocatorCreateFlags flags[] = {0, SUBLET_ALLOCATOR_CREATE_MEMORY_FIRST_BIT};
    const VkDeviceSize reserved[] = {4u << 20, 1u << 20};
    for (int i = 0; i < 2; i++) {
        VmaAllocator allocator = make_allocator(gpu, flags[i]);
        VmaAllocationCreateInfo any = wanted(VMA_MEMORY_USAGE_UNKNOWN, 0);
        VkMemoryRequirements needs = {64u << 10, 256, 0xFFFFFFFF};
        VmaAllocation allocation = NULL;
        REQUIRE(vmaAllocateMemory(allocator, &needs, &any, &allocation, NULL));
        VmaTotalStatistics statistics;
        vmaCalculateStatistics(allocator, &statistics);
        CHECK(statistics.total.statistics.blockBytes == reserved[i]);
        vmaFreeMemory(allocator, allocation);
        vmaDestroyAllocator(allocator);
    }
}
#endif

void test_allocator(const Gpu *gpu) {
    VmaAllocator allocator = make_allocator(gpu, 0);
    VmaAllocatorInfo info;
    memset(&info, 0, sizeof(info));
    vmaGetAllocatorInfo(allocator, &info);
    CHECK(info.instance == gpu->instance);
    CHECK(info.physicalDevice == gpu->physicalDevice);
    CHECK(info.device == gpu->device);

    const VkPhysicalDeviceProperties *properties = NULL;
    vmaGetPhysicalDeviceProperties(allocator, &properties);
    CHECK(properties != NULL && strcmp(properties->deviceName, gpu->properties.deviceName) == 0);
    const VkPhysicalDeviceMemoryProperties *memory = NULL;
    vmaGetMemoryProperties(allocator, &memory);
    CHECK(memory != NULL && memory->memoryTypeCount == gpu->memory.memoryTypeCount);
    for (uint32_t i = 0; i < gpu->memory.memoryTypeCount; i++) {
        VkMemoryPropertyFlags flags = 0xFFFFFFFF;
        vmaGetMemoryTypeProperties(allocator, i, &flags);
        CHECK(flags == gpu->memory.memoryTypes[i].propertyFlags);
    }
    vmaSetCurrentFrameIndex(allocator, 7);
    vmaDestroyAllocator(allocator);
    vmaDestroyAllocator(NULL);

    /* Heap limits show in the reported sizes. */
    VkDeviceSize limits[VK_MAX_MEMORY_HEAPS];
    for (uint32_t i = 0; i < VK_MAX_MEMORY_HEAPS; i++) {
        limits[i] = VK_WHOLE_SIZE;
    }
    limits[0] = 64u << 20;
    VmaAllocatorCreateInfo create;
    memset(&create, 0, sizeof(create));
    create.physicalDevice = gpu->physicalDevice;
    create.device = gpu->device;
    create.instance = gpu->instance;
    create.pVulkanFunctions = gpu->pFunctions == NULL ? NULL : &gpu->functions;
    create.pHeapSizeLimit = limits;
    REQUIRE(vmaCreateAllocator(&create, &allocator));
    vmaGetMemoryProperties(allocator, &memory);
    CHECK(memory->memoryHeaps[0].size == 64u << 20);
    for (uint32_t i = 1; i < memory->memoryHeapCount; i++) {
        CHECK(memory->memoryHeaps[i].size == gpu->memory.memoryHeaps[i].size);
    }
    VkMemoryRequirements large = {65u << 20, 256, 0};
    for (uint32_t i = 0; i < memory->memoryTypeCount; i++) {
        if (memory->memoryTypes[i].heapIndex == 0) {
            large.memoryTypeBits |= 1u << i;
        }
    }
    VmaAllocationCreateInfo any = wanted(VMA_MEMORY_USAGE_UNKNOWN, 0);
    VmaAllocation allocation = NULL;
    CHECK_RESULT(vmaAllocateMemory(allocator, &large, &any, &allocation, NULL), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK(allocation == NULL);
    vmaDestroyAllocator(allocator);

    test_callbacks(gpu);
#ifdef VMA_SUBLET
    test_memory_first(gpu);
#endif

    /* Calls on which VMA asserts. */
    create.pHeapSizeLimit = NULL;
    allocator = (VmaAllocator)(void *)&create;
    create.vulkanApiVersion = VK_MAKE_VERSION(2, 0, 0);
    CHECK_RESULT(vmaCreateAllocator(&create, &allocator), VK_ERROR_INITIALIZATION_FAILED);
    CHECK(allocator == NULL);
    create.vulkanApiVersion = 0;
    create.device = NULL;
    CHECK_RESULT(vmaCreateAllocator(&create, &allocator), VK_ERROR_INITIALIZATION_FAILED);
    create.device = gpu->device;
    create.flags = VMA_ALLOCATOR_CREATE_KHR_DEDICATED_ALLOCATION_BIT;
    VmaVulkanFunctions none;
    memset(&none, 0, sizeof(none));
    none.vkAllocateMemory = gpu->functions.vkAllocateMemory;
    if (none.vkAllocateMemory != NULL) {
        create.pVulkanFunctions = &none;
        CHECK_RESULT(vmaCreateAllocator(&create, &allocator), VK_ERROR_INITIALIZATION_FAILED);
    }
}
