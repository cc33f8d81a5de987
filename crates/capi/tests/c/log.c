/* What Sublet has functions for, and VMA macros: who hears of mistakes, and help in finding them. */
#include "client.h"

#ifdef VMA_SUBLET
typedef struct Heard {
    int errors, warnings, others;
    char last[512], warned[512];
} Heard;

static void VKAPI_PTR hear(SubletLogLevel level, const char *message, void *user_data) {
    Heard *heard = (Heard *)user_data;
    switch (level) {
        case SUBLET_LOG_LEVEL_ERROR:
            heard->errors++;
            snprintf(heard->last, sizeof(heard->last), "%s", message);
            break;
        case SUBLET_LOG_LEVEL_WARN:
            heard->warnings++;
            snprintf(heard->warned, sizeof(heard->warned), "%s", message);
            break;
        default: heard->others++;
    }
}

void test_log(const Gpu *gpu) {
    Heard heard;
    memset(&heard, 0, sizeof(heard));
    subletSetLogCallback(hear, SUBLET_LOG_LEVEL_WARN, &heard);
    VmaAllocator allocator = make_allocator(gpu, 0);
    CHECK(heard.errors == 0 && heard.others == 0);
    VkMemoryRequirements needs = {1000, 256, 0xFFFFFFFF};
    VmaAllocationCreateInfo host = wanted(VMA_MEMORY_USAGE_CPU_ONLY, VMA_ALLOCATION_CREATE_MAPPED_BIT);
    VmaAllocation allocation = NULL;
    VmaAllocationInfo info;
    REQUIRE(vmaAllocateMemory(allocator, &needs, &host, &allocation, NULL));
    vmaFreeMemory(allocator, allocation);
    CHECK(heard.errors == 0);
    vmaFreeMemory(allocator, allocation);
    CHECK(heard.errors == 1);
    CHECK(strncmp(heard.last, "vmaFreeMemory: ", 15) == 0 && strstr(heard.last, "freed already") != NULL);
    /* More detail, and none. */
    subletSetLogCallback(hear, SUBLET_LOG_LEVEL_TRACE, &heard);
    VkMemoryRequirements huge = {(VkDeviceSize)1 << 60, 256, 0xFFFFFFFF};
    CHECK_RESULT(vmaAllocateMemory(allocator, &huge, &host, &allocation, NULL), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK(heard.others > 0);
    int before = heard.others;
    subletSetLogCallback(hear, SUBLET_LOG_LEVEL_OFF, &heard);
    CHECK_RESULT(vmaAllocateMemory(allocator, &huge, &host, &allocation, NULL), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    vmaUnmapMemory(allocator, NULL);
    CHECK(heard.others == before && heard.errors == 1);
    /* A leak has a name, and the allocator says how much was left. */
    subletSetLogCallback(hear, SUBLET_LOG_LEVEL_WARN, &heard);
    REQUIRE(vmaAllocateMemory(allocator, &needs, &host, &allocation, NULL));
    vmaSetAllocationName(allocator, allocation, "left behind");
    vmaDestroyAllocator(allocator);
    CHECK(heard.warnings > 0 && strstr(heard.warned, "left behind") != NULL);
    CHECK(heard.errors == 2 && strstr(heard.last, "count: 1") != NULL);

    /* Margins, for allocators that are made from now on. */
    SubletDebugSettings settings;
    memset(&settings, 0, sizeof(settings));
    settings.margin = 64;
    settings.detectCorruption = VK_TRUE;
    settings.fill = VK_TRUE;
    subletSetDebugSettings(&settings);
    allocator = make_allocator(gpu, 0);
    REQUIRE(vmaAllocateMemory(allocator, &needs, &host, &allocation, &info));
    unsigned char *bytes = (unsigned char *)info.pMappedData;
    CHECK(bytes != NULL && bytes[0] == 0xDC && bytes[999] == 0xDC);
    VkMemoryPropertyFlags flags = 0;
    vmaGetAllocationMemoryProperties(allocator, allocation, &flags);
    CHECK((flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0);
    CHECK_RESULT(vmaCheckCorruption(allocator, 0xFFFFFFFF), VK_SUCCESS);
    bytes[info.size + 1] ^= 0xFF;
    CHECK(vmaCheckCorruption(allocator, 0xFFFFFFFF) < VK_SUCCESS);
    before = heard.errors;
    vmaFreeMemory(allocator, allocation);
    CHECK(heard.errors == before + 1 && strstr(heard.last, "beyond the end") != NULL);
    vmaDestroyAllocator(allocator);
    /* Patterns need a margin. */
    settings.margin = 0;
    subletSetDebugSettings(&settings);
    VmaAllocatorCreateInfo create;
    memset(&create, 0, sizeof(create));
    create.physicalDevice = gpu->physicalDevice;
    create.device = gpu->device;
    create.instance = gpu->instance;
    create.pVulkanFunctions = gpu->pFunctions == NULL ? NULL : &gpu->functions;
    before = heard.errors;
    CHECK_RESULT(vmaCreateAllocator(&create, &allocator), VK_ERROR_INITIALIZATION_FAILED);
    CHECK(heard.errors == before + 1);
    subletSetDebugSettings(NULL);
    subletSetLogCallback(NULL, SUBLET_LOG_LEVEL_OFF, NULL);
}

int make_mistakes(const Gpu *gpu) {
    VmaAllocator allocator = make_allocator(gpu, 0);
    VkMemoryRequirements needs = {1000, 256, 0xFFFFFFFF};
    VmaAllocationCreateInfo any = wanted(VMA_MEMORY_USAGE_UNKNOWN, 0);
    VmaAllocation allocation = NULL;
    REQUIRE(vmaAllocateMemory(allocator, &needs, &any, &allocation, NULL));
    vmaSetAllocationName(allocator, allocation, "left behind");
    vmaDestroyAllocator(allocator);
    return 0;
}
#endif
