//! The programs that the tests run under the layer. Each is this test's own executable, started once more.
#![allow(unsafe_code, reason = "calls Vulkan")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "a test program"
)]

use std::ffi::CString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::sync::Barrier;

use ash::{Device, Entry, Instance, vk};

/// An instance and a device of this machine.
pub(crate) struct Started {
    entry: Entry,
    pub(crate) instance: Instance,
    pub(crate) physical: vk::PhysicalDevice,
    pub(crate) device: Device,
    pub(crate) queue: vk::Queue,
}

pub(crate) fn instance(entry: &Entry) -> Instance {
    let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_1);
    let extensions = [ash::ext::debug_utils::NAME.as_ptr()];
    let info =
        vk::InstanceCreateInfo::default().application_info(&application).enabled_extension_names(&extensions);
    unsafe { entry.create_instance(&info, None) }.unwrap()
}

pub(crate) fn device(instance: &Instance, physical: vk::PhysicalDevice) -> Device {
    let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
    let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
    unsafe { instance.create_device(physical, &info, None) }.unwrap()
}

/// Returns the names of the first device's extensions; `None` without a device.
pub(crate) fn extensions_of_device() -> Option<Vec<String>> {
    let entry = unsafe { Entry::load() }.ok()?;
    let instance = unsafe { entry.create_instance(&vk::InstanceCreateInfo::default(), None) }.ok()?;
    let names = unsafe { instance.enumerate_physical_devices() }.ok().and_then(|devices| {
        let all = unsafe { instance.enumerate_device_extension_properties(*devices.first()?) }.ok()?;
        let names = all.iter().map(|one| one.extension_name_as_c_str().unwrap_or_default());
        Some(names.map(|name| name.to_string_lossy().into_owned()).collect())
    });
    unsafe { instance.destroy_instance(None) };
    names
}

impl Started {
    pub(crate) fn new() -> Self {
        let entry = unsafe { Entry::load() }.unwrap();
        let instance = instance(&entry);
        let physical = unsafe { instance.enumerate_physical_devices() }.unwrap()[0];
        let device = device(&instance, physical);
        let queue = unsafe { device.get_device_queue(0, 0) };
        Self { entry, instance, physical, device, queue }
    }

    /// A memory type that the host can map.
    pub(crate) fn memory_type(&self) -> u32 {
        let properties = unsafe { self.instance.get_physical_device_memory_properties(self.physical) };
        let types = properties.memory_types.iter();
        let mappable = types.map(|kind| kind.property_flags.contains(vk::MemoryPropertyFlags::HOST_VISIBLE));
        u32::try_from(mappable.take(32).position(|is| is).unwrap()).unwrap()
    }

    pub(crate) fn allocate(&self, size: u64) -> Result<vk::DeviceMemory, vk::Result> {
        let info =
            vk::MemoryAllocateInfo::default().allocation_size(size).memory_type_index(self.memory_type());
        unsafe { self.device.allocate_memory(&info, None) }
    }

    pub(crate) fn buffer(&self, size: u64) -> vk::Buffer {
        let info = vk::BufferCreateInfo::default().size(size).usage(vk::BufferUsageFlags::TRANSFER_DST);
        unsafe { self.device.create_buffer(&info, None) }.unwrap()
    }

    pub(crate) fn image(&self) -> vk::Image {
        let info = vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(vk::Format::R8G8B8A8_UNORM)
            .extent(vk::Extent3D { width: 64, height: 32, depth: 1 })
            .mip_levels(3)
            .array_layers(2)
            .samples(vk::SampleCountFlags::TYPE_1)
            .usage(vk::ImageUsageFlags::SAMPLED);
        unsafe { self.device.create_image(&info, None) }.unwrap()
    }

    fn name<T: vk::Handle>(&self, handle: T, name: &str) {
        let name = CString::new(name).unwrap();
        let info = vk::DebugUtilsObjectNameInfoEXT::default().object_handle(handle).object_name(&name);
        let utils = ash::ext::debug_utils::Device::new(&self.instance, &self.device);
        unsafe { utils.set_debug_utils_object_name(&info) }.unwrap();
    }

    fn end(self) {
        unsafe { self.device.destroy_device(None) };
        unsafe { self.instance.destroy_instance(None) };
    }

    fn create_and_destroy(&self, rounds: u32) {
        for _ in 0..rounds {
            let buffer = self.buffer(256);
            let _ = unsafe { self.device.get_buffer_memory_requirements(buffer) };
            unsafe { self.device.destroy_buffer(buffer, None) };
        }
    }
}

/// One call of each kind.
fn basics() {
    let vulkan = Started::new();
    let (buffer, image) = (vulkan.buffer(4096), vulkan.image());
    let memory = vulkan.allocate(1 << 20).unwrap();
    let device = &vulkan.device;
    vulkan.name(memory, "block");
    vulkan.name(image, "albedo \u{e9}");
    let needs = unsafe { device.get_buffer_memory_requirements(buffer) };
    unsafe { device.bind_buffer_memory(buffer, memory, 0) }.unwrap();
    // Without a query, so that the layer asks for the requirements.
    let offset = needs.size.next_multiple_of(1 << 16);
    let bind = vk::BindImageMemoryInfo::default().image(image).memory(memory).memory_offset(offset);
    unsafe { device.bind_image_memory2(&[bind]) }.unwrap();
    unsafe { device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()) }.unwrap();
    let range = [vk::MappedMemoryRange::default().memory(memory).size(vk::WHOLE_SIZE)];
    unsafe { device.flush_mapped_memory_ranges(&range) }.unwrap();
    unsafe { device.invalidate_mapped_memory_ranges(&range) }.unwrap();
    unsafe { device.unmap_memory(memory) };
    unsafe { device.queue_submit(vulkan.queue, &[vk::SubmitInfo::default()], vk::Fence::null()) }.unwrap();
    unsafe { device.device_wait_idle() }.unwrap();
    unsafe { device.destroy_buffer(buffer, None) };
    unsafe { device.destroy_image(image, None) };
    unsafe { device.free_memory(memory, None) };
    vulkan.end();
}

/// Four threads that live at the same time.
fn threads() {
    let vulkan = Started::new();
    let started = Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                vulkan.create_and_destroy(1);
                // Otherwise a short thread could end before the next one begins, and leave its segment to that.
                started.wait();
                vulkan.create_and_destroy(4_999);
            });
        }
    });
    vulkan.end();
}

/// Many threads, one after the other.
fn short_threads() {
    let vulkan = Started::new();
    for _ in 0..200 {
        std::thread::scope(|scope| {
            scope.spawn(|| vulkan.create_and_destroy(1));
        });
    }
    vulkan.end();
}

fn devices() {
    let vulkan = Started::new();
    let second = device(&vulkan.instance, vulkan.physical);
    let other = instance(&vulkan.entry);
    let physical = unsafe { other.enumerate_physical_devices() }.unwrap()[0];
    let third = device(&other, physical);
    let info = vk::BufferCreateInfo::default().size(64).usage(vk::BufferUsageFlags::TRANSFER_DST);
    vulkan.create_and_destroy(1);
    for (device, count) in [(&second, 2), (&third, 3)] {
        for _ in 0..count {
            let buffer = unsafe { device.create_buffer(&info, None) }.unwrap();
            unsafe { device.destroy_buffer(buffer, None) };
        }
        unsafe { device.destroy_device(None) };
    }
    unsafe { other.destroy_instance(None) };
    vulkan.end();
}

/// Instances one after the other. The layer stays loaded as long as a thread that recorded a call.
fn again() {
    for _ in 0..3 {
        let vulkan = Started::new();
        vulkan.create_and_destroy(1);
        vulkan.end();
    }
}

/// Each instance after the layer was unloaded with the one before. A thread that recorded a call keeps the layer, so
/// another thread does that, and ends before.
fn loaded_again() {
    for _ in 0..5 {
        assert!(!is_loaded(), "the layer stays loaded");
        let entry = unsafe { Entry::load() }.unwrap();
        let instance = instance(&entry);
        assert!(is_loaded(), "the layer is not loaded");
        let thread = std::thread::spawn(move || {
            let physical = unsafe { instance.enumerate_physical_devices() }.unwrap()[0];
            let device = device(&instance, physical);
            let queue = unsafe { device.get_device_queue(0, 0) };
            let vulkan = Started { entry, instance, physical, device, queue };
            vulkan.create_and_destroy(1);
            unsafe { vulkan.device.destroy_device(None) };
            vulkan
        });
        let vulkan = thread.join().unwrap();
        unsafe { vulkan.instance.destroy_instance(None) };
    }
    // The handler that counted forks went with the layer. A command with such a function forks instead of spawning.
    let mut command = std::process::Command::new("true");
    let status = unsafe { command.pre_exec(|| Ok(())) }.status();
    assert!(status.unwrap().success());
}

/// Returns true if the layer is loaded into this process.
fn is_loaded() -> bool {
    std::fs::read_to_string("/proc/self/maps").unwrap().contains("libsublet_layer")
}

fn refused() {
    let vulkan = Started::new();
    // Whole heaps, until there is no more.
    let properties = unsafe { vulkan.instance.get_physical_device_memory_properties(vulkan.physical) };
    let heap = properties.memory_heaps[0].size;
    let mut live = Vec::new();
    while let Ok(memory) = vulkan.allocate(heap) {
        live.push(memory);
        assert!(live.len() < 1 << 16, "memory is unlimited");
    }
    for memory in live {
        unsafe { vulkan.device.free_memory(memory, None) };
    }
    vulkan.end();
}

fn leak() {
    let vulkan = Started::new();
    vulkan.create_and_destroy(10);
    std::process::exit(7);
}

/// Runs until it is killed.
fn endless() {
    let vulkan = Started::new();
    let recorded = Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                vulkan.create_and_destroy(100);
                recorded.wait();
                loop {
                    vulkan.create_and_destroy(100);
                }
            });
        }
        recorded.wait();
        println!("\nready");
        std::io::stdout().flush().unwrap();
    });
}

/// Keeps some objects, and creates and destroys others.
fn long() {
    let vulkan = Started::new();
    let kept: Vec<_> = (0..100).map(|_| vulkan.buffer(64)).collect();
    let memory = vulkan.allocate(1 << 20).unwrap();
    unsafe { vulkan.device.bind_buffer_memory(kept[0], memory, 0) }.unwrap();
    vulkan.name(kept[1], "kept");
    // Memory that is used only before the newest part.
    let memory_before = vulkan.allocate(1 << 20).unwrap();
    let bound_before = vulkan.buffer(64);
    unsafe { vulkan.device.bind_buffer_memory(bound_before, memory_before, 0) }.unwrap();
    unsafe { vulkan.device.destroy_buffer(bound_before, None) };
    unsafe { vulkan.device.map_memory(memory_before, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()) }
        .unwrap();
    let range = [vk::MappedMemoryRange::default().memory(memory_before).size(vk::WHOLE_SIZE)];
    unsafe { vulkan.device.flush_mapped_memory_ranges(&range) }.unwrap();
    unsafe { vulkan.device.unmap_memory(memory_before) };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| vulkan.create_and_destroy(60_000));
        }
    });
    for buffer in kept {
        unsafe { vulkan.device.destroy_buffer(buffer, None) };
    }
    unsafe { vulkan.device.free_memory(memory, None) };
    unsafe { vulkan.device.free_memory(memory_before, None) };
    vulkan.end();
}

/// Breaks a rule, to see that the validation layer is there.
fn wrong() {
    let vulkan = Started::new();
    let info = vk::BufferCreateInfo::default().size(64);
    if let Ok(buffer) = unsafe { vulkan.device.create_buffer(&info, None) } {
        unsafe { vulkan.device.destroy_buffer(buffer, None) };
    }
    vulkan.end();
}

/// Runs the named program.
pub(crate) fn run(name: &str) {
    match name {
        "basics" => basics(),
        "threads" => threads(),
        "short threads" => short_threads(),
        "devices" => devices(),
        "again" => again(),
        "loaded again" => loaded_again(),
        "refused" => refused(),
        "leak" => leak(),
        "endless" => endless(),
        "long" => long(),
        "wrong" => wrong(),
        _ => panic!("there is no program {name}"),
    }
}
