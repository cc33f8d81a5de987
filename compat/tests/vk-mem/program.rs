//! A vk-mem program that prints its results. It compiles unchanged with the original and with the stand-in.
//! `.ci/compat` compares the outputs; `differences.txt` lists the allowed differences.
//!
//! Each line is `device/step: result`. The devices are the simulated ones, and with the argument `vulkan` the system's
//! own.

use std::ffi::{CString, c_void};
use std::sync::Arc;

use ash::prelude::VkResult;
use ash::vk;
use sublet::sim::{Gpu, profiles};
use vk_mem::{
    Alloc, AllocationCreateFlags, AllocationCreateInfo, Allocator, AllocatorCreateFlags, AllocatorCreateInfo,
    AllocatorPoolCreateFlags, MemoryUsage, PoolCreateInfo, VirtualAllocationCreateFlags,
    VirtualAllocationCreateInfo, VirtualBlock, VirtualBlockCreateFlags, VirtualBlockCreateInfo,
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A device for the program, simulated or real.
struct Device<'a> {
    name: &'a str,
    instance: &'a ash::Instance,
    device: &'a ash::Device,
    physical_device: vk::PhysicalDevice,
    api_version: u32,
    has_budget: bool,
}

impl Device<'_> {
    fn say(&self, step: &str, result: impl std::fmt::Debug) {
        println!("{}/{step}: {result:?}", self.name);
    }

    fn allocator(&self) -> Arc<Allocator> {
        let mut info = AllocatorCreateInfo::new(self.instance, self.device, self.physical_device);
        info.vulkan_api_version = self.api_version;
        if self.has_budget {
            info.flags |= AllocatorCreateFlags::EXT_MEMORY_BUDGET;
        }
        Arc::new(unsafe { Allocator::new(info) }.expect("an allocator"))
    }
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("vulkan") {
        return on_the_systems_own();
    }
    for profile in profiles::ALL {
        let gpu = Gpu::new(profile);
        all(&Device {
            name: profile.name,
            instance: gpu.instance(),
            device: gpu.device(),
            physical_device: gpu.physical_device(),
            api_version: gpu.api_version(),
            has_budget: gpu.extensions().iter().any(|name| name == "VK_EXT_memory_budget"),
        });
        println!("{}/left: {}", profile.name, gpu.live().is_empty());
        gpu.assert_silent();
    }
}

fn on_the_systems_own() {
    let entry = unsafe { ash::Entry::load() }.expect("a Vulkan loader");
    let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
    let info = vk::InstanceCreateInfo::default().application_info(&application);
    let instance = unsafe { entry.create_instance(&info, None) }.expect("an instance");
    let physical_device = unsafe { instance.enumerate_physical_devices() }.expect("devices")[0];
    let budget = ash::ext::memory_budget::NAME;
    let extensions =
        unsafe { instance.enumerate_device_extension_properties(physical_device) }.expect("extensions");
    let has_budget = extensions.iter().any(|known| known.extension_name_as_c_str() == Ok(budget));
    let enabled = if has_budget { vec![budget.as_ptr()] } else { Vec::new() };
    let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
    let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).enabled_extension_names(&enabled);
    let device = unsafe { instance.create_device(physical_device, &info, None) }.expect("a device");
    all(&Device {
        name: "vulkan",
        instance: &instance,
        device: &device,
        physical_device,
        api_version: vk::API_VERSION_1_3,
        has_budget,
    });
    unsafe { device.destroy_device(None) };
    unsafe { instance.destroy_instance(None) };
}

fn all(device: &Device<'_>) {
    properties(device);
    memory_types(device);
    buffers(device);
    images(device);
    memory(device);
    access(device);
    pools(device);
    linear_pools(device);
    errors(device);
    budgets(device);
    virtual_blocks(device);
}

fn buffer_info(size: u64, usage: vk::BufferUsageFlags) -> vk::BufferCreateInfo<'static> {
    vk::BufferCreateInfo::default().size(size).usage(usage)
}

fn image_info(side: u32, usage: vk::ImageUsageFlags) -> vk::ImageCreateInfo<'static> {
    vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(vk::Format::R8G8B8A8_UNORM)
        .extent(vk::Extent3D { width: side, height: side, depth: 1 })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .usage(usage)
}

/// Requests host-writable memory. Works without a resource that states its usage.
fn host_visible() -> AllocationCreateInfo {
    AllocationCreateInfo { required_flags: vk::MemoryPropertyFlags::HOST_VISIBLE, ..Default::default() }
}

fn properties(device: &Device<'_>) {
    let allocator = device.allocator();
    let memory = unsafe { allocator.get_memory_properties() };
    for (index, found) in memory.memory_types_as_slice().iter().enumerate() {
        device.say(&format!("memory-type-{index}"), (found.heap_index, found.property_flags));
    }
    for (index, found) in memory.memory_heaps_as_slice().iter().enumerate() {
        device.say(&format!("memory-heap-{index}"), (found.size, found.flags));
    }
    let known = unsafe { allocator.get_physical_device_properties() }.expect("properties");
    device.say("device-properties", (known.vendor_id, known.limits.buffer_image_granularity));
}

/// Returns true if the functions that find a type for a resource can be called. On older devices the original aborts in
/// them.
fn can_find(device: &Device<'_>) -> bool {
    device.api_version >= vk::API_VERSION_1_3
}

fn buffers_type(
    device: &Device<'_>,
    allocator: &Allocator,
    buffer_info: &vk::BufferCreateInfo<'_>,
    info: &AllocationCreateInfo,
) -> VkResult<u32> {
    if can_find(device) {
        return unsafe { allocator.find_memory_type_index_for_buffer_info(buffer_info, info) };
    }
    let (buffer, mut allocation) = unsafe { allocator.create_buffer(buffer_info, info) }?;
    let found = allocator.get_allocation_info(&allocation).memory_type;
    unsafe { allocator.destroy_buffer(buffer, &mut allocation) };
    Ok(found)
}

fn images_type(
    device: &Device<'_>,
    allocator: &Allocator,
    image_info: vk::ImageCreateInfo<'_>,
    info: &AllocationCreateInfo,
) -> VkResult<u32> {
    if can_find(device) {
        return unsafe { allocator.find_memory_type_index_for_image_info(image_info, info) };
    }
    let (image, mut allocation) = unsafe { allocator.create_image(&image_info, info) }?;
    let found = allocator.get_allocation_info(&allocation).memory_type;
    unsafe { allocator.destroy_image(image, &mut allocation) };
    Ok(found)
}

#[allow(deprecated)]
fn memory_types(device: &Device<'_>) {
    let allocator = device.allocator();
    let usages = [
        MemoryUsage::Unknown,
        MemoryUsage::GpuOnly,
        MemoryUsage::CpuOnly,
        MemoryUsage::CpuToGpu,
        MemoryUsage::GpuToCpu,
        MemoryUsage::CpuCopy,
        MemoryUsage::GpuLazy,
        MemoryUsage::Auto,
        MemoryUsage::AutoPreferDevice,
        MemoryUsage::AutoPreferHost,
    ];
    let flags = [
        AllocationCreateFlags::empty(),
        AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE,
        AllocationCreateFlags::HOST_ACCESS_RANDOM,
        AllocationCreateFlags::HOST_ACCESS_RANDOM | AllocationCreateFlags::HOST_ACCESS_ALLOW_TRANSFER_INSTEAD,
        AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE
            | AllocationCreateFlags::HOST_ACCESS_ALLOW_TRANSFER_INSTEAD,
    ];
    let resources = [
        vk::BufferUsageFlags::VERTEX_BUFFER,
        vk::BufferUsageFlags::UNIFORM_BUFFER | vk::BufferUsageFlags::TRANSFER_DST,
        vk::BufferUsageFlags::TRANSFER_SRC,
        vk::BufferUsageFlags::TRANSFER_DST,
    ];
    for usage in usages {
        for flags in flags {
            let info = AllocationCreateInfo { usage, flags, ..Default::default() };
            let found: Vec<_> = resources
                .iter()
                .map(|&usage| buffers_type(device, &allocator, &buffer_info(4096, usage), &info))
                .collect();
            device.say(&format!("type-{usage:?}-{:x}-buffers", flags.bits()), found);
            let sampled = image_info(64, vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST);
            let found = images_type(device, &allocator, sampled, &info);
            device.say(&format!("type-{usage:?}-{:x}-image", flags.bits()), found);
        }
        if !matches!(usage, MemoryUsage::Auto | MemoryUsage::AutoPreferDevice | MemoryUsage::AutoPreferHost) {
            let info = AllocationCreateInfo { usage, ..Default::default() };
            let found: Vec<_> = [u32::MAX, 1, 2, 6]
                .map(|bits| unsafe { allocator.find_memory_type_index(bits, &info) })
                .into();
            device.say(&format!("type-{usage:?}-bits"), found);
        }
    }
    for property in [vk::MemoryPropertyFlags::HOST_CACHED, vk::MemoryPropertyFlags::LAZILY_ALLOCATED] {
        let required = AllocationCreateInfo { required_flags: property, ..Default::default() };
        let preferred = AllocationCreateInfo { preferred_flags: property, ..Default::default() };
        let masked = AllocationCreateInfo { memory_type_bits: 2, ..required.clone() };
        let found =
            [required, preferred, masked].map(|info| unsafe { allocator.find_memory_type_index(!0, &info) });
        device.say(&format!("type-with-{property:?}"), found);
    }
}

fn buffers(device: &Device<'_>) {
    let allocator = device.allocator();
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER;
    let mut all = Vec::new();
    for size in [1, 100, 4096, 65_536, 3 * MIB, 20 * MIB] {
        for flags in [AllocationCreateFlags::empty(), AllocationCreateFlags::DEDICATED_MEMORY] {
            let info = AllocationCreateInfo {
                usage: MemoryUsage::Auto,
                flags: flags | AllocationCreateFlags::HOST_ACCESS_RANDOM | AllocationCreateFlags::MAPPED,
                user_data: 42,
                ..Default::default()
            };
            let (buffer, allocation) =
                unsafe { allocator.create_buffer(&buffer_info(size, usage), &info) }.expect("a buffer");
            let known = allocator.get_allocation_info2(&allocation);
            let one = &known.allocation_info;
            let step = format!("buffer-{size}-{:x}", flags.bits());
            device.say(&step, (one.memory_type, one.size, known.dedicated_memory, one.user_data));
            device.say(&format!("{step}-mapped"), !one.mapped_data.is_null());
            device.say(&format!("{step}-block"), known.block_size);
            device.say(&format!("{step}-offset"), one.offset);
            all.push((buffer, allocation));
        }
    }
    let figures = allocator.calculate_statistics().expect("statistics").total;
    let known = figures.statistics;
    device.say("buffers-statistics", (known.allocationCount, known.allocationBytes));
    device.say("buffers-blocks", (known.blockCount, known.blockBytes));
    device.say("buffers-sizes", (figures.allocationSizeMin, figures.allocationSizeMax));
    for (buffer, allocation) in &mut all {
        unsafe { allocator.destroy_buffer(*buffer, allocation) };
    }
    let (buffer, mut allocation) = unsafe {
        allocator.create_buffer_with_alignment(&buffer_info(100, usage), &host_visible(), 64 * KIB)
    }
    .expect("a buffer");
    device.say("buffer-aligned", allocator.get_allocation_info(&allocation).offset % (64 * KIB));
    unsafe { allocator.set_allocation_user_data(&mut allocation, 77 as *mut c_void) };
    device.say("buffer-user-data", allocator.get_allocation_info(&allocation).user_data);
    unsafe { allocator.destroy_buffer(buffer, &mut allocation) };
    let left = allocator.calculate_statistics().expect("statistics").total.statistics;
    device.say("buffers-left", (left.allocationCount, left.allocationBytes));
}

fn images(device: &Device<'_>) {
    let allocator = device.allocator();
    let mut all = Vec::new();
    for (side, usage) in [
        (16, vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST),
        (256, vk::ImageUsageFlags::COLOR_ATTACHMENT),
        (1024, vk::ImageUsageFlags::SAMPLED),
    ] {
        let info = AllocationCreateInfo { usage: MemoryUsage::AutoPreferDevice, ..Default::default() };
        let (image, allocation) =
            unsafe { allocator.create_image(&image_info(side, usage), &info) }.expect("an image");
        let known = allocator.get_allocation_info2(&allocation);
        let one = &known.allocation_info;
        device.say(&format!("image-{side}"), (one.memory_type, known.dedicated_memory));
        device.say(&format!("image-{side}-size"), one.size);
        all.push((image, allocation));
    }
    for (image, allocation) in &mut all {
        unsafe { allocator.destroy_image(*image, allocation) };
    }
}

fn memory(device: &Device<'_>) {
    let allocator = device.allocator();
    let needed = vk::MemoryRequirements { size: 10_000, alignment: 1024, memory_type_bits: !0 };
    let info = host_visible();
    let mut one = unsafe { allocator.allocate_memory(&needed, &info) }.expect("memory");
    let known = allocator.get_allocation_info(&one);
    device.say("memory", (known.memory_type, known.size, known.offset % 1024));
    unsafe { allocator.free_memory(&mut one) };
    let mut pages = unsafe { allocator.allocate_memory_pages(&needed, &info, 9) }.expect("pages");
    let mut places: Vec<_> = pages
        .iter()
        .map(|page| allocator.get_allocation_info(page))
        .map(|known| (known.device_memory, known.offset / 1024))
        .collect();
    places.sort();
    places.dedup();
    device.say("memory-pages", (pages.len(), places.len()));
    unsafe { allocator.free_memory_pages(&mut pages) };
    let usage = vk::BufferUsageFlags::TRANSFER_SRC;
    let buffer = unsafe { device.device.create_buffer(&buffer_info(512, usage), None) }.expect("a buffer");
    let mut bound = unsafe { allocator.allocate_memory_for_buffer(buffer, &info) }.expect("memory");
    device.say("bind-buffer", unsafe { allocator.bind_buffer_memory(&bound, buffer) });
    device.say("bind-buffer-size", allocator.get_allocation_info(&bound).size);
    unsafe { allocator.destroy_buffer(buffer, &mut bound) };
    let sampled = image_info(32, vk::ImageUsageFlags::SAMPLED);
    let image = unsafe { device.device.create_image(&sampled, None) }.expect("an image");
    let any = AllocationCreateInfo::default();
    let mut bound = unsafe { allocator.allocate_memory_for_image(image, &any) }.expect("memory");
    device.say("bind-image", unsafe { allocator.bind_image_memory2(&bound, 0, image, std::ptr::null()) });
    unsafe { allocator.destroy_image(image, &mut bound) };
}

fn access(device: &Device<'_>) {
    let allocator = device.allocator();
    let info = AllocationCreateInfo {
        usage: MemoryUsage::Auto,
        flags: AllocationCreateFlags::HOST_ACCESS_RANDOM,
        ..Default::default()
    };
    let usage = vk::BufferUsageFlags::TRANSFER_SRC;
    let (buffer, mut allocation) =
        unsafe { allocator.create_buffer(&buffer_info(1000, usage), &info) }.expect("a buffer");
    device.say("unmapped", allocator.get_allocation_info(&allocation).mapped_data.is_null());
    let first = unsafe { allocator.map_memory(&mut allocation) }.expect("a mapping");
    let second = unsafe { allocator.map_memory(&mut allocation) }.expect("a mapping");
    device.say("mapped-twice", first == second);
    unsafe { first.copy_from_nonoverlapping(b"a thousand words".as_ptr(), 16) };
    device.say("flush", allocator.flush_allocation(&allocation, 0, 16));
    device.say("flush-all", allocator.flush_allocation(&allocation, 0, vk::WHOLE_SIZE));
    device.say("invalidate", allocator.invalidate_allocation(&allocation, 4, 8));
    device.say("flush-many", unsafe { allocator.flush_allocations([&allocation], Some(&[0]), Some(&[8])) });
    device.say("invalidate-many", unsafe { allocator.invalidate_allocations([&allocation], None, None) });
    let mut seen = [0; 16];
    unsafe { second.copy_to_nonoverlapping(seen.as_mut_ptr(), 16) };
    device.say("read", String::from_utf8_lossy(&seen));
    unsafe { allocator.unmap_memory(&mut allocation) };
    device.say("mapped-once", allocator.get_allocation_info(&allocation).mapped_data.is_null());
    unsafe { allocator.unmap_memory(&mut allocation) };
    device.say("unmapped-again", allocator.get_allocation_info(&allocation).mapped_data.is_null());
    unsafe { allocator.destroy_buffer(buffer, &mut allocation) };
    device.say("corruption", unsafe { allocator.check_corruption(vk::MemoryPropertyFlags::from_raw(!0)) });
}

fn pools(device: &Device<'_>) {
    let allocator = device.allocator();
    let info = PoolCreateInfo {
        memory_type_index: unsafe { allocator.find_memory_type_index(!0, &host_visible()) }.expect("a type"),
        block_size: MIB,
        min_block_count: 1,
        max_block_count: 2,
        ..Default::default()
    };
    let pool = allocator.create_pool(&info).expect("a pool");
    device.say("pool-name-none", pool.name().map(|name| name.to_owned()));
    let name = CString::new("a pool").expect("no zero in it");
    pool.set_name(Some(&name));
    device.say("pool-name", pool.name().map(|name| name.to_owned()));
    pool.set_name(None);
    let needed = vk::MemoryRequirements { size: 300 * KIB, alignment: 256, memory_type_bits: !0 };
    let mut all = Vec::new();
    let full = loop {
        match unsafe { pool.allocate_memory(&needed, &AllocationCreateInfo::default()) } {
            Ok(allocation) => all.push(allocation),
            Err(result) => break result,
        }
    };
    device.say("pool-full", (all.len(), full));
    for (number, allocation) in all.iter().enumerate() {
        device.say(&format!("pool-offset-{number}"), allocator.get_allocation_info(allocation).offset);
    }
    let known = pool.get_statistics().expect("statistics");
    let figures = (known.blockCount, known.allocationCount, known.blockBytes, known.allocationBytes);
    device.say("pool-statistics", figures);
    let known = pool.calculate_statistics().expect("statistics");
    let figures = (known.unusedRangeCount, known.unusedRangeSizeMin, known.unusedRangeSizeMax);
    device.say("pool-ranges", figures);
    device.say("pool-sizes", (known.allocationSizeMin, known.allocationSizeMax));
    device.say("pool-corruption", pool.check_corruption());
    unsafe { allocator.free_memory_pages(&mut all) };
    device.say("pool-empty", pool.get_statistics().expect("statistics").allocationCount);
    let own = allocator.default_pool();
    own.set_name(Some(c"nothing"));
    device.say("default-pool-name", own.name().map(|name| name.to_owned()));
    let mut one = unsafe { own.allocate_memory(&needed, &host_visible()) }.expect("memory");
    unsafe { allocator.free_memory(&mut one) };
}

fn linear_pools(device: &Device<'_>) {
    let allocator = device.allocator();
    let info = PoolCreateInfo {
        memory_type_index: unsafe { allocator.find_memory_type_index(!0, &host_visible()) }.expect("a type"),
        flags: AllocatorPoolCreateFlags::LINEAR_ALGORITHM,
        block_size: MIB,
        min_block_count: 1,
        max_block_count: 1,
        ..Default::default()
    };
    let pool = allocator.create_pool(&info).expect("a pool");
    let offset = |size: u64, flags| {
        let needed = vk::MemoryRequirements { size, alignment: 512, memory_type_bits: !0 };
        let info = AllocationCreateInfo { flags, ..Default::default() };
        let made = unsafe { pool.allocate_memory(&needed, &info) };
        (
            made.as_ref().map(|one| allocator.get_allocation_info(one).offset).map_err(|result| *result),
            made.ok(),
        )
    };
    let lower = AllocationCreateFlags::empty();
    let upper = AllocationCreateFlags::UPPER_ADDRESS;
    let mut all = Vec::new();
    for (step, size, flags) in [
        ("1", 1000, lower),
        ("2", 5000, lower),
        ("top-1", 1000, upper),
        ("top-2", 7000, upper),
        ("full", MIB, lower),
    ] {
        let (found, made) = offset(size, flags);
        device.say(&format!("linear-{step}"), found);
        all.extend(made);
    }
    unsafe { allocator.free_memory_pages(&mut all) };
    // A ring: frees the oldest, and new allocations wrap around to the start.
    let mut ring = std::collections::VecDeque::new();
    for step in 0..8 {
        let (found, made) = offset(300 * KIB, lower);
        device.say(&format!("ring-{step}"), found);
        ring.extend(made);
        if ring.len() > 2 {
            let mut oldest = ring.pop_front().expect("there are three");
            unsafe { allocator.free_memory(&mut oldest) };
        }
    }
    for mut one in ring {
        unsafe { allocator.free_memory(&mut one) };
    }
}

fn errors(device: &Device<'_>) {
    let allocator = device.allocator();
    let needed = vk::MemoryRequirements { size: 1000, alignment: 16, memory_type_bits: !0 };
    let any = AllocationCreateInfo::default();
    let gone = |result: VkResult<vk_mem::Allocation>| {
        result.map(|mut one| unsafe { allocator.free_memory(&mut one) })
    };
    let try_it = |needed: &vk::MemoryRequirements, info: &AllocationCreateInfo| {
        gone(unsafe { allocator.allocate_memory(needed, info) })
    };
    device.say("no-type", try_it(&vk::MemoryRequirements { memory_type_bits: 0, ..needed }, &any));
    device.say("size-zero", try_it(&vk::MemoryRequirements { size: 0, ..needed }, &any));
    let flags = AllocationCreateFlags::NEVER_ALLOCATE;
    device.say("never-allocate", try_it(&needed, &AllocationCreateInfo { flags, ..Default::default() }));
    let impossible = AllocationCreateInfo {
        required_flags: vk::MemoryPropertyFlags::PROTECTED | vk::MemoryPropertyFlags::HOST_VISIBLE,
        ..Default::default()
    };
    device.say("impossible", try_it(&needed, &impossible));
    let none_of_them = AllocationCreateInfo { memory_type_bits: 1 << 31, ..Default::default() };
    device.say("none-of-them", try_it(&needed, &none_of_them));
    let usage = vk::BufferUsageFlags::TRANSFER_SRC;
    let empty = unsafe { allocator.create_buffer(&buffer_info(0, usage), &any) };
    device.say("empty-buffer", empty.map(|_| ()));
    let info = PoolCreateInfo { memory_type_index: 31, ..Default::default() };
    device.say("pool-no-type", allocator.create_pool(&info).map(|_| ()));
    let flags = AllocationCreateFlags::DONT_BIND;
    let unbound = AllocationCreateInfo { flags, ..host_visible() };
    let (buffer, mut one) =
        unsafe { allocator.create_buffer(&buffer_info(256, usage), &unbound) }.expect("a buffer");
    device.say("bound-later", unsafe { allocator.bind_buffer_memory2(&one, 0, buffer, std::ptr::null()) });
    unsafe { allocator.destroy_buffer(buffer, &mut one) };
    let mut limited = AllocatorCreateInfo::new(device.instance, device.device, device.physical_device);
    let limits = [16 * MIB; vk::MAX_MEMORY_HEAPS];
    let heaps = unsafe { allocator.get_memory_properties() }.memory_heap_count;
    limited.heap_size_limits = &limits[..usize::try_from(heaps).expect("few")];
    let limited = unsafe { Allocator::new(limited) }.expect("an allocator");
    let large = vk::MemoryRequirements { size: 17 * MIB, ..needed };
    let refused = unsafe { limited.allocate_memory(&large, &any) };
    device.say("over-limit", refused.map(|mut one| unsafe { limited.free_memory(&mut one) }));
}

fn budgets(device: &Device<'_>) {
    let allocator = device.allocator();
    let needed = vk::MemoryRequirements { size: 5 * MIB, alignment: 16, memory_type_bits: !0 };
    let flags = AllocationCreateFlags::DEDICATED_MEMORY;
    let info = AllocationCreateInfo { flags, ..Default::default() };
    let mut one = unsafe { allocator.allocate_memory(&needed, &info) }.expect("memory");
    unsafe { allocator.set_current_frame_index(1) };
    for (heap, known) in allocator.get_heap_budgets().expect("budgets").iter().enumerate() {
        let figures = &known.statistics;
        let figures =
            (figures.blockCount, figures.allocationCount, figures.blockBytes, figures.allocationBytes);
        device.say(&format!("budget-{heap}"), figures);
        // A real device's values may change between two runs.
        if device.name != "vulkan" {
            device.say(&format!("budget-{heap}-usage"), (known.usage, known.budget));
        }
    }
    let total = allocator.calculate_statistics().expect("statistics");
    for heap in 0..allocator.get_heap_budgets().expect("budgets").len() {
        let known = &total.memoryHeap[heap];
        let figures = (known.statistics.blockBytes, known.allocationSizeMin, known.unusedRangeSizeMin);
        device.say(&format!("statistics-heap-{heap}"), figures);
    }
    unsafe { allocator.free_memory(&mut one) };
}

fn virtual_blocks(device: &Device<'_>) {
    let ranges =
        |step: &str, flags: VirtualBlockCreateFlags, tries: &[(u64, u64, VirtualAllocationCreateFlags)]| {
            let info = VirtualBlockCreateInfo { size: 10_000, flags, allocation_callbacks: None };
            let mut block = VirtualBlock::new(info).expect("a block");
            for (at, &(size, alignment, flags)) in tries.iter().enumerate() {
                let info = VirtualAllocationCreateInfo { size, alignment, user_data: 5, flags };
                let made = unsafe { block.allocate(info) };
                device.say(&format!("{step}-{at}"), made.as_ref().map(|(_, offset)| offset));
                if let Ok((mut range, _)) = made {
                    unsafe { block.set_allocation_user_data(&mut range, 6 as *mut c_void) };
                    let known = unsafe { block.get_allocation_info(&range) }.expect("a range");
                    device.say(&format!("{step}-{at}-info"), (known.size, known.user_data));
                    if at == 1 && step != "virtual-linear" {
                        unsafe { block.free(&mut range) };
                    }
                }
            }
            unsafe { block.clear() };
        };
    let any = VirtualAllocationCreateFlags::empty();
    let upper = VirtualAllocationCreateFlags::VMA_VIRTUAL_ALLOCATION_CREATE_UPPER_ADDRESS_BIT;
    let lowest = VirtualAllocationCreateFlags::VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT;
    let linear = VirtualBlockCreateFlags::VMA_VIRTUAL_BLOCK_CREATE_LINEAR_ALGORITHM_BIT;
    ranges("virtual-linear", linear, &[(100, 0, any), (100, 64, any), (100, 0, upper), (10_000, 0, any)]);
    ranges(
        "virtual",
        VirtualBlockCreateFlags::empty(),
        &[(4000, 0, any), (256, 256, any), (100, 0, any), (10_000, 0, any), (200, 0, lowest)],
    );
    let nothing = VirtualBlockCreateInfo { size: 4, ..Default::default() };
    let mut block = VirtualBlock::new(nothing).expect("a block");
    let info = VirtualAllocationCreateInfo { size: 5, alignment: 0, user_data: 0, flags: any };
    device.say("virtual-too-large", unsafe { block.allocate(info) }.map(|(_, offset)| offset));
}
