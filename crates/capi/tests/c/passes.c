/* All ways in which a pass of a defragmentation can end. */
#include "client.h"

enum { MANY = 64, SIZE = 4096 };

/* A pool of two blocks with every other allocation freed. */
typedef struct Holes {
    VmaAllocator allocator;
    VmaPool pool;
    VmaAllocation allocations[MANY];
    VmaDefragmentationInfo defragment;
} Holes;

static Holes make_holes(VmaAllocator allocator, VmaAllocationCreateFlags flags) {
    Holes holes;
    memset(&holes, 0, sizeof(holes));
    holes.allocator = allocator;
    VkBufferCreateInfo one = buffer_of(SIZE, VK_BUFFER_USAGE_TRANSFER_SRC_BIT);
    VmaAllocationCreateInfo inside = wanted(VMA_MEMORY_USAGE_CPU_ONLY, 0);
    VmaPoolCreateInfo create;
    memset(&create, 0, sizeof(create));
    REQUIRE(vmaFindMemoryTypeIndexForBufferInfo(allocator, &one, &inside, &create.memoryTypeIndex));
    create.blockSize = 32 * SIZE;
    REQUIRE(vmaCreatePool(allocator, &create, &holes.pool));
    inside.pool = holes.pool;
    inside.flags = flags;
    VkMemoryRequirements needs = {SIZE, 256, 0xFFFFFFFF};
    for (int i = 0; i < MANY; i++) {
        inside.pUserData = (void *)(size_t)(i + 1);
        REQUIRE(vmaAllocateMemory(allocator, &needs, &inside, &holes.allocations[i], NULL));
    }
    for (int i = 0; i < MANY; i += 2) {
        vmaFreeMemory(allocator, holes.allocations[i]);
        holes.allocations[i] = NULL;
    }
    holes.defragment.flags = VMA_DEFRAGMENTATION_FLAG_ALGORITHM_FULL_BIT;
    holes.defragment.pool = holes.pool;
    return holes;
}

static uint32_t live(const Holes *holes) {
    VmaStatistics statistics;
    vmaGetPoolStatistics(holes->allocator, holes->pool, &statistics);
    return statistics.allocationCount;
}

/* Frees all remaining allocations, and checks that there are no others. */
static void end_holes(Holes *holes, uint32_t expected) {
    CHECK(live(holes) == expected);
    vmaFreeMemoryPages(holes->allocator, MANY, holes->allocations);
    CHECK(live(holes) == 0);
    vmaDestroyPool(holes->allocator, holes->pool);
}

static VmaAllocationInfo place_of(VmaAllocator allocator, VmaAllocation allocation) {
    VmaAllocationInfo info;
    memset(&info, 0, sizeof(info));
    vmaGetAllocationInfo(allocator, allocation, &info);
    return info;
}

static bool same_place(VmaAllocationInfo a, VmaAllocationInfo b) {
    return a.deviceMemory == b.deviceMemory && a.offset == b.offset;
}

/* One list with a missing move, a destroyed one and an ignored one. */
static void every_outcome(VmaAllocator allocator) {
    Holes holes = make_holes(allocator, 0);
    VmaDefragmentationContext context = NULL;
    REQUIRE(vmaBeginDefragmentation(allocator, &holes.defragment, &context));
    VmaDefragmentationPassMoveInfo pass;
    CHECK_RESULT(vmaBeginDefragmentationPass(allocator, context, &pass), VK_INCOMPLETE);
    uint32_t count = pass.moveCount;
    CHECK(count > 4);
    VmaAllocationInfo from[MANY], to[MANY];
    VmaAllocation moved[MANY], temporary[MANY];
    for (uint32_t i = 0; i < count; i++) {
        moved[i] = pass.pMoves[i].srcAllocation;
        temporary[i] = pass.pMoves[i].dstTmpAllocation;
        from[i] = place_of(allocator, moved[i]);
        to[i] = place_of(allocator, temporary[i]);
        CHECK(to[i].size == SIZE && to[i].memoryType == from[i].memoryType && !same_place(from[i], to[i]));
    }
    CHECK(live(&holes) == MANY / 2 + count);
    pass.pMoves[0].operation = VMA_DEFRAGMENTATION_MOVE_OPERATION_IGNORE;
    pass.pMoves[1].operation = VMA_DEFRAGMENTATION_MOVE_OPERATION_DESTROY;
    /* Without the last move. */
    pass.moveCount--;
    CHECK_RESULT(vmaEndDefragmentationPass(allocator, context, &pass), VK_INCOMPLETE);
    CHECK(pass.moveCount == 0 && pass.pMoves == NULL);
    for (uint32_t i = 0; i < count; i++) {
        VmaAllocationInfo now = place_of(allocator, moved[i]);
        if (i == 1) {
            CHECK(now.size == 0);
        } else {
            CHECK(same_place(now, i == 0 || i == count - 1 ? from[i] : to[i]));
        }
        CHECK(place_of(allocator, temporary[i]).size == 0);
    }
    CHECK(live(&holes) == MANY / 2 - 1);
    /* Freed with its move, so the handle is invalid. */
    vmaFreeMemory(allocator, moved[1]);
    CHECK(live(&holes) == MANY / 2 - 1);
    /* An ignored allocation is not planned again. */
    CHECK(vmaBeginDefragmentationPass(allocator, context, &pass) >= VK_SUCCESS);
    for (uint32_t i = 0; i < pass.moveCount; i++) {
        CHECK(pass.pMoves[i].srcAllocation != moved[0]);
        pass.pMoves[i].operation = VMA_DEFRAGMENTATION_MOVE_OPERATION_IGNORE;
    }
    CHECK_RESULT(vmaEndDefragmentationPass(allocator, context, &pass), VK_SUCCESS);
    VmaDefragmentationStats stats;
    vmaEndDefragmentation(allocator, context, &stats);
    CHECK(stats.allocationsMoved == count - 3);
    end_holes(&holes, MANY / 2 - 1);
}

/* A pass that is never ended: another pass begins, or the defragmentation ends. */
static void open_passes(VmaAllocator allocator) {
    Holes holes = make_holes(allocator, 0);
    VmaDefragmentationContext context = NULL;
    REQUIRE(vmaBeginDefragmentation(allocator, &holes.defragment, &context));
    VmaDefragmentationPassMoveInfo pass, next;
    CHECK_RESULT(vmaBeginDefragmentationPass(allocator, context, &pass), VK_INCOMPLETE);
    VmaAllocation temporary = pass.pMoves[0].dstTmpAllocation;
    VkResult result = vmaBeginDefragmentationPass(allocator, context, &next);
    CHECK(result == VK_SUCCESS || result == VK_INCOMPLETE);
    CHECK(place_of(allocator, temporary).size == 0 || next.moveCount != 0);
    CHECK(live(&holes) == MANY / 2 + next.moveCount);
    vmaEndDefragmentation(allocator, context, NULL);
    CHECK(live(&holes) == MANY / 2);
    REQUIRE(vmaBeginDefragmentation(allocator, &holes.defragment, &context));
    CHECK_RESULT(vmaBeginDefragmentationPass(allocator, context, &pass), VK_INCOMPLETE);
    temporary = pass.pMoves[0].dstTmpAllocation;
    vmaEndDefragmentation(allocator, context, NULL);
    CHECK(place_of(allocator, temporary).size == 0);
    end_holes(&holes, MANY / 2);
}

static VkBool32 VKAPI_PTR stop(void *user_data) {
    return *(VkBool32 *)user_data;
}

/* The program may stop the search. */
static void broken_off(VmaAllocator allocator) {
    Holes holes = make_holes(allocator, 0);
    VkBool32 stops = VK_TRUE;
    holes.defragment.pfnBreakCallback = stop;
    holes.defragment.pBreakCallbackUserData = &stops;
    VmaDefragmentationContext context = NULL;
    REQUIRE(vmaBeginDefragmentation(allocator, &holes.defragment, &context));
    VmaDefragmentationPassMoveInfo pass;
    CHECK_RESULT(vmaBeginDefragmentationPass(allocator, context, &pass), VK_SUCCESS);
    CHECK(pass.moveCount == 0);
    stops = VK_FALSE;
    CHECK_RESULT(vmaBeginDefragmentationPass(allocator, context, &pass), VK_INCOMPLETE);
    for (uint32_t i = 0; i < pass.moveCount; i++) {
        pass.pMoves[i].operation = VMA_DEFRAGMENTATION_MOVE_OPERATION_IGNORE;
    }
    CHECK_RESULT(vmaEndDefragmentationPass(allocator, context, &pass), VK_SUCCESS);
    vmaEndDefragmentation(allocator, context, NULL);
    end_holes(&holes, MANY / 2);
}

/* Mappings by the program have the address of the new place. */
static void mapped_by_hand(VmaAllocator allocator) {
    Holes holes = make_holes(allocator, 0);
    for (int i = 1; i < MANY; i += 2) {
        void *data = NULL;
        REQUIRE(vmaMapMemory(allocator, holes.allocations[i], &data));
        memset(data, i, SIZE);
    }
    VmaDefragmentationContext context = NULL;
    REQUIRE(vmaBeginDefragmentation(allocator, &holes.defragment, &context));
    VmaDefragmentationPassMoveInfo pass;
    unsigned char bytes[SIZE];
    while (vmaBeginDefragmentationPass(allocator, context, &pass) == VK_INCOMPLETE) {
        for (uint32_t i = 0; i < pass.moveCount; i++) {
            REQUIRE(vmaCopyAllocationToMemory(allocator, pass.pMoves[i].srcAllocation, 0, bytes, SIZE));
            REQUIRE(vmaCopyMemoryToAllocation(allocator, bytes, pass.pMoves[i].dstTmpAllocation, 0, SIZE));
        }
        if (vmaEndDefragmentationPass(allocator, context, &pass) != VK_INCOMPLETE) {
            break;
        }
    }
    VmaDefragmentationStats stats;
    vmaEndDefragmentation(allocator, context, &stats);
    CHECK(stats.allocationsMoved != 0);
    for (int i = 1; i < MANY; i += 2) {
        VmaAllocationInfo now = place_of(allocator, holes.allocations[i]);
        unsigned char *data = (unsigned char *)now.pMappedData;
        CHECK(data != NULL && data[0] == i && data[SIZE - 1] == i);
        /* The old place may still hold the old bytes, but not new ones. */
        memset(data, i + 1, SIZE);
        REQUIRE(vmaCopyAllocationToMemory(allocator, holes.allocations[i], 0, bytes, SIZE));
        CHECK(bytes[0] == i + 1 && bytes[SIZE - 1] == i + 1);
        vmaUnmapMemory(allocator, holes.allocations[i]);
        CHECK(place_of(allocator, holes.allocations[i]).pMappedData == NULL);
    }
    end_holes(&holes, MANY / 2);
}

/* An allocation between two passes often reuses a place that a move freed. It is found by its own handle. */
static void allocated_between(VmaAllocator allocator) {
    Holes holes = make_holes(allocator, VMA_ALLOCATION_CREATE_MAPPED_BIT);
    VmaAllocationCreateInfo inside = wanted(VMA_MEMORY_USAGE_UNKNOWN, VMA_ALLOCATION_CREATE_MAPPED_BIT);
    inside.pool = holes.pool;
    VkMemoryRequirements needs = {SIZE, 256, 0xFFFFFFFF};
    for (int i = 1; i < MANY; i += 2) {
        memset(place_of(allocator, holes.allocations[i]).pMappedData, i, SIZE);
    }
    holes.defragment.maxAllocationsPerPass = 2;
    VmaDefragmentationContext context = NULL;
    REQUIRE(vmaBeginDefragmentation(allocator, &holes.defragment, &context));
    uint32_t later = 0;
    for (int i = 0; i < MANY; i += 2) {
        VmaDefragmentationPassMoveInfo pass;
        if (vmaBeginDefragmentationPass(allocator, context, &pass) != VK_INCOMPLETE) {
            break;
        }
        for (uint32_t j = 0; j < pass.moveCount; j++) {
            VmaAllocationInfo from = place_of(allocator, pass.pMoves[j].srcAllocation);
            VmaAllocationInfo to = place_of(allocator, pass.pMoves[j].dstTmpAllocation);
            int at = (int)(size_t)from.pUserData - 1;
            CHECK(at >= 0 && at < MANY && holes.allocations[at] == pass.pMoves[j].srcAllocation);
            later += at % 2 == 0;
            memcpy(to.pMappedData, from.pMappedData, SIZE);
        }
        CHECK_RESULT(vmaEndDefragmentationPass(allocator, context, &pass), VK_INCOMPLETE);
        inside.pUserData = (void *)(size_t)(i + 1);
        VmaAllocationInfo made;
        REQUIRE(vmaAllocateMemory(allocator, &needs, &inside, &holes.allocations[i], &made));
        memset(made.pMappedData, i, SIZE);
    }
    vmaEndDefragmentation(allocator, context, NULL);
    CHECK(later != 0);
    uint32_t count = 0;
    for (int i = 0; i < MANY; i++) {
        if (holes.allocations[i] != NULL) {
            unsigned char *data = (unsigned char *)place_of(allocator, holes.allocations[i]).pMappedData;
            CHECK(data != NULL && data[0] == i && data[SIZE - 1] == i);
            count++;
        }
    }
    end_holes(&holes, count);
}

/* A driver that rejects further mappings. */
static PFN_vkMapMemory real_map;
static bool refuses;

static VKAPI_ATTR VkResult VKAPI_CALL map_or_not(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize size,
                                                 VkMemoryMapFlags flags, void **data) {
    if (refuses) {
        return VK_ERROR_MEMORY_MAP_FAILED;
    }
    return real_map(device, memory, offset, size, flags, data);
}

static void maps_that_fail(const Gpu *gpu) {
    if (gpu->functions.vkMapMemory == NULL) {
        return;
    }
    Gpu other = *gpu;
    real_map = gpu->functions.vkMapMemory;
    other.functions.vkMapMemory = map_or_not;
    VmaAllocator allocator = make_allocator(&other, 0);
    Holes holes = make_holes(allocator, 0);
    VmaDefragmentationContext context = NULL;
    REQUIRE(vmaBeginDefragmentation(allocator, &holes.defragment, &context));
    VmaDefragmentationPassMoveInfo pass;
    CHECK_RESULT(vmaBeginDefragmentationPass(allocator, context, &pass), VK_INCOMPLETE);
    CHECK(pass.moveCount > 2);
    VmaAllocation source = pass.pMoves[0].srcAllocation;
    VmaAllocationInfo from = place_of(allocator, source);
    void *data = NULL;
    REQUIRE(vmaMapMemory(allocator, source, &data));
    bool same_block = from.deviceMemory == place_of(allocator, pass.pMoves[0].dstTmpAllocation).deviceMemory;
    refuses = true;
    VkResult result = vmaEndDefragmentationPass(allocator, context, &pass);
    refuses = false;
    VmaAllocationInfo now = place_of(allocator, source);
    if (!same_block) {
        /* The mapping for its move fails: it stays in place, mapped as before. The others have moved. */
        CHECK(result == VK_ERROR_MEMORY_MAP_FAILED);
        CHECK(same_place(now, from) && now.pMappedData == data);
    }
    vmaEndDefragmentation(allocator, context, NULL);
    CHECK(live(&holes) == MANY / 2);
    vmaUnmapMemory(allocator, source);
    end_holes(&holes, MANY / 2);
    vmaDestroyAllocator(allocator);
}

void test_passes(const Gpu *gpu, VmaAllocator allocator) {
    every_outcome(allocator);
    open_passes(allocator);
    broken_off(allocator);
    mapped_by_hand(allocator);
    allocated_between(allocator);
    maps_that_fail(gpu);
}
