/* The device. */
#include "client.h"

static bool has(const VkExtensionProperties *list, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(list[i].extensionName, name) == 0) {
            return true;
        }
    }
    return false;
}

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

Gpu open_gpu(PFN_vkGetInstanceProcAddr entry, const char *way) {
    Gpu gpu;
    memset(&gpu, 0, sizeof(gpu));
    gpu.vkGetInstanceProcAddr = entry;
    PFN_vkEnumerateInstanceVersion version = (PFN_vkEnumerateInstanceVersion)entry(NULL, "vkEnumerateInstanceVersion");
    PFN_vkCreateInstance create = (PFN_vkCreateInstance)entry(NULL, "vkCreateInstance");
    uint32_t instance_version = VK_API_VERSION_1_0;
    if (version != NULL) {
        REQUIRE(version(&instance_version));
    }
    VkApplicationInfo application;
    memset(&application, 0, sizeof(application));
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.apiVersion = instance_version;
    const char *instance_extensions[] = {VK_KHR_GET_PHYSICAL_DEVICE_PROPERTIES_2_EXTENSION_NAME};
    VkInstanceCreateInfo info;
    memset(&info, 0, sizeof(info));
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &application;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = instance_extensions;
    REQUIRE(create(&info, NULL, &gpu.instance));
#define LOAD(name) gpu.name = (PFN_##name)entry(gpu.instance, #name);
    INSTANCE_FUNCTIONS(LOAD)
#undef LOAD

    uint32_t count = 1;
    VkResult found = gpu.vkEnumeratePhysicalDevices(gpu.instance, &count, &gpu.physicalDevice);
    if ((found != VK_SUCCESS && found != VK_INCOMPLETE) || count == 0) {
        printf("there is no physical device\n");
        exit(3);
    }
    gpu.vkGetPhysicalDeviceProperties(gpu.physicalDevice, &gpu.properties);
    gpu.vkGetPhysicalDeviceMemoryProperties(gpu.physicalDevice, &gpu.memory);
    gpu.apiVersion = smaller(instance_version, gpu.properties.apiVersion);

    uint32_t offered_count = 0;
    REQUIRE(gpu.vkEnumerateDeviceExtensionProperties(gpu.physicalDevice, NULL, &offered_count, NULL));
    VkExtensionProperties *offered = (VkExtensionProperties *)calloc(offered_count + 1, sizeof(*offered));
    REQUIRE(gpu.vkEnumerateDeviceExtensionProperties(gpu.physicalDevice, NULL, &offered_count, offered));
    static const struct {
        const char *name;
        VmaAllocatorCreateFlags flag;
    } known[] = {
        {VK_EXT_MEMORY_BUDGET_EXTENSION_NAME, VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT},
        {VK_KHR_BIND_MEMORY_2_EXTENSION_NAME, VMA_ALLOCATOR_CREATE_KHR_BIND_MEMORY2_BIT},
        {VK_KHR_GET_MEMORY_REQUIREMENTS_2_EXTENSION_NAME, 0},
        {VK_KHR_DEDICATED_ALLOCATION_EXTENSION_NAME, VMA_ALLOCATOR_CREATE_KHR_DEDICATED_ALLOCATION_BIT},
    };
    const char *extensions[4];
    uint32_t extension_count = 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (has(offered, offered_count, known[i].name)) {
            extensions[extension_count++] = known[i].name;
            gpu.flags |= known[i].flag;
        }
    }
    free(offered);

    float priority = 1.0f;
    VkDeviceQueueCreateInfo queue;
    memset(&queue, 0, sizeof(queue));
    queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkDeviceCreateInfo device;
    memset(&device, 0, sizeof(device));
    device.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    device.queueCreateInfoCount = 1;
    device.pQueueCreateInfos = &queue;
    device.enabledExtensionCount = extension_count;
    device.ppEnabledExtensionNames = extensions;
    REQUIRE(gpu.vkCreateDevice(gpu.physicalDevice, &device, NULL, &gpu.device));
#define LOAD(name) gpu.name = (PFN_##name)gpu.vkGetDeviceProcAddr(gpu.device, #name);
    DEVICE_FUNCTIONS(LOAD)
#undef LOAD

    if (strcmp(way, "table") == 0) {
#define OF_INSTANCE(name) gpu.functions.name = (PFN_##name)entry(gpu.instance, #name)
#define OF_DEVICE(name) gpu.functions.name = (PFN_##name)gpu.vkGetDeviceProcAddr(gpu.device, #name)
        OF_INSTANCE(vkGetPhysicalDeviceProperties);
        OF_INSTANCE(vkGetPhysicalDeviceMemoryProperties);
        OF_INSTANCE(vkGetPhysicalDeviceMemoryProperties2KHR);
        OF_DEVICE(vkAllocateMemory);
        OF_DEVICE(vkFreeMemory);
        OF_DEVICE(vkMapMemory);
        OF_DEVICE(vkUnmapMemory);
        OF_DEVICE(vkFlushMappedMemoryRanges);
        OF_DEVICE(vkInvalidateMappedMemoryRanges);
        OF_DEVICE(vkBindBufferMemory);
        OF_DEVICE(vkBindImageMemory);
        OF_DEVICE(vkGetBufferMemoryRequirements);
        OF_DEVICE(vkGetImageMemoryRequirements);
        OF_DEVICE(vkCreateBuffer);
        OF_DEVICE(vkDestroyBuffer);
        OF_DEVICE(vkCreateImage);
        OF_DEVICE(vkDestroyImage);
        OF_DEVICE(vkCmdCopyBuffer);
        OF_DEVICE(vkGetBufferMemoryRequirements2KHR);
        OF_DEVICE(vkGetImageMemoryRequirements2KHR);
        OF_DEVICE(vkBindBufferMemory2KHR);
        OF_DEVICE(vkBindImageMemory2KHR);
        if (gpu.functions.vkGetBufferMemoryRequirements2KHR == NULL) {
            gpu.functions.vkGetBufferMemoryRequirements2KHR = (PFN_vkGetBufferMemoryRequirements2KHR)gpu.vkGetDeviceProcAddr(
                gpu.device, "vkGetBufferMemoryRequirements2");
            gpu.functions.vkGetImageMemoryRequirements2KHR = (PFN_vkGetImageMemoryRequirements2KHR)gpu.vkGetDeviceProcAddr(
                gpu.device, "vkGetImageMemoryRequirements2");
        }
#undef OF_INSTANCE
#undef OF_DEVICE
        gpu.pFunctions = &gpu.functions;
    } else if (strcmp(way, "lookup") == 0) {
        gpu.functions.vkGetInstanceProcAddr = entry;
        gpu.functions.vkGetDeviceProcAddr = gpu.vkGetDeviceProcAddr;
        gpu.pFunctions = &gpu.functions;
    } else {
        gpu.pFunctions = NULL;
    }
    return gpu;
}

void close_gpu(Gpu *gpu) {
    gpu->vkDestroyDevice(gpu->device, NULL);
    gpu->vkDestroyInstance(gpu->instance, NULL);
}

VmaAllocator make_allocator(const Gpu *gpu, VmaAllocatorCreateFlags more) {
    VmaAllocatorCreateInfo info;
    memset(&info, 0, sizeof(info));
    info.flags = gpu->flags | more;
    info.physicalDevice = gpu->physicalDevice;
    info.device = gpu->device;
    info.instance = gpu->instance;
    info.vulkanApiVersion = gpu->apiVersion;
    /* The returned copy of the structure equals the original. */
    info.pVulkanFunctions = gpu->pFunctions == NULL ? NULL : &gpu->functions;
    VmaAllocator allocator = NULL;
    REQUIRE(vmaCreateAllocator(&info, &allocator));
    CHECK(allocator != NULL);
    return allocator;
}
