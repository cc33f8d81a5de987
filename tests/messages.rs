//! The texts of errors, and the values of small getters.

use std::fmt::Display;

use ash::vk;
use sublet::device::DriverError;
use sublet::*;
use sublet_descriptors::*;

#[test]
fn texts_of_errors() {
    let slot = OutOfRange { slot: 7, count: 5 };
    let limit = "maxPerStageDescriptorSamplers";
    let cases: &[(&dyn Display, &str)] = &[
        (&PipelineLayoutError::TooManySets { asked: 40, most: 32 }, "40 sets, and at most 32 can be bound"),
        (&StageError::NoSuchSet { set: 3, sets: 2 }, "there is no set 3: the pipeline layout has 2"),
        (
            &UseLayoutError::LargerThanPage { bytes: 8192, page_size: 4096 },
            "the sets have 8192 bytes, and a page of descriptors has 4096",
        ),
        (
            &DescriptorDataError::NoAddress { kind: DescriptorKind::StorageBuffer },
            "a StorageBuffer for a descriptor buffer needs its device address",
        ),
        (
            &CreateHeapError::Limit { limit, asked: 1_024, allowed: 16 },
            "a heap of 1024 descriptors: maxPerStageDescriptorSamplers of the device is 16",
        ),
        (
            &HeapError::Full { asked: 200, free: 544, largest_free: 128, retiring: 0 },
            "200 slots in a row: 544 are free, 128 of them in a row, and 0 wait for the GPU",
        ),
        (&slot, "slot 7 of a range of 5"),
        (&HeapWriteError::from(slot), "there is no such slot to write: slot 7 of a range of 5"),
        (
            &DriverError { call: "vkAllocateMemory", result: vk::Result::ERROR_OUT_OF_DEVICE_MEMORY },
            "vkAllocateMemory failed with ERROR_OUT_OF_DEVICE_MEMORY",
        ),
        (
            &BindError::OutOfRange { offset: 64, allocation_size: 64 },
            "offset 64 is not inside an allocation of 64 bytes",
        ),
        (
            &CreateAllocatorError::ApiVersion { api_version: vk::make_api_version(0, 2, 0, 0) },
            "Vulkan 2.0 is not one of 1.0 to 1.4",
        ),
        (
            &MemoryError::HeapTooSmall { size: 2048, heap: 0, heap_size: 1024 },
            "2048 bytes are more than heap 0 has: 1024",
        ),
        (
            &AliasError::OutOfRange { offset: 64, size: 128, allocation_size: 128 },
            "128 bytes from 64 on are not inside an allocation of 128 bytes",
        ),
        (
            &VirtualBlockError::Size { size: 0, max: 1 << 63 },
            "a virtual block has 1 to 9223372036854775808 units, not 0",
        ),
        (&VirtualAllocationError::Alignment { alignment: 12 }, "an alignment is a power of two, not 12"),
        (&VirtualHandleError::ForeignBlock, "the allocation is of another virtual block"),
    ];
    for (error, text) in cases {
        assert_eq!(error.to_string(), *text);
    }
}

#[test]
fn descriptor_transient_error_transient_error() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    // SAFETY: the handles are live and outlive the device.
    let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
    let size = vk::DescriptorPoolSize::default().ty(vk::DescriptorType::UNIFORM_BUFFER).descriptor_count(2);
    let info = TransientSetsCreateInfo::from_sizes(8, &[size], vk::DescriptorPoolCreateFlags::empty())?;
    let mut sets = TransientSets::new(&device, &info)?;
    let binding = vk::DescriptorSetLayoutBinding::default()
        .descriptor_type(vk::DescriptorType::UNIFORM_BUFFER)
        .descriptor_count(3);
    let layout_info = vk::DescriptorSetLayoutCreateInfo::default().bindings(std::slice::from_ref(&binding));
    // SAFETY: the create-info is valid, and no set is allocated with the null layout.
    let layout = unsafe { SetLayout::new(vk::DescriptorSetLayout::null(), &layout_info) }?;
    // SAFETY: the call fails before it calls Vulkan.
    let error = unsafe { sets.allocate(&layout) }.unwrap_err();
    assert_eq!(error.to_string(), "a set of 3 UniformBuffer, and pools are of 2 UniformBuffer");
    Ok(())
}

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
fn retire_error_too_many_timelines() {
    let clock = sublet::retire::Clock::new();
    while clock.add_timeline().is_ok() {}
    assert_eq!(clock.add_timeline().unwrap_err().to_string(), "a clock has at most 64 timelines");
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
fn trace_replay_remaining() -> Result<(), Box<dyn std::error::Error>> {
    use sublet::trace::*;
    let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    // SAFETY: the handles are live and outlive the allocator.
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    let trace =
        Trace { records: vec![Record { event: Event::Trim, ..Record::default() }], ..Trace::default() };
    let mut replay = Replay::new(&trace, &allocator);
    replay.step();
    assert_eq!(replay.remaining(), 0);
    Ok(())
}

#[test]
fn trace_replay_report_largest_per_mille() {
    let ranges = sublet::trace::FreeRanges::default();
    assert!(ranges.largest_per_mille() <= 1000);
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
