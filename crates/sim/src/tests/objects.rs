//! Right use is silent: objects of every kind on every profile. Also which functions the driver offers to whom.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use super::*;
use crate::objects::registry;

#[test]
fn every_profile_serves_buffers_and_images_in_silence() {
    for &profile in ALL {
        for minor in 0..=4 {
            let gpu = Gpu::builder(profile).api_version(vk::make_api_version(0, 1, minor, 0)).build();
            let device = gpu.device();
            let buffer = storage(&gpu, 1000);
            let image = image(&gpu, 64);
            for (needs, is_image) in [(needs(&gpu, buffer), false), (image_needs(&gpu, image), true)] {
                let kind = needs.memory_type_bits.trailing_zeros();
                let memory = allocate(&gpu, needs.size, kind);
                if is_image {
                    unsafe { device.bind_image_memory(image, memory, 0) }.unwrap();
                } else {
                    unsafe { device.bind_buffer_memory(buffer, memory, 0) }.unwrap();
                }
                unsafe { device.free_memory(memory, None) };
            }
            unsafe { device.destroy_buffer(buffer, None) };
            unsafe { device.destroy_image(image, None) };
            assert!(gpu.live().is_empty());
            assert_eq!(gpu.finish(), [], "{} 1.{minor}", profile.name);
        }
    }
}

#[test]
fn a_name_stays_when_a_function_of_another_kind_destroys_its_handle() {
    let gpu = Gpu::new(profile("lavapipe"));
    let device = gpu.device();
    let buffer = storage(&gpu, 1000);
    let names = ash::ext::debug_utils::Device::new(gpu.instance(), device);
    let name = vk::DebugUtilsObjectNameInfoEXT::default().object_handle(buffer).object_name(c"mine");
    unsafe { names.set_debug_utils_object_name(&name) }.unwrap();
    let raw = vk::Handle::as_raw(buffer);
    unsafe { device.destroy_image(vk::Handle::from_raw(raw), None) };
    unsafe { device.destroy_fence(vk::Handle::from_raw(raw), None) };
    let leaks = gpu.finish();
    assert_eq!(leaks.len(), 3, "{leaks:?}");
    assert!(leaks.iter().all(|leak| leak.text.contains("\"mine\"")), "{leaks:?}");
}

fn offered(gpu: &Gpu, name: &std::ffi::CStr) -> (bool, bool) {
    let device = unsafe { gpu.instance().get_device_proc_addr(gpu.device().handle(), name.as_ptr()) };
    let instance = gpu.instance().handle();
    (unsafe { gpu.entry().get_instance_proc_addr(instance, name.as_ptr()) }.is_some(), device.is_some())
}

#[test]
fn functions_are_offered_from_their_version_on_or_with_their_extension() {
    let profile = ALL.iter().copied().find(|profile| profile.features.maintenance4).unwrap();
    let names = [
        (c"vkAllocateMemory", 0, None),
        (c"vkBindBufferMemory2", 1, None),
        (c"vkGetBufferDeviceAddress", 2, None),
        (c"vkGetDeviceBufferMemoryRequirements", 3, None),
        (c"vkMapMemory2", 4, None),
        (c"vkBindBufferMemory2KHR", 0, Some("VK_KHR_bind_memory2")),
        (c"vkGetDeviceBufferMemoryRequirementsKHR", 0, Some("VK_KHR_maintenance4")),
    ];
    for minor in 0..=4 {
        let version = vk::make_api_version(0, 1, minor, 0);
        let bare =
            Gpu::builder(profile).api_version(version).extension("VK_KHR_dedicated_allocation").build();
        assert_eq!(bare.extensions(), ["VK_KHR_dedicated_allocation"]);
        let full = Gpu::builder(profile).api_version(version).build();
        for (name, core, extension) in names {
            let by_core = extension.is_none() && minor >= core;
            assert_eq!(
                offered(&bare, name).1,
                by_core,
                "{name:?} of a device without extensions of 1.{minor}"
            );
            let all = by_core || extension.is_some();
            assert_eq!(offered(&full, name), (all, all), "{name:?} of a full 1.{minor}");
        }
        assert_eq!(offered(&full, c"vkGetPhysicalDeviceProperties2").0, minor >= 1);
        assert!(offered(&full, c"vkGetPhysicalDeviceProperties2KHR").0);
        assert_eq!(offered(&full, c"vkGetPhysicalDeviceProperties"), (true, false));
        assert_eq!(offered(&full, c"vkNoSuchFunction"), (false, false));
        let reported = unsafe { full.entry().try_enumerate_instance_version() }.unwrap();
        assert_eq!(reported.unwrap_or(vk::API_VERSION_1_0), version);
        let properties = unsafe { full.instance().get_physical_device_properties(full.physical_device()) };
        assert_eq!(properties.api_version, version);
        for gpu in [bare, full] {
            assert_eq!(gpu.finish(), []);
        }
    }
}

#[test]
fn a_physical_device_says_what_its_profile_says() {
    for &profile in ALL {
        let gpu = Gpu::builder(profile).api_version(vk::API_VERSION_1_3).build();
        let (instance, device) = (gpu.instance(), gpu.physical_device());
        let memory = unsafe { instance.get_physical_device_memory_properties(device) };
        let types = memory.memory_types_as_slice().iter().map(|kind| (kind.property_flags, kind.heap_index));
        assert!(types.eq(profile.types.iter().map(|kind| (kind.flags, kind.heap))));
        let heaps = memory.memory_heaps_as_slice().iter().map(|heap| (heap.size, heap.flags));
        assert!(heaps.eq(profile.heaps.iter().map(|heap| (heap.size, heap.flags))));
        let mut maintenance3 = vk::PhysicalDeviceMaintenance3Properties::default();
        let mut maintenance4 = vk::PhysicalDeviceMaintenance4Properties::default();
        let mut out = vk::PhysicalDeviceProperties2::default()
            .push_next(&mut maintenance3)
            .push_next(&mut maintenance4);
        unsafe { instance.get_physical_device_properties2(device, &mut out) };
        let properties = out.properties;
        assert_eq!(properties.device_name_as_c_str().unwrap().to_str().unwrap(), profile.device_name);
        assert_eq!((properties.vendor_id, properties.device_id), (profile.vendor_id, profile.device_id));
        let limits = properties.limits;
        assert_eq!(limits.buffer_image_granularity, profile.limits.buffer_image_granularity);
        assert_eq!(limits.non_coherent_atom_size, profile.limits.non_coherent_atom_size);
        assert_eq!(limits.max_memory_allocation_count, profile.limits.max_memory_allocation_count);
        assert_eq!(maintenance3.max_memory_allocation_size, profile.limits.max_memory_allocation_size);
        assert_eq!(maintenance4.max_buffer_size, profile.limits.max_buffer_size);
        let queues = unsafe { instance.get_physical_device_queue_family_properties(device) };
        assert_eq!((queues.len(), queues[0].queue_count), (1, 1));
        assert_eq!(gpu.finish(), []);
    }
}

#[test]
fn features_follow_their_extensions() {
    let profile = profile("lavapipe");
    let ask = |gpu: &Gpu| {
        let mut core = vk::PhysicalDeviceVulkan12Features::default();
        let mut addresses = vk::PhysicalDeviceBufferDeviceAddressFeatures::default();
        let mut out = vk::PhysicalDeviceFeatures2::default().push_next(&mut core).push_next(&mut addresses);
        unsafe { gpu.instance().get_physical_device_features2(gpu.physical_device(), &mut out) };
        assert_eq!(core.buffer_device_address, addresses.buffer_device_address);
        (core.buffer_device_address == vk::TRUE, core.timeline_semaphore == vk::TRUE)
    };
    assert_eq!(ask(&simple()), (true, true));
    let without = Gpu::builder(profile).without_extension("VK_KHR_buffer_device_address").build();
    assert_eq!(ask(&without), (false, true));
    let create = |gpu: &Gpu| {
        let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
        let mut features = vk::PhysicalDeviceVulkan12Features::default().buffer_device_address(true);
        let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).push_next(&mut features);
        unsafe { gpu.instance().create_device(gpu.physical_device(), &info, None) }
    };
    assert_eq!(create(&without).err(), Some(vk::Result::ERROR_FEATURE_NOT_PRESENT));
    let gpu = simple();
    let second = create(&gpu).unwrap();
    unsafe { second.destroy_device(None) };
    assert_eq!(gpu.finish(), []);
}

#[test]
fn devices_are_refused_what_the_gpu_has_not() {
    let gpu = simple();
    let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
    let fine = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
    let create = |info: &vk::DeviceCreateInfo<'_>| {
        unsafe { gpu.instance().create_device(gpu.physical_device(), info, None) }.map(drop)
    };
    let names = [c"VK_KHR_no_such_extension".as_ptr()];
    assert_eq!(create(&fine.enabled_extension_names(&names)), Err(vk::Result::ERROR_EXTENSION_NOT_PRESENT));
    assert_eq!(create(&vk::DeviceCreateInfo::default()), Err(WRONG));
    assert_eq!(reports(&gpu), ["VUID-VkDeviceCreateInfo-queueCreateInfoCount-arraylength"]);
    let other = [vk::DeviceQueueCreateInfo::default().queue_family_index(1).queue_priorities(&[1.0])];
    assert_eq!(create(&vk::DeviceCreateInfo::default().queue_create_infos(&other)), Err(WRONG));
    assert_eq!(reports(&gpu), ["VUID-VkDeviceQueueCreateInfo-queueFamilyIndex-00381"]);
    unsafe { gpu.device().get_device_queue(1, 0) };
    assert_eq!(reports(&gpu), ["VUID-vkGetDeviceQueue-queueFamilyIndex-00384"]);
    unsafe { gpu.device().get_device_queue(0, 1) };
    assert_eq!(reports(&gpu), ["VUID-vkGetDeviceQueue-queueIndex-00385"]);
}

#[test]
fn an_instance_is_refused_what_the_driver_has_not() {
    let entry = simple().entry().clone();
    let layers = [c"VK_LAYER_KHRONOS_validation".as_ptr()];
    let info = vk::InstanceCreateInfo::default().enabled_layer_names(&layers);
    let create = |info: &vk::InstanceCreateInfo<'_>| unsafe { entry.create_instance(info, None) }.map(drop);
    assert_eq!(create(&info), Err(vk::Result::ERROR_LAYER_NOT_PRESENT));
    let names = [c"VK_KHR_surface".as_ptr()];
    let info = vk::InstanceCreateInfo::default().enabled_extension_names(&names);
    assert_eq!(create(&info), Err(vk::Result::ERROR_EXTENSION_NOT_PRESENT));
    let old = Gpu::builder(profile("lavapipe")).api_version(vk::API_VERSION_1_0).build();
    let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_1);
    let info = vk::InstanceCreateInfo::default().application_info(&application);
    let refused = unsafe { old.entry().create_instance(&info, None) }.map(drop);
    assert_eq!(refused, Err(vk::Result::ERROR_INCOMPATIBLE_DRIVER));
}

#[test]
fn a_device_that_outlives_its_instance() {
    let gpu = simple();
    let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
    let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
    let second = unsafe { gpu.instance().create_device(gpu.physical_device(), &info, None) }.unwrap();
    let messages = gpu.finish();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].vuid, "VUID-vkDestroyInstance-instance-00629");
    unsafe { second.destroy_device(None) };
    assert!(registry::device(second.handle()).is_none());
    // A second time, the handle is unknown: nothing happens.
    unsafe { second.destroy_device(None) };
}

#[test]
fn what_was_asked_for_a_memory_can_be_read_back() {
    let gpu = simple();
    let device = gpu.device();
    let buffer = buffer(&gpu, 4096, vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS);
    let size = needs(&gpu, buffer).size;
    let mut dedicated = vk::MemoryDedicatedAllocateInfo::default().buffer(buffer);
    let mut flags = vk::MemoryAllocateFlagsInfo::default()
        .flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS | vk::MemoryAllocateFlags::DEVICE_MASK)
        .device_mask(1);
    let mut priority = vk::MemoryPriorityAllocateInfoEXT::default().priority(0.25);
    let info = vk::MemoryAllocateInfo::default()
        .allocation_size(size)
        .push_next(&mut priority)
        .push_next(&mut flags)
        .push_next(&mut dedicated);
    let memory = unsafe { device.allocate_memory(&info, None) }.unwrap();
    let asked = gpu.memory_info(memory).unwrap();
    assert_eq!((asked.size, asked.type_index), (size, 0));
    assert_eq!((asked.dedicated_buffer, asked.dedicated_image), (buffer, vk::Image::null()));
    assert_eq!(asked.priority, Some(0.25));
    let all = vk::MemoryAllocateFlags::DEVICE_ADDRESS | vk::MemoryAllocateFlags::DEVICE_MASK;
    assert_eq!((asked.flags, asked.device_mask), (all.as_raw(), 1));
    assert_eq!((asked.export_handle_types, asked.import_handle_type), (0, 0));
    let chain = [
        vk::StructureType::MEMORY_DEDICATED_ALLOCATE_INFO,
        vk::StructureType::MEMORY_ALLOCATE_FLAGS_INFO,
        vk::StructureType::MEMORY_PRIORITY_ALLOCATE_INFO_EXT,
    ];
    assert!(asked.chain == chain);
    assert!(format!("{asked:?}").contains("priority: Some(0.25)"));

    unsafe { device.bind_buffer_memory(buffer, memory, 0) }.unwrap();
    let address = vk::BufferDeviceAddressInfo::default().buffer(buffer);
    let first = unsafe { device.get_buffer_device_address(&address) };
    assert!(first != 0 && first % 256 == 0);
    let opaque = vk::DeviceMemoryOpaqueCaptureAddressInfo::default().memory(memory);
    assert_eq!(unsafe { device.get_device_memory_opaque_capture_address(&opaque) }, first);
    gpu.assert_silent();
    unsafe { device.destroy_buffer(buffer, None) };
    unsafe { device.free_memory(memory, None) };
    assert_eq!(gpu.finish(), []);
}

#[test]
fn requirements_come_without_an_object_too() {
    let profile = ALL.iter().copied().find(|profile| profile.features.maintenance4).unwrap();
    let gpu = Gpu::builder(profile).api_version(vk::API_VERSION_1_3).build();
    let device = gpu.device();
    let info = vk::BufferCreateInfo::default().size(777).usage(vk::BufferUsageFlags::UNIFORM_BUFFER);
    let mut out = vk::MemoryRequirements2::default();
    let asked = vk::DeviceBufferMemoryRequirements::default().create_info(&info);
    unsafe { device.get_device_buffer_memory_requirements(&asked, &mut out) };
    let buffer = unsafe { device.create_buffer(&info, None) }.unwrap();
    let made = needs(&gpu, buffer);
    let plain = out.memory_requirements;
    assert_eq!((plain.size, plain.alignment), (made.size, made.alignment));
    assert_eq!(plain.memory_type_bits, made.memory_type_bits);
    let info = image_info(100, vk::ImageTiling::OPTIMAL);
    let mut dedicated = vk::MemoryDedicatedRequirements::default();
    let mut out = vk::MemoryRequirements2::default().push_next(&mut dedicated);
    let asked = vk::DeviceImageMemoryRequirements::default().create_info(&info);
    unsafe { device.get_device_image_memory_requirements(&asked, &mut out) };
    let plain = out.memory_requirements;
    let image = unsafe { device.create_image(&info, None) }.unwrap();
    assert_eq!(plain.size, image_needs(&gpu, image).size);
    gpu.assert_silent();
    let info = vk::BufferCreateInfo::default();
    let asked = vk::DeviceBufferMemoryRequirements::default().create_info(&info);
    unsafe { device.get_device_buffer_memory_requirements(&asked, &mut vk::MemoryRequirements2::default()) };
    assert_eq!(reports(&gpu), ["VUID-VkBufferCreateInfo-size-00912"]);
}

#[test]
fn a_program_makes_its_own_instance_and_device() {
    let loader = ash::StaticFn { get_instance_proc_addr: crate::get_instance_proc_addr };
    let entry = unsafe { ash::Entry::from_static_fn(loader) };
    let instance = unsafe { entry.create_instance(&vk::InstanceCreateInfo::default(), None) }.unwrap();
    let physical = unsafe { instance.enumerate_physical_devices() }.unwrap()[0];
    let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
    let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
    let device = unsafe { instance.create_device(physical, &info, None) }.unwrap();
    let info = vk::MemoryAllocateInfo::default().allocation_size(64);
    let memory = unsafe { device.allocate_memory(&info, None) }.unwrap();
    unsafe { device.free_memory(memory, None) };
    unsafe { device.destroy_device(None) };
    unsafe { instance.destroy_instance(None) };
}

#[test]
fn messages_are_read_or_taken() {
    let gpu = simple();
    unsafe { gpu.device().unmap_memory(vk::DeviceMemory::null()) };
    assert_eq!(gpu.messages().len(), 1);
    assert_eq!(gpu.messages().len(), 1);
    assert_eq!(gpu.take_messages().len(), 1);
    assert!(gpu.messages().is_empty());
    gpu.assert_silent();
}

#[test]
#[should_panic(expected = "VUID-vkUnmapMemory-memory-parameter")]
fn silence_can_be_demanded() {
    let gpu = simple();
    unsafe { gpu.device().unmap_memory(vk::DeviceMemory::null()) };
    gpu.assert_silent();
}

#[test]
#[should_panic(expected = "has no extension VK_KHR_no_such_extension")]
fn a_gpu_with_an_extension_that_it_has_not() {
    Gpu::builder(profile("lavapipe")).extension("VK_KHR_no_such_extension").build();
}

#[test]
fn each_entry_point_has_one_place_and_its_names_are_its_own() {
    use crate::driver;
    let mut names: Vec<_> = driver::all().flat_map(|it| it.offers.iter().map(|offer| offer.name)).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// A call is counted under the first name of its function. The names are in the source as arguments: `, "vkName", `.
#[test]
fn calls_have_the_first_name_of_their_function() {
    fn check(folder: &std::path::Path) -> usize {
        let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let each = paths.filter(|path| !path.ends_with("tests")).map(|path| {
            if path.is_dir() {
                return check(&path);
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let names = text.split(", \"vk").skip(1).filter_map(|rest| rest.split_once("\", "));
            let names = names.filter(|(name, _)| name.chars().all(char::is_alphanumeric));
            names
                .map(|(name, _)| {
                    assert_eq!(crate::driver::find(&format!("vk{name}")).unwrap().name()[2..], *name)
                })
                .count()
        });
        each.sum()
    }
    let seen = check(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(seen > 150, "only {seen} calls were found");
}

/// File descriptors are of unix: elsewhere the simulated device exports nothing.
#[cfg(unix)]
#[test]
fn exported_memory_has_a_descriptor() {
    let profile = ALL.iter().copied().find(|profile| profile.features.external_memory).unwrap();
    let gpu = Gpu::new(profile);
    let fd = ash::khr::external_memory_fd::Device::new(gpu.instance(), gpu.device());
    let kind = vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD;
    let mut export = vk::ExportMemoryAllocateInfo::default().handle_types(kind);
    let info = vk::MemoryAllocateInfo::default().allocation_size(64).push_next(&mut export);
    let memory = unsafe { gpu.device().allocate_memory(&info, None) }.unwrap();
    assert_eq!(gpu.memory_info(memory).unwrap().export_handle_types, kind.as_raw());
    let asked = vk::MemoryGetFdInfoKHR::default().memory(memory).handle_type(kind);
    let given = unsafe { fd.get_memory_fd(&asked) }.unwrap();
    let mut import = vk::ImportMemoryFdInfoKHR::default().handle_type(kind).fd(given);
    let info = vk::MemoryAllocateInfo::default().allocation_size(64).push_next(&mut import);
    let imported = unsafe { gpu.device().allocate_memory(&info, None) }.unwrap();
    assert_eq!(gpu.memory_info(imported).unwrap().import_handle_type, kind.as_raw());
    // The bytes are the same.
    assert!(unsafe { gpu.write_memory(memory, 60, &[1, 2, 3, 4]) });
    assert_eq!(unsafe { gpu.read_memory(imported, 60, 4) }, Some(vec![1, 2, 3, 4]));
    gpu.assert_silent();
    let asked = asked.memory(imported);
    refuses(&gpu, "VUID-VkMemoryGetFdInfoKHR-handleType-00671", unsafe { fd.get_memory_fd(&asked) });
}

/// File descriptors are of unix: elsewhere the simulated device exports nothing.
#[cfg(unix)]
#[test]
fn imports_that_do_not_fit_what_was_exported() {
    let profile = ALL.iter().copied().find(|profile| profile.features.external_memory).unwrap();
    let gpu = Gpu::new(profile);
    let loaded = ash::khr::external_memory_fd::Device::new(gpu.instance(), gpu.device());
    let kind = vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD;
    let mut export = vk::ExportMemoryAllocateInfo::default().handle_types(kind);
    let info = vk::MemoryAllocateInfo::default().allocation_size(64).push_next(&mut export);
    let memory = unsafe { gpu.device().allocate_memory(&info, None) }.unwrap();
    let fd = || {
        let asked = vk::MemoryGetFdInfoKHR::default().memory(memory).handle_type(kind);
        unsafe { loaded.get_memory_fd(&asked) }.unwrap()
    };
    let import = |fd, size| {
        let mut import = vk::ImportMemoryFdInfoKHR::default().handle_type(kind).fd(fd);
        let info = vk::MemoryAllocateInfo::default().allocation_size(size).push_next(&mut import);
        unsafe { gpu.device().allocate_memory(&info, None) }
    };
    let wrong = Err(vk::Result::ERROR_INVALID_EXTERNAL_HANDLE);
    let kept = fd();
    assert_eq!(import(kept, 128), wrong);
    assert_eq!(reports(&gpu), ["VUID-VkMemoryAllocateInfo-allocationSize-01742"]);
    assert_eq!(import(-1, 64), wrong);
    assert_eq!(reports(&gpu), ["VUID-VkImportMemoryFdInfoKHR-handleType-00670"]);
    // A descriptor that was refused is still the program's, and good.
    let imported = import(kept, 64).unwrap();
    unsafe { gpu.device().free_memory(imported, None) };
    let late = fd();
    unsafe { gpu.device().free_memory(memory, None) };
    assert_eq!(import(late, 64), wrong, "nobody has the bytes any more");
    assert_eq!(reports(&gpu), ["VUID-VkImportMemoryFdInfoKHR-handleType-00670"]);
    assert_eq!(gpu.finish(), []);
}

#[test]
fn host_memory_comes_from_the_callbacks() {
    use std::alloc::{Layout, alloc, dealloc};
    use std::sync::atomic::{AtomicI64, Ordering};
    static LIVE: AtomicI64 = AtomicI64::new(0);
    const LAYOUT: Layout = Layout::new::<[u128; 16]>();
    unsafe extern "system" fn allocate(
        user_data: *mut std::ffi::c_void,
        size: usize,
        alignment: usize,
        _: vk::SystemAllocationScope,
    ) -> *mut std::ffi::c_void {
        assert!(size <= LAYOUT.size() && alignment <= LAYOUT.align());
        if user_data.is_null() {
            return user_data;
        }
        LIVE.fetch_add(1, Ordering::Relaxed);
        unsafe { alloc(LAYOUT) }.cast()
    }
    unsafe extern "system" fn free(_: *mut std::ffi::c_void, bytes: *mut std::ffi::c_void) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
        unsafe { dealloc(bytes.cast(), LAYOUT) };
    }
    let gpu = simple();
    let mut callbacks = vk::AllocationCallbacks {
        p_user_data: std::ptr::dangling_mut::<u8>().cast(),
        pfn_allocation: Some(allocate),
        pfn_free: Some(free),
        ..Default::default()
    };
    let info = vk::BufferCreateInfo::default().size(64).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
    let memory_info = vk::MemoryAllocateInfo::default().allocation_size(64);
    let image_info = super::image_info(64, vk::ImageTiling::OPTIMAL);
    let buffer = unsafe { gpu.device().create_buffer(&info, Some(&callbacks)) }.unwrap();
    let image = unsafe { gpu.device().create_image(&image_info, Some(&callbacks)) }.unwrap();
    let memory = unsafe { gpu.device().allocate_memory(&memory_info, Some(&callbacks)) }.unwrap();
    assert_eq!(LIVE.load(Ordering::Relaxed), 3);
    unsafe { gpu.device().destroy_buffer(buffer, Some(&callbacks)) };
    unsafe { gpu.device().destroy_image(image, Some(&callbacks)) };
    unsafe { gpu.device().free_memory(memory, Some(&callbacks)) };
    assert_eq!(LIVE.load(Ordering::Relaxed), 0);
    // A refused allocation takes nothing.
    let nothing = memory_info.allocation_size(0);
    assert!(unsafe { gpu.device().allocate_memory(&nothing, Some(&callbacks)) }.is_err());
    assert_eq!(LIVE.load(Ordering::Relaxed), 0);
    assert_eq!(reports(&gpu), ["VUID-VkMemoryAllocateInfo-allocationSize-07897"]);
    // Callbacks that have none.
    callbacks.p_user_data = std::ptr::null_mut();
    let none = Err(vk::Result::ERROR_OUT_OF_HOST_MEMORY);
    assert_eq!(unsafe { gpu.device().create_buffer(&info, Some(&callbacks)) }.map(|_| ()), none);
    assert_eq!(unsafe { gpu.device().allocate_memory(&memory_info, Some(&callbacks)) }.map(|_| ()), none);
    let memory = unsafe { gpu.device().allocate_memory(&memory_info, None) }.unwrap();
    unsafe { gpu.device().free_memory(memory, Some(&callbacks)) };
    assert_eq!(reports(&gpu), ["SUBLET-vkFreeMemory-callbacks"]);
    assert_eq!(gpu.finish(), []);
}

#[test]
fn the_second_form_of_mapping() {
    let profile = ALL.iter().copied().find(|profile| profile.features.maintenance5).unwrap();
    let gpu = Gpu::new(profile);
    let khr = ash::khr::map_memory2::Device::new(gpu.instance(), gpu.device());
    let (map, unmap) = (khr.fp().map_memory2_khr, khr.fp().unmap_memory2_khr);
    let memory = allocate(&gpu, 4096, type_with(profile, VISIBLE, NONE).unwrap());
    let call = |info: vk::MemoryMapInfoKHR<'_>| {
        let mut data = std::ptr::null_mut();
        let result = unsafe { map(gpu.device().handle(), &info, &mut data) };
        assert_eq!(result == vk::Result::SUCCESS, !data.is_null());
        reports(&gpu)
    };
    let info = vk::MemoryMapInfoKHR::default().memory(memory).size(64);
    assert_eq!(call(info.offset(4096)), ["VUID-VkMemoryMapInfo-offset-07959"]);
    assert_eq!(call(info.size(0)), ["VUID-VkMemoryMapInfo-size-07960"]);
    assert_eq!(call(info.offset(4095)), ["VUID-VkMemoryMapInfo-size-07961"]);
    assert_eq!(call(info), [""; 0]);
    assert_eq!(call(info), ["VUID-VkMemoryMapInfo-memory-07958"]);
    let info = vk::MemoryUnmapInfoKHR::default().memory(memory);
    assert_eq!(unsafe { unmap(gpu.device().handle(), &info) }, vk::Result::SUCCESS);
    assert_eq!(unsafe { unmap(gpu.device().handle(), &info) }, WRONG);
    assert_eq!(reports(&gpu), ["VUID-VkMemoryUnmapInfo-memory-07964"]);
}

unsafe extern "system" fn collect(
    _: vk::DebugUtilsMessageSeverityFlagsEXT,
    _: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    user_data: *mut c_void,
) -> vk::Bool32 {
    let list = unsafe { &mut *user_data.cast::<Vec<String>>() };
    let name = unsafe { (*data).message_id_name_as_c_str() }.unwrap();
    list.push(name.to_str().unwrap().to_owned());
    vk::FALSE
}

#[test]
fn reports_go_to_the_programs_own_messenger() {
    let gpu = simple();
    let utils = ash::ext::debug_utils::Instance::new(gpu.entry(), gpu.instance());
    let mut list: Vec<String> = Vec::new();
    let info = vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR)
        .message_type(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION)
        .pfn_user_callback(Some(collect))
        .user_data((&raw mut list).cast());
    let messenger = unsafe { utils.create_debug_utils_messenger(&info, None) }.unwrap();
    let quiet = info.message_severity(vk::DebugUtilsMessageSeverityFlagsEXT::INFO);
    let quiet = unsafe { utils.create_debug_utils_messenger(&quiet, None) }.unwrap();
    unsafe { gpu.device().unmap_memory(vk::DeviceMemory::null()) };
    unsafe { utils.destroy_debug_utils_messenger(messenger, None) };
    unsafe { gpu.device().unmap_memory(vk::DeviceMemory::null()) };
    unsafe { utils.destroy_debug_utils_messenger(quiet, None) };
    assert_eq!(list, ["VUID-vkUnmapMemory-memory-parameter"]);
    assert_eq!(reports(&gpu).len(), 2);
}

#[test]
fn a_panic_of_the_driver_is_a_report_and_an_error() {
    use crate::objects::entry;
    use crate::objects::state::GpuState;
    let gpu_state = GpuState::new(profile("lavapipe"), 3, 3, Vec::new());
    let call = "vkAllocateMemory";
    let result: vk::Result = entry::run(&gpu_state, call, || panic!("on purpose"));
    assert_eq!(result, vk::Result::ERROR_UNKNOWN);
    assert_eq!(gpu_state.messages.take()[0].vuid, "SUBLET-internal");
    assert_eq!(gpu_state.faults.count(call), 1);
}

#[test]
fn a_gpu_has_the_extensions_of_its_profile_and_no_others() {
    for &profile in ALL {
        let gpu = Gpu::new(profile);
        let listed =
            unsafe { gpu.instance().enumerate_device_extension_properties(gpu.physical_device()) }.unwrap();
        let names =
            listed.iter().map(|it| it.extension_name_as_c_str().unwrap().to_str().unwrap().to_owned());
        assert_eq!(names.collect::<Vec<_>>(), gpu.extensions());
        let has = |name: &str| gpu.extensions().iter().any(|it| it == name);
        let features = profile.features;
        assert_eq!(has("VK_EXT_memory_budget"), features.memory_budget);
        assert_eq!(has("VK_EXT_memory_priority"), features.memory_priority);
        assert_eq!(has("VK_KHR_buffer_device_address"), features.buffer_device_address);
        assert_eq!(has("VK_AMD_device_coherent_memory"), features.device_coherent_memory);
        assert_eq!(has("VK_KHR_bind_memory2"), profile.api_version >= vk::API_VERSION_1_1);
    }
}

#[test]
fn a_device_that_leaks_gives_its_heaps_back() {
    let gpu = simple();
    let size = gpu.profile().heaps[0].size;
    let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
    let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
    let second = unsafe { gpu.instance().create_device(gpu.physical_device(), &info, None) }.unwrap();
    let whole = vk::MemoryAllocateInfo::default().allocation_size(size);
    unsafe { second.allocate_memory(&whole, None) }.unwrap();
    let refused = unsafe { gpu.device().allocate_memory(&whole, None) };
    assert_eq!(refused, Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY), "the heap is the GPU's, not a device's");
    unsafe { second.destroy_device(None) };
    assert_eq!(reports(&gpu), ["VUID-vkDestroyDevice-device-05137"]);
    let memory = allocate(&gpu, size, 0);
    unsafe { gpu.device().free_memory(memory, None) };
    assert_eq!(gpu.finish(), []);
}

#[repr(align(4096))]
struct Page([u8; 4096]);

const INVALID: vk::Result = vk::Result::ERROR_INVALID_EXTERNAL_HANDLE;

/// The memory has the bytes of the program, and frees none of them.
#[test]
fn imported_host_memory_is_the_programs() {
    let gpu = simple();
    let host = ash::ext::external_memory_host::Device::new(gpu.instance(), gpu.device());
    let query = |kind, pointer: *mut c_void| {
        let mut properties = vk::MemoryHostPointerPropertiesEXT::default();
        let function = host.fp().get_memory_host_pointer_properties_ext;
        let result = unsafe { function(gpu.device().handle(), kind, pointer, &mut properties) };
        result.result_with_success(properties.memory_type_bits)
    };
    let kind = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
    let mut pages = vec![Page([1; 4096]), Page([2; 4096])];
    let pointer = pages.as_mut_ptr().cast::<c_void>();
    assert_eq!(query(kind, pointer), Ok(1));
    let beyond = pointer.wrapping_byte_add(8);
    let rule = "VUID-vkGetMemoryHostPointerPropertiesEXT-pHostPointer-01753";
    refuses(&gpu, rule, query(kind, beyond));
    let rule = "VUID-vkGetMemoryHostPointerPropertiesEXT-handleType-01752";
    let fd = vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD;
    refuses(&gpu, rule, query(fd, pointer));

    let import = |pointer: *mut c_void, size| {
        let mut import =
            vk::ImportMemoryHostPointerInfoEXT::default().handle_type(kind).host_pointer(pointer);
        let info = vk::MemoryAllocateInfo::default().allocation_size(size).push_next(&mut import);
        unsafe { gpu.device().allocate_memory(&info, None) }
    };
    assert_eq!(import(beyond, 4096), Err(INVALID));
    assert_eq!(reports(&gpu), ["VUID-VkImportMemoryHostPointerInfoEXT-pHostPointer-01749"]);
    assert_eq!(import(pointer, 4100), Err(INVALID));
    assert_eq!(reports(&gpu), ["VUID-VkMemoryAllocateInfo-allocationSize-01745"]);
    let memory = import(pointer, 8192).unwrap();
    assert!(unsafe { gpu.write_memory(memory, 4095, &[7, 8]) });
    assert_eq!(unsafe { gpu.read_memory(memory, 4094, 4) }, Some(vec![1, 7, 8, 2]));
    unsafe { gpu.device().free_memory(memory, None) };
    assert_eq!((pages[0].0[4095], pages[1].0[0]), (7, 8));
}

#[test]
fn host_pointers_have_memory_types() {
    let gpu = Gpu::new(profile("nvidia-h200"));
    let mut page = Page([0; 4096]);
    let kind = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
    let mut import =
        vk::ImportMemoryHostPointerInfoEXT::default().handle_type(kind).host_pointer((&raw mut page).cast());
    let device_local = type_with(profile("nvidia-h200"), NONE, VISIBLE).unwrap();
    let info = vk::MemoryAllocateInfo::default().allocation_size(4096).memory_type_index(device_local);
    let made = unsafe { gpu.device().allocate_memory(&info.push_next(&mut import), None) };
    assert_eq!(made, Err(INVALID));
    assert_eq!(reports(&gpu), ["VUID-VkMemoryAllocateInfo-memoryTypeIndex-01744"]);
}
