//! Maps and traces as input for the command.

use ash::vk;
use sublet::private::foreign_recording;
use sublet::sim::{Gpu, Profile};
use sublet::trace::{Event, Header, Trace, TraceBuffer, TraceHeap, TraceMemoryType};
use sublet::{
    Allocation, AllocationCreateFlags, AllocationCreateInfo, Allocator, AllocatorCreateInfo, Tracking,
};
use sublet_report::Snapshot;

use super::Folder;
use super::program::Watched;

fn with_allocator<R>(info: &AllocatorCreateInfo<'_>, task: impl FnOnce(&Allocator) -> R) -> R {
    // SAFETY: instance and device are live, and outlive the allocator.
    let allocator: Allocator = unsafe { Allocator::new(info) }.unwrap();
    task(&allocator)
}

fn free(allocator: &Allocator, allocation: Allocation) {
    // SAFETY: no device ever used it.
    unsafe { allocator.free_memory(allocation) }.unwrap();
}

/// Returns a map of three meshes and a dedicated atlas, and a later one of the same program with two more meshes.
pub(crate) fn maps() -> (Snapshot, Snapshot) {
    let gpu = Gpu::new(Profile::by_name("nvidia-h200").unwrap());
    // The meshes of both maps are in one block.
    let info = AllocatorCreateInfo {
        preferred_large_heap_block_size: 256 << 20,
        tracking: Tracking::all(),
        ..AllocatorCreateInfo::for_gpu(&gpu)
    };
    with_allocator(&info, |allocator| {
        let allocate = |name, size| {
            let requirements = vk::MemoryRequirements { size, alignment: 256, memory_type_bits: !0 };
            let info = AllocationCreateInfo { name: Some(name), ..Default::default() };
            allocator.allocate_memory(&requirements, &info).unwrap()
        };
        let mut held = vec![allocate("atlas", 300 << 20)];
        held.extend((0..3).map(|_| allocate("mesh", 1 << 20)));
        let before = Snapshot::of(allocator);
        held.extend((0..2).map(|_| allocate("mesh", 1 << 20)));
        let now = Snapshot::of(allocator);
        held.into_iter().for_each(|allocation| free(allocator, allocation));
        (before, now)
    })
}

/// Returns a map in VMA's schema.
pub(crate) fn vma_map() -> String {
    let gpu = Gpu::new(Profile::by_name("nvidia-h200").unwrap());
    with_allocator(&AllocatorCreateInfo::for_gpu(&gpu), |allocator| {
        let requirements = vk::MemoryRequirements { size: 1 << 20, alignment: 256, memory_type_bits: !0 };
        let allocation = allocator.allocate_memory(&requirements, &AllocationCreateInfo::default()).unwrap();
        let text = sublet_report::stats_string(allocator, true);
        free(allocator, allocation);
        text
    })
}

/// Returns a recording of a program that allocates 40 meshes, and then frees one in each of ten frames.
pub(crate) fn trace(size: u64) -> Vec<u8> {
    let gpu = Gpu::new(Profile::by_name("nvidia-h200").unwrap());
    with_allocator(&AllocatorCreateInfo::for_gpu(&gpu), |allocator| {
        let buffer = TraceBuffer::new();
        allocator.start_recording(buffer.clone()).unwrap();
        let requirements = vk::MemoryRequirements { size, alignment: 256, memory_type_bits: !0 };
        let info = AllocationCreateInfo { name: Some("mesh"), ..Default::default() };
        let mut held: Vec<_> =
            (0..40).map(|_| allocator.allocate_memory(&requirements, &info).unwrap()).collect();
        for frame in 0..10 {
            allocator.set_current_frame_index(frame);
            free(allocator, held.remove(0));
        }
        allocator.stop_recording().unwrap();
        held.into_iter().for_each(|allocation| free(allocator, allocation));
        buffer.bytes()
    })
}

/// Returns a recording without calls.
pub(crate) fn empty_trace() -> Vec<u8> {
    let gpu = Gpu::new(Profile::by_name("nvidia-h200").unwrap());
    with_allocator(&AllocatorCreateInfo::for_gpu(&gpu), |allocator| {
        let buffer = TraceBuffer::new();
        allocator.start_recording(buffer.clone()).unwrap();
        allocator.stop_recording().unwrap();
        buffer.bytes()
    })
}

/// Returns a recording on a device with 70 TiB, which maps 512 MiB four times and 1 MiB once.
pub(crate) fn greedy_trace() -> Vec<u8> {
    let mut header = Header::default();
    header.max_memory_allocation_count = 4096;
    header.heaps = vec![TraceHeap { size: 70 << 40, flags: vk::MemoryHeapFlags::empty() }];
    header.memory_types = vec![TraceMemoryType { heap: 0, flags: vk::MemoryPropertyFlags::HOST_VISIBLE }];
    let gpu = header.simulated().build();
    with_allocator(&header.create_info(&gpu), |allocator| {
        let buffer = TraceBuffer::new();
        allocator.start_recording(buffer.clone()).unwrap();
        let info = AllocationCreateInfo {
            flags: AllocationCreateFlags::DEDICATED_MEMORY,
            required_flags: vk::MemoryPropertyFlags::HOST_VISIBLE,
            ..Default::default()
        };
        let sizes = [512 << 20, 512 << 20, 512 << 20, 512 << 20, 1 << 20];
        let held = sizes.map(|size| {
            let requirements = vk::MemoryRequirements { size, alignment: 1, memory_type_bits: !0 };
            let mut allocation = allocator.allocate_memory(&requirements, &info).unwrap();
            let _pointer = allocator.map(&mut allocation).unwrap().into_raw();
            allocation
        });
        allocator.stop_recording().unwrap();
        for allocation in held {
            // SAFETY: it pairs with `into_raw`, whose pointer is not used.
            unsafe { allocator.unmap_memory(&allocation) }.unwrap();
            free(allocator, allocation);
        }
        buffer.bytes()
    })
}

/// A program with a block of its own that it fills and frees.
fn watched() -> Trace {
    let mut game = Watched::on("nvidia-h200");
    let block = game.allocate(0, 1 << 20);
    let mesh = game.buffer(1 << 20, vk::BufferUsageFlags::VERTEX_BUFFER);
    game.bind(mesh, block, 0);
    game.destroy(mesh);
    game.free(block);
    game.event(Event::DeviceDestroyed);
    game.trace
}

/// Returns a folder with all files that the help's examples use.
pub(crate) fn folder() -> Folder {
    let folder = Folder::new();
    let (before, now) = maps();
    folder.write("before.json", before.to_json());
    folder.write("map.json", now.to_json());
    folder.write("vma.json", vma_map());
    folder.write("frames.trace", trace(1 << 20));
    folder.write("watched.trace", foreign_recording(&watched()));
    folder.write("profile.json", Profile::by_name("arm-mali-g52").unwrap().to_json());
    let replayed = folder.run("replay frames.trace --json").expect(0);
    folder.write("frames.json", replayed.out);
    folder
}
