//! Compares the stand-in with the original on every simulated GPU: the same memory types, and accurate reports.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Mutex;

use ash::vk;
use gpu_allocator::vulkan::{
    Allocation, AllocationCreateDesc, AllocationScheme, Allocator, AllocatorCreateDesc,
};
use gpu_allocator::{AllocationError, AllocationSizes, AllocatorDebugSettings, MemoryLocation};
use sublet::sim::{Gpu, Profile, profiles};

const LOCATIONS: [(MemoryLocation, original::MemoryLocation); 4] = [
    (MemoryLocation::Unknown, original::MemoryLocation::Unknown),
    (MemoryLocation::GpuOnly, original::MemoryLocation::GpuOnly),
    (MemoryLocation::CpuToGpu, original::MemoryLocation::CpuToGpu),
    (MemoryLocation::GpuToCpu, original::MemoryLocation::GpuToCpu),
];

fn allocator(gpu: &Gpu, debug_settings: AllocatorDebugSettings) -> Allocator {
    with_sizes(gpu, debug_settings, AllocationSizes::default())
}

fn with_sizes(
    gpu: &Gpu,
    debug_settings: AllocatorDebugSettings,
    allocation_sizes: AllocationSizes,
) -> Allocator {
    Allocator::new(&AllocatorCreateDesc {
        instance: gpu.instance().clone(),
        device: gpu.device().clone(),
        physical_device: gpu.physical_device(),
        debug_settings,
        buffer_device_address: false,
        allocation_sizes,
    })
    .unwrap()
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

fn quiet() -> AllocatorDebugSettings {
    let mut settings = AllocatorDebugSettings::default();
    settings.log_leaks_on_shutdown = false;
    settings
}

/// Returns the memory type of an allocation's memory.
fn memory_type(gpu: &Gpu, memory: vk::DeviceMemory) -> u32 {
    gpu.memory_info(memory).unwrap().type_index
}

#[test]
fn every_location_gets_the_memory_type_that_the_original_gives_it() {
    for profile in profiles::ALL {
        let gpu = Gpu::new(profile);
        let mut ours = allocator(&gpu, quiet());
        let mut theirs = original::vulkan::Allocator::new(&original::vulkan::AllocatorCreateDesc {
            instance: gpu.instance().clone(),
            device: gpu.device().clone(),
            physical_device: gpu.physical_device(),
            debug_settings: Default::default(),
            buffer_device_address: false,
            allocation_sizes: Default::default(),
        })
        .unwrap();
        let count = profile.types.len();
        // All types, each type alone, and all but one.
        let masks = std::iter::once(!0_u32)
            .chain((0..count).map(|index| 1 << index))
            .chain((0..count).map(|index| !(1 << index)));
        for bits in masks {
            for (location, their_location) in LOCATIONS {
                let requirements =
                    vk::MemoryRequirements { size: 65_536, alignment: 256, memory_type_bits: bits };
                let our = ours.allocate(&AllocationCreateDesc { requirements, ..desc("ours", 1, location) });
                let their = theirs.allocate(&original::vulkan::AllocationCreateDesc {
                    name: "theirs",
                    requirements,
                    location: their_location,
                    linear: true,
                    allocation_scheme: original::vulkan::AllocationScheme::GpuAllocatorManaged,
                });
                match (our, their) {
                    (Ok(our), Ok(their)) => {
                        // SAFETY: the handle is only looked up.
                        let ours_is = memory_type(&gpu, unsafe { our.memory() });
                        // SAFETY: the handle is only looked up.
                        let theirs_is = memory_type(&gpu, unsafe { their.memory() });
                        assert_eq!(ours_is, theirs_is, "{}: {location:?} in {bits:#x}", profile.name);
                        assert_eq!(our.memory_properties(), their.memory_properties());
                        assert_eq!(our.mapped_ptr().is_some(), their.mapped_ptr().is_some());
                        ours.free(our).unwrap();
                        theirs.free(their).unwrap();
                    }
                    // A heap smaller than one of the original's blocks.
                    (Ok(our), Err(original::AllocationError::OutOfMemory)) => ours.free(our).unwrap(),
                    (Err(our), Err(their)) => assert_eq!(our.to_string(), their.to_string()),
                    (our, their) => panic!("{}: {location:?} in {bits:#x}: {our:?}, {their:?}", profile.name),
                }
            }
        }
        drop((ours, theirs));
        gpu.assert_silent();
    }
}

#[test]
fn a_report_names_everything_and_its_sums_are_right() {
    let gpu = Gpu::new(Profile::by_name("nvidia-h200").unwrap());
    let mut allocator = allocator(&gpu, quiet());
    let small = allocator.allocate(&desc("small", 4096, MemoryLocation::GpuOnly)).unwrap();
    let mut large = allocator.allocate(&desc("large", 1 << 30, MemoryLocation::GpuOnly)).unwrap();
    assert!(large.as_sublet().unwrap().is_dedicated() && !small.as_sublet().unwrap().is_dedicated());
    assert!(!large.is_dedicated(), "no scheme asked for it");
    assert_ne!(small.chunk_id(), large.chunk_id());
    allocator.rename_allocation(&mut large, "huge").unwrap();

    let report = allocator.generate_report();
    let names: Vec<_> = report.allocations.iter().map(|allocation| allocation.name.as_str()).collect();
    assert_eq!(names, ["small", "huge"]);
    assert_eq!(report.total_allocated_bytes, 4096 + (1 << 30));
    assert_eq!(report.total_capacity_bytes, allocator.capacity());
    assert_eq!(report.blocks.iter().map(|block| block.size).sum::<u64>(), report.total_capacity_bytes);
    assert!(report.blocks.iter().all(|block| block.allocations.len() == 1));
    assert!(format!("{allocator:?}").contains("huge"));

    allocator.free(small).unwrap();
    allocator.free(large).unwrap();
    assert!(allocator.generate_report().allocations.is_empty());
    drop(allocator);
    gpu.assert_silent();
}

#[test]
fn mapped_memory_is_a_slice_and_a_slab() {
    let gpu = Gpu::new(Profile::by_name("nvidia-h200").unwrap());
    let mut allocator = allocator(&gpu, quiet());
    let mut memory = allocator.allocate(&desc("upload", 64, MemoryLocation::CpuToGpu)).unwrap();
    memory.mapped_slice_mut().unwrap().fill(7);
    assert_eq!(memory.mapped_slice().unwrap(), [7; 64]);
    let copied = presser::copy_from_slice_to_offset(&[1_u32, 2], &mut memory, 8).unwrap();
    assert_eq!(copied.copy_start_offset, 8);
    assert_eq!(memory.mapped_slice().unwrap()[8..12], 1_u32.to_ne_bytes());
    assert!(memory.try_as_mapped_slab().is_some());
    let mut hidden = allocator.allocate(&desc("device", 64, MemoryLocation::GpuOnly)).unwrap();
    assert!(hidden.mapped_slice().is_none() && hidden.try_as_mapped_slab().is_none());
    allocator.free(memory).unwrap();
    allocator.free(hidden).unwrap();
}

#[test]
fn nothing_is_an_allocation_too() {
    let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    let mut allocator = allocator(&gpu, quiet());
    let mut nothing = Allocation::default();
    assert!(nothing.is_null() && nothing.chunk_id().is_none() && nothing.mapped_ptr().is_none());
    assert_eq!((nothing.offset(), nothing.size()), (0, 0));
    allocator.rename_allocation(&mut nothing, "still nothing").unwrap();
    allocator.free(nothing).unwrap();
}

#[test]
fn bad_requests_are_refused_with_the_originals_errors() {
    let gpu = Gpu::new(Profile::by_name("nvidia-h200").unwrap());
    let mut allocator = allocator(&gpu, quiet());
    let none = allocator.allocate(&desc("", 0, MemoryLocation::GpuOnly));
    assert!(matches!(none, Err(AllocationError::InvalidAllocationCreateDesc)));
    let mut odd = desc("", 64, MemoryLocation::GpuOnly);
    odd.requirements.alignment = 3;
    assert!(matches!(allocator.allocate(&odd), Err(AllocationError::InvalidAllocationCreateDesc)));
    let mut nowhere = desc("", 64, MemoryLocation::GpuOnly);
    nowhere.requirements.memory_type_bits = 0;
    assert!(matches!(allocator.allocate(&nowhere), Err(AllocationError::NoCompatibleMemoryTypeFound)));
    let huge = desc("", 1 << 50, MemoryLocation::GpuOnly);
    assert!(matches!(allocator.allocate(&huge), Err(AllocationError::OutOfMemory)));
    let null = Allocator::new(&AllocatorCreateDesc {
        instance: gpu.instance().clone(),
        device: gpu.device().clone(),
        physical_device: vk::PhysicalDevice::null(),
        debug_settings: quiet(),
        buffer_device_address: false,
        allocation_sizes: AllocationSizes::default(),
    });
    assert!(matches!(null, Err(AllocationError::InvalidAllocatorCreateDesc(_))));
    gpu.assert_silent();
}

#[test]
fn dedicated_schemes_name_their_resource() {
    let gpu = Gpu::new(Profile::by_name("nvidia-h200").unwrap());
    let mut allocator = allocator(&gpu, quiet());
    let info = vk::BufferCreateInfo::default().size(4096).usage(vk::BufferUsageFlags::TRANSFER_DST);
    // SAFETY: the create-info is valid.
    let buffer = unsafe { gpu.device().create_buffer(&info, None) }.unwrap();
    // SAFETY: the buffer is live.
    let requirements = unsafe { gpu.device().get_buffer_memory_requirements(buffer) };
    let memory = allocator
        .allocate(&AllocationCreateDesc {
            requirements,
            allocation_scheme: AllocationScheme::DedicatedBuffer(buffer),
            ..desc("own", 1, MemoryLocation::GpuOnly)
        })
        .unwrap();
    assert!(memory.is_dedicated());
    // SAFETY: only the buffer is bound to it.
    let (handle, offset) = (unsafe { memory.memory() }, memory.offset());
    // SAFETY: the memory belongs to the buffer, and is unused.
    unsafe { gpu.device().bind_buffer_memory(buffer, handle, offset) }.unwrap();
    // SAFETY: the device never used it.
    unsafe { gpu.device().destroy_buffer(buffer, None) };
    allocator.free(memory).unwrap();
    gpu.assert_silent();
}

/// Stores log lines. All tests of a process share one logger; the names in the lines distinguish them.
struct Log(Mutex<Vec<String>>);

impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        self.0.lock().unwrap().push(format!("{}: {}", record.level(), record.args()));
    }

    fn flush(&self) {}
}

static LOG: Log = Log(Mutex::new(Vec::new()));

/// A separate function, even in optimised builds, so that its name is in the backtrace.
#[inline(never)]
fn whose_name_is_in_the_backtrace(allocator: &mut Allocator) -> Allocation {
    let kept = allocator.allocate(&desc("forgotten", 4096, MemoryLocation::GpuOnly)).unwrap();
    std::hint::black_box(kept)
}

#[test]
fn what_is_forgotten_is_logged_by_name_and_with_where_it_came_from() {
    log::set_logger(&LOG).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    let mut settings = AllocatorDebugSettings::default();
    settings.store_stack_traces = true;
    settings.log_allocations = true;
    settings.log_frees = true;
    let mut allocator = allocator(&gpu, settings);
    let kept = whose_name_is_in_the_backtrace(&mut allocator);
    let freed = allocator.allocate(&desc("remembered", 4096, MemoryLocation::GpuOnly)).unwrap();
    allocator.free(freed).unwrap();
    drop(allocator);
    drop(kept);
    let log = LOG.0.lock().unwrap().join("\n");
    assert!(log.contains("Allocating `forgotten` of 4096 bytes"), "{log}");
    assert!(log.contains("Freeing `remembered`."), "{log}");
    assert!(log.contains("WARN: leak detected") && log.contains("name: forgotten"), "{log}");
    assert!(!log.contains("name: remembered"), "{log}");
    assert!(log.contains("backtrace:"), "{log}");
    assert!(!log.contains("disabled backtrace"), "{log}");
    assert!(log.contains("whose_name_is_in_the_backtrace"), "the backtrace leads to the caller: {log}");
}

/// As in the original, an empty block is kept only if it is the last of its memory type.
#[test]
fn no_empty_block_stays_beside_others() {
    for profile in profiles::ALL {
        let gpu = Gpu::new(profile);
        // With the default sizes everything fits one block, which would be kept.
        let sizes = AllocationSizes::new(32 << 20, 32 << 20);
        let mut allocator = with_sizes(&gpu, quiet(), sizes);
        let mut held: Vec<_> = (0..48)
            .map(|_| allocator.allocate(&desc("level", 3 << 20, MemoryLocation::GpuOnly)).unwrap())
            .collect();
        let blocks = |held: &[Allocation]| {
            // SAFETY: the handles are only compared.
            let mut memories: Vec<_> = held.iter().map(|it| unsafe { it.memory() }).collect();
            memories.sort_unstable();
            memories.dedup();
            u64::try_from(memories.len()).unwrap()
        };
        assert!(blocks(&held) > 1, "{}", profile.name);
        while let Some(last) = held.pop() {
            allocator.free(last).unwrap();
            assert_eq!(
                gpu.live().memories,
                blocks(&held).max(1),
                "{}: {} are left",
                profile.name,
                held.len()
            );
        }
    }
}
