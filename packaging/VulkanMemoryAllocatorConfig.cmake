# For programs that say find_package(VulkanMemoryAllocator) and are to have Sublet: configure them with
# -DVulkanMemoryAllocator_DIR=LIBDIR/cmake/Sublet/vma. CMake looks here for nothing else, so that VMA can be installed, too.
include("${CMAKE_CURRENT_LIST_DIR}/../SubletConfig.cmake")
