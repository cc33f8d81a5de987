//! The chain of a `VkMemoryAllocateInfo`: what may stand in it beside what. Each rule is broken, and kept at its edge.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use vk::ExternalMemoryHandleTypeFlags as Handles;

use super::*;

/// Allocates with a chain, and says which rules that breaks.
fn broken_by(gpu: &Gpu, size: u64, next: &impl Sized) -> Vec<&'static str> {
    let mut info = vk::MemoryAllocateInfo::default().allocation_size(size);
    info.p_next = std::ptr::from_ref(next).cast();
    if let Ok(memory) = unsafe { gpu.device().allocate_memory(&info, None) } {
        unsafe { gpu.device().free_memory(memory, None) };
    }
    reports(gpu)
}

/// `first`, followed by `second`, which lives for as long.
fn linked<T>(mut first: T, second: &impl Sized) -> T {
    let base = (&raw mut first).cast::<vk::BaseOutStructure<'_>>();
    unsafe { (*base).p_next = std::ptr::from_ref(second).cast_mut().cast() };
    first
}

const ADDRESS: vk::MemoryAllocateFlags = vk::MemoryAllocateFlags::DEVICE_ADDRESS;
const REPLAY: vk::MemoryAllocateFlags = vk::MemoryAllocateFlags::DEVICE_ADDRESS_CAPTURE_REPLAY;

fn host_pointer() -> vk::ImportMemoryHostPointerInfoEXT<'static> {
    vk::ImportMemoryHostPointerInfoEXT::default().handle_type(Handles::HOST_ALLOCATION_EXT)
}

fn dma_buf() -> vk::ImportMemoryFdInfoKHR<'static> {
    vk::ImportMemoryFdInfoKHR::default().handle_type(Handles::DMA_BUF_EXT).fd(-1)
}

fn export(types: Handles) -> vk::ExportMemoryAllocateInfo<'static> {
    vk::ExportMemoryAllocateInfo::default().handle_types(types)
}

#[test]
fn a_structure_stands_there_once() {
    let gpu = simple();
    let flags = vk::MemoryAllocateFlagsInfo::default().flags(ADDRESS);
    assert_eq!(broken_by(&gpu, 64, &linked(flags, &flags)), ["VUID-VkMemoryAllocateInfo-sType-unique"]);
    let priority = vk::MemoryPriorityAllocateInfoEXT::default().priority(0.5);
    assert_eq!(broken_by(&gpu, 64, &linked(flags, &priority)), [""; 0]);
    // The one structure that may.
    let metal = vk::ExportMetalObjectCreateInfoEXT::default();
    assert_eq!(broken_by(&gpu, 64, &linked(metal, &metal)), [""; 0]);
}

#[test]
fn one_import() {
    let gpu = simple();
    let several = "VUID-VkMemoryAllocateInfo-None-06657";
    assert_eq!(broken_by(&gpu, 64, &linked(host_pointer(), &dma_buf())), [several]);
    // Structures without a handle type import nothing.
    let nothing = vk::ImportMemoryFdInfoKHR::default();
    assert_eq!(broken_by(&gpu, 64, &linked(host_pointer(), &nothing)), [""; 0]);
    let metal = vk::ImportMetalBufferInfoEXT::default();
    assert_eq!(broken_by(&gpu, 64, &linked(dma_buf(), &metal)), [several]);
    let android = vk::ImportAndroidHardwareBufferInfoANDROID::default();
    assert_eq!(broken_by(&gpu, 64, &linked(dma_buf(), &android)), [""; 0], "there is no buffer");
    let windows = vk::ImportMemoryWin32HandleInfoKHR::default().handle_type(Handles::OPAQUE_WIN32);
    let older = vk::ImportMemoryWin32HandleInfoNV::default();
    assert_eq!(broken_by(&gpu, 64, &linked(windows, &older)), ["VUID-VkMemoryAllocateInfo-pNext-00641"]);
    assert_eq!(broken_by(&gpu, 64, &windows), [""; 0]);
}

#[test]
fn exports_of_one_extension() {
    let gpu = simple();
    let (khr, nv) = (export(Handles::OPAQUE_FD), vk::ExportMemoryAllocateInfoNV::default());
    let rule = "VUID-VkMemoryAllocateInfo-pNext-00640";
    assert_eq!(broken_by(&gpu, 64, &linked(khr, &nv)), [rule]);
    assert_eq!(broken_by(&gpu, 64, &linked(khr, &vk::ExportMemoryWin32HandleInfoNV::default())), [rule]);
    assert_eq!(broken_by(&gpu, 64, &nv), [""; 0]);
    let attributes = vk::ExportMemoryWin32HandleInfoKHR::default();
    let rule = "VUID-VkExportMemoryWin32HandleInfoKHR-handleType-00657";
    assert_eq!(broken_by(&gpu, 64, &attributes), [rule]);
    assert_eq!(broken_by(&gpu, 64, &linked(khr, &attributes)), [rule]);
    assert_eq!(broken_by(&gpu, 64, &linked(export(Handles::OPAQUE_WIN32), &attributes)), [""; 0]);
}

#[test]
fn a_host_pointer_is_dedicated_to_nothing() {
    let gpu = simple();
    let buffer = storage(&gpu, 1000);
    let size = needs(&gpu, buffer).size;
    let dedicated = vk::MemoryDedicatedAllocateInfo::default().buffer(buffer);
    let rule = "VUID-VkMemoryAllocateInfo-pNext-02806";
    assert_eq!(broken_by(&gpu, size, &linked(host_pointer(), &dedicated)), [rule]);
    let older = vk::DedicatedAllocationMemoryAllocateInfoNV::default().buffer(buffer);
    let rule = "VUID-VkMemoryAllocateInfo-pNext-02805";
    assert_eq!(broken_by(&gpu, size, &linked(host_pointer(), &older)), [rule]);
    let nothing = vk::MemoryDedicatedAllocateInfo::default();
    assert_eq!(broken_by(&gpu, size, &linked(host_pointer(), &nothing)), [""; 0]);
    assert_eq!(broken_by(&gpu, size, &linked(dma_buf(), &dedicated)), [""; 0]);
    unsafe { gpu.device().destroy_buffer(buffer, None) };
    assert_eq!(gpu.finish(), []);
}

#[test]
fn addresses_are_replayed_with_the_flag() {
    let gpu = simple();
    let at = vk::MemoryOpaqueCaptureAddressAllocateInfo::default().opaque_capture_address(1 << 40);
    let flags = |flags| vk::MemoryAllocateFlagsInfo::default().flags(flags);
    let rule = "VUID-VkMemoryAllocateInfo-opaqueCaptureAddress-03329";
    assert_eq!(broken_by(&gpu, 64, &at), [rule]);
    assert_eq!(broken_by(&gpu, 64, &linked(flags(ADDRESS), &at)), [rule]);
    let replayed = linked(flags(ADDRESS | REPLAY), &at);
    assert_eq!(broken_by(&gpu, 64, &replayed), [""; 0]);
    let rule = "VUID-VkMemoryAllocateInfo-pNext-03332";
    assert_eq!(broken_by(&gpu, 64, &linked(host_pointer(), &replayed)), [rule]);
    let rule = "VUID-VkMemoryAllocateInfo-opaqueCaptureAddress-03333";
    assert_eq!(broken_by(&gpu, 64, &linked(dma_buf(), &replayed)), [rule]);
    let nowhere = vk::MemoryOpaqueCaptureAddressAllocateInfo::default();
    assert_eq!(broken_by(&gpu, 64, &linked(dma_buf(), &nowhere)), [""; 0]);
    gpu.finish();
    let without = Gpu::builder(profile("lavapipe")).without_extension("VK_KHR_buffer_device_address").build();
    assert_eq!(broken_by(&without, 64, &flags(REPLAY)), ["VUID-VkMemoryAllocateInfo-flags-03330"]);
    without.finish();
}

/// The memory is where it was, as long as nothing else is there.
#[test]
fn a_replayed_address_is_the_one_that_was_asked_for() {
    let gpu = simple();
    let allocate = |address: u64| {
        let mut at = vk::MemoryOpaqueCaptureAddressAllocateInfo::default().opaque_capture_address(address);
        let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(ADDRESS | REPLAY);
        let info =
            vk::MemoryAllocateInfo::default().allocation_size(4096).push_next(&mut at).push_next(&mut flags);
        unsafe { gpu.device().allocate_memory(&info, None) }
    };
    let address_of = |memory| {
        let info = vk::DeviceMemoryOpaqueCaptureAddressInfo::default().memory(memory);
        unsafe { gpu.device().get_device_memory_opaque_capture_address(&info) }
    };
    let first = allocate(0).unwrap();
    let address = address_of(first);
    for taken in [address, address + 4095, address - 4095] {
        assert_eq!(allocate(taken), Err(vk::Result::ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS));
    }
    unsafe { gpu.device().free_memory(first, None) };
    let again = allocate(address).unwrap();
    let beside = allocate(address + 4096).unwrap();
    assert_eq!((address_of(again), address_of(beside)), (address, address + 4096));
    let elsewhere = allocate(0).unwrap();
    assert!(address_of(elsewhere) >= address + 8192);
    for memory in [again, beside, elsewhere] {
        unsafe { gpu.device().free_memory(memory, None) };
    }
    assert_eq!(gpu.finish(), []);
}

#[test]
fn a_device_mask_names_physical_devices() {
    let gpu = simple();
    let masked = |mask| {
        vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_MASK).device_mask(mask)
    };
    assert_eq!(broken_by(&gpu, 64, &masked(0)), ["VUID-VkMemoryAllocateFlagsInfo-deviceMask-00676"]);
    for mask in [2, 3] {
        assert_eq!(broken_by(&gpu, 64, &masked(mask)), ["VUID-VkMemoryAllocateFlagsInfo-deviceMask-00675"]);
    }
    assert_eq!(broken_by(&gpu, 64, &masked(1)), [""; 0]);
    // Without the flag the mask does not count.
    assert_eq!(broken_by(&gpu, 64, &masked(6).flags(ADDRESS)), [""; 0]);
}

#[test]
fn a_driver_that_decides_on_the_size_is_told_none() {
    let gpu = simple();
    let (buffer, image) = (storage(&gpu, 1000), image(&gpu, 64));
    let (buffer_size, size) = (needs(&gpu, buffer).size, image_needs(&gpu, image).size);
    let for_image = vk::MemoryDedicatedAllocateInfo::default().image(image);
    let for_buffer = vk::MemoryDedicatedAllocateInfo::default().buffer(buffer);
    let android = export(Handles::ANDROID_HARDWARE_BUFFER_ANDROID);
    let whole = linked(for_image, &android);
    assert_eq!(broken_by(&gpu, size, &whole), ["VUID-VkMemoryAllocateInfo-pNext-01874"]);
    assert_eq!(broken_by(&gpu, 0, &whole), [""; 0]);
    assert_eq!(broken_by(&gpu, buffer_size, &linked(for_buffer, &android)), [""; 0]);
    let rule = "VUID-VkMemoryAllocateInfo-pNext-07901";
    assert_eq!(broken_by(&gpu, 0, &linked(for_buffer, &android)), [rule]);
    assert_eq!(broken_by(&gpu, 0, &android), ["VUID-VkMemoryAllocateInfo-pNext-07900"]);
    let rule = "VUID-VkMemoryAllocateInfo-allocationSize-07899";
    assert_eq!(broken_by(&gpu, 0, &export(Handles::OPAQUE_FD)), [rule]);
    unsafe { gpu.device().destroy_image(image, None) };
    unsafe { gpu.device().destroy_buffer(buffer, None) };
    assert_eq!(gpu.finish(), []);
}

/// Imported memory is dedicated as it was exported, and has the same device mask.
#[cfg(unix)]
#[test]
fn an_import_is_dedicated_to_what_the_export_was() {
    let gpu = simple();
    let device = gpu.device();
    let with_types = |types| vk::ExternalMemoryBufferCreateInfo::default().handle_types(types);
    let make = || {
        let mut shared = with_types(Handles::OPAQUE_FD);
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER;
        let info = vk::BufferCreateInfo::default().size(1000).usage(usage).push_next(&mut shared);
        unsafe { device.create_buffer(&info, None) }.unwrap()
    };
    let (buffer, another) = (make(), make());
    let size = needs(&gpu, buffer).size;
    let fds = ash::khr::external_memory_fd::Device::new(gpu.instance(), device);
    for dedicated in [false, true] {
        let mut info = vk::MemoryAllocateInfo::default().allocation_size(size);
        let for_buffer = vk::MemoryDedicatedAllocateInfo::default().buffer(buffer);
        let alone = export(Handles::OPAQUE_FD);
        let together = linked(alone, &for_buffer);
        info.p_next = std::ptr::from_ref(if dedicated { &together } else { &alone }).cast();
        let memory = unsafe { device.allocate_memory(&info, None) }.unwrap();
        let get = vk::MemoryGetFdInfoKHR::default().memory(memory).handle_type(Handles::OPAQUE_FD);
        let import = || {
            let fd = unsafe { fds.get_memory_fd(&get) }.unwrap();
            vk::ImportMemoryFdInfoKHR::default().handle_type(Handles::OPAQUE_FD).fd(fd)
        };
        let for_another = vk::MemoryDedicatedAllocateInfo::default().buffer(another);
        let rule = ["VUID-VkMemoryDedicatedAllocateInfo-buffer-01879"];
        let expected = if dedicated { &rule[..0] } else { &rule };
        assert_eq!(broken_by(&gpu, size, &linked(import(), &for_another)), expected);
        assert_eq!(broken_by(&gpu, size, &import()), [""; 0]);
        let image = image(&gpu, 64);
        let for_image = vk::MemoryDedicatedAllocateInfo::default().image(image);
        let rule = "VUID-VkMemoryDedicatedAllocateInfo-image-01878";
        assert_eq!(broken_by(&gpu, size, &linked(import(), &for_image)), [rule]);
        unsafe { device.destroy_image(image, None) };
        unsafe { device.free_memory(memory, None) };
    }
    for buffer in [buffer, another] {
        unsafe { device.destroy_buffer(buffer, None) };
    }
    assert_eq!(gpu.finish(), []);
}

#[test]
fn buffers_that_replay_their_address_in_memory_that_does_not() {
    let gpu = simple();
    let device = gpu.device();
    let info = vk::BufferCreateInfo::default()
        .flags(vk::BufferCreateFlags::DEVICE_ADDRESS_CAPTURE_REPLAY)
        .size(64)
        .usage(vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS);
    let buffer = unsafe { device.create_buffer(&info, None) }.unwrap();
    let allocate = |flags| {
        let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(flags);
        let info = vk::MemoryAllocateInfo::default().allocation_size(4096).push_next(&mut flags);
        unsafe { device.allocate_memory(&info, None) }.unwrap()
    };
    let (without, with) = (allocate(ADDRESS), allocate(ADDRESS | REPLAY));
    assert_eq!(unsafe { device.bind_buffer_memory(buffer, without, 0) }, Err(WRONG));
    let rule = "VUID-vkBindBufferMemory-bufferDeviceAddressCaptureReplay-09200";
    assert_eq!(reports(&gpu), [rule]);
    unsafe { device.bind_buffer_memory(buffer, with, 0) }.unwrap();
    assert_eq!(reports(&gpu), [""; 0]);
}

/// Above the limit the driver refuses, unless its profile says that it does not.
#[test]
fn sizes_above_the_limit_of_one_allocation() {
    let mut granted = 0;
    for &profile in ALL {
        let (limit, grants) = (
            profile.limits.max_memory_allocation_size,
            profile.limits.grants_above_max_memory_allocation_size,
        );
        assert_eq!(grants, profile.name.starts_with("nvidia-"), "{}", profile.name);
        let heap = profile.types[0].heap;
        if profile.heaps[crate::facts::arithmetic::index(heap)].size <= limit {
            continue;
        }
        let gpu = Gpu::new(profile);
        let info = vk::MemoryAllocateInfo::default().allocation_size(limit + 1);
        match unsafe { gpu.device().allocate_memory(&info, None) } {
            Ok(memory) => {
                granted += 1;
                assert!(grants);
                unsafe { gpu.device().free_memory(memory, None) };
            }
            Err(error) => assert_eq!((grants, error), (false, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY)),
        }
        assert_eq!(gpu.finish(), []);
    }
    assert_ne!(granted, 0);
}
