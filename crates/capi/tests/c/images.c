/* Images with their memory. */
#include "client.h"

void test_images(const Gpu *gpu, VmaAllocator allocator) {
    VkImageCreateInfo texture = image_of(64, VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT);
    VmaAllocationCreateInfo automatic = wanted(VMA_MEMORY_USAGE_AUTO, 0);
    VkImage image = VK_NULL_HANDLE;
    VmaAllocation allocation = NULL;
    VmaAllocationInfo info;
    REQUIRE(vmaCreateImage(allocator, &texture, &automatic, &image, &allocation, &info));
    CHECK(image != VK_NULL_HANDLE && allocation != NULL && info.size >= 64 * 64 * 4);
    uint32_t found = UINT32_MAX;
    CHECK_RESULT(vmaFindMemoryTypeIndexForImageInfo(allocator, &texture, &automatic, &found), VK_SUCCESS);
    CHECK(found == info.memoryType);
    vmaDestroyImage(allocator, image, allocation);
    vmaDestroyImage(allocator, VK_NULL_HANDLE, NULL);

    REQUIRE(gpu->vkCreateImage(gpu->device, &texture, NULL, &image));
    VmaAllocationCreateInfo gpu_only = wanted(VMA_MEMORY_USAGE_GPU_ONLY, 0);
    REQUIRE(vmaAllocateMemoryForImage(allocator, image, &gpu_only, &allocation, NULL));
    CHECK_RESULT(vmaBindImageMemory(allocator, allocation, image), VK_SUCCESS);
    vmaDestroyImage(allocator, image, allocation);
    VmaAllocationCreateInfo loose = wanted(VMA_MEMORY_USAGE_AUTO, VMA_ALLOCATION_CREATE_DONT_BIND_BIT);
    REQUIRE(vmaCreateImage(allocator, &texture, &loose, &image, &allocation, NULL));
    CHECK_RESULT(vmaBindImageMemory2(allocator, allocation, 0, image, NULL), VK_SUCCESS);
    vmaDestroyImage(allocator, image, allocation);
#if !OLD_CLIENT
    VmaAllocationInfo2 more;
    REQUIRE(vmaCreateDedicatedImage(allocator, &texture, &automatic, NULL, &image, &allocation, NULL));
    vmaGetAllocationInfo2(allocator, allocation, &more);
    CHECK(more.dedicatedMemory == VK_TRUE);
    vmaDestroyImage(allocator, image, allocation);
#endif
}
