/* Memory without resources. */
#include "client.h"

/* Not memcmp, because of padding between members. */
static bool same(const VmaAllocationInfo *a, const VmaAllocationInfo *b) {
    return a->memoryType == b->memoryType && a->deviceMemory == b->deviceMemory && a->offset == b->offset &&
           a->size == b->size && a->pMappedData == b->pMappedData && a->pUserData == b->pUserData && a->pName == b->pName;
}

void test_memory(const Gpu *gpu, VmaAllocator allocator) {
    VmaAllocationCreateInfo any = wanted(VMA_MEMORY_USAGE_UNKNOWN, 0);
    VkMemoryRequirements needs = {1000, 256, 0xFFFFFFFF};
    int mark = 0;
    any.pUserData = &mark;

    VmaAllocation first = NULL, second = NULL;
    VmaAllocationInfo info, again;
    REQUIRE(vmaAllocateMemory(allocator, &needs, &any, &first, &info));
    REQUIRE(vmaAllocateMemory(allocator, &needs, &any, &second, NULL));
    CHECK(info.deviceMemory != VK_NULL_HANDLE);
    CHECK(info.size == 1000 && info.offset % 256 == 0);
    CHECK(info.memoryType < gpu->memory.memoryTypeCount);
    CHECK(info.pUserData == &mark && info.pName == NULL && info.pMappedData == NULL);
    vmaGetAllocationInfo(allocator, first, &again);
    CHECK(same(&info, &again));
    vmaGetAllocationInfo(allocator, second, &again);
    CHECK(again.deviceMemory != info.deviceMemory || again.offset >= info.offset + info.size ||
          info.offset >= again.offset + again.size);
    VkMemoryPropertyFlags flags = 0xFFFFFFFF;
    vmaGetAllocationMemoryProperties(allocator, first, &flags);
    CHECK(flags == gpu->memory.memoryTypes[info.memoryType].propertyFlags);

    VmaAllocationInfo2 more;
    vmaGetAllocationInfo2(allocator, first, &more);
    CHECK(more.blockSize > 2000 && more.dedicatedMemory == VK_FALSE);
    CHECK(more.allocationInfo.offset == info.offset);

    int other = 0;
    vmaSetAllocationUserData(allocator, first, &other);
    char name[] = "a name";
    vmaSetAllocationName(allocator, first, name);
    name[0] = 'A';
    vmaGetAllocationInfo(allocator, first, &info);
    CHECK(info.pUserData == &other);
    CHECK(info.pName != NULL && info.pName != name && strcmp(info.pName, "a name") == 0);
    vmaSetAllocationName(allocator, first, NULL);
    vmaGetAllocationInfo(allocator, first, &info);
    CHECK(info.pName == NULL);
    vmaFreeMemory(allocator, first);
    vmaFreeMemory(allocator, second);
    vmaFreeMemory(allocator, NULL);

    /* Handles are reused, names are not. */
    char text[] = "copied";
    VmaAllocationCreateInfo named = wanted(VMA_MEMORY_USAGE_UNKNOWN, VMA_ALLOCATION_CREATE_USER_DATA_COPY_STRING_BIT);
    named.pUserData = text;
    REQUIRE(vmaAllocateMemory(allocator, &needs, &named, &first, &info));
    CHECK(info.pUserData == NULL && info.pName != text && strcmp(info.pName, "copied") == 0);
    vmaFreeMemory(allocator, first);
    REQUIRE(vmaAllocateMemory(allocator, &needs, &any, &second, &info));
    CHECK(info.pName == NULL && info.pUserData == &mark);
    /* The old handle refers to the same slot, and frees nothing. */
    vmaFreeMemory(allocator, first);
    memset(&again, 0, sizeof(again));
    vmaGetAllocationInfo(allocator, second, &again);
    CHECK(again.size == 1000);
    vmaFreeMemory(allocator, second);

    VmaAllocationCreateInfo own = wanted(VMA_MEMORY_USAGE_UNKNOWN, VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT);
    REQUIRE(vmaAllocateMemory(allocator, &needs, &own, &first, NULL));
    vmaGetAllocationInfo2(allocator, first, &more);
    CHECK(more.blockSize == 1000 && more.dedicatedMemory == VK_TRUE && more.allocationInfo.offset == 0);
    vmaFreeMemory(allocator, first);
#if !OLD_CLIENT
    REQUIRE(vmaAllocateDedicatedMemory(allocator, &needs, &any, NULL, &first, NULL));
    vmaGetAllocationInfo2(allocator, first, &more);
    CHECK(more.dedicatedMemory == VK_TRUE && more.allocationInfo.pUserData == &mark);
    vmaFreeMemory(allocator, first);

    VmaAllocationCreateInfo aligned = any;
    aligned.minAlignment = 4096;
    for (int i = 0; i < 2; i++) {
        REQUIRE(vmaAllocateMemory(allocator, &needs, &aligned, i == 0 ? &first : &second, &info));
        CHECK(info.offset % 4096 == 0);
    }
    vmaFreeMemory(allocator, first);
    vmaFreeMemory(allocator, second);
#endif

    /* Without the extension, priorities are ignored. */
    VmaAllocationCreateInfo strange = any;
    strange.priority = 77.0f;
    REQUIRE(vmaAllocateMemory(allocator, &needs, &strange, &first, NULL));
    vmaFreeMemory(allocator, first);

    /* Pages: all, or none. Only the first elements of the lists are read. */
    enum { PAGES = 100 };
    VmaAllocation pages[PAGES];
    VmaAllocationInfo infos[PAGES];
    REQUIRE(vmaAllocateMemoryPages(allocator, &needs, &any, PAGES, pages, infos));
    for (int i = 0; i < PAGES; i++) {
        vmaGetAllocationInfo(allocator, pages[i], &info);
        CHECK(same(&info, &infos[i]));
        for (int j = 0; j < i; j++) {
            CHECK(pages[i] != pages[j]);
            CHECK(infos[i].deviceMemory != infos[j].deviceMemory || infos[i].offset != infos[j].offset);
        }
    }
    VmaAllocation hole = pages[50];
    pages[50] = NULL;
    vmaFreeMemoryPages(allocator, PAGES, pages);
    vmaFreeMemory(allocator, hole);
    CHECK_RESULT(vmaAllocateMemoryPages(allocator, &needs, &any, 0, pages, NULL), VK_SUCCESS);
    needs.size = 0;
    for (int i = 0; i < 3; i++) {
        pages[i] = hole;
    }
    CHECK_RESULT(vmaAllocateMemoryPages(allocator, &needs, &any, 3, pages, NULL), VK_ERROR_INITIALIZATION_FAILED);
    CHECK(pages[0] == NULL && pages[1] == NULL && pages[2] == NULL);

    /* Preferred properties are met if one type has all of them. */
    for (uint32_t i = 0; i < gpu->memory.memoryTypeCount; i++) {
        VmaAllocationCreateInfo one = wanted(VMA_MEMORY_USAGE_UNKNOWN, 0);
        one.preferredFlags = gpu->memory.memoryTypes[i].propertyFlags & 0x1F;
        uint32_t found = UINT32_MAX;
        if (gpu->memory.memoryTypes[i].propertyFlags < 0x40 && (one.preferredFlags & 0x10) == 0) {
            REQUIRE(vmaFindMemoryTypeIndex(allocator, 0xFFFFFFFF, &one, &found));
            CHECK((gpu->memory.memoryTypes[found].propertyFlags & one.preferredFlags) == one.preferredFlags);
        }
    }

    /* Every memory type is found by its own properties, or a better one is. */
    for (uint32_t i = 0; i < gpu->memory.memoryTypeCount; i++) {
        VmaAllocationCreateInfo one = wanted(VMA_MEMORY_USAGE_UNKNOWN, 0);
        one.memoryTypeBits = 1u << i;
        uint32_t found = 77;
        VkResult result = vmaFindMemoryTypeIndex(allocator, 0xFFFFFFFF, &one, &found);
        /* Types of VK_AMD_device_coherent_memory are not used. */
        CHECK(result == VK_SUCCESS ? found == i : found == UINT32_MAX);
        CHECK(result == VK_SUCCESS || gpu->memory.memoryTypes[i].propertyFlags >= 0x40);
    }
}
