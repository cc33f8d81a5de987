//! With the feature `trace`, a program is recorded without a change to its code.
#![cfg(feature = "trace")]
#![allow(clippy::unwrap_used, reason = "a test")]

use ash::vk;
use sublet::sim::{Gpu, Profile};
use sublet::trace::{CallKind, Replay, Trace};
use vk_mem::{
    Alloc, AllocationCreateFlags, AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage,
};

#[test]
fn a_program_is_recorded_where_the_environment_says() {
    let path = std::env::temp_dir().join(format!("sublet-vk-mem-{}.trace", std::process::id()));
    // SAFETY: this is the only test here, and no thread that reads the environment was started.
    unsafe { std::env::set_var("SUBLET_TRACE", &path) };
    let gpu = Gpu::new(Profile::by_name("nvidia-rtx-5070-ti").unwrap());
    let info = AllocatorCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device());
    // SAFETY: the three belong together, and outlive the allocator.
    let allocator = unsafe { Allocator::new(info) }.unwrap();
    let staging = AllocationCreateInfo {
        usage: MemoryUsage::Auto,
        flags: AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE | AllocationCreateFlags::MAPPED,
        ..Default::default()
    };
    let buffer_info = vk::BufferCreateInfo::default().size(1000).usage(vk::BufferUsageFlags::TRANSFER_SRC);
    for _ in 0..3 {
        // SAFETY: the create-info is valid.
        let (buffer, mut allocation) = unsafe { allocator.create_buffer(&buffer_info, &staging) }.unwrap();
        // SAFETY: the device never used the buffer.
        unsafe { allocator.destroy_buffer(buffer, &mut allocation) };
    }
    drop(allocator);

    let trace = Trace::read(&std::fs::read(&path).unwrap()).unwrap();
    std::fs::remove_file(&path).unwrap();
    let posing = trace.header.simulated().build();
    // SAFETY: instance and device are live, and outlive the allocator.
    let other = unsafe { sublet::Allocator::new(&trace.header.create_info(&posing)) }.unwrap();
    let report = Replay::new(&trace, &other).finish();
    let made = |kind| report.call(kind).made;
    assert_eq!((made(CallKind::Allocate), made(CallKind::Free), report.refused), (3, 3, 0));
}
