//! Any text as a profile. If it is one, a simulated device poses as it, and an allocator works there.
#![no_main]
#![expect(unsafe_code, reason = "creates buffers")]

use ash::vk;
use libfuzzer_sys::fuzz_target;
use sublet::sim::{Gpu, Profile};
use sublet::{AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage};
use sublet_fuzz::{MEMORY_LIMIT, finished};

fuzz_target!(|text: &str| {
    let Ok(profile) = Profile::from_json(text) else { return };
    let written = profile.to_json();
    let again = Profile::from_json(&written).expect("what was written can be read");
    assert_eq!(again.to_json(), written);
    let gpu = Gpu::builder(profile).memory_limit(MEMORY_LIMIT).build();
    // SAFETY: instance and device are live, and outlive the allocator.
    let Ok(allocator) = (unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }) else { return };
    for size in [1, 70_000, 64 << 20] {
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
        let info = vk::BufferCreateInfo::default().size(size).usage(usage);
        let mut held = Vec::new();
        for usage in [MemoryUsage::Auto, MemoryUsage::CpuToGpu, MemoryUsage::GpuToCpu] {
            // SAFETY: the create-info is valid.
            held.extend(unsafe { allocator.create_buffer(&info, &AllocationCreateInfo::new(usage)) });
        }
        for (buffer, allocation) in held {
            // SAFETY: the device never used it.
            unsafe { allocator.destroy_buffer(buffer, allocation) }.expect("the allocation is live");
        }
    }
    allocator.validate();
    assert!(allocator.destroy().is_empty());
    finished(&gpu);
});
