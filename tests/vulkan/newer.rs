//! Features of newer drivers only: changing priorities, sparse buffer pages, usages in a chain.
//!
//! As in other tests, a driver that lacks a feature is skipped. With `SUBLET_REQUIRE_NEWER=1` it must have all of them,
//! so that these tests and those of descriptors cannot skip the driver that was installed for them. With
//! `SUBLET_REQUIRE_NEWEST=1` it must also have Vulkan's own descriptor heaps.

use ash::vk;
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, AllocatorCreateFlags, MemoryUsage, PoolCreateInfo,
};
use sublet_descriptors::DescriptorFeatures;
use sublet_examples::Random;

use crate::{Fixture, on_each_device, on_each_driver};

const API_VERSION_1_4: u32 = vk::make_api_version(0, 1, 4, 0);

#[test]
fn a_newer_driver_has_all_that_it_was_installed_for() {
    if std::env::var_os("SUBLET_REQUIRE_NEWER").is_none_or(|value| value != "1") {
        return;
    }
    let mut drivers = 0;
    on_each_driver(|name, context| {
        drivers += 1;
        assert!(context.api_version() >= API_VERSION_1_4, "{name}: {}", context.api_version());
        let memory = AllocatorCreateFlags::EXT_MEMORY_BUDGET
            | AllocatorCreateFlags::EXT_MEMORY_PRIORITY
            | AllocatorCreateFlags::EXT_PAGEABLE_DEVICE_LOCAL_MEMORY
            | AllocatorCreateFlags::KHR_MAINTENANCE5
            | AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS;
        assert_eq!(memory - context.allocator_flags(), AllocatorCreateFlags::empty(), "{name}");
        let newest = std::env::var_os("SUBLET_REQUIRE_NEWEST").is_some_and(|value| value == "1");
        let heap = if newest { DescriptorFeatures::DESCRIPTOR_HEAP } else { DescriptorFeatures::empty() };
        let descriptors = heap
            | DescriptorFeatures::PUSH_DESCRIPTOR
            | DescriptorFeatures::INLINE_UNIFORM_BLOCK
            | DescriptorFeatures::MUTABLE_DESCRIPTOR_TYPE
            | DescriptorFeatures::BUFFER_DEVICE_ADDRESS
            | DescriptorFeatures::DESCRIPTOR_BUFFER
            | DescriptorFeatures::UNIFORM_BUFFER_UPDATE_AFTER_BIND
            | DescriptorFeatures::SAMPLED_IMAGE_UPDATE_AFTER_BIND
            | DescriptorFeatures::STORAGE_IMAGE_UPDATE_AFTER_BIND
            | DescriptorFeatures::STORAGE_BUFFER_UPDATE_AFTER_BIND
            | DescriptorFeatures::UPDATE_UNUSED_WHILE_PENDING
            | DescriptorFeatures::PARTIALLY_BOUND
            | DescriptorFeatures::VARIABLE_DESCRIPTOR_COUNT;
        assert_eq!(descriptors - context.descriptor_info().features, DescriptorFeatures::empty(), "{name}");
        let timelines = context.enabled().is_some_and(|enabled| enabled.timeline_semaphore);
        assert!(timelines && context.has_sparse_binding(), "{name}");
        assert!(!newest || context.enabled().is_some_and(|enabled| enabled.ray_query), "{name}");
        assert_eq!(context.finish(), [""; 0], "{name}");
    });
    assert_ne!(drivers, 0, "there is no driver");
}

#[test]
fn priorities_change_while_memory_lives() {
    on_each_device(|fixture| {
        let flags = AllocatorCreateFlags::EXT_PAGEABLE_DEVICE_LOCAL_MEMORY;
        if !fixture.context.allocator_flags().contains(flags) {
            return;
        }
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER;
        let own = AllocationCreateInfo {
            flags: Flags::DEDICATED_MEMORY,
            priority: 0.25,
            ..AllocationCreateInfo::new(MemoryUsage::AutoPreferDevice)
        };
        let dedicated = fixture.buffer(1 << 20, usage, &own);
        let pool = PoolCreateInfo {
            block_size: 1 << 20,
            min_block_count: 2,
            priority: 0.75,
            ..PoolCreateInfo::new(dedicated.1.memory_type_index())
        };
        let pool = fixture.allocator.create_pool(&pool).unwrap();
        let shared = fixture.buffer(1 << 10, usage, &AllocationCreateInfo::in_pool(&pool));
        for priority in [0.0, 1.0, 0.5] {
            fixture.allocator.set_allocation_priority(&dedicated.1, priority).unwrap();
            fixture.allocator.set_pool_priority(&pool, priority).unwrap();
            let Some(gpu) = fixture.context.gpu() else { continue };
            for memory in [dedicated.1.memory(), shared.1.memory()] {
                assert_eq!(gpu.memory_info(memory).unwrap().priority, Some(priority));
            }
        }
        fixture.allocator.set_allocation_priority(&shared.1, 1.0).unwrap_err();
        fixture.destroy(dedicated);
        fixture.destroy(shared);
        // SAFETY: the pool is empty, and no thread uses it.
        unsafe { fixture.allocator.destroy_pool(pool) }.unwrap();
    });
}

/// The pages of a sparse buffer lie anywhere in the blocks, and keep the bytes written to them.
#[test]
fn pages_of_a_sparse_buffer_keep_their_bytes() {
    on_each_device(|fixture| {
        if fixture.context.has_sparse_binding() {
            sparse(fixture);
        }
    });
}

fn sparse(fixture: &Fixture<'_>) {
    let device = fixture.context.device();
    let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    let info = vk::BufferCreateInfo::default().size(4 << 20).usage(usage);
    let info = info.flags(vk::BufferCreateFlags::SPARSE_BINDING);
    // SAFETY: the create-info is valid, and the feature is enabled.
    let buffer = unsafe { device.create_buffer(&info, None) }.unwrap();
    // SAFETY: the buffer is live.
    let whole = unsafe { device.get_buffer_memory_requirements(buffer) };
    let page = vk::MemoryRequirements { size: whole.alignment, ..whole };
    let count = (whole.size / page.size) as usize;
    // A buffer between the pages, so that they are not contiguous by chance.
    let auto = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
    let mut pages = fixture.allocator.allocate_memory_pages(&vec![page; count / 2], &[auto]).unwrap();
    let between = fixture.buffer(100, usage, &AllocationCreateInfo::new(MemoryUsage::AutoPreferDevice));
    pages.extend(fixture.allocator.allocate_memory_pages(&vec![page; count - count / 2], &[auto]).unwrap());
    // The last page of memory is the first of the buffer.
    let binds: Vec<_> = (0..)
        .step_by(usize::try_from(page.size).unwrap())
        .zip(pages.iter().rev())
        .map(|(at, allocation)| {
            vk::SparseMemoryBind::default()
                .resource_offset(at)
                .size(page.size)
                .memory(allocation.memory())
                .memory_offset(allocation.offset())
        })
        .collect();
    let of_buffer = [vk::SparseBufferMemoryBindInfo::default().buffer(buffer).binds(&binds)];
    let bind = vk::BindSparseInfo::default().buffer_binds(&of_buffer);
    // SAFETY: buffer and memory are live, and the ranges are whole pages of both.
    unsafe { device.queue_bind_sparse(fixture.context.queue(), &[bind], vk::Fence::null()) }.unwrap();
    // SAFETY: only this thread uses the queue.
    unsafe { device.queue_wait_idle(fixture.context.queue()) }.unwrap();

    let data = Random::new(4).bytes(6_000);
    let host = |flags| AllocationCreateInfo { flags, ..AllocationCreateInfo::new(MemoryUsage::Auto) };
    let mut up = fixture.buffer(data.len() as u64, usage, &host(Flags::HOST_ACCESS_SEQUENTIAL_WRITE));
    let down = fixture.buffer(data.len() as u64, usage, &host(Flags::HOST_ACCESS_RANDOM));
    fixture.allocator.copy_to_allocation(&data, &mut up.1, 0).unwrap();
    // At either end, and across the border of two pages.
    let size = data.len() as u64;
    for at in [0, page.size - size / 2, page.size * (count as u64 / 2) - 4, (4 << 20) - size] {
        let there = [vk::BufferCopy::default().dst_offset(at).size(size)];
        let back = [vk::BufferCopy::default().src_offset(at).size(size)];
        let record = |device: &ash::Device, commands| {
            // SAFETY: the ranges are inside the buffers and bound, and the buffers have the transfer usage.
            unsafe { device.cmd_copy_buffer(commands, up.0, buffer, &there) };
        };
        fixture.context.submit(record).unwrap();
        let record = |device: &ash::Device, commands| {
            // SAFETY: as above.
            unsafe { device.cmd_copy_buffer(commands, buffer, down.0, &back) };
        };
        fixture.context.submit(record).unwrap();
        let mut read = vec![0; data.len()];
        fixture.allocator.copy_from_allocation(&down.1, 0, &mut read).unwrap();
        assert!(read == data, "at {at}");
        // Clears the bytes, so that the next round cannot find them.
        let zero = |device: &ash::Device, commands| {
            // SAFETY: the buffer has the transfer usage.
            unsafe { device.cmd_fill_buffer(commands, down.0, 0, vk::WHOLE_SIZE, 0) };
        };
        fixture.context.submit(zero).unwrap();
    }
    // SAFETY: all submissions were waited for.
    unsafe { device.destroy_buffer(buffer, None) };
    for allocation in pages {
        // SAFETY: the buffer is destroyed.
        unsafe { fixture.allocator.free_memory(allocation) }.unwrap();
    }
    [up, down, between].into_iter().for_each(|buffer| fixture.destroy(buffer));
}

/// With maintenance5, the usage in the chain replaces that in the create-info.
#[test]
fn a_usage_in_the_chain_chooses_the_memory() {
    on_each_device(|fixture| {
        if !fixture.context.allocator_flags().contains(AllocatorCreateFlags::KHR_MAINTENANCE5) {
            return;
        }
        let info = AllocationCreateInfo::new(MemoryUsage::Auto);
        let usages =
            [vk::BufferUsageFlags2KHR::TRANSFER_DST, vk::BufferUsageFlags2KHR::SHADER_DEVICE_ADDRESS];
        for usage in usages {
            let mut chained = vk::BufferUsageFlags2CreateInfoKHR::default().usage(usage);
            let buffer_info = vk::BufferCreateInfo::default().size(70_000).push_next(&mut chained);
            // SAFETY: the create-info is valid, and its chain has the usage.
            let (buffer, allocation) =
                unsafe { fixture.allocator.create_buffer(&buffer_info, &info) }.unwrap();
            let legacy = vk::BufferUsageFlags::from_raw(u32::try_from(usage.as_raw()).unwrap());
            let plain = fixture.buffer(70_000, legacy, &info);
            assert_eq!(allocation.memory_type_index(), plain.1.memory_type_index());
            if usage == vk::BufferUsageFlags2KHR::SHADER_DEVICE_ADDRESS {
                let query = vk::BufferDeviceAddressInfo::default().buffer(buffer);
                // SAFETY: the feature is enabled, and the buffer is bound and has the usage.
                assert_ne!(unsafe { fixture.context.device().get_buffer_device_address(&query) }, 0);
            }
            fixture.destroy((buffer, allocation));
            fixture.destroy(plain);
        }
    });
}
