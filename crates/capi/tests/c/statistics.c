/* Statistics, budgets, reports. */
#include "client.h"

static uint32_t count_of(const char *text, const char *part) {
    uint32_t count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        count++;
    }
    return count;
}

void test_statistics(const Gpu *gpu, VmaAllocator allocator) {
    VmaAllocationCreateInfo any = wanted(VMA_MEMORY_USAGE_UNKNOWN, 0);
    VkMemoryRequirements needs = {5000, 256, 0xFFFFFFFF};
    VmaAllocation shared = NULL, own = NULL;
    VmaAllocationInfo info;
    VmaTotalStatistics before, after;
    VmaBudget budgets_before[VK_MAX_MEMORY_HEAPS], budgets[VK_MAX_MEMORY_HEAPS];
    vmaCalculateStatistics(allocator, &before);
    vmaGetHeapBudgets(allocator, budgets_before);
    REQUIRE(vmaAllocateMemory(allocator, &needs, &any, &shared, &info));
    vmaSetAllocationName(allocator, shared, "of all");
    any.flags = VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT;
    REQUIRE(vmaAllocateMemory(allocator, &needs, &any, &own, NULL));
    vmaCalculateStatistics(allocator, &after);
    vmaGetHeapBudgets(allocator, budgets);

    uint32_t type = info.memoryType, heap = gpu->memory.memoryTypes[type].heapIndex;
    const VmaDetailedStatistics *found[3] = {&after.total, &after.memoryType[type], &after.memoryHeap[heap]};
    const VmaDetailedStatistics *were[3] = {&before.total, &before.memoryType[type], &before.memoryHeap[heap]};
    for (int i = 0; i < 3; i++) {
        CHECK(found[i]->statistics.allocationCount == were[i]->statistics.allocationCount + 2);
        CHECK(found[i]->statistics.allocationBytes >= were[i]->statistics.allocationBytes + 10000);
        CHECK(found[i]->statistics.blockCount >= were[i]->statistics.blockCount + 1);
        CHECK(found[i]->allocationSizeMin <= 5000 && found[i]->allocationSizeMax >= 5000);
    }
    uint32_t types = 0, heaps = 0;
    for (uint32_t i = 0; i < VK_MAX_MEMORY_TYPES; i++) {
        types += after.memoryType[i].statistics.allocationCount;
    }
    for (uint32_t i = 0; i < VK_MAX_MEMORY_HEAPS; i++) {
        heaps += after.memoryHeap[i].statistics.allocationCount;
    }
    CHECK(types == after.total.statistics.allocationCount && heaps == types);

    CHECK(budgets[heap].statistics.allocationCount == budgets_before[heap].statistics.allocationCount + 2);
    CHECK(budgets[heap].budget > 0 && budgets[heap].budget <= gpu->memory.memoryHeaps[heap].size);
    CHECK(budgets[heap].usage >= budgets[heap].statistics.blockBytes);

#if VMA_STATS_STRING_ENABLED
    char *text = NULL;
    vmaBuildStatsString(allocator, &text, VK_TRUE);
    CHECK(text != NULL);
    if (text != NULL) {
        CHECK(strstr(text, "\"General\"") != NULL && strstr(text, "\"Total\"") != NULL);
        CHECK(strstr(text, "\"MemoryInfo\"") != NULL && strstr(text, "\"DefaultPools\"") != NULL);
        CHECK(strstr(text, "\"API\": \"Vulkan\"") != NULL);
        CHECK(strstr(text, "\"Name\": \"of all\"") != NULL);
        CHECK(count_of(text, "{") == count_of(text, "}") && count_of(text, "[") == count_of(text, "]"));
    }
    vmaFreeStatsString(allocator, text);
    text = NULL;
    vmaBuildStatsString(allocator, &text, VK_FALSE);
    CHECK(text != NULL && strstr(text, "\"Total\"") != NULL && strstr(text, "\"DefaultPools\"") == NULL);
    vmaFreeStatsString(allocator, text);
    vmaFreeStatsString(allocator, NULL);
#endif
    vmaFreeMemory(allocator, shared);
    vmaFreeMemory(allocator, own);
}
