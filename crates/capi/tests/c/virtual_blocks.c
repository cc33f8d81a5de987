/* Virtual blocks. */
#include "client.h"

static void fill_and_free(VmaVirtualBlockCreateFlags flags) {
    VmaVirtualBlockCreateInfo create;
    memset(&create, 0, sizeof(create));
    create.size = 1u << 20;
    create.flags = flags;
    VmaVirtualBlock block = NULL;
    REQUIRE(vmaCreateVirtualBlock(&create, &block));
    CHECK(vmaIsVirtualBlockEmpty(block) == VK_TRUE);
    VmaVirtualAllocation all[16];
    int marks[16];
    for (int i = 0; i < 16; i++) {
        VmaVirtualAllocationCreateInfo info;
        memset(&info, 0, sizeof(info));
        info.size = 1u << 16;
        info.alignment = i % 2 == 0 ? 0 : 4096;
        info.pUserData = &marks[i];
        VkDeviceSize offset = 7;
        REQUIRE(vmaVirtualAllocate(block, &info, &all[i], i == 3 ? NULL : &offset));
        VmaVirtualAllocationInfo known;
        vmaGetVirtualAllocationInfo(block, all[i], &known);
        CHECK(i == 3 || known.offset == offset);
        CHECK(known.size == 1u << 16 && known.pUserData == &marks[i]);
    }
    CHECK(vmaIsVirtualBlockEmpty(block) == VK_FALSE);
    VmaVirtualAllocationCreateInfo one;
    memset(&one, 0, sizeof(one));
    one.size = 1;
    VkDeviceSize offset = 7;
    VmaVirtualAllocation none = all[0];
    CHECK_RESULT(vmaVirtualAllocate(block, &one, &none, &offset), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK(none == VK_NULL_HANDLE && offset == UINT64_MAX);
    VmaStatistics statistics;
    vmaGetVirtualBlockStatistics(block, &statistics);
    CHECK(statistics.blockCount == 1 && statistics.allocationCount == 16);
    CHECK(statistics.blockBytes == 1u << 20 && statistics.allocationBytes == 1u << 20);
    vmaVirtualFree(block, all[4]);
    vmaVirtualFree(block, VK_NULL_HANDLE);
    VmaDetailedStatistics details;
    vmaCalculateVirtualBlockStatistics(block, &details);
    CHECK(details.statistics.allocationCount == 15 && details.unusedRangeCount == 1);
    CHECK(details.unusedRangeSizeMax == 1u << 16 && details.allocationSizeMin == 1u << 16);
    vmaSetVirtualAllocationUserData(block, all[5], &details);
    VmaVirtualAllocationInfo known;
    vmaGetVirtualAllocationInfo(block, all[5], &known);
    CHECK(known.pUserData == &details);
    /* Freed already. */
    vmaVirtualFree(block, all[4]);
    vmaGetVirtualBlockStatistics(block, &statistics);
    CHECK(statistics.allocationCount == 15);
    vmaClearVirtualBlock(block);
    CHECK(vmaIsVirtualBlockEmpty(block) == VK_TRUE);
    one.size = 0;
    CHECK_RESULT(vmaVirtualAllocate(block, &one, &none, &offset), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    one.size = 1;
    one.alignment = 3;
    CHECK_RESULT(vmaVirtualAllocate(block, &one, &none, &offset), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    /* Without effect in a block that is not linear. */
    one.alignment = 0;
    one.flags = VMA_VIRTUAL_ALLOCATION_CREATE_UPPER_ADDRESS_BIT;
    REQUIRE(vmaVirtualAllocate(block, &one, &none, &offset));
    CHECK(flags == 0 || offset == (1u << 20) - 1);
    vmaVirtualFree(block, none);
#if VMA_STATS_STRING_ENABLED
    one.flags = VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT;
    REQUIRE(vmaVirtualAllocate(block, &one, &none, &offset));
    char *text = NULL;
    vmaBuildVirtualBlockStatsString(block, &text, VK_TRUE);
    CHECK(text != NULL && text[0] == '{');
    CHECK(text != NULL && strstr(text, "\"TotalBytes\": 1048576") != NULL);
    CHECK(text != NULL && strstr(text, "\"Suballocations\"") != NULL);
    vmaFreeVirtualBlockStatsString(block, text);
    vmaBuildVirtualBlockStatsString(block, &text, VK_FALSE);
    CHECK(text != NULL && strstr(text, "\"AllocationCount\": 1") != NULL && strstr(text, "Suballocations") == NULL);
    vmaFreeVirtualBlockStatsString(block, text);
    vmaFreeVirtualBlockStatsString(block, NULL);
    vmaVirtualFree(block, none);
#endif
    vmaDestroyVirtualBlock(block);
}

/* The place of a range among free ranges of 5000, 1001, 1100 and 1006 units, in this order. Each strategy chooses
 * another one. */
static VkDeviceSize hole_of(VmaVirtualAllocationCreateFlags flags) {
    const VkDeviceSize sizes[4] = {5000, 1001, 1100, 1006};
    VmaVirtualBlockCreateInfo create;
    memset(&create, 0, sizeof(create));
    create.size = 1u << 16;
    VmaVirtualBlock block = NULL;
    REQUIRE(vmaCreateVirtualBlock(&create, &block));
    VmaVirtualAllocationCreateInfo info;
    memset(&info, 0, sizeof(info));
    VmaVirtualAllocation holes[4], between;
    VkDeviceSize offsets[4], found = UINT64_MAX;
    for (int i = 0; i < 4; i++) {
        info.size = sizes[i];
        REQUIRE(vmaVirtualAllocate(block, &info, &holes[i], &offsets[i]));
        info.size = 1;
        REQUIRE(vmaVirtualAllocate(block, &info, &between, NULL));
    }
    for (int i = 0; i < 4; i++) {
        vmaVirtualFree(block, holes[i]);
    }
    info.size = 1001;
    info.flags = flags;
    REQUIRE(vmaVirtualAllocate(block, &info, &between, &found));
    vmaClearVirtualBlock(block);
    vmaDestroyVirtualBlock(block);
    for (VkDeviceSize i = 0; i < 4; i++) {
        if (found == offsets[i]) {
            return i;
        }
    }
    return 4;
}

static void strategies_differ(void) {
    /* The last freed range that fits, one that is certain to fit, the best fit, and the first fit. */
    CHECK(hole_of(0) == 3);
    CHECK(hole_of(VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT) == 2);
    CHECK(hole_of(VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_MEMORY_BIT) == 1);
    CHECK(hole_of(VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT) == 0);
    /* Of several strategies, the one that VMA follows. */
    CHECK(hole_of(VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MASK) == 2);
    CHECK(hole_of(VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_MEMORY_BIT | VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT) == 1);
}

void test_virtual_blocks(void) {
    strategies_differ();
    fill_and_free(0);
    fill_and_free(VMA_VIRTUAL_BLOCK_CREATE_LINEAR_ALGORITHM_BIT);
    VmaVirtualBlockCreateInfo create;
    memset(&create, 0, sizeof(create));
    VmaVirtualBlock block = (VmaVirtualBlock)(void *)&create;
    CHECK_RESULT(vmaCreateVirtualBlock(&create, &block), VK_ERROR_INITIALIZATION_FAILED);
    CHECK(block == NULL);
    vmaDestroyVirtualBlock(NULL);

    /* Free ranges of any size are found. */
    create.size = (VkDeviceSize)1 << 44;
    REQUIRE(vmaCreateVirtualBlock(&create, &block));
    VmaVirtualAllocationCreateInfo info;
    memset(&info, 0, sizeof(info));
    VmaVirtualAllocation all[4], small;
    for (int i = 0; i < 4; i++) {
        info.size = (VkDeviceSize)1 << 42;
        REQUIRE(vmaVirtualAllocate(block, &info, &all[i], NULL));
    }
    vmaVirtualFree(block, all[1]);
    info.size = 1;
    CHECK_RESULT(vmaVirtualAllocate(block, &info, &small, NULL), VK_SUCCESS);
    vmaVirtualFree(block, small);
    info.size = (VkDeviceSize)1 << 42;
    CHECK_RESULT(vmaVirtualAllocate(block, &info, &all[1], NULL), VK_SUCCESS);
    vmaClearVirtualBlock(block);
    vmaDestroyVirtualBlock(block);
}
