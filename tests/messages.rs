//! The values of small getters.

use ash::vk;
use sublet::*;
use sublet_descriptors::*;

#[test]
fn metadata_counted_grants() {
    use sublet::metadata::{Counted, CountedCapacity, Metadata};
    let mut engine = Counted::new();
    let region = engine.add_region(&CountedCapacity { grants: 1, counts: [2] }).unwrap();
    assert_eq!(engine.region_grants(region), 0);
    assert!(engine.allocate_in(region, &[2]));
    assert_eq!(engine.grants(), 1);
}

#[test]
fn retire_clock_is_pending() -> Result<(), Box<dyn std::error::Error>> {
    let clock = sublet::retire::Clock::new();
    let timeline = clock.add_timeline()?;
    let ticket = clock.open(timeline);
    assert!(!clock.is_pending(timeline));
    clock.submit(ticket, 1)?;
    assert!(clock.is_pending(timeline));
    Ok(())
}

#[test]
fn statistics_memory_map_allocations_mut() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    // SAFETY: the handles are live and outlive the allocator.
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    let requirements = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
    let allocation = allocator.allocate_memory(&requirements, &AllocationCreateInfo::default())?;
    let mut map = allocator.memory_map();
    map.allocations_mut().for_each(|entry| entry.user_data = Some(7));
    assert_eq!(map.allocations().next().unwrap().user_data, Some(7));
    // SAFETY: the allocation is not in use.
    unsafe { allocator.free_memory(allocation) }?;
    Ok(())
}

#[test]
fn upload_error_may_pass() {
    use sublet::upload::UploadError;
    assert!(UploadError::MemoryLimit { memory_limit: 1, in_use: 1, needed: 1 }.may_pass());
    assert!(!UploadError::MemoryLimit { memory_limit: 1, in_use: 1, needed: 2 }.may_pass());
    assert!(!UploadError::ZeroSize.may_pass());
}

#[test]
fn descriptor_layout_getters() -> Result<(), Box<dyn std::error::Error>> {
    let info = vk::DescriptorSetLayoutCreateInfo::default();
    // SAFETY: the create-info is valid, and the null layout is used only for its getters.
    let layout = unsafe { SetLayout::new(vk::DescriptorSetLayout::null(), &info) }?;
    assert!(layout.counts().is_zero());
    assert_eq!(layout.counts_with(9), layout.counts());
    assert_eq!(layout.max_variable_count(), None);
    assert!(layout.bindings().is_empty());
    assert_eq!(layout.binding(0), None);
    assert!(!layout.is_update_after_bind());
    assert!(!layout.is_push_descriptor());
    assert!(!layout.is_descriptor_buffer());
    Ok(())
}

#[test]
fn descriptor_device_getters() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    // SAFETY: the handles are live, and outlive the device.
    let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
    assert!(device.quirks().is_empty());
    assert!(device.update_after_bind_used() <= device.max_update_after_bind());
    Ok(())
}

#[test]
fn functions_from_ash_find_the_device_functions() {
    use sublet::{device::VulkanFunctions, sim};
    let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    let functions = VulkanFunctions::from_ash(gpu.instance(), gpu.api_version());
    assert!(functions.get_device_proc_addr.is_some());
}
