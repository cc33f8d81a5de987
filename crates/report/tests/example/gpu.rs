// Hidden set-up of the documentation's examples: a simulated GPU, an allocator, and a function that allocates memory
// with a name. Variables drop in reverse order, so the GPU drops last.
{
    use ash::vk;
    use sublet::sim::{Gpu, Profile};
    use sublet::{Allocation, AllocationCreateInfo, Allocator, AllocatorCreateInfo};

    fn allocate(allocator: &Allocator, name: &str, size: u64) -> Allocation {
        let requirements = vk::MemoryRequirements { size, alignment: 4, memory_type_bits: !0 };
        let info = AllocationCreateInfo { name: Some(name), ..Default::default() };
        allocator.allocate_memory(&requirements, &info).unwrap()
    }

    let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
    (gpu, allocator, allocate)
}
