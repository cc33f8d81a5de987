//! Another allocator on the simulated driver, on every profile: it finds memory, its allocations do not overlap, and
//! nothing is left.
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    reason = "the test calls the driver as programs do"
)]

use ash::vk;
use gpu_allocator::MemoryLocation;
use gpu_allocator::vulkan::{AllocationCreateDesc, AllocationScheme, Allocator, AllocatorCreateDesc};
use sublet_sim::{Gpu, Profile, profiles};

fn allocator(gpu: &Gpu) -> Allocator {
    Allocator::new(&AllocatorCreateDesc {
        instance: gpu.instance().clone(),
        device: gpu.device().clone(),
        physical_device: gpu.physical_device(),
        debug_settings: gpu_allocator::AllocatorDebugSettings::default(),
        buffer_device_address: false,
        allocation_sizes: gpu_allocator::AllocationSizes::default(),
    })
    .unwrap()
}

fn buffer(gpu: &Gpu, size: u64) -> (vk::Buffer, vk::MemoryRequirements) {
    let info = vk::BufferCreateInfo::default().size(size).usage(vk::BufferUsageFlags::TRANSFER_SRC);
    let buffer = unsafe { gpu.device().create_buffer(&info, None) }.unwrap();
    (buffer, unsafe { gpu.device().get_buffer_memory_requirements(buffer) })
}

fn described(requirements: vk::MemoryRequirements) -> AllocationCreateDesc<'static> {
    AllocationCreateDesc {
        name: "buffer",
        requirements,
        location: MemoryLocation::CpuToGpu,
        linear: true,
        allocation_scheme: AllocationScheme::GpuAllocatorManaged,
    }
}

fn every_buffer_keeps_its_bytes(profile: &'static Profile) {
    let gpu = Gpu::new(profile);
    let mut allocator = allocator(&gpu);
    let mut held = Vec::new();
    for number in 1..=9_u8 {
        let (buffer, requirements) = buffer(&gpu, 1000 * u64::from(number));
        let mut memory = allocator.allocate(&described(requirements)).unwrap();
        let (block, offset) = (unsafe { memory.memory() }, memory.offset());
        unsafe { gpu.device().bind_buffer_memory(buffer, block, offset) }.unwrap();
        memory.mapped_slice_mut().unwrap().fill(number);
        held.push((number, buffer, memory));
    }
    for (number, buffer, memory) in held {
        assert!(memory.mapped_slice().unwrap().iter().all(|&byte| byte == number), "{}", profile.name);
        unsafe { gpu.device().destroy_buffer(buffer, None) };
        allocator.free(memory).unwrap();
    }
    drop(allocator);
    assert!(gpu.live().is_empty(), "{}", profile.name);
    gpu.assert_silent();
}

#[test]
fn every_profile_serves_another_allocator() {
    for profile in profiles::ALL {
        every_buffer_keeps_its_bytes(profile);
    }
}

#[test]
fn a_device_that_is_full_is_told() {
    let gpu = Gpu::new(Profile::by_name("nvidia-h200").unwrap());
    let mut allocator = allocator(&gpu);
    let (buffer, requirements) = buffer(&gpu, 1000);
    gpu.faults().fail_nth("vkAllocateMemory", 0, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    // For what the host writes it would try another memory type.
    let asked = AllocationCreateDesc { location: MemoryLocation::GpuOnly, ..described(requirements) };
    assert!(allocator.allocate(&asked).is_err());
    unsafe { gpu.device().destroy_buffer(buffer, None) };
    drop(allocator);
    assert!(gpu.live().is_empty());
    gpu.assert_silent();
}
