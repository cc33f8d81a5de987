// A Vulkan driver with one device that rejects the calls named in the environment variable REFUSED. A call that cannot
// fail returns invalid values instead. It has only the functions that `sublet` calls before: a Vulkan 1.0 device
// without extensions and without memory.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void (*Function)(void);
typedef struct { uint32_t api_version, driver_version, vendor, device, type; char name[256]; } Properties;
typedef struct { uint32_t flags, queues, timestamp_bits, granularity[3]; } Family;
typedef struct { uint32_t types, type[32][2], heaps; uint64_t heap[16][2]; } Memory;

static int is_refused(const char *call) {
    const char *refused = getenv("REFUSED");
    return refused && strstr(refused, call);
}

static int answer(const char *call) {
    return is_refused(call) ? -3 : 0; // VK_ERROR_INITIALIZATION_FAILED
}


static int instance_extensions(const char *layer, uint32_t *count, void *list) {
    *count = 0;
    return 0;
}

static int device_extensions(void *device, const char *layer, uint32_t *count, void *list) {
    *count = 0;
    return answer("vkEnumerateDeviceExtensionProperties");
}

static int create_instance(const void *info, const void *callbacks, void **instance) {
    static int it;
    *instance = &it;
    return 0;
}

static int devices(void *instance, uint32_t *count, void **list) {
    static int it;
    *count = 1;
    if (list) *list = &it;
    return 0;
}

static void properties(void *device, Properties *properties) {
    memset(properties, 0, sizeof *properties);
    properties->api_version = 1 << 22; // 1.0
    properties->type = 4;              // CPU
    strcpy(properties->name, "Refusing");
}

static void memory(void *device, Memory *memory) {
    memset(memory, 0, sizeof *memory);
    if (is_refused("vkGetPhysicalDeviceMemoryProperties")) memory->types = memory->heaps = 1000;
}

static void features(void *device, uint32_t features[55]) {
    memset(features, 0, 55 * sizeof *features);
}

static void families(void *device, uint32_t *count, Family *list) {
    *count = 1;
    if (list) *list = (Family){.flags = 4, .queues = 1, .granularity = {1, 1, 1}};
}

static int create_device(void *physical, const void *info, const void *callbacks, void **device) {
    return answer("vkCreateDevice");
}

static void destroy(void *it, const void *callbacks) {}

Function vkGetInstanceProcAddr(void *instance, const char *name) {
    static const struct { const char *name; Function function; } functions[] = {
        {"vkGetInstanceProcAddr", (Function)vkGetInstanceProcAddr},
        {"vkEnumerateInstanceExtensionProperties", (Function)instance_extensions},
        {"vkCreateInstance", (Function)create_instance},
        {"vkDestroyInstance", (Function)destroy},
        {"vkEnumeratePhysicalDevices", (Function)devices},
        {"vkGetPhysicalDeviceProperties", (Function)properties},
        {"vkGetPhysicalDeviceMemoryProperties", (Function)memory},
        {"vkGetPhysicalDeviceFeatures", (Function)features},
        {"vkGetPhysicalDeviceQueueFamilyProperties", (Function)families},
        {"vkEnumerateDeviceExtensionProperties", (Function)device_extensions},
        {"vkCreateDevice", (Function)create_device},
    };
    for (size_t at = 0; at < sizeof functions / sizeof *functions; at++)
        if (!strcmp(functions[at].name, name)) return functions[at].function;
    return NULL;
}
