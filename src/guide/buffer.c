#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>
#include <vk_mem_alloc.h>

static void require(VkResult result, const char *what) {
    if (result < 0) {
        fprintf(stderr, "%s: %d\n", what, (int)result);
        exit(1);
    }
}

int main(void) {
    /* Your program already has these: an instance, its first device, and a queue. */
    const VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .apiVersion = VK_API_VERSION_1_1,
    };
    const VkInstanceCreateInfo instance_info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pApplicationInfo = &application,
    };
    VkInstance instance;
    require(vkCreateInstance(&instance_info, NULL, &instance), "vkCreateInstance");
    VkPhysicalDevice physical_device = VK_NULL_HANDLE;
    uint32_t count = 1;
    require(vkEnumeratePhysicalDevices(instance, &count, &physical_device), "vkEnumeratePhysicalDevices");
    require(count == 1 ? VK_SUCCESS : VK_ERROR_INITIALIZATION_FAILED, "a device");
    const float priority = 1.0f;
    const VkDeviceQueueCreateInfo queue_info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    const VkDeviceCreateInfo device_info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue_info,
    };
    VkDevice device;
    require(vkCreateDevice(physical_device, &device_info, NULL, &device), "vkCreateDevice");

    /* The version is the application's. The library loads Vulkan's functions, because none are given here. */
    const VmaAllocatorCreateInfo allocator_info = {
        .instance = instance,
        .physicalDevice = physical_device,
        .device = device,
        .vulkanApiVersion = VK_API_VERSION_1_1,
    };
    VmaAllocator allocator;
    require(vmaCreateAllocator(&allocator_info, &allocator), "vmaCreateAllocator");

    /* A buffer that the host writes and the device reads. It is mapped while it lives. */
    const VkBufferCreateInfo buffer_info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = 65536,
        .usage = VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT,
    };
    const VmaAllocationCreateInfo wanted = {
        .usage = VMA_MEMORY_USAGE_AUTO,
        .flags = VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT | VMA_ALLOCATION_CREATE_MAPPED_BIT,
    };
    VkBuffer buffer;
    VmaAllocation allocation;
    VmaAllocationInfo place;
    require(vmaCreateBuffer(allocator, &buffer_info, &wanted, &buffer, &allocation, &place), "vmaCreateBuffer");
    const float matrix[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    memcpy(place.pMappedData, matrix, sizeof(matrix));
    /* Does nothing if the memory is coherent. */
    require(vmaFlushAllocation(allocator, allocation, 0, sizeof(matrix)), "vmaFlushAllocation");
    printf("%llu bytes in memory of type %u\n", (unsigned long long)place.size, place.memoryType);

    /* Destroy resources first, then the allocator, then the device. */
    vmaDestroyBuffer(allocator, buffer, allocation);
    vmaDestroyAllocator(allocator);
    vkDestroyDevice(device, NULL);
    vkDestroyInstance(instance, NULL);
    return 0;
}
