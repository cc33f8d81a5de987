/* Defragmentation: buffers in host-visible memory, moved by the host. */
#include "client.h"

enum { COUNT = 200, SIZE = 4096 };

static VkBool32 VKAPI_PTR count_questions(void *user_data) {
    ++*(uint32_t *)user_data;
    return VK_FALSE;
}

static void fill(void *bytes, int seed) {
    for (int i = 0; i < SIZE; i++) {
        ((unsigned char *)bytes)[i] = (unsigned char)(seed * 31 + i);
    }
}

static bool is_filled(const void *bytes, int seed) {
    for (int i = 0; i < SIZE; i++) {
        if (((const unsigned char *)bytes)[i] != (unsigned char)(seed * 31 + i)) {
            return false;
        }
    }
    return true;
}

#ifdef VMA_SUBLET
static void VKAPI_PTR count_errors(SubletLogLevel level, const char *message, void *user_data) {
    (void)message;
    *(int *)user_data += level == SUBLET_LOG_LEVEL_ERROR;
}
#endif

/* The program must not free the destination of a move. That is a wrong call: the move is rolled back, and the
 * allocation keeps its place and contents. An invalid operation of a move has the same effect. */
static void wrong_ends_of_moves(const Gpu *gpu, VmaAllocator allocator) {
    enum { MANY = 64, WRONG = 5 };
    VkBufferCreateInfo one = buffer_of(SIZE, VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT);
    VmaAllocationCreateInfo inside = wanted(VMA_MEMORY_USAGE_CPU_ONLY, 0);
    VmaPoolCreateInfo create;
    memset(&create, 0, sizeof(create));
    REQUIRE(vmaFindMemoryTypeIndexForBufferInfo(allocator, &one, &inside, &create.memoryTypeIndex));
    create.blockSize = 32 * SIZE;
    REQUIRE(vmaCreatePool(allocator, &create, &inside.pool));
    inside.flags = VMA_ALLOCATION_CREATE_MAPPED_BIT;
    VmaAllocation allocations[MANY];
    VmaAllocationInfo places[MANY], now;
    VkMemoryRequirements needs = {SIZE, 256, 0xFFFFFFFF};
    for (int i = 0; i < MANY; i++) {
        inside.pUserData = (void *)(size_t)(i + 1);
        REQUIRE(vmaAllocateMemory(allocator, &needs, &inside, &allocations[i], &places[i]));
        fill(places[i].pMappedData, i);
    }
    for (int i = 0; i < MANY; i += 2) {
        vmaFreeMemory(allocator, allocations[i]);
        allocations[i] = NULL;
    }
    VmaDefragmentationInfo defragment;
    memset(&defragment, 0, sizeof(defragment));
    defragment.flags = VMA_DEFRAGMENTATION_FLAG_ALGORITHM_FULL_BIT;
    defragment.pool = inside.pool;
    VmaDefragmentationContext context = NULL;
    REQUIRE(vmaBeginDefragmentation(allocator, &defragment, &context));
    VmaDefragmentationPassMoveInfo pass;
    CHECK_RESULT(vmaBeginDefragmentationPass(allocator, context, &pass), VK_INCOMPLETE);
    CHECK(pass.moveCount > WRONG);
    int errors = 0;
#ifdef VMA_SUBLET
    subletSetLogCallback(count_errors, SUBLET_LOG_LEVEL_ERROR, &errors);
#endif
    int stays[WRONG];
    VmaAllocation destinations[WRONG];
    for (uint32_t i = 0; i < pass.moveCount; i++) {
        VmaDefragmentationMove *move = &pass.pMoves[i];
        vmaGetAllocationInfo(allocator, move->srcAllocation, &now);
        if (i >= WRONG) {
            unsigned char bytes[SIZE];
            REQUIRE(vmaCopyAllocationToMemory(allocator, move->srcAllocation, 0, bytes, SIZE));
            REQUIRE(vmaCopyMemoryToAllocation(allocator, bytes, move->dstTmpAllocation, 0, SIZE));
            continue;
        }
        stays[i] = (int)(size_t)now.pUserData - 1;
        destinations[i] = move->dstTmpAllocation;
    }
    vmaFreeMemory(allocator, destinations[0]);
    vmaFreeMemoryPages(allocator, 1, &destinations[1]);
    /* Destroys the buffer and keeps the memory. */
    VkBuffer buffer = VK_NULL_HANDLE;
    REQUIRE(gpu->vkCreateBuffer(gpu->device, &one, NULL, &buffer));
    CHECK_RESULT(vmaBindBufferMemory(allocator, destinations[2], buffer), VK_SUCCESS);
    vmaDestroyBuffer(allocator, buffer, destinations[2]);
    /* Mapped by the program before, and freed twice. */
    void *data = NULL;
    REQUIRE(vmaMapMemory(allocator, destinations[3], &data));
    vmaDestroyImage(allocator, VK_NULL_HANDLE, destinations[3]);
    vmaFreeMemory(allocator, destinations[3]);
    pass.pMoves[4].operation = (VmaDefragmentationMoveOperation)77;
    /* Nothing was freed, so a new allocation is elsewhere. */
    VmaAllocation more[MANY];
    for (int i = 0; i < MANY; i++) {
        REQUIRE(vmaAllocateMemory(allocator, &needs, &inside, &more[i], &now));
        for (uint32_t j = 0; j < pass.moveCount; j++) {
            VmaAllocationInfo to;
            vmaGetAllocationInfo(allocator, pass.pMoves[j].dstTmpAllocation, &to);
            CHECK(now.deviceMemory != to.deviceMemory || now.offset != to.offset);
        }
    }
    uint32_t moved = pass.moveCount - WRONG;
    CHECK_RESULT(vmaEndDefragmentationPass(allocator, context, &pass), VK_INCOMPLETE);
#ifdef VMA_SUBLET
    subletSetLogCallback(NULL, SUBLET_LOG_LEVEL_OFF, NULL);
    CHECK(errors == WRONG + 1);
#else
    (void)errors;
#endif
    VmaDefragmentationStats stats;
    vmaEndDefragmentation(allocator, context, &stats);
    CHECK(stats.allocationsMoved == moved);
    for (int i = 0; i < WRONG; i++) {
        memset(&now, 0, sizeof(now));
        vmaGetAllocationInfo(allocator, allocations[stays[i]], &now);
        CHECK(now.deviceMemory == places[stays[i]].deviceMemory && now.offset == places[stays[i]].offset);
    }
    for (int i = 1; i < MANY; i += 2) {
        memset(&now, 0, sizeof(now));
        vmaGetAllocationInfo(allocator, allocations[i], &now);
        CHECK(now.pMappedData != NULL && is_filled(now.pMappedData, i));
        vmaFreeMemory(allocator, allocations[i]);
    }
    vmaFreeMemoryPages(allocator, MANY, more);
    VmaStatistics left;
    vmaGetPoolStatistics(allocator, inside.pool, &left);
    CHECK(left.allocationCount == 0);
    vmaDestroyPool(allocator, inside.pool);
}

/* Returns the number of allocations that a defragmentation moves, for the same allocations each time. */
static uint32_t moves_with(VmaAllocator allocator, VmaDefragmentationFlags flags) {
    VkBufferCreateInfo one = buffer_of(SIZE, VK_BUFFER_USAGE_TRANSFER_SRC_BIT);
    VmaAllocationCreateInfo inside = wanted(VMA_MEMORY_USAGE_CPU_ONLY, 0);
    VmaPoolCreateInfo create;
    memset(&create, 0, sizeof(create));
    REQUIRE(vmaFindMemoryTypeIndexForBufferInfo(allocator, &one, &inside, &create.memoryTypeIndex));
    create.blockSize = 1u << 20;
    REQUIRE(vmaCreatePool(allocator, &create, &inside.pool));
    VmaAllocation allocations[COUNT];
    uint32_t random = 1;
    for (int i = 0; i < COUNT; i++) {
        random = random * 1664525u + 1013904223u;
        VkMemoryRequirements needs = {(1 + (random >> 24) % 16) * 2048, 2048, 0xFFFFFFFF};
        REQUIRE(vmaAllocateMemory(allocator, &needs, &inside, &allocations[i], NULL));
    }
    for (int i = 0; i < COUNT; i += 4) {
        vmaFreeMemory(allocator, allocations[i]);
        allocations[i] = NULL;
    }
    VmaDefragmentationInfo defragment;
    memset(&defragment, 0, sizeof(defragment));
    defragment.flags = flags;
    defragment.pool = inside.pool;
    VmaDefragmentationContext context = NULL;
    REQUIRE(vmaBeginDefragmentation(allocator, &defragment, &context));
    VmaDefragmentationPassMoveInfo pass;
    while (vmaBeginDefragmentationPass(allocator, context, &pass) == VK_INCOMPLETE
           && vmaEndDefragmentationPass(allocator, context, &pass) == VK_INCOMPLETE) {
    }
    VmaDefragmentationStats stats;
    vmaEndDefragmentation(allocator, context, &stats);
    vmaFreeMemoryPages(allocator, COUNT, allocations);
    vmaDestroyPool(allocator, inside.pool);
    return stats.allocationsMoved;
}

static void algorithms_differ(VmaAllocator allocator) {
    uint32_t fast = moves_with(allocator, VMA_DEFRAGMENTATION_FLAG_ALGORITHM_FAST_BIT);
    uint32_t balanced = moves_with(allocator, VMA_DEFRAGMENTATION_FLAG_ALGORITHM_BALANCED_BIT);
    uint32_t full = moves_with(allocator, VMA_DEFRAGMENTATION_FLAG_ALGORITHM_FULL_BIT);
    CHECK(fast != 0 && fast < balanced && fast < full && balanced != full);
    CHECK(moves_with(allocator, 0) == balanced);
    /* All of them have the same kind. */
    CHECK(moves_with(allocator, VMA_DEFRAGMENTATION_FLAG_ALGORITHM_EXTENSIVE_BIT) == full);
    /* Of several, the one that does least. */
    CHECK(moves_with(allocator, VMA_DEFRAGMENTATION_FLAG_ALGORITHM_MASK) == fast);
}

void test_defragmentation(const Gpu *gpu, VmaAllocator allocator) {
    algorithms_differ(allocator);
    wrong_ends_of_moves(gpu, allocator);
    VkBufferCreateInfo one = buffer_of(SIZE, VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT);
    VmaAllocationCreateInfo host = wanted(VMA_MEMORY_USAGE_CPU_ONLY, 0);
    uint32_t type = 0;
    REQUIRE(vmaFindMemoryTypeIndexForBufferInfo(allocator, &one, &host, &type));
    VmaPoolCreateInfo create;
    memset(&create, 0, sizeof(create));
    create.memoryTypeIndex = type;
    create.blockSize = 32 * SIZE;
    VmaPool pool = NULL;
    REQUIRE(vmaCreatePool(allocator, &create, &pool));

    static VkBuffer buffers[COUNT];
    static VmaAllocation allocations[COUNT];
    VmaAllocationInfo info;
    for (int i = 0; i < COUNT; i++) {
        VmaAllocationCreateInfo inside = wanted(VMA_MEMORY_USAGE_UNKNOWN, i % 2 == 0 ? VMA_ALLOCATION_CREATE_MAPPED_BIT : 0);
        inside.pool = pool;
        inside.pUserData = (void *)(size_t)(i + 1);
        REQUIRE(vmaCreateBuffer(allocator, &one, &inside, &buffers[i], &allocations[i], &info));
        void *data = info.pMappedData;
        if (i % 2 != 0) {
            CHECK(data == NULL);
            REQUIRE(vmaMapMemory(allocator, allocations[i], &data));
        }
        fill(data, i);
        REQUIRE(vmaFlushAllocation(allocator, allocations[i], 0, VK_WHOLE_SIZE));
        /* Some stay mapped by the program. */
        if (i % 2 != 0 && i % 8 != 1) {
            vmaUnmapMemory(allocator, allocations[i]);
        }
        if (i % 10 == 0) {
            vmaSetAllocationName(allocator, allocations[i], "tenth");
        }
    }
    for (int i = 0; i < COUNT; i++) {
        if (i % 4 >= 2) {
            if (i % 8 == 1) {
                vmaUnmapMemory(allocator, allocations[i]);
            }
            vmaDestroyBuffer(allocator, buffers[i], allocations[i]);
            allocations[i] = NULL;
        }
    }
    VmaStatistics before, after;
    vmaGetPoolStatistics(allocator, pool, &before);

    uint32_t questions = 0;
    VmaDefragmentationInfo defragment;
    memset(&defragment, 0, sizeof(defragment));
    defragment.flags = VMA_DEFRAGMENTATION_FLAG_ALGORITHM_FULL_BIT;
    defragment.pool = pool;
    defragment.maxAllocationsPerPass = 16;
    defragment.pfnBreakCallback = count_questions;
    defragment.pBreakCallbackUserData = &questions;
    VmaDefragmentationContext context = NULL;
    VkResult begun = vmaBeginDefragmentation(allocator, &defragment, &context);
    CHECK_RESULT(begun, VK_SUCCESS);
    uint32_t moved = 0, passes = 0, ignored = 0, destroyed = 0;
    while (begun == VK_SUCCESS) {
        VmaDefragmentationPassMoveInfo pass;
        memset(&pass, 0, sizeof(pass));
        VkResult result = vmaBeginDefragmentationPass(allocator, context, &pass);
        if (result == VK_SUCCESS) {
            CHECK(pass.moveCount == 0);
            break;
        }
        CHECK_RESULT(result, VK_INCOMPLETE);
        if (result != VK_INCOMPLETE) {
            break;
        }
        CHECK(pass.moveCount > 0 && pass.moveCount <= 16 && pass.pMoves != NULL);
        for (uint32_t i = 0; i < pass.moveCount; i++) {
            VmaDefragmentationMove *move = &pass.pMoves[i];
            CHECK(move->operation == VMA_DEFRAGMENTATION_MOVE_OPERATION_COPY);
            VmaAllocationInfo from, to;
            vmaGetAllocationInfo(allocator, move->srcAllocation, &from);
            vmaGetAllocationInfo(allocator, move->dstTmpAllocation, &to);
            int at = (int)(size_t)from.pUserData - 1;
            CHECK(at >= 0 && at < COUNT && allocations[at] == move->srcAllocation);
            CHECK(to.size == from.size);
            CHECK(to.deviceMemory != from.deviceMemory || to.offset != from.offset);
            if (passes == 0 && i == 1) {
                move->operation = VMA_DEFRAGMENTATION_MOVE_OPERATION_IGNORE;
                ignored++;
                continue;
            }
            if (passes == 0 && i == 2) {
                move->operation = VMA_DEFRAGMENTATION_MOVE_OPERATION_DESTROY;
                if (at % 8 == 1) {
                    vmaUnmapMemory(allocator, allocations[at]);
                }
                gpu->vkDestroyBuffer(gpu->device, buffers[at], NULL);
                buffers[at] = VK_NULL_HANDLE;
                allocations[at] = NULL;
                destroyed++;
                continue;
            }
            VkBuffer next = VK_NULL_HANDLE;
            REQUIRE(gpu->vkCreateBuffer(gpu->device, &one, NULL, &next));
            CHECK_RESULT(vmaBindBufferMemory(allocator, move->dstTmpAllocation, next), VK_SUCCESS);
            unsigned char bytes[SIZE];
            REQUIRE(vmaCopyAllocationToMemory(allocator, move->srcAllocation, 0, bytes, SIZE));
            REQUIRE(vmaCopyMemoryToAllocation(allocator, bytes, move->dstTmpAllocation, 0, SIZE));
            gpu->vkDestroyBuffer(gpu->device, buffers[at], NULL);
            buffers[at] = next;
            moved++;
        }
        passes++;
        /* A program may return its own list, in any order. The context's list is then ignored. */
        VmaDefragmentationMove own[16];
        if (passes % 2 == 1 && pass.moveCount <= 16) {
            for (uint32_t i = 0; i < pass.moveCount; i++) {
                own[i] = pass.pMoves[pass.moveCount - 1 - i];
            }
            for (uint32_t i = 0; i < pass.moveCount; i++) {
                pass.pMoves[i].operation = VMA_DEFRAGMENTATION_MOVE_OPERATION_IGNORE;
            }
            pass.pMoves = own;
        }
        result = vmaEndDefragmentationPass(allocator, context, &pass);
        CHECK(result == VK_SUCCESS || result == VK_INCOMPLETE);
        if (result == VK_SUCCESS) {
            break;
        }
    }
    VmaDefragmentationStats stats;
    memset(&stats, 0xFF, sizeof(stats));
    if (begun == VK_SUCCESS) {
        vmaEndDefragmentation(allocator, context, &stats);
        CHECK(moved > 0 && ignored == 1 && destroyed == 1 && questions > 0);
        CHECK(stats.allocationsMoved == moved && stats.bytesMoved == (VkDeviceSize)moved * SIZE);
        vmaGetPoolStatistics(allocator, pool, &after);
        CHECK(after.blockCount < before.blockCount);
        CHECK(after.allocationCount == before.allocationCount - 1);
        CHECK(stats.deviceMemoryBlocksFreed >= before.blockCount - after.blockCount);
    }

    /* Each allocation is where its handle says, and mapped as before. */
    for (int i = 0; i < COUNT; i++) {
        if (allocations[i] == NULL) {
            continue;
        }
        vmaGetAllocationInfo(allocator, allocations[i], &info);
        CHECK(info.pUserData == (void *)(size_t)(i + 1));
        CHECK(i % 10 == 0 ? info.pName != NULL && strcmp(info.pName, "tenth") == 0 : info.pName == NULL);
        void *data = info.pMappedData;
        CHECK((data != NULL) == (i % 2 == 0 || i % 8 == 1));
        if (i % 2 != 0 && i % 8 != 1) {
            REQUIRE(vmaMapMemory(allocator, allocations[i], &data));
        }
        CHECK(data != NULL && is_filled(data, i));
        if (i % 2 != 0) {
            vmaUnmapMemory(allocator, allocations[i]);
        }
        vmaDestroyBuffer(allocator, buffers[i], allocations[i]);
    }
    vmaGetPoolStatistics(allocator, pool, &after);
    CHECK(after.allocationCount == 0);
    vmaDestroyPool(allocator, pool);

    /* A pass without moves ends the defragmentation. */
    defragment.pool = NULL;
    defragment.flags = 0;
    if (vmaBeginDefragmentation(allocator, &defragment, &context) == VK_SUCCESS) {
        VmaDefragmentationPassMoveInfo pass;
        CHECK_RESULT(vmaBeginDefragmentationPass(allocator, context, &pass), VK_SUCCESS);
        vmaEndDefragmentation(allocator, context, NULL);
    }
}
