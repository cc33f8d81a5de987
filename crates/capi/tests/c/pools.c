/* Pools, and the modes of linear pools. */
#include "client.h"

static VmaPoolCreateInfo pool_of(VkDeviceSize block_size, size_t min, size_t max, VmaPoolCreateFlags flags) {
    VmaPoolCreateInfo info;
    memset(&info, 0, sizeof(info));
    info.flags = flags;
    info.blockSize = block_size;
    info.minBlockCount = min;
    info.maxBlockCount = max;
    return info;
}

void test_pools(const Gpu *gpu, VmaAllocator allocator) {
    (void)gpu;
    VmaPoolCreateInfo create = pool_of(65536, 1, 2, 0);
    VmaPool pool = NULL;
    REQUIRE(vmaCreatePool(allocator, &create, &pool));
    VmaStatistics statistics;
    vmaGetPoolStatistics(allocator, pool, &statistics);
    CHECK(statistics.blockCount == 1 && statistics.blockBytes == 65536 && statistics.allocationCount == 0);

#ifdef VMA_SUBLET
    REQUIRE(subletReserve(allocator, pool, 0, 65537));
    vmaGetPoolStatistics(allocator, pool, &statistics);
    CHECK(statistics.blockCount == 2);
    CHECK_RESULT(subletReserve(allocator, pool, 0, 131073), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_RESULT(subletReserve(allocator, NULL, 32, 1), VK_ERROR_INITIALIZATION_FAILED);
    subletMaintain(allocator, 1, 1, 1500);
    vmaGetPoolStatistics(allocator, pool, &statistics);
    CHECK(statistics.blockCount == 2 && statistics.allocationCount == 0);
#endif

    const char *name = "?";
    vmaGetPoolName(allocator, pool, &name);
    CHECK(name == NULL);
    char text[] = "frame";
    vmaSetPoolName(allocator, pool, text);
    text[0] = 'F';
    vmaGetPoolName(allocator, pool, &name);
    CHECK(name != NULL && strcmp(name, "frame") == 0);
    vmaSetPoolName(allocator, pool, NULL);
    vmaGetPoolName(allocator, pool, &name);
    CHECK(name == NULL);

    VmaAllocationCreateInfo inside = wanted(VMA_MEMORY_USAGE_UNKNOWN, 0);
    inside.pool = pool;
    VkMemoryRequirements needs = {32768, 256, 0xFFFFFFFF};
    VmaAllocation all[5];
    for (int i = 0; i < 4; i++) {
        REQUIRE(vmaAllocateMemory(allocator, &needs, &inside, &all[i], NULL));
    }
    CHECK_RESULT(vmaAllocateMemory(allocator, &needs, &inside, &all[4], NULL), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK(all[4] == NULL);
    vmaGetPoolStatistics(allocator, pool, &statistics);
    CHECK(statistics.blockCount == 2 && statistics.allocationCount == 4 && statistics.allocationBytes == 131072);
    VmaAllocation gone = all[1];
    vmaFreeMemory(allocator, gone);
    VmaDetailedStatistics details;
    vmaCalculatePoolStatistics(allocator, pool, &details);
    CHECK(details.statistics.allocationCount == 3 && details.unusedRangeCount == 1);
    CHECK(details.unusedRangeSizeMin == 32768 && details.unusedRangeSizeMax == 32768);
    CHECK(details.allocationSizeMin == 32768 && details.allocationSizeMax == 32768);
    /* Dedicated memory in a pool with a block size. */
    inside.flags = VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT;
    CHECK_RESULT(vmaAllocateMemory(allocator, &needs, &inside, &all[4], NULL), VK_ERROR_FEATURE_NOT_PRESENT);
    inside.flags = VMA_ALLOCATION_CREATE_UPPER_ADDRESS_BIT;
    CHECK_RESULT(vmaAllocateMemory(allocator, &needs, &inside, &all[4], NULL), VK_ERROR_FEATURE_NOT_PRESENT);
    vmaFreeMemory(allocator, all[0]);
    vmaFreeMemory(allocator, all[2]);
    vmaFreeMemory(allocator, all[3]);
    CHECK_RESULT(vmaCheckPoolCorruption(allocator, pool), VK_ERROR_FEATURE_NOT_PRESENT);
    vmaDestroyPool(allocator, pool);
    vmaDestroyPool(allocator, NULL);

    create = pool_of(0, 3, 2, 0);
    pool = (VmaPool)(void *)&create;
    CHECK_RESULT(vmaCreatePool(allocator, &create, &pool), VK_ERROR_INITIALIZATION_FAILED);
    CHECK(pool == NULL);
    create = pool_of(0, 0, 0, 0);
    create.memoryTypeIndex = 32;
    CHECK_RESULT(vmaCreatePool(allocator, &create, &pool), VK_ERROR_FEATURE_NOT_PRESENT);
    create.memoryTypeIndex = gpu->memory.memoryTypeCount;
    CHECK_RESULT(vmaCreatePool(allocator, &create, &pool), VK_ERROR_FEATURE_NOT_PRESENT);

    create = pool_of(0, 0, 0, 0);
    create.minAllocationAlignment = 65536;
    REQUIRE(vmaCreatePool(allocator, &create, &pool));
    inside = wanted(VMA_MEMORY_USAGE_UNKNOWN, 0);
    inside.pool = pool;
    for (int i = 0; i < 2; i++) {
        VmaAllocationInfo info;
        REQUIRE(vmaAllocateMemory(allocator, &needs, &inside, &all[i], &info));
        CHECK(info.offset % 65536 == 0);
    }
    vmaFreeMemoryPages(allocator, 2, all);
    vmaDestroyPool(allocator, pool);
}

static VkDeviceSize offset_of(VmaAllocator allocator, VmaAllocation allocation) {
    VmaAllocationInfo info;
    vmaGetAllocationInfo(allocator, allocation, &info);
    return info.offset;
}

void test_linear(const Gpu *gpu, VmaAllocator allocator) {
    (void)gpu;
    VmaPoolCreateInfo create = pool_of(1u << 20, 0, 1, VMA_POOL_CREATE_LINEAR_ALGORITHM_BIT);
    VmaPool pool = NULL;
    REQUIRE(vmaCreatePool(allocator, &create, &pool));
    VmaAllocationCreateInfo inside = wanted(VMA_MEMORY_USAGE_UNKNOWN, 0);
    inside.pool = pool;
    VkMemoryRequirements needs = {1u << 18, 256, 0xFFFFFFFF};
    VmaAllocation all[4], more = NULL;

    /* A stack. */
    for (int i = 0; i < 4; i++) {
        REQUIRE(vmaAllocateMemory(allocator, &needs, &inside, &all[i], NULL));
        CHECK(offset_of(allocator, all[i]) == (VkDeviceSize)i << 18);
    }
    vmaFreeMemory(allocator, all[3]);
    REQUIRE(vmaAllocateMemory(allocator, &needs, &inside, &all[3], NULL));
    CHECK(offset_of(allocator, all[3]) == 3u << 18);
    CHECK_RESULT(vmaAllocateMemory(allocator, &needs, &inside, &more, NULL), VK_ERROR_OUT_OF_DEVICE_MEMORY);

    /* A ring: the first allocation is free again. */
    vmaFreeMemory(allocator, all[0]);
    REQUIRE(vmaAllocateMemory(allocator, &needs, &inside, &all[0], NULL));
    CHECK(offset_of(allocator, all[0]) == 0);
    vmaFreeMemoryPages(allocator, 4, all);

    /* A double stack. */
    REQUIRE(vmaAllocateMemory(allocator, &needs, &inside, &all[0], NULL));
    inside.flags = VMA_ALLOCATION_CREATE_UPPER_ADDRESS_BIT;
    REQUIRE(vmaAllocateMemory(allocator, &needs, &inside, &all[1], NULL));
    REQUIRE(vmaAllocateMemory(allocator, &needs, &inside, &all[2], NULL));
    CHECK(offset_of(allocator, all[0]) == 0);
    CHECK(offset_of(allocator, all[1]) == 3u << 18);
    CHECK(offset_of(allocator, all[2]) == 2u << 18);
    REQUIRE(vmaAllocateMemory(allocator, &needs, &inside, &all[3], NULL));
    CHECK_RESULT(vmaAllocateMemory(allocator, &needs, &inside, &more, NULL), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    vmaFreeMemoryPages(allocator, 4, all);

    VmaDefragmentationInfo defragment;
    memset(&defragment, 0, sizeof(defragment));
    defragment.pool = pool;
    VmaDefragmentationContext context = NULL;
    CHECK_RESULT(vmaBeginDefragmentation(allocator, &defragment, &context), VK_ERROR_FEATURE_NOT_PRESENT);
    vmaDestroyPool(allocator, pool);
}
