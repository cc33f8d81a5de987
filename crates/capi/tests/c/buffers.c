/* Buffers with their memory. */
#include "client.h"

void test_buffers(const Gpu *gpu, VmaAllocator allocator) {
    VkBufferCreateInfo vertices = buffer_of(65536, VK_BUFFER_USAGE_VERTEX_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT);
    VmaAllocationCreateInfo automatic = wanted(VMA_MEMORY_USAGE_AUTO, 0);
    VkBuffer buffer = VK_NULL_HANDLE;
    VmaAllocation allocation = NULL;
    VmaAllocationInfo info;
    REQUIRE(vmaCreateBuffer(allocator, &vertices, &automatic, &buffer, &allocation, &info));
    CHECK(buffer != VK_NULL_HANDLE && allocation != NULL);
    CHECK(info.size >= 65536 && info.deviceMemory != VK_NULL_HANDLE);
    uint32_t found = UINT32_MAX;
    CHECK_RESULT(vmaFindMemoryTypeIndexForBufferInfo(allocator, &vertices, &automatic, &found), VK_SUCCESS);
    CHECK(found == info.memoryType);
    vmaDestroyBuffer(allocator, buffer, allocation);
    vmaDestroyBuffer(allocator, VK_NULL_HANDLE, NULL);

    /* Not bound at first, then bound by the program. */
    VmaAllocationCreateInfo loose = wanted(VMA_MEMORY_USAGE_AUTO, VMA_ALLOCATION_CREATE_DONT_BIND_BIT);
    REQUIRE(vmaCreateBuffer(allocator, &vertices, &loose, &buffer, &allocation, NULL));
    CHECK_RESULT(vmaBindBufferMemory(allocator, allocation, buffer), VK_SUCCESS);
    vmaDestroyBuffer(allocator, buffer, allocation);

    /* Two buffers in the memory of one. */
    REQUIRE(gpu->vkCreateBuffer(gpu->device, &vertices, NULL, &buffer));
    VmaAllocationCreateInfo gpu_only = wanted(VMA_MEMORY_USAGE_GPU_ONLY, 0);
    REQUIRE(vmaAllocateMemoryForBuffer(allocator, buffer, &gpu_only, &allocation, &info));
    CHECK_RESULT(vmaBindBufferMemory2(allocator, allocation, 0, buffer, NULL), VK_SUCCESS);
    vmaDestroyBuffer(allocator, buffer, VK_NULL_HANDLE);
    vmaFreeMemory(allocator, allocation);
    REQUIRE(gpu->vkCreateBuffer(gpu->device, &vertices, NULL, &buffer));
    CHECK_RESULT(vmaAllocateMemoryForBuffer(allocator, buffer, &automatic, &allocation, NULL), VK_ERROR_FEATURE_NOT_PRESENT);
    CHECK(allocation == NULL);
    gpu->vkDestroyBuffer(gpu->device, buffer, NULL);

    for (int i = 0; i < 2; i++) {
        REQUIRE(vmaCreateBufferWithAlignment(allocator, &vertices, &automatic, 131072, &buffer, &allocation, &info));
        CHECK(info.offset % 131072 == 0);
        vmaDestroyBuffer(allocator, buffer, allocation);
    }
#if !OLD_CLIENT
    VmaAllocationInfo2 more;
    REQUIRE(vmaCreateDedicatedBuffer(allocator, &vertices, &automatic, NULL, &buffer, &allocation, NULL));
    vmaGetAllocationInfo2(allocator, allocation, &more);
    CHECK(more.dedicatedMemory == VK_TRUE && more.allocationInfo.offset == 0);
    vmaDestroyBuffer(allocator, buffer, allocation);
#endif

    /* Many buffers at once: no two share a byte. */
    enum { COUNT = 300 };
    static VkBuffer buffers[COUNT];
    static VmaAllocation allocations[COUNT];
    static VmaAllocationInfo infos[COUNT];
    for (int i = 0; i < COUNT; i++) {
        VkBufferCreateInfo some = buffer_of(1 + 977u * (VkDeviceSize)i, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
        REQUIRE(vmaCreateBuffer(allocator, &some, &automatic, &buffers[i], &allocations[i], &infos[i]));
        for (int j = 0; j < i; j++) {
            CHECK(infos[i].deviceMemory != infos[j].deviceMemory || infos[i].offset >= infos[j].offset + infos[j].size ||
                  infos[j].offset >= infos[i].offset + infos[i].size);
        }
    }
    for (int i = 0; i < COUNT; i++) {
        int at = i * 7 % COUNT;
        vmaDestroyBuffer(allocator, buffers[at], allocations[at]);
    }
}
