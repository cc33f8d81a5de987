/* Host access. */
#include "client.h"

void test_mapping(const Gpu *gpu, VmaAllocator allocator) {
    (void)gpu;
    VkBufferCreateInfo staging = buffer_of(10000, VK_BUFFER_USAGE_TRANSFER_SRC_BIT);
    VmaAllocationCreateInfo random = wanted(VMA_MEMORY_USAGE_AUTO, VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT);
    VkBuffer buffer = VK_NULL_HANDLE;
    VmaAllocation allocation = NULL;
    VmaAllocationInfo info;
    REQUIRE(vmaCreateBuffer(allocator, &staging, &random, &buffer, &allocation, &info));
    CHECK(info.pMappedData == NULL);

    /* Mappings are counted, beyond the range of a byte. */
    void *first = NULL, *again = NULL;
    CHECK_RESULT(vmaMapMemory(allocator, allocation, &first), VK_SUCCESS);
    CHECK(first != NULL);
    for (int i = 0; i < 300; i++) {
        CHECK_RESULT(vmaMapMemory(allocator, allocation, &again), VK_SUCCESS);
        CHECK(again == first);
    }
    vmaGetAllocationInfo(allocator, allocation, &info);
    CHECK(info.pMappedData == first);
    for (int i = 0; i < 300; i++) {
        vmaUnmapMemory(allocator, allocation);
    }
    vmaGetAllocationInfo(allocator, allocation, &info);
    CHECK(info.pMappedData == first);
    memset(first, 0x5A, 10000);
    CHECK_RESULT(vmaFlushAllocation(allocator, allocation, 0, VK_WHOLE_SIZE), VK_SUCCESS);
    vmaUnmapMemory(allocator, allocation);
    vmaGetAllocationInfo(allocator, allocation, &info);
    CHECK(info.pMappedData == NULL);
    /* Additional unmap calls do nothing. */
    vmaUnmapMemory(allocator, allocation);

    unsigned char bytes[100];
    memset(bytes, 0, sizeof(bytes));
    CHECK_RESULT(vmaCopyAllocationToMemory(allocator, allocation, 9900, bytes, 100), VK_SUCCESS);
    for (int i = 0; i < 100; i++) {
        CHECK(bytes[i] == 0x5A);
        bytes[i] = (unsigned char)i;
    }
    CHECK_RESULT(vmaCopyMemoryToAllocation(allocator, bytes, allocation, 77, 100), VK_SUCCESS);
    unsigned char back[102];
    CHECK_RESULT(vmaCopyAllocationToMemory(allocator, allocation, 76, back, 102), VK_SUCCESS);
    CHECK(back[0] == 0x5A && back[101] == 0x5A && memcmp(&back[1], bytes, 100) == 0);
    CHECK_RESULT(vmaCopyMemoryToAllocation(allocator, bytes, allocation, 0, 0), VK_SUCCESS);
    unsigned char last[10];
    CHECK_RESULT(vmaCopyAllocationToMemory(allocator, allocation, info.size - 10, last, 10), VK_SUCCESS);
    CHECK_RESULT(vmaCopyMemoryToAllocation(allocator, bytes, allocation, info.size - 10, 100), VK_ERROR_UNKNOWN);
    CHECK_RESULT(vmaCopyAllocationToMemory(allocator, allocation, info.size - 10, back, 10), VK_SUCCESS);
    CHECK(memcmp(last, back, 10) == 0 && memcmp(last, bytes, 10) != 0);
    CHECK_RESULT(vmaCopyAllocationToMemory(allocator, allocation, info.size - 10, back, 100), VK_ERROR_UNKNOWN);
    /* Ranges are checked only if the memory needs a flush. */
    bool coherent = (gpu->memory.memoryTypes[info.memoryType].propertyFlags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0;
    CHECK_RESULT(vmaFlushAllocation(allocator, allocation, info.size + 1, 1), coherent ? VK_SUCCESS : VK_ERROR_UNKNOWN);
    CHECK_RESULT(vmaFlushAllocation(allocator, allocation, info.size + 1, 0), VK_SUCCESS);
    CHECK_RESULT(vmaFlushAllocation(allocator, allocation, 0, 0), VK_SUCCESS);

    /* Persistently mapped. */
    VmaAllocationCreateInfo always = wanted(
        VMA_MEMORY_USAGE_AUTO, VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT | VMA_ALLOCATION_CREATE_MAPPED_BIT);
    VkBuffer second = VK_NULL_HANDLE;
    VmaAllocation mapped = NULL;
    REQUIRE(vmaCreateBuffer(allocator, &staging, &always, &second, &mapped, &info));
    CHECK(info.pMappedData != NULL);
    memset(info.pMappedData, 1, 10000);
    CHECK_RESULT(vmaMapMemory(allocator, mapped, &again), VK_SUCCESS);
    CHECK(again == info.pMappedData);
    vmaUnmapMemory(allocator, mapped);
    vmaGetAllocationInfo(allocator, mapped, &info);
    CHECK(info.pMappedData == again);

    CHECK_RESULT(vmaMapMemory(allocator, allocation, &first), VK_SUCCESS);
    VmaAllocation both[2] = {allocation, mapped};
    VkDeviceSize offsets[2] = {100, 1};
    VkDeviceSize sizes[2] = {200, 3};
    CHECK_RESULT(vmaFlushAllocations(allocator, 2, both, offsets, sizes), VK_SUCCESS);
    CHECK_RESULT(vmaInvalidateAllocations(allocator, 2, both, NULL, NULL), VK_SUCCESS);
    CHECK_RESULT(vmaFlushAllocations(allocator, 0, NULL, NULL, NULL), VK_SUCCESS);
    CHECK_RESULT(vmaInvalidateAllocation(allocator, allocation, 1, 2), VK_SUCCESS);
    sizes[1] = VK_WHOLE_SIZE - 1;
    coherent = (gpu->memory.memoryTypes[info.memoryType].propertyFlags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0;
    CHECK_RESULT(vmaFlushAllocations(allocator, 2, both, offsets, sizes), coherent ? VK_SUCCESS : VK_ERROR_UNKNOWN);
    /* Freed while mapped: the block must be unmapped. */
    vmaDestroyBuffer(allocator, buffer, allocation);
    vmaDestroyBuffer(allocator, second, mapped);

#if VMA_STATS_STRING_ENABLED
    uint32_t type = 0;
    VmaAllocationCreateInfo inside = wanted(VMA_MEMORY_USAGE_CPU_ONLY, 0);
    REQUIRE(vmaFindMemoryTypeIndex(allocator, 0xFFFFFFFF, &inside, &type));
    VmaPoolCreateInfo create;
    memset(&create, 0, sizeof(create));
    create.memoryTypeIndex = type;
    create.blockSize = 65536;
    create.minBlockCount = 1;
    REQUIRE(vmaCreatePool(allocator, &create, &inside.pool));
    VkMemoryRequirements needs = {100, 4, 0xFFFFFFFF};
    /* Keeps the block from being empty. */
    VmaAllocation other = NULL;
    REQUIRE(vmaAllocateMemory(allocator, &needs, &inside, &other, NULL));
    for (int round = 0; round < 2; round++) {
        REQUIRE(vmaAllocateMemory(allocator, &needs, &inside, &allocation, NULL));
        REQUIRE(vmaMapMemory(allocator, allocation, &first));
        REQUIRE(vmaMapMemory(allocator, allocation, &first));
        if (round == 0) {
            vmaFreeMemory(allocator, allocation);
        }
        char *text = NULL;
        vmaBuildStatsString(allocator, &text, VK_TRUE);
        const char *pools = text == NULL ? NULL : strstr(text, "\"CustomPools\"");
        const char *count = round == 0 ? "\"MapRefCount\": 0" : "\"MapRefCount\": 2";
        CHECK(pools != NULL && strstr(pools, count) != NULL);
        vmaFreeStatsString(allocator, text);
    }
    vmaUnmapMemory(allocator, allocation);
    vmaUnmapMemory(allocator, allocation);
    vmaFreeMemory(allocator, allocation);
    vmaFreeMemory(allocator, other);
    vmaDestroyPool(allocator, inside.pool);
#endif

    /* Without a host access flag. */
    VmaAllocationCreateInfo silent = wanted(VMA_MEMORY_USAGE_AUTO, 0);
    REQUIRE(vmaCreateBuffer(allocator, &staging, &silent, &buffer, &allocation, NULL));
    again = NULL;
    CHECK_RESULT(vmaMapMemory(allocator, allocation, &again), VK_ERROR_MEMORY_MAP_FAILED);
    vmaDestroyBuffer(allocator, buffer, allocation);
}
