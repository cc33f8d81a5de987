//! Allocations that break a rule: each is reported under that rule, and nothing else is.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use super::*;

#[test]
fn requests_that_break_one_rule() {
    let refused = |gpu: &Gpu, info: &vk::MemoryAllocateInfo<'_>, rule| {
        refuses(gpu, rule, unsafe { gpu.device().allocate_memory(info, None) });
    };
    let gpu = simple();
    let fine = vk::MemoryAllocateInfo::default().allocation_size(64);
    let types = crate::facts::arithmetic::narrow(gpu.profile().types.len());
    refused(&gpu, &fine.allocation_size(0), "VUID-VkMemoryAllocateInfo-allocationSize-07897");
    refused(&gpu, &fine.memory_type_index(types), "VUID-vkAllocateMemory-pAllocateInfo-01714");
    for priority in [-0.5, 1.5, f32::NAN] {
        let mut asked = vk::MemoryPriorityAllocateInfoEXT::default().priority(priority);
        let rule = "VUID-VkMemoryPriorityAllocateInfoEXT-priority-02602";
        refused(&gpu, &fine.push_next(&mut asked), rule);
    }
    for priority in [0.0, 1.0] {
        let mut asked = vk::MemoryPriorityAllocateInfoEXT::default().priority(priority);
        let memory = unsafe { gpu.device().allocate_memory(&fine.push_next(&mut asked), None) }.unwrap();
        unsafe { gpu.device().free_memory(memory, None) };
    }
    gpu.assert_silent();
    let gpu = Gpu::builder(profile("lavapipe")).without_extension("VK_KHR_buffer_device_address").build();
    let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
    refused(&gpu, &fine.push_next(&mut flags), "VUID-VkMemoryAllocateInfo-flags-03331");
    let without = ALL.iter().copied().find(|profile| !profile.features.external_memory);
    let Some(profile) = without else { return };
    let gpu = Gpu::new(profile);
    let mut export =
        vk::ExportMemoryAllocateInfo::default().handle_types(vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD);
    refused(&gpu, &fine.push_next(&mut export), "VUID-VkExportMemoryAllocateInfo-handleTypes-00656");
}

#[test]
fn allocation_larger_than_the_heap() {
    let gpu = simple();
    let size = gpu.profile().heaps[0].size + 1;
    let info = vk::MemoryAllocateInfo::default().allocation_size(size);
    let refused = unsafe { gpu.device().allocate_memory(&info, None) };
    assert_eq!(refused, Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY));
    assert_eq!(reports(&gpu), ["VUID-vkAllocateMemory-pAllocateInfo-01713"]);
    assert!(gpu.live().is_empty());
}

#[test]
fn more_allocations_than_the_limit() {
    let gpu = Gpu::new(
        ALL.iter().copied().min_by_key(|profile| profile.limits.max_memory_allocation_count).unwrap(),
    );
    let limit = u64::from(gpu.profile().limits.max_memory_allocation_count);
    let all: Vec<_> = (0..limit).map(|_| allocate(&gpu, 1, 0)).collect();
    gpu.assert_silent();
    let info = vk::MemoryAllocateInfo::default().allocation_size(1);
    let refused = unsafe { gpu.device().allocate_memory(&info, None) };
    assert_eq!(refused, Err(vk::Result::ERROR_TOO_MANY_OBJECTS));
    assert_eq!(reports(&gpu), ["VUID-vkAllocateMemory-maxMemoryAllocationCount-04101"]);
    unsafe { gpu.device().free_memory(all[0], None) };
    let again = allocate(&gpu, 1, 0);
    for memory in all.into_iter().skip(1).chain([again]) {
        unsafe { gpu.device().free_memory(memory, None) };
    }
    assert_eq!(gpu.finish(), []);
}

#[test]
fn device_coherent_memory_without_the_feature() {
    let flag = vk::MemoryPropertyFlags::DEVICE_COHERENT_AMD;
    let profile =
        ALL.iter().copied().find(|it| it.types.iter().any(|kind| kind.flags.contains(flag))).unwrap();
    let kind = profile.types.iter().position(|kind| kind.flags.contains(flag)).unwrap();
    let kind = crate::facts::arithmetic::narrow(kind);
    let with = Gpu::new(profile);
    let memory = allocate(&with, 64, kind);
    unsafe { with.device().free_memory(memory, None) };
    assert_eq!(with.finish(), []);
    let gpu = Gpu::builder(profile).without_extension("VK_AMD_device_coherent_memory").build();
    let info = vk::MemoryAllocateInfo::default().allocation_size(64).memory_type_index(kind);
    refuses(&gpu, "VUID-vkAllocateMemory-deviceCoherentMemory-02790", unsafe {
        gpu.device().allocate_memory(&info, None)
    });
}

#[test]
fn dedicated_memory_of_another_size_or_for_nothing_known() {
    let gpu = simple();
    let device = gpu.device();
    let (buffer, image) = (storage(&gpu, 1000), image(&gpu, 64));
    let (buffer_size, image_size) = (needs(&gpu, buffer).size, image_needs(&gpu, image).size);
    let allocate = |size: u64, mut dedicated: vk::MemoryDedicatedAllocateInfo<'_>| {
        let info = vk::MemoryAllocateInfo::default().allocation_size(size).push_next(&mut dedicated);
        let result = unsafe { device.allocate_memory(&info, None) };
        if let Ok(memory) = result {
            unsafe { device.free_memory(memory, None) };
        }
        (result.err(), reports(&gpu))
    };
    let of_buffer = vk::MemoryDedicatedAllocateInfo::default().buffer(buffer);
    let of_image = vk::MemoryDedicatedAllocateInfo::default().image(image);
    assert_eq!(allocate(buffer_size, of_buffer), (None, vec![]));
    assert_eq!(allocate(image_size, of_image), (None, vec![]));
    let wrong = |vuid| (Some(WRONG), vec![vuid]);
    assert_eq!(
        allocate(buffer_size + 64, of_buffer),
        wrong("VUID-VkMemoryDedicatedAllocateInfo-buffer-02965")
    );
    assert_eq!(allocate(image_size + 64, of_image), wrong("VUID-VkMemoryDedicatedAllocateInfo-image-02964"));
    assert_eq!(
        allocate(buffer_size, of_buffer.image(image)),
        wrong("VUID-VkMemoryDedicatedAllocateInfo-image-01432")
    );
    unsafe { device.destroy_buffer(buffer, None) };
    unsafe { device.destroy_image(image, None) };
    assert_eq!(
        allocate(buffer_size, of_buffer),
        wrong("VUID-VkMemoryDedicatedAllocateInfo-buffer-parameter")
    );
    assert_eq!(allocate(image_size, of_image), wrong("VUID-VkMemoryDedicatedAllocateInfo-image-parameter"));
}

#[test]
fn commitment_of_memory_that_is_not_lazy() {
    let gpu = simple();
    let memory = allocate(&gpu, 64, 0);
    assert_eq!(unsafe { gpu.device().get_device_memory_commitment(memory) }, 0);
    assert_eq!(reports(&gpu), ["VUID-vkGetDeviceMemoryCommitment-memory-00690"]);
    unsafe { gpu.device().free_memory(memory, None) };
}

#[test]
fn the_log_has_every_call_with_its_chain_and_its_answer() {
    let gpu = simple();
    let first = allocate(&gpu, 1, 0);
    assert_eq!(gpu.take_log(), [], "nobody asked for a log");
    gpu.log_allocations(true);
    let buffer = storage(&gpu, 1000);
    let mut priority = vk::MemoryPriorityAllocateInfoEXT::default().priority(0.25);
    let mut dedicated = vk::MemoryDedicatedAllocateInfo::default().buffer(buffer);
    let info = vk::MemoryAllocateInfo::default()
        .allocation_size(needs(&gpu, buffer).size)
        .push_next(&mut dedicated)
        .push_next(&mut priority);
    let second = unsafe { gpu.device().allocate_memory(&info, None) }.unwrap();
    gpu.faults().fail_nth("vkAllocateMemory", 0, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
    let plain = vk::MemoryAllocateInfo::default().allocation_size(64);
    assert!(unsafe { gpu.device().allocate_memory(&plain, None) }.is_err());
    let calls = gpu.take_log();
    assert_eq!(calls.len(), 2);
    assert_eq!((calls[0].result, calls[0].memory), (vk::Result::SUCCESS, second));
    assert_eq!(calls[1].memory, vk::DeviceMemory::null());
    assert_eq!(Some(&calls[0].asked), gpu.memory_info(second).as_ref());
    assert_eq!(calls[0].asked.dedicated_kind(), vk::ObjectType::BUFFER);
    let chain = [
        vk::StructureType::MEMORY_PRIORITY_ALLOCATE_INFO_EXT,
        vk::StructureType::MEMORY_DEDICATED_ALLOCATE_INFO,
    ];
    assert_eq!(calls[0].asked.chain, chain);
    assert_eq!((calls[1].asked.size, calls[1].asked.dedicated_kind()), (64, vk::ObjectType::UNKNOWN));
    assert_eq!(calls[1].result, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
    gpu.log_allocations(false);
    let third = allocate(&gpu, 1, 0);
    assert_eq!(gpu.take_log(), []);
    unsafe { gpu.device().destroy_buffer(buffer, None) };
    for memory in [first, second, third] {
        unsafe { gpu.device().free_memory(memory, None) };
    }
    assert_eq!(gpu.finish(), []);
}
