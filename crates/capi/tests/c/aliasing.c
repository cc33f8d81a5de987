/* Several resources in one allocation. */
#include "client.h"

void test_aliasing(const Gpu *gpu, VmaAllocator allocator) {
    VkBufferCreateInfo half = buffer_of(32768, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
    VkMemoryRequirements needs;
    VkBuffer first = VK_NULL_HANDLE, second = VK_NULL_HANDLE;
    REQUIRE(gpu->vkCreateBuffer(gpu->device, &half, NULL, &first));
    gpu->vkGetBufferMemoryRequirements(gpu->device, first, &needs);
    gpu->vkDestroyBuffer(gpu->device, first, NULL);
    VkDeviceSize step = (needs.size + needs.alignment - 1) / needs.alignment * needs.alignment;
    needs.size = 2 * step;
    VmaAllocationCreateInfo shared = wanted(VMA_MEMORY_USAGE_GPU_ONLY, VMA_ALLOCATION_CREATE_CAN_ALIAS_BIT);
    VmaAllocation allocation = NULL;
    REQUIRE(vmaAllocateMemory(allocator, &needs, &shared, &allocation, NULL));
    CHECK_RESULT(vmaCreateAliasingBuffer(allocator, allocation, &half, &first), VK_SUCCESS);
    CHECK_RESULT(vmaCreateAliasingBuffer2(allocator, allocation, step, &half, &second), VK_SUCCESS);
    CHECK(first != VK_NULL_HANDLE && second != VK_NULL_HANDLE && first != second);
    vmaDestroyBuffer(allocator, second, NULL);
    vmaDestroyBuffer(allocator, first, NULL);

    half.size = 4 * needs.size;
    first = (VkBuffer)1;
    CHECK_RESULT(vmaCreateAliasingBuffer(allocator, allocation, &half, &first), VK_ERROR_FEATURE_NOT_PRESENT);
    CHECK(first == VK_NULL_HANDLE);
    half.size = 0;
    first = (VkBuffer)1;
    CHECK_RESULT(vmaCreateAliasingBuffer(allocator, allocation, &half, &first), VK_ERROR_INITIALIZATION_FAILED);
    CHECK(first == VK_NULL_HANDLE);
    vmaFreeMemory(allocator, allocation);

    VkImageCreateInfo texture = image_of(64, VK_IMAGE_USAGE_SAMPLED_BIT);
    VkImage image = VK_NULL_HANDLE;
    REQUIRE(gpu->vkCreateImage(gpu->device, &texture, NULL, &image));
    gpu->vkGetImageMemoryRequirements(gpu->device, image, &needs);
    gpu->vkDestroyImage(gpu->device, image, NULL);
    REQUIRE(vmaAllocateMemory(allocator, &needs, &shared, &allocation, NULL));
    CHECK_RESULT(vmaCreateAliasingImage(allocator, allocation, &texture, &image), VK_SUCCESS);
    vmaDestroyImage(allocator, image, NULL);
    CHECK_RESULT(vmaCreateAliasingImage2(allocator, allocation, 0, &texture, &image), VK_SUCCESS);
    vmaDestroyImage(allocator, image, NULL);
    texture.mipLevels = 0;
    CHECK_RESULT(vmaCreateAliasingImage(allocator, allocation, &texture, &image), VK_ERROR_INITIALIZATION_FAILED);
    CHECK(image == VK_NULL_HANDLE);
    vmaFreeMemory(allocator, allocation);
}
