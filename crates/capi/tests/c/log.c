/* Sublet's functions for settings that VMA has as macros: log callback, assertions and debug settings. */
#include "client.h"

#ifdef VMA_SUBLET
typedef struct Heard {
    int errors, warnings, others;
    /* No message may contain a control character, or the name of one of the library's source files. */
    int broken, sources;
    char last[512], warned[512], all[4096];
} Heard;

static void VKAPI_PTR hear(SubletLogLevel level, const char *message, void *user_data) {
    Heard *heard = (Heard *)user_data;
    for (const char *c = message; *c != 0; c++) {
        heard->broken += (unsigned char)*c < 0x20 || *c == 0x7F;
    }
    heard->sources += strstr(message, ".rs") != NULL;
    switch (level) {
        case SUBLET_LOG_LEVEL_ERROR:
            heard->errors++;
            snprintf(heard->last, sizeof(heard->last), "%s", message);
            strncat(heard->all, message, sizeof(heard->all) - strlen(heard->all) - 1);
            break;
        case SUBLET_LOG_LEVEL_WARN:
            heard->warnings++;
            snprintf(heard->warned, sizeof(heard->warned), "%s", message);
            break;
        default: heard->others++;
    }
}

/* Expects one error that begins with the name of the function and contains a text. */
static void expect(Heard *heard, const char *function, const char *text, int line) {
    if (heard->errors != 1 || strncmp(heard->last, function, strlen(function)) != 0 || strstr(heard->last, text) == NULL) {
        printf("%s:%d: %d errors, the last of them \"%s\": no %s with \"%s\"\n", __FILE__, line, heard->errors, heard->last,
               function, text);
        failures++;
    }
    heard->errors = 0;
    heard->last[0] = 0;
}
#define EXPECT(function, text) expect(&heard, function ": wrong call", text, __LINE__)

/* VMA asserts that AUTO usages come with a buffer or image, and that a usage is valid. These are the most common
 * mistakes of programs that stop using VMA's older usages. */
static void wrong_usages(const Gpu *gpu) {
    Heard heard;
    memset(&heard, 0, sizeof(heard));
    subletSetLogCallback(hear, SUBLET_LOG_LEVEL_WARN, &heard);
    VmaAllocator allocator = make_allocator(gpu, 0);
    VkMemoryRequirements needs = {1000, 256, 0xFFFFFFFF};
    VkBufferCreateInfo buffer_info = buffer_of(64, VK_BUFFER_USAGE_TRANSFER_DST_BIT);
    VkImageCreateInfo image_info = image_of(16, VK_IMAGE_USAGE_SAMPLED_BIT);
    VkBuffer bound = VK_NULL_HANDLE, buffer = VK_NULL_HANDLE;
    VkImage unbound = VK_NULL_HANDLE, image = VK_NULL_HANDLE;
    REQUIRE(gpu->vkCreateBuffer(gpu->device, &buffer_info, NULL, &bound));
    REQUIRE(gpu->vkCreateImage(gpu->device, &image_info, NULL, &unbound));
    VmaAllocation allocation = NULL, pages[2];
    uint32_t found = 0;
    for (int usage = VMA_MEMORY_USAGE_AUTO; usage <= VMA_MEMORY_USAGE_AUTO_PREFER_HOST; usage++) {
        VmaAllocationCreateInfo automatic = wanted((VmaMemoryUsage)usage, 0);
        CHECK_RESULT(vmaAllocateMemory(allocator, &needs, &automatic, &allocation, NULL), VK_ERROR_FEATURE_NOT_PRESENT);
        EXPECT("vmaAllocateMemory", "Auto");
        CHECK_RESULT(vmaAllocateMemoryPages(allocator, &needs, &automatic, 2, pages, NULL), VK_ERROR_FEATURE_NOT_PRESENT);
        EXPECT("vmaAllocateMemory", "Auto");
        CHECK_RESULT(vmaAllocateMemoryForBuffer(allocator, bound, &automatic, &allocation, NULL), VK_ERROR_FEATURE_NOT_PRESENT);
        EXPECT("vmaAllocateMemoryForBuffer", "Auto");
        CHECK_RESULT(vmaAllocateMemoryForImage(allocator, unbound, &automatic, &allocation, NULL), VK_ERROR_FEATURE_NOT_PRESENT);
        EXPECT("vmaAllocateMemoryForImage", "Auto");
        CHECK_RESULT(vmaFindMemoryTypeIndex(allocator, 0xFFFFFFFF, &automatic, &found), VK_ERROR_FEATURE_NOT_PRESENT);
        EXPECT("vmaFindMemoryTypeIndex", "Auto");
#if !OLD_CLIENT
        CHECK_RESULT(vmaAllocateDedicatedMemory(allocator, &needs, &automatic, NULL, &allocation, NULL), VK_ERROR_FEATURE_NOT_PRESENT);
        EXPECT("vmaAllocateDedicatedMemory", "Auto");
#endif
    }
    const int strange[] = {10, 77, -1};
    for (int i = 0; i < 3; i++) {
        VmaAllocationCreateInfo none = wanted((VmaMemoryUsage)strange[i], 0);
        const VkResult refused = VK_ERROR_INITIALIZATION_FAILED, not_found = VK_ERROR_FEATURE_NOT_PRESENT;
        CHECK_RESULT(vmaAllocateMemory(allocator, &needs, &none, &allocation, NULL), refused);
        EXPECT("vmaAllocateMemory", "VmaMemoryUsage");
        CHECK_RESULT(vmaAllocateMemoryPages(allocator, &needs, &none, 2, pages, NULL), refused);
        EXPECT("vmaAllocateMemoryPages", "VmaMemoryUsage");
        CHECK_RESULT(vmaAllocateMemoryForBuffer(allocator, bound, &none, &allocation, NULL), refused);
        EXPECT("vmaAllocateMemoryForBuffer", "VmaMemoryUsage");
        CHECK_RESULT(vmaAllocateMemoryForImage(allocator, unbound, &none, &allocation, NULL), refused);
        EXPECT("vmaAllocateMemoryForImage", "VmaMemoryUsage");
        CHECK_RESULT(vmaCreateBuffer(allocator, &buffer_info, &none, &buffer, &allocation, NULL), refused);
        EXPECT("vmaCreateBuffer", "VmaMemoryUsage");
        CHECK_RESULT(vmaCreateImage(allocator, &image_info, &none, &image, &allocation, NULL), refused);
        EXPECT("vmaCreateImage", "VmaMemoryUsage");
#if !OLD_CLIENT
        CHECK_RESULT(vmaAllocateDedicatedMemory(allocator, &needs, &none, NULL, &allocation, NULL), refused);
        EXPECT("vmaAllocateDedicatedMemory", "VmaMemoryUsage");
        CHECK_RESULT(vmaCreateDedicatedBuffer(allocator, &buffer_info, &none, NULL, &buffer, &allocation, NULL), refused);
        EXPECT("vmaCreateDedicatedBuffer", "VmaMemoryUsage");
#endif
        CHECK_RESULT(vmaFindMemoryTypeIndex(allocator, 0xFFFFFFFF, &none, &found), not_found);
        EXPECT("vmaFindMemoryTypeIndex", "VmaMemoryUsage");
        CHECK_RESULT(vmaFindMemoryTypeIndexForBufferInfo(allocator, &buffer_info, &none, &found), not_found);
        EXPECT("vmaFindMemoryTypeIndexForBufferInfo", "VmaMemoryUsage");
        CHECK_RESULT(vmaFindMemoryTypeIndexForImageInfo(allocator, &image_info, &none, &found), not_found);
        EXPECT("vmaFindMemoryTypeIndexForImageInfo", "VmaMemoryUsage");
        CHECK(allocation == NULL && buffer == VK_NULL_HANDLE && image == VK_NULL_HANDLE);
    }
    VmaTotalStatistics all;
    vmaCalculateStatistics(allocator, &all);
    CHECK(all.total.statistics.allocationCount == 0);
    /* A pool ignores the usage. */
    VmaPoolCreateInfo create;
    memset(&create, 0, sizeof(create));
    VmaAllocationCreateInfo any = wanted(VMA_MEMORY_USAGE_UNKNOWN, 0);
    REQUIRE(vmaFindMemoryTypeIndex(allocator, 0xFFFFFFFF, &any, &create.memoryTypeIndex));
    VmaPool pool = NULL;
    REQUIRE(vmaCreatePool(allocator, &create, &pool));
    VmaAllocationCreateInfo inside = wanted((VmaMemoryUsage)77, 0);
    inside.pool = pool;
    for (int i = 0; i < 2; i++) {
        REQUIRE(vmaAllocateMemory(allocator, &needs, &inside, &allocation, NULL));
        vmaFreeMemory(allocator, allocation);
        inside.usage = VMA_MEMORY_USAGE_AUTO;
    }
    CHECK(heard.errors == 0);
    /* Neither Sublet nor VMA treats a linear pool as a wrong call. */
    create.flags = VMA_POOL_CREATE_LINEAR_ALGORITHM_BIT;
    VmaPool linear = NULL;
    REQUIRE(vmaCreatePool(allocator, &create, &linear));
    VmaDefragmentationInfo defragment;
    memset(&defragment, 0, sizeof(defragment));
    defragment.pool = linear;
    VmaDefragmentationContext context = NULL, twice = NULL;
    CHECK_RESULT(vmaBeginDefragmentation(allocator, &defragment, &context), VK_ERROR_FEATURE_NOT_PRESENT);
    CHECK(heard.errors == 0);
    defragment.pool = pool;
    REQUIRE(vmaBeginDefragmentation(allocator, &defragment, &context));
    CHECK_RESULT(vmaBeginDefragmentation(allocator, &defragment, &twice), VK_ERROR_INITIALIZATION_FAILED);
    EXPECT("vmaBeginDefragmentation", "");
    vmaEndDefragmentation(allocator, context, NULL);
    vmaDestroyPool(allocator, linear);
    vmaDestroyPool(allocator, pool);
    /* The output pointer is null. */
    CHECK_RESULT(vmaAllocateMemory(allocator, &needs, &any, NULL, NULL), VK_ERROR_INITIALIZATION_FAILED);
    EXPECT("vmaAllocateMemory", "null");
    CHECK_RESULT(vmaAllocateMemoryPages(allocator, &needs, &any, 2, NULL, NULL), VK_ERROR_INITIALIZATION_FAILED);
    EXPECT("vmaAllocateMemoryPages", "null");
    VmaVirtualBlockCreateInfo block_info;
    memset(&block_info, 0, sizeof(block_info));
    block_info.size = 64;
    CHECK_RESULT(vmaCreateVirtualBlock(&block_info, NULL), VK_ERROR_INITIALIZATION_FAILED);
    EXPECT("vmaCreateVirtualBlock", "null");
    gpu->vkDestroyBuffer(gpu->device, bound, NULL);
    gpu->vkDestroyImage(gpu->device, unbound, NULL);
    vmaDestroyAllocator(allocator);
    CHECK(heard.errors == 0 && heard.warnings == 0);
    subletSetLogCallback(NULL, SUBLET_LOG_LEVEL_OFF, NULL);
}

/* A message is one line, even with unusual names. Leaks have their own messages. */
static void lines(const Gpu *gpu) {
    static const char *const forged = "first\nsublet: ERROR: vmaFreeMemory: wrong call\r\t\x1b[2J\x7f";
    Heard heard;
    memset(&heard, 0, sizeof(heard));
    subletSetLogCallback(hear, SUBLET_LOG_LEVEL_TRACE, &heard);
    VmaAllocator allocator = make_allocator(gpu, 0);
    VkMemoryRequirements needs = {1000, 256, 0xFFFFFFFF}, huge = {(VkDeviceSize)1 << 60, 256, 0xFFFFFFFF};
    VmaAllocationCreateInfo any = wanted(VMA_MEMORY_USAGE_UNKNOWN, 0);
    VmaPoolCreateInfo create;
    memset(&create, 0, sizeof(create));
    REQUIRE(vmaFindMemoryTypeIndex(allocator, 0xFFFFFFFF, &any, &create.memoryTypeIndex));
    VmaPool pool = NULL;
    REQUIRE(vmaCreatePool(allocator, &create, &pool));
    vmaSetPoolName(allocator, pool, forged);
    VmaAllocationCreateInfo inside = any;
    inside.pool = pool;
    VmaAllocation allocation = NULL;
    REQUIRE(vmaAllocateMemory(allocator, &needs, &inside, &allocation, NULL));
    vmaSetAllocationName(allocator, allocation, forged);
    CHECK(vmaAllocateMemory(allocator, &huge, &any, &allocation, NULL) < VK_SUCCESS);
    heard.errors = 0;
    vmaDestroyPool(allocator, pool);
    expect(&heard, "vmaDestroyPool: leak", "count: 1)", __LINE__);
    CHECK(strstr(heard.warned, "first\\nsublet") != NULL && strstr(heard.warned, "\\u{1b}") != NULL);
    vmaDestroyAllocator(allocator);
    expect(&heard, "vmaDestroyAllocator: leak", "count: 1)", __LINE__);
    CHECK(heard.others > 0 && heard.broken == 0 && heard.sources == 0);
    VmaVirtualBlockCreateInfo block_info;
    memset(&block_info, 0, sizeof(block_info));
    block_info.size = 64;
    VmaVirtualBlock block = NULL;
    REQUIRE(vmaCreateVirtualBlock(&block_info, &block));
    VmaVirtualAllocationCreateInfo piece;
    memset(&piece, 0, sizeof(piece));
    piece.size = 16;
    VmaVirtualAllocation made = VK_NULL_HANDLE;
    REQUIRE(vmaVirtualAllocate(block, &piece, &made, NULL));
    vmaDestroyVirtualBlock(block);
    expect(&heard, "vmaDestroyVirtualBlock: leak", "count: 1)", __LINE__);
    subletSetLogCallback(NULL, SUBLET_LOG_LEVEL_OFF, NULL);
}

/* Leaks are counted by kind when the allocator is destroyed. Temporary allocations of a pass do not count. */
static void leaks(const Gpu *gpu) {
    Heard heard;
    memset(&heard, 0, sizeof(heard));
    subletSetLogCallback(hear, SUBLET_LOG_LEVEL_WARN, &heard);
    VmaAllocator allocator = make_allocator(gpu, 0);
    VmaAllocationCreateInfo any = wanted(VMA_MEMORY_USAGE_UNKNOWN, 0);
    VmaPoolCreateInfo create;
    memset(&create, 0, sizeof(create));
    REQUIRE(vmaFindMemoryTypeIndex(allocator, 0xFFFFFFFF, &any, &create.memoryTypeIndex));
    create.blockSize = 8 << 16;
    VmaPool empty = NULL;
    REQUIRE(vmaCreatePool(allocator, &create, &any.pool));
    REQUIRE(vmaCreatePool(allocator, &create, &empty));
    VkMemoryRequirements needs = {1 << 16, 256, 0xFFFFFFFF};
    VmaAllocation all[16];
    for (int i = 0; i < 16; i++) {
        REQUIRE(vmaAllocateMemory(allocator, &needs, &any, &all[i], NULL));
    }
    for (int i = 0; i < 16; i += 2) {
        vmaFreeMemory(allocator, all[i]);
    }
    VmaDefragmentationInfo defragment;
    memset(&defragment, 0, sizeof(defragment));
    defragment.pool = any.pool;
    VmaDefragmentationContext context = NULL;
    VmaDefragmentationPassMoveInfo pass;
    REQUIRE(vmaBeginDefragmentation(allocator, &defragment, &context));
    CHECK_RESULT(vmaBeginDefragmentationPass(allocator, context, &pass), VK_INCOMPLETE);
    CHECK(heard.errors == 0);
    vmaDestroyAllocator(allocator);
    CHECK(heard.errors == 3 && heard.warnings == 8);
    CHECK(strstr(heard.all, "holds: defragmentations, count: 1)") != NULL);
    CHECK(strstr(heard.all, "holds: pools, count: 2)") != NULL);
    CHECK(strstr(heard.all, "holds: allocations, count: 8)") != NULL);

    /* A full block is not a wrong call. */
    heard.errors = 0;
    VmaVirtualBlockCreateInfo block_info;
    memset(&block_info, 0, sizeof(block_info));
    block_info.size = 64;
    VmaVirtualBlock block = NULL;
    REQUIRE(vmaCreateVirtualBlock(&block_info, &block));
    VmaVirtualAllocationCreateInfo piece;
    memset(&piece, 0, sizeof(piece));
    piece.size = 65;
    VmaVirtualAllocation made = VK_NULL_HANDLE;
    CHECK_RESULT(vmaVirtualAllocate(block, &piece, &made, NULL), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK(heard.errors == 0);
    piece.size = 0;
    CHECK_RESULT(vmaVirtualAllocate(block, &piece, &made, NULL), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    EXPECT("vmaVirtualAllocate", "");
    piece.size = 1;
    piece.flags = VMA_VIRTUAL_ALLOCATION_CREATE_UPPER_ADDRESS_BIT;
    REQUIRE(vmaVirtualAllocate(block, &piece, &made, NULL));
    EXPECT("vmaVirtualAllocate", "linear");
    vmaVirtualFree(block, made);
    vmaVirtualFree(block, made);
    EXPECT("vmaVirtualFree", "");
    vmaDestroyVirtualBlock(block);
    CHECK(heard.errors == 0);
    subletSetLogCallback(NULL, SUBLET_LOG_LEVEL_OFF, NULL);
}

void test_log(const Gpu *gpu) {
    wrong_usages(gpu);
    lines(gpu);
    leaks(gpu);
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
    /* More detail, then none. */
    subletSetLogCallback(hear, SUBLET_LOG_LEVEL_TRACE, &heard);
    VkMemoryRequirements huge = {(VkDeviceSize)1 << 60, 256, 0xFFFFFFFF};
    CHECK_RESULT(vmaAllocateMemory(allocator, &huge, &host, &allocation, NULL), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK(heard.others > 0);
    int before = heard.others;
    subletSetLogCallback(hear, SUBLET_LOG_LEVEL_OFF, &heard);
    CHECK_RESULT(vmaAllocateMemory(allocator, &huge, &host, &allocation, NULL), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    vmaUnmapMemory(allocator, NULL);
    CHECK(heard.others == before && heard.errors == 1);
    /* A leak is logged with its name, and the allocator logs the total. */
    subletSetLogCallback(hear, SUBLET_LOG_LEVEL_WARN, &heard);
    REQUIRE(vmaAllocateMemory(allocator, &needs, &host, &allocation, NULL));
    vmaSetAllocationName(allocator, allocation, "left behind");
    vmaDestroyAllocator(allocator);
    CHECK(heard.warnings > 0 && strstr(heard.warned, "left behind") != NULL);
    CHECK(heard.errors == 2 && strstr(heard.last, "vmaDestroyAllocator: leak") != NULL);
    CHECK(strstr(heard.last, "count: 1") != NULL);

    /* Margins, for allocators that are created later. */
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
    before = heard.errors;
    vmaSetAllocationName(allocator, allocation, "two\nlines");
    CHECK_RESULT(vmaCheckCorruption(allocator, 0xFFFFFFFF), VK_ERROR_UNKNOWN);
    CHECK(heard.errors == before + 1 && strstr(heard.last, "memory is damaged") != NULL);
    CHECK(strstr(heard.last, "wrong call") == NULL && heard.broken == 0);
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
    /* Nothing fits a limit of one byte. */
    subletSetMaxMappedSize(1);
    allocator = make_allocator(gpu, 0);
    subletSetMaxMappedSize(0);
    CHECK_RESULT(vmaAllocateMemory(allocator, &needs, &host, &allocation, NULL), VK_ERROR_MEMORY_MAP_FAILED);
    vmaDestroyAllocator(allocator);
    subletSetLogCallback(NULL, SUBLET_LOG_LEVEL_OFF, NULL);
}

int make_mistake(const Gpu *gpu, const char *which) {
    /* The program's settings override the environment's. */
    if (strncmp(which, "asserted-", 9) == 0) {
        which += 9;
        subletSetAssertions(VK_TRUE);
    }
    /* The callback receives nothing. */
    static Heard heard;
    if (strncmp(which, "deaf-", 5) == 0) {
        which += 5;
        subletSetLogCallback(hear, SUBLET_LOG_LEVEL_OFF, &heard);
    }
    SubletDebugSettings margins;
    memset(&margins, 0, sizeof(margins));
    margins.margin = 64;
    margins.detectCorruption = VK_TRUE;
    bool damages = strstr(which, "damage") != NULL;
    subletSetDebugSettings(damages ? &margins : NULL);
    VmaAllocator allocator = make_allocator(gpu, 0);
    VkMemoryRequirements needs = {1000, 256, 0xFFFFFFFF};
    VmaAllocationCreateInfo any = wanted(VMA_MEMORY_USAGE_UNKNOWN, 0), automatic = wanted(VMA_MEMORY_USAGE_AUTO, 0);
    VmaAllocation allocation = NULL;
    uint32_t found = 0;
    if (strcmp(which, "leak") == 0) {
        REQUIRE(vmaAllocateMemory(allocator, &needs, &any, &allocation, NULL));
        vmaSetAllocationName(allocator, allocation, "left behind");
    } else if (strcmp(which, "auto") == 0) {
        CHECK(vmaAllocateMemory(allocator, &needs, &automatic, &allocation, NULL) < VK_SUCCESS);
    } else if (strcmp(which, "find-auto") == 0) {
        CHECK(vmaFindMemoryTypeIndex(allocator, 0xFFFFFFFF, &automatic, &found) < VK_SUCCESS);
    } else if (strcmp(which, "usage") == 0) {
        any.usage = (VmaMemoryUsage)77;
        CHECK(vmaAllocateMemory(allocator, &needs, &any, &allocation, NULL) < VK_SUCCESS);
    } else if (damages) {
        VmaAllocationCreateInfo host = wanted(VMA_MEMORY_USAGE_CPU_ONLY, VMA_ALLOCATION_CREATE_MAPPED_BIT);
        VmaAllocationInfo info;
        REQUIRE(vmaAllocateMemory(allocator, &needs, &host, &allocation, &info));
        ((unsigned char *)info.pMappedData)[info.size + 1] ^= 0xFF;
        if (strcmp(which, "checked-damage") == 0) {
            CHECK_RESULT(vmaCheckCorruption(allocator, 0xFFFFFFFF), VK_ERROR_UNKNOWN);
            ((unsigned char *)info.pMappedData)[info.size + 1] ^= 0xFF;
        }
        vmaFreeMemory(allocator, allocation);
    } else if (strcmp(which, "vulkan") == 0) {
        /* A mistake that this interface cannot detect. */
        VkBufferCreateInfo empty = buffer_of(0, VK_BUFFER_USAGE_TRANSFER_DST_BIT);
        VkBuffer buffer = VK_NULL_HANDLE;
        CHECK(gpu->vkCreateBuffer(gpu->device, &empty, NULL, &buffer) != VK_SUCCESS);
    } else if (strcmp(which, "none") != 0) {
        printf("there is no mistake %s\n", which);
        return 2;
    }
    vmaDestroyAllocator(allocator);
    return failures;
}
#endif
