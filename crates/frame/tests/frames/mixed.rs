//! A program that mixes everything: frames, pools, mapping, defragmentation, sets, and descriptor heaps. Each of its
//! driver calls fails in turn, on every simulated device.

use std::error::Error;
use std::sync::Arc;

use ash::vk;
use sublet::retire::Clock;
use sublet::{
    Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, Allocator, DefragmentationInfo,
    MemoryUsage, Pool, PoolCreateInfo, sim,
};
use sublet_descriptors::{
    BindlessHeap, BindlessHeapCreateInfo, BufferDescriptor, Descriptor, DescriptorDevice, DescriptorFeatures,
    DescriptorKind, HeapCreateInfo, HeapKind,
};
use sublet_frame::Frames;

use crate::faults::{fail_each_call, program};

type Outcome = Result<(), Box<dyn Error>>;

/// Fills a pool, makes a hole, and moves the rest.
fn pool(allocator: &Allocator) -> Outcome {
    let needs = vk::MemoryRequirements { size: 3_000, alignment: 64, memory_type_bits: !0 };
    let host =
        AllocationCreateInfo { flags: Flags::MAPPED, ..AllocationCreateInfo::new(MemoryUsage::CpuToGpu) };
    let memory_type = allocator.find_memory_type_index(!0, &host)?;
    let pool =
        allocator.create_pool(&PoolCreateInfo { block_size: 8_192, ..PoolCreateInfo::new(memory_type) })?;
    let mut live = Vec::new();
    let outcome = in_pool(allocator, &pool, needs, &mut live);
    for allocation in live {
        // SAFETY: nothing is bound to it.
        unsafe { allocator.free_memory(allocation) }?;
    }
    // SAFETY: it is empty.
    assert!(unsafe { allocator.destroy_pool(pool) }?.is_empty());
    outcome
}

fn in_pool(
    allocator: &Allocator,
    pool: &Pool,
    needs: vk::MemoryRequirements,
    live: &mut Vec<Allocation>,
) -> Outcome {
    let info = AllocationCreateInfo { flags: Flags::MAPPED, ..AllocationCreateInfo::in_pool(pool) };
    for at in 0..6 {
        let mut allocation = allocator.allocate_memory(&needs, &info)?;
        allocation.set_user_data(at);
        live.push(allocation);
        let last = live.len() - 1;
        allocator.copy_to_allocation(&at.to_le_bytes(), &mut live[last], 0)?;
    }
    for at in [0, 1] {
        // SAFETY: nothing is bound to it.
        unsafe { allocator.free_memory(live.swap_remove(at)) }?;
    }
    let pools = [pool];
    let info = DefragmentationInfo { pools: &pools, ..Default::default() };
    let mut defragmentation = allocator.begin_defragmentation(&info)?;
    while let Some(pass) = defragmentation.begin_pass() {
        for planned in pass {
            let source = planned.user_data();
            let moved = live.iter_mut().find(|allocation| Some(allocation.user_data()) == source);
            // SAFETY: nothing is bound to it.
            let _ = moved.map(|allocation| unsafe { planned.complete(allocation) });
        }
    }
    defragmentation.end();
    allocator.validate();
    Ok(())
}

/// Writes a descriptor into a heap that grows if it can.
fn heap(allocator: &Arc<Allocator>, descriptors: &DescriptorDevice, gpu: &sim::Gpu) -> Outcome {
    let addresses = descriptors.features().contains(DescriptorFeatures::BUFFER_DEVICE_ADDRESS);
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER;
    let address_usage =
        if addresses { vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS } else { vk::BufferUsageFlags::empty() };
    let info = vk::BufferCreateInfo::default().size(1_024).usage(usage | address_usage);
    let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
    // SAFETY: the create-info is valid.
    let (buffer, memory) = unsafe { allocator.create_buffer(&info, &auto) }?;
    let mut whole = BufferDescriptor::new(buffer, 0, 1_024);
    if addresses {
        let query = vk::BufferDeviceAddressInfo::default().buffer(buffer);
        // SAFETY: the buffer is live and bound, and has the usage.
        whole = whole.with_buffer_address(unsafe { gpu.device().get_buffer_device_address(&query) });
    }
    let outcome = in_heap(allocator, descriptors, Descriptor::StorageBuffer(whole));
    // SAFETY: the heap is destroyed, and the device never used it.
    unsafe { allocator.destroy_buffer(buffer, memory) }?;
    outcome
}

fn in_heap(allocator: &Arc<Allocator>, descriptors: &DescriptorDevice, storage: Descriptor) -> Outcome {
    let info = BindlessHeapCreateInfo::new(HeapKind::Resource);
    let types = &[DescriptorKind::StorageBuffer];
    let heap = HeapCreateInfo { slots: 4, max_slots: 16, types, ..info.heap };
    let info = BindlessHeapCreateInfo { heap, frames: 2, defaults: &[storage] };
    // SAFETY: the buffer outlives the heap.
    let heap = unsafe { BindlessHeap::create(descriptors, Arc::clone(allocator), &info) }?;
    let clock = Clock::new();
    let written = (|| {
        let timeline = clock.add_timeline()?;
        for _ in 0..3 {
            let range = heap.allocate(3)?;
            // SAFETY: the buffer is live, and no shader runs.
            unsafe { heap.write(range.id(), 2, &storage) }?;
            // SAFETY: nothing was submitted.
            unsafe { heap.flush(0) };
        }
        let ticket = clock.open(timeline);
        clock.discard(ticket)?;
        // SAFETY: no command buffer binds it.
        unsafe { heap.retire_outgrown(ticket) };
        heap.collect(&clock)?;
        Ok(())
    })();
    // SAFETY: the device never used it.
    unsafe { heap.destroy() };
    written
}

fn mixed(
    frames: &mut Frames,
    allocator: &Arc<Allocator>,
    descriptors: &DescriptorDevice,
    gpu: &sim::Gpu,
) -> Outcome {
    pool(allocator)?;
    heap(allocator, descriptors, gpu)?;
    program(frames, 1)
}

#[test]
fn every_call_of_a_mixed_program_fails_in_turn() {
    let tried = fail_each_call(sim::Profile::names(), &mixed);
    assert!(tried > 1_000, "only {tried} calls failed");
}
