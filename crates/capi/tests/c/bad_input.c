/* The result of each function for invalid input. */
#include "client.h"

static void refused(VmaAllocator allocator, VkMemoryRequirements needs, VmaAllocationCreateInfo info, VkResult expected, int line) {
    VmaAllocation allocation = (VmaAllocation)(void *)&needs;
    VkResult result = vmaAllocateMemory(allocator, &needs, &info, &allocation, NULL);
    if (result != expected || allocation != NULL) {
        printf("%s:%d: the result is %d, not %d\n", __FILE__, line, (int)result, (int)expected);
        failures++;
    }
    if (result == VK_SUCCESS) {
        vmaFreeMemory(allocator, allocation);
    }
}
#define REFUSED(needs, info, expected) refused(allocator, needs, info, expected, __LINE__)

void test_bad_input(const Gpu *gpu, VmaAllocator allocator) {
    VkMemoryRequirements needs = {1000, 256, 0xFFFFFFFF};
    VkMemoryRequirements nothing = {0, 256, 0xFFFFFFFF};
    VkMemoryRequirements nowhere = {1000, 256, 0};
    VkMemoryRequirements uneven = {1000, 24, 0xFFFFFFFF};
    VkMemoryRequirements huge = {(VkDeviceSize)1 << 60, 256, 0xFFFFFFFF};
    VmaAllocationCreateInfo any = wanted(VMA_MEMORY_USAGE_UNKNOWN, 0);
    REFUSED(nothing, any, VK_ERROR_INITIALIZATION_FAILED);
    REFUSED(nowhere, any, VK_ERROR_FEATURE_NOT_PRESENT);
    REFUSED(uneven, any, VK_ERROR_INITIALIZATION_FAILED);
    REFUSED(huge, any, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    REFUSED(needs, wanted(VMA_MEMORY_USAGE_AUTO, 0), VK_ERROR_FEATURE_NOT_PRESENT);
    REFUSED(needs, wanted(VMA_MEMORY_USAGE_UNKNOWN, 0x3), VK_ERROR_FEATURE_NOT_PRESENT);
    REFUSED(needs, wanted(VMA_MEMORY_USAGE_UNKNOWN, VMA_ALLOCATION_CREATE_UPPER_ADDRESS_BIT), VK_ERROR_FEATURE_NOT_PRESENT);
    REFUSED(needs, wanted(VMA_MEMORY_USAGE_UNKNOWN, 0xC00), VK_ERROR_FEATURE_NOT_PRESENT);
    /* Of several strategies one is used. The handle was overwritten. */
    VmaAllocationCreateInfo several = wanted(VMA_MEMORY_USAGE_UNKNOWN, 0x30000);
    VmaAllocation kept = NULL;
    REQUIRE(vmaAllocateMemory(allocator, &needs, &several, &kept, NULL));
    vmaFreeMemory(allocator, kept);
    kept = (VmaAllocation)(void *)&several;
    CHECK_RESULT(vmaAllocateMemory(allocator, NULL, &several, &kept, NULL), VK_ERROR_INITIALIZATION_FAILED);
    CHECK(kept == NULL);
    VmaAllocationCreateInfo lost = any;
    lost.requiredFlags = 0x80000000;
    REFUSED(needs, lost, VK_ERROR_FEATURE_NOT_PRESENT);
    uint32_t found = 3;
    CHECK_RESULT(vmaFindMemoryTypeIndex(allocator, 0xFFFFFFFF, &lost, &found), VK_ERROR_FEATURE_NOT_PRESENT);
    CHECK(found == UINT32_MAX);
    VkMemoryRequirements large = {(VkDeviceSize)200 << 20, 256, 0xFFFFFFFF};
    REFUSED(large, wanted(VMA_MEMORY_USAGE_UNKNOWN, VMA_ALLOCATION_CREATE_NEVER_ALLOCATE_BIT), VK_ERROR_OUT_OF_DEVICE_MEMORY);

    /* Null pointers that must not be null. */
    VmaAllocation allocation = NULL;
    VmaAllocationInfo info;
    CHECK_RESULT(vmaAllocateMemory(allocator, NULL, &any, &allocation, NULL), VK_ERROR_INITIALIZATION_FAILED);
    CHECK_RESULT(vmaAllocateMemory(allocator, &needs, NULL, &allocation, NULL), VK_ERROR_INITIALIZATION_FAILED);
    CHECK_RESULT(vmaAllocateMemory(allocator, &needs, &any, NULL, NULL), VK_ERROR_INITIALIZATION_FAILED);
    CHECK_RESULT(vmaAllocateMemory(NULL, &needs, &any, &allocation, NULL), VK_ERROR_INITIALIZATION_FAILED);
    CHECK_RESULT(vmaFlushAllocation(allocator, NULL, 0, 1), VK_ERROR_UNKNOWN);
    void *data = NULL;
    CHECK_RESULT(vmaMapMemory(allocator, NULL, &data), VK_ERROR_MEMORY_MAP_FAILED);
    vmaUnmapMemory(allocator, NULL);
    vmaGetAllocationInfo(allocator, NULL, &info);
    vmaSetAllocationName(allocator, NULL, "x");
    vmaSetAllocationUserData(allocator, NULL, NULL);
    vmaFreeMemoryPages(allocator, 0, NULL);
    VkMemoryPropertyFlags flags = 1;
    vmaGetMemoryTypeProperties(allocator, 32, &flags);
    CHECK(flags == 0);

    /* Buffers and images that cannot exist. */
    VmaAllocationCreateInfo automatic = wanted(VMA_MEMORY_USAGE_AUTO, 0);
    VkBufferCreateInfo empty = buffer_of(0, VK_BUFFER_USAGE_TRANSFER_DST_BIT);
    VkBuffer buffer = (VkBuffer)1;
    allocation = (VmaAllocation)(void *)&needs;
    CHECK_RESULT(vmaCreateBuffer(allocator, &empty, &automatic, &buffer, &allocation, NULL), VK_ERROR_INITIALIZATION_FAILED);
    CHECK(buffer == VK_NULL_HANDLE && allocation == NULL);
    VkBufferCreateInfo addressed = buffer_of(64, VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT);
    CHECK_RESULT(vmaCreateBuffer(allocator, &addressed, &automatic, &buffer, &allocation, NULL), VK_ERROR_INITIALIZATION_FAILED);
    VkBufferCreateInfo good = buffer_of(64, VK_BUFFER_USAGE_TRANSFER_DST_BIT);
    CHECK_RESULT(vmaCreateBufferWithAlignment(allocator, &good, &automatic, 3, &buffer, &allocation, NULL),
                 VK_ERROR_INITIALIZATION_FAILED);
    CHECK(buffer == VK_NULL_HANDLE && allocation == NULL);
    VmaAllocationCreateInfo both = wanted(VMA_MEMORY_USAGE_AUTO, 0x3);
    CHECK_RESULT(vmaCreateBuffer(allocator, &good, &both, &buffer, &allocation, NULL), VK_ERROR_FEATURE_NOT_PRESENT);
    for (int i = 0; i < 5; i++) {
        VkImageCreateInfo flat = image_of(16, VK_IMAGE_USAGE_SAMPLED_BIT);
        uint32_t *members[5] = {&flat.extent.width, &flat.extent.height, &flat.extent.depth, &flat.mipLevels, &flat.arrayLayers};
        *members[i] = 0;
        VkImage image = (VkImage)1;
        CHECK_RESULT(vmaCreateImage(allocator, &flat, &automatic, &image, &allocation, NULL), VK_ERROR_INITIALIZATION_FAILED);
        CHECK(image == VK_NULL_HANDLE && allocation == NULL);
    }

    /* Binds to no memory. */
    REQUIRE(vmaAllocateMemory(allocator, &needs, &any, &allocation, NULL));
    REQUIRE(gpu->vkCreateBuffer(gpu->device, &good, NULL, &buffer));
    CHECK_RESULT(vmaBindBufferMemory2(allocator, allocation, 1000, buffer, NULL), VK_ERROR_UNKNOWN);
    gpu->vkDestroyBuffer(gpu->device, buffer, NULL);
    vmaFreeMemory(allocator, allocation);
    /* Binds twice. */
    vmaFreeMemory(allocator, allocation);
    CHECK_RESULT(vmaMapMemory(allocator, allocation, &data), VK_ERROR_MEMORY_MAP_FAILED);
    CHECK_RESULT(vmaCheckCorruption(allocator, 0xFFFFFFFF), VK_ERROR_FEATURE_NOT_PRESENT);

    /* An allocation of another allocator: only the log shows the error. */
    VmaAllocator other = make_allocator(gpu, 0);
    REQUIRE(vmaAllocateMemory(other, &needs, &any, &allocation, NULL));
    vmaFreeMemory(allocator, allocation);
    memset(&info, 0, sizeof(info));
    vmaGetAllocationInfo(other, allocation, &info);
    CHECK(info.size == 1000);
    vmaFreeMemory(other, allocation);
    vmaDestroyAllocator(other);
}
