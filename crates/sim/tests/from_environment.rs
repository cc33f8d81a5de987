//! A program that makes instance and device itself, from `vkGetInstanceProcAddr` alone, on the GPU that the environment
//! names. One test in a process of its own: the environment belongs to all threads.
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    reason = "the test calls the driver as programs do"
)]

use ash::vk;
use sublet_sim::{self as sim, profiles};

fn entry() -> ash::Entry {
    let loader = ash::StaticFn { get_instance_proc_addr: sim::get_instance_proc_addr };
    unsafe { ash::Entry::from_static_fn(loader) }
}

fn device_name_and_version() -> (String, u32) {
    let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_1);
    let info = vk::InstanceCreateInfo::default().application_info(&application);
    let instance = unsafe { entry().create_instance(&info, None) }.unwrap();
    let device = unsafe { instance.enumerate_physical_devices() }.unwrap()[0];
    let properties = unsafe { instance.get_physical_device_properties(device) };
    unsafe { instance.destroy_instance(None) };
    let name = properties.device_name_as_c_str().unwrap().to_str().unwrap();
    (name.to_owned(), properties.api_version)
}

fn version() -> u32 {
    unsafe { entry().try_enumerate_instance_version() }.unwrap().unwrap_or(vk::API_VERSION_1_0)
}

/// Returns whether a MiB can be mapped.
fn maps_a_mib() -> bool {
    let instance = unsafe { entry().create_instance(&vk::InstanceCreateInfo::default(), None) }.unwrap();
    let physical_device = unsafe { instance.enumerate_physical_devices() }.unwrap()[0];
    let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
    let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
    let device = unsafe { instance.create_device(physical_device, &info, None) }.unwrap();
    let info = vk::MemoryAllocateInfo::default().allocation_size(1 << 20);
    let memory = unsafe { device.allocate_memory(&info, None) }.unwrap();
    let mapped = unsafe { device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()) };
    unsafe { device.free_memory(memory, None) };
    unsafe { device.destroy_device(None) };
    unsafe { instance.destroy_instance(None) };
    mapped.is_ok()
}

#[test]
fn the_environment_chooses_profile_and_version() {
    let default = profiles::Profile::by_name(sim::DEFAULT_PROFILE).unwrap();
    let set = |profile: &str, version: &str| {
        // The only thread that runs: this file has one test.
        unsafe { std::env::set_var(sim::PROFILE_VARIABLE, profile) };
        unsafe { std::env::set_var(sim::VERSION_VARIABLE, version) };
    };
    assert_eq!(device_name_and_version(), (default.device_name.to_owned(), default.api_version & !0xfff));
    for profile in profiles::ALL {
        set(profile.name, "1.2");
        assert_eq!(device_name_and_version(), (profile.device_name.to_owned(), vk::API_VERSION_1_2));
        assert_eq!(version(), vk::API_VERSION_1_2);
    }
    for (asked, given) in [("1.1", 1), ("1.4", 4), ("1.9", 4)] {
        set(default.name, asked);
        assert_eq!(version(), vk::make_api_version(0, 1, given, 0));
    }
    // A name that no profile has is not chosen.
    set("voodoo-2", "two");
    assert_eq!(device_name_and_version().0, default.device_name);
    assert_eq!(version(), default.api_version & !0xfff);
    set("", "");
    assert_eq!(device_name_and_version().0, default.device_name);
    for (asked, mapped) in [("", true), ("1", true), ("0", false), ("much", true)] {
        unsafe { std::env::set_var(sim::MEMORY_LIMIT_VARIABLE, asked) };
        assert_eq!(maps_a_mib(), mapped, "{asked:?}");
    }
    {
        let file = std::env::temp_dir().join(format!("sublet-{}.json", std::process::id()));
        let text = profiles::Profile::by_name("arm-mali-g52").unwrap().to_json();
        std::fs::write(&file, text.replace("Mali", "Made up")).unwrap();
        set(file.to_str().unwrap(), "");
        assert!(device_name_and_version().0.contains("Made up"));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(device_name_and_version().0, default.device_name);
    }
}
