//! Vulkan 1.0 to 1.4, with and without extensions, and every way to load the functions.

use std::sync::atomic::{AtomicBool, Ordering};

use ash::vk;
use sublet::device::VulkanFunctions;
use sublet::sim::Gpu;
use sublet::sim::profiles::Profile;
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, Allocator, AllocatorCreateFlags,
    AllocatorCreateInfo, CreateAllocatorError, MemoryUsage, PoolCreateInfo,
};

use crate::common::*;

/// Calls most functions of the allocator once.
fn exercise(fixture: &Fixture) {
    let staging = with_flags(MemoryUsage::Auto, Flags::HOST_ACCESS_RANDOM | Flags::MAPPED);
    let mut upload = fixture.buffer(1000, vk::BufferUsageFlags::TRANSFER_SRC, &staging).unwrap();
    fixture.allocator.copy_to_allocation(b"hello", &mut upload.1, 100).unwrap();
    let mut back = [0; 5];
    fixture.allocator.copy_from_allocation(&upload.1, 100, &mut back).unwrap();
    assert_eq!(&back, b"hello");
    let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
    let image = fixture.image(&square(64, vk::ImageUsageFlags::SAMPLED), &auto).unwrap();
    let own = with_flags(MemoryUsage::Auto, Flags::DEDICATED_MEMORY | Flags::WITHIN_BUDGET);
    let dedicated = fixture.image(&square(64, vk::ImageUsageFlags::COLOR_ATTACHMENT), &own).unwrap();
    assert!(dedicated.1.is_dedicated());
    let info = PoolCreateInfo { block_size: MIB, min_block_count: 1, ..PoolCreateInfo::new(0) };
    let pool = fixture.pool(&info).unwrap();
    let pooled = fixture.memory(KIB, 256, &AllocationCreateInfo::in_pool(&pool)).unwrap();
    let info = vk::BufferCreateInfo::default().size(64).usage(vk::BufferUsageFlags::VERTEX_BUFFER);
    // SAFETY: the create-info is valid.
    unsafe { fixture.allocator.find_memory_type_index_for_buffer_info(&info, &auto) }.unwrap();
    fixture.allocator.set_current_frame_index(1);
    for budget in fixture.allocator.heap_budgets() {
        assert!(budget.usage >= budget.statistics.block_bytes, "{budget:?}");
    }
    fixture.validate();
    fixture.free(pooled);
    fixture.destroy_pool(pool);
    fixture.destroy_buffer(upload);
    fixture.destroy_image(image);
    fixture.destroy_image(dedicated);
}

fn versions(test: impl Fn(&'static Profile, u32)) {
    on_every_profile(|profile| {
        for minor in 0..=4 {
            test(profile, vk::make_api_version(0, 1, minor, 0));
        }
    });
}

/// Exercises an allocator made from this create-info.
fn works(gpu: Gpu, info: &AllocatorCreateInfo<'_>) {
    let allocator = new_allocator(info).unwrap();
    let fixture = hold(Fixture { allocator, gpu });
    exercise(&fixture);
}

#[test]
fn every_version_with_everything_that_is_enabled() {
    versions(|profile, version| {
        let gpu = Gpu::builder(profile).api_version(version).build();
        let info = AllocatorCreateInfo { flags: enabled(&gpu), ..create_info(&gpu) };
        works(gpu, &info);
    });
}

#[test]
fn every_version_without_flags() {
    versions(|profile, version| {
        let gpu = Gpu::builder(profile).api_version(version).build();
        let info = create_info(&gpu);
        works(gpu, &info);
    });
}

/// Core functions are called under their core names and extension functions under theirs, and no other function is
/// called.
#[test]
fn only_what_is_enabled_is_called() {
    versions(|profile, version| {
        for with_flags in [false, true] {
            let gpu = Gpu::builder(profile).api_version(version).build();
            let flags = if with_flags { enabled(&gpu) } else { AllocatorCreateFlags::empty() };
            let info = AllocatorCreateInfo { flags, ..create_info(&gpu) };
            let allocator = new_allocator(&info).unwrap();
            let fixture = hold(Fixture { allocator, gpu });
            fixture.gpu.reset_calls();
            exercise(&fixture);
            let minor = vk::api_version_minor(version).min(vk::api_version_minor(profile.api_version).max(
                // The simulated device has the version of its builder.
                vk::api_version_minor(fixture.gpu.api_version()),
            ));
            let has = |core, flag| minor >= core || flags.contains(flag);
            let second = has(1, AllocatorCreateFlags::KHR_DEDICATED_ALLOCATION);
            assert_eq!(fixture.gpu.calls("vkGetBufferMemoryRequirements2") > 0, second);
            assert_eq!(fixture.gpu.calls("vkGetBufferMemoryRequirements") > 0, !second);
            let fourth = has(3, AllocatorCreateFlags::KHR_MAINTENANCE4);
            assert_eq!(fixture.gpu.calls("vkGetDeviceBufferMemoryRequirements") > 0, fourth);
            let budget = flags.contains(AllocatorCreateFlags::EXT_MEMORY_BUDGET);
            assert_eq!(fixture.gpu.calls("vkGetPhysicalDeviceMemoryProperties2") > 0, budget);
        }
    });
}

#[test]
fn ash_objects_are_enough_from_version_1_1_on() {
    on_every_profile(|profile| {
        for minor in 1..=4 {
            let gpu = Gpu::builder(profile).api_version(vk::make_api_version(0, 1, minor, 0)).build();
            let plain = AllocatorCreateInfo::new(
                gpu.instance(),
                gpu.device(),
                gpu.physical_device(),
                gpu.api_version(),
            );
            let info = AllocatorCreateInfo { flags: enabled(&gpu), ..plain };
            works(gpu, &info);
        }
    });
}

/// Budgets need a function that a Vulkan 1.0 instance has under another name, which only the entry can load.
#[test]
fn budgets_without_the_function_are_refused() {
    on_profiles(having(|profile| profile.features.memory_budget), |profile| {
        let gpu = Gpu::builder(profile).api_version(vk::API_VERSION_1_0).build();
        let plain =
            AllocatorCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device(), gpu.api_version());
        let info = AllocatorCreateInfo { flags: AllocatorCreateFlags::EXT_MEMORY_BUDGET, ..plain };
        // SAFETY: the handles are live, and no allocator is created.
        let error = unsafe { Allocator::new(&info) }.unwrap_err();
        assert_eq!(
            error,
            CreateAllocatorError::ExtensionNotPresent { function: "vkGetPhysicalDeviceMemoryProperties2" }
        );
    });
}

#[test]
fn one_get_proc_function_is_enough() {
    versions(|profile, version| {
        let gpu = Gpu::builder(profile).api_version(version).build();
        let by_instance = VulkanFunctions::default().with_entry(gpu.entry());
        let info = AllocatorCreateInfo::from_raw(
            gpu.instance().handle(),
            gpu.device().handle(),
            gpu.physical_device(),
            gpu.api_version(),
            by_instance,
        );
        let info = AllocatorCreateInfo { flags: enabled(&gpu), ..info };
        works(gpu, &info);
    });
}

/// Returns all functions as pointers, without a loader for more.
fn raw(gpu: &Gpu) -> VulkanFunctions {
    let instance = gpu.instance().fp_v1_0();
    let instance1 = gpu.instance().fp_v1_1();
    let device = gpu.device().fp_v1_0();
    let device1 = gpu.device().fp_v1_1();
    let device3 = gpu.device().fp_v1_3();
    let at_least = |minor| vk::api_version_minor(gpu.api_version()) >= minor;
    VulkanFunctions {
        get_instance_proc_addr: None,
        get_device_proc_addr: None,
        get_physical_device_properties: Some(instance.get_physical_device_properties),
        get_physical_device_memory_properties: Some(instance.get_physical_device_memory_properties),
        get_physical_device_memory_properties2: at_least(1)
            .then_some(instance1.get_physical_device_memory_properties2),
        get_physical_device_properties2: None,
        allocate_memory: Some(device.allocate_memory),
        free_memory: Some(device.free_memory),
        map_memory: Some(device.map_memory),
        unmap_memory: Some(device.unmap_memory),
        flush_mapped_memory_ranges: Some(device.flush_mapped_memory_ranges),
        invalidate_mapped_memory_ranges: Some(device.invalidate_mapped_memory_ranges),
        bind_buffer_memory: Some(device.bind_buffer_memory),
        bind_image_memory: Some(device.bind_image_memory),
        get_buffer_memory_requirements: Some(device.get_buffer_memory_requirements),
        get_image_memory_requirements: Some(device.get_image_memory_requirements),
        create_buffer: Some(device.create_buffer),
        destroy_buffer: Some(device.destroy_buffer),
        create_image: Some(device.create_image),
        destroy_image: Some(device.destroy_image),
        get_buffer_memory_requirements2: at_least(1).then_some(device1.get_buffer_memory_requirements2),
        get_image_memory_requirements2: at_least(1).then_some(device1.get_image_memory_requirements2),
        bind_buffer_memory2: at_least(1).then_some(device1.bind_buffer_memory2),
        bind_image_memory2: at_least(1).then_some(device1.bind_image_memory2),
        get_device_buffer_memory_requirements: at_least(3)
            .then_some(device3.get_device_buffer_memory_requirements),
        get_device_image_memory_requirements: at_least(3)
            .then_some(device3.get_device_image_memory_requirements),
        // Functions that only some calls need.
        get_buffer_device_address: None,
        set_device_memory_priority: None,
        get_memory_fd: None,
        get_memory_host_pointer_properties: None,
        get_semaphore_counter_value: None,
        get_memory_win32_handle: None,
    }
}

#[test]
fn raw_pointers_are_enough() {
    versions(|profile, version| {
        let gpu = Gpu::builder(profile).api_version(version).build();
        let info = AllocatorCreateInfo { functions: raw(&gpu), ..create_info(&gpu) };
        works(gpu, &info);
    });
}

/// Set to true by the hook below.
static HOOKED: AtomicBool = AtomicBool::new(false);

unsafe extern "system" fn old_device(_: vk::PhysicalDevice, out: *mut vk::PhysicalDeviceProperties) {
    HOOKED.store(true, Ordering::Relaxed);
    let limits = vk::PhysicalDeviceLimits {
        // Invalid values, which the allocator must not use unchecked.
        non_coherent_atom_size: 0,
        buffer_image_granularity: 48,
        max_memory_allocation_count: 100,
        ..Default::default()
    };
    let properties =
        vk::PhysicalDeviceProperties { api_version: vk::API_VERSION_1_0, limits, ..Default::default() };
    // SAFETY: the caller passes a valid pointer for the properties.
    unsafe { out.write(properties) };
}

unsafe extern "system" fn wrong_heaps(_: vk::PhysicalDevice, out: *mut vk::PhysicalDeviceMemoryProperties) {
    let mut properties = vk::PhysicalDeviceMemoryProperties {
        memory_heap_count: 1,
        memory_type_count: 1,
        ..Default::default()
    };
    properties.memory_types[0] =
        vk::MemoryType { property_flags: vk::MemoryPropertyFlags::DEVICE_LOCAL, heap_index: 7 };
    properties.memory_heaps[0] = vk::MemoryHeap { size: u64::MAX, flags: vk::MemoryHeapFlags::DEVICE_LOCAL };
    // SAFETY: the caller passes a valid pointer for the properties.
    unsafe { out.write(properties) };
}

/// An instance of version 1.3 on a device of version 1.0, with limits that Vulkan does not allow.
#[test]
fn a_device_older_than_its_instance() {
    let profile = Profile::by_name("lavapipe").unwrap();
    let gpu = Gpu::builder(profile).api_version(vk::API_VERSION_1_3).build();
    let functions =
        VulkanFunctions { get_physical_device_properties: Some(old_device), ..create_info(&gpu).functions };
    let info = AllocatorCreateInfo { functions, ..create_info(&gpu) };
    let allocator = new_allocator(&info).unwrap();
    assert!(HOOKED.load(Ordering::Relaxed));
    let fixture = hold(Fixture { allocator, gpu });
    fixture.gpu.reset_calls();
    exercise(&fixture);
    for name in [
        "vkGetBufferMemoryRequirements2",
        "vkGetImageMemoryRequirements2",
        "vkGetDeviceBufferMemoryRequirements",
    ] {
        assert_eq!(fixture.gpu.calls(name), 0, "{name}");
    }
}

/// A heap of 2^64 bytes, and a memory type with an invalid heap index: the allocator does not panic, and allocates.
#[test]
fn a_driver_with_wrong_heaps() {
    let profile = Profile::by_name("lavapipe").unwrap();
    for minor in [0, 3] {
        let gpu = Gpu::builder(profile).api_version(vk::make_api_version(0, 1, minor, 0)).build();
        let functions = VulkanFunctions {
            get_physical_device_memory_properties: Some(wrong_heaps),
            ..create_info(&gpu).functions
        };
        for preferred_large_heap_block_size in [0, u64::MAX] {
            let info = AllocatorCreateInfo {
                functions: functions.clone(),
                preferred_large_heap_block_size,
                ..create_info(&gpu)
            };
            let allocator = new_allocator(&info).unwrap();
            let requirements = vk::MemoryRequirements { size: KIB, alignment: 64, memory_type_bits: !0 };
            let piece = allocator.allocate_memory(&requirements, &AllocationCreateInfo::default()).unwrap();
            let huge = vk::MemoryRequirements { size: u64::MAX, ..requirements };
            assert!(allocator.allocate_memory(&huge, &AllocationCreateInfo::default()).is_err());
            // SAFETY: the device does not use it.
            unsafe { allocator.free_memory(piece) }.unwrap();
            allocator.validate();
            assert!(allocator.destroy().is_empty());
        }
        assert!(gpu.live().is_empty());
    }
}

/// A bind with a chain needs either the version or the flag.
#[test]
fn binding_with_a_chain_needs_the_version_or_the_flag() {
    let flag = AllocatorCreateFlags::KHR_BIND_MEMORY2;
    on_profiles(having(|profile| profile.api_version >= vk::API_VERSION_1_1), |profile| {
        for (version, has_flag, binds) in [
            (vk::API_VERSION_1_1, false, true),
            (vk::API_VERSION_1_0, true, true),
            (vk::API_VERSION_1_0, false, false),
        ] {
            let builder = Gpu::builder(profile).api_version(version);
            let gpu = match version {
                vk::API_VERSION_1_0 => {
                    builder.extension("VK_KHR_bind_memory2").extension("VK_KHR_device_group").build()
                }
                _ => builder.build(),
            };
            let flags = if has_flag { enabled(&gpu) | flag } else { enabled(&gpu) - flag };
            let fixture = Fixture::with(gpu, &Options { flags: Some(flags), ..Options::default() });
            let info = with_flags(MemoryUsage::Auto, Flags::DONT_BIND);
            let buffer = fixture.buffer(1000, vk::BufferUsageFlags::STORAGE_BUFFER, &info).unwrap();
            let image = fixture.image(&square(16, vk::ImageUsageFlags::SAMPLED), &info).unwrap();
            let group = vk::BindBufferMemoryDeviceGroupInfo::default();
            let next = std::ptr::from_ref(&group).cast();
            // SAFETY: the memory was allocated for the buffer, the buffer is not bound, and the chain is valid.
            let bound = unsafe { fixture.allocator.bind_buffer_memory2(&buffer.1, 0, buffer.0, next) };
            let group = vk::BindImageMemoryDeviceGroupInfo::default();
            let next = std::ptr::from_ref(&group).cast();
            // SAFETY: as above, for the image.
            let image_bound = unsafe { fixture.allocator.bind_image_memory2(&image.1, 0, image.0, next) };
            assert_eq!((bound.is_ok(), image_bound.is_ok()), (binds, binds), "{version:#x}, {has_flag}");
            assert_eq!(fixture.gpu.calls("vkBindBufferMemory2"), u64::from(binds));
            assert_eq!(fixture.gpu.calls("vkBindImageMemory2"), u64::from(binds));
            fixture.destroy_buffer(buffer);
            fixture.destroy_image(image);
        }
    });
}
