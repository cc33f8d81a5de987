/* Handles of another allocator, and freed handles: ownership is checked before anything changes. */
#include "client.h"

enum { COUNT = 20, SIZE = 4096 };

static VmaPool pool_for(VmaAllocator allocator, const VkBufferCreateInfo *one) {
    VmaAllocationCreateInfo host = wanted(VMA_MEMORY_USAGE_CPU_ONLY, 0);
    VmaPoolCreateInfo create;
    memset(&create, 0, sizeof(create));
    REQUIRE(vmaFindMemoryTypeIndexForBufferInfo(allocator, one, &host, &create.memoryTypeIndex));
    create.blockSize = 32 * SIZE;
    VmaPool pool = NULL;
    REQUIRE(vmaCreatePool(allocator, &create, &pool));
    return pool;
}

static void pools_of_others(VmaAllocator allocator, VmaAllocator other, const VkBufferCreateInfo *one) {
    VmaPool pool = pool_for(allocator, one);
    VmaAllocationCreateInfo inside = wanted(VMA_MEMORY_USAGE_UNKNOWN, 0);
    inside.pool = pool;
    VmaAllocation allocation = NULL;
    VkMemoryRequirements needs = {SIZE, 256, 0xFFFFFFFF};
    REQUIRE(vmaAllocateMemory(allocator, &needs, &inside, &allocation, NULL));

    vmaDestroyPool(other, pool);
    vmaSetPoolName(other, pool, "stranger");
    const char *name = "untouched";
    vmaGetPoolName(other, pool, &name);
    CHECK(strcmp(name, "untouched") == 0);
    vmaGetPoolName(allocator, pool, &name);
    CHECK(name == NULL);
    VmaStatistics statistics;
    memset(&statistics, 0, sizeof(statistics));
    vmaGetPoolStatistics(other, pool, &statistics);
    CHECK(statistics.blockCount == 0);
    CHECK_RESULT(vmaCheckPoolCorruption(other, pool), VK_ERROR_UNKNOWN);
    VmaDefragmentationInfo defragment;
    memset(&defragment, 0, sizeof(defragment));
    defragment.pool = pool;
    VmaDefragmentationContext context = NULL;
    CHECK_RESULT(vmaBeginDefragmentation(other, &defragment, &context), VK_ERROR_UNKNOWN);
    CHECK(context == NULL);

    /* The pool is unchanged. */
    vmaGetPoolStatistics(allocator, pool, &statistics);
    CHECK(statistics.blockCount == 1 && statistics.allocationCount == 1);
    vmaFreeMemory(allocator, allocation);
    vmaDestroyPool(allocator, pool);
    /* Destroyed handles. */
    vmaDestroyPool(allocator, pool);
    memset(&statistics, 0, sizeof(statistics));
    vmaGetPoolStatistics(allocator, pool, &statistics);
    CHECK(statistics.blockCount == 0);
}

static void passes_of_others(const Gpu *gpu, VmaAllocator allocator, VmaAllocator other, const VkBufferCreateInfo *one) {
    VmaPool pool = pool_for(allocator, one);
    VkBuffer buffers[4 * COUNT];
    VmaAllocation allocations[4 * COUNT];
    VmaAllocationCreateInfo inside = wanted(VMA_MEMORY_USAGE_UNKNOWN, 0);
    inside.pool = pool;
    for (int i = 0; i < 4 * COUNT; i++) {
        REQUIRE(vmaCreateBuffer(allocator, one, &inside, &buffers[i], &allocations[i], NULL));
    }
    for (int i = 0; i < 4 * COUNT; i += 2) {
        vmaDestroyBuffer(allocator, buffers[i], allocations[i]);
        allocations[i] = NULL;
    }
    VmaDefragmentationInfo defragment;
    memset(&defragment, 0, sizeof(defragment));
    defragment.pool = pool;
    defragment.maxAllocationsPerPass = 10;
    VmaDefragmentationContext context = NULL;
    REQUIRE(vmaBeginDefragmentation(allocator, &defragment, &context));
    VmaDefragmentationPassMoveInfo pass, strange;
    memset(&strange, 0xFF, sizeof(strange));
    CHECK_RESULT(vmaBeginDefragmentationPass(other, context, &strange), VK_ERROR_UNKNOWN);
    CHECK(strange.moveCount == 0 && strange.pMoves == NULL);
    CHECK_RESULT(vmaBeginDefragmentationPass(allocator, context, &pass), VK_INCOMPLETE);
    CHECK(pass.moveCount == 10);
    VmaStatistics before, after;
    vmaGetPoolStatistics(allocator, pool, &before);

    strange = pass;
    CHECK_RESULT(vmaEndDefragmentationPass(other, context, &strange), VK_ERROR_UNKNOWN);
    vmaEndDefragmentation(other, context, NULL);

    /* The pass is still open, and can be ended. */
    for (uint32_t i = 0; i < pass.moveCount; i++) {
        VkBuffer next = VK_NULL_HANDLE;
        REQUIRE(gpu->vkCreateBuffer(gpu->device, one, NULL, &next));
        CHECK_RESULT(vmaBindBufferMemory(allocator, pass.pMoves[i].dstTmpAllocation, next), VK_SUCCESS);
        for (int k = 0; k < 4 * COUNT; k++) {
            if (allocations[k] == pass.pMoves[i].srcAllocation) {
                gpu->vkDestroyBuffer(gpu->device, buffers[k], NULL);
                buffers[k] = next;
            }
        }
    }
    VkResult ended = vmaEndDefragmentationPass(allocator, context, &pass);
    CHECK(ended == VK_SUCCESS || ended == VK_INCOMPLETE);
    VmaDefragmentationStats stats;
    vmaEndDefragmentation(allocator, context, &stats);
    CHECK(stats.allocationsMoved == 10);
    /* Destroyed handles. */
    vmaEndDefragmentation(allocator, context, &stats);
    CHECK_RESULT(vmaBeginDefragmentationPass(allocator, context, &pass), VK_ERROR_UNKNOWN);
    vmaGetPoolStatistics(allocator, pool, &after);
    CHECK(after.allocationCount == 2 * COUNT && before.allocationCount == 2 * COUNT + 10);
    /* The pool can be defragmented again. */
    CHECK_RESULT(vmaBeginDefragmentation(allocator, &defragment, &context), VK_SUCCESS);
    vmaEndDefragmentation(allocator, context, NULL);
    for (int i = 1; i < 4 * COUNT; i += 2) {
        vmaDestroyBuffer(allocator, buffers[i], allocations[i]);
    }
    vmaDestroyPool(allocator, pool);
}

static void allocations_of_others(const Gpu *gpu, VmaAllocator allocator, VmaAllocator other, const VkBufferCreateInfo *one) {
    VmaAllocationCreateInfo host = wanted(VMA_MEMORY_USAGE_CPU_ONLY, 0);
    VkBuffer buffer = VK_NULL_HANDLE;
    VmaAllocation allocation = NULL;
    REQUIRE(vmaCreateBuffer(allocator, one, &host, &buffer, &allocation, NULL));
    void *data = NULL;
    REQUIRE(vmaMapMemory(allocator, allocation, &data));

    void *strange = NULL;
    CHECK_RESULT(vmaMapMemory(other, allocation, &strange), VK_ERROR_MEMORY_MAP_FAILED);
    vmaUnmapMemory(other, allocation);
    vmaSetAllocationName(other, allocation, "stranger");
    vmaSetAllocationUserData(other, allocation, &buffer);
    vmaFreeMemory(other, allocation);
    vmaFreeMemoryPages(other, 1, &allocation);
    CHECK_RESULT(vmaFlushAllocation(other, allocation, 0, VK_WHOLE_SIZE), VK_ERROR_UNKNOWN);
    CHECK_RESULT(vmaInvalidateAllocations(other, 1, &allocation, NULL, NULL), VK_ERROR_UNKNOWN);
    CHECK_RESULT(vmaCopyMemoryToAllocation(other, &buffer, allocation, 0, 4), VK_ERROR_MEMORY_MAP_FAILED);
    VkBuffer alias = VK_NULL_HANDLE;
    CHECK_RESULT(vmaCreateAliasingBuffer(other, allocation, one, &alias), VK_ERROR_INITIALIZATION_FAILED);
    VmaAllocationInfo info;
    memset(&info, 0, sizeof(info));
    vmaGetAllocationInfo(other, allocation, &info);
    CHECK(info.size == 0);
    VkMemoryPropertyFlags flags = 0;
    vmaGetAllocationMemoryProperties(other, allocation, &flags);
    CHECK(flags == 0);
    /* Frees neither the memory nor the buffer. */
    vmaDestroyBuffer(other, buffer, allocation);
    VkMemoryRequirements needs;
    gpu->vkGetBufferMemoryRequirements(gpu->device, buffer, &needs);
    CHECK(needs.size >= SIZE);

    vmaGetAllocationInfo(allocator, allocation, &info);
    CHECK(info.size >= SIZE && info.pMappedData == data && info.pName == NULL && info.pUserData == NULL);
    vmaUnmapMemory(allocator, allocation);
    vmaDestroyBuffer(allocator, buffer, allocation);
    /* The buffer was destroyed with its memory, and is not destroyed again. */
    vmaDestroyBuffer(allocator, buffer, allocation);
}

void test_ownership(const Gpu *gpu, VmaAllocator allocator) {
    VkBufferCreateInfo one = buffer_of(SIZE, VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT);
    VmaAllocator other = make_allocator(gpu, 0);
    pools_of_others(allocator, other, &one);
    passes_of_others(gpu, allocator, other, &one);
    allocations_of_others(gpu, allocator, other, &one);
    vmaDestroyAllocator(other);
}
