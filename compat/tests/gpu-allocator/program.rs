//! A gpu-allocator program that prints its results. It compiles unchanged with the original and with the stand-in.
//! `.ci/compat` compares the outputs; `differences.txt` lists the allowed differences.
//!
//! Each line is `device/step: result`. The devices are the simulated ones, and with the argument `vulkan` the system's
//! own.

use ash::vk;
use gpu_allocator::vulkan::{
    Allocation, AllocationCreateDesc, AllocationScheme, Allocator, AllocatorCreateDesc,
};
use gpu_allocator::{AllocationSizes, AllocatorDebugSettings, MemoryLocation};
use sublet::sim::{Gpu, profiles};

const MIB: u64 = 1 << 20;
const LOCATIONS: [MemoryLocation; 4] =
    [MemoryLocation::Unknown, MemoryLocation::GpuOnly, MemoryLocation::CpuToGpu, MemoryLocation::GpuToCpu];

/// A device for the program, simulated or real.
struct Device<'a> {
    name: &'a str,
    instance: &'a ash::Instance,
    device: &'a ash::Device,
    physical_device: vk::PhysicalDevice,
}

impl Device<'_> {
    fn say(&self, step: &str, result: impl std::fmt::Debug) {
        println!("{}/{step}: {result:?}", self.name);
    }

    fn allocator(&self, allocation_sizes: AllocationSizes) -> Allocator {
        let mut debug_settings = AllocatorDebugSettings::default();
        debug_settings.log_leaks_on_shutdown = false;
        let desc = AllocatorCreateDesc {
            instance: self.instance.clone(),
            device: self.device.clone(),
            physical_device: self.physical_device,
            debug_settings,
            buffer_device_address: false,
            allocation_sizes,
        };
        Allocator::new(&desc).expect("an allocator")
    }
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("vulkan") {
        return on_the_systems_own();
    }
    for profile in profiles::ALL {
        let gpu = Gpu::new(profile);
        let (instance, device, physical_device) = (gpu.instance(), gpu.device(), gpu.physical_device());
        all(&Device { name: profile.name, instance, device, physical_device });
        println!("{}/left: {}", profile.name, gpu.live().is_empty());
        gpu.assert_silent();
    }
}

fn on_the_systems_own() {
    let entry = unsafe { ash::Entry::load() }.expect("a Vulkan loader");
    let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_1);
    let info = vk::InstanceCreateInfo::default().application_info(&application);
    let instance = unsafe { entry.create_instance(&info, None) }.expect("an instance");
    let physical_device = unsafe { instance.enumerate_physical_devices() }.expect("devices")[0];
    let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
    let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
    let device = unsafe { instance.create_device(physical_device, &info, None) }.expect("a device");
    all(&Device { name: "vulkan", instance: &instance, device: &device, physical_device });
    unsafe { device.destroy_device(None) };
    unsafe { instance.destroy_instance(None) };
}

fn all(device: &Device<'_>) {
    locations(device);
    resources(device);
    reports(device);
    bytes(device);
    errors(device);
}

/// Returns small block sizes, which fit every heap.
fn small() -> AllocationSizes {
    AllocationSizes::new(4 * MIB, 4 * MIB)
}

fn desc(name: &str, size: u64, location: MemoryLocation) -> AllocationCreateDesc<'_> {
    AllocationCreateDesc {
        name,
        requirements: vk::MemoryRequirements { size, alignment: 256, memory_type_bits: !0 },
        location,
        linear: true,
        allocation_scheme: AllocationScheme::GpuAllocatorManaged,
    }
}

fn locations(device: &Device<'_>) {
    let mut allocator = device.allocator(small());
    for location in LOCATIONS {
        for bits in [!0, 1, 2, 4, 8, !1, !2, !4] {
            let mut wanted = desc("somewhere", 1000, location);
            wanted.requirements.memory_type_bits = bits;
            let made = allocator.allocate(&wanted);
            let known = made.as_ref().map(|one| {
                (one.memory_properties(), one.size(), one.mapped_ptr().is_some(), one.is_dedicated())
            });
            device.say(&format!("location-{location:?}-{bits:x}"), known.map_err(ToString::to_string));
            if let Ok(one) = made {
                allocator.free(one).expect("its own");
            }
        }
    }
}

fn resources(device: &Device<'_>) {
    let mut allocator = device.allocator(small());
    let info = vk::BufferCreateInfo::default().size(5000).usage(vk::BufferUsageFlags::VERTEX_BUFFER);
    for is_own in [false, true] {
        let buffer = unsafe { device.device.create_buffer(&info, None) }.expect("a buffer");
        let wanted = AllocationCreateDesc {
            requirements: unsafe { device.device.get_buffer_memory_requirements(buffer) },
            allocation_scheme: if is_own {
                AllocationScheme::DedicatedBuffer(buffer)
            } else {
                AllocationScheme::GpuAllocatorManaged
            },
            ..desc("vertices", 1, MemoryLocation::GpuOnly)
        };
        let one = allocator.allocate(&wanted).expect("memory");
        let bound = unsafe { device.device.bind_buffer_memory(buffer, one.memory(), one.offset()) };
        device.say(&format!("buffer-{is_own}"), (bound, one.size(), one.offset(), one.is_dedicated()));
        unsafe { device.device.destroy_buffer(buffer, None) };
        allocator.free(one).expect("its own");
    }
}

fn reports(device: &Device<'_>) {
    let mut allocator = device.allocator(small());
    let mut all: Vec<Allocation> =
        [("first", 3000), ("second", 70_000), ("third", 100_000), ("large", 9 * MIB)]
            .map(|(name, size)| {
                allocator.allocate(&desc(name, size, MemoryLocation::GpuOnly)).expect("memory")
            })
            .into();
    allocator.rename_allocation(&mut all[1], "the second").expect("its own");
    let mut ids: Vec<_> = all.iter().map(|one| one.chunk_id().is_some()).collect();
    ids.dedup();
    device.say("report-ids", ids);
    device.say("report-dedicated", all.iter().map(Allocation::is_dedicated).collect::<Vec<_>>());
    let report = allocator.generate_report();
    let mut names: Vec<_> = report.allocations.iter().map(|one| (one.name.clone(), one.size)).collect();
    names.sort();
    device.say("report-names", names);
    device.say("report-allocated", report.total_allocated_bytes);
    device.say("report-is-capacity", report.total_capacity_bytes == allocator.capacity());
    device
        .say("report-blocks", report.blocks.iter().map(|block| block.allocations.len()).collect::<Vec<_>>());
    device.say("report-capacity", report.total_capacity_bytes);
    let by_block: usize = report.blocks.iter().map(|block| block.allocations.len()).sum();
    device.say("report-in-blocks", by_block);
    device.say("report-debug", format!("{report:.1?}").contains("large"));
    for one in all {
        allocator.free(one).expect("its own");
    }
    let left = allocator.generate_report();
    device.say("report-left", (left.allocations.len(), left.total_allocated_bytes));
    device.say("report-left-capacity", left.total_capacity_bytes);
}

fn bytes(device: &Device<'_>) {
    let mut allocator = device.allocator(small());
    for location in [MemoryLocation::CpuToGpu, MemoryLocation::GpuToCpu] {
        let mut one = allocator.allocate(&desc("bytes", 100, location)).expect("memory");
        one.mapped_slice_mut().expect("it is mapped").fill(7);
        let seen: u32 = one.mapped_slice().expect("it is mapped").iter().copied().map(u32::from).sum();
        device.say(&format!("bytes-{location:?}"), (seen, one.try_as_mapped_slab().is_some()));
        allocator.free(one).expect("its own");
    }
    let mut nothing = Allocation::default();
    let known =
        (nothing.is_null(), nothing.size(), nothing.offset(), nothing.mapped_ptr(), nothing.is_dedicated());
    device.say("nothing", known);
    device.say("nothing-renamed", allocator.rename_allocation(&mut nothing, "still nothing").is_ok());
    device.say("nothing-freed", allocator.free(nothing).is_ok());
}

fn errors(device: &Device<'_>) {
    let mut allocator = device.allocator(small());
    let mut refused = |step: &str, wanted: &AllocationCreateDesc<'_>| match allocator.allocate(wanted) {
        Ok(one) => {
            device.say(step, "had");
            allocator.free(one).expect("its own");
        }
        Err(error) => device.say(step, error.to_string()),
    };
    refused("size-zero", &desc("", 0, MemoryLocation::GpuOnly));
    let mut odd = desc("", 100, MemoryLocation::GpuOnly);
    odd.requirements.alignment = 3;
    refused("alignment-odd", &odd);
    odd.requirements.alignment = 0;
    refused("alignment-zero", &odd);
    let mut nowhere = desc("", 100, MemoryLocation::GpuOnly);
    nowhere.requirements.memory_type_bits = 0;
    refused("no-type", &nowhere);
    nowhere.requirements.memory_type_bits = 1 << 31;
    refused("unknown-type", &nowhere);
    if device.name != "vulkan" {
        refused("too-large", &desc("", 1 << 50, MemoryLocation::GpuOnly));
    }
    let null = Allocator::new(&AllocatorCreateDesc {
        instance: device.instance.clone(),
        device: device.device.clone(),
        physical_device: vk::PhysicalDevice::null(),
        debug_settings: AllocatorDebugSettings::default(),
        buffer_device_address: false,
        allocation_sizes: AllocationSizes::default(),
    });
    device.say("no-device", null.map(|_| ()).map_err(|error| error.to_string()));
}
