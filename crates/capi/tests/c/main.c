/* Runs every test on one device: main <sim|vulkan> <table|lookup|loaded>. A third argument selects a mistake to make
 * instead. */
#include "client.h"

#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif

#ifdef CLIENT_WITH_SIM
#include <sublet_sim.h>
#endif

int failures = 0;

/* The Vulkan loader's vkGetInstanceProcAddr, or NULL. */
static PFN_vkGetInstanceProcAddr loader_entry(void) {
    PFN_vkGetInstanceProcAddr entry = NULL;
#ifdef _WIN32
    HMODULE library = LoadLibraryA("vulkan-1.dll");
    FARPROC symbol = library == NULL ? NULL : GetProcAddress(library, "vkGetInstanceProcAddr");
#else
    void *library = dlopen("libvulkan.so.1", RTLD_NOW);
    void *symbol = library == NULL ? NULL : dlsym(library, "vkGetInstanceProcAddr");
#endif
    /* ISO C has no conversion between function and object pointers. */
    memcpy(&entry, &symbol, sizeof(entry));
    return entry;
}

static PFN_vkGetInstanceProcAddr entry_of(const char *device) {
#ifdef CLIENT_WITH_SIM
    if (strcmp(device, "sim") == 0) {
        return sublet_sim_get_instance_proc_addr;
    }
#endif
    if (strcmp(device, "vulkan") == 0) {
        PFN_vkGetInstanceProcAddr entry = loader_entry();
        if (entry == NULL) {
            printf("there is no Vulkan loader\n");
            exit(3);
        }
        return entry;
    }
    printf("there is no such device: %s\n", device);
    exit(2);
}

static void test_all(const Gpu *gpu, VmaAllocatorCreateFlags flags) {
    VmaAllocator allocator = make_allocator(gpu, flags);
    test_memory(gpu, allocator);
    test_buffers(gpu, allocator);
    test_images(gpu, allocator);
    test_aliasing(gpu, allocator);
    test_pools(gpu, allocator);
    test_linear(gpu, allocator);
    test_mapping(gpu, allocator);
    test_defragmentation(gpu, allocator);
    test_passes(gpu, allocator);
    test_statistics(gpu, allocator);
    test_bad_input(gpu, allocator);
    test_ownership(gpu, allocator);
    VmaTotalStatistics left;
    vmaCalculateStatistics(allocator, &left);
    CHECK(left.total.statistics.allocationCount == 0);
    vmaDestroyAllocator(allocator);
}

int main(int argc, char **argv) {
    if (argc != 3 && argc != 4) {
        printf("usage: %s <sim|vulkan> <table|lookup|loaded>\n", argv[0]);
        return 2;
    }
    Gpu gpu = open_gpu(entry_of(argv[1]), argv[2]);
#ifdef VMA_SUBLET
    if (argc == 4) {
        return make_mistake(&gpu, argv[3]);
    }
    test_log(&gpu);
#endif
    test_allocator(&gpu);
    test_chains(&gpu);
    test_all(&gpu, 0);
    test_all(&gpu, VMA_ALLOCATOR_CREATE_EXTERNALLY_SYNCHRONIZED_BIT);
    test_virtual_blocks();
    close_gpu(&gpu);
    if (failures != 0) {
        printf("%d checks failed\n", failures);
        return 1;
    }
    return 0;
}
